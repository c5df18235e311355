//! Those who do not call: who change files without a lock, and who fill the disk.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_remount};

use super::scene::{Scene, count};
use crate::chance::Chance;
use crate::server::HANG;

/// How long a moment is waited for in which nobody writes: only then a disk becomes read-only.
const QUIET: Duration = Duration::from_secs(1);

/// Files that are nobody else's come, change and go.
pub fn change_files(scene: &Scene, chance: &mut Chance) {
    let at = scene.root.join("theirs.txt");
    for _ in 0..20 {
        // On a disk that is full or read-only, they cannot either.
        let text = "theirs\n".repeat(usize::try_from(chance.below(2000)).unwrap());
        let _ = if chance.below(2) == 0 {
            fs::write(&at, text)
        } else {
            let new = scene.root.with_extension("new");
            fs::write(&new, text).and_then(|()| fs::rename(&new, &at))
        };
        std::thread::sleep(chance.duration(Duration::from_millis(20)));
    }
}

/// For a moment the disk is full, or read-only.
pub fn break_disk(scene: &Scene, chance: &mut Chance) {
    std::thread::sleep(Duration::from_millis(500) + chance.duration(Duration::from_secs(3)));
    let Some(mount) = scene.mount() else { return };
    let moment = chance.duration(Duration::from_millis(200));
    let _fault = scene.weather.storm();
    if chance.below(2) == 0 {
        fill(scene, mount, moment);
    } else {
        forbid_writing(scene, mount, moment);
    }
}

fn fill(scene: &Scene, mount: &Path, moment: Duration) {
    let filler = mount.join("filler");
    let zeros = vec![0; 1 << 20];
    let end = fs::File::create(&filler).and_then(|mut file| {
        loop {
            file.write_all(&zeros)?;
        }
    });
    match end {
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            count(&scene.full);
            std::thread::sleep(moment);
        }
        Err(error) => scene.bad(format!("the disk cannot be filled: {error}")),
        Ok(()) => {}
    }
    if let Err(error) = fs::remove_file(&filler) {
        scene.bad(format!("the disk stays full: {error}"));
    }
}

fn forbid_writing(scene: &Scene, mount: &Path, moment: Duration) {
    match repeat(QUIET, || mount_remount(mount, MountFlags::RDONLY, c"")) {
        Ok(()) => count(&scene.read_only),
        // Somebody had a file open for writing, every time.
        Err(Errno::BUSY) => return,
        Err(error) => return scene.bad(format!("the disk cannot be made read-only: {error}")),
    }
    std::thread::sleep(moment);
    // It must be writable again, whatever comes.
    if let Err(error) = repeat(HANG, || mount_remount(mount, MountFlags::empty(), c"")) {
        scene.bad(format!("the disk stays read-only: {error}"));
    }
}

/// Until it is done, or for so long.
fn repeat<T>(patience: Duration, act: impl Fn() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    let until = Instant::now() + patience;
    loop {
        match act() {
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            done => return done,
        }
    }
}
