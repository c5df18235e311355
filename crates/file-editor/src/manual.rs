//! `file-editor completions` and `file-editor man`: the command line as it is defined, for shells and for `man`.

mod page;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::{call, cli};

/// Print completions for a shell
///
/// In bash, until it ends:
///
///     source <(file-editor completions bash)
///
/// For good, written to where the shell looks for them:
///
///     bash  ~/.local/share/bash-completion/completions/file-editor
///     zsh   a file `_file-editor` in a folder of $fpath
///     fish  ~/.config/fish/completions/file-editor.fish
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// The shell to complete for
    #[arg(value_enum)]
    shell: Shell,
}

const NAME: &str = "file-editor";

pub fn complete(arguments: &Arguments) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut cli::definition(), NAME, &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = match arguments.shell {
        // In a name with a hyphen the generator spells that in two ways, and finds no subcommand.
        Shell::Bash => script.replace("file__subcmd__editor", "file__editor") + &keys_for_bash(),
        Shell::Fish => script.into_owned() + &keys_for_fish(),
        // Here keys would have to be told inside of what is generated.
        _ => script.into_owned(),
    };
    call::write(script.as_bytes())
}

pub fn print() -> ExitCode {
    call::write(page::of(&cli::definition()).as_bytes())
}

/// Every tool by each of its names, with its keys as they are typed.
fn tools_and_keys() -> impl Iterator<Item = (&'static str, String)> {
    call::tools().flat_map(|entry| {
        let schema = entry.input_schema();
        let keys: Vec<String> =
            call::properties(&schema).map(|(key, _)| format!("{key}=")).collect();
        let keys = keys.join(" ");
        [Some(entry.name), entry.alias].into_iter().flatten().map(move |name| (name, keys.clone()))
    })
}

/// After a tool's name its keys are all that fits, but for flags.
fn keys_for_bash() -> String {
    let cases = tools_and_keys().fold(String::new(), |mut cases, (name, keys)| {
        let _ = writeln!(cases, "            {name}) keys=\"{keys}\" ;;");
        cases
    });
    format!(
        r#"
_file__editor__with_keys() {{
    local word keys="" current="${{COMP_WORDS[COMP_CWORD]}}"
    _file__editor "$@"
    [[ ${{COMP_WORDS[1]}} == call && $COMP_CWORD -gt 2 && $current != -* ]] || return 0
    for word in "${{COMP_WORDS[@]:2:COMP_CWORD-2}}"; do
        case "$word" in
{cases}        esac
    done
    if [[ -n $keys ]]; then
        COMPREPLY=( $(compgen -W "$keys" -- "$current") )
        compopt -o nospace 2>/dev/null
    fi
    return 0
}}
complete -F _file__editor__with_keys -o bashdefault -o default file-editor
"#
    )
}

fn keys_for_fish() -> String {
    tools_and_keys().fold(String::new(), |mut lines, (name, keys)| {
        let seen = "__fish_seen_subcommand_from";
        let _ = writeln!(
            lines,
            "complete -c file-editor -n \"{seen} call; and {seen} {name}\" -f -a \"{keys}\""
        );
        lines
    })
}
