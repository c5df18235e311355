//! `cargo xtask test`: what README names and CI runs.

use crate::{Outcome, cargo, footprint, walls};

fn run_all(steps: &[(&str, fn() -> Outcome)]) -> Outcome {
    for (name, step) in steps {
        println!("\n== {name}");
        step()?;
    }
    Ok(())
}

pub fn run() -> Outcome {
    run_all(&[
        ("format", || super::run(cargo().args(["fmt", "--all", "--check"]))),
        ("lints", || {
            let lints = ["clippy", "--workspace", "--all-targets", "--quiet", "--"];
            super::run(cargo().args(lints).args(["-D", "warnings"]))
        }),
        ("walls", walls::check),
        ("tests", || super::run(cargo().args(["test", "--workspace"]))),
        ("footprint", footprint::run),
    ])
}
