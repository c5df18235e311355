//! `codex-cli-acp` with the real Codex, a scripted model behind it and a scripted editor in front.
//!
//! Each scenario has a folder, a home, a model, an agent and an editor of its own, plays for the kinds of models it is
//! about, and leaves no process behind. What passes between editor and agent is held against what is always true.

mod accidents;
mod accounts;
pub mod acpx;
mod cancels;
mod commands;
mod contract;
mod editor;
mod edits;
mod endurance;
mod mind;
mod permissions;
mod secrets;
mod servers;
mod sessions;
mod shows;
mod stage;
mod stores;
mod strangers;
mod typing;
mod wire;
pub mod yopo;

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use crate::pattern::difference;
use crate::scene::Scene;
use crate::{Outcome, Row, Trouble};
use mind::Mind;
use stage::{Cast, Stage};

pub const SHOWN: &str = "a scripted ACP editor, @openai/codex@0.166.0";

/// The version of ACP.
const PROTOCOL: &str = "1";

/// How many play at the same time: they wait more than they work.
const AT_ONCE: usize = 3;

/// Something that happens between an editor, the agent and Codex.
struct Scenario {
    /// What is true of it, as a sentence.
    name: &'static str,
    /// With which kinds of models.
    minds: &'static [Mind],
    play: fn(&mut Stage) -> Outcome<()>,
}

const THEMES: &[&[Scenario]] = &[
    edits::SCENARIOS,
    stores::SCENARIOS,
    permissions::SCENARIOS,
    typing::SCENARIOS,
    endurance::SCENARIOS,
    cancels::SCENARIOS,
    accidents::SCENARIOS,
    strangers::SCENARIOS,
    contract::SCENARIOS,
    sessions::SCENARIOS,
    servers::SCENARIOS,
    shows::SCENARIOS,
    commands::SCENARIOS,
    secrets::SCENARIOS,
    accounts::SCENARIOS,
];

pub fn drive(scene: &Scene) -> Outcome<Vec<Row>> {
    let cast = Cast::gather(scene)?;
    // For whoever works on one of them: only those with this in their name.
    let wanted = std::env::var("SCENARIO").unwrap_or_default();
    let all = THEMES.iter().copied().flatten();
    let all: Vec<_> = all.filter(|scenario| scenario.name.contains(&wanted)).collect();
    if all.is_empty() {
        return Err(Trouble::Wrong(format!("no scenario has {wanted:?} in its name")));
    }
    let next = AtomicUsize::new(0);
    let mut played = thread::scope(|scope| {
        let play = || {
            let mut rows = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(scenario) = all.get(number) else { return rows };
                rows.push((number, scenario.row(&cast)));
            }
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(play)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Vec<_>>| {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect::<Vec<_>>()
    });
    played.sort_by_key(|(number, _)| *number);
    Ok(played.into_iter().map(|(_, row)| row).collect())
}

impl Scenario {
    fn row(&self, cast: &Cast) -> Row {
        let played = self.minds.iter().try_for_each(|mind| {
            let played = self.play(cast, *mind);
            played.map_err(|trouble| trouble.at(&format!("{}; {}", self.name, mind.shown())))
        });
        let minds: Vec<_> = self.minds.iter().map(|mind| mind.shown()).collect();
        let did = played.map(|()| format!("{}; {}", self.name, minds.join(", ")));
        Row { transport: "stdio", protocol: PROTOCOL, did }
    }

    fn play(&self, cast: &Cast, mind: Mind) -> Outcome<()> {
        let mut stage = Stage::new(cast, mind)?;
        let played = (self.play)(&mut stage);
        match (played, stage.end()) {
            (Err(Trouble::Wrong(one)), Err(Trouble::Wrong(other))) => {
                Err(Trouble::Wrong(format!("{one}\n{other}")))
            }
            (played, ended) => played.and(ended),
        }
    }
}

/// What is found is as expected; an object may have more.
fn expect(expected: &Value, found: &Value) -> Outcome<()> {
    match difference(expected, found) {
        None => Ok(()),
        Some(difference) => Err(Trouble::Wrong(format!("{difference}\nin {found}"))),
    }
}
