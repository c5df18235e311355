//! A second wall around the root, kept by the kernel: Landlock, on Linux.
//!
//! The first one is ours: a path is resolved from the root's handle and never leaves it. This one stands should ours
//! ever have a hole: from [`Sandbox::enter`] on the process can open, make or remove nothing outside the root, run no
//! program, connect to nobody over TCP and signal nobody. What is open already stays open: the root, stdin and stdout,
//! a port that is listened on. Who is to be called all the same is said before: a [`Callee`]. What Landlock cannot
//! refuse: to look at a file without opening it, to change its mode, owner, times or attributes, UDP, and before Linux
//! 7.1 to connect to a socket that is a file.

use std::fmt;

use crate::Root;

/// What may be done to the files of a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    ReadWrite,
    ReadOnly,
}

/// Somebody who may still be called from behind the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callee {
    /// TCP. Landlock knows ports only, so whoever listens there, on any machine, may be called.
    pub port: u16,
    pub known_by: KnownBy,
}

/// What is known of somebody who is to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownBy {
    /// The host has to be looked up at each call, for which the files of the system's resolver are read.
    Name,
    Address,
}

/// What became of the second wall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// Everything promised is kept.
    Landlock,
    /// An older kernel keeps the part that it knows of: files, and perhaps TCP.
    Partly,
    /// It was not wanted.
    Off,
    /// The system has none.
    Unavailable,
    /// The system has one and did not let us in; why.
    Failed(String),
}

impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sandbox::Landlock => "landlock",
            Sandbox::Partly => "landlock, partly",
            Sandbox::Off => "off",
            Sandbox::Unavailable => "unavailable",
            Sandbox::Failed(_) => "failed",
        })
    }
}

impl Sandbox {
    /// Takes from the calling thread, and from all that it will ever start, what it does not need to work below `root`.
    /// Threads that are there already keep theirs. There is no way back.
    #[must_use]
    pub fn enter(root: &Root, access: Access) -> Sandbox {
        Sandbox::enter_to_call(root, access, None)
    }

    /// The same, but that one callee can still be called.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn enter_to_call(root: &Root, access: Access, callee: Option<Callee>) -> Sandbox {
        // What we would read of the system later is no longer ours to open then. A rule could allow it, but holds on to
        // one inode, and `/proc` makes a new one whenever it has forgotten the last.
        let _ = crate::usage::sources();
        let _ = crate::os::umask();
        let _ = crate::os::lock_table();
        match linux::enter(root, access, callee) {
            Ok(status) => linux::kept(status),
            Err(error) => Sandbox::Failed(error.to_string()),
        }
    }

    /// There is none here.
    #[cfg(not(target_os = "linux"))]
    #[must_use]
    pub fn enter_to_call(_: &Root, _: Access, _: Option<Callee>) -> Sandbox {
        Sandbox::Unavailable
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;

    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, LandlockStatus, NetPort, PathBeneath, Ruleset,
        RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
    };

    use super::{Access, Callee, KnownBy, Sandbox};
    use crate::Root;

    /// Everything up to here is taken away, as far as the kernel knows of it.
    const NEWEST: ABI = ABI::V9;

    /// Files, TCP, signals, sockets without a file: Linux 6.12. What came later (calls to sockets that are files) is a
    /// gain where it is there.
    const PROMISED: ABI = ABI::V6;

    /// What glibc reads to look up a name. Where one of them is a link it is what that leads to.
    const RESOLVER: &[&str] = &[
        "/etc/nsswitch.conf",
        "/etc/host.conf",
        "/etc/resolv.conf",
        "/etc/hosts",
        "/etc/gai.conf",
    ];

    pub(super) fn enter(
        root: &Root,
        access: Access,
        callee: Option<Callee>,
    ) -> Result<LandlockStatus, RulesetError> {
        let reading = make_bitflags!(AccessFs::{ReadFile | ReadDir});
        // To empty a file is not among them: none is ever changed in place.
        let writing =
            make_bitflags!(AccessFs::{WriteFile | MakeReg | RemoveFile | MakeDir | RemoveDir});
        let below_root = match access {
            Access::ReadOnly => reading,
            Access::ReadWrite => reading | writing,
        };
        let status = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?
            .add_rule(PathBeneath::new(root.dir(), below_root))?
            .add_rules(read_to_call(callee))?
            .add_rules(callee.map(allow_port))?
            // Nothing else is opened later, and nobody else is called: whatever is to be, gets its rule here.
            .restrict_self()?;
        Ok(status.landlock)
    }

    fn read_to_call(
        callee: Option<Callee>,
    ) -> impl Iterator<Item = Result<PathBeneath<File>, RulesetError>> {
        let paths = match callee.map(|callee| callee.known_by) {
            Some(KnownBy::Name) => RESOLVER,
            Some(KnownBy::Address) | None => &[],
        };
        // A system need not have all of them.
        let files = paths.iter().filter_map(|path| File::open(path).ok());
        files.map(|file| Ok(PathBeneath::new(file, AccessFs::ReadFile)))
    }

    #[expect(clippy::unnecessary_wraps, reason = "rules come as results")]
    fn allow_port(callee: Callee) -> Result<NetPort, RulesetError> {
        Ok(NetPort::new(callee.port, AccessNet::ConnectTcp))
    }

    /// How much of it a kernel keeps.
    pub(super) fn kept(kernel: LandlockStatus) -> Sandbox {
        match kernel {
            LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => Sandbox::Unavailable,
            LandlockStatus::Available { effective_abi, .. } if effective_abi < PROMISED => {
                Sandbox::Partly
            }
            LandlockStatus::Available { .. } => Sandbox::Landlock,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use landlock::{ABI, LandlockStatus};

    use super::*;

    #[test]
    fn an_old_kernel_keeps_a_part_and_one_without_landlock_nothing() {
        let check = |kernel, told: &str| assert_eq!(linux::kept(kernel).to_string(), told);
        let knows = |effective_abi| LandlockStatus::Available { effective_abi, kernel_abi: None };
        check(knows(ABI::V9), "landlock");
        check(knows(ABI::V6), "landlock");
        check(knows(ABI::V5), "landlock, partly");
        check(knows(ABI::V1), "landlock, partly");
        check(LandlockStatus::NotEnabled, "unavailable");
        check(LandlockStatus::NotImplemented, "unavailable");
    }
}
