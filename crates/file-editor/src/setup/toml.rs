//! TOML, as Codex keeps it: finds the table of our name, adds it at the end, changes it in place or takes it out. All of
//! it is text in, text out.
//!
//! A table of our own goes behind everything else, after a blank line. It ends with a line break if the text before it
//! did, so that taking it out leaves that text as it was.

use std::ops::Range;

use text::{Splice, splice};

use super::{
    entry::{Entry, Fault, NAME, line_break, quoted, quoted_list, unescaped},
    json::Found,
};

/// The table that holds all servers.
const SERVERS: &str = "mcp_servers";
/// Deeper than any configuration.
const DEEPEST: usize = 100;

pub fn find(text: &str) -> Result<Found, Fault> {
    let items = understood(text)?;
    if !items.iter().any(Item::is_ours) {
        return Ok(Found::Nothing);
    }
    Ok(own_table(&items).and_then(entry).map_or(Found::Other, Found::Entry))
}

/// Adds the table, or makes the one that is there say this. Whatever else that one holds stays in it.
pub fn put(text: &str, entry: &Entry) -> Result<String, Fault> {
    match find(text)? {
        Found::Nothing => return Ok(append(text, entry)),
        Found::Other => return Err(Fault::other_form(text)),
        Found::Entry(_) => {}
    }
    let command = set(
        text,
        "command",
        &quoted(&entry.command),
        |value| matches!(value, Value::Text(text) if *text == entry.command),
    )?;
    set(&command, "args", &quoted_list(&entry.args), |value| {
        value.texts().as_ref() == Some(&entry.args)
    })
}

/// Takes out the table and those below it.
pub fn take_out(text: &str) -> Result<String, Fault> {
    let items = understood(text)?;
    let mut splices: Vec<Splice> = Vec::new();
    for (at, item) in items.iter().enumerate().filter(|(_, item)| item.is_ours()) {
        let pairs = items[at + 1..].iter().take_while(|item| item.is_pair());
        let end = pairs.last().map_or(item.range.end, |pair| pair.range.end);
        let start = start_of_table(text, item.range.start, end);
        let start = splices.last().map_or(start, |before| start.max(before.range.end));
        splices.push(Splice { range: start..end, text: String::new() });
    }
    Ok(splice::apply(text, &splices))
}

/// The table by itself, without a line break at its end.
pub fn whole(entry: &Entry, newline: &str) -> String {
    let (command, args) = (quoted(&entry.command), quoted_list(&entry.args));
    format!("[{SERVERS}.{NAME}]{newline}command = {command}{newline}args = {args}")
}

fn append(text: &str, entry: &Entry) -> String {
    let newline = line_break(text);
    let table = whole(entry, newline);
    if text.is_empty() {
        format!("{table}{newline}")
    } else if text.ends_with('\n') {
        format!("{text}{newline}{table}{newline}")
    } else {
        format!("{text}{newline}{newline}{table}")
    }
}

/// Where a table begins with what [`append`] put before it.
fn start_of_table(text: &str, header: usize, end: usize) -> usize {
    let above = |at: usize| {
        let before = &text[..at];
        before.strip_suffix('\n').map(|before| before.strip_suffix('\r').unwrap_or(before).len())
    };
    let Some(blank) = above(header).filter(|at| *at == 0 || text[..*at].ends_with('\n')) else {
        return header;
    };
    let is_last = end == text.len() && !text.ends_with('\n');
    if is_last { above(blank).unwrap_or(blank) } else { blank }
}

/// Gives one field of our table its value, unless it has it.
fn set(text: &str, key: &str, new: &str, is_new: impl Fn(&Value) -> bool) -> Result<String, Fault> {
    let items = understood(text)?;
    let Some([header, pairs @ ..]) = own_table(&items) else { return Ok(text.into()) };
    let splice = match field(pairs, key) {
        Some((value, _)) if is_new(value) => return Ok(text.into()),
        Some((_, range)) => Splice { range: range.clone(), text: new.into() },
        None => {
            let (at, newline) = (header.range.end, line_break(text));
            let line = format!("{key} = {new}");
            let has_break = text[..at].ends_with('\n');
            let line =
                if has_break { format!("{line}{newline}") } else { format!("{newline}{line}") };
            Splice { range: at..at, text: line }
        }
    };
    Ok(splice::apply(text, &[splice]))
}

/// The header of our own table and the pairs in it.
fn own_table(items: &[Item]) -> Option<&[Item]> {
    let at = items.iter().position(|item| item.is_ours() && item.path.len() == 2)?;
    let count = items[at + 1..].iter().take_while(|item| item.is_pair()).count();
    Some(&items[at..=at + count])
}

fn entry(table: &[Item]) -> Option<Entry> {
    let Some((Value::Text(command), _)) = field(table, "command") else { return None };
    let args = field(table, "args").and_then(|(args, _)| args.texts());
    Some(Entry { command: command.clone(), args: args.unwrap_or_default() })
}

fn field<'i>(items: &'i [Item], key: &str) -> Option<(&'i Value, &'i Range<usize>)> {
    items.iter().find_map(|item| match &item.kind {
        Kind::Pair { value, at } if item.path == [key] => Some((value, at)),
        _ => None,
    })
}

/// A header, or a pair of a key and a value.
struct Item {
    /// All of its lines, with the last line break.
    range: Range<usize>,
    /// The names of a header, or of a key.
    path: Vec<String>,
    kind: Kind,
}

enum Kind {
    Table,
    /// `[[…]]`
    Tables,
    Pair {
        value: Value,
        at: Range<usize>,
    },
}

enum Value {
    Text(String),
    List(Vec<Value>),
    Other,
}

impl Value {
    fn texts(&self) -> Option<Vec<String>> {
        let Value::List(values) = self else { return None };
        let text = |value: &Value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        values.iter().map(text).collect()
    }
}

impl Item {
    fn is_pair(&self) -> bool {
        matches!(self.kind, Kind::Pair { .. })
    }

    /// Our table, or one below it.
    fn is_ours(&self) -> bool {
        !self.is_pair() && self.path.starts_with(&[SERVERS.into(), NAME.into()])
    }
}

/// All items of a text in which servers are tables. Other ways to write them mean the same, but adding a table to them, or
/// taking a part of them out, may not be allowed.
fn understood(text: &str) -> Result<Vec<Item>, Fault> {
    let items = Scanner { text, at: 0, depth: 0 }.items()?;
    let mut table: &[String] = &[];
    let mut has_ours = false;
    for item in &items {
        let refuse = |what: &str| Err(Fault::at(text, item.range.start, what));
        let [first, rest @ ..] = &item.path[..] else { continue };
        match item.kind {
            Kind::Pair { .. } => match table {
                [] if first == SERVERS => {
                    return refuse("`mcp_servers` is not written as tables (`[mcp_servers.…]`)");
                }
                [only] if only == SERVERS && first == NAME => {
                    return refuse("`file-editor` is not written as a table of its own");
                }
                _ => continue,
            },
            Kind::Tables if first == SERVERS && rest.first().is_none_or(|name| name == NAME) => {
                return refuse("`mcp_servers` is a list of tables");
            }
            Kind::Table if item.is_ours() && rest.len() == 1 => {
                if std::mem::replace(&mut has_ours, true) {
                    return refuse("`[mcp_servers.file-editor]` is there twice");
                }
            }
            Kind::Table | Kind::Tables => {}
        }
        table = &item.path;
    }
    Ok(items)
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Scanner<'t> {
    fn fault(&self, what: &str) -> Fault {
        Fault::at(self.text, self.at, what)
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn take(&mut self, mark: &str) -> bool {
        let is_there = self.rest().starts_with(mark);
        self.at += if is_there { mark.len() } else { 0 };
        is_there
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    fn skip_comment(&mut self) -> Result<(), Fault> {
        if !self.rest().starts_with('#') {
            return Ok(());
        }
        let line = self.rest().split('\n').next().unwrap_or_default();
        let line_end = line.strip_suffix('\r').filter(|line| line.len() + 1 < self.rest().len());
        let line = line_end.unwrap_or(line);
        if line.contains('\r') {
            return Err(self.fault("a carriage return stands by itself"));
        }
        self.at += line.len();
        Ok(())
    }

    fn take_line_break(&mut self) -> bool {
        self.take("\n") || self.take("\r\n")
    }

    /// Passes blanks, comments and line breaks.
    fn skip_lines(&mut self) -> Result<(), Fault> {
        loop {
            self.skip_blanks();
            self.skip_comment()?;
            if !self.take_line_break() {
                return Ok(());
            }
        }
    }

    fn items(mut self) -> Result<Vec<Item>, Fault> {
        let mut items = Vec::new();
        loop {
            self.skip_lines()?;
            if self.at == self.text.len() {
                return Ok(items);
            }
            let start = self.text[..self.at].rfind('\n').map_or(0, |before| before + 1);
            let (path, kind) =
                if self.rest().starts_with('[') { self.header()? } else { self.pair()? };
            self.skip_blanks();
            self.skip_comment()?;
            if !self.take_line_break() && self.at < self.text.len() {
                return Err(self.fault("something follows on the same line"));
            }
            items.push(Item { range: start..self.at, path, kind });
        }
    }

    fn header(&mut self) -> Result<(Vec<String>, Kind), Fault> {
        let (open, close, kind) = if self.rest().starts_with("[[") {
            ("[[", "]]", Kind::Tables)
        } else {
            ("[", "]", Kind::Table)
        };
        self.take(open);
        let path = self.key()?;
        if self.take(close) { Ok((path, kind)) } else { Err(self.fault("`]` is missing")) }
    }

    fn pair(&mut self) -> Result<(Vec<String>, Kind), Fault> {
        let path = self.key()?;
        if !self.take("=") {
            return Err(self.fault("`=` is missing"));
        }
        self.skip_blanks();
        let start = self.at;
        let value = self.value()?;
        Ok((path, Kind::Pair { value, at: start..self.at }))
    }

    /// Names with dots between them, and blanks around.
    fn key(&mut self) -> Result<Vec<String>, Fault> {
        let mut names = Vec::new();
        loop {
            self.skip_blanks();
            let name = match self.rest().bytes().next() {
                Some(b'"') => self.basic()?,
                Some(b'\'') => self.literal()?,
                _ => self.bare()?,
            };
            names.push(name);
            self.skip_blanks();
            if !self.take(".") {
                return Ok(names);
            }
        }
    }

    fn bare(&mut self) -> Result<String, Fault> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = &self.rest()[..self.rest().find(|c| !is_part(c)).unwrap_or(self.rest().len())];
        if name.is_empty() {
            return Err(self.fault("a name is missing"));
        }
        self.at += name.len();
        Ok(name.into())
    }

    fn value(&mut self) -> Result<Value, Fault> {
        let rest = self.rest();
        if rest.starts_with("\"\"\"") || rest.starts_with("'''") {
            return self.several_lines();
        }
        match rest.bytes().next() {
            Some(b'"') => self.basic().map(Value::Text),
            Some(b'\'') => self.literal().map(Value::Text),
            Some(b'[') => self.nested(Self::list),
            Some(b'{') => self.nested(Self::table),
            _ => self.word(),
        }
    }

    fn nested(&mut self, inside: fn(&mut Self) -> Result<Value, Fault>) -> Result<Value, Fault> {
        if self.depth == DEEPEST {
            return Err(self.fault("it is nested too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        let value = inside(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn list(&mut self) -> Result<Value, Fault> {
        let (mut values, mut is_open) = (Vec::new(), true);
        loop {
            self.skip_lines()?;
            if self.take("]") {
                return Ok(Value::List(values));
            }
            if !is_open {
                return Err(self.fault("`,` or `]` is missing"));
            }
            values.push(self.value()?);
            self.skip_lines()?;
            is_open = self.take(",");
        }
    }

    fn table(&mut self) -> Result<Value, Fault> {
        let mut is_open = true;
        loop {
            self.skip_lines()?;
            if self.take("}") {
                return Ok(Value::Other);
            }
            if !is_open {
                return Err(self.fault("`,` or `}` is missing"));
            }
            self.pair()?;
            self.skip_lines()?;
            is_open = self.take(",");
        }
    }

    /// `"…"`
    fn basic(&mut self) -> Result<String, Fault> {
        let inside = &self.text[self.at + 1..];
        let end = text::end_of_text(inside.as_bytes());
        let raw = end.map(|end| &inside[..end]).filter(|raw| !raw.contains('\n'));
        let raw = raw.ok_or_else(|| self.fault("a string has no end"))?;
        let string = unescaped(raw).ok_or_else(|| self.fault("a string has a bad escape"))?;
        self.at += raw.len() + 2;
        Ok(string)
    }

    /// `'…'`
    fn literal(&mut self) -> Result<String, Fault> {
        let inside = &self.text[self.at + 1..];
        let raw = inside.find('\'').map(|end| &inside[..end]).filter(|raw| !raw.contains('\n'));
        let raw = raw.ok_or_else(|| self.fault("a string has no end"))?;
        self.at += raw.len() + 2;
        Ok(raw.into())
    }

    /// `"""…"""` or `'''…'''`, which may end with up to five quotes.
    fn several_lines(&mut self) -> Result<Value, Fault> {
        let (quotes, has_escapes) =
            if self.rest().starts_with('"') { ("\"\"\"", true) } else { ("'''", false) };
        let mut at = self.at + quotes.len();
        loop {
            let rest = &self.text[at..];
            if let Some(behind) = rest.strip_prefix(quotes) {
                let more = behind.len() - behind.trim_start_matches(&quotes[..1]).len();
                self.at = at + quotes.len() + more.min(2);
                return Ok(Value::Other);
            }
            let next = rest.chars().next().ok_or_else(|| self.fault("a string has no end"))?;
            at += next.len_utf8();
            if has_escapes && next == '\\' {
                at += self.text[at..].chars().next().map_or(0, char::len_utf8);
            }
        }
    }

    /// A number, a date, `true` or `false`.
    fn word(&mut self) -> Result<Value, Fault> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-._:".contains(c);
        let length = |text: &str| text.find(|c| !is_part(c)).unwrap_or(text.len());
        let word = length(self.rest());
        if word == 0 {
            return Err(self.fault("a value is missing"));
        }
        self.at += word;
        // A date may have a blank before its time.
        let time = self.rest().strip_prefix(' ').filter(|time| {
            time.starts_with(|c: char| c.is_ascii_digit())
                && self.text[..self.at].ends_with(|c: char| c.is_ascii_digit())
        });
        self.at += time.map_or(0, |time| 1 + length(time));
        Ok(Value::Other)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn entry() -> Entry {
        Entry { command: "/bin/fe".into(), args: vec!["--dir=/a".into()] }
    }

    /// That the table is put there like this, once and for all, and leaves nothing behind when it is taken out.
    fn check(before: &str, after: &str) {
        assert_eq!(put(before, &entry()).unwrap(), after);
        assert_eq!(find(after), Ok(Found::Entry(entry())));
        assert_eq!(put(after, &entry()).unwrap(), after, "again");
        assert_eq!(take_out(after).unwrap(), before, "and out");
    }

    const OURS: &str = "[mcp_servers.file-editor]\ncommand = \"/bin/fe\"\nargs = [\"--dir=/a\"]";

    #[test]
    fn behind_everything_else() {
        check("", &format!("{OURS}\n"));
        check("\n", &format!("\n\n{OURS}\n"));
        check("a = 1\n", &format!("a = 1\n\n{OURS}\n"));
        check("a = 1\n\n", &format!("a = 1\n\n\n{OURS}\n"));
        check("a = 1", &format!("a = 1\n\n{OURS}"));
        check("a = 1\r\n", &format!("a = 1\n\n{OURS}\n").replace('\n', "\r\n"));
        check("[mcp_servers]\nb = {}\n", &format!("[mcp_servers]\nb = {{}}\n\n{OURS}\n"));
    }

    #[test]
    fn what_only_looks_like_a_table() {
        for text in [
            "a = \"\"\"\n[mcp_servers.file-editor]\ncommand = 1\n\\\"\"\"\"\"\"\n",
            "a = '''\n[mcp_servers.file-editor]\n'''''\n",
            "# [mcp_servers.file-editor]\n",
            "a = [\n  [ # ]\n    1,\n  ],\n]\n",
            "[other.mcp_servers.file-editor]\ncommand = \"x\"\n",
            "at = 1979-05-27 07:32:00Z # then\n",
        ] {
            check(text, &format!("{text}\n{OURS}\n"));
        }
    }

    #[test]
    fn a_table_that_differs_is_changed_where_it_does() {
        let check = |before: &str, after: &str| assert_eq!(put(before, &entry()).unwrap(), after);
        check(
            "[mcp_servers.\"file-editor\"] # ours\nenv = { A = \"1\" }\ncommand = 'old' # c\nargs = [\n  \"x\",\n]\n\n[b]\n",
            "[mcp_servers.\"file-editor\"] # ours\nenv = { A = \"1\" }\ncommand = \"/bin/fe\" # c\nargs = [\"--dir=/a\"]\n\n[b]\n",
        );
        check(
            "[mcp_servers.file-editor]\ncommand = \"/bin/fe\"",
            "[mcp_servers.file-editor]\nargs = [\"--dir=/a\"]\ncommand = \"/bin/fe\"",
        );
    }

    #[test]
    fn the_table_is_taken_out_with_those_below_it() {
        let check = |before: &str, after: &str| assert_eq!(take_out(before).unwrap(), after);
        check(
            "a = 1\n\n[mcp_servers.file-editor]\ncommand = 1\n\n[mcp_servers.file-editor.env]\nA = 1\n\n# next\n[b]\n",
            "a = 1\n\n# next\n[b]\n",
        );
        check("[mcp_servers.file-editor2]\n", "[mcp_servers.file-editor2]\n");
    }

    #[test]
    fn what_cannot_be_edited_safely_is_refused_by_its_line() {
        let check = |text: &str, line: usize, what: &str| {
            let fault = put(text, &entry()).unwrap_err();
            assert_eq!((fault.line, fault.what.contains(what)), (line, true), "{text}: {fault}");
        };
        check("a = 1\nmcp_servers = { b = {} }\n", 2, "not written as tables");
        check("mcp_servers.b.command = \"x\"\n", 1, "not written as tables");
        check("[mcp_servers]\nfile-editor = {}\n", 2, "not written as a table of its own");
        check("[mcp_servers]\nfile-editor.command = 1\n", 2, "not written as a table of its own");
        check("[[mcp_servers]]\n", 1, "a list of tables");
        check("[[mcp_servers.file-editor]]\n", 1, "a list of tables");
        check("[mcp_servers.file-editor]\n[mcp_servers.file-editor]\n", 2, "twice");
        check("a = 1\n\n[mcp_servers.file-editor]\nurl = \"http://localhost\"\n", 3, "not ours");
        check("a = 1\nb\n", 2, "`=` is missing");
        check("a = \n", 1, "a value is missing");
        check("\n\n[a\n", 3, "`]` is missing");
        check("a = \"x\n", 1, "a string has no end");
        check("a = \"\"\"\n\n", 1, "a string has no end");
        check("a = [1\n2]\n", 2, "`,` or `]` is missing");
        check("a = {b = 1 c = 2}\n", 1, "`,` or `}` is missing");
        check("a = 1 b = 2\n", 1, "something follows");
        check("# a\rb\n", 1, "carriage return");
        check("= 1", 1, "a name is missing");
        check(&format!("a = {}", "[".repeat(200)), 1, "nested too deeply");
    }

    fn text() -> impl Strategy<Value = String> {
        let line = select(vec![
            "",
            "  ",
            "# [mcp_servers.file-editor]",
            "a = 1 # c",
            "b.\"c d\" = 'x'",
            "[t]",
            " [ t . u ] # c",
            "[[l]]",
            "[mcp_servers.other]",
            "[mcp_servers.other.env]",
            "e = \"\"\"\n[mcp_servers.file-editor]\n\"\"\"",
            "f = [\n  \"]\", # ]\n  {g = 1},\n]",
            "h = 1979-05-27 07:32:00",
        ]);
        let lines = proptest::collection::vec((line, select(vec!["\n", "\r\n"])), 0..6);
        (lines, any::<bool>()).prop_map(|(lines, has_break)| {
            let text: String = lines.iter().flat_map(|(line, end)| [*line, *end]).collect();
            let cut = text.trim_end_matches('\n').trim_end_matches('\r');
            if has_break { text } else { cut.into() }
        })
    }

    proptest! {
        #[test]
        fn what_was_put_there_is_found_and_leaves_no_trace(text in text()) {
            let with = put(&text, &entry()).unwrap();
            prop_assert_eq!(find(&with), Ok(Found::Entry(entry())));
            let other = Entry { command: "other".into(), ..entry() };
            let changed = put(&with, &other).unwrap();
            prop_assert_eq!(find(&changed), Ok(Found::Entry(other)));
            prop_assert_eq!(take_out(&changed).unwrap(), text.clone());
            prop_assert_eq!(take_out(&with).unwrap(), text);
        }

        #[test]
        fn any_text_is_refused_or_kept(text in "[{}\\[\\]\"'=,.# \r\na1\\\\]{0,24}") {
            if let Ok(with) = put(&text, &entry()) {
                prop_assert_eq!(take_out(&with).unwrap(), text);
            }
        }
    }
}
