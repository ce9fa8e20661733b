//! Reader slots: one padded line per session, which says up to where in the log its reader sees.
//!
//! # Concurrency
//! A line's `s` is stored to by its session alone, and loaded by purge's scan (see the protocol in
//! the parent module). Lines are made in chunks that stay for ever; taking and giving back a slot,
//! once per session, goes through a mutex.

use super::Lsn;
use nfold_sync::CachePadded;
use nfold_sync::prim::{AtomicU64, AtomicUsize, Mutex, Ordering};
use nfold_sync::words::prefetch_line_outer;
use std::sync::OnceLock;

const LINES_PER_CHUNK: usize = 64;
const CHUNKS: usize = 4096;

/// No snapshot is open.
pub(super) const CLOSED: Lsn = u64::MAX;
/// A snapshot is being opened: nothing may be purged.
pub(super) const OPENING: Lsn = 0;

/// One session's line.
pub(super) struct Line {
    pub(super) s: AtomicU64,
    /// Who it is, for the status: the session's own number.
    session: AtomicU64,
    /// For status views, written by the session alone: the start of its transaction in microseconds
    /// since 1970 (0 if none was recorded), and the transaction's properties.
    since_us: std::sync::atomic::AtomicU64,
    about: std::sync::atomic::AtomicU64,
}

/// A session that has a transaction or a snapshot, as the status views show it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotInfo {
    /// The session's number, as given to [`SlotTable::take`].
    pub session: u64,
    /// The LSN of its snapshot, if one is open; 0 while it is being opened.
    pub s: Option<Lsn>,
    /// As given to [`SlotTable::note`]; 0 if nothing was.
    pub since_us: u64,
    pub about: u64,
}

/// The reader that holds purge back the most.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OldestReader {
    /// The session's number, as given to [`SlotTable::take`].
    pub session: u64,
    /// The LSN of its snapshot; 0 while it is being opened.
    pub s: Lsn,
}

type Lines = Box<[CachePadded<Line>]>;

/// All reader slots of an engine.
pub struct SlotTable {
    chunks: Box<[OnceLock<Lines>]>,
    /// Slots below this may be in use.
    made: AtomicUsize,
    free: Mutex<Vec<u32>>,
}

impl Default for SlotTable {
    fn default() -> Self {
        SlotTable {
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            made: AtomicUsize::new(0),
            free: Mutex::new(Vec::new()),
        }
    }
}

impl SlotTable {
    /// Asks the processor for a session's line.
    #[inline]
    pub(crate) fn prefetch(&self, slot: u32) {
        let at = slot as usize;
        if let Some(lines) = self
            .chunks
            .get(at / LINES_PER_CHUNK)
            .and_then(OnceLock::get)
            && let Some(line) = lines.get(at % LINES_PER_CHUNK)
        {
            prefetch_line_outer(&**line);
        }
    }

    fn free_list(&self) -> impl std::ops::DerefMut<Target = Vec<u32>> + '_ {
        match self.free.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// A slot for `session`; `None` when all are taken (262,144).
    pub fn take(&self, session: u64) -> Option<u32> {
        let mut free = self.free_list();
        let index = match free.pop() {
            Some(index) => index,
            None => {
                let index = self.made.load(Ordering::Relaxed);
                let chunk = self.chunks.get(index / LINES_PER_CHUNK)?;
                chunk.get_or_init(|| {
                    let line = || Line {
                        s: AtomicU64::new(CLOSED),
                        session: AtomicU64::new(0),
                        since_us: Default::default(),
                        about: Default::default(),
                    };
                    (0..LINES_PER_CHUNK)
                        .map(|_| CachePadded::new(line()))
                        .collect()
                });
                self.made.store(index + 1, Ordering::Release);
                index as u32
            }
        };
        self.line(index).session.store(session, Ordering::Relaxed);
        Some(index)
    }

    /// Frees a slot, which closes it.
    pub fn give(&self, index: u32) {
        self.close(index);
        self.note(index, 0, 0);
        self.free_list().push(index);
    }

    #[inline]
    pub(super) fn line(&self, index: u32) -> &Line {
        let index = index as usize;
        let chunk = self.chunks[index / LINES_PER_CHUNK]
            .get()
            .expect("a slot that was taken exists");
        &chunk[index % LINES_PER_CHUNK]
    }

    /// Closes the snapshot. The session's reads happen before all actions of purge that follow its
    /// load of this slot.
    #[inline]
    pub fn close(&self, index: u32) {
        self.line(index).s.store(CLOSED, Ordering::Release);
    }

    /// For the status: the session's transaction began then (0: it is over), and `about` says what
    /// it is like.
    #[inline]
    pub fn note(&self, index: u32, since_us: u64, about: u64) {
        let line = self.line(index);
        line.about.store(about, Ordering::Relaxed);
        line.since_us.store(since_us, Ordering::Relaxed);
    }

    /// All sessions with a recorded transaction or an open snapshot, not read at one point in time.
    pub fn in_use(&self) -> Vec<SlotInfo> {
        let made = self.made.load(Ordering::Acquire) as u32;
        let info = |index| {
            let line = self.line(index);
            let s = line.s.load(Ordering::Relaxed);
            SlotInfo {
                session: line.session.load(Ordering::Relaxed),
                s: (s != CLOSED).then_some(s),
                since_us: line.since_us.load(Ordering::Relaxed),
                about: line.about.load(Ordering::Relaxed),
            }
        };
        let all = (0..made).map(info);
        all.filter(|i| i.s.is_some() || i.since_us != 0).collect()
    }

    /// Whether a snapshot is open in the slot.
    pub fn is_open(&self, index: u32) -> bool {
        self.line(index).s.load(Ordering::Relaxed) != CLOSED
    }

    /// The oldest open snapshot. Purge fences before it calls this.
    pub(super) fn oldest(&self) -> Option<OldestReader> {
        let mut oldest: Option<OldestReader> = None;
        for index in 0..self.made.load(Ordering::Acquire) {
            let line = self.line(index as u32);
            let s = line.s.load(Ordering::Acquire);
            if s != CLOSED && oldest.is_none_or(|o| s < o.s) {
                oldest = Some(OldestReader {
                    session: line.session.load(Ordering::Relaxed),
                    s,
                });
            }
        }
        oldest
    }
}
