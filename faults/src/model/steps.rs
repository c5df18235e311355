//! What is done next: by chance, but from the world as it is, so that much of it makes sense.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::tools::{Call, Tool};
use super::world::{Kind, MOST, World, decode, hash};
use super::{faulty, lines};
use crate::chance::Chance;

const FLAT: &[&str] = &["a.txt", "a.txt", "b.md", "c.rs", "d-e_f.json", ".hidden", "big.txt"];
const BELOW: &[&str] =
    &["my file.txt", "sub/a.txt", "sub/deep/b.py", "sub/ä.txt", "new/x/y.txt", "a.txt/x", "sub"];
/// What lines are made of: few words, so that they come again.
const LINES: &[&str] = &[
    "a",
    "b",
    "ab",
    "aa",
    "",
    "",
    "  a",
    "\ta",
    "a b",
    "ä",
    "😀",
    "}",
    "{",
    "fn a() {}",
    "x = 1",
    "  ",
    "B",
    "aaa",
    "e\u{301}",
    "\u{2028}",
    "\"\\",
    "key: value",
    "\u{7f}\u{1}",
];
const ENDS: &[&str] = &["\n", "\n", "\r\n", "\r"];

pub struct Dice(Chance);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Chance::new(seed))
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.below(end as u64)).unwrap()
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    fn line(&mut self) -> String {
        self.pick(LINES).to_owned()
    }

    /// A text of a few lines, of one style or of several, with or without a break at its end.
    fn text(&mut self) -> String {
        let is_mixed = self.one_in(5);
        let mut end = self.pick(ENDS);
        let mut text = String::new();
        if self.one_in(10) {
            text.push('\u{feff}');
        }
        for _ in 0..self.below(9) {
            if is_mixed {
                end = self.pick(ENDS);
            }
            text.push_str(&self.line());
            text.push_str(end);
        }
        if self.one_in(3) {
            text.push_str(&self.line());
        }
        text
    }

    /// One that is large enough for its lines to be remembered.
    fn large_text(&mut self) -> String {
        let end = self.pick(ENDS);
        let (first, count) = (self.below(1000), 14_000 + self.below(8000));
        let mut text = String::new();
        for number in first..first + count {
            let _ = write!(text, "line {number} of many{end}");
        }
        text
    }

    /// What is put into lines: mostly one, at times several.
    fn content(&mut self) -> String {
        match self.below(6) {
            0 => self.text().replace('\u{feff}', ""),
            1 => format!("{}\n", self.line()),
            _ => self.line(),
        }
    }

    /// A line number around those that are there.
    fn number(&mut self, lines: usize, base: usize) -> Value {
        let number = match self.below(30) {
            0 => lines + base,
            1 => lines + base + self.below(5),
            2 => 1_000_000_000_000,
            _ => self.below(lines.max(1)) + base,
        };
        #[expect(clippy::cast_precision_loss, reason = "it is small enough")]
        let float = number as f64;
        if self.one_in(20) { json!(float) } else { json!(number) }
    }

    /// A part of a text, or what might be one.
    fn part(&mut self, text: &str) -> String {
        let characters: Vec<_> = text.chars().collect();
        if characters.is_empty() || self.one_in(16) {
            return self.text().replace('\u{feff}', "");
        }
        let start = self.below(characters.len());
        let most = if self.one_in(3) { 3 } else { 20 };
        let length = 1 + self.below(most);
        let part: String = characters[start..].iter().take(length).collect();
        match self.below(8) {
            0 => part.replace("\r\n", "\n"),
            1 => part.replace('\n', "\r\n"),
            _ => part,
        }
    }

    /// Any path; rather one of a text that is there.
    fn path(&mut self, world: &World) -> &'static str {
        let any = |dice: &mut Self| {
            if dice.one_in(2) { dice.pick(FLAT) } else { dice.pick(BELOW) }
        };
        let paths = [0; 3].map(|_| any(self));
        rather(world, &paths)
    }

    fn flat_path(&mut self, world: &World) -> &'static str {
        if self.one_in(25) {
            return "sub";
        }
        let paths = [0; 2].map(|_| self.pick(FLAT));
        rather(world, &paths)
    }

    /// The next call.
    pub fn call(&mut self, world: &World) -> Call {
        if self.one_in(14) {
            return self.faulty(world);
        }
        match self.below(40) {
            0 => called(Tool::ListFiles, json!({}), ""),
            1 => called(Tool::PlainListFiles, json!({}), ""),
            2 => called(Tool::ListResources, json!({}), ""),
            3..=5 => self.read_file(world, Tool::ReadFile),
            6..=8 => self.read_file(world, Tool::PlainReadFile),
            9..=14 => self.edit_file(world, Tool::EditFile),
            15..=18 => self.edit_file(world, Tool::PlainEditFile),
            19..=21 => self.read_text_file(world),
            22..=25 => self.write_text_file(world),
            26..=32 => self.multi_edit(world),
            33..=36 => self.ai_edit_code(world),
            37 => self.search(),
            38 if self.one_in(4) => self.context(world),
            _ => {
                let path = self.path(world);
                let uri = format!("file://{}", escaped(&world.absolute(path)));
                called(Tool::ReadResource, json!({ "uri": uri }), path)
            }
        }
    }

    fn read_file(&mut self, world: &World, tool: Tool) -> Call {
        let path = self.flat_path(world);
        let mut arguments = json!({ "name": path });
        let (count, base) = (line_count(world, path), usize::from(tool == Tool::PlainReadFile));
        let [start, end] = [0; 2].map(|_| self.number(count, base));
        let is_ordered = start.as_f64() <= end.as_f64();
        match self.below(4) {
            0 => arguments["start_line"] = start,
            1 => arguments["end_line"] = end,
            2 if is_ordered => (arguments["start_line"], arguments["end_line"]) = (start, end),
            _ => {}
        }
        if tool == Tool::ReadFile && self.one_in(4) {
            arguments["line_numbers"] = true.into();
        }
        called(tool, arguments, path)
    }

    fn read_text_file(&mut self, world: &World) -> Call {
        let path = self.path(world);
        let mut arguments = json!({ "path": world.absolute(path) });
        let count = line_count(world, path);
        if self.one_in(2) {
            arguments["line"] = self.number(count, 1);
        }
        if self.one_in(2) {
            arguments["limit"] = self.number(count.min(30), 1);
        }
        if self.one_in(4) {
            arguments["line_numbers"] = true.into();
        }
        called(Tool::ReadTextFile, arguments, path)
    }

    fn edit_file(&mut self, world: &World, tool: Tool) -> Call {
        let path = self.flat_path(world);
        let (count, base) = (line_count(world, path), usize::from(tool == Tool::PlainEditFile));
        let mut arguments = json!({ "name": path });
        if !self.one_in(6) {
            let number = if self.one_in(10) { 0 } else { 1 + self.below(3) };
            let edits = (0..number).map(|_| self.line_edit(count, base));
            arguments["edits"] = edits.collect();
        }
        if self.one_in(3) {
            arguments["append"] = self.content().into();
        }
        if self.one_in(3) {
            arguments["create_if_missing"] = (!self.one_in(3)).into();
        }
        let mut call = called(tool, arguments, path);
        if tool == Tool::EditFile {
            self.guard(world, &mut call);
        } else if self.one_in(5) {
            call.if_match = Some(self.hash(world, path));
        }
        call
    }

    fn line_edit(&mut self, count: usize, base: usize) -> Value {
        let line = self.number(count, base);
        match self.below(3) {
            0 => json!({ "line": line, "operation": "delete" }),
            1 => json!({ "line": line, "operation": "insert", "content": self.content() }),
            _ => json!({ "line": line, "operation": "replace", "content": self.content() }),
        }
    }

    /// The file's hash, or one that is not.
    fn hash(&mut self, world: &World, path: &str) -> String {
        match world.files.get(path) {
            Some(bytes) if !self.one_in(3) => hash(bytes),
            _ => "0123456789abcdef".into(),
        }
    }

    /// What every tool that writes can be asked besides.
    fn guard(&mut self, world: &World, call: &mut Call) {
        if self.one_in(6) {
            call.arguments["expected_hash"] = self.hash(world, &call.path).into();
        }
        if self.one_in(8) {
            call.arguments["dry_run"] = true.into();
        }
    }

    fn write_text_file(&mut self, world: &World) -> Call {
        let path = self.path(world);
        let is_large = path == "big.txt" && self.one_in(2);
        let mut content = if is_large { self.large_text() } else { self.text() };
        if let (Some(text), true) = (body(world, path), self.one_in(6)) {
            content = text; // as it is
        }
        let mut arguments = json!({ "path": world.absolute(path), "content": content });
        if self.one_in(2) {
            arguments["create_dirs"] = true.into();
        }
        let mut call = called(Tool::WriteTextFile, arguments, path);
        self.guard(world, &mut call);
        call
    }

    fn multi_edit(&mut self, world: &World) -> Call {
        let path = self.path(world);
        let text = body(world, path).unwrap_or_default();
        let mut edits = Vec::new();
        let count = if self.one_in(3) { 1 + self.below(4) } else { 1 };
        for index in 0..count {
            let old = self.part(&text);
            let is_same = self.one_in(10);
            let new = if is_same { old.clone() } else { self.content() };
            let mut edit = json!({ "old_string": old, "new_string": new });
            match self.below(8) {
                0 => edit["replace_all"] = true.into(),
                1 => edit["expected_count"] = (1 + self.below(3)).into(),
                2 if index == 0 => {
                    edit["near_line"] = self.number(lines::lines(&text).len(), 1);
                }
                _ => {}
            }
            if self.one_in(60) {
                edit["old_string"] = "".into();
            }
            edits.push(edit);
        }
        let arguments = json!({ "path": world.absolute(path), "edits": edits });
        let mut call = called(Tool::MultiEditTextFile, arguments, path);
        self.guard(world, &mut call);
        call
    }

    fn ai_edit_code(&mut self, world: &World) -> Call {
        let path = self.path(world);
        let count = line_count(world, path);
        let mut arguments = json!({ "target_file": path, "edit_instruction": "as chance has it" });
        let kind = self.pick(&["insert", "replace", "delete"]);
        let start = self.number(count, 1);
        match kind {
            "insert" if self.one_in(3) => {}
            "insert" => arguments["start_line"] = start,
            _ => {
                let end = self.number(count, 1);
                if self.one_in(2) && start.as_f64() <= end.as_f64() {
                    arguments["end_line"] = end;
                }
                arguments["start_line"] = start;
            }
        }
        if kind != "delete" {
            arguments["code_block"] = self.content().into();
        }
        let is_default = match kind {
            "insert" => arguments["start_line"].is_null(),
            kind => kind == "replace",
        };
        if !is_default || self.one_in(2) {
            arguments["edit_type"] = kind.into();
        }
        let mut call = called(Tool::AiEditCode, arguments, path);
        self.guard(world, &mut call);
        call
    }

    fn search(&mut self) -> Call {
        let pattern = self.pick(&["a", "ab", "B", "ä", "}", "line 77", "nowhere", "a b", "\"\\"]);
        let mut arguments = json!({ "pattern": pattern, "literal": true, "max_results": 1000 });
        match self.below(4) {
            0 => arguments["show"] = "counts".into(),
            // Large files would have thousands of pages.
            1 if !"a line 77".contains(pattern) => {
                arguments["max_results"] = (1 + self.below(5)).into();
            }
            _ => {}
        }
        if self.one_in(3) {
            arguments["case"] = self.pick(&["smart", "sensitive"]).into();
        }
        called(Tool::SearchFiles, arguments, "")
    }

    fn context(&mut self, world: &World) -> Call {
        let there: Vec<_> = world.files.keys().filter(|path| !path.starts_with('.')).collect();
        if there.is_empty() || self.one_in(2) {
            return called(
                Tool::AiGetCodeContext,
                json!({ "query": "fn a key value of many" }),
                "",
            );
        }
        let path = there[self.below(there.len())];
        called(Tool::AiGetCodeContext, json!({ "files": [path] }), path)
    }

    /// A call that is refused whatever there is.
    fn faulty(&mut self, world: &World) -> Call {
        let path = self.pick(FLAT);
        let which = self.below(faulty::count());
        let (tool, arguments, refusal) = faulty::call(which, path, &world.absolute(path));
        Call { faulty: Some(refusal), ..called(tool, arguments, path) }
    }

    /// Somebody else changes something; what was done, and to which path.
    pub fn outsider(&mut self, world: &mut World, aside: &Path) -> (String, String) {
        let path = self.path(world);
        let at = world.root.join(path);
        let kind = world.kind(path);
        let old = world.files.get(path).cloned().unwrap_or_default();
        let did = match (kind, self.below(10)) {
            (Kind::Folder | Kind::NoFolder, _) => self.change_folders(world, path),
            (Kind::File, 0) => {
                fs::remove_file(&at).unwrap();
                world.files.remove(path);
                "removes it".into()
            }
            (Kind::File, 1) if !old.is_empty() && old.len() <= MOST => {
                // The size stays, and the time may.
                let mut bytes = old;
                let place = self.below(bytes.len());
                bytes[place] = if bytes[place] == b'a' { b'b' } else { b'a' };
                put(world, path, bytes);
                format!("changes byte {place}")
            }
            (Kind::File, 2) => {
                let time = SystemTime::now() - Duration::from_secs(10 + self.below(1000) as u64);
                fs::File::options().write(true).open(&at).unwrap().set_modified(time).unwrap();
                "changes its time".into()
            }
            (_, 3) => {
                let bytes: &[u8] = if self.one_in(2) { b"a\0b\n" } else { b"a\n\xff\n" };
                put(world, path, bytes.to_vec());
                "makes it binary".into()
            }
            (_, 4) if path == "big.txt" => {
                let size = MOST + 1 + self.below(MOST);
                put(world, path, vec![b'\n'; size]);
                format!("makes it {size} bytes large")
            }
            (_, 5 | 6) => {
                let text = self.text();
                let new = aside.join("new");
                fs::write(&new, &text).unwrap();
                fs::rename(&new, &at).unwrap();
                let did = format!("renames over it {text:?}");
                world.files.insert(path.to_owned(), text.into_bytes());
                did
            }
            (_, 7) if path == "big.txt" => {
                let text = self.large_text();
                let did = format!("writes {} bytes", text.len());
                put(world, path, text.into_bytes());
                did
            }
            _ => {
                let text = self.text();
                let did = format!("writes {text:?}");
                put(world, path, text.into_bytes());
                did
            }
        };
        (did, path.to_owned())
    }

    /// Folders come and go; those with something in them go with it.
    fn change_folders(&mut self, world: &mut World, path: &str) -> String {
        let name = if path == "a.txt/x" { "new" } else { path };
        let folder = name.split('/').next().filter(|_| name.contains('/')).unwrap_or("sub");
        if world.kind(folder) == Kind::Nothing {
            fs::create_dir(world.root.join(folder)).unwrap();
            world.folders.insert(folder.to_owned());
            return format!("makes the folder {folder}");
        }
        if world.kind(folder) == Kind::Folder && self.one_in(4) {
            fs::remove_dir_all(world.root.join(folder)).unwrap();
            let below = format!("{folder}/");
            world.files.retain(|path, _| !path.starts_with(&below));
            world.folders.retain(|path| path != folder && !path.starts_with(&below));
            return format!("removes the folder {folder}");
        }
        "does nothing".into()
    }
}

/// The first of them that is a text, or else the first.
fn rather(world: &World, paths: &[&'static str]) -> &'static str {
    let is_text = |path: &&&str| body(world, path).is_some();
    paths.iter().find(is_text).unwrap_or(&paths[0])
}

fn put(world: &mut World, path: &str, bytes: Vec<u8>) {
    fs::write(world.root.join(path), &bytes).unwrap();
    world.files.insert(path.to_owned(), bytes);
}

fn called(tool: Tool, arguments: Value, path: &str) -> Call {
    Call { tool, arguments, path: path.to_owned(), if_match: None, faulty: None }
}

fn body(world: &World, path: &str) -> Option<String> {
    let bytes = world.files.get(path).filter(|bytes| bytes.len() <= MOST)?;
    decode(bytes).ok().map(|text| text.body.to_owned())
}

fn line_count(world: &World, path: &str) -> usize {
    body(world, path).map_or(0, |body| lines::lines(&body).len())
}

/// A path as URIs have it.
fn escaped(path: &str) -> String {
    let escape = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    path.bytes().map(escape).collect()
}
