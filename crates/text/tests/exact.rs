//! String edits, seen from outside: against a model that does them the simplest way, and by example.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use proptest::prelude::*;
use text::diff::{self, DiffNames};
use text::exact::{Ambiguity, AppliedEdit, MatchKind, Matching, Pick, StagedText};
use text::{IndentShift, LineSpan, StringEdit, StringError, Text, lines};

fn decode(text: &str) -> Text {
    Text::decode(Arc::new(text.as_bytes().to_vec())).unwrap()
}

fn replace<'a>(old: &'a str, new: &'a str) -> StringEdit<'a> {
    StringEdit { old, new, pick: Pick::Only, count: None, matching: Matching::Exact }
}

fn all<'a>(old: &'a str, new: &'a str) -> StringEdit<'a> {
    StringEdit { pick: Pick::All, ..replace(old, new) }
}

fn near<'a>(line: usize, old: &'a str, new: &'a str) -> StringEdit<'a> {
    StringEdit { pick: Pick::Near(line), ..replace(old, new) }
}

fn loosely<'a>(old: &'a str, new: &'a str) -> StringEdit<'a> {
    StringEdit { matching: Matching::IgnoreWhitespace, ..replace(old, new) }
}

fn run(text: &str, edits: &[StringEdit]) -> Result<(String, Vec<AppliedEdit>), StringError> {
    let original = decode(text);
    let mut staged = StagedText::new(&original, 1 << 20);
    edits.iter().try_for_each(|edit| staged.apply(*edit))?;
    let (new, composed, applied) = staged.finish();
    // Between the regions nothing has changed.
    let mut at = (0, 0);
    for region in composed.regions() {
        assert_eq!(text[at.0..region.old.start], new[at.1..region.new.start]);
        at = (region.old.end, region.new.end);
    }
    assert_eq!(text[at.0..], new[at.1..]);
    Ok((new, applied))
}

#[track_caller]
fn check(before: &str, edits: &[StringEdit], after: &str) {
    assert_eq!(run(before, edits).unwrap().0, after, "{edits:?}");
}

#[track_caller]
fn refused(before: &str, edits: &[StringEdit], error: &StringError) {
    assert_eq!(&run(before, edits).unwrap_err(), error, "{edits:?}");
}

fn lines(first: usize, last: usize) -> LineSpan {
    LineSpan { first, last }
}

#[test]
fn edits_see_what_the_ones_before_left() {
    check("AAA", &[replace("AAA", "BBB"), replace("BBB", "CCC")], "CCC");
    check("a b", &[replace("a", "b b"), replace("b b b", "c")], "c");
    check("a", &[replace("a", ""), replace("", "b")], "b");
    refused("a", &[replace("", "b")], &StringError::EmptyString { edit: 0 });
    refused(
        "foo",
        &[replace("foo", "bar"), replace("foo", "baz")],
        &StringError::NoMatch { edit: 1 },
    );
}

#[test]
fn several_matches_are_no_match() {
    let several = |reason, count, named: &[LineSpan]| StringError::Ambiguous {
        edit: 0,
        count,
        named: named.to_vec(),
        reason,
    };
    let overlapping = |named: &[LineSpan]| several(Ambiguity::Overlapping, 2, named);
    refused("aaa", &[replace("aa", "b")], &overlapping(&[lines(0, 0), lines(0, 0)]));
    refused("}\n}\n}\n", &[replace("}\n}", "]")], &overlapping(&[lines(0, 1), lines(1, 2)]));
    refused(
        &"x\n".repeat(50),
        &[replace("x\n", "y")],
        &several(
            Ambiguity::Several,
            50,
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|line| lines(line, line)),
        ),
    );
}

#[test]
fn one_of_several_can_be_picked() {
    check("a\nb\na\n", &[near(2, "a", "c")], "a\nb\nc\n");
    check("a\nb\na\n", &[near(0, "a", "c")], "c\nb\na\n");
    check("a\nb\na\n", &[near(99, "a", "c")], "a\nb\nc\n");
    check("aa\nb\nb\nb\na\nc\nb\n", &[near(3, "b\n", "-")], "aa\nb\nb\n-a\nc\nb\n");
    let tie = StringError::Ambiguous {
        edit: 0,
        count: 2,
        named: vec![lines(0, 0), lines(2, 2)],
        reason: Ambiguity::Tie,
    };
    refused("a\nb\na\n", &[near(1, "a", "c")], &tie);
    check("aaaa a", &[all("aa", "b")], "bb a");
    check("a.a.a", &[all("a", "aa"), all("aa.", "")], "aa");
    let counted = |count| StringEdit { count: Some(count), ..all("a", "b") };
    check("a a", &[counted(2)], "b b");
    let other = StringError::Ambiguous {
        edit: 0,
        count: 2,
        named: vec![lines(0, 0), lines(0, 0)],
        reason: Ambiguity::Count,
    };
    refused("a a", &[counted(3)], &other);
    refused("a a", &[StringEdit { count: Some(3), ..near(0, "a", "b") }], &other);
    let one = StringError::Ambiguous {
        edit: 0,
        count: 1,
        named: vec![lines(0, 0)],
        reason: Ambiguity::Count,
    };
    refused("a", &[StringEdit { count: Some(2), ..replace("a", "b") }], &one);
    // Nothing is once in nothing.
    refused("", &[StringEdit { count: Some(2), ..replace("", "b") }], &one);
    check("", &[StringEdit { count: Some(1), ..replace("", "b") }], "b");
}

#[test]
fn the_line_to_be_near_is_one_before_all_edits() {
    let text = "a\nx\nb\nx\nc\nx\n";
    check(text, &[near(3, "x", "y")], "a\nx\nb\ny\nc\nx\n");
    let moved = [replace("a\n", "1\n2\n3\n4\n5\n"), near(3, "x", "y")];
    check(text, &moved, "1\n2\n3\n4\n5\nx\nb\ny\nc\nx\n");
    check(text, &[replace("a\nx\nb\n", ""), near(3, "x", "y")], "y\nc\nx\n");
}

#[test]
fn what_an_edit_took_another_cannot_have() {
    let conflict = |edit, prior, now| StringError::Conflict { edit, prior, now };
    refused(
        "one two three",
        &[replace("one two", "1"), replace("two three", "2")],
        &conflict(1, 0, lines(0, 0)),
    );
    refused(
        "a\nb\nc\n",
        &[replace("c", "C"), replace("a\nb", "x\ny\nz"), replace("b\n", "")],
        &conflict(2, 1, lines(0, 2)),
    );
    // It was there twice, so it never said what it meant.
    refused(
        "a b a",
        &[replace("a b a", "c"), replace("a", "d")],
        &StringError::NoMatch { edit: 1 },
    );
}

#[test]
fn line_breaks_take_the_style_of_the_file() {
    check("a\r\nb\r\n", &[replace("a\nb", "c\nd")], "c\r\nd\r\n");
    check("a\r\nb\r\n", &[replace("a", "c\nd")], "c\r\nd\r\nb\r\n");
    check("a\r\nb\r\n", &[replace("\nb", "\nc")], "a\r\nc\r\n");
    check("a\r\nb\r\n", &[replace("a\r", "c\r")], "c\r\nb\r\n");
    check("a\rb\r", &[replace("a\nb", "c\nd")], "c\rd\r");
}

#[test]
fn half_a_crlf_that_is_found_exactly_is_replaced_alone() {
    check("a\r\nb", &[replace("\n", "")], "a\rb");
    check("a\r\nb", &[replace("\r", "")], "a\nb");
    check("a\r\nb", &[replace("\nb", "c")], "a\rc");
    check("a\r\nb", &[replace("a\r", "c")], "c\nb");
    // What completes the other half is no line break of its own.
    check("a\r\nb", &[replace("\n", "\n\n")], "a\r\n\r\nb");
    check("a\r\nb", &[replace("\nb", "\nc\nd")], "a\r\nc\r\nd");
    let found = |old, new| run("a\r\nb", &[replace(old, new)]).unwrap().1.remove(0).match_kind;
    for (old, new) in [("\n", ""), ("\r", "x"), ("\nb", "b"), ("a\r", "a")] {
        assert_eq!(found(old, new), MatchKind::SplitLineBreak, "{old:?} {new:?}");
    }
    for (old, new) in [("\n", "\n\n"), ("a\r", "b\r"), ("\r\n", "\n"), ("b", "\nc")] {
        assert_eq!(found(old, new), MatchKind::Exact, "{old:?} {new:?}");
    }
}

#[test]
fn a_caller_who_writes_carriage_returns_means_every_byte() {
    check("a\r\nb\r\n", &[all("\r\n", "\n")], "a\nb\n");
    check("a\nb\n", &[all("\n", "\r\n")], "a\r\nb\r\n");
    check("a\r\nb\r\n", &[replace("a\r\n", "c\nd\n")], "c\nd\nb\r\n");
    check("a\r\nb\r\n", &[replace("a", "c\r\nd\ne\r")], "c\r\nd\ne\r\r\nb\r\n");
    check("a\nb\n", &[replace("a", "c\r\nd")], "c\r\nd\nb\n");
    refused("a\nb\n", &[replace("a\r\nb", "c")], &StringError::NoMatch { edit: 0 });
    refused("a\rb\r", &[replace("a\r\nb", "c")], &StringError::NoMatch { edit: 0 });
}

/// Applies each edit as a call of its own.
#[test]
fn an_edit_goes_by_the_style_that_the_ones_before_it_leave() {
    let converted = all("\r\n", "\n");
    check("a\r\nb\r\n", &[converted, replace("a\nb", "c\nd")], "c\nd\n");
    let mixed = replace("a\r\n", "a\n");
    refused("a\r\nb\r\nc", &[mixed, replace("b\nc", "d")], &StringError::NoMatch { edit: 1 });
}

#[test]
fn mixed_files_are_taken_literally() {
    check("a\r\nb\n", &[replace("\nb", "\nc")], "a\r\nc\n");
    check("a\r\nb\nc\n", &[replace("b\nc", "d\r\ne")], "a\r\nd\r\ne\n");
    refused("a\r\nb\n", &[replace("a\nb", "c")], &StringError::NoMatch { edit: 0 });
    check("a", &[replace("a", "b\r\nc\n")], "b\r\nc\n");
}

#[test]
fn how_it_was_found_is_told() {
    let found = |text: &str, edit| run(text, &[edit]).unwrap().1.remove(0).match_kind;
    assert_eq!(found("a\n", replace("a", "b")), MatchKind::Exact);
    assert_eq!(
        found("a\r\nb\r\n", replace("a\nb", "c")),
        MatchKind::ConvertedEndings(lines::LineEnding::CrLf)
    );
    assert_eq!(found("  a\n", loosely("a\n", "b\n")), MatchKind::Exact);
    assert_eq!(
        found("\ta\n\tb\n", loosely("a\nb", "c")),
        MatchKind::IgnoredWhitespace(IndentShift::Deeper("\t".into()))
    );
}

#[test]
fn blanks_can_be_set_aside() {
    check(
        "if x {\n\tdo();\n}\n",
        &[loosely("if x {\n    do();\n}", "if x {\n    be();\n}")],
        "if x {\n\tbe();\n}\n",
    );
    check("x\r\n    a  b\r\n", &[loosely("a b", "c\nd")], "x\r\n    c\r\n    d\r\n");
    refused(
        "  a\n   b\n",
        &[loosely("a\nb", "c")],
        &StringError::UnevenIndent { edit: 0, lines: lines(0, 1) },
    );
    let twice = StringError::Ambiguous {
        edit: 0,
        count: 2,
        named: vec![lines(0, 1), lines(2, 3)],
        reason: Ambiguity::SeveralIgnoringWhitespace,
    };
    refused(" a\n b\n  a\n  b\n", &[loosely("a\nb", "c")], &twice);
    check(
        " a\n b\n  a\n  b\n",
        &[StringEdit { pick: Pick::Near(3), ..loosely("a\nb", "c") }],
        " a\n b\n  c\n",
    );
}

#[test]
fn lines_are_those_before_the_edit_and_those_after_all() {
    let (text, applied) = run(
        "a\nb\nc\nd\n",
        &[replace("b\nc", "x"), replace("a\n", "1\n2\n3\n"), replace("d\n", "")],
    )
    .unwrap();
    assert_eq!(text, "1\n2\n3\nx\n");
    let places: Vec<_> =
        applied.iter().map(|edit| (edit.replaced[0].before, edit.replaced[0].after)).collect();
    assert_eq!(
        places,
        [(lines(1, 2), lines(3, 3)), (lines(0, 0), lines(0, 2)), (lines(4, 4), lines(3, 3))]
    );
}

#[test]
fn a_byte_order_mark_is_out_of_reach() {
    check("\u{feff}a", &[replace("a", "b")], "\u{feff}b");
    check("\u{feff}", &[replace("", "b")], "\u{feff}b");
    refused("\u{feff}a", &[replace("\u{feff}", "b")], &StringError::NoMatch { edit: 0 });
}

#[test]
fn a_text_that_would_burst_is_refused_before_it_is_made() {
    let original = decode(&"a".repeat(1000));
    let mut staged = StagedText::new(&original, 5000);
    staged.apply(all("a", "bb")).unwrap();
    let burst = "x".repeat(1_000_000);
    assert_eq!(
        staged.apply(all("b", &burst)),
        Err(StringError::TooLong { edit: 1, size: 2_000_000_000 })
    );
    staged.apply(all("b", "c")).unwrap();
    assert_eq!(staged.text(), "c".repeat(2000));
}

#[test]
fn an_indentation_that_would_burst_is_refused_before_it_is_made() {
    let original = decode(&format!("{}a\n", " ".repeat(1 << 20)));
    let mut staged = StagedText::new(&original, 10 << 20);
    let new = "b\n".repeat(1_000_000);
    let size = 1_048_578 - 1_048_577 + 1_000_000 * (1_048_576 + 2);
    assert_eq!(staged.apply(loosely("a ", &new)), Err(StringError::TooLong { edit: 0, size }));
}

#[test]
fn a_conflict_is_found_among_many_places() {
    let text: Vec<_> = (0..500).map(|number| format!("x{number}\n")).collect();
    let text = text.concat();
    let taken = [all("x", "y"), replace("x400\n", "z")];
    refused(&text, &taken, &StringError::Conflict { edit: 1, prior: 0, now: lines(400, 400) });
}

#[test]
fn of_very_many_places_one_change_is_remembered() {
    let text = format!("<{}>", "xa".repeat(100_001));
    check(&text, &[all("a", "bb")], &text.replace('a', "bb"));
    check(&text, &[all("xa", "")], "<>");
    let original = decode(&text);
    let mut staged = StagedText::new(&original, 1 << 20);
    staged.apply(all("a", "bb")).unwrap();
    let (new, composed, _) = staged.finish();
    let [region] = composed.regions() else { panic!("{} regions", composed.regions().len()) };
    // From the first to the last.
    assert_eq!((&region.old, &region.new), (&(2..text.len() - 1), &(2..new.len() - 1)));
}

/// A hundred of an edit and a thousand of all, besides the first of each.
#[test]
fn as_many_places_are_told_as_anybody_reads() {
    let letters: Vec<String> = ('a'..='l').map(String::from).collect();
    let text: String = letters.iter().map(|letter| letter.repeat(150) + "\n").collect();
    let edits: Vec<_> = letters.iter().map(|letter| all(letter, "x")).collect();
    let (_, applied) = run(&text, &edits).unwrap();
    let told: Vec<_> = applied.iter().map(|applied| applied.replaced.len()).collect();
    assert_eq!(told, [100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 11, 1]);
    assert!(applied.iter().all(|applied| applied.count == 150));
}

#[test]
fn what_was_there_before_and_what_took_it_is_known() {
    let original = decode("one\r\ntwo\r\n");
    let mut staged = StagedText::new(&original, 1 << 20);
    staged.apply(replace("one", "1")).unwrap();
    staged.apply(replace("two", "2")).unwrap();
    assert_eq!(
        ["one", "two", "three"].map(|old| staged.replaced_by(old)),
        [Some(0), Some(1), None]
    );
    assert_eq!(
        ["one\ntwo", "three", "two", "2"].map(|old| staged.was_in_original(old)),
        [true, false, true, false]
    );
}

/// The simplest way: look everywhere, copy everything.
fn model(text: &str, old: &str, new: &str, pick: Pick) -> Result<String, usize> {
    let places: Vec<_> = (0..text.len()).filter(|at| text[*at..].starts_with(old)).collect();
    match (pick, &places[..]) {
        (Pick::All, [_, ..]) => Ok(text.replace(old, new)),
        (_, [at]) => Ok(format!("{}{new}{}", &text[..*at], &text[at + old.len()..])),
        (_, places) => Err(places.len()),
    }
}

proptest! {
    #[test]
    fn as_the_model_does_it(
        text in "[ab\n]{0,24}",
        edits in prop::collection::vec(("[ab\n]{1,3}", "[abc\n]{0,4}", any::<bool>()), 1..5),
    ) {
        let original = decode(&text);
        let mut staged = StagedText::new(&original, 1 << 20);
        let mut expected = text.clone();
        for (old, new, every) in &edits {
            let pick = if *every { Pick::All } else { Pick::Only };
            let before = expected.clone();
            match (staged.apply(StringEdit { pick, ..replace(old, new) }), model(&expected, old, new, pick)) {
                (Ok(()), Ok(after)) => expected = after,
                (Err(StringError::Ambiguous { count, named, .. }), Err(places)) => {
                    prop_assert_eq!(count, places);
                    let line = |at: usize| before[..at].matches('\n').count();
                    let all = (0..before.len()).filter(|at| before[*at..].starts_with(old.as_str()));
                    let spans: Vec<_> = all.map(|at| lines(line(at), line(at + old.len() - 1))).take(10).collect();
                    prop_assert_eq!(named, spans);
                }
                (Err(StringError::NoMatch { .. } | StringError::Conflict { .. }), Err(0)) => {}
                other => prop_assert!(false, "{other:?}"),
            }
            prop_assert_eq!(staged.text(), &expected);
        }
        let (new, composed, applied) = staged.finish();
        let total = lines::count(&new).max(1);
        for place in applied.iter().flat_map(|edit| &edit.replaced) {
            prop_assert!(place.after.first <= place.after.last && place.after.last < total);
        }
        let diff = diff::unified(&text, &new, &composed, DiffNames { old: "a", new: "a" });
        prop_assert_eq!(diff.is_empty(), text == new);
    }

    /// Any edits of any text give a result.
    #[test]
    fn any_strings_do(
        text: String,
        edits in prop::collection::vec((any::<String>(), any::<String>(), 0usize..3, any::<bool>()), 1..4),
        (from, len) in (0usize..20, 0usize..20),
    ) {
        let text = text.replace('\0', "");
        let original = decode(&text);
        let slice: String = original.as_str().chars().skip(from).take(len).collect();
        let mut staged = StagedText::new(&original, 1 << 20);
        for (old, new, pick, loose) in &edits {
            let pick = [Pick::Only, Pick::All, Pick::Near(3)][*pick];
            let matching = if *loose { Matching::IgnoreWhitespace } else { Matching::Exact };
            for old in [old, &slice] {
                let _ = staged.apply(StringEdit { old, new, pick, count: None, matching });
            }
        }
        staged.finish();
    }
}
