//! Accounts and their privileges. An account sees its own; seeing others' needs SELECT on `mysql`.

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

pub(super) fn accounts(cx: &Cx<'_>) -> Vec<Arc<Account>> {
    if cx.held.on_database("mysql").contains(Privileges::SELECT) {
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
    let mut names: Vec<_> = held.names().collect();
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
        for dynamic in &account.dynamic {
            let grantable = if dynamic.grant_option { "YES" } else { "NO" };
            put(vec![
                grantee(&account).into(),
                CATALOG.into(),
                (&*dynamic.name).into(),
                grantable.into(),
            ])?;
        }
    }
    Ok(())
}

pub(super) fn table_privileges(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for account in accounts(cx) {
        for grant in &account.tables {
            // Privileges on columns alone are none on the table.
            let usage = grant.columns.is_empty();
            for name in names(grant.privileges, usage) {
                put(vec![
                    grantee(&account).into(),
                    CATALOG.into(),
                    (&*grant.database).into(),
                    (&*grant.table).into(),
                    name.into(),
                    grantable(grant.privileges).into(),
                ])?;
            }
        }
    }
    Ok(())
}

pub(super) fn column_privileges(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for account in accounts(cx) {
        for grant in &account.tables {
            for name in Privileges::all_column().names() {
                let privilege = Privileges::by_name(name).map_or(Privileges::NONE, |(p, _)| p);
                let named = grant.columns.iter().filter(|(_, p)| p.contains(privilege));
                for (column, _) in named {
                    put(vec![
                        grantee(&account).into(),
                        CATALOG.into(),
                        (&*grant.database).into(),
                        (&*grant.table).into(),
                        (&**column).into(),
                        name.into(),
                        grantable(grant.privileges).into(),
                    ])?;
                }
            }
        }
    }
    Ok(())
}

pub(super) fn schema_privileges(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for account in accounts(cx) {
        for (pattern, held) in &account.databases {
            for name in names(*held, true) {
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
