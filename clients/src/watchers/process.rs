//! A process that watches a folder and reports events, a batch a line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::Vocabulary;
use crate::Outcome;
use crate::install::Npm;
use crate::program::{self, PATIENCE, Program};

/// Kinds of events of one file that were reported together, as the watcher calls them.
pub type Batch = Vec<String>;

/// Events that were reported together: the kind, and the path below the watched folder.
type Events = Vec<(String, String)>;

pub struct Watcher {
    program: Program,
    folder: PathBuf,
    parse: fn(&str) -> Option<Events>,
    /// True if it takes a line, and answers when its timers have run.
    has_timers: bool,
    /// The batches reported, less the events that were taken.
    batches: Vec<Events>,
}

impl Watcher {
    /// Starts a watcher of the npm registry.
    pub fn of_npm(npm: &Npm, adapter: &Path, name: &str, folder: &Path) -> Outcome<Self> {
        let mut command = program::client(&npm.node);
        let watcher = Self::of_adapter(command.arg(adapter).arg(name), folder)?;
        Ok(Self { has_timers: true, ..watcher })
    }

    /// Starts the watcher of `watchfiles`.
    pub fn of_python(python: &Path, folder: &Path) -> Outcome<Self> {
        let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("adapters/watch.py");
        Self::of_adapter(program::client(python).arg(adapter), folder)
    }

    fn of_adapter(command: &mut Command, folder: &Path) -> Outcome<Self> {
        // They would look at the files from time to time instead.
        command.env_remove("CHOKIDAR_USEPOLLING").env_remove("WATCHFILES_FORCE_POLLING");
        Self::start(command, folder, |line| serde_json::from_str(line).ok(), "[]")
    }

    /// Starts inotifywait.
    pub fn inotifywait(program: &Path, folder: &Path) -> Outcome<Self> {
        let mut command = Command::new("sh");
        // It says on its standard error when it watches.
        command.args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(program);
        command.args(["--monitor", "--recursive", "--format=%e %w%f"]);
        for event in ["modify", "close_write", "moved_from", "moved_to", "create", "delete"] {
            command.arg(format!("--event={event}"));
        }
        let parse = |line: &str| {
            let (kind, path) = line.split_once(' ')?;
            Some(vec![(kind.into(), path.into())])
        };
        Self::start(&mut command, folder, parse, "Watches established.")
    }

    /// Starts the command with the folder as its last argument, and waits for the line that says that it watches.
    fn start(
        command: &mut Command,
        folder: &Path,
        parse: fn(&str) -> Option<Events>,
        ready: &str,
    ) -> Outcome<Self> {
        let folder = folder.canonicalize()?;
        let mut program = Program::start(command.arg(&folder), Instant::now() + PATIENCE)?;
        while program.hear()? != ready {}
        Ok(Self { program, folder, parse, has_timers: false, batches: Vec::new() })
    }

    /// Waits until an event of the file is reported whose kind is asked for.
    pub fn wait_for(&mut self, name: &str, is_asked_for: impl Fn(&str) -> bool) -> Outcome<()> {
        let is_it = |(kind, of): &(String, String)| of == name && is_asked_for(kind);
        while !self.batches.iter().flatten().any(is_it) {
            self.read_batch()?;
        }
        Ok(())
    }

    /// Waits until nothing is held back, and nothing of what comes next is left out for what came before.
    pub fn wait_for_timers(&mut self) -> Outcome<()> {
        if self.has_timers {
            self.program.say("")?;
            while self.read_batch()? > 0 {}
        }
        Ok(())
    }

    /// Reads one batch. Returns the number of its events.
    fn read_batch(&mut self) -> Outcome<usize> {
        let line = self.program.hear()?;
        let Some(mut events) = (self.parse)(&line) else {
            return Err(self.program.wrong(&format!("it reports {line}")));
        };
        for (_, path) in &mut events {
            if let Ok(below) = Path::new(path.as_str()).strip_prefix(&self.folder) {
                *path = below.display().to_string();
            }
        }
        let count = events.len();
        self.batches.push(events);
        Ok(count)
    }

    /// Takes the events of a file.
    pub fn take(&mut self, name: &str) -> Vec<Batch> {
        let of_file = |events: &mut Events| {
            let events = events.extract_if(.., |(_, of)| of == name);
            events.map(|(kind, _)| kind).collect::<Batch>()
        };
        let batches = self.batches.iter_mut().map(of_file);
        batches.filter(|batch| !batch.is_empty()).collect()
    }

    /// Names whose creation was reported last, of files that are gone. Call it once all that is there was taken.
    pub fn stale_names(&self, words: &Vocabulary) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for events in &self.batches {
            // A set is in no order: what it says was removed, is.
            let of_kind = |kinds: &'static [&str]| {
                let events = events.iter().filter(|(kind, _)| kinds.contains(&kind.as_str()));
                events.map(|(_, name)| name.clone())
            };
            names.extend(of_kind(words.added));
            for name in of_kind(words.removed) {
                names.remove(&name);
            }
        }
        names
    }
}
