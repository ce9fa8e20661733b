//! The rows of the tables of `mysql`: the accounts and what was granted to them, in the form that
//! tools read. The tables that nothing is stored in are empty.

use nfold_catalog::{Account, ColumnDef, Privileges, TableDef};
use nfold_types::{SqlError, TypeKind, Value};

use super::accounts;
use super::rows::{Cx, Put};

/// Calls `put` with the rows of a table.
///
/// # Errors
/// Those of `put`.
pub(super) fn rows(cx: &Cx<'_>, def: &TableDef, put: &mut Put<'_>) -> Result<(), SqlError> {
    let all = accounts::accounts(cx);
    for account in &all {
        let (user, host): (&str, &str) = (&account.user, &account.host);
        match &*def.name {
            "user" => {
                let columns = def.columns.iter();
                put(columns.map(|c| user_value(account, c)).collect())?;
            }
            "db" => {
                for (name, held) in &account.databases {
                    let value = |c: &ColumnDef| match &*c.name {
                        "Host" => host.into(),
                        "Db" => (&**name).into(),
                        "User" => user.into(),
                        other => yes_no(held.contains(privilege_of(other))),
                    };
                    put(def.columns.iter().map(value).collect())?;
                }
            }
            "tables_priv" => {
                for t in &account.tables {
                    put(vec![
                        host.into(),
                        (&*t.database).into(),
                        user.into(),
                        (&*t.table).into(),
                        (&*t.grantor).into(),
                        timestamp(t.granted_s),
                        accounts::table_set(t.privileges),
                        accounts::column_set(t.on_any_column()),
                    ])?;
                }
            }
            "columns_priv" => {
                for t in &account.tables {
                    for (column, held) in &t.columns {
                        put(vec![
                            host.into(),
                            (&*t.database).into(),
                            user.into(),
                            (&*t.table).into(),
                            (&**column).into(),
                            timestamp(t.granted_s),
                            accounts::column_set(*held),
                        ])?;
                    }
                }
            }
            "role_edges" => {
                for r in &account.roles {
                    put(vec![
                        (&*r.role.1).into(),
                        (&*r.role.0).into(),
                        host.into(),
                        user.into(),
                        yes_no(r.admin_option),
                    ])?;
                }
            }
            "default_roles" => {
                for (role, role_host) in &account.default_roles {
                    let row = [host, user, role_host, role];
                    put(row.map(Value::from).into())?;
                }
            }
            "global_grants" => {
                for d in &account.dynamic {
                    let option = yes_no(d.grant_option);
                    put(vec![user.into(), host.into(), (&*d.name).into(), option])?;
                }
            }
            _ => return Ok(()),
        }
    }
    Ok(())
}

fn yes_no(yes: bool) -> Value {
    (if yes { "Y" } else { "N" }).into()
}

/// Seconds since 1970 as a TIMESTAMP.
fn timestamp(seconds: u64) -> Value {
    Value::Timestamp(nfold_types::Timestamp::from_micros(
        seconds as i64 * 1_000_000,
        0,
    ))
}

/// The privilege of a column such as `Create_tmp_table_priv`.
fn privilege_of(column: &str) -> Privileges {
    let name = match column.trim_end_matches("_priv") {
        "Create_tmp_table" => "CREATE TEMPORARY TABLES".to_string(),
        "Show_db" => "SHOW DATABASES".to_string(),
        "Repl_slave" => "REPLICATION SLAVE".to_string(),
        "Repl_client" => "REPLICATION CLIENT".to_string(),
        "Grant" => "GRANT OPTION".to_string(),
        other => other.replace('_', " "),
    };
    Privileges::by_name(&name).map_or(Privileges::NONE, |(p, _)| p)
}

/// A column of `mysql.user`.
fn user_value(account: &Account, c: &ColumnDef) -> Value {
    match &*c.name {
        "Host" => (&*account.host).into(),
        "User" => (&*account.user).into(),
        "plugin" => (&*account.plugin).into(),
        "authentication_string" => Value::Bytes(account.auth_string.to_vec()),
        "password_expired" => yes_no(account.expired),
        "account_locked" => yes_no(account.locked),
        name if name.ends_with("_priv") => yes_no(account.global.contains(privilege_of(name))),
        _ if c.nullable => Value::Null,
        _ => match c.ty.kind {
            TypeKind::Int => Value::UInt(0),
            _ => "".into(),
        },
    }
}
