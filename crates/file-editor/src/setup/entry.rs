//! What a configuration says of us, whatever its format; why one cannot be understood; strings as JSON and TOML both
//! have them.

use std::fmt;

/// Our name among the servers of a client.
pub const NAME: &str = "file-editor";

/// How a client is to start us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub command: String,
    pub args: Vec<String>,
}

/// Flags that are ours to set; what else somebody wrote there stays.
const OURS: [&str; 3] = ["--dir", "--transport", "--tools"];

impl Entry {
    /// The same, with the flags of an entry that is there already and that we would not set.
    #[must_use]
    pub fn with_flags_of(&self, old: &Entry) -> Entry {
        let mut args = self.args.clone();
        args.extend(old.other_flags().into_iter().map(String::from));
        Entry { command: self.command.clone(), args }
    }

    /// Flags that we would not set. What starts something else, which then starts us (`npx`, a container), has other
    /// arguments: these are none.
    pub fn other_flags(&self) -> Vec<&str> {
        let mut flags = Vec::new();
        if !self.starts_us() {
            return flags;
        }
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            if OURS.contains(&arg.as_str()) {
                // `--dir folder` is two arguments.
                args.next();
            } else if !is_ours(arg) {
                flags.push(arg.as_str());
            }
        }
        flags
    }

    /// Whether its command is this program, wherever that is, by its name.
    pub fn starts_us(&self) -> bool {
        let name = self.command.rsplit(['/', '\\']).next().unwrap_or_default();
        let own = std::env::current_exe();
        let own = own.ok().and_then(|own| Some(own.file_name()?.to_str()? == name));
        name.trim_end_matches(".exe") == NAME || own == Some(true)
    }

    /// Whether all of it is what we would write ourselves, for some folder.
    pub fn has_only_our_flags(&self) -> bool {
        self.starts_us() && self.args.iter().all(|arg| is_ours(arg))
    }

    /// The folder it is to work in.
    pub fn folder(&self) -> Option<&str> {
        let next = || {
            let at = self.args.iter().position(|arg| arg == "--dir")?;
            self.args.get(at + 1).map(String::as_str)
        };
        self.args.iter().find_map(|arg| arg.strip_prefix("--dir=")).or_else(next)
    }
}

/// A field of an entry that we would not write: variables of the server, a folder it is started in, a right to run
/// unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// With dots between the names of what it is in.
    pub name: String,
    /// As the configuration has it.
    pub value: String,
}

/// Whether it is one of our flags with its value.
fn is_ours(arg: &str) -> bool {
    arg.split_once('=').is_some_and(|(flag, _)| OURS.contains(&flag))
}

/// As it would be typed, more or less.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command)?;
        self.args.iter().try_for_each(|arg| write!(f, " {arg}"))
    }
}

/// Why a configuration is left alone.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 1.
    pub line: usize,
    pub what: String,
}

impl Fault {
    pub fn at(text: &str, offset: usize, what: &str) -> Fault {
        let before = text.as_bytes().iter().take(offset);
        Fault { line: before.filter(|byte| **byte == b'\n').count() + 1, what: what.into() }
    }
}

impl Fault {
    /// That there is an entry of our name which could not be changed without losing some of it.
    pub fn other_form(text: &str) -> Fault {
        let what = "`file-editor` is there in a form that is not ours; take it out by hand, or with \
                    `--remove`, which keeps a copy";
        Fault::at(text, text.find(NAME).unwrap_or(0), what)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The line break of a text: that of its first line.
pub fn line_break(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// A string between quotes, for JSON and TOML alike.
pub fn quoted(text: &str) -> String {
    let mut out = vec![b'"'];
    text::escape(text, &mut out);
    out.push(b'"');
    // Whatever was text still is. Only TOML wants the one character escaped that JSON takes as it is.
    String::from_utf8_lossy(&out).replace('\u{7f}', "\\u007f")
}

/// `["a", "b"]`
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
