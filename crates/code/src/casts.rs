//! Casts of TypeScript, for a grammar that takes `<Type>value` for the beginning of an element.
//!
//! In a file that has no elements, `<` where a value could begin is a cast, or the type parameters of a function
//! without a name. Both can be left out, and what is left still is TypeScript.

use std::borrow::Cow;

use memchr::memchr_iter;

/// A longer one is none.
const LONGEST: usize = 200;

/// `source` with blanks in place of its casts, so that every other byte stays where it is.
pub(crate) fn blanked(source: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let mut casts = Vec::new();
    let mut behind = 0;
    for start in memchr_iter(b'<', &source) {
        if start >= behind
            && (begins_value(&source[..start]) || (behind > 0 && start == behind))
            && let Some(length) = length(&source[start..])
        {
            behind = start + length;
            casts.push(start..behind);
        }
    }
    if casts.is_empty() {
        return source;
    }
    let mut blanked = source.into_owned();
    for cast in casts {
        blanked[cast].fill(b' ');
    }
    Cow::Owned(blanked)
}

/// Whether a value may follow `before`, and not an operator.
fn begins_value(before: &[u8]) -> bool {
    let near = &before[before.len().saturating_sub(LONGEST)..];
    let near = near.trim_ascii_end();
    let starts = near.len() - near.iter().rev().take_while(|byte| is_name_byte(**byte)).count();
    match &near[starts..] {
        [] => {
            near.ends_with(b"=>") || near.last().is_some_and(|last| b"(,=:?[{;!&|+".contains(last))
        }
        word => matches!(
            word,
            b"return"
                | b"typeof"
                | b"await"
                | b"yield"
                | b"in"
                | b"of"
                | b"case"
                | b"throw"
                | b"default"
        ),
    }
}

/// How long the cast is that begins here.
fn length(from: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut last = b' ';
    for (at, byte) in from.iter().copied().enumerate().take(LONGEST) {
        match byte {
            b'<' => depth += 1,
            b'>' if last != b'=' => depth -= 1,
            _ if byte.is_ascii_control() && byte != b'\t' => return None,
            b'"' | b'\'' | b'`' | b';' | b'/' => return None,
            _ => {}
        }
        if depth == 0 {
            return (at > 1).then_some(at + 1);
        }
        last = byte;
    }
    None
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}
