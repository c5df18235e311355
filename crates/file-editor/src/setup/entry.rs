//! The server's entry in a configuration of either format, errors of a configuration that cannot be parsed, and quoted
//! strings for JSON and TOML.

use std::fmt;

/// Name of this server's entry among the servers of a client.
pub const SERVER_NAME: &str = "file-editor";

/// Command line with which a client starts this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub command: String,
    pub args: Vec<String>,
}

/// Flags that `setup` sets; other flags in the entry stay.
const OWN_FLAGS: [&str; 3] = ["--dir", "--transport", "--tools"];

impl Entry {
    /// Returns this entry with the other flags of an existing entry added.
    #[must_use]
    pub fn with_flags_of(&self, old: &Self) -> Self {
        let mut args = self.args.clone();
        args.extend(old.other_flags().into_iter().map(String::from));
        Self { command: self.command.clone(), args }
    }

    /// Returns the flags that `setup` does not set. None for a command that is another program, which then starts this
    /// one (`npx`, a container), since its arguments are not flags of this program.
    pub fn other_flags(&self) -> Vec<&str> {
        let mut flags = Vec::new();
        if !self.starts_this_program() {
            return flags;
        }
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            if OWN_FLAGS.contains(&arg.as_str()) {
                // `--dir folder` is two arguments.
                args.next();
            } else if !is_own_flag(arg) {
                flags.push(arg.as_str());
            }
        }
        flags
    }

    /// True if its command is this program by its file name, in any folder.
    pub fn starts_this_program(&self) -> bool {
        let name = self.command.rsplit(['/', '\\']).next().unwrap_or_default();
        let own = std::env::current_exe();
        let own = own.ok().and_then(|own| Some(own.file_name()?.to_str()? == name));
        name.trim_end_matches(".exe") == SERVER_NAME || own == Some(true)
    }

    /// True if `setup` would write such an entry for some folder.
    pub fn has_only_own_flags(&self) -> bool {
        self.starts_this_program() && self.args.iter().all(|arg| is_own_flag(arg))
    }

    /// Returns the folder to serve.
    pub fn folder(&self) -> Option<&str> {
        let next = || {
            let at = self.args.iter().position(|arg| arg == "--dir")?;
            self.args.get(at + 1).map(String::as_str)
        };
        self.args.iter().find_map(|arg| arg.strip_prefix("--dir=")).or_else(next)
    }
}

/// Result of looking for the server's entry.
#[derive(Debug, PartialEq, Eq)]
pub enum FoundEntry {
    Missing,
    /// An entry of this name in a form that `setup` would not write: the address of a remote server, for instance.
    OtherForm,
    Entry(Entry),
}

/// A field of an entry that `setup` would not write: variables of the server, a working directory, permission to run
/// without asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Path of the field, with dots between the names.
    pub name: String,
    /// Text of the value in the configuration.
    pub value: String,
}

/// True if it is a flag that `setup` sets, with its value.
fn is_own_flag(arg: &str) -> bool {
    arg.split_once('=').is_some_and(|(flag, _)| OWN_FLAGS.contains(&flag))
}

/// Formats the command line, without quoting.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command)?;
        self.args.iter().try_for_each(|arg| write!(f, " {arg}"))
    }
}

/// Error for a configuration that is left unchanged.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    pub message: String,
}

impl ParseError {
    pub fn at(text: &str, offset: usize, message: &str) -> Self {
        let before = text.as_bytes().iter().take(offset);
        Self { line: before.filter(|byte| **byte == b'\n').count() + 1, message: message.into() }
    }

    /// Makes the error for an entry of this name that could not be changed without losing a part of it.
    pub fn unknown_form(text: &str) -> Self {
        let message = "the `file-editor` entry has a form that `setup` does not write; remove it by hand, or \
                    with `--remove`, which keeps a copy";
        Self::at(text, text.find(SERVER_NAME).unwrap_or(0), message)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Returns the line break of a text: that of its first line.
pub fn line_break(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Quotes a string for JSON and TOML alike.
pub fn quoted(text: &str) -> String {
    let mut out = vec![b'"'];
    text::escape(text, &mut out);
    out.push(b'"');
    // Escaping keeps valid UTF-8. Delete (U+007F) must be escaped in TOML and may be in JSON.
    String::from_utf8_lossy(&out).replace('\u{7f}', "\\u007f")
}

/// Formats a list: `["a", "b"]`.
pub fn quoted_list(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn flags_of_others_stay_and_ours_are_ours() {
        let check = |old: &[&str], expected: &[&str]| {
            let texts = |args: &[&str]| args.iter().map(ToString::to_string).collect::<Vec<_>>();
            let entry = |args| Entry { command: "/x/file-editor".into(), args };
            let new = entry(texts(&["--dir=/new", "--tools=text"]));
            assert_eq!(new.with_flags_of(&entry(texts(old))).args, texts(expected), "{old:?}");
        };
        check(&[], &["--dir=/new", "--tools=text"]);
        check(
            &["--dir=/old", "--read-only", "--tools", "all", "--log=warn"],
            &["--dir=/new", "--tools=text", "--read-only", "--log=warn"],
        );
        check(&["--dir", "--dir", "--x"], &["--dir=/new", "--tools=text", "--x"]);
        let args = vec!["-y".to_owned(), "file-editor".to_owned(), "--dir=/old".to_owned()];
        let other = Entry { command: "npx".into(), args };
        let new = Entry { command: "/x/file-editor".into(), args: vec!["--dir=/new".to_owned()] };
        assert_eq!(new.with_flags_of(&other), new);
    }

    proptest! {
        #[test]
        fn what_was_quoted_is_read_again(text: String) {
            let quoted = quoted(&text);
            prop_assert_eq!(text::unescape(&quoted[1..quoted.len() - 1]), Some(text));
        }
    }
}
