//! Names that are tried, with what must come of each, and a server that they are tried on: by every tool, in both
//! dialects.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::outside::{Place, Things, differences, look, no_sandbox, refusal, without_times};
use crate::report::{Row, grouped};
use crate::server::{Answer, NoAnswer, Server};

/// What must come of a name.
pub enum Expected {
    /// Every tool refuses it, with one of these codes, and nothing changes anywhere.
    Refused(&'static [i64]),
    /// It is this file below the root, for every tool.
    Reaches(String),
}

use Expected::{Reaches, Refused};

/// Names that are tried in one place.
pub struct Table {
    what: &'static str,
    pub place: Place,
    /// For the tools that take a name.
    pub flat: Vec<(String, Expected)>,
    /// For the tools that take a path.
    pub text: Vec<(String, Expected)>,
}

impl Table {
    pub fn new(what: &'static str, place: Place) -> Self {
        Self { what, place, flat: Vec::new(), text: Vec::new() }
    }

    pub fn refuse_names(&mut self, codes: &'static [i64], names: &[&str]) {
        self.flat.extend(names.iter().map(|name| ((*name).into(), Refused(codes))));
    }

    pub fn refuse_paths(&mut self, codes: &'static [i64], paths: &[&str]) {
        self.text.extend(paths.iter().map(|path| ((*path).into(), Refused(codes))));
    }

    /// Below the root.
    pub fn refuse_below(&mut self, codes: &'static [i64], paths: &[&str]) {
        let root = self.place.root().display().to_string();
        let paths = paths.iter().map(|path| (format!("{root}/{path}"), Refused(codes)));
        self.text.extend(paths);
    }

    /// By name and by path.
    pub fn refuse(&mut self, codes: &'static [i64], names: &[&str]) {
        self.refuse_names(codes, names);
        self.refuse_below(codes, names);
    }

    pub fn reach_below(&mut self, file: &str, paths: &[&str]) {
        let root = self.place.root().display().to_string();
        let paths = paths.iter().map(|path| (format!("{root}/{path}"), Reaches(file.into())));
        self.text.extend(paths);
    }

    pub fn reach(&mut self, file: &str, names: &[&str]) {
        self.flat.extend(names.iter().map(|name| ((*name).into(), Reaches(file.into()))));
        self.reach_below(file, names);
    }
}

/// A server, and what came of the calls to it.
pub struct Player<'p> {
    place: &'p Place,
    server: Server,
    pub row: Row,
    done: usize,
    refused: usize,
    longest: Duration,
}

impl<'p> Player<'p> {
    pub fn new(what: &str, place: &'p Place) -> Self {
        let server = Self::serve(place);
        let row = Row::new(what);
        Self { place, server, row, done: 0, refused: 0, longest: Duration::ZERO }
    }

    fn serve(place: &Place) -> Server {
        // The first wall has to stand alone.
        let flags: Vec<_> =
            ["--tools=all", "--durability=none"].into_iter().chain(no_sandbox()).collect();
        let mut server = Server::start(&place.root(), &flags);
        server.ready();
        server
    }

    pub fn tool(&mut self, name: &str, arguments: &Value) -> Result<Answer, i64> {
        let since = Instant::now();
        let answer = self.server.call(name, arguments);
        self.judge(name, arguments, answer, since)
    }

    fn plain(&mut self, name: &str, arguments: &Value) -> Result<Answer, i64> {
        let since = Instant::now();
        let answer = self.server.method(name, arguments);
        self.judge(name, arguments, answer, since)
    }

    /// The answer, or the code of its refusal. It must be there and tell nothing.
    fn judge(
        &mut self,
        name: &str,
        arguments: &Value,
        answer: Result<Answer, NoAnswer>,
        since: Instant,
    ) -> Result<Answer, i64> {
        self.row.tries += 1;
        self.longest = self.longest.max(since.elapsed());
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                self.row.bad.push(format!("{name} {arguments}: no answer: {why:?}"));
                self.server = Self::serve(self.place);
                return Err(0);
            }
        };
        let is_told = self.place.is_told_in(&answer);
        self.row.check(!is_told, || format!("{name} {arguments} tells the secret: {answer:?}"));
        if let Some(code) = refusal(&answer) {
            self.refused += 1;
            return Err(code);
        }
        self.done += 1;
        Ok(answer)
    }

    fn look_inside(&self) -> Things {
        without_times(look(&self.place.root()))
    }

    /// By every tool that takes a name.
    fn play_name(&mut self, name: &str, expected: &Expected) {
        let before = self.look_inside();
        let append = json!({ "name": name, "append": "mark", "create_if_missing": true });
        let read = json!({ "name": name });
        match expected {
            Refused(codes) => {
                let outcomes = [
                    ("read_file", self.tool("read_file", &read)),
                    ("edit_file", self.tool("edit_file", &append)),
                    ("plain read_file", self.plain("read_file", &read)),
                    ("plain edit_file", self.plain("edit_file", &append)),
                ];
                self.all_refused(name, codes, outcomes);
                self.nothing_else_changed(name, &before, None);
            }
            Reaches(file) => {
                let at = self.place.root().join(file);
                let old = fs::read_to_string(&at).unwrap_or_default();
                let edited = self.tool("edit_file", &append).is_ok();
                let edited = self.plain("edit_file", &append).is_ok() && edited;
                let new = fs::read_to_string(&at).unwrap_or_default();
                let is_right = edited && new == format!("{old}mark\nmark\n");
                self.row.check(is_right, || format!("{name:?}: {old:?} became {new:?}"));
                let text = |answer: Answer| answer.0["result"]["content"].to_string();
                let reads = [self.tool("read_file", &read), self.plain("read_file", &read)];
                for read in reads {
                    let is_right = read.is_ok_and(|answer| text(answer).contains("mark\\nmark"));
                    self.row.check(is_right, || format!("{name:?} is not read as it is"));
                }
                self.nothing_else_changed(name, &before, Some(file));
            }
        }
        let is_listed = self.tool("list_files", &json!({})).is_ok();
        self.row.check(is_listed, || format!("{name:?}: the folder is not listed"));
    }

    /// By every tool that takes a path.
    fn play_path(&mut self, path: &str, expected: &Expected) {
        let before = self.look_inside();
        let content = format!("mark {}\n", self.row.tries);
        let edit = json!({ "old_string": "mark", "new_string": "new mark" });
        let read = json!({ "path": path });
        let write = json!({ "path": path, "content": content });
        let deep = json!({ "path": path, "content": content, "create_dirs": true });
        let edit = json!({ "path": path, "edits": [edit] });
        match expected {
            Refused(codes) => {
                let outcomes = [
                    ("read_text_file", self.tool("read_text_file", &read)),
                    ("write_text_file", self.tool("write_text_file", &write)),
                    ("write_text_file with create_dirs", self.tool("write_text_file", &deep)),
                    ("multi_edit_text_file", self.tool("multi_edit_text_file", &edit)),
                ];
                self.all_refused(path, codes, outcomes);
                self.nothing_else_changed(path, &before, None);
            }
            Reaches(file) => {
                let at = self.place.root().join(file);
                let text = || fs::read_to_string(&at).unwrap_or_default();
                let written = self.tool("write_text_file", &deep);
                let is_right = written.is_ok() && text() == content;
                self.row.check(is_right, || format!("{path:?} was written: {written:?}"));
                let read = self.tool("read_text_file", &read);
                let is_right = read
                    .as_ref()
                    .is_ok_and(|answer| answer.0["result"]["content"][0]["text"] == content);
                self.row.check(is_right, || format!("{path:?} was read: {read:?}"));
                let edited = self.tool("multi_edit_text_file", &edit);
                let is_right = edited.is_ok() && text() == format!("new {content}");
                self.row.check(is_right, || format!("{path:?} was edited: {edited:?}"));
                self.nothing_else_changed(path, &before, Some(file));
            }
        }
    }

    fn all_refused<const N: usize>(
        &mut self,
        name: &str,
        codes: &[i64],
        outcomes: [(&str, Result<Answer, i64>); N],
    ) {
        for (tool, outcome) in outcomes {
            let is_right = outcome.as_ref().is_err_and(|code| codes.contains(code));
            let short: String = name.chars().take(200).collect();
            self.row.check(is_right, || format!("{tool} of {short:?}: {outcome:?}, not {codes:?}"));
        }
    }

    /// Outside all is as it was, and inside too but for `file` and the folders it is in.
    fn nothing_else_changed(&mut self, name: &str, before: &Things, file: Option<&str>) {
        let touched = self.place.touched();
        self.row
            .bad
            .extend(touched.into_iter().map(|touched| format!("{name:?}: outside: {touched}")));
        let (mut before, mut now) = (before.clone(), self.look_inside());
        if let Some(file) = file {
            let mut at = self.place.root();
            for part in Path::new(file) {
                at.push(part);
                before.remove(&at);
                now.remove(&at);
            }
        }
        let changed = differences(&before, &now);
        self.row
            .bad
            .extend(changed.into_iter().map(|changed| format!("{name:?}: inside: {changed}")));
    }

    pub fn finish(self) -> Row {
        let Self { done, refused, longest, row, .. } = self;
        let (done, refused) = (grouped(done), grouped(refused));
        row.found(format!("{done} done inside, {refused} refused, longest {longest:.0?}"))
    }
}

pub fn play(table: &Table) -> Row {
    let mut player = Player::new(table.what, &table.place);
    for (name, expected) in &table.flat {
        player.play_name(name, expected);
    }
    for (path, expected) in &table.text {
        player.play_path(path, expected);
    }
    player.finish()
}
