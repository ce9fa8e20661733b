//! The state that all parts of the store share.
//!
//! # Picture
//! ```text
//! Store ── Arc ──► Core ◄── Arc ── log thread, cleaner thread, I/O threads
//!                   ├ frames, free, hand        buffer pool     (pool/)
//!                   ├ spaces                    files, page words (spaces.rs, space.rs, pool/directory.rs)
//!                   ├ loads, jobs               I/O             (pool/load.rs)
//!                   ├ log, control              durability      (log/)
//!                   └ cleaner                   page writes, checkpoints (cleaner.rs)
//! ```
//! # Concurrency
//! The lock order is: `cleaner`, page latch, then `control`, the log writer and `free`. No page
//! latch is held during I/O, except in a fallback of [`crate::Mtr::free_page`] that loads a page.

use crate::cleaner::{Cleaner, IoCapacity};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::log::Log;
use crate::log::control::{Control, ControlFile};
use crate::options::{FatalHook, StoreOptions};
use crate::page::TrxId;
use crate::page_load::{Jobs, Loads};
use crate::pool::frames::Frames;
use crate::pool::probation::Probation;
use crate::pool_resize::{FreeFrames, Resize, frames_in};
use crate::ready_frames::Ready;
use crate::redo::RedoHandler;
use crate::spaces::Spaces;
use crate::wait::Gate;
use nfold_observe::Sharded;
use nfold_observe::contention::Contention;
use nfold_sync::CachePadded;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

/// Indexes of [`Core::counters`].
#[derive(Copy, Clone)]
pub(crate) enum Count {
    ReadMisses,
    PagesRead,
    PagesWritten,
    PagesCreated,
    PagesEvicted,
    LatchWaits,
    UsedMarks,
    LatchesAcquired,
    OptimisticRestarts,
    LatchFallbacks,
    Reads,
    ReadAhead,
}

pub(crate) const COUNTS: usize = 12;

type TrxSource = Box<dyn Fn() -> TrxId + Send + Sync>;

/// See the module header.
pub(crate) struct Core {
    pub(crate) frames: Frames,
    pub(crate) spaces: Spaces,
    pub(crate) log: Log,
    pub(crate) options: StoreOptions,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) redo: Arc<dyn RedoHandler>,
    pub(crate) free: Mutex<FreeFrames>,
    /// Counts the frames that became free.
    pub(crate) freed: Arc<Gate>,
    pub(crate) hand: CachePadded<AtomicUsize>,
    pub(crate) probation: Probation,
    pub(crate) ready: Ready,
    pub(crate) loads: Loads,
    pub(crate) jobs: Jobs,
    pub(crate) control: Mutex<ControlFile>,
    pub(crate) next_space: AtomicU64,
    pub(crate) resize: Resize,
    pub(crate) cleaner: Mutex<Cleaner>,
    pub(crate) io_capacity: IoCapacity,
    pub(crate) cleaner_thread: OnceLock<Thread>,
    pub(crate) cleaner_kicked: AtomicBool,
    pub(crate) counters: Sharded<COUNTS>,
    /// The wait sites. The log has a reference to the same object.
    pub(crate) contention: Arc<Contention>,
    pub(crate) fatal: FatalHook,
    trx_source: Mutex<Option<TrxSource>>,
    pub(crate) trx_floor: AtomicU64,
    threaded: AtomicBool,
    stopping: AtomicBool,
}

/// The fatal hook if the options contain none: prints the message and aborts.
pub(crate) fn default_fatal() -> FatalHook {
    Arc::new(|message| {
        tracing::error!("{message}");
        eprintln!("fatal: {message}");
        std::process::abort();
    })
}

impl Core {
    pub(crate) fn new(
        options: StoreOptions,
        disk: Arc<dyn Disk>,
        redo: Arc<dyn RedoHandler>,
        log: Log,
        control: ControlFile,
        cleaner: Cleaner,
        fatal: FatalHook,
    ) -> Result<Core, StoreError> {
        let limit = nfold_sync::page_word::MAX_FRAMES;
        let count = frames_in(options.pool_bytes);
        if count > limit {
            return Err(StoreError::TooLarge {
                what: "number of page frames",
                limit: limit as u64,
            });
        }
        let max = frames_in(options.pool_max_bytes).clamp(count, limit);
        let huge = options.huge_pages;
        let frames = Frames::new(count, max, huge).or_else(|| Frames::new(count, count, huge));
        let frames = frames.ok_or(StoreError::TooLarge {
            what: "buffer pool for this machine, bytes",
            limit: options.pool_bytes,
        })?;
        let probation = Probation::new(count, frames.max());
        let (next_space, floor) = (control.now.space_limit, control.now.next_trx);
        Ok(Core {
            frames,
            spaces: Spaces::new(huge),
            contention: log.contention.clone(),
            log,
            disk,
            redo,
            free: Mutex::new(FreeFrames::new(count)),
            freed: Arc::new(Gate::new(0)),
            hand: CachePadded::new(AtomicUsize::new(0)),
            probation,
            ready: Ready::default(),
            loads: Loads::default(),
            jobs: Jobs::default(),
            control: Mutex::new(control),
            next_space: AtomicU64::new(next_space),
            resize: Resize::new(count),
            io_capacity: IoCapacity::new(options.io_capacity, options.io_capacity_max),
            cleaner: Mutex::new(cleaner),
            cleaner_thread: OnceLock::new(),
            cleaner_kicked: AtomicBool::new(false),
            counters: Sharded::new(),
            fatal,
            trx_source: Mutex::new(None),
            trx_floor: AtomicU64::new(floor),
            threaded: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            options,
        })
    }

    /// Whether I/O threads run. Then a missing page returns `Wait` instead of being read by the
    /// caller.
    #[inline]
    pub(crate) fn threaded(&self) -> bool {
        self.threaded.load(Ordering::Acquire)
    }

    pub(crate) fn set_threaded(&self) {
        self.threaded.store(true, Ordering::Release);
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Tells all threads to stop.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.kick_cleaner();
        self.log.stop();
        self.jobs.stop();
    }

    pub(crate) fn kick_cleaner(&self) {
        if !self.cleaner_kicked.swap(true, Ordering::SeqCst)
            && let Some(thread) = self.cleaner_thread.get()
        {
            thread.unpark();
        }
    }

    /// Ends the process with `message`, because continuing would lose data.
    pub(crate) fn die(&self, message: &str) -> ! {
        (self.fatal)(message);
        std::process::abort();
    }

    pub(crate) fn set_trx_source(&self, source: TrxSource) {
        *self.trx_source.lock() = Some(source);
    }

    pub(crate) fn next_trx(&self) -> TrxId {
        let floor = self.trx_floor.load(Ordering::Relaxed);
        let now = self.trx_source.lock().as_ref().map_or(0, |source| source());
        floor.max(now)
    }

    /// Applies a change to the control file and writes it. A failure ends the process, because it
    /// would be unknown which checkpoint is valid.
    pub(crate) fn update_control(&self, change: impl FnOnce(&mut Control)) {
        let next_trx = self.next_trx();
        let mut file = self.control.lock();
        let mut next = file.now;
        next.next_trx = next.next_trx.max(next_trx);
        change(&mut next);
        if let Err(e) = file.write(next) {
            self.die(&format!("writing the control file failed: {e}"));
        }
    }
}
