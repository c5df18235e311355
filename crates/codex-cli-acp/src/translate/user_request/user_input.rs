//! Questions that Codex itself asks the user.

use serde_json::{Map, Value, json};

use super::{ChoiceOption, ChoiceRequest, FormKind, FormRequest, UserRequest};
use crate::translate::DisplayCapabilities;
use crate::translate::json::{list, one_line, text, text_content};
use crate::translate::tool_call::ToolCall;

/// Prefix with which Codex marks free text beside the offered answers.
const NOTE: &str = "user_note: ";

/// A question with the form fields that answer it.
#[derive(Debug)]
pub struct FormField {
    id: String,
    /// Name of the field for free text, beside the offered answers.
    note: Option<String>,
}

/// Translates `item/tool/requestUserInput`. Free text and several questions need a form.
pub fn user_request(params: &Value, display: DisplayCapabilities) -> UserRequest {
    let questions = list(params, "questions");
    let offered = |question| !list(question, "options").is_empty();
    match questions {
        [one] if offered(one) && !(display.forms && one["isOther"] == true) => {
            UserRequest::Choice(choice_request(params, one))
        }
        [_, ..] if display.forms => UserRequest::Form(form(questions)),
        _ => UserRequest::Unsupported(unanswered()),
    }
}

fn unanswered() -> Value {
    json!({"answers": {}})
}

fn choice_request(params: &Value, question: &Value) -> ChoiceRequest {
    let wording = text(question, "question").unwrap_or("Codex asks");
    let header = text(question, "header").unwrap_or(wording);
    let id = text(question, "id").unwrap_or_default();
    let options = list(question, "options");
    let offers = options.iter().filter_map(|option| {
        Some(format!("- {}: {}", text(option, "label")?, text(option, "description")?))
    });
    let offers: Vec<_> = offers.collect();
    let call = ToolCall {
        id: text(params, "itemId").unwrap_or_default().into(),
        title: one_line(header),
        kind: "other",
        content: vec![text_content(format!("{wording}\n\n{}", offers.join("\n")))],
        input: json!({"question": question}),
        ..ToolCall::default()
    };
    let choice = |(at, option): (usize, &Value)| {
        let label = text(option, "label")?;
        let answer = json!({"answers": {id: {"answers": [label]}}});
        Some(ChoiceOption::new(&format!("option-{at}"), one_line(label), "allow_once", answer))
    };
    let mut choices: Vec<_> = options.iter().enumerate().filter_map(choice).collect();
    choices.push(ChoiceOption::new("skip", "Skip", "reject_once", unanswered()));
    ChoiceRequest { is_own_call: true, ..ChoiceRequest::new(call, choices, unanswered()) }
}

fn form(questions: &[Value]) -> FormRequest {
    let ids: Vec<_> = questions.iter().filter_map(|question| text(question, "id")).collect();
    let (mut properties, mut required, mut fields) = (Map::new(), Vec::new(), Vec::new());
    for question in questions {
        let Some(id) = text(question, "id") else { continue };
        let wording = text(question, "question").unwrap_or(id);
        let title = text(question, "header").unwrap_or(wording);
        let mut property = json!({"type": "string", "title": title, "description": wording});
        let options: Vec<_> = list(question, "options").iter().filter_map(option).collect();
        let other = question["isOther"] == true && !options.is_empty();
        if !options.is_empty() {
            property["oneOf"] = options.into();
        }
        properties.insert(id.into(), property);
        let note = other.then(|| {
            let mut name = format!("{id}_note");
            while ids.contains(&name.as_str()) {
                name.push('_');
            }
            let title = format!("{title}: something else");
            properties.insert(name.clone(), json!({"type": "string", "title": title}));
            name
        });
        if note.is_none() {
            required.push(id);
        }
        fields.push(FormField { id: id.into(), note });
    }
    FormRequest {
        params: json!({
            "mode": "form",
            "message": "Codex asks",
            "requestedSchema": {"type": "object", "properties": properties, "required": required},
        }),
        default_answer: unanswered(),
        kind: FormKind::UserInput(fields),
    }
}

fn option(option: &Value) -> Option<Value> {
    let label = text(option, "label")?;
    let mut titled = json!({"const": label, "title": label});
    if let Some(description) = text(option, "description") {
        titled["description"] = description.into();
    }
    Some(titled)
}

/// Converts the contents of a form to Codex's answers.
pub fn answers(fields: &[FormField], content: &Value) -> Value {
    let mut answers = Map::new();
    for field in fields {
        let chosen = text(content, &field.id).map(str::to_owned);
        let note = field.note.as_ref().and_then(|name| text(content, name));
        let said: Vec<_> =
            chosen.into_iter().chain(note.map(|note| format!("{NOTE}{note}"))).collect();
        if !said.is_empty() {
            answers.insert(field.id.clone(), json!({"answers": said}));
        }
    }
    json!({"answers": answers})
}
