//! Random steps, one after another, over several servers of one folder, compared with a simple model: `cargo xtask model`.
//!
//! The model is written from the contracts and the page on behaviour, without a line of the product. All chance comes
//! from one seed, so that a number of steps and a seed are the same run again.

mod compare;
mod faulty;
mod fleet;
mod lines;
mod steps;
mod strings;
mod tools;
mod world;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::folder;
use crate::report::{Row, Scale, grouped};
use fleet::{Ending, Fleet};
use steps::Dice;
use tools::{Call, Tool};
use world::World;

/// Steps before a difference that are shown.
const SHOWN: usize = 12;
/// Steps that are remembered for it.
const REMEMBERED: usize = 2000;
/// The seed that is tried every time.
const SEED: u64 = 1;

/// How often a tool was called, and what came of it.
#[derive(Default)]
struct Tally {
    done: usize,
    refused: usize,
}

struct Run {
    seed: u64,
    folder: TempDir,
    world: World,
    fleet: Fleet,
    dice: Dice,
    /// The last steps, each with its path.
    past: VecDeque<(String, String)>,
    tallies: BTreeMap<Tool, Tally>,
    restarts: usize,
    kills: usize,
    by_others: usize,
}

/// A part of every run of all experiments: one seed that never changes, and one that always does.
pub fn run(scale: Scale) -> Vec<Row> {
    let steps = scale.of(3_000, 20_000);
    vec![row(steps, SEED), row(steps, chance_seed())]
}

/// A seed by the clock.
pub fn chance_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros().try_into().unwrap_or(u64::MAX) % 1_000_000_007
}

/// As many steps, and what was found: one difference ends it, since all that follows would differ too.
pub fn row(steps: usize, seed: u64) -> Row {
    println!("model: {steps} steps, --seed={seed}");
    let since = Instant::now();
    let mut run = Run::new(seed);
    let mut row = Row::new(format!("random steps, `--seed={seed}`"));
    for step in 1..=steps {
        row.tries = step;
        if let Some(difference) = run.step(step) {
            row.bad.push(run.describe(step, &difference));
            break;
        }
    }
    if row.bad.is_empty()
        && let Some(difference) = run.world.difference()
    {
        row.bad.push(run.describe(steps, &difference));
    }
    println!("{} steps in {:.1?}", grouped(row.tries), since.elapsed());
    let found = format!(
        "{}; {} changes by others; {} restarts and {} kills of {} servers; {} differences",
        run.calls(),
        grouped(run.by_others),
        grouped(run.restarts),
        grouped(run.kills),
        run.fleet.len(),
        row.bad.len(),
    );
    row.found(found)
}

impl Run {
    fn new(seed: u64) -> Self {
        let folder = folder::in_memory();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::create_dir(folder.path().join("aside")).unwrap();
        Self {
            seed,
            world: World::new(&root),
            fleet: Fleet::start(&root),
            folder,
            dice: Dice::new(seed),
            past: VecDeque::new(),
            tallies: BTreeMap::new(),
            restarts: 0,
            kills: 0,
            by_others: 0,
        }
    }

    /// The next step; what is different after it.
    fn step(&mut self, step: usize) -> Option<String> {
        if step.is_multiple_of(50)
            && let Some(difference) = self.world.difference()
        {
            return Some(difference);
        }
        match self.dice.below(1000) {
            0..2 => self.restart(step),
            2..90 => {
                self.change_by_another(step);
                None
            }
            _ => {
                let call = self.dice.call(&self.world);
                self.call(step, &call)
            }
        }
    }

    fn restart(&mut self, step: usize) -> Option<String> {
        let which = self.dice.below(self.fleet.len());
        let ending = if self.dice.one_in(2) { Ending::Kill } else { Ending::Order };
        let (count, how) = match ending {
            Ending::Kill => (&mut self.kills, "killed"),
            Ending::Order => (&mut self.restarts, "ended"),
        };
        *count += 1;
        self.remember(step, &format!("{} is {how} and started again", Fleet::name(which)), "");
        let restarted = self.fleet.restart(which, ending);
        restarted.err().map(|why| format!("it did not end well: {why}"))
    }

    fn change_by_another(&mut self, step: usize) {
        let aside = self.folder.path().join("aside");
        let (did, path) = self.dice.outsider(&mut self.world, &aside);
        self.by_others += 1;
        self.remember(step, &format!("somebody else: {path}: {did}"), &path);
    }

    fn call(&mut self, step: usize, call: &Call) -> Option<String> {
        let which = self.dice.below(self.fleet.len());
        let is_new = self.dice.one_in(2);
        // Only HTTP has a header for it.
        let if_match = call.if_match.clone().filter(|_| Fleet::is_http(which));
        let call = Call { if_match, ..call.clone() };
        let condition = call.if_match.as_ref().map(|hash| format!(" If-Match {hash}"));
        let shown = format!(
            "{}: {:?}{} {}",
            Fleet::name(which),
            call.tool,
            condition.unwrap_or_default(),
            short(&call.arguments.to_string())
        );
        self.remember(step, &shown, &call.path);
        let expected = tools::call(&mut self.world, &call);
        let observed = match self.fleet.ask(which, &call, is_new) {
            Ok(observed) => observed,
            Err(why) => return Some(format!("no answer: {why}")),
        };
        let tally = self.tallies.entry(call.tool).or_default();
        match &observed {
            Ok(_) => tally.done += 1,
            Err(_) => tally.refused += 1,
        }
        let difference = compare::difference(&self.world, call.tool, &expected, &observed);
        if difference.is_some() || call.path.is_empty() {
            return difference;
        }
        self.world.difference_at(&call.path)
    }

    fn remember(&mut self, step: usize, what: &str, path: &str) {
        if self.past.len() == REMEMBERED {
            self.past.pop_front();
        }
        self.past.push_back((path.to_owned(), format!("{step}: {what}")));
    }

    /// All there is to look into a difference.
    fn describe(&self, step: usize, difference: &str) -> String {
        let path = self.past.back().map_or("", |(path, _)| path);
        let concerns = |known: &str| path.is_empty() || known.is_empty() || known == path;
        let before = self.past.iter().filter(|(known, _)| concerns(known));
        let mut before: Vec<_> = before.map(|(_, what)| what.as_str()).collect();
        let before = before.split_off(before.len().saturating_sub(SHOWN));
        format!(
            "step {step}: {}\n  again: cargo xtask model {step} --seed={}\n  steps on this file:\n    {}",
            short(difference),
            self.seed,
            before.join("\n    ")
        )
    }

    fn calls(&self) -> String {
        let shown = |(tool, Tally { done, refused }): (&Tool, &Tally)| {
            let kind = if tool.is_plain() { "plain " } else { "" };
            format!(
                "{kind}{} {} ({} done, {} refused)",
                tool.name(),
                grouped(done + refused),
                grouped(*done),
                grouped(*refused)
            )
        };
        self.tallies.iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}

/// As much of it as can be read.
fn short(text: &str) -> String {
    const MOST: usize = 2000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
