//! Update of a text in the editor, which has no lock and no conditional write, while a person may type at any time.
//!
//! An update reads, changes, and reads again just before it writes; if the text changed meanwhile, the change is made
//! again from the new text. It is written only when two reads in a row returned the same, and the last of them is the
//! last message before the write. After the write the text is read back. Any interference that is noticed is reported
//! by [`Saved::interference`].
//!
//! One gap remains: text typed between the last read and the arrival of the write is overwritten. Nothing in the
//! editor's answers shows that, so it is not noticed either.

use std::sync::Arc;

use files::{
    Call, Change, Decide, Durable, Hash, Interference, Saved, Stamp, Stop, StoreError, Version,
};

use super::{EditorFiles, buffer::BufferAccess, denied, normalize::normalized};

/// Limit of the times that a change is made again because the text had changed. A person who types without a pause must
/// not keep an update for ever, nor lose what was typed: then nothing is written.
const RERUNS_MAX: usize = 8;

const KEEPS_CHANGING: &str =
    "the file keeps changing in the editor; nothing was written, try again in a moment";

/// Update of one text.
pub(super) struct BufferUpdate<'a, E> {
    buffer: &'a BufferAccess<'a, E>,
    /// The text as it was last read.
    last_read: Option<Version>,
    /// True if another change to the text was noticed.
    is_contested: bool,
}

impl<'a, E: EditorFiles> BufferUpdate<'a, E> {
    /// Reads the text for the first time.
    pub fn begin(buffer: &'a BufferAccess<'a, E>, call: &Call) -> Result<Self, StoreError> {
        let last_read = buffer.read(call)?.map(version);
        Ok(Self { buffer, last_read, is_contested: false })
    }

    /// Runs `change` until the text holds still, and writes the result.
    pub fn run(mut self, call: &Call, change: &mut Decide<'_>) -> Result<Saved, StoreError> {
        let mut reruns = 0;
        let new = loop {
            let Some(new) = self.decide(change)? else {
                let stamp = self.last_read.as_ref().map_or(Stamp::MISSING, |version| version.stamp);
                return Ok(Saved { interference: self.interference(), ..Saved::kept(stamp) });
            };
            if self.is_unchanged(call)? {
                break new;
            }
            if reruns == RERUNS_MAX {
                let current = self.last_read.as_ref().map(|version| Hash::of(&version.bytes));
                return Err(StoreError::Stale { why: KEEPS_CHANGING, current });
            }
            reruns += 1;
        };
        call.check()?;
        // A message that was sent cannot be cancelled, so from here on only the deadline counts. It is not sent twice
        // either: when its answer is missing, it may have arrived.
        let publishing = Call::until(call.deadline);
        self.buffer.write(&new, &publishing).map_err(|error| match error {
            StoreError::TimedOut => StoreError::Unconfirmed,
            error => error,
        })?;
        Ok(self.read_back(&new, &publishing))
    }

    /// Runs `change` on the text that was last read. Returns the text to write, if any.
    fn decide(&self, change: &mut Decide<'_>) -> Result<Option<Arc<Vec<u8>>>, StoreError> {
        let versions = [self.last_read.clone()];
        let changes = change(&versions).map_err(|Stop| StoreError::Stopped)?;
        let [change] = changes.try_into().expect("one change for the one path");
        let [last_read] = versions;
        match change {
            Change::Remove if last_read.is_some() => Err(denied("an editor cannot remove files")),
            Change::Write(new) if last_read.as_ref().is_none_or(|version| version.bytes != new) => {
                self.buffer.check_size(&new)?;
                Ok(Some(new))
            }
            Change::Keep | Change::Write(_) | Change::Remove => Ok(None),
        }
    }

    /// Reads the text again. True if it is as it was last read.
    fn is_unchanged(&mut self, call: &Call) -> Result<bool, StoreError> {
        let now = self.buffer.read(call)?;
        // A write may be next, so nothing is done here that can be avoided.
        let is_unchanged = now.as_ref() == self.last_read.as_ref().map(|version| &*version.bytes);
        if !is_unchanged {
            self.last_read = now.map(version);
            self.is_contested = true;
        }
        Ok(is_unchanged)
    }

    /// Reads back the text that was written, and returns the outcome.
    fn read_back(mut self, new: &[u8], call: &Call) -> Saved {
        // The file is written, so a read that fails now is no failure; it shows no interference.
        let now = self.buffer.read_any_size(call).unwrap_or_else(|_| Some(new.to_vec()));
        let is_same = now.as_deref() == Some(new);
        let restyled = now.as_ref().filter(|now| !is_same && normalized(now) == normalized(new));
        self.is_contested |= !is_same && restyled.is_none();
        Saved {
            created: self.last_read.is_none(),
            durable: Durable::No,
            interference: self.interference(),
            restyled: restyled.map(|now| Hash::of(now)),
            ..Saved::kept(now.as_deref().map_or(Stamp::MISSING, Stamp::of_bytes))
        }
    }

    fn interference(&self) -> Interference {
        if self.is_contested { Interference::Contested } else { Interference::None }
    }
}

/// Makes a version. An editor tells nothing of a text but the text, so its stamp is a hash of it.
pub(super) fn version(bytes: Vec<u8>) -> Version {
    let stamp = Stamp::of_bytes(&bytes);
    Version { bytes: Arc::new(bytes), stamp, note: None }
}
