//! Checks of the clients' configurations: what the entry of this server says in each.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use files::machine::{self, ProgramState};

use super::check::Check;
use crate::setup::client::{CLIENTS, Client};
use crate::setup::configuration::{Configuration, Others, Project};
use crate::setup::entry::Entry;
use crate::setup::json::Found;

/// Checks the configuration of the user for each client, and that of the folder if there is one.
pub fn all(folder: &OsStr) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut is_homeless = false;
    for client in &CLIENTS {
        match client.of_user() {
            Some(file) if client.is_there(&file) => {
                let configuration = Configuration::of_user(client);
                checks.extend(configuration.map(|it| Told::by_user(it).check()));
            }
            Some(file) => {
                checks.push(Check::ok(client.name, format!("not found here ({})", file.display())));
            }
            None => is_homeless = true,
        }
        let of_folder = std::path::absolute(folder).ok().and_then(|path| {
            let project = Project { folder: path, others: Others::Remove };
            Configuration::of_project(client, &project)
        });
        let is_there =
            |it: &Configuration| machine::is_file(&it.path) || machine::is_link(&it.path);
        if let Some(configuration) = of_folder.filter(is_there) {
            checks.push(Told::by_folder(configuration, folder).check());
        }
    }
    if is_homeless {
        let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        checks.push(Check::warning(
            "clients",
            format!(
                "{variable} is not set to a folder, so the configurations of the user were not checked"
            ),
            format!("Set {variable} to the home folder of the user who runs the clients"),
        ));
    }
    checks
}

/// The configuration to check.
struct Told {
    client: &'static Client,
    file: PathBuf,
    configuration: Configuration,
    /// Flags with which `setup` writes this configuration.
    flags: String,
}

impl Told {
    fn new(configuration: Configuration, flags: String) -> Told {
        let (client, file) = (configuration.client, configuration.path.clone());
        Told { client, file, configuration, flags }
    }

    fn by_user(configuration: Configuration) -> Told {
        Told::new(configuration, String::new())
    }

    fn by_folder(configuration: Configuration, folder: &OsStr) -> Told {
        let dir =
            if folder == "." { String::new() } else { format!(" --dir={}", folder.display()) };
        Told::new(configuration, format!(" --project{dir}"))
    }

    /// Returns the command that fixes the entry.
    fn setup(&self) -> String {
        format!("`file-editor setup {}{}`", self.client.name, self.flags)
    }

    /// Returns the command that fixes the entry with another folder. A configuration of a folder always serves that
    /// folder.
    fn setup_elsewhere(&self) -> String {
        let dir = if self.flags.is_empty() { " --dir=PATH" } else { &self.flags };
        format!("`file-editor setup {}{dir}`", self.client.name)
    }

    fn check(self) -> Check {
        let (name, shown) = (self.client.name, self.file.display());
        let setup = self.setup();
        let configuration = &self.configuration;
        if let Some(fault) = configuration.link_outside_project() {
            return Check::warning(name, fault, format!("Then run {setup}"));
        }
        match configuration.look() {
            Ok(None) => Check::ok(name, format!("not configured ({shown} does not exist); {setup} creates it")),
            Ok(Some(Found::Nothing)) => {
                Check::ok(name, format!("not configured ({shown}); {setup} adds the entry"))
            }
            Ok(Some(Found::Other)) => Check::warning(
                name,
                format!("the `file-editor` entry has a form that `setup` does not write ({shown})"),
                format!("If it should start this program, remove it by hand, then run {setup}"),
            ),
            Ok(Some(Found::Entry(_))) if configuration.is_off() => Check::warning(
                name,
                format!("the entry is disabled ({shown})"),
                "To enable it, remove `disabled` or `enabled` from the entry",
            ),
            Ok(Some(Found::Entry(entry))) => self.started(&entry),
            Err(fault) if !machine::is_readable(&self.file) => {
                Check::fault(name, fault, "Give the user who runs the client permission to read it")
            }
            Err(fault) => Check::fault(
                name,
                fault,
                format!("Fix the file; the client may not be able to parse it either. Then run {setup}"),
            ),
        }
    }

    fn started(&self, entry: &Entry) -> Check {
        let (name, shown, command) = (self.client.name, self.file.display(), &entry.command);
        let setup = self.setup();
        // By its name alone the client may find another program, since its PATH may differ.
        let is_certain = entry.starts_us() || command.contains(['/', '\\']);
        match machine::program_state(command) {
            ProgramState::Ready if entry.starts_us() => self.working(entry),
            // Started by `npx`, in a container, or by a script: the meaning of its arguments is not known here.
            ProgramState::Ready => Check::ok(
                name,
                format!("starts {command}; what that serves is not checked ({shown})"),
            ),
            ProgramState::Missing | ProgramState::NotExecutable if !is_certain => Check::warning(
                name,
                format!("starts {command}, which is not on the PATH of this shell ({shown})"),
                format!("Check that the client finds it, or run {setup} to enter the path of this program"),
            ),
            ProgramState::Missing => Check::fault(
                name,
                format!("starts {command}, which does not exist ({shown})"),
                format!("Run {setup} to enter the path of this program"),
            ),
            ProgramState::NotExecutable => Check::fault(
                name,
                format!("starts {command}, which is not executable ({shown})"),
                format!("Make it executable, or run {setup} to enter the path of this program"),
            ),
        }
    }

    fn working(&self, entry: &Entry) -> Check {
        let (name, shown) = (self.client.name, self.file.display());
        match entry.folder() {
            // Only the client knows the value of a variable.
            Some(folder) if folder.contains("${") || machine::is_folder(Path::new(folder)) => {
                let served = self.configuration.served_folder(entry, folder);
                self.with_others(format!("{served} ({shown})"))
            }
            Some(folder) => Check::fault(
                name,
                format!("serves {folder}, which is not a folder ({shown})"),
                format!("Run {} to serve another folder", self.setup_elsewhere()),
            ),
            None => Check::fault(
                name,
                format!("the entry names no folder to serve ({shown})"),
                format!("Run {} to enter one", self.setup_elsewhere()),
            ),
        }
    }

    /// Adds the other settings of the entry. In a file of the project anybody may have written them.
    fn with_others(&self, seen: String) -> Check {
        let others = self.configuration.other_settings();
        if others.is_empty() || self.flags.is_empty() {
            return Check::ok(self.client.name, seen);
        }
        Check::warning(
            self.client.name,
            format!("{seen}, also set: {}", others.join(", ")),
            format!("If these settings are not wanted, {} removes them", self.setup()),
        )
    }
}
