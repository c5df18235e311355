//! What an edit does not address stays as it was: bytes of other lines, byte order mark, line endings, last newline,
//! mode, owner, extended attributes, access list, and the link it was reached through.

use std::cell::RefCell;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use crate::harness::{Folder, Server, as_nobody, is_root_to_check, not_checked, texts};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::{Value, json};

/// How the name that is edited leads to the file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Link {
    Plain,
    /// A relative symbolic link in the folder.
    Beside,
    /// One into a subfolder.
    Below,
    /// One to another one.
    Chain,
    Hard,
}

/// One line and how it ends; only the last may end with nothing.
type Line = (String, &'static str);

#[derive(Clone, Debug)]
enum Call {
    Replace(usize, String),
    Insert(usize, String),
    Delete(usize),
    Append(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Dialect {
    /// An MCP tool: lines from 0.
    Tool,
    /// A plain method: lines from 1.
    Method,
}

#[derive(Clone, Debug)]
struct Case {
    link: Link,
    bom: bool,
    lines: Vec<Line>,
    mode: u32,
    call: Call,
    dialect: Dialect,
}

fn cases() -> impl Strategy<Value = Case> {
    let endings = [vec!["\n"], vec!["\r\n"], vec!["\r"], vec!["\n", "\r\n", "\r"]];
    let word = || select(vec!["one", "two", "drei 漢字", "\t tabbed ", "\u{2028}", "\"q\\\"", "é"]);
    let lines = (select(endings.to_vec()), 1..7usize, any::<bool>()).prop_flat_map(
        move |(endings, count, last_newline)| {
            let line = (word().prop_map(String::from), select(endings));
            prop::collection::vec(line, count).prop_map(move |mut lines| {
                if !last_newline {
                    lines.last_mut().unwrap().1 = "";
                }
                lines
            })
        },
    );
    let content = select(vec!["new", "two\nlines", "cr\r\nlf", "é\n"]).prop_map(String::from);
    let kinds = [Link::Plain, Link::Beside, Link::Below, Link::Chain, Link::Hard];
    let modes = vec![0o644, 0o755, 0o600, 0o640, 0o4755, 0o2750, 0o666];
    let dialects = vec![Dialect::Tool, Dialect::Method];
    (
        select(kinds.to_vec()),
        any::<bool>(),
        lines,
        select(modes),
        content,
        select(dialects),
        0..4,
        any::<usize>(),
    )
        .prop_map(|(link, bom, lines, mode, content, dialect, kind, at)| {
            let call = match kind {
                0 => Call::Replace(at % lines.len(), content),
                1 => Call::Insert(at % (lines.len() + 1), content),
                2 => Call::Delete(at % lines.len()),
                _ => Call::Append(content),
            };
            Case { link, bom, lines, mode, call, dialect }
        })
}

/// What the file must hold afterwards, done naively, line by line.
fn expected(before: &[Line], call: &Call) -> Vec<Line> {
    let mut lines = before.to_vec();
    let unfinished = before.last().unwrap().1.is_empty();
    let how_many = |ending: &str| before.iter().filter(|line| line.1 == ending).count();
    // Of equally many the first in this order.
    let most =
        ["\n", "\r\n", "\r"].into_iter().rev().max_by_key(|ending| how_many(ending)).unwrap();
    let ending_of = |line: usize| Some(before[line].1).filter(|ending| !ending.is_empty());
    let ending_at = |line: usize| ending_of(line.saturating_sub(1)).unwrap_or(most);
    let split = |content: &str, ending: &'static str| -> Vec<Line> {
        content.lines().map(|line| (line.to_owned(), ending)).collect()
    };
    match call {
        Call::Replace(at, content) => {
            let own = before[*at].1;
            let mut new = split(content, ending_of(*at).unwrap_or(ending_at(*at)));
            new.last_mut().unwrap().1 = own;
            lines.splice(at..=at, new);
        }
        Call::Insert(at, content) => drop(lines.splice(at..at, split(content, ending_at(*at)))),
        Call::Delete(at) => drop(lines.remove(*at)),
        Call::Append(content) => lines.extend(split(content, ending_at(before.len()))),
    }
    // The file ends with a line break if it did before; then, what is no longer last gets one.
    let wants_break = matches!(call, Call::Append(content) if content.ends_with('\n'));
    let count = lines.len();
    for (index, line) in lines.iter_mut().enumerate() {
        if index + 1 < count || wants_break {
            line.1 = if line.1.is_empty() { ending_at(before.len()) } else { line.1 };
        } else if unfinished {
            line.1 = "";
        }
    }
    lines
}

fn bytes(bom: bool, lines: &[Line]) -> Vec<u8> {
    let mark = if bom { "\u{feff}" } else { "" };
    let text: String = lines.iter().flat_map(|(line, ending)| [line.as_str(), *ending]).collect();
    format!("{mark}{text}").into_bytes()
}

fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = [0; 256];
    let length = getxattr(path, name, &mut value[..]).ok()?;
    Some(value[..length].to_vec())
}

const ACL: &str = "system.posix_acl_access";

/// An access list that lets user 12345 read: version 2, then tag, permissions and id of each entry.
fn acl(mode: u32) -> Vec<u8> {
    let none = u32::MAX;
    let bits = |shift: u32| u16::try_from(mode >> shift & 7).unwrap();
    let entries: [(u16, u16, u32); 5] = [
        (0x01, bits(6), none), // the owner
        (0x02, 4, 12345),      // one more user
        (0x04, bits(3), none), // the group
        (0x10, bits(3), none), // what users and groups may have at most
        (0x20, bits(0), none), // others
    ];
    let entry = |(tag, bits, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &bits.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2_u32.to_le_bytes().to_vec(), entries.into_iter().flat_map(entry).collect()].concat()
}

/// Everything about a file but its bytes and its times.
#[derive(Clone, Debug, PartialEq)]
struct Attributes {
    mode: u32,
    owner: (u32, u32),
    extended: Option<Vec<u8>>,
    acl: Option<Vec<u8>>,
}

impl Attributes {
    fn of(path: &Path) -> Self {
        let found = path.symlink_metadata().unwrap();
        Self {
            mode: found.mode(),
            owner: (found.uid(), found.gid()),
            extended: attribute(path, "user.test"),
            acl: attribute(path, ACL),
        }
    }
}

/// What this machine lets us give a file.
#[derive(Clone, Copy)]
struct Able {
    foreign_owner: bool,
    extended: bool,
    acl: bool,
}

impl Able {
    fn here(folder: &Folder) -> Self {
        folder.write("probe", "");
        let probe = folder.file("probe");
        let set =
            |name: &str, value: &[u8]| setxattr(&probe, name, value, XattrFlags::empty()).is_ok();
        let able = Self {
            extended: set("user.test", b"value"),
            acl: set(ACL, &acl(0o644)),
            foreign_owner: chown(&probe, Some(12345), Some(54321)).is_ok(),
        };
        std::fs::remove_file(probe).unwrap();
        for (able, what, needs) in [
            (able.foreign_owner, "files of another owner", "root"),
            (able.extended, "extended attributes", "a file system that has them"),
            (able.acl, "access lists", "a file system that has them"),
        ] {
            if !able {
                not_checked(what, needs);
            }
        }
        able
    }

    fn dress(self, path: &Path, mode: u32) {
        if self.foreign_owner {
            chown(path, Some(12345), Some(54321)).unwrap();
        }
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        if self.extended {
            setxattr(path, "user.test", b"a \0 value", XattrFlags::empty()).unwrap();
        }
        // Half of the files, told by their mode, so that a plain mode is seen too.
        if self.acl && mode & 0o040 != 0 {
            setxattr(path, ACL, &acl(mode), XattrFlags::empty()).unwrap();
        }
    }
}

/// Puts the links in place; the file itself.
fn link_up(folder: &Folder, link: Link) -> PathBuf {
    let name = folder.file("name.txt");
    match link {
        Link::Plain | Link::Hard => return name,
        Link::Beside => symlink("target.txt", name).unwrap(),
        Link::Below => symlink("sub/../sub/target.txt", name).unwrap(),
        Link::Chain => {
            symlink("sub/hop", name).unwrap();
            symlink("../target.txt", folder.file("sub/hop")).unwrap();
        }
    }
    folder.file(if link == Link::Below { "sub/target.txt" } else { "target.txt" })
}

fn edit(server: &mut Server, call: &Call, dialect: Dialect) -> Value {
    let base = usize::from(dialect == Dialect::Method);
    let edits = |edit: Value| json!({ "name": "name.txt", "edits": [edit] });
    let arguments = match call {
        Call::Replace(at, content) => {
            edits(json!({ "line": at + base, "operation": "replace", "content": content }))
        }
        Call::Insert(at, content) => {
            edits(json!({ "line": at + base, "operation": "insert", "content": content }))
        }
        Call::Delete(at) => edits(json!({ "line": at + base, "operation": "delete" })),
        Call::Append(content) => json!({ "name": "name.txt", "append": content }),
    };
    match dialect {
        Dialect::Tool => server.tool("edit_file", arguments),
        Dialect::Method => server.request("edit_file", arguments),
    }
}

fn check(folder: &Folder, server: &mut Server, able: Able, case: &Case) {
    for name in folder.names() {
        let path = folder.file(&name);
        let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
    }
    std::fs::create_dir(folder.file("sub")).unwrap();
    let file = link_up(folder, case.link);
    let before = bytes(case.bom, &case.lines);
    std::fs::write(&file, &before).unwrap();
    able.dress(&file, case.mode);
    if case.link == Link::Hard {
        std::fs::hard_link(&file, folder.file("other.txt")).unwrap();
    }
    let (names, attributes) = (folder.names(), Attributes::of(&file));
    assert_eq!(attributes.mode & 0o7777, case.mode);
    let leads_to = std::fs::read_link(folder.file("name.txt")).ok();

    let answer = edit(server, &case.call, case.dialect);

    let expected = bytes(case.bom, &expected(&case.lines, &case.call));
    assert_eq!(answer.get("error"), None, "{answer}");
    let found = std::fs::read(&file).unwrap();
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(show(&found), show(&expected), "{answer}");
    assert_eq!(found, expected);
    // What makes a file run with the rights of its owner goes with any write.
    let privileges = if found == before { 0 } else { 0o6000 };
    let kept = Attributes { mode: attributes.mode & !privileges, ..attributes.clone() };
    assert_eq!(Attributes::of(&file), kept);
    assert_eq!(std::fs::read_link(folder.file("name.txt")).ok(), leads_to);
    assert_eq!(folder.names(), names, "something is left over");

    if case.link == Link::Hard && found != before {
        // The other name keeps the old text, and who can be told is told.
        assert_eq!(std::fs::read(folder.file("other.txt")).unwrap(), before);
        assert_eq!(Attributes::of(&folder.file("other.txt")), attributes);
        if case.dialect == Dialect::Tool {
            assert!(texts(&answer)[1].contains("1 other hard link"), "{answer}");
            let notes = answer["result"]["structuredContent"]["notes"].to_string();
            assert!(notes.contains("1 other hard link"), "{answer}");
        }
    }
}

#[test]
fn only_the_asked_lines_change() {
    let folder = Folder::new();
    let able = Able::here(&folder);
    let server = RefCell::new(folder.serve_with(&["--durability=none"]));
    let config = Config { cases: 600, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng)
        .run(&cases(), |case| {
            check(&folder, &mut server.borrow_mut(), able, &case);
            Ok(())
        })
        .unwrap();
}

/// A file that is made anew gets what any new file gets.
#[test]
fn a_new_file_has_the_mode_of_any_new_file() {
    let folder = Folder::new();
    folder.write("by_us", "x\n");
    folder.serve().text("edit_file", json!({ "name": "by_server", "append": "x" }));
    let mode = |name| folder.file(name).metadata().unwrap().mode();
    assert_eq!(mode("by_server"), mode("by_us"));
}

/// A file nobody may write is not replaced behind its mode's back, even by root.
#[test]
fn a_read_only_file_is_refused() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    std::fs::set_permissions(folder.file("a.txt"), std::fs::Permissions::from_mode(0o444)).unwrap();
    let mut server = folder.serve();
    let message = server.error("edit_file", json!({ "name": "a.txt", "append": "x" }));
    assert_eq!(message, "Error: Permission denied accessing 'a.txt'");
    assert_eq!(folder.read("a.txt"), "one\n");
    assert_eq!(folder.file("a.txt").metadata().unwrap().mode() & 0o7777, 0o444);
}

/// What the server's user may not keep is told, and nobody gets more rights by it.
#[test]
fn an_owner_that_cannot_be_kept_is_told() {
    if !is_root_to_check("an owner that cannot be kept") {
        return;
    }
    let place = Folder::new();
    std::fs::create_dir(place.file("root")).unwrap();
    place.write("root/a.txt", "one\n");
    // The group may write, and is the server's; the owner is not. A change of owner clears bits of the mode.
    chown(place.file("root/a.txt"), Some(0), Some(65534)).unwrap();
    for (name, mode) in [("root", 0o777), ("root/a.txt", 0o2664)] {
        std::fs::set_permissions(place.file(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut server = as_nobody(&place, &[]);
    let answer = server.tool("edit_file", json!({ "name": "a.txt", "append": "two" }));
    let notes = [
        "the server's user has no permission to keep: owner",
        "setuid, setgid and file capabilities were removed, as by any write",
    ];
    assert_eq!(answer["result"]["structuredContent"]["notes"], json!(notes), "{answer}");
    assert!(texts(&answer)[1].contains(&notes.join("\n")), "{answer}");
    assert_eq!(place.read("root/a.txt"), "one\ntwo\n");
    let now = place.file("root/a.txt").metadata().unwrap();
    assert_eq!((now.uid(), now.gid(), now.mode() & 0o7777), (65534, 65534, 0o664));
}
