//! A task for the model: to write a part of a text, all of it, or SEARCH/REPLACE blocks.

use std::borrow::Cow;

use text::{LineEnding, LineRange, lines};

use crate::fence;

/// A request to generate text.
#[derive(Clone, Copy, Debug)]
pub struct GenerationRequest<'a> {
    /// Name of the text in the prompt. It tells the model much about the language.
    pub path: &'a str,
    pub text: &'a str,
    pub instruction: &'a str,
    pub scope: EditScope,
    pub loss: LineLoss,
}

/// Part of a text that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditScope {
    /// These lines are replaced, counted from 0.
    Lines(LineRange),
    /// New lines are inserted before this one, counted from 0; at the end, if the text has exactly as many lines.
    Before(usize),
    File,
}

/// Permission for the new text to be much shorter than the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineLoss {
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
pub struct GeneratedText {
    /// The whole new text. Everything outside the scope is unchanged, byte for byte.
    pub text: String,
    /// New text of the lines of [`EditScope::Lines`], or the text inserted at [`EditScope::Before`].
    pub part: Option<String>,
}

/// A request, and the form that its answer must have.
#[derive(Debug)]
pub struct GenerationTask<'a> {
    pub(crate) request: GenerationRequest<'a>,
    pub(crate) form: AnswerForm,
    /// Line ending of new lines.
    pub(crate) ending: LineEnding,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerForm {
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
const WHOLE_LINES_MAX: usize = 400;
const WHOLE_BYTES_MAX: usize = 64 << 10;
/// Largest text in bytes; more does not fit into the context of most models.
const TEXT_BYTES_MAX: usize = 512 << 10;
const PART_BYTES_MAX: usize = 128 << 10;
const INSTRUCTION_BYTES_MAX: usize = 64 << 10;
/// Shortest mark of a block, as in `<<<<<<< SEARCH`.
const MARK_LENGTH_MIN: usize = 7;

impl<'a> GenerationTask<'a> {
    pub fn new(request: &GenerationRequest<'a>) -> Result<Self, TaskError> {
        let text = request.text;
        check_size("instruction", request.instruction.len(), INSTRUCTION_BYTES_MAX, "")?;
        let form = match request.scope {
            EditScope::Lines(range) => {
                let Some(part) = lines::select(text, range).filter(|part| part.last == range.last)
                else {
                    return Err(TaskError::NoSuchLines { total: lines::count(text) });
                };
                let count = part.last - part.first + 1;
                let remedy = ": name fewer lines";
                check_size("part to be replaced", part.bytes.len(), PART_BYTES_MAX, remedy)?;
                AnswerForm::Part {
                    start: part.bytes.start,
                    end: part.bytes.end,
                    first: part.first,
                    count,
                }
            }
            EditScope::Before(line) => {
                let start = line_start(text, line)
                    .ok_or_else(|| TaskError::NoSuchLines { total: lines::count(text) })?;
                AnswerForm::Part { start, end: start, first: line, count: 0 }
            }
            EditScope::File
                if text.len() <= WHOLE_BYTES_MAX && lines::count(text) <= WHOLE_LINES_MAX =>
            {
                AnswerForm::Whole
            }
            EditScope::File => {
                check_size("file", text.len(), TEXT_BYTES_MAX, ": name the lines to be replaced")?;
                let longest = ['<', '=', '>'].map(|mark| fence::longest_run(&[text], mark));
                let longest = longest.into_iter().max().unwrap_or(0);
                AnswerForm::Blocks { marks: MARK_LENGTH_MIN.max(longest + 1) }
            }
        };
        let ending = lines::common_ending(text).unwrap_or(LineEnding::Lf);
        Ok(Self { request: *request, form, ending })
    }

    /// Longest answer in tokens: the text that is rewritten, as much again, and some room to think.
    pub(crate) fn max_tokens(&self) -> usize {
        const THINKING_TOKENS: usize = 4096;
        /// Least number of bytes in a token of source code.
        const TOKEN_BYTES_MIN: usize = 2;
        let rewritten = match self.form {
            AnswerForm::Part { start, end, .. } => end - start,
            AnswerForm::Whole => self.request.text.len(),
            AnswerForm::Blocks { .. } => WHOLE_BYTES_MAX / 4,
        };
        THINKING_TOKENS + rewritten / TOKEN_BYTES_MIN
    }
}

fn check_size(
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
fn line_start(text: &str, line: usize) -> Option<usize> {
    let Some(before) = line.checked_sub(1) else { return Some(0) };
    lines::lines(text).nth(before).map(|line| line.next)
}

/// Returns `text` with `\n` line endings, as models read and write it.
pub(crate) fn with_plain_breaks(text: &str) -> Cow<'_, str> {
    lines::with_ending(text, LineEnding::Lf)
}
