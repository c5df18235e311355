//! Finding tokens: what a parser has as functions of hundreds of states, as tables for one function.
//!
//! In every state a character leads to another one, or to none. Characters that make no difference anywhere are of one
//! class; a table has a row for each state, and in it a number for each class.
//!
//! The library that parses does not tell that function of which language it asks for tokens. So who parses says it, for
//! as long as that takes: [`during`].

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::ptr;

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

/// Tables by which the tokens of a language are found.
pub(crate) struct Tables<'a> {
    /// All tables of the language.
    pub words: &'a [u16],
    pub characters: &'a Characters,
    pub tokens: &'a Tokens,
}

/// A text that is being parsed, on this thread.
struct Parse<'a> {
    tables: Tables<'a>,
    go_on: RefCell<&'a mut dyn FnMut() -> ControlFlow<()>>,
    /// How many tokens are looked for before it is asked.
    left: Cell<u32>,
    is_over: Cell<bool>,
}

/// Where a text does not fit, the library looks for a token at each of its characters, and asks nobody meanwhile; some
/// languages then read on to the end each time. So it is asked here.
const STRIDE: u32 = 16;

thread_local! {
    static CURRENT: Cell<*const Parse<'static>> = const { Cell::new(ptr::null()) };
}

/// Sets back which it was.
struct Before(*const Parse<'static>);

impl Drop for Before {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Does `work`; the tokens that are looked for meanwhile, on this thread, are found by `tables`. When `go_on` says no,
/// there are no more of them. It is given to `work` as well.
pub(crate) fn during<T>(
    tables: Tables<'_>,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
    work: impl FnOnce(&mut dyn FnMut() -> ControlFlow<()>) -> T,
) -> T {
    let parse = Parse {
        tables,
        go_on: RefCell::new(go_on),
        left: Cell::new(STRIDE),
        is_over: Cell::new(false),
    };
    let _before = Before(CURRENT.replace((&raw const parse).cast()));
    work(&mut || parse.go_on())
}

impl Parse<'_> {
    fn go_on(&self) -> ControlFlow<()> {
        if !self.is_over.get()
            && let Ok(mut go_on) = self.go_on.try_borrow_mut()
        {
            self.is_over.set(go_on().is_break());
        }
        if self.is_over.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Counts another token, and now and then asks.
    fn may_look(&self) -> bool {
        self.left.set(self.left.get().checked_sub(1).unwrap_or(STRIDE));
        self.left.get() > 0 && !self.is_over.get() || self.go_on().is_continue()
    }

    /// # Safety
    /// The reader is one of the library that parses.
    #[expect(unsafe_code, reason = "the library's functions are C")]
    unsafe fn find(&self, automaton: &Automaton, reader: *mut Reader, state: u16) -> bool {
        if !self.may_look() {
            // At the end the library gives up.
            // SAFETY: the reader is there, and the functions are its own.
            while unsafe { !((*reader).is_at_end)(reader) } {
                unsafe { ((*reader).advance)(reader, false) };
            }
            return false;
        }
        let Tables { words, characters, .. } = self.tables;
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
/// As [`Parse::find`].
#[expect(unsafe_code, reason = "the library that parses calls it")]
pub(crate) unsafe extern "C" fn find(reader: *mut Reader, state: u16) -> bool {
    // SAFETY: it is there for as long as it is the current one.
    let parse = unsafe { CURRENT.get().as_ref() };
    // SAFETY: as the caller says.
    parse.is_some_and(|it| unsafe { it.find(&it.tables.tokens.all, reader, state) })
}

/// Finds words only.
///
/// # Safety
/// As [`Parse::find`].
#[expect(unsafe_code, reason = "as above")]
pub(crate) unsafe extern "C" fn find_keyword(reader: *mut Reader, state: u16) -> bool {
    // SAFETY: as above.
    let parse = unsafe { CURRENT.get().as_ref() };
    // SAFETY: as above.
    parse.is_some_and(|it| unsafe { it.find(&it.tables.tokens.keywords, reader, state) })
}
