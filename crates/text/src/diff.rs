//! Unified diffs of what splices did.
//!
//! Lines end at `\n` only, a `\r` is part of its line, so that `git apply` accepts every diff and restores every byte.
//! Which lines differ is found elsewhere.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use memchr::{memchr_iter, memrchr};

use crate::changes;
use crate::splice::{Composed, Region};

/// Unchanged lines shown on either side of a change.
const CONTEXT: usize = 3;

/// What a limited diff may take for each line it may have, on average: a line can be as long as a file.
const BYTES_PER_LINE: usize = 400;

const NO_BREAK: &str = "\\ No newline at end of file";

/// The names in the two header lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'a> {
    pub old: &'a str,
    pub new: &'a str,
}

/// The diff from `old` to `new`, whole texts with their byte order marks; `""` when nothing differs.
///
/// `changed` says where to look. If it does not lead from `old` to `new` the diff is right all the same, but slower.
pub fn unified(old: &str, new: &str, changed: &Composed, names: Names<'_>) -> String {
    render(old, new, changed, names, Page::endless())
}

/// The same, but at most `max_lines` lines (headers included) of 400 bytes on average; when there are more, a last line
/// `... (7 more lines: +4 -2)` counts those left out, and how many of them are added and removed.
///
/// A diff that was cut is for reading: it cannot be applied.
pub fn unified_within(
    old: &str,
    new: &str,
    changed: &Composed,
    names: Names<'_>,
    max_lines: usize,
) -> String {
    render(old, new, changed, names, Page::of(max_lines))
}

fn render(old: &str, new: &str, changed: &Composed, names: Names<'_>, mut page: Page) -> String {
    let regions = changes::between(old, new, changed);
    if !regions.is_empty() {
        page.line("--- ", &file_name(names.old));
        page.line("+++ ", &file_name(names.new));
    }
    let (mut old, mut new) = (Side::of(old), Side::of(new));
    let near = |above: &Region, below: &Region| {
        breaks(&old.text[above.old.end..below.old.start]) <= 2 * CONTEXT
    };
    for regions in regions.chunk_by(near) {
        hunk(&mut old, &mut new, regions, &mut page);
    }
    page.finish()
}

/// Writes `changes`, at least one, and the lines around them.
fn hunk(old: &mut Side<'_>, new: &mut Side<'_>, changes: &[Region], page: &mut Page) {
    let [first, ..] = changes else { return };
    let [.., last] = changes else { return };
    let above = above(old.text, first.old.start);
    let below = below(old.text, last.old.end);
    let (old_span, new_span) = (
        old.span(first.old.start - above.len()..last.old.end + below.len()),
        new.span(first.new.start - above.len()..last.new.end + below.len()),
    );
    page.line("", &format!("@@ -{old_span} +{new_span} @@"));
    page.lines(" ", above);
    let mut at = first.old.start;
    for change in changes {
        page.lines(" ", &old.text[at..change.old.start]);
        page.lines("-", &old.text[change.old.clone()]);
        page.lines("+", &new.text[change.new.clone()]);
        at = change.old.end;
    }
    page.lines(" ", below);
}

/// The last lines before `at`, the start of a line.
fn above(text: &str, at: usize) -> &str {
    let mut start = at;
    for _ in 0..CONTEXT {
        let breakless = start.saturating_sub(1);
        start = memrchr(b'\n', &text.as_bytes()[..breakless]).map_or(0, |at| at + 1);
    }
    &text[start..at]
}

/// The next lines from `at` on.
fn below(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    let end = memchr_iter(b'\n', rest.as_bytes()).nth(CONTEXT - 1);
    &rest[..end.map_or(rest.len(), |at| at + 1)]
}

fn breaks(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count()
}

/// One of the two texts, and how far its lines are counted.
struct Side<'a> {
    text: &'a str,
    offset: usize,
    lines: usize,
}

impl<'a> Side<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, offset: 0, lines: 0 }
    }

    /// `range`, not before those asked for so far, as first line (from 1) and number of lines. Nothing is said to be
    /// after the line before it.
    fn span(&mut self, range: Range<usize>) -> String {
        self.lines += breaks(&self.text[self.offset..range.start]);
        self.offset = range.start;
        let text = &self.text[range];
        let count = breaks(text) + usize::from(!text.is_empty() && !text.ends_with('\n'));
        format!("{},{count}", self.lines + usize::from(count > 0))
    }
}

/// A diff being written, up to a limit.
struct Page {
    out: String,
    /// How much still fits.
    lines: usize,
    bytes: usize,
    /// Lines left out; once there is one, all that follow are.
    more: usize,
    added: usize,
    removed: usize,
}

impl Page {
    fn endless() -> Self {
        Self::of(usize::MAX)
    }

    fn of(lines: usize) -> Self {
        let bytes = lines.saturating_mul(BYTES_PER_LINE);
        Self { out: String::new(), lines, bytes, more: 0, added: 0, removed: 0 }
    }

    /// Writes every line of `text`, noting where the last one has no break.
    fn lines(&mut self, sign: &str, text: &str) {
        for line in text.split_inclusive('\n') {
            let terminated = line.strip_suffix('\n');
            self.line(sign, terminated.unwrap_or(line));
            if terminated.is_none() {
                self.line("", NO_BREAK);
            }
        }
    }

    fn line(&mut self, sign: &str, line: &str) {
        let len = sign.len() + line.len() + 1;
        if self.more > 0 || self.lines == 0 || self.bytes < len {
            self.more += 1;
            self.added += usize::from(sign == "+");
            self.removed += usize::from(sign == "-");
            return;
        }
        self.lines -= 1;
        self.bytes -= len;
        self.out.extend([sign, line, "\n"]);
    }

    fn finish(mut self) -> String {
        let Self { more, added, removed, .. } = self;
        if more > 0 {
            let lines = if more == 1 { "line" } else { "lines" };
            _ = writeln!(self.out, "... ({more} more {lines}: +{added} -{removed})");
        }
        self.out
    }
}

/// A name as git reads it back: quoted when it has characters that would end or change it, and ended by a tab when it
/// has blanks.
fn file_name(name: &str) -> Cow<'_, str> {
    let special = |char: char| char.is_ascii_control() || char == '"' || char == '\\';
    if name.contains(special) {
        let mut quoted = String::from("\"");
        for char in name.chars() {
            match char {
                '"' | '\\' => quoted.extend(['\\', char]),
                _ if special(char) => _ = write!(quoted, "\\{:03o}", u32::from(char)),
                _ => quoted.push(char),
            }
        }
        Cow::Owned(quoted + "\"")
    } else if name.contains(' ') {
        Cow::Owned(format!("{name}\t"))
    } else {
        Cow::Borrowed(name)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    const NAMES: Names<'_> = Names { old: "f.txt", new: "f.txt" };

    fn check(old: &str, new: &str, expected: &Expect) {
        let diff = unified(old, new, &Composed::new(), NAMES);
        expected.assert_eq(&diff);
        assert_eq!(patch(old, &diff), new);
    }

    fn numbered(lines: Range<usize>) -> String {
        lines.flat_map(|line| [line.to_string(), "\n".into()]).collect()
    }

    #[test]
    fn nothing_differs() {
        check("a\n", "a\n", &expect![""]);
        check("", "", &expect![""]);
    }

    #[test]
    fn three_lines_of_context() {
        let old = numbered(1..21);
        check(
            &old,
            &old.replace("\n7\n", "\nseven\n"),
            &expect![[r"
                --- f.txt
                +++ f.txt
                @@ -4,7 +4,7 @@
                 4
                 5
                 6
                -7
                +seven
                 8
                 9
                 10
            "]],
        );
    }

    #[test]
    fn contexts_that_touch_share_a_hunk() {
        let old = numbered(1..31);
        let hunks = |far: usize| {
            let new = old.replace("\n5\n", "\nfive\n").replace(&format!("\n{far}\n"), "\n");
            let diff = unified(&old, &new, &Composed::new(), NAMES);
            assert_eq!(patch(&old, &diff), new);
            diff.matches("@@ -").count()
        };
        assert_eq!((hunks(6), hunks(12), hunks(13)), (1, 1, 2));
    }

    #[test]
    fn an_empty_side_is_line_0() {
        check(
            "",
            "a\n",
            &expect![[r"
                --- f.txt
                +++ f.txt
                @@ -0,0 +1,1 @@
                +a
            "]],
        );
        check(
            "a\nb",
            "",
            &expect![[r"
                --- f.txt
                +++ f.txt
                @@ -1,2 +0,0 @@
                -a
                -b
                \ No newline at end of file
            "]],
        );
    }

    #[test]
    fn a_missing_last_break_is_noted_per_side() {
        check(
            "a\nb",
            "a\nb\n",
            &expect![[r"
                --- f.txt
                +++ f.txt
                @@ -1,2 +1,2 @@
                 a
                -b
                \ No newline at end of file
                +b
            "]],
        );
        check(
            "a\nb",
            "x\nb",
            &expect![[r"
                --- f.txt
                +++ f.txt
                @@ -1,2 +1,2 @@
                -a
                +x
                 b
                \ No newline at end of file
            "]],
        );
    }

    #[test]
    fn a_diff_is_cut_at_the_limit_and_says_so() {
        let (old, new) = (numbered(1..9), numbered(3..12));
        let within = |lines| unified_within(&old, &new, &Composed::new(), NAMES, lines);
        let whole = unified(&old, &new, &Composed::new(), NAMES);
        assert_eq!(whole.lines().count(), 14);
        assert_eq!(within(14), whole);
        assert_eq!(within(0), "... (14 more lines: +3 -2)\n");
        assert!(within(13).ends_with("\n+10\n... (1 more line: +1 -0)\n"));
        expect![[r"
            --- f.txt
            +++ f.txt
            @@ -1,8 +1,9 @@
            -1
            ... (10 more lines: +3 -1)
        "]]
        .assert_eq(&within(4));
    }

    #[test]
    fn a_long_line_does_not_fit_into_a_limited_diff() {
        let old = "x".repeat(5_000);
        let diff = unified_within(&old, "y", &Composed::new(), NAMES, 10);
        expect![[r"
            --- f.txt
            +++ f.txt
            @@ -1,1 +1,1 @@
            ... (4 more lines: +1 -1)
        "]]
        .assert_eq(&diff);
    }

    /// A small applier: knows nothing but the format.
    fn patch(old: &str, diff: &str) -> String {
        let mut rest: Vec<&str> = old.split_inclusive('\n').rev().collect();
        let (mut new, mut line) = (String::new(), 0);
        let mut body = diff.split_inclusive('\n').skip(2).peekable();
        while let Some(shown) = body.next() {
            if let Some(header) = shown.strip_prefix("@@ -") {
                let (start, count) = header.split_once(' ').unwrap().0.split_once(',').unwrap();
                let start: usize = start.parse().unwrap();
                let before = if count == "0" { start } else { start - 1 };
                while line < before {
                    new += rest.pop().unwrap();
                    line += 1;
                }
                continue;
            }
            let open = body.next_if(|next| next.starts_with('\\')).is_some();
            let (sign, content) = shown.split_at(1);
            let content = if open { content.strip_suffix('\n').unwrap() } else { content };
            if sign != "+" {
                assert_eq!(rest.pop(), Some(content));
                line += 1;
            }
            if sign != "-" {
                new += content;
            }
        }
        while let Some(line) = rest.pop() {
            new += line;
        }
        new
    }

    /// Lets git apply `diff` to a file `name` that holds `old`.
    fn git_apply(name: &str, strip: &str, old: &str, diff: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(name, old);
        write(".diff", diff);
        let git = Command::new("git")
            .args(["apply", strip, ".diff"])
            .current_dir(&folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", folder.path().parent().unwrap_or(Path::new("/")))
            .output()
            .expect("git is needed to test diffs");
        assert!(git.status.success(), "{}\n{diff}", String::from_utf8_lossy(&git.stderr));
        std::fs::read_to_string(folder.path().join(name)).unwrap()
    }

    #[test]
    fn git_reads_every_name() {
        for name in ["f", "my file.txt", "qu\"ote", "back\\slash", "tab\tand\nbreak", "ñ", " ", "-"]
        {
            let plain = unified("a\n", "b\n", &Composed::new(), Names { old: name, new: name });
            assert_eq!(git_apply(name, "-p0", "a\n", &plain), "b\n", "{name:?}");
            let (old, new) = (format!("a/{name}"), format!("b/{name}"));
            let prefixed = unified("a\n", "b\n", &Composed::new(), Names { old: &old, new: &new });
            assert_eq!(git_apply(name, "-p1", "a\n", &prefixed), "b\n", "{name:?}");
        }
    }

    /// An old text, and a new one with the regions that lead there.
    fn edited() -> impl Strategy<Value = (String, String, Composed)> {
        let line = "(a|b|é|-|\\+|\\\\| |)(\n|\n|\n|\r\n|\r)";
        let text = (
            "\u{feff}?",
            prop_oneof![prop::collection::vec(line, 0..4), prop::collection::vec(line, 4..60),],
            "(|end)",
        );
        let text = text.prop_map(|(bom, lines, end)| bom + &lines.concat() + &end);
        let edit = (any::<prop::sample::Index>(), 0usize..20, "(a|b|é|\n|\r){0,6}");
        (text, prop::collection::vec(edit, 0..5), any::<bool>()).prop_map(|(old, edits, all)| {
            let (mut new, mut changed) = (old.clone(), Composed::new());
            for (start, len, text) in edits {
                let start = new.floor_char_boundary(start.index(new.len() + 1));
                let end = new.floor_char_boundary(start + len);
                new.replace_range(start..end, &text);
                changed.then(start..end, text.len());
            }
            if all && old.len() % 4 == 0 {
                changed.then(0..new.len(), 0);
                new.clear();
            }
            (old, new, changed)
        })
    }

    proptest! {
        #[test]
        fn a_diff_leads_from_old_to_new((old, new, changed) in edited()) {
            let diff = unified(&old, &new, &changed, NAMES);
            prop_assert_eq!(diff.is_empty(), old == new);
            prop_assert_eq!(patch(&old, &diff), new);
        }

        #[test]
        fn a_limit_only_cuts((old, new, changed) in edited(), lines in 0usize..20) {
            let whole = unified(&old, &new, &changed, NAMES);
            let cut = unified_within(&old, &new, &changed, NAMES, lines);
            let total = whole.split_terminator('\n').count();
            let kept: String = whole.split_inclusive('\n').take(lines).collect();
            prop_assert!(cut.starts_with(&kept));
            let told = total.saturating_sub(lines);
            prop_assert_eq!(cut.contains(&format!("... ({told} more line")), told > 0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn git_applies_every_diff((old, new, changed) in edited()) {
            if old == new {
                return Ok(());
            }
            let plain = unified(&old, &new, &changed, NAMES);
            prop_assert_eq!(&git_apply("f.txt", "-p0", &old, &plain), &new);
            let names = Names { old: "a/f.txt", new: "b/f.txt" };
            let prefixed = unified(&old, &new, &changed, names);
            prop_assert_eq!(&git_apply("f.txt", "-p1", &old, &prefixed), &new);
        }
    }
}
