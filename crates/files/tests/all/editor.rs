//! The store over an editor, with a person at it: what survives, what is told, what is never sent twice.

use std::{fs, ops::RangeInclusive, path::Path, sync::Barrier, thread, time::Duration};

use crate::common::{
    MAX, append, at, call, call_for,
    fake_editor::{Answer, Buffers, FakeEditor, plain},
};
use files::{
    Change, Durable, EditorStore, Hash, MissingFolders, Root, Saved, Stamp, Stop, Store,
    StoreError, Turns, UpdateError, Updater,
};

fn store(editor: FakeEditor) -> EditorStore<FakeEditor> {
    EditorStore::new(editor, MAX)
}

/// Replaces `old` by `new` in `a`, or gives up when it is not there just once.
fn replace(store: &dyn Store, old: &str, new: &str) -> Result<Saved, StoreError> {
    let saved = store.update(&[at("a")], &call(), &mut |versions| {
        let bytes = versions[0].as_ref().map(|version| version.bytes.to_vec()).unwrap_or_default();
        let text = String::from_utf8(bytes).unwrap();
        if text.matches(old).count() != 1 {
            return Err(Stop);
        }
        Ok(vec![Change::write(text.replacen(old, new, 1).into_bytes())])
    })?;
    Ok(saved.into_iter().next().unwrap())
}

/// Types `text` at the end of `a`.
fn type_in(buffers: &mut Buffers, text: &str) {
    buffers.get_mut("a").unwrap().push_str(text);
}

fn write(text: &str) -> Change {
    Change::write(text)
}

// --- nobody types

#[test]
fn an_edit_takes_four_messages() {
    let store = store(FakeEditor::quiet(&[("a", "one")]));
    let saved = append(&store, &at("a"), " two", &call()).unwrap();
    assert_eq!(store.editor().text("a").unwrap(), "one two");
    assert_eq!(store.editor().messages(), ["read a", "read a", "write a", "read a"]);
    let stamp = store.read(&at("a"), &call()).unwrap().unwrap().stamp;
    let expected = Saved { durable: Durable::No, ..Saved::kept(stamp) };
    assert_eq!(saved, expected);
}

/// It would have to be asked for, and answers with the whole text.
#[test]
fn an_editor_tells_nothing_of_a_text_but_the_text() {
    let store = store(FakeEditor::quiet(&[("a", "one")]));
    assert_eq!(store.size(&at("a")), None);
    assert!(store.excerpt(&at("a"), text::LineRange { first: 0, last: 0 }, &call()).is_none());
    let mut buffer = b"before".to_vec();
    let stamp = store.read_listed(&at("a"), &mut buffer, &call()).unwrap();
    assert_eq!((stamp.is_some(), buffer.as_slice()), (true, &b"one"[..]));
}

#[test]
fn a_new_file_is_created_and_said_to_be() {
    let store = store(FakeEditor::default());
    let saved = append(&store, &at("a"), "one", &call()).unwrap();
    assert!(saved.created && !saved.is_contested());
    assert_eq!(store.editor().text("a").unwrap(), "one");
    assert_eq!(store.editor().messages(), ["read a", "read a", "write a", "read a"]);
}

#[test]
fn what_changes_nothing_is_not_written() {
    let store = store(FakeEditor::quiet(&[("a", "one")]));
    for change in [Change::Keep, write("one")] {
        store.update(&[at("a")], &call(), &mut |_| Ok(vec![change.clone()])).unwrap();
    }
    assert_eq!(store.editor().messages(), ["read a", "read a"]);
}

#[test]
fn equal_texts_have_equal_stamps_and_no_text_has_another_than_an_empty_one() {
    let store = store(FakeEditor::quiet(&[("a", "one"), ("b", "one"), ("c", "two"), ("d", "")]));
    let stamp = |name| store.read(&at(name), &call()).unwrap().unwrap().stamp;
    assert_eq!(stamp("a"), stamp("b"));
    assert_ne!(stamp("a"), stamp("c"));
    assert_ne!(stamp("d"), Stamp::MISSING);
}

#[test]
fn different_changes_to_one_file_are_refused() {
    let store = store(FakeEditor::quiet(&[("a", "one")]));
    let twice = [at("a"), at("a")];
    let outcome = store.update(&twice, &call(), &mut |_| Ok(vec![write("two"), write("three")]));
    assert!(matches!(outcome, Err(StoreError::SameFile)));
    assert_eq!(store.editor().messages(), ["read a"]);
}

#[test]
fn a_folder_the_editor_does_not_make_is_not_made() {
    let editor = FakeEditor::default();
    editor.plan("write a", Answer::NoFolder);
    let store = store(editor);
    let updater = Updater::new(&store).with_missing_folders(MissingFolders::Create);
    let add = || updater.update_one(&at("a"), &call(), |_| Ok::<_, ()>((write("one"), ())));
    assert!(matches!(add(), Err(UpdateError::Store(StoreError::NoFolder))));
    assert_eq!(store.editor().messages(), ["read a", "read a", "write a"], "asked once");
    assert!(add().unwrap().0.created);
}

// --- somebody types

#[test]
fn a_string_is_replaced_while_the_person_types_elsewhere() {
    // After each of the first two messages.
    let editor = FakeEditor::with_person(&[("a", "old|")], |count, buffers| {
        if count <= 2 {
            type_in(buffers, &count.to_string());
        }
    });
    let store = store(editor);
    let saved = replace(&store, "old", "new").unwrap();
    assert!(saved.is_contested() && !saved.created);
    assert_eq!(store.editor().text("a").unwrap(), "new|12", "all that was typed is there");
    let messages = ["read a", "read a", "read a", "read a", "write a", "read a"];
    assert_eq!(store.editor().messages(), messages);
}

#[test]
fn a_person_who_never_pauses_neither_loses_anything_nor_keeps_an_update_for_ever() {
    let editor = FakeEditor::with_person(&[("a", "old|")], |_, buffers| type_in(buffers, "."));
    let store = store(editor);
    let mut runs = 0;
    let outcome = store.update(&[at("a")], &call(), &mut |versions| {
        runs += 1;
        let text = String::from_utf8(versions[0].as_ref().unwrap().bytes.to_vec()).unwrap();
        Ok(vec![write(&text.replace("old", "new"))])
    });
    let Err(StoreError::Stale { why, current }) = outcome else { panic!("{outcome:?}") };
    assert!(why.contains("try again"));
    assert_eq!(runs, 9, "once, and eight times more");
    assert_eq!(store.editor().messages(), ["read a"; 10]);
    assert_eq!(store.editor().text("a").unwrap(), "old|..........");
    assert_eq!(current, Some(Hash::of(b"old|.........")), "as it was last read");
}

#[test]
fn the_last_message_before_a_write_is_a_read_of_what_it_was_made_from() {
    // Whatever is typed, and whenever: each bit says whether after that message.
    for typed in 0_u32..1 << 9 {
        let editor = FakeEditor::with_person(&[("a", "old|")], move |count, buffers| {
            if typed >> (count - 1) & 1 == 1 {
                type_in(buffers, &count.to_string());
            }
        });
        let store = store(editor);
        let mut made_from = Vec::new();
        let saved = store.update(&[at("a")], &call(), &mut |versions| {
            made_from = versions[0].as_ref().unwrap().bytes.to_vec();
            let text = String::from_utf8(made_from.clone()).unwrap();
            Ok(vec![write(&text.replace("old", "new"))])
        });
        let messages = store.editor().messages();
        let text = store.editor().text("a").unwrap();
        let typed_in = |counts: RangeInclusive<usize>| -> String {
            counts
                .filter(|count| typed >> (count - 1) & 1 == 1)
                .map(|count| count.to_string())
                .collect()
        };
        let typed_until = |count| typed_in(1..=count);
        let Ok(saved) = saved else {
            assert_eq!(text, format!("old|{}", typed_until(messages.len())), "nothing was written");
            continue;
        };
        let written = messages.iter().position(|message| message == "write a").unwrap();
        assert_eq!(&messages[written - 1..], ["read a", "write a", "read a"]);
        // The one window: after the last read, which is message number `written`. What is typed after the read back is
        // nobody's to notice.
        let kept = typed_until(written - 1) + &typed_in(written + 1..=messages.len());
        assert_eq!(text, format!("new|{kept}"), "{typed:b}");
        let before_the_last_read = typed & ((1 << (written - 1)) - 1) != 0;
        let before_the_read_back = typed >> written & 1 == 1;
        assert_eq!(
            saved[0].is_contested(),
            before_the_last_read || before_the_read_back,
            "{typed:b}"
        );
        let made_from = String::from_utf8(made_from).unwrap();
        assert_eq!(made_from, format!("old|{}", typed_until(written - 1)), "{typed:b}");
    }
}

#[test]
fn an_editor_that_keeps_its_own_line_breaks_is_nobody_else() {
    for (given, kept) in
        [("\u{feff}one\r\ntwo\r\n", "one\ntwo\n"), ("one\rtwo\r\n", "one\ntwo\n"), ("a", "a")]
    {
        let editor = FakeEditor::with_person(&[("a", "")], |_, buffers| {
            let text = buffers.get_mut("a").unwrap();
            *text = String::from_utf8(files::unstyled(text.as_bytes()).into_owned()).unwrap();
        });
        let store = store(editor);
        let saved = store.update(&[at("a")], &call(), &mut |_| Ok(vec![write(given)])).unwrap();
        assert!(!saved[0].is_contested(), "{given:?}");
        let expected = (given != kept).then(|| Hash::of(kept.as_bytes()));
        assert_eq!(saved[0].restyled, expected, "{given:?}");
    }
}

#[test]
fn what_is_typed_between_the_last_read_and_the_write_alone_is_lost_unnoticed() {
    let editor = FakeEditor::with_person(&[("a", "old|")], |count, buffers| {
        if count == 2 {
            type_in(buffers, "lost");
        }
    });
    let store = store(editor);
    // No answer of the editor shows it: the one window there is.
    assert!(!replace(&store, "old", "new").unwrap().is_contested());
    assert_eq!(store.editor().text("a").unwrap(), "new|");
    assert_eq!(store.editor().messages(), ["read a", "read a", "write a", "read a"]);
}

#[test]
fn what_is_typed_after_the_write_stays_and_is_told() {
    let editor = FakeEditor::with_person(&[("a", "old|")], |count, buffers| {
        if count == 3 {
            type_in(buffers, "more");
        }
    });
    let store = store(editor);
    let saved = replace(&store, "old", "new").unwrap();
    assert!(saved.is_contested());
    assert_eq!(store.editor().text("a").unwrap(), "new|more");
    assert_eq!(saved.stamp, store.read(&at("a"), &call()).unwrap().unwrap().stamp);
}

#[test]
fn a_file_that_is_gone_after_the_write_is_told() {
    let editor = FakeEditor::with_person(&[("a", "old")], |count, buffers| {
        if count == 3 {
            buffers.clear();
        }
    });
    let saved = replace(&store(editor), "old", "new").unwrap();
    assert!(saved.is_contested());
    assert_eq!(saved.stamp, Stamp::MISSING);
}

#[test]
fn a_change_that_no_longer_fits_gives_up_and_nothing_is_written() {
    // Typed over after the first, the second or the third read: always found by the next.
    for typed_after in 1..=3 {
        let editor = FakeEditor::with_person(&[("a", "old|")], move |count, buffers| {
            type_in(buffers, ".");
            if count == typed_after {
                let text = buffers.get_mut("a").unwrap();
                *text = text.replace("old", "gone");
            }
        });
        let store = store(editor);
        assert!(matches!(replace(&store, "old", "new"), Err(StoreError::Stopped)));
        let reads = typed_after + 1;
        assert_eq!(store.editor().messages(), vec!["read a"; reads]);
        assert_eq!(store.editor().text("a").unwrap(), format!("gone|{}", ".".repeat(reads)));
    }
}

#[test]
fn what_the_person_wrote_first_need_not_be_written() {
    let editor = FakeEditor::with_person(&[("a", "old")], |_, buffers| {
        buffers.insert("a".into(), "new".into());
    });
    let store = store(editor);
    let saved = store.update(&[at("a")], &call(), &mut |_| Ok(vec![write("new")])).unwrap();
    assert!(saved[0].is_contested() && !saved[0].created);
    assert_eq!(store.editor().messages(), ["read a", "read a"]);
}

#[test]
fn a_file_is_created_by_whoever_was_first() {
    let theirs = FakeEditor::with_person(&[], |count, buffers| {
        if count == 1 {
            buffers.insert("a".into(), "theirs".into());
        }
    });
    let saved = append(&store(theirs), &at("a"), "", &call()).unwrap();
    assert!(!saved.created && saved.is_contested());

    let gone = FakeEditor::with_person(&[("a", "one")], |count, buffers| {
        if count == 1 {
            buffers.clear();
        }
    });
    let store = store(gone);
    let saved = append(&store, &at("a"), "new", &call()).unwrap();
    assert!(saved.created && saved.is_contested());
    assert_eq!(store.editor().text("a").unwrap(), "new");
}

#[test]
fn a_text_that_grew_too_large_is_left_alone() {
    let editor = FakeEditor::with_person(&[("a", "old")], |count, buffers| {
        if count == 1 {
            type_in(buffers, &"x".repeat(1000));
        }
    });
    let store = store(editor);
    let outcome = replace(&store, "old", "new");
    assert!(matches!(outcome, Err(StoreError::TooLarge { size: 1003, max: MAX })));
    assert_eq!(store.editor().messages(), ["read a", "read a"]);
}

#[test]
fn what_is_typed_after_the_write_may_make_it_too_large() {
    let editor = FakeEditor::with_person(&[("a", "old")], |count, buffers| {
        if count == 3 {
            type_in(buffers, &"x".repeat(1000));
        }
    });
    assert!(replace(&store(editor), "old", "new").unwrap().is_contested());
}

#[test]
fn a_kept_file_counts_among_several() {
    // `a` is copied to `b`: what is typed into `a` must be copied too.
    let editor = FakeEditor::with_person(&[("a", "one"), ("b", "")], |count, buffers| {
        if count == 2 {
            type_in(buffers, "!");
        }
    });
    let store = store(editor);
    let saved = store.update(&[at("a"), at("b")], &call(), &mut |versions| {
        Ok(vec![Change::Keep, Change::write(versions[0].as_ref().unwrap().bytes.to_vec())])
    });
    let contested: Vec<_> = saved.unwrap().iter().map(Saved::is_contested).collect();
    assert_eq!(contested, [true, false]);
    assert_eq!(store.editor().text("b").unwrap(), "one!");
}

// --- the editor says no, or nothing

#[test]
fn a_refusal_is_passed_on_and_not_tried_again() {
    for (message, sent) in
        [("read a", &["read a"][..]), ("write a", &["read a", "read a", "write a"])]
    {
        let editor = FakeEditor::quiet(&[("a", "old")]);
        editor.plan(message, Answer::Denied);
        let store = store(editor);
        let error = replace(&store, "old", "new").unwrap_err();
        assert_eq!(error.to_string(), "permission denied: the editor said no");
        assert_eq!(store.editor().messages(), sent);
        assert_eq!(store.editor().text("a").unwrap(), "old");
    }
}

#[test]
fn a_write_without_an_answer_is_unconfirmed_and_sent_once() {
    for (answer, text) in [(Answer::Lost, "new"), (Answer::Ignored, "old")] {
        let editor = FakeEditor::quiet(&[("a", "old")]);
        editor.plan("write a", answer);
        let store = store(editor);
        assert!(matches!(replace(&store, "old", "new"), Err(StoreError::Unconfirmed)));
        assert_eq!(store.editor().messages(), ["read a", "read a", "write a"]);
        assert_eq!(store.editor().text("a").unwrap(), text);
    }
}

#[test]
fn a_read_without_an_answer_timed_out_and_wrote_nothing() {
    let editor = FakeEditor::quiet(&[("a", "old")]);
    editor.plan("read a", Answer::Ignored);
    let store = store(editor);
    assert!(matches!(replace(&store, "old", "new"), Err(StoreError::TimedOut)));
    assert_eq!(store.editor().messages(), ["read a"]);
}

#[test]
fn a_write_that_cannot_be_read_back_is_still_a_write() {
    let store = EditorStore::new(NoReadBack(FakeEditor::quiet(&[("a", "old")])), MAX);
    let saved = replace(&store, "old", "new").unwrap();
    assert!(!saved.is_contested());
    assert_eq!(store.editor().0.text("a").unwrap(), "new");
    assert_eq!(saved.stamp, store.read(&at("a"), &call()).unwrap().unwrap().stamp);
}

/// Does not answer the read that follows a write.
struct NoReadBack(FakeEditor);

impl files::Editor for NoReadBack {
    fn read(
        &self,
        at: &files::FilePath,
        call: &files::Call,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.read(at, call)
    }

    fn write(
        &self,
        at: &files::FilePath,
        bytes: &[u8],
        call: &files::Call,
    ) -> Result<(), StoreError> {
        self.0.write(at, bytes, call)?;
        self.0.plan("read a", Answer::Ignored);
        Ok(())
    }
}

#[test]
fn a_call_taken_back_during_the_last_run_of_the_change_writes_nothing() {
    let store = store(FakeEditor::restless());
    store.editor().put("a", "old");
    let cancelled = call();
    let mut runs = 0;
    let outcome = store.update(&[at("a")], &cancelled, &mut |_| {
        runs += 1;
        if runs == 4 {
            cancelled.cancel.set();
        }
        Ok(vec![write("new")])
    });
    assert!(matches!(outcome, Err(StoreError::Cancelled)));
    assert_eq!(plain(&store.editor().text("a").unwrap()), "old");
    assert_eq!(store.editor().messages(), ["read a"; 4]);
}

#[test]
fn a_call_taken_back_during_the_last_read_writes_nothing() {
    let cancelled = call();
    let cancel = cancelled.cancel.clone();
    let editor = FakeEditor::with_person(&[("a", "old")], move |count, _| {
        if count == 2 {
            cancel.set();
        }
    });
    let store = store(editor);
    let outcome = store.update(&[at("a")], &cancelled, &mut |_| Ok(vec![write("new")]));
    assert!(matches!(outcome, Err(StoreError::Cancelled)));
    assert_eq!(store.editor().messages(), ["read a"; 2]);
}

#[test]
fn a_call_taken_back_once_writing_began_is_carried_through() {
    // Messages 1 to 4 read both files twice, 5 and 6 write them.
    let cancelled = call();
    let cancel = cancelled.cancel.clone();
    let editor = FakeEditor::with_person(&[("a", "a"), ("b", "b")], move |count, buffers| {
        if count == 5 {
            cancel.set();
            type_in(buffers, " typed");
        }
    });
    let store = store(editor);
    let saved =
        store.update(&[at("a"), at("b")], &cancelled, &mut |_| Ok(vec![write("A"), write("B")]));
    let contested: Vec<_> = saved.unwrap().iter().map(Saved::is_contested).collect();
    assert_eq!(contested, [true, false]);
    let texts = ["a", "b"].map(|name| store.editor().text(name).unwrap());
    assert_eq!(texts, ["A typed", "B"]);
}

// --- several files

/// Writes to `b`, `a` and a new `c`, in that order of paths.
fn write_three(store: &dyn Store) -> Result<Vec<Saved>, StoreError> {
    store.update(&["b", "a", "c"].map(at), &call(), &mut |_| {
        Ok(vec![write("B"), write("A"), write("C")])
    })
}

#[test]
fn several_files_are_all_read_before_any_is_written() {
    let store = store(FakeEditor::quiet(&[("a", "a"), ("b", "b")]));
    let created: Vec<_> =
        write_three(&store).unwrap().into_iter().map(|saved| saved.created).collect();
    assert_eq!(created, [false, false, true]);
    let rounds = ["read", "read", "write", "read"];
    let expected: Vec<_> = rounds
        .iter()
        .flat_map(|verb| ["a", "b", "c"].map(|name| format!("{verb} {name}")))
        .collect();
    assert_eq!(store.editor().messages(), expected);
}

#[test]
fn what_was_written_is_put_back_when_a_later_write_fails() {
    for answer in [Answer::Denied, Answer::Ignored] {
        for name in ["b", "c"] {
            let editor = FakeEditor::quiet(&[("a", "a"), ("b", "b")]);
            editor.plan(&format!("write {name}"), answer);
            let store = store(editor);
            let error = write_three(&store).unwrap_err();
            assert!(matches!(error, StoreError::Denied { .. } | StoreError::Unconfirmed));
            let texts = ["a", "b", "c"].map(|name| store.editor().text(name));
            assert_eq!(texts, [Some("a".into()), Some("b".into()), None]);
            let writes: Vec<_> = store
                .editor()
                .messages()
                .into_iter()
                .filter(|sent| sent.starts_with('w'))
                .collect();
            let expected: &[_] = if name == "b" {
                &["write a", "write b", "write a"]
            } else {
                &["write a", "write b", "write c", "write b", "write a"]
            };
            assert_eq!(writes, expected);
        }
    }
}

#[test]
fn a_new_file_is_written_last_for_it_cannot_be_taken_back() {
    let editor = FakeEditor::quiet(&[("z", "z")]);
    editor.plan("write z", Answer::Denied);
    let store = store(editor);
    let outcome =
        store.update(&[at("a"), at("z")], &call(), &mut |_| Ok(vec![write("A"), write("Z")]));
    assert!(matches!(outcome, Err(StoreError::Denied { .. })));
    assert_eq!(store.editor().names(), ["z"]);

    // Of two new files the first stays.
    store.editor().plan("write c", Answer::Denied);
    let outcome =
        store.update(&[at("b"), at("c")], &call(), &mut |_| Ok(vec![write("B"), write("C")]));
    assert!(matches!(outcome, Err(StoreError::Denied { .. })));
    assert_eq!(store.editor().names(), ["b", "z"]);
}

#[test]
fn what_somebody_typed_into_is_not_put_back() {
    // Messages 1 to 6 read the three files twice, 7 writes `a`, 8 is refused.
    let editor = FakeEditor::with_person(&[("a", "a"), ("b", "b")], |count, buffers| {
        if count == 8 {
            type_in(buffers, " typed");
        }
    });
    editor.plan("write b", Answer::Denied);
    let store = store(editor);
    assert!(matches!(write_three(&store), Err(StoreError::Denied { .. })));
    assert_eq!(store.editor().text("a").unwrap(), "A typed");
    assert_eq!(store.editor().text("b").unwrap(), "b");
}

// --- several threads

#[test]
fn threads_on_one_store_lose_nothing_and_find_nobody_else() {
    let store = store(FakeEditor::quiet(&[("a", ""), ("b", "")]));
    let add = |names: [&str; 2]| {
        let add = |version: &Option<files::Version>| {
            Change::write([&version.as_ref().unwrap().bytes[..], b"x"].concat())
        };
        for _ in 0..50 {
            let saved = store.update(&names.map(at), &call(), &mut |versions| {
                Ok(versions.iter().map(add).collect())
            });
            assert!(saved.unwrap().iter().all(|saved| !saved.is_contested()));
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| add(["a", "b"]));
        scope.spawn(|| add(["b", "a"]));
        scope.spawn(|| add(["a", "a"]));
    });
    let lengths = ["a", "b"].map(|name| store.editor().text(name).unwrap().len());
    assert_eq!(lengths, [150, 100]);
}

/// Two stores that reach one editor by other folders, as two sessions do.
#[test]
fn stores_that_share_their_turns_know_a_file_by_any_of_its_folders() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let (turns, both) = (Turns::default(), Barrier::new(2));
    let sharing = |folder: &Path, name: &str| {
        store(FakeEditor::quiet(&[(name, "one")])).sharing(&turns, &Root::open(folder).unwrap())
    };
    let (outer, inner) = (sharing(dir.path(), "a"), sharing(&inner, "a"));
    let root = Root::open(dir.path()).unwrap();
    let below = root.absolute(dir.path().join("inner/a").to_str().unwrap()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let outcome = inner.update(&[at("a")], &call(), &mut |_| {
                both.wait();
                both.wait();
                Err(Stop)
            });
            assert!(matches!(outcome, Err(StoreError::Stopped)));
        });
        both.wait();
        let same_file = append(&outer, &below, "!", &call_for(Duration::from_millis(20)));
        let same_name = append(&outer, &at("a"), "!", &call());
        both.wait();
        assert!(matches!(same_file, Err(StoreError::LockTimeout { .. })), "{same_file:?}");
        same_name.unwrap();
    });
}

#[test]
fn a_call_waits_for_its_turn_no_longer_than_its_deadline() {
    let store = store(FakeEditor::quiet(&[("a", "one"), ("b", "two")]));
    let both = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let outcome = store.update(&[at("a")], &call(), &mut |_| {
                both.wait();
                both.wait();
                Err(Stop)
            });
            assert!(matches!(outcome, Err(StoreError::Stopped)));
        });
        both.wait();
        let other_file = append(&store, &at("b"), "!", &call());
        let late = call_for(Duration::from_millis(20));
        let same_file = append(&store, &at("a"), "!", &late);
        let among_two = store.update(&[at("b"), at("a")], &late, &mut |_| unreachable!());
        let cancelled = call();
        cancelled.cancel.set();
        let taken_back = append(&store, &at("a"), "!", &cancelled);
        let read = store.read(&at("a"), &call());
        both.wait();
        other_file.unwrap();
        assert!(matches!(same_file, Err(StoreError::LockTimeout { .. })));
        assert!(matches!(among_two, Err(StoreError::LockTimeout { .. })));
        assert!(matches!(taken_back, Err(StoreError::Cancelled)));
        assert!(read.unwrap().is_some(), "readers do not wait");
        append(&store, &at("a"), "!", &call()).unwrap();
    });
    assert_eq!(store.editor().text("a").unwrap(), "one!");
}

#[test]
fn a_change_that_panics_gives_its_turn_back() {
    let store = store(FakeEditor::quiet(&[("a", "one")]));
    thread::scope(|scope| {
        let panics = || store.update(&[at("a")], &call(), &mut |_| panic!("a faulty change"));
        assert!(scope.spawn(panics).join().is_err());
    });
    append(&store, &at("a"), " two", &call()).unwrap();
    assert_eq!(store.editor().text("a").unwrap(), "one two");
}
