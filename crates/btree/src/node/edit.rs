//! Changes to one tree page, as the redo operations apply them: at run time through a
//! mini-transaction, and at recovery.
//!
//! # Invariants
//! - E1: the result of a function depends only on the page's bytes and its arguments, so replay
//!   produces the same bytes.
//! - E2: no function panics or writes outside the page, for any contents of the page. It returns an
//!   error instead.
//! # Concurrency
//! The caller holds the page's exclusive latch.
//! # Failure
//! A function that returns an error may leave a damaged page partly changed. On an undamaged page,
//! an error leaves the page unchanged.

use super::*;
use nfold_sync::words::{store_bytes, store_u64};

/// A description of the damage in a page, or of an invalid argument.
pub(crate) type Damage = &'static str;

/// The header fields and fences of a new tree page.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Format<'a> {
    pub page_type: u16,
    pub level: u16,
    pub index_id: u64,
    pub left: PageNo,
    pub right: PageNo,
    pub lower: &'a [u8],
    /// `None` means no upper bound.
    pub upper: Option<&'a [u8]>,
}

fn store_u16(words: &[AtomicU64], off: usize, value: usize) {
    store_bytes(words, off, &(value as u16).to_le_bytes());
}

fn fence_bytes(lower: &[u8], upper: Option<&[u8]>) -> usize {
    lower.len() + upper.map_or(0, <[u8]>::len)
}

/// Formats an empty tree page. Of the store's header fields, it sets only type, level and index id.
pub(crate) fn format(words: &[AtomicU64], f: &Format<'_>) -> Result<(), Damage> {
    if fence_bytes(f.lower, f.upper) > CAPACITY {
        return Err("fences larger than a page");
    }
    store_bytes(words, header::PAGE_TYPE, &f.page_type.to_le_bytes());
    store_bytes(words, header::LEVEL, &f.level.to_le_bytes());
    store_bytes(words, header::INDEX_ID, &f.index_id.to_le_bytes());
    words::fill_zero(words, OFF_COUNT, PAGE_SIZE - OFF_COUNT);
    store_bytes(words, OFF_LEFT, &f.left.to_le_bytes());
    store_bytes(words, OFF_RIGHT, &f.right.to_le_bytes());
    store_fences(words, f.lower, f.upper);
    Ok(())
}

/// Writes the fences and the prefix length, and makes the cell area empty.
fn store_fences(words: &[AtomicU64], lower: &[u8], upper: Option<&[u8]>) {
    let lower_at = PAGE_SIZE - lower.len();
    let upper_at = lower_at - upper.map_or(0, <[u8]>::len);
    store_bytes(words, lower_at, lower);
    store_bytes(words, upper_at, upper.unwrap_or(&[]));
    store_u16(words, OFF_LOWER_LEN, lower.len());
    store_u16(
        words,
        OFF_UPPER_LEN,
        upper.map_or(NO_UPPER as usize, <[u8]>::len),
    );
    let prefix = upper.map_or(0, |u| common_prefix(lower, u));
    store_u16(words, OFF_PREFIX, prefix);
    let mut start = [0; PREFIX_BYTES];
    let known = prefix.min(PREFIX_BYTES);
    start[..known].copy_from_slice(&lower[..known]);
    store_bytes(words, OFF_PREFIX_BYTES, &start);
    store_u16(words, OFF_COUNT, 0);
    store_u16(words, OFF_CELL_START, upper_at);
    store_u16(words, OFF_GARBAGE, 0);
}

/// Checks the fields that the functions below rely on. Returns (slot count, cell start).
fn checked_bounds(node: Node<'_>) -> Result<(usize, usize), Damage> {
    match node.bounds_problem() {
        None => Ok((node.count(), node.cell_start())),
        Some(what) => Err(what),
    }
}

fn cell_bytes(node: Node<'_>, slot: Slot) -> usize {
    CELL_HEAD + slot.key_len() + node.value_len(slot)
}

/// Writes a cell that ends at offset `end`, and returns its offset.
fn store_cell(words: &[AtomicU64], end: usize, suffix: &[u8], value: &[u8]) -> usize {
    let cell = end - (CELL_HEAD + suffix.len() + value.len());
    store_u16(words, cell, value.len());
    store_bytes(words, cell + CELL_HEAD, suffix);
    store_bytes(words, cell + CELL_HEAD + suffix.len(), value);
    cell
}

fn store_slot(words: &[AtomicU64], i: usize, slot: Slot) {
    store_u64(words, SLOTS + i * 8, slot.0);
}

/// Sets the slot count, and the search hints that depend on it (N5). The slots before `changed` are
/// as they were, so most of their hints need not be read.
fn store_count(words: &[AtomicU64], count: usize, changed: usize) {
    let node = Node::new(words);
    let step = Node::hint_step(count);
    let is_as_before = Node::hint_step(node.count()) == step && step > 0;
    store_u16(words, OFF_COUNT, count);
    let hint = |i: usize| {
        if step == 0 {
            0
        } else {
            u64::from(node.slot(i * step).head())
        }
    };
    let first = if is_as_before {
        // Hint `i` is the head of slot `i * step`, and the first one has number 1.
        changed.div_ceil(step).clamp(1, HINTS + 1) - 1
    } else {
        0
    };
    for pair in first / 2..HINTS / 2 {
        store_u64(
            words,
            OFF_HINTS + pair * 8,
            hint(2 * pair + 1) | hint(2 * pair + 2) << 32,
        );
    }
}

/// Inserts an entry at `slot`. Compacts the page if its free bytes are scattered.
pub(crate) fn insert(
    words: &[AtomicU64],
    slot: usize,
    suffix: &[u8],
    value: &[u8],
) -> Result<(), Damage> {
    let node = Node::new(words);
    let (count, mut cell_start) = checked_bounds(node)?;
    if slot > count {
        return Err("insert behind the last slot");
    }
    let cell = CELL_HEAD + suffix.len() + value.len();
    if node.free_bytes() < cell + 8 {
        return Err("insert into a full page");
    }
    if cell_start < SLOTS + count * 8 + 8 + cell {
        cell_start = compact(words, count)?;
        if cell_start < SLOTS + count * 8 + 8 + cell {
            return Err("garbage bytes overstated");
        }
    }
    let at = store_cell(words, cell_start, suffix, value);
    words::move_within(
        words,
        SLOTS + slot * 8,
        SLOTS + slot * 8 + 8,
        (count - slot) * 8,
    );
    store_slot(words, slot, Slot::new(head_of(suffix), at, suffix.len()));
    store_count(words, count + 1, slot);
    store_u16(words, OFF_CELL_START, at);
    let run = if count > 0 && slot == node.last_insert() + 1 {
        (node.ascending_run() + 1).min(0xFFFF)
    } else {
        0
    };
    store_u16(words, OFF_LAST_INSERT, slot);
    store_u16(words, OFF_RUN, run);
    Ok(())
}

/// Removes the entry at `slot`.
pub(crate) fn remove(words: &[AtomicU64], slot: usize) -> Result<(), Damage> {
    let node = Node::new(words);
    let (count, cell_start) = checked_bounds(node)?;
    if slot >= count {
        return Err("remove behind the last slot");
    }
    let old = node.slot(slot);
    let cell = cell_bytes(node, old);
    words::move_within(
        words,
        SLOTS + slot * 8 + 8,
        SLOTS + slot * 8,
        (count - slot - 1) * 8,
    );
    store_count(words, count - 1, slot);
    if count == 1 {
        store_u16(words, OFF_CELL_START, node.upper_at());
        store_u16(words, OFF_GARBAGE, 0);
    } else if old.cell() == cell_start {
        store_u16(words, OFF_CELL_START, cell_start + cell);
    } else {
        store_u16(words, OFF_GARBAGE, node.garbage() + cell);
    }
    store_u16(words, OFF_RUN, 0);
    Ok(())
}

/// Replaces the value of the entry at `slot`.
pub(crate) fn replace(words: &[AtomicU64], slot: usize, value: &[u8]) -> Result<(), Damage> {
    let node = Node::new(words);
    let (count, mut cell_start) = checked_bounds(node)?;
    if slot >= count {
        return Err("replace behind the last slot");
    }
    let old = node.slot(slot);
    let old_cell = cell_bytes(node, old);
    let cell = CELL_HEAD + old.key_len() + value.len();
    if !node.holds_cell(old) {
        return Err("cell outside the cell area");
    }
    if cell <= old_cell {
        store_u16(words, old.cell(), value.len());
        store_bytes(words, old.value_at(), value);
        store_u16(words, OFF_GARBAGE, node.garbage() + old_cell - cell);
        return Ok(());
    }
    if node.free_bytes() + old_cell < cell {
        return Err("replace in a full page");
    }
    let mut suffix = Vec::with_capacity(old.key_len());
    node.append_suffix(old, &mut suffix);
    store_u16(words, OFF_GARBAGE, node.garbage() + old_cell);
    if cell_start < SLOTS + count * 8 + cell {
        // Compaction drops the old cell, because a slot of 0 has no cell.
        store_slot(words, slot, Slot(0));
        cell_start = compact(words, count)?;
        if cell_start < SLOTS + count * 8 + cell {
            return Err("garbage bytes overstated");
        }
    }
    let at = store_cell(words, cell_start, &suffix, value);
    store_slot(words, slot, Slot::new(head_of(&suffix), at, suffix.len()));
    store_u16(words, OFF_CELL_START, at);
    Ok(())
}

/// Overwrites bytes inside the value at `slot`.
pub(crate) fn write_value(
    words: &[AtomicU64],
    slot: usize,
    off: usize,
    bytes: &[u8],
) -> Result<(), Damage> {
    let node = Node::new(words);
    let (count, _) = checked_bounds(node)?;
    if slot >= count || off + bytes.len() > node.value_len(node.slot(slot)) {
        return Err("write outside a value");
    }
    store_bytes(words, node.slot(slot).value_at() + off, bytes);
    Ok(())
}

/// Sets the sibling links.
pub(crate) fn set_links(words: &[AtomicU64], left: PageNo, right: PageNo) -> Result<(), Damage> {
    store_bytes(words, OFF_LEFT, &left.to_le_bytes());
    store_bytes(words, OFF_RIGHT, &right.to_le_bytes());
    Ok(())
}

/// Drops the slots from `from` on, and sets a lower upper fence and the right link. This produces
/// the left half of a split.
pub(crate) fn truncate(
    words: &[AtomicU64],
    from: usize,
    right: PageNo,
    upper: &[u8],
) -> Result<(), Damage> {
    let node = Node::new(words);
    let (count, _) = checked_bounds(node)?;
    if from > count || node.compare_lower(upper).is_ge() {
        return Err("truncate behind the last slot or below the lower fence");
    }
    let mut lower = Vec::new();
    node.append_lower(&mut lower);
    let prefix = common_prefix(&lower, upper);
    let cut = prefix
        .checked_sub(node.prefix_len())
        .ok_or("fences share less than before")?;
    let cells = Cells::of(node, from);
    if cells.slots.iter().any(|slot| slot.key_len() < cut) {
        return Err("key shorter than the common prefix");
    }
    let fences = fence_bytes(&lower, Some(upper));
    if fences + from * 8 + cells.len() - from * cut > CAPACITY {
        return Err("truncated page does not fit");
    }
    words::fill_zero(words, SLOTS, CAPACITY);
    store_fences(words, &lower, Some(upper));
    store_bytes(words, OFF_RIGHT, &right.to_le_bytes());
    store_u16(words, OFF_RUN, 0);
    let start = cells.store(words, cut);
    store_count(words, from, 0);
    store_u16(words, OFF_CELL_START, start);
    Ok(())
}

/// Appends entries after the last slot. `cells` is a sequence of `[u16 suffix length][u16 value
/// length][suffix][value]`.
pub(crate) fn append(words: &[AtomicU64], cells: &[u8]) -> Result<(), Damage> {
    let node = Node::new(words);
    let (count, start) = checked_bounds(node)?;
    let (added, bytes) = measure(cells)?;
    if start < SLOTS + (count + added) * 8 + bytes {
        return Err("append to a full page");
    }
    let start = store_cells(words, count, (start, bytes), cells);
    store_count(words, count + added, count);
    store_u16(words, OFF_CELL_START, start);
    Ok(())
}

/// Inserts entries in the slots from `slot` on, with the result of single inserts. `cells` is as
/// for [`append`]. Compacts the page if its free bytes are scattered.
pub(crate) fn insert_run(words: &[AtomicU64], slot: usize, cells: &[u8]) -> Result<(), Damage> {
    let node = Node::new(words);
    let (count, mut cell_start) = checked_bounds(node)?;
    let (added, bytes) = measure(cells)?;
    if slot > count || added == 0 {
        return Err("no entries, or a slot behind the last one");
    }
    if node.free_bytes() < added * 8 + bytes {
        return Err("insert into a full page");
    }
    let needed = SLOTS + (count + added) * 8 + bytes;
    if cell_start < needed {
        cell_start = compact(words, count)?;
        if cell_start < needed {
            return Err("garbage bytes overstated");
        }
    }
    let (from, to) = (SLOTS + slot * 8, SLOTS + (slot + added) * 8);
    words::move_within(words, from, to, (count - slot) * 8);
    let start = store_cells(words, slot, (cell_start, bytes), cells);
    store_count(words, count + added, slot);
    store_u16(words, OFF_CELL_START, start);
    let continues = count > 0 && slot == node.last_insert() + 1;
    let before = if continues {
        node.ascending_run() + 1
    } else {
        0
    };
    store_u16(words, OFF_RUN, (before + added - 1).min(0xFFFF));
    store_u16(words, OFF_LAST_INSERT, slot + added - 1);
    Ok(())
}

/// The number of entries in a list for [`append`], and the size of their cells in bytes.
fn measure(cells: &[u8]) -> Result<(usize, usize), Damage> {
    let (mut rest, mut count, mut bytes) = (cells, 0, 0);
    while let Some((suffix, value, after)) = split_cell(rest) {
        count += 1;
        bytes += CELL_HEAD + suffix.len() + value.len();
        rest = after;
    }
    match rest.is_empty() {
        true => Ok((count, bytes)),
        false => Err("cut-off list of cells"),
    }
}

/// Stores cells that end at offset `end` and have `bytes` bytes together, and their slots from
/// `slot` on. `cells` is as for [`append`]. Returns the offset of the last cell.
fn store_cells(
    words: &[AtomicU64],
    slot: usize,
    (end, bytes): (usize, usize),
    cells: &[u8],
) -> usize {
    let (mut rest, mut slot) = (cells, slot);
    let mut image = CellImage::new(end, bytes);
    while let Some((suffix, value, after)) = split_cell(rest) {
        let both = &rest[4..rest.len() - after.len()];
        let cell = image.push(both, value.len());
        store_slot(words, slot, Slot::new(head_of(suffix), cell, suffix.len()));
        slot += 1;
        rest = after;
    }
    image.store(words)
}

/// Adds one entry to a list for [`append`].
pub(crate) fn push_cell(cells: &mut Vec<u8>, suffix: &[u8], value: &[u8]) {
    push_cell_pieces(cells, suffix, [value, &[]]);
}

/// As [`push_cell`], with the value in two pieces.
pub(crate) fn push_cell_pieces(cells: &mut Vec<u8>, suffix: &[u8], value: [&[u8]; 2]) {
    let value_len = value[0].len() + value[1].len();
    cells.extend_from_slice(&(suffix.len() as u16).to_le_bytes());
    cells.extend_from_slice(&(value_len as u16).to_le_bytes());
    for piece in [suffix, value[0], value[1]] {
        cells.extend_from_slice(piece);
    }
}

/// As [`push_cell`], for an entry of an undamaged page, without the first `cut` bytes of its
/// suffix.
pub(crate) fn push_cell_of(node: Node<'_>, slot: Slot, cut: usize, cells: &mut Vec<u8>) {
    let (key_len, value_len) = (slot.key_len().saturating_sub(cut), node.value_len(slot));
    cells.extend_from_slice(&(key_len as u16).to_le_bytes());
    cells.extend_from_slice(&(value_len as u16).to_le_bytes());
    words::append_out(
        node.words(),
        slot.key_at() + cut,
        key_len + value_len,
        cells,
    );
}

/// Splits the first entry off a list for [`append`]. Returns its suffix, its value, and the rest of
/// the list.
fn split_cell(cells: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (head, rest) = cells.split_first_chunk::<4>()?;
    let key_len = u16::from_le_bytes([head[0], head[1]]) as usize;
    let value_len = u16::from_le_bytes([head[2], head[3]]) as usize;
    let (suffix, rest) = rest.split_at_checked(key_len)?;
    let (value, rest) = rest.split_at_checked(value_len)?;
    Some((suffix, value, rest))
}

/// Rewrites all cells without gaps, and returns the new cell start.
fn compact(words: &[AtomicU64], count: usize) -> Result<usize, Damage> {
    let node = Node::new(words);
    let upper_at = node.upper_at();
    let cells = Cells::of(node, count);
    if cells.len() + SLOTS + count * 8 > upper_at {
        return Err("cells larger than the page");
    }
    words::fill_zero(words, SLOTS + count * 8, upper_at - (SLOTS + count * 8));
    let start = cells.store(words, 0);
    store_u16(words, OFF_CELL_START, start);
    store_u16(words, OFF_GARBAGE, 0);
    Ok(start)
}

/// A copy of the first cells of a page, from which they are stored at new offsets. Slots that are 0
/// have no cell.
struct Cells {
    page: Vec<u8>,
    slots: Vec<Slot>,
}

impl Cells {
    fn of(node: Node<'_>, count: usize) -> Cells {
        let mut page = Vec::with_capacity(PAGE_SIZE);
        words::append_words(node.words(), 0, PAGE_SIZE, &mut page);
        Cells {
            page,
            slots: (0..count).map(|i| node.slot(i)).collect(),
        }
    }

    /// The length of the value in the cell of `slot`; 0 if the cell lies outside the page.
    fn value_len(&self, slot: Slot) -> usize {
        let len = self.page.get(slot.cell()..slot.cell() + CELL_HEAD);
        len.map_or(0, |len| usize::from(u16::from_le_bytes([len[0], len[1]])))
    }

    /// The total size of all cells in bytes.
    fn len(&self) -> usize {
        let cells = self.slots.iter().filter(|slot| slot.0 != 0);
        cells
            .map(|slot| CELL_HEAD + slot.key_len() + self.value_len(*slot))
            .sum()
    }

    /// Stores the cells directly below the fences of `words`, and their slots, without the first
    /// `cut` bytes of each suffix. Returns the cell start. The caller has checked that they fit.
    fn store(&self, words: &[AtomicU64], cut: usize) -> usize {
        let mut image = CellImage::new(Node::new(words).upper_at(), self.len());
        for (i, slot) in self.slots.iter().enumerate() {
            if slot.0 == 0 {
                continue;
            }
            let (len, value_len) = (slot.key_len().saturating_sub(cut), self.value_len(*slot));
            // A cell of a damaged page may lie partly outside the page; only the part inside is
            // copied.
            let at = (slot.key_at() + cut).min(PAGE_SIZE);
            let both = &self.page[at..(at + len + value_len).min(PAGE_SIZE)];
            let suffix = &both[..len.min(both.len())];
            let cell = image.push(both, value_len);
            store_slot(words, i, Slot::new(head_of(suffix), cell, suffix.len()));
        }
        image.store(words)
    }
}

/// An image of the cell area. Cells are added from the last byte down, and stored together.
struct CellImage {
    bytes: Vec<u8>,
    /// The offset of `bytes` on the page.
    base: usize,
    /// The offset in `bytes` where the cells begin.
    start: usize,
}

impl CellImage {
    /// An image for cells of at most `len` bytes that end at offset `end` on the page. The page
    /// must have room for them.
    fn new(end: usize, len: usize) -> CellImage {
        CellImage {
            bytes: vec![0; len],
            base: end - len,
            start: len,
        }
    }

    /// Adds a cell with the contents `suffix_and_value`, and returns its offset on the page.
    fn push(&mut self, suffix_and_value: &[u8], value_len: usize) -> usize {
        let key_at = self.start - suffix_and_value.len();
        self.bytes[key_at..self.start].copy_from_slice(suffix_and_value);
        self.start = key_at - CELL_HEAD;
        self.bytes[self.start..key_at].copy_from_slice(&(value_len as u16).to_le_bytes());
        self.base + self.start
    }

    /// Stores the cells, and returns the offset where they begin on the page.
    fn store(&self, words: &[AtomicU64]) -> usize {
        let start = self.base + self.start;
        store_bytes(words, start, &self.bytes[self.start..]);
        start
    }
}

/// A private copy of a page.
pub(crate) struct Copied(Box<[AtomicU64]>);

impl Copied {
    /// Copies the page word by word. The copy is torn if a writer changes the page meanwhile and
    /// the caller does not validate it.
    pub(crate) fn of(words: &[AtomicU64]) -> Copied {
        Copied(
            words
                .iter()
                .map(|w| AtomicU64::new(w.load(Relaxed)))
                .collect(),
        )
    }
    pub(crate) fn node(&self) -> Node<'_> {
        Node::new(&self.0)
    }
    #[cfg(test)]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}
