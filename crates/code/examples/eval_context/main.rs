//! Measures the ranking of files on the history of real repositories: `cargo xtask eval context`.
//!
//! A commit's subject is the question, its parent's tree is what is searched, and the source files that it modified are
//! the answer. A plain grep is ranked on the same questions: by how many of the words a file contains, then by how
//! often.

#![allow(clippy::print_stdout, reason = "a command talks to its user")]

mod figures;
mod history;
mod rankings;

use std::error::Error;

use figures::Figures;
use history::History;

type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "eval_context [--commits=<number>] [--sources] [--details] --git <folder>...";

fn main() -> Outcome<()> {
    let mut commits = 80;
    let mut details = false;
    let mut only_sources = false;
    let mut folders = Vec::new();
    for argument in std::env::args().skip(1) {
        if let Some(number) = argument.strip_prefix("--commits=") {
            commits = number.parse()?;
        } else if argument == "--details" {
            details = true;
        } else if argument == "--sources" {
            only_sources = true;
        } else if argument.starts_with('-') && argument != "--git" {
            return Err(USAGE.into());
        } else if argument != "--git" {
            folders.push(argument);
        }
    }
    if folders.is_empty() {
        return Err(USAGE.into());
    }

    let mut figures = Figures::default();
    for folder in &folders {
        let mut history = History::open(folder)?;
        let tasks = history.tasks(commits)?;
        for (number, task) in tasks.iter().enumerate() {
            let tree = history.tree(&task.parent, only_sources)?;
            let plain = rankings::plain(&task.subject, &tree);
            let ours = rankings::ours(&task.subject, &tree);
            if details {
                println!("{} {:?}", task.subject, task.changed.keys().collect::<Vec<_>>());
                println!("    {:?}", ours.iter().map(|found| &found.path).collect::<Vec<_>>());
            }
            figures.add(history.name(), number, tree.len(), &plain, &ours, task);
        }
    }
    figures.print();
    Ok(())
}
