//! What the program prints about itself, for `man` and for shells, as it lies in an archive.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive::Entry;
use super::toolchain::answers;
use crate::{cargo, run, target_folder};

/// Where each text lies, and the words that print it.
pub const FILES: [(&str, &[&str]); 5] = [
    ("man/file-editor.1", &["man"]),
    ("completions/file-editor.bash", &["completions", "bash"]),
    ("completions/_file-editor", &["completions", "zsh"]),
    ("completions/file-editor.fish", &["completions", "fish"]),
    ("completions/file-editor.ps1", &["completions", "powershell"]),
];

/// The texts, in the order of [`FILES`].
#[derive(Clone)]
pub struct Manual(pub Vec<Vec<u8>>);

impl Manual {
    /// It is the same for all machines, so that whatever runs on this one can print it: the program that was built, or
    /// one that is built for it.
    pub fn of(built: &Path) -> Result<Self, String> {
        if answers(Command::new(built).arg("--version")) {
            return Self::printed_by(built);
        }
        Self::printed_by(&build()?)
    }

    fn printed_by(program: &Path) -> Result<Self, String> {
        FILES.iter().map(|(_, words)| print(program, words)).collect::<Result<_, _>>().map(Self)
    }

    pub fn entries(&self, folder: &str) -> Vec<Entry> {
        let entry = |((path, _), text): (&(&str, _), &Vec<u8>)| {
            Entry::text(format!("{folder}/{path}"), text.clone())
        };
        FILES.iter().zip(&self.0).map(entry).collect()
    }
}

fn build() -> Result<PathBuf, String> {
    run(cargo().args(["build", "--release", "--bin", "file-editor"]))?;
    Ok(target_folder().join("release").join(format!("file-editor{}", std::env::consts::EXE_SUFFIX)))
}

fn print(program: &Path, words: &[&str]) -> Result<Vec<u8>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{} {words:?}: {why}", program.display());
    let output = Command::new(program).args(words).output().map_err(|e| failed(&e))?;
    if output.status.success() { Ok(output.stdout) } else { Err(failed(&output.status)) }
}
