//! Temporary files for data that exceeds memory. They have no name, so a crash leaves nothing
//! behind.
//!
//! # Picture
//! ```text
//! record: | shared u32 | rest of a, length u32 | b, length u32 | rest of a | b |       little-endian
//! ```
//! The first `shared` bytes of `a` equal those of the previous record: neighbouring keys of a
//! sorted run mostly share a prefix.
//!
//! # Cost
//! One write per [`WRITE_BYTES`] and one read per [`READ_BYTES`], or less if memory is limited.
//! Each runs on a thread that may block, while the worker continues.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use nfold_engine::RowBatch;
use nfold_types::{ErrorCode, SqlError, append_in_pieces};

use super::Runtime;
use crate::env::scratch::Pooled;

const WRITE_BYTES: usize = 256 << 10;
const READ_BYTES: usize = 64 << 10;
const HEAD: usize = 12;

/// The size of a write: the buffers of all files of a grouping take at most as much memory as the
/// grouping.
fn write_bytes(rt: &Runtime<'_>) -> usize {
    (rt.env.work_memory() / 16).clamp(8 << 10, WRITE_BYTES)
}

/// The size of a read: the buffers of all runs of a merge take at most as much memory as the sort.
fn read_bytes(rt: &Runtime<'_>) -> usize {
    (rt.env.work_memory() / 128).clamp(4 << 10, READ_BYTES)
}

static NEXT: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
thread_local! {
    /// The number of files created by this thread, so that a test can check that it tests files.
    pub(crate) static MADE: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The error of a statement whose temporary file cannot be written or read.
pub fn temporary_file_error(e: &io::Error) -> SqlError {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    if matches!(e.kind(), StorageFull | QuotaExceeded | FileTooLarge) {
        return SqlError::new(ErrorCode::ER_RECORD_FILE_FULL, &[&"temporary file"]);
    }
    let text = e.to_string();
    SqlError::new(
        ErrorCode::ER_ERROR_ON_WRITE,
        &[
            &"temporary file",
            &e.raw_os_error().unwrap_or(0),
            &text.split(" (os error").next().unwrap_or_default(),
        ],
    )
}

/// Runs `job` on a thread that may block.
fn apart<T: Send + 'static>(
    rt: &Runtime<'_>,
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, SqlError> {
    let (give, take) = sync_channel(1);
    rt.offload(Box::new(move || {
        // The receiver waits below, so it exists.
        let _ = give.send(job());
    }))?;
    match take.try_recv() {
        Ok(result) => result.map_err(|e| temporary_file_error(&e)),
        Err(_) => Err(SqlError::with_message(
            ErrorCode::ER_UNKNOWN_ERROR,
            "reading or writing a temporary file failed",
        )),
    }
}

/// Creates a file without a name.
pub(crate) fn nameless(rt: &Runtime<'_>) -> Result<Arc<File>, SqlError> {
    #[cfg(test)]
    MADE.with(|made| made.set(made.get() + 1));
    let directory = rt.env.tmpdir();
    apart(rt, move || nameless_file(&directory).map(Arc::new))
}

/// Creates a file without a name in `directory`. It exists as long as it is open.
///
/// # Errors
/// Those of the file system.
pub fn nameless_file(directory: &Path) -> io::Result<File> {
    let name = format!(
        "nfold-{}-{}.tmp",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let path = directory.join(name);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Writes `bytes` at offset `at`, and returns the buffer.
pub(crate) fn write_at(
    rt: &Runtime<'_>,
    file: &Arc<File>,
    at: u64,
    bytes: Vec<u8>,
) -> Result<Vec<u8>, SqlError> {
    let file = file.clone();
    apart(rt, move || {
        file.write_all_at(&bytes, at)?;
        Ok(bytes)
    })
}

/// Reads several ranges of a file, given by their offsets and lengths, in one blocking call.
pub(crate) fn read_many(
    rt: &Runtime<'_>,
    file: &Arc<File>,
    spans: Vec<(u64, usize)>,
) -> Result<Vec<Vec<u8>>, SqlError> {
    let file = file.clone();
    apart(rt, move || {
        let read = |(at, len): (u64, usize)| {
            let mut buffer = vec![0; len];
            file.read_exact_at(&mut buffer, at)?;
            Ok(buffer)
        };
        spans.into_iter().map(read).collect()
    })
}

/// Reads `len` bytes from offset `at`, appends them to `buffer`, and returns it.
pub(crate) fn read_at(
    rt: &Runtime<'_>,
    file: &Arc<File>,
    at: u64,
    len: usize,
    mut buffer: Vec<u8>,
) -> Result<Vec<u8>, SqlError> {
    let file = file.clone();
    apart(rt, move || {
        let start = buffer.len();
        buffer.resize(start + len, 0);
        file.read_exact_at(&mut buffer[start..], at)?;
        Ok(buffer)
    })
}

/// Writes records of two byte strings.
pub(crate) struct SpillWriter {
    file: Arc<File>,
    buffer: Vec<u8>,
    write_bytes: usize,
    /// The number of bytes in the file.
    written: u64,
    records: u64,
    /// `a` of the previous record.
    last: Vec<u8>,
}

impl SpillWriter {
    /// Creates a file in the session's directory for temporary files.
    pub fn new(rt: &Runtime<'_>) -> Result<SpillWriter, SqlError> {
        Ok(SpillWriter {
            file: nameless(rt)?,
            buffer: Vec::new(),
            write_bytes: write_bytes(rt),
            written: 0,
            records: 0,
            last: Vec::new(),
        })
    }

    /// Appends a record.
    pub fn push(&mut self, rt: &Runtime<'_>, a: &[u8], b: &[u8]) -> Result<(), SqlError> {
        let shared = common(&self.last, a);
        for n in [shared, a.len() - shared, b.len()] {
            self.buffer.extend_from_slice(&(n as u32).to_le_bytes());
        }
        append_in_pieces(&a[shared..], &mut self.buffer, rt)?;
        append_in_pieces(b, &mut self.buffer, rt)?;
        self.last.truncate(shared);
        append_in_pieces(&a[shared..], &mut self.last, rt)?;
        self.records += 1;
        if self.buffer.len() >= self.write_bytes {
            self.flush(rt)?;
        }
        Ok(())
    }

    fn flush(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        let bytes = std::mem::take(&mut self.buffer);
        let len = bytes.len() as u64;
        self.buffer = write_at(rt, &self.file, self.written, bytes)?;
        self.buffer.clear();
        self.written += len;
        Ok(())
    }

    /// The number of records written.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Writes the buffer to the file and frees it, when no record follows for now.
    pub fn pause(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        self.flush(rt)?;
        (self.buffer, self.last) = (Vec::new(), Vec::new());
        Ok(())
    }

    /// Ends the writing, and reads from the start.
    pub fn into_reader(mut self, rt: &Runtime<'_>) -> Result<SpillReader, SqlError> {
        self.flush(rt)?;
        let read_bytes = read_bytes(rt);
        Ok(SpillReader::new(
            self.file,
            (self.written, self.records),
            read_bytes,
        ))
    }
}

/// The length of the common prefix.
fn common(a: &[u8], b: &[u8]) -> usize {
    let words = a.chunks_exact(16).zip(b.chunks_exact(16));
    let start = 16 * words.take_while(|(x, y)| x == y).count();
    let rest = a[start..].iter().zip(&b[start..]);
    start + rest.take_while(|(x, y)| x == y).count()
}

/// Reads the records of a [`SpillWriter`].
pub(crate) struct SpillReader {
    file: Arc<File>,
    len: u64,
    read_bytes: usize,
    /// How many bytes of the file have been read into the buffer.
    read: u64,
    buffer: Vec<u8>,
    /// The offset of the next record in the buffer.
    at: usize,
    records: u64,
    left: u64,
    a: Vec<u8>,
    /// The start and the end of `b` in the buffer.
    b: (usize, usize),
}

impl SpillReader {
    /// A reader that begins with the first record. `len`: the bytes of the file.
    fn new(file: Arc<File>, (len, records): (u64, u64), read_bytes: usize) -> SpillReader {
        SpillReader {
            file,
            len,
            read_bytes,
            read: 0,
            buffer: Vec::new(),
            at: 0,
            records,
            left: records,
            a: Vec::new(),
            b: (0, 0),
        }
    }

    /// Another reader of the file, which begins with the first record.
    fn restarted(&self) -> SpillReader {
        SpillReader::new(self.file.clone(), (self.len, self.records), self.read_bytes)
    }

    /// Moves to the next record; false: there is none.
    pub fn advance(&mut self, rt: &Runtime<'_>) -> Result<bool, SqlError> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        self.have(rt, HEAD)?;
        let number = |n: usize| {
            let bytes = self.buffer[self.at + 4 * n..].first_chunk::<4>();
            bytes.map_or(0, |b| u32::from_le_bytes(*b)) as usize
        };
        let (shared, rest, b) = (number(0), number(1), number(2));
        self.have(rt, HEAD + rest + b)?;
        let start = self.at + HEAD;
        self.a.truncate(shared);
        append_in_pieces(&self.buffer[start..start + rest], &mut self.a, rt)?;
        self.b = (start + rest, start + rest + b);
        self.at = self.b.1;
        Ok(true)
    }

    /// Ensures that the buffer has this many unread bytes.
    fn have(&mut self, rt: &Runtime<'_>, bytes: usize) -> Result<(), SqlError> {
        let missing = bytes.saturating_sub(self.buffer.len() - self.at);
        if missing == 0 {
            return Ok(());
        }
        let left = self.len - self.read;
        let len = left.min(missing.max(self.read_bytes) as u64) as usize;
        self.buffer.drain(..self.at);
        self.at = 0;
        let buffer = std::mem::take(&mut self.buffer);
        self.buffer = read_at(rt, &self.file, self.read, len, buffer)?;
        self.read += len as u64;
        Ok(())
    }

    /// The current record.
    pub fn record(&self) -> (&[u8], &[u8]) {
        (&self.a, &self.buffer[self.b.0..self.b.1])
    }
}

/// Rows that are stored in memory, and in a file beyond its limit.
pub(crate) struct Spool {
    memory: Pooled<RowBatch>,
    limit_bytes: usize,
    file: Option<SpillWriter>,
}

impl Spool {
    pub fn new(limit_bytes: usize) -> Spool {
        Spool {
            memory: Pooled::take(),
            limit_bytes: limit_bytes.clamp(64 << 10, 1 << 30),
            file: None,
        }
    }

    /// Stores a row, with a number `extra` for the caller's use.
    pub fn push(&mut self, rt: &Runtime<'_>, extra: u64, row: &[u8]) -> Result<(), SqlError> {
        if self.file.is_none() && self.memory.bytes() + row.len() + 8 > self.limit_bytes {
            self.file = Some(SpillWriter::new(rt)?);
        }
        match &mut self.file {
            Some(file) => file.push(rt, &extra.to_le_bytes(), row),
            None => {
                let mut copied = Ok(());
                self.memory.push_with(0, |out| {
                    out.extend_from_slice(&extra.to_le_bytes());
                    copied = append_in_pieces(row, out, rt);
                    copied.is_ok()
                });
                copied
            }
        }
    }

    /// Ends the input. Returns the rows in their order of arrival.
    pub fn into_rows(self, rt: &Runtime<'_>) -> Result<SpoolRows, SqlError> {
        Ok(SpoolRows {
            memory: SpooledRows::Own(self.memory),
            at: 0,
            file: self.file.map(|f| f.into_reader(rt)).transpose()?,
        })
    }

    /// Passes the rows to `f` in their order of arrival, until it returns false.
    pub fn each(
        self,
        rt: &Runtime<'_>,
        f: &mut dyn FnMut(u64, &[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let mut rows = self.into_rows(rt)?;
        while let Some((extra, row)) = rows.next(rt)? {
            if !f(extra, row)? {
                break;
            }
        }
        Ok(())
    }
}

/// The rows of a [`Spool`] that are in memory.
enum SpooledRows {
    Own(Pooled<RowBatch>),
    Shared(Rc<Pooled<RowBatch>>),
}

impl Deref for SpooledRows {
    type Target = RowBatch;

    fn deref(&self) -> &RowBatch {
        match self {
            SpooledRows::Own(rows) => rows,
            SpooledRows::Shared(rows) => rows,
        }
    }
}

/// The rows of a [`Spool`], for several readers.
pub(crate) struct StoredRows {
    memory: Rc<Pooled<RowBatch>>,
    file: Option<SpillReader>,
}

impl StoredRows {
    /// A reader that begins with the first row.
    pub fn reader(&self) -> SpoolRows {
        SpoolRows {
            memory: SpooledRows::Shared(self.memory.clone()),
            at: 0,
            file: self.file.as_ref().map(SpillReader::restarted),
        }
    }
}

/// The rows of a [`Spool`].
pub(crate) struct SpoolRows {
    memory: SpooledRows,
    at: usize,
    file: Option<SpillReader>,
}

impl SpoolRows {
    /// The rows, for several readers. Rows that were read already are among them.
    pub fn into_stored(self) -> StoredRows {
        StoredRows {
            memory: match self.memory {
                SpooledRows::Own(rows) => Rc::new(rows),
                SpooledRows::Shared(rows) => rows,
            },
            file: self.file,
        }
    }

    /// The next row, with the caller's number.
    pub fn next(&mut self, rt: &Runtime<'_>) -> Result<Option<(u64, &[u8])>, SqlError> {
        let number = |b: &[u8]| b.first_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b));
        if self.at < self.memory.len() {
            let record = self.memory.row(self.at);
            self.at += 1;
            return Ok(Some((number(record), record.get(8..).unwrap_or_default())));
        }
        let Some(reader) = &mut self.file else {
            return Ok(None);
        };
        if !reader.advance(rt)? {
            return Ok(None);
        }
        let (extra, row) = reader.record();
        Ok(Some((number(extra), row)))
    }
}
