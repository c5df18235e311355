//! A result in the form in which it is shown, with more or less detail.

use std::fmt::Write as _;

use ::code::context::{ContextItem, Section};
use ::code::outline::PartKind;
use serde_json::{Map, Value, json};

use crate::line_number::Base;

/// Fewest lines that are shown of a body that does not fit as a whole.
const LEAST_LINES: usize = 6;

/// The amount that is shown of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::code) enum Detail {
    Path,
    Signature,
    Body,
}

impl Detail {
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Signature => "signature",
            Self::Body => "body",
        }
    }
}

/// A result in the form in which it is shown.
pub(super) struct ShownItem {
    pub detail: Detail,
    pub lines: usize,
    pub text: String,
    pub data: Value,
    /// Bytes of the text and the data, with what stands between two results.
    pub size: AnswerSize,
}

/// Sizes in bytes, as text and as data.
#[derive(Clone, Copy, Default)]
pub(super) struct AnswerSize {
    pub text: usize,
    pub data: usize,
}

impl AnswerSize {
    pub fn of(text: &str, data: &Value) -> Self {
        Self { text: text.len() + 1, data: data.to_string().len() + 1 }
    }

    pub fn fits(self, free: Self) -> bool {
        self.text <= free.text && self.data <= free.data
    }

    pub fn plus(self, other: Self) -> Self {
        Self { text: self.text + other.text, data: self.data + other.data }
    }

    pub fn minus(self, other: Self) -> Self {
        let (text, data) = (self.text, self.data);
        Self { text: text.saturating_sub(other.text), data: data.saturating_sub(other.data) }
    }

    pub fn share(self, of: usize) -> Self {
        Self { text: self.text / of, data: self.data / of }
    }
}

impl ShownItem {
    pub fn new(found: &ContextItem, detail: Detail, lines: usize) -> Self {
        let text = shown_text(found, detail, lines);
        let data = shown_data(found, detail, lines);
        let size = AnswerSize::of(&text, &data);
        Self { detail, lines, text, data, size }
    }

    /// Returns a item with as many lines as there is space for, if that is more than are shown now.
    pub fn longest(found: &ContextItem, free: AnswerSize, now: &Self) -> Option<Self> {
        let all = found.text.len();
        let with = |lines: usize| Self::new(found, Detail::Body, lines);
        let fits = |lines: usize| with(lines).size.fits(free);
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

/// Returns the most detail that can be shown of a result.
pub(super) fn most(found: &ContextItem) -> Detail {
    match found.text.is_empty() {
        true if found.signature.is_some() => Detail::Signature,
        true => Detail::Path,
        false => Detail::Body,
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
pub(super) fn plural(section: Section) -> &'static str {
    match section {
        Section::Structure => "structures",
        Section::Outline => "outlines",
        Section::Definitions => "definitions",
        Section::Snippets => "snippets",
        Section::References => "references",
    }
}

/// The parts of a result that are shown besides its place.
struct ShownParts<'a> {
    /// Given only if the lines do not show it.
    signature: Option<&'a str>,
    score: Option<f64>,
    lines: &'a [String],
    /// Number of lines or rows that are not shown.
    more: usize,
}

impl<'a> ShownParts<'a> {
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
    let shown = ShownParts::of(found, detail, lines);
    let (first, last) = (Base::One.show(found.lines.start), found.lines.end);
    let mut text = format!("{} {}:{first}", type_name(found.section), found.path);
    if first < last {
        let _ = write!(text, "-{last}");
    }
    let words = [found.language, found.kind.map(PartKind::as_str)];
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
    let shown = ShownParts::of(found, detail, lines);
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
