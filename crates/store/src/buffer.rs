//! The state of the buffer pool. What is done with it stands in [`crate::pool`].

use crate::error::StoreError;
use crate::options::StoreOptions;
use crate::pool::frames::Frames;
use crate::pool::probation::Probation;
use crate::pool_resize::{FreeFrames, Resize, frames_in};
use crate::ready_frames::Ready;
use crate::wait::Gate;
use nfold_sync::CachePadded;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// See the module header.
pub(crate) struct Pool {
    pub(crate) frames: Frames,
    pub(crate) free: CachePadded<Mutex<FreeFrames>>,
    /// Counts the frames that became free.
    pub(crate) freed: Arc<Gate>,
    /// The hand of the clock that evicts main pages.
    pub(crate) hand: CachePadded<AtomicUsize>,
    pub(crate) probation: Probation,
    pub(crate) ready: Ready,
    pub(crate) resize: Resize,
}

impl Pool {
    /// Reserves addresses for the largest pool of `options`, or for its first size if the system
    /// does not give as many.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] if the first size is beyond what page words can address, or beyond
    /// what the system gives.
    pub(crate) fn new(options: &StoreOptions) -> Result<Pool, StoreError> {
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
        Ok(Pool {
            probation: Probation::new(count, frames.max()),
            frames,
            free: CachePadded::new(Mutex::new(FreeFrames::new(count))),
            freed: Arc::new(Gate::new(0)),
            hand: CachePadded::new(AtomicUsize::new(0)),
            ready: Ready::default(),
            resize: Resize::new(count),
        })
    }
}
