//! The state that all parts of the store share.
//!
//! # Picture
//! ```text
//! Store ── Arc ──► Core ◄── Arc ── log thread, cleaner thread, I/O threads
//!                   ├ pool       frames, the free list, eviction, resize  (buffer.rs, pool/)
//!                   ├ spaces     files and page words                     (spaces.rs, space.rs)
//!                   ├ io         loads in progress, jobs of I/O threads   (page_load.rs)
//!                   ├ log        durability                               (log/)
//!                   ├ control    the control file and its limits          (log/control.rs)
//!                   ├ cleaning   page writes, checkpoints                 (cleaner.rs)
//!                   ├ attachments  bytes that commits carry               (attachments.rs)
//!                   └ lifecycle  start, stop, fatal errors                (core.rs)
//! ```
//! # Concurrency
//! The lock order is: `cleaner`, page latch, then `control`, the log writer and `free`. No page
//! latch is held during I/O, except in a fallback of [`crate::Mtr::free_page`] that loads a page.

use crate::attachments::Attachments;
use crate::buffer::Pool;
use crate::cleaner::{Cleaner, Cleaning};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::log::Log;
use crate::log::control::{Control, ControlFile, ControlHandle};
use crate::options::{FatalHook, StoreOptions};
use crate::page_load::PageIo;
use crate::redo::RedoHandler;
use crate::spaces::Spaces;
use nfold_observe::Sharded;
use nfold_observe::contention::Contention;
use nfold_sync::CachePadded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// See the module header.
///
/// Readers of cached pages load from `pool`, `spaces` and `counters`. What misses, writers and
/// background threads change lies on cache lines of its own.
pub(crate) struct Core {
    pub(crate) pool: Pool,
    pub(crate) spaces: Spaces,
    pub(crate) counters: Sharded<COUNTS>,
    pub(crate) io: CachePadded<PageIo>,
    pub(crate) log: Log,
    pub(crate) control: CachePadded<ControlHandle>,
    pub(crate) cleaning: CachePadded<Cleaning>,
    pub(crate) lifecycle: CachePadded<Lifecycle>,
    pub(crate) attachments: CachePadded<Attachments>,
    pub(crate) options: StoreOptions,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) redo: Arc<dyn RedoHandler>,
    /// The wait sites. The log has a reference to the same object.
    pub(crate) contention: Arc<Contention>,
}

/// Which threads run, and how the process ends when continuing would lose data.
pub(crate) struct Lifecycle {
    pub(crate) fatal: FatalHook,
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
        Ok(Core {
            pool: Pool::new(&options)?,
            spaces: Spaces::new(options.huge_pages),
            counters: Sharded::new(),
            io: CachePadded::default(),
            contention: log.contention.clone(),
            log,
            control: CachePadded::new(ControlHandle::new(control)),
            cleaning: CachePadded::new(Cleaning::new(cleaner, &options)),
            lifecycle: CachePadded::new(Lifecycle {
                fatal,
                threaded: AtomicBool::new(false),
                stopping: AtomicBool::new(false),
            }),
            attachments: CachePadded::default(),
            options,
            disk,
            redo,
        })
    }

    /// Whether I/O threads run. Then a missing page returns `Wait` instead of being read by the
    /// caller.
    #[inline]
    pub(crate) fn threaded(&self) -> bool {
        self.lifecycle.threaded.load(Ordering::Acquire)
    }

    pub(crate) fn set_threaded(&self) {
        self.lifecycle.threaded.store(true, Ordering::Release);
    }

    pub(crate) fn stopping(&self) -> bool {
        self.lifecycle.stopping.load(Ordering::Acquire)
    }

    /// Tells all threads to stop.
    pub(crate) fn stop(&self) {
        self.lifecycle.stopping.store(true, Ordering::SeqCst);
        self.kick_cleaner();
        self.log.stop();
        self.io.jobs.stop();
    }

    pub(crate) fn kick_cleaner(&self) {
        self.cleaning.kick();
    }

    /// Ends the process with `message`, because continuing would lose data.
    pub(crate) fn die(&self, message: &str) -> ! {
        (self.lifecycle.fatal)(message);
        std::process::abort();
    }

    /// Applies a change to the control file and writes it. A failure ends the process, because it
    /// would be unknown which checkpoint is valid.
    pub(crate) fn update_control(&self, change: impl FnOnce(&mut Control)) {
        if let Err(e) = self.control.update(change) {
            self.die(&format!("writing the control file failed: {e}"));
        }
    }
}
