//! Expressions of licences, as packages name theirs.

/// Those under which a program may be given away by whoever keeps to MIT or Apache 2.0 and names their authors.
const FINE: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether one may take it: of licences joined by `OR` (formerly `/`) one must be fine, of those joined by `AND` all. An
/// exception `WITH` which one is given only adds to what is allowed.
pub fn is_fine(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    either(&mut words) && words.next().is_none()
}

type Words<'e> = std::iter::Peekable<std::str::SplitWhitespace<'e>>;

fn either(words: &mut Words) -> bool {
    let mut is_fine = all(words);
    while words.next_if_eq(&"OR").is_some() {
        is_fine |= all(words);
    }
    is_fine
}

fn all(words: &mut Words) -> bool {
    let mut is_fine = one(words);
    while words.next_if_eq(&"AND").is_some() {
        is_fine &= one(words);
    }
    is_fine
}

fn one(words: &mut Words) -> bool {
    let is_fine = match words.next() {
        Some("(") => either(words) && words.next() == Some(")"),
        Some(name) => FINE.contains(&name),
        None => false,
    };
    if words.next_if_eq(&"WITH").is_some() {
        words.next();
    }
    is_fine
}

#[test]
fn expressions_are_understood() {
    let check = |expression, expected| assert_eq!(is_fine(expression), expected, "{expression}");
    check("MIT", true);
    check("MIT/Apache-2.0", true);
    check("GPL-3.0", false);
    check("GPL-3.0 OR MIT", true);
    check("MIT AND GPL-3.0", false);
    check("(MIT OR GPL-3.0) AND Unicode-3.0", true);
    check("MIT OR GPL-3.0 AND GPL-2.0", true);
    check("Apache-2.0 WITH LLVM-exception", true);
    check("(MIT", false);
    check("MIT)", false);
    check("MIT MIT", false);
    check("", false);
}
