//! The sandbox, tried by code that goes past path resolution: what it does outside the root works without the sandbox,
//! and none of it inside. Each time one thread enters it; the test and its other threads stay out.

use std::{
    fs::{self, File, OpenOptions, hard_link, rename},
    io,
    net::{TcpListener, TcpStream},
    ops::ControlFlow,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::{MetadataExt, PermissionsExt, symlink},
            net::{SocketAddr, UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::common::{Disk, append, at, call, call_for, is_root_to_check, not_checked};
use files::{
    Access, AllowedService, Change, DirPath, DiskStore, Durability, Entry, FilePath, HostForm,
    MissingFolders, Root, Sandbox, Saved, Store, StoreError, UpdateError, Updater, usage,
};
use rustix::{
    fs::{CWD, FileType, Mode, makedev, mknodat},
    io::Errno,
    process::{Pid, test_kill_process},
};
use tempfile::TempDir;

/// Runs `work` on a thread in the sandbox; `None` where the kernel has none, or not all of it.
fn in_sandbox<T: Send>(root: &Path, access: Access, work: impl FnOnce() -> T + Send) -> Option<T> {
    let root = Root::open(root).unwrap();
    in_sandbox_entered_by(|| Sandbox::enter(&root, access), work)
}

/// Runs `work` on a thread in a sandbox that allows calls of a service.
fn in_sandbox_allowing(root: &Path, service: AllowedService, work: impl FnOnce() + Send) {
    let root = Root::open(root).unwrap();
    in_sandbox_entered_by(
        || Sandbox::enter_allowing(&root, Access::ReadWrite, Some(service)),
        work,
    );
}

fn in_sandbox_entered_by<T: Send>(
    enter: impl FnOnce() -> Sandbox + Send,
    work: impl FnOnce() -> T + Send,
) -> Option<T> {
    let outcome = thread::scope(|scope| {
        let inside = scope.spawn(|| match enter() {
            Sandbox::Landlock => Ok(work()),
            other => Err(other),
        });
        inside.join().unwrap()
    });
    if let Err(status) = &outcome {
        not_checked("the sandbox", &format!("all of Landlock; here it is {status}"));
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "everything is checked there");
    }
    outcome.ok()
}

// --- what is outside

/// A root and what is around it.
struct RootAndOutside {
    dir: TempDir,
    listener: TcpListener,
    unnamed: UnixListener,
    process: Child,
}

impl RootAndOutside {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for folder in ["root", "root/folder", "empty"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("file"), "outside").unwrap();
        fs::write(dir.path().join("root/file"), "inside").unwrap();
        symlink("../file", dir.path().join("root/link")).unwrap();
        fs::write(dir.path().join("root/program"), "#!/bin/sh\n").unwrap();
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(dir.path().join("root/program"), executable).unwrap();
        let name = dir.path().as_os_str().as_encoded_bytes();
        let name = SocketAddr::from_abstract_name(name).unwrap();
        Self {
            dir,
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            unnamed: UnixListener::bind_addr(&name).unwrap(),
            process: Command::new("cat").stdin(Stdio::piped()).spawn().unwrap(),
        }
    }

    /// Files that other programs have moved already; they are refused too.
    fn where_others_moved() -> Self {
        let place = Self::new();
        for name in ["renamed", "taken out"] {
            fs::write(place.at(name), "outside").unwrap();
        }
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn node(&self, path: &str, kind: FileType) -> io::Result<()> {
        Ok(mknodat(CWD, self.at(path), kind, Mode::RUSR, makedev(1, 3))?)
    }

    /// Everything there is, outside and inside, with what is in it.
    fn contents(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut folders = vec![self.dir.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let kind = fs::symlink_metadata(&path).unwrap().file_type();
                let text = if kind.is_file() {
                    fs::read_to_string(&path).unwrap()
                } else {
                    format!("{kind:?}")
                };
                if kind.is_dir() {
                    folders.push(path.clone());
                }
                found.push((path, text));
            }
        }
        found.sort();
        found
    }
}

impl Drop for RootAndOutside {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

type Attempt = (&'static str, fn(&RootAndOutside) -> io::Result<()>);

/// Actions that our own code never does, outside the root or in it. None takes away what another one needs.
const ATTEMPTS: &[Attempt] = &[
    ("read a file", |place| fs::read(place.at("file")).map(drop)),
    ("read a file through a link in the root", |place| fs::read(place.at("root/link")).map(drop)),
    ("read what the system tells of us", |_| fs::read("/proc/self/environ").map(drop)),
    ("list a folder", |place| fs::read_dir(place.dir.path()).map(drop)),
    ("write to a file", |place| OpenOptions::new().append(true).open(place.at("file")).map(drop)),
    ("empty a file", |place| File::create(place.at("file")).map(drop)),
    ("create a file", |place| File::create_new(place.at("new")).map(drop)),
    ("make a folder", |place| fs::create_dir(place.at("folder"))),
    ("rename a file", |place| rename(place.at("file"), place.at("renamed"))),
    ("take a file out", |place| rename(place.at("root/file"), place.at("taken out"))),
    ("take a file in", |place| rename(place.at("renamed"), place.at("root/file"))),
    ("take in a name of a file", |place| hard_link(place.at("taken out"), place.at("root/named"))),
    ("put out a name of a file", |place| hard_link(place.at("root/file"), place.at("named"))),
    ("empty a file inside", |place| File::create(place.at("root/file")).map(drop)),
    ("move a file inside", |place| rename(place.at("root/file"), place.at("root/folder/file"))),
    ("remove a file", |place| fs::remove_file(place.at("taken out"))),
    ("remove a folder", |place| fs::remove_dir(place.at("empty"))),
    ("make a link", |place| symlink("file", place.at("root/to file"))),
    ("make a pipe", |place| place.node("root/pipe", FileType::Fifo)),
    ("make a socket", |place| UnixListener::bind(place.at("root/socket")).map(drop)),
    ("make a device", |place| place.node("root/null", FileType::CharacterDevice)),
    ("run a program", |_| run("/bin/sh".as_ref())),
    ("run a program of the root", |place| run(&place.at("root/program"))),
    ("connect", |place| TcpStream::connect(place.listener.local_addr()?).map(drop)),
    ("listen", |_| TcpListener::bind("127.0.0.1:0").map(drop)),
    ("connect to a socket that is no file", |place| {
        UnixStream::connect_addr(&place.unnamed.local_addr()?).map(drop)
    }),
    ("signal another process", |place| Ok(test_kill_process(Pid::from_child(&place.process))?)),
];

fn run(program: &Path) -> io::Result<()> {
    loop {
        match Command::new(program).args(["-c", ""]).status() {
            // A process that another test is just starting may still hold ours open for writing.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
            outcome => return outcome.map(drop),
        }
    }
}

/// Attempts that work here without the sandbox: only root can make devices.
fn attempts() -> impl Iterator<Item = &'static Attempt> {
    ATTEMPTS
        .iter()
        .filter(|(what, _)| *what != "make a device" || is_root_to_check("devices in the sandbox"))
}

/// Control experiment: it is the sandbox that refuses, not the machine.
#[test]
fn without_the_sandbox_everything_outside_can_be_done() {
    let place = RootAndOutside::new();
    for (what, attempt) in attempts() {
        attempt(&place).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

fn refuse<'a>(place: &RootAndOutside, attempts: impl Iterator<Item = &'a Attempt>) {
    for (what, attempt) in attempts {
        let refused = attempt(place).expect_err(what).raw_os_error().map(Errno::from_raw_os_error);
        // A move between folders fails as if they were on two file systems.
        let expected = [Errno::ACCESS, Errno::PERM, Errno::XDEV];
        assert!(refused.is_some_and(|refused| expected.contains(&refused)), "{what}: {refused:?}");
    }
}

#[test]
fn in_the_sandbox_nothing_outside_can_be_done() {
    let place = RootAndOutside::where_others_moved();
    let before = place.contents();
    let refuse_all = || refuse(&place, attempts());
    in_sandbox(&place.at("root"), Access::ReadWrite, || {
        refuse_all();
        // And so are the threads that come after.
        thread::scope(|scope| scope.spawn(refuse_all).join()).unwrap();
    });
    assert_eq!(place.contents(), before);
    // Threads that were there before are not: one that enters speaks for itself.
    fs::read(place.at("file")).unwrap();
}

// --- services that may be called

/// Files that are read to look up a name.
const RESOLVER_FILES: [&str; 5] =
    ["/etc/nsswitch.conf", "/etc/host.conf", "/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf"];

#[test]
fn who_is_known_by_an_address_can_be_called_and_nobody_else() {
    let place = RootAndOutside::where_others_moved();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = place.listener.local_addr().unwrap().port();
    in_sandbox_allowing(
        &place.at("root"),
        AllowedService { port, host_form: HostForm::Address },
        || {
            TcpStream::connect(("127.0.0.1", port)).unwrap();
            let refused = TcpStream::connect(other.local_addr().unwrap()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            refuse(&place, attempts().filter(|(what, _)| *what != "connect"));
            for path in RESOLVER_FILES.iter().filter(|path| Path::new(path).exists()) {
                assert_eq!(fs::read(path).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            }
            TcpListener::bind(("127.0.0.1", port)).unwrap_err();
        },
    );
}

#[test]
fn who_is_known_by_a_name_can_be_looked_up_and_called() {
    let place = RootAndOutside::where_others_moved();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = place.listener.local_addr().unwrap().port();
    in_sandbox_allowing(
        &place.at("root"),
        AllowedService { port, host_form: HostForm::Name },
        || {
            TcpStream::connect(("localhost", port)).unwrap();
            for path in RESOLVER_FILES.iter().filter(|path| Path::new(path).exists()) {
                fs::read(path).unwrap();
                let refused = OpenOptions::new().append(true).open(path).unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{path}");
            }
            for path in ["/etc/passwd", "/etc"] {
                let refused = File::open(path).unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{path}");
            }
            let refused = TcpStream::connect(other.local_addr().unwrap()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            refuse(&place, attempts().filter(|(what, _)| *what != "connect"));
        },
    );
}

// --- what is inside

/// The file `below` a folder.
fn file(dir: &Path, below: &str) -> FilePath {
    Root::open(dir).unwrap().absolute(dir.join(below).to_str().unwrap()).unwrap()
}

/// Writes a file, making the folders it is in.
fn write(store: &dyn Store, at: &FilePath, text: &str) -> Result<Saved, UpdateError<()>> {
    let updater = Updater::new(store).with_missing_folders(MissingFolders::Create);
    updater.update_one(at, &call(), |_| Ok((Change::write(text), ()))).map(|(saved, ())| saved)
}

fn remove(store: &dyn Store, at: FilePath) -> Result<Vec<Saved>, StoreError> {
    store.update(&[at], &call(), &mut |_| Ok(vec![Change::Remove]))
}

fn list(store: &dyn Store) -> Vec<String> {
    let mut names = Vec::new();
    let mut each = |entry: Entry| {
        names.push(entry.name.into_string().unwrap());
        ControlFlow::Continue(())
    };
    store.list(&DirPath::root(), &call(), &mut each).unwrap();
    names.sort();
    names
}

/// Everything a server does.
fn work(store: &dyn Store, dir: &Path) {
    append(store, &at("edited"), " two", &call()).unwrap();
    append(store, &at("link"), " three", &call()).unwrap();
    assert!(append(store, &at("created"), "new", &call()).unwrap().created);
    remove(store, at("removed")).unwrap();
    let read = store.read(&at("link"), &call()).unwrap().unwrap();
    assert_eq!(*read.bytes, b"one two three");
    assert_eq!(list(store), ["created", "edited", "link"]);
    assert!(write(store, &file(dir, "x/y/z/new"), "deep").unwrap().created);
    // Folders that were made in vain are taken back.
    let too_large = "x".repeat(2000);
    write(store, &file(dir, "v/w/new"), &too_large).unwrap_err();
    // Figures that the server reports of itself.
    let before = usage::now().unwrap();
    assert!(before.memory > 0 && before.cores > 0);
    assert!(usage::now().unwrap().at >= before.at);
}

#[test]
fn our_own_work_is_done_as_well_in_the_sandbox_as_outside() {
    for durability in [Durability::None, Durability::Data, Durability::Full] {
        for temps in [|store| store, DiskStore::with_named_temp_files] {
            for before in [false, true] {
                let disk = Disk::new();
                let dir = disk.dir.path();
                disk.put("edited", "one");
                disk.put("removed", "one");
                symlink("edited", dir.join("link")).unwrap();
                let store = temps(crate::common::open_with(dir, durability));
                if before {
                    work(&store, dir);
                } else if in_sandbox(dir, Access::ReadWrite, || work(&store, dir)).is_none() {
                    return;
                }
                assert_eq!(disk.names("."), ["created", "edited", "link", "x"]);
                assert_eq!(disk.text("x/y/z/new"), "deep");
                disk.put("theirs", "");
                let mode = |name| fs::metadata(dir.join(name)).unwrap().mode();
                assert_eq!(mode("created"), mode("theirs"));
            }
        }
    }
}

#[test]
fn a_lock_is_waited_for_in_the_sandbox() {
    let disk = Disk::new();
    disk.put("a", "one");
    let held = File::open(disk.dir.path().join("a")).unwrap();
    held.lock().unwrap();
    in_sandbox(disk.dir.path(), Access::ReadWrite, || {
        let outcome = append(&disk.store, &at("a"), " two", &call_for(Duration::from_millis(50)));
        assert!(matches!(outcome, Err(StoreError::LockTimeout { .. })), "{outcome:?}");
        held.unlock().unwrap();
        disk.append("a", " three").unwrap();
        assert_eq!(disk.text("a"), "one three");
    });
}

/// No tool is in between here: it is the sandbox alone that refuses.
#[test]
fn whoever_only_reads_can_do_nothing_else() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    disk.put("a", "one");
    fs::create_dir(dir.join("folder")).unwrap();
    in_sandbox(dir, Access::ReadOnly, || {
        assert_eq!(disk.read("a").unwrap().unwrap(), "one");
        assert_eq!(list(&disk.store), ["a"]);
        let is_denied = |outcome: Result<Saved, UpdateError<()>>| {
            matches!(outcome, Err(UpdateError::Store(StoreError::Denied { .. })))
        };
        assert!(is_denied(write(&disk.store, &at("a"), "two")));
        assert!(is_denied(write(&disk.store, &at("new"), "two")));
        assert!(is_denied(write(&disk.store, &file(dir, "x/new"), "two")));
        let removed = remove(&disk.store, at("a"));
        assert!(matches!(removed, Err(StoreError::Denied { .. })), "{removed:?}");
        for refused in [
            fs::write(dir.join("a"), "two"),
            fs::write(dir.join("new"), "two"),
            fs::remove_file(dir.join("a")),
            fs::create_dir(dir.join("new")),
            fs::remove_dir(dir.join("folder")),
            rename(dir.join("a"), dir.join("b")),
        ] {
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
    });
    assert_eq!(disk.names("."), ["a", "folder"]);
    assert_eq!(disk.text("a"), "one");
}

// --- the sandbox itself

#[test]
fn the_sandbox_is_around_the_folder_whatever_its_name() {
    let place = TempDir::new().unwrap();
    let [real, link, renamed] = ["real", "link", "renamed"].map(|name| place.path().join(name));
    fs::create_dir(&real).unwrap();
    fs::write(real.join("a"), "one").unwrap();
    symlink(&real, &link).unwrap();
    let store = crate::common::open(&link);
    let (entered, is_entered) = mpsc::channel();
    let (renaming, is_renamed) = mpsc::channel();
    thread::scope(|scope| {
        let (real, renamed) = (&real, &renamed);
        scope.spawn(move || {
            let Ok(()) = is_entered.recv() else { return };
            rename(real, renamed).unwrap();
            // Somebody else's folder has the name now.
            fs::create_dir(real).unwrap();
            fs::write(real.join("a"), "another").unwrap();
            renaming.send(()).unwrap();
        });
        in_sandbox(&link, Access::ReadWrite, move || {
            append(&store, &at("a"), " two", &call()).unwrap();
            entered.send(()).unwrap();
            is_renamed.recv().unwrap();
            append(&store, &at("a"), " three", &call()).unwrap();
            fs::read(real.join("a")).unwrap_err();
            assert_eq!(fs::read_to_string(renamed.join("a")).unwrap(), "one two three");
        });
    });
}

/// Linux lets a process enter at most sixteen sandboxes.
#[test]
fn a_sandbox_that_cannot_be_entered_is_told_and_stops_nobody() {
    let disk = Disk::new();
    in_sandbox(disk.dir.path(), Access::ReadWrite, || {
        let root = Root::open(disk.dir.path()).unwrap();
        let outcomes: Vec<_> = (0..16).map(|_| Sandbox::enter(&root, Access::ReadWrite)).collect();
        let (last, others) = outcomes.split_last().unwrap();
        assert!(others.iter().all(|outcome| *outcome == Sandbox::Landlock), "{others:?}");
        assert_eq!(last.to_string(), "failed");
        assert!(matches!(last, Sandbox::Failed(reason) if !reason.is_empty()), "{last:?}");
        disk.append("a", "one").unwrap();
    });
}
