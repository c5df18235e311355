//! `cargo xtask test`: what README names and CI runs.

use crate::{Outcome, cargo, clients, faults, footprint, not_checked, openapi, run, supply, walls};

/// Runs everything. Ends with the list of what this machine could not check.
pub fn all() -> Outcome {
    not_checked::with_list(parts)
}

fn parts() -> Outcome {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    let lints = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    run(cargo().args(lints))?;
    walls::check()?;
    supply::check(false)?;
    let list = not_checked::list();
    run(cargo().args(["test", "--workspace"]).env(not_checked::VARIABLE, list))?;
    openapi::check()?;
    clients(&[])?;
    footprint::run()?;
    faults(&["--short"])
}
