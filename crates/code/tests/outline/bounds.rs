//! Outlines of any text are made, and soon.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::outline;
use code::outline::{
    DOC_CHARS_MAX, NAME_CHARS_MAX, Outline, OutlineOrigin, PARTS_MAX, SCOPE_DEPTH_MAX,
    SIGNATURE_CHARS_MAX,
};
use code::references::references;
use code::syntax::{errors, new_errors};
use code::tree::PARSED_BYTES_MAX;

const PATHS: [&str; 21] = [
    "a.rs", "a.py", "a.go", "A.java", "a.c", "a.js", "a.ts", "a.tsx", "a.json", "a.toml", "a.yaml",
    "a.html", "a.css", "a.txt", "a.cpp", "A.cs", "a.rb", "a.php", "a.sh", "A.kt", "A.swift",
];

/// Checks what holds of every outline.
fn verify(outline: &Outline, text: &str) {
    let lines = text::lines::count(text);
    assert!(outline.parts.len() <= PARTS_MAX);
    assert!(outline.parts.is_sorted_by_key(|part| part.bytes.start));
    for part in &outline.parts {
        assert!(part.lines.first <= part.lines.last && part.lines.last < lines, "{part:?}");
        assert!(
            text.get(part.bytes.clone()).is_some() && text.get(part.name_bytes.clone()).is_some()
        );
        assert!(!part.name.is_empty() && part.name.chars().count() <= NAME_CHARS_MAX);
        assert!(
            part.signature.chars().count() <= SIGNATURE_CHARS_MAX
                && part.scope.len() <= SCOPE_DEPTH_MAX
        );
        if let Some(doc) = &part.doc {
            assert!(doc.lines.first <= doc.lines.last && doc.lines.last < lines, "{part:?}");
            assert!(
                text.get(doc.bytes.clone()).is_some() && doc.text.chars().count() <= DOC_CHARS_MAX
            );
        }
    }
}

fn try_all(path: &str, text: &str) {
    let started = Instant::now();
    // As a deadline has it, so that a busy machine is no failure.
    let stop = || started.elapsed() > Duration::from_secs(2);
    verify(&code::outline::outline(path, text, &stop), text);
    let started = Instant::now();
    let stop = || started.elapsed() > Duration::from_secs(2);
    errors(path, text, &stop);
    assert!(started.elapsed() < Duration::from_secs(8), "{path} {:?}", text.get(..20));
}

#[test]
fn deep_and_wide_texts_are_answered() {
    let units = [
        "(",
        "{",
        "[",
        "<a>",
        "fn a(){",
        "class A{",
        "def f():\n ",
        "- ",
        "a: ",
        "{\"a\":",
        "\"",
        "/*",
        "a(",
        "`${",
        "}",
        "a=1\n",
        "#if 1\n",
        "\n",
        "\r",
        "int f(){}\n",
        "function a(){",
    ];
    for path in PATHS {
        for unit in units {
            try_all(path, &unit.repeat(5_000 / unit.len()));
        }
    }
}

#[test]
fn stairs_are_answered() {
    let stairs = |steps: usize, step: &str| -> String {
        (0..steps).map(|depth| " ".repeat(depth) + step + "\n").collect()
    };
    for step in ["a:", "-", "?", "- a: |"] {
        try_all("a.yaml", &stairs(600, step));
    }
    for end in ["f'{a", "f'{f\"{a", "'"] {
        try_all("a.py", &(stairs(600, "if a:") + &" ".repeat(600) + end));
    }
    // What real files have is parsed.
    assert_eq!(errors("a.yaml", &stairs(80, "a:"), &|| false), Some(Vec::new()));
    assert!(errors("a.py", &stairs(100, "if a:"), &|| false).is_some());
    let wide = "a: 1, ".repeat(200);
    assert_eq!(errors("a.yaml", &format!("x: {{{wide}}}\n"), &|| false), Some(Vec::new()));
}

/// The library lets go of what it read by calling itself, once for each token.
#[test]
fn a_thread_with_little_room_can_parse_anything() {
    let small = thread::Builder::new().stack_size(1 << 20);
    let texts = [("a.php", "<?php\n", "$\"{"), ("a.php", "<?php\n", "$("), ("a.ts", "", "a<b<")];
    let parsing = small.spawn(move || {
        for (path, start, unit) in texts {
            try_all(path, &(start.to_owned() + &unit.repeat((500 << 10) / unit.len())));
        }
    });
    parsing.unwrap().join().unwrap();
}

/// No token is found in any of it, and the scanner reads to the end each time.
#[test]
fn a_scanner_that_reads_to_the_end_again_and_again_is_stopped() {
    try_all("a.swift", &format!("let a = {}", "#".repeat(500 << 10)));
    // One long list, of which each child is further down than the one before.
    try_all("a.swift", &"a?".repeat(25_000));
}

/// Scanners keep words and what they are inside of, in 1,024 bytes: here it is a little less, just that, and more.
#[test]
fn what_scanners_keep_is_answered() {
    let word = |length: usize| "w".repeat(length);
    let lengths = (240..260).chain([500, 510, 511, 512, 513, 760, 1000, 1010, 1024, 3_000]);
    for length in lengths {
        let word = word(length);
        for text in
            [format!("a = <<{word}\nb\n{word}\nc\n"), format!("a(<<~'{word}', <<-\"{word}\n")]
        {
            try_all("a.rb", &text);
            try_all("a.sh", &text);
        }
        try_all("a.rb", &format!("a = <<'{word}"));
        try_all(
            "a.php",
            &format!("<?php $a = <<<{word}\nb {{$c}}\n{word};\n$d = <<<'{word}'\ne\n"),
        );
        try_all("a.cpp", &format!("auto a = R\"{word}(b)\" {word}\";\n"));
        let marks = |mark: &str| mark.repeat(length);
        try_all("A.cs", &format!("var a = {}\"{}b\";", marks("$"), marks("{")));
        try_all("A.cs", &format!("var a = {}b{};", marks("\""), marks("\"")));
        try_all("A.swift", &format!("let a = {}\"b\\{}(c)\"", marks("#"), marks("#")));
    }
    for count in (180..270).chain([1_000]) {
        for (path, unit) in [
            ("a.rb", "\"#{"),
            ("a.rb", "<<a, "),
            ("a.rb", "%w["),
            ("A.cs", "$\"{"),
            ("a.sh", "<<a "),
            ("a.sh", "$(<<a\n"),
            ("a.php", "<<<A\n{${"),
            ("A.kt", "\"\"\"${"),
            ("A.swift", "#\"\\#("),
        ] {
            let start = if path == "a.php" { "<?php " } else { "" };
            try_all(path, &(start.to_owned() + &unit.repeat(count)));
        }
    }
    for last in 1..40 {
        let words = [250, 250, 250, 220 + last, last].map(|length| format!("<<{}", word(length)));
        try_all("a.rb", &format!("a({})\n", words.join(", ")));
        try_all("a.rb", &format!("{}\"#{{a({}\n", "\"#{".repeat(last), words.join(", ")));
        try_all("a.sh", &format!("cat {}\n", words.join(" ")));
    }
    // What real files have is parsed.
    let text = format!("a(<<~'{0}', <<-{0})\nb\n{0}\nc\n{0}\n", word(255));
    assert_eq!(errors("a.rb", &text, &|| false), Some(Vec::new()));
    assert_eq!(errors("a.rb", &text.replace("ww", "www"), &|| false), None);
}

#[test]
fn large_texts_are_guessed() {
    let text = format!("fn a() {{}}\n{}", " ".repeat(PARSED_BYTES_MAX));
    let found = outline("a.rs", &text);
    assert_eq!(found.origin, OutlineOrigin::Guessed);
    assert_eq!(found.parts[0].name, "a");
    assert_eq!(errors("a.rs", &text, &|| false), None);

    let line = "fn a() { b() } ".repeat(700_000);
    let found = outline("a.js", &line);
    verify(&found, &line);
    assert_eq!(references("a.js", "b b", "b", &found, &|| false).len(), 2);
}

#[test]
fn many_parts_and_long_names_are_cut() {
    let many = "fn a() {}\n".repeat(PARTS_MAX + 1);
    let found = outline("a.rs", &many);
    assert!(found.cut);
    verify(&found, &many);

    let name = "n".repeat(100_000);
    let text = format!("/// {name}\nstruct {name} {{ a: {name} }}\n");
    let found = outline("a.rs", &text);
    assert_eq!(found.origin, OutlineOrigin::Parsed);
    verify(&found, &text);
    assert!(found.parts[0].name.ends_with("n…"));

    let deep = format!("{}{}", "mod a { ".repeat(500), "}".repeat(500));
    let found = outline("a.rs", &deep);
    assert_eq!(found.parts.len(), 500);
    verify(&found, &deep);
}

#[test]
fn a_parse_that_is_stopped_leaves_a_guess() {
    let text = "fn a() { b(1, 2, 3) }\n".repeat(1_000);
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let found = code::outline::outline("a.rs", &text, &stop);
    assert_eq!(found.origin, OutlineOrigin::Guessed);
    assert!(found.cut);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_text_has_an_outline(text in "[a-z(){}\\[\\]<>:;=,.\"'`/*#@$ \n\r\t\\\\é\u{0}-]{0,300}", path in 0..PATHS.len()) {
        try_all(PATHS[path], &text);
    }

    #[test]
    fn pieces_that_scanners_keep_have_an_outline(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "<<", "<<~", "<<-", "<<<", "'", "\"", "`", "EOF", "\nEOF\n", "a", "\n", " ", "#{", "}", "${", "$(", ")", "(", "{",
            "\"\"\"", "$\"", "@\"", "$@\"", "R\"", "R\"a(", ")a\"", "#\"", "\"#", "\\(", "\\#(", "%w[", "]", "%(", ":\"", "/",
            "<?php ", "?>", "\\", "#", "##", "$", "[[ a =~ ", " ]]", "case a in ", "esac", "?(", "é", "\t", "def a", "end\n", "=begin\n",
            "fun a() ", "func a() ", "class A ", ";", "&", "|", "-", "--", "//", "/*", "*/", "#if\n", "#endif\n", "__END__\n",
        ]), 0..80),
        path in 0..PATHS.len(),
    ) {
        try_all(PATHS[path], &pieces.concat());
    }

    #[test]
    fn pieces_of_code_have_an_outline(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "fn ", "a", "(", ")", "{", "}", "class ", "def ", ":\n", "    ", "struct ", "// b\n", "/* b */", "\"", "impl ",
            "#define ", "type ", "=", ";\n", "<", ">", "=> ", "function ", "\r", "\r\n", "é", "'", "[x]\n", "- a: ", "`",
        ]), 0..60),
        path in 0..PATHS.len(),
    ) {
        let text = pieces.concat();
        try_all(PATHS[path], &text);
        // What was there is never new.
        prop_assert!(new_errors(PATHS[path], &text, &text, &|| false).is_none_or(|new| new.is_empty()));
        let outline = outline(PATHS[path], &text);
        for range in references(PATHS[path], &text, "a", &outline, &|| false) {
            prop_assert_eq!(&text[range], "a");
        }
    }
}
