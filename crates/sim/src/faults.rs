//! How an engine run ends, and the disk faults during it.

use std::io::ErrorKind;

use nfold_store::{FaultOn, SimDisk, SimRng};

/// How an engine run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The power fails after this number of writes, syncs and name changes, or at the last step if
    /// there are fewer.
    Power(u64),
    /// The process is killed, and the operating system survives.
    Kill,
    /// A clean shutdown.
    Shutdown,
    /// A clean shutdown at the end of the last engine run of the seed.
    Last,
}

impl Ending {
    pub fn choose(rng: &mut SimRng) -> Ending {
        match rng.below(12) {
            // Many of these interrupt a recovery.
            0..=3 => Ending::Power(rng.below(60)),
            4..=7 => Ending::Power(rng.below(800)),
            8 | 9 => Ending::Power(rng.below(4000)),
            10 => Ending::Kill,
            _ => Ending::Shutdown,
        }
    }
}

/// The disk faults of one engine run.
#[derive(Default)]
pub struct Faults {
    from: u64,
    to: u64,
    kind: FaultKind,
    active: bool,
}

#[derive(Default)]
enum FaultKind {
    #[default]
    None,
    /// The disk has room for only this number of bytes more.
    Full(u64),
    /// The given number of calls fail: (kind of call, file name prefix, calls that succeed first,
    /// calls that fail).
    Io(FaultOn, &'static str, u64, u64),
}

impl Faults {
    pub fn choose(rng: &mut SimRng, ending: Ending) -> Faults {
        let from = rng.below(200);
        let kind = match rng.below(8) {
            0 | 1 => FaultKind::Full(rng.below(300_000)),
            2 | 3 => {
                let on = match rng.below(if ending == Ending::Last { 3 } else { 4 }) {
                    0 => FaultOn::Read,
                    1 => FaultOn::Write,
                    2 => FaultOn::Allocate,
                    // A failed sync ends the process.
                    _ => FaultOn::Sync,
                };
                let names = ["t", "undo", "dictionary", ""];
                // With "", the log and the control file are included, whose failure ends the
                // process, too.
                let all = if ending == Ending::Last { 3 } else { 4 };
                let prefix = names[rng.below(all) as usize];
                FaultKind::Io(on, prefix, rng.below(30), 1 + rng.below(4))
            }
            _ => FaultKind::None,
        };
        Faults {
            from,
            to: from + 20 + rng.below(120),
            kind,
            active: false,
        }
    }

    /// Whether errors are expected at this moment.
    pub fn active(&self) -> bool {
        self.active
    }

    /// Starts or ends the faults. Called before each step of an engine run.
    pub fn at_step(&mut self, step: u64, disk: &SimDisk) {
        if step == self.from {
            match self.kind {
                FaultKind::None => return,
                FaultKind::Full(room) => disk.set_capacity(Some(disk.used() + room)),
                FaultKind::Io(on, prefix, skip, count) => {
                    disk.inject(on, prefix, skip, count, ErrorKind::Other);
                }
            }
            self.active = true;
        } else if step == self.to {
            self.end(disk);
        }
    }

    /// Ends all faults.
    pub fn end(&mut self, disk: &SimDisk) {
        if self.active {
            disk.clear_faults();
            disk.set_capacity(None);
            self.active = false;
        }
    }
}
