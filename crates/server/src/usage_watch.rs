//! Warns once when the server uses too much memory or processor time.

use std::sync::Arc;
use std::time::Duration;

use files::usage::{self, Usage};
use serde_json::{Map, Value};

use crate::call::Calls;
use crate::log::Level;

const INTERVAL: Duration = Duration::from_secs(10);
/// Percentage of the available memory at which to warn.
const MEMORY_PERCENT: u64 = 80;
/// Percentage of all cores at which to warn, if it lasts for `BUSY_FOR`.
const CPU_PERCENT: u128 = 90;
const BUSY_FOR: Duration = Duration::from_mins(1);

/// Runs for as long as the server does.
pub async fn watch(calls: Arc<Calls>) {
    let mut watch = Watch::default();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(usage) = usage::now() else { return };
        for (event, fields) in watch.look(&usage) {
            calls.log.write(Level::Warn, event, fields);
        }
    }
}

#[derive(Default)]
struct Watch {
    memory_logged: bool,
    busy_logged: bool,
    /// Up-time and CPU time when the present busy stretch began.
    busy_since: Option<(Duration, Duration)>,
    last: Option<(Duration, Duration)>,
}

impl Watch {
    fn look(&mut self, usage: &Usage) -> Vec<(&'static str, Map<String, Value>)> {
        let mut events = Vec::new();
        if !self.memory_logged && usage.memory > usage.memory_available / 100 * MEMORY_PERCENT {
            self.memory_logged = true;
            let mut fields = Map::new();
            fields.insert("memory_bytes".into(), usage.memory.into());
            fields.insert("available_bytes".into(), usage.memory_available.into());
            events.push(("memory is running short", fields));
        }
        let now = (usage.at, usage.cpu);
        if let Some(last) = self.last.replace(now) {
            if busy(last, now, usage.cores) {
                let since = *self.busy_since.get_or_insert(last);
                if !self.busy_logged && now.0.saturating_sub(since.0) >= BUSY_FOR {
                    self.busy_logged = true;
                    let mut fields = Map::new();
                    fields.insert("seconds".into(), now.0.saturating_sub(since.0).as_secs().into());
                    events.push(("all cores are busy", fields));
                }
            } else {
                self.busy_since = None;
            }
        }
        events
    }
}

/// True if nearly all processor time was used between two points of up-time and CPU time.
fn busy(from: (Duration, Duration), to: (Duration, Duration), cores: u32) -> bool {
    let wall = to.0.saturating_sub(from.0).as_millis() * u128::from(cores);
    let cpu = to.1.saturating_sub(from.1).as_millis();
    wall > 0 && cpu * 100 > wall * CPU_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(at: u64, cpu: u64, memory: u64) -> Usage {
        let (at, cpu) = (Duration::from_secs(at), Duration::from_secs(cpu));
        Usage { at, cpu, memory, memory_available: 1000, cores: 2 }
    }

    #[test]
    fn memory_is_mentioned_once() {
        let mut watch = Watch::default();
        assert!(watch.look(&usage(0, 0, 799)).is_empty());
        assert_eq!(watch.look(&usage(10, 0, 801))[0].0, "memory is running short");
        assert!(watch.look(&usage(20, 0, 900)).is_empty());
    }

    #[test]
    fn a_minute_at_full_load_is_mentioned_once() {
        let mut watch = Watch::default();
        // Twenty seconds of CPU in ten on two cores, with one pause in between.
        let mut cpu = 0;
        for step in 0..20 {
            cpu += if step == 3 { 1 } else { 20 };
            let events = watch.look(&usage(step * 10, cpu, 0));
            assert_eq!(!events.is_empty(), step == 9, "{step}");
        }
    }
}
