//! Listing one folder. Which names to show, and in what order, is the tools' business.

use std::ops::ControlFlow;

use cap_std::fs::Dir;

use crate::{
    Call, DirPath, Entry, StoreError,
    os::{self, Kind, Stat},
    resolve::{open_folder, resolve},
    store::system_time,
    temp_name,
};

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
    for entry in folder.entries().map_err(StoreError::when("read the folder"))? {
        call.check()?;
        let entry = entry.map_err(StoreError::when("read the folder"))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let name = entry.file_name();
        if temp_name::is_ours(&name) {
            continue;
        }
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
