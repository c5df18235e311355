//! `file-editor setup`: adds this server to the configurations of clients.
//!
//! `client` lists the clients and the paths of their files. `json` and `toml` change only the server's entry in a text
//! (each has a `scan` of its own, on top of `scanner`). `configuration` applies that to a file.

pub mod client;
pub mod configuration;
pub mod entry;
mod json;
mod scanner;
mod toml;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use files::{Access, machine};
use server::terminal::{self, Stream};
use text::{printable, printable_line};

use crate::flags;
use client::{CLIENTS, Client};
use configuration::{Action, Configuration, OtherSettingsPolicy, Project, WantedEntry};
use entry::{Entry, FoundEntry};

/// Add this server to the configuration of MCP clients
///
/// Only the `file-editor` entry is added, changed or removed; the rest of the file is left unchanged, byte for byte. A
/// copy of the file without the entry is kept beside it, named `*.before-file-editor`. If the entry was changed by hand,
/// a second copy is kept, named `*.before-last-change`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Arguments {
    /// Clients to configure: claude-code, claude-desktop, cursor, vscode, codex, zed, gemini [default: all that are found]
    #[arg(value_name = "CLIENT")]
    clients: Vec<String>,

    /// Folder to serve [default: the current one]
    #[arg(long, value_name = "PATH")]
    dir: Option<OsString>,

    /// Toolsets to serve, a comma list of `flat`, `text`, `code`, `all` [default: text,code]
    #[arg(long, value_name = "LIST")]
    tools: Option<String>,

    /// Write the client's configuration file in the folder, not that of the user
    ///
    /// Links that lead out of the folder are not followed.
    #[arg(long)]
    project: bool,

    /// Keep other flags, variables and settings of the project's entry [default: show and remove them]
    ///
    /// Anybody who can write to the project may have added them. They can make the client start another program, or
    /// disable the sandbox. In the configuration of the user they are always kept.
    #[arg(long, requires = "project", conflicts_with_all = ["remove", "list"])]
    keep: bool,

    /// Remove the entry
    #[arg(long)]
    remove: bool,

    /// Show the change as a diff, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// List the clients, their configuration files and the folders they serve
    #[arg(long, conflicts_with_all = ["remove", "dry_run"])]
    list: bool,
}

pub fn run(arguments: &Arguments) -> ExitCode {
    let outcome = if arguments.list { list(arguments) } else { configure(arguments) };
    match outcome {
        Ok((code, Ok(()))) => code,
        // The reader closed the pipe, since it has read enough.
        Ok((code, Err(error))) if error.kind() == io::ErrorKind::BrokenPipe => code,
        Ok((_, Err(error))) => {
            print_error(&format!("cannot write to stdout: {error}"));
            ExitCode::FAILURE
        }
        Err(errors) => {
            for error in errors {
                print_error(&error);
            }
            terminal::write_message("\nFor more information, try `file-editor setup --help`.");
            ExitCode::FAILURE
        }
    }
}

/// The exit status and the result of writing the output; or the errors because of which nothing was done.
type CommandResult = Result<(ExitCode, io::Result<()>), Vec<String>>;

/// Changes the configuration of each chosen client. If one fails, the others are still changed.
fn configure(arguments: &Arguments) -> CommandResult {
    let wanted = if arguments.remove {
        WantedEntry::Absent
    } else {
        WantedEntry::Present(entry(arguments).map_err(|error| vec![error])?)
    };
    let project = project(arguments)?;
    let chosen = if arguments.clients.is_empty() {
        detected(project.as_ref())?
    } else {
        named(&arguments.clients, project.as_ref())?
    };
    let (mut changed, mut code, mut written) = (0, ExitCode::SUCCESS, Ok(()));
    for configuration in &chosen {
        let name = configuration.client.name;
        let outcome = if arguments.dry_run {
            configuration.preview(&wanted)
        } else {
            configuration.save(&wanted).map(|saved| {
                changed += usize::from(matches!(saved.action, Action::Add | Action::Change));
                saved.describe(name)
            })
        };
        match outcome {
            Ok(text) => written = written.and(print(&text)),
            Err(error) => {
                print_error(&format!("{name}: {error}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    written = written.and(match changed {
        0 => Ok(()),
        1 => print("\nRestart the client to load the change.\n"),
        _ => print("\nRestart the clients to load the change.\n"),
    });
    Ok((code, written))
}

fn list(arguments: &Arguments) -> CommandResult {
    let project = project(arguments)?;
    let listed = if arguments.clients.is_empty() {
        all(project.as_ref())
    } else {
        named(&arguments.clients, project.as_ref())?
    };
    let mut written = Ok(());
    for configuration in &listed {
        let Configuration { client, path, .. } = configuration;
        let state = if project.is_none() && !client.is_installed(path) {
            "not found here".into()
        } else {
            match configuration.find_entry() {
                Ok(None) => "not configured (the file does not exist)".into(),
                Ok(Some(FoundEntry::Missing)) => "not configured".into(),
                Ok(Some(FoundEntry::OtherForm)) => {
                    "has a `file-editor` entry in a form that `setup` does not write".into()
                }
                Ok(Some(FoundEntry::Entry(entry))) => {
                    let settings = configuration.other_settings();
                    let settings = if settings.is_empty() {
                        String::new()
                    } else {
                        format!("; also set: {}", settings.join(", "))
                    };
                    let served = match entry.folder() {
                        Some(folder) => configuration.served_folder(&entry, folder),
                        None => "names no folder to serve".into(),
                    };
                    served + &settings
                }
                Err(error) => error,
            }
        };
        // One line each, whatever characters the texts have.
        let path = path.display().to_string();
        let [path, state] = [path, state].map(|it| printable_line(&it).into_owned());
        written = written.and(print(&format!("{:<15} {path}\n{:<15} {state}\n", client.name, "")));
    }
    Ok((ExitCode::SUCCESS, written))
}

fn print(text: &str) -> io::Result<()> {
    terminal::write(Stream::Stdout, text)
}

/// Writes an error. Names and contents of files may come from others, so control characters are escaped.
fn print_error(error: &str) {
    terminal::write_message(&printable(&format!("error: {error}")));
}

/// Returns the folder to serve.
fn folder(arguments: &Arguments) -> Result<PathBuf, String> {
    let named = arguments.dir.as_deref().unwrap_or(OsStr::new("."));
    // The server itself checks whether it is writable.
    flags::open_folder(Some(named), Access::ReadOnly).map(|root| root.path().to_path_buf())
}

/// Returns the folder whose own configuration is meant; `None` for that of the user.
fn project(arguments: &Arguments) -> Result<Option<Project>, Vec<String>> {
    let other_settings =
        if arguments.keep { OtherSettingsPolicy::Keep } else { OtherSettingsPolicy::Remove };
    let project = arguments.project.then(|| folder(arguments)).transpose();
    let project = project.map_err(|error| vec![error])?;
    Ok(project.map(|folder| Project { folder, other_settings }))
}

/// Returns the entry that starts this server.
fn entry(arguments: &Arguments) -> Result<Entry, String> {
    let folder = folder(arguments)?;
    let tools = arguments.tools.as_deref().unwrap_or("text,code");
    flags::parse_toolsets(Some(tools))?;
    let text = |path: &Path| {
        let error = || {
            format!(
                "the path is not UTF-8, so a configuration cannot contain it: {}",
                path.display()
            )
        };
        path.to_str().map(String::from).ok_or_else(error)
    };
    let command = env::current_exe()
        .map_err(|error| format!("cannot find the path of this program: {error}"))?;
    Ok(Entry {
        command: text(&command)?,
        args: vec![
            format!("--dir={}", text(&folder)?),
            "--transport=stdio".into(),
            format!("--tools={tools}"),
        ],
    })
}

fn configuration(client: &'static Client, project: Option<&Project>) -> Option<Configuration> {
    match project {
        Some(project) => Configuration::of_project(client, project),
        None => Configuration::of_user(client),
    }
}

/// Returns the configuration of every client that has or could have one there.
fn all(project: Option<&Project>) -> Vec<Configuration> {
    CLIENTS.iter().filter_map(|client| configuration(client, project)).collect()
}

fn named(names: &[String], project: Option<&Project>) -> Result<Vec<Configuration>, Vec<String>> {
    let (mut chosen, mut errors) = (Vec::new(), Vec::new());
    for name in names {
        let Some(client) = Client::named(name) else {
            let names = client_names(&mut CLIENTS.iter());
            errors.push(format!("unknown client `{name}`; known clients: {names}"));
            continue;
        };
        match configuration(client, project) {
            Some(configuration) => chosen.push(configuration),
            None if project.is_some() => {
                errors.push(format!("{name}: {} does not support --project", client.title));
            }
            None => errors.push(format!("{name}: no home folder: set HOME")),
        }
    }
    if errors.is_empty() { Ok(chosen) } else { Err(errors) }
}

/// Returns the configurations of all clients that are found, for the user or in the folder.
fn detected(project: Option<&Project>) -> Result<Vec<Configuration>, Vec<String>> {
    let mut found = all(project);
    let names = client_names(&mut found.iter().map(|configuration| configuration.client));
    found.retain(|configuration| {
        let Configuration { client, path, .. } = configuration;
        machine::is_file(path)
            // Kept in the list, so that it is refused by name rather than skipped.
            || configuration.link_outside_project().is_some()
            || client.user_file().is_some_and(|file| client.is_installed(&file))
    });
    if !found.is_empty() {
        return Ok(found);
    }
    Err(vec![if names.is_empty() {
        "no home folder: set HOME".into()
    } else {
        format!("no client found; name one of: {names}")
    }])
}

/// Joins the names of clients, for messages.
fn client_names(clients: &mut dyn Iterator<Item = &'static Client>) -> String {
    clients.map(|client| client.name).collect::<Vec<_>>().join(", ")
}
