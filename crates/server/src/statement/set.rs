//! SET: checks all assignments, then applies them in order.

use std::cell::RefCell;

use nfold_exec::{Checkpoints, ExecCx, SessionEnv};
use nfold_sql::ast::{Expr, Ident, SetItem, SetTransaction, SetValue, VarScope};
use nfold_types::{Charset, ColumnType, ErrorCode, SqlError, Value, Warnings};

use crate::config::table::other_name;
use crate::config::{Entry, SetBy, switches};
use crate::session::Session;
use crate::session::plan_info::{Info, evaluate, matching_rows};
use crate::session::response::{Response, RowSet};
use crate::session::storage;
use crate::session::tables::needs_query;

use crate::session::vars;
use crate::session::vars::{
    Assigned, Scope, VarDef, VarValue, check, client_charset, collation_by_name, for_connection,
    refuse_adjusted,
};
use crate::unix_time::unix_us;

/// A checked assignment.
enum Change<'s> {
    Session(Assigned),
    Global(Assigned),
    /// SET PERSIST and SET PERSIST_ONLY: the first value is stored; the global ones change as well
    /// unless `only` is set.
    Persist {
        assigned: Assigned,
        only: bool,
    },
    /// Session variables without a stored value.
    Special(&'static str, VarValue),
    /// A user variable, its value, and the type of that value if it is known.
    UserVar(&'s str, Value, Option<ColumnType>),
    NextTransaction(SetTransaction),
}

/// The variables whose session value needs a privilege, as a MySQL 9.7 says.
const RESTRICTED: [&str; 33] = [
    "binlog_direct_non_transactional_updates",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_value_options",
    "binlog_rows_query_log_events",
    "binlog_transaction_compression",
    "binlog_transaction_compression_level_zstd",
    "bulk_insert_buffer_size",
    "character_set_database",
    "character_set_filesystem",
    "connection_memory_chunk_size",
    "connection_memory_limit",
    "global_connection_memory_tracking",
    "gtid_next",
    "histogram_generation_max_mem_size",
    "immediate_server_version",
    "internal_tmp_mem_storage_engine",
    "low_priority_updates",
    "max_delayed_threads",
    "max_error_count",
    "max_insert_delayed_threads",
    "min_examined_row_limit",
    "original_commit_timestamp",
    "original_server_version",
    "preload_buffer_size",
    "pseudo_replica_mode",
    "pseudo_slave_mode",
    "pseudo_thread_id",
    "select_into_buffer_size",
    "sql_log_bin",
    "sql_log_off",
    "sql_require_primary_key",
    "xa_detach_on_prepare",
];

impl Session {
    /// Evaluates an expression outside of a query. `params` are the values of `?`.
    pub fn evaluate(
        &mut self,
        cx: &mut dyn ExecCx,
        e: &Expr,
        text: &[u8],
    ) -> Result<Value, SqlError> {
        self.evaluate_variable(cx, e, text).map(|(value, _)| value)
    }

    /// Removes the rows of a result for which a condition does not hold.
    ///
    /// # Errors
    /// Those of the condition, also if there are no rows.
    pub(crate) fn keep_matching(
        &mut self,
        cx: &mut dyn ExecCx,
        set: &mut RowSet,
        condition: &Expr,
    ) -> Result<(), SqlError> {
        let warnings = RefCell::new(std::mem::take(&mut self.conditions));
        let info = Info {
            env: &self.env,
            engine: &self.server.engine,
            checkpoint: &Checkpoints::new(cx),
        };
        let params = (self.free_types.as_slice(), &self.free_params);
        let kept = matching_rows(&info, &self.schema, condition, params, &warnings, set);
        self.conditions = warnings.into_inner();
        let mut kept = kept?.into_iter();
        set.rows.retain(|_| kept.next() == Some(true));
        Ok(())
    }

    /// As [`Self::evaluate`], with the collation of a variable of that value; `None`: that of the
    /// connection.
    fn evaluate_variable(
        &mut self,
        cx: &mut dyn ExecCx,
        e: &Expr,
        text: &[u8],
    ) -> Result<(Value, Option<ColumnType>), SqlError> {
        if needs_query(e) {
            let (value, ty) = self.select_value(cx, e, text)?;
            return Ok((value, Some(ty)));
        }
        let warnings = RefCell::new(std::mem::take(&mut self.conditions));
        let info = Info {
            env: &self.env,
            engine: &self.server.engine,
            checkpoint: &Checkpoints::new(cx),
        };
        let value = evaluate(
            &info,
            &self.schema,
            e,
            text,
            (&self.free_types, &self.free_params),
            &warnings,
        );
        self.conditions = warnings.into_inner();
        value
    }

    /// SET.
    pub fn set(
        &mut self,
        cx: &mut dyn ExecCx,
        items: &[SetItem],
        text: &[u8],
    ) -> Result<Response, SqlError> {
        self.refresh_schema();
        let mut changes = Vec::with_capacity(items.len());
        for item in items {
            let change = self.checked(cx, item, text)?;
            changes.push(change);
        }
        for change in changes {
            self.apply(cx, change)?;
        }
        Ok(Response::ok())
    }

    fn checked<'s>(
        &mut self,
        cx: &mut dyn ExecCx,
        item: &'s SetItem,
        text: &[u8],
    ) -> Result<Change<'s>, SqlError> {
        match item {
            SetItem::SysVar {
                scope,
                at_signs,
                name,
                value,
            } => {
                let change = self.system_variable(cx, *scope, name, value, text)?;
                Ok(if *at_signs && scope.is_none() {
                    next_transaction(change)
                } else {
                    change
                })
            }
            // As in MySQL, all values are computed before the first assignment.
            SetItem::UserVar { name, value } => {
                let (value, ty) = self.evaluate_variable(cx, value, text)?;
                Ok(Change::UserVar(name, value, ty))
            }
            SetItem::Names { charset, collation } => self
                .names(charset.as_deref(), collation.as_deref())
                .map(Change::Session),
            SetItem::CharacterSet(charset) => {
                self.character_set(charset.as_deref()).map(Change::Session)
            }
            SetItem::Transaction(t) => match t.scope {
                None => Ok(Change::NextTransaction(*t)),
                Some(scope) => {
                    let named = Session::transaction_variables(t).into_iter();
                    let assigned = named
                        .map(|(n, v)| Ok((vars::find(n)?, v)))
                        .collect::<Result<_, SqlError>>()?;
                    self.scoped(scope, assigned)
                }
            },
        }
    }

    /// The stored values of a scope; the global scope needs a privilege.
    fn scoped<'s>(&self, scope: VarScope, assigned: Assigned) -> Result<Change<'s>, SqlError> {
        match scope {
            VarScope::Session => Ok(Change::Session(assigned)),
            VarScope::Global => {
                self.need_global_variables()?;
                Ok(Change::Global(assigned))
            }
            VarScope::Persist => {
                self.need_global_variables()?;
                Ok(Change::Persist {
                    assigned,
                    only: false,
                })
            }
            VarScope::PersistOnly => Ok(Change::Persist {
                assigned,
                only: true,
            }),
        }
    }

    /// Error 1227 unless the account may change global variables.
    fn need_global_variables(&self) -> Result<(), SqlError> {
        let names = "SUPER or SYSTEM_VARIABLES_ADMIN";
        self.rights
            .need_super_or(&["SYSTEM_VARIABLES_ADMIN"], names)
    }

    fn system_variable<'s>(
        &mut self,
        cx: &mut dyn ExecCx,
        scope: Option<VarScope>,
        name: &str,
        value: &SetValue,
        text: &[u8],
    ) -> Result<Change<'s>, SqlError> {
        let at = self.env.find_var(name)?;
        let def = &vars::definitions()[at];
        let scope = scope.unwrap_or(VarScope::Session);
        self.check_changeable(def, scope)?;
        check_scope(def, scope)?;
        if scope == VarScope::Session && RESTRICTED.contains(&def.name) {
            let dynamic = ["SYSTEM_VARIABLES_ADMIN", "SESSION_VARIABLES_ADMIN"];
            let names = "SUPER, SYSTEM_VARIABLES_ADMIN or SESSION_VARIABLES_ADMIN";
            self.rights.need_super_or(&dynamic, names)?;
        }
        if scope == VarScope::Session
            && matches!(def.name, "max_allowed_packet" | "net_buffer_length")
        {
            return Err(SqlError::new(
                ErrorCode::ER_VARIABLE_IS_READONLY,
                &[&"SESSION", &def.name, &"GLOBAL"],
            ));
        }
        let mut assigned = match value {
            SetValue::Default => self.default_of(at, def, scope),
            SetValue::Expr(e) => {
                let value = match e {
                    // A bare word is a string.
                    Expr::Column(c) if c.table.is_none() => Value::from(c.name.as_str()),
                    e => self.evaluate(cx, e, text)?,
                };
                if self.env.vars.settings().strict_all_tables {
                    refuse_adjusted(def, &value)?;
                }
                let mut warnings = std::mem::take(&mut self.conditions);
                let checked = match switches::set_of(def.name) {
                    Some(set) => {
                        let present = match scope {
                            VarScope::Session => self.env.vars.get(at).show(),
                            _ => self.env.globals.with_value(at, VarValue::show),
                        };
                        set.assign(&present, &value)
                            .map(|text| vec![(at, VarValue::text(text))])
                    }
                    None => check(def, &value, &mut warnings),
                };
                self.conditions = warnings;
                checked?
            }
        };
        if matches!(def.name, "optimizer_trace_offset" | "optimizer_trace_limit") {
            self.env.traces.borrow_mut().clear();
        }
        if let (Some(log), Some((_, value))) = (&self.server.binlog, assigned.first())
            && log.is_active()
        {
            self.refuse_log_setting(def.name, value)?;
        }
        if scope == VarScope::Session && is_special(def.name) {
            let value = assigned
                .into_iter()
                .next()
                .map_or_else(|| def.default(), |(_, v)| v);
            return Ok(Change::Special(def.name, value));
        }
        if let Some(other) = other_name(at)
            && let Some((_, value)) = assigned.first().cloned()
        {
            assigned.push((other, value));
        }
        if let ("partial_revokes", Some((_, VarValue::Bool(false)))) = (def.name, assigned.first())
            && self.server.has_partial_revokes()
        {
            return Err(SqlError::new(ErrorCode::ER_PARTIAL_REVOKES_EXIST, &[]));
        }
        storage::adjust(&self.server, def.name, &mut assigned, &mut self.conditions);
        self.warn_of_packets(&assigned)?;
        self.scoped(scope, assigned)
    }

    /// Errors 1238 and 3630 if a variable cannot be changed in this way.
    fn check_changeable(&self, def: &VarDef, scope: VarScope) -> Result<(), SqlError> {
        let stored = matches!(scope, VarScope::Persist | VarScope::PersistOnly);
        let refused = match (def.dynamic, stored && !def.persisted) {
            (false, true) if scope == VarScope::PersistOnly => "non persistent read only",
            (false, _) if scope != VarScope::PersistOnly => "read only",
            (true, true) if def.scope != Scope::Session => "non persistent",
            _ => "",
        };
        let needed = ["SYSTEM_VARIABLES_ADMIN", "PERSIST_RO_VARIABLES_ADMIN"];
        if scope == VarScope::PersistOnly
            && !needed.iter().all(|name| self.rights.has_dynamic(name))
        {
            return Err(SqlError::new(
                ErrorCode::ER_PERSIST_ONLY_ACCESS_DENIED_ERROR,
                &[&"SYSTEM_VARIABLES_ADMIN and PERSIST_RO_VARIABLES_ADMIN"],
            ));
        }
        if refused.is_empty() {
            return Ok(());
        }
        Err(SqlError::new(
            ErrorCode::ER_INCORRECT_GLOBAL_LOCAL_VAR,
            &[&def.name, &refused],
        ))
    }

    /// Warning 1708 if the largest packet is smaller than the buffer of a connection.
    fn warn_of_packets(&mut self, assigned: &Assigned) -> Result<(), SqlError> {
        const NAMES: [&str; 2] = ["max_allowed_packet", "net_buffer_length"];
        let at = [vars::find(NAMES[0])?, vars::find(NAMES[1])?];
        let number = |at: usize| {
            let given = assigned.iter().find(|(n, _)| *n == at).map(|(_, v)| v);
            let of = |v: &VarValue| matches!(v, VarValue::Int(n) if *n > 0).then(|| v.clone());
            match given {
                Some(value) => of(value),
                None => self.env.globals.with_value(at, of),
            }
        };
        let is_assigned = assigned.iter().any(|(n, _)| at.contains(n));
        if is_assigned
            && let [Some(VarValue::Int(packet)), Some(VarValue::Int(buffer))] = at.map(number)
            && packet < buffer
        {
            let code = ErrorCode::WARN_OPTION_BELOW_LIMIT;
            self.conditions.warn(code, &[&NAMES[0], &NAMES[1]]);
        }
        Ok(())
    }

    fn default_of(&self, at: usize, def: &VarDef, scope: VarScope) -> Assigned {
        let value = match (scope, def.scope) {
            (VarScope::Session, Scope::Both) => self.env.globals.load().get(at).clone(),
            _ => def.default(),
        };
        // A dependent character set or collation is set to the matching default.
        let mut unheard = Warnings::default();
        match check(def, &value.to_value(), &mut unheard) {
            Ok(assigned) if def.name.starts_with("c") => assigned,
            _ => vec![(at, value)],
        }
    }

    /// `SET NAMES`.
    fn names(&self, charset: Option<&str>, collation: Option<&str>) -> Result<Assigned, SqlError> {
        let set = client_charset(charset.unwrap_or("utf8mb4"))?;
        let collation = match collation {
            Some(name) => collation_by_name(name)?,
            None => set.default_collation.known(),
        };
        if collation.charset != set {
            return Err(SqlError::new(
                ErrorCode::ER_COLLATION_CHARSET_MISMATCH,
                &[&collation.name, &set.name],
            ));
        }
        let word = |s: &'static str| VarValue::text(s);
        Ok(vec![
            (vars::find("character_set_client")?, word(set.name)),
            (vars::find("character_set_results")?, word(set.name)),
            (vars::find("character_set_connection")?, word(set.name)),
            (vars::find("collation_connection")?, word(collation.name)),
        ])
    }

    /// `SET CHARACTER SET`: the connection gets the character set of the database.
    fn character_set(&self, charset: Option<&str>) -> Result<Assigned, SqlError> {
        let set = client_charset(charset.unwrap_or("utf8mb4"))?;
        let of_database = |name: &str| vars::find(name).map(|at| self.env.vars.get(at).clone());
        let word = |s: &'static str| VarValue::text(s);
        let connection = of_database("character_set_database")?;
        if let VarValue::Text(Some(name)) = &connection
            && let Some(set) = Charset::by_name(name)
        {
            for_connection(set)?;
        }
        Ok(vec![
            (vars::find("character_set_client")?, word(set.name)),
            (vars::find("character_set_results")?, word(set.name)),
            (vars::find("character_set_connection")?, connection),
            (
                vars::find("collation_connection")?,
                of_database("collation_database")?,
            ),
        ])
    }

    fn apply(&mut self, cx: &mut dyn ExecCx, change: Change<'_>) -> Result<(), SqlError> {
        match change {
            Change::Session(mut assigned) => {
                self.refuse_autocommit(&assigned)?;
                self.assign_gtid(cx, &mut assigned)?;
                let before = self.env.vars.settings().clone();
                self.env.set_vars(&assigned);
                // SET SESSION also applies to the next transaction, in place of an earlier SET
                // TRANSACTION.
                for (at, _) in &assigned {
                    self.forget_next_transaction(vars::definitions()[*at].name);
                }
                let now = self.env.vars.settings();
                let commit = !before.autocommit && now.autocommit;
                self.conditions.set_limit(now.max_error_count);
                if !now.plans_like(&before) {
                    self.plan_context_changed();
                }
                if commit {
                    self.commit(cx)?;
                }
            }
            Change::Global(assigned) => {
                let purged = |at: usize| vars::definitions()[at].name == "gtid_purged";
                if let Some((_, VarValue::Text(Some(set)))) = assigned.iter().find(|a| purged(a.0))
                {
                    return self.set_gtid_purged(cx, set);
                }
                let by = self.set_by();
                self.env.globals.set_all_by(&assigned, Some(&by));
                self.server.globals_changed();
                self.password_rules_changed(cx, &assigned)?;
            }
            Change::Persist { assigned, only } => {
                self.persist(&assigned, only)?;
                if !only {
                    self.password_rules_changed(cx, &assigned)?;
                }
            }
            Change::Special(name, value) => self.set_special(name, &value),
            Change::UserVar(name, value, ty) => {
                let name = name.to_lowercase();
                self.env.set_user_var(&name, value, ty.as_ref())?;
                self.env.note_change();
            }
            Change::NextTransaction(t) => self.set_next_transaction(&t)?,
        }
        Ok(())
    }

    /// Carries out an assignment to `gtid_next`.
    fn assign_gtid(
        &mut self,
        cx: &mut dyn ExecCx,
        assigned: &mut Assigned,
    ) -> Result<(), SqlError> {
        for (at, value) in assigned {
            if vars::definitions()[*at].name != "gtid_next" {
                continue;
            }
            let VarValue::Text(Some(text)) = value else {
                let code = ErrorCode::ER_WRONG_VALUE_FOR_VAR;
                return Err(SqlError::new(code, &[&"gtid_next", &"NULL"]));
            };
            *value = VarValue::text(self.assign_next_gtid(cx, text)?);
        }
        Ok(())
    }

    /// Stores the first of these values, the one that was assigned; the others follow from it.
    /// Unless `only` is set, the global values change as well.
    pub(super) fn persist(&mut self, assigned: &Assigned, only: bool) -> Result<(), SqlError> {
        let by = self.set_by();
        if let Some((at, value)) = assigned.first() {
            let name = vars::definitions()[*at].name;
            let entry = Entry {
                value: value.show(),
                by: by.clone(),
            };
            // If the file cannot be written, the value does not change either.
            let stored = self.server.persisted.store(name, entry);
            stored.map_err(|e| not_written(&e))?;
        }
        if !only {
            self.env.globals.set_all_by(assigned, Some(&by));
            self.server.globals_changed();
        }
        Ok(())
    }

    /// RESET PERSIST. Error 3615 if the variable is not stored.
    pub fn reset_persist(
        &mut self,
        if_exists: bool,
        name: Option<&Ident>,
    ) -> Result<Response, SqlError> {
        let persisted = &self.server.persisted;
        if !persisted.entries().is_empty() {
            self.need_global_variables()?;
        }
        let Some(name) = name else {
            persisted.clear().map_err(|e| not_written(&e))?;
            return Ok(Response::ok());
        };
        let key = name.as_str().to_ascii_lowercase();
        if !persisted.remove(&key).map_err(|e| not_written(&e))? {
            let code = ErrorCode::ER_VAR_DOES_NOT_EXIST;
            if !if_exists {
                return Err(SqlError::new(code, &[&name.as_str()]));
            }
            self.conditions.warn(code, &[&name.as_str()]);
        }
        Ok(Response::ok())
    }

    /// This session's account, and the time of its statement.
    pub(super) fn set_by(&self) -> SetBy {
        let (user, host) = self.env.account();
        SetBy {
            micros: self.env.started_us(),
            user: user.into(),
            host: host.into(),
        }
    }

    fn set_special(&mut self, name: &str, value: &VarValue) {
        match (name, value) {
            ("timestamp", VarValue::Real(seconds)) => {
                self.env.fixed_time = (*seconds > 0.0).then_some((seconds * 1e6) as i64);
                self.env.begin_statement(unix_us());
            }
            ("last_insert_id" | "identity", VarValue::Int(n)) => self.env.last_insert_id.set(*n),
            ("insert_id", VarValue::Int(n)) => self.env.insert_id.set(*n),
            // Accepted for dumps and replication streams, without effect.
            _ => {}
        }
    }
}

/// Error 1026: the file of stored variables cannot be written.
fn not_written(e: &std::io::Error) -> SqlError {
    SqlError::new(ErrorCode::ER_ERROR_ON_WRITE, &[&"mysqld-auto.cnf", &0, &e])
}

/// `SET @@transaction_isolation` and `@@transaction_read_only` without a scope mean SET
/// TRANSACTION: they apply to the next transaction only.
fn next_transaction(change: Change<'_>) -> Change<'_> {
    let Change::Session(assigned) = change else {
        return change;
    };
    let mut t = SetTransaction {
        scope: None,
        isolation: None,
        read_only: None,
    };
    for (at, value) in &assigned {
        match (vars::definitions()[*at].name, value) {
            ("transaction_isolation", VarValue::Text(Some(word))) => {
                t.isolation = Some(vars::isolation_of(word));
            }
            ("transaction_read_only", VarValue::Bool(on)) => t.read_only = Some(*on),
            _ => return Change::Session(assigned),
        }
    }
    Change::NextTransaction(t)
}

/// Whether a variable has no stored value.
fn is_special(name: &str) -> bool {
    matches!(
        name,
        "timestamp" | "last_insert_id" | "identity" | "insert_id" | "pseudo_thread_id"
    )
}

/// Errors 1228 and 1229.
fn check_scope(def: &VarDef, scope: VarScope) -> Result<(), SqlError> {
    let read_only = || {
        SqlError::new(
            ErrorCode::ER_INCORRECT_GLOBAL_LOCAL_VAR,
            &[&def.name, &"read only"],
        )
    };
    match (scope, def.scope) {
        (VarScope::Session, Scope::Global) if !def.dynamic => Err(read_only()),
        (VarScope::Session, Scope::Global) => {
            Err(SqlError::new(ErrorCode::ER_GLOBAL_VARIABLE, &[&def.name]))
        }
        (VarScope::Session, _) | (_, Scope::Global | Scope::Both) => Ok(()),
        (_, Scope::Session) => Err(SqlError::new(ErrorCode::ER_LOCAL_VARIABLE, &[&def.name])),
    }
}
