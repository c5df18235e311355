//! A server inside a program of ours: guests by their tokens, folders, and a witness of the calls.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::pin::Pin;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use files::{Access, DiskOptions, DiskStore, Durability, FaultyStore, Root, Step, Store};
use serde_json::{Value, json};
use server::observer::{CallInfo, CallObserver, FileChange, Permission, Verdict};
use server::{Calls, Confirm, Level, Log, LoopbackServer, Options, Structured, ToolErrors};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tools::{Effect, Failure, FailureKind, Limits, ToolOutput};

/// Longer than anything takes that is not broken.
const HANG: Duration = Duration::from_secs(30);
const MAX_SIZE: u64 = 1 << 20;

/// An open house, and the runtime it lives in.
struct House {
    hosted: Option<Arc<LoopbackServer>>,
    close: Option<oneshot::Sender<()>>,
    runtime: Option<JoinHandle<()>>,
}

impl House {
    fn open() -> Self {
        let (opened, hosted) = mpsc::channel();
        let (close, closed) = oneshot::channel();
        let runtime = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                opened.send(LoopbackServer::open().unwrap()).unwrap();
                let _ = closed.await;
            });
        });
        let hosted = hosted.recv().unwrap();
        Self { hosted: Some(hosted), close: Some(close), runtime: Some(runtime) }
    }

    fn hosted(&self) -> &LoopbackServer {
        self.hosted.as_ref().unwrap()
    }

    fn admit(&self, calls: Arc<Calls>) -> Guest {
        let token = self.hosted().admit(calls);
        Guest { address: self.address(), token }
    }

    fn address(&self) -> String {
        let url = self.hosted().url();
        let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        address.unwrap().to_owned()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.hosted = None;
        let _ = self.close.take().unwrap().send(());
        let _ = self.runtime.take().unwrap().join();
    }
}

/// Somebody with a token.
#[derive(Clone)]
struct Guest {
    address: String,
    token: String,
}

impl Guest {
    fn headers(&self) -> String {
        format!("Host: {}\r\nAuthorization: Bearer {}\r\n", self.address, self.token)
    }

    /// Sends a request, and leaves the answer where it is.
    fn send(&self, headers: &str, message: &Value) -> TcpStream {
        let (body, mut stream) = (message.to_string(), TcpStream::connect(&self.address).unwrap());
        stream.set_read_timeout(Some(HANG)).unwrap();
        let request = format!(
            "POST /mcp HTTP/1.1\r\n{headers}Content-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn post(&self, headers: &str, message: &Value) -> (u16, Value) {
        answer(self.send(headers, message))
    }

    /// The answer to a call of a tool: its result, or its error.
    fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_with(tool, arguments, json!({}))
    }

    fn call_with(&self, tool: &str, arguments: Value, meta: Value) -> Value {
        let (status, answer) = self.post(&self.headers(), &call(tool, arguments, meta));
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Calls while the test goes on.
    fn start(&self, tool: &'static str, arguments: Value) -> JoinHandle<Value> {
        let guest = self.clone();
        std::thread::spawn(move || guest.call(tool, arguments))
    }
}

fn answer(mut stream: TcpStream) -> (u16, Value) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, serde_json::from_str(body).unwrap())
}

fn call(tool: &str, arguments: Value, meta: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

/// The code of a failure.
fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("it was done: {answer}"))
}

fn done(answer: &Value) {
    assert!(answer["result"].is_object(), "{answer}");
}

fn options() -> Options {
    Options {
        tools: tools::TEXT.iter().collect(),
        access: Access::ReadWrite,
        tool_errors: ToolErrors::JsonRpc,
        structured: Structured::Off,
        confirm: Confirm::Never,
        observer: None,
        model: None,
        instructions: None,
    }
}

fn disk(folder: &Path) -> (Arc<Root>, DiskStore) {
    let root = Arc::new(Root::open(folder).unwrap());
    let options = DiskOptions { max_size: MAX_SIZE, durability: Durability::None };
    (Arc::clone(&root), DiskStore::open(root, options))
}

fn boxed((root, store): (Arc<Root>, impl Store + 'static)) -> (Arc<Root>, Box<dyn Store>) {
    (root, Box::new(store))
}

fn serving(folders: &[&Path], options: Options) -> Arc<Calls> {
    let mut folders = folders.iter().map(|folder| boxed(disk(folder)));
    let (root, store) = folders.next().unwrap();
    let limits = Limits::new(MAX_SIZE, HANG);
    Calls::with_more(root, store, folders.collect(), limits, options, Log::new(Level::Error))
}

/// A folder with `a.txt`, which says this.
fn folder(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), text).unwrap();
    folder
}

fn a_txt(folder: &TempDir) -> String {
    std::fs::read_to_string(folder.path().join("a.txt")).unwrap()
}

fn write(folder: &TempDir, text: &str) -> Value {
    json!({ "path": folder.path().join("a.txt"), "content": text })
}

mod guests {
    use super::*;

    fn list() -> Value {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })
    }

    #[test]
    fn only_who_bears_a_token_is_served() {
        let (house, folder) = (House::open(), folder("one\n"));
        let guest = house.admit(serving(&[folder.path()], options()));
        let status = |headers: &str| guest.post(headers, &list()).0;
        let host = format!("Host: {}\r\n", guest.address);
        assert_eq!(guest.token.len(), 64);
        assert_eq!(status(&guest.headers()), 200);
        assert_eq!(status(&host), 401);
        assert_eq!(status(&format!("{host}Authorization: Bearer {}\r\n", "0".repeat(64))), 401);
        let half = &guest.token[..32];
        assert_eq!(status(&format!("{host}Authorization: Bearer {half}\r\n")), 401);
        // A page that somebody visits is not let in, whatever it bears.
        let token = format!("Authorization: Bearer {}\r\n", guest.token);
        assert_eq!(status(&format!("Host: example.com\r\n{token}")), 403);
        assert_eq!(status(&format!("{host}{token}Origin: http://example.com\r\n")), 403);
    }

    #[test]
    fn a_token_that_is_taken_back_means_nothing_and_others_still_do() {
        let (house, folder) = (House::open(), folder("one\n"));
        let [one, other] = [(); 2].map(|()| house.admit(serving(&[folder.path()], options())));
        assert_ne!(one.token, other.token);
        house.hosted().dismiss(&one.token);
        assert_eq!(one.post(&one.headers(), &list()).0, 401);
        assert_eq!(other.post(&other.headers(), &list()).0, 200);
    }

    #[test]
    fn nobody_is_served_when_the_house_is_closed() {
        let house = House::open();
        let address = house.address();
        drop(house);
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn each_has_a_folder_of_its_own() {
        let (house, mine, yours) = (House::open(), folder("mine\n"), folder("yours\n"));
        let me = house.admit(serving(&[mine.path()], options()));
        let you = house.admit(serving(&[yours.path()], options()));
        let read = |guest: &Guest, folder: &TempDir| {
            guest.call("read_text_file", json!({ "path": folder.path().join("a.txt") }))
        };
        assert_eq!(read(&me, &mine)["result"]["content"][0]["text"], "mine\n");
        assert_eq!(read(&you, &yours)["result"]["content"][0]["text"], "yours\n");
        assert_eq!(code(&read(&me, &yours)), -32002);
        assert_eq!(code(&you.call("write_text_file", write(&mine, "gone\n"))), -32002);
        assert_eq!(a_txt(&mine), "mine\n");
    }
}

mod folders {
    use super::*;

    #[test]
    fn a_call_is_run_in_the_folder_that_its_path_is_in() {
        let (house, one, two) = (House::open(), folder("one\n"), folder("two\n"));
        let guest = house.admit(serving(&[one.path(), two.path()], options()));
        done(&guest.call("write_text_file", write(&one, "ONE\n")));
        done(&guest.call("write_text_file", write(&two, "TWO\n")));
        assert_eq!((a_txt(&one), a_txt(&two)), ("ONE\n".into(), "TWO\n".into()));
        let elsewhere = folder("three\n");
        let refused = guest.call("write_text_file", write(&elsewhere, "THREE\n"));
        assert_eq!(code(&refused), -32002);
        let [first, second] = [&one, &two].map(|folder| folder.path().display());
        let hint = format!("only files below one of {first}, {second} can be reached");
        assert!(refused.to_string().contains(&hint), "{refused}");
        assert_eq!(a_txt(&elsewhere), "three\n");
        // That it is a folder is told by the one that it is in.
        let path = format!("{}/", two.path().display());
        assert_eq!(code(&guest.call("read_text_file", json!({ "path": path }))), -32003);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_was_given_by_a_link_has_two_names() {
        let (house, one, two) = (House::open(), folder("one\n"), folder("two\n"));
        let link = one.path().join("link");
        std::os::unix::fs::symlink(two.path(), &link).unwrap();
        let guest = house.admit(serving(&[one.path(), &link], options()));
        done(&guest.call("write_text_file", write(&two, "TWO\n")));
        assert_eq!(a_txt(&two), "TWO\n");
        let by_link = json!({ "path": link.join("a.txt"), "content": "two\n" });
        done(&guest.call("write_text_file", by_link));
        assert_eq!(a_txt(&two), "two\n");
    }

    /// A store of its own shows which folder a call was run in.
    #[test]
    fn of_two_that_a_path_is_in_the_inner_one_counts() {
        let (house, outer) = (House::open(), folder("outer\n"));
        let inner = outer.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let (root, store) = disk(&inner);
        let store = FaultyStore::new(store);
        store.fail(Step::Update, 0, files::StoreError::DiskFull);
        let (limits, log) = (Limits::new(MAX_SIZE, HANG), Log::new(Level::Error));
        let (first, more) = (boxed(disk(outer.path())), vec![boxed((root, store))]);
        let calls = Calls::with_more(first.0, first.1, more, limits, options(), log);
        let guest = house.admit(calls);
        let write = |path: &Path| {
            guest.call("write_text_file", json!({ "path": path, "content": "new\n" }))
        };
        // By its dots it leaves the inner one, but not the outer.
        done(&write(&inner.join("../b.txt")));
        done(&write(&outer.path().join("a.txt")));
        assert_eq!(code(&write(&inner.join("a.txt"))), -32005);
        done(&write(&inner.join("a.txt")));
        assert_eq!(std::fs::read_to_string(inner.join("a.txt")).unwrap(), "new\n");
    }

    #[test]
    fn an_agent_is_told_of_all_of_them_or_what_the_program_says() {
        let (house, one, two) = (House::open(), folder(""), folder(""));
        let initialize = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            },
        });
        let instructions = |folders: &[&Path], options| {
            let guest = house.admit(serving(folders, options));
            let (_, answer) = guest.post(&guest.headers(), &initialize);
            answer["result"]["instructions"].as_str().unwrap().to_owned()
        };
        let [first, second] = [one.path(), two.path()];
        let told = instructions(&[first, second], options());
        let named = format!("The folders are {}, {}", first.display(), second.display());
        assert!(told.ends_with(&named), "{told}");
        let told = instructions(&[first], options());
        assert!(told.ends_with(&format!("The folder is {}", first.display())), "{told}");
        let words = Options { instructions: Some("Edit with care.".into()), ..options() };
        assert_eq!(instructions(&[first, second], words), "Edit with care.");
    }
}

mod witnessed {
    use super::*;

    /// What a witness saw.
    #[derive(Debug)]
    enum Event {
        Begin(CallInfo, Value),
        Permission(CallInfo),
        Ask(Vec<FileChange>, oneshot::Sender<Verdict>),
        /// The question was taken back.
        Dropped,
        End(CallInfo, Result<(), FailureKind>, Vec<FileChange>),
    }

    struct Eyes {
        leave: Mutex<Permission>,
        events: Sender<Event>,
    }

    impl Eyes {
        fn tell(&self, event: Event) {
            let _ = self.events.send(event);
        }

        fn give(&self, leave: Permission) {
            *self.leave.lock().unwrap() = leave;
        }
    }

    struct Open<'a>(&'a Eyes);

    impl Drop for Open<'_> {
        fn drop(&mut self) {
            self.0.tell(Event::Dropped);
        }
    }

    impl CallObserver for Eyes {
        fn begin(&self, call: &CallInfo, arguments: &Value) {
            self.tell(Event::Begin(call.clone(), arguments.clone()));
        }

        fn permission(&self, call: &CallInfo) -> Permission {
            let leave = *self.leave.lock().unwrap();
            self.tell(Event::Permission(call.clone()));
            leave
        }

        fn ask<'a>(
            &'a self,
            _: &'a CallInfo,
            changes: &'a [FileChange],
        ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
            Box::pin(async move {
                let open = Open(self);
                let (answer, verdict) = oneshot::channel();
                self.tell(Event::Ask(changes.to_vec(), answer));
                let verdict = verdict.await.unwrap_or(Verdict::Unanswered);
                std::mem::forget(open);
                verdict
            })
        }

        fn end(
            &self,
            call: &CallInfo,
            outcome: Result<&ToolOutput, &Failure>,
            changes: &[FileChange],
        ) {
            let outcome = outcome.map(drop).map_err(|failure| failure.kind);
            self.tell(Event::End(call.clone(), outcome, changes.to_vec()));
        }
    }

    /// A guest, and what is seen of it.
    struct ChangeDigest {
        guest: Guest,
        eyes: Arc<Eyes>,
        events: Receiver<Event>,
        house: House,
        folder: TempDir,
    }

    fn seen(leave: Permission) -> ChangeDigest {
        seen_in(leave, HANG, |store| store)
    }

    fn seen_in<S: Store + 'static>(
        leave: Permission,
        timeout: Duration,
        with: impl FnOnce(DiskStore) -> S,
    ) -> ChangeDigest {
        let (house, folder) = (House::open(), folder("one\n"));
        let (told, events) = mpsc::channel();
        let eyes = Arc::new(Eyes { leave: Mutex::new(leave), events: told });
        let observer: Arc<dyn CallObserver> = Arc::clone(&eyes) as _;
        let options = Options { observer: Some(observer), ..options() };
        let (root, store) = disk(folder.path());
        let (store, limits) = (Box::new(with(store)), Limits::new(MAX_SIZE, timeout));
        let calls = Calls::new(root, store, limits, options, Log::new(Level::Error));
        ChangeDigest { guest: house.admit(calls), eyes, events, house, folder }
    }

    impl ChangeDigest {
        fn next(&self) -> Event {
            self.events.recv_timeout(HANG).expect("something is seen")
        }

        fn begin(&self) -> (CallInfo, Value) {
            match self.next() {
                Event::Begin(call, arguments) => (call, arguments),
                other => panic!("no call began, but {other:?}"),
            }
        }

        fn permission(&self) -> CallInfo {
            match self.next() {
                Event::Permission(call) => call,
                other => panic!("no leave was asked for, but {other:?}"),
            }
        }

        fn ask(&self) -> (FileChange, oneshot::Sender<Verdict>) {
            match self.next() {
                Event::Ask(changes, answer) => {
                    let [change] = changes.try_into().expect("one file");
                    (change, answer)
                }
                other => panic!("nothing was asked, but {other:?}"),
            }
        }

        /// The end of a call. Paths of files are made relative to the folder.
        fn end_of(&self) -> (CallInfo, Result<(), FailureKind>, Vec<FileChange>) {
            let (call, outcome, mut changes) = match self.next() {
                Event::End(call, outcome, changes) => (call, outcome, changes),
                other => panic!("no call ended, but {other:?}"),
            };
            for change in &mut changes {
                let path = Path::new(&change.path).strip_prefix(self.folder.path());
                change.path = path.expect("in the folder").display().to_string();
            }
            (call, outcome, changes)
        }

        fn end(&self) -> (Result<(), FailureKind>, Vec<FileChange>) {
            let (_, outcome, changes) = self.end_of();
            (outcome, changes)
        }

        /// Calls `write_text_file` up to the question.
        fn ask_to_write(&self, text: &str) -> (JoinHandle<Value>, oneshot::Sender<Verdict>) {
            let call = self.guest.start("write_text_file", write(&self.folder, text));
            self.begin();
            self.permission();
            let (changed, answer) = self.ask();
            assert_eq!(changed.after.as_deref().unwrap(), text.as_bytes());
            (call, answer)
        }

        fn text(&self) -> String {
            a_txt(&self.folder)
        }

        /// All that was to be seen has been: what comes next is what is done next.
        fn nothing_more(&self) {
            let path = self.folder.path().join("a.txt");
            let meta = json!({ "callId": "the next" });
            done(&self.guest.call_with("read_text_file", json!({ "path": path }), meta));
            assert_eq!(self.begin().0.id.as_deref(), Some("the next"));
            assert_eq!(self.end(), (Ok(()), vec![]));
            assert!(self.events.try_recv().is_err());
        }
    }

    /// The end of a call that wrote this to `a.txt`.
    fn wrote(before: Option<&str>, after: &str) -> (Result<(), FailureKind>, Vec<FileChange>) {
        wrote_to("a.txt", before, after)
    }

    /// The end of a call that wrote this to a file of the folder.
    fn wrote_to(
        path: &str,
        before: Option<&str>,
        after: &str,
    ) -> (Result<(), FailureKind>, Vec<FileChange>) {
        let bytes = |text: &str| Arc::new(text.as_bytes().to_vec());
        let (before, after) = (before.map(bytes), Some(bytes(after)));
        (Ok(()), vec![FileChange { path: path.into(), before, after }])
    }

    #[test]
    fn a_call_begins_and_ends_once_with_what_it_wrote() {
        let seen = seen(Permission::Granted);
        let path = seen.folder.path().join("a.txt");
        let edits = json!([{ "old_string": "one", "new_string": "two" }]);
        let arguments = json!({ "path": path, "edits": edits });
        let meta = json!({ "callId": "call_7", "threadId": "t" });
        done(&seen.guest.call_with("multi_edit_text_file", arguments.clone(), meta));
        let (call, told) = seen.begin();
        let begun = CallInfo {
            number: call.number,
            id: Some("call_7".into()),
            tool: "multi_edit_text_file",
            effect: Effect::Edits,
            path: Some(path.display().to_string()),
        };
        assert_eq!((call, told), (begun.clone(), arguments));
        assert_eq!(seen.permission(), begun);
        let (ended, outcome, changes) = seen.end_of();
        assert_eq!((&ended, (outcome, changes)), (&begun, wrote(Some("one\n"), "two\n")));
        // The same once more writes nothing, and a new file had nothing before.
        done(&seen.guest.call("write_text_file", write(&seen.folder, "two\n")));
        assert_ne!(seen.begin().0.number, begun.number);
        seen.permission();
        assert_eq!(seen.end(), (Ok(()), vec![]));
        let new = json!({ "path": seen.folder.path().join("new/b.txt"), "content": "b\n", "create_dirs": true });
        done(&seen.guest.call_with("write_text_file", new, json!({ "callId": 7 })));
        assert_eq!(seen.begin().0.id, None, "it is no string");
        seen.permission();
        assert_eq!(seen.end(), wrote_to("new/b.txt", None, "b\n"));
        seen.nothing_more();
    }

    #[test]
    fn a_call_that_fails_changed_nothing() {
        let seen = seen(Permission::Granted);
        let path = seen.folder.path().join("a.txt");
        let edits = json!([{ "old_string": "absent", "new_string": "two" }]);
        let answer =
            seen.guest.call("multi_edit_text_file", json!({ "path": path, "edits": edits }));
        assert_eq!(code(&answer), -32010);
        seen.begin();
        seen.permission();
        assert_eq!(seen.end(), (Err(FailureKind::NoMatch), vec![]));
        seen.nothing_more();
    }

    #[test]
    fn arguments_that_make_no_sense_are_seen_as_they_came() {
        let seen = seen(Permission::Granted);
        let arguments = json!({ "path": seen.folder.path().join("a.txt"), "text": "two" });
        assert_eq!(code(&seen.guest.call("write_text_file", arguments.clone())), -32602);
        let (begun, given) = seen.begin();
        assert_eq!((begun.path.as_deref(), &given), (arguments["path"].as_str(), &arguments));
        assert_eq!(seen.end(), (Err(FailureKind::Invalid), vec![]));
        seen.nothing_more();
    }

    #[test]
    fn what_is_refused_leave_is_not_run() {
        let seen = seen(Permission::Refused("the editor is in read-only mode"));
        let answer = seen.guest.call("write_text_file", write(&seen.folder, "two\n"));
        assert_eq!(code(&answer), -32002);
        assert!(answer.to_string().contains("the editor is in read-only mode"), "{answer}");
        seen.begin();
        seen.permission();
        assert_eq!(seen.end(), (Err(FailureKind::Denied), vec![]));
        assert_eq!(seen.text(), "one\n");
        // Reading needs no leave.
        seen.nothing_more();
    }

    #[test]
    fn what_is_agreed_to_is_written_and_nothing_else_is() {
        let seen = seen(Permission::Ask);
        let check = |verdict, text: &str| {
            let (call, answer) = seen.ask_to_write("two\n");
            assert_eq!(seen.text(), "one\n", "nothing is written before");
            match verdict {
                Some(verdict) => answer.send(verdict).unwrap(),
                None => drop(answer),
            }
            let answer = call.join().unwrap();
            if verdict == Some(Verdict::Yes) {
                seen.permission();
            }
            let end = seen.end();
            assert_eq!(seen.text(), text);
            (answer, end)
        };
        for verdict in [Some(Verdict::No), Some(Verdict::Unanswered), None] {
            let (answer, end) = check(verdict, "one\n");
            assert_eq!((code(&answer), end), (-32002, (Err(FailureKind::Declined), vec![])));
        }
        let (answer, end) = check(Some(Verdict::Yes), "two\n");
        done(&answer);
        assert_eq!(end, wrote(Some("one\n"), "two\n"));
        // Nobody is asked about nothing.
        done(&seen.guest.call("write_text_file", write(&seen.folder, "two\n")));
        seen.begin();
        seen.permission();
        assert_eq!(seen.end(), (Ok(()), vec![]));
        seen.nothing_more();
    }

    /// The call that is asked about is not in the way of another, and does not undo what that did.
    #[test]
    fn a_file_that_changed_after_the_question_is_left_alone() {
        let seen = seen(Permission::Ask);
        let (call, answer) = seen.ask_to_write("two\n");
        seen.eyes.give(Permission::Granted);
        done(&seen.guest.call("write_text_file", write(&seen.folder, "three\n")));
        seen.begin();
        seen.permission();
        assert_eq!(seen.end(), wrote(Some("one\n"), "three\n"));
        answer.send(Verdict::Yes).unwrap();
        assert_eq!(code(&call.join().unwrap()), -32013);
        seen.permission();
        assert_eq!(seen.end(), (Err(FailureKind::Stale), vec![]));
        assert_eq!(seen.text(), "three\n");
        seen.nothing_more();
    }

    /// What somebody types while another is asked stays, if the edit still means one place.
    #[test]
    fn an_edit_that_still_fits_after_the_question_is_made_on_what_is_there() {
        let check = |typed: &str, after: Result<&str, FailureKind>| {
            let seen = seen(Permission::Ask);
            let path = seen.folder.path().join("a.txt");
            let edits = json!([{ "old_string": "one", "new_string": "two" }]);
            let edit = json!({ "path": path, "edits": edits });
            let call = seen.guest.start("multi_edit_text_file", edit);
            seen.begin();
            seen.permission();
            let (changed, answer) = seen.ask();
            assert_eq!(changed.after.as_deref().unwrap(), b"two\n");
            std::fs::write(path, typed).unwrap();
            answer.send(Verdict::Yes).unwrap();
            let answer = call.join().unwrap();
            seen.permission();
            match after {
                Ok(after) => {
                    done(&answer);
                    assert_eq!(seen.end(), wrote(Some(typed), after));
                    assert_eq!(seen.text(), after);
                }
                Err(kind) => {
                    assert_eq!(code(&answer), -32013);
                    assert_eq!(seen.end(), (Err(kind), vec![]));
                    assert_eq!(seen.text(), typed);
                }
            }
        };
        check("zero\none\n", Ok("zero\ntwo\n"));
        check("one\none\n", Err(FailureKind::Stale));
        check("gone\n", Ok("gtwo\n"));
        check("zero\n", Err(FailureKind::Stale));
    }

    /// Who is asked may take long, and the mode may change meanwhile.
    #[test]
    fn a_yes_that_comes_when_nothing_may_be_written_any_more_is_too_late() {
        let seen = seen(Permission::Ask);
        let (call, answer) = seen.ask_to_write("two\n");
        seen.eyes.give(Permission::Refused("the mode has changed"));
        answer.send(Verdict::Yes).unwrap();
        let answer = call.join().unwrap();
        assert_eq!(code(&answer), -32002);
        assert!(answer.to_string().contains("the mode has changed"), "{answer}");
        seen.permission();
        assert_eq!(seen.end(), (Err(FailureKind::Denied), vec![]));
        assert_eq!(seen.text(), "one\n");
        seen.nothing_more();
    }

    fn check_hanging_up(with: impl FnOnce(&mut TcpStream)) {
        let seen = seen(Permission::Ask);
        let meta = json!({ "progressToken": 1 });
        let message = call("write_text_file", write(&seen.folder, "two\n"), meta);
        let headers = seen.guest.headers() + "Accept: application/json, text/event-stream\r\n";
        let mut stream = seen.guest.send(&headers, &message);
        seen.begin();
        seen.permission();
        let (_, _answer) = seen.ask();
        with(&mut stream);
        drop(stream);
        assert!(matches!(seen.next(), Event::Dropped));
        assert_eq!(seen.end(), (Err(FailureKind::Cancelled), vec![]));
        assert_eq!(seen.text(), "one\n");
        seen.nothing_more();
    }

    #[test]
    fn a_question_whose_asker_hangs_up_is_taken_back() {
        check_hanging_up(|_| {});
        // Once a part of the answer was sent there is another body to be dropped.
        check_hanging_up(|stream| {
            let mut told = Vec::new();
            while !String::from_utf8_lossy(&told).contains("notifications/progress") {
                let mut more = [0; 1024];
                let count = stream.read(&mut more).unwrap();
                assert_ne!(count, 0, "{told:?}");
                told.extend_from_slice(&more[..count]);
            }
        });
    }

    /// What the protocol refuses after the call has arrived is not run, and ends all the same.
    #[test]
    fn a_call_that_is_never_run_ends_too() {
        let seen = seen(Permission::Granted);
        let message = call("write_text_file", write(&seen.folder, "two\n"), json!({}));
        let headers = seen.guest.headers() + "MCP-Protocol-Version: 1999-01-01\r\n";
        assert_eq!(seen.guest.post(&headers, &message).0, 400);
        seen.begin();
        assert_eq!(seen.end(), (Err(FailureKind::Cancelled), vec![]));
        assert_eq!(seen.text(), "one\n");
        seen.nothing_more();
    }

    #[test]
    fn a_question_of_a_guest_who_is_dismissed_is_taken_back() {
        let seen = seen(Permission::Ask);
        let (call, _answer) = seen.ask_to_write("two\n");
        seen.house.hosted().dismiss(&seen.guest.token);
        assert!(matches!(seen.next(), Event::Dropped));
        assert_eq!(seen.end(), (Err(FailureKind::Stopping), vec![]));
        assert_eq!(code(&call.join().unwrap()), -32014);
        assert_eq!(seen.text(), "one\n");
    }

    /// What is not known before: how long somebody thinks.
    #[test]
    fn the_time_somebody_takes_is_not_the_calls() {
        let timeout = Duration::from_secs(2);
        let seen = seen_in(Permission::Ask, timeout, |store| store);
        let (call, answer) = seen.ask_to_write("two\n");
        std::thread::sleep(timeout);
        answer.send(Verdict::Yes).unwrap();
        done(&call.join().unwrap());
        seen.permission();
        assert_eq!(seen.end(), wrote(Some("one\n"), "two\n"));
    }

    /// A mode that changes while a call waits holds for that call.
    #[test]
    fn leave_is_asked_for_when_the_turn_has_come() {
        let seen = seen(Permission::Granted);
        let lock = std::fs::File::open(seen.folder.path().join("a.txt")).unwrap();
        lock.lock().unwrap();
        let one = seen.guest.start("write_text_file", write(&seen.folder, "two\n"));
        seen.begin();
        seen.permission();
        let other = seen.guest.start("write_text_file", write(&seen.folder, "three\n"));
        seen.begin();
        seen.nothing_more();
        seen.eyes.give(Permission::Refused("the mode has changed"));
        lock.unlock().unwrap();
        done(&one.join().unwrap());
        assert_eq!(seen.end(), wrote(Some("one\n"), "two\n"));
        seen.permission();
        assert_eq!(code(&other.join().unwrap()), -32002);
        assert_eq!(seen.end(), (Err(FailureKind::Denied), vec![]));
        assert_eq!(seen.text(), "two\n");
    }

    #[test]
    fn a_call_that_panics_ends_too() {
        let seen = seen_in(Permission::Granted, HANG, |store| {
            let store = FaultyStore::new(store);
            store.interfere(Step::Update, 0, |_| panic!("as planned"));
            store
        });
        let message = call("write_text_file", write(&seen.folder, "two\n"), json!({}));
        assert_eq!(seen.guest.post(&seen.guest.headers(), &message).0, 500);
        seen.begin();
        seen.permission();
        assert_eq!(seen.end(), (Err(FailureKind::Internal), vec![]));
        seen.nothing_more();
    }
}
