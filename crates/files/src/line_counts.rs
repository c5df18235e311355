//! How many lines a listed file has, remembered as long as its stamp stays the same.

use std::{
    collections::HashMap,
    mem,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use crate::{Call, Entry, FilePath, Stamp, Store};

/// Counts kept before the older half is dropped. About 100 bytes each.
const GENERATION: usize = 32_768;

/// A bounded cache of line counts. A file younger than two seconds is counted each time: it may change again without
/// its times telling.
#[derive(Debug, Default)]
pub struct LineCounts(Mutex<Generations>);

/// `None`: not text.
#[derive(Clone, Copy, Debug)]
struct Count(Option<usize>);

/// What is found in the old generation moves to the young one; when that is full it becomes the old one.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Stamp, Count>,
    old: HashMap<Stamp, Count>,
}

impl LineCounts {
    pub fn new() -> LineCounts {
        LineCounts::default()
    }

    /// The lines of the file that `entry` lists; `None` for one that is too large, not text, or cannot be read. After
    /// a run of these ask [`Call::check`] whether time ran out.
    pub fn count(
        &self,
        store: &dyn Store,
        at: &FilePath,
        entry: &Entry,
        call: &Call,
    ) -> Option<usize> {
        if let Some(known) = self.find(entry.stamp) {
            return known.0;
        }
        let version = store.read(at, call).ok()??;
        let count = Count(count_lines(&version.bytes));
        if version.stamp.is_settled(SystemTime::now()) {
            self.keep(version.stamp, count);
        }
        count.0
    }

    fn find(&self, stamp: Stamp) -> Option<Count> {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&count) = generations.young.get(&stamp) {
            return Some(count);
        }
        let count = generations.old.remove(&stamp)?;
        generations.insert(stamp, count);
        Some(count)
    }

    fn keep(&self, stamp: Stamp, count: Count) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(stamp, count);
    }
}

impl Generations {
    fn insert(&mut self, stamp: Stamp, count: Count) {
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(stamp, count);
    }
}

/// `None` for what is not text. A byte order mark is not part of the first line.
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
    fn a_count_is_kept_while_the_stamp_is_the_same() {
        let (store, counts) = (MemoryStore::new(10), LineCounts::new());
        let call = Call::until(Instant::now() + Duration::from_secs(10));
        let at = FilePath::flat("a").unwrap();
        let count = || {
            let mut count = None;
            store
                .list(&DirPath::root(), &call, &mut |entry| {
                    count = counts.count(&store, &at, &entry, &call);
                    ControlFlow::Continue(())
                })
                .unwrap();
            count
        };
        let known = || counts.0.lock().unwrap().young.len();
        store.put(&at, "one\ntwo\n");
        assert_eq!((count(), known()), (Some(2), 1));
        assert_eq!((count(), known()), (Some(2), 1));
        store.put(&at, "one\n");
        assert_eq!((count(), known()), (Some(1), 2));
        store.put(&at, "far too long");
        assert_eq!((count(), known()), (None, 2), "what was not read is not kept");
    }

    #[test]
    fn old_counts_are_dropped_and_used_ones_stay() {
        let counts = LineCounts::new();
        let stamp = |inode: usize| Stamp { inode: inode as u64, ..Stamp::MISSING };
        for inode in 0..GENERATION * 3 {
            counts.keep(stamp(inode), Count(Some(inode)));
            assert!(counts.find(stamp(0)).is_some(), "{inode}");
        }
        let generations = counts.0.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 2 * GENERATION);
    }
}
