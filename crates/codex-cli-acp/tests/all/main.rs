//! The program as an editor starts it, between a scripted editor and a scripted Codex.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test sets the scene")]

mod bounds;
mod calls;
mod choices;
mod common;
mod logins;
