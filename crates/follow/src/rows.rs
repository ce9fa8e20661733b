//! Copies rows: workers take chunks of tables from a queue, read them in the snapshot, and write
//! them by INSERTs of many rows.
//!
//! # Failure
//! The first error ends all workers. What they have written is an incomplete copy, which the caller
//! must not serve.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nfold_replica::{ChannelConfig, Client};

use crate::error::CopyError;
use crate::literal::name;
use crate::progress::Progress;
use crate::schema::Table;
use crate::unfinished;

/// The size of an INSERT beyond which the next one begins, in bytes.
const INSERT_BYTES: usize = 256 << 10;
/// The INSERTs of a transaction.
const INSERTS_PER_COMMIT: u32 = 16;
/// The size of a chunk, in bytes of the source.
const CHUNK_BYTES: u64 = 16 << 20;
const MAX_CHUNKS: u64 = 1000;
/// The settings of a session that writes the copy.
pub(crate) const WRITER: &[u8] = b"SET SESSION foreign_key_checks = 0, unique_checks = 0, \
    max_error_count = 65535, time_zone = '+00:00', sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'";

/// Rows of a table: all of them, or those that a condition selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub number: usize,
    /// The table, as [`Table::path`] names it.
    pub path: String,
    /// Begins with WHERE; empty: all rows.
    pub condition: String,
}

/// Divides the tables into chunks, the largest table first.
pub(crate) fn chunks(source: &mut Client, tables: &[Table]) -> Result<Vec<Chunk>, CopyError> {
    let mut order: Vec<&Table> = tables.iter().collect();
    order.sort_by_key(|table| std::cmp::Reverse(table.bytes));
    let mut chunks = Vec::new();
    for table in order {
        let pieces = (table.bytes / CHUNK_BYTES).min(MAX_CHUNKS);
        for condition in table.chunks(source, pieces)? {
            chunks.push(Chunk {
                number: chunks.len(),
                path: table.path(),
                condition,
            });
        }
    }
    Ok(chunks)
}

/// What a copy of rows reads and writes.
pub(crate) struct Rows<'a> {
    pub target: &'a ChannelConfig,
    pub tables: &'a [Table],
    pub chunks: Vec<Chunk>,
    /// The chunks are those that an earlier start has left: some of their rows may be there, and
    /// rows of other chunks may have their unique keys.
    pub continued: bool,
}

/// Copies the chunks. Returns the number of rows.
pub(crate) fn copy(clients: &mut [Client], rows: Rows<'_>) -> Result<u64, CopyError> {
    let paths: Vec<String> = rows.chunks.iter().map(|c| c.path.clone()).collect();
    // Of a table of which chunks are done, too, this is more than what is left.
    let left = (rows.tables.iter()).filter(|table| paths.contains(&table.path()));
    let progress = Progress::new(left.map(|t| t.rows).sum());
    let (target, tables, continued) = (rows.target, rows.tables, rows.continued);
    let queue = Mutex::new(VecDeque::from(rows.chunks));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let shown = scope.spawn(|| progress.show());
        let worker = |client| {
            let sides = (client, target, tables);
            let done = work(sides, continued, &queue, &progress, &stop);
            if done.is_err() {
                stop.store(true, Relaxed);
            }
            done
        };
        let workers: Vec<_> = (clients.iter_mut())
            .map(|client| scope.spawn(move || worker(client)))
            .collect();
        let mut result = Ok(());
        for worker in workers {
            let done = worker.join();
            let done = done.unwrap_or_else(|_| Err(CopyError("a worker panicked".into())));
            result = result.and(done);
        }
        progress.end();
        let _ = shown.join();
        result
    })?;
    Ok(progress.rows())
}

fn work(
    (source, target, tables): (&mut Client, &ChannelConfig, &[Table]),
    continued: bool,
    queue: &Mutex<VecDeque<Chunk>>,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<(), CopyError> {
    let mut target = Client::connect(target).map_err(CopyError::at("connecting to the copy"))?;
    target.run(WRITER)?;
    if continued {
        target.run(b"SET SESSION unique_checks = 1")?;
    }
    let next = || queue.lock().ok().and_then(|mut queue| queue.pop_front());
    while !stop.load(Relaxed)
        && let Some(chunk) = next()
    {
        if continued {
            unfinished::clear(&mut target, &chunk)?;
        }
        let table = tables.iter().find(|table| table.path() == chunk.path);
        let table = table.ok_or_else(|| CopyError(format!("there is no table {}", chunk.path)))?;
        copy_chunk(source, &mut target, (table, &chunk), continued, progress)?;
    }
    Ok(())
}

fn copy_chunk(
    source: &mut Client,
    target: &mut Client,
    (table, chunk): (&Table, &Chunk),
    continued: bool,
    progress: &Progress,
) -> Result<(), CopyError> {
    let (path, condition) = (&chunk.path, &chunk.condition);
    let verb = if continued { "REPLACE" } else { "INSERT" };
    let selected: Vec<&str> = table.columns.iter().map(|c| c.selected.as_str()).collect();
    let names: Vec<String> = table.columns.iter().map(|c| name(&c.name)).collect();
    let select = format!(
        "SELECT {} FROM {path}{condition}{}",
        selected.join(", "),
        table.order()
    );
    let mut writer = Writer {
        target,
        table,
        head: format!("{verb} INTO {path} ({}) VALUES ", names.join(", ")).into_bytes(),
        sql: Vec::with_capacity(INSERT_BYTES + (16 << 10)),
        rows: 0,
        inserts: 0,
        replaces: continued,
        progress,
    };
    source.each_row::<CopyError>(select.as_bytes(), |row| writer.row(row))?;
    writer.insert()?;
    writer.target.run(unfinished::done(chunk).as_bytes())?;
    writer.commit()
}

/// Writes the rows of a chunk.
struct Writer<'a> {
    target: &'a mut Client,
    table: &'a Table,
    head: Vec<u8>,
    sql: Vec<u8>,
    /// The rows in `sql`.
    rows: u64,
    /// The INSERTs of the open transaction.
    inserts: u32,
    /// Rows with the same unique keys are replaced, and count twice.
    replaces: bool,
    progress: &'a Progress,
}

impl Writer<'_> {
    fn row(&mut self, values: &[Option<&[u8]>]) -> Result<(), CopyError> {
        match self.rows {
            0 => self.sql.extend_from_slice(&self.head),
            _ => self.sql.push(b','),
        }
        self.rows += 1;
        self.sql.push(b'(');
        for (n, (column, value)) in self.table.columns.iter().zip(values).enumerate() {
            if n > 0 {
                self.sql.push(b',');
            }
            column.form.put(*value, &mut self.sql);
        }
        self.sql.push(b')');
        match self.sql.len() >= INSERT_BYTES {
            true => self.insert(),
            false => Ok(()),
        }
    }

    fn insert(&mut self) -> Result<(), CopyError> {
        if self.rows == 0 {
            return Ok(());
        }
        let path = self.table.path();
        let at = || format!("writing rows of {path}");
        if self.inserts == 0 {
            self.target.run(b"BEGIN").map_err(CopyError::at(at()))?;
        }
        let done = self.target.run(&self.sql).map_err(CopyError::at(at()))?;
        let counts_all = match self.replaces {
            true => done.affected_rows >= self.rows,
            false => done.affected_rows == self.rows,
        };
        if !counts_all {
            let (written, read) = (done.affected_rows, self.rows);
            return Err(CopyError(format!(
                "{path}: {written} of {read} rows were written"
            )));
        }
        if done.warnings > 0 {
            self.judge_warnings()?;
        }
        self.progress.add(self.rows);
        self.sql.clear();
        self.rows = 0;
        self.inserts += 1;
        match self.inserts >= INSERTS_PER_COMMIT {
            true => self.commit(),
            false => Ok(()),
        }
    }

    /// A warning says that a value was changed, except for invalid members of an ENUM, which are
    /// stored as they are, and for the deprecation of a character set.
    fn judge_warnings(&mut self) -> Result<(), CopyError> {
        const TRUNCATED: &str = "1265";
        const DEPRECATED: &str = "1287";
        for warning in self.target.query("SHOW WARNINGS")? {
            let [_, Some(code), Some(text)] = &warning[..] else {
                continue;
            };
            let is_member = |column: &crate::schema::Column| {
                column.data_type == "enum" && text.contains(&format!("'{}'", column.name))
            };
            let harmless =
                code == DEPRECATED || code == TRUNCATED && self.table.columns.iter().any(is_member);
            if !harmless {
                let path = self.table.path();
                return Err(CopyError(format!(
                    "{path}: a value would be changed: {text}"
                )));
            }
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), CopyError> {
        if std::mem::take(&mut self.inserts) > 0 {
            self.target.run(b"COMMIT")?;
        }
        Ok(())
    }
}
