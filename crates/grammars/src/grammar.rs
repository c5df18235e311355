//! An unpacked grammar that can parse, and the syntax trees it makes.

use std::ffi::{c_char, c_void};
use std::num::NonZeroU16;
use std::ops::ControlFlow;
use std::ptr;
use std::sync::Arc;

use tree_sitter::{Language, Node, ParseOptions, Parser, TreeCursor};

use crate::PackedGrammar;
use crate::lex::{self, CharacterClasses, LexFn, LexTables};
use crate::memory::{self, Allocated};
use crate::unpack::{Layout, Tokens};

/// C function that builds a tree-sitter language from its tables, the pointers to its names and its lex functions.
/// Returns the size of the language in bytes; with a null destination it does nothing else.
pub(crate) type MakeLanguage =
    unsafe extern "C" fn(*mut c_void, *const c_void, *const *const c_char, LexFn, LexFn) -> usize;

/// An unpacked grammar: a tree-sitter language with the tables it points to.
#[derive(Debug)]
pub struct Grammar {
    /// Points to `place`, which points to the tables and names. None of that memory may move or change.
    language: Language,
    place: Vec<u64>,
    tables: Vec<u64>,
    layout: &'static Layout,
    _names: CNames,
    characters: CharacterClasses,
}

/// Names of symbols and fields as C strings: `pointers` point into `_texts`.
#[derive(Debug)]
struct CNames {
    pointers: Vec<*const c_char>,
    _texts: Vec<u8>,
}

#[expect(unsafe_code, reason = "the pointers are to what is beside them, which does not change")]
// SAFETY: after construction the pointers are only read, and only by tree-sitter.
unsafe impl Send for CNames {}
#[expect(unsafe_code, reason = "as above")]
// SAFETY: as above.
unsafe impl Sync for CNames {}

impl CNames {
    /// Splits `texts` into C strings. Each entry is a byte 0 for no name, or a byte 1, the name and a terminating 0.
    fn of(texts: Vec<u8>) -> Self {
        let mut pointers = Vec::new();
        let mut rest = texts.as_slice();
        while let Some((is_there, behind)) = rest.split_first() {
            let is_there = *is_there == 1;
            let end = behind.iter().position(|byte| *byte == 0).filter(|_| is_there);
            pointers.push(if end.is_some() { behind.as_ptr().cast() } else { ptr::null() });
            rest = end.map_or(behind, |end| &behind[end + 1..]);
        }
        Self { pointers, _texts: texts }
    }
}

impl PackedGrammar {
    /// Unpacks the tables and builds the language. Takes up to a few milliseconds.
    #[expect(unsafe_code, reason = "C makes the language, of pointers")]
    pub fn unpack(&'static self) -> Arc<Grammar> {
        memory::install();
        let mut tables = vec![0_u64; self.layout.words.div_ceil(4)];
        // SAFETY: every 64-bit number is four 16-bit numbers.
        let (_, words, _) = unsafe { tables.align_to_mut::<u16>() };
        let words = &mut words[..self.layout.words];
        let texts = self.layout.unpack(self.bytes, words).expect("what the build script packed");
        let characters = CharacterClasses::read(words, &self.layout.tokens).expect("as above");
        let names = CNames::of(texts);
        assert_eq!(names.pointers.len(), self.names, "what the build script counted");
        // SAFETY: with a null destination nothing is read or written.
        let size = unsafe {
            (self.make)(ptr::null_mut(), ptr::null(), ptr::null(), lex::find, lex::find_keyword)
        };
        let mut place = vec![0_u64; size.div_ceil(8)];
        let address = place.as_mut_ptr();
        // SAFETY: `place` has the size that `make` returned and is aligned for every field of a language. The tables
        // and names have the lengths that `make` expects, since the build script made all of them together.
        unsafe {
            (self.make)(
                address.cast(),
                tables.as_ptr().cast(),
                names.pointers.as_ptr(),
                lex::find,
                lex::find_keyword,
            )
        };
        // SAFETY: `place` now contains a language. Like a linked one it is valid as long as the memory it points to,
        // which the grammar owns; everything the language is lent to holds an `Arc` of the grammar.
        let language = unsafe { Language::from_raw(address.cast_const().cast()) };
        let layout = &self.layout;
        Arc::new(Grammar { language, place, tables, layout, _names: names, characters })
    }
}

impl Grammar {
    /// Size of the unpacked tables in bytes.
    pub fn size(&self) -> usize {
        self.tables.len() * 8
    }

    /// Size of the tables that find tokens in bytes, a part of [`Self::size`].
    pub fn size_of_tokens(&self) -> usize {
        self.size() - self.tokens().all.ends.start * 2
    }

    #[expect(unsafe_code, reason = "numbers are seen as smaller ones")]
    fn words(&self) -> &[u16] {
        // SAFETY: every 64-bit number is four 16-bit numbers.
        let (_, words, _) = unsafe { self.tables.align_to() };
        words
    }

    fn tokens(&self) -> &Tokens {
        &self.layout.tokens
    }

    /// Address of the language, for inspecting its tables.
    pub fn as_ptr(&self) -> *const c_void {
        self.place.as_ptr().cast()
    }

    /// Parses `source`. `go_on` is called now and then with the number of bytes allocated; returns `None` if it stops
    /// the parse.
    pub fn parse(
        self: &Arc<Self>,
        source: &[u8],
        go_on: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Option<Tree> {
        let allocated = Allocated::from_now();
        let mut go_on = || go_on(allocated.bytes());
        let mut parser = Parser::new();
        parser.set_language(&self.language).ok()?;
        let tree = self.during(&mut go_on, |go_on| {
            parser.parse_with_options(
                &mut |at, _| source.get(at..).unwrap_or_default(),
                None,
                Some(ParseOptions::new().progress_callback(&mut |_| go_on())),
            )
        })?;
        Some(Tree { tree, grammar: Arc::clone(self) })
    }

    /// Runs `work` with the tables of this language set for lexing on the current thread. Once `go_on` breaks, no more
    /// tokens are found; `work` receives `go_on` as well.
    pub fn during<T>(
        &self,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
        work: impl FnOnce(&mut dyn FnMut() -> ControlFlow<()>) -> T,
    ) -> T {
        let tables =
            LexTables { words: self.words(), characters: &self.characters, tokens: self.tokens() };
        lex::during(tables, go_on, work)
    }

    /// Kind id of the named nodes of this kind.
    pub fn named(&self, kind: &str) -> Option<u16> {
        nonzero(self.language.id_for_node_kind(kind, true))
    }

    /// Kind id of the anonymous nodes whose text is `text`.
    pub fn unnamed(&self, text: &str) -> Option<u16> {
        nonzero(self.language.id_for_node_kind(text, false))
    }

    pub fn field(&self, name: &str) -> Option<NonZeroU16> {
        self.language.field_id_for_name(name)
    }
}

/// Returns the id of a kind of nodes; tree-sitter returns 0 if there is none.
fn nonzero(id: u16) -> Option<u16> {
    Some(id).filter(|id| *id != 0)
}

/// A syntax tree, with the grammar that made it.
#[derive(Debug)]
pub struct Tree {
    // Declared first, so that it is dropped before the grammar.
    tree: tree_sitter::Tree,
    grammar: Arc<Grammar>,
}

impl Tree {
    pub fn root_node(&self) -> Node<'_> {
        self.tree.root_node()
    }

    pub fn walk(&self) -> TreeCursor<'_> {
        self.tree.walk()
    }

    pub fn grammar(&self) -> &Arc<Grammar> {
        &self.grammar
    }
}
