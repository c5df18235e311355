//! The functions that find tokens, as tables: what `src/lex.rs` reads.
//!
//! Of a character such a function asks only whether it is one, or lies between two, that its text names. So characters
//! between two that are named anywhere are all alike, and asking every state about one of them tells of all.

use std::collections::{BTreeSet, HashMap};

use crate::BuildError;

/// Characters to ask about: the first of each stretch of those that are alike, from 0 on.
pub fn characters(text: &str) -> Result<Vec<i32>, BuildError> {
    let mut firsts = BTreeSet::from([0]);
    for number in numbers(text)?.into_iter().filter(|number| *number <= 0x10_ffff) {
        firsts.extend([number, number + 1]);
    }
    // The distance from one to the next is written in 16 bits.
    firsts.extend((0..0x11_0000).step_by(0x8000));
    Ok(firsts.into_iter().collect())
}

/// All numbers and characters that a text in C names.
fn numbers(text: &str) -> Result<Vec<i32>, BuildError> {
    let mut numbers = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first == '\'' {
            let (character, length) = quoted(rest).ok_or("a quote that is none of a character")?;
            numbers.push(character);
            length
        } else {
            let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            numbers.extend(number(&rest[..end]));
            end.max(first.len_utf8())
        };
        rest = rest.get(length..).ok_or("a character without an end")?;
    }
    Ok(numbers)
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A character in quotes, which comes first, and how long it is with them.
fn quoted(text: &str) -> Option<(i32, usize)> {
    let mut characters = text.chars().skip(1);
    let first = characters.next()?;
    if first != '\\' {
        return Some((i32::try_from(u32::from(first)).ok()?, 2 + first.len_utf8()));
    }
    let character = match characters.next()? {
        'a' => 7,
        'b' => 8,
        't' => 9,
        'n' => 10,
        'v' => 11,
        'f' => 12,
        'r' => 13,
        '0' => 0,
        other => i32::try_from(u32::from(other)).ok()?,
    };
    Some((character, 4))
}

fn number(word: &str) -> Option<i32> {
    match word.strip_prefix("0x") {
        Some(digits) => i32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// Behaviour of one function: for each state the token that ends there, and a step for each character asked about.
pub struct LexerTable {
    pub ends: Vec<u16>,
    pub steps: Vec<Vec<u16>>,
}

impl LexerTable {
    /// Reads rows that begin with the token.
    pub fn read(words: &[u16], width: usize) -> Self {
        let rows = words.chunks_exact(width + 1);
        Self {
            ends: rows.clone().map(|row| row[0]).collect(),
            steps: rows.map(|row| row[1..].to_vec()).collect(),
        }
    }

    /// Returns one step for each class.
    pub fn steps(&self, firsts: &[usize]) -> Vec<u16> {
        self.steps.iter().flat_map(|row| firsts.iter().map(|first| row[*first])).collect()
    }
}

/// The class of each that was asked about: two for which every function does the same in every state are of one. And
/// the first of each class.
pub fn classes(asked: &[LexerTable], width: usize) -> (Vec<u16>, Vec<usize>) {
    let rows: Vec<_> = asked.iter().flat_map(|one| &one.steps).collect();
    let mut firsts = Vec::new();
    let mut known = HashMap::new();
    let classes = (0..width).map(|at| {
        let column: Vec<u16> = rows.iter().map(|row| row[at]).collect();
        *known.entry(column).or_insert_with(|| {
            firsts.push(at);
            u16::try_from(firsts.len() - 1).expect("as many as characters that are named")
        })
    });
    (classes.collect(), firsts)
}
