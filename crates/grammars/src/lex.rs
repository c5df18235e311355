//! Lexing: one function with tables finds tokens, in place of a parser's generated functions with hundreds of states.
//!
//! In each state a character leads to a next state or to none. Characters that no state tells apart share a class; the
//! table has a row for each state, with the next state for each class.
//!
//! tree-sitter does not tell the lex function which language it needs tokens for. So the caller sets the language for
//! the duration of a parse: [`during`].

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::ptr;

use crate::unpack::{Automaton, NONE, SKIP, Tokens};

/// The first fields of tree-sitter's `TSLexer`, with which a lex function reads a text.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct TsLexer {
    /// The next character: 0 at the end of the text, negative for bytes that are no character.
    next: i32,
    found: u16,
    advance: unsafe extern "C" fn(*mut TsLexer, bool),
    mark_end: unsafe extern "C" fn(*mut TsLexer),
    _column: unsafe extern "C" fn(*mut TsLexer) -> u32,
    _is_at_start: unsafe extern "C" fn(*const TsLexer) -> bool,
    is_at_end: unsafe extern "C" fn(*const TsLexer) -> bool,
}

/// Lex function: looks for a token from a state on. Returns true if there is one.
pub(crate) type LexFn = unsafe extern "C" fn(*mut TsLexer, u16) -> bool;

/// Maps every character to its class.
#[derive(Debug)]
pub(crate) struct CharacterClasses {
    ascii: [u16; 128],
    /// First character of each range and its class, in ascending order.
    classes: Vec<(i32, u16)>,
    end: u16,
    no_character: u16,
    /// Number of classes.
    count: usize,
}

impl CharacterClasses {
    /// Reads the classes from `words`, all tables of a language. `None` if the build script did not write them.
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

    /// Finds the class by binary search. The character must not be negative.
    fn search(&self, character: i32) -> u16 {
        let behind = self.classes.partition_point(|(first, _)| *first <= character);
        self.classes[behind - 1].1
    }
}

/// Tables that find the tokens of a language.
pub(crate) struct LexTables<'a> {
    /// All tables of the language.
    pub words: &'a [u16],
    pub characters: &'a CharacterClasses,
    pub tokens: &'a Tokens,
}

/// A parse in progress on this thread.
struct CurrentParse<'a> {
    tables: LexTables<'a>,
    go_on: RefCell<&'a mut dyn FnMut() -> ControlFlow<()>>,
    /// Tokens left to look for before `go_on` is called again.
    left: Cell<u32>,
    is_over: Cell<bool>,
}

/// Tokens between two calls of `go_on`. Where a text does not parse, tree-sitter looks for a token at each of its
/// characters without calling the progress callback, and some languages then read to the end each time.
const TOKENS_BETWEEN_CHECKS: u32 = 16;

thread_local! {
    static CURRENT: Cell<*const CurrentParse<'static>> = const { Cell::new(ptr::null()) };
}

/// Guard that restores the previous `CURRENT` when it is dropped.
struct CurrentGuard(*const CurrentParse<'static>);

impl Drop for CurrentGuard {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Runs `work` with `tables` set for lexing on the current thread. Once `go_on` breaks, no more tokens are found;
/// `work` receives `go_on` as well.
pub(crate) fn during<T>(
    tables: LexTables<'_>,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
    work: impl FnOnce(&mut dyn FnMut() -> ControlFlow<()>) -> T,
) -> T {
    let parse = CurrentParse {
        tables,
        go_on: RefCell::new(go_on),
        left: Cell::new(TOKENS_BETWEEN_CHECKS),
        is_over: Cell::new(false),
    };
    let _before = CurrentGuard(CURRENT.replace((&raw const parse).cast()));
    work(&mut || parse.go_on())
}

impl CurrentParse<'_> {
    fn go_on(&self) -> ControlFlow<()> {
        if !self.is_over.get()
            && let Ok(mut go_on) = self.go_on.try_borrow_mut()
        {
            self.is_over.set(go_on().is_break());
        }
        if self.is_over.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Counts another token and calls `go_on` now and then. False if the parse must stop.
    fn may_look(&self) -> bool {
        self.left.set(self.left.get().checked_sub(1).unwrap_or(TOKENS_BETWEEN_CHECKS));
        self.left.get() > 0 && !self.is_over.get() || self.go_on().is_continue()
    }

    /// Finds a token from `state` on.
    ///
    /// # Safety
    /// `reader` must come from tree-sitter.
    #[expect(unsafe_code, reason = "the library's functions are C")]
    unsafe fn find(&self, automaton: &Automaton, reader: *mut TsLexer, state: u16) -> bool {
        if !self.may_look() {
            // At the end of the text tree-sitter gives up.
            // SAFETY: the reader is valid, and the functions are its own.
            while unsafe { !((*reader).is_at_end)(reader) } {
                unsafe { ((*reader).advance)(reader, false) };
            }
            return false;
        }
        let LexTables { words, characters, .. } = self.tables;
        let (ends, steps) = (&words[automaton.ends.clone()], &words[automaton.steps.clone()]);
        let mut state = usize::from(state);
        let mut is_found = false;
        loop {
            // SAFETY: as above.
            let next = unsafe { (*reader).next };
            let class = if next == 0 && unsafe { ((*reader).is_at_end)(reader) } {
                characters.end
            } else {
                characters.class(next)
            };
            // tree-sitter never asks for a state that does not exist.
            let Some(end) = ends.get(state) else { return false };
            if *end != NONE {
                is_found = true;
                // SAFETY: as above.
                unsafe {
                    (*reader).found = *end;
                    ((*reader).mark_end)(reader);
                }
            }
            let step = steps[state * characters.count + usize::from(class)];
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
/// Requires the same as [`CurrentParse::find`].
#[expect(unsafe_code, reason = "the library that parses calls it")]
pub(crate) unsafe extern "C" fn find(reader: *mut TsLexer, state: u16) -> bool {
    // SAFETY: a `CurrentParse` is alive as long as it is `CURRENT`.
    let parse = unsafe { CURRENT.get().as_ref() };
    // SAFETY: promised by the caller.
    parse.is_some_and(|it| unsafe { it.find(&it.tables.tokens.all, reader, state) })
}

/// Finds keywords only.
///
/// # Safety
/// Requires the same as [`CurrentParse::find`].
#[expect(unsafe_code, reason = "as above")]
pub(crate) unsafe extern "C" fn find_keyword(reader: *mut TsLexer, state: u16) -> bool {
    // SAFETY: as above.
    let parse = unsafe { CURRENT.get().as_ref() };
    // SAFETY: as above.
    parse.is_some_and(|it| unsafe { it.find(&it.tables.tokens.keywords, reader, state) })
}
