//! TOML, as Codex writes it: finds the table of this server, adds it at the end, changes it in place or removes it.
//! Pure functions on text.
//!
//! The crate `toml_edit` loses CRLF line endings, so the text is changed by splices instead.
//!
//! A new table is added after everything else and a blank line. It ends with a line break if the text before it did, so
//! that removing it restores that text.

mod scan;

use std::ops::Range;

use text::{Splice, splice};

use super::entry::{
    Entry, Field, FoundEntry, ParseError, SERVER_NAME, line_break, quoted, quoted_list,
};
use scan::{Item, ItemKind, TomlValue, scan};

/// Key of the table that holds all servers.
const SERVERS: &str = "mcp_servers";

pub fn find(text: &str) -> Result<FoundEntry, ParseError> {
    let items = parse(text)?;
    if !items.iter().any(Item::is_ours) {
        return Ok(FoundEntry::Missing);
    }
    Ok(own_table(&items).and_then(entry).map_or(FoundEntry::OtherForm, FoundEntry::Entry))
}

/// True if the table is disabled.
pub fn is_disabled(text: &str) -> bool {
    let Ok(items) = parse(text) else { return false };
    let enabled = own_table(&items).and_then(|table| field(table, "enabled"));
    enabled.is_some_and(|(_, range)| text[range.clone()] == *"false")
}

/// Adds the table, or changes the existing one. Other pairs of the existing one stay.
pub fn put(text: &str, entry: &Entry) -> Result<String, ParseError> {
    match find(text)? {
        FoundEntry::Missing => return Ok(append(text, entry)),
        FoundEntry::OtherForm => return Err(ParseError::unknown_form(text)),
        FoundEntry::Entry(_) => {}
    }
    let text = set(text, "command", &TomlValue::Text(entry.command.clone()))?;
    set(&text, "args", &TomlValue::Texts(entry.args.clone()))
}

/// Returns the pairs of the server's table that [`whole`] would not write, and those of the tables below it.
pub fn other_fields(text: &str) -> Result<Vec<Field>, ParseError> {
    let items = parse(text)?;
    let mut fields = Vec::new();
    let mut table: &[String] = &[];
    for item in &items {
        match &item.kind {
            ItemKind::Table | ItemKind::Tables => {
                table = if item.is_ours() { &item.path } else { &[] };
                if table.len() > 2 {
                    fields.push(Field { name: table[2..].join("."), value: "a table".into() });
                }
            }
            ItemKind::Pair { at, .. } if !table.is_empty() && !is_written_by_us(table, item) => {
                let name = [&table[2..], &item.path[..]].concat().join(".");
                fields.push(Field { name, value: text[at.clone()].into() });
            }
            ItemKind::Pair { .. } => {}
        }
    }
    Ok(fields)
}

/// True if `setup` would write this pair in this table.
fn is_written_by_us(table: &[String], pair: &Item) -> bool {
    table.len() == 2 && (pair.path == ["command"] || pair.path == ["args"])
}

/// Replaces the existing table by this one and nothing else.
pub fn replace(text: &str, entry: &Entry) -> Result<String, ParseError> {
    let items = parse(text)?;
    let mut splices = Vec::new();
    let mut table: &[String] = &[];
    for item in &items {
        if !item.is_pair() {
            table = if item.is_ours() { &item.path } else { &[] };
        }
        let goes = if item.is_pair() {
            !table.is_empty() && !is_written_by_us(table, item)
        } else {
            table.len() > 2
        };
        if goes {
            splices.push(Splice { range: item.range.clone(), text: String::new() });
        }
    }
    put(&splice::apply(text, &splices), entry)
}

/// Removes the table and those below it.
pub fn remove(text: &str) -> Result<String, ParseError> {
    let items = parse(text)?;
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

/// Returns the table alone, without a line break at its end.
pub fn whole(entry: &Entry, newline: &str) -> String {
    let (command, args) = (quoted(&entry.command), quoted_list(&entry.args));
    format!("[{SERVERS}.{SERVER_NAME}]{newline}command = {command}{newline}args = {args}")
}

fn append(text: &str, entry: &Entry) -> String {
    let newline = line_break(text);
    let table = whole(entry, newline);
    if text.is_empty() {
        // Differs from the text of a new file by its last line break, so that removing the table does not remove the
        // file.
        table
    } else if text.ends_with('\n') {
        format!("{text}{newline}{table}{newline}")
    } else {
        format!("{text}{newline}{newline}{table}")
    }
}

/// Returns the start of a table, including the line breaks that [`append`] put before it.
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

/// Sets one field of the server's table, unless it has the value.
fn set(text: &str, key: &str, new: &TomlValue) -> Result<String, ParseError> {
    let items = parse(text)?;
    let Some([header, pairs @ ..]) = own_table(&items) else { return Ok(text.into()) };
    let splice = match field(pairs, key) {
        Some((value, _)) if value == new => return Ok(text.into()),
        Some((_, range)) => Splice { range: range.clone(), text: new.written() },
        None => {
            let (at, newline) = (header.range.end, line_break(text));
            let line = format!("{key} = {}", new.written());
            let has_break = text[..at].ends_with('\n');
            let line =
                if has_break { format!("{line}{newline}") } else { format!("{newline}{line}") };
            Splice { range: at..at, text: line }
        }
    };
    Ok(splice::apply(text, &[splice]))
}

/// Returns the header of the server's table and the pairs in it.
fn own_table(items: &[Item]) -> Option<&[Item]> {
    let at = items.iter().position(|item| item.is_ours() && item.path.len() == 2)?;
    let count = items[at + 1..].iter().take_while(|item| item.is_pair()).count();
    Some(&items[at..=at + count])
}

fn entry(table: &[Item]) -> Option<Entry> {
    let Some((TomlValue::Text(command), _)) = field(table, "command") else { return None };
    let args = match field(table, "args") {
        None => Vec::new(),
        Some((TomlValue::Texts(args), _)) => args.clone(),
        Some(_) => return None,
    };
    Some(Entry { command: command.clone(), args })
}

fn field<'i>(items: &'i [Item], key: &str) -> Option<(&'i TomlValue, &'i Range<usize>)> {
    items.iter().find_map(|item| match &item.kind {
        ItemKind::Pair { value, at } if item.path == [key] => Some((value, at)),
        _ => None,
    })
}

impl TomlValue {
    fn written(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Texts(texts) => quoted_list(texts),
            Self::Other => String::new(),
        }
    }
}

impl Item {
    /// True for the server's table, or one below it.
    fn is_ours(&self) -> bool {
        !self.is_pair() && self.path.starts_with(&[SERVERS.into(), SERVER_NAME.into()])
    }
}

/// Returns all items of a text in which servers are tables. Other notations mean the same, but a table cannot always be
/// added to them, or a part of them removed.
fn parse(text: &str) -> Result<Vec<Item>, ParseError> {
    let items = scan(text)?;
    let mut table: &[String] = &[];
    let mut has_ours = false;
    for item in &items {
        let refuse = |message: &str| Err(ParseError::at(text, item.range.start, message));
        let [first, rest @ ..] = &item.path[..] else { continue };
        match item.kind {
            ItemKind::Pair { .. } => match table {
                [] if first == SERVERS => {
                    return refuse("`mcp_servers` is not written as tables (`[mcp_servers.…]`)");
                }
                [only] if only == SERVERS && first == SERVER_NAME => {
                    return refuse("`file-editor` is not a table of its own");
                }
                _ => continue,
            },
            ItemKind::Tables
                if first == SERVERS && rest.first().is_none_or(|name| name == SERVER_NAME) =>
            {
                return refuse("`mcp_servers` is a list of tables");
            }
            ItemKind::Table if item.is_ours() && rest.len() == 1 => {
                if std::mem::replace(&mut has_ours, true) {
                    return refuse("`[mcp_servers.file-editor]` occurs twice");
                }
            }
            ItemKind::Table | ItemKind::Tables => {}
        }
        table = &item.path;
    }
    Ok(items)
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

    /// Checks that the table is added like this, that adding it again changes nothing, and that removing it leaves no
    /// trace.
    fn check(before: &str, after: &str) {
        assert_eq!(put(before, &entry()).unwrap(), after);
        assert_eq!(find(after), Ok(FoundEntry::Entry(entry())));
        assert_eq!(put(after, &entry()).unwrap(), after, "again");
        assert_eq!(remove(after).unwrap(), before, "and out");
    }

    const OURS: &str = "[mcp_servers.file-editor]\ncommand = \"/bin/fe\"\nargs = [\"--dir=/a\"]";

    #[test]
    fn behind_everything_else() {
        check("", OURS);
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
    fn fields_that_are_not_ours_are_told_and_go_with_a_replacement() {
        let before = "a = 1\n[mcp_servers.file-editor] # c\nenv.A = \"b\"\ncommand = \"x\"\ncwd = '/tmp' # d\n\n\
                      [mcp_servers.other]\nenv = { K = \"k\" }\n[mcp_servers.file-editor.env]\nB = [\n1]\n[c]\nd = 1\n";
        let after = "a = 1\n[mcp_servers.file-editor] # c\nargs = [\"--dir=/a\"]\ncommand = \"/bin/fe\"\n\n\
                     [mcp_servers.other]\nenv = { K = \"k\" }\n[c]\nd = 1\n";
        let fields = other_fields(before).unwrap();
        let fields: Vec<_> = fields.iter().map(|field| (&*field.name, &*field.value)).collect();
        assert_eq!(
            fields,
            [("env.A", "\"b\""), ("cwd", "'/tmp'"), ("env", "a table"), ("env.B", "[\n1]")]
        );
        assert_eq!(replace(before, &entry()).unwrap(), after);
        assert_eq!(other_fields(after), Ok(Vec::new()));
    }

    #[test]
    fn the_table_is_taken_out_with_those_below_it() {
        let check = |before: &str, after: &str| assert_eq!(remove(before).unwrap(), after);
        check(
            "a = 1\n\n[mcp_servers.file-editor]\ncommand = 1\n\n[mcp_servers.file-editor.env]\nA = 1\n\n# next\n[b]\n",
            "a = 1\n\n# next\n[b]\n",
        );
        check("[mcp_servers.file-editor2]\n", "[mcp_servers.file-editor2]\n");
    }

    #[test]
    fn what_cannot_be_edited_safely_is_refused_by_its_line() {
        let check = |text: &str, line: usize, what: &str| {
            let error = put(text, &entry()).unwrap_err();
            assert_eq!((error.line, error.message.contains(what)), (line, true), "{text}: {error}");
        };
        check("a = 1\nmcp_servers = { b = {} }\n", 2, "not written as tables");
        check("mcp_servers.b.command = \"x\"\n", 1, "not written as tables");
        check("[mcp_servers]\nfile-editor = {}\n", 2, "not a table of its own");
        check("[mcp_servers]\nfile-editor.command = 1\n", 2, "not a table of its own");
        check("[[mcp_servers]]\n", 1, "a list of tables");
        check("[[mcp_servers.file-editor]]\n", 1, "a list of tables");
        check("[mcp_servers.file-editor]\n[mcp_servers.file-editor]\n", 2, "twice");
        check(
            "a = 1\n\n[mcp_servers.file-editor]\nurl = \"http://localhost\"\n",
            3,
            "does not write",
        );
        check("a = 1\nb\n", 2, "expected `=`");
        check("a = \n", 1, "expected a value");
        check("\n\n[a\n", 3, "expected `]`");
        check("a = \"x\n", 1, "unterminated string");
        check("a = \"\"\"\n\n", 1, "unterminated string");
        check("a = [1\n2]\n", 2, "expected `,` or `]`");
        check("a = {b = 1 c = 2}\n", 1, "expected `,` or `}`");
        check("a = 1 b = 2\n", 1, "unexpected text");
        check("# a\rb\n", 1, "carriage return");
        check("= 1", 1, "expected a name");
        check("[mcp_servers.\"file\\x2deditor\"]", 1, "unsupported escape");
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
            prop_assert_eq!(find(&with), Ok(FoundEntry::Entry(entry())));
            let other = Entry { command: "other".into(), ..entry() };
            let changed = put(&with, &other).unwrap();
            prop_assert_eq!(find(&changed), Ok(FoundEntry::Entry(other)));
            prop_assert_eq!(remove(&changed).unwrap(), text.clone());
            prop_assert_eq!(remove(&with).unwrap(), text);
        }

        #[test]
        fn any_text_is_refused_or_kept(text in "[{}\\[\\]\"'=,.# \r\na1\\\\]{0,24}") {
            if let Ok(with) = put(&text, &entry()) {
                prop_assert_eq!(remove(&with).unwrap(), text);
            }
        }
    }
}
