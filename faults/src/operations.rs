//! What a server is doing when something goes wrong: edit, create, multi-edit, overwrite; and how its file looks then.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::{Value, json};

use crate::server::{Answer, NoAnswer, Server};

pub const DURABILITIES: [&str; 3] = ["none", "data", "full"];

const NOTE: &str = "user.note";
const MODE: u32 = 0o640;
/// An owner other than ours, for those who may give files away.
const OWNER: (u32, u32) = (1000, 1001);

pub struct Operation {
    pub name: &'static str,
    tool: &'static str,
    /// Below the served folder.
    file: &'static str,
    before: Option<String>,
    after: String,
    /// All but the path.
    arguments: Value,
}

/// How a file is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Old,
    New,
    /// What it is instead.
    Torn(String),
}

impl Operation {
    pub fn all() -> Vec<Self> {
        let lines: Vec<String> =
            (0..600).map(|line| format!("line {line} of the file as it was\n")).collect();
        let old = lines.concat();
        let edited = old.replacen(&lines[300], "a line that was replaced\n", 1);
        let twice = edited.replacen(&lines[3], "another one\n", 1);
        let (first, second) = (&lines[300], &lines[3]);
        let new: Vec<String> =
            (0..500).map(|line| format!("line {line} of a new file\n")).collect();
        let new = new.concat();
        let operation = |name, tool, file, before: Option<&str>, after: &str, arguments| Self {
            name,
            tool,
            file,
            before: before.map(String::from),
            after: after.into(),
            arguments,
        };
        let edits = json!({ "edits": [
            { "line": 300, "operation": "replace", "content": "a line that was replaced" },
        ] });
        let strings = json!({ "edits": [
            { "old_string": first, "new_string": "a line that was replaced\n" },
            { "old_string": second, "new_string": "another one\n" },
        ] });
        let whole = json!({ "content": new });
        let folders = json!({ "content": new, "create_dirs": true });
        vec![
            operation("edit", "edit_file", "a.txt", Some(&old), &edited, edits),
            operation("create", "edit_file", "a.txt", None, &new, json!({ "append": new })),
            operation(
                "multi-edit",
                "multi_edit_text_file",
                "sub/a.txt",
                Some(&old),
                &twice,
                strings,
            ),
            operation("overwrite", "write_text_file", "a.txt", Some(&old), &new, whole),
            operation("create folders", "write_text_file", "new/deep/a.txt", None, &new, folders),
        ]
    }

    pub fn file(&self, dir: &Path) -> PathBuf {
        dir.join(self.file)
    }

    pub fn is_new(&self) -> bool {
        self.before.is_none()
    }

    /// How many folders the file is in, the served one among them.
    pub fn depth(&self) -> usize {
        Path::new(self.file).components().count()
    }

    /// Makes the folder what it was.
    pub fn set_up(&self, dir: &Path) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
        fs::create_dir(dir.join("sub")).unwrap();
        if let Some(text) = &self.before {
            let path = self.file(dir);
            fs::write(&path, text).unwrap();
            setxattr(&path, NOTE, b"kept", XattrFlags::empty()).unwrap();
            let (user, group) = OWNER;
            if rustix::process::geteuid().is_root() {
                std::os::unix::fs::chown(&path, Some(user), Some(group)).unwrap();
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(MODE)).unwrap();
        }
    }

    fn arguments(&self, dir: &Path, mut arguments: Value) -> Value {
        if self.tool == "edit_file" {
            arguments["name"] = self.file.into();
        } else {
            arguments["path"] = self.file(dir).display().to_string().into();
        }
        arguments
    }

    pub fn call(&self, dir: &Path) -> (&'static str, Value) {
        (self.tool, self.arguments(dir, self.arguments.clone()))
    }

    /// Whether there is a plain method for it.
    pub fn is_plain(&self) -> bool {
        self.tool == "edit_file"
    }

    /// The same as a plain method: there lines count from 1, and whoever wants a new file has to say so.
    pub fn plain_call(&self, dir: &Path) -> (&'static str, Value) {
        let (method, mut arguments) = self.call(dir);
        let edits = arguments.get_mut("edits").and_then(Value::as_array_mut);
        for edit in edits.into_iter().flatten() {
            edit["line"] = edit["line"].as_i64().map(|line| line + 1).into();
        }
        arguments["create_if_missing"] = self.is_new().into();
        (method, arguments)
    }

    pub fn state(&self, dir: &Path) -> State {
        match fs::read_to_string(self.file(dir)) {
            Ok(text) if text == self.after => State::New,
            Ok(text) if Some(&text) == self.before.as_ref() => State::Old,
            Ok(text) => State::Torn(format!("{} bytes of something else", text.len())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.before.is_none() => {
                State::Old
            }
            Err(error) => State::Torn(error.to_string()),
        }
    }

    /// What is not as the file had it: mode, owner, extended attributes.
    pub fn changed_attributes(&self, dir: &Path) -> Vec<&'static str> {
        let path = self.file(dir);
        let (Some(_), Ok(found)) = (&self.before, fs::metadata(&path)) else { return Vec::new() };
        let mut note = [0; 8];
        let noted = getxattr(&path, NOTE, &mut note).is_ok_and(|length| &note[..length] == b"kept");
        let owner_kept =
            !rustix::process::geteuid().is_root() || (found.uid(), found.gid()) == OWNER;
        let kept = [
            ("mode", found.mode() & 0o7777 == MODE),
            ("owner", owner_kept),
            ("extended attributes", noted),
        ];
        kept.into_iter().filter(|(_, kept)| !kept).map(|(name, _)| name).collect()
    }

    /// Whatever is in the folder that was not there before and is not the file: temporary files, folders.
    pub fn leftovers(&self, dir: &Path) -> Vec<String> {
        let mut found = Vec::new();
        list(dir, dir, &mut found);
        let file = Path::new(self.file);
        let is_new = self.file(dir).exists();
        found.retain(|name| {
            let is_parent = is_new && file.starts_with(name);
            name != self.file && name != "sub" && !is_parent
        });
        found
    }

    /// The next edit of the file, in whatever state it is: it must work.
    pub fn edit_again(&self, server: &mut Server, dir: &Path) -> Result<(), String> {
        match self.state(dir) {
            State::Torn(what) => Err(what),
            _ => self.append(dir, |tool, arguments| server.call(tool, arguments)),
        }
    }

    /// One more line, whatever there is; the file must have it then.
    pub fn append(
        &self,
        dir: &Path,
        call: impl FnOnce(&str, &Value) -> Result<Answer, NoAnswer>,
    ) -> Result<(), String> {
        let text = fs::read_to_string(self.file(dir)).unwrap_or_default();
        let after = format!("{text}the next edit\n");
        let (tool, arguments) = if self.tool == "edit_file" {
            ("edit_file", json!({ "append": "the next edit\n" }))
        } else {
            // A folder that is there because we were killed is no hindrance.
            ("write_text_file", json!({ "content": after, "create_dirs": true }))
        };
        match call(tool, &self.arguments(dir, arguments)) {
            Ok(answer) if answer.is_error() => Err(format!("the next edit: {}", answer.text())),
            Ok(_) if fs::read_to_string(self.file(dir)).is_ok_and(|found| found == after) => Ok(()),
            Ok(_) => Err("the next edit is not in the file".into()),
            Err(why) => Err(format!("the next edit: {why:?}")),
        }
    }

    /// The name of a call of the file system, if it is the one that makes the new text the file.
    pub fn published_by(&self, call: &str) -> Option<&'static str> {
        // A text that replaces another is linked before, under a hidden name.
        let names = ["renameat", "renameat2", "linkat"].into_iter();
        names
            .filter(|name| *name != "linkat" || self.is_new())
            .find(|name| call.split('(').next() == Some(name))
    }

    /// What is wrong with an answer, given how the file is now.
    pub fn dishonest(&self, dir: &Path, answer: &Answer) -> Option<String> {
        let state = self.state(dir);
        let expected = if answer.is_error() { State::Old } else { State::New };
        if state != expected {
            return Some(format!("the file is {state:?}, the answer says {}", answer.text()));
        }
        let changed = self.changed_attributes(dir);
        let told = |name: &&str| answer.text().contains(*name);
        let untold: Vec<_> = changed.into_iter().filter(|name| !told(name)).collect();
        (!untold.is_empty()).then(|| format!("changed without a word: {}", untold.join(", ")))
    }
}

fn list(dir: &Path, top: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        found.push(path.strip_prefix(top).unwrap().display().to_string());
        if path.is_dir() {
            list(&path, top, found);
        }
    }
}

/// Whether this is the name of a temporary file of ours.
pub fn is_temporary(name: &str) -> bool {
    let name = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(".fe-") && name.ends_with(".tmp")
}
