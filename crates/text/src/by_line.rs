//! Edits addressed by line number, turned into splices.
//!
//! - A line number refers to the text before all edits, in whatever order they are listed. Only lines inserted at or
//!   past its end build on each other: they form a tail.
//! - Content consists of lines: its line breaks become those of the place where it is put, and one final break ends its
//!   last line rather than adding a blank one.
//! - The text ends with a line break afterwards if it did before. One exception: a blank last line keeps its break,
//!   because without it there would be no line.
//! - A `\r` that would stand before a blank line ending with `\n` becomes `\r\n`, or the two lines would be one.
//!
//! The caller decides if the result is worth writing, and converts line numbers of another base.

use std::{cell::OnceCell, ops::Range};

use crate::lines::{Line, LineEnding, common_ending, count, lines};
use crate::order::sort_by_numbers;
use crate::{EditError, Splice};

/// One change of one line, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineEdit {
    pub line: usize,
    pub op: LineOp,
}

/// The operation of a line edit. Content `""` is one blank line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineOp {
    /// Puts content before the line; if the line is the number of lines, after the last one.
    Insert(String),
    Replace(String),
    Delete,
}

impl LineOp {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Insert(_) => "insert",
            Self::Replace(_) => "replace",
            Self::Delete => "delete",
        }
    }

    /// Returns the content that the operation puts there.
    pub fn content(&self) -> Option<&str> {
        match self {
            Self::Insert(content) | Self::Replace(content) => Some(content),
            Self::Delete => None,
        }
    }

    /// Returns how many lines the operation removes and how many it adds.
    fn lines(&self) -> (usize, usize) {
        let removed = usize::from(!matches!(self, Self::Insert(_)));
        (removed, self.content().map_or(0, |content| content_lines(content).count()))
    }
}

/// The effect of line edits on a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinePlan {
    /// Sorted and disjoint.
    pub splices: Vec<Splice>,
    /// The greater of lines removed and lines added, summed over the edits, plus the lines appended.
    pub lines_modified: usize,
    /// Number of lines of the text afterwards.
    pub total_lines: usize,
}

/// Plans `edits`, then `append`, which starts on a line of its own and ends the text with a line break if it has one.
///
/// If several edits do not fit, the error names the first in the list.
pub fn plan(text: &str, edits: &[LineEdit], append: Option<&str>) -> Result<LinePlan, EditError> {
    let total = count(text);
    let ordered = check_and_sort(edits, total)?;
    let (inside, tail) = ordered.split_at(ordered.partition_point(|edit| edit.line < total));
    let append = append.filter(|content| !content.is_empty());

    let mut builder = SpliceBuilder {
        text,
        splices: Vec::new(),
        first: OnceCell::new(),
        common: OnceCell::new(),
    };
    let (mut lines, mut passed) = (lines(text), 0);
    for group in inside.chunk_by(|a, b| a.line == b.line) {
        let number = group[0].line;
        let Some(line) = lines.nth(number - passed) else { break };
        passed = number + 1;
        for edit in group {
            match &edit.op {
                LineOp::Insert(content) => builder.insert(line.start, content),
                LineOp::Replace(content) => builder.replace(line, content),
                LineOp::Delete => _ = builder.replacement_of(line.start..line.next),
            }
        }
    }
    let last = inside.last().filter(|edit| edit.line + 1 == total).map(|edit| &edit.op);
    builder.finish(last, tail, append);

    let mut plan = LinePlan { splices: builder.splices, lines_modified: 0, total_lines: total };
    let changes = edits.iter().map(|edit| edit.op.lines());
    for (removed, added) in changes.chain(append.map(|content| (0, count(content)))) {
        plan.lines_modified += removed.max(added);
        plan.total_lines = plan.total_lines + added - removed;
    }
    Ok(plan)
}

/// Checks every edit and sorts them by line; at one line inserts come first, else as listed.
fn check_and_sort(edits: &[LineEdit], total: usize) -> Result<Vec<&LineEdit>, EditError> {
    let mut order: Vec<usize> = (0..edits.len()).collect();
    sort_by_numbers(&mut order, |&edit| {
        (edits[edit].line, (!matches!(edits[edit].op, LineOp::Insert(_))).into())
    });

    let mut end = total; // where the tail ends so far
    let mut taken: Option<usize> = None; // the edit that replaces or deletes the latest line
    let mut errors = Vec::new();
    for &edit in &order {
        let LineEdit { line, ref op } = edits[edit];
        let out_of_range =
            |valid| EditError::LineOutOfRange { edit, line, op: op.name(), valid: 0..valid };
        match op {
            LineOp::Insert(_) if line > end => errors.push((edit, out_of_range(end + 1))),
            LineOp::Insert(content) if line >= total => end += content_lines(content).count(),
            LineOp::Insert(_) => {}
            _ if line >= total => errors.push((edit, out_of_range(total))),
            _ => match taken.filter(|&prior| edits[prior].line == line) {
                Some(prior) => errors.push((edit, EditError::LineConflict { edit, prior, line })),
                None => taken = Some(edit),
            },
        }
    }
    match errors.into_iter().min_by_key(|(edit, _)| *edit) {
        Some((_, error)) => Err(error),
        None => Ok(order.into_iter().map(|edit| &edits[edit]).collect()),
    }
}

/// Returns the lines of content, without terminators; `""` is one blank line.
fn content_lines(content: &str) -> impl Iterator<Item = &str> {
    let blank = content.is_empty().then_some("");
    lines(content).map(|line| &content[line.start..line.end]).chain(blank)
}

/// Splices under construction, for places visited in order.
struct SpliceBuilder<'a> {
    text: &'a str,
    splices: Vec<Splice>,
    /// The first line's ending and the most common one, searched for once: a long line costs as much as a long text.
    first: OnceCell<Option<LineEnding>>,
    common: OnceCell<LineEnding>,
}

impl SpliceBuilder<'_> {
    /// Returns the replacement of `range`, to be appended to. Touching ranges share one splice.
    fn replacement_of(&mut self, range: Range<usize>) -> &mut String {
        match self.splices.last_mut() {
            Some(last) if last.range.end == range.start => last.range.end = range.end,
            _ => self.splices.push(Splice { range, text: String::new() }),
        }
        let last = self.splices.len() - 1;
        &mut self.splices[last].text
    }

    fn insert(&mut self, at: usize, content: &str) {
        let ending = self.ending_at(at);
        let out = self.replacement_of(at..at);
        content_lines(content).for_each(|piece| push_line(out, piece, ending));
    }

    /// Replaces the content of a line; its terminator stays out of the splice.
    fn replace(&mut self, line: Line, content: &str) {
        let own = LineEnding::closing(&self.text[line.end..line.next]);
        let ending = own.unwrap_or_else(|| self.ending_at(line.start));
        let out = self.replacement_of(line.start..line.end);
        let mut pieces = content_lines(content).peekable();
        while let Some(piece) = pieces.next() {
            match pieces.peek() {
                Some(_) => push_line(out, piece, ending),
                None => out.push_str(piece),
            }
        }
    }

    /// Returns the ending of lines that are inserted at `at`, the start of a line or the end of the text: that of the
    /// line above, for the first line that of the line below, or else the most common one.
    fn ending_at(&self, at: usize) -> LineEnding {
        let first = || {
            let line = lines(self.text).next()?;
            LineEnding::closing(&self.text[line.end..line.next])
        };
        let common = || common_ending(self.text).unwrap_or(LineEnding::Lf);
        let above = LineEnding::closing(&self.text[..at]);
        let below = || if at == 0 { *self.first.get_or_init(first) } else { None };
        above.or_else(below).unwrap_or_else(|| *self.common.get_or_init(common))
    }

    /// Puts the tail and the appended text behind the last line, whose edit is `last`, and keeps the end of the text as
    /// it was.
    fn finish(&mut self, last: Option<&LineOp>, tail: &[&LineEdit], append: Option<&str>) {
        let end = self.text.len();
        let open = end > 0 && LineEnding::closing(self.text).is_none();
        let ending = self.ending_at(end);
        match last {
            _ if !tail.is_empty() || append.is_some() => {
                let deleted = matches!(last, Some(LineOp::Delete));
                let out = self.replacement_of(end..end);
                if open && !deleted {
                    push_line(out, "", ending); // the break that the last line lacks
                }
                let contents = tail.iter().filter_map(|edit| edit.op.content()).chain(append);
                contents.flat_map(content_lines).for_each(|line| push_line(out, line, ending));
                if open && append.and_then(LineEnding::closing).is_none() {
                    remove_break(out);
                }
            }
            Some(LineOp::Delete) if open => self.remove_last_break(),
            Some(LineOp::Replace(_)) if open => {
                let out = self.replacement_of(end..end);
                if is_line_start(out) {
                    push_line(out, "", ending);
                }
            }
            _ => {}
        }
        self.separate_line_breaks();
    }

    /// Removes the break of the line that is last now: the deleted last line had none.
    fn remove_last_break(&mut self) {
        let Some((last, before)) = self.splices.split_last_mut() else { return };
        if !last.text.is_empty() {
            return remove_break(&mut last.text);
        }
        let kept = &self.text[..last.range.start];
        let Some(ending) = LineEnding::closing(kept) else { return };
        let end = kept.len() - ending.as_str().len();
        let blank = match before.last() {
            Some(above) if above.range.end == end => is_line_start(&above.text),
            _ => is_line_start(&kept[..end]),
        };
        if !blank {
            last.range.start = end;
        }
    }

    /// Completes every `\r` that would otherwise stand before a `\n` of another line.
    fn separate_line_breaks(&mut self) {
        for Splice { range, text: out } in &mut self.splices {
            let (before, after) = (&self.text[..range.start], &self.text[range.end..]);
            if out.ends_with('\r') && after.starts_with('\n') {
                out.push('\n');
            }
            let next = if out.is_empty() { after } else { out.as_str() };
            if before.ends_with('\r') && next.starts_with('\n') {
                out.insert(0, '\n');
            }
        }
    }
}

fn push_line(out: &mut String, content: &str, ending: LineEnding) {
    if out.ends_with('\r') && content.is_empty() && ending == LineEnding::Lf {
        out.push('\n');
    }
    out.push_str(content);
    out.push_str(ending.as_str());
}

/// Removes the break of the last line, unless that line is blank.
fn remove_break(out: &mut String) {
    let Some(ending) = LineEnding::closing(out) else { return };
    let end = out.len() - ending.as_str().len();
    if !is_line_start(&out[..end]) {
        out.truncate(end);
    }
}

/// True if text that follows `text` starts a line.
fn is_line_start(text: &str) -> bool {
    text.is_empty() || LineEnding::closing(text).is_some()
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::model::model;
    use super::*;
    use crate::splice::apply;

    fn insert(line: usize, content: &str) -> LineEdit {
        LineEdit { line, op: LineOp::Insert(content.into()) }
    }

    fn replace(line: usize, content: &str) -> LineEdit {
        LineEdit { line, op: LineOp::Replace(content.into()) }
    }

    fn delete(line: usize) -> LineEdit {
        LineEdit { line, op: LineOp::Delete }
    }

    #[track_caller]
    fn check(before: &str, edits: &[LineEdit], after: &str) {
        check_append(before, edits, "", after);
    }

    #[track_caller]
    fn check_append(before: &str, edits: &[LineEdit], append: &str, after: &str) {
        let plan = plan(before, edits, Some(append)).unwrap();
        assert_eq!(apply(before, &plan.splices), after, "{before:?} {edits:?} {append:?}");
        assert_eq!(plan.total_lines, count(after));
    }

    #[track_caller]
    fn check_modified(edits: &[LineEdit], append: Option<&str>, modified: usize) {
        assert_eq!(plan("a\nb\nc\n", edits, append).unwrap().lines_modified, modified);
    }

    #[track_caller]
    fn refuse(before: &str, edits: &[LineEdit], error: &EditError) {
        assert_eq!(&plan(before, edits, Some("more")).unwrap_err(), error);
    }

    #[test]
    fn each_operation_on_its_own() {
        check("a\nb\nc\n", &[], "a\nb\nc\n");
        check("a\nb\nc\n", &[insert(0, "x")], "x\na\nb\nc\n");
        check("a\nb\nc\n", &[insert(2, "x")], "a\nb\nx\nc\n");
        check("a\nb\nc\n", &[insert(3, "x")], "a\nb\nc\nx\n");
        check("a\nb\nc\n", &[replace(1, "x")], "a\nx\nc\n");
        check("a\nb\nc\n", &[delete(0)], "b\nc\n");
        check("a\nb\nc\n", &[delete(2)], "a\nb\n");
        check("", &[insert(0, "x")], "x\n");
        check("", &[], "");
    }

    #[test]
    fn line_numbers_mean_the_text_before() {
        check("a\nb\nc\n", &[delete(0), insert(2, "x"), replace(1, "B")], "B\nx\nc\n");
        check("a\nb\nc\n", &[replace(2, "C"), replace(0, "A\nAA"), delete(1)], "A\nAA\nC\n");
        check("a\nb\n", &[replace(1, "B"), insert(1, "x"), insert(1, "y")], "a\nx\ny\nB\n");
        check("a\nb\n", &[delete(1), insert(1, "x")], "a\nx\n");
    }

    #[test]
    fn inserts_at_the_end_build_on_each_other() {
        let five = [insert(0, "a"), insert(1, "b"), insert(2, "c"), insert(3, "d"), insert(4, "e")];
        check("", &five, "a\nb\nc\nd\ne\n");
        check("", &[insert(2, "c"), insert(0, "a\nb")], "a\nb\nc\n");
        check("a\n", &[insert(2, "y"), insert(1, "x")], "a\nx\ny\n");
        check("a\n", &[insert(1, "x"), insert(1, "y"), insert(3, "z")], "a\nx\ny\nz\n");
        check("a\n", &[delete(0), insert(1, "x"), insert(2, "y")], "x\ny\n");
        // A tail insert that names a line within the tail is still put behind it.
        check("a\n", &[insert(1, "x\ny\nz"), insert(2, "w")], "a\nx\ny\nz\nw\n");
    }

    #[test]
    fn what_is_out_of_range_says_what_is_valid() {
        let out =
            |edit, line, op, valid| EditError::LineOutOfRange { edit, line, op, valid: 0..valid };
        refuse("a\nb\n", &[replace(2, "x")], &out(0, 2, "replace", 2));
        refuse("a\nb\n", &[delete(0), delete(9)], &out(1, 9, "delete", 2));
        refuse("a\nb\n", &[insert(3, "x")], &out(0, 3, "insert", 3));
        refuse("a\nb\n", &[insert(2, "x\ny"), insert(5, "z")], &out(1, 5, "insert", 5));
        refuse("", &[replace(0, "x")], &out(0, 0, "replace", 0));
        refuse("", &[insert(usize::MAX, "x")], &out(0, usize::MAX, "insert", 1));
        // A line inserted by another edit does not count.
        refuse("", &[insert(0, "x"), replace(0, "y")], &out(1, 0, "replace", 0));
        // The first in the list, not the first in the text.
        refuse("a\n", &[insert(7, "x"), insert(5, "y"), delete(1)], &out(0, 7, "insert", 2));
    }

    #[test]
    fn one_line_takes_one_replace_or_delete() {
        let conflict = |edit, prior, line| EditError::LineConflict { edit, prior, line };
        refuse("a\nb\n", &[replace(1, "x"), delete(1)], &conflict(1, 0, 1));
        refuse("a\nb\n", &[delete(0), insert(0, "x"), delete(0)], &conflict(2, 0, 0));
        refuse("a\nb\n", &[replace(0, "x"), replace(1, "x"), replace(0, "x")], &conflict(2, 0, 0));
        refuse(
            "a\nb\n",
            &[delete(1), delete(0), delete(1), delete(0), delete(1)],
            &conflict(2, 0, 1),
        );
    }

    /// The result depends on the line above being blank, be it made by an edit or not.
    #[test]
    fn a_last_line_without_a_break_is_deleted() {
        check("x\ny\n\nlast", &[replace(0, "z"), delete(3)], "z\ny\n\n");
        check("x\ny\nlast", &[replace(0, ""), delete(2)], "\ny");
        check("x\ny\nlast", &[replace(1, ""), delete(2)], "x\n\n");
        check("x\n\nlast", &[replace(1, "z"), delete(2)], "x\nz");
    }

    #[test]
    fn content_is_lines() {
        check("a\n", &[insert(0, "x\n")], "x\na\n");
        check("a\n", &[insert(0, "x\n\n")], "x\n\na\n");
        check("a\n", &[insert(0, "")], "\na\n");
        check("a\n", &[insert(0, "\n")], "\na\n");
        check("a\n", &[replace(0, "")], "\n");
        check("a\n", &[replace(0, "x\r\ny\rz\r")], "x\ny\nz\n");
    }

    #[test]
    fn endings_follow_the_place() {
        check("a\r\nb\n", &[replace(0, "x\ny")], "x\r\ny\r\nb\n");
        check("a\r\nb\n", &[insert(1, "x\ny")], "a\r\nx\r\ny\r\nb\n");
        check("a\r\nb\n", &[insert(0, "x")], "x\r\na\r\nb\n");
        check("a\r\nb\n", &[insert(2, "x\r\ny")], "a\r\nb\nx\ny\n");
        check("a\rb", &[insert(2, "x\ny")], "a\rb\rx\ry");
        check("a\rb", &[replace(1, "x\ny")], "a\rx\ry");
        check("a\nb\r\nc\r\nd", &[insert(4, "x")], "a\nb\r\nc\r\nd\r\nx");
        check("a", &[insert(0, "x")], "x\na");
        check("a\r\nb\n", &[insert(1, "x"), delete(0)], "x\r\nb\n");
    }

    #[test]
    fn the_end_stays_as_it_was() {
        check("a\nb", &[delete(1)], "a");
        check("a\nb", &[delete(0)], "b");
        check("a\nb", &[delete(0), delete(1)], "");
        check("a\nb\n", &[delete(0), delete(1)], "");
        check("a\nb", &[insert(2, "c")], "a\nb\nc");
        check("a\nb", &[replace(1, "x\ny")], "a\nx\ny");
        check("a\nb", &[replace(0, "x"), delete(1)], "x");
        check("a\nb", &[delete(1), insert(1, "x")], "a\nx");
        check("a\nb", &[delete(1), insert(2, "x")], "a\nx");
        check("a\nb", &[delete(0), delete(1), insert(0, "x")], "x");
        check("a\r\nb\r\nc", &[delete(1), delete(2)], "a");
        check("a\nb\nc", &[insert(1, "x"), delete(1), delete(2)], "a\nx");
        check("a\nb\n", &[delete(0), delete(1), insert(2, "x")], "x\n");
    }

    #[test]
    fn a_blank_last_line_keeps_its_break() {
        check("a\n\nb", &[delete(2)], "a\n\n");
        check("a\nb", &[insert(2, "")], "a\nb\n\n");
        check("a\nb", &[replace(1, "")], "a\n\n");
        check("a", &[replace(0, "")], "\n");
        check("a\nb", &[replace(0, ""), delete(1)], "\n");
        check("a\nb", &[insert(1, "x\n\n"), delete(1)], "a\nx\n\n");
        check("a\nb", &[replace(1, ""), insert(2, "c")], "a\n\nc");
        check("\nb", &[insert(0, "x"), delete(1)], "x\n\n");
    }

    #[test]
    fn a_lone_cr_and_a_blank_line_stay_two_lines() {
        check("a\rb\n\nc", &[delete(1)], "a\r\n\nc");
        check("a\rb\nc", &[replace(1, "")], "a\r\n\nc");
        check("a\rb\nc", &[replace(1, "\nx")], "a\r\n\nx\nc");
        check("a\rb\nc", &[insert(1, "x"), replace(1, "")], "a\rx\r\n\nc");
        check("a\rb\n\nc", &[insert(1, "x"), delete(1)], "a\rx\r\n\nc");
        check("a\rb\r\n\r\nc", &[delete(1)], "a\r\r\nc");
        let edits = [insert(2, ""), delete(2), delete(3), replace(4, "")];
        check("a\r\nb\rc\r\nd\ne", &edits, "a\r\nb\r\r\r\n");
    }

    #[test]
    fn appended_text_starts_on_its_own_line() {
        check_append("a\n", &[], "x", "a\nx\n");
        check_append("a", &[], "x", "a\nx");
        check_append("a", &[], "x\n", "a\nx\n");
        check_append("a", &[], "", "a");
        check_append("", &[], "x", "x\n");
        check_append("a\n", &[], "x\n\n", "a\nx\n\n");
        check_append("a\n", &[], "\n", "a\n\n");
        check_append("a\r\nb", &[], "x\ny", "a\r\nb\r\nx\r\ny");
        check_append("a\nb\r\n", &[], "x\ny", "a\nb\r\nx\r\ny\r\n");
        check_append("a\nb", &[delete(1)], "x", "a\nx");
        check_append("a", &[delete(0)], "x", "x");
        check_append("a\n", &[delete(0)], "x", "x\n");
        check_append("a", &[insert(1, "t"), replace(0, "A")], "x\n", "A\nt\nx\n");
    }

    #[test]
    fn modified_lines_are_the_greater_of_removed_and_added() {
        check_modified(&[], None, 0);
        check_modified(&[delete(0), delete(1)], None, 2);
        check_modified(&[replace(0, "a")], None, 1);
        check_modified(&[replace(0, "x\ny\nz\n")], None, 3);
        check_modified(&[insert(1, ""), insert(3, "x\n\n")], Some("y\nz"), 5);
        check_modified(&[], Some(""), 0);
    }

    #[test]
    fn only_what_changes_is_spliced() {
        let before = "one\r\ntwo\r\nthree\r\n";
        let splices = plan(before, &[replace(1, "two"), insert(0, "zero"), insert(0, "0")], None)
            .unwrap()
            .splices;
        let expected = [(0..0, "zero\r\n0\r\n"), (5..8, "two")];
        assert_eq!(splices, expected.map(|(range, text)| Splice { range, text: text.into() }));
    }

    fn edits() -> impl Strategy<Value = Vec<LineEdit>> {
        let content = "([ab]|\n|\r\n|\r){0,3}";
        let op = prop_oneof![
            content.prop_map(LineOp::Insert),
            content.prop_map(LineOp::Replace),
            Just(LineOp::Delete),
        ];
        prop::collection::vec((0usize..6, op).prop_map(|(line, op)| LineEdit { line, op }), 0..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn the_plan_does_what_the_model_does(
            text in "((é|)(\n|\r\n|\r)){0,5}(é|)",
            edits in edits(),
            append in prop::option::of("([ab]|\n|\r){0,3}"),
        ) {
            let plan = plan(&text, &edits, append.as_deref());
            let model = model(&text, &edits, append.as_deref());
            match (plan, model) {
                (Ok(plan), Ok(expected)) => {
                    prop_assert!(plan.splices.is_sorted_by(|a, b| a.range.end <= b.range.start));
                    let after = apply(&text, &plan.splices);
                    prop_assert_eq!(plan.total_lines, count(&after));
                    prop_assert_eq!(after, expected);
                }
                (plan, model) => prop_assert_eq!(plan.err(), model.err()),
            }
        }
    }
}
