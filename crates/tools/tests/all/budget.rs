//! What `ai_get_code_context` shows as its budget grows.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use expect_test::expect_file;
use files::{Call, DiskOptions, DiskStore, Durability, LineCounts, Root};
use serde_json::{Map, Value, json};
use tools::{Context, Limits};

use crate::cases::play;

struct Tree {
    root: Arc<Root>,
    store: DiskStore,
}

impl Tree {
    fn ask(&self, question: &Value) -> (String, Map<String, Value>) {
        let limits = Limits::new(1 << 20, Duration::from_mins(1));
        let tool = tools::find("code", "ai_get_code_context").unwrap();
        let reply = tool.prepare(question.clone()).unwrap().run(&Context {
            root: &self.root,
            store: &self.store,
            line_counts: &LineCounts::default(),
            limits: &limits,
            call: &Call::until(Instant::now() + limits.timeout),
            expected: None,
        });
        let reply = reply.unwrap();
        (reply.blocks[0].to_string(), reply.data.unwrap())
    }

    /// What is answered does not exceed what may be.
    fn ask_within(&self, question: &Value) -> (String, Map<String, Value>) {
        let (text, data) = self.ask(question);
        let used = data["budget"]["used_tokens"].as_u64().unwrap();
        let said = text.len().max(Value::from(data.clone()).to_string().len()) as u64;
        let is_within = said <= 4 * used && used <= question["max_tokens"].as_u64().unwrap();
        assert!(is_within, "{question}: {said} bytes, {used} tokens");
        (text, data)
    }
}

/// Parts of one line and of many, in two files, one of which uses the other; one line is too long to be shown.
fn tree(folder: &std::path::Path) -> Tree {
    let steps = |count: usize, what: &str| -> String {
        (0..count).flat_map(|step| [format!("    {what}({step});"), "\n".into()]).collect()
    };
    let (mut parts, mut uses) = (String::new(), String::new());
    for count in [0, 1, 2, 5, 7, 30, 12] {
        let _ = write!(parts, "/// Takes {count} steps.\npub fn part_{count}() {{\n");
        let _ = write!(parts, "{}}}\n\n", steps(count, "step"));
        let _ = write!(uses, "fn use_of_part_{count}() {{\n    part_{count}();\n}}\n\n");
    }
    let _ = writeln!(uses, "const LONG_PART: &str = \"{}\";", "long ".repeat(80));
    for (name, text) in
        [("parts.rs", parts), ("uses.rs", uses), ("inner/more.py", "x = 1\n".into())]
    {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Arc::new(Root::open(folder).unwrap());
    let options = DiskOptions { max_size: 1 << 20, durability: Durability::None };
    Tree { store: DiskStore::open(Arc::clone(&root), options), root }
}

/// A line for each result: its place, how much is shown of it, and how much is not.
fn shown(data: &Map<String, Value>) -> String {
    let mut text = String::new();
    for result in data["results"].as_array().unwrap() {
        let word = |name: &str| result[name].as_str().unwrap_or("-").to_owned();
        let [kind, path, detail] = ["type", "path", "detail"].map(word);
        let lines = result.get("text").map_or(0, |text| text.as_str().unwrap().lines().count());
        let (first, last) = (&result["start_line"], &result["end_line"]);
        let _ = write!(text, "  {kind} {path}:{first}-{last}: {detail}, {lines} lines");
        let more = result.get("more").map(|more| format!(", {more} more")).unwrap_or_default();
        let _ = writeln!(text, "{more}, signature {}", word("signature"));
    }
    text
}

#[test]
fn the_more_may_be_said_the_more_is_shown() {
    let folder = play::folder();
    // Its path is a part of each answer: where folders lie too deep, other figures would be right.
    if folder.path().as_os_str().len() != play::LENGTH {
        return;
    }
    let tree = tree(folder.path());
    let mut told = String::new();
    for question in [
        json!({ "symbols": ["part"], "match": "substring" }),
        json!({ "query": "steps of a part" }),
        json!({ "query": "steps of a part", "detail": "signatures" }),
        json!({ "files": ["parts.rs", "uses.rs"], "include": ["outline"] }),
        json!({}),
    ] {
        for tokens in [256, 300, 350, 420, 512, 640, 800, 1000, 1300, 1700, 2400, 4000] {
            let mut question = question.clone();
            question["max_tokens"] = tokens.into();
            let (text, data) = tree.ask_within(&question);
            let Value::Object(budget) = &data["budget"] else { panic!("{data:?}") };
            let structure = data.get("structure").map(|all| all["text"].to_string().len());
            let cursor = data.get("next_cursor").is_some();
            let rest =
                (&budget["truncated"], &budget["omitted"], structure, cursor, data.get("notes"));
            let used = &budget["used_tokens"];
            let _ = write!(told, "{question}: {used} tokens {rest:?}\n{}", shown(&data));
            for more in text.lines().filter(|line| line.starts_with("... ")) {
                let _ = writeln!(told, "  {more}");
            }
            told.push('\n');
        }
    }
    expect_file!["budget.txt"].assert_eq(&told);
}

#[test]
fn what_says_least_gives_way() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(folder.path());
    let missing = |index: usize| format!("missing_{index}_{}.rs", "x".repeat(80));
    let files: Vec<_> = ["parts.rs".into()].into_iter().chain((0..9).map(missing)).collect();
    let counts = |tokens: usize| {
        let include = ["structure", "outline"];
        let question = json!({ "files": files, "include": include, "max_tokens": tokens });
        let (_, data) = tree.ask_within(&question);
        let count = |name: &str| data.get(name).map_or(0, |all| all.as_array().unwrap().len());
        (count("results"), count("notes"), data.contains_key("structure"))
    };
    assert_eq!(counts(4000), (1, 9, true));
    let mut last = 0;
    for tokens in (256..600).step_by(8) {
        let (_, notes, structure) = counts(tokens);
        assert!(notes >= last && (structure || notes == 0), "{tokens} tokens");
        last = notes;
    }
    assert_eq!(last, 9);
    assert!(counts(256).1 < 9);
}
