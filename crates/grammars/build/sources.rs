//! Folders of the packages that the parsers come from: cargo knows them, and fetches those that are missing.

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::BuildError;

/// Metadata of our packages from cargo.
pub struct Sources {
    pub lock_file: PathBuf,
    folders: HashMap<String, PathBuf>,
}

impl Sources {
    pub fn find() -> Result<Self, BuildError> {
        // What was built before is there already: most builds need no network, and some have none.
        let known = metadata(&["--offline"]).or_else(|_| metadata(&[]))?;
        Self::read(&known).ok_or_else(|| "cargo metadata does not name our packages".into())
    }

    /// The folder of a package that we depend on.
    pub fn folder(&self, package: &str) -> Result<&Path, BuildError> {
        let folder = self.folders.get(package).map(PathBuf::as_path);
        folder.ok_or_else(|| format!("{package} is not among the dev-dependencies").into())
    }

    fn read(known: &Value) -> Option<Self> {
        // The folder may have been reached by a link.
        let real = |path: &Path| path.canonicalize().ok();
        let own_manifest = real(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))?;
        let packages = known["packages"].as_array()?;
        let manifest = |package: &Value| package["manifest_path"].as_str().map(PathBuf::from);
        let own = packages.iter().find(|one| {
            manifest(one).and_then(|path| real(&path)).as_ref() == Some(&own_manifest)
        })?;
        let nodes = known["resolve"]["nodes"].as_array()?;
        let node = nodes.iter().find(|node| node["id"] == own["id"])?;
        let needed: Vec<_> = node["deps"].as_array()?.iter().map(|one| &one["pkg"]).collect();
        let folders = packages
            .iter()
            .filter(|package| needed.contains(&&package["id"]))
            .filter_map(|package| {
                let folder = manifest(package)?.parent()?.to_owned();
                Some((package["name"].as_str()?.to_owned(), folder))
            });
        let lock_file = Path::new(known["workspace_root"].as_str()?).join("Cargo.lock");
        Some(Self { lock_file, folders: folders.collect() })
    }
}

fn metadata(options: &[&str]) -> Result<Value, BuildError> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--format-version=1", "--locked", "--filter-platform"]);
    cargo.arg(env::var("HOST")?).args(options).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().map_err(|e| format!("{cargo:?}: {e}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{cargo:?}: {}\n{reason}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
