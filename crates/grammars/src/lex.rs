//! Finding tokens: what a parser has as functions of hundreds of states, as tables for one function.
//!
//! In every state a character leads to another one, or to none. Characters that make no difference anywhere are of one
//! class; a table has a row for each state, and in it a number for each class.
//!
//! The library that parses does not tell that function of which language it asks for tokens. So who parses says it, for
//! as long as that takes: [`Grammar::during`].

use std::cell::Cell;
use std::ptr;

use crate::Grammar;
use crate::unpack::{Automaton, NONE, SKIP, Tokens};

/// What the library that parses reads a text with: the first of its fields.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Reader {
    /// The character that comes next. At the end it is 0, and for bytes that are no character below that.
    next: i32,
    found: u16,
    advance: unsafe extern "C" fn(*mut Reader, bool),
    mark_end: unsafe extern "C" fn(*mut Reader),
    _column: unsafe extern "C" fn(*mut Reader) -> u32,
    _is_at_start: unsafe extern "C" fn(*const Reader) -> bool,
    is_at_end: unsafe extern "C" fn(*const Reader) -> bool,
}

/// Looks for a token, from a state on. Returns whether there is one.
pub(crate) type Lex = unsafe extern "C" fn(*mut Reader, u16) -> bool;

/// The class of every character.
#[derive(Debug)]
pub(crate) struct Characters {
    ascii: [u16; 128],
    /// From which character on, in their order.
    classes: Vec<(i32, u16)>,
    end: u16,
    no_character: u16,
    /// How many classes there are.
    count: usize,
}

impl Characters {
    /// `words` are all tables of a language. `None`: they are not ours.
    pub fn read(words: &[u16], tokens: &Tokens) -> Option<Self> {
        let (gaps, classes) = (words.get(tokens.gaps.clone())?, words.get(tokens.classes.clone())?);
        let (&[end, no_character], classes) = classes.split_first_chunk()?;
        let mut last = 0;
        let classes = gaps.iter().zip(classes).map(|(gap, class)| {
            last += i32::from(*gap);
            (last, *class)
        });
        let mut characters = Self {
            ascii: [0; 128],
            classes: classes.collect(),
            end,
            no_character,
            count: tokens.all.steps.len().checked_div(tokens.all.ends.len())?,
        };
        characters.classes.first().filter(|(first, _)| *first == 0)?;
        characters.ascii =
            std::array::from_fn(|at| characters.search(i32::try_from(at).unwrap_or(0)));
        Some(characters)
    }

    fn class(&self, character: i32) -> u16 {
        match usize::try_from(character).map(|at| self.ascii.get(at)) {
            Ok(Some(class)) => *class,
            Ok(None) => self.search(character),
            Err(_) => self.no_character,
        }
    }

    /// It is none of those below 0.
    fn search(&self, character: i32) -> u16 {
        let behind = self.classes.partition_point(|(first, _)| *first <= character);
        self.classes[behind - 1].1
    }
}

thread_local! {
    static CURRENT: Cell<*const Grammar> = const { Cell::new(ptr::null()) };
}

/// Sets back which it was.
struct Before(*const Grammar);

impl Drop for Before {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

impl Grammar {
    /// Does `work`; the tokens that are looked for meanwhile, on this thread, are of this language.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let _before = Before(CURRENT.replace(self));
        work()
    }

    /// # Safety
    /// The reader is one of the library that parses.
    #[expect(unsafe_code, reason = "the library's functions are C")]
    unsafe fn find(&self, automaton: &Automaton, reader: *mut Reader, state: u16) -> bool {
        let words = self.words();
        let (ends, steps) = (&words[automaton.ends.clone()], &words[automaton.steps.clone()]);
        let mut state = usize::from(state);
        let mut is_found = false;
        loop {
            // SAFETY: the reader is there, and the functions are its own.
            let next = unsafe { (*reader).next };
            let class = if next == 0 && unsafe { ((*reader).is_at_end)(reader) } {
                self.characters.end
            } else {
                self.characters.class(next)
            };
            // The library asks for no state that is not there.
            let Some(end) = ends.get(state) else { return false };
            if *end != NONE {
                is_found = true;
                // SAFETY: as above.
                unsafe {
                    (*reader).found = *end;
                    ((*reader).mark_end)(reader);
                }
            }
            let step = steps[state * self.characters.count + usize::from(class)];
            if step == NONE {
                return is_found;
            }
            // SAFETY: as above.
            unsafe { ((*reader).advance)(reader, step & SKIP != 0) };
            state = usize::from(step & !SKIP);
        }
    }
}

/// Finds any token.
///
/// # Safety
/// As [`Grammar::find`].
#[expect(unsafe_code, reason = "the library that parses calls it")]
pub(crate) unsafe extern "C" fn find(reader: *mut Reader, state: u16) -> bool {
    // SAFETY: nobody parses but during the time for which its grammar is borrowed.
    let grammar = unsafe { CURRENT.get().as_ref() };
    // SAFETY: as the caller says.
    grammar.is_some_and(|it| unsafe { it.find(&it.tokens().all, reader, state) })
}

/// Finds words only.
///
/// # Safety
/// As [`Grammar::find`].
#[expect(unsafe_code, reason = "as above")]
pub(crate) unsafe extern "C" fn find_keyword(reader: *mut Reader, state: u16) -> bool {
    // SAFETY: as above.
    let grammar = unsafe { CURRENT.get().as_ref() };
    // SAFETY: as above.
    grammar.is_some_and(|it| unsafe { it.find(&it.tokens().keywords, reader, state) })
}
