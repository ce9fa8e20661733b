//! Functional key parts: an index over an expression is an index over a hidden generated column.
//!
//! Source: MySQL manual, "CREATE INDEX Statement", "Functional Key Parts".

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{ColumnDef, ColumnDefault, GeneratedColumn, StoredExpr, Visibility};
use nfold_engine::TableSpec;
use nfold_plan::bind::table_exprs::StoredUse;
use nfold_plan::expr::Class;
use nfold_plan::results::ResultColumn;
use nfold_sql::ast::{Expr, Ident, KeyDef, KeyKind, KeyPart, KeyTarget, TypeKind as Type};
use nfold_types::{CollationId, ColumnType, ErrorCode, SqlError, TextSize, TypeKind};

use super::stored::{Purpose, bind, column_of, stored_expr};
use super::{DdlCx, error, selected};

/// The most characters (bytes of a binary string) that an element of an array may have.
const ELEMENT_CHARS: u64 = 512;

/// The name of an unnamed index whose first part is an expression.
const NAME: &str = "functional_index";

/// Replaces the expressions of a key by hidden columns, which are added to `columns`; `None` if the
/// key has none. `taken` are the names of earlier keys.
///
/// # Errors
/// 3753 to 3757, 3762, and those of stored expressions.
pub fn expand(
    key: &KeyDef,
    columns: &mut Vec<ColumnDef>,
    taken: &[Arc<str>],
    cx: &DdlCx<'_>,
) -> Result<Option<KeyDef>, SqlError> {
    let is_expr = |p: &KeyPart| matches!(p.target, KeyTarget::Expr(_));
    if !key.parts.iter().any(is_expr) {
        return Ok(None);
    }
    if key.kind == KeyKind::Primary {
        return Err(error(ErrorCode::ER_FUNCTIONAL_INDEX_PRIMARY_KEY, &[]));
    }
    let is_array =
        |p: &&KeyPart| matches!(&p.target, KeyTarget::Expr(Expr::Cast { array: true, .. }));
    if key.parts.iter().filter(is_array).count() > 1 {
        let what = "more than one multi-valued key part per index";
        return Err(SqlError::not_supported(what));
    }
    let mut expanded = key.clone();
    if key.name.is_none() && key.parts.first().is_some_and(is_expr) {
        expanded.name = Some(Ident::new(free_name(taken)));
    }
    let name = expanded
        .name
        .as_ref()
        .map_or(NAME, Ident::as_str)
        .to_owned();
    for (n, part) in expanded.parts.iter_mut().enumerate() {
        let KeyTarget::Expr(e) = &part.target else {
            continue;
        };
        let column = hidden_column(e, (&name, n), columns, cx)?;
        part.target = KeyTarget::Column {
            name: Ident::new(&*column.name),
            prefix: None,
        };
        columns.push(column);
    }
    Ok(Some(expanded))
}

fn free_name(taken: &[Arc<str>]) -> String {
    let is_taken = |name: &str| taken.iter().any(|t| eq_name(t, name));
    if !is_taken(NAME) {
        return NAME.into();
    }
    let mut n = 2;
    while is_taken(&format!("{NAME}_{n}")) {
        n += 1;
    }
    format!("{NAME}_{n}")
}

/// The hidden column for part number `part` of an index.
fn hidden_column(
    e: &Expr,
    (index, part): (&str, usize),
    columns: &[ColumnDef],
    cx: &DdlCx<'_>,
) -> Result<ColumnDef, SqlError> {
    if matches!(e, Expr::Column(_)) {
        return Err(error(ErrorCode::ER_FUNCTIONAL_INDEX_ON_FIELD, &[]));
    }
    let array_of = element_type(e)?;
    let expr = stored_expr(e, Purpose::Key(index), cx)?;
    for name in &expr.columns {
        let named = column_of(columns, name).map(|at| &columns[at]);
        if named.is_some_and(|c| c.auto_increment) {
            let code = ErrorCode::ER_FUNCTIONAL_INDEX_REF_AUTO_INCREMENT;
            return Err(error(code, &[&index]));
        }
    }
    let spec = TableSpec {
        schema: "".into(),
        name: "".into(),
        columns: columns.to_vec(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        collation: cx.collation,
        options: Default::default(),
        auto_increment: 0,
    };
    let name = (0..)
        .map(|n| format!("!hidden!{index}!{part}!{n}"))
        .find(|name| column_of(columns, name).is_none())
        .unwrap_or_default();
    if array_of.is_some() {
        let column = array_column(name.into(), expr, array_of);
        if let Some(g) = &column.generated {
            bind(&g.expr, &spec, StoredUse::Generated(&column), cx)?;
        }
        return Ok(column);
    }
    let bound = bind(&expr, &spec, StoredUse::Key, cx)?;
    let text = matches!(bound.ty.class(), Class::String | Class::Null);
    if text && bound.ty.max_length() == 0 {
        let code = ErrorCode::ER_WRONG_KEY_COLUMN_FUNCTIONAL_INDEX;
        return Err(error(code, &[&expr.text]));
    }
    let column = selected::keeping(&ResultColumn {
        name: name.into(),
        ty: bound.ty.column(),
        nullable: true,
        origin: None,
    });
    if column.ty.is_json() {
        return Err(error(ErrorCode::ER_FUNCTIONAL_INDEX_ON_JSON, &[]));
    }
    if column.ty.is_blob() {
        return Err(error(ErrorCode::ER_FUNCTIONAL_INDEX_ON_LOB, &[]));
    }
    Ok(ColumnDef {
        default: ColumnDefault::Null,
        generated: Some(Box::new(GeneratedColumn {
            expr,
            stored: false,
            array_of: None,
        })),
        visibility: Visibility::Hidden,
        histogram: None,
        ..column
    })
}

/// The hidden column of a multi-valued key part.
fn array_column(name: Arc<str>, expr: StoredExpr, array_of: Option<ColumnType>) -> ColumnDef {
    ColumnDef {
        name,
        ty: ColumnType::new(TypeKind::Blob(TextSize::Long)),
        nullable: true,
        default: ColumnDefault::Null,
        on_update_now: None,
        auto_increment: false,
        comment: "".into(),
        own_charset: false,
        generated: Some(Box::new(GeneratedColumn {
            expr,
            stored: false,
            array_of,
        })),
        visibility: Visibility::Hidden,
        histogram: None,
    }
}

/// The type of the elements of `CAST(... AS ... ARRAY)`; `None` for another expression.
///
/// # Errors
/// 1235 for types that no multi-valued index can have.
fn element_type(e: &Expr) -> Result<Option<ColumnType>, SqlError> {
    let Expr::Cast {
        ty, array: true, ..
    } = e
    else {
        return Ok(None);
    };
    let refused = |what: &str| {
        let what = format!("CAST-ing data to array of {what}");
        Err(SqlError::not_supported(what))
    };
    let text = matches!(ty.kind, Type::Char | Type::Binary);
    if text && ty.charset.is_some() {
        let what = "specifying charset for multi-valued index";
        return Err(SqlError::not_supported(what));
    }
    let length = ty.length.unwrap_or(u64::MAX);
    if text && length > ELEMENT_CHARS {
        return refused("char/binary BLOBs");
    }
    let fsp = ty.length.unwrap_or(0).min(6) as u8;
    Ok(Some(match ty.kind {
        Type::Signed => ColumnType::bigint(),
        Type::Unsigned => ColumnType::bigint().with_unsigned(),
        Type::Decimal => ColumnType::new(TypeKind::Decimal {
            precision: ty.length.filter(|n| *n != 0).unwrap_or(10) as u8,
            scale: ty.decimals.unwrap_or(0) as u8,
        }),
        Type::Char => ColumnType::varchar(length as u32, CollationId::UTF8MB4_0900_BIN),
        Type::Binary => ColumnType::string(TypeKind::VarBinary(length as u32), CollationId::BINARY),
        Type::Date => ColumnType::new(TypeKind::Date),
        Type::Time => ColumnType::new(TypeKind::Time(fsp)),
        Type::DateTime => ColumnType::new(TypeKind::DateTime(fsp)),
        Type::Double => return refused("DOUBLE"),
        Type::Float => return refused("FLOAT"),
        Type::Year => return refused("YEAR"),
        Type::Json => return refused("JSON"),
        _ => return refused("this type"),
    }))
}
