//! Those who do not call: who change files without a lock, and who fill the disk.

use std::fs;
use std::time::Duration;

use rustix::mount::MountFlags;

use super::scene::{Scene, count};
use crate::chance::Chance;

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
    count(&scene.faults);
    if chance.below(2) == 0 {
        let filler = mount.join("filler");
        let zeros = vec![0; 1 << 20];
        if let Ok(mut file) = fs::File::create(&filler) {
            while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
        }
        std::thread::sleep(moment);
        let _ = fs::remove_file(&filler);
    } else if rustix::mount::mount_remount(mount, MountFlags::RDONLY, c"").is_ok() {
        std::thread::sleep(moment);
        // It must be writable again, whatever comes.
        while rustix::mount::mount_remount(mount, MountFlags::empty(), c"").is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
