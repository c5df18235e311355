//! The Landlock sandbox as a user meets it: what the log says of it, that it restricts, and that every tool still works.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::harness::{Folder, HANG, Server, binary, log_lines, not_checked};
use landlock::{AccessFs, Ruleset, RulesetAttr, RulesetStatus};
use serde_json::{Value, json};

/// What the first line of a log says of the wall.
fn told(log: &str) -> String {
    let ready = &log_lines(log)[0];
    assert_eq!(ready["event"], "ready");
    ready["sandbox"].as_str().unwrap().to_owned()
}

/// Whether this machine has the whole wall. What it has is asked of the kernel, not of the server.
fn has_wall() -> bool {
    let kept = std::thread::spawn(|| {
        let scopes = landlock::Scope::AbstractUnixSocket | landlock::Scope::Signal;
        Ruleset::default().scope(scopes).unwrap().create().unwrap().restrict_self().unwrap()
    });
    let has_wall = kept.join().unwrap().ruleset == RulesetStatus::FullyEnforced;
    if !has_wall {
        not_checked("the sandbox", "a kernel with all of Landlock");
    }
    has_wall
}

/// Of every thread of a process: what the kernel says of its right to gain rights.
fn no_new_privileges(pid: u32) -> Vec<String> {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).ok())
        .filter_map(|status| {
            status
                .lines()
                .find_map(|line| line.strip_prefix("NoNewPrivs:"))
                .map(str::trim)
                .map(String::from)
        })
        .collect()
}

#[test]
fn it_is_told_and_stands_before_every_thread() {
    if !has_wall() {
        return;
    }
    for (flag, expected, kept) in [("--log=info", "landlock", "1"), ("--no-sandbox", "off", "0")] {
        let folder = Folder::new();
        folder.write("a.txt", "one\n");
        let check = |pid: u32, at_least: usize| {
            let threads = no_new_privileges(pid);
            assert!(threads.len() >= at_least, "{threads:?}");
            assert!(threads.iter().all(|found| found == kept), "{flag}: {threads:?}");
        };
        // The first thread, those that read and log, and one that waits for a lock.
        let mut server = folder.serve_with(&[flag]);
        let held = folder.lock("a.txt");
        server.send_tool("edit_file", json!({ "name": "a.txt", "append": "two" }));
        wait_until_open(server.pid(), &folder.file("a.txt"));
        check(server.pid(), 4);
        drop(held);
        assert_eq!(server.receive()["result"]["isError"], false);
        let (status, _, log) = server.finish();
        assert!(status.success());
        assert_eq!(told(&log), expected);
        assert!(!log.contains("could not be entered"), "{log}");

        let server = folder.http_with(&[flag]);
        assert_eq!(server.rest("list_files", json!({}))["total_count"], 1);
        check(server.pid(), 2);
        assert_eq!(told(&server.stop()), expected);
    }
    let folder = Folder::new();
    let (_, _, log) = folder.serve_with(&["--read-only"]).finish();
    assert_eq!(told(&log), "landlock");
}

/// Comes back when a process has a file open.
fn wait_until_open(pid: u32, path: &Path) {
    let path = path.canonicalize().unwrap();
    let is_open = || {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        descriptors.flatten().any(|open| std::fs::read_link(open.path()).is_ok_and(|to| to == path))
    };
    let until = Instant::now() + HANG;
    while !is_open() {
        assert!(Instant::now() < until, "it is never opened");
    }
}

/// An edit waits for a lock while somebody moves the folder it is in, and which is open by then, out of the root.
fn edit_of_what_moves_out(flags: &[&str]) -> (Value, String) {
    let place = Folder::new();
    std::fs::create_dir_all(place.file("root/folder")).unwrap();
    place.write("root/folder/a.txt", "one\n");
    let flags = [&["--tools=text", "--timeout=100"], flags].concat();
    let mut server = Server::start(&place.file("root"), &flags, &[]);
    let held = place.lock("root/folder/a.txt");
    let path = place.file("root/folder/a.txt");
    let edit = json!({ "path": path, "edits": [{ "old_string": "one", "new_string": "two" }] });
    server.send_tool("multi_edit_text_file", edit);
    wait_until_open(server.pid(), &path);
    std::fs::rename(place.file("root/folder"), place.file("outside")).unwrap();
    drop(held);
    let answer = server.receive();
    (answer, place.read("outside/a.txt"))
}

#[test]
fn what_is_moved_out_of_the_folder_is_not_followed() {
    // Before it is published, the first wall looks once more; the second one lets nothing be written there at all.
    for flags in [&["--no-sandbox"][..], &[]] {
        let (answer, text) = edit_of_what_moves_out(flags);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert_eq!(text, "one\n");
    }
}

#[test]
fn folders_are_made_and_taken_back_behind_it() {
    for durability in ["none", "data", "full"] {
        let folder = Folder::new();
        let mut server = folder.serve_with(&[
            "--tools=all",
            "--max-size=1",
            &format!("--durability={durability}"),
        ]);
        let mut write = |below: &str, text: String| {
            let path = folder.file(below);
            server.tool(
                "write_text_file",
                json!({ "path": path, "content": text, "create_dirs": true }),
            )
        };
        assert_eq!(write("x/y/z/a.txt", "one\n".into())["result"]["isError"], false);
        assert_eq!(write("x/y/z/a.txt", "two\n".into())["result"]["isError"], false);
        assert_eq!(write("v/w/a.txt", "x".repeat((1 << 20) + 1))["result"]["isError"], true);
        assert_eq!(folder.read("x/y/z/a.txt"), "two\n");
        assert_eq!(folder.names(), ["x"]);
        server.text("edit_file", json!({ "name": "b", "append": "b", "create_if_missing": true }));
        assert_eq!(folder.names(), ["b", "x"]);
    }
}

#[test]
fn a_folder_may_be_a_link_and_may_be_renamed() {
    let place = Folder::new();
    std::fs::create_dir(place.file("real")).unwrap();
    symlink("real", place.file("link")).unwrap();
    let mut server = Server::start(&place.file("link"), &[], &[]);
    let mut edit = |append: &str| {
        server
            .text("edit_file", json!({ "name": "a", "append": append, "create_if_missing": true }))
    };
    edit("one");
    std::fs::rename(place.file("real"), place.file("renamed")).unwrap();
    edit("two");
    std::fs::remove_file(place.file("link")).unwrap();
    edit("three");
    assert_eq!(place.read("renamed/a"), "one\ntwo\nthree\n");
    assert_eq!(place.names(), ["renamed"]);
}

/// Other file systems below the root, and folders from elsewhere, there at the start or put there later.
#[test]
fn what_is_mounted_below_the_root_is_inside() {
    let place = Folder::new();
    for name in ["root", "root/disk", "root/later", "root/bound", "root/bound-later", "elsewhere"] {
        std::fs::create_dir(place.file(name)).unwrap();
    }
    let is_root = rustix::process::geteuid().is_root();
    let apart = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(if is_root { &[][..] } else { &["--map-root-user"] });
        command.args(["--mount", "sh", "-ec", script]).current_dir(place.path());
        command
    };
    let mount = "mount -t tmpfs none root/disk; mount --bind elsewhere root/bound";
    if !apart(mount).output().is_ok_and(|output| output.status.success()) {
        return not_checked("mounts", &format!("`unshare --mount` and `{mount}`"));
    }
    let (program, dir) = (binary().get_program().to_owned(), place.file("root"));
    let serve = format!(
        "{mount}; exec {} --dir={} --transport=stdio --tools=text",
        program.display(),
        dir.display()
    );
    let mut server = Server::spawn(&mut apart(&serve));
    let mut check = |below: &str| {
        let path = dir.join(below).join("x/a.txt");
        let write = |text: &str| json!({ "path": path, "content": text, "create_dirs": true });
        server.text("write_text_file", write("one\n"));
        server.text("write_text_file", write("two\n"));
        assert_eq!(server.text("read_text_file", json!({ "path": path })), "two\n", "{below}");
        server.pid()
    };
    check("disk");
    let pid = check("bound");
    let mut enter = Command::new("nsenter");
    enter.args(["--target", &pid.to_string(), "--mount"]);
    enter.args(if is_root { &[][..] } else { &["--user", "--preserve-credentials"] });
    let mount = format!(
        "cd {}; mount -t tmpfs none root/later; mount --bind elsewhere root/bound-later",
        place.path().display()
    );
    let output = enter.args(["sh", "-ec", &mount]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check("later");
    check("bound-later");
    let (_, _, log) = server.finish();
    if has_wall() {
        assert_eq!(told(&log), "landlock");
    }
    assert_eq!(place.read("elsewhere/x/a.txt"), "two\n");
    for elsewhere in ["root/disk", "root/later", "root/bound"] {
        let left = std::fs::read_dir(place.file(elsewhere)).unwrap().count();
        assert_eq!(left, 0, "{elsewhere} was no mount");
    }
}

/// Linux puts at most sixteen walls around a process: whoever is behind that many gets no more.
#[test]
fn a_wall_that_cannot_be_built_is_told_and_the_server_serves() {
    if !has_wall() {
        return;
    }
    let folder = Folder::new();
    let (path, log) = (
        folder.path(),
        std::thread::scope(|scope| {
            let crowded = scope.spawn(|| {
                for _ in 0..16 {
                    let wall = Ruleset::default().handle_access(AccessFs::MakeSock).unwrap();
                    wall.create().unwrap().restrict_self().unwrap();
                }
                let mut server = folder.serve();
                let edit = json!({ "name": "a.txt", "append": "one", "create_if_missing": true });
                server.text("edit_file", edit);
                server.finish().2
            });
            crowded.join().unwrap()
        }),
    );
    assert_eq!(told(&log), "failed");
    let warning = &log_lines(&log)[1];
    assert_eq!(warning["level"], "warn");
    assert_eq!(warning["event"], "the sandbox could not be entered");
    assert!(warning["message"].as_str().is_some_and(|reason| !reason.is_empty()), "{warning}");
    assert_eq!(std::fs::read_to_string(path.join("a.txt")).unwrap(), "one\n");
}
