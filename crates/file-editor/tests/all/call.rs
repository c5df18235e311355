//! `file-editor call`: the tools from the shell, with the answers that clients get.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use crate::harness::{Folder, binary, run, stderr, stdout};
use serde_json::{Value, json};

/// A file of three lines in a folder of its own.
fn scene() -> Folder {
    let folder = Folder::new();
    folder.write("a.rs", "fn one() {}\nfn two() {}\nfn three() {}\n");
    folder
}

fn call(folder: &Folder, words: &[&str]) -> Output {
    call_with(folder, words, "")
}

/// The path of a folder, as it stands between the quotes of JSON.
fn in_json(folder: &Folder) -> String {
    let quoted = json!(folder.path()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Calls in the folder; `$DIR` in a word is its path, and so it is in the JSON of stdin.
fn call_with(folder: &Folder, words: &[&str], stdin: &str) -> Output {
    let path = folder.path().to_str().unwrap();
    let mut command = binary();
    command.arg("call").args(words.iter().map(|word| word.replace("$DIR", path)));
    command.arg(format!("--dir={path}")).env_remove("NO_COLOR").env("TERM", "xterm");
    finish(&mut command, &stdin.replace("$DIR", &in_json(folder)))
}

fn finish(command: &mut Command, stdin: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One that does not want it may be gone.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

/// The one JSON object of a call that did what it was asked.
fn answer(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    assert_eq!(stderr(output), "");
    assert_eq!(stdout(output).matches('\n').count(), 1, "{}", stdout(output));
    serde_json::from_str(&stdout(output)).unwrap()
}

/// That a call is refused with this message, told on stderr and as JSON, and that nothing has changed.
fn check_refused(folder: &Folder, words: &[&str], stdin: &str, message: &str) {
    let before = folder.read("a.rs");
    let output = call_with(folder, words, stdin);
    assert_eq!(output.status.code(), Some(1), "{words:?}: {}", stdout(&output));
    assert!(stderr(&output).starts_with("error: "), "{words:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(message), "{words:?}: {message:?}: {}", stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
    // The code tools have the message itself there.
    let error = told["error"]["message"].as_str().or(told["error"].as_str()).unwrap();
    assert!(error.contains(message), "{words:?}: {told}");
    assert_eq!(folder.read("a.rs"), before, "{words:?}");
    assert_eq!(folder.names(), ["a.rs"], "{words:?}");
}

mod answers {
    use super::*;

    /// Each tool, as a shell has its arguments and as JSON has them.
    fn rows() -> Vec<(&'static str, Vec<&'static str>, Value)> {
        let edits = r#"edits=[{"line":0,"operation":"delete"}]"#;
        let strings = r#"edits=[{"old_string":"two","new_string":"zwei"}]"#;
        vec![
            ("list_files", vec![], json!({})),
            (
                "read_file",
                vec!["name=a.rs", "start_line=1", "line_numbers=true"],
                json!({ "name": "a.rs", "start_line": 1, "line_numbers": true }),
            ),
            (
                "edit_file",
                vec!["name=a.rs", edits, "append=fn four() {}"],
                json!({ "name": "a.rs", "edits": [{ "line": 0, "operation": "delete" }], "append": "fn four() {}" }),
            ),
            (
                "read_text_file",
                vec!["path=$DIR/a.rs", "line=2", "limit=1"],
                json!({ "path": "$DIR/a.rs", "line": 2, "limit": 1 }),
            ),
            (
                "write_text_file",
                vec!["path=$DIR/a.rs", "content=a=b\n", "dry_run=false"],
                json!({ "path": "$DIR/a.rs", "content": "a=b\n", "dry_run": false }),
            ),
            (
                "multi_edit_text_file",
                vec!["path=$DIR/a.rs", strings],
                json!({ "path": "$DIR/a.rs", "edits": [{ "old_string": "two", "new_string": "zwei" }] }),
            ),
            (
                "ai_edit_code",
                vec![
                    "target_file=a.rs",
                    "edit_instruction=drop it",
                    "start_line=1",
                    "edit_type=delete",
                ],
                json!({ "target_file": "a.rs", "edit_instruction": "drop it", "start_line": 1, "edit_type": "delete" }),
            ),
            (
                "ai_get_code_context",
                vec!["symbols=one", "symbols=two"],
                json!({ "symbols": ["one", "two"] }),
            ),
            (
                "search_files",
                vec!["pattern=two", "globs=[\"*.rs\", \"*.md\"]"],
                json!({ "pattern": "two", "globs": ["*.rs", "*.md"] }),
            ),
        ]
    }

    /// What differs from call to call is left out.
    fn lasting(mut answer: Value) -> Value {
        if let Some(stats) = answer.get_mut("stats") {
            stats.as_object_mut().unwrap().remove("elapsed_ms");
        }
        answer
    }

    #[test]
    fn every_tool_answers_keys_json_and_clients_alike() {
        let folder = scene();
        let before = folder.read("a.rs");
        let mut server = folder.serve_with(&["--tools=all"]);
        for (tool, words, arguments) in rows() {
            let by_keys = call(&folder, &[&[tool], &words[..]].concat());
            let after = folder.read("a.rs");
            let writes = tools::agent_tools()
                .any(|entry| entry.name == tool && entry.effect != tools::Effect::Reads);
            assert_eq!(after != before, writes, "{tool}");
            let again = || {
                if writes {
                    folder.write("a.rs", &before);
                }
            };
            again();
            let by_json = call_with(&folder, &[tool, "-"], &arguments.to_string());
            assert_eq!(folder.read("a.rs"), after, "{tool}");
            assert_eq!(lasting(answer(&by_keys)), lasting(answer(&by_json)), "{tool}");
            again();
            let arguments = arguments.to_string().replace("$DIR", &in_json(&folder));
            let told = server.tool(tool, serde_json::from_str(&arguments).unwrap());
            assert_eq!(told["result"]["isError"], false, "{told}");
            match &told["result"]["structuredContent"] {
                // What is read has no data; its text is the answer.
                Value::Null => {
                    let answer = answer(&by_keys);
                    let text = told["result"]["content"][0]["text"].as_str().unwrap();
                    assert!(text.ends_with(answer["content"].as_str().unwrap()), "{answer}");
                    assert_eq!(answer["summary"], told["result"]["content"][1]["text"]);
                    assert_eq!(answer["hash"].as_str().unwrap().len(), 16, "{answer}");
                }
                data => assert_eq!(lasting(answer(&by_keys)), lasting(data.clone()), "{tool}"),
            }
            again();
        }
        let called: Vec<_> = rows().iter().map(|(tool, ..)| *tool).collect();
        assert_eq!(called, tools::agent_tools().map(|entry| entry.name).collect::<Vec<_>>());
    }

    #[test]
    fn a_tool_answers_to_its_other_name() {
        let folder = scene();
        let words = ["ai_code_editing.edit_file", "target_file=a.rs", "edit_instruction=x"];
        let output = call(&folder, &[&words[..], &["code_block=fn four() {}"]].concat());
        assert_eq!(answer(&output)["status"], "success");
        assert!(folder.read("a.rs").ends_with("fn four() {}\n"));
    }

    #[test]
    fn a_text_may_come_from_stdin() {
        let folder = scene();
        let text = "a = b\r\n\"quoted\" \u{fc}\n-";
        let output = call_with(&folder, &["write_text_file", "path=$DIR/b.txt", "content=-"], text);
        assert_eq!(answer(&output)["success"], true);
        assert_eq!(folder.read("b.txt"), text);
        let edits = r#"[{"line":0,"operation":"delete"}]"#;
        answer(&call_with(&folder, &["edit_file", "name=a.rs", "edits=-"], edits));
        assert_eq!(folder.read("a.rs"), "fn two() {}\nfn three() {}\n");
    }

    #[test]
    fn the_folder_is_the_current_one_unless_another_is_named() {
        let folder = scene();
        let mut command = binary();
        command.args(["call", "read_file", "name=a.rs"]).current_dir(folder.path());
        let read = answer(&finish(&mut command, ""));
        assert_eq!(read["content"], folder.read("a.rs").trim_end());
    }

    #[test]
    #[cfg(unix)]
    fn what_only_reads_needs_no_folder_that_can_be_written_to() {
        let scene = crate::harness::Unwritable::new();
        let read = scene.run(&["call", "read_file", "name=a.txt"]);
        assert_eq!(answer(&read)["content"], "one");
        let refused = scene.run(&["call", "edit_file", "name=a.txt", "append=x"]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).starts_with("error: Directory not writable: ."), "{refused:?}");
    }

    #[test]
    fn what_is_read_as_text_is_the_file_as_it_is() {
        let folder = scene();
        for words in [["read_file", "name=a.rs"], ["read_text_file", "path=$DIR/a.rs"]] {
            let output = call(&folder, &[&words[..], &["--text"]].concat());
            assert_eq!(stdout(&output), folder.read("a.rs"), "{words:?}");
            assert_eq!(stderr(&output), "");
        }
        let read = ["read_text_file", "path=$DIR/a.rs", "--text"];
        for text in ["one\r\ntwo", "\u{feff}one\n", "\u{feff}", ""] {
            folder.write("a.rs", text);
            assert_eq!(stdout(&call(&folder, &read)), text);
        }
        // A part of it has no mark, unless that is there too.
        folder.write("a.rs", "\u{feff}one\ntwo\n");
        for (line, text) in [("line=1", "\u{feff}one\n"), ("line=2", "two\n")] {
            let output = call(&folder, &[&read[..], &[line, "limit=1"]].concat());
            assert_eq!(stdout(&output), text);
        }
        folder.write("a.rs", "");
        assert_eq!(stdout(&call(&folder, &["read_file", "name=a.rs", "--text"])), "");
    }
}

mod refusals {
    use super::*;

    #[test]
    fn an_edit_that_misses_says_why_and_writes_nothing() {
        let folder = scene();
        let edits = r#"edits=[{"old_string":"fn  two","new_string":"x"}]"#;
        let words = ["multi_edit_text_file", "path=$DIR/a.rs", edits];
        check_refused(&folder, &words, "", "Edit 0: String not found: fn  two");
        let told = stderr(&call(&folder, &words));
        assert!(told.lines().nth(1).unwrap().starts_with("hint: "), "{told}");
        let told: Value = serde_json::from_str(&stdout(&call(&folder, &words))).unwrap();
        assert_eq!(told["error"]["code"], -32010);
        let words = ["ai_edit_code", "target_file=b.rs", "edit_instruction=x", "code_block=x"];
        check_refused(&folder, &words, "", "File not found: b.rs");
        let told: Value = serde_json::from_str(&stdout(&call(&folder, &words))).unwrap();
        assert_eq!(told["code"], "FILE_NOT_FOUND");
        assert_eq!(told["file_path"], "b.rs");
        // As text there is nothing to show.
        let output = call(&folder, &[&words[..], &["--text"]].concat());
        assert_eq!((stdout(&output), output.status.code()), (String::new(), Some(1)));
    }

    #[test]
    fn values_must_be_what_the_tool_takes() {
        let folder = scene();
        let rows: [(&[&str], &str); 14] = [
            (
                &["read_file", "name=a.rs", "start_line=x"],
                "`start_line` must be an integer, not `x`",
            ),
            (&["read_file", "name=a.rs", "start_line="], "`start_line` must be an integer, not ``"),
            (&["read_file", "name=a.rs", "start_line=1.5"], "must be an integer, not 1.5"),
            (&["read_file", "name=a.rs", "line_numbers=1"], "must be `true` or `false`, not `1`"),
            (&["edit_file", "name=a.rs", "edits=[{"], "`edits` must be a JSON array (EOF"),
            (&["edit_file", "name=a.rs", "edits={}"], "`edits` must be a JSON array"),
            (&["edit_file", "name=a.rs", "edits=[1]"], "`edits[0]` must be an object, not 1"),
            (&["edit_file", "name=a.rs", "text=x"], "unknown property `text`"),
            (&["read_file"], "`name` is required"),
            (&["read_file", "file=a.rs"], "`name`"),
            (&["read_file", "a.rs"], "`a.rs` is not of the form key=value"),
            (&["read_file", "name=a.rs", "name=b.rs"], "`name` is given twice"),
            (&["read_file", "-", "name=a.rs"], "`-` reads all arguments"),
            (&["search_files", "pattern=x", "globs=[x"], "`globs` must be a JSON array"),
        ];
        for (words, message) in rows {
            check_refused(&folder, words, "", message);
        }
        // All of them at once.
        let words = ["read_file", "nmae=a.rs", "start_line=x", "end_line=y", "b"];
        for message in ["`start_line`", "`end_line`", "`b` is not"] {
            check_refused(&folder, &words, "", message);
        }
        let words = ["write_text_file", "path=-", "content=-"];
        check_refused(&folder, &words, "x", "`content` cannot be read from stdin");
    }

    #[test]
    fn what_comes_from_stdin_is_checked_too() {
        let folder = scene();
        for (stdin, message) in [
            ("", "the arguments must be a JSON object: EOF"),
            ("[]", "the arguments must be a JSON object"),
            ("{\"name\":", "the arguments must be a JSON object: EOF"),
            ("{} {}", "the arguments must be a JSON object: trailing"),
            ("{\"name\":1}", "`name` must be a string, not 1"),
        ] {
            check_refused(&folder, &["read_file", "-"], stdin, message);
        }
        let large = "x".repeat((1 << 20) + (64 << 10) + 1);
        let words = ["write_text_file", "--max-size=1", "path=$DIR/b.txt", "content=-"];
        check_refused(
            &folder,
            &words,
            &large,
            "stdin has more than 1114112 bytes; raise --max-size",
        );
        check_refused(&folder, &words, &large[(64 << 10)..], "exceeds maximum limit 1MB");
    }

    #[test]
    fn the_flags_are_those_of_the_server() {
        let folder = scene();
        let words = ["edit_file", "name=a.rs", "append=x", "--read-only"];
        check_refused(&folder, &words, "", "Permission denied accessing 'a.rs'");
        folder.write("a.rs", "x".repeat((1 << 20) + 1));
        let words = ["read_file", "name=a.rs", "--max-size=1"];
        check_refused(&folder, &words, "", "exceeds maximum limit 1MB");
        let output = run(&[
            "call",
            "read_file",
            "--dir=/no/such/folder",
            "--timeout=0",
            "--max-size=x",
            "--durability=eternal",
            "--color=pink",
        ]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stdout(&output), "");
        let told = stderr(&output);
        assert_eq!(told.lines().filter(|line| line.starts_with("error: ")).count(), 5, "{told}");
    }

    #[test]
    fn a_tool_that_is_unknown_is_told_with_those_there_are() {
        let folder = scene();
        let rows: [(&[&str], &str); 4] = [
            (&["raed_file", "name=a.rs"], "'read_file'"),
            (&["hammer"], "list_files, read_file, edit_file"),
            (&[], "file-editor call --list"),
            (&["read_file", "--hammer"], "--hammer"),
        ];
        for (words, told) in rows {
            let output = call(&folder, words);
            assert_eq!(output.status.code(), Some(1), "{words:?}");
            assert_eq!(stdout(&output), "", "{words:?}");
            assert!(stderr(&output).contains(told), "{words:?}: {}", stderr(&output));
        }
    }

    /// It waits for a lock that another process holds, and is interrupted.
    #[test]
    #[cfg(target_os = "linux")]
    fn who_interrupts_a_call_that_waits_finds_the_file_as_it_was() {
        use crate::harness::Server;
        let folder = scene();
        let before = folder.read("a.rs");
        let lock = folder.lock("a.rs");
        let mut command = binary();
        let dir = format!("--dir={}", folder.path().display());
        command.args(["call", "edit_file", "name=a.rs", "append=x", "--timeout=300", &dir]);
        let call = Server::spawn(&mut command);
        // From the moment that it catches the signal it does not just die of it.
        let catches = |pid: u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (2 - 1)) != 0
        };
        while !catches(call.pid()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        call.signal(rustix::process::Signal::INT);
        let (status, told, errors) = call.wait();
        assert_eq!(status.code(), Some(1), "{errors}");
        // A wait that came to its end by itself would be told otherwise.
        assert_eq!(errors, "error: The call was cancelled; nothing was written\n");
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["error"]["code"], -32014, "{told}");
        drop(lock);
        assert_eq!(folder.read("a.rs"), before);
        assert_eq!(folder.names(), ["a.rs"]);
    }
}

mod looks {
    use super::*;

    const EDITS: &str = r#"edits=[{"old_string":"fn two() {}","new_string":"-- zwei"}]"#;

    #[test]
    fn a_diff_is_coloured_line_by_line() {
        let folder = scene();
        let edit = ["multi_edit_text_file", "path=$DIR/a.rs", EDITS, "dry_run=true"];
        let colored = stdout(&call(&folder, &[&edit[..], &["--color=always"]].concat()));
        for line in [
            "\x1b[36m@@ -1,3 +1,3 @@\x1b[m",
            "\x1b[31m-fn two() {}\x1b[m",
            "\x1b[32m+-- zwei\x1b[m",
            " fn one() {}",
        ] {
            assert!(colored.lines().any(|found| found == line), "{line:?}: {colored:?}");
        }
        assert_eq!(colored.matches("\x1b[1m").count(), 2, "{colored:?}");
        let plain = stdout(&call(&folder, &[&edit[..], &["--text"]].concat()));
        assert!(!plain.contains('\x1b'), "{plain:?}");
        let without = ["36", "31", "32", "1", ""]
            .into_iter()
            .fold(colored, |text, code| text.replace(&format!("\x1b[{code}m"), ""));
        assert_eq!(without, plain);
        // JSON has no colours.
        let both = [&edit[..], &["--color=always", "--json"]].concat();
        assert!(answer(&call(&folder, &both))["diff"].as_str().unwrap().contains("+-- zwei"));
        // A removed line that looks like the name of a file is none.
        folder.write("a.rs", "-- zwei\n");
        let edit = ["edit_file", "name=a.rs", r#"edits=[{"line":0,"operation":"delete"}]"#];
        let colored = stdout(&call(&folder, &[&edit[..], &["--color=always"]].concat()));
        assert!(colored.contains("\x1b[31m--- zwei\x1b[m\n"), "{colored:?}");
    }

    /// A line that would move the cursor, wipe what is above it and ring a bell.
    #[test]
    fn what_a_text_tells_a_terminal_is_shown_and_not_done() {
        let folder = scene();
        folder.write("a.rs", "one\n\x1b[2K\x1b[1Aevil\x07\u{9b}31m\n");
        let edit = ["edit_file", "name=a.rs", r#"edits=[{"line":0,"operation":"delete"}]"#];
        let colored = stdout(&call(&folder, &[&edit[..], &["--color=always"]].concat()));
        assert!(colored.contains(" \\u{1b}[2K\\u{1b}[1Aevil\\u{7}\\u{9b}31m\n"), "{colored:?}");
        assert!(!colored.contains("\x1b[2K"), "{colored:?}");
    }

    /// What somebody sees who calls at a terminal.
    #[cfg(target_os = "linux")]
    fn at_a_terminal(folder: &Folder, words: &[&str], no_color: Option<&str>) -> Option<String> {
        let path = folder.path().to_str().unwrap();
        let mut command = binary();
        command.arg("call").args(words.iter().map(|word| word.replace("$DIR", path)));
        command.arg(format!("--dir={path}")).env_remove("NO_COLOR");
        crate::harness::at_a_terminal(command.envs(no_color.map(|no| ("NO_COLOR", no))))
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn nothing_of_a_file_acts_on_a_terminal_or_hides() {
        use crate::harness::{HOSTILE, SHOWN, check_harmless};
        let folder = scene();
        let text = format!("one\n{HOSTILE}\r\nbare\rthree\n");
        folder.write("a.rs", &text);
        let see = |words: &[&str]| {
            let seen = at_a_terminal(&folder, words, None);
            seen.inspect(|seen| check_harmless(seen))
        };
        let Some(read) = see(&["read_text_file", "path=$DIR/a.rs"]) else { return };
        assert!(read.contains(&format!("{SHOWN}\nbare\\u{{d}}three\n")), "{read:?}");
        // It is what it was everywhere else.
        assert_eq!(stdout(&call(&folder, &["read_text_file", "path=$DIR/a.rs", "--text"])), text);

        let edits = format!(r#"edits=[{{"old_string":"one","new_string":"two{HOSTILE}"}}]"#);
        let edit = [
            "multi_edit_text_file",
            "path=$DIR/a.rs",
            &edits.replace('\u{1b}', "\\u001b"),
            "dry_run=true",
        ];
        let edit = edit.map(|word| word.replace('\u{7}', "\\u0007"));
        let edit: Vec<&str> = edit.iter().map(String::as_str).collect();
        let seen = see(&edit).unwrap();
        assert!(seen.contains(&format!("\x1b[32m+two{SHOWN}\x1b[m\n {SHOWN}\n")), "{seen:?}");
        assert_eq!(
            stdout(&call(&folder, &[&edit[..], &["--text"]].concat())).matches(HOSTILE).count(),
            2
        );

        // JSON stays what it is, whoever looks at it.
        let json = [&edit[..], &["--json"]].concat();
        let seen = see(&json).unwrap();
        assert!(
            seen.contains(r"\u009b2J\u007f\u202e") && seen.contains(r"\udb40\udc41"),
            "{seen:?}"
        );
        let seen: Value = serde_json::from_str(&seen).unwrap();
        let piped = stdout(&call(&folder, &json));
        assert!(piped.contains('\u{202e}'), "{piped:?}");
        assert_eq!(seen["diff"], serde_json::from_str::<Value>(&piped).unwrap()["diff"]);

        // So do the reasons of refusals, and what was said on the command line.
        let name = format!("name=none{HOSTILE}");
        for words in [
            &["read_file", &name][..],
            &["read_file", &name, "--json"],
            &["read_text_file", &format!("path=$DIR/none{HOSTILE}")],
            &["read_file", HOSTILE],
            &["read_file", &format!("{HOSTILE}=1")],
            &["read_file", "name=a.rs", &format!("--color={HOSTILE}")],
            &["read_file", "name=a.rs", &format!("--{HOSTILE}")],
            &[HOSTILE],
        ] {
            let seen = see(words).unwrap();
            assert!(seen.contains("error"), "{words:?}: {seen:?}");
        }
    }

    /// What a model is called, and what it says when it fails.
    #[test]
    #[cfg(target_os = "linux")]
    fn nothing_of_a_model_acts_on_a_terminal_or_hides() {
        use crate::harness::{HOSTILE, check_harmless};
        use model::scripted::{ScriptedModel, ScriptedReply};
        let folder = scene();
        let fails = json!({ "error": { "message": HOSTILE } }).to_string();
        let fails = ScriptedReply::Answers { status: 400, headers: Vec::new(), body: fails };
        for (turn, said) in
            [(ScriptedReply::IsSilent, "\r\x1b[Kasking a\\u{202e}model, "), (fails, "error:")]
        {
            let model = ScriptedModel::start(vec![turn]).unwrap();
            let mut command = binary();
            command.current_dir(folder.path()).args([
                "call",
                "ai_edit_code",
                "target_file=a.rs",
                "--timeout=3",
            ]);
            command.args(["start_line=1", "end_line=1", "edit_instruction=be brief"]);
            command.env("FILE_EDITOR_LLM_BASE_URL", model.base_url());
            command.env("FILE_EDITOR_LLM_MODEL", "a\u{202e}model");
            command.env("FILE_EDITOR_LLM_TIMEOUT", "3");
            let Some(seen) = crate::harness::at_a_terminal(&command) else { return };
            assert!(seen.contains(said), "{seen:?}");
            check_harmless(&seen);
        }
    }

    /// The log and the faults of a server that somebody starts by hand.
    #[test]
    #[cfg(target_os = "linux")]
    fn nothing_of_a_name_acts_on_a_terminal_or_hides() {
        use crate::harness::{HOSTILE, check_harmless};
        let folder = Folder::new();
        let message = json!({ "jsonrpc": "2.0", "id": HOSTILE, "method": "list_files" });
        folder.write("messages", format!("{message}\n"));
        let mut command = Command::new("sh");
        let serve = r#""$0" --dir=. --transport=stdio < messages > answers"#;
        command.args(["-c", serve]).arg(env!("CARGO_BIN_EXE_file-editor"));
        let Some(log) = crate::harness::at_a_terminal(command.current_dir(folder.path())) else {
            return;
        };
        check_harmless(&log);
        // It is JSON on a terminal too.
        let lines = crate::harness::log_lines(&log);
        let named = lines.iter().any(|line| line.to_string().contains('\u{202e}'));
        assert!(named && log.contains(r"\u202e"), "{log:?}");

        let mut command = binary();
        command.arg(format!("--dir=none{HOSTILE}")).arg("--transport=stdio");
        let seen = crate::harness::at_a_terminal(&command).unwrap();
        check_harmless(&seen);
        assert!(seen.contains("Directory does not exist: none"), "{seen:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn on_a_terminal_an_answer_is_text_and_coloured_unless_that_is_unwanted() {
        let folder = scene();
        let edit = ["multi_edit_text_file", "path=$DIR/a.rs", EDITS, "dry_run=true"];
        let Some(seen) = at_a_terminal(&folder, &edit, None) else { return };
        assert!(seen.contains("\x1b[32m+-- zwei\x1b[m\n"), "{seen:?}");
        for (flags, no_color) in
            [(&[][..], Some("1")), (&["--color=never"], None), (&["--color=never"], Some(""))]
        {
            let seen = at_a_terminal(&folder, &[&edit[..], flags].concat(), no_color).unwrap();
            assert!(seen.contains("\n+-- zwei\n"), "{flags:?}: {seen:?}");
            assert!(!seen.contains('\x1b'), "{flags:?}: {seen:?}");
        }
        let seen = at_a_terminal(&folder, &edit, Some("")).unwrap();
        assert!(seen.contains("\x1b[32m+"), "{seen:?}");
        let seen = at_a_terminal(&folder, &[&edit[..], &["--json"]].concat(), None).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&seen).unwrap()["success"], true);
        let read = ["read_file", "name=a.rs"];
        let seen = at_a_terminal(&folder, &read, Some("1")).unwrap();
        assert!(seen.starts_with(&folder.read("a.rs")), "{seen:?}");
        assert!(seen.contains("lines 0-2 of 3, hash "), "{seen:?}");
        let missing = ["read_file", "name=b.rs"];
        let seen = at_a_terminal(&folder, &missing, None).unwrap();
        assert!(seen.starts_with("\x1b[31merror:\x1b[m File 'b.rs' not found\n"), "{seen:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_call_that_takes_long_says_what_it_waits_for() {
        let folder = scene();
        let _lock = folder.lock("a.rs");
        let edit = ["edit_file", "name=a.rs", "append=x", "--timeout=3"];
        let Some(seen) = at_a_terminal(&folder, &edit, Some("1")) else { return };
        assert!(seen.contains("\r\x1b[Kwaiting for the file's lock, "), "{seen:?}");
        // Nothing of it is left.
        let (_, left) = seen.rsplit_once("\r\x1b[K").unwrap();
        assert!(left.starts_with("error: "), "{seen:?}");
    }
}
