//! The rows of the tables of `mysql`: the accounts and what was granted to them, in the form that
//! tools read. The tables that nothing is stored in are empty.

use nfold_catalog::{Account, CertificateRule, ColumnDef, LockDays, Privileges, TableDef};
use nfold_json::{Json, Work};
use nfold_types::{NoCheckpoint, SqlError, TypeKind, Value};

use super::accounts;
use super::rows::{Cx, Put};

/// Calls `put` with the rows of a table.
///
/// # Errors
/// Those of `put`.
pub(super) fn rows(cx: &Cx<'_>, def: &TableDef, put: &mut Put<'_>) -> Result<(), SqlError> {
    if &*def.name == "component" {
        for c in cx.server.components.installed() {
            put(vec![Value::UInt(c.id), Value::UInt(c.group), c.urn.into()])?;
        }
        return Ok(());
    }
    let all = accounts::accounts(cx);
    for account in &all {
        let (user, host): (&str, &str) = (&account.user, &account.host);
        match &*def.name {
            "user" => {
                let columns = def.columns.iter();
                let row: Result<Vec<Value>, SqlError> =
                    columns.map(|c| user_value(cx, account, c)).collect();
                put(row?)?;
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
                        cx.local(t.granted_s),
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
                            cx.local(t.granted_s),
                            accounts::column_set(*held),
                        ])?;
                    }
                }
            }
            "password_history" => {
                for past in &account.options.password.past {
                    let stored = Value::Bytes(past.stored.to_vec());
                    put(vec![host.into(), user.into(), cx.local(past.set_s), stored])?;
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

/// `mysql.user.User_attributes`: a JSON object, or NULL if there is nothing to show.
fn user_attributes(account: &Account) -> Result<Value, SqlError> {
    let (options, password) = (&account.options, &account.options.password);
    let work = Work::new(&NoCheckpoint);
    let mut members = Vec::new();
    if let Some(attribute) = &options.attribute {
        // It was checked when it was stored.
        let attribute = nfold_json::parse(attribute.as_bytes(), &work).unwrap_or(Json::Null);
        members.push(("metadata".to_string(), attribute));
    }
    if !account.restrictions.is_empty() {
        let restriction = |(database, privileges): &(Box<str>, Privileges)| {
            let names = privileges.names().map(|n| Json::String(n.into()));
            Json::object(vec![
                ("Database".to_string(), Json::String(database.to_string())),
                ("Privileges".to_string(), Json::Array(names.collect())),
            ])
        };
        let all = account.restrictions.iter().map(restriction).collect();
        members.push(("Restrictions".to_string(), Json::Array(all)));
    }
    if password.failed_attempts > 0 || password.lock_days != LockDays::Days(0) {
        let days = match password.lock_days {
            LockDays::Days(days) => days.into(),
            LockDays::Unbounded => -1,
        };
        let attempts = password.failed_attempts.into();
        let locking = vec![
            ("failed_login_attempts".to_string(), Json::Int(attempts)),
            ("password_lock_time_days".to_string(), Json::Int(days)),
        ];
        members.push(("Password_locking".to_string(), Json::object(locking)));
    }
    if !password.second.is_empty() {
        let second = String::from_utf8_lossy(&password.second).into_owned();
        members.push(("additional_password".to_string(), Json::String(second)));
    }
    if members.is_empty() {
        return Ok(Value::Null);
    }
    let bytes = nfold_json::binary::encode(&Json::object(members), &work)?;
    Ok(Value::Bytes(bytes))
}

/// A column of `mysql.user`.
fn user_value(cx: &Cx<'_>, account: &Account, c: &ColumnDef) -> Result<Value, SqlError> {
    let options = &account.options;
    let number = |n: Option<u32>| n.map_or(Value::Null, |n| Value::UInt(n.into()));
    let required = |part: fn(&CertificateRule) -> &Option<Box<str>>| {
        let text = options
            .certificate
            .as_ref()
            .and_then(|r| part(r).as_deref());
        Value::from(text.unwrap_or_default())
    };
    Ok(match &*c.name {
        "Host" => (&*account.host).into(),
        "User" => (&*account.user).into(),
        "plugin" => (&*account.plugin).into(),
        "authentication_string" => Value::Bytes(account.auth_string.to_vec()),
        "password_expired" => yes_no(account.expired),
        "password_last_changed" if options.password.changed_s > 0 => {
            cx.local(options.password.changed_s)
        }
        "password_lifetime" => number(options.password.lifetime_days.map(u32::from)),
        "Password_reuse_history" => number(options.password.history),
        "Password_reuse_time" => number(options.password.reuse_days),
        "Password_require_current" => match options.password.require_current {
            None => Value::Null,
            Some(required) => yes_no(required),
        },
        "User_attributes" => return user_attributes(account),
        "ssl_type" => match &options.certificate {
            None if !options.require_tls => "".into(),
            None => "ANY".into(),
            Some(rule) if *rule == CertificateRule::default() => "X509".into(),
            Some(_) => "SPECIFIED".into(),
        },
        "ssl_cipher" => required(|rule| &rule.cipher),
        "x509_issuer" => required(|rule| &rule.issuer),
        "x509_subject" => required(|rule| &rule.subject),
        "max_questions" => Value::UInt(options.limits.queries_per_hour.into()),
        "max_updates" => Value::UInt(options.limits.updates_per_hour.into()),
        "max_connections" => Value::UInt(options.limits.connections_per_hour.into()),
        "max_user_connections" => Value::UInt(options.limits.connections.into()),
        "account_locked" => yes_no(account.locked),
        name if name.ends_with("_priv") => yes_no(account.global.contains(privilege_of(name))),
        _ if c.nullable => Value::Null,
        _ => match c.ty.kind {
            TypeKind::Int => Value::UInt(0),
            _ => "".into(),
        },
    })
}
