//! Runs a compiled pattern over a text by backtracking.
//!
//! # Picture
//!
//! ```text
//! stack:  Branch(op 7, 3)  Restore(slot 0, 2)  Branch(op 9, 5, back to 4)  ...
//!         └ where to go on   └ undoes a change    └ a run: each shorter one is tried
//! ```
//!
//! # Invariants
//!
//! - M1: a change of a slot above a branch is undone before the branch is taken.
//! - M2: the memo has a bit for each operation that saves a state, at each position. If it is
//!   set, the operation was reached there before and failed, and would fail again. Operations
//!   whose outcome depends on more (in look-around, atomic groups and counted loops, and beside
//!   back references) have no bit.
//! - M3: the memo is used only after a search has taken more steps than clearing it costs, so
//!   short searches never pay for it.

mod consume;
mod control;
mod grapheme;
mod machine;
mod search;

pub use search::Search;

pub(crate) use crate::text::char_at;
pub(crate) use crate::work::FUEL;

/// Start and end of a match, byte offsets.
pub type Span = (usize, usize);

/// Bounds of one search.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Saved states, in units of 10,000; 0: no limit. MySQL's `regexp_time_limit`.
    pub time: u64,
    /// Bytes of saved states as ICU counts them; 0: no limit. MySQL's `regexp_stack_limit`.
    pub stack_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            time: 32,
            stack_bytes: 8_000_000,
        }
    }
}

/// An entry of the backtracking stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// The operation to go on with; with [`RESTORE`] the slot whose value is put back.
    target: u32,
    /// How many bytes a run of characters can still give back.
    run: u32,
    /// A position, or the value of the slot.
    value: usize,
}

const RESTORE: u32 = 1 << 31;

/// A slot without a position.
pub(crate) const UNSET: usize = usize::MAX;

/// Memory that searches use one after the other.
#[derive(Debug, Default)]
pub struct Scratch {
    stack: Vec<Frame>,
    slots: Vec<usize>,
    data: Vec<usize>,
    memo: Vec<u64>,
}

impl Scratch {
    /// Frees the memory of a large search.
    pub fn trim(&mut self) {
        const POOLED_BYTES: usize = 64 << 10;
        if self.stack.capacity() * size_of::<Frame>() > POOLED_BYTES {
            self.stack = Vec::new();
        }
        if self.memo.capacity() * size_of::<u64>() > POOLED_BYTES {
            self.memo = Vec::new();
        }
    }
}

/// The start of the character that ends at `at`, which is not the start of the text.
#[inline]
pub(crate) fn previous(text: &[u8], at: usize) -> usize {
    let mut start = at - 1;
    while start > 0 && text[start] & 0xc0 == 0x80 {
        start -= 1;
    }
    start
}

/// The length of the line end at `at`, 0 if there is none. CR LF are two.
#[inline]
pub(crate) fn line_end_at(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(0x0a..=0x0d) => 1,
        Some(0xc2) if text.get(at + 1) == Some(&0x85) => 2,
        Some(0xe2) if text.get(at + 1) == Some(&0x80) => {
            3 * usize::from(matches!(text.get(at + 2), Some(0xa8 | 0xa9)))
        }
        _ => 0,
    }
}

/// The length of the line end before `at`, 0 if there is none.
pub(crate) fn line_end_before(text: &[u8], at: usize) -> usize {
    if at == 0 {
        return 0;
    }
    let start = previous(text, at);
    line_end_at(text, start)
}
