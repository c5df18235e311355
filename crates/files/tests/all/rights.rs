//! Files and folders that the process has no right to. The tests may run as root, which has every right, so they give
//! rights up first.

use std::{
    fs::{self, Permissions},
    ops::ControlFlow,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::Path,
    thread,
};

use crate::common::{Disk, append, at, call, is_root_to_check, not_checked, open_with};
use files::{
    DirPath, Durability, Durable, Root, Store, StoreError, machine, probe,
    tree::{Globs, Skipped, TreeOptions, visit},
};
use rustix::{
    fs::{XattrFlags, getxattr, setxattr},
    process::{Uid, geteuid},
    thread::{CapabilitySet, CapabilitySets, set_capabilities, set_thread_uid},
};

/// Runs `act` on a thread that gives up rights first; threads that are started by it have given them up, too.
fn without<T: Send>(give_up: impl FnOnce() + Send, act: impl FnOnce() -> T + Send) -> T {
    let run = || {
        give_up();
        act()
    };
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// Runs `act` as a user whom the modes of files bind, even if the tests run as root.
fn with_few_rights<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    without(|| set_capabilities(None, sets).unwrap(), act)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn is_denied<T>(outcome: &Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Denied { .. }))
}

/// Runs `act` on a thread to which the kernel denies one system call.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn with_denied<T: Send>(number: libc::c_long, act: impl FnOnce() -> T + Send) -> T {
    let deny = || {
        let statement = |code: u32, k: u32, jf| libc::sock_filter {
            code: u16::try_from(code).unwrap(),
            jt: 0,
            jf,
            k,
        };
        let filter = [
            // The number of the call comes first in what is looked at.
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            statement(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                u32::try_from(number).unwrap(),
                1,
            ),
            statement(
                libc::BPF_RET | libc::BPF_K,
                libc::SECCOMP_RET_ERRNO | libc::EACCES as u32,
                0,
            ),
            statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
        ];
        let program = libc::sock_fprog {
            len: u16::try_from(filter.len()).unwrap(),
            filter: filter.as_ptr().cast_mut(),
        };
        #[expect(unsafe_code, reason = "nothing else sets a filter")]
        // SAFETY: the filter lives until the kernel has copied it, and only this thread gets it.
        unsafe {
            assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
        }
    };
    without(deny, act)
}

/// The old file had no access list, and the folder gives one to every new file: with it a stranger could read the text.
#[test]
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn an_access_list_of_the_folder_that_cannot_be_removed_stops_the_edit() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    disk.put("a", "one");
    set_mode(&dir.join("a"), 0o640);
    // Version; then tag, rights and id of the owner, user 1234, the group, the mask and all others.
    let entries = [
        (0x01, 6, u32::MAX),
        (0x02, 6, 1234),
        (0x04, 0, u32::MAX),
        (0x10, 6, u32::MAX),
        (0x20, 0, u32::MAX),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend([u16::to_le_bytes(tag), u16::to_le_bytes(rights)].concat());
        list.extend(u32::to_le_bytes(id));
    }
    if setxattr(dir, "system.posix_acl_default", &list, XattrFlags::empty()).is_err() {
        return not_checked("access lists of a folder", "a file system with access lists");
    }
    let refused = with_denied(libc::SYS_fremovexattr, || disk.append("a", " two"));
    assert!(is_denied(&refused), "{refused:?}");
    assert_eq!((disk.text("a").as_str(), disk.names(".")), ("one", vec!["a".to_owned()]));
    disk.append("a", " two").unwrap();
    assert!(getxattr(dir.join("a"), "system.posix_acl_access", &mut [0; 64]).is_err());
}

#[test]
fn a_file_that_may_not_be_read_is_denied() {
    let disk = Disk::new();
    disk.put("a", "one");
    set_mode(&disk.dir.path().join("a"), 0o000);
    with_few_rights(|| {
        assert!(is_denied(&disk.read("a")));
        assert!(is_denied(&disk.append("a", "two")));
        let listed = disk.store.read_listed(&at("a"), &mut Vec::new(), &call());
        assert!(is_denied(&listed));
        assert!(!machine::is_readable(&disk.dir.path().join("a")));
    });
    assert_eq!((disk.text("a").as_str(), disk.names(".")), ("one", vec!["a".to_owned()]));
}

#[test]
fn a_file_that_may_only_be_read_is_not_replaced() {
    let disk = Disk::new();
    disk.put("a", "one");
    set_mode(&disk.dir.path().join("a"), 0o444);
    with_few_rights(|| {
        assert_eq!(disk.read("a").unwrap().unwrap(), "one");
        assert!(is_denied(&disk.append("a", "two")));
    });
    assert_eq!((disk.text("a").as_str(), disk.names(".")), ("one", vec!["a".to_owned()]));
}

#[test]
fn nothing_is_made_in_a_folder_that_may_only_be_read() {
    for disk in [Disk::new(), Disk::with_named_temp_files()] {
        let dir = disk.dir.path();
        disk.put("a", "one");
        set_mode(dir, 0o555);
        with_few_rights(|| {
            assert!(is_denied(&disk.append("a", "two")));
            assert!(is_denied(&disk.append("b", "two")));
            assert_eq!(disk.read("a").unwrap().unwrap(), "one");
            let root = Root::open(dir).unwrap();
            assert!(!root.is_writable());
            assert!(probe::has_hard_links(&root).is_err());
            let folder = root.folder("sub/deep").unwrap();
            assert!(is_denied(&disk.store.make_folders(&folder, &call())));
        });
        set_mode(dir, 0o755);
        assert!(Root::open(dir).unwrap().is_writable());
        assert_eq!((disk.text("a").as_str(), disk.names(".")), ("one", vec!["a".to_owned()]));
    }
}

#[test]
fn a_folder_that_may_not_be_entered_is_passed_by() {
    let disk = Disk::new();
    let dir = disk.dir.path();
    for folder in ["closed", "open", "unlisted"] {
        fs::create_dir(dir.join(folder)).unwrap();
        disk.put(&format!("{folder}/a"), "text");
    }
    disk.put("closed.txt", "text");
    for (name, mode) in [("closed", 0o000), ("closed.txt", 0o000), ("unlisted", 0o311)] {
        set_mode(&dir.join(name), mode);
    }
    let root = Root::open(dir).unwrap();
    with_few_rights(|| {
        let inside = root.relative("closed/a").unwrap();
        assert!(is_denied(&disk.store.read(&inside, &call())));
        assert!(is_denied(&append(&disk.store, &inside, "!", &call())));
        let all = |_| ControlFlow::Continue(());
        let listed = disk.store.list(&root.folder("closed").unwrap(), &call(), &mut all.clone());
        assert!(is_denied(&listed));

        let mut walked = Vec::new();
        let each = &mut |entry: files::Entry| {
            walked.push(entry.name.into_string().unwrap());
            ControlFlow::Continue(())
        };
        disk.store.walk("", &call(), each).unwrap();
        assert_eq!(walked, ["closed.txt", "open/a"]);

        let options = TreeOptions {
            within: DirPath::root(),
            globs: Globs::default(),
            hidden: false,
            ignored: false,
            max_size: 1000,
        };
        let visited = visit(&root, &options, &call(), Vec::new, |texts, file| {
            texts.extend(file.text().map(String::from));
            ControlFlow::Continue(())
        });
        let visited = visited.unwrap();
        assert_eq!(visited.states.concat(), ["text"]);
        assert_eq!(visited.skipped, Skipped { unreadable: 3, ..Skipped::default() });
    });
    for name in ["closed", "unlisted"] {
        set_mode(&dir.join(name), 0o755);
    }
}

/// The folder cannot be opened, which takes the right to read it; a name in it can be made all the same.
#[test]
fn what_cannot_be_made_durable_is_told() {
    let disk = Disk::new();
    let (dir, folder) = (disk.dir.path(), disk.dir.path().join("unlisted"));
    fs::create_dir(&folder).unwrap();
    let store = open_with(dir, Durability::Full);
    let path = Root::open(dir).unwrap().relative("unlisted/a").unwrap();
    let write = || append(&store, &path, "one", &call()).unwrap().durable;
    assert_eq!(write(), Durable::Yes);
    set_mode(&folder, 0o311);
    assert_eq!(with_few_rights(write), Durable::Unknown);
    set_mode(&folder, 0o755);
    assert_eq!(disk.text("unlisted/a"), "oneone");
}

/// A user who may not give files away owns the new one: rights that were meant for others are taken back, and reported.
#[test]
fn a_file_of_somebody_else_becomes_ours() {
    let us = (geteuid().as_raw(), rustix::process::getegid().as_raw());
    if !is_root_to_check("files of another user") {
        return;
    }
    for (owner, before, after, lost) in [
        (us, 0o6676, 0o0676, &[][..]),
        ((1234, us.1), 0o6676, 0o0676, &["owner"]),
        ((1234, 4321), 0o0666, 0o0666, &["owner", "group"]),
        ((1234, 4321), 0o2676, 0o0666, &["owner", "group", "mode"]),
    ] {
        for disk in [Disk::new(), Disk::with_named_temp_files()] {
            let path = disk.dir.path().join("a");
            disk.put("a", "one");
            chown(&path, Some(owner.0), Some(owner.1)).unwrap();
            set_mode(&path, before);
            let saved = with_few_rights(|| disk.append("a", " two")).unwrap();
            let found = fs::metadata(&path).unwrap();
            assert_eq!((found.uid(), found.gid()), us, "{before:o}");
            assert_eq!(format!("{:o}", found.mode() & 0o7777), format!("{after:o}"));
            assert_eq!((saved.lost.as_slice(), disk.text("a").as_str()), (lost, "one two"));
        }
    }
}

#[test]
fn an_attribute_that_only_root_may_set_is_told_to_be_lost() {
    let disk = Disk::new();
    let path = disk.dir.path().join("a");
    disk.put("a", "one");
    let set = |name: &str| setxattr(&path, name, b"x", XattrFlags::empty());
    if set("security.ours").is_err() || set("user.ours").is_err() {
        return not_checked("extended attributes that only root may set", "root");
    }
    let saved = with_few_rights(|| disk.append("a", " two")).unwrap();
    assert_eq!((saved.lost, disk.text("a").as_str()), (vec!["extended attributes"], "one two"));
    let mut value = [0; 1];
    assert_eq!(getxattr(&path, "user.ours", &mut value), Ok(1));
}

#[test]
fn what_somebody_else_left_is_left_to_them() {
    if !is_root_to_check("leftovers of another user") {
        return;
    }
    let disk = Disk::new();
    let dir = disk.dir.path();
    let [ours, theirs] = [".fe-1-0123456789abcdef.tmp", ".fe-2-0123456789abcdef.tmp"];
    for name in [ours, theirs] {
        disk.put(name, "left");
        set_mode(&dir.join(name), 0o666);
    }
    chown(dir.join(ours), Some(1234), None).unwrap();
    set_mode(dir, 0o777);
    without(|| set_thread_uid(Uid::from_raw(1234)).unwrap(), || disk.append("a", "one")).unwrap();
    assert_eq!(disk.names("."), [theirs, "a"]);
}
