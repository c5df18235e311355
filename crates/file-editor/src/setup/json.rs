//! JSON with comments and trailing commas, as clients write it: finds an entry, or the place for it, and changes only
//! that. Pure functions on text.
//!
//! The crate `jsonc-parser` reformats what it rewrites, so the text is changed by splices instead.
//!
//! An added entry can be removed again without a trace, so what was added must be told from what was there: an object
//! that was empty gets its member right after its brace, while an object that was added has a blank or a line break
//! there and is removed with its last member.

mod scan;

use text::{Splice, splice};

use super::entry::{
    Entry, Field, FoundEntry, ParseError, SERVER_NAME, line_break, quoted, quoted_list,
};
use scan::{Member, Node, NodeKind, end_of_comments, scan};

const INDENT: &str = "  ";

/// Form of the servers in a client's configuration.
#[derive(Clone, Copy, Debug)]
pub struct JsonFormat {
    /// Key of the object that holds the servers.
    pub key: &'static str,
    /// True if an entry has `"type": "stdio"`.
    pub is_typed: bool,
    /// True if an entry must have `env`.
    pub has_env: bool,
}

pub fn find(text: &str, format: JsonFormat) -> Result<FoundEntry, ParseError> {
    let root = scan(text)?;
    let servers = root.as_ref().map_or(Ok(None), |root| root.object(text, format.key))?;
    let entry = servers.map_or(Ok(None), |servers| servers.member(text, SERVER_NAME))?;
    let Some(entry) = entry else { return Ok(FoundEntry::Missing) };
    Ok(entry.value.entry(text)?.map_or(FoundEntry::OtherForm, FoundEntry::Entry))
}

/// True if the entry is disabled.
pub fn is_disabled(text: &str, format: JsonFormat) -> bool {
    let Ok(Some(root)) = scan(text) else { return false };
    let Ok(Some(servers)) = root.object(text, format.key) else { return false };
    let Ok(Some(entry)) = servers.object(text, SERVER_NAME) else { return false };
    let says = |key: &str, value: &str| {
        let field = entry.member(text, key);
        matches!(field, Ok(Some(field)) if text[field.value.range.clone()] == *value)
    };
    says("disabled", "true") || says("enabled", "false")
}

/// Adds the entry, or changes the existing one. Other fields of the existing one stay.
pub fn put(text: &str, format: JsonFormat, entry: &Entry) -> Result<String, ParseError> {
    let new = NewValue::Object(format.fields(entry));
    let found = find(text, format)?;
    let Some(root) = scan(text)? else {
        // Differs from the text of a new file by its last line break, so that removing the entry does not remove the
        // file.
        return Ok(format!("{text}{}", whole(format, entry, line_break(text))));
    };
    let layout = Layout::of(text, &root);
    let Some(servers) = root.object(text, format.key)? else {
        let servers = NewValue::Object(vec![(SERVER_NAME, new)]);
        return Ok(splice::apply(text, &root.insert(text, layout, format.key, &servers)));
    };
    match found {
        FoundEntry::Missing => {
            return Ok(splice::apply(text, &servers.insert(text, layout, SERVER_NAME, &new)));
        }
        FoundEntry::OtherForm => return Err(ParseError::unknown_form(text)),
        FoundEntry::Entry(_) => {}
    }
    let mut text = text.to_owned();
    for (key, value) in format.fields(entry) {
        text = set(&text, format, key, &value)?;
    }
    Ok(text)
}

/// Returns the fields of the entry that [`whole`] would not write, or not with this value; those of an object one by
/// one.
pub fn other_fields(text: &str, format: JsonFormat) -> Result<Vec<Field>, ParseError> {
    let Some(root) = scan(text)? else { return Ok(Vec::new()) };
    let servers = root.object(text, format.key)?;
    let entry = servers.map_or(Ok(None), |servers| servers.object(text, SERVER_NAME))?;
    let Some(entry) = entry else { return Ok(Vec::new()) };
    let mut fields = Vec::new();
    for member in entry.members() {
        let name = &member.key;
        let is_ours = match name.as_str() {
            // Shown with the whole entry.
            "command" | "args" => true,
            "type" => {
                let stdio = NewValue::Text("stdio".into());
                format.is_typed && stdio.is_at(&member.value)
            }
            "env" => {
                format.has_env
                    && matches!(&member.value.kind, NodeKind::Object(it) if it.is_empty())
            }
            _ => false,
        };
        let value = |node: &Node| text[node.range.clone()].to_owned();
        match member.value.members() {
            _ if is_ours => {}
            [] => fields.push(Field { name: name.clone(), value: value(&member.value) }),
            inner => fields.extend(inner.iter().map(|inner| Field {
                name: format!("{name}.{}", inner.key),
                value: value(&inner.value),
            })),
        }
    }
    Ok(fields)
}

/// Replaces the whole existing entry, including comments in it.
pub fn replace(text: &str, format: JsonFormat, entry: &Entry) -> Result<String, ParseError> {
    let Some(root) = scan(text)? else { return Ok(text.into()) };
    let servers = root.object(text, format.key)?;
    let old = servers.map_or(Ok(None), |servers| servers.member(text, SERVER_NAME))?;
    let Some(old) = old else { return Ok(text.into()) };
    let new = NewValue::Object(format.fields(entry));
    Ok(splice::apply(text, &[old.replace(text, Layout::of(text, &root), &new)]))
}

/// Sets one field of the existing entry.
fn set(text: &str, format: JsonFormat, key: &str, value: &NewValue) -> Result<String, ParseError> {
    let Some(root) = scan(text)? else { return Ok(text.into()) };
    let servers = root.object(text, format.key)?;
    let entry = servers.map_or(Ok(None), |servers| servers.object(text, SERVER_NAME))?;
    let Some(entry) = entry else { return Ok(text.into()) };
    let layout = Layout::of(text, &root);
    let splices = match entry.member(text, key)? {
        Some(field) if value.is_at(&field.value) => Vec::new(),
        Some(field) => vec![field.replace(text, layout, value)],
        None => entry.insert(text, layout, key, value),
    };
    Ok(splice::apply(text, &splices))
}

/// Removes the entry, and the objects that were made only for it.
pub fn remove(text: &str, format: JsonFormat) -> Result<String, ParseError> {
    let Some(root) = scan(text)? else { return Ok(text.into()) };
    let Some(servers) = root.object(text, format.key)? else { return Ok(text.into()) };
    if servers.member(text, SERVER_NAME)?.is_none() {
        return Ok(text.into());
    }
    let splices = if !servers.was_made_for_its_member(text) {
        servers.remove(text, SERVER_NAME)
    } else if !root.was_made_for_its_member(text) {
        root.remove(text, format.key)
    } else {
        vec![Splice { range: root.range.clone(), text: String::new() }]
    };
    Ok(splice::apply(text, &splices))
}

/// Returns a whole configuration with this entry alone, without a line break at its end.
pub fn whole(format: JsonFormat, entry: &Entry, newline: &str) -> String {
    let servers = NewValue::Object(vec![(SERVER_NAME, NewValue::Object(format.fields(entry)))]);
    let layout = Layout { newline, unit: INDENT };
    NewValue::Object(vec![(format.key, servers)]).lines(layout, "")
}

impl JsonFormat {
    fn fields(self, entry: &Entry) -> Vec<(&'static str, NewValue)> {
        let mut members = Vec::new();
        if self.is_typed {
            members.push(("type", NewValue::Text("stdio".into())));
        }
        members.push(("command", NewValue::Text(entry.command.clone())));
        members.push(("args", NewValue::List(entry.args.clone())));
        if self.has_env {
            members.push(("env", NewValue::Object(Vec::new())));
        }
        members
    }
}

/// A value to write.
enum NewValue {
    Text(String),
    List(Vec<String>),
    Object(Vec<(&'static str, NewValue)>),
}

/// Layout of a text.
#[derive(Clone, Copy)]
struct Layout<'t> {
    newline: &'t str,
    /// One step of indentation.
    unit: &'t str,
}

impl<'t> Layout<'t> {
    fn of(text: &'t str, root: &Node) -> Self {
        let first = root.members().iter().find(|member| starts_line(text, member.start));
        let unit = first.map(|member| indentation(text, member.start));
        Self {
            newline: line_break(text),
            unit: unit.filter(|unit| !unit.is_empty()).unwrap_or(INDENT),
        }
    }
}

impl NewValue {
    /// Formats the value over several lines, the first of which is already indented by `indent`.
    fn lines(&self, layout: Layout<'_>, indent: &str) -> String {
        match self {
            Self::Object(members) if !members.is_empty() => {
                let Layout { newline, unit } = layout;
                let inner = format!("{indent}{unit}");
                let line = |(key, value): &(&str, Self)| {
                    format!("{newline}{inner}{}: {}", quoted(key), value.lines(layout, &inner))
                };
                let lines: Vec<_> = members.iter().map(line).collect();
                format!("{{{}{newline}{indent}}}", lines.join(","))
            }
            value => value.on_one_line(),
        }
    }

    fn on_one_line(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::List(texts) => quoted_list(texts),
            Self::Object(members) if members.is_empty() => "{}".into(),
            Self::Object(members) => {
                let member = |(key, value): &(&str, Self)| {
                    format!("{}: {}", quoted(key), value.on_one_line())
                };
                let members: Vec<_> = members.iter().map(member).collect();
                format!("{{ {} }}", members.join(", "))
            }
        }
    }

    fn is_at(&self, node: &Node) -> bool {
        match (self, &node.kind) {
            (Self::Text(text), NodeKind::Text(found)) => text == found,
            (Self::List(texts), NodeKind::Texts(found)) => texts == found,
            // Contents that the user added stay.
            (Self::Object(_), NodeKind::Object(_)) => true,
            _ => false,
        }
    }
}

impl Member {
    fn replace(&self, text: &str, layout: Layout<'_>, value: &NewValue) -> Splice {
        let indent = indentation(text, self.start);
        Splice { range: self.value.range.clone(), text: value.lines(layout, indent) }
    }
}

impl Node {
    fn entry(&self, text: &str) -> Result<Option<Entry>, ParseError> {
        let Some(Member { value: Self { kind: NodeKind::Text(command), .. }, .. }) =
            self.member(text, "command")?
        else {
            return Ok(None);
        };
        let args = match self.member(text, "args")?.map(|args| &args.value.kind) {
            None => Vec::new(),
            Some(NodeKind::Texts(args)) => args.clone(),
            Some(_) => return Ok(None),
        };
        Ok(Some(Entry { command: command.clone(), args }))
    }

    /// Adds a member after the last one.
    fn insert(&self, text: &str, layout: Layout<'_>, key: &str, value: &NewValue) -> Vec<Splice> {
        let Some(last) = self.members().last() else {
            return vec![self.insert_first(text, layout, key, value)];
        };
        let indent = indentation(text, last.start);
        let at = end_of_comments(text, last.comma.map_or(last.value.range.end, |comma| comma + 1));
        let key = quoted(key);
        let mut new = if starts_line(text, last.start) || at.follows_line_comment {
            format!("{}{indent}{key}: {}", layout.newline, value.lines(layout, indent))
        } else {
            format!(" {key}: {}", value.on_one_line())
        };
        let insert = |at: usize, text: String| Splice { range: at..at, text };
        if last.comma.is_some() {
            new.push(',');
            return vec![insert(at.start, new)];
        }
        vec![insert(last.value.range.end, ",".into()), insert(at.start, new)]
    }

    fn insert_first(&self, text: &str, layout: Layout<'_>, key: &str, value: &NewValue) -> Splice {
        let (brace, indent) = (self.range.start, indentation(text, self.range.start));
        let inside = &text[brace + 1..self.range.end - 1];
        let (at, new) = if inside.trim().is_empty() {
            (brace + 1, format!("{}: {}", quoted(key), value.lines(layout, indent)))
        } else {
            let inner = format!("{indent}{}", layout.unit);
            let value = value.lines(layout, &inner);
            let new = format!("{}{inner}{}: {value}", layout.newline, quoted(key));
            (end_of_comments(text, brace + 1).start, new)
        };
        Splice { range: at..at, text: new }
    }

    /// True if the object has no other member and its layout is that of this module.
    fn was_made_for_its_member(&self, text: &str) -> bool {
        let [member] = self.members() else { return false };
        let before = &text[self.range.start + 1..member.start];
        let after = &text[member.value.range.end..self.range.end - 1];
        !before.is_empty() && before.trim().is_empty() && after.trim().is_empty()
    }

    fn remove(&self, text: &str, key: &str) -> Vec<Splice> {
        let members = self.members();
        let Some(at) = members.iter().position(|member| member.key == key) else {
            return Vec::new();
        };
        let cut = |range| Splice { range, text: String::new() };
        let Member { start, gap, value, comma, .. } = &members[at];
        let end = value.range.end;
        // The comma after it is removed too, as one range unless a comment is between.
        let comma = comma.map(|comma| comma..comma + 1);
        let joined = comma.clone().filter(|comma| text[end..comma.start].trim().is_empty());
        let end = joined.as_ref().map_or(end, |comma| comma.end);
        let rest = text[end..].trim_start_matches([' ', '\t', '\r']);
        let would_be_comment = gap.follows_line_comment && !rest.starts_with('\n');
        let own = cut(if would_be_comment { *start..end } else { gap.start..end });
        let before = members[..at].last().and_then(|before| before.comma);
        match (comma, before) {
            (Some(_), _) if joined.is_some() => vec![own],
            (Some(comma), _) => vec![own, cut(comma)],
            (None, Some(before)) => vec![cut(before..before + 1), own],
            (None, None) => vec![own],
        }
    }
}

/// Returns the blanks at the beginning of the line.
fn indentation(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |before| before + 1)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// True if only blanks are before it on its line, and there is a line above.
fn starts_line(text: &str, at: usize) -> bool {
    text[..at].trim_end_matches([' ', '\t']).ends_with('\n')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::json;

    const FORMAT: JsonFormat = JsonFormat { key: "mcpServers", is_typed: false, has_env: false };

    fn entry() -> Entry {
        Entry { command: "/bin/fe".into(), args: vec!["--dir=/a".into()] }
    }

    /// Checks that the entry is added like this, that adding it again changes nothing, and that removing it leaves no
    /// trace.
    fn check(before: &str, after: &str) {
        let put = put(before, FORMAT, &entry()).unwrap();
        assert_eq!(put, after);
        assert_eq!(find(after, FORMAT), Ok(FoundEntry::Entry(entry())));
        assert_eq!(super::put(after, FORMAT, &entry()).unwrap(), after, "again");
        assert_eq!(remove(after, FORMAT).unwrap(), before, "and out");
    }

    #[test]
    fn behind_the_others_as_they_are_laid_out() {
        check(
            "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n",
            "{\n  \"mcpServers\": {\n    \"a\": {},\n    \"file-editor\": {\n      \"command\": \"/bin/fe\",\n      \
             \"args\": [\"--dir=/a\"]\n    }\n  }\n}\n",
        );
        check(
            "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {}, // last  \r\n\t},\r\n}",
            "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {}, // last  \r\n\t\t\"file-editor\": {\r\n\t\t\t\"command\": \
             \"/bin/fe\",\r\n\t\t\t\"args\": [\"--dir=/a\"]\r\n\t\t},\r\n\t},\r\n}",
        );
        check(
            "{\"mcpServers\": {\"a\": {}}}",
            "{\"mcpServers\": {\"a\": {}, \"file-editor\": { \"command\": \"/bin/fe\", \"args\": [\"--dir=/a\"] }}}",
        );
        check(
            "{\"mcpServers\": {\"a\": 1 // no comma\n}}",
            "{\"mcpServers\": {\"a\": 1, // no comma\n\"file-editor\": {\n  \"command\": \"/bin/fe\",\n  \"args\": \
             [\"--dir=/a\"]\n}\n}}",
        );
    }

    #[test]
    fn where_there_are_no_others() {
        let ours = |indent: &str| {
            format!(
                "\"file-editor\": {{\n{indent}  \"command\": \"/bin/fe\",\n{indent}  \"args\": \
                 [\"--dir=/a\"]\n{indent}}}"
            )
        };
        check("", &format!("{{\n  \"mcpServers\": {{\n    {}\n  }}\n}}", ours("    ")));
        check("\n", &format!("\n{{\n  \"mcpServers\": {{\n    {}\n  }}\n}}", ours("    ")));
        check("{}", &format!("{{\"mcpServers\": {{\n  {}\n}}}}", ours("  ")));
        check("{\n}", &format!("{{\"mcpServers\": {{\n  {}\n}}\n}}", ours("  ")));
        check("{\"mcpServers\": {}}", &format!("{{\"mcpServers\": {{{}}}}}", ours("")));
        check("{\"mcpServers\": { }}", &format!("{{\"mcpServers\": {{{} }}}}", ours("")));
        check(
            "{\n  \"mcpServers\": { // none yet\n  }\n}",
            &format!("{{\n  \"mcpServers\": {{ // none yet\n    {}\n  }}\n}}", ours("    ")),
        );
        check(
            "{\n  \"a\": 1\n}",
            &format!("{{\n  \"a\": 1,\n  \"mcpServers\": {{\n    {}\n  }}\n}}", ours("    ")),
        );
    }

    #[test]
    fn an_entry_that_differs_is_changed_where_it_does() {
        let check = |before: &str, after: &str| {
            let wrap = |entry: &str| format!("{{\"mcpServers\": {{\"file-editor\": {entry}}}}}");
            assert_eq!(put(&wrap(before), FORMAT, &entry()).unwrap(), wrap(after));
        };
        check(
            r#"{"env": {"KEY": "secret"}, "args": ["--dir=/b"], "command": "old" /* c */}"#,
            r#"{"env": {"KEY": "secret"}, "args": ["--dir=/a"], "command": "/bin/fe" /* c */}"#,
        );
        check(
            r#"{"command": "/bin/fe", "trust": true,}"#,
            r#"{"command": "/bin/fe", "trust": true, "args": ["--dir=/a"],}"#,
        );
        let other = "{\n\"mcpServers\": {\"file-editor\": {\"url\": \"http://localhost\"}}}";
        let refused = put(other, FORMAT, &entry()).unwrap_err();
        assert_eq!(
            (refused.line, refused.message.contains("does not write")),
            (2, true),
            "{refused}"
        );
    }

    #[test]
    fn fields_that_are_not_ours_are_told_and_go_with_a_replacement() {
        let wrap = |entry: &str| {
            format!("{{\n  \"mcpServers\": {{\n    \"file-editor\": {entry}\n  }}\n}}")
        };
        let check = |format: JsonFormat, before: &str, expected: &[(&str, &str)]| {
            let text = wrap(before);
            let field = |(name, value): &(&str, &str)| Field {
                name: (*name).into(),
                value: (*value).into(),
            };
            let expected: Vec<_> = expected.iter().map(field).collect();
            assert_eq!(other_fields(&text, format).unwrap(), expected, "{before}");
            let replaced = replace(&text, format, &entry()).unwrap();
            assert_eq!(other_fields(&replaced, format), Ok(Vec::new()), "{replaced}");
            assert_eq!(find(&replaced, format), Ok(FoundEntry::Entry(entry())), "{replaced}");
        };
        let ours = r#""command": "/bin/fe", "args": ["--dir=/a"]"#;
        check(FORMAT, &format!("{{ {ours} }}"), &[]);
        check(
            FORMAT,
            &format!(
                r#"{{ "env": {{"A": "b", "C": [1]}}, "\u0063wd": "/tmp", {ours}, "trust": true /* c */ }}"#
            ),
            &[("env.A", "\"b\""), ("env.C", "[1]"), ("cwd", "\"/tmp\""), ("trust", "true")],
        );
        check(
            FORMAT,
            &format!(r#"{{ {ours}, "env": {{}}, "env": 1 }}"#),
            &[("env", "{}"), ("env", "1")],
        );
        check(FORMAT, &format!(r#"{{ {ours}, "type": "stdio" }}"#), &[("type", "\"stdio\"")]);
        let typed = JsonFormat { is_typed: true, has_env: true, ..FORMAT };
        check(typed, &format!(r#"{{ {ours}, "type": "stdio", "env": {{ }} }}"#), &[]);
        check(typed, &format!(r#"{{ {ours}, "type": "sse" }}"#), &[("type", "\"sse\"")]);
        assert_eq!(other_fields("{}", FORMAT), Ok(Vec::new()));
        assert_eq!(replace("{}", FORMAT, &entry()), Ok("{}".into()));
    }

    #[test]
    fn only_the_entry_is_taken_out() {
        let check = |before: &str, after: &str| {
            assert_eq!(remove(before, FORMAT).unwrap(), after, "{before}");
        };
        check(r#"{"mcpServers": {"file-editor": 1, "b": 2}}"#, r#"{"mcpServers": { "b": 2}}"#);
        check(r#"{"mcpServers": {"a": 1, "file-editor": 2}}"#, r#"{"mcpServers": {"a": 1}}"#);
        check(
            r#"{"mcpServers": {"a": 1, "file-editor": 2 /* c */, }}"#,
            r#"{"mcpServers": {"a": 1, /* c */ }}"#,
        );
        // The text after a comment must not become part of it.
        check(
            "{\"mcpServers\": {// c\n\"file-editor\": 1, \"b\": 2}}",
            "{\"mcpServers\": {// c\n \"b\": 2}}",
        );
        check(r#"{"mcpServers": {"a": 1}}"#, r#"{"mcpServers": {"a": 1}}"#);
        check(r#"{"a": {"file-editor": 1}}"#, r#"{"a": {"file-editor": 1}}"#);
    }

    #[test]
    fn what_is_not_understood_is_refused_by_its_line() {
        let check = |text: &str, line: usize, what: &str| {
            let error = ParseError { line, message: what.into() };
            assert_eq!(put(text, FORMAT, &entry()), Err(error), "{text}");
        };
        check("{\n\"a\": 1\n\"b\": 2}", 3, "expected `,` or `}`");
        check("{\n\"a\" 1}", 2, "expected `:`");
        check("{\n\n'a': 1}", 3, "expected a name in quotes");
        check("{\"a\": \n tru}", 2, "expected a value");
        check("{\"a\": [1 2]}", 1, "expected `,` or `]`");
        check("{\"a\": \"\n\"}", 1, "unterminated string");
        check("{\"a\": \"\\q\"}", 1, "invalid escape in a string");
        check("{\n/* ", 2, "unterminated comment");
        check("{\n", 2, "expected a name in quotes");
        check("{\"a\":", 1, "unexpected end of file");
        check("{}\n}", 2, "unexpected text after the end");
        check("[]", 1, "not an object (`{ … }`)");
        check("{\n\"mcpServers\": null}", 2, "`mcpServers` is not an object (`{ … }`)");
        check("{\"mcpServers\": {},\n\"mcpServers\": {}}", 2, "`mcpServers` occurs twice");
        check(&"{\"a\":".repeat(200), 1, "nested too deeply");
    }

    fn trivia() -> impl Strategy<Value = &'static str> {
        select(vec![
            "",
            "",
            "",
            " ",
            "\n",
            "\n  ",
            "\r\n\t",
            "  \n\n",
            " /* , { */ ",
            "// \"x\": {  \n",
            " // }\r\n    ",
            "/*\n*/",
        ])
    }

    fn object(value: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<String>> {
        let member = (trivia(), trivia(), trivia(), trivia(), value);
        proptest::collection::vec(member, 0..4).prop_map(|members| {
            let member = |(at, (a, b, c, d, value)): (usize, (_, _, _, _, _))| {
                format!("{a}\"k{at}\"{b}:{c}{value}{d}")
            };
            members.into_iter().enumerate().map(member).collect()
        })
    }

    fn joined(members: &[String], comma: bool, end: &str) -> String {
        let comma = if comma && !members.is_empty() { "," } else { "" };
        format!("{{{}{comma}{end}}}", members.join(","))
    }

    /// Generates JSON with everything that clients allow in it, with or without servers.
    fn text() -> impl Strategy<Value = String> {
        let leaf =
            select(vec!["1", "null", "\"//{\\\"\"", "[1, // x\n \"]\",]", "{}", "{ }", "{\n}"]);
        let value = leaf.prop_map(String::from).prop_recursive(2, 8, 3, |inner| {
            (object(inner), any::<bool>(), trivia())
                .prop_map(|(members, comma, end)| joined(&members, comma, end))
        });
        let servers = (object(value.clone()), any::<bool>(), trivia(), trivia(), any::<usize>());
        let parts = (object(value), proptest::option::of(servers), any::<bool>());
        (parts, trivia(), trivia(), trivia()).prop_map(|(parts, lead, end, tail)| {
            let (mut members, servers, comma) = parts;
            if let Some((servers, comma, before, end, at)) = servers {
                let servers = joined(&servers, comma, end);
                members
                    .insert(at % (members.len() + 1), format!("{before}\"mcpServers\":{servers}"));
            }
            format!("{lead}{}{tail}", joined(&members, comma, end))
        })
    }

    proptest! {
        #[test]
        fn what_was_put_there_is_found_and_leaves_no_trace(text in text()) {
            let with = put(&text, FORMAT, &entry()).unwrap();
            prop_assert_eq!(find(&with, FORMAT), Ok(FoundEntry::Entry(entry())));
            let other = Entry { command: "other".into(), ..entry() };
            let changed = put(&with, FORMAT, &other).unwrap();
            prop_assert_eq!(find(&changed, FORMAT), Ok(FoundEntry::Entry(other)));
            prop_assert_eq!(remove(&changed, FORMAT).unwrap(), text.clone());
            prop_assert_eq!(remove(&with, FORMAT).unwrap(), text);
        }

        #[test]
        fn any_text_is_refused_or_kept(text in "[{}\\[\\]\":,/* \r\na1\\\\]{0,24}") {
            if let Ok(with) = put(&text, FORMAT, &entry()) {
                prop_assert_eq!(remove(&with, FORMAT).unwrap(), text);
            }
        }

        #[test]
        fn others_read_what_we_wrote(keys in proptest::collection::btree_set("[a-z]{1,3}", 0..4), is_pretty: bool) {
            let mut expected = json!({ "mcpServers": {} });
            for key in keys {
                expected[&key] = json!([key]);
                expected["mcpServers"][&key] = json!({ "command": key });
            }
            let text = if is_pretty { serde_json::to_string_pretty(&expected) } else { serde_json::to_string(&expected) };
            let with = put(&text.unwrap(), FORMAT, &entry()).unwrap();
            expected["mcpServers"][SERVER_NAME] = json!({ "command": "/bin/fe", "args": ["--dir=/a"] });
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&with).unwrap(), expected);
        }
    }
}
