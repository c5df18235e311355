//! How a model says what it wants, and a script of it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::codex::{answers, ensure};
use crate::model::{End, Item, Request, Step, Turn};
use crate::{Outcome, Trouble};

/// Codex's name for our tools.
pub const NAMESPACE: &str = "mcp__file_editor";

/// Two kinds of models, told apart by what Codex knows of their name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mind {
    /// It calls tools.
    Classic,
    /// It writes JavaScript that calls tools.
    Code,
}

pub const BOTH: &[Mind] = &[Mind::Classic, Mind::Code];
pub const CLASSIC: &[Mind] = &[Mind::Classic];

impl Mind {
    /// The name of such a model.
    pub fn model(self) -> &'static str {
        match self {
            Self::Classic => "scripted",
            Self::Code => "gpt-6-sol",
        }
    }

    /// As a table says it.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Classic => "direct calls",
            Self::Code => "code mode",
        }
    }

    /// Calls of tools of one server, all at once.
    pub fn calls(self, namespace: &'static str, calls: Vec<(&'static str, Value)>) -> Vec<Item> {
        match self {
            Self::Classic => calls
                .into_iter()
                .map(|(name, arguments)| Item::Call { namespace: Some(namespace), name, arguments })
                .collect(),
            Self::Code => {
                let mut all = String::new();
                for (name, arguments) in calls {
                    let _ = writeln!(all, "tools.{namespace}__{name}({arguments}),");
                }
                // One answer after the other, each as Codex shows that of a direct call.
                vec![exec(format!(
                    "for (const answer of await Promise.all([\n{all}])) {{
                         const texts = answer.content.map(part => part.text).join('\\n');
                         text(answer.structuredContent ? JSON.stringify(answer.structuredContent) : texts);
                     }}"
                ))]
            }
        }
    }

    /// A call of one of Codex's own tools.
    pub fn own(self, name: &'static str, arguments: Value) -> Item {
        match self {
            Self::Classic => Item::Call { namespace: None, name, arguments },
            Self::Code => exec(format!(
                "const answer = await tools.{name}({arguments});
                 text(typeof answer === 'string' ? answer : JSON.stringify(answer));"
            )),
        }
    }

    pub fn shell(self, command: &str) -> Item {
        self.own("exec_command", json!({ "cmd": command, "login": false }))
    }

    pub fn plan(self, plan: &Value) -> Item {
        self.own("update_plan", json!({ "plan": plan }))
    }

    /// A patch in Codex's own format. A model that was not given the tool writes it as a command.
    pub fn patch(self, patch: &str) -> Item {
        match self {
            Self::Classic => self.shell(&format!("apply_patch <<'EOF'\n{patch}\nEOF\n")),
            Self::Code => self.own("apply_patch", json!(patch)),
        }
    }
}

fn exec(input: String) -> Item {
    Item::Write { name: "exec", input }
}

/// What a model does, answer by answer, and what it has to be shown meanwhile.
pub struct Script {
    mind: Mind,
    steps: Vec<Step>,
    checks: Vec<Check>,
}

type Check = Box<dyn FnOnce(&Request) -> Outcome<()> + Send>;

impl Script {
    pub fn new(mind: Mind) -> Self {
        Self { mind, steps: Vec::new(), checks: Vec::new() }
    }

    /// The next answer.
    pub fn answer(self, turn: impl Into<Turn>) -> Self {
        let turn = turn.into();
        self.answer_by(move |_| Ok(turn))
    }

    /// The next answer, made when it is asked for.
    pub fn answer_by(
        mut self,
        turn: impl FnOnce(&Request) -> Outcome<Turn> + Send + 'static,
    ) -> Self {
        let checks = std::mem::take(&mut self.checks);
        self.steps.push(Box::new(move |request| {
            checks.into_iter().try_for_each(|check| check(request))?;
            turn(request)
        }));
        self
    }

    /// Calls one of our tools.
    pub fn call(self, tool: &'static str, arguments: Value) -> Self {
        self.calls(vec![(tool, arguments)])
    }

    /// Calls several of our tools at once.
    pub fn calls(self, calls: Vec<(&'static str, Value)>) -> Self {
        let items = self.mind.calls(NAMESPACE, calls);
        self.answer(items)
    }

    pub fn shell(self, command: &str) -> Self {
        let item = self.mind.shell(command);
        self.answer(item)
    }

    pub fn say(self, text: &str) -> Self {
        self.answer(Item::Say(text.into()))
    }

    /// Says something, and then nothing at all.
    pub fn hang(self, text: &str) -> Self {
        self.answer(Turn { items: vec![Item::Say(text.into())], end: End::Hanging })
    }

    /// What must hold of the next request.
    pub fn check(mut self, check: impl FnOnce(&Request) -> Outcome<()> + Send + 'static) -> Self {
        self.checks.push(Box::new(check));
        self
    }

    /// The next request has the text in the newest answer of a tool.
    pub fn saw(self, text: &str) -> Self {
        let text = text.to_owned();
        self.check(move |request| {
            let newest = answers(request).pop().unwrap_or_default();
            ensure(newest.contains(&text), || format!("{text:?} is not in {newest:?}"))
        })
    }

    /// The next request offers our tools at once: a model that had to search for them would not.
    pub fn offered(self) -> Self {
        let mind = self.mind;
        self.check(move |request| {
            for tool in ["read_text_file", "write_text_file", "multi_edit_text_file"] {
                let offered = match mind {
                    Mind::Classic => {
                        let tools = request.namespace(NAMESPACE).map(|space| &space["tools"]);
                        let mut tools = tools.and_then(Value::as_array).into_iter().flatten();
                        tools.any(|offered| offered["name"] == tool)
                    }
                    Mind::Code => {
                        let declared = request.description("exec").unwrap_or_default();
                        declared.contains(&format!("### `{NAMESPACE}__{tool}`"))
                    }
                };
                ensure(offered, || format!("{tool} is not offered"))?;
            }
            Ok(())
        })
    }

    /// The steps, of which none may be left unchecked.
    pub fn steps(self) -> Outcome<Vec<Step>> {
        let unchecked = || Trouble::Wrong("nothing follows a check of the script".into());
        if self.checks.is_empty() { Ok(self.steps) } else { Err(unchecked()) }
    }
}
