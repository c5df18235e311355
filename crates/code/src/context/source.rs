//! A file that is looked into.

use std::ops::Range;

use files::{Call, Hash, Root, Store, StoreError};
use text::lines::{lines, select};
use text::{LineRange, NotText, Text};

use super::{Found, MOST_LINES, Section};
use crate::outline::{self, Outline, Part};

/// Characters that are shown of a line.
pub const LONGEST_LINE: usize = 300;

/// The hash of some lines, counted from 0: of their bytes, line breaks included. `None` if there are no such lines.
pub fn hash_of_lines(text: &str, range: &Range<usize>) -> Option<Hash> {
    let last = range.end.checked_sub(1)?;
    let found = select(text, LineRange { first: range.start, last })?;
    (found.last == last).then(|| Hash::of(&text.as_bytes()[found.bytes]))
}

/// Why a file cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("it is not text: {0}")]
    NotText(#[from] NotText),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where files come from.
pub(super) struct Reader<'a> {
    pub root: &'a Root,
    pub store: &'a dyn Store,
    pub call: &'a Call,
}

impl Reader<'_> {
    /// The file at a path from the root.
    pub fn read(&self, path: &str) -> Result<Source, Unreadable> {
        let at = self.root.relative(path).map_err(|_| StoreError::NoFolder)?;
        let version = self.store.look(&at, self.call)?.ok_or(StoreError::NoFolder)?;
        let hash = Hash::of(&version.bytes);
        let text = Text::decode(version.bytes)?;
        Ok(Source { path: path.to_owned(), text, hash })
    }

    pub fn outline(&self, source: &Source) -> Outline {
        outline::outline(&source.path, source.text.as_str(), &|| self.is_over())
    }

    pub fn is_over(&self) -> bool {
        self.call.check().is_err()
    }
}

/// A text file.
pub(super) struct Source {
    pub path: String,
    pub text: Text,
    pub hash: Hash,
}

impl Source {
    /// These lines as a result, with nothing said of them yet. `None` if they are not there.
    pub fn found(
        &self,
        section: Section,
        language: Option<&'static str>,
        range: Range<usize>,
    ) -> Option<Found> {
        let text = self.text.as_str();
        let hash = hash_of_lines(text, &range)?;
        let shown = lines(text).skip(range.start).take(range.len().min(MOST_LINES));
        let shown = shown.map(|line| cut(&text[line.start..line.end])).collect();
        Some(Found {
            section,
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

    /// A part as a result, with what documents it.
    pub fn part(
        &self,
        section: Section,
        language: Option<&'static str>,
        part: &Part,
    ) -> Option<Found> {
        let LineRange { first, last } = part.all_lines();
        let found = self.found(section, language, first..last + 1)?;
        Some(Found {
            symbol: Some(part.path()),
            kind: Some(part.kind),
            signature: Some(part.signature.clone()),
            ..found
        })
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => [&line[..end], "…"].concat(),
        None => line.to_owned(),
    }
}
