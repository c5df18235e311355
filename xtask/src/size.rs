//! `cargo xtask size [folder]…`: what each language adds to the release binary, packed and as it would be otherwise, what
//! it takes when it is used, and of how many real sources it was seen to make the same tree: those of this machine, and
//! those in the folders; and what the other parts of the binary weigh.

mod parts;

use std::collections::HashMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, cargo, footprint, root, run};

/// In bytes.
struct Language {
    name: String,
    /// The parser as it comes.
    plain: u64,
    /// Its tables, and what finds its tokens.
    packed: u64,
    /// What is not packed.
    code: u64,
    /// In memory, while it is used.
    unpacked: u64,
    /// What its first use took, in milliseconds.
    first_use: String,
    /// Real sources of which the packed and the plain parser made the same tree.
    same: u64,
}

pub fn write(folders: &[&str]) -> Outcome {
    let binary = footprint::build()?;
    let built = built()?;
    let (used, same) = (used()?, same(folders)?);
    let mut languages = Vec::new();
    let entries = fs::read_dir(&built).map_err(|e| format!("{built}: {e}"))?;
    for entry in entries.filter_map(Result::ok).filter(|entry| entry.path().is_dir()) {
        languages.push(measure(&entry.path(), &used, &same)?);
    }
    languages.sort_by_key(|language| language.packed + language.code);
    let length = length(&binary)?;
    let packed = languages.iter().map(|language| language.packed).sum();
    let text = document(&languages, length) + &parts::document(packed, length)?;
    fs::write(root().join("docs/size.md"), text).map_err(|e| e.to_string())
}

/// Where the build script of `grammars` leaves what it makes.
fn built() -> Result<String, String> {
    let mut build = cargo();
    build.args(["build", "--release", "--package", "grammars", "--message-format=json"]);
    let output = build.current_dir(root()).output().map_err(|e| e.to_string())?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let executed = messages.lines().find(|line| {
        line.contains("\"reason\":\"build-script-executed\"") && line.contains("/crates/grammars#")
    });
    let folder = executed.and_then(|line| line.split_once("\"out_dir\":\"")?.1.split('"').next());
    folder.map(String::from).ok_or_else(|| format!("{build:?}: no build script was run"))
}

fn measure(
    folder: &Path,
    used: &HashMap<String, (u64, String)>,
    same: &HashMap<String, u64>,
) -> Result<Language, String> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let archive = folder.with_file_name(format!("libgrammars_{name}.a"));
    let source = folder.join("source");
    let source = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
    let (unpacked, first_use) = used.get(&name).ok_or_else(|| format!("{name}: not measured"))?;
    Ok(Language {
        plain: plain(Path::new(&source), folder)?,
        packed: length(&folder.join("packed"))?,
        code: linked(&archive)?,
        unpacked: *unpacked,
        first_use: first_use.clone(),
        same: *same.get(&name).ok_or_else(|| format!("{name}: not compared"))?,
        name,
    })
}

/// By language, how many bytes it is when unpacked, and what the first time took.
fn used() -> Result<HashMap<String, (u64, String)>, String> {
    let mut measure = cargo();
    measure.args(["run", "--quiet", "--release", "--package", "grammars", "--example", "measure"]);
    let rows = output(&mut measure)?;
    let read = |row: &str| {
        let mut cells = row.split_whitespace();
        let (name, _packed) = (cells.next()?, cells.next()?);
        Some((name.to_owned(), (cells.next()?.parse().ok()?, cells.next()?.to_owned())))
    };
    Ok(rows.lines().filter_map(read).collect())
}

/// By language, how many real sources were compared.
fn same(folders: &[&str]) -> Result<HashMap<String, u64>, String> {
    let folders = folders.iter().map(PathBuf::from).map(std::path::absolute);
    let folders: Vec<_> = folders.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let folders = env::join_paths(folders).map_err(|e| e.to_string())?;
    let mut compare = cargo();
    compare.args(["test", "--quiet", "--package", "grammars", "--test", "same", "--"]);
    compare.args(["--nocapture", "trees"]);
    if !folders.is_empty() {
        compare.env("SOURCES", folders);
    }
    let read = |line: &str| {
        let (name, count) = line.strip_suffix(" real sources")?.rsplit_once(": ")?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    Ok(output(&mut compare)?.lines().filter_map(read).collect())
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.current_dir(root()).output().map_err(|e| format!("{command:?}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The parser whose source is in `source`, compiled as the rest of ours is.
fn plain(source: &Path, folder: &Path) -> Result<u64, String> {
    let mut size = 0;
    for file in ["parser.c", "scanner.c"].map(|file| source.join(file)) {
        if file.is_file() {
            let object = folder.join("plain.o");
            let mut compile = Command::new("cc");
            compile.args(["-c", "-Os", "-std=c11", "-I"]).arg(source).arg(&file);
            run(compile.arg("-o").arg(&object))?;
            size += linked(&object)?;
        }
    }
    Ok(size)
}

/// What goes into a binary of this.
fn linked(object: &Path) -> Result<u64, String> {
    let output = Command::new("size").arg("--totals").arg(object).output();
    let output = output.map_err(|e| format!("`size`, of the binutils: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let totals = text.lines().last().unwrap_or_default().split_whitespace();
    let sections: Vec<u64> = totals.filter_map(|number| number.parse().ok()).collect();
    let [code, data, ..] = sections[..] else {
        return Err(format!("{}: no size", object.display()));
    };
    Ok(code + data)
}

fn length(path: &Path) -> Result<u64, String> {
    Ok(fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?.len())
}

fn document(languages: &[Language], binary: u64) -> String {
    let sum = |part: fn(&Language) -> u64| languages.iter().map(part).sum();
    let all = Language {
        name: "all".into(),
        plain: sum(|language| language.plain),
        packed: sum(|language| language.packed),
        code: sum(|language| language.code),
        unpacked: sum(|language| language.unpacked),
        first_use: String::new(),
        same: sum(|language| language.same),
    };
    let mut text = String::from(
        "# Size\n\n\
         Written by `cargo xtask size`.\n\n\
         Size that each language adds to the release binary, in KB of 1,000 bytes. A parser consists of tables;\n\
         functions that find tokens are converted to tables too. The tables are packed at build time and unpacked when\n\
         the language is first used. The columns show the time and memory that this takes; an idle server frees the\n\
         memory. `code` is the machine code that some languages still need. `same trees` is the number of real sources\n\
         for which the packed parser produced the same tree, node by node, as the plain one; 0 if the machine had none.\n\n\
         | language | before | packed | code | after | in memory | first use, ms | same trees |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for language in languages.iter().chain([&all]) {
        let Language { name, plain, packed, code, unpacked, first_use, same } = language;
        let [plain, packed, code, after, unpacked] =
            [*plain, *packed, *code, packed + code, *unpacked].map(kilobytes);
        let row = format!(
            "| {name} | {plain} | {packed} | {code} | {after} | {unpacked} | {first_use} | {same} |"
        );
        writeln!(text, "{row}").expect("a string takes all");
    }
    let (megabytes, hundredths) = (binary / 1_000_000, binary / 10_000 % 100);
    writeln!(text, "\nThe release binary, static: {megabytes}.{hundredths:02} MB.")
        .expect("a string takes all");
    text
}

fn kilobytes(bytes: u64) -> String {
    format!("{}.{}", bytes / 1_000, bytes / 100 % 10)
}
