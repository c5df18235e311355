//! Texts that are nested too deeply for the scanner of their language.
//!
//! A scanner that knows indentation writes what it is inside of to 1,024 bytes, and two of them write past the end when
//! that is not enough, which ends the process at best. How deep a text goes is bounded here by what it looks like,
//! before any of it is parsed: real ones do not come near.

/// Python keeps two bytes for each indentation, one for each open string, of which there may be 255.
const WIDEST_INDENT: usize = 380;
/// YAML keeps four bytes for each collection. One that goes on in another line began further in than the one around it,
/// of which there may be two at a column.
const WIDEST_BLOCK: usize = 60;
/// The others are in one line, each with up to two collections of its own.
const MOST_MARKS: usize = 50;

pub(crate) fn python_is_shallow(source: &[u8]) -> bool {
    lines(source).all(|line| width(line) <= WIDEST_INDENT)
}

/// Those that begin a collection with `-`, `?` or `:`, or a text with `|` or `>`.
pub(crate) fn yaml_is_shallow(source: &[u8]) -> bool {
    lines(source).all(|line| {
        let marks = line
            .iter()
            .enumerate()
            .filter(|(_, byte)| matches!(byte, b'-' | b'?' | b':' | b'|' | b'>'))
            .filter(|(at, _)| line.get(at + 1).is_none_or(u8::is_ascii_whitespace))
            .count();
        marks == 0 || (marks <= MOST_MARKS && width(line) <= WIDEST_BLOCK)
    })
}

fn lines(source: &[u8]) -> impl Iterator<Item = &[u8]> {
    source.split(|byte| matches!(byte, b'\n' | b'\r'))
}

/// Of the blanks that a line begins with.
fn width(line: &[u8]) -> usize {
    let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\x0c'));
    blanks.map(|byte| if *byte == b'\t' { 8 } else { 1 }).sum()
}
