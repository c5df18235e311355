//! Patches that Codex applies itself, as diffs.
//!
//! Codex sends only the hunks of a change. Each becomes a diff of its fragment.

use std::path::Path;

use serde_json::{Value, json};

use super::json::{absolute, fenced, list, location, one_line, relative, text, text_content};
use super::tool_call::ToolCall;

/// The change of one file.
pub struct PatchedFile<'a> {
    /// Absolute path.
    path: String,
    kind: PatchKind,
    /// The whole text of an added or deleted file, else the hunks.
    diff: &'a str,
}

enum PatchKind {
    Add,
    Delete,
    Update,
    /// An update that also renames the file to this path.
    Move(String),
}

/// Returns the changes of a `fileChange` item.
pub fn changes<'a>(item: &'a Value, cwd: &Path) -> Vec<PatchedFile<'a>> {
    let change = |change: &'a Value| {
        let diff = text(change, "diff").unwrap_or_default();
        Some(PatchedFile::new(text(change, "path")?, &change["kind"], diff, cwd))
    };
    list(item, "changes").iter().filter_map(change).collect()
}

impl<'a> PatchedFile<'a> {
    /// Makes a change. `kind` has a `type` and, for a rename, a `move_path`.
    pub fn new(path: &str, kind: &Value, diff: &'a str, cwd: &Path) -> Self {
        let kind = match (text(kind, "type"), text(kind, "move_path")) {
            (Some("add"), _) => PatchKind::Add,
            (Some("delete"), _) => PatchKind::Delete,
            (_, Some(to)) => PatchKind::Move(absolute(to, cwd)),
            _ => PatchKind::Update,
        };
        Self { path: absolute(path, cwd), kind, diff }
    }

    /// Returns the path after the change.
    fn at(&self) -> &str {
        if let PatchKind::Move(to) = &self.kind { to } else { &self.path }
    }

    fn show(&self, call: &mut ToolCall) {
        let path = self.at();
        let (old, new) = match self.kind {
            PatchKind::Add => (None, self.diff),
            PatchKind::Delete => (Some(self.diff), ""),
            PatchKind::Update | PatchKind::Move(_) => {
                let hunks = hunks(self.diff);
                call.locations.push(location(path, hunks.first().and_then(|hunk| hunk.line)));
                if hunks.is_empty() && !self.diff.trim().is_empty() {
                    call.content.push(text_content(fenced(self.diff)));
                }
                call.content
                    .extend(hunks.iter().map(|hunk| diff(path, Some(&hunk.old), &hunk.new)));
                return;
            }
        };
        call.locations.push(location(path, None));
        call.content.push(diff(path, old, new));
    }
}

/// Makes the tool call of a patch, whose diffs are shown from the start.
pub fn tool_call(id: &str, changes: &[PatchedFile<'_>], cwd: &Path) -> ToolCall {
    let all = |is: fn(&PatchKind) -> bool| {
        !changes.is_empty() && changes.iter().all(|change| is(&change.kind))
    };
    let (verb, kind) = if all(|kind| matches!(kind, PatchKind::Add)) {
        ("Create", "edit")
    } else if all(|kind| matches!(kind, PatchKind::Delete)) {
        ("Delete", "delete")
    } else if all(|kind| matches!(kind, PatchKind::Move(_))) {
        ("Move", "move")
    } else {
        ("Edit", "edit")
    };
    let title = match changes {
        [] => format!("{verb} files"),
        [change] => {
            let name = relative(&change.path, cwd);
            match &change.kind {
                PatchKind::Move(to) => format!("{verb} {name} to {}", relative(to, cwd)),
                _ => format!("{verb} {name}"),
            }
        }
        several => format!("{verb} {} files", several.len()),
    };
    let mut call = ToolCall { id: id.into(), title: one_line(&title), kind, ..ToolCall::default() };
    for change in changes {
        change.show(&mut call);
    }
    call
}

fn diff(path: &str, old: Option<&str>, new: &str) -> Value {
    json!({"type": "diff", "path": path, "oldText": old, "newText": new})
}

/// The fragment of a file in a hunk, before and after.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// Line of the fragment after the change, from 1, if the hunk names it.
    line: Option<u32>,
    old: String,
    new: String,
}

/// Parses the hunks of a unified diff. Lines beyond the counts of a header are ignored, whatever they begin with.
fn hunks(diff: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut left = RemainingLines::default();
    let mut last = ' ';
    for line in diff.split_terminator('\n') {
        if left.may_end()
            && let Some((start, counted)) = header(line)
        {
            hunks.push(Hunk { line: start, ..Hunk::default() });
            left = counted;
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        let mut chars = line.chars();
        let sign = chars.next().unwrap_or(' ');
        if sign == '\\' {
            // The line before has no newline at its end.
            for (text, sides) in [(&mut hunk.old, " -"), (&mut hunk.new, " +")] {
                if sides.contains(last) && text.ends_with('\n') {
                    text.pop();
                }
            }
        } else if left.take(sign) {
            let line = chars.as_str();
            for (text, sides) in [(&mut hunk.old, " -"), (&mut hunk.new, " +")] {
                if sides.contains(sign) {
                    text.extend([line, "\n"]);
                }
            }
            last = sign;
        }
    }
    hunks
}

/// Remaining lines of a hunk, old and new. `None` if its header has no counts.
#[derive(Default)]
struct RemainingLines(Option<(u64, u64)>);

impl RemainingLines {
    fn may_end(&self) -> bool {
        self.0.is_none_or(|left| left == (0, 0))
    }

    fn take(&mut self, sign: char) -> bool {
        let Some((old, new)) = &mut self.0 else { return " -+".contains(sign) };
        let (from_old, from_new) = match sign {
            ' ' => (1, 1),
            '-' => (1, 0),
            '+' => (0, 1),
            _ => return false,
        };
        let fits = *old >= from_old && *new >= from_new;
        if fits {
            (*old, *new) = (*old - from_old, *new - from_new);
        }
        fits
    }
}

/// Parses `@@ -1,2 +3,4 @@`, or just `@@`, to the new line and the counts.
fn header(line: &str) -> Option<(Option<u32>, RemainingLines)> {
    let mut words = line.strip_prefix("@@")?.split_whitespace();
    let mut range = |sign| {
        let (start, count) = {
            let range: &str = words.next()?.strip_prefix(sign)?;
            range.split_once(',').unwrap_or((range, "1"))
        };
        Some((start.parse::<u32>().ok()?, count.parse::<u64>().ok()?))
    };
    Some(match (range('-'), range('+')) {
        (Some((_, old)), Some((start, new))) => {
            (Some(start.max(1)), RemainingLines(Some((old, new))))
        }
        _ => (None, RemainingLines(None)),
    })
}
