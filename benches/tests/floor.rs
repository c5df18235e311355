//! The floor is no product, but what it says has to be right: others are measured by it.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::Result;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use benches::contenders::{Contender, Durability, Kind, Round, Task};
use benches::http::{Load, post};
use benches::process::OnStdio;
use benches::scene;
use benches::throughput;
use serde_json::{Value, json};

const FLOOR: &str = env!("CARGO_BIN_EXE_floor");

fn floor() -> Contender {
    Contender::alone(Kind::Floor, Path::new(FLOOR))
}

/// What it answers when it is asked for that.
fn ask(task: Task, path: &Path, number: usize) -> Result<Value> {
    let folder = path.parent().unwrap_or(path);
    let mut server = OnStdio::start(&mut floor().command(folder, Durability::None))?;
    let params = floor().ask(task, Round { path, number }).unwrap_or_default();
    let answer = server.request("tools/call", &params)?;
    Ok(answer["result"]["content"][0]["text"].clone())
}

#[test]
fn it_reads_what_is_there() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file.txt");
    let controls: String = (0..0x20_u8).map(char::from).collect();
    let texts = [
        String::new(),
        "a".into(),
        "\"\\\n\t\r/é€😀".into(),
        controls + "\u{7f}",
        scene::source(1_000_000),
        scene::heavy(200_000),
    ];
    for text in texts {
        fs::write(&path, &text)?;
        assert_eq!(ask(Task::Read, &path, 0)?, text);
    }
    Ok(())
}

#[test]
fn it_reads_and_edits_lines() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file.txt");
    fs::write(&path, "zero\none\ntwo\nthree\n")?;
    assert_eq!(ask(Task::Lines(1, 2), &path, 0)?, "one\ntwo\n");
    ask(Task::EditLine(2), &path, 0)?;
    let expected = format!("zero\none\n{}\nthree\n", scene::mark(0, 1));
    assert_eq!(fs::read_to_string(&path)?, expected);
    Ok(())
}

#[test]
fn it_edits_and_writes() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file.txt");
    let before = scene::marked(100_000, scene::MARKS);
    fs::write(&path, &before)?;
    ask(Task::Edits, &path, 0)?;
    assert_eq!(fs::read_to_string(&path)?, before.replace("= 0000000;", "= 0000001;"));
    ask(Task::Write(5000), &path, 3)?;
    assert_eq!(fs::read_to_string(&path)?, scene::written(5000, 3));
    assert_eq!(ask(Task::List, folder.path(), 0)?, "file.txt\n");
    Ok(())
}

#[test]
fn it_answers_over_http() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file.txt");
    fs::write(&path, scene::source(1000))?;
    let server = throughput::serve(&floor(), folder.path())?;
    let request = post("/read", "", &json!({ "path": path }).to_string());
    let (figures, _) = Load::connect(server.port, 3)?.run(&request, Duration::from_millis(50))?;
    assert!(figures.len() >= 3);
    Ok(())
}

#[test]
fn what_is_measured_beside_it_is_its_own_loop() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file.txt");
    fs::write(&path, "a\"b\n")?;
    let mut raw = OnStdio::open(Command::new(FLOOR).arg(format!("--raw={}", path.display())))?;
    raw.call(b"\n")?;
    assert_eq!(raw.answer(), b"a\\\"b\\n\n");
    Ok(())
}
