//! The store on disk: opens files beneath the root, locks them, writes new versions beside them and publishes them.
//!
//! An update never touches a file in place. It locks the file, reads it, writes the new version to a temporary file in
//! the same folder, and publishes it by an exchange or a rename only when everything is ready and the file still is
//! what was read. A killed process leaves the old file or the new one. Readers take no lock: a file that they open is
//! whole.

mod publish;

use std::{
    io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use text::LineRange;

use crate::{
    Call, Decide, DirPath, Entry, Excerpt, FilePath, Root, Saved, Stamp, Stop, Store, StoreError,
    Version,
    attempt::{AttemptError, Durability, TempKind, WriterWait, read_whole},
    folder_names::FolderNames,
    line_index::{self, LineIndexCache},
    lock::Backoff,
    os::{self, FileKind, TempFile},
    resolve::{OpenFolder, resolve, retry_on_interrupt},
    sweep::SweptFolders,
    target::{Target, lock_all},
    walk,
};

#[derive(Clone, Copy, Debug)]
pub struct DiskOptions {
    /// Largest file read or written, in bytes.
    pub max_size: u64,
    pub durability: Durability,
}

/// Number of tries to make folders when a parent disappears meanwhile, since other calls that gave up a file remove
/// their folders one by one. If all fail, the path is a link to nothing, or the root is gone.
const FOLDER_TRIES_MAX: usize = 16;

#[derive(Debug)]
pub struct DiskStore {
    root: Arc<Root>,
    options: DiskOptions,
    swept_folders: SweptFolders,
    line_index_cache: LineIndexCache,
    folder_names: FolderNames,
    /// Set once unnamed temporary files turned out not to work here.
    only_named_temps: AtomicBool,
    /// The device of the root, if its file system keeps metadata in order.
    journaled_device: Option<u64>,
    /// False if the last sync of a file was a quick one.
    syncs_slowly: AtomicBool,
}

/// Duration of a quick sync, at most. To hand a call to another thread takes a few percent of that.
const QUICK_SYNC_MAX: Duration = Duration::from_millis(1);

/// Time to wait for another program that has a file open for writing: longer than saving a file in place takes. A
/// program that keeps the file open for good delays each edit of it by this.
const WRITER_WAIT_MAX: Duration = Duration::from_millis(200);

impl DiskStore {
    /// Opens the store. Must be called before the sandbox closes, since it reads `/sys` and `/proc`.
    pub fn open(root: Arc<Root>, options: DiskOptions) -> Self {
        let journaled_device = os::journaled_device(root.dir());
        Self {
            root,
            options,
            swept_folders: SweptFolders::default(),
            line_index_cache: LineIndexCache::default(),
            folder_names: FolderNames::default(),
            only_named_temps: AtomicBool::new(false),
            journaled_device,
            syncs_slowly: AtomicBool::new(options.durability != Durability::None),
        }
    }

    /// Uses named temporary files only, as on a file system that has no unnamed ones. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_named_temp_files(self) -> Self {
        self.only_named_temps.store(true, Ordering::Relaxed);
        self
    }

    /// Removes temporary files that killed servers left in the root. Other folders are swept when a file is written
    /// there.
    pub fn sweep_root(&self) {
        self.swept_folders.sweep(self.root.dir(), Path::new(""));
    }

    /// Returns the path of the same file below the root without links, so that two paths of one file become one.
    /// Refuses a path at which no file could be read or made, and one whose folder is missing.
    pub fn locate(&self, at: &FilePath) -> Result<FilePath, StoreError> {
        let resolved = resolve(self.root.dir(), at.as_path())?;
        resolved.regular_file()?;
        let parent = match resolved.folder {
            OpenFolder::Root(_) => PathBuf::new(),
            OpenFolder::Inner(_) => {
                retry_on_interrupt(|| self.root.dir().canonicalize(&resolved.parent))
                    .map_err(StoreError::when("open the folder"))?
            }
        };
        // `canonicalize` returns `.` for the root itself.
        let parent = parent.strip_prefix(".").unwrap_or(&parent);
        FilePath::below(&parent.join(&resolved.name))
            .map_err(|_| StoreError::denied("the path leads outside the root"))
    }

    /// Copies `from` to `to`, replacing it, with its mode and owner: a user who may not read the one may not read the
    /// other. Returns false, and copies nothing, if `from` does not have the `expected` bytes.
    pub fn copy(
        &self,
        from: &FilePath,
        to: &FilePath,
        expected: &[u8],
        call: &Call,
    ) -> Result<bool, StoreError> {
        let mut backoff = Backoff::new();
        loop {
            call.check()?;
            match self.try_copy(from, to, expected, call) {
                Ok(is_copied) => return Ok(is_copied),
                Err(AttemptError::Failed(error)) => return Err(error),
                Err(_) => backoff.pause(call.deadline),
            }
        }
    }

    fn try_copy(
        &self,
        from: &FilePath,
        to: &FilePath,
        expected: &[u8],
        call: &Call,
    ) -> Result<bool, AttemptError> {
        let (mut targets, _) = self.find_targets(std::slice::from_ref(from))?;
        lock_all(&mut targets, call)?;
        let Some(source) = targets.first_mut() else { return Ok(false) };
        source.load(self.options.max_size, WriterWait::Over)?;
        if source.version.as_ref().is_none_or(|version| version.bytes.as_slice() != expected) {
            return Ok(false);
        }
        let resolved = resolve(self.root.dir(), to.as_path())?;
        resolved.regular_file()?;
        let (folder, original) = (&*resolved.folder, source.original());
        let mut temp = TempFile::write(folder, expected, original, TempKind::Named)?;
        temp.sync(self.options.durability)?;
        temp.replace(&resolved.name).map(|_| true)
    }

    fn temp_kind(&self) -> TempKind {
        if self.only_named_temps.load(Ordering::Relaxed) {
            TempKind::Named
        } else {
            TempKind::Unnamed
        }
    }

    fn try_read(&self, at: &FilePath) -> Result<Option<Version>, AttemptError> {
        let resolved = match resolve(self.root.dir(), at.as_path()) {
            // A link into a folder that does not exist dangles like any other.
            Err(StoreError::NoFolder) => return Ok(None),
            resolved => resolved?,
        };
        if resolved.regular_file()?.is_none() {
            return Ok(None);
        }
        let opened = os::open_read(&resolved.folder, &resolved.name)
            .map_err(StoreError::when("open the file"))?;
        let file = opened.ok_or(AttemptError::Retry)?;
        let stat = os::stat_open(&file).map_err(StoreError::when("look at the file"))?;
        if stat.kind != FileKind::File {
            return Err(AttemptError::Retry);
        }
        let bytes = read_whole(&file, stat.stamp.size, self.options.max_size)?;
        Ok(Some(Version::new(bytes, stat.stamp)))
    }

    /// Reads a regular file of the root's own folder; `None` if it is anything else, or unusual. It was listed a moment
    /// ago, so it is opened without another check, and bytes appended meanwhile are not read.
    fn read_plain(&self, at: &FilePath, buffer: &mut Vec<u8>) -> Option<Stamp> {
        let path = at.as_path();
        if path.parent() != Some(Path::new("")) {
            return None;
        }
        let file = os::open_read(self.root.dir(), path.file_name()?).ok()??;
        let stat = os::stat_open(&file).ok()?;
        let size = stat.stamp.size;
        // Some file systems report size 0 for files that they generate when they are read.
        if stat.kind != FileKind::File || !(1..=self.options.max_size).contains(&size) {
            return None;
        }
        buffer.clear();
        buffer.reserve(usize::try_from(size).ok()?);
        os::read_all(&file, buffer, size).ok()?;
        Some(stat.stamp)
    }

    fn attempt(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
        temp_kind: TempKind,
        writer_wait: WriterWait,
    ) -> Result<Vec<Saved>, AttemptError> {
        let (mut targets, slots) = self.find_targets(at)?;
        lock_all(&mut targets, call)?;
        for target in &mut targets {
            target.load(self.options.max_size, writer_wait)?;
        }

        let versions: Vec<_> = slots.iter().map(|&slot| targets[slot].version.clone()).collect();
        let changes = change(&versions).map_err(|Stop| StoreError::Stopped)?;
        drop(versions);
        assert_eq!(changes.len(), at.len(), "one change for each path");
        for (slot, change) in slots.iter().zip(changes) {
            targets[*slot].set_change(change, self.options.max_size)?;
        }

        let saved = self.save(&targets, call, temp_kind, writer_wait)?;
        Ok(slots.into_iter().map(|slot| saved[slot].clone()).collect())
    }

    /// Finds one target for each file, and for each path the index of its target: two paths may lead to one file.
    fn find_targets(&self, at: &[FilePath]) -> Result<(Vec<Target<'_>>, Vec<usize>), AttemptError> {
        let mut targets = Vec::with_capacity(at.len());
        let mut slots = Vec::with_capacity(at.len());
        let mut keys = Vec::new();
        for path in at {
            let resolved = resolve(self.root.dir(), path.as_path())?;
            // A single path has nothing to be compared with.
            let key = (at.len() > 1).then(|| resolved.key()).transpose()?;
            let slot = keys.iter().position(|known| *known == key).unwrap_or(keys.len());
            if slot == keys.len() {
                keys.push(key);
                targets.push(Target::open(resolved)?);
            }
            slots.push(slot);
        }
        Ok((targets, slots))
    }
}

impl Store for DiskStore {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        let mut backoff = Backoff::new();
        loop {
            call.check()?;
            match self.try_read(at) {
                Ok(version) => return Ok(version),
                Err(AttemptError::Failed(error)) => return Err(error),
                Err(_) => backoff.pause(call.deadline),
            }
        }
    }

    fn read_listed(
        &self,
        at: &FilePath,
        buffer: &mut Vec<u8>,
        call: &Call,
    ) -> Result<Option<Stamp>, StoreError> {
        call.check()?;
        if let Some(stamp) = self.read_plain(at, buffer) {
            return Ok(Some(stamp));
        }
        Ok(self.read(at, call)?.map(|version| version.move_into(buffer)))
    }

    fn size(&self, at: &FilePath) -> Option<u64> {
        let resolved = resolve(self.root.dir(), at.as_path()).ok()?;
        resolved.regular_file().ok()?.map(|stat| stat.stamp.size)
    }

    fn waits_for_disk(&self) -> bool {
        self.syncs_slowly.load(Ordering::Relaxed)
    }

    fn excerpt(&self, at: &FilePath, lines: LineRange, call: &Call) -> Option<Excerpt> {
        let resolved = resolve(self.root.dir(), at.as_path()).ok()?;
        // Most files are too small to be worth opening for an excerpt.
        if resolved.regular_file().ok()??.stamp.size < line_index::LARGE_FILE_MIN {
            return None;
        }
        let file = os::open_read(&resolved.folder, &resolved.name).ok()??;
        self.line_index_cache.excerpt(&file, self.options.max_size, lines, call)
    }

    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        walk::list(self.root.dir(), at, &self.folder_names, call, each)
    }

    fn walk(
        &self,
        after: &str,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        walk::walk(self.root.dir(), after, call, each)
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        let mut temp_kind = self.temp_kind();
        let mut backoff = Backoff::new();
        let mut writer_wait = WriterWait::Wait;
        let mut wait_until = None;
        loop {
            call.check()?;
            match self.attempt(at, call, change, temp_kind, writer_wait) {
                Ok(saved) => {
                    // Remembered only once named temporary files proved to work where unnamed ones did not.
                    if temp_kind != self.temp_kind() {
                        self.only_named_temps.store(true, Ordering::Relaxed);
                    }
                    return Ok(saved);
                }
                Err(AttemptError::Failed(error)) => return Err(error),
                Err(AttemptError::NoLink) if temp_kind == TempKind::Unnamed => {
                    temp_kind = TempKind::Named;
                }
                Err(AttemptError::Retry | AttemptError::NoLink) => backoff.pause(call.deadline),
                Err(AttemptError::OpenElsewhere) => {
                    let now = Instant::now();
                    if now > *wait_until.get_or_insert(now + WRITER_WAIT_MAX) {
                        writer_wait = WriterWait::Over;
                    }
                    backoff.pause(call.deadline);
                }
            }
        }
    }

    fn make_folders(&self, folder: &DirPath, call: &Call) -> Result<Vec<DirPath>, StoreError> {
        for _ in 0..FOLDER_TRIES_MAX {
            let mut made = Vec::new();
            let outcome = folder.with_parents().try_for_each(|folder| {
                call.check()?;
                if self.make_folder(&folder)? {
                    made.push(folder);
                }
                Ok(())
            });
            let Err(reason) = outcome else { return Ok(made) };
            self.remove_folders(&made);
            if let AttemptError::Failed(error) = reason {
                return Err(error);
            }
        }
        Err(StoreError::NoFolder)
    }

    fn remove_folders(&self, made: &[DirPath]) {
        for folder in made.iter().rev() {
            let _ = retry_on_interrupt(|| self.root.dir().remove_dir(folder.as_path()));
        }
    }
}

impl DiskStore {
    /// Makes `folder`. Returns false if it was there already.
    fn make_folder(&self, folder: &DirPath) -> Result<bool, AttemptError> {
        let (root, path) = (self.root.dir(), folder.as_path());
        match retry_on_interrupt(|| root.create_dir(path)) {
            Ok(()) => {}
            // Something that is not a folder may be there; a caller that opens it will find out.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(AttemptError::Retry);
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(StoreError::NoFolder.into());
            }
            Err(error) => return Err(StoreError::from_os_write("make the folder", error).into()),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::{self, File},
        time::{Duration, SystemTime},
    };

    #[test]
    fn a_file_of_the_root_is_read_at_once_and_others_are_left_to_a_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("folder/folder")).unwrap();
        for (name, contents) in [("a", "root's"), ("folder/a", "folder's"), ("empty", "")] {
            fs::write(dir.path().join(name), contents).unwrap();
        }
        let root = Arc::new(Root::open(dir.path()).unwrap());
        let store =
            DiskStore::open(root, DiskOptions { max_size: 8, durability: Durability::None });
        let read = |name: &str, buffer: &mut Vec<u8>| {
            store.read_plain(&FilePath::below(Path::new(name)).unwrap(), buffer)
        };
        let mut buffer = b"before".to_vec();
        assert_eq!(read("a", &mut buffer).unwrap().size, 6);
        assert_eq!(buffer, b"root's");
        for other in ["folder/a", "folder", "empty", "missing"] {
            assert_eq!(read(other, &mut buffer), None, "{other}");
        }
        fs::write(dir.path().join("a"), "nine byte").unwrap();
        assert_eq!(read("a", &mut buffer), None);
    }

    #[test]
    fn a_file_larger_than_it_said_is_too_large() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"12345").unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let read = read_whole(&file, 0, 4);
        assert!(matches!(read, Err(StoreError::TooLarge { size: 5, max: 4 })), "{read:?}");
        io::Seek::rewind(&mut file).unwrap();
        assert_eq!(read_whole(&file, 0, 5).unwrap(), b"12345");
    }

    /// A program that saves a file in place empties it first.
    #[test]
    fn a_file_that_was_emptied_just_now_is_given_a_moment() {
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(dir.path().join("a")).unwrap();
        let root = Arc::new(Root::open(dir.path()).unwrap());
        let store =
            DiskStore::open(root, DiskOptions { max_size: 8, durability: Durability::None });
        let path = FilePath::below(Path::new("a")).unwrap();
        let load_at = |modified: SystemTime| {
            file.set_modified(modified).unwrap();
            let (mut targets, _) = store.find_targets(std::slice::from_ref(&path))?;
            targets[0].load(8, WriterWait::Over)
        };
        // The check itself may take longer than that moment.
        let is_given = || matches!(load_at(SystemTime::now()), Err(AttemptError::Retry));
        assert!((0..1000).any(|_| is_given()));
        assert!(load_at(SystemTime::now() - Duration::from_mins(1)).is_ok());
    }
}
