//! Ways to say a name so that it leads outside, and things in a folder that are no files: each with what must come of
//! it, through every tool and in both dialects.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use serde_json::{Value, json};

use super::not_tried;
use super::outside::{Place, differences, look, without_times};
use super::trial::{Expected, Player, Table, play};
use crate::report::Row;

const INVALID: &[i64] = &[-32602];
const RELATIVE: &[i64] = &[-32600];
const DENIED: &[i64] = &[-32002];
const NO_FILE: &[i64] = &[-32003];
const MISSING: &[i64] = &[-32001];

pub fn run() -> Vec<Row> {
    let tables = [
        dots_and_absolute_paths,
        relative_paths,
        detours,
        endings,
        lengths,
        strange_names,
        own_temporary_names,
        links_outside,
        kernel_links,
        chains,
        not_files,
    ];
    let mut rows: Vec<_> = tables.into_iter().map(|table| play(&table(Place::new()))).collect();
    rows.extend([devices(), hard_link(), moved_root(), replaced_root()]);
    rows
}

fn dots_and_absolute_paths(place: Place) -> Table {
    let parent = place.parent().display().to_string();
    let mut table = Table::new("`..` and absolute paths: refused", place);
    let absolute = ["outside/secret.txt", "root/in.txt"].map(|name| format!("{parent}/{name}"));
    table.refuse_names(INVALID, &absolute.each_ref().map(String::as_str));
    table.refuse_names(
        INVALID,
        &[
            "",
            ".",
            "..",
            "/",
            "./in.txt",
            "../outside/secret.txt",
            "sub/../../outside/secret.txt",
            "sub/../in.txt",
            "/etc/passwd",
            "/proc/self/environ",
            "/dev/stdin",
        ],
    );
    let below_parent = [
        "outside/secret.txt",
        "outside/new.txt",
        "outside/../root/in.txt",
        "root-too/in.txt",
        "root-to",
        "ROOT/in.txt",
        "roo",
        "new.txt",
    ];
    let below_parent = below_parent.map(|path| format!("{parent}/{path}"));
    table.refuse_paths(DENIED, &below_parent.each_ref().map(String::as_str));
    table.refuse_below(
        DENIED,
        &[
            "..",
            "../",
            "../outside/secret.txt",
            "../outside/new.txt",
            "../outside/new/new.txt",
            "../root-too/in.txt",
            "../root/in.txt",
            "sub/../../outside/secret.txt",
            "sub/../../root/in.txt",
            "missing/../../outside/secret.txt",
            ".././outside/secret.txt",
            "..//outside///secret.txt",
            "sub/./.././../outside/secret.txt",
        ],
    );
    table.refuse_paths(
        DENIED,
        &[
            "/",
            "//",
            "/..",
            "/etc/passwd",
            "//etc/passwd",
            "/etc/../etc/passwd",
            "/new.txt",
            "/proc/self/environ",
            "/proc/self/root/etc/passwd",
            "/proc/self/cwd/in.txt",
            "/proc/self/fd/0",
            "/proc/1/environ",
            "/dev/stdin",
            "/dev/fd/0",
            "/dev/zero",
            "/dev/tty",
            "/sys/kernel/uevent_helper",
        ],
    );
    let other_self = format!("/proc/self/root{parent}/root/in.txt");
    table.refuse_paths(DENIED, &[&other_self]);
    table
}

fn relative_paths(place: Place) -> Table {
    let mut table = Table::new("relative paths, homes, drives and addresses: refused", place);
    table.refuse_paths(
        RELATIVE,
        &[
            "",
            ".",
            "..",
            "in.txt",
            "./in.txt",
            "../outside/secret.txt",
            "~",
            "~/secret.txt",
            "~root/secret.txt",
            "$HOME/secret.txt",
            "${HOME}/secret.txt",
            "%2fetc%2fpasswd",
            "\\etc\\passwd",
            "C:\\secret.txt",
            "C:/secret.txt",
            "\\\\host\\share\\secret.txt",
            "\\\\?\\C:\\secret.txt",
            "file:///etc/passwd",
            " /etc/passwd",
            "／etc／passwd",
            "∕etc∕passwd",
        ],
    );
    table
}

fn detours(place: Place) -> Table {
    let parent = place.parent().display().to_string();
    let mut table = Table::new("detours that stay inside: the file they lead to", place);
    table.place.link("dot", ".");
    table.place.link("sub/up", "..");
    table.reach_below(
        "in.txt",
        &[
            "in.txt",
            "/in.txt",
            "//in.txt",
            "./in.txt",
            "././//./in.txt",
            "sub/../in.txt",
            "sub/.././sub/../in.txt",
            "dot/in.txt",
            "dot/dot/dot/dot/in.txt",
            "sub/up/in.txt",
            "dot/sub/up/sub/../in.txt",
        ],
    );
    let slashes = format!("/{parent}/.//root//in.txt");
    table.text.push((slashes, Expected::Reaches("in.txt".into())));
    table.refuse_names(NO_FILE, &["dot", "sub"]);
    // A folder that is gone leads nowhere.
    table.refuse_below(MISSING, &["in.txt/../in.txt"]);
    table
}

fn endings(place: Place) -> Table {
    let mut table = Table::new("slashes, dots, blanks and NULs at the end", place);
    table.refuse_names(
        INVALID,
        &["in.txt/", "in.txt/.", "in.txt\0", "in.txt\0.png", "in.txt\n", "in.txt "],
    );
    table.refuse_below(INVALID, &["in.txt\0", "in.txt\0.png", "\0", "sub\0/in.txt"]);
    table.refuse_below(
        NO_FILE,
        &["", ".", "sub", "sub/", "sub/.", "in.txt/", "in.txt/.", "in.txt/..", "sub/..", "sub/../"],
    );
    table.refuse_below(MISSING, &["in.txt/x", "in.txt/x/y"]);
    // Other names on this system, not other ways to say the same.
    for name in ["in.txt.", "in.txt...", "...", "in.txt.bak"] {
        table.reach(name, &[name]);
    }
    for name in ["in.txt ", " in.txt", "in.txt\n", "in.txt\t", "\u{1}", ".. ", "..."] {
        table.reach_below(name, &[name]);
    }
    table
}

fn lengths(place: Place) -> Table {
    let mut table = Table::new("very long names and very deep paths", place);
    let room = 4095 - table.place.root().as_os_str().len() - 1;
    for length in [256, 300, 4096, 100_000] {
        table.refuse(INVALID, &[&"x".repeat(length)]);
    }
    table.refuse_below(
        INVALID,
        &["d/".repeat(room / 2 + 1).as_str(), &"../".repeat(2000), &"./".repeat(50_000)],
    );
    let longest = "x".repeat(255);
    table.reach(&longest, &[&longest]);
    let letters = "ä".repeat(127);
    table.reach_below(&letters, &[&letters]);
    let deep = "d/".repeat(room / 2 - 1) + "x";
    table.reach_below(&deep, &[&deep]);
    table.reach_below("in.txt", &[&("sub/../".repeat(room / 7 - 1) + "in.txt")]);
    let high = "../".repeat(room / 3 - 10);
    table.refuse_below(DENIED, &[&(high + "etc/passwd")]);
    table
}

fn strange_names(place: Place) -> Table {
    let mut table =
        Table::new("encoded, quoted, foreign and look-alike names: taken as they are", place);
    let names = [
        // What others decode.
        "%2e%2e%2foutside%2fsecret.txt",
        "..%2foutside%2fsecret.txt",
        "%252e%252e%252fsecret.txt",
        "..%c0%afoutside",
        "%00",
        "&#46;&#46;&#47;secret.txt",
        "\\u002e\\u002e",
        // What others take for a separator, or for a place.
        "..\\outside\\secret.txt",
        "..\\..\\secret.txt",
        "\\",
        "C:",
        "in.txt:stream",
        "in.txt::$DATA",
        "~",
        "~root",
        "$HOME",
        "${HOME}",
        "$(id)",
        "`id`",
        "in.txt;id",
        "in.txt|id",
        "*",
        "?",
        "[in].txt",
        "{in,out}.txt",
        "-rf *",
        "file:",
        "'\"",
        // What looks like a dot, a slash or nothing.
        "．．／outside／secret.txt",
        "‥",
        "…",
        "․․",
        "..∕outside∕secret.txt",
        "..⁄outside⁄secret.txt",
        "..⧸secret.txt",
        "..＼secret.txt",
        "。。",
        "\u{202e}txt.ni",
        "in\u{200b}.txt",
        "in.txt\u{feff}",
        "ｉｎ.txt",
        "іn.txt",
        "e\u{301}.txt",
        "\u{e9}.txt",
    ];
    table.refuse_names(INVALID, &names);
    for name in names {
        table.reach_below(name, &[name]);
    }
    for path in [
        "‥‥/secret.txt",
        "．．/secret.txt",
        "%2e%2e/secret.txt",
        "..\\/secret.txt",
        "~user/secret.txt",
    ] {
        table.reach_below(path, &[path]);
    }
    for name in
        ["IN.TXT", "In.txt", "con", "NUL.txt", "COM1", "-rf", "--help", ".hidden", ".git", "_"]
    {
        table.reach(name, &[name]);
    }
    table
}

fn own_temporary_names(place: Place) -> Table {
    let mut table = Table::new("names of the server's own temporary files", place);
    let own = [".fe-1-0123456789abcdef.tmp", ".fe-4294967295-ffffffffffffffff.tmp"];
    table.refuse_names(INVALID, &own);
    table.refuse_below(DENIED, &own);
    table.refuse_below(DENIED, &["sub/.fe-1-0123456789abcdef.tmp"]);
    for name in [
        ".fe-1-0123456789ABCDEF.tmp",
        ".fe-1-0123456789abcdef.tmp.",
        ".FE-1-0123456789abcdef.tmp",
        ".fe-.tmp",
    ] {
        table.reach(name, &[name]);
    }
    // By way of a link as well.
    table.place.link("to_own", own[0]);
    table.refuse(DENIED, &["to_own"]);
    table
}

fn links_outside(place: Place) -> Table {
    let (parent, outside) = (place.parent().to_path_buf(), place.outside());
    let mut table = Table::new("links that lead outside, or are absolute: refused", place);
    let place = &table.place;
    place.link("up", "../outside/secret.txt");
    place.link("absolute", outside.join("secret.txt"));
    place.link("absolute_inside", place.root().join("in.txt"));
    place.link("system", "/etc/passwd");
    place.link("far_up", "../".repeat(50) + "etc/passwd");
    place.link("winding", "sub/../../outside/secret.txt");
    place.link("back_in", "../root/in.txt");
    place.link("missing_outside", "../outside/new.txt");
    place.link("missing_absolute", parent.join("new.txt"));
    place.link("hop", "sub/hop");
    place.link("sub/hop", "../up");
    place.link("door", "../outside");
    place.link("absolute_door", &outside);
    place.link("parent", "..");
    place.link("slash", "/");
    place.link("sub/out", "../..");
    place.link("through_door", "door/secret.txt");
    place.link("through_slash", "slash/etc/passwd");
    place.link("through_parent", "parent/root/in.txt");
    place.link("with_slash", "../outside/");
    table.refuse(
        DENIED,
        &[
            "up",
            "absolute",
            "absolute_inside",
            "system",
            "far_up",
            "winding",
            "back_in",
            "missing_outside",
            "missing_absolute",
            "hop",
            "through_door",
            "through_slash",
            "through_parent",
            "door",
            "absolute_door",
            "parent",
            "slash",
            "with_slash",
        ],
    );
    let passwd = "slash/etc/passwd";
    let by_slash = format!("slash{}", outside.join("secret.txt").display());
    table.refuse_below(
        DENIED,
        &[
            passwd,
            &by_slash,
            "sub/hop",
            "sub/out/outside/secret.txt",
            "sub/out/root/in.txt",
            "door/secret.txt",
            "door/new.txt",
            "door/new/new.txt",
            "door/../outside/secret.txt",
            "door/../root/in.txt",
            "door/sub/../secret.txt",
            "door/sub/secret.txt",
            "absolute_door/secret.txt",
            "absolute_door/new.txt",
            "parent/outside/secret.txt",
            "parent/root/in.txt",
            "parent/new.txt",
            "sub/../door/secret.txt",
        ],
    );
    table
}

fn kernel_links(place: Place) -> Table {
    let secret = place.outside().join("secret.txt");
    let mut table = Table::new("links into /proc and /dev: refused", place);
    let up = "../".repeat(50);
    let mut targets = vec![
        format!("/proc/self/root{}", secret.display()),
        "/proc/self/cwd".into(),
        "/proc/self/cwd/in.txt".into(),
        "/proc/self/exe".into(),
        "/proc/self/environ".into(),
        "/proc/self/mem".into(),
        "/proc/thread-self/root/etc/passwd".into(),
        "/dev/stdin".into(),
        "/dev/stdout".into(),
        "/dev/fd/1".into(),
        "/dev/zero".into(),
        "/dev/null".into(),
        "/dev/tty".into(),
        format!("{up}proc/self/root{}", secret.display()),
        format!("{up}proc/self/cwd/in.txt"),
        format!("{up}dev/zero"),
    ];
    // The server's own: its pipes, its folder, what it has open.
    targets.extend((0..24).map(|number| format!("/proc/self/fd/{number}")));
    targets.extend((0..24).map(|number| format!("{up}proc/self/fd/{number}")));
    for (number, target) in targets.iter().enumerate() {
        let name = format!("link-{number}");
        table.place.link(&name, target);
        table.refuse(DENIED, &[&name]);
        table.refuse_below(
            DENIED,
            &[&format!("{name}/in.txt"), &format!("{name}/../outside/secret.txt")],
        );
    }
    table
}

fn chains(place: Place) -> Table {
    let mut table = Table::new("chains, circles and bombs of links", place);
    let place = &table.place;
    // `chain-40` is 40 links away from the file, which is as many as Linux follows.
    place.link("chain-1", "in.txt");
    place.link("folders-1", "sub");
    place.link("out-1", "../outside/secret.txt");
    for number in 2..=100 {
        for chain in ["chain", "folders", "out"] {
            place.link(&format!("{chain}-{number}"), format!("{chain}-{}", number - 1));
        }
    }
    fs::write(place.root().join("sub/in.txt"), "inside\n").unwrap();
    place.link("itself", "itself");
    place.link("one", "other");
    place.link("other", "one");
    place.link("deeper", "deeper/x");
    place.link("sub/circle", "../sub/circle");
    // Each has the next one twice: 2^30 steps to the end.
    for number in 0..30 {
        let next = number + 1;
        place.link(&format!("bomb-{number}"), format!("bomb-{next}/bomb-{next}"));
    }
    place.link("bomb-30", ".");
    place.link("long", "./".repeat(2000) + "in.txt");
    place.link("winding", "sub/../".repeat(500) + "in.txt");
    place.link("with_slash", "in.txt/");
    place.link("dot", ".");
    place.link("dangling", "missing/new.txt");
    table.reach("in.txt", &["chain-1", "chain-39", "chain-40", "long", "winding"]);
    table.reach_below("sub/in.txt", &["folders-1/in.txt", "folders-39/in.txt"]);
    table.refuse(
        DENIED,
        &["chain-41", "chain-100", "out-1", "out-40", "out-100", "itself", "one", "other"],
    );
    table.refuse_below(
        DENIED,
        &["folders-100/in.txt", "out-3", "sub/circle", "itself/in.txt", "one/in.txt"],
    );
    table.refuse(DENIED, &["deeper"]);
    table.refuse_below(DENIED, &["bomb-0/in.txt", "deeper/in.txt"]);
    table.refuse(DENIED, &["bomb-0"]);
    table.refuse(NO_FILE, &["dot"]);
    table.refuse(MISSING, &["with_slash"]);
    table.refuse_names(MISSING, &["dangling"]);
    table
}

fn not_files(place: Place) -> Table {
    let mut table = Table::new("folders, pipes and sockets: refused, and nobody waits", place);
    let at = |name: &str| table.place.root().join(name);
    let pipe = Mode::from_raw_mode(0o666);
    mknodat(CWD, at("pipe"), FileType::Fifo, pipe, 0).unwrap();
    // The socket stays when nobody listens any more.
    drop(UnixListener::bind(at("socket")).unwrap());
    table.place.link("to_pipe", "pipe");
    table.place.link("to_socket", "sub/../socket");
    table.place.link("to_folder", "sub");
    let names = ["pipe", "socket", "sub", "to_pipe", "to_socket", "to_folder"];
    table.refuse(NO_FILE, &names);
    table.refuse_below(MISSING, &["pipe/x", "socket/x/y", "to_pipe/x"]);
    table
}

/// Devices can be made by root only.
fn devices() -> Row {
    let what = "devices: refused, and nobody waits";
    let mut table = Table::new(what, Place::new());
    let devices = [
        ("null", FileType::CharacterDevice, 1, 3),
        ("zero", FileType::CharacterDevice, 1, 5),
        ("tty", FileType::CharacterDevice, 5, 0),
        ("loop", FileType::BlockDevice, 7, 7),
    ];
    for (name, kind, major, minor) in devices {
        let at = table.place.root().join(name);
        let mode = Mode::from_raw_mode(0o666);
        if let Err(error) = mknodat(CWD, at, kind, mode, makedev(major, minor)) {
            return not_tried(what, &format!("a device cannot be made: {error}"));
        }
        table.refuse(NO_FILE, &[name]);
        table.refuse_below(MISSING, &[&format!("{name}/x")]);
    }
    play(&table)
}

/// A second name inside for a file outside may be read; an edit gives the name inside a file of its own.
fn hard_link() -> Row {
    let place = Place::new();
    let (shared, root) = (place.parent().join("root-shared.txt"), place.root());
    let mut player = Player::new("hard links to a file outside: it stays as it is", &place);
    let edit = json!({ "old_string": "shared", "new_string": "edited" });
    let calls = [
        ("edit_file", json!({ "name": "hard.txt", "append": "edited" })),
        ("multi_edit_text_file", json!({ "path": root.join("hard.txt"), "edits": [edit] })),
        ("write_text_file", json!({ "path": root.join("hard.txt"), "content": "edited\n" })),
    ];
    for (tool, arguments) in calls {
        fs::write(&shared, "shared\n").unwrap();
        let _ = fs::remove_file(root.join("hard.txt"));
        fs::hard_link(&shared, root.join("hard.txt")).unwrap();
        let before = look(&shared);
        let read = player.tool("read_file", &json!({ "name": "hard.txt" }));
        player.row.check(read.is_ok(), || format!("it is not read: {read:?}"));
        let edited = player.tool(tool, &arguments);
        player.row.check(edited.is_ok(), || format!("{tool}: {edited:?}"));
        let inside = fs::read_to_string(root.join("hard.txt")).unwrap();
        player.row.check(inside.contains("edited"), || format!("{tool} wrote {inside:?}"));
        // It was read, which shows.
        let now = without_times(look(&shared));
        let changed = differences(&without_times(before), &now);
        player.row.bad.extend(changed.into_iter().map(|changed| format!("{tool}: {changed}")));
    }
    player.finish()
}

/// The calls that are made to a root that is not where it was.
fn all_calls(path: &Path) -> [(&'static str, Value); 6] {
    let edit = json!({ "old_string": "mark", "new_string": "mark-" });
    [
        ("write_text_file", json!({ "path": path, "content": "mark\n" })),
        ("read_text_file", json!({ "path": path })),
        ("multi_edit_text_file", json!({ "path": path, "edits": [edit] })),
        ("read_file", json!({ "name": "in.txt" })),
        ("edit_file", json!({ "name": "in.txt", "append": "line" })),
        ("list_files", json!({})),
    ]
}

/// The server works on in the folder it was given, wherever that is now.
fn moved_root() -> Row {
    let place = Place::new();
    let (root, moved) = (place.root(), place.parent().join("root-moved"));
    let mut player = Player::new("the root renamed, a link to the outside in its place", &place);
    fs::rename(&root, &moved).unwrap();
    symlink("outside", &root).unwrap();
    for (tool, arguments) in all_calls(&root.join("in.txt")) {
        let answer = player.tool(tool, &arguments);
        player.row.check(answer.is_ok(), || format!("{tool}: {answer:?}"));
    }
    let text = fs::read_to_string(moved.join("in.txt")).unwrap();
    player.row.check(text == "mark-\nline\n", || format!("the moved folder has {text:?}"));
    player.row.bad.extend(place.touched());
    player.finish()
}

/// A folder that has the root's name, but is another one, is none of the server's business.
fn replaced_root() -> Row {
    let place = Place::new();
    let root = place.root();
    let mut player = Player::new("the root removed, another folder in its place", &place);
    fs::remove_dir_all(&root).unwrap();
    fs::create_dir(&root).unwrap();
    fs::write(root.join("in.txt"), "another\n").unwrap();
    let before = look(&root);
    for (tool, arguments) in all_calls(&root.join("in.txt")) {
        let answer = player.tool(tool, &arguments);
        player.row.check(answer.is_err(), || format!("{tool}: {answer:?}"));
    }
    player.row.bad.extend(differences(&before, &look(&root)));
    player.row.bad.extend(place.touched());
    player.finish()
}
