//! What was appended, and what became of it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Appends to one file, before the next is begun: each append writes the whole file.
const OF_ONE_FILE: usize = 2000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It must be there, once.
    Acknowledged,
    /// It must not be there.
    Refused,
    /// Nobody waited for the answer, or nobody was left to give it.
    Unknown,
}

pub struct Book {
    next: AtomicUsize,
    /// Since all was looked at last.
    open: Mutex<BTreeMap<usize, Fate>>,
    /// Of all that was looked at.
    done: Mutex<BTreeMap<Fate, usize>>,
}

impl Book {
    pub fn new() -> Self {
        Self {
            next: AtomicUsize::new(0),
            open: Mutex::new(BTreeMap::new()),
            done: Mutex::new(BTreeMap::new()),
        }
    }

    /// Another append, of which nothing is known yet.
    pub fn next(&self) -> usize {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        self.note(token, Fate::Unknown);
        token
    }

    pub fn note(&self, token: usize, fate: Fate) {
        self.open.lock().unwrap().insert(token, fate);
    }

    /// What is wrong with the files, by their names; then all begins anew.
    pub fn settle(&self, files: &BTreeMap<String, String>) -> Vec<String> {
        let open = std::mem::take(&mut *self.open.lock().unwrap());
        let mut bad = Vec::new();
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        for (name, text) in files {
            for line in text.split_inclusive('\n') {
                match token(line).filter(|token| file_of(*token) == *name) {
                    Some(token) => *seen.entry(token).or_default() += 1,
                    None => bad.push(format!("{name}: a torn or a foreign line: {line:?}")),
                }
            }
        }
        for (token, fate) in &open {
            let times = seen.remove(token).unwrap_or_default();
            let is_right = match fate {
                Fate::Acknowledged => times == 1,
                Fate::Refused => times == 0,
                Fate::Unknown => times <= 1,
            };
            if !is_right {
                bad.push(format!("{fate:?} append {token} is there {times} times"));
            }
            *self.done.lock().unwrap().entry(*fate).or_default() += 1;
        }
        bad.extend(seen.keys().map(|token| format!("append {token} was made by nobody")));
        bad
    }

    pub fn count(&self, fate: Fate) -> usize {
        self.done.lock().unwrap().get(&fate).copied().unwrap_or_default()
    }
}

pub fn line(token: usize) -> String {
    format!("<{token:08}>\n")
}

pub fn file_of(token: usize) -> String {
    format!("count-{}.txt", token / OF_ONE_FILE)
}

fn token(line: &str) -> Option<usize> {
    let digits = line.strip_prefix('<')?.strip_suffix(">\n")?;
    (digits.len() == 8).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is bad when these lines are there after an append of each fate: 0 acknowledged, 1 refused, 2 unknown.
    #[track_caller]
    fn check(lines: &str, bad: usize) {
        let book = Book::new();
        for fate in [Fate::Acknowledged, Fate::Refused, Fate::Unknown] {
            book.note(book.next(), fate);
        }
        let files = BTreeMap::from([(file_of(0), lines.to_owned())]);
        let found = book.settle(&files);
        assert_eq!(found.len(), bad, "{lines:?}: {found:?}");
    }

    #[test]
    fn what_must_not_be_is_noticed() {
        check("<00000000>\n", 0);
        check("<00000002>\n<00000000>\n", 0);
        check("", 1);
        check("<00000000>\n<00000000>\n", 1);
        check("<00000000>\n<00000001>\n", 1);
        check("<00000000>\n<00000002>\n<00000002>\n", 1);
        check("<00000000>\n<00000007>\n", 1);
        check("<00000000>\n<0000", 1);
        check("<00000000>\n<00002000>\n", 1);
    }
}
