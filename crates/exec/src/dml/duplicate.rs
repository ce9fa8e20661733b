//! Duplicate keys: the error, and reading the existing row.

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_engine::{EqualityKeys, Read, ReadSpec, RowBatch, RowLock, Table};
use nfold_json::{FieldType, Json, Opaque, Work};
use nfold_observe::StatusCounter;
use nfold_types::convert::append_binary;
use nfold_types::key::{Elements, element_layout};
use nfold_types::{
    ColumnType, ErrorCode, Level, NoCheckpoint, SqlError, TypeKind, ValueRef, charset, wire,
};

use crate::expr::documents;
use crate::runtime::Runtime;

/// Returns the error; with IGNORE records a warning instead.
pub(super) fn fail_or_warn(
    rt: &Runtime<'_>,
    ignore: bool,
    error: SqlError,
) -> Result<(), SqlError> {
    if !ignore {
        return Err(error);
    }
    rt.warnings.borrow_mut().push_error(Level::Warning, &error);
    Ok(())
}

/// Appends the key of a row in an index of its table, which is not a multi-valued one.
pub(super) fn index_key(
    table: &Table,
    index: usize,
    image: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let key = table.key_layout(index);
    key.encode_row(table.layout(), image, out)
        .map_err(|e| SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, e.to_string()))
}

/// The keys of a row in an index of its table: one for each element in a multi-valued index.
pub(super) fn index_keys(
    rt: &Runtime<'_>,
    table: &Table,
    index: usize,
    image: &[u8],
) -> Result<Vec<Vec<u8>>, SqlError> {
    if table.index(index).is_multi_valued() {
        return rt.drive(|_| table.entry_keys(index, image, &[]));
    }
    let mut key = Vec::new();
    index_key(table, index, image, &mut key)?;
    Ok(vec![key])
}

/// Whether changing a row requires the value of the column: because an index or a stored expression
/// reads it.
pub(super) fn is_needed(def: &TableDef, column: usize) -> bool {
    let mut parts = def.indexes.iter().flat_map(|index| &index.parts);
    let name = &def.columns[column].name;
    parts.any(|part| part.column == column) || def.stored_exprs().any(|e| e.names(name))
}

/// Locks the rows with this index key exclusively, and reads them into `out`. Long values of
/// columns that are not `used` are not fetched from their overflow pages.
pub(super) fn read_locked(
    rt: &Runtime<'_>,
    table: &Arc<Table>,
    (index, key): (usize, &[u8]),
    used: impl Fn(usize) -> bool,
    out: &mut RowBatch,
) -> Result<(), SqlError> {
    let mut points = EqualityKeys::new();
    points.push(key);
    points.seal();
    let spec = ReadSpec {
        index,
        lock: RowLock::Exclusive,
        columns: (0..table.def().columns.len())
            .filter(|c| used(*c))
            .collect(),
        ..ReadSpec::default()
    };
    rt.counters.add(StatusCounter::HandlerReadKey, 1);
    table.count_fetches(table.io_place(index), 1);
    let mut read = Read::points(table.clone(), spec, points);
    out.clear();
    while rt.read(&mut read, out)? {}
    Ok(())
}

/// Error 1062 for a row whose key in index `index` exists already.
pub(super) fn duplicate_error(
    rt: &Runtime<'_>,
    table: &Table,
    index: usize,
    image: &[u8],
) -> SqlError {
    let def: &TableDef = table.def();
    let parts = &def.indexes[index].parts;
    let mut shown = String::new();
    for (n, part) in parts.iter().enumerate() {
        if n > 0 {
            shown.push('-');
        }
        let mut text = Vec::new();
        let ty = &def.columns[part.column].ty;
        if let Some(element) = def.array_of(part.column) {
            append_array(rt, table, (image, part.column), element, &mut text);
            append_value(&text, &ColumnType::json(), &mut shown);
            continue;
        }
        match table.layout().get(image, part.column) {
            Ok(ValueRef::Null) | Err(_) => text.extend_from_slice(b"NULL"),
            Ok(v) => {
                wire::display_text(v, ty, rt.env.time_zone(), &mut text);
                if let Some(n) = part.prefix_len {
                    let keep = ty.collation.known().char_prefix(&text, n.into()).len();
                    text.truncate(keep);
                }
            }
        }
        append_value(&text, ty, &mut shown);
    }
    shown.truncate(shown.floor_char_boundary(ENTRY_BYTES));
    let key = if def.indexes[index].is_clustered() {
        "PRIMARY"
    } else {
        &*def.indexes[index].name
    };
    SqlError::new(
        ErrorCode::ER_DUP_ENTRY,
        &[&shown, &format_args!("{}.{key}", def.name)],
    )
}

/// The maximum length in bytes of the key in error 1062.
const ENTRY_BYTES: usize = 64;

/// Appends a value as error 1062 shows it: text in UTF-8, up to its first zero byte, and the bytes
/// of binary strings and BIT values. The zero bytes at the end of a BINARY value are left out,
/// but for its first byte.
fn append_value(text: &[u8], ty: &ColumnType, shown: &mut String) {
    let set = ty.charset();
    match ty.kind {
        TypeKind::Binary(_) => {
            let end = text.iter().rposition(|b| *b != 0).unwrap_or(0) + 1;
            append_binary(&text[..end.min(text.len())], ENTRY_BYTES, shown);
        }
        TypeKind::Bit(_) => append_binary(text, ENTRY_BYTES, shown),
        _ if ty.is_string() && set.is_binary() => append_binary(text, ENTRY_BYTES, shown),
        _ => {
            let mut converted = Vec::new();
            let text = match ty.is_string() && !set.is_utf8() {
                true => {
                    charset::convert(set, &charset::UTF8MB4, text, &mut converted);
                    &converted
                }
                false => text,
            };
            let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
            shown.push_str(&String::from_utf8_lossy(&text[..end]));
        }
    }
}

/// Appends the elements of a multi-valued key part. MySQL shows as many characters as an element
/// has bytes.
fn append_array(
    rt: &Runtime<'_>,
    table: &Table,
    (image, column): (&[u8], usize),
    element: &ColumnType,
    out: &mut Vec<u8>,
) {
    let Ok(ValueRef::Bytes(packed)) = table.layout().get(image, column) else {
        out.extend_from_slice(b"NULL");
        return;
    };
    let layout = element_layout(element);
    let mut text = Vec::from(b"[");
    for (n, mut key) in Elements(packed).enumerate() {
        if n > 0 {
            text.extend_from_slice(b", ");
        }
        let Ok(value) = layout.decode_part(0, &mut key) else {
            continue;
        };
        let mut shown = Vec::new();
        wire::display_text(value.as_ref(), element, rt.env.time_zone(), &mut shown);
        match element.kind {
            _ if element.is_numeric() => text.extend_from_slice(&shown),
            TypeKind::VarBinary(_) => {
                let bytes = Opaque {
                    field_type: FieldType::VARCHAR,
                    bytes: shown,
                };
                let work = Work::new(&NoCheckpoint);
                let doc = nfold_json::binary::encode(&Json::Opaque(bytes), &work);
                text.extend(
                    doc.and_then(|doc| documents::text(&doc))
                        .unwrap_or_default(),
                );
            }
            _ => text.extend(nfold_json::quote(&String::from_utf8_lossy(&shown))),
        }
    }
    text.push(b']');
    text.truncate(super::array_elements::shown_bytes(element));
    out.extend_from_slice(&text);
}
