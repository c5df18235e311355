//! `cargo bench -p files`: what the store does on a disk, without anything around it.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]
#![allow(clippy::wildcard_imports, reason = "modules are only groups of names here")]

use std::fs;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use files::{
    Call, Change, DirPath, DiskOptions, DiskStore, Durability, Entry, FilePath, Hash, LineCounts,
    Root, Store, Version,
};
use tempfile::TempDir;

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;
const SIZES: [usize; 4] = [KB, 100 * KB, MB, 10 * MB];
const FOLDERS: [usize; 2] = [100, 1000];

fn main() {
    // Enough for a hundred samples of most; flags have the last word.
    divan::Divan::default().max_time(Duration::from_secs(1)).config_with_args().main();
}

/// A folder of its own, and a store for it.
struct Place {
    folder: TempDir,
    store: DiskStore,
}

impl Place {
    fn new(durability: Durability) -> Self {
        // A disk, even where other temporary folders are memory.
        let folder = tempfile::tempdir_in(if cfg!(unix) { "/var/tmp" } else { "." }).unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let store = DiskStore::open(root, DiskOptions { max_size: 100 << 20, durability });
        Self { folder, store }
    }

    fn with_file(durability: Durability, size: usize) -> (Self, FilePath) {
        let place = Self::new(durability);
        fs::write(place.folder.path().join("file.rs"), text(size)).unwrap();
        (place, FilePath::flat("file.rs").unwrap())
    }

    fn with_files(count: usize) -> Self {
        let place = Self::new(Durability::None);
        for number in 0..count {
            fs::write(place.folder.path().join(format!("file_{number}.rs")), text(400)).unwrap();
        }
        place
    }

    fn list(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut keep = |entry| {
            entries.push(entry);
            ControlFlow::Continue(())
        };
        self.store.list(&DirPath::root(), &call(), &mut keep).unwrap();
        entries
    }

    fn count_lines(&self, counts: &LineCounts, entries: &[Entry]) -> usize {
        counts.count(&self.store, entries, &call()).into_iter().flatten().sum()
    }
}

fn text(size: usize) -> Vec<u8> {
    b"let total = input.len() + 12345; // as before\n".iter().copied().cycle().take(size).collect()
}

fn call() -> Call {
    Call::until(Instant::now() + Duration::from_mins(1))
}

#[divan::bench(args = SIZES)]
fn read(bencher: Bencher, size: usize) {
    let (place, path) = Place::with_file(Durability::None, size);
    bencher.counter(BytesCount::new(size)).bench(|| place.store.read(&path, &call()).unwrap());
}

#[divan::bench(args = SIZES)]
fn hash(bencher: Bencher, size: usize) {
    let text = text(size);
    bencher.counter(BytesCount::new(size)).bench(|| Hash::of(black_box(&text)));
}

/// A file replaced, from the lock to the new name; a byte of it is another each time.
mod update {
    use super::*;

    fn bench(bencher: Bencher, durability: Durability, size: usize) {
        let (place, path) = Place::with_file(durability, size);
        let paths = [path];
        bencher.counter(BytesCount::new(size)).bench(|| {
            let mut change = |versions: &[Option<Version>]| {
                let mut bytes = versions[0].as_ref().unwrap().bytes.to_vec();
                bytes[0] = if bytes[0] == b'l' { b'L' } else { b'l' };
                Ok(vec![Change::write(bytes)])
            };
            place.store.update(&paths, &call(), &mut change).unwrap()
        });
    }

    #[divan::bench(args = SIZES)]
    fn without_a_sync(bencher: Bencher, size: usize) {
        bench(bencher, Durability::None, size);
    }

    #[divan::bench(args = SIZES)]
    fn with_the_text_synced(bencher: Bencher, size: usize) {
        bench(bencher, Durability::Data, size);
    }

    #[divan::bench(args = SIZES)]
    fn with_the_folder_synced_too(bencher: Bencher, size: usize) {
        bench(bencher, Durability::Full, size);
    }

    /// The change has nothing to change.
    #[divan::bench(args = SIZES)]
    fn of_nothing(bencher: Bencher, size: usize) {
        let (place, path) = Place::with_file(Durability::None, size);
        let paths = [path];
        let count = BytesCount::new(size);
        bencher.counter(count).bench(|| {
            place.store.update(&paths, &call(), &mut |_| Ok(vec![Change::Keep])).unwrap()
        });
    }
}

/// A folder of files of 400 bytes.
mod folder {
    use super::*;

    #[divan::bench(args = FOLDERS)]
    fn list(bencher: Bencher, count: usize) {
        let place = Place::with_files(count);
        bencher.counter(ItemsCount::new(count)).bench(|| place.list());
    }

    #[divan::bench(args = FOLDERS)]
    fn count_lines_for_the_first_time(bencher: Bencher, count: usize) {
        let place = Place::with_files(count);
        let entries = place.list();
        bencher
            .counter(ItemsCount::new(count))
            .bench(|| place.count_lines(&LineCounts::new(), black_box(&entries)));
    }

    #[divan::bench(args = FOLDERS)]
    fn count_lines_again(bencher: Bencher, count: usize) {
        let place = Place::with_files(count);
        // A count is not remembered while the file is new.
        std::thread::sleep(Duration::from_millis(2500));
        let (counts, entries) = (LineCounts::new(), place.list());
        place.count_lines(&counts, &entries);
        bencher
            .counter(ItemsCount::new(count))
            .bench(|| place.count_lines(&counts, black_box(&entries)));
    }

    #[divan::bench(args = FOLDERS)]
    fn walk(bencher: Bencher, count: usize) {
        let place = Place::with_files(count);
        bencher.counter(ItemsCount::new(count)).bench(|| {
            let mut found = 0;
            let mut keep = |_| {
                found += 1;
                ControlFlow::Continue(())
            };
            place.store.walk("", &call(), &mut keep).unwrap();
            found
        });
    }
}
