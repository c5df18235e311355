//! Search in texts that are too long for a regex engine that cannot be stopped.
//!
//! A regular expression is searched for by a lazy automaton, which takes a few steps for each byte. When it grows too
//! large, the library continues with an engine that may take a step for each state of the expression and each byte:
//! minutes for a line. So the number of states limits the bytes that this engine may search at once. In a longer text
//! only the automaton is used, which reports when it gives up.

use std::{ops::Range, sync::Arc};

use regex_automata::{
    Input, MatchKind,
    hybrid::{BuildError, dfa, regex},
    nfa::thompson::{Compiler, Config, NFA, WhichCaptures},
    util::pool::Pool,
};
use regex_syntax::hir::Hir;

/// Most steps between two checks of the deadline: some 100 ms.
const STEPS_MAX: usize = 16 << 20;

/// Most bytes of each thread's cache.
const CACHE_BYTES_MAX: usize = 2 << 20;

#[derive(Debug)]
pub(super) struct LongTextSearch {
    /// Most bytes that any engine can search quickly.
    pub at_once: usize,
    /// `None` if the expression has no automaton.
    automaton: Option<LazyAutomaton>,
}

#[derive(Debug)]
struct LazyAutomaton {
    regex: Arc<regex::Regex>,
    caches: Pool<regex::Cache, Box<dyn Fn() -> regex::Cache + Send + Sync>>,
}

/// Error: the automaton grew too large or met a character it cannot search, or there is no automaton.
#[derive(Debug)]
pub(super) struct AutomatonGaveUp;

impl LongTextSearch {
    /// Makes a search of an expression. `None` if it is larger than `size_max` bytes when compiled.
    pub fn new(expression: &Hir, size_max: usize) -> Option<Self> {
        let compile = |reverse| {
            let config = Config::new()
                .utf8(false)
                .reverse(reverse)
                .which_captures(WhichCaptures::None)
                .nfa_size_limit(Some(size_max));
            Compiler::new().configure(config).build_from_hir(expression).ok()
        };
        let forward = compile(false)?;
        let at_once = STEPS_MAX / forward.states().len().max(1);
        let automaton = compile(true).and_then(|reverse| LazyAutomaton::new(forward, reverse).ok());
        Some(Self { at_once, automaton })
    }

    /// Finds the first match that begins at `at` or after it.
    pub fn find(&self, text: &[u8], at: usize) -> Result<Option<Range<usize>>, AutomatonGaveUp> {
        let LazyAutomaton { regex, caches } = self.automaton.as_ref().ok_or(AutomatonGaveUp)?;
        let found = regex.try_search(&mut caches.get(), &Input::new(text).range(at..));
        found.map(|found| found.map(|found| found.range())).map_err(|_| AutomatonGaveUp)
    }
}

impl LazyAutomaton {
    fn new(forward: NFA, reverse: NFA) -> Result<Self, Box<BuildError>> {
        let config = dfa::Config::new()
            .cache_capacity(CACHE_BYTES_MAX)
            // Gives up the first time that the cache is full.
            .minimum_cache_clear_count(Some(0))
            // Gives up at the first character that is not ASCII, if the expression has a word boundary.
            .unicode_word_boundary(true);
        let mut builder = dfa::Builder::new();
        let forward = builder.configure(config.clone()).build_from_nfa(forward)?;
        let config = config.match_kind(MatchKind::All);
        let reverse = builder.configure(config).build_from_nfa(reverse)?;
        let regex = Arc::new(regex::Builder::new().build_from_dfas(forward, reverse));
        let shared = Arc::clone(&regex);
        Ok(Self { regex, caches: Pool::new(Box::new(move || shared.create_cache())) })
    }
}
