//! A packed parser is the plain one: its tables byte by byte, the tokens it finds, and the trees it makes.

mod dice;
mod lexers;
mod sources;
mod tables;
mod trees;

use grammars::PackedGrammar;
use tree_sitter::Language;

/// Packed parsers beside the plain ones, and the extensions of their files.
fn pairs() -> Vec<(&'static PackedGrammar, Language, &'static [&'static str])> {
    vec![
        (&grammars::BASH, tree_sitter_bash::LANGUAGE.into(), &["sh", "bash"]),
        (&grammars::C, tree_sitter_c::LANGUAGE.into(), &["c", "h"]),
        (&grammars::CPP, tree_sitter_cpp::LANGUAGE.into(), &["cpp", "cc", "hpp", "h"]),
        (&grammars::CSHARP, tree_sitter_c_sharp::LANGUAGE.into(), &["cs"]),
        (&grammars::CSS, tree_sitter_css::LANGUAGE.into(), &["css"]),
        (&grammars::GO, tree_sitter_go::LANGUAGE.into(), &["go"]),
        (&grammars::HTML, tree_sitter_html::LANGUAGE.into(), &["html", "htm"]),
        (&grammars::JAVA, tree_sitter_java::LANGUAGE.into(), &["java"]),
        (
            &grammars::JAVASCRIPT,
            tree_sitter_javascript::LANGUAGE.into(),
            &["js", "mjs", "cjs", "jsx"],
        ),
        (&grammars::JSON, tree_sitter_json::LANGUAGE.into(), &["json"]),
        (&grammars::KOTLIN, tree_sitter_kotlin_ng::LANGUAGE.into(), &["kt", "kts"]),
        (&grammars::PHP, tree_sitter_php::LANGUAGE_PHP.into(), &["php"]),
        (&grammars::PYTHON, tree_sitter_python::LANGUAGE.into(), &["py", "pyi"]),
        (&grammars::RUBY, tree_sitter_ruby::LANGUAGE.into(), &["rb"]),
        (&grammars::RUST, tree_sitter_rust::LANGUAGE.into(), &["rs"]),
        (&grammars::SWIFT, tree_sitter_swift::LANGUAGE.into(), &["swift"]),
        (&grammars::TOML, tree_sitter_toml_ng::LANGUAGE.into(), &["toml", "lock"]),
        (&grammars::TSX, tree_sitter_typescript::LANGUAGE_TSX.into(), &["tsx"]),
        (&grammars::TYPESCRIPT, tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(), &["ts", "mts"]),
        (&grammars::YAML, tree_sitter_yaml::LANGUAGE.into(), &["yaml", "yml"]),
    ]
}

#[test]
fn there_is_a_plain_one_for_each() {
    let names = |mut names: Vec<&'static str>| {
        names.sort_unstable();
        names
    };
    let all = grammars::ALL.iter().map(|packed| packed.name()).collect();
    let paired = pairs().iter().map(|(packed, _, _)| packed.name()).collect();
    assert_eq!(names(all), names(paired));
}
