//! The only crate that touches the OS file system.
//!
//! Everything is done through a [`Store`]: read a file, list a folder, or run a [`Store::update`], which reads, lets
//! the caller change the bytes in memory and publishes the result whole or not at all. [`DiskStore`] keeps files on
//! disk; [`MemoryStore`] and [`FaultyStore`] replace it in tests. A path can only be made by [`Root`], and an
//! [`Updater`] adds the caller's own error type to an update.
//!
//! The crate is synchronous and knows nothing of text beyond counting lines, nor of protocols. Messages contain no file
//! names: the caller has them.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod attempt;
mod call;
mod disk;
mod faulty_store;
mod folder_names;
mod hash;
mod line_counts;
mod line_index;
mod lock;
pub mod machine;
mod memory;
pub mod probe;
mod resolve;
mod root;
mod sandbox;
mod store;
mod sweep;
mod target;
mod temp_name;
pub mod tree;
mod updater;
pub mod usage;
mod walk;

#[cfg(all(test, unix))]
#[path = "../tests/all/common/not_checked.rs"]
mod not_checked;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as os;
#[cfg(windows)]
use windows as os;

use std::{borrow::Cow, io};

pub use attempt::Durability;
pub use call::{Call, Cancel};
pub use disk::{DiskOptions, DiskStore};
pub use faulty_store::{FaultyStore, Step};
pub use hash::{Hash, HashError};
pub use line_counts::LineCounts;
pub use lock::wait as wait_for_lock;
pub use memory::MemoryStore;
pub use root::{DirPath, FilePath, PathError, Root};
pub use sandbox::{Access, AllowedService, HostForm, Sandbox};
pub use store::{
    Change, Decide, Durable, Entry, Excerpt, Interference, Saved, Stamp, Stop, Store, Version,
};
pub use updater::{MissingFolders, UpdateError, Updater};

/// An error of a store. Every file is as it was, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("permission denied{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Denied { reason: Option<Cow<'static, str>> },
    /// A FIFO, socket or device.
    #[error("not a regular file")]
    NotRegular,
    #[error("a folder")]
    IsFolder,
    /// The folder of the file is missing.
    #[error("the folder does not exist")]
    NoFolder,
    /// Sizes are in bytes.
    #[error("{size} bytes exceed the maximum of {max}")]
    TooLarge { size: u64, max: u64 },
    /// Two paths of one update are one file, and the changes to it disagree.
    #[error("two of the paths are the same file")]
    SameFile,
    /// `holder` is the process that holds the lock, where the system tells.
    #[error("failed to acquire file lock within timeout")]
    LockTimeout { holder: Option<u32> },
    /// The deadline passed before publishing began.
    #[error("operation timed out")]
    TimedOut,
    /// The caller cancelled the call before publishing began.
    #[error("operation cancelled")]
    Cancelled,
    /// The server is stopping, and the call was waiting for a lock.
    #[error("the server is stopping")]
    Stopping,
    /// Locks do not work here. Editing without one could lose edits, so it is refused.
    #[error("the file system ({file_system}) has no working file locks")]
    NoLocks { file_system: String },
    #[error("no space left on device")]
    DiskFull,
    #[error("read-only file system")]
    ReadOnly,
    /// The file is not the one that the caller has seen; `current` is the hash of the present one.
    #[error("{why}")]
    Stale { why: &'static str, current: Option<Hash> },
    /// The store was asked to save, and did not confirm or deny that it did.
    #[error("the outcome is unknown")]
    Unconfirmed,
    /// The closure of an update gave up; its caller knows the reason.
    #[error("the change was given up")]
    Stopped,
    /// The new version could not be written.
    #[error("cannot {doing}: {source}")]
    Write { doing: &'static str, source: io::Error },
    #[error("cannot {doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
}

impl StoreError {
    pub(crate) const fn denied(reason: &'static str) -> Self {
        Self::Denied { reason: Some(Cow::Borrowed(reason)) }
    }

    /// Classifies an OS error; `doing` names the failed action if no other variant fits.
    pub(crate) fn from_os(doing: &'static str, source: io::Error) -> Self {
        use io::ErrorKind;
        match source.kind() {
            // cap-std creates this error itself, without an OS code, when a path leaves the root.
            ErrorKind::PermissionDenied if source.raw_os_error().is_none() => {
                Self::denied("the path leads outside the root")
            }
            ErrorKind::PermissionDenied => Self::Denied { reason: None },
            _ if os::is_link_loop(&source) => Self::denied("too many links"),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Self::DiskFull
            }
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Io { doing, source },
        }
    }

    /// Classifies an OS error about a new version that is not published yet.
    pub(crate) fn from_os_write(doing: &'static str, source: io::Error) -> Self {
        match Self::from_os(doing, source) {
            Self::Io { doing, source } => Self::Write { doing, source },
            other => other,
        }
    }

    /// Returns [`StoreError::from_os`] as a closure for `map_err`.
    pub(crate) fn when<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::from_os(doing, source.into())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn errors_of_the_system_are_sorted() {
        let check = |source: io::Error, expected: &str| {
            assert_eq!(StoreError::from_os("look", source).to_string(), expected);
        };
        check(Errno::ACCESS.into(), "permission denied");
        // Only cap-std creates an error without an OS code.
        let outside = io::ErrorKind::PermissionDenied.into();
        check(outside, "permission denied: the path leads outside the root");
        check(Errno::LOOP.into(), "permission denied: too many links");
        for full in [Errno::NOSPC, Errno::DQUOT, Errno::FBIG] {
            check(full.into(), "no space left on device");
        }
        check(Errno::ROFS.into(), "read-only file system");
        check(io::Error::other("odd"), "cannot look: odd");
    }
}
