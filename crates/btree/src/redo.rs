//! The redo operations of tree pages. This crate changes pages only through them, at run time and
//! at recovery.
//!
//! # Picture
//! The payloads are little-endian. `suffix` is a key without its page's common prefix.
//! ```text
//! 0x20 FORMAT       [u16 page type][u16 level][u64 index id][u32 left][u32 right]
//!                   [u16 lower len][u16 upper len | FFFF][lower][upper]
//! 0x21 INSERT       [u16 slot][u16 suffix len][suffix][value]
//! 0x22 REMOVE       [u16 slot]
//! 0x23 REPLACE      [u16 slot][value]
//! 0x24 VALUE_BYTES  [u16 slot][u16 offset in the value][bytes]
//! 0x25 TRUNCATE     [u16 from slot][u32 right][upper]
//! 0x26 APPEND       ([u16 suffix len][u16 value len][suffix][value])*
//! 0x27 LINKS        [u32 left][u32 right]
//! 0x28 INSERT_RUN   [u16 slot]([u16 suffix len][u16 value len][suffix][value])*
//! ```
//! # Failure
//! A payload that does not fit the page is a [`StoreError::Corrupt`]. No payload causes a panic.

use crate::node::NO_UPPER;
use crate::node::edit::{self, Format};
use nfold_store::{Latched, Mtr, PageMut, RedoHandler, StoreError};

pub const OP_FIRST: u8 = 0x20;
pub const OP_LAST: u8 = 0x5f;
pub(crate) const OP_FORMAT: u8 = 0x20;
pub(crate) const OP_INSERT: u8 = 0x21;
pub(crate) const OP_REMOVE: u8 = 0x22;
pub(crate) const OP_REPLACE: u8 = 0x23;
pub(crate) const OP_VALUE_BYTES: u8 = 0x24;
pub(crate) const OP_TRUNCATE: u8 = 0x25;
pub(crate) const OP_APPEND: u8 = 0x26;
pub(crate) const OP_LINKS: u8 = 0x27;
pub(crate) const OP_INSERT_RUN: u8 = 0x28;

/// Applies the operations 0x20..=0x5f. The engine's redo handler delegates these to it; tests use
/// it directly.
#[derive(Copy, Clone, Debug, Default)]
pub struct BtreeRedo;

impl RedoHandler for BtreeRedo {
    fn apply(&self, op: u8, payload: &[u8], page: &PageMut<'_>) -> Result<(), StoreError> {
        apply(op, payload, page).map_err(|what| page.corrupt(what))
    }
}

/// Reads fields from the front of a payload.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], edit::Damage> {
        let (head, rest) = self.0.split_at_checked(n).ok_or("cut-off redo payload")?;
        self.0 = rest;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], edit::Damage> {
        let (head, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or("cut-off redo payload")?;
        self.0 = rest;
        Ok(*head)
    }
    fn u16(&mut self) -> Result<u16, edit::Damage> {
        self.array().map(u16::from_le_bytes)
    }
    fn u32(&mut self) -> Result<u32, edit::Damage> {
        self.array().map(u32::from_le_bytes)
    }
    fn u64(&mut self) -> Result<u64, edit::Damage> {
        self.array().map(u64::from_le_bytes)
    }
}

fn apply(op: u8, payload: &[u8], page: &PageMut<'_>) -> Result<(), edit::Damage> {
    let words = page.words();
    let mut r = Reader(payload);
    match op {
        OP_FORMAT => {
            let (page_type, level, index_id) = (r.u16()?, r.u16()?, r.u64()?);
            let (left, right) = (r.u32()?, r.u32()?);
            let (lower_len, upper_len) = (r.u16()?, r.u16()?);
            let lower = r.take(lower_len as usize)?;
            let upper = if upper_len == NO_UPPER {
                None
            } else {
                Some(r.take(upper_len as usize)?)
            };
            edit::format(
                words,
                &Format {
                    page_type,
                    level,
                    index_id,
                    left,
                    right,
                    lower,
                    upper,
                },
            )
        }
        OP_INSERT => {
            let (slot, len) = (r.u16()?, r.u16()?);
            let suffix = r.take(len as usize)?;
            edit::insert(words, slot as usize, suffix, r.0)
        }
        OP_REMOVE => edit::remove(words, r.u16()? as usize),
        OP_REPLACE => {
            let slot = r.u16()?;
            edit::replace(words, slot as usize, r.0)
        }
        OP_VALUE_BYTES => {
            let (slot, off) = (r.u16()?, r.u16()?);
            edit::write_value(words, slot as usize, off as usize, r.0)
        }
        OP_TRUNCATE => {
            let (from, right) = (r.u16()?, r.u32()?);
            edit::truncate(words, from as usize, right, r.0)
        }
        OP_APPEND => edit::append(words, payload),
        OP_LINKS => {
            let (left, right) = (r.u32()?, r.u32()?);
            edit::set_links(words, left, right)
        }
        OP_INSERT_RUN => {
            let slot = r.u16()?;
            edit::insert_run(words, slot as usize, r.0)
        }
        _ => Err("unknown tree operation"),
    }
}

/// `n` as a two-byte field of a payload.
fn two(n: usize) -> [u8; 2] {
    (n as u16).to_le_bytes()
}

pub(crate) fn log_format(mtr: &mut Mtr<'_>, p: Latched, f: &Format<'_>) {
    let payload: [&[u8]; 9] = [
        &f.page_type.to_le_bytes(),
        &f.level.to_le_bytes(),
        &f.index_id.to_le_bytes(),
        &f.left.to_le_bytes(),
        &f.right.to_le_bytes(),
        &two(f.lower.len()),
        &f.upper.map_or(NO_UPPER, |u| u.len() as u16).to_le_bytes(),
        f.lower,
        f.upper.unwrap_or(&[]),
    ];
    mtr.op_pieces(p, OP_FORMAT, &payload);
}

pub(crate) fn log_insert(mtr: &mut Mtr<'_>, p: Latched, slot: usize, suffix: &[u8], value: &[u8]) {
    let mut head = [0; 4];
    head[..2].copy_from_slice(&two(slot));
    head[2..].copy_from_slice(&two(suffix.len()));
    mtr.op_pieces(p, OP_INSERT, &[&head, suffix, value]);
}

/// `cells` is a list built with [`edit::push_cell`].
pub(crate) fn log_insert_run(mtr: &mut Mtr<'_>, p: Latched, slot: usize, cells: &[u8]) {
    mtr.op_pieces(p, OP_INSERT_RUN, &[&two(slot), cells]);
}

pub(crate) fn log_remove(mtr: &mut Mtr<'_>, p: Latched, slot: usize) {
    mtr.op(p, OP_REMOVE, &two(slot));
}

pub(crate) fn log_replace(mtr: &mut Mtr<'_>, p: Latched, slot: usize, value: &[u8]) {
    mtr.op_pieces(p, OP_REPLACE, &[&two(slot), value]);
}

pub(crate) fn log_value_bytes(
    mtr: &mut Mtr<'_>,
    p: Latched,
    slot: usize,
    off: usize,
    bytes: &[u8],
) {
    mtr.op_pieces(p, OP_VALUE_BYTES, &[&two(slot), &two(off), bytes]);
}

pub(crate) fn log_truncate(mtr: &mut Mtr<'_>, p: Latched, from: usize, right: u32, upper: &[u8]) {
    let payload: [&[u8]; 3] = [&two(from), &right.to_le_bytes(), upper];
    mtr.op_pieces(p, OP_TRUNCATE, &payload);
}

/// `cells` is a list built with [`edit::push_cell`].
pub(crate) fn log_append(mtr: &mut Mtr<'_>, p: Latched, cells: &[u8]) {
    mtr.op(p, OP_APPEND, cells);
}

pub(crate) fn log_links(mtr: &mut Mtr<'_>, p: Latched, left: u32, right: u32) {
    let mut b = [0u8; 8];
    b[..4].copy_from_slice(&left.to_le_bytes());
    b[4..].copy_from_slice(&right.to_le_bytes());
    mtr.op(p, OP_LINKS, &b);
}
