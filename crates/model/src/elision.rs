//! Elisions: lines such as `// ... existing code ...` that stand for code the model left out.

use std::collections::HashSet;

use text::lines;

/// Longest line that may be an elision, in bytes.
const LINE_BYTES_MAX: usize = 200;

/// Marks that a comment may begin with; longer ones come before those they begin with.
const LEADERS: &[&str] =
    &["{/*", "<!--", "/**", "/*", "//", "--", "(*", "##", "#", ";;", ";", "%", "[", "*"];
const CLOSERS: &[&str] = &["*/}", "-->", "*/", "*)", "]"];

/// Words that say by themselves that code was left out.
const LEFT_OUT: &str = "unchanged unmodified omitted brevity elided truncated";
/// Words that elisions use for the code that was left out.
const EARLIER: &str = "existing remaining rest previous original other same";
/// Words for the thing that this code is a part of.
const PARTS: &str = "code file function functions class classes method methods implementation module body \
    content contents script lines fields imports tests";
/// Other words in elisions.
const FILLERS: &str = "the of is are remains remain stays stay as before above below for here goes your \
    keep leave no not changes changed needed this and in it was with all everything else continues continue \
    logic part section to";

/// Returns the first line of `written`, counted from 1, that is an elision and is not in `original` as well.
pub(crate) fn find(written: &str, original: &str) -> Option<usize> {
    let found: Vec<(usize, &str)> = lines::lines(written)
        .map(|line| written[line.start..line.end].trim())
        .enumerate()
        .filter(|(_, line)| is_marker(line))
        .map(|(index, line)| (index + 1, line))
        .collect();
    if found.is_empty() {
        return None;
    }
    let known: HashSet<&str> = lines::lines(original)
        .map(|line| original[line.start..line.end].trim())
        .filter(|line| is_marker(line))
        .collect();
    found.into_iter().find(|(_, line)| !known.contains(line)).map(|(line, _)| line)
}

fn is_marker(line: &str) -> bool {
    if line.len() > LINE_BYTES_MAX {
        return false;
    }
    let (leader, rest) = strip_leader(line);
    let (leading, rest) = strip_dots_before(rest);
    let (trailing, rest) = strip_dots_after(rest);
    // `...rest` spreads a variable of that name.
    if leader.is_none() && !line.starts_with("... ") && !line.starts_with("… ") {
        return false;
    }
    let words = words(rest);
    let any_of = |lists: &[&str]| words.iter().any(|word| is_in(word, lists));
    let all_known = words.iter().all(|word| is_in(word, &[LEFT_OUT, EARLIER, PARTS, FILLERS]));
    if words.is_empty() {
        // `...` alone is a statement in Python and a parameter in C; in a comment it can only be an elision.
        (leading || trailing) && rest.is_empty() && leader.is_some_and(|leader| leader != "*")
    } else if leading {
        // The text after the dots may name anything: `// ... rest of parse() and its helpers`.
        words.iter().take(4).any(|word| is_in(word, &[LEFT_OUT, EARLIER]))
    } else if trailing {
        all_known && any_of(&[LEFT_OUT, EARLIER, PARTS])
    } else {
        all_known && (any_of(&[LEFT_OUT]) || names_earlier_part(&words))
    }
}

fn is_in(word: &str, lists: &[&str]) -> bool {
    lists.iter().any(|list| list.split(' ').any(|known| known == word))
}

/// True for words such as `existing code` and `rest of the file`.
fn names_earlier_part(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str).filter(|word| !matches!(*word, "of" | "the"));
    let Some(mut before) = words.next() else { return false };
    words.any(|word| {
        let names = is_in(before, &["existing remaining rest"])
            && is_in(word, &["code file function functions class method methods implementation"]);
        before = word;
        names
    })
}

fn strip_leader(line: &str) -> (Option<&'static str>, &str) {
    let found = LEADERS.iter().find_map(|leader| Some((*leader, line.strip_prefix(leader)?)));
    let Some((leader, rest)) = found else { return (None, line) };
    let rest = rest.trim();
    let rest = CLOSERS.iter().find_map(|closer| rest.strip_suffix(closer)).unwrap_or(rest);
    (Some(leader), rest.trim())
}

fn strip_dots_before(text: &str) -> (bool, &str) {
    let rest = text.strip_prefix("...").or_else(|| text.strip_prefix('…'));
    rest.map_or((false, text), |rest| (true, rest.trim_start_matches(['.', '…', ' '])))
}

fn strip_dots_after(text: &str) -> (bool, &str) {
    let rest = text.strip_suffix("...").or_else(|| text.strip_suffix('…'));
    rest.map_or((false, text), |rest| (true, rest.trim_end_matches(['.', '…', ' '])))
}

fn words(text: &str) -> Vec<String> {
    let is_end = |character: char| !character.is_alphanumeric() && character != '_';
    text.split(is_end).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_stand_for_code_are_found() {
        let check = |line: &str| {
            assert_eq!(find(&format!("one\n    {line}\nthree\n"), "one\n"), Some(2), "{line}");
        };
        check("// ... existing code ...");
        check("// ...");
        check("# ...");
        check("# …");
        check("/* ... */");
        check("<!-- ... rest of the page ... -->");
        check("{/* ... existing code ... */}");
        check("// rest of file unchanged");
        check("// rest of the code remains the same");
        check("# The rest of the file is unchanged.");
        check("// (existing code)");
        check("-- unchanged");
        check("// ... rest of parse() and its helpers");
        check("// keep the existing code here");
        check("# remaining methods...");
        check("/* omitted for brevity */");
        check("; existing implementation");
        check("... existing code ...");
        check("[... unchanged ...]");
    }

    #[test]
    fn lines_that_only_look_like_it_are_not() {
        let check = |line: &str| assert_eq!(find(&format!("    {line}\n"), ""), None, "{line}");
        check("...");
        check("…");
        check("..=9 => {}");
        check("f(...args)");
        check("...rest");
        check("...previous,");
        check("...(original ?? existing),");
        check("// Loading...");
        check("// the rest of the file is parsed when somebody asks for it");
        check("// same as above");
        check("# Original implementation");
        check("# Remaining balance of the account");
        check("println!(\"// ... existing code ...\");");
        check("existing code");
        check("* ...");
        check("// ");
        check("#");
        check("// The file");
        check("let rest = unchanged;");
        check(&format!("// ...{} existing code", " ".repeat(LINE_BYTES_MAX)));
    }

    #[test]
    fn what_was_there_may_stay() {
        assert_eq!(find("  # ...\nb\n", "a\n# ...\n"), None);
        assert_eq!(find("# ...\n# ... unchanged\n", "a\n# ...\n"), Some(2));
    }
}
