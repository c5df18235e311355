//! Listing one folder. Which names to show, and in what order, is the tools' business.

use std::{ffi::OsString, io, ops::ControlFlow};

use cap_std::fs::Dir;

use crate::{
    Call, DirPath, Entry, StoreError,
    os::{self, Kind, Stat},
    resolve::{open_folder, resolve, uninterrupted},
    store::system_time,
    temp_name,
};

/// What may be a file, hidden or not.
fn names(folder: &Dir) -> io::Result<Vec<OsString>> {
    uninterrupted(|| {
        let mut names = Vec::new();
        for entry in folder.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder && !temp_name::is_ours(&name) {
                names.push(name);
            }
        }
        Ok(names)
    })
}

pub(crate) fn list(
    root: &Dir,
    at: &DirPath,
    call: &Call,
    each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let folder = open_folder(root, at.as_path())?;
    // A removed folder still opens by its handle, and looks empty.
    if os::is_removed(&folder) {
        return Err(StoreError::NoFolder);
    }
    for name in names(&folder).map_err(StoreError::when("read the folder"))? {
        call.check()?;
        // What vanished meanwhile, leads outside or cannot be looked at is not a file one could read.
        let stat = match os::stat(&folder, &name) {
            Ok(Some(stat)) if stat.kind == Kind::Link => {
                resolve(root, &at.as_path().join(&name)).ok().and_then(|place| place.stat)
            }
            stat => stat.ok().flatten(),
        };
        if let Some(Stat { kind: Kind::File, stamp, .. }) = stat {
            let entry =
                Entry { name, size: stamp.size, modified: system_time(stamp.modified), stamp };
            if each(entry).is_break() {
                break;
            }
        }
    }
    Ok(())
}
