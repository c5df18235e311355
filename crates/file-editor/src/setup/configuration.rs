//! The configuration of one client on disk: looked at, rehearsed, changed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use files::{
    Call, Change, DirPath, DiskOptions, DiskStore, Durability, FilePath, Root, Stop, Store,
    StoreError, Version, machine,
};
use text::{Composed, Names, Text, diff};

use super::client::Client;
use super::entry::{Entry, Fault};
use super::json::Found;

/// What a client remembers may be in its configuration too.
const OPTIONS: DiskOptions = DiskOptions { max_size: 64 << 20, durability: Durability::Full };
/// A client that holds the lock does so for a moment.
const TIME: Duration = Duration::from_secs(10);
/// At the end of the name of a file as it was before.
const BEFORE: &str = ".before-file-editor";

/// What the configuration shall be.
pub enum Wish {
    Present(Entry),
    Absent,
}

/// What became of it.
pub enum Outcome {
    Added {
        file: PathBuf,
        before: Option<PathBuf>,
    },
    Changed {
        file: PathBuf,
        before: Option<PathBuf>,
    },
    Removed {
        file: PathBuf,
        before: Option<PathBuf>,
    },
    /// Nothing else was in the file.
    FileRemoved {
        file: PathBuf,
        before: Option<PathBuf>,
    },
    AlreadyThere {
        file: PathBuf,
    },
    NotThere {
        file: PathBuf,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (told, file, before) = match self {
            Outcome::Added { file, before } => ("added to", file, before.as_ref()),
            Outcome::Changed { file, before } => ("changed in", file, before.as_ref()),
            Outcome::Removed { file, before } => ("taken out of", file, before.as_ref()),
            Outcome::FileRemoved { file, before } => {
                ("taken away, with nothing else in it:", file, before.as_ref())
            }
            Outcome::AlreadyThere { file } => ("already there, in", file, None),
            Outcome::NotThere { file } => ("nothing to take out of", file, None),
        };
        write!(f, "{told} {}", file.display())?;
        before.map_or(Ok(()), |before| write!(f, "\n  as it was before: {}", before.display()))
    }
}

pub struct Configuration {
    pub client: &'static Client,
    /// Where the client looks for it.
    path: PathBuf,
}

/// A file to be edited, in a folder that exists.
struct Place {
    store: DiskStore,
    at: FilePath,
    copy: FilePath,
    file: PathBuf,
}

impl Place {
    fn open(file: &Path) -> Result<Place, String> {
        let failed =
            |what: &dyn fmt::Display| format!("{} cannot be opened: {what}", file.display());
        let (folder, name) =
            file.parent().zip(file.file_name()).ok_or_else(|| failed(&"no file"))?;
        let name = name.to_str().ok_or_else(|| failed(&"its name is not text"))?;
        let root = Root::open(folder).map_err(|error| failed(&error))?;
        let path = |name: &str| root.relative(name).map_err(|error| failed(&error));
        let (at, copy) = (path(name)?, path(&format!("{name}{BEFORE}"))?);
        Ok(Place { store: DiskStore::open(Arc::new(root), OPTIONS), at, copy, file: file.into() })
    }
}

impl Configuration {
    pub fn new(client: &'static Client, path: PathBuf) -> Configuration {
        Configuration { client, path }
    }

    /// What is there of us; `None` if there is no file.
    pub fn look(&self) -> Result<Option<Found>, String> {
        let text = self.read()?;
        let found = text.map(|text| self.client.find(text.as_str())).transpose();
        found.map_err(|fault| self.not_understood(&fault))
    }

    /// What would be changed, as a diff; or that nothing would.
    pub fn rehearse(&self, wish: &Wish) -> Result<String, String> {
        let old = self.read()?;
        let Some(new) = self.wanted(old.as_ref(), wish)? else {
            return Ok(format!("{}: nothing to do\n", self.client.name));
        };
        let new = if is_blank(&new) { "" } else { &new };
        let name = self.path.display().to_string();
        let names = Names {
            old: if old.is_some() { &name } else { "/dev/null" },
            new: if new.is_empty() { "/dev/null" } else { &name },
        };
        let old = old.as_ref().map_or("", Text::whole);
        Ok(diff::unified(old, new, &Composed::new(), names))
    }

    /// Makes it so.
    pub fn save(&self, wish: &Wish) -> Result<Outcome, String> {
        let old = self.read()?;
        let file = self.file()?;
        let Some(new) = self.wanted(old.as_ref(), wish)? else {
            return Ok(match wish {
                Wish::Present(_) => Outcome::AlreadyThere { file },
                Wish::Absent => Outcome::NotThere { file },
            });
        };
        let was = self.look()?.unwrap_or(Found::Nothing);
        let made = self.make_folders(&file)?;
        let written = Place::open(&file).and_then(|place| {
            let before = match &old {
                Some(old) if !self.is_only_ours(old, &was) => Some(self.keep_copy(&place)?),
                _ => None,
            };
            self.write(&place, wish)?;
            Ok(before)
        });
        let before = written.inspect_err(|_| {
            if let Some((store, made)) = &made {
                store.remove_folders(made);
            }
        })?;
        Ok(match (wish, was) {
            (Wish::Present(_), Found::Nothing) => Outcome::Added { file, before },
            (Wish::Present(_), _) => Outcome::Changed { file, before },
            (Wish::Absent, _) if is_blank(&new) && file == self.path => {
                Outcome::FileRemoved { file, before }
            }
            (Wish::Absent, _) => Outcome::Removed { file, before },
        })
    }

    /// The text to be written, with its byte order mark; `None` if it is what it shall be.
    fn wanted(&self, old: Option<&Text>, wish: &Wish) -> Result<Option<String>, String> {
        let text = old.map_or("", Text::as_str);
        let refused = |fault: Fault| match wish {
            Wish::Present(entry) => self.refused(&fault, entry),
            Wish::Absent => self.not_understood(&fault),
        };
        let new = match wish {
            Wish::Absent => self.client.take_out(text),
            Wish::Present(entry) if old.is_none() => Ok(self.client.whole(entry)),
            Wish::Present(entry) => self.client.find(text).and_then(|found| match found {
                Found::Entry(there) => self.client.put(text, &entry.with_flags_of(&there)),
                Found::Other | Found::Nothing => self.client.put(text, entry),
            }),
        };
        let new = new.map_err(refused)?;
        let mark = if old.is_some_and(Text::has_bom) { "\u{feff}" } else { "" };
        Ok((new != text).then(|| format!("{mark}{new}")))
    }

    fn write(&self, place: &Place, wish: &Wish) -> Result<(), String> {
        let mut fault = None;
        let mut change = |versions: &[Option<Version>]| {
            let old = versions.iter().flatten().next();
            let old = old.map(|version| self.decode(version)).transpose();
            match old.and_then(|old| self.wanted(old.as_ref(), wish)) {
                Ok(None) => Ok(vec![Change::Keep]),
                Ok(Some(new)) if is_blank(&new) && place.file == self.path => {
                    Ok(vec![Change::Remove])
                }
                // What a link leads to is somebody's own.
                Ok(Some(new)) if is_blank(&new) => Ok(vec![Change::write(self.client.nothing())]),
                Ok(Some(new)) => Ok(vec![Change::write(new)]),
                Err(found) => {
                    fault = Some(found);
                    Err(Stop)
                }
            }
        };
        let paths = std::slice::from_ref(&place.at);
        let saved = place.store.update(paths, &call(), &mut change);
        saved.map(drop).map_err(|error| fault.unwrap_or_else(|| self.not_written(&error)))
    }

    /// Whether the file has nothing that somebody else wrote.
    fn is_only_ours(&self, old: &Text, was: &Found) -> bool {
        let Found::Entry(entry) = was else { return is_blank(old.as_str()) };
        old.as_str().trim_end() == self.client.whole(entry).trim_end()
    }

    /// Keeps the file as it is now, beside it.
    fn keep_copy(&self, place: &Place) -> Result<PathBuf, String> {
        let copy = place.file.with_file_name(place.copy.name());
        let failed = |error: StoreError| {
            let (path, copy, help) = (self.path.display(), copy.display(), help(&error));
            format!("{path} is left as it is: its copy, {copy}, cannot be made: {error}{help}")
        };
        place.store.copy(&place.at, &place.copy, &call()).map_err(failed)?;
        Ok(copy)
    }

    fn read(&self) -> Result<Option<Text>, String> {
        let file = self.file()?;
        let folder = file.parent().unwrap_or(Path::new("/"));
        if !machine::is_folder(folder) {
            return Ok(None);
        }
        let Place { store, at, .. } = Place::open(&file)?;
        let version = store
            .read(&at, &call())
            .map_err(|error| format!("{} cannot be read: {error}", self.path.display()))?;
        version.map(|version| self.decode(&version)).transpose()
    }

    fn decode(&self, version: &Version) -> Result<Text, String> {
        Text::decode(Arc::clone(&version.bytes))
            .map_err(|error| format!("{} is no text: {error}", self.path.display()))
    }

    /// The file itself, wherever links lead.
    fn file(&self) -> Result<PathBuf, String> {
        machine::follow_links(&self.path)
            .map_err(|error| format!("{} cannot be followed: {error}", self.path.display()))
    }

    /// Makes the folder of the file if it is missing, from the nearest one that exists on; what was made, and who can take
    /// it back.
    fn make_folders(&self, file: &Path) -> Result<Option<(DiskStore, Vec<DirPath>)>, String> {
        let failed =
            |what: &dyn fmt::Display| format!("{} cannot be made: {what}", self.path.display());
        let folder = file.parent().ok_or_else(|| failed(&"it is in no folder"))?;
        let above = folder.ancestors().find(|above| machine::is_folder(above)).unwrap_or(folder);
        if above == folder {
            return Ok(None);
        }
        let root = Root::open(above).map_err(|error| failed(&error))?;
        let missing = folder.to_str().ok_or_else(|| failed(&"its name is not text"))?;
        let missing = root.folder(missing).map_err(|error| failed(&error))?;
        let store = DiskStore::open(Arc::new(root), OPTIONS);
        let made = store.make_folders(&missing, &call()).map_err(|error| failed(&error))?;
        Ok(Some((store, made)))
    }

    fn not_understood(&self, fault: &Fault) -> String {
        format!("{} is not understood, and left as it is: {fault}", self.path.display())
    }

    fn refused(&self, fault: &Fault, entry: &Entry) -> String {
        let (told, snippet) = (self.not_understood(fault), self.client.whole(entry));
        format!("{told}\nBy hand, this is what has to be there:\n\n{snippet}")
    }

    fn not_written(&self, error: &StoreError) -> String {
        format!("{} is left as it is: {error}{}", self.path.display(), help(error))
    }
}

/// What would help against it.
fn help(error: &StoreError) -> &'static str {
    match error {
        StoreError::Denied { .. } => "; it takes the right to write the file and its folder",
        StoreError::LockTimeout => "; another program holds it: try again when that is done",
        _ => "",
    }
}

/// Whether nothing is left of a file that was made for us.
fn is_blank(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().is_empty()
}

fn call() -> Call {
    Call::until(Instant::now() + TIME)
}
