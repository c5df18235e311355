//! `cargo xtask supply`: what we are made of, by `Cargo.lock`: licences, crates in two versions, why each is there
//! (docs/dependencies.md), and a bill of materials of each program.

mod bill;
mod document;
mod licence;
mod packages;

use std::path::PathBuf;

use crate::{Outcome, root, target_folder};
use packages::Packages;

const DOCUMENT: &str = "docs/dependencies.md";
pub const PROGRAMS: [&str; 2] = ["file-editor", "codex-cli-acp"];

/// Whether all is as the document says and as it may be; or the document rewritten, all but the reasons.
pub fn check(is_rewritten: bool) -> Outcome {
    let packages = Packages::load()?;
    let refused = packages.refused_licences();
    if !refused.is_empty() {
        return Err(format!("licences that are not ours to take: {}", refused.join(", ")));
    }
    let path = root().join(DOCUMENT);
    let old = std::fs::read_to_string(&path).map_err(|e| format!("{DOCUMENT}: {e}"))?;
    let new = document::rewritten(&old, &packages)?;
    if is_rewritten {
        std::fs::write(&path, &new).map_err(|e| format!("{DOCUMENT}: {e}"))?;
    } else if new != old {
        return Err(format!("{DOCUMENT} is not true any more: `cargo xtask supply --write`"));
    }
    let missing = document::without_reason(&new);
    if !missing.is_empty() {
        return Err(format!("{DOCUMENT} does not say why we need {}", missing.join(", ")));
    }
    for bill in bills(&packages)? {
        println!("{}", bill.display());
    }
    println!("{} crates, each with a licence that is fine and a reason", packages.number());
    Ok(())
}

/// A bill of materials for each program, below where cargo builds: all that is in it on any platform that it is released
/// for.
fn bills(packages: &Packages) -> Result<Vec<PathBuf>, String> {
    let folder = target_folder().join("dist");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let write = |program: &&str| {
        let path = folder.join(format!("{program}.cdx.json"));
        let bill = bill::of(packages, program)?;
        std::fs::write(&path, bill).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(path)
    };
    PROGRAMS.iter().map(write).collect()
}

/// The same for whoever packs releases.
pub fn write_bills() -> Result<Vec<PathBuf>, String> {
    bills(&Packages::load()?)
}
