//! Lines of JSON-RPC: what one coming in means, and how one going out is written.
//!
//! Coming in, a message is looked at once without copying it: a tool's arguments go straight to the tool, and
//! only the small rest becomes `rmcp`'s types. Going out, a large text is streamed from the file's own buffer
//! into the place that a marker keeps for it, so that it is neither copied nor escaped in memory.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::sync::LazyLock;

use memchr::memmem::Finder;
use rmcp::model::RequestId;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tools::{Block, Reply};

use crate::arguments;
use crate::fault;
use crate::mcp::Parked;
use crate::room::Share;

/// Names and values that a message may have besides the arguments of a call: as objects they take a hundred times as much.
pub const MOST_VALUES: usize = 256;

/// What a client says.
#[derive(Debug)]
pub enum Said<'a> {
    Message(Envelope<'a>),
    /// To a request of ours; no result: it is an error.
    Answer(RequestId, Option<&'a RawValue>),
}

/// A request or notification, borrowed from its line.
#[derive(Debug)]
pub struct Envelope<'a> {
    /// `None`: a notification.
    pub id: Option<RequestId>,
    pub method: Cow<'a, str>,
    pub params: Option<&'a RawValue>,
}

/// A JSON-RPC error in place of an answer.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    pub id: Option<RequestId>,
    pub code: i32,
    message: Cow<'static, str>,
    data: Option<Box<Value>>,
}

impl Envelope<'_> {
    /// The request that this notification takes back, if it is such.
    pub fn cancelled(&self) -> Option<RequestId> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: RequestId,
        }
        let is_such = self.id.is_none() && self.method == "notifications/cancelled";
        let params = self.params.filter(|_| is_such)?;
        serde_json::from_str(params.get()).ok().map(|Cancelled { request_id }| request_id)
    }
}

impl Refusal {
    pub fn new(id: Option<RequestId>, code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self { id, code, message: message.into(), data: None }
    }

    /// What exactly, without a word of the contents.
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        let detail: String = detail.into();
        self.with_data(json!({ "detail": detail }))
    }

    pub fn with_data(self, data: Value) -> Self {
        Self { data: Some(Box::new(data)), ..self }
    }

    pub fn answer(&self) -> Outgoing {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.as_ref().clone();
        }
        Outgoing::new(&json!({ "jsonrpc": "2.0", "id": self.id, "error": error }))
    }
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// `"id": null` is there, and wrong; serde would take it for absent.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl<'a> Said<'a> {
    pub fn parse(line: &'a [u8]) -> Result<Self, Refusal> {
        let invalid = |id: &Option<RequestId>, detail: &str| {
            Refusal::new(id.clone(), fault::INVALID_REQUEST, "Invalid Request").with_detail(detail)
        };
        let raw: Raw = match serde_json::from_slice(line) {
            Err(error) if !error.is_data() => {
                let refusal = Refusal::new(None, fault::PARSE_ERROR, "Parse error");
                return Err(refusal.with_detail(format!("column {}", error.column())));
            }
            // An array would do for serde: it takes members by their places, too.
            Ok(raw) if line.trim_ascii_start().starts_with(b"{") => raw,
            _ => return Err(invalid(&None, "a message is an object with each member once")),
        };
        let id = raw.id.and_then(|id| serde_json::from_str::<RequestId>(id.get()).ok());
        if raw.id.is_some() && id.is_none() {
            return Err(invalid(&None, "`id` must be a string or an integer"));
        }
        if raw.jsonrpc.map(RawValue::get) != Some(r#""2.0""#) {
            return Err(invalid(&id, r#"`jsonrpc` must be "2.0""#));
        }
        let Some(method) = raw.method else {
            let is_answer = raw.result.or(raw.error).is_some();
            return match id {
                Some(id) if is_answer => Ok(Self::Answer(id, raw.result)),
                // That of an error need not be known.
                None if is_answer => Ok(Self::Answer(RequestId::Number(0), None)),
                id => Err(invalid(&id, "`method` is missing")),
            };
        };
        let Ok(method) = serde_json::from_str(method.get()) else {
            return Err(invalid(&id, "`method` must be a string"));
        };
        Ok(Self::Message(Envelope { id, method, params: raw.params }))
    }
}

/// The id of a line that was too long to keep: its head and tail are all we have.
pub fn id_of_cut_line(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    id_in_head(head).or_else(|| id_in_tail(tail))
}

/// Reads members until the line breaks off; what stood before `params` is whole.
fn id_in_head(head: &[u8]) -> Option<RequestId> {
    struct Members<'a>(&'a mut Option<RequestId>);
    impl<'de> Visitor<'de> for Members<'_> {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<Cow<str>>()? {
                match key.as_ref() {
                    "id" => *self.0 = Some(map.next_value()?),
                    _ => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            Ok(())
        }
    }
    let mut id = None;
    let _breaks_off = serde::Deserializer::deserialize_map(
        &mut serde_json::Deserializer::from_slice(head),
        Members(&mut id),
    );
    id
}

/// Some clients write the id last: the members from there on, with a brace before them, are an object. Inside a
/// text the quotes would be escaped, and inside `params` one brace too many would follow.
fn id_in_tail(tail: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Tail {
        id: RequestId,
    }
    memchr::memmem::rfind_iter(tail, br#""id""#).find_map(|at| {
        let members = [b"{", &tail[at..]].concat();
        Some(serde_json::from_slice::<Tail>(&members).ok()?.id)
    })
}

/// The arguments of a call: an object, or nothing.
pub fn arguments(id: &RequestId, given: Option<&str>) -> Result<Value, Refusal> {
    if given.is_some_and(|given| arguments::are_too_many(given.as_bytes())) {
        return Err(invalid_params(id, arguments::TOO_MANY));
    }
    match given.map_or(Ok(Value::Null), arguments::read) {
        Ok(arguments @ (Value::Object(_) | Value::Null)) => Ok(arguments),
        Ok(_) => Err(invalid_params(id, "the arguments must be an object")),
        Err(error) => {
            let detail = format!(
                "the arguments cannot be read, at column {} of them or of one: too deep, a number \
                 beyond all numbers, or half of a character",
                error.column()
            );
            Err(invalid_params(id, &detail))
        }
    }
}

pub fn invalid_params(id: &RequestId, detail: &str) -> Refusal {
    Refusal::new(Some(id.clone()), fault::INVALID_PARAMS, "Invalid params").with_detail(detail)
}

/// The answer of a plain method: its only text is its `content`, and a marker stands for it. One stands for all of the
/// answer, if that is JSON already.
pub fn plain_object(Reply { blocks, data, written, .. }: Reply) -> (Value, Vec<Block>) {
    if let Some(json) = written {
        return (marker(0).into(), vec![Block::of_json(json)]);
    }
    let mut object = Map::new();
    if !blocks.is_empty() {
        object.insert("content".into(), marker(0).into());
    }
    object.extend(data.unwrap_or_default());
    (object.into(), blocks)
}

/// What stands for the `index`-th large text until it is written. Random, and never leaves the process.
pub fn marker(index: usize) -> String {
    let index = index.to_string();
    [NONCE.as_str(), ":", &index, ":"].concat()
}

static NONCE: LazyLock<String> = LazyLock::new(|| {
    let random = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", random(), random())
});

/// Looks for what every marker begins with. To make it takes longer than to use it.
static MARKERS: LazyLock<Finder> = LazyLock::new(|| Finder::new(NONCE.as_bytes()));

/// Where the `index`-th marker is in `json`, if it is there.
fn find_marker(json: &[u8], index: usize) -> Option<std::ops::Range<usize>> {
    let marker = marker(index);
    let is_it = |at: &usize| json[*at..].starts_with(marker.as_bytes());
    MARKERS.find_iter(json).find(is_it).map(|at| at..at + marker.len())
}

/// Texts shorter than this are written as they are.
pub const LARGE: usize = 256;

/// A message on its way out: JSON, and the large texts that its markers stand for, in order.
pub struct Outgoing {
    json: Vec<u8>,
    blocks: Vec<Block>,
    /// How far it has been written.
    at: Progress,
    /// Its share of what answers may hold, given up when it is written.
    pub share: Option<Share>,
}

#[derive(Default)]
struct Progress {
    /// Bytes of `json`.
    json: usize,
    /// The block being written, and how much of it has been: none of it before its marker was reached.
    block: usize,
    seen: Option<usize>,
}

/// An answer leaves in chunks of this size, or a little more: small enough for the cache, all that a pipe takes.
const CHUNK: usize = 64 * 1024;

impl Outgoing {
    pub fn new(message: &impl serde::Serialize) -> Self {
        Self::with_parked(message, Parked::default())
    }

    pub fn with_parked(message: &impl serde::Serialize, parked: Parked) -> Self {
        // Our messages are strings, numbers and maps with string keys: that always serializes.
        Self::from_json(serde_json::to_vec(message).unwrap_or_default(), parked)
    }

    pub fn from_json(json: Vec<u8>, Parked { blocks, share }: Parked) -> Self {
        Self { json, blocks, at: Progress::default(), share }
    }

    /// The same as one of a stream of events. JSON has no line breaks of its own.
    pub fn into_event(mut self) -> Self {
        self.json.splice(..0, *b"data: ");
        self.json.extend_from_slice(b"\n\n");
        self
    }

    /// How many bytes of memory it takes.
    pub fn holds(&self) -> usize {
        self.json.capacity() + self.blocks.iter().map(Block::holds).sum::<usize>()
    }

    /// Writes the message and a line break; `buffer` is scratch space.
    pub fn write_line(mut self, out: &mut impl Write, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        while self.fill(buffer) {
            // Not a byte more than an empty pipe takes: for that one we would have to wait.
            out.write_all(&buffer[..CHUNK])?;
            buffer.drain(..CHUNK);
        }
        buffer.push(b'\n');
        out.write_all(buffer)
    }

    /// Adds to `buffer` until it has a chunk, or a little more; `false` if that was the last.
    pub fn fill(&mut self, buffer: &mut Vec<u8>) -> bool {
        while buffer.len() < CHUNK {
            let Some(block) = self.blocks.get(self.at.block) else {
                buffer.extend_from_slice(&self.json[self.at.json..]);
                self.at.json = self.json.len();
                return false;
            };
            let Some(seen) = self.at.seen else {
                let rest = &self.json[self.at.json..];
                match find_marker(rest, self.at.block) {
                    Some(marker) => {
                        // What is JSON already stands for the marker's quotes, too.
                        let quotes = usize::from(block.is_json());
                        buffer.extend_from_slice(&rest[..marker.start - quotes]);
                        self.at.json += marker.end + quotes;
                        self.at.seen = Some(0);
                    }
                    None => self.at.block += 1,
                }
                continue;
            };
            if let Some((piece, seen)) = block.piece(seen) {
                self.at.seen = Some(seen);
                if block.is_json() {
                    buffer.extend_from_slice(piece.as_bytes());
                } else {
                    text::escape(piece, buffer);
                }
            } else {
                self.at = Progress { json: self.at.json, block: self.at.block + 1, seen: None };
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    #[test]
    fn an_envelope_is_read_without_its_arguments() {
        let line = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":1}}"#;
        let Ok(Said::Message(envelope)) = Said::parse(line) else { panic!("a request") };
        assert_eq!(envelope.id, Some(id(7)));
        assert_eq!(envelope.method, "tools/call");
        assert_eq!(envelope.params.map(RawValue::get), Some(r#"{"a":1}"#));
    }

    #[test]
    fn what_is_not_a_message_is_named() {
        let check = |line: &str, code, expected_id| {
            let malformed = Said::parse(line.as_bytes()).expect_err(line);
            assert_eq!((malformed.code, malformed.id), (code, expected_id), "{line}");
        };
        check("{", fault::PARSE_ERROR, None);
        check("nonsense", fault::PARSE_ERROR, None);
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a"} x"#, fault::PARSE_ERROR, None);
        check("[]", fault::INVALID_REQUEST, None);
        check("1", fault::INVALID_REQUEST, None);
        check(r#"["2.0",1,"ping",{},null,null]"#, fault::INVALID_REQUEST, None);
        check(r#"{"id":1,"method":"a"}"#, fault::INVALID_REQUEST, Some(id(1)));
        check(r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, fault::INVALID_REQUEST, Some(id(1)));
        check(r#"{"jsonrpc":"2.0","id":1}"#, fault::INVALID_REQUEST, Some(id(1)));
        check(r#"{"jsonrpc":"2.0","id":1,"method":5}"#, fault::INVALID_REQUEST, Some(id(1)));
        check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, fault::INVALID_REQUEST, None);
        check(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, fault::INVALID_REQUEST, None);
    }

    #[test]
    fn the_id_of_a_cut_line_is_found_at_either_end() {
        let check = |line: &str, expected| {
            let half = line.len() / 2;
            let (head, tail) = (&line.as_bytes()[..half], &line.as_bytes()[half..]);
            assert_eq!(id_of_cut_line(head, tail), expected, "{line}");
        };
        let long = "x".repeat(300);
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"a":"{long}"}}}}"#),
            Some(id(7)),
        );
        check(
            &format!(r#"{{"method":"m","params":{{"a":"{long}"}},"jsonrpc":"2.0","id":8}}"#),
            Some(id(8)),
        );
        check(&format!(r#"{{"method":"m","params":{{"a":"{long}","id":9}}}}"#), None);
        check(&format!(r#"{{"method":"m","params":{{"a":"{long},\"id\":9}}"#), None);
        check(&long, None);
    }

    #[test]
    fn what_is_json_already_is_written_as_it_is() {
        let value = json!({ "a": ["\"\n", 1], "long": "é\"".repeat(90_000) });
        let texts = || vec![Block::from("\n".to_owned()), Block::of_json(value.to_string())];
        let message = json!({ "text": marker(0), "value": marker(1), "end": 1 });
        let mut written = Vec::new();
        Outgoing::with_parked(&message, Parked { blocks: texts(), share: None })
            .write_line(&mut written, &mut Vec::new())
            .expect("a vector takes all");
        let expected = json!({ "text": "\n", "value": value, "end": 1 });
        assert!(written == format!("{expected}\n").into_bytes());

        let reply = Reply { written: Some(value.to_string()), ..Reply::default() };
        let (object, blocks) = plain_object(reply);
        written.clear();
        Outgoing::with_parked(&object, Parked { blocks, share: None })
            .write_line(&mut written, &mut Vec::new())
            .expect("a vector takes all");
        assert!(written == format!("{value}\n").into_bytes());
    }

    #[test]
    fn large_texts_are_written_as_serde_would() {
        let odd = "plain \"quoted\" \\ \n\r\t \u{0}\u{1f}\u{7f} é 漢 😀 ";
        for repeat in [0, 1, 2, 3000, 9000] {
            let text = odd.repeat(repeat);
            let blocks = vec![Block::from(text.clone()), Block::from(text.clone())];
            let with = |a: &str, b: &str| json!({ "id": 1, "a": a, "b": [b, "end"] });
            let mut written = Vec::new();
            Outgoing::with_parked(&with(&marker(0), &marker(1)), Parked { blocks, share: None })
                .write_line(&mut written, &mut Vec::new())
                .expect("a vector takes all");
            assert!(written == format!("{}\n", with(&text, &text)).into_bytes(), "{repeat}");
        }
    }
}
