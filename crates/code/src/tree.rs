//! Parsing into syntax trees, within limits of time and memory.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use grammars::Tree;
use memchr::{memchr, memchr_iter};

use crate::language::{Language, LoadedLanguage};

/// Largest text that is parsed, in bytes: a larger one was seldom written by hand.
pub const PARSED_BYTES_MAX: usize = 512 << 10;

/// Most time to parse a text, or to search its tree: ten times what the largest text takes.
const PARSE_TIME_MAX: Duration = Duration::from_millis(1_500);

/// Interval between checks of a thread that waits for others to finish parsing.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Most memory for parsing, for each byte of the text. Real files take 10 to 40 times their size; a text that does not
/// parse may take a thousand times.
const MEMORY_PER_BYTE_MAX: usize = 56;
/// Memory that parsing any text may take.
const MEMORY_MIN: usize = 2 << 20;

/// Largest text in bytes that is parsed on the stack of the calling thread.
const CALLER_STACK_BYTES_MAX: usize = 8 << 10;
/// Stack for a larger text: so many bytes, and so many for each of its bytes. It is only address space until it is
/// used.
const STACK_BYTES: usize = 1 << 20;
const STACK_BYTES_PER_BYTE: usize = 256;

/// Total bytes of the texts that have trees now.
static PARSED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A permit to have the tree of a text of so many bytes. Trees take so much memory that all texts with a tree together
/// must not be larger than the largest text.
pub(crate) struct ParsePermit(usize);

impl ParsePermit {
    /// Waits for a permit. `None` if `stop` returns true first.
    fn acquire(size: usize, stop: &dyn Fn() -> bool) -> Option<Self> {
        let more = |held: usize| {
            let all = held + size;
            (held == 0 || all <= PARSED_BYTES_MAX).then_some(all)
        };
        while PARSED_BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            if stop() {
                return None;
            }
            thread::sleep(POLL_INTERVAL);
        }
        Some(Self(size))
    }
}

impl Drop for ParsePermit {
    fn drop(&mut self) {
        PARSED_BYTES.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// A text that was parsed.
pub(crate) struct ParsedText {
    pub tree: Tree,
    /// Language that it was parsed with.
    pub loaded: Arc<LoadedLanguage>,
    /// Released after the tree, since fields are dropped in order of declaration.
    _permit: ParsePermit,
}

/// Parses `text`. `None` if it is too large, is not text, is not safe for the scanner, takes too much work, or `stop`
/// returns true.
pub(crate) fn parse(
    language: &dyn Language,
    text: &str,
    stop: &dyn Fn() -> bool,
) -> Option<ParsedText> {
    if text.len() > PARSED_BYTES_MAX || memchr(0, text.as_bytes()).is_some() || stop() {
        return None;
    }
    let source = with_line_feeds(text.as_bytes());
    if !language.scanner_accepts(&source) {
        return None;
    }
    let permit = ParsePermit::acquire(text.len(), stop)?;
    let loaded = language.loaded();
    let parse = |stop: &dyn Fn() -> bool| {
        let mut work = WorkLimit::of(text, stop);
        let memory = MEMORY_MIN.max(text.len() * MEMORY_PER_BYTE_MAX);
        loaded.grammar.parse(&source, &mut |taken| {
            if taken > memory { ControlFlow::Break(()) } else { work.check() }
        })
    };
    let tree = if text.len() > CALLER_STACK_BYTES_MAX {
        on_large_stack(text.len(), &parse, stop)
    } else {
        parse(stop)
    };
    Some(ParsedText { tree: tree?, loaded, _permit: permit })
}

/// Runs `parse` for a text of `size` bytes on a thread of its own. To free several interpretations of a text,
/// tree-sitter recurses for each of their tokens: no ordinary thread has stack for that.
fn on_large_stack(
    size: usize,
    parse: &(dyn Fn(&dyn Fn() -> bool) -> Option<Tree> + Sync),
    stop: &dyn Fn() -> bool,
) -> Option<Tree> {
    let (is_stopped, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
    let waiting = thread::current();
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(STACK_BYTES + size * STACK_BYTES_PER_BYTE);
        let parsing = builder.spawn_scoped(scope, || {
            let tree = parse(&|| is_stopped.load(Ordering::Relaxed));
            is_done.store(true, Ordering::Release);
            waiting.unpark();
            tree
        });
        let parsing = parsing.ok()?;
        while !is_done.load(Ordering::Acquire) && !parsing.is_finished() {
            is_stopped.store(stop(), Ordering::Relaxed);
            thread::park_timeout(POLL_INTERVAL);
        }
        parsing.join().ok()?
    })
}

/// Replaces each lone carriage return by a line feed, since grammars do not know that it ends a line. Every byte stays
/// where it is.
fn with_line_feeds(bytes: &[u8]) -> Cow<'_, [u8]> {
    let is_lone = |at: &usize| bytes.get(at + 1) != Some(&b'\n');
    let mut lone = memchr_iter(b'\r', bytes).filter(is_lone).peekable();
    if lone.peek().is_none() {
        return Cow::Borrowed(bytes);
    }
    let mut source = bytes.to_vec();
    lone.for_each(|at| source[at] = b'\n');
    Cow::Owned(source)
}

/// Limit of the work of tree-sitter, in calls of its progress callback, each a hundred of its own steps.
///
/// Real files take up to three of its steps for a byte. Where a text does not parse, it follows several interpretations
/// at a time, which takes much more, and memory too; and a pattern compares each bracket with all that follow.
pub(crate) struct WorkLimit<'a> {
    left: usize,
    until: Instant,
    stop: &'a dyn Fn() -> bool,
}

impl<'a> WorkLimit<'a> {
    pub(crate) fn of(text: &str, stop: &'a dyn Fn() -> bool) -> Self {
        Self { left: 2_000 + text.len() / 4, until: Instant::now() + PARSE_TIME_MAX, stop }
    }

    pub(crate) fn check(&mut self) -> ControlFlow<()> {
        match self.left.checked_sub(1) {
            Some(left) if !(self.stop)() && Instant::now() < self.until => {
                self.left = left;
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_parsed_at_a_time_are_no_more_than_the_largest() {
        let never = || true;
        let most = ParsePermit::acquire(PARSED_BYTES_MAX - 10, &never).expect("nobody else parses");
        let few = ParsePermit::acquire(10, &never).expect("there is room");
        assert!(ParsePermit::acquire(1, &never).is_none());
        drop(most);
        assert!(ParsePermit::acquire(PARSED_BYTES_MAX, &never).is_none());
        drop(few);
        // A text that is alone may be of any size up to the limit.
        assert!(ParsePermit::acquire(PARSED_BYTES_MAX, &never).is_some());
    }
}
