//! The configuration file of one client: read, dry run, and save.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use files::machine::LinkError;
use files::{
    Call, Change, DirPath, DiskOptions, DiskStore, Durability, FilePath, Root, Stop, Store,
    StoreError, Version, machine,
};
use server::terminal;
use text::{ComposedSplices, DiffNames, Text, diff, printable, printable_line};

use super::client::Client;
use super::entry::{Entry, Fault, Field};
use super::json::Found;

/// Limit of the bytes of a user's file, in which a client may store other data too.
const MAX_OF_USER: u64 = 64 << 20;
/// Limit of the bytes of a project's file, which anybody may have written. It names a few servers, and parsing it takes
/// up to thirty times its size in memory.
const MAX_OF_PROJECT: u64 = 1 << 20;
/// Limit of the other settings of an entry that are listed.
const TOLD_MAX: usize = 20;
/// Limits of the characters of one setting, and of a whole entry.
const SETTING_MAX: usize = 200;
const ENTRY_MAX: usize = 2000;
/// Time limit for the lock. A client that holds it does so for a moment.
const TIME: Duration = Duration::from_secs(8);
/// Time to wait for the lock before a message says so.
const PATIENCE: Duration = Duration::from_secs(2);
/// Suffix of the copy of a file as it was without the server's entry.
const BEFORE: &str = ".before-file-editor";
/// Suffix of the copy of a file whose entry has changes that `setup` did not make, if there is a copy without the entry
/// already.
const BEFORE_LAST: &str = ".before-last-change";

/// Wanted state of the configuration.
pub enum Wish {
    Present(Entry),
    Absent,
}

/// Outcome of a change.
pub struct Outcome {
    pub did: Did,
    file: PathBuf,
    /// Lines to show besides.
    notes: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Did {
    Add,
    Change,
    TakeOut,
    /// Nothing else was in the file.
    RemoveFile,
    FindIt,
    FindNothing,
}

impl Did {
    fn is_nothing(self) -> bool {
        matches!(self, Did::FindIt | Did::FindNothing)
    }
}

impl Outcome {
    /// Returns the message about what was done, for the client of this name.
    pub fn told(&self, name: &str) -> String {
        // Paths and settings may come from others.
        printable(&format!("{name}: {self}\n")).into_owned()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = match self.did {
            Did::Add => "added to",
            Did::Change => "changed in",
            Did::TakeOut => "removed from",
            Did::RemoveFile => "removed; deleted the file, which had no other content:",
            Did::FindIt => "already configured in",
            Did::FindNothing => "not configured in",
        };
        write!(f, "{told} {}", self.file.display())?;
        self.notes.iter().try_for_each(|note| write!(f, "\n  {note}"))
    }
}

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
    pub others: Others,
}

/// Treatment of settings in the server's entry that `setup` would not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    Keep,
    Remove,
}

/// Settings of the server's entry that `setup` would not write.
#[derive(Debug, Default)]
struct OtherSettings {
    flags: Vec<String>,
    fields: Vec<Field>,
}

impl OtherSettings {
    fn is_empty(&self) -> bool {
        self.flags.is_empty() && self.fields.is_empty()
    }

    /// Formats the settings, one a line.
    fn told(&self, project: Option<&Project>) -> Vec<String> {
        let flags = self.flags.iter().map(|flag| short(flag, SETTING_MAX));
        let fields = self.fields.iter().map(|Field { name, value }| match project {
            Some(_) => format!("{} = {}", short(name, SETTING_MAX), short(value, SETTING_MAX)),
            // Values of the user's own file are not shown, since users keep passwords there and know what they wrote.
            None => short(name, SETTING_MAX),
        });
        let mut told: Vec<_> = flags.chain(fields).collect();
        if told.len() > TOLD_MAX {
            let more = told.len() - TOLD_MAX;
            told.truncate(TOLD_MAX);
            told.push(format!("and {more} more"));
        }
        told
    }
}

/// Returns the beginning of a text, on one line.
fn short(text: &str, longest: usize) -> String {
    let begin: String = text.chars().take(longest).collect();
    let ending = if begin.len() < text.len() { "..." } else { "" };
    format!("{}{ending}", printable_line(&begin))
}

/// Change to make if the file still is as it was read.
struct Plan {
    did: Did,
    /// The entry in the file before the change.
    was: Found,
    /// The entry after the change.
    entry: Option<Entry>,
    /// Lines to show about other settings of the entry.
    notes: Vec<String>,
    /// New text with its byte order mark; `None` to remove the file.
    text: Option<String>,
}

/// An opened file to edit, in a folder that exists.
struct Place {
    store: DiskStore,
    at: FilePath,
    before: FilePath,
    before_last: FilePath,
    file: PathBuf,
}

impl Place {
    /// Opens the place. The file of a `project` is opened beneath a handle of its folder, so that no link that is
    /// changed meanwhile leads out.
    fn open(file: &Path, project: Option<&Project>) -> Result<Place, String> {
        let failed =
            |what: &dyn fmt::Display| format!("{} cannot be opened: {what}", file.display());
        let folder = project.map(|project| project.folder.as_path()).or(file.parent());
        let folder = folder.ok_or_else(|| failed(&"it is not a file"))?;
        let name = file.strip_prefix(folder).map_err(|error| failed(&error))?;
        let name = name.to_str().ok_or_else(|| failed(&"its name is not UTF-8"))?;
        let root = Root::open(folder).map_err(|error| failed(&error))?;
        let path =
            |end: &str| root.relative(&format!("{name}{end}")).map_err(|error| failed(&error));
        let (at, before, before_last) = (path("")?, path(BEFORE)?, path(BEFORE_LAST)?);
        let store = DiskStore::open(Arc::new(root), options(project));
        Ok(Place { store, at, before, before_last, file: file.into() })
    }
}

fn options(project: Option<&Project>) -> DiskOptions {
    let max_size = if project.is_some() { MAX_OF_PROJECT } else { MAX_OF_USER };
    DiskOptions { max_size, durability: Durability::Full }
}

impl Configuration {
    /// Returns the configuration of the user; `None` if there is no home folder.
    pub fn of_user(client: &'static Client) -> Option<Configuration> {
        Some(Configuration { client, path: client.of_user()?, project: None })
    }

    /// Returns the configuration of a folder; `None` if the client has none.
    pub fn of_project(client: &'static Client, project: &Project) -> Option<Configuration> {
        let path = client.of_folder(&project.folder)?;
        Some(Configuration { client, path, project: Some(project.clone()) })
    }

    /// Returns why the file is not written to, if a link leads out of the project.
    pub fn link_outside_project(&self) -> Option<String> {
        let project = self.project.as_ref()?;
        let name = self.path.strip_prefix(&project.folder).ok()?;
        match machine::follow_links_inside(&project.folder, name) {
            Err(LinkError::Outside { link, target }) => Some(outside(project, &link, &target)),
            _ => None,
        }
    }

    /// Lists the other settings of the server's entry, one a line.
    pub fn other_settings(&self) -> Vec<String> {
        let version = self.file().and_then(|file| self.read(&file)).ok().flatten();
        let text = version.and_then(|version| self.decode(&version).ok());
        let others = text.map(|text| self.others(text.as_str()));
        others.unwrap_or_default().told(self.project.as_ref())
    }

    /// Formats which folder the entry serves, and by which program unless it is this one. A program of the same name
    /// is shown by its path if the entry came with a project, since it may be another one.
    pub fn served_folder(&self, entry: &Entry, folder: &str) -> String {
        let own = std::env::current_exe();
        let is_own = own.is_ok_and(|own| own.to_str() == Some(&entry.command));
        if entry.starts_us() && (is_own || self.project.is_none()) {
            return format!("serves {folder}");
        }
        format!("serves {folder} with {}", short(&entry.command, SETTING_MAX))
    }

    fn others(&self, text: &str) -> OtherSettings {
        let Ok(Found::Entry(entry)) = self.client.find(text) else {
            return OtherSettings::default();
        };
        let flags = entry.other_flags().into_iter().map(String::from).collect();
        let fields = self.client.other_fields(text).unwrap_or_default();
        OtherSettings { flags, fields }
    }

    /// Finds the server's entry; `None` if there is no file.
    pub fn look(&self) -> Result<Option<Found>, String> {
        let version = self.read(&self.file()?)?;
        let text = version.map(|version| self.decode(&version)).transpose()?;
        let found = text.map(|text| self.client.find(text.as_str())).transpose();
        found.map_err(|fault| self.not_understood(&fault))
    }

    /// True if the server's entry is there and disabled.
    pub fn is_off(&self) -> bool {
        let version = self.file().and_then(|file| self.read(&file)).ok().flatten();
        let text = version.and_then(|version| self.decode(&version).ok());
        text.is_some_and(|text| self.client.is_off(text.as_str()))
    }

    /// Returns the change as a diff, or a message that nothing would change.
    pub fn rehearse(&self, wish: &Wish) -> Result<String, String> {
        let file = self.file()?;
        let version = self.read(&file)?;
        let old = version.map(|version| self.decode(&version)).transpose()?;
        let Plan { did, text: new, notes, .. } = self.plan(&file, old.as_ref(), wish)?;
        let client = self.client.name;
        if did.is_nothing() {
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

    /// Changes the file so that it is as wished.
    pub fn save(&self, wish: &Wish) -> Result<Outcome, String> {
        let file = self.file()?;
        let mut call = Call::until(Instant::now() + PATIENCE);
        let mut is_patient = true;
        loop {
            let version = self.read(&file)?;
            let old = version.as_ref().map(|version| self.decode(version)).transpose()?;
            let plan = self.plan(&file, old.as_ref(), wish)?;
            if plan.did.is_nothing() {
                return Ok(Outcome { did: plan.did, file, notes: plan.notes });
            }
            let made = self.make_folders(&file, &call)?;
            let done = Place::open(&file, self.project.as_ref())
                .and_then(|place| self.carry_out(&place, &plan, version.as_ref(), &call));
            if let Ok(Some(notes)) = done {
                return Ok(Outcome { did: plan.did, file, notes });
            }
            if let Some((store, made)) = made {
                store.remove_folders(&made);
            }
            match (done, call.check()) {
                (_, Err(_)) if is_patient => {
                    self.tell_of_waiting(&call);
                    call = Call::until(Instant::now() + TIME);
                    is_patient = false;
                }
                (Err(fault), _) => return Err(fault),
                (Ok(_), Err(error)) => return Err(self.not_written(&error)),
                // Another program changed the file meanwhile: try again.
                (Ok(_), Ok(())) => {}
            }
        }
    }

    fn tell_of_waiting(&self, call: &Call) {
        if call.lock_wait() > Duration::ZERO {
            let path = self.path.display();
            terminal::write_message(&printable(&format!("another program holds the lock of {path}; waiting")));
        }
    }

    fn plan(&self, file: &Path, old: Option<&Text>, wish: &Wish) -> Result<Plan, String> {
        let text = old.map_or("", Text::as_str);
        let refused = |fault: Fault| match wish {
            Wish::Present(entry) => self.refused(&fault, entry),
            Wish::Absent => self.not_understood(&fault),
        };
        let was = self.client.find(text).map_err(refused)?;
        let others = match wish {
            Wish::Present(_) => self.others(text),
            Wish::Absent => OtherSettings::default(),
        };
        // The user's own file was written by the user, or by programs that run for the user anyway: other settings
        // stay. A project's file comes with the project: its variables could load libraries into the server, its flags
        // switch off the sandbox.
        let removes = self.project.as_ref().is_some_and(|it| it.others == Others::Remove);
        let entry = match (wish, &was) {
            (Wish::Present(entry), Found::Entry(there)) if !removes => {
                Some(entry.with_flags_of(there))
            }
            (Wish::Present(entry), _) => Some(entry.clone()),
            (Wish::Absent, _) => None,
        };
        let new = match &entry {
            Some(entry) if old.is_none() => Ok(self.client.whole(entry)),
            Some(entry) if removes && !others.fields.is_empty() => self.client.replace(text, entry),
            Some(entry) => self.client.put(text, entry),
            None => self.client.take_out(text),
        };
        let new = new.map_err(refused)?;
        let (is_same, is_present) = (new == text, entry.is_some());
        let is_all = !is_present && is_blank(&new) && !self.is_made_by_us(text, &was, &new);
        let mark = if old.is_some_and(Text::has_bom) { "\u{feff}" } else { "" };
        let did = match (is_present, &was) {
            (true, _) if is_same => Did::FindIt,
            (true, Found::Nothing) => Did::Add,
            (true, _) => Did::Change,
            (false, _) if is_same => Did::FindNothing,
            (false, _) if is_all && file == self.path => Did::RemoveFile,
            (false, _) => Did::TakeOut,
        };
        // The target of a link is not removed, since it may have another use.
        let new = if is_all { self.client.nothing() } else { &new };
        let text = (did != Did::RemoveFile).then(|| format!("{mark}{new}"));
        let notes = self.notes(&others);
        Ok(Plan { did, was, entry, notes, text })
    }

    /// Returns the lines about other settings.
    fn notes(&self, others: &OtherSettings) -> Vec<String> {
        if others.is_empty() {
            return Vec::new();
        }
        let fate = match self.project.as_ref().map(|project| project.others) {
            Some(Others::Remove) => "not kept, since it came with the project (--keep keeps it):",
            Some(Others::Keep) => "kept, though it came with the project (--keep):",
            None => "kept unchanged:",
        };
        let told = others.told(self.project.as_ref()).into_iter();
        [fate.into()].into_iter().chain(told.map(|setting| format!("  {setting}"))).collect()
    }

    /// Makes the change if the file still is as it was read, and returns the lines to show; `None` if it is not.
    fn carry_out(
        &self,
        place: &Place,
        plan: &Plan,
        version: Option<&Version>,
        call: &Call,
    ) -> Result<Option<Vec<String>>, String> {
        let seen = version.map(|version| version.bytes.as_slice());
        let mut notes = Vec::new();
        if let (Found::Entry(was), Some(entry)) = (&plan.was, &plan.entry) {
            let [was, now] = [was, entry].map(|entry| short(&entry.to_string(), ENTRY_MAX));
            notes.extend([format!("old: {was}"), format!("new: {now}")]);
        }
        notes.extend(plan.notes.iter().cloned());
        if let Some(version) = version
            && let Some(copy) = self.copy_to(place, self.decode(version)?.as_str(), &plan.was)
        {
            let path = place.file.with_file_name(copy.name());
            if !self.keep_copy(place, copy, &path, &version.bytes, call)? {
                return Ok(None);
            }
            notes.push(format!("copy of the old file: {}", path.display()));
        }
        let mut is_other = false;
        let mut change = |versions: &[Option<Version>]| {
            let now = versions.first().and_then(Option::as_ref);
            is_other = now.map(|version| version.bytes.as_slice()) != seen;
            match plan.text.as_deref() {
                _ if is_other => Err(Stop),
                Some(text) => Ok(vec![Change::write(text)]),
                None => Ok(vec![Change::Remove]),
            }
        };
        let saved = place.store.update(std::slice::from_ref(&place.at), call, &mut change);
        match saved {
            Ok(saved) => {
                notes.extend(saved.iter().filter_map(|saved| tools::hard_links_note(saved.links)));
                Ok(Some(notes))
            }
            Err(_) if is_other => Ok(None),
            Err(error) => Err(self.not_written(&error)),
        }
    }

    /// True if the whole entry is as `setup` writes it, in a file that has the text `rest` without it.
    fn is_made_by_us(&self, text: &str, was: &Found, rest: &str) -> bool {
        matches!(was, Found::Entry(entry) if self.client.put(rest, entry).as_deref() == Ok(text))
    }

    /// Returns the path for a copy of the file; `None` if nothing in it can be lost. A copy without the entry is never
    /// replaced by one with it.
    fn copy_to<'p>(&self, place: &'p Place, text: &str, was: &Found) -> Option<&'p FilePath> {
        let is_kept = place.store.size(&place.before).is_some();
        let rest = self.client.take_out(text).unwrap_or_default();
        let is_ours = match was {
            Found::Nothing if is_blank(text) => return None,
            Found::Nothing => return Some(&place.before),
            Found::Other => false,
            Found::Entry(entry) => {
                entry.has_only_our_flags()
                    && (text == self.client.whole(entry) || self.is_made_by_us(text, was, &rest))
            }
        };
        match (is_ours, is_kept) {
            (true, _) if is_kept || is_blank(&rest) => None,
            (false, true) => Some(&place.before_last),
            _ => Some(&place.before),
        }
    }

    /// Copies the file beside itself if it still has these bytes. False if it has not.
    fn keep_copy(
        &self,
        place: &Place,
        copy: &FilePath,
        path: &Path,
        bytes: &[u8],
        call: &Call,
    ) -> Result<bool, String> {
        let refused = |why: &dyn fmt::Display| {
            let (file, copy) = (self.path.display(), path.display());
            format!("{file} left unchanged: its copy {copy} cannot be created: {why}")
        };
        if self.project.is_some() && machine::is_link(path) {
            return Err(refused(&"a link has that name"));
        }
        let failed = |error: StoreError| refused(&format!("{error}{}", help(&error)));
        place.store.copy(&place.at, copy, bytes, call).map_err(failed)
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
        if let Some(there) = missing.find(|above| machine::is_name_taken(above)) {
            return Err(format!(
                "{} cannot be created: {} is not a folder",
                self.path.display(),
                there.display()
            ));
        }
        if !machine::is_folder(folder) {
            return Ok(None);
        }
        let Place { store, at, .. } = Place::open(file, self.project.as_ref())?;
        store.read(&at, &Call::until(Instant::now() + TIME)).map_err(|error| {
            format!("{} cannot be read; left unchanged: {error}", self.path.display())
        })
    }

    fn decode(&self, version: &Version) -> Result<Text, String> {
        Text::decode(Arc::clone(&version.bytes))
            .map_err(|error| format!("{} is not text: {error}", self.path.display()))
    }

    /// Returns the path of the file with all links followed.
    fn file(&self) -> Result<PathBuf, String> {
        let failed = |error: &dyn fmt::Display| {
            format!("{} cannot be resolved: {error}", self.path.display())
        };
        let Some(project) = &self.project else {
            return machine::follow_links(&self.path).map_err(|error| failed(&error));
        };
        let name = self.path.strip_prefix(&project.folder).map_err(|error| failed(&error))?;
        match machine::follow_links_inside(&project.folder, name) {
            Ok(name) => Ok(project.folder.join(name)),
            Err(LinkError::Outside { link, target }) => Err(outside(project, &link, &target)),
            Err(LinkError::Failed(error)) => Err(failed(&error)),
        }
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

    fn not_understood(&self, fault: &Fault) -> String {
        format!("{} cannot be parsed; left unchanged: {fault}", self.path.display())
    }

    fn refused(&self, fault: &Fault, entry: &Entry) -> String {
        let (told, snippet) = (self.not_understood(fault), self.client.whole(entry));
        format!("{told}\nTo configure the client by hand, add:\n\n{snippet}")
    }

    fn not_written(&self, error: &StoreError) -> String {
        format!("{} left unchanged: {error}{}", self.path.display(), help(error))
    }
}

/// Returns why a file of a project is neither written nor read.
fn outside(project: &Project, link: &Path, target: &Path) -> String {
    format!(
        "{} is a link to {}, which is outside the project {}: not followed. Replace the link with a file or folder of the \
         project",
        link.display(),
        target.display(),
        project.folder.display()
    )
}

/// Returns the help for an error.
fn help(error: &StoreError) -> &'static str {
    match error {
        StoreError::Denied { .. } => "; the file and its folder must be writable",
        StoreError::LockTimeout { .. } => "; another program holds its lock, try again later",
        _ => "",
    }
}

/// True if a text has nothing but a byte order mark and blanks: nothing is left of a file that was made for the entry.
fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

