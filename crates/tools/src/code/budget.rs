//! Chooses how much is shown of each result, so that the answer keeps to its token budget.
//!
//! Every result is at first only its place; then, in order, as many as fit get their signatures, and then their lines.
//! Results that do not fit even so are counted, and come on the next page. The text and the data have the same facts,
//! and both keep to the budget: a token counts as four bytes.

use std::fmt::Write as _;
use std::time::Duration;

use ::code::context::{
    CodeContext, ContextItem, LINE_CHARS_MAX, Section, SectionCounts, SourceError, Structure,
};
use files::StoreError;
use serde_json::{Map, Value, json};

use super::search_files::skipped;
use crate::answer::cut;
use crate::line_number::Base;

/// Approximate bytes of a token.
const TOKEN: usize = 4;
/// Fewest lines that are shown of a body that does not fit as a whole.
const LEAST_LINES: usize = 6;
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

/// The amount that is shown of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    Path,
    Signature,
    Body,
}

impl Detail {
    fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Signature => "signature",
            Self::Body => "body",
        }
    }
}

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

/// A result in the form in which it is shown.
struct Piece {
    detail: Detail,
    lines: usize,
    text: String,
    data: Value,
    /// Bytes of the text and the data, with what stands between two results.
    size: Size,
}

/// Sizes in bytes, as text and as data.
#[derive(Clone, Copy, Default)]
struct Size {
    text: usize,
    data: usize,
}

impl Size {
    fn of(text: &str, data: &Value) -> Self {
        Self { text: text.len() + 1, data: data.to_string().len() + 1 }
    }

    fn fits(self, room: Self) -> bool {
        self.text <= room.text && self.data <= room.data
    }

    fn plus(self, other: Self) -> Self {
        Self { text: self.text + other.text, data: self.data + other.data }
    }

    fn minus(self, other: Self) -> Self {
        let (text, data) = (self.text, self.data);
        Self { text: text.saturating_sub(other.text), data: data.saturating_sub(other.data) }
    }

    fn share(self, of: usize) -> Self {
        Self { text: self.text / of, data: self.data / of }
    }
}

/// An answer without its results.
struct Frame<'a> {
    budget: &'a Budget,
    gathered: &'a CodeContext,
    root: String,
    structure: Option<(String, bool)>,
    notes: Vec<String>,
}

impl Budget {
    /// Returns the answer as text and as data.
    pub fn answer(&self, gathered: &CodeContext) -> (String, Map<String, Value>) {
        let all = Size { text: self.max_tokens * TOKEN, data: self.max_tokens * TOKEN };
        let mut frame = Frame {
            budget: self,
            gathered,
            root: cut(&self.root, LONGEST_ROOT),
            structure: None,
            notes: notes(gathered, self.detail),
        };
        if let Some(structure) = &gathered.structure {
            let room = all.minus(frame.size());
            let room = if gathered.items.is_empty() { room } else { room.share(SHARE) };
            frame.structure = Some(drawn(structure, room));
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
        let pieces = fitted(&gathered.items, self.detail, all.minus(frame.size()));
        frame.filled(&pieces)
    }
}

/// Draws the folders, in as much detail as there is space for.
fn drawn(structure: &Structure, room: Size) -> (String, bool) {
    // Space for the languages, which are named beside it.
    let languages: usize = structure.languages.keys().map(|name| name.len() + 12).sum();
    structure.text(room.text.min(room.data).saturating_sub(80 + languages))
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
fn fitted(found: &[ContextItem], most: Detail, room: Size) -> Vec<Piece> {
    let mut used = Size::default();
    let mut pieces: Vec<Piece> = Vec::new();
    for found in found {
        let piece = Piece::new(found, Detail::Path, 0);
        if !used.plus(piece.size).fits(room) {
            break;
        }
        used = used.plus(piece.size);
        pieces.push(piece);
    }
    let mut replace = |piece: &mut Piece, better: Option<Piece>| {
        if let Some(better) = better
            && used.minus(piece.size).plus(better.size).fits(room)
        {
            used = used.minus(piece.size).plus(better.size);
            *piece = better;
        }
        room.minus(used)
    };
    let mut left = room;
    if most >= Detail::Signature {
        for (piece, found) in pieces.iter_mut().zip(found) {
            let better = found.signature.is_some() && found.section != Section::References;
            left = replace(piece, better.then(|| Piece::new(found, Detail::Signature, 0)));
        }
    }
    if most >= Detail::Body {
        for (piece, found) in pieces.iter_mut().zip(found) {
            let lines = found.text.len();
            let few = (1..=FEW_LINES).contains(&lines);
            left = replace(piece, few.then(|| Piece::new(found, Detail::Body, lines)));
        }
        for share in [SHARE, 1] {
            let most = room.share(share);
            for (piece, found) in pieces.iter_mut().zip(found) {
                let free = left.plus(piece.size);
                let free = Size { text: free.text.min(most.text), data: free.data.min(most.data) };
                left = replace(piece, Piece::longest(found, free, piece));
            }
        }
    }
    pieces
}

impl Piece {
    fn new(found: &ContextItem, detail: Detail, lines: usize) -> Self {
        let text = shown_text(found, detail, lines);
        let data = shown_data(found, detail, lines);
        let size = Size::of(&text, &data);
        Self { detail, lines, text, data, size }
    }

    /// Returns a piece with as many lines as there is space for, if that is more than are shown now.
    fn longest(found: &ContextItem, room: Size, now: &Self) -> Option<Self> {
        let all = found.text.len();
        let with = |lines: usize| Self::new(found, Detail::Body, lines);
        let fits = |lines: usize| with(lines).size.fits(room);
        if all == 0 || now.lines == all {
            return None;
        }
        if fits(all) {
            return Some(with(all));
        }
        let (mut enough, mut too_many) = (LEAST_LINES.min(all).max(now.lines + 1), all);
        if !fits(enough) {
            return None;
        }
        while too_many - enough > 1 {
            let middle = usize::midpoint(enough, too_many);
            if fits(middle) { enough = middle } else { too_many = middle }
        }
        Some(with(enough))
    }
}

fn type_name(section: Section) -> &'static str {
    match section {
        Section::Structure => "structure",
        Section::Outline => "outline",
        Section::Definitions => "definition",
        Section::Snippets => "snippet",
        Section::References => "reference",
    }
}

/// Returns the name of results that are counted.
fn plural(section: Section) -> &'static str {
    match section {
        Section::Structure => "structures",
        Section::Outline => "outlines",
        Section::Definitions => "definitions",
        Section::Snippets => "snippets",
        Section::References => "references",
    }
}

/// The parts of a result that are shown besides its place.
struct Shown<'a> {
    /// Given only if the lines do not show it.
    signature: Option<&'a str>,
    score: Option<f64>,
    lines: &'a [String],
    /// Number of lines or rows that are not shown.
    more: usize,
}

impl<'a> Shown<'a> {
    fn of(found: &'a ContextItem, detail: Detail, lines: usize) -> Self {
        let lines = if detail == Detail::Body { &found.text[..lines] } else { &[] };
        let is_outline = found.section == Section::Outline;
        // A part of a part may begin behind the head of it.
        let shows_head = detail == Detail::Body
            && (is_outline || found.section == Section::Definitions || begins_with_head(found));
        let signature = found.signature.as_deref();
        let signature = signature.filter(|_| detail >= Detail::Signature && !shows_head);
        let score = found.score.map(|score| (score * 100.0).round() / 100.0);
        let more = if lines.is_empty() { 0 } else { found.rows - lines.len() };
        Self { signature, score, lines, more }
    }
}

/// True if the part's own first words are among the lines.
fn begins_with_head(found: &ContextItem) -> bool {
    let Some(signature) = &found.signature else { return true };
    let head = signature.split(' ').take(2).collect::<Vec<_>>().join(" ");
    found.text.iter().any(|line| line.contains(&head))
}

fn shown_text(found: &ContextItem, detail: Detail, lines: usize) -> String {
    let shown = Shown::of(found, detail, lines);
    let (first, last) = (Base::One.show(found.lines.start), found.lines.end);
    let mut text = format!("{} {}:{first}", type_name(found.section), found.path);
    if first < last {
        let _ = write!(text, "-{last}");
    }
    let words = [found.language, found.kind.map(::code::outline::PartKind::as_str)];
    for word in words.into_iter().flatten().chain(found.symbol.as_deref()) {
        let _ = write!(text, " {word}");
    }
    if let Some(score) = shown.score {
        let _ = write!(text, " {score}");
    }
    if !found.why.is_empty() {
        let _ = write!(text, " ({})", found.why.join("; "));
    }
    if found.section != Section::Outline {
        let _ = write!(text, " [{}]", found.hash);
    }
    let _ = writeln!(text, " file [{}]", found.file_hash);
    if let Some(signature) = shown.signature {
        // Indented more than anything that the answer says itself.
        let _ = writeln!(text, "  {signature}");
    }
    for (number, line) in (first..).zip(shown.lines) {
        let _ = if found.section == Section::Outline {
            writeln!(text, "{line}")
        } else {
            writeln!(text, "{number}: {line}")
        };
    }
    if shown.more > 0 && found.section == Section::Outline {
        let _ = writeln!(text, "... {} more: narrow `kinds` or `depth`", shown.more);
    } else if shown.more > 0 {
        let next = first + shown.lines.len();
        let _ = writeln!(text, "... {} more: files [\"{}:{next}-{last}\"]", shown.more, found.path);
    }
    text
}

fn shown_data(found: &ContextItem, detail: Detail, lines: usize) -> Value {
    let shown = Shown::of(found, detail, lines);
    let mut data = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        data.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("type", Some(type_name(found.section).into()));
    add("path", Some(found.path.as_str().into()));
    add("language", found.language.map(Value::from));
    add("start_line", Some(Base::One.show(found.lines.start).into()));
    add("end_line", Some(found.lines.end.into()));
    add("symbol", found.symbol.as_deref().map(Value::from));
    add("kind", found.kind.map(|kind| kind.as_str().into()));
    add("signature", shown.signature.map(Value::from));
    add("score", shown.score.map(Value::from));
    add("why", (!found.why.is_empty()).then(|| json!(found.why)));
    add("detail", Some(detail.name().into()));
    let body = (detail == Detail::Body).then(|| shown.lines.join("\n").into());
    add("text", body);
    add("more", (shown.more > 0).then(|| shown.more.into()));
    add("hash", (found.section != Section::Outline).then(|| found.hash.to_string().into()));
    add("file_hash", Some(found.file_hash.to_string().into()));
    data.into()
}

impl Frame<'_> {
    /// Returns the size of the answer if no result fits.
    fn size(&self) -> Size {
        let (text, data) = self.filled(&[]);
        // A number can be longer than it is here, and there may be a cursor.
        let more = 16 + LONGEST_CURSOR + self.padding();
        Size::of(&text, &data.into()).plus(Size { text: more, data: more })
    }

    fn filled(&self, pieces: &[Piece]) -> (String, Map<String, Value>) {
        // `used` never has more digits than `max_tokens`.
        let text = self.text(pieces, self.budget.max_tokens);
        let data = self.data(pieces, self.budget.max_tokens);
        let bytes = text.len().max(Value::from(data).to_string().len());
        let used = (bytes + self.padding()).div_ceil(TOKEN);
        (self.text(pieces, used), self.data(pieces, used))
    }

    /// Returns by how much the time is shorter than its longest form: an answer costs the same however long it took.
    fn padding(&self) -> usize {
        TIME_DIGITS.saturating_sub(self.milliseconds().to_string().len())
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.budget.elapsed.as_millis()).unwrap_or(u64::MAX)
    }

    /// Counts the results of each kind that are not shown.
    fn omitted(&self, pieces: &[Piece]) -> SectionCounts {
        let mut omitted = self.gathered.left;
        for found in &self.gathered.items[pieces.len()..] {
            omitted.add(found.section, 1);
        }
        omitted
    }

    fn is_truncated(&self, pieces: &[Piece]) -> bool {
        let is_less = |(piece, found): (&Piece, &ContextItem)| {
            let most = self.budget.detail.min(most(found));
            piece.detail < most || (most == Detail::Body && piece.lines < found.rows)
        };
        !self.omitted(pieces).is_empty()
            || pieces.iter().zip(&self.gathered.items).any(is_less)
            || self.structure.as_ref().is_some_and(|(_, is_all)| !is_all)
    }

    /// Returns the cursor of the next page, which begins with the first result that is not shown, or else behind all
    /// that were searched.
    fn cursor(&self, pieces: &[Piece]) -> Option<String> {
        let shows_nothing = pieces.is_empty() && !self.gathered.items.is_empty();
        // If not even one result fits, the next page would be the same.
        if self.omitted(pieces).is_empty() || shows_nothing {
            return None;
        }
        let mut next = self.gathered.end;
        for found in self.gathered.items[pieces.len()..].iter().rev() {
            next.set(found.section, found.position);
        }
        Some(cursor(&self.budget.asked, next))
    }

    fn text(&self, pieces: &[Piece], used: usize) -> String {
        let mut text = format!("root {}\n", self.root);
        for piece in pieces {
            text.push_str(&piece.text);
            if piece.detail > Detail::Path {
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
        let truncated = if self.is_truncated(pieces) { ", not all is shown" } else { "" };
        let _ = writeln!(text, "{used} of {} tokens{truncated}", self.budget.max_tokens);
        let omitted = self.omitted(pieces);
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
        if let Some(cursor) = self.cursor(pieces) {
            let _ = writeln!(text, "for more pass cursor {}", json!(cursor));
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text.truncate(text.trim_end().len());
        text
    }

    fn data(&self, pieces: &[Piece], used: usize) -> Map<String, Value> {
        let mut data = Map::new();
        data.insert("root".into(), self.root.as_str().into());
        data.insert("results".into(), pieces.iter().map(|piece| piece.data.clone()).collect());
        if let (Some(structure), Some((tree, _))) = (&self.gathered.structure, &self.structure) {
            let structure = json!({
                "text": tree,
                "files": structure.files,
                "dirs": structure.dirs,
                "languages": structure.languages,
            });
            data.insert("structure".into(), structure);
        }
        let omitted = self.omitted(pieces);
        let counts = Section::WITH_RESULTS.into_iter().filter(|section| omitted.of(*section) > 0);
        let counts = counts.map(|section| (plural(section).to_owned(), omitted.of(section).into()));
        let budget = json!({
            "max_tokens": self.budget.max_tokens,
            "used_tokens": used,
            "truncated": self.is_truncated(pieces),
            "omitted": counts.collect::<Map<_, _>>(),
        });
        data.insert("budget".into(), budget);
        let stats = json!({
            "files_scanned": self.gathered.scanned,
            "skipped": skipped(&self.gathered.skipped),
            "elapsed_ms": self.milliseconds(),
        });
        data.insert("stats".into(), stats);
        data.extend(self.cursor(pieces).map(|cursor| ("next_cursor".into(), cursor.into())));
        if !self.notes.is_empty() {
            data.insert("notes".into(), json!(self.notes));
        }
        data
    }
}

/// Returns the most detail that can be shown of a result.
fn most(found: &ContextItem) -> Detail {
    match found.text.is_empty() {
        true if found.signature.is_some() => Detail::Signature,
        true => Detail::Path,
        false => Detail::Body,
    }
}

/// Returns the cursor at which the next page of the answer to this question begins.
fn cursor(asked: &str, seen: SectionCounts) -> String {
    let seen = Section::WITH_RESULTS.map(|section| seen.of(section).to_string());
    format!("{asked}-{}", seen.join("-"))
}

/// Parses a cursor; `None` if it is not one of this question.
pub(super) fn parse_cursor(cursor: &str, asked: &str) -> Option<SectionCounts> {
    let counts = cursor.strip_prefix(asked)?.strip_prefix('-')?;
    let counts: Vec<usize> =
        counts.split('-').map(|count| count.parse().ok()).collect::<Option<_>>()?;
    if counts.len() != Section::WITH_RESULTS.len() {
        return None;
    }
    let mut seen = SectionCounts::default();
    for (section, count) in Section::WITH_RESULTS.into_iter().zip(counts) {
        seen.add(section, count);
    }
    Some(seen)
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

    /// Makes a result of that section, with the lines of a part that has this head.
    fn found(section: Section, signature: Option<&str>, text: &[&str]) -> ContextItem {
        let hash = files::Hash::of(b"");
        ContextItem {
            section,
            position: 0,
            path: "a.rs".into(),
            language: None,
            lines: 0..text.len(),
            symbol: None,
            kind: None,
            signature: signature.map(Into::into),
            score: None,
            why: Vec::new(),
            text: text.iter().map(|line| (*line).to_owned()).collect(),
            rows: text.len(),
            hash,
            file_hash: hash,
        }
    }

    #[test]
    fn a_head_is_shown_where_the_lines_do_not_show_it() {
        let (head, lines) = ("pub fn run(self)", ["    pub fn run(self) {", "        go();"]);
        let check = |section, text: &[&str], is_shown: bool| {
            let found = found(section, Some(head), text);
            let data = shown_data(&found, Detail::Body, text.len());
            assert_eq!(data.get("signature").is_some(), is_shown, "{section:?} {text:?}");
            let signature = shown_data(&found, Detail::Signature, 0);
            assert_eq!(signature["signature"], head);
            assert_eq!(shown_data(&found, Detail::Path, 0).get("signature"), None);
        };
        check(Section::Snippets, &lines, false);
        check(Section::Snippets, &lines[1..], true);
        check(Section::Definitions, &lines[1..], false);
        check(Section::Outline, &lines[1..], false);
        check(Section::References, &lines[1..], true);
    }

    #[test]
    fn no_more_can_be_shown_than_there_is() {
        let most = |signature, text: &[&str]| most(&found(Section::Snippets, signature, text));
        assert_eq!(most(Some("fn a()"), &["fn a() {}"]), Detail::Body);
        assert_eq!(most(Some("fn a()"), &[]), Detail::Signature);
        assert_eq!(most(None, &[]), Detail::Path);
    }

    #[test]
    fn a_cursor_is_one_of_its_question() {
        let mut seen = SectionCounts::default();
        for (count, section) in Section::WITH_RESULTS.into_iter().enumerate() {
            seen.set(section, 10 + count);
        }
        let given = cursor("ab", seen);
        assert_eq!(given, "ab-10-11-12-13");
        assert_eq!(parse_cursor(&given, "ab"), Some(seen));
        for (given, asked) in [
            (given.as_str(), "a"),
            (&given, "abc"),
            ("ab", "ab"),
            ("ab-1-2-3", "ab"),
            ("ab-1-2-3-4-5", "ab"),
            ("ab-1-2-3-x", "ab"),
        ] {
            assert_eq!(parse_cursor(given, asked), None, "{given}");
        }
    }
}
