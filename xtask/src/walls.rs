//! What must never leak, and what the compiler cannot see.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Outcome, root};

/// A rule: in the sources below these folders, none of these words.
struct Wall {
    why: &'static str,
    folders: &'static [&'static str],
    words: &'static [&'static str],
}

const WALLS: &[Wall] = &[
    Wall {
        why: "only `files` calls the file system",
        folders: &[
            "text",
            "grammars",
            "code",
            "model",
            "tools",
            "server",
            "file-editor",
            "codex-cli-acp",
        ],
        words: &["std::fs", "tokio::fs", "cap_std", "rustix::fs", "File::open", "read_to_string("],
    },
    Wall {
        why: "`text` is pure: no I/O, clock, threads or serialization",
        folders: &["text"],
        words: &["std::io", "std::net", "std::time", "std::thread", "std::env", "serde"],
    },
    Wall {
        why: "`tools` does not know how it was called",
        folders: &["text", "files", "grammars", "code", "model", "tools"],
        words: &["rmcp", "tokio", "axum", "hyper"],
    },
    Wall {
        why: "only `server` knows the protocols",
        folders: &["file-editor", "codex-cli-acp"],
        words: &["rmcp", "axum", "hyper"],
    },
];

pub fn check() -> Outcome {
    let mut found = Vec::new();
    for wall in WALLS {
        for folder in wall.folders {
            for path in sources(&root().join("crates").join(folder).join("src"))? {
                let text =
                    fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                // So may those at the end of a file.
                for (number, line) in without_tests(&text).lines().enumerate() {
                    let line = line.split("//").next().unwrap_or_default();
                    if let Some(word) = wall.words.iter().find(|word| line.contains(**word)) {
                        let place = path.strip_prefix(root()).unwrap_or(&path).display();
                        found.push(format!("{place}:{}: `{word}`: {}", number + 1, wall.why));
                    }
                }
            }
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

/// A source without the tests at its end.
pub fn without_tests(source: &str) -> &str {
    let begins = ["#[cfg(test)]", "#[cfg(all(test"].iter();
    let tests = begins.filter_map(|begin| source.find(begin)).min();
    &source[..tests.unwrap_or(source.len())]
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        // Tests may do what they like.
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
