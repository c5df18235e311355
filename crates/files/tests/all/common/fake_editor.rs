//! An editor that keeps its buffers in memory, writes down every message, and has a person at it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use files::{Call, Editor, FilePath, StoreError};

/// Texts by name.
pub type Buffers = BTreeMap<String, String>;

/// What a person does after each message, given how many there have been.
type Person = dyn FnMut(usize, &mut Buffers) + Send;

/// How a message can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Refused: nothing was done.
    Denied,
    /// Refused, since there is no such folder.
    NoFolder,
    /// Done, but the answer never comes.
    Lost,
    /// Neither done nor answered.
    Ignored,
}

#[derive(Default)]
pub struct FakeEditor(Mutex<State>);

#[derive(Default)]
struct State {
    buffers: Buffers,
    messages: Vec<String>,
    /// The next answer to a message.
    planned: BTreeMap<String, Answer>,
    person: Option<Box<Person>>,
}

impl FakeEditor {
    /// Nobody is there.
    pub fn quiet(buffers: &[(&str, &str)]) -> FakeEditor {
        let editor = FakeEditor::default();
        for (name, text) in buffers {
            editor.put(name, text);
        }
        editor
    }

    /// Somebody who acts after every message.
    pub fn with_person(
        buffers: &[(&str, &str)],
        person: impl FnMut(usize, &mut Buffers) + Send + 'static,
    ) -> FakeEditor {
        let editor = FakeEditor::quiet(buffers);
        editor.state().person = Some(Box::new(person));
        editor
    }

    /// Types again and again, into every buffer, one character of [`is_typed`] that is never the same: after four messages
    /// of every twelve.
    pub fn restless() -> FakeEditor {
        FakeEditor::with_person(&[], |count, buffers| {
            if count % 12 >= 4 {
                return;
            }
            let next = u32::try_from(count % 0x1900).unwrap();
            for text in buffers.values_mut() {
                *text = plain(text);
                text.push(char::from_u32(0xe000 + next).unwrap());
            }
        })
    }

    pub fn put(&self, name: &str, text: &str) {
        self.state().buffers.insert(name.into(), text.into());
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.state().buffers.get(name).cloned()
    }

    pub fn names(&self) -> Vec<String> {
        self.state().buffers.keys().cloned().collect()
    }

    /// `read a`, `write a`, …
    pub fn messages(&self) -> Vec<String> {
        self.state().messages.clone()
    }

    /// What becomes of the next such message.
    pub fn plan(&self, message: &str, answer: Answer) {
        self.state().planned.insert(message.into(), answer);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer<T>(
        &self,
        verb: &str,
        at: &FilePath,
        call: &Call,
        act: impl FnOnce(&mut Buffers, String) -> T,
    ) -> Result<T, StoreError> {
        if call.cancel.is_set() {
            return Err(StoreError::Cancelled);
        }
        let state = &mut *self.state();
        let message = format!("{verb} {at}");
        let planned = state.planned.remove(&message);
        state.messages.push(message);
        let outcome = match planned {
            None => Ok(act(&mut state.buffers, at.to_string())),
            Some(Answer::Denied) => {
                Err(StoreError::Denied { reason: Some("the editor said no".into()) })
            }
            Some(Answer::NoFolder) => Err(StoreError::NoFolder),
            Some(Answer::Ignored) => Err(StoreError::TimedOut),
            Some(Answer::Lost) => {
                act(&mut state.buffers, at.to_string());
                Err(StoreError::TimedOut)
            }
        };
        if let Some(person) = &mut state.person {
            person(state.messages.len(), &mut state.buffers);
        }
        outcome
    }
}

impl Editor for FakeEditor {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Vec<u8>>, StoreError> {
        self.answer("read", at, call, |buffers, name| {
            buffers.get(&name).map(|text| text.clone().into_bytes())
        })
    }

    fn write(&self, at: &FilePath, bytes: &[u8], call: &Call) -> Result<(), StoreError> {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        self.answer("write", at, call, |buffers, name| drop(buffers.insert(name, text)))
    }
}

impl fmt::Debug for FakeEditor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeEditor").finish_non_exhaustive()
    }
}

/// Private use: no other text in the tests has such characters.
fn is_typed(char: char) -> bool {
    ('\u{e000}'..='\u{f8ff}').contains(&char)
}

/// The text without what [`FakeEditor::restless`] typed.
pub fn plain(text: &str) -> String {
    text.chars().filter(|&char| !is_typed(char)).collect()
}
