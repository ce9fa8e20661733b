//! The byte layout of the log: blocks in the files, and mini-transactions in the stream of their
//! payloads.
//!
//! # Picture
//! ```text
//! block of 4096 bytes
//!  0 u32 CRC-32C of bytes 4..32      4 u32 payload bytes used when it was written
//!  8 u64 sequence = LSN / 4064      16 u64 generation
//! 24 u64 synced: the log was durable up to this LSN when the block was written;
//!        0 if unknown (written by an earlier version)
//! 32 payload, 4064 bytes
//!
//! mini-transaction, at a multiple of 16
//!  0 u32 length of the records
//!  4 u32 CRC-32C over records, length, start LSN, generation
//!  8 records, then zeros up to a multiple of 16
//!
//! record: u8 op, u32 space, u32 page, u16 payload length, payload
//! ```
//! Blocks are always written whole. The last block is rewritten while it fills up. An LSN is a byte
//! offset in the endless stream of block payloads.
//!
//! # Invariants
//! - F1: rewriting a block changes its header and appends to its payload. So any mixture of sectors
//!   of the old and the new image, as a crash may leave it, contains all bytes synced before. The
//!   header lies in one sector.
//! - F2: the generation increases with each opening of the store, and log is written only after the
//!   control file contains its generation. So bytes of an earlier generation or an earlier lap are
//!   never mistaken for current ones. For the same reason, the CRC of a mini-transaction covers its
//!   position and generation.
//! # Failure
//! The log ends at the first block with an invalid header, or the first mini-transaction with an
//! invalid CRC. No commit after that point was acknowledged.

use crate::page::{Lsn, PageId};

/// The size of a block.
pub(crate) const BLOCK: usize = 4096;
pub(crate) const BLOCK_HEADER: usize = 32;
/// The payload bytes of a block.
pub(crate) const PAYLOAD: u64 = (BLOCK - BLOCK_HEADER) as u64;
/// The bytes before the records of a mini-transaction.
pub(crate) const MTR_HEADER: usize = 8;
/// The bytes before the payload of a record.
pub(crate) const RECORD_HEADER: usize = 11;
/// Mini-transactions start at multiples of this.
pub(crate) const ALIGN: u64 = nfold_sync::prefix::UNIT;
/// The first LSN of a new store. LSN 0 means "none" everywhere.
pub(crate) const FIRST_LSN: Lsn = PAYLOAD;

const _: () = assert!(PAYLOAD.is_multiple_of(ALIGN));

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// The bytes of log used by a mini-transaction with `records` bytes of records.
pub(crate) fn mtr_len(records: usize) -> u64 {
    ((MTR_HEADER + records) as u64).next_multiple_of(ALIGN)
}

/// The start of the first block at or after `lsn`.
pub(crate) fn next_block(lsn: Lsn) -> Lsn {
    lsn.next_multiple_of(PAYLOAD)
}

/// Fills in a block's header. `used` is the number of payload bytes. The log is durable up to
/// `synced`.
pub(crate) fn seal_block(
    block: &mut [u8],
    sequence: u64,
    generation: u64,
    used: usize,
    synced: Lsn,
) {
    block[4..8].copy_from_slice(&(used as u32).to_le_bytes());
    block[8..16].copy_from_slice(&sequence.to_le_bytes());
    block[16..24].copy_from_slice(&generation.to_le_bytes());
    block[24..BLOCK_HEADER].copy_from_slice(&synced.to_le_bytes());
    let crc = crc32c::crc32c(&block[4..BLOCK_HEADER]);
    block[..4].copy_from_slice(&crc.to_le_bytes());
}

/// The contents of a valid block header.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct BlockHead {
    pub(crate) sequence: u64,
    pub(crate) generation: u64,
    /// 0 if unknown.
    pub(crate) synced: Lsn,
}

/// Decodes a block's header; `None` if it is not valid.
pub(crate) fn block_head(block: &[u8]) -> Option<BlockHead> {
    let whole = u32_at(block, 0) == crc32c::crc32c(&block[4..BLOCK_HEADER]);
    whole.then(|| BlockHead {
        sequence: u64_at(block, 8),
        generation: u64_at(block, 16),
        synced: u64_at(block, 24),
    })
}

/// Whether a block's header is neither valid nor all zeros, as it is before its first write. A
/// crash cannot cause this, because the header lies in one sector.
pub(crate) fn is_head_damaged(block: &[u8]) -> bool {
    block_head(block).is_none() && block[..BLOCK_HEADER].iter().any(|b| *b != 0)
}

/// Whether `block` is block `sequence` of `generation`.
pub(crate) fn check_block(block: &[u8], sequence: u64, generation: u64) -> bool {
    block_head(block).is_some_and(|b| b.sequence == sequence && b.generation == generation)
}

/// The part of a mini-transaction's CRC that does not depend on its position.
pub(crate) fn records_crc(records: &[u8]) -> u32 {
    crc32c::crc32c_append(
        crc32c::crc32c(records),
        &(records.len() as u32).to_le_bytes(),
    )
}

/// The header of a mini-transaction at `start`. `crc` comes from [`records_crc`].
pub(crate) fn mtr_header(len: usize, crc: u32, start: Lsn, generation: u64) -> [u8; MTR_HEADER] {
    let mut place = [0u8; 16];
    place[..8].copy_from_slice(&start.to_le_bytes());
    place[8..].copy_from_slice(&generation.to_le_bytes());
    let mut header = [0u8; MTR_HEADER];
    header[..4].copy_from_slice(&(len as u32).to_le_bytes());
    header[4..].copy_from_slice(&crc32c::crc32c_append(crc, &place).to_le_bytes());
    header
}

/// The length of the records according to a header, which is not verified.
pub(crate) fn claimed_len(header: &[u8; MTR_HEADER]) -> usize {
    u32_at(header, 0) as usize
}

/// A redo record of a mini-transaction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) op: u8,
    pub(crate) id: PageId,
    pub(crate) payload: &'a [u8],
}

/// Appends a record. Its payload must be shorter than 64 KiB.
pub(crate) fn push_record(out: &mut Vec<u8>, op: u8, id: PageId, payload: &[&[u8]]) {
    let len: usize = payload.iter().map(|p| p.len()).sum();
    let len = u16::try_from(len).expect("a record's payload is below 64 KiB");
    let mut header = [0u8; RECORD_HEADER];
    header[0] = op;
    header[1..5].copy_from_slice(&id.space.to_le_bytes());
    header[5..9].copy_from_slice(&id.page.to_le_bytes());
    header[9..].copy_from_slice(&len.to_le_bytes());
    out.reserve(RECORD_HEADER + usize::from(len));
    out.extend_from_slice(&header);
    for p in payload {
        out.extend_from_slice(p);
    }
}

/// Iterates over the records of a mini-transaction. Stops early if they do not exactly fill it;
/// then [`Records::whole`] is false.
pub(crate) struct Records<'a> {
    bytes: &'a [u8],
}

impl<'a> Records<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Records { bytes }
    }

    pub(crate) fn whole(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let b = self.bytes;
        if b.len() < RECORD_HEADER {
            return None;
        }
        let len = usize::from(u16::from_le_bytes([b[9], b[10]]));
        let payload = b.get(RECORD_HEADER..RECORD_HEADER + len)?;
        self.bytes = &b[RECORD_HEADER + len..];
        Some(Record {
            op: b[0],
            id: PageId::new(u32_at(b, 1), u32_at(b, 5)),
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let mut bytes = Vec::new();
        push_record(&mut bytes, 7, PageId::new(3, 9), &[b"ab", b"c"]);
        push_record(&mut bytes, 8, PageId::new(u32::MAX, 0), &[]);
        let mut records = Records::new(&bytes);
        assert_eq!(
            records.next(),
            Some(Record {
                op: 7,
                id: PageId::new(3, 9),
                payload: b"abc"
            })
        );
        assert_eq!(
            records.next(),
            Some(Record {
                op: 8,
                id: PageId::new(u32::MAX, 0),
                payload: b""
            })
        );
        assert!(records.next().is_none() && records.whole());
        let mut cut = Records::new(&bytes[..bytes.len() - 1]);
        assert_eq!(cut.by_ref().count(), 1);
        assert!(!cut.whole());
    }

    #[test]
    fn mtr_header_covers_position_and_generation() {
        let crc = records_crc(b"hello");
        let a = mtr_header(5, crc, 4064, 1);
        assert_eq!(claimed_len(&a), 5);
        assert_ne!(a, mtr_header(5, crc, 4080, 1));
        assert_ne!(a, mtr_header(5, crc, 4064, 2));
    }

    #[test]
    fn block_header_identifies_the_block() {
        let mut block = vec![9u8; BLOCK];
        seal_block(&mut block, 12, 3, 100, 777);
        assert_eq!(block_head(&block).map(|b| b.synced), Some(777));
        assert!(check_block(&block, 12, 3));
        assert!(!check_block(&block, 13, 3));
        assert!(!check_block(&block, 12, 4));
        block[5] ^= 1;
        assert!(!check_block(&block, 12, 3));
        assert!(is_head_damaged(&block));
        assert!(
            !check_block(&[0; BLOCK], 0, 0),
            "zeros are not a valid block"
        );
        assert!(!is_head_damaged(&[0; BLOCK]));
    }
}
