//! `file-editor completions` and `file-editor man`: shell completions and the manual page, from the definition of the
//! command line.

mod offer;
mod page;

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
pub struct Question {
    /// The beginning of the word. A flag, since PowerShell drops an empty word.
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    word: OsString,

    /// The words before it, without the program
    #[arg(last = true)]
    before: Vec<OsString>,
}

/// Prints the completion script of a shell, which runs this program for the words.
pub fn complete(arguments: &Arguments) -> ExitCode {
    let script = match arguments.shell {
        Shell::Bash => include_str!("manual/shells/bash.sh"),
        Shell::Fish => include_str!("manual/shells/fish.fish"),
        Shell::Powershell => include_str!("manual/shells/powershell.ps1"),
        Shell::Zsh => include_str!("manual/shells/zsh.sh"),
    };
    call::write(script)
}

/// Answers a completion script with the words that may come next.
pub fn offer(definition: &Command, question: &Question) -> ExitCode {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let before: Vec<String> = question.before.iter().map(text).collect();
    let offer = offer::after(definition, &before, &text(&question.word));
    call::write(&offer)
}

/// Prints the manual page.
pub fn print(definition: &Command) -> ExitCode {
    call::write(&page::of(definition))
}
