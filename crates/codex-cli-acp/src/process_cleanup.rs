//! Ends every process that Codex started when Codex or this program ends.
//!
//! Codex cleans up when its stdin closes. For the rest there is a supervisor on Linux: a process of this program between
//! this program and Codex, and a child subreaper, to which processes below it are reparented when they lose their
//! parent. It waits, and when Codex is gone, or hangs although this program is gone, it kills every process that is
//! left. So none stays behind even if this program or Codex is killed.

use std::ffi::OsStr;
use std::process::ExitCode;

use tokio::process::Command;

/// First argument that makes this program a supervisor; the program to run follows.
const SUPERVISE: &str = "--keep";

/// Returns the command that starts Codex under a supervisor.
#[cfg(target_os = "linux")]
pub fn supervised(program: &OsStr) -> Command {
    // This path works even after the program's file was replaced by a newer one.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("codex-cli-acp").arg(SUPERVISE).arg(program);
    command
}

#[cfg(not(target_os = "linux"))]
pub fn supervised(program: &OsStr) -> Command {
    Command::new(program)
}

/// Runs as a supervisor if this process was started as one, and returns its exit code.
pub fn supervise_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let is_supervisor =
        cfg!(target_os = "linux") && arguments.next().is_some_and(|first| first == SUPERVISE);
    is_supervisor.then(|| supervisor::run(arguments).unwrap_or(ExitCode::FAILURE))
}

/// Makes this process a child subreaper: processes below it that lose their parent become its children.
pub fn become_subreaper() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Kills all child processes and their descendants.
pub async fn kill_all() {
    let _ = tokio::task::spawn_blocking(supervisor::kill_children).await;
}

#[cfg(target_os = "linux")]
mod supervisor {
    use std::ffi::OsString;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, ExitCode};
    use std::thread::sleep;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, kill_process, waitpid};

    /// Pause between rounds: the children of a killed process are reparented a moment later.
    const ROUND_PAUSE: Duration = Duration::from_millis(10);
    const ROUNDS_MAX: usize = 200;
    /// Interval at which a supervisor checks for its parent, and time for Codex to end when the parent is gone.
    const PARENT_CHECK_INTERVAL: Duration = Duration::from_secs(2);

    /// Runs the program and waits for its end. `None` if it could not be started.
    pub fn run(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
        let parent = getppid();
        super::become_subreaper();
        let mut codex = Command::new(arguments.next()?).args(arguments).spawn().ok()?;
        std::thread::spawn(move || {
            while getppid() == parent {
                sleep(PARENT_CHECK_INTERVAL);
            }
            sleep(PARENT_CHECK_INTERVAL);
            kill_children();
        });
        let status = codex.wait().ok()?;
        kill_children();
        // The supervisor ends by the same signal or code as Codex, since that is reported.
        if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
            let _ = kill_process(getpid(), signal);
        }
        Some(u8::try_from(status.code().unwrap_or(1)).map_or(ExitCode::FAILURE, ExitCode::from))
    }

    pub fn kill_children() {
        for _ in 0..ROUNDS_MAX {
            let children: Vec<Pid> =
                files::usage::children().into_iter().filter_map(Pid::from_raw).collect();
            if children.is_empty() {
                return;
            }
            for child in children {
                let _ = kill_process(child, Signal::KILL);
                let _ = waitpid(Some(child), WaitOptions::NOHANG);
            }
            sleep(ROUND_PAUSE);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod supervisor {
    pub fn run<T>(_: T) -> Option<std::process::ExitCode> {
        None
    }

    pub fn kill_children() {}
}
