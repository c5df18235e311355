//! Parses a call's arguments without a second copy of a large text.
//!
//! `serde_json` decodes a string with escapes into a buffer of its own and then copies it, so that a file to be written would
//! be held three times. Large strings are therefore decoded here.

use serde_json::value::RawValue;
use serde_json::{Map, Result, Value};

/// Strings with fewer bytes of JSON are left to `serde_json`.
const LARGE: usize = 64 * 1024;
/// How deep large strings are looked for: `edits[0].new_string` is third.
const DEPTH: usize = 3;

/// Values that arguments may have. A value may take two bytes of JSON, and a hundred times as much memory.
pub const VALUES_MAX: usize = 1 << 18;
pub const TOO_MANY: &str = "the arguments have more than 262144 names and values";

pub fn are_too_many(json: &[u8]) -> bool {
    // So many values take more bytes than that.
    json.len() > VALUES_MAX && count(json) > VALUES_MAX
}

/// Counts the names and values in JSON without parsing it.
pub fn count(json: &[u8]) -> usize {
    let (mut rest, mut count) = (json, 1);
    while let Some((&byte, more)) = rest.split_first() {
        rest = match byte {
            b'"' => after_text(more),
            b',' | b':' | b'[' | b'{' => {
                count += 1;
                more
            }
            _ => more,
        };
    }
    count
}

/// The rest behind the string that has begun.
fn after_text(rest: &[u8]) -> &[u8] {
    text::end_of_text(rest).map_or(&[], |end| &rest[end + 1..])
}

/// The members of a JSON object, names and values as they are written. Empty if it is no object.
pub fn members(json: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = json.strip_prefix('{').unwrap_or_default();
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start().trim_start_matches(',').trim_ascii_start();
        let (name, value) = rest.split_at(name_length(rest)?);
        let value = value.trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
        let (value, more) = value.split_at(value_length(value.as_bytes()));
        rest = more;
        Some((name, value))
    })
}

fn name_length(json: &str) -> Option<usize> {
    let text = json.as_bytes().strip_prefix(b"\"")?;
    Some(json.len() - after_text(text).len())
}

fn value_length(json: &[u8]) -> usize {
    let (mut rest, mut depth) = (json, 0_usize);
    while let Some((&byte, more)) = rest.split_first() {
        match byte {
            b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' if depth == 0 => break,
            b'}' | b']' => depth -= 1,
            b'{' | b'[' => depth += 1,
            _ => {}
        }
        rest = if byte == b'"' { after_text(more) } else { more };
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            break;
        }
    }
    json.len() - rest.len()
}

/// Parses JSON.
pub fn read(json: &str) -> Result<Value> {
    read_within(json, DEPTH)
}

fn read_within(json: &str, depth: usize) -> Result<Value> {
    match json.as_bytes().first() {
        _ if json.len() < LARGE || depth == 0 => serde_json::from_str(json),
        Some(b'"') => read_text(json).map(Value::String),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(json)?;
            items.into_iter().map(|item| read_within(item.get(), depth - 1)).collect()
        }
        Some(b'{') => {
            let read = |(name, value)| {
                Ok((serde_json::from_str::<String>(name)?, read_within(value, depth - 1)?))
            };
            members(json).map(read).collect::<Result<Map<_, _>>>().map(Value::Object)
        }
        _ => serde_json::from_str(json),
    }
}

/// Decodes a JSON string. Errors come from the parser.
fn read_text(json: &str) -> Result<String> {
    let inner = &json[1..json.len() - 1];
    text::unescape(inner).map_or_else(|| serde_json::from_str(json), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str) {
        let raw: &RawValue = serde_json::from_str(json).expect("a value");
        let (ours, theirs) = (read(raw.get()), serde_json::from_str::<Value>(json));
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => assert!(ours == theirs, "they differ"),
            (ours, theirs) => assert_eq!(ours.is_err(), theirs.is_err()),
        }
    }

    /// Each kind of escape, alone and among others.
    #[test]
    fn escapes_are_read_as_ever() {
        let units = [
            r"\n",
            r"\t",
            r"\r",
            r"\b",
            r"\f",
            r"\/",
            r"\\",
            r#"\""#,
            r"\u0000",
            r"\u00e9",
            r"\u00E9n",
            r"\ud83d\ude00",
            r"\uD83D\uDE00\n",
            r"\\\\n",
            r"\\u0041",
            "é",
            "😀",
            "x",
        ];
        for unit in units {
            for before in 0..3 {
                let text = "a".repeat(before) + &unit.repeat(3 * LARGE / unit.len());
                check(&format!("\"{text}\""));
                check(&format!(
                    r#"{{"path":"a","edits":[{{"new_string":"{text}","old":[1]}},2]}}"#
                ));
            }
        }
    }

    /// A value of any size that is no string, array or object is a number.
    #[test]
    fn a_number_may_be_long() {
        check(&format!("[{}]", "1".repeat(3 * LARGE)));
        check(&format!("0.{}", "1".repeat(3 * LARGE)));
    }

    #[test]
    fn members_are_found_as_they_stand() {
        let check = |json: &str, expected: &[(&str, &str)]| {
            let found: Vec<_> = members(json).collect();
            assert_eq!(found, expected, "{json}");
            // What serde finds in it is the same.
            let theirs: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
            let name = |name| serde_json::from_str::<String>(name).expect("a name");
            let value = |value| serde_json::from_str::<Value>(value).expect("a value");
            let ours: Map<_, _> = found.iter().map(|(n, v)| (name(n), value(v))).collect();
            assert_eq!(ours, theirs, "{json}");
        };
        check("{}", &[]);
        check("{ }", &[]);
        check("null", &[]);
        check("[1]", &[]);
        check("\"{\"", &[]);
        check(r#"{"a":1}"#, &[(r#""a""#, "1")]);
        check(r#"{ "a" : -1.5e3 , "b":null}"#, &[(r#""a""#, "-1.5e3"), (r#""b""#, "null")]);
        check(r#"{"a\"":"\\","b":"}\"{,"}"#, &[(r#""a\"""#, r#""\\""#), (r#""b""#, r#""}\"{,""#)]);
        check(
            "{\"a\":[{\"b\":[]},\"]\"]\n,\t\"c\":{\"d\":{}} }",
            &[("\"a\"", "[{\"b\":[]},\"]\"]"), ("\"c\"", "{\"d\":{}}")],
        );
    }

    #[test]
    fn values_are_counted_and_texts_are_not_looked_into() {
        let check = |json: &str, number| assert_eq!(count(json.as_bytes()), number, "{json}");
        check("1", 1);
        check("[]", 2);
        check(r#"{"a":"b,c:d[e{f"}"#, 3);
        check(r#"{"a\\":[1,"\",,\"",{}]}"#, 7);
        check(r#"["broken, \"#, 2);
        check(&format!("[{}1]", "1,".repeat(1000)), 1002);
    }

    #[test]
    fn what_is_no_text_is_refused_as_ever() {
        let lone = format!("\"{}\\ud83d\"", "a".repeat(LARGE));
        check(&lone);
        check(&format!("\"{}\\ud83dx{}\"", "a".repeat(LARGE - 9), "b".repeat(LARGE)));
        for half in [
            r"\ud83d\n",
            r"\ud83d\ud83d",
            r"\ude00",
            r"\ude00\ud83d",
            r"\ud83d\\\\\\\\",
            r"\ud83déééé",
        ] {
            check(&format!("\"{}{half}\"", "a".repeat(LARGE)));
            check(&format!("\"{half}{}\"", "a".repeat(LARGE)));
        }
        check(&format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)));
        check(&format!("[{}1]", "1,".repeat(LARGE)));
        check(&format!("{{\"a\":\"{}\",\"a\":2}}", "x".repeat(LARGE)));
    }
}
