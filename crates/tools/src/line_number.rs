//! Line numbers as callers give and read them.

use std::borrow::Cow;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// The number of a file's first line, as the caller counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Zero = 0,
    One = 1,
}

impl Base {
    /// Returns the caller's number for line `index` (counted from 0).
    pub fn show(self, index: usize) -> usize {
        index.saturating_add(self as usize)
    }

    /// Describes the lines that a caller may name; `valid` is counted from 0.
    pub fn interval(self, valid: Range<usize>) -> String {
        if valid.is_empty() {
            return "valid: none, the file has no lines".into();
        }
        let (first, last) = (self.show(valid.start), self.show(valid.end - 1));
        format!("valid: {first}..{last} ({}-based)", self as usize)
    }
}

/// A line number as a caller gives it: any integer, `1.0` included. One that is too large for any file stays so, and
/// the schema refuses one below all lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineNumber(pub i128);

impl LineNumber {
    /// Returns the line counted from 0.
    pub fn index(self, base: Base) -> usize {
        usize::try_from(self.0 - base as i128).unwrap_or(0)
    }

    /// Returns the number as the caller gave it.
    pub fn given(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }
}

impl<'de> Deserialize<'de> for LineNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        let from_float = |float: f64| float as i128;
        let whole = number.as_i128().or_else(|| number.as_f64().map(from_float));
        Ok(Self(whole.unwrap_or(i128::MAX).min(u64::MAX.into())))
    }
}

impl JsonSchema for LineNumber {
    fn schema_name() -> Cow<'static, str> {
        "LineNumber".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer" })
    }
}
