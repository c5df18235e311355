//! What every call knows of its file, and every answer.

use files::{FilePath, Hash, MemoryStore};
use serde_json::json;

use crate::limits::{absolute, call};

#[test]
fn a_call_names_its_file_and_an_answer_has_its_hash() {
    let path = absolute("a.txt");
    let uri = format!("file://{path}");
    let by_line = json!([{ "line": 0, "operation": "replace", "content": "b" }]);
    let by_text = json!([{ "old_string": "a", "new_string": "b" }]);
    let code = json!({
        "target_file": "a.txt", "edit_instruction": "x", "start_line": 1, "code_block": "b",
    });
    for (tool, target, arguments, after) in [
        (&tools::FLAT[1], "a.txt", json!({ "name": "a.txt" }), "a\n"),
        (&tools::FLAT[2], "a.txt", json!({ "name": "a.txt", "edits": by_line }), "b\n"),
        (&tools::PLAIN[1], "a.txt", json!({ "name": "a.txt" }), "a\n"),
        (&tools::PLAIN[2], "a.txt", json!({ "name": "a.txt", "append": "b" }), "a\nb\n"),
        (&tools::TEXT[0], &path, json!({ "path": path }), "a\n"),
        (&tools::TEXT[1], &path, json!({ "path": path, "content": "b\n" }), "b\n"),
        (&tools::TEXT[2], &path, json!({ "path": path, "edits": by_text }), "b\n"),
        (&tools::CODE[0], "a.txt", code, "b\n"),
    ] {
        let store = MemoryStore::new(1 << 20);
        store.put(&FilePath::flat("a.txt").unwrap(), "a\n");
        let prepared = tool.prepare(arguments.clone()).unwrap();
        assert_eq!(prepared.targets, [target], "{}", tool.name);
        let reply = call(&store, 1 << 20, tool, arguments).unwrap();
        assert_eq!(reply.hash, Some(Hash::of(after.as_bytes())), "{}", tool.name);
    }
    // Whoever is given a resource edits nothing.
    let resource = tools::RESOURCES[1].prepare(json!({ "uri": uri })).unwrap();
    assert_eq!(resource.targets, [uri]);
    for tool in [&tools::FLAT[0], &tools::RESOURCES[0]] {
        let targets = tool.prepare(json!({})).unwrap().targets;
        assert!(targets.is_empty(), "{}", tool.name);
    }
}

#[test]
fn a_cursor_that_is_none_of_ours_is_refused() {
    for cursor in ["zz", "6"] {
        let failure = tools::RESOURCES[0].prepare(json!({ "cursor": cursor })).err().unwrap();
        assert_eq!(failure.message, "Invalid cursor");
    }
    assert!(tools::RESOURCES[0].prepare(json!({ "cursor": "61" })).is_ok());
}
