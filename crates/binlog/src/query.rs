//! QUERY: a statement as text, with the settings of the session that ran it.

use nfold_protocol::Reader;

use crate::BinlogError;

/// The settings of the source's session. `None`: the event does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryContext {
    /// `foreign_key_checks = 0`
    pub no_foreign_key_checks: bool,
    /// `unique_checks = 0`
    pub no_unique_checks: bool,
    /// `sql_auto_is_null = 1`
    pub auto_is_null: bool,
    /// The bits of `sql_mode`.
    pub sql_mode: Option<u64>,
    /// `auto_increment_increment`, `auto_increment_offset`
    pub auto_increment: Option<(u16, u16)>,
    /// The numbers of `collation_client`, `collation_connection`, `collation_server`.
    pub collations: Option<(u16, u16, u16)>,
    pub time_zone: Option<String>,
    /// The number of `lc_time_names`.
    pub lc_time_names: Option<u16>,
    /// The number of `collation_database`.
    pub collation_database: Option<u16>,
    /// The account that ran the statement: user, host.
    pub invoker: Option<(String, String)>,
    /// The microseconds of the statement's start.
    pub microseconds: u32,
    /// MariaDB since 10.10 says nothing if it is off.
    pub explicit_defaults_for_timestamp: Option<bool>,
    /// The number of `default_collation_for_utf8mb4`.
    pub collation_for_utf8mb4: Option<u16>,
    pub sql_require_primary_key: Option<bool>,
    pub default_table_encryption: Option<bool>,
    /// The databases that a DDL statement changes; empty: it does not say.
    pub updated_databases: Vec<String>,
    /// The statement needs no current database, because it names the one that it changes. Only the
    /// header of the event says so.
    pub names_database: bool,
    /// The statement is a DDL statement that commits by itself.
    pub is_atomic_ddl: bool,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryEvent {
    /// The source's connection.
    pub thread: u32,
    /// The error with which the statement ended on the source; 0: none.
    pub error: u16,
    /// The current database; empty: none.
    pub database: String,
    pub context: QueryContext,
    /// The text, in the character set of the client.
    pub sql: Vec<u8>,
}

impl QueryEvent {
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<QueryEvent, BinlogError> {
        let thread = r.u32("thread")?;
        r.u32("duration")?;
        let database = usize::from(r.u8("length of the database")?);
        let error = r.u16("error")?;
        let length = usize::from(r.u16("length of the context")?);
        let context = QueryContext::read(r.take(length, "context")?)?;
        let name = r.take(database, "database")?;
        let database = String::from_utf8_lossy(name).into_owned();
        r.take(1, "end of the database")?;
        Ok(QueryEvent {
            thread,
            error,
            database,
            context,
            sql: r.rest().to_vec(),
        })
    }
}

impl QueryContext {
    /// MariaDB since 10.10; MySQL has a setting of its own for it.
    const MARIADB_EXPLICIT_DEFAULTS: u32 = 1 << 24;
    /// The most databases that an event lists, and the number that stands for more.
    pub(crate) const MAX_DATABASES: usize = 16;
    pub(crate) const TOO_MANY_DATABASES: u8 = 254;
    pub(crate) const AUTO_IS_NULL: u32 = 1 << 14;
    pub(crate) const NO_FOREIGN_KEY_CHECKS: u32 = 1 << 26;
    pub(crate) const NO_UNIQUE_CHECKS: u32 = 1 << 27;

    fn read(bytes: &[u8]) -> Result<QueryContext, BinlogError> {
        /// MariaDB: the number of the ALTER TABLE that ends follows.
        const ALTER_ENDS: u8 = 4 | 8;
        let mut cx = QueryContext::default();
        let mut r = Reader::new(bytes);
        while !r.is_empty() {
            match r.u8("kind of a setting")? {
                0 => {
                    let flags = r.u32("flags")?;
                    cx.auto_is_null = flags & Self::AUTO_IS_NULL != 0;
                    cx.no_foreign_key_checks = flags & Self::NO_FOREIGN_KEY_CHECKS != 0;
                    cx.no_unique_checks = flags & Self::NO_UNIQUE_CHECKS != 0;
                    if flags & Self::MARIADB_EXPLICIT_DEFAULTS != 0 {
                        cx.explicit_defaults_for_timestamp = Some(true);
                    }
                }
                1 => cx.sql_mode = Some(r.u64("sql_mode")?),
                2 => {
                    short_text(&mut r)?;
                    r.u8("end of the catalog")?;
                }
                3 => {
                    let increment = r.u16("auto_increment_increment")?;
                    cx.auto_increment = Some((increment, r.u16("auto_increment_offset")?));
                }
                4 => {
                    let client = r.u16("character set of the client")?;
                    let connection = r.u16("collation of the connection")?;
                    cx.collations = Some((client, connection, r.u16("collation of the server")?));
                }
                5 => cx.time_zone = Some(short_text(&mut r)?),
                6 => drop(short_text(&mut r)?),
                7 => cx.lc_time_names = Some(r.u16("lc_time_names")?),
                8 => cx.collation_database = Some(r.u16("collation of the database")?),
                9 => drop(r.u64("updated tables")?),
                10 => drop(r.u32("length of the original event")?),
                11 => cx.invoker = Some((short_text(&mut r)?, short_text(&mut r)?)),
                12 => {
                    let n = r.u8("number of databases")?;
                    for _ in 0..n * u8::from(n != Self::TOO_MANY_DATABASES) {
                        let name = String::from_utf8_lossy(r.nul_bytes("database")?);
                        cx.updated_databases.push(name.into_owned());
                    }
                }
                13 => {
                    let b = r.take(3, "microseconds")?;
                    cx.microseconds = u32::from_le_bytes([b[0], b[1], b[2], 0]);
                }
                16 => {
                    let on = r.u8("explicit_defaults_for_timestamp")?;
                    cx.explicit_defaults_for_timestamp = Some(on != 0);
                }
                17 => {
                    r.u64("xid")?;
                    cx.is_atomic_ddl = true;
                }
                18 => cx.collation_for_utf8mb4 = Some(r.u16("collation of utf8mb4")?),
                19 => cx.sql_require_primary_key = Some(r.u8("sql_require_primary_key")? != 0),
                20 => cx.default_table_encryption = Some(r.u8("default_table_encryption")? != 0),
                // MariaDB's: microseconds, XID, flags of an ALTER TABLE.
                128 => {
                    let b = r.take(3, "microseconds")?;
                    cx.microseconds = u32::from_le_bytes([b[0], b[1], b[2], 0]);
                }
                129 => drop(r.u64("xid")?),
                130 => {
                    if r.u8("flags of a GTID")? & ALTER_ENDS != 0 {
                        r.u64("number of the ALTER TABLE")?;
                    }
                }
                // Without its length, nothing behind it can be read.
                other => {
                    return Err(BinlogError::Unsupported(format!(
                        "setting {other} of a statement"
                    )));
                }
            }
        }
        Ok(cx)
    }
}

fn short_text(r: &mut Reader<'_>) -> Result<String, BinlogError> {
    let length = usize::from(r.u8("length of a text")?);
    Ok(String::from_utf8_lossy(r.take(length, "text")?).into_owned())
}
