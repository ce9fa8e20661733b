//! Types of expressions: the column type, whether the value may be NULL, and its collation's
//! coercibility. [`CmpKind`] says how two values are compared.

use std::sync::Arc;

use nfold_types::collation::CollationId;
use nfold_types::sql_type::NOT_FIXED_DECIMALS;
use nfold_types::{ColumnType, TextSize, TypeKind};

/// MySQL's temporary tables store longer strings as TEXT or BLOB.
pub(crate) const MAX_KEPT_CHARS: u32 = 512;

/// The coercibility of an expression's collation; a lower value wins (manual, "Collation
/// Coercibility in Expressions").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coercibility {
    /// COLLATE was written.
    Explicit = 0,
    /// A column.
    Implicit = 2,
    /// `USER()`, `VERSION()` and similar functions.
    SysConst = 3,
    /// A literal or a parameter.
    Coercible = 4,
    /// A number or a date, or text made from one.
    Numeric = 5,
    /// NULL, or an expression of NULL.
    Ignorable = 6,
    /// Two collations conflict. Any other collation wins over this one, and comparing by it is an
    /// error.
    NoCollation = 7,
}

/// Where a string comes from. It decides which warnings reading a number from it causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextOrigin {
    /// A literal, a parameter, or an expression that returns one unchanged: warning 1292 about
    /// everything behind the number.
    Literal,
    /// A column of a table that is no TEXT or BLOB: as a literal; as a DECIMAL, text without digits
    /// also causes warning 1366.
    Column,
    /// The result of a function: as a column, but as a DECIMAL without warning 1292.
    Computed,
    /// A value that MySQL holds in a cache, or a TEXT or BLOB column: no warning 1292.
    Cached,
    /// The result of REGEXP_SUBSTR or REGEXP_REPLACE: as `Cached`, but a DECIMAL is the integer at
    /// the start of the text, without a warning.
    Matched,
    /// A constant that MySQL converts once, when it is needed: one warning.
    Once,
    /// A string that MySQL stores in a DOUBLE column of its own: warning 1366.
    Stored,
    /// A constant that the statement checks before its first row ([`ConstantCheck`]), where it
    /// warns: no more warnings for each row. Numbers have this origin, too.
    ///
    /// [`ConstantCheck`]: crate::query::ConstantCheck
    Checked,
}

/// The name that MySQL gives an item in warnings about its value. Only these items have one: JSON
/// documents (the column or function that they come from), CAST to DECIMAL, and the DATETIME among
/// the arguments of GREATEST and LEAST. It is no part of the type: types that differ in it alone
/// are equal.
///
/// The pointer in a pointer keeps every [`ExprType`] eight bytes smaller than an `Arc<str>` would.
#[derive(Debug, Clone, Default)]
pub struct ItemName(Option<Arc<Box<str>>>);

impl ItemName {
    /// A name.
    pub fn new(name: &str) -> ItemName {
        ItemName(Some(Arc::new(name.into())))
    }

    /// The name; empty if it is not known.
    pub fn as_str(&self) -> &str {
        self.0.as_ref().map_or("", |name| name)
    }

    /// Whether there is a name. A document without one was chosen by IFNULL, COALESCE, GREATEST or
    /// LEAST.
    pub fn is_known(&self) -> bool {
        self.0.is_some()
    }
}

impl PartialEq for ItemName {
    fn eq(&self, _: &ItemName) -> bool {
        true
    }
}

/// The type of an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct ExprType {
    pub col: ColumnType,
    pub nullable: bool,
    pub coercibility: Coercibility,
    pub origin: TextOrigin,
    pub item_name: ItemName,
}

impl ExprType {
    /// A type that is not a character string.
    pub fn new(col: ColumnType, nullable: bool) -> Self {
        ExprType {
            col,
            nullable,
            coercibility: Coercibility::Numeric,
            origin: TextOrigin::Literal,
            item_name: ItemName::default(),
        }
    }

    /// A signed 64-bit integer whose description has a length of `chars` characters, the sign
    /// included.
    pub fn int(chars: u32, nullable: bool) -> Self {
        Self::new(ColumnType::bigint(), nullable).with_width(chars)
    }

    /// A signed 64-bit integer.
    pub fn bigint(nullable: bool) -> Self {
        Self::int(21, nullable)
    }

    /// The result type of comparisons and logical operators: INT(1).
    pub fn boolean(nullable: bool) -> Self {
        let mut ty = Self::int(1, nullable);
        // Marks the type as boolean: see `is_boolean`.
        ty.col.decimals = 0;
        ty
    }

    /// Whether the type is that of a comparison, a logical operator, TRUE or FALSE. In JSON such a
    /// value is `true` or `false`.
    pub fn is_boolean(&self) -> bool {
        self.col.kind == TypeKind::BigInt && self.col.decimals == 0
    }

    /// A JSON document as the result of an expression.
    pub fn json(nullable: bool) -> Self {
        let mut ty = Self::new(ColumnType::json(), nullable).with_width(JSON_CHARS);
        ty.coercibility = Coercibility::Implicit;
        ty
    }

    /// The same type; if it is JSON, its documents come from the function or column `name`.
    pub fn with_item_name(mut self, name: &str) -> Self {
        if self.col.is_json() {
            self.item_name = ItemName::new(name);
        }
        self
    }

    /// An unsigned 64-bit integer.
    pub fn ubigint(nullable: bool) -> Self {
        Self::new(ColumnType::bigint().with_unsigned(), nullable).with_width(21)
    }

    /// DOUBLE
    pub fn double(nullable: bool) -> Self {
        Self::new(ColumnType::double(), nullable).with_width(23)
    }

    /// DOUBLE shown with a fixed number of decimals. [`NOT_FIXED_DECIMALS`]: with as many as the
    /// value has.
    pub fn double_fixed(decimals: u8, nullable: bool) -> Self {
        let mut ty = Self::double(nullable);
        if decimals < NOT_FIXED_DECIMALS {
            ty.col.decimals = decimals;
            ty.col.width = 17 + u32::from(decimals);
        }
        ty
    }

    /// The same type with a length of `chars` characters in its description.
    pub fn with_width(mut self, chars: u32) -> Self {
        self.col.width = chars;
        self
    }

    /// DECIMAL. Precision and scale are limited to 65 and 30.
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
            origin: TextOrigin::Literal,
            item_name: ItemName::default(),
        }
    }

    /// The type of the NULL literal.
    pub fn null() -> Self {
        ExprType {
            col: ColumnType::new(TypeKind::Null),
            nullable: true,
            coercibility: Coercibility::Ignorable,
            origin: TextOrigin::Literal,
            item_name: ItemName::default(),
        }
    }

    /// The type of an unchanged value in the result of MIN or NULLIF: a column's type without the
    /// properties that only a table's columns have.
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

    /// The type of a computed value. A YEAR becomes a number without leading zeros.
    pub fn computed(mut self) -> Self {
        if self.col.kind == TypeKind::Year {
            self.col.width = 4;
        }
        self
    }

    /// The type of a table column that can store such values.
    pub fn column(&self) -> ColumnType {
        let mut col = self.col.clone();
        if col.kind == TypeKind::Year {
            col.width = 0;
        }
        col
    }

    /// The type of such values as a column of a MySQL temporary table.
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

    /// As [`Self::kept`], for the value of a subquery: an integer of ten digits or more becomes
    /// BIGINT.
    pub fn stored_subquery(&self) -> Self {
        let mut ty = self.clone();
        if ty.col.is_integer() && ty.col.kind != TypeKind::Year {
            ty.col.width = ty.max_length() as u32;
            ty.col.kind = TypeKind::BigInt;
        }
        ty.kept()
    }

    /// As [`Self::stored_subquery`], for any computed value in a temporary table of rows: a string
    /// has no fixed length, and one of more than [`MAX_KEPT_CHARS`] is a TEXT or BLOB.
    pub fn stored_value(&self) -> Self {
        let mut ty = self.stored_subquery();
        let (chars, collation) = (self.max_length(), ty.col.collation);
        match ty.col.kind {
            TypeKind::VarChar(_) | TypeKind::VarBinary(_) if chars > MAX_KEPT_CHARS.into() => {
                let size = TextSize::Normal;
                let kind = match collation == CollationId::BINARY {
                    true => TypeKind::Blob(size),
                    false => TypeKind::Text(size),
                };
                ty.col = ColumnType::string(kind, collation);
                ty.col.width = u32::try_from(self.byte_length()).unwrap_or(u32::MAX);
            }
            TypeKind::Char(_) | TypeKind::Binary(_) => ty.col = string_type(chars, collation),
            TypeKind::Text(_) | TypeKind::Blob(_) if chars <= MAX_KEPT_CHARS.into() => {
                ty.col = string_type(chars, collation);
            }
            _ => {}
        }
        ty
    }

    /// The type of a column of a set operation: a string of more than [`MAX_KEPT_CHARS`] is a TEXT
    /// or BLOB, and one of more than 255 has no fixed length.
    pub(crate) fn of_set_operation(mut self) -> Self {
        const MAX_FIXED: u32 = 255;
        let collation = self.col.collation;
        let chars = match self.col.kind {
            TypeKind::Char(n) | TypeKind::Binary(n) if n > MAX_FIXED => n,
            TypeKind::VarChar(n) | TypeKind::VarBinary(n) if n > MAX_KEPT_CHARS => n,
            _ => return self,
        };
        let binary = collation == CollationId::BINARY;
        self.col = ColumnType::string(
            match (chars > MAX_KEPT_CHARS, binary) {
                (true, true) => TypeKind::Blob(TextSize::Normal),
                (true, false) => TypeKind::Text(TextSize::Normal),
                (false, true) => TypeKind::VarBinary(chars),
                (false, false) => TypeKind::VarChar(chars),
            },
            collation,
        );
        if self.col.is_blob() {
            self.col.width = chars;
        }
        self
    }

    /// The class in which values of this type are computed and compared.
    pub fn class(&self) -> Class {
        Class::of(&self.col)
    }

    /// Whether values of the two types are compared without a conversion that might warn: both are
    /// numbers, both strings, or both dates and times.
    pub fn is_alike(&self, other: &ExprType) -> bool {
        match (self.class(), other.class()) {
            (Class::Null, _) => false,
            (a, b) => {
                a == b || a.is_number() && b.is_number() || a.is_temporal() && b.is_temporal()
            }
        }
    }

    /// The collation of these values as strings.
    pub fn collation(&self) -> CollationId {
        self.col.collation
    }

    /// Precision and scale of these values as DECIMAL.
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
            // A hexadecimal literal as a number.
            VarBinary(n) if self.col.zerofill => {
                ((n.saturating_mul(241)).div_ceil(100).clamp(1, 65), 0)
            }
            _ => (65, 30),
        }
    }

    /// The maximum length as MySQL counts it: the display width of a number, the bytes of a binary
    /// string, otherwise characters.
    pub fn max_length(&self) -> u64 {
        use TypeKind::*;
        let own = |n: u64| match self.col.width {
            // For a column of a table, the width is a display width only.
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

    /// The maximum number of characters as text.
    pub fn char_length(&self) -> u64 {
        match self.col.kind {
            TypeKind::Double => 22,
            _ => self.max_length(),
        }
    }

    /// The maximum number of bytes as binary text.
    pub fn byte_length(&self) -> u64 {
        let per_char = match self.class() {
            Class::String => u64::from(self.col.charset().max_len),
            _ => 1,
        };
        self.max_length().saturating_mul(per_char)
    }

    /// The maximum length as text of this collation.
    pub fn length_in(&self, collation: CollationId) -> u64 {
        if collation == CollationId::BINARY {
            self.byte_length()
        } else {
            self.char_length()
        }
    }

    /// Digits after the point; [`NOT_FIXED_DECIMALS`] if the number of digits depends on the value.
    pub fn decimals(&self) -> u8 {
        match self.col.kind {
            TypeKind::Decimal { scale, .. } => scale,
            TypeKind::Float | TypeKind::Double => self.col.decimals,
            // A hexadecimal literal is a number here.
            TypeKind::VarBinary(_) if self.col.zerofill => 0,
            _ if matches!(self.class(), Class::String | Class::Json) => NOT_FIXED_DECIMALS,
            _ => self.col.fsp(),
        }
    }
}

fn frac(fsp: u8) -> u64 {
    if fsp == 0 { 0 } else { u64::from(fsp) + 1 }
}

/// The length of a JSON document in its description, in characters.
const JSON_CHARS: u32 = 0x3FFF_FFFF;

/// The maximum length of a string expression in its description, in bytes (MySQL's
/// `MAX_BLOB_WIDTH`).
const MAX_STRING_BYTES: u64 = 1 << 24;

/// The string type that MySQL chooses for a result column of up to `chars` characters.
pub fn string_type(chars: u64, collation: CollationId) -> ColumnType {
    let per_char = u64::from(collation.known().charset.max_len);
    long_string_type(chars.min(MAX_STRING_BYTES / per_char), collation)
}

/// As [`string_type`], but with the maximum length counted in characters, not bytes. MySQL does so
/// for REPEAT and similar functions.
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

/// The classes of types between which MySQL's arithmetic and comparisons distinguish.
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
    /// The class of a column type.
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

/// The way in which two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmpKind {
    /// As integers, signed or unsigned.
    Int,
    Decimal,
    Double,
    String(CollationId),
    /// As DATETIME. A DATE is taken at midnight, a TIME on the current date.
    DateTime,
    Time,
    /// As JSON documents.
    Json,
}

impl CmpKind {
    /// Whether equality under this comparison can be decided by sort keys, computed for each value
    /// on its own. Not so for a string or a number beside a date: its conversion depends on the
    /// other side.
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
