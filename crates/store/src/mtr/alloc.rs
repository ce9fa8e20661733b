//! Allocation of pages from a space, and freeing them.
//!
//! # Picture
//! See [`crate::space`] for the free list: a stack in the header page, continued in trunk pages.
//! # Concurrency
//! The space's header page is latched from the first allocation to the commit. So one
//! mini-transaction at a time allocates page numbers. A page freed by this one can be allocated by
//! others only after this one's log range is reserved.

use super::{Latched, Mtr};
use crate::core::Count;
use crate::error::Stop;
use crate::page::{PageId, PageType, SpaceId, header};
use crate::space::{self, Space};
use nfold_sync::page_word::{frame_of, is_exclusive};
use std::sync::atomic::Ordering;

impl<'a> Mtr<'a> {
    /// Allocates a page, which is returned latched: its header, followed by zeros. It must have
    /// been reserved, and cannot fail.
    pub fn alloc_page(
        &mut self,
        space: SpaceId,
        page_type: u16,
        level: u16,
        index_id: u64,
    ) -> Latched {
        let at = self
            .claims
            .iter()
            .position(|c| c.space.id() == space)
            .expect("I2: reserve() is called before alloc_page()");
        let claim = &mut self.claims[at];
        claim.pages = claim
            .pages
            .checked_sub(1)
            .expect("I2: no more pages are allocated than were reserved");
        let space = claim.space;
        let page = self.take_number(at);
        space.claimed.fetch_sub(1, Ordering::SeqCst);
        let p = self.latch_new(space, PageId::new(space.id(), page));
        self.init_page(p, page_type, level, index_id);
        self.core.counters.add(Count::PagesCreated as usize, 1);
        p
    }

    /// Takes a page number from the header page's list, the trunk page, or the end of the space.
    fn take_number(&mut self, claim: usize) -> u32 {
        let (space, trunk) = (self.claims[claim].space, self.claims[claim].trunk);
        let h = self.latch_header(space);
        let count = self.u32(h, space::COUNT_OFF);
        if count > 0 {
            let page = self.u32(h, space::list_entry(count as usize - 1));
            self.write(h, space::COUNT_OFF, &(count - 1).to_le_bytes());
            return page;
        }
        if let Some(t) = trunk {
            self.claims[claim].trunk = None;
            if self.u32(h, space::TRUNK_OFF) == self.id(t).page {
                let mut list = vec![0u8; space::LIST_MAX * 4];
                self.copy(t, space::LIST_OFF, &mut list);
                self.write(h, space::LIST_OFF, &list);
                self.write(h, space::COUNT_OFF, &(space::LIST_MAX as u32).to_le_bytes());
                let next = self.u32(t, space::NEXT_TRUNK_OFF);
                self.write(h, space::TRUNK_OFF, &next.to_le_bytes());
                return self.id(t).page;
            }
        }
        let page = self.u32(h, space::PAGES_OFF);
        self.write(h, space::PAGES_OFF, &(page + 1).to_le_bytes());
        space.pages.fetch_max(page + 1, Ordering::SeqCst);
        page
    }

    /// Latches the space's header page. It is resident because `reserve` pinned it, even if the
    /// space was dropped since.
    fn latch_header(&mut self, space: &'a Space) -> Latched {
        let id = space::header_page(space.id());
        if let Some(p) = self.find(id) {
            return p;
        }
        loop {
            match self.latch_in(space, id) {
                Ok(p) => return p,
                Err(Stop::Wait(wait)) => wait.block(),
                Err(Stop::Error(e)) => self.core.die(&format!(
                    "the header page of {} is unusable: {e}",
                    space.name()
                )),
            }
        }
    }

    /// Latches a page whose old contents do not matter, whether it is resident or not.
    fn latch_new(&mut self, space: &'a Space, id: PageId) -> Latched {
        if let Some(p) = self.find(id) {
            return p; // The number is that of a trunk page whose list was used up.
        }
        let word = space.dir().get_or_make(id.page);
        loop {
            if let Some(before) = self.core.latch_word(id, (space, word)) {
                return self.hold(id, word, before);
            }
            let seen = word.load();
            if is_exclusive(seen) || frame_of(seen).is_some() {
                continue;
            }
            let frame = *self
                .frames
                .last()
                .expect("I2: a frame was reserved for each new page");
            self.core.pool.frames.set_page(frame, Some(id));
            self.core.pool.frames.set_used(frame, 2);
            self.core
                .pool
                .probation
                .admit(&self.core.pool.frames, frame, id, false);
            if let Some(before) = word.install_latched(seen, frame) {
                self.frames.pop();
                self.core
                    .pool
                    .probation
                    .enter(&self.core.pool.frames, frame, id);
                return self.hold(id, word, before);
            }
        }
    }

    /// Frees a page. It stays latched until the end.
    pub fn free_page(&mut self, p: Latched) {
        let id = self.id(p);
        assert!(id.page != 0, "a space's header page is never freed");
        debug_assert!(
            self.u16(p, header::PAGE_TYPE) != PageType::FREE,
            "a page is freed only once"
        );
        let at = self
            .claims
            .iter()
            .position(|c| c.space.id() == id.space)
            .expect("I2: reserve() is called before free_page()");
        let h = self.latch_header(self.claims[at].space);
        let count = self.u32(h, space::COUNT_OFF) as usize;
        if count < space::LIST_MAX {
            self.init_page(p, PageType::FREE, 0, 0);
            self.write(h, space::list_entry(count), &id.page.to_le_bytes());
            self.write(h, space::COUNT_OFF, &(count as u32 + 1).to_le_bytes());
            return;
        }
        let mut list = vec![0u8; space::LIST_MAX * 4];
        self.copy(h, space::LIST_OFF, &mut list);
        let next = self.u32(h, space::TRUNK_OFF);
        self.init_page(p, PageType::FREE_TRUNK, 0, 0);
        self.write(p, space::LIST_OFF, &list);
        self.write(p, space::NEXT_TRUNK_OFF, &next.to_le_bytes());
        self.write(h, space::TRUNK_OFF, &id.page.to_le_bytes());
        self.write(h, space::COUNT_OFF, &0u32.to_le_bytes());
    }
}
