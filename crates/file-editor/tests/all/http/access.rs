//! Tests of who may connect: Host, Origin and token.

use super::*;

/// That every path, known or not, refuses the request as `change` makes it.
fn check_refused(server: &HttpServer, change: &dyn Fn(Request) -> Request, status: u16) {
    let requests = CALLS
        .map(proper)
        .into_iter()
        .chain(["/nowhere", "/mcp"].map(|path| Request::new("OPTIONS", path)));
    for request in requests {
        let response = server.send(&change(request));
        refused(&response, status, -32600);
    }
    let edit = r#"{"name":"a.txt","append":"x","create_if_missing":true}"#;
    refused(&server.send(&change(Request::post("/edit_file", edit))), status, -32600);
}

fn check_admitted(server: &HttpServer, change: &dyn Fn(Request) -> Request) {
    for path in CALLS {
        let response = server.send(&change(proper(path)));
        assert_eq!(response.status, 200, "{path}: {response}");
        response.json();
    }
    let response = server.send(&change(Request::new("GET", "/health")));
    assert_eq!(response.status, 200, "{response}");
}

const FOREIGN: [&str; 16] = [
    "evil.com",
    "evil.com:8080",
    "localhost.evil.com",
    "127.0.0.1.evil.com",
    "evil.localhost",
    "notlocalhost",
    "localhost@evil.com",
    "localhost:80@evil.com",
    "evil.com@localhost",
    "127.0.0.2",
    "0.0.0.0",
    "192.168.0.1",
    "[::2]",
    "[::1].evil.com",
    "[::1",
    "2130706433",
];

#[test]
fn a_foreign_host_is_refused() {
    let folder = Folder::new();
    let server = folder.http();
    for host in FOREIGN.into_iter().chain(["", " ", ":8080", "localhost:80:80", "localhost:x"]) {
        check_refused(&server, &|request| request.with("Host", host), 403);
        let health = server.send(&Request::new("GET", "/health").with("Host", host));
        let refusal = refused(&health, 403, -32600);
        assert!(
            refusal.starts_with(&format!("Host `{}` is not allowed", host.trim())),
            "{refusal}"
        );
    }
    check_refused(&server, &|request| request.without("Host"), 403);
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn this_machine_is_admitted_by_any_of_its_names() {
    let folder = Folder::new();
    let server = folder.http();
    for host in ["localhost", "127.0.0.1", "[::1]", "LocalHost"] {
        for port in [String::new(), ":9".into(), ":65535".into(), format!(":{}", server.port)] {
            let host = format!("{host}{port}");
            check_admitted(&server, &|request| request.with("Host", &host));
            let origin = format!("http://{host}");
            check_admitted(&server, &|request| request.with("Origin", &origin));
            let origin = format!("https://{host}");
            check_admitted(&server, &|request| request.with("Origin", &origin));
        }
    }
}

/// Two who are addressed are one too many, and so are two tokens.
#[test]
fn nobody_is_admitted_by_half_of_what_is_said() {
    let folder = Folder::new();
    let server = folder.http();
    let target = format!("http://evil.com:{}", server.port);
    let raw = |line: &str, headers: &str| {
        let request = format!(
            "{line} HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
             Content-Length: 2\r\n\r\n{{}}"
        );
        let mut client = server.connect();
        client.write(request.as_bytes()).unwrap();
        client.receive().unwrap().status
    };
    assert_eq!(raw("POST /list_files", "Host: localhost\r\n"), 200);
    assert_eq!(raw("POST /list_files", "Host: localhost\r\nHost: evil.com\r\n"), 403);
    assert_eq!(raw("POST /list_files", "Host: localhost\r\nHost: localhost\r\n"), 403);
    assert_eq!(raw(&format!("POST {target}/list_files"), "Host: localhost\r\n"), 403);
    let server = HttpServer::start(folder.path(), &[], &[("FILE_EDITOR_TOKEN", "secret")]);
    let raw = |headers: &str| {
        let request = format!(
            "POST /list_files HTTP/1.1\r\nHost: localhost\r\n{headers}\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        let mut client = server.connect();
        client.write(request.as_bytes()).unwrap();
        client.receive().unwrap().status
    };
    let (good, bad) = ("Authorization: Bearer secret\r\n", "Authorization: Bearer x\r\n");
    assert_eq!(raw(good), 200);
    assert_eq!(raw(&format!("{good}{bad}")), 401);
    assert_eq!(raw(&format!("{bad}{good}")), 401);
}

#[test]
fn both_loopback_addresses_are_served() {
    let folder = Folder::new();
    let server = folder.http();
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return crate::harness::not_checked("the address ::1", "IPv6");
    }
    for address in ["127.0.0.1", "::1"] {
        let mut client = Client::connect((address, server.port)).unwrap();
        let response = client.send(&Request::new("GET", "/health"));
        assert_eq!(response.status, 200, "{address}");
    }
}

#[test]
fn a_foreign_origin_is_refused() {
    let folder = Folder::new();
    let server = folder.http();
    let schemes = ["http", "https", "chrome-extension", "file", "vscode-webview"];
    let origins = FOREIGN.iter().flat_map(|host| schemes.map(|at| format!("{at}://{host}")));
    let others = ["null", "", "localhost", "http:localhost", "file://", "http://", "*"];
    for origin in origins.chain(others.map(String::from)) {
        let response = server.send(&proper("/mcp").with("Origin", &origin));
        let refusal = refused(&response, 403, -32600);
        assert!(refusal.starts_with(&format!("Origin `{origin}` is not allowed")), "{refusal}");
    }
    for origin in ["http://evil.com", "null", "http://localhost.evil.com"] {
        check_refused(&server, &|request| request.with("Origin", origin), 403);
        // Nor behind one that is allowed.
        let both =
            |request: Request| request.with("Origin", "http://localhost").and("Origin", origin);
        check_refused(&server, &both, 403);
        let health = server.send(&Request::new("GET", "/health").with("Origin", origin));
        refused(&health, 403, -32600);
    }
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn names_can_be_allowed() {
    let folder = Folder::new();
    let server = folder.http_with(&["--allow-host=editor.example, other.test"]);
    for host in ["editor.example", "editor.example:9", "EDITOR.example", "other.test:443"] {
        check_admitted(&server, &|request| request.with("Host", host));
        let origin = format!("https://{host}");
        check_admitted(&server, &|request| request.with("Origin", &origin));
    }
    check_admitted(&server, &|request| request);
    for host in ["x.editor.example", "editor.example.evil.com", "example", ",", "evil.com"] {
        check_refused(&server, &|request| request.with("Host", host), 403);
    }
    check_refused(&server, &|request| request.with("Origin", "http://evil.com"), 403);
}

#[test]
fn a_name_can_be_allowed_with_its_port() {
    let folder = Folder::new();
    let server = folder.http_with(&["--allow-host=a.test:8443, [fd00::1]:80,fd00::2,b.test:443"]);
    for host in
        ["a.test:8443", "A.test:8443", "[fd00::1]:80", "[fd00::2]:7", "b.test", "b.test:443"]
    {
        check_admitted(&server, &|request| request.with("Host", host));
    }
    for host in ["a.test", "a.test:8444", "a.test:84430", "[fd00::1]:81", "b.test:80"] {
        check_refused(&server, &|request| request.with("Host", host), 403);
    }
    for origin in ["https://a.test:8443", "http://[fd00::1]", "https://b.test"] {
        check_admitted(&server, &|request| request.with("Origin", origin));
    }
    for origin in ["https://a.test", "https://[fd00::1]", "http://b.test", "null"] {
        check_refused(&server, &|request| request.with("Origin", origin), 403);
    }
}

const TOKEN: &str = "correct horse battery staple";

#[test]
fn a_token_is_asked_of_everyone() {
    let folder = Folder::new();
    let server = HttpServer::start(folder.path(), &[], &[("FILE_EDITOR_TOKEN", TOKEN)]);
    let wrong = [
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer correct horse battery stapl",
        "Bearer correct horse battery staples",
        "Bearer Correct horse battery staple",
        "Bearer  correct horse battery staple",
        "Basic correct horse battery staple",
        "Basic Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ==",
        "Token correct horse battery staple",
        "correct horse battery staple",
        "",
    ];
    check_refused(&server, &|request| request, 401);
    for wrong in wrong {
        check_refused(&server, &|request| request.with("Authorization", wrong), 401);
    }
    let response = server.send(&proper("/mcp"));
    let scheme = response.header("WWW-Authenticate").unwrap();
    assert!(scheme.starts_with("Bearer"), "{response}");
    assert!(!response.refusal(401, -32600).contains("horse"));
    // Not in the address either, where it would be logged.
    let query = "/list_files?access_token=correct%20horse%20battery%20staple";
    refused(&server.send(&proper("/list_files").to(query)), 401, -32600);

    for scheme in ["Bearer", "bearer", "BEARER"] {
        let right = format!("{scheme} {TOKEN}");
        check_admitted(&server, &|request| request.with("Authorization", &right));
        // And it opens no other door.
        let foreign = |request: Request| request.with("Authorization", &right);
        check_refused(&server, &|request| foreign(request).with("Host", "evil.com"), 403);
        check_refused(&server, &|request| foreign(request).with("Origin", "null"), 403);
    }
    let right = format!("Bearer {TOKEN}");
    // Two of them: whichever is meant, one is wrong.
    let both = |request: Request| {
        request.with("Authorization", "Bearer wrong").and("Authorization", &right)
    };
    check_refused(&server, &both, 401);
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
#[cfg(unix)]
fn the_token_is_never_logged() {
    let folder = Folder::new();
    let env = [("FILE_EDITOR_TOKEN", TOKEN)];
    let server = HttpServer::start(folder.path(), &["--log=debug"], &env);
    let right = format!("Bearer {TOKEN}");
    server.send(&proper("/mcp"));
    server.send(&proper("/read_file").with("Authorization", &right));
    server.send(&proper("/mcp").with("Authorization", &right));
    let log = server.stop();
    assert!(!log_lines(&log).is_empty());
    assert!(!log.contains("horse"), "{log}");
}

/// The lines about those who were turned away: their statuses, and how many more there were.
#[cfg(unix)]
fn turned_away(log: &str) -> (Vec<u64>, u64) {
    let lines = log_lines(log);
    let lines = lines.iter().filter(|line| line["event"] == "access denied");
    let more = |line: &Value| line["more_refused_before"].as_u64().unwrap_or(0);
    let told = lines.map(|line| {
        assert_eq!(line["category"], "client", "{line}");
        (line["status"].as_u64().unwrap(), more(line))
    });
    let (statuses, more): (Vec<_>, Vec<_>) = told.unzip();
    (statuses, more.iter().sum())
}

#[test]
#[cfg(unix)]
fn those_who_are_turned_away_are_logged() {
    let folder = Folder::new();
    let server = HttpServer::start(folder.path(), &[], &[("FILE_EDITOR_TOKEN", TOKEN)]);
    server.send(&proper("/mcp"));
    server.send(&proper("/read_file").with("Host", "evil.com"));
    server.send(&proper("/nowhere").with("Origin", "null"));
    let log = server.stop();
    assert_eq!(turned_away(&log), (vec![401, 403, 403], 0));
    assert!(!log.contains("evil"), "{log}");
}

/// A refusal costs whoever asks for it nothing, so that a flood of them must not become a flood of lines.
#[test]
#[cfg(unix)]
fn of_a_flood_some_are_logged_and_all_are_counted() {
    const FLOOD: usize = 2000;
    let folder = Folder::new();
    let server = folder.http();
    let foreign = Request::new("GET", "/health").with("Host", "evil.com");
    let mut client = server.connect();
    for _ in 0..FLOOD {
        assert_eq!(client.send(&foreign).status, 403);
    }
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(client.send(&foreign).status, 403);
    let (told, more) = turned_away(&server.stop());
    assert_eq!(told.len() + usize::try_from(more).unwrap(), FLOOD + 1);
    assert!(told.len() < FLOOD / 2, "{} lines", told.len());
}

#[test]
fn without_a_token_none_is_asked_for() {
    let folder = Folder::new();
    let server = folder.http();
    check_admitted(&server, &|request| request);
    check_admitted(&server, &|request| request.with("Authorization", "Bearer anything"));
    check_admitted(&server, &|request| request.with("Authorization", "Basic Zm9vOmJhcg=="));
}
