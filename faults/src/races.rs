//! Many servers edit one file at once, by every tool and on every transport: nothing is lost, refused, made twice, torn
//! or left over.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::folder::{in_memory, names, on_disk};
use crate::report::{Row, Scale, grouped};
use crate::rest::{Connection, HttpServer};
use crate::server::{Answer, Server};

const FILE: &str = "shared.txt";
/// Nobody gives up before the longest wait for a lock is over: whoever is refused was refused for another reason.
pub const PATIENT: &str = "--timeout=300";

/// Whether a call was refused because it had waited for the lock as long as a call ever does. So it is when the disk
/// stands still for half a minute while somebody syncs, which is nobody's fault.
pub fn is_stall(answer: &Answer, took: Duration) -> bool {
    answer.code() == Some(-32014) && took >= Duration::from_secs(29)
}

pub fn run(scale: Scale) -> Vec<Row> {
    let edits = scale.of(50, 500);
    let mut rows = vec![from_missing(edits, "data"), from_missing(edits, "none")];
    rows.extend(mixed(scale.of(50, 500)));
    rows
}

/// Each of these is there exactly once, and nothing else is. How many are lost.
fn check_each_once<'a>(
    row: &mut Row,
    found: impl Iterator<Item = &'a str>,
    expected: impl Iterator<Item = String>,
) -> usize {
    let mut lost = 0;
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for line in found {
        *counts.entry(line).or_default() += 1;
    }
    for token in expected {
        match counts.remove(token.as_str()) {
            Some(1) => {}
            Some(count) => row.bad.push(format!("{token} is there {count} times")),
            None => {
                lost += 1;
                row.bad.push(format!("{token} is lost"));
            }
        }
    }
    row.bad.extend(counts.into_keys().map(|line| format!("nobody wrote {line:?}")));
    lost
}

/// How the calls of one client went.
#[derive(Default)]
struct Calls {
    done: usize,
    created: usize,
    /// Refused because the file had changed since it was read, and made again.
    repeated: usize,
    /// Made again after the disk stood still.
    stalls: usize,
    longest: Duration,
    bad: Vec<String>,
}

impl Calls {
    fn add(&mut self, other: Self) {
        self.done += other.done;
        self.created += other.created;
        self.repeated += other.repeated;
        self.stalls += other.stalls;
        self.longest = self.longest.max(other.longest);
        self.bad.extend(other.bad);
    }
}

const PROCESSES: usize = 20;

/// From a missing file, all begin at once.
fn from_missing(edits: usize, durability: &str) -> Row {
    let mut row = Row::new(format!("{PROCESSES} servers append to a missing file, `{durability}`"));
    let folder = on_disk();
    let durability = format!("--durability={durability}");
    let begin = Barrier::new(PROCESSES + 1);
    let token = |process: usize, edit: usize| format!("<{process}-{edit}>");
    let append = |process: usize| {
        let mut server = Server::start(folder.path(), &[PATIENT, &durability]);
        server.ready();
        begin.wait();
        let mut calls = Calls::default();
        for edit in 0..edits {
            let arguments = json!({ "name": FILE, "append": token(process, edit) });
            loop {
                let since = Instant::now();
                let answer = server.call("edit_file", &arguments);
                let took = since.elapsed();
                calls.longest = calls.longest.max(took);
                match answer {
                    Ok(answer) if is_stall(&answer, took) && calls.stalls < 3 => calls.stalls += 1,
                    Ok(answer) if !answer.is_error() => {
                        calls.done += 1;
                        calls.created += usize::from(answer.data()["file_created"] == true);
                        break;
                    }
                    other => {
                        calls.bad.push(format!("{} was refused: {other:?}", token(process, edit)));
                        break;
                    }
                }
            }
        }
        calls
    };
    let (mut all, mut took) = (Calls::default(), Duration::ZERO);
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..PROCESSES).map(|process| scope.spawn(move || append(process))).collect();
        begin.wait();
        let since = Instant::now();
        for thread in threads {
            all.add(thread.join().unwrap());
        }
        took = since.elapsed();
    });
    row.tries = PROCESSES * edits;
    row.bad = all.bad;
    let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
    row.check(text.ends_with('\n'), || "the last line is torn".into());
    let expected =
        (0..PROCESSES).flat_map(|process| (0..edits).map(move |edit| token(process, edit)));
    let lost = check_each_once(&mut row, text.lines(), expected);
    row.check(all.created == 1, || format!("{} made the file", all.created));
    let left = names(folder.path());
    row.check(left == [FILE], || format!("left over: {left:?}"));
    let rate = grouped(rate(all.done, took));
    row.found(format!(
        "{} made, {lost} lost, {} creator, {rate} edits/s, longest call {:.0?}, {} made again after a stall of the disk",
        grouped(all.done),
        all.created,
        all.longest,
        all.stalls,
    ))
}

fn rate(count: usize, took: Duration) -> usize {
    let millis = usize::try_from(took.as_millis()).unwrap_or(usize::MAX);
    count * 1000 / millis.max(1)
}

/// Who talks to a server, and how.
enum Client {
    Stdio(Server),
    Mcp(Connection),
    Rest(Connection),
}

/// Why a call was not done.
struct Refusal {
    code: Option<i64>,
    told: String,
}

impl Client {
    /// The result of a call.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Refusal> {
        let lost = |told: String| Refusal { code: None, told };
        let result = match self {
            Self::Stdio(server) => {
                let answer =
                    server.call(tool, arguments).map_err(|why| lost(format!("{why:?}")))?;
                answer.0["result"].clone()
            }
            Self::Mcp(connection) => {
                let answer = connection.tool(tool, arguments);
                answer.map_err(|error| lost(error.to_string()))?["result"].clone()
            }
            Self::Rest(connection) => {
                connection.post(tool, arguments).map_err(|error| lost(error.to_string()))?
            }
        };
        if result.is_object() && result["isError"] != true {
            return Ok(result);
        }
        let error = result["structuredContent"].get("error").or(result.get("error"));
        let code = error.and_then(|error| error["code"].as_i64());
        Err(Refusal { code, told: result.to_string() })
    }

    /// Lines count from here.
    fn base(&self) -> usize {
        usize::from(matches!(self, Self::Rest(_)))
    }
}

/// How a client changes the file, which is: `BEGIN`, a line for each who has one of their own, what was inserted before
/// `END`, `END`, what was appended.
#[derive(Clone, Copy)]
enum Way {
    /// `edit_file` with `append`.
    Append,
    /// `edit_file` that replaces this line, which is the client's own.
    OwnLine(usize),
    /// `multi_edit_text_file` that puts a line before `END`.
    Insert,
    /// `write_text_file` of what was read with a line more before `END`, as long as that is still there.
    Rewrite,
}

/// The file and all who work on it.
struct Desk {
    folder: tempfile::TempDir,
    http: HttpServer,
}

impl Desk {
    fn path(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }

    fn stdio(&self) -> Client {
        Client::Stdio(Server::start(self.folder.path(), &[PATIENT, "--tools=all"]))
    }

    fn mcp(&self) -> Client {
        Client::Mcp(self.http.connect())
    }

    fn rest(&self) -> Client {
        Client::Rest(self.http.connect())
    }
}

const OWN_LINES: usize = 4;
const STALE: i64 = -32013;

fn own_line(line: usize, count: usize) -> String {
    format!("own {line} {count}")
}

fn mixed(edits: usize) -> Vec<Row> {
    let folder = in_memory();
    let http = HttpServer::start(folder.path(), &[PATIENT, "--tools=all"]);
    let desk = Desk { folder, http };
    let own_lines: Vec<_> = (0..OWN_LINES).map(|line| own_line(line, 0)).collect();
    fs::write(desk.path(), format!("BEGIN\n{}\nEND\n", own_lines.join("\n"))).unwrap();

    let mut writers = Vec::new();
    for _ in 0..3 {
        writers.push((desk.stdio(), Way::Append));
        writers.push((desk.stdio(), Way::Insert));
    }
    for _ in 0..2 {
        writers.push((desk.stdio(), Way::Rewrite));
        writers.push((desk.rest(), Way::Append));
    }
    writers.push((desk.mcp(), Way::Append));
    writers.push((desk.mcp(), Way::Insert));
    writers.push((desk.stdio(), Way::OwnLine(0)));
    writers.push((desk.stdio(), Way::OwnLine(1)));
    writers.push((desk.mcp(), Way::OwnLine(2)));
    writers.push((desk.rest(), Way::OwnLine(3)));
    let ways: Vec<_> = writers.iter().map(|(_, way)| *way).collect();
    let readers = [
        Reader::Disk,
        Reader::Text(desk.stdio()),
        Reader::Flat(desk.stdio()),
        Reader::Flat(desk.mcp()),
        Reader::Plain(desk.rest()),
    ];

    let path = desk.path();
    let over = AtomicBool::new(false);
    let since = Instant::now();
    let (mut all, mut seen, mut took) = (Calls::default(), Vec::new(), Duration::ZERO);
    thread::scope(|scope| {
        let path = &path;
        let over = &over;
        let readers: Vec<_> = readers
            .into_iter()
            .map(|reader| scope.spawn(move || watch(reader, path, over)))
            .collect();
        let writers: Vec<_> = writers
            .into_iter()
            .enumerate()
            .map(|(writer, (mut client, way))| {
                scope.spawn(move || write(&mut client, way, writer, edits, path))
            })
            .collect();
        for writer in writers {
            all.add(writer.join().unwrap());
        }
        took = since.elapsed();
        over.store(true, Ordering::Relaxed);
        for reader in readers {
            seen.push(reader.join().unwrap());
        }
    });

    let mut row =
        Row::new("four ways to edit one file at once, on stdio, by MCP over HTTP and by REST");
    let refused = all.bad.len();
    row.tries = all.done + refused;
    row.bad = all.bad;
    let text = fs::read_to_string(&path).unwrap();
    let end = match Version::parse(&text) {
        Ok(end) => end,
        Err(why) => {
            row.bad.push(format!("the file is broken: {why}"));
            return vec![row];
        }
    };
    let tokens = |wanted: fn(Way) -> bool| {
        let writers = ways.iter().enumerate().filter(move |(_, way)| wanted(**way));
        writers.flat_map(move |(writer, _)| (0..edits).map(move |edit| token(writer, edit)))
    };
    let inserted = tokens(|way| matches!(way, Way::Insert | Way::Rewrite));
    let appended = tokens(|way| matches!(way, Way::Append));
    let lost = check_each_once(&mut row, end.inserted.iter().copied(), inserted)
        + check_each_once(&mut row, end.appended.iter().copied(), appended);
    row.check(end.own == [edits; OWN_LINES], || format!("own lines: {:?}", end.own));
    let left = names(desk.folder.path());
    row.check(left == [FILE], || format!("left over: {left:?}"));
    let row = row.found(format!(
        "{} made, {lost} lost, {} repeated because the file had changed, {} refused otherwise, {} edits/s, longest call {:.0?}",
        grouped(all.done),
        grouped(all.repeated),
        refused,
        grouped(rate(all.done, took)),
        all.longest,
    ));
    vec![row, whole_versions(seen, &end)]
}

fn token(writer: usize, edit: usize) -> String {
    format!("<{writer}-{edit}>")
}

fn write(client: &mut Client, way: Way, writer: usize, edits: usize, path: &Path) -> Calls {
    let mut calls = Calls::default();
    for edit in 0..edits {
        let token = token(writer, edit);
        let since = Instant::now();
        let outcome = match way {
            Way::Append => client.call("edit_file", &json!({ "name": FILE, "append": token })),
            Way::OwnLine(own) => {
                // `BEGIN` is the first line.
                let line = client.base() + 1 + own;
                let content = own_line(own, edit + 1);
                let edit = json!({ "line": line, "operation": "replace", "content": content });
                client.call("edit_file", &json!({ "name": FILE, "edits": [edit] }))
            }
            Way::Insert => {
                let new = format!("{token}\nEND\n");
                let edit = json!({ "old_string": "END\n", "new_string": new });
                client.call("multi_edit_text_file", &json!({ "path": path, "edits": [edit] }))
            }
            Way::Rewrite => loop {
                match rewrite(client, path, &token) {
                    Err(Refusal { code: Some(STALE), .. }) => calls.repeated += 1,
                    outcome => break outcome,
                }
            },
        };
        // A rewrite is many calls.
        if !matches!(way, Way::Rewrite) {
            calls.longest = calls.longest.max(since.elapsed());
        }
        match outcome {
            Ok(_) => calls.done += 1,
            Err(Refusal { told, .. }) => calls.bad.push(format!("{token} was refused: {told}")),
        }
    }
    calls
}

fn rewrite(client: &mut Client, path: &Path, token: &str) -> Result<Value, Refusal> {
    let read = client.call("read_text_file", &json!({ "path": path }))?;
    let text = read["content"][0]["text"].as_str().unwrap_or_default();
    let content = text.replacen("END\n", &format!("{token}\nEND\n"), 1);
    let hash = &read["_meta"]["hash"];
    let arguments = json!({ "path": path, "content": content, "expected_hash": hash });
    client.call("write_text_file", &arguments)
}

/// Who looks at the file while it is edited.
enum Reader {
    /// Past the server.
    Disk,
    /// `read_text_file`
    Text(Client),
    /// `read_file`
    Flat(Client),
    /// The plain method.
    Plain(Client),
}

/// What a reader saw, each version once; and how often it looked.
struct Watched {
    looks: usize,
    texts: Vec<String>,
    bad: Vec<String>,
}

fn watch(mut reader: Reader, path: &Path, over: &AtomicBool) -> Watched {
    let mut watched = Watched { looks: 0, texts: Vec::new(), bad: Vec::new() };
    while !over.load(Ordering::Relaxed) {
        let text = match &mut reader {
            Reader::Disk => Ok(fs::read_to_string(path).unwrap()),
            Reader::Text(client) => client
                .call("read_text_file", &json!({ "path": path }))
                .map(|result| result["content"][0]["text"].as_str().unwrap_or_default().into()),
            Reader::Flat(client) => {
                client.call("read_file", &json!({ "name": FILE })).map(|result| {
                    let text = result["content"][0]["text"].as_str().unwrap_or_default();
                    let (_, lines) = text.split_once("\n\n").unwrap_or_default();
                    format!("{lines}\n")
                })
            }
            Reader::Plain(client) => client
                .call("read_file", &json!({ "name": FILE }))
                .map(|result| format!("{}\n", result["content"].as_str().unwrap_or_default())),
        };
        watched.looks += 1;
        match text {
            Ok(text) if watched.texts.last() != Some(&text) => watched.texts.push(text),
            Ok(_) => {}
            Err(Refusal { told, .. }) => watched.bad.push(format!("a read was refused: {told}")),
        }
        thread::sleep(Duration::from_millis(2));
    }
    watched
}

/// The parts of the file.
struct Version<'t> {
    /// How often each own line was replaced.
    own: Vec<usize>,
    inserted: Vec<&'t str>,
    appended: Vec<&'t str>,
}

impl<'t> Version<'t> {
    fn parse(text: &'t str) -> Result<Self, String> {
        let whole = text.strip_suffix('\n').ok_or("the last line is torn")?;
        let mut lines = whole.split('\n');
        let first = lines.next();
        if first != Some("BEGIN") {
            return Err(format!("it begins with {first:?}"));
        }
        let mut own = Vec::new();
        for line in 0..OWN_LINES {
            let found = lines.next().unwrap_or_default();
            let count = found.strip_prefix(&format!("own {line} "));
            let count = count.and_then(|count| count.parse().ok());
            own.push(count.ok_or_else(|| format!("instead of the own line {line}: {found:?}"))?);
        }
        let rest: Vec<_> = lines.collect();
        let end = rest.iter().position(|line| *line == "END").ok_or("there is no END")?;
        let (inserted, appended) = (rest[..end].to_vec(), rest[end + 1..].to_vec());
        let is_token = |line: &&&str| line.starts_with('<') && line.ends_with('>');
        match inserted.iter().chain(&appended).find(|line| !is_token(line)) {
            Some(torn) => Err(format!("a torn line: {torn:?}")),
            None => Ok(Self { own, inserted, appended }),
        }
    }

    /// How often each part was changed: never less in a later version.
    fn age(&self) -> Vec<usize> {
        [&self.own[..], &[self.inserted.len(), self.appended.len()]].concat()
    }
}

/// Everything that was seen is a version of its own, and all of them came one after another.
fn whole_versions(watched: Vec<Watched>, last: &Version) -> Row {
    let mut row =
        Row::new("readers meanwhile: by all reading tools, on all transports, and past the server");
    let mut ages = vec![last.age()];
    for Watched { looks, texts, bad } in watched {
        row.tries += looks;
        row.bad.extend(bad);
        for text in &texts {
            match Version::parse(text) {
                Ok(version)
                    if last.inserted.starts_with(&version.inserted)
                        && last.appended.starts_with(&version.appended) =>
                {
                    ages.push(version.age());
                }
                Ok(_) => row.bad.push(format!("lines in another order than in the end: {text:?}")),
                Err(why) => row.bad.push(why),
            }
        }
    }
    ages.sort_by_key(|age| age.iter().sum::<usize>());
    for pair in ages.windows(2) {
        let follows = pair[0].iter().zip(&pair[1]).all(|(before, after)| before <= after);
        row.check(follows, || format!("neither of two versions is the older one: {pair:?}"));
    }
    ages.dedup();
    let (versions, broken) = (grouped(ages.len()), row.bad.len());
    row.found(format!("{versions} whole versions, one after another; {broken} other answers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "own 0 0\nown 1 0\nown 2 0\nown 3 0";

    #[track_caller]
    fn check_seen(texts: &[&str], faults: usize) {
        let last = format!("BEGIN\n{}\n<1>\n<2>\nEND\n<3>\n<4>\n", OWN.replace("0 0", "0 9"));
        let texts = texts.iter().map(|text| text.replace("OWN", OWN)).collect();
        let watched = Watched { looks: 1, texts, bad: Vec::new() };
        let row = whole_versions(vec![watched], &Version::parse(&last).unwrap());
        assert_eq!(row.bad.len(), faults, "{:?}", row.bad);
    }

    #[test]
    fn versions_one_after_another_are_good() {
        check_seen(
            &["BEGIN\nOWN\nEND\n", "BEGIN\nOWN\n<1>\nEND\n", "BEGIN\nOWN\n<1>\nEND\n<3>\n"],
            0,
        );
    }

    #[test]
    fn torn_and_mixed_versions_are_noticed() {
        check_seen(&["BEGIN\nOWN\nEND"], 1);
        check_seen(&["BEGIN\nOWN\n<1>\n"], 1);
        check_seen(&["BEGIN\nown 0 0\nEND\n"], 1);
        check_seen(&["OWN\nEND\n", ""], 2);
        check_seen(&["BEGIN\nOWN\n<1>\nEND\n<3\n"], 1);
        check_seen(&["BEGIN\nOWN\n<2>\nEND\n"], 1);
        // Each is a part of the end, but neither became the other.
        check_seen(&["BEGIN\nOWN\n<1>\nEND\n", "BEGIN\nOWN\nEND\n<3>\n"], 1);
    }

    #[test]
    fn what_is_lost_doubled_or_foreign_is_counted() {
        let mut row = Row::new("");
        let expected = ["a", "b", "c"].map(String::from).into_iter();
        let lost = check_each_once(&mut row, ["a", "b", "b", "d"].into_iter(), expected);
        assert_eq!((lost, row.bad.len()), (1, 3), "{:?}", row.bad);
    }
}
