//! CREATE, ALTER and DROP VIEW, and the tables behind the views of a statement.
//!
//! A view is planned as a derived table of its query, anew for each statement (`nfold_plan::bind`).
//! This file checks the privileges: with SQL SECURITY DEFINER the tables are read with those of the
//! view's definer. The tables are locked together with the others of the statement.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{
    AccountId, ColumnDef, ColumnDefault, Privileges, TableDef, ViewAlgorithm, ViewCheck, ViewDef,
};
use nfold_engine::ViewSpec;
use nfold_exec::{Checkpoints, ExecCx};
use nfold_plan::bind::{view_is_updatable, view_results};
use nfold_plan::results::{ColumnPath, ResultColumn};
use nfold_plan::{ColumnUse, ColumnUses, PlanCx, ViewScope};
use nfold_sql::ast::{self, CreateView, ObjectName};
use nfold_sql::lexer::LexMode;
use nfold_sql::parser::parse;
use nfold_types::{ErrorCode, Level, SqlError};

use super::database::DATABASES;
use crate::ddl::bind;
use crate::ddl::bind::check_table_name;
use crate::session::Session;
use crate::session::locks::is_write;
use crate::session::plan_info::{Info, plan_cx};
use crate::session::privilege::Rights;
use crate::session::response::Response;
use crate::session::tables::{TableUse, UseCheck, tables_of};

/// The maximum number of tables behind the views of one statement.
const MAX_BEHIND: usize = 4096;

impl Session {
    /// Adds the tables that the views among `uses` read.
    ///
    /// # Errors
    /// 1473 if there are too many.
    pub(crate) fn add_behind_views(&mut self, uses: &mut Vec<TableUse>) -> Result<(), SqlError> {
        self.refresh_schema();
        let mut n = 0;
        while n < uses.len() {
            let found = self.schema.table(&uses[n].schema, &uses[n].name);
            if let Some(def) = found.filter(|def| def.is_view()) {
                let behind = behind(def, &uses[n])?;
                uses.extend(behind);
            }
            n += 1;
            if uses.len() > MAX_BEHIND {
                let code = ErrorCode::ER_TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT;
                return Err(SqlError::new(code, &[]));
            }
        }
        Ok(())
    }

    /// Checks whether a view may read a table: by the privileges of its definer, or of the current
    /// account.
    ///
    /// # Errors
    /// 1356, and 1449 if the definer does not exist any more.
    pub(crate) fn check_behind(&self, u: &TableUse, view: &ViewScope) -> Result<(), SqlError> {
        if u.check == UseCheck::Explain {
            let own = self.rights.need_table(u.needs, &u.schema, &u.name);
            own.map_err(|_| SqlError::new(ErrorCode::ER_VIEW_NO_EXPLAIN, &[]))?;
        }
        let needs = |rights: &Rights| rights.need_table(u.needs, &u.schema, &u.name);
        self.as_definer(view, needs)
    }

    /// As [`Self::check_behind`], for the columns that a view names.
    pub(crate) fn check_columns_behind(
        &self,
        of: &ColumnUse,
        view: &ViewScope,
    ) -> Result<(), SqlError> {
        self.as_definer(view, |rights| rights.need_columns(of))
    }

    /// Runs a check with the privileges that a view has.
    fn as_definer(
        &self,
        view: &ViewScope,
        check: impl FnOnce(&Rights) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let of_definer;
        let rights = match &view.definer {
            None => &self.rights,
            Some((user, host)) => {
                of_definer = self.rights_of(user, host)?;
                &of_definer
            }
        };
        check(rights)
            .map_err(|_| SqlError::new(ErrorCode::ER_VIEW_INVALID, &[&view.schema, &view.name]))
    }

    /// The privileges of an account with its default roles. Error 1449 if it does not exist.
    fn rights_of(&self, user: &str, host: &str) -> Result<Rights, SqlError> {
        let catalog = self.server.engine.catalog();
        let gone = || SqlError::new(ErrorCode::ER_NO_SUCH_USER, &[&user, &host]);
        let mut rights = Rights::load(catalog, (user, host), host).ok_or_else(gone)?;
        let roles = match self.server.activates_all_roles() {
            true => self.server.roles_of(rights.account()),
            false => rights.account().default_roles.clone(),
        };
        if !roles.is_empty() {
            rights.activate(&catalog.accounts(), roles);
        }
        Ok(rights)
    }

    /// CREATE VIEW, CREATE OR REPLACE VIEW and ALTER VIEW.
    pub(crate) fn create_view(
        &mut self,
        cx: &mut dyn ExecCx,
        v: &CreateView,
        text: &[u8],
    ) -> Result<Response, SqlError> {
        let (schema, name) = (self.schema_of(&v.name)?, v.name.name.as_str());
        self.rights
            .need_table(Privileges::CREATE_VIEW, &schema, name)?;
        if v.or_replace || v.alter {
            self.rights.need_table(Privileges::DROP, &schema, name)?;
        }
        check_table_name(name)?;
        if v.query.into.is_some() {
            return Err(SqlError::new(ErrorCode::ER_VIEW_SELECT_CLAUSE, &[&"INTO"]));
        }
        let mut view = self.view_def(v, text)?;
        let _claim = self.lock_tables_exclusive(cx, &[DATABASES])?;
        self.refresh_schema();
        let database = self.target_database(&schema)?;
        if v.if_not_exists && self.schema.table(&schema, name).is_some() {
            let there = SqlError::new(ErrorCode::ER_TABLE_EXISTS_ERROR, &[&name]);
            self.conditions.push_error(Level::Note, &there);
            return Ok(Response::ok());
        }
        let columns = self.view_columns(cx, v, &schema, &view)?;
        view.updatable = self.view_is_updatable(cx, &view)?;
        if view.check != ViewCheck::None && !view.updatable {
            let code = ErrorCode::ER_VIEW_NONUPD_CHECK;
            return Err(SqlError::new(code, &[&schema, &name]));
        }
        let old = self.place_of_view(v, &schema)?;
        let spec = ViewSpec {
            schema,
            name: name.into(),
            columns,
            collation: database.collation,
            view,
        };
        let engine = self.server.engine.clone();
        self.change(cx, move || engine.put_view(spec, old.as_ref()))?;
        Ok(Response::ok())
    }

    /// Error 1142 unless the account has a privilege on columns of a table that a new view reads.
    fn need_any_on(&self, u: &TableUse) -> Result<(), SqlError> {
        let held = self.rights.on_table(&u.schema, &u.name);
        let on_columns = self.rights.held().on_any_column(&u.schema, &u.name);
        match held.union(on_columns).has_any(Privileges::all_column()) {
            true => Ok(()),
            false => Err(self.rights.denied_to_account("ANY", &u.name)),
        }
    }

    fn view_def(&self, v: &CreateView, text: &[u8]) -> Result<ViewDef, SqlError> {
        let (user, host) = self.env.account();
        let own = (Box::from(user), Box::from(host));
        let definer = match v.definer.as_ref().filter(|d| !d.current) {
            Some(d) => (Box::from(d.user.as_str()), Box::from(d.host.as_str())),
            None => self.definer_of_altered(v)?.unwrap_or_else(|| own.clone()),
        };
        if definer != own {
            let names = "SUPER or SET_ANY_DEFINER";
            self.rights.need_super_or(&["SET_ANY_DEFINER"], names)?;
            let accounts = self.server.engine.catalog().accounts();
            // A source may have accounts that its replica does not have.
            let may_be_absent = self.rights.is_replica();
            if !may_be_absent && accounts.get(&definer.0, &definer.1).is_none() {
                let code = ErrorCode::ER_NO_SUCH_USER;
                return Err(SqlError::new(code, &[&definer.0, &definer.1]));
            }
        }
        let settings = self.env.vars.settings();
        Ok(ViewDef {
            text: v.text.of(text).into(),
            database: self.env.database.clone(),
            lexing: settings.lexing.bits(),
            mode: settings.mode.0,
            collation: settings.collation,
            definer,
            invoker: v.invoker,
            algorithm: match v.algorithm {
                ast::ViewAlgorithm::Undefined => ViewAlgorithm::Undefined,
                ast::ViewAlgorithm::Merge => ViewAlgorithm::Merge,
                ast::ViewAlgorithm::TempTable => ViewAlgorithm::TempTable,
            },
            check: match v.check {
                ast::ViewCheck::None => ViewCheck::None,
                ast::ViewCheck::Local => ViewCheck::Local,
                ast::ViewCheck::Cascaded => ViewCheck::Cascaded,
            },
            updatable: false,
        })
    }

    /// ALTER VIEW keeps the definer.
    fn definer_of_altered(&self, v: &CreateView) -> Result<Option<AccountId>, SqlError> {
        if !v.alter || v.definer.is_some() {
            return Ok(None);
        }
        let found = self
            .schema
            .table(&self.schema_of(&v.name)?, v.name.name.as_str());
        Ok(found.and_then(|def| def.view().map(|view| view.definer.clone())))
    }

    /// Error 1227 unless the account may drop a view whose definer has SYSTEM_USER.
    fn need_definer_rights(&self, def: &TableDef) -> Result<(), SqlError> {
        let definer = def.view().map(|view| view.definer.clone());
        let accounts = self.server.engine.catalog().accounts();
        match definer {
            Some(id) if !self.is_own(&id) => self.need_system_user(&accounts, &id),
            _ => Ok(()),
        }
    }

    fn view_is_updatable(&self, cx: &mut dyn ExecCx, view: &ViewDef) -> Result<bool, SqlError> {
        let info = Info {
            env: &self.env,
            engine: &self.server.engine,
            checkpoint: &Checkpoints::new(cx),
        };
        view_is_updatable(&plan_cx(&info, &self.schema, &view.text, &[]), view)
    }

    /// The view that the new one replaces.
    ///
    /// # Errors
    /// 1050, 1146, 1347.
    fn place_of_view(
        &self,
        v: &CreateView,
        schema: &str,
    ) -> Result<Option<Arc<TableDef>>, SqlError> {
        let name = v.name.name.as_str();
        match self.schema.table(schema, name) {
            None if v.alter => Err(SqlError::new(
                ErrorCode::ER_NO_SUCH_TABLE,
                &[&schema, &name],
            )),
            None => Ok(None),
            Some(_) if !v.or_replace && !v.alter => {
                Err(SqlError::new(ErrorCode::ER_TABLE_EXISTS_ERROR, &[&name]))
            }
            Some(def) if !def.is_view() => Err(SqlError::new(
                ErrorCode::ER_WRONG_OBJECT,
                &[&schema, &name, &"VIEW"],
            )),
            Some(def) => Ok(Some(def.clone())),
        }
    }

    fn view_columns(
        &mut self,
        cx: &mut dyn ExecCx,
        v: &CreateView,
        schema: &str,
        view: &ViewDef,
    ) -> Result<Vec<ColumnDef>, SqlError> {
        let statement = parse(&view.text, LexMode::from_bits(view.lexing))?;
        let mut uses = tables_of(&statement, view.database.as_deref())?;
        for u in &mut uses {
            u.check = UseCheck::ByColumns;
            self.need_any_on(u)?;
        }
        self.add_behind_views(&mut uses)?;
        self.check_uses(&uses)?;
        let name = v.name.name.as_str();
        let own = |u: &TableUse| *u.schema == *schema && *u.name == *name;
        let old = self.schema.table(schema, name);
        if uses.iter().any(own) && old.is_some_and(|t| t.is_view()) {
            let code = ErrorCode::ER_NO_SUCH_TABLE;
            return Err(SqlError::new(code, &[&schema, &name]));
        }
        let info = Info {
            env: &self.env,
            engine: &self.server.engine,
            checkpoint: &Checkpoints::new(cx),
        };
        let columns = ColumnUses::default();
        let cx = PlanCx {
            column_uses: Some(&columns),
            ..plan_cx(&info, &self.schema, &view.text, &[])
        };
        let results = view_results(&cx, view);
        self.check_columns(&columns.take())?;
        let results = results?;
        if !v.columns.is_empty() && v.columns.len() != results.len() {
            return Err(SqlError::new(ErrorCode::ER_VIEW_WRONG_LIST, &[]));
        }
        let mut columns: Vec<ColumnDef> = Vec::with_capacity(results.len());
        let names = match v.columns.is_empty() {
            true => unique_names(&statement, &results),
            false => v.columns.iter().map(|c| c.as_str().into()).collect(),
        };
        names
            .iter()
            .try_for_each(|name| bind::check_column_name(name))?;
        for (n, result) in results.into_iter().enumerate() {
            let column = column_of(result, names.get(n).map(|name| &**name));
            if columns.iter().any(|c| eq_name(&c.name, &column.name)) {
                let code = ErrorCode::ER_DUP_FIELDNAME;
                return Err(SqlError::new(code, &[&column.name]));
            }
            columns.push(column);
        }
        Ok(columns)
    }

    /// DROP VIEW: drops all of the views or none.
    pub(crate) fn drop_views(
        &mut self,
        cx: &mut dyn ExecCx,
        if_exists: bool,
        names: &[ObjectName],
    ) -> Result<Response, SqlError> {
        let mut wanted = Vec::with_capacity(names.len());
        for name in names {
            let (schema, name) = (self.schema_of(name)?, name.name.as_str());
            self.rights.need_table(Privileges::DROP, &schema, name)?;
            wanted.push((schema, name));
        }
        let _claim = self.lock_tables_exclusive(cx, &[DATABASES])?;
        self.refresh_schema();
        let (mut views, mut absent) = (Vec::new(), Vec::new());
        for (schema, name) in &wanted {
            match self.schema.table(schema, name) {
                Some(def) if def.is_view() => {
                    self.need_definer_rights(def)?;
                    views.push(def.clone());
                }
                Some(_) => {
                    let code = ErrorCode::ER_WRONG_OBJECT;
                    return Err(SqlError::new(code, &[schema, name, &"VIEW"]));
                }
                None => absent.push(format!("{schema}.{name}")),
            }
        }
        let code = ErrorCode::ER_BAD_TABLE_ERROR;
        if !absent.is_empty() && !if_exists {
            return Err(SqlError::new(code, &[&absent.join(",")]));
        }
        for name in &absent {
            self.conditions.push(Level::Note, code, &[name]);
        }
        let engine = self.server.engine.clone();
        self.change(cx, move || engine.drop_views(&views))?;
        Ok(Response::ok())
    }
}

/// The tables that a view reads, in a query or in another view, whose definer's privileges then
/// apply. `named`: where the view is named.
fn behind(def: &TableDef, named: &TableUse) -> Result<Vec<TableUse>, SqlError> {
    let around = named.view.as_deref();
    let Some(view) = def.view() else {
        return Ok(Vec::new());
    };
    let statement = parse(&view.text, LexMode::from_bits(view.lexing))?;
    let mut uses = tables_of(&statement, view.database.as_deref())?;
    let own = Arc::new(ViewScope::of(&def.schema, &def.name, view, around));
    for u in &mut uses {
        u.view = Some(own.clone());
        u.check = named.check;
    }
    if is_write(named)
        && let Some(target) = changed_table(&statement, view.database.as_deref(), &uses)
    {
        // The columns of the table that the statement reads are checked one by one.
        uses[target].needs = named.needs;
    }
    Ok(uses)
}

/// The table, or the view, whose rows a view has: its place in `uses`.
fn changed_table(
    statement: &ast::Statement,
    database: Option<&str>,
    uses: &[TableUse],
) -> Option<usize> {
    let ast::Statement::Query(query) = statement else {
        return None;
    };
    let ast::QueryBody::Select(select) = &query.body else {
        return None;
    };
    let [ast::TableRef::Table(factor)] = select.from.as_slice() else {
        return None;
    };
    let schema = factor
        .name
        .schema
        .as_ref()
        .map(ast::Ident::as_str)
        .or(database)?;
    let name = factor.name.name.as_str();
    uses.iter()
        .position(|u| *u.schema == *schema && *u.name == *name)
}

/// The names of a view's columns. An expression without an alias gets a generated name if its text
/// is no valid name, or another column has it.
fn unique_names(statement: &ast::Statement, results: &[ResultColumn]) -> Vec<Arc<str>> {
    let unaliased = unaliased_expressions(statement);
    let may_change = |n: usize| unaliased.get(n).is_some_and(|u| *u);
    let mut names: Vec<Arc<str>> = results.iter().map(|r| r.name.clone()).collect();
    for (n, name) in names.iter_mut().enumerate() {
        if may_change(n) && bind::check_column_name(name).is_err() {
            *name = format!("Name_exp_{}", n + 1).into();
        }
    }
    for n in 0..names.len() {
        let same = |other: &usize| eq_name(&names[*other], &names[n]);
        let Some(first) = (0..n).find(same) else {
            continue;
        };
        if let Some(changed) = [n, first].into_iter().find(|n| may_change(*n)) {
            names[changed] = format!("Name_exp_{}", names[changed]).into();
        }
    }
    names
}

/// Which items of a query's first SELECT are expressions without an alias. Empty if an item is not
/// exactly one column.
fn unaliased_expressions(statement: &ast::Statement) -> Vec<bool> {
    let ast::Statement::Query(query) = statement else {
        return Vec::new();
    };
    let mut body = &query.body;
    let select = loop {
        match body {
            ast::QueryBody::Select(select) => break select,
            ast::QueryBody::SetOperation { left, .. } => body = left,
            ast::QueryBody::Paren(query) => body = &query.body,
            _ => return Vec::new(),
        }
    };
    let unaliased = |item: &ast::SelectItem| match item {
        ast::SelectItem::Expr { expr, alias, .. } => {
            Some(alias.is_none() && !matches!(expr, ast::Expr::Column(_)))
        }
        _ => None,
    };
    let items = select.items.iter().map(unaliased);
    items.collect::<Option<_>>().unwrap_or_default()
}

/// A column of a view, for SHOW COLUMNS.
fn column_of(result: ResultColumn, name: Option<&str>) -> ColumnDef {
    let mut column = bind::selected::keeping(&result);
    if let Some(name) = name {
        column.name = name.into();
    }
    let named = result
        .origin
        .as_ref()
        .is_some_and(|o| o.through == ColumnPath::Name);
    if !named {
        column.comment = Box::default();
    }
    if column.default == ColumnDefault::None && column.nullable {
        column.default = ColumnDefault::Null;
    }
    column
}
