//! The release binaries, as users run them, and `cargo xtask bench footprint`: what they weigh, on disk and in memory.

use std::path::PathBuf;
use std::process::Command;

use crate::{Outcome, bench, cargo, not_checked, target_folder};

/// Sizes and memory have limits that always hold: `benches` knows them, and fails when one does not.
pub fn run() -> Outcome {
    if cfg!(target_os = "linux") {
        return bench(&["footprint"]);
    }
    not_checked::tell("`cargo xtask bench footprint` is for Linux")
}

/// Both binaries for the machine's own target, static, beside each other; the server's path. They are built together,
/// so that what they share is built once.
pub fn build() -> Result<PathBuf, String> {
    build_static(&["--bin", "file-editor", "--bin", "codex-cli-acp"], "file-editor")
}

pub const STATIC: &str = "-C target-feature=+crt-static";

/// Addresses to be set at the start take a bit each, where they took 24 bytes: less to read, less to keep.
pub const STATIC_PACKED: &str =
    "-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs";

const STATIC_HERE: &str =
    if cfg!(all(target_os = "linux", target_env = "gnu")) { STATIC_PACKED } else { STATIC };

/// Builds these as they are released; the path of the one of that name.
pub fn build_static(which: &[&str], name: &str) -> Result<PathBuf, String> {
    let target = host_target()?;
    crate::run(
        cargo()
            .args(["build", "--release", "--target", &target])
            .args(which)
            .env("RUSTFLAGS", STATIC_HERE),
    )?;
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    Ok(target_folder().join(target).join("release").join(name))
}

pub fn host_target() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from).ok_or_else(|| "rustc does not name its host".into())
}
