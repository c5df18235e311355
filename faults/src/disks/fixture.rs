//! What there is before an act, and how to look at what it left.

use std::collections::BTreeSet;

use serde_json::Value;

use super::acts::Act;
use crate::fuse::{Disk, File, Node, Tree};
use crate::server::{Answer, Server};

pub fn start(disk: &Disk, flag: &str) -> Server {
    let mut server = Server::start(disk.path(), &["--tools=all", flag]);
    server.ready();
    server
}

pub fn file(text: &str) -> File {
    let attributes = [("user.note".into(), b"kept".to_vec())].into();
    File { bytes: text.into(), mode: 0o640, uid: 1000, gid: 1001, attributes }
}

/// What there is before an act.
pub fn before(act: &Act) -> Tree {
    let other = || Node::File(file("of no concern\n"));
    let mut tree = Tree::from([
        ("sub".into(), Node::Folder),
        ("other.txt".into(), other()),
        ("sub/other.txt".into(), other()),
    ]);
    if let Some(text) = &act.before {
        tree.insert(act.file.into(), Node::File(file(text)));
    }
    tree
}

pub fn is_litter(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with(".fe-"))
}

pub fn notes(answer: &Answer) -> String {
    let notes = answer.data()["notes"].as_array().map(Vec::as_slice).unwrap_or_default();
    notes.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ")
}

/// What an answer says, short.
pub fn told(answer: &Answer) -> String {
    answer.text().replace('\n', " | ").chars().take(200).collect()
}

/// Where two trees differ, without the texts.
pub fn differences(one: &Tree, other: &Tree) -> Vec<String> {
    let shown = |node: Option<&Node>| match node {
        None => "missing".into(),
        Some(Node::Folder) => "folder".into(),
        Some(Node::File(File { bytes, mode, uid, gid, attributes })) => format!(
            "{} bytes from {:?}, {mode:o} {uid}:{gid} {:?}",
            bytes.len(),
            String::from_utf8_lossy(&bytes[..bytes.len().min(8)]),
            attributes.keys()
        ),
    };
    let paths: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    paths
        .into_iter()
        .filter(|path| one.get(*path) != other.get(*path))
        .map(|path| format!("{path}: {} / {}", shown(one.get(path)), shown(other.get(path))))
        .collect()
}
