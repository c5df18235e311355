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
        let help = "Name a folder with --dir=PATH, or omit --dir for the current one";
        return vec![Check::fault("folder", "--dir is empty", help)];
    }
    let root = match flags::folder(Some(named), Access::ReadOnly) {
        Ok(root) => root,
        // On Linux a folder can be opened without read permission, which is found later.
        Err(fault) if machine::is_folder(Path::new(named)) => {
            let help = "Give the user who runs the server permission to read it";
            return vec![Check::fault("folder", fault, help)];
        }
        Err(fault) => {
            return vec![Check::fault("folder", fault, "Name an existing folder with --dir=PATH")];
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
            "Give the user who runs the server permission to read it",
        );
    }
    if root.is_writable() {
        return Check::ok("folder", format!("{path} can be read and written"));
    }
    if access == Access::ReadOnly {
        return Check::ok("folder", format!("{path} can be read; --read-only needs no more"));
    }
    Check::fault(
        "folder",
        format!("{path} can be read but not written"),
        if probe::is_mounted_read_only(root) {
            "Mount its file system for writing, or serve it with --read-only"
        } else {
            "Give the user who runs the server permission to write, or serve it with --read-only"
        },
    )
}

fn space(root: &Root) -> Check {
    match probe::free_bytes(root) {
        None => Check::ok("space", "the free space is unknown on this system"),
        Some(free) if free < LITTLE => Check::warning(
            "space",
            format!("{} MB free", free >> 20),
            "Free some space: an edit needs as much as the size of its file, and is refused without it",
        ),
        Some(free) => Check::ok("space", format!("{} MB free", free >> 20)),
    }
}

fn file_system(root: &Root) -> Check {
    let found = probe::file_system(root);
    if found.is_virtual() {
        return Check::fault(
            "file system",
            format!("{} is a virtual file system: the kernel generates its contents", found.name),
            "Name another folder with --dir=PATH",
        );
    }
    match found.locality {
        Locality::Network => Check::warning(
            "file system",
            format!("{} may be shared with other machines", found.name),
            "Locks work between servers on this machine; whether they reach other machines depends on the file server. \
             Edit these files from one machine only",
        ),
        Locality::Local => Check::ok("file system", format!("{}, local", found.name)),
        Locality::Unknown => Check::ok("file system", found.name),
    }
}

fn unnamed_files(root: &Root) -> Check {
    Check::ok(
        "temporary files",
        if probe::has_unnamed_files(root) {
            "unnamed: a killed server leaves none behind"
        } else {
            "named: the next edit removes those that a killed server leaves behind"
        },
    )
}

fn hard_links(root: &Root) -> Check {
    match probe::has_hard_links(root) {
        Ok(true) => Check::ok("hard links", "supported"),
        Ok(false) => {
            Check::ok("hard links", "not supported; new files are created by renaming instead")
        }
        Err(error) => Check::fault(
            "hard links",
            format!("cannot be checked: {error}"),
            "Check whether files can be created in the folder",
        ),
    }
}

/// Checks whether a change by a program that does not use the lock is kept while a file is replaced.
fn other_programs(root: &Root) -> Check {
    let what = "other programs";
    let support = match probe::replace_support(root) {
        Ok(support) => support,
        Err(error) => {
            let help = "Check whether files can be created in the folder";
            return Check::fault(what, format!("cannot be checked: {error}"), help);
        }
    };
    let seen = match (support.leases, support.exchange) {
        (true, true) => {
            let seen = "read leases and exchanges: supported; what another program saves during an edit is kept";
            return Check::ok(what, seen);
        }
        (true, false) => {
            "exchanges: not supported; a file that another program renames into place during an edit is overwritten"
        }
        (false, true) => {
            "read leases: not supported; what another program writes to a file that it has open may be lost"
        }
        (false, false) => {
            "read leases and exchanges: not supported; what another program saves during an edit may be lost"
        }
    };
    if cfg!(target_os = "linux") {
        let help = "Close a file in other programs before agents edit it, or serve a folder on a local file system";
        return Check::warning(what, seen, help);
    }
    Check::ok(what, seen)
}

/// Counts leftover temporary files and removes them. Called before anything is written, since a write removes them too.
fn leftovers(root: &Root) -> Check {
    let count = || probe::count_leftovers(root).unwrap_or_default();
    let before = count();
    if before == 0 {
        return Check::ok("leftovers", "no temporary files of killed servers");
    }
    if let Ok(own) = Root::open(root.path()) {
        store(own, Durability::None).sweep_root();
    }
    let after = count();
    if after == 0 {
        return Check::ok("leftovers", format!("removed {} of killed servers", temporary_files(before)));
    }
    Check::warning(
        "leftovers",
        format!("{} (`.fe-*.tmp`) in use, or owned by another user", temporary_files(after)),
        "If no server is running, remove them as the user who owns them",
    )
}

/// Enters the sandbox on a thread of its own, since it cannot be left.
fn sandbox(root: &Root, access: Access) -> Check {
    let entered = thread::scope(|scope| scope.spawn(|| Sandbox::enter(root, access)).join());
    match entered {
        Ok(Sandbox::Landlock) => Check::ok("sandbox", "Landlock: all restrictions are supported"),
        Ok(Sandbox::Partly) => Check::warning(
            "sandbox",
            "Landlock: this kernel supports some of the restrictions",
            "Linux 6.12 and later support all of them; the server's own checks of paths always apply",
        ),
        Ok(Sandbox::Failed(why)) => Check::warning(
            "sandbox",
            format!("Landlock: the kernel refuses it: {why}"),
            "The server's own checks of paths still apply; start it with --no-sandbox to avoid the warning in its log",
        ),
        Ok(Sandbox::Off | Sandbox::Unavailable) | Err(_) if cfg!(target_os = "linux") => {
            Check::warning(
                "sandbox",
                "Landlock: not supported by this kernel",
                "Use Linux 5.13 or later with Landlock enabled; without it only the server's own checks of paths apply",
            )
        }
        Ok(_) | Err(_) => Check::ok(
            "sandbox",
            "not available on this system; the server's own checks of paths apply",
        ),
    }
}

/// Formats a number of temporary files.
fn temporary_files(count: usize) -> String {
    if count == 1 { "1 temporary file".into() } else { format!("{count} temporary files") }
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
            Check::fault("edits", format!("could not be tested: {why}"), "Check the permissions of the folder")
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
                format!("the test file {} could not be removed: {error}", self.at),
                "Remove it by hand",
            ));
        }
        checks
    }

    fn replacing(&self) -> Check {
        let read = |_| self.theirs.read(&self.at, &call(TIME));
        match self.write("two", Expected::Present).and_then(read) {
            Ok(Some(version)) if **version.bytes == *b"two" => {
                Check::ok("replacing", "atomic: a reader sees the old text or the new text")
            }
            Ok(_) => Check::fault(
                "replacing",
                "a replaced file does not have its new text",
                "Edits are not safe on this file system; serve a folder on another one",
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
                Check::ok("locks", "supported: another server cannot edit a locked file")
            }
            (Err(StoreError::NoLocks { file_system }), _) => Check::fault(
                "locks",
                format!("not supported by the file system ({file_system}), so every edit is refused"),
                "Mount the file system with locks, or serve a folder on another one",
            ),
            (Err(error), _) => unwritten(&error),
            (Ok(_), _) => Check::fault(
                "locks",
                "another server can edit a locked file",
                "Let only one server edit these files, or serve a folder on another file system",
            ),
        }
    }

    fn syncing(&self, made: &Saved) -> Check {
        if made.durable == Durable::Unknown {
            return Check::warning(
                "syncing",
                "the folder cannot be synced",
                "A power cut may lose the last edits, but leaves each file old or new",
            );
        }
        if self.is_memory {
            return Check::warning(
                "syncing",
                "the folder is in memory; its files do not survive a restart",
                "Serve a folder on a disk if the files must survive",
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
        let seen = format!("an edit takes {:.1} ms to reach the disk", times[1].as_secs_f64() * 1e3);
        if times[1] < SLOW {
            return Check::ok("syncing", seen);
        }
        let help = "Use a faster disk, or --durability=none, with which a power cut may lose the last edits";
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
        StoreError::DiskFull => "Free some space",
        StoreError::ReadOnly => "Mount the file system for writing, or serve the folder with --read-only",
        StoreError::NoLocks { .. } => "Mount the file system with locks, or serve a folder on another one",
        StoreError::Write { doing: "sync", .. } => {
            "Check the disk; --durability=none does not wait for it"
        }
        _ => "Check whether files can be created and renamed in the folder",
    };
    Check::fault("edits", format!("a file cannot be edited: {error}"), help)
}
