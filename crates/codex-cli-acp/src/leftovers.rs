//! Whatever Codex starts ends with it, and with us.
//!
//! Codex clears up after itself when its stdin closes. What it cannot see to is for a keeper, on Linux: a process of ours
//! between us and Codex, to which all come who lose their parent below it. It does nothing but wait, and when Codex is
//! gone, or hangs although we are, it ends all that is left. So nobody stays behind even if we or Codex are killed.

use std::ffi::OsStr;
use std::process::ExitCode;

use tokio::process::Command;

/// Our own word for it: this and what to run make us a keeper.
const KEEP: &str = "--keep";

/// Codex, with a keeper.
#[cfg(target_os = "linux")]
pub fn kept(program: &OsStr) -> Command {
    // It is there even when our file was replaced by a newer one.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("codex-cli-acp").arg(KEEP).arg(program);
    command
}

#[cfg(not(target_os = "linux"))]
pub fn kept(program: &OsStr) -> Command {
    Command::new(program)
}

/// If we were started as a keeper: keeps, and says how to end.
pub fn keep() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let is_keeper =
        cfg!(target_os = "linux") && arguments.next().is_some_and(|first| first == KEEP);
    is_keeper.then(|| keeper::keep(arguments).unwrap_or(ExitCode::FAILURE))
}

/// From now on whoever loses its parent below us becomes our child.
pub fn adopt() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends all our children, and theirs.
pub async fn end() {
    let _ = tokio::task::spawn_blocking(keeper::end_all).await;
}

#[cfg(target_os = "linux")]
mod keeper {
    use std::ffi::OsString;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, ExitCode};
    use std::thread::sleep;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, kill_process, waitpid};

    /// The children of one that is killed come to us a moment later.
    const MOMENT: Duration = Duration::from_millis(10);
    const MOMENTS: usize = 200;
    /// How often a keeper looks whether we are still there, and how long Codex has to end when we are not.
    const LOOK: Duration = Duration::from_secs(2);

    /// `None`: there was nothing to keep.
    pub fn keep(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
        let parent = getppid();
        super::adopt();
        let mut codex = Command::new(arguments.next()?).args(arguments).spawn().ok()?;
        std::thread::spawn(move || {
            while getppid() == parent {
                sleep(LOOK);
            }
            sleep(LOOK);
            end_all();
        });
        let status = codex.wait().ok()?;
        end_all();
        // As it ended, so do we: that is what is told.
        if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
            let _ = kill_process(getpid(), signal);
        }
        Some(u8::try_from(status.code().unwrap_or(1)).map_or(ExitCode::FAILURE, ExitCode::from))
    }

    pub fn end_all() {
        for _ in 0..MOMENTS {
            let children: Vec<Pid> =
                files::usage::children().into_iter().filter_map(Pid::from_raw).collect();
            if children.is_empty() {
                return;
            }
            for child in children {
                let _ = kill_process(child, Signal::KILL);
                let _ = waitpid(Some(child), WaitOptions::NOHANG);
            }
            sleep(MOMENT);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod keeper {
    pub fn keep<T>(_: T) -> Option<std::process::ExitCode> {
        None
    }

    pub fn end_all() {}
}
