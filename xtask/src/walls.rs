//! What must never leak, and what the compiler cannot see.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Outcome, cycles, root};

/// A rule: in the sources below these folders, none of these words.
struct Wall {
    why: &'static str,
    folders: &'static [&'static str],
    words: &'static [&'static str],
    /// Sources behind the wall, as they end.
    except: &'static [&'static str],
}

const CRATES: [&str; 9] = [
    "text",
    "files",
    "grammars",
    "code",
    "model",
    "tools",
    "server",
    "file-editor",
    "codex-cli-acp",
];

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
        except: &[],
    },
    Wall {
        why: "`text` is pure: no I/O, clock, threads or serialization",
        folders: &["text"],
        words: &["std::io", "std::net", "std::time", "std::thread", "std::env", "serde"],
        except: &[],
    },
    Wall {
        why: "`tools` does not know how it was called",
        folders: &["text", "files", "grammars", "code", "model", "tools"],
        words: &["rmcp", "tokio", "axum", "hyper"],
        except: &[],
    },
    Wall {
        why: "only `server` knows the protocols",
        folders: &["file-editor", "codex-cli-acp"],
        words: &["rmcp", "axum", "hyper"],
        except: &[],
    },
    Wall {
        why: "text for people goes through `server::terminal`, which escapes what a terminal would obey or hide",
        folders: &CRATES,
        words: &[
            "print!",
            "println!",
            "eprint!",
            "eprintln!",
            "dbg!",
            "stdout()",
            "stderr()",
            ".print()",
            "print_long_help",
        ],
        // These two write the protocol's messages.
        except: &[
            "server/src/terminal.rs",
            "server/src/stdio/lines.rs",
            "server/src/stdio/writer.rs",
        ],
    },
];

pub fn check() -> Outcome {
    let mut found = Vec::new();
    for wall in WALLS {
        for folder in wall.folders {
            for path in sources(&root().join("crates").join(folder).join("src"))? {
                let text =
                    fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                found.extend(wall.breaches(path.strip_prefix(root()).unwrap_or(&path), &text));
            }
        }
    }
    for krate in CRATES {
        found.extend(cycles::check(&root().join("crates").join(krate).join("src")).err());
    }
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

impl Wall {
    /// Where a source has one of the words, and why it may not.
    fn breaches(&self, path: &Path, source: &str) -> Vec<String> {
        if self.except.iter().any(|exception| path.ends_with(exception)) {
            return Vec::new();
        }
        let mut found = Vec::new();
        // Tests at the end of a file may do what they like.
        for (number, line) in without_tests(source).lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            if let Some(word) = self.words.iter().find(|word| has_word(line, word)) {
                let place = path.display();
                found.push(format!("{place}:{}: `{word}`: {}", number + 1, self.why));
            }
        }
        found
    }
}

/// Whether the word is there, and not the end of a longer one: `use_stderr()` writes nothing.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let begins = |at: usize| !word.starts_with(is_part) || !line[..at].ends_with(is_part);
    line.match_indices(word).any(|(at, _)| begins(at))
}

/// A source without the tests at its end.
pub fn without_tests(source: &str) -> &str {
    let begins = ["#[cfg(test)]", "#[cfg(all(test"].iter();
    let tests = begins.filter_map(|begin| source.find(begin)).min();
    &source[..tests.unwrap_or(source.len())]
}

pub fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_found_unless_a_test_or_a_comment_has_it() {
        for wall in WALLS {
            for word in wall.words {
                let check = |path: &str, source: &str, count: usize| {
                    let found = wall.breaches(Path::new(path), source);
                    assert_eq!(found.len(), count, "{word}: {found:?}");
                };
                check("crates/x/src/a.rs", &format!("fn a() {{\n    {word} x\n}}\n"), 1);
                check("crates/x/src/a.rs", &format!("// {word}\nfn a() {{}} // {word}\n"), 0);
                check("crates/x/src/a.rs", &format!("#[cfg(test)]\nmod tests {{ {word} }}\n"), 0);
                for exception in wall.except {
                    check(&format!("crates/{exception}"), word, 0);
                }
            }
        }
    }

    #[test]
    fn whatever_prints_is_found() {
        for line in [
            "println!(\"{text}\");",
            "eprint!(\"{text}\");",
            "writeln!(std::io::stderr(), \"{text}\")?;",
            "tokio::io::stdout().write_all(b).await?;",
            "let mut out = io::stdout().lock();",
            "error.print()?;",
        ] {
            let breaches = |wall: &Wall| wall.breaches(Path::new("crates/x/src/a.rs"), line);
            let mut found = WALLS.iter().flat_map(breaches);
            assert!(found.any(|breach| breach.contains("server::terminal")), "{line}");
        }
    }

    #[test]
    fn a_longer_word_is_another() {
        assert!(has_word("a(stderr())", "stderr()") && has_word("stderr()", "stderr()"));
        assert!(!has_word("error.use_stderr()", "stderr()"));
    }

    #[test]
    fn what_is_excepted_is_there() {
        for exception in WALLS.iter().flat_map(|wall| wall.except) {
            assert!(root().join("crates").join(exception).is_file(), "{exception}");
        }
    }
}
