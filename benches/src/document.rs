//! Figures in a document: each part of them has its marks there, and what is between those is replaced.

use std::fs;
use std::io::{Error, Result};
use std::path::Path;
use std::process::Command;

/// Puts `figures` between the marks that name this part.
pub fn replace(document: &Path, part: &str, figures: &str) -> Result<()> {
    let begin = format!("<!-- {part}: written by `cargo xtask bench` -->\n");
    let end = format!("<!-- end of {part} -->\n");
    let text = fs::read_to_string(document)?;
    let missing = || Error::other(format!("{} has no marks for {part}", document.display()));
    let (before, rest) = text.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    fs::write(document, format!("{before}{begin}\n{}\n\n{end}{after}", figures.trim()))
}

/// What was measured, and on what.
pub fn machine(binary: &Path) -> Result<String> {
    let version = Command::new(binary).arg("--version").output()?.stdout;
    let version = String::from_utf8_lossy(&version).trim().to_owned();
    let cores = std::thread::available_parallelism()?;
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    let numbers = release.split('-').next().unwrap_or_default();
    Ok(format!("{version}, release build, on Linux {numbers} with {cores} cores."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_the_marks_is_replaced_and_nothing_else() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let document = |one: &str| {
            format!(
                "before\n<!-- one: written by `cargo xtask bench` -->\n{one}<!-- end of one -->\n\
                 <!-- two: written by `cargo xtask bench` -->\nkept\n<!-- end of two -->\nafter\n"
            )
        };
        fs::write(file.path(), document("")).expect("written");
        for figures in ["1 | 2\n", "3 | 4"] {
            replace(file.path(), "one", figures).expect("replaced");
            let expected = document(&format!("\n{}\n\n", figures.trim()));
            assert_eq!(fs::read_to_string(file.path()).expect("read"), expected);
        }
        assert!(replace(file.path(), "three", "").is_err());
    }
}
