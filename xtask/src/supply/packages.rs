//! The packages of `Cargo.lock`, and which needs which.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::licence;
use crate::dist::platform::PLATFORMS;
use crate::{cargo, root};

/// What cargo knows of all packages.
pub struct Packages {
    /// By what cargo calls it.
    all: BTreeMap<String, Package>,
    /// What is in each program on any platform that it is released for, by name and version: with what features a
    /// package is built depends on what for.
    linked: BTreeMap<&'static str, BTreeSet<(String, String)>>,
}

pub struct Package {
    pub name: String,
    pub version: String,
    pub licence: String,
    /// One of ours: not from a registry.
    pub is_ours: bool,
    /// What it needs, and what for.
    needs: Vec<(String, Need)>,
    /// The digest of what cargo downloads.
    pub digest: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    Run,
    Build,
    Test,
}

impl Packages {
    /// For all platforms.
    pub fn load() -> Result<Self, String> {
        let mut command = cargo();
        command.args(["metadata", "--format-version", "1", "--locked"]).current_dir(root());
        let output = command.output().map_err(|e| format!("cargo metadata: {e}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let told: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
        let lock = std::fs::read_to_string(root().join("Cargo.lock")).map_err(|e| e.to_string())?;
        let linked = super::PROGRAMS.iter().map(|program| Ok((*program, linked(program)?)));
        Ok(Self::new(&told, &digests(&lock), linked.collect::<Result<_, String>>()?))
    }

    fn new(
        told: &Value,
        digests: &BTreeMap<(String, String), String>,
        linked: BTreeMap<&'static str, BTreeSet<(String, String)>>,
    ) -> Self {
        let nodes = told["resolve"]["nodes"].as_array().into_iter().flatten();
        let mut needs: BTreeMap<&str, Vec<(String, Need)>> =
            nodes.map(|node| (text(&node["id"]), needs_of(node))).collect();
        let all = told["packages"].as_array().into_iter().flatten();
        let all = all.filter_map(|package| {
            let id = text(&package["id"]);
            let (name, version) = (text(&package["name"]), text(&package["version"]));
            let mut needs = needs.remove(id)?;
            let is_ours = package["source"].is_null();
            if is_ours && name == "grammars" {
                pack_grammars(&mut needs);
            }
            let package = Package {
                name: name.into(),
                version: version.into(),
                licence: text(&package["license"]).into(),
                is_ours,
                needs,
                digest: digests.get(&(name.into(), version.into())).cloned(),
            };
            Some((id.to_owned(), package))
        });
        Self { all: all.collect(), linked }
    }

    /// How many there are that are not ours.
    pub fn number(&self) -> usize {
        self.all.values().filter(|package| !package.is_ours).count()
    }

    pub fn refused_licences(&self) -> Vec<String> {
        let refused = self.all.values().filter(|package| !licence::is_fine(&package.licence));
        refused.map(|it| format!("{} {} ({})", it.name, it.version, it.licence)).collect()
    }

    pub fn get(&self, id: &str) -> Option<&Package> {
        self.all.get(id)
    }

    /// What one of our own packages is called by cargo.
    pub fn ours(&self, name: &str) -> Option<&str> {
        let mut all = self.all.iter();
        all.find(|(_, package)| package.is_ours && package.name == name).map(|(id, _)| id.as_str())
    }

    /// Of each package that ours name themselves: what for, the first of its uses, and by which of ours.
    pub fn direct(&self) -> BTreeMap<&str, (Need, BTreeSet<&str>)> {
        let mut direct: BTreeMap<&str, (Need, BTreeSet<&str>)> = BTreeMap::new();
        let programs: BTreeSet<&str> =
            super::PROGRAMS.iter().flat_map(|program| self.inside(program)).collect();
        for (id, ours) in self.all.iter().filter(|(_, package)| package.is_ours) {
            let is_shipped = programs.contains(id.as_str());
            let foreign =
                ours.needs.iter().filter(|(id, _)| self.all.get(id).is_some_and(|it| !it.is_ours));
            for (id, need) in foreign {
                let need = if is_shipped { *need } else { Need::Test };
                let (first, by) = direct.entry(id).or_insert((need, BTreeSet::new()));
                *first = need.min(*first);
                by.insert(&ours.name);
            }
        }
        direct
    }

    /// All that is in a program of ours, by what cargo calls it; it is itself the first of them.
    pub fn inside(&self, program: &str) -> Vec<&str> {
        let linked = self.linked.get(program);
        let is_linked = |id: &&str| linked.is_some_and(|linked| self.is_in(linked, id));
        let all = self.ours(program).map_or_else(Vec::new, |id| self.reached(id));
        all.into_iter().filter(is_linked).collect()
    }

    fn is_in(&self, linked: &BTreeSet<(String, String)>, id: &str) -> bool {
        let package = self.all.get(id).map(|it| (it.name.clone(), it.version.clone()));
        package.is_some_and(|it| it.0.starts_with("tree-sitter-") || linked.contains(&it))
    }

    /// A package and all that it brings with it when it runs.
    pub fn reached<'p>(&'p self, from: &'p str) -> Vec<&'p str> {
        let mut reached = vec![from];
        let mut at = 0;
        while let Some(id) = reached.get(at).copied() {
            for needed in self.run_needs(id) {
                if !reached.contains(&needed) {
                    reached.push(needed);
                }
            }
            at += 1;
        }
        reached
    }

    /// What it needs itself when it runs.
    pub fn run_needs(&self, id: &str) -> impl Iterator<Item = &str> {
        let needs = self.all.get(id).map_or(&[][..], |package| &package.needs);
        let runs = needs.iter().filter(|(_, need)| *need == Need::Run).map(|(id, _)| id.as_str());
        runs.filter(|id| self.linked.values().any(|linked| self.is_in(linked, id)))
    }
}

/// Grammars are not linked, but what they say is packed into the programs.
fn pack_grammars(needs: &mut [(String, Need)]) {
    for (id, need) in needs {
        if id.contains("tree-sitter-") {
            *need = Need::Run;
        }
    }
}

fn needs_of(node: &Value) -> Vec<(String, Need)> {
    let needs = node["deps"].as_array().into_iter().flatten();
    let each = needs.flat_map(|needed| {
        let kinds = needed["dep_kinds"].as_array().into_iter().flatten();
        kinds.map(|kind| {
            let need = match text(&kind["kind"]) {
                "build" => Need::Build,
                "dev" => Need::Test,
                _ => Need::Run,
            };
            (text(&needed["pkg"]).to_owned(), need)
        })
    });
    each.collect()
}

/// The packages that cargo links into a program, by name and version.
fn linked(program: &str) -> Result<BTreeSet<(String, String)>, String> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--prefix", "none", "--edges", "normal,no-proc-macro"]);
    command.args(["--package", program]).current_dir(root());
    let released = PLATFORMS.iter().flat_map(|platform| platform.targets);
    command.args(released.flat_map(|target| ["--target", target]));
    let output = command.output().map_err(|e| format!("cargo tree: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    let package = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    Ok(lines.lines().filter_map(package).collect())
}

/// The digests in a `Cargo.lock`, by name and version.
fn digests(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let mut lines = block.lines();
        let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
        line.strip_suffix('"').map(String::from)
    };
    let blocks = lock.split("[[package]]").skip(1);
    blocks
        .filter_map(|block| {
            let package = (value(block, "name")?, value(block, "version")?);
            Some((package, value(block, "checksum")?))
        })
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
