//! What a model is asked to write: a part of a text, all of it, or blocks that say what stands where something else
//! stood.

use std::borrow::Cow;

use text::{Ending, LineRange, lines};

use crate::fence;

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What the model is told the text is called. It says much about the language.
    pub path: &'a str,
    pub text: &'a str,
    pub instruction: &'a str,
    pub scope: Scope,
    pub loss: Loss,
}

/// Which part of a text may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// These lines are replaced, counted from 0.
    Lines(LineRange),
    /// New lines are written before this one, counted from 0; at the end, if there are just as many.
    Before(usize),
    File,
}

/// Whether the new text may be much shorter than the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Models forget; what is gone for that reason looks like what was meant to go.
    Refused,
    Allowed,
}

/// Why a model cannot be asked for it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TaskError {
    #[error("the text has {total} lines")]
    NoSuchLines { total: usize },
    #[error("the {what} has {bytes} bytes, and a model is asked about {limit} at most{remedy}")]
    TooLarge { what: &'static str, bytes: usize, limit: usize, remedy: &'static str },
}

/// What the model wrote, in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The whole new text. What was not asked for is as it was, byte for byte.
    pub text: String,
    /// What replaces the lines of [`Scope::Lines`], or is new at [`Scope::Before`].
    pub part: Option<String>,
}

/// A request, and the form its answer has.
#[derive(Debug)]
pub struct Task<'a> {
    pub(crate) request: Request<'a>,
    pub(crate) form: Form,
    /// For new lines.
    pub(crate) ending: Ending,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The bytes of the text that are replaced, and which lines these are: none, if something is inserted.
    Part {
        start: usize,
        end: usize,
        first: usize,
        count: usize,
    },
    Whole,
    /// Blocks whose marks are of this length.
    Blocks {
        marks: usize,
    },
}

/// Up to here a model writes the whole text again: it is better at that than at anything else.
const WHOLE_LINES: usize = 400;
const WHOLE_BYTES: usize = 64 << 10;
/// More does not fit into what most models can read.
const LONGEST_TEXT: usize = 512 << 10;
const LONGEST_PART: usize = 128 << 10;
const LONGEST_INSTRUCTION: usize = 64 << 10;
/// As in `<<<<<<< SEARCH`.
const SHORTEST_MARK: usize = 7;

impl<'a> Task<'a> {
    pub fn new(request: &Request<'a>) -> Result<Task<'a>, TaskError> {
        let text = request.text;
        bounded("instruction", request.instruction.len(), LONGEST_INSTRUCTION, "")?;
        let form = match request.scope {
            Scope::Lines(range) => {
                let Some(part) = lines::select(text, range).filter(|part| part.last == range.last)
                else {
                    return Err(TaskError::NoSuchLines { total: lines::count(text) });
                };
                let count = part.last - part.first + 1;
                let remedy = ": name fewer lines";
                bounded("part to be replaced", part.bytes.len(), LONGEST_PART, remedy)?;
                Form::Part {
                    start: part.bytes.start,
                    end: part.bytes.end,
                    first: part.first,
                    count,
                }
            }
            Scope::Before(line) => {
                let start = start_of(text, line)
                    .ok_or_else(|| TaskError::NoSuchLines { total: lines::count(text) })?;
                Form::Part { start, end: start, first: line, count: 0 }
            }
            Scope::File if text.len() <= WHOLE_BYTES && lines::count(text) <= WHOLE_LINES => {
                Form::Whole
            }
            Scope::File => {
                bounded("file", text.len(), LONGEST_TEXT, ": name the lines to be replaced")?;
                let longest = ['<', '=', '>'].map(|mark| fence::longest_run(&[text], mark));
                let longest = longest.into_iter().max().unwrap_or(0);
                Form::Blocks { marks: SHORTEST_MARK.max(longest + 1) }
            }
        };
        let ending = lines::common_ending(text).unwrap_or(Ending::Lf);
        Ok(Task { request: *request, form, ending })
    }

    /// How long an answer may get: what is rewritten, with as much again and some room to think.
    pub(crate) fn max_tokens(&self) -> usize {
        const ROOM: usize = 4096;
        /// Of source code, at the least.
        const BYTES_OF_A_TOKEN: usize = 2;
        let rewritten = match self.form {
            Form::Part { start, end, .. } => end - start,
            Form::Whole => self.request.text.len(),
            Form::Blocks { .. } => WHOLE_BYTES / 4,
        };
        ROOM + rewritten / BYTES_OF_A_TOKEN
    }
}

fn bounded(
    what: &'static str,
    bytes: usize,
    limit: usize,
    remedy: &'static str,
) -> Result<(), TaskError> {
    if bytes > limit {
        return Err(TaskError::TooLarge { what, bytes, limit, remedy });
    }
    Ok(())
}

/// Where a line begins; the end of the text, for the line after the last.
fn start_of(text: &str, line: usize) -> Option<usize> {
    let Some(before) = line.checked_sub(1) else { return Some(0) };
    lines::lines(text).nth(before).map(|line| line.next)
}

/// `text` as models write and read it.
pub(crate) fn with_plain_breaks(text: &str) -> Cow<'_, str> {
    lines::with_ending(text, Ending::Lf)
}
