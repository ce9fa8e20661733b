//! Rows as they must be, and the table that holds them.

use std::collections::BTreeMap;
use std::sync::Arc;

use nfold_catalog::{ColumnDef, ColumnDefault, IndexKind, IndexPart, TableOptions};
use nfold_engine::{IndexSpec, Table, TableSpec};
use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, TextSize, TypeKind, Value, ValueRef};

/// (k, s, b) of a row, by its id.
pub type Fields = (Option<i64>, Option<String>, Option<String>);
/// All rows.
pub type Rows = BTreeMap<i64, Fields>;

/// `t (id BIGINT, k INT, s VARCHAR(30), b LONGTEXT, PRIMARY KEY (id), KEY k (k DESC, s), UNIQUE KEY s (s))`
pub fn table() -> TableSpec {
    let column = |name: &str, ty, nullable| ColumnDef {
        name: name.into(),
        ty,
        nullable,
        default: ColumnDefault::Null,
        on_update_now: None,
        auto_increment: false,
        comment: Box::default(),
    };
    let part = |column, desc| IndexPart {
        column,
        prefix_len: None,
        desc,
    };
    let index = |name: &str, kind, parts| IndexSpec {
        name: name.into(),
        kind,
        parts,
        comment: Box::default(),
    };
    let text = CollationId::UTF8MB4_0900_AI_CI;
    TableSpec {
        schema: "d".into(),
        name: "t".into(),
        columns: vec![
            column("id", ColumnType::bigint(), false),
            column("k", ColumnType::new(TypeKind::Int), true),
            column("s", ColumnType::varchar(30, text), true),
            column(
                "b",
                ColumnType::string(TypeKind::Text(TextSize::Long), text),
                true,
            ),
        ],
        indexes: vec![
            index("PRIMARY", IndexKind::Primary, vec![part(0, false)]),
            index(
                "k",
                IndexKind::Secondary,
                vec![part(1, true), part(2, false)],
            ),
            index("s", IndexKind::Unique, vec![part(2, false)]),
        ],
        collation: text,
        options: TableOptions::default(),
        auto_increment: 0,
    }
}

/// Appends the row image.
pub fn encode(table: &Arc<Table>, id: i64, fields: &Fields, out: &mut Vec<u8>) {
    let text = |s: &Option<String>| Value::from(s.as_deref());
    let values = [
        Value::Int(id),
        Value::from(fields.0),
        text(&fields.1),
        text(&fields.2),
    ];
    table
        .layout()
        .encode(values.iter().map(Value::as_ref), out)
        .expect("the model's rows fit the table");
}

/// Reads a row image back; `None` if it is no row of the table.
pub fn decode(table: &Arc<Table>, image: &[u8]) -> Option<(i64, Fields)> {
    let layout = table.layout();
    let text = |n| match layout.get(image, n).ok()? {
        ValueRef::Null => Some(None),
        ValueRef::Bytes(b) => Some(Some(String::from_utf8(b.to_vec()).ok()?)),
        _ => None,
    };
    let ValueRef::Int(id) = layout.get(image, 0).ok()? else {
        return None;
    };
    let k = match layout.get(image, 1).ok()? {
        ValueRef::Null => None,
        ValueRef::Int(k) => Some(k),
        _ => return None,
    };
    Some((id, (k, text(2)?, text(3)?)))
}
