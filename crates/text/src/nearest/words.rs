//! Differences in words.

use std::fmt::Write as _;
use std::ops::Range;

use super::{Reason, Side};
use crate::lines::Ending;

/// Bytes quoted of a line that differs, and how many of them stand before the difference.
const QUOTE: usize = 120;
pub(super) const QUOTE_BEFORE: usize = 40;

impl Reason {
    pub(super) fn write(&self, hint: &mut String) -> std::fmt::Result {
        match self {
            Self::Tabs { side } => {
                write!(hint, "{} indents with tabs, {} with spaces", side.name(), side.other())
            }
            Self::Depth { side, by, tabs } => {
                let unit = if *tabs { "tab" } else { "space" };
                write!(hint, "{} indents by {}", side.name(), counted(*by, "more ", unit))
            }
            Self::Indentation => write!(hint, "the indentation differs"),
            Self::InnerBlanks => write!(hint, "blanks within a line differ"),
            Self::TrailingBlanks { side } => {
                write!(hint, "{} has blanks at the end of a line", side.name())
            }
            Self::BlankLines { side, by } => {
                write!(hint, "{} has {}", side.name(), counted(*by, "more blank ", "line"))
            }
            Self::LineBreaks => write!(hint, "a line break is on one side only"),
            Self::NoFinalBreak => write!(hint, "the file ends without a line break"),
            Self::LineEnds { file, needle } => {
                write!(
                    hint,
                    "the file has {} where old_string has {}",
                    ending(*file),
                    ending(*needle)
                )
            }
            Self::UnusualBlank { side, character } => {
                write!(
                    hint,
                    "{} has {} that {} has not",
                    side.name(),
                    code_point(*character),
                    side.other()
                )
            }
            Self::Typography { file, needle } => {
                write!(hint, "the file has {} where old_string has {}", typed(file), typed(needle))
            }
            Self::Composition => {
                write!(hint, "the same letters, composed differently (NFC against NFD)")
            }
            Self::Case => write!(hint, "upper and lower case differ"),
            Self::Escapes { side, escape } => {
                write!(hint, "`{escape}` is escaped in {} but not in {}", side.name(), side.other())
            }
            Self::Entities { side, entity } => {
                write!(
                    hint,
                    "`{entity}` is an entity in {} but the character in {}",
                    side.name(),
                    side.other()
                )
            }
            Self::LineNumbers => write!(hint, "old_string has line numbers in front of its lines"),
            Self::DiffMarkers => {
                write!(hint, "old_string has the markers of a diff in front of its lines")
            }
            Self::Fence => write!(hint, "old_string has a code fence around it"),
            Self::Extra { at_start, text } => {
                let end = if *at_start { "start" } else { "end" };
                write!(hint, "old_string has {} more at its {end}", quoted(text, 0))
            }
            Self::Elided { dots, lines } => {
                write!(hint, "the dots in line {} of old_string stand for ", dots + 1)?;
                match lines.len() {
                    0 => write!(hint, "nothing"),
                    len => write!(hint, "{} ({})", counted(len, "", "line"), named(lines)),
                }
            }
            Self::Lines { file, needle } if file.is_empty() => {
                let is = if needle.len() == 1 { "is" } else { "are" };
                write!(hint, "{} of old_string {is} not there", named(needle))
            }
            Self::Lines { file, needle } if needle.is_empty() => {
                write!(hint, "old_string lacks {}", named(file))
            }
            Self::Lines { file, needle } => {
                let differ = if file.len() == 1 { "differs" } else { "differ" };
                write!(hint, "{} {differ} from {} of old_string", named(file), named(needle))
            }
        }
    }
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::File => "the file",
            Self::Needle => "old_string",
        }
    }

    fn other(self) -> &'static str {
        match self {
            Self::File => Self::Needle.name(),
            Self::Needle => Self::File.name(),
        }
    }
}

fn counted(count: usize, which: &str, what: &str) -> String {
    format!("{count} {which}{what}{}", if count == 1 { "" } else { "s" })
}

fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Lf => "LF line ends",
        Ending::CrLf => "CRLF line ends",
        Ending::Cr => "CR line ends",
    }
}

fn code_point(character: char) -> String {
    let name = match character {
        '\u{a0}' => " (no-break space)",
        '\u{ad}' => " (soft hyphen)",
        '\u{200b}' => " (zero width space)",
        '\u{200c}' => " (zero width non-joiner)",
        '\u{200d}' => " (zero width joiner)",
        '\u{202f}' => " (narrow no-break space)",
        '\u{3000}' => " (ideographic space)",
        '\u{feff}' => " (byte order mark)",
        _ => "",
    };
    format!("U+{:04X}{name}", u32::from(character))
}

/// Typographic characters with their code points.
fn typed(text: &str) -> String {
    match text.chars().next() {
        Some(character) if !character.is_ascii() => format!("`{text}` ({})", code_point(character)),
        _ => format!("`{text}`"),
    }
}

pub(super) fn named(lines: &Range<usize>) -> String {
    match lines.len() {
        0 | 1 => format!("line {}", lines.start + 1),
        _ => format!("lines {}-{}", lines.start + 1, lines.end),
    }
}

/// `line` between backticks, cut to what is around `at` if it is long.
pub(super) fn quoted(line: &str, at: usize) -> String {
    if line.len() <= QUOTE {
        return format!("`{line}`");
    }
    let start = line.floor_char_boundary(at.saturating_sub(QUOTE_BEFORE).min(line.len() - QUOTE));
    let end = line.floor_char_boundary(start + QUOTE);
    let cut = |cut: bool| if cut { "…" } else { "" };
    format!("{}`{}`{}", cut(start > 0), &line[start..end], cut(end < line.len()))
}
