//! Cases that are kept.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// Tries all cases of a target, and says which one it was that broke.
pub fn replay(target: &str, trial: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target);
    let cases = std::fs::read_dir(&folder).expect("there are cases of every target");
    let mut tried = 0;
    for case in cases {
        let path = case.expect("a folder can be listed").path();
        let bytes = std::fs::read(&path).expect("a case can be read");
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| trial(&bytes))) {
            eprintln!("it was {}", path.display());
            resume_unwind(panic);
        }
        tried += 1;
    }
    assert!(tried > 0, "{} has no cases", folder.display());
}
