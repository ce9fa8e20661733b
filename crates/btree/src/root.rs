//! What a reader remembers of a tree's root, so that a look at a key begins a level below it.
//!
//! # Picture
//! ```text
//!  root      | slots, cells ..................... |      page word: seen
//!  copy      words     [ 0 | first 8 key bytes of separator 1 | of separator 2 | ... ]
//!            children  [ . | page number                      | ...             | ... ]
//!            below     [ . | number of the child's own first child, count, words | ... ]    as that was seen last
//! ```
//! Pages that were made one after the other have numbers one after the other. Then the number of a leaf can be told from the copy, before its parent came from
//! memory, and the leaf is asked for at the same time ([`RootCopy::ahead`]). That is never believed, and given up where it is mostly wrong.
//!
//! # Invariants
//! - R1: the copy is what the root held when its page word was [`seen`](RootCopy::seen); page words never come back, so a root whose word is that one
//!   holds it still. A way through the copy counts as one through the page: when the child's word was loaded, the root's is looked at again
//!   ([`PageRef::validate`](nfold_store::PageRef::validate)).
//! - R2: the words ascend strictly, so one that is not the key's own decides. Where it is, the page is asked.
//! # Cost
//! Belongs to one reader. A copy is made only of a root that has stood still for as many looks as it takes, so that trees that grow are not copied again and
//! again; at most [`MOST`] slots, 36 bytes each.

use crate::node::{Node, PORTION_BITS};
use crate::shape::{Expected, Shape, Trust};
use nfold_store::{PageNo, PageRef, SpacePages};

/// Most slots of a root that is copied.
const MOST: usize = 512;
/// Looks at the same root before it is copied, besides one for every [`SLOTS_A_LOOK`] slots.
const LOOKS: usize = 4;
const SLOTS_A_LOOK: usize = 4;

/// See the module's header.
#[derive(Clone, Debug, Default)]
pub(crate) struct RootCopy {
    /// Whose root it is.
    tree: u64,
    /// The page word of the root seen last, and how often in a row it was that one.
    seen: u64,
    looks: usize,
    level: u16,
    /// Where the words are believed to lie evenly: words to slots, in parts of 2^64.
    slots_a_word: u64,
    words: Vec<u64>,
    children: Vec<PageNo>,
    below: Vec<Below>,
    numbers: Trust,
}

/// What is known of a child's own children: the number of the first, if they ascend by one, how many there are (0: nothing is known), and the words of the
/// separators before the second and before the last, between which they are believed to lie evenly.
#[derive(Copy, Clone, Debug, Default)]
struct Below {
    first: PageNo,
    count: u32,
    low: u64,
    high: u64,
}

impl Below {
    /// The slot of a word, and how far it is on the way to the next slot, in parts of 2^32. `None`: not between the separators that are known.
    #[inline(always)]
    fn place(&self, word: u64) -> Option<(u32, u32)> {
        if word < self.low || word >= self.high {
            return None;
        }
        let place = u64::from(far(self.low, self.high, word)) * u64::from(self.count - 2);
        Some((1 + (place >> 32) as u32, place as u32))
    }
}

/// How far `word` is on the way from `low` to `high`, between which it is, in parts of 2^32.
#[inline(always)]
fn far(low: u64, high: u64, word: u64) -> u32 {
    let way = high - low;
    let shift = way.leading_zeros();
    let (way, done) = ((way << shift) >> 32, (word - low) << shift);
    (done / way).min(u64::from(u32::MAX)) as u32
}

/// The way from the root to a child.
pub(crate) struct Way {
    slot: usize,
    pub child: PageNo,
    /// The root's level.
    pub level: u16,
    /// How far the key is on the way from the child's separator to the next one: see [`Node::portion_of`].
    pub portion: Option<u32>,
    /// The number of the child's first child, and the slot of the key in the child with how far it is on the way to the next one.
    first: PageNo,
    place: Option<(u32, u32)>,
}

impl Way {
    /// The slot of the key in the child, if that can be told.
    #[inline(always)]
    pub(crate) fn slot_below(&self) -> Option<usize> {
        self.place.map(|(slot, _)| slot as usize)
    }
}

/// The leaf that a key is expected on, and where.
pub(crate) struct Ahead {
    leaf: PageNo,
    expected: Option<Expected>,
}

impl RootCopy {
    #[cfg(test)]
    pub(crate) fn is_copied(&self) -> bool {
        !self.words.is_empty()
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
            + self.children.capacity() * size_of::<PageNo>()
            + self.below.capacity() * size_of::<Below>()
    }

    /// The way to the child that covers the key with this first word, if that can be said without a look at `root`, whose word was just loaded.
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

    /// Tells the leaf behind a child, and asks for what a look at the key on it needs.
    #[inline(always)]
    pub(crate) fn ahead(&self, pages: SpacePages<'_>, way: &Way, leaves: &Shape) -> Option<Ahead> {
        let (slot, far) = way.place?;
        let leaf = way.first.wrapping_add(slot);
        let mut expected = None;
        if self.numbers.is_there()
            && let Some(bytes) = pages.word(leaf).and_then(|word| pages.resident_at(word))
        {
            let node = Node::new(bytes);
            node.prefetch_entry();
            expected = leaves.prefetch(node, Some(far >> (32 - PORTION_BITS)));
        }
        Some(Ahead { leaf, expected })
    }

    /// The child that `way` led to has `leaf` in `slot`, where `ahead` had been told. Gives where the key was expected, if that was the right leaf.
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
        // What the page's keys have in common is the key's as well.
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

    /// The last word that is not above `word`, the one behind it, and where it stands; `None` without a copy.
    #[inline(always)]
    fn place(&self, word: u64) -> Option<(u64, Option<u64>, usize)> {
        let first = *self.words.get(1)?;
        let words = &self.words[..];
        // Numbers lie evenly more often than not.
        let far = u128::from(word.saturating_sub(first)) * u128::from(self.slots_a_word);
        let guess = 1 + (far >> 64) as usize;
        if let Some(&[low, high]) = words.get(guess..guess + 2)
            && low <= word
            && word < high
        {
            return Some((low, Some(high), guess));
        }
        let slot = words.partition_point(|w| *w <= word).checked_sub(1)?;
        Some((words[slot], words.get(slot + 1).copied(), slot))
    }

    /// `root` was looked at, for want of a copy, and is an inner page with `count` slots. Copies it when it has stood still for long enough.
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

    /// Memory for a copy comes with the second look at a root, so that no warm read allocates.
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
        // The first key is nothing, below all. A root has no fences, hence no prefix.
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
