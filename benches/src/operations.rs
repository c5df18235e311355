//! What is measured on stdio, and what was promised of it.

use crate::contenders::{Durability, Task};
use crate::figures::Figures;
use crate::scene::{self, KB, MB};

/// Something that is measured.
pub struct Operation {
    pub name: String,
    pub task: Task,
    pub durability: Durability,
    pub files: Files,
    /// How often everybody has a turn, and calls in each turn.
    pub turns: usize,
    pub calls: usize,
    /// What it may take, if anything was promised.
    pub bars: Bars,
}

/// What there is to work on.
#[derive(Clone)]
pub enum Files {
    One(String),
    /// So many small ones; for each turn of a cold listing the server is started anew.
    Many {
        count: usize,
        is_cold: bool,
    },
}

/// At most so many times what the floor takes, and the best rival, who is measured by time.
#[derive(Clone, Copy, Default)]
pub struct Bars {
    pub floor: Option<(Measure, f64)>,
    pub rival: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Time,
    Cpu,
}

impl Measure {
    pub fn of(self, figures: &Figures) -> f64 {
        match self {
            Self::Time => figures.median(),
            Self::Cpu => figures.cpu(),
        }
    }
}

/// All of them.
pub fn operations() -> Vec<Operation> {
    let bars = |measure, floor, rival| Bars { floor: Some((measure, floor)), rival: Some(rival) };
    let one = |name: &str, task, text, (turns, calls), bars| Operation {
        name: name.into(),
        task,
        durability: Durability::None,
        files: Files::One(text),
        turns,
        calls,
        bars,
    };
    let mut all = vec![
        one("read 1 KB", Task::Read, scene::source(KB), (40, 50), bars(Measure::Cpu, 2.5, 0.5)),
        one("read 1 MB", Task::Read, scene::source(MB), (100, 5), bars(Measure::Cpu, 1.3, 1.0)),
        one(
            "read 1 MB, escape-heavy",
            Task::Read,
            scene::heavy(MB),
            (100, 5),
            bars(Measure::Cpu, 1.3, 1.0),
        ),
        one(
            "lines 5000–5100 of 10 MB",
            Task::Lines(5000, 5100),
            scene::source(10 * MB),
            (40, 5),
            Bars { floor: None, rival: Some(1.0) },
        ),
        one(
            "100 edits in one call, 100 KB",
            Task::Edits,
            scene::marked(100 * KB, scene::MARKS),
            (40, 5),
            bars(Measure::Time, 2.0, 0.4),
        ),
        one(
            "write 1 MB",
            Task::Write(MB),
            scene::source(MB),
            (40, 5),
            bars(Measure::Time, 1.5, 0.5),
        ),
    ];
    for (size, name, turns) in [(10 * KB, "10 KB", (40, 10)), (MB, "1 MB", (40, 5))] {
        let text = scene::marked(size, 1);
        let line = scene::marked_line(&text);
        for (task, by) in [(Task::Edit, "by string"), (Task::EditLine(line), "by line")] {
            for durability in [Durability::None, Durability::Data, Durability::Full] {
                let promised = task == Task::Edit && durability == Durability::None;
                let bars = match size {
                    _ if !promised => Bars::default(),
                    MB => bars(Measure::Cpu, 2.5, 0.5),
                    _ => bars(Measure::Time, 2.5, 1.0),
                };
                let mut operation = one("", task, text.clone(), turns, bars);
                let kept = format!("{durability:?}").to_lowercase();
                operation.name = format!("edit {name} {by}, durability {kept}");
                operation.durability = durability;
                all.push(operation);
            }
        }
    }
    for (count, name, turns) in [(1000, "1,000", 40), (10_000, "10,000", 10)] {
        for is_cold in [true, false] {
            let how = if is_cold { "cold" } else { "warm" };
            let promised = count == 1000 && !is_cold;
            all.push(Operation {
                name: format!("list {name} files with line counts, {how}"),
                task: Task::List,
                durability: Durability::None,
                files: Files::Many { count, is_cold },
                turns,
                calls: if is_cold { 1 } else { 5 },
                bars: if promised { bars(Measure::Time, 4.0, 1.0) } else { Bars::default() },
            });
        }
    }
    all
}
