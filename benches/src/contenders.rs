//! Who takes part: this product, the floor below it, and its rivals; how each is started and asked.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::scene;

/// What a server is asked to do, with one file or the folder it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Read,
    /// Some lines, by the numbers of the first and the last, from 0.
    Lines(usize, usize),
    /// One string replaced by another.
    Edit,
    /// The same, at the place of that number.
    EditAt(usize),
    /// This line replaced, from 0.
    EditLine(usize),
    /// A hundred strings replaced.
    Edits,
    /// So many bytes written.
    Write(usize),
    /// The files, with the number of their lines from whom that can be had.
    List,
}

impl Task {
    /// Which of the marked places it is about.
    fn place(self) -> usize {
        if let Self::EditAt(place) = self { place } else { 0 }
    }
}

/// When an edit is answered: at once, when its text is on the disk, or when its name is too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    #[default]
    None,
    Data,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The floor's loop without a server around it.
    Raw,
    Floor,
    Ours,
    /// Another build of this product.
    Before,
    Official,
    RustMcp,
    Patchloom,
}

impl Kind {
    pub fn is_rival(self) -> bool {
        matches!(self, Self::Official | Self::RustMcp | Self::Patchloom)
    }

    /// This product, whichever build.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Ours | Self::Before)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw loop",
            Self::Floor => "floor",
            Self::Ours => "file-editor",
            Self::Before => "the build before",
            Self::Official => "server-filesystem",
            Self::RustMcp => "rust-mcp-filesystem",
            Self::Patchloom => "patchloom",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Contender {
    pub kind: Kind,
    pub program: PathBuf,
    /// Everything that has to be on the disk for it: a folder, or the program itself.
    pub installed: PathBuf,
}

/// Those that are servers.
pub fn serving(contenders: &[Contender]) -> impl Iterator<Item = &Contender> {
    contenders.iter().filter(|contender| contender.kind != Kind::Raw)
}

/// One call: the file or folder, and how many calls there were before it. What a call writes is different each time,
/// and what it replaces is what the one before it wrote.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    pub path: &'a Path,
    pub number: usize,
}

impl Round<'_> {
    fn name(self) -> Value {
        self.path.file_name().map(|name| name.to_string_lossy()).into()
    }

    fn before(self, place: usize) -> String {
        scene::mark(place, self.number)
    }

    fn after(self, place: usize) -> String {
        scene::mark(place, self.number + 1)
    }

    /// The edits of a hundred places, by the names that somebody has for old and new.
    fn edits(self, old: &str, new: &str) -> Value {
        (0..scene::MARKS).map(|at| json!({ old: self.before(at), new: self.after(at) })).collect()
    }
}

impl Contender {
    /// One that is a program and nothing else.
    pub fn alone(kind: Kind, program: &Path) -> Self {
        Self { kind, program: program.into(), installed: program.into() }
    }

    /// The server on stdio, serving `folder`.
    pub fn command(&self, folder: &Path, durability: Durability) -> Command {
        let mut command = Command::new(&self.program);
        match self.kind {
            Kind::Floor if durability != Durability::None => drop(command.arg("--sync")),
            Kind::Raw | Kind::Floor => {}
            Kind::Ours | Kind::Before => {
                let durability = format!("--durability={durability:?}").to_lowercase();
                let folder = format!("--dir={}", folder.display());
                command.args(["--transport=stdio", "--log=error", "--tools=all"]);
                command.args([durability, folder]);
            }
            Kind::Official => drop(command.arg(folder)),
            Kind::RustMcp => drop(command.arg("--allow-write").arg(folder)),
            Kind::Patchloom => drop(command.arg("mcp-server").current_dir(folder)),
        }
        command
    }

    /// The parameters of the tool call; `None` if it has no such tool.
    pub fn ask(&self, task: Task, round: Round) -> Option<Value> {
        let (tool, arguments) = match self.kind {
            Kind::Raw => return None,
            Kind::Floor => floor(task, round),
            Kind::Ours | Kind::Before => ours(task, round),
            Kind::Official => official(task, round)?,
            Kind::RustMcp => match task {
                Task::Lines(from, to) => {
                    let (path, limit) = (round.path, to - from + 1);
                    ("read_file_lines", json!({ "path": path, "offset": from, "limit": limit }))
                }
                task => official(task, round)?,
            },
            Kind::Patchloom => patchloom(task, round),
        };
        Some(json!({ "name": tool, "arguments": arguments }))
    }
}

fn floor(task: Task, round: Round) -> (&'static str, Value) {
    let path = round.path;
    match task {
        Task::Read => ("read", json!({ "path": path })),
        Task::Lines(from, to) => ("read_lines", json!({ "path": path, "from": from, "to": to })),
        Task::Edit | Task::EditAt(_) => {
            let (old, new) = (round.before(task.place()), round.after(task.place()));
            ("edit", json!({ "path": path, "old": old, "new": new }))
        }
        Task::EditLine(line) => {
            ("edit_line", json!({ "path": path, "line": line, "text": round.after(0) }))
        }
        Task::Edits => ("edit", json!({ "path": path, "edits": round.edits("old", "new") })),
        Task::Write(size) => {
            ("write", json!({ "path": path, "content": scene::written(size, round.number) }))
        }
        Task::List => ("list", json!({ "path": path })),
    }
}

fn ours(task: Task, round: Round) -> (&'static str, Value) {
    let (path, name) = (round.path, round.name());
    match task {
        Task::Read => ("read_text_file", json!({ "path": path })),
        Task::Lines(from, to) => {
            ("read_file", json!({ "name": name, "start_line": from, "end_line": to }))
        }
        Task::Edit | Task::EditAt(_) => {
            let (old, new) = (round.before(task.place()), round.after(task.place()));
            let edits = json!([{ "old_string": old, "new_string": new }]);
            ("multi_edit_text_file", json!({ "path": path, "edits": edits }))
        }
        Task::EditLine(line) => {
            let edits =
                json!([{ "operation": "replace", "line": line, "content": round.after(0) }]);
            ("edit_file", json!({ "name": name, "edits": edits }))
        }
        Task::Edits => {
            let edits = round.edits("old_string", "new_string");
            ("multi_edit_text_file", json!({ "path": path, "edits": edits }))
        }
        Task::Write(size) => {
            let content = scene::written(size, round.number);
            ("write_text_file", json!({ "path": path, "content": content }))
        }
        Task::List => ("list_files", json!({})),
    }
}

fn official(task: Task, round: Round) -> Option<(&'static str, Value)> {
    let path = round.path;
    Some(match task {
        Task::Read => ("read_text_file", json!({ "path": path })),
        // It has no way to begin anywhere but at the first line.
        Task::Lines(_, to) => ("read_text_file", json!({ "path": path, "head": to + 1 })),
        Task::Edit | Task::EditAt(_) => {
            let (old, new) = (round.before(task.place()), round.after(task.place()));
            let edits = json!([{ "oldText": old, "newText": new }]);
            ("edit_file", json!({ "path": path, "edits": edits }))
        }
        Task::EditLine(_) => return None,
        Task::Edits => {
            ("edit_file", json!({ "path": path, "edits": round.edits("oldText", "newText") }))
        }
        Task::Write(size) => {
            ("write_file", json!({ "path": path, "content": scene::written(size, round.number) }))
        }
        Task::List => ("list_directory", json!({ "path": path })),
    })
}

fn patchloom(task: Task, round: Round) -> (&'static str, Value) {
    let name = round.name();
    match task {
        Task::Read => ("read_file", json!({ "path": name })),
        Task::Lines(from, to) => {
            ("read_file", json!({ "path": name, "start_line": from + 1, "end_line": to + 1 }))
        }
        Task::Edit | Task::EditAt(_) => {
            let (old, new) = (round.before(task.place()), round.after(task.place()));
            ("replace_text", json!({ "path": name, "old": old, "new": new }))
        }
        // Whatever stands on lines from that one to that one.
        Task::EditLine(line) => {
            let range = format!("{0}:{0}", line + 1);
            let mut arguments = json!({ "path": name, "old": ".*", "new": round.after(0) });
            arguments["regex"] = true.into();
            arguments["whole_line"] = true.into();
            arguments["range"] = range.into();
            ("replace_text", arguments)
        }
        Task::Edits => {
            let mut operations = round.edits("old", "new");
            for operation in operations.as_array_mut().into_iter().flatten() {
                operation["op"] = "replace".into();
                operation["path"] = name.clone();
            }
            ("execute_plan", json!({ "plan": { "version": 1, "operations": operations } }))
        }
        Task::Write(size) => {
            let content = scene::written(size, round.number);
            ("create_file", json!({ "path": name, "content": content, "force": true }))
        }
        // It counts no lines, and would show 500 names.
        Task::List => ("list_files", json!({ "max_results": 1_000_000 })),
    }
}
