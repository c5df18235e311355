//! Reads files and makes their outlines, within limits of time and memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use files::{Call, Hash, Root, Store, StoreError};
use text::lines::{lines, select};
use text::{LineRange, NotText, Text};

use super::{ContextItem, ITEM_LINES_MAX, Section};
use crate::outline::{self, Outline, Part};

/// Most characters that are shown of a line.
pub const LINE_CHARS_MAX: usize = 300;

/// Hash of some lines, counted from 0: of their bytes, line breaks included. `None` if there are no such lines.
pub fn hash_of_lines(text: &str, range: &Range<usize>) -> Option<Hash> {
    let last = range.end.checked_sub(1)?;
    let found = select(text, LineRange { first: range.start, last })?;
    (found.last == last).then(|| Hash::of(&text.as_bytes()[found.bytes]))
}

/// Reason why a file cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("it is not text: {0}")]
    NotText(#[from] NotText),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Most outlines that are kept during a call, since a file may be shown for several reasons.
const OUTLINES_MAX: usize = 32;
/// Outlines with more parts are not kept.
const OUTLINE_PARTS_MAX: usize = 2000;

/// Size in bytes above which only one file at a time is in memory: with its outline it may take several times its size.
const LARGE_FILE_BYTES: u64 = 128 << 10;

/// Reads files of a store for a call, and keeps their outlines.
pub(super) struct SourceReader<'a> {
    pub root: &'a Root,
    pub store: &'a dyn Store,
    pub call: &'a Call,
    /// Time after which nothing more is parsed, so that there is time to answer with the results so far.
    until: Instant,
    outlines: Mutex<HashMap<Hash, Arc<Outline>>>,
    large: Mutex<()>,
}

impl<'a> SourceReader<'a> {
    pub fn new(root: &'a Root, store: &'a dyn Store, call: &'a Call) -> Self {
        let now = Instant::now();
        let until = now + call.deadline.saturating_duration_since(now) / 2;
        Self { root, store, call, until, outlines: Mutex::default(), large: Mutex::default() }
    }

    /// Calls `work` with a file and returns its result. Several threads may call this: each large file waits until no
    /// other one is in memory. So `work` must not keep the file, nor read another.
    pub fn with_file<R>(
        &self,
        path: &str,
        work: impl FnOnce(&SourceFile) -> R,
    ) -> Result<R, SourceError> {
        let at = self.root.relative(path).map_err(|_| StoreError::NoFolder)?;
        let is_large = self.store.size(&at).is_some_and(|size| size > LARGE_FILE_BYTES);
        let _alone = is_large.then(|| self.large.lock().unwrap_or_else(PoisonError::into_inner));
        self.read(path).map(|source| work(&source))
    }

    /// Reads the file at a path from the root.
    pub fn read(&self, path: &str) -> Result<SourceFile, SourceError> {
        let at = self.root.relative(path).map_err(|_| StoreError::NoFolder)?;
        let version = self.store.read_for_update(&at, self.call)?.ok_or(StoreError::NoFolder)?;
        let hash = Hash::of(&version.bytes);
        let text = Text::decode(version.bytes)?;
        Ok(SourceFile { path: path.to_owned(), text, hash })
    }

    pub fn outline(&self, source: &SourceFile) -> Arc<Outline> {
        self.quick_outline(source, usize::MAX)
    }

    /// Returns the outline in little time: that of a file larger than `largest` is guessed, unless it is known.
    pub fn quick_outline(&self, source: &SourceFile, largest: usize) -> Arc<Outline> {
        let outlines = || self.outlines.lock().unwrap_or_else(PoisonError::into_inner);
        // The language of a file depends on its path too.
        let key = Hash::of(&[&source.hash.to_string(), source.path.as_str()].concat().into_bytes());
        if let Some(known) = outlines().get(&key) {
            return Arc::clone(known);
        }
        let text = source.text.as_str();
        let outline =
            Arc::new(outline::quick_outline(&source.path, text, largest, &|| self.is_over()));
        let is_whole = text.len() <= largest && outline.parts.len() <= OUTLINE_PARTS_MAX;
        if is_whole && outlines().len() < OUTLINES_MAX {
            outlines().insert(key, Arc::clone(&outline));
        }
        outline
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.call.check().is_err()
    }
}

/// A text file.
pub(super) struct SourceFile {
    pub path: String,
    pub text: Text,
    pub hash: Hash,
}

impl SourceFile {
    /// Returns these lines as a result without details. `None` if there are no such lines.
    pub fn item(
        &self,
        section: Section,
        language: Option<&'static str>,
        range: Range<usize>,
    ) -> Option<ContextItem> {
        let text = self.text.as_str();
        let hash = hash_of_lines(text, &range)?;
        let shown = lines(text).skip(range.start).take(range.len().min(ITEM_LINES_MAX));
        let shown = shown.map(|line| truncated(&text[line.start..line.end])).collect();
        Some(ContextItem {
            section,
            position: 0,
            rows: range.len(),
            path: self.path.clone(),
            language,
            lines: range,
            symbol: None,
            kind: None,
            signature: None,
            score: None,
            why: Vec::new(),
            text: shown,
            hash,
            file_hash: self.hash,
        })
    }

    /// Returns a part as a result, with its documentation.
    pub fn item_of_part(
        &self,
        section: Section,
        language: Option<&'static str>,
        part: &Part,
    ) -> Option<ContextItem> {
        let LineRange { first, last } = part.all_lines();
        let found = self.item(section, language, first..last + 1)?;
        Some(ContextItem {
            symbol: Some(part.path()),
            kind: Some(part.kind),
            signature: Some(part.signature.clone()),
            ..found
        })
    }
}

fn truncated(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => [&line[..end], "…"].concat(),
        None => line.to_owned(),
    }
}
