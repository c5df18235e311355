//! One attempt of an update: the options that it runs with, and the reasons why it ends without a result.

use std::fs::File;

use crate::{StoreError, os};

/// Durability of an acknowledged change: the failures that it survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives a killed process. A power cut may leave the file empty.
    None,
    /// A power cut leaves the old text or the new, whole, unless the file system has no journal.
    Data,
    /// A power cut leaves the new text.
    Full,
}

/// Kind of temporary file: with or without a name while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TempKind {
    Unnamed,
    Named,
}

/// State of an update's wait for another program that has a file open for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriterWait {
    Wait,
    /// The wait was long enough. The update continues, and the answer says so.
    Over,
}

impl WriterWait {
    /// Handles a program that has the file open for writing: ends the attempt unless the wait is over.
    pub fn on_writer(self) -> Result<(), AttemptError> {
        match self {
            Self::Wait => Err(AttemptError::OpenElsewhere),
            Self::Over => Ok(()),
        }
    }
}

/// Reason why an attempt ended without a result.
pub(crate) enum AttemptError {
    /// The file moved or changed: start over.
    Retry,
    /// A program has the file open for writing: start over, and continue all the same after a while.
    OpenElsewhere,
    /// An unnamed temporary file cannot be given a name here: start over with named ones.
    #[cfg_attr(windows, expect(dead_code, reason = "temporary files always have names there"))]
    NoLink,
    Failed(StoreError),
}

impl From<StoreError> for AttemptError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Reads a file to its end, whatever size it was said to have. Fails if it has more than `max` bytes.
pub(crate) fn read_whole(file: &File, size: u64, max: u64) -> Result<Vec<u8>, StoreError> {
    if size > max {
        return Err(StoreError::TooLarge { size, max });
    }
    // One byte more than expected, so that the read that finds the end needs no other buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    os::read_all(file, &mut bytes, max.saturating_add(1))
        .map_err(StoreError::when("read the file"))?;
    match bytes.len() as u64 {
        size if size > max => Err(StoreError::TooLarge { size, max }),
        _ => Ok(bytes),
    }
}
