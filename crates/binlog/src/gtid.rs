//! Global transaction identifiers of MySQL (UUID, tag, number) and MariaDB (domain, server,
//! number).

use std::fmt;
use std::sync::Arc;

use crate::BinlogError;

/// The UUID of the server that committed a transaction first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SourceUuid(pub [u8; 16]);

impl SourceUuid {
    /// Parses `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, with or without dashes.
    pub fn parse(text: &str) -> Option<SourceUuid> {
        let mut bytes = [0; 16];
        let mut digits = text.bytes().filter(|b| *b != b'-');
        for byte in &mut bytes {
            let high = char::from(digits.next()?).to_digit(16)?;
            let low = char::from(digits.next()?).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        digits.next().is_none().then_some(SourceUuid(bytes))
    }
}

impl fmt::Display for SourceUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for SourceUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The tag of a GTID (MySQL 8.3 and later): up to 32 characters in lower case, or none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Tag(Option<Arc<str>>);

impl Tag {
    /// The longest tag in bytes.
    pub const MAX: usize = 32;

    /// Parses a tag. `None` if it is too long, or has other characters than letters, digits and
    /// underscores, or begins with a digit.
    pub fn parse(text: &str) -> Option<Tag> {
        if text.is_empty() {
            return Some(Tag(None));
        }
        let lower = text.to_ascii_lowercase();
        let valid = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        let first_is_digit = lower.as_bytes()[0].is_ascii_digit();
        let ok = lower.len() <= Tag::MAX && lower.bytes().all(valid) && !first_is_digit;
        ok.then(|| Tag(Some(lower.into())))
    }

    /// The text; empty without a tag.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

/// The identifier of one transaction.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Gtid {
    /// MySQL: the server, a tag, and a number from 1.
    MySql {
        uuid: SourceUuid,
        tag: Tag,
        number: u64,
    },
    /// MariaDB: the replication domain, the server's id, and the sequence number.
    MariaDb {
        domain: u32,
        server: u32,
        sequence: u64,
    },
}

impl Gtid {
    /// The largest number of a MySQL GTID, 2^63 - 2.
    pub const MAX_NUMBER: u64 = i64::MAX as u64 - 1;

    /// Parses `uuid:number`, `uuid:tag:number` or `domain-server-sequence`.
    ///
    /// # Errors
    /// [`BinlogError::Gtid`].
    pub fn parse(text: &str) -> Result<Gtid, BinlogError> {
        let bad = || BinlogError::Gtid(text.into());
        if let Some((uuid, rest)) = text.split_once(':') {
            let uuid = SourceUuid::parse(uuid.trim()).ok_or_else(bad)?;
            let (tag, number) = rest.split_once(':').unwrap_or(("", rest));
            let number: u64 = number.trim().parse().map_err(|_| bad())?;
            if number == 0 || number > Gtid::MAX_NUMBER {
                return Err(bad());
            }
            let tag = Tag::parse(tag.trim()).ok_or_else(bad)?;
            return Ok(Gtid::MySql { uuid, tag, number });
        }
        let mut parts = text.trim().split('-');
        let mut next = || parts.next().ok_or_else(bad);
        let gtid = Gtid::MariaDb {
            domain: next()?.parse().map_err(|_| bad())?,
            server: next()?.parse().map_err(|_| bad())?,
            sequence: next()?.parse().map_err(|_| bad())?,
        };
        match parts.next() {
            None => Ok(gtid),
            Some(_) => Err(bad()),
        }
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gtid::MySql { uuid, tag, number } if tag.as_str().is_empty() => {
                write!(f, "{uuid}:{number}")
            }
            Gtid::MySql { uuid, tag, number } => write!(f, "{uuid}:{}:{number}", tag.as_str()),
            Gtid::MariaDb {
                domain,
                server,
                sequence,
            } => write!(f, "{domain}-{server}-{sequence}"),
        }
    }
}
