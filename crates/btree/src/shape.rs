//! The layout of the pages on one level of a tree, as one reader last saw them. From it the reader
//! predicts the cache lines of the next page, and prefetches all of them at once.
//!
//! # Picture
//! ```text
//!  parent    | key of the slot ....... the key ............ key of the next slot |     how far on the way: the portion
//!  child     | header | slots ....^.... |  free | ............^........... cells |     slot and cell at that portion
//! ```
//! Search hints lead to slots, and slots to cells, so a page costs several dependent cache misses.
//! If keys are evenly distributed and were inserted in ascending order, as with AUTO_INCREMENT, the
//! parent already tells how far into its child a key is. That predicts slot and cell, and all
//! misses overlap. Predicted positions are searched first, and always verified.
//!
//! # Cost
//! The layout belongs to one reader, and costs about forty instructions per page. Where too many
//! predictions are wrong (see [`Trust`]), nothing is prefetched by them.

use crate::node::{Node, PORTION_BITS, SLOTS, Slot};
use crate::root::RootCopy;
use nfold_store::PAGE_SIZE;
use nfold_sync::words;

/// The initial score, which is also the least score at which lines are prefetched.
const TRUST: u8 = 4;
const TRUST_MAX: u8 = 15;
/// A wrong prediction lowers the score by this much; a right one raises it by 1.
const MISTRUST: u8 = 2;
/// A cell may lie this many bytes away from its predicted offset.
const SLACK: usize = 64;
/// The slots' bytes that are prefetched on either side of the predicted slot.
const SLOT_SLACK: usize = 48;
/// The most bytes of a cell that are prefetched.
const CELL_MAX: usize = 512;
/// Lengths are kept in sixteenths of bytes.
const FINE: usize = 16;

/// The layout of the pages of one level. See the module's header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    /// The slot count and the cell bytes of the page seen last.
    count: u16,
    cell_bytes: u16,
    /// The mean length of its cells, in units of 1 / [`FINE`] byte.
    cell: u32,
    trust: Trust,
}

/// Decides whether to prefetch predicted lines: at first, and while about two thirds of the
/// predictions are right.
#[derive(Clone, Debug)]
pub(crate) struct Trust(u8);

impl Default for Trust {
    fn default() -> Trust {
        Trust(TRUST)
    }
}

impl Trust {
    /// Whether to prefetch.
    #[inline(always)]
    pub(crate) fn is_enough(&self) -> bool {
        self.0 >= TRUST
    }

    /// Counts one prediction.
    #[inline(always)]
    pub(crate) fn learn(&mut self, right: bool) {
        self.0 = if right {
            (self.0 + 1).min(TRUST_MAX)
        } else {
            self.0.saturating_sub(MISTRUST)
        };
    }
}

/// What a reader remembers of a tree from one lookup to the next. See the module's header.
#[derive(Clone, Debug, Default)]
pub struct TreeShape {
    pub(crate) leaves: Shape,
    pub(crate) parents: Shape,
    pub(crate) root: RootCopy,
}

impl TreeShape {
    /// Heap bytes in use.
    pub fn memory(&self) -> usize {
        self.root.memory()
    }

    /// Prefetches the lines that a lookup needs on page `below`, the child of a page at `level`,
    /// and returns the predicted position of the key. `portion` says how far into the child the key
    /// is; without it nothing can be predicted. Reads nothing of the page, so its content may still
    /// change.
    #[inline(always)]
    pub(crate) fn prefetch_child(
        &self,
        below: Node<'_>,
        level: u16,
        portion: Option<u32>,
    ) -> Option<Expected> {
        let expected = match level {
            1 => self.leaves.prefetch(below, portion),
            2 => self.parents.prefetch(below, portion),
            _ => None,
        };
        if level == 1 && !expected.is_some_and(|e| e.trusted()) {
            below.prefetch_first_slots();
        }
        expected
    }
}

/// The predicted slot and cell offset of a key.
#[derive(Copy, Clone)]
pub(crate) struct Expected {
    slot: usize,
    cell: usize,
    trusted: bool,
}

impl Expected {
    #[inline(always)]
    pub(crate) fn slot(self) -> usize {
        self.slot
    }

    /// Whether its lines were prefetched.
    #[inline(always)]
    pub(crate) fn trusted(self) -> bool {
        self.trusted
    }
}

impl Shape {
    #[cfg(test)]
    pub(crate) fn is_trusted(&self) -> bool {
        self.trust.is_enough()
    }

    #[cfg(test)]
    pub(crate) fn trust(&self) -> u8 {
        self.trust.0
    }

    /// Predicts the position of a key at `portion` of a page, and prefetches its lines if the
    /// predictions are trusted. `None` if it cannot predict them.
    #[inline(always)]
    pub(crate) fn prefetch(&self, node: Node<'_>, portion: Option<u32>) -> Option<Expected> {
        let (portion, count) = (portion? as usize, usize::from(self.count));
        // A separator is the first key of its page, or any key down to the one before it. So the
        // estimate is rounded down rather than up.
        let quarter = 1 << (PORTION_BITS - 2);
        let slot = ((portion * count + quarter) >> PORTION_BITS).min(count.checked_sub(1)?);
        Some(self.prefetch_slot(node, slot))
    }

    /// As [`prefetch`](Self::prefetch), for a key whose slot is already predicted.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, node: Node<'_>, slot: usize) -> Expected {
        let length = self.cell as usize / FINE;
        let cell = PAGE_SIZE.saturating_sub((slot + 1) * self.cell as usize / FINE);
        let trusted = self.trust.is_enough();
        if trusted {
            let at = SLOTS + 8 * slot;
            words::prefetch(node.words(), at - SLOT_SLACK);
            words::prefetch(node.words(), at + SLOT_SLACK);
            let wanted = length.min(CELL_MAX) + 2 * SLACK;
            words::prefetch_range(node.words(), cell.saturating_sub(SLACK), wanted);
        }
        Expected {
            slot,
            cell,
            trusted,
        }
    }

    /// Learns the layout of a page after its search, and whether `expected` predicted the cell of
    /// the found `slot`. What it learns from a page that was not validated can only make
    /// predictions worse.
    #[inline(always)]
    pub(crate) fn learn(&mut self, node: Node<'_>, expected: Option<Expected>, slot: Option<Slot>) {
        let (count, bytes) = (node.count(), PAGE_SIZE.saturating_sub(node.cell_start()));
        if (count as u16, bytes as u16) != (self.count, self.cell_bytes) {
            (self.count, self.cell_bytes) = (count as u16, bytes as u16);
            self.cell = (bytes * FINE / count.max(1)) as u32;
        }
        if let (Some(expected), Some(slot)) = (expected, slot) {
            self.trust
                .learn(slot.cell().abs_diff(expected.cell) <= SLACK);
        }
    }
}
