//! Measures the one window in which typed text is lost: from the answer of the last read to the arrival of the write.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

use files::Call;

use super::{
    super::{EditorFiles, MessageError},
    Session,
};

/// A fake editor that answers at once and records the time.
#[derive(Default)]
struct TimedEditor(Mutex<Times>);

#[derive(Default)]
struct Times {
    buffers: BTreeMap<PathBuf, String>,
    /// Time of the answer of the last read, if nothing came after it.
    read: Option<Instant>,
    windows: Vec<Duration>,
}

impl EditorFiles for TimedEditor {
    fn read(&self, path: &Path, _: &Call) -> Result<String, MessageError> {
        let mut times = self.0.lock().unwrap();
        let text = times.buffers.get(path).cloned().ok_or(MessageError::NoSuchFile);
        times.read = Some(Instant::now());
        text
    }

    fn write(&self, path: &Path, text: &str, _: &Call) -> Result<(), MessageError> {
        let arrived = Instant::now();
        let mut times = self.0.lock().unwrap();
        let read = times.read.take().expect("a read is the last message before a write");
        times.windows.push(arrived - read);
        times.buffers.insert(path.into(), text.into());
        Ok(())
    }
}

/// Prints the length of the window, without the transport to the editor: run with `--nocapture`.
#[test]
fn the_window_has_no_message_in_it() {
    for (size, rounds) in [(1 << 10, 300), (100 << 10, 100), (1000 << 10, 20)] {
        let session = Session::with(TimedEditor::default());
        let filler = "a line of some length, as they come\n".repeat(size / 36);
        let text = |round: usize| format!("edit {round}.\n{filler}");
        session.save("a.txt", text(0));
        let path = session.path("a.txt");
        session.store.editor.0.lock().unwrap().buffers.insert(path, text(0));
        for round in 0..rounds {
            let edited = (format!("edit {round}."), format!("edit {}.", round + 1));
            session.edit("a.txt", &edited.0, &edited.1).unwrap();
        }
        let mut times = session.store.editor.0.lock().unwrap();
        assert_eq!(times.windows.len(), rounds);
        times.windows.sort_unstable();
        let micros = |share: usize| times.windows[rounds * share / 100].as_micros();
        eprintln!("window for {} KB: median {} µs, p95 {} µs", size >> 10, micros(50), micros(95));
    }
}
