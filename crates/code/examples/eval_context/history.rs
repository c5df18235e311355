//! Commits and trees, as git tells them.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use code::words;

use crate::Outcome;

/// Extensions that count as source.
const SOURCES: &[&str] = &[
    "c", "cc", "cpp", "cs", "css", "cts", "go", "h", "hpp", "html", "java", "js", "jsx", "kt",
    "mjs", "mts", "php", "py", "pyi", "rb", "rs", "scala", "scss", "sh", "svelte", "swift", "ts",
    "tsx", "vue",
];
/// Commits that changed more than this are about everything.
const CHANGED_FILES_MAX: usize = 10;
/// Subjects with fewer words than this, not counting the usual ones, do not say what they are about.
const SUBJECT_WORDS_MIN: usize = 3;
const BLOB_BYTES_MAX: usize = 2 << 20;

/// A question with its answer.
pub struct Task {
    pub subject: String,
    pub parent: String,
    /// The files that were modified, with the lines that were, from 0, as they were before.
    pub changed: BTreeMap<String, Vec<Range<usize>>>,
}

/// A file of a tree.
#[derive(Clone)]
pub struct File {
    pub path: String,
    pub text: Rc<[u8]>,
}

pub struct History {
    folder: String,
    cat: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    blobs: HashMap<String, Rc<[u8]>>,
}

impl Drop for History {
    fn drop(&mut self) {
        let _ = self.cat.kill();
        let _ = self.cat.wait();
    }
}

impl History {
    pub fn open(folder: &str) -> Outcome<Self> {
        let mut cat = Command::new("git")
            .args(["-C", folder, "cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let questions = cat.stdin.take().ok_or("no way to ask git")?;
        let answers = BufReader::new(cat.stdout.take().ok_or("no way to hear git")?);
        Ok(Self { folder: folder.to_owned(), cat, questions, answers, blobs: HashMap::new() })
    }

    /// The last part of the folder's path that tells something.
    pub fn name(&self) -> &str {
        let parts = self.folder.rsplit('/').filter(|part| !["", "repo", ".git"].contains(part));
        parts.map(|part| part.trim_end_matches(".git")).next().unwrap_or(&self.folder)
    }

    fn git(&self, arguments: &[&str]) -> Outcome<String> {
        let output = Command::new("git").args(["-C", &self.folder]).args(arguments).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The last so many commits that can be asked about, the newest first.
    pub fn tasks(&self, count: usize) -> Outcome<Vec<Task>> {
        let log = self.git(&["log", "--no-merges", "--min-parents=1", "--format=%H %P %s"])?;
        let mut tasks = Vec::new();
        for line in log.lines() {
            if tasks.len() == count {
                break;
            }
            let mut parts = line.splitn(3, ' ');
            let (Some(commit), Some(parent), Some(subject)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            if words::terms(subject).len() < SUBJECT_WORDS_MIN {
                continue;
            }
            let changed = self.changed(parent, commit)?;
            if (1..=CHANGED_FILES_MAX).contains(&changed.len()) {
                tasks.push(Task {
                    subject: subject.to_owned(),
                    parent: parent.to_owned(),
                    changed,
                });
            }
        }
        Ok(tasks)
    }

    fn changed(&self, parent: &str, commit: &str) -> Outcome<BTreeMap<String, Vec<Range<usize>>>> {
        let names = self.git(&[
            "diff-tree",
            "-r",
            "--no-renames",
            "--diff-filter=M",
            "--name-only",
            parent,
            commit,
        ])?;
        let sources = names.lines().filter(|path| is_source(path)).count();
        if !(1..=CHANGED_FILES_MAX).contains(&sources) {
            return Ok(BTreeMap::new());
        }
        let diff = self.git(&[
            "diff-tree",
            "-r",
            "-p",
            "-U0",
            "--no-renames",
            "--diff-filter=M",
            "--no-ext-diff",
            "--no-color",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            parent,
            commit,
        ])?;
        let mut changed: BTreeMap<String, Vec<Range<usize>>> = BTreeMap::new();
        let mut path = None;
        for line in diff.lines() {
            if line.starts_with("diff --git") {
                path = None;
            } else if let Some(name) = line.strip_prefix("--- a/").filter(|_| path.is_none()) {
                path = Some(name.to_owned());
            } else if let (Some(path), Some(hunk)) = (&path, line.strip_prefix("@@ -"))
                && is_source(path)
            {
                changed.entry(path.clone()).or_default().extend(old_lines(hunk));
            }
        }
        Ok(changed)
    }

    /// The text files of a commit; only its sources, if that is said.
    pub fn tree(&mut self, commit: &str, only_sources: bool) -> Outcome<Vec<File>> {
        let listing = self.git(&["ls-tree", "-r", "-z", commit])?;
        let mut files = Vec::new();
        for entry in listing.split('\0').filter(|entry| !entry.is_empty()) {
            let (about, path) = entry.split_once('\t').ok_or("git lists something strange")?;
            let blob = about.rsplit(' ').next().unwrap_or_default();
            if about.starts_with("100") && !is_hidden(path) && (is_source(path) || !only_sources) {
                let text = self.blob(blob)?;
                if std::str::from_utf8(&text).is_ok() && memchr::memchr(0, &text).is_none() {
                    files.push(File { path: path.to_owned(), text });
                }
            }
        }
        Ok(files)
    }

    fn blob(&mut self, name: &str) -> Outcome<Rc<[u8]>> {
        if let Some(text) = self.blobs.get(name) {
            return Ok(text.clone());
        }
        writeln!(self.questions, "{name}")?;
        let mut header = String::new();
        self.answers.read_line(&mut header)?;
        // A copy of a repository may lack the largest files.
        if header.trim_end().ends_with("missing") {
            return Ok(Rc::from([0_u8]));
        }
        let size = header.trim_end().rsplit(' ').next().unwrap_or_default();
        let mut text =
            vec![0; size.parse::<usize>().map_err(|_| format!("git says {header}"))? + 1];
        self.answers.read_exact(&mut text)?;
        text.pop();
        text.truncate(BLOB_BYTES_MAX);
        let text: Rc<[u8]> = text.into();
        self.blobs.insert(name.to_owned(), text.clone());
        Ok(text)
    }
}

fn is_hidden(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with('.'))
}

fn is_source(path: &str) -> bool {
    path.rsplit('/')
        .next()
        .and_then(|name| name.rsplit_once('.'))
        .is_some_and(|(_, extension)| SOURCES.contains(&extension))
}

/// `12,3 +…` are lines 11 to 13, from 0. Where nothing was taken away, the lines on both sides count.
fn old_lines(hunk: &str) -> Option<Range<usize>> {
    let old = hunk.split(' ').next()?;
    let (start, count) = old.split_once(',').unwrap_or((old, "1"));
    let (start, count): (usize, usize) = (start.parse().ok()?, count.parse().ok()?);
    Some(if count == 0 {
        start.saturating_sub(1)..start + 1
    } else {
        start.saturating_sub(1)..start.saturating_sub(1) + count
    })
}
