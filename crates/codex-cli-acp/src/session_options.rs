//! Options of a session: mode, model and reasoning effort, in the formats of ACP and of Codex. Pure functions.

use serde_json::{Value, json};

use crate::modes::Mode;

/// A model that Codex offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub id: String,
    pub name: String,
    pub description: String,
    /// Reasoning efforts, each with its description.
    pub efforts: Vec<(String, String)>,
    pub default_effort: String,
}

impl Model {
    /// Parses an entry of `model/list`.
    pub fn of(entry: &Value) -> Option<Self> {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let effort = |effort: &Value| {
            let description = effort["description"].as_str().unwrap_or_default();
            Some((effort["reasoningEffort"].as_str()?.to_owned(), description.to_owned()))
        };
        let efforts = entry["supportedReasoningEfforts"].as_array().into_iter().flatten();
        Some(Self {
            id: entry["model"].as_str()?.to_owned(),
            name: text("displayName"),
            description: text("description"),
            efforts: efforts.filter_map(effort).collect(),
            default_effort: text("defaultReasoningEffort"),
        })
    }
}

/// The options of a session: what can be chosen, what is chosen, and what Codex has accepted. Codex may answer in any
/// order, or never: a choice is in force at once, and is undone if it is refused while it is the latest.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    pub mode: Mode,
    pub model: String,
    pub effort: Option<String>,
    pub models: Vec<Model>,
    /// The values that Codex accepted last.
    accepted: OptionValues,
    latest_mode: LatestChange,
    latest_model: LatestChange,
}

/// The values that are sent to Codex in one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    Mode,
    /// Model and effort together, since each model has its own efforts.
    Model,
}

/// A choice of a setting; later ones have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionChange {
    pub setting: Setting,
    number: u64,
}

/// The values of a setting as they were sent to Codex, with the latest choice at that time.
#[derive(Clone, Debug)]
pub struct SentOptions {
    choice: OptionChange,
    values: OptionValues,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OptionValues {
    mode: Mode,
    model: String,
    effort: Option<String>,
}

/// The latest choice of a setting.
#[derive(Clone, Copy, Debug, Default)]
struct LatestChange {
    number: u64,
    /// True until Codex has answered.
    is_open: bool,
}

pub const MODE: &str = "mode";
pub const MODEL: &str = "model";
pub const EFFORT: &str = "reasoning_effort";

impl SessionOptions {
    fn current(&self) -> Option<&Model> {
        self.models.iter().find(|model| model.id == self.model)
    }

    /// Returns the efforts of the current model.
    fn efforts(&self) -> &[(String, String)] {
        self.current().map_or(&[], |model| &model.efforts)
    }

    fn current_effort(&self) -> Option<&str> {
        let default = self.current().map(|model| model.default_effort.as_str());
        self.effort.as_deref().or(default).filter(|effort| !effort.is_empty())
    }

    /// Returns all options as editors show them.
    pub fn to_json(&self) -> Value {
        let ways = Mode::ALL.map(|mode| option(mode.id(), mode.name(), mode.description()));
        let mut options = vec![select(MODE, "Mode", "mode", self.mode.id(), &ways)];
        let mut models: Vec<Value> = self
            .models
            .iter()
            .map(|model| option(&model.id, &model.name, &model.description))
            .collect();
        // A model from Codex's own configuration may be missing in the list it offers.
        if self.current().is_none() && !self.model.is_empty() {
            models.insert(0, option(&self.model, &self.model, ""));
        }
        if !models.is_empty() {
            options.push(select(MODEL, "Model", "model", &self.model, &models));
        }
        if let Some(current) = self.current_effort().filter(|_| !self.efforts().is_empty()) {
            let mut efforts: Vec<Value> =
                self.efforts().iter().map(|(id, about)| option(id, id, about)).collect();
            if self.efforts().iter().all(|(id, _)| id != current) {
                efforts.insert(0, option(current, current, ""));
            }
            options.push(select(EFFORT, "Reasoning effort", "thought_level", current, &efforts));
        }
        options.into()
    }

    /// Sets the values with which Codex has begun a thread.
    pub fn begin(&mut self, model: &str, effort: Option<&str>) {
        model.clone_into(&mut self.model);
        self.effort = effort.map(ToOwned::to_owned);
        self.accepted = self.values();
    }

    /// Makes a choice, or returns an error with the valid values. Codex then accepts or refuses it.
    pub fn choose(&mut self, id: &str, value: &str) -> Result<OptionChange, String> {
        let setting = self.set(id, value)?;
        Ok(self.renew(setting))
    }

    /// True if Codex has not answered the choice, and there is none after it.
    pub fn is_open(&self, choice: OptionChange) -> bool {
        let latest = self.latest(choice.setting);
        latest.is_open && latest.number == choice.number
    }

    /// Returns the current values of a setting, to be sent.
    pub fn sent(&self, setting: Setting) -> SentOptions {
        let number = self.latest(setting).number;
        SentOptions { choice: OptionChange { setting, number }, values: self.values() }
    }

    /// Records that Codex accepted the values. If it had answered a later choice before, it may now have the older
    /// values: then the current ones are returned as a new choice, which must be sent.
    pub fn accept(&mut self, sent: &SentOptions) -> Option<OptionChange> {
        let OptionChange { setting, number } = sent.choice;
        self.accepted.take(setting, &sent.values);
        let latest = self.latest_mut(setting);
        if latest.number == number {
            latest.is_open = false;
            return None;
        }
        let is_decided = !latest.is_open;
        (is_decided && self.values().differs(setting, &sent.values)).then(|| self.renew(setting))
    }

    /// Undoes a choice that Codex refused: the values it accepted last hold again, unless there is a later choice.
    pub fn refuse(&mut self, choice: OptionChange) {
        if !self.is_open(choice) {
            return;
        }
        self.latest_mut(choice.setting).is_open = false;
        let mut values = self.values();
        values.take(choice.setting, &self.accepted);
        (self.mode, self.model, self.effort) = (values.mode, values.model, values.effort);
    }

    fn renew(&mut self, setting: Setting) -> OptionChange {
        let latest = self.latest_mut(setting);
        *latest = LatestChange { number: latest.number + 1, is_open: true };
        OptionChange { setting, number: latest.number }
    }

    fn values(&self) -> OptionValues {
        OptionValues { mode: self.mode, model: self.model.clone(), effort: self.effort.clone() }
    }

    fn latest(&self, setting: Setting) -> LatestChange {
        match setting {
            Setting::Mode => self.latest_mode,
            Setting::Model => self.latest_model,
        }
    }

    fn latest_mut(&mut self, setting: Setting) -> &mut LatestChange {
        match setting {
            Setting::Mode => &mut self.latest_mode,
            Setting::Model => &mut self.latest_model,
        }
    }

    fn set(&mut self, id: &str, value: &str) -> Result<Setting, String> {
        let one_of = |known: Vec<&str>| format!("`{value}` is none of: {}", known.join(", "));
        match id {
            MODE => {
                let known = || one_of(Mode::ALL.map(Mode::id).to_vec());
                self.mode = Mode::of(value).ok_or_else(known)?;
                Ok(Setting::Mode)
            }
            MODEL => {
                if value != self.model && self.models.iter().all(|model| model.id != value) {
                    return Err(one_of(
                        self.models.iter().map(|model| model.id.as_str()).collect(),
                    ));
                }
                value.clone_into(&mut self.model);
                // An effort that the new model does not have is dropped.
                let fits = self.efforts().iter().any(|(id, _)| Some(id) == self.effort.as_ref());
                self.effort = self.effort.take().filter(|_| fits);
                Ok(Setting::Model)
            }
            EFFORT => {
                if self.efforts().iter().all(|(id, _)| id != value) {
                    return Err(one_of(self.efforts().iter().map(|(id, _)| id.as_str()).collect()));
                }
                self.effort = Some(value.to_owned());
                Ok(Setting::Model)
            }
            _ => Err(format!("there is no option `{id}`; there are {MODE}, {MODEL} and {EFFORT}")),
        }
    }
}

impl OptionValues {
    /// Copies the values of one setting.
    fn take(&mut self, setting: Setting, from: &Self) {
        match setting {
            Setting::Mode => self.mode = from.mode,
            Setting::Model => {
                self.model.clone_from(&from.model);
                self.effort.clone_from(&from.effort);
            }
        }
    }

    fn differs(&self, setting: Setting, other: &Self) -> bool {
        match setting {
            Setting::Mode => self.mode != other.mode,
            Setting::Model => (&self.model, &self.effort) != (&other.model, &other.effort),
        }
    }
}

fn option(value: &str, name: &str, description: &str) -> Value {
    let name = if name.is_empty() { value } else { name };
    let mut option = json!({ "value": value, "name": name });
    if !description.is_empty() {
        option["description"] = description.into();
    }
    option
}

fn select(id: &str, name: &str, category: &str, current: &str, options: &[Value]) -> Value {
    json!({
        "id": id, "name": name, "category": category,
        "type": "select", "currentValue": current, "options": options,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices() -> SessionOptions {
        let effort = |id: &str| (id.to_owned(), String::new());
        let model = |id: &str, efforts: &[&str]| Model {
            id: id.into(),
            name: id.to_uppercase(),
            description: String::new(),
            efforts: efforts.iter().copied().map(effort).collect(),
            default_effort: efforts.first().copied().unwrap_or_default().into(),
        };
        let models =
            vec![model("a", &["low", "high"]), model("b", &["high", "max"]), model("c", &[])];
        SessionOptions { model: "a".into(), models, ..SessionOptions::default() }
    }

    fn current(choices: &SessionOptions, id: &str) -> Option<Value> {
        let options = choices.to_json();
        let option = options.as_array()?.iter().find(|option| option["id"] == id)?;
        Some(option["currentValue"].clone())
    }

    #[test]
    fn an_effort_stays_when_the_next_model_has_it() {
        let mut choices = choices();
        assert_eq!(current(&choices, EFFORT), Some("low".into()));
        choices.choose(EFFORT, "high").expect("it is there");
        choices.choose(MODEL, "b").expect("it is there");
        assert_eq!(current(&choices, EFFORT), Some("high".into()));
        choices.choose(EFFORT, "max").expect("it is there");
        choices.choose(MODEL, "a").expect("it is there");
        assert_eq!(current(&choices, EFFORT), Some("low".into()));
        choices.choose(MODEL, "c").expect("it is there");
        assert_eq!(current(&choices, EFFORT), None);
    }

    #[test]
    fn what_is_not_there_cannot_be_chosen() {
        let mut choices = choices();
        for (id, value) in [(MODE, "x"), (MODEL, "x"), (EFFORT, "max"), ("x", "x")] {
            assert!(choices.choose(id, value).is_err(), "{id} {value}");
        }
        assert_eq!((choices.mode, &*choices.model, choices.effort), (Mode::Auto, "a", None));
    }

    #[test]
    fn a_model_that_is_not_offered_is_shown_all_the_same() {
        let choices = SessionOptions { model: "mine".into(), ..choices() };
        assert_eq!(current(&choices, MODEL), Some("mine".into()));
        assert_eq!(choices.to_json()[1]["options"][0]["value"], "mine");
    }
}
