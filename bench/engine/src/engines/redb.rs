//! redb: a cache that holds everything, `Durability::None` (no sync). Fixed-width keys and values;
//! secondary keys are a table of (group, key).
//! A read transaction and an opened table for each read, as its interface wants it.

use std::path::Path;

use redb::{
    Database, Durability, ReadableDatabase, ReadableTableMetadata, TableDefinition,
    WriteTransaction,
};

use crate::data::{Data, GAP, VALUE, digest, value};

const ROWS: TableDefinition<u64, [u8; VALUE]> = TableDefinition::new("rows");
const GROUPS: TableDefinition<(u64, u64), ()> = TableDefinition::new("groups");

pub struct Engine(Database);

impl Engine {
    fn begin(&self) -> WriteTransaction {
        let mut txn = self.0.begin_write().expect("a transaction");
        txn.set_durability(Durability::None).expect("no sync");
        txn
    }
}

impl super::Engine for Engine {
    type Worker<'a> = Worker<'a>;

    fn open(dir: &Path, cache_bytes: u64) -> Engine {
        let database = Database::builder()
            .set_cache_size(cache_bytes as usize)
            .create(dir.join("redb"))
            .expect("redb opens");
        Engine(database)
    }

    fn load(&mut self, data: &Data) {
        let txn = self.0.begin_write().expect("a transaction");
        {
            let mut rows = txn.open_table(ROWS).expect("rows");
            for i in 0..data.rows {
                let row = value(i * GAP, data.group_of(i), 0);
                rows.insert(i * GAP, row).expect("a row");
            }
            let mut groups = txn.open_table(GROUPS).expect("groups");
            for group in 0..data.groups() {
                for i in data.rows_of(group) {
                    groups.insert((group, i * GAP), ()).expect("a group");
                }
            }
        }
        txn.commit().expect("a commit");
    }

    fn worker(&self, _: u64) -> Worker<'_> {
        Worker(self)
    }

    fn about(&self) -> String {
        let txn = self.0.begin_read().expect("a snapshot");
        let rows = txn.open_table(ROWS).expect("rows");
        format!("{:?}", rows.stats())
    }
}

pub struct Worker<'e>(&'e Engine);

impl super::Worker for Worker<'_> {
    fn point(&mut self, key: u64) -> Option<u64> {
        let txn = self.0.0.begin_read().expect("a snapshot");
        let rows = txn.open_table(ROWS).expect("rows");
        let row = rows.get(key).expect("a read");
        row.map(|row| digest(row.value().as_slice()))
    }

    fn range(&mut self, from: u64, n: usize) -> (u64, u64) {
        let txn = self.0.0.begin_read().expect("a snapshot");
        let rows = txn.open_table(ROWS).expect("rows");
        let range = rows.range(from..).expect("a read");
        range.take(n).fold((0, 0), |(n, sum), row| {
            (
                n + 1,
                sum ^ digest(row.expect("a row").1.value().as_slice()),
            )
        })
    }

    fn get_many(&mut self, groups: &[u64]) -> (u64, u64) {
        let txn = self.0.0.begin_read().expect("a snapshot");
        let rows = txn.open_table(ROWS).expect("rows");
        let entries = txn.open_table(GROUPS).expect("groups");
        let (mut n, mut sum) = (0, 0);
        for &group in groups {
            let keys = entries
                .range((group, 0)..=(group, u64::MAX))
                .expect("a read");
            for entry in keys {
                let key = entry.expect("an entry").0.value().1;
                if let Some(row) = rows.get(key).expect("a read") {
                    n += 1;
                    sum ^= digest(row.value().as_slice());
                }
            }
        }
        (n, sum)
    }

    fn insert(&mut self, key: u64, group: u64, value: &[u8]) {
        let row: [u8; VALUE] = value.try_into().expect("a value");
        let txn = self.0.begin();
        txn.open_table(ROWS)
            .expect("rows")
            .insert(key, row)
            .expect("a row");
        txn.open_table(GROUPS)
            .expect("groups")
            .insert((group, key), ())
            .expect("a group");
        txn.commit().expect("a commit");
    }

    fn update(&mut self, key: u64, value: &[u8]) {
        let row: [u8; VALUE] = value.try_into().expect("a value");
        let txn = self.0.begin();
        txn.open_table(ROWS)
            .expect("rows")
            .insert(key, row)
            .expect("a row");
        txn.commit().expect("a commit");
    }
}
