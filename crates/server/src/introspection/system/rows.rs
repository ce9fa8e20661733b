//! Computes the rows of a system table, given its name.

use std::sync::Arc;

use nfold_catalog::{Account, HeldPrivileges, Privileges, SchemaSnapshot, TableDef};
use nfold_exec::SessionEnv;
use nfold_types::{DateTime, SqlError, Timestamp, TypeKind, Value};

use super::{
    accounts, activity, columns, digests, facts, file_io, histograms, keys, locks, mysql,
    replication, schema, table_io,
};
use crate::session::ServerState;
use crate::session::env::Env;
use crate::session::plan_info::check_view;
pub(super) use crate::session::system_schemas::PutRow as Put;

/// The sources of the rows.
pub(super) struct Cx<'a> {
    pub env: &'a Env,
    pub server: &'a ServerState,
    pub schema: Arc<SchemaSnapshot>,
    /// The current account. A dropped account sees no databases.
    pub account: Option<Arc<Account>>,
    /// Its privileges, with those of the active roles.
    pub held: HeldPrivileges,
}

impl Cx<'_> {
    /// The account's privileges on a database.
    pub fn on_database(&self, name: &str) -> Privileges {
        if super::is_open_schema(name) {
            return Privileges::SELECT;
        }
        self.held.on_database(name)
    }

    /// Whether the account has all of `wanted` globally.
    pub fn has_global(&self, wanted: Privileges) -> bool {
        self.held.global().contains(wanted)
    }

    /// Whether the account may see that a database exists.
    pub fn sees_database(&self, name: &str) -> bool {
        super::is_open_schema(name)
            || self.has_global(Privileges::SHOW_DATABASES)
            || self.held.sees_database(name)
    }

    /// Whether the account may see all tables of a database.
    pub fn sees_tables(&self, name: &str) -> bool {
        self.on_database(name).has_any(Privileges::all_table())
    }

    /// The account's privileges on a column, those on its table included.
    pub fn on_column(&self, table: &TableDef, column: &str) -> Privileges {
        if super::is_open_schema(&table.schema) {
            return Privileges::SELECT;
        }
        let (schema, name) = (&*table.schema, &*table.name);
        let on_table = self.held.on_table(schema, name);
        on_table.union(self.held.on_column(schema, name, column))
    }

    /// All tables that the account may see: stored tables by database and name, then the system
    /// tables.
    pub fn tables(&self) -> Vec<&TableDef> {
        let sees = |t: &&Arc<TableDef>| self.held.sees_table(&t.schema, &t.name);
        let stored = self.schema.tables().filter(sees);
        let mut all: Vec<&TableDef> = stored.map(|t| &**t).collect();
        all.sort_unstable_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        let open = |t: &&Arc<TableDef>| {
            super::is_open_schema(&t.schema) || self.held.sees_table(&t.schema, &t.name)
        };
        all.extend(super::tables().iter().filter(open).map(|t| &**t));
        all
    }

    /// Error 1356 if a table, column or function that a view names does not exist any more.
    pub fn check_view(&self, def: &TableDef) -> Result<(), SqlError> {
        check_view((self.env, &self.server.engine), &self.schema, def)
    }

    /// Seconds since 1970 as a date and time in the session's time zone.
    pub fn local(&self, seconds: u64) -> Value {
        let at = Timestamp::from_micros(seconds as i64 * 1_000_000, 0);
        let local: Option<DateTime> = self.env.time_zone().to_local(at);
        local.map_or(Value::Null, Value::DateTime)
    }
}

/// Calls `row` with every row of the system table `name`; an unknown table has none.
///
/// # Errors
/// The errors of `row`, and 1227 if the table needs a global privilege.
pub(super) fn rows(
    env: &Env,
    schema_name: &str,
    name: &str,
    row: &mut dyn FnMut(&[Value]) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let Some(def) = super::find(schema_name, name) else {
        return Ok(());
    };
    let catalog = env.server.engine.catalog();
    let login = &env.login;
    let accounts = catalog.accounts();
    let account = accounts.get(&login.account_user, &login.account_host);
    let mut held: Vec<_> = account.into_iter().cloned().collect();
    held.extend(accounts.with_granted(&env.active_roles));
    let cx = Cx {
        env,
        server: &env.server,
        schema: catalog.snapshot(),
        account: account.cloned(),
        held: HeldPrivileges::new(held, accounts.database_names),
    };
    let put: &mut Put<'_> = &mut |mut values| {
        debug_assert_eq!(values.len(), def.columns.len(), "a value for each column");
        for (value, column) in values.iter_mut().zip(&def.columns) {
            number_member(value, &column.ty.kind);
        }
        row(&values)
    };
    match &*def.schema {
        super::PERFORMANCE => performance(&cx, &def.name, put),
        super::MYSQL => mysql::rows(&cx, def, put),
        _ => information(&cx, &def.name, put),
    }
}

/// Replaces the text of an ENUM member by its number.
fn number_member(value: &mut Value, kind: &TypeKind) {
    if let (TypeKind::Enum(members), Value::Bytes(text)) = (kind, &*value) {
        let at = members.iter().position(|m| m.as_bytes() == text.as_slice());
        debug_assert!(at.is_some(), "a member of the ENUM");
        *value = Value::UInt(at.map_or(0, |at| at as u64 + 1));
    }
}

fn information(cx: &Cx<'_>, name: &str, put: &mut Put<'_>) -> Result<(), SqlError> {
    match name {
        "SCHEMATA" => schema::schemata(cx, put),
        "SCHEMATA_EXTENSIONS" => schema::schemata_extensions(cx, put),
        "TABLES" => schema::tables(cx, put),
        "TABLES_EXTENSIONS" => schema::tables_extensions(cx, put),
        "PARTITIONS" => schema::partitions(cx, put),
        "INNODB_TABLES" => schema::innodb_tables(cx, put),
        "VIEWS" => schema::views(cx, put),
        "INNODB_TABLESTATS" => schema::innodb_tablestats(cx, put),
        "COLUMNS" => columns::columns(cx, put),
        "COLUMNS_EXTENSIONS" => columns::columns_extensions(cx, put),
        "STATISTICS" => keys::statistics(cx, put),
        "KEY_COLUMN_USAGE" => keys::key_column_usage(cx, put),
        "REFERENTIAL_CONSTRAINTS" => keys::referential_constraints(cx, put),
        "INNODB_FOREIGN" => keys::innodb_foreign(cx, put),
        "INNODB_FOREIGN_COLS" => keys::innodb_foreign_cols(cx, put),
        "CHECK_CONSTRAINTS" => keys::check_constraints(cx, put),
        "TABLE_CONSTRAINTS" => keys::table_constraints(cx, put),
        "TABLE_CONSTRAINTS_EXTENSIONS" => keys::table_constraints_extensions(cx, put),
        "INNODB_INDEXES" => keys::innodb_indexes(cx, put),
        "INNODB_FT_DEFAULT_STOPWORD" => facts::stopwords(put),
        "INNODB_FIELDS" => keys::innodb_fields(cx, put),
        "COLUMN_STATISTICS" => histograms::column_statistics(cx, put),
        "USER_PRIVILEGES" => accounts::user_privileges(cx, put),
        "TABLE_PRIVILEGES" => accounts::table_privileges(cx, put),
        "COLUMN_PRIVILEGES" => accounts::column_privileges(cx, put),
        "APPLICABLE_ROLES" => accounts::applicable_roles(cx, put, false),
        "ADMINISTRABLE_ROLE_AUTHORIZATIONS" => accounts::applicable_roles(cx, put, true),
        "ENABLED_ROLES" => accounts::enabled_role_rows(cx, put),
        "ROLE_TABLE_GRANTS" => accounts::role_table_grants(cx, put),
        "ROLE_COLUMN_GRANTS" => accounts::role_column_grants(cx, put),
        "SCHEMA_PRIVILEGES" => accounts::schema_privileges(cx, put),
        "USER_ATTRIBUTES" => accounts::user_attributes(cx, put),
        "ENGINES" => facts::engines(put),
        "PLUGINS" => facts::plugins(put),
        "CHARACTER_SETS" => facts::character_sets(put),
        "COLLATIONS" => facts::collations(put),
        "COLLATION_CHARACTER_SET_APPLICABILITY" => facts::applicability(put),
        "KEYWORDS" => facts::keywords(put),
        "PROCESSLIST" => activity::processlist(cx, put),
        "INNODB_TRX" => locks::innodb_trx(cx, put),
        "INNODB_METRICS" => activity::innodb_metrics(cx, put),
        "INNODB_CMP" | "INNODB_CMP_RESET" => activity::compression(cx, put),
        "INNODB_CMPMEM" | "INNODB_CMPMEM_RESET" => activity::compression_memory(cx, put),
        "INNODB_CMP_PER_INDEX" | "INNODB_CMP_PER_INDEX_RESET" => accounts::need_process(cx),
        "INNODB_BUFFER_POOL_STATS" => activity::buffer_pool_stats(cx, put),
        "INNODB_TABLESPACES" => activity::tablespaces(cx, put),
        "OPTIMIZER_TRACE" => activity::optimizer_trace(cx, put),
        // The other tables are always empty: routines, triggers, events, grants on tables
        // and columns.
        _ => Ok(()),
    }
}

/// The stored tables that the account may see, with the counts of their use.
fn counted<'a>(cx: &'a Cx<'_>) -> table_io::Counted<'a> {
    let tables = cx.tables().into_iter();
    let tables = tables.filter(|def| !def.is_view() && !super::is_system_table(def));
    let counted = tables.filter_map(|def| {
        let table = cx.server.engine.table(def.id)?;
        Some((def, table.io().calls()))
    });
    counted.collect()
}

fn performance(cx: &Cx<'_>, name: &str, put: &mut Put<'_>) -> Result<(), SqlError> {
    match name {
        "session_variables" => activity::variables(cx, false, put),
        "global_variables" => activity::variables(cx, true, put),
        "variables_info" => activity::variables_info(cx, put),
        "persisted_variables" => activity::persisted_variables(cx, put),
        "session_status" => activity::status(cx, false, put),
        "global_status" => activity::status(cx, true, put),
        "processlist" => activity::performance_processlist(cx, put),
        "threads" => activity::threads(cx, put),
        "events_statements_summary_by_digest" => digests::summary(cx, put),
        "events_statements_histogram_by_digest" => digests::histogram(cx, put),
        "data_locks" => locks::data_locks(cx, put),
        "metadata_locks" => locks::metadata_locks(cx, put),
        "data_lock_waits" => locks::data_lock_waits(cx, put),
        "replication_connection_configuration" => replication::connection_configuration(cx, put),
        "replication_connection_status" => replication::connection_status(cx, put),
        "replication_applier_configuration" => replication::applier_configuration(cx, put),
        "replication_applier_status" => replication::applier_status(cx, put),
        "replication_applier_status_by_worker" => replication::applier_status_by_worker(cx, put),
        "file_instances" => file_io::instances(cx.server, put),
        "file_summary_by_event_name" => file_io::by_event(cx.server, put),
        "file_summary_by_instance" => file_io::by_file(cx.server, put),
        "events_waits_summary_global_by_event_name" => file_io::waits(cx.server, put),
        "memory_summary_global_by_event_name" => activity::memory(cx, put),
        "objects_summary_global_by_type" => table_io::objects(counted(cx), put),
        "table_io_waits_summary_by_table" => table_io::calls_by_table(counted(cx), put),
        "table_io_waits_summary_by_index_usage" => table_io::calls_by_index(counted(cx), put),
        "table_lock_waits_summary_by_table" => table_io::locks_by_table(counted(cx), put),
        // The other tables contain measurements that do not exist here, as in MySQL with
        // performance_schema=OFF.
        _ => Ok(()),
    }
}
