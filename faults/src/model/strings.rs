//! What edits of strings make of a text: each is looked for in what the ones before it left.

use super::lines::{Ends, only_ending, with_ending};

#[derive(Clone, Debug)]
pub struct Edit {
    pub old: String,
    pub new: String,
    pub all: bool,
    pub count: Option<usize>,
    /// Counted from 0; only of a first edit, whose lines are those of the text before all.
    pub near: Option<usize>,
}

#[derive(Debug)]
pub enum Refused {
    Empty { edit: usize },
    Missing { edit: usize },
    Several { edit: usize, count: usize },
    Conflict { edit: usize, prior: usize },
    TooLarge { size: usize },
}

pub struct Edited {
    pub text: String,
    /// Of each edit, the lines (from 0) of its places, just before it; and where its only place is in the end, if it was
    /// the only edit.
    pub places: Vec<Vec<(usize, usize)>>,
    pub last_places: Vec<(usize, usize)>,
    /// Whether line breaks were taken in the style of the file.
    pub restyled: bool,
}

/// The text on its way: its bytes, and where each was in the original.
struct Staged {
    text: String,
    origins: Vec<Option<usize>>,
    /// What each edit took of the original.
    taken: Vec<Vec<usize>>,
}

/// Where `needle` is; matches may overlap.
fn everywhere(text: &str, needle: &str) -> Vec<usize> {
    let is_match = |at: &usize| text.as_bytes()[*at..].starts_with(needle.as_bytes());
    (0..text.len()).filter(is_match).collect()
}

/// `room`: how many bytes the text may have at most, on the way too.
pub fn edit(original: &str, edits: &[Edit], room: usize) -> Result<Edited, Refused> {
    let mut staged = Staged {
        text: original.to_owned(),
        origins: (0..original.len()).map(Some).collect(),
        taken: Vec::new(),
    };
    let mut done = Edited {
        text: String::new(),
        places: Vec::new(),
        last_places: Vec::new(),
        restyled: false,
    };
    for (index, edit) in edits.iter().enumerate() {
        let old = styled(&staged.text, &edit.old, edit.old.contains('\r'));
        let (starts, length, restyled) = find(&staged, edit, index, &old)?
            .ok_or_else(|| missed(original, &staged, edits, index, &old))?;
        let new = new_text(&staged.text, edit, restyled);
        let size = staged.text.len() - starts.len() * length + starts.len() * new.len();
        if size > room {
            return Err(Refused::TooLarge { size });
        }
        done.restyled |= restyled;
        let before = spans(&staged.text, &starts, length);
        done.places.push(before);
        staged.replace(&starts, length, &new);
        let moved = |(number, start): (usize, &usize)| start + number * new.len() - number * length;
        let now: Vec<_> = starts.iter().enumerate().map(moved).collect();
        done.last_places = spans(&staged.text, &now, new.len());
    }
    done.text = staged.text;
    Ok(done)
}

/// With its line feeds in the style of the staged text, unless the caller writes carriage returns.
fn styled(staged: &str, text: &str, is_literal: bool) -> String {
    let style = only_ending(staged).filter(|_| !is_literal);
    style.map_or(text.to_owned(), |end| with_ending(text, end))
}

/// What is put in. The `\r` before a match that begins with the `\n` of a CRLF needs that `\n` alone.
fn new_text(staged: &str, edit: &Edit, restyled: bool) -> String {
    let is_literal = edit.old.contains('\r') || edit.new.contains('\r');
    let is_within = !restyled && edit.old.starts_with('\n') && only_ending(staged) == Some("\r\n");
    match edit.new.strip_prefix('\n').filter(|_| is_within && !is_literal) {
        Some(rest) => format!("\n{}", styled(staged, rest, false)),
        None => styled(staged, &edit.new, is_literal),
    }
}

/// The first and the last line of each place.
fn spans(text: &str, starts: &[usize], length: usize) -> Vec<(usize, usize)> {
    let ends = Ends::of(text);
    let span = |start: &usize| {
        let start = *start.min(&text.len().saturating_sub(1));
        (ends.line_at(start), ends.line_at((start + length).max(start + 1) - 1))
    };
    starts.iter().map(span).collect()
}

type Places = (Vec<usize>, usize, bool);

/// Where an edit applies, how many bytes each place has, and whether line breaks were taken otherwise than written.
fn find(
    staged: &Staged,
    edit: &Edit,
    index: usize,
    styled: &str,
) -> Result<Option<Places>, Refused> {
    if edit.old.is_empty() {
        return match (staged.text.is_empty(), edit.count) {
            (false, _) => Err(Refused::Empty { edit: index }),
            (true, None | Some(1)) => Ok(Some((vec![0], 0, false))),
            (true, Some(_)) => Err(Refused::Several { edit: index, count: 1 }),
        };
    }
    for old in [edit.old.as_str(), styled] {
        let found = everywhere(&staged.text, old);
        if !found.is_empty() {
            let picked = pick(&staged.text, edit, index, found, old.len())?;
            return Ok(Some((picked, old.len(), old != edit.old)));
        }
    }
    Ok(None)
}

fn pick(
    text: &str,
    edit: &Edit,
    index: usize,
    mut found: Vec<usize>,
    length: usize,
) -> Result<Vec<usize>, Refused> {
    let is_all = edit.near.is_none() && (edit.all || edit.count > Some(1));
    if is_all {
        let mut end = 0;
        found.retain(|&at| {
            let is_free = at >= end;
            end = if is_free { at + length } else { end };
            is_free
        });
    }
    let several = Err(Refused::Several { edit: index, count: found.len() });
    if edit.count.is_some_and(|count| count != found.len()) {
        return several;
    }
    if is_all || found.len() == 1 {
        return Ok(found);
    }
    let Some(near) = edit.near else { return several };
    let ends = Ends::of(text);
    let distance = |at: &usize| {
        let (first, last) = (ends.line_at(*at), ends.line_at(at + length - 1));
        first.saturating_sub(near).max(near.saturating_sub(last))
    };
    let least = found.iter().map(distance).min();
    let nearest: Vec<_> = found.iter().copied().filter(|at| Some(distance(at)) == least).collect();
    if nearest.len() == 1 { Ok(nearest) } else { several }
}

/// A string that was there once, and of which an edit for another string took a part, is in conflict with that.
fn missed(original: &str, staged: &Staged, edits: &[Edit], index: usize, old: &str) -> Refused {
    let missing = Refused::Missing { edit: index };
    let [at] = everywhere(original, old)[..] else { return missing };
    let took = |taken: &Vec<usize>| taken.iter().any(|byte| (at..at + old.len()).contains(byte));
    match staged.taken.iter().position(took) {
        Some(prior) if edits[prior].old != edits[index].old => {
            Refused::Conflict { edit: index, prior }
        }
        _ => missing,
    }
}

impl Staged {
    fn replace(&mut self, starts: &[usize], length: usize, new: &str) {
        let (mut text, mut origins, mut taken) = (String::new(), Vec::new(), Vec::new());
        let mut passed = 0;
        for &start in starts {
            let end = start + length;
            text.extend([&self.text[passed..start], new]);
            origins.extend_from_slice(&self.origins[passed..start]);
            origins.extend(std::iter::repeat_n(None, new.len()));
            taken.extend(self.origins[start..end].iter().flatten());
            passed = end;
        }
        text.push_str(&self.text[passed..]);
        origins.extend_from_slice(&self.origins[passed..]);
        (self.text, self.origins) = (text, origins);
        self.taken.push(taken);
    }
}
