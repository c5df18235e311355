//! Checks of the folder and its file system. Everything that edits rely on is tried with a temporary file.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use files::probe::{self, Locality};
use files::{
    Access, Call, Change, DiskOptions, DiskStore, Durability, Durable, FilePath, Root, Sandbox,
    Saved, Stop, Store, StoreError, machine,
};

use super::check::Check;
use crate::flags;

/// Free bytes below which the next edit may fail.
const LITTLE: u64 = 100 << 20;
/// Time that an edit may wait for the disk without a warning.
const SLOW: Duration = Duration::from_millis(100);
const TIME: Duration = Duration::from_secs(10);
/// Time that another server waits for the lock in the trial.
const PATIENCE: Duration = Duration::from_millis(200);

/// Runs all checks of the folder. `access`: that of the server.
pub fn all(named: &OsStr, access: Access) -> Vec<Check> {
    if named.is_empty() {
        let help = "Name one with --dir=PATH, or leave out --dir for the current one";
        return vec![Check::fault("folder", "--dir names none", help)];
    }
    let root = match flags::folder(Some(named), Access::ReadOnly) {
        Ok(root) => root,
        // On Linux a folder can be opened without read permission, which is found later.
        Err(fault) if machine::is_folder(Path::new(named)) => {
            let help = "Give the user who runs the server the right to read it";
            return vec![Check::fault("folder", fault, help)];
        }
        Err(fault) => {
            return vec![Check::fault("folder", fault, "Name one that exists with --dir=PATH")];
        }
    };
    if probe::file_system(&root).is_virtual() {
        return vec![file_system(&root)];
    }
    let mut checks = vec![rights(&root, access), space(&root), file_system(&root)];
    if access == Access::ReadWrite && root.is_writable() {
        let leftovers = leftovers(&root);
        checks.extend(Trial::of(&root).map_or_else(|fault| vec![fault], |trial| trial.run()));
        checks.extend([other_programs(&root), unnamed_files(&root), hard_links(&root), leftovers]);
    }
    checks.push(sandbox(&root, access));
    checks
}

fn rights(root: &Root, access: Access) -> Check {
    let path = root.path().display();
    if let Err(error) = probe::count_leftovers(root) {
        return Check::fault(
            "folder",
            format!("{path} cannot be listed: {error}"),
            "Give the user who runs the server the right to read it",
        );
    }
    if root.is_writable() {
        return Check::ok("folder", format!("{path} can be read and written"));
    }
    if access == Access::ReadOnly {
        return Check::ok("folder", format!("{path} can be read, which is all that is wanted"));
    }
    Check::fault(
        "folder",
        format!("{path} can be read, but nothing can be written"),
        if probe::is_mounted_read_only(root) {
            "Mount its file system for writing, or serve it with --read-only"
        } else {
            "Give the user who runs the server the right to write, or serve it with --read-only"
        },
    )
}

fn space(root: &Root) -> Check {
    match probe::free_bytes(root) {
        None => Check::ok("space", "this system does not tell how much is free"),
        Some(free) if free < LITTLE => Check::warning(
            "space",
            format!("{} MB are free", free >> 20),
            "Make room: an edit needs as much as the file it edits, and is refused without it",
        ),
        Some(free) => Check::ok("space", format!("{} MB are free", free >> 20)),
    }
}

fn file_system(root: &Root) -> Check {
    let found = probe::file_system(root);
    if found.is_virtual() {
        return Check::fault(
            "file system",
            format!("{} has no files; the kernel makes up what is seen there", found.name),
            "Serve a folder with files, which --dir=PATH names",
        );
    }
    match found.locality {
        Locality::Network => Check::warning(
            "file system",
            format!("{} may be shared with other machines", found.name),
            "Locks keep servers on this machine apart; whether they reach other machines is for its server to say. Let \
             only one machine edit these files",
        ),
        Locality::Local => {
            Check::ok("file system", format!("{}, of this machine alone", found.name))
        }
        Locality::Unknown => Check::ok("file system", found.name),
    }
}

fn unnamed_files(root: &Root) -> Check {
    Check::ok(
        "temporary files",
        if probe::has_unnamed_files(root) {
            "have no name, so a killed server leaves none"
        } else {
            "have names here; what a killed server leaves goes with the next edit"
        },
    )
}

fn hard_links(root: &Root) -> Check {
    match probe::has_hard_links(root) {
        Ok(true) => Check::ok("hard links", "supported"),
        Ok(false) => {
            Check::ok("hard links", "not supported; new files are made by renaming instead")
        }
        Err(error) => Check::fault(
            "hard links",
            format!("no file could be made to find out: {error}"),
            "See whether files can be made in the folder by hand",
        ),
    }
}

/// Checks whether a change by a program that does not use the lock is kept while a file is replaced.
fn other_programs(root: &Root) -> Check {
    let what = "other programs";
    let support = match probe::replace_support(root) {
        Ok(support) => support,
        Err(error) => {
            let help = "See whether files can be made in the folder by hand";
            return Check::fault(what, format!("no file could be made to find out: {error}"), help);
        }
    };
    let seen = match (support.leases, support.exchange) {
        (true, true) => {
            let seen = "read leases and exchanges: supported; what they save while a file is replaced is kept";
            return Check::ok(what, seen);
        }
        (true, false) => {
            "exchanges: not supported; a file that is renamed in the moment of replacement is overwritten"
        }
        (false, true) => {
            "read leases: not supported; what a program writes into a file that it has open may be lost"
        }
        (false, false) => {
            "read leases and exchanges: not supported; what they save in the moment of replacement may be lost"
        }
    };
    if cfg!(target_os = "linux") {
        let help = "Close a file elsewhere before agents edit it here, or serve a folder on a local file system";
        return Check::warning(what, seen, help);
    }
    Check::ok(what, seen)
}

/// Counts leftover temporary files and removes them. Called before anything is written, since a write removes them too.
fn leftovers(root: &Root) -> Check {
    let count = || probe::count_leftovers(root).unwrap_or_default();
    let before = count();
    if before == 0 {
        return Check::ok("leftovers", "killed servers left nothing in the folder");
    }
    if let Ok(own) = Root::open(root.path()) {
        store(own, Durability::None).sweep_root();
    }
    let after = count();
    if after == 0 {
        return Check::ok("leftovers", format!("{before} of killed servers were taken away"));
    }
    Check::warning(
        "leftovers",
        format!("{after} temporary files (`.fe-*.tmp`) are in use, or not ours to take away"),
        "If no server runs, remove them as the user they belong to",
    )
}

/// Enters the sandbox on a thread of its own, since it cannot be left.
fn sandbox(root: &Root, access: Access) -> Check {
    let entered = thread::scope(|scope| scope.spawn(|| Sandbox::enter(root, access)).join());
    match entered {
        Ok(Sandbox::Landlock) => Check::ok("sandbox", "the kernel keeps the server in its folder"),
        Ok(Sandbox::Partly) => Check::warning(
            "sandbox",
            "the kernel keeps a part of it",
            "Linux 6.12 or newer keeps all of it; until then the server's own checks do",
        ),
        Ok(Sandbox::Failed(why)) => Check::warning(
            "sandbox",
            format!("the kernel refused it: {why}"),
            "The server's own checks keep it in its folder; --no-sandbox says that this is wanted",
        ),
        Ok(Sandbox::Off | Sandbox::Unavailable) | Err(_) if cfg!(target_os = "linux") => {
            Check::warning(
                "sandbox",
                "the kernel has none",
                "Linux has one since 5.13, if Landlock is switched on; without it the server's own checks keep it in \
                 its folder",
            )
        }
        Ok(_) | Err(_) => Check::ok(
            "sandbox",
            "this system has none; the server's own checks keep it in its folder",
        ),
    }
}

fn store(root: Root, durability: Durability) -> DiskStore {
    DiskStore::open(Arc::new(root), DiskOptions { max_size: 1 << 20, durability })
}

fn call(time: Duration) -> Call {
    Call::until(Instant::now() + time)
}

/// A temporary file, edited as a server would, by two stores that act as two servers.
struct Trial {
    ours: DiskStore,
    theirs: DiskStore,
    at: FilePath,
    /// True if the file system is in memory.
    is_memory: bool,
}

impl Trial {
    fn of(root: &Root) -> Result<Trial, Check> {
        let failed = |why: &dyn std::fmt::Display| {
            Check::fault("edits", format!("could not be tried: {why}"), "Look at the folder")
        };
        let open = || Root::open(root.path()).map_err(|error| failed(&error));
        let at = FilePath::flat(&format!(".file-editor-doctor-{}", std::process::id()));
        Ok(Trial {
            ours: store(open()?, Durability::Full),
            theirs: store(open()?, Durability::None),
            at: at.map_err(|error| failed(&error))?,
            is_memory: probe::file_system(root).is_memory(),
        })
    }

    fn run(&self) -> Vec<Check> {
        let made = match self.write("one", Expected::Missing) {
            Ok(made) => made,
            Err(error) => return vec![unwritten(&error)],
        };
        let mut checks = vec![self.replacing(), self.locking(), self.syncing(&made)];
        if let Err(error) = self.change(&self.ours, TIME, &Change::Remove) {
            checks.push(Check::warning(
                "edits",
                format!("the file {} could not be removed again: {error}", self.at),
                "Remove it by hand",
            ));
        }
        checks
    }

    fn replacing(&self) -> Check {
        let read = |_| self.theirs.read(&self.at, &call(TIME));
        match self.write("two", Expected::Present).and_then(read) {
            Ok(Some(version)) if **version.bytes == *b"two" => {
                Check::ok("replacing", "a file is replaced in one step, old or new and never torn")
            }
            Ok(_) => Check::fault(
                "replacing",
                "a file that was replaced does not have its new text",
                "Edits are not safe on this file system: serve a folder on another one",
            ),
            Err(error) => unwritten(&error),
        }
    }

    fn locking(&self) -> Check {
        let others = RefCell::new(None);
        let mut change = |_: &[Option<files::Version>]| {
            *others.borrow_mut() =
                Some(self.change(&self.theirs, PATIENCE, &Change::write("three")));
            Ok(vec![Change::Keep])
        };
        let paths = std::slice::from_ref(&self.at);
        let held = self.ours.update(paths, &call(TIME), &mut change);
        let others = others.into_inner();
        match (held, others) {
            (Ok(_), Some(Err(StoreError::LockTimeout { .. } | StoreError::TimedOut))) => {
                Check::ok("locks", "whoever holds a file keeps others out, so no edit is lost")
            }
            (Err(StoreError::NoLocks { file_system }), _) => Check::fault(
                "locks",
                format!("the file system ({file_system}) has none, so every edit is refused"),
                "Mount it with locks, or serve a folder on another file system",
            ),
            (Err(error), _) => unwritten(&error),
            (Ok(_), _) => Check::fault(
                "locks",
                "a file that is locked is edited by others all the same",
                "Let only one server edit these files, or serve a folder on another file system",
            ),
        }
    }

    fn syncing(&self, made: &Saved) -> Check {
        if made.durable == Durable::Unknown {
            return Check::warning(
                "syncing",
                "the folder cannot be synced",
                "A power cut may lose the last edits, and never tears a file",
            );
        }
        if self.is_memory {
            return Check::warning(
                "syncing",
                "the folder is in memory, and so is every edit: nothing of it survives a restart",
                "Serve a folder on a disk if its files are to last",
            );
        }
        let mut times = Vec::new();
        for text in ["four", "five", "six"] {
            let began = Instant::now();
            if let Err(error) = self.write(text, Expected::Present) {
                return unwritten(&error);
            }
            times.push(began.elapsed());
        }
        times.sort();
        let seen = format!("an edit is on the disk after {:.1} ms", times[1].as_secs_f64() * 1e3);
        if times[1] < SLOW {
            return Check::ok("syncing", seen);
        }
        let help = "A faster disk helps, or --durability=none, with which a power cut may lose the last edits";
        Check::warning("syncing", seen, help)
    }

    fn write(&self, text: &str, expected: Expected) -> Result<Saved, StoreError> {
        let mut change = |versions: &[Option<files::Version>]| {
            let is_there = versions.iter().any(Option::is_some);
            // Another file of this name is left alone.
            if is_there == (expected == Expected::Present) {
                Ok(vec![Change::write(text)])
            } else {
                Err(Stop)
            }
        };
        let saved = self.ours.update(std::slice::from_ref(&self.at), &call(TIME), &mut change)?;
        saved.into_iter().next().ok_or(StoreError::Unconfirmed)
    }

    fn change(&self, store: &DiskStore, time: Duration, new: &Change) -> Result<(), StoreError> {
        let paths = std::slice::from_ref(&self.at);
        store.update(paths, &call(time), &mut |_| Ok(vec![new.clone()])).map(drop)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Missing,
    Present,
}

fn unwritten(error: &StoreError) -> Check {
    let help = match error {
        StoreError::DiskFull => "Make room",
        StoreError::ReadOnly => "Mount it for writing, or serve it with --read-only",
        StoreError::NoLocks { .. } => "Mount it with locks, or serve another file system",
        StoreError::Write { doing: "sync", .. } => {
            "The disk does not take what it is given; --durability=none does not wait for it"
        }
        _ => "See whether a file can be made and renamed in the folder by hand",
    };
    Check::fault("edits", format!("a file cannot be edited: {error}"), help)
}
