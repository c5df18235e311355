//! The question that a person is asked about a change.

use std::fmt::Write as _;

use text::diff::{self, DiffNames};
use text::{ComposedSplices, Text, is_hidden};

use super::FileChange;

/// Most lines of the diffs in a question, besides one for each that counts those left out, and characters of each line
/// before it is cut.
const DIFF_LINES: usize = 39;
const LINE_LENGTH: usize = 200;

/// Returns the question that a person is asked. Names and contents are untrusted, so nothing in them can pass for
/// something else.
pub fn question(tool: &str, changes: Vec<FileChange>) -> String {
    let mut question = match changes.as_slice() {
        [change] => format!("Allow {tool} to {}?\n", described(change)),
        changes => format!("Allow {tool} to make these {} changes?\n", changes.len()),
    };
    let (count, most) = (changes.len(), DIFF_LINES / changes.len().max(1));
    for change in changes {
        if count > 1 {
            let _ = write!(question, "\n{}:", described(&change));
        }
        show_diff(change, most, &mut question);
        if count > 1 {
            question.push('\n');
        }
    }
    question
}

/// Says what becomes of a file. The path is never cut: the part left out could lead elsewhere.
fn described(FileChange { path, before, after }: &FileChange) -> String {
    let verb = match (before, after) {
        (_, None) => "delete",
        (Some(_), Some(_)) => "change",
        (None, Some(_)) => "create",
    };
    format!("{verb} {}", visible(path))
}

/// Appends the diff of a file, each line on a line of its own.
fn show_diff(FileChange { path, before, after }: FileChange, most: usize, question: &mut String) {
    let size = before.as_ref().map_or(0, |bytes| bytes.len());
    let old = before.map_or(Ok(Text::empty()), Text::decode);
    let old = old.unwrap_or_else(|_| {
        let fate = if after.is_some() { "become:" } else { "are deleted" };
        let _ = write!(question, "\nIts {size} bytes, which are not text, {fate}");
        Text::empty()
    });
    let after = after.unwrap_or_default();
    let new = String::from_utf8_lossy(&after);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(&path);
    let mut changed = ComposedSplices::new();
    changed.add(0..old.whole().len(), new.len());
    let names = DiffNames { old: name, new: name };
    let diff = diff::unified_within(old.whole(), &new, &changed, names, most);
    for line in shown_lines(&diff) {
        let _ = write!(question, "\n{line}");
    }
}

/// Returns the lines of a diff. A carriage return at the end of all lines shown of a file makes no difference and is
/// left out; at the end of only some it is shown.
fn shown_lines(diff: &str) -> impl Iterator<Item = String> {
    let lines = || diff.split_terminator('\n');
    let mut of_file = lines().skip(2).filter(|line| line.starts_with([' ', '-', '+']));
    let ending = if of_file.all(|line| line.ends_with('\r')) { "\r" } else { "" };
    lines().map(move |line| cut(line.strip_suffix(ending).unwrap_or(line)))
}

/// Returns the beginning of a long line.
fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_LENGTH) {
        Some((at, _)) => visible(&line[..at]) + " ...",
        None => visible(line),
    }
}

/// Returns a text on one line, in which characters that cannot be seen, or that change how others are seen, are named.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\n' || is_hidden(character) {
            let _ = write!(shown, "<U+{:04X}>", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;

    fn change(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> FileChange {
        let shared = |bytes: &[u8]| Arc::new(bytes.to_vec());
        FileChange { path: path.into(), before: before.map(shared), after: after.map(shared) }
    }

    #[test]
    fn a_change_of_one_file_is_in_the_first_line() {
        let check = |change: FileChange, expected: &str| {
            assert_eq!(question("tool", vec![change]), expected);
        };
        check(
            change("b/a.txt", Some(b"one\n"), Some(b"two\n")),
            "Allow tool to change b/a.txt?\n\n--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-one\n+two",
        );
        check(
            change("a.txt", None, Some(b"two\n")),
            "Allow tool to create a.txt?\n\n--- a.txt\n+++ a.txt\n@@ -0,0 +1,1 @@\n+two",
        );
        check(
            change("a.txt", Some(b"one\n"), None),
            "Allow tool to delete a.txt?\n\n--- a.txt\n+++ a.txt\n@@ -1,1 +0,0 @@\n-one",
        );
        check(
            change("a.txt", Some(b"\0\n"), None),
            "Allow tool to delete a.txt?\n\nIts 2 bytes, which are not text, are deleted",
        );
        check(change("a\nb", Some(b""), None), "Allow tool to delete a<U+000A>b?\n");
    }

    #[test]
    fn changes_of_several_files_come_one_after_another() {
        let moved = vec![change("a", Some(b"one\n"), None), change("b", None, Some(b"one\n"))];
        assert_eq!(
            question("tool", moved),
            "Allow tool to make these 2 changes?\n\
             \ndelete a:\n--- a\n+++ a\n@@ -1,1 +0,0 @@\n-one\n\
             \ncreate b:\n--- b\n+++ b\n@@ -0,0 +1,1 @@\n+one\n"
        );
    }

    #[test]
    fn several_files_share_the_lines_of_a_question() {
        let text = "line\n".repeat(1000);
        let changes = |count| vec![change("a", None, Some(text.as_bytes())); count];
        let lines = |count| question("tool", changes(count)).lines().count();
        assert_eq!((lines(1), lines(3)), (2 + DIFF_LINES + 1, 2 + 3 * (1 + 13 + 1 + 1) - 1));
    }

    #[test]
    fn what_cannot_be_seen_is_named() {
        assert_eq!(visible("a\tb é 漢"), "a\tb é 漢");
        assert_eq!(visible("\u{1b}[1m\u{202e}\u{feff}\r"), "<U+001B>[1m<U+202E><U+FEFF><U+000D>");
        // A soft hyphen, an Arabic mark, a Hangul filler, a letter that is only a tag.
        assert_eq!(visible("\u{ad}\u{61c}\u{3164}\u{e0041}"), "<U+00AD><U+061C><U+3164><U+E0041>");
        // A joiner of hieroglyphs.
        assert_eq!(visible("\u{13430}\n"), "<U+13430><U+000A>");
        assert_eq!(cut(&"x".repeat(LINE_LENGTH)).len(), LINE_LENGTH);
        assert_eq!(cut(&"é".repeat(LINE_LENGTH + 1)), "é".repeat(LINE_LENGTH) + " ...");
    }
}
