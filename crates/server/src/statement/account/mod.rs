//! Accounts: CREATE, ALTER, DROP and RENAME USER, SET PASSWORD; `grant` has GRANT and REVOKE,
//! `roles` the statements about roles, `show` SHOW GRANTS and SHOW CREATE USER.
//!
//! A statement computes the accounts as they are to be from those of one version, and stores them
//! if no other session has changed an account meanwhile; otherwise it starts over.

mod grant;
mod roles;
mod show;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nfold_catalog::{Account, AccountId, AccountSnapshot, Privileges};
use nfold_exec::ExecCx;
use nfold_protocol::consts::CACHING_SHA2_PASSWORD;
use nfold_sql::ast::{
    AccountName, AuthSecret, CreateUser, DefaultRoles, UserAuth, UserOption, UserSpec,
};
use nfold_types::{ErrorCode, Level, SqlError};

use crate::net::auth::{hash_password, is_valid_hash};
use crate::session::Session;
use crate::session::cx::blocking;
use crate::session::response::Response;

/// What a statement does to the accounts of one version.
struct AccountChange {
    accounts: Arc<AccountSnapshot>,
    changed: Vec<Account>,
    gone: Vec<AccountId>,
    /// Warnings and notes, if the change succeeds.
    notes: Vec<(Level, SqlError)>,
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

/// The plugin and the stored authentication string of an IDENTIFIED clause. Without a plugin, the
/// one of `current`.
fn secret(auth: &UserAuth, current: &str) -> Result<(Box<str>, Box<[u8]>), SqlError> {
    let plugin = auth.plugin.as_deref().unwrap_or(current);
    let unknown = || SqlError::new(ErrorCode::ER_PLUGIN_IS_NOT_LOADED, &[&plugin]);
    let stored: Vec<u8> = match &auth.secret {
        AuthSecret::None => {
            is_valid_hash(plugin, b"").ok_or_else(unknown)?;
            Vec::new()
        }
        AuthSecret::Password(p) => {
            let text = String::from_utf8_lossy(p);
            hash_password(plugin, &text)
                .ok_or_else(unknown)?
                .into_bytes()
        }
        AuthSecret::Hash(hash) => {
            if !hash.is_empty() && !is_valid_hash(plugin, hash).ok_or_else(unknown)? {
                return Err(SqlError::new(ErrorCode::ER_PASSWORD_FORMAT, &[]));
            }
            hash.clone()
        }
        AuthSecret::Random => return Err(SqlError::not_supported("BY RANDOM PASSWORD")),
    };
    Ok((plugin.into(), stored.into()))
}

/// Applies ACCOUNT LOCK and similar options. An option that restricts an account but is not
/// supported is refused, not ignored.
fn apply_options(account: &mut Account, options: &[UserOption]) -> Result<(), SqlError> {
    for option in options {
        match option {
            UserOption::AccountLock(locked) => account.locked = *locked,
            UserOption::Other(words) if harmless(words) => {}
            UserOption::Other(words) => return Err(SqlError::not_supported(words)),
        }
    }
    Ok(())
}

/// Whether an option has no effect, because it states the default.
fn harmless(words: &str) -> bool {
    const KEPT: [&str; 9] = [
        "REQUIRE NONE",
        "PASSWORD EXPIRE DEFAULT",
        "PASSWORD EXPIRE NEVER",
        "PASSWORD HISTORY DEFAULT",
        "PASSWORD REUSE INTERVAL DEFAULT",
        "PASSWORD REQUIRE CURRENT DEFAULT",
        "PASSWORD REQUIRE CURRENT OPTIONAL",
        "COMMENT",
        "ATTRIBUTE",
    ];
    KEPT.iter().any(|k| words.starts_with(k))
}

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
            };
            f(self, &mut change)?;
            let AccountChange {
                changed,
                gone,
                notes,
                ..
            } = change;
            let nothing = changed.is_empty() && gone.is_empty();
            let engine = self.server.engine.clone();
            let done =
                nothing || self.change(cx, move || engine.change_accounts(base, changed, &gone))?;
            if done {
                for (level, note) in notes {
                    self.conditions.push_error(level, &note);
                }
                return Ok(Response::ok());
            }
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
        let job =
            move || nfold_engine::with_coordinates(carried, || nfold_engine::stoppable(flag, f));
        let (result, left) = blocking(cx, &asked, job)
            .map_err(nfold_exec::Interrupt::to_sql)?
            .ok_or_else(panicked)?;
        if left.is_some() {
            self.carried.pending = left;
        }
        Ok(result)
    }

    /// The account that a name means; `CURRENT_USER` is the session's account.
    fn named(&self, name: &AccountName) -> AccountId {
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
        c: &CreateUser,
    ) -> Result<Response, SqlError> {
        self.need_user_admin(Privileges::INSERT, "CREATE USER")?;
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
        if let Some(auth) = &spec.auth {
            (account.plugin, account.auth_string) = secret(auth, CACHING_SHA2_PASSWORD)?;
        }
        apply_options(&mut account, &c.options)?;
        if let Some(DefaultRoles::List(roles)) = &c.default_roles {
            for role in roles {
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
        c: &CreateUser,
    ) -> Result<Response, SqlError> {
        let own = c.users.iter().all(|u| self.is_own(&self.named(&u.account)));
        let password = c.users.iter().all(|u| u.auth.is_some());
        let may = own && c.options.is_empty() && (password || c.default_roles.is_some());
        if !may {
            self.need_user_admin(Privileges::UPDATE, "CREATE USER")?;
        }
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
                if let Some(auth) = &spec.auth {
                    (account.plugin, account.auth_string) = secret(auth, &account.plugin)?;
                    account.expired = false;
                }
                apply_options(&mut account, &c.options)?;
                if let Some(roles) = &c.default_roles {
                    session.set_default_roles(&mut account, roles)?;
                }
                change.put(account);
            }
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
        name: Option<&AccountName>,
        password: &[u8],
    ) -> Result<(), SqlError> {
        let id = name.map_or_else(|| self.rights.account().id(), |name| self.named(name));
        let own = self.is_own(&id);
        if !own {
            self.rights.need_database(Privileges::UPDATE, "mysql")?;
        }
        let change = self.change_accounts(cx, |session, change| {
            let none = || SqlError::new(ErrorCode::ER_PASSWORD_NO_MATCH, &[]);
            let mut account = change.get(&id).ok_or_else(none)?;
            if !own {
                session.need_system_user(&change.accounts, &id)?;
            }
            let auth = UserAuth {
                plugin: None,
                secret: AuthSecret::Password(password.to_vec()),
            };
            (account.plugin, account.auth_string) = secret(&auth, &account.plugin)?;
            account.expired = false;
            change.put(account);
            Ok(())
        });
        change.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_checked() {
        let auth = |plugin: Option<&str>, secret| UserAuth {
            plugin: plugin.map(Into::into),
            secret,
        };
        let (plugin, stored) = secret(
            &auth(None, AuthSecret::Password(b"x".to_vec())),
            "mysql_native_password",
        )
        .unwrap();
        assert_eq!(
            (&*plugin, stored[0], stored.len()),
            ("mysql_native_password", b'*', 41)
        );
        let bad = |a: UserAuth| secret(&a, CACHING_SHA2_PASSWORD).unwrap_err().errno();
        assert_eq!(
            bad(auth(Some("nix"), AuthSecret::Password(b"x".to_vec()))),
            1524
        );
        assert_eq!(bad(auth(Some("nix"), AuthSecret::None)), 1524);
        assert_eq!(bad(auth(None, AuthSecret::Hash(b"xx".to_vec()))), 1827);
        assert!(
            harmless("REQUIRE NONE")
                && !harmless("REQUIRE SSL")
                && !harmless("WITH MAX_QUERIES_PER_HOUR 5")
        );
    }
}
