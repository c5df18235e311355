//! Names of files, without their kind: the words in a path that name the file.

use std::ops::Range;

use crate::words;

/// Names that say only that a file is the first of its folder.
const INDEX_NAMES: &[&[u8]] = &[b"index", b"init", b"lib", b"main", b"mod"];
/// Folders whose names say nothing of what is in them.
const PLAIN_FOLDERS: &[&[u8]] = &[b"lib", b"spec", b"src", b"test", b"tests"];
/// Words that say only that a file is a test.
const TEST_WORDS: &[&[u8]] = &[b"spec", b"test", b"tests"];

/// Extensions of source files, in order.
const SOURCES: &[&str] = &[
    "astro", "bash", "c", "cc", "cjs", "clj", "cpp", "cs", "css", "cts", "cu", "cxx", "dart", "ex",
    "exs", "fs", "go", "groovy", "h", "hpp", "hs", "html", "java", "jl", "js", "jsx", "kt", "kts",
    "lua", "m", "mjs", "ml", "mm", "mts", "nim", "php", "pl", "proto", "ps1", "py", "pyi", "r",
    "rb", "rs", "scala", "scss", "sh", "sql", "svelte", "swift", "ts", "tsx", "vue", "zig",
];

/// Ranges of the words in a path that name the file: `type`, `token` of `gson/TypeTokenTest.java`, and `routing` of
/// `src/routing/mod.rs`.
pub(super) fn words(path: &str) -> impl Iterator<Item = Range<usize>> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let start = path.len() - name.len();
    let stem = name.trim_start_matches('.').split('.').next().unwrap_or_default();
    let start = start + name.len() - name.trim_start_matches('.').len();
    let own = start..start + stem.len();
    let is_first = is_only_one_of(path, own.clone(), INDEX_NAMES);
    let part = if is_first {
        let parent = folder.rsplit('/').next().unwrap_or_default();
        let parent = folder.len() - parent.len()..folder.len();
        if is_only_one_of(path, parent.clone(), PLAIN_FOLDERS) { 0..0 } else { parent }
    } else {
        own
    };
    words_besides_test(path, part)
}

/// True if a file is a test, or in a folder of tests.
pub(crate) fn is_test(path: &str) -> bool {
    words::words(path.as_bytes()).any(|word| is_one_of(&path.as_bytes()[word], TEST_WORDS))
}

/// True if a file is the source of a program, by its extension.
pub(crate) fn is_source(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    SOURCES.binary_search_by(|known| known.cmp(&extension)).is_ok()
}

/// Joins the words that name a file, in lower case.
pub(super) fn joined(path: &str) -> Vec<u8> {
    let mut name = Vec::new();
    for word in words(path) {
        name.extend(path.as_bytes()[word].to_ascii_lowercase());
        name.push(b' ');
    }
    name
}

/// Ranges of the words in a part of a path, except those that say it is a test.
fn words_besides_test(path: &str, part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let text = &path.as_bytes()[part.clone()];
    let words = words::words(text).filter(|word| !is_one_of(&text[word.clone()], TEST_WORDS));
    words.map(move |word| part.start + word.start..part.start + word.end)
}

/// True if there is at most one word, and it is one of `known`.
fn is_only_one_of(path: &str, part: Range<usize>, known: &[&[u8]]) -> bool {
    let mut words = words_besides_test(path, part);
    let first = words.next();
    words.next().is_none() && first.is_none_or(|word| is_one_of(&path.as_bytes()[word], known))
}

fn is_one_of(word: &[u8], known: &[&[u8]]) -> bool {
    known.iter().any(|known| word.eq_ignore_ascii_case(known))
}
