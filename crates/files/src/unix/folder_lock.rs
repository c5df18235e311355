//! A lock on a folder that a server holds for the few system calls in which it replaces files there.
//!
//! Replacing a file by an exchange may have to be undone, if another program put a file there in that very moment. The
//! undo is safe only while no other server exchanges files of the same folder. See `disk/publish.rs`.

use std::{
    os::fd::OwnedFd,
    thread,
    time::{Duration, Instant},
};

use cap_std::fs::Dir;
use rustix::{
    fs::{FlockOperation, flock},
    io::{Errno, retry_on_intr},
};

use super::reopen;

/// Longest wait for the lock. Servers hold it for microseconds, but another program may hold it for as long as it
/// likes.
const WAIT_MAX: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_micros(100);

/// The lock of a folder. Released on drop.
pub(crate) struct FolderLock {
    _folder: OwnedFd,
}

impl FolderLock {
    /// Locks a folder. `None` if another program keeps the lock, or the file system has none.
    pub fn acquire(folder: &Dir) -> Option<Self> {
        let folder = reopen(folder).ok()?;
        let mut limit = None;
        loop {
            match retry_on_intr(|| flock(&folder, FlockOperation::NonBlockingLockExclusive)) {
                Ok(()) => return Some(Self { _folder: folder }),
                Err(Errno::WOULDBLOCK) => {}
                Err(_) => return None,
            }
            if Instant::now() > *limit.get_or_insert_with(|| Instant::now() + WAIT_MAX) {
                return None;
            }
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_at_a_time_holds_the_lock_of_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(dir.path(), cap_std::ambient_authority()).unwrap();
        let held = FolderLock::acquire(&folder);
        assert!(held.is_some() && FolderLock::acquire(&folder).is_none());
        drop(held);
        assert!(FolderLock::acquire(&folder).is_some());
    }
}
