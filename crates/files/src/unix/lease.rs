//! Read leases: show that another program has a file open for writing, and delay one that opens it later.
//!
//! Linux grants a read lease only while no program has the file open for writing or mapped writable. As long as the
//! lease is held, a program that opens the file for writing waits, and the holder can see that it does.

use std::fs::File;

/// Command number from linux/fcntl.h, which the crate `libc` does not have.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;

/// Programs that can write into a file without opening it first.
pub(crate) enum Writers<'f> {
    /// No program can, as long as the lease is held.
    None(Lease<'f>),
    Present,
    /// The system does not tell: the file belongs to another user, or the file system has no leases.
    Unknown,
}

/// A read lease of a file. Released on drop.
pub(crate) struct Lease<'f> {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has leases"))]
    file: &'f File,
}

#[cfg(not(target_os = "linux"))]
pub(super) fn are_known_to_work(_: &File) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub(super) fn writers(_: &File) -> Writers<'_> {
    Writers::Unknown
}

#[cfg(not(target_os = "linux"))]
impl Lease<'_> {
    pub fn is_broken(&self) -> bool {
        false
    }
}

/// True if leases are reliable on the file's file system. Network file systems answer as if every file had a writer.
#[cfg(target_os = "linux")]
pub(super) fn are_known_to_work(file: &File) -> bool {
    super::is_local_file_system(file)
}

/// Takes a lease, or reports that another program has the file open for writing. The file must be open for reading
/// only: its own descriptor would count as a writer.
#[cfg(target_os = "linux")]
pub(super) fn writers(file: &File) -> Writers<'_> {
    // The signal that reports a waiting program must be one that is ignored by default: SIGIO would end this process.
    // Releasing a lease resets it, so it is set before each one.
    let taken = fcntl(file, F_SETSIG, libc::SIGURG)
        .and_then(|_| fcntl(file, libc::F_SETLEASE, libc::F_RDLCK));
    match taken {
        Ok(_) => Writers::None(Lease { file }),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Writers::Present,
        Err(_) => Writers::Unknown,
    }
}

#[cfg(target_os = "linux")]
impl Lease<'_> {
    /// True if a program waits to open the file for writing. What it writes goes to this file, whatever name the file
    /// has by then.
    pub fn is_broken(&self) -> bool {
        // An unknown state counts as broken: then the file is put back, and the update made again.
        fcntl(self.file, libc::F_GETLEASE, 0).ok() != Some(libc::F_RDLCK)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // A lease that cannot be released ends when the file is closed.
        let _ = fcntl(self.file, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

#[cfg(target_os = "linux")]
fn fcntl(file: &File, command: libc::c_int, argument: libc::c_int) -> std::io::Result<i32> {
    use std::os::fd::AsRawFd as _;
    #[expect(unsafe_code, reason = "rustix has no leases")]
    // SAFETY: these commands take a number and give one; the descriptor is open for as long as the file is borrowed.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
        -1 => Err(std::io::Error::last_os_error()),
        result => Ok(result),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::not_checked::not_checked;
    use std::{fs, thread, time::Duration};

    #[test]
    fn a_writer_is_seen_whether_it_was_there_before_or_comes_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "text").unwrap();
        let file = File::open(&path).unwrap();
        if !are_known_to_work(&file) {
            return not_checked("leases", "a local file system");
        }
        let another = File::options().append(true).open(&path).unwrap();
        assert!(matches!(writers(&file), Writers::Present));
        drop(another);
        let Writers::None(lease) = writers(&file) else { panic!("a closed file has a writer") };
        assert!(!lease.is_broken());
        assert_eq!(fs::read(&path).unwrap(), b"text");
        thread::scope(|scope| {
            let opened = scope.spawn(|| File::options().append(true).open(&path).unwrap());
            while !lease.is_broken() {
                thread::sleep(Duration::from_millis(1));
            }
            assert!(!opened.is_finished());
            drop(lease);
            opened.join().unwrap();
        });
        // A later lease on the same descriptor does not end the process either when it is broken.
        let Writers::None(lease) = writers(&file) else { panic!("a closed file has a writer") };
        thread::scope(|scope| {
            let opened = scope.spawn(|| File::options().append(true).open(&path).unwrap());
            while !lease.is_broken() {
                thread::sleep(Duration::from_millis(1));
            }
            drop(lease);
            opened.join().unwrap();
        });
    }
}
