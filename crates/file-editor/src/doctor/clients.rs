//! What the configuration of each client says of us.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use files::machine::{self, Program};

use super::check::Check;
use crate::setup::client::{CLIENTS, Client};
use crate::setup::configuration::Configuration;
use crate::setup::entry::Entry;
use crate::setup::json::Found;

/// Of the user, and of the folder where there is one.
pub fn all(folder: &OsStr) -> Vec<Check> {
    let mut checks = Vec::new();
    for client in &CLIENTS {
        if let Some(file) = client.of_user() {
            checks.push(of_user(client, file));
        }
        let in_folder = std::path::absolute(folder).ok().and_then(|path| client.of_folder(&path));
        if let Some(file) = in_folder.filter(|file| machine::is_file(file)) {
            checks.push(told(client, file));
        }
    }
    checks
}

fn of_user(client: &'static Client, file: PathBuf) -> Check {
    if client.is_there(&file) {
        return told(client, file);
    }
    Check::ok(client.name, format!("not found here ({})", file.display()))
}

fn told(client: &'static Client, file: PathBuf) -> Check {
    let shown = file.display().to_string();
    let setup = format!("`file-editor setup {}`", client.name);
    match Configuration::new(client, file).look() {
        Ok(None) => {
            Check::ok(client.name, format!("is there, and {shown} is not; {setup} makes it"))
        }
        Ok(Some(Found::Nothing)) => {
            Check::ok(client.name, format!("{shown} does not know of us; {setup} adds us"))
        }
        Ok(Some(Found::Other)) => Check::warning(
            client.name,
            format!("{shown} has an entry of our name that starts no program"),
            format!("If it is to start this one, {setup} makes it so"),
        ),
        Ok(Some(Found::Entry(entry))) => started(client.name, &shown, &entry, &setup),
        Err(fault) => Check::fault(
            client.name,
            fault,
            format!("Mend that line; the client may not understand it either. Then {setup}"),
        ),
    }
}

fn started(name: &'static str, shown: &str, entry: &Entry, setup: &str) -> Check {
    let Entry { command, .. } = entry;
    match machine::program(command) {
        Program::Missing => {
            let seen = format!("{shown} starts {command}, which does not exist");
            return Check::fault(name, seen, format!("{setup} names this program"));
        }
        Program::NotExecutable => {
            let seen = format!("{shown} starts {command}, which cannot be started");
            return Check::fault(
                name,
                seen,
                format!("Make it executable, or {setup} names this program"),
            );
        }
        Program::Ready => {}
    }
    match entry.folder() {
        // What a client puts in place of a variable only it knows.
        Some(folder) if folder.contains("${") || machine::is_folder(Path::new(folder)) => {
            Check::ok(name, format!("{shown} starts us in {folder}"))
        }
        Some(folder) => Check::fault(
            name,
            format!("{shown} starts us in {folder}, which is no folder"),
            format!("{setup} --dir=PATH names another"),
        ),
        None => Check::fault(
            name,
            format!("{shown} starts us without a folder"),
            format!("{setup} --dir=PATH names one"),
        ),
    }
}
