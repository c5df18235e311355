//! A file system that turns read-only under a running server, a limit on file sizes, and too few descriptors.

use std::fs;
use std::process::Stdio;

use rustix::mount::{MountFlags, mount_bind, mount_remount};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;

use super::acts;
use super::fixture::told;
use super::full::{Mount, Tally, attempt, prepare, serve};
use super::not_tried;
use crate::report::{Row, Scale};
use crate::server::{Answer, HANG, Server, command};

pub fn rows(scale: Scale) -> Vec<Row> {
    vec![
        read_only("read-only by a remount of the folder", MountFlags::BIND),
        read_only("read-only by a remount of the file system", MountFlags::empty()),
        file_sizes(),
        descriptors(scale),
        descriptors_of_many(scale),
    ]
}

fn read_only(what: &str, flags: MountFlags) -> Row {
    let mut row = Row::new(what);
    let mount = match Mount::tmpfs("size=1m") {
        Ok(mount) => mount,
        Err(error) => return not_tried(what, &error),
    };
    let dir = mount.path();
    if flags == MountFlags::BIND {
        mount_bind(dir, dir).unwrap();
    }
    let mut tally = Tally::default();
    let mut server = serve(dir, &[]);
    for act in acts::all(5000) {
        prepare(dir, &act);
        fs::write(dir.join("other.txt"), "there\n").unwrap();
        mount_remount(dir, flags | MountFlags::RDONLY, c"").unwrap();
        let done = attempt(&mut server, dir, &act, -32002, "read-only", &mut row, &mut tally);
        row.check(done == Some(false), || format!("{}: done: {done:?}", act.name));
        reads(&mut server, &mut row);
        let mut reader = serve(dir, &["--read-only"]);
        let answer = act.call(&mut reader, dir);
        row.check(answer.as_ref().is_ok_and(Answer::is_error), || {
            format!("{} of a server for reading: {answer:?}", act.name)
        });
        reads(&mut reader, &mut row);
        mount_remount(dir, flags, c"").unwrap();
        let done = attempt(&mut server, dir, &act, 0, "writable again", &mut row, &mut tally);
        row.check(done == Some(true), || format!("{}: writable again: {done:?}", act.name));
    }
    mount_remount(dir, flags | MountFlags::RDONLY, c"").unwrap();
    let start = command(dir, &["--transport=stdio"]).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&start.stderr).into_owned();
    row.check(start.status.code() == Some(1) && said.contains("writable"), || {
        format!("a server started there: {:?}, {said}", start.status)
    });
    mount_remount(dir, flags, c"").unwrap();
    if flags == MountFlags::BIND {
        rustix::mount::unmount(dir, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
    row.found(format!(
        "{tally}; reading goes on; no start but with --read-only; works when writable again"
    ))
}

fn reads(server: &mut Server, row: &mut Row) {
    for (tool, arguments) in
        [("read_file", json!({ "name": "other.txt" })), ("list_files", json!({}))]
    {
        let answer = server.call(tool, &arguments);
        let there = answer
            .as_ref()
            .is_ok_and(|answer| !answer.is_error() && answer.text().contains("other.txt"));
        row.check(there, || format!("{tool}: {answer:?}"));
    }
}

fn limit(server: &Server, resource: Resource, limit: u64) {
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw).unwrap();
    let maximum = getrlimit(resource).maximum;
    prlimit(Some(pid), resource, Rlimit { current: Some(limit), maximum }).unwrap();
}

fn open_descriptors(server: &Server) -> u64 {
    fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count() as u64
}

/// Past the limit a write fails, and its signal does not kill.
fn file_sizes() -> Row {
    const LIMIT: u64 = 8192;
    let mut row = Row::new("a limit on file sizes (RLIMIT_FSIZE)");
    let mut tally = Tally::default();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for flag in ["--durability=none", "--durability=full"] {
        let mut server = serve(dir, &[flag]);
        for size in [LIMIT - 1, LIMIT, LIMIT + 1, 10 * LIMIT] {
            for act in acts::all(usize::try_from(size).unwrap()) {
                prepare(dir, &act);
                limit(&server, Resource::Fsize, LIMIT);
                let about = format!("{flag}, {size} bytes");
                let done = attempt(&mut server, dir, &act, -32005, &about, &mut row, &mut tally);
                row.check(done == Some(size <= LIMIT), || {
                    format!("{}, {about}: {done:?}", act.name)
                });
                limit(&server, Resource::Fsize, 1 << 30);
                if done == Some(false) {
                    let again =
                        attempt(&mut server, dir, &act, 0, "no limit", &mut row, &mut tally);
                    row.check(again == Some(true), || format!("{}, {about}: no limit", act.name));
                }
            }
        }
    }
    row.found(tally)
}

/// One more than is open, two more, and so on until everything works.
fn descriptors(scale: Scale) -> Row {
    let mut row = Row::new("too few descriptors (RLIMIT_NOFILE)");
    let mut tally = Tally::default();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let flags = ["--durability=full", "--durability=none"];
    for flag in &flags[..scale.of(1, 2)] {
        let mut server = serve(dir, &[flag]);
        let open = open_descriptors(&server);
        for act in acts::all(5000) {
            for spare in 0..12 {
                prepare(dir, &act);
                // A call before may not have closed its own yet when they were counted.
                limit(&server, Resource::Nofile, open + spare - 2);
                let about = format!("{flag}, {open} - 2 + {spare} descriptors");
                let done = attempt(&mut server, dir, &act, -32603, &about, &mut row, &mut tally);
                let expected = match spare {
                    0 => Some(false),
                    11 => Some(true),
                    _ => done,
                };
                row.check(done.is_some() && done == expected, || {
                    format!("{}, {about}: done: {done:?}", act.name)
                });
                limit(&server, Resource::Nofile, 1024);
                if done == Some(false) {
                    let again = attempt(&mut server, dir, &act, 0, "enough", &mut row, &mut tally);
                    row.check(again == Some(true), || format!("{}, {about}: enough", act.name));
                }
            }
        }
    }
    row.found(tally)
}

/// Many calls at once, for which there are not enough: some fail, and when they are through there are enough again.
fn descriptors_of_many(scale: Scale) -> Row {
    let mut row = Row::new("many calls at once, too few descriptors");
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut server = serve(dir, &[]);
    let open = open_descriptors(&server);
    limit(&server, Resource::Nofile, open + 12);
    let calls = scale.of(200, 1000);
    let name = |number: usize| format!("{number}.txt");
    let mut ids = Vec::new();
    for number in 0..calls {
        let arguments = json!({ "name": name(number), "append": "new" });
        ids.extend(server.send("edit_file", &arguments));
    }
    row.tries = calls;
    row.check(ids.len() == calls, || "the server is gone".into());
    let mut done = vec![false; calls];
    for _ in 0..ids.len() {
        match server.receive(HANG) {
            Ok(answer) => {
                let number = ids.iter().position(|id| answer.0["id"] == *id).unwrap();
                done[number] = !answer.is_error();
                let clean = !answer.is_error() || answer.code() == Some(-32603);
                row.check(clean, || told(&answer));
            }
            Err(none) => {
                row.bad.push(format!("{none:?}"));
                break;
            }
        }
    }
    for (number, &done) in done.iter().enumerate() {
        let text = fs::read_to_string(dir.join(name(number))).ok();
        let fits = if done { text.as_deref() == Some("new\n") } else { text.is_none() };
        row.check(fits, || format!("{}: done: {done}, and {text:?}", name(number)));
    }
    let created = done.iter().filter(|done| **done).count();
    let there = fs::read_dir(dir).unwrap().count();
    row.check(there == created, || format!("{created} created, {there} there"));
    let act = acts::edit(5000);
    prepare(dir, &act);
    let mut tally = Tally::default();
    let again = attempt(&mut server, dir, &act, 0, "alone", &mut row, &mut tally);
    row.check(again == Some(true), || "then one alone fails too".into());
    row.found(format!("{created} done, {} refused; then one alone is done", calls - created))
}
