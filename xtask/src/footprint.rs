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

const STATIC: &str = "-C target-feature=+crt-static";

/// Addresses to be set at the start take a bit each, where they took 24 bytes: less to read, less to keep.
const STATIC_PACKED: &str = "-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs";

/// For the target that Rust links with its own LLD, which links functions with the same code once (GNU's linker cannot).
/// With frame pointers the tables for unwinding are a quarter smaller, and the code is no larger.
const STATIC_FOLDED: &str = "-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs \
     -C link-arg=-Wl,--icf=all -C force-frame-pointers=yes";
const LINKED_BY_LLD: &str = "x86_64-unknown-linux-gnu";

/// How release binaries for `target` are compiled and linked; `packed` if its linker knows of relative relocations.
pub fn static_flags(target: &str, packed: bool) -> &'static str {
    match (packed, target) {
        (false, _) => STATIC,
        (true, LINKED_BY_LLD) => STATIC_FOLDED,
        (true, _) => STATIC_PACKED,
    }
}

/// Builds these as they are released; the path of the one of that name.
pub fn build_static(which: &[&str], name: &str) -> Result<PathBuf, String> {
    let target = host_target()?;
    let is_gnu = cfg!(all(target_os = "linux", target_env = "gnu"));
    crate::run(
        cargo()
            .args(["build", "--release", "--target", &target])
            .args(which)
            .env("RUSTFLAGS", static_flags(&target, is_gnu)),
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
