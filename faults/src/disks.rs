//! File systems that fail at any of their operations, have no locks, lack what others have, are full or read-only; and
//! a server that is short of file sizes and descriptors.
//!
//! The answer must be what is on the disk: done means the new text, refused means the old one, and nothing else is left.

mod acts;
mod failing;
mod fixture;
mod full;
mod judge;
mod lacking;
mod limits;

use crate::report::{Row, Scale};
pub use full::Mount;

pub fn run(scale: Scale) -> Vec<Row> {
    // A thread with mounts of its own: whatever becomes of it, nothing stays mounted.
    let rows = std::thread::spawn(move || match own_mounts() {
        Ok(()) => {
            let parts = [failing::rows, lacking::rows, full::rows, limits::rows];
            parts.into_iter().flat_map(|rows| rows(scale)).collect()
        }
        Err(error) => {
            vec![not_tried("file systems that fail", &format!("no mounts of our own: {error}"))]
        }
    });
    rows.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What this machine does not allow.
pub fn not_tried(what: &str, why: &dyn std::fmt::Display) -> Row {
    let mut row = Row::new(what).found(format!("not tried: {why}"));
    row.check(std::env::var_os("CI").is_none_or(|ci| ci != "true"), || format!("not tried: {why}"));
    row
}

/// Mounts made by this thread, and by what it starts, are seen by nobody else.
pub fn own_mounts() -> rustix::io::Result<()> {
    use rustix::mount::{MountPropagationFlags, mount_change};
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    #[expect(unsafe_code, reason = "it can take descriptors from under other threads")]
    // SAFETY: only mounts and the working directory become this thread's own, no descriptors.
    unsafe {
        unshare_unsafe(UnshareFlags::NEWNS)?;
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
}
