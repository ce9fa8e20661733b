//! The reservations of a mini-transaction before its first change: log space, page numbers with
//! blocks in the file, frames, and a resident header page.
//!
//! # Invariants
//! - I2 of [`super`]: after the reservations, it does not wait. Unused reservations are released
//!   when the [`Mtr`] ends.
//! # Failure
//! A full disk, a full pool or a request that is too large is an error here, before anything has
//! changed.

use super::{Claim, Mtr};
use crate::core::Core;
use crate::error::{Stop, StoreError};
use crate::log::{Short, format};
use crate::page::{PageId, PageType, SpaceId, header};
use crate::page_load::{Job, Load};
use crate::space::{self, Space};
use crate::wait::Wait;
use nfold_observe::contention::WaitKind;
use nfold_sync::page_word::frame_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most log bytes of one page allocation that does not consume a trunk page.
const ALLOC_LOG: usize = 160;
/// The log bytes for moving the contents of a trunk page into the header page.
const TRUNK_LOG: usize = crate::PAGE_SIZE + 128;

impl Mtr<'_> {
    /// Reserves resources before the first change: `log_bytes` bytes of redo in total, and frames
    /// and file space for `new_pages` calls of [`alloc_page`](Self::alloc_page) on `space`, whose
    /// redo is added automatically.
    ///
    /// Also required before [`free_page`](Self::free_page), with `new_pages` 0, because it makes
    /// the space's header page resident and pins it. May be called several times, for several
    /// spaces, but not after a change. On `Wait`, call again.
    pub fn reserve(
        &mut self,
        log_bytes: usize,
        space: SpaceId,
        new_pages: usize,
    ) -> Result<(), Stop> {
        debug_assert!(!self.changed(), "I2: reserve before the first change");
        if self.core.stopping() {
            return Err(Stop::Error(StoreError::ShuttingDown));
        }
        let mut log_bytes =
            log_bytes + format::MTR_HEADER + format::ALIGN as usize + new_pages * ALLOC_LOG;
        let claim = self.claim_space(space)?;
        if new_pages > 0 {
            let pages = u32::try_from(new_pages).unwrap_or(u32::MAX);
            let fits =
                self.log_claimed + ((log_bytes + TRUNK_LOG) as u64) <= self.core.log.max_mtr();
            if fits && self.claim_trunk(claim, pages)? {
                log_bytes += TRUNK_LOG;
            }
            self.claim_pages(claim, pages)?;
            self.claim_frames(new_pages)?;
        }
        self.claim_log(log_bytes as u64)
    }

    fn claim_log(&mut self, bytes: u64) -> Result<(), Stop> {
        let core = self.core;
        let limit = core.log.max_mtr();
        if self.log_claimed + bytes > limit {
            return Err(Stop::Error(StoreError::TooLarge {
                what: "redo of one mini-transaction, bytes",
                limit,
            }));
        }
        for _ in 0..8 {
            let short = match core.log.try_claim(bytes) {
                Ok(()) => {
                    self.log_claimed += bytes;
                    return Ok(());
                }
                Err(short) => short,
            };
            core.log.counters.waits.fetch_add(1, Ordering::Relaxed);
            if core.threaded() {
                match short {
                    Short::Files => core.kick_cleaner(),
                    Short::Ring => core.log.want_write(),
                }
                return Err(Stop::Wait(core.log.wait_room(short, bytes)));
            }
            match short {
                Short::Ring => core.log.write_out(),
                Short::Files => {
                    core.clean_below(core.log.checkpoint() + core.log.age() / 2, usize::MAX)?;
                }
            }
        }
        // The oldest dirty page is latched, perhaps by this very caller. It has to release its
        // latches and try again.
        Err(Stop::Wait(Wait::ready()))
    }

    /// The claim on a space, whose header page is made resident and pinned. Returns the claim's
    /// index.
    fn claim_space(&mut self, id: SpaceId) -> Result<usize, Stop> {
        let core = self.core;
        let at = match self.claims.iter().position(|c| c.space.id() == id) {
            Some(at) => at,
            None => {
                let space = core.spaces.look(id).ok_or(StoreError::SpaceGone(id))?;
                space.pin();
                if !space.is(id) || space.gone.load(Ordering::SeqCst) {
                    core.unpin_header(space);
                    // I6 of `space`: the pin came too late.
                    return Err(Stop::Error(StoreError::SpaceGone(id)));
                }
                self.claims.push(Claim {
                    space,
                    pages: 0,
                    trunk: None,
                });
                self.claims.len() - 1
            }
        };
        core.resident(self.claims[at].space, space::header_page(id))?;
        Ok(at)
    }

    /// Latches the trunk page that continues the list in the header page, if that list is too short
    /// for `pages`. Returns whether it did.
    ///
    /// This never waits for the latch, for two reasons. The holder goes on to latch the pages that
    /// it needs, and this caller may hold some of those (the row's leaf and the undo page, when an
    /// undo record needs a page). Besides, the number may belong to another page by now, with an
    /// unknown place in the latch order.
    ///
    /// If the trunk page is latched, the caller does without it: its holder is about to move the
    /// list into the header page. Until then, page numbers come from the end of the space.
    fn claim_trunk(&mut self, claim: usize, pages: u32) -> Result<bool, Stop> {
        let Claim { space, trunk, .. } = &self.claims[claim];
        if trunk.is_some() {
            return Ok(false);
        }
        let id = space.id();
        let header = self.core.read(space::header_page(id))?;
        let (count, trunk) = (header.u32(space::COUNT_OFF), header.u32(space::TRUNK_OFF));
        if !header.validate() || count >= pages || trunk == 0 {
            return Ok(false); // Page numbers come from the end of the space.
        }
        let Some(latched) = self.try_latch(PageId::new(id, trunk))? else {
            return Ok(false);
        };
        if self.u16(latched, header::PAGE_TYPE) != PageType::FREE_TRUNK {
            self.unlatch(latched);
            return Ok(false);
        }
        self.claims[claim].trunk = Some(latched);
        Ok(true)
    }

    /// Reserves page numbers, with blocks in the file.
    fn claim_pages(&mut self, claim: usize, pages: u32) -> Result<(), Stop> {
        let core = self.core;
        let space = self.claims[claim].space;
        let claimed = space
            .claimed
            .fetch_add(pages, Ordering::SeqCst)
            .saturating_add(pages);
        let needed = space.pages.load(Ordering::SeqCst).saturating_add(claimed);
        if needed <= space.file_pages.load(Ordering::SeqCst) {
            self.claims[claim].pages += pages;
            return Ok(());
        }
        if !core.threaded() {
            let grown = space.grow(needed, core.options.extend_bytes);
            if let Err(e) = grown {
                space.claimed.fetch_sub(pages, Ordering::SeqCst);
                return Err(Stop::Error(e));
            }
            self.claims[claim].pages += pages;
            return Ok(());
        }
        space.claimed.fetch_sub(pages, Ordering::SeqCst);
        Err(core.grow_later(space, needed))
    }

    fn claim_frames(&mut self, count: usize) -> Result<(), Stop> {
        let core = self.core;
        let limit = core.pool.frames.count() / 4;
        if self.frames.len() + count > limit {
            return Err(Stop::Error(StoreError::TooLarge {
                what: "number of new pages of one mini-transaction",
                limit: limit as u64,
            }));
        }
        let want = self.frames.len() + count;
        while self.frames.len() < want {
            if core.threaded() {
                let freed = core.pool.freed.get();
                match core.pop_free() {
                    Some(frame) => self.frames.push(frame),
                    None if core.evict(1) > 0 => {}
                    None => {
                        core.kick_cleaner();
                        let wait = Wait::on(core.pool.freed.clone(), freed + 1);
                        return Err(Stop::Wait(
                            wait.watched(&core.contention, WaitKind::FreeFrame),
                        ));
                    }
                }
            } else {
                self.frames.push(core.frame_blocking()?);
            }
        }
        Ok(())
    }
}

impl Core {
    /// Makes a page resident, or returns the wait for it.
    fn resident(&self, space: &Space, id: PageId) -> Result<(), Stop> {
        loop {
            if let Some(word) = space.dir().get(id.page)
                && frame_of(word.begin_read()).is_some()
            {
                return Ok(());
            }
            self.miss(id)?;
        }
    }

    /// Lets an I/O thread grow the space's file to `pages` pages. Returns the wait for that, or the
    /// error of the last growth.
    fn grow_later(&self, space: &Space, pages: u32) -> Stop {
        let Some(space) = self.spaces.hold(space.id()) else {
            return Stop::Error(StoreError::SpaceGone(space.id()));
        };
        let mut growth = space.growth.lock();
        if let Some(error) = growth.error.take() {
            return Stop::Error(error);
        }
        let load = match &growth.running {
            Some(load) => load.clone(),
            None => {
                let load = Arc::new(Load::default());
                growth.running = Some(load.clone());
                self.io
                    .jobs
                    .push_other(Job::Grow(space.clone(), pages, load.clone()));
                load
            }
        };
        Stop::Wait(Wait::on(load, 0).watched(&self.contention, WaitKind::FileGrowth))
    }
}
