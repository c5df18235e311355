//! `cargo xtask size`: what each language adds to the release binary, packed and as it would be otherwise.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
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
}

pub fn write() -> Outcome {
    let binary = footprint::build()?;
    let built = built()?;
    let mut languages = Vec::new();
    let entries = fs::read_dir(&built).map_err(|e| format!("{built}: {e}"))?;
    for entry in entries.filter_map(Result::ok).filter(|entry| entry.path().is_dir()) {
        languages.push(measure(&entry.path())?);
    }
    languages.sort_by_key(|language| language.packed + language.code);
    fs::write(root().join("docs/size.md"), document(&languages, length(&binary)?))
        .map_err(|e| e.to_string())
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

fn measure(folder: &Path) -> Result<Language, String> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let archive = folder.with_file_name(format!("libgrammars_{name}.a"));
    let source = folder.join("source");
    let source = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
    Ok(Language {
        name,
        plain: plain(Path::new(&source), folder)?,
        packed: length(&folder.join("packed"))?,
        code: linked(&archive)?,
    })
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
    };
    let mut text = String::from(
        "# Size\n\n\
         Written by `cargo xtask size`.\n\n\
         What each language adds to the release binary, in KB of 1,000 bytes. A parser is tables, and\n\
         functions that find tokens, which are made tables. These are packed when the program is built, and unpacked\n\
         when the language is first used. The code that is left is what some languages need besides.\n\n\
         | language | before | packed | code | after |\n\
         |---|---:|---:|---:|---:|\n",
    );
    for Language { name, plain, packed, code } in languages.iter().chain([&all]) {
        let [plain, packed, code, after] = [*plain, *packed, *code, packed + code].map(kilobytes);
        let row = format!("| {name} | {plain} | {packed} | {code} | {after} |");
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
