//! Checks of the clients' configurations: the folder that this server's entry serves, and problems of the entry.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use files::machine::{self, ProgramState};

use super::check::Check;
use crate::setup::client::{CLIENTS, Client};
use crate::setup::configuration::{Configuration, OtherSettingsPolicy, Project};
use crate::setup::entry::{Entry, FoundEntry};

/// Checks the configuration of the user for each client, and that of the folder if there is one.
pub fn checks(folder: &OsStr) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut lacks_home = false;
    for client in &CLIENTS {
        match client.user_file() {
            Some(file) if client.is_installed(&file) => {
                let configuration = Configuration::of_user(client);
                checks.extend(configuration.map(|it| ConfigurationCheck::of_user(it).run()));
            }
            Some(file) => {
                checks.push(Check::ok(client.name, format!("not found here ({})", file.display())));
            }
            None => lacks_home = true,
        }
        let of_project = std::path::absolute(folder).ok().and_then(|path| {
            let project = Project { folder: path, other_settings: OtherSettingsPolicy::Remove };
            Configuration::of_project(client, &project)
        });
        let exists = |it: &Configuration| machine::is_file(&it.path) || machine::is_link(&it.path);
        if let Some(configuration) = of_project.filter(exists) {
            checks.push(ConfigurationCheck::of_project(configuration, folder).run());
        }
    }
    if lacks_home {
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

/// Check of one configuration.
struct ConfigurationCheck {
    client: &'static Client,
    file: PathBuf,
    configuration: Configuration,
    /// Flags with which `setup` writes this configuration.
    flags: String,
}

impl ConfigurationCheck {
    fn new(configuration: Configuration, flags: String) -> Self {
        let (client, file) = (configuration.client, configuration.path.clone());
        Self { client, file, configuration, flags }
    }

    fn of_user(configuration: Configuration) -> Self {
        Self::new(configuration, String::new())
    }

    fn of_project(configuration: Configuration, folder: &OsStr) -> Self {
        let dir =
            if folder == "." { String::new() } else { format!(" --dir={}", folder.display()) };
        Self::new(configuration, format!(" --project{dir}"))
    }

    /// Returns the command that fixes the entry.
    fn setup_command(&self) -> String {
        format!("`file-editor setup {}{}`", self.client.name, self.flags)
    }

    /// Returns the command that fixes the entry with another folder. A configuration of a folder always serves that
    /// folder.
    fn setup_of_other_folder(&self) -> String {
        let dir = if self.flags.is_empty() { " --dir=PATH" } else { &self.flags };
        format!("`file-editor setup {}{dir}`", self.client.name)
    }

    fn run(self) -> Check {
        let (name, shown) = (self.client.name, self.file.display());
        let setup = self.setup_command();
        let configuration = &self.configuration;
        if let Some(error) = configuration.link_outside_project() {
            return Check::warning(name, error, format!("Then run {setup}"));
        }
        match configuration.find_entry() {
            Ok(None) => Check::ok(
                name,
                format!("not configured ({shown} does not exist); {setup} creates it"),
            ),
            Ok(Some(FoundEntry::Missing)) => {
                Check::ok(name, format!("not configured ({shown}); {setup} adds the entry"))
            }
            Ok(Some(FoundEntry::OtherForm)) => Check::warning(
                name,
                format!("the `file-editor` entry has a form that `setup` does not write ({shown})"),
                format!("If it should start this program, remove it by hand, then run {setup}"),
            ),
            Ok(Some(FoundEntry::Entry(_))) if configuration.is_disabled() => Check::warning(
                name,
                format!("the entry is disabled ({shown})"),
                "To enable it, remove `disabled` or `enabled` from the entry",
            ),
            Ok(Some(FoundEntry::Entry(entry))) => self.check_program(&entry),
            Err(error) if !machine::is_readable(&self.file) => {
                Check::fault(name, error, "Give the user who runs the client permission to read it")
            }
            Err(error) => Check::fault(
                name,
                error,
                format!(
                    "Fix the file; the client may not be able to parse it either. Then run {setup}"
                ),
            ),
        }
    }

    fn check_program(&self, entry: &Entry) -> Check {
        let (name, shown, command) = (self.client.name, self.file.display(), &entry.command);
        let setup = self.setup_command();
        // By its name alone the client may find another program, since its PATH may differ.
        let is_certain = entry.starts_this_program() || command.contains(['/', '\\']);
        match machine::program_state(command) {
            ProgramState::Ready if entry.starts_this_program() => self.check_folder(entry),
            // Started by `npx`, in a container, or by a script: the meaning of its arguments is not known here.
            ProgramState::Ready => Check::ok(
                name,
                format!("starts {command}; what that serves is not checked ({shown})"),
            ),
            ProgramState::Missing | ProgramState::NotExecutable if !is_certain => Check::warning(
                name,
                format!("starts {command}, which is not on the PATH of this shell ({shown})"),
                format!(
                    "Check that the client finds it, or run {setup} to enter the path of this program"
                ),
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

    fn check_folder(&self, entry: &Entry) -> Check {
        let (name, shown) = (self.client.name, self.file.display());
        match entry.folder() {
            // Only the client knows the value of a variable.
            Some(folder) if folder.contains("${") || machine::is_folder(Path::new(folder)) => {
                let served = self.configuration.served_folder(entry, folder);
                self.check_other_settings(format!("{served} ({shown})"))
            }
            Some(folder) => Check::fault(
                name,
                format!("serves {folder}, which is not a folder ({shown})"),
                format!("Run {} to serve another folder", self.setup_of_other_folder()),
            ),
            None => Check::fault(
                name,
                format!("the entry names no folder to serve ({shown})"),
                format!("Run {} to enter one", self.setup_of_other_folder()),
            ),
        }
    }

    /// Adds the other settings of the entry to the finding. In a file of the project anybody may have written them.
    fn check_other_settings(&self, finding: String) -> Check {
        let settings = self.configuration.other_settings();
        if settings.is_empty() || self.flags.is_empty() {
            return Check::ok(self.client.name, finding);
        }
        Check::warning(
            self.client.name,
            format!("{finding}, also set: {}", settings.join(", ")),
            format!("If these settings are not wanted, {} removes them", self.setup_command()),
        )
    }
}
