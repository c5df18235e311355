//! What a Codex that was killed left running. On Linux such processes come to us, and are ended; elsewhere the system
//! tells nobody of them.

/// From now on whoever loses its parent below us becomes our child.
pub fn adopt() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends all our children, and theirs. To be called when Codex is gone, which was the only one.
#[cfg(target_os = "linux")]
pub async fn end() {
    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
    /// The children of one that is killed come to us a moment later.
    const MOMENT: std::time::Duration = std::time::Duration::from_millis(10);
    const LONGEST: usize = 200;
    for _ in 0..LONGEST {
        let children = files::usage::children();
        let children: Vec<Pid> = children.into_iter().filter_map(Pid::from_raw).collect();
        if children.is_empty() {
            return;
        }
        for child in children {
            let _ = kill_process(child, Signal::KILL);
            let _ = waitpid(Some(child), WaitOptions::NOHANG);
        }
        tokio::time::sleep(MOMENT).await;
    }
}

#[cfg(not(target_os = "linux"))]
pub async fn end() {}
