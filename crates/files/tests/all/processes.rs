//! Several real processes on one folder. A test starts this binary again to run one of the `child_` tests, which do
//! nothing when they are run by themselves.

use std::{
    env, fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::common::{Disk, append, at, call, is_root_to_check};
use files::{Change, Durability, MissingFolders, Root, StoreError, UpdateError, Updater};

const FOLDER: &str = "FILES_TEST_FOLDER";
const ARGUMENT: &str = "FILES_TEST_ARGUMENT";

fn start(child: &str, folder: &Path, argument: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([&format!("processes::{child}"), "--exact", "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder).env(ARGUMENT, argument).stdout(Stdio::null());
    command
}

/// The folder and argument of a child; `None` in a normal run.
fn given() -> Option<(PathBuf, String)> {
    Some((env::var_os(FOLDER)?.into(), env::var(ARGUMENT).ok()?))
}

fn assert_well(mut child: Child) {
    assert!(child.wait().unwrap().success());
}

/// Appends its letter 50 times; the argument is the letter and, after it, which temporary files to use.
#[test]
fn child_appends() {
    let Some((folder, argument)) = given() else { return };
    let (letter, temps) = argument.split_at(1);
    let store = crate::common::open(&folder.join("root"));
    let store = if temps == "named" { store.with_named_temp_files() } else { store };
    let created =
        (0..50).filter(|_| append(&store, &at("a"), letter, &call()).unwrap().created).count();
    fs::write(folder.join(letter), created.to_string()).unwrap();
}

fn processes_lose_nothing(temps: &str) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir(&root).unwrap();
    let letters = ["a", "b", "c", "d", "e"];
    let children = letters.map(|letter| {
        start("child_appends", dir.path(), &format!("{letter}{temps}")).spawn().unwrap()
    });
    children.into_iter().for_each(assert_well);
    let text = fs::read_to_string(root.join("a")).unwrap();
    let mut creators = 0;
    for letter in letters {
        assert_eq!(text.matches(letter).count(), 50, "{letter}");
        creators += fs::read_to_string(dir.path().join(letter)).unwrap().parse::<usize>().unwrap();
    }
    assert_eq!(text.len(), 250);
    assert_eq!(creators, 1);
    assert_eq!(fs::read_dir(root).unwrap().count(), 1, "nothing is left over");
}

#[test]
fn processes_lose_nothing_with_unnamed_temps() {
    processes_lose_nothing("");
}

#[test]
fn processes_lose_nothing_with_named_temps() {
    processes_lose_nothing("named");
}

/// Appends for ever.
#[test]
fn child_never_stops() {
    let Some((folder, _)) = given() else { return };
    let store = crate::common::open(&folder).with_named_temp_files();
    loop {
        append(&store, &at("a"), "x", &call()).ok();
        append(&store, &at("b"), &"x".repeat(900), &call()).ok();
        fs::remove_file(folder.join("b")).ok();
    }
}

#[test]
fn a_killed_process_leaves_whole_files_and_free_locks() {
    for _ in 0..5 {
        let disk = Disk::new();
        disk.put("a", "x");
        let mut child = start("child_never_stops", disk.dir.path(), "").spawn().unwrap();
        let before = disk.text("a").len();
        while disk.text("a").len() < before + 10 {
            thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(disk.text("a").bytes().all(|byte| byte == b'x'));
        disk.append("a", "y").unwrap();
        let left = disk.names(".");
        assert!(left.iter().all(|name| name == "a" || name == "b"), "{left:?}");
        assert!(!left.contains(&"b".to_string()) || disk.text("b").len() == 900);
    }
}

/// Edits `a` in the folder and notes what came of it.
#[test]
fn child_edits() {
    let Some((folder, argument)) = given() else { return };
    let text = if argument.is_empty() { "!" } else { &argument };
    let outcome = append(
        &crate::common::open_with(&folder.join("root"), Durability::Full),
        &at("a"),
        text,
        &call(),
    );
    let note = match outcome {
        Ok(_) => "saved".to_string(),
        Err(StoreError::Denied { .. }) => "denied".to_string(),
        Err(error) => error.to_string(),
    };
    fs::write(folder.join("note"), note).unwrap();
}

/// A folder all may write to, with `root/a` in it.
fn shared_folder(mode: u32) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir(&root).unwrap();
    for folder in [dir.path(), &root] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let file = root.join("a");
    fs::write(&file, "one").unwrap();
    chown(&file, Some(1234), Some(1234)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    (dir, root)
}

#[test]
fn an_owner_that_cannot_be_kept_gives_nobody_more_rights() {
    if !is_root_to_check("an owner that cannot be kept") {
        return;
    }
    // Mode before, whether the editor is in the file's group, mode after.
    for (before, gid, after) in
        [(0o6776, 65534, 0o766), (0o772, 65534, 0o722), (0o2775, 1234, 0o775)]
    {
        let (dir, root) = shared_folder(before);
        let child = start("child_edits", dir.path(), "").uid(65534).gid(gid).spawn().unwrap();
        assert_well(child);
        if before & 0o006 == 0o006 || gid == 1234 {
            assert_eq!(fs::read_to_string(dir.path().join("note")).unwrap(), "saved", "{before:o}");
            let found = fs::metadata(root.join("a")).unwrap();
            assert_eq!((found.uid(), found.mode() & 0o7777), (65534, after), "{before:o}");
            assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "one!");
        } else {
            assert_eq!(
                fs::read_to_string(dir.path().join("note")).unwrap(),
                "denied",
                "{before:o}"
            );
        }
    }
}

#[test]
fn a_folder_we_may_not_write_to_is_denied() {
    if !is_root_to_check("a folder of another user") {
        return;
    }
    let (dir, root) = shared_folder(0o666);
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    assert_well(start("child_edits", dir.path(), "").uid(65534).gid(65534).spawn().unwrap());
    assert_eq!(fs::read_to_string(dir.path().join("note")).unwrap(), "denied");
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "one");
}

#[test]
fn a_full_disk_leaves_the_old_text() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "one").unwrap();
    // Blocks of 512 bytes; without the trap the limit would kill.
    let inner = start("child_edits", dir.path(), &"x".repeat(900));
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args());
    limited.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert_well(limited.stdout(Stdio::null()).spawn().unwrap());
    assert_eq!(fs::read_to_string(dir.path().join("note")).unwrap(), "no space left on device");
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "one");
    assert_eq!(fs::read_dir(root).unwrap().count(), 1);
}

/// Appends a letter to `root/x/y/a`, making the folders; the argument is the letter.
#[test]
fn child_makes_folders() {
    let Some((folder, letter)) = given() else { return };
    let root = folder.join("root");
    let path = Root::open(&root).unwrap().absolute(root.join("x/y/a").to_str().unwrap()).unwrap();
    let store = crate::common::open(&root);
    let outcome = Updater::new(&store).with_missing_folders(MissingFolders::Create).update_one(
        &path,
        &call(),
        |version| {
            let old = version.map(|version| version.bytes.to_vec()).unwrap_or_default();
            Ok::<_, ()>((Change::write([&old, letter.as_bytes()].concat()), ()))
        },
    );
    let note = match outcome {
        Ok(_) => "saved",
        Err(UpdateError::Store(StoreError::Denied { .. })) => "denied",
        Err(_) => "failed",
    };
    fs::write(folder.join(letter), note).unwrap();
}

/// Starts `child_makes_folders` under a umask.
fn start_with_umask(umask: &str, folder: &Path, letter: &str) -> Command {
    let inner = start("child_makes_folders", folder, letter);
    let mut masked = Command::new("sh");
    let script = format!("umask {umask}; exec \"$0\" \"$@\"");
    masked.args(["-c", &script]).arg(inner.get_program()).args(inner.get_args());
    masked.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    masked.stdout(Stdio::null());
    masked
}

#[test]
fn processes_that_make_the_same_folders_lose_nothing() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        let letters = ["a", "b", "c", "d"];
        let children =
            letters.map(|letter| start("child_makes_folders", dir.path(), letter).spawn().unwrap());
        children.into_iter().for_each(assert_well);
        let text = fs::read_to_string(dir.path().join("root/x/y/a")).unwrap();
        assert_eq!(text.len(), letters.len());
        for letter in letters {
            assert_eq!(fs::read_to_string(dir.path().join(letter)).unwrap(), "saved");
            assert!(text.contains(letter), "{text}");
        }
    }
}

#[test]
fn made_folders_obey_the_umask() {
    for (umask, expected) in [("027", 0o750), ("0", 0o777), ("077", 0o700)] {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("root")).unwrap();
        assert_well(start_with_umask(umask, dir.path(), "a").spawn().unwrap());
        for folder in ["root/x", "root/x/y"] {
            let found = fs::metadata(dir.path().join(folder)).unwrap().mode() & 0o7777;
            assert_eq!(found, expected, "{folder} under {umask}");
        }
    }
}

#[test]
fn folders_we_may_not_make_are_denied_and_those_made_before_taken_back() {
    if !is_root_to_check("folders that may not be made") {
        return;
    }
    // The root is not ours to write to; or we may not enter the first folder we made.
    for (root_mode, umask) in [(0o555, "022"), (0o777, "0777")] {
        let (dir, root) = shared_folder(0o666);
        fs::set_permissions(&root, fs::Permissions::from_mode(root_mode)).unwrap();
        let child = start_with_umask(umask, dir.path(), "b").uid(65534).gid(65534).spawn().unwrap();
        assert_well(child);
        let note = dir.path().join("b");
        assert_eq!(fs::read_to_string(note).unwrap(), "denied", "under {umask}");
        let left: Vec<_> =
            fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["a"], "under {umask}");
    }
}
