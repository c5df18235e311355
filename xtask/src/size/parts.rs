//! Weights of the parts of the release binary, by the map that the linker writes: the crates, the C libraries, and what
//! belongs to none of them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::process::Command;

use crate::{cargo, footprint, root, run, target_folder};

/// Parts that are listed by name, and why each stays. Crates that are not named here are summed up in one row.
const REASONS: &[(&str, &str)] = &[
    (GRAMMARS, "twenty languages; see above"),
    (UNWINDING, "a panic in one call must not end the server"),
    (CONSTANTS, "texts, schemas, Unicode tables of regular expressions, certificate authorities"),
    (OTHERS, "each of them small"),
    (REST, "what the loader reads, and alignment"),
    ("std", "the standard library, and generic code of it; it comes compiled"),
    ("libc", "static glibc: name resolution, `printf`, string functions by processor"),
    ("rmcp", "the protocol in all its versions, over stdio and HTTP"),
    ("server", "ours: transports, queue, confirmations"),
    ("ring", "TLS to a language model: curves and ciphers; 150 KB are tables of one curve"),
    ("rustls", "TLS to a language model"),
    ("webpki", "TLS to a language model: certificates"),
    ("ureq", "HTTP to a language model"),
    ("regex_automata", "searches; each of its engines serves some patterns"),
    ("regex_syntax", "parses patterns"),
    ("aho_corasick", "finds many words in one pass, with SIMD"),
    ("tools", "ours: the tools"),
    ("file_editor", "ours: command line, `setup`, `doctor`"),
    ("code", "ours: search, ranking, outlines"),
    ("text", "ours: edits, diffs, hints"),
    ("files", "ours: files and locks"),
    ("model", "ours: prompts and answers of a language model"),
    ("tokio", "many HTTP connections on few threads"),
    ("serde", "JSON of the protocol's types"),
    ("serde_core", "JSON of the protocol's types"),
    ("serde_json", "JSON"),
    ("schemars", "schemas from the types of the tools"),
    ("clap_builder", "command line and its help"),
    ("tree_sitter", "parses source code"),
    ("hashbrown", "hash tables"),
    ("http", "headers and addresses of HTTP"),
    ("hyper", "HTTP"),
    ("axum", "routes of HTTP"),
];

const GRAMMARS: &str = "packed grammars";
const UNWINDING: &str = "tables for unwinding";
const CONSTANTS: &str = "other constants";
const OTHERS: &str = "other crates";
const REST: &str = "the rest of the file";

/// The section "What the rest weighs"; `packed` bytes are grammars, and the binary has `length` bytes.
pub fn document(packed: u64, length: u64) -> Result<String, String> {
    let mut parts = weigh(&linker_map()?)?;
    let constants = parts.entry(CONSTANTS.into()).or_default();
    *constants = constants.saturating_sub(packed);
    parts.insert(GRAMMARS.into(), packed);
    let known = parts.values().sum::<u64>();
    parts.insert(REST.into(), length.saturating_sub(known));
    let mut rows: Vec<(String, u64)> = parts.into_iter().collect();
    rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let mut text = String::from(
        "\n## What the rest weighs\n\n\
         By crate, in KB of 1,000 bytes, from the map of the linker. Generic code counts for the crate whose type it is\n\
         made for, functions with the same code count once, and constants seldom tell where they are from.\n\n\
         | part | KB | why it stays |\n|---|---:|---|\n",
    );
    for (name, bytes) in rows {
        let reason = reason(&name).unwrap_or_default();
        writeln!(text, "| {name} | {} | {reason} |", super::kilobytes(bytes))
            .expect("a string takes all");
    }
    Ok(text)
}

fn reason(name: &str) -> Option<&'static str> {
    REASONS.iter().find(|(part, _)| *part == name).map(|(_, reason)| *reason)
}

const NOT_IN_FILE: &[&str] = &[".bss", ".tbss", ".relro_padding", "__libc_freeres_ptrs"];

/// Builds the release binary, and returns the map that the linker writes.
fn linker_map() -> Result<String, String> {
    // Under a new name, or a binary that is up to date would write none.
    let map = target_folder().join(format!("size-{}.map", std::process::id()));
    let target = footprint::host_target()?;
    let mut build = cargo();
    build.args(["rustc", "--release", "--target", &target, "--package", "file-editor"]);
    build.args(["--bin", "file-editor", "--"]);
    build.arg(format!("-Clink-arg=-Wl,-Map={}", map.display()));
    run(build.current_dir(root()).env("RUSTFLAGS", footprint::static_flags(&target, true)))?;
    let text = fs::read(&map).map_err(|e| format!("{}: {e}", map.display()))?;
    fs::remove_file(&map).map_err(|e| format!("{}: {e}", map.display()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Bytes by part.
fn weigh(map: &str) -> Result<HashMap<String, u64>, String> {
    let is_in_file = |piece: &Piece<'_>| !NOT_IN_FILE.contains(&piece.section);
    let pieces: Vec<Piece<'_>> = pieces(map).filter(is_in_file).collect();
    let names = demangle(&pieces)?;
    let mut parts = HashMap::new();
    for (piece, name) in pieces.iter().zip(names) {
        *parts.entry(part(piece, &name)).or_default() += piece.bytes;
    }
    Ok(parts)
}

/// A piece of an object file, as it went into the binary.
struct Piece<'a> {
    section: &'a str,
    bytes: u64,
    /// The object, and in parentheses its section.
    source: &'a str,
}

/// The lines of a map: two addresses, the size and the alignment, then a section; a piece of it, indented by eight; or a
/// symbol, by sixteen.
fn pieces(map: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut section = "";
    map.lines().filter_map(move |line| {
        let mut rest = line;
        let mut numbers = [""; 4];
        for number in &mut numbers {
            rest = rest.trim_start();
            (*number, rest) = rest.split_once(' ')?;
        }
        let bytes = u64::from_str_radix(numbers[2], 16).ok()?;
        match rest.len() - rest.trim_start().len() {
            0 => {
                section = rest;
                None
            }
            8 => Some(Piece { section, bytes, source: rest.trim_start() }),
            _ => None,
        }
    })
}

/// The names of the pieces, as `c++filt` of the binutils reads them.
fn demangle(pieces: &[Piece<'_>]) -> Result<Vec<String>, String> {
    let path = target_folder().join("size.names");
    let symbol = |piece: &Piece<'_>| {
        let start = piece.source.find("_ZN").or_else(|| piece.source.find("_R"));
        start.map_or(String::new(), |start| piece.source[start..].trim_end_matches(')').into())
    };
    let names: Vec<String> = pieces.iter().map(symbol).collect();
    let complaint = |e: std::io::Error| format!("{}: {e}", path.display());
    fs::write(&path, names.join("\n") + "\n").map_err(complaint)?;
    let output = Command::new("c++filt").stdin(File::open(&path).map_err(complaint)?).output();
    let output = output.map_err(|e| format!("`c++filt`, of the binutils: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect())
}

fn part(piece: &Piece<'_>, name: &str) -> String {
    if matches!(piece.section, ".eh_frame" | ".eh_frame_hdr" | ".gcc_except_table") {
        return UNWINDING.into();
    }
    let owner = if name.is_empty() { library(piece.source) } else { Some(owner(name)) };
    match owner {
        Some("panic_unwind" | "gimli" | "addr2line" | "rustc_demangle" | "miniz_oxide") => {
            "std".into()
        }
        Some(owner) if reason(owner).is_some() => owner.into(),
        Some(_) => OTHERS.into(),
        None => CONSTANTS.into(),
    }
}

/// The C library of an object in an archive.
fn library(source: &str) -> Option<&str> {
    let (archive, _) = source.split_once(".a(").or_else(|| source.split_once(".rlib("))?;
    let name = archive.rsplit('/').next()?;
    match name.split_once('-').map_or(name, |(name, _)| name) {
        "libc" | "libm" | "libgcc" | "libgcc_eh" => Some("libc"),
        name => Some(name.trim_start_matches("lib")),
    }
}

/// The first crate that a name mentions which is not a part of the standard library.
fn owner(name: &str) -> &str {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("::") {
        let before = before.split('[').next().unwrap_or_default();
        let start = before.rfind(|c| !word(c)).map_or(0, |at| at + 1);
        let crate_name = &before[start..];
        let is_first = !before[..start].ends_with(':');
        if is_first && !crate_name.is_empty() && !matches!(crate_name, "core" | "alloc" | "std") {
            return crate_name;
        }
        // What follows up to the next word that is not a part of this path belongs to it.
        let path = after.find(|c: char| !word(c) && c != ':').unwrap_or(after.len());
        rest = &after[path..];
    }
    "std"
}

#[cfg(test)]
mod tests {
    use super::{owner, pieces};

    #[test]
    fn owner_is_the_crate_whose_type_it_is() {
        assert_eq!(owner("core::ptr::drop_in_place<rmcp::model::Request>"), "rmcp");
        assert_eq!(owner("<alloc::vec::Vec<T> as core::clone::Clone>::clone"), "std");
        assert_eq!(owner("rmcp::model::_::<impl serde_core::de::Deserialize for X>::f"), "rmcp");
        assert_eq!(owner("<std::sys::Cache>::with"), "std");
    }

    #[test]
    fn pieces_of_a_section_are_those_below_it() {
        let map = "     VMA      LMA     Size Align Out     In      Symbol\n\
                   \x20    b40      b40       2f    16 .text\n\
                   \x20    b40      b40       2f    16         /a.o:(.text.f)\n\
                   \x20    b40      b40       2f     1                 f\n";
        let found: Vec<_> = pieces(map).map(|one| (one.section, one.bytes, one.source)).collect();
        assert_eq!(found, [(".text", 0x2f, "/a.o:(.text.f)")]);
    }
}
