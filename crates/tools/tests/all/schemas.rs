//! The schemas of answers: shapes, and not a word besides.

use serde_json::Value;
use tools::ToolSpec;

fn check(name: &str, schema: &Value) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                let says = ["description", "minimum", "required"].contains(&key.as_str());
                assert!(!says || value.is_object(), "{name}: {key}: {value}");
                check(name, value);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| check(name, item)),
        _ => {}
    }
}

#[test]
fn the_schema_of_an_answer_is_its_shape_alone() {
    let mut shaped = Vec::new();
    for entry in tools::agent_tools() {
        assert!(entry.description().len() > 20, "{}: {}", entry.name, entry.description());
        let Some(mut schema) = ToolSpec::output_schema(entry) else { continue };
        let properties = schema["properties"].as_object_mut().unwrap();
        assert!(properties.len() > 1, "{}: {properties:?}", entry.name);
        // What a failure says can be relied on.
        if let Some(Value::Object(error)) = properties.get_mut("error") {
            assert_eq!(error.remove("required"), Some(serde_json::json!(["code", "message"])));
        }
        check(entry.name, &schema.into());
        shaped.push(entry.name);
    }
    shaped.sort_unstable();
    let expected = [
        "ai_edit_code",
        "ai_get_code_context",
        "edit_file",
        "list_files",
        "multi_edit_text_file",
        "search_files",
        "write_text_file",
    ];
    assert_eq!(shaped, expected);
}
