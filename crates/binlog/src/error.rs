//! Why an event cannot be read.

use std::fmt;

use nfold_protocol::Malformed;

/// Why bytes are no event, or a value is none of its column's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BinlogError {
    /// The bytes contradict the format; the text names the field.
    Malformed(&'static str),
    /// The checksum does not match the bytes.
    Checksum { expected: u32, found: u32 },
    /// The event uses a feature that is not supported.
    Unsupported(String),
    /// A text is no GTID, or no GTID set: where, and what is expected there.
    Gtid(String),
}

impl fmt::Display for BinlogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BinlogError::Malformed(what) => write!(f, "malformed event: {what}"),
            BinlogError::Checksum { expected, found } => write!(
                f,
                "the checksum is {found:#010x}, but the event's bytes have {expected:#010x}"
            ),
            BinlogError::Unsupported(what) => write!(f, "not supported: {what}"),
            BinlogError::Gtid(text) => write!(f, "malformed GTID set specification '{text}'"),
        }
    }
}

impl std::error::Error for BinlogError {}

impl From<Malformed> for BinlogError {
    fn from(e: Malformed) -> Self {
        BinlogError::Malformed(e.0)
    }
}
