//! Tests of updates of a buffer: what is sent, what is kept of what a person types meanwhile, and what is reported.

use std::{
    fs,
    ops::RangeInclusive,
    path::Path,
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

use files::{
    Call, Change, Durable, Hash, Interference, Root, Saved, Stamp, Stop, Store, StoreError,
};

use super::{
    super::{MessageError, normalize::normalized},
    FakeEditor, MAX, PathsInUse, Session, call,
    fake_editor::{Buffers, restless, without_typed},
    store,
};

/// Makes a session whose editor has `text` in the buffer `a`, which is not on disk.
fn showing(text: &str) -> Session {
    let session = Session::new();
    session.open("a", text);
    session
}

/// Makes such a session with a person who acts after every message, given the number of messages so far.
fn with_person(
    text: &str,
    mut person: impl FnMut(usize, &mut Buffers, &Path) + Send + 'static,
) -> Session {
    let session = showing(text);
    let path = session.path("a");
    session.editor().person = Some(Box::new(move |count, buffers| person(count, buffers, &path)));
    session
}

/// Makes such a session with a person who types at the end of the buffer after some messages.
fn typing(text: &str, mut typed: impl FnMut(usize) -> String + Send + 'static) -> Session {
    with_person(text, move |count, buffers, path| {
        buffers.get_mut(path).unwrap().push_str(&typed(count));
    })
}

fn update(
    session: &Session,
    change: &mut dyn FnMut(&str) -> Result<Change, Stop>,
) -> Result<Saved, StoreError> {
    let saved = session.store.update(&[session.at("a")], &call(), &mut |versions| {
        let bytes = versions[0].as_ref().map(|version| version.bytes.to_vec()).unwrap_or_default();
        change(&String::from_utf8(bytes).unwrap()).map(|change| vec![change])
    })?;
    Ok(saved.into_iter().next().unwrap())
}

/// Replaces `old` by `new`, or gives up when it is not there just once.
fn replace(session: &Session, old: &str, new: &str) -> Result<Saved, StoreError> {
    update(session, &mut |text| {
        let is_unique = text.matches(old).count() == 1;
        if is_unique { Ok(Change::write(text.replacen(old, new, 1))) } else { Err(Stop) }
    })
}

fn append(store: &dyn Store, session: &Session, call: &Call) -> Result<Saved, StoreError> {
    super::append(store, &session.at("a"), "!", call)
}

fn stamp(session: &Session, name: &str) -> Stamp {
    session.store.read(&session.at(name), &call()).unwrap().unwrap().stamp
}

// --- nobody types

#[test]
fn an_edit_takes_four_messages() {
    let session = showing("one");
    let saved = append(&session.store, &session, &call()).unwrap();
    assert_eq!(session.buffer("a").unwrap(), "one!");
    assert_eq!(session.messages(), ["read a", "read a", "write a", "read a"]);
    let expected = Saved { durable: Durable::No, ..Saved::kept(stamp(&session, "a")) };
    assert_eq!(saved, expected);
}

#[test]
fn a_new_file_is_reported_as_created() {
    let session = Session::new();
    let saved = append(&session.store, &session, &call()).unwrap();
    assert!(saved.created && !saved.is_contested());
    assert_eq!(session.buffer("a").unwrap(), "!");
    assert_eq!(session.messages(), ["read a", "read a", "write a", "read a"]);
}

#[test]
fn a_change_that_changes_nothing_is_not_written() {
    let session = showing("one");
    for change in [Change::Keep, Change::write("one")] {
        update(&session, &mut |_| Ok(change.clone())).unwrap();
    }
    assert_eq!(session.messages(), ["read a", "read a"]);
}

#[test]
fn equal_texts_have_equal_stamps_and_a_missing_file_has_another_than_an_empty_one() {
    let session = Session::new();
    for (name, text) in [("a", "one"), ("b", "one"), ("c", "two"), ("d", "")] {
        session.open(name, text);
    }
    session.save("d", "");
    let stamp = |name| stamp(&session, name);
    assert_eq!(stamp("a"), stamp("b"));
    assert_ne!(stamp("a"), stamp("c"));
    assert_ne!(stamp("d"), Stamp::MISSING);
}

#[test]
fn files_are_not_removed() {
    let session = showing("one");
    let error = update(&session, &mut |_| Ok(Change::Remove)).unwrap_err();
    assert_eq!(error.to_string(), "permission denied: an editor cannot remove files");
    assert_eq!(session.messages(), ["read a"]);
    // A missing file need not be removed.
    session.editor().buffers.clear();
    assert_eq!(update(&session, &mut |_| Ok(Change::Remove)).unwrap().stamp, Stamp::MISSING);
}

// --- somebody types

#[test]
fn a_string_is_replaced_while_the_person_types_elsewhere() {
    let typed = |count: usize| if count <= 2 { count.to_string() } else { String::new() };
    let session = typing("old|", typed);
    let saved = replace(&session, "old", "new").unwrap();
    assert!(saved.is_contested() && !saved.created);
    assert_eq!(session.buffer("a").unwrap(), "new|12", "all that was typed is there");
    let messages = ["read a", "read a", "read a", "read a", "write a", "read a"];
    assert_eq!(session.messages(), messages);
}

#[test]
fn a_person_who_never_pauses_neither_loses_anything_nor_keeps_an_update_for_ever() {
    let session = typing("old|", |_| ".".into());
    let mut runs = 0;
    let outcome = update(&session, &mut |text| {
        runs += 1;
        Ok(Change::write(text.replace("old", "new")))
    });
    let Err(StoreError::Stale { why, current }) = outcome else { panic!("{outcome:?}") };
    assert!(why.contains("try again"));
    assert_eq!(runs, 9, "once, and eight times more");
    assert_eq!(session.messages(), ["read a"; 10]);
    assert_eq!(session.buffer("a").unwrap(), "old|..........");
    assert_eq!(current, Some(Hash::of(b"old|.........")), "as it was last read");
}

#[test]
fn the_last_message_before_a_write_is_a_read_of_the_text_it_was_made_from() {
    // Each bit says whether something is typed after that message.
    for typed in 0_u32..1 << 9 {
        let is_typed = move |count: usize| typed >> (count - 1) & 1 == 1;
        let session =
            typing(
                "old|",
                move |count| {
                    if is_typed(count) { count.to_string() } else { String::new() }
                },
            );
        let mut made_from = String::new();
        let saved = update(&session, &mut |text| {
            text.clone_into(&mut made_from);
            Ok(Change::write(text.replace("old", "new")))
        });
        let (messages, text) = (session.messages(), session.buffer("a").unwrap());
        let typed_in = |counts: RangeInclusive<usize>| -> String {
            counts.filter(|&count| is_typed(count)).map(|count| count.to_string()).collect()
        };
        let typed_until = |count| typed_in(1..=count);
        let Ok(saved) = saved else {
            assert_eq!(text, format!("old|{}", typed_until(messages.len())), "nothing was written");
            continue;
        };
        let written = messages.iter().position(|message| message == "write a").unwrap();
        assert_eq!(&messages[written - 1..], ["read a", "write a", "read a"]);
        // The one window: after the last read, which is message number `written`. What is typed after the text was read
        // back is not noticed by this call.
        let kept = typed_until(written - 1) + &typed_in(written + 1..=messages.len());
        assert_eq!(text, format!("new|{kept}"), "{typed:b}");
        let before_the_last_read = typed & ((1 << (written - 1)) - 1) != 0;
        let before_the_read_back = typed >> written & 1 == 1;
        let is_contested = before_the_last_read || before_the_read_back;
        assert_eq!(saved.is_contested(), is_contested, "{typed:b}");
        assert_eq!(made_from, format!("old|{}", typed_until(written - 1)), "{typed:b}");
    }
}

#[test]
fn line_breaks_that_the_editor_changes_are_no_interference() {
    for (given, kept) in
        [("\u{feff}one\r\ntwo\r\n", "one\ntwo\n"), ("one\rtwo\r\n", "one\ntwo\n"), ("a", "a")]
    {
        let session = with_person("", |_, buffers, path| {
            let text = buffers.get_mut(path).unwrap();
            *text = String::from_utf8(normalized(text.as_bytes()).into_owned()).unwrap();
        });
        let saved = update(&session, &mut |_| Ok(Change::write(given))).unwrap();
        assert!(!saved.is_contested(), "{given:?}");
        let expected = (given != kept).then(|| Hash::of(kept.as_bytes()));
        assert_eq!(saved.restyled, expected, "{given:?}");
    }
}

#[test]
fn only_a_text_typed_between_the_last_read_and_the_write_is_lost_unnoticed() {
    let session = typing("old|", |count| if count == 2 { "lost".into() } else { String::new() });
    assert!(!replace(&session, "old", "new").unwrap().is_contested());
    assert_eq!(session.buffer("a").unwrap(), "new|");
    assert_eq!(session.messages(), ["read a", "read a", "write a", "read a"]);
}

#[test]
fn a_text_typed_after_the_write_stays_and_is_reported() {
    let session = typing("old|", |count| if count == 3 { "more".into() } else { String::new() });
    let saved = replace(&session, "old", "new").unwrap();
    assert!(saved.is_contested());
    assert_eq!(session.buffer("a").unwrap(), "new|more");
    assert_eq!(saved.stamp, stamp(&session, "a"));
}

#[test]
fn a_file_that_is_gone_after_the_write_is_reported() {
    let session = with_person("old", |count, buffers, _| {
        if count == 3 {
            buffers.clear();
        }
    });
    let saved = replace(&session, "old", "new").unwrap();
    assert!(saved.is_contested());
    assert_eq!(saved.stamp, Stamp::MISSING);
}

#[test]
fn a_change_that_no_longer_fits_gives_up_and_nothing_is_written() {
    // Replaced after the first, the second or the third read: always found by the next.
    for replaced_after in 1..=3 {
        let session = with_person("old|", move |count, buffers, path| {
            let text = buffers.get_mut(path).unwrap();
            text.push('.');
            if count == replaced_after {
                *text = text.replace("old", "gone");
            }
        });
        assert!(matches!(replace(&session, "old", "new"), Err(StoreError::Stopped)));
        let reads = replaced_after + 1;
        assert_eq!(session.messages(), vec!["read a"; reads]);
        assert_eq!(session.buffer("a").unwrap(), format!("gone|{}", ".".repeat(reads)));
    }
}

#[test]
fn a_text_that_the_person_wrote_first_is_not_written() {
    let session = with_person("old", |_, buffers, path| {
        buffers.insert(path.into(), "new".into());
    });
    let saved = update(&session, &mut |_| Ok(Change::write("new"))).unwrap();
    assert!(saved.is_contested() && !saved.created);
    assert_eq!(session.messages(), ["read a", "read a"]);
}

#[test]
fn a_file_is_created_by_whoever_was_first() {
    let theirs = with_person("", |count, buffers, path| {
        if count == 1 {
            buffers.insert(path.into(), "theirs".into());
        }
    });
    let saved = update(&theirs, &mut |text| Ok(Change::write(text))).unwrap();
    assert!(!saved.created && saved.is_contested());

    let gone = with_person("one", |count, buffers, _| {
        if count == 1 {
            buffers.clear();
        }
    });
    let saved = append(&gone.store, &gone, &call()).unwrap();
    assert!(saved.created && saved.is_contested());
    assert_eq!(gone.buffer("a").unwrap(), "!");
}

#[test]
fn a_text_that_grew_too_large_is_left_alone() {
    let more = "x".repeat(usize::try_from(MAX).unwrap());
    let session = typing("old", move |count| if count == 1 { more.clone() } else { String::new() });
    let outcome = replace(&session, "old", "new");
    assert!(matches!(outcome, Err(StoreError::TooLarge { size, max: MAX }) if size == MAX + 3));
    assert_eq!(session.messages(), ["read a", "read a"]);
}

#[test]
fn a_text_typed_after_the_write_may_make_it_too_large() {
    let more = "x".repeat(usize::try_from(MAX).unwrap());
    let session = typing("old", move |count| if count == 3 { more.clone() } else { String::new() });
    assert!(replace(&session, "old", "new").unwrap().is_contested());
}

// --- errors and cancellations

#[test]
fn a_write_without_an_answer_is_unconfirmed_and_a_read_without_one_timed_out() {
    for (message, sent) in [("write", 3), ("read", 1)] {
        let session = showing("old");
        session.editor().always.insert(message, MessageError::TimedOut);
        let error = replace(&session, "old", "new").unwrap_err();
        let is_unconfirmed = matches!(error, StoreError::Unconfirmed);
        assert!(is_unconfirmed || matches!(error, StoreError::TimedOut), "{error}");
        assert_eq!((is_unconfirmed, session.messages().len()), (message == "write", sent));
    }
}

#[test]
fn a_write_that_cannot_be_read_back_is_still_a_write() {
    let session = showing("old");
    session.editor().planned.insert(4, MessageError::TimedOut);
    let saved = replace(&session, "old", "new").unwrap();
    assert_eq!(saved.interference, Interference::None);
    assert_eq!(session.buffer("a").unwrap(), "new");
    assert_eq!(saved.stamp, stamp(&session, "a"));
}

#[test]
fn a_call_cancelled_during_the_last_run_of_the_change_writes_nothing() {
    let session = showing("old");
    session.editor().person = Some(restless());
    let cancelled = call();
    let mut runs = 0;
    let outcome = session.store.update(&[session.at("a")], &cancelled, &mut |_| {
        runs += 1;
        if runs == 4 {
            cancelled.cancel.set();
        }
        Ok(vec![Change::write("new")])
    });
    assert!(matches!(outcome, Err(StoreError::Cancelled)));
    assert_eq!(without_typed(&session.buffer("a").unwrap()), "old");
    assert_eq!(session.messages(), ["read a"; 4]);
}

#[test]
fn a_call_cancelled_before_the_write_writes_nothing_and_a_later_one_is_carried_through() {
    for (cancelled_at, sent) in [(2, 2), (3, 4)] {
        let cancelled = call();
        let cancel = cancelled.cancel.clone();
        let session = with_person("a", move |count, buffers, path| {
            if count == cancelled_at {
                cancel.set();
                buffers.get_mut(path).unwrap().push_str(" typed");
            }
        });
        let outcome = session
            .store
            .update(&[session.at("a")], &cancelled, &mut |_| Ok(vec![Change::write("A")]));
        assert_eq!(session.messages().len(), sent);
        let text = session.buffer("a").unwrap();
        match cancelled_at {
            2 => assert!(matches!(outcome, Err(StoreError::Cancelled)) && text == "a typed"),
            _ => assert!(outcome.unwrap()[0].is_contested() && text == "A typed"),
        }
    }
}

// --- several threads

#[test]
fn threads_on_one_store_lose_nothing_and_notice_nobody_else() {
    let session = showing("|");
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let saved = append(&session.store, &session, &call()).unwrap();
                    assert!(!saved.is_contested() && !saved.created);
                }
            });
        }
    });
    assert_eq!(session.buffer("a").unwrap().len(), 151);
}

/// Runs `meanwhile` while an update of `a` by `store` is under way.
fn during_an_update(store: &dyn Store, session: &Session, meanwhile: impl FnOnce()) {
    let both = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let outcome = store.update(&[session.at("a")], &call(), &mut |_| {
                both.wait();
                both.wait();
                Err(Stop)
            });
            assert!(matches!(outcome, Err(StoreError::Stopped)));
        });
        both.wait();
        meanwhile();
        both.wait();
    });
}

fn soon() -> Call {
    Call::until(Instant::now() + Duration::from_millis(20))
}

#[test]
fn stores_that_share_their_paths_know_a_file_by_any_of_its_folders() {
    let outer = showing("one");
    fs::create_dir(outer.path("inner")).unwrap();
    let root = Arc::new(Root::open(&outer.path("inner")).unwrap());
    let paths_in_use: PathsInUse = outer.store.paths_in_use.clone();
    let inner = store(&root, FakeEditor::default(), paths_in_use);
    during_an_update(&inner, &outer, || {
        let same_file = super::append(&outer.store, &outer.at("inner/a"), "!", &soon());
        assert!(matches!(same_file, Err(StoreError::LockTimeout { .. })), "{same_file:?}");
        append(&outer.store, &outer, &call()).unwrap();
    });
}

#[test]
fn a_call_waits_for_another_update_no_longer_than_its_deadline() {
    let session = showing("one");
    session.open("b", "two");
    during_an_update(&session.store, &session, || {
        super::append(&session.store, &session.at("b"), "!", &call()).unwrap();
        let late = append(&session.store, &session, &soon());
        assert!(matches!(late, Err(StoreError::LockTimeout { .. })));
        let cancelled = call();
        let cancel = cancelled.cancel.clone();
        let cancelling = thread::spawn(move || cancel.set());
        let outcome = append(&session.store, &session, &cancelled);
        assert!(matches!(outcome, Err(StoreError::Cancelled)));
        cancelling.join().unwrap();
        let read = session.store.read(&session.at("a"), &call());
        assert!(read.unwrap().is_some(), "readers do not wait");
    });
    append(&session.store, &session, &call()).unwrap();
    assert_eq!(session.buffer("a").unwrap(), "one!");
}

#[test]
fn a_change_that_panics_releases_its_file() {
    let session = showing("one");
    thread::scope(|scope| {
        let panics = || update(&session, &mut |_| panic!("a faulty change"));
        assert!(scope.spawn(panics).join().is_err());
    });
    append(&session.store, &session, &call()).unwrap();
    assert_eq!(session.buffer("a").unwrap(), "one!");
}
