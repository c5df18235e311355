//! What a model is offered of the server's tools, held against what the server lists.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{NAMESPACE, ensure};
use crate::model::Request;
use crate::scene::Scene;
use crate::{Outcome, Trouble};

/// What there is to know of the tools before the first call.
#[derive(Debug, PartialEq)]
pub struct Listing {
    instructions: String,
    /// By name, each with its description and the schema of its arguments.
    tools: BTreeMap<String, (String, Value)>,
}

impl Listing {
    /// What the server says itself, as far as Codex passes it on.
    pub fn of_server(scene: &Scene, options: &[&str]) -> Outcome<Self> {
        let client = json!({ "name": "clients", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        let asked = Command::new(&scene.binary)
            .args(scene.stdio_arguments(options))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .and_then(|mut server| {
                let stdin = server.stdin.take();
                stdin.map_or(Ok(()), |mut stdin| write!(stdin, "{hello}\n{ready}\n{list}\n"))?;
                server.wait_with_output()
            });
        let answers = asked.map_err(|e| Trouble::NotRun(e.to_string()))?.stdout;
        let answers = serde_json::Deserializer::from_slice(&answers).into_iter::<Value>().flatten();
        let answers: Vec<_> = answers.collect();
        // Answers may come in any order.
        let answer = |id: u64| answers.iter().find(|answer| answer["id"] == id);
        let [hello, list] = [0, 1].map(|id| answer(id).cloned().unwrap_or_default());
        let tools = without_bounds(&list["result"]["tools"]);
        Ok(Self::new(&hello["result"]["instructions"], &tools, "inputSchema"))
    }

    fn new(instructions: &Value, tools: &Value, schema: &str) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tool = |tool: &Value| {
            (text(&tool["name"]), (text(&tool["description"]), tool[schema].clone()))
        };
        let tools = tools.as_array().into_iter().flatten().map(tool).collect();
        Self { instructions: text(instructions), tools }
    }
}

/// Bounds are all that Codex takes out of a schema. Who oversteps one is told so by the server.
fn without_bounds(schema: &Value) -> Value {
    const BOUNDS: &[&str] =
        &["minimum", "maximum", "minLength", "maxLength", "maxItems", "pattern"];
    match schema {
        Value::Object(fields) => {
            // A property may be called like one.
            let is_bound = |name: &str, value: &Value| BOUNDS.contains(&name) && !value.is_object();
            let kept = fields.iter().filter(|(name, value)| !is_bound(name, value));
            kept.map(|(name, value)| (name.clone(), without_bounds(value))).collect()
        }
        Value::Array(values) => values.iter().map(without_bounds).collect(),
        other => other.clone(),
    }
}

/// The tools are there in a namespace, with all that is said about them.
pub fn check(request: &Request, listed: &Listing) -> Outcome<()> {
    let none = || Trouble::Wrong(format!("{NAMESPACE} is not offered"));
    let space = request.namespace(NAMESPACE).ok_or_else(none)?;
    let offered = Listing::new(&space["description"], &space["tools"], "parameters");
    ensure(offered == *listed, || format!("offered is {offered:#?}\ninstead of {listed:#?}"))
}

/// They are not there yet, but a search for them is, and says what the server is for.
pub fn check_search(request: &Request, listed: &Listing) -> Outcome<()> {
    let search = request.description("tool_search").unwrap_or_default();
    let hidden = request.namespace(NAMESPACE).is_none();
    ensure(hidden && search.contains(&listed.instructions), || format!("searched is {search}"))
}

/// They are declared in the description of the tool that runs code.
pub fn check_code(request: &Request, listed: &Listing) -> Outcome<()> {
    let declared = request.description("exec").unwrap_or_default();
    let expect = |text: String| {
        ensure(declared.contains(&text), || format!("{text}\nis not in\n{declared}"))
    };
    expect(format!("## {NAMESPACE}\n{}\n", listed.instructions))?;
    for (name, (description, schema)) in &listed.tools {
        expect(format!("### `{NAMESPACE}__{name}`\n{description}\n"))?;
        expect(format!("tools: {{ {NAMESPACE}__{name}(args: {{"))?;
        let required = schema["required"].as_array().into_iter().flatten();
        let required: Vec<_> = required.filter_map(Value::as_str).collect();
        for (property, value) in schema["properties"].as_object().into_iter().flatten() {
            let optional = if required.contains(&property.as_str()) { "" } else { "?" };
            let description = value["description"].as_str().unwrap_or_default();
            expect(format!("  // {description}\n  {property}{optional}: "))?;
        }
    }
    Ok(())
}
