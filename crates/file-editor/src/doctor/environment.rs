//! Checks of the port and the environment variables.

use std::env;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use server::http;

use super::check::Check;
use crate::flags;

/// Time limit for connecting, writing and each read; a local server answers sooner.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(1);
/// Limit of the bytes of an answer. That of this server is shorter.
const ANSWER_MAX: u64 = 4096;
/// Characters below which a token can be guessed.
const TOKEN_MIN: usize = 16;

pub fn checks(port: u16) -> Vec<Check> {
    vec![port_check(port), token(), model()]
}

fn port_check(port: u16) -> Check {
    if port < 1024 {
        return Check::fault(
            "port",
            format!("{port} is not allowed"),
            "Choose one from 1024 to 65535",
        );
    }
    match http::bind("localhost", port) {
        Ok(_) => Check::ok("port", format!("{port} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match health(port) {
            Ok(answer) if answer.contains("{\"status\":\"ok\"}") => Check::ok(
                "port",
                format!(
                    "{port} is in use by a server that answers like this one; a second server needs another --port"
                ),
            ),
            _ => Check::warning(
                "port",
                format!("{port} is in use by another program"),
                "Choose another with --port, or stop that program; stdio needs no port",
            ),
        },
        Err(error) => Check::warning(
            "port",
            format!("cannot listen on {port}: {error}"),
            "Choose another with --port; stdio needs no port",
        ),
    }
}

/// Requests `/health` from the program that listens on the port.
fn health(port: u16) -> io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, CONNECTION_TIMEOUT)?;
    stream.set_read_timeout(Some(CONNECTION_TIMEOUT))?;
    stream.set_write_timeout(Some(CONNECTION_TIMEOUT))?;
    write!(stream, "GET /health HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    // The part that came before an error counts.
    let _ = stream.take(ANSWER_MAX).read_to_end(&mut answer);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn token() -> Check {
    let help = "Set FILE_EDITOR_TOKEN to the output of `openssl rand -hex 32`";
    match flags::bearer_token() {
        Err(error) => Check::fault("token", error, help),
        Ok(None) => Check::ok(
            "token",
            "FILE_EDITOR_TOKEN is not set; over HTTP any user of this machine can call the server, and nobody else",
        ),
        Ok(Some(token)) if token.len() < TOKEN_MIN => Check::warning(
            "token",
            format!("FILE_EDITOR_TOKEN has fewer than {TOKEN_MIN} characters and can be guessed"),
            help,
        ),
        Ok(Some(token)) if !token.is_ascii() => Check::warning(
            "token",
            "FILE_EDITOR_TOKEN has non-ASCII characters, which many clients cannot send",
            help,
        ),
        Ok(Some(_)) => Check::ok("token", "FILE_EDITOR_TOKEN is set; HTTP requests must carry it"),
    }
}

fn model() -> Check {
    match model::Settings::from_variables(|name| env::var(name).ok()) {
        Ok(None) => Check::ok(
            "model",
            "not configured; `ai_edit_code` applies only code that the agent wrote",
        ),
        Ok(Some(settings)) => {
            Check::ok("model", format!("{} generates code for `ai_edit_code`", settings.model()))
        }
        Err(error) => Check::fault(
            "model",
            error.to_string(),
            "Correct the variable, or unset all FILE_EDITOR_LLM_* variables",
        ),
    }
}
