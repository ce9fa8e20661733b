//! XA: distributed transactions.

/// The name of a branch: `gtrid [, bqual [, formatID]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xid {
    pub format: i64,
    pub gtrid: Vec<u8>,
    pub bqual: Vec<u8>,
}

impl Xid {
    /// The bytes that name the branch in the engine: i64 format, u8 length of the gtrid, gtrid,
    /// bqual.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.format.to_le_bytes().to_vec();
        out.push(self.gtrid.len() as u8);
        out.extend_from_slice(&self.gtrid);
        out.extend_from_slice(&self.bqual);
        out
    }

    /// Reads what [`encode`](Self::encode) wrote; `None`: it is something else.
    pub fn decode(bytes: &[u8]) -> Option<Xid> {
        let (format, rest) = bytes.split_first_chunk()?;
        let (len, rest) = rest.split_first()?;
        let (gtrid, bqual) = rest.split_at_checked(usize::from(*len))?;
        Some(Xid {
            format: i64::from_le_bytes(*format),
            gtrid: gtrid.to_vec(),
            bqual: bqual.to_vec(),
        })
    }
}

/// How XA START joins a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XaAssociation {
    New,
    Join,
    Resume,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Xa {
    /// `XA START|BEGIN xid [JOIN|RESUME]`
    Start(Xid, XaAssociation),
    /// `XA END xid [SUSPEND [FOR MIGRATE]]`
    End {
        xid: Xid,
        suspend: bool,
    },
    Prepare(Xid),
    /// `XA COMMIT xid [ONE PHASE]`
    Commit {
        xid: Xid,
        one_phase: bool,
    },
    Rollback(Xid),
    /// `XA RECOVER [CONVERT XID]`
    Recover {
        convert: bool,
    },
}
