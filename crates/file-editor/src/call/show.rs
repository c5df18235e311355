//! Output of a call: text for a person, or JSON.

use std::io;
use std::process::ExitCode;

use serde_json::{Map, Value};
use server::error_codes;
use server::terminal::{self, Color, Piece, Stream};
use tools::{Block, Dialect, Effect, Failure, ToolOutput, ToolSpec};

/// When text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Auto,
    Always,
    Never,
}

impl When {
    fn colors(self, stream: Stream) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => stream.takes_color(),
        }
    }
}

/// Format of the output.
pub struct Shown {
    form: Form,
    color: When,
}

#[derive(PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

impl Shown {
    pub fn new(json: bool, text: bool, color: When) -> Self {
        let is_text = text || color == When::Always || Stream::Stdout.is_terminal();
        Self { form: if is_text && !json { Form::Text } else { Form::Json }, color }
    }

    /// Writes the outcome and returns the exit status. `target`: the file as asked for.
    pub fn outcome(
        &self,
        entry: &ToolSpec,
        target: Option<&str>,
        outcome: Result<ToolOutput, Failure>,
    ) -> ExitCode {
        match (outcome, &self.form) {
            (Ok(reply), Form::Json) => write_json(&json(entry, reply)),
            (Ok(reply), Form::Text) => self.text(entry, &reply),
            (Err(failure), form) => {
                self.explain(&failure);
                if *form == Form::Json {
                    let object = error_codes::structured(entry.dialect, target, &failure);
                    write_json(&format!("{object}\n"));
                }
                ExitCode::FAILURE
            }
        }
    }

    fn explain(&self, failure: &Failure) {
        let message = format!(" {}\n", failure.message);
        let mut pieces = vec![(Some(Color::Red), "error:"), (None, message.as_str())];
        let hint = failure.hint.as_ref().map(|hint| format!(" {hint}\n"));
        if let Some(hint) = &hint {
            pieces.extend([(Some(Color::Cyan), "hint:"), (None, hint.as_str())]);
        }
        // If stderr is closed, the message is lost.
        let _ = self.paint(Stream::Stderr, &pieces);
    }

    /// Writes with colours if they are on.
    fn paint(&self, stream: Stream, pieces: &[Piece<'_>]) -> io::Result<()> {
        if self.color.colors(stream) {
            return terminal::write_colored(stream, pieces);
        }
        let text: String = pieces.iter().map(|(_, text)| *text).collect();
        terminal::write(stream, &text)
    }

    fn text(&self, entry: &ToolSpec, reply: &ToolOutput) -> ExitCode {
        if reply.data.is_none() && reply.written.is_none() {
            let (content, summary) = read(entry, reply);
            // Not on a terminal the exact bytes of the text are written, if the tool gives them.
            let is_exact = entry.dialect != Dialect::Flat && !Stream::Stdout.is_terminal();
            let is_marked = reply.blocks.first().is_some_and(Block::is_after_mark);
            let content = match is_exact {
                // The tool leaves out the byte order mark, since agents would have to match it; here it is part of the
                // file.
                true if is_marked => format!("\u{feff}{content}"),
                true => content,
                false => ended(content),
            };
            let code = write(&content);
            if Stream::Stderr.is_terminal() {
                let pieces = [(Some(Color::Dim), summary.as_str()), (None, "\n")];
                let _ = self.paint(Stream::Stderr, &pieces);
            }
            return code;
        }
        let blocks = reply.blocks.iter().filter(|block| !block.is_empty());
        let text: String = blocks.map(|block| ended(block.to_string())).collect();
        let diff = reply.data.as_ref().and_then(|data| data.get("diff")?.as_str());
        let diff = diff.filter(|diff| entry.effect != Effect::Reads && !diff.is_empty());
        let parts = diff.and_then(|diff| Some((text.split_once(diff)?, diff)));
        let pieces = match parts {
            Some(((before, after), diff)) => {
                [vec![(None, before)], colored(diff), vec![(None, after)]].concat()
            }
            None => vec![(None, text.as_str())],
        };
        done(self.paint(Stream::Stdout, &pieces))
    }
}

/// Returns the text of a read file alone, and the summary.
fn read(entry: &ToolSpec, reply: &ToolOutput) -> (String, String) {
    let mut blocks = reply.blocks.iter().map(ToString::to_string);
    let text = blocks.next().unwrap_or_default();
    let text = match (entry.dialect, text.split_once("\n\n")) {
        // The first line names the file.
        (Dialect::Flat, Some((_, content))) => content.to_owned(),
        _ => text,
    };
    (text, blocks.next().unwrap_or_default())
}

/// Returns one JSON object on one line.
fn json(entry: &ToolSpec, reply: ToolOutput) -> String {
    let json = match (reply.written, reply.data) {
        (Some(json), _) => json,
        (None, Some(data)) => Value::Object(data).to_string(),
        (None, None) => {
            let reply = ToolOutput { written: None, data: None, ..reply };
            let (content, summary) = read(entry, &reply);
            let mut object = Map::new();
            object.insert("content".into(), content.into());
            object.insert("summary".into(), summary.into());
            object.extend(reply.hash.map(|hash| ("hash".into(), hash.to_string().into())));
            object.extend(reply.meta.into_iter().flatten());
            Value::Object(object).to_string()
        }
    };
    json + "\n"
}

/// Adds a line break at the end of a text that is not empty.
fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Colours each line of a diff by its first character. Only the first two lines name files: a later one that begins
/// like them is a line of the file.
fn colored(diff: &str) -> Vec<Piece<'_>> {
    let color = |(index, line): (usize, &'_ str)| match line.as_bytes().first() {
        Some(b'-' | b'+') if index < 2 => Some(Color::Bold),
        Some(b'@') => Some(Color::Cyan),
        Some(b'-') => Some(Color::Red),
        Some(b'+') => Some(Color::Green),
        _ => None,
    };
    let mut pieces = Vec::new();
    for (index, line) in diff.split_inclusive('\n').enumerate() {
        let (text, ending) = line.split_at(line.trim_end_matches(['\r', '\n']).len());
        pieces.extend([(color((index, line)), text), (None, ending)]);
    }
    pieces
}

/// Writes text to stdout and returns the exit status.
pub fn write(text: &str) -> ExitCode {
    done(terminal::write(Stream::Stdout, text))
}

/// Writes JSON to stdout and returns the exit status.
fn write_json(json: &str) -> ExitCode {
    done(terminal::write_json(Stream::Stdout, json))
}

fn done(written: io::Result<()>) -> ExitCode {
    match written {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe, since it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let message = "error: The call was made, but its answer could not be written";
            terminal::write_message(&format!("{message}: {error}"));
            ExitCode::FAILURE
        }
    }
}
