//! Records the waits for latches; see [`nfold_observe::contention`]. All code here is on the slow
//! path, after a first attempt failed.

use crate::core::{Core, Count};
use crate::page::{PageId, header};
use crate::space::Space;
use nfold_observe::contention::{PageAbout, Site, Ticket, WaitKind};
use nfold_sync::PageWord;
use nfold_sync::page_word::{frame_of, is_exclusive};
use nfold_sync::words;

impl Core {
    /// Latches a resident page, and records the wait for another holder if there is one. Returns
    /// the page word from before, or `None` if the page is not resident or belongs to another
    /// space.
    #[inline]
    pub(crate) fn latch_word(&self, id: PageId, at: (&Space, &PageWord)) -> Option<u64> {
        let (space, word) = at;
        loop {
            let seen = word.load();
            if is_exclusive(seen) {
                return self.latch_after_wait(id, at);
            }
            frame_of(seen)?;
            if word.try_latch(seen) {
                // A latched page cannot be evicted, so it stays this space's page from here on (T3
                // of `spaces`).
                let right = space.is(id.space);
                if !right {
                    word.release_unchanged(seen);
                }
                return right.then_some(seen);
            }
        }
    }

    /// Waits for the latch while the space is held. The caller may have latched other pages, and
    /// the latch order depends on the kind of page. So it must not sleep on a word that may belong
    /// to another space by then.
    #[cold]
    fn latch_after_wait(&self, id: PageId, (space, word): (&Space, &PageWord)) -> Option<u64> {
        self.counters.add(Count::LatchWaits as usize, 1);
        if !space.hold(id.space) {
            return None;
        }
        let ticket = self.enter_page(WaitKind::PageLatch, id, word);
        let before = word.latch_resident();
        self.contention
            .leave(ticket, before.and_then(|w| self.about(w)));
        space.release();
        before
    }

    /// Waits until a page is not latched exclusively, and returns its word, or 0 if it belongs to
    /// another space.
    #[cold]
    pub(crate) fn wait_to_read(&self, id: PageId, (space, word): (&Space, &PageWord)) -> u64 {
        self.counters.add(Count::LatchWaits as usize, 1);
        if !space.hold(id.space) {
            return 0; // For the reason given at `latch_after_wait`.
        }
        let ticket = self.enter_page(WaitKind::PageRead, id, word);
        let seen = word.begin_read();
        self.contention.leave(ticket, self.about(seen));
        space.release();
        seen
    }

    fn enter_page(&self, kind: WaitKind, id: PageId, word: &PageWord) -> Ticket {
        let site = Site::page(kind, id.space, id.page);
        self.contention.enter_page(site, self.about(word.load()))
    }

    /// Describes the page under this word. The frame may contain another page by now; then the
    /// description is wrong, which only mislabels a number.
    fn about(&self, word: u64) -> Option<PageAbout> {
        let words = self.pool.frames.words(frame_of(word)?);
        Some(PageAbout {
            page_type: words::load_u16(words, header::PAGE_TYPE),
            index: words::load_u64(words, header::INDEX_ID),
            level: words::load_u16(words, header::LEVEL),
        })
    }
}
