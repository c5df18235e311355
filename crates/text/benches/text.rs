//! `cargo bench -p text`: the parts that calls are made of, each by itself. Throughput is that of the whole text.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]
#![allow(clippy::wildcard_imports, reason = "modules are only groups of names here")]

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use text::by_line::{self, LineEdit, LineOp};
use text::exact::{Matching, Pick, StagedText};
use text::{
    ComposedSplices, DiffNames, LineRange, Splice, StringEdit, Text, diff, lines, nearest, splice,
};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;
const SIZES: [usize; 3] = [10 * KB, MB, 10 * MB];
const NAMES: DiffNames = DiffNames { old: "a.rs", new: "a.rs" };

fn main() {
    // Enough for a hundred samples of most; flags have the last word.
    divan::Divan::default().max_time(Duration::from_secs(1)).config_with_args().main();
}

/// Text like source, its lines of many lengths, each of them there once.
fn source(size: usize) -> String {
    let mut text = String::with_capacity(size + 80);
    for number in 0_usize.. {
        if text.len() >= size {
            break;
        }
        let indent = "    ".repeat(number % 4);
        writeln!(text, "{indent}let value_{number} = compute(input, {number});").unwrap();
    }
    text
}

fn decoded(text: &str) -> Text {
    Text::decode(Arc::new(text.as_bytes().to_vec())).unwrap()
}

/// Lines that are evenly spread, without the blanks around them.
fn some_lines(text: &str, count: usize) -> Vec<(usize, &str)> {
    let all: Vec<_> = text.lines().enumerate().collect();
    let step = all.len() / (count + 1);
    (1..=count).map(|number| all[number * step]).map(|(line, text)| (line, text.trim())).collect()
}

#[divan::bench(args = SIZES)]
fn decode_ascii(bencher: Bencher, size: usize) {
    let bytes = Arc::new(source(size).into_bytes());
    let count = BytesCount::new(bytes.len());
    bencher.counter(count).bench(|| Text::decode(black_box(&bytes).clone()));
}

#[divan::bench(args = SIZES)]
fn decode_other_letters(bencher: Bencher, size: usize) {
    let bytes = Arc::new(source(size).replace("compute", "größer_λ").into_bytes());
    let count = BytesCount::new(bytes.len());
    bencher.counter(count).bench(|| Text::decode(black_box(&bytes).clone()));
}

mod of_json {
    use super::*;

    #[divan::bench(args = SIZES)]
    fn escape(bencher: Bencher, size: usize) {
        let (text, mut out) = (source(size), Vec::with_capacity(2 * size));
        bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
            out.clear();
            text::escape(black_box(&text), &mut out);
        });
    }

    #[divan::bench(args = SIZES)]
    fn escape_much(bencher: Bencher, size: usize) {
        let (text, mut out) = (quoted(size), Vec::with_capacity(2 * size));
        bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
            out.clear();
            text::escape(black_box(&text), &mut out);
        });
    }

    #[divan::bench(args = SIZES)]
    fn unescape(bencher: Bencher, size: usize) {
        let json = escaped(size);
        bencher.counter(BytesCount::of_str(&json)).bench(|| text::unescape(black_box(&json)));
    }

    #[divan::bench(args = SIZES)]
    fn find_the_end(bencher: Bencher, size: usize) {
        let json = escaped(size) + "\"";
        let find = || text::end_of_text(black_box(json.as_bytes()));
        bencher.counter(BytesCount::of_str(&json)).bench(find);
    }

    /// Every third character has to be escaped.
    fn quoted(size: usize) -> String {
        "\t\"a\\b\"c\n".repeat(size / 8)
    }

    fn escaped(size: usize) -> String {
        let mut json = Vec::new();
        text::escape(&source(size), &mut json);
        String::from_utf8(json).unwrap()
    }
}

mod of_lines {
    use super::*;

    #[divan::bench(args = SIZES)]
    fn count(bencher: Bencher, size: usize) {
        let text = source(size);
        bencher.counter(BytesCount::of_str(&text)).bench(|| lines::count(black_box(&text)));
    }

    #[divan::bench(args = SIZES)]
    fn count_windows_ones(bencher: Bencher, size: usize) {
        let text = source(size).replace('\n', "\r\n");
        bencher.counter(BytesCount::of_str(&text)).bench(|| lines::count(black_box(&text)));
    }

    #[divan::bench(args = SIZES)]
    fn go_through_all(bencher: Bencher, size: usize) {
        let text = source(size);
        let count = BytesCount::of_str(&text);
        bencher.counter(count).bench(|| lines::lines(black_box(&text)).count());
    }

    #[divan::bench(args = SIZES)]
    fn select_100_in_the_middle(bencher: Bencher, size: usize) {
        let text = source(size);
        let first = lines::count(&text) / 2;
        let range = || LineRange { first, last: first + 99 };
        let count = BytesCount::of_str(&text);
        bencher.counter(count).bench(|| lines::select(black_box(&text), range()));
    }

    #[divan::bench(args = SIZES)]
    fn which_ending_they_have(bencher: Bencher, size: usize) {
        let text = source(size);
        let count = BytesCount::of_str(&text);
        bencher.counter(count).bench(|| lines::uniform_ending(black_box(&text)));
    }
}

mod line_edits {
    use super::*;

    fn edits(text: &str, count: usize) -> Vec<LineEdit> {
        let edit = |(line, text): (usize, &str)| LineEdit {
            line,
            op: LineOp::Replace(text.to_uppercase()),
        };
        some_lines(text, count).into_iter().map(edit).collect()
    }

    /// In a text of 1 MB.
    #[divan::bench(args = [1, 100, 1000])]
    fn plan(bencher: Bencher, count: usize) {
        let text = source(MB);
        let edits = edits(&text, count);
        let bytes = BytesCount::of_str(&text);
        bencher.counter(bytes).bench(|| by_line::plan(black_box(&text), &edits, None));
    }

    /// In a text of 1 MB.
    #[divan::bench(args = [1, 100, 1000])]
    fn apply_splices(bencher: Bencher, count: usize) {
        let text = source(MB);
        let splices = by_line::plan(&text, &edits(&text, count), None).unwrap().splices;
        let bytes = BytesCount::of_str(&text);
        bencher.counter(bytes).bench(|| splice::apply(black_box(&text), &splices));
    }
}

mod string_edits {
    use super::*;

    fn edits(text: &str, count: usize) -> Vec<(String, String)> {
        let edit = |(_, line): (usize, &str)| (line.into(), line.replace("compute", "derive"));
        some_lines(text, count).into_iter().map(edit).collect()
    }

    fn staged<'a>(text: &'a Text, edits: &'a [(String, String)]) -> StagedText<'a> {
        let mut staged = StagedText::new(text, usize::MAX);
        for (old, new) in edits {
            let (pick, count, matching) = (Pick::Only, None, Matching::Exact);
            staged.apply(StringEdit { old, new, pick, count, matching }).unwrap();
        }
        staged
    }

    /// The preparation before the first edit: a copy, and byte frequencies.
    #[divan::bench(args = SIZES)]
    fn stage_none(bencher: Bencher, size: usize) {
        let text = decoded(&source(size));
        let count = BytesCount::of_str(text.as_str());
        bencher.counter(count).bench(|| StagedText::new(black_box(&text), usize::MAX));
    }

    #[divan::bench(args = SIZES)]
    fn stage_1(bencher: Bencher, size: usize) {
        let text = decoded(&source(size));
        let edits = edits(text.as_str(), 1);
        let count = BytesCount::of_str(text.as_str());
        bencher.counter(count).bench(|| staged(black_box(&text), &edits).finish());
    }

    #[divan::bench(args = SIZES)]
    fn stage_100(bencher: Bencher, size: usize) {
        let text = decoded(&source(size));
        let edits = edits(text.as_str(), 100);
        let count = BytesCount::of_str(text.as_str());
        bencher.counter(count).bench(|| staged(black_box(&text), &edits).finish());
    }

    /// One edit of a name that every line has.
    #[divan::bench(args = SIZES)]
    fn replace_in_every_line(bencher: Bencher, size: usize) {
        let text = decoded(&source(size));
        let count = BytesCount::of_str(text.as_str());
        bencher.counter(count).bench(|| {
            let mut staged = StagedText::new(black_box(&text), usize::MAX);
            let (pick, count, matching) = (Pick::All, None, Matching::Exact);
            let edit = StringEdit { old: "compute", new: "derive", pick, count, matching };
            staged.apply(edit).unwrap();
            staged.finish()
        });
    }
}

/// Why a string of ten lines is not found in a text of 1 MB.
mod nearest_to_a_miss {
    use super::*;

    fn bench(bencher: Bencher, change: impl Fn(&str) -> String) {
        let text = source(MB);
        let first = lines::count(&text) / 2;
        let part = lines::select(&text, LineRange { first, last: first + 9 }).unwrap();
        let needle = change(&text[part.bytes]);
        let count = BytesCount::of_str(&text);
        bencher.counter(count).bench(|| nearest::explain(black_box(&text), &needle));
    }

    #[divan::bench]
    fn tabs_for_spaces(bencher: Bencher) {
        bench(bencher, |part| part.replace("    ", "\t"));
    }

    #[divan::bench]
    fn another_word_in_every_line(bencher: Bencher) {
        bench(bencher, |part| part.replace("compute", "calculate"));
    }

    #[divan::bench]
    fn nothing_like_it(bencher: Bencher) {
        bench(bencher, |_| "fn unrelated() -> Nothing { todo!() }\n".repeat(10));
    }
}

/// The diff of a text of 1 MB in which so many lines changed.
mod unified_diff {
    use super::*;

    fn changed(count: usize) -> (String, String, ComposedSplices) {
        let old = source(MB);
        let edits = some_lines(&old, count).into_iter();
        let edits: Vec<_> = edits
            .map(|(line, text)| LineEdit { line, op: LineOp::Replace(text.to_uppercase()) })
            .collect();
        let splices = by_line::plan(&old, &edits, None).unwrap().splices;
        let new = splice::apply(&old, &splices);
        let composed = ComposedSplices::from_splices(&splices);
        (old, new, composed)
    }

    #[divan::bench(args = [1, 100, 1000])]
    fn whole(bencher: Bencher, count: usize) {
        let (old, new, composed) = changed(count);
        bencher.bench(|| diff::unified(black_box(&old), &new, &composed, NAMES));
    }

    #[divan::bench(args = [1, 100, 1000])]
    fn at_most_200_lines(bencher: Bencher, count: usize) {
        let (old, new, composed) = changed(count);
        bencher.bench(|| diff::unified_within(black_box(&old), &new, &composed, NAMES, 200));
    }

    /// A file written anew, of which every second line is another.
    #[divan::bench]
    fn of_everything(bencher: Bencher) {
        let old = source(MB);
        let line = |(number, line): (usize, &str)| match number % 2 {
            0 => format!("{line}\n"),
            _ => format!("{}\n", line.to_uppercase()),
        };
        let new: String = old.lines().enumerate().map(line).collect();
        let all = [Splice { range: 0..old.len(), text: new.clone() }];
        let composed = ComposedSplices::from_splices(&all);
        bencher.bench(|| diff::unified(black_box(&old), &new, &composed, NAMES));
    }
}
