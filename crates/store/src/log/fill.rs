//! Writes zeros over files of a fresh log before the log comes to them.
//!
//! Blocks that were only allocated cost each first sync of them a write of the file system's own log. A small log is filled when it is made. Of a large
//! one what the log comes to first is; the rest follows in the background, a quarter of the device's time, and more where syncing [`SYNC`] bytes takes longer than some 70 ms.
//!
//! # Picture
//! ```text
//!  files, from the one in which the log begins   | 0 #####| 1 #####| 2 ##   | 3      |
//!                                                    entered ▲         ▲ being filled: never one that was entered
//! ```
//! # Invariants
//! - Z1: zeros go only to files that the log has not entered since they were made. Who writes the log counts a file as entered before the first write of it,
//!   under `filling`; who fills looks at that under the same mutex, which it holds for one write.
//! - Z2: what is filled was zero before: files are made by allocating blocks, which read as zeros. So at any moment of a crash the files hold the same.
//! # Concurrency
//! `entered` grows, by the holder of the log's mutex. The log waits for the filler once a file, for one write of [`STEP`] bytes at most; its first sync of a file that was being
//! filled a moment ago also syncs up to [`SYNC`] bytes of zeros.
//! # Failure
//! A write that fails ends the filling. A failed sync ends the process: the log may have entered the file meanwhile, and would not be told again.
//! After a restart nothing is known of what was filled, and nothing more is.

use super::Log;
use super::files::{LogFiles, io};
use super::format::BLOCK;
use crate::buf::AlignedBuf;
use crate::error::StoreError;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

/// Bytes of one write.
const STEP: usize = 1 << 20;
/// Bytes written before a sync.
const SYNC: u64 = 16 << 20;
/// Between two writes at least, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// What is left to be filled of fresh files.
pub(super) struct Ahead {
    /// The file in which the log begins; files count from there.
    home: usize,
    /// Files up to this one belong to the log.
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

    /// The log is about to write to a file, the `nth` from its first one on.
    pub(super) fn enter(&self, nth: usize) {
        if nth > self.entered.load(Relaxed) {
            let _filling = self.filling.lock(); // Z1
            self.entered.fetch_max(nth, Relaxed);
        }
    }
}

/// How far the filling is: of the `nth` file, so many bytes.
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
    /// The file that is the `nth` from the log's first one on.
    fn nth_file(&self, home: usize, nth: usize) -> usize {
        (home + nth) % self.files.len()
    }

    /// Which one a file is, counted so.
    pub(super) fn nth_of(&self, home: usize, file: usize) -> usize {
        (file + self.files.len() - home) % self.files.len()
    }

    /// Says that block `sequence`'s file is the log's from now on.
    pub(super) fn enter(&self, file: usize) {
        if let Some(ahead) = &self.ahead {
            ahead.enter(self.nth_of(ahead.home, file));
        }
    }

    /// Writes some zeros, ahead of the log. False: there is nothing left. `Err` of the inner one: a sync failed.
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
    /// Whether there is anything for [`fill_ahead`](Self::fill_ahead) to do.
    pub(crate) fn is_to_fill(&self) -> bool {
        self.files().ahead.is_some()
    }

    /// Body of a thread: fills the log's files ahead of it; returns when that is done, or after [`stop`](Self::stop).
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
    use crate::log::files::Way;
    use crate::log::format::{FIRST_LSN, PAYLOAD};

    const FILES: u64 = 4;
    const BLOCKS: u64 = 600; // more than one step a file

    /// A log that begins in some file and runs ahead at some pace, beside the filling: no block of it is lost, and in the end all files are written.
    #[test]
    #[cfg_attr(miri, ignore = "megabytes, byte by byte, and nothing unsafe")]
    fn the_log_is_never_filled_over() {
        for (home, pace) in [(0, 1), (2, 97), (3, 300), (1, 900)] {
            let disk = SimDisk::new();
            let start = FIRST_LSN.next_multiple_of(PAYLOAD) + home * BLOCKS * PAYLOAD;
            let files = LogFiles::create(&disk, 0, (FILES, BLOCKS), (start, 1 << 20)).unwrap();
            assert!(files.ahead.is_some(), "larger than what is filled at once");
            let first = start / PAYLOAD;
            let (mut next, end) = (first, first + FILES * BLOCKS);
            let mut at = Filling::default();
            let mut more = true;
            while more || next < end {
                more = files.fill_some(&mut at).unwrap().unwrap();
                for _ in 0..pace.min(end - next) {
                    let mut block = AlignedBuf::new(BLOCK);
                    block.fill(next as u8 | 1);
                    files.write(next, &block, Way::Direct).unwrap();
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

    /// The log stands still: everything but its first file is filled, and that nothing else changes is Z2.
    #[test]
    #[cfg_attr(miri, ignore = "megabytes, byte by byte, and nothing unsafe")]
    fn what_is_filled_is_zero_before_and_behind() {
        let disk = SimDisk::new();
        let files = LogFiles::create(&disk, 0, (FILES, BLOCKS), (FIRST_LSN, 1 << 20)).unwrap();
        let image = |n: u64| {
            let name = format!("{}{n:04}", crate::log::files::PREFIX);
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
        assert!(small.ahead.is_none(), "filled when it was made");
    }
}
