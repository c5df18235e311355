//! Folders made for a new file, and taken back when it is not written after all.

use std::{
    cell::Cell,
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use crate::common::{Disk, MAX, at, call, call_for};
use files::{
    Change, Durability, FaultyStore, FilePath, MissingFolders, Root, Saved, Step, Store,
    StoreError, UpdateError, Updater, Version,
};

/// The file `below` a folder.
fn file(dir: &Path, below: &str) -> FilePath {
    let root = Root::open(dir).unwrap();
    root.absolute(dir.join(below).to_str().unwrap()).unwrap()
}

fn write(text: &str) -> Change {
    Change::write(text)
}

/// Changes a file, making the folders it is in.
fn change(
    store: &dyn Store,
    at: &FilePath,
    mut change: impl FnMut(Option<&Version>) -> Result<Change, &'static str>,
) -> Result<Saved, UpdateError<&'static str>> {
    let updater = Updater::new(store).with_missing_folders(MissingFolders::Create);
    updater.update_one(at, &call(), |version| Ok((change(version)?, ()))).map(|(saved, ())| saved)
}

/// `text` at the end of the file `below` the root of `disk`.
fn append(disk: &Disk, below: &str, text: &str) -> Result<Saved, UpdateError<&'static str>> {
    change(&disk.store, &file(disk.dir.path(), below), |version| {
        let old = version.map(|version| version.bytes.to_vec()).unwrap_or_default();
        Ok(Change::write([&old, text.as_bytes()].concat()))
    })
}

fn is_no_folder<T>(outcome: &Result<T, UpdateError<&'static str>>) -> bool {
    matches!(outcome, Err(UpdateError::Store(StoreError::NoFolder)))
}

fn is_denied<T>(outcome: &Result<T, UpdateError<&'static str>>) -> bool {
    matches!(outcome, Err(UpdateError::Store(StoreError::Denied { reason: Some(_) })))
}

// --- made

#[test]
fn folders_are_made_for_a_new_file() {
    for disk in [Disk::new(), Disk::with_named_temp_files()] {
        for below in ["sub/a", "x/y/z/a", "x/other/a", "grün/日本 語/🦀", " / /a", "./p/./q//a"]
        {
            assert!(append(&disk, below, "one").unwrap().created, "{below}");
            assert!(!append(&disk, below, " two").unwrap().created, "{below}");
            assert_eq!(disk.text(below), "one two", "{below}");
        }
        assert_eq!(disk.names("."), [" ", "grün", "p", "sub", "x"]);
        assert_eq!(disk.names("x"), ["other", "y"]);
    }
}

#[test]
fn folders_are_made_whatever_the_durability() {
    for durability in [Durability::None, Durability::Data, Durability::Full] {
        let disk = Disk::new();
        let store = crate::common::open_with(disk.dir.path(), durability);
        change(&store, &file(disk.dir.path(), "x/y/a"), |_| Ok(write("one"))).unwrap();
        assert_eq!(disk.text("x/y/a"), "one");
    }
}

#[test]
fn a_made_folder_has_the_mode_every_new_folder_has() {
    let disk = Disk::new();
    append(&disk, "ours/inner/a", "one").unwrap();
    fs::create_dir(disk.dir.path().join("theirs")).unwrap();
    let mode = |name| fs::metadata(disk.dir.path().join(name)).unwrap().mode();
    assert_eq!((mode("ours"), mode("ours/inner")), (mode("theirs"), mode("theirs")));
}

#[test]
fn a_folder_is_made_behind_a_link_inside() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    fs::create_dir_all(dir.join("far/away")).unwrap();
    symlink("far/away", dir.join("link")).unwrap();
    append(&disk, "link/sub/a", "one").unwrap();
    assert_eq!(disk.text("far/away/sub/a"), "one");
    // `link/..` is `far`.
    append(&disk, "link/../near/a", "two").unwrap();
    assert_eq!(disk.text("far/near/a"), "two");
    assert_eq!(disk.names("."), ["far", "link"]);
    assert!(fs::symlink_metadata(dir.join("link")).unwrap().is_symlink());
}

#[test]
fn two_dots_in_the_path_make_no_more_than_what_it_names() {
    let disk = Disk::new();
    append(&disk, "x/../y/a", "one").unwrap();
    assert_eq!(disk.text("y/a"), "one");
    assert_eq!(disk.names("."), ["x", "y"], "the system finds no way through what is missing");
    append(&disk, "x/z/../../w/a", "one").unwrap();
    assert_eq!(disk.text("w/a"), "one");
    let outcome =
        change(&disk.store, &file(disk.dir.path(), "p/../q/a"), |_| Ok(write(&"x".repeat(2000))));
    assert!(matches!(outcome, Err(UpdateError::Store(StoreError::TooLarge { .. }))));
    assert_eq!(disk.names("."), ["w", "x", "y"], "and is taken back with the rest");
}

// --- not made

#[test]
fn a_missing_folder_is_refused_unless_it_is_to_be_made() {
    let disk = Disk::new();
    let path = file(disk.dir.path(), "sub/a");
    let updater = Updater::new(&disk.store);
    for updater in [updater, updater.with_missing_folders(MissingFolders::Refuse)] {
        let outcome =
            updater.update_one(&path, &call(), |_| -> Result<_, &'static str> { unreachable!() });
        assert!(is_no_folder::<(Saved, ())>(&outcome));
    }
    assert_eq!(disk.names("."), [""; 0]);
}

#[test]
fn a_file_in_a_missing_folder_reads_as_missing() {
    let disk = Disk::new();
    disk.put("file", "");
    for below in ["sub/a", "sub/deep/a", "file/a", "file/sub/a"] {
        let path = file(disk.dir.path(), below);
        assert!(disk.store.read(&path, &call()).unwrap().is_none(), "{below}");
    }
    assert_eq!(disk.names("."), ["file"]);
}

#[test]
fn no_folder_is_made_for_a_change_that_writes_nothing() {
    let disk = Disk::new();
    let path = file(disk.dir.path(), "x/y/a");
    let missing = |version: Option<&Version>| assert!(version.is_none());
    let outcome = change(&disk.store, &path, |version| {
        missing(version);
        Err("not found")
    });
    assert!(matches!(outcome, Err(UpdateError::Change("not found"))));
    for keep in [Change::Keep, Change::Remove] {
        let saved = change(&disk.store, &path, |version| {
            missing(version);
            Ok(keep.clone())
        });
        assert!(!saved.unwrap().created);
    }
    assert_eq!(disk.names("."), [""; 0]);
}

#[test]
fn no_folder_is_made_for_a_call_that_is_late_or_taken_back() {
    let disk = Disk::new();
    let path = file(disk.dir.path(), "x/y/a");
    let updater = Updater::new(&disk.store).with_missing_folders(MissingFolders::Create);
    let late = call_for(Duration::ZERO);
    let cancelled = call();
    let runs = Cell::new(0);
    let outcome = updater.update_one(&path, &late, |_| Ok::<_, ()>((write("one"), ())));
    assert!(matches!(outcome, Err(UpdateError::Store(StoreError::TimedOut))));
    let outcome = updater.update_one(&path, &cancelled, |_| {
        runs.set(runs.get() + 1);
        cancelled.cancel.set();
        Ok::<_, ()>((write("one"), ()))
    });
    assert!(matches!(outcome, Err(UpdateError::Store(StoreError::Cancelled))));
    assert_eq!(runs.get(), 1, "before any folder was made");
    assert_eq!(disk.names("."), [""; 0]);
}

#[test]
fn what_is_in_the_way_of_a_folder_stays_there() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    disk.put("file", "text");
    symlink("file", dir.join("to-file")).unwrap();
    symlink("nowhere", dir.join("dangling")).unwrap();
    symlink("nowhere/a", dir.join("into-nowhere")).unwrap();
    for below in [
        "file/a",
        "file/x/a",
        "file/x/y/a",
        "to-file/a",
        "to-file/x/a",
        "dangling/a",
        "dangling/x/a",
        "into-nowhere",
    ] {
        let outcome = append(&disk, below, "one");
        assert!(is_no_folder(&outcome), "{below}: {outcome:?}");
    }
    // A call that writes nothing fails too, but only if something is in the way.
    for (below, is_blocked) in [("file/a", true), ("file/x/a", true), ("other/file/a", false)] {
        let path = file(dir, below);
        let outcome = change(&disk.store, &path, |_| Ok(Change::Keep));
        assert_eq!(is_no_folder(&outcome), is_blocked, "{below}: {outcome:?}");
    }
    // Folders that were made on the way are removed again.
    fs::create_dir(dir.join("sub")).unwrap();
    let outcome = append(&disk, "new/../file/x/a", "one");
    assert!(is_no_folder(&outcome), "{outcome:?}");
    assert_eq!(disk.names("."), ["dangling", "file", "into-nowhere", "sub", "to-file"]);
    assert_eq!(disk.text("file"), "text");
}

#[test]
fn no_folder_is_made_outside() {
    let outside = tempfile::tempdir().unwrap();
    let disk = Disk::new();
    let dir = disk.dir.path();
    let above = Path::new("..").join(outside.path().file_name().unwrap());
    fs::create_dir(dir.join("sub")).unwrap();
    for (link, target) in [
        ("absolute", outside.path()),
        ("relative", &above),
        ("dangling", &above.join("missing")),
        ("dangling-absolute", &outside.path().join("missing")),
        ("up", Path::new("..")),
        ("here", Path::new(".")),
        ("inside-absolute", &dir.join("sub")),
    ] {
        symlink(target, dir.join(link)).unwrap();
    }
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    for below in [
        "absolute/a",
        "absolute/x/a",
        "relative/a",
        "relative/x/y/a",
        "dangling/a",
        "dangling/x/a",
        "dangling-absolute/a",
        "dangling-absolute/x/a",
        "inside-absolute/x/a",
        &format!("up/{name}/x/a"),
        &format!("here/../{name}/x/a"),
        &format!("sub/../here/../{name}/x/a"),
    ] {
        let outcome = append(&disk, below, "one");
        assert!(is_denied(&outcome), "{below}: {outcome:?}");
    }
    // A folder is made, and then the way leads outside.
    let outcome = append(&disk, &format!("new/../here/../{name}/x/a"), "one");
    assert!(is_denied(&outcome), "{outcome:?}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(disk.names("sub"), [""; 0]);
    assert!(!disk.names(".").contains(&"new".into()));
}

// --- taken back

#[test]
fn folders_are_taken_back_when_the_file_cannot_be_written() {
    for disk in [Disk::new(), Disk::with_named_temp_files()] {
        fs::create_dir(disk.dir.path().join("old")).unwrap();
        for below in ["x/y/z/a", "old/x/a"] {
            let path = file(disk.dir.path(), below);
            let outcome = change(&disk.store, &path, |_| Ok(write(&"x".repeat(2000))));
            assert!(matches!(
                outcome,
                Err(UpdateError::Store(StoreError::TooLarge { size: 2000, max: MAX }))
            ));
            let runs = Cell::new(0);
            let outcome = change(&disk.store, &path, |_| {
                runs.set(runs.get() + 1);
                if runs.get() == 1 { Ok(write("one")) } else { Err("changed its mind") }
            });
            assert!(matches!(outcome, Err(UpdateError::Change("changed its mind"))));
        }
        assert_eq!(disk.names("."), ["old"], "what was there stays");
        assert_eq!(disk.names("old"), [""; 0]);
    }
}

#[test]
fn folders_are_taken_back_when_the_disk_is_full() {
    let Disk { dir, store } = Disk::new();
    let store = FaultyStore::new(store);
    let path = file(dir.path(), "x/y/a");
    store.fail(Step::Publish, 0, StoreError::DiskFull);
    let outcome = change(&store, &path, |_| Ok(write("one")));
    assert!(matches!(outcome, Err(UpdateError::Store(StoreError::DiskFull))));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(change(&store, &path, |_| Ok(write("one"))).unwrap().created);
}

#[test]
fn a_folder_that_is_moved_away_gets_nothing_more() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    fs::create_dir(dir.join("sub")).unwrap();
    disk.put("sub/a", "one");
    let runs = Cell::new(0);
    let outcome = change(&disk.store, &file(dir, "sub/a"), |version| {
        runs.set(runs.get() + 1);
        if runs.get() == 1 {
            fs::rename(dir.join("sub"), dir.join("moved")).unwrap();
            fs::create_dir(dir.join("sub")).unwrap();
            disk.put("sub/a", "another");
        }
        let found = String::from_utf8(version.unwrap().bytes.to_vec()).unwrap();
        Ok(write(&(found + "!")))
    });
    assert!(!outcome.unwrap().created);
    assert_eq!((disk.text("moved/a").as_str(), disk.text("sub/a").as_str()), ("one", "another!"));
    assert_eq!(runs.get(), 2);
}

#[test]
fn files_of_one_name_in_two_folders_are_two() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    for folder in ["x", "y"] {
        fs::create_dir(dir.join(folder)).unwrap();
    }
    let paths = [file(dir, "x/a"), file(dir, "y/a")];
    for round in ["one", "two"] {
        let texts = ["x", "y"].map(|folder| format!("{folder} {round}"));
        let changes: Vec<_> = texts.iter().map(|text| write(text)).collect();
        disk.store.update(&paths, &call(), &mut |_| Ok(changes.clone())).unwrap();
        assert_eq!([disk.text("x/a"), disk.text("y/a")], texts);
    }
}

#[test]
fn folders_that_others_use_are_not_taken_back() {
    let disk = Disk::new();
    let path = file(disk.dir.path(), "x/y/z/a");
    let theirs = disk.dir.path().join("x/y/theirs");
    let outcome = change(&disk.store, &path, |_| {
        let _ = fs::write(&theirs, "theirs");
        Ok(write(&"x".repeat(2000)))
    });
    assert!(matches!(outcome, Err(UpdateError::Store(StoreError::TooLarge { .. }))));
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
    assert_eq!(disk.names("x/y"), ["theirs"], "what nobody uses is");
}

#[test]
fn a_folder_removed_again_by_others_is_made_again() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    let runs = Cell::new(0);
    let saved = change(&disk.store, &file(dir, "x/y/a"), |_| {
        runs.set(runs.get() + 1);
        // The first run is the one before any folder is made, the second has the new folder open.
        if runs.get() == 2 {
            fs::remove_dir_all(dir.join("x")).unwrap();
        }
        Ok(write("one"))
    });
    assert!(saved.unwrap().created);
    assert_eq!(disk.text("x/y/a"), "one");
}

#[test]
fn a_folder_made_by_others_in_the_meantime_is_used() {
    let disk = Disk::new();
    let theirs = disk.dir.path().join("x/y");
    let saved = change(&disk.store, &file(disk.dir.path(), "x/y/a"), |version| {
        if !theirs.exists() {
            fs::create_dir_all(&theirs).unwrap();
            fs::write(theirs.join("a"), "theirs").unwrap();
        }
        Ok(version.map_or(write("ours"), |_| write("theirs, then ours")))
    });
    assert!(!saved.unwrap().created);
    assert_eq!(disk.text("x/y/a"), "theirs, then ours");
}

// --- at once

#[test]
fn threads_that_make_the_same_folders_lose_nothing() {
    const THREADS: usize = 4;
    for _ in 0..50 {
        let disk = Disk::new();
        let created = AtomicUsize::new(0);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (disk, created) = (&disk, &created);
                scope.spawn(move || {
                    let saved = append(disk, "x/y/z/shared", &thread.to_string()).unwrap();
                    created.fetch_add(usize::from(saved.created), Ordering::Relaxed);
                    append(disk, &format!("x/y/z/own-{thread}"), "own").unwrap();
                });
            }
        });
        assert_eq!(disk.text("x/y/z/shared").len(), THREADS);
        assert_eq!(created.into_inner(), 1);
        assert_eq!(disk.names("x/y/z").len(), THREADS + 1);
    }
}

#[test]
fn whoever_fails_takes_no_folder_from_whoever_succeeds() {
    for _ in 0..100 {
        let disk = Disk::new();
        let start = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                let path = file(disk.dir.path(), "v/w/x/y/z/fails");
                start.wait();
                let outcome = change(&disk.store, &path, |_| Ok(write(&"x".repeat(2000))));
                assert!(matches!(outcome, Err(UpdateError::Store(StoreError::TooLarge { .. }))));
            });
            start.wait();
            append(&disk, "v/w/x/y/z/succeeds", "one").unwrap();
        });
        assert_eq!(disk.names("v/w/x/y/z"), ["succeeds"]);
    }
}

#[test]
fn a_root_that_is_gone_is_not_made_again() {
    let disk = Disk::new();
    let path = file(disk.dir.path(), "x/y/a");
    fs::remove_dir(disk.dir.path()).unwrap();
    let outcome = change(&disk.store, &path, |_| Ok(write("one")));
    assert!(is_no_folder(&outcome), "{outcome:?}");
    assert!(!disk.dir.path().exists());
}

#[test]
fn a_path_in_the_root_makes_no_folder() {
    let disk = Disk::new();
    let saved = change(&disk.store, &at("a"), |_| Ok(write("one")));
    assert!(saved.unwrap().created);
    assert!(disk.store.make_folders(&at("a").parent(), &call()).unwrap().is_empty());
}
