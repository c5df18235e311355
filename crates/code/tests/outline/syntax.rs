//! Syntax errors, and those that a change adds.

use code::syntax::{SyntaxError, errors, new_errors};

fn shown(errors: &[SyntaxError]) -> Vec<String> {
    errors
        .iter()
        .map(|error| format!("{}:{} {}", error.line, error.column, error.message))
        .collect()
}

#[test]
fn places_are_told_in_lines_and_characters() {
    fn check(path: &str, text: &str, expected: Option<&[&str]>) {
        let found = errors(path, text, &|| false).map(|errors| shown(&errors));
        let expected = expected.map(|lines| lines.iter().map(ToString::to_string).collect());
        assert_eq!(found, expected, "{text}");
    }
    check("a.rs", "fn a() {}\n", Some(&[]));
    check("a.rs", "fn a() { let é = \"ü\" 1; }\n", Some(&["0:21 unexpected `1`"]));
    check("a.rs", "fn a() {\r    1\r}\r\rfn b() {\r    c(\r}\r", Some(&["5:5 unexpected `(`"]));
    check("a.json", "{\"a\": 1,}\n", Some(&["0:7 unexpected `,`"]));
    check("a.py", "def a(:\n    pass\n", Some(&["0:6 missing `)`"]));
    check("a.ts", "const a = <T>b\n", Some(&[]));
    check("a.txt", "fn a() {\n", None);
    check("a.rs", "fn a() {}\0", None);
}

#[test]
fn it_can_be_stopped() {
    assert_eq!(errors("a.rs", "fn a() {}\n", &|| true), None);
}

#[test]
fn only_what_a_change_brought_is_new() {
    fn check(before: &str, after: &str, expected: &[&str]) {
        let found = new_errors("a.rs", before, after, &|| false).unwrap();
        assert_eq!(shown(&found), expected, "{before:?} -> {after:?}");
    }
    let whole = "fn a() {\n    1;\n}\n\nfn b() {\n    2;\n}\n";
    check(whole, whole, &[]);
    check(whole, &whole.replace("1;", "1 1;"), &["1:4 unexpected `1`"]);
    check("", "fn a( {}\n", &["0:5 missing `)`"]);
    // What was there stays there, wherever the change is.
    let broken = whole.replace("2;", "2 2;");
    check(&broken, &broken.replace("1;", "1;\n    3;"), &[]);
    check(&broken, &format!("{broken}fn c() {{}}\n"), &[]);
    check(&broken, whole, &[]);
    check(&broken, &broken.replace("1;", "1 1;"), &["1:4 unexpected `1`"]);
    // Other than before, but not more.
    check(&broken, &broken.replace("2 2;", "3 3;"), &[]);
    // One for another, elsewhere.
    check(&broken, &whole.replace("1;", "1 1;"), &[]);
}

#[test]
fn without_a_grammar_nothing_is_said() {
    assert_eq!(new_errors("a.txt", "a", "b", &|| false), None);
}
