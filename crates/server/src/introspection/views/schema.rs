//! Databases, tables, columns, indexes.

use std::sync::Arc;

use nfold_catalog::snapshot::Database;
use nfold_catalog::{IndexKind, TableDef, ViewDef, Visibility};
use nfold_engine::{Engine, block};
use nfold_types::temporal::TimeZone;
use nfold_types::{ColumnType, Timestamp, TypeKind, Value};

use super::{View, long_text, number, text, yes_no};
use crate::ddl::show;
use crate::introspection::system;
use crate::introspection::table_facts::{
    column_extra, column_key, create_options, index_type, part_column, part_expression, row_format,
    shown_cardinality, shown_order,
};

/// The size of a page in bytes.
const PAGE_BYTES: u64 = 16384;

fn sorted(database: &Database) -> Vec<&Arc<TableDef>> {
    let mut tables: Vec<_> = database.tables.values().collect();
    tables.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    tables
}

/// SHOW [FULL] TABLES.
pub fn tables(database: &Database, full: bool) -> View {
    let name = format!("Tables_in_{}", database.def.name);
    let mut columns = vec![(name.as_str(), text(64))];
    if full {
        columns.push((
            "Table_type",
            ColumnType::string(
                TypeKind::Char(11),
                nfold_types::CollationId::UTF8MB4_0900_AI_CI,
            ),
        ));
    }
    let mut view = View::new(&columns);
    for table in sorted(database) {
        let mut row = vec![Value::from(&*table.name)];
        if full {
            row.push(system::table_type(table).into());
        }
        view.push(row);
    }
    view
}

/// SHOW TABLE STATUS.
pub fn table_status(
    database: &Database,
    engine: &Engine,
    mut view_comment: impl FnMut(&TableDef) -> String,
) -> View {
    let time = || ColumnType::new(TypeKind::DateTime(0));
    let collation = nfold_types::CollationId::UTF8MB4_0900_AI_CI;
    let format = ColumnType::string(TypeKind::Char(10), collation);
    let mut view = View::new(&[
        ("Name", text(64)),
        ("Engine", text(64)),
        ("Version", ColumnType::new(TypeKind::Int)),
        ("Row_format", format),
        ("Rows", number()),
        ("Avg_row_length", number()),
        ("Data_length", number()),
        ("Max_data_length", number()),
        ("Index_length", number()),
        ("Data_free", number()),
        ("Auto_increment", number()),
        ("Create_time", ColumnType::new(TypeKind::Timestamp(0))),
        ("Update_time", time()),
        ("Check_time", time()),
        ("Collation", text(64)),
        ("Checksum", number()),
        ("Create_options", text(256)),
        ("Comment", long_text()),
    ]);
    for def in sorted(database) {
        let Some(table) = engine.table(def.id) else {
            if def.is_view() {
                let mut row = vec![Value::from(&*def.name)];
                row.extend(std::iter::repeat_n(Value::Null, 10));
                let made = Timestamp::from_micros(def.create_time as i64 * 1_000_000, 0);
                row.push(Value::Timestamp(made));
                row.extend(std::iter::repeat_n(Value::Null, 5));
                row.push(view_comment(def).into());
                view.push(row);
            } else if system::is_system_table(def) {
                view.push(system_status(def));
            }
            continue;
        };
        let stats = table.stats();
        let bytes = |n: usize| stats.indexes.get(n).map_or(1, |i| i.pages.max(1)) * PAGE_BYTES;
        let auto = def
            .auto_increment_column()
            .and_then(|_| block(|| table.auto_increment_next()).ok())
            // As in MySQL, a table without automatic values has none to show.
            .filter(|next| *next > 1);
        view.push(vec![
            (&*def.name).into(),
            "InnoDB".into(),
            Value::UInt(10),
            row_format(def).into(),
            Value::UInt(table.estimate_rows()),
            Value::UInt(stats.avg_row_bytes.into()),
            Value::UInt(bytes(0)),
            Value::UInt(0),
            Value::UInt((1..def.indexes.len()).map(bytes).sum()),
            Value::UInt(0),
            auto.into(),
            Value::Timestamp(Timestamp::from_micros(
                def.create_time as i64 * 1_000_000,
                0,
            )),
            Value::Null,
            Value::Null,
            def.collation.known().name.into(),
            Value::Null,
            create_options(def).into(),
            (&*def.options.comment).into(),
        ]);
    }
    view
}

/// The row of SHOW TABLE STATUS for a table that is not stored.
fn system_status(def: &TableDef) -> Vec<Value> {
    let mut row = vec![Value::from(&*def.name), Value::Null, Value::UInt(10)];
    row.push(Value::Null);
    row.extend(std::iter::repeat_n(Value::UInt(0), 6));
    row.extend(std::iter::repeat_n(Value::Null, 6));
    row.extend(["".into(), "".into()]);
    row
}

/// SHOW [FULL] COLUMNS and DESCRIBE. `privileges`: the account's privileges on a column; columns
/// without any are left out.
pub fn columns(
    def: &TableDef,
    full: bool,
    zone: &TimeZone,
    privileges: &dyn Fn(&str) -> String,
) -> View {
    let mut names = vec![("Field", text(64)), ("Type", long_text())];
    if full {
        names.push(("Collation", text(64)));
    }
    names.extend([
        ("Null", text(3)),
        (
            "Key",
            ColumnType::string(
                TypeKind::Char(3),
                nfold_types::CollationId::UTF8MB4_0900_AI_CI,
            ),
        ),
        ("Default", long_text()),
        ("Extra", text(256)),
    ]);
    if full {
        names.extend([("Privileges", text(154)), ("Comment", long_text())]);
    }
    let mut view = View::new(&names);
    let named = def.columns.iter().enumerate();
    for (n, c) in named.filter(|(_, c)| c.visibility != Visibility::Hidden) {
        let held = privileges(&c.name);
        if held.is_empty() {
            continue;
        }
        let mut row = vec![Value::from(&*c.name), c.ty.to_string().into()];
        if full {
            let textual = c.ty.collation != nfold_types::CollationId::BINARY
                && (c.ty.is_string() || c.ty.is_enum_or_set());
            row.push(textual.then(|| c.ty.collation.known().name).into());
        }
        row.extend([
            yes_no(c.nullable),
            column_key(def, n).into(),
            show::default_value_text(c, zone).into(),
            column_extra(c).into(),
        ]);
        if full {
            row.extend([held.into(), Value::from(&*c.comment)]);
        }
        view.push(row);
    }
    view
}

/// SHOW INDEX.
pub fn indexes(def: &TableDef, engine: &Engine) -> View {
    let mut view = View::new(&[
        ("Table", text(64)),
        ("Non_unique", ColumnType::new(TypeKind::Int)),
        ("Key_name", text(64)),
        (
            "Seq_in_index",
            ColumnType::new(TypeKind::Int).with_unsigned(),
        ),
        ("Column_name", text(64)),
        ("Collation", text(1)),
        ("Cardinality", ColumnType::bigint()),
        ("Sub_part", ColumnType::bigint()),
        ("Packed", ColumnType::new(TypeKind::Null)),
        ("Null", text(3)),
        ("Index_type", text(11)),
        ("Comment", text(8)),
        ("Index_comment", text(2048)),
        ("Visible", text(3)),
        ("Expression", long_text()),
    ]);
    let table = engine.table(def.id);
    let stats = table.as_ref().map(|t| t.stats());
    for (n, index) in def
        .indexes
        .iter()
        .enumerate()
        .filter(|(_, i)| i.kind != IndexKind::HiddenRowId)
    {
        for (seq, part) in index.shown_parts().iter().enumerate() {
            let column = &def.columns[part.column];
            let distinct = stats
                .as_ref()
                .and_then(|s| shown_cardinality(s, (index, n), seq));
            view.push(vec![
                (&*def.name).into(),
                Value::Int((!index.is_unique()).into()),
                (&*index.name).into(),
                Value::UInt(seq as u64 + 1),
                part_column(column).into(),
                shown_order(index, part).into(),
                Value::Int(distinct.unwrap_or(0) as i64),
                part.prefix_len.map(i64::from).into(),
                Value::Null,
                (if column.nullable { "YES" } else { "" }).into(),
                index_type(index).into(),
                "".into(),
                (&*index.comment).into(),
                yes_no(index.visible),
                part_expression(column).into(),
            ]);
        }
    }
    view
}

/// SHOW CREATE VIEW, and SHOW CREATE TABLE of a view.
pub fn create_view(def: &TableDef, definition: &ViewDef, quoting: show::Quoting) -> View {
    let mut view = View::new(&[
        ("View", text(64)),
        ("Create View", text(1024)),
        ("character_set_client", text(32)),
        ("collation_connection", text(64)),
    ]);
    let collation = definition.collation.known();
    view.push(vec![
        (&*def.name).into(),
        show::create_view(def, definition, quoting).into(),
        collation.charset.name.into(),
        collation.name.into(),
    ]);
    view
}

/// SHOW CREATE TABLE. The flag says whether the table is temporary.
pub fn create_table(
    (def, temporary): (&TableDef, bool),
    engine: &Engine,
    zone: &TimeZone,
    quoting: show::Quoting,
) -> View {
    let mut view = View::new(&[("Table", text(64)), ("Create Table", text(1024))]);
    let next = engine
        .table(def.id)
        .and_then(|t| block(|| t.auto_increment_next()).ok())
        .unwrap_or(1);
    view.push(vec![
        (&*def.name).into(),
        show::create_table((def, temporary), next, zone, quoting).into(),
    ]);
    view
}
