//! Checks a source before anything is copied: settings and rights.

use std::collections::BTreeMap;

use nfold_replica::Client;

use crate::error::{CopyError, Finding};
use crate::literal::quoted;

/// Databases that every server has by itself.
pub(crate) const SYSTEM: &str = "'mysql', 'information_schema', 'performance_schema', 'sys'";

/// What is known of a source.
pub(crate) struct Facts {
    pub databases: Vec<String>,
    pub is_mariadb: bool,
    /// Whether the channel can start by GTIDs.
    pub gtids: bool,
    pub server_id: u64,
    pub findings: Vec<Finding>,
}

/// Checks a source. `wanted` names the databases to copy; empty: all.
///
/// # Errors
/// A query fails. What prevents the copy is a finding.
pub(crate) fn check(client: &mut Client, wanted: &[String]) -> Result<Facts, CopyError> {
    let mut findings = Vec::new();
    let is_mariadb = is_mariadb(client);
    let rows = client.query(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
         ('log_bin', 'binlog_format', 'gtid_mode', 'server_id', 'binlog_expire_logs_seconds')",
    )?;
    let pair = |row: Vec<Option<String>>| {
        let mut values = row.into_iter().flatten();
        Some((values.next()?, values.next()?))
    };
    let settings: BTreeMap<String, String> = rows.into_iter().filter_map(pair).collect();
    let is = |name: &str, value: &str| settings.get(name).is_some_and(|v| v == value);
    if !is("log_bin", "ON") {
        findings.push(Finding::error(
            "the source writes no binary log",
            "start it with log_bin",
        ));
    }
    if !is("binlog_format", "ROW") {
        findings.push(Finding::error(
            "binlog_format is not ROW",
            match is_mariadb {
                true => {
                    "SET GLOBAL binlog_format = ROW, also in the option file, and let all \
                         sessions connect again"
                }
                false => "SET PERSIST binlog_format = ROW, and let all sessions connect again",
            },
        ));
    }
    // A MariaDB gives each transaction a GTID.
    let gtids = is_mariadb || is("gtid_mode", "ON");
    if !gtids {
        findings.push(Finding::warning(
            "gtid_mode is not ON",
            "the channel uses a file and a position, which end with this source",
        ));
    }
    rights(client, is_mariadb, &mut findings)?;
    let found = databases(client)?;
    for name in wanted.iter().filter(|name| !found.contains(name)) {
        findings.push(Finding::error(
            format!("the source has no database {name}, or the account cannot see it"),
            "correct --databases, or grant SELECT",
        ));
    }
    let copied = |name: &String| wanted.is_empty() || wanted.contains(name);
    let databases: Vec<String> = found.into_iter().filter(copied).collect();
    tables(client, &databases, &mut findings)?;
    let server_id = settings.get("server_id").and_then(|id| id.parse().ok());
    Ok(Facts {
        databases,
        is_mariadb,
        gtids,
        server_id: server_id.unwrap_or(0),
        findings,
    })
}

/// Whether the server is a MariaDB.
pub(crate) fn is_mariadb(client: &Client) -> bool {
    client.version().contains("MariaDB")
}

/// The databases of a server, without its own.
pub(crate) fn databases(client: &mut Client) -> Result<Vec<String>, CopyError> {
    let sql = format!(
        "SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ({SYSTEM}) \
         ORDER BY 1"
    );
    Ok(client
        .query(&sql)?
        .into_iter()
        .flatten()
        .flatten()
        .collect())
}

/// The first column of the rows of a query.
pub(crate) fn list(client: &mut Client, sql: &str) -> Result<Vec<String>, CopyError> {
    let rows = client.query(sql)?;
    Ok(rows
        .into_iter()
        .filter_map(|row| row.into_iter().next()?)
        .collect())
}

fn rights(
    client: &mut Client,
    is_mariadb: bool,
    findings: &mut Vec<Finding>,
) -> Result<(), CopyError> {
    let grants: Vec<String> = client
        .query("SHOW GRANTS")?
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    let global: Vec<&str> = (grants.iter())
        .filter_map(|grant| Some(grant.strip_prefix("GRANT ")?.split_once(" ON *.* ")?.0))
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .collect();
    let has = |name: &str| global.contains(&name) || global.contains(&"ALL PRIVILEGES");
    let reads_position = match is_mariadb {
        true => "BINLOG MONITOR",
        false => "REPLICATION CLIENT",
    };
    for (privilege, reason) in [
        ("REPLICATION SLAVE", "the channel reads the binary log"),
        (reads_position, "the position of the copy is read"),
        ("RELOAD", "FLUSH TABLES WITH READ LOCK begins the copy"),
    ] {
        if !has(privilege) {
            findings.push(Finding::error(
                format!("the account has no {privilege} ON *.*: {reason}"),
                format!("GRANT {privilege} ON *.* TO it"),
            ));
        }
    }
    if !has("SELECT") && !grants.iter().any(|grant| grant.contains("SELECT")) {
        findings.push(Finding::error(
            "the account has no SELECT",
            "GRANT SELECT ON *.* TO it, or on the databases to copy",
        ));
    }
    for (privilege, objects) in [
        ("SHOW VIEW", "views are not copied"),
        ("TRIGGER", "triggers are not named here"),
        ("EVENT", "events are not named here"),
        ("BACKUP_ADMIN", "a DDL statement during the copy ends it"),
    ] {
        // MariaDB has no such lock.
        let unknown = is_mariadb && privilege == "BACKUP_ADMIN";
        if !has(privilege) && !unknown {
            findings.push(Finding::warning(
                format!("the account has no {privilege} ON *.*: {objects}"),
                format!("GRANT {privilege} ON *.* TO it"),
            ));
        }
    }
    Ok(())
}

/// Tables that cannot be copied consistently, tables that are slow to follow, and stored programs.
fn tables(
    client: &mut Client,
    databases: &[String],
    findings: &mut Vec<Finding>,
) -> Result<(), CopyError> {
    for database in databases {
        let schema = quoted(database);
        let mut list = |sql: String| list(client, &sql);
        for table in list(format!(
            "SELECT CONCAT(table_name, ' (', LOWER(table_type), ')') \
             FROM information_schema.tables WHERE table_schema = {schema} \
             AND table_type IN ('SEQUENCE', 'SYSTEM VERSIONED')"
        ))? {
            findings.push(Finding::error(
                format!("{database}.{table} is of a kind that does not exist here"),
                "drop it, or leave its database out with --databases",
            ));
        }
        for table in list(format!(
            "SELECT CONCAT(table_name, ' (', engine, ')') FROM information_schema.tables \
             WHERE table_schema = {schema} AND table_type = 'BASE TABLE' AND engine <> 'InnoDB'"
        ))? {
            findings.push(Finding::error(
                format!("the table {database}.{table} has no transactions, so no snapshot has it"),
                "ALTER TABLE ... ENGINE = InnoDB, or leave its database out with --databases",
            ));
        }
        for table in list(format!(
            "SELECT table_name FROM information_schema.tables t \
             WHERE table_schema = {schema} AND table_type = 'BASE TABLE' AND NOT EXISTS \
             (SELECT 1 FROM information_schema.statistics s WHERE s.table_schema = {schema} \
             AND s.table_name = t.table_name AND s.non_unique = 0 AND s.nullable = '')"
        ))? {
            findings.push(Finding::warning(
                format!("the table {database}.{table} has no primary key"),
                "add one: each UPDATE and DELETE of it reads the whole table on the replica",
            ));
        }
        for program in list(format!(
            "SELECT CONCAT('trigger ', trigger_name) FROM information_schema.triggers \
             WHERE trigger_schema = {schema} UNION ALL \
             SELECT CONCAT(LOWER(routine_type), ' ', routine_name) FROM information_schema.routines \
             WHERE routine_schema = {schema} UNION ALL \
             SELECT CONCAT('event ', event_name) FROM information_schema.events \
             WHERE event_schema = {schema}"
        ))? {
            findings.push(Finding::warning(
                format!("the {program} of {database} is not copied"),
                "its changes of rows arrive as rows; a statement that creates, changes or drops it \
                 stops the channel",
            ));
        }
    }
    Ok(())
}
