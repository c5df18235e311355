//! A cache of line counts of listed files, valid as long as their stamps stay the same.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hash, Hasher},
    mem,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

use crate::{Call, Entry, FilePath, Stamp, Store};

/// Maximum number of counts in one of two generations. About 50 bytes each.
const GENERATION_MAX: usize = 32_768;

/// A bounded cache of line counts. A file younger than two seconds is counted each time: it may change again while its
/// times stay the same.
#[derive(Debug, Default)]
pub struct LineCounts(Mutex<Generations>);

/// Number of lines; `None` if the file is not text.
type Count = Option<u32>;

/// Hash that replaces a stamp, at a third of its size. Two stamps share one as rarely as the hardware fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StampKey(u64, u64);

impl StampKey {
    fn of(stamp: &Stamp) -> Self {
        let Stamp { device, inode, size, modified, changed } = *stamp;
        let mut bytes = [0; 56];
        for (at, number) in [device, inode, size].into_iter().enumerate() {
            bytes[at * 8..][..8].copy_from_slice(&number.to_ne_bytes());
        }
        bytes[24..40].copy_from_slice(&modified.to_ne_bytes());
        bytes[40..].copy_from_slice(&changed.to_ne_bytes());
        let hash = xxh3_128(&bytes);
        #[expect(clippy::cast_possible_truncation, reason = "its two halves")]
        Self(hash as u64, (hash >> 64) as u64)
    }
}

impl Hash for StampKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// A hasher for keys that are hashes themselves.
#[derive(Debug, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type Counts = HashMap<StampKey, Count, BuildHasherDefault<IdentityHasher>>;

/// Two generations of counts. A count found in the old one moves to the young one, which becomes the old one when full.
#[derive(Debug, Default)]
struct Generations {
    young: Counts,
    old: Counts,
}

impl LineCounts {
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts the lines of each listed file, whose name is its path from the root; `None` for one that is too large,
    /// not text, or cannot be read. Use [`Call::check`] afterwards to learn if the time ran out.
    pub fn count(&self, store: &dyn Store, entries: &[Entry], call: &Call) -> Vec<Option<usize>> {
        let keys: Vec<_> = entries.iter().map(|entry| StampKey::of(&entry.stamp)).collect();
        let cached = self.find(&keys);
        let mut buffer = Vec::new();
        let count = |(entry, cached): (&Entry, Option<Count>)| match cached {
            Some(cached) => cached.and_then(|count| usize::try_from(count).ok()),
            None => self.read_and_count(store, entry, &mut buffer, call),
        };
        entries.iter().zip(cached).map(count).collect()
    }

    fn read_and_count(
        &self,
        store: &dyn Store,
        entry: &Entry,
        buffer: &mut Vec<u8>,
        call: &Call,
    ) -> Option<usize> {
        let at = FilePath::below(Path::new(&entry.name)).ok()?;
        let stamp = store.read_listed(&at, buffer, call).ok()??;
        let count = count_lines(buffer);
        if stamp.is_settled(SystemTime::now()) {
            self.insert(&stamp, count);
        }
        count
    }

    fn find(&self, keys: &[StampKey]) -> Vec<Option<Count>> {
        let mut generations = self.generations();
        keys.iter().map(|&key| generations.find(key)).collect()
    }

    fn insert(&self, stamp: &Stamp, count: Option<usize>) {
        // A file with more lines than fit into `u32` is too rare to be worth caching.
        if let Ok(count) = count.map(u32::try_from).transpose() {
            self.generations().insert(StampKey::of(stamp), count);
        }
    }

    fn generations(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn find(&mut self, key: StampKey) -> Option<Count> {
        if let Some(&count) = self.young.get(&key) {
            return Some(count);
        }
        let count = self.old.remove(&key)?;
        self.insert(key, count);
        Some(count)
    }

    fn insert(&mut self, key: StampKey, count: Count) {
        if self.young.len() >= GENERATION_MAX {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, count);
    }
}

/// Counts lines; `None` if the bytes are not text. A byte order mark is not part of the first line.
fn count_lines(bytes: &[u8]) -> Option<usize> {
    if memchr::memchr(0, bytes).is_some() {
        return None;
    }
    let text = simdutf8::basic::from_utf8(bytes).ok()?;
    Some(text::lines::count(text.strip_prefix('\u{feff}').unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DirPath, MemoryStore};
    use std::{
        ops::ControlFlow,
        time::{Duration, Instant},
    };

    #[test]
    fn lines_of_bytes() {
        let check = |bytes: &[u8], lines| assert_eq!(count_lines(bytes), lines, "{bytes:?}");
        check(b"", Some(0));
        check(b"\n", Some(1));
        check(b"a\nb", Some(2));
        check("\u{feff}".as_bytes(), Some(0));
        check("\u{feff}ä\n".as_bytes(), Some(1));
        check(b"a\0b\n", None);
        check(b"\xff\n", None);
    }

    #[test]
    fn every_part_of_a_stamp_counts() {
        let same = Stamp { device: 1, inode: 2, size: 3, modified: 4, changed: 5 };
        assert_eq!(StampKey::of(&same), StampKey::of(&same.clone()));
        for other in [
            Stamp { device: 6, ..same },
            Stamp { inode: 6, ..same },
            Stamp { size: 6, ..same },
            Stamp { modified: 6, ..same },
            Stamp { changed: 6, ..same },
            Stamp { changed: -5, ..same },
        ] {
            assert_ne!(StampKey::of(&same), StampKey::of(&other), "{other:?}");
        }
    }

    #[test]
    fn a_key_is_its_own_hash() {
        use std::hash::BuildHasher as _;
        let hasher = BuildHasherDefault::<IdentityHasher>::default();
        assert_eq!(hasher.hash_one(StampKey(7, 8)), 7);
        assert_ne!(hasher.hash_one("a"), hasher.hash_one("b"));
    }

    #[test]
    fn a_count_is_kept_while_the_stamp_is_the_same() {
        let (store, counts) = (MemoryStore::new(10), LineCounts::new());
        let call = Call::until(Instant::now() + Duration::from_secs(10));
        let at = FilePath::flat("a").unwrap();
        let count = || {
            let mut count = None;
            store
                .list(&DirPath::root(), &call, &mut |entry| {
                    count = counts.count(&store, &[entry], &call)[0];
                    ControlFlow::Continue(())
                })
                .unwrap();
            count
        };
        let cached = || counts.0.lock().unwrap().young.len();
        store.put(&at, "one\ntwo\n");
        assert_eq!((count(), cached()), (Some(2), 1));
        assert_eq!((count(), cached()), (Some(2), 1));
        store.put(&at, "one\n");
        assert_eq!((count(), cached()), (Some(1), 2));
        store.put(&at, "far too long");
        assert_eq!((count(), cached()), (None, 2), "what was not read is not kept");
    }

    #[test]
    fn old_counts_are_dropped_and_used_ones_stay() {
        let counts = LineCounts::new();
        let stamp = |inode: usize| Stamp { inode: inode as u64, ..Stamp::MISSING };
        for inode in 0..GENERATION_MAX * 3 {
            counts.insert(&stamp(inode), Some(inode));
            assert_eq!(counts.find(&[StampKey::of(&stamp(0))]), [Some(Some(0))], "{inode}");
        }
        let generations = counts.0.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 2 * GENERATION_MAX);
    }
}
