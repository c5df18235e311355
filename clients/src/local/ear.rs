//! Somebody who sits between the server and the model, and hears what they say to each other.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::Value;

/// All that was heard on one connection, which has one request.
#[derive(Clone, Default)]
pub struct Heard {
    asked: Vec<u8>,
    answered: Vec<u8>,
    /// Whoever asked is gone, or has been answered.
    pub is_over: bool,
}

impl Heard {
    /// What the model was asked.
    pub fn request(&self) -> Option<Value> {
        body(&self.asked)
    }

    /// What its server answered.
    pub fn answer(&self) -> Option<Value> {
        body(&self.answered)
    }

    pub fn status(&self) -> String {
        let head = String::from_utf8_lossy(&self.answered);
        head.lines().next().unwrap_or("no answer").to_owned()
    }
}

fn body(message: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(message);
    let (_, body) = text.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}

/// An address that leads to the model, and what was said there.
pub struct Ear {
    pub address: SocketAddr,
    connections: Connections,
}

type Connections = Arc<Mutex<Vec<Heard>>>;

impl Ear {
    /// Listens until the program ends.
    pub fn before(model: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let ear = Self { address: listener.local_addr()?, connections: Connections::default() };
        let connections = Arc::clone(&ear.connections);
        thread::spawn(move || {
            for asker in listener.incoming().flatten() {
                let Ok(model) = TcpStream::connect(model) else { continue };
                let _ = pass_on(&connections, &asker, &model);
            }
        });
        Ok(ear)
    }

    /// Everything since `first` connections ago were all.
    pub fn since(&self, first: usize) -> Vec<Heard> {
        lock(&self.connections).iter().skip(first).cloned().collect()
    }

    pub fn count(&self) -> usize {
        lock(&self.connections).len()
    }
}

fn lock(connections: &Mutex<Vec<Heard>>) -> MutexGuard<'_, Vec<Heard>> {
    connections.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What each of them says goes to the other, and is kept.
fn pass_on(connections: &Connections, asker: &TcpStream, model: &TcpStream) -> io::Result<()> {
    let index = {
        let mut connections = lock(connections);
        connections.push(Heard::default());
        connections.len() - 1
    };
    let (from, to, heard) = (asker.try_clone()?, model.try_clone()?, Arc::clone(connections));
    thread::spawn(move || {
        copy(from, to, |bytes| lock(&heard)[index].asked.extend(bytes));
        lock(&heard)[index].is_over = true;
    });
    let (from, to, heard) = (model.try_clone()?, asker.try_clone()?, Arc::clone(connections));
    thread::spawn(move || copy(from, to, |bytes| lock(&heard)[index].answered.extend(bytes)));
    Ok(())
}

/// Until one of them is gone; then the other has to go too.
fn copy(mut from: TcpStream, mut to: TcpStream, keep: impl Fn(&[u8])) {
    let mut buffer = [0; 4096];
    while let Ok(count) = from.read(&mut buffer) {
        let bytes = &buffer[..count];
        keep(bytes);
        if count == 0 || to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
