//! Nothing outside the folder is read or written, whatever a name leads to and however fast it is swapped.

mod outside;
mod trial;
mod tricks;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};

use crate::chance::Chance;
use crate::report::{Row, Scale, grouped};
use crate::server::{Answer, NoAnswer, Server};
use outside::{Place, SECRET, no_sandbox, refusal};

pub fn run(scale: Scale) -> Vec<Row> {
    let swaps = scale.of(15_000, 500_000);
    let calls = scale.of(1_000, 20_000);
    let alone: Vec<_> = no_sandbox().into_iter().collect();
    let mut rows = vec![
        race(
            "files swapped with links to the outside, and with pipes",
            swap_files,
            &alone,
            swaps,
            calls,
        ),
        race("folders swapped with links to the outside", swap_folders, &alone, swaps, calls),
        race(
            "the root swapped with a link to the outside",
            swap_root,
            &alone,
            swaps / 5,
            calls / 5,
        ),
    ];
    if alone.is_empty() {
        rows.push(not_tried("the same with the sandbox", "this binary has none"));
    } else {
        rows.push(race("files, with the sandbox", swap_files, &[], swaps / 5, calls / 5));
        rows.push(race("folders, with the sandbox", swap_folders, &[], swaps / 5, calls / 5));
    }
    rows.push(control(scale.of(200_000, 1_000_000)));
    rows.extend(tricks::run());
    rows
}

/// Something that cannot be tried here: told, and a fault where everything must be tried.
pub fn not_tried(what: &str, why: &str) -> Row {
    let mut row = Row::new(what).found(format!("not tried: {why}"));
    row.check(std::env::var("CI").is_err(), || format!("not tried: {why}"));
    row
}

/// Two names that are exchanged over and over, one of them a link to the outside; and the calls made meanwhile.
struct Scene {
    pairs: Vec<Pair>,
    calls: Vec<Call>,
    led: Led,
}

/// Where the swapped names lead the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Led {
    /// Outside, every now and then, where it must not go.
    Astray,
    /// Nowhere: it does not look at them.
    Nowhere,
}

struct Pair {
    names: [PathBuf; 2],
    double: Double,
}

/// What a name is swapped with.
enum Double {
    LinkTo(PathBuf),
    /// Opening it as a file is opened would wait for somebody at its other end.
    Pipe,
}

impl Double {
    fn make(&self, at: &Path) {
        match self {
            Self::LinkTo(target) => symlink(target, at).unwrap(),
            Self::Pipe => {
                let mode = Mode::from_raw_mode(0o600);
                mknodat(CWD, at, FileType::Fifo, mode, 0).unwrap();
            }
        }
    }
}

impl Pair {
    /// `name` is there, its double is made.
    fn new(name: PathBuf, double: Double) -> Self {
        let mut other = name.clone().into_os_string();
        other.push("-double");
        double.make(other.as_ref());
        Self { names: [name, other.into()], double }
    }

    fn swap(&self) {
        let [one, other] = &self.names;
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    }

    /// An edit may take the place of the double in the very moment of its publication. Then there is a new one; whether
    /// that was so.
    fn mend(&self) -> bool {
        let is_gone = self.names.iter().all(|name| fs::symlink_metadata(name).unwrap().is_file());
        if is_gone {
            let next = self.names[0].with_extension("next");
            self.double.make(&next);
            fs::rename(&next, &self.names[1]).unwrap();
        }
        is_gone
    }
}

/// A call of a tool, or of a plain method.
#[derive(Clone)]
enum Call {
    Tool(&'static str, Value),
    Plain(&'static str, Value),
    /// `write_text_file` into a folder that is not there yet; this is what it is in.
    Deep(PathBuf),
}

impl Call {
    /// What the figures are kept by.
    fn name(&self) -> String {
        match self {
            Self::Tool(name, _) => (*name).into(),
            Self::Plain(name, _) => format!("plain {name}"),
            Self::Deep(_) => "write_text_file with create_dirs".into(),
        }
    }

    fn make(&self, server: &mut Server, number: usize) -> Result<Answer, NoAnswer> {
        match self {
            Self::Tool(name, arguments) => server.call(name, arguments),
            Self::Plain(name, arguments) => server.method(name, arguments),
            Self::Deep(folder) => {
                let path = folder.join(format!("new-{number}/deep/a.txt"));
                let arguments = json!({ "path": path, "content": "mark\n", "create_dirs": true });
                server.call("write_text_file", &arguments)
            }
        }
    }
}

/// All tools on a file in the root.
fn flat_calls(name: &str) -> Vec<Call> {
    let append = json!({ "name": name, "append": "line" });
    vec![
        Call::Tool("read_file", json!({ "name": name })),
        Call::Plain("read_file", json!({ "name": name })),
        Call::Tool("edit_file", append.clone()),
        Call::Plain("edit_file", append),
        Call::Tool("list_files", json!({})),
    ]
}

fn text_calls(path: &Path) -> Vec<Call> {
    let edit = json!({ "old_string": "mark", "new_string": "mark-" });
    vec![
        Call::Tool("read_text_file", json!({ "path": path })),
        Call::Tool("write_text_file", json!({ "path": path, "content": "mark\n" })),
        Call::Tool("multi_edit_text_file", json!({ "path": path, "edits": [edit] })),
    ]
}

fn swap_files(place: &Place) -> Scene {
    let root = place.root();
    let mut calls = Vec::new();
    for name in ["one", "one-double", "two", "two-double", "three", "three-double"] {
        calls.extend(flat_calls(name));
        calls.extend(text_calls(&root.join(name)));
    }
    let pair = |name: &str, double: Double| {
        fs::write(root.join(name), "mark\n").unwrap();
        Pair::new(root.join(name), double)
    };
    let pairs = vec![
        pair("one", Double::LinkTo(place.outside().join("secret.txt"))),
        pair("two", Double::LinkTo("../outside/secret.txt".into())),
        pair("three", Double::Pipe),
    ];
    Scene { pairs, calls, led: Led::Astray }
}

fn swap_folders(place: &Place) -> Scene {
    let root = place.root();
    let mut calls = Vec::new();
    let pair = |name: &str, target: PathBuf| {
        fs::create_dir_all(root.join(name).join("sub")).unwrap();
        for file in ["secret.txt", "sub/secret.txt"] {
            fs::write(root.join(name).join(file), "mark\n").unwrap();
        }
        Pair::new(root.join(name), Double::LinkTo(target))
    };
    let pairs = vec![pair("one", place.outside()), pair("two", "../outside".into())];
    for folder in ["one", "one-double", "two", "two-double"] {
        // The tools that know no folders get there by a link.
        let through = format!("through-{folder}");
        symlink(format!("{folder}/sub/secret.txt"), root.join(&through)).unwrap();
        calls.extend(flat_calls(&through));
        calls.extend(text_calls(&root.join(folder).join("secret.txt")));
        calls.extend(text_calls(&root.join(folder).join("sub/secret.txt")));
        calls.push(Call::Deep(root.join(folder)));
        // A name that is missing is answered with those that are alike.
        let alike = root.join(folder).join("secre.txt");
        calls.push(Call::Tool("read_text_file", json!({ "path": alike })));
    }
    Scene { pairs, calls, led: Led::Astray }
}

fn swap_root(place: &Place) -> Scene {
    let root = place.root();
    let mut calls = flat_calls("in.txt");
    fs::write(root.join("in.txt"), "mark\n").unwrap();
    calls.extend(text_calls(&root.join("in.txt")));
    calls.push(Call::Deep(root.clone()));
    let pairs = vec![Pair::new(root, Double::LinkTo(place.outside()))];
    Scene { pairs, calls, led: Led::Nowhere }
}

/// Somebody who swaps names.
#[derive(Default)]
struct Swapper {
    swaps: AtomicUsize,
    /// How often an edit took the place of what was there in the moment of its publication.
    overwritten: AtomicUsize,
    over: AtomicBool,
}

impl Swapper {
    /// Exchanges names in bursts, with pauses of any length between them, until told to stop.
    fn run(&self, pairs: &[Pair]) {
        // Whoever waits for swaps must not wait for ever.
        let _stop = Stop(&self.over);
        let mut chance = Chance::new(1);
        while !self.over.load(Ordering::Relaxed) {
            for _ in 0..=chance.below(100) {
                pairs[usize::try_from(chance.below(pairs.len() as u64)).unwrap()].swap();
                self.swaps.fetch_add(1, Ordering::Relaxed);
            }
            let overwritten = pairs.iter().filter(|pair| pair.mend()).count();
            self.overwritten.fetch_add(overwritten, Ordering::Relaxed);
            thread::sleep(chance.duration(Duration::from_micros(500)));
        }
    }

    fn swaps(&self) -> usize {
        self.swaps.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Says that it is over when it goes.
struct Stop<'o>(&'o AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How the calls of one client went.
#[derive(Default)]
struct Answers {
    done: BTreeMap<String, usize>,
    refused: BTreeMap<String, usize>,
    codes: BTreeMap<i64, usize>,
    /// Calls during which names were swapped.
    disturbed: usize,
    longest: Duration,
    bad: Vec<String>,
}

const CLIENTS: usize = 3;

/// While names are swapped, servers read and write through them.
fn race(
    what: &str,
    scene: fn(&Place) -> Scene,
    flags: &[&str],
    enough_swaps: usize,
    enough_calls: usize,
) -> Row {
    let mut row = Row::new(what);
    let place = Place::new();
    let Scene { pairs, calls, led } = scene(&place);
    let flags = [flags, &["--tools=all", "--durability=none", "--timeout=2"]].concat();
    let mut servers: Vec<_> = (0..CLIENTS).map(|_| Server::start(&place.root(), &flags)).collect();
    servers.iter_mut().for_each(Server::ready);
    let (swapper, made) = (Swapper::default(), AtomicUsize::new(0));
    let is_enough = || {
        let is_enough =
            swapper.swaps() >= enough_swaps && made.load(Ordering::Relaxed) >= enough_calls;
        is_enough || swapper.is_over()
    };
    let talk = |client: usize, mut server: Server| {
        let mut answers = Answers::default();
        let mut chance = Chance::new(client as u64);
        while !is_enough() {
            let call = &calls[usize::try_from(chance.below(calls.len() as u64)).unwrap()];
            let number = made.fetch_add(1, Ordering::Relaxed);
            let (since, before) = (Instant::now(), swapper.swaps());
            let answer = match call.make(&mut server, number) {
                Ok(answer) => answer,
                Err(why) => {
                    answers.bad.push(format!("{}: no answer: {why:?}", call.name()));
                    return answers;
                }
            };
            answers.longest = answers.longest.max(since.elapsed());
            answers.disturbed += usize::from(swapper.swaps() != before);
            if place.is_told_in(&answer) {
                answers.bad.push(format!("{} tells the secret: {answer:?}", call.name()));
            }
            match refusal(&answer) {
                Some(code) => {
                    *answers.refused.entry(call.name()).or_default() += 1;
                    *answers.codes.entry(code).or_default() += 1;
                }
                None => *answers.done.entry(call.name()).or_default() += 1,
            }
        }
        answers
    };
    let mut all = Answers::default();
    thread::scope(|scope| {
        scope.spawn(|| swapper.run(&pairs));
        let _stop = Stop(&swapper.over);
        let talk = &talk;
        let clients: Vec<_> = servers
            .into_iter()
            .enumerate()
            .map(|(client, server)| scope.spawn(move || talk(client, server)))
            .collect();
        for client in clients {
            let Answers { done, refused, codes, disturbed, longest, bad } = client.join().unwrap();
            add(&mut all.done, done);
            add(&mut all.refused, refused);
            add(&mut all.codes, codes);
            all.disturbed += disturbed;
            all.longest = all.longest.max(longest);
            all.bad.extend(bad);
        }
    });
    row.bad = all.bad;
    row.bad.extend(place.touched().into_iter().map(|touched| format!("outside: {touched}")));
    // Where the real folder is now.
    let root =
        if place.root().is_symlink() { place.parent().join("root-double") } else { place.root() };
    row.bad.extend(leftovers(&root).into_iter().map(|left| format!("left over: {left}")));
    for call in &calls {
        let name = call.name();
        row.check(all.done.contains_key(&name), || format!("{name} was never done: no race"));
        let may_always_do = led == Led::Nowhere || name == "list_files";
        let is_raced = may_always_do || all.refused.contains_key(&name);
        row.check(is_raced, || format!("{name} was never refused: no race"));
    }
    if led == Led::Nowhere {
        let refused = &all.refused;
        row.check(refused.is_empty(), || format!("refused: {refused:?}"));
    }
    for (code, count) in &all.codes {
        let is_expected = matches!(code, -32001 | -32002 | -32003 | -32014);
        row.check(is_expected, || format!("{count} refusals with code {code}"));
    }
    let (swaps, calls) = (swapper.swaps(), made.into_inner());
    row.tries = swaps;
    row.found(format!(
        "{} calls, {} done inside, {} refused {:?}, {} swaps a call, {} calls saw swaps, \
         {} links overwritten in the moment of publication, longest {:.0?}",
        grouped(calls),
        grouped(all.done.values().sum()),
        grouped(all.refused.values().sum()),
        all.codes,
        swaps / calls.max(1),
        grouped(all.disturbed),
        swapper.overwritten.into_inner(),
        all.longest,
    ))
}

fn add<K: Ord>(all: &mut BTreeMap<K, usize>, more: BTreeMap<K, usize>) {
    for (key, count) in more {
        *all.entry(key).or_default() += count;
    }
}

/// Temporary files anywhere below.
fn leftovers(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(leftovers(&entry.path()));
        }
        if entry.file_name().to_string_lossy().starts_with(".fe-") {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

/// Who first looks where a name leads and then opens it is led outside. If not, there was no race.
fn control(most_swaps: usize) -> Row {
    let mut row = Row::new("control: files swapped under a program that checks, then opens");
    let place = Place::new();
    let Scene { pairs, .. } = swap_files(&place);
    let root = fs::canonicalize(place.root()).unwrap();
    let swapper = Swapper::default();
    let (mut opened, mut refused, mut leaked) = (0_usize, 0_usize, 0_usize);
    thread::scope(|scope| {
        scope.spawn(|| swapper.run(&pairs));
        let _stop = Stop(&swapper.over);
        while leaked < 10 && swapper.swaps() < most_swaps && !swapper.is_over() {
            let links = pairs.iter().filter(|pair| matches!(pair.double, Double::LinkTo(_)));
            for name in links.flat_map(|pair| &pair.names) {
                row.tries += 1;
                let resolved = fs::canonicalize(name).unwrap();
                if !resolved.starts_with(&root) {
                    refused += 1;
                } else if let Ok(text) = fs::read_to_string(&resolved) {
                    opened += 1;
                    leaked += usize::from(text.contains(SECRET));
                }
            }
        }
    });
    row.check(leaked > 0, || "it was never led outside: there was no race".into());
    // Not where the file system was told to forget who reads.
    let traces = if place.touched().is_empty() { "without a trace" } else { "with traces" };
    row.found(format!(
        "{} opened, {} refused, {leaked} leaks in {} swaps, {traces} outside",
        grouped(opened),
        grouped(refused),
        grouped(swapper.swaps())
    ))
}
