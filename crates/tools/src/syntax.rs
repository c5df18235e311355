//! Checks the effect of a change on the syntax of a file: only errors that the change introduces count.
//!
//! Parsing takes longer than the rest of an edit, seconds at worst, and meanwhile no other edit of the file could be
//! made. So nothing is parsed under the lock. The versions to verify are made under it and parsed after it was
//! released; then the edit is made again, and written if its versions are still those that were parsed.

use std::cell::Cell;
use std::sync::Arc;

use code::syntax::SyntaxError;
use code::{language, tree};
use files::{StoreError, UpdateError, Version};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use text::{Text, lines};

use crate::answer::{cut, short};
use crate::line_number::Base;
use crate::{Context, Failure, FailureKind};

/// Most errors that are reported, and most characters that are shown of the line of each.
const ERRORS_SHOWN_MAX: usize = 10;
const LINE_CHARS_MAX: usize = 80;

const TOO_LARGE: &str = "the file is too large";

/// What an edit must not spoil.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verify {
    Syntax,
}

/// A file before and after a change.
#[derive(Clone)]
pub(crate) struct Versions {
    /// `None` if there was no file.
    before: Option<Arc<Vec<u8>>>,
    after: Arc<Vec<u8>>,
}

impl Versions {
    pub fn new(before: Option<&Version>, after: &Arc<Vec<u8>>) -> Self {
        Self { before: before.map(|version| Arc::clone(&version.bytes)), after: Arc::clone(after) }
    }

    fn are_same(&self, other: &Self) -> bool {
        self.before == other.before && self.after == other.after
    }

    /// Returns the reason why the new version cannot be parsed, as far as that is known without trying.
    fn unparsable(&self, path: &str) -> Option<&'static str> {
        let text = std::str::from_utf8(&self.after).unwrap_or_default();
        match language::of(path, text) {
            None => Some("the language of the file is not known"),
            Some(_) if is_too_large(&self.after) => Some(TOO_LARGE),
            Some(_) => None,
        }
    }

    /// Parses the versions and returns the errors that the change introduced.
    pub fn check_syntax(&self, path: &str, stop: &dyn Fn() -> bool) -> SyntaxCheck {
        if self.before.as_ref() == Some(&self.after) {
            return SyntaxCheck::Passed;
        }
        if let Some(why) = self.unparsable(path) {
            return SyntaxCheck::Skipped(why);
        }
        // A previous version that is not text counts as empty.
        let before = self.before.clone().and_then(|bytes| Text::decode(bytes).ok());
        let before = before.unwrap_or_else(Text::empty);
        let Ok(after) = Text::decode(Arc::clone(&self.after)) else {
            return SyntaxCheck::Skipped("it is not text");
        };
        match check_syntax(path, before.as_str(), after.as_str(), stop) {
            // The old version is too large, then; it is not parsed unless it has to be.
            SyntaxCheck::Skipped(_) if self.before.as_ref().is_some_and(is_too_large) => {
                SyntaxCheck::Skipped(TOO_LARGE)
            }
            check => check,
        }
    }
}

/// Returns the errors of `after` that `before` did not have. Must not be called while a file is locked.
pub(crate) fn check_syntax(
    path: &str,
    before: &str,
    after: &str,
    stop: &dyn Fn() -> bool,
) -> SyntaxCheck {
    match code::syntax::new_errors(path, before, after, stop) {
        None => SyntaxCheck::Skipped("it takes too long to parse"),
        Some(errors) => {
            NewErrors::of(errors, after).map_or(SyntaxCheck::Passed, SyntaxCheck::Failed)
        }
    }
}

fn is_too_large(bytes: &Arc<Vec<u8>>) -> bool {
    bytes.len() > tree::PARSED_BYTES_MAX
}

/// The result of parsing both versions.
pub(crate) enum SyntaxCheck {
    Passed,
    Failed(NewErrors),
    /// It could not be parsed, for this reason.
    Skipped(&'static str),
}

/// The errors of a text that the version before did not have: at least one.
pub(crate) struct NewErrors {
    /// The first errors, each with its line.
    shown: Vec<(SyntaxError, String)>,
    more: usize,
}

impl NewErrors {
    /// Returns `None` if there are no errors.
    fn of(mut errors: Vec<SyntaxError>, text: &str) -> Option<Self> {
        // An error may be within another one that begins at the same place.
        errors.dedup_by(|one, last| {
            (one.bytes.start, &one.message) == (last.bytes.start, &last.message)
        });
        let more = errors.len().saturating_sub(ERRORS_SHOWN_MAX);
        errors.truncate(ERRORS_SHOWN_MAX);
        let with_line = |error: SyntaxError| {
            let line = lines::lines(text).nth(error.line);
            let line = line.map_or("", |line| &text[line.start..line.end]);
            (error, cut(line.trim(), LINE_CHARS_MAX))
        };
        let shown: Vec<_> = errors.into_iter().map(with_line).collect();
        (!shown.is_empty()).then_some(Self { shown, more })
    }

    fn count(&self) -> usize {
        self.shown.len() + self.more
    }

    /// Describes the first `most` errors with their places, and says how many more there are.
    pub fn describe(&self, most: usize, base: Base) -> Vec<String> {
        let shown = self.shown.iter().take(most);
        let mut lines: Vec<_> = shown
            .map(|(error, line)| match line.as_str() {
                line if error.message.contains(line) => with_position(error, base),
                line => format!("{}, in `{line}`", with_position(error, base)),
            })
            .collect();
        match self.count() - lines.len() {
            0 => {}
            more => lines.push(format!("... and {more} more")),
        }
        lines
    }

    /// Returns the errors as warnings about a file that was written nevertheless.
    pub fn warnings(&self) -> Vec<String> {
        let mut lines: Vec<_> = self
            .shown
            .iter()
            .map(|(error, _)| format!("syntax warning: {}", with_position(error, Base::One)))
            .collect();
        if self.more > 0 {
            lines.push(format!("... and {} more syntax warnings", self.more));
        }
        lines
    }

    /// Adds the errors to the data of an answer, with lines and columns counted from 1.
    pub fn add_to(&self, data: &mut Map<String, Value>) {
        let warnings = self.shown.iter().map(|(error, _)| {
            let SyntaxError { line, column, message, .. } = error;
            json!({ "line": line + 1, "column": column + 1, "message": message })
        });
        data.insert("syntax_warnings".into(), warnings.collect());
        if self.more > 0 {
            data.insert("more_syntax_warnings".into(), self.more.into());
        }
    }

    fn refusal(&self, path: &str, base: Base) -> Failure {
        let (count, plural) = (self.count(), if self.count() == 1 { "" } else { "s" });
        let message = format!("{count} new syntax error{plural} in {}", short(path));
        let places = self.describe(ERRORS_SHOWN_MAX, base).join("\n");
        let from = base.show(0);
        Failure::new(FailureKind::Invalid, message.clone()).with_argument_errors(vec![message]).with_hint(format!(
            "nothing was written; in the new text, lines and columns counted from {from}:\n{places}"
        ))
    }
}

fn with_position(error: &SyntaxError, base: Base) -> String {
    let (line, column) = (base.show(error.line), base.show(error.column));
    format!("line {line}, column {column}: {}", error.message)
}

/// The reason why a change is not made, or not yet.
pub(crate) enum Halt {
    Failed(Failure),
    /// These versions have to be parsed first.
    Unchecked(Versions),
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Admits what a call wants to write, if its syntax passes.
pub(crate) struct Verifier<'a> {
    verify: Option<Verify>,
    path: &'a str,
    base: Base,
    cx: &'a Context<'a>,
    /// The versions parsed last, and why they could not be checked, if so.
    checked: Option<(Versions, Option<&'static str>)>,
    /// The reason why the versions admitted last could not be checked, if so.
    unchecked_reason: Cell<Option<&'static str>>,
}

impl<'a> Verifier<'a> {
    pub fn new(verify: Option<Verify>, path: &'a str, base: Base, cx: &'a Context<'a>) -> Self {
        Self { verify, path, base, cx, checked: None, unchecked_reason: Cell::new(None) }
    }

    /// Checks if these versions may be written. Parses nothing, since the file is locked.
    pub fn admit(&self, versions: &Versions) -> Result<(), Halt> {
        self.unchecked_reason.set(None);
        if self.verify.is_none() || versions.before.as_ref() == Some(&versions.after) {
            return Ok(());
        }
        self.unchecked_reason.set(match &self.checked {
            Some((checked, unchecked_reason)) if checked.are_same(versions) => *unchecked_reason,
            _ => match versions.unparsable(self.path) {
                None => return Err(Halt::Unchecked(versions.clone())),
                why => why,
            },
        });
        Ok(())
    }

    /// Runs an update of the file. If another program changes the file between the parsing and the update that follows,
    /// the new versions are parsed in turn, until the call's time is up.
    pub fn run<T>(
        &mut self,
        mut update: impl FnMut(&Self) -> Result<T, UpdateError<Halt>>,
    ) -> Result<T, UpdateError<Failure>> {
        loop {
            match update(self) {
                Ok(done) => return Ok(done),
                Err(UpdateError::Store(error)) => return Err(UpdateError::Store(error)),
                Err(UpdateError::Change(Halt::Failed(failure))) => {
                    return Err(UpdateError::Change(failure));
                }
                Err(UpdateError::Change(Halt::Unchecked(versions))) => self.parse(versions)?,
            }
        }
    }

    fn parse(&mut self, versions: Versions) -> Result<(), UpdateError<Failure>> {
        let check = versions.check_syntax(self.path, &|| interrupted(self.cx).is_some());
        if let Some(why) = interrupted(self.cx) {
            return Err(UpdateError::Store(why));
        }
        let unchecked_reason = match check {
            SyntaxCheck::Passed => None,
            SyntaxCheck::Skipped(why) => Some(why),
            SyntaxCheck::Failed(errors) => {
                return Err(UpdateError::Change(errors.refusal(self.path, self.base)));
            }
        };
        self.checked = Some((versions, unchecked_reason));
        Ok(())
    }

    /// Returns the note that the admitted versions could not be checked, if so.
    pub fn note(&self) -> Option<String> {
        self.unchecked_reason.get().map(|why| format!("syntax not checked: {why}"))
    }
}

/// Returns the reason why this call must end: it was cancelled, its time is up, or the server is stopping.
pub(crate) fn interrupted(cx: &Context) -> Option<StoreError> {
    let stopping = || cx.call.stop.is_set().then_some(StoreError::Stopping);
    cx.call.check().err().or_else(stopping)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::{Duration, Instant};

    use files::{Call, Change, FilePath, LineCounts, MemoryStore, Root, Store as _, Updater};

    use crate::Limits;

    const LARGEST: usize = tree::PARSED_BYTES_MAX;

    fn versions(before: Option<&[u8]>, after: &[u8]) -> Versions {
        let shared = |bytes: &[u8]| Arc::new(bytes.to_vec());
        Versions { before: before.map(shared), after: shared(after) }
    }

    /// Describes the result of parsing: nothing, the places, or the reason why it could not be checked.
    fn checked_words(path: &str, before: Option<&[u8]>, after: &[u8]) -> String {
        match versions(before, after).check_syntax(path, &|| false) {
            SyntaxCheck::Passed => String::new(),
            SyntaxCheck::Failed(errors) => errors.describe(2, Base::One).join("; "),
            SyntaxCheck::Skipped(why) => format!("? {why}"),
        }
    }

    const TWO: &str = "{ \"b\": 2 2 }";
    const NOT_ONE: &str = "line 1, column 10: unexpected `2`, in `{ \"b\": 2 2 }`";

    #[test]
    fn only_what_a_change_brought_is_told() {
        let check = |before: Option<&str>, after: &str, told: &str| {
            assert_eq!(checked_words("a.json", before.map(str::as_bytes), after.as_bytes()), told);
        };
        check(None, "[1]", "");
        check(None, "", "");
        check(None, TWO, NOT_ONE);
        check(Some(""), TWO, NOT_ONE);
        check(Some("[1 2]"), "[1 2]", "");
        check(Some("[1 2]"), "\n\n[1 2]", "");
        check(Some("[1]"), &format!("\u{feff}{TWO}"), NOT_ONE);
        check(Some("\u{feff}[1 2]"), "\u{feff}[1 2]\n", "");
        let many = "{ \"a\" },\n".repeat(3);
        let (first, second) = ("line 2, column 3: unexpected `\"a\"`", "line 3, column 3");
        let told = format!(
            "{first}, in `{{ \"a\" }},`; {second}: unexpected `\"a\"`, in `{{ \"a\" }},`; ... and 1 more"
        );
        check(None, &format!("[\n{many}1]"), &told);
    }

    #[test]
    fn what_cannot_be_parsed_has_no_errors() {
        let check = |path: &str, before: Option<&[u8]>, after: &[u8], told: &str| {
            assert_eq!(checked_words(path, before, after), told);
        };
        check("a", None, b"(", "? the language of the file is not known");
        check("a.json", Some(b"\xff"), b"[1]", "");
        check("a.json", None, &vec![b' '; LARGEST], "");
        check("a.json", None, &vec![b' '; LARGEST + 1], "? the file is too large");
        check("a.json", Some(&vec![b'['; LARGEST + 1]), b"[", "? the file is too large");
        check("a.json", Some(&vec![b'['; LARGEST + 1]), b"[1]", "");
        let stopped = versions(None, b"[").check_syntax("a.json", &|| true);
        assert!(matches!(stopped, SyntaxCheck::Skipped("it takes too long to parse")));
    }

    /// Runs an update in which `write` decides what to write. The file is the first of `texts`, and another program
    /// writes the others, one after each try.
    fn run(
        texts: &[&str],
        timeout: Duration,
        write: impl Fn(&str) -> String,
    ) -> (Result<(), String>, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = MemoryStore::new(1 << 20);
        let at = FilePath::flat("a.json").expect("a name");
        let call = Call::until(Instant::now() + timeout);
        let cx = Context {
            root: &Root::open(folder.path()).expect("a folder"),
            store: &store,
            line_counts: &LineCounts::default(),
            limits: &Limits::new(1 << 20, timeout),
            call: &call,
            expected: None,
        };
        let mut texts = texts.iter();
        store.put(&at, *texts.next().expect("a text"));
        let outcome =
            Verifier::new(Some(Verify::Syntax), "a.json", Base::One, &cx).run(|verifier| {
                let outcome = Updater::new(&store).update_one(&at, &call, |version| {
                    let old = version.expect("it is there").bytes.to_vec();
                    let old = String::from_utf8(old).expect("text");
                    let new = Arc::new(write(&old).into_bytes());
                    verifier.admit(&Versions::new(version, &new))?;
                    Ok((Change::Write(new), ()))
                });
                if let Some(other) = texts.next() {
                    store.put(&at, *other);
                }
                outcome
            });
        let outcome = outcome.map(drop).map_err(|error| match error {
            UpdateError::Change(failure) => failure.message,
            UpdateError::Store(error) => error.to_string(),
        });
        let call = Call::until(Instant::now() + Duration::from_mins(1));
        let text = store.read(&at, &call).expect("it reads").expect("it is there").bytes.to_vec();
        (outcome, String::from_utf8(text).expect("text"))
    }

    fn check(texts: &[&str], write: fn(&str) -> String, wanted: Result<(), &str>, after: &str) {
        let (outcome, text) = run(texts, Duration::from_mins(1), write);
        assert_eq!((outcome, &*text), (wanted.map_err(str::to_owned), after), "{texts:?}");
    }

    #[test]
    fn a_file_that_changed_since_it_was_looked_at_is_looked_at_again() {
        const REFUSED: Result<(), &str> = Err("1 new syntax error in a.json");
        let add: fn(&str) -> String = |old| old.replace(']', "2]");
        check(&["[]"], add, Ok(()), "[2]");
        check(&["[]", "[1, ]"], add, Ok(()), "[1, 2]");
        check(&["[]", "[3, ]", "[4, ]", "[5, ]"], add, Ok(()), "[5, 2]");
        check(&["[]", "[0, ]", "[1 ]"], add, REFUSED, "[1 ]");
        // The text to write is the same, but now it is worse than the file.
        let overwrite: fn(&str) -> String = |_| "[1 2]\n\n".into();
        check(&["[1 2]\n"], overwrite, Ok(()), "[1 2]\n\n");
        check(&["[1 2]\n", "[1]\n"], overwrite, REFUSED, "[1]\n");
    }

    #[test]
    fn a_call_whose_time_is_up_is_over() {
        let (outcome, text) = run(&["[]"], Duration::ZERO, |_| "[2]".into());
        assert!(outcome.is_err());
        assert_eq!(text, "[]");
    }
}
