//! Words the differences for a hint.

use std::fmt;
use std::ops::Range;

use super::{Difference, TextSide};
use crate::lines::LineEnding;

/// Most bytes quoted of a line that differs, and how many of them precede the difference.
pub(super) const QUOTE_BYTES_MAX: usize = 120;
pub(super) const QUOTE_BEFORE_MAX: usize = 40;

impl Difference {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::TabsForSpaces { side } => {
                format!("{side} indents with tabs, {} with spaces", side.other())
            }
            Self::IndentDepth { side, by, tabs } => {
                let unit = if *tabs { "tab" } else { "space" };
                format!("{side} indents by {}", counted(*by, "more ", unit))
            }
            Self::Indentation => "the indentation differs".into(),
            Self::InnerWhitespace => "blanks within a line differ".into(),
            Self::TrailingWhitespace { side } => format!("{side} has blanks at the end of a line"),
            Self::BlankLines { side, by } => {
                format!("{side} has {}", counted(*by, "more blank ", "line"))
            }
            Self::LineBreaks => "a line break is on one side only".into(),
            Self::NoFinalBreak => "the file ends without a line break".into(),
            Self::LineEndings { file, needle } => {
                let [file, needle] = [file, needle].map(|ending| match ending {
                    LineEnding::Lf => "LF",
                    LineEnding::CrLf => "CRLF",
                    LineEnding::Cr => "CR",
                });
                format!("the file has {file} line ends where old_string has {needle} line ends")
            }
            Self::UnusualWhitespace { side, character } => {
                format!("{side} has {} that {} has not", code_point(*character), side.other())
            }
            Self::Typography { file, needle } => {
                format!(
                    "the file has {} where old_string has {}",
                    quoted_characters(file),
                    quoted_characters(needle)
                )
            }
            Self::Composition => "the same letters, composed differently (NFC against NFD)".into(),
            Self::Case => "upper and lower case differ".into(),
            Self::Escapes { side, escape } => {
                format!("`{escape}` is escaped in {side} but not in {}", side.other())
            }
            Self::Entities { side, entity } => {
                let other = side.other();
                format!("`{entity}` is an entity in {side} but the character in {other}")
            }
            Self::ByteOrderMark => "old_string begins with a byte order mark; leave it out".into(),
            Self::LineNumbers => "old_string has line numbers in front of its lines".into(),
            Self::DiffMarkers => {
                "old_string has the markers of a diff in front of its lines".into()
            }
            Self::Fence => "old_string has a code fence around it".into(),
            Self::ExtraWord { at_start, text } => {
                let end = if *at_start { "start" } else { "end" };
                format!("old_string has {} more at its {end}", quoted(text, 0))
            }
            Self::ElidedLines { dots, lines } => {
                let what = match lines.len() {
                    0 => "nothing".into(),
                    len => format!("{} ({})", counted(len, "", "line"), line_numbers(lines)),
                };
                format!("the dots in line {} of old_string stand for {what}", dots + 1)
            }
            Self::DifferentLines { file, needle } if file.is_empty() => {
                let is = if needle.len() == 1 { "is" } else { "are" };
                format!("{} of old_string {is} not there", line_numbers(needle))
            }
            Self::DifferentLines { file, needle } if needle.is_empty() => {
                format!("old_string lacks {}", line_numbers(file))
            }
            Self::DifferentLines { file, needle } => {
                let differ = if file.len() == 1 { "differs" } else { "differ" };
                format!(
                    "{} {differ} from {} of old_string",
                    line_numbers(file),
                    line_numbers(needle)
                )
            }
        }
    }
}

impl TextSide {
    fn other(self) -> Self {
        match self {
            Self::File => Self::Needle,
            Self::Needle => Self::File,
        }
    }
}

impl fmt::Display for TextSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "the file",
            Self::Needle => "old_string",
        })
    }
}

fn counted(count: usize, which: &str, what: &str) -> String {
    format!("{count} {which}{what}{}", if count == 1 { "" } else { "s" })
}

fn code_point(character: char) -> String {
    let name = match character {
        '\u{a0}' => " (no-break space)",
        '\u{ad}' => " (soft hyphen)",
        '\u{200b}' => " (zero width space)",
        '\u{202f}' => " (narrow no-break space)",
        '\u{feff}' => " (byte order mark)",
        _ => "",
    };
    format!("U+{:04X}{name}", u32::from(character))
}

/// Quotes typographic characters, with the code point of the first.
fn quoted_characters(text: &str) -> String {
    match text.chars().next() {
        Some(character) if !character.is_ascii() => format!("`{text}` ({})", code_point(character)),
        _ => format!("`{text}`"),
    }
}

pub(super) fn line_numbers(lines: &Range<usize>) -> String {
    match lines.len() {
        0 | 1 => format!("line {}", lines.start + 1),
        _ => format!("lines {}-{}", lines.start + 1, lines.end),
    }
}

/// Returns `line` between backticks, cut to the part around `at` if it is long.
pub(super) fn quoted(line: &str, at: usize) -> String {
    if line.len() <= QUOTE_BYTES_MAX {
        return format!("`{line}`");
    }
    let start = line
        .floor_char_boundary(at.saturating_sub(QUOTE_BEFORE_MAX).min(line.len() - QUOTE_BYTES_MAX));
    let end = line.floor_char_boundary(start + QUOTE_BYTES_MAX);
    let cut = |cut: bool| if cut { "…" } else { "" };
    format!("{}`{}`{}", cut(start > 0), &line[start..end], cut(end < line.len()))
}
