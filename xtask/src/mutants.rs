//! `cargo xtask mutants`: does any test notice if the code does something else? `cargo mutants` changes it in one place
//! after the other and runs the tests.
//!
//! That takes hours. What became of each is kept, so that a run can be cut off and gone on with, and that next time only
//! those are tried whose source has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::dist::archive::sha256;
use crate::walls::without_tests;
use crate::{Outcome, cargo, report, root, target_folder};

/// What is mutated, and what has to notice.
struct Subject {
    name: &'static str,
    /// Sources that are no part of the product, or not for this platform.
    left_out: &'static [&'static str],
    /// The same program, whatever is tried: names of mutants, as a regular expression.
    equal: Option<&'static str>,
    /// Tests of other packages, for those that the crate's own do not notice: they take longer.
    beyond: Option<Beyond>,
}

struct Beyond {
    package: &'static str,
    /// Modules of its tests.
    modules: &'static [&'static str],
}

const SUBJECTS: [Subject; 3] = [
    Subject { name: "text", left_out: &["**/by_line/model.rs"], equal: None, beyond: None },
    Subject {
        name: "files",
        left_out: &["**/faulty_store.rs", "**/memory.rs", "**/windows/**"],
        // What is joined so are flags, which have no bit in common.
        equal: Some(r"replace \| with \^"),
        beyond: None,
    },
    Subject {
        name: "tools",
        left_out: &[],
        equal: None,
        beyond: Some(Beyond {
            package: "file-editor",
            modules: &[
                "code_context",
                "code_tools",
                "confirm",
                "contract",
                "generation",
                "protocol",
                "resources",
                "text_tools",
                "what_the_model_sees",
                "wire",
            ],
        }),
    },
];

/// Which tests are run first, and how long one may take.
const ORDER: &str = "xtask/mutants.toml";

/// What became of the mutants of each source: a letter for each, in the order of the list, behind a digest of the source.
const KNOWN: &str = "xtask/mutants.txt";

/// The mutants that no test notices, with the reason why each may survive.
const MISSED: &str = "xtask/missed_mutants.md";

const MISSED_HEAD: &str = "\
# Missed mutants

Written by `cargo xtask mutants`, all but the last column: the mutants that no test notices, how many have the same description, and the
reason why each may survive. [docs/reliability.md](../docs/reliability.md) has the summary.

| mutant | number | why it may survive |
|---|---|---|
";

/// How many in a hundred have to be noticed.
const LEAST: usize = 90;

/// Names of subjects pick some. `--share=10` tries every tenth mutant, spread over all files; `--missed` tries those once
/// more that nobody noticed, too, and `--anew` forgets what is known. Without either, tests that came since have tried
/// only what was not known.
pub fn run(arguments: &[&str]) -> Outcome {
    let (mut share, mut again, mut is_anew, mut names) = (1, false, false, Vec::new());
    for argument in arguments {
        match *argument {
            "--missed" => again = true,
            "--anew" => is_anew = true,
            name if SUBJECTS.iter().any(|subject| subject.name == name) => names.push(name),
            other => {
                let given = other.strip_prefix("--share=").and_then(|given| given.parse().ok());
                share = given.filter(|share| *share > 0).ok_or(format!("mutants: {other}?"))?;
            }
        }
    }
    install()?;
    let is_chosen = |subject: &Subject| names.is_empty() || names.contains(&subject.name);
    let run = |subject| Run::of(subject, is_anew && is_chosen(subject));
    // What earlier runs told is kept before this one takes its time.
    let mut runs = SUBJECTS.iter().map(run).collect::<Result<Vec<_>, _>>()?;
    let mut faults = Vec::new();
    for run in runs.iter_mut().filter(|run| is_chosen(run.subject)) {
        faults.extend(run.try_some(share, again).err());
        faults.extend(run.is_low().then(|| format!("{}: fewer than {LEAST} %", run.subject.name)));
    }
    let summary = summary(&runs);
    println!("\n{summary}");
    report::write("mutants", &summary)?;
    let (missed, unexplained) = missed(&runs);
    fs::write(root().join(MISSED), missed).map_err(|e| format!("{MISSED}: {e}"))?;
    if unexplained > 0 {
        faults.push(format!("{MISSED}: {unexplained} mutants without a reason"));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

fn install() -> Outcome {
    for tool in ["mutants", "nextest"] {
        if !cargo().args([tool, "--version"]).output().is_ok_and(|it| it.status.success()) {
            crate::run(cargo().args(["install", "--locked", &format!("cargo-{tool}")]))?;
        }
    }
    Ok(())
}

/// What became of a mutant: the files that `cargo mutants` lists them in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Caught,
    /// The tests did not come to an end, which is noticed too.
    Timeout,
    Missed,
    /// It does not compile, and counts for nothing.
    Unviable,
}

const FATES: [(Fate, &str, char); 4] = [
    (Fate::Caught, "caught", 'c'),
    (Fate::Timeout, "timeout", 't'),
    (Fate::Missed, "missed", 'm'),
    (Fate::Unviable, "unviable", 'u'),
];

/// Of a mutant that was not tried.
const UNTRIED: char = '-';

/// The mutants of a crate, and what is known of them.
struct Run {
    subject: &'static Subject,
    folder: PathBuf,
    all: Vec<String>,
    /// Those in code for other systems, which is not compiled.
    elsewhere: Vec<String>,
    known: BTreeMap<String, Fate>,
}

impl Run {
    fn of(subject: &'static Subject, is_anew: bool) -> Result<Self, String> {
        // Not where the profile of that name is built.
        let folder = target_folder().join("mutation").join(subject.name);
        if is_anew {
            let _ = fs::remove_dir_all(&folder);
        }
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let (all, elsewhere) = (Vec::new(), Vec::new());
        let mut run = Self { subject, folder, all, elsewhere, known: BTreeMap::new() };
        let listed = run.mutants().arg("--list").output().map_err(|e| e.to_string())?;
        let listed_names = String::from_utf8_lossy(&listed.stdout);
        let (elsewhere, here) =
            listed_names.lines().map(String::from).partition(|name| is_elsewhere(name));
        (run.elsewhere, run.all) = (elsewhere, here);
        // To know nothing of them would be to forget what became of them.
        if !listed.status.success() || run.all.is_empty() {
            return Err(format!("no mutants: {}", String::from_utf8_lossy(&listed.stderr)));
        }
        if !is_anew {
            run.remember();
        }
        run.learn()?;
        Ok(run)
    }

    fn mutants(&self) -> Command {
        let mut mutants = cargo();
        mutants.args(["mutants", "--package", self.subject.name]);
        mutants.args(self.subject.left_out.iter().flat_map(|glob| ["--exclude", glob]));
        mutants.args(self.subject.equal.iter().flat_map(|names| ["--exclude-re", names]));
        mutants.current_dir(root());
        mutants
    }

    /// Where `cargo mutants` says what it did, even if it was cut off.
    fn told(&self) -> PathBuf {
        self.folder.join("mutants.out")
    }

    /// The mutants of each source, in the order of the list.
    fn by_source(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut sources = BTreeMap::<_, Vec<_>>::new();
        for name in &self.all {
            sources.entry(name.split(':').next().unwrap_or_default()).or_default().push(&**name);
        }
        sources
    }

    /// What is known of sources that are still the same.
    fn remember(&mut self) {
        let kept = fs::read_to_string(root().join(KNOWN)).unwrap_or_default();
        let (sources, mut known) = (self.by_source(), BTreeMap::new());
        for line in kept.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let [path, digest, letters] = words[..] else { continue };
            let Some(names) = sources.get(path).filter(|_| digest == self::digest(path)) else {
                continue;
            };
            for (name, letter) in names.iter().zip(letters.chars()) {
                let fate = FATES.iter().find(|(_, _, known)| *known == letter);
                known.extend(fate.map(|(fate, ..)| ((*name).to_owned(), *fate)));
            }
        }
        self.known = known;
    }

    /// Adds what the last run told to what is known, and keeps it. What is no mutant any more is forgotten.
    fn learn(&mut self) -> Outcome {
        let all: BTreeSet<_> = self.all.iter().map(String::as_str).collect();
        for (fate, name, _) in FATES {
            let path = self.told().join(name).with_extension("txt");
            let told = fs::read_to_string(path).unwrap_or_default();
            let real = told.lines().filter(|name| all.contains(name));
            self.known.extend(real.map(|name| (name.to_owned(), fate)));
        }
        let path = root().join(KNOWN);
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let ours = format!("crates/{}/", self.subject.name);
        let others = kept.lines().filter(|line| !line.starts_with(&ours)).map(String::from);
        let letter = |name: &&str| {
            let fate = self.known.get(*name);
            let row = FATES.iter().find(|(known, ..)| Some(known) == fate);
            row.map_or(UNTRIED, |(.., letter)| *letter)
        };
        let mut lines: Vec<_> = others.collect();
        for (source, names) in self.by_source() {
            let letters: String = names.iter().map(letter).collect();
            if letters.contains(|letter| letter != UNTRIED) {
                lines.push(format!("{source} {} {letters}", digest(source)));
            }
        }
        lines.sort();
        fs::write(&path, lines.join("\n") + "\n").map_err(|e| format!("{KNOWN}: {e}"))
    }

    /// Those of which nothing is known, and those that were missed if they are to be tried `again`. Where tests of another
    /// package may notice, they are shown what the crate's own have missed.
    fn try_some(&mut self, share: usize, again: bool) -> Outcome {
        let is_wanted = |(index, name): &(usize, &String)| match self.known.get(*name) {
            Some(fate) => again && *fate == Fate::Missed,
            None => index % share == 0,
        };
        let wanted = self.all.iter().enumerate().filter(is_wanted);
        let wanted: BTreeSet<_> = wanted.map(|(_, name)| name.clone()).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        self.try_each(&wanted, None)?;
        let Some(beyond) = &self.subject.beyond else { return Ok(()) };
        let missed = self.known.iter().filter(|(_, fate)| **fate == Fate::Missed);
        let missed: BTreeSet<_> = missed.map(|(name, _)| name.clone()).collect();
        if missed.is_empty() { Ok(()) } else { self.try_each(&missed, Some(beyond)) }
    }

    fn try_each(&mut self, wanted: &BTreeSet<String>, beyond: Option<&Beyond>) -> Outcome {
        let left_out = self.all.iter().filter(|name| !wanted.contains(*name));
        let left_out: Vec<_> = left_out.chain(&self.elsewhere).map(String::as_str).collect();
        // `--iterate` goes on where a run ended, and that is what it looks into.
        let _ = fs::remove_dir_all(self.told());
        let skipped = self.told().join("previously_caught.txt");
        fs::create_dir_all(self.told())
            .and_then(|()| fs::write(&skipped, left_out.join("\n")))
            .map_err(|e| format!("{}: {e}", skipped.display()))?;
        let order = format!("--config-file={}", root().join(ORDER).display());
        let mut tests = vec![order];
        let mut mutants = self.mutants();
        mutants.arg("--output").arg(&self.folder);
        mutants.args(["--iterate", "--no-shuffle", "--profile=mutants", "--test-tool=nextest"]);
        mutants.args([
            "--jobs=2",
            "--test-package",
            beyond.map_or(self.subject.name, |it| it.package),
        ]);
        if let Some(beyond) = beyond {
            tests.push(format!("--filterset=test(/^({})::/)", beyond.modules.join("|")));
            // Only tests of the crate itself are tried beforehand by `cargo mutants`.
            try_unchanged(beyond, &tests)?;
            mutants.args(["--baseline=skip", "--timeout=300"]);
        } else {
            mutants.arg("--minimum-test-timeout=120");
        }
        mutants.args(tests.iter().map(|test| format!("--cargo-arg={test}")));
        println!("\n$ {mutants:?}");
        // Those that nobody noticed make it fail, which is not for it to say.
        match strictly(&mut mutants).status().map_err(|e| format!("cargo mutants: {e}"))?.code() {
            Some(0 | 2 | 3) => self.learn(),
            code => Err(format!("cargo mutants ended with {code:?}")),
        }
    }

    fn count(&self, fate: Fate) -> usize {
        self.known.values().filter(|known| **known == fate).count()
    }

    fn noticed(&self) -> usize {
        self.count(Fate::Caught) + self.count(Fate::Timeout)
    }

    fn row(&self) -> String {
        let (noticed, missed) = (self.noticed(), self.count(Fate::Missed));
        let share = (noticed * 1000).checked_div(noticed + missed).unwrap_or(0);
        format!(
            "| `{}` | {} | {} | {} | {noticed} | {} | {missed} | {}.{} % |\n",
            self.subject.name,
            self.all.len(),
            self.known.len(),
            self.count(Fate::Unviable),
            self.count(Fate::Timeout),
            share / 10,
            share % 10,
        )
    }

    /// Nothing noticed of nothing tried is too little, too.
    fn is_low(&self) -> bool {
        let tried = self.noticed() + self.count(Fate::Missed);
        tried == 0 || self.noticed() * 100 < tried * LEAST
    }
}

/// Where the tests fail anyway, every mutant would seem to be noticed.
fn try_unchanged(beyond: &Beyond, tests: &[String]) -> Outcome {
    let mut run = cargo();
    run.args(["nextest", "run", "--cargo-profile=mutants", "--package", beyond.package]);
    crate::run(strictly(run.args(tests).current_dir(root())))
}

/// No test may be content with what it could not check. Where there is a file system in memory, they work there: it takes
/// a third of the time.
fn strictly(command: &mut Command) -> &mut Command {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { env::temp_dir() };
    command.env("PROPTEST_CASES", "64").env("CI", "true").env("TMPDIR", folder)
}

/// Whether a mutant is in an item, or a block, that is for another system or processor than this.
fn is_elsewhere(name: &str) -> bool {
    const ELSEWHERE: [&str; 4] = [
        "#[cfg(windows)]",
        "#[cfg(not(any(target_os = \"linux\", target_vendor = \"apple\")))]",
        "#[cfg(not(target_os = \"linux\"))]",
        "#[cfg(not(target_arch = \"x86_64\"))]",
    ];
    let mut parts = name.split(':');
    let (path, line) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let source = fs::read_to_string(root().join(path)).unwrap_or_default();
    let lines: Vec<_> = source.lines().take(line.parse().unwrap_or(0)).collect();
    let Some(first) = lines.iter().rposition(|line| ELSEWHERE.contains(&line.trim())) else {
        return false;
    };
    let indent = |line: &str| line.len() - line.trim_start().len();
    // It ends with a brace of its own, or a semicolon.
    let ends = |line: &&str| {
        let is_last = line.trim_start() == "}" || line.ends_with(';');
        is_last && indent(line) == indent(lines[first])
    };
    !lines[first..].iter().any(ends)
}

/// Of a source without its tests.
fn digest(path: &str) -> String {
    let source = fs::read_to_string(root().join(path)).unwrap_or_default();
    sha256(without_tests(&source).trim_end().as_bytes())[..16].into()
}

/// Without line and column: these move with every change.
fn placeless(name: &str) -> String {
    let mut parts = name.splitn(4, ':');
    let (path, what) = (parts.next().unwrap_or_default(), parts.nth(2).unwrap_or_default());
    format!("{path}:{what}").replace('|', "\\|")
}

/// A row for each crate. A crate without known outcomes keeps the row that the document has.
fn summary(runs: &[Run]) -> String {
    let document = fs::read_to_string(root().join(report::PATH)).unwrap_or_default();
    let row = |run: &Run| {
        if run.known.is_empty() {
            rows_of(&document, &format!("| `{}` | ", run.subject.name))
        } else {
            run.row()
        }
    };
    let rows: String = runs.iter().map(row).collect();
    format!(
        "| crate | mutants | tried | do not compile | noticed | of these by time | missed | share |\n\
         |---|---|---|---|---|---|---|---|\n{rows}"
    )
}

/// The content of `MISSED`, and how many of its rows have no reason yet. A crate without known outcomes keeps its rows.
fn missed(runs: &[Run]) -> (String, usize) {
    let old = fs::read_to_string(root().join(MISSED)).unwrap_or_default();
    let (reasons, mut unexplained, mut text) = (reasons(&old), 0, MISSED_HEAD.to_owned());
    for run in runs {
        if run.known.is_empty() {
            text += &rows_of(&old, &format!("| `crates/{}/", run.subject.name));
            continue;
        }
        let mut alike = BTreeMap::new();
        for (name, _) in run.known.iter().filter(|(_, fate)| **fate == Fate::Missed) {
            *alike.entry(placeless(name)).or_insert(0) += 1;
        }
        for (name, count) in alike {
            let reason = reasons.get(name.as_str()).copied().unwrap_or_default();
            unexplained += usize::from(reason.is_empty());
            let _ = writeln!(text, "| `{name}` | {count} | {reason} |");
        }
    }
    (text, unexplained)
}

/// The lines of a document that begin in this way.
fn rows_of(document: &str, begin: &str) -> String {
    let lines = document.lines().filter(|line| line.starts_with(begin));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The reason for each mutant in `MISSED`, by its name.
fn reasons(document: &str) -> BTreeMap<&str, &str> {
    let row = |line| {
        let (name, rest) =
            str::strip_suffix(line, " |")?.strip_prefix("| `")?.split_once("` | ")?;
        Some((name, rest.split_once(" | ")?.1.trim()))
    };
    document.lines().filter_map(row).collect()
}

#[test]
fn names_have_no_place() {
    let name = "crates/text/src/lines.rs:97:14: replace || with && in Line::content";
    let placeless = placeless(name);
    assert_eq!(placeless, "crates/text/src/lines.rs: replace \\|\\| with && in Line::content");
    let row = format!("| `{placeless}` | 2 | it is slower |");
    assert_eq!(reasons(&row).get(placeless.as_str()), Some(&"it is slower"));
}
