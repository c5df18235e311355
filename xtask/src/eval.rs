//! How good an answer is, where that is not a matter of right or wrong.

use crate::{Outcome, cargo, run};

/// Whether the files are found that a question is about: an example of `code` does it, since nothing here depends on our
/// own crates.
pub fn context(arguments: &[&str]) -> Outcome {
    let example = ["run", "--quiet", "--release", "--package", "code", "--example", "eval_context"];
    run(cargo().args(example).arg("--").args(arguments))
}
