//! Types as they are written in column definitions, with MySQL's limits.
//!
//! Source: MySQL manual, "Data Types".

use std::collections::HashMap;
use std::fmt::Display;

use nfold_sql::ast::{self, TypeSpec};
use nfold_types::collation::CollationId;
use nfold_types::{
    Charset, Collation, ColumnType, ErrorCode, SqlError, TextSize, TypeKind, charset,
};

/// The maximum length of VARCHAR and VARBINARY, in bytes.
const MAX_VAR_BYTES: u64 = 65535;

fn error(code: ErrorCode, args: &[&dyn Display]) -> SqlError {
    SqlError::new(code, args)
}

/// Converts the type of a column definition. `table` is the default collation of string columns,
/// `connection` the collation in which the members of ENUM and SET are written.
///
/// # Errors
/// MySQL's errors for types beyond their limits; 1235 for unsupported types.
pub fn column_type(
    name: &str,
    spec: &TypeSpec,
    table: CollationId,
    connection: CollationId,
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
        _ => return string(name, spec, table, connection),
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
    if scale > u32::from(precision) || spec.length == Some(0) && scale > 0 {
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
    connection: CollationId,
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
    if spec.length.is_some_and(|n| n > u64::from(u32::MAX)) {
        let code = ErrorCode::ER_TOO_BIG_DISPLAYWIDTH;
        return Err(error(code, &[&name, &u32::MAX]));
    }
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
        K::Enum | K::Set => return members(name, spec, collation, connection),
        _ => {
            let size = text_size(spec, per_char);
            if binary {
                TypeKind::Blob(size)
            } else {
                TypeKind::Text(size)
            }
        }
    };
    Ok(ColumnType::string(kind, collation))
}

fn text_size(spec: &TypeSpec, per_char: u64) -> TextSize {
    use ast::TypeKind as K;
    match (spec.kind, spec.length) {
        (K::TinyText | K::TinyBlob, _) => TextSize::Tiny,
        (K::MediumText | K::MediumBlob, _) => TextSize::Medium,
        (K::LongText | K::LongBlob, _) => TextSize::Long,
        (_, None | Some(0)) => TextSize::Normal,
        (_, Some(n)) => match n.saturating_mul(per_char) {
            0..=0xff => TextSize::Tiny,
            0x100..=0xffff => TextSize::Normal,
            0x1_0000..=0xff_ffff => TextSize::Medium,
            _ => TextSize::Long,
        },
    }
}

/// The name of a member in UTF-8, without trailing spaces. Characters that the column's character
/// set lacks become question marks.
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
    connection: CollationId,
) -> Result<ColumnType, SqlError> {
    let set = spec.kind == ast::TypeKind::Set;
    let known = collation.known();
    let from = connection.known().charset;
    let mut all: Vec<Box<str>> = Vec::with_capacity(spec.members.len());
    // Members are duplicates if their sort keys are equal.
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

/// The collation that CHARACTER SET and COLLATE clauses name together; `None` without either
/// clause.
///
/// # Errors
/// 1115 unknown character set, 1273 unknown collation, 1253 if the collation is of another
/// character set.
pub fn named_collation(
    charset: Option<&str>,
    collation: Option<&str>,
) -> Result<Option<CollationId>, SqlError> {
    let charset = match charset {
        Some(name) => Some(
            Charset::by_name(name)
                .ok_or_else(|| error(ErrorCode::ER_UNKNOWN_CHARACTER_SET, &[&name]))?,
        ),
        None => None,
    };
    let Some(name) = collation else {
        return Ok(charset.map(default_collation));
    };
    let found =
        Collation::by_name(name).ok_or_else(|| error(ErrorCode::ER_UNKNOWN_COLLATION, &[&name]))?;
    match charset {
        Some(charset) if charset.name != found.charset.name => Err(error(
            ErrorCode::ER_COLLATION_CHARSET_MISMATCH,
            &[&name, &charset.name],
        )),
        _ => Ok(Some(found.id)),
    }
}

/// The default collation of a character set.
pub fn default_collation(charset: &Charset) -> CollationId {
    charset.default_collation
}

/// The `_bin` collation of a character set.
pub fn bin_collation(charset: &Charset) -> CollationId {
    let name = format!("{}_bin", charset.name);
    Collation::by_name(&name).map_or(CollationId::BINARY, |c| c.id)
}
