//! `file-editor doctor`: what is in the way is seen, and what would help is said.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use crate::harness::http::some_port;
use crate::harness::{Folder, binary};
use serde_json::{Value, json};

/// A home without clients, and a folder in it.
struct Patient {
    home: Folder,
    port: u16,
}

impl Patient {
    fn new() -> Patient {
        let home = Folder::new();
        fs::create_dir(home.file("work")).unwrap();
        Patient { home, port: some_port() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = binary();
        command.arg("doctor").arg(format!("--port={}", self.port)).args(arguments);
        command.current_dir(self.home.file("work")).env_remove("CLAUDE_CONFIG_DIR");
        for name in ["HOME", "USERPROFILE", "APPDATA", "XDG_CONFIG_HOME", "CODEX_HOME"] {
            command.env(name, self.home.path());
        }
        command
    }

    fn put(&self, name: &str, text: &str) {
        self.home.put(name, text);
    }
}

/// All checks, by what was looked at, and whether the status says that there is a fault.
fn examine(command: &mut Command) -> Vec<Value> {
    let output = crate::harness::output(command.arg("--json"));
    let told = String::from_utf8(output.stdout).unwrap();
    let checks: Vec<Value> =
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
    let has_fault = checks.iter().any(|check| check["state"] == "fault");
    assert_eq!(output.status.code(), Some(i32::from(has_fault)), "{told}");
    for check in &checks {
        assert_eq!(check["help"].is_null(), check["state"] == "ok", "{check}");
    }
    checks
}

/// That a check has this state, has seen this and says that this helps.
fn check(checks: &[Value], what: &str, state: &str, seen: &str, help: &str) {
    let found = checks.iter().find(|check| check["check"] == what);
    let found = found.unwrap_or_else(|| panic!("no {what}: {checks:?}"));
    assert_eq!(found["state"], state, "{found}");
    assert!(found["seen"].as_str().unwrap().contains(seen), "{seen}: {found}");
    assert!(found["help"].as_str().unwrap_or_default().contains(help), "{help}: {found}");
}

#[test]
fn a_plain_folder_is_well_and_left_as_it_was() {
    let patient = Patient::new();
    patient.put("work/file", "text");
    let checks = examine(&mut patient.command(&[]));
    check(&checks, "folder", "ok", "can be read and written", "");
    check(&checks, "replacing", "ok", "atomic", "");
    check(&checks, "locks", "ok", "supported", "");
    check(&checks, "leftovers", "ok", "no temporary files", "");
    check(&checks, "port", "ok", "is free", "");
    check(&checks, "token", "ok", "is not set", "");
    check(&checks, "model", "ok", "not configured", "");
    if cfg!(target_os = "linux") {
        check(&checks, "other programs", "ok", "read leases and exchanges: supported", "");
    }
    for what in [
        "space",
        "file system",
        "other programs",
        "syncing",
        "temporary files",
        "hard links",
        "sandbox",
    ] {
        assert!(checks.iter().any(|check| check["check"] == what), "{what}: {checks:?}");
    }
    for client in ["claude-code", "claude-desktop", "cursor", "vscode", "codex", "zed", "gemini"] {
        if client != "codex" {
            check(&checks, client, "ok", "not found here", "");
        }
    }
    let names: Vec<_> = fs::read_dir(patient.home.file("work")).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn one_line_a_check() {
    let patient = Patient::new();
    let checks = examine(&mut patient.command(&[]));
    let output = patient.command(&[]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told.lines().count(), checks.len(), "{told}");
    for (line, check) in told.lines().zip(&checks) {
        let begin = format!(
            "{:<8} {}: ",
            check["state"].as_str().unwrap(),
            check["check"].as_str().unwrap()
        );
        assert!(line.starts_with(&begin), "{line}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_that_is_found_acts_on_a_terminal_or_hides() {
    use crate::harness::{HOSTILE, check_harmless};
    let patient = Patient::new();
    let dir = format!("--dir=/{HOSTILE}");
    let entry = json!({ "command": format!("/{HOSTILE}/file-editor"), "args": [dir] });
    patient.put(".cursor/mcp.json", &json!({ "mcpServers": { "file-editor": entry } }).to_string());
    let Some(seen) = crate::harness::at_a_terminal(&patient.command(&[])) else { return };
    check_harmless(&seen);
    assert!(seen.contains(crate::harness::SHOWN), "{seen:?}");
    let seen = crate::harness::at_a_terminal(&patient.command(&["--json"])).unwrap();
    check_harmless(&seen);
    let checks: Vec<Value> = serde_json::from_str(&seen).unwrap();
    check(&checks, "cursor", "fault", HOSTILE, "setup cursor");
}

/// What a project's own file says beyond what `setup` writes is told, and links out of it.
#[test]
fn what_came_with_a_project() {
    let patient = Patient::new();
    let of_project = |checks: &[Value]| -> Value {
        checks.iter().rfind(|check| check["check"] == "vscode").unwrap().clone()
    };
    let work = format!("--dir={}", patient.home.file("work").display());
    let put = |more: Value| {
        let mut entry = json!({ "command": env!("CARGO_BIN_EXE_file-editor"), "args": [work] });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        patient.put(
            "work/.vscode/mcp.json",
            &json!({ "servers": { "file-editor": entry } }).to_string(),
        );
    };
    put(json!({ "type": "stdio" }));
    assert_eq!(of_project(&examine(&mut patient.command(&[])))["state"], "ok");
    put(json!({ "args": [work, "--no-sandbox"], "env": { "LD_PRELOAD": "/tmp/evil.so" } }));
    let found = of_project(&examine(&mut patient.command(&[])));
    assert_eq!(found["state"], "warning", "{found}");
    let seen = found["seen"].as_str().unwrap();
    assert!(
        seen.contains("--no-sandbox") && seen.contains("env.LD_PRELOAD = \"/tmp/evil.so\""),
        "{seen}"
    );
    assert!(found["help"].as_str().unwrap().contains("setup vscode --project"), "{found}");
    // A program of the project's own may have our name.
    patient.put("work/bin/file-editor", "");
    let program = patient.home.file("work/bin/file-editor");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/bin/sh", patient.home.file("work/bin/sh")).unwrap();
    #[cfg(unix)]
    fs::rename(patient.home.file("work/bin/sh"), &program).unwrap();
    put(json!({ "command": program }));
    let found = of_project(&examine(&mut patient.command(&[])));
    let told = format!(" with {} (", program.display());
    assert!(cfg!(windows) || found["seen"].as_str().unwrap().contains(&told), "{found}");
    #[cfg(unix)]
    for target in ["../../settings.json", "/no/such/file"] {
        fs::remove_file(patient.home.file("work/.vscode/mcp.json")).unwrap();
        std::os::unix::fs::symlink(target, patient.home.file("work/.vscode/mcp.json")).unwrap();
        let found = of_project(&examine(&mut patient.command(&[])));
        assert_eq!(found["state"], "warning", "{found}");
        assert!(
            found["seen"]
                .as_str()
                .unwrap()
                .contains(&format!("is a link to {target}, which is outside"))
        );
    }
}

/// A file that would take a stack, or a machine, to be read.
#[test]
fn files_that_are_too_deep_or_too_large() {
    let patient = Patient::new();
    for (name, client, text) in crate::harness::bottomless() {
        let fits = text.len() <= 1 << 20;
        patient.put(name, &text);
        patient.put(&format!("work/{}", name.replace("config.toml", ".codex/config.toml")), &text);
        let checks = examine(&mut patient.command(&[]));
        let found: Vec<_> = checks.iter().filter(|check| check["check"] == client).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        for (found, is_deep) in found.into_iter().zip([true, fits]) {
            assert_eq!(found["state"], "fault", "{found}");
            let seen = found["seen"].as_str().unwrap();
            let why = if is_deep { "nested too deeply" } else { "exceed the maximum of 1048576" };
            assert!(seen.contains(why) && seen.contains("left unchanged"), "{seen}");
        }
    }
}

#[test]
fn a_folder_that_is_not_there() {
    let patient = Patient::new();
    let checks = examine(&mut patient.command(&["--dir=nowhere"]));
    check(&checks, "folder", "fault", "Directory does not exist: nowhere", "--dir=PATH");
    let checks = examine(&mut patient.command(&["--dir="]));
    check(&checks, "folder", "fault", "--dir is empty", "or omit --dir");
    patient.put("work/file", "");
    let checks = examine(&mut patient.command(&["--dir=file"]));
    check(&checks, "folder", "fault", "Not a directory: file", "--dir=PATH");
}

#[test]
#[cfg(unix)]
fn a_folder_that_cannot_be_written_to() {
    let scene = crate::harness::Unwritable::new();
    let checks = examine(&mut scene.command(&["doctor"]));
    check(&checks, "folder", "fault", "but not written", "permission to write");
    let checks = examine(&mut scene.command(&["doctor", "--read-only"]));
    check(&checks, "folder", "ok", "--read-only needs no more", "");
    scene.put("closed/a.txt", "", 0o644);
    scene.set_mode("closed", 0o000);
    let checks = examine(&mut scene.command(&["doctor", "--dir=../closed"]));
    scene.set_mode("closed", 0o755);
    check(&checks, "folder", "fault", "closed", "permission to read it");
}

/// As it is on Linux: files that nobody can make, whoever they are.
#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_is_no_place_for_files() {
    let patient = Patient::new();
    let checks = examine(&mut patient.command(&["--dir=/proc"]));
    check(&checks, "file system", "fault", "proc is a virtual file system", "Name another folder");
}

#[test]
#[cfg(target_os = "linux")]
fn what_is_in_memory_is_on_no_disk() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return crate::harness::not_checked("a folder in memory", "/dev/shm");
    };
    let patient = Patient::new();
    let dir = format!("--dir={}", folder.path().display());
    let checks = examine(&mut patient.command(&[&dir]));
    if checks.iter().any(|check| check["check"] == "file system" && check["seen"] != "tmpfs, local")
    {
        return crate::harness::not_checked("a folder in memory", "/dev/shm in memory");
    }
    check(&checks, "syncing", "warning", "do not survive a restart", "on a disk");
}

#[test]
fn what_killed_servers_left_is_taken_away() {
    let patient = Patient::new();
    patient.put("work/.fe-1-0123456789abcdef.tmp", "half");
    let checks = examine(&mut patient.command(&[]));
    check(&checks, "leftovers", "ok", "removed 1 temporary file of killed servers", "");
    assert!(!patient.home.file("work/.fe-1-0123456789abcdef.tmp").exists());
}

#[test]
fn a_port_that_is_taken_by_us_or_by_others() {
    let mut patient = Patient::new();
    let server = patient.home.http();
    patient.port = server.port;
    let checks = examine(&mut patient.command(&[]));
    check(&checks, "port", "ok", "is in use by a server that answers like this one", "");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    patient.port = other.local_addr().unwrap().port();
    let checks = examine(&mut patient.command(&[]));
    check(&checks, "port", "warning", "is in use by another program", "--port");
    patient.port = 80;
    let checks = examine(&mut patient.command(&[]));
    check(&checks, "port", "fault", "80 is not allowed", "1024 to 65535");
}

#[test]
fn tokens_and_models() {
    let patient = Patient::new();
    let with = |name: &str, value: &str| examine(patient.command(&[]).env(name, value));
    check(
        &with("FILE_EDITOR_TOKEN", "short"),
        "token",
        "warning",
        "can be guessed",
        "openssl rand",
    );
    let long = "0123456789abcdef";
    let checks = with("FILE_EDITOR_TOKEN", long);
    check(&checks, "token", "ok", "is set", "");
    assert!(!json!(checks).to_string().contains(long), "a token is never shown");
    check(
        &with("FILE_EDITOR_LLM_MODEL", "m"),
        "model",
        "fault",
        "FILE_EDITOR_LLM_BASE_URL",
        "unset",
    );
    let checks = examine(
        patient
            .command(&[])
            .env("FILE_EDITOR_LLM_MODEL", "small")
            .env("FILE_EDITOR_LLM_BASE_URL", "http://127.0.0.1:1/v1"),
    );
    check(&checks, "model", "ok", "small", "");
    check(
        &with("FILE_EDITOR_TOKEN", "a line and a line break\n"),
        "token",
        "fault",
        "which no HTTP header can carry",
        "openssl rand",
    );
    check(&with("FILE_EDITOR_TOKEN", "correct horse battery staple"), "token", "ok", "is set", "");
    let checks = with("FILE_EDITOR_TOKEN", "f\u{fc}nfzehn und mehr");
    check(&checks, "token", "warning", "many clients cannot send", "openssl rand");
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let bytes = std::ffi::OsStr::from_bytes(b"\xff");
        let checks = examine(patient.command(&[]).env("FILE_EDITOR_TOKEN", bytes));
        check(&checks, "token", "fault", "is not UTF-8", "openssl rand");
    }
}

#[test]
fn what_the_clients_are_told() {
    let patient = Patient::new();
    let seen = |name: &str, text: &str, what: &str, state: &str, seen: &str, help: &str| {
        patient.put(name, text);
        check(&examine(&mut patient.command(&[])), what, state, seen, help);
    };
    let cursor = |state: &str, told: &str, help: &str, entry: Value| {
        let text = json!({ "mcpServers": { "file-editor": entry } }).to_string();
        seen(".cursor/mcp.json", &text, "cursor", state, told, help);
    };
    let program = env!("CARGO_BIN_EXE_file-editor");
    let work = format!("--dir={}", patient.home.file("work").display());
    cursor("ok", "serves ", "", json!({ "command": program, "args": [work] }));
    cursor(
        "fault",
        "does not exist",
        "setup cursor",
        json!({ "command": "/no/such/file-editor", "args": [work] }),
    );
    cursor(
        "fault",
        "is not a folder",
        "--dir=PATH",
        json!({ "command": program, "args": ["--dir=/no/such"] }),
    );
    cursor(
        "fault",
        "names no folder",
        "`file-editor setup cursor --dir=PATH`",
        json!({ "command": program, "args": [] }),
    );
    // What starts something else that starts us.
    let other = json!({ "command": "cargo", "args": ["run", "file-editor", "/work"] });
    cursor("ok", "starts cargo; what that serves is not checked", "", other);
    let other = json!({ "command": "no-such-docker", "args": ["run", "file-editor"] });
    cursor("warning", "starts no-such-docker, which is not on the PATH", "setup cursor", other);
    cursor(
        "ok",
        "serves ${workspaceFolder} (",
        "",
        json!({ "command": program, "args": ["--dir", "${workspaceFolder}"] }),
    );
    cursor(
        "warning",
        "has a form that `setup` does not write",
        "remove it by hand, then run `file-editor setup cursor`",
        json!({ "url": "http://127.0.0.1:8080/mcp" }),
    );
    for switch in ["disabled", "enabled"] {
        let off = json!({ "command": program, "args": [work], switch: switch == "disabled" });
        cursor("warning", "the entry is disabled", "remove `disabled`", off);
        let on = json!({ "command": program, "args": [work], switch: switch == "enabled" });
        cursor("ok", "serves ", "", on);
    }
    seen(".cursor/mcp.json", "{}", "cursor", "ok", "not configured", "");
    seen(
        ".cursor/mcp.json",
        "{\n\"a\" 1}",
        "cursor",
        "fault",
        "line 2: expected `:`",
        "Fix the file",
    );
    fs::remove_file(patient.home.file(".cursor/mcp.json")).unwrap();
    check(&examine(&mut patient.command(&[])), "cursor", "ok", "setup cursor", "");
    let toml = format!("[mcp_servers.file-editor]\ncommand = '/no/such'\nargs = ['{work}']\n");
    seen("config.toml", &toml, "codex", "fault", "which does not exist", "setup codex");
    let toml = toml + "enabled = false\n";
    seen("config.toml", &toml, "codex", "warning", "the entry is disabled", "remove `disabled`");
    // That of the folder counts too.
    seen("work/.vscode/mcp.json", "{\"servers\": []}", "vscode", "ok", "not found here", "");
    let checks = examine(&mut patient.command(&[]));
    let of_folder = checks.iter().filter(|check| check["check"] == "vscode").nth(1).unwrap();
    assert_eq!(of_folder["state"], "fault", "{of_folder}");
    let help = of_folder["help"].as_str().unwrap();
    assert!(help.contains("`file-editor setup vscode --project`"), "{help}");
    let dir = format!("--dir={}", patient.home.file("work").display());
    let checks = examine(&mut patient.command(&[&dir]));
    let of_folder = checks.iter().filter(|check| check["check"] == "vscode").nth(1).unwrap();
    let help = of_folder["help"].as_str().unwrap();
    assert!(help.contains(&format!("`file-editor setup vscode --project {dir}`")), "{help}");
    #[cfg(unix)]
    {
        patient.put("text", "");
        let text = patient.home.file("text");
        cursor(
            "fault",
            "is not executable",
            "Make it executable",
            json!({ "command": text, "args": [work] }),
        );
    }
}

#[test]
#[cfg(unix)]
fn a_configuration_that_may_not_be_read() {
    let scene = crate::harness::Unwritable::new();
    scene.put(".cursor/mcp.json", "{}", 0o000);
    let mut command = scene.command(&["doctor"]);
    let checks = examine(command.env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME"));
    check(&checks, "cursor", "fault", "cannot be read", "permission to read it");
}

#[test]
fn a_user_without_a_home() {
    let patient = Patient::new();
    let mut command = patient.command(&[]);
    for name in ["HOME", "USERPROFILE", "APPDATA", "XDG_CONFIG_HOME", "CODEX_HOME"] {
        command.env_remove(name);
    }
    let checks = examine(&mut command);
    let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    check(
        &checks,
        "clients",
        "warning",
        &format!("{variable} is not set to a folder"),
        &format!("Set {variable}"),
    );
}
