//! The supported clients, and where each keeps its configuration.

use std::env;
use std::path::{Path, PathBuf};

use files::machine;

use super::entry::{Entry, Fault, Field};
use super::json::{self, Found, Shape};
use super::toml;

pub struct Client {
    /// Name on the command line.
    pub name: &'static str,
    pub title: &'static str,
    format: Format,
    /// Finds the path of the user's file.
    file: fn(&Homes) -> Option<PathBuf>,
    /// Path of the project's file, relative to its folder.
    in_folder: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Format {
    Json(Shape),
    Toml,
}

const fn json(key: &'static str) -> Shape {
    Shape { key, is_typed: false, has_variables: false }
}

const CLAUDE_FOLDER: &str = "CLAUDE_CONFIG_DIR";

pub static CLIENTS: [Client; 7] = [
    Client {
        name: "claude-code",
        title: "Claude Code",
        format: Format::Json(Shape { is_typed: true, ..json("mcpServers") }),
        file: |homes| {
            Some(absolute(CLAUDE_FOLDER).or_else(|| homes.user.clone())?.join(".claude.json"))
        },
        in_folder: Some(".mcp.json"),
    },
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        format: Format::Json(json("mcpServers")),
        file: |homes| homes.application("Claude/claude_desktop_config.json"),
        in_folder: None,
    },
    Client {
        name: "cursor",
        title: "Cursor",
        format: Format::Json(json("mcpServers")),
        file: |homes| homes.below_user(".cursor/mcp.json"),
        in_folder: Some(".cursor/mcp.json"),
    },
    Client {
        name: "vscode",
        title: "VS Code",
        format: Format::Json(Shape { is_typed: true, ..json("servers") }),
        file: |homes| homes.application("Code/User/mcp.json"),
        in_folder: Some(".vscode/mcp.json"),
    },
    Client {
        name: "codex",
        title: "Codex CLI",
        format: Format::Toml,
        file: |homes| match absolute("CODEX_HOME") {
            Some(home) => Some(home.join("config.toml")),
            None => homes.below_user(".codex/config.toml"),
        },
        in_folder: Some(".codex/config.toml"),
    },
    Client {
        name: "zed",
        title: "Zed",
        format: Format::Json(Shape { has_variables: true, ..json("context_servers") }),
        file: Homes::zed,
        in_folder: None,
    },
    Client {
        name: "gemini",
        title: "Gemini CLI",
        format: Format::Json(json("mcpServers")),
        file: |homes| homes.below_user(".gemini/settings.json"),
        in_folder: Some(".gemini/settings.json"),
    },
];

impl Client {
    pub fn named(name: &str) -> Option<&'static Client> {
        CLIENTS.iter().find(|client| client.name.eq_ignore_ascii_case(name))
    }

    /// Returns the path of the user's configuration; `None` if there is no home folder.
    pub fn of_user(&self) -> Option<PathBuf> {
        (self.file)(&Homes::find())
    }

    /// Returns the path of the folder's configuration; `None` if the client has none.
    pub fn of_folder(&self, folder: &Path) -> Option<PathBuf> {
        self.in_folder.map(|name| folder.join(name))
    }

    /// True if the client has been used here: its file exists, or a folder of its own.
    pub fn is_there(&self, file: &Path) -> bool {
        let folder = match self.name {
            // The file is in no folder of its own, unless the variable names one.
            "claude-code" if absolute(CLAUDE_FOLDER).is_none() => file.with_file_name(".claude"),
            // The client makes the folder with its first file; before that only the one above exists.
            "vscode" => file.ancestors().nth(2).map(PathBuf::from).unwrap_or_default(),
            _ => file.parent().map(PathBuf::from).unwrap_or_default(),
        };
        machine::is_file(file) || machine::is_folder(&folder)
    }

    pub fn find(&self, text: &str) -> Result<Found, Fault> {
        match self.format {
            Format::Json(shape) => json::find(text, shape),
            Format::Toml => toml::find(text),
        }
    }

    /// True if the server's entry is there and disabled.
    pub fn is_off(&self, text: &str) -> bool {
        match self.format {
            Format::Json(shape) => json::is_off(text, shape),
            Format::Toml => toml::is_off(text),
        }
    }

    /// Returns an empty configuration.
    pub fn nothing(&self) -> &'static str {
        match self.format {
            Format::Json(_) => "{}\n",
            Format::Toml => "",
        }
    }

    pub fn put(&self, text: &str, entry: &Entry) -> Result<String, Fault> {
        match self.format {
            Format::Json(shape) => json::put(text, shape, entry),
            Format::Toml => toml::put(text, entry),
        }
    }

    /// Returns the fields of the server's entry that `setup` would not write.
    pub fn other_fields(&self, text: &str) -> Result<Vec<Field>, Fault> {
        match self.format {
            Format::Json(shape) => json::other_fields(text, shape),
            Format::Toml => toml::other_fields(text),
        }
    }

    /// Replaces the server's entry, which must be there, by this one and nothing else.
    pub fn replace(&self, text: &str, entry: &Entry) -> Result<String, Fault> {
        match self.format {
            Format::Json(shape) => json::replace(text, shape, entry),
            Format::Toml => toml::replace(text, entry),
        }
    }

    pub fn take_out(&self, text: &str) -> Result<String, Fault> {
        match self.format {
            Format::Json(shape) => json::take_out(text, shape),
            Format::Toml => toml::take_out(text),
        }
    }

    /// Returns a whole configuration with this entry alone.
    pub fn whole(&self, entry: &Entry) -> String {
        let text = match self.format {
            Format::Json(shape) => json::whole(shape, entry, "\n"),
            Format::Toml => toml::whole(entry, "\n"),
        };
        text + "\n"
    }
}

/// Folders where programs keep the files of a user.
struct Homes {
    user: Option<PathBuf>,
}

impl Homes {
    fn find() -> Homes {
        // Only from variables: asking the system would make a static binary load libraries.
        Homes { user: absolute(if cfg!(windows) { "USERPROFILE" } else { "HOME" }) }
    }

    fn below_user(&self, path: &str) -> Option<PathBuf> {
        Some(self.user.as_ref()?.join(path))
    }

    /// Returns the path of the settings of a graphical application.
    fn application(&self, path: &str) -> Option<PathBuf> {
        let folder = if cfg!(windows) {
            absolute("APPDATA").or_else(|| self.below_user("AppData/Roaming"))
        } else if cfg!(target_os = "macos") {
            self.below_user("Library/Application Support")
        } else {
            self.settings()
        };
        Some(folder?.join(path))
    }

    fn settings(&self) -> Option<PathBuf> {
        absolute("XDG_CONFIG_HOME").or_else(|| self.below_user(".config"))
    }

    fn zed(&self) -> Option<PathBuf> {
        if cfg!(windows) {
            self.application("Zed/settings.json")
        } else if cfg!(target_os = "macos") {
            self.below_user(".config/zed/settings.json")
        } else {
            Some(self.settings()?.join("zed/settings.json"))
        }
    }
}

/// Returns the absolute path in a variable, if it has one.
fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
