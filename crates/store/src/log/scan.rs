//! Reads the log from a checkpoint to its end, one complete mini-transaction at a time.

use super::files::LogFiles;
use super::format::*;
use crate::error::StoreError;
use crate::page::Lsn;

const CHUNK: usize = 64 * BLOCK;

/// A forward reader of one generation of the log.
pub(crate) struct Scan<'a> {
    files: &'a LogFiles,
    generation: u64,
    /// A cached run of blocks. The first one is block `chunk_first`.
    chunk: Vec<u8>,
    chunk_first: u64,
    /// The log position of the next mini-transaction.
    at: Lsn,
    /// Where reading must stop: one lap after the start, where the files would contain the start
    /// again.
    limit: Lsn,
    max_len: usize,
    /// The missing block at which reading ended.
    missing: Option<u64>,
}

impl<'a> Scan<'a> {
    /// `from` is the start of a mini-transaction, or the end of the log.
    pub(crate) fn new(files: &'a LogFiles, generation: u64, from: Lsn) -> Self {
        let limit = from / PAYLOAD * PAYLOAD + files.capacity();
        Scan {
            files,
            generation,
            chunk: Vec::new(),
            chunk_first: 0,
            at: from,
            limit,
            max_len: files.capacity() as usize,
            missing: None,
        }
    }

    /// The start of the next mini-transaction. After [`next`](Self::next) returned `None`, the end
    /// of the log.
    pub(crate) fn position(&self) -> Lsn {
        self.at
    }

    /// The sequence of the block at which reading ended, if [`next`](Self::next) returned `None`
    /// because that block does not belong to this log.
    pub(crate) fn missing(&self) -> Option<u64> {
        self.missing
    }

    /// Reads the records of the next mini-transaction into `records`. Returns (start, end), or
    /// `None` at the end of the log.
    pub(crate) fn next(&mut self, records: &mut Vec<u8>) -> Result<Option<(Lsn, Lsn)>, StoreError> {
        let start = self.at;
        let mut header = [0u8; MTR_HEADER];
        if !self.copy(start, &mut header)? {
            return Ok(None);
        }
        let len = claimed_len(&header);
        if len == 0 || len > self.max_len {
            return Ok(None);
        }
        let end = start + mtr_len(len);
        if end > self.limit {
            return Ok(None);
        }
        records.clear();
        // The length may be wrong and very large. So the records are read in chunks, and reading
        // stops where the log does.
        while records.len() < len {
            let have = records.len();
            let n = (len - have).min(CHUNK);
            records.resize(have + n, 0);
            if !self.copy(start + (MTR_HEADER + have) as u64, &mut records[have..])? {
                return Ok(None);
            }
        }
        if mtr_header(len, records_crc(records), start, self.generation) != header {
            return Ok(None);
        }
        self.at = end;
        Ok(Some((start, end)))
    }

    /// Copies log bytes from `lsn` on. Returns false if the log ends before `out` is full.
    fn copy(&mut self, mut lsn: Lsn, mut out: &mut [u8]) -> Result<bool, StoreError> {
        while !out.is_empty() {
            if lsn >= self.limit {
                return Ok(false);
            }
            let sequence = lsn / PAYLOAD;
            let off = (lsn % PAYLOAD) as usize;
            let Some(block) = self.block(sequence)? else {
                self.missing = Some(sequence);
                return Ok(false);
            };
            let n = out.len().min(PAYLOAD as usize - off);
            out[..n].copy_from_slice(&block[BLOCK_HEADER + off..BLOCK_HEADER + off + n]);
            out = &mut out[n..];
            lsn += n as u64;
        }
        Ok(true)
    }

    fn block(&mut self, sequence: u64) -> Result<Option<&[u8]>, StoreError> {
        let held = (self.chunk.len() / BLOCK) as u64;
        if sequence < self.chunk_first || sequence >= self.chunk_first + held {
            self.chunk.resize(CHUNK, 0);
            let n = self.files.read(sequence, &mut self.chunk)?;
            self.chunk.truncate(n);
            self.chunk_first = sequence;
        }
        let at = (sequence - self.chunk_first) as usize * BLOCK;
        let block = &self.chunk[at..at + BLOCK];
        Ok(check_block(block, sequence, self.generation).then_some(block))
    }
}
