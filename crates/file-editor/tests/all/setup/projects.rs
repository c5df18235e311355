//! Configurations that came with a project: what they ask for is shown, and not kept unless that is asked for.

use super::*;

#[test]
fn what_came_with_a_project_is_shown_and_removed_unless_it_is_to_be_kept() {
    let shown = [
        "--no-sandbox",
        "--log",
        "debug",
        "LD_PRELOAD = \"/tmp/evil.so\"",
        "FILE_EDITOR_LLM_BASE_URL = \"http://evil\\",
        "cwd = \"/tmp\"",
        "url = \"http://evil\"",
        "trust = true",
    ];
    let check_shown = |told: &str| {
        for setting in shown {
            assert!(told.contains(setting), "{setting}: {told}");
        }
        assert!(!told.contains("\nforged"), "{told}");
    };
    for (client, name, text) in OF_PROJECTS {
        let home = Home::new();
        let (file, before) = (format!("work/{name}"), hostile(client, text));
        let settings = [
            "evil",
            "--no-sandbox",
            "--log",
            "cwd",
            "headers",
            "envFile",
            "Allow",
            "trust",
            "disabled",
        ];

        home.put(&file, &before);
        let list = home.told(&[client, "--project", "--list"]);
        check_shown(&list);
        assert!(list.contains("serves / with /usr/bin/file-editor; also set: "), "{list}");
        let rehearsed = home.told(&[client, "--project", "--dry-run"]);
        check_shown(&rehearsed);
        assert!(
            rehearsed.contains("--keep keeps it") && rehearsed.contains("\n--- "),
            "{rehearsed}"
        );
        assert_eq!(home.0.read(&file), before, "{client}");

        let told = home.told(&[client, "--project"]);
        check_shown(&told);
        assert!(told.contains("not kept, since it came with the project"), "{told}");
        let after = home.0.read(&file);
        for setting in settings {
            assert!(!after.contains(setting), "{client}: {setting}: {after}");
        }
        assert!(after.contains("theirs") && after.contains("--transport=stdio"), "{after}");
        assert_eq!(home.0.read(&backup(&file)), before);
        let again = home.told(&[client, "--project"]);
        assert!(again.contains("already configured in") && !again.contains("not kept"), "{again}");
        let list = home.told(&[client, "--project", "--list"]);
        assert!(!list.contains("also set"), "{list}");
        home.told(&[client, "--project", "--remove"]);
        assert!(home.0.read(&file).contains("theirs"));

        home.put(&file, &before);
        let told = home.told(&[client, "--project", "--keep"]);
        check_shown(&told);
        assert!(told.contains("kept, though it came with the project"), "{told}");
        let after = home.0.read(&file);
        for setting in ["evil.so", "--no-sandbox", "trust"] {
            assert!(after.contains(setting), "{client}: {setting}: {after}");
        }
        check_shown(&home.told(&[client, "--project", "--keep"]));
        assert_eq!(home.0.read(&file), after);
        check_shown(&home.told(&[client, "--project", "--keep", "--dry-run"]));
        assert!(home.told(&[client, "--project", "--remove"]).contains("removed from"));
        assert!(!home.0.read(&file).contains("evil"));
    }
    let home = Home::new();
    assert!(home.refused(&["cursor", "--keep"]).contains("--project"));
}

/// Only the user writes there. What it is called is told, and what it is may be a password.
#[test]
fn settings_in_the_users_own_file_are_kept_and_told_by_name() {
    let home = Home::new();
    for (client, name) in [("cursor", ".cursor/mcp.json"), ("codex", "codex-home/config.toml")] {
        let text = if client == "codex" { HOSTILE_TOML } else { HOSTILE_JSON };
        home.put(name, &text.replace("/tmp/evil.so", "SECRET-OF-ANOTHER"));
        for arguments in [&[client][..], &[client], &[client, "--list"]] {
            let told = home.told(arguments);
            assert!(told.contains("--no-sandbox") && told.contains("env.LD_PRELOAD"), "{told}");
        }
        let after = home.0.read(name);
        assert!(after.contains("SECRET-OF-ANOTHER") && after.contains("--no-sandbox"), "{after}");
    }
}
