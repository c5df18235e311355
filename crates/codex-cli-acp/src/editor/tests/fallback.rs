//! Tests of when the disk is used instead of the editor, when it must not be, and what the editor is never asked.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;
use tools::FailureKind;

use super::{super::MessageError, Session};

#[test]
fn a_file_the_editor_does_not_have_is_read_and_edited_on_disk() {
    let session = Session::new();
    session.save("a.txt", "one\n");
    assert_eq!(session.text("a.txt"), "one\n");
    session.edit("a.txt", "one", "two").unwrap();
    session.write("a.txt", "three\n").unwrap();
    assert_eq!(session.on_disk("a.txt").unwrap(), "three\n");
    assert_eq!(session.messages(), ["read a.txt"; 3], "nothing is written to the editor");
}

#[test]
fn a_new_file_is_created_by_the_editor() {
    for shows_nothing_as_empty in [false, true] {
        let session = Session::new();
        session.editor().shows_nothing_as_empty = shows_nothing_as_empty;
        assert_eq!(session.read("new.txt").unwrap_err().kind, FailureKind::NotFound);
        assert_eq!(session.edit("new.txt", "a", "b").unwrap_err().kind, FailureKind::NotFound);
        let data = session.write("new.txt", "").unwrap().data.unwrap();
        assert_eq!((&data["created"], data.get("notes")), (&json!(true), None));
        session.editor().buffers.clear();
        let data = session.write("new.txt", "new").unwrap().data.unwrap();
        assert_eq!((&data["created"], data.get("notes")), (&json!(true), None));
        assert_eq!(session.buffer("new.txt").unwrap(), "new");
        assert_eq!(session.on_disk("new.txt"), None);
        assert_eq!(session.write("new.txt", "2").unwrap().data.unwrap()["created"], false);
    }
}

#[test]
fn an_empty_buffer_of_a_file_is_a_text() {
    let session = Session::new();
    session.save("a.txt", "one\n");
    session.open("a.txt", "");
    assert_eq!(session.text("a.txt"), "");
    let data = session.write("a.txt", "two").unwrap().data.unwrap();
    assert_eq!(data["created"], false);
    assert_eq!(session.on_disk("a.txt").unwrap(), "one\n");
}

#[test]
fn a_missing_folder_is_refused_unless_it_is_made() {
    let session = Session::new();
    let failure = session.write("x/y/a.txt", "new").unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotFound);
    let parent = session.path("x/y");
    assert_eq!(failure.message, format!("Parent directory not found: {}", parent.display()));
    assert_eq!(session.messages(), [""; 0], "an editor might make it");
    assert_eq!(session.read("x/y/a.txt").unwrap_err().kind, FailureKind::NotFound);

    let make = json!({ "content": "new", "create_dirs": true });
    session.editor().always.insert("write", MessageError::Refused("no".into()));
    assert!(session.call("write_text_file", "x/y/a.txt", make.clone()).is_err());
    assert!(!session.path("x").exists(), "taken back");
    session.editor().always.clear();
    session.call("write_text_file", "x/y/a.txt", make).unwrap();
    assert!(session.path("x/y").is_dir());
    assert_eq!(session.buffer("x/y/a.txt").unwrap(), "new");
}

#[test]
fn a_message_the_editor_does_not_know_is_sent_once_in_a_session() {
    for message in ["read", "write"] {
        let session = Session::new();
        session.save("a.txt", "one\n");
        session.open("a.txt", "one\n");
        session.editor().always.insert(message, MessageError::UnknownMethod);
        let data = session.edit("a.txt", "one", "two").unwrap().data.unwrap();
        assert_eq!(data["changed"], true);
        let sent = session.messages();
        let asked = sent.iter().filter(|sent| sent.starts_with(message)).count();
        assert_eq!(asked, 1, "{sent:?}");
        session.edit("a.txt", "two", "three").unwrap();
        assert_eq!(session.text("a.txt"), "three\n");
        session.write("b.txt", "new").unwrap();
        assert_eq!(session.messages(), sent, "no more of them");
        assert_eq!(session.on_disk("a.txt").unwrap(), "three\n");
        assert_eq!(session.on_disk("b.txt").unwrap(), "new");
    }
}

#[test]
fn what_was_read_from_the_editor_and_is_not_saved_is_not_written_to_the_disk() {
    for error in [MessageError::UnknownMethod, MessageError::Disconnected] {
        let session = Session::new();
        session.save("a.txt", "one\n");
        session.open("a.txt", "one\ntyped\n");
        session.editor().always.insert("write", error);
        let failure = session.edit("a.txt", "one", "two").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Denied);
        assert!(failure.hint.unwrap().contains("not saved"));
        assert_eq!(session.on_disk("a.txt").unwrap(), "one\n");
    }
}

#[test]
fn an_editor_that_goes_leaves_one_whole_edit_or_none() {
    for is_saved in [true, false] {
        for gone_at in 1..=4 {
            let session = Session::new();
            session.save("a.txt", "one\n");
            session.open("a.txt", if is_saved { "one\n" } else { "one\ntyped\n" });
            for count in gone_at..10 {
                session.editor().planned.insert(count, MessageError::Disconnected);
            }
            let outcome = session.edit("a.txt", "one", "two");
            let (buffer, disk) =
                (session.buffer("a.txt").unwrap(), session.on_disk("a.txt").unwrap());
            let in_buffer = buffer.starts_with("two");
            // Only what the editor has is unknown; a file that it was not asked for is read from disk.
            let expected = match (gone_at, is_saved) {
                (4, _) => (true, true, false),
                (1, _) | (_, true) => (true, false, true),
                (_, false) => (false, false, false),
            };
            let found = (outcome.is_ok(), in_buffer, disk == "two\n");
            assert_eq!(found, expected, "gone at {gone_at}, saved: {is_saved}");
        }
    }
}

#[test]
fn a_refusal_is_final_and_the_agent_hears_the_editors_words() {
    for (message, sent) in [("read", 1), ("write", 3)] {
        let session = Session::new();
        session.save("a.txt", "one\n");
        session.open("a.txt", "one\n");
        let words = format!("this file is private{}", ".".repeat(1000));
        session.editor().always.insert(message, MessageError::Refused(words));
        let failure = session.edit("a.txt", "one", "two").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Denied);
        let path = session.path("a.txt");
        assert_eq!(failure.message, format!("Permission denied: {}", path.display()));
        let hint = failure.hint.unwrap();
        assert!(hint.starts_with("the editor refused: this file is private."), "{hint}");
        assert!(hint.len() < 400);
        assert_eq!(session.messages().len(), sent);
        assert_eq!(session.on_disk("a.txt").unwrap(), "one\n");
        assert_eq!(session.buffer("a.txt").unwrap(), "one\n");
    }
}

#[test]
fn a_write_without_an_answer_is_neither_repeated_nor_made_on_disk() {
    for is_done in [true, false] {
        let session = Session::new();
        session.save("a.txt", "one\n");
        session.open("a.txt", "one\n");
        session.editor().answers_no_write = is_done;
        if !is_done {
            session.editor().always.insert("write", MessageError::TimedOut);
        }
        let failure = session.edit("a.txt", "one", "two").unwrap_err();
        assert_eq!(failure.kind, FailureKind::TimedOut);
        assert_eq!(failure.message, "The outcome is unknown, read the file again");
        assert_eq!(session.messages(), ["read a.txt", "read a.txt", "write a.txt"]);
        assert_eq!(session.on_disk("a.txt").unwrap(), "one\n");
        assert_eq!(session.buffer("a.txt").unwrap(), if is_done { "two\n" } else { "one\n" });
    }
}

#[test]
fn a_read_that_is_not_answered_or_taken_back_fails() {
    for (error, kind) in [
        (MessageError::TimedOut, FailureKind::TimedOut),
        (MessageError::Cancelled, FailureKind::Cancelled),
    ] {
        let session = Session::new();
        session.save("a.txt", "one\n");
        session.editor().always.insert("read", error);
        assert_eq!(session.read("a.txt").unwrap_err().kind, kind);
        assert_eq!(session.edit("a.txt", "one", "two").unwrap_err().kind, kind);
        assert_eq!(session.on_disk("a.txt").unwrap(), "one\n");
    }
}

#[test]
fn what_the_disk_refuses_the_editor_is_not_asked_for() {
    let session = Session::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.txt"), "secret").unwrap();
    fs::create_dir(session.path("folder")).unwrap();
    symlink(outside.path().join("secret.txt"), session.path("absolute.txt")).unwrap();
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    symlink(format!("../{name}/secret.txt"), session.path("relative.txt")).unwrap();
    symlink(outside.path(), session.path("way")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, session.path("pipe"), 0o600.into()).unwrap();
    session.save("large.txt", "x".repeat(2 << 20));
    session.save("binary", b"a\0b");
    session.save("latin1.txt", b"caf\xe9");
    symlink("gone/new.txt", session.path("dangling.txt")).unwrap();
    for (name, reads, edits, writes) in [
        ("folder", FailureKind::NotAFile, FailureKind::NotAFile, Some(FailureKind::NotAFile)),
        ("absolute.txt", FailureKind::Denied, FailureKind::Denied, Some(FailureKind::Denied)),
        ("relative.txt", FailureKind::Denied, FailureKind::Denied, Some(FailureKind::Denied)),
        ("way/secret.txt", FailureKind::Denied, FailureKind::Denied, Some(FailureKind::Denied)),
        ("pipe", FailureKind::NotAFile, FailureKind::NotAFile, Some(FailureKind::NotAFile)),
        ("large.txt", FailureKind::TooLarge, FailureKind::TooLarge, Some(FailureKind::TooLarge)),
        ("dangling.txt", FailureKind::NotFound, FailureKind::NotFound, Some(FailureKind::NotFound)),
        ("binary", FailureKind::NotText, FailureKind::NotText, None),
        ("latin1.txt", FailureKind::NotText, FailureKind::NotText, None),
    ] {
        // The editor has a text for it, which must not be used.
        session.open(name, "one");
        assert_eq!(session.read(name).unwrap_err().kind, reads, "{name}");
        assert_eq!(session.edit(name, "one", "two").unwrap_err().kind, edits, "{name}");
        assert_eq!(session.write(name, "two").err().map(|failure| failure.kind), writes, "{name}");
        assert_eq!(session.messages(), [""; 0], "{name}");
    }
    assert_eq!(session.on_disk("binary").unwrap(), "two", "overwritten as on disk");
}

#[test]
fn errors_of_editors_and_what_they_mean() {
    let refused = |words: &str| MessageError::Refused(words.into());
    for (code, words, expected) in [
        (-32601, "Method not found", MessageError::UnknownMethod),
        (-32002, "Resource not found", MessageError::NoSuchFile),
        (-32603, "No such file or directory (os error 2)", MessageError::NoSuchFile),
        (-32603, "ENOENT: no such file or directory", MessageError::NoSuchFile),
        (-32000, "File not found: /a", MessageError::NoSuchFile),
        (-32602, "The path does not exist", MessageError::NoSuchFile),
        (-32602, "Session not found", refused("Session not found")),
        (-32603, "not now", refused("not now")),
    ] {
        assert_eq!(MessageError::from_json_rpc(code, words), expected, "{words}");
    }
}
