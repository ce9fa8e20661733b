//! Accounts, their privileges and roles. An account sees its own; seeing others' needs SELECT on
//! `mysql`.

use std::sync::Arc;

use nfold_catalog::{Account, AccountId, Privileges, TableGrant};
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
        let attribute = a.options.attribute.as_deref();
        let attribute = attribute.map_or(Value::Null, Value::from);
        put(vec![(&*a.user).into(), (&*a.host).into(), attribute])?;
    }
    Ok(())
}

fn yes_no(yes: bool) -> Value {
    (if yes { "YES" } else { "NO" }).into()
}

/// `Select,Insert`, as a SET of the grant tables has privileges.
pub(super) fn set_text(held: Privileges) -> String {
    let word = |name: &'static str| match name {
        "SHOW VIEW" => "Show view".to_string(),
        name => {
            let words = name.split(' ').map(|w| {
                let lower = w.to_ascii_lowercase();
                lower[..1].to_ascii_uppercase() + &lower[1..]
            });
            words.collect::<Vec<_>>().join(" ")
        }
    };
    let upper = held.names_in_errors();
    let names = upper.split(", ").filter(|name| !name.is_empty());
    let listed = names.map(|name| {
        let known = Privileges::by_name(name).map(|(p, _)| p);
        known
            .and_then(|p| p.names().next())
            .map_or("Grant".to_string(), word)
    });
    listed.collect::<Vec<_>>().join(",")
}

/// The account's own roles and those granted to them, each once: who has it, the role, and whether
/// it may be granted on.
fn all_roles(cx: &Cx<'_>) -> Vec<(AccountId, AccountId, bool)> {
    let Some(own) = &cx.account else {
        return Vec::new();
    };
    let accounts = cx.server.engine.catalog().accounts();
    let mut found: Vec<(AccountId, AccountId, bool)> = Vec::new();
    let mut open: Vec<Arc<Account>> = vec![own.clone()];
    while let Some(account) = open.pop() {
        for grant in &account.roles {
            let known = |(to, role, _): &(AccountId, AccountId, bool)| {
                *to == account.id() && *role == grant.role
            };
            if found.iter().any(known) {
                continue;
            }
            found.push((account.id(), grant.role.clone(), grant.admin_option));
            open.extend(accounts.get(&grant.role.0, &grant.role.1).cloned());
        }
    }
    for role in cx.server.mandatory_roles() {
        if !found.iter().any(|(_, r, _)| *r == role) {
            found.push((own.id(), role, false));
        }
    }
    found
}

/// APPLICABLE_ROLES; `granted_on`: only roles WITH ADMIN OPTION.
pub(super) fn applicable_roles(
    cx: &Cx<'_>,
    put: &mut Put<'_>,
    granted_on: bool,
) -> Result<(), SqlError> {
    let Some(own) = &cx.account else {
        return Ok(());
    };
    let mandatory = cx.server.mandatory_roles();
    let roles = all_roles(cx).into_iter();
    for (to, role, admin) in roles.filter(|(_, _, admin)| *admin || !granted_on) {
        put(vec![
            (&*own.user).into(),
            (&*own.host).into(),
            (&*to.0).into(),
            (&*to.1).into(),
            (&*role.0).into(),
            (&*role.1).into(),
            yes_no(admin),
            yes_no(own.default_roles.contains(&role)),
            yes_no(mandatory.contains(&role)),
        ])?;
    }
    Ok(())
}

/// ENABLED_ROLES: the active roles.
pub(super) fn enabled_role_rows(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    let mandatory = cx.server.mandatory_roles();
    let own = cx.account.as_ref();
    for id in &cx.env.active_roles {
        put(vec![
            (&*id.0).into(),
            (&*id.1).into(),
            yes_no(own.is_some_and(|a| a.default_roles.contains(id))),
            yes_no(mandatory.contains(id)),
        ])?;
    }
    Ok(())
}

/// The active roles, and those granted to them.
fn enabled_roles(cx: &Cx<'_>) -> Vec<Arc<Account>> {
    let accounts = cx.server.engine.catalog().accounts();
    accounts.with_granted(&cx.env.active_roles)
}

/// The columns that ROLE_TABLE_GRANTS and ROLE_COLUMN_GRANTS begin with.
fn grant_row(role: &Account, grant: &TableGrant) -> Vec<Value> {
    let (user, host) = grant
        .grantor
        .rsplit_once('@')
        .unwrap_or((&grant.grantor, ""));
    vec![
        user.into(),
        host.into(),
        (&*role.user).into(),
        (&*role.host).into(),
        CATALOG.into(),
        (&*grant.database).into(),
        (&*grant.table).into(),
    ]
}

fn set_value(held: Privileges, members: &[&str]) -> Value {
    let text = set_text(held);
    let has = |member: &&str| text.split(',').any(|word| word == *member);
    let bits = members.iter().enumerate().filter(|(_, m)| has(m));
    Value::UInt(bits.fold(0, |set, (n, _)| set | 1 << n))
}

/// The members of `mysql.tables_priv.Table_priv`.
const TABLE_SET: [&str; 13] = [
    "Select",
    "Insert",
    "Update",
    "Delete",
    "Create",
    "Drop",
    "Grant",
    "References",
    "Index",
    "Alter",
    "Create View",
    "Show view",
    "Trigger",
];

/// The members of `mysql.tables_priv.Column_priv`.
const COLUMN_SET: [&str; 4] = ["Select", "Insert", "Update", "References"];

/// The value of a SET of privileges on a table.
pub(super) fn table_set(held: Privileges) -> Value {
    set_value(held, &TABLE_SET)
}

/// The value of a SET of privileges on columns.
pub(super) fn column_set(held: Privileges) -> Value {
    set_value(held, &COLUMN_SET)
}

pub(super) fn role_table_grants(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for role in enabled_roles(cx) {
        for grant in role.tables.iter().filter(|t| !t.privileges.is_empty()) {
            let mut row = grant_row(&role, grant);
            row.push(table_set(grant.privileges));
            row.push(yes_no(grant.privileges.contains(Privileges::GRANT_OPTION)));
            put(row)?;
        }
    }
    Ok(())
}

pub(super) fn role_column_grants(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for role in enabled_roles(cx) {
        for grant in &role.tables {
            for (column, held) in &grant.columns {
                let mut row = grant_row(&role, grant);
                row.push((&**column).into());
                row.push(column_set(*held));
                row.push(yes_no(grant.privileges.contains(Privileges::GRANT_OPTION)));
                put(row)?;
            }
        }
    }
    Ok(())
}
