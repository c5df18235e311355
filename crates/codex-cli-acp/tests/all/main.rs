//! Tests of the program as an editor starts it, between a fake editor and a fake Codex.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test sets the scene")]

mod bounds;
mod calls;
mod choices;
mod common;
mod logins;
