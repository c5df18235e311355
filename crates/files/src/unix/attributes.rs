//! Copies the attributes of a file to the one that replaces it: owner, extended attributes (ACLs are among them), mode.
//!
//! An attribute that this user may not set does not stop an edit, but its loss never gives anyone more rights. Setuid,
//! setgid and capabilities, which make a file run with the rights of its owner, are dropped as with any write: they
//! were meant for other contents.

use std::{fs::File, io::Read as _, sync::OnceLock};

use cap_std::fs::Dir;
use rustix::{
    fs::{Gid, Mode, Uid, fchmod, fchown},
    io::{Errno, retry_on_intr},
};

use super::{Stat, stat_open};

/// Outcome of copying the attributes.
pub(super) struct CopiedAttributes {
    /// Mode that the new file should have now, and the result of setting it.
    pub mode: Mode,
    pub mode_set: Result<(), Errno>,
    /// Names of the attributes that could not be kept.
    pub lost: Vec<&'static str>,
    /// True if the original had a setuid or setgid bit, or file capabilities.
    pub was_privileged: bool,
}

/// Mode bits by which a file runs with the rights of its owner or group.
const PRIVILEGE_BITS: Mode = Mode::SUID.union(Mode::SGID);

/// Copies the attributes of `original` to `temp`. The mode comes last: the other steps clear or widen bits of it. Fails
/// if the folder's default list gave `temp` an access list that cannot be removed.
pub(super) fn copy(original: &File, stat: &Stat, temp: &File) -> Result<CopiedAttributes, Errno> {
    let (uid, gid) = (Some(Uid::from_raw(stat.uid)), Some(Gid::from_raw(stat.gid)));
    // The right owner is mostly set from the start, also where nobody is allowed to change it.
    let new = stat_open(temp).ok();
    let has = |fits: fn(&Stat, &Stat) -> bool| new.as_ref().is_some_and(|new| fits(new, stat));
    let owner_kept = has(|new, stat| (new.uid, new.gid) == (stat.uid, stat.gid))
        || retry_on_intr(|| fchown(temp, uid, gid)).is_ok();
    let group_kept = owner_kept
        || has(|new, stat| new.gid == stat.gid)
        || retry_on_intr(|| fchown(temp, None, gid)).is_ok();
    let xattr::KeptXattrs { acl: acl_kept, others: others_kept, had_capabilities } =
        xattr::copy(original, temp)?;

    let unprivileged = stat.mode.difference(PRIVILEGE_BITS);
    let mut mode = unprivileged;
    if !group_kept || !acl_kept {
        // The group bits were meant for another group, or bound an ACL that is lost: the group gets no more than all
        // others.
        for (group, all) in
            [(Mode::RGRP, Mode::ROTH), (Mode::WGRP, Mode::WOTH), (Mode::XGRP, Mode::XOTH)]
        {
            if !mode.contains(all) {
                mode.remove(group);
            }
        }
    }
    let mode_set = set_mode(temp, mode);
    let kept = [
        ("owner", owner_kept),
        ("group", group_kept),
        ("access list", acl_kept),
        ("extended attributes", others_kept),
        ("mode", mode == unprivileged),
    ];
    Ok(CopiedAttributes {
        mode,
        mode_set,
        lost: kept.into_iter().filter(|(_, kept)| !kept).map(|(name, _)| name).collect(),
        was_privileged: had_capabilities || stat.mode.intersects(PRIVILEGE_BITS),
    })
}

pub(super) fn set_mode(file: &File, mode: Mode) -> Result<(), Errno> {
    retry_on_intr(|| fchmod(file, mode))
}

/// Source of the mode of a new file.
#[derive(Clone, Copy)]
pub(super) enum NewMode {
    /// The mode that a program requests, less the umask.
    Known(Mode),
    /// The folder's default access list, which the kernel applies to the requested mode at creation.
    FromFolder(Mode),
}

pub(super) fn mode_of_new_file(dir: &Dir) -> NewMode {
    let asked = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    if xattr::may_have_default_acl(dir) {
        return NewMode::FromFolder(asked);
    }
    NewMode::Known(asked.difference(umask()))
}

/// Returns the umask of the process, read once: nothing here changes it, and inside the sandbox it could not be read.
pub(crate) fn umask() -> Mode {
    static UMASK: OnceLock<Mode> = OnceLock::new();
    *UMASK.get_or_init(|| {
        if let Some(bits) = umask_from_proc() {
            return Mode::from_bits_truncate(bits.into());
        }
        // Other systems return the umask only when it is set: for a moment, to something strict.
        let umask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
        rustix::process::umask(umask);
        umask
    })
}

/// Reads the umask from `/proc/self/status`, which has it in the second line. Linux only.
fn umask_from_proc() -> Option<u16> {
    let mut head = [0; 128];
    let read = File::open("/proc/self/status").ok()?.read(&mut head).ok()?;
    let mut lines = str::from_utf8(&head[..read]).ok()?.lines();
    let octal = lines.find_map(|line| line.strip_prefix("Umask:"))?;
    u16::from_str_radix(octal.trim(), 8).ok()
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
mod xattr {
    use std::{ffi::CStr, fs::File};

    use cap_std::fs::Dir;
    use rustix::{
        buffer::spare_capacity,
        fs::{
            XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fremovexattr,
            fsetxattr,
        },
        io::{Errno, retry_on_intr},
    };

    use super::super::reopen;

    const ACL: &CStr = c"system.posix_acl_access";
    const CAPABILITIES: &CStr = c"security.capability";

    /// Signatures of the old bytes: with other bytes they would make the file unreadable.
    const CONTENT_SIGNATURES: [&CStr; 2] = [c"security.ima", c"security.evm"];

    /// True if new files of a folder get an access list, and also if that is not known: a mode set by us could give
    /// more rights than the list.
    pub(super) fn may_have_default_acl(dir: &Dir) -> bool {
        let size = reopen(dir)
            .and_then(|dir| retry_on_intr(|| fgetxattr_query(&dir, c"system.posix_acl_default")));
        // Only Linux has default access lists.
        cfg!(target_os = "linux")
            && !matches!(size, Ok(0) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS))
    }

    pub(super) struct KeptXattrs {
        pub acl: bool,
        pub others: bool,
        pub had_capabilities: bool,
    }

    /// Copies the extended attributes that can be copied. A file whose attributes cannot be listed may have had an
    /// access list. Fails if `to` has an access list from the folder that cannot be removed.
    pub(super) fn copy(from: &File, to: &File) -> Result<KeptXattrs, Errno> {
        let Some(names) = list(from) else {
            remove_acl(to)?;
            return Ok(KeptXattrs { acl: false, others: false, had_capabilities: false });
        };
        let names: Vec<&CStr> = names
            .split_inclusive(|&byte| byte == 0)
            .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
            .filter(|name| !CONTENT_SIGNATURES.contains(name))
            .collect();
        let had_capabilities = names.contains(&CAPABILITIES);
        let mut all = KeptXattrs { acl: true, others: true, had_capabilities };
        for name in names.iter().copied().filter(|name| *name != CAPABILITIES) {
            let kept = read(from, name).is_some_and(|value| {
                retry_on_intr(|| fsetxattr(to, name, &value, XattrFlags::empty())).is_ok()
            });
            if name == ACL {
                all.acl &= kept;
            } else {
                all.others &= kept;
            }
        }
        if !all.acl || !names.contains(&ACL) {
            remove_acl(to)?;
        }
        Ok(all)
    }

    /// Removes the access list that the folder's default list may have given a new file. It would open the file to the
    /// users named in it.
    fn remove_acl(file: &File) -> Result<(), Errno> {
        // Checking costs less than removing nothing.
        match retry_on_intr(|| fgetxattr_query(file, ACL)) {
            Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            _ => match retry_on_intr(|| fremovexattr(file, ACL)) {
                Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
                outcome => outcome,
            },
        }
    }

    /// Lists attribute names, each ended by a zero byte; none where the file system has no attributes. `None` if it
    /// fails.
    fn list(file: &File) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        match retry_on_intr(|| flistxattr_query(file)) {
            Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Ok(size) => {
                names.reserve(size);
                retry_on_intr(|| flistxattr(file, spare_capacity(&mut names))).ok()?;
            }
            Err(_) => return None,
        }
        Some(names)
    }

    fn read(file: &File, name: &CStr) -> Option<Vec<u8>> {
        let size = retry_on_intr(|| fgetxattr_query(file, name)).ok()?;
        let mut value = Vec::with_capacity(size);
        if value.capacity() > 0 {
            retry_on_intr(|| fgetxattr(file, name, spare_capacity(&mut value))).ok()?;
        }
        Some(value)
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
mod xattr {
    pub(super) fn may_have_default_acl(_: &cap_std::fs::Dir) -> bool {
        false
    }

    pub(super) struct KeptXattrs {
        pub acl: bool,
        pub others: bool,
        pub had_capabilities: bool,
    }

    pub(super) fn copy(
        _: &std::fs::File,
        _: &std::fs::File,
    ) -> Result<KeptXattrs, rustix::io::Errno> {
        Ok(KeptXattrs { acl: true, others: true, had_capabilities: false })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_umask_is_told_and_a_plain_folder_has_no_list() {
        assert_eq!(
            umask_from_proc().map(|bits| Mode::from_bits_truncate(bits.into())),
            Some(umask())
        );
        let dir = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(dir.path(), cap_std::ambient_authority()).unwrap();
        assert!(!xattr::may_have_default_acl(&dir));
    }
}
