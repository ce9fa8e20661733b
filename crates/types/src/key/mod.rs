//! Index keys as bytes whose `memcmp` order is MySQL's order of the values (format v1, frozen).
//!
//! # Picture
//! ```text
//! key  = part, part, ...            an index entry appends the parts of the primary key
//! part = [u8 0 NULL | 1 value]      only where the column is nullable; after NULL nothing follows
//!        value bytes                as below
//!        ... every byte of the part inverted where the part is descending
//!
//! TINYINT .. BIGINT        1, 2, 3, 4, 8 bytes big-endian, sign bit flipped (unsigned: as is)
//! BIT, ENUM, SET, YEAR     the width of the row's field, big-endian
//! DECIMAL(p,s)             as in rows: unscaled number + 2^(bits-1), big-endian
//! FLOAT, DOUBLE            IEEE bits big-endian; sign bit flipped, all bits where negative; -0.0 is 0.0
//! DATE, DATETIME(f)        the width of the row's field, big-endian
//! TIME(f)                  6: microseconds + 2^47, big-endian
//! TIMESTAMP(0), (f)        4: seconds, big-endian; 8: microseconds, sign bit flipped, big-endian
//! strings                  sort key of the collation (the bytes themselves for `binary`) with 00 written as 00 FF, ended by 00 00
//! ```
//! A part with prefix length `n` holds the first `n` characters (bytes of a binary string).
//!
//! # Invariants
//! - K1: for two keys of one layout, `memcmp` agrees with comparing the values part by part.
//! - K2: no encoded part is a proper prefix of another of the same layout, so that concatenation
//!   keeps K1.
//! - K3: decoding an invertible part gives the value that was encoded (0.0 for -0.0).
//!
//! # Not here
//! The maximum length of a key. Source columns are limited to [`MAX_KEY_SOURCE_BYTES`], but a sort
//! key can be longer than its string (`Collation::max_sort_key_len`); the engine refuses keys that
//! do not fit on a page. A covering read needs the original bytes of collated parts, which are
//! stored in the entry's value.
//!
//! # Cost
//! Encoding appends to the caller's buffer. A collated string's sort key is written in place and
//! escaped only where it holds zeros.

mod elements;
mod part;
mod rows;

pub(crate) use part::framed_len;

pub use elements::{Elements, element_layout, pack_elements};

use crate::row::{RowError, RowLayout, fixed_width};
use crate::{ColumnType, TypeKind, Value, ValueRef};
pub use rows::{EntryWords, KeyRows, KeySource, LeafRows, NULL_TEXT};
use std::fmt::{self, Display, Formatter};

/// Most bytes of the source columns of one key (MySQL's limit, error 1071 beyond).
pub const MAX_KEY_SOURCE_BYTES: usize = 3072;

/// One column of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyPart {
    /// The column in the row layout.
    pub ordinal: usize,
    /// The column's type.
    pub ty: ColumnType,
    /// Whether the column may be NULL.
    pub nullable: bool,
    /// Descending.
    pub desc: bool,
    /// Characters (bytes of a binary string) that the index keeps; 0 keeps all.
    pub prefix_len: u32,
}

impl KeyPart {
    /// An ascending part over the whole column.
    pub fn new(ordinal: usize, ty: ColumnType, nullable: bool) -> KeyPart {
        KeyPart {
            ordinal,
            ty,
            nullable,
            desc: false,
            prefix_len: 0,
        }
    }

    /// Whether the value can be had back from its key bytes.
    pub fn is_invertible(&self) -> bool {
        self.prefix_len == 0
            && (fixed_width(&self.ty).is_some() || self.ty.collation.known().is_invertible())
    }
}

/// Why a key could not be written or read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyError {
    /// A value of another kind than the part's type.
    TypeMismatch {
        /// Index of the part.
        part: usize,
    },
    /// NULL for a part that is NOT NULL.
    NullInNotNull {
        /// Index of the part.
        part: usize,
    },
    /// The part cannot be decoded (collated or cut).
    NotInvertible,
    /// The key's bytes do not follow the layout.
    Corrupt,
    /// The row could not be read.
    Row(RowError),
}

impl Display for KeyError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::TypeMismatch { part } => {
                write!(f, "value does not fit the type of key part {part}")
            }
            KeyError::NullInNotNull { part } => write!(f, "NULL in NOT NULL key part {part}"),
            KeyError::NotInvertible => f.write_str("key part cannot be decoded"),
            KeyError::Corrupt => f.write_str("corrupt key"),
            KeyError::Row(e) => Display::fmt(e, f),
        }
    }
}

impl std::error::Error for KeyError {}

impl From<RowError> for KeyError {
    fn from(e: RowError) -> KeyError {
        KeyError::Row(e)
    }
}

/// The parts of one index key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyLayout {
    parts: Box<[KeyPart]>,
    fast: Box<[Fast]>,
    /// Bytes of every key, if all parts are NOT NULL and of fixed width.
    fixed: Option<usize>,
}

/// Parts that need no look at their type: ascending, NOT NULL integers of 4 and 8 bytes, which most
/// keys are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fast {
    No,
    I32,
    I64,
    U32,
    U64,
}

impl Fast {
    fn of(part: &KeyPart) -> Fast {
        match (&part.ty.kind, part.ty.unsigned) {
            _ if part.nullable || part.desc => Fast::No,
            (TypeKind::Int, false) => Fast::I32,
            (TypeKind::BigInt, false) => Fast::I64,
            (TypeKind::Int, true) => Fast::U32,
            (TypeKind::BigInt, true) => Fast::U64,
            _ => Fast::No,
        }
    }

    /// Appends the value's bytes; `false`, with nothing appended, where the long way must decide.
    #[inline]
    fn encode(self, value: ValueRef<'_>, out: &mut Vec<u8>) -> bool {
        if let (Fast::I64, ValueRef::Int(v)) = (self, value) {
            out.extend_from_slice(&(v as u64 ^ 1 << 63).to_be_bytes());
            return true;
        }
        let wide = match value {
            ValueRef::Int(v) => i128::from(v),
            ValueRef::UInt(v) => i128::from(v),
            _ => return false,
        };
        match self {
            Fast::No => return false,
            Fast::I32 => match i32::try_from(wide) {
                Ok(v) => out.extend_from_slice(&(v as u32 ^ 1 << 31).to_be_bytes()),
                Err(_) => return false,
            },
            Fast::I64 => match i64::try_from(wide) {
                Ok(v) => out.extend_from_slice(&(v as u64 ^ 1 << 63).to_be_bytes()),
                Err(_) => return false,
            },
            Fast::U32 => match u32::try_from(wide) {
                Ok(v) => out.extend_from_slice(&v.to_be_bytes()),
                Err(_) => return false,
            },
            Fast::U64 => match u64::try_from(wide) {
                Ok(v) => out.extend_from_slice(&v.to_be_bytes()),
                Err(_) => return false,
            },
        }
        true
    }
}

/// A part of integers, whose keys are words: for loops over many values.
#[derive(Clone, Copy, Debug)]
pub struct IntegerPart {
    unsigned: bool,
    /// The least value, and how far the greatest is from it.
    least: u64,
    span: u64,
    len: u32,
    /// Bits behind them in a word.
    shift: u32,
    /// The byte before the value's, if there is one.
    lead: u64,
    /// All ones in the bytes of the key, if it is descending.
    flip: u64,
}

impl IntegerPart {
    fn of(part: &KeyPart) -> Option<IntegerPart> {
        let is_int = matches!(
            part.ty.kind,
            TypeKind::TinyInt
                | TypeKind::SmallInt
                | TypeKind::MediumInt
                | TypeKind::Int
                | TypeKind::BigInt
        );
        let width = fixed_width(&part.ty).filter(|_| is_int)?;
        let (least, most) = part.ty.int_range()?;
        let len = width + usize::from(part.nullable);
        let shift = 64_u32.checked_sub(8 * len as u32)?;
        Some(IntegerPart {
            unsigned: part.ty.unsigned,
            least: least as u64,
            span: (most - least) as u64,
            len: len as u32,
            shift,
            lead: if part.nullable { 1 << 56 } else { 0 },
            flip: if part.desc { u64::MAX << shift } else { 0 },
        })
    }

    /// Bytes of a key, one to eight.
    #[inline(always)]
    pub fn key_len(&self) -> usize {
        self.len as usize
    }

    /// What [`KeyLayout::encode_part`] appends for the integer, as the first bytes of a big-endian
    /// word, zeros behind them; `None`: it is none, or the column cannot hold it.
    #[inline(always)]
    pub fn word(&self, value: &ValueRef<'_>) -> Option<u64> {
        let value = match *value {
            ValueRef::Int(v) if self.unsigned => u64::try_from(v).ok()?,
            ValueRef::Int(v) => v as u64,
            ValueRef::UInt(v) if self.unsigned => v,
            ValueRef::UInt(v) => i64::try_from(v).ok()? as u64,
            _ => return None,
        };
        // How far it is from the least one are its bits with the sign flipped.
        let biased = value.wrapping_sub(self.least);
        let word = biased << (self.shift & 63);
        (biased <= self.span).then_some((word | self.lead) ^ self.flip)
    }
}

impl KeyLayout {
    /// Part `index`, if it is one of integers with keys of at most eight bytes.
    #[inline]
    pub fn integer_part(&self, index: usize) -> Option<IntegerPart> {
        IntegerPart::of(self.parts.get(index)?)
    }

    /// A key of these parts.
    pub fn new(parts: impl IntoIterator<Item = KeyPart>) -> KeyLayout {
        let parts: Box<[KeyPart]> = parts.into_iter().collect();
        let fast = parts.iter().map(Fast::of).collect();
        let width = |part: &KeyPart| fixed_width(&part.ty).filter(|_| !part.nullable);
        let fixed = parts.iter().map(width).sum();
        KeyLayout { parts, fast, fixed }
    }

    /// The parts.
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Whether every part can be decoded.
    pub fn is_invertible(&self) -> bool {
        self.parts.iter().all(KeyPart::is_invertible)
    }

    /// Appends part `index` for one value. The value must have the column's type, as `store_value`
    /// returns it.
    #[inline]
    pub fn encode_part(
        &self,
        index: usize,
        value: ValueRef<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        if self.fast[index].encode(value, out) {
            return Ok(());
        }
        part::encode(&self.parts[index], index, value, out)
    }

    /// Appends what [`encode_part`](Self::encode_part) does, or a beginning of it of at least
    /// `limit` bytes: cheap for a long string.
    #[inline]
    pub fn encode_part_head(
        &self,
        index: usize,
        value: ValueRef<'_>,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let part = &self.parts[index];
        if let ValueRef::Bytes(bytes) = value
            && bytes.len() > limit
            && part::encode_string_head(part, bytes, limit, out)
        {
            return Ok(());
        }
        self.encode_part(index, value, out)
    }

    /// Appends bytes that are equal exactly when those of [`encode_part`](Self::encode_part) are,
    /// cheaper and without their order. As with them, none is a prefix of another. Never stored.
    #[inline]
    pub fn encode_part_identity(
        &self,
        index: usize,
        value: ValueRef<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let part = &self.parts[index];
        if let ValueRef::Bytes(bytes) = value
            && part.prefix_len == 0
            && is_string(&part.ty)
        {
            part::encode_identity(part, bytes, out);
            return Ok(());
        }
        self.encode_part(index, value, out)
    }

    /// Appends the key of the given values: one per part, in order; fewer give a prefix of the key.
    /// On an error `out` is as before.
    #[inline]
    pub fn encode_values<'v>(
        &self,
        values: impl IntoIterator<Item = ValueRef<'v>>,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let start = out.len();
        for (index, value) in values.into_iter().take(self.parts.len()).enumerate() {
            if let Err(e) = self.encode_part(index, value, out) {
                out.truncate(start);
                return Err(e);
            }
        }
        Ok(())
    }

    /// Appends the key of a stored row; the parts' ordinals are those of `layout`. On an error
    /// `out` is as before.
    pub fn encode_row(
        &self,
        layout: &RowLayout,
        row: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let start = out.len();
        for (index, part) in self.parts.iter().enumerate() {
            let done = layout
                .get(row, part.ordinal)
                .map_err(KeyError::Row)
                .and_then(|v| self.encode_part(index, v, out));
            if let Err(e) = done {
                out.truncate(start);
                return Err(e);
            }
        }
        Ok(())
    }

    /// Whether the first `parts` parts of an encoded key hold a NULL (a unique key admits many of
    /// those).
    pub fn has_null(&self, key: &[u8], parts: usize) -> Result<bool, KeyError> {
        let mut rest = key;
        for part in self.parts.iter().take(parts) {
            if part::is_null(part, rest)? {
                return Ok(true);
            }
            rest = part::skip(part, rest)?;
        }
        Ok(false)
    }

    /// Whether `key` is encoded parts, all of them, and nothing else; of no parts there is no key.
    #[inline]
    pub fn is_whole(&self, key: &[u8]) -> bool {
        let parts = self.parts.len();
        parts > 0
            && match self.fixed {
                Some(len) => key.len() == len,
                None => self.prefix_bytes(key, parts).is_ok_and(|n| n == key.len()),
            }
    }

    /// How many bytes of `key` its first `parts` parts take.
    pub fn prefix_bytes(&self, key: &[u8], parts: usize) -> Result<usize, KeyError> {
        let mut rest = key;
        for part in self.parts.iter().take(parts) {
            rest = part::skip(part, rest)?;
        }
        Ok(key.len() - rest.len())
    }

    /// Decodes part `index` from the front of `key` and moves `key` past it.
    pub fn decode_part(&self, index: usize, key: &mut &[u8]) -> Result<Value, KeyError> {
        part::decode(&self.parts[index], key)
    }

    /// Decodes all parts; bytes after the last one are left alone. Every part must be invertible.
    pub fn decode(&self, key: &[u8]) -> Result<Vec<Value>, KeyError> {
        let mut rest = key;
        (0..self.parts.len())
            .map(|i| self.decode_part(i, &mut rest))
            .collect()
    }
}

/// Turns `key` into the smallest byte string above every one that starts with it: the exclusive
/// upper bound of a prefix scan. `false`, with `key` emptied, when there is none (all bytes are
/// FF).
pub fn prefix_successor(key: &mut Vec<u8>) -> bool {
    while let Some(last) = key.pop() {
        if last < 0xFF {
            key.push(last + 1);
            return true;
        }
    }
    false
}

/// Whether the part's value bytes are a framed string.
fn is_string(ty: &ColumnType) -> bool {
    fixed_width(ty).is_none() || matches!(ty.kind, TypeKind::Null)
}

#[cfg(test)]
mod tests;
