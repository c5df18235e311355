//! What a line is, and what edits of lines make of a text: the plainest way there is, a list of lines.

/// A line's text, and how it ends: `""` for a last one that does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub end: &'static str,
}

impl Line {
    fn new(text: &str, end: &'static str) -> Self {
        Self { text: text.to_owned(), end }
    }
}

/// A line ends with `\r\n`, `\n` or a lone `\r`.
pub fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let end = match character {
            '\r' if characters.peek() == Some(&'\n') => {
                characters.next();
                "\r\n"
            }
            '\r' => "\r",
            '\n' => "\n",
            other => {
                line.push(other);
                continue;
            }
        };
        lines.push(Line { text: std::mem::take(&mut line), end });
    }
    if !line.is_empty() {
        lines.push(Line { text: line, end: "" });
    }
    lines
}

pub fn joined(lines: &[Line]) -> String {
    lines.iter().flat_map(|line| [line.text.as_str(), line.end]).collect()
}

/// The texts of lines, with `\n` between them.
pub fn shown(lines: &[Line]) -> String {
    lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// The ending of all lines that have one, if it is one and the same.
pub fn only_ending(text: &str) -> Option<&'static str> {
    let lines = lines(text);
    let mut ends = lines.iter().map(|line| line.end).filter(|end| !end.is_empty());
    let first = ends.next()?;
    ends.all(|end| end == first).then_some(first)
}

fn most_common_ending(lines: &[Line]) -> &'static str {
    let count = |end: &str| lines.iter().filter(|line| line.end == end).count();
    // Of equally many the last is taken, and `\n` if there are none.
    ["\r", "\r\n", "\n"].into_iter().max_by_key(|end| count(end)).unwrap_or("\n")
}

/// `text` with all its line breaks written as `end`.
pub fn with_ending(text: &str, end: &str) -> String {
    let restyled = |line: &Line| {
        let end = if line.end.is_empty() { "" } else { end };
        [&line.text, end].concat()
    };
    lines(text).iter().map(restyled).collect()
}

/// Where lines end, to find out which one a byte is in.
pub struct Ends(Vec<usize>);

impl Ends {
    pub fn of(text: &str) -> Self {
        let mut end = 0;
        let ends = lines(text).into_iter().filter(|line| !line.end.is_empty()).map(|line| {
            end += line.text.len() + line.end.len();
            end
        });
        Self(ends.collect())
    }

    /// The line (from 0) that a byte is in: a break belongs to the line it ends.
    pub fn line_at(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end <= offset)
    }
}

#[derive(Clone, Debug)]
pub enum Op {
    Replace(String),
    Insert(String),
    Delete,
}

impl Op {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Replace(_) => "replace",
            Self::Insert(_) => "insert",
            Self::Delete => "delete",
        }
    }
}

/// Why edits do not fit: the first in the list that does not.
#[derive(Debug)]
pub enum Misplaced {
    OutOfRange { line: usize, op: &'static str },
    Conflict { edit: usize, prior: usize, line: usize },
}

pub struct Edited {
    pub text: String,
    /// Lines removed or added, whichever are more, of each edit; and the lines appended.
    pub modified: usize,
}

/// The lines that content is: one final break ends its last line, and nothing is one blank line.
fn pieces(content: &str) -> Vec<String> {
    if content.is_empty() {
        return vec![String::new()];
    }
    lines(content).into_iter().map(|line| line.text).collect()
}

/// Edits by lines (from 0) of the text as it is, then what is appended.
pub fn edit(text: &str, edits: &[(usize, Op)], append: &str) -> Result<Edited, Misplaced> {
    let old = lines(text);
    if let Some(misplaced) = first_misplaced(&old, edits) {
        return Err(misplaced);
    }
    let is_open = old.last().is_some_and(|line| line.end.is_empty());
    // How a line that is put before line `at` ends.
    let ending_at = |at: usize| match at.checked_sub(1) {
        Some(above) => Some(old[above].end),
        None => old.first().map(|below| below.end),
    };
    let ending_at = |at: usize| {
        ending_at(at).filter(|end| !end.is_empty()).unwrap_or_else(|| most_common_ending(&old))
    };
    let mut new = Vec::new();
    for (number, line) in old.iter().enumerate() {
        let here = || edits.iter().filter(|(at, _)| *at == number).map(|(_, op)| op);
        for op in here() {
            if let Op::Insert(content) = op {
                let end = ending_at(number);
                new.extend(pieces(content).iter().map(|piece| Line::new(piece, end)));
            }
        }
        match here().find(|op| !matches!(op, Op::Insert(_))) {
            Some(Op::Delete) => {}
            Some(Op::Replace(content)) => {
                let own = if line.end.is_empty() { ending_at(number) } else { line.end };
                new.extend(pieces(content).iter().map(|piece| Line::new(piece, own)));
                // A last line without a break stays so; if it needs one after all, it is that of the text's end.
                new.last_mut().expect("at least one").end = line.end;
            }
            _ => new.push(line.clone()),
        }
    }
    let mut tail: Vec<_> = edits.iter().filter(|(at, _)| *at >= old.len()).collect();
    tail.sort_by_key(|(at, _)| *at);
    let end = ending_at(old.len());
    for (_, op) in tail {
        if let Op::Insert(content) = op {
            new.extend(pieces(content).iter().map(|piece| Line::new(piece, end)));
        }
    }
    if !append.is_empty() {
        new.extend(pieces(append).iter().map(|piece| Line::new(piece, end)));
    }
    finish(&mut new, end, is_open && !append.ends_with(['\n', '\r']));
    Ok(Edited { text: joined(&new), modified: modified(edits, append) })
}

/// Every line but the last has an end, and the last one unless the text is `open`; a blank line always, or it would be
/// none. Two line breaks that would become one are kept apart.
fn finish(new: &mut [Line], end: &'static str, open: bool) {
    for line in new.iter_mut().filter(|line| line.end.is_empty()) {
        line.end = end;
    }
    if let Some(last) = new.last_mut()
        && open
        && !last.text.is_empty()
    {
        last.end = "";
    }
    for at in 1..new.len() {
        if new[at - 1].end == "\r" && new[at].text.is_empty() && new[at].end == "\n" {
            new[at - 1].end = "\r\n";
        }
    }
}

fn modified(edits: &[(usize, Op)], append: &str) -> usize {
    let of = |op: &Op| match op {
        Op::Delete => 1,
        Op::Replace(content) | Op::Insert(content) => pieces(content).len(),
    };
    edits.iter().map(|(_, op)| of(op)).sum::<usize>() + lines(append).len()
}

fn first_misplaced(old: &[Line], edits: &[(usize, Op)]) -> Option<Misplaced> {
    let total = old.len();
    let mut tail: Vec<usize> = (0..edits.len())
        .filter(|&edit| edits[edit].0 >= total && matches!(edits[edit].1, Op::Insert(_)))
        .collect();
    tail.sort_by_key(|&edit| edits[edit].0);
    let (mut end, mut gaps) = (total, Vec::new());
    for edit in tail {
        match &edits[edit] {
            (line, Op::Insert(content)) if *line <= end => end += pieces(content).len(),
            _ => gaps.push(edit),
        }
    }
    for (edit, (line, op)) in edits.iter().enumerate() {
        let is_out = match op {
            Op::Insert(_) => gaps.contains(&edit),
            Op::Replace(_) | Op::Delete => *line >= total,
        };
        if is_out {
            return Some(Misplaced::OutOfRange { line: *line, op: op.name() });
        }
        let takes = |(at, op): &(usize, Op)| at == line && !matches!(op, Op::Insert(_));
        let prior = edits[..edit].iter().position(takes);
        if let (Some(prior), false) = (prior, matches!(op, Op::Insert(_))) {
            return Some(Misplaced::Conflict { edit, prior, line: *line });
        }
    }
    None
}
