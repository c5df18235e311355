//! Chooses how much is shown of each result, so that the answer keeps to its token budget.
//!
//! Every result is at first only its place; then, in order, as many as fit get their signatures, and then their lines.
//! Results that do not fit even so are counted, and come on the next page. The text and the data have the same facts,
//! and both keep to the budget: a token counts as four bytes.
//!
//! - `item`: a result in the form in which it is shown
//! - `cursor`: where the next page begins

mod cursor;
mod item;

pub(super) use cursor::parse_cursor;
pub(super) use item::Detail;

use std::fmt::Write as _;
use std::time::Duration;

use ::code::context::{
    CodeContext, ContextItem, LINE_CHARS_MAX, Section, SectionCounts, SourceError, Structure,
};
use files::StoreError;
use serde_json::{Map, Value, json};

use self::cursor::cursor;
use self::item::{AnswerSize, ShownItem, most, plural};
use super::search_files::skipped;
use crate::answer::cut;

/// Approximate bytes of a token.
const TOKEN: usize = 4;
/// Bodies of at most this many lines are shown before longer ones.
const FEW_LINES: usize = 3;
/// At first a body gets at most this share of the space (one third), so that others get some too.
const SHARE: usize = 3;
/// Most digits of the milliseconds of a call; no call takes longer.
const TIME_DIGITS: usize = 5;
/// Largest cursor with the words around it, in bytes.
const LONGEST_CURSOR: usize = 96;
/// Most characters that are shown of the root's path, and of a note.
const LONGEST_ROOT: usize = 120;
const LONGEST_NOTE: usize = 240;

/// The token budget of an answer, and the facts that the answer states about itself.
pub(super) struct Budget {
    pub root: String,
    pub max_tokens: usize,
    /// The most detail that is shown.
    pub detail: Detail,
    /// A digest that tells the question from others.
    pub asked: String,
    pub elapsed: Duration,
}

/// An answer without its results.
struct AnswerFrame<'a> {
    budget: &'a Budget,
    gathered: &'a CodeContext,
    root: String,
    structure: Option<(String, bool)>,
    notes: Vec<String>,
}

impl Budget {
    /// Returns the answer as text and as data.
    pub fn answer(&self, gathered: &CodeContext) -> (String, Map<String, Value>) {
        let all = AnswerSize { text: self.max_tokens * TOKEN, data: self.max_tokens * TOKEN };
        let mut frame = AnswerFrame {
            budget: self,
            gathered,
            root: cut(&self.root, LONGEST_ROOT),
            structure: None,
            notes: notes(gathered, self.detail),
        };
        if let Some(structure) = &gathered.structure {
            let free = all.minus(frame.size());
            let free = if gathered.items.is_empty() { free } else { free.share(SHARE) };
            frame.structure = Some(drawn(structure, free));
        }
        // The least informative parts are dropped first.
        while !frame.size().fits(all) {
            let is_less = frame.notes.pop().is_some()
                || frame.structure.take().is_some()
                || !std::mem::take(&mut frame.root).is_empty();
            if !is_less {
                break;
            }
        }
        let items = fitted(&gathered.items, self.detail, all.minus(frame.size()));
        frame.filled(&items)
    }
}

/// Draws the folders, in as much detail as there is space for.
fn drawn(structure: &Structure, free: AnswerSize) -> (String, bool) {
    // Space for the languages, which are named beside it.
    let languages: usize = structure.languages.keys().map(|name| name.len() + 12).sum();
    structure.text(free.text.min(free.data).saturating_sub(80 + languages))
}

fn notes(gathered: &CodeContext, detail: Detail) -> Vec<String> {
    let unreadable = gathered.unreadable.iter().map(|(path, error)| match error {
        SourceError::Store(StoreError::NoFolder) => format!("`{path}` does not exist"),
        error => format!("`{path}` cannot be shown: {error}"),
    });
    let is_cut = |line: &String| line.ends_with('…') && line.chars().count() > LINE_CHARS_MAX;
    let is_code = |found: &&ContextItem| found.section != Section::Outline;
    let mut lines = gathered.items.iter().filter(is_code).flat_map(|found| &found.text);
    let has_cut = detail == Detail::Body && lines.any(is_cut);
    let cut_lines = has_cut.then(|| format!("lines are cut at {LINE_CHARS_MAX} characters"));
    let notes = gathered.notes.iter().cloned().chain(unreadable).chain(cut_lines);
    notes.map(|note| cut(&note, LONGEST_NOTE)).collect()
}

/// Returns as many results as fit, each with as much detail as fits.
fn fitted(found: &[ContextItem], most: Detail, free: AnswerSize) -> Vec<ShownItem> {
    let mut used = AnswerSize::default();
    let mut items: Vec<ShownItem> = Vec::new();
    for found in found {
        let item = ShownItem::new(found, Detail::Path, 0);
        if !used.plus(item.size).fits(free) {
            break;
        }
        used = used.plus(item.size);
        items.push(item);
    }
    let mut replace = |item: &mut ShownItem, better: Option<ShownItem>| {
        if let Some(better) = better
            && used.minus(item.size).plus(better.size).fits(free)
        {
            used = used.minus(item.size).plus(better.size);
            *item = better;
        }
        free.minus(used)
    };
    let mut left = free;
    if most >= Detail::Signature {
        for (item, found) in items.iter_mut().zip(found) {
            let better = found.signature.is_some() && found.section != Section::References;
            left = replace(item, better.then(|| ShownItem::new(found, Detail::Signature, 0)));
        }
    }
    if most >= Detail::Body {
        for (item, found) in items.iter_mut().zip(found) {
            let lines = found.text.len();
            let few = (1..=FEW_LINES).contains(&lines);
            left = replace(item, few.then(|| ShownItem::new(found, Detail::Body, lines)));
        }
        for share in [SHARE, 1] {
            let most = free.share(share);
            for (item, found) in items.iter_mut().zip(found) {
                let free = left.plus(item.size);
                let free =
                    AnswerSize { text: free.text.min(most.text), data: free.data.min(most.data) };
                left = replace(item, ShownItem::longest(found, free, item));
            }
        }
    }
    items
}

impl AnswerFrame<'_> {
    /// Returns the size of the answer if no result fits.
    fn size(&self) -> AnswerSize {
        let (text, data) = self.filled(&[]);
        // A number can be longer than it is here, and there may be a cursor.
        let more = 16 + LONGEST_CURSOR + self.padding();
        AnswerSize::of(&text, &data.into()).plus(AnswerSize { text: more, data: more })
    }

    fn filled(&self, items: &[ShownItem]) -> (String, Map<String, Value>) {
        // `used` never has more digits than `max_tokens`.
        let text = self.text(items, self.budget.max_tokens);
        let data = self.data(items, self.budget.max_tokens);
        let bytes = text.len().max(Value::from(data).to_string().len());
        let used = (bytes + self.padding()).div_ceil(TOKEN);
        (self.text(items, used), self.data(items, used))
    }

    /// Returns by how much the time is shorter than its longest form: an answer costs the same however long it took.
    fn padding(&self) -> usize {
        TIME_DIGITS.saturating_sub(self.milliseconds().to_string().len())
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.budget.elapsed.as_millis()).unwrap_or(u64::MAX)
    }

    /// Counts the results of each kind that are not shown.
    fn omitted(&self, items: &[ShownItem]) -> SectionCounts {
        let mut omitted = self.gathered.left;
        for found in &self.gathered.items[items.len()..] {
            omitted.add(found.section, 1);
        }
        omitted
    }

    fn is_truncated(&self, items: &[ShownItem]) -> bool {
        let is_less = |(item, found): (&ShownItem, &ContextItem)| {
            let most = self.budget.detail.min(most(found));
            item.detail < most || (most == Detail::Body && item.lines < found.rows)
        };
        !self.omitted(items).is_empty()
            || items.iter().zip(&self.gathered.items).any(is_less)
            || self.structure.as_ref().is_some_and(|(_, is_all)| !is_all)
    }

    /// Returns the cursor of the next page, which begins with the first result that is not shown, or else behind all
    /// that were searched.
    fn cursor(&self, items: &[ShownItem]) -> Option<String> {
        let shows_nothing = items.is_empty() && !self.gathered.items.is_empty();
        // If not even one result fits, the next page would be the same.
        if self.omitted(items).is_empty() || shows_nothing {
            return None;
        }
        let mut next = self.gathered.end;
        for found in self.gathered.items[items.len()..].iter().rev() {
            next.set(found.section, found.position);
        }
        Some(cursor(&self.budget.asked, next))
    }

    fn text(&self, items: &[ShownItem], used: usize) -> String {
        let mut text = format!("root {}\n", self.root);
        for item in items {
            text.push_str(&item.text);
            if item.detail > Detail::Path {
                text.push('\n');
            }
        }
        if let (Some(structure), Some((tree, _))) = (&self.gathered.structure, &self.structure) {
            let languages =
                structure.languages.iter().map(|(name, files)| format!("{name} {files}"));
            let languages: Vec<String> = languages.collect();
            let _ = writeln!(
                text,
                "structure: {} files in {} folders; {}\n{tree}\n",
                structure.files,
                structure.dirs,
                languages.join(", ")
            );
        }
        let truncated = if self.is_truncated(items) { ", not all is shown" } else { "" };
        let _ = writeln!(text, "{used} of {} tokens{truncated}", self.budget.max_tokens);
        let omitted = self.omitted(items);
        if !omitted.is_empty() {
            let counts =
                Section::WITH_RESULTS.into_iter().filter(|section| omitted.of(*section) > 0);
            let counts: Vec<_> = counts
                .map(|section| format!("{} {}", omitted.of(section), plural(section)))
                .collect();
            let _ = writeln!(text, "left out: {}", counts.join(", "));
        }
        let mut unseen = String::new();
        if let Value::Object(counts) = skipped(&self.gathered.skipped) {
            let counts: Vec<_> =
                counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
            if !counts.is_empty() {
                unseen = format!(" ({} skipped)", counts.join(", "));
            }
        }
        let _ = writeln!(
            text,
            "{} files scanned{unseen} in {} ms",
            self.gathered.scanned,
            self.milliseconds()
        );
        if let Some(cursor) = self.cursor(items) {
            let _ = writeln!(text, "for more pass cursor {}", json!(cursor));
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text.truncate(text.trim_end().len());
        text
    }

    fn data(&self, items: &[ShownItem], used: usize) -> Map<String, Value> {
        let mut data = Map::new();
        data.insert("root".into(), self.root.as_str().into());
        data.insert("results".into(), items.iter().map(|item| item.data.clone()).collect());
        if let (Some(structure), Some((tree, _))) = (&self.gathered.structure, &self.structure) {
            let structure = json!({
                "text": tree,
                "files": structure.files,
                "dirs": structure.dirs,
                "languages": structure.languages,
            });
            data.insert("structure".into(), structure);
        }
        let omitted = self.omitted(items);
        let counts = Section::WITH_RESULTS.into_iter().filter(|section| omitted.of(*section) > 0);
        let counts = counts.map(|section| (plural(section).to_owned(), omitted.of(section).into()));
        let budget = json!({
            "max_tokens": self.budget.max_tokens,
            "used_tokens": used,
            "truncated": self.is_truncated(items),
            "omitted": counts.collect::<Map<_, _>>(),
        });
        data.insert("budget".into(), budget);
        let stats = json!({
            "files_scanned": self.gathered.scanned,
            "skipped": skipped(&self.gathered.skipped),
            "elapsed_ms": self.milliseconds(),
        });
        data.insert("stats".into(), stats);
        data.extend(self.cursor(items).map(|cursor| ("next_cursor".into(), cursor.into())));
        if !self.notes.is_empty() {
            data.insert("notes".into(), json!(self.notes));
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_how_long_it_took() {
        let budget = Budget {
            root: "/folder".into(),
            max_tokens: 1000,
            detail: Detail::Body,
            asked: "question".into(),
            elapsed: Duration::from_millis(12_345),
        };
        let (text, data) = budget.answer(&CodeContext::default());
        assert_eq!(data["stats"]["elapsed_ms"], 12_345);
        assert!(text.ends_with(" in 12345 ms"), "{text}");
    }
}
