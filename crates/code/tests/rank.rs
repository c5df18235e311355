//! Words of texts and questions, and which files a question is about.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use code::rank::{RankQuery, Ranking, Scan, TermSet};
use code::words::{self, TermKind};
use proptest::prelude::*;

fn words_of(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    words::words(bytes).map(|word| String::from_utf8_lossy(&bytes[word]).to_lowercase()).collect()
}

#[test]
fn identifiers_are_split_into_words() {
    for (text, expected) in [
        ("", &[][..]),
        ("--- ::", &[]),
        ("snake_case", &["snake", "case"]),
        ("camelCase", &["camel", "case"]),
        ("HTTPServer", &["http", "server"]),
        ("SCREAMING_CASE", &["screaming", "case"]),
        ("URLs of HTTPS", &["urls", "of", "https"]),
        ("utf8Decoder", &["utf", "8", "decoder"]),
        ("sha256", &["sha", "256"]),
        ("src/rank/name.rs", &["src", "rank", "name", "rs"]),
        ("__init__", &["init"]),
        ("größe", &["größe"]),
        ("\u{feff}“quoted”—dash\u{a0}space", &["quoted", "dash", "space"]),
        ("用Router做", &["用", "router", "做"]),
        ("a", &["a"]),
    ] {
        assert_eq!(words_of(text), expected, "{text}");
    }
}

#[test]
fn forms_of_a_word_have_one_stem() {
    let check = |stem: &str, forms: &[&str]| {
        for form in forms {
            assert_eq!(&form[..words::stem(form.as_bytes())], stem, "{form}");
        }
    };
    check("rout", &["route", "routes", "router", "routers", "routing", "routed"]);
    check("quer", &["query", "queries"]);
    check("log", &["log", "logs", "logger", "logging", "logged"]);
    check("class", &["class", "classes"]);
    check("miss", &["miss", "missing"]);
    check("pars", &["parse", "parser", "parsing", "parsed"]);
    check("string", &["string", "strings"]);
    check("status", &["status"]);
    check("use", &["use", "uses"]);
    check("id", &["id"]);
    check("Pars", &["Parser"]);
}

#[test]
fn a_question_becomes_terms() {
    let check = |question: &str, expected: &[&str]| {
        let shown = |term: words::Term| match term.kind {
            TermKind::Word => String::from_utf8(term.text).unwrap(),
            TermKind::Identifier => format!("={}", String::from_utf8(term.text).unwrap()),
        };
        let terms: Vec<String> = words::terms(question).into_iter().map(shown).collect();
        assert_eq!(terms, expected, "{question}");
    };
    check("", &[]);
    check("How does the router match a path?", &["rout", "match", "path"]);
    check("fix routes, routing and the Router", &["rout"]);
    check("storeToRefs loses reactivity", &["stor", "ref", "=storetorefs", "los", "reactivit"]);
    check("deprecate `__version__` (#1234)", &["deprecat", "version", "=__version__"]);
    check("http2 in 2024", &["http", "=http2"]);
    check("Größe der Übung", &["größ", "der", "Übung"]);
    // If nothing else was asked, the usual words are what was meant.
    check("how to use this", &["how", "to", "use", "this"]);
    assert_eq!(words::terms(&"word_one two three four ".repeat(1000)).len(), 6);
    let many: String = (b'a'..=b'z')
        .flat_map(|a| [[a, b'k', b' '], [a, b'm', b' ']])
        .map(|word| String::from_utf8(word.to_vec()).unwrap())
        .collect();
    assert_eq!(words::terms(&many).len(), words::TERMS_MAX);
}

fn ranked<'q>(question: &'q RankQuery, files: &[(&str, &str)]) -> Ranking<'q> {
    let scan = Scan::new(question);
    for (path, text) in files {
        scan.visit(path, text.as_bytes());
    }
    scan.finish(10)
}

fn paths(question: &str, files: &[(&str, &str)]) -> Vec<String> {
    let question = RankQuery::new(question, []);
    ranked(&question, files).best_files.into_iter().map(|hit| hit.path).collect()
}

#[test]
fn better_files_come_first() {
    let check = |question: &str, files: &[(&str, &str)], expected: &[&str]| {
        assert_eq!(paths(question, files), expected, "{question}");
    };
    let other = ("other.rs", "nothing of it\n");
    check("parse", &[other, ("b.rs", "parse"), ("a.rs", "parse")], &["a.rs", "b.rs"]);
    // More of the terms, and more often.
    check("parse header", &[("a", "parse"), ("b", "parse the header"), other], &["b", "a"]);
    check("parse", &[("a", "parse"), ("b", "parse parse"), other], &["b", "a"]);
    // What is rare says more.
    check(
        "common rare",
        &[("a", "common"), ("b", "common"), ("c", "rare"), ("d", "common"), other],
        &["c", "a", "b", "d"],
    );
    // A name that is defined counts more than one that is used, and the path counts more than that.
    check("walk", &[("a.rs", "walk() + 1"), ("b.rs", "fn walk() {}"), other], &["b.rs", "a.rs"]);
    check("walk", &[("a.rs", "fn walk() {}"), ("walk.rs", "x"), other], &["walk.rs", "a.rs"]);
    check("walk", &[("a.rs", "fn walk() {}"), ("walk/x.rs", "x"), other], &["walk/x.rs", "a.rs"]);
    // Longer files with no more of it come later.
    let long = format!("walk {}", "x ".repeat(5000));
    check("walk", &[("a", &long), ("b", "walk"), other], &["b", "a"]);
    // A file that is called as was asked comes before one that is called so among other things.
    let files = [("map_type_token.rs", "x"), ("type_token.rs", "x"), other];
    check("type token", &files, &["type_token.rs", "map_type_token.rs"]);
    // The whole name of a folder stands for the first file in it.
    let files = [("a/routing/body.rs", "x"), ("a/routing/mod.rs", "x"), other];
    check("routing", &files, &["a/routing/mod.rs", "a/routing/body.rs"]);
}

#[test]
fn words_are_found_in_any_form_and_spelling_but_not_inside_of_others() {
    let check = |question: &str, text: &str, found: bool| {
        assert_eq!(
            !paths(question, &[("x", text), ("y", "")]).is_empty(),
            found,
            "{question}: {text}"
        );
    };
    check("parse", "PARSER_", true);
    check("parse", "sparse parsec", false);
    check("socket", "webSockets", true);
    check("websocket", "WebSocket", true);
    check("websocket", "WebSockets", true);
    check("websocket", "web_socket", false);
    check("websocket", "OAuthWebSocket", true);
    check("oauth", "OAuth2", true);
    check("http", "HTTPServer", true);
    check("server", "HTTPServer", true);
    check("url", "URLs", true);
    check("readToEnd", "x.readToEnd()", true);
    // A word of it, at least.
    check("readToEnd", "end", true);
    check("__version__", "__version__2", true);
    check("文件", "编辑文件吧", true);
    check("", "x", false);
    // In the middle of what was found for another term.
    let question = RankQuery::new("websocket socket web", []);
    let ranking = ranked(&question, &[("a", "webSocket")]);
    assert_eq!(ranking.best_files[0].matched_terms.body.iter().count(), 3);
    let found = |text| {
        ranked(&RankQuery::new("__version__", []), &[("a", text)]).best_files[0]
            .matched_terms
            .body
            .iter()
            .count()
    };
    assert_eq!((found("__version__"), found("__version__2")), (2, 1));
}

#[test]
fn tests_come_after_what_they_test_unless_asked_for() {
    let files =
        [("spec/walk.rs", "fn walk"), ("src/walk.rs", "fn walk"), ("src/x.rs", "walk tests")];
    assert_eq!(paths("walk", &files)[0], "src/walk.rs");
    assert_eq!(paths("walk test", &files)[0], "spec/walk.rs");
    // The namesake of a file that fits comes before one that fits a little better.
    let files = [
        ("src/node.rs", "fn walk walk walk walk walk walk walk walk walk walk walk"),
        ("src/node_test.rs", "walk walk"),
        ("src/other.rs", "walk walk walk"),
        ("src/none.rs", ""),
    ];
    assert_eq!(paths("walk", &files), ["src/node.rs", "src/node_test.rs", "src/other.rs"]);
}

#[test]
fn definitions_are_seen_in_many_languages() {
    let check = |defined: bool, line: &str| {
        let question = RankQuery::new("walker", []);
        let hit = ranked(&question, &[("a", line)]).best_files.remove(0);
        assert_eq!(!hit.matched_terms.definitions.is_empty(), defined, "{line}");
    };
    for line in [
        "pub(crate) async fn walker(a: u8) {",
        "    def walker(self):",
        "class Walker(Base):",
        "export default class FileWalker {",
        "func (r *Tree) Walker(path string) error {",
        "func Walker() {",
        "pub struct Walker<'a> {",
        "type Walker interface {",
        "#define WALKER 1",
        "macro_rules! walker {",
        "export const walker = 1",
        "let walker = 1",
        "    public static Walker walker(int a) {",
        "    private final Walker walker;",
        "static int walker(struct tree *tree)",
        "  walker(path) {",
        "  async walker(path) {",
    ] {
        check(true, line);
    }
    for line in [
        "    walker(path);",
        "    let walker = 1",
        "    if walker(path) {",
        "    return walker(path) {",
        "    x = walker(path)",
        "// fn walker is elsewhere",
        "# class walker",
        " * class Walker",
        "import walker",
        "walker",
    ] {
        check(false, line);
    }
}

#[test]
fn named_files_and_their_neighbours_are_lifted() {
    let files = [("a/x", "walk walk"), ("b/y", "walk"), ("b/z", "walk"), ("c/n", "nothing")];
    let named = |named: &[&str]| -> Vec<String> {
        let question = RankQuery::new("walk", named.iter().copied());
        ranked(&question, &files).best_files.into_iter().map(|hit| hit.path).collect()
    };
    assert_eq!(named(&[]), ["a/x", "b/y", "b/z"]);
    assert_eq!(named(&["b/z"]), ["b/z", "a/x", "b/y"]);
    assert_eq!(named(&["b/other"]), ["a/x", "b/y", "b/z"]);
    // Even if there is nothing in it.
    assert_eq!(named(&["c/n"]), ["a/x", "b/y", "b/z", "c/n"]);
    // A neighbour comes before one that fits as well.
    let question = RankQuery::new("walk", ["b/other"]);
    let files = [("a/x", "walk"), ("b/y", "walk"), ("c", "")];
    assert_eq!(ranked(&question, &files).best_files[0].path, "b/y");
}

#[test]
fn why_says_which_terms_are_where() {
    let question = RankQuery::new("walk parse TreeNode", []);
    let ranking = ranked(&question, &[("parse/a.rs", "fn walk(node: TreeNode) {}")]);
    let shown = |terms: TermSet| -> Vec<&str> {
        terms.iter().map(|term| question.terms()[term].shown.as_str()).collect()
    };
    let why = ranking.best_files[0].matched_terms;
    assert_eq!(shown(why.path), ["parse"]);
    assert_eq!(shown(why.definitions), ["walk"]);
    assert_eq!(shown(why.body), ["walk", "tree", "node", "TreeNode"]);
    assert_eq!((ranking.files, ranking.matched), (1, 1));
}

#[test]
fn lines_are_those_of_text() {
    let text = "\u{feff}walk\r\nx\rwalk parse\n\n fn parse\n";
    let question = RankQuery::new("walk parse", []);
    let ranking = ranked(&question, &[("a", text), ("b", "")]);
    let lines = ranking.term_lines(text.as_bytes());
    let found: Vec<_> = lines
        .found
        .iter()
        .map(|line| (line.number, line.terms.iter().count(), line.definitions.iter().count()))
        .collect();
    assert_eq!(found, [(0, 1, 0), (2, 2, 0), (4, 1, 1)]);
    assert_eq!(lines.count, text::lines::count(text));
    assert!(!lines.cut);
    assert!(lines.score(2..3) > lines.score(0..1));
    assert!(lines.score(3..4).abs() < f64::EPSILON);
}

#[test]
fn the_best_lines_hold_the_most_terms() {
    let mut text: Vec<&str> = vec!["x"; 100];
    text[10] = "walk";
    text[70] = "fn walk";
    text[73] = "parse";
    let text = text.join("\n");
    let question = RankQuery::new("walk parse", []);
    let ranking = ranked(&question, &[("a", &text), ("b", "")]);
    let best = |length| ranking.term_lines(text.as_bytes()).best(length);
    assert_eq!(best(4), Some(70..74));
    let twenty = best(20).unwrap();
    assert!(twenty.contains(&70) && twenty.contains(&73) && twenty.len() == 20, "{twenty:?}");
    assert_eq!(best(1000), Some(0..100));
    assert_eq!(best(0).unwrap().len(), 1);
    assert_eq!(ranking.term_lines(b"none").best(10), None);
    // What is too far away does not count.
    let text = format!("walk parse{}walk", "\n".repeat(50));
    assert_eq!(ranking.term_lines(text.as_bytes()).best(5), Some(0..5));
}

#[test]
fn what_is_kept_of_a_huge_file_is_bounded() {
    let text = "walk\n".repeat(100_000);
    let question = RankQuery::new("walk", []);
    let ranking = ranked(&question, &[("a", &text)]);
    let lines = ranking.term_lines(text.as_bytes());
    assert!(lines.cut && lines.found.len() < 20_000);
    assert_eq!(lines.count, 100_000);
    // One line, and a word that does not end.
    let text = "walk".repeat(1 << 20);
    assert_eq!(ranked(&question, &[("a", &text)]).matched, 0);
}

#[test]
fn many_threads_come_to_the_same_as_one() {
    let file = |n: usize| {
        (
            format!("{}/file{n}.rs", n % 7),
            format!("fn walk_{n}() {{ {} }}", "parse ".repeat(n % 13)),
        )
    };
    let files: Vec<(String, String)> = (0..400).map(file).collect();
    let question = RankQuery::new("walk parse", []);
    let one = Scan::new(&question);
    for (path, text) in &files {
        one.visit(path, text.as_bytes());
    }
    let several = Scan::new(&question);
    std::thread::scope(|scope| {
        for chunk in files.rchunks(50) {
            let several = &several;
            scope.spawn(move || {
                for (path, text) in chunk {
                    several.visit(path, text.as_bytes());
                }
            });
        }
    });
    assert_eq!(one.finish(50).best_files, several.finish(50).best_files);
}

/// The stems of a text, the slow way.
fn stems(text: &[u8]) -> Vec<Vec<u8>> {
    let stem = |word| {
        let word: &[u8] = &text[word];
        word[..words::stem(word)].to_ascii_lowercase()
    };
    words::words(text).map(stem).collect()
}

proptest! {
    #[test]
    fn any_bytes_are_ranked(
        question in ".{0,60}",
        path in ".{0,20}",
        text in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let question = RankQuery::new(&question, [path.as_str()]);
        let scan = Scan::new(&question);
        scan.visit(&path, &text);
        let ranking = scan.finish(3);
        prop_assert!(ranking.best_files.iter().all(|hit| hit.score.is_finite()));
        let lines = ranking.term_lines(&text);
        let count = text::lines::count_bytes(&text);
        prop_assert_eq!(lines.count, count);
        prop_assert!(lines.found.iter().all(|line| line.number < count));
        if let Some(best) = lines.best(7) {
            prop_assert!(best.len() <= 7 && best.end <= count && lines.score(best) > 0.0);
        }
    }

    /// The quick search finds what comparing every word finds, with few terms and with many.
    #[test]
    fn a_word_is_found_wherever_it_stands(
        word in "[a-d]{2,5}(ing|ed|er|s|e)?",
        more in prop::collection::vec("[a-z]{3,8}", 0..30),
        text in "([a-dA-D]{1,5}(ing|ed|er|s|e|E)?[ _0\n]?){0,30}",
    ) {
        let asked = format!("{word} {}", more.join(" "));
        let question = RankQuery::new(&asked, []);
        prop_assume!(question.terms()[0].shown == word);
        let scan = Scan::new(&question);
        scan.visit("", text.as_bytes());
        let found = scan.finish(1).best_files.first().is_some_and(|hit| hit.matched_terms.body.contains(0));
        if stems(text.as_bytes()).contains(&question.terms()[0].text) {
            prop_assert!(found, "{text}: {word}");
        }
    }

    #[test]
    fn a_stem_is_a_beginning_and_words_do_not_overlap(
        text in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut before = 0;
        for word in words::words(&text) {
            prop_assert!(before <= word.start && word.start < word.end && word.end <= text.len());
            let stem = words::stem(&text[word.clone()]);
            prop_assert!(0 < stem && stem <= word.len());
            before = word.end;
        }
    }
}
