//! A visit to all files below a folder: which it shows, what it counts, and that it stays where it may be.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    ops::ControlFlow,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use crate::common::{call, call_for, make_deeper_than_paths};
use files::{
    Call, Cancel, DirPath, PathError, Root, StoreError,
    tree::{Globs, Skipped, TreeFile, TreeOptions, VisitResult, visit},
};
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

fn put(dir: &Path, path: &str, contents: impl AsRef<[u8]>) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (path, contents) in files {
        put(dir.path(), path, contents);
    }
    dir
}

fn options() -> TreeOptions {
    TreeOptions {
        within: DirPath::root(),
        globs: Globs::default(),
        hidden: false,
        ignored: false,
        max_size: 1000,
    }
}

/// The paths that are visited, in order, and what was skipped.
fn paths(dir: &Path, options: &TreeOptions) -> Result<(Vec<String>, Skipped), StoreError> {
    let root = Root::open(dir).unwrap();
    let visited = visit(&root, options, &call(), Vec::new, |paths, file| {
        paths.push(file.path().to_owned());
        ControlFlow::Continue(())
    })?;
    let mut paths = visited.states.concat();
    paths.sort();
    Ok((paths, visited.skipped))
}

#[track_caller]
fn check(files: &[(&str, &str)], change: impl Fn(&mut TreeOptions), expected: &[&str]) {
    let dir = folder(files);
    let mut options = options();
    change(&mut options);
    assert_eq!(paths(dir.path(), &options).unwrap().0, expected);
}

fn within(path: &str) -> DirPath {
    Root::open(Path::new("/")).unwrap().folder(path).unwrap()
}

#[test]
fn ignore_files_of_every_folder_are_heeded() {
    let all = |_: &mut TreeOptions| {};
    check(
        &[
            (".gitignore", "*.log\n/top\nbuild/\n"),
            ("a.log", ""),
            ("a.rs", ""),
            ("top", ""),
            ("d/top", ""),
            ("d/b.log", ""),
            ("build/x", ""),
            ("d/build/y", ""),
            ("e/build", ""),
        ],
        all,
        &["a.rs", "d/top", "e/build"],
    );
    // The inner one has the last word, and only about what is below it.
    check(
        &[
            (".gitignore", "*.log"),
            ("d/.gitignore", "!b.log\n/x"),
            ("a.log", ""),
            ("d/a.log", ""),
            ("d/b.log", ""),
            ("d/x", ""),
            ("d/e/b.log", ""),
            ("d/e/x", ""),
            ("x", ""),
        ],
        all,
        &["d/b.log", "d/e/b.log", "d/e/x", "x"],
    );
    // `.ignore` comes before what is git's, wherever it is.
    check(
        &[
            (".ignore", "!a.log\nb"),
            ("d/.gitignore", "*.log"),
            ("d/a.log", ""),
            ("d/b", ""),
            ("d/b.log", ""),
        ],
        all,
        &["d/a.log"],
    );
    check(
        &[(".git/info/exclude", "a\n!b"), (".gitignore", "b"), ("a", ""), ("b", ""), ("c", "")],
        all,
        &["c"],
    );
    // A repository in another one has rules of its own, but for `.ignore`.
    check(
        &[
            (".gitignore", "a"),
            (".git/info/exclude", "b"),
            (".ignore", "c"),
            ("inner/.git/HEAD", ""),
            ("inner/a", ""),
            ("inner/b", ""),
            ("inner/c", ""),
            ("inner/d/a", ""),
            ("e/a", ""),
        ],
        all,
        &["inner/a", "inner/b", "inner/d/a"],
    );
    // A rule may bring back what is hidden; a byte order mark, `\r\n` and what is no rule do no harm.
    check(
        &[
            (".gitignore", "\u{feff}a\r\n!.shown\n[\n# b\n\\#c"),
            ("a", ""),
            (".shown/x", ""),
            (".hidden", ""),
            ("b", ""),
            ("#c", ""),
        ],
        all,
        &[".shown/x", "b"],
    );
    check(
        &[(".gitignore", "a"), ("a", ""), (".ignore", "b"), ("b", "")],
        |options| options.ignored = true,
        &["a", "b"],
    );
}

#[test]
fn nothing_above_the_root_is_read() {
    let dir = folder(&[
        (".gitignore", "*"),
        (".ignore", "*"),
        (".git/info/exclude", "*"),
        ("root/a", ""),
    ]);
    assert_eq!(paths(&dir.path().join("root"), &options()).unwrap().0, ["a"]);
    // Not through links either.
    let dir = folder(&[
        ("rules", "a\nb\nc"),
        ("root/a", ""),
        ("root/b", ""),
        ("git/info/exclude", "c"),
        ("root/c", ""),
    ]);
    for (target, link) in
        [("../rules", "root/.gitignore"), ("../rules", "root/.ignore"), ("../git", "root/.git")]
    {
        symlink(target, dir.path().join(link)).unwrap();
    }
    assert_eq!(paths(&dir.path().join("root"), &options()).unwrap().0, ["a", "b", "c"]);
}

#[test]
fn globs_have_the_last_word() {
    let files = &[
        (".gitignore", "gen.rs\ntarget/"),
        ("a.rs", ""),
        ("b.txt", ""),
        ("gen.rs", ""),
        ("d/c.rs", ""),
        ("d/t/e.rs", ""),
        ("target/f.rs", ""),
        (".g.rs", ""),
        (".h/i.rs", ""),
    ];
    let check = |globs: &[&str], expected: &[&str]| {
        let globs = Globs::new(globs.iter().copied()).unwrap();
        check(files, |options| options.globs = globs.clone(), expected);
    };
    check(&["*.rs"], &[".g.rs", "a.rs", "d/c.rs", "d/t/e.rs", "gen.rs"]);
    check(&["/*.txt"], &["b.txt"]);
    check(&["!*.rs"], &["b.txt"]);
    check(&["!d/t"], &["a.rs", "b.txt", "d/c.rs"]);
    check(&["d/**", "!e.rs"], &["d/c.rs"]);
    check(&["!*.rs", "a.rs"], &["a.rs"]);
    check(&["*.{txt,md}"], &["b.txt"]);
    check(&["*.py"], &[]);
    assert!(Globs::new(["a[", "b"]).unwrap_err().to_string().contains("a["));
    assert!(Globs::new(["{a"]).is_err());
}

#[test]
fn hidden_files_are_shown_if_asked_for_but_never_git_s_own() {
    let files = &[
        ("a", ""),
        (".b", ""),
        (".d/c", ""),
        (".git/HEAD", ""),
        ("d/.git/HEAD", ""),
        ("e/.git", ""),
        (".fe-1-0123456789abcdef.tmp", ""),
    ];
    check(files, |_| {}, &["a"]);
    check(files, |options| options.hidden = true, &[".b", ".d/c", "a"]);
}

#[test]
fn a_folder_or_file_that_is_named_is_visited_whatever_it_is() {
    let files = &[
        (".gitignore", "target\n*.o"),
        ("target/a", ""),
        ("target/b.o", ""),
        ("d/e/c", ""),
        (".h/x", ""),
        ("d/f.o", ""),
    ];
    let check =
        |at: &str, expected: &[&str]| check(files, |options| options.within = within(at), expected);
    check("", &["d/e/c"]);
    check(".", &["d/e/c"]);
    check("./d/", &["d/e/c"]);
    check("d/e", &["d/e/c"]);
    // Rules from further up still hold for what is in it.
    check("target", &["target/a"]);
    check(".h", &[".h/x"]);
    check("d/f.o", &["d/f.o"]);
    check("target/b.o", &["target/b.o"]);
}

#[test]
fn what_is_not_there_is_said() {
    let dir = folder(&[("a", "")]);
    symlink("/etc", dir.path().join("out")).unwrap();
    symlink("..", dir.path().join("up")).unwrap();
    let visit = |at: &str| paths(dir.path(), &TreeOptions { within: within(at), ..options() });
    for missing in ["b", "b/c", "a/b"] {
        assert!(matches!(visit(missing), Err(StoreError::NoFolder)), "{missing}");
    }
    for outside in ["out", "up", "out/passwd"] {
        assert!(
            matches!(visit(outside), Err(StoreError::Denied { .. })),
            "{outside}: {:?}",
            visit(outside)
        );
    }
    let root = Root::open(dir.path()).unwrap();
    for (path, error) in [
        ("..", PathError::Dots),
        ("a/../b", PathError::Dots),
        ("/a", PathError::Outside),
        ("a\0", PathError::Characters),
    ] {
        assert_eq!(root.folder(path), Err(error), "{path}");
    }
    assert_eq!(root.folder(dir.path().join("a/b").to_str().unwrap()), root.folder("a/b"));
    assert_eq!(root.folder(dir.path().to_str().unwrap()), Ok(DirPath::root()));
    fs::remove_dir_all(dir.path()).unwrap();
    let gone = count(&root);
    assert!(matches!(gone, Err(StoreError::NoFolder)), "{gone:?}");
}

fn count(root: &Root) -> Result<Skipped, StoreError> {
    visit(root, &options(), &call(), || (), |(), _| ControlFlow::Continue(()))
        .map(|visited| visited.skipped)
}

#[test]
fn only_files_are_visited_and_the_rest_is_counted() {
    let dir = folder(&[
        ("a", ""),
        ("d/b", ""),
        (".hidden", ""),
        (".d/x", ""),
        (".gitignore", "ignored*"),
        ("ignored", ""),
        ("ignored.d/x", ""),
        ("x\ny", ""),
    ]);
    let dir = dir.path();
    fs::write(dir.join(OsStr::from_bytes(b"\xff")), "").unwrap();
    mknodat(CWD, dir.join("pipe"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    for (target, link) in [
        ("a", "to-file"),
        ("d", "to-folder"),
        (".", "d/to-itself"),
        ("/etc/passwd", "out"),
        ("gone", "nowhere"),
    ] {
        symlink(target, dir.join(link)).unwrap();
    }
    let (paths, skipped) = paths(dir, &options()).unwrap();
    assert_eq!(paths, ["a", "d/b"]);
    let expected =
        Skipped { ignored: 2, hidden: 3, special: 6, unreadable: 2, ..Skipped::default() };
    assert_eq!(skipped, expected);
}

/// Results of [`TreeFile::text`] and [`TreeFile::read`] for a file, and what they count.
fn contents(dir: &Path, max_size: u64) -> (Option<String>, Option<usize>, Skipped) {
    let root = Root::open(dir).unwrap();
    let options = TreeOptions { max_size, ..options() };
    let look = |seen: &mut Vec<_>, file: &mut TreeFile<'_>| {
        let size = file.size();
        let text = file.text().map(str::to_owned);
        let read = file.read().map(<[u8]>::len);
        assert!(read.is_none() || size == read.map(|read| read as u64));
        seen.push((text, read));
        ControlFlow::Continue(())
    };
    let visited = visit(&root, &options, &call(), Vec::new, look).unwrap();
    let [(text, read)] = visited.states.concat().try_into().unwrap();
    (text, read, visited.skipped)
}

#[test]
fn files_are_read_whole_or_counted() {
    let none = Skipped::default();
    let binary = Skipped { binary: 1, ..none };
    for (bytes, max_size, is_text, skipped) in [
        (b"".to_vec(), 0, true, none),
        (b"abc".to_vec(), 3, true, none),
        ("\u{feff}é".into(), 100, true, none),
        (b"a".repeat(64 * 1024), 1 << 20, true, none),
        (b"a".repeat(64 * 1024 - 1), 1 << 20, true, none),
        (b"ab\n".repeat(1 << 20), 4 << 20, true, none),
        (b"a\0".to_vec(), 100, false, binary),
        (b"a\xff".to_vec(), 100, false, binary),
        ([b"a".repeat(100_000), b"\0".to_vec()].concat(), 1 << 20, false, binary),
        ([b"\0".to_vec(), b"a".repeat(200_000)].concat(), 1 << 20, false, binary),
        (b"abcd".to_vec(), 3, false, Skipped { too_large: 2, ..none }),
    ] {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("f"), &bytes).unwrap();
        let (text, read, counted) = contents(dir.path(), max_size);
        let expected = is_text.then(|| String::from_utf8(bytes.clone()).unwrap());
        assert!(text == expected, "{} bytes", bytes.len());
        assert_eq!(read, (counted.too_large == 0).then_some(bytes.len()));
        assert_eq!(counted, skipped, "{} bytes", bytes.len());
    }
}

/// Its size is said to be 0.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_does_not_tell_its_size_is_read_to_its_end() {
    let root = Root::open(Path::new("/proc/self")).unwrap();
    let check = |max_size, is_read: bool| {
        let options = TreeOptions { within: within("status"), max_size, ..options() };
        let visited = visit(&root, &options, &call(), String::new, |text, file| {
            text.push_str(file.text().unwrap_or_default());
            ControlFlow::Continue(())
        });
        let VisitResult { states, skipped } = visited.unwrap();
        assert_eq!(states[0].contains("Name:") && states[0].contains("ctxt_switches:"), is_read);
        assert_eq!(skipped.too_large, u64::from(!is_read));
    };
    check(1 << 20, true);
    check(100, false);
}

/// Files that lie deeper than paths reach are left out.
#[test]
fn a_walk_goes_as_deep_as_paths_do() {
    let dir = TempDir::new().unwrap();
    let expected = make_deeper_than_paths(dir.path());
    let (found, skipped) = paths(dir.path(), &options()).unwrap();
    assert_eq!(found, expected);
    // A file whose path is a byte too long, and a folder.
    assert_eq!(skipped, Skipped { unreadable: 2, ..Skipped::default() });
}

#[test]
fn each_of_many_files_is_visited_once() {
    let dir = TempDir::new().unwrap();
    let mut expected = BTreeSet::new();
    for number in 0..3000 {
        // Most in one folder, some in a chain of them.
        let path = match number % 10 {
            0 => format!("{}f{number}", "d/".repeat(number / 100)),
            1 => format!("n{}/m/f{number}", number % 37),
            _ => format!("f{number}"),
        };
        put(dir.path(), &path, "");
        expected.insert(path);
    }
    let (paths, skipped) = paths(dir.path(), &options()).unwrap();
    assert_eq!(paths, expected.into_iter().collect::<Vec<_>>());
    assert_eq!(skipped, Skipped::default());
}

/// So that not each thread holds one.
#[test]
fn large_files_are_visited_one_at_a_time() {
    let dir = TempDir::new().unwrap();
    for number in 0..6 {
        put(dir.path(), &format!("{number}/large"), "x".repeat((1 << 20) + 1));
    }
    let root = Root::open(dir.path()).unwrap();
    let options = TreeOptions { max_size: 2 << 20, ..options() };
    let (held, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let look = |(): &mut (), file: &mut TreeFile<'_>| {
        assert_eq!(file.text().map(str::len), Some((1 << 20) + 1));
        most.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        held.fetch_sub(1, Ordering::SeqCst);
        ControlFlow::Continue(())
    };
    visit(&root, &options, &call(), || (), look).unwrap();
    assert_eq!(most.into_inner(), 1);
}

#[test]
fn a_walk_can_be_ended() {
    let dir = TempDir::new().unwrap();
    for number in 0..1000 {
        put(dir.path(), &format!("{}/{number}", number % 7), "");
    }
    let root = Root::open(dir.path()).unwrap();
    let count = AtomicUsize::new(0);
    let counted = |call: &Call, last: usize| {
        count.store(0, Ordering::Relaxed);
        let visited = visit(
            &root,
            &options(),
            call,
            || (),
            |(), _| {
                let so_far = count.fetch_add(1, Ordering::Relaxed) + 1;
                if so_far >= last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        visited.map(|_| count.load(Ordering::Relaxed))
    };
    assert_eq!(counted(&call(), usize::MAX).unwrap(), 1000);
    assert!(counted(&call(), 10).unwrap() < 100);
    assert!(matches!(counted(&call_for(Duration::ZERO), usize::MAX), Err(StoreError::TimedOut)));
    let cancel = Cancel::new();
    let cancelled = Call::new(call().deadline, cancel.clone(), Cancel::new());
    let visited = visit(
        &root,
        &options(),
        &cancelled,
        || (),
        |(), _| {
            cancel.set();
            ControlFlow::Continue(())
        },
    );
    assert!(matches!(visited, Err(StoreError::Cancelled)));
}

#[test]
fn a_panic_of_a_visitor_reaches_the_caller() {
    let dir = TempDir::new().unwrap();
    for number in 0..500 {
        put(dir.path(), &format!("{}/{number}", number % 7), "");
    }
    let root = Root::open(dir.path()).unwrap();
    let walk = || {
        visit(
            &root,
            &options(),
            &call(),
            || (),
            |(), file| {
                assert!(!file.path().ends_with("/77"), "on purpose");
                ControlFlow::Continue(())
            },
        )
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(walk)).is_err());
}

/// Runs git without any configuration.
fn git(dir: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.current_dir(dir).args(arguments);
    for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "XDG_CONFIG_HOME"] {
        command.env(name, "/dev/null");
    }
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn git_leaves_out_the_same(
        outer in prop::collection::vec("!?/?[ab*?]{1,2}(/[abc*])?/?", 0..4),
        inner in prop::collection::vec("!?/?[ab*?]{1,2}(/[abc*])?/?", 0..4),
        exclude in prop::collection::vec("!?[abc]{1,2}", 0..2),
        files in prop::collection::btree_set("([abc]{1,2}/){0,2}[abc]{1,2}x?", 1..12),
    ) {
        let dir = TempDir::new().unwrap();
        let at = dir.path();
        for path in &files {
            // A file may be in the way of a folder.
            let path = at.join(path);
            if fs::create_dir_all(path.parent().unwrap()).is_ok() {
                let _ = fs::write(path, "");
            }
        }
        prop_assume!(git(at, &["init", "-q"]).is_some());
        put(at, ".gitignore", outer.join("\n"));
        if at.join("a").is_dir() {
            put(at, "a/.gitignore", inner.join("\n"));
        }
        put(at, ".git/info/exclude", exclude.join("\n"));
        let listed = git(at, &["ls-files", "--others", "--exclude-standard"]).unwrap();
        let mut listed: Vec<_> = listed.lines().map(String::from).collect();
        listed.sort();
        let mut visited = paths(at, &options()).unwrap().0;
        // A rule may show it, and git shows what is hidden.
        for paths in [&mut listed, &mut visited] {
            paths.retain(|path| !path.ends_with(".gitignore"));
        }
        prop_assert_eq!(visited, listed);
    }
}
