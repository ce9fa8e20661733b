//! The columns of CREATE TABLE ... SELECT. Source: MySQL manual, "CREATE TABLE ... SELECT
//! Statement"; defaults and comments follow MySQL's observed behaviour.

use nfold_catalog::schema::eq_name;
use nfold_catalog::{ColumnDef, ColumnDefault};
use nfold_plan::SqlMode;
use nfold_plan::expr::Class;
use nfold_plan::results::{ColumnPath, Origin, ResultColumn};
use nfold_types::convert::store::implicit_default;
use nfold_types::sql_type::NOT_FIXED_DECIMALS;
use nfold_types::{ColumnType, ErrorCode, SqlError, TextSize, TypeKind};

use super::{DdlCx, check_column_name, column, error};

/// Longer strings become TEXT; in characters.
const MAX_VARCHAR: u32 = 512;

/// The columns of the table: first the defined columns that the query does not return, then one for
/// each result column, with its definition or else the type of the result.
///
/// # Errors
/// 1060, 1166.
pub(super) fn merge(
    mut defined: Vec<ColumnDef>,
    selected: &[ResultColumn],
    cx: &mut DdlCx<'_>,
) -> Result<Vec<ColumnDef>, SqlError> {
    let mut made: Vec<ColumnDef> = Vec::with_capacity(selected.len());
    for result in selected {
        if made.iter().any(|c| eq_name(&c.name, &result.name)) {
            return Err(error(ErrorCode::ER_DUP_FIELDNAME, &[&result.name]));
        }
        let own = defined.iter().position(|c| eq_name(&c.name, &result.name));
        made.push(match own {
            Some(n) => {
                let mut own = defined.remove(n);
                if let (true, Some(origin)) = (own.comment.is_empty(), &result.origin) {
                    own.comment = origin.column.comment.clone();
                }
                own
            }
            None => column_of(result, cx)?,
        });
    }
    defined.append(&mut made);
    Ok(defined)
}

/// The column for a result column.
fn column_of(result: &ResultColumn, cx: &mut DdlCx<'_>) -> Result<ColumnDef, SqlError> {
    let name = &*result.name;
    check_column_name(name)?;
    let mut column = keeping(result);
    // The zero date is the default of a date or time, where the SQL mode allows it.
    let zero = !cx.sql_mode.has(SqlMode::NO_ZERO_DATE) && column.default == ColumnDefault::None;
    let computed = result
        .origin
        .as_ref()
        .is_none_or(|o| o.through == ColumnPath::Merged);
    if zero && computed && Class::of(&column.ty).is_temporal() {
        column.default = ColumnDefault::Literal(implicit_default(&column.ty));
    }
    column::warn_of_type(&column.ty, cx);
    Ok(column)
}

/// A column that could store the values of a result column.
pub fn keeping(result: &ResultColumn) -> ColumnDef {
    let origin = result.origin.as_ref();
    let ty = match origin {
        Some(origin) => origin.column.ty.clone(),
        None => kept(&result.ty),
    };
    let named = origin.filter(|o| o.through == ColumnPath::Name);
    ColumnDef {
        name: result.name.clone(),
        nullable: result.nullable,
        default: default_of(origin, &ty, result.nullable),
        on_update_now: named.and_then(|o| o.column.on_update_now),
        auto_increment: false,
        comment: origin.map_or_else(Box::default, |o| o.column.comment.clone()),
        own_charset: origin.is_some_and(|o| o.column.own_charset),
        generated: None,
        visibility: nfold_catalog::Visibility::Visible,
        histogram: None,
        ty,
    }
}

fn default_of(origin: Option<&Origin>, ty: &ColumnType, nullable: bool) -> ColumnDefault {
    let own_default = |o: &Origin| o.column.default != ColumnDefault::None;
    let none = origin.is_some_and(|o| !own_default(o) && !o.column.auto_increment);
    match origin {
        Some(o) if o.through == ColumnPath::Name && o.column.auto_increment => {
            ColumnDefault::Literal(implicit_default(ty))
        }
        Some(o) if none && o.through != ColumnPath::Merged => ColumnDefault::None,
        // MySQL drops the default of a BIT.
        Some(o) if o.through == ColumnPath::Name && !matches!(ty.kind, TypeKind::Bit(_)) => {
            o.column.default.clone()
        }
        _ if nullable => ColumnDefault::Null,
        _ => match ty.kind {
            TypeKind::Date
            | TypeKind::DateTime(_)
            | TypeKind::Timestamp(_)
            | TypeKind::Enum(_)
            | TypeKind::Text(_)
            | TypeKind::Blob(_)
            | TypeKind::Json => ColumnDefault::None,
            _ => ColumnDefault::Literal(implicit_default(ty)),
        },
    }
}

/// The type of a column for the values of an expression.
fn kept(ty: &ColumnType) -> ColumnType {
    let mut ty = ty.clone();
    if !ty.is_numeric() {
        // The attributes of a BIT that acts as a number do not apply.
        (ty.unsigned, ty.zerofill) = (false, false);
    }
    ty.unsigned &= ty.kind != TypeKind::Year;
    let per_char = u64::from(ty.charset().max_len).max(1);
    let chars = match ty.kind {
        TypeKind::VarChar(n) | TypeKind::VarBinary(n) => n,
        _ => ty.width,
    };
    let size = match u64::from(chars) * per_char {
        0..=0xffff => TextSize::Normal,
        0x1_0000..=0xff_ffff => TextSize::Medium,
        _ => TextSize::Long,
    };
    match ty.kind {
        TypeKind::VarChar(n) if n > MAX_VARCHAR => ty.kind = TypeKind::Text(size),
        TypeKind::VarBinary(n) if n > MAX_VARCHAR => ty.kind = TypeKind::Blob(size),
        TypeKind::Text(_) => ty.kind = TypeKind::Text(size),
        TypeKind::Blob(_) => ty.kind = TypeKind::Blob(size),
        _ => {}
    }
    if ty.is_integer() {
        // An integer column is not boolean.
        ty.decimals = NOT_FIXED_DECIMALS;
    }
    let fixed =
        matches!(ty.kind, TypeKind::Float | TypeKind::Double) && ty.decimals < NOT_FIXED_DECIMALS;
    if !ty.zerofill && !fixed {
        ty.width = 0;
    }
    ty
}
