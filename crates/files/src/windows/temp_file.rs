//! The temporary file: a new version written beside the file that it will replace, and published under its name. It
//! always has a temporary name here, and is not shared until it is published.

use std::{ffi::OsStr, fs::File, io, io::Write, thread, time::Duration};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};

use super::{BUSY, FileLock, Stat};
use crate::{
    Durability, Stamp, StoreError,
    attempt::{AttemptError, TempKind},
    temp_name,
};

/// Number of tries of the rename and pause between them: a virus scanner may hold a file for a moment.
const RENAME_TRIES_MAX: u32 = 50;
const RENAME_PAUSE: Duration = Duration::from_millis(4);

pub(crate) struct TempFile<'d> {
    dir: &'d Dir,
    /// Open file until it is published, so that no sweep removes it.
    file: Option<File>,
    /// Temporary name. Removed on drop.
    name: Option<String>,
}

impl<'d> TempFile<'d> {
    /// Writes `bytes` to a new file. The folder decides who may read it, as it did for the original.
    pub fn write(
        dir: &'d Dir,
        bytes: &[u8],
        _: Option<(&FileLock, &Stat)>,
        _: TempKind,
    ) -> Result<Self, AttemptError> {
        let name = temp_name::fresh();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).share_mode(0);
        let file = super::open(dir, name.as_ref(), &mut options)
            .map_err(StoreError::when("create a temporary file"))?
            .ok_or(AttemptError::Retry)?;
        let temp = Self { dir, file: Some(file), name: Some(name) };
        if let Some(mut file) = temp.file.as_ref() {
            file.write_all(bytes).map_err(|error| StoreError::from_os_write("write", error))?;
            let size = super::stat_open(file)
                .map_err(StoreError::when("look at the temporary file"))?
                .stamp
                .size;
            if size != bytes.len() as u64 {
                let source = io::Error::other("the temporary file has the wrong size");
                return Err(StoreError::Write { doing: "write", source }.into());
            }
        }
        Ok(temp)
    }

    /// Makes the bytes durable.
    pub fn sync(&self, durability: Durability) -> Result<(), AttemptError> {
        match &self.file {
            Some(file) if durability != Durability::None => {
                file.sync_data().map_err(|error| StoreError::from_os_write("sync", error).into())
            }
            _ => Ok(()),
        }
    }

    #[expect(clippy::unused_self, reason = "the signature is that of Unix")]
    pub fn is_on(&self, _: Option<u64>) -> bool {
        false
    }

    /// Does nothing: a name needs no sync of its own here.
    #[expect(clippy::unused_self, reason = "the signature is that of Unix")]
    #[expect(clippy::unnecessary_wraps, reason = "the signature is that of Unix")]
    pub fn sync_name(&self) -> io::Result<()> {
        Ok(())
    }

    /// Does nothing: it has a name from the start.
    pub fn give_name(&mut self) -> Result<(), AttemptError> {
        Ok(())
    }

    /// Returns nothing: no attributes are copied here, so none are lost.
    #[expect(clippy::unused_self, reason = "the signature is that of Unix")]
    pub fn lost_attributes(&self) -> Vec<&'static str> {
        Vec::new()
    }

    #[expect(clippy::unused_self, reason = "the signature is that of Unix")]
    pub fn drops_privileges(&self) -> bool {
        false
    }

    /// Replaces the file `name`. Returns the published file's stamp.
    pub fn replace(&mut self, name: &OsStr) -> Result<Stamp, AttemptError> {
        // A file that is opened without sharing cannot be renamed.
        self.file = None;
        let from = self.name.take().ok_or(AttemptError::Retry)?;
        let mut renamed = self.dir.rename(&from, self.dir, name);
        for _ in 0..RENAME_TRIES_MAX {
            match &renamed {
                Err(error) if error.raw_os_error().is_some_and(|code| BUSY.contains(&code)) => {
                    thread::sleep(RENAME_PAUSE);
                    renamed = self.dir.rename(&from, self.dir, name);
                }
                _ => break,
            }
        }
        match renamed {
            Ok(()) => {}
            Err(error) => {
                self.name = Some(from);
                return Err(match error.kind() {
                    io::ErrorKind::NotFound => AttemptError::Retry,
                    _ => StoreError::from_os_write("replace the file", error).into(),
                });
            }
        }
        Ok(super::stat(self.dir, name).ok().flatten().map_or(Stamp::MISSING, |stat| stat.stamp))
    }

    /// Replaces the file, since files cannot be exchanged here.
    pub fn exchange(&mut self, name: &OsStr, _: &Stat) -> Result<ReplacedFile, AttemptError> {
        self.replace(name).map(ReplacedFile::Gone)
    }

    #[expect(clippy::unused_self, reason = "the signature is that of Unix")]
    pub fn exchange_back(&mut self, _: &OsStr) -> Result<(), StoreError> {
        Err(StoreError::Unconfirmed)
    }

    /// Creates the file `name`, which must not exist: the lock keeps other servers away, and a check just before finds
    /// the files of other programs. Returns its stamp.
    pub fn create(&mut self, name: &OsStr) -> Result<Stamp, AttemptError> {
        if super::stat(self.dir, name).map_err(StoreError::when("look at the file"))?.is_some() {
            return Err(AttemptError::Retry);
        }
        self.replace(name)
    }
}

/// State of the file that had the name before.
pub(crate) enum ReplacedFile {
    #[expect(dead_code, reason = "files cannot be exchanged here")]
    Kept(Stamp),
    #[expect(dead_code, reason = "files cannot be exchanged here")]
    Unknown(Stamp),
    Gone(Stamp),
}

impl TempFile<'_> {
    /// Removes the temporary file. True if nothing is left.
    pub fn clean_up(mut self) -> bool {
        self.remove()
    }

    fn remove(&mut self) -> bool {
        self.file = None;
        self.name.take().is_none_or(|name| self.dir.remove_file_or_symlink(name).is_ok())
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}
