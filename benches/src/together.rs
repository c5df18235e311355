//! Several servers of one kind, each with its own client, edit one file at the same time. Who answered that an edit is
//! made should find it there.

use std::fs;
use std::io::{Error, Result};
use std::path::Path;

use serde_json::json;

use crate::contenders::{Contender, Durability, Kind, Round, Task, serving};
use crate::process::{OnStdio, message};
use crate::report::{Bar, Report, failure};
use crate::scene::{self, KB};

pub const SERVERS: usize = 5;
pub const EDITS: usize = 50;
const RUNS: usize = 3;

#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// Edits that were answered as made.
    acknowledged: usize,
    /// Edits that are in the file at the end.
    survived: usize,
    /// Whether anything but these edits is different.
    is_damaged: bool,
}

impl Outcome {
    fn is_right(self) -> bool {
        self.survived == SERVERS * EDITS && self.acknowledged == self.survived && !self.is_damaged
    }
}

fn edit(contender: &Contender, folder: &Path) -> Result<Outcome> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    let path = folder.join("file.rs");
    let before = scene::marked(50 * KB, SERVERS * EDITS);
    fs::write(&path, &before)?;
    let start = |_| OnStdio::start(&mut contender.command(folder, Durability::None));
    let servers = (0..SERVERS).map(start).collect::<Result<Vec<_>>>()?;
    let acknowledged = std::thread::scope(|scope| {
        let clients: Vec<_> = servers
            .into_iter()
            .enumerate()
            .map(|(number, server)| {
                let path = &path;
                scope.spawn(move || client(contender, server, path, number))
            })
            .collect();
        let count = |client: std::thread::ScopedJoinHandle<Result<usize>>| {
            client.join().unwrap_or_else(|_| Err(Error::other("a client panicked")))
        };
        clients.into_iter().map(count).sum::<Result<usize>>()
    })?;

    let mut rest = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
    let mut survived = 0;
    for place in 0..SERVERS * EDITS {
        let edited = scene::mark(place, 1);
        survived += usize::from(rest.contains(&edited));
        rest = rest.replace(&edited, &scene::mark(place, 0));
    }
    Ok(Outcome { acknowledged, survived, is_damaged: rest != before })
}

/// Edits its own places, which lie between those of the others; how many of these edits were acknowledged.
fn client(contender: &Contender, mut server: OnStdio, path: &Path, number: usize) -> Result<usize> {
    let mut acknowledged = 0;
    for edit in 0..EDITS {
        let task = Task::EditAt(edit * SERVERS + number);
        let params = contender.ask(task, Round { path, number: 0 });
        let params = params.ok_or_else(|| Error::other("it cannot edit"))?;
        server.call(&message(edit + 2, "tools/call", &params))?;
        acknowledged += usize::from(server.check().is_ok());
    }
    Ok(acknowledged)
}

pub fn tell(name: &str, contenders: &[Contender], folder: &Path, report: &mut Report) {
    report.title(&format!("{SERVERS} processes × {EDITS} edits of one file, {RUNS} runs"));
    let folder = folder.join("together");
    let mut rows = Vec::new();
    for contender in serving(contenders) {
        let kind = contender.kind;
        let outcomes: Result<Vec<_>> = (0..RUNS).map(|_| edit(contender, &folder)).collect();
        let mut row = vec![kind.name().to_owned()];
        match outcomes {
            Ok(outcomes) => row.extend(tell_outcomes(name, kind, &outcomes, report)),
            Err(error) => {
                row.push(failure(&error));
                if !kind.is_rival() {
                    report.fault(&format!("{name}: {}", kind.name()), &error);
                }
            }
        }
        rows.push(row);
    }
    report.table(&["", "survived", "acknowledged", "file damaged"], &rows);
}

/// The columns of a contender.
fn tell_outcomes(name: &str, kind: Kind, outcomes: &[Outcome], report: &mut Report) -> [String; 3] {
    let list = |figure: fn(&Outcome) -> usize| {
        let figures: Vec<_> = outcomes.iter().map(|o| figure(o).to_string()).collect();
        figures.join(", ")
    };
    let (survived, acknowledged) = (list(|o| o.survived), list(|o| o.acknowledged));
    let damaged = list(|o| usize::from(o.is_damaged));
    let figures = json!({ "survived": survived, "acknowledged": acknowledged, "damaged": damaged });
    report.keep("together", kind.name(), figures);
    if kind.is_ours() {
        let holds = outcomes.iter().all(|outcome| outcome.is_right());
        let all = SERVERS * EDITS;
        report.bar(Bar {
            what: name.into(),
            against: "–".into(),
            promised: format!("{all} of {all} survive"),
            found: survived.clone(),
            holds,
        });
        if !holds {
            let reason = "not every edit is acknowledged and there, and nothing else";
            report.fault(name, &Error::other(reason));
        }
    }
    [survived, acknowledged, damaged]
}
