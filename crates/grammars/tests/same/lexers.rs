//! The tokens of both, and every step on the way to them.

use std::ffi::c_void;
use std::ops::ControlFlow;

use super::dice::Dice;
use super::pairs;
use super::tables::{Lex, lexers};

/// A text, as the library that parses shows it to whoever looks for tokens.
#[repr(C)]
struct Reader {
    next: i32,
    found: u16,
    advance: unsafe extern "C" fn(*mut Reader, bool),
    mark_end: unsafe extern "C" fn(*mut Reader),
    column: unsafe extern "C" fn(*mut Reader) -> u32,
    is_at_start: unsafe extern "C" fn(*const Reader) -> bool,
    is_at_end: unsafe extern "C" fn(*const Reader) -> bool,
    log: *const c_void,
    /// The other way round.
    rest: Vec<i32>,
    is_over: bool,
    /// Calls: 0 and 1 to advance, 2 to mark the end of a token.
    calls: Vec<u8>,
}

impl Reader {
    fn go_on(&mut self) {
        let next = self.rest.pop();
        self.is_over = next.is_none();
        self.next = next.unwrap_or(0);
    }
}

#[expect(unsafe_code, reason = "C calls it")]
unsafe extern "C" fn advance(reader: *mut Reader, skip: bool) {
    // SAFETY: it is the one that was given to it.
    let reader = unsafe { &mut *reader };
    reader.calls.push(u8::from(skip));
    reader.go_on();
}

#[expect(unsafe_code, reason = "as above")]
unsafe extern "C" fn mark_end(reader: *mut Reader) {
    // SAFETY: as above.
    unsafe { &mut *reader }.calls.push(2);
}

#[expect(unsafe_code, reason = "as above")]
unsafe extern "C" fn is_at_end(reader: *const Reader) -> bool {
    // SAFETY: as above.
    unsafe { &*reader }.is_over
}

#[expect(unsafe_code, reason = "as above")]
unsafe extern "C" fn no_column(_: *mut Reader) -> u32 {
    0
}

#[expect(unsafe_code, reason = "as above")]
unsafe extern "C" fn never(_: *const Reader) -> bool {
    false
}

/// Result of a search for a token: the token, and the calls that were made.
#[expect(unsafe_code, reason = "a function of C")]
fn find(lex: Lex, state: u16, text: &[i32]) -> (bool, u16, Vec<u8>) {
    let mut reader = Reader {
        next: 0,
        found: u16::MAX,
        advance,
        mark_end,
        column: no_column,
        is_at_start: never,
        is_at_end,
        log: std::ptr::null(),
        rest: text.iter().rev().copied().collect(),
        is_over: false,
        calls: Vec::new(),
    };
    reader.go_on();
    // SAFETY: it is given what it expects.
    let is_found = unsafe { lex((&raw mut reader).cast(), state) };
    (is_found, reader.found, reader.calls)
}

#[test]
fn every_state_takes_the_same_step_for_every_character() {
    const STATES: u16 = 2_500;
    for (packed, plain, _) in pairs() {
        let grammar = packed.unpack();
        let name = packed.name();
        let (ours, theirs) = (lexers(grammar.as_ptr()), lexers(plain.into_raw().cast()));
        let mut dice = Dice(0x70ce);
        for (ours, theirs) in ours.into_iter().zip(theirs) {
            assert_eq!(ours.is_some(), theirs.is_some(), "{name}");
            let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
            let check = |state, text: &[i32]| {
                let found =
                    grammar.during(&mut || ControlFlow::Continue(()), |_| find(ours, state, text));
                assert_eq!(found, find(theirs, state, text), "{name}: {state}, {text:x?}");
                !found.2.is_empty()
            };
            let mut states = 0;
            for state in 0..STATES {
                let mut does_anything = check(state, &[]);
                for character in -1..0x100 {
                    does_anything |= check(state, &[character]);
                }
                for _ in 0..40 {
                    check(state, &[any(&mut dice)]);
                }
                if does_anything {
                    states = state + 1;
                    for _ in 0..20 {
                        let text: Vec<_> = (0..dice.below(9)).map(|_| any(&mut dice)).collect();
                        check(state, &text);
                    }
                }
            }
            assert!(states < STATES, "{name}: there may be more");
            for character in 0x100..=0x11_0000 {
                check(0, &[character]);
            }
        }
    }
}

/// Most of them are ordinary.
fn any(dice: &mut Dice) -> i32 {
    let limit = [0x80, 0x80, 0x80, 0x80, 0x1000, 0x1_0000, 0x11_0000][dice.below(7)];
    i32::try_from(dice.below(limit)).unwrap_or(0)
}
