//! A simulated disk in memory that loses unsynced writes at a crash. For tests, and for the
//! simulator of the whole server.
//!
//! # Picture
//! ```text
//! file     durable bytes + writes since the last sync, in order; readers see all of them
//! crash    per 512-byte sector: the durable bytes plus a random prefix of the later writes to it
//! names    durable directory + changes since the last sync_dir; a crash keeps a random prefix
//! ```
//! # Invariants
//! - D1: after a crash, a sector contains the result of some prefix of the writes to it. Sectors
//!   choose their prefixes independently. So writes can be lost, torn and reordered, and nothing
//!   else can happen.
//! - D2: the same seed and the same calls produce the same crash image.
//! # Failure
//! Faults can be injected: an error of the n-th write or sync of files with a name prefix, a full
//! disk, and a power failure after the n-th write. After a power failure, every call fails.
//! [`SimDisk::crash`] returns the disk that survives it.

use super::{Disk, DiskFile, OpenMode};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

const SECTOR: usize = 512;

/// A small portable pseudorandom generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct SimRng(u64);

impl SimRng {
    pub fn new(seed: u64) -> SimRng {
        SimRng(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next_u64() % n }
    }

    /// True with probability 1 / `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The kind of call that an injected fault affects.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FaultOn {
    Read,
    Write,
    Sync,
    Allocate,
}

struct Fault {
    on: FaultOn,
    prefix: String,
    /// The number of matching calls that succeed first.
    skip: u64,
    /// The number of matching calls that fail after that.
    count: u64,
    kind: io::ErrorKind,
}

#[derive(Clone)]
struct Write {
    off: usize,
    bytes: Vec<u8>,
}

#[derive(Clone, Default)]
struct FileState {
    name: String,
    durable: Vec<u8>,
    now: Vec<u8>,
    pending: Vec<Write>,
}

#[derive(Clone)]
enum NameChange {
    Link(String, usize),
    Remove(String),
    Rename(String, String),
}

#[derive(Default)]
struct State {
    files: Vec<FileState>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    changes: Vec<NameChange>,
    faults: Vec<Fault>,
    capacity: Option<u64>,
    /// The number of steps (writes, syncs, name changes) until the power fails.
    power: Option<u64>,
    dead: bool,
    writes: u64,
    syncs: u64,
    /// A digest of all steps in order.
    trace: u64,
}

fn apply(names: &mut BTreeMap<String, usize>, change: &NameChange) {
    match change {
        NameChange::Link(name, file) => {
            names.insert(name.clone(), *file);
        }
        NameChange::Remove(name) => {
            names.remove(name);
        }
        NameChange::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
    }
}

impl State {
    fn alive(&self) -> io::Result<()> {
        if self.dead {
            Err(io::Error::other("simulated power failure"))
        } else {
            Ok(())
        }
    }

    /// Counts a step that changes the disk (write, sync, name change) and adds `what` to the trace.
    /// Fails if the power fails at this step.
    fn step(&mut self, what: u64) -> io::Result<()> {
        self.alive()?;
        self.trace = SimRng::new(self.trace ^ what).next_u64();
        if let Some(left) = &mut self.power {
            if *left == 0 {
                self.dead = true;
                return self.alive();
            }
            *left -= 1;
        }
        Ok(())
    }

    fn fault(&mut self, on: FaultOn, file: usize) -> io::Result<()> {
        let name = &self.files[file].name;
        for fault in &mut self.faults {
            if fault.on == on && fault.count > 0 && name.starts_with(&fault.prefix) {
                if fault.skip > 0 {
                    fault.skip -= 1;
                    continue;
                }
                fault.count -= 1;
                return Err(io::Error::new(fault.kind, "injected fault"));
            }
        }
        Ok(())
    }

    fn change(&mut self, change: NameChange) {
        apply(&mut self.names, &change);
        self.changes.push(change);
    }

    /// Extends a file to at least `len` bytes, if the disk has room.
    fn extend(&mut self, file: usize, len: usize) -> io::Result<()> {
        if len <= self.files[file].now.len() {
            return Ok(());
        }
        if let Some(capacity) = self.capacity {
            let used: u64 = self
                .names
                .values()
                .map(|f| self.files[*f].now.len() as u64)
                .sum();
            if used + (len - self.files[file].now.len()) as u64 > capacity {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
        }
        self.files[file].now.resize(len, 0);
        Ok(())
    }
}

/// See the module header. Clones share the disk.
#[derive(Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl SimDisk {
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    /// Simulates a power failure: returns the disk that survives it, without faults. Calls on this
    /// disk fail from now on.
    pub fn crash(&self, seed: u64) -> SimDisk {
        let image = self.crash_image(seed);
        self.state.lock().dead = true;
        image
    }

    /// Returns the disk that would survive a power failure at this moment. This disk continues to
    /// work.
    pub fn crash_image(&self, seed: u64) -> SimDisk {
        let mut rng = SimRng::new(seed);
        let old = self.state.lock();
        let mut names = old.durable_names.clone();
        let kept = rng.below(old.changes.len() as u64 + 1) as usize;
        for change in &old.changes[..kept] {
            apply(&mut names, change);
        }
        let mut new = State::default();
        for (name, file) in names {
            let bytes = survivor(&old.files[file], &mut rng);
            new.names.insert(name.clone(), new.files.len());
            new.files.push(FileState {
                name,
                now: bytes.clone(),
                durable: bytes,
                pending: Vec::new(),
            });
        }
        new.durable_names = new.names.clone();
        new.capacity = old.capacity;
        SimDisk {
            state: Arc::new(Mutex::new(new)),
        }
    }

    /// Simulates a kill of the process: the operating system keeps all completed writes. Calls on
    /// this disk fail from now on.
    pub fn kill(&self) -> SimDisk {
        let mut old = self.state.lock();
        old.dead = true;
        // Unsynced writes and names stay unsynced.
        let new = State {
            files: old.files.clone(),
            names: old.names.clone(),
            durable_names: old.durable_names.clone(),
            changes: old.changes.clone(),
            capacity: old.capacity,
            ..State::default()
        };
        SimDisk {
            state: Arc::new(Mutex::new(new)),
        }
    }

    /// Returns a copy with the same bytes, all of them durable. This disk continues to work.
    pub fn copy(&self) -> SimDisk {
        let old = self.state.lock();
        let files = old.files.iter().map(|file| FileState {
            name: file.name.clone(),
            now: file.now.clone(),
            durable: file.now.clone(),
            pending: Vec::new(),
        });
        let new = State {
            files: files.collect(),
            names: old.names.clone(),
            durable_names: old.names.clone(),
            ..State::default()
        };
        SimDisk {
            state: Arc::new(Mutex::new(new)),
        }
    }

    /// Lets the power fail after `steps` more writes, syncs or name changes.
    pub fn fail_power_after(&self, steps: u64) {
        self.state.lock().power = Some(steps);
    }

    /// Whether the power has failed.
    pub fn is_dead(&self) -> bool {
        self.state.lock().dead
    }

    /// Injects a fault: of the matching calls on files whose name starts with `prefix`, the first
    /// `skip` succeed, and the next `count` fail with `kind`.
    pub fn inject(&self, on: FaultOn, prefix: &str, skip: u64, count: u64, kind: io::ErrorKind) {
        self.state.lock().faults.push(Fault {
            on,
            prefix: prefix.to_string(),
            skip,
            count,
            kind,
        });
    }

    /// Removes all injected faults.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// Limits the total size of all files to `bytes`. `None` means no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// The total size of all files in bytes.
    pub fn used(&self) -> u64 {
        let state = self.state.lock();
        state
            .names
            .values()
            .map(|f| state.files[*f].now.len() as u64)
            .sum()
    }

    /// The number of writes and of syncs so far.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.writes, state.syncs)
    }

    /// A digest of all writes, syncs and name changes so far, in order. It covers their positions
    /// and not the bytes written.
    pub fn trace(&self) -> u64 {
        self.state.lock().trace
    }

    /// Flips the lowest bit of a byte of a file, durably. Returns false if the byte does not exist.
    pub fn flip_bit(&self, name: &str, off: u64) -> bool {
        self.flip_bit_of(name, off, 0)
    }

    /// Flips bit `bit` (0 to 7) of a byte of a file, durably. Returns false if the byte does not
    /// exist.
    pub fn flip_bit_of(&self, name: &str, off: u64, bit: u32) -> bool {
        let mut state = self.state.lock();
        let Some(file) = state.names.get(name).copied() else {
            return false;
        };
        let file = &mut state.files[file];
        let off = off as usize;
        if off >= file.now.len() {
            return false;
        }
        file.now[off] ^= 1 << (bit % 8);
        if off < file.durable.len() {
            file.durable[off] ^= 1 << (bit % 8);
        }
        true
    }
}

/// A number for the trace that identifies a position in a file.
fn place(file: usize, off: u64, len: u64) -> u64 {
    ((file as u64) << 48) ^ (len << 32) ^ off
}

/// The bytes of a file after a crash: to each sector, a random prefix of the pending writes is
/// applied (D1).
fn survivor(file: &FileState, rng: &mut SimRng) -> Vec<u8> {
    let mut bytes = file.durable.clone();
    let mut choice: BTreeMap<usize, u64> = BTreeMap::new();
    // Some crashes keep nearly all writes, some nearly none, most a mixture.
    let keep_of_8 = rng.below(9);
    for write in &file.pending {
        let end = write.off + write.bytes.len();
        let mut at = write.off;
        while at < end {
            let sector = at / SECTOR;
            let to = ((sector + 1) * SECTOR).min(end);
            // Once a write to a sector is lost, all later writes to it are lost, because each
            // sector keeps a prefix.
            let lost = choice.entry(sector).or_insert(0);
            if *lost == 0 && rng.below(8) >= keep_of_8 {
                *lost = 1;
            }
            if *lost == 0 {
                if bytes.len() < to {
                    bytes.resize(to, 0);
                }
                bytes[at..to].copy_from_slice(&write.bytes[at - write.off..to - write.off]);
            }
            at = to;
        }
    }
    if file.now.len() > bytes.len() && rng.one_in(2) {
        bytes.resize(file.now.len(), 0);
    }
    bytes
}

impl Disk for SimDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        state.alive()?;
        let file = match (state.names.get(name).copied(), mode) {
            (Some(_), OpenMode::CreateNew) => {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists));
            }
            (Some(file), _) => file,
            (None, OpenMode::Existing) => return Err(io::Error::from(io::ErrorKind::NotFound)),
            (None, _) => {
                state.step(1)?;
                let file = state.files.len();
                state.files.push(FileState {
                    name: name.to_string(),
                    ..FileState::default()
                });
                state.change(NameChange::Link(name.to_string(), file));
                file
            }
        };
        Ok(Arc::new(SimFile {
            state: self.state.clone(),
            file,
        }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.alive()?;
        if !state.names.contains_key(name) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        state.step(2)?;
        state.change(NameChange::Remove(name.to_string()));
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.alive()?;
        let Some(file) = state.names.get(from).copied() else {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        };
        state.step(3)?;
        state.files[file].name = to.to_string();
        state.change(NameChange::Rename(from.to_string(), to.to_string()));
        Ok(())
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        state.alive()?;
        Ok(state
            .names
            .keys()
            .filter(|n| n.starts_with(prefix))
            .cloned()
            .collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.step(4)?;
        let changes = std::mem::take(&mut state.changes);
        for change in &changes {
            apply(&mut state.durable_names, change);
        }
        Ok(())
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        let state = self.state.lock();
        state.alive()?;
        Ok(state.names.contains_key(name))
    }
}

struct SimFile {
    state: Arc<Mutex<State>>,
    file: usize,
}

impl DiskFile for SimFile {
    fn read_at(&self, off: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        state.alive()?;
        state.fault(FaultOn::Read, self.file)?;
        let off = off as usize;
        let file = &state.files[self.file];
        let bytes = file
            .now
            .get(off..off + buf.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, off: u64, buf: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        state.alive()?;
        state.fault(FaultOn::Write, self.file)?;
        let off = off as usize;
        // A write that is interrupted by the power failure fails, but counts as pending, because a
        // part of it may survive.
        let result = state.step(place(self.file, off as u64, buf.len() as u64));
        state.extend(self.file, off + buf.len())?;
        state.writes += 1;
        let file = &mut state.files[self.file];
        file.now[off..off + buf.len()].copy_from_slice(buf);
        file.pending.push(Write {
            off,
            bytes: buf.to_vec(),
        });
        result
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.alive()?;
        state.fault(FaultOn::Sync, self.file)?;
        state.step(place(self.file, 5, 0))?;
        state.syncs += 1;
        let FileState {
            durable,
            now,
            pending,
            ..
        } = &mut state.files[self.file];
        durable.resize(now.len(), 0);
        for write in pending.drain(..) {
            // Clipped, because the file may have been truncated since the write.
            if write.off < durable.len() {
                let n = write.bytes.len().min(durable.len() - write.off);
                durable[write.off..write.off + n].copy_from_slice(&write.bytes[..n]);
            }
        }
        debug_assert!(
            durable == now,
            "after a sync, the durable bytes are the bytes that readers see"
        );
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.state.lock();
        state.alive()?;
        Ok(state.files[self.file].now.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.step(place(self.file, 6, len))?;
        let len = len as usize;
        state.extend(self.file, len)?;
        let file = &mut state.files[self.file];
        if len < file.now.len() {
            // Truncation is durable at once. No code relies on a truncation being undone.
            file.now.truncate(len);
            file.durable.truncate(len);
            for write in &mut file.pending {
                write.bytes.truncate(len.saturating_sub(write.off));
            }
        }
        Ok(())
    }

    fn allocate(&self, off: u64, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.alive()?;
        state.fault(FaultOn::Allocate, self.file)?;
        state.step(place(self.file, off, len))?;
        state.extend(self.file, (off + len) as usize)
    }
}

#[cfg(test)]
mod tests;
