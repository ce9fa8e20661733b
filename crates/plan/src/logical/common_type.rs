//! The common type of alternatives: the results of IF, CASE, COALESCE, GREATEST, and the columns of
//! a UNION. MySQL calls it aggregating types (`Item::aggregate_type`, `Field::field_type_merge`):
//! types are merged pairwise, then length and decimals follow from all of them.

use nfold_types::collation::CollationId;
use nfold_types::sql_type::NOT_FIXED_DECIMALS;
use nfold_types::{ColumnType, SqlError, TextSize, TypeKind};

use super::collate::merge;
use super::expr::{Class, ExprType, TextOrigin};

/// The classes of types that are merged. Of two integers, strings or blobs, the larger one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MergeClass {
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

impl MergeClass {
    fn of(ty: &ColumnType) -> MergeClass {
        match ty.kind {
            TypeKind::Year => MergeClass::Year,
            TypeKind::TinyInt => MergeClass::Tiny,
            TypeKind::SmallInt => MergeClass::Short,
            TypeKind::MediumInt => MergeClass::Medium,
            TypeKind::Int => MergeClass::Long,
            TypeKind::BigInt => MergeClass::BigInt,
            TypeKind::Bit(_) => MergeClass::Bit,
            TypeKind::Decimal { .. } => MergeClass::Decimal,
            TypeKind::Float => MergeClass::Float,
            TypeKind::Double => MergeClass::Double,
            TypeKind::Date => MergeClass::Date,
            TypeKind::Time(_) => MergeClass::Time,
            TypeKind::Timestamp(_) => MergeClass::Timestamp,
            TypeKind::DateTime(_) => MergeClass::DateTime,
            TypeKind::Enum(_) | TypeKind::Set(_) => MergeClass::Member,
            TypeKind::Char(_) | TypeKind::Binary(_) => MergeClass::Fixed,
            TypeKind::VarChar(_) | TypeKind::VarBinary(_) | TypeKind::Null => MergeClass::Variable,
            // MySQL takes a column MEDIUMTEXT or MEDIUMBLOB for a plain BLOB here.
            TypeKind::Text(TextSize::Medium) | TypeKind::Blob(TextSize::Medium) if ty.width > 0 => {
                MergeClass::MediumBlob
            }
            TypeKind::Text(TextSize::Long) | TypeKind::Blob(TextSize::Long) if ty.width > 0 => {
                MergeClass::LongBlob
            }
            TypeKind::Text(_) | TypeKind::Blob(_) => MergeClass::Blob,
            // Beside any other type, JSON counts as its text.
            TypeKind::Json => MergeClass::LongBlob,
        }
    }

    fn is_integer(self) -> bool {
        self <= MergeClass::BigInt
    }

    fn is_number(self) -> bool {
        self <= MergeClass::Double
    }

    fn is_temporal(self) -> bool {
        (MergeClass::Date..=MergeClass::DateTime).contains(&self)
    }

    fn merged(self, other: MergeClass) -> MergeClass {
        let (low, high) = (self.min(other), self.max(other));
        match (low, high) {
            (MergeClass::Member, MergeClass::Member) => MergeClass::Variable,
            _ if low == high => low,
            // MySQL's merge table is not symmetric here.
            _ if self == MergeClass::BigInt && other == MergeClass::Float => MergeClass::Double,
            (MergeClass::Year, MergeClass::Tiny) => MergeClass::Short,
            (_, MergeClass::Bit) => MergeClass::BigInt,
            (MergeClass::Long | MergeClass::Bit | MergeClass::Decimal, MergeClass::Float) => {
                MergeClass::Double
            }
            _ if high.is_number() => high,
            _ if low.is_temporal() && high.is_temporal() => MergeClass::DateTime,
            // A string type absorbs all types below it.
            _ if high >= MergeClass::Fixed => high,
            _ => MergeClass::Variable,
        }
    }

    /// The integer type that holds the signed and the unsigned values of this one.
    fn bumped(self) -> MergeClass {
        match self {
            MergeClass::Tiny => MergeClass::Short,
            MergeClass::Short => MergeClass::Medium,
            MergeClass::Medium => MergeClass::Long,
            MergeClass::Long => MergeClass::BigInt,
            MergeClass::BigInt => MergeClass::Decimal,
            other => other,
        }
    }
}

fn unsigned(ty: &ExprType) -> bool {
    ty.col.unsigned || matches!(ty.col.kind, TypeKind::Bit(_) | TypeKind::Year)
}

/// The common type of alternatives (CASE, IF, COALESCE, UNION columns).
///
/// # Errors
/// 1267, 1270 or 1271 if they are strings and no collation wins.
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
    if real.iter().all(|t| t.class() == Class::Json) {
        return Ok(ExprType::json(nullable));
    }
    let mut kind = MergeClass::of(&first.col);
    for t in &real[1..] {
        kind = kind.merged(MergeClass::of(&t.col));
    }
    let mixed = real.iter().any(|t| unsigned(t) != unsigned(first));
    let widest = |t: &&ExprType| {
        unsigned(t) && (MergeClass::of(&t.col) == kind || matches!(t.col.kind, TypeKind::Bit(_)))
    };
    if mixed && kind.is_integer() && real.iter().any(widest) {
        kind = kind.bumped();
    }
    let sign = !mixed && unsigned(first);
    Ok(match kind {
        _ if kind.is_integer() => integer(kind, &real, sign, nullable),
        MergeClass::Bit => {
            let bits = real.iter().map(|t| t.max_length()).max().unwrap_or(1);
            ExprType::new(ColumnType::new(TypeKind::Bit(bits as u8)), nullable)
        }
        MergeClass::Decimal => decimal(&real, nullable),
        MergeClass::Float | MergeClass::Double => float(kind, &real, nullable),
        _ if kind.is_temporal() => temporal(kind, &real, nullable),
        _ => {
            let merged = merge(real.iter().copied(), connection, operation)?;
            ExprType {
                col: string(kind, &real, merged.collation),
                nullable,
                coercibility: merged.coercibility,
                origin: common_origin(&real),
                item_name: Default::default(),
            }
        }
    })
}

/// The origin of the text of one of several alternatives.
fn common_origin(real: &[&ExprType]) -> TextOrigin {
    let texts = real.iter().filter(|t| t.class() == Class::String);
    let mut origins = texts.map(|t| t.origin);
    let first = origins.next().unwrap_or(TextOrigin::Literal);
    match origins.all(|origin| origin == first) {
        true => first,
        false => TextOrigin::Column,
    }
}

fn integer(kind: MergeClass, real: &[&ExprType], unsigned: bool, nullable: bool) -> ExprType {
    let mut col = ColumnType::new(match kind {
        MergeClass::Year => return ExprType::new(ColumnType::new(TypeKind::Year), nullable),
        MergeClass::Tiny => TypeKind::TinyInt,
        MergeClass::Short => TypeKind::SmallInt,
        MergeClass::Medium => TypeKind::MediumInt,
        MergeClass::Long => TypeKind::Int,
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

/// Decimals and width of a common FLOAT or DOUBLE. The decimals are fixed only if those of all
/// types are; then the largest number is taken.
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

fn float(kind: MergeClass, real: &[&ExprType], nullable: bool) -> ExprType {
    let mut ty = ExprType::double(nullable);
    if kind == MergeClass::Float {
        ty.col.kind = TypeKind::Float;
    }
    (ty.col.decimals, ty.col.width) = float_shape(real);
    ty
}

fn temporal(kind: MergeClass, real: &[&ExprType], nullable: bool) -> ExprType {
    let fsp = real.iter().map(|t| t.col.fsp()).max().unwrap_or(0);
    let kind = match kind {
        MergeClass::Date => TypeKind::Date,
        MergeClass::Time => TypeKind::Time(fsp),
        MergeClass::Timestamp => TypeKind::Timestamp(fsp),
        _ => TypeKind::DateTime(fsp),
    };
    ExprType::new(ColumnType::new(kind), nullable)
}

fn string(kind: MergeClass, real: &[&ExprType], collation: CollationId) -> ColumnType {
    let chars = real
        .iter()
        .map(|t| t.length_in(collation))
        .max()
        .unwrap_or(0);
    let chars = chars.min(u64::from(u32::MAX)) as u32;
    if let ([only], MergeClass::Member) = (real, kind) {
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
            (MergeClass::Fixed, true) => TypeKind::Binary(chars),
            (MergeClass::Fixed, false) => TypeKind::Char(chars),
            (MergeClass::Blob, _) => blob(TextSize::Normal),
            (MergeClass::MediumBlob, _) => blob(TextSize::Medium),
            (MergeClass::LongBlob, _) => blob(TextSize::Long),
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
