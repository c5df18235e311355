//! Every flag and environment variable. Raw values are checked together, so that all faults are told at once.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, CommandFactory as _, Parser, Subcommand};
use files::{Access, Durability, Root};
use server::terminal::{self, Stream};
use server::{AllowedHost, Confirm, Level, Structured, ToolErrors, http};
use tools::{Effect, Entry};

use crate::workplace::{SecondWall, Workplace};
use crate::{call, doctor, manual, setup};

/// File tools for AI agents: list, read and edit the text files of one folder over MCP, REST and JSON-RPC.
///
/// The server works in one folder and never leaves it. Edits are atomic, locked across processes, and leave
/// everything they do not address as it is: line endings, encoding marks, mode, owner, links.
///
/// Start it from an MCP client, for instance:
///
///     file-editor --dir=/path/to/folder --transport=stdio
///
/// or let it listen, and talk to it yourself:
///
///     file-editor --dir=. --port=8080
///     curl -H 'Content-Type: application/json' -d '{"name":"notes.txt"}' localhost:8080/read_file
#[derive(Debug, Parser)]
#[command(name = "file-editor", version, max_term_width = 100, verbatim_doc_comment)]
#[command(after_help = AFTER, args_conflicts_with_subcommands = true)]
struct Raw {
    #[command(subcommand)]
    command: Option<Command>,

    /// Folder to work in. It must exist and be writable.
    #[arg(long, value_name = "PATH")]
    dir: Option<OsString>,

    /// How clients talk to the server: `http`, `stdio` [default: http]
    ///
    /// http: MCP at `POST /mcp` and `/`, the plain methods at `POST /list_files` and so on.
    /// stdio: MCP and the plain methods, one JSON-RPC message a line.
    #[arg(long, value_name = "TYPE", verbatim_doc_comment, value_parser = Words::of(&TRANSPORTS), hide_possible_values = true)]
    transport: Option<String>,

    /// Port of the HTTP transport, 1024 to 65535 [default: 8080]
    #[arg(long, value_name = "NUMBER")]
    port: Option<String>,

    /// Address or name to listen on [default: localhost, both loopback addresses]
    ///
    /// Beyond loopback only with a token in `FILE_EDITOR_TOKEN`.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// Hosts besides loopback that the Host and Origin headers may name, a comma list: `name` or `name:port`
    #[arg(long, value_name = "LIST")]
    allow_host: Option<String>,

    /// Largest file and request in megabytes, 1 to 100 [default: 10]
    ///
    /// A request may have 64 KiB more, for everything around the text.
    #[arg(long, value_name = "MB")]
    max_size: Option<String>,

    /// How long a call may take in seconds, 1 to 300 [default: 10]
    ///
    /// It includes waiting for a file's lock. A call that is refused for its time has written nothing.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<String>,

    /// Toolsets to serve, a comma list of `flat`, `text`, `code`, `all` [default: flat]
    ///
    /// flat: `list_files`, `read_file`, `edit_file`, addressed by file name, lines from 0.
    /// text: `read_text_file`, `write_text_file`, `multi_edit_text_file`, by absolute path, lines from 1.
    /// code: `ai_edit_code`, `ai_get_code_context`, `search_files`, by path from the folder, lines from 1.
    #[arg(long, value_name = "LIST", verbatim_doc_comment, value_parser = Words::of(&TOOLSETS), hide_possible_values = true)]
    tools: Option<String>,

    /// Serve only what reads; every edit is refused
    #[arg(long)]
    read_only: bool,

    /// Do without the second wall around the folder, which the kernel keeps on Linux (Landlock)
    ///
    /// Behind it the process opens no file elsewhere, runs none and makes no TCP connection, whatever goes wrong
    /// in it. Only what has to write elsewhere needs to do without: a core dump, a profiler, a measure of coverage.
    #[arg(long)]
    no_sandbox: bool,

    /// What an edit waits for: `none`, `data`, `full` [default: data]
    ///
    /// none: nothing; a power cut may lose the last edits, or leave their files empty.
    /// data: the new text is on the disk before it takes the file's place; a power cut leaves the old text or the new.
    /// full: the folder is on the disk too; an answered edit survives a power cut. Use it on ext4 without a journal.
    #[arg(long, value_name = "LEVEL", verbatim_doc_comment, value_parser = Words::of(&DURABILITIES), hide_possible_values = true)]
    durability: Option<String>,

    /// How a failing tool answers: `result`, `jsonrpc` [default: result]
    ///
    /// result: a tool result with `isError`, which models see. jsonrpc: a JSON-RPC error.
    #[arg(long, value_name = "KIND", value_parser = Words::of(&TOOL_ERRORS), hide_possible_values = true)]
    tool_errors: Option<String>,

    /// Whether results carry `structuredContent` besides text: `on`, `off` [default: on]
    #[arg(long, value_name = "SWITCH", value_parser = Words::of(&STRUCTURED), hide_possible_values = true)]
    structured: Option<String>,

    /// When a person is asked before anything is written: `never`, `auto` (if the client can ask), `always` [default: never]
    ///
    /// The client shows the change (MCP form elicitation). With `always` whatever cannot be asked about is refused.
    #[arg(long, value_name = "WHEN", value_parser = Words::of(&CONFIRMS), hide_possible_values = true)]
    confirm: Option<String>,

    /// What goes to stderr, one JSON object a line: `error`, `warn`, `info`, `debug` [default: info]
    ///
    /// Contents of files never do.
    #[arg(long, value_name = "LEVEL", value_parser = Words::of(&Level::ALL), hide_possible_values = true)]
    log: Option<String>,
}

/// Any word, with those that shells are to offer. One that is wrong is told later, together with all other faults.
#[derive(Clone)]
pub struct Words(Vec<&'static str>);

impl Words {
    pub fn of<T>(choices: &[(&'static str, T)]) -> Self {
        Self(choices.iter().map(|(name, _)| *name).collect())
    }
}

impl TypedValueParser for Words {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// What the binary does besides serving.
#[derive(Debug, Subcommand)]
enum Command {
    Call(call::Arguments),
    Setup(setup::Arguments),
    Doctor(doctor::Arguments),
    Completions(manual::Arguments),
    /// Print the manual page, for `man`
    Man,
    #[command(hide = true)]
    Complete(manual::Question),
}

const TRANSPORTS: [(&str, &str); 2] = [("http", "http"), ("stdio", "stdio")];
static TOOLSETS: [(&str, &[&[Entry]]); 4] = [
    ("flat", &[&tools::FLAT]),
    ("text", &[&tools::TEXT]),
    ("code", &[&tools::CODE]),
    ("all", &[&tools::FLAT, &tools::TEXT, &tools::CODE]),
];
pub const DURABILITIES: [(&str, Durability); 3] =
    [("none", Durability::None), ("data", Durability::Data), ("full", Durability::Full)];
const TOOL_ERRORS: [(&str, ToolErrors); 2] =
    [("result", ToolErrors::Result), ("jsonrpc", ToolErrors::JsonRpc)];
const STRUCTURED: [(&str, Structured); 2] = [("on", Structured::On), ("off", Structured::Off)];
const CONFIRMS: [(&str, Confirm); 3] =
    [("never", Confirm::Never), ("auto", Confirm::Auto), ("always", Confirm::Always)];

const AFTER: &str = "\
The same methods answer without a handshake (`list_files`, `read_file`, `edit_file` as JSON-RPC
methods, lines from 1), and as MCP tools (lines from 0) in every protocol version from 2024-11-05
to 2026-07-28.

Environment: FILE_EDITOR_TOKEN, when set, is the bearer token that HTTP requests must carry, but for /health.
LISTEN_FDS and LISTEN_PID hand over a listening socket, which is served in place of --host and --port.

Exit status: 0 at the end of input, on SIGTERM and SIGINT; 1 for a fault in the arguments or of the machine.";

/// What the command line asks for.
pub enum Task {
    Serve(Box<Config>),
    Call(call::Arguments),
    Setup(setup::Arguments),
    Doctor(doctor::Arguments),
    Completions(manual::Arguments),
    Man,
    Complete(manual::Question),
}

/// What the server was asked to be.
pub struct Config {
    pub transport: Transport,
    pub workplace: Workplace,
    pub tools: Vec<&'static Entry>,
    pub tool_errors: ToolErrors,
    pub structured: Structured,
    pub confirm: Confirm,
    pub log: Level,
}

/// Flags that mean the same to all who work in a folder, as they were given.
pub struct Flags<'a> {
    pub dir: Option<&'a OsStr>,
    pub max_size: Option<&'a str>,
    pub timeout: Option<&'a str>,
    pub durability: Option<&'a str>,
    pub read_only: bool,
    pub no_sandbox: bool,
}

pub enum Transport {
    Stdio,
    Http(http::Options),
}

/// Reads the command line, or ends the process: 0 after help and version, 1 after telling every fault.
pub fn read() -> Task {
    let mut raw = Raw::try_parse().unwrap_or_else(|error| {
        let stream = if error.use_stderr() { Stream::Stderr } else { Stream::Stdout };
        let _ = terminal::write(stream, &error.render().to_string());
        std::process::exit(i32::from(error.use_stderr()));
    });
    match raw.command.take() {
        Some(Command::Call(arguments)) => return Task::Call(arguments),
        Some(Command::Setup(arguments)) => return Task::Setup(arguments),
        Some(Command::Doctor(arguments)) => return Task::Doctor(arguments),
        Some(Command::Completions(arguments)) => return Task::Completions(arguments),
        Some(Command::Man) => return Task::Man,
        Some(Command::Complete(question)) => return Task::Complete(question),
        None => {}
    }
    let config = check(&raw).unwrap_or_else(|faults| {
        tell(&faults, "file-editor --help");
        std::process::exit(1);
    });
    Task::Serve(Box::new(config))
}

/// Every fault in the arguments, and where to read more.
pub fn tell(faults: &[String], help: &str) {
    for fault in faults {
        terminal::write_message(&format!("error: {fault}"));
    }
    terminal::write_message(&format!("\nSee `{help}`."));
}

/// All that can be said on the command line, as help, completions and the manual page tell it.
pub fn definition() -> clap::Command {
    let mut definition = Raw::command();
    definition.build();
    definition
}

/// The folder to work in, for calls of these tools; every fault, else.
pub fn workplace(flags: &Flags, tools: &[&'static Entry]) -> Result<Workplace, Vec<String>> {
    let mut faults = Faults(Vec::new());
    faults.workplace(flags, Some(tools)).ok_or(faults.0)
}

fn check(raw: &Raw) -> Result<Config, Vec<String>> {
    let mut faults = Faults(Vec::new());
    let flags = Flags {
        dir: raw.dir.as_deref(),
        max_size: raw.max_size.as_deref(),
        timeout: raw.timeout.as_deref(),
        durability: raw.durability.as_deref(),
        read_only: raw.read_only,
        no_sandbox: raw.no_sandbox,
    };
    let tools = faults.keep(toolsets(raw.tools.as_deref()));
    let workplace = faults.workplace(&flags, tools.as_deref());
    let port = "--port must be between 1024 and 65535";
    let port = faults.number(raw.port.as_deref(), 8080, 1024..=65535, port);
    let transport =
        faults.choice("--transport", raw.transport.as_deref().unwrap_or("http"), &TRANSPORTS);
    let transport = match transport {
        Some("http") => port.and_then(|port| faults.keep(listen(raw, port))),
        found => found.map(|_| Transport::Stdio),
    };
    let tool_errors = faults.choice(
        "--tool-errors",
        raw.tool_errors.as_deref().unwrap_or("result"),
        &TOOL_ERRORS,
    );
    let structured =
        faults.choice("--structured", raw.structured.as_deref().unwrap_or("on"), &STRUCTURED);
    let confirm = faults.choice("--confirm", raw.confirm.as_deref().unwrap_or("never"), &CONFIRMS);
    let log = faults.choice("--log", raw.log.as_deref().unwrap_or("info"), &Level::ALL);
    match (workplace, transport, tools, tool_errors, structured, confirm, log) {
        (
            Some(workplace),
            Some(transport),
            Some(tools),
            Some(tool_errors),
            Some(structured),
            Some(confirm),
            Some(log),
        ) if faults.0.is_empty() => {
            Ok(Config { transport, workplace, tools, tool_errors, structured, confirm, log })
        }
        _ => Err(faults.0),
    }
}

struct Faults(Vec<String>);

impl Faults {
    fn keep<T>(&mut self, checked: Result<T, String>) -> Option<T> {
        checked.map_err(|fault| self.0.push(fault)).ok()
    }

    /// `tools`: those that will be called there, if they are known.
    fn workplace(&mut self, flags: &Flags, tools: Option<&[&'static Entry]>) -> Option<Workplace> {
        let access = if flags.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let root = self.keep(folder(flags.dir, access));
        let size = "--max-size must be between 1 and 100 MB";
        let max_size = self.number(flags.max_size, 10, 1..=100, size);
        let time = "--timeout must be between 1 and 300 seconds";
        let timeout = self.number(flags.timeout, 10, 1..=300, time);
        let model = self.keep(tools.map_or(Ok(None), author));
        let durability =
            self.choice("--durability", flags.durability.unwrap_or("data"), &DURABILITIES);
        Some(Workplace {
            root: root?,
            max_size: max_size? << 20,
            timeout: Duration::from_secs(timeout?),
            durability: durability?,
            access,
            second_wall: if flags.no_sandbox { SecondWall::Unwanted } else { SecondWall::Wanted },
            model: model?.map(Arc::new),
        })
    }

    fn number(
        &mut self,
        raw: Option<&str>,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
        fault: &str,
    ) -> Option<u64> {
        let number = raw.map_or(Some(default), |raw| raw.trim().parse().ok());
        self.keep(number.filter(|number| range.contains(number)).ok_or_else(|| fault.into()))
    }

    fn choice<T: Copy>(&mut self, flag: &str, raw: &str, choices: &[(&str, T)]) -> Option<T> {
        let found = choices.iter().find(|(name, _)| *name == raw).map(|(_, value)| *value);
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        self.keep(found.ok_or_else(|| format!("{flag} must be one of: {}", names.join(", "))))
    }
}

pub fn folder(raw: Option<&OsStr>, access: Access) -> Result<Root, String> {
    let path = raw.filter(|raw| !raw.is_empty()).ok_or("--dir argument is required")?;
    let opened = Root::open(Path::new(path));
    let path = path.display();
    let root = opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("Directory does not exist: {path}"),
        std::io::ErrorKind::NotADirectory => format!("Not a directory: {path}"),
        _ => format!("Cannot access directory: {path}: {error}"),
    })?;
    if access == Access::ReadWrite && !root.is_writable() {
        return Err(format!("Directory not writable: {path} (--read-only serves it for reading)"));
    }
    Ok(root)
}

/// Opens the port, so that one that is taken is a fault among the others.
fn listen(raw: &Raw, port: u64) -> Result<Transport, String> {
    let hosts = allowed_hosts(raw.allow_host.as_deref().unwrap_or_default())?;
    let host = raw.host.as_deref().unwrap_or("localhost");
    let number = u16::try_from(port).unwrap_or_default();
    let listeners = match http::inherited() {
        Some(listener) => vec![listener],
        None => http::bind(host, number).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => format!("Port {port} is already in use"),
            _ => format!("Cannot listen on {host}:{port}: {error}"),
        })?,
    };
    let token = token()?;
    if token.is_none() && !http::is_loopback(&listeners) {
        return Err(format!(
            "--host={host} reaches beyond this machine: set a token in FILE_EDITOR_TOKEN"
        ));
    }
    Ok(Transport::Http(http::Options { listeners, hosts, token }))
}

fn allowed_hosts(list: &str) -> Result<Vec<AllowedHost>, String> {
    let hosts = list.split(',').map(str::trim).filter(|host| !host.is_empty());
    hosts
        .map(|host| {
            AllowedHost::parse(host).ok_or_else(|| {
                format!(
                    "--allow-host: `{host}` must be a name or an address, with or without a port: \
                     editor.example:8443"
                )
            })
        })
        .collect()
}

/// What requests have to carry, if anything.
pub fn token() -> Result<Option<String>, &'static str> {
    match std::env::var_os("FILE_EDITOR_TOKEN").map(OsString::into_string) {
        None => Ok(None),
        Some(Ok(token)) if token.is_empty() => Ok(None),
        Some(Ok(token)) if !can_be_carried(&token) => Err(
            "FILE_EDITOR_TOKEN ends with a blank or has a line break or the like, which no request can carry",
        ),
        Some(Ok(token)) => Ok(Some(token)),
        Some(Err(_)) => Err("FILE_EDITOR_TOKEN is not text"),
    }
}

/// Whether it can be the end of a header: blanks there are not part of it.
fn can_be_carried(token: &str) -> bool {
    !token.ends_with([' ', '\t']) && !token.bytes().any(|b| b.is_ascii_control() && b != b'\t')
}

/// The model that the variables name. Who serves no tool that has it write asks for none.
fn author(tools: &[&'static Entry]) -> Result<Option<model::Settings>, String> {
    let is_served = tools.iter().any(|entry| entry.effect == Effect::Rewrites);
    let get = |name: &str| std::env::var(name).ok().filter(|_| is_served);
    model::Settings::from_variables(get).map_err(|error| error.to_string())
}

pub fn toolsets(raw: Option<&str>) -> Result<Vec<&'static Entry>, String> {
    let mut tools: Vec<&'static Entry> = Vec::new();
    for name in raw.unwrap_or("flat").split(',') {
        let Some((_, sets)) = TOOLSETS.iter().find(|(known, _)| *known == name.trim()) else {
            return Err("--tools must be a comma list of: flat, text, code, all".into());
        };
        tools.extend(sets.iter().copied().flatten());
    }
    let mut seen = Vec::new();
    tools.retain(|entry| {
        !seen.contains(&entry.name) && {
            seen.push(entry.name);
            true
        }
    });
    Ok(tools)
}
