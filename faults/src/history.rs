//! Sixteen servers append to one file and read it, and many are killed on the way. What each of them was told, and when,
//! must fit one order in which the appends took effect one by one.
//!
//! An append-only list makes this easy to decide: the file at the end is the order, and all else is compared with it, in
//! one pass. A checker that finds nothing proves nothing, so it is also put to a server whose lock was taken away.

mod unlocked;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::chance::Chance;
use crate::folder::{in_memory, names, on_disk};
use crate::races::{PATIENT, is_stall};
use crate::report::{Row, Scale, grouped};
use crate::server::{Answer, HANG, NoAnswer, Server, command};
use unlocked::without_flock;

const FILE: &str = "list.txt";
const WRITERS: usize = 16;

/// Since the experiment began.
type Moment = Duration;

/// A token that was, or may have been, appended.
#[derive(Clone, Debug)]
struct Append {
    token: usize,
    invoked: Moment,
    /// Answered, or its server known to be dead: nothing happens after this.
    completed: Moment,
    fate: Fate,
}

/// What its client was told about an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Acknowledged,
    /// Nothing was written.
    Refused,
    /// Nothing, because the server was killed.
    Unknown,
}

/// What a read saw.
#[derive(Clone, Debug)]
struct Read {
    invoked: Moment,
    completed: Moment,
    tokens: Vec<usize>,
}

/// Everything that was done to the file, and what it was in the end.
#[derive(Clone, Debug, Default)]
struct History {
    appends: Vec<Append>,
    reads: Vec<Read>,
    last: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Acknowledged, but not in the file.
    Lost,
    /// Refused, but in the file.
    Undead,
    /// In the file twice.
    Doubled,
    /// In the file, and nobody appended it.
    Foreign,
    /// Before another one that was completed before it was invoked.
    Order,
    /// A read that the file never was on its way to what it is.
    NotAPrefix,
    /// A read without something that was completed before.
    Stale,
    /// A read of something that was not invoked before it was over.
    Future,
    /// A read of less than an earlier read had seen.
    Backwards,
}

#[derive(Debug)]
struct Violation {
    kind: Kind,
    about: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.about)
    }
}

impl History {
    /// Every violation, in time that grows with what was seen and no faster.
    fn check(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut note = |kind, about: String| found.push(Violation { kind, about });
        let appends: BTreeMap<usize, &Append> =
            self.appends.iter().map(|append| (append.token, append)).collect();
        let mut present = HashSet::new();
        for token in &self.last {
            if !appends.contains_key(token) {
                note(Kind::Foreign, format!("{token}"));
            }
            if !present.insert(token) {
                note(Kind::Doubled, format!("{token}"));
            }
        }
        for append in &self.appends {
            match (append.fate, present.contains(&append.token)) {
                (Fate::Acknowledged, false) => note(Kind::Lost, format!("{append:?}")),
                (Fate::Refused, true) => note(Kind::Undead, format!("{append:?}")),
                _ => {}
            }
        }

        // `earliest[n]`: the first completion of all that comes at or after place n. `latest[n]`: the last invocation of
        // all that comes before it.
        let places: Vec<_> = self.last.iter().map(|token| appends.get(token)).collect();
        let mut earliest = vec![Moment::MAX; places.len() + 1];
        let mut latest = vec![Moment::ZERO; places.len() + 1];
        for (place, append) in places.iter().enumerate().rev() {
            let completed = append.map_or(Moment::MAX, |append| append.completed);
            earliest[place] = completed.min(earliest[place + 1]);
        }
        for (place, append) in places.iter().enumerate() {
            let invoked = append.map_or(Moment::ZERO, |append| append.invoked);
            latest[place + 1] = invoked.max(latest[place]);
            if earliest[place + 1] < invoked {
                note(Kind::Order, format!("{append:?} before one of {:?}", earliest[place + 1]));
            }
        }

        for read in &self.reads {
            let Read { invoked, completed, tokens } = read;
            let shown = || format!("{} tokens, {invoked:?} to {completed:?}", tokens.len());
            if !self.last.starts_with(tokens) {
                note(Kind::NotAPrefix, shown());
                continue;
            }
            if earliest[tokens.len()] < *invoked {
                note(Kind::Stale, shown());
            }
            if latest[tokens.len()] > *completed {
                note(Kind::Future, shown());
            }
        }
        let mut completions: Vec<_> =
            self.reads.iter().map(|read| (read.completed, read.tokens.len())).collect();
        let mut reads: Vec<_> =
            self.reads.iter().map(|read| (read.invoked, read.tokens.len())).collect();
        completions.sort_unstable();
        reads.sort_unstable();
        let (mut completions, mut seen) = (completions.into_iter().peekable(), 0);
        for (invoked, length) in reads {
            while let Some((_, before)) = completions.next_if(|(completed, _)| *completed < invoked)
            {
                seen = seen.max(before);
            }
            if length < seen {
                note(Kind::Backwards, format!("{length} tokens at {invoked:?}, {seen} before"));
            }
        }
        found
    }
}

/// A token's line. Whatever is cut off it shows.
fn line(token: usize) -> String {
    format!("<{token:06}>")
}

/// The tokens of a text; a line that is none is torn.
fn tokens(text: &str) -> Result<Vec<usize>, String> {
    let token = |line: &str| {
        let digits = line.strip_prefix('<')?.strip_suffix(">\n")?;
        (digits.len() == 6).then(|| digits.parse().ok()).flatten()
    };
    let parse = |line: &str| token(line).ok_or_else(|| format!("a torn line: {line:?}"));
    text.split_inclusive('\n').map(parse).collect()
}

pub fn run(scale: Scale) -> Vec<Row> {
    vec![
        with_kills("in memory", &in_memory(), scale.of(1500, 10_000)),
        with_kills("on the disk", &on_disk(), scale.of(500, 3000)),
        control(scale.of(3, 10)),
    ]
}

/// Whether the servers' lock does anything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    Working,
    /// Every `flock` is answered with success and is not done.
    TakenAway,
}

/// What is to be done.
struct Plan {
    operations: usize,
    /// Of a hundred operations.
    killed: usize,
    lock: Lock,
    flags: &'static [&'static str],
}

/// When a server is killed.
enum Kill {
    Never,
    /// At any moment of a call, from before it is read to after it is answered.
    After(Duration),
    /// Between the last look at the file and the answer, which is too short to be hit by chance.
    WhenPublishing,
}

/// What was done, besides the history.
#[derive(Default)]
struct Outcome {
    history: History,
    killed: usize,
    /// Killed too late: the answer was there.
    answered_all_the_same: usize,
    /// Appends that were refused after the disk stood still.
    stalls: usize,
    /// Files that killed servers left, and the most of them at once.
    leftovers: HashSet<String>,
    leftovers_at_once: usize,
    bad: Vec<String>,
}

/// Enough for many losses.
const CONTROL: usize = 3000;

fn with_kills(place: &str, folder: &TempDir, operations: usize) -> Row {
    let plan =
        Plan { operations, killed: 15, lock: Lock::Working, flags: &["--tools=all", PATIENT] };
    let since = Instant::now();
    let mut outcome = perform(folder.path(), &plan);
    let took = since.elapsed();
    let appends = &outcome.history.appends;
    let unanswered: HashSet<_> = appends
        .iter()
        .filter(|append| append.fate == Fate::Unknown)
        .map(|append| append.token)
        .collect();

    // One more use of the folder, and everything that killed servers left is gone.
    let mut server = Server::start(folder.path(), plan.flags);
    let invoked = since.elapsed();
    let answer = server.call("edit_file", &append(operations));
    let is_done = answer.as_ref().is_ok_and(|answer| !answer.is_error());
    let completed = since.elapsed();
    drop(server);
    let appends = appends.len();
    let fate = if is_done { Fate::Acknowledged } else { Fate::Unknown };
    outcome.history.appends.push(Append { token: operations, invoked, completed, fate });

    let mut row =
        Row::new(format!("{WRITERS} writers, each a server, 15 % of the calls killed, {place}"));
    row.tries = operations;
    row.bad = outcome.bad;
    row.check(is_done, || format!("the next edit: {answer:?}"));
    let left = names(folder.path());
    row.check(left == [FILE], || format!("left over: {left:?}"));
    let in_the_end = left.len() - 1;
    match tokens(&fs::read_to_string(folder.path().join(FILE)).unwrap()) {
        Ok(last) => outcome.history.last = last,
        Err(torn) => row.bad.push(torn),
    }
    let violations = outcome.history.check();
    row.bad.extend(violations.iter().map(Violation::to_string));
    let present = outcome.history.last.iter().filter(|token| unanswered.contains(token)).count();
    row.found(format!(
        "{} appends, {} reads, {} killed ({} of the {} appends without an answer are there), \
         {} answered just before, {} refused after a stall of the disk, {} violations, {} files left by kills, {} at once at most, {in_the_end} in the end, {:.0?}",
        grouped(appends),
        grouped(outcome.history.reads.len()),
        grouped(outcome.killed),
        grouped(present),
        grouped(unanswered.len()),
        outcome.answered_all_the_same,
        outcome.stalls,
        violations.len(),
        outcome.leftovers.len(),
        outcome.leftovers_at_once,
        took,
    ))
}

/// Without the lock the same must be found out, each time; with it there is nothing to find.
fn control(runs: usize) -> Row {
    let mut row = Row::new("control: the same checker, the server's lock taken away");
    row.tries = runs;
    let with_lock = hammer(Lock::Working, &mut row);
    row.check(with_lock.is_empty(), || format!("with its lock: {with_lock:?}"));
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut counts = Vec::new();
    for run in 0..runs {
        // Chance may spare one; a checker that is blind sees nothing in any.
        let violations = (0..25).map(|_| hammer(Lock::TakenAway, &mut row));
        let violations = violations.into_iter().find(|violations| !violations.is_empty());
        let violations = violations.unwrap_or_default();
        row.check(!violations.is_empty(), || format!("run {run}: the checker sees nothing"));
        counts.push(violations.len());
        for violation in violations {
            *kinds.entry(violation.kind).or_default() += 1;
        }
    }
    let (least, most) = (counts.iter().min(), counts.iter().max());
    let (least, most) = (least.copied().unwrap_or(0), most.copied().unwrap_or(0));
    row.found(format!(
        "{least} to {most} violations in {} operations: {kinds:?}; {} with the lock",
        grouped(CONTROL),
        with_lock.len(),
    ))
}

/// All writers at once, without pauses, syncs or kills: the violations.
fn hammer(lock: Lock, row: &mut Row) -> Vec<Violation> {
    let folder = on_disk();
    let flags = &["--tools=all", PATIENT, "--durability=none"];
    let plan = Plan { operations: CONTROL, killed: 0, lock, flags };
    let mut outcome = perform(folder.path(), &plan);
    row.bad.extend(outcome.bad);
    match tokens(&fs::read_to_string(folder.path().join(FILE)).unwrap()) {
        Ok(last) => outcome.history.last = last,
        Err(torn) => row.bad.push(torn),
    }
    outcome.history.check()
}

fn append(token: usize) -> serde_json::Value {
    json!({ "name": FILE, "append": line(token) })
}

fn start(folder: &Path, plan: &Plan) -> Server {
    let mut command = command(folder, plan.flags);
    command.arg("--transport=stdio");
    if plan.lock == Lock::TakenAway {
        without_flock(&mut command);
    }
    let mut server = Server::spawn(&mut command);
    server.ready();
    server
}

/// What all writers share.
struct Stage<'p> {
    folder: &'p Path,
    plan: &'p Plan,
    since: Instant,
    next: AtomicUsize,
    killed: AtomicUsize,
    /// How long appends and reads take, in nanoseconds: a mean in which the last ones count most.
    typical: [AtomicU64; 2],
    dead: Mutex<HashSet<String>>,
    aim: Mutex<()>,
}

fn perform(folder: &Path, plan: &Plan) -> Outcome {
    let stage = Stage {
        folder,
        plan,
        since: Instant::now(),
        next: AtomicUsize::new(0),
        killed: AtomicUsize::new(0),
        typical: [AtomicU64::new(5_000_000), AtomicU64::new(1_000_000)],
        dead: Mutex::default(),
        aim: Mutex::default(),
    };
    let mut all = Outcome::default();
    thread::scope(|scope| {
        let stage = &stage;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || stage.write(writer))).collect();
        for writer in writers {
            let one = writer.join().unwrap();
            all.history.appends.extend(one.history.appends);
            all.history.reads.extend(one.history.reads);
            all.killed += one.killed;
            all.answered_all_the_same += one.answered_all_the_same;
            all.stalls += one.stalls;
            all.leftovers.extend(one.leftovers);
            all.leftovers_at_once = all.leftovers_at_once.max(one.leftovers_at_once);
            all.bad.extend(one.bad);
        }
    });
    all
}

impl Stage<'_> {
    /// One writer's life: appends, and a read for every three of them.
    fn write(&self, writer: usize) -> Outcome {
        let mut outcome = Outcome::default();
        let mut chance = Chance::new(writer as u64);
        let mut server = start(self.folder, self.plan);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.plan.operations {
                return outcome;
            }
            let reads = chance.below(4) == 0;
            let is_due = self.killed.load(Ordering::Relaxed) * 100 < self.plan.killed * number;
            let typical = &self.typical[usize::from(reads)];
            let twice = Duration::from_nanos(typical.load(Ordering::Relaxed) * 2);
            // Who waits for the publication needs a processor for it: one at a time.
            let aim = (is_due && chance.below(2) == 0).then(|| self.aim.try_lock().ok()).flatten();
            let moment = match &aim {
                _ if !is_due => Kill::Never,
                Some(_) => Kill::WhenPublishing,
                None => Kill::After(chance.duration(twice)),
            };

            let invoked = self.since.elapsed();
            let sent = if reads {
                server.send("read_text_file", &json!({ "path": self.folder.join(FILE) }))
            } else {
                server.send("edit_file", &append(number))
            };
            let mut answer = match moment {
                _ if sent.is_err() => Err(NoAnswer::Gone),
                Kill::Never => server.receive(HANG),
                Kill::After(patience) => server.receive(patience),
                Kill::WhenPublishing => self.await_publishing(&mut server),
            };
            drop(aim);
            let is_killed = is_due && matches!(answer, Err(NoAnswer::Late));
            if is_killed {
                server.kill();
                // It may have answered in its last moment.
                answer = server.receive(HANG);
                outcome.answered_all_the_same += usize::from(answer.is_ok());
            }
            let completed = self.since.elapsed();
            if is_killed {
                outcome.killed += 1;
                self.killed.fetch_add(1, Ordering::Relaxed);
                self.look_for_leftovers(server.pid(), &mut outcome);
                server = start(self.folder, self.plan);
            } else {
                let took = completed.saturating_sub(invoked).as_nanos();
                let took = u64::try_from(took).unwrap_or(u64::MAX);
                let mean = typical.load(Ordering::Relaxed);
                typical.store(mean - mean / 16 + took / 16, Ordering::Relaxed);
            }

            let answer = match answer {
                Ok(answer) => Some(answer),
                Err(NoAnswer::Gone) if is_killed => None,
                Err(why) => {
                    outcome.bad.push(format!("operation {number}: {why:?}"));
                    return outcome;
                }
            };
            if !reads {
                // Without its lock a server cannot undo an exchange for certain, and says so.
                let is_unconfirmed = |answer: &Answer| {
                    self.plan.lock == Lock::TakenAway
                        && answer.text().contains("The outcome is unknown")
                };
                let answer = answer.filter(|answer| !is_unconfirmed(answer));
                let fate = match &answer {
                    None => Fate::Unknown,
                    Some(answer) if answer.is_error() => Fate::Refused,
                    Some(_) => Fate::Acknowledged,
                };
                outcome.history.appends.push(Append { token: number, invoked, completed, fate });
                if let Some(refused) = answer.filter(Answer::is_error) {
                    let is_stall = is_stall(&refused, completed.saturating_sub(invoked));
                    outcome.stalls += usize::from(is_stall);
                    if !is_stall || outcome.stalls > 3 {
                        outcome.bad.push(format!("append {number}: {}", refused.text()));
                        return outcome;
                    }
                }
            } else if let Some(answer) = answer {
                match seen(&answer) {
                    Ok(tokens) => outcome.history.reads.push(Read { invoked, completed, tokens }),
                    Err(why) => outcome.bad.push(format!("read {number}: {why}")),
                }
            }
        }
    }

    /// Waits for the answer, or until the new version has a name: then it is all but published.
    fn await_publishing(&self, server: &mut Server) -> Result<Answer, NoAnswer> {
        let until = Instant::now() + HANG;
        let temporary = format!(".fe-{}-", server.pid());
        loop {
            let answer = server.receive(Duration::ZERO);
            let is_named = || names(self.folder).iter().any(|name| name.starts_with(&temporary));
            if !matches!(answer, Err(NoAnswer::Late)) || is_named() || Instant::now() > until {
                return answer;
            }
        }
    }

    /// What killed servers have left in the folder at this moment.
    fn look_for_leftovers(&self, killed: u32, outcome: &mut Outcome) {
        let mut dead = self.dead.lock().unwrap();
        dead.insert(killed.to_string());
        let maker = |name: &String| name.strip_prefix(".fe-")?.split('-').next().map(String::from);
        let is_left = |name: &String| maker(name).is_some_and(|maker| dead.contains(&maker));
        let left: Vec<_> = names(self.folder).into_iter().filter(is_left).collect();
        outcome.leftovers_at_once = outcome.leftovers_at_once.max(left.len());
        outcome.leftovers.extend(left);
    }
}

/// The tokens of a read; a missing file has none.
fn seen(answer: &Answer) -> Result<Vec<usize>, String> {
    match answer.code() {
        _ if !answer.is_error() => {
            tokens(answer.0["result"]["content"][0]["text"].as_str().unwrap_or_default())
        }
        Some(-32001) => Ok(Vec::new()),
        _ => Err(format!("refused: {}", answer.text())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three appends one after another, a killed one that took effect, one that did not, and a read after each.
    fn good() -> History {
        let at = Duration::from_millis;
        let append = |token, invoked, fate| {
            let (invoked, completed) = (at(invoked), at(invoked + 5));
            Append { token, invoked, completed, fate }
        };
        let read = |invoked, tokens: &[usize]| {
            let (invoked, completed) = (at(invoked), at(invoked + 5));
            Read { invoked, completed, tokens: tokens.to_vec() }
        };
        History {
            appends: vec![
                append(1, 10, Fate::Acknowledged),
                append(2, 30, Fate::Acknowledged),
                append(3, 50, Fate::Unknown),
                append(4, 70, Fate::Unknown),
                append(5, 90, Fate::Acknowledged),
            ],
            reads: vec![
                read(0, &[]),
                read(20, &[1]),
                read(40, &[1, 2]),
                read(80, &[1, 2, 3]),
                read(100, &[1, 2, 3, 5]),
            ],
            last: vec![1, 2, 3, 5],
        }
    }

    /// The checker names what is wrong after this.
    #[track_caller]
    fn check(expected: &[Kind], spoil: impl FnOnce(&mut History)) {
        let mut history = good();
        spoil(&mut history);
        let mut kinds: Vec<_> = history.check().iter().map(|violation| violation.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds, expected, "{history:?}");
    }

    #[test]
    fn a_good_history_has_no_violations() {
        check(&[], |_| {});
    }

    #[test]
    fn calls_at_the_same_time_may_come_in_any_order() {
        check(&[], |history| {
            history.appends[0].completed = history.appends[1].completed;
            history.last.swap(0, 1);
            history.reads[1].tokens = vec![2];
            history.reads[1].completed = history.appends[1].completed;
            history.reads[2].tokens = vec![2, 1];
            history.reads[3].tokens = vec![2, 1, 3];
            history.reads[4].tokens = vec![2, 1, 3, 5];
        });
    }

    #[test]
    fn a_killed_append_may_be_missing() {
        check(&[], |history| {
            history.last.remove(2);
            history.reads[3].tokens.remove(2);
            history.reads[4].tokens.remove(2);
        });
    }

    #[test]
    fn an_acknowledged_append_that_is_gone_is_lost() {
        check(&[Kind::Lost], |history| {
            history.last.pop();
            history.reads.pop();
        });
    }

    #[test]
    fn what_is_lost_after_it_was_read_was_read_in_vain() {
        check(&[Kind::Lost, Kind::NotAPrefix], |history| {
            history.last.remove(1);
        });
    }

    #[test]
    fn an_append_that_is_there_twice_is_doubled() {
        check(&[Kind::Doubled], |history| {
            history.appends[4].invoked = Duration::ZERO;
            history.reads.pop();
            history.last.push(5);
        });
        // A killed one as well.
        check(&[Kind::Doubled], |history| {
            history.appends[2].completed = Duration::from_secs(1);
            history.last.push(3);
        });
    }

    #[test]
    fn what_was_refused_must_not_be_there() {
        check(&[Kind::Undead], |history| history.appends[2].fate = Fate::Refused);
        check(&[], |history| history.appends[3].fate = Fate::Refused);
    }

    #[test]
    fn what_nobody_appended_is_foreign() {
        check(&[Kind::Foreign], |history| history.last.push(77));
    }

    #[test]
    fn two_that_are_swapped_are_out_of_order() {
        check(&[Kind::Order], |history| {
            history.last.swap(0, 1);
            history.reads.clear();
        });
    }

    #[test]
    fn a_killed_append_that_shows_up_after_its_server_is_dead_is_out_of_order() {
        check(&[Kind::Order], |history| {
            history.last = vec![1, 2, 5, 4];
            history.appends.remove(2);
            history.reads.truncate(3);
        });
    }

    #[test]
    fn a_read_of_another_order_is_no_prefix() {
        check(&[Kind::NotAPrefix], |history| history.reads[3].tokens.swap(0, 1));
    }

    #[test]
    fn a_read_that_misses_an_acknowledged_append_is_stale() {
        check(&[Kind::Stale], |history| {
            history.reads[2].tokens.pop();
        });
    }

    #[test]
    fn a_read_of_what_was_not_yet_invoked_sees_the_future() {
        check(&[Kind::Future], |history| history.reads[1].tokens.push(2));
    }

    #[test]
    fn a_read_of_less_than_an_earlier_read_goes_backwards() {
        check(&[Kind::Backwards], |history| {
            // Not yet completed, and seen by one of two reads.
            history.appends[1].completed = Duration::from_millis(65);
            history.reads[3].invoked = Duration::from_millis(50);
            history.reads[3].completed = Duration::from_millis(60);
            history.reads[3].tokens = vec![1];
        });
    }

    #[test]
    fn torn_lines_are_noticed() {
        assert_eq!(tokens("<000001>\n<000002>\n"), Ok(vec![1, 2]));
        assert_eq!(tokens(""), Ok(Vec::new()));
        for torn in ["<000001>", "<000001>\n<0000", "<00001>\n", "000001>\n", "\n", "<000001>\r\n"]
        {
            assert!(tokens(torn).is_err(), "{torn:?}");
        }
    }
}
