//! Files for what does not fit in memory. They have no name: what a crash leaves behind is nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use nfold_types::{ErrorCode, SqlError};

static NEXT: AtomicU64 = AtomicU64::new(0);

fn io_error(e: &io::Error) -> SqlError {
    if e.kind() == io::ErrorKind::StorageFull {
        return SqlError::new(ErrorCode::ER_RECORD_FILE_FULL, &[&"temporary file"]);
    }
    SqlError::with_message(
        ErrorCode::ER_ERROR_ON_WRITE,
        format!("Error writing temporary file: {e}"),
    )
}

/// Records of bytes, written in order.
pub(crate) struct SpillWriter {
    out: BufWriter<File>,
    records: u64,
}

impl SpillWriter {
    /// A new file in `dir`.
    pub fn new(dir: &Path) -> Result<SpillWriter, SqlError> {
        let name = format!(
            "nfold-{}-{}.tmp",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = dir.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| io_error(&e))?;
        fs::remove_file(&path).map_err(|e| io_error(&e))?;
        Ok(SpillWriter {
            out: BufWriter::with_capacity(256 << 10, file),
            records: 0,
        })
    }

    /// Appends a record of two byte strings.
    pub fn push(&mut self, a: &[u8], b: &[u8]) -> Result<(), SqlError> {
        let head = [
            (a.len() as u32).to_le_bytes(),
            (b.len() as u32).to_le_bytes(),
        ]
        .concat();
        self.records += 1;
        [&head[..], a, b]
            .iter()
            .try_for_each(|part| self.out.write_all(part))
            .map_err(|e| io_error(&e))
    }

    /// How many records were written.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Goes back to the beginning, to read.
    pub fn into_reader(self) -> Result<SpillReader, SqlError> {
        let mut file = self.out.into_inner().map_err(|e| io_error(e.error()))?;
        file.seek(SeekFrom::Start(0)).map_err(|e| io_error(&e))?;
        Ok(SpillReader {
            input: BufReader::with_capacity(64 << 10, file),
            left: self.records,
            a: Vec::new(),
            b: Vec::new(),
        })
    }
}

/// Reads what a [`SpillWriter`] wrote.
pub(crate) struct SpillReader {
    input: BufReader<File>,
    left: u64,
    a: Vec<u8>,
    b: Vec<u8>,
}

impl SpillReader {
    /// Moves to the next record; false: there is none.
    pub fn advance(&mut self) -> Result<bool, SqlError> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        self.fill().map_err(|e| io_error(&e))?;
        Ok(true)
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut head = [0u8; 8];
        self.input.read_exact(&mut head)?;
        let [a0, a1, a2, a3, b0, b1, b2, b3] = head;
        self.a
            .resize(u32::from_le_bytes([a0, a1, a2, a3]) as usize, 0);
        self.b
            .resize(u32::from_le_bytes([b0, b1, b2, b3]) as usize, 0);
        self.input.read_exact(&mut self.a)?;
        self.input.read_exact(&mut self.b)
    }

    /// The record at hand.
    pub fn record(&self) -> (&[u8], &[u8]) {
        (&self.a, &self.b)
    }
}

/// Rows kept for later, in memory and then in a file.
pub(crate) struct Spool {
    memory: nfold_engine::RowBatch,
    limit_bytes: usize,
    file: Option<SpillWriter>,
}

impl Spool {
    pub fn new(limit_bytes: usize) -> Spool {
        Spool {
            memory: nfold_engine::RowBatch::new(),
            limit_bytes: limit_bytes.clamp(64 << 10, 1 << 30),
            file: None,
        }
    }

    /// Keeps a row; `extra` is the caller's own.
    pub fn push(&mut self, dir: &Path, extra: u64, row: &[u8]) -> Result<(), SqlError> {
        if self.file.is_none() && self.memory.bytes() + row.len() + 8 > self.limit_bytes {
            self.file = Some(SpillWriter::new(dir)?);
        }
        match &mut self.file {
            Some(file) => file.push(&extra.to_le_bytes(), row),
            None => {
                self.memory.push_with(0, |out| {
                    out.extend_from_slice(&extra.to_le_bytes());
                    out.extend_from_slice(row);
                    true
                });
                Ok(())
            }
        }
    }

    /// Gives the rows in the order in which they came, until `f` wants no more.
    pub fn each(
        self,
        f: &mut dyn FnMut(u64, &[u8]) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let number = |b: &[u8]| b.first_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b));
        for record in self.memory.iter() {
            if !f(number(record), record.get(8..).unwrap_or_default())? {
                return Ok(());
            }
        }
        if let Some(file) = self.file {
            let mut reader = file.into_reader()?;
            while reader.advance()? {
                let (extra, row) = reader.record();
                if !f(number(extra), row)? {
                    break;
                }
            }
        }
        Ok(())
    }
}
