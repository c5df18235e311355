//! A model of line edits, on a list of lines and without regard to cost, that the plan is tested against.

use super::{LineEdit, LineOp};
use crate::EditError;

/// Content and terminator, which is empty when the line has none.
type Line = (String, String);

/// The end of a text: with a line break or without.
#[derive(Clone, Copy, PartialEq)]
enum TextEnd {
    Terminated,
    Open,
}

/// Returns the text after the edits.
pub(super) fn model(
    text: &str,
    edits: &[LineEdit],
    append: Option<&str>,
) -> Result<String, EditError> {
    let old = split(text);
    let append = append.unwrap_or("");
    refuse(&old, edits)?;

    let mut new: Vec<Line> = vec![];
    for (number, line) in old.iter().enumerate() {
        let ending = ending_at(&old, number);
        let here: Vec<&LineOp> =
            edits.iter().filter(|edit| edit.line == number).map(|edit| &edit.op).collect();
        for op in &here {
            if let LineOp::Insert(content) = op {
                new.extend(content_lines(content).into_iter().map(|piece| (piece, ending.clone())));
            }
        }
        match here.into_iter().find(|op| op.name() != "insert") {
            None => new.push(line.clone()),
            Some(LineOp::Replace(content)) => {
                let inner = if line.1.is_empty() { &ending } else { &line.1 };
                new.extend(content_lines(content).into_iter().map(|piece| (piece, inner.clone())));
                new.last_mut().unwrap().1.clone_from(&line.1);
            }
            Some(_) => {}
        }
    }
    let ending = ending_at(&old, old.len());
    let tail =
        tail(&old, edits).into_iter().flat_map(|edit| content_lines(edit.op.content().unwrap()));
    let appended = split(append).into_iter().map(|(content, _)| content);
    new.extend(tail.chain(appended).map(|content| (content, ending.clone())));

    let broken = |text: &str| text.ends_with(['\r', '\n']);
    let is_terminated = text.is_empty() || broken(text) || broken(append);
    Ok(join(new, &ending, if is_terminated { TextEnd::Terminated } else { TextEnd::Open }))
}

fn split(text: &str) -> Vec<Line> {
    let mut found = vec![];
    let mut content = String::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let ending = match char {
            '\r' if chars.next_if_eq(&'\n').is_some() => "\r\n",
            '\r' => "\r",
            '\n' => "\n",
            _ => {
                content.push(char);
                continue;
            }
        };
        found.push((std::mem::take(&mut content), ending.to_string()));
    }
    if !content.is_empty() {
        found.push((content, String::new()));
    }
    found
}

fn content_lines(content: &str) -> Vec<String> {
    match content {
        "" => vec![String::new()],
        _ => split(content).into_iter().map(|(content, _)| content).collect(),
    }
}

fn ending_at(old: &[Line], line: usize) -> String {
    let near = if line == 0 { old.first() } else { old.get(line - 1) };
    let near = near.map_or("", |line| line.1.as_str());
    let times = |ending: &str| old.iter().filter(|line| line.1 == ending).count();
    let (lf, crlf, cr) = (times("\n"), times("\r\n"), times("\r"));
    let common = match () {
        () if lf >= crlf && lf >= cr => "\n",
        () if crlf >= cr => "\r\n",
        () => "\r",
    };
    if near.is_empty() { common.into() } else { near.into() }
}

fn tail<'e>(old: &[Line], edits: &'e [LineEdit]) -> Vec<&'e LineEdit> {
    let mut tail: Vec<_> =
        edits.iter().filter(|edit| edit.line >= old.len() && edit.op.name() == "insert").collect();
    tail.sort_by_key(|edit| edit.line);
    tail
}

fn refuse(old: &[Line], edits: &[LineEdit]) -> Result<(), EditError> {
    for (index, edit) in edits.iter().enumerate() {
        let (line, op) = (edit.line, edit.op.name());
        let mut valid = old.len();
        if op == "insert" {
            valid += 1;
            for before in
                tail(old, edits).into_iter().take_while(|other| !std::ptr::eq(*other, edit))
            {
                if before.line < valid {
                    valid += content_lines(before.op.content().unwrap()).len();
                }
            }
        }
        if line >= valid {
            return Err(EditError::LineOutOfRange { edit: index, line, op, valid: 0..valid });
        }
        let rival = |prior: &LineEdit| prior.line == line && prior.op.name() != "insert";
        if let Some(prior) = edits[..index].iter().position(rival)
            && op != "insert"
        {
            return Err(EditError::LineConflict { edit: index, prior, line });
        }
    }
    Ok(())
}

fn join(lines: Vec<Line>, missing: &str, end: TextEnd) -> String {
    let mut out = String::new();
    let last = lines.len();
    for (number, (content, ending)) in lines.into_iter().enumerate() {
        let ending = if ending.is_empty() { missing } else { &ending };
        if out.ends_with('\r') && content.is_empty() && ending == "\n" {
            out.push('\n');
        }
        out += &content;
        if number + 1 < last || end == TextEnd::Terminated || content.is_empty() {
            out += ending;
        }
    }
    out
}
