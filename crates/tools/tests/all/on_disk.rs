//! The tools on a real disk: ways that are quicker there answer what the long way does.

use std::{
    fs,
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use files::{
    Call, DiskOptions, DiskStore, Durability, FaultyStore, LineCounts, Root, Step, Store,
    StoreError,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tools::{Context, Failure, Limits, Prepared, ToolOutput, ToolSpec};

struct Disk {
    dir: TempDir,
    root: Arc<Root>,
    counts: LineCounts,
}

const MAX_SIZE: u64 = 4 << 20;

impl Disk {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let root = Arc::new(Root::open(dir.path()).unwrap());
        Self { dir, root, counts: LineCounts::default() }
    }

    fn store(&self) -> DiskStore {
        let options = DiskOptions { max_size: MAX_SIZE, durability: Durability::None };
        DiskStore::open(Arc::clone(&self.root), options)
    }

    fn call(
        &self,
        store: &dyn Store,
        tool: &'static ToolSpec,
        arguments: &Value,
    ) -> Result<ToolOutput, Failure> {
        self.run(store, tool.prepare(arguments.clone())?, Prepared::run)
    }

    fn run<T>(
        &self,
        store: &dyn Store,
        call: Prepared,
        run: impl FnOnce(Prepared, &Context) -> T,
    ) -> T {
        let limits = Limits::new(MAX_SIZE, Duration::from_mins(1));
        let context = Context {
            root: &self.root,
            store,
            line_counts: &self.counts,
            limits: &limits,
            call: &Call::until(Instant::now() + limits.timeout),
            expected: None,
        };
        run(call, &context)
    }

    fn set_modified(&self, name: &str, time: SystemTime) {
        let file = fs::File::options().write(true).open(self.dir.path().join(name)).unwrap();
        file.set_modified(time).unwrap();
    }
}

/// All that is answered.
fn said(outcome: Result<ToolOutput, Failure>) -> String {
    match outcome {
        Ok(reply) => {
            let texts: Vec<_> = reply.blocks.iter().map(ToString::to_string).collect();
            format!("{texts:?} {:?} {:?} {:?}", reply.data, reply.meta, reply.hash)
        }
        Err(failure) => format!("{failure:?}"),
    }
}

/// The store behind planned faults has no quick way.
#[test]
fn lines_of_a_large_file_read_the_same_by_both_ways() {
    let disk = Disk::new();
    let mixed: String = (0..40_000_usize)
        .map(|index| {
            "é\u{feff}".repeat(index % 4) + ["\n", "\r\n", "\r", "a\n"][index * 31 % 101 % 4]
        })
        .collect();
    let texts = [format!("\u{feff}{mixed}"), mixed.clone() + "end", mixed + "\0", "a\nb\n".into()];
    for (index, text) in texts.iter().enumerate() {
        fs::write(disk.dir.path().join(index.to_string()), text).unwrap();
    }
    let path = |name: &str| disk.dir.path().join(name);
    let range = |first: u64, last: u64| {
        [
            json!({ "start_line": first, "end_line": last }),
            json!({ "start_line": first }),
            json!({ "end_line": last, "line_numbers": true }),
        ]
    };
    let page = |line: u64, limit: u64| {
        [
            json!({ "line": line + 1, "limit": limit }),
            json!({ "line": line + 1, "line_numbers": true }),
            json!({ "limit": limit }),
        ]
    };
    thread::sleep(Duration::from_millis(2100));
    let (quick, long) = (disk.store(), FaultyStore::new(disk.store()));
    let mut compared = 0;
    for name in ["0", "1", "2", "3", "4"] {
        for (first, last) in [(0, 0), (1, 9), (20_000, 20_100), (39_990, 50_000), (70_000, 70_001)]
        {
            let flat =
                range(first, last).map(|range| (&tools::FLAT[1], "name", json!(name), range));
            let text = page(first, last - first + 1)
                .map(|page| (&tools::TEXT[0], "path", json!(path(name)), page));
            let plain = range(first + 1, last + 1)
                .map(|range| (&tools::PLAIN[1], "name", json!(name), range));
            for (tool, key, value, mut arguments) in flat.into_iter().chain(text).chain(plain) {
                arguments[key] = value;
                let (one, other) =
                    (disk.call(&quick, tool, &arguments), disk.call(&long, tool, &arguments));
                compared += usize::from(one.is_ok());
                assert!(said(one) == said(other), "{} {arguments}", tool.name);
            }
        }
    }
    assert!(compared > 60, "only {compared} succeeded");
}

#[test]
fn a_listing_is_written_as_values_would_be() {
    let disk = Disk::new();
    let written = |tool| {
        let reply = disk.call(&disk.store(), tool, &json!({})).unwrap();
        let written = reply.written.unwrap();
        let values: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(values.to_string(), written);
        values
    };
    let directory = disk.root.path().to_str().unwrap();
    assert_eq!(
        written(&tools::FLAT[0]),
        json!({ "files": [], "total_count": 0, "directory": directory, "skipped": 0 })
    );
    for (name, text) in
        [("b.txt", "1\n2\n"), ("a-b_c", ""), ("binary", "\0"), ("a b", ""), (".a", "")]
    {
        fs::write(disk.dir.path().join(name), text).unwrap();
    }
    let time = |name: &str| {
        tools::iso8601::seconds(
            fs::metadata(disk.dir.path().join(name)).unwrap().modified().unwrap(),
        )
    };
    let files = json!([
        { "name": "a-b_c", "modified": time("a-b_c"), "lines": 0 },
        { "name": "b.txt", "modified": time("b.txt"), "lines": 2 },
        { "name": "binary", "modified": time("binary"), "lines": -1 },
    ]);
    let object = json!({ "files": files, "total_count": 3, "directory": directory });
    assert_eq!(written(&tools::PLAIN[0]), object);
    let mut with_skipped = object;
    with_skipped["skipped"] = json!(1);
    assert_eq!(written(&tools::FLAT[0]), with_skipped);
}

#[test]
fn each_file_is_listed_with_its_own_time() {
    let disk = Disk::new();
    let epoch = SystemTime::UNIX_EPOCH;
    let second = Duration::from_secs(1);
    let times = [
        ("a", epoch + 100 * second, "1970-01-01T00:01:40Z"),
        ("b", epoch + 100 * second + second / 2, "1970-01-01T00:01:40Z"),
        ("c", epoch + 101 * second, "1970-01-01T00:01:41Z"),
        ("d", epoch - second, "1969-12-31T23:59:59Z"),
        ("e", epoch - 2 * second, "1969-12-31T23:59:58Z"),
        ("f", epoch, "1970-01-01T00:00:00Z"),
    ];
    for (name, time, _) in times {
        fs::write(disk.dir.path().join(name), "").unwrap();
        disk.set_modified(name, time);
    }
    let reply = disk.call(&disk.store(), &tools::FLAT[0], &json!({})).unwrap();
    let text = reply.blocks[0].to_string();
    for (name, _, shown) in times {
        assert!(text.contains(&format!("name: {name}, modified: {shown}, lines: 0\n")), "{text}");
    }
}

#[test]
fn an_edit_that_changes_nothing_leaves_the_file_alone() {
    let disk = Disk::new();
    fs::write(disk.dir.path().join("a.txt"), "a\n").unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
    disk.set_modified("a.txt", time);
    let edits = json!([{ "line": 0, "operation": "replace", "content": "a" }]);
    let code = json!({ "target_file": "a.txt", "edit_instruction": "x", "start_line": 1, "code_block": "a" });
    let path = disk.dir.path().join("a.txt");
    for (tool, arguments) in [
        (&tools::FLAT[2], json!({ "name": "a.txt", "edits": edits })),
        (&tools::TEXT[1], json!({ "path": path, "content": "a\n" })),
        (&tools::CODE[0], code),
    ] {
        disk.call(&disk.store(), tool, &arguments).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), time, "{}", tool.name);
    }
}

#[test]
fn folders_made_for_a_call_that_failed_go_again() {
    let disk = Disk::new();
    let path = disk.dir.path().join("new/folder/a.txt");
    let arguments = json!({ "path": path, "content": "a", "create_dirs": true });
    let store = FaultyStore::new(disk.store());
    let prepared = || tools::TEXT[1].prepare(arguments.clone()).unwrap();
    let runs: [fn(Prepared, &Context) -> bool; 2] =
        [|call, cx| call.run(cx).is_ok(), |call, cx| call.run_recorded(cx, None).0.is_ok()];
    for run in runs {
        store.fail(Step::Publish, 0, StoreError::DiskFull);
        assert!(!disk.run(&store, prepared(), run));
        assert!(!disk.dir.path().join("new").exists());
    }
    assert!(disk.run(&store, prepared(), runs[1]));
    assert!(path.exists());
}

#[test]
fn a_search_says_if_it_left_out_the_rest_of_a_line() {
    let disk = Disk::new();
    fs::write(disk.dir.path().join("short.txt"), "aab\n").unwrap();
    let search = || {
        let reply =
            disk.call(&disk.store(), &tools::CODE[2], &json!({ "pattern": "a+b" })).unwrap();
        (reply.blocks[0].to_string(), reply.data.unwrap())
    };
    let (text, data) = search();
    assert!(!text.contains("only in part") && !data.contains_key("cut_files"), "{text}");
    fs::write(disk.dir.path().join("long.txt"), "x".repeat(3 << 20) + "aab\n").unwrap();
    let (text, data) = search();
    assert!(text.contains("1 file was searched only in part"), "{text}");
    assert_eq!((&data["cut_files"], &data["matching_lines"]), (&json!(1), &json!(1)));
}

/// Lines around matches count: however many are asked for, a page has so many lines.
#[test]
fn a_page_of_a_search_has_so_many_lines() {
    let disk = Disk::new();
    let block = format!("hit\n{}", "pad\n".repeat(30));
    fs::write(disk.dir.path().join("a.txt"), block.repeat(1000)).unwrap();
    for (context, matches) in [(0, 1000), (3, 4000 / 7), (5, 4000 / 11), (10, 4000 / 21)] {
        let asked = json!({ "pattern": "hit", "context": context, "max_results": 1000 });
        let data = disk.call(&disk.store(), &tools::CODE[2], &asked).unwrap().data.unwrap();
        let lines = data["files"][0]["lines"].as_array().unwrap();
        let found = lines.iter().filter(|line| line["text"] == "hit").count();
        assert_eq!(found, matches, "{context} lines around each");
    }
}
