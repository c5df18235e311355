//! What was made, run as far as this machine can: the binaries out of their archives, under an emulator where they are
//! for another machine; the bundle and npm's packages with the tools of those who take them.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::package::npm_package;
use super::platform::{self, BINARIES, PLATFORMS, Platform};
use super::template::Values;
use super::toolchain::answers;
use super::{Report, VERSION, talk};
use crate::{Outcome, run};

const MCPB: &str = "@anthropic-ai/mcpb@2.1.2";
const WINE: &str = "wine";
const MINGW: &str = "x86_64-w64-mingw32-gcc";

pub fn all(dist: &Path, values: &Values, report: &mut Report) -> Outcome {
    let folder = dist.join("trial");
    let _ = fs::remove_dir_all(&folder);
    for platform in &PLATFORMS {
        for target in platform.targets {
            let archive = dist.join(platform::archive(VERSION, target));
            if archive.is_file() {
                binaries(&archive, target, platform, &folder.join(target), report)?;
            }
        }
    }
    if !answers(npm("npx").arg("--version")) {
        report.skipped("bundles and npm's packages were not tried: install Node.js");
        return Ok(());
    }
    for platform in &PLATFORMS {
        let bundle = dist.join(platform::bundle(VERSION, platform));
        if bundle.is_file() {
            self::bundle(&bundle, platform, &folder.join(platform.name), report)?;
        }
    }
    packages(dist, values, &folder.join("npm"), report)
}

/// Unpacks the archive as people do, and talks to the server in it.
fn binaries(
    archive: &Path,
    target: &str,
    platform: &Platform,
    folder: &Path,
    report: &mut Report,
) -> Outcome {
    create(folder)?;
    unpack(archive, target, folder)?;
    let programs = folder.join(platform::stem(VERSION, target));
    let machine = match Machine::of(platform, folder) {
        Ok(machine) => machine,
        Err(reason) => {
            report.skipped(&format!("{target} was not run: {reason}"));
            return Ok(());
        }
    };
    machine.prepare(&programs)?;
    let [server, bridge] = BINARIES.map(|name| programs.join(format!("{name}{}", platform.exe())));
    says_its_version(machine.command(&bridge).arg("--version"))?;
    let work = folder.join("work");
    let mut server = machine.command(&server);
    server.arg("--transport=stdio").arg(machine.folder_argument(&work));
    talk::edit_and_read(server, &work, "flat")?;
    report.ran(&format!("{target}: initialize, tools/list, an edit and a read {}", machine.name));
    Ok(())
}

/// What runs programs of a platform here.
struct Machine {
    name: &'static str,
    program: Option<&'static str>,
    environment: Vec<(&'static str, OsString)>,
}

impl Machine {
    /// Or why there is none, and what would help. What it keeps for itself goes into the folder.
    fn of(platform: &Platform, folder: &Path) -> Result<Self, &'static str> {
        let plain = |name, program| Self { name, program, environment: Vec::new() };
        if is_this_one(platform) {
            return Ok(plain("on this machine", None));
        }
        match (platform.name, std::env::consts::OS) {
            ("linux-arm64", "linux") => {
                let mut emulators = ["qemu-aarch64", "qemu-aarch64-static"].into_iter();
                let found = emulators.find(|found| answers(Command::new(found).arg("--version")));
                found.map(|found| plain("under QEMU", Some(found))).ok_or("install `qemu-user`")
            }
            ("win32-x64", "linux") => {
                if !answers(Command::new(WINE).arg("--version")) {
                    return Err("install `wine`");
                }
                if !answers(Command::new(MINGW).arg("--version")) {
                    return Err("install `gcc-mingw-w64-x86-64`, for a library that Wine lacks");
                }
                let environment = vec![
                    ("WINEPREFIX", folder.join("wine").into_os_string()),
                    ("WINEDEBUG", "-all".into()),
                    // Neither is needed, and Wine would ask whether to load them down.
                    ("WINEDLLOVERRIDES", "mscoree,mshtml=".into()),
                ];
                Ok(Self { name: "under Wine", program: Some(WINE), environment })
            }
            _ => Err("it needs a machine of its own"),
        }
    }

    /// Puts beside the programs what the machine lacks.
    fn prepare(&self, programs: &Path) -> Outcome {
        if self.program != Some(WINE) {
            return Ok(());
        }
        let mut compile = Command::new(MINGW);
        compile.args(["-shared", "-O1", "-o"]).arg(programs.join("bcryptprimitives.dll"));
        run(compile.arg("packaging/wine/bcryptprimitives.c").arg("-ladvapi32"))
    }

    fn command(&self, binary: &Path) -> Command {
        let mut command = match self.program {
            Some(program) => {
                let mut command = Command::new(program);
                command.arg(binary);
                command
            }
            None => Command::new(binary),
        };
        command.envs(self.environment.iter().map(|(name, value)| (*name, value)));
        command
    }

    /// Wine shows the root of this machine as a drive.
    fn folder_argument(&self, folder: &Path) -> String {
        let drive = if self.program == Some(WINE) { "Z:" } else { "" };
        format!("--dir={drive}{}", folder.display())
    }
}

fn is_this_one(platform: &Platform) -> bool {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    (platform.system, platform.processor) == (system, processor)
}

/// The official tool finds nothing wrong with it, and what its manifest says can be run.
fn bundle(bundle: &Path, platform: &Platform, folder: &Path, report: &mut Report) -> Outcome {
    create(folder)?;
    let unpacked = folder.join("unpacked");
    run(npm("npx").args(["--yes", MCPB, "unpack"]).arg(bundle).arg(&unpacked))?;
    let manifest = unpacked.join("manifest.json");
    run(npm("npx").args(["--yes", MCPB, "validate"]).arg(&manifest))?;
    let name = bundle.file_name().unwrap_or_default().to_string_lossy();
    if !is_this_one(platform) {
        report.ran(&format!("{name}: validated with {MCPB}"));
        return Ok(());
    }
    let work = folder.join("work");
    let manifest = read(&manifest)?;
    let start = started_by(&manifest, &unpacked, &work)
        .ok_or_else(|| format!("{name}: its manifest does not say what to run"))?;
    talk::edit_and_read(start, &work, "text")?;
    report.ran(&format!("{name}: validated with {MCPB}, and run as its manifest says"));
    Ok(())
}

/// As a client starts it, after its user has chosen the folder.
fn started_by(manifest: &str, unpacked: &Path, work: &Path) -> Option<Command> {
    let manifest: serde_json::Value = serde_json::from_str(manifest).ok()?;
    let tools = manifest["user_config"]["tools"]["default"].as_str()?;
    let fill = |text: &serde_json::Value| {
        Some(
            text.as_str()?
                .replace("${__dirname}", &unpacked.to_string_lossy())
                .replace("${user_config.folder}", &work.to_string_lossy())
                .replace("${user_config.tools}", tools),
        )
    };
    let config = &manifest["server"]["mcp_config"];
    let mut command = Command::new(fill(&config["command"])?);
    for argument in config["args"].as_array()? {
        command.arg(fill(argument)?);
    }
    Some(command)
}

/// Installed into an empty project, as if they came from the registry, and run by name.
fn packages(dist: &Path, values: &Values, folder: &Path, report: &mut Report) -> Outcome {
    let Some(platform) = PLATFORMS.iter().find(|platform| is_this_one(platform)) else {
        report.skipped("npm's packages were not tried: there is none for this machine");
        return Ok(());
    };
    let [wrapper, own] = [None, Some(platform)].map(|of| dist.join(npm_package(values, of)));
    if !own.is_file() {
        report.skipped("npm's packages were not tried: the one for this machine was not built");
        return Ok(());
    }
    create(folder)?;
    fs::write(folder.join("package.json"), "{ \"private\": true }\n").map_err(|e| e.to_string())?;
    // The packages of other machines are not in the registry yet, and are optional.
    let install = ["install", "--no-audit", "--no-fund", "--loglevel=error"];
    run(npm("npm").args(install).arg("--prefix").arg(folder).arg(&own).arg(&wrapper))?;
    let bin = folder.join("node_modules").join(".bin");
    for binary in BINARIES {
        says_its_version(npm(&bin.join(binary).to_string_lossy()).arg("--version"))?;
    }
    let work = folder.join("work");
    let mut server = npm(&bin.join("file-editor").to_string_lossy());
    server.arg("--transport=stdio").arg(format!("--dir={}", work.display()));
    talk::edit_and_read(server, &work, "flat")?;
    report.ran("npm: both packages installed into an empty project, the server run by name");
    Ok(())
}

/// On Windows what npm installs are scripts, each beside one of the same name for Unix.
fn npm(program: &str) -> Command {
    if cfg!(windows) { Command::new(format!("{program}.cmd")) } else { Command::new(program) }
}

fn says_its_version(command: &mut Command) -> Outcome {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains(VERSION) {
        return Ok(());
    }
    Err(format!("{command:?} said {said:?}, {}", String::from_utf8_lossy(&output.stderr)))
}

fn unpack(archive: &Path, target: &str, folder: &Path) -> Outcome {
    if platform::is_zipped(target) {
        let python = if cfg!(windows) { "python" } else { "python3" };
        return run(Command::new(python).args(["-m", "zipfile", "-e"]).arg(archive).arg(folder));
    }
    run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder))
}

fn create(folder: &Path) -> Outcome {
    fs::create_dir_all(folder.join("work")).map_err(|e| format!("{}: {e}", folder.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}
