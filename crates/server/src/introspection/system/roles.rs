//! The roles of the current account, and what was granted to them.

use std::sync::Arc;

use nfold_catalog::{Account, AccountId, Privileges, TableGrant};
use nfold_types::{SqlError, Value};

use super::rows::{Cx, Put};
use super::schema::CATALOG;

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
pub(super) fn applicable(cx: &Cx<'_>, put: &mut Put<'_>, granted_on: bool) -> Result<(), SqlError> {
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

/// ENABLED_ROLES: the active roles, and those granted to them.
pub(super) fn enabled(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    let mandatory = cx.server.mandatory_roles();
    let own = cx.account.as_ref();
    for role in enabled_roles(cx) {
        let id = role.id();
        put(vec![
            (&*id.0).into(),
            (&*id.1).into(),
            yes_no(own.is_some_and(|a| a.default_roles.contains(&id))),
            yes_no(mandatory.contains(&id)),
        ])?;
    }
    Ok(())
}

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

pub(super) fn table_grants(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for role in enabled_roles(cx) {
        for grant in &role.tables {
            let mut row = grant_row(&role, grant);
            row.push(table_set(grant.privileges));
            row.push(yes_no(grant.privileges.contains(Privileges::GRANT_OPTION)));
            put(row)?;
        }
    }
    Ok(())
}

pub(super) fn column_grants(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
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
