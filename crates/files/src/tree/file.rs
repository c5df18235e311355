//! A file that a walk visits: read into a buffer that its thread keeps, and only as far as is needed.

use std::{
    ffi::OsStr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use cap_std::fs::Dir;
use memchr::memchr;

use super::Skipped;
use crate::{
    os::{self, FileKind},
    resolve::retry_on_interrupt,
};

/// Size above which files are visited one at a time and their memory is freed, so that not each thread holds one.
const LARGE_FILE_MIN: u64 = 1 << 20;

/// Number of bytes that are read first: if there is a NUL among them, the rest does not matter.
const BEGINNING_SIZE: usize = 64 * 1024;

/// A file that is visited.
pub struct TreeFile<'a> {
    pub(super) path: &'a str,
    pub(super) name: &'a OsStr,
    pub(super) folder: &'a Dir,
    pub(super) max_size: u64,
    pub(super) buffer: &'a mut Vec<u8>,
    pub(super) skipped: &'a mut Skipped,
    pub(super) large_file_lock: &'a Mutex<()>,
    /// Held for a large file as long as it is in memory.
    pub(super) large_file_guard: Option<MutexGuard<'a, ()>>,
}

impl<'a> TreeFile<'a> {
    /// Returns the path from the root, with `/` between names.
    pub fn path(&self) -> &'a str {
        self.path
    }

    /// Returns the size in bytes, as it is now. `None` if the file is gone.
    pub fn size(&self) -> Option<u64> {
        let stat = os::stat(self.folder, self.name).ok()??;
        (stat.kind == FileKind::File).then_some(stat.stamp.size)
    }

    /// Reads the whole file. `None`, and counted, if it is too large or cannot be read; not counted if it is gone.
    pub fn read(&mut self) -> Option<&[u8]> {
        let BytesRead { length, .. } = self.load(|_| false)?;
        self.buffer.get(..length)
    }

    /// Reads the whole file as text, with its byte order mark. `None`, and counted, also if it is not UTF-8 or has a
    /// NUL.
    pub fn text(&mut self) -> Option<&str> {
        let has_nul = |bytes: &[u8]| memchr(0, bytes).is_some();
        let BytesRead { beginning, length } = self.load(has_nul)?;
        let bytes = &self.buffer[..length];
        let text = simdutf8::basic::from_utf8(bytes).ok();
        // The beginning is known to have no NUL.
        let text = text.filter(|_| !has_nul(&bytes[beginning..]));
        if text.is_none() {
            self.skipped.binary += 1;
        }
        text
    }

    /// Reads the file into the buffer, unless its beginning shows that it is binary.
    fn load(&mut self, is_binary: impl Fn(&[u8]) -> bool) -> Option<BytesRead> {
        let Ok(file) = os::open_read(self.folder, self.name) else {
            self.skipped.unreadable += 1;
            return None;
        };
        // The file is gone, or something else by now.
        let file = file?;
        let Ok(stat) = os::stat_open(&file) else {
            self.skipped.unreadable += 1;
            return None;
        };
        if stat.kind != FileKind::File {
            self.skipped.special += 1;
            return None;
        }
        let size = stat.stamp.size;
        if size > LARGE_FILE_MIN && size <= self.max_size && self.large_file_guard.is_none() {
            self.large_file_guard =
                Some(self.large_file_lock.lock().unwrap_or_else(PoisonError::into_inner));
        }
        let mut loaded = BytesRead { beginning: 0, length: 0 };
        loop {
            let length = loaded.length as u64;
            if size.max(length) > self.max_size {
                self.skipped.too_large += 1;
                return None;
            }
            // Reading one byte more than the size shows the end of the file. A file that is longer has no known size.
            let room =
                if length > size { length.saturating_mul(2) } else { size.saturating_add(1) };
            let room = room.min(self.max_size.saturating_add(1));
            let room = if length == 0 { room.min(BEGINNING_SIZE as u64) } else { room };
            let room = usize::try_from(room).ok()?;
            grow(self.buffer, room);
            let rest = &mut self.buffer[loaded.length..room];
            let Ok(read) = retry_on_interrupt(|| os::read_at(&file, rest, length)) else {
                self.skipped.unreadable += 1;
                return None;
            };
            if length == 0 {
                loaded.beginning = read;
                if is_binary(&rest[..read]) {
                    self.skipped.binary += 1;
                    return None;
                }
            }
            loaded.length += read;
            if read == 0 || (loaded.length as u64 == size && loaded.length < room) {
                return Some(loaded);
            }
        }
    }
}

/// Number of bytes that were read of a file: at first, and in all.
struct BytesRead {
    beginning: usize,
    length: usize,
}

impl Drop for TreeFile<'_> {
    /// Frees the memory before another thread may read a large file.
    fn drop(&mut self) {
        if self.large_file_guard.is_some() {
            *self.buffer = Vec::new();
        }
    }
}

/// Grows the buffer to `length` bytes. It never shrinks, so that the next file need not clear it again.
fn grow(buffer: &mut Vec<u8>, length: usize) {
    if buffer.len() < length {
        let length = length.next_multiple_of(BEGINNING_SIZE);
        buffer.reserve_exact(length - buffer.len());
        buffer.resize(length, 0);
    }
}
