//! Accounts: CREATE, ALTER, DROP and RENAME USER, SET PASSWORD, GRANT, REVOKE, SHOW GRANTS.
//!
//! Privileges are granted on `*.*` and on databases; tables, columns and routines are error 1235.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nfold_catalog::{Account, Privileges};
use nfold_exec::ExecCx;
use nfold_protocol::consts::CACHING_SHA2_PASSWORD;
use nfold_sql::ast::{
    self, AccountName, AuthSecret, CreateUser, Grant, GrantTarget, Revoke, UserAuth, UserOption,
};
use nfold_types::{ErrorCode, Level, SqlError, Value};

use crate::net::auth::{hash_password, is_valid_hash};
use crate::session::Session;
use crate::session::cx::blocking;
use crate::session::response::{Response, RowSet};

/// `'user'@'host'`, as messages show an account.
fn quoted(name: &AccountName) -> String {
    format!("'{}'@'{}'", name.user, name.host)
}

/// Error 1396 for these accounts.
fn failed(what: &str, names: &[String]) -> SqlError {
    SqlError::new(ErrorCode::ER_CANNOT_USER, &[&what, &names.join(",")])
}

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
    /// Runs a change of accounts on a thread that may block.
    fn put_accounts(
        &mut self,
        cx: &mut dyn ExecCx,
        accounts: Vec<Account>,
    ) -> Result<(), SqlError> {
        let engine = self.server.engine.clone();
        self.change(cx, move || engine.put_accounts(accounts))
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
        let job = move || nfold_engine::stoppable(flag, f);
        blocking(cx, &asked, job)
            .map_err(nfold_exec::Interrupt::to_sql)?
            .ok_or_else(panicked)
    }

    /// The account that a name means; `CURRENT_USER` is the session's account.
    fn named(&self, name: &AccountName) -> AccountName {
        if !name.current {
            return name.clone();
        }
        let (user, host) = self.env.account();
        AccountName {
            user: user.into(),
            host: host.into(),
            current: false,
        }
    }

    fn find_account(&self, name: &AccountName) -> Option<Account> {
        let accounts = self.server.engine.catalog().accounts();
        accounts
            .get(&name.user, &name.host)
            .map(|a| Account::clone(a))
    }

    fn is_own(&self, name: &AccountName) -> bool {
        let (user, host) = self.env.account();
        name.user == user && name.host.eq_ignore_ascii_case(host)
    }

    /// CREATE USER
    pub(crate) fn create_user(
        &mut self,
        cx: &mut dyn ExecCx,
        c: &CreateUser,
    ) -> Result<Response, SqlError> {
        self.rights
            .need_global(Privileges::CREATE_USER, "CREATE USER")?;
        let (mut new, mut there) = (Vec::new(), Vec::new());
        for spec in &c.users {
            let name = self.named(&spec.account);
            if self.find_account(&name).is_some() {
                if c.if_clause {
                    self.conditions.push(
                        Level::Note,
                        ErrorCode::ER_USER_ALREADY_EXISTS,
                        &[&quoted(&name)],
                    );
                } else {
                    there.push(quoted(&name));
                }
                continue;
            }
            let (plugin, auth_string) = match &spec.auth {
                Some(auth) => secret(auth, CACHING_SHA2_PASSWORD)?,
                None => (CACHING_SHA2_PASSWORD.into(), Box::default()),
            };
            let mut account = Account {
                user: name.user.into(),
                host: name.host.to_ascii_lowercase().into(),
                plugin,
                auth_string,
                locked: false,
                global: Privileges::NONE,
                databases: Vec::new(),
            };
            apply_options(&mut account, &c.options)?;
            new.push(account);
        }
        if !there.is_empty() {
            return Err(failed("CREATE USER", &there));
        }
        self.put_accounts(cx, new)?;
        Ok(Response::ok())
    }

    /// ALTER USER
    pub(crate) fn alter_user(
        &mut self,
        cx: &mut dyn ExecCx,
        c: &CreateUser,
    ) -> Result<Response, SqlError> {
        let own_password = c.options.is_empty()
            && c.users
                .iter()
                .all(|u| u.auth.is_some() && self.is_own(&self.named(&u.account)));
        if !own_password {
            self.rights
                .need_global(Privileges::CREATE_USER, "CREATE USER")?;
        }
        let (mut changed, mut missing) = (Vec::new(), Vec::new());
        for spec in &c.users {
            let name = self.named(&spec.account);
            let Some(mut account) = self.find_account(&name) else {
                if c.if_clause {
                    self.conditions.push(
                        Level::Note,
                        ErrorCode::ER_USER_DOES_NOT_EXIST,
                        &[&quoted(&name)],
                    );
                } else {
                    missing.push(quoted(&name));
                }
                continue;
            };
            if let Some(auth) = &spec.auth {
                (account.plugin, account.auth_string) = secret(auth, &account.plugin)?;
            }
            apply_options(&mut account, &c.options)?;
            changed.push(account);
        }
        if !missing.is_empty() {
            return Err(failed("ALTER USER", &missing));
        }
        self.put_accounts(cx, changed)?;
        Ok(Response::ok())
    }

    /// DROP USER
    pub(crate) fn drop_user(
        &mut self,
        cx: &mut dyn ExecCx,
        if_exists: bool,
        users: &[AccountName],
    ) -> Result<Response, SqlError> {
        self.rights
            .need_global(Privileges::CREATE_USER, "CREATE USER")?;
        let (mut gone, mut missing) = (Vec::new(), Vec::new());
        for name in users {
            let name = self.named(name);
            match self.find_account(&name) {
                Some(_) => gone.push((name.user, name.host)),
                None if if_exists => {
                    self.conditions.push(
                        Level::Note,
                        ErrorCode::ER_USER_DOES_NOT_EXIST,
                        &[&quoted(&name)],
                    );
                }
                None => missing.push(quoted(&name)),
            }
        }
        if !missing.is_empty() {
            return Err(failed("DROP USER", &missing));
        }
        let engine = self.server.engine.clone();
        self.change(cx, move || engine.drop_accounts(&gone))?;
        Ok(Response::ok())
    }

    /// RENAME USER
    pub(crate) fn rename_user(
        &mut self,
        _: &mut dyn ExecCx,
        _: &[(AccountName, AccountName)],
    ) -> Result<Response, SqlError> {
        // The old and the new account would have to change atomically, which the dictionary does
        // not support yet.
        Err(SqlError::not_supported("RENAME USER"))
    }

    /// SET PASSWORD
    pub(crate) fn set_password(
        &mut self,
        cx: &mut dyn ExecCx,
        name: Option<&AccountName>,
        password: &[u8],
    ) -> Result<(), SqlError> {
        let current = AccountName {
            user: String::new(),
            host: String::new(),
            current: true,
        };
        let name = self.named(name.unwrap_or(&current));
        if !self.is_own(&name) {
            self.rights
                .need_global(Privileges::CREATE_USER, "CREATE USER")?;
        }
        let mut account = self
            .find_account(&name)
            .ok_or_else(|| SqlError::new(ErrorCode::ER_PASSWORD_NO_MATCH, &[]))?;
        let auth = UserAuth {
            plugin: None,
            secret: AuthSecret::Password(password.to_vec()),
        };
        (account.plugin, account.auth_string) = secret(&auth, &account.plugin)?;
        self.put_accounts(cx, vec![account])
    }

    /// GRANT
    pub(crate) fn grant(&mut self, cx: &mut dyn ExecCx, g: &Grant) -> Result<Response, SqlError> {
        let place = self.grant_place(&g.target)?;
        let mut privileges = self.grant_privileges(&g.privileges, &place)?;
        if g.grant_option {
            privileges = privileges.union(Privileges::GRANT_OPTION);
        }
        self.may_grant(privileges, &place)?;
        let mut changed = Vec::new();
        for spec in &g.to {
            let name = self.named(&spec.account);
            let mut account = self
                .find_account(&name)
                .ok_or_else(|| SqlError::new(ErrorCode::ER_CANT_CREATE_USER_WITH_GRANT, &[]))?;
            if spec.auth.is_some() {
                return Err(SqlError::not_supported("IDENTIFIED in GRANT"));
            }
            let held = held_at(&mut account, &place);
            *held = held.union(privileges);
            changed.push(account);
        }
        self.put_accounts(cx, changed)?;
        Ok(Response::ok())
    }

    /// REVOKE
    pub(crate) fn revoke(&mut self, cx: &mut dyn ExecCx, r: &Revoke) -> Result<Response, SqlError> {
        // `REVOKE ALL PRIVILEGES, GRANT OPTION FROM ...` names no level, and revokes everything.
        let everything = r.privileges == ast::Privileges::All
            && r.grant_option
            && r.target == GrantTarget::Global;
        let place = self.grant_place(&r.target)?;
        let mut privileges = self.grant_privileges(&r.privileges, &place)?;
        if r.grant_option {
            privileges = privileges.union(Privileges::GRANT_OPTION);
        }
        self.may_grant(privileges, &place)?;
        let mut changed = Vec::new();
        for name in &r.from {
            let name = self.named(name);
            let none = || SqlError::new(ErrorCode::ER_NONEXISTING_GRANT, &[&name.user, &name.host]);
            let Some(mut account) = self.find_account(&name) else {
                if r.if_exists {
                    continue;
                }
                return Err(none());
            };
            if everything {
                account.global = Privileges::NONE;
                account.databases.clear();
            } else {
                let known = place
                    .as_ref()
                    .is_none_or(|d| account.databases.iter().any(|(name, _)| **name == **d));
                if !known && !r.if_exists {
                    return Err(none());
                }
                let held = held_at(&mut account, &place);
                *held = held.without(privileges);
                account.databases.retain(|(_, p)| !p.is_empty());
            }
            changed.push(account);
        }
        self.put_accounts(cx, changed)?;
        Ok(Response::ok())
    }

    /// The database (as written, with wildcards) of a GRANT; `None`: `*.*`.
    fn grant_place(&self, target: &GrantTarget) -> Result<Option<Box<str>>, SqlError> {
        match target {
            GrantTarget::Global => Ok(None),
            GrantTarget::Database(name) => Ok(Some(name.as_str().into())),
            GrantTarget::CurrentDatabase => match self.env.database.as_deref() {
                Some(name) => Ok(Some(name.into())),
                None => Err(SqlError::new(ErrorCode::ER_NO_DB_ERROR, &[])),
            },
            GrantTarget::Table(_) => Err(SqlError::not_supported("privileges on single tables")),
            GrantTarget::Routine(_) => Err(SqlError::not_supported("privileges on routines")),
            GrantTarget::None => Err(SqlError::not_supported("roles and PROXY")),
        }
    }

    fn grant_privileges(
        &self,
        list: &ast::Privileges,
        place: &Option<Box<str>>,
    ) -> Result<Privileges, SqlError> {
        let list = match list {
            ast::Privileges::All if place.is_some() => return Ok(Privileges::all_database()),
            ast::Privileges::All => return Ok(Privileges::all_global()),
            ast::Privileges::Roles(_) => return Err(SqlError::not_supported("roles")),
            ast::Privileges::Proxy => return Err(SqlError::not_supported("PROXY")),
            ast::Privileges::List(list) => list,
        };
        let mut all = Privileges::NONE;
        for (name, columns) in list {
            if !columns.is_empty() {
                return Err(SqlError::not_supported("privileges on single columns"));
            }
            if name == "USAGE" {
                continue;
            }
            let Some((privilege, on_database)) = Privileges::by_name(name) else {
                return Err(SqlError::not_supported(format!("the privilege {name}")));
            };
            if place.is_some() && !on_database {
                return Err(SqlError::new(
                    ErrorCode::ER_WRONG_USAGE,
                    &[&"DB GRANT", &"GLOBAL PRIVILEGES"],
                ));
            }
            all = all.union(privilege);
        }
        Ok(all)
    }

    /// Granting and revoking needs GRANT OPTION and the privileges themselves.
    fn may_grant(&self, privileges: Privileges, place: &Option<Box<str>>) -> Result<(), SqlError> {
        let wanted = privileges.union(Privileges::GRANT_OPTION);
        let account = self.rights.account();
        match place {
            None if account.global.contains(wanted) => Ok(()),
            None => Err(SqlError::new(
                ErrorCode::ER_ACCESS_DENIED_ERROR,
                &[&account.user, &account.host, &"YES"],
            )),
            Some(database) => self.rights.need_database(wanted, database),
        }
    }

    /// SHOW GRANTS
    pub(crate) fn show_grants(&mut self, name: Option<&AccountName>) -> Result<Response, SqlError> {
        let current = AccountName {
            user: String::new(),
            host: String::new(),
            current: true,
        };
        let name = self.named(name.unwrap_or(&current));
        if !self.is_own(&name) {
            self.rights.need_database(Privileges::SELECT, "mysql")?;
        }
        let account = self.find_account(&name).ok_or_else(|| {
            SqlError::new(ErrorCode::ER_NONEXISTING_GRANT, &[&name.user, &name.host])
        })?;
        let mut set =
            RowSet::of_text(&[(&format!("Grants for {}@{}", name.user, name.host), 1024)]);
        for line in grant_lines(&account) {
            set.push(vec![Value::from(line)]);
        }
        Ok(Response::Rows(set))
    }

    /// SHOW CREATE USER
    pub(crate) fn show_create_user(
        &mut self,
        name: Option<&AccountName>,
    ) -> Result<Response, SqlError> {
        let current = AccountName {
            user: String::new(),
            host: String::new(),
            current: true,
        };
        let name = self.named(name.unwrap_or(&current));
        if !self.is_own(&name) {
            self.rights.need_database(Privileges::SELECT, "mysql")?;
        }
        let account = self
            .find_account(&name)
            .ok_or_else(|| failed("SHOW CREATE USER", &[quoted(&name)]))?;
        let (user, host) = (&account.user, &account.host);
        let mut line = format!(
            "CREATE USER `{user}`@`{host}` IDENTIFIED WITH '{}'",
            account.plugin
        );
        if !account.auth_string.is_empty() {
            let text = String::from_utf8_lossy(&account.auth_string)
                .replace('\\', "\\\\")
                .replace('\'', "''");
            // Writing to a String does not fail.
            let _ = write!(line, " AS '{text}'");
        }
        let lock = if account.locked { "LOCK" } else { "UNLOCK" };
        let _ = write!(
            line,
            " REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT {lock} PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT \
             PASSWORD REQUIRE CURRENT DEFAULT"
        );
        let mut set = RowSet::of_text(&[(&format!("CREATE USER for {user}@{host}"), 1024)]);
        set.push(vec![Value::from(line)]);
        Ok(Response::Rows(set))
    }
}

/// The privileges of an account on a level; added if there are none yet.
fn held_at<'a>(account: &'a mut Account, place: &Option<Box<str>>) -> &'a mut Privileges {
    let Some(database) = place else {
        return &mut account.global;
    };
    let at = match account
        .databases
        .iter()
        .position(|(name, _)| name == database)
    {
        Some(at) => at,
        None => {
            account.databases.push((database.clone(), Privileges::NONE));
            account.databases.len() - 1
        }
    };
    &mut account.databases[at].1
}

/// The lines of SHOW GRANTS.
fn grant_lines(account: &Account) -> Vec<String> {
    let list = |p: Privileges, whole: Option<Privileges>| {
        let plain = p.without(Privileges::GRANT_OPTION);
        if plain.is_empty() {
            return "USAGE".to_string();
        }
        if whole.is_some_and(|w| plain.contains(w)) {
            return "ALL PRIVILEGES".to_string();
        }
        let names = Privileges::LIST
            .iter()
            .filter(|(bit, ..)| plain.contains(*bit))
            .map(|(_, name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    };
    let suffix = |p: Privileges| {
        if p.contains(Privileges::GRANT_OPTION) {
            " WITH GRANT OPTION"
        } else {
            ""
        }
    };
    let to = format!(
        "`{}`@`{}`",
        account.user.replace('`', "``"),
        account.host.replace('`', "``")
    );
    let mut lines = vec![format!(
        "GRANT {} ON *.* TO {to}{}",
        list(account.global, None),
        suffix(account.global)
    )];
    let mut databases = account.databases.clone();
    databases.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, p) in &databases {
        let whole = Some(Privileges::all_database());
        lines.push(format!(
            "GRANT {} ON `{}`.* TO {to}{}",
            list(*p, whole),
            name.replace('`', "``"),
            suffix(*p)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_listed_as_mysql_lists_them() {
        let mut account = Account {
            user: "root".into(),
            host: "localhost".into(),
            plugin: CACHING_SHA2_PASSWORD.into(),
            auth_string: Box::default(),
            locked: false,
            global: Privileges::NONE,
            databases: Vec::new(),
        };
        account.global = Privileges::PROCESS;
        *held_at(&mut account, &Some("sdb".into())) = Privileges::INSERT.union(Privileges::SELECT);
        *held_at(&mut account, &Some("a`b".into())) =
            Privileges::all_database().union(Privileges::GRANT_OPTION);
        assert_eq!(
            grant_lines(&account),
            [
                "GRANT PROCESS ON *.* TO `root`@`localhost`",
                "GRANT ALL PRIVILEGES ON `a``b`.* TO `root`@`localhost` WITH GRANT OPTION",
                "GRANT SELECT, INSERT ON `sdb`.* TO `root`@`localhost`",
            ]
        );
    }

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
