//! Statements in memory: a section of the file, or all of a small file.

use super::prepare::{Execution, Store};

/// One statement of the file.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    start: usize,
    len: usize,
    /// The index of the statement in the file, from 0. Skipped statements are not counted.
    pub number: u64,
    /// Its line in the file, from 1.
    pub line: u64,
    /// Its start time in microseconds since 1970; 0 if unknown.
    pub time_us: i64,
    /// The connection that executed it; 0 if unknown.
    pub connection: u64,
    /// The index of its database in [`super::load::Workload::dbs`].
    pub db: Option<u16>,
    pub writes: bool,
    /// How it is sent when statements are prepared. `None`: as text.
    pub execution: Option<Execution>,
}

/// Statements with their texts and values.
#[derive(Debug, Default)]
pub struct Chunk {
    texts: Vec<u8>,
    pub store: Store,
    pub items: Vec<Item>,
}

impl Item {
    /// An item without a text, which [`Chunk::push`] adds.
    pub fn new(number: u64, line: u64) -> Item {
        Item {
            start: 0,
            len: 0,
            number,
            line,
            time_us: 0,
            connection: 0,
            db: None,
            writes: false,
            execution: None,
        }
    }
}

impl Chunk {
    pub fn push(&mut self, item: Item, text: &[u8]) {
        self.items.push(Item {
            start: self.texts.len(),
            len: text.len(),
            ..item
        });
        self.texts.extend_from_slice(text);
    }

    /// Appends statement `at` of another chunk.
    pub fn copy(&mut self, other: &Chunk, at: usize) {
        let mut item = other.items[at];
        let text = other.text(at);
        item.execution = item.execution.map(|e| self.store.copy(&other.store, e));
        self.push(item, text);
    }

    pub fn text(&self, at: usize) -> &[u8] {
        let item = &self.items[at];
        &self.texts[item.start..item.start + item.len]
    }

    /// Its memory in bytes.
    pub fn size(&self) -> usize {
        self.texts.len() + self.store.size() + self.items.len() * size_of::<Item>()
    }
}
