//! What is printed about the command line: help, the manual page, and what shells are offered.

use crate::harness::{Folder, binary, run, stderr, stdout};

fn printed(words: &[&str]) -> String {
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{words:?}");
    stdout(&output)
}

/// The subcommands that the help tells.
fn subcommands() -> Vec<String> {
    let help = printed(&["--help"]);
    let (_, listed) = help.split_once("\nCommands:\n").unwrap();
    let lines = listed.lines().take_while(|line| line.starts_with("  "));
    let names: Vec<String> =
        lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    assert!(names.contains(&"call".to_owned()) && names.len() >= 5, "{names:?}");
    names
}

/// The long flags that the help of a command tells.
fn flags(words: &[&str]) -> Vec<String> {
    let help = printed(&[words, &["--help"]].concat());
    let is_flag = |line: &&str| line.trim_start().starts_with('-');
    let names = help.lines().filter(is_flag).filter_map(|line| {
        let (_, rest) = line.split_once("--")?;
        let end = rest.find(|c: char| c != '-' && !c.is_ascii_lowercase());
        Some(format!("--{}", &rest[..end.unwrap_or(rest.len())]))
    });
    names.collect()
}

#[test]
fn the_help_of_a_tool_tells_all_that_it_takes() {
    let list = printed(&["call", "--list"]);
    assert_eq!(list.lines().count(), tools::agent_tools().count());
    for entry in tools::agent_tools() {
        assert!(list.contains(&format!("\n{} ", entry.name)) || list.starts_with(entry.name));
        let help = printed(&["call", entry.name, "--help"]);
        let schema = entry.input_schema();
        let first = entry.description().split_whitespace().next().unwrap();
        assert!(help.starts_with(first), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        for (key, property) in schema["properties"].as_object().unwrap() {
            assert!(help.contains(&format!("\n  {key}=")), "{key}: {help}");
            let described = property["description"].as_str().unwrap();
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words(&help).contains(&words(described)), "{key}: {help}");
        }
    }
    let help = printed(&["call", "--help"]);
    assert!(help.contains("Usage: file-editor call [OPTIONS] [TOOL] [KEY=VALUE]..."), "{help}");
    assert!(help.contains("Exit status"), "{help}");
}

#[test]
fn the_manual_page_names_everything() {
    let page = printed(&["man"]).replace("\\-", "-");
    assert!(page.starts_with(".TH FILE-EDITOR 1 "), "{page}");
    for name in subcommands() {
        assert!(name == "help" || page.contains(&format!("file-editor {name}")), "{name}");
        let words = if name == "help" { vec![] } else { vec![name.as_str()] };
        let flags = flags(&words);
        assert!(!flags.is_empty(), "{name}");
        for flag in flags {
            assert!(page.contains(&flag), "{flag} of {name} is not in the manual page");
        }
    }
    assert!(!page.contains("file-editor complete "), "that is for shells");
    for entry in tools::agent_tools() {
        let (_, about) = page.split_once(&format!(".SS \"{}\"\n", entry.name)).unwrap();
        for key in entry.input_schema()["properties"].as_object().unwrap().keys() {
            assert!(about.contains(&format!("\n{key}=")), "{key} of {}", entry.name);
        }
    }
    for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
        let known = [".TH ", ".SH ", ".SS ", ".TP", ".IP", ".PP", ".nf", ".fi", ".br"];
        assert!(known.iter().any(|request| line.starts_with(request)), "{line}");
    }
}

/// A folder with files, where a line is typed.
fn scene() -> Folder {
    let folder = Folder::new();
    for name in ["todo.txt", "tide.md", ".hidden", "two words"] {
        folder.write(name, "");
    }
    std::fs::create_dir(folder.file("below")).unwrap();
    folder.write("below/deep.txt", "");
    folder
}

/// What is offered for the last of these words, without what it means.
fn offered(folder: &Folder, words: &[&str]) -> Vec<String> {
    let (word, before) = words.split_last().unwrap();
    let mut command = binary();
    command.args(["complete", &format!("--word={word}"), "--"]).args(before);
    let output = command.current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{words:?}");
    let told = stdout(&output);
    let is_request = |line: &str| line.starts_with('\t');
    let word = |line: &str| line.split('\t').next().unwrap().to_owned();
    told.lines().map(|line| if is_request(line) { line.to_owned() } else { word(line) }).collect()
}

#[test]
fn everything_that_can_be_said_is_offered() {
    let folder = scene();
    let names = subcommands();
    let all = offered(&folder, &[""]);
    for name in &names {
        assert!(all.contains(name), "{name}: {all:?}");
        let words = if name == "help" { vec![] } else { vec![name.as_str()] };
        let offered = offered(&folder, &[&words[..], &["--"]].concat());
        let offered: Vec<_> = offered.iter().map(|flag| flag.trim_end_matches('=')).collect();
        let mut flags = flags(&words);
        flags.sort();
        flags.dedup();
        let mut sorted = offered.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, flags, "of {name}");
    }
    assert!(!all.contains(&"complete".to_owned()), "{all:?}");
    assert!(all.contains(&"--dir=".to_owned()), "who serves begins with a flag: {all:?}");
    for entry in tools::agent_tools() {
        let keys = offered(&folder, &["call", entry.name, ""]);
        let schema = entry.input_schema();
        let known = schema["properties"].as_object().unwrap().keys();
        let known: Vec<_> = known.map(|key| format!("{key}=")).collect();
        // Who takes nothing is left with flags.
        assert!(keys == known || known.is_empty() && keys[0].starts_with("--"), "{keys:?}");
        for (key, property) in schema["properties"].as_object().unwrap() {
            let is_choice = |property: &serde_json::Value| {
                property["enum"].is_array() || property["type"] == "boolean"
            };
            if is_choice(property) || is_choice(&property["items"]) {
                let values = offered(&folder, &["call", entry.name, &format!("{key}=")]);
                assert!(!values.is_empty(), "{key} of {}", entry.name);
            }
        }
    }
}

#[test]
fn what_fits_is_offered() {
    let folder = scene();
    let elsewhere = Folder::new();
    elsewhere.write("other.txt", "");
    let dir = format!("--dir={}", elsewhere.path().display());
    let rows: [(&[&str], &[&str]); 41] = [
        (&["ca"], &["call"]),
        (&["x"], &[]),
        // Whoever has named a flag of the server serves.
        (&["--dir=.", "ca"], &[]),
        (&["--tr"], &["--transport="]),
        (&["--transport="], &["--transport=http", "--transport=stdio"]),
        (&["--transport=s"], &["--transport=stdio"]),
        (&["--transport", "s"], &["stdio"]),
        (&["--transport", "stdio", "--tran"], &[]),
        (&["--read-o"], &["--read-only"]),
        (&["--read-only="], &[]),
        (&["--no-such="], &[]),
        (&["--dir=/us"], &["\tfolders\t--dir="]),
        (&["--dir", "/us"], &["\tfolders\t"]),
        (&["setup", "--dir="], &["\tfolders\t--dir="]),
        (&["doctor", "--dir="], &["\tfolders\t--dir="]),
        (&["--tools=t"], &["--tools=text"]),
        (&["--tools=text,"], &["--tools=text,flat", "--tools=text,code", "--tools=text,all"]),
        (&["setup", "--tools=flat,c"], &["--tools=flat,code"]),
        (&["setup", "c"], &["claude-code", "claude-desktop", "cursor", "codex"]),
        (&["setup", "cursor", "c"], &["claude-code", "claude-desktop", "codex"]),
        (&["setup", "--dry"], &["--dry-run"]),
        (&["completions", ""], &["bash", "fish", "powershell", "zsh"]),
        (&["completions", "bash", "f"], &[]),
        (&["help", "se"], &["setup"]),
        (&["call", "read_t"], &["read_text_file"]),
        (&["call", "ai_c"], &["ai_code_editing.edit_file"]),
        (&["call", "--durability", "f"], &["full"]),
        (&["call", "--durability=f"], &["--durability=full"]),
        (&["call", "--json", "edit_file", "name=a", "app"], &["append="]),
        (&["call", "read_file", "name=a", "na"], &[]),
        (&["call", "read_file", "line_numbers="], &["line_numbers=true", "line_numbers=false"]),
        (&["call", "search_files", "case=se"], &["case=sensitive"]),
        (&["call", "ai_get_code_context", "kinds=tra"], &["kinds=trait"]),
        (&["call", "ai_get_code_context", "symbols=a", "sy"], &["symbols="]),
        (&["call", "ai_code_editing.edit_file", "edit_type=d"], &["edit_type=delete"]),
        (&["call", "read_file", "name=t"], &["name=tide.md", "name=todo.txt"]),
        (&["call", "read_file", "name="], &["name=tide.md", "name=todo.txt"]),
        (&["call", "read_file", "name=."], &["name=.hidden"]),
        (&["call", &dir, "read_file", "name="], &["name=other.txt"]),
        (&["call", "read_text_file", "path=/x"], &["\tfiles\tpath="]),
        (&["call", "search_files", "path=b"], &["\tfolders\tpath="]),
    ];
    for (words, expected) in rows {
        assert_eq!(offered(&folder, words), expected, "{words:?}");
    }
    // From another folder a shell would complete what is not there.
    assert!(offered(&folder, &["call", &dir, "search_files", "path=b"]).is_empty());
    let described = printed(&["complete", "--word=--dura"]);
    assert_eq!(
        described,
        "--durability=\tWhat an edit waits for: `none`, `data`, `full` [default: data]\n"
    );
}

#[test]
fn whatever_is_typed_is_answered() {
    let folder = scene();
    for words in [
        &["="][..],
        &["--"],
        &["--=", ""],
        &["--", "--", ""],
        &["-"],
        &["call", "="],
        &["call", "read_file", "=", "=x"],
        &["call", "-", "", ""],
        &["\u{fc}=\t\n"],
        &["call", "--dir=/no/such", "read_file", "name="],
        &["complete", "--word", "--", ""],
    ] {
        offered(&folder, words);
    }
}

#[test]
fn each_shell_has_its_script() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = printed(&["completions", shell]);
        assert!(script.contains("--word="), "{shell}: {script}");
    }
    let output = run(&["completions", "tcsh"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("bash, fish, powershell, zsh"), "{output:?}");
}

/// Lines as they are typed at a bash, each ended with a tab, and what it then runs.
#[test]
#[cfg(target_os = "linux")]
fn bash_completes_what_is_typed() {
    use std::process::Command;
    if Command::new("bash").arg("--version").output().is_err() {
        return crate::harness::not_checked("completions of bash", "bash");
    }
    let folder = scene();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_file-editor"));
    let rows = [
        ("file-editor ca", "<call>"),
        ("file-editor call read_t", "<call><read_text_file>"),
        ("file-editor --transp", "<--transport=>"),
        ("file-editor --transport=st", "<--transport=stdio>"),
        ("file-editor --transport st", "<--transport><stdio>"),
        ("file-editor --tools=text,co", "<--tools=text,code>"),
        ("file-editor --dir=be", "<--dir=below/>"),
        ("file-editor --dir=", "<--dir=below/>"),
        ("file-editor call edit_file verify=", "<call><edit_file><verify=syntax>"),
        ("file-editor --dir be", "<--dir><below/>"),
        ("file-editor setup curs", "<setup><cursor>"),
        ("file-editor call edit_file name=a app", "<call><edit_file><name=a><append=>"),
        ("file-editor call read_file name=to", "<call><read_file><name=todo.txt>"),
        ("file-editor call search_files case=se", "<call><search_files><case=sensitive>"),
        (
            "file-editor call read_text_file path=below/d",
            "<call><read_text_file><path=below/deep.txt>",
        ),
        ("file-editor call read_text_file path=tw", "<call><read_text_file><path=two words>"),
        ("true; file-editor --log=deb", "<--log=debug>"),
    ];
    let script = printed(&["completions", "bash"]);
    // In place of the program, what it would be given.
    let shown = "file-editor() { printf '<%s>' \"$@\"; echo; }";
    for breaks in ["", "COMP_WORDBREAKS=${COMP_WORDBREAKS//=/}"] {
        folder.write(
            "rc",
            format!("PS1=\nbind 'set bell-style none'\n{breaks}\n{script}\n{shown}\n"),
        );
        let typed: Vec<String> = rows.iter().map(|(line, _)| format!("{line}\t\n")).collect();
        folder.write("typed", typed.concat() + "exit\n");
        let mut command = Command::new("script");
        command.args([
            "--quiet",
            "--return",
            "--command",
            "bash --noprofile --rcfile rc -i",
            "/dev/null",
        ]);
        let path =
            format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        command
            .env("PATH", path)
            .env("TERM", "dumb")
            .env_remove("INPUTRC")
            .current_dir(folder.path());
        command.stdin(std::fs::File::open(folder.file("typed")).unwrap());
        let Ok(output) = command.output() else {
            return crate::harness::not_checked("completions of bash", "`script`");
        };
        let seen = stdout(&output).replace('\r', "");
        let ran: Vec<&str> = seen.lines().filter(|line| line.starts_with('<')).collect();
        let expected: Vec<&str> = rows.iter().map(|(_, ran)| *ran).collect();
        assert_eq!(ran, expected, "{breaks}: {seen}");
    }
}
