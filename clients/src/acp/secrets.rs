//! What nobody else may learn: the token that opens a session's tools; and where they can be reached.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use serde_json::json;

use super::Scenario;
use super::editor::{Editor, Manners};
use super::mind::{BOTH, CLASSIC};
use super::stage::{Stage, Talk};
use super::strangers::in_place_of_codex;
use crate::codex::ensure;
use crate::codex::program::working_in;
use crate::{Outcome, Trouble};

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "the token is in no command line, no variable and no file, and opens nothing afterwards",
        minds: BOTH,
        play: token,
    },
    Scenario { name: "a proxy that leads nowhere is no hindrance", minds: CLASSIC, play: proxy },
];

/// What is between two texts.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.split_once(start)?.1.split_once(end).map(|(found, _)| found)
}

/// A Codex that writes down what it is told, outside its home and the folder.
fn overheard(stage: &Stage, aside: &Path) -> Outcome<String> {
    let (codex, heard) = (stage.cast.codex.display(), aside.display());
    let script = format!(
        "case $1 in --version) exec {codex} \"$@\";; *) tee {heard}/wire | {codex} \"$@\";; esac"
    );
    in_place_of_codex(stage, &script)
}

fn token(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("a.txt");
    let script = stage
        .script()
        .call("write_text_file", json!({ "path": path, "content": "text\n" }))
        .shell("env")
        .say("Done.");
    stage.think(script)?;
    let aside = tempfile::tempdir()?;
    let mut command = stage.program(&stage.cast.agent);
    command.env("CODEX_BIN", overheard(stage, aside.path())?);
    let editor = Editor::start(&mut command, Manners::default())?;
    editor.initialize()?;
    let talk = Talk::new(editor, &json!({ "cwd": stage.folder(), "mcpServers": [] }))?;
    talk.work()?;
    let told = fs::read_to_string(aside.path().join("wire"))?;
    let wrong = |what: &str| Trouble::Wrong(format!("{what} is not in what Codex is told\n{told}"));
    let token = between(&told, "Bearer ", "\"").ok_or_else(|| wrong("a token"))?;
    ensure(token.len() >= 32, || format!("{token} can be guessed"))?;
    let address = between(&told, "\"http://", "/").ok_or_else(|| wrong("an address"))?;

    for (id, name) in working_in(stage.home()) {
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
            let known = String::from_utf8_lossy(&bytes).contains(token);
            ensure(!known, || format!("{name} has the token in its {file}"))?;
        }
    }
    ensure(address.starts_with("127.0.0.1:"), || format!("the tools are at {address}"))?;
    #[cfg(target_os = "linux")]
    only_here(talk.editor.agent())?;
    for header in ["", "Authorization: Bearer wrong\r\n"] {
        let status = post(address, header)?;
        ensure(status.contains(" 401 "), || format!("let in without a token: {status}"))?;
    }
    let right = format!("Authorization: Bearer {token}\r\n");
    let status = post(address, &right)?;
    ensure(!status.contains(" 401 "), || format!("not let in with the token: {status}"))?;
    // A page in a browser must not get in, whatever it knows.
    let status = post(address, &format!("{right}Origin: https://example.com\r\n"))?;
    ensure(status.contains(" 403 "), || format!("a foreign page is answered {status}"))?;
    talk.editor.ask("session/close", json!({ "sessionId": talk.session }))?;
    let status = post(address, &right)?;
    ensure(status.contains(" 401 "), || format!("still open after the end: {status}"))?;
    let wire = talk.close()?;
    ensure(!format!("{:?}", wire.0).contains(token), || "the editor was told the token".into())?;
    for folder in [stage.home(), stage.folder()] {
        nowhere_below(folder, token.as_bytes())?;
    }
    Ok(())
}

/// The first line of the answer to a request.
fn post(address: &str, headers: &str) -> Outcome<String> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n{body}"
    );
    let mut answer = String::new();
    let answered = TcpStream::connect(address).and_then(|mut stream| {
        stream.write_all(request.as_bytes())?;
        stream.read_to_string(&mut answer)
    });
    answered.map_err(|e| Trouble::Wrong(format!("{address}: {e}")))?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

/// All sockets on which the process listens are for this machine alone.
#[cfg(target_os = "linux")]
fn only_here(id: u32) -> Outcome<()> {
    let open = fs::read_dir(format!("/proc/{id}/fd"))?.flatten();
    let open: BTreeSet<_> = open.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
    let mut listening = 0;
    for (table, loopback) in [("tcp", "0100007F:"), ("tcp6", "00000000000000000000000001000000:")] {
        let rows = fs::read_to_string(format!("/proc/{id}/net/{table}")).unwrap_or_default();
        for row in rows.lines().skip(1) {
            let words: Vec<_> = row.split_whitespace().collect();
            let socket = format!("socket:[{}]", words.get(9).copied().unwrap_or_default());
            if words.get(3) == Some(&"0A") && open.contains(Path::new(&socket)) {
                listening += 1;
                ensure(words[1].starts_with(loopback), || format!("it listens on {}", words[1]))?;
            }
        }
    }
    ensure(listening == 1, || format!("it listens on {listening} sockets"))
}

fn nowhere_below(folder: &Path, needle: &[u8]) -> Outcome<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            nowhere_below(&path, needle)?;
        } else if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let bytes = fs::read(&path).unwrap_or_default();
            let found = bytes.windows(needle.len()).any(|part| part == needle);
            ensure(!found, || format!("the token is in {}", path.display()))?;
        }
    }
    Ok(())
}

fn proxy(stage: &mut Stage) -> Outcome<()> {
    let path = stage.path("a.txt");
    let script =
        stage.script().call("read_text_file", json!({ "path": path })).saw("here").say("Done.");
    stage.think(script)?;
    let mut command = stage.agent(&[]);
    // The model is on this machine, too: Codex finds it only because the agent excepts this machine.
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
        command.env(name, "http://127.0.0.1:9");
    }
    command.env("NO_PROXY", "example.com");
    let editor = Editor::start(&mut command, Manners::default())?;
    editor.initialize()?;
    let talk = Talk::new(editor, &json!({ "cwd": stage.folder(), "mcpServers": [] }))?;
    talk.editor.open(&path, "here\n");
    talk.work()?;
    talk.close().map(drop)
}
