//! Checks of the folder and its file system.

use std::ffi::OsStr;
use std::path::Path;
use std::thread;

use files::probe::{self, Locality};
use files::{Access, Durability, Root, Sandbox, machine};

use super::check::Check;
use super::edit_test::{self, EditTest};
use crate::flags;

/// Free bytes below which the next edit may fail.
const LOW_SPACE: u64 = 100 << 20;
/// Runs all checks of the folder. `access`: that of the server.
pub fn checks(named: &OsStr, access: Access) -> Vec<Check> {
    if named.is_empty() {
        let help = "Name a folder with --dir=PATH, or omit --dir for the current one";
        return vec![Check::fault("folder", "--dir is empty", help)];
    }
    let root = match flags::open_folder(Some(named), Access::ReadOnly) {
        Ok(root) => root,
        // On Linux a folder can be opened without read permission, which is found later.
        Err(error) if machine::is_folder(Path::new(named)) => {
            let help = "Give the user who runs the server permission to read it";
            return vec![Check::fault("folder", error, help)];
        }
        Err(error) => {
            return vec![Check::fault("folder", error, "Name an existing folder with --dir=PATH")];
        }
    };
    if probe::file_system(&root).is_virtual() {
        return vec![file_system(&root)];
    }
    let mut checks = vec![rights(&root, access), space(&root), file_system(&root)];
    if access == Access::ReadWrite && root.is_writable() {
        let leftovers = leftovers(&root);
        checks.extend(EditTest::new(&root).map_or_else(|fault| vec![fault], |test| test.run()));
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
        Some(free) if free < LOW_SPACE => Check::warning(
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
    let name = "other programs";
    let support = match probe::replace_support(root) {
        Ok(support) => support,
        Err(error) => {
            let help = "Check whether files can be created in the folder";
            return Check::fault(name, format!("cannot be checked: {error}"), help);
        }
    };
    let finding = match (support.leases, support.exchange) {
        (true, true) => {
            let finding = "read leases and exchanges: supported; what another program saves during an edit is kept";
            return Check::ok(name, finding);
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
        return Check::warning(name, finding, help);
    }
    Check::ok(name, finding)
}

/// Counts leftover temporary files and removes them. Called before anything is written, since a write removes them too.
fn leftovers(root: &Root) -> Check {
    let count = || probe::count_leftovers(root).unwrap_or_default();
    let before = count();
    if before == 0 {
        return Check::ok("leftovers", "no temporary files of killed servers");
    }
    if let Ok(own) = Root::open(root.path()) {
        edit_test::store(own, Durability::None).sweep_root();
    }
    let after = count();
    if after == 0 {
        return Check::ok(
            "leftovers",
            format!("removed {} of killed servers", temporary_files(before)),
        );
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
