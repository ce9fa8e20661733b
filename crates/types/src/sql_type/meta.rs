//! Result-set metadata: the fields of a column definition packet that depend on the type.
//!
//! Source: "Protocol::ColumnDefinition41" of MySQL's client/server protocol documentation.

use super::{ColumnType, NOT_FIXED_DECIMALS, TextSize, TypeKind};
use crate::charset::Charset;

/// `enum_field_types` of the protocol.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum WireType {
    Decimal = 0,
    Tiny = 1,
    Short = 2,
    Long = 3,
    Float = 4,
    Double = 5,
    Null = 6,
    Timestamp = 7,
    LongLong = 8,
    Int24 = 9,
    Date = 10,
    Time = 11,
    DateTime = 12,
    Year = 13,
    VarChar = 15,
    Bit = 16,
    Json = 245,
    NewDecimal = 246,
    Enum = 247,
    Set = 248,
    TinyBlob = 249,
    MediumBlob = 250,
    LongBlob = 251,
    Blob = 252,
    VarString = 253,
    String = 254,
}

impl WireType {
    /// The type with this number.
    pub fn from_u8(code: u8) -> Option<WireType> {
        use WireType::*;
        const ALL: [WireType; 26] = [
            Decimal, Tiny, Short, Long, Float, Double, Null, Timestamp, LongLong, Int24, Date,
            Time, DateTime, Year, VarChar, Bit, Json, NewDecimal, Enum, Set, TinyBlob, MediumBlob,
            LongBlob, Blob, VarString, String,
        ];
        ALL.into_iter().find(|t| *t as u8 == code)
    }
}

/// Bits of the flags field of a column definition.
pub struct ColumnFlags;

#[allow(missing_docs)]
impl ColumnFlags {
    pub const NOT_NULL: u16 = 1;
    pub const PRI_KEY: u16 = 2;
    pub const UNIQUE_KEY: u16 = 4;
    pub const MULTIPLE_KEY: u16 = 8;
    pub const BLOB: u16 = 16;
    pub const UNSIGNED: u16 = 32;
    pub const ZEROFILL: u16 = 64;
    pub const BINARY: u16 = 128;
    pub const ENUM: u16 = 256;
    pub const AUTO_INCREMENT: u16 = 512;
    pub const TIMESTAMP: u16 = 1024;
    pub const SET: u16 = 2048;
    pub const NO_DEFAULT_VALUE: u16 = 4096;
    pub const ON_UPDATE_NOW: u16 = 8192;
    pub const PART_KEY: u16 = 16384;
    pub const NUM: u16 = 32768;
}

impl ColumnType {
    /// The protocol's type code of a value that an expression makes: other than of a column it
    /// tells the sizes of BLOB apart.
    pub fn computed_wire_type(&self) -> WireType {
        match &self.kind {
            TypeKind::Text(TextSize::Medium) | TypeKind::Blob(TextSize::Medium) => {
                WireType::MediumBlob
            }
            TypeKind::Text(TextSize::Long) | TypeKind::Blob(TextSize::Long) => WireType::LongBlob,
            TypeKind::Enum(_) => WireType::Enum,
            TypeKind::Set(_) => WireType::Set,
            _ => self.wire_type(),
        }
    }

    /// The flags of a value that an expression makes; the caller adds NOT_NULL.
    pub fn computed_wire_flags(&self) -> u16 {
        let of_tables =
            ColumnFlags::ZEROFILL | ColumnFlags::BLOB | ColumnFlags::ENUM | ColumnFlags::SET;
        let text = self.is_string() || self.is_enum_or_set();
        let binary = !text && !matches!(self.kind, TypeKind::Bit(_));
        self.wire_flags() & !of_tables | if binary { ColumnFlags::BINARY } else { 0 }
    }

    /// The decimals field of a value that an expression makes: a string has as many as there are.
    pub fn computed_wire_decimals(&self) -> u8 {
        let text = self.is_string() || self.is_enum_or_set() || self.is_json();
        if text && !self.zerofill {
            NOT_FIXED_DECIMALS
        } else {
            self.wire_decimals()
        }
    }

    /// The protocol's type code.
    pub fn wire_type(&self) -> WireType {
        use TypeKind::*;
        match &self.kind {
            TinyInt => WireType::Tiny,
            SmallInt => WireType::Short,
            MediumInt => WireType::Int24,
            Int => WireType::Long,
            BigInt => WireType::LongLong,
            Decimal { .. } => WireType::NewDecimal,
            Float => WireType::Float,
            Double => WireType::Double,
            Bit(_) => WireType::Bit,
            Year => WireType::Year,
            Date => WireType::Date,
            Time(_) => WireType::Time,
            DateTime(_) => WireType::DateTime,
            Timestamp(_) => WireType::Timestamp,
            Char(_) | Binary(_) | Enum(_) | Set(_) => WireType::String,
            VarChar(_) | VarBinary(_) => WireType::VarString,
            Text(_) | Blob(_) => WireType::Blob,
            Json => WireType::Json,
            Null => WireType::Null,
        }
    }

    /// The flags that follow from the type alone; the caller adds NOT_NULL, keys, AUTO_INCREMENT
    /// and so on.
    pub fn wire_flags(&self) -> u16 {
        use TypeKind::*;
        let mut flags = 0;
        // On a string literal in hexadecimal ZEROFILL says that it is a number as well.
        let number = !self.is_string();
        if self.unsigned || matches!(self.kind, Bit(_) | Year) {
            flags |= ColumnFlags::UNSIGNED;
        }
        if (self.zerofill && number) || matches!(self.kind, Year) {
            flags |= ColumnFlags::ZEROFILL;
        }
        match &self.kind {
            Enum(_) => flags |= ColumnFlags::ENUM,
            Set(_) => flags |= ColumnFlags::SET,
            Text(_) | Blob(_) => flags |= ColumnFlags::BLOB,
            Json => flags |= ColumnFlags::BLOB | ColumnFlags::BINARY,
            _ => {}
        }
        let binary_string = matches!(self.kind, Binary(_) | VarBinary(_) | Blob(_));
        let bin_collation =
            (self.is_string() || self.is_enum_or_set()) && self.collation.known().is_binary();
        if binary_string || bin_collation || self.is_temporal() {
            flags |= ColumnFlags::BINARY;
        }
        flags
    }

    /// The collation number sent: 63 for numbers, temporal and binary strings, the client's for
    /// character strings.
    pub fn wire_charset(&self, client_collation: u16) -> u16 {
        // A document that an expression makes is called text, that of a column is not.
        let document = self.is_json() && self.width > 0;
        let text = self.collation != crate::CollationId::BINARY
            && (self.is_string() || self.is_enum_or_set() || document);
        if text { client_collation } else { 63 }
    }

    /// Display width of an integer type.
    pub(super) fn integer_width(&self) -> u32 {
        if self.width != 0 {
            return self.width;
        }
        let (signed, unsigned) = match self.kind {
            TypeKind::TinyInt => (4, 3),
            TypeKind::SmallInt => (6, 5),
            TypeKind::MediumInt => (9, 8),
            TypeKind::Int => (11, 10),
            _ => (20, 20),
        };
        if self.unsigned { unsigned } else { signed }
    }

    /// The length field in bytes; strings are counted in the client's character set.
    pub fn display_length(&self, client: &Charset) -> u32 {
        use TypeKind::*;
        let fraction = |fsp: u8| if fsp == 0 { 0 } else { 1 + u32::from(fsp) };
        let per_char = if self.charset().is_binary() {
            1
        } else {
            u32::from(client.max_len)
        };
        match &self.kind {
            TinyInt | SmallInt | MediumInt | Int | BigInt => self.integer_width(),
            Decimal { precision, scale } => {
                u32::from(*precision) + u32::from(*scale > 0) + u32::from(!self.unsigned)
            }
            Float if self.width == 0 => 12,
            Double if self.width == 0 => 22,
            Float | Double => self.width,
            Bit(n) => u32::from(*n),
            Year => 4,
            Date => 10,
            Time(_) if self.width > 0 => self.width,
            Time(f) => 10 + fraction(*f),
            DateTime(f) | Timestamp(f) => 19 + fraction(*f),
            Char(n) | VarChar(n) | Binary(n) | VarBinary(n) => n.saturating_mul(per_char),
            Text(size) | Blob(size) => {
                let bytes = match self.width {
                    0 => size.max_bytes() as u32,
                    width => width.saturating_mul(u32::from(self.charset().max_len)),
                };
                bytes.saturating_mul(per_char)
            }
            Enum(m) => {
                m.iter()
                    .map(|s| s.chars().count() as u32)
                    .max()
                    .unwrap_or(0)
                    * per_char
            }
            Set(m) => {
                let chars: u32 = m.iter().map(|s| s.chars().count() as u32 + 1).sum();
                chars.saturating_sub(1) * per_char
            }
            Json if self.width > 0 => self.width.saturating_mul(client.max_len.into()),
            Json => u32::MAX,
            Null => 0,
        }
    }

    /// The decimals field: the scale, fractional second digits, 31 for floating point.
    pub fn wire_decimals(&self) -> u8 {
        match self.kind {
            TypeKind::Decimal { scale, .. } => scale,
            TypeKind::Float | TypeKind::Double => self.decimals,
            _ => self.fsp(),
        }
    }
}
