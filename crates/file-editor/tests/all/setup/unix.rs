//! Links, permissions and copies, as Unix has them.

use super::*;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

#[test]
fn a_link_stays_and_what_it_leads_to_is_edited() {
    for is_absolute in [true, false] {
        let home = Home::new();
        let (_, name, sample) = CLIENTS[5];
        home.put("dotfiles/zed.json", sample);
        let link = home.0.file(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        let target = home.0.file("dotfiles/zed.json");
        let target = if is_absolute { target } else { "../../dotfiles/zed.json".into() };
        let target =
            if cfg!(target_os = "macos") { home.0.file("dotfiles/zed.json") } else { target };
        symlink(&target, &link).unwrap();
        home.told(&["zed"]);
        assert_eq!(fs::read_link(&link).unwrap(), target);
        assert!(home.0.read("dotfiles/zed.json").contains("file-editor"));
        assert_eq!(home.0.read("dotfiles/zed.json.before-file-editor"), sample);
        home.told(&["zed", "--remove"]);
        assert_eq!(home.0.read("dotfiles/zed.json"), sample);
        assert_eq!(fs::read_link(&link).unwrap(), target);
    }
}

/// Every way by which a project could have us write elsewhere.
#[test]
fn links_out_of_a_project_are_refused_by_name() {
    for (client, name, text) in OF_PROJECTS {
        for (is_folder, target) in [
            (false, "$UP/.claude.json"),
            (false, "$HOME/.claude.json"),
            (false, "$UP/none.json"),
            (false, "/no/such/folder/file"),
            (false, "$UP/work/back.json"),
            (true, "../elsewhere"),
            (true, "$HOME/elsewhere"),
            (true, "../none"),
            (true, ".."),
        ] {
            let Some((folder, _)) = name.split_once('/').or((!is_folder).then_some((name, "")))
            else {
                continue;
            };
            let home = Home::new();
            let outside = [
                ".claude.json",
                "elsewhere/mcp.json",
                "elsewhere/config.toml",
                "elsewhere/settings.json",
                "mcp.json",
                "config.toml",
                "settings.json",
            ];
            for file in outside {
                home.put(file, &hostile(client, text));
            }
            let work = home.work().canonicalize().unwrap();
            let link = work.join(if is_folder { folder } else { name });
            let up = if name.contains('/') { "../.." } else { ".." };
            let target =
                target.replace("$UP", up).replace("$HOME", home.0.path().to_str().unwrap());
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(&target, &link).unwrap();
            let names =
                || (home.0.names(), fs::read_dir(home.0.file("elsewhere")).unwrap().count());
            let before = names();
            for more in
                [&[][..], &["--dry-run"], &["--remove"], &["--keep"], &["--remove", "--dry-run"]]
            {
                let told = home.refused(&[&[client, "--project"], more].concat());
                let by_name = format!(
                    "{} is a link to {target}, which is outside the project ",
                    link.display()
                );
                assert!(told.contains(&by_name), "{more:?}: {told}");
                assert!(!told.contains("evil"), "{told}");
            }
            // It is named even if no client was.
            assert!(home.refused(&["--project"]).contains("is a link to"));
            let list = home.told(&[client, "--project", "--list"]);
            assert!(
                list.contains("which is outside the project") && !list.contains("evil"),
                "{list}"
            );
            for file in outside {
                assert_eq!(home.0.read(file), hostile(client, text), "{file}");
            }
            assert_eq!((names(), fs::read_link(&link).unwrap()), (before, target.into()));
        }
    }
}

#[test]
fn links_within_a_project_are_followed() {
    let check = |client: &str, link: &str, target: &str, written: &str| {
        let home = Home::new();
        fs::create_dir_all(home.work().join("shared/inner")).unwrap();
        let target = target.replace("$WORK", home.work().to_str().unwrap());
        let link = home.work().join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&target, &link).unwrap();
        home.told(&[client, "--project", "--dry-run"]);
        home.told(&[client, "--project"]);
        assert!(home.0.read(&format!("work/{written}")).contains("--transport=stdio"), "{written}");
        assert_eq!(fs::read_link(&link).unwrap(), Path::new(&target));
        home.told(&[client, "--project", "--remove"]);
        assert_eq!(fs::read_link(&link).unwrap(), Path::new(&target));
    };
    check("claude-code", ".mcp.json", "shared/mcp.json", "shared/mcp.json");
    check("claude-code", ".mcp.json", "$WORK/shared/mcp.json", "shared/mcp.json");
    check("vscode", ".vscode", "shared/inner", "shared/inner/mcp.json");
    check("vscode", ".vscode/mcp.json", "../shared/mcp.json", "shared/mcp.json");
    check("codex", ".codex", "$WORK/shared", "shared/config.toml");
}

/// The copy of a file is no way out, or into another file, either.
#[test]
fn a_link_in_the_place_of_a_copy_is_refused() {
    for target in ["../.bashrc", "notes.txt", "/no/such/file"] {
        let home = Home::new();
        home.put(".bashrc", "theirs");
        home.put("work/notes.txt", "theirs");
        home.put("work/.mcp.json", HOSTILE_JSON);
        for ending in ["file-editor", "last-change"] {
            let copy = home.0.file(&format!("work/.mcp.json.before-{ending}"));
            symlink(target, copy).unwrap();
        }
        let told = home.refused(&["claude-code", "--project"]);
        assert!(
            told.contains("left unchanged: its copy") && told.contains("a link has that name"),
            "{told}"
        );
        for (name, text) in
            [(".bashrc", "theirs"), ("work/notes.txt", "theirs"), ("work/.mcp.json", HOSTILE_JSON)]
        {
            assert_eq!(home.0.read(name), text);
        }
    }
}

/// The second writer finds the entry of the first, and must not keep that as what was there before.
#[test]
fn several_at_once_keep_the_file_as_it_was_before_all_of_them() {
    let home = Home::new();
    let (client, name, before) = CLIENTS[0];
    let folders = ["a", "b", "c", "d", "e", "f"].map(|name| home.work().join(name));
    for folder in &folders {
        fs::create_dir(folder).unwrap();
    }
    for round in 0..4 {
        home.put(name, before);
        let lock = home.0.lock(name);
        let spawn = |folder: &PathBuf| {
            let mut command = home.command();
            command.args(["setup", client, "--dir"]).arg(folder);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let running: Vec<_> = folders.iter().map(spawn).collect();
        drop(lock);
        for child in running {
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", both(&output));
        }
        assert_eq!(home.0.read(&backup(name)), before, "round {round}");
        home.told(&[client, "--remove"]);
        assert_eq!(home.0.read(name), before, "round {round}");
        assert_eq!(home.0.read(&backup(name)), before, "round {round}");
        fs::remove_file(home.0.file(&backup(name))).unwrap();
    }
}

/// A rehearsal and the real run agree.
#[test]
fn a_link_to_nothing() {
    let check = |target: &str, told: Result<(), &str>| {
        let home = Home::new();
        fs::create_dir_all(home.0.file(".cursor")).unwrap();
        fs::create_dir_all(home.0.file("dotfiles")).unwrap();
        symlink(target, home.0.file(".cursor/mcp.json")).unwrap();
        match told {
            Ok(()) => {
                assert!(home.told(&["cursor", "--dry-run"]).contains("--transport=stdio"));
                home.told(&["cursor"]);
                assert!(home.0.read(".cursor/mcp.json").contains("--transport=stdio"));
            }
            Err(told) => {
                let rehearsed = home.refused(&["cursor", "--dry-run"]);
                assert!(rehearsed.contains(told), "{target}: {rehearsed}");
                assert_eq!(home.refused(&["cursor"]), rehearsed, "{target}");
            }
        }
        assert_eq!(fs::read_link(home.0.file(".cursor/mcp.json")).unwrap(), Path::new(target));
    };
    check("../dotfiles/cursor.json", Ok(()));
    check("other.json", Ok(()));
    check("../missing/cursor.json", Err("create that folder, or remove the link"));
    check("missing/cursor.json", Err("create that folder, or remove the link"));
    check("mcp.json", Err("too many links"));
}

#[test]
fn what_is_in_the_place_of_a_folder() {
    let home = Home::new();
    symlink("nowhere", home.0.file(".cursor")).unwrap();
    home.put(".gemini", "");
    for client in ["cursor", "gemini"] {
        let rehearsed = home.refused(&[client, "--dry-run"]);
        assert!(rehearsed.contains("is not a folder"), "{rehearsed}");
        assert_eq!(home.refused(&[client]), rehearsed);
    }
}

/// As after any other edit.
#[test]
fn other_names_of_the_file_keep_the_old_text_and_that_is_told() {
    let home = Home::new();
    let (client, name, sample) = CLIENTS[2];
    home.put(name, sample);
    fs::hard_link(home.0.file(name), home.0.file("other-name")).unwrap();
    let told = home.told(&[client]);
    assert!(told.contains("1 other hard link of this file keeps the old text"), "{told}");
    assert_eq!(home.0.read("other-name"), sample);
    assert!(!home.told(&[client, "--remove"]).contains("hard link"));
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let home = Home::new();
    for arguments in [&["--list"][..], &["cursor", "--dry-run"], &["cursor"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = home.command();
        let output = command.arg("setup").args(arguments).stdout(full).output().unwrap();
        let told = both(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.contains("cannot write to stdout"), "{arguments:?}: {told}");
    }
    assert!(home.0.read(".cursor/mcp.json").contains("file-editor"));
}

#[test]
fn a_long_wait_for_another_program_is_told() {
    let home = Home::new();
    let (client, name, sample) = CLIENTS[2];
    home.put(name, sample);
    let lock = home.0.lock(name);
    let mut command = home.command();
    command.args(["setup", client]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut told = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut told).unwrap();
    drop(lock);
    assert!(told.contains("another program holds") && told.contains("waiting"), "{told}");
    assert!(child.wait().unwrap().success());
    assert!(home.0.read(name).contains("file-editor"));
}

#[test]
fn a_file_that_is_read_only_is_left_alone() {
    let home = Home::new();
    let (client, name, sample) = CLIENTS[0];
    home.put(name, sample);
    fs::set_permissions(home.0.file(name), fs::Permissions::from_mode(0o444)).unwrap();
    let told = home.refused(&[client]);
    assert!(told.contains("left unchanged") && told.contains("must be writable"), "{told}");
    assert_eq!(home.0.read(name), sample);
    assert!(!home.0.file(&backup(name)).exists());
}

#[test]
fn what_only_its_owner_may_read_stays_so_and_so_does_its_copy() {
    let home = Home::new();
    let (client, name, sample) = CLIENTS[0];
    home.put(name, sample);
    fs::set_permissions(home.0.file(name), fs::Permissions::from_mode(0o600)).unwrap();
    home.told(&[client]);
    for name in [name.to_owned(), backup(name)] {
        let mode = fs::metadata(home.0.file(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
