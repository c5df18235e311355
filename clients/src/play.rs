//! A client, led through the workflow.

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::pattern::difference;
use crate::scene::Scene;
use crate::workflow::{self, NOTES, Step};
use crate::{Outcome, Trouble};

/// How the server is started for it.
pub const FLAGS: &[&str] = &["--tools=all"];

/// How much of an answer that is wrong is shown.
const SHOWN: usize = 1000;

/// A client at work with the server.
pub trait Asker {
    /// What it tells of the server: `protocolVersion`, `capabilities`, `serverInfo`.
    fn open(&mut self) -> Outcome<Value>;

    /// What its API makes of a question: `{"result": …}` as MCP spells it, or `{"error": {code, message}}`.
    /// `None` if it has no way to put it.
    fn ask(&mut self, method: &str, params: &Value) -> Outcome<Option<Value>>;

    /// What it shows of an answer.
    fn shows(&self, answer: Value) -> Value {
        answer
    }
}

/// Leads the client through all of it; what it did, in words.
pub fn play(client: &mut impl Asker, scene: &Scene, protocol: &str) -> Outcome<String> {
    scene.put(NOTES, workflow::WRITTEN)?;
    let opened = client.open()?;
    if let Some(difference) = difference(&workflow::opened(protocol), &opened) {
        return Err(Trouble::Wrong(format!("when opened: {difference}")));
    }
    let mut parts = vec![
        ("list", workflow::listing()),
        ("read", workflow::reading()),
        ("edit", workflow::editing()),
        ("conflict", workflow::conflicts()),
        ("error", workflow::errors()),
    ];
    // Where the server has resources. Without the condition: it has.
    if opened["capabilities"]["resources"].is_object() {
        parts.push(("resources", workflow::resources(protocol)));
    }
    let mut played = Played { client, scene, seen: String::new(), answers: 0, unasked: Vec::new() };
    let mut did = Vec::new();
    for (part, steps) in parts {
        did.push(part);
        for step in steps {
            played.step(step)?;
        }
    }
    let unasked = match played.unasked.as_slice() {
        [] => String::new(),
        unasked => format!("; it cannot ask for {}", unasked.join(", ")),
    };
    Ok(format!("{}: {} answers{unasked}", did.join(", "), played.answers))
}

struct Played<'a, Client> {
    client: &'a mut Client,
    scene: &'a Scene,
    /// The hash that the client was last told.
    seen: String,
    answers: usize,
    unasked: Vec<String>,
}

impl<Client: Asker> Played<'_, Client> {
    fn step(&mut self, step: Step) -> Outcome<()> {
        match step {
            Step::Elsewhere { file, text } => self.scene.put(file, text),
            Step::Holds { file, text } => {
                let found = self.scene.text(file)?;
                let wrong = || format!("{file} should hold {text:?} and holds {found:?}");
                if found == text { Ok(()) } else { Err(Trouble::Wrong(wrong())) }
            }
            Step::Ask { method, params, answer } => self.ask(method, params, answer),
        }
    }

    fn ask(&mut self, method: &str, mut params: Value, mut answer: Value) -> Outcome<()> {
        self.fill(&mut params)?;
        let asked = self.client.ask(method, &params);
        let Some(found) = asked.map_err(|trouble| trouble.at(&format!("{method} {params}")))?
        else {
            self.unasked.push(params["name"].as_str().unwrap_or(method).to_owned());
            return Ok(());
        };
        self.fill(&mut answer)?;
        if let Some(difference) = difference(&self.client.shows(answer), &found) {
            let found: String = found.to_string().chars().take(SHOWN).collect();
            return Err(Trouble::Wrong(format!("{method} {params}: {difference}\nin {found}")));
        }
        let places = ["_meta/hash", "structuredContent/hash", "structuredContent/error/hash"];
        let mut hashes = places.iter().map(|place| found.pointer(&format!("/result/{place}")));
        if let Some(hash) = hashes.find_map(|hash| hash?.as_str()) {
            hash.clone_into(&mut self.seen);
        }
        self.answers += 1;
        Ok(())
    }

    /// Puts in what was not known when the step was written down.
    fn fill(&self, value: &mut Value) -> Outcome<()> {
        let hash = format!("{:016x}", xxh3_64(self.scene.text(NOTES)?.as_bytes()));
        let folder = self.scene.folder().display().to_string();
        replace(value, &[("$DIR", &folder), ("$HASH", &hash), ("$SEEN", &self.seen)]);
        Ok(())
    }
}

fn replace(value: &mut Value, words: &[(&str, &String)]) {
    match value {
        Value::String(text) => {
            for (word, meaning) in words {
                *text = text.replace(word, meaning);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, words)),
        Value::Object(names) => names.values_mut().for_each(|value| replace(value, words)),
        _ => {}
    }
}
