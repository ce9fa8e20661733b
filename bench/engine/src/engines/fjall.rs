//! fjall: a cache that holds everything, no compression, filters and indexes pinned whole in
//! memory, large write buffers, the journal written without sync.
//! Rows and secondary keys are keyspaces, loaded by sorted ingestion. A point read is one `get`,
//! which sees one state; ranges and `get_many`
//! take a snapshot.

use std::path::Path;

use fjall::config::{CompressionPolicy, HashRatioPolicy, PartitioningPolicy, PinningPolicy};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, Readable};

use crate::data::{Data, GAP, digest, value};

pub struct Engine {
    db: Database,
    rows: Keyspace,
    groups: Keyspace,
}

fn key_of(group: u64, key: u64) -> [u8; 16] {
    let mut out = [0; 16];
    out[..8].copy_from_slice(&group.to_be_bytes());
    out[8..].copy_from_slice(&key.to_be_bytes());
    out
}

impl super::Engine for Engine {
    type Worker<'a> = Worker<'a>;

    fn open(dir: &Path, cache_bytes: u64) -> Engine {
        let db = Database::builder(dir)
            .cache_size(cache_bytes)
            .max_journaling_size(2 << 30)
            .open()
            .expect("fjall opens");
        let options = || {
            KeyspaceCreateOptions::default()
                .data_block_compression_policy(CompressionPolicy::disabled())
                .index_block_compression_policy(CompressionPolicy::disabled())
                .filter_block_pinning_policy(PinningPolicy::all(true))
                .index_block_pinning_policy(PinningPolicy::all(true))
                .filter_block_partitioning_policy(PartitioningPolicy::all(false))
                .index_block_partitioning_policy(PartitioningPolicy::all(false))
                .data_block_hash_ratio_policy(HashRatioPolicy::all(1.33))
                .max_memtable_size(256 << 20)
        };
        let rows = db.keyspace("rows", options).expect("rows");
        let groups = db.keyspace("groups", options).expect("groups");
        Engine { db, rows, groups }
    }

    fn load(&mut self, data: &Data) {
        let mut rows = self.rows.start_ingestion().expect("an ingestion");
        for i in 0..data.rows {
            let row = value(i * GAP, data.group_of(i), 0);
            rows.write((i * GAP).to_be_bytes(), row).expect("a row");
        }
        rows.finish().expect("the rows are in");
        let mut groups = self.groups.start_ingestion().expect("an ingestion");
        for group in 0..data.groups() {
            for i in data.rows_of(group) {
                groups.write(key_of(group, i * GAP), []).expect("a group");
            }
        }
        groups.finish().expect("the groups are in");
        // The cache is filled by one pass over everything.
        for keyspace in [&self.rows, &self.groups] {
            let read = keyspace.iter().filter_map(|e| e.value().ok()).count();
            assert_eq!(read as u64, data.rows);
        }
    }

    fn worker(&self, _: u64) -> Worker<'_> {
        Worker(self)
    }

    fn about(&self) -> String {
        let tables = self.rows.table_count();
        format!(
            "fjall, {tables} tables, {} bytes of cache used",
            self.db.cache_size()
        )
    }
}

pub struct Worker<'e>(&'e Engine);

impl super::Worker for Worker<'_> {
    fn point(&mut self, key: u64) -> Option<u64> {
        let row = self.0.rows.get(key.to_be_bytes()).expect("a read");
        row.map(|row| digest(&row))
    }

    fn range(&mut self, from: u64, n: usize) -> (u64, u64) {
        let rows = self.0.rows.range(from.to_be_bytes()..);
        rows.take(n).fold((0, 0), |(n, sum), row| {
            (n + 1, sum ^ digest(&row.value().expect("a row")))
        })
    }

    fn get_many(&mut self, groups: &[u64]) -> (u64, u64) {
        let snapshot = self.0.db.snapshot();
        let (mut n, mut sum) = (0, 0);
        for group in groups {
            for entry in snapshot.prefix(&self.0.groups, group.to_be_bytes()) {
                let entry = entry.key().expect("an entry");
                if let Some(row) = snapshot.get(&self.0.rows, &entry[8..]).expect("a read") {
                    n += 1;
                    sum ^= digest(&row);
                }
            }
        }
        (n, sum)
    }

    fn insert(&mut self, key: u64, group: u64, value: &[u8]) {
        let mut batch = self.0.db.batch();
        batch.insert(&self.0.rows, key.to_be_bytes(), value);
        batch.insert(&self.0.groups, key_of(group, key), []);
        batch.commit().expect("a write");
    }

    fn update(&mut self, key: u64, value: &[u8]) {
        self.0
            .rows
            .insert(key.to_be_bytes(), value)
            .expect("a write");
    }
}
