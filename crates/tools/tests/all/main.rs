//! The tools by themselves, as one program: it is linked once, not once a theme.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test sets the scene")]

mod budget;
mod cases;
mod interference;
mod limits;
mod on_disk;
// Paths are written as they are there.
#[cfg(unix)]
mod refusals;
// So are URIs.
#[cfg(unix)]
mod replies;
mod schemas;
