//! The calls that write, each with what is there before it, and after it when it says that it did it.

use std::path::Path;

use serde_json::{Value, json};

use crate::server::{Answer, NoAnswer, Server};

pub struct Act {
    pub name: &'static str,
    tool: &'static str,
    /// The file it is about, from the root.
    pub file: &'static str,
    /// `None`: it is missing.
    pub before: Option<String>,
    pub after: String,
    /// All but the file.
    arguments: Value,
}

impl Act {
    pub fn is_create(&self) -> bool {
        self.before.is_none()
    }

    pub fn call(&self, server: &mut Server, root: &Path) -> Result<Answer, NoAnswer> {
        server.call(self.tool, &self.arguments(root))
    }

    fn arguments(&self, root: &Path) -> Value {
        let mut arguments = self.arguments.clone();
        if self.tool == "edit_file" {
            arguments["name"] = self.file.into();
        } else {
            arguments["path"] = root.join(self.file).display().to_string().into();
        }
        arguments
    }

    /// The same on another file.
    pub fn on(self, file: &'static str) -> Self {
        Self { file, ..self }
    }
}

/// A text of so many bytes, at least 40.
fn text(age: &str, size: usize) -> String {
    let head = format!("{age} head\n");
    let line = "what comes after it stays as it is, ä and all\n";
    let room = size - head.len();
    let mut body = line.repeat(room / line.len());
    if body.len() < room {
        body += &"-".repeat(room - body.len() - 1);
        body.push('\n');
    }
    head + &body
}

pub fn edit(size: usize) -> Act {
    let (before, after) = (text("old", size), text("new", size));
    let edits = json!({ "edits": [{ "line": 0, "operation": "replace", "content": "new head" }] });
    act("edit_file", "edit_file", "a.txt", Some(before), after, edits)
}

pub fn create_by_edit(size: usize) -> Act {
    let after = text("new", size);
    let append = json!({ "append": after });
    act("edit_file, new", "edit_file", "new.txt", None, after, append)
}

pub fn create(size: usize) -> Act {
    let after = text("new", size);
    let content = json!({ "content": after });
    act("write_text_file, new", "write_text_file", "new.txt", None, after, content)
}

pub fn create_in_new_folders(size: usize) -> Act {
    let after = text("new", size);
    let content = json!({ "content": after, "create_dirs": true });
    act("write_text_file, new folders", "write_text_file", "x/y/new.txt", None, after, content)
}

pub fn overwrite(size: usize) -> Act {
    let (before, after) = (text("old", size), text("new", size));
    let content = json!({ "content": after });
    act("write_text_file", "write_text_file", "a.txt", Some(before), after, content)
}

pub fn multi_edit(size: usize) -> Act {
    let (before, after) = (text("old", size), text("new", size));
    let replace = |old: &str, new: &str| json!({ "old_string": old, "new_string": new });
    let edits =
        json!({ "edits": [replace("old head", "the head"), replace("the head", "new head")] });
    act("multi_edit_text_file", "multi_edit_text_file", "a.txt", Some(before), after, edits)
}

/// One of each.
pub fn all(size: usize) -> Vec<Act> {
    vec![
        edit(size),
        create_by_edit(size),
        create(size),
        create_in_new_folders(size),
        overwrite(size),
        multi_edit(size),
        Act { name: "multi_edit_text_file, subfolder", ..multi_edit(size).on("sub/b.txt") },
    ]
}

fn act(
    name: &'static str,
    tool: &'static str,
    file: &'static str,
    before: Option<String>,
    after: String,
    arguments: Value,
) -> Act {
    Act { name, tool, file, before, after, arguments }
}
