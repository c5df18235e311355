//! What must hold of every answer of `ai_get_code_context`, on this project's own sources and on strange ones.

use std::collections::BTreeSet;
use std::path::Path;

use crate::harness::{Folder, Server};
use serde_json::{Value, json};

const CODE: &[&str] = &["--tools=code"];

/// The sources of this project's own crates, copied.
fn sources() -> Folder {
    let folder = Folder::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["text", "files", "code", "tools"] {
        copy(&crates.join(name).join("src"), &folder.file(name));
    }
    folder
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

struct Answer {
    text: String,
    data: Value,
}

fn ask(server: &mut Server, arguments: &Value) -> Answer {
    let answer = server.tool("ai_get_code_context", arguments.clone());
    let result = &answer["result"];
    assert_ne!(result["isError"], true, "{arguments}: {answer}");
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    Answer { text, data: result["structuredContent"].clone() }
}

fn with(arguments: &Value, name: &str, value: Value) -> Value {
    let mut arguments = arguments.clone();
    arguments[name] = value;
    arguments
}

fn questions() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "query": "how are line breaks kept when text is replaced" }),
        json!({ "query": "hash_of_lines", "kinds": ["function", "method"] }),
        json!({ "query": "walk", "files": ["files/tree.rs"], "include": ["snippets", "outline", "structure"] }),
        json!({ "symbols": ["new", "Updater::update_one", "nowhere"] }),
        json!({ "symbols": ["re"], "match": "prefix" }),
        json!({ "symbols": ["Text"], "include": ["references"], "detail": "paths" }),
        json!({ "files": ["text/lines.rs", "code/rank.rs:1-2000", "missing.rs"] }),
        json!({ "include": ["outline"], "depth": 16 }),
        json!({ "include": ["structure"], "depth": 16 }),
        json!({ "query": "lock", "path": "files", "globs": ["!unix/**"], "detail": "signatures" }),
    ]
}

#[test]
fn no_answer_costs_more_than_it_may() {
    let folder = sources();
    let mut server = folder.serve_with(CODE);
    for question in questions() {
        for tokens in [256_usize, 300, 700, 4000, 20_000] {
            let answer = ask(&mut server, &with(&question, "max_tokens", tokens.into()));
            let (text, data) = (answer.text.len(), answer.data.to_string().len());
            assert!(text <= 4 * tokens, "{text} bytes of text for {tokens} tokens: {question}");
            assert!(data <= 4 * tokens, "{data} bytes of data for {tokens} tokens: {question}");
            let used = answer.data["budget"]["used_tokens"].as_u64().unwrap();
            let really = text.max(data).div_ceil(4) as u64;
            // Numbers in it count as if they were as long as they may be.
            assert!((really..=really + 2).contains(&used), "{used}, not {really}: {question}");
        }
    }
}

/// What the data say stands in the text, in the same order.
#[test]
fn text_and_data_tell_the_same() {
    let folder = sources();
    let mut server = folder.serve_with(CODE);
    for question in questions() {
        let answer = ask(&mut server, &question);
        let mut rest = answer.text.as_str();
        let mut next = |fact: &str| {
            let Some(at) = rest.find(fact) else {
                panic!("{question}: `{fact}` is not behind what came before in\n{}", answer.text)
            };
            rest = &rest[at + fact.len()..];
        };
        for result in answer.data["results"].as_array().unwrap() {
            let [kind, path] = ["type", "path"].map(|name| result[name].as_str().unwrap());
            next(&format!("{kind} {path}:{}", result["start_line"]));
            for name in ["language", "kind", "symbol"] {
                if let Some(fact) = result[name].as_str() {
                    next(fact);
                }
            }
            for name in ["hash", "file_hash"] {
                if let Some(hash) = result[name].as_str() {
                    next(&format!("[{hash}]"));
                }
            }
            if let Some(signature) = result["signature"].as_str() {
                next(signature);
            }
            for line in result["text"].as_str().unwrap_or_default().lines() {
                next(line);
            }
        }
        if let Some(tree) = answer.data["structure"]["text"].as_str() {
            next(tree);
        }
        for (name, count) in answer.data["budget"]["omitted"].as_object().unwrap() {
            next(&format!("{count} {name}"));
        }
        for note in answer.data["notes"].as_array().into_iter().flatten() {
            next(note.as_str().unwrap());
        }
    }
}

/// The lines that are shown are those of the file, and their hash lets an edit of them through.
#[test]
fn what_is_shown_is_what_is_there_and_can_be_edited() {
    let folder = sources();
    let mut server = folder.serve_with(CODE);
    let mut seen = 0;
    for question in questions() {
        let answer = ask(&mut server, &question);
        for result in answer.data["results"].as_array().unwrap() {
            let path = result["path"].as_str().unwrap();
            let Some(hash) = result["hash"].as_str() else { continue };
            let [start, end] =
                ["start_line", "end_line"].map(|name| result[name].as_u64().unwrap());
            if let Some(text) = result["text"].as_str() {
                let file = std::fs::read_to_string(folder.file(path)).unwrap();
                let (first, count) = (usize::try_from(start).unwrap() - 1, text.lines().count());
                let lines: Vec<&str> = file.lines().skip(first).take(count).collect();
                assert_eq!(text.trim_end(), lines.join("\n").trim_end(), "{question} {path}");
            }
            let edit = server.tool(
                "ai_edit_code",
                json!({
                    "target_file": path, "edit_instruction": "none", "start_line": start, "end_line": end,
                    "code_block": "// other", "expected_hash": hash, "dry_run": true,
                }),
            );
            assert_ne!(edit["result"]["isError"], true, "{path}:{start}-{end} {edit}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

/// Follows the cursors to the end: everything that was shown, page by page.
fn all_pages(server: &mut Server, question: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut page = ask(server, question);
    for _ in 0..200 {
        found.extend(places(&page.data));
        let Some(cursor) = page.data.get("next_cursor") else { return found };
        page = ask(server, &with(question, "cursor", cursor.clone()));
    }
    panic!("{question}: no end");
}

/// Pages together are all that there is, each result once.
#[test]
fn pages_follow_each_other_until_there_is_no_more() {
    let folder = sources();
    folder.write("empty.rs", "");
    let mut server = folder.serve_with(CODE);
    let questions = [
        json!({ "symbols": ["new"], "include": ["definitions"], "detail": "paths" }),
        json!({ "symbols": ["Text"], "include": ["references"], "detail": "paths" }),
        json!({ "symbols": ["Text/decode", "Root/decode", "Text"], "detail": "paths" }),
        json!({ "query": "line break", "include": ["snippets"], "detail": "paths" }),
        json!({ "query": "hash_of_lines", "detail": "paths" }),
        json!({ "query": "line break", "kinds": ["trait"], "detail": "paths" }),
        json!({ "query": "lock", "files": ["text/lines.rs:1-5", "text/diff.rs:3-9"], "detail": "paths" }),
        json!({ "files": ["gone.rs", "missing.rs", "text/lines.rs", "empty.rs", "code/rank.rs"], "detail": "paths" }),
    ];
    for question in questions {
        let all = with(&with(&question, "max_results", 100.into()), "max_tokens", 20_000.into());
        let expected = all_pages(&mut server, &all);
        for results in [2, 7] {
            let found = all_pages(&mut server, &with(&question, "max_results", results.into()));
            let distinct: BTreeSet<_> = found.iter().collect();
            assert_eq!(distinct.len(), found.len(), "{question}: something came twice");
            // Definitions, snippets and references go on side by side.
            let [found, expected]: [BTreeSet<_>; 2] =
                [found, expected.clone()].map(|all| all.into_iter().collect());
            assert_eq!(found, expected, "{question} by {results}");
        }
        // A small budget cuts pages short.
        let found = all_pages(
            &mut server,
            &with(&with(&question, "max_results", 7.into()), "max_tokens", 300.into()),
        );
        let [found, expected]: [BTreeSet<_>; 2] =
            [found, expected].map(|all| all.into_iter().collect());
        assert_eq!(found, expected, "{question} within 300 tokens");
    }
}

/// Whatever files are called, an answer keeps to its budget.
#[test]
fn names_that_take_more_as_json_are_counted_so() {
    let folder = Folder::new();
    for number in 0..60 {
        let name = format!("{number} {} a.py", "\"\\".repeat(20));
        folder.write(&name, format!("def name_{number}():\n    return \"\\\"\"\n"));
    }
    let mut server = folder.serve_with(CODE);
    let symbols: Vec<String> = (0..13).map(|number| format!("nowhere_{number}")).collect();
    let every = ["structure", "outline", "definitions", "references", "snippets"];
    for question in [
        json!({}),
        json!({ "include": ["structure"] }),
        json!({ "query": "name return", "symbols": symbols, "include": every }),
    ] {
        for tokens in [256_usize, 400, 600, 1000] {
            let answer = ask(&mut server, &with(&question, "max_tokens", tokens.into()));
            let (text, data) = (answer.text.len(), answer.data.to_string().len());
            assert!(text.max(data) <= 4 * tokens, "{text}, {data} for {tokens}: {question}");
        }
    }
}

/// Of several names each comes before the second of another.
#[test]
fn every_name_that_is_asked_for_is_shown() {
    let folder = sources();
    let mut server = folder.serve_with(CODE);
    let names = ["Text", "Root", "new", "Updater", "of", "Hash", "Line", "splice", "Store"];
    let question = json!({ "symbols": names, "include": ["definitions"], "detail": "paths" });
    let answer = ask(&mut server, &question);
    let results = answer.data["results"].as_array().unwrap();
    for name in names {
        let is_it =
            |result: &Value| result["symbol"].as_str().unwrap().rsplit('/').next() == Some(name);
        assert!(results.iter().any(is_it), "{name}: {}", answer.text);
    }
}

/// Somebody who asks for nothing is told something of a project of one file, too.
#[test]
fn a_small_project_has_a_map() {
    let folder = Folder::new();
    folder.write(
        "main.py",
        "class Shop:\n    def open(self):\n        pass\n\n\ndef main():\n    Shop().open()\n",
    );
    let mut server = folder.serve_with(CODE);
    for question in
        [json!({}), json!({ "include": ["definitions"] }), json!({ "include": ["outline"] })]
    {
        let answer = ask(&mut server, &question);
        assert!(answer.text.contains("class Shop"), "{question}: {}", answer.text);
        assert_eq!(answer.data["stats"]["files_scanned"], 1, "{question}");
    }
}

/// However a file is named, it is one file.
#[test]
fn a_file_is_the_same_by_every_path() {
    let folder = Folder::new();
    folder.write("main.py", "def main():\n    pass\n");
    let mut server = folder.serve_with(CODE);
    let absolute = folder.file("main.py").display().to_string();
    let answer = ask(&mut server, &json!({ "files": ["./main.py", "main.py", absolute] }));
    assert_eq!(places(&answer.data), ["\"main.py\":1"], "{}", answer.text);
}

/// Where there is nothing to show, an answer says so, and what to try.
#[test]
fn nothing_is_told_as_nothing() {
    let folder = Folder::new();
    folder.write("main.py", "def main():\n    pass\n");
    folder.write("empty.py", "");
    let mut server = folder.serve_with(CODE);
    for (question, said) in [
        (json!({ "query": "nowhere nothing" }), "no file contains any of these words"),
        (json!({ "symbols": ["nowhere"] }), "`nowhere` occurs in no file"),
        (json!({ "files": ["empty.py"] }), "`empty.py` is empty"),
        (json!({ "include": ["snippets"] }), "snippets need `query`"),
    ] {
        let answer = ask(&mut server, &question);
        assert_eq!(answer.data["results"], json!([]), "{question}");
        assert!(answer.text.contains(said), "{question}: {}", answer.text);
    }
}

/// What a file says cannot be taken for what the answer says.
#[test]
fn words_of_a_file_are_further_in_than_those_of_the_answer() {
    let folder = Folder::new();
    folder.write("x.yaml", "note: do something else\n");
    let mut server = folder.serve_with(CODE);
    let answer = ask(&mut server, &json!({ "symbols": ["note"], "detail": "signatures" }));
    assert!(answer.text.contains("note: do"), "{}", answer.text);
    assert!(!answer.text.lines().any(|line| line.starts_with("note: do")), "{}", answer.text);
}

/// Long lines, many parts and much to parse are no reason for an error.
#[test]
fn what_is_large_is_answered_in_part() {
    let folder = Folder::new();
    folder.write("line.js", "var e=1;".repeat(300_000));
    folder.write(
        "parts.swift",
        (0..50_000).fold(String::new(), |all, n| format!("{all}func f{n}() {{}}\n")),
    );
    folder.write(
        "rows.py",
        (0..3000).fold(String::new(), |all, n| format!("{all}def g{n}(): pass\n")),
    );
    folder.write(
        "macros.h",
        (0..30_000).fold(String::new(), |all, n| format!("{all}#define REG_{n} {n}\n")),
    );
    let mut server = folder.serve_with(CODE);
    ask(&mut server, &json!({ "query": "var e" }));
    let many = ask(&mut server, &json!({ "symbols": ["f"], "match": "prefix" }));
    assert!(
        many.data["budget"]["omitted"]["definitions"].as_u64().unwrap() > 40_000,
        "{}",
        many.text
    );
    let rows = ask(&mut server, &json!({ "files": ["rows.py"], "max_tokens": 20_000 }));
    assert_eq!(rows.data["budget"]["truncated"], true, "{}", rows.data["budget"]);
    let shown = rows.data["results"][0]["text"].as_str().unwrap().lines().count();
    assert_eq!(rows.data["results"][0]["more"], 3000 - shown);
    let macros = ask(&mut server, &json!({ "files": ["macros.h"] }));
    assert!(macros.text.contains("\n2 macro #define REG_1 1\n"), "{}", macros.text);
}

fn places(data: &Value) -> Vec<String> {
    let results = data["results"].as_array().unwrap().iter();
    results.map(|result| format!("{}:{}", result["path"], result["start_line"])).collect()
}

/// Whatever is in the files, there is an answer.
#[test]
fn strange_files_are_answered_for() {
    let folder = Folder::new();
    folder.write("binary.rs", b"fn a() {}\0".as_slice());
    folder.write("latin.py", b"# \xe9\ndef a(): pass\n".as_slice());
    folder.write("empty.go", "");
    folder.write("mark.rs", "\u{feff}fn marked_name() {}\r\nfn other() {}\r\n");
    folder.write("alone.js", "function lone_returns() {\r}\rlone_returns()\r");
    folder.write("long.js", format!("const long_line = \"{}\";\n", "x".repeat(100_000)));
    folder.write("deep.py", "(".repeat(50_000));
    folder.write("broken.rs", "fn broken_name( {{{{\nstruct\n");
    folder.write("\u{1f600} é.rs", "fn smiling() {}\n");
    folder.write("large.c", "int large_name(void);\n".repeat(100_000));
    let mut server = folder.serve_with(CODE);
    ask(&mut server, &json!({}));
    let expected = [
        ("marked_name", "mark.rs", 1),
        ("lone_returns", "alone.js", 1),
        ("smiling", "\u{1f600} é.rs", 1),
        ("long_line", "long.js", 1),
        ("large_name", "large.c", 1),
    ];
    for (name, path, line) in expected {
        let answer = ask(&mut server, &json!({ "symbols": [name], "max_tokens": 1000 }));
        let first = &answer.data["results"][0];
        assert_eq!(first["path"], path, "{name}: {}", answer.data);
        assert_eq!(first["start_line"], line, "{name}: {}", answer.data);
        let answer = ask(&mut server, &json!({ "query": name, "max_tokens": 1000 }));
        assert_eq!(answer.data["results"][0]["path"], path, "{name}: {}", answer.data);
    }
    let long = ask(&mut server, &json!({ "files": ["long.js:1"] }));
    assert!(long.text.contains("lines are cut at 300 characters"), "{}", long.text);
    for path in ["binary.rs", "latin.py"] {
        let answer = server.tool("ai_get_code_context", json!({ "files": [path] }));
        assert_eq!(answer["result"]["isError"], true, "{path}: {answer}");
    }
}
