//! Accounts and their privileges. An account sees its own; seeing others' needs CREATE USER.

use std::sync::Arc;

use nfold_catalog::{Account, Privileges};
use nfold_types::{ErrorCode, SqlError, Value};

use super::rows::{Cx, Put};
use super::schema::CATALOG;

/// Error 1227 without PROCESS.
pub(super) fn need_process(cx: &Cx<'_>) -> Result<(), SqlError> {
    if cx.has_global(Privileges::PROCESS) {
        return Ok(());
    }
    Err(SqlError::new(
        ErrorCode::ER_SPECIFIC_ACCESS_DENIED_ERROR,
        &[&"PROCESS"],
    ))
}

fn accounts(cx: &Cx<'_>) -> Vec<Arc<Account>> {
    if cx.has_global(Privileges::CREATE_USER) {
        let mut all: Vec<_> = cx
            .server
            .engine
            .catalog()
            .accounts()
            .iter()
            .cloned()
            .collect();
        all.sort_unstable_by(|a, b| (&a.user, &a.host).cmp(&(&b.user, &b.host)));
        return all;
    }
    cx.account.iter().cloned().collect()
}

/// `'user'@'host'`
fn grantee(a: &Account) -> String {
    format!("'{}'@'{}'", a.user, a.host)
}

fn grantable(held: Privileges) -> &'static str {
    if held.contains(Privileges::GRANT_OPTION) {
        "YES"
    } else {
        "NO"
    }
}

/// The names of privileges; `USAGE` for none if `usage` is true.
fn names(held: Privileges, usage: bool) -> Vec<&'static str> {
    let listed = Privileges::LIST
        .iter()
        .filter(|(p, ..)| held.contains(*p) && *p != Privileges::GRANT_OPTION);
    let mut names: Vec<_> = listed.map(|(_, name, _)| *name).collect();
    if names.is_empty() && usage {
        names.push("USAGE");
    }
    names
}

pub(super) fn user_privileges(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for account in accounts(cx) {
        for name in names(account.global, true) {
            put(vec![
                grantee(&account).into(),
                CATALOG.into(),
                name.into(),
                grantable(account.global).into(),
            ])?;
        }
    }
    Ok(())
}

pub(super) fn schema_privileges(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for account in accounts(cx) {
        for (pattern, held) in &account.databases {
            for name in names(*held, false) {
                put(vec![
                    grantee(&account).into(),
                    CATALOG.into(),
                    (&**pattern).into(),
                    name.into(),
                    grantable(*held).into(),
                ])?;
            }
        }
    }
    Ok(())
}

pub(super) fn user_attributes(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for a in accounts(cx) {
        put(vec![(&*a.user).into(), (&*a.host).into(), Value::Null])?;
    }
    Ok(())
}
