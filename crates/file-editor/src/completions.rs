//! `file-editor completions`: completion scripts of shells, and the hidden command that they run for candidates.
//!
//! The crate `clap_complete` is too large for what is used of it, and would not complete files of the folder and keys of
//! tools.

mod candidates;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};

use crate::call;

/// Print completions for a shell
///
/// For the current bash session:
///
///     source <(file-editor completions bash)
///
/// Permanently, written to the file that the shell reads:
///
///     bash        ~/.local/share/bash-completion/completions/file-editor
///     zsh         a file `_file-editor` in a folder of $fpath
///     fish        ~/.config/fish/completions/file-editor.fish
///     powershell  a file that $PROFILE runs
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Fish,
    Powershell,
    Zsh,
}

/// Print the possible next words of a command line
///
/// Each line has a word, a tab and its meaning. A line without a word asks the shell for paths: after its tab comes
/// `files` or `folders`, and after another tab the part of the word before the path.
#[derive(Debug, Args)]
pub struct CompletionRequest {
    /// The beginning of the word. A flag, since PowerShell drops an empty word.
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    word: OsString,

    /// The words before it, without the program
    #[arg(last = true)]
    before: Vec<OsString>,
}

/// Prints the completion script of a shell, which runs this program for the words.
pub fn print_script(arguments: &Arguments) -> ExitCode {
    let script = match arguments.shell {
        Shell::Bash => include_str!("completions/shells/bash.sh"),
        Shell::Fish => include_str!("completions/shells/fish.fish"),
        Shell::Powershell => include_str!("completions/shells/powershell.ps1"),
        Shell::Zsh => include_str!("completions/shells/zsh.sh"),
    };
    call::write_stdout(script)
}

/// Prints the words that may come next, for a completion script.
pub fn print_candidates(definition: &Command, request: &CompletionRequest) -> ExitCode {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let before: Vec<String> = request.before.iter().map(text).collect();
    call::write_stdout(&candidates::list(definition, &before, &text(&request.word)))
}
