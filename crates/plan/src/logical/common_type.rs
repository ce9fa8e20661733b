//! The type of values that stand for one another: IF, CASE, COALESCE, GREATEST, the columns of
//! UNION. What MySQL calls aggregating types (`Item::aggregate_type`, `Field::field_type_merge`):
//! kinds merge two by two, then length and digits follow from all.

use nfold_types::collation::CollationId;
use nfold_types::sql_type::NOT_FIXED_DECIMALS;
use nfold_types::{ColumnType, SqlError, TextSize, TypeKind};

use super::collate::merge;
use super::expr::{Class, ExprType};

/// What a kind is to merging. Integers, strings and blobs are in the order in which the larger
/// wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Year,
    Tiny,
    Short,
    Medium,
    Long,
    BigInt,
    Bit,
    Decimal,
    Float,
    Double,
    Date,
    Time,
    Timestamp,
    DateTime,
    Member,
    Fixed,
    Variable,
    Blob,
    MediumBlob,
    LongBlob,
}

impl Kind {
    fn of(ty: &ColumnType) -> Kind {
        match ty.kind {
            TypeKind::Year => Kind::Year,
            TypeKind::TinyInt => Kind::Tiny,
            TypeKind::SmallInt => Kind::Short,
            TypeKind::MediumInt => Kind::Medium,
            TypeKind::Int => Kind::Long,
            TypeKind::BigInt => Kind::BigInt,
            TypeKind::Bit(_) => Kind::Bit,
            TypeKind::Decimal { .. } => Kind::Decimal,
            TypeKind::Float => Kind::Float,
            TypeKind::Double => Kind::Double,
            TypeKind::Date => Kind::Date,
            TypeKind::Time(_) => Kind::Time,
            TypeKind::Timestamp(_) => Kind::Timestamp,
            TypeKind::DateTime(_) => Kind::DateTime,
            TypeKind::Enum(_) | TypeKind::Set(_) => Kind::Member,
            TypeKind::Char(_) | TypeKind::Binary(_) => Kind::Fixed,
            TypeKind::VarChar(_) | TypeKind::VarBinary(_) | TypeKind::Null => Kind::Variable,
            // What a table has is a plain BLOB to MySQL, whatever its size.
            TypeKind::Text(TextSize::Medium) | TypeKind::Blob(TextSize::Medium) if ty.width > 0 => {
                Kind::MediumBlob
            }
            TypeKind::Text(TextSize::Long) | TypeKind::Blob(TextSize::Long) if ty.width > 0 => {
                Kind::LongBlob
            }
            TypeKind::Text(_) | TypeKind::Blob(_) => Kind::Blob,
        }
    }

    fn is_integer(self) -> bool {
        self <= Kind::BigInt
    }

    fn is_number(self) -> bool {
        self <= Kind::Double
    }

    fn is_temporal(self) -> bool {
        (Kind::Date..=Kind::DateTime).contains(&self)
    }

    fn merged(self, other: Kind) -> Kind {
        let (low, high) = (self.min(other), self.max(other));
        match (low, high) {
            (Kind::Member, Kind::Member) => Kind::Variable,
            _ if low == high => low,
            // MySQL's table has it one way and the other.
            _ if self == Kind::BigInt && other == Kind::Float => Kind::Double,
            (Kind::Year, Kind::Tiny) => Kind::Short,
            (_, Kind::Bit) => Kind::BigInt,
            (Kind::Long | Kind::Bit | Kind::Decimal, Kind::Float) => Kind::Double,
            _ if high.is_number() => high,
            _ if low.is_temporal() && high.is_temporal() => Kind::DateTime,
            // A string takes in everything below it.
            _ if high >= Kind::Fixed => high,
            _ => Kind::Variable,
        }
    }

    /// The integer type that holds the values of this one with and without sign.
    fn bumped(self) -> Kind {
        match self {
            Kind::Tiny => Kind::Short,
            Kind::Short => Kind::Medium,
            Kind::Medium => Kind::Long,
            Kind::Long => Kind::BigInt,
            Kind::BigInt => Kind::Decimal,
            other => other,
        }
    }
}

fn unsigned(ty: &ExprType) -> bool {
    ty.col.unsigned || matches!(ty.col.kind, TypeKind::Bit(_) | TypeKind::Year)
}

/// The common type of values that stand for one another (CASE, IF, COALESCE, UNION columns).
///
/// # Errors
/// 1267, 1270 or 1271 where they are strings whose collations do not go together.
pub fn common_type(
    types: &[&ExprType],
    connection: CollationId,
    operation: &str,
) -> Result<ExprType, SqlError> {
    let nullable = types.iter().any(|t| t.nullable);
    let real: Vec<&ExprType> = types
        .iter()
        .copied()
        .filter(|t| t.class() != Class::Null)
        .collect();
    let Some(first) = real.first() else {
        return Ok(ExprType::null());
    };
    let mut kind = Kind::of(&first.col);
    for t in &real[1..] {
        kind = kind.merged(Kind::of(&t.col));
    }
    let mixed = real.iter().any(|t| unsigned(t) != unsigned(first));
    let widest = |t: &&ExprType| {
        unsigned(t) && (Kind::of(&t.col) == kind || matches!(t.col.kind, TypeKind::Bit(_)))
    };
    if mixed && kind.is_integer() && real.iter().any(widest) {
        kind = kind.bumped();
    }
    let sign = !mixed && unsigned(first);
    Ok(match kind {
        _ if kind.is_integer() => integer(kind, &real, sign, nullable),
        Kind::Bit => {
            let bits = real.iter().map(|t| t.max_length()).max().unwrap_or(1);
            ExprType::new(ColumnType::new(TypeKind::Bit(bits as u8)), nullable)
        }
        Kind::Decimal => decimal(&real, nullable),
        Kind::Float | Kind::Double => float(kind, &real, nullable),
        _ if kind.is_temporal() => temporal(kind, &real, nullable),
        _ => {
            let merged = merge(real.iter().copied(), connection, operation)?;
            ExprType {
                col: string(kind, &real, merged.collation),
                nullable,
                coercibility: merged.coercibility,
            }
        }
    })
}

fn integer(kind: Kind, real: &[&ExprType], unsigned: bool, nullable: bool) -> ExprType {
    let mut col = ColumnType::new(match kind {
        Kind::Year => return ExprType::new(ColumnType::new(TypeKind::Year), nullable),
        Kind::Tiny => TypeKind::TinyInt,
        Kind::Short => TypeKind::SmallInt,
        Kind::Medium => TypeKind::MediumInt,
        Kind::Long => TypeKind::Int,
        _ => TypeKind::BigInt,
    });
    col.unsigned = unsigned;
    col.width = real.iter().map(|t| t.max_length()).max().unwrap_or(0) as u32;
    ExprType::new(col, nullable)
}

fn decimal(real: &[&ExprType], nullable: bool) -> ExprType {
    let shapes = || real.iter().map(|t| t.decimal_shape());
    let scale = shapes().map(|(_, s)| s).max().unwrap_or(0);
    let whole = shapes().map(|(p, s)| p - s.min(p)).max().unwrap_or(1);
    ExprType::decimal(whole + scale, scale, nullable)
}

/// FLOAT or DOUBLE: with fixed digits where all have them, which are then the most of all.
pub(crate) fn float_shape(real: &[&ExprType]) -> (u8, u32) {
    let decimals = real.iter().map(|t| t.decimals()).max().unwrap_or(0);
    if decimals >= NOT_FIXED_DECIMALS {
        return (NOT_FIXED_DECIMALS, 23);
    }
    let whole = real
        .iter()
        .map(|t| (t.max_length() as u32).saturating_sub(u32::from(t.decimals())))
        .max()
        .unwrap_or(0);
    (decimals, whole + u32::from(decimals))
}

fn float(kind: Kind, real: &[&ExprType], nullable: bool) -> ExprType {
    let mut ty = ExprType::double(nullable);
    if kind == Kind::Float {
        ty.col.kind = TypeKind::Float;
    }
    (ty.col.decimals, ty.col.width) = float_shape(real);
    ty
}

fn temporal(kind: Kind, real: &[&ExprType], nullable: bool) -> ExprType {
    let fsp = real.iter().map(|t| t.col.fsp()).max().unwrap_or(0);
    let kind = match kind {
        Kind::Date => TypeKind::Date,
        Kind::Time => TypeKind::Time(fsp),
        Kind::Timestamp => TypeKind::Timestamp(fsp),
        _ => TypeKind::DateTime(fsp),
    };
    ExprType::new(ColumnType::new(kind), nullable)
}

fn string(kind: Kind, real: &[&ExprType], collation: CollationId) -> ColumnType {
    let chars = real
        .iter()
        .map(|t| t.length_in(collation))
        .max()
        .unwrap_or(0);
    let chars = chars.min(u64::from(u32::MAX)) as u32;
    if let ([only], Kind::Member) = (real, kind) {
        return only.col.clone();
    }
    let binary = collation == CollationId::BINARY;
    let blob = |size: TextSize| {
        if binary {
            TypeKind::Blob(size)
        } else {
            TypeKind::Text(size)
        }
    };
    let mut col = ColumnType::string(
        match (kind, binary) {
            (Kind::Fixed, true) => TypeKind::Binary(chars),
            (Kind::Fixed, false) => TypeKind::Char(chars),
            (Kind::Blob, _) => blob(TextSize::Normal),
            (Kind::MediumBlob, _) => blob(TextSize::Medium),
            (Kind::LongBlob, _) => blob(TextSize::Long),
            (_, true) => TypeKind::VarBinary(chars),
            (_, false) => TypeKind::VarChar(chars),
        },
        collation,
    );
    if col.is_blob() {
        col.width = chars.max(1);
    }
    col
}
