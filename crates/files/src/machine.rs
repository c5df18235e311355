//! Checks of single paths outside any root: a file that a person named, a program that is to be started. Nothing is
//! changed here, and nothing read but names and metadata.

use std::{
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Maximum number of links that are followed, as on Linux.
const LINKS_MAX: usize = 40;

/// Follows a link to the path that it finally leads to, so that an edit of that leaves the link as it is. It need not
/// exist.
pub fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..=LINKS_MAX {
        // The path is not a link, or nothing is there.
        let Ok(target) = fs::read_link(&path) else { return Ok(path) };
        path.pop();
        path.push(target);
        // A link may contain `..`, which depends on the real folder of the link. A missing folder is left to callers to
        // refuse.
        if let Some((folder, name)) = path.parent().zip(path.file_name())
            && let Ok(folder) = folder.canonicalize()
        {
            path = folder.join(name);
        }
    }
    Err(io::Error::other("too many links"))
}

/// An error of following links below a folder.
#[derive(Debug)]
pub enum LinkError {
    /// A link on the way leads out of the folder; its target may exist or not.
    Outside {
        link: PathBuf,
        target: PathBuf,
    },
    Failed(io::Error),
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Follows every link in `path`, which is below `folder`, those of its folders too, and returns the path from `folder`
/// that it leads to. It need not exist. Callers must open it beneath the folder's handle: links may change meanwhile.
pub fn follow_links_inside(folder: &Path, path: &Path) -> Result<PathBuf, LinkError> {
    let mut ahead = names_reversed(path);
    let mut followed = PathBuf::new();
    let mut last = None;
    let mut links = 0;
    while let Some(name) = ahead.pop() {
        if name == ".." {
            if !followed.pop() {
                return Err(LinkError::outside(last, path));
            }
            continue;
        }
        let link = folder.join(&followed).join(&name);
        if !is_link(&link) {
            followed.push(name);
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(io::Error::other("too many links").into());
        }
        let target = fs::read_link(&link)?;
        if is_from_root(&target) {
            let below = below(folder, &target);
            last = Some((link, target));
            let Some(below) = below else { return Err(LinkError::outside(last, path)) };
            followed.clear();
            ahead.extend(names_reversed(&below));
        } else {
            ahead.extend(names_reversed(&target));
            last = Some((link, target));
        }
    }
    Ok(followed)
}

impl LinkError {
    /// Creates the error from the last link and its target. Without one, the path itself leads out.
    fn outside(last: Option<(PathBuf, PathBuf)>, path: &Path) -> Self {
        let (link, target) = last.unwrap_or_else(|| (path.into(), path.into()));
        Self::Outside { link, target }
    }
}

/// True if a path is absolute, or has a root or a drive of its own on Windows: `\a`, `c:a`.
fn is_from_root(path: &Path) -> bool {
    matches!(path.components().next(), Some(Component::Prefix(_) | Component::RootDir))
}

/// Splits a path into its names, the last one first, `..` among them.
fn names_reversed(path: &Path) -> Vec<OsString> {
    let names = path.components().filter(|part| *part != Component::CurDir);
    let mut names: Vec<_> = names.map(|part| part.as_os_str().to_os_string()).collect();
    names.reverse();
    names
}

/// Makes an absolute path relative to `folder`, if it is below it by its names or once links are followed.
fn below(folder: &Path, path: &Path) -> Option<PathBuf> {
    let root = folder.canonicalize().ok()?;
    if let Ok(below) = path.strip_prefix(folder).or_else(|_| path.strip_prefix(&root)) {
        return Some(below.into());
    }
    let there = path.ancestors().find(|above| above.exists())?;
    let rest = path.strip_prefix(there).ok()?;
    Some(there.canonicalize().ok()?.strip_prefix(root).ok()?.join(rest))
}

/// True if the path is a link, whatever it leads to.
pub fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// True if anything has this name, even a link to nothing.
pub fn is_name_taken(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// True unless the process has no right to read the file, or to enter the folders above it.
#[cfg(unix)]
pub fn is_readable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::READ_OK) != Err(rustix::io::Errno::ACCESS)
}

/// True: rights are not checked here.
#[cfg(windows)]
pub fn is_readable(_: &Path) -> bool {
    true
}

/// State of a program: if it can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramState {
    /// The program can be started.
    Ready,
    /// The file exists, but cannot be started.
    NotExecutable,
    Missing,
}

/// Checks a program by its path. A name alone is searched for in the folders of `PATH`.
pub fn program_state(command: &str) -> ProgramState {
    let path = Path::new(command);
    if path.components().count() > 1 || path.is_absolute() {
        return program_state_at(path);
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&folders)
        .any(|folder| program_state_at(&folder.join(path)) == ProgramState::Ready);
    if is_there { ProgramState::Ready } else { ProgramState::Missing }
}

fn program_state_at(path: &Path) -> ProgramState {
    let with_suffix = path.with_added_extension("exe");
    if cfg!(windows) && !path.is_file() && with_suffix.is_file() {
        return ProgramState::Ready;
    }
    match fs::metadata(path) {
        Ok(found) if found.is_file() && is_executable(path) => ProgramState::Ready,
        Ok(_) => ProgramState::NotExecutable,
        Err(_) => ProgramState::Missing,
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(windows)]
fn is_executable(_: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_are_followed_to_their_end_which_need_not_exist() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let at = |name: &str| home.join(name);
        fs::create_dir(at("dotfiles")).unwrap();
        fs::create_dir(at("inner")).unwrap();
        symlink("../dotfiles/settings", at("inner/up")).unwrap();
        symlink("dotfiles/settings", at("settings")).unwrap();
        symlink(at("settings"), at("again")).unwrap();
        symlink("circle", at("circle")).unwrap();
        let check = |name: &str, expected: &str| {
            assert_eq!(follow_links(&at(name)).unwrap(), at(expected), "{name}");
        };
        check("nothing", "nothing");
        check("settings", "dotfiles/settings");
        fs::write(at("dotfiles/settings"), "").unwrap();
        check("settings", "dotfiles/settings");
        check("again", "dotfiles/settings");
        check("inner/up", "dotfiles/settings");
        assert!(follow_links(&at("circle")).is_err());
        assert!(is_name_taken(&at("circle")) && !is_name_taken(&at("nothing")));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_as_long_as_they_stay_inside() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let project = home.join("project");
        fs::create_dir_all(project.join("inner/deep")).unwrap();
        symlink(&project, home.join("also")).unwrap();
        let at = |name: &str| project.join(name);
        for (link, target) in [
            ("up", "../outside"),
            ("inner/up", "../top"),
            ("inner/out", "../../outside/deep"),
            ("folder", "inner/deep"),
            ("away", ".."),
            ("back", "../project/top"),
            ("circle", "circle"),
            ("chain", "folder/file"),
            ("folder-up", "folder/../file"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        symlink(at("inner/none"), at("absolute")).unwrap();
        symlink(home.join("also/inner/none"), at("by-another-name")).unwrap();
        symlink("/nowhere/at/all", at("nowhere")).unwrap();
        let inside = |name: &str, expected: &str| {
            let found = follow_links_inside(&project, Path::new(name)).unwrap();
            assert_eq!(found, Path::new(expected), "{name}");
        };
        inside("none/file", "none/file");
        inside("inner/up", "top");
        inside("folder/file", "inner/deep/file");
        inside("chain", "inner/deep/file");
        // `..` is relative to the folder that a link leads to.
        inside("folder-up", "inner/file");
        inside("absolute", "inner/none");
        inside("by-another-name", "inner/none");
        let outside = |name: &str, by: &str, to: &str| {
            let found = follow_links_inside(&project, Path::new(name));
            let Err(LinkError::Outside { link, target }) = found else {
                panic!("{name}: {found:?}")
            };
            assert_eq!((link, target), (at(by), PathBuf::from(to)), "{name}");
        };
        outside("up", "up", "../outside");
        outside("inner/out", "inner/out", "../../outside/deep");
        outside("away/file", "away", "..");
        // The link leaves and comes back, which is valid only as long as nobody renames the folder.
        outside("back", "back", "../project/top");
        outside("nowhere", "nowhere", "/nowhere/at/all");
        let circle = follow_links_inside(&project, Path::new("circle"));
        assert!(matches!(circle, Err(LinkError::Failed(_))), "{circle:?}");
    }

    #[test]
    fn files_and_folders_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let kinds = |path: &Path| (is_folder(path), is_file(path), is_name_taken(path));
        assert_eq!(kinds(&file), (false, false, false));
        fs::write(&file, "").unwrap();
        assert_eq!(kinds(&file), (false, true, true));
        assert_eq!(kinds(dir.path()), (true, false, true));
        // A missing file does not count as one without the right to read.
        assert!(is_readable(&file) && is_readable(dir.path()) && is_readable(Path::new("none")));
    }

    #[test]
    fn programs() {
        let dir = tempfile::tempdir().unwrap();
        let ours = std::env::current_exe().unwrap();
        let text = dir.path().join("text");
        fs::write(&text, "").unwrap();
        assert_eq!(program_state(ours.to_str().unwrap()), ProgramState::Ready);
        assert_eq!(program_state(dir.path().join("none").to_str().unwrap()), ProgramState::Missing);
        assert_eq!(program_state("no-program-has-this-name"), ProgramState::Missing);
        if cfg!(unix) {
            assert_eq!(program_state(text.to_str().unwrap()), ProgramState::NotExecutable);
            assert_eq!(program_state(dir.path().to_str().unwrap()), ProgramState::NotExecutable);
            assert_eq!(program_state("ls"), ProgramState::Ready);
            // Only a name alone is searched for in `PATH`.
            assert_eq!(program_state("src/lib.rs"), ProgramState::NotExecutable);
            fs::write(dir.path().join("none.exe"), "").unwrap();
            assert_eq!(
                program_state(dir.path().join("none").to_str().unwrap()),
                ProgramState::Missing
            );
        }
    }
}
