//! CPU time and memory that this process uses. Linux only; other systems do not tell.

use std::time::Duration;

/// Usage of the process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Time of the measurement, since the machine started.
    pub at: Duration,
    /// CPU time used so far, by all threads.
    pub cpu: Duration,
    /// Memory held now, in bytes.
    pub memory: u64,
    /// Memory the process may hold, in bytes: what it has, and what is free within the machine and its control group.
    pub memory_available: u64,
    /// Number of cores that it may use, as at the start.
    pub cores: u32,
}

#[cfg(not(target_os = "linux"))]
pub fn now() -> Option<Usage> {
    None
}

/// Measures the process; `None` where `/proc` does not tell.
#[cfg(target_os = "linux")]
pub fn now() -> Option<Usage> {
    sources()?.measure()
}

/// Returns the ids of the child processes of this one.
#[cfg(target_os = "linux")]
pub fn children() -> Vec<i32> {
    let ours = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_ours = |id: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // A process name may contain anything, blanks and brackets too; what follows it may not.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(1) == Some(&ours)
    };
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    ids.filter(is_ours).collect()
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{read_from_start, sources};

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs::File, os::unix::fs::FileExt, sync::OnceLock, thread, time::Duration};

    use rustix::time::{ClockId, clock_gettime};

    use super::Usage;

    /// Files that describe the process. Opened once and read again and again: inside the sandbox none of them can be
    /// opened.
    pub(crate) struct UsageSources {
        status: File,
        meminfo: File,
        group_limit: Option<File>,
        cores: u32,
    }

    /// Opens the files on the first call.
    pub(crate) fn sources() -> Option<&'static UsageSources> {
        static SOURCES: OnceLock<Option<UsageSources>> = OnceLock::new();
        SOURCES.get_or_init(UsageSources::open).as_ref()
    }

    impl UsageSources {
        fn open() -> Option<Self> {
            let open = |path| File::open(path).ok();
            Some(Self {
                status: open("/proc/self/status")?,
                meminfo: open("/proc/meminfo")?,
                group_limit: open("/sys/fs/cgroup/memory.max"),
                cores: thread::available_parallelism()
                    .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1)),
            })
        }

        pub(super) fn measure(&self) -> Option<Usage> {
            let memory = kilobytes(&read_from_start(&self.status)?, "VmRSS:")?;
            let free = kilobytes(&read_from_start(&self.meminfo)?, "MemAvailable:")?;
            let group = self.group_limit.as_ref().and_then(read_from_start);
            let group = group.and_then(|text| text.trim().parse().ok());
            Some(Usage {
                at: clock(ClockId::Boottime)?,
                cpu: clock(ClockId::ProcessCPUTime)?,
                memory,
                memory_available: (memory + free).min(group.unwrap_or(u64::MAX)),
                cores: self.cores,
            })
        }
    }

    /// Reads a file of `/proc` as it is now: the system makes it anew for each read from its beginning.
    pub(crate) fn read_from_start(file: &File) -> Option<String> {
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        loop {
            match file.read_at(&mut part, bytes.len() as u64).ok()? {
                0 => return String::from_utf8(bytes).ok(),
                read => bytes.extend_from_slice(&part[..read]),
            }
        }
    }

    /// Returns the number after `name` in a file of `name: number kB` lines, in bytes.
    fn kilobytes(text: &str, name: &str) -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    }

    fn clock(which: ClockId) -> Option<Duration> {
        Duration::try_from(clock_gettime(which)).ok()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_measured() {
        let before = now().unwrap();
        let block = std::hint::black_box(vec![1_u8; 8 << 20]);
        let after = now().unwrap();
        assert!(after.memory >= before.memory + (4 << 20), "{before:?} {after:?}");
        assert!(after.memory_available > after.memory);
        let machine = std::fs::read_to_string("/proc/meminfo").unwrap();
        let total: u64 = machine.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(after.memory_available <= after.memory + (total << 10), "{after:?}");
        assert!(after.at >= before.at && after.cpu >= before.cpu);
        assert!(before.at > before.cpu && before.cpu > Duration::ZERO, "{before:?}");
        drop(block);
    }

    #[test]
    fn children_are_those_that_we_started() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        let found = children();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&id) && !found.contains(&1), "{found:?}");
        assert!(!children().contains(&id));
    }
}
