//! Accounts: CREATE, ALTER, DROP and RENAME USER, SET PASSWORD; `grant` has GRANT and REVOKE,
//! `restrict` partial revokes, `proxy` PROXY, `roles` the statements about roles, `show` SHOW
//! GRANTS and SHOW CREATE USER, `password` and `options` what accounts are made of.
//!
//! A statement computes the accounts as they are to be from those of one version, and stores them
//! if no other session has changed an account meanwhile; otherwise it starts over.

mod grant;
mod logged;
mod options;
mod password;
mod proxy;
mod restrict;
mod roles;
mod routine;
mod show;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nfold_catalog::{Account, AccountId, AccountSnapshot, Privileges};
use nfold_exec::ExecCx;
use nfold_protocol::consts::CACHING_SHA2_PASSWORD;
use nfold_sql::ast::{AccountName, AuthSecret, CreateUser, DefaultRoles, SetPassword, UserSpec};
use nfold_types::{ErrorCode, Level, SqlError};

use self::password::Generated;
use crate::session::Session;
use crate::session::cx::blocking;
use crate::session::response::Response;
use crate::unix_time::unix_time;

/// What a statement does to the accounts of one version.
struct AccountChange {
    accounts: Arc<AccountSnapshot>,
    changed: Vec<Account>,
    gone: Vec<AccountId>,
    /// Warnings and notes, if the change succeeds.
    notes: Vec<(Level, SqlError)>,
    /// The passwords that the server has made.
    generated: Vec<Generated>,
    /// Accounts whose failed logins are forgotten, if the change succeeds.
    forgiven: Vec<AccountId>,
    /// Whether the session's account has a new password.
    own_password: bool,
    /// The statement for the binary log, if it is not as it was written.
    logged: Option<Vec<u8>>,
}

impl AccountChange {
    /// The account of this name, as it is to be.
    fn get(&self, id: &AccountId) -> Option<Account> {
        if let Some(changed) = self.changed.iter().find(|a| a.is(id)) {
            return Some(changed.clone());
        }
        let gone = |g: &AccountId| g.0 == id.0 && g.1.eq_ignore_ascii_case(&id.1);
        let stored = self.accounts.get(&id.0, &id.1);
        stored
            .filter(|_| !self.gone.iter().any(gone))
            .map(|a| Account::clone(a))
    }

    fn put(&mut self, account: Account) {
        self.changed.retain(|a| !a.is(&account.id()));
        self.changed.push(account);
    }

    /// Drops an account, and takes the role away from those that have it.
    fn drop(&mut self, id: &AccountId) {
        let names: Vec<AccountId> = self.accounts.iter().map(|a| a.id()).collect();
        for name in &names {
            let Some(mut other) = self.get(name) else {
                continue;
            };
            let roles = other.roles.len();
            other.roles.retain(|r| r.role != *id);
            other.default_roles.retain(|r| r != id);
            if other.roles.len() < roles {
                self.put(other);
            }
        }
        self.changed.retain(|a| !a.is(id));
        self.gone.push(id.clone());
    }

    fn note(&mut self, level: Level, code: ErrorCode, arguments: &[&dyn std::fmt::Display]) {
        self.notes.push((level, SqlError::new(code, arguments)));
    }
}

/// The id of an account name that is not `CURRENT_USER`.
fn id_of(name: &AccountName) -> AccountId {
    (name.user.as_str().into(), name.host.as_str().into())
}

/// `'user'@'host'`, as messages show an account.
fn shown(id: &AccountId) -> String {
    format!("'{}'@'{}'", id.0, id.1)
}

/// Error 1396 for these accounts; `why` stands behind each name.
fn failed(what: &str, names: &[String], why: &str) -> SqlError {
    let names: Vec<String> = names.iter().map(|name| format!("{name}{why}")).collect();
    SqlError::new(ErrorCode::ER_CANNOT_USER, &[&what, &names.join(",")])
}

const EXISTS: &str = " (User account already exists)";
const ABSENT: &str = " (User account does not exist)";

impl Session {
    /// Changes accounts. `f` may run several times, each time with newer accounts.
    fn change_accounts(
        &mut self,
        cx: &mut dyn ExecCx,
        f: impl Fn(&Session, &mut AccountChange) -> Result<(), SqlError>,
    ) -> Result<Response, SqlError> {
        loop {
            let accounts = self.server.engine.catalog().accounts();
            let base = accounts.version;
            let mut change = AccountChange {
                accounts,
                changed: Vec::new(),
                gone: Vec::new(),
                notes: Vec::new(),
                generated: Vec::new(),
                forgiven: Vec::new(),
                own_password: false,
                logged: None,
            };
            f(self, &mut change)?;
            let AccountChange {
                changed,
                gone,
                notes,
                generated,
                mut forgiven,
                own_password,
                logged,
                ..
            } = change;
            forgiven.extend(gone.iter().cloned());
            let nothing = changed.is_empty() && gone.is_empty();
            if self.carried.pending.attachment.is_some() {
                self.log_accounts(nothing, logged);
            }
            let engine = self.server.engine.clone();
            let done =
                nothing || self.change(cx, move || engine.change_accounts(base, changed, &gone))?;
            if done {
                for (level, note) in notes {
                    self.conditions.push_error(level, &note);
                }
                if let Some(gate) = &mut self.gate
                    && own_password
                {
                    gate.password_changed();
                }
                for (user, host) in &forgiven {
                    self.server.registry.login_failures().forget(user, host);
                }
                return Ok(match generated.is_empty() {
                    true => Response::ok(),
                    false => Response::Rows(password::generated_rows(generated)),
                });
            }
        }
    }

    /// Sets what the binary log gets of the statement: `logged`, if it is not as it was written.
    /// Without a change it is an empty transaction, if it has a GTID.
    fn log_accounts(&mut self, nothing: bool, logged: Option<Vec<u8>>) {
        if nothing {
            self.carried.pending.attachment = self.empty_transaction();
        } else if let Some(sql) = logged {
            self.carried.pending.attachment = self.account_attachment(sql);
        }
    }

    /// Runs a blocking call of the engine.
    pub(crate) fn change<T: Send + 'static>(
        &mut self,
        cx: &mut dyn ExecCx,
        f: impl FnOnce() -> Result<T, nfold_engine::EngineError> + Send + 'static,
    ) -> Result<T, SqlError> {
        self.try_change(cx, f)?
            .map_err(|e| nfold_exec::engine_error(&e))
    }

    /// As [`Self::change`], but returns the engine's own error. KILL stops the call while it builds
    /// indexes.
    pub(crate) fn try_change<T: Send + 'static>(
        &mut self,
        cx: &mut dyn ExecCx,
        f: impl FnOnce() -> Result<T, nfold_engine::EngineError> + Send + 'static,
    ) -> Result<Result<T, nfold_engine::EngineError>, SqlError> {
        let panicked = || {
            SqlError::with_message(
                ErrorCode::ER_UNKNOWN_ERROR,
                "Internal error: the statement failed unexpectedly",
            )
        };
        let asked = Arc::new(AtomicBool::new(false));
        let flag = asked.clone();
        let carried = self.carried.take();
        let job = move || {
            nfold_engine::with_statement_writes(carried, || nfold_engine::stoppable(flag, f))
        };
        let (result, left) = blocking(cx, &asked, job)
            .map_err(nfold_exec::Interrupt::to_sql)?
            .ok_or_else(panicked)?;
        if left != nfold_engine::StatementWrites::default() {
            self.carried.pending = left;
        }
        Ok(result)
    }

    /// The account that a name means; `CURRENT_USER` is the session's account.
    pub(crate) fn named(&self, name: &AccountName) -> AccountId {
        let (user, host) = self.env.account();
        match name.current {
            true => (user.into(), host.into()),
            false => id_of(name),
        }
    }

    pub(crate) fn is_own(&self, id: &AccountId) -> bool {
        self.rights.account().is(id)
    }

    /// Error 1227, which names `names`, unless the account has CREATE USER, or `on_mysql` on the
    /// database `mysql`.
    fn need_user_admin(&self, on_mysql: Privileges, names: &str) -> Result<(), SqlError> {
        match self.rights.on_database("mysql").contains(on_mysql) {
            true => Ok(()),
            false => self.rights.need_global(Privileges::CREATE_USER, names),
        }
    }

    /// Error 1227 unless the account may change accounts that have SYSTEM_USER, if this is one.
    pub(crate) fn need_system_user(
        &self,
        accounts: &AccountSnapshot,
        id: &AccountId,
    ) -> Result<(), SqlError> {
        let all = accounts.with_granted(std::slice::from_ref(id));
        let system = all.iter().any(|a| a.dynamic_grant("SYSTEM_USER").is_some());
        match system && !self.rights.held().has_dynamic("SYSTEM_USER") {
            true => Err(self.rights.lacks("SYSTEM_USER")),
            false => Ok(()),
        }
    }

    /// CREATE USER
    pub(crate) fn create_user(
        &mut self,
        cx: &mut dyn ExecCx,
        (c, text): (&CreateUser, &[u8]),
    ) -> Result<Response, SqlError> {
        self.need_user_admin(Privileges::INSERT, "CREATE USER")?;
        self.check_new_passwords(c)?;
        self.change_accounts(cx, |session, change| {
            let mut there = Vec::new();
            for spec in &c.users {
                let id = session.named(&spec.account);
                if change.get(&id).is_none() {
                    session.make_user(change, c, spec)?;
                } else if c.if_clause {
                    let code = ErrorCode::ER_USER_ALREADY_EXISTS;
                    change.note(Level::Note, code, &[&shown(&id)]);
                } else {
                    there.push(shown(&id));
                }
            }
            change.logged = Some(session.logged_users(change, c, (text, true)));
            match there.is_empty() {
                true => Ok(()),
                false => Err(failed("CREATE USER", &there, EXISTS)),
            }
        })
    }

    fn make_user(
        &self,
        change: &mut AccountChange,
        c: &CreateUser,
        spec: &UserSpec,
    ) -> Result<(), SqlError> {
        let (user, host) = self.named(&spec.account);
        let id = (user, host.to_ascii_lowercase().into());
        let mut account = Account::new(id, CACHING_SHA2_PASSWORD);
        account.options.password.changed_s = unix_time().as_secs();
        // The new password has to follow the new rules.
        options::apply(&mut account, &c.options)?;
        let secret = spec.auth.as_ref().map(|auth| &auth.secret);
        if matches!(secret, None | Some(AuthSecret::None)) {
            // The account has an empty password.
            self.check_password("")?;
        }
        if let Some(auth) = &spec.auth {
            let expired = account.expired;
            self.change_password(change, &mut account, auth, false)?;
            account.expired = expired;
        }
        if let Some(DefaultRoles::List(roles)) = &c.default_roles {
            for role in roles {
                let (user, host) = id_of(role);
                if change.get(&(user.clone(), host.clone())).is_none() {
                    let code = ErrorCode::ER_USER_DOES_NOT_EXIST;
                    return Err(SqlError::new(code, &[&format_args!("`{user}`@`{host}`")]));
                }
                self.grant_role(change, &mut account, (&id_of(role), false))?;
            }
            account.default_roles = self.default_roles(&account, roles)?;
        }
        change.put(account);
        Ok(())
    }

    /// ALTER USER
    pub(crate) fn alter_user(
        &mut self,
        cx: &mut dyn ExecCx,
        (c, text): (&CreateUser, &[u8]),
    ) -> Result<Response, SqlError> {
        let own = c.users.iter().all(|u| self.is_own(&self.named(&u.account)));
        let second = |u: &UserSpec| u.discard_old || u.auth.as_ref().is_some_and(|a| a.retain);
        let second = c.users.iter().any(second);
        let password = c.users.iter().all(|u| u.auth.is_some() || u.discard_old);
        let may = own && c.options.is_empty() && (password || c.default_roles.is_some());
        if may && second {
            self.need_second_password()?;
        } else if !may {
            self.need_user_admin(Privileges::UPDATE, "CREATE USER")?;
        }
        self.check_new_passwords(c)?;
        self.change_accounts(cx, |session, change| {
            let mut missing = Vec::new();
            for spec in &c.users {
                let id = session.named(&spec.account);
                let Some(mut account) = change.get(&id) else {
                    if c.if_clause {
                        let code = ErrorCode::ER_USER_DOES_NOT_EXIST;
                        change.note(Level::Note, code, &[&shown(&id)]);
                    } else if let Some(default) = &c.default_roles {
                        roles::refuse_absent(&id, default)?;
                    } else {
                        missing.push(shown(&id));
                    }
                    continue;
                };
                if !may {
                    session.need_system_user(&change.accounts, &id)?;
                }
                let expired = std::mem::take(&mut account.expired);
                options::apply(&mut account, &c.options)?;
                let expires = account.expired;
                account.expired |= expired;
                if let Some(auth) = &spec.auth {
                    session.change_password(change, &mut account, auth, true)?;
                    account.expired = expires;
                }
                if spec.discard_old {
                    account.options.password.second = Box::default();
                }
                if options::forget_failures(&c.options) {
                    change.forgiven.push(account.id());
                }
                if let Some(roles) = &c.default_roles {
                    session.set_default_roles(&mut account, roles)?;
                }
                change.put(account);
            }
            change.logged = Some(session.logged_users(change, c, (text, false)));
            match missing.is_empty() {
                true => Ok(()),
                false => Err(failed("ALTER USER", &missing, ABSENT)),
            }
        })
    }

    /// DROP USER
    pub(crate) fn drop_user(
        &mut self,
        cx: &mut dyn ExecCx,
        if_exists: bool,
        users: &[AccountName],
    ) -> Result<Response, SqlError> {
        self.need_user_admin(Privileges::DELETE, "CREATE USER")?;
        self.drop_accounts(cx, ("DROP USER", if_exists), users)
    }

    fn drop_accounts(
        &mut self,
        cx: &mut dyn ExecCx,
        (what, if_exists): (&str, bool),
        names: &[AccountName],
    ) -> Result<Response, SqlError> {
        self.change_accounts(cx, |session, change| {
            let mut missing = Vec::new();
            for name in names {
                let id = session.named(name);
                match change.get(&id) {
                    Some(account) => {
                        session.need_system_user(&change.accounts, &id)?;
                        change.drop(&account.id());
                    }
                    None if if_exists => {
                        let code = ErrorCode::ER_USER_DOES_NOT_EXIST;
                        change.note(Level::Note, code, &[&shown(&id)]);
                    }
                    None => missing.push(shown(&id)),
                }
            }
            match missing.is_empty() {
                true => Ok(()),
                false => Err(failed(what, &missing, ABSENT)),
            }
        })
    }

    /// RENAME USER
    pub(crate) fn rename_user(
        &mut self,
        cx: &mut dyn ExecCx,
        list: &[(AccountName, AccountName)],
    ) -> Result<Response, SqlError> {
        self.need_user_admin(Privileges::UPDATE, "CREATE USER")?;
        self.change_accounts(cx, |session, change| {
            let mut wrong = Vec::new();
            for (from, to) in list {
                let (from, to) = (session.named(from), session.named(to));
                let renamed = change.get(&from).filter(|_| change.get(&to).is_none());
                let Some(mut account) = renamed else {
                    wrong.push(shown(&from));
                    continue;
                };
                session.need_system_user(&change.accounts, &from)?;
                let has = |a: &Arc<Account>| a.role_grant(&account.id()).is_some();
                if change.accounts.iter().any(has) {
                    return Err(SqlError::new(ErrorCode::ER_RENAME_ROLE, &[]));
                }
                change.drop(&account.id());
                (account.user, account.host) = (to.0, to.1.to_ascii_lowercase().into());
                change.put(account);
            }
            match wrong.is_empty() {
                true => Ok(()),
                false => Err(failed("RENAME USER", &wrong, "")),
            }
        })
    }

    /// SET PASSWORD
    pub(crate) fn set_password(
        &mut self,
        cx: &mut dyn ExecCx,
        set: &SetPassword,
    ) -> Result<Response, SqlError> {
        let named = set.account.as_ref().map(|name| self.named(name));
        let id = named.unwrap_or_else(|| self.rights.account().id());
        let own = self.is_own(&id);
        if !own {
            self.rights.need_database(Privileges::UPDATE, "mysql")?;
        } else if set.auth.retain {
            self.need_second_password()?;
        }
        self.change_accounts(cx, |session, change| {
            let none = || SqlError::new(ErrorCode::ER_PASSWORD_NO_MATCH, &[]);
            let mut account = change.get(&id).ok_or_else(none)?;
            if !own {
                session.need_system_user(&change.accounts, &id)?;
            }
            if let AuthSecret::Password(password) = &set.auth.secret {
                session.check_password(&String::from_utf8_lossy(password))?;
            }
            session.change_password(change, &mut account, &set.auth, true)?;
            let (secret, retain) = (&set.auth.secret, set.auth.retain);
            change.logged = Some(Session::logged_password(&account, secret, retain));
            change.put(account);
            Ok(())
        })
    }

    /// Error 1227 unless the account may have a second password.
    fn need_second_password(&self) -> Result<(), SqlError> {
        if self.rights.held().has_dynamic("APPLICATION_PASSWORD_ADMIN") {
            return Ok(());
        }
        let names = "CREATE USER or APPLICATION_PASSWORD_ADMIN";
        self.rights.need_global(Privileges::CREATE_USER, names)
    }
}
