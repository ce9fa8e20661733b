//! SHOW statements whose answer does not change while the server runs: engines, character sets,
//! privileges, and what there is none of.

use nfold_catalog::Privileges;
use nfold_sql::ast::ShowFilter;
use nfold_types::{Collation, ColumnType, SqlError, TypeKind, Value, charset};

use super::filter;
use crate::session::response::{Response, RowSet, text_type};

pub(super) const OPEN_TABLES: &[&str] = &["Database", "Table", "In_use", "Name_locked"];
pub(super) const TRIGGERS: &[&str] = &[
    "Trigger",
    "Event",
    "Table",
    "Statement",
    "Timing",
    "Created",
    "sql_mode",
    "Definer",
    "character_set_client",
    "collation_connection",
    "Database Collation",
];
pub(super) const EVENTS: &[&str] = &[
    "Db",
    "Name",
    "Definer",
    "Time zone",
    "Type",
    "Execute at",
    "Interval value",
    "Interval field",
    "Starts",
    "Ends",
    "Status",
    "Originator",
    "character_set_client",
    "collation_connection",
    "Database Collation",
];
pub(super) const ROUTINES: &[&str] = &[
    "Db",
    "Name",
    "Type",
    "Language",
    "Definer",
    "Modified",
    "Created",
    "Security_type",
    "Comment",
    "character_set_client",
    "collation_connection",
    "Database Collation",
];
pub(super) const BINARY_LOG_STATUS: &[&str] = &[
    "File",
    "Position",
    "Binlog_Do_DB",
    "Binlog_Ignore_DB",
    "Executed_Gtid_Set",
];
pub(super) const REPLICA_STATUS: &[&str] = &[
    "Replica_IO_State",
    "Source_Host",
    "Source_User",
    "Source_Port",
];
pub(super) const PROFILES: &[&str] = &["Query_ID", "Duration", "Query"];

/// A result that has these columns and no row: there is nothing of the kind here.
pub(super) fn empty(columns: &[&str], wanted: Option<&ShowFilter>) -> Result<Response, SqlError> {
    let columns: Vec<_> = columns.iter().map(|c| (*c, 64)).collect();
    let mut set = RowSet::of_text(&columns);
    filter::apply(&mut set, wanted, 0)?;
    Ok(Response::Rows(set))
}

fn texts(set: &mut RowSet, row: &[&str]) {
    set.push(row.iter().map(|s| Value::from(*s)).collect());
}

/// SHOW ENGINES. The one engine answers to the name that clients ask for.
pub(super) fn engines() -> Response {
    let columns = [
        ("Engine", 64),
        ("Support", 8),
        ("Comment", 80),
        ("Transactions", 3),
        ("XA", 3),
        ("Savepoints", 3),
    ];
    let mut set = RowSet::of_text(&columns);
    let comment = "Supports transactions, row-level locking, and lock-free reads (Nfold)";
    texts(
        &mut set,
        &["InnoDB", "DEFAULT", comment, "YES", "NO", "YES"],
    );
    Response::Rows(set)
}

/// SHOW PLUGINS
pub(super) fn plugins() -> Response {
    let mut set = RowSet::of_text(&[
        ("Name", 64),
        ("Status", 10),
        ("Type", 80),
        ("Library", 64),
        ("License", 80),
    ]);
    for (name, kind) in [
        ("caching_sha2_password", "AUTHENTICATION"),
        ("mysql_native_password", "AUTHENTICATION"),
        ("InnoDB", "STORAGE ENGINE"),
    ] {
        let mut row: Vec<Value> = [name, "ACTIVE", kind]
            .iter()
            .map(|s| Value::from(*s))
            .collect();
        row.extend([Value::Null, Value::from("Apache-2.0")]);
        set.push(row);
    }
    Response::Rows(set)
}

/// SHOW PRIVILEGES
pub(super) fn privileges() -> Response {
    let mut set = RowSet::of_text(&[("Privilege", 40), ("Context", 40), ("Comment", 80)]);
    for (_, name, on_database) in Privileges::LIST {
        let mut word = name.to_ascii_lowercase();
        word[..1].make_ascii_uppercase();
        texts(
            &mut set,
            &[
                &word,
                if *on_database {
                    "Databases,Tables"
                } else {
                    "Server Admin"
                },
                "",
            ],
        );
    }
    Response::Rows(set)
}

/// SHOW CHARACTER SET
pub(super) fn character_sets(wanted: Option<&ShowFilter>) -> Result<Response, SqlError> {
    let mut set = RowSet::new(&[
        ("Charset", text_type(64)),
        ("Description", text_type(2048)),
        ("Default collation", text_type(64)),
        ("Maxlen", ColumnType::new(TypeKind::Int).with_unsigned()),
    ]);
    for c in charset::ALL {
        set.push(vec![
            Value::from(c.name),
            Value::from(c.description),
            Value::from(c.default_collation.known().name),
            Value::UInt(u64::from(c.max_len)),
        ]);
    }
    filter::apply(&mut set, wanted, 0)?;
    Ok(Response::Rows(set))
}

/// SHOW COLLATION
pub(super) fn collations(wanted: Option<&ShowFilter>) -> Result<Response, SqlError> {
    let pad = ColumnType::string(TypeKind::Char(9), text_type(9).collation);
    let mut set = RowSet::new(&[
        ("Collation", text_type(64)),
        ("Charset", text_type(64)),
        ("Id", ColumnType::bigint().with_unsigned()),
        ("Default", text_type(3)),
        ("Compiled", text_type(3)),
        ("Sortlen", ColumnType::new(TypeKind::Int).with_unsigned()),
        ("Pad_attribute", pad),
    ]);
    let mut all: Vec<&Collation> = Collation::all().iter().collect();
    all.sort_unstable_by_key(|c| c.name);
    for c in all {
        set.push(vec![
            Value::from(c.name),
            Value::from(c.charset.name),
            Value::UInt(u64::from(c.id.0)),
            Value::from(if c.is_default { "Yes" } else { "" }),
            Value::from("Yes"),
            Value::UInt(u64::from(c.sort_len)),
            Value::from(if c.pad_space { "PAD SPACE" } else { "NO PAD" }),
        ]);
    }
    filter::apply(&mut set, wanted, 0)?;
    Ok(Response::Rows(set))
}
