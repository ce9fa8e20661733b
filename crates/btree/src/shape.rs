//! What the pages of one level of a tree look like, as one reader saw them last, so that the lines of the next one can be asked for all at once.
//!
//! # Picture
//! ```text
//!  parent    | key of the slot ....... the key ............ key of the next slot |     how far on the way: the portion
//!  child     | header | slots ....^.... |  free | ............^........... cells |     slot and cell at that portion
//! ```
//! Hints lead to slots and slots to cells, so a page costs several waits for memory one after the other. Where keys lie evenly and came in
//! ascending order, as those of AUTO_INCREMENT do, the parent already says how far into its child a key is, and with that where slot and cell
//! lie: then all those waits are one. What is expected is asked for and looked at first, never believed.
//!
//! # Cost
//! Belongs to one reader; some forty instructions a page. Where the expected cells are mostly wrong, pages are searched as others do it.

use crate::node::{Node, PORTION_BITS, SLOTS, Slot};
use crate::root::RootCopy;
use nfold_store::PAGE_SIZE;
use nfold_sync::words;

/// Trust at the beginning, from which on what is expected is asked for, and at most.
const TRUST: u8 = 4;
const TRUST_MAX: u8 = 15;
/// What a wrong expectation costs.
const MISTRUST: u8 = 2;
/// An expected cell may lie this many bytes off.
const SLACK: usize = 64;
/// Slots on either side of the expected one.
const SLOT_SLACK: usize = 48;
/// Most bytes of a cell that are asked for.
const CELL_MAX: usize = 512;
/// Sixteenths of bytes.
const FINE: usize = 16;

/// What pages of one level look like. See the module's header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    /// Slots and cell bytes of the page seen last.
    count: u16,
    cell_bytes: u16,
    /// Mean length of its cells, in units of 1 / [`FINE`].
    cell: u32,
    trust: Trust,
}

/// Whether what is expected is asked for: it was right more often than not.
#[derive(Clone, Debug)]
pub(crate) struct Trust(u8);

impl Default for Trust {
    fn default() -> Trust {
        Trust(TRUST)
    }
}

impl Trust {
    #[inline(always)]
    pub(crate) fn is_there(&self) -> bool {
        self.0 >= TRUST
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, right: bool) {
        self.0 = if right {
            (self.0 + 1).min(TRUST_MAX)
        } else {
            self.0.saturating_sub(MISTRUST)
        };
    }
}

/// See the module's header. Kept from one look to the next.
#[derive(Clone, Debug, Default)]
pub struct TreeShape {
    pub(crate) leaves: Shape,
    pub(crate) parents: Shape,
    pub(crate) root: RootCopy,
}

impl TreeShape {
    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.root.memory()
    }

    /// Asks for what a look at a page below one at `level` needs, the page just entered, where the key is at `portion` of it.
    #[inline(always)]
    pub(crate) fn ask(
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

/// Where a key's slot and cell are expected.
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

    /// Whether its lines were asked for.
    #[inline(always)]
    pub(crate) fn trusted(self) -> bool {
        self.trusted
    }
}

impl Shape {
    #[cfg(test)]
    pub(crate) fn is_trusted(&self) -> bool {
        self.trust.is_there()
    }

    #[cfg(test)]
    pub(crate) fn trust(&self) -> u8 {
        self.trust.0
    }

    /// Asks for the lines of a page just entered that a look at a key at `portion` needs; `None`: it cannot say which those are.
    #[inline(always)]
    pub(crate) fn prefetch(&self, node: Node<'_>, portion: Option<u32>) -> Option<Expected> {
        let (portion, count) = (portion? as usize, usize::from(self.count));
        // A separator is the first key of its page, or anything down to the key before it: so rather down than up.
        let quarter = 1 << (PORTION_BITS - 2);
        let slot = ((portion * count + quarter) >> PORTION_BITS).min(count.checked_sub(1)?);
        Some(self.prefetch_slot(node, slot))
    }

    /// As [`prefetch`](Self::prefetch), where the slot is told.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self, node: Node<'_>, slot: usize) -> Expected {
        let length = self.cell as usize / FINE;
        let cell = PAGE_SIZE.saturating_sub((slot + 1) * self.cell as usize / FINE);
        let trusted = self.trust.is_there();
        if trusted {
            let at = SLOTS + 8 * slot;
            words::prefetch(node.words(), at - SLOT_SLACK);
            words::prefetch(node.words(), at + SLOT_SLACK);
            let asked = length.min(CELL_MAX) + 2 * SLACK;
            words::prefetch_range(node.words(), cell.saturating_sub(SLACK), asked);
        }
        Expected {
            slot,
            cell,
            trusted,
        }
    }

    /// The shape of a page that was looked at, and the slot of the key if it was there, whose cell had been `expected`.
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
