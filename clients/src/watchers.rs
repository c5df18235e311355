//! File watchers on a folder that the server edits: each must report one change of an edited file, and a file that is
//! there.
//!
//! The server replaces a file by an exchange of names, which inotify reports as two moves: the file goes, and comes back.
//! As a control, the same edits are made by renaming a new file over the old one, as most editors save.

mod process;
mod writers;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use crate::codex::ensure;
use crate::install;
use crate::scene::Scene;
use crate::{Outcome, Row, Trouble};

use process::{Batch, Watcher};
use writers::{PROTOCOL, Renaming, Server, Writer};

pub const CHOKIDAR: &str = "chokidar@6.0.0";
/// Still the most common one by far.
pub const CHOKIDAR_3: &str = "chokidar@3.6.0";
pub const PARCEL: &str = "@parcel/watcher@2.6.0";
pub const WATCHFILES: &str = "watchfiles==1.3.0";
/// In the version of the system.
pub const INOTIFYWAIT: &str = "inotifywait";

/// A folder below the watched one, and the files in it.
const SUBFOLDER: &str = "sub";
const EDITED: &str = "sub/notes.txt";
const CREATED: &str = "sub/new.txt";

/// Edits with a pause after each, before and after those without.
const PAUSED: usize = 5;
const UNPAUSED: usize = 20;

/// The events of a watcher, in its own words, and the rule for an edit.
#[derive(Clone, Copy)]
struct Vocabulary {
    added: &'static [&'static str],
    changed: &'static [&'static str],
    removed: &'static [&'static str],
    edit: EditRule,
}

/// The events that a watcher must report of an edit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EditRule {
    /// One event: the file changed.
    OneChange,
    /// One set of changes, in no order: the file is new or changed. It may say besides that it was removed.
    OneSet,
    /// Events in the order of the system; the last one says that the file is there.
    LastIsThere,
}

const CHOKIDAR_WORDS: Vocabulary = Vocabulary {
    added: &["add"],
    changed: &["change"],
    removed: &["unlink"],
    edit: EditRule::OneChange,
};
const PARCEL_WORDS: Vocabulary = Vocabulary {
    added: &["create"],
    changed: &["update"],
    removed: &["delete"],
    edit: EditRule::OneChange,
};
const WATCHFILES_WORDS: Vocabulary = Vocabulary {
    added: &["added"],
    changed: &["modified"],
    removed: &["deleted"],
    edit: EditRule::OneSet,
};
const INOTIFYWAIT_WORDS: Vocabulary = Vocabulary {
    added: &["CREATE", "MOVED_TO"],
    changed: &["MODIFY", "CLOSE_WRITE,CLOSE"],
    removed: &["MOVED_FROM", "DELETE"],
    edit: EditRule::LastIsThere,
};

pub fn chokidar(scene: &Scene) -> Outcome<Vec<Row>> {
    drive_npm(scene, CHOKIDAR, "chokidar", CHOKIDAR_WORDS)
}

pub fn chokidar_3(scene: &Scene) -> Outcome<Vec<Row>> {
    drive_npm(scene, CHOKIDAR_3, "chokidar", CHOKIDAR_WORDS)
}

pub fn parcel(scene: &Scene) -> Outcome<Vec<Row>> {
    drive_npm(scene, PARCEL, "parcel", PARCEL_WORDS)
}

pub fn watchfiles(scene: &Scene) -> Outcome<Vec<Row>> {
    check_system()?;
    let python = install::python(&[WATCHFILES])?;
    Ok(drive(scene, WATCHFILES_WORDS, |folder| Watcher::of_python(&python, folder)))
}

pub fn inotifywait(scene: &Scene) -> Outcome<Vec<Row>> {
    check_system()?;
    let program = install::apt(INOTIFYWAIT, "inotify-tools")?;
    Ok(drive(scene, INOTIFYWAIT_WORDS, |folder| Watcher::inotifywait(&program, folder)))
}

fn drive_npm(scene: &Scene, package: &str, name: &str, words: Vocabulary) -> Outcome<Vec<Row>> {
    check_system()?;
    let npm = install::npm(&[package])?;
    // Node looks for packages beside the program, so the program goes where they are.
    let adapter = npm.folder.join("watch.mjs");
    fs::write(&adapter, include_str!("../adapters/watch.mjs"))?;
    Ok(drive(scene, words, |folder| Watcher::of_npm(&npm, &adapter, name, folder)))
}

fn check_system() -> Outcome<()> {
    if cfg!(target_os = "linux") {
        return Ok(());
    }
    Err(Trouble::NotRun("it is checked on Linux, with inotify".into()))
}

/// Watches the server, and at the same time the renaming; a row for both.
fn drive(
    scene: &Scene,
    words: Vocabulary,
    watch: impl Fn(&Path) -> Outcome<Watcher> + Sync,
) -> Vec<Row> {
    let of_server = || {
        prepare(scene)?;
        let watcher = watch(scene.folder())?;
        let writer = Server::start(scene)?;
        Run { scene, words, writer, watcher, edits: 0, markers: 0 }.observe()
    };
    let of_renaming = || {
        let scene = &Scene::new(&scene.binary)?;
        prepare(scene)?;
        let watcher = watch(scene.folder())?;
        Run { scene, words, writer: Renaming::default(), watcher, edits: 0, markers: 0 }.observe()
    };
    let (server, renaming) = thread::scope(|scope| {
        let renaming = scope.spawn(of_renaming);
        (of_server(), renaming.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    vec![Row { transport: "stdio", protocol: PROTOCOL, did: compare(words, server, renaming) }]
}

/// Checks what was reported of the server, and shows what was reported of the renaming beside it.
fn compare(
    words: Vocabulary,
    server: Outcome<Observed>,
    renaming: Outcome<Observed>,
) -> Outcome<String> {
    let renaming = renaming.map_err(|trouble| trouble.at("rename over"))?.show(words);
    let checked = server.and_then(|server| {
        let shown = server.show(words);
        server
            .check(words)
            .map(|()| shown.clone())
            .map_err(|why| Trouble::Wrong(why + "\n" + &shown))
    });
    match checked {
        Ok(shown) => Ok(format!("{shown}. Rename over: {renaming}")),
        Err(Trouble::Wrong(why)) => Err(Trouble::Wrong(format!("{why}\nrename over: {renaming}"))),
        Err(trouble) => Err(trouble),
    }
}

fn prepare(scene: &Scene) -> Outcome<()> {
    fs::create_dir(scene.path(SUBFOLDER))?;
    scene.put(EDITED, &text(0))
}

/// The line that every edit replaces, after that many edits.
fn line(edits: usize) -> String {
    format!("edit {edits}\n")
}

/// The text of the edited file after that many edits.
fn text(edits: usize) -> String {
    format!("first\n{}last\n", line(edits))
}

/// The reports of a watcher.
struct Observed {
    /// Batches of events of the edited file, for each edit with a pause.
    paused: Vec<Vec<Batch>>,
    /// Batches of events of the edited file, for all edits without a pause.
    unpaused: Vec<Batch>,
    created: Vec<Batch>,
    /// Names of other files whose creation was reported, and not that they are gone.
    stale: BTreeSet<String>,
}

/// One writer, observed by one watcher.
struct Run<'a, W> {
    scene: &'a Scene,
    words: Vocabulary,
    writer: W,
    watcher: Watcher,
    edits: usize,
    markers: usize,
}

impl<W: Writer> Run<'_, W> {
    fn observe(mut self) -> Outcome<Observed> {
        let mut paused = Vec::new();
        for _ in 0..PAUSED {
            paused.push(self.edit_and_wait()?);
        }
        for _ in 0..UNPAUSED {
            self.edit()?;
        }
        self.settle()?;
        let unpaused = self.watcher.take(EDITED);
        self.check_text()?;
        for _ in 0..PAUSED {
            paused.push(self.edit_and_wait()?);
        }
        self.check_text()?;
        self.writer.create(&self.scene.path(CREATED), "new\n")?;
        self.watcher.wait_for(CREATED, |_| true).map_err(|trouble| trouble.at("a new file"))?;
        self.settle()?;
        let created = self.watcher.take(CREATED);
        let files = fs::read_dir(self.scene.path(SUBFOLDER))?.count();
        ensure(files == 2, || format!("there are {files} files, not 2"))?;
        let stale = self.watcher.stale_names(&self.words);
        Ok(Observed { paused, unpaused, created, stale })
    }

    fn edit(&mut self) -> Outcome<()> {
        let path = self.scene.path(EDITED);
        self.writer.edit(&path, &line(self.edits), &line(self.edits + 1))?;
        self.edits += 1;
        Ok(())
    }

    fn edit_and_wait(&mut self) -> Outcome<Vec<Batch>> {
        self.edit()?;
        let at = |trouble: Trouble| trouble.at(&format!("edit {}", self.edits));
        self.watcher.wait_for(EDITED, |_| true).map_err(at)?;
        self.settle()?;
        Ok(self.watcher.take(EDITED))
    }

    /// Waits until all that has happened is reported: a file that comes and goes is reported after it.
    fn settle(&mut self) -> Outcome<()> {
        let Vocabulary { added, removed, .. } = self.words;
        self.markers += 1;
        let name = format!("{SUBFOLDER}/marker-{}", self.markers);
        let at = |trouble: Trouble| trouble.at(&name);
        self.scene.put(&name, "marker\n")?;
        self.watcher.wait_for(&name, |kind| added.contains(&kind)).map_err(at)?;
        fs::remove_file(self.scene.path(&name))?;
        self.watcher.wait_for(&name, |kind| removed.contains(&kind)).map_err(at)?;
        self.watcher.take(&name);
        self.watcher.wait_for_timers().map_err(at)
    }

    fn check_text(&self) -> Outcome<()> {
        let (found, expected) = (self.scene.text(EDITED)?, text(self.edits));
        ensure(found == expected, || format!("{EDITED} holds {found:?}, not {expected:?}"))
    }
}

impl Observed {
    /// Checks what must hold of a file that the server edits.
    fn check(&self, words: Vocabulary) -> Result<(), String> {
        let is_any_wrong = self.paused.iter().any(|batches| !words.is_one_edit(batches));
        if is_any_wrong {
            return Err("an edit was not reported as one change of a file that is there".into());
        }
        if !self.unpaused.last().is_some_and(|batch| words.is_there_after(batch)) {
            return Err("after edits without a pause the file was reported as removed".into());
        }
        if !words.is_one_creation(&self.created) {
            return Err("a new file was not reported as one".into());
        }
        Ok(())
    }

    fn show(&self, words: Vocabulary) -> String {
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for batches in &self.paused {
            let shown = words.show(batches);
            match kinds.iter_mut().find(|(kind, _)| *kind == shown) {
                Some((_, count)) => *count += 1,
                None => kinds.push((shown, 1)),
            }
        }
        let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{count} × {kind}")).collect();
        let reports = match self.unpaused.len() {
            1 => "1 report".into(),
            count => format!("{count} reports"),
        };
        let last = self.unpaused.last().map(|batch| words.show_last(batch)).unwrap_or_default();
        let mut shown = format!(
            "{} edits: {}; {UNPAUSED} at once: {reports}, the last {last}; new file: {}",
            self.paused.len(),
            kinds.join(", "),
            words.show(&self.created)
        );
        if !self.stale.is_empty() {
            let count = self.stale.len();
            let _ = write!(shown, "; temporary names reported as new, never as gone: {count}");
        }
        shown
    }
}

impl Vocabulary {
    /// True if the events are what one edit must be reported as.
    fn is_one_edit(&self, batches: &[Batch]) -> bool {
        match (self.edit, batches) {
            (EditRule::OneChange, [batch]) => is_one_of(self.changed, batch),
            (EditRule::OneSet, [batch]) | (EditRule::LastIsThere, [.., batch]) => {
                self.is_there_after(batch)
            }
            _ => false,
        }
    }

    /// True if the events are what one new file must be reported as.
    fn is_one_creation(&self, batches: &[Batch]) -> bool {
        match batches {
            [batch] => is_one_of(self.added, batch),
            // Its contents may follow.
            [batch, rest @ ..] if self.edit == EditRule::LastIsThere => {
                is_one_of(self.added, batch)
                    && rest.iter().all(|batch| is_one_of(self.changed, batch))
            }
            _ => false,
        }
    }

    /// True if the file is there according to the last event, or to any of a set.
    fn is_there_after(&self, batch: &Batch) -> bool {
        let is_there = |kind: &String| !self.removed.contains(&kind.as_str());
        match self.edit {
            EditRule::OneSet => batch.iter().any(is_there),
            _ => batch.last().is_some_and(is_there),
        }
    }

    fn show(&self, batches: &[Batch]) -> String {
        let shown: Vec<_> = batches.iter().map(|batch| self.show_batch(batch)).collect();
        shown.join(", ")
    }

    fn show_last(&self, batch: &Batch) -> String {
        match self.edit {
            EditRule::OneSet => self.show_batch(batch),
            _ => batch.last().cloned().unwrap_or_default(),
        }
    }

    fn show_batch(&self, batch: &Batch) -> String {
        match self.edit {
            EditRule::OneSet => {
                let mut kinds = batch.clone();
                kinds.sort_unstable();
                format!("{{{}}}", kinds.join(", "))
            }
            _ => batch.join(", "),
        }
    }
}

/// True if the batch is one event of these kinds.
fn is_one_of(kinds: &[&str], batch: &Batch) -> bool {
    matches!(batch.as_slice(), [kind] if kinds.contains(&kind.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(kinds: &[&[&str]]) -> Vec<Batch> {
        kinds.iter().map(|batch| batch.iter().map(ToString::to_string).collect()).collect()
    }

    #[test]
    fn an_edit_is_one_change_of_a_file_that_is_there() {
        for (words, kinds, expected) in [
            (CHOKIDAR_WORDS, &[&["change"][..]][..], true),
            (CHOKIDAR_WORDS, &[&["change"], &["change"]], false),
            (CHOKIDAR_WORDS, &[&["unlink"], &["add"]], false),
            (CHOKIDAR_WORDS, &[&["add"]], false),
            (PARCEL_WORDS, &[&["update"]], true),
            (PARCEL_WORDS, &[&["delete"]], false),
            (PARCEL_WORDS, &[], false),
            (WATCHFILES_WORDS, &[&["modified"]], true),
            (WATCHFILES_WORDS, &[&["added", "deleted"]], true),
            (WATCHFILES_WORDS, &[&["deleted"]], false),
            (WATCHFILES_WORDS, &[&["deleted"], &["added"]], false),
            (INOTIFYWAIT_WORDS, &[&["MOVED_FROM"], &["MOVED_TO"]], true),
            (INOTIFYWAIT_WORDS, &[&["MOVED_TO"], &["MOVED_FROM"]], false),
            (INOTIFYWAIT_WORDS, &[&["MOVED_TO"], &["DELETE"]], false),
        ] {
            assert_eq!(words.is_one_edit(&batches(kinds)), expected, "{kinds:?}");
        }
    }
}
