//! Nothing outside the folder is read or written, whatever a name leads to, and nothing that is no file hangs us.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{Folder, Server, failure, fault, not_checked};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::{Value, json};

const SECRET: &str = "the-secret-outside";

/// A folder that is served, in one that is not.
struct Place {
    parent: Folder,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let parent = Folder::new();
        let root = parent.file("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(parent.file("outside")).unwrap();
        parent.write("secret.txt", format!("{SECRET}\n"));
        parent.write("outside/secret.txt", format!("{SECRET}\n"));
        Self { parent, root }
    }

    /// Without the sandbox, which would hide an error in the path resolution.
    fn serve(&self) -> Server {
        Server::start(&self.root, &["--durability=none", "--no-sandbox"], &[])
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.root.join(name)).unwrap();
    }

    /// Outside, all is as it was.
    fn assert_untouched(&self) {
        assert_eq!(self.parent.names(), ["outside", "root", "secret.txt"]);
        let outside: Vec<_> = std::fs::read_dir(self.parent.file("outside")).unwrap().collect();
        assert_eq!(outside.len(), 1, "{outside:?}");
        for name in ["secret.txt", "outside/secret.txt"] {
            assert_eq!(self.parent.read(name), format!("{SECRET}\n"));
        }
    }
}

/// Reads and edits `name` in both dialects: each must be refused with this code, with not a word of the secret.
fn check_refused(place: &Place, server: &mut Server, name: &str, code: i64, message: &str) {
    let before = place.root.join(name).symlink_metadata().unwrap().file_type();
    let edit = json!({ "name": name, "append": "x", "create_if_missing": true });
    let calls = [("read_file", json!({ "name": name })), ("edit_file", edit)];
    for (method, arguments) in calls {
        let answer = server.tool(method, arguments.clone());
        assert_eq!(failure(&answer, code), format!("Error: {message}"), "{answer}");
        assert!(!answer.to_string().contains(SECRET), "{answer}");
        let answer = server.request(method, arguments);
        assert_eq!(fault(&answer, code), message, "{answer}");
        assert!(!answer.to_string().contains(SECRET), "{answer}");
    }
    let after = place.root.join(name).symlink_metadata().unwrap().file_type();
    assert_eq!(after, before, "{name} is something else now");
    let list = server.text("list_files", json!({}));
    assert!(!list.contains(&format!("name: {name},")), "{list}");
    place.assert_untouched();
}

#[test]
fn links_that_lead_outside_are_refused() {
    let place = Place::new();
    let secret = place.parent.file("secret.txt");
    std::fs::create_dir_all(place.root.join("sub/deep")).unwrap();
    let own = std::fs::canonicalize(&place.root).unwrap().join("inside.txt");
    std::fs::write(&own, "inside\n").unwrap();
    place.link("up", "../secret.txt");
    place.link("up_and_down", "sub/../../outside/secret.txt");
    place.link("far_up", "../".repeat(40) + "etc/passwd");
    place.link("absolute", &secret);
    place.link("absolute_inside", &own);
    place.link("system", "/etc/passwd");
    place.link("proc", format!("/proc/self/root{}", secret.display()));
    place.link("proc_cwd", "/proc/self/cwd");
    place.link("proc_relative", "../".repeat(40) + "proc/self/root/etc/passwd");
    place.link("chain", "hop1");
    place.link("hop1", "sub/hop2");
    place.link("sub/hop2", "../up");
    place.link("door", "../outside");
    place.link("through_door", "door/secret.txt");
    place.link("new_outside", "../new.txt");
    place.link("back_in", "../root/inside.txt");
    place.link("device", "/dev/null");
    let mut server = place.serve();
    for name in [
        "up",
        "up_and_down",
        "far_up",
        "absolute",
        "absolute_inside",
        "system",
        "proc",
        "proc_cwd",
        "proc_relative",
        "chain",
        "hop1",
        "through_door",
        "new_outside",
        "back_in",
        "device",
    ] {
        let message = format!("Permission denied accessing '{name}'");
        check_refused(&place, &mut server, name, -32002, &message);
    }
    // The reason is told, not the target.
    let answer = server.tool("read_file", json!({ "name": "up" }));
    assert!(answer["result"]["structuredContent"]["error"]["hint"].is_string(), "{answer}");
    assert_eq!(std::fs::read_to_string(own).unwrap(), "inside\n");
    let list = server.text("list_files", json!({}));
    assert!(list.ends_with("Total files: 1"), "{list}");
}

#[test]
fn links_that_lead_nowhere() {
    let place = Place::new();
    place.link("dangling", "missing.txt");
    place.link("itself", "itself");
    place.link("one", "other");
    place.link("other", "one");
    let mut server = place.serve();
    let answer = server.tool("read_file", json!({ "name": "dangling" }));
    assert_eq!(failure(&answer, -32001), "Error: File 'dangling' not found");
    for name in ["itself", "one"] {
        for (tool, arguments) in [
            ("read_file", json!({ "name": name })),
            ("edit_file", json!({ "name": name, "append": "x" })),
        ] {
            let answer = server.tool(tool, arguments);
            assert_eq!(answer["result"]["isError"], true, "{answer}");
        }
        assert!(place.root.join(name).is_symlink());
    }
    assert!(server.text("list_files", json!({})).ends_with("Total files: 0"));
    place.assert_untouched();
}

#[test]
fn names_that_lead_outside_are_no_names() {
    let place = Place::new();
    std::fs::create_dir(place.root.join("sub")).unwrap();
    let mut server = place.serve();
    let absolute = place.parent.file("secret.txt");
    let mut names = vec![
        "..",
        ".",
        "../secret.txt",
        "sub/../../secret.txt",
        "/etc/passwd",
        "sub",
        "/proc/self/environ",
    ];
    names.push(absolute.to_str().unwrap());
    for name in names {
        for (tool, arguments) in [
            ("read_file", json!({ "name": name })),
            ("edit_file", json!({ "name": name, "append": "x" })),
        ] {
            let code = if name == "sub" { -32003 } else { -32602 };
            let answer = server.tool(tool, arguments.clone());
            failure(&answer, code);
            fault(&server.request(tool, arguments), code);
        }
    }
    place.assert_untouched();
}

#[test]
fn what_is_no_file_is_refused_and_hangs_nobody() {
    let place = Place::new();
    let at = |name: &str| place.root.join(name);
    std::fs::create_dir(at("folder")).unwrap();
    mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    place.link("to_folder", "folder");
    place.link("to_fifo", "fifo");
    let mut names = vec!["folder", "fifo", "socket", "to_folder", "to_fifo"];
    let zero = mknodat(
        CWD,
        at("zero"),
        FileType::CharacterDevice,
        Mode::from_raw_mode(0o666),
        makedev(1, 5),
    );
    match zero {
        Ok(()) => names.push("zero"),
        Err(_) => not_checked("a device in the folder", "root"),
    }
    let mut server = place.serve();
    for name in names {
        check_refused(
            &place,
            &mut server,
            name,
            -32003,
            &format!("'{name}' is not a regular file"),
        );
    }
    assert!(server.text("list_files", json!({})).ends_with("Total files: 0"));
}

/// While `flip` swaps what a name leads to, the server reads and edits it; the secret neither shows nor changes.
fn race(place: &Place, flip: impl Fn(usize) + Send + 'static) {
    let done = Arc::new(AtomicBool::new(false));
    let flipper = std::thread::spawn({
        let done = Arc::clone(&done);
        move || {
            let mut turn = 0;
            while !done.load(Ordering::Relaxed) {
                flip(turn);
                turn += 1;
            }
        }
    });
    let mut server = place.serve();
    let (mut done_well, mut refused) = (0, 0);
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        let ids: Vec<_> = (0..20)
            .map(|number| match number % 4 {
                0 => server.send_tool("edit_file", json!({ "name": "name", "append": "edited" })),
                1 => server.send_tool("read_file", json!({ "name": "name" })),
                2 => server.send("read_file", json!({ "name": "name" })),
                _ => server.send_tool("list_files", json!({})),
            })
            .collect();
        for (index, answer) in server.receive_all(&ids).into_iter().enumerate() {
            assert!(!answer.to_string().contains(SECRET), "{answer}");
            let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
            let count = if failed { &mut refused } else { &mut done_well };
            *count += u32::from(index % 4 != 3);
        }
    }
    done.store(true, Ordering::Relaxed);
    flipper.join().unwrap();
    assert!(done_well > 20 && refused > 20, "no race: {done_well} done, {refused} refused");
    let (status, rest, _) = server.finish();
    assert!(status.success() && rest.is_empty(), "{status} {rest}");
    place.assert_untouched();
}

fn put(path: &Path, make: impl Fn(&Path)) {
    let next = path.with_extension("next");
    make(&next);
    std::fs::rename(next, path).unwrap();
}

#[test]
fn a_name_that_is_swapped_under_us() {
    let place = Place::new();
    std::fs::write(place.root.join("inside.txt"), "inside\n").unwrap();
    let name = place.root.join("name");
    race(&place, move |turn| match turn % 4 {
        0 => put(&name, |next| std::fs::write(next, "plain\n").unwrap()),
        1 => put(&name, |next| symlink("../secret.txt", next).unwrap()),
        2 => put(&name, |next| symlink("inside.txt", next).unwrap()),
        _ => put(&name, |next| symlink("../outside/secret.txt", next).unwrap()),
    });
    let mut names: Vec<_> = std::fs::read_dir(&place.root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["inside.txt", "name"], "something is left over");
}

#[test]
fn a_folder_on_the_way_that_is_swapped_under_us() {
    let place = Place::new();
    std::fs::create_dir(place.root.join("real")).unwrap();
    std::fs::write(place.root.join("real/secret.txt"), "inside\n").unwrap();
    place.link("name", "door/secret.txt");
    let (door, real) = (place.root.join("door"), place.root.join("real"));
    symlink("real", &door).unwrap();
    race(&place, move |turn| match turn % 3 {
        0 => put(&door, |next| symlink("../outside", next).unwrap()),
        1 => put(&door, |next| symlink("real", next).unwrap()),
        _ => {
            // A folder itself in the door's place, then back.
            std::fs::remove_file(&door).unwrap();
            std::fs::rename(&real, &door).unwrap();
            std::fs::rename(&door, &real).unwrap();
            symlink("real", &door).unwrap();
        }
    });
    let inside: Value = std::fs::read_to_string(place.root.join("real/secret.txt")).unwrap().into();
    assert!(inside.as_str().unwrap().starts_with("inside\n"), "{inside}");
    let left: Vec<_> = std::fs::read_dir(place.root.join("real")).unwrap().collect();
    assert_eq!(left.len(), 1, "something is left over: {left:?}");
}
