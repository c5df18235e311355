//! Every case of `cases/` in process: the tools by themselves.

#[path = "../../../server/src/error_codes.rs"]
#[allow(
    dead_code,
    reason = "a part of what failures are called on the wire, without what is on it"
)]
mod error_codes;
#[path = "../../../../cases/play.rs"]
pub mod play;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use files::{Call, DiskOptions, DiskStore, Durability, LineCounts, Root};
use play::{Player, play_all};
use serde_json::{Value, json};
use tools::{Context, Failure, Limits, ToolOutput, ToolSpec};

#[test]
fn every_case_in_process() {
    play_all(|folder, flags| Some(Box::new(InProcess::start(folder, flags)?)));
}

struct InProcess {
    root: Arc<Root>,
    store: DiskStore,
    limits: Limits,
    counts: LineCounts,
}

impl InProcess {
    fn start(folder: &Path, flags: &[&str]) -> Option<Self> {
        let megabytes: u64 = match &flags[1..] {
            [] => 10,
            [flag] => flag.strip_prefix("--max-size=")?.parse().unwrap(),
            _ => return None,
        };
        let limits = Limits::new(megabytes << 20, Duration::from_secs(10));
        let options = DiskOptions { max_size: limits.max_size, durability: Durability::None };
        let root = Arc::new(Root::open(folder).unwrap());
        let store = DiskStore::open(Arc::clone(&root), options);
        Some(Self { root, store, limits, counts: LineCounts::default() })
    }

    fn run(&self, entry: &'static ToolSpec, arguments: Value) -> Result<ToolOutput, Failure> {
        let call = Call::until(Instant::now() + self.limits.timeout);
        entry.prepare(arguments)?.run(&Context {
            root: &self.root,
            store: &self.store,
            line_counts: &self.counts,
            limits: &self.limits,
            call: &call,
            expected: None,
        })
    }
}

impl Player for InProcess {
    fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let entry = tools::agent_tools().find(|entry| entry.has_name(name)).unwrap();
        let target = arguments.get("target_file").or(arguments.get("path"));
        let target = target.and_then(Value::as_str).map(String::from);
        let mut meta = None;
        let (texts, data, is_error) = match self.run(entry, arguments) {
            Ok(reply) => {
                let texts = reply.blocks.iter().map(ToString::to_string).collect();
                meta = reply.meta.map(Value::Object);
                let written = reply.written.map(|json| serde_json::from_str(&json).unwrap());
                (texts, reply.data.map(Value::Object).or(written), false)
            }
            Err(failure) => {
                let text = error_codes::text(entry.dialect, &failure);
                let target = target.as_deref();
                let error = error_codes::structured(entry.dialect, target, &failure);
                ([text].into_iter().chain(failure.hint).collect::<Vec<_>>(), Some(error), true)
            }
        };
        let content: Vec<_> = texts.iter().map(|text| json!({ "text": text })).collect();
        let mut result = json!({ "content": content, "isError": is_error });
        let fields = [("structuredContent", data), ("_meta", meta)];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.into(), value?)));
        result.as_object_mut().unwrap().extend(fields);
        json!({ "result": result })
    }

    fn method(&mut self, name: &str, params: Value) -> Value {
        let entry = tools::find("plain", name).unwrap();
        match self.run(entry, params) {
            Ok(reply) => {
                if let Some(json) = reply.written {
                    return json!({ "result": serde_json::from_str::<Value>(&json).unwrap() });
                }
                let mut result = json!({});
                let content =
                    reply.blocks.first().map(|text| ("content".into(), json!(text.to_string())));
                result
                    .as_object_mut()
                    .unwrap()
                    .extend(content.into_iter().chain(reply.data.unwrap_or_default()));
                json!({ "result": result })
            }
            Err(failure) => {
                let (code, message, data) = error_codes::json_rpc(entry, &failure);
                json!({ "error": { "code": code, "message": message, "data": data } })
            }
        }
    }
}
