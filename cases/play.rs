//! Plays the case files beside it: in process, on stdio and over HTTP, same file, same answer.
//!
//! A case is a sentence, then sections. `flags` are the server's, `given` lays out the folder (see `give`), `when`
//! calls a tool (or, `when method`, a plain method), and `then` is what came back, complete: texts, data, and every
//! file that is not as it was. `cargo xtask golden` rewrites what came back, never what was given.
//!
//! In a body `$DIR` is the folder, `$MEGABYTE` as many characters, `$TIME` a time of change, `$MS` how long something
//! took and `␍` a carriage return; in a given name `%20` is a blank and `%0A` a line break.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Answers as a client sees them: `{result}` or `{error}`.
pub trait Player {
    fn tool(&mut self, name: &str, arguments: Value) -> Value;
    fn method(&mut self, name: &str, params: Value) -> Value;
}

/// Starts a player in a folder; `None` for flags that mean nothing to it.
pub type Start = fn(&Path, &[&str]) -> Option<Box<dyn Player>>;

pub fn play_all(start: Start) {
    // One player at a time writes the files anew.
    static PLAYING: Mutex<()> = Mutex::new(());
    let _playing = PLAYING.lock().unwrap_or_else(PoisonError::into_inner);
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let (mut played, mut wrong) = (0, Vec::new());
    for folder in std::fs::read_dir(cases).unwrap().map(Result::unwrap) {
        if !folder.file_type().unwrap().is_dir() {
            continue;
        }
        let tools = match folder.file_name().to_str() {
            Some("text") => "--tools=text",
            Some("code") => "--tools=code",
            _ => "--tools=flat",
        };
        for case in std::fs::read_dir(folder.path()).unwrap() {
            let path = case.unwrap().path();
            let expected = std::fs::read_to_string(&path).unwrap();
            let Some(found) = play(&expected, tools, start) else { continue };
            played += 1;
            if is_as_written(&found, &expected) {
                continue;
            }
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&path, found).unwrap();
            } else {
                wrong.push(format!("{}\n--- found instead:\n{found}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {played} cases:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(played > 150, "only {played} cases were found");
}

/// The case as it turns out.
fn play(case: &str, tools: &str, start: Start) -> Option<String> {
    let folder = folder();
    let folder = folder.path();
    let mut sections = sections(case.trim_end());
    let mut shown = sections.next().unwrap().to_owned();
    assert!(!shown.contains("---"), "a section without a name: {case}");
    let mut flags = vec![tools];
    let mut player: Option<Box<dyn Player>> = None;
    for section in sections {
        let (head, body) = section.split_once('\n').unwrap_or((section, ""));
        let words: Vec<&str> = head.split(' ').collect();
        match words[..] {
            ["then", ..] => continue,
            ["given", name, ref kind @ ..] => give(folder, name, kind, body),
            ["flags"] => flags.extend(body.split_whitespace()),
            _ => {}
        }
        write!(shown, "\n--- {section}").unwrap();
        let ["when", ref what @ ..] = words[..] else { continue };
        if player.is_none() {
            player = Some(start(folder, &flags)?);
        }
        let player = player.as_mut().unwrap();
        let before = snapshot(folder);
        let body = body.replace("$DIR", &dir(folder)).replace("$MEGABYTE", &"x".repeat(1 << 20));
        let arguments = serde_json::from_str(&body).expect(case);
        let answer = match what {
            ["method", name] => player.method(name, arguments),
            [name] => player.tool(name, arguments),
            _ => panic!("when what? {case}"),
        };
        let happened = told(what, &answer).into_iter().chain(changed(&before, &snapshot(folder)));
        for (head, body) in happened {
            write!(shown, "\n--- then {head}\n{}", visible(&body, folder)).unwrap();
        }
    }
    assert!(player.is_some(), "nothing is called: {case}");
    Some(shown.trim_end_matches('\n').to_owned() + "\n")
}

/// Answers have the folder's path in them, and tell how many tokens they have: so it is as long as it was when the cases
/// were written, wherever such folders are.
pub const LENGTH: usize = "/tmp/.tmp123456".len();

pub fn folder() -> TempDir {
    let around = std::env::temp_dir().as_os_str().len() + "/.".len();
    let random = LENGTH.saturating_sub(around).max(4);
    tempfile::Builder::new().prefix(".").rand_bytes(random).tempdir().unwrap()
}

/// Whether it all turned out as it is written. Where folders lie too deep for that length, what has a budget of tokens may
/// not.
fn is_as_written(found: &str, expected: &str) -> bool {
    let is_deep = || folder().path().as_os_str().len() != LENGTH;
    found == expected || expected.contains(" tokens") && is_deep()
}

/// The sentence, then the sections. Only these words begin one: a body may hold a diff.
fn sections(case: &str) -> impl Iterator<Item = &str> {
    let words = ["flags\n", "given ", "when ", "then "];
    let begins = move |at: &usize| words.iter().any(|word| case[at + 5..].starts_with(word));
    let mut starts = case.match_indices("\n--- ").map(|(at, _)| at).filter(begins);
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let start = next?;
        next = starts.next();
        let section = &case[start..next.unwrap_or(case.len())];
        Some(section.strip_prefix("\n--- ").unwrap_or(section))
    })
}

fn give(folder: &Path, name: &str, kind: &[&str], body: &str) {
    let path = folder.join(name.replace("%20", " ").replace("%0A", "\n"));
    match kind {
        [] if body.is_empty() => std::fs::write(path, ""),
        [] => std::fs::write(path, body.to_owned() + "\n"),
        ["json"] => std::fs::write(path, serde_json::from_str::<String>(body).unwrap()),
        ["hex"] => {
            let digits: Vec<u8> = body.bytes().filter(u8::is_ascii_hexdigit).collect();
            let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
            std::fs::write(path, digits.chunks(2).map(byte).collect::<Vec<_>>())
        }
        // Lines of 64 bytes, the last one maybe shorter.
        ["bytes", size] => {
            let size: usize = size.parse().unwrap();
            std::fs::write(path, &("x".repeat(63) + "\n").repeat(size.div_ceil(64))[..size])
        }
        ["folder"] => std::fs::create_dir(path),
        ["hardlink"] => std::fs::hard_link(folder.join(body.trim_end()), path),
        #[cfg(unix)]
        ["link"] => std::os::unix::fs::symlink(body.trim_end().replace("$DIR", &dir(folder)), path),
        #[cfg(unix)]
        ["mode", mode] => {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = u32::from_str_radix(mode, 8).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        }
        #[cfg(unix)]
        ["fifo"] => {
            use rustix::fs::{CWD, FileType, Mode, mknodat};
            mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(Into::into)
        }
        _ => panic!("given what? {kind:?}"),
    }
    .unwrap();
}

/// What an answer says, as sections.
fn told(what: &[&str], answer: &Value) -> Vec<(String, String)> {
    let data = |data: Value| ("data".to_owned(), data.to_string());
    let text = |text: &Value| text.as_str().unwrap().to_owned();
    if let Some(error) = answer.get("error") {
        let fails = (format!("fails {}", error["code"]), text(&error["message"]));
        return [fails].into_iter().chain(error.get("data").cloned().map(data)).collect();
    }
    let result = &answer["result"];
    let Some(is_error) = result.get("isError") else { return vec![data(result.clone())] };
    let known = ["content", "structuredContent", "isError", "_meta"];
    assert!(result.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())));
    let mut structured = result.get("structuredContent").cloned();
    let texts: Vec<_> =
        result["content"].as_array().unwrap().iter().map(|b| text(&b["text"])).collect();
    let mut heads = ["answers".to_owned(), "adds".to_owned()];
    if is_error == true {
        heads = ["fails".to_owned(), "hints".to_owned()];
        // Each channel says everything: what the texts say stands in the structured error too.
        let is_code = structured.as_ref().is_some_and(|data| data["status"] == "failure");
        let error = |mut data: Value| if is_code { data } else { data["error"].take() };
        if let Some(mut error) = structured.take().map(error) {
            let error = error.as_object_mut().unwrap();
            let code = error.remove("code").unwrap();
            write!(heads[0], " {}", code.as_str().map_or(code.to_string(), String::from)).unwrap();
            if is_code {
                assert_eq!(error.remove("status"), Some("failure".into()));
                assert_eq!(error.remove("error"), error.get("message").cloned());
            }
            let is_text = tools::TEXT.iter().any(|entry| what == [entry.name]);
            let prefix = if is_text || is_code { "" } else { "Error: " };
            assert_eq!(prefix.to_owned() + &text(&error.remove("message").unwrap()), texts[0]);
            assert_eq!(error.remove("hint").as_ref().map(text).as_ref(), texts.get(1));
            structured = (!error.is_empty()).then(|| json!(error));
        }
    }
    let meta = result.get("_meta").map(|meta| ("meta".to_owned(), meta.to_string()));
    heads.into_iter().zip(texts).chain(structured.map(data)).chain(meta).collect()
}

/// Each name with what is in it: text as JSON, other bytes as hex, links by target.
type Contents = BTreeMap<String, (&'static str, String)>;

fn snapshot(folder: &Path) -> Contents {
    let describe = |name: String| {
        let path = folder.join(&name);
        let kind = path.symlink_metadata().unwrap().file_type();
        let contents = if kind.is_symlink() {
            ("link", std::fs::read_link(path).unwrap().display().to_string())
        } else if kind.is_dir() {
            ("folder", String::new())
        } else if !kind.is_file() {
            ("no file", String::new())
        } else {
            match String::from_utf8(std::fs::read(path).unwrap()) {
                Ok(text) => ("json", json!(text).to_string()),
                Err(bytes) => ("hex", format!("{:02x?}", bytes.as_bytes())),
            }
        };
        (name, contents)
    };
    names_below(folder, "").into_iter().map(describe).collect()
}

/// Every name in a folder and in those in it.
fn names_below(path: &Path, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let name = prefix.to_owned() + entry.file_name().to_str().unwrap();
        if entry.file_type().unwrap().is_dir() {
            names.extend(names_below(&entry.path(), &format!("{name}/")));
        }
        names.push(name);
    }
    names
}

/// Every file that is not as it was, as sections; of a large one only its size.
fn changed(before: &Contents, after: &Contents) -> Vec<(String, String)> {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let gone = gone.map(|name| (format!("{name} is gone"), String::new()));
    let new = after.iter().filter(|(name, contents)| before.get(*name) != Some(contents));
    let new = new.map(|(name, (kind, body))| match body.len() {
        ..10_000 => (format!("{name} {kind}"), body.clone()),
        size => (format!("{name} {kind} of {size} characters"), String::new()),
    });
    gone.chain(new).collect()
}

fn dir(folder: &Path) -> String {
    folder.display().to_string()
}

/// What nobody could see or foresee, in a form that can be written down.
fn visible(text: &str, folder: &Path) -> String {
    let mut text = text.replace(&dir(folder), "$DIR").replace('\r', "␍");
    let unseen = |c: char| "\u{feff}\u{2028}\u{2029}".contains(c) || c.is_control();
    while let Some(at) = text.find(|c| unseen(c) && c != '\n' && c != '\t') {
        let c = text.remove(at);
        text.insert_str(at, &format!("\\u{:04x}", u32::from(c)));
    }
    let is_time = |window: &[u8]| {
        window.iter().zip(b"0000-00-00T00:00:00Z").all(|(found, wanted)| match wanted {
            b'0' => found.is_ascii_digit(),
            _ => found == wanted,
        })
    };
    while let Some(at) = text.as_bytes().windows(20).position(is_time) {
        text.replace_range(at..at + 20, "$TIME");
    }
    without_durations(&text)
}

/// How long something took is written `$MS`.
fn without_durations(text: &str) -> String {
    let mut text = text.to_owned();
    for (before, after) in [("\"elapsed_ms\":", ""), (" in ", " ms")] {
        let mut from = 0;
        while let Some(at) = text[from..].find(before) {
            let start = from + at + before.len();
            let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 && text[start + digits..].starts_with(after) {
                text.replace_range(start..start + digits, "$MS");
            }
            from = start;
        }
    }
    text
}
