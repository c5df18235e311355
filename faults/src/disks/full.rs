//! Disks without room: for blocks, for files, for what was promised a moment ago.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, UnmountFlags};

use super::acts::{self, Act};
use super::fixture::told;
use super::not_tried;
use crate::report::{Row, Scale};
use crate::server::Server;

const PAGE: u64 = 4096;

const DURABILITIES: [&str; 3] = ["--durability=data", "--durability=none", "--durability=full"];

pub fn rows(scale: Scale) -> Vec<Row> {
    let durabilities = &DURABILITIES[..scale.of(1, 3)];
    let row =
        |what: &str, row: Result<Row, String>| row.unwrap_or_else(|why| not_tried(what, &why));
    let ext4 = DURABILITIES.map(|flag| {
        let what = format!("ext4, {flag}: sizes around the last free block");
        row(&what, without_blocks_of_ext4(scale, flag, &what))
    });
    let mut rows = vec![
        row("tmpfs: sizes around the last free page", without_pages(durabilities)),
        row("tmpfs: around the last free inode", without_inodes(durabilities)),
    ];
    rows.extend(ext4);
    rows
}

/// A mounted file system, until it is dropped.
pub struct Mount(tempfile::TempDir);

impl Mount {
    pub fn tmpfs(options: &str) -> Result<Self, String> {
        let mount = Self(tempfile::tempdir().unwrap());
        let options = std::ffi::CString::new(options).unwrap();
        rustix::mount::mount("tmpfs", mount.path(), "tmpfs", MountFlags::empty(), &*options)
            .map_err(|error| format!("mount tmpfs: {error}"))?;
        Ok(mount)
    }

    fn ext4(image: &Path) -> Result<Self, String> {
        let mount = Self(tempfile::tempdir().unwrap());
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0", "-b", "1024"]).arg(image))?;
        run(Command::new("mount").args(["-o", "loop"]).arg(image).arg(mount.path()))?;
        Ok(mount)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.path(), UnmountFlags::DETACH);
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let outcome = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&outcome.stderr);
    if outcome.status.success() { Ok(()) } else { Err(format!("{command:?}: {said}")) }
}

pub fn serve(dir: &Path, flags: &[&str]) -> Server {
    let mut server = Server::start(dir, &[&["--tools=all"], flags].concat());
    server.ready();
    server
}

/// Every file there is, hidden ones too, by path.
pub fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                files.insert(entry.path(), fs::read(entry.path()).unwrap());
            }
        }
    }
    files
}

/// Makes what an act needs all there is.
pub fn prepare(dir: &Path, act: &Act) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            fs::remove_dir_all(entry.path()).unwrap();
        } else {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    fs::create_dir(dir.join("sub")).unwrap();
    if let Some(text) = &act.before {
        fs::write(dir.join(act.file), text).unwrap();
    }
}

/// How it went, in figures.
#[derive(Default)]
pub struct Tally {
    pub done: usize,
    pub refused: usize,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} done, {} refused with the old text intact", self.done, self.refused)
    }
}

/// Calls, and checks that what is there now is what was answered; whether it was done.
pub fn attempt(
    server: &mut Server,
    dir: &Path,
    act: &Act,
    code: i64,
    about: &str,
    row: &mut Row,
    tally: &mut Tally,
) -> Option<bool> {
    let mut wanted = files(dir);
    row.tries += 1;
    let answer = match act.call(server, dir) {
        Ok(answer) => answer,
        Err(none) => {
            row.bad.push(format!("{}, {about}: {none:?}", act.name));
            return None;
        }
    };
    if answer.is_error() {
        tally.refused += 1;
        row.check(answer.code() == Some(code), || {
            format!("{}, {about}: code {:?}: {}", act.name, answer.code(), told(&answer))
        });
        let folders = [dir.join("x")].into_iter().filter(|folder| folder.exists()).count();
        row.check(folders == 0, || format!("{}, {about}: left folders", act.name));
    } else {
        tally.done += 1;
        wanted.insert(dir.join(act.file), act.after.clone().into());
    }
    let now = files(dir);
    row.check(now == wanted, || {
        let sizes = |files: &BTreeMap<PathBuf, Vec<u8>>| {
            files.iter().map(|(path, bytes)| (path.clone(), bytes.len())).collect::<Vec<_>>()
        };
        let (now, wanted) = (sizes(&now), sizes(&wanted));
        format!("{}, {about}: {} and {now:?}, not {wanted:?}", act.name, told(&answer))
    });
    Some(!answer.is_error())
}

fn free_blocks(dir: &Path) -> u64 {
    rustix::fs::statvfs(dir).unwrap().f_bfree
}

fn without_pages(durabilities: &[&str]) -> Result<Row, String> {
    let mut row = Row::new("tmpfs: sizes around the last free page");
    let mut tally = Tally::default();
    for flag in durabilities {
        let mount = Mount::tmpfs("size=256k")?;
        let dir = mount.path();
        let mut server = serve(dir, &[flag]);
        let sizes = (0..4).flat_map(|pages| {
            [pages * PAGE - u64::from(pages > 0), pages * PAGE, pages * PAGE + 1]
                .map(|size| (pages, size.max(40)))
        });
        for (free, size) in sizes {
            for act in acts::all(usize::try_from(size).unwrap()) {
                prepare(dir, &act);
                let filler = dir.join("filler");
                fs::write(
                    &filler,
                    vec![b'-'; usize::try_from((free_blocks(dir) - free) * PAGE).unwrap()],
                )
                .unwrap();
                let about = format!("{flag}, {size} bytes, {free} pages free");
                let done = attempt(&mut server, dir, &act, -32005, &about, &mut row, &mut tally);
                let fits = size.div_ceil(PAGE) <= free;
                row.check(done == Some(fits), || format!("{}, {about}: done: {done:?}", act.name));
                fs::remove_file(&filler).unwrap();
                if done == Some(false) {
                    let again =
                        attempt(&mut server, dir, &act, 0, "room again", &mut row, &mut tally);
                    row.check(again == Some(true), || {
                        format!("{}, {about}: and with room", act.name)
                    });
                }
            }
        }
    }
    Ok(row.found(format!("{tally}; done if and only if it fits, and once there is room")))
}

fn without_inodes(durabilities: &[&str]) -> Result<Row, String> {
    let mut row = Row::new("tmpfs: around the last free inode");
    let mut tally = Tally::default();
    for flag in durabilities {
        let mount = Mount::tmpfs("size=1m,nr_inodes=40")?;
        let dir = mount.path();
        let mut server = serve(dir, &[flag]);
        for free in 0..5 {
            for act in acts::all(5000) {
                prepare(dir, &act);
                let left = rustix::fs::statvfs(dir).unwrap().f_ffree;
                let fillers: Vec<_> =
                    (free..left).map(|number| dir.join(format!("filler{number}"))).collect();
                for filler in &fillers {
                    fs::write(filler, "").unwrap();
                }
                let about = format!("{flag}, {free} inodes free");
                let done = attempt(&mut server, dir, &act, -32005, &about, &mut row, &mut tally);
                let expected = match free {
                    0 => Some(false),
                    4 => Some(true),
                    _ => done,
                };
                row.check(done.is_some() && done == expected, || {
                    format!("{}, {about}: done: {done:?}", act.name)
                });
                for filler in &fillers {
                    fs::remove_file(filler).unwrap();
                }
                if done == Some(false) {
                    let again =
                        attempt(&mut server, dir, &act, 0, "room again", &mut row, &mut tally);
                    row.check(again == Some(true), || {
                        format!("{}, {about}: and with room", act.name)
                    });
                }
            }
        }
    }
    Ok(row.found(tally))
}

/// Here blocks are only reserved when a text is written, and found when it goes to the disk. So it is read back from
/// there.
fn without_blocks_of_ext4(scale: Scale, flag: &str, what: &str) -> Result<Row, String> {
    let mut row = Row::new(what);
    let mut tally = Tally::default();
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    fs::File::create(&image).unwrap().set_len(4 << 20).unwrap();
    let mount = Mount::ext4(&image)?;
    let dir = mount.path();
    let mut server = serve(dir, &[flag]);
    for free in (0..=scale.of(12, 16)).step_by(scale.of(4, 1)) {
        for act in acts::all(5000) {
            prepare(dir, &act);
            let filler = dir.join("filler");
            sync(dir);
            fill(&filler, free);
            let about = format!("{free} blocks free");
            let done = attempt(&mut server, dir, &act, -32005, &about, &mut row, &mut tally);
            let wanted = if done == Some(true) { Some(&act.after) } else { act.before.as_ref() };
            let on_disk = read_from_disk(&dir.join(act.file));
            row.check(on_disk.as_deref() == wanted.map(String::as_bytes), || {
                let size = on_disk.map(|bytes| bytes.len());
                format!("{}, {about}: done: {done:?}, and on the disk {size:?} bytes", act.name)
            });
            fs::remove_file(&filler).unwrap();
            sync(dir);
            if done == Some(false) {
                let again = attempt(&mut server, dir, &act, 0, "room again", &mut row, &mut tally);
                row.check(again == Some(true), || format!("{}, {about}: and with room", act.name));
            }
        }
    }
    Ok(row.found(tally))
}

/// Takes all there is, but for so many blocks.
fn fill(filler: &Path, free: u64) {
    let mut file = fs::File::create(filler).unwrap();
    for size in [1 << 16, 1 << 10] {
        while file.write_all(&vec![b'-'; size]).is_ok() && file.sync_data().is_ok() {}
    }
    let size = file.metadata().unwrap().len();
    file.set_len(size.saturating_sub(free * 1024)).unwrap();
    let _ = file.sync_all();
}

fn sync(dir: &Path) {
    let _ = rustix::fs::syncfs(fs::File::open(dir).unwrap());
}

/// What is on the disk itself.
fn read_from_disk(path: &Path) -> Option<Vec<u8>> {
    let file = fs::File::open(path).ok()?;
    let _ = rustix::fs::syncfs(&file);
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    fs::read(path).ok()
}
