//! Tests of a command that changes the file on disk while the editor still shows the old text.

use std::time::{Duration, Instant, SystemTime};

use files::{Call, Hash, Store as _};
use serde_json::json;
use tools::FailureKind;

use super::{super::MessageError, Session, edits, notes};

/// Makes a session in which both places had `old`, and then a command wrote `new` to the disk.
fn changed_by_a_command() -> Session {
    let session = Session::new();
    session.open("a.txt", "old\n");
    let command = session.store.command_periods.start();
    session.save("a.txt", "new\n");
    drop(command);
    session
}

/// Sets the modification time of a file.
fn date(session: &Session, name: &str, modified: SystemTime) {
    let file = std::fs::File::options().write(true).open(session.path(name)).unwrap();
    file.set_modified(modified).unwrap();
}

fn long_ago() -> SystemTime {
    SystemTime::now() - Duration::from_hours(1)
}

#[test]
fn a_read_says_that_the_text_is_older_than_the_file() {
    let session = changed_by_a_command();
    for _ in 0..2 {
        let reply = session.read("a.txt").unwrap();
        assert_eq!(reply.blocks[0].to_string(), "old\n");
        assert_eq!(reply.hash, Some(Hash::of(b"old\n")));
        let [note] = &notes(&reply)[..] else { panic!("one note") };
        assert!(note.contains("older text") && note.contains("reload"), "{note}");
    }
    // The editor was asked again and given time to reload once, not every time.
    assert_eq!(session.messages().len(), 1 + 10 + 1);
    // After it was told once, the buffer is edited and the disk is not.
    session.edit("a.txt", "old", "edited").unwrap();
    assert_eq!(session.buffer("a.txt").unwrap(), "edited\n");
    assert_eq!(session.on_disk("a.txt").unwrap(), "new\n");
    assert_eq!(notes(&session.read("a.txt").unwrap()), [""; 0]);
}

#[test]
fn an_edit_is_refused_once() {
    let write = |session: &Session| session.write("a.txt", "edited\n");
    let edit = |session: &Session| session.edit("a.txt", "old", "edited");
    let ways: [&dyn Fn(&Session) -> _; 2] = [&write, &edit];
    for change in ways {
        let session = changed_by_a_command();
        let failure = change(&session).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Stale);
        assert!(failure.message.starts_with("File changed since it was read: /"));
        assert_eq!(failure.current, Some(Hash::of(b"old\n")));
        let hint = failure.hint.unwrap();
        assert!(hint.contains("read the file again and then edit again"), "{hint}");
        assert_eq!(session.messages(), ["read a.txt"; 11], "nothing was written");
        change(&session).unwrap();
        assert_eq!(session.buffer("a.txt").unwrap(), "edited\n");
    }
}

#[test]
fn each_text_on_disk_is_told_once() {
    let session = changed_by_a_command();
    assert!(session.edit("a.txt", "old", "edited").is_err());
    session.save("a.txt", "newer\n");
    date(&session, "a.txt", long_ago());
    let failure = session.edit("a.txt", "old", "edited").unwrap_err();
    assert_eq!(failure.kind, FailureKind::Stale, "the disk changed, the buffer did not");
    session.edit("a.txt", "old", "edited").unwrap();
}

#[test]
fn a_rehearsal_is_refused_as_the_edit_would_be_and_then_the_edit_is_not() {
    let session = changed_by_a_command();
    let prepare = || session.prepare("multi_edit_text_file", "a.txt", edits("old", "edited"));
    let call = super::call();
    let refused = session.run(&call, |cx| prepare().rehearse(cx)).err().unwrap();
    assert_eq!(refused.kind, FailureKind::Stale);
    let digest = session.run(&call, |cx| prepare().rehearse(cx)).unwrap().digest;
    session.run(&call, |cx| prepare().run_approved(cx, &digest)).unwrap();
    assert_eq!(session.buffer("a.txt").unwrap(), "edited\n");
}

#[test]
fn an_editor_is_given_time_to_reload() {
    for reload_after in [1, 5, 10] {
        let session = changed_by_a_command();
        let path = session.path("a.txt");
        session.editor().person = Some(Box::new(move |count, buffers| {
            if count == reload_after {
                buffers.insert(path.clone(), "new\n".into());
            }
        }));
        let reply = session.edit("a.txt", "new", "edited").unwrap();
        assert_eq!(notes(&reply), [""; 0]);
        assert_eq!(session.buffer("a.txt").unwrap(), "edited\n");
        assert_eq!(session.messages().len(), reload_after + 1 + 3);
    }
}

#[test]
fn an_editor_that_goes_while_it_is_given_time_is_not_replaced_by_the_disk() {
    for error in [MessageError::Disconnected, MessageError::UnknownMethod] {
        let session = changed_by_a_command();
        session.editor().planned.insert(2, error);
        assert_eq!(session.write("a.txt", "edited\n").unwrap_err().kind, FailureKind::Denied);
        assert_eq!(session.on_disk("a.txt").unwrap(), "new\n");
    }
}

#[test]
fn a_file_that_is_just_being_saved_is_not_stale() {
    let session = Session::new();
    session.save("a.txt", "old\n");
    session.open("a.txt", "old\n");
    session.edit("a.txt", "old", "new").unwrap();
    // The editor is saving, and is halfway through.
    session.save("a.txt", "ne");
    let path = session.path("a.txt");
    session.editor().person = Some(Box::new(move |count, _| {
        if count == 6 {
            std::fs::write(&path, "new\n").unwrap();
        }
    }));
    assert_eq!(notes(&session.read("a.txt").unwrap()), [""; 0]);
}

#[test]
fn a_disk_that_changes_between_two_calls_is_noticed_without_a_command() {
    let session = Session::new();
    session.save("a.txt", "old\n");
    session.open("a.txt", "old\n");
    assert_eq!(notes(&session.read("a.txt").unwrap()), [""; 0]);
    session.save("a.txt", "new\n");
    assert_eq!(session.edit("a.txt", "old", "edited").unwrap_err().kind, FailureKind::Stale);
    session.edit("a.txt", "old", "edited").unwrap();
}

#[test]
fn whoever_has_not_saved_yet_is_left_alone() {
    let session = Session::new();
    session.save("a.txt", "one\n");
    date(&session, "a.txt", long_ago());
    session.open("a.txt", "one\ntyped\n");
    let _command = session.store.command_periods.start();
    let quiet = |text: &str| {
        let reply = session.read("a.txt").unwrap();
        assert_eq!((reply.blocks[0].to_string().as_str(), notes(&reply).len()), (text, 0));
    };
    quiet("one\ntyped\n");
    session.edit("a.txt", "one", "1").unwrap();
    // The editor saves its text while a command runs, and the person types on.
    session.save("a.txt", "1\ntyped\n");
    session.open("a.txt", "1\ntyped\nmore\n");
    quiet("1\ntyped\nmore\n");
    // The person saves, and types on.
    session.save("a.txt", "1\ntyped\nmore\n");
    session.open("a.txt", "1\ntyped\nmore\nand more\n");
    quiet("1\ntyped\nmore\nand more\n");
    session.edit("a.txt", "1", "one").unwrap();
    // A command touches the file without changing its contents.
    date(&session, "a.txt", long_ago() + Duration::from_secs(1));
    quiet("one\ntyped\nmore\nand more\n");
    assert_eq!(session.messages().len(), 1 + 4 + 1 + 1 + 4 + 1, "and nobody waits");
}

#[test]
fn a_call_that_is_taken_back_or_late_does_not_wait_for_the_editor() {
    let session = changed_by_a_command();
    let taken_back = super::call();
    let (cancel, at) = (taken_back.cancel.clone(), session.at("a.txt"));
    session.editor().person = Some(Box::new(move |count, _| {
        if count == 3 {
            cancel.set();
        }
    }));
    assert!(matches!(session.store.read(&at, &taken_back), Err(files::StoreError::Cancelled)));
    assert_eq!(session.messages().len(), 3);
    let late = Call::until(Instant::now());
    assert!(matches!(session.store.read(&at, &late), Err(files::StoreError::TimedOut)));
    // The agent was not told yet.
    session.editor().person = None;
    let dry_run = json!({ "content": "x", "dry_run": true });
    assert_eq!(
        session.call("write_text_file", "a.txt", dry_run).unwrap_err().kind,
        FailureKind::Stale
    );
}
