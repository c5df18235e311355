//! Publishes a temporary file under the name of a file: by an exchange, a rename or a link.

use std::ffi::OsStr;

use cap_std::fs::Dir;
use rustix::{
    fs::{AtFlags, linkat, renameat},
    io::{Errno, retry_on_intr},
};

use super::{TempFile, retry_few_times, write_error};
use crate::{
    Stamp, StoreError,
    attempt::AttemptError,
    os::{Stat, exchange, remove, stat, stat_open},
    temp_name,
};

/// State of the file that had the name before.
pub(crate) enum ReplacedFile {
    /// It has the temporary name now.
    Kept(Stamp),
    /// It has the temporary name, and cannot be checked.
    Unknown(Stamp),
    Gone(Stamp),
}

impl TempFile<'_> {
    /// Gives it a temporary name, if it has none: an unnamed file cannot replace another.
    pub fn give_name(&mut self) -> Result<(), AttemptError> {
        if self.name.is_none() {
            let name = temp_name::fresh();
            self.link(name.as_ref())?;
            self.name = Some(name);
        }
        Ok(())
    }

    /// Exchanges names with the file `name`, and stays locked. The file it replaces is kept until this is dropped, so
    /// that it can be checked, and put back.
    ///
    /// Requires the lock of the folder.
    pub fn exchange(
        &mut self,
        name: &OsStr,
        expected: &Stat,
    ) -> Result<ReplacedFile, AttemptError> {
        match exchange::exchange(self.dir, name, self.name()) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return self.replace(name).map(ReplacedFile::Gone);
            }
            Err(error) if !self.has_name(name) => {
                return Err(match error {
                    // Another program removed it.
                    Errno::NOENT => AttemptError::Retry,
                    error => write_error("replace the file", error),
                });
            }
            _ => {}
        }
        // The file is published by now: an error that only hides the replaced file is no failure.
        let Ok(replaced) = retry_few_times(|| stat(self.dir, self.name())) else {
            return Ok(ReplacedFile::Unknown(self.published_stamp()));
        };
        if replaced.is_some_and(|replaced| replaced.is_same_file(expected)) {
            return Ok(ReplacedFile::Kept(self.published_stamp()));
        }
        // Another program put a file there after the last check.
        self.exchange_back(name)?;
        Err(AttemptError::Retry)
    }

    /// Undoes [`TempFile::exchange`].
    pub fn exchange_back(&mut self, name: &OsStr) -> Result<(), StoreError> {
        let undone = stat_open(&self.file)
            .and_then(|published| exchange::undo(self.dir, name, self.name(), &published));
        undone.map_err(|_| {
            // The file under the temporary name may belong to another program.
            self.name = None;
            StoreError::Unconfirmed
        })
    }

    fn name(&self) -> &OsStr {
        self.name.as_deref().expect("it has a name").as_ref()
    }

    /// Replaces the file `name`, and stays locked. Returns the published file's stamp.
    pub fn replace(&mut self, name: &OsStr) -> Result<Stamp, AttemptError> {
        match retry_on_intr(|| renameat(self.dir, self.name(), self.dir, name)) {
            Err(error) if !self.has_name(name) => {
                return Err(match error {
                    // Another program removed it.
                    Errno::NOENT => AttemptError::Retry,
                    error => write_error("replace the file", error),
                });
            }
            _ => self.name = None,
        }
        Ok(self.published_stamp())
    }

    /// True if it has this name by now. A call that failed may have been executed all the same: on a network a request
    /// that was answered too late is made twice, and the second one fails.
    fn has_name(&self, name: &OsStr) -> bool {
        let found = stat(self.dir, name).ok().flatten();
        found.zip(stat_open(&self.file).ok()).is_some_and(|(named, own)| named.is_same_file(&own))
    }

    /// Creates the file `name`, which must not exist, and stays locked. Returns its stamp.
    pub fn create(&mut self, name: &OsStr) -> Result<Stamp, AttemptError> {
        let Some(from) = self.name.take() else {
            self.link(name)?;
            return Ok(self.published_stamp());
        };
        let created = move_to_free_name(self.dir, &from, name);
        if !matches!(created, Ok(MovedBy::Rename)) {
            let _ = remove(self.dir, from.as_ref());
        }
        match created {
            Ok(_) => Ok(self.published_stamp()),
            Err(_) if self.has_name(name) => Ok(self.published_stamp()),
            Err(Errno::EXIST | Errno::NOENT) => Err(AttemptError::Retry),
            Err(error) => Err(write_error("create the file", error)),
        }
    }

    /// Returns the stamp after the name changed, which changes the times.
    fn published_stamp(&self) -> Stamp {
        stat_open(&self.file).map_or(self.stamp, |stat| stat.stamp)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn link(&self, name: &OsStr) -> Result<(), AttemptError> {
        use std::os::fd::AsRawFd;
        let unnamed = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match retry_on_intr(|| {
            linkat(rustix::fs::CWD, unnamed.as_str(), self.dir, name, AtFlags::SYMLINK_FOLLOW)
        }) {
            Ok(()) => Ok(()),
            Err(_) if self.has_name(name) => Ok(()),
            Err(Errno::EXIST) => Err(AttemptError::Retry),
            // There is no `/proc`, or no links here.
            Err(
                Errno::NOENT
                | Errno::PERM
                | Errno::ACCESS
                | Errno::OPNOTSUPP
                | Errno::NOSYS
                | Errno::INVAL
                | Errno::XDEV
                | Errno::MLINK,
            ) => Err(AttemptError::NoLink),
            Err(error) => Err(write_error("name the temporary file", error)),
        }
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "the signature is that of Linux")]
    pub(super) fn link(&self, _: &OsStr) -> Result<(), AttemptError> {
        Err(AttemptError::NoLink)
    }
}

/// Way in which a file got its name.
enum MovedBy {
    Rename,
    /// The old name is still there.
    Link,
}

/// Moves a file to a name that is free; never replaces anything. File systems without hard links often have the rename,
/// and the other way round.
fn move_to_free_name(dir: &Dir, from: &str, to: &OsStr) -> Result<MovedBy, Errno> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    match retry_on_intr(|| {
        rustix::fs::renameat_with(dir, from, dir, to, rustix::fs::RenameFlags::NOREPLACE)
    }) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        renamed => return renamed.map(|()| MovedBy::Rename),
    }
    retry_on_intr(|| linkat(dir, from, dir, to, AtFlags::empty())).map(|()| MovedBy::Link)
}
