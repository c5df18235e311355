//! The cursor at which the next page of an answer begins.

use ::code::context::{Section, SectionCounts};

/// Returns the cursor at which the next page of the answer to this question begins.
pub(super) fn cursor(asked: &str, seen: SectionCounts) -> String {
    let seen = Section::WITH_RESULTS.map(|section| seen.of(section).to_string());
    format!("{asked}-{}", seen.join("-"))
}

/// Parses a cursor; `None` if it is not one of this question.
pub(in crate::code) fn parse_cursor(cursor: &str, asked: &str) -> Option<SectionCounts> {
    let counts = cursor.strip_prefix(asked)?.strip_prefix('-')?;
    let counts: Vec<usize> =
        counts.split('-').map(|count| count.parse().ok()).collect::<Option<_>>()?;
    if counts.len() != Section::WITH_RESULTS.len() {
        return None;
    }
    let mut seen = SectionCounts::default();
    for (section, count) in Section::WITH_RESULTS.into_iter().zip(counts) {
        seen.add(section, count);
    }
    Some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_one_of_its_question() {
        let mut seen = SectionCounts::default();
        for (count, section) in Section::WITH_RESULTS.into_iter().enumerate() {
            seen.set(section, 10 + count);
        }
        let given = cursor("ab", seen);
        assert_eq!(given, "ab-10-11-12-13");
        assert_eq!(parse_cursor(&given, "ab"), Some(seen));
        for (given, asked) in [
            (given.as_str(), "a"),
            (&given, "abc"),
            ("ab", "ab"),
            ("ab-1-2-3", "ab"),
            ("ab-1-2-3-4-5", "ab"),
            ("ab-1-2-3-x", "ab"),
        ] {
            assert_eq!(parse_cursor(given, asked), None, "{given}");
        }
    }
}
