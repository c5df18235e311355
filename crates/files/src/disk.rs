//! The store on disk: open beneath the root, lock, write beside, publish by rename.
//!
//! An update never touches a file in place. It locks the file, reads it, writes the new version to a temporary file in
//! the same folder, and only when everything is ready and the file still is what was read does a rename publish it. A
//! killed process leaves the old file or the new one. Readers take no lock: what they open is whole.

use std::{
    fs::File,
    io::Read,
    ops::ControlFlow,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    Call, Change, Decide, DirPath, Durable, Entry, FilePath, Root, Saved, Stamp, Stop, Store,
    StoreError, Version,
    lock::{self, Backoff},
    os::{self, Claim, Kind, Look, Stat, Temp},
    resolve::{Place, resolve},
    sweep::Swept,
    walk,
};

#[derive(Clone, Copy, Debug)]
pub struct DiskOptions {
    /// Largest file read or written, in bytes.
    pub max_size: u64,
    pub durability: Durability,
}

/// What an acknowledged change has to survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A killed process. A power loss may leave the file empty.
    None,
    /// A power loss leaves the old text or the new, whole.
    Data,
    /// A power loss leaves the new text.
    Full,
}

#[derive(Debug)]
pub struct DiskStore {
    root: Arc<Root>,
    options: DiskOptions,
    swept: Swept,
    /// Unnamed temporary files turned out not to work here.
    named_only: AtomicBool,
}

/// Whether a temporary file has a name while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Temps {
    Unnamed,
    Named,
}

/// Why an attempt ended without a result.
pub(crate) enum Halt {
    /// The file moved or changed: start over.
    Retry,
    /// An unnamed temporary file cannot be given a name here: start over with named ones.
    #[cfg_attr(windows, expect(dead_code, reason = "temporary files always have names there"))]
    NoLink,
    Failed(StoreError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Halt {
        Halt::Failed(error)
    }
}

impl DiskStore {
    pub fn open(root: Arc<Root>, options: DiskOptions) -> DiskStore {
        DiskStore { root, options, swept: Swept::default(), named_only: AtomicBool::new(false) }
    }

    /// For tests: as if the file system had no unnamed temporary files.
    #[doc(hidden)]
    #[must_use]
    pub fn with_named_temps(self) -> DiskStore {
        self.named_only.store(true, Ordering::Relaxed);
        self
    }

    /// Removes what killed servers left in the root. Done once; other folders are swept at the first write there.
    pub fn sweep_root(&self) {
        self.swept.sweep_once(self.root.dir(), &PathBuf::new());
    }

    fn temps(&self) -> Temps {
        if self.named_only.load(Ordering::Relaxed) { Temps::Named } else { Temps::Unnamed }
    }

    fn try_read(&self, at: &FilePath) -> Result<Option<Version>, Halt> {
        let place = match resolve(self.root.dir(), at.as_path()) {
            // A link into a folder that does not exist dangles like any other.
            Err(StoreError::NoFolder) => return Ok(None),
            place => place?,
        };
        if place.regular()?.is_none() {
            return Ok(None);
        }
        let opened =
            os::open_read(&place.folder, &place.name).map_err(StoreError::when("open the file"))?;
        let file = opened.ok_or(Halt::Retry)?;
        let stat = os::stat_open(&file).map_err(StoreError::when("look at the file"))?;
        if stat.kind != Kind::File {
            return Err(Halt::Retry);
        }
        let bytes = read_whole(&file, stat.stamp.size, self.options.max_size)?;
        Ok(Some(Version { bytes: Arc::new(bytes), stamp: stat.stamp }))
    }

    fn attempt(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
        temps: Temps,
    ) -> Result<Vec<Saved>, Halt> {
        let (mut targets, slots) = self.find_targets(at)?;
        lock_all(&mut targets, call)?;
        for target in &mut targets {
            target.load(self.options.max_size)?;
        }

        let versions: Vec<_> = slots.iter().map(|&slot| targets[slot].version.clone()).collect();
        let changes = change(&versions).map_err(|Stop| StoreError::Stopped)?;
        drop(versions);
        assert_eq!(changes.len(), at.len(), "one change for each path");
        for (slot, change) in slots.iter().zip(changes) {
            targets[*slot].plan(change, self.options.max_size)?;
        }

        let saved = self.save(&targets, call, temps)?;
        Ok(slots.into_iter().map(|slot| saved[slot].clone()).collect())
    }

    /// One target for each file, and for each path the index of its target: two paths may lead to one file.
    fn find_targets(&self, at: &[FilePath]) -> Result<(Vec<Target<'_>>, Vec<usize>), Halt> {
        let mut targets = Vec::with_capacity(at.len());
        let mut slots = Vec::with_capacity(at.len());
        let mut known = Vec::new();
        for path in at {
            let place = resolve(self.root.dir(), path.as_path())?;
            let seen = if at.len() == 1 {
                None
            } else {
                let folder =
                    os::identity(&place.folder).map_err(StoreError::when("look at the folder"))?;
                let key = (folder, place.name.clone());
                let seen = known.iter().position(|other| *other == key);
                known.extend(seen.is_none().then_some(key));
                seen
            };
            slots.push(seen.unwrap_or(targets.len()));
            if seen.is_none() {
                targets.push(Target::claim(place)?);
            }
        }
        Ok((targets, slots))
    }

    /// Writes everything beside, checks for the last time, publishes.
    fn save(&self, targets: &[Target<'_>], call: &Call, temps: Temps) -> Result<Vec<Saved>, Halt> {
        let mut staged = targets
            .iter()
            .map(|target| self.stage(target, temps))
            .collect::<Result<Vec<_>, _>>()?;
        if targets.iter().any(|target| target.change != Change::Keep) {
            // From here on nothing stops the call but a file that changed.
            call.check()?;
            for target in targets {
                target.check_unchanged()?;
            }
        }
        let mut saved = Vec::with_capacity(targets.len());
        for (target, temp) in targets.iter().zip(&mut staged) {
            match self.publish(target, temp.take()) {
                Ok(one) => saved.push(one),
                Err(halt) => {
                    for (target, done) in targets.iter().zip(&saved).rev() {
                        self.put_back(target, done);
                    }
                    return Err(halt);
                }
            }
        }
        Ok(saved)
    }

    fn stage<'t>(&self, target: &'t Target<'_>, temps: Temps) -> Result<Option<Temp<'t>>, Halt> {
        let Change::Write(bytes) = &target.change else { return Ok(None) };
        let folder = &*target.place.folder;
        self.swept.sweep_once(folder, &target.place.parent);
        let mut temp =
            Temp::write(folder, bytes, target.original(), self.options.durability, temps)?;
        if target.stat.is_some() {
            temp.give_name()?;
        }
        Ok(Some(temp))
    }

    fn publish(&self, target: &Target<'_>, temp: Option<Temp<'_>>) -> Result<Saved, Halt> {
        let Place { folder, name, .. } = &target.place;
        let stamp = match (temp, &target.stat) {
            (Some(temp), Some(_)) => temp.replace(name)?,
            (Some(temp), None) => temp.create(name)?,
            (None, Some(_)) if target.change == Change::Remove => {
                os::remove(folder, name).map_err(StoreError::when("remove the file"))?;
                Stamp::MISSING
            }
            (None, stat) => {
                let stamp = stat.as_ref().map_or(Stamp::MISSING, |stat| stat.stamp);
                return Ok(Saved { created: false, stamp, durable: Durable::Yes, links: 0 });
            }
        };
        let durable = match self.options.durability {
            Durability::None | Durability::Data => Durable::No,
            Durability::Full if os::sync_dir(folder).is_ok() => Durable::Yes,
            // The change is there for all to see, so this is no failure.
            Durability::Full => Durable::Unknown,
        };
        let links = target.stat.as_ref().map_or(0, |stat| stat.links.saturating_sub(1));
        Ok(Saved { created: target.stat.is_none(), stamp, durable, links })
    }

    /// Undoes one file of an update of several, of which a later one failed; as well as it can.
    fn put_back(&self, target: &Target<'_>, done: &Saved) {
        let Place { folder, name, .. } = &target.place;
        let now = os::stat(folder, name).ok().flatten().map_or(Stamp::MISSING, |stat| stat.stamp);
        if target.change == Change::Keep || now != done.stamp {
            return;
        }
        let Some(version) = &target.version else {
            let _ = os::remove(folder, name);
            return;
        };
        let temp = Temp::write(
            folder,
            &version.bytes,
            target.original(),
            self.options.durability,
            Temps::Named,
        );
        let _ = match (temp, &target.change) {
            (Ok(temp), Change::Remove) => temp.create(name),
            (Ok(temp), _) => temp.replace(name),
            (Err(halt), _) => Err(halt),
        };
    }
}

impl Store for DiskStore {
    fn read(&self, at: &FilePath, call: &Call) -> Result<Option<Version>, StoreError> {
        let mut backoff = Backoff::new();
        loop {
            call.check()?;
            match self.try_read(at) {
                Ok(version) => return Ok(version),
                Err(Halt::Retry | Halt::NoLink) => backoff.pause(call.deadline),
                Err(Halt::Failed(error)) => return Err(error),
            }
        }
    }

    fn list(
        &self,
        at: &DirPath,
        call: &Call,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        walk::list(self.root.dir(), at, call, each)
    }

    fn update(
        &self,
        at: &[FilePath],
        call: &Call,
        change: &mut Decide<'_>,
    ) -> Result<Vec<Saved>, StoreError> {
        let mut temps = self.temps();
        let mut backoff = Backoff::new();
        loop {
            call.check()?;
            match self.attempt(at, call, change, temps) {
                Ok(saved) => {
                    // Remembered only once named ones proved to work where unnamed ones did not.
                    if temps != self.temps() {
                        self.named_only.store(true, Ordering::Relaxed);
                    }
                    return Ok(saved);
                }
                Err(Halt::NoLink) if temps == Temps::Unnamed => temps = Temps::Named,
                Err(Halt::Retry | Halt::NoLink) => backoff.pause(call.deadline),
                Err(Halt::Failed(error)) => return Err(error),
            }
        }
    }
}

/// One file of an update.
struct Target<'r> {
    place: Place<'r>,
    claim: Claim,
    /// What the file was under the lock; `None` for missing, as in `version`.
    stat: Option<Stat>,
    version: Option<Version>,
    change: Change,
}

impl<'r> Target<'r> {
    fn claim(place: Place<'r>) -> Result<Target<'r>, Halt> {
        let claim = Claim::open(&place)?.ok_or(Halt::Retry)?;
        Ok(Target { place, claim, stat: None, version: None, change: Change::Keep })
    }

    /// Reads what the lock now protects.
    fn load(&mut self, max: u64) -> Result<(), Halt> {
        match self.claim.look(&self.place)? {
            Look::Moved => return Err(Halt::Retry),
            Look::Missing => {}
            Look::Present(stat) => {
                let bytes = Arc::new(self.claim.read(&self.place, &stat, max)?);
                self.version = Some(Version { bytes, stamp: stat.stamp });
                self.stat = Some(stat);
            }
        }
        Ok(())
    }

    /// Takes over a change, if it is one.
    fn plan(&mut self, change: Change, max: u64) -> Result<(), StoreError> {
        let change = match (change, &self.version) {
            (Change::Remove, None) => Change::Keep,
            (Change::Write(bytes), Some(version)) if bytes == *version.bytes => Change::Keep,
            (Change::Write(bytes), _) if bytes.len() as u64 > max => {
                return Err(StoreError::TooLarge { size: bytes.len() as u64, max });
            }
            (change, _) => change,
        };
        if change == Change::Keep || change == self.change {
            return Ok(());
        }
        if self.change != Change::Keep {
            return Err(StoreError::SameFile);
        }
        self.change = change;
        Ok(())
    }

    fn original(&self) -> Option<(&Claim, &Stat)> {
        self.stat.as_ref().map(|stat| (&self.claim, stat))
    }

    /// Notices whoever changes files without asking for the lock.
    fn check_unchanged(&self) -> Result<(), Halt> {
        let now = os::stat(&self.place.folder, &self.place.name)
            .map_err(StoreError::when("look at the file"))?;
        let stamp = |stat: Option<&Stat>| stat.map(|stat| stat.stamp);
        if stamp(now.as_ref()) == stamp(self.stat.as_ref()) { Ok(()) } else { Err(Halt::Retry) }
    }
}

/// Everybody locks in the same order, so that two calls never wait for each other.
fn lock_all(targets: &mut [Target<'_>], call: &Call) -> Result<(), StoreError> {
    if let [target] = targets {
        return lock::wait(call, || target.claim.try_lock());
    }
    let mut order = Vec::with_capacity(targets.len());
    for (index, target) in targets.iter().enumerate() {
        order.push((target.claim.key()?, index));
    }
    order.sort_unstable();
    // Two names of one file have one lock between them.
    order.dedup_by(|one, other| one.0 == other.0);
    order
        .into_iter()
        .try_for_each(|(_, index)| lock::wait(call, || targets[index].claim.try_lock()))
}

/// Reads to the end, whatever the size was said to be, but never more than `max`.
pub(crate) fn read_whole(file: &File, size: u64, max: u64) -> Result<Vec<u8>, StoreError> {
    if size > max {
        return Err(StoreError::TooLarge { size, max });
    }
    // One byte more than expected: the read that finds the end needs no other buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(StoreError::when("read the file"))?;
    match bytes.len() as u64 {
        size if size > max => Err(StoreError::TooLarge { size, max }),
        _ => Ok(bytes),
    }
}
