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
    fn what_is_no_text_is_refused_as_ever() {
        let lone = format!("\"{}\\ud83d\"", "a".repeat(LARGE));
        check(&lone);
        check(&format!("\"{}\\ud83dx{}\"", "a".repeat(LARGE - 9), "b".repeat(LARGE)));
        check(&format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)));
        check(&format!("[{}1]", "1,".repeat(LARGE)));
        check(&format!("{{\"a\":\"{}\",\"a\":2}}", "x".repeat(LARGE)));
    }
}
