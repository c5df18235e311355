//! Says what a test cannot check on this machine. Used by the unit tests of the crate as well.

use std::{fs::File, io::Write as _};

/// Prints `not checked: <what> (needs <needs>)` to stderr, past the test runner's capture, and adds the line to the
/// list that `cargo xtask test` prints at its end.
pub fn not_checked(what: &str, needs: &str) {
    let line = format!("not checked: {what} (needs {needs})\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os("FILE_EDITOR_NOT_CHECKED") {
        let mut list = File::options().append(true).create(true).open(list).unwrap();
        list.write_all(line.as_bytes()).unwrap();
    }
}
