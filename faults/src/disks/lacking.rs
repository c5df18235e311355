//! File systems without locks, which are refused, and without other things, which are done without.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use serde_json::json;

use super::acts::{self, Act};
use super::fixture::{before, differences, is_litter, notes, start, told};
use super::not_tried;
use crate::fuse::{Disk, Feature, Locks, Nature, Node, Times, Tree};
use crate::report::{Row, Scale};
use crate::server::{HANG, Server};
use crate::tracer::{self, Traced};

const SIZE: usize = 9000;

const DURABILITIES: [&str; 3] = ["--durability=full", "--durability=data", "--durability=none"];

pub fn rows(scale: Scale) -> Vec<Row> {
    let mut rows = vec![gone(), without_locks(), with_coarse_times()];
    for variant in variants() {
        rows.push(variant.row(scale).unwrap_or_else(|error| not_tried(variant.what, &error)));
    }
    rows
}

/// Nothing can be done, and that is said.
fn gone() -> Row {
    let mut row = Row::new("FUSE: the file system itself is gone");
    let disk = match Disk::mount(Nature::default()) {
        Ok(disk) => disk,
        Err(error) => return not_tried(&row.what, &error),
    };
    let mut server = start(&disk, DURABILITIES[0]);
    disk.put(&before(&acts::edit(SIZE)));
    let path = disk.path().to_owned();
    disk.abort();
    let reads = [("read_file", json!({ "name": "other.txt" })), ("list_files", json!({}))];
    let mut answers: Vec<_> =
        acts::all(SIZE).iter().map(|act| act.call(&mut server, &path)).collect();
    answers.extend(reads.map(|(tool, arguments)| server.call(tool, &arguments)));
    row.tries = answers.len();
    for answer in &answers {
        let told = answer.as_ref().is_ok_and(|answer| answer.code() == Some(-32603));
        row.check(told, || format!("{answer:?}"));
    }
    server.ready();
    row.found("every call refused, the server lives")
}

/// Somebody writes into the file before each call of an edit, just as many bytes and within the same second.
fn with_coarse_times() -> Row {
    let mut row = Row::new("FUSE: times in whole seconds, and somebody else changes the file");
    let disk = match Disk::mount(Nature { times: Times::WholeSeconds, ..Nature::default() }) {
        Ok(disk) => disk,
        Err(error) => return not_tried(&row.what, &error),
    };
    let path = disk.path().join("a.txt");
    let edits = json!([{ "old_string": "two\n", "new_string": "2\n" }]);
    let arguments = json!({ "path": path.display().to_string(), "edits": edits });
    let mut traced = Traced::start(disk.path(), &["--tools=all"], tracer::Plan::default());
    let mut lost = Vec::new();
    for nth in 1.. {
        std::fs::write(&path, "one\ntwo\nold\n").unwrap();
        let theirs = path.clone();
        let happens = Arc::new(move || {
            let file = std::fs::File::options().write(true).open(&theirs).unwrap();
            // Ours is there already: theirs comes later, and is in no danger.
            let at = if file.metadata().unwrap().len() == 12 { 8 } else { 6 };
            file.write_all_at(b"new", at).unwrap();
        });
        let act = tracer::Act::Meanwhile(happens);
        traced.plan(tracer::Plan { nth, act, ..tracer::Plan::default() });
        let answer = traced.server.call("multi_edit_text_file", &arguments).unwrap();
        let Some(hit) = traced.end_plan().hit else { break };
        row.tries += 1;
        row.check(!answer.is_error(), || format!("{hit}: {}", answer.text()));
        let text = std::fs::read_to_string(&path).unwrap();
        if !text.contains("new") {
            lost.push(hit);
        }
    }
    // Between the last look at the text and the rename nothing tells.
    let is_late = |hit: &String| {
        ["newfstatat(a.txt)", "read(a.txt)", "renameat("].iter().any(|late| hit.contains(late))
    };
    row.check(lost.len() <= 3 && lost.iter().all(is_late), || format!("theirs is lost: {lost:?}"));
    row.found(format!("theirs is lost {}, just before the rename", lost.len()))
}

/// Edits could be lost there, so there are none; reading goes on.
fn without_locks() -> Row {
    let mut row = Row::new("FUSE: no locks");
    let mut refused = 0;
    for (flag, errno) in
        DURABILITIES.into_iter().zip([libc::ENOSYS, libc::ENOLCK, libc::EOPNOTSUPP])
    {
        let nature = Nature { locks: Locks::Refused(errno), ..Nature::default() };
        let disk = match Disk::mount(nature) {
            Ok(disk) => disk,
            Err(error) => return not_tried(&row.what, &error),
        };
        let mut server = start(&disk, flag);
        for act in acts::all(SIZE) {
            let before = before(&act);
            disk.put(&before);
            row.tries += 1;
            let answer = act.call(&mut server, disk.path());
            let answer = answer.map_or_else(
                |none| Err(format!("{none:?}")),
                |answer| if answer.is_error() { Ok(answer) } else { Err(told(&answer)) },
            );
            let after = disk.tree();
            row.check(after == before, || {
                format!("{}, {errno}: {:?}", act.name, differences(&before, &after))
            });
            match answer {
                Ok(answer) => {
                    refused += 1;
                    let names_it = told(&answer).contains("(fuse) has no working file locks");
                    row.check(names_it && answer.code() == Some(-32603), || {
                        format!("{}, {errno}: {}", act.name, told(&answer))
                    });
                }
                Err(answer) => row.bad.push(format!("{}, {errno}: {answer}", act.name)),
            }
            let text = server.call("read_file", &json!({ "name": "other.txt" }));
            let listed = server.call("list_files", &json!({}));
            row.check(
                [text, listed].iter().flatten().filter(|a| !a.is_error()).count() == 2,
                || format!("{}, {errno}: then no reading", act.name),
            );
        }
    }
    row.found(format!(
        "{refused} refused, naming the file system, nothing written; reading goes on"
    ))
}

/// What a file system lacks, and what of an edit and of a new file is lost by that.
struct Variant {
    what: &'static str,
    lacks: Vec<(Feature, i32)>,
    edits: Outcome,
    creates: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// Done, and told that this is lost.
    Loses(&'static str),
    /// In these words.
    Refused(&'static str),
}

fn variants() -> Vec<Variant> {
    let lacks = |what, lacks: &[(Feature, i32)]| Variant {
        what,
        lacks: lacks.to_vec(),
        edits: Outcome::Done,
        creates: Outcome::Done,
    };
    let no_replace = (Feature::NoReplace, libc::EINVAL);
    vec![
        lacks("FUSE: no unnamed temporary files", &[]),
        lacks("FUSE: no hard links (EPERM)", &[(Feature::HardLinks, libc::EPERM)]),
        lacks("FUSE: no hard links (EOPNOTSUPP)", &[(Feature::HardLinks, libc::EOPNOTSUPP)]),
        lacks("FUSE: no rename that replaces nothing", &[no_replace]),
        Variant {
            creates: Outcome::Refused("Operation not supported"),
            ..lacks(
                "FUSE: neither hard links nor a rename that replaces nothing",
                &[no_replace, (Feature::HardLinks, libc::EOPNOTSUPP)],
            )
        },
        Variant {
            edits: Outcome::Done,
            ..lacks("FUSE: no extended attributes", &[(Feature::Attributes, libc::EOPNOTSUPP)])
        },
        lacks(
            "FUSE: one mode and one owner for all",
            &[(Feature::Modes, libc::EPERM), (Feature::Chown, libc::EPERM)],
        ),
        Variant {
            edits: Outcome::Refused("the mode of the file cannot be kept"),
            creates: Outcome::Loses("mode"),
            ..lacks("FUSE: no chmod", &[(Feature::Chmod, libc::EPERM)])
        },
        Variant {
            edits: Outcome::Loses("owner, group"),
            ..lacks("FUSE: no chown", &[(Feature::Chown, libc::EPERM)])
        },
        lacks("FUSE: no sync", &[(Feature::Sync, libc::ENOSYS)]),
    ]
}

impl Variant {
    fn row(&self, scale: Scale) -> std::io::Result<Row> {
        let disk = Disk::mount(Nature::without(&self.lacks))?;
        let mut row = Row::new(self.what);
        let mut counts = BTreeMap::from([("done", 0), ("done, loss told", 0), ("refused", 0)]);
        for flag in DURABILITIES {
            let mut server = start(&disk, flag);
            for act in acts::all(SIZE) {
                row.tries += 1;
                let outcome = if act.is_create() { self.creates } else { self.edits };
                self.try_act(&disk, &mut server, &act, outcome, &mut row);
                let counted = match outcome {
                    Outcome::Done => "done",
                    Outcome::Loses(_) => "done, loss told",
                    Outcome::Refused(_) => "refused",
                };
                *counts.entry(counted).or_default() += 1;
            }
        }
        let counts: Vec<_> = counts.into_iter().filter(|(_, times)| *times > 0).collect();
        let counts: Vec<_> = counts.iter().map(|(what, times)| format!("{times} {what}")).collect();
        let found = counts.join(", ");
        if matches!(self.creates, Outcome::Refused(_)) {
            return Ok(row.found(found));
        }
        let names = scale.of(40, 200);
        race(&disk, names, &mut row);
        Ok(row.found(format!("{found}; {names} files created by two servers at once")))
    }

    fn try_act(
        &self,
        disk: &Disk,
        server: &mut Server,
        act: &Act,
        outcome: Outcome,
        row: &mut Row,
    ) {
        let before = self.fitting(before(act));
        disk.put(&before);
        let answer = match act.call(server, disk.path()) {
            Ok(answer) => answer,
            Err(none) => return row.bad.push(format!("{}: {none:?}", act.name)),
        };
        let mut after = disk.tree();
        let fits = match outcome {
            Outcome::Done => !answer.is_error() && notes(&answer).is_empty(),
            Outcome::Loses(what) => {
                !answer.is_error()
                    && notes(&answer).contains(&format!("no permission to keep: {what}"))
            }
            Outcome::Refused(words) => answer.is_error() && answer.text().contains(words),
        };
        row.check(fits, || format!("{}: {}", act.name, told(&answer)));
        if answer.is_error() {
            row.check(after == before, || {
                format!("{}: refused, and {:?}", act.name, differences(&before, &after))
            });
            return;
        }
        let text = match after.remove(act.file) {
            Some(Node::File(file)) => file.bytes,
            _ => Vec::new(),
        };
        row.check(text == act.after.as_bytes(), || format!("{}: not the new text", act.name));
        let mut others = before.clone();
        others.remove(act.file);
        after.retain(|path, node| others.contains_key(path) || *node != Node::Folder);
        row.check(after == others, || format!("{}: {:?}", act.name, differences(&others, &after)));
    }

    /// What such a file system can hold.
    fn fitting(&self, mut tree: Tree) -> Tree {
        for node in tree.values_mut() {
            let Node::File(file) = node else { continue };
            for (feature, _) in &self.lacks {
                match feature {
                    Feature::Attributes => file.attributes.clear(),
                    Feature::Modes => (file.mode, file.uid, file.gid) = (0o644, 0, 0),
                    _ => {}
                }
            }
        }
        tree
    }
}

/// Two servers create the same files at the same time: each is created once, and has what both put in.
fn race(disk: &Disk, names: usize, row: &mut Row) {
    disk.put(&Tree::new());
    let mut servers = [start(disk, DURABILITIES[2]), start(disk, DURABILITIES[2])];
    for number in 0..names {
        for (server, index) in servers.iter_mut().zip(1..) {
            let append = format!("by server {index}\n");
            let arguments = json!({ "name": format!("{number}.txt"), "append": append });
            row.check(server.send("edit_file", &arguments).is_ok(), || "a server is gone".into());
        }
    }
    row.tries += names;
    let mut created = 0;
    for server in &mut servers {
        for _ in 0..names {
            let answer = server.receive(HANG);
            let done = answer.as_ref().is_ok_and(|answer| !answer.is_error());
            row.check(done, || format!("{answer:?}"));
            created +=
                usize::from(answer.is_ok_and(|answer| answer.data()["file_created"] == true));
        }
    }
    row.check(created == names, || format!("{created} creators of {names} files"));
    let tree = disk.tree();
    row.check(tree.len() == names && !tree.keys().any(|path| is_litter(path)), || {
        format!("{} files of {names}", tree.len())
    });
    for (name, node) in tree {
        let Node::File(file) = node else { continue };
        let text = String::from_utf8_lossy(&file.bytes);
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        row.check(lines == ["by server 1", "by server 2"], || format!("{name}: {text:?}"));
    }
}
