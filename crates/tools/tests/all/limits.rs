//! The largest size of a file, to the byte.

use std::path::Path;
use std::time::{Duration, Instant};

use files::{Call, FilePath, LineCounts, MemoryStore, Root, Store};
use serde_json::{Value, json};
use tools::{Context, Failure, FailureKind, Limits, ToolOutput, ToolSpec};

pub fn call(
    store: &dyn Store,
    max_size: u64,
    tool: &'static ToolSpec,
    arguments: Value,
) -> Result<ToolOutput, Failure> {
    let root = Root::open(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let limits = Limits::new(max_size, Duration::from_mins(1));
    tool.prepare(arguments)?.run(&Context {
        root: &root,
        store,
        line_counts: &LineCounts::default(),
        limits: &limits,
        call: &Call::until(Instant::now() + limits.timeout),
        expected: None,
    })
}

/// The path of a file, for tools that take no other.
pub fn absolute(name: &str) -> String {
    format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"))
}

fn store(text: &str) -> MemoryStore {
    let store = MemoryStore::new(1 << 20);
    store.put(&FilePath::flat("a.txt").unwrap(), text);
    store
}

/// Lines as they are shown, with `between` between two of them: as many as are within the size, and at least one. Also
/// tells how many.
fn fitting(shown: &[String], between: &str, lines: &[&str], max_size: usize) -> (String, usize) {
    let mut text = shown[0].clone();
    for (index, line) in lines.iter().enumerate().skip(1) {
        if text.len() + line.len() > max_size {
            return (text, index);
        }
        text = [&text, between, &shown[index]].concat();
    }
    (text, lines.len())
}

#[test]
fn numbered_lines_end_where_the_largest_size_is_reached() {
    let all = ["one\n", "\n", "two two\r\n", "three\r", "four\n", "\n"];
    let store = store(&all.concat());
    for (first, max_size) in (0..all.len()).flat_map(|first| (0..60).map(move |max| (first, max))) {
        let lines = &all[first..];
        let numbered = (first + 1..).zip(lines).map(|(number, line)| format!("{number}\t{line}"));
        let (text, count) = fitting(&numbered.collect::<Vec<_>>(), "", lines, max_size);
        let arguments =
            json!({ "path": absolute("a.txt"), "line": first + 1, "line_numbers": true });
        let reply = call(&store, max_size as u64, &tools::TEXT[0], arguments).unwrap();
        assert_eq!(reply.blocks[0].to_string(), text, "from line {first}, {max_size} bytes");
        let (meta, next) = (reply.meta.unwrap(), first + count);
        assert_eq!(meta["returned_lines"], count);
        let next = (next < all.len()).then(|| json!(next + 1));
        assert_eq!(meta.get("next_line"), next.as_ref());

        let bare = |line: &str| line.trim_end_matches(['\n', '\r']).to_owned();
        let numbered =
            (first..).zip(lines).map(|(number, line)| format!("{number}\t{}", bare(line)));
        let (text, count) = fitting(&numbered.collect::<Vec<_>>(), "\n", lines, max_size);
        let arguments = json!({ "name": "a.txt", "start_line": first, "line_numbers": true });
        let reply = call(&store, max_size as u64, &tools::FLAT[1], arguments).unwrap();
        let head = format!("File: a.txt (lines {first}-{} of 6 total)", first + count - 1);
        let expected = format!("{head}\n\n{text}");
        assert_eq!(reply.blocks[0].to_string(), expected, "from line {first}, {max_size} bytes");
    }
}

#[test]
fn what_is_written_may_be_as_large_as_the_largest_size_and_no_larger() {
    let edits = json!([{ "old_string": "a", "new_string": "abc" }]);
    let code = json!({ "target_file": "a.txt", "edit_instruction": "x", "start_line": 1, "code_block": "abc" });
    let calls = [
        (&tools::FLAT[2], json!({ "name": "a.txt", "append": "c" })),
        (&tools::TEXT[1], json!({ "path": absolute("a.txt"), "content": "abc\n" })),
        (&tools::TEXT[2], json!({ "path": absolute("a.txt"), "edits": edits })),
        (&tools::CODE[0], code),
    ];
    for (tool, arguments) in calls {
        for max_size in 0..6 {
            let outcome = call(&store("a\n"), max_size, tool, arguments.clone());
            let kind = outcome.as_ref().err().map(|failure| failure.kind);
            let expected = (max_size < 4).then_some(FailureKind::TooLarge);
            assert_eq!(kind, expected, "{}, {max_size} bytes", tool.name);
        }
    }
}

#[test]
fn a_name_that_may_have_been_meant_is_looked_for_among_so_many() {
    for (others, is_found) in [(0, true), (1999, true), (2000, false), (2001, false)] {
        let store = MemoryStore::new(1 << 20);
        let put = |name: &str| store.put(&FilePath::flat(name).unwrap(), "");
        (0..others).for_each(|index| put(&format!("a{index}")));
        put("main.rs");
        let failure = call(&store, 1 << 20, &tools::TEXT[0], json!({ "path": absolute("man.rs") }))
            .unwrap_err();
        let hint = failure.hint.unwrap_or_default();
        assert_eq!(hint.contains("`main.rs`"), is_found, "{others} others: {hint}");
    }
}

#[test]
fn so_many_notes_are_told_of_edits() {
    let mark = |index: usize| format!("<{index}>");
    let text: String = (0..25).map(|index| mark(index).repeat(index + 2)).collect();
    let edit = |index| json!({ "old_string": mark(index), "new_string": "", "replace_all": true });
    for (edits, notes) in [(19, 19), (20, 20), (21, 20), (25, 20)] {
        let edits: Vec<_> = (0..edits).map(edit).collect();
        let arguments = json!({ "path": absolute("a.txt"), "edits": edits });
        let data = call(&store(&text), 1 << 20, &tools::TEXT[2], arguments).unwrap().data.unwrap();
        assert_eq!(data["notes"].as_array().unwrap().len(), notes, "{}", edits.len());
    }
}
