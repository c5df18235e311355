//! Codex CLI with a scripted model behind it: what a model is offered of the server, and what it is shown.
//!
//! Tours are held, word for word, against `codex/*.seen`: a model sees the same on every transport, in every version of
//! the protocol and in every way in which Codex lets it call tools.

mod offer;
pub mod program;
mod tours;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::model::{Item, Model, Request, Step};
use crate::scene::{OnHttp, Scene};
use crate::setup;
use crate::ways::Transport;
use crate::{Outcome, Row, Trouble};
use offer::Listing;
pub use program::PACKAGE as CODEX;
use program::{Codex, see_off};
use tours::{Call, FLAT, PLAIN, Seen, TEXT, Tour, UNASKED, hashes};

/// Codex's name for a server that is called `file-editor`.
const NAMESPACE: &str = "mcp__file_editor";

/// One run of Codex: how it reaches the server, and what its model does there.
struct Run {
    transport: Transport,
    protocol: &'static str,
    options: &'static [&'static str],
    way: Way,
    /// Lines of the configuration: Codex's own, and those of the server.
    settings: &'static str,
    server: &'static str,
    told: Told,
    tour: Tour,
    note: &'static str,
}

/// Who wrote the server into the configuration.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    ByHand,
    /// `file-editor setup codex`.
    BySetup,
}

/// How a model comes to the tools of a server, which depends on what Codex knows of the model.
#[derive(Clone, Copy)]
enum Way {
    /// They are among its tools.
    Offered,
    /// It has to search for them.
    Searched,
    /// It writes JavaScript that calls them.
    Code,
}

const STDIO: Run = Run {
    transport: Transport::Stdio,
    protocol: "2025-06-18",
    options: &["--tools=text"],
    way: Way::Offered,
    settings: "",
    // Overwriting is the one thing that Codex does not let pass unasked.
    server: r#"tools.write_text_file.approval_mode = "approve""#,
    told: Told::ByHand,
    tour: TEXT,
    note: "",
};

const RUNS: &[Run] = &[
    STDIO,
    Run { transport: Transport::Http, ..STDIO },
    Run {
        transport: Transport::Http,
        protocol: "2026-07-28",
        settings: "features.mcp_2026_07_28 = true",
        note: "; `features.mcp_2026_07_28`",
        ..STDIO
    },
    Run {
        transport: Transport::Http,
        options: &["--tools=all"],
        server: "",
        tour: FLAT,
        note: "; `--tools=all`",
        ..STDIO
    },
    Run {
        options: &["--tools=text", "--structured=off"],
        tour: PLAIN,
        note: "; `--structured=off`",
        ..STDIO
    },
    Run { way: Way::Searched, note: "; tools found by `tool_search`", ..STDIO },
    Run {
        way: Way::Code,
        server: "omit_tools_from = [\"deferred\"]\ntools.write_text_file.approval_mode = \"approve\"",
        note: "; from JavaScript, in code mode",
        ..STDIO
    },
    Run { server: "", tour: UNASKED, ..STDIO },
    Run {
        told: Told::BySetup,
        server: "[mcp_servers.file-editor.tools.write_text_file]\napproval_mode = \"approve\"",
        note: "; as `file-editor setup codex` told it",
        ..STDIO
    },
];

pub fn drive(scene: &Scene) -> Outcome<Vec<Row>> {
    let codex = Codex::install()?;
    let row = |run: &Run| {
        let transport = run.transport.shown();
        let did = format!("{} calls: {}{}", run.tour.calls.len(), run.tour.what, run.note);
        // Each has a folder of its own.
        let played = Scene::new(&scene.binary).and_then(|scene| run.play(&codex, &scene));
        let did = played.map_err(|trouble| trouble.at(&did)).map(|()| did);
        Row { transport, protocol: run.protocol, did }
    };
    Ok(RUNS.iter().map(row).collect())
}

impl Run {
    fn play(&self, codex: &Codex, scene: &Scene) -> Outcome<()> {
        for (name, text) in self.tour.given {
            scene.put(name, text)?;
            // A list of files shows their times.
            let file = File::options().write(true).open(scene.path(name));
            file.and_then(|file| file.set_modified(UNIX_EPOCH + Duration::from_secs(1 << 30)))
                .map_err(|e| Trouble::Wrong(format!("{name}: {e}")))?;
        }
        let server = match self.transport {
            Transport::Stdio => None,
            Transport::Http => Some(scene.serve(self.options)?),
        };
        let model = Model::start(self.script(scene))?;
        let ended = codex.exec(scene, &self.configuration(scene, &model, server.as_ref())?);
        drop(server);
        let gone = see_off(scene.folder());
        let logged = ended?;
        gone?;

        let version = format!("protocol_version: ProtocolVersion(\"{}\")", self.protocol);
        ensure(logged.contains(&version), || format!("not in its log: {version}\n{logged}"))?;
        let requests = model.requests();
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
            return Err(Trouble::Wrong("the model was not asked".into()));
        };
        let listed = Listing::of_server(scene, self.options)?;
        match self.way {
            Way::Offered => offer::check(last, &listed)?,
            Way::Searched => {
                offer::check_search(first, &listed)?;
                offer::check(last, &listed)?;
            }
            Way::Code => offer::check_code(first, &listed)?,
        }
        let seen = self.transcript(scene, last);
        ensure(seen == self.tour.seen, || {
            let mut lines = seen.lines().zip(self.tour.seen.lines());
            let differing = lines.find(|(saw, should)| saw != should);
            format!("the model saw\n{seen}\nfirst (saw, should see): {differing:#?}")
        })?;
        let left = files(scene)?;
        let wanted = self.tour.left.iter().map(|(name, text)| ((*name).into(), (*text).into()));
        ensure(left == wanted.collect(), || format!("the files are {left:?}"))
    }

    /// The configuration of a user who has no provider but the model and no server but ours. What goes elsewhere of its
    /// own accord is switched off.
    fn configuration(
        &self,
        scene: &Scene,
        model: &Model,
        server: Option<&OnHttp>,
    ) -> Outcome<String> {
        // What Codex does not know by name gets the tools as they are.
        let name = match self.way {
            Way::Offered => "scripted",
            Way::Searched => "gpt-5.5",
            Way::Code => "gpt-6-sol",
        };
        let place = match server {
            Some(server) => format!("url = {}", json!(server.url)),
            None => format!(
                "command = {}\nargs = {}",
                json!(scene.binary),
                json!(scene.stdio_arguments(self.options)),
            ),
        };
        let own = format!(
            r#"
model = "{name}"
model_provider = "scripted"
model_providers.scripted = {{ name = "scripted", base_url = "{}", wire_api = "responses" }}
check_for_update_on_startup = false
analytics.enabled = false
features.plugins = false
features.shell_snapshot = false
{}
"#,
            model.url(),
            self.settings,
        );
        let told = match self.told {
            Told::ByHand => format!("{own}[mcp_servers.file-editor]\nrequired = true\n{place}"),
            Told::BySetup => setup::codex(scene, &own, self.options)?,
        };
        Ok(format!("{told}\n{}\n", self.server))
    }

    fn script(&self, scene: &Scene) -> Vec<Step> {
        let mut script: Vec<Step> = Vec::new();
        if let Way::Searched = self.way {
            script.push(Box::new(|_| Ok(Item::Search { query: "edit a text file" }.into())));
        }
        for Call { tool, prepare } in self.tour.calls {
            let (folder, way) = (scene.folder().to_owned(), self.way);
            script.push(Box::new(move |request| {
                let arguments = prepare(&Seen { folder, answers: answers(request) })?;
                let call = match way {
                    Way::Offered | Way::Searched => {
                        Item::Call { namespace: Some(NAMESPACE), name: tool, arguments }
                    }
                    Way::Code => Item::Write { name: "exec", input: javascript(tool, &arguments) },
                };
                Ok(call.into())
            }));
        }
        script.push(Box::new(|_| Ok(Item::Say("Done.".into()).into())));
        script
    }

    /// What the model saw of the tour, with numbers for hashes, since each file has its own.
    fn transcript(&self, scene: &Scene, last: &Request) -> String {
        let mut text = String::new();
        for (call, answer) in self.tour.calls.iter().zip(answers(last)) {
            let _ = writeln!(text, "=== {}\n{answer}", call.tool);
        }
        let mut known: Vec<&str> = Vec::new();
        for hash in hashes(&text) {
            if !known.contains(&hash) {
                known.push(hash);
            }
        }
        let plain = text.replace(&scene.folder().display().to_string(), "$DIR");
        let number = |text: String, (number, hash): (usize, &&str)| {
            text.replace(*hash, &format!("<hash {}>", number + 1))
        };
        known.iter().enumerate().fold(plain, number)
    }
}

pub fn ensure(holds: bool, why: impl FnOnce() -> String) -> Outcome<()> {
    if holds { Ok(()) } else { Err(Trouble::Wrong(why())) }
}

/// What the model saw of each call so far, less the time it took.
pub fn answers(request: &Request) -> Vec<String> {
    let answer = |texts: Vec<&str>| {
        let Some((first, rest)) = texts.split_first() else { return String::new() };
        // A head of its own for more than one text, else on top of the only one.
        let first = first
            .split_once("Output:")
            .map_or(*first, |(_, text)| text.strip_prefix('\n').unwrap_or(text));
        let first = Some(first).filter(|text| !text.is_empty());
        first.iter().chain(rest).copied().collect::<Vec<_>>().join("\n")
    };
    request.outputs().into_iter().map(answer).collect()
}

/// A call as a model in code mode writes it, to see what Codex shows of a direct one.
fn javascript(tool: &str, arguments: &Value) -> String {
    format!(
        "const answer = await tools.{NAMESPACE}__{tool}({arguments});
         const texts = answer.content.map(part => part.text).join('\\n');
         text(answer.structuredContent ? JSON.stringify(answer.structuredContent) : texts);"
    )
}

/// The files of the scene; Codex's home is a folder.
fn files(scene: &Scene) -> Outcome<BTreeMap<String, String>> {
    let entries = fs::read_dir(scene.folder()).map_err(|e| Trouble::Wrong(e.to_string()))?;
    let names = entries.flatten().filter(|entry| entry.path().is_file());
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.map(|name| Ok((name.clone(), scene.text(&name)?))).collect()
}
