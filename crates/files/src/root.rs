//! The root folder, and the only way to make a path that will be opened.
//!
//! A [`FilePath`] is lexically inside: relative, and no `..` in it leads above the root. That it is truly inside is
//! proved when it is opened, always from the root's own handle (`resolve.rs`).

use std::{
    ffi::OsStr,
    fmt, io,
    path::{Component, Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};

use crate::{os, temp_name};

/// Longest name of one file, and longest path, in bytes.
const NAME_MAX: usize = 255;
pub(crate) const PATH_MAX: usize = 4095;

/// The root folder, opened once. Everything is opened from that handle, so that the folder cannot be swapped meanwhile.
#[derive(Debug)]
pub struct Root {
    dir: Dir,
    path: PathBuf,
    resolved: PathBuf,
}

impl Root {
    pub fn open(path: &Path) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(path, ambient_authority())?;
        let path = std::path::absolute(path)?;
        let resolved = path.canonicalize().unwrap_or_else(|_| path.clone());
        Ok(Self { dir, path, resolved })
    }

    /// The path as it was given, made absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path without links, for messages; never used to open anything.
    pub fn resolved(&self) -> &Path {
        &self.resolved
    }

    /// True if files can be made in the root itself.
    pub fn is_writable(&self) -> bool {
        os::is_writable(&self.dir)
    }

    /// Makes the path of a file directly in the root: `[a-zA-Z0-9._-]`, 1 to 255 bytes.
    pub fn flat_name(&self, name: &str) -> Result<FilePath, PathError> {
        FilePath::flat(name)
    }

    /// True if [`Root::flat_name`] accepts the name.
    pub fn accepts_flat_name(&self, name: &str) -> bool {
        FilePath::check_flat(name).is_ok()
    }

    /// Makes the path of a file anywhere below the root from an absolute path, which begins with the root as it was
    /// given or with its path without links. `..` is kept, not folded: its meaning depends on links.
    pub fn absolute(&self, path: &str) -> Result<FilePath, PathError> {
        if !Path::new(path).is_absolute() {
            return Err(PathError::Relative);
        }
        self.relative(path)
    }

    /// Makes the path of a file anywhere below the root from its path from there, or from an absolute one.
    pub fn relative(&self, path: &str) -> Result<FilePath, PathError> {
        check_bytes(path)?;
        let below = FilePath::below(self.strip(Path::new(path))?)?;
        if names_a_folder(path) { Err(PathError::Folder) } else { Ok(below) }
    }

    /// Strips the root from an absolute path. A relative path is returned as it is.
    fn strip<'a>(&self, path: &'a Path) -> Result<&'a Path, PathError> {
        if !path.is_absolute() {
            return Ok(path);
        }
        let below = |root: &Path| path.strip_prefix(root).ok();
        below(&self.path).or_else(|| below(&self.resolved)).ok_or(PathError::Outside)
    }

    /// Makes the path of a folder below the root from its path from there, or from an absolute one; `""` and `.` are
    /// the root itself. `..` is refused: its meaning depends on links.
    pub fn folder(&self, path: &str) -> Result<DirPath, PathError> {
        check_bytes(path)?;
        let path = Path::new(path);
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(PathError::Dots);
        }
        let below = self.strip(path)?.components().filter(|part| *part != Component::CurDir);
        let below: PathBuf = below.collect();
        if !below.as_os_str().is_empty() {
            FilePath::below(&below)?;
        }
        Ok(DirPath(below))
    }

    /// Returns the absolute path of a file, to be shown and not to be opened.
    pub fn path_of(&self, at: &FilePath) -> PathBuf {
        self.path.join(&at.0)
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }
}

fn check_bytes(path: &str) -> Result<(), PathError> {
    match path {
        path if path.len() > PATH_MAX => Err(PathError::Length),
        path if path.contains('\0') => Err(PathError::Characters),
        _ => Ok(()),
    }
}

/// True if `path` ends as only a folder's does: `Path` would drop such an ending.
fn names_a_folder(path: &str) -> bool {
    let last = path.rsplit(std::path::is_separator).next();
    last.is_some_and(|last| matches!(last, "" | "." | ".."))
}

/// An error of a name or a path that cannot be a file's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("a name has 1 to 255 bytes, a path at most 4095")]
    Length,
    #[error("a name has only letters, digits, `.`, `_` and `-`; a path has no NUL")]
    Characters,
    #[error("`.` and `..` are folders")]
    Dots,
    #[error("a path that is not absolute")]
    Relative,
    #[error("the path is outside the folder")]
    Outside,
    #[error("the path names a folder")]
    Folder,
    #[error("names like this are the server's own temporary files")]
    Temporary,
    #[error("the name is reserved on Windows")]
    Reserved,
}

/// A file inside a root, relative to it. Only this module makes one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilePath(PathBuf);

impl FilePath {
    /// Makes a path like [`Root::flat_name`]; the rules are the same in every root.
    pub fn flat(name: &str) -> Result<Self, PathError> {
        Self::check_flat(name).map(|()| Self(PathBuf::from(name)))
    }

    fn check_flat(name: &str) -> Result<(), PathError> {
        if !(1..=NAME_MAX).contains(&name.len()) {
            Err(PathError::Length)
        } else if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
            Err(PathError::Characters)
        } else if matches!(name, "." | "..") {
            Err(PathError::Dots)
        } else if temp_name::is_ours(name.as_ref()) {
            Err(PathError::Temporary)
        } else {
            check_system_name(name.as_ref())
        }
    }

    /// Makes a path from `path`, which is relative to the root.
    pub(crate) fn below(path: &Path) -> Result<Self, PathError> {
        let mut depth = 0_usize;
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => depth = depth.checked_sub(1).ok_or(PathError::Outside)?,
                Component::Normal(name) if name.len() > NAME_MAX => return Err(PathError::Length),
                Component::Normal(name) => {
                    check_system_name(name)?;
                    depth += 1;
                }
                Component::Prefix(_) | Component::RootDir => return Err(PathError::Outside),
            }
        }
        match path.file_name() {
            Some(name) if temp_name::is_ours(name) => Err(PathError::Temporary),
            Some(_) => Ok(Self(path.components().collect())),
            None => Err(PathError::Folder),
        }
    }

    /// Returns the path from the root, with `/` between names.
    pub fn shown(&self) -> String {
        with_slashes(&self.0)
    }

    /// Returns the name of the file.
    pub fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the folder of the file.
    pub fn parent(&self) -> DirPath {
        DirPath(self.0.parent().map(PathBuf::from).unwrap_or_default())
    }

    /// Returns the path from the root.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// A folder inside a root, relative to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DirPath(PathBuf);

impl DirPath {
    /// Returns the path from the root, with `/` between names.
    pub fn shown(&self) -> String {
        with_slashes(&self.0)
    }

    /// Returns the root itself.
    pub fn root() -> Self {
        Self(PathBuf::new())
    }

    /// Returns this folder and its parents, outermost first, without the root.
    pub(crate) fn with_parents(&self) -> impl Iterator<Item = Self> {
        let mut folders: Vec<_> = self.0.ancestors().map(|path| Self(path.into())).collect();
        folders.pop(); // the root
        folders.into_iter().rev()
    }

    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for DirPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_os_str().is_empty() { f.write_str(".") } else { self.0.display().fmt(f) }
    }
}

/// Refuses a name that no file of this system can have.
fn check_system_name(name: &OsStr) -> Result<(), PathError> {
    (!cfg!(windows) || is_plain_on_windows(name)).then_some(()).ok_or(PathError::Reserved)
}

fn is_plain_on_windows(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        !is_reserved_on_windows(name) && !name.contains([':', '<', '>', '"', '|', '?', '*'])
    })
}

/// True for device names, which are devices in every folder and with any extension, and for a trailing dot, which is
/// dropped: both would open something other than the requested file.
fn is_reserved_on_windows(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let is_port = |port: &str| {
        stem.strip_prefix(port).is_some_and(|digit| {
            digit.len() == 1 && digit.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    name.ends_with('.')
        || matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || is_port("COM")
        || is_port("LPT")
}

fn with_slashes(path: &Path) -> String {
    let names = path.components().filter(|part| *part != Component::CurDir);
    let names: Vec<_> = names.map(|part| part.as_os_str().to_string_lossy()).collect();
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names() {
        let check = |name: &str, expected: Result<(), PathError>| {
            assert_eq!(
                FilePath::flat(name).map(|path| assert_eq!(path.to_string(), name)),
                expected,
                "{name:?}"
            );
        };
        check("a", Ok(()));
        check("A-b_c.9", Ok(()));
        check("...", Ok(()));
        check(".hidden", Ok(()));
        check(&"x".repeat(255), Ok(()));
        check("", Err(PathError::Length));
        check(&"x".repeat(256), Err(PathError::Length));
        check(".", Err(PathError::Dots));
        check("..", Err(PathError::Dots));
        check(".fe-1-0123456789abcdef.tmp", Err(PathError::Temporary));
        for bad in
            ["a b", "a/b", "../a", "/a", "a\n", "a\0", "a\\b", "a:b", "a~1", "ä", "a*", "a,b"]
        {
            check(bad, Err(PathError::Characters));
        }
    }

    #[test]
    fn what_is_told_of_a_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert!(root.is_writable());
        assert!(root.accepts_flat_name("a") && !root.accepts_flat_name("a/b"));
        let file = root.relative("./sub/deep/a b").unwrap();
        assert_eq!((file.shown().as_str(), file.name().as_str()), ("sub/deep/a b", "a b"));
        assert_eq!(root.path_of(&file), root.path().join("sub/deep/a b"));
        assert_eq!(file.parent().shown(), "sub/deep");
        let folder = root.folder("./sub/./deep").unwrap();
        assert_eq!(folder.shown(), "sub/deep");
        assert_eq!(Path::new(&folder.to_string()), Path::new("sub/deep"));
        assert_eq!(root.flat_name("a").unwrap().parent(), DirPath::root());
        assert_eq!((DirPath::root().shown().as_str(), &*DirPath::root().to_string()), ("", "."));
        let parents: Vec<_> = folder.with_parents().map(|folder| folder.shown()).collect();
        assert_eq!(parents, ["sub", "sub/deep"]);
    }

    #[test]
    fn how_long_a_path_may_be() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let of = |length: usize| "abc/".repeat(length / 4) + &"x".repeat(length % 4);
        assert_eq!(root.relative(&of(4095)).map(|path| path.shown()), Ok(of(4095)));
        for refused in [root.relative(&of(4097)).err(), root.folder(&of(4096)).err()] {
            assert_eq!(refused, Some(PathError::Length));
        }
        for (length, expected) in [(255, None), (256, Some(PathError::Length))] {
            assert_eq!(root.relative(&("a/".to_owned() + &"x".repeat(length))).err(), expected);
        }
        assert_eq!(root.folder("a\0").err(), Some(PathError::Characters));
    }

    #[test]
    fn what_lies_below_is_relative() {
        for (path, expected) in [
            ("a/./b", None),
            ("/a", Some(PathError::Outside)),
            ("a/../../b", Some(PathError::Outside)),
            ("a/..", Some(PathError::Folder)),
        ] {
            assert_eq!(FilePath::below(Path::new(path)).err(), expected, "{path}");
        }
    }

    #[test]
    fn windows_names() {
        for reserved in ["con", "NUL.txt", "com1", "LPT0.a.b", "Aux.", "a."] {
            assert!(is_reserved_on_windows(reserved), "{reserved}");
        }
        for free in ["console", "com", "com10", "a.con", "lpt", "comX"] {
            assert!(!is_reserved_on_windows(free), "{free}");
            assert!(is_plain_on_windows(free.as_ref()), "{free}");
        }
        for odd in ["a:b", "a<b", "a>b", "a\"b", "a|b", "a?b", "a*b", "nul"] {
            assert!(!is_plain_on_windows(odd.as_ref()), "{odd}");
        }
    }

    proptest! {
        #[test]
        fn a_flat_name_is_one_normal_component(name: String) {
            if let Ok(path) = FilePath::flat(&name) {
                let components: Vec<_> = path.as_path().components().collect();
                prop_assert_eq!(components, vec![Component::Normal(name.as_ref())]);
            }
        }
    }
}
