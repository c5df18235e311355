//! Text made safe to print on a terminal: a character that the terminal would act on, or that cannot be seen, becomes a
//! readable escape.
//!
//! The crate `unicode-properties` has general categories but not the property `Default_Ignorable`, so the ranges of
//! invisible characters are listed here; they are those of Unicode 17.

use std::borrow::Cow;
use std::fmt::Write as _;

/// True for a character that must not reach a terminal as it is.
///
/// - Controls (C0 except line break and tab, DEL, C1): the terminal interprets them as commands.
/// - Bidi controls: they show a line in another order than the one it is executed in.
/// - Characters of no width (joiners, fillers, variation selectors, tags): two texts that differ would look the same.
///   The joiner within an emoji is one of these, and is escaped too: a name or a diff must show all that is in it.
/// - Separators of lines and paragraphs: some terminals break the line there.
///
/// Visible characters stay, even those that Unicode classifies as format characters (U+0600, U+06DD).
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' | ' '..='~' => false,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{13430}'..='\u{1345f}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => c.is_control(),
    }
}

/// Returns text as a terminal may show it: `\u{202e}` for a character that [`is_hidden`]. The carriage return of a CRLF
/// is dropped, since the two are one line break.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + text.len() / 4);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\r' && rest.peek() == Some(&'\n') {
            continue;
        }
        if is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// Returns text as [`printable`] does, on one line: line breaks and tabs are escaped too.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    match printable(text) {
        shown if shown.contains(['\n', '\t']) => {
            shown.replace('\n', "\\n").replace('\t', "\\t").into()
        }
        shown => shown,
    }
}

/// Returns JSON as a terminal may show it, and still the same JSON: `\u202e` for a character that [`is_hidden`]. In
/// valid JSON these occur between quotes only.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| c != '\r' && is_hidden(c);
    if !json.contains(is_hidden) {
        return json.into();
    }
    let mut shown = String::with_capacity(json.len() + json.len() / 4);
    for c in json.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_hidden_becomes_an_escape_and_the_rest_stays() {
        let check = |text: &str, shown: &str| assert_eq!(printable(text), shown, "{text:?}");
        check(
            "plain\ttext\nä 漢 🙂 \u{627}\u{644}\u{600}",
            "plain\ttext\nä 漢 🙂 \u{627}\u{644}\u{600}",
        );
        check("\x1b]0;t\x07", r"\u{1b}]0;t\u{7}");
        check("\0\x7f\u{80}\u{9b}2J", r"\u{0}\u{7f}\u{80}\u{9b}2J");
        check("a\r\nb\rc\r\r\n", "a\nb\\u{d}c\\u{d}\n");
        check("\u{202e}evil\u{2069}", r"\u{202e}evil\u{2069}");
        check("\u{200e}\u{200f}\u{61c}", r"\u{200e}\u{200f}\u{61c}");
        check(
            "a\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}",
            r"a\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}",
        );
        check("\u{2028}\u{2029}\u{ad}\u{fe0f}", r"\u{2028}\u{2029}\u{ad}\u{fe0f}");
        check("\u{e0041}\u{e007f}\u{e01ef}", r"\u{e0041}\u{e007f}\u{e01ef}");
        assert!(matches!(printable("plain\n"), Cow::Borrowed(_)));
        assert_eq!(printable_line("a\nb\tc\u{7}"), r"a\nb\tc\u{7}");
    }

    #[test]
    fn json_stays_the_same_json() {
        let json = "{\n\t\"a\u{202e}\\\\\u{9b}\": \"\u{e0041}\u{7f}ä\"\r\n}";
        let shown = "{\n\t\"a\\u202e\\\\\\u009b\": \"\\udb40\\udc41\\u007fä\"\r\n}";
        assert_eq!(printable_json(json), shown);
        assert!(matches!(printable_json("{}\n"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn nothing_that_is_shown_is_hidden(text: String) {
            prop_assert!(!printable(&text).contains(is_hidden));
            let line = printable_line(&text);
            prop_assert!(!line.contains(is_hidden) && !line.contains(['\n', '\t']));
        }

        #[test]
        fn a_json_text_stands_for_the_same(text: String) {
            let mut json = Vec::new();
            crate::escape(&text, &mut json);
            let json = String::from_utf8(json).unwrap();
            let shown = printable_json(&json);
            prop_assert!(!shown.contains(is_hidden));
            prop_assert_eq!(crate::unescape(&shown), Some(text));
        }
    }
}
