//! Tests of a person who types between any two messages: the typed text is kept, or the agent is told.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use serde_json::json;
use tools::FailureKind;

use super::{Session, edits, fake_editor::Buffers, notes};

const CONTESTED: &str = "another program changed the file at the same moment: read it again";

fn type_in(buffers: &mut Buffers, path: &Path, text: &str) {
    buffers.get_mut(path).unwrap().push_str(text);
}

/// Makes a session in which `typed` is typed at the end of `a.txt` after the messages of these numbers.
fn typed_after(counts: &'static [usize], typed: &'static str) -> Session {
    let session = Session::new();
    session.save("a.txt", "old\n");
    session.open("a.txt", "old\n");
    let path = session.path("a.txt");
    session.editor().person = Some(Box::new(move |count, buffers| {
        if counts.contains(&count) {
            type_in(buffers, &path, typed);
        }
    }));
    session
}

/// Text that is typed after a message.
fn key(count: usize) -> String {
    format!("<{count}>")
}

/// Pseudo-random numbers, the same on every run.
fn chance(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[test]
fn nothing_that_is_typed_is_lost_silently() {
    let (mut landed, mut refused) = (0, 0);
    for seed in 0..400 {
        let session = Session::new();
        session.save("a.txt", "old 0\n");
        session.open("a.txt", "old 0\n");
        let (path, typed) = (session.path("a.txt"), Arc::new(Mutex::new(Vec::new())));
        let (keys, mut next) = (Arc::clone(&typed), chance(seed));
        // The person pauses now and then, or never.
        let pauses = seed % 5;
        session.editor().person = Some(Box::new(move |count, buffers| {
            if next() % 5 >= pauses {
                type_in(buffers, &path, &key(count));
                keys.lock().unwrap().push(count);
            }
        }));
        let mut is_new = 0;
        for round in 0..4 {
            let began = session.messages().len();
            let (old, new) = (format!("old {is_new}"), format!("old {}", round + 1));
            let outcome = session.edit("a.txt", &old, &new);
            let (sent, text) = (session.messages(), session.buffer("a.txt").unwrap());
            let written = sent[began..].iter().position(|sent| sent.starts_with("write"));
            // The one window for a lost text: between the last read and the write.
            let window = written.map(|index| began + index);
            typed.lock().unwrap().retain(|&count| Some(count) != window);
            let all = typed.lock().unwrap().iter().copied().map(key).collect::<Vec<_>>().concat();
            match outcome {
                Ok(reply) => {
                    landed += 1;
                    is_new = round + 1;
                    let in_time = |count: &usize| *count > began && *count < sent.len();
                    let noticed = typed.lock().unwrap().iter().any(in_time);
                    assert_eq!(notes(&reply), vec![CONTESTED; usize::from(noticed)], "{seed}");
                }
                Err(failure) => {
                    refused += 1;
                    assert_eq!(failure.kind, FailureKind::Stale, "{seed}");
                    assert!(failure.current.is_some());
                    assert!(failure.hint.unwrap().contains("try again in a moment"));
                    assert_eq!(written, None, "{seed}");
                }
            }
            assert_eq!(text, format!("old {is_new}\n{all}"), "{seed}");
        }
        assert_eq!(session.on_disk("a.txt").unwrap(), "old 0\n");
    }
    assert!(landed > 300 && refused > 300, "both happen: {landed}, {refused}");
}

#[test]
fn an_edit_that_fits_no_more_is_out_of_date() {
    for typed in ["old\n", "more\n"] {
        // The text has one match more, or none.
        let session = typed_after(&[1], typed);
        if typed == "more\n" {
            let path = session.path("a.txt");
            session.editor().person = Some(Box::new(move |_, buffers| {
                buffers.insert(path.clone(), "more\n".into());
            }));
        }
        let failure = session.edit("a.txt", "old", "new").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Stale);
        let current = session.buffer("a.txt").unwrap();
        assert_eq!(failure.current, Some(files::Hash::of(current.as_bytes())));
        assert!(failure.hint.unwrap().contains("changed the file during the call"));
        assert_eq!(session.messages(), ["read a.txt"; 2]);
    }
    let session = typed_after(&[], "");
    assert_eq!(session.edit("a.txt", "zero", "0").unwrap_err().kind, FailureKind::NoMatch);
}

#[test]
fn what_is_typed_before_the_write_or_after_it_is_told_by_both_tools() {
    for counts in [&[1][..], &[3]] {
        let session = typed_after(counts, "typed\n");
        assert_eq!(notes(&session.edit("a.txt", "old", "new").unwrap()), [CONTESTED]);
        assert_eq!(session.buffer("a.txt").unwrap(), "new\ntyped\n");
        assert_eq!(session.text("a.txt"), "new\ntyped\n");
    }
    // The hash is that of the written text: an edit that expects it is told of text that was typed since.
    let session = typed_after(&[3], "typed\n");
    let reply = session.write("a.txt", "new\n").unwrap();
    assert_eq!(notes(&reply), [CONTESTED]);
    assert_eq!(reply.hash.unwrap(), files::Hash::of(b"new\n"));
    let mut next = edits("new", "newer");
    next["expected_hash"] = json!(reply.hash.unwrap().to_string());
    let failure = session.call("multi_edit_text_file", "a.txt", next).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Stale);
}
