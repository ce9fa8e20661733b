//! What the store notes about waits: see [`nfold_observe::contention`]. Everything here is behind a test that failed.

use crate::core::{Core, Count};
use crate::page::{PageId, header};
use crate::space::Space;
use nfold_observe::contention::{Contention, PageAbout, Site, Ticket, WaitKind};
use nfold_sync::PageWord;
use nfold_sync::page_word::{frame_of, is_exclusive};
use nfold_sync::words;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// A wait of a statement that lets its worker go meanwhile: begins when it is first found not to be over.
pub(crate) struct Watched {
    contention: Arc<Contention>,
    kind: WaitKind,
    ticket: Option<Ticket>,
}

impl Watched {
    pub(crate) fn new(contention: &Arc<Contention>, kind: WaitKind) -> Watched {
        Watched {
            contention: contention.clone(),
            kind,
            ticket: None,
        }
    }

    pub(crate) fn begin(&mut self) {
        if self.ticket.is_none() {
            self.ticket = Some(self.contention.enter(Site::of(self.kind)));
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.contention.leave(ticket, None);
        }
    }
}

/// Takes a mutex; a wait for it is noted.
pub fn lock_watched<'m, T>(
    mutex: &'m Mutex<T>,
    contention: &Contention,
    site: impl FnOnce() -> Site,
) -> MutexGuard<'m, T> {
    match mutex.try_lock() {
        Some(guard) => guard,
        None => contention.during(site(), || mutex.lock()),
    }
}

impl Core {
    /// Latches a resident page. A wait for another holder is noted.
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
                // A page that is latched is not forgotten, so from here on it stays this space's (T3 of `spaces`).
                let right = space.is(id.space);
                if !right {
                    word.release_unchanged(seen);
                }
                return right.then_some(seen);
            }
        }
    }

    /// The caller may have latched other pages. The order of latches is one of what pages are, so nobody sleeps for a word that may be another
    /// space's by now: the space is held meanwhile.
    #[cold]
    fn latch_after_wait(&self, id: PageId, (space, word): (&Space, &PageWord)) -> Option<u64> {
        self.counters.add(Count::LatchWaits as usize, 1);
        if !space.hold(id.space) {
            return None;
        }
        let ticket = self.enter_page(WaitKind::PageLatch, id);
        let before = word.latch_resident();
        self.contention
            .leave(ticket, before.and_then(|w| self.about(w)));
        space.release();
        before
    }

    /// Waits until a page is not latched; gives its word then, or 0 if it is another space's.
    #[cold]
    pub(crate) fn wait_to_read(&self, id: PageId, (space, word): (&Space, &PageWord)) -> u64 {
        self.counters.add(Count::LatchWaits as usize, 1);
        if !space.hold(id.space) {
            return 0; // as in `latch_after_wait`
        }
        let ticket = self.enter_page(WaitKind::PageRead, id);
        let seen = word.begin_read();
        self.contention.leave(ticket, self.about(seen));
        space.release();
        seen
    }

    fn enter_page(&self, kind: WaitKind, id: PageId) -> Ticket {
        self.contention.enter(Site::page(kind, id.space, id.page))
    }

    /// What the page under this word is. Another may have come into the frame, which would put a wrong name to a number.
    fn about(&self, word: u64) -> Option<PageAbout> {
        let words = self.frames.words(frame_of(word)?);
        Some(PageAbout {
            page_type: words::load_u16(words, header::PAGE_TYPE),
            index: words::load_u64(words, header::INDEX_ID),
            level: words::load_u16(words, header::LEVEL),
        })
    }
}
