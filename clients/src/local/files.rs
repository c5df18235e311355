//! All files of the folder, hidden ones too, and whether just what was told has become of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::cases::{Case, Place};
use crate::codex::ensure;
use crate::scene::Scene;
use crate::{Outcome, Trouble};

#[derive(PartialEq, Eq)]
pub struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    pub fn of(scene: &Scene) -> Outcome<Self> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(scene.folder())? {
            let entry = entry?;
            files.insert(entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?);
        }
        Ok(Self(files))
    }

    /// The file has become what the answer tells, and nothing else has changed.
    pub fn check_change(
        &self,
        before: &Self,
        case: &Case,
        told: &Value,
        aside: &Path,
    ) -> Outcome<()> {
        let others = |files: &Self| {
            let mut others = files.0.clone();
            others.remove(case.file);
            others
        };
        ensure(others(self) == others(before), || "another file changed, or is new".into())?;
        let (Some(old), Some(new)) = (before.0.get(case.file), self.0.get(case.file)) else {
            return Err(Trouble::Wrong("the file is gone".into()));
        };
        let hash = format!("{:016x}", xxh3_64(new));
        ensure(told["hash"] == hash, || format!("its hash is {hash}: {told}"))?;
        let diff = told["diff"].as_str().unwrap_or_default();
        let patched = patched(aside, case.file, old, diff)?;
        ensure(patched == *new, || format!("the diff makes something else of it:\n{diff}"))?;
        ensure(breaks(old) == breaks(new), || "its line breaks have become others".into())?;
        let (first, last) = untouched(&case.place, old);
        ensure(new.starts_with(first) && new.ends_with(last), || {
            "more changed than the lines that were named".into()
        })
    }
}

/// What the diff makes of the file, as git understands it.
fn patched(aside: &Path, name: &str, old: &[u8], diff: &str) -> Outcome<Vec<u8>> {
    let (file, patch) = (aside.join(name), aside.join("change.diff"));
    fs::write(&file, old)?;
    fs::write(&patch, diff)?;
    let mut git = Command::new("git");
    git.args(["-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "change.diff"]);
    let output = git.current_dir(aside).output()?;
    ensure(output.status.success(), || {
        format!("git does not take the diff: {}\n{diff}", String::from_utf8_lossy(&output.stderr))
    })?;
    Ok(fs::read(file)?)
}

/// Which kinds of line breaks a file has: `\n` and `\r\n`.
fn breaks(bytes: &[u8]) -> [bool; 2] {
    let text = String::from_utf8_lossy(bytes);
    let has = |ends: fn(&str) -> bool| text.split_inclusive('\n').any(ends);
    let windows = |line: &str| line.ends_with("\r\n");
    let unix = |line: &str| line.ends_with('\n') && !line.ends_with("\r\n");
    [has(unix), has(windows)]
}

/// What comes before and after the lines that may change.
fn untouched<'a>(place: &Place, old: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    let (before, after) = match *place {
        Place::Lines(first, last) => (first - 1, last),
        Place::Before(line) => (line - 1, line - 1),
        Place::End => (usize::MAX, usize::MAX),
        Place::File => return (&[], &[]),
    };
    let lines = || old.split_inclusive(|byte| *byte == b'\n');
    let length = |count| lines().take(count).map(<[u8]>::len).sum::<usize>();
    (&old[..length(before)], &old[length(after)..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_change_is_all_but_the_lines_that_were_named() {
        let check = |place: Place, before: &str, after: &str| {
            let (found_before, found_after) = untouched(&place, b"1\n2\r\n3");
            assert_eq!((found_before, found_after), (before.as_bytes(), after.as_bytes()));
        };
        check(Place::Lines(1, 2), "", "3");
        check(Place::Lines(2, 2), "1\n", "3");
        check(Place::Lines(2, 3), "1\n", "");
        check(Place::Before(1), "", "1\n2\r\n3");
        check(Place::Before(3), "1\n2\r\n", "3");
        check(Place::End, "1\n2\r\n3", "");
        check(Place::File, "", "");
    }

    #[test]
    fn line_breaks_of_both_kinds_are_told_apart() {
        for (text, found) in [
            ("", [false, false]),
            ("a\n", [true, false]),
            ("a\r\nb\r\n", [false, true]),
            ("a\r\nb\nc", [true, true]),
        ] {
            assert_eq!(breaks(text.as_bytes()), found, "{text:?}");
        }
    }
}
