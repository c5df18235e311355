//! What means nothing: bytes by chance, requests with bytes changed by chance, and JSON that is all brackets.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use super::scene::{CONNECTION, PROCESS, Scene, Statuses};
use crate::http::{Client, plain, post, tool};
use crate::report::{Row, Scale};

/// Of JSON that takes few bytes, and hundreds of them in memory.
const UNITS: [&str; 6] = [r#"{"a":0}"#, "[]", "0", "{}", r#""""#, r#"{"":""}"#];

pub fn json_bombs(scale: Scale) -> JoinHandle<Row> {
    let mut scene = Scene::open("10 MB of JSON that is all brackets", &["--timeout=60"], &[]);
    let bytes = 10 << 20;
    let call = |params: String| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
    };
    let mut statuses = Statuses::default();
    let mut slowest = Duration::ZERO;
    for unit in UNITS.iter().take(scale.of(1, UNITS.len())) {
        let items = vec![*unit; bytes / (unit.len() + 1)].join(",");
        let deep = "[".repeat(bytes / 2) + &"]".repeat(bytes / 2);
        let bodies = [
            ("/edit_file", format!(r#"{{"name":"bomb.txt","edits":[{items}]}}"#)),
            ("/read_file", format!(r#"{{"name":"bomb.txt","more":{deep}}}"#)),
            ("/list_files", format!("[{items}]")),
            (
                "/mcp",
                call(format!(
                    r#"{{"name":"edit_file","arguments":{{"name":"bomb.txt","edits":[{items}]}}}}"#
                )),
            ),
            (
                "/mcp",
                call(format!(
                    r#"{{"name":"read_file","_meta":{{"x":[{items}]}},"arguments":{{"name":"a"}}}}"#
                )),
            ),
            (
                "/mcp",
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"_meta":{{"x":[{items}]}}}}}}"#
                ),
            ),
            (
                "/mcp",
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"x":[{items}]}}}}"#
                ),
            ),
            ("/mcp", format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{items}]}}"#)),
            ("/mcp", format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{deep}}}"#)),
        ];
        for (path, body) in bodies.iter().take(scale.of(6, 9)) {
            scene.row.tries += 1;
            let since = Instant::now();
            match scene.server.connect().send(&post(path, "", body)) {
                Ok(answer) if answer.status < 500 => statuses.add(answer.status),
                Ok(answer) => scene.bad(format!("{path} {body:.100}: {}", answer.short())),
                Err(error) => scene.bad(format!("{path} {body:.100}: {error}")),
            }
            slowest = slowest.max(since.elapsed());
        }
    }
    let found = format!("{statuses}, the slowest in {slowest:.1?}");
    // The body, and what the least of it is read into.
    scene.close(found, &[], PROCESS + (64 << 10) + CONNECTION)
}

/// Numbers by chance that are the same in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap_or(0) % limit.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[2]
    }

    /// Bytes that mean nothing, or that begin as if they did.
    fn bytes(&mut self) -> Vec<u8> {
        let beginnings: [&[u8]; 4] = [
            b"",
            b"POST /edit_file HTTP/1.1\r\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n",
            b"\r\n",
        ];
        let mut bytes = beginnings[self.below(beginnings.len())].to_vec();
        for _ in 0..self.below(600) {
            bytes.push(self.byte());
        }
        bytes
    }

    /// A request with something changed, left out, doubled or put in.
    fn mutate(&mut self, mut request: Vec<u8>) -> Vec<u8> {
        for _ in 0..=self.below(4) {
            let at = self.below(request.len());
            let end = (at + self.below(20)).min(request.len());
            match self.below(6) {
                0 => request[at] = self.byte(),
                1 => request[at] ^= 1 << self.below(8),
                2 => drop(request.drain(at..end)),
                3 => {
                    let twice = request[at..end].to_vec();
                    request.splice(at..at, twice);
                }
                4 => {
                    let odd: [&[u8]; 8] = [
                        b"\r\n",
                        b"\0",
                        b"\r\n\r\n",
                        b": ",
                        b"-1",
                        b"\xff\xfe",
                        b"9999999999999999999",
                        b"\n",
                    ];
                    request.splice(at..at, odd[self.below(odd.len())].iter().copied());
                }
                _ => request.truncate(at.max(1)),
            }
            if request.is_empty() {
                break;
            }
        }
        request
    }
}

/// Requests that are in order. None of them may edit, and none that becomes of them.
fn requests() -> Vec<Vec<u8>> {
    let edit = json!({ "name": "garbage.txt", "append": "x", "create_if_missing": true });
    let foreign = |request: Vec<u8>| {
        String::from_utf8(request)
            .unwrap()
            .replace("Host: localhost", "Host: evil.example")
            .into_bytes()
    };
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } },
    });
    let chunked = "POST /list_files HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                   Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    vec![
        plain("read_file", &json!({ "name": "steady.txt", "start_line": 1, "end_line": 2 })),
        plain("list_files", &json!({})),
        tool(1, "read_file", &json!({ "name": "steady.txt" })),
        tool(2, "list_files", &json!({})),
        post("/mcp", "MCP-Protocol-Version: 2025-11-25\r\n", &initialize.to_string()),
        chunked.as_bytes().to_vec(),
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        foreign(plain("edit_file", &edit)),
        foreign(tool(3, "edit_file", &edit)),
    ]
}

/// What came of some of the noise.
#[derive(Default)]
struct Outcome {
    first: Vec<u16>,
    bad: Vec<String>,
}

const WORKERS: u64 = 4;
/// How long an answer is waited for before the client says that nothing more will come.
const BRIEFLY: Duration = Duration::from_millis(5);

pub fn garbage(scale: Scale) -> JoinHandle<Row> {
    let number = scale.of(1500, 20_000) / usize::try_from(WORKERS).unwrap();
    let mut scene = Scene::open("bytes by chance, and requests changed by chance", &[], &[]);
    let (port, mut statuses) = (scene.server.port, Statuses::default());
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (1..=WORKERS).map(|seed| scope.spawn(move || make_noise(port, seed, number))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    for Outcome { first, bad } in outcomes {
        scene.row.tries += first.len();
        for status in first {
            statuses.add(status);
        }
        scene.row.bad.extend(bad);
    }
    scene.close(format!("{statuses}"), &[], PROCESS + 10 * CONNECTION)
}

fn make_noise(port: u16, seed: u64, number: usize) -> Outcome {
    let mut chance = Chance(0x2545_f491_4f6c_dd1d * seed);
    let (requests, mut outcome) = (requests(), Outcome::default());
    for round in 0..number {
        let at = chance.below(requests.len() * 3 / 2);
        let bytes = match requests.get(at) {
            Some(request) => chance.mutate(request.clone()),
            None => chance.bytes(),
        };
        let answers = Client::connect(port).and_then(|mut client| {
            let _ = client.write(&bytes);
            client.stream().set_read_timeout(Some(BRIEFLY))?;
            let _ = client.stream().peek(&mut [0]);
            client.close_writing();
            client.receive_all(Duration::from_secs(30))
        });
        let what = || format!("seed {seed} round {round}, {}", bytes.escape_ascii());
        match answers {
            Ok(answers) => {
                outcome.first.push(answers.first().map_or(0, |answer| answer.status));
                let failures = answers.iter().filter(|answer| answer.status >= 500);
                outcome
                    .bad
                    .extend(failures.map(|answer| format!("{}: {}", what(), answer.short())));
            }
            Err(error) => outcome.bad.push(format!("{}: {error}", what())),
        }
    }
    outcome
}
