//! Those who call: each a short visit, over and over.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::book::{Fate, file_of, line};
use super::others;
use super::scene::{FLAGS, LARGE, SOURCES, Scene, are_lines, code, count, is_whole, whole_text};
use super::weather::Since;
use crate::chance::Chance;
use crate::http::{Client, plain, post};
use crate::report::Row;
use crate::server::{Answer, HANG, NoAnswer, Server};

pub type Worker = (&'static str, fn(&Scene, &mut Chance));

pub const WORKERS: &[Worker] = &[
    ("appends by REST", append_by_rest),
    ("appends by MCP", append_by_mcp),
    ("appends on stdio", append_on_stdio),
    ("appends on stdio, killed", append_and_kill),
    ("appends on stdio, taken back", append_and_cancel),
    ("reads of large files", read_large),
    ("reads that are slow", read_slowly),
    ("writes of large files", write_large),
    ("code tools", use_code_tools),
    ("listings", list),
    ("hang-ups", hang_up),
    ("sessions", hold_session),
    ("noise", make_noise),
    ("others", others::change_files),
    ("faults of the disk", others::break_disk),
];

/// An answer, and when it was asked for.
struct Told {
    since: Since,
    answer: Value,
}

/// Every kind of call once: what it makes for good is there after that.
pub fn once_each(scene: &Scene) {
    let mut chance = Chance::new(77);
    for _ in 0..3 {
        for work in [append_by_rest, append_by_mcp, read_large, write_large, list, hold_session] {
            work(scene, &mut chance);
        }
    }
    let Some(mut client) = scene.connect() else { return };
    for (name, _) in SOURCES {
        let arguments = json!({ "files": [format!("sources/{name}")] });
        call(scene, &mut client, "ai_get_code_context", &arguments, true);
        edit_source(scene, &mut client, name, 0);
    }
}

/// A request of MCP, as clients of one era or the other make it.
fn mcp(tool: &str, arguments: &Value, is_new: bool) -> Vec<u8> {
    let mut params = json!({ "name": tool, "arguments": arguments });
    let mut headers = "MCP-Protocol-Version: 2025-06-18\r\n\
                       Accept: application/json, text/event-stream\r\n"
        .to_owned();
    if is_new {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "faults", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    post("/mcp", &headers, &message.to_string())
}

/// A call by MCP over HTTP; nothing if there was no answer that could be read.
fn call(
    scene: &Scene,
    client: &mut Client,
    tool: &str,
    arguments: &Value,
    is_new: bool,
) -> Option<Told> {
    count(&scene.calls);
    let since = scene.weather.now();
    match client.send(&mcp(tool, arguments, is_new)) {
        Ok(answer) if answer.status == 200 => Some(Told { since, answer: answer.json() }),
        Ok(answer) => {
            scene.bad(format!("{tool}: {}", answer.short()));
            None
        }
        Err(why) => {
            scene.bad(format!("{tool}: no answer: {why}"));
            None
        }
    }
}

/// Whether it was done. It is refused only for the disk's sake, while there is something the matter with it, or for a
/// lock that many want.
fn is_done(scene: &Scene, what: &str, Told { since, answer }: &Told) -> bool {
    let is_refused = answer.get("error").is_some() || answer["result"]["isError"] == true;
    if is_refused {
        count(&scene.refusals);
        let code = code(answer).unwrap_or_default();
        let is = |number: i64, name: &str| code == number || code == name;
        let is_of_the_disk = is(-32005, "DISK_FULL") || is(-32002, "PERMISSION_DENIED");
        let is_fair = scene.weather.was_fair(*since);
        if !is(-32014, "TIMED_OUT") && (!is_of_the_disk || is_fair) {
            let disk = if is_fair { "a healthy" } else { "an ailing" };
            scene.bad(format!("{what}, on {disk} disk: {answer:.500}"));
        }
    }
    !is_refused
}

/// What became of an append that was answered.
fn note(scene: &Scene, token: usize, told: &Told) -> Fate {
    let is_done = is_done(scene, "an append", told);
    let fate = if is_done { Fate::Acknowledged } else { Fate::Refused };
    scene.book.note(token, fate);
    fate
}

/// The same of one to the server that lives through it all.
fn note_lasting(scene: &Scene, token: usize, told: &Told) -> Fate {
    let fate = note(scene, token, told);
    count(if fate == Fate::Acknowledged { &scene.acknowledged } else { &scene.refused });
    fate
}

/// There was no answer, though nobody had ended the server.
fn note_silence(scene: &Scene, token: usize, why: NoAnswer) {
    scene.bad(format!("a server on stdio, at append {token}: {why:?}"));
}

fn append(token: usize) -> Value {
    json!({ "name": file_of(token), "append": line(token), "create_if_missing": true })
}

fn pause(chance: &mut Chance, milliseconds: u64) {
    std::thread::sleep(chance.duration(Duration::from_millis(milliseconds)));
}

/// What became of an append by REST, if it was answered.
fn append_once(scene: &Scene, client: &mut Client) -> Option<Fate> {
    let (token, since) = (scene.book.next(), scene.weather.now());
    count(&scene.calls);
    match client.send(&plain("edit_file", &append(token))) {
        Ok(answer) if answer.status == 200 => {
            let answer = as_message(&answer.json());
            Some(note_lasting(scene, token, &Told { since, answer }))
        }
        other => {
            scene.bad(format!("an append by REST: {other:?}"));
            None
        }
    }
}

/// What a plain method answered over HTTP, as JSON-RPC has it.
fn as_message(body: &Value) -> Value {
    let is_refused = body["isError"] == true;
    if is_refused { json!({ "error": body["error"] }) } else { json!({ "result": body }) }
}

fn append_by_rest(scene: &Scene, chance: &mut Chance) {
    let Some(mut client) = scene.connect() else { return };
    for _ in 0..30 {
        if append_once(scene, &mut client).is_none() {
            return;
        }
        pause(chance, 10);
    }
}

/// While all rest, nothing is the matter with the disk: whatever it was before, it is no reason any more.
pub fn append_at_rest(scene: &Scene, row: &mut Row) {
    let fate = scene.connect().and_then(|mut client| append_once(scene, &mut client));
    row.check(fate == Some(Fate::Acknowledged), || format!("an append while all rest: {fate:?}"));
}

fn append_by_mcp(scene: &Scene, chance: &mut Chance) {
    let Some(mut client) = scene.connect() else { return };
    let is_new = chance.below(2) == 0;
    for _ in 0..30 {
        let token = scene.book.next();
        match call(scene, &mut client, "edit_file", &append(token), is_new) {
            Some(told) => _ = note_lasting(scene, token, &told),
            None => return,
        }
        pause(chance, 10);
    }
}

/// On a server of its own; nothing, after a while, if the disk does not let it start.
fn serve(scene: &Scene) -> Option<Server> {
    let since = scene.weather.now();
    let mut server = Server::start_quietly(&scene.root, FLAGS);
    let answer = server.request("ping", &json!({})).and_then(|_| server.receive(HANG));
    if let Err(why) = answer {
        if why == NoAnswer::Late || scene.weather.was_fair(since) {
            scene.bad(format!("a server on stdio does not start: {why:?}"));
        }
        std::thread::sleep(Duration::from_millis(50));
        return None;
    }
    Some(server)
}

fn append_on_stdio(scene: &Scene, chance: &mut Chance) {
    let Some(mut server) = serve(scene) else { return };
    for _ in 0..60 {
        let (token, since) = (scene.book.next(), scene.weather.now());
        count(&scene.calls);
        let answer = match chance.below(2) {
            0 => server.call("edit_file", &append(token)),
            _ => server.method("edit_file", &append(token)),
        };
        match answer {
            Ok(Answer(answer)) => _ = note(scene, token, &Told { since, answer }),
            Err(why) => return note_silence(scene, token, why),
        }
        pause(chance, 10);
    }
}

fn append_and_kill(scene: &Scene, chance: &mut Chance) {
    let Some(mut server) = serve(scene) else { return };
    for _ in 0..10 {
        let (token, since) = (scene.book.next(), scene.weather.now());
        count(&scene.calls);
        let mut is_killed = false;
        let soon = chance.duration(Duration::from_millis(2));
        let answer = match server.send("edit_file", &append(token)) {
            Ok(_) => server.receive(soon),
            Err(why) => Err(why),
        };
        let answer = match answer {
            Err(NoAnswer::Late) => {
                is_killed = chance.below(3) == 0;
                if is_killed {
                    server.kill();
                    count(&scene.kills);
                }
                // It may have answered in its last moment.
                server.receive(HANG)
            }
            answer => answer,
        };
        match answer {
            Ok(Answer(answer)) => _ = note(scene, token, &Told { since, answer }),
            Err(_) if is_killed => return,
            Err(why) => return note_silence(scene, token, why),
        }
        if is_killed {
            return;
        }
    }
    server.kill();
    count(&scene.kills);
}

/// Many at once, some of them taken back; all others are answered before the server ends.
fn append_and_cancel(scene: &Scene, chance: &mut Chance) {
    let Some(mut server) = serve(scene) else { return };
    let since = scene.weather.now();
    let (mut open, mut taken_back) = (BTreeMap::new(), BTreeSet::new());
    for _ in 0..20 {
        let token = scene.book.next();
        count(&scene.calls);
        let sent = server.send("edit_file", &append(token)).and_then(|id| {
            open.insert(id, token);
            if chance.below(2) == 0 {
                pause(chance, 1);
                taken_back.insert(id);
                server.cancel(id)?;
            }
            Ok(())
        });
        if let Err(why) = sent {
            return note_silence(scene, token, why);
        }
    }
    server.close_input();
    let end = loop {
        match server.receive(HANG) {
            Ok(Answer(answer)) => match answer["id"].as_i64().and_then(|id| open.remove(&id)) {
                Some(token) => _ = note(scene, token, &Told { since, answer }),
                None => scene.bad(format!("an answer that nobody asked for: {answer:.300}")),
            },
            Err(end) => break end,
        }
    };
    if end == NoAnswer::Late {
        scene.bad("a server on stdio does not end with its input");
    }
    for (_, token) in open.into_iter().filter(|(id, _)| !taken_back.contains(id)) {
        scene.bad(format!("append {token} was neither answered nor taken back"));
    }
}

fn large(chance: &mut Chance) -> &'static str {
    LARGE[usize::try_from(chance.below(LARGE.len() as u64)).unwrap()]
}

fn read_large(scene: &Scene, chance: &mut Chance) {
    let Some(mut client) = scene.connect() else { return };
    for _ in 0..4 {
        let name = large(chance);
        if chance.below(2) == 0 {
            let arguments = json!({ "path": scene.root.join(name) });
            let told = call(scene, &mut client, "read_text_file", &arguments, true);
            let Some(told) = told else { return };
            let text = told.answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
            if is_done(scene, "a large read", &told) && !is_whole(text) {
                scene.bad(format!("{name} was read in part: {} bytes", text.len()));
            }
        } else {
            count(&scene.calls);
            let since = scene.weather.now();
            let range = json!({ "name": name, "start_line": 100, "end_line": 200 });
            let answer = match client.send(&plain("read_file", &range)) {
                Ok(answer) if answer.status == 200 => as_message(&answer.json()),
                other => return scene.bad(format!("lines of {name}: {other:?}")),
            };
            let told = Told { since, answer };
            let text = told.answer["result"]["content"].as_str().unwrap_or_default();
            if is_done(scene, "lines of a large file", &told) && !are_lines(text, 101) {
                scene.bad(format!("other lines of {name}: {text:.500}"));
            }
        }
    }
    pause(chance, 50);
}

/// Takes a little of a large answer, slowly, and goes.
fn read_slowly(scene: &Scene, chance: &mut Chance) {
    let Some(client) = scene.connect() else { return };
    let arguments = json!({ "path": scene.root.join(large(chance)) });
    count(&scene.calls);
    if client.write(&mcp("read_text_file", &arguments, false)).is_err() {
        return scene.bad("a slow reader was not let in");
    }
    let mut part = [0; 4096];
    for _ in 0..chance.below(20) {
        pause(chance, 100);
        if client.stream().read(&mut part).is_err() {
            break;
        }
    }
    count(&scene.hang_ups);
}

fn write_large(scene: &Scene, chance: &mut Chance) {
    let Some(mut client) = scene.connect() else { return };
    for _ in 0..3 {
        // Never so small that a reader of lines would not find them.
        let size = (16 << 10) + usize::try_from(chance.below(4 << 20)).unwrap();
        let content = whole_text(chance.below(1 << 40), size);
        let arguments = json!({ "path": scene.root.join(large(chance)), "content": content });
        let is_new = chance.below(2) == 0;
        match call(scene, &mut client, "write_text_file", &arguments, is_new) {
            Some(told) => _ = is_done(scene, "a large write", &told),
            None => return,
        }
    }
    pause(chance, 50);
}

/// Puts another note into the second line of a source.
fn edit_source(scene: &Scene, client: &mut Client, name: &str, number: u64) {
    let note = match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "py" | "rb" => format!("  # note {number}"),
        "css" | "c" => format!("  /* note {number} */"),
        "json" => format!("  \"note\": {number},"),
        _ => format!("// note {number}"),
    };
    let note = if name.ends_with("py") { format!("  {note}") } else { note };
    let arguments = json!({
        "target_file": format!("sources/{name}"),
        "edit_instruction": "another note",
        "start_line": 2,
        "code_block": note,
    });
    if let Some(told) = call(scene, client, "ai_edit_code", &arguments, true) {
        is_done(scene, "an edit of a source", &told);
    }
}

fn use_code_tools(scene: &Scene, chance: &mut Chance) {
    let Some(mut client) = scene.connect() else { return };
    for _ in 0..6 {
        let (name, _) = SOURCES[usize::try_from(chance.below(SOURCES.len() as u64)).unwrap()];
        let (tool, arguments) = match chance.below(4) {
            0 => ("search_files", json!({ "pattern": "total", "path": "sources" })),
            1 => ("search_files", json!({ "pattern": "of many [a-z]+", "max_results": 20 })),
            2 => ("ai_get_code_context", json!({ "query": "where is the total of two numbers" })),
            _ => ("ai_get_code_context", json!({ "files": [format!("sources/{name}")] })),
        };
        let Some(told) = call(scene, &mut client, tool, &arguments, chance.below(2) == 0) else {
            return;
        };
        is_done(scene, tool, &told);
        edit_source(scene, &mut client, name, chance.below(1000));
    }
    pause(chance, 50);
}

fn list(scene: &Scene, chance: &mut Chance) {
    let Some(mut client) = scene.connect() else { return };
    for _ in 0..10 {
        match call(scene, &mut client, "list_files", &json!({}), chance.below(2) == 0) {
            Some(told) => _ = is_done(scene, "a listing", &told),
            None => return,
        }
        pause(chance, 20);
    }
}

/// Asks for something, and is gone before the answer.
fn hang_up(scene: &Scene, chance: &mut Chance) {
    for _ in 0..10 {
        let Some(client) = scene.connect() else { return };
        count(&scene.calls);
        count(&scene.hang_ups);
        let request = if chance.below(2) == 0 {
            let token = scene.book.next();
            mcp("edit_file", &append(token), chance.below(2) == 0)
        } else {
            mcp("read_text_file", &json!({ "path": scene.root.join(large(chance)) }), false)
        };
        let part = match chance.below(4) {
            0 => usize::try_from(chance.below(request.len() as u64)).unwrap(),
            _ => request.len(),
        };
        let _ = client.write(&request[..part]);
        pause(chance, 4);
    }
}

/// A client that can ask its user: it has a session, is asked before an edit, and goes without an answer.
fn hold_session(scene: &Scene, chance: &mut Chance) {
    let Some(mut client) = scene.connect() else { return };
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "faults", "version": "1" },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let accept = "Accept: application/json, text/event-stream\r\n";
    count(&scene.calls);
    let session = match client.send(&post("/mcp", accept, &message.to_string())) {
        Ok(answer) => answer.header("mcp-session-id").map(String::from),
        Err(why) => return scene.bad(format!("no session: {why}")),
    };
    let Some(session) = session else { return scene.bad("no session for a client that can ask") };
    let headers =
        format!("{accept}MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {session}\r\n");
    let params = json!({ "name": "write_text_file", "arguments": {
        "path": scene.root.join("never.txt"), "content": "never" } });
    let message = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    count(&scene.calls);
    let _ = client.write(&post("/mcp", &headers, &message.to_string()));
    pause(chance, 30);
    drop(client);
    count(&scene.hang_ups);
    let Some(mut client) = scene.connect() else { return };
    let end = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: {session}\r\n\
         MCP-Protocol-Version: 2025-06-18\r\n\r\n"
    );
    let _ = client.send(end.as_bytes());
    pause(chance, 50);
}

/// What no client would send.
fn make_noise(scene: &Scene, chance: &mut Chance) {
    let noise: &[&[u8]] = &[
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: elsewhere\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"broken\"",
        b"POST /edit_file HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900000000\r\n\r\n{",
        b"POST /read_file HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{\"name\":\"../../etc\"} ",
        b"BREW / HTTP/1.1\r\n",
    ];
    for _ in 0..10 {
        let Some(mut client) = scene.connect() else { return };
        let which = usize::try_from(chance.below(noise.len() as u64)).unwrap();
        let _ = client.write(noise[which]);
        count(&scene.calls);
        if chance.below(2) == 0 {
            client.close_writing();
            let _ = client.receive_all(Duration::from_secs(5));
        }
        pause(chance, 10);
    }
}
