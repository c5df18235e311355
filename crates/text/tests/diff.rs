//! Diffs by example, and by two oracles: a small applier that knows nothing but the format, and git.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "git works on files")]

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use text::diff::{unified, unified_within};
use text::{ComposedSplices, DiffNames};

const NAMES: DiffNames<'_> = DiffNames { old: "f.txt", new: "f.txt" };

fn check(old: &str, new: &str, expected: &Expect) {
    let diff = unified(old, new, &ComposedSplices::new(), NAMES);
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
        let diff = unified(&old, &new, &ComposedSplices::new(), NAMES);
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
    let within = |lines| unified_within(&old, &new, &ComposedSplices::new(), NAMES, lines);
    let whole = unified(&old, &new, &ComposedSplices::new(), NAMES);
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
    let diff = unified_within(&old, "y", &ComposedSplices::new(), NAMES, 10);
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
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
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
fn a_name_is_quoted_no_more_than_it_must_be() {
    for (name, written) in [
        ("a.txt", "a.txt"),
        ("é.txt", "é.txt"),
        ("a b.txt", "a b.txt\t"),
        ("a\"b", r#""a\"b""#),
        (r"a\b", r#""a\\b""#),
        ("a\n\u{7f}é b", r#""a\012\177é b""#),
    ] {
        let names = DiffNames { old: name, new: name };
        let diff = unified("", "x\n", &ComposedSplices::new(), names);
        assert_eq!(diff, format!("--- {written}\n+++ {written}\n@@ -0,0 +1,1 @@\n+x\n"));
    }
}

#[test]
fn bytes_are_counted_to_the_last() {
    let ends_with = |bytes: usize, end: &str| {
        let new = "x".repeat(bytes) + "\n";
        unified_within("", &new, &ComposedSplices::new(), NAMES, 4).ends_with(end)
    };
    // Four lines of 400 bytes, less what is above it; a sign and a break are bytes too.
    let most = 4 * 400 - "--- f.txt\n+++ f.txt\n@@ -0,0 +1,1 @@\n".len() - "+\n".len();
    assert!(ends_with(most, "xx\n"));
    assert!(ends_with(most + 1, "@@\n... (1 more line: +1 -0)\n"));
}

/// A block that begins or ends like its neighbours may have been added at several places: the diff shows the one that
/// a reader expects.
#[test]
fn a_change_is_where_it_is_read_best() {
    let (a, b, c) = ("#\na\n\n", "#\nb\n\n", "#\nc\n");
    let (old, new) = (format!("{a}{c}"), format!("{a}{b}{c}"));
    let diff = unified(&old, &new, &ComposedSplices::new(), NAMES);
    assert!(diff.contains(" a\n \n+#\n+b\n+\n #\n c\n"), "{diff}");
}

#[test]
fn git_reads_every_name() {
    for name in ["f", "my file.txt", "qu\"ote", "back\\slash", "tab\tand\nbreak", "ñ", " ", "-"] {
        let plain =
            unified("a\n", "b\n", &ComposedSplices::new(), DiffNames { old: name, new: name });
        assert_eq!(git_apply(name, "-p0", "a\n", &plain), "b\n", "{name:?}");
        let (old, new) = (format!("a/{name}"), format!("b/{name}"));
        let prefixed =
            unified("a\n", "b\n", &ComposedSplices::new(), DiffNames { old: &old, new: &new });
        assert_eq!(git_apply(name, "-p1", "a\n", &prefixed), "b\n", "{name:?}");
    }
}

/// An old text, and a new one with the regions that lead there.
fn edited() -> impl Strategy<Value = (String, String, ComposedSplices)> {
    let line = "(a|b|é|-|\\+|\\\\| |)(\n|\n|\n|\r\n|\r)";
    let text = (
        "\u{feff}?",
        prop_oneof![prop::collection::vec(line, 0..4), prop::collection::vec(line, 4..60),],
        "(|end)",
    );
    let text = text.prop_map(|(bom, lines, end)| bom + &lines.concat() + &end);
    let edit = (any::<prop::sample::Index>(), 0usize..20, "(a|b|é|\n|\r){0,6}");
    (text, prop::collection::vec(edit, 0..5), any::<bool>()).prop_map(|(old, edits, all)| {
        let (mut new, mut changed) = (old.clone(), ComposedSplices::new());
        for (start, len, text) in edits {
            let start = new.floor_char_boundary(start.index(new.len() + 1));
            let end = new.floor_char_boundary(start + len);
            new.replace_range(start..end, &text);
            changed.add(start..end, text.len());
        }
        if all && old.len() % 4 == 0 {
            changed.add(0..new.len(), 0);
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
        let names = DiffNames { old: "a/f.txt", new: "b/f.txt" };
        let prefixed = unified(&old, &new, &changed, names);
        prop_assert_eq!(&git_apply("f.txt", "-p1", &old, &prefixed), &new);
    }
}
