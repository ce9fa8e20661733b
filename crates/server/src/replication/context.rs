//! The settings under which a statement of the source runs, as one SET statement.

use std::fmt::Write;

use nfold_binlog::{QueryContext, collation_of_source};
use nfold_types::{CollationId, ErrorCode, SqlError};

/// The bits of `sql_mode` that mean the same in MariaDB and MySQL.
const COMMON_MODES: u64 = 0b1110_1111 | 0x3ff << 18 | 0b111 << 29;
const ORACLE: u64 = 1 << 9;
const EMPTY_STRING_IS_NULL: u64 = 1 << 32;
/// MariaDB: without it, surplus digits of a fraction are cut.
const TIME_ROUND_FRACTIONAL: u64 = 1 << 34;
/// MySQL: with it, they are cut.
const TIME_TRUNCATE_FRACTIONAL: u64 = 1 << 32;

/// The settings of a MariaDB's session as those of MySQL. `explicit_defaults`: the value of
/// `explicit_defaults_for_timestamp` if the statement does not carry it.
///
/// # Errors
/// 1235 for a setting that changes the meaning of statements and does not exist here.
pub(super) fn of_mariadb(
    cx: &QueryContext,
    explicit_defaults: bool,
) -> Result<QueryContext, SqlError> {
    let mut cx = cx.clone();
    if let Some(mode) = &mut cx.sql_mode {
        for (bit, name) in [
            (ORACLE, "ORACLE"),
            (EMPTY_STRING_IS_NULL, "EMPTY_STRING_IS_NULL"),
        ] {
            if *mode & bit != 0 {
                return Err(SqlError::not_supported(format!(
                    "sql_mode {name} (MariaDB)"
                )));
            }
        }
        let rounds = *mode & TIME_ROUND_FRACTIONAL != 0;
        *mode &= COMMON_MODES;
        *mode |= if rounds { 0 } else { TIME_TRUNCATE_FRACTIONAL };
    }
    let own = cx.explicit_defaults_for_timestamp;
    cx.explicit_defaults_for_timestamp = Some(own.unwrap_or(explicit_defaults));
    // CHARACTER SET utf8mb4 without a collation.
    cx.collation_for_utf8mb4 = Some(CollationId::UTF8MB4_GENERAL_CI.0);
    Ok(cx)
}

/// The statement that gives a session the settings of a source's session.
///
/// # Errors
/// A setting that does not exist here.
pub(super) fn set_statement(cx: &QueryContext, timestamp: u32) -> Result<String, SqlError> {
    let mut text = format!(
        "SET foreign_key_checks = {}, unique_checks = {}, sql_auto_is_null = {}, timestamp = {timestamp}.{:06}",
        u8::from(!cx.no_foreign_key_checks),
        u8::from(!cx.no_unique_checks),
        u8::from(cx.auto_is_null),
        cx.microseconds,
    );
    let mut put = |name: &str, value: &dyn std::fmt::Display| {
        // Writing to a String cannot fail.
        let _ = write!(text, ", {name} = {value}");
    };
    if let Some(mode) = cx.sql_mode {
        put("sql_mode", &mode);
    }
    // An event without these settings has their defaults. The event before it may have had others.
    let (increment, offset) = cx.auto_increment.unwrap_or((1, 1));
    put("auto_increment_increment", &increment);
    put("auto_increment_offset", &offset);
    // English (en_US) is number 0.
    put("lc_time_names", &cx.lc_time_names.unwrap_or(0));
    if let Some(on) = cx.sql_require_primary_key {
        put("sql_require_primary_key", &u8::from(on));
    }
    if let Some((client, connection, server)) = cx.collations {
        let client = collation(client)?.charset.name;
        put("character_set_client", &format_args!("'{client}'"));
        let connection = collation(connection)?.name;
        put("collation_connection", &format_args!("'{connection}'"));
        put(
            "collation_server",
            &format_args!("'{}'", collation(server)?.name),
        );
    }
    if let Some(zone) = &cx.time_zone {
        put("time_zone", &format_args!("'{}'", zone.replace('\'', "''")));
    }
    if let Some(on) = cx.explicit_defaults_for_timestamp {
        put("explicit_defaults_for_timestamp", &u8::from(on));
    }
    if let Some(id) = cx.collation_for_utf8mb4 {
        put(
            "default_collation_for_utf8mb4",
            &format_args!("'{}'", collation(id)?.name),
        );
    }
    if cx.default_table_encryption == Some(true) {
        return Err(SqlError::not_supported("default_table_encryption"));
    }
    Ok(text)
}

fn collation(id: u16) -> Result<&'static nfold_types::Collation, SqlError> {
    collation_of_source(id)
        .and_then(CollationId::get)
        .ok_or_else(|| SqlError::new(ErrorCode::ER_UNKNOWN_COLLATION, &[&id]))
}
