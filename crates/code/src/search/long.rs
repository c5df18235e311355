//! Searches in texts that are too long for an engine that cannot be stopped.
//!
//! A regular expression is searched for by a lazy automaton, which takes a few steps for each byte. When it grows too
//! large, the library goes on with an engine that may take a step for each state of the expression and each byte: minutes
//! for a line. So the number of states says how many bytes that engine may be given at once. In a longer text only the
//! automaton is used, and it says so when it gives up.

use std::{ops::Range, sync::Arc};

use regex_automata::{
    Input, MatchKind,
    hybrid::{BuildError, dfa, regex},
    nfa::thompson::{Compiler, Config, NFA, WhichCaptures},
    util::pool::Pool,
};
use regex_syntax::hir::Hir;

/// Steps that may be taken between two looks at the clock: some 100 ms.
const STEPS: usize = 16 << 20;

/// What each thread may remember, in bytes.
const CACHE: usize = 2 << 20;

#[derive(Debug)]
pub(super) struct LongSearch {
    /// Bytes that any engine can search quickly.
    pub at_once: usize,
    /// `None` if the expression has no automaton.
    automaton: Option<Automaton>,
}

#[derive(Debug)]
struct Automaton {
    regex: Arc<regex::Regex>,
    caches: Pool<regex::Cache, Box<dyn Fn() -> regex::Cache + Send + Sync>>,
}

/// The automaton grew too large.
#[derive(Debug)]
pub(super) struct GaveUp;

impl LongSearch {
    /// `size_max` bounds the compiled expression, in bytes. `None` if it is larger.
    pub fn new(expression: &Hir, size_max: usize) -> Option<LongSearch> {
        let compile = |reverse| {
            let config = Config::new()
                .utf8(false)
                .reverse(reverse)
                .which_captures(WhichCaptures::None)
                .nfa_size_limit(Some(size_max));
            Compiler::new().configure(config).build_from_hir(expression).ok()
        };
        let forward = compile(false)?;
        let at_once = STEPS / forward.states().len().max(1);
        let automaton = compile(true).and_then(|reverse| Automaton::new(forward, reverse).ok());
        Some(LongSearch { at_once, automaton })
    }

    /// The first match that begins at `at` or behind it.
    pub fn find(&self, text: &[u8], at: usize) -> Result<Option<Range<usize>>, GaveUp> {
        let Automaton { regex, caches } = self.automaton.as_ref().ok_or(GaveUp)?;
        let found = regex.try_search(&mut caches.get(), &Input::new(text).range(at..));
        found.map(|found| found.map(|found| found.range())).map_err(|_| GaveUp)
    }
}

impl Automaton {
    fn new(forward: NFA, reverse: NFA) -> Result<Automaton, Box<BuildError>> {
        let config = dfa::Config::new()
            .cache_capacity(CACHE)
            // The first time that it is full.
            .minimum_cache_clear_count(Some(0))
            // It gives up at the first character that is not ASCII.
            .unicode_word_boundary(true);
        let mut builder = dfa::Builder::new();
        let forward = builder.configure(config.clone()).build_from_nfa(forward)?;
        let config = config.match_kind(MatchKind::All);
        let reverse = builder.configure(config).build_from_nfa(reverse)?;
        let regex = Arc::new(regex::Builder::new().build_from_dfas(forward, reverse));
        let shared = Arc::clone(&regex);
        Ok(Automaton { regex, caches: Pool::new(Box::new(move || shared.create_cache())) })
    }
}
