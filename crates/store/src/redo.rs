//! Redo records of the store itself, and the trait by which higher crates apply theirs.
//!
//! # Picture
//! ```text
//! 1 WRITE       u16 offset, bytes
//! 2 INIT        u16 type, u16 level, u64 index id, u32 incarnation
//! 3 ZERO        u16 offset, u16 length
//! 4 NEWEST_TRX  u64 id: raises the header field to it
//! 5 ATTACHMENT  bytes of a layer above (attachments.rs); changes no page, and names page 0 of space 0
//! ```
//! INIT zeroes the page and writes its header, so recovery does not need the page's old contents.

use crate::error::StoreError;
use crate::page::{PAGE_SIZE, PageMut, TrxId, header};

pub(crate) const WRITE: u8 = 1;
pub(crate) const INIT: u8 = 2;
pub(crate) const ZERO: u8 = 3;
pub(crate) const NEWEST_TRX: u8 = 4;
pub(crate) const ATTACHMENT: u8 = 5;
/// Operations below this belong to the store.
pub(crate) const FIRST_USER_OP: u8 = 0x20;

/// Applies the redo operations of the crates above (operations from 0x20 on). The same function is
/// called at run time, by [`crate::Mtr::op`], and at recovery.
pub trait RedoHandler: Send + Sync {
    /// Changes `page` according to `op` and `payload`. Must be deterministic: the result may depend
    /// only on the page's bytes and the payload. An error at recovery marks the page as corrupt. At
    /// run time it ends the process, so the caller that logs an operation must have checked that it
    /// applies.
    fn apply(&self, op: u8, payload: &[u8], page: &PageMut<'_>) -> Result<(), StoreError>;
}

/// The handler of a store whose users log no operations of their own.
#[derive(Debug, Default)]
pub struct NoRedo;

impl RedoHandler for NoRedo {
    fn apply(&self, _: u8, _: &[u8], page: &PageMut<'_>) -> Result<(), StoreError> {
        Err(page.corrupt("redo operation without a handler"))
    }
}

/// The payload of INIT.
pub(crate) fn init_payload(
    page_type: u16,
    level: u16,
    index_id: u64,
    incarnation: u32,
) -> [u8; 16] {
    let mut p = [0u8; 16];
    p[..2].copy_from_slice(&page_type.to_le_bytes());
    p[2..4].copy_from_slice(&level.to_le_bytes());
    p[4..12].copy_from_slice(&index_id.to_le_bytes());
    p[12..].copy_from_slice(&incarnation.to_le_bytes());
    p
}

fn u16_of(payload: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(
        payload.get(at..at + 2)?.try_into().ok()?,
    ))
}

fn u64_of(payload: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(
        payload.get(at..at + 8)?.try_into().ok()?,
    ))
}

/// Applies any redo record.
pub(crate) fn apply(
    handler: &dyn RedoHandler,
    op: u8,
    payload: &[u8],
    page: &PageMut<'_>,
) -> Result<(), StoreError> {
    if op >= FIRST_USER_OP {
        return handler.apply(op, payload, page);
    }
    apply_own(op, payload, page).ok_or_else(|| page.corrupt("malformed redo record"))
}

fn apply_own(op: u8, payload: &[u8], page: &PageMut<'_>) -> Option<()> {
    match op {
        WRITE => {
            let off = usize::from(u16_of(payload, 0)?);
            let bytes = payload.get(2..)?;
            (off + bytes.len() <= PAGE_SIZE).then(|| page.write(off, bytes))
        }
        INIT => {
            let incarnation: [u8; 4] = payload.get(12..16)?.try_into().ok()?;
            init(
                page,
                u16_of(payload, 0)?,
                u16_of(payload, 2)?,
                u64_of(payload, 4)?,
                u32::from_le_bytes(incarnation),
            );
            Some(())
        }
        ZERO => {
            let (off, len) = (
                usize::from(u16_of(payload, 0)?),
                usize::from(u16_of(payload, 2)?),
            );
            (off + len <= PAGE_SIZE).then(|| page.fill_zero(off, len))
        }
        NEWEST_TRX => {
            raise_newest_trx(page, u64_of(payload, 0)?);
            Some(())
        }
        _ => None,
    }
}

/// Initializes a page: its header, followed by zeros.
pub(crate) fn init(
    page: &PageMut<'_>,
    page_type: u16,
    level: u16,
    index_id: u64,
    incarnation: u32,
) {
    let id = page.id();
    page.fill_zero(0, PAGE_SIZE);
    page.write_u16(header::PAGE_TYPE, page_type);
    page.write(header::FORMAT, &[header::FORMAT_V1]);
    page.write_u32(header::SPACE, id.space);
    page.write_u32(header::INCARNATION, incarnation);
    page.write_u32(header::PAGE_NO, id.page);
    page.write_u16(header::LEVEL, level);
    page.write_u64(header::INDEX_ID, index_id);
}

pub(crate) fn raise_newest_trx(page: &PageMut<'_>, id: TrxId) {
    if page.u64(header::NEWEST_TRX) < id {
        page.write_u64(header::NEWEST_TRX, id);
    }
}
