//! The type of a column or of an expression's result.

mod codec;
mod display;
mod meta;

pub use meta::{ColumnFlags, WireType};

use crate::CollationId;
use crate::charset::Charset;
use std::sync::Arc;

/// The four sizes of TEXT and BLOB.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TextSize {
    /// Up to 255 bytes.
    Tiny,
    /// Up to 65,535 bytes.
    Normal,
    /// Up to 16,777,215 bytes.
    Medium,
    /// Up to 4,294,967,295 bytes.
    Long,
}

impl TextSize {
    /// The longest value in bytes.
    pub fn max_bytes(self) -> u64 {
        match self {
            TextSize::Tiny => 0xFF,
            TextSize::Normal => 0xFFFF,
            TextSize::Medium => 0xFF_FFFF,
            TextSize::Long => 0xFFFF_FFFF,
        }
    }

    /// The next larger size; the largest is its own.
    pub fn next(self) -> TextSize {
        match self {
            TextSize::Tiny => TextSize::Normal,
            TextSize::Normal => TextSize::Medium,
            TextSize::Medium | TextSize::Long => TextSize::Long,
        }
    }
}

/// What kind of values a type holds. Lengths `n` are characters for CHAR and VARCHAR, bytes for
/// BINARY and VARBINARY, bits for BIT; `fsp` is the number of fractional second digits, 0 to 6.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TypeKind {
    /// TINYINT
    TinyInt,
    /// SMALLINT
    SmallInt,
    /// MEDIUMINT
    MediumInt,
    /// INT
    Int,
    /// BIGINT
    BigInt,
    /// DECIMAL(precision, scale)
    Decimal {
        /// Digits in all, 1 to 65.
        precision: u8,
        /// Digits after the point, 0 to 30.
        scale: u8,
    },
    /// FLOAT
    Float,
    /// DOUBLE
    Double,
    /// BIT(n), 1 to 64
    Bit(u8),
    /// YEAR
    Year,
    /// DATE
    Date,
    /// TIME(fsp)
    Time(u8),
    /// DATETIME(fsp)
    DateTime(u8),
    /// TIMESTAMP(fsp)
    Timestamp(u8),
    /// CHAR(n)
    Char(u32),
    /// VARCHAR(n)
    VarChar(u32),
    /// BINARY(n)
    Binary(u32),
    /// VARBINARY(n)
    VarBinary(u32),
    /// TINYTEXT to LONGTEXT
    Text(TextSize),
    /// TINYBLOB to LONGBLOB
    Blob(TextSize),
    /// ENUM: members in order, in the column's character set; the stored value is the 1-based
    /// index, 0 the error value ''.
    Enum(Arc<[Box<str>]>),
    /// SET: the stored value is the bit map of the members.
    Set(Arc<[Box<str>]>),
    /// JSON: values are documents in the binary layout of `nfold_json`.
    Json,
    /// The type of a bare NULL.
    Null,
}

/// `decimals` of a type without a fixed number of them (FLOAT, DOUBLE).
pub const NOT_FIXED_DECIMALS: u8 = 31;

/// The type of a column or expression: kind, attributes of numbers, collation of strings.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ColumnType {
    /// What kind of values.
    pub kind: TypeKind,
    /// UNSIGNED (numbers only).
    pub unsigned: bool,
    /// ZEROFILL (numbers only; implies unsigned).
    pub zerofill: bool,
    /// The explicit display width: of `TINYINT(1)`, of ZEROFILL integers, M of `FLOAT(M,D)`; at
    /// most 255 for table columns. For the result of an expression, the length in characters (bytes
    /// for binary strings) that its metadata shows. 0 if the type implies the width.
    pub width: u32,
    /// D of `FLOAT(M,D)` and `DOUBLE(M,D)`, otherwise [`NOT_FIXED_DECIMALS`].
    pub decimals: u8,
    /// The collation; `BINARY` for everything that is not a character string.
    pub collation: CollationId,
}

impl ColumnType {
    /// A type with no attributes: signed, collation `binary`.
    pub fn new(kind: TypeKind) -> ColumnType {
        ColumnType {
            kind,
            unsigned: false,
            zerofill: false,
            width: 0,
            decimals: NOT_FIXED_DECIMALS,
            collation: CollationId::BINARY,
        }
    }

    /// A character string type of this collation.
    pub fn string(kind: TypeKind, collation: CollationId) -> ColumnType {
        ColumnType {
            collation,
            ..ColumnType::new(kind)
        }
    }

    /// `VARCHAR(n)` of this collation.
    pub fn varchar(n: u32, collation: CollationId) -> ColumnType {
        ColumnType::string(TypeKind::VarChar(n), collation)
    }

    /// The type `JSON`; its collation is that of a document's text.
    pub fn json() -> ColumnType {
        ColumnType::string(TypeKind::Json, CollationId::UTF8MB4_BIN)
    }

    /// `BIGINT`, signed.
    pub fn bigint() -> ColumnType {
        ColumnType::new(TypeKind::BigInt)
    }

    /// `DOUBLE`.
    pub fn double() -> ColumnType {
        ColumnType::new(TypeKind::Double)
    }

    /// `DECIMAL(precision, scale)`.
    pub fn decimal(precision: u8, scale: u8) -> ColumnType {
        ColumnType::new(TypeKind::Decimal { precision, scale })
    }

    /// The same type, UNSIGNED.
    pub fn with_unsigned(mut self) -> ColumnType {
        self.unsigned = true;
        self
    }

    /// The character set of the values; `binary` for types other than character strings.
    pub fn charset(&self) -> &'static Charset {
        self.collation.known().charset
    }

    /// TINYINT to BIGINT and YEAR, not BIT.
    pub fn is_integer(&self) -> bool {
        use TypeKind::*;
        matches!(
            self.kind,
            TinyInt | SmallInt | MediumInt | Int | BigInt | Year
        )
    }

    /// Integers, DECIMAL, FLOAT, DOUBLE, BIT, YEAR.
    pub fn is_numeric(&self) -> bool {
        use TypeKind::*;
        self.is_integer() || matches!(self.kind, Decimal { .. } | Float | Double | Bit(_))
    }

    /// DATE, TIME, DATETIME, TIMESTAMP.
    pub fn is_temporal(&self) -> bool {
        use TypeKind::*;
        matches!(self.kind, Date | Time(_) | DateTime(_) | Timestamp(_))
    }

    /// CHAR to LONGTEXT and their binary counterparts: values are bytes.
    pub fn is_string(&self) -> bool {
        use TypeKind::*;
        matches!(
            self.kind,
            Char(_) | VarChar(_) | Binary(_) | VarBinary(_) | Text(_) | Blob(_)
        )
    }

    /// TEXT or BLOB of any size.
    pub fn is_blob(&self) -> bool {
        matches!(self.kind, TypeKind::Text(_) | TypeKind::Blob(_))
    }

    /// JSON
    #[inline]
    pub fn is_json(&self) -> bool {
        matches!(self.kind, TypeKind::Json)
    }

    /// ENUM or SET.
    pub fn is_enum_or_set(&self) -> bool {
        matches!(self.kind, TypeKind::Enum(_) | TypeKind::Set(_))
    }

    /// Fractional second digits, 0 for types without them.
    pub fn fsp(&self) -> u8 {
        match self.kind {
            TypeKind::Time(f) | TypeKind::DateTime(f) | TypeKind::Timestamp(f) => f,
            _ => 0,
        }
    }

    /// Inclusive bounds of an integer type's values (YEAR 1901 to 2155, besides 0); `None` for
    /// others.
    pub fn int_range(&self) -> Option<(i128, i128)> {
        let bits = match self.kind {
            TypeKind::TinyInt => 8,
            TypeKind::SmallInt => 16,
            TypeKind::MediumInt => 24,
            TypeKind::Int => 32,
            TypeKind::BigInt => 64,
            TypeKind::Year => return Some((1901, 2155)),
            _ => return None,
        };
        Some(if self.unsigned {
            (0, (1i128 << bits) - 1)
        } else {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        })
    }

    /// The most bytes a value takes in its own character set.
    pub fn max_bytes(&self) -> u64 {
        use TypeKind::*;
        let per_char = || u64::from(self.charset().max_len);
        match &self.kind {
            Char(n) | VarChar(n) => u64::from(*n) * per_char(),
            Binary(n) | VarBinary(n) => u64::from(*n),
            Text(size) | Blob(size) => size.max_bytes(),
            Json => TextSize::Long.max_bytes(),
            Null => 0,
            TinyInt | Year => 1,
            SmallInt => 2,
            MediumInt | Date => 3,
            Int | Float => 4,
            BigInt | Double => 8,
            Decimal { precision, .. } => decimal_width(*precision) as u64,
            Bit(n) => u64::from(n.div_ceil(8)),
            Time(_) => 6,
            DateTime(f) => {
                if *f == 0 {
                    5
                } else {
                    8
                }
            }
            Timestamp(f) => {
                if *f == 0 {
                    4
                } else {
                    8
                }
            }
            Enum(members) => {
                if members.len() < 256 {
                    1
                } else {
                    2
                }
            }
            Set(members) => set_width(members.len()) as u64,
        }
    }

    /// The name of an ENUM's value; index 0 is the error value ''.
    pub fn enum_name(&self, index: u64) -> Option<&str> {
        match &self.kind {
            TypeKind::Enum(_) if index == 0 => Some(""),
            TypeKind::Enum(members) => members
                .get(usize::try_from(index).ok()?.checked_sub(1)?)
                .map(|m| &**m),
            _ => None,
        }
    }

    /// Appends the text of an ENUM's or SET's value, as `a` or `a,b`. The members are UTF-8.
    pub fn member_text(&self, value: u64, out: &mut Vec<u8>) {
        match &self.kind {
            TypeKind::Enum(_) => {
                out.extend_from_slice(self.enum_name(value).unwrap_or("").as_bytes())
            }
            TypeKind::Set(members) => {
                let mut first = true;
                for (bit, member) in members.iter().enumerate().take(64) {
                    if value >> bit & 1 == 1 {
                        if !first {
                            out.push(b',');
                        }
                        first = false;
                        out.extend_from_slice(member.as_bytes());
                    }
                }
            }
            _ => {}
        }
    }
}

/// The number of bytes of a SET with `members` members in a row: 1, 2, 3, 4 or 8.
pub(crate) fn set_width(members: usize) -> usize {
    match members.div_ceil(8) {
        0 | 1 => 1,
        n @ 2..=4 => n,
        _ => 8,
    }
}

#[cfg(test)]
mod tests;

/// The number of bytes of a DECIMAL with `precision` digits in rows and keys.
pub const fn decimal_width(precision: u8) -> usize {
    // Bits of 10^precision - 1 (log2(10) * 2^16 = 217705.8) and one for the sign.
    let bits = ((precision as usize * 217_706) >> 16) + 2;
    bits.div_ceil(8)
}
