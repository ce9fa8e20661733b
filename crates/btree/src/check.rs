//! CHECK TABLE for one tree: reads every page and verifies every invariant of the layout,
//! concurrently with readers and writers.
//!
//! # Concurrency
//! For each leaf, the path from the root is read again. Each page is copied and validated, and a
//! child's page word is loaded while the parent is valid. So a mismatch between parent and child is
//! a real error and not a split in progress. Sibling links are compared only if neither leaf has
//! changed.

use crate::node::edit::Copied;
use crate::node::{CELL_HEAD, HINTS, Node, OFF_HINTS, SLOTS, common_prefix};
use crate::split::{lower_fence, upper_fence};
use crate::tree::{MAX_LEVELS, Miss, TreeHandle, count_restart};
use nfold_store::{PAGE_SIZE, PageNo, PageRef, Stop, Store};
use nfold_sync::words;
use std::cmp::Ordering;

/// The most problems that are reported.
const MAX_PROBLEMS: usize = 32;
/// The number of leaves per step. The caller checks for KILL between steps.
const LEAVES_PER_STEP: usize = 16;

/// The progress and findings of a check of a whole tree.
#[derive(Clone, Debug, Default)]
pub struct TreeCheck {
    pub leaf_pages: u64,
    pub inner_pages: u64,
    pub entries: u64,
    /// Descriptions of the problems found, at most [`MAX_PROBLEMS`].
    pub problems: Vec<String>,
    /// The lower fence of the next leaf.
    at: Vec<u8>,
    /// The previous leaf: page number, page word, right link.
    before: Option<(PageNo, u64, PageNo)>,
    done: bool,
}

/// The findings at one leaf. They count only if the leaf validates.
struct Leaf<'s> {
    page: PageRef<'s>,
    copy: Copied,
    inner_pages: u64,
    problems: Vec<String>,
}

impl TreeHandle {
    /// Checks the next few leaves: order, fences, levels, sibling links and slot bounds. Returns
    /// `Ok(true)` when the whole tree is checked. On `Ok(false)` or `Wait`, call again. `visit`
    /// receives each (key, value) of an undamaged leaf.
    pub fn check_step(
        &self,
        store: &Store,
        check: &mut TreeCheck,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<bool, Stop> {
        for _ in 0..LEAVES_PER_STEP {
            if check.done {
                return Ok(true);
            }
            match self.check_leaf(store, check) {
                Ok(leaf) => self.take_leaf(store, check, &leaf, visit),
                Err(Miss::Stop(stop)) => return Err(stop),
                Err(Miss::Restart) => count_restart(store),
            }
        }
        Ok(check.done)
    }

    /// Reads the path to the leaf at the check's position.
    fn check_leaf<'s>(&self, store: &'s Store, check: &TreeCheck) -> Result<Leaf<'s>, Miss> {
        let (mut problems, mut inner_pages) = (Vec::new(), 0);
        let pages = self.pages(store)?;
        let mut page = self.read_root(store)?;
        let (mut lower, mut upper) = (Vec::new(), None);
        for _ in 0..MAX_LEVELS {
            let copy = Copied::of(page.words());
            if !page.validate() {
                return Err(Miss::Restart);
            }
            let node = copy.node();
            let no = page.id().page;
            if lower_fence(node) != lower || upper_fence(node) != upper {
                problems.push(format!(
                    "page {no}: fences differ from the parent's separators"
                ));
            }
            if node.level() == 0 {
                return Ok(Leaf {
                    page,
                    copy,
                    inner_pages,
                    problems,
                });
            }
            if lower == check.at {
                inner_pages += 1;
                check_node(node, &mut |what| {
                    problems.push(format!("page {no}: {what}"))
                });
            }
            let count = node.count();
            let slot = node.child_slot(count, node.suffix(&check.at));
            page = self.read_child(pages, &page, slot, node.level())?;
            lower.clear();
            node.append_key(node.slot(slot), &mut lower);
            if slot + 1 < count {
                let mut key = Vec::new();
                node.append_key(node.slot(slot + 1), &mut key);
                upper = Some(key);
            }
        }
        Err(self.corrupt(self.tree.root, "too many levels").into())
    }

    fn take_leaf(
        &self,
        store: &Store,
        check: &mut TreeCheck,
        leaf: &Leaf<'_>,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) {
        let node = leaf.copy.node();
        let no = leaf.page.id().page;
        let mut problems = leaf.problems.clone();
        check_node(node, &mut |what| {
            problems.push(format!("page {no}: {what}"))
        });
        match check.before {
            None if node.left() != 0 => {
                problems.push(format!("page {no}: the first leaf has a left sibling"))
            }
            Some((left_no, word, right_of)) => {
                let unchanged = store
                    .read(self.page_id(left_no))
                    .is_ok_and(|p| p.version() == word);
                if unchanged && leaf.page.validate() && (node.left() != left_no || right_of != no) {
                    problems.push(format!("pages {left_no}, {no}: sibling links disagree"));
                }
            }
            None => {}
        }
        if problems.is_empty() {
            visit_entries(node, visit);
        }
        check.entries += node.count() as u64;
        check.leaf_pages += 1;
        check.inner_pages += leaf.inner_pages;
        let space_left = MAX_PROBLEMS - check.problems.len().min(MAX_PROBLEMS);
        check.problems.extend(problems.into_iter().take(space_left));
        check.before = Some((no, leaf.page.version(), node.right()));
        match upper_fence(node) {
            // A damaged fence must not make the check run in circles.
            Some(upper) if upper > check.at => check.at = upper,
            Some(_) => check.done = true,
            None => {
                check.done = true;
                if node.right() != 0 && check.problems.len() < MAX_PROBLEMS {
                    check
                        .problems
                        .push(format!("page {no}: the last leaf has a right sibling"));
                }
            }
        }
    }
}

fn visit_entries(node: Node<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for i in 0..node.count() {
        key.clear();
        value.clear();
        node.append_key(node.slot(i), &mut key);
        node.append_value(node.slot(i), &mut value);
        visit(&key, &value);
    }
}

/// The first problem of a page that is about to be restructured. Restructuring a damaged page would
/// spread the damage, or panic.
pub(crate) fn first_problem(node: Node<'_>) -> Option<&'static str> {
    let mut first = None;
    check_node(node, &mut |what| {
        first.get_or_insert(what);
    });
    first
}

/// Verifies N1 to N5 on a page that no other thread changes meanwhile.
pub(crate) fn check_node(node: Node<'_>, wrong: &mut dyn FnMut(&'static str)) {
    let (lower, upper) = (lower_fence(node), upper_fence(node));
    let fences_at = PAGE_SIZE
        - lower.len()
        - upper
            .as_ref()
            .map_or(0, Vec::len)
            .min(PAGE_SIZE - lower.len());
    let (count, start) = (node.count(), node.cell_start());
    if SLOTS + count * 8 > start || start > fences_at {
        return wrong("slots, cells and fences overlap (N2)");
    }
    if node.prefix_len() != upper.as_ref().map_or(0, |u| common_prefix(&lower, u)) {
        return wrong("the prefix is not that of the fences (N3)");
    }
    if upper.as_ref().is_some_and(|u| *u <= lower) {
        wrong("the upper fence is not above the lower one");
    }
    // (offset << 16 | length) of each cell.
    let mut cells: Vec<u32> = Vec::with_capacity(count);
    let mut suffix: Vec<u8> = Vec::new();
    for i in 0..count {
        let slot = node.slot(i);
        let len = CELL_HEAD + slot.key_len() + node.value_len(slot);
        if slot.cell() < start || slot.cell() + len > fences_at {
            return wrong("a cell lies outside the cell area (N2)");
        }
        cells.push((slot.cell() as u32) << 16 | len as u32);
        if slot.head() != node.cell_head(slot) {
            wrong("a key head differs from the key");
        }
        let before = i.checked_sub(1).map(|i| node.slot(i));
        let ordered = before.is_none_or(|before| match before.head().cmp(&slot.head()) {
            Ordering::Equal => {
                suffix.clear();
                node.append_suffix(slot, &mut suffix);
                words::compare(node.words(), before.key_at(), before.key_len(), &suffix).is_lt()
            }
            order => order.is_lt(),
        });
        if !ordered {
            wrong("keys are out of order (N1)");
        }
        if node.level() > 0 && node.value_len(slot) != 4 {
            wrong("an inner slot is malformed (N4)");
        }
    }
    if count > 0 {
        let key = |i: usize| {
            let mut key = Vec::new();
            node.append_key(node.slot(i), &mut key);
            key
        };
        // The keys are in order, so all of them lie between the first and the last.
        let (first, last) = (key(0), key(count - 1));
        if first < lower || upper.as_ref().is_some_and(|u| last >= *u) {
            wrong("a key lies outside the fences (N1)");
        }
        if node.level() > 0 && first != lower {
            wrong("an inner slot is malformed (N4)");
        }
    }
    cells.sort_unstable();
    if cells
        .windows(2)
        .any(|w| (w[0] >> 16) + (w[0] & 0xFFFF) > w[1] >> 16)
    {
        wrong("cells overlap (N2)");
    }
    let living: usize = cells.iter().map(|c| *c as usize & 0xFFFF).sum();
    if start + living + node.garbage() != fences_at {
        wrong("the garbage count is wrong (N2)");
    }
    let step = Node::hint_step(count);
    for i in 0..HINTS {
        let expected = if step == 0 {
            0
        } else {
            node.slot((i + 1) * step).head()
        };
        if words::load_u32(node.words(), OFF_HINTS + i * 4) != expected {
            return wrong("a search hint is wrong (N5)");
        }
    }
    if !node.has_prefix(&lower) {
        wrong("the prefix bytes are not those of the fences (N5)");
    }
    if node.level() > 0 && count == 0 {
        wrong("an inner page is empty (N4)");
    }
}
