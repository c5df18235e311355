//! A scripted model for tests: a local server that plays one [`ScriptedReply`] for each connection.
//!
//! Uses std only, so that tests of other packages can use it; a program that does not use it contains none of it.

use std::{
    fmt::Write as _,
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// Behaviour of the server for one connection.
#[derive(Clone, Debug)]
pub enum ScriptedReply {
    /// Answers with a completion of this text.
    Says(String),
    /// Answers with a completion of this text after a delay, byte by byte.
    SaysSlowly { text: String, after: Duration },
    /// Answers with a completion that stopped because it had become too long.
    IsCutShort(String),
    /// Answers with this status, these headers and this body.
    Answers { status: u16, headers: Vec<(String, String)>, body: String },
    /// Sends these bytes as they are, and closes the connection.
    Sends(Vec<u8>),
    /// Sends these bytes, then nothing more until the client disconnects.
    SendsAndWaits(Vec<u8>),
    /// Sends nothing until the client disconnects.
    IsSilent,
}

impl ScriptedReply {
    /// Returns a turn that answers with a status and an empty body.
    pub fn fails(status: u16) -> Self {
        Self::Answers { status, headers: Vec::new(), body: String::new() }
    }

    /// Returns a turn that answers with this body and status 200.
    pub fn answers(body: &str) -> Self {
        Self::Answers { status: 200, headers: Vec::new(), body: body.to_owned() }
    }
}

/// A request that the server received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// The request line and the headers.
    pub head: String,
    /// The body, JSON.
    pub body: String,
}

/// A running server, which stops when this is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    left: mpsc::Receiver<()>,
}

#[derive(Debug)]
struct Shared {
    /// Remaining turns, the next one last.
    turns: Mutex<Vec<ScriptedReply>>,
    asked: Mutex<Vec<ReceivedRequest>>,
    is_over: AtomicBool,
}

impl ScriptedModel {
    /// Starts a server that plays `turns` one after another; after the last it answers with status 500.
    pub fn start(mut turns: Vec<ScriptedReply>) -> io::Result<Self> {
        turns.reverse();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            turns: Mutex::new(turns),
            asked: Mutex::new(Vec::new()),
            is_over: AtomicBool::new(false),
        });
        let (leaving, left) = mpsc::channel();
        let server = Arc::clone(&shared);
        thread::spawn(move || {
            for connection in listener.incoming() {
                if server.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let (server, leaving) = (Arc::clone(&server), leaving.clone());
                thread::spawn(move || {
                    let Ok(connection) = connection else { return };
                    // A client that disconnects early is part of the script.
                    let _ = serve(connection, &server);
                    let _ = leaving.send(());
                });
            }
        });
        Ok(Self { address, shared, left })
    }

    /// Base URL, as a user would configure it.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Requests received so far.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        lock(&self.shared.asked).clone()
    }

    /// Waits until one more connection has ended.
    pub fn wait_until_left(&self) {
        let _ = self.left.recv();
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut connection: TcpStream, shared: &Shared) -> io::Result<()> {
    let asked = read_request(&mut connection)?;
    lock(&shared.asked).push(asked);
    let turn = lock(&shared.turns).pop().unwrap_or_else(|| ScriptedReply::fails(500));
    match turn {
        ScriptedReply::Says(text) => {
            connection.write_all(&answer(200, &[], &completion(&text, "stop")))
        }
        ScriptedReply::SaysSlowly { text, after } => {
            thread::sleep(after);
            connection.set_nodelay(true)?;
            let bytes = answer(200, &[], &completion(&text, "stop"));
            bytes.chunks(1).try_for_each(|byte| connection.write_all(byte))
        }
        ScriptedReply::IsCutShort(text) => {
            connection.write_all(&answer(200, &[], &completion(&text, "length")))
        }
        ScriptedReply::Answers { status, headers, body } => {
            connection.write_all(&answer(status, &headers, &body))
        }
        ScriptedReply::Sends(bytes) => connection.write_all(&bytes),
        ScriptedReply::SendsAndWaits(bytes) => {
            connection.write_all(&bytes)?;
            wait_for_end(&mut connection)
        }
        ScriptedReply::IsSilent => wait_for_end(&mut connection),
    }
}

fn wait_for_end(connection: &mut TcpStream) -> io::Result<()> {
    while connection.read(&mut [0; 1024])? > 0 {}
    Ok(())
}

fn read_request(connection: &mut TcpStream) -> io::Result<ReceivedRequest> {
    const END_OF_HEAD: &[u8] = b"\r\n\r\n";
    let mut bytes = Vec::new();
    loop {
        let head = bytes.windows(END_OF_HEAD.len()).position(|window| window == END_OF_HEAD);
        if let Some(head) = head {
            let body = head + END_OF_HEAD.len();
            let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
            let mut rest = vec![0; (body + content_length(&text)).saturating_sub(bytes.len())];
            connection.read_exact(&mut rest)?;
            bytes.extend(rest);
            let body = String::from_utf8_lossy(&bytes[body..]).into_owned();
            return Ok(ReceivedRequest { head: text, body });
        }
        let mut more = [0; 4096];
        match connection.read(&mut more)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => bytes.extend(&more[..length]),
        }
    }
}

fn content_length(head: &str) -> usize {
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    };
    head.lines().find_map(value).unwrap_or(0)
}

/// Returns the JSON body with which a model's server answers.
pub fn completion(text: &str, finish_reason: &str) -> String {
    let mut written = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => written.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(written, "\\u{:04x}", u32::from(control));
            }
            other => written.push(other),
        }
    }
    written.push('"');
    format!(
        "{{\"id\":\"scripted\",\"object\":\"chat.completion\",\"created\":0,\"model\":\"scripted\",\"choices\":[{{\
         \"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":{written}}},\"finish_reason\":\"{finish_reason}\"\
         }}],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":1,\"total_tokens\":2}}}}"
    )
}

fn answer(status: u16, headers: &[(String, String)], body: &str) -> Vec<u8> {
    let length = body.len();
    let mut head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n"
    );
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    format!("{head}\r\n{body}").into_bytes()
}
