//! A client, led through the workflow.

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::pattern::difference;
use crate::scene::Scene;
use crate::workflow::{self, NOTES, Step};
use crate::{Outcome, Trouble};

/// How the server is started for it, and how when a person is to be asked.
pub const FLAGS: &[&str] = &["--tools=all"];
pub const ASKING: &[&str] = &["--tools=text", "--confirm=always"];

/// How much of an answer that is wrong is shown.
const SHOWN: usize = 1000;

/// A client at work with the server.
pub trait Asker {
    /// What it tells of the server: `protocolVersion`, `capabilities`, `serverInfo`.
    fn open(&mut self) -> Outcome<Value>;

    /// What its API makes of a question: `{"result": …}` as MCP spells it, or `{"error": {code, message}}`; or, first, what
    /// it is to ask a person, `{"asked": …}`. `None` if it has no way to put it.
    fn ask(&mut self, method: &str, params: &Value) -> Outcome<Option<Value>>;

    /// What comes after the person said that.
    fn say(&mut self, said: &str) -> Outcome<Value> {
        Err(Trouble::Wrong(format!("there is nobody to say {said}")))
    }

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
    let parts = vec![
        ("list", workflow::listing()),
        ("read", workflow::reading()),
        ("edit", workflow::editing()),
        ("conflict", workflow::conflicts()),
        ("error", workflow::errors()),
        ("resources", workflow::resources(protocol)),
    ];
    let did: Vec<_> = parts.iter().map(|(part, _)| *part).collect();
    let mut played = Played::new(client, scene);
    parts.into_iter().flat_map(|(_, steps)| steps).try_for_each(|step| played.step(step))?;
    let unasked = match played.unasked.as_slice() {
        [] => String::new(),
        unasked => format!("; it cannot ask for {}", unasked.join(", ")),
    };
    Ok(format!("{}: {} answers{unasked}", did.join(", "), played.answers))
}

/// Leads the client through what a person is asked about.
pub fn play_asking_first(client: &mut impl Asker, scene: &Scene) -> Outcome<()> {
    scene.put(NOTES, workflow::WRITTEN)?;
    client.open()?;
    let mut played = Played::new(client, scene);
    workflow::asking_first().into_iter().try_for_each(|step| played.step(step))
}

struct Played<'a, Client> {
    client: &'a mut Client,
    scene: &'a Scene,
    /// The hash that the client was last told.
    seen: String,
    answers: usize,
    unasked: Vec<String>,
}

impl<'a, Client: Asker> Played<'a, Client> {
    fn new(client: &'a mut Client, scene: &'a Scene) -> Self {
        Self { client, scene, seen: String::new(), answers: 0, unasked: Vec::new() }
    }

    fn step(&mut self, step: Step) -> Outcome<()> {
        match step {
            Step::Elsewhere { file, text } => self.scene.put(file, text),
            Step::Holds { file, text } => {
                let found = self.scene.text(file)?;
                let wrong = || format!("{file} should hold {text:?} and holds {found:?}");
                if found == text { Ok(()) } else { Err(Trouble::Wrong(wrong())) }
            }
            Step::Ask { method, params, answer } => self.ask(method, params, answer),
            Step::AskFirst { shown, said, params, answer } => {
                self.ask_first(shown, said, params, answer)
            }
        }
    }

    fn ask_first(
        &mut self,
        shown: &str,
        said: &str,
        mut params: Value,
        mut answer: Value,
    ) -> Outcome<()> {
        self.fill(&mut params)?;
        let form = json!({ "type": "object", "properties": {} });
        let mut question = json!({ "asked": { "message": shown, "requestedSchema": form } });
        self.fill(&mut question)?;
        let asked = self.client.ask("tools/call", &params)?.unwrap_or_default();
        let found = match difference(&question, &asked) {
            None => self.client.say(said)?,
            Some(difference) => return Err(Trouble::Wrong(format!("{difference}\nin {asked}"))),
        };
        self.fill(&mut answer)?;
        match difference(&answer, &found) {
            None => Ok(()),
            Some(difference) => Err(Trouble::Wrong(format!("{said}: {difference}\nin {found}"))),
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

pub fn replace(value: &mut Value, words: &[(&str, &String)]) {
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
