//! GTID_TAGGED (MySQL 8.3 and later): a GTID event in the form of MySQL's serialization library.
//!
//! # Picture
//! ```text
//! number: as many low bits of the first byte are 1 as bytes follow it; then a 0, then the value,
//!         little-endian. After eight 1 bits the value is in the next eight bytes.
//! message: format version · size in bytes · last field that must be known · (field id · value)*
//! ```

use nfold_protocol::Reader;

use crate::BinlogError;
use crate::event::GtidEvent;
use crate::gtid::{Gtid, SourceUuid, Tag};

/// Reads a number.
fn number(r: &mut Reader<'_>) -> Result<u64, BinlogError> {
    let first = r.u8("number")?;
    let more = first.trailing_ones() as usize;
    let mut bytes = [0; 8];
    bytes[..more].copy_from_slice(r.take(more, "number")?);
    let rest = u64::from_le_bytes(bytes);
    Ok(match more {
        8 => rest,
        // 7 - more bits of the first byte belong to the value.
        _ => {
            let low = u64::from(first) >> (more + 1);
            low | rest << (7 - more)
        }
    })
}

/// Reads a signed number: its sign is the lowest bit, and negative ones are complemented.
fn signed(r: &mut Reader<'_>) -> Result<i64, BinlogError> {
    let n = number(r)?;
    let magnitude = (n >> 1) as i64;
    Ok(if n & 1 == 1 { !magnitude } else { magnitude })
}

/// Reads the body of the event.
pub(crate) fn read(body: &[u8]) -> Result<GtidEvent, BinlogError> {
    const FLAGS: u64 = 0;
    const UUID: u64 = 1;
    const NUMBER: u64 = 2;
    const TAG: u64 = 3;
    const LAST_COMMITTED: u64 = 4;
    const SEQUENCE_NUMBER: u64 = 5;
    const COMMIT_TIME: u64 = 6;
    /// The last field that this function knows.
    const LAST_KNOWN: u64 = 11;
    let mut r = Reader::new(body);
    number(&mut r)?;
    number(&mut r)?;
    let last_required = number(&mut r)?;
    if last_required > LAST_KNOWN {
        let text = format!("field {last_required} of a tagged GTID");
        return Err(BinlogError::Unsupported(text));
    }
    let (mut uuid, mut gno, mut tag) = ([0; 16], 0, Tag::default());
    let (mut last_committed, mut sequence_number) = (0, 0);
    let mut committed_us = None;
    while !r.is_empty() {
        match number(&mut r)? {
            FLAGS => drop(number(&mut r)?),
            UUID => {
                for byte in &mut uuid {
                    *byte = number(&mut r)? as u8;
                }
            }
            NUMBER => gno = signed(&mut r)?,
            TAG => {
                let length = number(&mut r)? as usize;
                let text = std::str::from_utf8(r.take(length, "tag")?).ok();
                let parsed = text.and_then(Tag::parse);
                tag = parsed.ok_or(BinlogError::Malformed("tag"))?;
            }
            LAST_COMMITTED => last_committed = signed(&mut r)?,
            SEQUENCE_NUMBER => sequence_number = signed(&mut r)?,
            COMMIT_TIME => committed_us = Some(number(&mut r)?),
            // The time on the first source, versions of the servers, the transaction's length.
            _ => break,
        }
    }
    let number = u64::try_from(gno).ok();
    let number = number.filter(|n| (1..=Gtid::MAX_NUMBER).contains(n));
    Ok(GtidEvent {
        gtid: Some(Gtid::MySql {
            uuid: SourceUuid(uuid),
            tag,
            number: number.ok_or(BinlogError::Malformed("number of a GTID"))?,
        }),
        last_committed,
        sequence_number,
        committed_us,
    })
}
