//! Schemas of arguments: one for each tool, generated from the tool's struct, shown to agents and enforced.
//!
//! The checker knows only the keywords that our schemas use (a test checks that), and finds every error of a call at
//! once, so that an agent can fix them in one go.
//!
//! The crate `jsonschema` is too large for the few keywords that are used.

use std::fmt;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::aliases;

/// The pattern of a flat file name, as in the contract.
pub const FILE_NAME: &str = "^[a-zA-Z0-9._-]+$";
/// Most errors of one call that are named; further ones are only counted.
pub const ERRORS_MAX: usize = 20;

/// A violation of the schema by the arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaViolation {
    /// Path of the value: `name`, `edits[2].line`.
    pub field: String,
    pub problem: Problem,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    Missing,
    /// Not a property of this tool; `known` are those it has, `meant` the one that may be meant.
    Unknown {
        known: Vec<String>,
        meant: Option<String>,
    },
    WrongType {
        expected: String,
        found: Value,
    },
    /// An integer below the schema's minimum.
    TooSmall {
        minimum: i64,
        found: Value,
    },
    /// An integer above the schema's maximum.
    TooLarge {
        maximum: i64,
        found: Value,
    },
    NotOneOf {
        allowed: Vec<String>,
        found: String,
    },
    /// A string that does not match the pattern or the length limits.
    Malformed {
        found: String,
    },
    TooMany {
        maximum: u64,
        found: usize,
    },
}

impl SchemaViolation {
    /// Returns the last name in `field`: `line` of `edits[2].line`.
    pub fn name(&self) -> &str {
        self.field.rsplit('.').next().unwrap_or(&self.field)
    }
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let field = &self.field;
        match &self.problem {
            Problem::Missing => write!(f, "`{field}` is required"),
            Problem::Unknown { meant: Some(meant), .. } => {
                write!(f, "unknown property `{field}`: {meant}")
            }
            Problem::Unknown { known, .. } if known.is_empty() => {
                write!(f, "unknown property `{field}`: this tool takes none")
            }
            Problem::Unknown { known, .. } => {
                write!(f, "unknown property `{field}`: known are `{}`", known.join("`, `"))
            }
            Problem::WrongType { expected, found } => {
                write!(f, "`{field}` must be {expected}, not {}", describe(found))
            }
            Problem::TooSmall { minimum, found } => {
                write!(f, "`{field}` must be at least {minimum}, not {found}")
            }
            Problem::TooLarge { maximum, found } => {
                write!(f, "`{field}` must be at most {maximum}, not {found}")
            }
            Problem::NotOneOf { allowed, found } => {
                write!(
                    f,
                    "`{field}` must be one of `{}`, not `{}`",
                    allowed.join("`, `"),
                    cut(found)
                )
            }
            Problem::Malformed { found } => write!(f, "`{field}` is malformed: `{}`", cut(found)),
            Problem::TooMany { maximum, found } => {
                write!(f, "`{field}` has {found} items; one call takes at most {maximum}")
            }
        }
    }
}

/// Describes a value for an error: its type, and the value itself only if it is a number.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "a boolean".into(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

/// Returns the beginning of a text that a caller sent: errors do not repeat large contents.
fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

/// Returns the schema of `T`: self-contained, without `null`s (a null optional means absent), formats or titles.
pub fn of<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(simplify).transform(&mut schema);
    let mut schema = std::mem::take(schema.ensure_object());
    // Some clients look for `properties` even where there are none.
    schema.entry("properties").or_insert_with(|| Map::new().into());
    schema
}

/// Returns the schema of an answer: its shape alone, since every turn of a model pays for every word, and an answer
/// explains itself. Nothing in it is required: a failure carries `error` alone, and some clients check that too.
pub fn answer<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = of::<T>();
    schema.values_mut().for_each(strip);
    schema.remove("description");
    schema.remove("required");
    if let Some(Value::Object(properties)) = schema.get_mut("properties")
        && let Some(Value::Object(error)) = properties.get_mut("error")
    {
        error.insert("required".into(), serde_json::json!(["code", "message"]));
    }
    schema
}

/// Removes the keywords that only describe. Properties of these names are kept: they are schemas, not words or numbers.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.retain(|name, value| {
                value.is_object()
                    || !matches!(name.as_str(), "description" | "minimum" | "required")
            });
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Simplifies a schema: some model APIs accept only a plain `type`, so optional fields state their type alone.
fn simplify(schema: &mut Schema) {
    let Some(map) = schema.as_object_mut() else { return };
    map.remove("title");
    map.remove("format");
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            map.insert("type".into(), one);
        }
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// Returns the violations by `arguments`, and how many more there are. An absent or null object counts as an empty one.
pub fn violations(schema: &Map<String, Value>, arguments: &Value) -> (Vec<SchemaViolation>, usize) {
    let empty = Value::Object(Map::new());
    let arguments = if arguments.is_null() { &empty } else { arguments };
    let mut violations = Violations::default();
    check(schema, arguments, &ValuePath::Top, &mut violations);
    (violations.kept, violations.more)
}

#[derive(Default)]
struct Violations {
    /// At most [`ERRORS_MAX`].
    kept: Vec<SchemaViolation>,
    more: usize,
}

impl Violations {
    /// Adds a violation: it is kept up to the limit, and only counted beyond.
    fn push(&mut self, violation: impl FnOnce() -> SchemaViolation) {
        if self.kept.len() < ERRORS_MAX {
            self.kept.push(violation());
        } else {
            self.more += 1;
        }
    }
}

/// The path of a value, written out only for a violation.
enum ValuePath<'a> {
    Top,
    Member(&'a ValuePath<'a>, &'a str),
    Item(&'a ValuePath<'a>, usize),
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Top => f.write_str("arguments"),
            Self::Member(Self::Top, name) => f.write_str(name),
            Self::Member(object, name) => write!(f, "{object}.{name}"),
            Self::Item(list, index) => write!(f, "{list}[{index}]"),
        }
    }
}

fn check(
    schema: &Map<String, Value>,
    value: &Value,
    path: &ValuePath,
    violations: &mut Violations,
) {
    let mut report =
        |problem| violations.push(|| SchemaViolation { field: path.to_string(), problem });
    let expected = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    match (expected, value) {
        ("object", Value::Object(map)) => check_object(schema, map, path, violations),
        ("array", Value::Array(items)) => {
            let maximum = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
            if items.len() as u64 > maximum {
                return report(Problem::TooMany { maximum, found: items.len() });
            }
            if let Some(Value::Object(schema)) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    check(schema, item, &ValuePath::Item(path, index), violations);
                }
            }
        }
        ("string", Value::String(text)) => {
            if let Some(Value::Array(allowed)) = schema.get("enum") {
                let allowed: Vec<String> =
                    allowed.iter().filter_map(Value::as_str).map(String::from).collect();
                if !allowed.contains(text) {
                    report(Problem::NotOneOf { allowed, found: text.clone() });
                }
            } else if !fits(schema, text) {
                report(Problem::Malformed { found: text.clone() });
            }
        }
        ("integer", Value::Number(number)) => {
            let limit = |name: &str| schema.get(name).and_then(Value::as_i64);
            let amount = number.as_f64().unwrap_or(f64::MAX);
            #[expect(clippy::cast_precision_loss, reason = "no limit is that large")]
            let exact = |limit: i64| limit as f64;
            let found = value.clone();
            if amount.fract() != 0.0 {
                report(Problem::WrongType { expected: "an integer".into(), found });
            } else if let Some(minimum) = limit("minimum").filter(|it| amount < exact(*it)) {
                report(Problem::TooSmall { minimum, found });
            } else if let Some(maximum) = limit("maximum").filter(|it| amount > exact(*it)) {
                report(Problem::TooLarge { maximum, found });
            }
        }
        ("boolean", Value::Bool(_)) => {}
        (expected, value) => {
            let article = if expected.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
            let expected = format!("{article} {expected}");
            // The error names only the type: the value may be a whole file.
            let found = if value.is_number() { value.clone() } else { without_contents(value) };
            report(Problem::WrongType { expected, found });
        }
    }
}

/// Returns a value of the same type, without its contents.
fn without_contents(value: &Value) -> Value {
    match value {
        Value::String(_) => Value::String(String::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Object(Map::new()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn check_object(
    schema: &Map<String, Value>,
    map: &Map<String, Value>,
    path: &ValuePath,
    violations: &mut Violations,
) {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = schema.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let field = |name: &str| ValuePath::Member(path, name).to_string();
    let ours = properties.keys().map(String::as_str);
    let misnamed = |name: &str| {
        let mut unknown = map.keys().filter(|key| !properties.contains_key(*key));
        unknown.any(|key| aliases::meant(key, ours.clone()) == Some(name))
    };
    for name in required.iter().filter_map(Value::as_str) {
        // A property that is given by another name is reported by that name.
        if map.get(name).is_none_or(Value::is_null) && !misnamed(name) {
            violations.push(|| SchemaViolation { field: field(name), problem: Problem::Missing });
        }
    }
    for (name, value) in map {
        match properties.get(name) {
            Some(Value::Object(_)) if value.is_null() => {} // absent, or missing above
            Some(Value::Object(schema)) => {
                check(schema, value, &ValuePath::Member(path, name), violations);
            }
            _ => violations.push(|| {
                let known = properties.keys().cloned().collect();
                let problem = Problem::Unknown { known, meant: meant(properties, name) };
                SchemaViolation { field: field(&cut(name)), problem }
            }),
        }
    }
}

/// Says what an unknown property is called here, or where it belongs.
fn meant(properties: &Map<String, Value>, name: &str) -> Option<String> {
    let own = aliases::meant(name, properties.keys().map(String::as_str));
    let own = own.map(|own| format!("it is called `{own}` here"));
    own.or_else(|| {
        properties.iter().find_map(|(list, schema)| {
            let items = schema.get("items")?.get("properties")?.as_object()?;
            let item = aliases::meant(name, items.keys().map(String::as_str))?;
            Some(format!("it belongs into `{list}`, as `{list}: [{{ \"{item}\": ... }}]`"))
        })
    })
}

fn fits(schema: &Map<String, Value>, text: &str) -> bool {
    // Counted only if there is a limit: a text can be as long as a file.
    let length = || text.chars().count() as u64;
    let limit = |name: &str| schema.get(name).and_then(Value::as_u64);
    let pattern = schema.get("pattern").and_then(Value::as_str);
    limit("minLength").is_none_or(|least| length() >= least)
        && limit("maxLength").is_none_or(|most| length() <= most)
        && pattern.is_none_or(|pattern| matches_pattern(pattern, text))
}

/// Matches the only patterns that our schemas use, [`FILE_NAME`] and [`HASH`]; a regular-expression engine for two of
/// them would be the largest part of this crate.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    match pattern {
        // Stricter than the pattern: `.`, `..` and the names of our own temporary files match it and are refused.
        FILE_NAME => files::FilePath::flat(text).is_ok(),
        _ => text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit()),
    }
}

/// The pattern of a hash, as an agent sees it.
pub const HASH: &str = "^[0-9a-fA-F]{16}$";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keywords(schema: &Value, found: &mut Vec<String>) {
        let Value::Object(map) = schema else { return };
        for (key, value) in map {
            match key.as_str() {
                "properties" => value.as_object().into_iter().flatten().for_each(|(_, value)| {
                    assert!(value.get("description").is_some(), "every field is documented");
                    keywords(value, found);
                }),
                "items" => keywords(value, found),
                "pattern" => assert!([FILE_NAME, HASH].contains(&value.as_str().unwrap_or(""))),
                _ => found.push(key.clone()),
            }
        }
    }

    #[test]
    fn the_checker_knows_every_keyword_our_schemas_use() {
        let known = [
            "type",
            "description",
            "required",
            "additionalProperties",
            "minimum",
            "maximum",
            "minLength",
            "maxLength",
            "maxItems",
            "enum",
            "default",
        ];
        for entry in crate::all_tools() {
            let mut found = Vec::new();
            keywords(&Value::Object(entry.input_schema()), &mut found);
            let unknown: Vec<_> =
                found.iter().filter(|key| !known.contains(&key.as_str())).collect();
            assert!(unknown.is_empty(), "{}: {unknown:?}", entry.name);
            assert_eq!(entry.input_schema()["additionalProperties"], false, "{}", entry.name);
        }
    }

    #[test]
    fn a_violation_says_where_it_is_and_what_would_be_right() {
        let schema = json!({ "type": "object", "additionalProperties": false, "properties": {
            "hash": { "type": "string", "pattern": HASH },
            "list": { "type": "array", "maxItems": 3 },
            "rows": { "type": "array", "items": { "type": "object", "properties": {
                "count": { "type": "integer", "minimum": 1, "maximum": 9 },
            } } },
        } });
        let Value::Object(schema) = schema else { unreachable!() };
        for (arguments, expected) in [
            (json!(null), ""),
            (json!([1]), "`arguments` must be an object, not an array"),
            (json!({ "hash": "abc" }), "`hash` is malformed: `abc`"),
            (json!({ "hash": "0123456789abcdef", "list": [1, "a", null] }), ""),
            (json!({ "list": [1, 2, 3, 4] }), "`list` has 4 items; one call takes at most 3"),
            (json!({ "rows": [{ "count": 1 }, { "count": 9 }, { "count": 2.0 }] }), ""),
            (
                json!({ "rows": [{ "count": 0 }, { "count": 10 }, { "count": 1.5 }, true] }),
                "`rows[0].count` must be at least 1, not 0; `rows[1].count` must be at most 9, not 10; \
                 `rows[2].count` must be an integer, not 1.5; `rows[3]` must be an object, not a boolean",
            ),
        ] {
            let (found, more) = violations(&schema, &arguments);
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            assert_eq!((found.join("; ").as_str(), more), (expected, 0), "{arguments}");
        }
    }
}
