//! Databases and tables.

use nfold_catalog::{DatabaseDef, Privileges, TableDef, ViewCheck};
use nfold_engine::block;
use nfold_types::{SqlError, Value};

use super::rows::{Cx, Put};
use super::{INFORMATION, is_system_table};
use crate::introspection::table_facts::{create_options, row_format};
use crate::unix_time::unix_time;

/// The size of a page in bytes.
const PAGE_BYTES: u64 = 16384;
/// The name of the only catalog.
pub(super) const CATALOG: &str = "def";

/// The databases that the account may see, system schemas last.
fn databases(cx: &Cx<'_>) -> Vec<DatabaseDef> {
    let mut all: Vec<DatabaseDef> = cx
        .schema
        .databases()
        .filter(|d| cx.sees_database(&d.def.name))
        .map(|d| d.def.clone())
        .collect();
    all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let made = super::SCHEMAS.iter();
    let seen = made.filter(|(name, ..)| cx.sees_database(name));
    all.extend(seen.filter_map(|(name, ..)| super::database(name)));
    all
}

pub(super) fn schemata(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for d in databases(cx) {
        let collation = d.collation.known();
        put(vec![
            CATALOG.into(),
            (&*d.name).into(),
            collation.charset.name.into(),
            collation.name.into(),
            Value::Null,
            "NO".into(),
        ])?;
    }
    Ok(())
}

pub(super) fn schemata_extensions(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    databases(cx)
        .iter()
        .try_for_each(|d| put(vec![CATALOG.into(), (&*d.name).into(), "".into()]))
}

/// Estimates for a stored table; sizes in bytes.
struct Sizes {
    rows: u64,
    avg_row: u64,
    data: u64,
    index: u64,
    /// The pages of the clustered index, and of all other indexes.
    pages: (u64, u64),
    auto_increment: Option<u64>,
}

/// `None` for a table that is not stored, or has just been dropped.
fn sizes(cx: &Cx<'_>, def: &TableDef) -> Option<Sizes> {
    let table = cx.server.engine.table(def.id)?;
    let stats = table.stats();
    let pages = |n: usize| stats.indexes.get(n).map_or(1, |i| i.pages.max(1));
    let data = pages(0);
    let index: u64 = (1..def.indexes.len()).map(pages).sum();
    let auto = def.auto_increment_column();
    Some(Sizes {
        rows: table.estimate_rows(),
        avg_row: stats.avg_row_bytes.into(),
        data: data * PAGE_BYTES,
        index: index * PAGE_BYTES,
        pages: (data, index),
        auto_increment: auto.and_then(|_| block(|| table.auto_increment_next()).ok()),
    })
}

/// The columns from TABLE_ROWS to DATA_FREE.
fn size_columns(sizes: Option<&Sizes>) -> [Value; 6] {
    let s = |f: fn(&Sizes) -> u64| Value::UInt(sizes.map_or(0, f));
    [
        s(|s| s.rows),
        s(|s| s.avg_row),
        s(|s| s.data),
        Value::UInt(0),
        s(|s| s.index),
        Value::UInt(0),
    ]
}

/// When a table was created, in seconds since 1970; for a system table, when the server started.
fn created(cx: &Cx<'_>, def: &TableDef) -> u64 {
    if !is_system_table(def) {
        return def.create_time;
    }
    server_start(cx)
}

/// When the server started, in seconds since 1970.
pub(super) fn server_start(cx: &Cx<'_>) -> u64 {
    let up = cx.server.started.elapsed();
    unix_time().saturating_sub(up).as_secs()
}

/// The bytes of a table's pages, those of its indexes included.
pub(super) fn file_bytes(cx: &Cx<'_>, def: &TableDef) -> u64 {
    sizes(cx, def).map_or(0, |s| s.data + s.index)
}

/// One row of TABLES.
fn table_row(cx: &Cx<'_>, def: &TableDef) -> Vec<Value> {
    if def.is_view() {
        return view_row(cx, def);
    }
    let information = *def.schema == *INFORMATION;
    let system = is_system_table(def);
    let sizes = sizes(cx, def);
    let engine = if system {
        "PERFORMANCE_SCHEMA"
    } else {
        "InnoDB"
    };
    let mut row = vec![
        CATALOG.into(),
        (&*def.schema).into(),
        (&*def.name).into(),
        super::table_type(def).into(),
        (!information).then_some(engine).into(),
        Value::Int(10),
        (!information).then(|| row_format(def)).into(),
    ];
    row.extend(size_columns(sizes.as_ref()));
    row.extend([
        sizes
            .and_then(|s| s.auto_increment)
            .filter(|next| *next > 1)
            .into(),
        cx.local(created(cx, def)),
        Value::Null,
        Value::Null,
        (!information).then(|| def.collation.known().name).into(),
        Value::Null,
        create_options(def).into(),
        (&*def.options.comment).into(),
    ]);
    row
}

/// The row of TABLES for a view.
fn view_row(cx: &Cx<'_>, def: &TableDef) -> Vec<Value> {
    let mut row = vec![
        CATALOG.into(),
        (&*def.schema).into(),
        (&*def.name).into(),
        super::table_type(def).into(),
    ];
    row.extend(std::iter::repeat_n(Value::Null, 10));
    row.push(cx.local(created(cx, def)));
    row.extend(std::iter::repeat_n(Value::Null, 5));
    row.push(match cx.check_view(def) {
        Ok(()) => "VIEW".into(),
        Err(e) => e.message.to_string().into(),
    });
    row
}

pub(super) fn views(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in cx.tables() {
        let Some(view) = def.view() else { continue };
        let collation = view.collation.known();
        let text = String::from_utf8_lossy(&view.text).into_owned();
        let shown = cx
            .held
            .on_table(&def.schema, &def.name)
            .contains(Privileges::SHOW_VIEW.union(Privileges::SELECT));
        put(vec![
            CATALOG.into(),
            (&*def.schema).into(),
            (&*def.name).into(),
            if shown { text } else { String::new() }.into(),
            match view.check {
                ViewCheck::None => "NONE",
                ViewCheck::Local => "LOCAL",
                ViewCheck::Cascaded => "CASCADED",
            }
            .into(),
            if view.updatable { "YES" } else { "NO" }.into(),
            format!("{}@{}", view.definer.0, view.definer.1).into(),
            if view.invoker { "INVOKER" } else { "DEFINER" }.into(),
            collation.charset.name.into(),
            collation.name.into(),
        ])?;
    }
    Ok(())
}

pub(super) fn tables(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    let all = cx.tables();
    all.iter().try_for_each(|def| put(table_row(cx, def)))
}

pub(super) fn tables_extensions(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in cx.tables() {
        put(vec![
            CATALOG.into(),
            (&*def.schema).into(),
            (&*def.name).into(),
            Value::Null,
            Value::Null,
        ])?;
    }
    Ok(())
}

/// Each table is shown as one partition without a name.
pub(super) fn partitions(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in cx.tables().into_iter().filter(|t| !t.is_view()) {
        let sizes = sizes(cx, def);
        let mut row = vec![CATALOG.into(), (&*def.schema).into(), (&*def.name).into()];
        row.extend(std::iter::repeat_n(Value::Null, 10));
        row.extend(size_columns(sizes.as_ref()));
        row.extend([
            cx.local(created(cx, def)),
            Value::Null,
            Value::Null,
            Value::Null,
            "".into(),
            "".into(),
            Value::Null,
        ]);
        put(row)?;
    }
    Ok(())
}

/// The stored tables, for accounts that may see internal tables of the engine.
///
/// # Errors
/// 1227 without PROCESS.
pub(super) fn stored<'a>(cx: &'a Cx<'_>) -> Result<Vec<&'a TableDef>, SqlError> {
    super::accounts::need_process(cx)?;
    let all = cx.schema.tables().filter(|t| !t.is_view());
    let mut all: Vec<&TableDef> = all.map(|t| &**t).collect();
    all.sort_unstable_by_key(|t| t.id);
    Ok(all)
}

/// `database/table`, the format of the engine's tables.
pub(super) fn path(def: &TableDef) -> String {
    format!("{}/{}", def.schema, def.name)
}

/// The number of columns that the engine adds: row id (without a key), transaction id, undo
/// pointer.
const HIDDEN_COLUMNS: i64 = 3;

pub(super) fn innodb_tables(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in stored(cx)? {
        put(vec![
            Value::UInt(def.id.0),
            path(def).into(),
            Value::Int(33),
            Value::Int(def.columns.len() as i64 + HIDDEN_COLUMNS),
            Value::Int(def.space.into()),
            row_format(def).into(),
            Value::UInt(0),
            "Single".into(),
            Value::Int(0),
            Value::Int(def.row_version.into()),
        ])?;
    }
    Ok(())
}

pub(super) fn innodb_tablestats(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in stored(cx)? {
        let Some(s) = sizes(cx, def) else { continue };
        put(vec![
            Value::UInt(def.id.0),
            path(def).into(),
            "Initialized".into(),
            Value::UInt(s.rows),
            Value::UInt(s.pages.0),
            Value::UInt(s.pages.1),
            Value::UInt(0),
            Value::UInt(s.auto_increment.unwrap_or(0)),
            Value::Int(1),
        ])?;
    }
    Ok(())
}
