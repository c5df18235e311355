//! A task for the model: to write a part of a text, all of it, or SEARCH/REPLACE blocks.

use std::borrow::Cow;

use text::{LineEnding, LineRange, lines};

use crate::fence;

/// A request to generate text.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Name of the text in the prompt. It tells the model much about the language.
    pub path: &'a str,
    pub text: &'a str,
    pub instruction: &'a str,
    pub scope: Scope,
    pub loss: Loss,
}

/// Part of a text that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// These lines are replaced, counted from 0.
    Lines(LineRange),
    /// New lines are inserted before this one, counted from 0; at the end, if the text has exactly as many lines.
    Before(usize),
    File,
}

/// Permission for the new text to be much shorter than the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A large loss is refused: models forget lines, and lines lost that way look like lines removed on purpose.
    Refused,
    Allowed,
}

/// Reason why a model cannot be asked for a request.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TaskError {
    #[error("the text has {total} lines")]
    NoSuchLines { total: usize },
    #[error("the {what} has {bytes} bytes, but at most {limit} are sent to a model{remedy}")]
    TooLarge { what: &'static str, bytes: usize, limit: usize, remedy: &'static str },
}

/// Text that the model generated, in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The whole new text. Everything outside the scope is unchanged, byte for byte.
    pub text: String,
    /// New text of the lines of [`Scope::Lines`], or the text inserted at [`Scope::Before`].
    pub part: Option<String>,
}

/// A request, and the form that its answer must have.
#[derive(Debug)]
pub struct Task<'a> {
    pub(crate) request: Request<'a>,
    pub(crate) form: Form,
    /// Line ending of new lines.
    pub(crate) ending: LineEnding,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Bytes of the text that are replaced, and their lines: `count` is 0 for an insertion.
    Part {
        start: usize,
        end: usize,
        first: usize,
        count: usize,
    },
    Whole,
    /// SEARCH/REPLACE blocks whose marks have this length.
    Blocks {
        marks: usize,
    },
}

/// Largest text that the model writes again as a whole, which models are better at than at anything else.
const WHOLE_LINES: usize = 400;
const WHOLE_BYTES: usize = 64 << 10;
/// Largest text in bytes; more does not fit into the context of most models.
const LONGEST_TEXT: usize = 512 << 10;
const LONGEST_PART: usize = 128 << 10;
const LONGEST_INSTRUCTION: usize = 64 << 10;
/// Shortest mark of a block, as in `<<<<<<< SEARCH`.
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
        let ending = lines::common_ending(text).unwrap_or(LineEnding::Lf);
        Ok(Task { request: *request, form, ending })
    }

    /// Longest answer in tokens: the text that is rewritten, as much again, and some room to think.
    pub(crate) fn max_tokens(&self) -> usize {
        const ROOM: usize = 4096;
        /// Least number of bytes in a token of source code.
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

/// Byte offset where a line begins; the end of the text for the line after the last.
fn start_of(text: &str, line: usize) -> Option<usize> {
    let Some(before) = line.checked_sub(1) else { return Some(0) };
    lines::lines(text).nth(before).map(|line| line.next)
}

/// Returns `text` with `\n` line endings, as models read and write it.
pub(crate) fn with_plain_breaks(text: &str) -> Cow<'_, str> {
    lines::with_ending(text, LineEnding::Lf)
}
