//! How a life of the engine ends, and what the disk refuses before.

use std::io::ErrorKind;

use nfold_store::{FaultOn, SimDisk, SimRng};

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The power fails after so many writes, syncs and changes of names; at the last step if there are fewer.
    Power(u64),
    /// The process is killed, the system lives.
    Kill,
    /// A clean shutdown.
    Shutdown,
    /// The same, and the last life of the seed.
    Last,
}

impl Ending {
    pub fn choose(rng: &mut SimRng) -> Ending {
        match rng.below(12) {
            // Many of these cut a recovery short.
            0..=3 => Ending::Power(rng.below(60)),
            4..=7 => Ending::Power(rng.below(800)),
            8 | 9 => Ending::Power(rng.below(4000)),
            10 => Ending::Kill,
            _ => Ending::Shutdown,
        }
    }
}

/// What goes wrong with the disk in one life.
#[derive(Default)]
pub struct Faults {
    from: u64,
    to: u64,
    kind: Kind,
    active: bool,
}

#[derive(Default)]
enum Kind {
    #[default]
    None,
    /// The disk has room for so many bytes more.
    Full(u64),
    /// So many calls fail after some.
    Io(FaultOn, &'static str, u64, u64),
}

impl Faults {
    pub fn choose(rng: &mut SimRng, ending: Ending) -> Faults {
        let from = rng.below(200);
        let kind = match rng.below(8) {
            0 | 1 => Kind::Full(rng.below(300_000)),
            2 | 3 => {
                let on = match rng.below(if ending == Ending::Last { 3 } else { 4 }) {
                    0 => FaultOn::Read,
                    1 => FaultOn::Write,
                    2 => FaultOn::Allocate,
                    // The process ends by it.
                    _ => FaultOn::Sync,
                };
                let names = ["t", "undo", "dictionary", ""];
                // The log and the control file: the process ends by that too.
                let all = if ending == Ending::Last { 3 } else { 4 };
                let prefix = names[rng.below(all) as usize];
                Kind::Io(on, prefix, rng.below(30), 1 + rng.below(4))
            }
            _ => Kind::None,
        };
        Faults {
            from,
            to: from + 20 + rng.below(120),
            kind,
            active: false,
        }
    }

    /// Whether errors are to be expected.
    pub fn active(&self) -> bool {
        self.active
    }

    /// Before a step of a life.
    pub fn at_step(&mut self, step: u64, disk: &SimDisk) {
        if step == self.from {
            match self.kind {
                Kind::None => return,
                Kind::Full(room) => disk.set_capacity(Some(disk.used() + room)),
                Kind::Io(on, prefix, skip, count) => {
                    disk.inject(on, prefix, skip, count, ErrorKind::Other);
                }
            }
            self.active = true;
        } else if step == self.to {
            self.end(disk);
        }
    }

    /// The disk is well again.
    pub fn end(&mut self, disk: &SimDisk) {
        if self.active {
            disk.clear_faults();
            disk.set_capacity(None);
            self.active = false;
        }
    }
}
