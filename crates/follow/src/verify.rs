//! `nfold verify`: compares two servers while they run.
//!
//! # Picture
//! ```text
//! checksum of a chunk on both sides ── equal ─▶ next chunk
//!            │ different
//!            ▼
//! rows of the source ─▶ wait until the replica has them ─▶ rows of the replica ─▶ rows of the source
//!            a row that the source has not changed meanwhile, and the replica has otherwise: different
//! ```
//! # Invariants
//! - V1: a row is reported only if the source had it unchanged before and after the replica, which
//!   had applied all that the source had committed before, was read.
//! - V2: the same holds for a table that is missing or has other columns.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nfold_binlog::GtidSet;
use nfold_replica::{Client, SourceError};

use crate::SourceUrl;
use crate::check::databases;
use crate::error::CopyError;
use crate::literal::name;
use crate::progress::number;
use crate::schema::{Column, Table, tables};
use crate::snapshot::{Position, position};

/// Command line of `nfold verify`.
#[derive(clap::Args)]
pub struct VerifyArgs {
    /// The source: mysql://USER:PASSWORD@HOST:PORT/; a password that is left out is MYSQL_PWD
    source: SourceUrl,
    /// Its replica, in the same form
    replica: SourceUrl,
    /// The databases to compare, separated by commas (all)
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    databases: Vec<String>,
    /// The rows of a chunk
    #[arg(long, default_value_t = 10_000)]
    chunk_rows: u64,
}

/// The most keys that are printed for a table.
const SHOWN_KEYS: usize = 20;
/// How often a chunk whose rows keep changing is compared.
const ATTEMPTS: u32 = 100;
/// The longest time until the replica has applied what the source had committed.
const CATCH_UP: Duration = Duration::from_secs(300);

/// Exits with 1 if the servers differ, and with 2 if they cannot be compared.
pub fn verify(args: &VerifyArgs) -> ExitCode {
    match run(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("nfold verify: {e}");
            ExitCode::from(2)
        }
    }
}

/// The connections to both sides.
struct Sides {
    source: Client,
    replica: Client,
}

/// Compares all tables, and prints what differs. Returns whether all are equal.
fn run(args: &VerifyArgs) -> Result<bool, CopyError> {
    let connect = |url: &SourceUrl| -> Result<Client, CopyError> {
        let mut client = Client::connect(&url.0).map_err(CopyError::at(url))?;
        client.run(b"SET SESSION time_zone = '+00:00', sql_mode = ''")?;
        // MySQL refuses subqueries in FROM without a current database.
        client.run(b"USE information_schema")?;
        Ok(client)
    };
    let mut sides = Sides {
        source: connect(&args.source)?,
        replica: connect(&args.replica)?,
    };
    let found = [
        databases(&mut sides.source)?,
        databases(&mut sides.replica)?,
    ];
    let wanted = match args.databases.is_empty() {
        true => found[0].clone(),
        false => args.databases.clone(),
    };
    let (mut equal, mut rows, mut compared) = (true, 0, 0);
    for database in &wanted {
        if !found.iter().all(|found| found.contains(database)) {
            println!("{database}: the database is missing on one side");
            equal = false;
            continue;
        }
        let (theirs, ours) = both_tables(&mut sides, database)?;
        for table in &ours {
            if !theirs.iter().any(|t| t.name == table.name) {
                println!(
                    "{database}.{}: the table is only on the replica",
                    table.name
                );
                equal = false;
            }
        }
        for table in &theirs {
            let Some(other) = ours.iter().find(|t| t.name == table.name) else {
                println!("{database}.{}: the table is only on the source", table.name);
                equal = false;
                continue;
            };
            if shape(table) != shape(other) {
                println!("{database}.{}: the columns differ", table.name);
                equal = false;
                continue;
            }
            let (same, count) = compare(&mut sides, table, args.chunk_rows)?;
            equal &= same;
            rows += count;
            compared += 1;
        }
    }
    let verdict = if equal { "equal" } else { "different" };
    println!(
        "{verdict}: {compared} tables, {} rows compared",
        number(rows)
    );
    Ok(equal)
}

/// The tables of a database on the source and on the replica (V2).
fn both_tables(sides: &mut Sides, database: &str) -> Result<(Vec<Table>, Vec<Table>), CopyError> {
    let shapes = |tables: &[Table]| -> Vec<_> { tables.iter().map(shape).collect() };
    let mut theirs = tables(&mut sides.source, database)?;
    let mut ours = tables(&mut sides.replica, database)?;
    for _ in 0..ATTEMPTS {
        if shapes(&theirs) == shapes(&ours) {
            break;
        }
        catch_up(sides)?;
        ours = tables(&mut sides.replica, database)?;
        let before = std::mem::replace(&mut theirs, tables(&mut sides.source, database)?);
        if shapes(&before) == shapes(&theirs) {
            break;
        }
    }
    Ok((theirs, ours))
}

/// A table's name, and the names and types of its columns.
fn shape(table: &Table) -> (String, Vec<(String, String)>) {
    let column = |c: &Column| (c.name.clone(), c.data_type.clone());
    (
        table.name.clone(),
        table.columns.iter().map(column).collect(),
    )
}

/// The expression of a column's value as text, which both servers compute alike.
fn as_text(column: &Column) -> String {
    let quoted = name(&column.name);
    match column.data_type.as_str() {
        "float" | "enum" | "set" => column.selected.clone(),
        "bit" => format!("{quoted} + 0"),
        "json" => format!("CAST({quoted} AS CHAR)"),
        kind if kind.ends_with("blob") || kind.ends_with("binary") => format!("HEX({quoted})"),
        kind if kind.ends_with("char") || kind.ends_with("text") => {
            format!("CONVERT({quoted} USING utf8mb4)")
        }
        _ => quoted,
    }
}

/// The expression of a row's hash.
fn hash(table: &Table) -> String {
    let texts = table.columns.iter().map(|c| {
        let text = as_text(c);
        // NULL and the text of NULL's sign differ by the length in front of each value.
        format!("IFNULL(CONCAT(CHAR_LENGTH({text}), ':', {text}), '-')")
    });
    format!(
        "SHA2(CONCAT_WS(',', {}), 256)",
        texts.collect::<Vec<_>>().join(", ")
    )
}

/// Compares a table. Returns whether it is equal, and the number of its rows.
fn compare(sides: &mut Sides, table: &Table, chunk_rows: u64) -> Result<(bool, u64), CopyError> {
    let path = table.path();
    let hash = hash(table);
    let mut differing = Vec::new();
    let mut rows = 0;
    let chunks = table.chunks(&mut sides.source, table.rows / chunk_rows.max(1))?;
    for chunk in chunks {
        let sql = format!(
            "SELECT COUNT(*), BIT_XOR(CAST(CONV(LEFT(h, 16), 16, 10) AS UNSIGNED)), SUM(CRC32(h)) \
             FROM (SELECT {hash} AS h FROM {path}{chunk}) AS hashes"
        );
        let at = |side: &str| CopyError::at(format!("the checksum of {path} on the {side}"));
        let theirs = sides.source.query(&sql).map_err(at("source"))?;
        let ours = sides.replica.query(&sql).map_err(at("replica"))?;
        let count = theirs
            .first()
            .and_then(|row| row.first()?.as_ref()?.parse::<u64>().ok());
        rows += count.unwrap_or(0);
        if theirs != ours {
            differing.extend(differing_rows(sides, table, &hash, &chunk)?);
        }
    }
    for (key, what) in differing.iter().take(SHOWN_KEYS) {
        println!("{}.{}: {key}: {what}", table.database, table.name);
    }
    if differing.len() > SHOWN_KEYS {
        let more = number((differing.len() - SHOWN_KEYS) as u64);
        println!("{}.{}: {more} more rows differ", table.database, table.name);
    }
    Ok((differing.is_empty(), rows))
}

/// The rows of a chunk by their keys: hash and number of rows. Without a primary key the hash is
/// the key.
type RowHashes = BTreeMap<String, (String, u64)>;

fn row_hashes(
    client: &mut Client,
    table: &Table,
    hash: &str,
    chunk: &str,
) -> Result<RowHashes, SourceError> {
    let columns: Vec<&Column> = (table.key.iter())
        .filter_map(|key| table.columns.iter().find(|c| c.name == *key))
        .collect();
    let mut selected: Vec<String> = columns.iter().map(|c| as_text(c)).collect();
    selected.insert(0, hash.to_owned());
    let sql = format!(
        "SELECT {} FROM {}{chunk}",
        selected.join(", "),
        table.path()
    );
    let mut rows = RowHashes::new();
    client.each_row::<SourceError>(sql.as_bytes(), |row| {
        let text =
            |value: &Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or(b"NULL")).into_owned();
        let hash = text(&row[0]);
        let values = columns.iter().zip(&row[1..]);
        let pairs: Vec<String> = values
            .map(|(c, v)| format!("{} = {}", c.name, text(v)))
            .collect();
        let key = match pairs.is_empty() {
            true => format!("row with hash {hash}"),
            false => pairs.join(", "),
        };
        rows.entry(key).or_insert((hash, 0)).1 += 1;
        Ok(())
    })?;
    Ok(rows)
}

/// Compares a chunk row by row, until no row is left that may differ because it changes right now.
fn differing_rows(
    sides: &mut Sides,
    table: &Table,
    hash: &str,
    chunk: &str,
) -> Result<Vec<(String, &'static str)>, CopyError> {
    let mut differing = Vec::new();
    // The rows that changed while they were read; `None`: all rows are looked at.
    let mut doubtful: Option<BTreeSet<String>> = None;
    for _ in 0..ATTEMPTS {
        let before = row_hashes(&mut sides.source, table, hash, chunk)?;
        catch_up(sides)?;
        let ours = row_hashes(&mut sides.replica, table, hash, chunk)?;
        let after = row_hashes(&mut sides.source, table, hash, chunk)?;
        let all = before.keys().chain(ours.keys()).chain(after.keys());
        let keys = doubtful.unwrap_or_else(|| all.cloned().collect());
        let mut changing = BTreeSet::new();
        for key in keys {
            let (row, old, new) = (ours.get(&key), before.get(&key), after.get(&key));
            if row == old || row == new {
                continue;
            }
            if old != new {
                changing.insert(key);
                continue;
            }
            let what = match (new, row) {
                (Some(_), Some(_)) => "the row differs",
                (Some(_), None) => "the row is missing on the replica",
                _ => "the row is only on the replica",
            };
            differing.push((key, what));
        }
        if changing.is_empty() {
            differing.sort();
            return Ok(differing);
        }
        doubtful = Some(changing);
    }
    Err(CopyError(format!(
        "{}: rows of the chunk{chunk} change too often to be compared",
        table.path()
    )))
}

/// Waits until the replica has applied what the source has committed now. A server that is no
/// replica has nothing to wait for.
fn catch_up(sides: &mut Sides) -> Result<(), CopyError> {
    let goal = position(&mut sides.source)?;
    let begun = Instant::now();
    loop {
        let Some(status) = sides.replica.named_row("SHOW REPLICA STATUS")? else {
            return Ok(());
        };
        if has_applied(&status, &goal) {
            return Ok(());
        }
        let error = status.get("Last_SQL_Error").filter(|e| !e.is_empty());
        if let Some(error) = error {
            return Err(CopyError(format!("the replica has stopped: {error}")));
        }
        if begun.elapsed() >= CATCH_UP {
            return Err(CopyError(
                "the replica does not catch up with the source".into(),
            ));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether a replica has applied all up to a position of its source: by GTIDs if the source has
/// them, because a new replica knows no position before its first transaction.
fn has_applied(status: &BTreeMap<String, String>, goal: &Position) -> bool {
    let value = |name: &str| status.get(name).cloned().unwrap_or_default();
    let sets = (
        GtidSet::parse(&goal.gtids),
        GtidSet::parse(&value("Executed_Gtid_Set").replace('\n', "")),
    );
    if let (false, (Ok(goal), Ok(applied))) = (goal.gtids.is_empty(), sets) {
        return goal.is_subset(&applied);
    }
    let file = value("Relay_Source_Log_File");
    let position = value("Exec_Source_Log_Pos").parse().unwrap_or(0);
    (file.as_str(), position) >= (goal.file.as_str(), goal.position)
}
