//! Real sources, of whatever is on this machine.
//!
//! `SOURCES` names folders besides, as `PATH` does, and `SOURCES_EACH` how many files of a language are taken.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

const FILE_BYTES_MAX: u64 = 100 << 10;
/// Most files and folders that are visited.
const VISITED_MAX: usize = 200_000;

/// Most files of each language.
pub fn each() -> usize {
    env::var("SOURCES_EACH").ok().and_then(|each| each.parse().ok()).unwrap_or(150)
}

/// The files whose names end with one of `extensions`, from all over the folders.
pub fn files<'a>(
    all: &'a HashMap<String, Vec<PathBuf>>,
    extensions: &[&str],
) -> impl Iterator<Item = &'a PathBuf> {
    let known: Vec<_> = extensions.iter().filter_map(|one| all.get(*one)).flatten().collect();
    let step = (known.len() / each()).max(1);
    known.into_iter().step_by(step)
}

/// Files of a moderate size, by their extension.
pub fn all() -> HashMap<String, Vec<PathBuf>> {
    let named = env::var_os("SOURCES").unwrap_or_default();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let packages = cargo.map(|cargo| cargo.join("registry").join("src"));
    let system = ["/usr/include", "/usr/lib/python3", "/usr/share/doc", "/usr/local/go/src"];
    let folders = env::split_paths(&named)
        .chain(["crates", "docs", "benches", "clients"].map(|folder| own.join(folder)))
        .chain(packages)
        .chain(system.map(PathBuf::from));
    let mut found = HashMap::new();
    for folder in folders {
        look(&folder, &mut found);
    }
    found
}

fn look(folder: &Path, found: &mut HashMap<String, Vec<PathBuf>>) {
    let mut waiting = vec![folder.to_owned()];
    let mut left = VISITED_MAX;
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            left = left.saturating_sub(1);
            let (path, Ok(about)) = (entry.path(), entry.metadata()) else { continue };
            if left == 0 {
                return;
            } else if about.is_dir() {
                waiting.push(path);
            } else if about.is_file() && about.len() <= FILE_BYTES_MAX {
                let extension = path.extension().and_then(|extension| extension.to_str());
                if let Some(extension) = extension {
                    found.entry(extension.to_owned()).or_default().push(path);
                }
            }
        }
    }
}
