//! Measures packed parsers beside plain ones: the first use, and the time to parse the given files.
//!
//! `cargo run --release -p grammars --example measure -- <file>...`

#![allow(clippy::print_stdout, reason = "it is for whoever measures")]
#![allow(clippy::cast_precision_loss, reason = "a few megabytes")]

use std::fs;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use grammars::PackedGrammar;
use tree_sitter::{Language, Parser};

const ROUNDS: usize = 21;

fn plain(name: &str) -> Option<Language> {
    Some(match name {
        "bash" => tree_sitter_bash::LANGUAGE.into(),
        "c" => tree_sitter_c::LANGUAGE.into(),
        "cpp" => tree_sitter_cpp::LANGUAGE.into(),
        "csharp" => tree_sitter_c_sharp::LANGUAGE.into(),
        "css" => tree_sitter_css::LANGUAGE.into(),
        "go" => tree_sitter_go::LANGUAGE.into(),
        "html" => tree_sitter_html::LANGUAGE.into(),
        "java" => tree_sitter_java::LANGUAGE.into(),
        "javascript" => tree_sitter_javascript::LANGUAGE.into(),
        "json" => tree_sitter_json::LANGUAGE.into(),
        "kotlin" => tree_sitter_kotlin_ng::LANGUAGE.into(),
        "php" => tree_sitter_php::LANGUAGE_PHP.into(),
        "python" => tree_sitter_python::LANGUAGE.into(),
        "ruby" => tree_sitter_ruby::LANGUAGE.into(),
        "rust" => tree_sitter_rust::LANGUAGE.into(),
        "swift" => tree_sitter_swift::LANGUAGE.into(),
        "toml" => tree_sitter_toml_ng::LANGUAGE.into(),
        "tsx" => tree_sitter_typescript::LANGUAGE_TSX.into(),
        "typescript" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        "yaml" => tree_sitter_yaml::LANGUAGE.into(),
        _ => return None,
    })
}

/// The usual extension of its files.
fn extension(name: &str) -> &str {
    match name {
        "bash" => "sh",
        "csharp" => "cs",
        "javascript" => "js",
        "kotlin" => "kt",
        "python" => "py",
        "ruby" => "rb",
        "rust" => "rs",
        "typescript" => "ts",
        name => name,
    }
}

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    println!("language      packed   unpacked  first ms  median ms   parse MB/s  plain MB/s");
    for packed in grammars::ALL {
        let ending = format!(".{}", extension(packed.name()));
        let sources: Vec<_> = paths
            .iter()
            .filter(|path| path.ends_with(&ending))
            .filter_map(|path| fs::read(path).ok())
            .collect();
        row(packed, &sources);
    }
}

fn row(packed: &'static PackedGrammar, sources: &[Vec<u8>]) {
    let mut times: Vec<_> = (0..ROUNDS).map(|_| took(|| drop(packed.unpack()))).collect();
    let first = times[0];
    times.sort_unstable();
    let grammar = packed.unpack();
    let (name, bytes, size) = (packed.name(), packed.packed_size(), grammar.size());
    let (first, median) = (milliseconds(first), milliseconds(times[ROUNDS / 2]));
    print!("{name:10} {bytes:9} {size:10} {first:9.2} {median:10.2}");
    let megabytes = sources.iter().map(Vec::len).sum::<usize>() as f64 / 1e6;
    if let Some(plain) = plain(name)
        && megabytes > 0.0
    {
        let (mut fastest, mut fastest_plain) = (Duration::MAX, Duration::MAX);
        for _ in 0..15 {
            fastest = fastest.min(took(|| {
                for source in sources {
                    grammar.parse(source, &mut |_| ControlFlow::Continue(()));
                }
            }));
            fastest_plain = fastest_plain.min(took(|| {
                for source in sources {
                    let mut parser = Parser::new();
                    parser.set_language(&plain).expect("a language");
                    parser.parse(source, None);
                }
            }));
        }
        let speed = |time: Duration| megabytes / time.as_secs_f64();
        print!("   {:10.2}  {:10.2}", speed(fastest), speed(fastest_plain));
    }
    println!();
}

fn took(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
