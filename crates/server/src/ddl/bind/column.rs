//! Columns: types with their limits, NOT NULL, defaults.

use std::fmt::Display;

use nfold_catalog::{ColumnDef, ColumnDefault, GeneratedColumn, Visibility};
use nfold_plan::bind::column_type::column_type;
use nfold_sql::ast::{self, DefaultValue, Expr, Literal, UnaryOp};
use nfold_sql::parser::Deprecated;
use nfold_types::collation::CollationId;
use nfold_types::convert::{StoreCx, StoreMode, number, store_value};
use nfold_types::sql_type::NOT_FIXED_DECIMALS;
use nfold_types::temporal::DateFlags;
use nfold_types::{ColumnType, ErrorCode, Level, SqlError, TypeKind, Value};

use super::stored::{Purpose, stored_expr};
use super::{Commented, DdlCx, check_column_name, check_length, comment, error, named_collation};

/// Binds a column of a table whose default collation is `collation`.
pub fn bind(
    column: &ast::ColumnDef,
    collation: CollationId,
    cx: &mut DdlCx<'_>,
) -> Result<ColumnDef, SqlError> {
    let name = column.name.as_str();
    check_length(name)?;
    check_column_name(name)?;
    if column.generated.is_some() {
        refuse_beside_generated(column)?;
    }
    let ty = match column_type(name, &column.ty, collation, cx.connection) {
        Err(e) if e.errno() == ErrorCode::ER_TOO_BIG_FIELDLENGTH.errno() => {
            let spec = converted(column, cx).ok_or(e)?;
            column_type(name, &spec, collation, cx.connection)?
        }
        other => other?,
    };
    let nullable = column.not_null != Some(true) && !column.auto_increment;
    if column.auto_increment && !ty.is_integer() {
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
        comment: comment(column.comment.as_ref(), (Commented::Column, name), cx)?,
        own_charset: column.ty.charset.is_some() || column.ty.collation.is_some(),
        generated: match &column.generated {
            None => None,
            Some(g) => Some(Box::new(GeneratedColumn {
                expr: stored_expr(&g.expr, Purpose::Generated(name), cx)?,
                stored: g.stored,
                array_of: None,
            })),
        },
        histogram: None,
        visibility: match column.invisible {
            true => Visibility::Invisible,
            false => Visibility::Visible,
        },
        ty,
    })
}

/// The type of a column that is too long for a VARCHAR or VARBINARY, without strict mode: TEXT or
/// BLOB, with note 1246. `None`: such a column is an error.
fn converted(column: &ast::ColumnDef, cx: &mut DdlCx<'_>) -> Option<ast::TypeSpec> {
    let (kind, from, to) = match column.ty.kind {
        ast::TypeKind::VarChar => (ast::TypeKind::Text, "VARCHAR", "TEXT"),
        ast::TypeKind::VarBinary => (ast::TypeKind::Blob, "VARBINARY", "BLOB"),
        _ => return None,
    };
    if cx.mode.strict || column.default.is_some() {
        return None;
    }
    let args: [&dyn Display; 3] = [&column.name.as_str(), &from, &to];
    cx.warnings
        .push(Level::Note, ErrorCode::ER_AUTO_CONVERT, &args);
    Some(ast::TypeSpec {
        kind,
        ..column.ty.clone()
    })
}

/// Error 1221 for attributes that a generated column cannot have.
fn refuse_beside_generated(column: &ast::ColumnDef) -> Result<(), SqlError> {
    let attributes = [
        (column.default.is_some(), "DEFAULT"),
        (column.auto_increment, "AUTO_INCREMENT"),
        (column.on_update_now.is_some(), "ON UPDATE"),
    ];
    match attributes.iter().find(|(written, _)| *written) {
        Some((_, what)) => Err(error(
            ErrorCode::ER_WRONG_USAGE,
            &[what, &"generated column"],
        )),
        None => Ok(()),
    }
}

fn now_fits(ty: &ColumnType, fsp: u8) -> bool {
    matches!(ty.kind, TypeKind::DateTime(f) | TypeKind::Timestamp(f) if f == fsp)
}

/// Warns of deprecated types that the statement does not name, such as those of CREATE TABLE ...
/// LIKE.
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
        Some(DefaultValue::Expr(e)) => {
            let expr = stored_expr(e, Purpose::Default(name), cx)?;
            Ok(ColumnDefault::Expr(Box::new(expr)))
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
            // A number is no member's name.
            if ty.is_enum_or_set() && !matches!(value.value, Value::Bytes(_)) {
                return Err(invalid());
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

/// The value of DEFAULT as the column stores it. Without strict mode, a zero date that the SQL mode
/// forbids is accepted with warning 1264.
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
            from: CollationId::UTF8MB4_BIN,
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

/// A literal before its conversion to a column's type.
pub struct LiteralValue {
    value: Value,
    /// The collation of a string.
    string: Option<CollationId>,
}

impl LiteralValue {
    fn is_null(&self) -> bool {
        self.value.is_null()
    }
}

/// The value of a literal, which may have a sign; `None` for other expressions.
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

/// Error 1118 if the columns exceed the maximum row size of 65,535 bytes. TEXT and BLOB columns do
/// not count.
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
