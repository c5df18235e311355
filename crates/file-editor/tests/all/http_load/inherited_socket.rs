//! A listening socket that another program opened for the server: descriptor 3, for the process named in `LISTEN_PID`.

use super::*;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

/// Starts the server by a shell that makes its standard input descriptor 3.
fn hand_over(folder: &Folder, listener: &TcpListener, script: &str, flags: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_file-editor"));
    command.arg(format!("--dir={}", folder.path().display())).args(flags);
    command.env_remove("FILE_EDITOR_TOKEN").env_remove("LISTEN_FDS").env_remove("LISTEN_PID");
    let socket: OwnedFd = listener.try_clone().unwrap().into();
    command.stdin(Stdio::from(socket));
    command
}

#[test]
fn a_socket_that_is_handed_over_is_served() {
    let folder = Folder::new();
    folder.write("steady.txt", format!("{STEADY}\n"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // A port that is taken does not matter: it is not asked for.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let flag = format!("--port={}", taken.local_addr().unwrap().port());
    let script = r#"LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@" 3<&0 0</dev/null"#;
    let mut command = hand_over(&folder, &listener, script, &[&flag]);
    // Whoever connects before the server is there is served as well.
    let mut early = Client::connect(("127.0.0.1", port)).unwrap();
    early.write(&Request::post("/read_file", r#"{"name":"steady.txt"}"#).bytes()).unwrap();
    let server = HttpServer::spawn(&mut command, port).unwrap();
    drop(command);
    assert_eq!(early.receive().unwrap().json()["content"], STEADY);
    let answer = server.rest("read_file", json!({ "name": "steady.txt" }));
    assert_eq!(answer["content"], STEADY);
    server.mcp().text("list_files", json!({}));
    server.stop();
    // The socket is whose it was: the next server takes over, and nobody was turned away in between.
    let mut early = Client::connect(("127.0.0.1", port)).unwrap();
    early.write(&Request::new("GET", "/health").bytes()).unwrap();
    let mut command = hand_over(&folder, &listener, script, &[&flag]);
    let _server = HttpServer::spawn(&mut command, port).unwrap();
    assert_eq!(early.receive().unwrap().status, 200);
}

#[test]
fn a_socket_that_is_for_somebody_else_is_left_alone() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    for variables in
        ["LISTEN_PID=1 LISTEN_FDS=1", "LISTEN_PID=$$ LISTEN_FDS=0", "LISTEN_FDS=1", "LISTEN_PID=$$"]
    {
        let script = format!(r#"{variables} exec "$0" "$@" 3<&0 0</dev/null"#);
        let server = loop {
            let port = crate::harness::http::some_port();
            let flag = format!("--port={port}");
            let mut command = hand_over(&folder, &listener, &script, &[&flag]);
            match HttpServer::spawn(&mut command, port) {
                Ok(server) => break server,
                Err(told) => assert!(told.contains("already in use"), "{told}"),
            }
        };
        assert_eq!(server.rest("list_files", json!({}))["total_count"], 0, "{variables}");
        server.stop();
    }
}
