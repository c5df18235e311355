//! A walk on disk: what it shows, in what order, and that it misses nothing whatever becomes of the folders meanwhile.

use std::{
    cell::Cell,
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    ops::ControlFlow,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::common::{Disk, call, make_deeper_than_paths};
use files::{Call, Cancel, DirPath, Entry, Store, StoreError};
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};

fn put(dir: &Path, path: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
}

/// At most `most` paths after `after`.
fn page(store: &dyn Store, after: &str, most: usize) -> Vec<String> {
    let mut paths = Vec::new();
    let each = &mut |entry: Entry| {
        paths.push(entry.name.into_string().unwrap());
        if paths.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    store.walk(after, &call(), each).unwrap();
    paths
}

/// Page after page, each from where the one before ended; `meanwhile` runs in between.
fn pages(store: &dyn Store, most: usize, mut meanwhile: impl FnMut()) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    loop {
        let page = page(store, all.last().map_or("", String::as_str), most);
        assert!(page.is_empty() || all.last() < page.first(), "{page:?} after {:?}", all.last());
        let is_last = page.len() < most;
        all.extend(page);
        if is_last {
            return all;
        }
        meanwhile();
    }
}

fn assert_in_order(paths: &[String]) {
    let is_sorted = paths.is_sorted_by(|one, next| one < next);
    assert!(is_sorted, "{paths:?}");
}

#[test]
fn a_list_can_be_ended() {
    let disk = Disk::new();
    (0..200).for_each(|number| disk.put(&number.to_string(), ""));
    let cancel = Cancel::new();
    let cancelled = Call::new(call().deadline, cancel.clone(), Cancel::new());
    let mut count = 0;
    let listed = disk.store.list(&DirPath::root(), &cancelled, &mut |_| {
        count += 1;
        if count == 100 {
            cancel.set();
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(listed, Err(StoreError::Cancelled)));
    assert!((100..200).contains(&count));
}

#[test]
fn only_files_that_can_be_read_and_named_are_shown() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    for path in ["a", "d/b", "d/e/c", ".hidden", ".d/a", "d/.e/a", "x\ny", "\u{85}", "d/x\u{7f}/a"]
    {
        put(dir, path);
    }
    fs::write(dir.join(OsStr::from_bytes(b"\xff")), "").unwrap();
    fs::create_dir(dir.join(OsStr::from_bytes(b"d\xff"))).unwrap();
    fs::write(dir.join(OsStr::from_bytes(b"d\xff/a")), "").unwrap();
    fs::create_dir(dir.join("empty")).unwrap();
    mknodat(CWD, dir.join("pipe"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    for (target, link) in [
        ("a", "to-file"),
        ("d/e/../b", "to-inner"),
        ("../a", "d/to-outer"),
        (".hidden", "to-hidden"),
        ("to-file", "to-link"),
        ("d", "to-folder"),
        (".", "to-itself"),
        ("nowhere", "to-nothing"),
        ("pipe", "to-pipe"),
        ("to-circle", "to-circle"),
        ("../outside", "to-outside"),
        ("/etc/passwd", "to-absolute"),
    ] {
        symlink(target, dir.join(link)).unwrap();
    }
    let expected =
        ["a", "d/b", "d/e/c", "d/to-outer", "to-file", "to-hidden", "to-inner", "to-link"];
    assert_eq!(page(&disk.store, "", usize::MAX), expected);
}

#[test]
fn a_folder_that_is_gone_is_not_taken_for_an_empty_one() {
    let disk = Disk::new();
    fs::remove_dir(disk.dir.path()).unwrap();
    let walked = disk.store.walk("", &call(), &mut |_| unreachable!());
    assert!(matches!(walked, Err(StoreError::NoFolder)));
}

#[test]
fn what_is_gone_before_it_is_reached_is_passed_by() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    for path in ["a", "b", "c/d", "e/f", "g"] {
        put(dir, path);
    }
    let mut paths = Vec::new();
    let each = &mut |entry: Entry| {
        if paths.is_empty() {
            fs::remove_file(dir.join("b")).unwrap();
            fs::remove_dir_all(dir.join("c")).unwrap();
            fs::remove_dir_all(dir.join("e")).unwrap();
            put(dir, "e");
        }
        paths.push(entry.name.into_string().unwrap());
        ControlFlow::Continue(())
    };
    disk.store.walk("", &call(), each).unwrap();
    assert_eq!(paths, ["a", "g"]);
}

#[test]
fn a_walk_ends_when_the_call_is_taken_back() {
    let disk = Disk::new();
    for number in 0..20 {
        put(disk.dir.path(), &format!("{number:02}"));
    }
    let call: Call = call();
    let seen = Cell::new(0);
    let walked = disk.store.walk("", &call, &mut |_| {
        seen.set(seen.get() + 1);
        if seen.get() == 10 {
            call.cancel.set();
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(walked, Err(StoreError::Cancelled)));
    assert_eq!(seen.get(), 10);
}

/// More names than are held at once: in one folder, and in several together that a walk is in at the same time.
#[test]
fn large_folders_are_walked_in_parts() {
    for count in [1500, 700] {
        let disk = Disk::new();
        let dir = disk.dir.path();
        let mut expected = Vec::new();
        for outer in 0..count {
            // Most of them have nothing to show.
            fs::create_dir(dir.join(format!("{outer:04}"))).unwrap();
            for inner in (0..count).filter(|_| outer % 500 == 250) {
                let path = format!("{outer:04}/{inner:04}");
                match inner % 100 {
                    99 => expected.push(path + "/x"),
                    98 => expected.push(path),
                    _ => fs::create_dir(dir.join(path)).unwrap(),
                }
            }
        }
        expected.extend((0..count).map(|number| format!("many/{number:04}")));
        for path in &expected {
            put(dir, path);
        }
        assert_in_order(&expected);
        for most in [usize::MAX, 1000] {
            assert!(pages(&disk.store, most, || {}) == expected, "{count} in pages of {most}");
        }
    }
}

/// Files that lie deeper than paths reach are left out, and are no failure.
#[test]
fn a_walk_goes_as_deep_as_paths_do() {
    let disk = Disk::new();
    let expected = make_deeper_than_paths(disk.dir.path());
    assert_eq!(page(&disk.store, "", usize::MAX), expected);
}

/// Whatever takes the place of a folder, nothing outside is shown.
#[test]
fn nothing_outside_is_shown_while_folders_are_swapped_with_links() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    let outside = Disk::new();
    put(outside.dir.path(), "secret");
    for path in ["a", "sub/a", "sub/b", "z"] {
        put(dir, path);
    }
    let [sub, aside] = ["sub", ".aside"].map(|name| dir.join(name));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::rename(&sub, &aside).unwrap();
                symlink(outside.dir.path(), &sub).unwrap();
                fs::remove_file(&sub).unwrap();
                fs::rename(&aside, &sub).unwrap();
            }
        });
        let mut seen = BTreeSet::new();
        // The other one may have to wait for its turn.
        for walk in 0..1_000_000 {
            seen.insert(page(&disk.store, "", usize::MAX));
            if walk > 3000 && seen.len() > 1 {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        for paths in &seen {
            assert_in_order(paths);
            let inner: Vec<_> = paths.iter().filter(|path| path.starts_with("sub/")).collect();
            assert!(
                inner.iter().all(|path| ["sub/a", "sub/b"].contains(&path.as_str())),
                "{paths:?}"
            );
            assert_eq!(paths.len(), inner.len() + 2, "`a` and `z` are always there: {paths:?}");
        }
        assert!(seen.len() > 1, "it was never swapped: {seen:?}");
    });
}

/// Names whose order differs from that of the paths they lead to, and hidden ones.
fn name() -> impl Strategy<Value = String> {
    "[-./0ab ~ä]{1,3}"
        .prop_filter("a name", |name| !name.contains('/') && !matches!(name.as_str(), "." | ".."))
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"))
}

/// Makes those files that do not stand in the way of others.
fn plant(dir: &Path, paths: &[String]) -> BTreeSet<String> {
    let made = paths.iter().filter(|path| {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).is_ok() && fs::write(path, "").is_ok()
    });
    made.cloned().collect()
}

fn is_hidden(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with('.'))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn pages_are_the_sorted_list_of_all_paths(
        paths in prop::collection::vec(path(), 0..40),
        most in 1_usize..8,
    ) {
        let disk = Disk::new();
        let made = plant(disk.dir.path(), &paths);
        let expected: Vec<_> = made.into_iter().filter(|path| !is_hidden(path)).collect();
        prop_assert_eq!(pages(&disk.store, most, || {}), expected);
    }

    #[test]
    fn a_walk_goes_on_after_anything(
        paths in prop::collection::vec(path(), 0..20),
        after in "[-./0ab ~ä]{0,8}",
    ) {
        let disk = Disk::new();
        let made = plant(disk.dir.path(), &paths);
        let expected: Vec<_> =
            made.into_iter().filter(|path| !is_hidden(path) && *path > after).collect();
        prop_assert_eq!(page(&disk.store, &after, usize::MAX), expected);
    }

    #[test]
    fn what_stays_is_there_once_whatever_comes_and_goes(
        stay in prop::collection::vec(path(), 0..20),
        changes in prop::collection::vec((path(), any::<bool>()), 0..40),
        most in 1_usize..5,
    ) {
        let disk = Disk::new();
        let dir = disk.dir.path();
        let stay = plant(dir, &stay);
        let mut changes = changes.iter();
        let paths = pages(&disk.store, most, || {
            for (path, comes) in changes.by_ref().take(3) {
                if *comes {
                    plant(dir, std::slice::from_ref(path));
                } else if !stay.contains(path) {
                    let _ = fs::remove_file(dir.join(path));
                }
            }
        });
        assert_in_order(&paths);
        let shown: BTreeSet<_> = paths.into_iter().collect();
        for path in stay.iter().filter(|path| !is_hidden(path)) {
            prop_assert!(shown.contains(path), "{} is missing", path);
        }
    }
}
