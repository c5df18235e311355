//! The change that a call would make to its files: the contents to be shown, and the digest to be compared.

use std::sync::Arc;

use files::{Change, FilePath, Root, Version};
use sha2::{Digest as _, Sha256};

use crate::Prepared;

/// The change of one file that a call made, or would make. A move is two of them: a removal and a creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file as asked for.
    pub path: String,
    /// The file as it was; `None` if there was none.
    pub before: Option<Arc<Vec<u8>>>,
    /// The file as it becomes; `None` if it is removed.
    pub after: Option<Arc<Vec<u8>>>,
}

impl FileChange {
    /// Returns the changes of an update, in its order, without files that stay as they are.
    pub(super) fn of_update(
        at: &[FilePath],
        versions: &[Option<Version>],
        changes: &[Change],
        names: &TargetNames,
    ) -> Vec<Self> {
        let of_file = |((at, before), change): ((&FilePath, &Option<Version>), &Change)| {
            let before = before.as_ref().map(|version| Arc::clone(&version.bytes));
            let after = match change {
                Change::Keep => before.clone(),
                Change::Write(bytes) => Some(Arc::clone(bytes)),
                Change::Remove => None,
            };
            (before != after).then(|| Self { path: names.of(at), before, after })
        };
        at.iter().zip(versions).zip(changes).filter_map(of_file).collect()
    }

    /// Returns the size of both contents, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.before.iter().chain(&self.after).map(|bytes| bytes.len()).sum()
    }
}

/// A change as it was shown: digests of all its files, which cannot be forged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeDigest(Vec<FileDigest>);

/// Digests of one file. Both sides are equal if the file stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileDigest {
    path: Digest,
    /// `None` if there was no file.
    before: Option<Digest>,
    /// `None` if there is no file afterwards.
    after: Option<Digest>,
}

type Digest = [u8; 32];

fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

impl ChangeDigest {
    /// The digest of a call that updates nothing.
    pub(super) const NOTHING: Self = Self(Vec::new());

    /// Returns the digest of files that stay as they are.
    pub(super) fn of_versions(at: &[FilePath], versions: &[Option<Version>]) -> Self {
        let of_file = |(at, version): (&FilePath, &Option<Version>)| {
            let before = version.as_ref().map(|version| digest(&version.bytes));
            FileDigest { path: digest(at.to_string().as_bytes()), before, after: before }
        };
        Self(at.iter().zip(versions).map(of_file).collect())
    }

    /// Returns the digest of files that stayed as they were, with the changes that are made to them.
    pub(super) fn with_changes(mut self, versions: &[Option<Version>], changes: &[Change]) -> Self {
        for ((file, before), change) in self.0.iter_mut().zip(versions).zip(changes) {
            let is_same =
                |new: &Arc<Vec<u8>>| before.as_ref().is_some_and(|before| before.bytes == *new);
            match change {
                Change::Write(bytes) if !is_same(bytes) => file.after = Some(digest(bytes)),
                Change::Write(_) | Change::Keep => {}
                Change::Remove => file.after = None,
            }
        }
        self
    }

    /// Returns the index of the first file that is not as it was when the change was shown; `None` if all are.
    pub(super) fn first_changed_since(&self, now: &Self) -> Option<usize> {
        let is_shown = |(index, now): (usize, &FileDigest)| {
            self.0
                .get(index)
                .is_none_or(|shown| (shown.path, shown.before) == (now.path, now.before))
        };
        now.0.iter().enumerate().position(|file| !is_shown(file))
    }

    /// True if an update makes the change that was shown, or none.
    pub(super) fn allows(&self, update: &Self) -> bool {
        update == self || update.0.iter().all(|file| file.before == file.after)
    }

    /// Encodes the digests as bytes, which the client keeps.
    pub fn to_bytes(&self) -> Vec<u8> {
        let side = |digest: &Option<Digest>| match digest {
            Some(digest) => [&[1], digest.as_slice()].concat(),
            None => vec![0],
        };
        let file = |file: &FileDigest| {
            [file.path.to_vec(), side(&file.before), side(&file.after)].concat()
        };
        self.0.iter().flat_map(file).collect()
    }

    /// Decodes what [`ChangeDigest::to_bytes`] made.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut files = Vec::new();
        while !bytes.is_empty() {
            let (path, rest) = bytes.split_first_chunk()?;
            bytes = rest;
            let (before, after) = (read_side(&mut bytes)?, read_side(&mut bytes)?);
            files.push(FileDigest { path: *path, before, after });
        }
        Some(Self(files))
    }
}

/// Takes one side of a file from the front of `bytes`.
#[expect(
    clippy::option_option,
    reason = "the outer one is about the bytes, the inner one about the file"
)]
fn read_side(bytes: &mut &[u8]) -> Option<Option<Digest>> {
    let (&flag, rest) = bytes.split_first()?;
    let (digest, rest) = match flag {
        0 => (None, rest),
        1 => rest.split_first_chunk().map(|(digest, rest)| (Some(*digest), rest))?,
        _ => return None,
    };
    *bytes = rest;
    Some(digest)
}

/// The files of a call by the names that its caller used.
pub(super) struct TargetNames(Vec<(FilePath, String)>);

impl TargetNames {
    pub fn new(call: &Prepared, root: &Root) -> Self {
        let named = |target: &String| Some((call.locate(root, target)?, target.clone()));
        Self(call.targets.iter().filter_map(named).collect())
    }

    /// Returns the file as asked for; the path from the root for a file that the call does not name.
    pub fn of(&self, at: &FilePath) -> String {
        let named = self.0.iter().find(|(path, _)| path == at);
        named.map_or_else(|| at.shown(), |(_, name)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_comes_back_from_bytes() {
        let sides = [None, Some([1; 32]), Some([2; 32])];
        let files = sides.iter().flat_map(|before| {
            sides.map(|after| FileDigest { path: [3; 32], before: *before, after })
        });
        let files: Vec<_> = files.collect();
        for count in 0..=files.len() {
            let shown = ChangeDigest(files[..count].to_vec());
            let bytes = shown.to_bytes();
            assert_eq!(ChangeDigest::from_bytes(&[&bytes[..], &[0]].concat()), None);
            if count > 0 {
                assert_eq!(ChangeDigest::from_bytes(&bytes[1..]), None);
            }
            assert_eq!(ChangeDigest::from_bytes(&bytes), Some(shown));
        }
        assert_eq!(ChangeDigest::from_bytes(&[[0; 32].as_slice(), &[2, 0]].concat()), None);
    }
}
