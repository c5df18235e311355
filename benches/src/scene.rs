//! The files that are worked on, the same for everybody.

use std::fmt::Write as _;
use std::fs;
use std::io::Result;
use std::path::Path;

pub const KB: usize = 1 << 10;
pub const MB: usize = 1 << 20;
/// Places in a file that is edited in many places at once.
pub const MARKS: usize = 100;

/// Text as long as `size`, like source: its lines of many lengths, some quotes among them.
pub fn source(size: usize) -> String {
    let mut text = String::with_capacity(size + 80);
    for number in 0_usize.. {
        if text.len() >= size {
            break;
        }
        let indent = "    ".repeat(number % 4);
        let _ = match number % 5 {
            0 => writeln!(text, "{indent}fn step_{number}(input: &str) -> usize {{"),
            1 => writeln!(text, "{indent}let total_{number} = input.len() + {number};"),
            2 => writeln!(
                text,
                "{indent}// What was counted before is counted once more here, and kept."
            ),
            3 => writeln!(text, "{indent}assert!(total > 0, \"step {number}\");"),
            _ => writeln!(text, "{indent}}}"),
        };
    }
    text.truncate(size - 1);
    text.push('\n');
    text
}

/// Text of which every second byte is escaped in JSON.
pub fn heavy(size: usize) -> String {
    "a\"b\\c\td\n".repeat(size / 8)
}

/// What stands at a place after so many edits of it.
pub fn mark(place: usize, edits: usize) -> String {
    format!("mark_{place:03} = {edits:07};")
}

/// Source with the first `marks` marks in it, evenly spread, each a line of its own.
pub fn marked(size: usize, marks: usize) -> String {
    let source = source(size);
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let part = lines.len() / (marks + 1);
    let mut text = String::with_capacity(size + 40 * marks);
    for (number, line) in lines.iter().enumerate() {
        if number > 0 && number % part == 0 && number / part <= marks {
            let _ = writeln!(text, "{}", mark(number / part - 1, 0));
        }
        text.push_str(line);
    }
    text
}

/// The number of the line that the first mark stands on, from 0.
pub fn marked_line(text: &str) -> usize {
    text.lines().position(|line| line == mark(0, 0)).unwrap_or_default()
}

/// What is written as a whole, different each time.
pub fn written(size: usize, round: usize) -> String {
    let mut text = source(size);
    text.replace_range(..8, &format!("{round:08}"));
    text
}

/// So many files of ten lines each, not all of the same age as the folder.
pub fn many(folder: &Path, count: usize) -> Result<()> {
    let text = source(400);
    (0..count).try_for_each(|number| fs::write(folder.join(format!("file_{number:06}.rs")), &text))
}
