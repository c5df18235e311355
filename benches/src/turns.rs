//! Calls on stdio: everybody does the same, by turns in one run, so that whatever else the machine does is shared.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::contenders::{Contender, Durability, Kind, Round, Task, serving};
use crate::figures::Figures;
use crate::operations::{Files, Operation};
use crate::process::{OnStdio, message};
use crate::scene;

/// Calls before those that count.
const WARM_UP: usize = 3;
const STARTS: usize = 50;

/// What everybody took, or why somebody could not do it.
pub type Results = BTreeMap<Kind, Result<Figures>>;

/// Everybody who can, by turns.
pub fn measure(operation: &Operation, contenders: &[Contender], folder: &Path) -> Results {
    let mut results = Results::new();
    let mut seats = Vec::new();
    for contender in contenders {
        match Seat::take(operation, contender, folder) {
            Ok(seat) => seats.extend(seat),
            Err(error) => drop(results.insert(contender.kind, Err(error))),
        }
    }
    if matches!(operation.files, Files::Many { .. }) {
        // Whoever remembers what a file holds does not trust its times while they are new.
        std::thread::sleep(Duration::from_secs(3));
    }
    let mut play = |seats: &mut Vec<Seat>, first: usize| {
        seats.rotate_left(first);
        seats.retain_mut(|seat| match seat.turn(operation) {
            Ok(()) => true,
            Err(error) => results.insert(seat.contender.kind, Err(error)).is_some(),
        });
    };
    for _ in 0..WARM_UP {
        play(&mut seats, 0);
    }
    for seat in &mut seats {
        seat.figures = Figures::default();
    }
    for turn in 0..operation.turns {
        // Nobody always comes first, or always after the same one.
        let first = usize::from(seats.len() > 1);
        play(&mut seats, first);
        if turn % 2 == 1 {
            seats.reverse();
        }
    }
    for seat in seats {
        let outcome = seat.check(operation);
        results.insert(seat.contender.kind, outcome.map(|()| seat.figures));
    }
    results
}

/// From nothing to the first answer, by turns.
pub fn measure_start(contenders: &[Contender], folder: &Path) -> Results {
    let contenders: Vec<_> = serving(contenders).collect();
    let mut results = Results::new();
    for turn in 0..WARM_UP + STARTS {
        for at in 0..contenders.len() {
            let contender = contenders[(turn + at) % contenders.len()];
            let result = results.entry(contender.kind).or_insert_with(|| Ok(Figures::default()));
            let Ok(figures) = result else { continue };
            let started = OnStdio::start(&mut contender.command(folder, Durability::None))
                .and_then(|server| Ok((server.started, server.process.cpu()?)));
            match started {
                Ok((time, cpu)) if turn >= WARM_UP => {
                    figures.add(time);
                    figures.add_cpu(cpu);
                }
                Ok(_) => {}
                Err(error) => *result = Err(error),
            }
        }
    }
    results
}

/// A contender at work on its own files.
struct Seat {
    contender: Contender,
    folder: PathBuf,
    /// The file, or the folder.
    path: PathBuf,
    server: OnStdio,
    rounds: usize,
    figures: Figures,
    /// What the server had of the processor when that was last looked at. What it does after an answer counts too.
    cpu: Duration,
}

impl Seat {
    /// `None` for those who cannot do it.
    fn take(operation: &Operation, contender: &Contender, base: &Path) -> Result<Option<Self>> {
        let folder = base.join(contender.kind.name().replace(' ', "-"));
        let path = match operation.files {
            Files::One(_) => folder.join("file.rs"),
            Files::Many { .. } => folder.clone(),
        };
        if !can(contender, operation, &path) {
            return Ok(None);
        }
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        match &operation.files {
            Files::One(text) => fs::write(&path, text)?,
            Files::Many { count, .. } => scene::many(&folder, *count)?,
        }
        let server = start(contender, operation, &folder, &path)?;
        let (contender, figures, cpu) =
            (contender.clone(), Figures::default(), server.process.cpu()?);
        Ok(Some(Self { contender, folder, path, server, rounds: 0, figures, cpu }))
    }

    fn turn(&mut self, operation: &Operation) -> Result<()> {
        if matches!(operation.files, Files::Many { is_cold: true, .. }) {
            self.server = start(&self.contender, operation, &self.folder, &self.path)?;
            self.cpu = self.server.process.cpu()?;
        }
        for _ in 0..operation.calls {
            let round = Round { path: &self.path, number: self.rounds };
            let line = match self.contender.ask(operation.task, round) {
                Some(params) => message(self.rounds + 2, "tools/call", &params),
                None => b"\n".to_vec(),
            };
            self.figures.add(self.server.call(&line)?);
            self.rounds += 1;
            if self.contender.kind != Kind::Raw {
                self.server.check()?;
            }
        }
        let cpu = self.server.process.cpu()?;
        self.figures.add_cpu(cpu.saturating_sub(self.cpu));
        self.cpu = cpu;
        Ok(())
    }

    /// Whether what should be in the file is there, or in the last answer.
    fn check(&self, operation: &Operation) -> Result<()> {
        if self.contender.kind == Kind::Raw {
            return Ok(());
        }
        let right = match (operation.task, &operation.files) {
            (Task::Edit | Task::EditAt(_) | Task::EditLine(_), Files::One(before)) => {
                let after = before.replace(&scene::mark(0, 0), &scene::mark(0, self.rounds));
                fs::read_to_string(&self.path)? == after
            }
            (Task::Edits, Files::One(before)) => {
                let after = (0..scene::MARKS).fold(before.clone(), |text, at| {
                    text.replace(&scene::mark(at, 0), &scene::mark(at, self.rounds))
                });
                fs::read_to_string(&self.path)? == after
            }
            (Task::Write(size), _) => {
                fs::read_to_string(&self.path)? == scene::written(size, self.rounds - 1)
            }
            (Task::Lines(from, to), Files::One(text)) => {
                let lines: Vec<&str> = text.lines().skip(from).take(to - from + 1).collect();
                says(self.server.answer(), &lines.join("\n"))?
            }
            (_, Files::One(text)) => says(self.server.answer(), text.trim_end())?,
            (_, Files::Many { count, .. }) => {
                memchr::memmem::find_iter(self.server.answer(), "file_0").count() >= *count
            }
        };
        if right { Ok(()) } else { Err(Error::other("what it did is not what was asked for")) }
    }
}

/// Whether that is among what a tool answered, be it in JSON once more.
fn says(answer: &[u8], text: &str) -> Result<bool> {
    let answer: Value = serde_json::from_slice(answer)?;
    let said = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let quoted = Value::from(text).to_string();
    Ok(said.contains(text) || said.contains(quoted.trim_matches('"')))
}

fn can(contender: &Contender, operation: &Operation, path: &Path) -> bool {
    let knows = match contender.kind {
        Kind::Raw => operation.task == Task::Read,
        _ => contender.ask(operation.task, Round { path, number: 0 }).is_some(),
    };
    knows
        && match operation.durability {
            Durability::None => true,
            Durability::Data => contender.kind.is_ours() || contender.kind == Kind::Floor,
            Durability::Full => contender.kind.is_ours(),
        }
}

fn start(
    contender: &Contender,
    operation: &Operation,
    folder: &Path,
    file: &Path,
) -> Result<OnStdio> {
    let mut command = contender.command(folder, operation.durability);
    match contender.kind {
        Kind::Raw => OnStdio::open(command.arg(format!("--raw={}", file.display()))),
        _ => OnStdio::start(&mut command),
    }
}
