//! The redo log: reserved by `fetch_add`, filled in parallel, published in order, written and synced by one thread at a time.
//!
//! # Picture
//! ```text
//!  checkpoint        durable     written       horizon          next      claimed
//!      |  in files, synced |  in files  |  in the ring  | being filled |  reserved |
//!      |<-------------------- at most the files' capacity ---------------------->|
//!                                       |<----- at most the ring's size --------->|
//! ```
//! # Invariants
//! - I1: checkpoint ≤ durable or nothing to recover; durable ≤ written ≤ horizon ≤ next ≤ claimed.
//! - I2: `claimed - checkpoint` stays below the files' capacity less a margin, so a block that recovery may need is never written over.
//! - I3: pages are written only when the log is durable up to their LSN (the caller of the page writes sees to it).
//! - I4: a failed write or sync of the log ends the process: what is on disk is unknown from then on.
//! # Concurrency
//! `next` and `claimed`: fetch_add by writers. `written`: stored under the `writer` mutex. The horizon: see
//! [`nfold_sync::prefix`]. Whoever wants a durable log raises `wanted` and wakes the log thread, which writes and syncs all that is there: while the device
//! is busy, requests gather, so the device sets the pace of group commit; workers hold theirs back to the end of a turn ([`gather`]). When a sync
//! is over and the next one is wanted already, what that one needs is written before those that waited are woken ([`Pace`]): their work takes all
//! processors there are, and the device would wait for the log thread to get one. Whoever else needs a durable log (page writer, checkpoint) asks the
//! log thread as well. A worker that has nothing else to do and nobody's company syncs by itself ([`lead`]). In inline mode the caller does it itself.
//! # Failure
//! A crash loses what was not synced; the scan stops at the first damaged mini-transaction.

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
use crate::wait::{Gate, Source, Wait, WakeList};
use files::{LogFiles, Way};
use format::*;
use gather::Patience;
use lead::Company;
use nfold_observe::contention::{Contention, WaitKind};
use nfold_sync::planted::{self, Bug};
use nfold_sync::{CachePadded, DeferredTarget, FilledPrefix, RequestCoalescer, TargetRequests};
use parking_lot::{Mutex, MutexGuard};
use ring::Ring;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Blocks written by one call.
const WRITE_BLOCKS: usize = 256;
/// How often a commit looks at the horizon before it goes to sleep over log before its own that is not in the ring yet: some microseconds. What is
/// missing is another thread's copy of some bytes, unless that thread has lost its core; sleeping and being woken takes several times as long.
const HORIZON_LOOKS: u32 = 128;
/// How long a log position may stay unsynced when nobody asks.
const LAZY_SYNC: Duration = Duration::from_secs(1);

/// The horizon as something to wait for.
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

/// How much log there is room for, as something to wait for; the argument is the bytes wanted.
pub(crate) struct Room {
    /// End of everything reserved, whether it has a place already or not.
    claimed: CachePadded<AtomicU64>,
    written: CachePadded<AtomicU64>,
    checkpoint: CachePadded<AtomicU64>,
    usable: u64,
    ring: u64,
    wakers: WakeList,
}

impl Room {
    /// What would be short if the claimed end were `end`.
    fn short(&self, end: Lsn) -> Option<Short> {
        if end.saturating_sub(self.checkpoint.load(Acquire)) > self.usable {
            Some(Short::Files)
        } else if end.saturating_sub(self.written.load(Acquire)) > self.ring {
            Some(Short::Ring)
        } else {
            None
        }
    }

    /// After `claimed` fell, or `written` or `checkpoint` rose.
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
    /// The block that `written` lies in, as last written.
    tail: Box<[u8; BLOCK]>,
    buf: AlignedBuf,
    pace: Pace,
    company: Company,
}

/// What the last write and the last sync of the log took; zero where nothing asks a clock.
#[derive(Default)]
struct Pace {
    write: Duration,
    sync: Duration,
}

impl Pace {
    /// A write before the waiters of a sync are woken may keep them for so large a part of a sync: 1 / this.
    const PART: u32 = 4;

    /// Whether writing is so much shorter than syncing that it may come before waking.
    fn writes_first(&self) -> bool {
        self.write * Pace::PART <= self.sync
    }
}

/// Numbers for the status.
#[derive(Default)]
pub(crate) struct LogCounters {
    pub(crate) writes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) waits: AtomicU64,
}

/// See the module's header.
pub(crate) struct Log {
    pub(crate) filled: Arc<Filled>,
    pub(crate) durable: Arc<Gate>,
    /// `room.written` as something to wait for.
    in_files: Arc<Gate>,
    pub(crate) room: Arc<Room>,
    next: CachePadded<AtomicU64>,
    wanted: CachePadded<TargetRequests>,
    write_wanted: AtomicBool,
    /// Commits wait for a write and no sync.
    cached_wanted: AtomicBool,
    gathering: CachePadded<RequestCoalescer>,
    /// Up to where threads have left their requests to others ([`gather`], G2).
    left: CachePadded<DeferredTarget>,
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
    /// A log whose next byte is `start`, at the beginning of a block; everything before is checkpointed.
    pub(crate) fn new(
        files: LogFiles,
        generation: u64,
        start: Lsn,
        buffer_bytes: u64,
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
        Log {
            filled: Arc::new(Filled {
                prefix: FilledPrefix::new(start, ring),
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
            left: CachePadded::default(),
            ring: Ring::new(ring as usize),
            files,
            generation,
            writer: Mutex::new(Writer {
                tail: Box::new([0; BLOCK]),
                buf: AlignedBuf::new(WRITE_BLOCKS * BLOCK),
                pace: Pace::default(),
                company: Company::default(),
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

    /// The control file names `lsn` now: log before it may be written over.
    pub(crate) fn set_checkpoint(&self, lsn: Lsn) {
        self.room.checkpoint.fetch_max(lsn, AcqRel);
        self.room.wake();
    }

    /// Bytes of log that may lie between the checkpoint and the claimed end.
    pub(crate) fn usable(&self) -> u64 {
        self.room.usable
    }

    /// The largest mini-transaction, bytes of log.
    pub(crate) fn max_mtr(&self) -> u64 {
        (self.ring.size() / 4).min(self.usable() / 4)
    }

    /// Bytes between the checkpoint and the claimed end.
    pub(crate) fn age(&self) -> u64 {
        self.room
            .claimed
            .load(Relaxed)
            .saturating_sub(self.checkpoint())
    }

    /// Reserves `n` bytes, or says why not.
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

    /// Gives back a reservation that is not needed.
    pub(crate) fn unclaim(&self, n: u64) {
        if n > 0 {
            self.room.claimed.fetch_sub(n, AcqRel);
            self.room.wake();
        }
    }

    /// Appends one mini-transaction. `claimed`: what it had reserved. `stamp(start, end)` runs between the reservation
    /// of the range and its publication.
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
        // SAFETY: `[start, end)` was just reserved, is marked below only, and fits behind the written position.
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

    /// Reservations keep the ring from filling up; a mini-transaction that logged more than it had reserved comes here.
    #[cold]
    fn wait_for_ring(&self, end: Lsn) {
        self.counters.waits.fetch_add(1, Relaxed);
        while end > self.written() + self.ring.size() {
            self.write_out();
            std::thread::yield_now();
        }
    }

    /// Writes what is filled to the files, without a sync.
    pub(crate) fn write_out(&self) {
        self.write_filled(&mut self.writer.lock(), Way::Direct);
    }

    /// The same, for those who wait until the operating system has it.
    fn write_cached(&self) {
        self.write_filled(&mut self.writer.lock(), Way::Cached);
    }

    #[allow(unsafe_code)]
    fn write_filled(&self, writer: &mut MutexGuard<'_, Writer>, way: Way) {
        let (target, synced) = (self.horizon(), self.durable());
        let Writer {
            tail, buf, pace, ..
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
                // SAFETY: `[at, at + n)` lies between the written position, which only the holder of this mutex moves, and
                // the horizon, loaded with Acquire.
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
                self.die("I2: the log would write over what recovery needs");
            }
            if let Err(e) = self.files.write(sequence, &buf[..blocks * BLOCK], way) {
                self.die(&format!(
                    "writing the log failed, and what is on disk is unknown: {e}"
                ));
            }
            self.counters.writes.fetch_add(1, Relaxed);
            tail.copy_from_slice(&buf[(blocks - 1) * BLOCK..blocks * BLOCK]);
            self.room.written.store(at, Release);
        }
        if started {
            pace.write = begun.map_or(Duration::ZERO, |b| b.elapsed());
            self.in_files.raise(at);
            self.room.wake();
        }
    }

    /// The time, for [`Pace`]; none in inline mode, which is to do the same every time.
    fn clock(&self) -> Option<Instant> {
        (!self.inline).then(Instant::now)
    }

    fn die(&self, message: &str) -> ! {
        (self.fatal)(message);
        std::process::abort();
    }

    /// Makes the log durable up to `lsn` at least; blocks. `lsn` is the end of a mini-transaction that was reserved. Where there is a log thread
    /// it is asked: a sync made beside it would take the mutex between two of its own, and the commits of a whole group would wait for
    /// whoever has it to get a processor.
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

    /// [`sync_to`](Self::sync_to) on this thread: the log's own, or any where there is none.
    fn sync_here(&self, lsn: Lsn) {
        let mut turns = 0;
        while self.durable() < lsn {
            if self.horizon() < lsn {
                // Somebody is between reservation and mark: a copy of some bytes away.
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

    /// Writes what is filled, and makes it durable.
    fn sync_once(&self, writer: &mut MutexGuard<'_, Writer>) {
        self.write_filled(writer, Way::Direct);
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
        writer.pace.sync = begun.map_or(Duration::ZERO, |b| b.elapsed());
        let more = self.wanted.highest() > to;
        let Writer { pace, company, .. } = &mut **writer;
        company.synced(pace.write + pace.sync, more);
        if more && pace.writes_first() {
            self.write_filled(writer, Way::Direct);
        }
        self.durable.raise(to);
    }

    /// `None`: durable up to `lsn`.
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

    /// `None`: the log up to `lsn`, which is filled, has been handed to the operating system.
    pub(crate) fn wait_written(&self, lsn: Lsn) -> Option<Wait> {
        if self.written() >= lsn {
            return None;
        }
        if !self.inline {
            if !self.cached_wanted.swap(true, AcqRel) {
                self.kick();
            }
            // As in `TargetRequests`: either this sees that the thread has ended, or the thread sees that a write is wanted.
            if self.thread.get().is_some() && self.wanted.is_served() {
                let wait = Wait::on(self.in_files.clone(), lsn);
                return Some(wait.watched(&self.contention, WaitKind::CommitSync));
            }
        }
        self.write_cached();
        None
    }

    pub(crate) fn wait_filled(&self, lsn: Lsn) -> Option<Wait> {
        let lsn = lsn.min(self.next.load(Relaxed));
        for _ in 0..HORIZON_LOOKS {
            if self.horizon() >= lsn {
                return None;
            }
            std::hint::spin_loop();
        }
        let wait = Wait::on(self.filled.clone(), lsn);
        Some(wait.watched(&self.contention, WaitKind::CommitOrder))
    }

    /// Until there is room for `bytes` more.
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

    /// Asks the log thread to empty the ring.
    pub(crate) fn want_write(&self) {
        if !self.write_wanted.swap(true, AcqRel) {
            self.kick();
        }
    }

    /// Body of the log thread; returns after [`stop`](Self::stop).
    pub(crate) fn run(&self) {
        let _ = self.thread.set(std::thread::current());
        let mut patience = Patience::new();
        while !self.stop.load(Acquire) {
            let (wanted, durable) = (self.wanted.highest(), self.durable());
            if wanted > durable {
                let begun = Instant::now();
                self.sync_here(wanted);
                patience.synced(begun);
            } else if patience.synced_at().elapsed() >= LAZY_SYNC {
                // Before the writes, which may never end: what was only written is durable after a second.
                let begun = Instant::now();
                self.sync_here(self.horizon());
                patience.synced(begun);
            } else if self.write_wanted.swap(false, AcqRel) {
                self.write_out();
            } else if self.cached_wanted.swap(false, AcqRel) {
                self.write_cached();
            } else {
                self.rest(&mut patience);
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

/// What [`Log::try_claim`] lacked.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Short {
    /// A checkpoint has to move.
    Files,
    /// The log has to be written.
    Ring,
}
