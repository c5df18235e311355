//! All that is compared, and the ratios it comes to.

use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::contenders::{Contender, Kind};
use crate::operations::{Bars, Measure, operations};
use crate::report::Report;
use crate::throughput::{self, CONNECTIONS};
use crate::together::{self, EDITS, SERVERS};
use crate::{Options, memory, ratios, rivals, sizes, turns};

pub fn run(options: &Options) -> Result<()> {
    let operations = operations().into_iter().filter(|operation| options.picks(&operation.name));
    let operations: Vec<_> = operations.collect();
    let together = format!("{SERVERS} × {EDITS} edits");
    let http = CONNECTIONS.map(|(count, said)| (count, format!("HTTP, {said}")));
    let others = ["start", "memory", "size", &together];
    let picked = http.iter().map(|(_, name)| name.as_str()).chain(others);
    if operations.is_empty() && !picked.into_iter().any(|name| options.picks(name)) {
        return Err(Error::other("nothing is called that"));
    }

    let mut report = Report::default();
    tell_machine(&options.binary, &mut report);
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let contenders = gather(options, folder, &mut report)?;
    if options.picks("start") {
        let results = turns::measure_start(&contenders, folder);
        let bars = Bars { floor: Some((Measure::Time, 2.0)), rival: Some(0.7) };
        ratios::tell("start", &results, bars, &mut report);
    }
    for operation in operations {
        let results = turns::measure(&operation, &contenders, folder);
        ratios::tell(&operation.name, &results, operation.bars, &mut report);
    }
    for (connections, name) in http.iter().filter(|(_, name)| options.picks(name)) {
        throughput::tell(name, &contenders, *connections, folder, &mut report);
    }
    if options.picks(&together) {
        together::tell(&together, &contenders, folder, &mut report);
    }
    if options.picks("memory") {
        memory::tell(&contenders, folder, &mut report);
    }
    if options.picks("size") {
        sizes::tell(&contenders, folder, &mut report);
    }
    report.keep("machine", "load average at the end", read("/proc/loadavg").into());
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("runs");
    report.end(&runs, options.save.as_deref())
}

fn tell_machine(binary: &Path, report: &mut Report) {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let (kernel, load) = (read("/proc/sys/kernel/osrelease"), read("/proc/loadavg"));
    let processors = read("/proc/cpuinfo");
    let model =
        processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    report.say(&format!("Linux {kernel}, {cores} × {model}, load average {load}"));
    report.keep("machine", "kernel", kernel.into());
    report.keep("machine", "cores", cores.into());
    report.keep("machine", "processor", model.into());
    report.keep("machine", "load average at the start", load.into());
    report.keep("versions", "file-editor", version(binary).into());
    report.keep("versions", "node", version(Path::new("node")).into());
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().into()
}

fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    said.unwrap_or_else(|error| error.to_string())
}

/// Copies a program, so that all lie alike in the cache of the kernel: one as the linker wrote it starts a tenth slower.
fn copy(program: &Path, to: &Path) -> Result<PathBuf> {
    fs::copy(program, to)?;
    Ok(to.into())
}

/// Everybody who takes part; who does not is named.
fn gather(options: &Options, folder: &Path, report: &mut Report) -> Result<Vec<Contender>> {
    let floor = std::env::current_exe()?.with_file_name("floor");
    let mut contenders = vec![
        Contender::alone(Kind::Raw, &floor),
        Contender::alone(Kind::Floor, &floor),
        Contender::alone(Kind::Ours, &copy(&options.binary, &folder.join("ours"))?),
    ];
    if let Some(before) = &options.before {
        contenders.push(Contender::alone(Kind::Before, &copy(before, &folder.join("before"))?));
        return Ok(contenders);
    }
    for taken in rivals::install(&options.rivals) {
        let (name, version) = (taken.kind.name(), taken.version);
        report.keep("versions", name, version.into());
        match taken.outcome {
            Ok(contender) => contenders.push(contender),
            Err(error) => {
                report.say(&format!("\n**Missing: {name} {version}: {error}**"));
                report.keep("missing", name, error.to_string().into());
            }
        }
    }
    Ok(contenders)
}
