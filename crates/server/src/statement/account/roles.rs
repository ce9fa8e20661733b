//! Roles: CREATE ROLE, DROP ROLE, GRANT and REVOKE of roles, SET ROLE, SET DEFAULT ROLE.

use nfold_catalog::{Account, AccountId, Privileges, RoleGrant};
use nfold_exec::ExecCx;
use nfold_protocol::consts::CACHING_SHA2_PASSWORD;
use nfold_sql::ast::{AccountName, ActiveRoles, DefaultRoles, Revoke, RoleStatement, UserSpec};
use nfold_types::{ErrorCode, Level, SqlError};

use super::{AccountChange, EXISTS, failed, id_of, shown};
use crate::session::Session;
use crate::session::response::Response;

/// Error 3523.
fn unknown(id: &AccountId) -> SqlError {
    SqlError::new(ErrorCode::ER_UNKNOWN_AUTHID, &[&id.0, &id.1])
}

/// Error 3530: an account does not have a role.
pub(super) fn not_granted(role: &AccountId, to: &Account) -> SqlError {
    let code = ErrorCode::ER_ROLE_NOT_GRANTED;
    SqlError::new(code, &[&role.0, &role.1, &to.user, &to.host])
}

/// The error of SET DEFAULT ROLE for an account that does not exist. NONE has none, as in MySQL.
pub(super) fn refuse_absent(id: &AccountId, roles: &DefaultRoles) -> Result<(), SqlError> {
    match roles {
        DefaultRoles::None => Ok(()),
        DefaultRoles::All => Err(unknown(id)),
        DefaultRoles::List(names) => names.iter().try_for_each(|role| {
            let code = ErrorCode::ER_ROLE_NOT_GRANTED;
            Err(SqlError::new(code, &[&role.user, &role.host, &id.0, &id.1]))
        }),
    }
}

/// Whether an account was made by CREATE ROLE, or looks so.
fn is_role(account: &Account) -> bool {
    account.locked && account.expired
}

impl Session {
    /// CREATE ROLE, DROP ROLE, SET ROLE, SET DEFAULT ROLE.
    pub(crate) fn role_statement(
        &mut self,
        cx: &mut dyn ExecCx,
        statement: &RoleStatement,
    ) -> Result<Response, SqlError> {
        match statement {
            RoleStatement::Create {
                if_not_exists,
                roles,
            } => self.create_roles(cx, *if_not_exists, roles),
            RoleStatement::Drop { if_exists, roles } => self.drop_roles(cx, *if_exists, roles),
            RoleStatement::Set(roles) => self.set_role(roles),
            RoleStatement::SetDefault { roles, to } => self.set_default_role(cx, roles, to),
        }
    }

    fn create_roles(
        &mut self,
        cx: &mut dyn ExecCx,
        if_not_exists: bool,
        roles: &[AccountName],
    ) -> Result<Response, SqlError> {
        if !self.rights.has_global(Privileges::CREATE_ROLE) {
            self.need_user_admin(Privileges::CREATE_ROLE, "CREATE USER, CREATE ROLE")?;
        }
        self.change_accounts(cx, |_, change| {
            let mut there = Vec::new();
            for name in roles {
                let (user, host) = id_of(name);
                let id = (user, host.to_ascii_lowercase().into());
                if id.0.is_empty() {
                    let names = ["anonymous user".to_string()];
                    return Err(failed("CREATE ROLE", &names, ""));
                }
                if change.get(&id).is_none() {
                    let mut role = Account::new(id, CACHING_SHA2_PASSWORD);
                    (role.locked, role.expired) = (true, true);
                    change.put(role);
                } else if if_not_exists {
                    let code = ErrorCode::ER_USER_ALREADY_EXISTS;
                    change.note(Level::Note, code, &[&shown(&id)]);
                } else {
                    there.push(shown(&id));
                }
            }
            match there.is_empty() {
                true => Ok(()),
                false => Err(failed("CREATE ROLE", &there, EXISTS)),
            }
        })
    }

    fn drop_roles(
        &mut self,
        cx: &mut dyn ExecCx,
        if_exists: bool,
        roles: &[AccountName],
    ) -> Result<Response, SqlError> {
        if self.rights.has_global(Privileges::DROP_ROLE) {
            let accounts = self.server.engine.catalog().accounts();
            let user = |name: &AccountName| {
                let account = accounts.get(&name.user, &name.host);
                account.is_some_and(|a| !is_role(a))
            };
            if roles.iter().any(user) {
                let wanted = Privileges::CREATE_USER;
                self.rights.need_global(wanted, "CREATE USER")?;
            }
        } else {
            self.need_user_admin(Privileges::DROP_ROLE, "CREATE USER, DROP ROLE")?;
        }
        self.drop_accounts(cx, ("DROP ROLE", if_exists), roles)
    }

    /// Error 1227 unless the account may grant and revoke these roles.
    fn need_role_admin(&self, roles: &[AccountName]) -> Result<(), SqlError> {
        let own = self.rights.account();
        let admin = |name: &AccountName| {
            let grant = own.role_grant(&id_of(name));
            grant.is_some_and(|g| g.admin_option)
        };
        match self.rights.has_super_or(&["ROLE_ADMIN"]) || roles.iter().all(admin) {
            true => Ok(()),
            false => Err(self.rights.lacks("WITH ADMIN, ROLE_ADMIN, SUPER")),
        }
    }

    /// GRANT of roles.
    pub(super) fn grant_roles(
        &mut self,
        cx: &mut dyn ExecCx,
        roles: &[AccountName],
        (to, admin_option): (&[UserSpec], bool),
    ) -> Result<Response, SqlError> {
        self.need_role_admin(roles)?;
        self.change_accounts(cx, |session, change| {
            for spec in to {
                let id = session.named(&spec.account);
                let mut account = change.get(&id).ok_or_else(|| unknown(&id))?;
                for role in roles {
                    session.grant_role(change, &mut account, (&id_of(role), admin_option))?;
                }
                change.put(account);
            }
            Ok(())
        })
    }

    /// Adds a role to an account.
    ///
    /// # Errors
    /// 3523, and 4027 if the account would have itself as a role.
    pub(super) fn grant_role(
        &self,
        change: &AccountChange,
        account: &mut Account,
        (role, admin_option): (&AccountId, bool),
    ) -> Result<(), SqlError> {
        let role = change.get(role).ok_or_else(|| unknown(role))?.id();
        let through = change.accounts.with_granted(std::slice::from_ref(&role));
        if account.is(&role) || through.iter().any(|a| a.is(&account.id())) {
            return Err(SqlError::new(
                ErrorCode::ER_ROLE_GRANTED_TO_ITSELF,
                &[&account.user, &account.host, &role.0, &role.1],
            ));
        }
        match account.roles.iter_mut().find(|r| r.role == role) {
            Some(held) => held.admin_option |= admin_option,
            None => account.roles.push(RoleGrant { role, admin_option }),
        }
        account.roles.sort_by(|a, b| a.role.cmp(&b.role));
        Ok(())
    }

    /// REVOKE of roles.
    pub(super) fn revoke_roles(
        &mut self,
        cx: &mut dyn ExecCx,
        roles: &[AccountName],
        r: &Revoke,
    ) -> Result<Response, SqlError> {
        self.need_role_admin(roles)?;
        self.change_accounts(cx, |session, change| {
            for name in &r.from {
                let id = session.named(name);
                let Some(mut account) = change.get(&id) else {
                    if !r.ignore_unknown {
                        return Err(unknown(&id));
                    }
                    let code = ErrorCode::ER_USER_DOES_NOT_EXIST;
                    change.note(Level::Warning, code, &[&id.0]);
                    continue;
                };
                for role in roles.iter().map(id_of) {
                    if change.get(&role).is_none() {
                        if !r.if_exists {
                            return Err(unknown(&role));
                        }
                        change.notes.push((Level::Warning, unknown(&role)));
                    }
                    account.roles.retain(|held| held.role != role);
                    account.default_roles.retain(|held| *held != role);
                }
                change.put(account);
            }
            Ok(())
        })
    }

    fn set_default_role(
        &mut self,
        cx: &mut dyn ExecCx,
        roles: &DefaultRoles,
        to: &[AccountName],
    ) -> Result<Response, SqlError> {
        if !to.iter().all(|name| self.is_own(&self.named(name))) {
            self.need_user_admin(Privileges::UPDATE, "CREATE USER")?;
        }
        self.change_accounts(cx, |session, change| {
            for name in to {
                let id = session.named(name);
                match change.get(&id) {
                    Some(mut account) => {
                        session.set_default_roles(&mut account, roles)?;
                        change.put(account);
                    }
                    None => refuse_absent(&id, roles)?,
                }
            }
            Ok(())
        })
    }

    /// Sets the default roles of an account. Error 3530 for a role that it does not have.
    pub(super) fn set_default_roles(
        &self,
        account: &mut Account,
        roles: &DefaultRoles,
    ) -> Result<(), SqlError> {
        account.default_roles = match roles {
            DefaultRoles::None => Vec::new(),
            DefaultRoles::All => {
                let mut all = self.server.mandatory_roles();
                all.extend(account.roles.iter().map(|r| r.role.clone()));
                all.sort();
                all.dedup();
                all
            }
            DefaultRoles::List(names) => self.default_roles(account, names)?,
        };
        Ok(())
    }

    /// These roles, sorted. Error 3530 for one that the account does not have.
    pub(super) fn default_roles(
        &self,
        account: &Account,
        names: &[AccountName],
    ) -> Result<Vec<AccountId>, SqlError> {
        let mut roles: Vec<AccountId> = names.iter().map(id_of).collect();
        let mandatory = self.server.mandatory_roles();
        let missing = |r: &&AccountId| account.role_grant(r).is_none() && !mandatory.contains(*r);
        if let Some(role) = roles.iter().find(missing) {
            return Err(not_granted(role, account));
        }
        roles.sort();
        roles.dedup();
        Ok(roles)
    }

    fn set_role(&mut self, roles: &ActiveRoles) -> Result<Response, SqlError> {
        let account = self.rights.account().clone();
        let roles = self.roles_to_activate(&account, roles)?;
        self.activate_roles(roles);
        Ok(Response::ok())
    }

    /// The roles of an account that a list names. Error 3530 for one that it does not have.
    pub(super) fn roles_to_activate(
        &self,
        account: &Account,
        roles: &ActiveRoles,
    ) -> Result<Vec<AccountId>, SqlError> {
        Ok(match roles {
            ActiveRoles::None => Vec::new(),
            ActiveRoles::Default => account.default_roles.clone(),
            ActiveRoles::List(names) => self.default_roles(account, names)?,
            ActiveRoles::All(except) => {
                let mut all = self.server.roles_of(account);
                all.retain(|role| !except.iter().any(|e| id_of(e) == *role));
                all
            }
        })
    }
}
