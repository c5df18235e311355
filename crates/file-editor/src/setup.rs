//! `file-editor setup`: clients are told of the server, in their own configuration.
//!
//! `client` knows who they are and where their files are, `json` and `toml` change a text just where our entry is, and
//! `configuration` does that to a file.

pub mod client;
pub mod configuration;
pub mod entry;
pub mod json;
mod toml;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use files::Access;

use crate::cli;
use client::{CLIENTS, Client};
use configuration::{Configuration, Outcome, Wish};
use entry::Entry;
use json::Found;

/// Tell clients of this server, in their own configuration
///
/// Only our own entry is added, changed or taken out: comments, order, layout and whatever else is in the file stay as
/// they are. A copy of the file as it was before is kept beside it, with `.before-file-editor` at the end of its name.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Arguments {
    /// Clients to tell: claude-code, claude-desktop, cursor, vscode, codex, zed, gemini [default: all that are found]
    #[arg(value_name = "CLIENT")]
    clients: Vec<String>,

    /// Folder the server is to work in [default: the current one]
    #[arg(long, value_name = "PATH")]
    dir: Option<OsString>,

    /// Toolsets to serve, a comma list of `flat`, `text`, `code`, `all` [default: text,code]
    #[arg(long, value_name = "LIST")]
    tools: Option<String>,

    /// Write the configuration of the folder, not that of the user
    #[arg(long)]
    project: bool,

    /// Take the entry out again
    #[arg(long)]
    remove: bool,

    /// Show what would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Show all clients, where their configuration is and what it says of us
    #[arg(long, conflicts_with_all = ["remove", "dry_run", "clients"])]
    list: bool,
}

pub fn run(arguments: &Arguments) -> ExitCode {
    let mut out = io::stdout().lock();
    let outcome =
        if arguments.list { list(arguments, &mut out) } else { tell(arguments, &mut out) };
    match outcome {
        Ok(code) => code,
        Err(faults) => {
            for fault in faults {
                eprintln!("error: {fault}");
            }
            eprintln!("\nSee `file-editor setup --help`.");
            ExitCode::FAILURE
        }
    }
}

/// Does what was asked for one client after the other; one that fails is no reason to leave out the next.
fn tell(arguments: &Arguments, out: &mut impl Write) -> Result<ExitCode, Vec<String>> {
    let folder = folder(arguments).map_err(|fault| vec![fault])?;
    let wish = if arguments.remove {
        Wish::Absent
    } else {
        Wish::Present(entry(arguments, &folder).map_err(|fault| vec![fault])?)
    };
    let chosen = chosen(arguments, &folder)?;
    let (mut is_new, mut code) = (false, ExitCode::SUCCESS);
    for configuration in &chosen {
        let outcome = if arguments.dry_run {
            configuration.rehearse(&wish).map(|diff| write!(out, "{diff}"))
        } else {
            configuration.save(&wish).map(|outcome| {
                is_new |= matches!(outcome, Outcome::Added { .. } | Outcome::Changed { .. });
                writeln!(out, "{}: {outcome}", configuration.client.name)
            })
        };
        if let Err(fault) = outcome {
            eprintln!("error: {}: {fault}", configuration.client.name);
            code = ExitCode::FAILURE;
        }
    }
    if is_new {
        let _ =
            writeln!(out, "\nClients read their configuration when they start: start them anew.");
    }
    Ok(code)
}

fn list(arguments: &Arguments, out: &mut impl Write) -> Result<ExitCode, Vec<String>> {
    let folder = folder(arguments).map_err(|fault| vec![fault])?;
    for client in &CLIENTS {
        let Some(path) = place(client, arguments, &folder) else { continue };
        let state = if !client.is_there(&path) && !arguments.project {
            "not found here".into()
        } else {
            match Configuration::new(client, path.clone()).look() {
                Ok(None) => "no configuration yet".into(),
                Ok(Some(Found::Nothing)) => "does not know of us".into(),
                Ok(Some(Found::Other)) => "has another entry of our name".into(),
                Ok(Some(Found::Entry(entry))) => match entry.folder() {
                    Some(folder) => format!("starts us in {folder}"),
                    None => "starts us".into(),
                },
                Err(fault) => fault,
            }
        };
        let _ = writeln!(out, "{:<15} {}\n{:<15} {state}", client.name, path.display(), "");
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder the server is to work in.
fn folder(arguments: &Arguments) -> Result<PathBuf, String> {
    let named = arguments.dir.as_deref().unwrap_or(OsStr::new("."));
    // Whether it can be written to is for the server to say; to take an entry out it need not.
    cli::folder(Some(named), Access::ReadOnly).map(|root| root.path().to_path_buf())
}

/// How we are to be started.
fn entry(arguments: &Arguments, folder: &Path) -> Result<Entry, String> {
    let tools = arguments.tools.as_deref().unwrap_or("text,code");
    cli::toolsets(Some(tools))?;
    let text = |path: &Path| {
        let fault =
            || format!("no configuration can name a path that is not text: {}", path.display());
        path.to_str().map(String::from).ok_or_else(fault)
    };
    let command =
        env::current_exe().map_err(|error| format!("Cannot find this program: {error}"))?;
    Ok(Entry {
        command: text(&command)?,
        args: vec![
            format!("--dir={}", text(folder)?),
            "--transport=stdio".into(),
            format!("--tools={tools}"),
        ],
    })
}

fn place(client: &Client, arguments: &Arguments, folder: &Path) -> Option<PathBuf> {
    if arguments.project { client.of_folder(folder) } else { client.of_user() }
}

/// Those that were named, or all that are found.
fn chosen(arguments: &Arguments, folder: &Path) -> Result<Vec<Configuration>, Vec<String>> {
    if arguments.clients.is_empty() {
        return found(arguments, folder);
    }
    let (mut chosen, mut faults) = (Vec::new(), Vec::new());
    for name in &arguments.clients {
        let Some(client) = Client::named(name) else {
            faults.push(format!("no client is called `{name}`; there are: {}", client::names()));
            continue;
        };
        match place(client, arguments, folder) {
            Some(path) => chosen.push(Configuration::new(client, path)),
            None if arguments.project => {
                faults.push(format!("{name}: {} has no configuration of a folder", client.title));
            }
            None => faults.push(format!("{name}: there is no home folder: set HOME")),
        }
    }
    if faults.is_empty() { Ok(chosen) } else { Err(faults) }
}

fn found(arguments: &Arguments, folder: &Path) -> Result<Vec<Configuration>, Vec<String>> {
    let is_used = |client: &&Client| client.of_user().is_some_and(|file| client.is_there(&file));
    let used = CLIENTS.iter().filter(is_used);
    let found: Vec<_> = used
        .filter_map(|client| {
            place(client, arguments, folder).map(|path| Configuration::new(client, path))
        })
        .collect();
    if found.is_empty() {
        let names = client::names();
        return Err(vec![format!("no client is found here; name one of: {names}")]);
    }
    Ok(found)
}
