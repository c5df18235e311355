//! Compares our outlines with universal-ctags: the share of its names that they have at the same line.
//!
//! `cargo run --release -p code --example against_ctags -- <folder>…` goes through the files below the folders and
//! tells, for each language, how many of the functions, methods and types that ctags names are in our outline under the
//! same name and at the same line. `--misses <n>` shows that many of the others, for each language.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that is run by hand, over files that are not served"
)]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use code::language::{self, Language};
use code::outline::outline;

/// Most files of a language.
const FILES_MAX: usize = 1_500;
/// Larger ones are mostly generated, or not parsed anyway.
const FILE_BYTES_MAX: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut folders = Vec::new();
    let mut shown = 0;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--misses" => shown = arguments.next().ok_or("--misses needs a number")?.parse()?,
            folder => folders.push(PathBuf::from(folder)),
        }
    }
    let mut files = BTreeMap::new();
    for folder in &folders {
        collect(folder, &mut files);
    }
    println!("language     files     tags    found  percent  outlines in");
    for (language, files) in files {
        compare(&language, &files, shown)?;
    }
    Ok(())
}

/// The files below `folder`, by language. What has no grammar goes by what its name ends with.
fn collect(folder: &Path, files: &mut BTreeMap<String, Vec<PathBuf>>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.is_dir() {
            collect(&path, files);
        } else if metadata.is_file() && metadata.len() <= FILE_BYTES_MAX {
            let Some(language) = path.to_str().and_then(language_name) else { continue };
            let files = files.entry(language).or_default();
            if files.len() < FILES_MAX {
                files.push(path);
            }
        }
    }
}

fn language_name(path: &str) -> Option<String> {
    let text = || std::fs::read_to_string(path).unwrap_or_default();
    let is_c = |language: &dyn Language| language.name() == "c";
    let by_path = language::of_path(path);
    let language = if by_path.is_some_and(is_c) { language::of(path, &text()) } else { by_path };
    if let Some(language) = language {
        return Some(language.name().to_owned());
    }
    let extension = Path::new(path).extension()?.to_str()?;
    let guessed = ["lua", "pl", "pm", "scala", "ex"];
    guessed.contains(&extension).then(|| format!("(.{extension})"))
}

/// A name that ctags found.
struct Tag {
    path: String,
    name: String,
    line: usize,
    kind: String,
    /// The line itself.
    pattern: String,
}

fn compare(language: &str, files: &[PathBuf], shown: usize) -> Result<(), Box<dyn Error>> {
    let (tags, others): (Vec<_>, Vec<_>) = tags(language, files)?
        .into_iter()
        .filter(is_compared)
        .partition(|tag| !is_no_class(language, tag));
    let mut ours: HashMap<&str, HashSet<(usize, String)>> = HashMap::new();
    let mut taken = Duration::ZERO;
    for path in files.iter().filter_map(|path| path.to_str()) {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let started = Instant::now();
        let outline = outline(path, &text, &|| false);
        taken += started.elapsed();
        let names =
            outline.parts.into_iter().map(|part| (part.name_line, alike(language, &part.name)));
        ours.insert(path, names.collect());
    }
    // A file that is not text has no outline.
    let tags: Vec<_> =
        tags.into_iter().filter(|tag| ours.contains_key(tag.path.as_str())).collect();
    let misses: Vec<_> = tags
        .iter()
        .filter(|tag| !ours[tag.path.as_str()].contains(&(tag.line, alike(language, &tag.name))))
        .collect();
    let found = tags.len() - misses.len();
    println!(
        "{language:<12} {:>5} {:>8} {found:>8} {:>7.2}%  {:>6} ms{}",
        files.len(),
        tags.len(),
        percent(found, tags.len()),
        taken.as_millis(),
        if others.is_empty() { String::new() } else { format!(", {} left out", others.len()) }
    );
    let step = (misses.len() / shown.max(1)).max(1);
    for miss in misses.iter().step_by(step).take(shown) {
        println!("    {}:{} {} {}", miss.path, miss.line + 1, miss.kind, miss.name);
    }
    Ok(())
}

/// In JavaScript ctags takes every object for a class, and whatever stands before `.prototype`; in TypeScript whatever
/// is imported for a type, or is called one; in PHP and C# whatever is imported; in Kotlin the parameters of
/// functions without a name; in shell scripts arrays and aliases.
fn is_no_class(language: &str, tag: &Tag) -> bool {
    let has = |word: &str| tag.pattern.contains(word);
    match (language, tag.kind.as_str()) {
        ("javascript", "class") => !has("class") && !has("function"),
        ("typescript" | "tsx", "alias") => {
            !has(&format!("type {}", tag.name)) || !(has("=") || has("<"))
        }
        ("kotlin", "method") => !has("fun "),
        ("bash", "function") => tag.name.ends_with('='),
        ("php" | "bash", "alias") | ("csharp", "typedef") => true,
        _ => false,
    }
}

/// A name as both have it: ctags has blanks of its own in selectors and operators, and more in the names of operators.
fn alike(language: &str, name: &str) -> String {
    match language {
        "css" | "cpp" => name.chars().filter(|c| !c.is_whitespace()).collect(),
        "csharp" => {
            name.trim_start_matches("operator ").rsplit('.').next().unwrap_or(name).to_owned()
        }
        _ => name.to_owned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "they are small")]
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Functions, methods and types, and nothing that ctags made up for what has no name.
fn is_compared(tag: &Tag) -> bool {
    let kinds = [
        "alias",
        "annotation",
        "class",
        "enum",
        "function",
        "func",
        "generator",
        "getter",
        "interface",
        "method",
        "methodSpec",
        "module",
        "setter",
        "singletonMethod",
        "struct",
        "subroutine",
        "talias",
        "trait",
        "type",
        "typedef",
        "union",
    ];
    kinds.contains(&tag.kind.as_str())
        && !tag.name.starts_with("__anon")
        && !tag.name.starts_with('<')
        && !tag.name.starts_with("Anonymous")
}

fn tags(language: &str, files: &[PathBuf]) -> Result<Vec<Tag>, Box<dyn Error>> {
    let mut command = Command::new("ctags");
    command.args(["--output-format=json", "--fields=+nKS", "--sort=no", "-L", "-", "-f", "-"]);
    // What ctags takes for C++, or does not know by its name.
    match language {
        "c" => command.arg("--language-force=C"),
        "cpp" => command.arg("--language-force=C++"),
        "bash" => command.arg("--language-force=Sh"),
        "tsx" => command.arg("--language-force=TypeScript"),
        "javascript" => command.arg("--language-force=JavaScript"),
        _ => &mut command,
    };
    let mut ctags =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut input = ctags.stdin.take().ok_or("no input")?;
    let paths: Vec<_> = files.iter().filter_map(|path| path.to_str()).collect();
    let list = paths.join("\n") + "\n";
    let feeder = std::thread::spawn(move || input.write_all(list.as_bytes()));
    let output = ctags.wait_with_output()?;
    feeder.join().map_err(|_| "the list could not be written")??;
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(tag).collect())
}

/// One line of JSON, all of whose values here are strings and numbers.
fn tag(line: &str) -> Option<Tag> {
    let line_number: usize = value(line, "\"line\": ")?.parse().ok()?;
    Some(Tag {
        path: value(line, "\"path\": \"")?,
        name: value(line, "\"name\": \"")?,
        line: line_number.checked_sub(1)?,
        kind: value(line, "\"kind\": \"")?,
        pattern: value(line, "\"pattern\": \"").unwrap_or_default(),
    })
}

fn value(line: &str, key: &str) -> Option<String> {
    let rest = &line[line.find(key)? + key.len()..];
    if !key.ends_with('"') {
        return Some(rest[..rest.find([',', '}'])?].to_owned());
    }
    let mut value = String::new();
    let mut characters = rest.chars();
    loop {
        match characters.next()? {
            '"' => return Some(value),
            '\\' => value.push(characters.next()?),
            other => value.push(other),
        }
    }
}
