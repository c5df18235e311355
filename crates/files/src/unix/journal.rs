//! Detects journals: file systems that keep a link and the rename that follows it in order after a power cut.
//!
//! With a journal a temporary file may be synced before it has a name: the link reaches the disk no later than the
//! rename does. ext4 without a journal writes the two in any order. Then a power cut may leave the new file in the
//! folder with a link count of 0, and repair removes it.

use cap_std::fs::Dir;

/// Returns the device of a folder if its file system surely has a journal or does without one by copying on write. Must
/// be called before the sandbox closes: it reads `/sys` and `/proc`.
#[cfg(target_os = "linux")]
pub(crate) fn journaled_device(dir: &Dir) -> Option<u64> {
    let stat = rustix::fs::fstat(dir).ok()?;
    let has_journal = match super::file_system(dir).as_str() {
        "xfs" | "btrfs" | "zfs" | "tmpfs" => true,
        "ext4" => has_ext4_journal(stat.st_dev).unwrap_or(false),
        _ => false,
    };
    has_journal.then_some(stat.st_dev)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn journaled_device(_: &Dir) -> Option<u64> {
    None
}

#[cfg(target_os = "linux")]
fn has_ext4_journal(device: u64) -> Option<bool> {
    use std::fs;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    // A link whose last part is the name of the device.
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let name = link.file_name()?.to_str()?;
    let options = fs::read_to_string(format!("/proc/fs/ext4/{name}/options")).ok()?;
    // Option that relates data to the journal; without a journal it is missing.
    Some(options.lines().any(|option| option.starts_with("data=")))
}
