//! A call's arguments, read without a second copy of a large text.
//!
//! The parser decodes a text with escapes into a buffer of its own and then copies it, so that a file to be written would
//! be held three times. A large text is therefore decoded piece by piece.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Result, Value};

/// Bytes of JSON that are worth it, and of one piece.
const LARGE: usize = 64 * 1024;
/// How deep a text may be to be found: `edits[0].new_string` is third.
const DEPTH: usize = 3;

/// More values than any call has use for. Of JSON a value may take two bytes, and of memory some hundred times as much.
pub const MOST: usize = 1 << 18;
pub const TOO_MANY: &str = "the arguments hold more than 262144 names and values";

/// How many names and values there are in JSON, counted without reading it.
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

/// What follows the text that has begun.
fn after_text(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        if rest[at] == b'"' {
            return &rest[at + 1..];
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    &[]
}

pub fn read(raw: &RawValue) -> Result<Value> {
    read_within(raw, DEPTH)
}

fn read_within(raw: &RawValue, depth: usize) -> Result<Value> {
    let json = raw.get();
    match json.as_bytes().first() {
        _ if json.len() < LARGE || depth == 0 => serde_json::from_str(json),
        Some(b'"') => text(json).map(Value::String),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(json)?;
            items.into_iter().map(|item| read_within(item, depth - 1)).collect()
        }
        Some(b'{') => {
            let Members(members) = serde_json::from_str(json)?;
            let read = |(name, raw)| Ok((name, read_within(raw, depth - 1)?));
            members.into_iter().map(read).collect::<Result<Map<_, _>>>().map(Value::Object)
        }
        _ => serde_json::from_str(json),
    }
}

/// The members of an object, in order, not read any further.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Each)
    }
}

/// What a JSON text stands for.
fn text(json: &str) -> Result<String> {
    let mut rest = &json[1..json.len() - 1];
    let mut text = String::with_capacity(rest.len());
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(piece(rest));
        text.push_str(&serde_json::from_str::<String>(&["\"", piece, "\""].concat())?);
        rest = more;
    }
    Ok(text)
}

/// How long the next piece is: it must not end within an escape sequence, or between the two of a pair.
fn piece(rest: &str) -> usize {
    if rest.len() <= LARGE {
        return rest.len();
    }
    let bytes = rest.as_bytes();
    let mut end = rest.floor_char_boundary(LARGE);
    // An escape has up to six bytes, a pair of them twelve.
    while let Some(start) = memchr::memrchr(b'\\', &bytes[end.saturating_sub(6)..end]) {
        let start = end.saturating_sub(6) + start;
        let slashes = bytes[..=start].iter().rev().take_while(|byte| **byte == b'\\').count();
        let is_pair_begun = matches!(
            bytes[start + 1..],
            [b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..]
        );
        let len = if bytes.get(start + 1) == Some(&b'u') { 6 } else { 2 };
        if slashes % 2 == 0 || (start + len <= end && !is_pair_begun) {
            break;
        }
        end = start;
    }
    end.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str) {
        let raw: &RawValue = serde_json::from_str(json).expect("a value");
        let (ours, theirs) = (read(raw), serde_json::from_str::<Value>(json));
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => assert!(ours == theirs, "they differ"),
            (ours, theirs) => assert_eq!(ours.is_err(), theirs.is_err()),
        }
    }

    /// Each kind of escape, at each place around the end of a piece.
    #[test]
    fn pieces_end_between_escapes() {
        for unit in [r"\n", r"\\", r"\u00e9", r"\ud83d\ude00", r#"\""#, "é", "😀", r"\\\\n", "x"]
        {
            for before in 0..14 {
                let text = "a".repeat(before) + &unit.repeat(3 * LARGE / unit.len());
                check(&format!("\"{text}\""));
                check(&format!(
                    r#"{{"path":"a","edits":[{{"new_string":"{text}","old":[1]}},2]}}"#
                ));
            }
        }
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
        check(&format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)));
        check(&format!("[{}1]", "1,".repeat(LARGE)));
        check(&format!("{{\"a\":\"{}\",\"a\":2}}", "x".repeat(LARGE)));
    }
}
