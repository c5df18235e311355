//! Which absolute paths are files of a root, and which file each of them is.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Component, Path},
};

use crate::common::{Disk, append, call};
use files::{PathError, Root, Store, StoreError};
use proptest::prelude::*;

/// Checks the result for `path`, in which `$` stands for the root; `Ok` is the path from there.
#[track_caller]
fn check(root: &Root, path: &str, expected: Result<&str, PathError>) {
    let asked = path.replace('$', root.path().to_str().unwrap());
    let found = root.absolute(&asked).map(|path| path.to_string());
    assert_eq!(found, expected.map(String::from), "{path:?}");
}

#[test]
fn a_path_below_the_root_is_a_file() {
    let disk = Disk::new();
    let root = Root::open(disk.dir.path()).unwrap();
    for (path, file) in [
        ("$/a", "a"),
        ("$/sub/deep/a.txt", "sub/deep/a.txt"),
        ("$/.hidden", ".hidden"),
        ("$/...", "..."),
        ("$/a b/ c ", "a b/ c "),
        ("$/grün/日本語/🦀.txt", "grün/日本語/🦀.txt"),
        ("$/a\nb", "a\nb"),
        ("$/a\\b:c*?", "a\\b:c*?"),
        ("$/~", "~"),
        ("$/%2e%2e/a", "%2e%2e/a"),
        ("$//a", "a"),
        ("/$/sub///a", "sub/a"),
        ("$/./a", "a"),
        ("$/sub/././a", "sub/a"),
        ("$/sub/../a", "sub/../a"),
        ("$/x/y/../../a", "x/y/../../a"),
    ] {
        check(&root, path, Ok(file));
    }
}

#[test]
fn a_path_elsewhere_is_outside() {
    let disk = Disk::new();
    let inner = disk.dir.path().join("root");
    fs::create_dir(&inner).unwrap();
    fs::create_dir(disk.dir.path().join("root-evil")).unwrap();
    let root = Root::open(&inner).unwrap();
    for path in [
        "/",
        "/a",
        "/etc/passwd",
        "$-evil/a",
        "$-evil",
        "$x",
        "$/..",
        "$/../a",
        "$/../root/a",
        "$/./../a",
        "$/sub/../../a",
        "$/sub/../../root/sub/a",
        "$/a/../../../../../../etc/passwd",
        "/..$/../a",
    ] {
        check(&root, path, Err(PathError::Outside));
    }
}

#[test]
fn what_names_a_folder_is_no_file() {
    let disk = Disk::new();
    let root = Root::open(disk.dir.path()).unwrap();
    for path in [
        "$", "$/", "$//", "$/.", "$/a/", "$/a//", "$/a/.", "$/a/./", "$/a/..", "$/a/b/..",
        "$/a/../",
    ] {
        check(&root, path, Err(PathError::Folder));
    }
}

#[test]
fn a_path_that_is_not_absolute_is_refused() {
    let disk = Disk::new();
    let root = Root::open(disk.dir.path()).unwrap();
    for path in
        ["", " ", "a", "./a", "../a", "~/a", "sub/a", ".", "..", "a\0", "C:\\a", "file:///a"]
    {
        check(&root, path, Err(PathError::Relative));
    }
    check(&root, &"x".repeat(5000), Err(PathError::Relative));
}

#[test]
fn what_no_file_system_takes_is_refused() {
    let disk = Disk::new();
    let root = Root::open(disk.dir.path()).unwrap();
    for path in ["$/a\0", "$/\0", "$/a\0/b", "/\0"] {
        check(&root, path, Err(PathError::Characters));
    }
    let name = "x".repeat(255);
    check(&root, &format!("$/{name}/{name}"), Ok(&format!("{name}/{name}")));
    for path in
        [format!("$/{name}x"), format!("$/{name}x/a"), format!("$/{}x", "ä".repeat(127) + "x")]
    {
        check(&root, &path, Err(PathError::Length));
    }
    // By bytes, the root included.
    let given = root.path().to_str().unwrap();
    let longest = format!("{given}{}", "/x".repeat((4095 - given.len()) / 2));
    let longest = &format!("{longest:x<4095}");
    root.absolute(longest).unwrap();
    assert_eq!(root.absolute(&format!("{longest}x")), Err(PathError::Length));
}

#[test]
fn our_own_temporary_files_are_nobodys() {
    let disk = Disk::new();
    let root = Root::open(disk.dir.path()).unwrap();
    let ours = ".fe-1-0123456789abcdef.tmp";
    check(&root, &format!("$/{ours}"), Err(PathError::Temporary));
    check(&root, &format!("$/sub/{ours}"), Err(PathError::Temporary));
    check(&root, &format!("$/sub/../{ours}"), Err(PathError::Temporary));
    check(&root, &format!("$/{ours}/a"), Ok(&format!("{ours}/a")));
    check(&root, &format!("$/{ours}.txt"), Ok(&format!("{ours}.txt")));
}

#[test]
fn a_root_that_is_a_link_is_known_by_both_names() {
    let disk = Disk::new();
    let real = disk.dir.path().canonicalize().unwrap().join("real");
    fs::create_dir(&real).unwrap();
    let given = disk.dir.path().join("given");
    symlink("real", &given).unwrap();
    let root = Root::open(&given).unwrap();
    assert_eq!(root.path(), given);
    for folder in [&given, &real] {
        let path = folder.join("sub/a");
        assert_eq!(root.absolute(path.to_str().unwrap()).unwrap().to_string(), "sub/a");
        let folder = folder.to_str().unwrap();
        assert_eq!(root.absolute(folder), Err(PathError::Folder));
        assert_eq!(root.absolute(&format!("{folder}/../a")), Err(PathError::Outside));
        assert_eq!(root.absolute(&format!("{folder}-evil/a")), Err(PathError::Outside));
    }
}

#[test]
fn a_root_given_by_a_detour_is_known_by_its_true_name() {
    let disk = Disk::new();
    fs::create_dir(disk.dir.path().join("sub")).unwrap();
    let detour = disk.dir.path().join("sub/..//.");
    let root = Root::open(&detour).unwrap();
    for folder in [detour, disk.dir.path().canonicalize().unwrap()] {
        let path = folder.join("a");
        assert_eq!(root.absolute(path.to_str().unwrap()).unwrap().to_string(), "a");
    }
}

#[test]
fn the_whole_file_system_may_be_the_root() {
    let root = Root::open(Path::new("/")).unwrap();
    for (path, expected) in [
        ("/a", Ok("a")),
        ("//a", Ok("a")),
        ("/etc/../a", Ok("etc/../a")),
        ("/", Err(PathError::Folder)),
        ("/.", Err(PathError::Folder)),
        ("/..", Err(PathError::Outside)),
        ("/../a", Err(PathError::Outside)),
        ("a", Err(PathError::Relative)),
    ] {
        let found = root.absolute(path).map(|path| path.to_string());
        assert_eq!(found, expected.map(String::from), "{path:?}");
    }
}

#[test]
fn two_dots_after_a_link_mean_what_the_system_means() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    fs::create_dir_all(dir.join("far/away")).unwrap();
    symlink("far/away", dir.join("link")).unwrap();
    disk.put("a", "near");
    disk.put("far/a", "far");
    let root = Root::open(dir).unwrap();
    let through = dir.join("link/../a");
    let path = root.absolute(through.to_str().unwrap()).unwrap();
    let version = disk.store.read(&path, &call()).unwrap().unwrap();
    assert_eq!(*version.bytes, fs::read(&through).unwrap(), "as everybody else reads it");
    append(&disk.store, &path, "!", &call()).unwrap();
    assert_eq!((disk.text("a"), disk.text("far/a")), ("near".into(), "far!".into()));
}

#[test]
fn all_paths_of_one_file_become_one() {
    let disk = Disk::new();
    let root = Root::open(disk.dir.path()).unwrap();
    fs::create_dir_all(disk.dir.path().join("x/y")).unwrap();
    for (link, target) in [("way", "x"), ("x/up", ".."), ("link", "way/y/a"), ("dangling", "no/a")]
    {
        symlink(target, disk.dir.path().join(link)).unwrap();
    }
    let locate = |path: &str| {
        let at = root.absolute(root.path().join(path).to_str().unwrap()).unwrap();
        disk.store.locate(&at).map(|at| at.to_string())
    };
    // First without the file, then with it.
    for _ in 0..2 {
        for path in ["x/y/a", "way/y/a", "link", "x/y/../y/a", "x/up/way/y/a"] {
            assert_eq!(locate(path).unwrap(), "x/y/a", "{path}");
        }
        for path in ["a", "x/up/a", "way/../a", "x/up/x/up/a"] {
            assert_eq!(locate(path).unwrap(), "a", "{path}");
        }
        disk.put("x/y/a", "one");
    }
    assert!(matches!(locate("x/y"), Err(StoreError::IsFolder)));
    assert!(matches!(locate("no/a"), Err(StoreError::NoFolder)));
    assert!(matches!(locate("dangling"), Err(StoreError::NoFolder)));
    let at = root.absolute(root.path().join("x/y/a").to_str().unwrap()).unwrap();
    assert_eq!(root.path_of(&at), root.path().join("x/y/a"));
}

#[test]
fn a_path_that_is_inside_by_its_letters_only_is_refused_when_it_is_opened() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    let inner = dir.join("root");
    fs::create_dir_all(inner.join("sub")).unwrap();
    disk.put("secret", "secret");
    symlink("..", inner.join("up")).unwrap();
    symlink(".", inner.join("here")).unwrap();
    let root = Root::open(&inner).unwrap();
    let store = crate::common::open(&inner);
    // `here/..` is above the root, though its letters lead back to it.
    for below in ["up/secret", "sub/../up/secret", "here/../secret", "sub/../here/../secret"] {
        let path = root.absolute(inner.join(below).to_str().unwrap()).unwrap();
        let read = store.read(&path, &call()).map(drop);
        let written = append(&store, &path, "!", &call()).map(drop);
        for outcome in [read, written] {
            assert!(matches!(outcome, Err(StoreError::Denied { .. })), "{below}: {outcome:?}");
        }
    }
    assert_eq!(disk.text("secret"), "secret");
}

/// Strings made of the pieces that matter, and any string at all.
fn path() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("/".to_string()),
        Just("..".to_string()),
        Just(".".to_string()),
        Just("sub".to_string()),
        Just("\0".to_string()),
        Just(".fe-1-0123456789abcdef.tmp".to_string()),
        any::<String>(),
    ];
    (any::<bool>(), prop::collection::vec(piece, 0..12)).prop_map(|(is_below, pieces)| {
        let prefix = if is_below { "$/" } else { "" };
        format!("{prefix}{}", pieces.concat())
    })
}

proptest! {
    #[test]
    fn a_path_is_refused_or_never_leads_above_the_root(path in path()) {
        let root = Root::open(Path::new("/usr")).unwrap();
        let Ok(file) = root.absolute(&path.replace('$', "/usr")) else { return Ok(()) };
        let file = file.to_string();
        let mut depth = 0_usize;
        for component in Path::new(&file).components() {
            match component {
                Component::Normal(_) => depth += 1,
                Component::ParentDir => {
                    prop_assert!(depth > 0, "{}", file);
                    depth -= 1;
                }
                other => prop_assert!(false, "{:?} in {}", other, file),
            }
        }
        prop_assert!(depth > 0, "{}", file);
        prop_assert!(Path::new(&file).file_name().is_some());
        prop_assert!(!file.contains('\0'));
        // It is the same file when it is asked for again.
        let again = root.absolute(&format!("/usr/{file}"));
        prop_assert_eq!(again.map(|path| path.to_string()), Ok(file));
    }
}
