//! Replaces files: the last steps of an update. A failure before step 6 leaves the file as it was.
//!
//! 1. **Lock** the file itself with an exclusive `flock`. It is polled, so that it can be cancelled and leaves no
//!    thread behind. Then check that the path still leads to the locked file: after a rename, waiters hold a lock on a
//!    file that has no name any more.
//! 2. **Read** the file. If fewer bytes come than its size says, the edit is refused: an edit of half a text would lose
//!    the other half. If another program has the file open for writing, the edit waits up to 200 ms for it.
//! 3. **Write** the new text to an unnamed temporary file in the same folder, mode 0600, and give it the owner,
//!    extended attributes and mode of the old file. Setuid, setgid and capabilities are dropped. Compare its size with
//!    what was meant.
//! 4. **Sync and name** it: sync (`--durability`), then link it under a hidden name. Where the file system may have no
//!    journal, the other way round: ext4 without one keeps a link count of 0 on the disk, and loses the file in a power
//!    cut.
//! 5. **Protect and check**: lock the folder, take a read lease on the old file, and look at folder and file once more.
//!    If another program changed either, start over on what is there now. Where the times of the file cannot show a
//!    change, its bytes are compared.
//! 6. **Exchange** the two names (`renameat2`). The old file is now under the temporary name: if it is not the one that
//!    was read, or the lease shows a program waiting to write into it, the names are exchanged back and the edit starts
//!    over.
//! 7. **Remove** the old file, sync the folder (`full`), and look at the lease a last time before it is released.
//!
//! Two servers and another program: both servers could find a foreign file after their exchange, and each could undo
//! the other's exchange back. The folder lock, which only servers take and only for steps 5 to 7, prevents that. If a
//! foreign rename comes between the exchange and the exchange back, the newest foreign file stays (`unix::exchange`).
//!
//! Where the system has no leases or no exchange (macOS, Windows, network file systems, files of another user), a plain
//! rename takes the place of step 6, and the old file, still open, is looked at once more: bytes that were written into
//! it meanwhile are put back and the edit starts over.
//!
//! A new file is linked without replacing, so that of two creators exactly one creates. Readers take no lock and see a
//! whole version, old or new. A process killed between steps 4 and 7 leaves a hidden `.fe-*.tmp`. The next write in
//! that folder removes it: the folder's times show whether anyone else has been there since.

use std::{io, sync::atomic::Ordering, time::Instant};

use super::{DiskStore, QUICK_SYNC_MAX};
use crate::{
    Call, Change, Durability, Durable, Interference, Saved, Stamp, StoreError,
    attempt::{AttemptError, TempKind, WriterWait},
    os::{self, FolderLock, ReplacedFile, TempFile},
    resolve::{ResolvedPath, open_folder},
    target::{Target, WriteProtection},
};

/// A file of an update, with its new version.
struct PublishedFile<'t, 'r> {
    target: &'t Target<'r>,
    temp: Option<TempFile<'t>>,
    protection: WriteProtection<'t>,
    outcome: PublishOutcome,
    /// The file as it is now.
    stamp: Stamp,
    /// True if another program changed the file during the update, and its change is lost.
    contested: bool,
}

/// Way to replace a file by its new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replacement {
    /// Exchange the two names. Requires the lock of the folder.
    Exchange,
    /// Rename the new version over the old file.
    Rename,
}

/// Change that publishing made to the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PublishOutcome {
    Unchanged,
    Exchanged,
    /// The old file is gone, or there was none.
    Renamed,
    Removed,
}

impl DiskStore {
    /// Writes the new versions, checks the files a last time, and publishes. Published files stay locked until all are.
    pub(super) fn save(
        &self,
        targets: &[Target<'_>],
        call: &Call,
        temp_kind: TempKind,
        writer_wait: WriterWait,
    ) -> Result<Vec<Saved>, AttemptError> {
        let mut temps = targets
            .iter()
            .map(|target| self.write_temp(target, temp_kind))
            .collect::<Result<Vec<_>, _>>()?;
        let folder = |target: &Target<'_>| os::stamp_of_folder(&target.path.folder);
        let folders: Vec<_> = targets.iter().map(folder).collect();
        for (target, temp) in targets.iter().zip(&mut temps) {
            if target.change != Change::Keep {
                target.check_unmoved(self.root.dir())?;
            }
            if let Some(temp) = temp {
                self.sync(target, temp)?;
            }
        }
        let locks = lock_folders(targets)?;
        let replacement = if locks.is_some() { Replacement::Exchange } else { Replacement::Rename };
        let protections = targets
            .iter()
            .map(|target| target.protect(writer_wait))
            .collect::<Result<Vec<_>, _>>()?;
        if targets.iter().any(|target| target.change != Change::Keep) {
            for target in targets {
                target.check_unchanged()?;
            }
            // The last check of the call: nothing stops it after this. It makes no system call, so the last check of
            // the file still is the last step before publishing.
            call.check()?;
        }

        let mut published = Vec::with_capacity(targets.len());
        for ((target, temp), protection) in targets.iter().zip(temps).zip(protections) {
            match self.publish(target, temp, protection, replacement) {
                Ok(one) => published.push(one),
                Err(reason) => {
                    // The update must not run again while a file stays published.
                    let is_undone = self.undo(&mut published) == published.len();
                    return Err(if is_undone { reason } else { StoreError::Unconfirmed.into() });
                }
            }
        }
        let max = self.options.max_size;
        if published.iter().any(|file| file.has_late_write(max)) {
            match self.undo(&mut published) {
                0 => published.iter_mut().for_each(|file| {
                    file.contested |= file.has_late_write(max);
                }),
                undone if undone == published.len() => return Err(AttemptError::Retry),
                _ => return Err(StoreError::Unconfirmed.into()),
            }
        }
        drop(locks);

        let finished = published.into_iter().map(|file| self.finish(file));
        let (saved, are_clean): (Vec<_>, Vec<_>) = finished.unzip();
        for ((target, before), is_clean) in targets.iter().zip(&folders).zip(are_clean) {
            let ResolvedPath { folder, parent, .. } = &target.path;
            // A temporary file that could not be removed is left to the next sweep.
            if is_clean {
                self.swept_folders.record_own_change(folder, parent, before.as_ref());
            }
        }
        Ok(saved)
    }

    pub(super) fn write_temp<'t>(
        &self,
        target: &'t Target<'_>,
        temp_kind: TempKind,
    ) -> Result<Option<TempFile<'t>>, AttemptError> {
        let Change::Write(bytes) = &target.change else { return Ok(None) };
        let folder = &*target.path.folder;
        self.swept_folders.sweep(folder, &target.path.parent);
        TempFile::write(folder, bytes, target.original(), temp_kind).map(Some)
    }

    /// Makes a new version durable, and gives it a temporary name to be renamed from if it replaces a file.
    fn sync(&self, target: &Target<'_>, temp: &mut TempFile<'_>) -> Result<(), AttemptError> {
        if target.stat.is_none() {
            return self.sync_bytes(temp);
        }
        if temp.is_on(self.journaled_device) {
            self.sync_bytes(temp)?;
            return temp.give_name();
        }
        // The link count has to be on the disk before the rename is. See `unix/journal.rs`.
        temp.give_name()?;
        self.sync_bytes(temp)
    }

    fn sync_bytes(&self, temp: &TempFile<'_>) -> Result<(), AttemptError> {
        let began = Instant::now();
        temp.sync(self.options.durability)?;
        self.syncs_slowly.store(began.elapsed() > QUICK_SYNC_MAX, Ordering::Relaxed);
        Ok(())
    }

    fn publish<'t, 'r>(
        &self,
        target: &'t Target<'r>,
        mut temp: Option<TempFile<'t>>,
        protection: WriteProtection<'t>,
        replacement: Replacement,
    ) -> Result<PublishedFile<'t, 'r>, AttemptError> {
        let ResolvedPath { folder, name, .. } = &target.path;
        let mut contested = false;
        let (outcome, stamp) = match (&mut temp, &target.stat) {
            (Some(temp), Some(stat)) if replacement == Replacement::Exchange => {
                match temp.exchange(name, stat)? {
                    ReplacedFile::Kept(stamp) => (PublishOutcome::Exchanged, stamp),
                    ReplacedFile::Unknown(stamp) => {
                        contested = true;
                        (PublishOutcome::Exchanged, stamp)
                    }
                    ReplacedFile::Gone(stamp) => {
                        contested = self.restore_late_write(target, stamp)?;
                        (PublishOutcome::Renamed, stamp)
                    }
                }
            }
            (Some(temp), Some(_)) => {
                let stamp = temp.replace(name)?;
                contested = self.restore_late_write(target, stamp)?;
                (PublishOutcome::Renamed, stamp)
            }
            (Some(temp), None) => (PublishOutcome::Renamed, temp.create(name)?),
            (None, Some(_)) if target.change == Change::Remove => {
                os::remove(folder, name).map_err(StoreError::when("remove the file"))?;
                (PublishOutcome::Removed, Stamp::MISSING)
            }
            (None, stat) => {
                (PublishOutcome::Unchanged, stat.as_ref().map_or(Stamp::MISSING, |stat| stat.stamp))
            }
        };
        Ok(PublishedFile { target, temp, protection, outcome, stamp, contested })
    }

    /// Restores, after a rename, what another program wrote into the old file since the last check, and starts over.
    /// True if that is impossible, false if nothing was written.
    fn restore_late_write(
        &self,
        target: &Target<'_>,
        published: Stamp,
    ) -> Result<bool, AttemptError> {
        match target.late_write(self.options.max_size) {
            Ok(None) => Ok(false),
            // Fewer bytes than there were are not restored: a program that emptied the file to fill it again will write
            // into the one that is gone, and then everything would be lost.
            Ok(Some(bytes))
                if bytes.len() as u64 >= target.size()
                    && self.restore(target, published, Some(&bytes)).is_ok() =>
            {
                Err(AttemptError::Retry)
            }
            _ => Ok(true),
        }
    }

    /// Undoes publishing, last file first, except for files changed since. Returns how many files are as they were.
    fn undo(&self, published: &mut [PublishedFile<'_, '_>]) -> usize {
        let undone = published.iter_mut().rev().filter_map(|file| {
            let PublishedFile { target, temp, outcome, stamp, .. } = file;
            let bytes = target.version.as_ref().map(|version| version.bytes.as_slice());
            match (outcome, temp) {
                (PublishOutcome::Unchanged, _) => Some(()),
                (PublishOutcome::Exchanged, Some(temp)) => {
                    check_untouched(target, *stamp).ok()?;
                    temp.exchange_back(&target.path.name).ok()
                }
                _ => self.restore(target, *stamp, bytes).ok(),
            }
        });
        undone.count()
    }

    /// Restores a file that was published just now; `None` removes it. Fails if the file was changed since.
    fn restore(
        &self,
        target: &Target<'_>,
        published: Stamp,
        bytes: Option<&[u8]>,
    ) -> Result<(), AttemptError> {
        check_untouched(target, published)?;
        let ResolvedPath { folder, name, .. } = &target.path;
        let Some(bytes) = bytes else {
            return os::remove(folder, name)
                .map_err(|error| StoreError::from_os_write("remove the file", error).into());
        };
        let mut temp = TempFile::write(folder, bytes, target.original(), TempKind::Named)?;
        temp.sync(self.options.durability)?;
        match target.change {
            Change::Remove => temp.create(name),
            _ => temp.replace(name),
        }
        .map(drop)
    }

    /// Completes publishing: syncs and removes the temporary file. Returns the outcome, and true if that file is gone.
    fn finish(&self, file: PublishedFile<'_, '_>) -> (Saved, bool) {
        let PublishedFile { target, temp, protection, outcome, stamp, contested } = file;
        if outcome == PublishOutcome::Unchanged {
            return (Saved::kept(stamp), true);
        }
        let lost = temp.as_ref().map_or_else(Vec::new, TempFile::lost_attributes);
        let drops_privileges = temp.as_ref().is_some_and(TempFile::drops_privileges);
        let is_full = self.options.durability == Durability::Full;
        let is_created = target.stat.is_none();
        let is_name_synced = match &temp {
            Some(temp) if is_full && is_created && !temp.is_on(self.journaled_device) => {
                temp.sync_name().is_ok()
            }
            _ => true,
        };
        // Removes the old file with the temporary name, which it has by now.
        let is_clean = temp.is_none_or(TempFile::clean_up);
        let durable = match is_full {
            false => Durable::No,
            true if is_name_synced && self.sync_folders(target).is_ok() => Durable::Yes,
            // The change is visible to all programs, so this is no failure.
            true => Durable::Unknown,
        };
        // A program that had found the file before it was replaced may open it only now. The lease shows it, too late
        // to undo anything.
        let is_replaced = target.stat.is_some();
        let is_contested = contested || (is_replaced && protection.is_broken());
        let saved = Saved {
            created: target.stat.is_none(),
            stamp,
            durable,
            links: target.stat.as_ref().map_or(0, |stat| stat.links.saturating_sub(1)),
            lost,
            drops_privileges,
            interference: match protection {
                _ if is_contested => Interference::Contested,
                WriteProtection::OpenElsewhere => Interference::OpenElsewhere,
                WriteProtection::Lease(_) | WriteProtection::None => Interference::None,
            },
            restyled: None,
        };
        (saved, is_clean)
    }

    /// Syncs the folder, which makes a file's name durable. For a new file also its parents: the folder may be new
    /// itself.
    fn sync_folders(&self, target: &Target<'_>) -> io::Result<()> {
        os::sync_dir(&target.path.folder)?;
        let parents = target.path.parent.ancestors().skip(1);
        parents.take_while(|_| target.stat.is_none()).try_for_each(|parent| {
            let parent = open_folder(self.root.dir(), parent).map_err(io::Error::other)?;
            os::sync_dir(&parent)
        })
    }
}

impl PublishedFile<'_, '_> {
    /// True if another program wrote into the old file after the last look, or waits to do so.
    fn has_late_write(&self, max: u64) -> bool {
        self.outcome == PublishOutcome::Exchanged
            && match &self.protection {
                WriteProtection::Lease(_) => self.protection.is_broken(),
                WriteProtection::OpenElsewhere | WriteProtection::None => {
                    self.target.has_late_write(max)
                }
            }
    }
}

/// Fails with [`AttemptError::Retry`] if a published file is no longer what it was then.
fn check_untouched(target: &Target<'_>, published: Stamp) -> Result<(), AttemptError> {
    let ResolvedPath { folder, name, .. } = &target.path;
    let now = os::stat(folder, name).map_err(StoreError::when("look at the file"))?;
    if now.map_or(Stamp::MISSING, |stat| stat.stamp) == published {
        Ok(())
    } else {
        Err(AttemptError::Retry)
    }
}

/// Locks the folders in which files are replaced. `None` if a lock is not available: then nothing is exchanged.
fn lock_folders(targets: &[Target<'_>]) -> Result<Option<Vec<FolderLock>>, StoreError> {
    let is_replaced = |target: &&Target<'_>| target.stat.is_some() && target.change != Change::Keep;
    if !targets.iter().filter(is_replaced).all(Target::can_exchange) {
        return Ok(None);
    }
    let folders = targets.iter().filter(is_replaced).map(|target| &*target.path.folder);
    if targets.len() == 1 {
        return Ok(folders.map(FolderLock::acquire).collect());
    }
    let identify = |folder| Ok((os::identity(folder)?, folder));
    let mut folders: Vec<_> = folders
        .map(identify)
        .collect::<io::Result<_>>()
        .map_err(StoreError::when("look at the folder"))?;
    // All servers lock in the same order, so that no two wait for each other.
    folders.sort_unstable_by_key(|(identity, _)| *identity);
    folders.dedup_by_key(|(identity, _)| *identity);
    Ok(folders.into_iter().map(|(_, folder)| FolderLock::acquire(folder)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiskOptions, FilePath, Root, target::lock_all};
    use std::{fs, path::Path, sync::Arc, time::Duration};

    fn store(dir: &Path) -> DiskStore {
        let options = DiskOptions { max_size: 100, durability: Durability::Full };
        DiskStore::open(Arc::new(Root::open(dir).unwrap()), options)
    }

    fn call() -> Call {
        Call::until(Instant::now() + Duration::from_secs(10))
    }

    /// Locks and reads the files, and sets their changes.
    fn prepared<'s>(store: &'s DiskStore, changes: &[(&str, Change)]) -> Vec<Target<'s>> {
        let paths: Vec<_> = changes.iter().map(|(name, _)| FilePath::flat(name).unwrap()).collect();
        let (mut targets, _) = store.find_targets(&paths).ok().unwrap();
        lock_all(&mut targets, &call()).unwrap();
        for (target, (_, change)) in targets.iter_mut().zip(changes) {
            target.load(100, WriterWait::Wait).ok().unwrap();
            target.set_change(change.clone(), 100).unwrap();
        }
        targets
    }

    /// Publishes the new version of a file after running `meanwhile`, which comes after the last check.
    fn publish<'t, 's>(
        store: &DiskStore,
        target: &'t Target<'s>,
        replacement: Replacement,
        meanwhile: impl FnOnce(),
    ) -> Result<PublishedFile<'t, 's>, AttemptError> {
        let mut temp = store.write_temp(target, store.temp_kind())?;
        if let (Some(temp), Some(_)) = (&mut temp, &target.stat) {
            temp.give_name()?;
        }
        meanwhile();
        store.publish(target, temp, WriteProtection::None, replacement)
    }

    /// Later steps cannot be made to fail at will, so the undo is run by itself.
    #[test]
    fn files_already_published_are_put_back() {
        for replacement in [Replacement::Rename, Replacement::Exchange] {
            let dir = tempfile::tempdir().unwrap();
            for name in ["edited", "removed", "kept", "touched"] {
                fs::write(dir.path().join(name), "old").unwrap();
            }
            let store = store(dir.path());
            let write = || Change::write(b"new");
            let targets = prepared(
                &store,
                &[
                    ("edited", write()),
                    ("removed", Change::Remove),
                    ("kept", Change::Keep),
                    ("touched", write()),
                    ("created", write()),
                ],
            );
            let publish = |target| publish(&store, target, replacement, || {}).ok().unwrap();
            let mut published: Vec<_> = targets.iter().map(publish).collect();
            fs::write(dir.path().join("touched"), "by others").unwrap();
            assert_eq!(store.undo(&mut published), 4);
            drop(published);
            let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
            assert_eq!(
                ["edited", "removed", "kept", "touched"].map(text),
                ["old", "old", "old", "by others"]
            );
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4);
        }
    }

    /// A write between the last check and the rename cannot be timed at will, so that step is run by itself.
    #[cfg(unix)]
    #[test]
    fn bytes_written_into_a_file_as_it_is_renamed_over_are_put_back_or_told() {
        for (theirs, left, is_told) in [
            ("old", "new", false),
            ("old, and more", "old, and more", false),
            ("odd", "odd", false),
            // Emptied to be filled again: the writer has another file open now.
            ("", "new", true),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a");
            fs::write(&path, "old").unwrap();
            let store = store(dir.path());
            let targets = prepared(&store, &[("a", Change::write(b"new"))]);
            let outcome = publish(&store, &targets[0], Replacement::Rename, || {
                if theirs != "old" {
                    fs::write(&path, theirs).unwrap();
                }
            });
            assert_eq!(fs::read_to_string(&path).unwrap(), left);
            match outcome {
                Ok(published) => assert_eq!((published.contested, left), (is_told, "new")),
                Err(reason) => assert!(matches!(reason, AttemptError::Retry) && left == theirs),
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_exchange_loses_nothing_that_comes_after_the_last_look() {
        for by_rename in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a");
            fs::write(&path, "old").unwrap();
            let store = store(dir.path());
            let targets = prepared(&store, &[("a", Change::write(b"new"))]);
            let outcome = publish(&store, &targets[0], Replacement::Exchange, || {
                if by_rename {
                    fs::write(dir.path().join("b"), "theirs").unwrap();
                    fs::rename(dir.path().join("b"), &path).unwrap();
                } else {
                    fs::write(&path, "theirs").unwrap();
                }
            });
            if by_rename {
                assert!(matches!(outcome, Err(AttemptError::Retry)));
            } else {
                let mut published = [outcome.ok().unwrap()];
                assert!(published[0].has_late_write(100));
                assert_eq!(store.undo(&mut published), 1);
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        }
    }
}
