//! Makes a new file look like the one it replaces: owner, extended attributes (ACLs are among them), mode.
//!
//! As much as we are allowed to: what cannot be kept does not stop an edit, but it never gives anyone more rights.

use std::fs::File;

use rustix::{
    fs::{Gid, Mode, Uid, fchmod, fchown},
    io::retry_on_intr,
};

use super::Stat;

/// Gives `temp` the attributes of `original` and returns the mode it should have now. The mode comes last: the other
/// steps clear or widen bits of it.
pub(super) fn copy(original: &File, stat: &Stat, temp: &File) -> Mode {
    let (uid, gid) = (Some(Uid::from_raw(stat.uid)), Some(Gid::from_raw(stat.gid)));
    let owner_kept = retry_on_intr(|| fchown(temp, uid, gid)).is_ok();
    let group_kept = owner_kept || retry_on_intr(|| fchown(temp, None, gid)).is_ok();
    let acl_kept = xattr::copy(original, temp);

    let mut mode = stat.mode;
    if !owner_kept {
        mode.remove(Mode::SUID | Mode::SGID);
    }
    if !group_kept || !acl_kept {
        // The group bits were meant for another group, or bound an ACL that is lost: the group gets what all get.
        for (group, all) in
            [(Mode::RGRP, Mode::ROTH), (Mode::WGRP, Mode::WOTH), (Mode::XGRP, Mode::XOTH)]
        {
            if !mode.contains(all) {
                mode.remove(group);
            }
        }
    }
    // Whether it worked is seen when the file is checked before publishing.
    let _ = retry_on_intr(|| fchmod(temp, mode));
    mode
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
mod xattr {
    use std::{ffi::CStr, fs::File};

    use rustix::{
        buffer::spare_capacity,
        fs::{
            XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fremovexattr,
            fsetxattr,
        },
        io::Errno,
    };

    const ACL: &CStr = c"system.posix_acl_access";

    /// Signatures of the old bytes: on other bytes they would make the file unreadable.
    const OF_THE_BYTES: [&CStr; 2] = [c"security.ima", c"security.evm"];

    /// Copies what can be copied; false if an access list was, or may have been, lost.
    pub(super) fn copy(from: &File, to: &File) -> bool {
        let Some(names) = list(from) else { return false };
        let names: Vec<&CStr> = names
            .split_inclusive(|&byte| byte == 0)
            .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
            .filter(|name| !OF_THE_BYTES.contains(name))
            .collect();
        if !names.contains(&ACL) {
            // The folder's default list may have given the new file one.
            let _ = fremovexattr(to, ACL);
        }
        let mut acl_kept = true;
        for name in names {
            let kept = read(from, name)
                .is_some_and(|value| fsetxattr(to, name, &value, XattrFlags::empty()).is_ok());
            acl_kept &= kept || name != ACL;
        }
        acl_kept
    }

    /// Names, each ended by a zero byte; none where the file system has no attributes. `None`: they cannot be told.
    fn list(file: &File) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        match flistxattr_query(file) {
            Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Ok(size) => {
                names.reserve(size);
                flistxattr(file, spare_capacity(&mut names)).ok()?;
            }
            Err(_) => return None,
        }
        Some(names)
    }

    fn read(file: &File, name: &CStr) -> Option<Vec<u8>> {
        let mut value = Vec::with_capacity(fgetxattr_query(file, name).ok()?);
        if value.capacity() > 0 {
            fgetxattr(file, name, spare_capacity(&mut value)).ok()?;
        }
        Some(value)
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
mod xattr {
    pub(super) fn copy(_: &std::fs::File, _: &std::fs::File) -> bool {
        true
    }
}
