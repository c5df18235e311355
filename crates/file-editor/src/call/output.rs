//! Output of a call: text for a person, or JSON.

use std::io;
use std::process::ExitCode;

use serde_json::{Map, Value};
use server::error_codes;
use server::terminal::{self, Color, Piece, Stream};
use tools::{Block, Dialect, Effect, Failure, ToolOutput, ToolSpec};

/// Mode of coloring text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorMode {
    Auto,
    Always,
    Never,
}

impl ColorMode {
    fn colors(self, stream: Stream) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => stream.takes_color(),
        }
    }
}

/// Writer of a call's outcome.
pub struct Output {
    format: Format,
    color: ColorMode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

impl Output {
    /// `format`: the one asked for. Without it the output is text on a terminal or if it is always colored.
    pub fn new(format: Option<Format>, color: ColorMode) -> Self {
        let is_text = color == ColorMode::Always || Stream::Stdout.is_terminal();
        let default = if is_text { Format::Text } else { Format::Json };
        Self { format: format.unwrap_or(default), color }
    }

    /// Writes the outcome and returns the exit status. `target`: the file as asked for.
    pub fn print(
        &self,
        tool: &ToolSpec,
        target: Option<&str>,
        outcome: Result<ToolOutput, Failure>,
    ) -> ExitCode {
        match (outcome, self.format) {
            (Ok(output), Format::Json) => write_json(&to_json(tool, output)),
            (Ok(output), Format::Text) => self.print_text(tool, &output),
            (Err(failure), format) => {
                self.print_failure(&failure);
                if format == Format::Json {
                    let object = error_codes::structured(tool.dialect, target, &failure);
                    write_json(&format!("{object}\n"));
                }
                ExitCode::FAILURE
            }
        }
    }

    fn print_failure(&self, failure: &Failure) {
        let message = format!(" {}\n", failure.message);
        let mut pieces = vec![(Some(Color::Red), "error:"), (None, message.as_str())];
        let hint = failure.hint.as_ref().map(|hint| format!(" {hint}\n"));
        if let Some(hint) = &hint {
            pieces.extend([(Some(Color::Cyan), "hint:"), (None, hint.as_str())]);
        }
        // If stderr is closed, the message is lost.
        let _ = self.write_pieces(Stream::Stderr, &pieces);
    }

    /// Writes with colours if they are on.
    fn write_pieces(&self, stream: Stream, pieces: &[Piece<'_>]) -> io::Result<()> {
        if self.color.colors(stream) {
            return terminal::write_colored(stream, pieces);
        }
        let text: String = pieces.iter().map(|(_, text)| *text).collect();
        terminal::write(stream, &text)
    }

    fn print_text(&self, tool: &ToolSpec, output: &ToolOutput) -> ExitCode {
        if output.data.is_none() && output.written.is_none() {
            let (content, summary) = read_content(tool, output);
            // Not on a terminal the exact bytes of the text are written, if the tool gives them.
            let is_exact = tool.dialect != Dialect::Flat && !Stream::Stdout.is_terminal();
            let is_marked = output.blocks.first().is_some_and(Block::is_after_mark);
            let content = match is_exact {
                // The tool leaves out the byte order mark, since agents would have to match it; here it is part of the
                // file.
                true if is_marked => format!("\u{feff}{content}"),
                true => content,
                false => with_line_break(content),
            };
            let code = write_stdout(&content);
            if Stream::Stderr.is_terminal() {
                let pieces = [(Some(Color::Dim), summary.as_str()), (None, "\n")];
                let _ = self.write_pieces(Stream::Stderr, &pieces);
            }
            return code;
        }
        let blocks = output.blocks.iter().filter(|block| !block.is_empty());
        let text: String = blocks.map(|block| with_line_break(block.to_string())).collect();
        let diff = output.data.as_ref().and_then(|data| data.get("diff")?.as_str());
        let diff = diff.filter(|diff| tool.effect != Effect::Reads && !diff.is_empty());
        let parts = diff.and_then(|diff| Some((text.split_once(diff)?, diff)));
        let pieces = match parts {
            Some(((before, after), diff)) => {
                [vec![(None, before)], color_diff(diff), vec![(None, after)]].concat()
            }
            None => vec![(None, text.as_str())],
        };
        exit_status(self.write_pieces(Stream::Stdout, &pieces))
    }
}

/// Returns the text of a read file alone, and the summary.
fn read_content(tool: &ToolSpec, output: &ToolOutput) -> (String, String) {
    let mut blocks = output.blocks.iter().map(ToString::to_string);
    let text = blocks.next().unwrap_or_default();
    let text = match (tool.dialect, text.split_once("\n\n")) {
        // The first line names the file.
        (Dialect::Flat, Some((_, content))) => content.to_owned(),
        _ => text,
    };
    (text, blocks.next().unwrap_or_default())
}

/// Returns one JSON object on one line.
fn to_json(tool: &ToolSpec, output: ToolOutput) -> String {
    let json = match (output.written, output.data) {
        (Some(json), _) => json,
        (None, Some(data)) => Value::Object(data).to_string(),
        (None, None) => {
            let output = ToolOutput { written: None, data: None, ..output };
            let (content, summary) = read_content(tool, &output);
            let mut object = Map::new();
            object.insert("content".into(), content.into());
            object.insert("summary".into(), summary.into());
            object.extend(output.hash.map(|hash| ("hash".into(), hash.to_string().into())));
            object.extend(output.meta.into_iter().flatten());
            Value::Object(object).to_string()
        }
    };
    json + "\n"
}

/// Adds a line break at the end of a text that is not empty.
fn with_line_break(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Colours each line of a diff by its first character. Only the first two lines name files: a later one that begins
/// like them is a line of the file.
fn color_diff(diff: &str) -> Vec<Piece<'_>> {
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
pub fn write_stdout(text: &str) -> ExitCode {
    exit_status(terminal::write(Stream::Stdout, text))
}

/// Writes JSON to stdout and returns the exit status.
fn write_json(json: &str) -> ExitCode {
    exit_status(terminal::write_json(Stream::Stdout, json))
}

fn exit_status(written: io::Result<()>) -> ExitCode {
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
