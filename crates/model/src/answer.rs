//! Reads a model's answer and applies it to the text, or refuses it with a reason.

use std::{collections::HashMap, ops::Range};

use text::{Line, LineEnding, lines};

use crate::{
    elision, fence,
    task::{AnswerForm, GeneratedText, GenerationTask, LineLoss},
};

/// Reason why an answer cannot be used. Its message is also sent to the model, so each says what would be right.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone)]
pub enum AnswerError {
    #[error("it has no fenced block")]
    NoBlock,
    #[error("it has {count} fenced blocks, where there must be one")]
    SeveralBlocks { count: usize },
    #[error("its fenced block has no end, or has another block in it whose fence is as long")]
    Unterminated,
    #[error("its fenced block is empty")]
    Empty,
    #[error("it changes nothing")]
    Unchanged,
    #[error(
        "line {line} of its block stands for lines that were left out; every line must be written in full"
    )]
    Elision {
        /// Counted from 1.
        line: usize,
    },
    #[error("{} of {before} lines are gone, though nobody asked for their removal", .before - .after)]
    Vanished {
        /// Lines that are not blank, in both counts.
        before: usize,
        after: usize,
    },
    #[error("its block has no SEARCH and REPLACE in it")]
    NoSearch,
    #[error("block {block} is not of the form SEARCH, divider, REPLACE")]
    BrokenSearch {
        /// Counted from 1, as in the variants below.
        block: usize,
    },
    #[error("the SEARCH of block {block} is empty")]
    EmptySearch { block: usize },
    #[error(
        "the lines of the SEARCH of block {block} are not in the file; they must be exactly as they are there"
    )]
    SearchNowhere { block: usize },
    #[error(
        "the lines of the SEARCH of block {block} are in the file more than once; repeat more of the lines around them"
    )]
    SearchTwice { block: usize },
    #[error("block {block} changes lines that another block changes as well")]
    SearchOverlaps { block: usize },
    #[error("it has more than {limit} blocks")]
    TooManySearches { limit: usize },
    /// Objection of the caller's check, in its own words.
    #[error("{0}")]
    Check(String),
}

/// Most SEARCH/REPLACE blocks of an answer: each takes a pass over the text.
const BLOCKS_MAX: usize = 100;

impl GenerationTask<'_> {
    /// Applies an answer to the text. Any answer yields a new text or the reason why it cannot be used.
    pub fn read(&self, answer: &str) -> Result<GeneratedText, AnswerError> {
        let written = only_block(without_thoughts(answer))?;
        let original = self.request.text;
        if let Some(line) = elision::find(&written, original) {
            return Err(AnswerError::Elision { line });
        }
        let generated = match self.form {
            AnswerForm::Part { start, end, .. } => apply_to_part(self, &written, start..end),
            AnswerForm::Whole => GeneratedText { text: apply_to_whole(self, &written), part: None },
            AnswerForm::Blocks { marks } => {
                let text = apply_blocks(self, &parse_blocks(&written, marks)?)?;
                GeneratedText { text, part: None }
            }
        };
        if generated.text == original {
            return Err(AnswerError::Unchanged);
        }
        check_loss(self, &generated)?;
        Ok(generated)
    }
}

/// Removes the thoughts that some models begin with, which may contain drafts of whole blocks.
fn without_thoughts(answer: &str) -> &str {
    let thoughts = answer.trim_start().strip_prefix("<think>");
    thoughts.and_then(|rest| rest.split_once("</think>")).map_or(answer, |(_, rest)| rest)
}

fn only_block(answer: &str) -> Result<String, AnswerError> {
    let blocks = fence::read(answer);
    let Some(first) = blocks.first else { return Err(AnswerError::NoBlock) };
    match blocks.count {
        _ if blocks.is_open => Err(AnswerError::Unterminated),
        1 if first.trim().is_empty() => Err(AnswerError::Empty),
        1 => Ok(first),
        count => Err(AnswerError::SeveralBlocks { count }),
    }
}

/// Refuses an answer that drops too many lines of the text that the model was to rewrite.
fn check_loss(task: &GenerationTask<'_>, generated: &GeneratedText) -> Result<(), AnswerError> {
    /// Lines that a part may lose without a refusal: the caller names it to have it changed, so a few lines less are no
    /// accident.
    const SMALL_LOSS_MAX: usize = 10;
    let (before, after, small) = match (&task.form, &generated.part) {
        (AnswerForm::Part { start, end, .. }, Some(part)) => {
            (&task.request.text[*start..*end], part, SMALL_LOSS_MAX)
        }
        _ => (task.request.text, &generated.text, 0),
    };
    let (before, after) = (count_not_blank(before), count_not_blank(after));
    let gone = before.saturating_sub(after);
    if task.request.loss == LineLoss::Refused && gone > small && gone * 10 > before * 3 {
        return Err(AnswerError::Vanished { before, after });
    }
    Ok(())
}

fn count_not_blank(text: &str) -> usize {
    lines::lines(text).filter(|line| !text[line.start..line.end].trim().is_empty()).count()
}

fn apply_to_part(task: &GenerationTask<'_>, written: &str, range: Range<usize>) -> GeneratedText {
    let text = task.request.text;
    let (before, old, after) = (&text[..range.start], &text[range.clone()], &text[range.end..]);
    let mut part = with_endings(written, old, task.ending);
    // A text that ends without a line break still does afterwards.
    let stays_open = after.is_empty() && !text.is_empty() && LineEnding::closing(text).is_none();
    if stays_open {
        remove_last_break(&mut part);
    }
    let joint = if old.is_empty() && stays_open { task.ending.as_str() } else { "" };
    GeneratedText { text: [before, joint, &part, after].concat(), part: Some(part) }
}

fn apply_to_whole(task: &GenerationTask<'_>, written: &str) -> String {
    let original = task.request.text;
    let mut text = with_endings(written, original, task.ending);
    if !original.is_empty() && LineEnding::closing(original).is_none() {
        remove_last_break(&mut text);
    }
    text
}

fn remove_last_break(text: &mut String) {
    let length = LineEnding::closing(text).map_or(0, |ending| ending.as_str().len());
    text.truncate(text.len() - length);
}

/// Returns `written`, whose lines end with `\n`, with the line endings of the text it replaces: line by line where
/// these differ.
fn with_endings(written: &str, replaced: &str, ending: LineEnding) -> String {
    if lines::uniform_ending(replaced).is_some_and(|uniform| uniform == ending)
        || replaced.is_empty()
    {
        return lines::with_ending(written, ending).into_owned();
    }
    let mut places: HashMap<&str, Vec<Line>> = HashMap::new();
    for line in lines::lines(replaced).filter(|line| line.end < line.next) {
        places.entry(&replaced[line.start..line.end]).or_default().push(line);
    }
    let mut text = String::with_capacity(written.len() + written.len() / 16);
    let mut from = 0;
    for line in lines::lines(written) {
        let content = &written[line.start..line.end];
        text.push_str(content);
        // The next line of the old text with the same content is taken to be the same line.
        let same = places
            .get(content)
            .and_then(|places| places.get(places.partition_point(|place| place.start < from)));
        match same {
            Some(old) => {
                text.push_str(&replaced[old.end..old.next]);
                from = old.next;
            }
            None => text.push_str(ending.as_str()),
        }
    }
    text
}

/// A SEARCH/REPLACE block: lines of the text, and the lines that replace them.
#[derive(Debug, Default)]
struct Replacement {
    /// Lines that end with `\n`, in both fields.
    search: String,
    replace: String,
}

/// Position of a line in an answer of SEARCH/REPLACE blocks.
enum BlockPosition {
    Between,
    Search,
    Replace,
}

/// Parses the SEARCH/REPLACE blocks in `written`, whose marks are `marks` characters long.
fn parse_blocks(written: &str, marks: usize) -> Result<Vec<Replacement>, AnswerError> {
    let [search, middle, replace] = ["<", "=", ">"].map(|mark| mark.repeat(marks));
    let (search, replace) = (format!("{search} SEARCH"), format!("{replace} REPLACE"));
    let mut found: Vec<Replacement> = Vec::new();
    let mut at = BlockPosition::Between;
    for line in lines::lines(written) {
        let line = &written[line.start..line.next];
        let mark = line.trim_end();
        let is_mark = [&search, &middle, &replace].into_iter().any(|text| text == mark);
        let block = found.len();
        match (&at, found.last_mut()) {
            (BlockPosition::Between, _) if mark == search => {
                if block == BLOCKS_MAX {
                    return Err(AnswerError::TooManySearches { limit: BLOCKS_MAX });
                }
                found.push(Replacement::default());
                at = BlockPosition::Search;
            }
            (BlockPosition::Between, _) if mark.is_empty() => {}
            (BlockPosition::Between, None) => return Err(AnswerError::NoSearch),
            (BlockPosition::Between, _) => {
                return Err(AnswerError::BrokenSearch { block: block + 1 });
            }
            (BlockPosition::Search, _) if mark == middle => at = BlockPosition::Replace,
            (BlockPosition::Replace, _) if mark == replace => at = BlockPosition::Between,
            (BlockPosition::Search, Some(last)) if !is_mark => last.search.push_str(line),
            (BlockPosition::Replace, Some(last)) if !is_mark => last.replace.push_str(line),
            (BlockPosition::Search | BlockPosition::Replace, _) => {
                return Err(AnswerError::BrokenSearch { block });
            }
        }
    }
    match at {
        BlockPosition::Between => Ok(found),
        BlockPosition::Search | BlockPosition::Replace => {
            Err(AnswerError::BrokenSearch { block: found.len() })
        }
    }
}

/// Applies SEARCH/REPLACE blocks. Each SEARCH is matched against the original text, so that none matches what another
/// block inserted.
fn apply_blocks(
    task: &GenerationTask<'_>,
    replacements: &[Replacement],
) -> Result<String, AnswerError> {
    let text = task.request.text;
    let old: Vec<Line> = lines::lines(text).collect();
    // Encloses every line in line breaks, so that only whole lines match.
    let mut plain = String::with_capacity(text.len() + 2);
    plain.push('\n');
    for line in &old {
        plain.push_str(&text[line.start..line.end]);
        plain.push('\n');
    }
    let mut places: Vec<(Range<usize>, usize)> = Vec::new();
    for (index, replacement) in replacements.iter().enumerate() {
        let block = index + 1;
        if replacement.search.trim().is_empty() {
            return Err(AnswerError::EmptySearch { block });
        }
        let needle = format!("\n{}", replacement.search);
        let Some(at) = plain.find(&needle) else {
            return Err(AnswerError::SearchNowhere { block });
        };
        if plain[at + 1..].contains(&needle) {
            return Err(AnswerError::SearchTwice { block });
        }
        let first = plain[..at].matches('\n').count();
        let count = replacement.search.matches('\n').count();
        places.push((first..first + count, index));
    }
    text::sort_by_numbers(&mut places, |(range, _)| (range.start, 0));
    for pair in places.windows(2) {
        if pair[0].0.end > pair[1].0.start {
            return Err(AnswerError::SearchOverlaps { block: pair[0].1.max(pair[1].1) + 1 });
        }
    }
    let mut new = String::with_capacity(text.len());
    let mut from = 0;
    for (range, index) in places {
        let (start, end) = (old[range.start].start, old[range.end - 1].next);
        new.push_str(&text[from..start]);
        new.push_str(&with_endings(&replacements[index].replace, &text[start..end], task.ending));
        from = end;
    }
    new.push_str(&text[from..]);
    if from == text.len() && LineEnding::closing(text).is_none() {
        remove_last_break(&mut new);
    }
    Ok(new)
}
