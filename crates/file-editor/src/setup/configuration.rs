//! The configuration file of one client: read, preview, and save.
//!
//! `links` resolves its path, `plan` computes the change, `opened_file` opens it and makes backups.

mod links;
mod opened_file;
mod other_settings;
mod plan;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use files::{Call, Change, DirPath, DiskStore, Root, Stop, Store, StoreError, Version, machine};
use server::terminal;
use text::{ComposedSplices, DiffNames, Text, diff, printable};

use super::client::Client;
use super::entry::{Entry, FoundEntry, ParseError};
use opened_file::{OpenedFile, options};
pub use other_settings::OtherSettingsPolicy;
use other_settings::{OtherSettings, SETTING_MAX, short};
use plan::Plan;
pub use plan::{Action, SavedChange, WantedEntry};

/// Limit of the characters of a whole entry in a message.
const ENTRY_MAX: usize = 2000;
/// Time limit for the lock. A client that holds it does so for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_secs(8);
/// Time to wait for the lock before a message says so.
const QUIET_WAIT: Duration = Duration::from_secs(2);

pub struct Configuration {
    pub client: &'static Client,
    /// Path at which the client looks for it.
    pub path: PathBuf,
    /// `None` for the user's own configuration.
    project: Option<Project>,
}

/// A folder with configurations of its own. Anybody who wrote files in the folder may have written those, and their
/// links.
#[derive(Clone, Debug)]
pub struct Project {
    /// Absolute path.
    pub folder: PathBuf,
    pub other_settings: OtherSettingsPolicy,
}

impl Configuration {
    /// Returns the configuration of the user; `None` if there is no home folder.
    pub fn of_user(client: &'static Client) -> Option<Self> {
        Some(Self { client, path: client.user_file()?, project: None })
    }

    /// Returns the configuration of a folder; `None` if the client has none.
    pub fn of_project(client: &'static Client, project: &Project) -> Option<Self> {
        let path = client.project_file(&project.folder)?;
        Some(Self { client, path, project: Some(project.clone()) })
    }

    /// Lists the other settings of the server's entry, one a line.
    pub fn other_settings(&self) -> Vec<String> {
        let version = self.file().and_then(|file| self.read(&file)).ok().flatten();
        let text = version.and_then(|version| self.decode(&version).ok());
        let settings = text.map(|text| self.other_settings_in(text.as_str()));
        settings.unwrap_or_default().describe(self.project.as_ref())
    }

    /// Formats which folder the entry serves, and by which program unless it is this one. A program of the same name
    /// is shown by its path if the entry came with a project, since it may be another one.
    pub fn served_folder(&self, entry: &Entry, folder: &str) -> String {
        let own = std::env::current_exe();
        let is_own = own.is_ok_and(|own| own.to_str() == Some(&entry.command));
        if entry.starts_this_program() && (is_own || self.project.is_none()) {
            return format!("serves {folder}");
        }
        format!("serves {folder} with {}", short(&entry.command, SETTING_MAX))
    }

    fn other_settings_in(&self, text: &str) -> OtherSettings {
        let Ok(FoundEntry::Entry(entry)) = self.client.find(text) else {
            return OtherSettings::default();
        };
        let flags = entry.other_flags().into_iter().map(String::from).collect();
        let fields = self.client.other_fields(text).unwrap_or_default();
        OtherSettings { flags, fields }
    }

    /// Finds the server's entry; `None` if there is no file.
    pub fn find_entry(&self) -> Result<Option<FoundEntry>, String> {
        let version = self.read(&self.file()?)?;
        let text = version.map(|version| self.decode(&version)).transpose()?;
        let found = text.map(|text| self.client.find(text.as_str())).transpose();
        found.map_err(|error| self.parse_failure(&error))
    }

    /// True if the server's entry is there and disabled.
    pub fn is_disabled(&self) -> bool {
        let version = self.file().and_then(|file| self.read(&file)).ok().flatten();
        let text = version.and_then(|version| self.decode(&version).ok());
        text.is_some_and(|text| self.client.is_disabled(text.as_str()))
    }

    /// Returns the change as a diff, or a message that nothing would change.
    pub fn preview(&self, wanted: &WantedEntry) -> Result<String, String> {
        let file = self.file()?;
        let version = self.read(&file)?;
        let old = version.map(|version| self.decode(&version)).transpose()?;
        let Plan { action, text: new, notes, .. } = self.plan(&file, old.as_ref(), wanted)?;
        let client = self.client.name;
        if action.changes_nothing() {
            let notes: String = notes.iter().map(|note| ["  ", note, "\n"].concat()).collect();
            return Ok(format!("{client}: nothing to do\n{notes}"));
        }
        let name = self.path.display().to_string();
        let names = DiffNames {
            old: if old.is_some() { &name } else { "/dev/null" },
            new: if new.is_some() { &name } else { "/dev/null" },
        };
        let old = old.as_ref().map_or("", Text::whole);
        let new = new.as_deref().unwrap_or_default();
        // `patch` skips lines before the diff.
        let notes: String = notes.iter().map(|note| [client, ": ", note, "\n"].concat()).collect();
        Ok(notes + &diff::unified(old, new, &ComposedSplices::new(), names))
    }

    /// Changes the file so that the entry is as wanted.
    pub fn save(&self, wanted: &WantedEntry) -> Result<SavedChange, String> {
        let file = self.file()?;
        let mut call = Call::until(Instant::now() + QUIET_WAIT);
        let mut waits_quietly = true;
        loop {
            let version = self.read(&file)?;
            let old = version.as_ref().map(|version| self.decode(version)).transpose()?;
            let plan = self.plan(&file, old.as_ref(), wanted)?;
            if plan.action.changes_nothing() {
                return Ok(SavedChange { action: plan.action, file, notes: plan.notes });
            }
            let made = self.make_folders(&file, &call)?;
            let done = OpenedFile::open(&file, self.project.as_ref())
                .and_then(|opened| self.apply(&opened, &plan, version.as_ref(), &call));
            if let Ok(Some(notes)) = done {
                return Ok(SavedChange { action: plan.action, file, notes });
            }
            if let Some((store, made)) = made {
                store.remove_folders(&made);
            }
            match (done, call.check()) {
                (_, Err(_)) if waits_quietly => {
                    self.report_waiting(&call);
                    call = Call::until(Instant::now() + LOCK_TIMEOUT);
                    waits_quietly = false;
                }
                (Err(error), _) => return Err(error),
                (Ok(_), Err(error)) => return Err(self.write_failure(&error)),
                // Another program changed the file meanwhile: try again.
                (Ok(_), Ok(())) => {}
            }
        }
    }

    fn report_waiting(&self, call: &Call) {
        if call.lock_wait() > Duration::ZERO {
            let path = self.path.display();
            terminal::write_message(&printable(&format!(
                "another program holds the lock of {path}; waiting"
            )));
        }
    }

    /// Makes the change if the file still is as it was read, and returns the lines to show; `None` if it is not.
    fn apply(
        &self,
        opened: &OpenedFile,
        plan: &Plan,
        version: Option<&Version>,
        call: &Call,
    ) -> Result<Option<Vec<String>>, String> {
        let expected = version.map(|version| version.bytes.as_slice());
        let mut notes = Vec::new();
        if let (FoundEntry::Entry(old), Some(new)) = (&plan.old_entry, &plan.entry) {
            let [old, new] = [old, new].map(|entry| short(&entry.to_string(), ENTRY_MAX));
            notes.extend([format!("old: {old}"), format!("new: {new}")]);
        }
        notes.extend(plan.notes.iter().cloned());
        if let Some(version) = version
            && let Some(copy) =
                self.backup_path(opened, self.decode(version)?.as_str(), &plan.old_entry)
        {
            let path = opened.file.with_file_name(copy.name());
            if !self.make_backup(opened, copy, &path, &version.bytes, call)? {
                return Ok(None);
            }
            notes.push(format!("copy of the old file: {}", path.display()));
        }
        let mut has_changed = false;
        let mut change = |versions: &[Option<Version>]| {
            let now = versions.first().and_then(Option::as_ref);
            has_changed = now.map(|version| version.bytes.as_slice()) != expected;
            match plan.text.as_deref() {
                _ if has_changed => Err(Stop),
                Some(text) => Ok(vec![Change::write(text)]),
                None => Ok(vec![Change::Remove]),
            }
        };
        let saved = opened.store.update(std::slice::from_ref(&opened.path), call, &mut change);
        match saved {
            Ok(saved) => {
                notes.extend(saved.iter().filter_map(|saved| tools::hard_links_note(saved.links)));
                Ok(Some(notes))
            }
            Err(_) if has_changed => Ok(None),
            Err(error) => Err(self.write_failure(&error)),
        }
    }

    /// Reads the file; `None` if there is none, and it could be made.
    fn read(&self, file: &Path) -> Result<Option<Version>, String> {
        let folder = file.parent().unwrap_or(Path::new("/"));
        let mut missing = folder.ancestors().take_while(|above| !machine::is_folder(above));
        if file != self.path && !machine::is_folder(folder) {
            return Err(format!(
                "{} is a link to {}, whose folder does not exist: create that folder, or remove the link",
                self.path.display(),
                file.display()
            ));
        }
        if let Some(taken) = missing.find(|above| machine::is_name_taken(above)) {
            return Err(format!(
                "{} cannot be created: {} is not a folder",
                self.path.display(),
                taken.display()
            ));
        }
        if !machine::is_folder(folder) {
            return Ok(None);
        }
        let OpenedFile { store, path, .. } = OpenedFile::open(file, self.project.as_ref())?;
        store.read(&path, &Call::until(Instant::now() + LOCK_TIMEOUT)).map_err(|error| {
            format!("{} cannot be read; left unchanged: {error}", self.path.display())
        })
    }

    fn decode(&self, version: &Version) -> Result<Text, String> {
        Text::decode(Arc::clone(&version.bytes))
            .map_err(|error| format!("{} is not text: {error}", self.path.display()))
    }

    /// Makes the missing folders of the file. Returns what was made, and the store that can remove it.
    fn make_folders(
        &self,
        file: &Path,
        call: &Call,
    ) -> Result<Option<(DiskStore, Vec<DirPath>)>, String> {
        let failed =
            |what: &dyn fmt::Display| format!("{} cannot be created: {what}", self.path.display());
        let folder = file.parent().ok_or_else(|| failed(&"it has no parent folder"))?;
        let above = folder.ancestors().find(|above| machine::is_folder(above)).unwrap_or(folder);
        if above == folder {
            return Ok(None);
        }
        let above = self.project.as_ref().map_or(above, |project| &project.folder);
        let root = Root::open(above).map_err(|error| failed(&error))?;
        let missing = folder.to_str().ok_or_else(|| failed(&"its name is not UTF-8"))?;
        let missing = root.folder(missing).map_err(|error| failed(&error))?;
        let store = DiskStore::open(Arc::new(root), options(self.project.as_ref()));
        let made = store.make_folders(&missing, call).map_err(|error| failed(&error))?;
        Ok(Some((store, made)))
    }

    fn parse_failure(&self, error: &ParseError) -> String {
        format!("{} cannot be parsed; left unchanged: {error}", self.path.display())
    }

    fn refused(&self, error: &ParseError, entry: &Entry) -> String {
        let (failure, snippet) = (self.parse_failure(error), self.client.whole(entry));
        format!("{failure}\nTo configure the client by hand, add:\n\n{snippet}")
    }

    fn write_failure(&self, error: &StoreError) -> String {
        format!("{} left unchanged: {error}{}", self.path.display(), help(error))
    }
}

/// Returns the help for an error.
fn help(error: &StoreError) -> &'static str {
    match error {
        StoreError::Denied { .. } => "; the file and its folder must be writable",
        StoreError::LockTimeout { .. } => "; another program holds its lock, try again later",
        _ => "",
    }
}
