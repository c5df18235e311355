//! Counts and averages of the results.

use std::collections::BTreeSet;

use crate::history::Task;
use crate::rankings::Found;

/// Number of bootstrap draws of the commits.
const DRAWS: usize = 10_000;

/// Scores of one ranking for one commit: recall@5, recall@10, block hit@10.
type Scores = [f64; 3];

struct Row {
    repository: String,
    number: usize,
    files: usize,
    plain: Scores,
    ours: Scores,
}

#[derive(Default)]
pub struct Figures {
    rows: Vec<Row>,
}

impl Figures {
    pub fn add(
        &mut self,
        repository: &str,
        number: usize,
        files: usize,
        plain: &[Found],
        ours: &[Found],
        task: &Task,
    ) {
        let repository = repository.to_owned();
        self.rows.push(Row {
            repository,
            number,
            files,
            plain: scores(plain, task),
            ours: scores(ours, task),
        });
    }

    /// Prints a table in Markdown.
    pub fn print(&self) {
        println!(
            "| repository | source files | commits | | plain grep | ours | difference, 95 % |"
        );
        println!("|---|--:|--:|---|--:|--:|--:|");
        let repositories: BTreeSet<&str> =
            self.rows.iter().map(|row| row.repository.as_str()).collect();
        for repository in repositories {
            self.print_group(repository, |row| row.repository == repository);
        }
        self.print_group("even commits", |row| row.number % 2 == 0);
        self.print_group("odd commits", |row| row.number % 2 == 1);
        self.print_group("all", |_| true);
    }

    fn print_group(&self, name: &str, belongs: impl Fn(&Row) -> bool) {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| belongs(row)).collect();
        let least = rows.iter().map(|row| row.files).min().unwrap_or(0);
        let most = rows.iter().map(|row| row.files).max().unwrap_or(0);
        let about =
            [format!("{name} | {least}-{most} | {}", rows.len()), " | | ".into(), " | | ".into()];
        for (kind, measure) in ["recall@5", "recall@10", "block hit@10"].into_iter().enumerate() {
            let pairs: Vec<(f64, f64)> =
                rows.iter().map(|row| (row.plain[kind], row.ours[kind])).collect();
            let differences: Vec<f64> = pairs.iter().map(|(plain, ours)| ours - plain).collect();
            let (low, high) = interval(&differences);
            println!(
                "| {} | {measure} | {:.3} | {:.3} | {:+.3} [{low:+.3}, {high:+.3}] |",
                about[kind],
                mean(pairs.iter().map(|pair| pair.0)),
                mean(pairs.iter().map(|pair| pair.1)),
                mean(differences.iter().copied()),
            );
        }
    }
}

fn scores(found: &[Found], task: &Task) -> Scores {
    let recall = |most: usize| {
        let right =
            found.iter().take(most).filter(|found| task.changed.contains_key(&found.path)).count();
        ratio(right, task.changed.len())
    };
    let hit = found.iter().take(10).any(|found| {
        let changed = task.changed.get(&found.path).into_iter().flatten();
        changed
            .into_iter()
            .any(|range| range.start < found.lines.end && found.lines.start < range.end)
    });
    [recall(5), recall(10), f64::from(u8::from(hit))]
}

#[expect(clippy::cast_precision_loss, reason = "numbers of files")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len();
    values.sum::<f64>() * ratio(1, count)
}

/// Range of the mean in 95 of 100 bootstrap draws: the influence of chance, since every commit is a pair.
fn interval(differences: &[f64]) -> (f64, f64) {
    if differences.is_empty() {
        return (0.0, 0.0);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        differences[usize::try_from(state % differences.len() as u64).unwrap_or(0)]
    };
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| (0..differences.len()).map(|_| draw()).sum::<f64>() * ratio(1, differences.len()))
        .collect();
    means.sort_by(f64::total_cmp);
    (means[DRAWS / 40], means[DRAWS - DRAWS / 40 - 1])
}
