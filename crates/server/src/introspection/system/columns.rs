//! Columns.

use nfold_catalog::{ColumnDef, Privileges, TableDef, Visibility};
use nfold_exec::SessionEnv;
use nfold_types::{CollationId, ColumnType, SqlError, TypeKind, Value};

use super::rows::{Cx, Put};
use super::schema::CATALOG;
use crate::ddl::show;
use crate::introspection::table_facts::{column_extra, column_key};

/// Whether a column has a character set.
fn is_textual(ty: &ColumnType) -> bool {
    ty.collation != CollationId::BINARY && (ty.is_string() || ty.is_enum_or_set())
}

/// CHARACTER_MAXIMUM_LENGTH and CHARACTER_OCTET_LENGTH.
fn lengths(ty: &ColumnType) -> Option<(i64, i64)> {
    let wide = i64::from(ty.charset().max_len);
    let longest = |m: &[Box<str>]| m.iter().map(|s| s.chars().count()).max().unwrap_or(0) as i64;
    let joined = |m: &[Box<str>]| {
        let chars: usize = m.iter().map(|s| s.chars().count()).sum();
        (chars + m.len().saturating_sub(1)) as i64
    };
    Some(match &ty.kind {
        TypeKind::Char(n) | TypeKind::VarChar(n) => (i64::from(*n), i64::from(*n) * wide),
        TypeKind::Binary(n) | TypeKind::VarBinary(n) => (i64::from(*n), i64::from(*n)),
        TypeKind::Null => (0, 0),
        TypeKind::Text(size) | TypeKind::Blob(size) => {
            (size.max_bytes() as i64, size.max_bytes() as i64)
        }
        TypeKind::Enum(m) => (longest(m), longest(m) * wide),
        TypeKind::Set(m) => (joined(m), joined(m) * wide),
        _ => return None,
    })
}

/// NUMERIC_PRECISION and NUMERIC_SCALE.
fn precision(ty: &ColumnType) -> (Option<u64>, Option<u64>) {
    let fixed = ty.decimals != nfold_types::sql_type::NOT_FIXED_DECIMALS;
    let floating = |digits: u64| match fixed {
        true => (Some(u64::from(ty.width)), Some(u64::from(ty.decimals))),
        false => (Some(digits), None),
    };
    let integer = |digits| (Some(digits), Some(0));
    match &ty.kind {
        TypeKind::TinyInt => integer(3),
        TypeKind::SmallInt => integer(5),
        TypeKind::MediumInt => integer(7),
        TypeKind::Int => integer(10),
        TypeKind::BigInt => integer(if ty.unsigned { 20 } else { 19 }),
        TypeKind::Decimal { precision, scale } => {
            (Some(u64::from(*precision)), Some(u64::from(*scale)))
        }
        TypeKind::Float => floating(12),
        TypeKind::Double => floating(22),
        TypeKind::Bit(n) => (Some(u64::from(*n)), None),
        _ => (None, None),
    }
}

/// DATETIME_PRECISION.
fn fraction(ty: &ColumnType) -> Option<u64> {
    match ty.kind {
        TypeKind::Time(n) | TypeKind::DateTime(n) | TypeKind::Timestamp(n) => Some(n.into()),
        _ => None,
    }
}

/// The account's privileges on a column of a database, in the format of PRIVILEGES.
pub fn privileges_text(held: Privileges) -> String {
    let words = [
        (Privileges::SELECT, "select"),
        (Privileges::INSERT, "insert"),
        (Privileges::UPDATE, "update"),
        (Privileges::REFERENCES, "references"),
    ];
    let held: Vec<&str> = words
        .iter()
        .filter(|(p, _)| held.contains(*p))
        .map(|(_, word)| *word)
        .collect();
    held.join(",")
}

fn row(cx: &Cx<'_>, def: &TableDef, at: usize, c: &ColumnDef, privileges: &str) -> Vec<Value> {
    let ty = &c.ty;
    let lengths = lengths(ty);
    let (digits, scale) = precision(ty);
    let collation = is_textual(ty).then(|| ty.collation.known());
    vec![
        CATALOG.into(),
        (&*def.schema).into(),
        (&*def.name).into(),
        (&*c.name).into(),
        Value::UInt(at as u64 + 1),
        show::default_value_text(c, cx.env.time_zone()).into(),
        (if c.nullable { "YES" } else { "NO" }).into(),
        ty.data_type_name().into(),
        lengths.map(|l| l.0).into(),
        lengths.map(|l| l.1).into(),
        digits.into(),
        scale.into(),
        fraction(ty).into(),
        collation.map(|c| c.charset.name).into(),
        collation.map(|c| c.name).into(),
        ty.to_string().into(),
        column_key(def, at).into(),
        column_extra(c).into(),
        privileges.into(),
        (&*c.comment).into(),
        c.generated
            .as_ref()
            .map_or(String::new(), |g| nfold_sql::stored::escaped(&g.expr.text))
            .into(),
        Value::Null,
    ]
}

pub(super) fn columns(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in cx.tables() {
        if cx.check_view(def).is_err() {
            continue;
        }
        let named = def.columns.iter().enumerate();
        for (at, c) in named.filter(|(_, c)| c.visibility != Visibility::Hidden) {
            let privileges = privileges_text(cx.on_column(def, &c.name));
            if !privileges.is_empty() {
                put(row(cx, def, at, c, &privileges))?;
            }
        }
    }
    Ok(())
}

pub(super) fn columns_extensions(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in cx.tables() {
        let named = def.columns.iter();
        let seen = |c: &&ColumnDef| cx.on_column(def, &c.name).has_any(Privileges::all_column());
        let visible = named.filter(|c| c.visibility != Visibility::Hidden);
        for c in visible.filter(seen) {
            put(vec![
                CATALOG.into(),
                (&*def.schema).into(),
                (&*def.name).into(),
                (&*c.name).into(),
                Value::Null,
                Value::Null,
            ])?;
        }
    }
    Ok(())
}
