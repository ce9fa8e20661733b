//! Loads the tables of the workloads. All servers get the same rows.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::workload::{Size, Table};
use crate::client::drive::{self, Moment, Next, Source};
use crate::client::{Command, Connection};
use crate::dsn::Dsn;
use crate::{LabError, interrupt};

const BATCH: u64 = 500;
/// The number of clients that load at the same time.
const LOADERS: usize = 4;

/// Makes sure that the database of `dsn` contains the tables with `size.rows` rows each. Existing
/// tables with that many rows are kept.
pub fn load(
    dsn: &Dsn,
    tables: &[Table],
    size: Size,
    note: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    for table in tables {
        let name = table.name();
        let mut connection = Connection::open(dsn)?;
        let there = match connection.value(&format!("SELECT COUNT(*) FROM {name}")) {
            Ok(count) => count.and_then(|c| c.parse::<u64>().ok()),
            Err(LabError::Server { code: 1146, .. }) => None,
            Err(e) => return Err(e),
        };
        match there {
            // Not exactly, because oltp_insert adds rows, and a window may end between a delete and
            // its insert.
            Some(count) if count >= size.rows * 9 / 10 && count <= size.rows * 2 => continue,
            Some(count) => {
                return Err(LabError::usage(format!(
                    "{dsn} has a table {name} of {count} rows, not of {}: drop it, use another database, or give --rows {count}",
                    size.rows
                )));
            }
            None => {}
        }
        connection.query(table.create())?;
        drop(connection);
        fill(dsn, *table, size, note)?;
        if interrupt::requested() {
            return Ok(());
        }
        // Statistics, so that all servers choose the same plans from the first query on.
        Connection::open(dsn)?.query(&format!("ANALYZE TABLE {name}"))?;
    }
    Ok(())
}

fn fill(dsn: &Dsn, table: Table, size: Size, note: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let next = Arc::new(AtomicU64::new(0));
    let make = |_| -> Box<dyn Source> {
        Box::new(Loader {
            table,
            size,
            next: next.clone(),
            failed: false,
        })
    };
    let options = drive::Options {
        connections: LOADERS,
        threads: 1,
        ..drive::Options::default()
    };
    let outcome = drive::drive(dsn, &options, make, |moment| {
        if let Moment::Tick(batches) = moment {
            note(&format!(
                "loading {}: {} of {} rows",
                table.name(),
                (batches * BATCH).min(size.rows),
                size.rows
            ));
        }
    })?;
    if let Some((code, error)) = outcome.errors.into_iter().next() {
        return Err(LabError::Server {
            code,
            message: error.message,
        });
    }
    match outcome.dead {
        0 => Ok(()),
        _ => Err(LabError::usage(format!(
            "{dsn} went away while {} was being loaded",
            table.name()
        ))),
    }
}

struct Loader {
    table: Table,
    size: Size,
    next: Arc<AtomicU64>,
    failed: bool,
}

impl Source for Loader {
    fn next(&mut self, command: &mut Command) -> Next {
        let first = self.next.fetch_add(BATCH, Ordering::Relaxed) + 1;
        if first > self.size.rows || self.failed {
            return Next::End;
        }
        let text = command.text();
        let _ = write!(text, "INSERT INTO {} VALUES ", self.table.name());
        for id in first..=(first + BATCH - 1).min(self.size.rows) {
            if id > first {
                text.push(b',');
            }
            self.table.row(text, id, self.size);
        }
        Next::Send
    }

    fn answered(&mut self, answer: &crate::client::Answer) {
        self.failed = answer.error.is_some();
    }
}
