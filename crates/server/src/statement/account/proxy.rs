//! GRANT PROXY and REVOKE PROXY. A grant is stored and shown; no login uses it, because the plugins
//! for passwords map no users.

use nfold_catalog::account::wildcard_match;
use nfold_catalog::{Account, AccountId, Privileges, ProxyGrant};
use nfold_exec::ExecCx;
use nfold_sql::ast::{AccountName, Grant, Revoke};
use nfold_types::{ErrorCode, Level, SqlError};

use crate::session::Session;
use crate::session::response::Response;
use crate::unix_time::unix_time;

/// The grant by which `account` may act as `proxied`.
fn position(account: &Account, proxied: &AccountId) -> Option<usize> {
    let mut grants = account.proxies.iter();
    grants.position(|p| p.proxied == *proxied)
}

impl Session {
    /// Error 1698 unless the session's account is `proxied`, or may grant PROXY on it.
    fn may_grant_proxy(&self, proxied: &AccountId) -> Result<(), SqlError> {
        let own = self.rights.account();
        let covers = |p: &ProxyGrant| {
            let (user, host) = (&p.proxied.0, &p.proxied.1);
            let any_user = user.is_empty() || *user == proxied.0;
            p.grant_option && any_user && (host.is_empty() || wildcard_match(host, &proxied.1))
        };
        let may = self.rights.is_replica() || own.is(proxied);
        match may || own.proxies.iter().any(covers) {
            true => Ok(()),
            false => {
                let code = ErrorCode::ER_ACCESS_DENIED_NO_PASSWORD_ERROR;
                Err(SqlError::new(
                    code,
                    &[&own.user, &self.rights.client_host()],
                ))
            }
        }
    }

    /// GRANT PROXY
    pub(super) fn grant_proxy(
        &mut self,
        cx: &mut dyn ExecCx,
        g: &Grant,
        name: &AccountName,
    ) -> Result<Response, SqlError> {
        let proxied = self.named(name);
        self.may_grant_proxy(&proxied)?;
        let option_too = g.grant_option && self.rights.has_global(Privileges::GRANT_OPTION);
        let grantor = self.rights.account();
        let grantor = format!("{}@{}", grantor.user, grantor.host);
        self.change_accounts(cx, |session, change| {
            for spec in &g.to {
                let id = session.named(&spec.account);
                let none = || SqlError::new(ErrorCode::ER_CANT_CREATE_USER_WITH_GRANT, &[]);
                let mut account = change.get(&id).ok_or_else(none)?;
                session.need_system_user(&change.accounts, &id)?;
                let grant = ProxyGrant {
                    proxied: proxied.clone(),
                    grant_option: g.grant_option,
                    grantor: grantor.as_str().into(),
                    granted_s: unix_time().as_secs(),
                };
                match position(&account, &proxied) {
                    Some(at) => account.proxies[at] = grant,
                    None => account.proxies.push(grant),
                }
                if option_too {
                    // As in MySQL, WITH GRANT OPTION of a proxy grants the global GRANT OPTION.
                    // MySQL does so even if the grantor lacks that privilege.
                    account.global = account.global.union(Privileges::GRANT_OPTION);
                }
                change.put(account);
            }
            Ok(())
        })
    }

    /// REVOKE PROXY
    pub(super) fn revoke_proxy(
        &mut self,
        cx: &mut dyn ExecCx,
        r: &Revoke,
        name: &AccountName,
    ) -> Result<Response, SqlError> {
        let proxied = self.named(name);
        self.may_grant_proxy(&proxied)?;
        self.change_accounts(cx, |session, change| {
            for name in &r.from {
                let id = session.named(name);
                let none = SqlError::new(ErrorCode::ER_NONEXISTING_GRANT, &[&id.0, &id.1]);
                let Some(mut account) = session.revokes_from(change, r, &id) else {
                    match r.ignore_unknown {
                        true => continue,
                        false => return Err(none),
                    }
                };
                session.need_system_user(&change.accounts, &id)?;
                match position(&account, &proxied) {
                    Some(at) => {
                        account.proxies.remove(at);
                        change.put(account);
                    }
                    None if r.if_exists => change.notes.push((Level::Warning, none)),
                    None => return Err(none),
                }
            }
            Ok(())
        })
    }
}
