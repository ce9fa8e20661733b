//! XA transactions in the binary log: the names of their branches, and XA_PREPARE.
//!
//! # Picture
//! ```text
//! MySQL    Gtid ─▶ Query XA START x ─▶ rows ─▶ Query XA END x ─▶ XA_prepare x [one phase]
//! MariaDB  Gtid x ─▶ rows ─▶ Query XA END x ─▶ XA_prepare x
//! both     Gtid ─▶ Query XA COMMIT x │ XA ROLLBACK x
//!
//! XA_PREPARE  u8 one phase · u32 format · u32 length of gtrid · u32 length of bqual · both
//! ```

use std::fmt;

use nfold_protocol::Reader;

use crate::BinlogError;

/// The longest gtrid or bqual, in bytes.
const MAX_PART: usize = 64;

/// The name of a branch. It is displayed as statements in the binary log have it:
/// `X'61',X'62',7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchId {
    pub format: u32,
    pub gtrid: Vec<u8>,
    pub bqual: Vec<u8>,
}

impl BranchId {
    /// Reads both parts of a name whose lengths are known.
    ///
    /// # Errors
    /// A part is longer than 64 bytes, or not there.
    pub(crate) fn read(
        r: &mut Reader<'_>,
        format: u32,
        (gtrid, bqual): (usize, usize),
    ) -> Result<BranchId, BinlogError> {
        if gtrid.max(bqual) > MAX_PART {
            return Err(BinlogError::Malformed("name of an XA transaction"));
        }
        Ok(BranchId {
            format,
            gtrid: r.take(gtrid, "gtrid")?.to_vec(),
            bqual: r.take(bqual, "bqual")?.to_vec(),
        })
    }
}

impl fmt::Display for BranchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.gtrid, &self.bqual] {
            f.write_str("X'")?;
            part.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("',")?;
        }
        write!(f, "{}", self.format)
    }
}

/// XA_PREPARE: the end of a transaction's first phase, or of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XaPrepareEvent {
    /// The transaction is committed (XA COMMIT ... ONE PHASE). Otherwise it is prepared.
    pub one_phase: bool,
    pub branch: BranchId,
}

impl XaPrepareEvent {
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<XaPrepareEvent, BinlogError> {
        let one_phase = r.u8("one phase")? != 0;
        let format = r.u32("format of an XA transaction")?;
        let gtrid = r.u32("length of gtrid")? as usize;
        let bqual = r.u32("length of bqual")? as usize;
        Ok(XaPrepareEvent {
            one_phase,
            branch: BranchId::read(r, format, (gtrid, bqual))?,
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let BranchId {
            format,
            gtrid,
            bqual,
        } = &self.branch;
        out.push(u8::from(self.one_phase));
        out.extend_from_slice(&format.to_le_bytes());
        out.extend_from_slice(&(gtrid.len() as u32).to_le_bytes());
        out.extend_from_slice(&(bqual.len() as u32).to_le_bytes());
        out.extend_from_slice(gtrid);
        out.extend_from_slice(bqual);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The event that MySQL 9.7 writes for `XA PREPARE 'a', 'b', 7`.
    const PREPARED: &[u8] = b"\0\x07\0\0\0\x01\0\0\0\x01\0\0\0ab";

    #[test]
    fn xa_prepare_is_read_as_mysql_writes_it() {
        let event = XaPrepareEvent::read(&mut Reader::new(PREPARED)).unwrap();
        assert!(!event.one_phase);
        assert_eq!(event.branch.to_string(), "X'61',X'62',7");
        let mut written = Vec::new();
        event.encode(&mut written);
        assert_eq!(written, PREPARED);
    }

    #[test]
    fn damaged_xa_prepare_is_refused() {
        for end in 0..PREPARED.len() {
            assert!(XaPrepareEvent::read(&mut Reader::new(&PREPARED[..end])).is_err());
        }
        let mut long = PREPARED.to_vec();
        long[5] = 65;
        long.extend_from_slice(&[0; 99]);
        assert!(XaPrepareEvent::read(&mut Reader::new(&long)).is_err());
    }
}
