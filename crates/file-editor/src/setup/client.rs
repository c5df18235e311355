//! The supported clients, and where each keeps its configuration.

use std::env;
use std::path::{Path, PathBuf};

use files::machine;

use super::entry::{Entry, Field, FoundEntry, ParseError};
use super::json::{self, JsonFormat};
use super::toml;

pub struct Client {
    /// Name on the command line.
    pub name: &'static str,
    pub title: &'static str,
    format: Format,
    /// Finds the path of the user's file.
    file: fn(&UserFolders) -> Option<PathBuf>,
    /// Path of the project's file, relative to its folder.
    in_project: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Format {
    Json(JsonFormat),
    Toml,
}

const fn json(key: &'static str) -> JsonFormat {
    JsonFormat { key, is_typed: false, has_env: false }
}

const CLAUDE_FOLDER: &str = "CLAUDE_CONFIG_DIR";

pub static CLIENTS: [Client; 7] = [
    Client {
        name: "claude-code",
        title: "Claude Code",
        format: Format::Json(JsonFormat { is_typed: true, ..json("mcpServers") }),
        file: |folders| {
            Some(
                absolute_path(CLAUDE_FOLDER).or_else(|| folders.user.clone())?.join(".claude.json"),
            )
        },
        in_project: Some(".mcp.json"),
    },
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        format: Format::Json(json("mcpServers")),
        file: |folders| folders.application_file("Claude/claude_desktop_config.json"),
        in_project: None,
    },
    Client {
        name: "cursor",
        title: "Cursor",
        format: Format::Json(json("mcpServers")),
        file: |folders| folders.in_home(".cursor/mcp.json"),
        in_project: Some(".cursor/mcp.json"),
    },
    Client {
        name: "vscode",
        title: "VS Code",
        format: Format::Json(JsonFormat { is_typed: true, ..json("servers") }),
        file: |folders| folders.application_file("Code/User/mcp.json"),
        in_project: Some(".vscode/mcp.json"),
    },
    Client {
        name: "codex",
        title: "Codex CLI",
        format: Format::Toml,
        file: |folders| match absolute_path("CODEX_HOME") {
            Some(home) => Some(home.join("config.toml")),
            None => folders.in_home(".codex/config.toml"),
        },
        in_project: Some(".codex/config.toml"),
    },
    Client {
        name: "zed",
        title: "Zed",
        format: Format::Json(JsonFormat { has_env: true, ..json("context_servers") }),
        file: UserFolders::zed,
        in_project: None,
    },
    Client {
        name: "gemini",
        title: "Gemini CLI",
        format: Format::Json(json("mcpServers")),
        file: |folders| folders.in_home(".gemini/settings.json"),
        in_project: Some(".gemini/settings.json"),
    },
];

impl Client {
    pub fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name.eq_ignore_ascii_case(name))
    }

    /// Returns the path of the user's configuration; `None` if there is no home folder.
    pub fn user_file(&self) -> Option<PathBuf> {
        (self.file)(&UserFolders::find())
    }

    /// Returns the path of the folder's configuration; `None` if the client has none.
    pub fn project_file(&self, folder: &Path) -> Option<PathBuf> {
        self.in_project.map(|name| folder.join(name))
    }

    /// True if the client has been used here: its file exists, or a folder of its own.
    pub fn is_installed(&self, file: &Path) -> bool {
        let folder = match self.name {
            // The file is in no folder of its own, unless the variable names one.
            "claude-code" if absolute_path(CLAUDE_FOLDER).is_none() => {
                file.with_file_name(".claude")
            }
            // The client makes the folder with its first file; before that only the one above exists.
            "vscode" => file.ancestors().nth(2).map(PathBuf::from).unwrap_or_default(),
            _ => file.parent().map(PathBuf::from).unwrap_or_default(),
        };
        machine::is_file(file) || machine::is_folder(&folder)
    }

    pub fn find(&self, text: &str) -> Result<FoundEntry, ParseError> {
        match self.format {
            Format::Json(format) => json::find(text, format),
            Format::Toml => toml::find(text),
        }
    }

    /// True if the server's entry is there and disabled.
    pub fn is_disabled(&self, text: &str) -> bool {
        match self.format {
            Format::Json(format) => json::is_disabled(text, format),
            Format::Toml => toml::is_disabled(text),
        }
    }

    /// Returns an empty configuration.
    pub fn empty_configuration(&self) -> &'static str {
        match self.format {
            Format::Json(_) => "{}\n",
            Format::Toml => "",
        }
    }

    pub fn put(&self, text: &str, entry: &Entry) -> Result<String, ParseError> {
        match self.format {
            Format::Json(format) => json::put(text, format, entry),
            Format::Toml => toml::put(text, entry),
        }
    }

    /// Returns the fields of the server's entry that `setup` would not write.
    pub fn other_fields(&self, text: &str) -> Result<Vec<Field>, ParseError> {
        match self.format {
            Format::Json(format) => json::other_fields(text, format),
            Format::Toml => toml::other_fields(text),
        }
    }

    /// Replaces the server's entry, which must be there, by this one and nothing else.
    pub fn replace(&self, text: &str, entry: &Entry) -> Result<String, ParseError> {
        match self.format {
            Format::Json(format) => json::replace(text, format, entry),
            Format::Toml => toml::replace(text, entry),
        }
    }

    pub fn remove(&self, text: &str) -> Result<String, ParseError> {
        match self.format {
            Format::Json(format) => json::remove(text, format),
            Format::Toml => toml::remove(text),
        }
    }

    /// Returns a whole configuration with this entry alone.
    pub fn whole(&self, entry: &Entry) -> String {
        let text = match self.format {
            Format::Json(format) => json::whole(format, entry, "\n"),
            Format::Toml => toml::whole(entry, "\n"),
        };
        text + "\n"
    }
}

/// Folders where programs keep the files of a user.
struct UserFolders {
    user: Option<PathBuf>,
}

impl UserFolders {
    fn find() -> Self {
        // Only from variables: asking the system would make a static binary load libraries.
        Self { user: absolute_path(if cfg!(windows) { "USERPROFILE" } else { "HOME" }) }
    }

    fn in_home(&self, path: &str) -> Option<PathBuf> {
        Some(self.user.as_ref()?.join(path))
    }

    /// Returns the path of the settings of a graphical application.
    fn application_file(&self, path: &str) -> Option<PathBuf> {
        let folder = if cfg!(windows) {
            absolute_path("APPDATA").or_else(|| self.in_home("AppData/Roaming"))
        } else if cfg!(target_os = "macos") {
            self.in_home("Library/Application Support")
        } else {
            self.settings()
        };
        Some(folder?.join(path))
    }

    fn settings(&self) -> Option<PathBuf> {
        absolute_path("XDG_CONFIG_HOME").or_else(|| self.in_home(".config"))
    }

    fn zed(&self) -> Option<PathBuf> {
        if cfg!(windows) {
            self.application_file("Zed/settings.json")
        } else if cfg!(target_os = "macos") {
            self.in_home(".config/zed/settings.json")
        } else {
            Some(self.settings()?.join("zed/settings.json"))
        }
    }
}

/// Returns the absolute path in a variable, if it has one.
fn absolute_path(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
