//! A disk probe: reads, writes and syncs of a separate file on the server's disk.
//!
//! The file contains 64 MiB of incompressible bytes, and is written and synced before any
//! measurement. It has no name, so it disappears however the run ends.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::output::nameless;
use crate::{LabError, interrupt};

const LENGTH: u64 = 64 << 20;
/// The bytes of a read: a page of InnoDB.
const PAGE: usize = 16 << 10;
/// The bytes of a write before a sync, and the alignment of direct reads.
const BLOCK: usize = 4 << 10;
/// The pause between two rounds of [`Probe::watch`].
const NAP: Duration = Duration::from_millis(2);

/// The probe's file.
#[derive(Debug)]
pub struct Probe {
    directory: PathBuf,
    file: File,
    /// The same file opened for direct I/O, if the file system supports it.
    direct: File,
}

/// An operation of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeOp {
    /// Reading 16 KiB from the disk.
    Read,
    /// Writing 4 KiB, followed by fdatasync.
    Sync,
    /// Sleeping for 2 ms, which shows how late the system wakes a thread.
    Sleep,
}

impl ProbeOp {
    pub fn name(self) -> &'static str {
        match self {
            ProbeOp::Read => "read",
            ProbeOp::Sync => "sync",
            ProbeOp::Sleep => "sleep",
        }
    }
}

/// An operation that took long.
#[derive(Debug, Clone, Copy)]
pub struct Slow {
    pub kind: ProbeOp,
    pub began: Instant,
    pub took: Duration,
}

/// A series of syncs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Syncs {
    /// The bytes per sync.
    pub bytes: usize,
    pub per_s: f64,
}

impl Probe {
    /// Creates the file below `directory`.
    pub fn create(directory: &Path) -> Result<Probe, LabError> {
        let cannot = || {
            LabError::io(format!(
                "cannot make the probe's file in {}",
                directory.display()
            ))
        };
        let file = nameless(directory).map_err(cannot())?;
        let direct = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .or_else(|_| file.try_clone());
        let probe = Probe {
            directory: directory.to_owned(),
            file,
            direct: direct.map_err(cannot())?,
        };
        probe.fill().map_err(cannot())?;
        Ok(probe)
    }

    fn fill(&self) -> io::Result<()> {
        let block = noise(1 << 20);
        for at in (0..LENGTH).step_by(block.len()) {
            self.file.write_all_at(&block, at)?;
        }
        self.file.sync_all()
    }

    /// Writes `bytes` bytes and syncs them, repeatedly for `time`. The file is used as a ring.
    pub fn syncs(&self, bytes: usize, time: Duration) -> Result<Syncs, LabError> {
        let bytes = bytes.clamp(1, (LENGTH / 2) as usize);
        let data = noise(bytes);
        let (mut count, mut at, began) = (0u64, 0, Instant::now());
        while began.elapsed() < time && !interrupt::requested() {
            self.sync(&data, at).map_err(self.failed())?;
            at = (at + bytes as u64) % (LENGTH - bytes as u64);
            count += 1;
        }
        Ok(Syncs {
            bytes,
            per_s: count as f64 / began.elapsed().as_secs_f64().max(1e-9),
        })
    }

    fn sync(&self, data: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(data, at)?;
        self.file.sync_data()
    }

    /// Reads, syncs and sleeps in turn until `stop`. Returns all operations that took longer than
    /// `floor`, and the number of rounds.
    pub fn watch(&self, stop: &AtomicBool, floor: Duration) -> Result<(Vec<Slow>, u64), LabError> {
        let mut buffer = vec![0u8; PAGE + BLOCK];
        let skip = buffer.as_ptr().align_offset(BLOCK);
        let page = &mut buffer[skip..skip + PAGE];
        let data = noise(BLOCK);
        let (mut slow, mut rounds, mut at) = (Vec::new(), 0u64, 1u64);
        let mut timed = |kind, work: &mut dyn FnMut() -> io::Result<()>| {
            let began = Instant::now();
            let done = work();
            let took = began.elapsed();
            if took > floor {
                slow.push(Slow { kind, began, took });
            }
            done
        };
        while !stop.load(Ordering::Relaxed) && !interrupt::requested() {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let offset = (at >> 33) % (LENGTH / PAGE as u64) * PAGE as u64;
            timed(ProbeOp::Read, &mut || {
                self.direct.read_exact_at(page, offset)
            })
            .and_then(|()| timed(ProbeOp::Sync, &mut || self.sync(&data, offset)))
            .map_err(self.failed())?;
            let _ = timed(ProbeOp::Sleep, &mut || {
                std::thread::sleep(NAP);
                Ok(())
            });
            rounds += 1;
        }
        Ok((slow, rounds))
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> LabError {
        LabError::io(format!("the probe in {} failed", self.directory.display()))
    }
}

/// Incompressible bytes.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut out = Vec::with_capacity(bytes + 8);
    while out.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_counts_and_leaves_no_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let probe = Probe::create(dir.path()).expect("it can be made");
        let syncs = probe
            .syncs(5000, Duration::from_millis(20))
            .expect("it syncs");
        assert!(syncs.per_s > 0.0 && syncs.bytes == 5000);
        // Longer than the ring.
        assert!(probe.syncs(1 << 30, Duration::from_nanos(1)).is_ok());
        let stop = AtomicBool::new(false);
        let (slow, rounds) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| probe.watch(&stop, Duration::ZERO));
            std::thread::sleep(Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
            watch.join().expect("no panic").expect("it watches")
        });
        // With a floor of zero, every operation is slow.
        assert_eq!(slow.len() as u64, 3 * rounds);
        assert!(
            slow.chunks(3).all(|c| c[0].kind == ProbeOp::Read
                && c[1].kind == ProbeOp::Sync
                && c[2].took >= NAP)
        );
        assert_eq!(std::fs::read_dir(dir.path()).expect("reads").count(), 0);
        assert!(Probe::create(&dir.path().join("not there")).is_err());
    }
}
