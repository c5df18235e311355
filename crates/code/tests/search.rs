//! A search over a folder: which lines it finds, in which order and on which page, and what it says of the rest.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::single_range_in_vec_init, reason = "a line may have one match")]
#![allow(clippy::disallowed_methods, reason = "a test makes its own files")]

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use code::search::{
    CONTEXT_MAX, CaseSensitivity, LINE_MAX, Pattern, PatternOptions, RESULTS_MAX, ResultKind,
    ResultLine, SearchError, SearchOptions, SearchPage, search,
};
use files::{
    Call, DirPath, Hash, Root, StoreError,
    tree::{Globs, TreeOptions},
};
use proptest::prelude::*;
use tempfile::TempDir;

fn folder<T: AsRef<[u8]>>(files: &[(&str, T)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (path, contents) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    dir
}

fn options() -> SearchOptions<'static> {
    SearchOptions {
        tree: TreeOptions {
            within: DirPath::root(),
            globs: Globs::default(),
            hidden: false,
            ignored: false,
            max_size: 16 << 20,
        },
        show: ResultKind::Lines,
        before: 0,
        after: 0,
        max_results: RESULTS_MAX,
        cursor: None,
    }
}

fn call() -> Call {
    Call::until(Instant::now() + Duration::from_mins(1))
}

fn find(dir: &Path, pattern: &Pattern, options: &SearchOptions<'_>) -> SearchPage {
    search(&Root::open(dir).unwrap(), pattern, options, &call()).unwrap()
}

fn regex(pattern: &str) -> Pattern {
    Pattern::new(pattern, PatternOptions::default()).unwrap()
}

/// `number:text` of a line that matches, `number-text` of one around it.
fn row(line: &ResultLine) -> String {
    format!("{}{}{}", line.number, if line.is_match { ':' } else { '-' }, line.text)
}

/// All lines of one text.
fn rows(text: &str, pattern: &Pattern, options: &SearchOptions<'_>) -> Vec<String> {
    let dir = folder(&[("f", text)]);
    let found = find(dir.path(), pattern, options);
    found.files.iter().flat_map(|file| &file.lines).map(row).collect()
}

#[test]
fn lines_are_found_with_their_numbers_and_columns() {
    let dir = folder(&[("f", "fn a\nlet fn_b = fn fn\n\nfn\n")]);
    let found = find(dir.path(), &regex("fn"), &options());
    let [file] = &found.files[..] else { panic!("{found:?}") };
    assert_eq!(file.path, "f");
    assert_eq!(file.hash, Hash::of(b"fn a\nlet fn_b = fn fn\n\nfn\n"));
    assert_eq!(file.matching_lines, 3);
    let lines: Vec<_> =
        file.lines.iter().map(|line| (line.number, &line.text, &line.matches)).collect();
    let text = ["fn a", "let fn_b = fn fn", "fn"].map(String::from);
    let matches = [vec![0..2], vec![4..6, 11..13, 14..16], vec![0..2]];
    assert_eq!(
        lines,
        [(0, &text[0], &matches[0]), (1, &text[1], &matches[1]), (3, &text[2], &matches[2])]
    );
    assert_eq!((found.matching_lines, found.matching_files, found.searched_files), (3, 1, 1));
    assert_eq!(found.next, None);
}

#[test]
fn patterns_are_read_as_asked() {
    let check = |pattern: &str, options: PatternOptions, text: &str, expected: &[&str]| {
        let pattern = Pattern::new(pattern, options).unwrap();
        assert_eq!(rows(text, &pattern, &self::options()), expected, "{pattern:?}");
    };
    let plain = PatternOptions::default();
    let text = "foo\nFoo\nfoobar\nf.o";
    check("foo", plain, text, &["0:foo", "1:Foo", "2:foobar"]);
    check("Foo", plain, text, &["1:Foo"]);
    check(
        "foo",
        PatternOptions { case: CaseSensitivity::Sensitive, ..plain },
        text,
        &["0:foo", "2:foobar"],
    );
    check(
        "FOO",
        PatternOptions { case: CaseSensitivity::Insensitive, ..plain },
        text,
        &["0:foo", "1:Foo", "2:foobar"],
    );
    check("foo", PatternOptions { whole_word: true, ..plain }, text, &["0:foo", "1:Foo"]);
    check("f.o", PatternOptions { is_literal: true, ..plain }, text, &["3:f.o"]);
    check("F.o", PatternOptions { is_literal: true, ..plain }, text, &[]);
    check("f(", PatternOptions { is_literal: true, ..plain }, "f(x", &["0:f(x"]);
    check(r"^f\w+$", plain, text, &["0:foo", "1:Foo", "2:foobar"]);
    check("", plain, "a\n\nb", &["0:a", "1:", "2:b"]);
    check("$", plain, "a\r\nb\r", &["0:a", "1:b"]);
    check(r"\B", plain, "a\r\n\r\n-", &["1:", "2:-"]);
    check(r"\Ab|c\z", plain, "b\nb\nc\nc", &["0:b", "3:c"]);
    // A class does not go over the end of a line, unless it may.
    check(r"a\s+b", plain, "a\nb\ra b", &["2:a b"]);
    let multi = PatternOptions { multi_line: true, ..plain };
    check(r"a\s+b", multi, "a\n\nb\nc", &["0:a", "1:", "2:b"]);
    check(r"x|a\nb", multi, "x a\nb\nx", &["0:x a", "1:b", "2:x"]);
    check(r"a\nb|c\nd", multi, "a\nb c\nd", &["0:a", "1:b c", "2:d"]);
    check(r"\n", multi, "a\r\nb\n\nc", &["0:a", "1:b", "2:"]);
    check("c", multi, "a\nc\nc c", &["1:c", "2:c c"]);
    check("a\nb", PatternOptions { is_literal: true, ..multi }, "a\nb\nc", &["0:a", "1:b"]);
}

/// Each line has its part of a match that goes over several.
#[test]
fn columns_of_matches_over_several_lines() {
    let dir = folder(&[("f", "-a\r\nb\r\nc-")]);
    let options = PatternOptions { multi_line: true, ..PatternOptions::default() };
    let found = find(dir.path(), &Pattern::new("a(?s:.*)c", options).unwrap(), &self::options());
    let columns: Vec<_> = found.files[0].lines.iter().map(|line| line.matches.clone()).collect();
    assert_eq!(columns, [[1..2], [0..1], [0..1]]);
}

#[test]
fn bad_patterns_are_refused_in_the_words_of_the_regex_crate() {
    let check = |pattern: &str, words: &str| {
        let error = Pattern::new(pattern, PatternOptions::default()).unwrap_err().to_string();
        assert!(error.contains(words), "{pattern}: {error}");
    };
    check("(a", "unclosed group");
    check("a**{", "repetition");
    check(r"\p{nothing}", "Unicode property not found");
    check("a\\nb", "not allowed");
    check(r"(\w{200}){200}", "exceeds size limit");
    check(&("(".repeat(1000) + &")".repeat(1000)), "nest");
    check(&"a".repeat(4097), "at most 4096 bytes, this one has 4097");
    let literal = PatternOptions { is_literal: true, ..PatternOptions::default() };
    assert!(Pattern::new("a\nb", literal).is_err());
}

/// As [`text::lines`] has them, whatever ends them.
#[test]
fn a_lone_cr_ends_a_line() {
    let options = SearchOptions { before: 1, after: 1, ..options() };
    let check = |text: &str, pattern: &str, expected: &[&str]| {
        assert_eq!(rows(text, &regex(pattern), &options), expected, "{text:?} {pattern}");
    };
    check("a\rb\rc\r", "b", &["0-a", "1:b", "2-c"]);
    check("a\r\nb\r\n\rc\nd", "^c$", &["2-", "3:c", "4-d"]);
    check("a\rb", "^b", &["0-a", "1:b"]);
    check("a\rb", "a$", &["0:a", "1-b"]);
    check("a\rb", "a.b", &[]);
    check("\u{feff}a\nb", "^a", &["0:a", "1-b"]);
    check("\r\r\n\n", "^$", &["0:", "1:", "2:"]);
}

#[test]
fn lines_around_a_match_are_shown_once() {
    let text = "0\n1\nx2\n3\n4\n5\nx6\nx7\n8\n9";
    let check = |before, after, expected: &[&str]| {
        let options = SearchOptions { before, after, ..options() };
        assert_eq!(rows(text, &regex("x"), &options), expected);
    };
    check(0, 0, &["2:x2", "6:x6", "7:x7"]);
    check(1, 0, &["1-1", "2:x2", "5-5", "6:x6", "7:x7"]);
    check(0, 1, &["2:x2", "3-3", "6:x6", "7:x7", "8-8"]);
    check(2, 2, &["0-0", "1-1", "2:x2", "3-3", "4-4", "5-5", "6:x6", "7:x7", "8-8", "9-9"]);
    let many = SearchOptions { before: usize::MAX, after: usize::MAX, ..options() };
    let text = "y\n".repeat(100) + "x\n" + &"y\n".repeat(100);
    assert_eq!(rows(&text, &regex("x"), &many).len(), 2 * CONTEXT_MAX + 1);
}

#[test]
fn long_lines_are_cut_around_the_match() {
    let check = |line: &str,
                 pattern: &str,
                 offset: usize,
                 shown: &str,
                 matches: &[std::ops::Range<usize>]| {
        let dir = folder(&[("f", line)]);
        let found = find(dir.path(), &regex(pattern), &options());
        let [hit] = &found.files[0].lines[..] else { panic!() };
        assert_eq!((hit.offset, hit.text.as_str()), (offset, shown));
        assert_eq!((hit.is_cut(), hit.length), (shown != line, line.len()));
        assert_eq!(hit.matches, matches);
    };
    let whole = "é".repeat(LINE_MAX - 1) + "x";
    check(&whole, "x", 0, &whole, &[598..599]);
    let long = "é".repeat(400) + "x" + &"é".repeat(400) + "x";
    check(&long, "x", 600, &("é".repeat(100) + "x" + &"é".repeat(199)), &[800..801]);
    let end = "a".repeat(500) + "x";
    check(&end, "x", 201, &end[201..], &[500..501]);
    let begin = "x".to_owned() + &"a".repeat(10_000_000);
    check(&begin, "x", 0, &begin[..300], &[0..1]);
    check(&begin, "xa*", 0, &begin[..300], &[0..256 * 1024]);
    let many = "ab".repeat(1_000_000);
    let columns: Vec<_> = (0..150).map(|at| 2 * at..2 * at + 1).collect();
    check(&many, "a", 0, &many[..300], &columns);
}

#[test]
fn files_that_are_not_text_or_too_large_are_counted() {
    let dir = folder(&[
        ("a", &b"x\0"[..]),
        ("b", b"x\xff"),
        ("c", b"x"),
        ("d", &b"x".repeat(20 << 20)),
        (".h", b"x"),
        (".ignore", b"e"),
        ("e", b"x"),
    ]);
    let found = find(dir.path(), &regex("x"), &options());
    assert_eq!(found.files.len(), 1);
    let skipped = found.skipped;
    assert_eq!((skipped.binary, skipped.too_large, skipped.hidden, skipped.ignored), (2, 1, 2, 1));
    assert_eq!((found.searched_files, found.matching_files), (1, 1));
}

/// Every page until there is no more; each has the same totals.
fn pages(dir: &Path, pattern: &Pattern, options: &SearchOptions<'_>) -> Vec<SearchPage> {
    let mut pages: Vec<SearchPage> = Vec::new();
    loop {
        let cursor = pages.last().and_then(|page| page.next.clone());
        let page =
            find(dir, pattern, &SearchOptions { cursor: cursor.as_deref(), ..options.clone() });
        let is_last = page.next.is_none();
        pages.push(page);
        if is_last {
            return pages;
        }
        assert!(pages.len() < 1000);
    }
}

#[test]
fn pages_go_on_where_the_last_one_ended() {
    let dir = folder(&[("b/c", "x\nx\nx\nx\nx"), ("a", "-\nx\n-\nx"), ("b-", "x"), ("z", "-")]);
    let shown = |options: &SearchOptions<'_>| -> Vec<Vec<String>> {
        let of_page = |page: &SearchPage| {
            let of_file = |file: &code::search::FileMatches| {
                let rows: Vec<_> = file.lines.iter().map(row).collect();
                format!("{} {}", file.path, rows.join(" "))
            };
            page.files.iter().map(of_file).collect()
        };
        pages(dir.path(), &regex("x"), options).iter().map(of_page).collect()
    };
    let lines = |max_results| SearchOptions { max_results, ..options() };
    assert_eq!(shown(&lines(8)), [["a 1:x 3:x", "b- 0:x", "b/c 0:x 1:x 2:x 3:x 4:x"]]);
    assert_eq!(
        shown(&lines(3)),
        [&["a 1:x 3:x", "b- 0:x"][..], &["b/c 0:x 1:x 2:x"], &["b/c 3:x 4:x"]]
    );
    assert_eq!(shown(&lines(1)).len(), 8);
    assert_eq!(shown(&lines(0)).len(), 8, "at least one");
    let around = SearchOptions { before: 1, after: 1, ..lines(1) };
    assert_eq!(shown(&around)[..3], [["a 0-- 1:x 2--"], ["a 2-- 3:x"], ["b- 0:x"]]);
    let counts = SearchOptions { show: ResultKind::Counts, ..lines(2) };
    assert_eq!(shown(&counts), [&["a ", "b- "][..], &["b/c "]]);
}

#[test]
fn the_last_line_of_a_page_has_no_neighbours_of_the_next() {
    let dir = folder(&[("a", "x"), ("b", "x\n1\n2\nx\n4")]);
    let check = |before, after, expected: &[&str]| {
        let options = SearchOptions { before, after, max_results: 2, ..options() };
        let found = find(dir.path(), &regex("x"), &options);
        assert_eq!(found.files[1].lines.iter().map(row).collect::<Vec<_>>(), expected);
        assert_eq!(found.next.as_deref(), Some("1:b"));
    };
    check(0, 0, &["0:x"]);
    check(1, 0, &["0:x"]);
    check(2, 1, &["0:x", "1-1"]);
    check(0, 9, &["0:x", "1-1", "2-2"]);
}

#[test]
fn counts_are_of_whole_files() {
    let dir = folder(&[("a", "\u{feff}x\nxx\ny"), ("b", "x"), ("c", "")]);
    let options = SearchOptions { show: ResultKind::Counts, max_results: 1, ..options() };
    let pages = pages(dir.path(), &regex("x"), &options);
    let counted: Vec<_> = pages
        .iter()
        .map(|page| (page.files[0].path.as_str(), page.files[0].matching_lines, page.files[0].hash))
        .collect();
    assert_eq!(
        counted,
        [("a", 2, Hash::of("\u{feff}x\nxx\ny".as_bytes())), ("b", 1, Hash::of(b"x"))]
    );
    for page in &pages {
        assert_eq!((page.matching_lines, page.matching_files, page.searched_files), (3, 2, 3));
    }
}

#[test]
fn a_cursor_holds_while_files_change() {
    let dir = folder(&[("a", "x\nx\n"), ("b", "x\n"), ("c", "x\n")]);
    let page = |cursor: Option<&str>| {
        find(dir.path(), &regex("x"), &SearchOptions { max_results: 2, cursor, ..options() })
    };
    let next = page(None).next.unwrap();
    fs::remove_file(dir.path().join("a")).unwrap();
    fs::write(dir.path().join("aa"), "x").unwrap();
    let second = page(Some(&next));
    let paths: Vec<_> = second.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["aa", "b"]);
    let third = page(second.next.as_deref());
    assert_eq!((third.files[0].path.as_str(), third.next), ("c", None));
    for bad in ["", "a", "x:a", "+1:a", "-1:a", "99999999999999999999999:a"] {
        let options = SearchOptions { cursor: Some(bad), ..options() };
        let found = search(&Root::open(dir.path()).unwrap(), &regex("x"), &options, &call());
        assert!(matches!(found, Err(SearchError::Cursor)), "{bad}");
    }
}

#[test]
fn the_deadline_is_kept() {
    let dir = folder(&[("a", "x")]);
    let late = Call::until(Instant::now());
    let found = search(&Root::open(dir.path()).unwrap(), &regex("x"), &options(), &late);
    assert!(matches!(found, Err(SearchError::Store(StoreError::TimedOut))));
}

/// Every match looks through all of the text for a better one: a million times a million bytes.
#[test]
fn a_search_that_would_take_for_ever_ends_with_its_call() {
    let dir = folder(&[("a", "a".repeat(1 << 20))]);
    let options = PatternOptions { multi_line: true, ..PatternOptions::default() };
    let pattern = Pattern::new(r"(?s:a.*\d)|a", options).unwrap();
    let short = Call::until(Instant::now() + Duration::from_millis(500));
    let found = search(&Root::open(dir.path()).unwrap(), &pattern, &self::options(), &short);
    assert!(matches!(found, Err(SearchError::Store(StoreError::TimedOut))), "{found:?}");
}

/// What is plain is looked for everywhere, and expressions as far as it can be told how long that takes.
#[test]
fn very_long_lines_are_not_searched_to_their_end() {
    let long = "a".repeat(300 * 1024);
    let text = format!("x1\n{long}x2\nx3\n{long}{long}\rx4{long}");
    let dir = folder(&[("f", text), ("g", "x5".to_owned())]);
    let check = |pattern: &str, options: PatternOptions, numbers: &[usize], cut: u64| {
        let pattern = Pattern::new(pattern, options).unwrap();
        let found = find(dir.path(), &pattern, &self::options());
        let lines = found.files.iter().flat_map(|file| &file.lines);
        assert_eq!(lines.map(|line| line.number).collect::<Vec<_>>(), numbers, "{pattern:?}");
        assert_eq!(found.cut_files, cut);
    };
    let plain = PatternOptions::default();
    check("x", plain, &[0, 1, 2, 4, 0], 0);
    check(r"x\d", plain, &[0, 2, 4, 0], 1);
    check(r"x\d", PatternOptions { is_literal: true, ..plain }, &[], 0);
    // What is before a long line takes nothing from it.
    let far = "-\n".repeat(30_000) + &"a".repeat(250 * 1024) + "x1" + &long;
    let found = find(folder(&[("f", far)]).path(), &regex(r"x\d"), &options());
    assert_eq!((found.matching_lines, found.cut_files), (1, 1));
    // The first megabyte, or the lines that are wholly in it.
    check(r"\d", PatternOptions { multi_line: true, ..plain }, &[0, 1, 2, 0], 1);
}

/// An expression of many states is searched for in a long line as in a short one, unless the line makes it remember too
/// much: then the line is searched in part.
#[test]
fn large_expressions_are_searched_for_in_long_lines_too() {
    let long = "b".repeat(200 * 1024);
    let text = format!("{long}x{}y\nxy\n{long}\n", "a".repeat(150));
    let dir = folder(&[("f", text)]);
    let found = |pattern: &str, is_word| {
        let options = PatternOptions { whole_word: is_word, ..PatternOptions::default() };
        let pattern = Pattern::new(pattern, options).unwrap();
        let found = find(dir.path(), &pattern, &self::options());
        let lines = found.files.iter().flat_map(|file| &file.lines);
        let lines = lines.map(|line| (line.number, line.offset, line.matches.clone()));
        (lines.collect::<Vec<_>>(), found.cut_files)
    };
    let at = 200 * 1024;
    let first = (0, at - 148, std::iter::once(at..at + 152).collect());
    let second = (1, 0, std::iter::once(0..2).collect());
    assert_eq!(found("xa{0,150}y", false), (vec![first, second.clone()], 0));
    assert_eq!(found("xa{0,150}y", true), (vec![second], 0));
    assert_eq!(found("(b?){5000}b{5000}x", false).1, 1);
    let found = find(dir.path(), &regex("Xa{0,150}y"), &options());
    assert_eq!(found.matching_lines, 0);
}

/// The lines that match, found the plain way.
fn plainly(text: &str, pattern: &Pattern) -> Vec<String> {
    let contents = text::lines::lines(text).map(|line| &text[line.start..line.end]);
    let matches = |content: &&str| {
        !rows(content, pattern, &options()).is_empty() || {
            // A file without a byte has no line, but an empty line is one.
            content.is_empty() && !rows("\n", pattern, &options()).is_empty()
        }
    };
    contents
        .enumerate()
        .filter(|(_, content)| matches(content))
        .map(|(number, content)| format!("{number}:{content}"))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_line_matches_alone_as_it_does_among_others(
        text in "[ab \r\n]{0,16}",
        pattern in prop::sample::select(vec!["a", "^a", "a$", "^$", "", r"\ba\b", "a.*b", r"\s", "[^a]", r"b\s*a", r"\B", "b|a "]),
    ) {
        let pattern = regex(pattern);
        prop_assert_eq!(rows(&text, &pattern, &options()), plainly(&text, &pattern));
    }

    #[test]
    fn pages_together_are_all_lines(
        files in prop::collection::btree_map("[abc]{1,2}(/[de])?", "[xy\r\n]{0,12}", 1..6),
        max_results in 1usize..5,
        before in 0usize..3,
        after in 0usize..3,
    ) {
        let dir = TempDir::new().unwrap();
        for (path, contents) in &files {
            let path = dir.path().join(path);
            if fs::create_dir_all(path.parent().unwrap()).is_ok() {
                let _ = fs::write(path, contents);
            }
        }
        let options = SearchOptions { before, after, ..options() };
        let results = |pages: &[SearchPage]| -> Vec<(String, usize)> {
            let of_file = |file: &code::search::FileMatches| -> Vec<(String, usize)> {
                file.lines.iter().filter(|line| line.is_match).map(|line| (file.path.clone(), line.number)).collect()
            };
            pages.iter().flat_map(|page| &page.files).flat_map(of_file).collect()
        };
        let all = results(&[find(dir.path(), &regex("x"), &options)]);
        prop_assert!(all.is_sorted());
        let paged = pages(dir.path(), &regex("x"), &SearchOptions { max_results, ..options });
        prop_assert_eq!(results(&paged), all);
        prop_assert!(paged.iter().all(|page| results(std::slice::from_ref(page)).len() <= max_results));
    }
}
