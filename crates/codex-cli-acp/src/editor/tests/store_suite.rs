//! Tests of what every store must do, with nobody typing, and with a person who types most of the time.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use files::{
    Call, Change, Hash, Saved, Stamp, Stop, Store as _, StoreError, UpdateError, Updater, Version,
};

use super::{
    MAX, Session, append, call,
    fake_editor::{restless, without_typed},
};

impl Session {
    /// Makes a session with a person who types into every buffer.
    fn restless() -> Self {
        let session = Self::new();
        session.editor().person = Some(restless());
        session
    }

    /// Returns the text in the editor, without what the person typed.
    fn own_text(&self, name: &str) -> Option<String> {
        self.buffer(name).map(|text| without_typed(&text))
    }

    fn version(&self, name: &str) -> Option<Version> {
        self.store.read(&self.at(name), &call()).unwrap()
    }

    fn update(&self, name: &str, change: &Change) -> Result<Saved, StoreError> {
        let at = [self.at(name)];
        let saved = self.store.update(&at, &call(), &mut |_| Ok(vec![change.clone()]))?;
        Ok(saved.into_iter().next().unwrap())
    }

    fn append(&self, text: &str, call: &Call) -> Result<Saved, StoreError> {
        append(&self.store, &self.at("a"), text, call)
    }

    fn buffer_names(&self) -> Vec<String> {
        let editor = self.editor();
        let names = editor.buffers.keys().map(|path| path.file_name().unwrap());
        names.map(|name| name.to_str().unwrap().to_owned()).collect()
    }
}

macro_rules! suite {
    (always: $($always:ident)*, unless_somebody_types: $($quiet:ident)*,) => {
        suite!(@session quiet, Session::new(), $($always)* $($quiet)*);
        suite!(@session restless, Session::restless(), $($always)*);
    };
    (@session $session:ident, $make:expr, $($case:ident)*) => {
        mod $session {
            use super::*;
            $(#[test] fn $case() { super::$case(&$make); })*
        }
    };
}

suite! {
    always:
        a_missing_file_is_none
        writing_creates_once
        an_edit_is_made_from_the_text
        a_look_returns_the_text
        a_change_that_gives_up_leaves_everything
        a_late_or_cancelled_call_leaves_everything
        cancelling_during_the_change_leaves_everything
        a_stop_does_not_hold_up_a_free_file
        another_change_is_noticed_before_the_write
        another_who_creates_the_file_first_is_noticed
        threads_lose_nothing,
    // These compare bytes, or stamps, of before with those of after, and what is typed counts.
    unless_somebody_types:
        a_stamp_is_that_of_the_written_text
        keeping_changes_nothing
        writing_the_same_bytes_changes_nothing
        sizes_are_checked_both_ways
        a_stage_returns_the_callers_own_values,
}

fn text_of(version: &Version) -> String {
    without_typed(std::str::from_utf8(&version.bytes).unwrap())
}

fn late() -> Call {
    Call::until(Instant::now())
}

fn a_missing_file_is_none(session: &Session) {
    assert!(session.version("a").is_none());
}

fn writing_creates_once(session: &Session) {
    let first = session.update("a", &Change::write("one\n")).unwrap();
    assert!(first.created);
    assert_eq!(first.links, 0);
    assert_eq!(session.own_text("a").unwrap(), "one\n");
    let second = session.update("a", &Change::write("two\n")).unwrap();
    assert!(!second.created);
    assert_ne!(second.stamp, first.stamp);
    assert_eq!(session.own_text("a").unwrap(), "two\n");
}

fn a_stamp_is_that_of_the_written_text(session: &Session) {
    for text in ["one", "two"] {
        let saved = session.update("a", &Change::write(text)).unwrap();
        assert!(!saved.is_contested());
        assert_ne!(saved.stamp, Stamp::MISSING);
        assert_eq!(session.version("a").unwrap().stamp, saved.stamp);
    }
}

fn an_edit_is_made_from_the_text(session: &Session) {
    session.open("a", "one ");
    session.append("two", &call()).unwrap();
    assert_eq!(session.own_text("a").unwrap(), "one two");
}

fn a_look_returns_the_text(session: &Session) {
    let look = || session.store.read_for_update(&session.at("a"), &call()).unwrap();
    assert!(look().is_none());
    session.open("a", "one");
    assert_eq!(text_of(&look().unwrap()), "one");
}

fn keeping_changes_nothing(session: &Session) {
    session.open("a", "one");
    let before = session.version("a").unwrap().stamp;
    assert_eq!(session.update("a", &Change::Keep).unwrap(), Saved::kept(before));
    assert_eq!(session.version("a").unwrap().stamp, before);
    let missing = session.update("b", &Change::Keep).unwrap();
    assert_eq!((missing.created, missing.stamp), (false, Stamp::MISSING));
    assert_eq!(session.buffer_names(), ["a"]);
}

fn writing_the_same_bytes_changes_nothing(session: &Session) {
    session.open("a", "one");
    let before = session.version("a").unwrap().stamp;
    assert_eq!(session.update("a", &Change::write("one")).unwrap().stamp, before);
    assert_eq!(session.version("a").unwrap().stamp, before);
}

fn a_change_that_gives_up_leaves_everything(session: &Session) {
    session.open("a", "one");
    for name in ["a", "b"] {
        let outcome = session.store.update(&[session.at(name)], &call(), &mut |_| Err(Stop));
        assert!(matches!(outcome, Err(StoreError::Stopped)));
    }
    assert_eq!(session.own_text("a").unwrap(), "one");
    assert_eq!(session.buffer_names(), ["a"]);
}

fn sizes_are_checked_both_ways(session: &Session) {
    let max = usize::try_from(MAX).unwrap();
    session.update("a", &Change::write("x".repeat(max))).unwrap();
    assert_eq!(session.version("a").unwrap().bytes.len(), max);
    let too_large = |outcome: Result<(), StoreError>| {
        let Err(StoreError::TooLarge { size, max: MAX }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(size, MAX + 1);
    };
    let longer = "x".repeat(max + 1);
    too_large(session.update("a", &Change::write(longer.as_str())).map(drop));
    too_large(session.update("b", &Change::write(longer.as_str())).map(drop));
    assert_eq!(session.version("a").unwrap().bytes.len(), max);
    assert_eq!(session.buffer_names(), ["a"]);
    session.open("c", &longer);
    too_large(session.store.read(&session.at("c"), &call()).map(drop));
    too_large(session.update("c", &Change::write("short")).map(drop));
}

fn a_late_or_cancelled_call_leaves_everything(session: &Session) {
    session.open("a", "one");
    assert!(matches!(session.append("two", &late()), Err(StoreError::TimedOut)));
    let read = session.store.read(&session.at("a"), &late());
    assert!(matches!(read, Err(StoreError::TimedOut)));
    let cancelled = call();
    cancelled.cancel.set();
    assert!(matches!(session.append("two", &cancelled), Err(StoreError::Cancelled)));
    assert_eq!(session.own_text("a").unwrap(), "one");
}

fn cancelling_during_the_change_leaves_everything(session: &Session) {
    session.open("a", "one");
    for name in ["a", "new"] {
        let (at, cancelled) = ([session.at(name)], call());
        let outcome = session.store.update(&at, &cancelled, &mut |_| {
            cancelled.cancel.set();
            Ok(vec![Change::write("two")])
        });
        assert!(matches!(outcome, Err(StoreError::Cancelled)));

        let late = Call::until(Instant::now() + Duration::from_millis(30));
        let outcome = session.store.update(&at, &late, &mut |_| {
            thread::sleep(Duration::from_millis(40));
            Ok(vec![Change::write("two")])
        });
        assert!(matches!(outcome, Err(StoreError::TimedOut)));
    }
    assert_eq!(session.own_text("a").unwrap(), "one");
    assert_eq!(session.buffer_names(), ["a"]);
}

fn a_stop_does_not_hold_up_a_free_file(session: &Session) {
    let stopping = call();
    stopping.stop.set();
    session.append("one", &stopping).unwrap();
    session.append(" two", &stopping).unwrap();
    assert_eq!(session.own_text("a").unwrap(), "one two");
}

/// Updates `a` while it is set to `outside` during the first run of the change. Returns the texts that were seen.
fn update_with_interference(session: &Session) -> Vec<Option<String>> {
    let mut texts = Vec::new();
    let saved = session.store.update(&[session.at("a")], &call(), &mut |versions| {
        let text = versions[0].as_ref().map(text_of);
        if texts.is_empty() {
            session.open("a", "outside");
        }
        texts.push(text.clone());
        let new = text.map_or("new".to_owned(), |text| format!("{text}!"));
        Ok(vec![Change::write(new)])
    });
    assert!(!saved.unwrap()[0].created);
    assert_eq!(session.own_text("a").unwrap(), "outside!");
    texts.dedup();
    texts
}

fn another_change_is_noticed_before_the_write(session: &Session) {
    session.open("a", "one");
    assert_eq!(update_with_interference(session), [Some("one".into()), Some("outside".into())]);
}

fn another_who_creates_the_file_first_is_noticed(session: &Session) {
    assert_eq!(update_with_interference(session), [None, Some("outside".into())]);
}

fn a_stage_returns_the_callers_own_values(session: &Session) {
    let updater = Updater::new(&session.store);
    let edit = |expected: Option<Hash>| {
        updater.update_one(&session.at("a"), &call(), |version| {
            let hash = version.map(|version| Hash::of(&version.bytes));
            if hash == expected { Ok((Change::write("one"), "done")) } else { Err("stale") }
        })
    };
    let (saved, value) = edit(None).unwrap();
    assert!(saved.created && value == "done");
    assert!(matches!(edit(None), Err(UpdateError::Change("stale"))));
    edit(Some(Hash::of(b"one"))).unwrap();
    assert_eq!(session.own_text("a").unwrap(), "one");
}

fn threads_lose_nothing(session: &Session) {
    const THREADS: usize = 4;
    const EDITS: usize = 50;
    let created = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let created = &created;
            scope.spawn(move || {
                for _ in 0..EDITS {
                    let saved = session.append(&thread.to_string(), &call()).unwrap();
                    created.fetch_add(usize::from(saved.created), Ordering::Relaxed);
                }
            });
        }
    });
    let text = session.own_text("a").unwrap();
    for thread in 0..THREADS {
        assert_eq!(text.matches(&thread.to_string()).count(), EDITS);
    }
    assert_eq!(created.into_inner(), 1, "exactly one call created it");
}
