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

/// Rows of a table: a condition with WHERE, or all of them.
struct Chunk {
    table: usize,
    condition: String,
}

/// Copies all tables. Returns the number of rows.
pub(crate) fn copy(
    clients: &mut [Client],
    target: &ChannelConfig,
    tables: &[Table],
) -> Result<u64, CopyError> {
    let mut order: Vec<usize> = (0..tables.len()).collect();
    order.sort_by_key(|&n| std::cmp::Reverse(tables[n].bytes));
    let mut queue = VecDeque::new();
    let first = clients.first_mut();
    let first = first.ok_or_else(|| CopyError("no connection to the source".into()))?;
    for table in order {
        let pieces = (tables[table].bytes / CHUNK_BYTES).min(MAX_CHUNKS);
        let chunks = tables[table].chunks(first, pieces)?;
        queue.extend(
            chunks
                .into_iter()
                .map(|condition| Chunk { table, condition }),
        );
    }
    let queue = Mutex::new(queue);
    let stop = AtomicBool::new(false);
    let progress = Progress::new(tables.iter().map(|t| t.rows).sum());
    std::thread::scope(|scope| {
        let shown = scope.spawn(|| progress.show());
        let worker = |client| {
            let done = work(client, target, tables, &queue, &progress, &stop);
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
    source: &mut Client,
    target: &ChannelConfig,
    tables: &[Table],
    queue: &Mutex<VecDeque<Chunk>>,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<(), CopyError> {
    let mut target = Client::connect(target).map_err(CopyError::at("connecting to the copy"))?;
    target.run(WRITER)?;
    let next = || queue.lock().ok().and_then(|mut queue| queue.pop_front());
    while !stop.load(Relaxed)
        && let Some(chunk) = next()
    {
        let table = &tables[chunk.table];
        copy_chunk(source, &mut target, table, &chunk.condition, progress)?;
    }
    Ok(())
}

fn copy_chunk(
    source: &mut Client,
    target: &mut Client,
    table: &Table,
    condition: &str,
    progress: &Progress,
) -> Result<(), CopyError> {
    let path = table.path();
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
        head: format!("INSERT INTO {path} ({}) VALUES ", names.join(", ")).into_bytes(),
        sql: Vec::with_capacity(INSERT_BYTES + (16 << 10)),
        rows: 0,
        inserts: 0,
        progress,
    };
    source.each_row::<CopyError>(select.as_bytes(), |row| writer.row(row))?;
    writer.insert()?;
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
        if done.affected_rows != self.rows {
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
