//! The tools of a session: its folders, the stores of their files, and the loopback server, which serves them to
//! requests with the session's token.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use files::{Access, DiskOptions, DiskStore, Durability, Root, Store};
use server::{Calls, Confirm, Level, Log, LoopbackServer, Options, Structured, ToolErrors};
use tokio::runtime::Handle;
use tools::Limits;

use crate::connection::ConnectedFiles;
use crate::editor::EditorStore;
use crate::session::Session;

/// Limit of the bytes of a file.
const FILE_BYTES_MAX: u64 = 10 << 20;
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// MCP `instructions`, which Codex passes on to the model.
const INSTRUCTIONS: &str = "The text files that the user has open in the editor, with all that is not saved yet, and \
every other text file of the project; by absolute path, lines from 1. Read and edit text files with these tools: the shell \
and patches see only what is saved. `read_text_file` reads, `multi_edit_text_file` replaces exact strings, all edits or \
none, `write_text_file` creates a file or replaces all of it. After an error nothing was written, and its hint says what \
would work.";

/// Store of files: the editor's, if it can read and write them, else the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileSource {
    Editor,
    #[default]
    Disk,
}

/// The tools of a session, removed when this is dropped.
pub struct SessionTools {
    loopback: Arc<LoopbackServer>,
    pub token: String,
}

impl Drop for SessionTools {
    fn drop(&mut self) {
        self.loopback.dismiss(&self.token);
    }
}

/// Opens the folders of a session: `cwd` and the additional ones. Each must exist. A relative one is taken from the
/// folder in which this program was started.
pub fn open_folders(cwd: &Path, more: &[PathBuf]) -> Result<Vec<Arc<Root>>, String> {
    let folders = std::iter::once(cwd).chain(more.iter().map(PathBuf::as_path));
    let open = |folder: &Path| std::path::absolute(folder).and_then(|folder| Root::open(&folder));
    let open = |folder: &Path| {
        open(folder)
            .map_err(|error| format!("cannot work in {}: {error}", folder.display()))
            .map(Arc::new)
    };
    folders.map(open).collect()
}

impl SessionTools {
    pub fn open(
        loopback: &Arc<LoopbackServer>,
        session: &Arc<Session>,
        roots: Vec<Arc<Root>>,
        file_source: FileSource,
    ) -> Self {
        let disk = DiskOptions { max_size: FILE_BYTES_MAX, durability: Durability::Data };
        let store = |root: &Arc<Root>| -> Box<dyn Store> {
            let disk = DiskStore::open(Arc::clone(root), disk);
            match file_source {
                FileSource::Disk => Box::new(disk),
                FileSource::Editor => {
                    let editor = ConnectedFiles {
                        connection: Arc::clone(&session.connection),
                        session: Arc::clone(&session.id),
                        runtime: Handle::current(),
                    };
                    let root = Arc::clone(root);
                    let periods = Arc::clone(&session.command_periods);
                    let paths_in_use = session.connection.paths_in_use.clone();
                    Box::new(EditorStore::new(
                        root,
                        editor,
                        disk,
                        FILE_BYTES_MAX,
                        periods,
                        paths_in_use,
                    ))
                }
            }
        };
        let mut folders = roots.into_iter().map(|root| (Arc::clone(&root), store(&root)));
        let (root, first) = folders.next().expect("a session has a folder");
        let observer: Arc<Session> = Arc::clone(session);
        let options = Options {
            tools: tools::TEXT.iter().collect(),
            access: Access::ReadWrite,
            tool_errors: ToolErrors::Result,
            // Codex would show the model only the structured content.
            structured: Structured::Off,
            confirm: Confirm::Never,
            observer: Some(observer),
            model: None,
            instructions: Some(format!(
                "{INSTRUCTIONS} The folders are {}.",
                session.folders.join(", ")
            )),
        };
        let limits = Limits::new(FILE_BYTES_MAX, CALL_TIMEOUT);
        let calls = Calls::with_more(
            root,
            first,
            folders.collect(),
            limits,
            options,
            Log::new(Level::Warn),
        );
        Self { loopback: Arc::clone(loopback), token: loopback.admit(calls) }
    }
}
