//! Tests of the transports in process, as one program: it is linked once.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test sets the scene")]
#![allow(clippy::needless_pass_by_value, reason = "a call is written in place, with `json!`")]

mod loopback;
mod panics;
