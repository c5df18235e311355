//! The log: one JSON object a line on stderr, never contents of files.
//!
//! Not by `tracing`: libraries log what they handle, and they handle contents of files. Without a subscriber nothing of theirs
//! is written. A thread of its own writes, and lines are dropped and counted when stderr is not read, so that a client that
//! does not read it cannot stop the server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value};

use crate::terminal::{self, Stream};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

impl Level {
    pub const ALL: [(&str, Self); 4] = [
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, level)| *level == self).map_or("", |(name, _)| name)
    }
}

/// Lines that may wait for a slow reader. More are dropped.
const WAITING_LINES: usize = 1024;

/// Lines a second about refused requests: those cost a sender nothing, and must not fill a disk.
const REFUSALS_A_SECOND: u64 = 20;

pub struct Log {
    level: Level,
    writer: Mutex<Option<Writer>>,
    dropped: AtomicU64,
    refusals: Mutex<Refusals>,
}

/// Refusals of the current second, and those that were not logged.
#[derive(Default)]
struct Refusals {
    since: Option<Instant>,
    logged: u64,
    suppressed: u64,
}

impl Refusals {
    /// How many were not logged before this one. `None` if this one is not logged either.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let second = Duration::from_secs(1);
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= second) {
            (self.since, self.logged) = (Some(now), 0);
        }
        if self.logged >= REFUSALS_A_SECOND {
            self.suppressed += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

struct Writer {
    lines: SyncSender<String>,
    thread: JoinHandle<()>,
}

impl Log {
    pub fn new(level: Level) -> Self {
        let (writer, dropped) = (Mutex::new(None), AtomicU64::new(0));
        Self { level, writer, dropped, refusals: Mutex::default() }
    }

    pub fn enabled(&self, level: Level) -> bool {
        level <= self.level
    }

    /// Logs a request that was refused. Of many in a second, some are only counted.
    pub fn write_refusal(&self, event: &str, mut fields: Map<String, Value>) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(suppressed) = refusals.admit(Instant::now()) else { return };
        drop(refusals);
        if suppressed > 0 {
            fields.insert("more_refused_before".into(), suppressed.into());
        }
        self.write(Level::Warn, event, fields);
    }

    /// Writes a line: timestamp, level, `event`, then `fields` in their order.
    pub fn write(&self, level: Level, event: &str, fields: Map<String, Value>) {
        if !self.enabled(level) {
            return;
        }
        let mut line = Map::new();
        line.insert("timestamp".into(), tools::iso8601::millis(SystemTime::now()).into());
        line.insert("level".into(), level.name().into());
        line.insert("event".into(), event.into());
        line.extend(fields);
        match self.dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            dropped => drop(line.insert("lines_dropped_before".into(), dropped.into())),
        }
        let lost = line.get("lines_dropped_before").and_then(Value::as_u64).unwrap_or(0) + 1;
        let line = format!("{}\n", Value::Object(line));
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.get_or_insert_with(Writer::start).lines.try_send(line).is_err() {
            self.dropped.fetch_add(lost, Ordering::Relaxed);
        }
    }

    /// Writes the lines that wait, for at most `patience`.
    pub fn close(&self, patience: Duration) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Writer { lines, thread }) = writer else { return };
        drop(lines);
        let until = Instant::now() + patience;
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Writer {
    fn start() -> Self {
        let (lines, waiting) = mpsc::sync_channel::<String>(WAITING_LINES);
        let thread = std::thread::spawn(move || {
            for line in waiting {
                // Nobody to tell when stderr is gone.
                let _ = terminal::write_json(Stream::Stderr, &line);
            }
        });
        Self { lines, thread }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_refusals_at_once_some_are_counted_only() {
        let mut refusals = Refusals::default();
        let start = Instant::now();
        let admitted: Vec<_> = (0..100).map(|_| refusals.admit(start)).collect();
        assert!(admitted[..20].iter().all(|admitted| *admitted == Some(0)));
        assert!(admitted[20..].iter().all(Option::is_none));
        assert_eq!(refusals.admit(start + Duration::from_millis(999)), None);
        assert_eq!(refusals.admit(start + Duration::from_secs(1)), Some(81));
        assert_eq!(refusals.admit(start + Duration::from_secs(1)), Some(0));
    }
}
