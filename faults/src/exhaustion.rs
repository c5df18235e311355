//! Folders and arguments made to exhaust the server: its stack, its memory, its time.
//!
//! Each attempt has a server of its own. The call must be answered, the server must live, the call must end with its
//! deadline, and the peak of its memory must stay below the bound that ARCHITECTURE names.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::report::{Row, Scale};
use crate::server::{self, NoAnswer, Server};

/// Seconds that a call may take (`--timeout`), and how much later its answer may come.
const TIMEOUT: u64 = 5;
const LATE: Duration = Duration::from_millis(250);

/// Memory of one search or context call above idle: 64 MB, and the largest file (`--max-size`).
const MEMORY_MAX: u64 = (64 << 20) + (10 << 20);

/// A call is slow on a busy machine for other reasons, too. One that is late is made again.
const TRIES: usize = 3;

struct Attempt {
    what: &'static str,
    /// Fills the folder.
    prepare: fn(&Path, Scale),
    calls: fn() -> Vec<(&'static str, Value)>,
}

const ATTEMPTS: &[Attempt] = &[
    Attempt {
        what: "globs: nested braces, a hundred long ones, 60,000 alternatives",
        prepare: |folder, _| many_files(folder, 300, 20),
        calls: || {
            let open = |count: usize| "{".repeat(count) + "a" + &"}".repeat(count);
            let globs = [
                json!([open(11_750)]),
                json!([open(100_000)]),
                json!(["{".repeat(100_000)]),
                json!(["[".repeat(100_000)]),
                json!(vec!["*a".repeat(25_000); 100]),
                json!(vec!["*a".repeat(160); 100]),
                json!(vec!["**/a*".repeat(100); 100]),
                json!([format!("{{{}}}", vec!["a"; 60_000].join(","))]),
                json!(vec!["{a,b}".repeat(30); 100]),
                json!(vec!["{a,b,c,d,e,f,g,h}*{a,b,c,d,e,f,g,h}*x"; 100]),
            ];
            let search = |globs| ("search_files", json!({ "pattern": "x", "globs": globs }));
            let context = |globs| ("ai_get_code_context", json!({ "query": "x", "globs": globs }));
            globs.iter().map(search).chain(globs.iter().map(context)).collect()
        },
    },
    Attempt {
        what: "one .gitignore with 100,000 nested braces in a line",
        prepare: |folder, _| {
            many_files(folder, 100, 20);
            fs::write(folder.join(".gitignore"), "{".repeat(100_000) + "\n*.no\n").unwrap();
        },
        calls: both,
    },
    Attempt {
        what: "a hundred .gitignore of 262 KB, one in the other and side by side",
        prepare: |folder, _| {
            let mut rules = String::new();
            for number in 0.. {
                let _ = writeln!(rules, "*a*b*{number}*c*d/**/x{number}?[a-z]*");
                if rules.len() > 262_000 {
                    break;
                }
            }
            let mut within = folder.to_owned();
            for number in 0..50 {
                fs::write(within.join(".gitignore"), &rules).unwrap();
                let beside = folder.join(format!("beside{number}"));
                fs::create_dir(&beside).unwrap();
                fs::write(beside.join(".gitignore"), &rules).unwrap();
                many_files(&beside, 20, 20);
                within.push("aaabbbcccddd");
                fs::create_dir(&within).unwrap();
                many_files(&within, 20, 20);
            }
        },
        calls: both,
    },
    Attempt {
        what: "20,000 folders, each with an .ignore of its own",
        prepare: |folder, scale| {
            for number in 0..scale.of(2_000, 20_000) {
                let inner = folder.join(format!("f{:03}/g{number}", number % 300));
                fs::create_dir_all(&inner).unwrap();
                let rules = format!("no{number}*\n").repeat(20);
                fs::write(inner.join(".ignore"), rules).unwrap();
                fs::write(inner.join("a.rs"), "fn x() {}\n").unwrap();
            }
        },
        calls: both,
    },
    Attempt {
        what: "200,000 files with names of 200 bytes in one folder",
        prepare: |folder, scale| many_files(folder, scale.of(10_000, 200_000), 200),
        calls: both,
    },
    Attempt {
        what: "folders 1,900 levels deep, with files on each",
        prepare: |folder, _| deep_folders(folder),
        calls: both,
    },
    Attempt {
        what: "patterns that grow large, or search for long",
        prepare: |folder, _| {
            fs::write(folder.join("line.txt"), "ab".repeat(5 << 20)).unwrap();
            fs::write(folder.join("lines.txt"), "abababababababababab\n".repeat(400_000)).unwrap();
            fs::write(folder.join("wide.txt"), "äöüß€漢字😀".repeat(300_000)).unwrap();
        },
        calls: || {
            let patterns = [
                "(".repeat(4_000),
                "(".repeat(2_000) + &")".repeat(2_000),
                "(?:a?){100}".repeat(30),
                r"\w{1000}".into(),
                r"(?:\pL{50}){50}".into(),
                r"[\p{L}\p{N}]{200}x".into(),
                "a{1000}{1000}{1000}".into(),
                r"(?i)(?:a|b|ab)*c$".into(),
                r"(.*)(.*)(.*)(.*)(.*)x".into(),
                r"(?s).*a.{900}$".into(),
                "[ab]*a[ab]{300}c".into(),
                vec!["ab"; 1_300].join("|"),
                r"\b\w+\b.\b\w+\b".into(),
            ];
            let call = |pattern: &String| {
                [false, true].map(|multiline| {
                    ("search_files", json!({ "pattern": pattern, "multiline": multiline }))
                })
            };
            patterns.iter().flat_map(call).collect()
        },
    },
    Attempt {
        what: "files of 10 MB, each line a match",
        prepare: |folder, scale| {
            for number in 0..scale.of(4, 16) {
                let text = "x\n".repeat(5 << 20);
                fs::write(folder.join(format!("{number}.rs")), text).unwrap();
            }
        },
        calls: || {
            let mut calls = both();
            let most = json!({ "pattern": "x", "max_results": 1000, "context": 20 });
            calls.push(("search_files", most));
            calls.push(("search_files", json!({ "pattern": "x", "max_results": 1000 })));
            calls
        },
    },
    Attempt {
        what: "identifiers, all different, 10 MB a file",
        prepare: |folder, scale| {
            for file in 0..scale.of(2, 8) {
                let mut text = String::new();
                for number in 0..600_000 {
                    let _ = writeln!(text, "fn f{file}x{number}() {{}}");
                }
                text.truncate(10 << 20);
                fs::write(folder.join(format!("{file}.rs")), text).unwrap();
            }
        },
        calls: || {
            let mut calls = both();
            let files: Vec<_> = (0..8).map(|number| format!("{number}.rs")).collect();
            calls.push(("ai_get_code_context", json!({ "files": files, "max_tokens": 100_000 })));
            calls
        },
    },
    Attempt {
        what: "sources of half a megabyte that fit no grammar, in each language",
        prepare: sources,
        calls: || {
            let mut calls = both();
            for extension in EXTENSIONS {
                let files: Vec<_> =
                    (0..SOURCES.len()).map(|number| format!("s{number}.{extension}")).collect();
                calls.push(("ai_get_code_context", json!({ "files": files })));
                let edit = json!({ "file_path": files[0], "edit_instruction": "add a line", "code_block": "x" });
                calls.push(("ai_edit_code", edit));
            }
            calls
        },
    },
];

const EXTENSIONS: &[&str] = &[
    "rs", "py", "js", "ts", "tsx", "go", "java", "c", "cpp", "cs", "rb", "php", "sh", "kt",
    "swift", "json", "yaml", "toml", "html", "css",
];

/// Texts that are repeated up to half a megabyte.
const SOURCES: &[&str] = &[
    "(",
    "[",
    "{",
    "<",
    "a(",
    "a[b{c<",
    "if(a)",
    "!",
    "-",
    "a.",
    "a?b:",
    "<a>",
    "\"${",
    "'",
    "`${",
    "a:\n ",
    "- ",
    "x = (y) => ",
    "fn a() { ",
    "class A { ",
    "template<",
    "@",
    "#if a\n",
    "<<A\n",
    "a < b > c ( d ) ",
    "case a of ",
    "\\",
    "/*",
    "return ",
    "async ",
];

/// A search and a query that look at every file.
fn both() -> Vec<(&'static str, Value)> {
    vec![
        ("search_files", json!({ "pattern": "x" })),
        ("search_files", json!({ "pattern": "[a-z]+_no_such_thing", "show": "counts" })),
        ("ai_get_code_context", json!({ "query": "how does x work with fn and file" })),
        ("ai_get_code_context", json!({ "symbols": ["x", "fn"] })),
        ("ai_get_code_context", json!({})),
    ]
}

fn many_files(folder: &Path, count: usize, length: usize) {
    for number in 0..count {
        let name = format!("{number:0>width$}.rs", width = length - 3);
        fs::write(folder.join(name), format!("fn x{number}() {{}}\n")).unwrap();
    }
}

/// Made level by level: a path may have 4,096 bytes at most.
fn deep_folders(folder: &Path) {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(folder, flags, Mode::empty()).unwrap();
    for _ in 0..1_900 {
        let file = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&at, "x.rs", file, Mode::RUSR | Mode::WUSR).unwrap();
        rustix::io::write(&file, b"fn x() {}\n").unwrap();
        mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = openat(&at, "d", flags, Mode::empty()).unwrap();
    }
}

fn sources(folder: &Path, scale: Scale) {
    let size = scale.of(64 << 10, 511 << 10);
    for extension in EXTENSIONS {
        for (number, text) in SOURCES.iter().enumerate() {
            let text = text.repeat(size / text.len());
            fs::write(folder.join(format!("s{number}.{extension}")), text).unwrap();
        }
    }
}

pub fn run(scale: Scale) -> Vec<Row> {
    ATTEMPTS.iter().map(|attempt| make(attempt, scale)).collect()
}

fn make(attempt: &Attempt, scale: Scale) -> Row {
    let mut row = Row::new(attempt.what);
    let folder = tempfile::tempdir().unwrap();
    (attempt.prepare)(folder.path(), scale);
    let (mut peak, mut longest) = (0, Duration::ZERO);
    for (tool, arguments) in (attempt.calls)() {
        row.tries += 1;
        let shown: String = arguments.to_string().chars().take(120).collect();
        let mut late = Duration::MAX;
        for _ in 0..TRIES {
            match call(folder.path(), tool, &arguments) {
                Ok(Call { took, memory }) => {
                    late = late.min(took);
                    peak = peak.max(memory);
                    row.check(memory <= MEMORY_MAX, || {
                        format!("{tool} {shown}: {} MB", memory >> 20)
                    });
                }
                Err(none) => row.bad.push(format!("{tool} {shown}: {none:?}")),
            }
            if late <= Duration::from_secs(TIMEOUT) {
                break;
            }
        }
        longest = longest.max(late);
        row.check(late <= Duration::from_secs(TIMEOUT) + LATE, || {
            format!("{tool} {shown}: answered after {late:.2?}")
        });
    }
    row.found(format!(
        "answered, at the latest after {:.1} s; at most {} MB above idle",
        longest.as_secs_f64(),
        peak.div_ceil(1 << 20)
    ))
}

struct Call {
    took: Duration,
    /// Peak above idle, in bytes.
    memory: u64,
}

fn call(folder: &Path, tool: &str, arguments: &Value) -> Result<Call, NoAnswer> {
    let timeout = format!("--timeout={TIMEOUT}");
    let mut server = Server::start_quietly(folder, &["--tools=all", &timeout]);
    server.ready();
    let idle = server::memory(server.pid(), "VmRSS");
    let since = Instant::now();
    server.call(tool, arguments)?;
    let elapsed = since.elapsed();
    server.ready();
    let peak = server::memory(server.pid(), "VmHWM");
    Ok(Call { took: elapsed, memory: peak.saturating_sub(idle) << 10 })
}
