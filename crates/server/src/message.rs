//! JSON-RPC messages of a client, parsed without copying them: a tool's arguments go straight to the tool, and only the
//! small rest becomes `rmcp`'s types.

use std::borrow::Cow;

use rmcp::model::RequestId;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::outgoing::Outgoing;
use crate::{error_codes, json_arguments};

/// Names and values that a message may have besides the arguments of a call: as objects they take a hundred times as much.
pub const VALUES_MAX: usize = 256;
/// Bytes that a message may have besides the text of the largest file.
pub const OVERHEAD_MAX: u64 = 64 * 1024;

#[derive(Debug)]
pub enum ClientMessage<'a> {
    /// A request or notification.
    Request(Envelope<'a>),
    /// The response to a request of ours. `None` for an error.
    Response(RequestId, Option<&'a RawValue>),
}

/// A request or notification, borrowed from its line.
#[derive(Debug)]
pub struct Envelope<'a> {
    /// `None`: a notification.
    pub id: Option<RequestId>,
    pub method: Cow<'a, str>,
    pub params: Option<&'a RawValue>,
}

/// A JSON-RPC error response.
#[derive(Debug, PartialEq)]
pub struct ErrorResponse {
    pub id: Option<RequestId>,
    pub code: i32,
    message: Cow<'static, str>,
    data: Option<Box<Value>>,
}

impl Envelope<'_> {
    /// The request that this notification cancels, if it is a cancellation.
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

impl ErrorResponse {
    pub fn new(id: Option<RequestId>, code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self { id, code, message: message.into(), data: None }
    }

    /// Says what exactly is wrong, without contents of the message.
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

impl<'a> ClientMessage<'a> {
    pub fn parse(line: &'a [u8]) -> Result<Self, ErrorResponse> {
        let invalid = |id: &Option<RequestId>, detail: &str| {
            ErrorResponse::new(id.clone(), error_codes::INVALID_REQUEST, "Invalid Request")
                .with_detail(detail)
        };
        let raw: Raw = match serde_json::from_slice(line) {
            Err(error) if !error.is_data() => {
                let refusal = ErrorResponse::new(None, error_codes::PARSE_ERROR, "Parse error");
                return Err(refusal.with_detail(format!("column {}", error.column())));
            }
            // An array would do for serde: it takes members by their places, too.
            Ok(raw) if line.trim_ascii_start().starts_with(b"{") => raw,
            _ => {
                return Err(invalid(
                    &None,
                    "a message must be a JSON object without repeated members",
                ));
            }
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
                Some(id) if is_answer => Ok(Self::Response(id, raw.result)),
                // That of an error need not be known.
                None if is_answer => Ok(Self::Response(RequestId::Number(0), None)),
                id => Err(invalid(&id, "`method` is missing")),
            };
        };
        let Ok(method) = serde_json::from_str(method.get()) else {
            return Err(invalid(&id, "`method` must be a string"));
        };
        Ok(Self::Request(Envelope { id, method, params: raw.params }))
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
pub fn arguments(id: &RequestId, given: Option<&str>) -> Result<Value, ErrorResponse> {
    if given.is_some_and(|given| json_arguments::are_too_many(given.as_bytes())) {
        return Err(invalid_params(id, json_arguments::TOO_MANY));
    }
    match given.map_or(Ok(Value::Null), json_arguments::read) {
        Ok(arguments @ (Value::Object(_) | Value::Null)) => Ok(arguments),
        Ok(_) => Err(invalid_params(id, "the arguments must be an object")),
        Err(error) => {
            let detail = format!(
                "the arguments cannot be parsed, at column {} of them or of one of them: nested too deeply, a number out of range, or half of a surrogate pair",
                error.column()
            );
            Err(invalid_params(id, &detail))
        }
    }
}

pub fn invalid_params(id: &RequestId, detail: &str) -> ErrorResponse {
    ErrorResponse::new(Some(id.clone()), error_codes::INVALID_PARAMS, "Invalid params")
        .with_detail(detail)
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
        let Ok(ClientMessage::Request(envelope)) = ClientMessage::parse(line) else {
            panic!("a request")
        };
        assert_eq!(envelope.id, Some(id(7)));
        assert_eq!(envelope.method, "tools/call");
        assert_eq!(envelope.params.map(RawValue::get), Some(r#"{"a":1}"#));
    }

    #[test]
    fn what_is_not_a_message_is_named() {
        let check = |line: &str, code, expected_id| {
            let malformed = ClientMessage::parse(line.as_bytes()).expect_err(line);
            assert_eq!((malformed.code, malformed.id), (code, expected_id), "{line}");
        };
        check("{", error_codes::PARSE_ERROR, None);
        check("nonsense", error_codes::PARSE_ERROR, None);
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a"} x"#, error_codes::PARSE_ERROR, None);
        check("[]", error_codes::INVALID_REQUEST, None);
        check("1", error_codes::INVALID_REQUEST, None);
        check(r#"["2.0",1,"ping",{},null,null]"#, error_codes::INVALID_REQUEST, None);
        check(r#"{"id":1,"method":"a"}"#, error_codes::INVALID_REQUEST, Some(id(1)));
        check(
            r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
            error_codes::INVALID_REQUEST,
            Some(id(1)),
        );
        check(r#"{"jsonrpc":"2.0","id":1}"#, error_codes::INVALID_REQUEST, Some(id(1)));
        check(r#"{"jsonrpc":"2.0","id":1,"method":5}"#, error_codes::INVALID_REQUEST, Some(id(1)));
        check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, error_codes::INVALID_REQUEST, None);
        check(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, error_codes::INVALID_REQUEST, None);
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
}
