//! A folder that is served and one beside it that is not, with a secret in it: whether anything of it shows, and whether
//! anybody was there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
use serde_json::json;
use tempfile::TempDir;

use crate::folder::names;
use crate::server::{Answer, Server, binary};

/// The secret is made of this, and nothing else is.
pub const SECRET: char = '☠';
/// How many lines it has; a number that no file inside has.
const SECRET_LINES: usize = 4243;

/// What a file, folder or link is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thing {
    mode: u32,
    /// The bytes of a file, or where a link leads.
    bytes: Vec<u8>,
    /// When it was last written and read, in nanoseconds.
    times: [(i64, i64); 2],
}

pub type Things = BTreeMap<PathBuf, Thing>;

/// The parent of both folders.
pub struct Place {
    parent: TempDir,
    before: Things,
    secret_hash: String,
}

impl Place {
    pub fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        for folder in ["root", "root/sub", "root-too", "outside", "outside/sub"] {
            fs::create_dir(at(folder)).unwrap();
        }
        let secret = format!("{SECRET}\n").repeat(SECRET_LINES);
        for name in ["secret.txt", "sub/secret.txt", "in.txt", &format!("secre{SECRET}.txt")] {
            fs::write(at("outside").join(name), &secret).unwrap();
        }
        fs::write(at("root-too/in.txt"), &secret).unwrap();
        fs::write(at("root/in.txt"), "inside\n").unwrap();
        let mut place = Self { before: Things::new(), secret_hash: String::new(), parent };
        // The hash of a file says what is in it to those who can guess.
        let mut server = Server::start(&place.outside(), &["--tools=text", "--read-only"]);
        let path = place.outside().join("secret.txt");
        let answer = server.call("read_text_file", &json!({ "path": path })).unwrap();
        place.secret_hash = answer.0["result"]["_meta"]["hash"].as_str().unwrap().into();
        place.before = place.look_outside();
        place
    }

    fn look_outside(&self) -> Things {
        let mut things = look(&self.outside());
        // It only begins like the root.
        things.extend(look(&self.parent().join("root-too")));
        things
    }

    /// Makes a link in the root.
    pub fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.root().join(name)).unwrap();
    }

    pub fn parent(&self) -> &Path {
        self.parent.path()
    }

    pub fn root(&self) -> PathBuf {
        self.parent().join("root")
    }

    pub fn outside(&self) -> PathBuf {
        self.parent().join("outside")
    }

    /// Whether an answer holds anything of the secret: a character, its hash, or how long it is.
    pub fn is_told_in(&self, answer: &Answer) -> bool {
        let answer = format!("{}{}", answer.0["result"], answer.0["error"]);
        answer.contains(SECRET)
            || answer.contains(&self.secret_hash)
            || answer.contains(&format!(":{SECRET_LINES}"))
    }

    /// What is different outside: names, bytes, modes, times of writing and of reading.
    pub fn touched(&self) -> Vec<String> {
        let now = self.look_outside();
        let mut touched = differences(&self.before, &now);
        let beside = names(self.parent());
        // The root may have been moved about.
        let foreign = |name: &&String| *name != "outside" && !name.starts_with("root");
        touched.extend(beside.iter().filter(foreign).map(|name| format!("new: {name}")));
        touched
    }
}

/// The paths at which two looks differ.
pub fn differences(before: &Things, now: &Things) -> Vec<String> {
    let mut paths: Vec<_> = before.keys().chain(now.keys()).collect();
    paths.sort();
    paths.dedup();
    let differs = |path: &&&PathBuf| before.get(**path) != now.get(**path);
    let shown = |path: &PathBuf| {
        let short = |thing: Option<&Thing>| match thing {
            Some(Thing { mode, bytes, times }) => {
                format!("{mode:o}, {} bytes, {times:?}", bytes.len())
            }
            None => "nothing".into(),
        };
        format!("{}: {} -> {}", path.display(), short(before.get(path)), short(now.get(path)))
    };
    paths.iter().filter(differs).map(|path| shown(path)).collect()
}

/// Everything at and below `path`. Nobody can tell that it was looked at.
pub fn look(path: &Path) -> Things {
    let mut things = Things::new();
    look_into(path, &mut things);
    things
}

fn look_into(path: &Path, things: &mut Things) {
    let found = fs::symlink_metadata(path).unwrap();
    let bytes = if found.is_symlink() {
        fs::read_link(path).unwrap().into_os_string().into_encoded_bytes()
    } else if found.is_file() {
        fs::read(path).unwrap()
    } else {
        Vec::new()
    };
    if found.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            look_into(&entry.unwrap().path(), things);
        }
    }
    if !found.is_symlink() {
        let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let read = Timespec { tv_sec: found.atime(), tv_nsec: found.atime_nsec() };
        let times = Timestamps { last_access: read, last_modification: omit };
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
    let times = [(found.mtime(), found.mtime_nsec()), (found.atime(), found.atime_nsec())];
    things.insert(path.into(), Thing { mode: found.mode(), bytes, times });
}

/// The same without times, which change inside as they like.
pub fn without_times(mut things: Things) -> Things {
    for thing in things.values_mut() {
        thing.times = [(0, 0); 2];
    }
    things
}

/// The code of a refusal, in either dialect; `None` when the call was done.
pub fn refusal(answer: &Answer) -> Option<i64> {
    let bare = answer.0["error"]["code"].as_i64();
    let is_error = answer.0["result"]["isError"] == true;
    bare.or_else(|| is_error.then(|| answer.code().unwrap_or_default()))
}

/// The flag that turns the sandbox off, if this binary has one.
pub fn no_sandbox() -> Option<&'static str> {
    static HELP: OnceLock<String> = OnceLock::new();
    let help = HELP.get_or_init(|| {
        let output = std::process::Command::new(binary()).arg("--help").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    help.contains("--no-sandbox").then_some("--no-sandbox")
}
