//! Events that only MariaDB writes, and its compression of statements and rows.
//!
//! # Picture
//! ```text
//! GTID       u64 sequence number · u32 domain · u8 flags · [u64 commit group] · [XA: u32 format,
//!            u8 and u8 lengths, name] · [u8 more flags · [u8 engines] · [u64 number of the ALTER]]
//!            and zeros up to 19 bytes; the server is that of the header
//! GTID_LIST  u32 number of GTIDs, of which the upper 4 bits are flags
//!            · for each: u32 domain · u32 server · u64 sequence number
//! compressed u8 header: 0x80 | algorithm << 4 | bytes of the length · length, big-endian · zlib
//! ```
//! Source of the formats: MariaDB's documentation, "Replication Protocol".

use std::io::Read;

use flate2::read::ZlibDecoder;
use nfold_protocol::Reader;

use crate::branch::BranchId;
use crate::event::{MariaDbGtid, TransactionForm};
use crate::{BinlogError, Gtid, GtidSet};

/// The largest content of a compressed event, in bytes. It is the largest
/// `replica_max_allowed_packet`.
const MAX_CONTENT: usize = 1 << 30;

/// The flags of a GTID.
mod flag {
    /// There is no COMMIT: the next statement is the whole transaction.
    pub const STANDALONE: u8 = 1;
    /// The number of the commit group follows.
    pub const GROUP_COMMIT: u8 = 2;
    pub const PREPARED_XA: u8 = 64;
    pub const COMPLETED_XA: u8 = 128;
    /// More flags: the number of engines follows.
    pub const ENGINES: u8 = 1;
    /// An ALTER TABLE begins, commits, or is rolled back (`binlog_alter_two_phase`).
    pub const START_ALTER: u8 = 2;
    pub const COMMIT_ALTER: u8 = 4;
    pub const ROLLBACK_ALTER: u8 = 8;
}

/// Reads a GTID event. `server` is that of the event's header.
pub(crate) fn gtid(server: u32, r: &mut Reader<'_>) -> Result<MariaDbGtid, BinlogError> {
    let sequence = r.u64("sequence number")?;
    let domain = r.u32("domain")?;
    let flags = r.u8("flags")?;
    if sequence == 0 {
        return Err(BinlogError::Malformed("sequence number of a GTID"));
    }
    if flags & flag::GROUP_COMMIT != 0 {
        r.u64("commit group")?;
    }
    let mut branch = None;
    if flags & (flag::PREPARED_XA | flag::COMPLETED_XA) != 0 {
        let format = r.u32("format of an XA transaction")?;
        let lengths = [r.u8("length of gtrid")?, r.u8("length of bqual")?];
        let [gtrid, bqual] = lengths.map(usize::from);
        branch = Some(BranchId::read(r, format, (gtrid, bqual))?);
    }
    // The end of a branch is a statement, which has its name.
    let branch = branch.filter(|_| flags & flag::PREPARED_XA != 0);
    // Without any of them there are zeros, or nothing.
    let more = match r.is_empty() {
        true => 0,
        false => r.u8("more flags")?,
    };
    let known = flag::ENGINES | flag::START_ALTER | flag::COMMIT_ALTER | flag::ROLLBACK_ALTER;
    if more & !known != 0 {
        return Err(BinlogError::Unsupported(format!(
            "flags {more:#x} of a GTID"
        )));
    }
    let form = match flags & flag::STANDALONE != 0 {
        false if let Some(branch) = branch => TransactionForm::Branch(branch),
        _ if more & flag::START_ALTER != 0 => TransactionForm::AlterWithoutEffect,
        _ if more & flag::ROLLBACK_ALTER != 0 => TransactionForm::AlterWithoutEffect,
        true => TransactionForm::Statement,
        false => TransactionForm::Changes,
    };
    let gtid = Gtid::MariaDb {
        domain,
        server,
        sequence,
    };
    Ok(MariaDbGtid { gtid, form })
}

/// Reads a GTID_LIST event: the position in each domain at the beginning of the file.
pub(crate) fn gtid_list(r: &mut Reader<'_>) -> Result<GtidSet, BinlogError> {
    let n = r.u32("number of GTIDs")? & ((1 << 28) - 1);
    let mut set = GtidSet::new();
    for _ in 0..n {
        set.add(&Gtid::MariaDb {
            domain: r.u32("domain")?,
            server: r.u32("server")?,
            sequence: r.u64("sequence number")?,
        });
    }
    Ok(set)
}

/// The content of compressed bytes.
///
/// # Errors
/// Damage, or another algorithm than zlib.
pub(crate) fn decompress(bytes: &[u8]) -> Result<Vec<u8>, BinlogError> {
    let damaged = || BinlogError::Malformed("compressed content");
    let mut r = Reader::new(bytes);
    let head = r.u8("compression")?;
    if head & 0x80 == 0 {
        return Err(damaged());
    }
    let algorithm = head >> 4 & 7;
    if algorithm != 0 {
        let text = format!("compression algorithm {algorithm} of an event");
        return Err(BinlogError::Unsupported(text));
    }
    let digits = usize::from(head & 7);
    if !(1..=4).contains(&digits) {
        return Err(damaged());
    }
    let length = r.take(digits, "length of the content")?;
    let length = length.iter().fold(0, |n, b| n << 8 | usize::from(*b));
    if length > MAX_CONTENT {
        return Err(damaged());
    }
    let mut content = Vec::new();
    // One byte more than announced shows content that is too long.
    let mut decoder = ZlibDecoder::new(r.rest()).take(length as u64 + 1);
    let read = decoder.read_to_end(&mut content).map_err(|_| damaged())?;
    match read == length {
        true => Ok(content),
        false => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    fn compressed(content: &[u8], length: usize) -> Vec<u8> {
        let mut out = vec![0x84];
        out.extend_from_slice(&(length as u32).to_be_bytes());
        let mut encoder = ZlibEncoder::new(out, Compression::default());
        encoder.write_all(content).expect("writes");
        encoder.finish().expect("ends")
    }

    proptest! {
        #[test]
        fn compressed_content_is_read_back(content in proptest::collection::vec(any::<u8>(), 0..500)) {
            let bytes = compressed(&content, content.len());
            prop_assert_eq!(decompress(&bytes), Ok(content.clone()));
            for length in [content.len() + 1, content.len().saturating_sub(1)] {
                if length != content.len() {
                    prop_assert!(decompress(&compressed(&content, length)).is_err());
                }
            }
        }

        #[test]
        fn damaged_content_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = decompress(&bytes);
            let _ = gtid(1, &mut Reader::new(&bytes));
            let _ = gtid_list(&mut Reader::new(&bytes));
        }
    }

    #[test]
    fn gtid_flags_tell_the_form() {
        let event = |flags: &[u8]| {
            let mut body = 7u64.to_le_bytes().to_vec();
            body.extend_from_slice(&3u32.to_le_bytes());
            body.extend_from_slice(flags);
            body.resize(body.len().max(19), 0);
            gtid(100, &mut Reader::new(&body)).map(|g| (g.gtid.to_string(), g.form))
        };
        let found = |form| Ok(("3-100-7".to_owned(), form));
        assert_eq!(event(&[0x0c]), found(TransactionForm::Changes));
        assert_eq!(event(&[0x29]), found(TransactionForm::Statement));
        let grouped = [0x0e, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(event(&grouped), found(TransactionForm::Changes));
        assert_eq!(
            event(&[0x29, 2]),
            found(TransactionForm::AlterWithoutEffect)
        );
        assert_eq!(event(&[0x29, 4, 6]), found(TransactionForm::Statement));
        assert_eq!(
            event(&[0x29, 8, 6]),
            found(TransactionForm::AlterWithoutEffect)
        );
        assert!(event(&[0x29, 16]).is_err());
        let branch = BranchId {
            format: 7,
            gtrid: b"a".to_vec(),
            bqual: b"b".to_vec(),
        };
        let name = [7, 0, 0, 0, 1, 1, b'a', b'b'];
        let prepared = [&[0x4c][..], &name, &[1, 255]].concat();
        assert_eq!(event(&prepared), found(TransactionForm::Branch(branch)));
        let ended = [&[0x8d][..], &name].concat();
        assert_eq!(event(&ended), found(TransactionForm::Statement));
    }
}
