//! A Codex for tests, which is played over sockets: its stdin is copied to a socket, and what comes from there to its
//! stdout. A second socket is for its stderr. Both lead to the address in `FAKE_CODEX`. Like Codex it ends when its stdin
//! does.

use std::env;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process;
use std::thread;

fn main() -> io::Result<()> {
    let address = env::var("FAKE_CODEX").map_err(io::Error::other)?;
    let (lines, log) = (TcpStream::connect(&address)?, TcpStream::connect(&address)?);
    let told = lines.try_clone()?;
    thread::spawn(move || pass_on(log, io::stderr()));
    thread::spawn(move || {
        let _ = pass_on(io::stdin(), &told);
        let _ = told.shutdown(Shutdown::Both);
        process::exit(0);
    });
    pass_on(lines, io::stdout())
}

/// Copies without a buffer that is flushed late.
fn pass_on(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            read => to.write_all(&bytes[..read]).and_then(|()| to.flush())?,
        }
    }
}
