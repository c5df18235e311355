//! `cargo xtask dist`: what people install, below `target/dist`: see docs/install.md.
//!
//! - `platform`: where the product runs; `toolchain`: what can be built here, and how
//! - `archive`: tar and zip; `template`: the files in `packaging`, filled
//! - `manual`: what the program prints about itself
//! - `package`: what is made for one platform; `index`: what is said of all of them
//! - `trial`: what was made, run as far as this machine can

pub mod archive;
mod index;
mod manual;
mod package;
pub mod platform;
mod talk;
mod template;
#[cfg(test)]
mod tests;
mod toolchain;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};

use manual::Manual;
use package::{Built, Package};
use platform::{PLATFORMS, Platform};
use template::Values;
use toolchain::Toolchain;

use crate::{Outcome, supply, target_folder};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// In bytes: what each binary stays under.
const LIMIT: usize = 10_000_000;

/// `[target]…`, or one of the words alone.
pub fn run(arguments: &[&str]) -> Outcome {
    let values = Values::new(VERSION, REPOSITORY)?;
    let mut report = Report::default();
    let outcome = match arguments {
        ["--assemble"] => assemble(&values, &mut report),
        ["--try"] => trial::all(&folder(), &values, &mut report),
        targets => build_and_assemble(targets, &values, &mut report),
    };
    if let Err(reason) = &outcome {
        report.failed(reason);
    }
    report.write(if arguments == ["--try"] { "trial.txt" } else { "outcome.txt" })?;
    outcome
}

fn folder() -> PathBuf {
    target_folder().join("dist")
}

fn build_and_assemble(targets: &[&str], values: &Values, report: &mut Report) -> Outcome {
    let chosen = choose(targets, report)?;
    if targets.is_empty() && folder().is_dir() {
        // What an earlier version left would be taken for this one's.
        fs::remove_dir_all(folder()).map_err(|e| format!("{}: {e}", folder().display()))?;
    }
    // One that fails does not keep people from the others.
    let (mut failures, mut manual) = (Vec::new(), None);
    for (target, toolchain) in chosen {
        if let Err(reason) = build_and_pack(target, &toolchain, values, &mut manual, report) {
            failures.push(reason);
        }
    }
    assemble(values, report)?;
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn build_and_pack(
    target: &'static str,
    toolchain: &Toolchain,
    values: &Values,
    manual: &mut Option<Manual>,
    report: &mut Report,
) -> Outcome {
    for package in build(target, toolchain, manual, report)?.packages(values)? {
        write(&package, report)?;
    }
    Ok(())
}

/// The named targets, all of which must be possible; or for each platform the first that is.
fn choose(targets: &[&str], report: &mut Report) -> Result<Vec<(&'static str, Toolchain)>, String> {
    let mut chosen = Vec::new();
    for target in targets {
        let known = PLATFORMS.iter().flat_map(|platform| platform.targets);
        let known: Vec<&str> = known.copied().collect();
        let Some(found) = known.iter().find(|known| *known == target) else {
            return Err(format!("{target} is none of {}", known.join(", ")));
        };
        chosen.push((*found, toolchain::find(found).map_err(|why| format!("{target}: {why}"))?));
    }
    if targets.is_empty() {
        for platform in &PLATFORMS {
            chosen.extend(first_possible(platform, report));
        }
    }
    Ok(chosen)
}

fn first_possible(
    platform: &'static Platform,
    report: &mut Report,
) -> Option<(&'static str, Toolchain)> {
    for target in platform.targets {
        match toolchain::find(target) {
            Ok(toolchain) => return Some((*target, toolchain)),
            Err(reason) => report.skipped(&format!("{target}: {reason}")),
        }
    }
    None
}

fn build(
    target: &'static str,
    toolchain: &Toolchain,
    manual: &mut Option<Manual>,
    report: &mut Report,
) -> Result<Built, String> {
    let platform = Platform::of(target).ok_or_else(|| format!("{target}: no platform has it"))?;
    let mut programs = Vec::new();
    let paths = toolchain::build(target, toolchain)?;
    for path in &paths {
        let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        check_size(target, &name, bytes.len())?;
        report.made(&format!("{target}: {name}, {}", size(bytes.len())));
        programs.push((name, bytes));
    }
    let printed = match (manual.take(), &paths[..]) {
        (Some(printed), _) => printed,
        (None, [server, ..]) => Manual::of(server)?,
        (None, []) => return Err(format!("{target}: nothing was built")),
    };
    *manual = Some(printed.clone());
    Ok(Built { target, platform, programs, manual: printed })
}

fn check_size(target: &str, name: &str, bytes: usize) -> Outcome {
    if bytes < LIMIT {
        return Ok(());
    }
    Err(format!("{target}: {name} has {bytes} bytes, and must have fewer than {LIMIT}"))
}

fn assemble(values: &Values, report: &mut Report) -> Outcome {
    let index = index::make(&folder(), values)?;
    for file in &index.files {
        write(file, report)?;
    }
    for bill in supply::write_bills()? {
        report.made(&bill.file_name().unwrap_or_default().to_string_lossy());
    }
    index.missing.iter().for_each(|missing| report.skipped(missing));
    Ok(())
}

fn write(package: &Package, report: &mut Report) -> Outcome {
    let path = folder().join(&package.name);
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(&path, &package.bytes))
        .map_err(|e| format!("{}: {e}", path.display()))?;
    report.made(&format!("{}, {}", package.name, size(package.bytes.len())));
    Ok(())
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        _ => format!("{}.{:02} MB", bytes / 1_000_000, bytes / 10_000 % 100),
    }
}

/// What came of it, told as it comes and written down in the end.
#[derive(Default)]
struct Report(Vec<String>);

impl Report {
    fn made(&mut self, what: &str) {
        self.line("made", what);
    }

    fn skipped(&mut self, what: &str) {
        self.line("skipped", what);
    }

    fn ran(&mut self, what: &str) {
        self.line("ran", what);
    }

    fn failed(&mut self, why: &str) {
        self.0.push(format!("failed   {why}"));
    }

    fn line(&mut self, kind: &str, what: &str) {
        let line = format!("{kind:<8} {what}");
        println!("{line}");
        self.0.push(line);
    }

    fn write(&self, name: &str) -> Outcome {
        let path = folder().join(name);
        fs::create_dir_all(folder())
            .and_then(|()| fs::write(&path, self.0.join("\n") + "\n"))
            .map_err(|e| format!("{}: {e}", path.display()))
    }
}
