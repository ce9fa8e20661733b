//! Guesses: where a key's entry was last seen. They are kept in values of other trees, in place, unlogged, without making a page dirty; a
//! crash or an eviction may lose them, and whoever follows one checks what it leads to.
//!
//! # Picture
//! ```text
//! key n + 2 DISTANCE   page word; prefetch page header and guessed slot
//! key n + DISTANCE     a leaf of this tree? is the guessed slot, or one near it, the key's?  prefetch its cell
//! key n                compare the key, copy the value, validate all that was read of the page
//! ```
//! Three keys are worked on in turn, so that the processor computes while memory works.
//! A guess that leads nowhere leaves its key to the descent.
//!
//! # Concurrency
//! A guess is written under the leaf's latch, so that no entry moves
//! meanwhile; the page's version stays, because a reader that copies half of an old and half of a new guess has a wrong guess, which is allowed.

use crate::batch::{EntryBatch, Found, GetMany};
use crate::node::{NEAR, Node, SLOTS, Slot, head_of};
use crate::tree::TreeHandle;
use nfold_store::{PageNo, PageRef, SpacePages, Stop, Store};
use nfold_sync::words;

/// How many keys later each step of a key is done than the one before.
const DISTANCE: usize = 8;
/// Keys in flight, at least `2 * DISTANCE + 1`.
const RING: usize = 32;
/// Length of a cell before any was seen, about; afterwards their mean is prefetched.
const CELL_BYTES: usize = 192;
/// Bytes of a cell besides the value, about.
const CELL_REST: usize = 16;
/// Most bytes of a cell that are prefetched.
const CELL_PREFETCH_MAX: usize = 1024;

/// Where an entry was last seen: page 0 is nowhere. Slots above 254 are not told apart.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Guess {
    pub page: PageNo,
    slot: u8,
}

impl Guess {
    pub const NONE: Guess = Guess { page: 0, slot: 0 };
    /// Bytes of a stored guess.
    pub const BYTES: usize = 5;

    pub fn new(page: PageNo, slot: usize) -> Guess {
        let slot = slot.min(255) as u8;
        Guess { page, slot }
    }
    /// Whether following this one to `found` took a search of the page, or of the tree.
    pub fn is_far_from(self, found: Guess) -> bool {
        self.page != found.page || usize::from(self.slot.abs_diff(found.slot)) > NEAR
    }
    /// As it is stored: slot, page.
    pub fn to_bytes(self) -> [u8; Guess::BYTES] {
        let [a, b, c, d] = self.page.to_le_bytes();
        [self.slot, a, b, c, d]
    }
    #[inline(always)]
    pub fn from_bytes([slot, page @ ..]: [u8; Guess::BYTES]) -> Guess {
        let page = u32::from_le_bytes(page);
        Guess { page, slot }
    }
}

/// One key in flight.
#[derive(Copy, Clone)]
struct Lane<'s> {
    page: PageRef<'s>,
    /// Where the key is expected: guessed, then seen.
    slot: usize,
    /// What stands there, and whether the key's head does.
    cell: Slot,
    same_head: bool,
}

/// Prefetches what tells whether the guess for key `number` is right; `None` without a guess. A guess is not worth a read from disk: it may be
/// wrong.
#[inline(always)]
fn start<'s>(pages: SpacePages<'s>, batch: &GetMany, number: u32) -> Option<Lane<'s>> {
    let guess = batch.guesses[number as usize];
    if guess.page == 0 {
        return None;
    }
    let page = pages.peek(guess.page)?;
    let slot = usize::from(guess.slot);
    let words = page.words();
    words::prefetch(words, 0);
    words::prefetch(words, 64);
    words::prefetch(words, SLOTS + 8 * slot);
    Some(Lane {
        page,
        slot,
        cell: Slot(0),
        same_head: false,
    })
}

impl Lane<'_> {
    /// Finds the key's slot by what is in the slots, and prefetches its cell. False: the key is not on this page, or was moved.
    #[inline(always)]
    fn find(&mut self, tree: &TreeHandle, key: &[u8], cell_bytes: usize) -> bool {
        let node = Node::new(self.page.words());
        if !tree.is_ours(node, 0) || !node.has_prefix(key) {
            return false;
        }
        let (head, count) = (head_of(node.suffix(key)), node.count());
        self.slot = node.search_near(self.slot, count, head);
        self.cell = node.slot(self.slot);
        self.same_head = self.slot < count && self.cell.head() == head;
        words::prefetch_range(node.words(), self.cell.cell(), cell_bytes);
        true
    }
}

impl TreeHandle {
    /// Tries the keys of a batch that were not tried yet at their guesses; what is not found there goes to `batch.pending`. True: the results
    /// reached `max_bytes`, and there is more.
    pub(crate) fn try_guesses(&self, store: &Store, batch: &mut GetMany, max_bytes: usize) -> bool {
        let Some(pages) = store.pages_of(self.tree.space) else {
            return false;
        };
        let waiting = batch.pending.len();
        let mut lanes = [const { None::<Lane<'_>> }; RING];
        let (first, total) = (batch.next as usize, batch.len());
        let mut end = total;
        let mut cell_bytes = CELL_BYTES;
        let mut step = first;
        while step < end + 2 * DISTANCE {
            if step < end {
                lanes[step % RING] = start(pages, batch, step as u32);
            }
            let middle = step.wrapping_sub(DISTANCE);
            if (first..end).contains(&middle)
                && let Some(lane) = &mut lanes[middle % RING]
                && !lane.find(self, batch.keys.get(middle as u32), cell_bytes)
            {
                lanes[middle % RING] = None;
                batch.guess_misses += 1;
            }
            let last = step.wrapping_sub(2 * DISTANCE);
            if (first..end).contains(&last) {
                let found = match &lanes[last % RING] {
                    Some(lane) => self.take_guessed(batch, last as u32, lane),
                    None => false,
                };
                if !found {
                    batch.pending.push(last as u32);
                }
                if let Some(found) = batch.found.last() {
                    cell_bytes = ((7 * cell_bytes + found.len as usize + CELL_REST) / 8)
                        .min(CELL_PREFETCH_MAX);
                }
                if batch.values.len() >= max_bytes {
                    end = end.min(step + 1);
                }
            }
            step += 1;
        }
        batch.next = end as u32;
        // They are taken from the end.
        batch.pending[waiting..].reverse();
        end < total
    }

    /// Whether the key was found on the page, or that page is the one that would hold it.
    #[inline(always)]
    fn take_guessed(&self, batch: &mut GetMany, number: u32, lane: &Lane<'_>) -> bool {
        let node = Node::new(lane.page.words());
        let key = batch.keys.get(number);
        let suffix = node.suffix(key);
        let (slot, cell, found) = if lane.same_head && node.tail_equals(lane.cell, suffix) {
            (lane.slot, lane.cell, true)
        } else {
            let (slot, found) = node.search(node.count(), suffix);
            (slot, node.slot(slot), found)
        };
        let mark = batch.values.len();
        let mut place = (0, 0);
        if found {
            let len = node.value_len(cell);
            place = words::append_words(node.words(), cell.value_at(), len, &mut batch.values);
        }
        // A key that is found is found, wherever the guess came from: it is in the tree once. That it is not there means nothing on another
        // page.
        let here = found || node.covers(key);
        if !lane.page.validate() || !here {
            batch.values.truncate(mark);
            batch.guess_misses += 1;
            return false;
        }
        batch.guess_hits += 1;
        if found {
            let guess = Guess::new(lane.page.id().page, slot);
            let far = batch.guesses[number as usize].is_far_from(guess);
            batch.guesses_far |= far;
            batch.found.push(Found {
                key: number,
                guess,
                at: place.0 as u32,
                len: place.1 as u32,
            });
        }
        true
    }

    /// Copies the entries of the leaf `page`, if that is one of this tree's and in memory; otherwise, or when it changes meanwhile,
    /// copies nothing and gives false.
    pub fn leaf_entries(&self, store: &Store, page: PageNo, out: &mut EntryBatch) -> bool {
        let id = self.page_id(page);
        if !store.is_resident(id) {
            return false;
        }
        let Ok(page) = store.read(id) else {
            return false;
        };
        let node = Node::new(page.words());
        let mark = out.mark();
        if self.is_ours(node, 0) {
            out.push_all(0, id.page, node, 0..node.count());
        }
        let good = page.validate();
        if !good {
            out.cut(mark);
        }
        good
    }

    /// Stores guesses at byte `at` of the values of these keys, as far as they are on the leaf `page` and long enough.
    pub fn write_guesses<'k>(
        &self,
        store: &Store,
        page: PageNo,
        at: usize,
        guesses: impl IntoIterator<Item = (&'k [u8], Guess)>,
    ) -> Result<(), Stop> {
        let mut mtr = store.mtr();
        let leaf = mtr.latch(self.page_id(page))?;
        let node = Node::new(mtr.words(leaf));
        if !self.is_ours(node, 0) {
            return Ok(());
        }
        for (key, guess) in guesses {
            if !node.has_prefix(key) {
                continue;
            }
            let (slot, found) = node.search(node.count(), node.suffix(key));
            let slot = node.slot(slot);
            if found && node.holds_cell(slot) && node.value_len(slot) >= at + Guess::BYTES {
                mtr.write_hint(leaf, slot.value_at() + at, &guess.to_bytes());
            }
        }
        Ok(())
    }
}
