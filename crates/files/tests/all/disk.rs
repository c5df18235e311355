//! The store on a real disk: what is kept, what is refused, what is left behind.

use std::{
    ffi::OsStr,
    fs::{self, File, Permissions},
    ops::ControlFlow,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, chown, symlink},
        net::UnixListener,
    },
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::common::{Disk, MAX, append, at, call, call_for, is_root_to_check, not_checked};
use files::{
    Change, DirPath, DiskOptions, DiskStore, Durability, Durable, Hash, LineCounts, MemoryStore,
    Root, Saved, Store, StoreError, Version,
};
use rustix::fs::{
    CWD, FileType, FlockOperation, Mode, XattrFlags, flock, getxattr, mknodat, setxattr,
};
use text::LineRange;

/// Both ways to a temporary file.
fn disks() -> [Disk; 2] {
    [Disk::new(), Disk::with_named_temp_files()]
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn assert_denied<T: std::fmt::Debug>(outcome: &Result<T, StoreError>, reason: &str) {
    let found = matches!(outcome, Err(StoreError::Denied { reason: Some(found) }) if found.contains(reason));
    assert!(found, "{outcome:?}, not {reason}");
}

// --- what an edit keeps

#[test]
fn the_mode_is_kept() {
    for disk in disks() {
        for bits in [0o755, 0o640, 0o600, 0o666, 0o777, 0o1700] {
            disk.put("a", "one");
            let path = disk.dir.path().join("a");
            fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
            disk.append("a", " two").unwrap();
            assert_eq!(disk.text("a"), "one two");
            assert_eq!(mode(&path), bits, "{bits:o}");
        }
    }
}

#[test]
fn a_new_file_has_the_mode_every_new_file_has() {
    for disk in disks() {
        disk.append("ours", "one").unwrap();
        disk.put("theirs", "one");
        assert_eq!(mode(&disk.dir.path().join("ours")), mode(&disk.dir.path().join("theirs")));
    }
}

#[test]
fn the_owner_is_kept() {
    if !is_root_to_check("the owner of an edited file") {
        return;
    }
    for disk in disks() {
        disk.put("a", "one");
        let path = disk.dir.path().join("a");
        chown(&path, Some(1234), Some(4321)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o6750)).unwrap();
        disk.append("a", " two").unwrap();
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (1234, 4321, 0o750));
    }
}

/// The kernel takes them away from a file that is written to; a new file must not get them back.
#[test]
#[cfg(target_os = "linux")]
fn privileges_go_when_contents_change() {
    // Version 2, effective: CAP_NET_RAW permitted.
    let capabilities: Vec<u8> =
        [0x0200_0001_u32, 1 << 13, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    for disk in disks() {
        disk.put("a", "one");
        let path = disk.dir.path().join("a");
        fs::set_permissions(&path, Permissions::from_mode(0o6755)).unwrap();
        let has_capabilities = set_attribute(&path, "security.capability", &capabilities);
        assert!(has_capabilities || !is_root_to_check("file capabilities"));
        set_attribute(&path, "user.note", b"hello");
        let note = attribute(&path, "user.note");

        let kept = disk.store.update(&[at("a")], &call(), &mut |_| Ok(vec![Change::Keep])).unwrap();
        assert!(!kept[0].drops_privileges);
        assert_eq!(mode(&path) & 0o7777, 0o6755);
        assert_eq!(attribute(&path, "security.capability").is_some(), has_capabilities);

        let saved = disk.append("a", " two").unwrap();
        assert!(saved.drops_privileges && saved.lost.is_empty(), "{:?}", saved.lost);
        assert_eq!(mode(&path) & 0o7777, 0o755);
        assert_eq!(attribute(&path, "security.capability"), None);
        assert_eq!(attribute(&path, "user.note"), note);
        assert!(!disk.append("a", " three").unwrap().drops_privileges);
    }
}

/// `system.posix_acl_access`: version, then tag, permissions and id of each entry. It ends in the mask and others.
fn acl(named_user: u16, mask: u16) -> Vec<u8> {
    const ANY: u32 = u32::MAX;
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in [
        (0x01, 6, ANY),
        (0x02, named_user, 1234),
        (0x04, 0, ANY),
        (0x10, mask, ANY),
        (0x20, 0, ANY),
    ] {
        bytes.extend(u16::to_le_bytes(tag));
        bytes.extend(u16::to_le_bytes(rights));
        bytes.extend(u32::to_le_bytes(id));
    }
    bytes
}

/// `None`: there is none. Asks with room for all we set.
fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = Vec::with_capacity(256);
    getxattr(path, name, rustix::buffer::spare_capacity(&mut value)).ok()?;
    Some(value)
}

const ACCESS_LISTS: &str = "a file system with access lists";

/// False where the file system has no such attributes.
fn set_attribute(path: &Path, name: &str, value: &[u8]) -> bool {
    setxattr(path, name, value, XattrFlags::empty()).is_ok()
}

#[test]
fn attributes_are_kept() {
    for disk in disks() {
        disk.put("a", "one");
        let path = disk.dir.path().join("a");
        let kept = [
            ("user.note", b"hello".to_vec()),
            ("user.empty", vec![]),
            ("system.posix_acl_access", acl(6, 6)),
        ];
        let set: Vec<_> =
            kept.iter().filter(|(name, value)| set_attribute(&path, name, value)).collect();
        if set.len() < kept.len() {
            not_checked("all extended attributes", ACCESS_LISTS);
        }
        let before = mode(&path);
        disk.append("a", " two").unwrap();
        assert_eq!(disk.text("a"), "one two");
        for (name, value) in set {
            assert_eq!(attribute(&path, name).as_ref(), Some(value), "{name}");
        }
        assert_eq!(mode(&path), before);
    }
}

#[test]
fn a_folders_default_acl_is_for_new_files_only() {
    for disk in disks() {
        disk.put("old", "one");
        let old = disk.dir.path().join("old");
        fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
        if !set_attribute(disk.dir.path(), "system.posix_acl_default", &acl(6, 6)) {
            return not_checked("default access lists", ACCESS_LISTS);
        }
        disk.append("old", " two").unwrap();
        assert_eq!(attribute(&old, "system.posix_acl_access"), None);
        assert_eq!(mode(&old), 0o644);

        disk.append("ours", "one").unwrap();
        disk.put("theirs", "one");
        let [ours, theirs] = ["ours", "theirs"].map(|name| disk.dir.path().join(name));
        assert_eq!(
            attribute(&ours, "system.posix_acl_access"),
            attribute(&theirs, "system.posix_acl_access")
        );
        assert_eq!(mode(&ours), mode(&theirs));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_nobody_may_read_still_says_what_new_files_are_like() {
    use rustix::thread::{Uid, set_thread_res_uid};
    if !is_root_to_check("new files in a folder that its owner may not read") {
        return;
    }
    for disk in disks() {
        if !set_attribute(disk.dir.path(), "system.posix_acl_default", &acl(6, 6)) {
            return not_checked("default access lists", ACCESS_LISTS);
        }
        fs::set_permissions(disk.dir.path(), Permissions::from_mode(0o733)).unwrap();
        let nobody = Uid::from_raw(65534);
        thread::scope(|scope| {
            scope.spawn(|| {
                set_thread_res_uid(nobody, nobody, nobody).unwrap();
                disk.append("ours", "one").unwrap();
            });
        });
        disk.put("theirs", "one");
        let [ours, theirs] = ["ours", "theirs"].map(|name| disk.dir.path().join(name));
        assert_eq!(mode(&ours), mode(&theirs));
        assert_eq!(
            attribute(&ours, "system.posix_acl_access"),
            attribute(&theirs, "system.posix_acl_access")
        );
    }
}

#[test]
fn other_hard_links_keep_the_old_text() {
    for disk in disks() {
        disk.put("a", "one");
        for name in ["b", "c"] {
            fs::hard_link(disk.dir.path().join("a"), disk.dir.path().join(name)).unwrap();
        }
        assert_eq!(disk.append("a", " two").unwrap().links, 2);
        assert_eq!((disk.text("a"), disk.text("b")), ("one two".into(), "one".into()));
        assert_eq!(disk.append("a", " three").unwrap().links, 0);
        assert_eq!(disk.append("b", " more").unwrap().links, 1);
    }
}

#[test]
fn durability_is_reported() {
    for (durability, durable) in [
        (Durability::None, Durable::No),
        (Durability::Data, Durable::No),
        (Durability::Full, Durable::Yes),
    ] {
        let disk = Disk::new();
        let store = crate::common::open_with(disk.dir.path(), durability);
        for created in [true, false] {
            let saved = append(&store, &at("a"), "x", &call()).unwrap();
            assert_eq!((saved.created, saved.durable), (created, durable));
        }
    }
}

// --- links

#[test]
fn a_link_inside_is_followed_and_kept() {
    for disk in disks() {
        let root = disk.dir.path();
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        disk.put("sub/target", "one");
        let links = [
            ("plain", "sub/target"),
            ("chain", "plain"),
            ("sub/up", "../chain"),
            ("far", "sub/up"),
            ("folder", "sub/deep"),
            // `folder/..` is `sub`, not the root.
            ("through", "folder/../target"),
            ("dots", "./sub/./target"),
        ];
        for (link, target) in links {
            symlink(target, root.join(link)).unwrap();
        }
        for (count, name) in ["plain", "chain", "far", "through", "dots"].into_iter().enumerate() {
            assert_eq!(
                disk.read(name).unwrap().unwrap(),
                format!("one{}", "!".repeat(count)),
                "{name}"
            );
            disk.append(name, "!").unwrap();
        }
        assert_eq!(disk.text("sub/target"), "one!!!!!");
        for (link, target) in links {
            assert_eq!(fs::read_link(root.join(link)).unwrap(), Path::new(target), "{link}");
        }
        assert_eq!(
            disk.names("sub"),
            ["deep", "target", "up"],
            "the temporary file was there and is gone"
        );
    }
}

#[test]
fn a_link_that_leaves_is_refused() {
    let disk = Disk::new();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let root = disk.dir.path();
    disk.put("inside", "one");
    fs::create_dir(root.join("sub")).unwrap();
    let above = Path::new("..").join(outside.path().file_name().unwrap());
    let out = "leads outside";
    let absolute = "absolute links";
    let links = [
        ("out", above.join("secret"), out),
        ("chain", "out".into(), out),
        ("dangling-out", above.join("missing"), out),
        ("parent", "..".into(), out),
        ("high", "../../../../../../etc/passwd".into(), out),
        ("to-absolute", secret.clone(), absolute),
        ("inside-absolute", root.join("inside"), absolute),
        ("proc", "/proc/self/root/etc/passwd".into(), absolute),
        ("loop", "loop".into(), "too many links"),
    ];
    for (link, target, reason) in links {
        symlink(target, root.join(link)).unwrap();
        assert_denied(&disk.read(link), reason);
        assert_denied(&disk.append(link, "!"), reason);
    }
    // A folder that leads outside, met on the way.
    symlink(&above, root.join("way")).unwrap();
    symlink("way/secret", root.join("by-the-way")).unwrap();
    assert_denied(&disk.read("by-the-way"), out);
    assert_denied(&disk.append("by-the-way", "!"), out);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

/// A server that wrote to such a name would have the file removed by the next sweep.
#[test]
fn a_link_to_the_name_of_a_temporary_file_is_refused() {
    for disk in disks() {
        let root = disk.dir.path();
        symlink(".fe-1-0123456789abcdef.tmp", root.join("link")).unwrap();
        symlink("link", root.join("chain")).unwrap();
        for link in ["link", "chain"] {
            assert_denied(&disk.read(link), "temporary file");
            assert_denied(&disk.append(link, "!"), "temporary file");
        }
        assert_eq!(disk.names("."), ["chain", "link"]);
    }
}

#[test]
fn forty_links_are_enough_for_anyone() {
    let disk = Disk::new();
    disk.put("0", "one");
    for link in 1..=41 {
        symlink((link - 1).to_string(), disk.dir.path().join(link.to_string())).unwrap();
    }
    assert_eq!(disk.read("40").unwrap().unwrap(), "one");
    assert_denied(&disk.read("41"), "too many links");
}

#[test]
fn a_dangling_link_reads_as_missing_and_writes_its_target() {
    for disk in disks() {
        let root = disk.dir.path();
        fs::create_dir(root.join("sub")).unwrap();
        symlink("sub/target", root.join("a")).unwrap();
        symlink("nowhere/target", root.join("b")).unwrap();
        assert_eq!(disk.read("a").unwrap(), None);
        assert_eq!(disk.read("b").unwrap(), None);
        assert!(disk.append("a", "one").unwrap().created);
        assert_eq!(disk.text("sub/target"), "one");
        assert!(fs::symlink_metadata(root.join("a")).unwrap().is_symlink());
        assert!(matches!(disk.append("b", "one"), Err(StoreError::NoFolder)));
    }
}

#[test]
fn two_paths_may_be_one_file() {
    for disk in disks() {
        disk.put("a", "one");
        symlink("a", disk.dir.path().join("link")).unwrap();
        let both = [at("link"), at("a")];
        let write = |text: &str| Change::write(text);
        let update =
            |changes: Vec<Change>| disk.store.update(&both, &call(), &mut |_| Ok(changes.clone()));

        let saved = update(vec![Change::Keep, write("two")]).unwrap();
        assert_eq!(saved[0], saved[1]);
        update(vec![write("three"), write("three")]).unwrap();
        assert_eq!(disk.text("a"), "three");
        assert!(matches!(update(vec![write("four"), write("five")]), Err(StoreError::SameFile)));
        assert_eq!(disk.text("a"), "three");

        // Two names of one file are two files to a writer, with one lock.
        fs::hard_link(disk.dir.path().join("a"), disk.dir.path().join("b")).unwrap();
        disk.store
            .update(&[at("a"), at("b")], &call(), &mut |_| Ok(vec![write("for a"), write("for b")]))
            .unwrap();
        assert_eq!((disk.text("a"), disk.text("b")), ("for a".into(), "for b".into()));
        assert_eq!(disk.names("."), ["a", "b", "link"]);
    }
}

// --- what is no text file, or not ours to write

#[test]
fn what_is_not_a_regular_file_is_refused_at_once() {
    let disk = Disk::new();
    let root = disk.dir.path();
    fs::create_dir(root.join("folder")).unwrap();
    mknodat(CWD, root.join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    for (link, target) in [
        ("to-fifo", "fifo"),
        ("to-folder", "folder"),
        ("slash", "file/"),
        ("dot", "folder/."),
        ("up", "folder/.."),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    disk.put("file", "");
    let mut names = vec!["folder", "fifo", "socket", "to-fifo", "to-folder", "dot", "up"];
    // As `null`, where we may make one.
    if mknodat(
        CWD,
        root.join("device"),
        FileType::CharacterDevice,
        Mode::RWXU,
        rustix::fs::makedev(1, 3),
    )
    .is_ok()
    {
        names.push("device");
    }
    let began = Instant::now();
    for name in names {
        let is_folder = !["fifo", "socket", "to-fifo", "device"].contains(&name);
        for error in [disk.read(name).unwrap_err(), disk.append(name, "!").unwrap_err()] {
            let told = matches!(error, StoreError::IsFolder);
            assert!(told || matches!(error, StoreError::NotRegular), "{name}: {error}");
            assert_eq!(told, is_folder, "{name}");
        }
    }
    assert_eq!(disk.read("slash").unwrap(), None);
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_file_nobody_may_write_is_refused_even_to_root() {
    let disk = Disk::new();
    disk.put("a", "one");
    fs::set_permissions(disk.dir.path().join("a"), Permissions::from_mode(0o444)).unwrap();
    assert_denied(&disk.append("a", "!"), "read-only");
    assert_eq!(disk.read("a").unwrap().unwrap(), "one");
    assert_eq!(disk.names("."), ["a"]);
}

#[test]
fn a_huge_file_is_refused_unread() {
    let disk = Disk::new();
    File::create(disk.dir.path().join("a")).unwrap().set_len(1 << 40).unwrap();
    for outcome in [disk.read("a").map(drop), disk.append("a", "!").map(drop)] {
        assert!(matches!(outcome, Err(StoreError::TooLarge { size: 1_099_511_627_776, max: MAX })));
    }
}

// --- races

#[test]
fn a_link_swapped_in_never_leads_outside() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let disk = Disk::new();
    let root = disk.dir.path();
    disk.put("a", "inside");
    let above = Path::new("..").join(outside.path().file_name().unwrap()).join("secret");
    let stop = AtomicBool::new(false);
    let swaps = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Targets of both kinds, and a file, in turn.
            for turn in 0.. {
                let next = root.join("next");
                match turn % 3 {
                    0 => symlink(&above, &next).unwrap(),
                    1 => symlink(&secret, &next).unwrap(),
                    _ => fs::write(&next, "inside").unwrap(),
                }
                fs::rename(&next, root.join("a")).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let began = Instant::now();
        let mut seen = 0;
        while began.elapsed() < Duration::from_secs(1) {
            if let Ok(Some(text)) = disk.read("a") {
                assert!(!text.contains("secret"), "{text}");
                seen += 1;
            }
            // It may be refused, or lose against the swaps; it must not write outside.
            let _ = append(&disk.store, &at("a"), "!", &call_for(Duration::from_millis(2)));
        }
        stop.store(true, Ordering::Relaxed);
        assert!(seen > 0);
    });
    assert!(swaps.into_inner() > 100);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(disk.names("."), ["a"]);
}

#[test]
fn an_outsider_who_renames_is_noticed() {
    for disk in disks() {
        disk.put("a", "one");
        let mut runs = 0;
        disk.store
            .update(&[at("a")], &call(), &mut |versions| {
                runs += 1;
                if runs == 1 {
                    disk.put("theirs", "two");
                    fs::rename(disk.dir.path().join("theirs"), disk.dir.path().join("a")).unwrap();
                } else if runs == 2 {
                    fs::remove_file(disk.dir.path().join("a")).unwrap();
                }
                let old =
                    versions[0].as_ref().map(|version| version.bytes.to_vec()).unwrap_or_default();
                Ok(vec![Change::write([&old, &b"!"[..]].concat())])
            })
            .unwrap();
        assert_eq!((runs, disk.text("a").as_str()), (3, "!"));
        assert_eq!(disk.names("."), ["a"]);
    }
}

#[test]
fn someone_who_never_stops_changing_the_file_wins_in_time() {
    let disk = Disk::new();
    disk.put("a", "one");
    let mut runs = 0;
    let outcome = disk.store.update(&[at("a")], &call_for(Duration::from_millis(200)), &mut |_| {
        runs += 1;
        disk.put("a", "x".repeat(runs));
        Ok(vec![Change::write(b"ours")])
    });
    assert!(matches!(outcome, Err(StoreError::TimedOut)));
    assert!(runs > 1);
    assert_eq!(disk.text("a"), "x".repeat(runs));
    assert_eq!(disk.names("."), ["a"]);
}

// --- the lock

/// Locks as another server would.
fn lock(disk: &Disk, name: &str) -> File {
    let file = File::open(disk.dir.path().join(name)).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    file
}

#[test]
fn a_held_lock_is_waited_for() {
    let disk = Disk::new();
    disk.put("a", "one");
    let held = lock(&disk, "a");
    assert_eq!(disk.read("a").unwrap().unwrap(), "one", "readers do not wait");

    let call = call();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| append(&disk.store, &at("a"), " two", &call));
        thread::sleep(Duration::from_millis(50));
        assert_eq!(disk.text("a"), "one");
        drop(held);
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(disk.text("a"), "one two");
    assert!(call.lock_wait() >= Duration::from_millis(10), "{:?}", call.lock_wait());
}

#[test]
fn a_held_lock_ends_the_call_in_time() {
    let disk = Disk::new();
    disk.put("a", "one");
    let _held = lock(&disk, "a");
    let late = call_for(Duration::from_millis(50));
    assert!(matches!(
        append(&disk.store, &at("a"), "!", &late),
        Err(StoreError::LockTimeout { .. })
    ));
    let (cancelled, stopping) = (call(), call());
    thread::scope(|scope| {
        let one = scope.spawn(|| append(&disk.store, &at("a"), "!", &cancelled));
        let two = scope.spawn(|| append(&disk.store, &at("a"), "!", &stopping));
        thread::sleep(Duration::from_millis(20));
        cancelled.cancel.set();
        stopping.stop.set();
        assert!(matches!(one.join().unwrap(), Err(StoreError::Cancelled)));
        assert!(matches!(two.join().unwrap(), Err(StoreError::Stopping)));
    });
    assert_eq!(disk.text("a"), "one");
}

#[test]
fn whoever_has_the_lock_finishes_though_the_server_stops() {
    let disk = Disk::new();
    disk.put("a", "one");
    let stopping = call();
    let saved = disk.store.update(&[at("a")], &stopping, &mut |_| {
        stopping.stop.set();
        Ok(vec![Change::write(b"two")])
    });
    saved.unwrap();
    assert_eq!(disk.text("a"), "two");
}

#[test]
fn whoever_waited_never_sees_the_file_that_was_replaced() {
    let disk = Disk::new();
    disk.put("a", "old");
    let held = lock(&disk, "a");
    let mut seen = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let look = &mut |versions: &[Option<Version>]| {
                seen.push(versions[0].as_ref().unwrap().bytes.to_vec());
                Ok(vec![Change::Keep])
            };
            disk.store.update(&[at("a")], &call(), look).unwrap();
        });
        thread::sleep(Duration::from_millis(50));
        disk.put("next", "new");
        fs::rename(disk.dir.path().join("next"), disk.dir.path().join("a")).unwrap();
        drop(held);
    });
    assert_eq!(seen, [b"new"]);
}

#[test]
fn several_locks_are_taken_in_one_order_whatever_was_asked() {
    let disk = Disk::new();
    let mut names = ["a", "b"];
    for name in names {
        disk.put(name, "");
    }
    names.sort_by_key(|name| fs::metadata(disk.dir.path().join(name)).unwrap().ino());
    let [first, last] = names;
    let held = lock(&disk, last);
    thread::scope(|scope| {
        scope.spawn(|| {
            disk.store
                .update(&[at(last), at(first)], &call(), &mut |_| {
                    Ok(vec![Change::Keep, Change::Keep])
                })
                .unwrap();
        });
        let file = File::open(disk.dir.path().join(first)).unwrap();
        let began = Instant::now();
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            flock(&file, FlockOperation::Unlock).unwrap();
            assert!(began.elapsed() < Duration::from_secs(5), "it waits without the first lock");
            thread::sleep(Duration::from_millis(1));
        }
        drop(held);
    });
}

#[test]
fn opposite_orders_do_not_block_each_other() {
    let disk = Disk::new();
    disk.put("a", "");
    disk.put("b", "");
    let turn = |names: [&str; 2]| {
        let paths = names.map(at);
        for _ in 0..50 {
            let add = |version: &Option<Version>| {
                Change::write([&version.as_ref().unwrap().bytes[..], b"x"].concat())
            };
            disk.store
                .update(&paths, &call(), &mut |versions| Ok(versions.iter().map(add).collect()))
                .unwrap();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| turn(["a", "b"]));
        scope.spawn(|| turn(["b", "a"]));
    });
    assert_eq!((disk.text("a").len(), disk.text("b").len()), (100, 100));
}

/// Such a file has more in it than its size says. Another may have less: what is read of it is not all of it either.
#[test]
#[cfg(target_os = "linux")]
fn a_file_is_not_changed_by_half() {
    let dir = Path::new("/proc/self");
    let store = crate::common::open(dir);
    assert!(store.read(&at("comm"), &call()).unwrap().unwrap().bytes.len() > 1);
    let outcome =
        store.update(&[at("comm")], &call(), &mut |_| unreachable!("this may not be the text"));
    assert!(matches!(outcome, Err(StoreError::Io { doing: "read the file", .. })), "{outcome:?}");
}

// --- what killed servers leave

#[test]
fn a_dead_servers_leftovers_are_swept_and_nothing_else() {
    for disk in disks() {
        let (dead, alive) = (".fe-1-0123456789abcdef.tmp", ".fe-2-0123456789abcdef.tmp");
        let theirs = [
            ".fe-1-0123456789abcdef.tmp.bak",
            ".fe-x-0123456789abcdef.tmp",
            "fe-1-0123456789abcdef.tmp",
        ];
        for name in [dead, alive].into_iter().chain(theirs) {
            disk.put(name, "left");
        }
        let link = ".fe-3-0123456789abcdef.tmp";
        symlink("a", disk.dir.path().join(link)).unwrap();
        let _alive = lock(&disk, alive);

        disk.append("a", "one").unwrap();
        let mut kept = [theirs.as_slice(), &[alive, link, "a"]].concat();
        kept.sort_unstable();
        assert_eq!(disk.names("."), kept);

        disk.put(dead, "left");
        crate::common::open(disk.dir.path()).sweep_root();
        assert_eq!(disk.names("."), kept, "and again by the next server");
    }
}

#[test]
fn leftovers_are_swept_by_a_server_that_has_worked_there_before() {
    /// Longer than the times of a folder are coarse, and than a sweep is rested from.
    const A_WHILE: Duration = Duration::from_millis(20);
    for disk in disks() {
        disk.append("a", "one").unwrap();
        for _ in 0..3 {
            disk.append("a", "one").unwrap();
            thread::sleep(A_WHILE);
            disk.put(".fe-1-0123456789abcdef.tmp", "left");
            disk.append("a", "one").unwrap();
            assert_eq!(disk.names("."), ["a"]);
        }
        // A server that still runs, and is killed later.
        disk.put(".fe-1-0123456789abcdef.tmp", "left");
        let alive = lock(&disk, ".fe-1-0123456789abcdef.tmp");
        thread::sleep(A_WHILE);
        disk.append("a", "one").unwrap();
        assert_eq!(disk.names(".").len(), 2);
        drop(alive);
        thread::sleep(A_WHILE);
        disk.append("a", "one").unwrap();
        assert_eq!(disk.names("."), ["a"]);
    }
}

#[test]
fn leftovers_that_were_given_to_another_owner_are_swept() {
    let disk = Disk::new();
    let name = ".fe-1-0123456789abcdef.tmp";
    disk.put(name, "left");
    if chown(disk.dir.path().join(name), Some(1000), Some(1000)).is_err() {
        return not_checked("leftovers that were given to another owner", "root");
    }
    disk.store.sweep_root();
    assert!(disk.names(".").is_empty());
}

#[test]
fn a_subfolder_is_swept_at_its_first_write() {
    let disk = Disk::new();
    fs::create_dir(disk.dir.path().join("sub")).unwrap();
    symlink("sub/a", disk.dir.path().join("a")).unwrap();
    disk.put("sub/.fe-1-0123456789abcdef.tmp", "left");
    disk.store.sweep_root();
    assert_eq!(disk.names("sub").len(), 1);
    disk.append("a", "one").unwrap();
    assert_eq!(disk.names("sub"), ["a"]);
}

#[test]
fn failures_leave_nothing_behind() {
    for disk in disks() {
        disk.put("a", "one");
        for name in ["a", "new"] {
            let cancelled = call();
            let outcome = disk.store.update(&[at(name)], &cancelled, &mut |_| {
                cancelled.cancel.set();
                Ok(vec![Change::write(b"two")])
            });
            assert!(matches!(outcome, Err(StoreError::Cancelled)));
        }
        assert_eq!(disk.names("."), ["a"]);
        assert_eq!(disk.text("a"), "one");
    }
}

// --- listing

fn list(disk: &Disk) -> Vec<files::Entry> {
    let mut entries = Vec::new();
    let each = &mut |entry| {
        entries.push(entry);
        ControlFlow::Continue(())
    };
    disk.store.list(&DirPath::root(), &call(), each).unwrap();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    entries
}

#[test]
fn a_list_has_files_and_links_to_files_inside() {
    let disk = Disk::new();
    let root = disk.dir.path();
    disk.put("file", "12345");
    disk.put(".hidden", "");
    disk.put(".fe-1-0123456789abcdef.tmp", "");
    fs::create_dir(root.join("sub")).unwrap();
    disk.put("sub/inner", "123");
    fs::write(root.join(OsStr::from_bytes(b"not-utf8-\xff")), "1").unwrap();
    mknodat(CWD, root.join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    for (link, target) in [
        ("to-inner", "sub/inner"),
        ("to-folder", "sub"),
        ("to-fifo", "fifo"),
        ("dangling", "nothing"),
        ("outside", "../../etc/passwd"),
        ("absolute", "/etc/passwd"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    let entries = list(&disk);
    let rows: Vec<_> = entries.iter().map(|entry| (entry.name.as_bytes(), entry.size)).collect();
    assert_eq!(rows, [(&b".hidden"[..], 0), (b"file", 5), (b"not-utf8-\xff", 1), (b"to-inner", 3)]);
    let inner = fs::metadata(root.join("sub/inner")).unwrap();
    assert_eq!(entries[3].modified, inner.modified().unwrap(), "of the file, not of the link");
}

#[test]
fn line_counts_follow_the_file() {
    let disk = Disk::new();
    let counts = LineCounts::new();
    disk.put("a", "one\ntwo\n");
    symlink("a", disk.dir.path().join("link")).unwrap();
    disk.put("binary", b"\0\n");
    disk.put("huge", "x".repeat(2000));
    let count = || {
        let entries = list(&disk);
        let names = entries.iter().map(|entry| entry.name.to_str().unwrap().to_string());
        names.zip(counts.count(&disk.store, &entries, &call())).collect::<Vec<_>>()
    };
    let rows = |lines| {
        [("a", Some(lines)), ("binary", None), ("huge", None), ("link", Some(lines))]
            .map(|(name, count)| (name.to_string(), count))
    };
    assert_eq!(count(), rows(2));
    // Young files are counted anew: the same size and, maybe, the same time.
    disk.put("a", "one\n\n\n\n\n");
    assert_eq!(count(), rows(5));
    thread::sleep(Duration::from_millis(2100));
    assert_eq!(count(), rows(5));
    assert_eq!(count(), rows(5));
    disk.append("a", "six").unwrap();
    assert_eq!(count(), rows(6));
}

// --- lines of large files

/// Texts of more than 256 KB, with all line ends, long lines, and byte order marks at the beginning and elsewhere.
fn large_texts() -> Vec<String> {
    let mut texts: Vec<String> = ["a line\n", "é\r\n", "\r", "\n\r\r\n", "漢\u{feff}\n\u{feff}😀"]
        .map(|line| line.repeat(300_000 / line.len()))
        .into();
    let mixed: String = (0..60_000_usize)
        .map(|index| {
            let length = if index % 9973 == 0 { 90_000 } else { index * 7919 % 23 };
            "ä".repeat(length / 2) + ["\n", "\r\n", "\r", "\n\n"][index * 31 % 101 % 4]
        })
        .collect();
    texts.push(format!("\u{feff}{mixed}"));
    texts.push(mixed + "no end");
    texts
}

#[test]
fn lines_of_a_large_file_are_those_of_the_whole_file() {
    let dir = tempfile::tempdir().unwrap();
    let root = Arc::new(Root::open(dir.path()).unwrap());
    let options = DiskOptions { max_size: 10 << 20, durability: Durability::None };
    let store = DiskStore::open(root, options);
    let texts = large_texts();
    for (index, text) in texts.iter().enumerate() {
        fs::write(dir.path().join(index.to_string()), text).unwrap();
    }
    let lines = |first, last| LineRange { first, last };
    assert!(store.excerpt(&at("0"), lines(0, 0), &call()).is_none(), "it is young");
    thread::sleep(Duration::from_millis(2100));
    let mut found_by = 0;
    for (index, text) in texts.iter().enumerate() {
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (total, hash) = (text::lines::count(body), Hash::of(text.as_bytes()));
        for part in 0..50 {
            let first = total * part / 49;
            for range in [lines(first, first + part), lines(first, usize::MAX), lines(0, first)] {
                let whole = text::lines::select(body, range);
                let Some(found) = store.excerpt(&at(&index.to_string()), range, &call()) else {
                    let size = whole.map_or(0, |whole| whole.bytes.len());
                    assert!(size + 3 * 64 * 1024 > text.len() / 2, "{index} {range:?}");
                    continue;
                };
                found_by += 1;
                assert_eq!((found.total, found.hash), (total, hash));
                match whole {
                    Some(whole) => {
                        assert!(found.text.as_str() == &body[whole.bytes], "{index} {range:?}");
                        assert_eq!(found.lines, whole.first..whole.last + 1, "{index}");
                    }
                    None => assert!(found.lines.is_empty() && found.text.as_str().is_empty()),
                }
            }
        }
        assert!(store.excerpt(&at(&index.to_string()), lines(2, 1), &call()).is_none());
    }
    assert!(found_by > 400, "{found_by} of 1050");
}

#[test]
fn an_update_waits_for_the_disk_until_a_sync_was_quick() {
    // A file system in memory has nothing to wait for.
    let memory = Path::new("/dev/shm");
    let in_memory = memory.is_dir().then(|| tempfile::tempdir_in(memory).unwrap());
    let dir = in_memory.unwrap_or_else(|| tempfile::tempdir().unwrap());
    let root = Arc::new(Root::open(dir.path()).unwrap());
    for (durability, waits) in
        [(Durability::None, false), (Durability::Data, true), (Durability::Full, true)]
    {
        let store = DiskStore::open(Arc::clone(&root), DiskOptions { max_size: 9, durability });
        assert_eq!(store.waits_for_disk(), waits, "{durability:?}");
        if dir.path().starts_with(memory) {
            let is_quick = |round: usize| {
                let text = round.to_string();
                let mut write = |_: &[Option<Version>]| Ok(vec![Change::write(text.as_bytes())]);
                store.update(&[at("a")], &call(), &mut write).unwrap();
                !store.waits_for_disk()
            };
            assert!((0..1000).any(is_quick), "{durability:?}");
        }
    }
    // A store that does not say otherwise waits.
    assert!(MemoryStore::new(1).waits_for_disk());
}

#[test]
fn what_cannot_be_excerpted_is_left_to_a_read() {
    let dir = tempfile::tempdir().unwrap();
    let root = Arc::new(Root::open(dir.path()).unwrap());
    let options = DiskOptions { max_size: 1 << 20, durability: Durability::None };
    let store = DiskStore::open(root, options);
    let large = "line\n".repeat(100_000);
    let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    put("text", large.as_bytes());
    put("small", b"line\n");
    put("huge", large.repeat(3).as_bytes());
    put("nul", format!("{large}\0{large}").as_bytes());
    put("broken", &[large.as_bytes(), b"\xff", large.as_bytes()].concat());
    put("cut-short", &[large.as_bytes(), b"\xe2\x82"].concat());
    fs::create_dir(dir.path().join("folder")).unwrap();
    symlink("text", dir.path().join("link")).unwrap();
    symlink(dir.path().join("text"), dir.path().join("outward")).unwrap();
    thread::sleep(Duration::from_millis(2100));
    let total = |name: &str| {
        let first_lines = LineRange { first: 0, last: 9 };
        store.excerpt(&at(name), first_lines, &call()).map(|found| found.total)
    };
    for name in ["small", "huge", "nul", "broken", "cut-short", "folder", "outward", "missing"] {
        assert_eq!(total(name), None, "{name}");
    }
    assert_eq!((total("text"), total("link")), (Some(100_000), Some(100_000)));
    // Changed, and young again; replaced, by a file that is.
    put("text", large.to_uppercase().as_bytes());
    assert_eq!(total("link"), None);
    put("new", large.as_bytes());
    fs::rename(dir.path().join("new"), dir.path().join("text")).unwrap();
    assert_eq!(total("text"), None);
}

// --- the root

#[test]
fn the_root_stays_the_folder_that_was_opened() {
    let disk = Disk::new();
    disk.put("a", "one");
    let moved = disk.dir.path().with_extension("moved");
    fs::rename(disk.dir.path(), &moved).unwrap();
    fs::create_dir(disk.dir.path()).unwrap();
    let Saved { created, .. } = disk.append("a", " two").unwrap();
    assert!(!created);
    assert_eq!(fs::read_to_string(moved.join("a")).unwrap(), "one two");
    fs::remove_dir_all(moved).unwrap();
}

#[test]
fn a_root_that_is_gone_says_so() {
    for disk in disks() {
        let dir = disk.dir.path().to_path_buf();
        disk.put("a", "one");
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(disk.read("a").unwrap(), None);
        assert!(matches!(disk.append("a", "!"), Err(StoreError::NoFolder)));
        assert!(!dir.exists());
    }
}

#[test]
fn a_root_knows_its_path() {
    let disk = Disk::new();
    symlink(".", disk.dir.path().join("here")).unwrap();
    let given = disk.dir.path().join("here");
    let root = Root::open(&given).unwrap();
    assert_eq!(root.path(), given);
    assert_eq!(root.resolved(), disk.dir.path().canonicalize().unwrap());
    assert!(root.is_writable());
    assert!(Root::open(&disk.dir.path().join("missing")).is_err());
    disk.put("file", "");
    assert!(Root::open(&disk.dir.path().join("file")).is_err());
}

#[test]
fn the_size_is_told_of_what_can_be_read() {
    let disk = Disk::new();
    disk.put("a", "three");
    symlink("a", disk.dir.path().join("link")).unwrap();
    symlink("/etc/passwd", disk.dir.path().join("out")).unwrap();
    symlink("nowhere", disk.dir.path().join("dangling")).unwrap();
    fs::create_dir(disk.dir.path().join("folder")).unwrap();
    for (name, size) in [
        ("a", Some(5)),
        ("link", Some(5)),
        ("out", None),
        ("dangling", None),
        ("folder", None),
        ("missing", None),
    ] {
        assert_eq!(disk.store.size(&at(name)), size, "{name}");
    }
}

/// A copy is as secret as what it is a copy of.
#[test]
fn a_copy_has_the_bytes_and_the_mode_of_the_file() {
    let disk = Disk::new();
    let path = |name: &str| disk.dir.path().join(name);
    for (name, text, mode) in [("file", "secret", 0o600), ("copy", "older", 0o644)] {
        disk.put(name, text);
        fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
    }
    for to in ["copy", "new"] {
        assert!(disk.store.copy(&at("file"), &at(to), b"secret", &call()).unwrap());
        assert_eq!(disk.text(to), "secret");
        assert_eq!(fs::metadata(path(to)).unwrap().mode() & 0o777, 0o600, "{to}");
    }
    assert!(!disk.store.copy(&at("missing"), &at("copy"), b"", &call()).unwrap());
    disk.put("file", "by others");
    assert!(!disk.store.copy(&at("file"), &at("copy"), b"secret", &call()).unwrap());
    assert_eq!(disk.text("copy"), "secret");
    assert_eq!(fs::read_dir(disk.dir.path()).unwrap().count(), 3);
}
