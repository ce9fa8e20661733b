//! Types of expressions: MySQL's type of a value, whether it may be NULL, and how firmly it holds
//! its collation. [`CmpKind`] says how values of two types are compared.

use nfold_types::collation::CollationId;
use nfold_types::sql_type::NOT_FIXED_DECIMALS;
use nfold_types::{ColumnType, TypeKind};

/// How firmly an expression holds its collation; the lower, the firmer (manual, "Collation
/// Coercibility in Expressions").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coercibility {
    /// `COLLATE` was written.
    Explicit = 0,
    /// A column.
    Implicit = 2,
    /// `USER()`, `VERSION()` and their like.
    SysConst = 3,
    /// A literal or a parameter.
    Coercible = 4,
    /// Made from a number or a date.
    Numeric = 5,
    /// NULL, or made from NULL.
    Ignorable = 6,
    /// Two collations met and neither won: it gives way to any, but is nothing to compare by.
    NoCollation = 7,
}

/// Result type of an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct ExprType {
    pub col: ColumnType,
    pub nullable: bool,
    pub coercibility: Coercibility,
}

impl ExprType {
    /// A type that is no character string.
    pub fn new(col: ColumnType, nullable: bool) -> Self {
        ExprType {
            col,
            nullable,
            coercibility: Coercibility::Numeric,
        }
    }

    /// A signed 64-bit integer that is described with `chars` characters, its sign among them.
    pub fn int(chars: u32, nullable: bool) -> Self {
        Self::new(ColumnType::bigint(), nullable).with_width(chars)
    }

    /// A signed 64-bit integer.
    pub fn bigint(nullable: bool) -> Self {
        Self::int(21, nullable)
    }

    /// The type of a comparison or a logical operator: INT(1).
    pub fn boolean(nullable: bool) -> Self {
        let mut ty = Self::int(1, nullable);
        // What tells it from other integers: see `is_boolean`.
        ty.col.decimals = 0;
        ty
    }

    /// Whether it is the type of a comparison, a logical operator, TRUE or FALSE, which are `true`
    /// and `false` in JSON.
    pub fn is_boolean(&self) -> bool {
        self.col.kind == TypeKind::BigInt && self.col.decimals == 0
    }

    /// A JSON document that an expression makes.
    pub fn json(nullable: bool) -> Self {
        let mut ty = Self::new(ColumnType::json(), nullable).with_width(JSON_CHARS);
        ty.coercibility = Coercibility::Implicit;
        ty
    }

    /// An unsigned 64-bit integer.
    pub fn ubigint(nullable: bool) -> Self {
        Self::new(ColumnType::bigint().with_unsigned(), nullable).with_width(21)
    }

    /// DOUBLE
    pub fn double(nullable: bool) -> Self {
        Self::new(ColumnType::double(), nullable).with_width(23)
    }

    /// DOUBLE that is shown with so many digits after the point ([`NOT_FIXED_DECIMALS`]: with as
    /// many as it has).
    pub fn double_fixed(decimals: u8, nullable: bool) -> Self {
        let mut ty = Self::double(nullable);
        if decimals < NOT_FIXED_DECIMALS {
            ty.col.decimals = decimals;
            ty.col.width = 17 + u32::from(decimals);
        }
        ty
    }

    /// The same type, described with `chars` characters.
    pub fn with_width(mut self, chars: u32) -> Self {
        self.col.width = chars;
        self
    }

    /// DECIMAL; precision and scale are cut to 65 and 30.
    pub fn decimal(precision: u32, scale: u32, nullable: bool) -> Self {
        let scale = scale.min(30);
        let precision = precision.clamp(scale.max(1), 65);
        Self::new(ColumnType::decimal(precision as u8, scale as u8), nullable)
    }

    /// A string of at most `chars` characters.
    pub fn string(
        chars: u64,
        collation: CollationId,
        coercibility: Coercibility,
        nullable: bool,
    ) -> Self {
        ExprType {
            col: string_type(chars, collation),
            nullable,
            coercibility,
        }
    }

    /// The type of the NULL literal.
    pub fn null() -> Self {
        ExprType {
            col: ColumnType::new(TypeKind::Null),
            nullable: true,
            coercibility: Coercibility::Ignorable,
        }
    }

    /// The type of a value that is taken as it is, by MIN or NULLIF: that of a column loses what
    /// only a table's columns have.
    pub fn item(&self) -> Self {
        let mut ty = self.clone();
        let length = self.max_length().min(u64::from(u32::MAX)) as u32;
        match ty.col.kind {
            TypeKind::Enum(_) | TypeKind::Set(_) => ty.col.kind = TypeKind::Char(length),
            TypeKind::Text(_) | TypeKind::Blob(_) if ty.col.width == 0 => {
                let size = nfold_types::TextSize::Normal;
                ty.col.kind = match ty.col.kind {
                    TypeKind::Text(_) => TypeKind::Text(size),
                    _ => TypeKind::Blob(size),
                };
                ty.col.width = length;
            }
            _ if ty.col.is_integer() || self.class() == Class::Double => ty.col.width = length,
            _ => {}
        }
        ty.col.zerofill = false;
        ty
    }

    /// The type of a value that is computed: that of a YEAR is a number, which has no leading
    /// zeros.
    pub fn computed(mut self) -> Self {
        if self.col.kind == TypeKind::Year {
            self.col.width = 4;
        }
        self
    }

    /// The type of a table's column that has such values.
    pub fn column(&self) -> ColumnType {
        let mut col = self.col.clone();
        if col.kind == TypeKind::Year {
            col.width = 0;
        }
        col
    }

    /// The type of the column of a temporary table that MySQL keeps such values in.
    pub fn kept(&self) -> Self {
        let mut ty = self.clone();
        match ty.col.kind {
            TypeKind::BigInt if (1..10).contains(&ty.col.width) => ty.col.kind = TypeKind::Int,
            TypeKind::Year => {
                ty.col.kind = TypeKind::Int;
                (ty.col.unsigned, ty.col.width) = (true, 4);
            }
            TypeKind::Enum(_) | TypeKind::Set(_) => {
                ty.col = string_type(self.max_length(), ty.col.collation);
            }
            TypeKind::Null => ty.col.kind = TypeKind::VarBinary(0),
            _ => {}
        }
        ty
    }

    /// As [`Self::kept`], for the value of a subquery: an integer is a BIGINT from ten digits on.
    pub fn stored_subquery(&self) -> Self {
        let mut ty = self.clone();
        if ty.col.is_integer() && ty.col.kind != TypeKind::Year {
            ty.col.width = ty.max_length() as u32;
            ty.col.kind = TypeKind::BigInt;
        }
        ty.kept()
    }

    /// In which domain values of this type take part in arithmetic and comparisons.
    pub fn class(&self) -> Class {
        Class::of(&self.col)
    }

    /// Whether values of this type and of the other one are compared without a conversion that
    /// might warn: both are numbers, strings, or dates and times.
    pub fn is_alike(&self, other: &ExprType) -> bool {
        match (self.class(), other.class()) {
            (Class::Null, _) => false,
            (a, b) => {
                a == b || a.is_number() && b.is_number() || a.is_temporal() && b.is_temporal()
            }
        }
    }

    /// The collation that values of this type have as strings.
    pub fn collation(&self) -> CollationId {
        self.col.collation
    }

    /// Precision and scale of the type as a DECIMAL.
    pub fn decimal_shape(&self) -> (u32, u32) {
        use TypeKind::*;
        match &self.col.kind {
            Decimal { precision, scale } => (u32::from(*precision), u32::from(*scale)),
            TinyInt | SmallInt | MediumInt | Int | BigInt => {
                let sign = u32::from(!self.col.unsigned);
                (
                    (self.max_length() as u32).saturating_sub(sign).clamp(1, 65),
                    0,
                )
            }
            Year => (4, 0),
            Bit(n) => (u32::from(*n), 0),
            Date => (8, 0),
            Time(f) => (7 + u32::from(*f), u32::from(*f)),
            DateTime(f) | Timestamp(f) => (14 + u32::from(*f), u32::from(*f)),
            Null => (1, 0),
            // The digits of a hexadecimal literal as a number.
            VarBinary(n) if self.col.zerofill => {
                ((n.saturating_mul(241)).div_ceil(100).clamp(1, 65), 0)
            }
            _ => (65, 30),
        }
    }

    /// The characters that a value takes at most, as MySQL counts them: the display width of a
    /// number, the bytes of a binary string.
    pub fn max_length(&self) -> u64 {
        use TypeKind::*;
        let own = |n: u64| match self.col.width {
            // Of a table's column the width is about showing it.
            0 => n,
            _ if self.col.zerofill || matches!(self.col.kind, TinyInt if self.col.width == 1) => n,
            width => u64::from(width),
        };
        let signed = u64::from(!self.col.unsigned);
        match &self.col.kind {
            Char(n) | VarChar(n) | Binary(n) | VarBinary(n) => u64::from(*n),
            Text(size) | Blob(size) => own(size.max_bytes()),
            Enum(members) => members
                .iter()
                .map(|m| m.chars().count() as u64)
                .max()
                .unwrap_or(0),
            Set(members) => members
                .iter()
                .map(|m| m.chars().count() as u64 + 1)
                .sum::<u64>()
                .saturating_sub(1),
            TinyInt => own(3 + signed),
            SmallInt => own(5 + signed),
            MediumInt => own(8 + signed),
            Int => own(10 + signed),
            BigInt => own(20),
            Decimal { precision, scale } => u64::from(*precision) + u64::from(*scale > 0) + signed,
            Float => own(12),
            Double => own(22),
            Bit(n) => u64::from(*n),
            Year => 4,
            Date => 10,
            Time(f) => own(10 + frac(*f)),
            DateTime(f) | Timestamp(f) => 19 + frac(*f),
            Json => u64::from(u32::MAX),
            Null => 0,
        }
    }

    /// Characters at most when shown as text.
    pub fn char_length(&self) -> u64 {
        match self.col.kind {
            TypeKind::Double => 22,
            _ => self.max_length(),
        }
    }

    /// Bytes at most when shown as binary text.
    pub fn byte_length(&self) -> u64 {
        let per_char = match self.class() {
            Class::String => u64::from(self.col.charset().max_len),
            _ => 1,
        };
        self.max_length().saturating_mul(per_char)
    }

    /// Its length as text of this collation.
    pub fn length_in(&self, collation: CollationId) -> u64 {
        if collation == CollationId::BINARY {
            self.byte_length()
        } else {
            self.char_length()
        }
    }

    /// Digits after the point; [`NOT_FIXED_DECIMALS`] where they are as many as there are.
    pub fn decimals(&self) -> u8 {
        match self.col.kind {
            TypeKind::Decimal { scale, .. } => scale,
            TypeKind::Float | TypeKind::Double => self.col.decimals,
            // A hexadecimal literal is a number as well.
            TypeKind::VarBinary(_) if self.col.zerofill => 0,
            _ if matches!(self.class(), Class::String | Class::Json) => NOT_FIXED_DECIMALS,
            _ => self.col.fsp(),
        }
    }
}

fn frac(fsp: u8) -> u64 {
    if fsp == 0 { 0 } else { u64::from(fsp) + 1 }
}

/// Characters that a JSON document is described with.
const JSON_CHARS: u32 = 0x3FFF_FFFF;

/// The longest string that an expression is described with, in bytes (`MAX_BLOB_WIDTH`).
const MAX_STRING_BYTES: u64 = 1 << 24;

/// The string type that holds `chars` characters, as MySQL chooses it for a result column.
pub fn string_type(chars: u64, collation: CollationId) -> ColumnType {
    let per_char = u64::from(collation.known().charset.max_len);
    long_string_type(chars.min(MAX_STRING_BYTES / per_char), collation)
}

/// As [`string_type`], but the longest is so many characters, not bytes: REPEAT and its like.
pub fn long_string_type(chars: u64, collation: CollationId) -> ColumnType {
    use nfold_types::TextSize;
    let chars = chars.min(MAX_STRING_BYTES) as u32;
    let binary = collation == CollationId::BINARY;
    let bytes = u64::from(chars) * u64::from(collation.known().charset.max_len);
    let size = if bytes <= TextSize::Medium.max_bytes() {
        TextSize::Medium
    } else {
        TextSize::Long
    };
    let mut ty = ColumnType::string(
        match (bytes <= TextSize::Normal.max_bytes(), binary) {
            (true, true) => TypeKind::VarBinary(chars),
            (true, false) => TypeKind::VarChar(chars),
            (false, true) => TypeKind::Blob(size),
            (false, false) => TypeKind::Text(size),
        },
        collation,
    );
    if ty.is_blob() {
        ty.width = chars;
    }
    ty
}

/// The domains in which MySQL computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    Null,
    /// Integers, BIT, YEAR.
    Int,
    Decimal,
    /// FLOAT and DOUBLE.
    Double,
    /// Character and binary strings, ENUM, SET.
    String,
    Date,
    Time,
    /// DATETIME and TIMESTAMP.
    DateTime,
    /// Documents in the binary layout.
    Json,
}

impl Class {
    /// The domain of a column type.
    pub fn of(ty: &ColumnType) -> Class {
        use TypeKind::*;
        match ty.kind {
            TinyInt | SmallInt | MediumInt | Int | BigInt | Year | Bit(_) => Class::Int,
            Decimal { .. } => Class::Decimal,
            Float | Double => Class::Double,
            Date => Class::Date,
            Time(_) => Class::Time,
            DateTime(_) | Timestamp(_) => Class::DateTime,
            Json => Class::Json,
            Null => Class::Null,
            Char(_) | VarChar(_) | Binary(_) | VarBinary(_) | Text(_) | Blob(_) | Enum(_)
            | Set(_) => Class::String,
        }
    }

    /// Int, Decimal or Double.
    pub fn is_number(self) -> bool {
        matches!(self, Class::Int | Class::Decimal | Class::Double)
    }

    /// Date, Time or DateTime.
    pub fn is_temporal(self) -> bool {
        matches!(self, Class::Date | Class::Time | Class::DateTime)
    }
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmpKind {
    /// As integers of either sign.
    Int,
    Decimal,
    Double,
    String(CollationId),
    /// Both as DATETIME (a DATE is midnight, a TIME is on the current date).
    DateTime,
    Time,
    /// As JSON documents.
    Json,
}

impl CmpKind {
    /// Whether a value of one type and one of the other that are equal as this compares them are
    /// known by their keys alone: a text or a number beside a date is not, whose meaning depends on
    /// what it meets.
    pub fn has_key(self, a: &ExprType, b: &ExprType) -> bool {
        let both = |of: fn(Class) -> bool| of(a.class()) && of(b.class());
        match self {
            CmpKind::Int
            | CmpKind::Decimal
            | CmpKind::Double
            | CmpKind::String(_)
            | CmpKind::Json => true,
            CmpKind::DateTime => both(|c| matches!(c, Class::Date | Class::DateTime)),
            CmpKind::Time => both(|c| c == Class::Time),
        }
    }
}
