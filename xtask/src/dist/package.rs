//! What is made of the binaries of one platform: an archive, a bundle for MCP clients, a package for npm.

use std::fs;
use std::path::Path;

use super::archive::{Entry, tar_gz, zip};
use super::manual::Manual;
use super::platform::{self, Platform};
use super::template::Values;
use crate::root;

/// A file to be written below `target/dist`.
pub struct Package {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The binaries for one target.
pub struct Built {
    pub target: &'static str,
    pub platform: &'static Platform,
    /// By file name.
    pub programs: Vec<(String, Vec<u8>)>,
    pub manual: Manual,
}

impl Built {
    pub fn packages(&self, values: &Values) -> Result<Vec<Package>, String> {
        let values = values.clone().with_platform(self.platform);
        let mut packages = vec![self.archive(&values)?, self.bundle(&values)?, self.npm(&values)?];
        packages.extend(self.container());
        Ok(packages)
    }

    fn programs(&self, folder: &str) -> Vec<Entry> {
        let entry = |(name, bytes): &(String, Vec<u8>)| {
            Entry::program(format!("{folder}/{name}"), bytes.clone())
        };
        self.programs.iter().map(entry).collect()
    }

    /// Everything in one folder, which is named like the archive.
    fn archive(&self, values: &Values) -> Result<Package, String> {
        let version = values.get("version");
        let folder = platform::stem(version, self.target);
        let mut entries = self.programs(&folder);
        entries.extend(documents(&folder)?);
        entries.extend(self.manual.entries(&folder));
        let name = platform::archive(version, self.target);
        let pack = if platform::is_zipped(self.target) { zip } else { tar_gz };
        Ok(Package { bytes: pack(&entries)?, name })
    }

    fn bundle(&self, values: &Values) -> Result<Package, String> {
        let server = format!("file-editor{}", self.platform.exe());
        let manifest = values.file("mcpb/manifest.json")?;
        let mut entries = vec![Entry::text("manifest.json".into(), manifest)];
        entries.extend(self.programs("server").into_iter().filter(|e| e.path.ends_with(&server)));
        entries.extend(licences("")?);
        let name = platform::bundle(values.get("version"), self.platform);
        Ok(Package { bytes: zip(&entries)?, name })
    }

    fn npm(&self, values: &Values) -> Result<Package, String> {
        let manifest = values.file("npm/platform.json")?;
        let mut entries = vec![Entry::text("package/package.json".into(), manifest)];
        entries.extend(self.programs("package/bin"));
        entries.extend(licences("package/")?);
        let name = npm_package(values, Some(self.platform));
        Ok(Package { bytes: tar_gz(&entries)?, name })
    }

    /// Beside the Dockerfile, in a folder for each kind of machine.
    fn container(&self) -> Option<Package> {
        let folder = self.platform.container?;
        let (name, bytes) = self.programs.iter().find(|(name, _)| name == "file-editor")?;
        Some(Package { name: format!("docker/{folder}/{name}"), bytes: bytes.clone() })
    }
}

/// Of one platform, or the one that depends on all of these. Named as npm names what it packs.
pub fn npm_package(values: &Values, platform: Option<&Platform>) -> String {
    let version = values.get("version");
    match platform {
        Some(platform) => {
            let owner = values.get("owner_lowercase");
            format!("npm/{owner}-file-editor-{}-{version}.tgz", platform.name)
        }
        None => format!("npm/file-editor-{version}.tgz"),
    }
}

/// The package that people name: it runs the binary of the one that fits their machine.
pub fn npm_wrapper(values: &Values) -> Result<Package, String> {
    let mut entries = Vec::new();
    for name in ["package.json", "run.js"] {
        let text = values.file(&format!("npm/{name}"))?;
        entries.push(Entry::text(format!("package/{name}"), text));
    }
    for binary in platform::BINARIES {
        let text = values.file(&format!("npm/bin/{binary}.js"))?;
        entries.push(Entry::program(format!("package/bin/{binary}.js"), text.into_bytes()));
    }
    entries.push(Entry::text("package/README.md".into(), read(&root().join("README.md"))?));
    entries.extend(licences("package/")?);
    Ok(Package { bytes: tar_gz(&entries)?, name: npm_package(values, None) })
}

/// What a person reads.
fn documents(folder: &str) -> Result<Vec<Entry>, String> {
    let mut entries = licences(&format!("{folder}/"))?;
    for name in ["README.md", "CHANGELOG.md"] {
        entries.push(Entry::text(format!("{folder}/{name}"), read(&root().join(name))?));
    }
    Ok(entries)
}

fn licences(folder: &str) -> Result<Vec<Entry>, String> {
    let entry = |name| Ok(Entry::text(format!("{folder}{name}"), read(&root().join(name))?));
    ["LICENSE-APACHE", "LICENSE-MIT"].into_iter().map(entry).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}
