//! A bill of materials: all that is in a program, in the form of `CycloneDX`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::packages::{Package, Packages};

/// The bill of one of our programs.
pub fn of(packages: &Packages, program: &str) -> Result<String, String> {
    let inside = packages.inside(program);
    let (own, others) = inside.split_first().ok_or(format!("no program is called {program}"))?;
    let component = |id: &str| packages.get(id).map(component);
    let needs = |id: &&str| {
        let on = packages.run_needs(id).filter(|id| inside.contains(id));
        let on: BTreeSet<_> = on.filter_map(|id| reference(packages, id)).collect();
        json!({"ref": reference(packages, id), "dependsOn": on})
    };
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(own)},
        "components": others.iter().map(|id| component(id)).collect::<Vec<_>>(),
        "dependencies": inside.iter().map(needs).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&bill).map(|text| text + "\n").map_err(|e| e.to_string())
}

fn component(package: &Package) -> Value {
    let kind =
        if super::PROGRAMS.contains(&package.name.as_str()) { "application" } else { "library" };
    let mut component = json!({
        "type": kind,
        "bom-ref": url(package),
        "name": package.name,
        "version": package.version,
        "purl": url(package),
        "licenses": [{"expression": package.licence.replace('/', " OR ")}],
    });
    if let Some(digest) = &package.digest {
        component["hashes"] = json!([{"alg": "SHA-256", "content": digest}]);
    }
    component
}

fn reference(packages: &Packages, id: &str) -> Option<String> {
    packages.get(id).map(url)
}

fn url(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}
