//! Plays the case files of `cases/`: in process and on stdio, same file, same answer.
//!
//! A case is a sentence, then sections. `given` lays out the folder, `when` calls a tool (or, `when method`, a
//! plain method), and everything after it is what came back, complete: texts, data, and every file that is not
//! as it was. `UPDATE=1 cargo test --test cases` rewrites what came back, never what was given.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use files::{Call, DiskOptions, DiskStore, Durability, LineCounts, Root};
use harness::{Folder, Server};
use serde_json::{Map, Value, json};
use tools::{Context, Entry, Failure, Limits, Reply};

/// What one call came back with, whatever carried it.
#[derive(Default)]
struct Outcome {
    texts: Vec<String>,
    data: Option<Value>,
    /// Code, and the hint or the data of a JSON-RPC error.
    error: Option<i64>,
}

trait Player {
    fn call(&mut self, tool: &str, arguments: Value) -> Outcome;
    fn call_method(&mut self, method: &str, arguments: Value) -> Outcome;
}

#[test]
fn every_case_in_process() {
    play_all(&mut |folder, flags| {
        let max_size = match flags {
            [] => 10,
            [flag] => flag.strip_prefix("--max-size=")?.parse().ok()?,
            _ => return None,
        };
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let max_size: u64 = max_size << 20;
        let options = DiskOptions { max_size, durability: Durability::None };
        let store = DiskStore::open(Arc::clone(&root), options);
        let limits = Limits::new(max_size, Duration::from_secs(10));
        Some(Box::new(InProcess { root, store, limits, counts: LineCounts::default() }))
    });
}

#[test]
fn every_case_on_stdio() {
    play_all(&mut |folder, flags| Some(Box::new(folder.serve_with(flags))));
}

/// `start` gives `None` for flags that mean nothing to its player.
fn play_all(start: &mut dyn FnMut(&Folder, &[&str]) -> Option<Box<dyn Player>>) {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let (mut played, mut wrong) = (0, Vec::new());
    for folder in std::fs::read_dir(cases).unwrap() {
        for case in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = case.unwrap().path();
            let expected = std::fs::read_to_string(&path).unwrap();
            let Some(found) = play(&expected, start) else { continue };
            played += 1;
            if found == expected {
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
    assert!(played > 50, "only {played} cases were found");
}

fn play(
    case: &str,
    start: &mut dyn FnMut(&Folder, &[&str]) -> Option<Box<dyn Player>>,
) -> Option<String> {
    let folder = Folder::new();
    let mut sections = case.split("\n--- ");
    let mut shown = sections.next().unwrap().to_owned();
    let mut flags: Vec<&str> = Vec::new();
    let mut player: Option<Box<dyn Player>> = None;
    for section in sections {
        let (head, body) = section.split_once('\n').unwrap_or((section, ""));
        let mut words = head.split(' ');
        match words.next().unwrap() {
            "flags" => flags.extend(body.split_whitespace()),
            "given" => give(&folder, &words.collect::<Vec<_>>(), body),
            "when" => {
                if player.is_none() {
                    player = Some(start(&folder, &flags)?);
                }
                let player = player.as_mut().unwrap();
                let before = snapshot(&folder);
                let arguments = folder_name(body, "$DIR", &folder);
                let arguments = serde_json::from_str(&arguments).expect(case);
                let outcome = match words.collect::<Vec<_>>()[..] {
                    ["method", method] => player.call_method(method, arguments),
                    [tool] => player.call(tool, arguments),
                    _ => panic!("when what? {head}"),
                };
                write!(shown, "\n--- {section}").unwrap();
                shown = shown.trim_end_matches('\n').to_owned();
                shown.push_str(&show(&outcome, &folder, &before));
                continue;
            }
            "then" => continue,
            _ => panic!("unknown section {head}"),
        }
        write!(shown, "\n--- {section}").unwrap();
    }
    Some(shown.trim_end_matches('\n').to_owned() + "\n")
}

fn give(folder: &Folder, words: &[&str], body: &str) {
    let path = folder.file(words[0]);
    match words[1..] {
        [] => std::fs::write(path, body.to_owned() + if body.is_empty() { "" } else { "\n" }),
        ["json"] => std::fs::write(path, serde_json::from_str::<String>(body).unwrap()),
        ["hex"] => {
            let digits: Vec<u8> = body.bytes().filter(u8::is_ascii_hexdigit).collect();
            let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
            std::fs::write(path, digits.chunks(2).map(byte).collect::<Vec<_>>())
        }
        ["megabytes", size] => {
            let bytes = size.parse::<f64>().unwrap() * f64::from(1 << 20);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            std::fs::write(path, "x".repeat(bytes as usize))
        }
        ["folder"] => std::fs::create_dir(path),
        #[cfg(unix)]
        ["link"] => std::os::unix::fs::symlink(body.trim_end(), path),
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
        _ => panic!("given what? {words:?}"),
    }
    .unwrap();
}

/// Each name with what is in it: text as JSON, other bytes as hex, links and folders by name.
fn snapshot(folder: &Folder) -> BTreeMap<String, String> {
    let describe = |name: &String| {
        let path = folder.file(name);
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_symlink() {
            return format!("link\n{}", std::fs::read_link(path).unwrap().display());
        }
        if !kind.is_file() {
            return "no file".into();
        }
        match String::from_utf8(std::fs::read(path).unwrap()) {
            Ok(text) => format!("json\n{}", json!(text)),
            Err(bytes) => bytes.into_bytes().iter().fold("hex\n".into(), |mut text, byte| {
                write!(text, "{byte:02x}").unwrap();
                text
            }),
        }
    };
    folder.names().into_iter().map(|name| (name.clone(), describe(&name))).collect()
}

fn show(outcome: &Outcome, folder: &Folder, before: &BTreeMap<String, String>) -> String {
    let mut shown = String::new();
    let mut section = |head: String, body: &str| {
        let body = if body.is_empty() { String::new() } else { format!("\n{body}") };
        write!(shown, "\n--- then {head}{body}").unwrap();
    };
    let heads = match outcome.error {
        Some(code) => [format!("fails {code}"), "hints".into()],
        None => ["answers".into(), "adds".into()],
    };
    for (index, text) in outcome.texts.iter().enumerate() {
        section(heads[index.min(1)].clone(), &mask_times(&folder_name(text, "", folder)));
    }
    if let Some(data) = &outcome.data {
        section("data".into(), &mask_times(&folder_name(&data.to_string(), "", folder)));
    }
    let after = snapshot(folder);
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        section(format!("{name} is gone"), "");
    }
    for (name, contents) in &after {
        if before.get(name) != Some(contents) {
            let (kind, body) = contents.split_once('\n').unwrap_or((contents, ""));
            section(format!("{name} {kind}"), body);
        }
    }
    shown
}

/// `$DIR` for the folder, both ways: into it when `from` is given, back out of it otherwise.
fn folder_name(text: &str, from: &str, folder: &Folder) -> String {
    let path = folder.path().display().to_string();
    if from.is_empty() { text.replace(&path, "$DIR") } else { text.replace(from, &path) }
}

/// Times of change are whatever they are; that they look right is part of the case.
fn mask_times(text: &str) -> String {
    let pattern = |window: &[u8]| {
        window.iter().zip(b"0000-00-00T00:00:00Z").all(|(found, wanted)| match wanted {
            b'0' => found.is_ascii_digit(),
            _ => found == wanted,
        })
    };
    let mut masked = text.to_owned();
    while let Some(at) = masked.as_bytes().windows(20).position(pattern) {
        masked.replace_range(at..at + 20, "$TIME");
    }
    masked
}

struct InProcess {
    root: Arc<Root>,
    store: DiskStore,
    limits: Limits,
    counts: LineCounts,
}

impl InProcess {
    fn run(&self, entry: &'static Entry, arguments: Value) -> Result<Reply, Failure> {
        let call = Call::until(Instant::now() + self.limits.timeout);
        entry.prepare(arguments)?.run(&Context {
            root: &self.root,
            store: &self.store,
            line_counts: &self.counts,
            limits: &self.limits,
            call: &call,
        })
    }
}

impl Player for InProcess {
    fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        let entry = tools::FLAT.iter().find(|entry| entry.name == tool).unwrap();
        match self.run(entry, arguments) {
            Ok(reply) => Outcome {
                texts: reply.blocks.iter().map(ToString::to_string).collect(),
                data: reply.data.map(Value::Object),
                error: None,
            },
            Err(failure) => Outcome {
                texts: [Some(server::fault::text(entry.dialect, &failure)), failure.hint.clone()]
                    .into_iter()
                    .flatten()
                    .collect(),
                data: None,
                error: Some(server::fault::code(failure.kind).number.into()),
            },
        }
    }

    fn call_method(&mut self, method: &str, arguments: Value) -> Outcome {
        let entry = tools::PLAIN.iter().find(|entry| entry.name == method).unwrap();
        match self.run(entry, arguments) {
            Ok(reply) => {
                let mut data = Map::new();
                data.extend(reply.blocks.first().map(|b| ("content".into(), b.to_string().into())));
                data.extend(reply.data.unwrap_or_default());
                Outcome { data: Some(data.into()), ..Outcome::default() }
            }
            Err(failure) => {
                let (code, message, data) = server::fault::json_rpc(entry, &failure);
                Outcome { texts: vec![message], data: Some(data), error: Some(code.into()) }
            }
        }
    }
}

impl Player for Server {
    fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        let answer = self.tool(tool, arguments);
        let (result, error) = (&answer["result"], &answer["error"]);
        if !error.is_null() {
            return json_rpc_error(error);
        }
        let texts: Vec<String> = result["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["text"].as_str().unwrap().to_owned())
            .collect();
        let structured = result.get("structuredContent").cloned();
        if result["isError"] == false {
            return Outcome { texts, data: structured, error: None };
        }
        // Each channel says everything: the texts and the structured error are the same facts.
        let error = &structured.as_ref().unwrap()["error"];
        assert_eq!(format!("Error: {}", error["message"].as_str().unwrap()), texts[0]);
        assert_eq!(error["hint"].as_str(), texts.get(1).map(String::as_str));
        Outcome { texts, data: None, error: error["code"].as_i64() }
    }

    fn call_method(&mut self, method: &str, arguments: Value) -> Outcome {
        let answer = self.request(method, arguments);
        match answer.get("error") {
            Some(error) => json_rpc_error(error),
            None => Outcome { data: Some(answer["result"].clone()), ..Outcome::default() },
        }
    }
}

fn json_rpc_error(error: &Value) -> Outcome {
    Outcome {
        texts: vec![error["message"].as_str().unwrap().to_owned()],
        data: error.get("data").cloned(),
        error: error["code"].as_i64(),
    }
}
