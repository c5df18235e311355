//! `cargo xtask test`: what README names and CI runs.

use crate::{Outcome, cargo, clients, faults, footprint, openapi, run, supply, walls};

pub fn all() -> Outcome {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    let lints = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    run(cargo().args(lints))?;
    walls::check()?;
    supply::check(false)?;
    run(cargo().args(["test", "--workspace"]))?;
    openapi::check()?;
    clients(&[])?;
    footprint::run()?;
    faults(&["--short"])
}
