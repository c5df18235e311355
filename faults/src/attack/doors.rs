//! Who may come in: names that are not ours, and tokens that are guessed.

use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::json;

use super::scene::{CONNECTION, PROCESS, Scene, Statuses};
use crate::http::Answer;
use crate::report::{Row, Scale};

/// A request to make a file, with these headers and none but these.
fn edit(headers: &str, target: &str) -> Vec<u8> {
    let body =
        json!({ "name": "rebound.txt", "append": "x", "create_if_missing": true }).to_string();
    format!(
        "POST {target} HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// What `Host` says, and what is answered.
const HOSTS: &[(&str, u16)] = &[
    ("localhost", 200),
    ("LOCALHOST", 200),
    ("localhost:8080", 200),
    ("localhost:", 200),
    ("127.0.0.1", 200),
    ("127.0.0.1:1", 200),
    ("[::1]", 200),
    ("[::1]:8080", 200),
    ("evil.example", 403),
    ("evil.example:8080", 403),
    ("localhost.evil.example", 403),
    ("127.0.0.1.evil.example", 403),
    ("evil.localhost", 403),
    ("localhost.", 403),
    ("127.0.0.1.", 403),
    ("[::1].evil.example", 403),
    ("[::1]evil.example", 403),
    ("[::1", 403),
    ("::1", 403),
    ("[::ffff:127.0.0.1]", 403),
    ("[0:0:0:0:0:0:0:1]", 403),
    ("0.0.0.0", 403),
    ("[::]", 403),
    ("127.1", 403),
    ("127.0.0.2", 403),
    ("0x7f.0.0.1", 403),
    ("2130706433", 403),
    ("017700000001", 403),
    ("192.168.0.1", 403),
    ("", 403),
    (":8080", 403),
    ("localhost:x", 403),
    ("localhost:-1", 403),
    ("localhost:80:80", 403),
    ("localhost:80@evil.example", 403),
    ("localhost@evil.example", 403),
    ("evil.example@localhost", 403),
    ("user:password@localhost", 403),
    ("localhost/evil.example", 403),
    ("localhost#evil.example", 403),
    ("localhost?evil.example", 403),
    ("localhost, evil.example", 403),
    ("localhost evil.example", 403),
    ("http://localhost", 403),
    ("localhost%00.evil.example", 403),
    ("local\u{0}host", 400),
    ("xn--lcalhost-0wa", 403),
    ("\u{ff4c}ocalhost", 403),
];

/// What `Origin` says, and what is answered.
const ORIGINS: &[(&str, u16)] = &[
    ("http://localhost", 200),
    ("http://localhost:3000", 200),
    ("https://localhost", 200),
    ("https://127.0.0.1:8443", 200),
    ("http://[::1]:8080", 200),
    ("HTTP://LOCALHOST", 200),
    ("null", 403),
    ("", 403),
    ("*", 403),
    ("file://", 403),
    ("file:///tmp/page.html", 403),
    ("http://", 403),
    ("localhost", 403),
    ("http:localhost", 403),
    ("//localhost", 403),
    ("http://evil.example", 403),
    ("https://evil.example:8080", 403),
    ("http://localhost.evil.example", 403),
    ("http://127.0.0.1.evil.example", 403),
    ("http://localhost@evil.example", 403),
    ("http://localhost:80@evil.example", 403),
    ("http://evil.example#localhost", 403),
    ("http://evil.example/localhost", 403),
    ("http://evil.example://localhost", 403),
    ("http://localhost/", 403),
    ("http://localhost.", 403),
    ("http://localhost:x", 403),
    ("http://0.0.0.0:8080", 403),
    ("http://[::1].evil.example", 403),
    ("http://192.168.0.1", 403),
    ("chrome-extension://abcdefghijklmnop", 403),
    ("vscode-webview://abc", 403),
    ("http://localhost http://evil.example", 403),
    ("http://localhost, http://evil.example", 403),
];

pub fn rebinding(scale: Scale) -> JoinHandle<Row> {
    let mut scene =
        Scene::open("names that are not ours in `Host`, `Origin` and the address", &[], &[]);
    let mut requests = Vec::new();
    let mut add = |headers: String, status| requests.push((headers, "/edit_file", status));
    for (host, status) in HOSTS {
        add(format!("Host: {host}\r\n"), *status);
    }
    for (origin, status) in ORIGINS {
        add(format!("Host: localhost\r\nOrigin: {origin}\r\n"), *status);
        add(format!("Origin: {origin}\r\nHost: evil.example\r\n"), 403);
    }
    add(String::new(), 403);
    add("Host: localhost\r\nHost: localhost\r\n".into(), 403);
    add("Host: localhost\r\nHost: evil.example\r\n".into(), 403);
    add("Host: evil.example\r\nHost: localhost\r\n".into(), 403);
    add(
        "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n".into(),
        403,
    );
    add("Host: evil.example\r\nX-Forwarded-Host: localhost\r\n".into(), 403);
    add("Host: evil.example\r\nForwarded: host=localhost\r\n".into(), 403);
    add("Host : localhost\r\n".into(), 400);
    for (target, host, status) in [
        ("http://evil.example/edit_file", "localhost", 403),
        ("http://localhost/edit_file", "evil.example", 403),
        ("http://localhost@evil.example/edit_file", "localhost", 403),
        ("http://user@localhost/edit_file", "localhost", 403),
    ] {
        requests.push((format!("Host: {host}\r\n"), target, status));
    }
    let mut statuses = Statuses::default();
    for _ in 0..scale.of(1, 10) {
        for (headers, target, expected) in &requests {
            // Whoever may come in only looks: its arguments are none that it can use, but that is said to it inside.
            let target = if *expected == 200 { "/list_files" } else { target };
            let request = edit(headers, target);
            scene.row.tries += 1;
            match scene.server.connect().send(&request) {
                Ok(answer) => {
                    statuses.add(answer.status);
                    if answer.status != *expected || answer.invites_pages() {
                        scene.bad(format!("{headers:?} {target}: {}", answer.short()));
                    }
                }
                Err(error) => scene.bad(format!("{headers:?} {target}: {error}")),
            }
        }
    }
    // A page that asks first is told nothing either.
    for origin in ["http://evil.example", "http://localhost"] {
        let ask = format!(
            "OPTIONS /edit_file HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n\
             Access-Control-Request-Method: POST\r\nAccess-Control-Request-Private-Network: true\r\n\r\n"
        );
        scene.row.tries += 1;
        match scene.server.connect().send(ask.as_bytes()) {
            Ok(answer) if matches!(answer.status, 403 | 405) && !answer.invites_pages() => {
                statuses.add(answer.status);
            }
            other => scene.bad(format!("a page at {origin} asks: {other:?}")),
        }
    }
    scene.close(format!("{} requests: {statuses}", requests.len() + 2), &[], PROCESS + CONNECTION)
}

const TOKEN: &str = "3f7Kq-aZ19.correct_horse~battery+staple/0123456789=";

/// Headers that carry something like the token, but not it.
fn guesses() -> Vec<String> {
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let mut guesses: Vec<_> = (0..TOKEN.len()).map(|length| bearer(&TOKEN[..length])).collect();
    guesses.extend((1..TOKEN.len()).map(|length| bearer(&TOKEN[length..])));
    for at in 0..TOKEN.len() {
        let mut wrong = TOKEN.as_bytes().to_vec();
        wrong[at] = if wrong[at] == b'x' { b'y' } else { b'x' };
        guesses.push(bearer(&String::from_utf8(wrong).unwrap()));
    }
    guesses.extend([
        String::new(),
        bearer(&TOKEN.to_uppercase()),
        bearer(&TOKEN.to_lowercase()),
        bearer(&format!("{TOKEN}x")),
        bearer(&TOKEN.repeat(2)),
        bearer(&TOKEN.repeat(100)),
        bearer(&format!("\"{TOKEN}\"")),
        bearer(&format!(" {TOKEN}")),
        bearer(&format!("{TOKEN}, {TOKEN}")),
        bearer(&format!("{TOKEN} x")),
        bearer(&TOKEN.replace('~', "%7E")),
        format!("Authorization: {TOKEN}\r\n"),
        format!("Authorization: Bearer\r\nX: {TOKEN}\r\n"),
        format!("Authorization: Bearer{TOKEN}\r\n"),
        format!("Authorization: Bearer\t{TOKEN}\r\n"),
        format!("Authorization: Bearer:{TOKEN}\r\n"),
        format!("Authorization: Basic {TOKEN}\r\n"),
        format!("Authorization: Digest {TOKEN}\r\n"),
        format!("Authorization: Token {TOKEN}\r\n"),
        format!("Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer {TOKEN}\r\n"),
        format!("Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer x\r\n"),
        format!("Authorization: Bearer x\r\nAuthorization: Bearer {TOKEN}\r\n"),
        format!("Proxy-Authorization: Bearer {TOKEN}\r\n"),
        format!("X-Authorization: Bearer {TOKEN}\r\n"),
        format!("Cookie: token={TOKEN}; FILE_EDITOR_TOKEN={TOKEN}\r\n"),
        format!("X-Token: {TOKEN}\r\nX-Api-Key: {TOKEN}\r\n"),
    ]);
    guesses
}

pub fn guessing(scale: Scale) -> JoinHandle<Row> {
    let number = scale.of(2000, 40_000);
    let env = [("FILE_EDITOR_TOKEN", TOKEN)];
    // What is turned away is logged: not every single one of a flood.
    let mut scene = Scene::open("guesses at the token", &[], &env);
    let guesses = guesses();
    let targets = ["/edit_file", "/mcp", &format!("/edit_file?token={TOKEN}&access_token={TOKEN}")];
    let mut client = scene.server.connect();
    for guess in 0..number {
        let headers = format!("Host: localhost\r\n{}", guesses[guess % guesses.len()]);
        let request = edit(&headers, targets[guess / guesses.len() % targets.len()]);
        scene.row.tries += 1;
        match client.send(&request) {
            Ok(Answer { status: 401, .. }) => {}
            Ok(answer) => {
                let guess = &guesses[guess % guesses.len()];
                scene.bad(format!("{guess:?} is answered with {}", answer.short()));
            }
            Err(error) => {
                scene.bad(error.to_string());
                client = scene.server.connect();
            }
        }
    }
    // How long a guess takes that is almost right, beside one that is all wrong.
    let rounds = scale.of(300, 3000);
    let almost = format!("{}x", &TOKEN[..TOKEN.len() - 1]);
    let wrong = "x".repeat(TOKEN.len());
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (times, token) in times.iter_mut().zip([&almost, &wrong]) {
            let headers = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n");
            let since = Instant::now();
            let _ = client.send(&edit(&headers, "/edit_file"));
            times.push(since.elapsed());
        }
    }
    let median = |times: &mut Vec<std::time::Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64()
    };
    let ratio = median(&mut times[0]) / median(&mut times[1]);
    let lines = scene.server.log_lines();
    scene.row.check(lines * 4 < number, || format!("{lines} lines in the log"));
    let found = format!(
        "all 401; almost right takes {ratio:.2} times as long as all wrong; {lines} lines in the log"
    );
    scene.close(found, &[], PROCESS + CONNECTION)
}
