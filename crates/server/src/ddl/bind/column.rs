//! Columns: types with their limits, NOT NULL, defaults.

use std::collections::HashMap;
use std::fmt::Display;

use nfold_catalog::{ColumnDef, ColumnDefault};
use nfold_sql::ast::{self, DefaultValue, Expr, Literal, TypeSpec, UnaryOp};
use nfold_sql::parser::Deprecated;
use nfold_types::charset::Charset;
use nfold_types::collation::CollationId;
use nfold_types::convert::{StoreCx, StoreMode, number, store_value};
use nfold_types::sql_type::NOT_FIXED_DECIMALS;
use nfold_types::temporal::DateFlags;
use nfold_types::{ColumnType, ErrorCode, SqlError, TextSize, TypeKind, Value, charset};

use super::{DdlCx, bin_collation, check_column_name, comment, error, named_collation};

/// Longest VARCHAR, VARBINARY in bytes.
const MAX_VAR_BYTES: u64 = 65535;

/// Binds a column of a table whose default collation is `collation`.
pub fn bind(
    column: &ast::ColumnDef,
    collation: CollationId,
    cx: &mut DdlCx<'_>,
) -> Result<ColumnDef, SqlError> {
    let name = column.name.as_str();
    check_column_name(name)?;
    if column.generated.is_some() {
        return Err(SqlError::not_supported("generated columns"));
    }
    if column.invisible {
        return Err(SqlError::not_supported("invisible columns"));
    }
    let ty = bind_type(name, &column.ty, collation, cx)?;
    let nullable = column.not_null != Some(true) && !column.auto_increment;
    if column.auto_increment
        && !(ty.is_integer() || matches!(ty.kind, TypeKind::Float | TypeKind::Double))
    {
        return Err(error(ErrorCode::ER_WRONG_FIELD_SPEC, &[&name]));
    }
    if column.auto_increment && column.default.is_some() {
        return Err(error(ErrorCode::ER_INVALID_DEFAULT, &[&name]));
    }
    let default = bind_default(name, column.default.as_ref(), &ty, nullable, cx)?;
    if let Some(fsp) = column.on_update_now
        && !now_fits(&ty, fsp)
    {
        return Err(error(ErrorCode::ER_INVALID_ON_UPDATE, &[&name]));
    }
    Ok(ColumnDef {
        name: name.into(),
        nullable,
        default,
        on_update_now: column.on_update_now,
        auto_increment: column.auto_increment,
        comment: comment(column.comment.as_ref()),
        own_charset: column.ty.charset.is_some() || column.ty.collation.is_some(),
        ty,
    })
}

fn now_fits(ty: &ColumnType, fsp: u8) -> bool {
    matches!(ty.kind, TypeKind::DateTime(f) | TypeKind::Timestamp(f) if f == fsp)
}

/// Binds a type as written in a column definition.
pub fn bind_type(
    name: &str,
    spec: &TypeSpec,
    table: CollationId,
    cx: &mut DdlCx<'_>,
) -> Result<ColumnType, SqlError> {
    use ast::TypeKind as K;
    let mut ty = match spec.kind {
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt | K::Bool | K::Serial => {
            integer(name, spec)?
        }
        K::Decimal => decimal(name, spec)?,
        K::Float | K::Double => float(name, spec)?,
        K::Bit => match spec.length.unwrap_or(1) {
            0 => return Err(error(ErrorCode::ER_INVALID_FIELD_SIZE, &[&name])),
            n @ 1..=64 => ColumnType::new(TypeKind::Bit(n as u8)),
            _ => return Err(error(ErrorCode::ER_TOO_BIG_DISPLAYWIDTH, &[&name, &64])),
        },
        K::Year => {
            match spec.length {
                None | Some(4) => {}
                Some(_) => return Err(error(ErrorCode::ER_INVALID_YEAR_COLUMN_LENGTH, &[])),
            }
            ColumnType::new(TypeKind::Year)
        }
        K::Date => ColumnType::new(TypeKind::Date),
        K::Time => ColumnType::new(TypeKind::Time(fsp(name, spec)?)),
        K::DateTime => ColumnType::new(TypeKind::DateTime(fsp(name, spec)?)),
        K::Timestamp => ColumnType::new(TypeKind::Timestamp(fsp(name, spec)?)),
        K::Json => ColumnType::json(),
        K::Geometry => return Err(SqlError::not_supported("spatial types")),
        K::Vector => return Err(SqlError::not_supported("the VECTOR type")),
        K::Signed | K::Unsigned => return Err(error(ErrorCode::ER_WRONG_FIELD_SPEC, &[&name])),
        _ => return string(name, spec, table, cx),
    };
    if spec.unsigned || spec.zerofill {
        if !ty.is_numeric() {
            return Err(error(ErrorCode::ER_WRONG_FIELD_SPEC, &[&name]));
        }
        ty.unsigned = true;
        ty.zerofill = spec.zerofill;
    }
    Ok(ty)
}

/// What is deprecated of a type that was not written.
pub(super) fn warn_of_type(ty: &ColumnType, cx: &mut DdlCx<'_>) {
    let real = matches!(ty.kind, TypeKind::Float | TypeKind::Double);
    if ty.unsigned && (real || matches!(ty.kind, TypeKind::Decimal { .. })) {
        deprecated(cx, Deprecated::UnsignedReal);
    }
    if real && ty.decimals < NOT_FIXED_DECIMALS {
        deprecated(cx, Deprecated::RealDigits);
    }
    if ty.zerofill {
        deprecated(cx, Deprecated::Zerofill);
    }
}

fn deprecated(cx: &mut DdlCx<'_>, what: Deprecated) {
    cx.warnings
        .push_error(nfold_types::Level::Warning, &what.warning());
}

fn integer(name: &str, spec: &TypeSpec) -> Result<ColumnType, SqlError> {
    use ast::TypeKind as K;
    let kind = match spec.kind {
        K::TinyInt | K::Bool => TypeKind::TinyInt,
        K::SmallInt => TypeKind::SmallInt,
        K::MediumInt => TypeKind::MediumInt,
        K::Int => TypeKind::Int,
        _ => TypeKind::BigInt,
    };
    let mut ty = ColumnType::new(kind);
    let width = if spec.kind == K::Bool {
        Some(1)
    } else {
        spec.length
    };
    if let Some(width) = width {
        if width > 255 {
            return Err(error(ErrorCode::ER_TOO_BIG_DISPLAYWIDTH, &[&name, &255]));
        }
        let boolean = ty.kind == TypeKind::TinyInt && width == 1;
        if boolean || spec.zerofill {
            ty.width = width as u32;
        }
    }
    Ok(ty)
}

fn decimal(name: &str, spec: &TypeSpec) -> Result<ColumnType, SqlError> {
    let precision = match spec.length {
        None | Some(0) => 10,
        Some(n @ 1..=65) => n as u8,
        Some(n) => return Err(error(ErrorCode::ER_TOO_BIG_PRECISION, &[&n, &name, &65])),
    };
    let scale = spec.decimals.unwrap_or(0);
    if scale > 30 {
        return Err(error(ErrorCode::ER_TOO_BIG_SCALE, &[&scale, &name, &30]));
    }
    if scale > u32::from(precision) {
        return Err(error(ErrorCode::ER_M_BIGGER_THAN_D, &[&name]));
    }
    Ok(ColumnType::decimal(precision, scale as u8))
}

fn float(name: &str, spec: &TypeSpec) -> Result<ColumnType, SqlError> {
    let single = spec.kind == ast::TypeKind::Float;
    let mut kind = if single {
        TypeKind::Float
    } else {
        TypeKind::Double
    };
    let (Some(length), decimals) = (spec.length, spec.decimals) else {
        return Ok(ColumnType::new(kind));
    };
    let Some(decimals) = decimals else {
        if length > 53 {
            return Err(error(ErrorCode::ER_WRONG_FIELD_SPEC, &[&name]));
        }
        if single && length > 24 {
            kind = TypeKind::Double;
        }
        return Ok(ColumnType::new(kind));
    };
    if length > 255 {
        return Err(error(ErrorCode::ER_TOO_BIG_DISPLAYWIDTH, &[&name, &255]));
    }
    if decimals > 30 {
        return Err(error(ErrorCode::ER_TOO_BIG_SCALE, &[&decimals, &name, &30]));
    }
    if u64::from(decimals) > length {
        return Err(error(ErrorCode::ER_M_BIGGER_THAN_D, &[&name]));
    }
    Ok(ColumnType {
        width: length as u32,
        decimals: decimals as u8,
        ..ColumnType::new(kind)
    })
}

fn fsp(name: &str, spec: &TypeSpec) -> Result<u8, SqlError> {
    match spec.length.unwrap_or(0) {
        n @ 0..=6 => Ok(n as u8),
        n => Err(error(ErrorCode::ER_TOO_BIG_PRECISION, &[&n, &name, &6])),
    }
}

fn string(
    name: &str,
    spec: &TypeSpec,
    table: CollationId,
    cx: &mut DdlCx<'_>,
) -> Result<ColumnType, SqlError> {
    use ast::TypeKind as K;
    if spec.unsigned || spec.zerofill {
        return Err(error(ErrorCode::ER_WRONG_FIELD_SPEC, &[&name]));
    }
    let binary_kind = matches!(
        spec.kind,
        K::Binary | K::VarBinary | K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob
    );
    let mut collation = match named_collation(spec.charset.as_deref(), spec.collation.as_deref())? {
        _ if binary_kind => CollationId::BINARY,
        Some(collation) => collation,
        None => table,
    };
    if spec.binary && spec.collation.is_none() && !binary_kind {
        collation = bin_collation(collation.known().charset);
    }
    let binary = collation == CollationId::BINARY;
    let per_char = u64::from(collation.known().charset.max_len);
    let kind = match spec.kind {
        K::Char | K::Binary => {
            let n = spec.length.unwrap_or(1);
            if n > 255 {
                return Err(error(ErrorCode::ER_TOO_BIG_FIELDLENGTH, &[&name, &255]));
            }
            if binary {
                TypeKind::Binary(n as u32)
            } else {
                TypeKind::Char(n as u32)
            }
        }
        K::VarChar | K::VarBinary => {
            let n = spec.length.unwrap_or(1);
            if n * per_char > MAX_VAR_BYTES {
                return Err(error(
                    ErrorCode::ER_TOO_BIG_FIELDLENGTH,
                    &[&name, &(MAX_VAR_BYTES / per_char)],
                ));
            }
            if binary {
                TypeKind::VarBinary(n as u32)
            } else {
                TypeKind::VarChar(n as u32)
            }
        }
        K::Enum | K::Set => return members(name, spec, collation, cx),
        _ => {
            let size = text_size(name, spec, per_char)?;
            if binary {
                TypeKind::Blob(size)
            } else {
                TypeKind::Text(size)
            }
        }
    };
    Ok(ColumnType::string(kind, collation))
}

fn text_size(name: &str, spec: &TypeSpec, per_char: u64) -> Result<TextSize, SqlError> {
    use ast::TypeKind as K;
    Ok(match (spec.kind, spec.length) {
        (K::TinyText | K::TinyBlob, _) => TextSize::Tiny,
        (K::MediumText | K::MediumBlob, _) => TextSize::Medium,
        (K::LongText | K::LongBlob, _) => TextSize::Long,
        (_, None | Some(0)) => TextSize::Normal,
        (_, Some(n)) => match n.saturating_mul(per_char) {
            0..=0xff => TextSize::Tiny,
            0x100..=0xffff => TextSize::Normal,
            0x1_0000..=0xff_ffff => TextSize::Medium,
            0x100_0000..=0xffff_ffff => TextSize::Long,
            _ => {
                return Err(error(
                    ErrorCode::ER_TOO_BIG_DISPLAYWIDTH,
                    &[&name, &u32::MAX],
                ));
            }
        },
    })
}

/// The name of a member without spaces at its end, in UTF-8. Characters that the column's set lacks
/// are question marks.
fn member_name(member: &[u8], from: &Charset, to: &Charset) -> String {
    let (mut stored, mut text) = (Vec::new(), Vec::new());
    if to.is_binary() || to.is_utf8() {
        charset::convert(from, &charset::UTF8MB4, member, &mut text);
    } else {
        charset::convert(from, to, member, &mut stored);
        charset::convert(to, &charset::UTF8MB4, &stored, &mut text);
    }
    String::from_utf8_lossy(&text)
        .trim_end_matches(' ')
        .to_owned()
}

fn members(
    name: &str,
    spec: &TypeSpec,
    collation: CollationId,
    cx: &mut DdlCx<'_>,
) -> Result<ColumnType, SqlError> {
    let set = spec.kind == ast::TypeKind::Set;
    let known = collation.known();
    let from = cx.connection.known().charset;
    let mut all: Vec<Box<str>> = Vec::with_capacity(spec.members.len());
    // Sort keys are equal where members are.
    let mut places = HashMap::with_capacity(spec.members.len());
    for member in &spec.members {
        let text = member_name(member, from, known.charset);
        if set && text.contains(',') {
            return Err(error(
                ErrorCode::ER_ILLEGAL_VALUE_FOR_TYPE,
                &[&"set", &text],
            ));
        }
        let (mut stored, mut key) = (Vec::new(), Vec::new());
        charset::convert(
            &charset::UTF8MB4,
            known.charset,
            text.as_bytes(),
            &mut stored,
        );
        known.sort_key(&stored, &mut key);
        if let Some(first) = places.insert(key, all.len()) {
            let word = if set { "SET" } else { "ENUM" };
            return Err(error(
                ErrorCode::ER_DUPLICATED_VALUE_IN_TYPE,
                &[&name, &all[first], &word],
            ));
        }
        all.push(text.into());
    }
    if all.len() > if set { 64 } else { 65535 } {
        return Err(error(ErrorCode::ER_TOO_BIG_SET, &[&name]));
    }
    let kind = if set {
        TypeKind::Set(all.into())
    } else {
        TypeKind::Enum(all.into())
    };
    Ok(ColumnType::string(kind, collation))
}

/// Binds a DEFAULT clause.
pub fn bind_default(
    name: &str,
    default: Option<&DefaultValue>,
    ty: &ColumnType,
    nullable: bool,
    cx: &mut DdlCx<'_>,
) -> Result<ColumnDefault, SqlError> {
    let invalid = || error(ErrorCode::ER_INVALID_DEFAULT, &[&name]);
    match default {
        None if nullable => Ok(ColumnDefault::Null),
        None => Ok(ColumnDefault::None),
        Some(DefaultValue::Now(fsp)) if now_fits(ty, *fsp) => {
            Ok(ColumnDefault::CurrentTimestamp(*fsp))
        }
        Some(DefaultValue::Now(_)) => Err(invalid()),
        Some(DefaultValue::Expr(_)) => {
            Err(SqlError::not_supported("expressions as default values"))
        }
        Some(DefaultValue::Literal(literal)) => {
            let value = literal_value(literal, cx.connection, ty.collation)?.ok_or_else(invalid)?;
            if value.is_null() {
                return if nullable {
                    Ok(ColumnDefault::Null)
                } else {
                    Err(invalid())
                };
            }
            let empty = matches!(&value.value, Value::Bytes(text) if text.is_empty());
            if ty.is_blob() && empty && !cx.mode.strict {
                cx.warnings
                    .warn(ErrorCode::ER_BLOB_CANT_HAVE_DEFAULT, &[&name]);
                return Ok(match nullable {
                    true => ColumnDefault::Null,
                    false => ColumnDefault::None,
                });
            }
            if ty.is_blob() || ty.is_json() {
                return Err(error(ErrorCode::ER_BLOB_CANT_HAVE_DEFAULT, &[&name]));
            }
            stored_default(name, &value, ty, cx)
        }
    }
}

/// The value of DEFAULT as the column stores it. Without strict mode a zero date that the mode
/// forbids is taken, with warning 1264.
///
/// # Errors
/// 1067.
fn stored_default(
    name: &str,
    value: &LiteralValue,
    ty: &ColumnType,
    cx: &mut DdlCx<'_>,
) -> Result<ColumnDefault, SqlError> {
    let any_zero = DateFlags {
        no_zero_in_date: false,
        no_zero_date: false,
        ..cx.mode.dates
    };
    let mut store = |dates: DateFlags| {
        let mode = StoreMode {
            strict: true,
            ignore: false,
            dates,
            ..cx.mode.clone()
        };
        let mut store = StoreCx {
            mode: &mode,
            column: name,
            row: 1,
            warnings: cx.warnings,
        };
        let from = value.string.unwrap_or(CollationId::BINARY);
        store_value(value.value.as_ref(), from, ty, &mut store)
    };
    if let Ok(stored) = store(cx.mode.dates) {
        return Ok(ColumnDefault::Literal(stored));
    }
    let invalid = || error(ErrorCode::ER_INVALID_DEFAULT, &[&name]);
    if cx.mode.strict {
        return Err(invalid());
    }
    let stored = store(any_zero).map_err(|_| invalid())?;
    let code = ErrorCode::ER_WARN_DATA_OUT_OF_RANGE;
    cx.warnings.warn(code, &[&name, &1]);
    Ok(ColumnDefault::Literal(stored))
}

/// A literal before it is stored into a column.
pub struct LiteralValue {
    value: Value,
    /// The text's collation, for strings.
    string: Option<CollationId>,
}

impl LiteralValue {
    fn is_null(&self) -> bool {
        self.value.is_null()
    }
}

/// The value of a literal, possibly signed; `None` if it is none.
fn literal_value(
    e: &Expr,
    connection: CollationId,
    column: CollationId,
) -> Result<Option<LiteralValue>, SqlError> {
    let plain = |value: Value| {
        Ok(Some(LiteralValue {
            value,
            string: None,
        }))
    };
    match e {
        Expr::Literal(Literal::Null) => plain(Value::Null),
        Expr::Literal(Literal::Bool(b)) => plain(Value::Int((*b).into())),
        Expr::Literal(Literal::Int(n)) => {
            plain(i64::try_from(*n).map_or(Value::UInt(*n), Value::Int))
        }
        Expr::Literal(Literal::Decimal(text)) => {
            plain(Value::Decimal(number::parse_decimal(text.as_bytes()).value))
        }
        Expr::Literal(Literal::Float(text)) => Ok(text.parse().ok().map(|v: f64| LiteralValue {
            value: Value::Double(v),
            string: None,
        })),
        Expr::Literal(Literal::String(s)) => {
            let collation = match &s.charset {
                Some(name) => named_collation(Some(name), None)?.unwrap_or(connection),
                None => connection,
            };
            Ok(Some(LiteralValue {
                value: Value::Bytes(s.bytes.clone()),
                string: Some(collation),
            }))
        }
        Expr::Literal(Literal::Hex(bytes)) => Ok(Some(LiteralValue {
            value: Value::Bytes(bytes.clone()),
            string: Some(column),
        })),
        Expr::Literal(Literal::Bit(bytes)) => {
            let number = bytes
                .iter()
                .take(8)
                .fold(0u64, |n, b| n << 8 | u64::from(*b));
            plain(Value::UInt(number))
        }
        Expr::Literal(Literal::Temporal { text, .. }) => Ok(Some(LiteralValue {
            value: Value::Bytes(text.clone()),
            string: Some(connection),
        })),
        Expr::Unary {
            op: UnaryOp::Plus,
            expr,
        } => literal_value(expr, connection, column),
        Expr::Unary {
            op: UnaryOp::Minus,
            expr,
        } => {
            let Some(inner) = literal_value(expr, connection, column)? else {
                return Ok(None);
            };
            let value = match inner.value {
                Value::Int(n) => Value::Int(-n),
                Value::UInt(n) if n == 1 << 63 => Value::Int(i64::MIN),
                Value::Decimal(d) => Value::Decimal(d.neg()),
                Value::Double(d) => Value::Double(-d),
                _ => return Ok(None),
            };
            plain(value)
        }
        _ => Ok(None),
    }
}

/// Error 1118 unless the columns fit a row: 65,535 bytes, long ones not counted.
pub fn check_row_size(columns: &[ColumnDef]) -> Result<(), SqlError> {
    let bytes = |c: &ColumnDef| match &c.ty.kind {
        TypeKind::Text(_) | TypeKind::Blob(_) | TypeKind::Json => 12,
        TypeKind::VarChar(_) | TypeKind::VarBinary(_) => {
            c.ty.max_bytes() + if c.ty.max_bytes() > 255 { 2 } else { 1 }
        }
        _ => c.ty.max_bytes(),
    };
    let nullable = columns.iter().filter(|c| c.nullable).count() as u64;
    let total: u64 = columns.iter().map(bytes).sum::<u64>() + nullable.div_ceil(8);
    let limit: &dyn Display = &65535;
    if total > 65535 {
        Err(error(ErrorCode::ER_TOO_BIG_ROWSIZE, &[limit]))
    } else {
        Ok(())
    }
}
