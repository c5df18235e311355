//! The Landlock sandbox: a server that is made to reach out of its folder cannot.
//!
//! Nothing in the server would ever make these calls, so they are put in the place of one of its own, in its own thread:
//! as if the first wall had a hole.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use serde_json::json;

use crate::report::{Row, Scale};
use crate::server::NoAnswer;
use crate::tracer::{Act, Argument, Foreign, Plan, Traced};

const HERE: Argument = Argument::Number(libc::AT_FDCWD as i64);
const NOTHING: Argument = Argument::Number(0);

fn number(number: i32) -> Argument {
    Argument::Number(number.into())
}

type Attempt = (&'static str, i64, &'static str, [Argument; 4]);

/// In the folder that is served, too, nothing is run.
const INSIDE: &str = "run a program of the folder";

/// What is tried: the call, what it is about below a folder that is not served, its arguments.
fn attempts() -> [Attempt; 8] {
    let open = |flags: i32| [HERE, Argument::Path, number(flags), number(0o600)];
    [
        ("read a file", libc::SYS_openat, "secret", open(libc::O_RDONLY)),
        ("list a folder", libc::SYS_openat, "", open(libc::O_RDONLY | libc::O_DIRECTORY)),
        ("write a file", libc::SYS_openat, "secret", open(libc::O_WRONLY)),
        ("make a file", libc::SYS_openat, "new", open(libc::O_WRONLY | libc::O_CREAT)),
        (
            "make a folder",
            libc::SYS_mkdirat,
            "folder",
            [HERE, Argument::Path, number(0o700), NOTHING],
        ),
        ("remove a file", libc::SYS_unlinkat, "victim", [HERE, Argument::Path, NOTHING, NOTHING]),
        ("run a program", libc::SYS_execve, "program", [Argument::Path, NOTHING, NOTHING, NOTHING]),
        (INSIDE, libc::SYS_execve, "program", [Argument::Path, NOTHING, NOTHING, NOTHING]),
    ]
}

pub fn run(_: Scale) -> Vec<Row> {
    let tried: Vec<&str> = attempts().iter().map(|(what, ..)| *what).collect();
    let mut rows = Vec::new();
    for (flags, is_walled) in
        [(&["--tools=all"][..], true), (&["--tools=all", "--no-sandbox"], false)]
    {
        let what = if is_walled { "outside of the folder" } else { "the same without the wall" };
        let mut row = Row::new(format!("{what}: {}", tried.join(", ")));
        let (mut refused, mut done) = (0, 0);
        for attempt in attempts() {
            row.tries += 1;
            let returned = reach_out(flags, &attempt);
            let is_refused = returned == Some(-i64::from(libc::EACCES));
            let is_done = returned.is_some_and(|returned| returned >= 0);
            refused += usize::from(is_refused);
            done += usize::from(is_done);
            // One that was never made would prove nothing.
            let is_right = if is_walled { is_refused } else { is_done };
            row.check(is_right, || format!("{}: returned {returned:?}", attempt.0));
        }
        rows.push(row.found(format!("{refused} refused with EACCES, {done} done")));
    }
    rows
}

/// A program that needs no other: a script or a library outside would be refused in its stead.
fn program_that_ends() -> Vec<u8> {
    const AT: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    // mov eax, 60; xor edi, edi; syscall
    let code = [0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05];
    let length = HEADERS + code.len() as u64;
    let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let short = |elf: &mut Vec<u8>, values: &[u16]| {
        elf.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    let long = |elf: &mut Vec<u8>, values: &[u64]| {
        elf.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    // An executable for this kind of machine, its entry, and where its one header of a segment is.
    short(&mut elf, &[2, 62, 1, 0]);
    long(&mut elf, &[AT + HEADERS, 64, 0]);
    short(&mut elf, &[0, 0, 64, 56, 1, 0, 0, 0]);
    // Loaded from the beginning, to be read and run.
    short(&mut elf, &[1, 0, 5, 0]);
    long(&mut elf, &[0, AT, AT, length, length, 4096]);
    elf.extend(code);
    elf
}

/// What the call returned to the server; `None` if it was never made.
fn reach_out(flags: &[&str], (what, call, below, arguments): &Attempt) -> Option<i64> {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["secret", "victim"] {
        fs::write(outside.path().join(name), "#!/bin/false\n").unwrap();
    }
    for dir in [&outside, &folder] {
        let program = dir.path().join("program");
        fs::write(&program, program_that_ends()).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::write(folder.path().join("a.txt"), "one\n").unwrap();
    let mut traced = Traced::start(folder.path(), flags, Plan::default());
    traced.server.ready();
    let dir = if *what == INSIDE { &folder } else { &outside };
    let path = dir.path().join(below);
    let foreign = Foreign { number: *call, path, arguments: *arguments };
    traced.plan(Plan { nth: 1, act: Act::Instead(Arc::new(foreign)), ..Plan::default() });
    let answer = traced.server.call("read_file", &json!({ "name": "a.txt" }));
    let seen = traced.end_plan();
    // A program that runs in the server's place returns to nobody, and answers nothing.
    let has_run = *call == libc::SYS_execve && answer.err() == Some(NoAnswer::Gone);
    if has_run { seen.hit.map(|_| 0) } else { seen.returned }
}
