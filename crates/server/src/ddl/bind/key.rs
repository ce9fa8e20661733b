//! Keys: their parts, prefix lengths, limits, and generated names.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{ColumnDef, IndexKind, IndexPart};
use nfold_engine::IndexSpec;
use nfold_sql::ast::{IndexAlgorithm, KeyDef, KeyKind, KeyPart, KeyTarget};
use nfold_types::{ErrorCode, Level, SqlError, TypeKind};

use super::{Commented, DdlCx, check_length, comment, error, fulltext, functional};

/// The maximum size of a key, and of one part of it, in bytes.
const MAX_KEY_BYTES: u64 = 3072;
pub(super) const MAX_PARTS: usize = 16;
/// The maximum number of indexes of a table.
pub const MAX_KEYS: usize = 64;

/// The key that must be visible, as in MySQL: the primary key, without one the first unique key
/// over NOT NULL columns, those over whole columns before the others.
pub(super) fn primary<'i>(
    columns: &[ColumnDef],
    indexes: &'i [IndexSpec],
) -> Option<&'i IndexSpec> {
    let not_null = |i: &&IndexSpec| {
        let mut parts = i.parts.iter();
        i.kind == IndexKind::Unique && parts.all(|p| !columns[p.column].nullable)
    };
    let order = |i: &&IndexSpec| i.parts.iter().any(|p| p.prefix_len.is_some());
    let explicit = indexes.iter().find(|i| i.kind == IndexKind::Primary);
    explicit.or_else(|| indexes.iter().filter(not_null).min_by_key(order))
}

/// Binds a key over `columns`. A primary key makes its columns NOT NULL; a functional part adds a
/// hidden column. `taken` are the names of earlier keys.
pub fn bind(
    key: &KeyDef,
    columns: &mut Vec<ColumnDef>,
    explicit_null: &[bool],
    taken: &[Arc<str>],
    cx: &mut DdlCx<'_>,
) -> Result<IndexSpec, SqlError> {
    let kind = match key.kind {
        KeyKind::Primary => IndexKind::Primary,
        KeyKind::Unique => IndexKind::Unique,
        KeyKind::Index => IndexKind::Secondary,
        KeyKind::Fulltext => return fulltext::bind(key, columns, taken, cx),
        KeyKind::Spatial => return Err(SqlError::not_supported("SPATIAL indexes")),
    };
    if key.invisible && kind == IndexKind::Primary {
        return Err(error(ErrorCode::ER_PK_INDEX_CANT_BE_INVISIBLE, &[]));
    }
    let expanded = functional::expand(key, columns, taken, cx)?;
    let key = expanded.as_ref().unwrap_or(key);
    if key.parts.len() > MAX_PARTS {
        return Err(error(ErrorCode::ER_TOO_MANY_KEY_PARTS, &[&MAX_PARTS]));
    }
    let mut parts: Vec<IndexPart> = Vec::with_capacity(key.parts.len());
    let mut bytes = 0;
    for part in &key.parts {
        let (bound, size) = bind_part(part, columns, kind, cx)?;
        if parts.iter().any(|p| p.column == bound.column) {
            return Err(error(
                ErrorCode::ER_DUP_FIELDNAME,
                &[&columns[bound.column].name],
            ));
        }
        if kind == IndexKind::Primary {
            if explicit_null.get(bound.column).copied().unwrap_or(false) {
                return Err(error(ErrorCode::ER_PRIMARY_CANT_HAVE_NULL, &[]));
            }
            let column = &mut columns[bound.column];
            if column.generated.as_ref().is_some_and(|g| !g.stored) {
                let what = "Defining a virtual generated column as primary key";
                let code = ErrorCode::ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN;
                return Err(error(code, &[&what]));
            }
            column.nullable = false;
            if column.default == nfold_catalog::ColumnDefault::Null {
                column.default = nfold_catalog::ColumnDefault::None;
            }
        }
        bytes += size;
        if bytes > MAX_KEY_BYTES {
            return Err(error(ErrorCode::ER_TOO_LONG_KEY, &[&MAX_KEY_BYTES]));
        }
        parts.push(bound);
    }
    let name = name_of(key, kind, columns, &parts, taken)?;
    let comment = comment(key.comment.as_ref(), (Commented::Index, &name), cx)?;
    if key.algorithm == Some(IndexAlgorithm::Hash) && !cx.has_hash_indexes {
        let code = ErrorCode::ER_UNSUPPORTED_INDEX_ALGORITHM;
        cx.warnings.push(Level::Note, code, &[&"HASH"]);
    }
    Ok(IndexSpec {
        name,
        kind,
        parts,
        comment,
        btree: key.algorithm == Some(IndexAlgorithm::BTree),
        generated: false,
        visible: !key.invisible,
    })
}

/// Warning 1831 for an index like one of `others`, which `table` has.
pub fn warn_of_duplicate<'i>(
    index: &IndexSpec,
    mut others: impl Iterator<Item = &'i IndexSpec>,
    (schema, table): (&str, &str),
    cx: &mut DdlCx<'_>,
) {
    let alike = |other: &IndexSpec| {
        other.kind == index.kind && fulltext::shown_parts(other) == fulltext::shown_parts(index)
    };
    if index.kind != IndexKind::Primary && others.any(alike) {
        let code = ErrorCode::ER_DUP_INDEX;
        cx.warnings.warn(code, &[&index.name, &schema, &table]);
    }
}

/// Binds a part of a key, and gives its size in bytes. A part of an index that is not unique is cut
/// off where it is too long and the mode is not strict.
fn bind_part(
    part: &KeyPart,
    columns: &[ColumnDef],
    kind: IndexKind,
    cx: &mut DdlCx<'_>,
) -> Result<(IndexPart, u64), SqlError> {
    let KeyTarget::Column { name, prefix } = &part.target else {
        return Err(SqlError::not_supported("functional key parts"));
    };
    let found = columns.iter().position(|c| eq_name(&c.name, name.as_str()));
    let column =
        found.ok_or_else(|| error(ErrorCode::ER_KEY_COLUMN_DOES_NOT_EXITS, &[&name.as_str()]))?;
    let generated = columns[column].generated.as_ref();
    let ty = generated.and_then(|g| g.array_of.as_ref());
    let ty = ty.unwrap_or(&columns[column].ty);
    if ty.is_json() {
        let name = &columns[column].name;
        return Err(error(ErrorCode::ER_JSON_USED_AS_KEY, &[name]));
    }
    let per_char = u64::from(ty.charset().max_len).max(1);
    let whole = match &ty.kind {
        TypeKind::Char(n) | TypeKind::VarChar(n) | TypeKind::Binary(n) | TypeKind::VarBinary(n) => {
            Some(*n)
        }
        _ => None,
    };
    let prefix_len = match *prefix {
        None | Some(0) if ty.is_blob() => {
            return Err(error(
                ErrorCode::ER_BLOB_KEY_WITHOUT_LENGTH,
                &[&columns[column].name],
            ));
        }
        None => None,
        Some(0) => return Err(error(ErrorCode::ER_KEY_PART_0, &[&columns[column].name])),
        Some(_) if whole.is_none() && !ty.is_blob() => {
            return Err(error(ErrorCode::ER_WRONG_SUB_KEY, &[]));
        }
        Some(n) if whole.is_some_and(|w| n > w) => {
            return Err(error(ErrorCode::ER_WRONG_SUB_KEY, &[]));
        }
        Some(n) if whole == Some(n) => None,
        Some(n) => Some(n),
    };
    let mut size = match prefix_len {
        Some(n) => u64::from(n) * per_char,
        None => ty.max_bytes(),
    };
    let mut prefix_len = prefix_len.map(|n| n as u16);
    let limit = match ty.is_blob() {
        true => ty.max_bytes().min(MAX_KEY_BYTES),
        false => MAX_KEY_BYTES,
    };
    if size > limit {
        let code = ErrorCode::ER_TOO_LONG_KEY;
        if cx.mode.strict || kind != IndexKind::Secondary {
            return Err(error(code, &[&limit]));
        }
        cx.warnings.warn(code, &[&limit]);
        let chars = limit / per_char;
        (prefix_len, size) = (Some(chars as u16), chars * per_char);
    }
    Ok((
        IndexPart {
            column,
            prefix_len,
            desc: part.descending,
        },
        size,
    ))
}

pub(super) fn name_of(
    key: &KeyDef,
    kind: IndexKind,
    columns: &[ColumnDef],
    parts: &[IndexPart],
    taken: &[Arc<str>],
) -> Result<Arc<str>, SqlError> {
    if kind == IndexKind::Primary {
        return Ok("PRIMARY".into());
    }
    let is_taken = |name: &str| taken.iter().any(|t| eq_name(t, name));
    if let Some(name) = &key.name {
        let name = name.as_str();
        check_length(name)?;
        if name.is_empty() || name.eq_ignore_ascii_case("PRIMARY") {
            return Err(error(ErrorCode::ER_WRONG_NAME_FOR_INDEX, &[&name]));
        }
        if is_taken(name) {
            return Err(error(ErrorCode::ER_DUP_KEYNAME, &[&name]));
        }
        return Ok(name.into());
    }
    let base = parts.first().map_or("", |p| &*columns[p.column].name);
    if !is_taken(base) && !base.eq_ignore_ascii_case("PRIMARY") {
        return Ok(base.into());
    }
    let mut n = 2;
    while is_taken(&format!("{base}_{n}")) {
        n += 1;
    }
    Ok(format!("{base}_{n}").into())
}
