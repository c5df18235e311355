//! A fake editor with buffers in memory, a person who types, and answers that can be planned.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use files::Call;

use super::super::{EditorFiles, MessageError, normalize::normalized};

pub type Buffers = BTreeMap<PathBuf, String>;

/// Called after each message with the number of messages so far; edits the buffers as a person would.
pub type Person = dyn FnMut(usize, &mut Buffers) + Send;

#[derive(Default)]
pub struct FakeEditor(Mutex<FakeEditorState>);

#[derive(Default)]
pub struct FakeEditorState {
    pub buffers: Buffers,
    pub messages: Vec<String>,
    /// Error to answer to the message of that number, counted from 1, without doing anything.
    pub planned: BTreeMap<usize, MessageError>,
    /// Error to answer to every `read` or every `write`, without doing anything.
    pub always: BTreeMap<&'static str, MessageError>,
    /// Writes are done, and never answered.
    pub answers_no_write: bool,
    pub keeps_line_feeds_only: bool,
    /// A missing file is read as an empty text.
    pub shows_nothing_as_empty: bool,
    pub person: Option<Box<Person>>,
}

impl FakeEditor {
    pub fn lock(&self) -> MutexGuard<'_, FakeEditorState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer<T>(
        &self,
        verb: &str,
        path: &Path,
        act: impl FnOnce(&mut FakeEditorState) -> Result<T, MessageError>,
    ) -> Result<T, MessageError> {
        let editor = &mut *self.lock();
        editor.messages.push(format!("{verb} {}", path.display()));
        let count = editor.messages.len();
        let planned = editor.planned.remove(&count).or_else(|| editor.always.get(verb).cloned());
        let outcome = planned.map_or_else(|| act(editor), Err);
        if let Some(person) = &mut editor.person {
            person(count, &mut editor.buffers);
        }
        outcome
    }
}

impl EditorFiles for FakeEditor {
    fn read(&self, path: &Path, _: &Call) -> Result<String, MessageError> {
        self.answer("read", path, |editor| match editor.buffers.get(path) {
            None if editor.shows_nothing_as_empty => Ok(String::new()),
            text => text.cloned().ok_or(MessageError::NoSuchFile),
        })
    }

    fn write(&self, path: &Path, text: &str, _: &Call) -> Result<(), MessageError> {
        self.answer("write", path, |editor| {
            let kept = if editor.keeps_line_feeds_only {
                String::from_utf8(normalized(text.as_bytes()).into_owned()).unwrap()
            } else {
                text.to_owned()
            };
            editor.buffers.insert(path.into(), kept);
            if editor.answers_no_write { Err(MessageError::TimedOut) } else { Ok(()) }
        })
    }
}

impl fmt::Debug for FakeEditor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeEditor").finish_non_exhaustive()
    }
}

/// A person who types one character of [`is_typed`] into every buffer, never the same, after four messages of every
/// twelve.
pub fn restless() -> Box<Person> {
    Box::new(|count, buffers| {
        if count % 12 >= 4 {
            return;
        }
        let next = u32::try_from(count % 0x1900).unwrap();
        for text in buffers.values_mut() {
            *text = without_typed(text);
            text.push(char::from_u32(0xe000 + next).unwrap());
        }
    })
}

/// True for characters of private use, which no other text in the tests has.
fn is_typed(char: char) -> bool {
    ('\u{e000}'..='\u{f8ff}').contains(&char)
}

/// Returns the text without what [`restless`] typed.
pub fn without_typed(text: &str) -> String {
    text.chars().filter(|&char| !is_typed(char)).collect()
}
