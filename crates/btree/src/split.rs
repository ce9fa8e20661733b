//! Splits: a full leaf is split in two, and so are those of its ancestors that have no room for the
//! new separator.
//!
//! # Invariants
//! - S1: only the holder of the tree's structure mutex latches inner pages. It may therefore latch
//!   a leaf first and then the inner pages above it, bottom-up: no other thread waits for a leaf
//!   while it holds an inner page.
//! - S2: a split acquires everything that it needs before its first change: log space, new pages,
//!   and the latches of all pages that it changes.
//! # Concurrency
//! The latch order is: structure mutex, leaf, the leaf's right sibling, inner pages upwards.
//! Concurrent readers wait briefly for a latch, or restart.
//! # Failure
//! A split is one mini-transaction, so a crash leaves either all or nothing of it. If it returns
//! `Wait`, nothing was changed.

use crate::check::first_problem;
use crate::node::edit::{Format, push_cell, push_cell_of};
use crate::node::{CAPACITY, CELL_HEAD, ENTRY_OVERHEAD, Node, common_prefix};
use crate::redo;
use crate::tree::{Path, Seek, TreeHandle};
use nfold_store::{
    Latched, Mtr, PAGE_SIZE, PageId, PageNo, PageType, Stop, Store, StoreError, header,
};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// The most log bytes that the split of one level needs: the moved half, fences and separators.
pub(crate) const SPLIT_LOG_BYTES: usize = PAGE_SIZE + 4 * crate::tree::MAX_KEY + 512;
/// After this many ascending inserts in a row, a split leaves the left page full.
const ASCENDING_RUN: usize = 4;
/// With fewer entries than this, the position of one insert does not show a pattern.
const PATTERN_MIN: usize = 8;

/// A split point: the slots from `at` on move to the right page, whose lower fence is `separator`.
struct Cut {
    at: usize,
    /// Whether the new entry, for which there was no room, belongs to the right page.
    new_right: bool,
    separator: Vec<u8>,
}

/// The change to one page of the path. Steps are ordered from the leaf upwards.
struct Step {
    page: Latched,
    /// The slot at which the separator of the level below is inserted.
    slot: usize,
    /// `None` if the page has room and is not split.
    cut: Option<Cut>,
}

/// The entry that the page has no room for.
struct NewEntry<'a> {
    key: &'a [u8],
    value_len: usize,
    slot: usize,
    /// Whether it replaces the entry at `slot`.
    replaces: bool,
}

impl TreeHandle {
    /// Splits the leaf that covers `key` once, unless it has room for the key with a value of
    /// `value_len` bytes.
    pub(crate) fn make_room(
        &self,
        store: &Store,
        key: &[u8],
        value_len: usize,
    ) -> Result<(), Stop> {
        let _smo = self.hold_smo(store);
        let path = self.path(store, Seek::At(key))?;
        let mut mtr = store.mtr();
        mtr.reserve(
            (path.len() + 1) * SPLIT_LOG_BYTES,
            self.tree.space,
            path.len() + 1,
        )?;
        let leaf = mtr.latch(self.page_id(path[0].0))?;
        let node = Node::new(mtr.words(leaf));
        let (slot, replaces) = node.search(node.count(), node.suffix(key));
        let new = NewEntry {
            key,
            value_len,
            slot,
            replaces,
        };
        if new.bytes(node) <= node.free_bytes() {
            return Ok(());
        }
        let cut = sound_cut(mtr.id(leaf), node, &new)?;
        let sibling = match node.right() {
            0 => None,
            right => Some(mtr.latch(self.page_id(right))?),
        };
        let steps = self.plan(
            &mut mtr,
            &path,
            Step {
                page: leaf,
                slot: 0,
                cut: Some(cut),
            },
        )?;
        self.carry_out(&mut mtr, steps, sibling);
        mtr.commit();
        self.shape.counters.splits.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Latches the ancestors that must change, and chooses how to change each.
    fn plan(
        &self,
        mtr: &mut Mtr<'_>,
        path: &Path,
        leaf: Step,
    ) -> Result<SmallVec<[Step; 4]>, Stop> {
        let mut steps: SmallVec<[Step; 4]> = SmallVec::new();
        let mut separator = leaf
            .cut
            .as_ref()
            .map(|c| c.separator.clone())
            .unwrap_or_default();
        steps.push(leaf);
        for (page, taken) in path.iter().skip(1) {
            let latched = mtr.latch(self.page_id(*page))?;
            let node = Node::new(mtr.words(latched));
            let slot = taken + 1;
            let new = NewEntry {
                key: &separator,
                value_len: size_of::<PageNo>(),
                slot,
                replaces: false,
            };
            if let Some(what) = node.bounds_problem() {
                return Err(mtr.corrupt(latched, what).into());
            }
            if new.bytes(node) <= node.free_bytes() {
                if new.bytes(node) > node.open_bytes() && !node.is_tight() {
                    let what = "cells and garbage do not fill the cell area";
                    return Err(mtr.corrupt(latched, what).into());
                }
                steps.push(Step {
                    page: latched,
                    slot,
                    cut: None,
                });
                break;
            }
            let cut = sound_cut(mtr.id(latched), node, &new)?;
            separator.clone_from(&cut.separator);
            steps.push(Step {
                page: latched,
                slot,
                cut: Some(cut),
            });
        }
        Ok(steps)
    }

    /// Splits the last leaf, which must be empty, at `separator`, and returns the left one of the
    /// two empty leaves. Changes nothing else, and does not commit `mtr`. The caller holds the
    /// structure mutex and has reserved log space and pages.
    pub(crate) fn cut_empty_last(
        &self,
        mtr: &mut Mtr<'_>,
        path: &Path,
        separator: &[u8],
    ) -> Result<Latched, Stop> {
        let leaf = mtr.latch(self.page_id(path[0].0))?;
        let node = Node::new(mtr.words(leaf));
        if node.count() != 0 || node.upper_len().is_some() {
            return Err(self.corrupt(
                path[0].0,
                "the last leaf of a tree being built is not empty",
            ));
        }
        let cut = Cut {
            at: 0,
            new_right: false,
            separator: separator.to_vec(),
        };
        let steps = self.plan(
            mtr,
            path,
            Step {
                page: leaf,
                slot: 0,
                cut: Some(cut),
            },
        )?;
        Ok(self.carry_out(mtr, steps, None))
    }

    /// Changes the pages (S2), and returns the left half of the leaf. `sibling` is the leaf's right
    /// sibling.
    fn carry_out(
        &self,
        mtr: &mut Mtr<'_>,
        steps: SmallVec<[Step; 4]>,
        sibling: Option<Latched>,
    ) -> Latched {
        let mut left_leaf = steps[0].page;
        let mut below: Option<(Vec<u8>, PageNo)> = None;
        for step in steps {
            let Some(cut) = step.cut else {
                if let Some((separator, child)) = below {
                    insert_child(mtr, step.page, step.slot, &separator, child);
                }
                break;
            };
            let is_root = mtr.id(step.page).page == self.tree.root;
            let (left, right) = if is_root {
                self.split_root(mtr, step.page, &cut)
            } else {
                (step.page, self.split_page(mtr, step.page, &cut))
            };
            let right_no = mtr.id(right).page;
            match below {
                Some((separator, child)) if cut.new_right => {
                    insert_child(mtr, right, step.slot - cut.at, &separator, child);
                }
                Some((separator, child)) => insert_child(mtr, left, step.slot, &separator, child),
                None => {
                    left_leaf = left;
                    if let Some(sibling) = sibling {
                        let right_of = Node::new(mtr.words(sibling)).right();
                        redo::log_links(mtr, sibling, right_no, right_of);
                    }
                }
            }
            if is_root {
                break;
            }
            below = Some((cut.separator, right_no));
        }
        left_leaf
    }

    /// Moves the slots from the split point on to a new page on the right.
    fn split_page(&self, mtr: &mut Mtr<'_>, page: Latched, cut: &Cut) -> Latched {
        let node = Node::new(mtr.words(page));
        let upper = upper_fence(node);
        let (left_no, right_of) = if node.level() == 0 {
            (mtr.id(page).page, node.right())
        } else {
            (0, 0)
        };
        let right = self.new_page(
            mtr,
            page,
            &cut.separator,
            upper.as_deref(),
            (left_no, right_of),
        );
        self.copy_slots(mtr, page, cut.at..node.count(), right);
        let right_no = if node.level() == 0 {
            mtr.id(right).page
        } else {
            0
        };
        redo::log_truncate(mtr, page, cut.at, right_no, &cut.separator);
        right
    }

    /// Moves the root's slots to two new pages, which become its only children. The root keeps its
    /// page number.
    fn split_root(&self, mtr: &mut Mtr<'_>, root: Latched, cut: &Cut) -> (Latched, Latched) {
        let node = Node::new(mtr.words(root));
        let (level, count) = (node.level(), node.count());
        let left = self.new_page(mtr, root, &[], Some(&cut.separator), (0, 0));
        self.copy_slots(mtr, root, 0..cut.at, left);
        let left_no = mtr.id(left).page;
        let right = self.new_page(
            mtr,
            root,
            &cut.separator,
            None,
            (if level == 0 { left_no } else { 0 }, 0),
        );
        self.copy_slots(mtr, root, cut.at..count, right);
        let right_no = mtr.id(right).page;
        if level == 0 {
            redo::log_links(mtr, left, 0, right_no);
        }
        self.log_inner_root(mtr, root, level + 1);
        let mut cells = Vec::new();
        push_cell(&mut cells, &[], &left_no.to_le_bytes());
        push_cell(&mut cells, &cut.separator, &right_no.to_le_bytes());
        redo::log_append(mtr, root, &cells);
        (left, right)
    }

    /// Formats the root as an empty inner page of `level`.
    fn log_inner_root(&self, mtr: &mut Mtr<'_>, root: Latched, level: u16) {
        let page_type = PageType::BTREE_INNER;
        let format = Format {
            page_type,
            level,
            index_id: self.tree.index_id,
            left: 0,
            right: 0,
            lower: &[],
            upper: None,
        };
        redo::log_format(mtr, root, &format);
    }

    /// Allocates a page of the same level, and with the same newest transaction id, as `like`.
    pub(crate) fn new_page(
        &self,
        mtr: &mut Mtr<'_>,
        like: Latched,
        lower: &[u8],
        upper: Option<&[u8]>,
        (left, right): (PageNo, PageNo),
    ) -> Latched {
        let node = Node::new(mtr.words(like));
        let (page_type, level, index_id) = (node.page_type(), node.level(), self.tree.index_id);
        let newest = mtr.u64(like, header::NEWEST_TRX);
        let page = mtr.alloc_page(self.tree.space, page_type, level, index_id);
        redo::log_format(
            mtr,
            page,
            &Format {
                page_type,
                level,
                index_id,
                left,
                right,
                lower,
                upper,
            },
        );
        mtr.set_newest_trx(page, newest);
        page
    }

    /// Appends a range of slots of `from` to the page `to`, whose prefix is at least as long.
    fn copy_slots(
        &self,
        mtr: &mut Mtr<'_>,
        from: Latched,
        slots: std::ops::Range<usize>,
        to: Latched,
    ) {
        let node = Node::new(mtr.words(from));
        let cut = Node::new(mtr.words(to)).prefix_len() - node.prefix_len();
        let mut cells = Vec::with_capacity(PAGE_SIZE);
        for i in slots {
            push_cell_of(node, node.slot(i), cut, &mut cells);
        }
        #[cfg(feature = "planted")]
        let logged = mtr.log_len();
        redo::log_append(mtr, to, &cells);
        #[cfg(feature = "planted")]
        if nfold_sync::planted::is(nfold_sync::planted::Bug::UnloggedSplit) {
            mtr.unlog(logged);
        }
    }
}

pub(crate) fn upper_fence(node: Node<'_>) -> Option<Vec<u8>> {
    let mut upper = Vec::new();
    node.append_upper(&mut upper).then_some(upper)
}

pub(crate) fn lower_fence(node: Node<'_>) -> Vec<u8> {
    let mut lower = Vec::new();
    node.append_lower(&mut lower);
    lower
}

fn insert_child(mtr: &mut Mtr<'_>, page: Latched, slot: usize, separator: &[u8], child: PageNo) {
    let suffix_at = Node::new(mtr.words(page)).prefix_len();
    redo::log_insert(
        mtr,
        page,
        slot,
        &separator[suffix_at..],
        &child.to_le_bytes(),
    );
}

/// The shortest key that is above `left` and not above `right`. `left` must be below `right`.
pub(crate) fn separator<'k>(left: &[u8], right: &'k [u8]) -> &'k [u8] {
    &right[..right.len().min(common_prefix(left, right) + 1)]
}

impl NewEntry<'_> {
    /// The free bytes that the page needs for the entry.
    fn bytes(&self, node: Node<'_>) -> usize {
        if self.replaces {
            return self
                .value_len
                .saturating_sub(node.value_len(node.slot(self.slot)));
        }
        ENTRY_OVERHEAD + self.key.len().saturating_sub(node.prefix_len()) + self.value_len
    }
}

/// The slots of a page together with the new entry. A position counts both.
struct Combined<'a> {
    node: Node<'a>,
    new: &'a NewEntry<'a>,
    /// The total size of the entries before each position, and of all entries at the end.
    before: Vec<usize>,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

impl<'a> Combined<'a> {
    fn of(node: Node<'a>, new: &'a NewEntry<'a>) -> Combined<'a> {
        let mut before = vec![0];
        let mut sum = 0;
        let mut add = |bytes: usize| {
            sum += bytes;
            before.push(sum);
        };
        let new_bytes =
            ENTRY_OVERHEAD + new.key.len().saturating_sub(node.prefix_len()) + new.value_len;
        for i in 0..node.count() {
            let slot = node.slot(i);
            if i == new.slot {
                add(new_bytes);
                if new.replaces {
                    continue;
                }
            }
            add(8 + CELL_HEAD + slot.key_len() + node.value_len(slot));
        }
        if new.slot >= node.count() {
            add(new_bytes);
        }
        Combined {
            node,
            new,
            before,
            lower: lower_fence(node),
            upper: upper_fence(node),
        }
    }

    fn len(&self) -> usize {
        self.before.len() - 1
    }

    /// The slot of the page at a position. For the new entry's position, this is the slot after it.
    fn slot_at(&self, position: usize) -> usize {
        if self.new.replaces || position <= self.new.slot {
            position
        } else {
            position - 1
        }
    }

    fn key_at(&self, position: usize) -> Vec<u8> {
        if position == self.new.slot {
            return self.new.key.to_vec();
        }
        let mut key = Vec::new();
        self.node
            .append_key(self.node.slot(self.slot_at(position)), &mut key);
        key
    }

    fn separator_at(&self, position: usize) -> Vec<u8> {
        let right = self.key_at(position);
        if self.node.level() > 0 {
            return right;
        }
        separator(&self.key_at(position - 1), &right).to_vec()
    }

    /// Whether both halves of a split before `position` have room for their entries, including the
    /// new entry if `with_new`.
    fn fits(&self, position: usize, separator: &[u8], with_new: bool) -> bool {
        let prefix = self.node.prefix_len();
        let spared = |a: &[u8], b: Option<&[u8]>| b.map_or(0, |b| common_prefix(a, b)) - prefix;
        let new_bytes = self.before[self.new.slot + 1] - self.before[self.new.slot];
        let (mut left, mut right) = (
            self.before[position],
            self.before[self.len()] - self.before[position],
        );
        let old_left = self.slot_at(position);
        let mut counts = (position, self.len() - position);
        if !with_new && !self.new.replaces {
            counts = (old_left, self.node.count() - old_left);
            *(if self.new.slot < position {
                &mut left
            } else {
                &mut right
            }) -= new_bytes;
        } else if !with_new {
            let old = self.node.slot(self.new.slot);
            let old_bytes = 8 + CELL_HEAD + old.key_len() + self.node.value_len(old);
            let side = if self.new.slot < position {
                &mut left
            } else {
                &mut right
            };
            *side = *side + old_bytes - new_bytes;
        }
        left += self.lower.len() + separator.len();
        right += self.upper.as_ref().map_or(0, Vec::len) + separator.len();
        left - counts.0 * spared(&self.lower, Some(separator)) <= CAPACITY
            && right - counts.1 * spared(separator, self.upper.as_deref()) <= CAPACITY
    }

    /// The preferred split point: the position of the right page's first entry.
    fn preferred(&self) -> usize {
        let (slot, count) = (self.new.slot, self.node.count());
        if !self.new.replaces {
            if slot == count && (count >= PATTERN_MIN || self.upper.is_none()) {
                return slot;
            }
            if slot == 0 && count >= PATTERN_MIN && self.lower.is_empty() {
                return 1;
            }
            let ascending =
                self.node.ascending_run() >= ASCENDING_RUN && slot == self.node.last_insert() + 1;
            if ascending && slot >= 1 {
                return slot;
            }
        }
        let half = self.before[self.len()] / 2;
        self.before.partition_point(|b| *b < half)
    }
}

/// Chooses a split point. Returns an error if the page is damaged.
fn sound_cut(page: PageId, node: Node<'_>, new: &NewEntry<'_>) -> Result<Cut, StoreError> {
    let corrupt = |what| StoreError::Corrupt { page, lsn: 0, what };
    if let Some(what) = first_problem(node) {
        return Err(corrupt(what));
    }
    choose_cut(node, new).ok_or(corrupt("no way to split the page"))
}

/// Chooses the split point nearest to the preferred one at which both pages have room for their
/// entries, if possible including the new entry.
fn choose_cut(node: Node<'_>, new: &NewEntry<'_>) -> Option<Cut> {
    let all = Combined::of(node, new);
    let last = all.len().checked_sub(1).filter(|last| *last >= 1)?;
    let preferred = all.preferred().clamp(1, last);
    // A separator is inserted into an inner page at once. An entry of a leaf is inserted later, and
    // the leaf may be split again before that.
    let rounds: &[bool] = if node.level() > 0 {
        &[true]
    } else {
        &[true, false]
    };
    for with_new in rounds {
        for distance in 0..=last {
            for position in [preferred.checked_sub(distance), Some(preferred + distance)]
                .into_iter()
                .flatten()
            {
                if !(1..=last).contains(&position) {
                    continue;
                }
                let separator = all.separator_at(position);
                if all.fits(position, &separator, *with_new) {
                    return Some(Cut {
                        at: all.slot_at(position),
                        new_right: new.slot >= position,
                        separator,
                    });
                }
            }
        }
    }
    None
}
