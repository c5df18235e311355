//! All tests of the program `file-editor`. They are one test program, because linking takes longer than running: it is
//! linked once. `cargo test -p file-editor` runs them on threads of one process, so no test may change what belongs to
//! the process: environment variables, current folder, umask, limits.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test sets the scene")]
#![allow(clippy::needless_pass_by_value, reason = "a call is written in place, with `json!`")]

mod call;
mod cases;
mod code_context;
mod code_tools;
mod command_line;
#[cfg(unix)]
mod confinement;
mod confirm;
mod contract;
mod doctor;
mod documents;
mod generation;
#[cfg_attr(not(unix), allow(dead_code, reason = "half of the tests are for Unix"))]
mod harness;
mod http;
mod http_load;
mod large;
mod manual;
mod openapi;
mod pictures;
#[cfg(unix)]
mod preservation;
#[cfg(unix)]
mod pressure;
mod progress;
mod protocol;
mod races;
#[cfg(unix)]
mod resources;
#[cfg(target_os = "linux")]
mod sandbox;
mod setup;
mod text_tools;
mod transcript;
mod what_the_model_sees;
mod wire;
mod workflow;
