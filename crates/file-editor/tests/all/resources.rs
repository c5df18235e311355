//! Files as MCP resources: listed in pages, read by their URIs, on every transport and in every protocol version.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use crate::harness::http::Request;
use crate::harness::{Folder, Server, as_nobody, fault, is_root_to_check, log_lines, modern};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

/// A client of either era on either transport, in a server of its own.
struct Client {
    name: &'static str,
    is_modern: bool,
    ask: Box<Ask>,
}

/// A method and its parameters; the whole answer.
type Ask = dyn FnMut(&str, Value) -> Value;

impl Client {
    fn request(&mut self, method: &str, params: Value) -> Value {
        (self.ask)(method, params)
    }

    fn read(&mut self, uri: &str) -> Value {
        self.request("resources/read", json!({ "uri": uri }))
    }

    /// The only text of a resource.
    fn text(&mut self, uri: &str) -> String {
        let answer = self.read(uri);
        let contents = answer["result"]["contents"].as_array().unwrap_or_else(|| {
            panic!("{}: {uri}: {}", self.name, answer["error"]);
        });
        let [content] = contents.as_slice() else { panic!("{contents:?}") };
        assert_eq!(content["uri"], uri, "{}", self.name);
        assert_eq!(content["mimeType"], "text/plain", "{}", self.name);
        content["text"].as_str().unwrap().to_owned()
    }

    /// The answer's resources, and the cursor of the next page.
    fn page(&mut self, cursor: Option<&str>) -> (Vec<Value>, Option<String>) {
        let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let answer = self.request("resources/list", params);
        let result = &answer["result"];
        let resources = result["resources"].as_array().unwrap_or_else(|| panic!("{answer}"));
        (resources.clone(), result["nextCursor"].as_str().map(String::from))
    }

    /// All of them, page by page: each is full but the last, which has something.
    fn list(&mut self) -> Vec<Value> {
        let (mut all, mut next) = self.page(None);
        while let Some(cursor) = next {
            assert_eq!(all.len() % 100, 0, "{}", self.name);
            let (page, after) = self.page(Some(&cursor));
            assert!(!page.is_empty(), "{}", self.name);
            all.extend(page);
            next = after;
        }
        all
    }

    fn names(&mut self) -> Vec<String> {
        self.list().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn on_stdio(folder: &Folder, flags: &[&str]) -> [Client; 2] {
    let mut server = folder.serve_with(flags);
    let legacy = move |method: &str, params| server.request(method, params);
    let mut server = folder.serve_with(flags);
    let newest = move |method: &str, params| server.request(method, modern(params));
    [
        Client { name: "stdio", is_modern: false, ask: Box::new(legacy) },
        Client { name: "stdio 2026-07-28", is_modern: true, ask: Box::new(newest) },
    ]
}

fn over_http(folder: &Folder, flags: &[&str]) -> [Client; 2] {
    let server = folder.http_with(flags);
    let mut mcp = server.mcp();
    let legacy = move |method: &str, params| {
        let _alive = &server;
        mcp.request(method, params)
    };
    let server = folder.http_with(flags);
    let mut mcp = server.modern();
    let newest = move |method: &str, params| {
        let _alive = &server;
        mcp.request(method, params)
    };
    [
        Client { name: "http", is_modern: false, ask: Box::new(legacy) },
        Client { name: "http 2026-07-28", is_modern: true, ask: Box::new(newest) },
    ]
}

fn clients(folder: &Folder) -> impl Iterator<Item = Client> {
    on_stdio(folder, &[]).into_iter().chain(over_http(folder, &[]))
}

/// The URI of a file in the folder whose name needs no encoding.
fn uri(folder: &Folder, name: &str) -> String {
    format!("file://{}/{name}", folder.path().display())
}

#[test]
fn files_are_listed_in_pages_of_a_hundred() {
    let folder = Folder::new();
    let mut expected: Vec<String> = (0..250).map(|number| format!("{number:03}.txt")).collect();
    for name in &expected {
        folder.put(name, name);
    }
    // In the order of bytes a folder comes after what begins like it and goes on with a `-` or `.`.
    for path in ["100/z", "100-a", "100.txt.d/b", "sub/deeper/file"] {
        folder.put(path, path);
        expected.push(path.into());
    }
    expected.sort();
    for mut client in clients(&folder) {
        let name = client.name;
        let (first, next) = client.page(None);
        assert_eq!(first.len(), 100, "{name}");
        let (second, next) = client.page(next.as_deref());
        let (third, last) = client.page(next.as_deref());
        assert_eq!((second.len(), third.len(), last), (100, 54, None), "{name}");
        let all = [first, second, third].concat();
        let names: Vec<_> = all.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected, "{name}");
        let mut one = all[0].clone();
        let modified = one["annotations"]["lastModified"].take();
        assert_eq!(modified.as_str().unwrap().len(), "2026-07-28T10:30:00Z".len());
        let expected = json!({
            "uri": uri(&folder, "000.txt"),
            "name": "000.txt",
            "mimeType": "text/plain",
            "size": 7,
            "annotations": { "lastModified": null },
        });
        assert_eq!(one, expected, "{name}");
    }
}

#[test]
fn a_page_that_ends_with_the_last_file_is_the_last() {
    let folder = Folder::new();
    let [mut client, _] = on_stdio(&folder, &[]);
    assert_eq!(client.page(None), (vec![], None));
    for number in 0..100 {
        folder.write(&format!("{number:02}"), "");
    }
    let (page, next) = client.page(None);
    assert_eq!((page.len(), next), (100, None));
    // Hidden ones are no page of their own.
    folder.write("zz", "");
    folder.write(".hidden", "");
    let (_, next) = client.page(None);
    let (page, next) = client.page(next.as_deref());
    assert_eq!((page.len(), next), (1, None));
}

#[test]
fn each_version_gets_its_own_shape() {
    let folder = Folder::new();
    folder.write("a.txt", "one\n");
    for mut client in clients(&folder) {
        let requests = [
            ("resources/list", json!({}), "resources"),
            ("resources/templates/list", json!({}), "resourceTemplates"),
            ("resources/read", json!({ "uri": uri(&folder, "a.txt") }), "contents"),
        ];
        for (method, params, member) in requests {
            let answer = client.request(method, params);
            let result = answer["result"].as_object().unwrap_or_else(|| panic!("{answer}"));
            let keys: BTreeSet<_> = result.keys().map(String::as_str).collect();
            let expected = if client.is_modern {
                assert_eq!(result["resultType"], "complete", "{method}");
                assert_eq!(result["ttlMs"], 0, "{method}");
                assert_eq!(result["cacheScope"], "private", "{method}");
                BTreeSet::from(["cacheScope", "resultType", "ttlMs", member])
            } else {
                BTreeSet::from([member])
            };
            assert_eq!(keys, expected, "{} {method}", client.name);
        }
    }
}

#[test]
fn the_template_leads_to_every_file() {
    let folder = Folder::new();
    let root = folder.file("a {b} ü#?");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(root.join("sub/a.txt"), "one\n").unwrap();
    let mut server = Server::start(&root, &[], &[]);
    let answer = server.request("resources/templates/list", json!({}));
    let encoded = format!("{}/a%20%7Bb%7D%20%C3%BC%23%3F", folder.path().display());
    let expected = json!([{
        "uriTemplate": format!("file://{encoded}/{{+path}}"),
        "name": "file",
        "title": "Text file",
        "description": "A text file, by its path below the folder that is served",
        "mimeType": "text/plain",
    }]);
    assert_eq!(answer["result"]["resourceTemplates"], expected);
    let uri = format!("file://{encoded}/sub/a.txt");
    let answer = server.request("resources/read", json!({ "uri": uri }));
    assert_eq!(answer["result"]["contents"][0]["text"], "one\n", "{answer}");
    let answer = server.request("resources/list", json!({}));
    assert_eq!(answer["result"]["resources"][0]["uri"], uri);
    let answer = server.request("resources/templates/list", json!({ "cursor": "00" }));
    assert_eq!(fault(&answer, -32602), "Invalid cursor");
}

/// Whoever handles URIs may fold a `..`, which is wrong where there are links.
#[test]
fn uris_have_no_dots_in_them_whatever_the_folder_was_called() {
    let folder = Folder::new();
    folder.put("far/root/a.txt", "one\n");
    std::fs::create_dir(folder.file("far/other")).unwrap();
    symlink("far/other", folder.file("link")).unwrap();
    let mut server = Server::start(&folder.file("link/../root"), &[], &[]);
    let answer = server.request("resources/list", json!({}));
    let resolved = folder.path().canonicalize().unwrap();
    let uri = format!("file://{}/far/root/a.txt", resolved.display());
    assert_eq!(answer["result"]["resources"][0]["uri"], uri, "{answer}");
    // By the path as it was given it can be read as well.
    for uri in [uri, format!("file://{}/link/../root/a.txt", folder.path().display())] {
        let answer = server.request("resources/read", json!({ "uri": uri }));
        assert_eq!(answer["result"]["contents"][0]["text"], "one\n", "{answer}");
    }
}

#[test]
fn names_of_all_kinds_are_listed_and_read() {
    let folder = Folder::new();
    let names = [
        " leading and trailing ",
        "#fragment?query=1&b",
        "%41%2e%2F%",
        "+plus;semi:colon@at",
        "-dash",
        "Ünïcödé 日本語 🦀",
        "[a]{b}<c>|d^`\"'\\n\\",
        "a b/c#d/e?f/%2e%2e/g.txt",
        "e\u{301} is not é",
        "file:",
        "plain.txt",
        "~tilde",
    ];
    for name in names {
        folder.put(name, format!("text of {name}"));
    }
    for mut client in clients(&folder) {
        let listed = client.list();
        let mut expected = names.to_vec();
        expected.sort_unstable();
        let found: Vec<_> = listed.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{}", client.name);
        for one in &listed {
            let uri = one["uri"].as_str().unwrap();
            assert!(uri.bytes().all(|byte| byte.is_ascii_graphic()), "{uri}");
            assert!(!uri.contains(['#', '?', '"', '<', '>', '\\', '^', '`', '{', '|', '}']));
            let name = one["name"].as_str().unwrap();
            assert_eq!(client.text(uri), format!("text of {name}"), "{}", client.name);
        }
    }
}

#[test]
fn only_what_the_tools_could_read_is_listed() {
    let folder = Folder::new();
    let outside = Folder::new();
    outside.write("secret", "outside");
    folder.put("binary", "a\0b");
    folder.put("empty", "");
    folder.put("too-large", "x".repeat((1 << 20) + 1));
    folder.put("dir/file", "text");
    for hidden in [".hidden", ".git/config", "dir/.hidden", "new\nline", "bell\u{7}/file"] {
        folder.put(hidden, "text");
    }
    std::fs::write(folder.file("").join(OsStr::from_bytes(b"not-utf8-\xff")), "text").unwrap();
    mknodat(CWD, folder.file("pipe"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    symlink("dir/file", folder.file("link-inside")).unwrap();
    symlink("../empty", folder.file("dir/link-up")).unwrap();
    symlink("dir", folder.file("link-folder")).unwrap();
    symlink("nowhere", folder.file("link-nowhere")).unwrap();
    symlink(outside.file("secret"), folder.file("link-outside")).unwrap();
    let relative = format!("../{}/secret", outside.path().file_name().unwrap().to_str().unwrap());
    symlink(relative, folder.file("link-outside-too")).unwrap();
    let expected = ["binary", "dir/file", "dir/link-up", "empty", "link-inside", "too-large"];
    for flag in ["--tools=flat", "--tools=text", "--read-only", "--no-sandbox"] {
        for mut client in on_stdio(&folder, &[flag, "--max-size=1"]) {
            assert_eq!(client.names(), expected, "{flag}");
        }
    }
    for mut client in over_http(&folder, &["--max-size=1"]) {
        assert_eq!(client.names(), expected);
        assert_eq!(client.text(&uri(&folder, "link-inside")), "text");
        // A folder behind a link is not walked, but what is in it can be read, as by the tools.
        assert_eq!(client.text(&uri(&folder, "link-folder/file")), "text");
        assert_eq!(client.text(&uri(&folder, ".hidden")), "text");
    }
}

#[test]
fn a_file_is_read_exactly_as_it_is() {
    let folder = Folder::new();
    let texts =
        ["", "\n", "no end", "a\r\nb\rc\n\n", "tab\t\u{1}\u{7f}\u{2028}é \"quoted\" \\ </x>"];
    for mut client in clients(&folder) {
        for text in texts {
            folder.write("a.txt", text);
            assert_eq!(client.text(&uri(&folder, "a.txt")), text, "{}", client.name);
        }
        folder.write("bom.txt", "\u{feff}one\r\n");
        assert_eq!(client.text(&uri(&folder, "bom.txt")), "one\r\n", "a mark is no text");
        // Other ways to say the same.
        folder.write("a.txt", "one");
        folder.put("sub/b.txt", "two");
        let root = folder.path().display();
        for (uri, text) in [
            (format!("file://localhost{root}/a.txt"), "one"),
            (format!("FILE://LOCALHOST{root}/a.txt"), "one"),
            (format!("file://{root}/%61%2Etxt"), "one"),
            (format!("file://{root}//sub//./b.txt"), "two"),
            (format!("file://{root}/sub%2Fb.txt"), "two"),
            (format!("file://{root}/sub/%2e%2e/a.txt"), "one"),
            (format!("file://{root}/sub/../a.txt"), "one"),
        ] {
            assert_eq!(client.text(&uri), text, "{} {uri}", client.name);
        }
    }
}

/// By its code before 2026-07-28, and by the one since.
fn check_refused(client: &mut Client, uri: &str, codes: (i64, i64), message: &str) {
    let answer = client.read(uri);
    let code = if client.is_modern { codes.1 } else { codes.0 };
    let told = fault(&answer, code);
    assert!(told.starts_with(message), "{} {uri}: {told}", client.name);
    let data = &answer["error"]["data"];
    assert_eq!(data["uri"], uri, "{}", client.name);
    assert!(data["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{answer}");
    assert!(!answer.to_string().contains("SECRET"), "{answer}");
}

#[test]
fn what_cannot_be_read_is_told_with_what_would_be_right() {
    let place = Folder::new();
    place.put("outside/secret", "SECRET");
    place.put("root/a.txt", "one");
    place.put("root/sub/b.txt", "two");
    place.put("root/binary", "a\0b");
    place.write("root/latin", b"caf\xe9");
    place.put("root/large", "x".repeat((1 << 20) + 1));
    place.put("root/.fe-1-0123456789abcdef.tmp", "ours");
    let root = place.file("root");
    mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    symlink("../outside/secret", root.join("out")).unwrap();
    symlink(place.file("outside/secret"), root.join("out-absolute")).unwrap();
    symlink("../outside", root.join("out-folder")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let root = root.display().to_string();
    let outer = place.path().display();

    let both = |code: i64| (code, code);
    let not_found = (-32002, -32602);
    let mut cases = vec![
        // There is none.
        (format!("file://{root}/missing"), not_found, format!("File not found: {root}/missing")),
        (format!("file://{root}/no/such"), not_found, "File not found: ".into()),
        (format!("file://{root}/dangling"), not_found, "File not found: ".into()),
        (format!("file://{root}/a%252etxt"), not_found, format!("File not found: {root}/a%2etxt")),
        // There is something else.
        (format!("file://{root}/sub"), both(-32003), format!("{root}/sub is not a file")),
        (format!("file://{root}/sub/"), both(-32003), format!("{root}/sub/ is not a file")),
        (format!("file://{root}/sub/b.txt/.."), both(-32003), String::new()),
        (format!("file://{root}/pipe"), both(-32003), format!("{root}/pipe is not a file")),
        (format!("file://{root}/binary"), both(-32004), "Cannot read binary file: ".into()),
        (format!("file://{root}/latin"), both(-32004), "Cannot read binary file: ".into()),
        (format!("file://{root}/large"), both(-32001), "File size 1.01MB exceeds".into()),
        // It is no URI of ours.
        (String::new(), both(-32602), "Not a file URI".into()),
        ("a.txt".into(), both(-32602), "Not a file URI".into()),
        ("/a.txt".into(), both(-32602), "Not a file URI".into()),
        (format!("{root}/a.txt"), both(-32602), "Not a file URI".into()),
        (format!("file:{root}/a.txt"), both(-32602), "Not a file URI".into()),
        (format!("http://localhost{root}/a.txt"), both(-32602), "Not a file URI".into()),
        ("file://a.txt".into(), both(-32602), "A file URI of another host".into()),
        (format!("file://example.com{root}/a.txt"), both(-32602), "A file URI of another".into()),
        ("file://".into(), both(-32602), "A file URI without a path".into()),
        (format!("file://{root}/a.txt?x=1"), both(-32602), "A file URI has no query".into()),
        (format!("file://{root}/a.txt#L1"), both(-32602), "A file URI has no query".into()),
        (format!("file://{root}/a%2"), both(-32602), "A `%` in the URI is not".into()),
        (format!("file://{root}/a%zz.txt"), both(-32602), "A `%` in the URI is not".into()),
        (format!("file://{root}/%ff"), both(-32602), "The URI does not decode to UTF-8".into()),
        (format!("file://{root}/a%00.txt"), both(-32602), "Path contains a NUL".into()),
        (format!("file://{root}/{}", "x".repeat(300)), both(-32602), "Path too long: ".into()),
    ];
    // It is not for them to read.
    for path in [
        "/etc/passwd",
        "/",
        "/../etc/passwd",
        &format!("{outer}/outside/secret"),
        &format!("{root}/../outside/secret"),
        &format!("{root}/%2e%2e/outside/secret"),
        &format!("{root}/%2E%2E%2Foutside%2Fsecret"),
        &format!("{root}/sub/..%2f..%2foutside/secret"),
        &format!("{root}x/a.txt"),
        &format!("{root}/out"),
        &format!("{root}/out-absolute"),
        &format!("{root}/out-folder/secret"),
        &format!("{root}/.fe-1-0123456789abcdef.tmp"),
    ] {
        cases.push((format!("file://{path}"), both(-32602), "Permission denied: ".into()));
    }
    let served = Folder::new();
    // A link to the folder, so that it has two names; both lead inside.
    std::fs::remove_dir(served.path()).unwrap();
    symlink(place.file("root"), served.path()).unwrap();
    // Without the sandbox, which would hide an error in the path resolution.
    let flags = ["--max-size=1", "--no-sandbox"];
    for mut client in on_stdio(&served, &flags).into_iter().chain(over_http(&served, &flags)) {
        for (uri, codes, message) in &cases {
            check_refused(&mut client, uri, *codes, message);
        }
        assert_eq!(client.text(&format!("file://{root}/a.txt")), "one");
        assert_eq!(client.text(&uri(&served, "a.txt")), "one");
        assert_eq!(client.names().len(), 5, "{}", client.name);
    }
    std::fs::remove_file(served.path()).unwrap();
    std::fs::create_dir(served.path()).unwrap();
}

#[test]
fn a_file_that_is_missing_is_told_with_the_names_that_are_alike() {
    let folder = Folder::new();
    let [mut client, _] = on_stdio(&folder, &[]);
    let hint = |answer: Value| answer["error"]["data"]["hint"].as_str().unwrap().to_owned();
    let answer = client.read(&uri(&folder, "main.rs"));
    assert_eq!(hint(answer), "check the spelling; `resources/list` shows the files there are");
    folder.write("man.rs", "");
    let answer = client.read(&uri(&folder, "main.rs"));
    assert_eq!(hint(answer), "the same folder has `man.rs`");
    let answer = client.read(&uri(&folder, "no/main.rs"));
    assert_eq!(hint(answer), "the folder it would be in does not exist");
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    for mut client in clients(&folder) {
        for cursor in ["", "x", "6", "ff", "61 ", &"6".repeat(99)] {
            let answer = client.request("resources/list", json!({ "cursor": cursor }));
            assert_eq!(fault(&answer, -32602), "Invalid cursor", "{} {cursor}", client.name);
        }
        let requests = [
            ("resources/list", json!({ "cursor": 5 })),
            ("resources/list", json!({ "cursor": ["61"] })),
            ("resources/read", json!({})),
            ("resources/read", json!({ "uri": 5 })),
            ("resources/read", json!({ "uri": null })),
        ];
        for (method, params) in requests {
            let answer = client.request(method, params.clone());
            fault(&answer, -32602);
        }
        assert_eq!(client.page(None), (vec![], None), "{}", client.name);
    }
}

#[test]
fn a_folder_that_is_gone_is_not_taken_for_an_empty_one() {
    let outer = Folder::new();
    std::fs::create_dir(outer.file("inner")).unwrap();
    let mut server = Server::start(&outer.file("inner"), &[], &[]);
    assert_eq!(server.request("resources/list", json!({}))["result"]["resources"], json!([]));
    std::fs::remove_dir(outer.file("inner")).unwrap();
    let answer = server.request("resources/list", json!({}));
    let message = "Cannot read the folder: the folder does not exist";
    assert_eq!(fault(&answer, -32603), message);
}

#[test]
fn folders_that_may_not_be_read_are_passed_by() {
    use std::os::unix::fs::PermissionsExt as _;
    if !is_root_to_check("folders of other users") {
        return;
    }
    let place = Folder::new();
    for path in ["root/a", "root/closed/b", "root/open/c", "root/unreadable"] {
        place.put(path, "text");
    }
    let mode = std::fs::Permissions::from_mode;
    std::fs::set_permissions(place.file("root"), mode(0o777)).unwrap();
    std::fs::set_permissions(place.file("root/closed"), mode(0o700)).unwrap();
    std::fs::set_permissions(place.file("root/unreadable"), mode(0o600)).unwrap();
    let mut server = as_nobody(&place, &[]);
    let answer = server.request("resources/list", json!({}));
    let names: Vec<_> = answer["result"]["resources"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"))
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    // Whether a file may be read is not known before it is.
    assert_eq!(names, ["a", "open/c", "unreadable"]);
    let root = place.file("root");
    for (path, code) in [("closed/b", -32602), ("unreadable", -32602), ("open/d", -32002)] {
        let uri = format!("file://{}/{path}", root.display());
        let answer = server.request("resources/read", json!({ "uri": uri }));
        fault(&answer, code);
    }
}

/// A cursor says all there is to know: another server goes on with it, whatever has become of the folder.
#[test]
fn a_cursor_outlives_the_server_and_what_it_names() {
    let folder = Folder::new();
    for number in 0..300 {
        folder.put(&format!("{:02}/{number:03}", number / 10), "");
    }
    let [mut client, _] = on_stdio(&folder, &[]);
    let (first, cursor) = client.page(None);
    let ended_with = first.last().unwrap()["name"].as_str().unwrap();
    assert_eq!(ended_with, "09/099");
    // Gone with its folder; some come before it, and some after.
    std::fs::remove_dir_all(folder.file("09")).unwrap();
    for path in ["00/new", "08/new", "09", "10/0990", "20/new", "zz"] {
        folder.put(path, "");
    }
    std::fs::remove_file(folder.file("15/150")).unwrap();
    for mut client in over_http(&folder, &[]) {
        let mut names = Vec::new();
        let mut next = cursor.clone();
        while let Some(cursor) = next {
            let (page, after) = client.page(Some(&cursor));
            names.extend(page.iter().map(|one| one["name"].as_str().unwrap().to_owned()));
            next = after;
        }
        let mut expected: Vec<_> = (100..300)
            .filter(|number| *number != 150)
            .map(|number| format!("{:02}/{number:03}", number / 10))
            .chain(["10/0990", "20/new", "zz"].map(String::from))
            .collect();
        expected.sort();
        assert_eq!(names, expected, "{}", client.name);
    }
}

#[test]
fn ten_thousand_files_in_three_hundred_folders() {
    let folder = Folder::new();
    let mut expected = Vec::new();
    for number in 0..10_000 {
        // Folders in folders, some with a file of a name that begins like them.
        let group = number % 300;
        let path = match group % 3 {
            0 => format!("g{group}/{number}.txt"),
            1 => format!("g{}/s{group}/{number}.txt", group - 1),
            _ => format!("g{}-/{number}.txt", group - 2),
        };
        folder.put(&path, "");
        expected.push(path);
    }
    expected.sort();
    let [mut client, _] = on_stdio(&folder, &["--timeout=300"]);
    assert!(client.names() == expected);
    let [_, mut client] = over_http(&folder, &["--timeout=300"]);
    assert!(client.names() == expected);
}

#[test]
fn ten_megabytes_are_read_whole() {
    let folder = Folder::new();
    let mut text = String::with_capacity(10 << 20);
    let mut number = 0;
    while text.len() < (10 << 20) - 100 {
        writeln!(text, "line {number} \"quoted\" \\ \t é 漢 😀 \u{1}").unwrap();
        number += 1;
    }
    text.push_str(&"x".repeat((10 << 20) - text.len()));
    folder.write("large.txt", &text);
    for mut client in clients(&folder) {
        let found = client.text(&uri(&folder, "large.txt"));
        assert!(found == text, "{}: {} bytes", client.name, found.len());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_large_text_is_held_once() {
    use crate::harness::memory_kib;
    let folder = Folder::new();
    folder.write("large.txt", "x".repeat(10 << 20));
    folder.write("small.txt", "x");
    let mut server = folder.serve();
    let small = json!({ "uri": uri(&folder, "small.txt") });
    server.request("resources/read", small);
    let before = memory_kib(server.pid(), "VmHWM");
    let large = json!({ "uri": uri(&folder, "large.txt") });
    let answer = server.request("resources/read", large);
    assert_eq!(answer["result"]["contents"][0]["text"].as_str().unwrap().len(), 10 << 20);
    let grown = memory_kib(server.pid(), "VmHWM") - before;
    crate::harness::measured(&format!("a text of 10 MB took {grown} KiB"));
    // A copy would be 10 MB more, and rmcp would make two.
    assert!(grown < 16 << 10, "{grown} KiB");
}

/// What a text holds is counted until it is written: what finds no room in time is told so.
#[test]
fn a_read_that_finds_no_room_times_out() {
    let folder = Folder::new();
    folder.write("huge.txt", "x".repeat(10 << 20));
    let server = folder.http_with(&["--timeout=1"]);
    let params = json!({ "uri": uri(&folder, "huge.txt") });
    let mut clients: Vec<_> = (0..60)
        .map(|_| {
            let mut client = server.connect();
            client.write(&Request::mcp("resources/read", params.clone()).bytes()).unwrap();
            client
        })
        .collect();
    let mut refused = 0;
    // The first ones hold what room there is; the last ones found none.
    for client in clients.iter_mut().rev().take(30) {
        let Ok(response) = client.receive() else { continue };
        let answer = response.json();
        if answer.get("error").is_some() {
            assert_eq!(fault(&answer, -32014), "Operation timed out after 1 seconds");
            refused += 1;
        }
    }
    assert!(refused > 0, "none had to wait");
}

#[test]
fn a_call_that_is_taken_back_is_not_answered() {
    let folder = Folder::new();
    for number in 0..5000 {
        folder.put(&format!("{}/{number}", number % 200), "");
    }
    // The one to be found comes last, so that all of it has to be walked.
    for number in 0..200 {
        std::fs::create_dir_all(folder.file(&format!("empty/{number}"))).unwrap();
    }
    let mut server = folder.serve_with(&["--timeout=300"]);
    let mut taken_back = Vec::new();
    for round in 0..50 {
        let id = 1000 + round;
        let list = json!({ "jsonrpc": "2.0", "id": id, "method": "resources/list" });
        let cancel = json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": { "requestId": id },
        });
        server.send_line(&format!("{list}\n{cancel}"));
        let ping = server.send("ping", json!({}));
        // It may have been answered before it was taken back, but never after.
        let answer = server.receive();
        if answer["id"] == ping {
            taken_back.push(id);
        } else {
            assert_eq!((&answer["id"], &server.receive()["id"]), (&json!(id), &json!(ping)));
        }
    }
    assert!(!taken_back.is_empty(), "all were answered before they could be taken back");
    let (status, rest, log) = server.finish();
    assert!(status.success(), "{status}");
    assert_eq!(rest, "", "answered after all");
    // The work of some may have been over before.
    let is_cancelled =
        |line: &Value| line["operation"] == "resources/list" && line["message"] == "cancelled";
    assert!(log_lines(&log).iter().any(is_cancelled), "{log}");
}

#[test]
fn an_id_that_is_not_answered_yet_is_refused() {
    let folder = Folder::new();
    folder.write("large.txt", "x".repeat(4 << 20));
    let mut server = folder.serve();
    let read = json!({ "uri": uri(&folder, "large.txt") });
    let line = json!({ "jsonrpc": "2.0", "id": "x", "method": "resources/read", "params": read });
    let is_read = |answer: &Value| answer["result"]["contents"][0]["text"].is_string();
    let was_refused = (0..20).any(|_| {
        server.send_line(&format!("{line}\n{line}"));
        let (one, other) = (server.receive(), server.receive());
        assert!(is_read(&one) || is_read(&other), "neither was read");
        // The first may be over before the second is looked at.
        !is_read(&one) && fault(&one, -32600) == "Invalid Request"
    });
    assert!(was_refused);
}

/// Since 2026-07-28 the URI stands in a header too.
#[test]
fn the_header_must_name_the_uri() {
    let folder = Folder::new();
    folder.write("ä b.txt", "one\n");
    let server = folder.http();
    let uri = uri(&folder, "%C3%A4%20b.txt");
    let request = Request::modern("resources/read", json!({ "uri": uri }));
    let answer = server.send(&request).json();
    assert_eq!(answer["result"]["contents"][0]["text"], "one\n", "{answer}");
    let others = [
        request.clone().without("Mcp-Name"),
        request.clone().with("Mcp-Name", "file:///etc/passwd"),
        request.clone().with("Mcp-Method", "resources/list"),
    ];
    for request in others {
        server.send(&request).refusal(400, -32020);
    }
    let long = json!({ "uri": format!("file:///{}", "x".repeat(70 << 10)) });
    server.send(&Request::mcp("resources/read", long)).refusal(413, -32600);
}

#[test]
fn a_server_says_what_it_has() {
    let folder = Folder::new();
    let client = json!({ "name": "c", "version": "1" });
    for flags in [&[][..], &["--tools=text"], &["--read-only"]] {
        let mut server = folder.serve_with(flags);
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let params =
                json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
            let answer = server.request("initialize", params);
            let expected = json!({ "prompts": {}, "resources": {}, "tools": {} });
            assert_eq!(answer["result"]["capabilities"], expected, "{version}");
        }
        let answer = server.request("server/discover", modern(json!({})));
        assert_eq!(answer["result"]["capabilities"]["resources"], json!({}), "{answer}");
    }
}

#[test]
fn the_log_says_what_was_asked_for_and_nothing_of_what_was_found() {
    let folder = Folder::new();
    folder.write("a.txt", "the-contents");
    let mut server = folder.serve();
    let (found, missing) = (uri(&folder, "a.txt"), uri(&folder, "missing.txt"));
    server.request("resources/list", json!({}));
    server.request("resources/read", json!({ "uri": found }));
    server.request("resources/read", json!({ "uri": missing }));
    server.request("resources/read", json!({ "uri": "nonsense" }));
    let (_, _, log) = server.finish();
    assert!(!log.contains("the-contents"), "{log}");
    let lines: Vec<_> = log_lines(&log)
        .into_iter()
        .filter(|line| line["event"] == "call")
        .map(|line| json!([line["operation"], line["file"], line["outcome"], line["code"]]))
        .collect();
    let expected = [
        json!(["resources/list", null, "ok", null]),
        json!(["resources/read", found, "ok", null]),
        json!(["resources/read", missing, "error", -32002]),
        json!(["resources/read", null, "error", -32602]),
    ];
    assert_eq!(lines, expected);
}
