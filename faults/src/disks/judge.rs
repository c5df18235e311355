//! One call during which something failed: whether the answer is what is on the disk, and nothing else is left.

use std::collections::{BTreeMap, BTreeSet};

use super::acts::Act;
use super::fixture::{differences, file, is_litter, notes, told};
use crate::fuse::{Fault, File, Node, Op, Plan, Span, Tree};
use crate::report::Row;
use crate::server::Answer;

/// Why it fails, and the code that a refusal for this reason has.
pub const REASONS: [(i32, &str, i64); 9] = [
    (libc::EIO, "EIO", -32603),
    (libc::ENOSPC, "ENOSPC", -32005),
    (libc::EINTR, "EINTR", 0),
    (libc::EACCES, "EACCES", -32002),
    (libc::EDQUOT, "EDQUOT", -32005),
    (libc::EROFS, "EROFS", -32002),
    (libc::EMFILE, "EMFILE", -32603),
    (libc::ENFILE, "ENFILE", -32603),
    (libc::ESTALE, "ESTALE", -32603),
];

/// One call during which something failed, and what came of it.
pub struct Attempt<'a> {
    pub act: &'a Act,
    pub plan: Plan,
    pub before: &'a Tree,
    pub wanted: &'a Tree,
    /// What was there to do when nothing failed.
    pub clean: &'a [Op],
    pub seen: Vec<Op>,
    pub struck: Vec<Op>,
    pub tree: Tree,
    pub answer: Answer,
}

impl Attempt<'_> {
    pub fn about(&self) -> String {
        let Plan { op, nth, span, fault } = self.plan;
        let op = op.map_or("operation".into(), |op| format!("{op:?}"));
        let fault = match fault {
            Fault::Errno(errno) => reason(errno).0.into(),
            Fault::Done(errno) => format!("done, {}", reason(errno).0),
            Fault::Half | Fault::Nothing => format!("{fault:?}"),
        };
        let struck = &self.struck[..self.struck.len().min(3)];
        format!("{}: {op} {nth} {span:?} {fault} {struck:?}", self.act.name)
    }

    /// Everything that is not as answered.
    pub fn judge(&self, row: &mut Row) {
        let left: Vec<_> = self.tree.keys().filter(|path| is_litter(path)).collect();
        row.check(left.is_empty() || left.len() == 1 && self.may_leave(Op::Unlink), || {
            format!("{}: left behind {left:?}", self.about())
        });
        let mut seen = self.tree.clone();
        seen.retain(|path, _| !is_litter(path));
        if self.answer.is_error() {
            self.judge_refusal(&seen, row);
        } else {
            self.judge_success(&seen, row);
        }
    }

    fn judge_refusal(&self, seen: &Tree, row: &mut Row) {
        let mut seen = seen.clone();
        if self.may_leave(Op::Rmdir) {
            seen.retain(|path, node| self.before.contains_key(path) || *node != Node::Folder);
        }
        row.check(seen == *self.before, || {
            let differences = differences(self.before, &seen);
            format!("{}: refused, and not as before: {differences:?}", self.about())
        });
        let code = self.errno().map(|errno| reason(errno).1);
        row.check(code.is_none() || code == self.answer.code(), || {
            format!("{}: code {:?}: {}", self.about(), self.answer.code(), told(&self.answer))
        });
    }

    fn judge_success(&self, seen: &Tree, row: &mut Row) {
        let told_lost = notes(&self.answer).contains("no permission to keep:");
        let told_unsure = notes(&self.answer).contains("durability unknown");
        let file = |tree: &Tree| match tree.get(self.act.file) {
            Some(Node::File(file)) => file.clone(),
            _ => File { bytes: Vec::new(), ..file("") },
        };
        let (now, then) = (file(seen), file(self.wanted));
        let fits_but_for_what_is_told =
            told_lost && now.bytes == then.bytes && now.mode & !then.mode == 0;
        row.check(*seen == *self.wanted || fits_but_for_what_is_told, || {
            let differences = differences(self.wanted, seen);
            format!("{}: done, and not as wanted: {differences:?}", self.about())
        });
        row.check(!told_lost || self.errno() != Some(libc::EINTR), || {
            format!("{}: lost by an interruption: {}", self.about(), told(&self.answer))
        });
        let synced = |ops: &[Op]| ops.iter().filter(|op| **op == Op::Fsyncdir).count();
        let unsynced = synced(&self.seen) - synced(&self.struck) < synced(self.clean);
        row.check(unsynced == told_unsure, || {
            format!("{}: not synced: {unsynced}, told so: {told_unsure}", self.about())
        });
    }

    /// Whether what cleans up was itself made to fail.
    fn may_leave(&self, op: Op) -> bool {
        let failed = |op| self.struck.contains(&op);
        failed(op)
            || self.plan.span == Span::FromThenOn && failed(Op::Lookup)
            // The name is looked up before it is removed.
            || op == Op::Unlink && self.act.is_create() && failed(Op::Lookup) && !self.answer.is_error()
    }

    fn errno(&self) -> Option<i32> {
        match self.plan.fault {
            Fault::Errno(errno) | Fault::Done(errno) => Some(errno),
            Fault::Half | Fault::Nothing => None,
        }
    }
}

/// How it went, in figures.
#[derive(Default)]
pub struct Tally {
    pub done: usize,
    /// Of these, told that some attribute is lost.
    lossy: usize,
    /// Of these, told that the folder was not synced.
    unsure: usize,
    pub refused: BTreeMap<i64, usize>,
    litter: usize,
    pub kinds: BTreeSet<Op>,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { done, lossy, unsure, refused, litter, kinds } = self;
        write!(f, "{} kinds of operations; {done} done", kinds.len())?;
        if lossy + unsure > 0 {
            write!(f, " ({lossy} told an attribute lost, {unsure} durability unknown)")?;
        }
        write!(f, ", {} refused", refused.values().sum::<usize>())?;
        if !refused.is_empty() {
            let codes: Vec<_> =
                refused.iter().map(|(code, times)| format!("{times} × {code}")).collect();
            write!(f, " ({})", codes.join(", "))?;
        }
        write!(f, ", {litter} leftovers until the next start")
    }
}

impl Tally {
    pub fn add(&mut self, attempt: &Attempt<'_>) {
        let Attempt { answer, tree, .. } = attempt;
        if answer.is_error() {
            *self.refused.entry(answer.code().unwrap_or_default()).or_default() += 1;
        } else {
            self.done += 1;
            self.lossy += usize::from(notes(answer).contains("no permission to keep:"));
            self.unsure += usize::from(notes(answer).contains("durability unknown"));
        }
        self.litter += usize::from(tree.keys().any(|path| is_litter(path)));
    }
}

/// A reason's name, and its code.
fn reason(errno: i32) -> (&'static str, i64) {
    let found = REASONS.iter().find(|(known, ..)| *known == errno);
    found.map_or(("another reason", -32603), |&(_, name, code)| (name, code))
}
