//! The kernel's lock table, which shows the process that holds the lock of a file. Linux only.

use std::{fs::File, sync::OnceLock};

use rustix::fs::{major, minor};

use super::stat_open;
use crate::usage::read_from_start;

/// Opens the table on the first call: inside the sandbox it can be read, but not opened.
pub(crate) fn table() -> Option<&'static File> {
    static TABLE: OnceLock<Option<File>> = OnceLock::new();
    TABLE.get_or_init(|| File::open("/proc/locks").ok()).as_ref()
}

/// Returns the process that holds the `flock` of the file. `None` if it is in another container, on another machine or
/// this process itself.
pub(super) fn holder(file: &File) -> Option<u32> {
    let stamp = stat_open(file).ok()?.stamp;
    let table = read_from_start(table()?)?;
    find(&table, stamp.device, stamp.inode).filter(|process| *process != std::process::id())
}

/// Finds the holder of a lock in the table. A line is `12: FLOCK  ADVISORY  WRITE 4242 fd:01:1234 0 EOF`. One with an
/// arrow after the number is for a process that waits.
fn find(table: &str, device: u64, inode: u64) -> Option<u32> {
    let file_id = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    table.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        if words.next() != Some("FLOCK") {
            return None;
        }
        let (process, at) = (words.nth(2)?, words.next()?);
        // A process that the table cannot name is 0 or -1.
        (at == file_id).then(|| process.parse().ok()).flatten().filter(|process| *process > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::makedev;

    #[test]
    fn the_holder_of_a_lock_is_told_from_those_who_wait_and_from_other_locks() {
        let table = "\
            1: POSIX  ADVISORY  WRITE 11 fd:01:7 0 EOF\n\
            2: FLOCK  ADVISORY  WRITE 12 fd:01:8 0 EOF\n\
            3: FLOCK  ADVISORY  READ  13 fd:01:7 0 EOF\n\
            3: -> FLOCK  ADVISORY  WRITE 14 fd:01:7 0 EOF\n\
            4: FLOCK  ADVISORY  WRITE 0 fd:01:9 0 EOF\n\
            5: FLOCK  ADVISORY  WRITE -1 fd:01:10 0 EOF\n\
            6: LEASE  ACTIVE    READ  15 fd:01:11 0 EOF\n";
        let find = |minor, inode| find(table, makedev(0xfd, minor), inode);
        assert_eq!(
            [7, 8, 9, 10, 11].map(|inode| find(1, inode)),
            [Some(13), Some(12), None, None, None]
        );
        assert_eq!(find(2, 7), None);
    }
}
