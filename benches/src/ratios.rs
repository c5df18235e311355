//! One operation, as it is told: everybody, ours against the best rival, and what was promised.

use crate::contenders::Kind;
use crate::figures::{Figures, short};
use crate::operations::{Bars, Measure};
use crate::report::{Bar, Report, failure};
use crate::turns::Results;

/// The floor is nearly as fast as a loop without a server around it.
const FLOOR_TO_RAW: f64 = 1.2;

pub fn tell(name: &str, results: &Results, bars: Bars, report: &mut Report) {
    report.title(name);
    tell_everybody(name, results, report);
    for (kind, result) in results {
        if let (false, Err(error)) = (kind.is_rival(), result) {
            report.fault(&format!("{name}: {}", kind.name()), error);
        }
    }
    let Some(ours) = done(results, Kind::Ours) else { return };
    if let Some(before) = done(results, Kind::Before) {
        report.say(&format!(
            "\nfile-editor against the build before: {}× the time, {}× the CPU.",
            short(ours.median() / before.median()),
            short(ours.cpu() / before.cpu()),
        ));
    }
    if let (Some(time), Some(cpu)) =
        (best_rival(results, Measure::Time), best_rival(results, Measure::Cpu))
    {
        report.say(&format!(
            "\nfile-editor against the best rival: {}× the time of {}, {}× the CPU of {}.",
            short(ours.median() / time.1.median()),
            time.0.name(),
            short(ours.cpu() / cpu.1.cpu()),
            cpu.0.name(),
        ));
    }
    if let (Some((measure, most)), Some(floor)) = (bars.floor, done(results, Kind::Floor)) {
        report.bar(promised(name, (Kind::Floor, floor), measure, ours, most));
    }
    if let (Some(most), Some(rival)) = (bars.rival, best_rival(results, Measure::Time)) {
        report.bar(promised(name, rival, Measure::Time, ours, most));
    }
    if let (Some(raw), Some(floor)) = (done(results, Kind::Raw), done(results, Kind::Floor))
        && name.contains("1 MB")
    {
        let name = format!("{name}: the floor");
        report.bar(promised(&name, (Kind::Raw, raw), Measure::Cpu, floor, FLOOR_TO_RAW));
    }
}

fn tell_everybody(name: &str, results: &Results, report: &mut Report) {
    let floor = done(results, Kind::Floor).cloned().unwrap_or_default();
    let row = |(kind, result): (&Kind, &std::io::Result<Figures>)| {
        let mut row = vec![kind.name().to_owned()];
        match result {
            Ok(figures) => {
                let (median, cpu) = (figures.median(), figures.cpu());
                let (by_time, by_cpu) = (median / floor.median(), cpu / floor.cpu());
                row.extend([median, figures.quantile(0.95), cpu, by_time, by_cpu].map(short));
            }
            Err(error) => row.push(failure(error)),
        }
        row
    };
    let rows: Vec<_> = results.iter().map(row).collect();
    let head = ["", "median ms", "p95 ms", "CPU ms a call", "× floor", "CPU × floor"];
    report.table(&head, &rows);
    for (kind, result) in results {
        if let Ok(figures) = result {
            report.keep("operations", &format!("{name}: {}", kind.name()), figures.to_json());
        }
    }
}

fn done(results: &Results, kind: Kind) -> Option<&Figures> {
    results.get(&kind)?.as_ref().ok()
}

fn best_rival(results: &Results, measure: Measure) -> Option<(Kind, &Figures)> {
    let rivals = results.keys().filter(|kind| kind.is_rival());
    rivals
        .filter_map(|kind| Some((*kind, done(results, *kind)?)))
        .min_by(|one, other| measure.of(one.1).total_cmp(&measure.of(other.1)))
}

fn promised(
    what: &str,
    (other, theirs): (Kind, &Figures),
    measure: Measure,
    figures: &Figures,
    most: f64,
) -> Bar {
    let ratio = measure.of(figures) / measure.of(theirs);
    let by = if measure == Measure::Cpu { " CPU" } else { "" };
    Bar {
        what: what.into(),
        against: other.name().into(),
        promised: format!("at most {most}×{by}"),
        found: format!("{}×", short(ratio)),
        holds: ratio <= most,
    }
}
