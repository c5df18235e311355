//! Requirements of every store, checked against each of them.

use std::{
    ops::ControlFlow,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use crate::common::{Disk, MAX, append, at, call, call_for};
use files::{
    Change, DirPath, FaultyStore, FilePath, Hash, MemoryStore, Root, Saved, Stamp, Step, Stop,
    Store, StoreError, UpdateError, Updater, Version,
};

/// Writes a file by its path.
type Put = dyn Fn(&str, &str);

/// A store, and a way around it for an outsider who takes no lock.
struct Subject {
    store: Arc<dyn Store>,
    put: Box<Put>,
}

impl Subject {
    fn text(&self, name: &str) -> Option<String> {
        let version = self.store.read(&at(name), &call()).unwrap();
        version.map(|version| text_of(&version))
    }

    fn write(&self, name: &str, text: &str) -> Result<Saved, StoreError> {
        self.change(name, &Change::write(text))
    }

    fn change(&self, name: &str, change: &Change) -> Result<Saved, StoreError> {
        let saved = self.store.update(&[at(name)], &call(), &mut |_| Ok(vec![change.clone()]))?;
        Ok(saved.into_iter().next().unwrap())
    }

    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let each = &mut |entry: files::Entry| {
            names.push(entry.name.into_string().unwrap());
            ControlFlow::Continue(())
        };
        self.store.list(&DirPath::root(), &call(), each).unwrap();
        names.sort();
        names
    }
}

fn text_of(version: &Version) -> String {
    String::from_utf8(version.bytes.to_vec()).unwrap()
}

/// A file by its path below the root; the rules are the same in every root.
fn below(path: &str) -> FilePath {
    let root = std::env::temp_dir();
    Root::open(&root).unwrap().absolute(root.join(path).to_str().unwrap()).unwrap()
}

/// Writes a file, and makes the folders it is in.
fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn on_disk(disk: Disk) -> Subject {
    let dir = disk.dir;
    Subject {
        store: Arc::new(disk.store),
        put: Box::new(move |path, text| put(dir.path(), path, text)),
    }
}

fn in_memory() -> Subject {
    let store = Arc::new(MemoryStore::new(MAX));
    let outside = Arc::clone(&store);
    Subject { store, put: Box::new(move |path, text| outside.put(&below(path), text)) }
}

/// Faults that are never due change nothing.
fn faulty_in_memory() -> Subject {
    let store = Arc::new(FaultyStore::new(MemoryStore::new(MAX)));
    for step in [Step::Read, Step::List, Step::Update, Step::Publish] {
        store.fail(step, usize::MAX, StoreError::DiskFull);
    }
    let outside = Arc::clone(&store);
    let put = move |path: &str, text: &str| outside.inner().put(&below(path), text);
    Subject { store, put: Box::new(put) }
}

fn faulty_on_disk() -> Subject {
    let Disk { dir, store } = Disk::new();
    Subject {
        store: Arc::new(FaultyStore::new(store)),
        put: Box::new(move |path, text| put(dir.path(), path, text)),
    }
}

macro_rules! suite {
    ($($case:ident)*) => {
        suite!(@store disk, on_disk(Disk::new()), $($case)*);
        suite!(@store disk_with_named_temp_files, on_disk(Disk::with_named_temp_files()), $($case)*);
        suite!(@store memory, in_memory(), $($case)*);
        suite!(@store faulty_memory, faulty_in_memory(), $($case)*);
        suite!(@store faulty_disk, faulty_on_disk(), $($case)*);
    };
    (@store $store:ident, $make:expr, $($case:ident)*) => {
        mod $store {
            use super::*;
            $(#[test] fn $case() { super::$case(&$make); })*
        }
    };
}

suite! {
    a_missing_file_is_none
    writing_creates_once
    an_edit_sees_what_was_there
    a_look_sees_what_was_there
    an_empty_file_is_not_a_missing_one
    a_change_that_gives_up_leaves_everything
    a_late_or_cancelled_call_leaves_everything
    cancelling_during_the_change_leaves_everything
    a_stop_does_not_hold_up_a_free_lock
    an_outsider_is_noticed_before_publishing
    an_outsider_who_creates_the_file_first_is_noticed
    several_files_at_once
    several_files_or_none
    one_path_given_twice_is_one_file
    threads_lose_nothing
    a_stamp_is_that_of_what_was_saved
    keeping_touches_nothing
    writing_the_same_bytes_touches_nothing
    sizes_are_checked_both_ways
    a_stage_gives_back_the_callers_own_values
    removing
    removing_one_of_several_files
    the_list_has_every_file
    a_list_can_be_cut_short
    a_walk_has_every_file_in_the_order_of_their_paths
    a_walk_goes_on_after_any_path
    a_walk_can_be_cut_short
}

fn a_missing_file_is_none(subject: &Subject) {
    assert_eq!(subject.text("a"), None);
    assert_eq!(subject.names(), [""; 0]);
}

fn writing_creates_once(subject: &Subject) {
    let first = subject.write("a", "one\n").unwrap();
    assert!(first.created);
    assert_eq!(first.links, 0);
    assert_eq!(subject.text("a").unwrap(), "one\n");
    let second = subject.write("a", "two\n").unwrap();
    assert!(!second.created);
    assert_ne!(second.stamp, first.stamp);
    assert_eq!(subject.text("a").unwrap(), "two\n");
}

fn a_stamp_is_that_of_what_was_saved(subject: &Subject) {
    for text in ["one", "two", ""] {
        let saved = subject.write("a", text).unwrap();
        assert!(!saved.is_contested());
        assert_ne!(saved.stamp, Stamp::MISSING);
        assert_eq!(subject.store.read(&at("a"), &call()).unwrap().unwrap().stamp, saved.stamp);
    }
}

fn an_edit_sees_what_was_there(subject: &Subject) {
    (subject.put)("a", "one ");
    append(&*subject.store, &at("a"), "two", &call()).unwrap();
    assert_eq!(subject.text("a").unwrap(), "one two");
}

fn a_look_sees_what_was_there(subject: &Subject) {
    let look = || subject.store.read_for_update(&at("a"), &call()).unwrap();
    assert!(look().is_none());
    (subject.put)("a", "one");
    assert_eq!(text_of(&look().unwrap()), "one");
}

fn keeping_touches_nothing(subject: &Subject) {
    (subject.put)("a", "one");
    let before = subject.store.read(&at("a"), &call()).unwrap().unwrap().stamp;
    let saved = subject.change("a", &Change::Keep).unwrap();
    assert_eq!(saved, Saved::kept(before));
    assert_eq!(subject.store.read(&at("a"), &call()).unwrap().unwrap().stamp, before);

    let missing = subject.change("b", &Change::Keep).unwrap();
    assert_eq!((missing.created, missing.stamp), (false, Stamp::MISSING));
    assert_eq!(subject.names(), ["a"]);
}

fn writing_the_same_bytes_touches_nothing(subject: &Subject) {
    (subject.put)("a", "one");
    let before = subject.store.read(&at("a"), &call()).unwrap().unwrap().stamp;
    assert_eq!(subject.write("a", "one").unwrap().stamp, before);
    assert_eq!(subject.store.read(&at("a"), &call()).unwrap().unwrap().stamp, before);
}

fn an_empty_file_is_not_a_missing_one(subject: &Subject) {
    assert!(subject.write("a", "").unwrap().created);
    assert_eq!(subject.text("a").unwrap(), "");
    assert!(!subject.write("a", "").unwrap().created);
    assert!(!subject.write("a", "x").unwrap().created);
}

fn removing(subject: &Subject) {
    (subject.put)("a", "one");
    assert_eq!(subject.change("a", &Change::Remove).unwrap().stamp, Stamp::MISSING);
    assert_eq!(subject.text("a"), None);
    assert_eq!(subject.change("a", &Change::Remove).unwrap().stamp, Stamp::MISSING);
    assert!(subject.write("a", "again").unwrap().created);
}

fn a_change_that_gives_up_leaves_everything(subject: &Subject) {
    (subject.put)("a", "one");
    let outcome = subject.store.update(&[at("a"), at("b")], &call(), &mut |_| Err(Stop));
    assert!(matches!(outcome, Err(StoreError::Stopped)));
    assert_eq!(subject.text("a").unwrap(), "one");
    assert_eq!(subject.names(), ["a"]);
}

fn sizes_are_checked_both_ways(subject: &Subject) {
    let (max, more) = (usize::try_from(MAX).unwrap(), usize::try_from(MAX).unwrap() + 1);
    subject.write("a", &"x".repeat(max)).unwrap();
    assert_eq!(subject.text("a").unwrap().len(), max);
    let too_large = |outcome: Result<(), StoreError>| {
        assert!(
            matches!(outcome, Err(StoreError::TooLarge { size: 1001, max: MAX })),
            "{outcome:?}"
        );
    };
    too_large(subject.write("a", &"x".repeat(more)).map(drop));
    too_large(subject.write("b", &"x".repeat(more)).map(drop));
    assert_eq!(subject.text("a").unwrap().len(), max);
    assert_eq!(subject.names(), ["a"]);
    (subject.put)("c", &"x".repeat(more));
    too_large(subject.store.read(&at("c"), &call()).map(drop));
    too_large(subject.write("c", "short").map(drop));
}

fn a_late_or_cancelled_call_leaves_everything(subject: &Subject) {
    (subject.put)("a", "one");
    let late = call_for(Duration::ZERO);
    assert!(matches!(append(&*subject.store, &at("a"), "two", &late), Err(StoreError::TimedOut)));
    assert!(matches!(subject.store.read(&at("a"), &late), Err(StoreError::TimedOut)));
    let cancelled = call();
    cancelled.cancel.set();
    assert!(matches!(
        append(&*subject.store, &at("a"), "two", &cancelled),
        Err(StoreError::Cancelled)
    ));
    assert_eq!(subject.text("a").unwrap(), "one");
}

fn cancelling_during_the_change_leaves_everything(subject: &Subject) {
    (subject.put)("a", "one");
    for name in ["a", "new"] {
        let cancelled = call();
        let outcome = subject.store.update(&[at(name)], &cancelled, &mut |_| {
            cancelled.cancel.set();
            Ok(vec![Change::write(b"two")])
        });
        assert!(matches!(outcome, Err(StoreError::Cancelled)));

        let late = call_for(Duration::from_millis(30));
        let outcome = subject.store.update(&[at(name)], &late, &mut |_| {
            thread::sleep(Duration::from_millis(40));
            Ok(vec![Change::write(b"two")])
        });
        assert!(matches!(outcome, Err(StoreError::TimedOut)));
    }
    assert_eq!(subject.text("a").unwrap(), "one");
    assert_eq!(subject.names(), ["a"]);
}

fn a_stop_does_not_hold_up_a_free_lock(subject: &Subject) {
    let stopping = call();
    stopping.stop.set();
    append(&*subject.store, &at("a"), "one", &stopping).unwrap();
    append(&*subject.store, &at("a"), " two", &stopping).unwrap();
    assert_eq!(subject.text("a").unwrap(), "one two");
}

fn an_outsider_is_noticed_before_publishing(subject: &Subject) {
    (subject.put)("a", "one");
    let mut seen = Vec::new();
    let saved = subject.store.update(&[at("a")], &call(), &mut |versions| {
        let text = text_of(versions[0].as_ref().unwrap());
        if seen.is_empty() {
            (subject.put)("a", "outside");
        }
        seen.push(text.clone());
        Ok(vec![Change::write(format!("{text}!").into_bytes())])
    });
    assert!(!saved.unwrap()[0].created);
    seen.dedup();
    assert_eq!(seen, ["one", "outside"]);
    assert_eq!(subject.text("a").unwrap(), "outside!");
    assert_eq!(subject.names(), ["a"]);
}

fn an_outsider_who_creates_the_file_first_is_noticed(subject: &Subject) {
    let mut seen = Vec::new();
    let saved = subject.store.update(&[at("a")], &call(), &mut |versions| {
        let text = versions[0].as_ref().map(text_of);
        if seen.is_empty() {
            (subject.put)("a", "outside");
        }
        seen.push(text.clone());
        Ok(vec![Change::write(text.map_or("new".into(), |text| format!("{text}!").into_bytes()))])
    });
    assert!(!saved.unwrap()[0].created, "the outsider made it");
    seen.dedup();
    assert_eq!(seen, [None, Some("outside".into())]);
    assert_eq!(subject.text("a").unwrap(), "outside!");
    assert_eq!(subject.names(), ["a"]);
}

fn several_files_at_once(subject: &Subject) {
    (subject.put)("a", "one");
    (subject.put)("b", "two");
    (subject.put)("c", "three");
    let paths = ["c", "new", "a", "b"].map(at);
    let saved = subject.store.update(&paths, &call(), &mut |versions| {
        let texts: Vec<_> = versions.iter().map(|one| one.as_ref().map(text_of)).collect();
        let found = ["three", "", "one", "two"].map(|text| (!text.is_empty()).then(|| text.into()));
        assert_eq!(texts, found);
        let write = |text: &str| Change::write(text);
        Ok(vec![write("THREE"), write("NEW"), Change::Keep, write("TWO")])
    });
    let created: Vec<_> = saved.unwrap().into_iter().map(|saved| saved.created).collect();
    assert_eq!(created, [false, true, false, false]);
    assert_eq!(subject.names(), ["a", "b", "c", "new"]);
    let texts = ["a", "b", "c", "new"].map(|name| subject.text(name).unwrap());
    assert_eq!(texts, ["one", "TWO", "THREE", "NEW"]);
}

fn removing_one_of_several_files(subject: &Subject) {
    (subject.put)("a", "one");
    (subject.put)("b", "two");
    let saved = subject.store.update(&[at("b"), at("a")], &call(), &mut |_| {
        Ok(vec![Change::Remove, Change::write(b"ONE")])
    });
    assert_eq!(saved.unwrap()[0].stamp, Stamp::MISSING);
    assert_eq!(subject.names(), ["a"]);
    assert_eq!(subject.text("a").unwrap(), "ONE");
}

fn several_files_or_none(subject: &Subject) {
    (subject.put)("a", "one");
    let outcome = subject.store.update(&[at("a"), at("b")], &call(), &mut |_| {
        Ok(vec![Change::write(b"two"), Change::write("x".repeat(2000))])
    });
    assert!(matches!(outcome, Err(StoreError::TooLarge { size: 2000, max: MAX })));
    assert_eq!(subject.text("a").unwrap(), "one");
    assert_eq!(subject.names(), ["a"]);
}

fn one_path_given_twice_is_one_file(subject: &Subject) {
    (subject.put)("a", "one");
    let write = |text: &str| Change::write(text);
    let update = |changes: [Change; 2]| {
        subject.store.update(&[at("a"), at("a")], &call(), &mut |versions| {
            let [one, other] = versions else { panic!("two paths") };
            assert_eq!(one.as_ref().unwrap().stamp, other.as_ref().unwrap().stamp);
            Ok(changes.to_vec())
        })
    };
    update([Change::Keep, write("two")]).unwrap();
    assert_eq!(subject.text("a").unwrap(), "two");
    let saved = update([write("three"), write("three")]).unwrap();
    assert_eq!(saved[0].stamp, saved[1].stamp);
    assert_eq!(subject.text("a").unwrap(), "three");
}

fn the_list_has_every_file(subject: &Subject) {
    for name in ["b", "a", ".hidden", "c.txt"] {
        (subject.put)(name, name);
    }
    assert_eq!(subject.names(), [".hidden", "a", "b", "c.txt"]);
    let each = &mut |entry: files::Entry| {
        let name = entry.name.into_string().unwrap();
        let version = subject.store.read(&at(&name), &call()).unwrap().unwrap();
        assert_eq!(entry.size, name.len() as u64);
        assert_eq!(entry.stamp, version.stamp);
        assert!(entry.modified.elapsed().unwrap() < Duration::from_mins(1));
        ControlFlow::Continue(())
    };
    subject.store.list(&DirPath::root(), &call(), each).unwrap();
}

fn a_list_can_be_cut_short(subject: &Subject) {
    (subject.put)("a", "");
    (subject.put)("b", "");
    let mut count = 0;
    let each = &mut |_| {
        count += 1;
        ControlFlow::Break(())
    };
    subject.store.list(&DirPath::root(), &call(), each).unwrap();
    assert_eq!(count, 1);
    let late = call_for(Duration::ZERO);
    assert!(matches!(
        subject.store.list(&DirPath::root(), &late, &mut |_| unreachable!()),
        Err(StoreError::TimedOut)
    ));
}

/// Where folders, and what begins like them, come in between.
const TREE: [&str; 10] =
    ["-", "a", "a b", "a-b/c", "a.txt", "b", "b!", "b-/z", "b0", "ba/a/b/\u{10ffff} ä"];
const HIDDEN: [&str; 5] = [".h", ".d/x", "b-/.h", "ba/.a/b", "a\nb"];

fn walk(subject: &Subject, after: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let each = &mut |entry: files::Entry| {
        paths.push(entry.name.into_string().unwrap());
        ControlFlow::Continue(())
    };
    subject.store.walk(after, &call(), each).unwrap();
    paths
}

fn a_walk_has_every_file_in_the_order_of_their_paths(subject: &Subject) {
    assert_eq!(walk(subject, ""), [""; 0]);
    for path in TREE.iter().rev().chain(&HIDDEN) {
        (subject.put)(path, path);
    }
    assert_eq!(walk(subject, ""), TREE);
    let each = &mut |entry: files::Entry| {
        assert_eq!(entry.size, entry.name.len() as u64);
        let version = subject.store.read(&below(entry.name.to_str().unwrap()), &call());
        assert_eq!(entry.stamp, version.unwrap().unwrap().stamp);
        assert!(entry.modified.elapsed().unwrap() < Duration::from_mins(1));
        ControlFlow::Continue(())
    };
    subject.store.walk("", &call(), each).unwrap();
}

fn a_walk_goes_on_after_any_path(subject: &Subject) {
    for path in TREE.iter().chain(&HIDDEN) {
        (subject.put)(path, path);
    }
    let others =
        ["", " ", "a-b", "a-b/", "a-b/c/d", "a/b", "b-/", "ba/a/", "ba/a/b", "ba/b", "\u{7f}"];
    for after in TREE.iter().chain(&HIDDEN).chain(&others) {
        let expected: Vec<_> = TREE.iter().filter(|path| path > &after).copied().collect();
        assert_eq!(walk(subject, after), expected, "{after:?}");
    }
}

fn a_walk_can_be_cut_short(subject: &Subject) {
    for path in TREE {
        (subject.put)(path, "");
    }
    for most in 1..=TREE.len() {
        let mut count = 0;
        let each = &mut |_| {
            count += 1;
            if count < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        subject.store.walk("", &call(), each).unwrap();
        assert_eq!(count, most);
    }
    let late = call_for(Duration::ZERO);
    let walked = subject.store.walk("", &late, &mut |_| unreachable!());
    assert!(matches!(walked, Err(StoreError::TimedOut)));
}

fn a_stage_gives_back_the_callers_own_values(subject: &Subject) {
    let updater = Updater::new(&*subject.store);
    let edit = |expected: Option<Hash>| {
        updater.update_one(&at("a"), &call(), |version| {
            let hash = version.map(|version| Hash::of(&version.bytes));
            if hash == expected { Ok((Change::write(b"one"), "done")) } else { Err("stale") }
        })
    };
    let (saved, value) = edit(None).unwrap();
    assert!(saved.created && value == "done");
    assert!(matches!(edit(None), Err(UpdateError::Change("stale"))));
    edit(Some(Hash::of(b"one"))).unwrap();
    assert_eq!(subject.text("a").unwrap(), "one");

    let late = call_for(Duration::ZERO);
    let outcome = updater.update_one(&at("a"), &late, |_| Ok::<_, ()>((Change::Keep, ())));
    assert!(matches!(outcome, Err(UpdateError::Store(StoreError::TimedOut))));
}

fn threads_lose_nothing(subject: &Subject) {
    const THREADS: usize = 4;
    const EDITS: usize = 50;
    let created = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, created) = (&*subject.store, &created);
            scope.spawn(move || {
                for _ in 0..EDITS {
                    let saved = append(store, &at("a"), &thread.to_string(), &call()).unwrap();
                    created.fetch_add(usize::from(saved.created), Ordering::Relaxed);
                }
            });
        }
    });
    let text = subject.text("a").unwrap();
    for thread in 0..THREADS {
        assert_eq!(text.matches(&thread.to_string()).count(), EDITS);
    }
    assert_eq!(created.into_inner(), 1, "exactly one call created it");
    assert_eq!(subject.names(), ["a"], "nothing is left over");
}

fn faulty_with(name: &FilePath, text: &str) -> FaultyStore<MemoryStore> {
    let store = MemoryStore::new(MAX);
    store.put(name, text);
    FaultyStore::new(store)
}

#[test]
fn planned_faults_come_once_and_leave_the_file() {
    let a = at("a");
    for step in [Step::Update, Step::Publish] {
        let store = faulty_with(&a, "one");
        store.fail(step, 1, StoreError::DiskFull);
        append(&store, &a, " two", &call()).unwrap();
        assert!(
            matches!(append(&store, &a, " lost", &call()), Err(StoreError::DiskFull)),
            "{step:?}"
        );
        append(&store, &a, " three", &call()).unwrap();
        assert_eq!(**store.read(&a, &call()).unwrap().unwrap().bytes, *b"one two three");
    }
    let store = faulty_with(&a, "one");
    store.fail(Step::Read, 0, StoreError::ReadOnly);
    store.fail(Step::List, 0, StoreError::TimedOut);
    assert!(matches!(store.read(&a, &call()), Err(StoreError::ReadOnly)));
    store.read(&a, &call()).unwrap();
    assert!(matches!(
        store.list(&DirPath::root(), &call(), &mut |_| unreachable!()),
        Err(StoreError::TimedOut)
    ));
}

#[test]
fn a_planned_outsider_makes_the_change_run_again() {
    let a = at("a");
    let store = faulty_with(&a, "one");
    store.interfere(Step::Publish, 0, |inner| inner.put(&at("a"), "outside"));
    append(&store, &a, "!", &call()).unwrap();
    assert_eq!(**store.read(&a, &call()).unwrap().unwrap().bytes, *b"outside!");
}
