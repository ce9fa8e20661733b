//! GRANT and REVOKE of privileges.

use nfold_catalog::privileges::{DYNAMIC, dynamic_privilege};
use nfold_catalog::schema::eq_name;
use nfold_catalog::{Account, AccountId, DatabaseNames, DynamicGrant, Privileges, TableGrant};
use nfold_exec::ExecCx;
use nfold_sql::ast::{self, Grant, GrantTarget, ObjectName, Revoke};
use nfold_types::{ErrorCode, Level, SqlError};

use super::{AccountChange, restrict};
use crate::session::Session;
use crate::session::response::Response;
use crate::unix_time::unix_time;

/// The level on which privileges are granted.
enum GrantLevel {
    Global,
    /// The name as written, with wildcards.
    Database(Box<str>),
    Table(Box<str>, Box<str>),
}

/// The privileges of a GRANT or REVOKE.
#[derive(Default)]
struct Granted {
    privileges: Privileges,
    /// Privileges on columns, in the order of the statement.
    columns: Vec<(Box<str>, Privileges)>,
    dynamic: Vec<&'static str>,
}

impl Granted {
    /// All static privileges, on whichever level.
    fn all(&self) -> Privileges {
        let columns = self.columns.iter();
        columns.fold(self.privileges, |sum, (_, p)| sum.union(*p))
    }
}

impl Session {
    /// GRANT
    pub(crate) fn grant(&mut self, cx: &mut dyn ExecCx, g: &Grant) -> Result<Response, SqlError> {
        if let ast::Privileges::Roles(roles) = &g.privileges {
            return self.grant_roles(cx, roles, (&g.to, g.grant_option));
        }
        if let GrantTarget::Routine(kind, routine) = &g.target {
            return self.grant_on_routine(g, (*kind, routine));
        }
        if let GrantTarget::Account(proxied) = &g.target {
            return self.grant_proxy(cx, g, proxied);
        }
        let place = self.grant_place(&g.target)?;
        let mut granted = granted(&g.privileges, &place)?;
        if g.grant_option {
            granted.privileges = granted.privileges.union(Privileges::GRANT_OPTION);
        }
        self.may_grant(&granted, &place)?;
        if let GrantLevel::Table(schema, table) = &place {
            self.may_grant_on(&granted, (schema, table))?;
        }
        let restrictions = match (&place, &g.as_user) {
            (GrantLevel::Global, None) => self.rights.held().restrictions(),
            (GrantLevel::Global, Some(other)) => self.restrictions_of(other, granted.privileges)?,
            (_, None) => Vec::new(),
            (_, Some(_)) => {
                let code = ErrorCode::ER_UNSUPPORTED_USE_OF_GRANT_AS;
                return Err(SqlError::new(code, &[]));
            }
        };
        let grantor = self.rights.account();
        let grantor = format!("{}@{}", grantor.user, grantor.host);
        self.change_accounts(cx, |session, change| {
            for spec in &g.to {
                if spec.auth.is_some() {
                    return Err(SqlError::not_supported("IDENTIFIED in GRANT"));
                }
                let id = session.named(&spec.account);
                let none = || SqlError::new(ErrorCode::ER_CANT_CREATE_USER_WITH_GRANT, &[]);
                let mut account = change.get(&id).ok_or_else(none)?;
                session.need_system_user(&change.accounts, &id)?;
                if matches!(place, GrantLevel::Global) {
                    let names = change.accounts.database_names;
                    restrict::inherit(&mut account, granted.privileges, &restrictions, names);
                }
                add(&mut account, &place, &granted, &grantor);
                change.put(account);
            }
            Ok(())
        })
    }

    /// REVOKE
    pub(crate) fn revoke(&mut self, cx: &mut dyn ExecCx, r: &Revoke) -> Result<Response, SqlError> {
        if let ast::Privileges::Roles(roles) = &r.privileges {
            return self.revoke_roles(cx, roles, r);
        }
        if r.everything {
            return self.revoke_everything(cx, r);
        }
        if let GrantTarget::Routine(_, routine) = &r.target {
            return self.revoke_on_routine(r, routine);
        }
        if let GrantTarget::Account(proxied) = &r.target {
            return self.revoke_proxy(cx, r, proxied);
        }
        let place = self.grant_place(&r.target)?;
        let mut revoked = granted(&r.privileges, &place)?;
        if r.grant_option {
            revoked.privileges = revoked.privileges.union(Privileges::GRANT_OPTION);
        }
        self.may_grant(&revoked, &place)?;
        let all = r.privileges == ast::Privileges::All;
        self.change_accounts(cx, |session, change| {
            let names = change.accounts.database_names;
            for name in &r.from {
                let id = session.named(name);
                let Some(mut account) = session.revokes_from(change, r, &id) else {
                    match (&place, r.ignore_unknown) {
                        (_, true) => continue,
                        (GrantLevel::Global, _) if all => {
                            return Err(SqlError::new(ErrorCode::ER_REVOKE_GRANTS, &[]));
                        }
                        _ => return Err(no_grant(&id, &place)),
                    }
                };
                session.need_system_user(&change.accounts, &id)?;
                let taken = match (&place, names) {
                    (GrantLevel::Database(database), DatabaseNames::Literal) => {
                        restrict::revoke(&mut account, database, revoked.privileges, all)
                    }
                    (GrantLevel::Global, _) => {
                        session.may_revoke_from(&account, revoked.privileges)?;
                        take(&mut account, &place, &revoked)
                    }
                    _ => take(&mut account, &place, &revoked),
                };
                match taken {
                    true => change.put(account),
                    false if r.if_exists => {
                        change.notes.push((Level::Warning, no_grant(&id, &place)));
                    }
                    false => return Err(no_grant(&id, &place)),
                }
            }
            Ok(())
        })
    }

    /// The account of a REVOKE. `None`: there is none, of which IGNORE UNKNOWN USER warns.
    pub(super) fn revokes_from(
        &self,
        change: &mut AccountChange,
        r: &Revoke,
        id: &AccountId,
    ) -> Option<Account> {
        let found = change.get(id);
        if found.is_none() && r.ignore_unknown {
            let code = ErrorCode::ER_USER_DOES_NOT_EXIST;
            change.note(Level::Warning, code, &[&id.0]);
        }
        found
    }

    /// `REVOKE ALL PRIVILEGES, GRANT OPTION FROM …`. Roles stay.
    fn revoke_everything(&mut self, cx: &mut dyn ExecCx, r: &Revoke) -> Result<Response, SqlError> {
        self.need_user_admin(Privileges::UPDATE, "CREATE USER")?;
        self.change_accounts(cx, |session, change| {
            for name in &r.from {
                let id = session.named(name);
                let Some(mut account) = session.revokes_from(change, r, &id) else {
                    match r.ignore_unknown {
                        true => continue,
                        false => return Err(SqlError::new(ErrorCode::ER_REVOKE_GRANTS, &[])),
                    }
                };
                session.need_system_user(&change.accounts, &id)?;
                account.global = Privileges::NONE;
                account.restrictions.clear();
                account.databases.clear();
                account.tables.clear();
                account.dynamic.clear();
                change.put(account);
            }
            Ok(())
        })
    }

    fn grant_place(&self, target: &GrantTarget) -> Result<GrantLevel, SqlError> {
        match target {
            GrantTarget::Global => Ok(GrantLevel::Global),
            GrantTarget::Database(name) => Ok(GrantLevel::Database(name.as_str().into())),
            GrantTarget::CurrentDatabase => match self.env.database.as_deref() {
                Some(name) => Ok(GrantLevel::Database(name.into())),
                None => Err(SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[])),
            },
            GrantTarget::Table(name) => self.table_place(name),
            GrantTarget::Routine(..) => Err(SqlError::not_supported("privileges on routines")),
            GrantTarget::Account(_) | GrantTarget::None => {
                Err(SqlError::new(ErrorCode::ER_SYNTAX_ERROR, &[]))
            }
        }
    }

    fn table_place(&self, name: &ObjectName) -> Result<GrantLevel, SqlError> {
        let schema = self.schema_of(name)?;
        Ok(GrantLevel::Table(
            (&*schema).into(),
            name.name.as_str().into(),
        ))
    }

    /// Granting and revoking needs GRANT OPTION and the privileges themselves.
    fn may_grant(&self, granted: &Granted, place: &GrantLevel) -> Result<(), SqlError> {
        let wanted = granted.all().union(Privileges::GRANT_OPTION);
        match place {
            GrantLevel::Global => {
                let account = self.rights.account();
                let only_dynamic = granted.privileges.is_empty() && !granted.dynamic.is_empty();
                if !only_dynamic && !self.rights.has_global(wanted) {
                    let with_password = match account.auth_string.is_empty() {
                        true => "NO",
                        false => "YES",
                    };
                    return Err(SqlError::new(
                        ErrorCode::ER_ACCESS_DENIED_ERROR,
                        &[&account.user, &account.host, &with_password],
                    ));
                }
                let held = self.rights.held();
                let all = granted.dynamic.len() == DYNAMIC.len();
                match all || granted.dynamic.iter().all(|d| held.grants_dynamic(d)) {
                    true => Ok(()),
                    false => Err(self.rights.lacks("GRANT OPTION")),
                }
            }
            GrantLevel::Database(database) => self.rights.need_database(wanted, database),
            GrantLevel::Table(schema, table) => self.rights.need_table(wanted, schema, table),
        }
    }

    /// What a GRANT on a table needs besides: the privileges on the whole table, and that the table
    /// and its columns exist. A table that does not exist may be granted together with CREATE.
    fn may_grant_on(
        &mut self,
        granted: &Granted,
        (schema, table): (&str, &str),
    ) -> Result<(), SqlError> {
        let missing = granted
            .privileges
            .without(self.rights.on_table(schema, table));
        if !missing.is_empty() {
            return Err(self.rights.denied(&missing.names_in_errors(), table));
        }
        self.refresh_schema();
        let system = self.server.system_tables.find(schema, table);
        let found = self.schema.table(schema, table).or(system);
        let Some(def) = found else {
            let may_be_absent =
                granted.columns.is_empty() && granted.privileges.contains(Privileges::CREATE);
            return match may_be_absent {
                true => Ok(()),
                false => {
                    let code = ErrorCode::ER_NO_SUCH_TABLE;
                    Err(SqlError::new(code, &[&schema, &table]))
                }
            };
        };
        let unknown = |(name, _): &&(Box<str>, Privileges)| def.column(name).is_none();
        match granted.columns.iter().find(unknown) {
            None => Ok(()),
            Some((name, _)) => Err(SqlError::new(
                ErrorCode::ER_BAD_FIELD_ERROR,
                &[name, &table],
            )),
        }
    }
}

/// The privileges of a list on this level.
///
/// # Errors
/// 1144, 1149, 1221, 3619.
fn granted(list: &ast::Privileges, place: &GrantLevel) -> Result<Granted, SqlError> {
    let mut out = Granted::default();
    let list = match (list, place) {
        (ast::Privileges::All, GrantLevel::Global) => {
            out.privileges = Privileges::all_global();
            out.dynamic = DYNAMIC.to_vec();
            return Ok(out);
        }
        (ast::Privileges::All, GrantLevel::Database(_)) => {
            out.privileges = Privileges::all_database();
            return Ok(out);
        }
        (ast::Privileges::All, GrantLevel::Table(..)) => {
            out.privileges = Privileges::all_table();
            return Ok(out);
        }
        (ast::Privileges::List(list), _) => list,
        (ast::Privileges::Roles(_) | ast::Privileges::Proxy, _) => {
            return Err(SqlError::new(ErrorCode::ER_SYNTAX_ERROR, &[]));
        }
    };
    let illegal = || SqlError::new(ErrorCode::ER_ILLEGAL_GRANT_FOR_TABLE, &[]);
    for (name, columns) in list {
        if name == "USAGE" {
            continue;
        }
        let Some((privilege, levels)) = Privileges::by_name(name) else {
            let unknown = || SqlError::new(ErrorCode::ER_SYNTAX_ERROR, &[]);
            let dynamic = dynamic_privilege(name).ok_or_else(unknown)?;
            if !matches!(place, GrantLevel::Global) {
                let code = ErrorCode::ER_ILLEGAL_PRIVILEGE_LEVEL;
                return Err(SqlError::new(code, &[&dynamic]));
            }
            if !out.dynamic.contains(&dynamic) {
                out.dynamic.push(dynamic);
            }
            continue;
        };
        match place {
            GrantLevel::Table(..) if !levels.table => return Err(illegal()),
            GrantLevel::Database(_) if !levels.database => {
                return Err(SqlError::new(
                    ErrorCode::ER_WRONG_USAGE,
                    &[&"DB GRANT", &"GLOBAL PRIVILEGES"],
                ));
            }
            GrantLevel::Global | GrantLevel::Database(_) if !columns.is_empty() => {
                return Err(illegal());
            }
            _ => {}
        }
        match columns.is_empty() {
            true => out.privileges = out.privileges.union(privilege),
            false => {
                let on_columns = columns.iter().map(|c| (c.as_str().into(), privilege));
                out.columns.extend(on_columns);
            }
        }
    }
    Ok(out)
}

/// Error 1141 or 1147.
fn no_grant((user, host): &AccountId, place: &GrantLevel) -> SqlError {
    match place {
        GrantLevel::Table(_, table) => {
            let code = ErrorCode::ER_NONEXISTING_TABLE_GRANT;
            SqlError::new(code, &[user, host, table])
        }
        _ => SqlError::new(ErrorCode::ER_NONEXISTING_GRANT, &[user, host]),
    }
}

/// Adds privileges to an account.
fn add(account: &mut Account, place: &GrantLevel, granted: &Granted, grantor: &str) {
    match place {
        GrantLevel::Global => {
            let grant_option = granted.privileges.contains(Privileges::GRANT_OPTION);
            let static_too = granted.privileges != Privileges::GRANT_OPTION;
            if static_too || granted.dynamic.is_empty() {
                account.global = account.global.union(granted.privileges);
            }
            for name in &granted.dynamic {
                match account.dynamic.iter_mut().find(|d| *d.name == **name) {
                    Some(held) => held.grant_option |= grant_option,
                    None => account.dynamic.push(DynamicGrant {
                        name: (*name).into(),
                        grant_option,
                    }),
                }
            }
            account.dynamic.sort_by(|a, b| a.name.cmp(&b.name));
        }
        GrantLevel::Database(name) => {
            let added = restrict::lift(account, name, granted.privileges);
            match account.databases.iter_mut().find(|(n, _)| n == name) {
                Some((_, held)) => *held = held.union(added),
                None => account.databases.push((name.clone(), added)),
            }
            account.databases.retain(|(_, held)| !held.is_empty());
        }
        GrantLevel::Table(database, table) => {
            let same = |t: &TableGrant| t.database == *database && t.table == *table;
            let at = account.tables.iter().position(same).unwrap_or_else(|| {
                account.tables.push(TableGrant {
                    database: database.clone(),
                    table: table.clone(),
                    privileges: Privileges::NONE,
                    columns: Vec::new(),
                    grantor: Box::default(),
                    granted_s: 0,
                });
                account.tables.len() - 1
            });
            let grant = &mut account.tables[at];
            grant.privileges = grant.privileges.union(granted.privileges);
            for (name, privileges) in &granted.columns {
                match grant.columns.iter_mut().find(|(c, _)| eq_name(c, name)) {
                    Some((_, held)) => *held = held.union(*privileges),
                    None => grant.columns.push((name.clone(), *privileges)),
                }
            }
            grant.columns.sort();
            (grant.grantor, grant.granted_s) = (grantor.into(), unix_time().as_secs());
            account.tables.retain(|t| !t.is_empty());
            let key = |t: &TableGrant| (t.database.clone(), t.table.clone());
            account.tables.sort_by_key(key);
        }
    }
}

/// Takes privileges from an account. Returns false if it has no such grant.
fn take(account: &mut Account, place: &GrantLevel, revoked: &Granted) -> bool {
    match place {
        GrantLevel::Global => {
            account.global = account.global.without(revoked.privileges);
            restrict::forget(account, revoked.privileges);
            account
                .dynamic
                .retain(|d| !revoked.dynamic.contains(&&*d.name));
            let only_option = revoked.privileges == Privileges::GRANT_OPTION;
            if only_option && revoked.dynamic.is_empty() {
                account
                    .dynamic
                    .iter_mut()
                    .for_each(|d| d.grant_option = false);
            }
            true
        }
        GrantLevel::Database(name) => {
            let found = account.databases.iter_mut().find(|(n, _)| n == name);
            let Some((_, held)) = found else {
                return false;
            };
            *held = held.without(revoked.privileges);
            account.databases.retain(|(_, held)| !held.is_empty());
            true
        }
        GrantLevel::Table(database, table) => {
            let same = |t: &&mut TableGrant| t.database == *database && t.table == *table;
            let Some(grant) = account.tables.iter_mut().find(same) else {
                return false;
            };
            grant.privileges = grant.privileges.without(revoked.privileges);
            for (name, privileges) in &revoked.columns {
                let found = grant.columns.iter_mut().find(|(c, _)| eq_name(c, name));
                let Some((_, held)) = found.filter(|(_, held)| held.has_any(*privileges)) else {
                    return false;
                };
                *held = held.without(*privileges);
            }
            // A privilege that is revoked on the table is revoked on all of its columns.
            for (_, held) in &mut grant.columns {
                *held = held.without(revoked.privileges);
            }
            grant.columns.retain(|(_, held)| !held.is_empty());
            account.tables.retain(|t| !t.is_empty());
            true
        }
    }
}
