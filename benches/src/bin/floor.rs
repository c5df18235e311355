//! The floor: the least a server can do and still answer. No dependencies, no locks, no checks, one thread a connection:
//! it believes whatever it is told and is no product. What a server takes beyond it is the price of being one.
//!
//! `floor` speaks MCP on stdio (`--sync`: what it writes is synced), `floor --port=N` the plain methods over HTTP.
//! `floor --raw=FILE` does not even look at what it is asked: for each line it reads the file, escapes it and writes it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::mem::take;
use std::net::{TcpListener, TcpStream};

const CHUNK: usize = 64 * 1024;

fn main() -> Result<()> {
    let mut floor = Floor::default();
    let mut raw = None;
    for argument in std::env::args().skip(1) {
        if let Some(port) = argument.strip_prefix("--port=") {
            return listen(port.parse().map_err(Error::other)?);
        }
        floor.syncs |= argument == "--sync";
        raw = raw.or_else(|| argument.strip_prefix("--raw=").map(String::from));
    }
    // The pipes themselves: what `std` has for them does more.
    let mut input = BufReader::with_capacity(CHUNK, File::open("/dev/stdin")?);
    let mut out = File::options().write(true).open("/dev/stdout")?;
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        if let Some(file) = &raw {
            load(file, &mut floor.file)?;
            floor.answer([b"", b"\n"], &mut out)?;
        } else {
            floor.message(&line, &mut out)?;
        }
        line.clear();
    }
    Ok(())
}

/// Its buffers, used again for each answer. The one for what goes out is never cleared, only written over.
#[derive(Default)]
struct Floor {
    file: Vec<u8>,
    edited: Vec<u8>,
    out: Vec<u8>,
    out_end: usize,
    syncs: bool,
}

impl Floor {
    /// One line of MCP.
    fn message(&mut self, line: &str, out: &mut impl Write) -> Result<()> {
        let Some(_) = after(line, "id") else { return Ok(()) };
        let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"#, raw(line, "id"));
        if raw(line, "method") != "tools/call" {
            let info = r#""capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"1"}"#;
            return writeln!(out, r#"{head}"protocolVersion":"2025-11-25",{info},"tools":[]}}}}"#);
        }
        let head = head + r#""content":[{"type":"text","text":""#;
        self.call(raw(line, "name"), line)?;
        self.answer([head.as_bytes(), b"\"}]}}\n"], out)
    }

    /// Does what was `said` and leaves what it says to that in `file`.
    fn call(&mut self, tool: &str, said: &str) -> Result<()> {
        let path = text(said, "path");
        let count = |name| raw(said, name).parse().unwrap_or(0);
        match tool {
            "read" => load(&path, &mut self.file)?,
            "read_lines" => self.file = read_lines(&path, count("from"), count("to"))?,
            "list" => self.file = list(&path)?,
            "write" => self.replace(&path, text(said, "content").as_bytes())?,
            "edit_line" => self.edit(&path, |file| {
                let lines = file.split_inclusive('\n').take(count("line"));
                let start = lines.map(str::len).sum::<usize>();
                let end = start + file[start..].find('\n').unwrap_or(file.len() - start);
                file.replace_range(start..end, &text(said, "text"));
            })?,
            _ => self.edit(&path, |file| {
                let mut edits = said;
                while let Some(rest) = after(edits, "old") {
                    let (old, new) = (text(edits, "old"), text(rest, "new"));
                    let at = file.find(&old).expect("it is there");
                    file.replace_range(at..at + old.len(), &new);
                    edits = rest;
                }
            })?,
        }
        Ok(())
    }

    /// What is in `file`, escaped, in chunks that stay in the cache, between the two ends of a message.
    fn answer(&mut self, ends: [&[u8]; 2], to: &mut impl Write) -> Result<()> {
        self.add(ends[0]);
        let file = take(&mut self.file);
        for chunk in file.chunks(CHUNK - 4096) {
            if self.out_end > CHUNK / 2 {
                to.write_all(&self.out[..take(&mut self.out_end)])?;
            }
            self.escape(chunk);
        }
        self.file = file;
        self.add(ends[1]);
        to.write_all(&self.out[..take(&mut self.out_end)])
    }

    fn add(&mut self, bytes: &[u8]) {
        self.out.resize(self.out.len().max(self.out_end + bytes.len()), 0);
        self.out[self.out_end..][..bytes.len()].copy_from_slice(bytes);
        self.out_end += bytes.len();
    }

    fn escape(&mut self, text: &[u8]) {
        self.out.resize(self.out.len().max(self.out_end + 6 * text.len() + 8), 0);
        let (out, mut end) = (&mut self.out[..], self.out_end);
        for word in text.chunks(8) {
            if word.try_into().is_ok_and(|word| special(word) == 0) {
                out[end..end + 8].copy_from_slice(word);
                end += 8;
                continue;
            }
            for byte in word {
                let escaped = &ESCAPED[usize::from(*byte)];
                out[end..end + 8].copy_from_slice(escaped);
                end += usize::from(escaped[7]);
            }
        }
        self.out_end = end;
    }

    fn edit(&mut self, path: &str, change: impl FnOnce(&mut String)) -> Result<()> {
        load(path, &mut self.edited)?;
        let mut text = String::from_utf8(take(&mut self.edited)).map_err(Error::other)?;
        change(&mut text);
        self.replace(path, text.as_bytes())?;
        self.edited = text.into_bytes();
        Ok(())
    }

    fn replace(&mut self, path: &str, content: &[u8]) -> Result<()> {
        self.file.clear();
        let temporary = format!("{path}.{}", std::process::id());
        let mut file = File::create(&temporary)?;
        file.write_all(content)?;
        if self.syncs {
            file.sync_data()?;
        }
        fs::rename(temporary, path)
    }
}

fn load(path: &str, to: &mut Vec<u8>) -> Result<()> {
    let mut file = File::open(path)?;
    to.resize(usize::try_from(file.metadata()?.len()).map_err(Error::other)?, 0);
    file.read_exact(to)
}

fn read_lines(path: &str, from: usize, to: usize) -> Result<Vec<u8>> {
    let mut file = BufReader::with_capacity(CHUNK, File::open(path)?);
    let mut text = Vec::new();
    (0..from).try_for_each(|_| file.skip_until(b'\n').map(drop))?;
    (from..=to).try_for_each(|_| file.read_until(b'\n', &mut text).map(drop))?;
    Ok(text)
}

fn list(path: &str) -> Result<Vec<u8>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.extend_from_slice(entry?.file_name().as_encoded_bytes());
        names.push(b'\n');
    }
    Ok(names)
}

/// What comes after a name, wherever that stands in a message: the envelope comes first, and a long text last.
fn after<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(name)?;
    rest.strip_prefix("\":").or_else(|| after(rest, name))
}

/// The string or number that a name has, as it stands there.
fn raw<'a>(json: &'a str, name: &str) -> &'a str {
    let value = after(json, name).unwrap_or("\"\"");
    match value.strip_prefix('"') {
        Some(string) => &string[..end_of_string(string.as_bytes())],
        None => value.split([',', '}']).next().unwrap_or_default(),
    }
}

fn text(json: &str, name: &str) -> String {
    let raw = raw(json, name).as_bytes();
    let (mut text, mut at) = (Vec::with_capacity(raw.len()), 0);
    while at < raw.len() {
        let run = plain(&raw[at..]);
        text.extend_from_slice(&raw[at..at + run]);
        at += run;
        let (byte, length) = match raw[at..] {
            [b'\\', b'n', ..] => (b'\n', 2),
            [b'\\', b't', ..] => (b'\t', 2),
            [b'\\', b'r', ..] => (b'\r', 2),
            [b'\\', byte, ..] => (byte, 2),
            [byte, ..] => (byte, 1),
            [] => break,
        };
        text.push(byte);
        at += length;
    }
    String::from_utf8(text).expect("it is text")
}

fn end_of_string(string: &[u8]) -> usize {
    let mut at = plain(string);
    while !matches!(string.get(at), Some(b'"') | None) {
        at += if string[at] == b'\\' { 2 } else { 1 };
        at += plain(&string[at..]);
    }
    at
}

/// How many bytes come before one that JSON escapes: eight at a time, so that the last few do not count.
fn plain(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks();
    for (number, word) in words.iter().enumerate() {
        let special = special(*word);
        if special != 0 {
            return 8 * number + special.trailing_zeros() as usize / 8;
        }
    }
    8 * words.len()
}

/// The highest bits of those bytes that JSON escapes; the lowest of them is right.
fn special(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(word);
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & (ONES << 7);
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | is(b'"') | is(b'\\')
}

/// What stands for a byte, and last how long that is.
static ESCAPED: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0_u8;
    loop {
        let (high, low) = (b"01"[byte as usize / 16 % 2], b"0123456789abcdef"[byte as usize % 16]);
        table[byte as usize] = match byte {
            b'\n' => *b"\\n00000\x02",
            b'\t' => *b"\\t00000\x02",
            b'"' | b'\\' => [b'\\', byte, 0, 0, 0, 0, 0, 2],
            0..0x20 => [b'\\', b'u', b'0', b'0', high, low, 0, 6],
            _ => [byte, 0, 0, 0, 0, 0, 0, 1],
        };
        byte = match byte.checked_add(1) {
            Some(next) => next,
            None => break table,
        }
    }
};

fn listen(port: u16) -> Result<()> {
    for stream in TcpListener::bind(("127.0.0.1", port))?.incoming() {
        let stream = stream?;
        std::thread::spawn(move || serve(stream));
    }
    Ok(())
}

/// One request after another: in the head of each its length comes last.
fn serve(mut stream: TcpStream) -> Result<()> {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 00000000\r\n\r\n";
    stream.set_nodelay(true)?;
    let (mut floor, mut answer) = (Floor::default(), Vec::new());
    let mut input = BufReader::new(stream.try_clone()?);
    let (mut head, mut body) = (String::new(), Vec::new());
    loop {
        head.clear();
        while !head.ends_with("\r\n\r\n") {
            if input.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let length = head.rsplit(' ').next().unwrap_or_default().trim();
        body.resize(length.parse().map_err(Error::other)?, 0);
        input.read_exact(&mut body)?;
        let said = std::str::from_utf8(&body).map_err(Error::other)?;
        let tool = head["POST /".len()..].split(' ').next().unwrap_or_default();
        answer.clear();
        answer.extend_from_slice(HEAD);
        floor.call(tool, said)?;
        floor.answer([b"{\"content\":\"", b"\"}"], &mut answer)?;
        let length = format!("{:08}", answer.len() - HEAD.len());
        answer[HEAD.len() - 12..HEAD.len() - 4].copy_from_slice(length.as_bytes());
        stream.write_all(&answer)?;
    }
}
