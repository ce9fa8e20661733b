//! Changes of passwords: what is stored, and the rules about the current, the second and earlier
//! passwords.
//!
//! Source: MySQL manual, "Password Management".

use nfold_catalog::{Account, PastPassword, Privileges};
use nfold_sql::ast::{AuthSecret, CreateUser, UserAuth};
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind, Value};

use super::AccountChange;
use crate::net::auth::{hash_password, is_valid_hash, proves_password, random_password};
use crate::session::Session;
use crate::session::response::{RowSet, text_type};
use crate::session::vars::{self, VarValue};
use crate::unix_time::unix_time;

const DAY_S: u64 = 24 * 60 * 60;

/// A password that the server made.
pub(super) struct Generated {
    user: String,
    host: String,
    password: String,
}

/// The result of a statement that has made passwords.
pub(super) fn generated_rows(generated: Vec<Generated>) -> RowSet {
    let text = |name, chars| (name, text_type(chars));
    let mut set = RowSet::new(&[
        text("user", 32),
        text("host", 255),
        text("generated password", 255),
        ("auth_factor", ColumnType::new(TypeKind::Int)),
    ]);
    for g in generated {
        set.push(vec![
            g.user.into(),
            g.host.into(),
            g.password.into(),
            Value::Int(1),
        ]);
    }
    set
}

/// The stored form of a secret, and the password if it is known. `plugin` is the account's.
fn stored(
    plugin: &str,
    secret: &AuthSecret,
    random: impl FnOnce() -> String,
) -> Result<(Box<[u8]>, Option<String>), SqlError> {
    let unknown = || SqlError::new(ErrorCode::ER_PLUGIN_IS_NOT_LOADED, &[&plugin]);
    let of_password = |password: String| {
        let hash = hash_password(plugin, &password).ok_or_else(unknown)?;
        Ok((hash.into_bytes().into(), Some(password)))
    };
    match secret {
        AuthSecret::None => {
            is_valid_hash(plugin, b"").ok_or_else(unknown)?;
            Ok((Box::default(), None))
        }
        AuthSecret::Password(p) => of_password(String::from_utf8_lossy(p).into_owned()),
        AuthSecret::Random => of_password(random()),
        AuthSecret::Hash(hash) => {
            if !hash.is_empty() && !is_valid_hash(plugin, hash).ok_or_else(unknown)? {
                return Err(SqlError::new(ErrorCode::ER_PASSWORD_FORMAT, &[]));
            }
            Ok((hash.as_slice().into(), None))
        }
    }
}

/// The error with this code about an account.
fn about(code: ErrorCode, account: &Account) -> SqlError {
    SqlError::new(code, &[&account.user, &account.host])
}

impl Session {
    /// Sets the password of an account. `known`: the account existed before this statement.
    ///
    /// # Errors
    /// 1524 for an unknown plugin, 1827 for a malformed hash, 3638 if the password was used before,
    /// 3878, 3894 and 3895 if the current one cannot be retained, 3891 to 3893 and 4165 for
    /// REPLACE.
    pub(super) fn change_password(
        &self,
        change: &mut AccountChange,
        account: &mut Account,
        auth: &UserAuth,
        known: bool,
    ) -> Result<(), SqlError> {
        if known {
            self.check_current(account, auth)?;
            self.check_changed(auth)?;
        }
        let plugin = auth.plugin.as_deref().unwrap_or(&account.plugin);
        let random = || random_password(self.random_password_length());
        let (new, password) = stored(plugin, &auth.secret, random)?;
        let same_plugin = *plugin == *account.plugin;
        let empty = new.is_empty() || password.as_deref() == Some("");
        if auth.retain {
            if !same_plugin {
                let code = ErrorCode::ER_PASSWORD_CANNOT_BE_RETAINED_ON_PLUGIN_CHANGE;
                return Err(about(code, account));
            }
            if account.auth_string.is_empty() {
                let code = ErrorCode::ER_SECOND_PASSWORD_CANNOT_BE_EMPTY;
                return Err(about(code, account));
            }
            if empty {
                let code = ErrorCode::ER_CURRENT_PASSWORD_CANNOT_BE_RETAINED;
                return Err(about(code, account));
            }
        }
        if !same_plugin {
            account.options.password.past.clear();
        }
        account.plugin = plugin.into();
        if let Some(password) = &password {
            self.remember(account, password, &new)?;
        }
        let second = &mut account.options.password.second;
        if auth.retain {
            *second = std::mem::take(&mut account.auth_string);
        } else if empty || !same_plugin {
            *second = Box::default();
        }
        account.auth_string = new;
        account.expired = false;
        account.options.password.changed_s = unix_time().as_secs();
        change.own_password |= known && self.is_own(&account.id());
        if let (AuthSecret::Random, Some(password)) = (&auth.secret, password) {
            change.generated.push(Generated {
                user: account.user.to_string(),
                host: account.host.to_string(),
                password,
            });
        }
        Ok(())
    }

    /// Checks the passwords that a statement has in clear text. As in MySQL, this comes before the
    /// question whether the accounts exist.
    ///
    /// # Errors
    /// 1524 for an unknown plugin, 1819.
    pub(super) fn check_new_passwords(&self, c: &CreateUser) -> Result<(), SqlError> {
        for auth in c.users.iter().filter_map(|user| user.auth.as_ref()) {
            let AuthSecret::Password(password) = &auth.secret else {
                continue;
            };
            if let Some(plugin) = &auth.plugin
                && is_valid_hash(plugin, b"").is_none()
            {
                return Err(SqlError::new(ErrorCode::ER_PLUGIN_IS_NOT_LOADED, &[plugin]));
            }
            self.check_password(&String::from_utf8_lossy(password))?;
        }
        Ok(())
    }

    /// Error 1819 if `validate_password` does not allow a password.
    pub(super) fn check_password(&self, password: &str) -> Result<(), SqlError> {
        let Some(policy) = self.server.password_policy() else {
            return Ok(());
        };
        let words = self.server.password_words.load();
        match policy.accepts(password, &self.env.user_names(), &words) {
            true => Ok(()),
            false => Err(SqlError::new(ErrorCode::ER_NOT_VALID_PASSWORD, &[])),
        }
    }

    /// Error 4165 if a new password is too much like the present one, where the statement has both.
    fn check_changed(&self, auth: &UserAuth) -> Result<(), SqlError> {
        let (AuthSecret::Password(new), Some(old)) = (&auth.secret, &auth.replace) else {
            return Ok(());
        };
        let policy = self.server.password_policy();
        let [old, new] = [old, new].map(|password| String::from_utf8_lossy(password));
        match policy.and_then(|policy| policy.too_few_changed(&old, &new)) {
            None => Ok(()),
            Some((required, changed)) => {
                let code = ErrorCode::ER_VALIDATE_PASSWORD_INSUFFICIENT_CHANGED_CHARACTERS;
                Err(SqlError::new(code, &[&required, &changed]))
            }
        }
    }

    /// `generated_random_password_length`
    fn random_password_length(&self) -> usize {
        let at = vars::find("generated_random_password_length");
        match at.map(|at| self.env.vars.get(at).clone()) {
            Ok(VarValue::Int(n)) => n as usize,
            _ => 20,
        }
    }

    /// Checks the REPLACE clause of a change.
    fn check_current(&self, account: &Account, auth: &UserAuth) -> Result<(), SqlError> {
        let own = self.is_own(&account.id());
        let Some(current) = &auth.replace else {
            let changes = matches!(auth.secret, AuthSecret::Password(_) | AuthSecret::Random);
            let required = || {
                let option = account.options.password.require_current;
                option.unwrap_or_else(|| self.server.flag("password_require_current"))
            };
            let code = ErrorCode::ER_MISSING_CURRENT_PASSWORD;
            return match own && changes && !self.administers_users() && required() {
                true => Err(SqlError::new(code, &[])),
                false => Ok(()),
            };
        };
        if !own {
            let code = ErrorCode::ER_CURRENT_PASSWORD_NOT_REQUIRED;
            return Err(SqlError::new(code, &[]));
        }
        match proves_password(&account.plugin, &account.auth_string, current) {
            true => Ok(()),
            false => Err(SqlError::new(ErrorCode::ER_INCORRECT_CURRENT_PASSWORD, &[])),
        }
    }

    /// Whether the account may change the passwords of others.
    fn administers_users(&self) -> bool {
        let on_mysql = self.rights.on_database("mysql");
        on_mysql.contains(Privileges::UPDATE) || self.rights.has_global(Privileges::CREATE_USER)
    }

    /// Records a password among those that must not be used again, as far as the rules of the
    /// account say so. Empty passwords may be used at any time.
    fn remember(&self, account: &mut Account, password: &str, new: &[u8]) -> Result<(), SqlError> {
        if password.is_empty() {
            return Ok(());
        }
        let policy = &account.options.password;
        let global = |name| u32::try_from(self.server.int(name)).unwrap_or(u32::MAX);
        let history = policy.history.unwrap_or_else(|| global("password_history"));
        let interval = policy.reuse_days;
        let days = interval.unwrap_or_else(|| global("password_reuse_interval"));
        let now = unix_time().as_secs();
        let counts = |at: usize, past: &PastPassword| {
            at < history as usize
                || now.saturating_sub(past.set_s) < u64::from(days).saturating_mul(DAY_S)
        };
        let mut forbidden = policy
            .past
            .iter()
            .enumerate()
            .filter(|(at, p)| counts(*at, p));
        let used =
            |p: &PastPassword| proves_password(&account.plugin, &p.stored, password.as_bytes());
        if forbidden.any(|(_, p)| used(p)) {
            let code = ErrorCode::ER_CREDENTIALS_CONTRADICT_TO_HISTORY;
            return Err(about(code, account));
        }
        let past = std::mem::take(&mut account.options.password.past);
        let latest = PastPassword {
            set_s: now,
            stored: new.into(),
        };
        let all = std::iter::once(latest).chain(past).enumerate();
        let kept = all.filter(|(at, p)| counts(*at, p)).map(|(_, p)| p);
        account.options.password.past = kept.collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_checked() {
        let of = |plugin: &str, secret| stored(plugin, &secret, || "made".to_string());
        let (native, password) =
            of("mysql_native_password", AuthSecret::Password(b"x".to_vec())).unwrap();
        assert_eq!((native[0], native.len()), (b'*', 41));
        assert_eq!(password.as_deref(), Some("x"));
        let (_, made) = of("caching_sha2_password", AuthSecret::Random).unwrap();
        assert_eq!(made.as_deref(), Some("made"));
        let bad = |plugin, secret| of(plugin, secret).unwrap_err().errno();
        assert_eq!(bad("nix", AuthSecret::Password(b"x".to_vec())), 1524);
        assert_eq!(bad("nix", AuthSecret::None), 1524);
        let malformed = AuthSecret::Hash(b"xx".to_vec());
        assert_eq!(bad("caching_sha2_password", malformed), 1827);
    }
}
