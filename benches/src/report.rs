//! What is told while it is measured, and what is kept of it.

use std::fs;
use std::io::{Error, Result};
use std::path::Path;

use serde_json::{Map, Value, json};

/// Something that was promised, and how it is.
pub struct Bar {
    pub what: String,
    pub against: String,
    pub promised: String,
    pub found: String,
    pub holds: bool,
}

#[derive(Default)]
pub struct Report {
    text: String,
    raw: Map<String, Value>,
    bars: Vec<Bar>,
    faults: Vec<String>,
}

impl Report {
    pub fn say(&mut self, line: &str) {
        println!("{line}");
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub fn title(&mut self, title: &str) {
        self.say(&format!("\n### {title}\n"));
    }

    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        self.say(&format!("| {} |", head.join(" | ")));
        self.say(&format!("|{}|", vec!["---"; head.len()].join("|")));
        for row in rows {
            self.say(&format!("| {} |", row.join(" | ")));
        }
    }

    /// Keeps figures under a name, in a part of the run.
    pub fn keep(&mut self, part: &str, name: &str, figures: Value) {
        self.raw.entry(part).or_insert_with(|| json!({}))[name] = figures;
    }

    pub fn bar(&mut self, bar: Bar) {
        self.bars.push(bar);
    }

    /// Something that does not work.
    pub fn fault(&mut self, what: &str, error: &Error) {
        let fault = format!("{what} {}", failure(error));
        self.say(&format!("\n**{fault}**\n"));
        self.faults.push(fault);
    }

    /// Tells what was promised, keeps all of it if that is wanted, and fails if something did not work.
    pub fn end(mut self, runs: &Path, save: Option<&str>) -> Result<()> {
        if !self.bars.is_empty() {
            self.title("What was promised");
            let verdict = |holds| if holds { "holds" } else { "missed" };
            let row = |bar: &Bar| {
                let Bar { what, against, promised, found, holds } = bar;
                [what, against, promised, found, verdict(*holds)].map(String::from).to_vec()
            };
            let rows: Vec<_> = self.bars.iter().map(row).collect();
            self.table(&["what", "against", "promised", "measured", ""], &rows);
        }
        if let Some(name) = save {
            let bar = |bar: &Bar| json!({ "what": bar.what, "against": bar.against, "promised": bar.promised, "measured": bar.found, "holds": bar.holds });
            self.raw.insert("bars".into(), self.bars.iter().map(bar).collect());
            fs::create_dir_all(runs)?;
            fs::write(runs.join(format!("{name}.json")), by_lines(&self.raw))?;
            fs::write(runs.join(format!("{name}.md")), self.text.trim_start())?;
        }
        if self.faults.is_empty() { Ok(()) } else { Err(Error::other(self.faults.join("\n"))) }
    }
}

/// JSON, each entry of a part on a line of its own.
fn by_lines(parts: &Map<String, Value>) -> String {
    let part = |(name, entries): (&String, &Value)| {
        let (open, lines, close) = match entries {
            Value::Object(entries) => {
                let line = |(name, value)| format!("    {}: {value}", json!(name));
                ("{", entries.iter().map(line).collect(), "}")
            }
            Value::Array(entries) => {
                ("[", entries.iter().map(|value| format!("    {value}")).collect(), "]")
            }
            value => ("", vec![value.to_string()], ""),
        };
        format!("  {}: {open}\n{}\n  {close}", json!(name), lines.join(",\n"))
    };
    let parts: Vec<_> = parts.iter().map(part).collect();
    format!("{{\n{}\n}}\n", parts.join(",\n"))
}

/// In the place of figures.
pub fn failure(error: &Error) -> String {
    let error: String = error.to_string().chars().take(200).collect();
    format!("failed: {}", error.replace(['\n', '|'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_json_by_lines() {
        let mut report = Report::default();
        report.keep("sizes", "a \"b\"", json!({ "x": [1, 2] }));
        report.keep("sizes", "c", json!(3));
        report.raw.insert("bars".into(), json!([{ "holds": true }]));
        let kept = by_lines(&report.raw);
        let read: Map<String, Value> = serde_json::from_str(&kept).expect("it is JSON");
        assert_eq!(read, report.raw);
        assert_eq!(kept.lines().nth(2), Some(r#"    "a \"b\"": {"x":[1,2]},"#));
    }
}
