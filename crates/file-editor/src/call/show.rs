//! What became of a call: as text for a person, or as JSON.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::process::ExitCode;

use serde_json::{Map, Value};
use server::fault;
use tools::{Block, Dialect, Effect, Entry, Failure, Reply};

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const CYAN: &str = "36";

/// When text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    fn paints(self, stream: &impl IsTerminal) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => obeys(stream) && variable("NO_COLOR").is_none(),
        }
    }
}

/// Whether it is a terminal that does what it is told, rather than show it.
pub fn obeys(stream: &impl IsTerminal) -> bool {
    let understands = match variable("TERM") {
        Some(term) => term != "dumb",
        // Of the consoles that Windows has, this one does so unasked.
        None => !cfg!(windows) || variable("WT_SESSION").is_some(),
    };
    understands && stream.is_terminal()
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// How an outcome is shown.
pub struct Shown {
    form: Form,
    color: Color,
}

#[derive(PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

impl Shown {
    pub fn new(json: bool, text: bool, color: Color) -> Self {
        let is_text = text || color == Color::Always || io::stdout().is_terminal();
        Self { form: if is_text && !json { Form::Text } else { Form::Json }, color }
    }

    /// Shows it; the exit status of the process. `target`: the file as it was asked for.
    pub fn outcome(
        &self,
        entry: &Entry,
        target: Option<&str>,
        outcome: Result<Reply, Failure>,
    ) -> ExitCode {
        match (outcome, &self.form) {
            (Ok(reply), Form::Json) => write(&json(entry, reply)),
            (Ok(reply), Form::Text) => self.text(entry, &reply),
            (Err(failure), form) => {
                self.explain(&failure);
                if *form == Form::Json {
                    let object = fault::structured(entry.dialect, target, &failure);
                    write(format!("{object}\n").as_bytes());
                }
                ExitCode::FAILURE
            }
        }
    }

    fn explain(&self, failure: &Failure) {
        let stderr = io::stderr();
        let color = if self.color.paints(&stderr) { Some(RED) } else { None };
        let mut told = String::new();
        let safe = |text: &str| visible(text, stderr.is_terminal() || color.is_some()).into_owned();
        let _ = writeln!(told, "{} {}", painted("error:", color), safe(&failure.message));
        if let Some(hint) = &failure.hint {
            let hint = safe(hint);
            let _ = writeln!(told, "{} {hint}", painted("hint:", color.and(Some(CYAN))));
        }
        let _ = stderr.lock().write_all(told.as_bytes());
    }

    fn text(&self, entry: &Entry, reply: &Reply) -> ExitCode {
        let colors = self.color.paints(&io::stdout());
        if reply.data.is_none() && reply.written.is_none() {
            let (content, summary) = read(entry, reply);
            let stderr = io::stderr();
            // What is written elsewhere is the text to the byte, where the tool gives that.
            let is_exact = entry.dialect != Dialect::Flat && !io::stdout().is_terminal();
            let is_marked = reply.blocks.first().is_some_and(Block::is_after_mark);
            let content = match is_exact {
                // A tool hides it from those who would have to match it; here it belongs to the file.
                true if is_marked => format!("\u{feff}{content}"),
                true => content,
                false => ended(content),
            };
            let code = write(visible(&content, io::stdout().is_terminal()).as_bytes());
            if stderr.is_terminal() {
                let dim = self.color.paints(&stderr).then_some(DIM);
                let _ = writeln!(stderr.lock(), "{}", painted(&summary, dim));
            }
            return code;
        }
        let diff = reply.data.as_ref().and_then(|data| data.get("diff")?.as_str());
        let diff = diff.filter(|diff| colors && entry.effect != Effect::Reads && !diff.is_empty());
        let blocks = reply.blocks.iter().filter(|block| !block.is_empty());
        let text: String = blocks.map(|block| ended(block.to_string())).collect();
        let is_seen = colors || io::stdout().is_terminal();
        let text = visible(&text, is_seen);
        let diff = diff.map(|diff| visible(diff, is_seen));
        let text = match diff.and_then(|diff| Some((colored(&diff), text.split_once(&*diff)?))) {
            Some((diff, (before, after))) => format!("{before}{diff}{after}"),
            None => text.into_owned(),
        };
        write(text.as_bytes())
    }
}

/// What is read is the file's text, with nothing around it, and what is said of it besides.
fn read(entry: &Entry, reply: &Reply) -> (String, String) {
    let mut blocks = reply.blocks.iter().map(ToString::to_string);
    let text = blocks.next().unwrap_or_default();
    let text = match (entry.dialect, text.split_once("\n\n")) {
        // Its first line names the file.
        (Dialect::Flat, Some((_, content))) => content.to_owned(),
        _ => text,
    };
    (text, blocks.next().unwrap_or_default())
}

/// One object, on one line.
fn json(entry: &Entry, reply: Reply) -> Vec<u8> {
    let mut bytes = match (reply.written, reply.data) {
        (Some(json), _) => json.into_bytes(),
        (None, Some(data)) => Value::Object(data).to_string().into_bytes(),
        (None, None) => {
            let reply = Reply { written: None, data: None, ..reply };
            let (content, summary) = read(entry, &reply);
            let mut object = Map::new();
            object.insert("content".into(), content.into());
            object.insert("summary".into(), summary.into());
            object.extend(reply.hash.map(|hash| ("hash".into(), hash.to_string().into())));
            object.extend(reply.meta.into_iter().flatten());
            Value::Object(object).to_string().into_bytes()
        }
    };
    bytes.push(b'\n');
    bytes
}

/// The text, and a line break at its end if there is any text.
fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Whoever looks at a terminal sees what a text does to it: `^[` for the character that begins its commands.
fn visible(text: &str, is_seen: bool) -> Cow<'_, str> {
    let is_command = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !is_seen || !text.contains(is_command) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match u8::try_from(c) {
            Ok(b'\r') => {}
            Ok(byte @ (..0x20 | 0x7f)) if is_command(c) => {
                shown.extend(['^', char::from(byte ^ 0x40)]);
            }
            _ if is_command(c) => shown.push('\u{fffd}'),
            _ => shown.push(c),
        }
    }
    shown.into()
}

fn painted<'a>(text: &'a str, color: Option<&str>) -> Cow<'a, str> {
    color.map_or(text.into(), |color| format!("\x1b[{color}m{text}\x1b[m").into())
}

/// A diff with every line in the colour of what it does. Only the first two lines name files: a later one that begins
/// like them is a line of the file.
fn colored(diff: &str) -> String {
    let color = |(index, line): (usize, &str)| {
        let (line, ending) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let color = match line.as_bytes().first() {
            Some(b'-' | b'+') if index < 2 => Some(BOLD),
            Some(b'@') => Some(CYAN),
            Some(b'-') => Some(RED),
            Some(b'+') => Some(GREEN),
            _ => None,
        };
        painted(line, color).into_owned() + ending
    };
    diff.split_inclusive('\n').enumerate().map(color).collect()
}

/// Writes to stdout; the exit status of the process.
pub fn write(bytes: &[u8]) -> ExitCode {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: The call was made, but its answer cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}
