//! SHOW statements with a constant result: engines, character sets, privileges, and features that
//! do not exist here.

use nfold_catalog::Privileges;
use nfold_sql::ast::ShowFilter;
use nfold_types::{Collation, ColumnType, SqlError, TextSize, TypeKind, Value, charset};

use super::filter;
use crate::session::response::{Response, RowSet, text_type};

/// The type of a column in a result that is always empty.
pub(super) enum Cell {
    Text(u32),
    Char(u32),
    LongText,
    Time(TypeKind),
    Number(TypeKind),
}

impl Cell {
    fn ty(&self) -> ColumnType {
        let string = |kind| ColumnType::string(kind, text_type(1).collation);
        match self {
            Cell::Text(chars) => text_type(*chars),
            Cell::Char(chars) => string(TypeKind::Char(*chars)),
            Cell::LongText => string(TypeKind::Text(TextSize::Normal)),
            Cell::Time(kind) | Cell::Number(kind) => ColumnType::new(kind.clone()),
        }
    }
}

const INT: Cell = Cell::Number(TypeKind::Int);
const BIGINT: Cell = Cell::Number(TypeKind::BigInt);
const NAME: Cell = Cell::Text(64);
const TIMESTAMP: Cell = Cell::Time(TypeKind::Timestamp(0));
const DATETIME: Cell = Cell::Time(TypeKind::DateTime(0));

pub(super) const OPEN_TABLES: &[(&str, Cell)] = &[
    ("Database", NAME),
    ("Table", NAME),
    ("In_use", Cell::Number(TypeKind::BigInt)),
    ("Name_locked", Cell::Number(TypeKind::BigInt)),
];
pub(super) const TRIGGERS: &[(&str, Cell)] = &[
    ("Trigger", NAME),
    ("Event", Cell::Char(6)),
    ("Table", NAME),
    ("Statement", Cell::LongText),
    ("Timing", Cell::Char(6)),
    ("Created", Cell::Time(TypeKind::Timestamp(2))),
    ("sql_mode", NAME),
    ("Definer", Cell::Text(288)),
    ("character_set_client", NAME),
    ("collation_connection", NAME),
    ("Database Collation", NAME),
];
pub(super) const EVENTS: &[(&str, Cell)] = &[
    ("Db", NAME),
    ("Name", NAME),
    ("Definer", Cell::Text(288)),
    ("Time zone", NAME),
    ("Type", Cell::Text(9)),
    ("Execute at", DATETIME),
    ("Interval value", Cell::Text(256)),
    ("Interval field", Cell::Char(18)),
    ("Starts", DATETIME),
    ("Ends", DATETIME),
    ("Status", Cell::Text(21)),
    ("Originator", INT),
    ("character_set_client", NAME),
    ("collation_connection", NAME),
    ("Database Collation", NAME),
];
pub(super) const ROUTINES: &[(&str, Cell)] = &[
    ("Db", NAME),
    ("Name", NAME),
    ("Type", Cell::Char(9)),
    ("Language", NAME),
    ("Definer", Cell::Text(288)),
    ("Modified", TIMESTAMP),
    ("Created", TIMESTAMP),
    ("Security_type", Cell::Char(7)),
    ("Comment", Cell::LongText),
    ("character_set_client", NAME),
    ("collation_connection", NAME),
    ("Database Collation", NAME),
];
pub(super) const BINARY_LOG_STATUS: &[(&str, Cell)] = &[
    ("File", NAME),
    ("Position", BIGINT),
    ("Binlog_Do_DB", NAME),
    ("Binlog_Ignore_DB", NAME),
    ("Executed_Gtid_Set", NAME),
];
pub(super) const BINARY_LOGS: &[(&str, Cell)] = &[
    ("Log_name", NAME),
    ("File_size", BIGINT),
    ("Encrypted", NAME),
];
pub(super) const REPLICA_STATUS: &[(&str, Cell)] = &[
    ("Replica_IO_State", NAME),
    ("Source_Host", NAME),
    ("Source_User", NAME),
    ("Source_Port", INT),
    ("Connect_Retry", INT),
    ("Source_Log_File", NAME),
    ("Read_Source_Log_Pos", BIGINT),
    ("Relay_Log_File", NAME),
    ("Relay_Log_Pos", BIGINT),
    ("Relay_Source_Log_File", NAME),
    ("Replica_IO_Running", NAME),
    ("Replica_SQL_Running", NAME),
    ("Replicate_Do_DB", NAME),
    ("Replicate_Ignore_DB", NAME),
    ("Replicate_Do_Table", NAME),
    ("Replicate_Ignore_Table", NAME),
    ("Replicate_Wild_Do_Table", NAME),
    ("Replicate_Wild_Ignore_Table", NAME),
    ("Last_Errno", INT),
    ("Last_Error", NAME),
    ("Skip_Counter", INT),
    ("Exec_Source_Log_Pos", BIGINT),
    ("Relay_Log_Space", BIGINT),
    ("Until_Condition", NAME),
    ("Until_Log_File", NAME),
    ("Until_Log_Pos", BIGINT),
    ("Source_SSL_Allowed", NAME),
    ("Source_SSL_CA_File", NAME),
    ("Source_SSL_CA_Path", NAME),
    ("Source_SSL_Cert", NAME),
    ("Source_SSL_Cipher", NAME),
    ("Source_SSL_Key", NAME),
    ("Seconds_Behind_Source", BIGINT),
    ("Source_SSL_Verify_Server_Cert", NAME),
    ("Last_IO_Errno", INT),
    ("Last_IO_Error", NAME),
    ("Last_SQL_Errno", INT),
    ("Last_SQL_Error", NAME),
    ("Replicate_Ignore_Server_Ids", NAME),
    ("Source_Server_Id", INT),
    ("Source_UUID", NAME),
    ("Source_Info_File", NAME),
    ("SQL_Delay", INT),
    ("SQL_Remaining_Delay", INT),
    ("Replica_SQL_Running_State", NAME),
    ("Source_Retry_Count", BIGINT),
    ("Source_Bind", NAME),
    ("Last_IO_Error_Timestamp", NAME),
    ("Last_SQL_Error_Timestamp", NAME),
    ("Source_SSL_Crl", NAME),
    ("Source_SSL_Crlpath", NAME),
    ("Retrieved_Gtid_Set", NAME),
    ("Executed_Gtid_Set", NAME),
    ("Auto_Position", INT),
    ("Replicate_Rewrite_DB", NAME),
    ("Channel_Name", NAME),
    ("Source_TLS_Version", NAME),
    ("Source_public_key_path", NAME),
    ("Get_Source_public_key", INT),
    ("Network_Namespace", NAME),
];
pub(super) const REPLICAS: &[(&str, Cell)] = &[
    ("Server_Id", INT),
    ("Host", NAME),
    ("Port", INT),
    ("Source_Id", INT),
    ("Replica_UUID", NAME),
];
pub(super) const LOG_EVENTS: &[(&str, Cell)] = &[
    ("Log_name", NAME),
    ("Pos", BIGINT),
    ("Event_type", NAME),
    ("Server_id", INT),
    ("End_log_pos", BIGINT),
    ("Info", NAME),
];
pub(super) const PROFILES: &[(&str, Cell)] = &[
    ("Query_ID", INT),
    ("Duration", Cell::Number(TypeKind::Double)),
    ("Query", Cell::Text(40)),
];

/// The names and types of columns, for a [`RowSet`].
pub(super) fn types<'n>(columns: &[(&'n str, Cell)]) -> Vec<(&'n str, ColumnType)> {
    columns.iter().map(|(name, c)| (*name, c.ty())).collect()
}

/// An empty result with these columns, for a feature that does not exist here.
pub(super) fn empty(
    columns: &[(&str, Cell)],
    wanted: Option<&ShowFilter>,
) -> Result<Response, SqlError> {
    let columns: Vec<_> = columns.iter().map(|(name, c)| (*name, c.ty())).collect();
    let mut set = RowSet::new(&columns);
    filter::apply(&mut set, wanted, 0);
    Ok(Response::Rows(set))
}

/// A result of one row, whose values are found by the names of the columns.
pub(super) fn one_row(
    columns: &[(&str, Cell)],
    value: impl Fn(&str) -> Value,
) -> Result<Response, SqlError> {
    let types: Vec<_> = columns.iter().map(|(name, c)| (*name, c.ty())).collect();
    let mut set = RowSet::new(&types);
    set.push(columns.iter().map(|(name, _)| value(name)).collect());
    Ok(Response::Rows(set))
}

fn texts(set: &mut RowSet, row: &[&str]) {
    set.push(row.iter().map(|s| Value::from(*s)).collect());
}

/// SHOW ENGINES. The only engine is listed under the name that clients expect.
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
        &["InnoDB", "DEFAULT", comment, "YES", "YES", "YES"],
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
    for (_, name, levels) in Privileges::LIST {
        let mut word = name.to_ascii_lowercase();
        word[..1].make_ascii_uppercase();
        texts(
            &mut set,
            &[
                &word,
                if levels.database {
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
    filter::apply(&mut set, wanted, 0);
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
    filter::apply(&mut set, wanted, 0);
    Ok(Response::Rows(set))
}
