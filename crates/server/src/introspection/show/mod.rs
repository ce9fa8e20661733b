//! SHOW statements: results from the state of the session and the server.

mod binlog;
mod databases;
mod engine_status;
mod facts;
pub mod filter;
mod process;
mod replica;
pub mod schema;
mod status;
mod variables;

use nfold_catalog::Privileges;
use nfold_exec::ExecCx;
use nfold_sql::ast::Show;
use nfold_types::{ColumnType, Level, SqlError, Value};

use crate::session::Session;
use crate::session::response::{Response, RowSet, text_type};

impl Session {
    /// Runs a SHOW.
    pub(crate) fn show(&mut self, cx: &mut dyn ExecCx, show: &Show) -> Result<Response, SqlError> {
        let mut response = self.show_all(cx, show)?;
        if let (Some(condition), Response::Rows(set)) = (show.condition(), &mut response) {
            self.keep_matching(cx, set, condition)?;
        }
        Ok(response)
    }

    /// Runs a SHOW, without its WHERE.
    fn show_all(&mut self, cx: &mut dyn ExecCx, show: &Show) -> Result<Response, SqlError> {
        match show {
            Show::Databases { filter } => self.show_databases(filter.as_ref()),
            Show::CreateDatabase {
                if_not_exists,
                name,
            } => self.show_create_database(*if_not_exists, name.as_str()),
            Show::CreateUser(name) => self.show_create_user(name.as_ref()),
            Show::Grants(name, using) => self.show_grants(name.as_ref(), using),
            Show::Variables { scope, filter } => self.show_variables(*scope, filter.as_ref()),
            Show::Status { scope, filter } => self.show_status(*scope, filter.as_ref()),
            Show::ProcessList { full } => self.show_processlist(*full),
            Show::Warnings(limit) => Ok(self.show_conditions(false, *limit)),
            Show::Errors(limit) => Ok(self.show_conditions(true, *limit)),
            Show::WarningCount => Ok(count_row("@@session.warning_count", self.env.warning_count)),
            Show::ErrorCount => Ok(count_row("@@session.error_count", self.env.error_count)),
            Show::Engines => Ok(facts::engines()),
            Show::Engine { name, what } => {
                self.rights.need_global(Privileges::PROCESS, "PROCESS")?;
                self.show_engine(name.as_str(), *what)
            }
            Show::Privileges => Ok(facts::privileges()),
            Show::CharacterSet { filter } => facts::character_sets(filter.as_ref()),
            Show::Collation { filter } => facts::collations(filter.as_ref()),
            Show::Plugins => Ok(facts::plugins()),
            Show::OpenTables { filter, .. } => facts::empty(facts::OPEN_TABLES, filter.as_ref()),
            Show::Triggers { schema, filter } => {
                if let Some(name) = self.shown_database(schema.as_ref()) {
                    self.rights.need_any(&name)?;
                }
                facts::empty(facts::TRIGGERS, filter.as_ref())
            }
            Show::Events { schema, filter } => {
                if let Some(name) = self.shown_database(schema.as_ref()) {
                    self.rights.need_database(Privileges::EVENT, &name)?;
                }
                facts::empty(facts::EVENTS, filter.as_ref())
            }
            Show::FunctionStatus { filter } | Show::ProcedureStatus { filter } => {
                facts::empty(facts::ROUTINES, filter.as_ref())
            }
            Show::BinaryLogStatus => {
                if !self.rights.has_super_or(&[]) {
                    let names = "SUPER, REPLICATION CLIENT";
                    self.rights
                        .need_global(Privileges::REPLICATION_CLIENT, names)?;
                }
                self.show_binary_log_status(cx)
            }
            Show::ReplicaStatus(channel) => self.show_replica_status(channel.as_ref()),
            Show::Replicas => {
                let names = "REPLICATION SLAVE";
                self.rights
                    .need_global(Privileges::REPLICATION_SLAVE, names)?;
                self.show_replicas()
            }
            Show::RelayLogEvents => facts::empty(facts::LOG_EVENTS, None),
            Show::BinlogEvents { file, from, limit } => {
                let names = "REPLICATION SLAVE";
                self.rights
                    .need_global(Privileges::REPLICATION_SLAVE, names)?;
                self.show_binlog_events(cx, (file.as_deref(), *from), *limit)
            }
            Show::Profiles => facts::empty(facts::PROFILES, None),
            Show::BinaryLogs => {
                if !self.rights.has_super_or(&[]) {
                    let names = "SUPER, REPLICATION CLIENT";
                    self.rights
                        .need_global(Privileges::REPLICATION_CLIENT, names)?;
                }
                self.show_binary_logs(cx)
            }
            Show::Unsupported(what) => Err(SqlError::not_supported(what)),
            Show::Tables { .. }
            | Show::TableStatus { .. }
            | Show::Columns { .. }
            | Show::Index { .. }
            | Show::CreateTable(_)
            | Show::CreateView(_) => schema::show(self, cx, show),
        }
    }

    /// The database of a SHOW that is not a system schema: the named one, or the current one.
    fn shown_database(&self, named: Option<&nfold_sql::ast::Ident>) -> Option<Box<str>> {
        let name = named.map(|n| n.as_str()).or(self.env.database.as_deref());
        name.filter(|n| !super::system::is_system_schema(n))
            .map(Into::into)
    }

    /// SHOW WARNINGS and SHOW ERRORS of the previous statement.
    fn show_conditions(
        &self,
        errors_only: bool,
        limit: Option<nfold_sql::ast::ShowLimit>,
    ) -> Response {
        let code = ColumnType::new(nfold_types::TypeKind::Int).with_unsigned();
        let mut set = RowSet::new(&[
            ("Level", text_type(7)),
            ("Code", code),
            ("Message", text_type(512)),
        ]);
        set.counted = false;
        set.of_conditions = true;
        let kept = self
            .conditions
            .list()
            .iter()
            .filter(|c| !errors_only || c.level == Level::Error);
        let (offset, count) =
            limit.map_or((0, usize::MAX), |l| (l.offset as usize, l.count as usize));
        for c in kept.skip(offset).take(count) {
            set.push(vec![
                Value::from(c.level.name()),
                Value::UInt(u64::from(c.errno())),
                Value::from(&*c.message),
            ]);
        }
        Response::Rows(set)
    }
}

/// A result with a single number.
fn count_row(name: &str, count: u64) -> Response {
    let mut set = RowSet::new(&[(name, ColumnType::bigint().with_unsigned())]);
    set.push(vec![Value::UInt(count)]);
    set.of_conditions = true;
    Response::Rows(set)
}
