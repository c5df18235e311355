//! docs/dependencies.md: all of its tables are written, but for the last column, which says why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::packages::{Need, Packages};

const HEAD: &str =
    "| crate | version | licence | brings | used by | why |\n|---|---|---|---|---|---|\n";

/// The document as it has to be: reasons are taken from the old one.
pub fn rewritten(old: &str, packages: &Packages) -> Result<String, String> {
    let reasons = reasons(old);
    let reason = |name: &str| reasons.get(name).copied().unwrap_or_default();
    let parts = [
        ("numbers", numbers(packages)),
        ("programs", direct(packages, Need::Run, &reason)),
        ("build", direct(packages, Need::Build, &reason)),
        ("tests", direct(packages, Need::Test, &reason)),
        ("twice", twice(packages, &reason)),
    ];
    parts.iter().try_fold(old.to_owned(), |text, (part, table)| {
        crate::report::replaced(&text, part, table)
            .ok_or(format!("{} has no place for {part}", super::DOCUMENT))
    })
}

/// The crates whose reason is missing.
pub fn without_reason(document: &str) -> Vec<&str> {
    let rows = reasons(document).into_iter().filter(|(_, reason)| reason.is_empty());
    rows.map(|(name, _)| name).collect()
}

/// The last cell of each row, by its first. (Of a crate in two versions the reason is that there are two.)
fn reasons(document: &str) -> BTreeMap<&str, &str> {
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    rows.filter_map(|row| {
        let (name, _) = row.split_once('`')?;
        let (_, reason) = row.rsplit_once('|')?;
        Some((name, reason.trim()))
    })
    .collect()
}

fn numbers(packages: &Packages) -> String {
    let mut text = String::new();
    for program in super::PROGRAMS {
        let inside = packages.inside(program);
        let foreign = inside.iter().filter(|id| packages.get(id).is_some_and(|it| !it.is_ours));
        let _ = writeln!(
            text,
            "- `{program}` has {} crates in it that are not ours, on all platforms together",
            foreign.count()
        );
    }
    let direct = packages.direct();
    let named = direct.values().filter(|(need, _)| *need == Need::Run).count();
    let _ = writeln!(text, "- {named} of them we name ourselves; they bring the others");
    let _ = writeln!(
        text,
        "- `Cargo.lock` has {}, with those for building, tests and other platforms",
        packages.number()
    );
    text
}

fn direct<'r>(packages: &Packages, wanted: Need, reason: &dyn Fn(&str) -> &'r str) -> String {
    let mut table = String::from(HEAD);
    let direct = packages.direct();
    for (id, (_, by)) in direct.iter().filter(|(_, (need, _))| *need == wanted) {
        let Some(package) = packages.get(id) else { continue };
        let brings = packages.reached(id).len() - 1;
        let by = by.iter().copied().collect::<Vec<_>>().join(", ");
        row(
            &mut table,
            &[&package.version, &package.licence, &brings.to_string(), &by],
            package.name.as_str(),
            reason,
        );
    }
    table
}

/// Crates that a program has in two versions, be it on different platforms.
fn twice<'r>(packages: &Packages, reason: &dyn Fn(&str) -> &'r str) -> String {
    let inside: BTreeSet<&str> =
        super::PROGRAMS.iter().flat_map(|program| packages.inside(program)).collect();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in inside.iter().filter_map(|id| packages.get(id)) {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    let mut table = String::from("| crate | versions | why |\n|---|---|---|\n");
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let versions = versions.iter().copied().collect::<Vec<_>>().join(", ");
        row(&mut table, &[&versions], name, reason);
    }
    table
}

fn row<'r>(table: &mut String, cells: &[&str], name: &str, reason: &dyn Fn(&str) -> &'r str) {
    let cells = cells.join(" | ");
    let _ = writeln!(table, "| `{name}` | {cells} | {} |", reason(name));
}
