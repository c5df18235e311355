//! Requests that are framed wrongly, or that come in ways in which no client sends them.

use std::fmt::Write as _;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::json;

use super::scene::{CONNECTION, PROCESS, Scene, Statuses};
use crate::http::{Answer, Client, plain, post, tool};
use crate::report::{Row, Scale, grouped};

/// Longer than the server waits for anything that a client has begun.
const PATIENCE: Duration = Duration::from_secs(40);

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is refused, or the connection is closed without a word.
    Refused,
    /// It is answered as what it is.
    Taken,
    /// Either, but once: there is nothing after it.
    Once,
}

/// An edit that must never be made, as a request of its own.
fn smuggled() -> String {
    let body = json!({ "name": "smuggled.txt", "append": "x", "create_if_missing": true });
    String::from_utf8(plain("edit_file", &body)).unwrap()
}

/// The body of such an edit.
fn edit() -> String {
    json!({ "name": "smuggled.txt", "append": "x", "create_if_missing": true }).to_string()
}

/// A request to edit with these headers, whole lines, and with these bytes after them.
fn framed(headers: &str, rest: &str) -> Vec<u8> {
    format!(
        "POST /edit_file HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         {headers}\r\n{rest}"
    )
    .into_bytes()
}

fn chunked(rest: &str) -> Vec<u8> {
    framed("Transfer-Encoding: chunked\r\n", rest)
}

fn chunk(size: &str, data: &str) -> String {
    format!("{size}\r\n{data}\r\n0\r\n\r\n")
}

/// What is wrong, the bytes, and what must come of them.
type Case = (&'static str, Vec<u8>, Fate);

const MEGABYTE: usize = 1 << 20;

/// What follows a request that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Nothing, as if more were to come.
    Silence,
    /// The client says that it has said all.
    End,
}

fn chunks() -> Vec<Case> {
    let edit = edit();
    let size = format!("{:x}", edit.len());
    let big = "x".repeat(MEGABYTE);
    let sized = |size: &str| chunked(&chunk(size, &edit));
    let raw = |rest: &str| chunked(rest);
    let cases = [
        ("chunk size of letters", sized("zz")),
        ("chunk size beyond 64 bits", sized("FFFFFFFFFFFFFFFFF")),
        ("chunk size of almost 64 bits", sized("fffffffffffffff0")),
        ("negative chunk size", sized("-5")),
        ("chunk size with a plus", sized(&format!("+{size}"))),
        ("chunk size with 0x", sized(&format!("0x{size}"))),
        ("no chunk size", sized("")),
        ("chunk size of blanks", sized("  ")),
        ("chunk longer than its size", sized("5")),
        ("chunk extension of 1 MB", sized(&format!("{size};a={big}"))),
        ("line feed in a chunk extension", sized(&format!("{size};a\nb"))),
        ("no line break after a chunk", raw(&format!("{size}\r\n{edit}0\r\n\r\n"))),
        ("line feed alone after a chunk size", raw(&format!("{size}\n{edit}\r\n0\r\n\r\n"))),
        ("many chunk extensions", raw(&"1;aaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n \r\n".repeat(50_000))),
        ("trailers of 1 MB", raw(&format!("{size}\r\n{edit}\r\n0\r\nX: {big}\r\n\r\n"))),
        (
            "a flood of trailers",
            raw(&format!("{size}\r\n{edit}\r\n0\r\n{}\r\n", "X: y\r\n".repeat(10_000))),
        ),
        ("chunks that never end", raw(&format!("1\r\n{{\r\n{}", "1\r\n \r\n".repeat(1000)))),
        ("a chunk that breaks off", raw(&format!("{size}\r\n{}", &edit[..10]))),
    ];
    cases.map(|(what, bytes)| (what, bytes, Fate::Refused)).into()
}

fn lengths() -> Vec<Case> {
    let (edit, smuggled) = (edit(), smuggled());
    let two = format!("{{}}{smuggled}");
    let length = |value: &str| framed(&format!("Content-Length: {value}\r\n"), &edit);
    let own = edit.len();
    let cases = [
        (
            "two lengths",
            framed(&format!("Content-Length: 2\r\nContent-Length: {}\r\n", two.len()), &two),
        ),
        (
            "two lengths, the other way round",
            framed(&format!("Content-Length: {}\r\nContent-Length: 2\r\n", two.len()), &two),
        ),
        ("lengths with a comma", framed("Content-Length: 2, 500\r\n", &two)),
        ("the same length with a comma", length(&format!("{own}, {own}"))),
        ("negative length", length("-1")),
        ("length with a plus", length(&format!("+{own}"))),
        ("length of letters", length("x")),
        ("length in hexadecimal", length("0x10")),
        ("length with a blank in it", length("5 0")),
        ("empty length", length("")),
        ("length beyond 64 bits", length("18446744073709551616")),
        ("length of almost 64 bits", length("18446744073709551615")),
        ("length longer than the body", length(&(own + 1).to_string())),
        (
            "blank before the colon of a length",
            framed(&format!("Content-Length : {own}\r\n"), &edit),
        ),
        ("no length at all", framed("", "")),
        (
            "a body that is waited for and does not come",
            framed("Expect: 100-continue\r\nContent-Length: 100\r\n", ""),
        ),
    ];
    cases.map(|(what, bytes)| (what, bytes, Fate::Refused)).into()
}

/// Codings besides chunks, and chunks besides a length: whoever stands between us and a client may count otherwise.
fn codings() -> Vec<Case> {
    let (edit, smuggled) = (edit(), smuggled());
    let whole = chunk(&format!("{:x}", edit.len()), &edit);
    let coded = |headers: &str| framed(&format!("Transfer-Encoding:{headers}\r\n"), &whole);
    let refused = [
        ("coding: gzip, chunked", coded(" gzip, chunked")),
        ("coding: gzip, then chunked", coded(" gzip\r\nTransfer-Encoding: chunked")),
        ("coding: chunked, identity", coded(" chunked, identity")),
        ("coding: chunked, chunked", coded(" chunked, chunked")),
        ("coding: chunked twice", coded(" chunked\r\nTransfer-Encoding: chunked")),
        ("coding: xchunked", coded(" xchunked")),
        ("coding: chunked;q=1", coded(" chunked;q=1")),
        ("coding: nothing", coded("")),
        ("coding behind a vertical tab", coded(" \x0bchunked")),
        ("a folded coding", coded("\r\n chunked")),
        ("blank before the colon of a coding", framed("Transfer-Encoding : chunked\r\n", &whole)),
        (
            "coding: identity",
            framed(
                &format!("Transfer-Encoding: identity\r\nContent-Length: {}\r\n", edit.len()),
                &edit,
            ),
        ),
        (
            "chunks in HTTP/1.0",
            String::from_utf8(chunked(&whole)).unwrap().replace("/1.1", "/1.0").into_bytes(),
        ),
    ];
    let rest = format!("0\r\n\r\n{smuggled}");
    let both = |first: &str, second: &str| framed(&format!("{first}\r\n{second}\r\n"), &rest);
    let (chunks, all) = ("Transfer-Encoding: chunked", format!("Content-Length: {}", rest.len()));
    let once = [
        ("a length, then chunks", both("Content-Length: 4", chunks)),
        ("chunks, then a length", both(chunks, "Content-Length: 4")),
        ("a length of all, then chunks", both(&all, chunks)),
        ("chunks, then a length of all", both(chunks, &all)),
    ];
    let refused = refused.map(|(what, bytes)| (what, bytes, Fate::Refused));
    refused.into_iter().chain(once.map(|(what, bytes)| (what, bytes, Fate::Once))).collect()
}

/// Heads of which something is wrong; what follows them would be an edit.
fn heads() -> Vec<Case> {
    let edit = edit();
    let whole =
        |headers: &str| framed(&format!("{headers}Content-Length: {}\r\n", edit.len()), &edit);
    let instead = |of: &str, other: &str| {
        String::from_utf8(whole("")).unwrap().replacen(of, other, 1).into_bytes()
    };
    let cases = [
        ("a folded header", whole("X: y\r\n z\r\n")),
        ("NUL in a header", whole("X: a\0b\r\n")),
        ("NUL in a header's name", whole("X\0: a\r\n")),
        ("carriage return alone in a header", whole("X: a\rb\r\n")),
        ("a header without a colon", whole("nonsense\r\n")),
        ("a header without a name", whole(": x\r\n")),
        ("a blank in a header's name", whole("X Y: z\r\n")),
        ("a header's name that is not ASCII", whole("X-\u{e9}: z\r\n")),
        ("a method in small letters", instead("POST", "post")),
        ("a method with a blank before it", instead("POST", " POST")),
        ("a method that is none", instead("POST", "PO(ST")),
        ("a path with a blank in it", instead("/edit_file", "/edit file")),
        ("a path of 1 MB", instead("/edit_file", &format!("/edit_file?{}", "x".repeat(MEGABYTE)))),
        ("another's address", instead("/edit_file", "http://evil.example/edit_file")),
        ("HTTP/1.2", instead("HTTP/1.1", "HTTP/1.2")),
        ("HTTP/3.0", instead("HTTP/1.1", "HTTP/3.0")),
        ("HTTP/0.9", b"GET /health\r\n\r\n".into()),
        ("HTTP/2's first words", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into()),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".into()),
        ("CONNECT", b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n".into()),
        ("OPTIONS *", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n".into()),
        ("headers that break off", framed("", "")[..60].into()),
        ("a request line that breaks off", b"POST /edit_f".into()),
        ("only line breaks", b"\r\n\r\n\r\n".into()),
    ];
    cases.map(|(what, bytes)| (what, bytes, Fate::Refused)).into()
}

/// What only looks odd.
fn odd() -> Vec<Case> {
    let list = |headers: &str| {
        let head = "POST /list_files HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
        format!("{head}\r\n{headers}Content-Length: 2\r\n\r\n{{}}")
    };
    let socket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                  Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    let upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                   HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n";
    let cases = [
        ("its own address", list("").replace("/list", "http://localhost/list")),
        ("the same length twice", list("Content-Length: 2\r\n")),
        ("an upgrade to HTTP/2", list(upgrade)),
        ("an upgrade to a web socket", list(socket)),
        ("another expectation", list("Expect: the unexpected\r\n")),
        ("line feeds alone", list("").replace("\r\n", "\n")),
        (
            "a chunk extension",
            list("").replace(
                "Content-Length: 2\r\n\r\n{}",
                "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n",
            ),
        ),
    ];
    cases.map(|(what, request)| (what, request.into_bytes(), Fate::Taken)).into()
}

/// Beside the other attacks: some of these are waited for.
pub fn malformed(scale: Scale) -> JoinHandle<Row> {
    std::thread::spawn(move || send_malformed(scale).join().unwrap())
}

fn send_malformed(scale: Scale) -> JoinHandle<Row> {
    let what = "requests framed wrongly: chunks, lengths, codings, headers, versions";
    let mut scene = Scene::open(what, &[], &[]);
    let cases = [chunks(), lengths(), codings(), heads(), odd()].concat();
    let port = scene.server.port;
    let mut statuses = Statuses::default();
    for round in 0..scale.of(1, 5) {
        // Silence is waited for, so it follows only once.
        let then: &[Then] = if round == 0 { &[Then::Silence, Then::End] } else { &[Then::End] };
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let all = then.iter().flat_map(|then| cases.iter().map(move |case| (case, *then)));
            let threads: Vec<_> = all
                .map(|(case, then)| {
                    scope.spawn(move || (case, then, exchange(port, &case.1, then)))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for ((name, _, fate), then, outcome) in outcomes {
            scene.row.tries += 1;
            match outcome {
                Err(error) => scene.bad(format!("{name}, then {then:?}: {error}")),
                Ok(answers) => {
                    statuses.add(answers.first().map_or(0, |answer| answer.status));
                    if let Some(why) = judge(*fate, then, &answers) {
                        let answers: Vec<_> = answers.iter().map(Answer::short).collect();
                        let answers = answers.join(" | ");
                        scene.bad(format!("{name}, then {then:?}: {why}: {answers}"));
                    }
                }
            }
        }
    }
    let found = format!("{} kinds: {statuses}", cases.len());
    // Some of them hold a body for which a large one's room is taken.
    scene.close(found, &[], PROCESS + CONNECTION * 2 * cases.len() as u64 + (16 << 10))
}

fn exchange(port: u16, bytes: &[u8], then: Then) -> std::io::Result<Vec<Answer>> {
    let mut client = Client::connect(port)?;
    let _ = client.write(bytes);
    if then == Then::End {
        client.close_writing();
    }
    client.receive_all(PATIENCE)
}

fn judge(fate: Fate, then: Then, answers: &[Answer]) -> Option<&'static str> {
    let refused = |answer: &Answer| (400..500).contains(&answer.status);
    // A word in between is no answer.
    let answers: Vec<_> = answers.iter().filter(|answer| answer.status != 100).collect();
    if answers.iter().any(|answer| answer.status >= 500) {
        return Some("a failure of the server");
    }
    match fate {
        _ if answers.len() > 1 => Some("answered more than once"),
        Fate::Refused if !answers.iter().all(|answer| refused(answer)) => Some("taken"),
        // Who closes one end may have gone before the answer.
        Fate::Taken if then == Then::Silence && answers.is_empty() => Some("not answered"),
        Fate::Taken if answers.iter().any(|answer| answer.status != 200) => Some("refused"),
        _ => None,
    }
}

pub fn headers(scale: Scale) -> JoinHandle<Row> {
    let mut scene = Scene::open("header floods, and headers that never end", &[], &[]);
    let slow = scale.of(1000, 2000);
    let request = |headers: &str| {
        format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").into_bytes()
    };
    let many = |number: usize| {
        (0..number).fold(String::new(), |mut headers, number| {
            let _ = write!(headers, "X-{number}: y\r\n");
            headers
        })
    };
    let floods = [
        (request(&many(63)), 200),
        (request(&many(64)), 431),
        (request(&many(1000)), 431),
        (request(&format!("X: {}\r\n", "y".repeat(1 << 20))), 431),
        (request(&format!("{}: y\r\n", "x".repeat(1 << 20))), 431),
        (request(&"X: y\r\n".repeat(200_000)), 431),
    ];
    let mut statuses = Statuses::default();
    for _ in 0..scale.of(3, 30) {
        for (request, expected) in &floods {
            let answer = scene.server.connect().send(request);
            scene.row.tries += 1;
            match answer {
                Ok(answer) if answer.status == *expected => statuses.add(answer.status),
                Ok(answer) => scene.bad(format!("{expected} expected: {}", answer.short())),
                // It may hang up while we still write.
                Err(_) if *expected == 431 => statuses.add(0),
                Err(error) => scene.bad(error.to_string()),
            }
        }
    }
    // One byte of a header after the other, on many connections at once.
    let mut clients: Vec<_> = (0..slow).map(|_| scene.server.connect()).collect();
    scene.row.tries += slow;
    for client in &clients {
        let _ = client.write(b"POST /edit_file HTTP/1.1\r\nHost: localhost\r\nX: ");
    }
    let rounds = scale.of(2, 24);
    for _ in 0..rounds {
        std::thread::sleep(Duration::from_millis(500));
        for client in &clients {
            let _ = client.write(b"y");
        }
    }
    let mut closed = 0;
    if scale == Scale::Full {
        // Longer than a head may take: they are all gone.
        for client in &mut clients {
            closed += usize::from(client.receive_all(Duration::from_secs(1)).is_ok());
        }
        scene.row.check(closed == slow, || format!("{} are still waited for", slow - closed));
    }
    drop(clients);
    let found =
        format!("floods: {statuses}; {} slow ones, {} given up", grouped(slow), grouped(closed));
    scene.close(found, &[], PROCESS + CONNECTION * slow as u64 / 4)
}

pub fn pipelining(scale: Scale) -> JoinHandle<Row> {
    let mut scene = Scene::open("1,000 requests at once on one connection, read or not", &[], &[]);
    let lines: String = (1..=1000).fold(String::new(), |mut lines, line| {
        let _ = writeln!(lines, "{line} {}", "z".repeat(99));
        lines
    });
    std::fs::write(scene.folder().join("lines.txt"), &lines).unwrap();
    let request = |number: usize| match number % 3 {
        0 => tool(
            number,
            "read_file",
            &json!({ "name": "lines.txt", "start_line": number, "end_line": number }),
        ),
        1 => plain(
            "read_file",
            &json!({ "name": "lines.txt", "start_line": number, "end_line": number }),
        ),
        _ => post(
            "/mcp",
            "",
            &json!({ "jsonrpc": "2.0", "id": number, "method": "ping" }).to_string(),
        ),
    };
    let right = |number: usize, answer: &Answer| {
        let json = answer.json();
        answer.status == 200
            && match number % 3 {
                0 => json["id"] == number && json["result"]["isError"] == false,
                1 => json["content"]
                    .as_str()
                    .is_some_and(|text| text.starts_with(&format!("{number} "))),
                _ => json["id"] == number && json["result"] == json!({}),
            }
    };
    for _ in 0..scale.of(2, 20) {
        let mut client = scene.server.connect();
        let requests: Vec<u8> = (1..1000).flat_map(request).collect();
        client.write(&requests).unwrap();
        for number in 1..1000 {
            scene.row.tries += 1;
            match client.receive() {
                Ok(answer) if right(number, &answer) => {}
                Ok(answer) => scene.bad(format!("request {number}: {}", answer.short())),
                Err(error) => scene.bad(format!("request {number}: {error}")),
            }
        }
    }
    // Answers of 100 KB each that nobody takes: one is made, the others are not begun.
    let silent = scale.of(20, 100);
    let whole = plain("read_file", &json!({ "name": "lines.txt" })).repeat(200);
    let clients: Vec<_> = (0..silent)
        .map(|_| {
            let client = scene.server.connect();
            let _ = client.stream().set_nonblocking(true);
            let _ = client.write(&whole);
            client
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    drop(clients);
    let found =
        format!("all in order; {silent} connections with 200 answers each that nobody took");
    scene.close(found, &["lines.txt"], PROCESS + CONNECTION * silent + (16 << 10))
}
