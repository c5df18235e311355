//! Landlock sandbox: the Linux kernel confines the process to the root.
//!
//! It is a second protection, should path resolution, which never leaves the root's handle, ever have a hole. From
//! [`Sandbox::enter`] on the process can open, make or remove nothing outside the root, run no program, connect to no
//! TCP port and signal no other process. Open handles stay open: the root, stdin and stdout, a listening port. A
//! service that has to be called all the same is given before, as an [`AllowedService`]. Landlock cannot refuse a
//! `stat`, a change of mode, owner, times or attributes, UDP, and before Linux 7.1 a connection to a socket that is a
//! file.

use std::fmt;

use crate::Root;

/// Access to the files of a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    ReadWrite,
    ReadOnly,
}

/// A service that may still be called from inside the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedService {
    /// TCP port. Landlock knows only ports, so a service that listens on it on any machine may be called.
    pub port: u16,
    pub host_form: HostForm,
}

/// Form in which the host of a service is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostForm {
    /// A host name, which is looked up at each call. For that the files of the system's resolver are read.
    Name,
    Address,
}

/// Outcome of entering the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// All restrictions that are promised are enforced.
    Landlock,
    /// An older kernel enforces the part that it knows of: files, and perhaps TCP.
    Partly,
    /// The sandbox was not requested.
    Off,
    /// The system has no sandbox.
    Unavailable,
    /// The system has one and refused it; the reason.
    Failed(String),
}

impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Landlock => "landlock",
            Self::Partly => "landlock, partly",
            Self::Off => "off",
            Self::Unavailable => "unavailable",
            Self::Failed(_) => "failed",
        })
    }
}

impl Sandbox {
    /// Restricts the calling thread, and all that it will ever start, to what it needs to work below `root`. Threads
    /// that exist already keep their rights. It cannot be undone.
    #[must_use]
    pub fn enter(root: &Root, access: Access) -> Self {
        Self::enter_allowing(root, access, None)
    }

    /// Enters the sandbox, but allows calls of one service.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn enter_allowing(root: &Root, access: Access, service: Option<AllowedService>) -> Self {
        // Opens the system's files that are read later, since they cannot be opened then. A rule could allow it, but
        // holds on to one inode, and `/proc` makes a new one whenever it has forgotten the last.
        let _ = crate::usage::sources();
        let _ = crate::os::umask();
        let _ = crate::os::lock_table();
        match linux::enter(root, access, service) {
            Ok(status) => linux::enforced(status),
            Err(error) => Self::Failed(error.to_string()),
        }
    }

    /// Returns [`Sandbox::Unavailable`]: there is no sandbox here.
    #[cfg(not(target_os = "linux"))]
    #[must_use]
    pub fn enter_allowing(_: &Root, _: Access, _: Option<AllowedService>) -> Self {
        Self::Unavailable
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;

    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, LandlockStatus, NetPort, PathBeneath, Ruleset,
        RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
    };

    use super::{Access, AllowedService, HostForm, Sandbox};
    use crate::Root;

    /// Newest version of Landlock whose restrictions are requested, as far as the kernel knows them.
    const NEWEST_ABI: ABI = ABI::V9;

    /// Version of Landlock whose restrictions are promised: files, TCP, signals, sockets without a file (Linux 6.12).
    /// Later ones (connections to sockets that are files) are a gain where they exist.
    const PROMISED_ABI: ABI = ABI::V6;

    /// Files that glibc reads to look up a name. If one of them is a link, its target is meant.
    const RESOLVER_FILES: &[&str] = &[
        "/etc/nsswitch.conf",
        "/etc/host.conf",
        "/etc/resolv.conf",
        "/etc/hosts",
        "/etc/gai.conf",
    ];

    pub(super) fn enter(
        root: &Root,
        access: Access,
        service: Option<AllowedService>,
    ) -> Result<LandlockStatus, RulesetError> {
        let reading = make_bitflags!(AccessFs::{ReadFile | ReadDir});
        // Truncating a file is not among them: none is ever changed in place.
        let writing =
            make_bitflags!(AccessFs::{WriteFile | MakeReg | RemoveFile | MakeDir | RemoveDir});
        let below_root = match access {
            Access::ReadOnly => reading,
            Access::ReadWrite => reading | writing,
        };
        let status = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST_ABI))?
            .handle_access(AccessNet::from_all(NEWEST_ABI))?
            .scope(Scope::from_all(NEWEST_ABI))?
            .create()?
            .add_rule(PathBeneath::new(root.dir(), below_root))?
            .add_rules(resolver_rules(service))?
            .add_rules(service.map(allow_port))?
            // Nothing else is opened or called later: whatever is needed gets its rule above.
            .restrict_self()?;
        Ok(status.landlock)
    }

    fn resolver_rules(
        service: Option<AllowedService>,
    ) -> impl Iterator<Item = Result<PathBeneath<File>, RulesetError>> {
        let paths = match service.map(|service| service.host_form) {
            Some(HostForm::Name) => RESOLVER_FILES,
            Some(HostForm::Address) | None => &[],
        };
        // A system need not have all of them.
        let files = paths.iter().filter_map(|path| File::open(path).ok());
        files.map(|file| Ok(PathBeneath::new(file, AccessFs::ReadFile)))
    }

    #[expect(clippy::unnecessary_wraps, reason = "rules come as results")]
    fn allow_port(service: AllowedService) -> Result<NetPort, RulesetError> {
        Ok(NetPort::new(service.port, AccessNet::ConnectTcp))
    }

    /// Converts the kernel's status to the part of the sandbox that it enforces.
    pub(super) fn enforced(kernel: LandlockStatus) -> Sandbox {
        match kernel {
            LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => Sandbox::Unavailable,
            LandlockStatus::Available { effective_abi, .. } if effective_abi < PROMISED_ABI => {
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
        let check = |kernel, told: &str| assert_eq!(linux::enforced(kernel).to_string(), told);
        let knows = |effective_abi| LandlockStatus::Available { effective_abi, kernel_abi: None };
        check(knows(ABI::V9), "landlock");
        check(knows(ABI::V6), "landlock");
        check(knows(ABI::V5), "landlock, partly");
        check(knows(ABI::V1), "landlock, partly");
        check(LandlockStatus::NotEnabled, "unavailable");
        check(LandlockStatus::NotImplemented, "unavailable");
    }
}
