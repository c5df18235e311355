//! The tests of the stores, as one program: it is linked once, not once for each module.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[cfg_attr(not(unix), allow(dead_code, reason = "half of the tests are for Unix"))]
mod common;
#[cfg(unix)]
mod disk;
#[cfg(unix)]
mod folders;
#[cfg(unix)]
mod paths;
#[cfg(unix)]
mod processes;
#[cfg(target_os = "linux")]
mod rights;
#[cfg(target_os = "linux")]
mod sandbox;
mod store_suite;
#[cfg(unix)]
mod tree;
#[cfg(unix)]
mod walk;
