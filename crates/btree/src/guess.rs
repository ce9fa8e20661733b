//! Guesses: where a key's entry was last seen. They are kept in values of other trees, in place, unlogged, without making a page dirty; a
//! crash or an eviction may lose them, and whoever follows one checks what it leads to.
//!
//! # Picture
//! ```text
//!   group n        ask for the page words
//!   group n - 1    load the page words; ask for headers, guessed slots, marks of use
//!   group n - 2    a leaf of this tree? is the guessed slot, or one near it, the key's?  ask for its cell
//!   group n - 3    compare the keys, copy the values, validate all that was read of the pages
//! ```
//! What a step loads was asked for a step before. Asking is a loop of its own over the keys of a group: the processor goes past a prefetch only
//! when its address is translated, and walks through the page tables overlap as far as it looks ahead; so few instructions may stand between two
//! prefetches. They go to the second cache, as more can be under way there than to the first.
//! A guess that leads nowhere leaves its key to the descent.
//!
//! # Concurrency
//! A guess is written under the leaf's latch, so that no entry moves
//! meanwhile; the page's version stays, because a reader that copies half of an old and half of a new guess has a wrong guess, which is allowed.

use crate::batch::{EntryBatch, Found, GetMany};
use crate::node::{Key, NEAR, Node, SLOTS, Slot};
use crate::tree::TreeHandle;
use nfold_store::{PageNo, PageRef, SpacePages, Stop, Store, WordRef};
use nfold_sync::words;
use std::ops::Range;

/// Keys that take each step together.
const GROUP: usize = 16;
/// Steps, and groups in flight.
const STEPS: usize = 4;
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
    /// With only those bits of the page number that are in `mask`: of none, it is nowhere.
    #[inline(always)]
    pub fn if_in(self, mask: PageNo) -> Guess {
        let page = self.page & mask;
        Guess { page, ..self }
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

/// What is known of the key at the expected slot.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Match {
    /// Nothing, or another key.
    None,
    /// A key with the same head.
    Head,
    /// The key.
    Key,
}

/// One key in flight.
#[derive(Copy, Clone)]
struct Lane<'s> {
    page: PageRef<'s>,
    /// Where the key is expected: guessed, then seen.
    slot: usize,
    /// What stands there.
    cell: Slot,
    matches: Match,
}

type Lanes<'s> = [Option<Lane<'s>>; GROUP];

/// Asks for the words of the guessed pages.
#[inline(never)]
fn ask_for_words<'s>(
    pages: SpacePages<'s>,
    guesses: &[Guess],
    words: &mut [Option<WordRef<'s>>; GROUP],
) {
    for (guess, word) in guesses.iter().zip(words) {
        *word = match guess.page {
            0 => None,
            page => pages.word(page),
        };
    }
}

/// Looks up where the guessed pages are, and asks for what tells whether the guesses are right. A guess is not worth a read from disk: it may
/// be wrong.
///
/// As the other steps a function of its own, so that its loops have the registers for themselves.
#[inline(never)]
fn start<'s>(
    pages: SpacePages<'s>,
    guesses: &[Guess],
    words: &[Option<WordRef<'s>>; GROUP],
    lanes: &mut Lanes<'s>,
) {
    for ((guess, word), lane) in guesses.iter().zip(words).zip(&mut *lanes) {
        let page = word.and_then(|word| pages.peek_at(word, guess.page));
        *lane = page.map(|page| Lane {
            page,
            slot: usize::from(guess.slot),
            cell: Slot(0),
            matches: Match::None,
        });
    }
    for lane in lanes[..guesses.len()].iter().flatten() {
        let node = Node::new(lane.page.words());
        node.prefetch(0);
        node.prefetch(64);
        node.prefetch(SLOTS + 8 * lane.slot);
    }
}

impl Lane<'_> {
    /// Finds the key's slot by what is in the slots. False: the key is not on this page, or was moved.
    #[inline(always)]
    fn find(&mut self, tree: &TreeHandle, key: Key<'_>) -> bool {
        let node = Node::new(self.page.words());
        let Some(suffix) = node.suffix_here(key) else {
            return false;
        };
        if !tree.is_ours(node, 0) {
            return false;
        }
        let count = node.count();
        let guessed = node.slot(self.slot);
        if self.slot < count && guessed.head() == suffix.head {
            self.cell = guessed;
        } else {
            self.slot = node.search_around(self.slot, count, suffix.head);
            self.cell = node.slot(self.slot);
            if self.slot >= count || self.cell.head() != suffix.head {
                return true; // and nothing matches
            }
        }
        let whole = self.cell.key_len() == suffix.len && suffix.len <= 4;
        self.matches = if whole { Match::Key } else { Match::Head };
        true
    }
}

/// The keys that group `number` has of `all`.
#[inline(always)]
fn keys_of(all: &Range<usize>, number: Option<usize>) -> Range<usize> {
    let Some(number) = number else { return 0..0 };
    let from = (all.start + number * GROUP).min(all.end);
    from..(from + GROUP).min(all.end)
}

impl Lane<'_> {
    /// Copies the value of key `number`. `None`: that the key is not on the page says nothing, or the page has changed; `Some(None)`: the page is the one
    /// that would hold it.
    #[inline(always)]
    fn take<'k>(
        &self,
        number: u32,
        key: impl Fn() -> Key<'k>,
        values: &mut Vec<u8>,
    ) -> Option<Option<Found>> {
        let node = Node::new(self.page.words());
        let (slot, cell) = match self.matches {
            Match::Key => (self.slot, self.cell),
            Match::Head | Match::None => match self.search(node, key()) {
                (slot, true) => (slot, node.slot(slot)),
                // A key that is found is found, wherever the guess came from: it is in the tree once. That it is not there means nothing on
                // another page.
                (_, false) => {
                    let here = node.covers(key().bytes());
                    return (here && self.page.validate()).then_some(None);
                }
            },
        };
        let mark = values.len();
        let (at, len) =
            words::append_words(node.words(), cell.value_at(), node.value_len(cell), values);
        if !self.page.validate() {
            values.truncate(mark);
            return None;
        }
        Some(Some(Found {
            key: number,
            guess: Guess::new(self.page.id().page, slot),
            at: at as u32,
            len: len as u32,
        }))
    }

    /// The key's slot, where the slots have not told it for certain.
    #[inline(always)]
    fn search(&self, node: Node<'_>, key: Key<'_>) -> (usize, bool) {
        let suffix = node.suffix(key.bytes());
        if self.matches == Match::Head && node.tail_equals(self.cell, suffix) {
            return (self.slot, true);
        }
        node.search(node.count(), suffix)
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
        let mut lanes: [Lanes<'_>; STEPS] = [[const { None }; GROUP]; STEPS];
        let mut words = [const { None }; GROUP];
        let total = batch.len();
        let mut all = batch.next as usize..total;
        let mut cell_bytes = CELL_BYTES;
        let mut number = 0_usize;
        loop {
            let group = number.wrapping_sub(1);
            let keys = keys_of(&all, number.checked_sub(1));
            if !keys.is_empty() {
                let guesses = &batch.guesses[keys];
                start(pages, guesses, &words, &mut lanes[group % STEPS]);
            }
            let keys = keys_of(&all, Some(number));
            if !keys.is_empty() {
                ask_for_words(pages, &batch.guesses[keys], &mut words);
            }
            let group = number.wrapping_sub(2);
            let keys = keys_of(&all, number.checked_sub(2));
            if !keys.is_empty() {
                self.find_slots(pages, batch, keys, &mut lanes[group % STEPS], cell_bytes);
            }
            if let Some(group) = number.checked_sub(3) {
                let keys = keys_of(&all, Some(group));
                if keys.is_empty() {
                    break;
                }
                self.take_group(batch, keys, &lanes[group % STEPS]);
                if let Some(found) = batch.found.last() {
                    let last = found.len as usize + CELL_REST;
                    cell_bytes = ((cell_bytes + last) / 2).min(CELL_PREFETCH_MAX);
                }
                if batch.values.len() >= max_bytes {
                    // What has begun is finished.
                    all.end = keys_of(&all, Some(number)).end;
                }
            }
            number += 1;
        }
        batch.next = all.end as u32;
        // They are taken from the end.
        batch.pending[waiting..].reverse();
        all.end < total
    }

    /// Finds the slots of keys whose pages are known, and asks for their cells.
    #[inline(never)]
    fn find_slots(
        &self,
        pages: SpacePages<'_>,
        batch: &mut GetMany,
        keys: Range<usize>,
        lanes: &mut Lanes<'_>,
        cell_bytes: usize,
    ) {
        let lanes = &mut lanes[..keys.len()];
        for (key, place) in batch.keys.keys(keys).zip(&mut *lanes) {
            let Some(lane) = place else { continue };
            pages.touch(&lane.page);
            if !lane.find(self, key) {
                *place = None;
                batch.guess_misses += 1;
            }
        }
        for lane in lanes.iter().flatten() {
            Node::new(lane.page.words()).prefetch_cell(lane.cell.cell(), cell_bytes);
        }
    }

    /// Takes the values of keys whose cells are known; those that are not where they were guessed are left to the descent.
    #[inline(never)]
    fn take_group(&self, batch: &mut GetMany, keys: Range<usize>, lanes: &Lanes<'_>) {
        let GetMany {
            keys: all,
            guesses,
            found,
            values,
            ..
        } = batch;
        found.reserve(GROUP);
        let (mut hits, mut misses, mut far) = (0, 0, false);
        let first = keys.start;
        for (i, guess) in guesses[keys.clone()].iter().enumerate() {
            let number = (first + i) as u32;
            let taken = match &lanes[i] {
                Some(lane) => lane.take(number, || all.key(number), values),
                None => None,
            };
            match taken {
                Some(Some(place)) => {
                    hits += 1;
                    far |= guess.is_far_from(place.guess);
                    found.push(place);
                }
                Some(None) => hits += 1,
                None => {
                    misses += u32::from(lanes[i].is_some());
                    batch.pending.push(number);
                }
            }
        }
        batch.guess_hits += hits;
        batch.guess_misses += misses;
        batch.guesses_far |= far;
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
