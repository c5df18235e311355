//! Periods in which Codex ran commands and patches of its own, which change files on disk without the editor.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// Tolerance of times: file systems have another clock, and Codex's events come a little before or after a command
/// runs.
const MARGIN: Duration = Duration::from_secs(1);

/// Limit of the recorded periods.
const PERIODS_MAX: usize = 1000;

/// Periods in which commands or patches ran in a session.
#[derive(Debug, Default)]
pub struct CommandPeriods(Mutex<Periods>);

/// Guard of a running command or patch, which ends when this is dropped.
#[derive(Debug)]
#[must_use = "it ends when this is dropped"]
pub struct RunningCommand(Arc<CommandPeriods>);

/// Writer of a file on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// A command or patch was, or may have been, running at that time.
    Command,
    Unknown,
}

#[derive(Debug, Default)]
struct Periods {
    /// Number of running commands, and the time since when there has been one.
    running: usize,
    since: Option<SystemTime>,
    /// First and last moment of each period, in order.
    past: Vec<(SystemTime, SystemTime)>,
}

impl CommandPeriods {
    /// Records the start of a command or patch.
    pub fn start(self: &Arc<Self>) -> RunningCommand {
        self.periods().start(SystemTime::now());
        RunningCommand(Arc::clone(self))
    }

    /// Returns who probably wrote a file at that time.
    pub(super) fn writer_at(&self, time: SystemTime) -> Writer {
        if self.periods().include(time) { Writer::Command } else { Writer::Unknown }
    }

    fn periods(&self) -> MutexGuard<'_, Periods> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.0.periods().end(SystemTime::now());
    }
}

impl Periods {
    fn start(&mut self, now: SystemTime) {
        self.running += 1;
        self.since.get_or_insert(now);
    }

    fn end(&mut self, now: SystemTime) {
        self.running = self.running.saturating_sub(1);
        if self.running > 0 {
            return;
        }
        let Some(since) = self.since.take() else { return };
        match self.past.last_mut() {
            Some((_, last)) if since <= *last + MARGIN => *last = now.max(*last),
            _ => self.past.push((since, now)),
        }
        if self.past.len() > PERIODS_MAX {
            self.past.remove(0);
        }
    }

    fn include(&self, time: SystemTime) -> bool {
        let has_started = |since: SystemTime| since <= time + MARGIN;
        let is_past =
            |&(since, last): &(SystemTime, SystemTime)| has_started(since) && time <= last + MARGIN;
        self.since.is_some_and(has_started) || self.past.iter().rev().any(is_past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn periods_overlap_and_end_with_the_last() {
        let mut periods = Periods::default();
        assert!(!periods.include(at(100)));
        periods.start(at(100));
        periods.start(at(110));
        periods.end(at(120));
        let covered = |periods: &Periods| {
            (90..=150).filter(|&second| periods.include(at(second))).collect::<Vec<_>>()
        };
        assert_eq!(covered(&periods), (99..=150).collect::<Vec<_>>(), "one still runs");
        periods.end(at(130));
        assert_eq!(covered(&periods), (99..=131).collect::<Vec<_>>());
        periods.start(at(140));
        periods.end(at(141));
        let expected: Vec<_> = (99..=131).chain(139..=142).collect();
        assert_eq!(covered(&periods), expected);
    }

    #[test]
    fn periods_are_bounded_and_neighbours_are_one() {
        let mut periods = Periods::default();
        for second in 0..3000 {
            periods.start(at(second));
            periods.end(at(second));
        }
        assert_eq!(periods.past.len(), 1);
        for second in 0..3000 {
            periods.start(at(10_000 + 10 * second));
            periods.end(at(10_000 + 10 * second));
        }
        assert_eq!(periods.past.len(), PERIODS_MAX);
        assert!(periods.include(at(10_000 + 10 * 2999)), "the latest is there");
    }

    #[test]
    fn a_guard_ends_the_period_it_started() {
        let periods = Arc::new(CommandPeriods::default());
        let (one, other) = (periods.start(), periods.start());
        let later = SystemTime::now() + Duration::from_hours(1);
        drop(one);
        assert_eq!(periods.writer_at(later), Writer::Command, "the other still runs");
        drop(other);
        assert_eq!(periods.writer_at(later), Writer::Unknown);
        assert_eq!(periods.writer_at(SystemTime::now()), Writer::Command);
    }
}
