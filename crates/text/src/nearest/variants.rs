//! Variants of a needle without what agents copy along with a text: line numbers, diff markers, code fences, an extra
//! word.

use super::Difference;
use super::fold::fold;
use crate::lines::lines;

/// Shortest rest of a needle, folded: a shorter one could be anywhere.
const REST_BYTES_MIN: usize = 8;

/// A needle as it may have been meant, and the reasons undone to get it.
pub(super) struct NeedleVariant<'a> {
    pub(super) needle: std::borrow::Cow<'a, str>,
    pub(super) undone: Vec<Difference>,
}

/// Returns the variants of a needle, the needle itself first.
pub(super) fn variants(needle: &str) -> Vec<NeedleVariant<'_>> {
    let mut variants = vec![NeedleVariant { needle: needle.into(), undone: Vec::new() }];
    if let Some(inside) = without_fence(needle) {
        variants.push(NeedleVariant { needle: inside.into(), undone: vec![Difference::Fence] });
    }
    for base in 0..variants.len() {
        let more =
            |reason| variants[base].undone.iter().cloned().chain([reason]).collect::<Vec<_>>();
        let (numbered, marked) = (more(Difference::LineNumbers), more(Difference::DiffMarkers));
        let base = variants[base].needle.clone();
        let unnumbered = change_each_line(&base, without_line_number);
        variants.extend(unnumbered.map(|it| NeedleVariant { needle: it.into(), undone: numbered }));
        for other in ['+', '-'] {
            if let Some(side) = one_side_of_diff(&base, other) {
                variants.push(NeedleVariant { needle: side.into(), undone: marked.clone() });
            }
        }
    }
    variants
}

/// Returns the needle without the first or last of several words, if that leaves most of it.
pub(super) fn without_outer_word<'a>(needle: &'a str) -> Vec<NeedleVariant<'a>> {
    let whitespace = [' ', '\t'];
    let first = needle.trim_start().split_once(whitespace);
    let first = first.map(|(word, rest)| (word, rest.trim_start_matches(whitespace), true));
    let last = needle.trim_end().rsplit_once(whitespace);
    let last = last.map(|(rest, word)| (word, rest.trim_end_matches(whitespace), false));
    let shortest = REST_BYTES_MIN.max(fold(needle).len() / 2);
    let variants = first.into_iter().chain(last).filter(|(word, rest, at_start)| {
        // A whole line that is missing is left to the comparison by lines.
        let breaks = ['\n', '\r'];
        let alone = if *at_start { rest.starts_with(breaks) } else { rest.ends_with(breaks) };
        !alone && !word.contains(breaks) && fold(rest).len() >= shortest
    });
    let variant = |(word, rest, at_start): (&str, &'a str, bool)| NeedleVariant {
        needle: rest.into(),
        undone: vec![Difference::ExtraWord { at_start, text: word.into() }],
    };
    variants.map(variant).collect()
}

/// Returns the text between a line that opens a code fence and one that closes it.
fn without_fence(needle: &str) -> Option<&str> {
    let trimmed = needle.trim();
    let (opening, rest) = trimmed.split_once('\n')?;
    let (inside, closing) = rest.rsplit_once('\n')?;
    (opening.starts_with("```") && closing.trim() == "```").then_some(inside)
}

/// Returns `needle` with `change` made to the lines that are not blank; `None` if one of them has nothing to change.
fn change_each_line(needle: &str, change: impl Fn(&str) -> Option<&str>) -> Option<String> {
    let mut changed = String::with_capacity(needle.len());
    for line in lines(needle) {
        let content = &needle[line.start..line.end];
        changed.push_str(if content.trim().is_empty() { content } else { change(content)? });
        changed.push_str(&needle[line.end..line.next]);
    }
    Some(changed)
}

/// Returns the rest of a line after a line number and its separator.
fn without_line_number(line: &str) -> Option<&str> {
    let number = line.trim_start();
    let rest = number.trim_start_matches(|character: char| character.is_ascii_digit());
    if rest.len() == number.len() {
        return None;
    }
    let rest = rest.trim_start_matches(' ');
    match rest.chars().next()? {
        separator @ ('\t' | '→') => rest.strip_prefix(separator),
        ':' | '|' => Some(rest[1..].strip_prefix(' ').unwrap_or(&rest[1..])),
        _ => None,
    }
}

/// Returns the lines of a diff that do not start with `other`, without their markers. `None` if it is not a diff, or if
/// no line is marked as belonging to that side.
fn one_side_of_diff(needle: &str, other: char) -> Option<String> {
    let own = if other == '+' { '-' } else { '+' };
    let mut side = String::with_capacity(needle.len());
    let mut marked = false;
    for line in lines(needle) {
        let content = &needle[line.start..line.next];
        if content.starts_with(other) || content.starts_with("@@") {
            continue;
        }
        marked |= content.starts_with(own);
        match content.strip_prefix([own, ' ']) {
            Some(rest) => side.push_str(rest),
            None if line.start == line.end => side.push_str(content),
            None => return None,
        }
    }
    marked.then_some(side)
}
