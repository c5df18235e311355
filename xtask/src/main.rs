//! The project's own commands: `cargo xtask <command>`.

#![allow(clippy::print_stdout, reason = "a command talks to its user")]

mod coverage;
mod cycles;
mod dist;
mod eval;
mod footprint;
mod fuzz;
mod mutants;
mod not_checked;
mod openapi;
mod report;
mod server;
mod size;
mod supply;
mod test;
mod walls;

use std::process::{Command, ExitCode};

const USAGE: &str = "\
cargo xtask <command>

  test              everything a change must pass: format, lints, walls, supply, all tests, openapi, clients, footprint,
                    faults
  full              test, and what takes too long for each change: clients that have to be compiled, faults, model, soak,
                    fuzz, coverage, mutants; writes docs/reliability.md
  clients           the clients people use, each through the same work; names after it pick some
  clients model     a real small language model writes for `ai_edit_code`, and what it says is printed
  openapi           a server driven by docs/openapi.json: its answers are as described
  faults            kills, errors, races, escapes and attacks, all of them; `--short` for a few minutes of it
  model [steps]     random steps of all tools over several servers, against a simple model (100,000); `--seed=<number>` makes
                    the same steps again
  soak [minutes]    everything at once, with kills, faults and others, while the server is watched (30)
  fuzz [seconds] [target]…
                    chance looks for bytes that break something, 600 seconds for each target if nothing else is said
  fuzz keep [target]…   picks some of the cases that it came upon for fuzz/corpus, which `cargo test` tries again
  coverage          which lines the tests run, in the four parts that have a least share; `--again` says it once more
  mutants           changes in the code that no test notices; crates after it pick some, `--share=10` tries every tenth.
                    Goes on where it was cut off; `--missed` tries those again that nobody noticed, `--anew` all
  walls             what the compiler cannot check: file system calls outside `files`, output that is not escaped,
                    import cycles
  golden            rewrite cases and goldens from what the product does now; read the diff
  dist [target]…    what people install, below target/dist: archives, bundles, packages and checksums, for every platform
                    that can be built here
  dist --assemble   what is said of all packages together, made of those that are there
  dist --try        runs what was made, as far as this machine can
  supply            licences, crates in two versions, why each is there (docs/dependencies.md), a bill of materials of
                    each program; `--write` brings the document up to date, all but the reasons
  size [folder]…    what each language adds to the release binary, and takes when used, written to docs/size.md; trees
                    of the sources in the folders are compared too
  bench             this product, its rivals and the floor on the same work; words after it pick some of that,
                    `--save=<name>` keeps the figures in benches/runs, `--before=<binary>` compares with another build
  bench contract    what the contracts ask of the time it takes
  bench growth      time and memory as files, folders, edits and clients grow
  bench footprint   size, start and memory of the release binary
  bench code <folder>   context and search of code, and rg on the same words
  bench micro       the parts of `text` and `files`, each by itself
  eval context --git <folder>...
                    how well a question finds the files it is about, on the commits of these repositories; `--commits=80`
                    of each
  bench edits       string edits against the plainest loop, and what a hint costs
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["test"] => test::all(),
        ["full"] => full(),
        ["clients", ref which @ ..] => clients(which),
        ["coverage"] => coverage::run(false),
        ["coverage", "--again"] => coverage::run(true),
        ["mutants", ref which @ ..] => mutants::run(which),
        ["openapi"] => openapi::check(),
        ["fuzz", ref which @ ..] => fuzz::run_all(which),
        ["walls"] => walls::check(),
        ["golden"] => golden(),
        ["dist", ref which @ ..] => dist::run(which),
        ["supply"] => supply::check(false),
        ["supply", "--write"] => supply::check(true),
        ["size", ref folders @ ..] => size::write(folders),
        ["faults", ref which @ ..] => faults(which),
        ["model", ref what @ ..] => long(what, "--steps=", MODEL_STEPS),
        ["soak", ref what @ ..] => long(what, "--minutes=", SOAK_MINUTES),
        ["eval", "context", ref which @ ..] => eval::context(which),
        ["bench", "footprint"] => footprint::run(),
        ["bench", "edits"] => {
            run(cargo().args(["bench", "--package", "file-editor", "--bench", "edits"]))
        }
        ["bench", "micro"] => run(cargo().args(["bench", "-p", "text", "-p", "files"])),
        ["bench", ref what @ ..] => bench(what),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// How much of each makes a proof.
const MODEL_STEPS: u64 = 100_000;
const SOAK_MINUTES: u64 = 30;

type Outcome = Result<(), String>;

/// A command without arguments, and what it is called.
type Part = (&'static str, fn() -> Outcome);

/// All that takes too long for each change. It goes on after a failure, so that a night tells all there is to tell.
fn full() -> Outcome {
    let parts: [Part; 8] = [
        ("test", test::all),
        ("clients", || clients(&["yopo"])),
        ("faults", || faults(&[])),
        ("model", || long(&[], "--steps=", MODEL_STEPS)),
        ("soak", || long(&[], "--minutes=", SOAK_MINUTES)),
        ("fuzz", || fuzz::run_all(&[])),
        ("coverage", || coverage::run(false)),
        ("mutants", || mutants::run(&["--anew"])),
    ];
    let mut failed = Vec::new();
    for (name, part) in parts {
        if let Err(reason) = part() {
            eprintln!("{name}: {reason}");
            failed.push(name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// Runs a command in the workspace, its output going to the user's terminal.
fn run(command: &mut Command) -> Outcome {
    let shown = format!("{command:?}").replace('"', "");
    println!("\n$ {shown}");
    let status = command.current_dir(root()).status().map_err(|e| format!("{shown}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{shown}: {status}")) }
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(std::path::Path::new("."))
}

/// Where cargo builds.
fn target_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

/// An experiment that takes as long as it is told to: a number, or `usual`, and flags as they are. It writes down what it
/// found, unless it was shorter than usual.
fn long(what: &[&str], flag: &str, usual: u64) -> Outcome {
    let (flags, numbers): (Vec<&str>, Vec<&str>) =
        what.iter().partition(|word| word.starts_with("--"));
    let number = numbers.first().map_or(Ok(usual), |number| number.parse());
    let number = number.map_err(|_| USAGE)?;
    let how_long = format!("{flag}{number}");
    let write = (number >= usual).then_some("--write=docs/reliability.md");
    let arguments: Vec<_> = flags.into_iter().chain([how_long.as_str()]).chain(write).collect();
    faults(&arguments)
}

/// The release binary, broken on purpose: `faults` says how. All of it writes its figures down.
fn faults(which: &[&str]) -> Outcome {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return not_checked::tell("`cargo xtask faults` is for Linux on x86-64");
    }
    let binary = footprint::build()?;
    let mut faults = cargo();
    faults.args(["run", "--quiet", "--package", "faults", "--"]).arg(binary).args(which);
    if which.is_empty() {
        faults.arg("--write=docs/reliability.md");
    }
    run(&mut faults)
}

/// The release binaries, as users run them, driven by real clients: `clients` says how.
fn clients(which: &[&str]) -> Outcome {
    let binary = footprint::build()?;
    let mut clients = cargo();
    clients.args(["run", "--quiet", "--package", "clients", "--"]).arg(binary).args(which);
    run(clients.env(not_checked::VARIABLE, not_checked::list()))
}

/// The release binary against whatever else there is: `benches` says how. Its rivals are installed below where cargo
/// builds.
fn bench(what: &[&str]) -> Outcome {
    let binary = footprint::build()?;
    let benches = footprint::build_static(&["--package", "benches"], "benches")?;
    let (command, rest) = match what {
        [command @ ("code" | "contract" | "footprint" | "growth"), rest @ ..] => (*command, rest),
        words => ("compare", words),
    };
    let rivals = format!("--rivals={}", target_folder().join("rivals").display());
    let mut benches = Command::new(benches);
    benches.arg(command).arg(binary).arg(rivals).args(rest);
    if matches!(command, "contract" | "growth") && rest.is_empty() {
        benches.arg("--write=docs/performance.md");
    }
    run(&mut benches)
}

fn golden() -> Outcome {
    let update = |arguments: &[&str]| {
        let mut test = cargo();
        test.args(["test", "--test", "all", "--package"]).args(arguments);
        run(test.env("UPDATE", "1").env("UPDATE_EXPECT", "1"))
    };
    update(&["tools"])?;
    update(&[
        "file-editor",
        "--",
        "cases::",
        "documents::",
        "pictures::",
        "transcript::",
        "what_the_model_sees::",
        "wire::",
    ])
}
