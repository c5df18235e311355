//! What is said of all packages together: checksums, the entry for the MCP registry, the formula for Homebrew, the
//! package for npm that people name, the Dockerfile. It is made of what lies in the folder, whoever built it there.

use std::fs;
use std::path::Path;

use super::archive::sha256;
use super::package::{Package, npm_wrapper};
use super::platform::{self, PLATFORMS};
use super::template::Values;

/// What to write, and what cannot be written yet.
pub struct Index {
    pub files: Vec<Package>,
    pub missing: Vec<String>,
}

pub fn make(folder: &Path, values: &Values) -> Result<Index, String> {
    let version = values.get("version");
    let mut released = Vec::new();
    let (mut bundles, mut archives) = (values.clone(), values.clone());
    let mut missing = Vec::new();
    for platform in &PLATFORMS {
        let name = platform::bundle(version, platform);
        if let Some(sum) = sum(&folder.join(&name))? {
            bundles = bundles.with(format!("sha256 {}", platform.name), &sum);
            released.push((name, sum));
        }
        let mut found = None;
        for target in platform.targets {
            let name = platform::archive(version, target);
            if let Some(sum) = sum(&folder.join(&name))? {
                released.push((name.clone(), sum.clone()));
                found = found.or(Some((name, sum)));
            }
        }
        match found {
            Some((name, sum)) => {
                archives = archives
                    .with(format!("archive {}", platform.name), name)
                    .with(format!("sha256 {}", platform.name), sum);
            }
            None => missing.push(platform.name),
        }
    }
    released.sort();
    let sums = released.iter().map(|(name, sum)| format!("{sum}  {name}\n"));
    let sums = sums.collect::<Vec<_>>().concat();
    let mut files = vec![
        text("SHA256SUMS", sums),
        text("docker/Dockerfile", values.file("Dockerfile")?),
        npm_wrapper(values)?,
    ];
    if missing.is_empty() {
        files.push(text("server.json", bundles.file("server.json")?));
        files.push(text("file-editor.rb", archives.file("homebrew/file-editor.rb")?));
        return Ok(Index { files, missing: Vec::new() });
    }
    // Half of them would be worse than none: they are published as they are.
    let message = |name| format!("{name}: needs the packages for {}", missing.join(", "));
    Ok(Index { files, missing: ["server.json", "file-editor.rb"].map(message).to_vec() })
}

fn text(name: &str, text: String) -> Package {
    Package { name: name.into(), bytes: text.into_bytes() }
}

/// `None` for a file that is not there.
fn sum(path: &Path) -> Result<Option<String>, String> {
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(Some(sha256(&bytes)))
}
