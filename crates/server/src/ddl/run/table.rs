//! CREATE, DROP, TRUNCATE, RENAME and ALTER of tables and indexes. `crate::ddl` binds the
//! definitions; this file checks privileges, takes metadata locks and calls the engine.
//!
//! A statement that gives a table a name claims [`DATABASES`], so that two statements cannot use
//! the same name.

use std::sync::Arc;

use nfold_catalog::{
    DatabaseDef, FulltextOptions, MdlExclusive, Privileges, Relation, TableDef, TableId,
};
use nfold_exec::{ExecCx, SessionEnv};
use nfold_sql::ast::{
    AlterAction, AlterTable, CreateIndex, CreateTable, DropTable, ForeignKey, Ident, ObjectName,
    Statement,
};
use nfold_types::collation::CollationId;
use nfold_types::convert::store::StoreMode;
use nfold_types::temporal::parse::DateFlags;
use nfold_types::{ErrorCode, Level, SqlError, Value};
use rustc_hash::FxHashMap;

use super::copy::{self, CopyTarget};
use super::database::DATABASES;
use super::maintenance;
use crate::ddl::bind;
use crate::ddl::bind::alter::{Altered, Change};
use crate::ddl::bind::{DdlCx, foreign};
use crate::session::Session;
use crate::session::response::{Done, Response};
use crate::session::system_schemas::{PERFORMANCE, TruncateRefusal, is_system_schema};

/// Runs a statement of this kind. The open transaction has been committed.
pub fn run(
    session: &mut Session,
    cx: &mut dyn ExecCx,
    statement: &Statement,
    _text: &[u8],
) -> Result<Response, SqlError> {
    match statement {
        Statement::CreateTable(c) => session.create_table(cx, c),
        Statement::DropTable(d) => session.drop_table(cx, d),
        Statement::Truncate(name) => session.truncate(cx, name),
        Statement::RenameTable(list) => session.rename(cx, list),
        Statement::AlterTable(a) => session.alter_table(cx, a, "ALTER"),
        Statement::CreateIndex(c) => session.create_index(cx, c),
        Statement::DropIndex { name, table } => session.drop_index(cx, name, table),
        Statement::TableMaintenance(m) => maintenance::run(session, cx, m),
        _ => Err(SqlError::not_supported("this statement")),
    }
}

/// `schema.name` as messages show it.
fn dotted(schema: &str, name: &str) -> String {
    format!("{schema}.{name}")
}

/// Error 1347 if the definition is a view.
pub(crate) fn refuse_view(def: &TableDef) -> Result<(), SqlError> {
    match def.relation {
        Relation::View(_) => {
            let code = ErrorCode::ER_WRONG_OBJECT;
            Err(SqlError::new(
                code,
                &[&def.schema, &def.name, &"BASE TABLE"],
            ))
        }
        Relation::Table => Ok(()),
    }
}

fn missing(schema: &str, name: &str) -> SqlError {
    SqlError::new(ErrorCode::ER_NO_SUCH_TABLE, &[&schema, &name])
}

impl Session {
    /// The database of a name: the given or the current one (1046).
    pub fn schema_of(&self, name: &ObjectName) -> Result<Arc<str>, SqlError> {
        match &name.schema {
            Some(schema) => Ok(schema.as_str().into()),
            None => self
                .env
                .database
                .clone()
                .ok_or_else(|| SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[])),
        }
    }

    /// The session's rules for converting values in definitions and in copied rows.
    pub fn store_mode(&self) -> StoreMode {
        use nfold_plan::SqlMode;
        let mode = self.env.sql_mode();
        StoreMode {
            strict: mode.has(SqlMode::STRICT),
            ignore: false,
            dates: DateFlags {
                no_zero_in_date: mode.has(SqlMode::NO_ZERO_IN_DATE),
                no_zero_date: mode.has(SqlMode::NO_ZERO_DATE),
                allow_invalid: mode.has(SqlMode::ALLOW_INVALID_DATES),
            },
            truncate_fractional: mode.has(SqlMode::TIME_TRUNCATE_FRACTIONAL),
            time_zone: self.env.vars.settings().zone.clone(),
            now: self.env.now(),
        }
    }

    /// The options of new full-text indexes.
    fn fulltext_options(&self) -> Result<FulltextOptions, SqlError> {
        let number = |name| match self.env.sysvar(None, name)? {
            Value::UInt(n) => Ok(n as u8),
            Value::Int(n) => Ok(n as u8),
            _ => Ok(0),
        };
        Ok(FulltextOptions {
            ngram_chars: number("ngram_token_size")?,
            min_chars: number("innodb_ft_min_token_size")?,
            max_chars: number("innodb_ft_max_token_size")?,
            stopwords: number("innodb_ft_enable_stopword")? != 0,
        })
    }

    /// Calls `f` with the context for binding a definition.
    pub(crate) fn with_ddl_cx<T>(
        &mut self,
        collation: CollationId,
        f: impl FnOnce(&mut DdlCx<'_>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let mode = self.store_mode();
        let settings = self.env.vars.settings();
        let (connection, no_engine_substitution) =
            (settings.collation, settings.no_engine_substitution);
        let foreign_key_checks = settings.foreign_key_checks;
        let standard_keys = settings.restrict_fk_on_non_standard_key;
        let fulltext = self.fulltext_options()?;
        let schema = self.schema.clone();
        let mut warnings = std::mem::take(&mut self.conditions);
        let mut ddl = DdlCx {
            mode: &mode,
            collation,
            connection,
            sql_mode: self.env.sql_mode(),
            no_engine_substitution,
            schema: &schema,
            foreign_key_checks,
            standard_keys,
            has_hash_indexes: false,
            fulltext,
            warnings: &mut warnings,
        };
        let result = f(&mut ddl);
        self.conditions = warnings;
        result
    }

    /// The database for a new table. Error 1044 for system databases, 1049 if it does not exist.
    pub(crate) fn target_database(&self, schema: &str) -> Result<DatabaseDef, SqlError> {
        if is_system_schema(schema) {
            return Err(self.rights.no_database(schema));
        }
        let found = self.schema.database(schema).map(|d| d.def.clone());
        found.ok_or_else(|| SqlError::new(ErrorCode::ER_BAD_DB_ERROR, &[&schema]))
    }

    /// The definition of a table in the newest schema. Error 1146 if it does not exist.
    pub fn table_def(&self, schema: &str, name: &str) -> Result<Arc<TableDef>, SqlError> {
        self.schema
            .table(schema, name)
            .cloned()
            .ok_or_else(|| missing(schema, name))
    }

    /// Claims a table and `more`, and returns its definition as of then.
    pub(super) fn claim_table(
        &mut self,
        cx: &mut dyn ExecCx,
        schema: &str,
        name: &str,
        more: &[TableId],
    ) -> Result<(MdlExclusive, Arc<TableDef>), SqlError> {
        loop {
            self.refresh_schema();
            let def = self.table_def(schema, name)?;
            refuse_view(&def)?;
            let mut ids: Vec<TableId> = more.iter().copied().chain([def.id]).collect();
            ids.extend(foreign::related(&self.schema, &def));
            ids.sort_unstable();
            ids.dedup();
            let claim = self.lock_tables_exclusive(cx, &ids)?;
            if self.schema.version == self.server.engine.catalog().version() {
                return Ok((claim, def));
            }
        }
    }

    fn create_table(&mut self, cx: &mut dyn ExecCx, c: &CreateTable) -> Result<Response, SqlError> {
        let (schema, name) = (self.schema_of(&c.name)?, c.name.name.as_str());
        self.rights.need_table(Privileges::CREATE, &schema, name)?;
        bind::table::refuse_attributes(c)?;
        let keys: Vec<&ForeignKey> = c.foreign_keys.iter().collect();
        self.need_references(&keys, &schema)?;
        let _claim = self.claim_named_parents(cx, &keys, &schema)?;
        let database = self.target_database(&schema)?;
        self.refuse_own_like(c, &schema)?;
        if !self.is_free(c, &schema)? {
            return Ok(Response::ok());
        }
        let spec = match &c.like {
            Some(other) => self.like(other, (&schema, name))?,
            None => self.with_ddl_cx(database.collation, |ddl| {
                bind::table::bind(c, &[], &schema, ddl)
            })?,
        };
        let engine = self.server.engine.clone();
        self.change(cx, move || engine.create_table(spec))?;
        Ok(Response::ok())
    }

    /// Error 1142 without the REFERENCES privilege on a parent that a foreign key names.
    fn need_references(&mut self, keys: &[&ForeignKey], database: &str) -> Result<(), SqlError> {
        for key in keys {
            let schema = key.table.schema.as_ref().map_or(database, Ident::as_str);
            let name = key.table.name.as_str();
            let shown = format!("{schema}.{name}");
            let held = self.rights.on_table(schema, name);
            if !held.contains(Privileges::REFERENCES) {
                return Err(self.rights.denied("REFERENCES", &shown));
            }
        }
        Ok(())
    }

    /// Claims the names of tables, and the current parents that foreign keys name.
    fn claim_named_parents(
        &mut self,
        cx: &mut dyn ExecCx,
        keys: &[&ForeignKey],
        database: &str,
    ) -> Result<MdlExclusive, SqlError> {
        loop {
            self.refresh_schema();
            let mut ids = foreign::named_parents(keys, &self.schema, database);
            ids.push(DATABASES);
            ids.sort_unstable();
            ids.dedup();
            let claim = self.lock_tables_exclusive(cx, &ids)?;
            if self.schema.version == self.server.engine.catalog().version() || keys.is_empty() {
                self.refresh_schema();
                return Ok(claim);
            }
        }
    }

    fn drop_table(&mut self, cx: &mut dyn ExecCx, d: &DropTable) -> Result<Response, SqlError> {
        let (mut names, mut own) = (Vec::with_capacity(d.names.len()), Vec::new());
        for name in &d.names {
            let (schema, name) = (self.schema_of(name)?, name.name.as_str());
            match self.temporary.find(&schema, name) {
                Some(table) => own.push(table.clone()),
                None => names.push((schema, name)),
            }
        }
        if d.temporary {
            let absent: Vec<String> = names.iter().map(|(s, n)| dotted(s, n)).collect();
            self.say_absent(d, &absent)?;
            self.env.note_change();
        } else if !names.is_empty() {
            self.drop_named(cx, d, &names)?;
        }
        own.iter().for_each(|table| self.drop_temporary(table));
        Ok(Response::ok())
    }

    /// Error 1051 for missing tables; with IF EXISTS a note for each.
    fn say_absent(&mut self, d: &DropTable, absent: &[String]) -> Result<(), SqlError> {
        let code = ErrorCode::ER_BAD_TABLE_ERROR;
        if !absent.is_empty() && !d.if_exists {
            return Err(SqlError::new(code, &[&absent.join(",")]));
        }
        for name in absent {
            self.conditions.push(Level::Note, code, &[name]);
        }
        Ok(())
    }

    fn drop_named(
        &mut self,
        cx: &mut dyn ExecCx,
        d: &DropTable,
        names: &[(Arc<str>, &str)],
    ) -> Result<(), SqlError> {
        for (schema, name) in names {
            self.rights.need_table(Privileges::DROP, schema, name)?;
        }
        let (_claim, tables, absent) = loop {
            self.refresh_schema();
            let found = |(schema, name): &(Arc<str>, &str)| {
                let table = self.schema.table(schema, name);
                table.filter(|t| !t.is_view()).cloned()
            };
            let tables: Vec<Arc<TableDef>> = names.iter().filter_map(found).collect();
            let absent: Vec<String> = names
                .iter()
                .filter(|n| found(n).is_none())
                .map(|(s, n)| dotted(s, n))
                .collect();
            let ids: Vec<TableId> = tables.iter().map(|t| t.id).collect();
            let claim = self.lock_tables_exclusive(cx, &ids)?;
            if self.schema.version == self.server.engine.catalog().version() {
                break (claim, tables, absent);
            }
        };
        self.say_absent(d, &absent)?;
        if self.env.vars.settings().foreign_key_checks {
            foreign::check_droppable(&self.schema, &tables)?;
        }
        let engine = self.server.engine.clone();
        self.change(cx, move || engine.drop_tables(&tables))
    }

    fn truncate(&mut self, cx: &mut dyn ExecCx, table: &ObjectName) -> Result<Response, SqlError> {
        let (schema, name) = (self.schema_of(table)?, table.name.as_str());
        if *schema == *PERFORMANCE {
            return self.truncate_measurements(name);
        }
        if let Some(own) = self.temporary.find(&schema, name).cloned() {
            return self.truncate_temporary(cx, &own);
        }
        self.rights.need_table(Privileges::DROP, &schema, name)?;
        self.refresh_schema();
        if self.table_def(&schema, name).is_ok_and(|t| t.is_view()) {
            return Err(missing(&schema, name));
        }
        let (_claim, def) = self.claim_table(cx, &schema, name, &[])?;
        if self.env.vars.settings().foreign_key_checks {
            foreign::check_truncatable(&self.schema, &def)?;
        }
        let engine = self.server.engine.clone();
        self.change(cx, move || engine.truncate_table(&def))?;
        Ok(Response::ok())
    }

    /// TRUNCATE of a table of `performance_schema`.
    fn truncate_measurements(&self, name: &str) -> Result<Response, SqlError> {
        let tables = self.server.system_tables;
        if !self.rights.has_global(Privileges::DROP) {
            self.rights
                .need_table(Privileges::DROP, PERFORMANCE, name)?;
        }
        if tables.find(PERFORMANCE, name).is_none() {
            return Err(missing(PERFORMANCE, name));
        }
        match tables.truncate(&self.server, name) {
            Ok(()) => Ok(Response::ok()),
            Err(TruncateRefusal::NotASummary) => Err(self.rights.denied("DROP", name)),
            Err(TruncateRefusal::NotSupported) => {
                Err(SqlError::not_supported(format!("TRUNCATE of {name}")))
            }
        }
    }

    /// RENAME TABLE. Each pair sees the effects of the earlier ones.
    fn rename(
        &mut self,
        cx: &mut dyn ExecCx,
        list: &[(ObjectName, ObjectName)],
    ) -> Result<Response, SqlError> {
        let mut pairs = Vec::with_capacity(list.len());
        for (old, new) in list {
            let (from, to) = (self.schema_of(old)?, self.schema_of(new)?);
            self.rights.need_table(
                Privileges::ALTER.union(Privileges::DROP),
                &from,
                old.name.as_str(),
            )?;
            self.rights.need_table(
                Privileges::CREATE.union(Privileges::INSERT),
                &to,
                new.name.as_str(),
            )?;
            bind::check_table_name(new.name.as_str())?;
            pairs.push((
                (from, Arc::from(old.name.as_str())),
                (to, Arc::from(new.name.as_str())),
            ));
        }
        let (_claim, renames) = loop {
            self.refresh_schema();
            let renames = self.final_names(&pairs)?;
            let mut ids: Vec<TableId> = vec![DATABASES];
            for (t, ..) in &renames {
                ids.push(t.id);
                ids.extend(foreign::related(&self.schema, t));
            }
            ids.sort_unstable();
            ids.dedup();
            let claim = self.lock_tables_exclusive(cx, &ids)?;
            if self.schema.version == self.server.engine.catalog().version() {
                break (claim, renames);
            }
        };
        let moved: Vec<TableId> = renames.iter().map(|(t, ..)| t.id).collect();
        for (table, schema, name) in &renames {
            bind::check::check_renamed(table, (schema, name), &moved, &self.schema)?;
        }
        let renamed = foreign::renamed(&self.schema, &renames);
        let engine = self.server.engine.clone();
        self.change(cx, move || engine.alter_definitions(renamed))?;
        Ok(Response::ok())
    }

    /// The final name of each table.
    #[allow(clippy::type_complexity, reason = "the engine's own triple")]
    fn final_names(
        &self,
        pairs: &[((Arc<str>, Arc<str>), (Arc<str>, Arc<str>))],
    ) -> Result<Vec<(Arc<TableDef>, Arc<str>, Arc<str>)>, SqlError> {
        // The table under each name after the pairs so far; `None`: no table.
        let mut now: FxHashMap<(Arc<str>, Arc<str>), Option<Arc<TableDef>>> = FxHashMap::default();
        for (old, new) in pairs {
            let at =
                |now: &FxHashMap<_, Option<Arc<TableDef>>>, place: &(Arc<str>, Arc<str>)| match now
                    .get(place)
                {
                    Some(moved) => moved.clone(),
                    None => self.schema.table(&place.0, &place.1).cloned(),
                };
            let table = at(&now, old);
            if table.is_some() {
                self.target_database(&new.0)?;
            }
            if at(&now, new).is_some() {
                return Err(SqlError::new(ErrorCode::ER_TABLE_EXISTS_ERROR, &[&new.1]));
            }
            let table = table.ok_or_else(|| missing(&old.0, &old.1))?;
            if table.is_view() && old.0 != new.0 {
                let code = ErrorCode::ER_FORBID_SCHEMA_CHANGE;
                return Err(SqlError::new(code, &[&old.0, &new.0]));
            }
            now.insert(old.clone(), None);
            now.insert(new.clone(), Some(table));
        }
        let moved = now
            .into_iter()
            .filter_map(|((schema, name), table)| Some((table?, schema, name)));
        Ok(moved
            .filter(|(t, schema, name)| t.schema != *schema || t.name != *name)
            .collect())
    }

    fn create_index(&mut self, cx: &mut dyn ExecCx, c: &CreateIndex) -> Result<Response, SqlError> {
        let alter = AlterTable {
            name: c.table.clone(),
            actions: vec![AlterAction::AddKey(c.key.clone())],
            algorithm: c.algorithm,
            lock: c.lock,
            engine_attributes: c.engine_attributes.clone(),
        };
        self.alter_table(cx, &alter, "INDEX")
    }

    fn drop_index(
        &mut self,
        cx: &mut dyn ExecCx,
        name: &Ident,
        table: &ObjectName,
    ) -> Result<Response, SqlError> {
        let action = if name.is("PRIMARY") {
            AlterAction::DropPrimaryKey
        } else {
            AlterAction::DropKey(name.clone())
        };
        let alter = AlterTable {
            name: table.clone(),
            actions: vec![action],
            algorithm: Default::default(),
            lock: Default::default(),
            engine_attributes: Vec::new(),
        };
        self.alter_table(cx, &alter, "INDEX")
    }

    fn alter_table(
        &mut self,
        cx: &mut dyn ExecCx,
        a: &AlterTable,
        command: &'static str,
    ) -> Result<Response, SqlError> {
        bind::check_attributes(&a.engine_attributes)?;
        let (schema, name) = (self.schema_of(&a.name)?, a.name.name.as_str());
        if let Some(own) = self.temporary.find(&schema, name).cloned() {
            self.env.note_change();
            return self.alter_temporary(cx, a, &own);
        }
        let renames = a
            .actions
            .iter()
            .any(|a| matches!(a, AlterAction::Rename(_)));
        let needs = match (command, renames) {
            ("INDEX", _) => Privileges::INDEX,
            (_, true) => Privileges::ALTER.union(Privileges::DROP),
            (_, false) => Privileges::ALTER,
        };
        self.rights.need_table(needs, &schema, name)?;
        let added: Vec<&ForeignKey> = (a.actions.iter())
            .filter_map(|a| match a {
                AlterAction::AddForeignKey(k) => Some(k),
                _ => None,
            })
            .collect();
        self.need_references(&added, &schema)?;
        let (_claim, def) = loop {
            self.refresh_schema();
            let mut names = foreign::named_parents(&added, &self.schema, &schema);
            if renames || !added.is_empty() {
                names.push(DATABASES);
            }
            let (claim, def) = self.claim_table(cx, &schema, name, &names)?;
            let parents = foreign::named_parents(&added, &self.schema, &schema);
            if parents.iter().all(|id| names.contains(id)) {
                break (claim, def);
            }
        };
        let Altered {
            change,
            rename,
            auto_increment,
            counted,
            others,
            verify,
        } = self.with_ddl_cx(def.collation, |ddl| bind::alter::bind(a, &def, ddl))?;
        // The number of rows is 0 if no row could have been touched.
        let keys =
            |a: &AlterAction| matches!(a, AlterAction::DisableKeys | AlterAction::EnableKeys);
        let uncounted =
            change == Change::Nothing && (rename.is_some() || a.actions.iter().all(keys));
        let target = match &rename {
            Some((to, new)) => {
                let to: Arc<str> = match (to, &self.env.database) {
                    (Some(to), _) => to.as_ref().into(),
                    (None, Some(current)) => current.clone(),
                    (None, None) => return Err(SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[])),
                };
                let target = self.rename_target(&to, new, &def)?;
                bind::check::check_renamed(&def, (&target.0, &target.1), &[], &self.schema)?;
                Some(target)
            }
            None => None,
        };
        // A copy is created under its new name, and has another id. If foreign keys connect the
        // table to others, all definitions are renamed together.
        let joined = !def.foreign_keys.is_empty()
            || !self.schema.children(&def.schema, &def.name).is_empty()
            || matches!(&change, Change::Copy { spec, .. } if !spec.foreign_keys.is_empty());
        let (change, target) = match (change, target) {
            (Change::Copy { mut spec, columns }, target) if !joined => {
                if let Some((schema, name)) = target {
                    spec.checks = bind::check::renamed(&spec.checks, &spec.name, &name);
                    (spec.schema, spec.name) = (schema, name);
                }
                (Change::Copy { spec, columns }, None)
            }
            other => other,
        };
        let (schema, name) = match &change {
            Change::Copy { spec, .. } => (spec.schema.clone(), spec.name.clone()),
            _ => (def.schema.clone(), def.name.clone()),
        };
        // Replication coordinates are written with the last step.
        self.carried.deferred = target.is_some();
        let rows = self.apply_change(cx, &def, change, (others, verify, !counted))?;
        let rows = if counted { rows } else { 0 };
        let engine = self.server.engine.clone();
        self.refresh_schema();
        let id = match self.schema.table(&schema, &name) {
            Some(def) => def.id,
            None => return Err(missing(&schema, &name)),
        };
        if let Some(first) = auto_increment {
            let engine = engine.clone();
            let had = def.auto_increment_column().is_some();
            self.change(cx, move || match had {
                true => engine.reset_auto_increment(id, first),
                false => engine.start_auto_increment(id, first),
            })?;
        }
        if let Some((schema, name)) = target {
            self.refresh_schema();
            let def = self
                .schema
                .table_by_id(id)
                .cloned()
                .ok_or_else(|| missing(&schema, &name))?;
            let renamed = foreign::renamed(&self.schema, &[(def, schema, name)]);
            self.carried.deferred = false;
            self.change(cx, move || engine.alter_definitions(renamed))?;
        }
        let info = if uncounted {
            String::new()
        } else {
            format!(
                "Records: {rows}  Duplicates: 0  Warnings: {}",
                self.conditions.total()
            )
        };
        Ok(Response::Done(Done {
            affected_rows: rows,
            insert_id: 0,
            info,
        }))
    }

    /// The target of ALTER ... RENAME, which must be free and allowed.
    fn rename_target(
        &self,
        schema: &str,
        name: &str,
        def: &TableDef,
    ) -> Result<(Arc<str>, Arc<str>), SqlError> {
        self.rights
            .need_table(Privileges::CREATE.union(Privileges::INSERT), schema, name)?;
        self.target_database(schema)?;
        let own = *def.schema == *schema && *def.name == *name;
        if !own && self.schema.table(schema, name).is_some() {
            return Err(SqlError::new(ErrorCode::ER_TABLE_EXISTS_ERROR, &[&name]));
        }
        Ok((schema.into(), name.into()))
    }

    /// Carries out the change. Returns the number of copied rows.
    fn apply_change(
        &mut self,
        cx: &mut dyn ExecCx,
        def: &Arc<TableDef>,
        change: Change,
        (mut others, verify, inplace): (Vec<TableDef>, bool, bool),
    ) -> Result<u64, SqlError> {
        let (engine, def) = (self.server.engine.clone(), def.clone());
        match change {
            Change::Nothing => Ok(0),
            Change::Definition(new) => {
                others.push(new);
                self.change(cx, move || engine.alter_definitions(others))
                    .map(|()| 0)
            }
            Change::Indexes { add, drop } => {
                let (names, table) = (add.clone(), def.clone());
                let result =
                    self.try_change(cx, move || engine.change_indexes(&table, &add, &drop))?;
                result
                    .map(|()| 0)
                    .map_err(|e| copy::duplicate(&e, &def, &names))
            }
            Change::Copy { spec, columns } => {
                let target = CopyTarget::Instead {
                    others,
                    verify,
                    inplace,
                };
                let copied = self.copy_table(cx, &def, (spec, columns), target)?;
                Ok(copied.0)
            }
        }
    }
}
