//! What can be built on this machine: a target needs its standard library and a C compiler, for the grammars. Zig is such
//! a compiler for most of them, and their linker.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::platform::{BINARIES, Platform};
use crate::{cargo, footprint, target_folder};

pub enum Toolchain {
    /// The target's own C compiler; none is named where cargo finds it by itself.
    Own(Option<&'static str>),
    Zig,
}

/// How `target` is built here, or why it is not and what would help.
pub fn find(target: &str) -> Result<Toolchain, String> {
    if !library_is_installed(target)? {
        return Err(format!(
            "Rust's standard library for it is not installed: `rustup target add {target}`"
        ));
    }
    let host = footprint::host_target()?;
    if target == host || (target.ends_with("apple-darwin") && host.ends_with("apple-darwin")) {
        return Ok(Toolchain::Own(None));
    }
    let own = compilers(target, &host);
    if let Some(compiler) = own.iter().find(|own| answers(Command::new(own).arg("--version"))) {
        return Ok(Toolchain::Own(Some(compiler)));
    }
    if is_for_zig(target) && zig_is_installed() {
        return Ok(Toolchain::Zig);
    }
    let mut helps: Vec<String> = own.iter().map(|own| format!("install `{own}`")).collect();
    if own.is_empty() {
        helps.push("build it on a Mac".into());
    }
    if is_for_zig(target) {
        helps.push("`pip install ziglang cargo-zigbuild`".into());
    }
    Err(format!("there is no C compiler for it: {}", helps.join(", or ")))
}

fn library_is_installed(target: &str) -> Result<bool, String> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let output = output.map_err(|e| format!("rustc: {e}"))?;
    let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(Path::new(&sysroot).join("lib/rustlib").join(target).join("lib").is_dir())
}

/// As distributions call the target's own compiler, of which any will do.
fn compilers(target: &str, host: &str) -> &'static [&'static str] {
    let of_this_machine =
        host.contains("linux") && target.split('-').next() == host.split('-').next();
    match target {
        "x86_64-unknown-linux-musl" if of_this_machine => &[MUSL_GCC, "x86_64-linux-musl-gcc"],
        "x86_64-unknown-linux-musl" => &["x86_64-linux-musl-gcc"],
        "x86_64-unknown-linux-gnu" => &["x86_64-linux-gnu-gcc"],
        "aarch64-unknown-linux-musl" if of_this_machine => &[MUSL_GCC, "aarch64-linux-musl-gcc"],
        "aarch64-unknown-linux-musl" => &["aarch64-linux-musl-gcc"],
        "aarch64-unknown-linux-gnu" => &["aarch64-linux-gnu-gcc"],
        "x86_64-pc-windows-gnu" => &["x86_64-w64-mingw32-gcc"],
        _ => &[],
    }
}

/// For the processor of this machine, whichever that is.
const MUSL_GCC: &str = "musl-gcc";

/// It has no static glibc.
fn is_for_zig(target: &str) -> bool {
    !target.ends_with("linux-gnu")
}

fn zig_is_installed() -> bool {
    let python = if cfg!(windows) { "python" } else { "python3" };
    answers(Command::new("cargo-zigbuild").args(["zigbuild", "--help"]))
        && (answers(Command::new(python).args(["-m", "ziglang", "version"]))
            || answers(Command::new("zig").arg("version")))
}

pub fn answers(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Builds all binaries, as they are released; where each of them is.
pub fn build(target: &str, toolchain: &Toolchain) -> Result<Vec<PathBuf>, String> {
    let mut build = match toolchain {
        Toolchain::Own(compiler) => {
            let mut build = cargo();
            build.arg("build");
            if let Some(compiler) = compiler {
                build.env(format!("CC_{}", target.replace('-', "_")), compiler);
                // What it compiled is linked by the usual compiler of this machine, with what Rust brings along.
                if *compiler != MUSL_GCC {
                    let variable = target.replace('-', "_").to_uppercase();
                    build.env(format!("CARGO_TARGET_{variable}_LINKER"), compiler);
                }
            }
            build
        }
        Toolchain::Zig => {
            let mut build = Command::new("cargo-zigbuild");
            build.arg("zigbuild");
            build
        }
    };
    build.args(["--release", "--target", target]).env("RUSTFLAGS", flags(target, toolchain));
    if target.ends_with("apple-darwin") {
        // The first for both processors. Left to itself, Zig takes a far younger one.
        build.env("MACOSX_DEPLOYMENT_TARGET", "11.0");
    }
    build.args(BINARIES.iter().flat_map(|binary| ["--bin", binary]));
    crate::run(&mut build)?;
    let folder = target_folder().join(target).join("release");
    let exe = Platform::of(target).map_or("", Platform::exe);
    Ok(BINARIES.iter().map(|binary| folder.join(format!("{binary}{exe}"))).collect())
}

/// GNU's linker packs the addresses that are set at the start; Zig's does not know the word.
fn flags(target: &str, toolchain: &Toolchain) -> &'static str {
    let packed = target.contains("linux") && matches!(toolchain, Toolchain::Own(_));
    footprint::static_flags(target, packed)
}
