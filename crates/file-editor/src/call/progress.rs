//! A line on the terminal while a call takes long, gone when it is over.

use std::cell::Cell;
use std::io::Write as _;
use std::time::Duration;

use super::show::obeys;

/// To the first column, and nothing after it.
const WIPE: &str = "\r\x1b[K";

#[derive(Default)]
pub struct Line {
    is_shown: Cell<bool>,
}

impl Line {
    pub fn say(&self, doing: &str, since: Duration) {
        let mut stderr = std::io::stderr().lock();
        if obeys(&stderr) {
            self.is_shown.set(true);
            let _ = write!(stderr, "{WIPE}{doing}, {} s", since.as_secs());
        }
    }

    pub fn wipe(&self) {
        if self.is_shown.take() {
            let _ = write!(std::io::stderr(), "{WIPE}");
        }
    }
}
