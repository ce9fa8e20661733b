//! The rows of a partition, by number: in memory, or in a file if there are too many.
//!
//! # Picture
//! ```text
//! block: | length u32, row | length u32, row | ... |        a file is blocks of BLOCK_BYTES and a row at most
//! ```
//! Each reader has a [`Cursor`] with a block of its own, so a sequential reader reads each block
//! once.

use std::fs::File;
use std::sync::Arc;

use nfold_types::SqlError;

use crate::runtime::Runtime;
use crate::runtime::spill;

const BLOCK_BYTES: usize = 64 << 10;

/// The position of a block in the file.
struct Block {
    first: u64,
    at: u64,
    len: usize,
}

/// See the module.
pub(super) struct Rows {
    limit_bytes: usize,
    /// Rows that are in no block yet, and the end of each.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    file: Option<Arc<File>>,
    blocks: Vec<Block>,
    written: u64,
    len: u64,
}

/// The position of a reader: its current block and the previous one, so that going back a few rows
/// does not read again.
#[derive(Default)]
pub(super) struct Cursor {
    held: [RowBlock; 2],
    last: usize,
}

/// A block in memory.
#[derive(Default)]
struct RowBlock {
    first: u64,
    bytes: Vec<u8>,
    /// The start and the end of each row in the block.
    places: Vec<(u32, u32)>,
}

impl RowBlock {
    fn has(&self, n: u64) -> bool {
        (self.first..self.first + self.places.len() as u64).contains(&n)
    }
}

impl Rows {
    pub fn new(limit_bytes: usize) -> Rows {
        Rows {
            limit_bytes: limit_bytes.clamp(64 << 10, 1 << 30),
            bytes: Vec::new(),
            ends: Vec::new(),
            file: None,
            blocks: Vec::new(),
            written: 0,
            len: 0,
        }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.blocks.clear();
        self.file = None;
        (self.written, self.len) = (0, 0);
    }

    /// Adds a row that consists of two pieces.
    pub fn push(&mut self, rt: &Runtime<'_>, head: &[u8], rest: &[u8]) -> Result<(), SqlError> {
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(rest);
        self.ends.push(self.bytes.len());
        self.len += 1;
        let held = self.bytes.len() + self.ends.len() * size_of::<usize>();
        let most = match self.file {
            None => self.limit_bytes,
            Some(_) => 4 * BLOCK_BYTES,
        };
        if held > most {
            self.write(rt)?;
        }
        Ok(())
    }

    /// Ends the input for now.
    pub fn seal(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        match self.file {
            Some(_) => self.write(rt),
            None => Ok(()),
        }
    }

    /// Writes the rows in memory to the file.
    fn write(&mut self, rt: &Runtime<'_>) -> Result<(), SqlError> {
        if self.ends.is_empty() {
            return Ok(());
        }
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.file.insert(spill::nameless(rt)?).clone(),
        };
        let mut out = Vec::with_capacity(self.bytes.len() + 4 * self.ends.len());
        let mut start = 0;
        let mut block = (self.len - self.ends.len() as u64, 0);
        for (n, end) in self.ends.iter().enumerate() {
            let row = &self.bytes[start..*end];
            out.extend_from_slice(&(row.len() as u32).to_le_bytes());
            out.extend_from_slice(row);
            start = *end;
            let last = n + 1 == self.ends.len();
            if out.len() - block.1 >= BLOCK_BYTES || last {
                self.blocks.push(Block {
                    first: block.0,
                    at: self.written + block.1 as u64,
                    len: out.len() - block.1,
                });
                block = (self.len - (self.ends.len() - n - 1) as u64, out.len());
            }
        }
        self.bytes.clear();
        self.ends.clear();
        let len = out.len() as u64;
        spill::write_at(rt, &file, self.written, out)?;
        self.written += len;
        Ok(())
    }

    /// Row `n`, which must exist.
    #[inline]
    pub fn get<'r>(
        &'r self,
        rt: &Runtime<'_>,
        cursor: &'r mut Cursor,
        n: u64,
    ) -> Result<&'r [u8], SqlError> {
        if self.file.is_some() {
            return self.get_apart(rt, cursor, n);
        }
        let n = n as usize;
        let start = n.checked_sub(1).map_or(0, |before| self.ends[before]);
        Ok(&self.bytes[start..self.ends[n]])
    }

    fn get_apart<'r>(
        &'r self,
        rt: &Runtime<'_>,
        cursor: &'r mut Cursor,
        n: u64,
    ) -> Result<&'r [u8], SqlError> {
        if !cursor.held[cursor.last].has(n) {
            cursor.last = 1 - cursor.last;
        }
        let held = &mut cursor.held[cursor.last];
        if !held.has(n) {
            let block = self.blocks.partition_point(|b| b.first <= n) - 1;
            self.load(rt, &self.blocks[block], held)?;
        }
        let (start, end) = held.places[(n - held.first) as usize];
        Ok(&held.bytes[start as usize..end as usize])
    }

    fn load(&self, rt: &Runtime<'_>, block: &Block, held: &mut RowBlock) -> Result<(), SqlError> {
        let mut bytes = std::mem::take(&mut held.bytes);
        bytes.clear();
        held.places.clear();
        let file = self.file.as_ref().expect("blocks are in a file");
        held.bytes = spill::read_at(rt, file, block.at, block.len, bytes)?;
        held.first = block.first;
        let mut at = 0;
        while let Some(len) = held.bytes.get(at..).and_then(|b| b.first_chunk::<4>()) {
            let start = at + 4;
            at = start + u32::from_le_bytes(*len) as usize;
            held.places.push((start as u32, at as u32));
        }
        Ok(())
    }

    /// Whether `rows` consecutive rows are cheap to read repeatedly: they are in memory, or span at
    /// most two blocks.
    pub fn are_near(&self, rows: u64) -> bool {
        self.file.is_none() || self.written / self.len.max(1) * rows <= BLOCK_BYTES as u64
    }
}

impl Cursor {
    /// Resets the cursor after the rows have been removed.
    pub fn reset(&mut self) {
        self.held.iter_mut().for_each(|held| held.places.clear());
    }
}
