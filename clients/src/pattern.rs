//! What an answer must be like, as JSON: an object may have more names than are expected, `null` is what is not there,
//! and `…` in a string stands for anything.

use serde_json::Value;

/// Where an answer is not as expected, and how.
pub fn difference(expected: &Value, found: &Value) -> Option<String> {
    at("", expected, found)
}

fn at(place: &str, expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::Object(names), Value::Object(_)) => names.iter().find_map(|(name, expected)| {
            at(&format!("{place}/{name}"), expected, found.get(name).unwrap_or(&Value::Null))
        }),
        (Value::Array(items), Value::Array(found)) if items.len() == found.len() => {
            let mut pairs = items.iter().zip(found).enumerate();
            pairs.find_map(|(index, (item, found))| at(&format!("{place}/{index}"), item, found))
        }
        (Value::String(pattern), Value::String(text)) if fits(pattern, text) => None,
        _ if expected == found => None,
        _ => Some(format!("{place} should be {expected} and is {found}")),
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('…') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts: Vec<_> = rest.split('…').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match text.split_once(part) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(expected: &Value, found: &Value, difference_found: Option<&str>) {
        assert_eq!(difference(expected, found).as_deref(), difference_found);
    }

    #[test]
    fn an_object_may_have_more_names_but_not_fewer() {
        check(&json!({ "a": 1 }), &json!({ "a": 1, "b": 2 }), None);
        check(&json!({ "a": 1 }), &json!({ "b": 2 }), Some("/a should be 1 and is null"));
        check(&json!({ "a": {} }), &json!({ "a": 1 }), Some("/a should be {} and is 1"));
    }

    #[test]
    fn null_is_what_is_not_there() {
        check(&json!({ "a": null }), &json!({}), None);
        check(&json!({ "a": null }), &json!({ "a": {} }), Some("/a should be null and is {}"));
    }

    #[test]
    fn a_list_has_its_items_and_no_others() {
        check(&json!([1, 2]), &json!([1, 2]), None);
        check(&json!([1, 2]), &json!([2, 1]), Some("/0 should be 1 and is 2"));
        check(&json!([1]), &json!([1, 2]), Some(" should be [1] and is [1,2]"));
    }

    #[test]
    fn a_string_is_itself_but_for_the_dots() {
        for pattern in ["one two", "…two", "one…", "o…t…", "…", "one …two"] {
            check(&json!(pattern), &json!("one two"), None);
        }
        for pattern in ["one", "…one", "two…", "…two…one…", "one two…two", ""] {
            assert!(difference(&json!(pattern), &json!("one two")).is_some(), "{pattern}");
        }
    }
}
