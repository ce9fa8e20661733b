//! Statements about accounts for the binary log: passwords as they are stored, never as they were
//! written, and account names in the place of CURRENT_USER.

use nfold_catalog::{Account, AccountId};
use nfold_sql::ast::{AuthSecret, CreateUser, UserSpec};

use super::AccountChange;
use crate::session::Session;

/// `'user'@'host'`
fn quoted(id: &AccountId) -> String {
    let text = |name: &str| name.replace('\\', "\\\\").replace('\'', "\\'");
    format!("'{}'@'{}'", text(&id.0), text(&id.1))
}

/// `IDENTIFIED WITH 'plugin' AS 'stored form'`
fn identified(account: &Account) -> String {
    let mut out = format!(" IDENTIFIED WITH '{}'", account.plugin);
    let stored = &account.auth_string;
    let is_plain = |b: &u8| (b' '..=b'~').contains(b) && !matches!(b, b'\'' | b'\\');
    if stored.is_empty() {
        return out;
    }
    out += " AS ";
    match std::str::from_utf8(stored) {
        Ok(text) if stored.iter().all(is_plain) => out += &format!("'{text}'"),
        _ => {
            out += "0x";
            stored.iter().for_each(|b| out += &format!("{b:02X}"));
        }
    }
    out
}

/// One account of the statement. `is_new`: CREATE USER.
fn user(account: &Account, spec: &UserSpec, is_new: bool) -> String {
    let mut out = quoted(&account.id());
    match &spec.auth {
        Some(auth) => {
            out += &identified(account);
            if auth.retain {
                out += " RETAIN CURRENT PASSWORD";
            }
        }
        None if is_new => out += &identified(account),
        None if spec.discard_old => out += " DISCARD OLD PASSWORD",
        None => {}
    }
    out
}

impl Session {
    /// CREATE USER and ALTER USER, for the accounts that change. `text`: as it was written.
    pub(super) fn logged_users(
        &self,
        change: &AccountChange,
        c: &CreateUser,
        (text, is_new): (&[u8], bool),
    ) -> Vec<u8> {
        let changed = c.users.iter().filter_map(|spec| {
            let id = self.named(&spec.account);
            let account = change.changed.iter().find(|account| account.is(&id))?;
            Some(user(account, spec, is_new))
        });
        let head = match (is_new, c.if_clause) {
            (true, true) => "CREATE USER IF NOT EXISTS ",
            (true, false) => "CREATE USER ",
            (false, true) => "ALTER USER IF EXISTS ",
            (false, false) => "ALTER USER ",
        };
        let users: Vec<String> = changed.collect();
        let mut sql = format!("{head}{}", users.join(",")).into_bytes();
        let rest = text.get(c.rest as usize..).unwrap_or_default();
        if !rest.trim_ascii().is_empty() {
            sql.push(b' ');
            sql.extend_from_slice(rest.trim_ascii());
        }
        sql
    }

    /// SET PASSWORD, as the ALTER USER that does the same.
    pub(super) fn logged_password(account: &Account, secret: &AuthSecret, retain: bool) -> Vec<u8> {
        debug_assert!(!matches!(secret, AuthSecret::None));
        let retained = if retain {
            " RETAIN CURRENT PASSWORD"
        } else {
            ""
        };
        let id = quoted(&account.id());
        format!("ALTER USER {id}{}{retained}", identified(account)).into_bytes()
    }

    /// The text of another statement about accounts, with the session's account in the place of
    /// CURRENT_USER.
    pub(crate) fn without_current_user(&self, text: &[u8]) -> Vec<u8> {
        let (user, host) = self.env.account();
        replace_current_user(text, &quoted(&(user.into(), host.into())))
    }
}

/// Replaces `CURRENT_USER` and `CURRENT_USER()` outside of quotes.
fn replace_current_user(text: &[u8], account: &str) -> Vec<u8> {
    const NAME: &[u8] = b"CURRENT_USER";
    let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'@');
    let mut out = Vec::with_capacity(text.len());
    let (mut quote, mut at) = (None, 0);
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        let begins = at == 0 || !is_word(text[at - 1]);
        let is_name = rest.len() >= NAME.len() && rest[..NAME.len()].eq_ignore_ascii_case(NAME);
        let ends = rest.get(NAME.len()).is_none_or(|&b| !is_word(b));
        if quote.is_none() && begins && is_name && ends {
            out.extend_from_slice(account.as_bytes());
            let behind = rest[NAME.len()..].trim_ascii_start();
            at = text.len() - rest.len() + NAME.len();
            if let Some(inner) = behind.strip_prefix(b"(")
                && let Some(after) = inner.trim_ascii_start().strip_prefix(b")")
            {
                at = text.len() - after.len();
            }
            continue;
        }
        match quote {
            None if matches!(byte, b'\'' | b'"' | b'`') => quote = Some(byte),
            Some(q) if q == byte => quote = None,
            Some(q) if byte == b'\\' && q != b'`' => {
                out.push(byte);
                at += 1;
                let Some(&escaped) = text.get(at) else {
                    break;
                };
                out.push(escaped);
                at += 1;
                continue;
            }
            _ => {}
        }
        out.push(byte);
        at += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_user_is_replaced_outside_of_quotes() {
        let replaced = |text: &str| {
            let out = replace_current_user(text.as_bytes(), "'u'@'%'");
            String::from_utf8(out).expect("a text")
        };
        assert_eq!(
            replaced("GRANT SELECT ON a.* TO Current_User ( ) WITH GRANT OPTION"),
            "GRANT SELECT ON a.* TO 'u'@'%' WITH GRANT OPTION"
        );
        assert_eq!(replaced("DROP USER current_user"), "DROP USER 'u'@'%'");
        for same in [
            "GRANT SELECT ON `current_user`.* TO 'current_user'@'%'",
            r"GRANT SELECT ON a.* TO 'x\' current_user'",
            "GRANT SELECT ON my_current_user.* TO current_users",
        ] {
            assert_eq!(replaced(same), same);
        }
    }
}
