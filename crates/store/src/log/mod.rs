//! The redo log. Writers reserve ranges with `fetch_add` and fill them in parallel. The ranges are
//! published in order, and one thread at a time writes and syncs them.
//!
//! # Picture
//! ```text
//!  checkpoint        durable     written       horizon          next      claimed
//!      |  in files, synced |  in files  |  in the ring  | being filled |  reserved |
//!      |<-------------------- at most the files' capacity ---------------------->|
//!                                       |<----- at most the ring's size --------->|
//! ```
//! # Invariants
//! - I1: durable ≤ written ≤ horizon ≤ next ≤ claimed. Checkpoint ≤ durable, unless there is
//!   nothing to recover.
//! - I2: `claimed - checkpoint` stays below the files' capacity less a margin, so a block that
//!   recovery may need is never overwritten.
//! - I3: a page is written only when the log is durable up to the page's LSN. The page writer
//!   ensures this.
//! - I4: a failed write or sync of the log ends the process, because the contents of the disk are
//!   unknown from then on.
//! # Concurrency
//! Writers change `next` and `claimed` with `fetch_add`. `written` is stored under the `writer`
//! mutex. For the horizon, see [`nfold_sync::prefix`].
//!
//! A thread that needs the log durable raises `wanted` and wakes the log thread, which writes and
//! syncs everything that is filled. While the device is busy, requests accumulate, so the device
//! sets the pace of group commit. Workers defer their requests to the end of a turn ([`gather`]).
//! The page writer and checkpoints request syncs from the log thread, too.
//!
//! When a sync ends and another one is already requested, the log thread writes the log for the
//! next sync before it wakes the waiters ([`SyncTiming`]). The waiters would occupy all processors,
//! and the device would idle until the log thread gets one.
//!
//! A worker with no other work, beside which no other thread commits, syncs the log itself
//! ([`lead`]). In inline mode, every caller does.
//! # Failure
//! A crash loses the log that was not synced. The scan stops at the first damaged mini-transaction.

pub(crate) mod control;
pub(crate) mod files;
mod fill;
pub(crate) mod format;
pub(crate) mod gather;
mod lead;
#[allow(unsafe_code)]
mod ring;
pub(crate) mod scan;

use crate::buf::AlignedBuf;
use crate::options::FatalHook;
use crate::page::Lsn;
use crate::pool::flat::request_huge_pages;
use crate::wait::{Gate, Source, Wait, WakeList};
use files::{LogFiles, WriteMode};
use format::*;
use gather::DeferralTimer;
use lead::SyncHistory;
use nfold_observe::contention::{Contention, WaitKind};
use nfold_sync::planted::{self, Bug};
use nfold_sync::{CachePadded, DeferredTarget, FilledPrefix, RequestCoalescer, TargetRequests};
use parking_lot::{Mutex, MutexGuard};
use ring::Ring;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The most blocks of one write call.
const WRITE_BLOCKS: usize = 256;
/// How often a commit polls the horizon before it sleeps until earlier log is filled; this takes a
/// few microseconds. The missing log is a short copy by another thread, unless that thread was
/// descheduled. Sleeping and waking takes several times as long.
const HORIZON_POLLS: u32 = 128;
/// The longest time that log stays unsynced without a request.
const LAZY_SYNC: Duration = Duration::from_secs(1);

/// The horizon, as a source of waits.
pub(crate) struct Filled {
    pub(crate) prefix: FilledPrefix,
    wakers: WakeList,
}

impl Source for Filled {
    fn ready(&self, arg: u64) -> bool {
        self.prefix.horizon() >= arg
    }

    fn wakers(&self) -> &WakeList {
        &self.wakers
    }
}

/// The free space of the log, as a source of waits. The argument is the number of bytes wanted.
pub(crate) struct Room {
    /// The end of all reserved log, including reservations without a position.
    claimed: CachePadded<AtomicU64>,
    written: CachePadded<AtomicU64>,
    checkpoint: CachePadded<AtomicU64>,
    usable: u64,
    ring: u64,
    wakers: WakeList,
}

impl Room {
    /// The resource that would be short if the claimed end were `end`.
    fn short(&self, end: Lsn) -> Option<Short> {
        if end.saturating_sub(self.checkpoint.load(Acquire)) > self.usable {
            Some(Short::Files)
        } else if end.saturating_sub(self.written.load(Acquire)) > self.ring {
            Some(Short::Ring)
        } else {
            None
        }
    }

    /// Wakes waiters. To be called after `claimed` fell, or `written` or `checkpoint` rose.
    fn wake(&self) {
        self.wakers.wake(|n| self.ready(n));
    }
}

impl Source for Room {
    fn ready(&self, n: u64) -> bool {
        self.short(self.claimed.load(Acquire) + n).is_none()
    }

    fn wakers(&self) -> &WakeList {
        &self.wakers
    }
}

struct Writer {
    /// The block that contains the position `written`, as last written.
    tail: Box<[u8; BLOCK]>,
    buf: AlignedBuf,
    timing: SyncTiming,
    history: SyncHistory,
}

/// The times of the last write and the last sync of the log; zero in inline mode, which reads no
/// clock.
#[derive(Default)]
struct SyncTiming {
    write: Duration,
    sync: Duration,
}

impl SyncTiming {
    /// A write may delay the waking of a sync's waiters by at most 1 / `MAX_PART` of the sync's
    /// time.
    const MAX_PART: u32 = 4;

    /// Whether writing is so much faster than syncing that it may come before waking.
    fn writes_first(&self) -> bool {
        self.write * SyncTiming::MAX_PART <= self.sync
    }
}

/// Counters for the status.
#[derive(Default)]
pub(crate) struct LogCounters {
    pub(crate) writes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) waits: AtomicU64,
}

/// The redo log. See the module header.
pub(crate) struct Log {
    pub(crate) filled: Arc<Filled>,
    pub(crate) durable: Arc<Gate>,
    /// The position `room.written`, as a source of waits.
    in_files: Arc<Gate>,
    pub(crate) room: Arc<Room>,
    next: CachePadded<AtomicU64>,
    wanted: CachePadded<TargetRequests>,
    write_wanted: AtomicBool,
    /// Whether commits wait for a write without a sync.
    cached_wanted: AtomicBool,
    gathering: CachePadded<RequestCoalescer>,
    /// The highest LSN of the requests deferred to other threads ([`gather`], G2).
    deferred: CachePadded<DeferredTarget>,
    ring: Ring,
    files: LogFiles,
    generation: u64,
    writer: Mutex<Writer>,
    inline: bool,
    thread: OnceLock<Thread>,
    stop: AtomicBool,
    fatal: FatalHook,
    pub(crate) counters: LogCounters,
    pub(crate) contention: Arc<Contention>,
}

impl Log {
    /// A log whose next byte is `start`, which must be the beginning of a block. All log before it
    /// is checkpointed.
    pub(crate) fn new(
        files: LogFiles,
        generation: u64,
        start: Lsn,
        (buffer_bytes, huge_pages): (u64, bool),
        inline: bool,
        fatal: FatalHook,
    ) -> Log {
        assert!(
            start.is_multiple_of(PAYLOAD),
            "a generation starts with a fresh block"
        );
        let ring = buffer_bytes.clamp(1 << 16, 1 << 32).next_power_of_two();
        let cell = || CachePadded::new(AtomicU64::new(start));
        let capacity = files.capacity();
        let room = Room {
            claimed: cell(),
            written: cell(),
            checkpoint: cell(),
            usable: capacity - capacity / 8 - 4 * PAYLOAD,
            ring,
            wakers: WakeList::default(),
        };
        let prefix = FilledPrefix::new(start, ring);
        if huge_pages {
            request_huge_pages(prefix.slots());
        }
        Log {
            filled: Arc::new(Filled {
                prefix,
                wakers: WakeList::default(),
            }),
            durable: Arc::new(Gate::new(start)),
            in_files: Arc::new(Gate::new(start)),
            room: Arc::new(room),
            next: cell(),
            wanted: CachePadded::new(TargetRequests::new(start)),
            write_wanted: AtomicBool::new(false),
            cached_wanted: AtomicBool::new(false),
            gathering: CachePadded::default(),
            deferred: CachePadded::default(),
            ring: Ring::new(ring as usize, huge_pages),
            files,
            generation,
            writer: Mutex::new(Writer {
                tail: Box::new([0; BLOCK]),
                buf: AlignedBuf::new(WRITE_BLOCKS * BLOCK),
                timing: SyncTiming::default(),
                history: SyncHistory::default(),
            }),
            inline,
            thread: OnceLock::new(),
            stop: AtomicBool::new(false),
            fatal,
            counters: LogCounters::default(),
            contention: Arc::default(),
        }
    }

    pub(crate) fn files(&self) -> &LogFiles {
        &self.files
    }

    #[inline(always)]
    pub(crate) fn horizon(&self) -> Lsn {
        self.filled.prefix.horizon()
    }

    pub(crate) fn durable(&self) -> Lsn {
        self.durable.get()
    }

    pub(crate) fn written(&self) -> Lsn {
        self.room.written.load(Acquire)
    }

    pub(crate) fn checkpoint(&self) -> Lsn {
        self.room.checkpoint.load(Acquire)
    }

    /// Called after the control file was written with checkpoint `lsn`. Older log may now be
    /// overwritten.
    pub(crate) fn set_checkpoint(&self, lsn: Lsn) {
        self.room.checkpoint.fetch_max(lsn, AcqRel);
        self.room.wake();
    }

    /// The most bytes of log between the checkpoint and the claimed end.
    pub(crate) fn usable(&self) -> u64 {
        self.room.usable
    }

    /// The size of the largest mini-transaction in bytes of log.
    pub(crate) fn max_mtr(&self) -> u64 {
        (self.ring.size() / 4).min(self.usable() / 4)
    }

    /// The bytes between the checkpoint and the claimed end.
    pub(crate) fn age(&self) -> u64 {
        self.room
            .claimed
            .load(Relaxed)
            .saturating_sub(self.checkpoint())
    }

    /// Reserves `n` bytes, or returns the resource that is short.
    pub(crate) fn try_claim(&self, n: u64) -> Result<(), Short> {
        let end = self.room.claimed.fetch_add(n, AcqRel) + n;
        match self.room.short(end) {
            None => Ok(()),
            Some(short) => {
                self.unclaim(n);
                Err(short)
            }
        }
    }

    /// Releases a reservation that is not needed.
    pub(crate) fn unclaim(&self, n: u64) {
        if n > 0 {
            self.room.claimed.fetch_sub(n, AcqRel);
            self.room.wake();
        }
    }

    /// Appends one mini-transaction, which had reserved `claimed` bytes, and returns its range.
    /// `stamp(start, end)` runs after the range is reserved and before it is published.
    #[allow(unsafe_code)]
    pub(crate) fn append(
        &self,
        records: &[u8],
        claimed: u64,
        stamp: impl FnOnce(Lsn, Lsn),
    ) -> (Lsn, Lsn) {
        let total = mtr_len(records.len());
        let crc = records_crc(records);
        if total > claimed {
            self.room.claimed.fetch_add(total - claimed, AcqRel);
        }
        let start = self.next.fetch_add(total, Relaxed);
        let end = start + total;
        self.unclaim(claimed.saturating_sub(total));
        if end > self.written() + self.ring.size() {
            self.wait_for_ring(end);
        }
        let header = mtr_header(records.len(), crc, start, self.generation);
        let pad = total as usize - MTR_HEADER - records.len();
        // SAFETY: `[start, end)` was just reserved, is marked only below, and fits into the ring
        // after the written position.
        unsafe {
            self.ring.put(start, &header);
            self.ring.put(start + MTR_HEADER as u64, records);
            self.ring
                .put(end - pad as u64, &[0u8; ALIGN as usize][..pad]);
        }
        stamp(start, end);
        if let Some(horizon) = self.filled.prefix.mark(start, end) {
            self.filled.wakers.wake(|arg| arg <= horizon);
        }
        (start, end)
    }

    /// Waits until the ring has room up to `end`. Reservations normally ensure this. Only a
    /// mini-transaction that logs more than it reserved gets here.
    #[cold]
    fn wait_for_ring(&self, end: Lsn) {
        self.counters.waits.fetch_add(1, Relaxed);
        while end > self.written() + self.ring.size() {
            self.write_out();
            std::thread::yield_now();
        }
    }

    /// Writes all filled log to the files, without a sync.
    pub(crate) fn write_out(&self) {
        self.write_filled(&mut self.writer.lock(), WriteMode::Direct);
    }

    /// As [`write_out`](Self::write_out), for commits that wait until the operating system has the
    /// log.
    fn write_cached(&self) {
        self.write_filled(&mut self.writer.lock(), WriteMode::Cached);
    }

    #[allow(unsafe_code)]
    fn write_filled(&self, writer: &mut MutexGuard<'_, Writer>, mode: WriteMode) {
        let (target, synced) = (self.horizon(), self.durable());
        let Writer {
            tail, buf, timing, ..
        } = &mut **writer;
        let mut at = self.written();
        let started = at < target;
        let begun = self.clock();
        while at < target {
            let sequence = at / PAYLOAD;
            let mut blocks = 0;
            while at < target && blocks < WRITE_BLOCKS {
                let off = (at % PAYLOAD) as usize;
                let n = (PAYLOAD - off as u64).min(target - at) as usize;
                let block = &mut buf[blocks * BLOCK..(blocks + 1) * BLOCK];
                if off != 0 {
                    block.copy_from_slice(&tail[..]);
                }
                let from = BLOCK_HEADER + off;
                // SAFETY: `[at, at + n)` lies above the written position, which only the holder of
                // this mutex moves, and below the horizon, which was loaded with Acquire.
                unsafe { self.ring.get(at, &mut block[from..from + n]) };
                block[from + n..].fill(0);
                seal_block(
                    block,
                    sequence + blocks as u64,
                    self.generation,
                    off + n,
                    synced,
                );
                at += n as u64;
                blocks += 1;
            }
            if at > self.checkpoint() / PAYLOAD * PAYLOAD + self.files.capacity() {
                self.die("I2: the log would overwrite blocks that recovery needs");
            }
            if let Err(e) = self.files.write(sequence, &buf[..blocks * BLOCK], mode) {
                self.die(&format!(
                    "writing the log failed, and what is on disk is unknown: {e}"
                ));
            }
            self.counters.writes.fetch_add(1, Relaxed);
            tail.copy_from_slice(&buf[(blocks - 1) * BLOCK..blocks * BLOCK]);
            self.room.written.store(at, Release);
        }
        if started {
            timing.write = begun.map_or(Duration::ZERO, |b| b.elapsed());
            self.in_files.raise(at);
            self.room.wake();
        }
    }

    /// The time for [`SyncTiming`]. `None` in inline mode, which must be deterministic.
    fn clock(&self) -> Option<Instant> {
        (!self.inline).then(Instant::now)
    }

    fn die(&self, message: &str) -> ! {
        (self.fatal)(message);
        std::process::abort();
    }

    /// Makes the log durable at least up to `lsn`, which must be the end of a reserved
    /// mini-transaction. Blocks.
    ///
    /// If there is a log thread, it does the sync. A sync by this thread would take the mutex
    /// between two syncs of the log thread, and the commits of a whole group would wait until this
    /// thread is scheduled.
    pub(crate) fn sync_to(&self, lsn: Lsn) {
        if self.durable() >= lsn {
            return;
        }
        if self.thread.get().is_some() {
            self.request_now(lsn);
            if self.wanted.is_served() {
                return Wait::on(self.durable.clone(), lsn).block();
            }
        }
        self.sync_here(lsn);
    }

    /// As [`sync_to`](Self::sync_to), but always on this thread: the log thread, or any thread if
    /// there is none.
    fn sync_here(&self, lsn: Lsn) {
        let mut turns = 0;
        while self.durable() < lsn {
            if self.horizon() < lsn {
                // Another thread has reserved log but not yet marked it. It is only copying bytes.
                turns += 1;
                if turns < 100 {
                    std::thread::yield_now()
                } else {
                    std::thread::sleep(Duration::from_micros(50))
                }
                continue;
            }
            let mut writer = self.writer.lock();
            if self.durable() >= lsn {
                return;
            }
            self.sync_once(&mut writer);
        }
    }

    /// Writes all filled log and syncs it.
    fn sync_once(&self, writer: &mut MutexGuard<'_, Writer>) {
        self.write_filled(writer, WriteMode::Direct);
        let to = self.written();
        if planted::is(Bug::SkippedSync) {
            return self.durable.raise(to);
        }
        let begun = self.clock();
        if let Err(e) = self.files.sync() {
            self.die(&format!(
                "syncing the log failed, and what is on disk is unknown: {e}"
            ));
        }
        self.counters.syncs.fetch_add(1, Relaxed);
        writer.timing.sync = begun.map_or(Duration::ZERO, |b| b.elapsed());
        let more = self.wanted.highest() > to;
        let Writer {
            timing, history, ..
        } = &mut **writer;
        history.synced(timing.write + timing.sync, more);
        if more && timing.writes_first() {
            self.write_filled(writer, WriteMode::Direct);
        }
        self.durable.raise(to);
    }

    /// Requests a sync up to `lsn` and returns a wait for it; `None` if the log is durable up to
    /// there.
    pub(crate) fn wait_durable(&self, lsn: Lsn) -> Option<Wait> {
        if self.durable() >= lsn {
            return None;
        }
        let lsn = lsn.min(self.next.load(Relaxed));
        if self.inline {
            self.sync_here(lsn);
            return None;
        }
        self.request(lsn);
        let wait = Wait::on(self.durable.clone(), lsn);
        Some(wait.watched(&self.contention, WaitKind::CommitSync))
    }

    /// Requests a write up to `lsn`, which must be filled, and returns a wait for it; `None` if
    /// that log has been written to the operating system.
    pub(crate) fn wait_written(&self, lsn: Lsn) -> Option<Wait> {
        if self.written() >= lsn {
            return None;
        }
        if !self.inline {
            if !self.cached_wanted.swap(true, AcqRel) {
                self.kick();
            }
            // As in `TargetRequests`: either this thread sees that the log thread has ended, or the
            // log thread sees the request.
            if self.thread.get().is_some() && self.wanted.is_served() {
                let wait = Wait::on(self.in_files.clone(), lsn);
                return Some(wait.watched(&self.contention, WaitKind::CommitSync));
            }
        }
        self.write_cached();
        None
    }

    /// A wait until the horizon reaches `lsn`; `None` if it has.
    pub(crate) fn wait_filled(&self, lsn: Lsn) -> Option<Wait> {
        let lsn = lsn.min(self.next.load(Relaxed));
        for _ in 0..HORIZON_POLLS {
            if self.horizon() >= lsn {
                return None;
            }
            std::hint::spin_loop();
        }
        let wait = Wait::on(self.filled.clone(), lsn);
        Some(wait.watched(&self.contention, WaitKind::CommitOrder))
    }

    /// A wait until there is room for `bytes` more bytes.
    pub(crate) fn wait_room(&self, short: Short, bytes: u64) -> Wait {
        let kind = match short {
            Short::Ring => WaitKind::LogRing,
            Short::Files => WaitKind::LogFiles,
        };
        Wait::on(self.room.clone(), bytes).watched(&self.contention, kind)
    }

    fn kick(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Requests the log thread to write the ring's contents.
    pub(crate) fn want_write(&self) {
        if !self.write_wanted.swap(true, AcqRel) {
            self.kick();
        }
    }

    /// The body of the log thread. Returns after [`stop`](Self::stop).
    pub(crate) fn run(&self) {
        let _ = self.thread.set(std::thread::current());
        let mut timer = DeferralTimer::new();
        while !self.stop.load(Acquire) {
            let (wanted, durable) = (self.wanted.highest(), self.durable());
            if wanted > durable {
                let begun = Instant::now();
                self.sync_here(wanted);
                timer.synced(begun);
            } else if timer.synced_at().elapsed() >= LAZY_SYNC {
                // This comes before the writes, which may never end: all log is durable after one
                // second.
                let begun = Instant::now();
                self.sync_here(self.horizon());
                timer.synced(begun);
            } else if self.write_wanted.swap(false, AcqRel) {
                self.write_out();
            } else if self.cached_wanted.swap(false, AcqRel) {
                self.write_cached();
            } else {
                self.rest(&mut timer);
            }
        }
        let wanted = self.wanted.close();
        if self.cached_wanted.swap(false, AcqRel) {
            self.write_cached();
        }
        self.sync_here(wanted);
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Release);
        self.kick();
    }
}

/// The resource that [`Log::try_claim`] lacked.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Short {
    /// Space in the files: the checkpoint has to advance.
    Files,
    /// Space in the ring: the log has to be written.
    Ring,
}
