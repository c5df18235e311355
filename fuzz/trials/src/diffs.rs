//! Diffs, applied by a simple program and now and then by git.

use std::path::Path;
use std::process::{Command, Stdio};

use text::diff::{unified, unified_within};
use text::{ComposedSplices, DiffNames};

use crate::parts::Parts;
use crate::patch::patch;
use crate::scratch::Scratch;

/// A case has no more of them.
const MOST_EDITS: usize = 16;
/// One of so many cases is git's as well: to start it takes as long as a hundred cases.
const GITS_SHARE: u64 = 256;

/// The diff of two texts leads from one to the other, whether it knows where they differ, does not, or was told wrong.
/// One that is cut is the beginning of the whole, and counts the rest.
pub fn diffs(bytes: &[u8]) {
    try_diff(bytes, is_gits(bytes));
}

/// The same, each one applied by git as well.
pub fn diffs_by_git(bytes: &[u8]) {
    try_diff(bytes, true);
}

fn try_diff(bytes: &[u8], is_gits: bool) {
    let mut parts = Parts::of(bytes);
    let how = parts.byte();
    let old = parts.text();
    let (mut new, mut changed) = (old.clone(), ComposedSplices::new());
    if how % 4 == 3 {
        new = parts.text();
    }
    for _ in 0..MOST_EDITS {
        if parts.are_over() {
            break;
        }
        let start = new.floor_char_boundary(parts.number(new.len() + 1));
        let end = new.floor_char_boundary(start + usize::from(parts.byte()));
        let text = parts.text();
        new.replace_range(start..end, &text);
        changed.add(start..end, text.len());
    }
    match how % 4 {
        1 => changed = ComposedSplices::new(),
        2 => changed.add(0..new.len() / 2, new.len()),
        _ => {}
    }
    let diff = check(&old, &new, &changed);
    if let Some(lines) = usize::from(how >> 2).checked_sub(1) {
        check_cut(&diff, &unified_within(&old, &new, &changed, NAMES, lines), lines);
    }
    if old != new && is_gits {
        check_by_git(&old, &new, &diff);
    }
}

const NAMES: DiffNames<'_> = DiffNames { old: "f.txt", new: "f.txt" };

fn check(old: &str, new: &str, changed: &ComposedSplices) -> String {
    let diff = unified(old, new, changed, NAMES);
    assert_eq!(diff.is_empty(), old == new);
    assert_eq!(patch(old, &diff), new);
    diff
}

fn check_cut(whole: &str, cut: &str, lines: usize) {
    let shown = cut.rfind("... (").filter(|at| *at == 0 || cut[..*at].ends_with('\n'));
    if cut == whole {
        assert!(cut.split_terminator('\n').count() <= lines);
        return;
    }
    let shown = &cut[..shown.expect("a diff that is cut says so")];
    assert!(whole.starts_with(shown));
    let shown_lines = shown.split_terminator('\n').count();
    let more = whole.split_terminator('\n').count() - shown_lines;
    assert!(shown_lines <= lines && more > 0);
    let line = if more == 1 { "line" } else { "lines" };
    assert!(cut[shown.len()..].starts_with(&format!("... ({more} more {line}: ")), "{cut}");
}

/// Whether git gets it, too: which ones do depends on the bytes alone.
fn is_gits(bytes: &[u8]) -> bool {
    let mixed = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |mixed: u64, byte| {
        (mixed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (mixed >> 32).is_multiple_of(GITS_SHARE)
}

fn check_by_git(old: &str, new: &str, diff: &str) {
    let folder = Scratch::new();
    folder.write("f.txt", old);
    folder.write(".diff", diff);
    let git = Command::new("git")
        .args(["apply", "-p0", ".diff"])
        .current_dir(folder.path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", folder.path().parent().unwrap_or(Path::new("/")))
        .stdin(Stdio::null())
        .output()
        .expect("git is there");
    assert!(git.status.success(), "{}\n{diff}", String::from_utf8_lossy(&git.stderr));
    let applied = std::fs::read_to_string(folder.path().join("f.txt"));
    assert_eq!(applied.as_deref().ok(), Some(new));
}
