//! Hints for edits that missed, as an agent gets them.

#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use text::LineEnding;
use text::nearest::{
    Difference, HINT_BYTES_MAX, NEAR_MATCHES_MAX, TextSide, explain, near_matches,
};

const RUST: &str = "\
use std::fs;

/// Adds up what is paid.
fn total(prices: &[u64], discount: u64) -> u64 {
    let sum: u64 = prices.iter().sum();
    if sum > discount {
        return sum - discount;
    }
    0
}

fn main() {
    let text = fs::read_to_string(\"prices.txt\").unwrap_or_default();
    let prices: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    println!(\"total: {}\\n\", total(&prices, 3));
}
";

/// The lines of the best place, from 1 as a hint has them, and why it did not fit.
#[track_caller]
fn check(text: &str, needle: &str, lines: std::ops::RangeInclusive<usize>, reasons: &[Difference]) {
    assert!(!text.contains(needle));
    let places = near_matches(text, needle);
    let Some(best) = places.first() else { panic!("nothing near {needle:?}") };
    assert_eq!(best.differences, reasons, "{:?} for {needle:?}", &text[best.bytes.clone()]);
    assert_eq!((best.lines.start + 1, best.lines.end), lines.into_inner(), "{needle:?}");
}

#[test]
fn blanks() {
    let file = TextSide::File;
    let needle = TextSide::Needle;
    check("a {\n\tb\n}\n", "a {\n    b\n}", 1..=3, &[Difference::TabsForSpaces { side: file }]);
    check("a {\n    b\n}\n", "a {\n\tb\n}", 1..=3, &[Difference::TabsForSpaces { side: needle }]);
    let depth = |side, by, tabs| [Difference::IndentDepth { side, by, tabs }];
    check("x\n    a {\n        b\n    }\n", "a {\n    b\n}", 2..=4, &depth(file, 4, false));
    check("x\n    a\n    b\n", "  a\n  b\n", 2..=3, &depth(file, 2, false));
    check("\ta\n\tb\n", "\t\ta\n\t\tb\n", 1..=2, &depth(needle, 1, true));
    check("a:\n  b\n   c\n", "a:\n b\n c\n", 1..=3, &[Difference::Indentation]);
    check("x\n\t foo bar\n", " \tfoo bar\n", 2..=2, &[Difference::Indentation]);
    check("let a  = 1;\n", "let a = 1;", 1..=1, &[Difference::InnerWhitespace]);
    check("f( a, b )\n", "f(a, b)", 1..=1, &[Difference::InnerWhitespace]);
    check("one  \ntwo\n", "one\ntwo", 1..=2, &[Difference::TrailingWhitespace { side: file }]);
    check("one\ntwo\n", "one \ntwo", 1..=2, &[Difference::TrailingWhitespace { side: needle }]);
    check("one\ntwo\n", "one\ntwo ", 1..=2, &[Difference::TrailingWhitespace { side: needle }]);
    check("one\n\n\ntwo\n", "one\ntwo", 1..=4, &[Difference::BlankLines { side: file, by: 2 }]);
    check(
        "one\n\ntwo\n",
        "one\n\n\ntwo\n",
        1..=3,
        &[Difference::BlankLines { side: needle, by: 1 }],
    );
    check("call(a, b)\n", "call(a,\n    b)", 1..=1, &[Difference::LineBreaks]);
    check("one\nlast", "last\n", 2..=2, &[Difference::NoFinalBreak]);
    check(
        "a {\n\tb \n}\n",
        "a {\n    b\n}",
        1..=3,
        &[Difference::TrailingWhitespace { side: file }, Difference::TabsForSpaces { side: file }],
    );
}

#[test]
fn blanks_and_escapes_at_the_ends() {
    let found = |text, needle| {
        let places = near_matches(text, needle);
        assert_eq!(places.len(), 1, "{places:?}");
        &text[places[0].bytes.clone()]
    };
    // A place has the escapes that the needle has.
    let text = "say(\"\\tTotal: 12\\n\");\n";
    assert_eq!(found(text, "\\ttotal: 12\\n"), "\\tTotal: 12\\n");
    assert_eq!(found(text, "total: 12"), "Total: 12");
    // A line break at the needle's start stands behind the blanks of a line, which are none of its own.
    assert_eq!(found("x  \n\tfoo bar quux\n", "\n  FOO bar quux"), "\n\tfoo bar quux");
    assert_eq!(found("x  \n\tfoo bar quux\n", "\\n  FOO bar quux"), "\n\tfoo bar quux");
}

#[test]
fn the_place_with_fewer_differences_is_nearer() {
    let text = "Send Mail to all\nx\nsend Mail to all\n";
    check(text, "send mail to all", 3..=3, &[Difference::Case]);
}

#[test]
fn characters() {
    let (file, needle) = (TextSide::File, TextSide::Needle);
    let blank = |side, character| [Difference::UnusualWhitespace { side, character }];
    check("a = 1;\nb\u{a0}= 2;\n", "b = 2;", 2..=2, &blank(file, '\u{a0}'));
    check("b = 2;\n", "b\u{202f}= 2;", 1..=1, &blank(needle, '\u{202f}'));
    check("wo\u{200b}rd\n", "word", 1..=1, &blank(file, '\u{200b}'));
    check("first\n", "\u{feff}first", 1..=1, &[Difference::ByteOrderMark]);
    let typed = |file: &str, needle: &str| Difference::Typography {
        file: file.into(),
        needle: needle.into(),
    };
    check("say “hi”\n", "say \"hi\"", 1..=1, &[typed("“", "\""), typed("”", "\"")]);
    check("it's\n", "it’s", 1..=1, &[typed("'", "’")]);
    check("say('hi')\n", "say(\"hi\")", 1..=1, &[typed("'", "\"")]);
    check("a – b\n", "a - b", 1..=1, &[typed("–", "-")]);
    check("and so on…\n", "and so on...", 1..=1, &[typed("…", "...")]);
    check("x\ncafe\u{301} noir\n", "caf\u{e9} noir", 2..=2, &[Difference::Composition]);
    check("\u{d55c}글\n", "\u{1112}\u{1161}\u{11ab}글", 1..=1, &[Difference::Composition]);
    check("const MAX_SIZE: u8;\n", "const max_size: u8;", 1..=1, &[Difference::Case]);
    check("ÄRGER\n", "ärger", 1..=1, &[Difference::Case]);
    check("A\u{308}RGER\n", "ärger", 1..=1, &[Difference::Case, Difference::Composition]);
    let ends = Difference::LineEndings { file: LineEnding::CrLf, needle: LineEnding::Lf };
    check("x\na\r\nb\r\n", "a\nb\n", 2..=3, &[ends]);
    let ends = Difference::LineEndings { file: LineEnding::Lf, needle: LineEnding::CrLf };
    check("x\r\na\nb\n", "a\r\nb", 2..=3, &[ends]);
}

#[test]
fn copied_along() {
    let (file, needle) = (TextSide::File, TextSide::Needle);
    let numbered = [
        "     9\t    0\n    10\t}\n",
        "  9→    0\n 10→}",
        "9:     0\n10: }\n",
        " 9 |     0\n10 | }\n",
    ];
    for needle in numbered {
        check(RUST, needle, 9..=10, &[Difference::LineNumbers]);
    }
    let escape = |side, escape: &str| Difference::Escapes { side, escape: escape.into() };
    check("a\nb\n", "a\\nb", 1..=2, &[escape(needle, "\\n")]);
    check(
        "if x {\n\ty(\"z\")\n}\n",
        "if x {\\n\\ty(\\\"z\\\")\\n}",
        1..=3,
        &[escape(needle, "\\n"), escape(needle, "\\\"")],
    );
    check("let a = \"\\d\";\n", "let a = \"\\\\d\";", 1..=1, &[escape(needle, "\\\\")]);
    check("print(\"a\\n\")\nx\n", "print(\"a\n\")\nx", 1..=2, &[escape(file, "\\n")]);
    check("print(\"a\\tb\")\n", "print(\"a\tb\")", 1..=1, &[escape(file, "\\t")]);
    let entity = |side, entity: &str| Difference::Entities { side, entity: entity.into() };
    check(
        "if a < b && c > d\n",
        "if a &lt; b &amp;&amp; c &gt; d",
        1..=1,
        &[entity(needle, "&lt;"), entity(needle, "&amp;"), entity(needle, "&gt;")],
    );
    check("a(&quot;b&quot;)\n", "a(\"b\")", 1..=1, &[entity(file, "&quot;")]);
    check("<p>a &lt; b</p>\n", "<p>a < b</p>", 1..=1, &[entity(file, "&lt;")]);
    check(RUST, "-    0\n-}\n", 9..=10, &[Difference::DiffMarkers]);
    check(
        RUST,
        " fn main() {\n-    let text = fs::read_to_string(\"prices.txt\").unwrap_or_default();\n+    let text = String::new();\n",
        12..=13,
        &[Difference::DiffMarkers],
    );
    check(RUST, "```rust\nfn main() {\n```", 12..=12, &[Difference::Fence]);
    check(
        RUST,
        "```\n 9\t    0\n10\t}\n```\n",
        9..=10,
        &[Difference::Fence, Difference::LineNumbers],
    );
}

#[test]
fn dots() {
    let elided = |dots, lines| [Difference::ElidedLines { dots, lines }];
    let head = "fn total(prices: &[u64], discount: u64) -> u64 {";
    for dots in [
        "...",
        "    // ...",
        "# …",
        "/* ... */",
        "// ... rest of the code",
        "    // ... existing code ...",
    ] {
        check(RUST, &format!("{head}\n{dots}\n    0\n}}"), 4..=10, &elided(1, 4..8));
    }
    // Only alike when folded, and the brace nearest to what is before it.
    check(RUST, &format!("{head}\n...\n}}"), 4..=10, &elided(1, 4..9));
    check("a(1)\nx\n\ta(1)\ny\nz\n", "a(1)\n...\n\tz", 3..=5, &elided(1, 3..4));
    // What begins with too little could be anywhere; and dots beside words are words.
    check("Alpha\nx\ny\nFoo bar\n", "alpha\n...\nfoo bar", 1..=4, &elided(1, 1..3));
    let told = [Difference::DifferentLines { file: 1..3, needle: 1..2 }, Difference::Case];
    check("A\nx\ny\nFoo bar\n", "a\n...\nfoo bar", 1..=4, &told);
    let text = "first line here\nmiddle\nlast line here\n";
    check(
        text,
        "first line here\n... and so on\nlast line here\n",
        1..=3,
        &[Difference::DifferentLines { file: 1..2, needle: 1..2 }],
    );
}

#[test]
fn lines_that_differ() {
    let lines = |file, needle| Difference::DifferentLines { file, needle };
    check(
        RUST,
        "fn total(prices: &[u64], discount: u64) -> u64 {\n    let sum = prices.iter().sum();\n    if sum > discount {\n",
        4..=6,
        &[lines(4..5, 1..2)],
    );
    check(
        RUST,
        "    if sum > discount {\n        return sum;\n    }\n    0\n}\n",
        6..=10,
        &[lines(6..7, 1..2)],
    );
    check(RUST, "    if sum > discount {\n    }\n    0\n}\n", 6..=10, &[lines(6..7, 1..1)]);
    check(RUST, "println!(\"sum: {}\\n\", total(&prices, 3));", 15..=15, &[lines(14..15, 0..1)]);
    check(RUST, "fn total(prices: &[u64], rebate: u64) -> u64 {", 4..=4, &[lines(3..4, 0..1)]);
    // The needle's first and last line are parts of lines.
    check(
        RUST,
        "discount {\n        return 0;\n    }\n    0\n}\n\nfn mai",
        6..=12,
        &[lines(6..7, 1..2)],
    );
    let extra = |at_start, text: &str| [Difference::ExtraWord { at_start, text: text.into() }];
    check(RUST, "pub fn total(prices: &[u64]", 4..=4, &extra(true, "pub"));
    check(RUST, "/// Adds up what is paid. Twice.", 3..=3, &extra(false, "Twice."));
    check(
        RUST,
        "#[inline]\nfn total(prices: &[u64], discount: u64) -> u64 {\n",
        4..=4,
        &[lines(3..3, 0..1)],
    );
}

/// Few lines of which one has a word changed: that one differs and no other, and no line is too many or too few.
#[test]
fn a_word_changed_in_few_lines() {
    let lines = |file, needle| [Difference::DifferentLines { file, needle }];
    let python = "def handler(request):\n    return None\n";
    check(python, "def handler(req):\n    return None\n", 1..=2, &lines(0..1, 0..1));
    check(
        "root.flat_name(target)\n}\nother stuff here\n",
        "root.flat_name(targezq)\n}",
        1..=2,
        &lines(0..1, 0..1),
    );
    check(
        "#[test]\nfn child_never_stops() {\n    let Some((folder, _)) = given() else { return };\n}\n",
        "fn child_never_stops() {\n    let Some((folder, _)) = given() renamed { return };",
        2..=3,
        &lines(2..3, 1..2),
    );
    // At the edge there is only the word beside it to go by.
    check(
        "a\n    .enable_all()\n    .max_blocking_threads(64)\n    .build()\n",
        "    .enable_all()\n    .renamed(64)",
        2..=3,
        &lines(2..3, 1..2),
    );
    // Quotes are not indentation, and a line is no word too many.
    let escape = Difference::Escapes { side: TextSide::Needle, escape: "\\\"".into() };
    check(
        "    call(\n        \"tools/call\",\n        id,\n    );\n",
        "        \\\"tools/call\\\",\n        7,",
        2..=3,
        &[lines(2..3, 1..2).as_slice(), &[escape]].concat(),
    );
    // One that folds alike is before the one that is equal.
    check(
        "    check(\"abc\\n\", 1);\n    check(\"abc\\r\\n\", 1);\n    other(7);\n",
        "    let added = true;\n    check(\"abc\\r\\n\", 1);",
        2..=2,
        &lines(1..1, 0..1),
    );
    check("x = 1;\ny\n", "x = 2;", 1..=1, &lines(0..1, 0..1));
    // A folded line does not start in the midst of another if it is indented.
    check(
        "    [a, b];\n    let found =\n    c(\n    ];\n    let other;\n    let found =\n",
        "    ];\n    let found =",
        4..=6,
        &lines(4..5, 1..1),
    );
}

#[test]
fn each_kind_of_reason_is_named_once() {
    check(
        "alpha one\n\nbeta two\n\ngamma three\n\ndelta four\n",
        "alpha one\nbeta two\ngamma three\nextra\ndelta four",
        1..=7,
        &[
            Difference::DifferentLines { file: 5..5, needle: 3..4 },
            Difference::BlankLines { side: TextSide::File, by: 3 },
        ],
    );
    check(
        "one\n\ntwo\n\nthree\n",
        "one\ntwo\nthree",
        1..=5,
        &[Difference::BlankLines { side: TextSide::File, by: 2 }],
    );
}

#[test]
fn line_ends_are_named_beside_lines_that_differ() {
    check(
        "let alpha = 1;\r\nlet beta = 2;\r\n",
        "let alphas = 1;\nlet betta = 2;\n",
        1..=2,
        &[
            Difference::DifferentLines { file: 0..2, needle: 0..2 },
            Difference::LineEndings { file: LineEnding::CrLf, needle: LineEnding::Lf },
        ],
    );
}

#[test]
fn what_is_not_near_is_not_called_near() {
    for needle in [
        "const fn checksum(bytes: &[u8]) -> u32 {\n    crc32(bytes)\n}\n",
        "import numpy as np\nimport pandas as pd\n",
        "    for entry in walk(root) {\n        visit(entry)?;\n    }\n",
        "SELECT name, price FROM items WHERE price > 100;",
        "let mut count = 0;",
        "return None;",
        "}\n\n#[test]\nfn works() {\n    assert_eq!(1 + 1, 2);\n}\n",
        "x",
        "=> {",
        "struct Point { x: f64, y: f64 }",
        "    if let Some(value) = self.cache.get(&key) {\n        return value.clone();\n    }\n",
        "\u{301}",
        "日本語のテキスト",
    ] {
        assert_eq!(near_matches(RUST, needle), [], "{needle:?}");
        expect!["nothing in the file is near enough to name; read the file again and copy the text from it"]
            .assert_eq(&explain(RUST, needle));
    }
    assert_eq!(near_matches("", "a"), []);
    assert_eq!(explain("", "a"), "the file is empty");
    // Too many to name.
    assert_eq!(near_matches("f(1);\nf(2);\nf(3);\nf(4);\n", "f(9);"), []);
    assert_eq!(explain("a", ""), "old_string is empty");
    assert_eq!(near_matches(RUST, "\n\n\n\n"), []);
}

#[track_caller]
fn hint(text: &str, needle: &str, expected: &Expect) {
    let hint = explain(text, needle);
    assert!(hint.len() <= HINT_BYTES_MAX);
    expected.assert_eq(&hint);
}

#[test]
fn hints() {
    hint(
        RUST,
        "fn main() {\n\tlet text",
        &expect![[r#"
        nearest: lines 12-13: old_string indents with tabs, the file with spaces; first at line 13
        <file_text>
        fn main() {
            let text = fs::read_to_string("prices.txt").unwrap_or_default();
        </file_text>
        copy the text from the file exactly"#]],
    );
    hint(
        RUST,
        "if sum > discount {\n    return sum - discount;\n}\n",
        &expect![[r#"
        nearest: lines 6-8: the file indents by 4 more spaces; first at line 7
        <file_text>
            if sum > discount {
                return sum - discount;
            }
        </file_text>
        copy the text from the file exactly, or use match: "ignore_whitespace""#]],
    );
    hint(
        RUST,
        "    if sum > discount {\n        return discount - sum;\n    }\n    0\n",
        &expect![[r#"
            nearest: lines 6-9: line 7 differs from line 2 of old_string
              the file:   `return sum - discount;`
              old_string: `return discount - sum;`
            <file_text>
                if sum > discount {
                    return sum - discount;
                }
                0
            </file_text>
            copy the text from the file exactly"#]],
    );
    hint(
        RUST,
        "fn main() {\n    // ...\n}\n",
        &expect![[r#"
        nearest: lines 12-16: the dots in line 2 of old_string stand for 3 lines (lines 13-15)
        <file_text>
        fn main() {
            let text = fs::read_to_string("prices.txt").unwrap_or_default();
            let prices: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
            println!("total: {}\n", total(&prices, 3));
        }
        </file_text>
        write out the lines the dots stand for, or make an edit for each part"#]],
    );
    hint(
        RUST,
        " 9\t    0\n10\t}\n",
        &expect![[r#"
            nearest: lines 9-10: old_string has line numbers in front of its lines
            <file_text>
                0
            }
            </file_text>
            copy the text from the file exactly"#]],
    );
    hint(
        RUST,
        "Let text = fs::read_to_string(“prices.txt”)",
        &expect![[r#"
        nearest: line 13: upper and lower case differ; the file has `"` where old_string has `“` (U+201C); the file has `"` where old_string has `”` (U+201D)
        <file_text>
            let text = fs::read_to_string("prices.txt").unwrap_or_default();
        </file_text>
        copy the text from the file exactly"#]],
    );
    hint(
        "a = 1\nb\na  = 1\n",
        "a   = 1",
        &expect![[r#"
        2 places are equally near
        nearest: line 1: blanks within a line differ
        <file_text>
        a = 1
        </file_text>
        nearest: line 3: blanks within a line differ
        <file_text>
        a  = 1
        </file_text>
        copy the text from the file exactly, with enough lines around it to tell the places apart"#]],
    );
}

#[test]
fn hints_for_several_places_and_for_parts() {
    hint(
        "a {\n    b();\n}\n\nfn b() {\n    body();\n}\n\nfn c() {\n    body();\n}\n",
        "fn d() {\n    body();\n}",
        &expect![[r#"
            2 places are equally near
            nearest: lines 5-7: line 5 differs from line 1 of old_string
              the file:   `fn b() {`
              old_string: `fn d() {`
            <file_text>
            fn b() {
                body();
            }
            </file_text>
            nearest: lines 9-11: line 9 differs from line 1 of old_string
              the file:   `fn c() {`
              old_string: `fn d() {`
            <file_text>
            fn c() {
                body();
            }
            </file_text>
            copy the text from the file exactly, with enough lines around it to tell the places apart"#]],
    );
    hint(
        "a  b\n".repeat(9).as_str(),
        "a b",
        &expect![[r#"
        more than 3 places are equally near; the first are
        nearest: line 1: blanks within a line differ
        <file_text>
        a  b
        </file_text>
        nearest: line 2: blanks within a line differ
        <file_text>
        a  b
        </file_text>
        nearest: line 3: blanks within a line differ
        <file_text>
        a  b
        </file_text>
        copy the text from the file exactly, with enough lines around it to tell the places apart"#]],
    );
    hint(
        "first line\n",
        "\u{feff}first line",
        &expect![[r#"
        nearest: line 1: old_string begins with a byte order mark; leave it out
        <file_text>
        first line
        </file_text>
        copy the text from the file exactly"#]],
    );
    hint(
        &format!("{}let x = 1;{}", "ab ".repeat(2000), " cd".repeat(2000)),
        "let  x  = 1;",
        &expect![[r#"
            nearest: line 1: blanks within a line differ
            <file_text part of line 1>
            let x = 1;
            </file_text>
            copy the text from the file exactly"#]],
    );
}

/// A model does not see them.
#[test]
fn lines_with_carriage_returns_are_named() {
    let check = |text, needle, expected| {
        let hint = explain(text, needle);
        assert_eq!(hint.lines().next(), Some(expected), "{hint}");
    };
    check(
        "x\na\r\nb\r\nc\n",
        "a\nb\nc\n",
        "nearest: lines 2-4: the file has CRLF line ends where old_string has LF line ends (lines 2-3 end with `\\r\\n`)",
    );
    check(
        "a\rb\nc\r\nd\n",
        "a\nb\nc\nd",
        "nearest: lines 1-4: the file has CR line ends where old_string has LF line ends (line 1 ends with `\\r`); the file has CRLF line ends where old_string has LF line ends (line 3 ends with `\\r\\n`)",
    );
    check(
        "a\rb\nc\rd\ne\rf\ng\rh\n",
        "a\nb\nc\nd\ne\nf\ng\nh\n",
        "nearest: lines 1-8: the file has CR line ends where old_string has LF line ends (line 1, line 3, line 5 and others end with `\\r`)",
    );
    check(
        "x\na\nb\n",
        "a\r\nb\r\n",
        "nearest: lines 2-3: the file has LF line ends where old_string has CRLF line ends",
    );
}

#[test]
fn long_places_are_cut() {
    let long = (1..300).fold(String::new(), |text, n| {
        let words = (1..30).fold(String::new(), |words, k| format!("{words}w{}, ", k * n));
        format!("{text}    line_{n}({words});\n")
    });
    hint(
        &long,
        &long.replace("line_200", "lime_200"),
        &expect![[r#"
            nearest: lines 198-273: line 200 differs from line 200 of old_string
              the file:   `line_200(w200, w400, w600, w800, w1000, w1200, w1400, w1600, w1800, w2000, w2200, w2400, w2600, w2800, w3000, w3200, w34`…
              old_string: `lime_200(w200, w400, w600, w800, w1000, w1200, w1400, w1600, w1800, w2000, w2200, w2400, w2600, w2800, w3000, w3200, w34`…
            <file_text cut to lines 199-200>
                line_199(w199, w398, w597, w796, w995, w1194, w1393, w1592, w1791, w1990, w2189, w2388, w2587, w2786, w2985, w3184, w3383, w3582, w3781, w3980, w4179, w4378, w4577, w4776, w4975, w5174, w5373, w5572, w5771, );
                line_200(w200, w400, w600, w800, w1000, w1200, w1400, w1600, w1800, w2000, w2200, w2400, w2600, w2800, w3000, w3200, w3400, w3600, w3800, w4000, w4200, w4400, w4600, w4800, w5000, w5200, w5400, w5600, w5800, );
            </file_text>
            read these lines and copy their text exactly"#]],
    );
    hint(
        &long.replace('\n', ""),
        &long.replace('\n', "").replace("line_200", "lime_200"),
        &expect![[r#"
            nearest: line 1: line 1 differs from line 1 of old_string
              the file:   …`75, w5174, w5373, w5572, w5771, );    line_200(w200, w400, w600, w800, w1000, w1200, w1400, w1600, w1800, w2000, w2200, `…
              old_string: …`75, w5174, w5373, w5572, w5771, );    lime_200(w200, w400, w600, w800, w1000, w1200, w1400, w1600, w1800, w2000, w2200, `…
            <file_text cut to part of line 1>
            281, w3474, w3667, w3860, w4053, w4246, w4439, w4632, w4825, w5018, w5211, w5404, w5597, );    line_194(w194, w388, w582, w776, w970, w1164, w1358, w1552, w1746, w1940, w2134, w2328, w2522, w2716, w2910, w3104, w3298, w3492, w3686, w3880, w4074, w4268, w4462, w4656, w4850, w5044, w5238, w5432, w5626, );    line_195(w195, w390, w585, w780, w975, w1170, w1365, w1560, w1755, w1950, w2145, w2340, w2535, w2730, w2925, w3120, w3315, w3510, w3705, w3900, w4095, w4290, w4485, w4680, w4875, w5070, w5265, w5460, w5655, );    line_196(w196, w392, w588, w784, w980, w1176, w1372, w1568, w1764, w1960, w2156
            </file_text>
            read these lines and copy their text exactly"#]],
    );
    hint(
        &format!("x{}", long.replace('\n', "")),
        &long.replace('\n', "").replace("line_200", "line _200"),
        &expect![[r#"
            nearest: line 1: blanks within a line differ
            <file_text cut to part of line 1>
            , w5174, w5373, w5572, w5771, );    line_200(w200, w400, w600, w800, w1000, w1200, w1400, w1600, w1800, w2000, w2200, w2400, w2600, w2800, w3000, w3200, w3400, w3600, w3800, w4000, w4200, w4400, w4600, w4800, w5000, w5200, w5400, w5600, w5800, );    line_201(w201, w402, w603, w804, w1005, w1206, w1407, w1608, w1809, w2010, w2211, w2412, w2613, w2814, w3015, w3216, w3417, w3618, w3819, w4020, w4221, w4422, w4623, w4824, w5025, w5226, w5427, w5628, w5829, );    line_202(w202, w404, w606, w808, w1010, w1212, w1414, w1616, w1818, w2020, w2222, w2424, w2626, w2828, w3030, w3232, w3434, w3636, w3838
            </file_text>
            read these lines and copy their text exactly"#]],
    );
}

/// Only the start of a long needle is searched for, but from where it leaves the text.
#[test]
fn a_late_difference_is_found() {
    let long = (0..9000).fold(String::new(), |text, n| format!("{text}    call_{n}(a, b);\n"));
    let needle = long.replace("call_8000(", "call_8oo0(").replace("    ", "\t");
    let lines = Difference::DifferentLines { file: 8000..8001, needle: 8000..8001 };
    let places = near_matches(&long, &needle);
    assert_eq!(
        places[0].differences,
        [lines, Difference::TabsForSpaces { side: TextSide::Needle }]
    );
}

/// Anything quadratic would not come back.
#[test]
fn vast_and_repetitive_texts_are_no_trouble() {
    let texts = [
        "\n".repeat(1 << 18),
        "let a = b; ".repeat(1 << 15),
        "same line again\n".repeat(1 << 14),
        "ab".repeat(1 << 17),
        "a\nb\n".repeat(1 << 16),
        "\u{a0}".repeat(1 << 17),
        format!("a b{}c d", "\u{a0}\t".repeat(1 << 16)),
        "&amp;".repeat(1 << 16),
        "\\n".repeat(1 << 17),
    ];
    let needles = [
        "let a = c; ".repeat(1000),
        "same line agein\n".repeat(600),
        "same line again\nanother\n".repeat(300),
        "b\na\na\n".repeat(2500),
        format!("{}c{}", "ab".repeat(2500), "ab".repeat(2500)),
        "AB".repeat(5000),
        "a b c  d".into(),
        "foo(x)\n...\n".repeat(900),
        "\u{feff}".repeat(3000),
    ];
    for text in &texts {
        for needle in &needles {
            assert!(explain(text, needle).len() <= HINT_BYTES_MAX);
        }
    }
}

/// Lines an agent could quote, each unlike the others.
/// Numbers by chance, the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }
}

/// Lines of `text`, quoted with so many mistakes.
fn misquoted(text: &str, mistakes: usize, chance: &mut Chance) -> String {
    let all: Vec<&str> = text.lines().collect();
    let first = chance.below(all.len() - 1);
    let most = [3, 12, 80][chance.below(3)].min(all.len() - first);
    let count = 1 + chance.below(most);
    let mut lines: Vec<String> =
        all[first..first + count].iter().map(|line| (*line).to_owned()).collect();
    for _ in 0..mistakes {
        let at = chance.below(lines.len());
        match chance.below(15) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.insert(at, "    something.else(entirely);".into()),
            2 => lines.insert(at, String::new()),
            3 => lines[at] = lines[at].replacen(['a', 'e'], "oo", 2),
            4 => lines[at] = lines[at].replace(' ', "  "),
            5 => lines.iter_mut().for_each(|line| line.insert_str(0, "    ")),
            6 => lines[at] = lines[at].to_uppercase(),
            7 if at > 0 => lines.swap(at - 1, at),
            8 => lines[0] = lines[0].chars().skip(4).collect(),
            9 => lines[at] = lines[at].chars().take(9).collect(),
            10 => lines[at] = lines[at].replace("    ", "\t"),
            11 if at > 0 => {
                let joined = lines.remove(at - 1) + "\\n";
                lines[at - 1].insert_str(0, &joined);
            }
            12 => lines[0].insert_str(0, "extra "),
            13 => lines[at].push_str("extra"),
            _ => lines[at].push_str(" // new"),
        }
    }
    lines.join("\n") + ["", "\n"][chance.below(2)]
}

/// The hint for each of many quotes that went wrong. Nobody promises it to the letter: it is here so that whoever
/// changes how lines are weighed sees what that does.
#[test]
fn many_misquotes() {
    let row = |row| [format!("row {row}: {} of {}", row * row % 97, row * 7 % 89), "\n".into()];
    let rows: String = (0..90).flat_map(row).collect();
    let prose = "Once upon a time there was a file.\n\nIt had lines, and each line had words.\nNobody knew how many.\n\nThen came an edit, and missed.\nIt was nearly right.\nThe file stayed as it was.\n";
    let twice =
        format!("{RUST}\n{}\n{prose}", RUST.replace("prices", "costs").replace("sum", "all"));
    let windows = RUST.replace('\n', "\r\n");
    let texts = [RUST, prose, &rows, &twice, &windows];
    let mut chance = Chance(7);
    let mut told = String::new();
    for number in 0..400 {
        let text = texts[number % texts.len()];
        let needle = misquoted(text, 1 + number % 4, &mut chance);
        let places: Vec<_> = near_matches(text, &needle)
            .iter()
            .map(|near| {
                format!(
                    "{:?} {:?} from {}: {:?}",
                    near.lines, near.bytes, near.first_difference, near.differences
                )
            })
            .collect();
        let begin: String = needle.chars().take(60).collect();
        let _ = writeln!(told, "{number} {begin:?}\n  {}", places.join("\n  "));
    }
    expect_test::expect_file!["misquotes.txt"].assert_eq(&told);
}

fn source() -> impl Strategy<Value = String> {
    let line = "[ \t]{0,6}[a-zéü_]{3,9}( = |\\(\"|: ')[a-z0-9]{2,8}[;\")']{0,2}( [a-z]{1,5}){0,3}";
    prop::collection::vec(line, 1..12).prop_map(|lines| {
        lines
            .iter()
            .enumerate()
            .fold(String::new(), |text, (n, line)| format!("{text}{line} q{n}z\n"))
    })
}

/// A needle made from whole lines by one mutation, and how to know its reason.
type Mutation = (fn(&str) -> String, fn(&Difference) -> bool);

fn mutations() -> Vec<Mutation> {
    vec![
        (
            |s| s.replace('\t', "    "),
            |r| {
                matches!(
                    r,
                    Difference::TabsForSpaces { .. }
                        | Difference::IndentDepth { .. }
                        | Difference::Indentation
                        | Difference::InnerWhitespace
                )
            },
        ),
        (
            |s| s.replace('\n', "  \n"),
            |r| *r == Difference::TrailingWhitespace { side: TextSide::Needle },
        ),
        (
            |s| s.replace(" q", "\u{a0}q"),
            |r| *r == Difference::UnusualWhitespace { side: TextSide::Needle, character: '\u{a0}' },
        ),
        (
            |s| s.replace('"', "”").replace('\'', "’"),
            |r| matches!(r, Difference::Typography { .. }),
        ),
        (|s| s.to_uppercase(), |r| *r == Difference::Case),
        (
            |s| s.replace('\n', "\r\n"),
            |r| *r == Difference::LineEndings { file: LineEnding::Lf, needle: LineEnding::CrLf },
        ),
        (
            |s| {
                s.lines()
                    .zip(7..)
                    .fold(String::new(), |s, (line, n)| format!("{s}{n:>5}\t{line}\n"))
            },
            |r| *r == Difference::LineNumbers,
        ),
        (
            |s| s.replace('\n', "\\n"),
            |r| matches!(r, Difference::Escapes { side: TextSide::Needle, .. }),
        ),
        (|s| s.replace('é', "e\u{301}"), |r| *r == Difference::Composition),
        (
            |s| s.lines().fold(String::new(), |s, line| format!("{s}-{line}\n")),
            |r| *r == Difference::DiffMarkers,
        ),
    ]
}

proptest! {
    #[test]
    fn any_strings_give_a_hint(text in any_text(), needle in any_text()) {
        let hint = explain(&text, &needle);
        prop_assert!(!hint.is_empty() && hint.len() <= HINT_BYTES_MAX);
        for near in near_matches(&text, &needle) {
            prop_assert!(text.get(near.bytes.clone()).is_some());
            prop_assert!(near.lines.end <= text::lines::count(&text));
            prop_assert!(near.differences.is_empty() == (text[near.bytes.clone()] == needle));
        }
    }

    #[test]
    fn a_mutated_quote_is_found_where_it_was(
        text in source(), from in 0_usize..12, len in 1_usize..6, which in 0..mutations().len(),
    ) {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let from = from.min(lines.len() - 1);
        let until = (from + len).min(lines.len());
        let (mutate, is_reason) = mutations()[which];
        let needle = mutate(&lines[from..until].concat());
        prop_assume!(!text.contains(&needle));
        let places = near_matches(&text, &needle);
        prop_assert!(places.len() <= NEAR_MATCHES_MAX);
        let found = places.iter().find(|near| near.lines == (from..until));
        let Some(found) = found else {
            return Err(TestCaseError::fail(format!("{places:?}")));
        };
        prop_assert!(found.differences.iter().any(is_reason), "{:?}", found.differences);
        let line = if until - from == 1 { format!("line {until}") } else { format!("lines {}-{until}", from + 1) };
        prop_assert!(explain(&text, &needle).contains(&line));
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ab\\\\n&lt;.\"“…é\u{301}\u{a0}\u{200b}\u{feff}\r\n\t 1+-]{0,40}",
        "((foo|bar|// \\.\\.\\.|```|\\+x|2: y| {2}\\}|)(\n|\r\n|\r)){0,9}",
    ]
}
