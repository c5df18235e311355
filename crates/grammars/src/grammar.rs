//! A parser that can be used, and what is made with it.

use std::ffi::{c_char, c_void};
use std::num::NonZeroU16;
use std::ops::ControlFlow;
use std::ptr;
use std::sync::Arc;

use tree_sitter::{Language, Node, ParseOptions, Parser, TreeCursor};

use crate::Packed;
use crate::lex::{self, Characters, Lex, Tables};
use crate::memory::{self, Allocated};
use crate::unpack::{Layout, Tokens};

/// Makes a language of its tables, the pointers to its names and what finds its tokens. Returns how many bytes it
/// takes, and does no more when it is given no place.
pub(crate) type Make =
    unsafe extern "C" fn(*mut c_void, *const c_void, *const *const c_char, Lex, Lex) -> usize;

/// A parser with its tables.
#[derive(Debug)]
pub struct Grammar {
    /// Points to the first of what follows, which points to the rest. Nothing of it moves or changes.
    language: Language,
    place: Vec<u64>,
    tables: Vec<u64>,
    layout: &'static Layout,
    _names: Names,
    characters: Characters,
}

/// The names of symbols and fields: `pointers` to `texts`.
#[derive(Debug)]
struct Names {
    pointers: Vec<*const c_char>,
    _texts: Vec<u8>,
}

#[expect(unsafe_code, reason = "the pointers are to what is beside them, which does not change")]
// SAFETY: after they were made they are only read, and never by us.
unsafe impl Send for Names {}
#[expect(unsafe_code, reason = "as above")]
// SAFETY: as above.
unsafe impl Sync for Names {}

impl Names {
    /// Each is 0 for none, or 1, its text and 0.
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

impl Packed {
    /// Takes up to a few milliseconds.
    #[expect(unsafe_code, reason = "C makes the language, of pointers")]
    pub fn unpack(&'static self) -> Arc<Grammar> {
        memory::install();
        let mut tables = vec![0_u64; self.layout.words.div_ceil(4)];
        // SAFETY: every number of 64 bits is four of 16 bits.
        let (_, words, _) = unsafe { tables.align_to_mut::<u16>() };
        let words = &mut words[..self.layout.words];
        let texts = self.layout.unpack(self.bytes, words).expect("what the build script packed");
        let characters = Characters::read(words, &self.layout.tokens).expect("as above");
        let names = Names::of(texts);
        assert_eq!(names.pointers.len(), self.names, "what the build script counted");
        // SAFETY: without a place nothing is read or written.
        let size = unsafe {
            (self.make)(ptr::null_mut(), ptr::null(), ptr::null(), lex::find, lex::find_keyword)
        };
        let mut place = vec![0_u64; size.div_ceil(8)];
        let address = place.as_mut_ptr();
        // SAFETY: the place is as large as was asked for, and aligned for all that a language consists of. The tables
        // and the names are as long as those for which the function was made, which the build script did at once.
        unsafe {
            (self.make)(
                address.cast(),
                tables.as_ptr().cast(),
                names.pointers.as_ptr(),
                lex::find,
                lex::find_keyword,
            )
        };
        // SAFETY: a language is there now. It is as one that was linked, as long as what it points to: that is in the
        // grammar, of which all have a share that the language is lent to.
        let language = unsafe { Language::from_raw(address.cast_const().cast()) };
        let layout = &self.layout;
        Arc::new(Grammar { language, place, tables, layout, _names: names, characters })
    }
}

impl Grammar {
    /// How many bytes its tables take.
    pub fn size(&self) -> usize {
        self.tables.len() * 8
    }

    /// How many of them are to find tokens.
    pub fn size_of_tokens(&self) -> usize {
        self.size() - self.tokens().all.ends.start * 2
    }

    #[expect(unsafe_code, reason = "numbers are seen as smaller ones")]
    fn words(&self) -> &[u16] {
        // SAFETY: every number of 64 bits is four of 16 bits.
        let (_, words, _) = unsafe { self.tables.align_to() };
        words
    }

    fn tokens(&self) -> &Tokens {
        &self.layout.tokens
    }

    /// Where the language is, for a look at its tables.
    pub fn as_ptr(&self) -> *const c_void {
        self.place.as_ptr().cast()
    }

    /// The tree of `source`. `None` if `go_on` stopped it, which is told now and then how many bytes are allocated.
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

    /// Does `work`; the tokens that are looked for meanwhile, on this thread, are of this language. When `go_on` says no,
    /// there are no more of them. It is given to `work` as well.
    pub fn during<T>(
        &self,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
        work: impl FnOnce(&mut dyn FnMut() -> ControlFlow<()>) -> T,
    ) -> T {
        let tables =
            Tables { words: self.words(), characters: &self.characters, tokens: self.tokens() };
        lex::during(tables, go_on, work)
    }

    /// The number of the nodes of this kind, which have a name.
    pub fn named(&self, kind: &str) -> Option<u16> {
        self.kind(kind, true)
    }

    /// The number of the nodes that are just this text.
    pub fn unnamed(&self, text: &str) -> Option<u16> {
        self.kind(text, false)
    }

    fn kind(&self, kind: &str, is_named: bool) -> Option<u16> {
        Some(self.language.id_for_node_kind(kind, is_named)).filter(|id| *id != 0)
    }

    pub fn field(&self, name: &str) -> Option<NonZeroU16> {
        self.language.field_id_for_name(name)
    }
}

/// A tree, with the grammar it was made by.
#[derive(Debug)]
pub struct Tree {
    // Goes first.
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
