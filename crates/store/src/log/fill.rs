//! Fills the files of a new log with zeros before the log reaches them.
//!
//! The first sync of a block that was only allocated also costs a write of the file system's own
//! journal. A small log is filled with zeros at creation. A large log is filled at creation only
//! where it begins. A background thread fills the rest: it uses a quarter of the device's time, or
//! more if a sync of [`SYNC`] bytes takes longer than about 70 ms.
//!
//! # Picture
//! ```text
//!  files, from the one in which the log begins   | 0 #####| 1 #####| 2 ##   | 3      |
//!                                                    entered ▲         ▲ being filled: after
//!                                                    `entered`
//! ```
//! # Invariants
//! - Z1: zeros are written only to files that the log has not entered since their creation. The log
//!   writer marks a file as entered before its first write to it, under the mutex `filling`. The
//!   filler checks that mark under the same mutex, and holds the mutex during one write.
//! - Z2: a filled file was zero before, because allocated blocks read as zeros. So a crash at any
//!   moment leaves the same contents.
//! # Concurrency
//! The holder of the log's mutex raises `entered`. The log waits for the filler at most once per
//! file, for one write of [`STEP`] bytes. Its first sync of a file that was being filled may also
//! have to sync up to [`SYNC`] bytes of zeros.
//! # Failure
//! A failed write ends the filling. A failed sync ends the process: the log may have entered the
//! file meanwhile, and a later sync would not report the error again. After a restart, filling does
//! not continue.

use super::Log;
use super::files::{LogFiles, io};
use super::format::BLOCK;
use crate::buf::AlignedBuf;
use crate::error::StoreError;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

/// The bytes of one write.
const STEP: usize = 1 << 20;
/// The bytes written between two syncs.
const SYNC: u64 = 16 << 20;
/// The shortest and the longest pause between two writes.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// The position of the log in a new set of files, which limits the filling.
pub(super) struct Ahead {
    /// The index of the file in which the log begins. Other files are counted from it.
    home: usize,
    /// The log has entered the files up to this one.
    entered: AtomicUsize,
    filling: Mutex<()>,
}

impl Ahead {
    pub(super) fn new(home: usize) -> Ahead {
        Ahead {
            home,
            entered: AtomicUsize::new(0),
            filling: Mutex::new(()),
        }
    }

    /// Called before the log writes to the `nth` file, counted from its first one.
    pub(super) fn enter(&self, nth: usize) {
        if nth > self.entered.load(Relaxed) {
            let _filling = self.filling.lock(); // Z1
            self.entered.fetch_max(nth, Relaxed);
        }
    }
}

/// The progress of filling: `written` bytes of the `nth` file, of which `synced` bytes are synced.
pub(super) struct Filling {
    nth: usize,
    written: u64,
    synced: u64,
    zeros: AlignedBuf,
}

impl Default for Filling {
    fn default() -> Self {
        Filling {
            nth: 1,
            written: 0,
            synced: 0,
            zeros: AlignedBuf::new(STEP),
        }
    }
}

impl LogFiles {
    /// The index of the `nth` file, counted from file `home`.
    fn nth_file(&self, home: usize, nth: usize) -> usize {
        (home + nth) % self.files.len()
    }

    /// The number of a file, counted from file `home`.
    pub(super) fn nth_of(&self, home: usize, file: usize) -> usize {
        (file + self.files.len() - home) % self.files.len()
    }

    /// Marks file `file` as entered by the log.
    pub(super) fn enter(&self, file: usize) {
        if let Some(ahead) = &self.ahead {
            ahead.enter(self.nth_of(ahead.home, file));
        }
    }

    /// Writes some zeros ahead of the log. Returns false if nothing is left to fill. The inner
    /// result is an error if a sync failed, the outer one if a write failed.
    pub(super) fn fill_some(
        &self,
        at: &mut Filling,
    ) -> Result<Result<bool, StoreError>, StoreError> {
        let Some(ahead) = &self.ahead else {
            return Ok(Ok(false));
        };
        let whole = self.file_blocks * BLOCK as u64;
        let file = {
            let _filling = ahead.filling.lock(); // Z1
            let entered = ahead.entered.load(Relaxed);
            if at.nth <= entered {
                (at.nth, at.written, at.synced) = (entered + 1, 0, 0);
            }
            if at.nth >= self.files.len() {
                return Ok(Ok(false));
            }
            let file = &self.files[self.nth_file(ahead.home, at.nth)];
            let n = (whole - at.written).min(STEP as u64) as usize;
            file.write_at(at.written, &at.zeros[..n])
                .map_err(io("fill"))?;
            at.written += n as u64;
            file
        };
        if at.written == whole || at.written - at.synced >= SYNC {
            if let Err(e) = file.sync_data() {
                return Ok(Err(io("sync")(e)));
            }
            at.synced = at.written;
        }
        if at.written == whole {
            (at.nth, at.written, at.synced) = (at.nth + 1, 0, 0);
        }
        Ok(Ok(true))
    }
}

impl Log {
    /// Whether [`fill_ahead`](Self::fill_ahead) has work to do.
    pub(crate) fn is_to_fill(&self) -> bool {
        self.files().ahead.is_some()
    }

    /// The body of the filling thread. Returns when all files are filled, or after
    /// [`stop`](Self::stop).
    pub(crate) fn fill_ahead(&self) {
        let mut at = Filling::default();
        while !self.stop.load(Acquire) {
            let begun = Instant::now();
            match self.files().fill_some(&mut at) {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return,
                Ok(Err(e)) => self.die(&format!(
                    "syncing the log failed, and what is on disk is unknown: {e}"
                )),
                Err(e) => {
                    tracing::warn!("the log's files are not filled ahead: {e}");
                    return;
                }
            }
            std::thread::sleep((begun.elapsed() * 3).clamp(PAUSE.0, PAUSE.1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, OpenMode, SimDisk};
    use crate::log::files::WriteMode;
    use crate::log::format::{FIRST_LSN, PAYLOAD};

    const FILES: u64 = 4;
    const BLOCKS: u64 = 600; // More than one step per file.

    /// The log runs ahead at different paces while the files are being filled. No block of it is
    /// overwritten, and in the end all files are written.
    #[test]
    #[cfg_attr(miri, ignore = "megabytes, byte by byte, and nothing unsafe")]
    fn filling_never_overwrites_the_log() {
        for (home, pace) in [(0, 1), (2, 97), (3, 300), (1, 900)] {
            let disk = SimDisk::new();
            let start = FIRST_LSN.next_multiple_of(PAYLOAD) + home * BLOCKS * PAYLOAD;
            let files = LogFiles::create(&disk, 0, (FILES, BLOCKS), (start, 1 << 20)).unwrap();
            assert!(
                files.ahead.is_some(),
                "the log is larger than the limit for filling at creation"
            );
            let first = start / PAYLOAD;
            let (mut next, end) = (first, first + FILES * BLOCKS);
            let mut at = Filling::default();
            let mut more = true;
            while more || next < end {
                more = files.fill_some(&mut at).unwrap().unwrap();
                for _ in 0..pace.min(end - next) {
                    let mut block = AlignedBuf::new(BLOCK);
                    block.fill(next as u8 | 1);
                    files.write(next, &block, WriteMode::Direct).unwrap();
                    next += 1;
                }
            }
            for sequence in first..end {
                let mut block = AlignedBuf::new(BLOCK);
                files.read(sequence, &mut block).unwrap();
                assert!(block.iter().all(|b| *b == sequence as u8 | 1), "Z1");
            }
        }
    }

    /// While the log does not move, all files but its first are filled, and no byte changes (Z2).
    #[test]
    #[cfg_attr(miri, ignore = "megabytes, byte by byte, and nothing unsafe")]
    fn filled_files_stay_zero() {
        let disk = SimDisk::new();
        let files = LogFiles::create(&disk, 0, (FILES, BLOCKS), (FIRST_LSN, 1 << 20)).unwrap();
        let image = |n: u64| {
            let name = format!("{}{n:04}", crate::disk::LOG_PREFIX);
            let file = disk.open(&name, OpenMode::Existing).unwrap();
            let mut bytes = vec![1; (BLOCKS * BLOCK as u64) as usize];
            file.read_at(0, &mut bytes).unwrap();
            bytes
        };
        let zero = |n| image(n).iter().all(|b| *b == 0);
        assert!((0..FILES).all(zero));
        let mut at = Filling::default();
        let mut steps = 0;
        while files.fill_some(&mut at).unwrap().unwrap() {
            steps += 1;
        }
        assert_eq!(
            steps,
            (FILES - 1) * (BLOCKS * BLOCK as u64).div_ceil(STEP as u64)
        );
        assert!((0..FILES).all(zero));
        let small = LogFiles::create(&disk, 9, (FILES, 8), (FIRST_LSN, 1 << 20)).unwrap();
        assert!(small.ahead.is_none(), "the log was filled at creation");
    }
}
