//! CAST and CONVERT: the type of the result.

use nfold_sql::ast::{self, TypeKind as AstKind, TypeSpec};
use nfold_types::collation::CollationId;
use nfold_types::decimal::{MAX_PRECISION, MAX_SCALE};
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind};

use crate::logical::collate::{charset_collation, collation_named};
use crate::logical::expr::{Coercibility, Expr, ExprType, TextOrigin};

/// The part of error 1235 for a cast to an array that is no key part.
pub(super) const ARRAY_CAST: &str = "Use of CAST( .. AS .. ARRAY) outside of functional index in \
                                     CREATE(non-SELECT)/ALTER TABLE or in general expressions";

/// Casts `inner` to the type of `spec`. `connection` is `collation_connection`.
pub(super) fn cast(
    inner: Expr,
    spec: &TypeSpec,
    connection: CollationId,
) -> Result<Expr, SqlError> {
    let len = || spec.length.map(|l| l.min(u64::from(u32::MAX)));
    let plain = |kind: TypeKind, nullable: bool| ExprType::new(ColumnType::new(kind), nullable);
    let fsp = spec.length.unwrap_or(0).min(6) as u8;
    let nullable = inner.ty.nullable;
    let ty = match spec.kind {
        AstKind::Signed | AstKind::BigInt | AstKind::Int if !spec.unsigned => {
            ExprType::bigint(nullable)
        }
        AstKind::Unsigned | AstKind::Signed | AstKind::BigInt | AstKind::Int => {
            ExprType::ubigint(nullable)
        }
        AstKind::Char | AstKind::VarChar => {
            let collation = match (&spec.charset, &spec.collation) {
                (_, Some(name)) => collation_named(name)?,
                (Some(name), None) => charset_collation(name)?,
                (None, None) => connection,
            };
            let collation = if spec.binary {
                collation.known().charset.binary_collation
            } else {
                collation
            };
            ExprType::string(
                len().unwrap_or(inner.ty.char_length()),
                collation,
                Coercibility::Implicit,
                true,
            )
        }
        AstKind::Binary | AstKind::VarBinary => {
            let mut ty = ExprType::string(
                len().unwrap_or(inner.ty.byte_length()),
                CollationId::BINARY,
                Coercibility::Implicit,
                true,
            );
            // A non-zero width of BINARY(n) means that values are padded with zero bytes.
            if let (Some(n), TypeKind::VarBinary(_)) = (len(), &ty.col.kind) {
                ty.col.width = n as u32;
            }
            ty
        }
        AstKind::Decimal => ExprType::decimal(
            len().unwrap_or(10) as u32,
            spec.decimals.unwrap_or(0),
            nullable,
        ),
        AstKind::Double => ExprType::double(nullable),
        AstKind::Float if spec.length.unwrap_or(0) > 24 => ExprType::double(nullable),
        AstKind::Float => plain(TypeKind::Float, nullable).with_width(23),
        AstKind::Date => plain(TypeKind::Date, true),
        AstKind::DateTime | AstKind::Timestamp => plain(TypeKind::DateTime(fsp), true),
        AstKind::Time => plain(TypeKind::Time(fsp), true),
        AstKind::Year => plain(TypeKind::Year, true).with_width(4),
        AstKind::Json => ExprType::json(nullable).with_item_name("cast_as_json"),
        _ => return Err(SqlError::not_supported("CAST to this type")),
    };
    Ok(cast_to(inner, ty))
}

/// Casts `inner` to `ty`.
pub(super) fn cast_to(inner: Expr, ty: ExprType) -> Expr {
    // The text of a FLOAT is that of a column.
    let origin = match ty.col.kind {
        TypeKind::Float => TextOrigin::Column,
        _ => TextOrigin::Computed,
    };
    Expr::cast(inner, ExprType { origin, ..ty })
}

/// Checks the length and the digits of a CAST type.
///
/// # Errors
/// 1425, 1426, 1427, 1439, 1690.
pub(super) fn check_cast_type(e: &ast::Expr, spec: &TypeSpec) -> Result<(), SqlError> {
    const MAX_CHARS: u64 = 0x3fff_ffff;
    let length = spec.length.unwrap_or(0);
    let (precision, scale) = (length, u64::from(spec.decimals.unwrap_or(0)));
    let name = || e.to_string();
    let error = |code, args: &[&dyn std::fmt::Display]| Err(SqlError::new(code, args));
    match spec.kind {
        AstKind::Char | AstKind::VarChar | AstKind::Binary | AstKind::VarBinary => {
            if length > u64::from(u32::MAX) {
                let code = ErrorCode::ER_TOO_BIG_DISPLAYWIDTH;
                return error(code, &[&"cast as char", &u32::MAX]);
            }
            let chars = matches!(spec.kind, AstKind::Char | AstKind::VarChar);
            if chars && length > MAX_CHARS {
                let code = ErrorCode::ER_DATA_OUT_OF_RANGE;
                return error(code, &[&"char(n)", &"cast_as_char"]);
            }
        }
        AstKind::Decimal if precision > u64::from(MAX_PRECISION) => {
            let code = ErrorCode::ER_TOO_BIG_PRECISION;
            return error(code, &[&(precision as u32), &name(), &MAX_PRECISION]);
        }
        AstKind::Decimal if scale > u64::from(MAX_SCALE) => {
            return error(ErrorCode::ER_TOO_BIG_SCALE, &[&scale, &name(), &MAX_SCALE]);
        }
        AstKind::Decimal if spec.length.is_some() && scale > precision.max(1) => {
            return error(ErrorCode::ER_M_BIGGER_THAN_D, &[&""]);
        }
        AstKind::Time | AstKind::DateTime | AstKind::Timestamp if length > 6 => {
            return error(ErrorCode::ER_TOO_BIG_PRECISION, &[&length, &"CAST", &6]);
        }
        AstKind::Float if length > 53 => {
            return error(ErrorCode::ER_TOO_BIG_PRECISION, &[&length, &"CAST", &53]);
        }
        _ => {}
    }
    Ok(())
}
