//! The temporary file: a new version written beside the file that it will replace, and published under its name.
//!
//! On Linux it is unnamed, so that a killed process leaves nothing; it gets a temporary name only to replace a file. On
//! other systems, and where the file system has no unnamed files, it has that name from the start.

mod publish;

use std::{
    fs::File,
    io::{self, Write},
    os::fd::IntoRawFd,
};

use cap_std::fs::Dir;
use rustix::{
    fs::{Mode, OFlags, openat},
    io::{Errno, retry_on_intr},
};

use super::{
    FileLock, Stat,
    attributes::{self, CopiedAttributes, NewMode},
    file_lock, stat_open,
};
use crate::{
    Durability, Stamp, StoreError,
    attempt::{AttemptError, TempKind},
    temp_name,
};
pub(crate) use publish::ReplacedFile;

/// Mode for which only the owner may read and write.
const FIRST_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

pub(crate) struct TempFile<'d> {
    dir: &'d Dir,
    file: File,
    /// Temporary name. Removed on drop, whichever file has it by then.
    name: Option<String>,
    stamp: Stamp,
    lost: Vec<&'static str>,
    drops_privileges: bool,
}

impl<'d> TempFile<'d> {
    /// Writes `bytes` to a new file, with the attributes of `original` if there is one.
    pub fn write(
        dir: &'d Dir,
        bytes: &[u8],
        original: Option<(&FileLock, &Stat)>,
        temp_kind: TempKind,
    ) -> Result<Self, AttemptError> {
        let original = original.and_then(|(file_lock, stat)| file_lock.file().zip(Some(stat)));
        // Until the file has its own mode no other user may read it; only an access list of the folder has to be set at
        // creation.
        let new_mode = original.is_none().then(|| attributes::mode_of_new_file(dir));
        let mode = match new_mode {
            Some(NewMode::FromFolder(mode)) => mode,
            _ => FIRST_MODE,
        };
        let mut temp = Self::open(dir, mode, temp_kind)?;
        // Locked before other programs can see it: no sweep removes it, and a program that opens it once published
        // waits for us.
        if !file_lock::try_lock(&temp.file)? {
            return Err(AttemptError::Retry);
        }
        temp.file.write_all(bytes).map_err(|error| StoreError::from_os_write("write", error))?;
        let copied = original
            .map(|(file, stat)| attributes::copy(file, stat, &temp.file))
            .transpose()
            .map_err(|error| write_error("remove the access list that the folder gives", error))?;
        if let Some(NewMode::Known(mode)) = new_mode {
            temp.set_mode_of_new_file(mode)?;
        }
        temp.check(bytes.len() as u64, copied.as_ref())?;
        if let Some(copied) = copied {
            temp.lost = copied.lost;
            temp.drops_privileges = copied.was_privileged;
        }
        Ok(temp)
    }

    pub fn is_on(&self, device: Option<u64>) -> bool {
        device == Some(self.stamp.device)
    }

    /// Makes the bytes durable, and the name if the file has one.
    pub fn sync(&self, durability: Durability) -> Result<(), AttemptError> {
        match durability {
            Durability::None => self.flush(),
            // Not tried again: after a failed sync the kernel may call lost pages clean.
            Durability::Data | Durability::Full => self.file.sync_all(),
        }
        .map_err(|error| StoreError::from_os_write("sync", error).into())
    }

    /// Makes the name durable that the file got when it was published.
    pub fn sync_name(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn set_mode_of_new_file(&mut self, mode: Mode) -> Result<(), AttemptError> {
        match attributes::set_mode(&self.file, mode) {
            Ok(()) => {}
            // A file system without modes gives every file the same one. If there are modes, the file stays readable by
            // its owner alone.
            Err(error) if is_unsupported(error) => {
                if stat_open(&self.file).is_ok_and(|stat| stat.mode == FIRST_MODE) {
                    self.lost.push("mode");
                }
            }
            Err(error) => return Err(write_error("set the mode", error)),
        }
        Ok(())
    }

    /// Closes a duplicate of the file: some file systems, above all on a network, report only then that they lost the
    /// bytes.
    fn flush(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| {
            let another = rustix::io::fcntl_dupfd_cloexec(&self.file, 0)?;
            #[expect(
                unsafe_code,
                reason = "to close a file and hear how it went there is no other way"
            )]
            // SAFETY: the descriptor is our own and not used again.
            unsafe {
                rustix::io::try_close(another.into_raw_fd())
            }
        })?)
    }

    fn open(dir: &'d Dir, mode: Mode, temp_kind: TempKind) -> Result<Self, AttemptError> {
        #[cfg(target_os = "linux")]
        if temp_kind == TempKind::Unnamed {
            let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            match retry_on_intr(|| openat(dir, ".", flags, mode)) {
                Ok(file) => {
                    return Ok(Self {
                        dir,
                        file: file.into(),
                        name: None,
                        stamp: Stamp::MISSING,
                        lost: Vec::new(),
                        drops_privileges: false,
                    });
                }
                // Not supported here. EPERM is the error of ext4 for a removed folder; creating a named file returns
                // the true reason.
                Err(
                    Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS | Errno::PERM,
                ) => {}
                Err(error) => return Err(creation_error(error)),
            }
        }
        let _ = temp_kind;
        let name = temp_name::fresh();
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = retry_on_intr(|| openat(dir, name.as_str(), flags, mode)).map_err(|error| {
            if error != Errno::EXIST {
                // A call that failed may have been executed all the same.
                let _ = super::remove(dir, name.as_ref());
            }
            creation_error(error)
        })?;
        Ok(Self {
            dir,
            file: file.into(),
            name: Some(name),
            stamp: Stamp::MISSING,
            lost: Vec::new(),
            drops_privileges: false,
        })
    }

    /// Checks size and mode of the file: the system may be wrong when it says that it wrote everything.
    fn check(&mut self, size: u64, copied: Option<&CopiedAttributes>) -> Result<(), AttemptError> {
        let stat = stat_open(&self.file).map_err(StoreError::when("look at the temporary file"))?;
        if self.name.is_some() && stat.links == 0 {
            // The sweep of another server removed it between its creation and its lock.
            return Err(AttemptError::Retry);
        }
        let wrong = |what| StoreError::Write { doing: "write", source: io::Error::other(what) };
        if stat.stamp.size != size {
            return Err(wrong("the temporary file has the wrong size").into());
        }
        if let Some(CopiedAttributes { mode, mode_set, .. }) = copied
            && *mode != stat.mode
        {
            return Err(match *mode_set {
                Err(error) if !is_unsupported(error) => write_error("set the mode", error),
                _ => wrong("the mode of the file cannot be kept").into(),
            });
        }
        self.stamp = stat.stamp;
        Ok(())
    }

    /// Returns the attributes of the original that it could not be given.
    pub fn lost_attributes(&self) -> Vec<&'static str> {
        self.lost.clone()
    }

    /// True if the original ran with the rights of its owner or group, or had capabilities.
    pub fn drops_privileges(&self) -> bool {
        self.drops_privileges
    }

    /// Removes the file that has the temporary name: this one, or the one that it replaced. True if nothing is left.
    pub fn clean_up(mut self) -> bool {
        self.remove()
    }

    fn remove(&mut self) -> bool {
        let Some(name) = self.name.take() else { return true };
        retry_few_times(|| match super::remove(self.dir, name.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        })
        .is_ok()
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Repeats a failed call a few times: after a file is published nobody else will.
fn retry_few_times<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    const RETRIES_MAX: usize = 3;
    (0..RETRIES_MAX).find_map(|_| attempt().ok()).map_or_else(attempt, Ok)
}

fn creation_error(error: Errno) -> AttemptError {
    match error {
        // The folder was removed; its handle outlives it.
        Errno::NOENT => AttemptError::Failed(StoreError::NoFolder),
        // The name is used already, a chance of one in 2^64: another one will do.
        Errno::EXIST => AttemptError::Retry,
        error => write_error("create a temporary file", error),
    }
}

/// True if the error means that a file system does not support an operation, rather than that it failed.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS)
}

fn write_error(doing: &'static str, error: Errno) -> AttemptError {
    StoreError::from_os_write(doing, error.into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Creates a folder, and opens a handle of it.
    fn folder() -> (tempfile::TempDir, Dir) {
        let dir = tempfile::tempdir().unwrap();
        let handle = Dir::open_ambient_dir(dir.path(), cap_std::ambient_authority()).unwrap();
        (dir, handle)
    }

    fn temp<'d>(dir: &'d Dir, temp_kind: TempKind, bytes: &[u8]) -> TempFile<'d> {
        TempFile::write(dir, bytes, None, temp_kind).ok().expect("written")
    }

    type Act = fn(&mut TempFile<'_>) -> Result<Stamp, AttemptError>;

    fn said<T>(outcome: Result<T, AttemptError>) -> String {
        match outcome {
            Ok(_) => "done".into(),
            Err(AttemptError::Retry) => "retry".into(),
            Err(AttemptError::NoLink) => "no link".into(),
            Err(AttemptError::OpenElsewhere) => "open elsewhere".into(),
            Err(AttemptError::Failed(error)) => error.to_string(),
        }
    }

    #[test]
    fn what_was_written_must_be_what_was_meant() {
        let (_dir, handle) = folder();
        let mut temp = temp(&handle, TempKind::Named, b"three");
        assert_eq!(said(temp.check(5, None)), "done");
        let wrong = "cannot write: the temporary file has the wrong size";
        assert_eq!(said(temp.check(6, None)), wrong);

        let copied = |mode, mode_set| CopiedAttributes {
            mode,
            mode_set,
            lost: Vec::new(),
            was_privileged: false,
        };
        let (own, other) = (stat_open(&temp.file).unwrap().mode, Mode::RUSR);
        let mut check = |mode, set| said(temp.check(5, Some(&copied(mode, set))));
        assert_eq!(check(own, Ok(())), "done");
        let unkept = "cannot write: the mode of the file cannot be kept";
        for set in [Ok(()), Err(Errno::PERM), Err(Errno::OPNOTSUPP), Err(Errno::NOSYS)] {
            assert_eq!(check(other, set), unkept);
        }
        assert!(check(other, Err(Errno::IO)).starts_with("cannot set the mode: "));
    }

    /// A call that the system says failed was executed all the same.
    #[test]
    fn what_has_its_name_already_is_published() {
        for temp_kind in [TempKind::Named, TempKind::Unnamed] {
            let (dir, handle) = folder();
            let publish = |act: Act| {
                fs::write(dir.path().join("a"), "old").unwrap();
                let mut temp = temp(&handle, temp_kind, b"new");
                temp.give_name().ok().expect("named");
                let name = dir.path().join(temp.name.as_deref().unwrap());
                fs::rename(name, dir.path().join("a")).unwrap();
                assert_eq!(said(act(&mut temp)), "done");
                drop(temp);
                assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"new");
            };
            publish(|temp| temp.replace("a".as_ref()));
            publish(|temp| temp.create("a".as_ref()));
        }
        let (_dir, handle) = folder();
        let unnamed = temp(&handle, TempKind::Unnamed, b"new");
        if cfg!(target_os = "linux") && unnamed.name.is_none() {
            assert_eq!(said(unnamed.link("a".as_ref())), "done");
            assert_eq!(said(unnamed.link("a".as_ref())), "done");
        } else {
            let needs = "a file system with unnamed files";
            crate::not_checked::not_checked("names for unnamed files", needs);
        }
    }

    #[test]
    fn what_lost_its_name_is_not_published_and_leaves_nothing() {
        let acts: [Act; 2] = [|temp| temp.replace("a".as_ref()), |temp| temp.create("a".as_ref())];
        for act in acts {
            let (dir, handle) = folder();
            let mut temp = temp(&handle, TempKind::Named, b"new");
            fs::remove_file(dir.path().join(temp.name.as_deref().unwrap())).unwrap();
            assert_eq!(said(act(&mut temp)), "retry");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
        // A name that another program's file has is left to it.
        let (dir, handle) = folder();
        fs::write(dir.path().join("a"), "theirs").unwrap();
        assert_eq!(said(temp(&handle, TempKind::Named, b"new").create("a".as_ref())), "retry");
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    /// A file of `/proc` has a mode that nobody can set, and a handle for lookups is not a file's.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_mode_that_cannot_be_set_is_no_failure_and_one_that_was_not_is() {
        let (_dir, handle) = folder();
        let with = |file| {
            let (dir, name, lost) = (&handle, None, Vec::new());
            TempFile { dir, file, name, stamp: Stamp::MISSING, lost, drops_privileges: false }
        };
        let mut unchangeable = with(File::open("/proc/self/status").unwrap());
        assert_eq!(said(unchangeable.set_mode_of_new_file(FIRST_MODE)), "done");
        assert!(unchangeable.lost.is_empty());
        let handle_only = openat(&handle, ".", OFlags::PATH, Mode::empty()).unwrap();
        let failed = said(with(handle_only.into()).set_mode_of_new_file(FIRST_MODE));
        assert!(failed.starts_with("cannot set the mode: "), "{failed}");
    }
}
