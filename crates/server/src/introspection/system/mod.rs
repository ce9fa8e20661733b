//! `information_schema` and `performance_schema`: the definitions of their tables, and their rows.
//! The binder, SHOW and DESCRIBE use the definitions; the executor reads the rows through
//! `SessionEnv`.
//!
//! ```text
//! *.sql ── once ──▶ TableDef ─┬─▶ binder, DESCRIBE, SHOW TABLES
//!                             └─▶ rows: schema │ columns │ keys │ accounts │ facts │ activity │ ... ──▶ executor
//! ```
//! No row is stored: each read computes the rows of the whole table from the schema snapshot, the
//! engine's statistics, the accounts and the registry of connections. Rows that an account may not
//! see are left out.
//!
//! # Invariants
//! - Y1: every `CREATE TABLE` text of `*.sql` parses and binds.

mod accounts;
mod activity;
mod columns;
mod digests;
mod facts;
mod file_io;
mod histograms;
mod keys;
mod locks;
mod mysql;
mod replication;
mod rows;
mod schema;
mod summaries;
mod table_io;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use nfold_catalog::schema::eq_name;
use nfold_catalog::{IndexDef, IndexId, IndexKind, SchemaSnapshot, TableDef, TableId};
use nfold_sql::ast::Statement;
use nfold_sql::lexer::LexMode;
use nfold_types::collation::CollationId;
use nfold_types::convert::store::StoreMode;
use nfold_types::temporal::parse::DateFlags;
use nfold_types::temporal::{TimeZone, Timestamp};
use nfold_types::{SqlError, TypeKind, Warnings};

use crate::ddl::bind;
use crate::ddl::bind::DdlCx;
use crate::session::env::Env;
use crate::session::server::ServerState;
pub(crate) use crate::session::system_schemas::{
    INFORMATION, MYSQL, PERFORMANCE, SCHEMAS, canonical, database, is_open_schema, is_system_schema,
};
use crate::session::system_schemas::{SystemRow, SystemTables, TruncateRefusal};

pub use columns::privileges_text;

/// The system tables, as the sessions use them.
pub struct Tables;

impl SystemTables for Tables {
    fn find(&self, schema: &str, name: &str) -> Option<&'static Arc<TableDef>> {
        find(schema, name)
    }

    fn rows(
        &self,
        env: &Env,
        schema: &str,
        name: &str,
        row: &mut SystemRow<'_>,
    ) -> Result<(), SqlError> {
        rows::rows(env, schema, name, row)
    }

    fn truncate(&self, server: &ServerState, name: &str) -> Result<(), TruncateRefusal> {
        summaries::truncate(server, name)
    }
}

/// The definitions of the tables of each system schema, in the order of [`SCHEMAS`].
const TEXTS: [&str; 3] = [
    include_str!("information_schema.sql"),
    concat!(
        include_str!("performance_schema.sql"),
        include_str!("instruments.sql")
    ),
    include_str!("mysql.sql"),
];

static TABLES: LazyLock<Vec<Arc<TableDef>>> = LazyLock::new(|| {
    let texts = SCHEMAS
        .iter()
        .zip(TEXTS)
        .flat_map(|((schema, collation), text)| {
            text.split(");\n").map(|t| (*schema, *collation, t))
        });
    let mut all: Vec<_> = texts
        .filter(|(_, _, text)| text.contains("CREATE TABLE"))
        .enumerate()
        .map(|(n, (schema, collation, text))| {
            Arc::new(define(n as u64, schema, collation, &format!("{text})")))
        })
        .collect();
    let place = |t: &TableDef| SCHEMAS.iter().position(|(schema, _)| *t.schema == **schema);
    all.sort_by(|a, b| (place(a), &a.name).cmp(&(place(b), &b.name)));
    all
});

/// Binds a definition of `*.sql`. No stored table has such an id.
fn define(n: u64, schema: &str, collation: CollationId, text: &str) -> TableDef {
    let sql = &text[text.find("CREATE TABLE").unwrap_or_default()..];
    let parsed = nfold_sql::parser::parse(sql.as_bytes(), LexMode::default());
    let Ok(Statement::CreateTable(create)) = parsed else {
        panic!("Y1: the texts of system tables parse: {sql}");
    };
    let mode = StoreMode {
        strict: true,
        ignore: false,
        dates: DateFlags::default(),
        truncate_fractional: false,
        time_zone: TimeZone::UTC,
        now: Timestamp::from_micros(0, 6),
    };
    let mut cx = DdlCx {
        mode: &mode,
        collation,
        connection: collation,
        sql_mode: nfold_plan::SqlMode::DEFAULT,
        no_engine_substitution: true,
        schema: &SchemaSnapshot::default(),
        foreign_key_checks: true,
        standard_keys: true,
        has_hash_indexes: false,
        fulltext: nfold_catalog::FulltextOptions {
            ngram_chars: 2,
            min_chars: 3,
            max_chars: 84,
            stopwords: true,
        },
        warnings: &mut Warnings::default(),
    };
    let spec = bind::table::bind(&create, &[], schema, &mut cx)
        .unwrap_or_else(|e| panic!("Y1: the texts of system tables bind: {e:?}"));
    let mut columns = spec.columns;
    for c in &mut columns {
        // A column that is always NULL has the type of NULL.
        if c.ty.kind == TypeKind::VarBinary(0) {
            c.ty.kind = TypeKind::Null;
        }
    }
    let indexes = spec.indexes.into_iter().map(|i| IndexDef {
        id: IndexId(0),
        name: i.name,
        kind: i.kind,
        parts: i.parts,
        root: 0,
        comment: i.comment,
        btree: i.btree,
        generated: i.generated,
        visible: i.visible,
    });
    TableDef {
        id: TableId(u64::MAX - 1 - n),
        schema: spec.schema,
        name: spec.name,
        columns,
        indexes: indexes.collect(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        bound: nfold_catalog::BoundExprs::default(),
        collation,
        options: spec.options,
        space: 0,
        row_version: 0,
        create_time: 0,
        relation: nfold_catalog::Relation::Table,
    }
}

/// The system tables of a schema, in the order of their names.
pub fn tables_of(schema: &str) -> impl Iterator<Item = &'static Arc<TableDef>> {
    let schema = canonical(schema).unwrap_or_default();
    TABLES.iter().filter(move |t| *t.schema == *schema)
}

/// Every system table.
pub fn tables() -> &'static [Arc<TableDef>] {
    &TABLES
}

/// The system table with this name.
pub fn find(schema: &str, name: &str) -> Option<&'static Arc<TableDef>> {
    let schema = canonical(schema)?;
    tables_of(schema).find(|t| {
        if schema == INFORMATION {
            eq_name(&t.name, name)
        } else {
            *t.name == *name
        }
    })
}

/// Whether a definition belongs to a system table, which is not stored.
pub fn is_system_table(def: &TableDef) -> bool {
    is_system_schema(&def.schema)
}

/// The type of a table in SHOW FULL TABLES.
pub fn table_type(def: &TableDef) -> &'static str {
    if def.is_view() {
        "VIEW"
    } else if *def.schema == *INFORMATION {
        "SYSTEM VIEW"
    } else {
        "BASE TABLE"
    }
}

/// The keys that clients see.
fn visible_keys(def: &TableDef) -> impl Iterator<Item = (usize, &IndexDef)> {
    let keys = def.indexes.iter().enumerate();
    keys.filter(|(_, i)| i.kind != IndexKind::HiddenRowId)
}
