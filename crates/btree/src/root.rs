//! A reader's private copy of a tree's root. With it a lookup starts one level below the root.
//!
//! # Picture
//! ```text
//!  root      | slots, cells ..................... |      page word: seen
//!  copy      words     [ 0 | first 8 key bytes of separator 1 | of separator 2 | ... ]
//!            children  [ . | page number                      | ...             | ... ]
//!            below     [ . | the child's first child, count and words | ... ]    as last seen
//! ```
//! Pages that were allocated in sequence have consecutive numbers. The copy can then predict a
//! leaf's page number before the leaf's parent arrives from memory, and both are prefetched at the
//! same time ([`RootCopy::ahead`]). A prediction is always verified, and predicting stops where it
//! is mostly wrong.
//!
//! # Invariants
//! - R1: the copy equals the root's content at the page word [`seen`](RootCopy::seen). Page words
//!   never repeat, so a root with that word still has this content. A step through the copy is as
//!   good as one through the page: after the child's word is loaded, the root's word is validated
//!   again ([`PageRef::validate`](nfold_store::PageRef::validate)).
//! - R2: the words ascend strictly, so a word that differs from the key's own word decides the
//!   comparison. If both are equal, the lookup uses the page.
//! # Cost
//! The copy belongs to one reader. A root is copied only after it stayed unchanged for as many
//! lookups as the copy costs, so growing trees are not copied over and over. It has at most
//! [`MOST`] slots of 36 bytes.

use crate::node::{Node, PORTION_BITS};
use crate::shape::{Expected, Shape, Trust};
use nfold_store::{PageNo, PageRef, SpacePages};

/// The largest root, in slots, that is copied.
const MOST: usize = 512;
/// A root is copied after this many unchanged lookups, plus one for every [`SLOTS_A_LOOK`] slots.
const LOOKS: usize = 4;
const SLOTS_A_LOOK: usize = 4;

/// See the module's header.
#[derive(Clone, Debug, Default)]
pub(crate) struct RootCopy {
    /// The tree's [`TreeHandle::id`](crate::tree::TreeHandle).
    tree: u64,
    /// The root's page word at the last lookup, and the number of lookups in a row that found it.
    seen: u64,
    looks: usize,
    level: u16,
    /// For interpolation: the number of slots per unit of word distance, in units of 2^-64.
    slots_a_word: u64,
    words: Vec<u64>,
    children: Vec<PageNo>,
    below: Vec<Below>,
    numbers: Trust,
}

/// The layout of a child, for prediction: the number of its own first child (if these numbers are
/// consecutive), its slot count (0: unknown), and the words of its second and its last separator.
/// Words between these two are assumed to be evenly distributed.
#[derive(Copy, Clone, Debug, Default)]
struct Below {
    first: PageNo,
    count: u32,
    low: u64,
    high: u64,
}

impl Below {
    /// Interpolates the slot of a word, and how far it is on the way to the next slot in units of
    /// 2^-32. `None` if the word is not between the known separators.
    #[inline(always)]
    fn place(&self, word: u64) -> Option<(u32, u32)> {
        if word < self.low || word >= self.high {
            return None;
        }
        let place = u64::from(far(self.low, self.high, word)) * u64::from(self.count - 2);
        Some((1 + (place >> 32) as u32, place as u32))
    }
}

/// How far `word` is on the way from `low` to `high`, in units of 2^-32. It must be between them.
#[inline(always)]
fn far(low: u64, high: u64, word: u64) -> u32 {
    let way = high - low;
    let shift = way.leading_zeros();
    let (way, done) = ((way << shift) >> 32, (word - low) << shift);
    (done / way).min(u64::from(u32::MAX)) as u32
}

/// A step from the root to a child.
pub(crate) struct Way {
    slot: usize,
    pub child: PageNo,
    /// The root's level.
    pub level: u16,
    /// How far the key is on the way from the child's separator to the next: see
    /// [`Node::portion_of`].
    pub portion: Option<u32>,
    /// The number of the child's first child, and the key's predicted slot in the child with its
    /// distance to the next slot.
    first: PageNo,
    place: Option<(u32, u32)>,
}

impl Way {
    /// The key's predicted slot in the child.
    #[inline(always)]
    pub(crate) fn slot_below(&self) -> Option<usize> {
        self.place.map(|(slot, _)| slot as usize)
    }
}

/// The predicted leaf of a key, and the key's predicted position on it.
pub(crate) struct Ahead {
    leaf: PageNo,
    expected: Option<Expected>,
}

impl RootCopy {
    #[cfg(test)]
    pub(crate) fn is_copied(&self) -> bool {
        !self.words.is_empty()
    }

    /// Heap bytes in use.
    pub(crate) fn memory(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
            + self.children.capacity() * size_of::<PageNo>()
            + self.below.capacity() * size_of::<Below>()
    }

    /// The step to the child that covers a key with first word `word`, if the copy can tell without
    /// reading `root`, whose word was just loaded.
    #[inline(always)]
    pub(crate) fn way(&self, tree: u64, root: &PageRef<'_>, word: u64) -> Option<Way> {
        if self.seen != root.version() || self.tree != tree {
            return None;
        }
        let (low, high, slot) = self.place(word)?;
        if low == word {
            return None; // R2
        }
        let below = match self.level {
            2 => self.below.get(slot).copied().unwrap_or_default(),
            _ => Below::default(),
        };
        Some(Way {
            slot,
            child: *self.children.get(slot)?,
            level: self.level,
            portion: high.map(|high| far(low, high, word) >> (32 - PORTION_BITS)),
            first: below.first,
            place: below.place(word),
        })
    }

    /// Predicts the leaf below the child, and prefetches the lines that a lookup of the key on it
    /// needs.
    #[inline(always)]
    pub(crate) fn ahead(&self, pages: SpacePages<'_>, way: &Way, leaves: &Shape) -> Option<Ahead> {
        let (slot, far) = way.place?;
        let leaf = way.first.wrapping_add(slot);
        let mut expected = None;
        if self.numbers.is_enough()
            && let Some(bytes) = pages.word(leaf).and_then(|word| pages.resident_at(word))
        {
            let node = Node::new(bytes);
            node.prefetch_entry();
            expected = leaves.prefetch(node, Some(far >> (32 - PORTION_BITS)));
        }
        Some(Ahead { leaf, expected })
    }

    /// Compares the prediction with the actual child: `way` led to a page that has `leaf` in
    /// `slot`. Returns the key's predicted position if the predicted leaf was right.
    #[inline(always)]
    pub(crate) fn learn(
        &mut self,
        way: &Way,
        ahead: Option<Ahead>,
        (node, word): (Node<'_>, u64),
        (slot, leaf): (usize, PageNo),
    ) -> Option<Expected> {
        let right = ahead.as_ref().is_some_and(|ahead| ahead.leaf == leaf);
        if ahead.is_some() {
            self.numbers.learn(right);
        }
        if !right {
            self.learn_below(way, (node, word), (slot, leaf));
            return None;
        }
        ahead?.expected
    }

    #[inline(never)]
    fn learn_below(
        &mut self,
        way: &Way,
        (node, word): (Node<'_>, u64),
        (slot, leaf): (usize, PageNo),
    ) {
        let (count, prefix) = (node.count(), 8 * node.prefix_len() as u32);
        // The page's common key prefix is also the key's prefix.
        let common = word & !u64::MAX.unbounded_shr(prefix);
        let word = |slot| common | node.suffix_word(node.slot(slot)).unbounded_shr(prefix);
        let mut below = Below::default();
        if count >= 4 {
            (below.low, below.high) = (word(1), word(count - 1));
            (below.first, below.count) = (leaf.wrapping_sub(slot as u32), count as u32);
        }
        if let Some(known) = self.below.get_mut(way.slot) {
            *known = below;
        }
    }

    /// The last word that is not above `word`, the word behind it, and its slot. `None` without a
    /// copy.
    #[inline(always)]
    fn place(&self, word: u64) -> Option<(u64, Option<u64>, usize)> {
        let first = *self.words.get(1)?;
        let words = &self.words[..];
        // Interpolates first: numbers are often evenly distributed.
        let far = u128::from(word.saturating_sub(first)) * u128::from(self.slots_a_word);
        let row_hint = 1 + (far >> 64) as usize;
        if let Some(&[low, high]) = words.get(row_hint..row_hint + 2)
            && low <= word
            && word < high
        {
            return Some((low, Some(high), row_hint));
        }
        let slot = words.partition_point(|w| *w <= word).checked_sub(1)?;
        Some((words[slot], words.get(slot + 1).copied(), slot))
    }

    /// Notes a lookup that read `root`, an inner page with `count` slots, because there was no
    /// copy. Copies the root once it stayed unchanged for long enough.
    #[inline(always)]
    pub(crate) fn look(&mut self, tree: u64, root: &PageRef<'_>, node: Node<'_>, count: usize) {
        if self.seen != root.version() || self.tree != tree {
            (self.seen, self.tree, self.looks) = (root.version(), tree, 0);
            self.words.clear();
        } else if count <= MOST {
            self.looks += 1;
            if self.looks == 1 && self.words.capacity() < count {
                self.reserve(count);
            }
            if self.looks == LOOKS + count / SLOTS_A_LOOK {
                self.copy(root, node, count);
            }
        }
    }

    /// Memory for the copy is allocated at the second lookup of a root, so that no warm read
    /// allocates.
    #[cold]
    fn reserve(&mut self, count: usize) {
        self.children.clear();
        self.below.clear();
        self.words.reserve(count);
        self.children.reserve(count);
        self.below.reserve(count);
    }

    #[cold]
    fn copy(&mut self, root: &PageRef<'_>, node: Node<'_>, count: usize) {
        self.words.clear();
        self.children.clear();
        self.below.clear();
        self.below.resize(count, Below::default());
        for i in 0..count {
            let slot = node.slot(i);
            self.words.push(node.suffix_word(slot));
            self.children.push(node.child(slot));
        }
        self.level = node.level();
        let ascend = self.words.is_sorted_by(|a, b| a < b);
        // The first key is empty, below all others. A root has no fence keys, hence no prefix.
        let whole = node.prefix_len() == 0 && self.words.first() == Some(&0);
        if !ascend || !whole || count < 2 || !root.validate() {
            self.words.clear();
            return;
        }
        let way = self.words[count - 1] - self.words[1];
        self.slots_a_word = match way {
            0 => 0,
            way => {
                ((((count - 2) as u128) << 64) / u128::from(way)).min(u128::from(u64::MAX)) as u64
            }
        };
    }
}
