//! The text tools where a case file does not reach: their schemas, other users, other file systems, other names of the
//! folder, many processes.

use std::path::Path;

use crate::harness::{Folder, Server, as_nobody, failure, is_root_to_check, not_checked, texts};
use serde_json::{Value, json};

const TEXT: &[&str] = &["--tools=text"];

fn edit(path: &Path, old: &str, new: &str) -> Value {
    json!({ "path": path, "edits": [{ "old_string": old, "new_string": new }] })
}

/// The three input schemas as the contracts print them.
fn contract_schemas() -> Value {
    json!({
        "read_text_file": {
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "Absolute path to the file" },
                "line": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Starting line number (1-indexed). If omitted, read from line 1"
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Maximum number of lines to return. If omitted, return all remaining lines"
                }
            },
            "required": ["path"]
        },
        "write_text_file": {
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "Absolute path to the file" },
                "content": { "type": "string", "description": "Complete file content to write" }
            },
            "required": ["path", "content"]
        },
        "multi_edit_text_file": {
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "Absolute path to the file" },
                "edits": {
                    "type": "array",
                    "description": "Array of edit operations to apply sequentially",
                    "items": {
                        "type": "object",
                        "properties": {
                            "old_string": { "type": "string", "description": "Exact string to find and replace" },
                            "new_string": { "type": "string", "description": "Replacement string" }
                        },
                        "required": ["old_string", "new_string"]
                    }
                }
            },
            "required": ["path", "edits"]
        }
    })
}

/// Everything in `part` is in `whole`, with the same value.
fn check_subset(part: &Value, whole: &Value, at: &str) {
    match part {
        Value::Object(part) => {
            for (name, value) in part {
                check_subset(value, &whole[name], &format!("{at}.{name}"));
            }
        }
        part => assert_eq!(part, whole, "{at}"),
    }
}

#[test]
fn the_schemas_of_the_contracts_are_part_of_ours() {
    let answer = Folder::new().serve_with(TEXT).request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["read_text_file", "write_text_file", "multi_edit_text_file"]);
    let contracts = contract_schemas();
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        check_subset(&contracts[name], &tool["inputSchema"], name);
        // What we have besides is never required.
        assert_eq!(tool["inputSchema"]["required"], contracts[name]["required"], "{name}");
    }
}

#[test]
fn all_toolsets_are_served_together_and_apart() {
    let names = |flags: &[&str]| -> Vec<String> {
        let answer = Folder::new().serve_with(flags).request("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let flat = ["list_files", "read_file", "edit_file"];
    let text = ["read_text_file", "write_text_file", "multi_edit_text_file"];
    assert_eq!(names(&[]), flat);
    assert_eq!(names(&["--tools=text,flat"]), [text, flat].concat());
    let code = ["ai_edit_code", "ai_get_code_context", "search_files"];
    assert_eq!(names(&["--tools=code"]), code);
    assert_eq!(names(&["--tools=all"]), [&flat[..], &text, &code].concat());
    assert_eq!(
        names(&["--tools=all", "--read-only"]),
        ["list_files", "read_file", "read_text_file", "ai_get_code_context", "search_files"]
    );
}

#[test]
fn agents_are_told_where_they_may_work() {
    let folder = Folder::new();
    let client = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let answer = folder.serve_with(TEXT).request("initialize", params);
    let told = answer["result"]["instructions"].as_str().unwrap();
    assert!(told.len() < 512 && told.contains(&folder.path().display().to_string()), "{told}");
}

#[test]
#[cfg(unix)]
fn the_folder_may_be_named_as_given_and_as_resolved() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.file("real/ein Ordner/日本")).unwrap();
    std::os::unix::fs::symlink("real", folder.file("link")).unwrap();
    std::fs::create_dir(folder.file("real-too")).unwrap();
    folder.write("real-too/a.txt", "secret");
    let mut server = Server::start(&folder.file("link"), TEXT, &[]);
    let name = "ein Ordner/日本/ä ö.txt";
    let (given, resolved) = (folder.file("link").join(name), folder.file("real").join(name));
    server.text("write_text_file", json!({ "path": given, "content": "one\n" }));
    server.text("multi_edit_text_file", edit(&resolved, "one", "two"));
    assert_eq!(server.text("read_text_file", json!({ "path": given })), "two\n");
    assert_eq!(std::fs::read_to_string(resolved).unwrap(), "two\n");
    // Neither the folder around it nor one that begins alike.
    for outside in ["real-too/a.txt", "link/../real-too/a.txt", "link/../real/../real-too/a.txt"] {
        let path = folder.file(outside);
        let message = server.error("read_text_file", json!({ "path": path }));
        assert_eq!(message, format!("Permission denied: {}", path.display()));
    }
}

#[test]
#[cfg(unix)]
fn what_the_servers_user_may_not_do_is_denied() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    if !is_root_to_check("permissions of another user") {
        return;
    }
    let place = Folder::new();
    for folder in ["root", "root/closed", "root/unwritable"] {
        std::fs::create_dir(place.file(folder)).unwrap();
    }
    let files = ["secret.txt", "readable.txt", "closed/a.txt", "unwritable/a.txt"];
    for name in files {
        place.write(&format!("root/{name}"), "one\n");
    }
    chown(place.file("root/unwritable/a.txt"), Some(65534), Some(65534)).unwrap();
    let modes = [
        ("root", 0o777),
        ("root/secret.txt", 0o600),
        ("root/readable.txt", 0o644),
        ("root/closed", 0o700),
        ("root/unwritable", 0o755),
    ];
    for (name, mode) in modes {
        std::fs::set_permissions(place.file(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut server = as_nobody(&place, TEXT);
    let mut denied = |tool: &str, name: &str| {
        let path = place.file("root").join(name);
        let mut arguments = match tool {
            "multi_edit_text_file" => edit(&path, "one", "two"),
            "write_text_file" => json!({ "content": "two\n" }),
            _ => json!({}),
        };
        arguments["path"] = json!(path);
        let answer = server.tool(tool, arguments);
        assert_eq!(failure(&answer, -32002), format!("Permission denied: {}", path.display()));
    };
    for tool in ["read_text_file", "write_text_file", "multi_edit_text_file"] {
        denied(tool, "secret.txt");
        denied(tool, "closed/a.txt");
    }
    for name in ["readable.txt", "unwritable/a.txt"] {
        denied("write_text_file", name);
        denied("multi_edit_text_file", name);
    }
    denied("write_text_file", "unwritable/new.txt");
    denied("write_text_file", "closed/new.txt");
    let made = json!({ "path": place.file("root/unwritable/sub/new.txt"), "content": "", "create_dirs": true });
    failure(&server.tool("write_text_file", made), -32002);
    let path = place.file("root/readable.txt");
    assert_eq!(server.text("read_text_file", json!({ "path": path })), "one\n");
    for name in files {
        assert_eq!(place.read(&format!("root/{name}")), "one\n", "{name}");
    }
}

/// The server alone in a world where `place/root` is another file system.
#[cfg(target_os = "linux")]
fn with_mount(place: &Folder, mount: &str) -> Option<Server> {
    let unshare = |script: &str| {
        let mut command = std::process::Command::new("unshare");
        let user =
            if rustix::process::geteuid().is_root() { &[][..] } else { &["--map-root-user"][..] };
        command.args(user).args(["--mount", "sh", "-ec", script]).current_dir(place.path());
        command
    };
    std::fs::create_dir(place.file("root")).unwrap();
    let possible = unshare(mount).output().is_ok_and(|output| output.status.success());
    if !possible {
        not_checked("another file system", &format!("`unshare --mount` and `{mount}`"));
        return None;
    }
    let (binary, dir) = (env!("CARGO_BIN_EXE_file-editor"), place.file("root"));
    let serve =
        format!("{mount}; exec {binary} --dir={} --transport=stdio --tools=text", dir.display());
    Some(Server::spawn(&mut unshare(&serve)))
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_has_an_error_of_its_own_and_the_file_stays() {
    let place = Folder::new();
    let Some(mut server) = with_mount(&place, "mount -t tmpfs -o size=64k none root") else {
        return;
    };
    let path = place.file("root/a.txt");
    let text = "one\n".repeat(10_000);
    server.text("write_text_file", json!({ "path": path, "content": text }));
    for _ in 0..2 {
        let large = json!({ "path": path, "content": "x".repeat(50_000) });
        let answer = server.tool("write_text_file", large);
        let message = format!("Disk full: cannot write 50000 bytes to {}", path.display());
        assert_eq!(failure(&answer, -32005), message);
        let mut growing = edit(&path, "one", "three");
        growing["edits"][0]["replace_all"] = json!(true);
        let answer = server.tool("multi_edit_text_file", growing);
        let message = format!("Disk full: cannot write 60000 bytes to {}", path.display());
        assert_eq!(failure(&answer, -32005), message);
    }
    let new = json!({ "path": place.file("root/sub/dir/b.txt"), "content": "x".repeat(50_000), "create_dirs": true });
    failure(&server.tool("write_text_file", new), -32005);
    let parent = json!({ "path": place.file("root/sub/c.txt"), "content": "" });
    failure(&server.tool("write_text_file", parent), -32001); // the folders were taken back
    assert_eq!(server.text("read_text_file", json!({ "path": path })), text);
}

#[test]
#[cfg(target_os = "linux")]
fn a_read_only_file_system_has_an_error_of_its_own() {
    let place = Folder::new();
    let mount = "mount -t tmpfs none root; printf 'one\\n' > root/a.txt; mkdir root/dir; mount --bind root/dir root/dir; \
                 cp root/a.txt root/dir/a.txt; mount -o remount,bind,ro root/dir";
    let Some(mut server) = with_mount(&place, mount) else { return };
    let path = place.file("root/dir/a.txt");
    let message = format!("Read-only filesystem: {}", path.display());
    let answer = server.tool("write_text_file", json!({ "path": path, "content": "two\n" }));
    assert_eq!(failure(&answer, -32002), message);
    let answer = server.tool("multi_edit_text_file", edit(&path, "one", "two"));
    assert_eq!(failure(&answer, -32002), message);
    let new = place.file("root/dir/new.txt");
    let answer = server.tool("write_text_file", json!({ "path": new, "content": "" }));
    assert_eq!(failure(&answer, -32002), format!("Read-only filesystem: {}", new.display()));
    let below =
        json!({ "path": place.file("root/dir/sub/new.txt"), "content": "", "create_dirs": true });
    failure(&server.tool("write_text_file", below), -32002);
    assert_eq!(server.text("read_text_file", json!({ "path": path })), "one\n");
    server.text("multi_edit_text_file", edit(&place.file("root/a.txt"), "one", "two"));
}

/// Five servers count in one file, each in another way. Every acknowledged edit is there in the end.
#[test]
fn mixed_tools_of_several_processes_lose_nothing() {
    const EDITS: usize = 40;
    let folder = Folder::new();
    folder.write("a.txt", "begin\nend\n");
    let path = folder.file("a.txt");
    let insert = |process: usize, number: usize| {
        let line = format!("{process}-{number}");
        match process % 2 {
            0 => ("edit_file", json!({ "name": "a.txt", "append": line })),
            _ => ("multi_edit_text_file", edit(&path, "begin\n", &format!("begin\n{line}\n"))),
        }
    };
    std::thread::scope(|scope| {
        for process in 0..5 {
            let mut server =
                folder.serve_with(&["--tools=all", "--durability=none", "--timeout=120"]);
            scope.spawn(move || {
                for number in 0..EDITS {
                    let (tool, arguments) = insert(process, number);
                    server.text(tool, arguments);
                }
            });
        }
    });
    let text = folder.read("a.txt");
    assert_eq!(text.lines().count(), 2 + 5 * EDITS);
    for (process, number) in
        (0..5).flat_map(|process| (0..EDITS).map(move |number| (process, number)))
    {
        assert!(
            text.lines().any(|line| line == format!("{process}-{number}")),
            "{process}-{number}"
        );
    }
    assert_eq!(folder.names(), ["a.txt"]);
}

/// Whatever a file is called by, its edits are made in the order they came.
#[test]
fn edits_of_one_file_keep_their_order_across_tools_and_spellings() {
    let folder = Folder::new();
    folder.write("a.txt", "0\n");
    let mut server = folder.serve_with(&["--tools=all"]);
    let dir = folder.path().display().to_string();
    let spellings = [format!("{dir}/a.txt"), format!("{dir}//./a.txt")];
    let mut ids = Vec::new();
    for number in 0..60 {
        let (old, new) = (number.to_string(), (number + 1).to_string());
        ids.push(if number % 3 == 2 {
            let edits = json!([{ "line": 0, "operation": "replace", "content": new }]);
            server.send_tool("edit_file", json!({ "name": "a.txt", "edits": edits }))
        } else {
            let path = Path::new(&spellings[number % 3]);
            server.send_tool("multi_edit_text_file", edit(path, &old, &new))
        });
    }
    for answer in server.receive_all(&ids) {
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    assert_eq!(folder.read("a.txt"), "60\n");
}

#[test]
fn a_large_file_is_read_and_written_whole() {
    let folder = Folder::new();
    let path = folder.file("large.txt");
    let text = format!("ä{}\n", "x".repeat(1021)).repeat(1024);
    assert_eq!(text.len(), 1_048_576);
    let mut server = folder.serve_with(&["--tools=text", "--max-size=1"]);
    let answer = server.tool("write_text_file", json!({ "path": path, "content": text }));
    let data = &answer["result"]["structuredContent"];
    assert_eq!((&data["bytes_written"], &data["created"]), (&json!(1_048_576), &json!(true)));
    let answer = server.tool("read_text_file", json!({ "path": path }));
    assert!(texts(&answer)[0] == text, "the text is another");
    let meta = &answer["result"]["_meta"];
    assert_eq!((&meta["total_lines"], &meta["has_more"]), (&json!(1024), &json!(false)));
    // One byte more is one too many, for a write and for what an edit would make.
    for (tool, mut arguments) in [
        ("write_text_file", json!({ "content": text.clone() + "x" })),
        (
            "multi_edit_text_file",
            json!({ "edits": [{ "old_string": "ä", "new_string": "äh", "near_line": 1 }] }),
        ),
    ] {
        arguments["path"] = json!(path);
        let answer = server.tool(tool, arguments);
        let message = format!("File size 1.01MB exceeds maximum limit 1MB: {}", path.display());
        assert_eq!(failure(&answer, -32001), message);
    }
    assert!(folder.read("large.txt") == text, "the file is another");
}

/// The contract's 100 edits, and what a thousand do.
#[test]
fn many_edits_are_one_change() {
    for count in [100, 1000] {
        let folder = Folder::new();
        let path = folder.file("a.txt");
        let line = |number: usize, word: &str| format!("{word} number {number:04}\n");
        let lines = |word: &str| (0..count).map(|number| line(number, word)).collect::<String>();
        folder.write("a.txt", lines("old"));
        let edits: Vec<_> = (0..count)
            .rev()
            .map(|number| json!({ "old_string": line(number, "old"), "new_string": line(number, "new") }))
            .collect();
        let answer = folder
            .serve_with(TEXT)
            .tool("multi_edit_text_file", json!({ "path": path, "edits": edits }));
        let data = &answer["result"]["structuredContent"];
        assert_eq!((&data["success"], &data["applied_count"]), (&json!(true), &json!(count)));
        assert_eq!(data["line_ranges"].as_array().unwrap().len(), count);
        assert_eq!(data["line_ranges"][0]["start"], count);
        assert_eq!(folder.read("a.txt"), lines("new"));
    }
}

/// Numbers of lines can weigh more than the lines; a page ends before that gets out of hand.
#[test]
fn numbered_lines_come_in_pages_no_larger_than_a_file_may_be() {
    let folder = Folder::new();
    folder.write("a.txt", "\n".repeat(500_000));
    let mut server = folder.serve_with(&["--tools=all", "--max-size=1"]);
    let path = folder.file("a.txt");
    let (mut next, mut seen) = (Some(1), 0);
    while let Some(line) = next {
        let answer = server
            .tool("read_text_file", json!({ "path": path, "line": line, "line_numbers": true }));
        let text = texts(&answer)[0];
        assert!(text.len() <= (1 << 20) + 10 && text.starts_with(&format!("{line}\t\n")));
        seen += text.lines().count();
        next = answer["result"]["_meta"]["next_line"].as_u64();
    }
    assert_eq!(seen, 500_000);
    let answer = server.tool("read_file", json!({ "name": "a.txt", "line_numbers": true }));
    let (text, summary) = (texts(&answer)[0], texts(&answer)[1]);
    let last: usize = text.lines().last().unwrap().trim_end().parse().unwrap();
    assert!(text.starts_with(&format!("File: a.txt (lines 0-{last} of 500000 total)\n\n0\t\n1\t")));
    assert!(summary.contains(&format!("next_line {}", last + 1)) && text.len() < 1_100_000);
}
