//! LMDB through heed: a writable map, no syncs (`MDB_WRITEMAP`, `MDB_NOSYNC`, `MDB_NOMETASYNC`), no
//! read-ahead and no clearing of memory, so that
//! nothing is read or written for nothing. The map is the cache, and the system has all of it.
//! Secondary keys are a database of sorted fixed-size
//! duplicates, with native integers as keys on both sides. Rows go in by `MDB_APPEND`. A read
//! transaction for each read, by thread-local slots.

use std::path::Path;

use heed::byteorder::NativeEndian;
use heed::types::{Bytes, U64};
use heed::{
    Database, DatabaseFlags, Env, EnvFlags, EnvOpenOptions, IntegerComparator, PutFlags, WithTls,
};

use crate::data::{Data, GAP, digest, value};

type Id = U64<NativeEndian>;
type Rows = Database<Id, Bytes, IntegerComparator>;
type Groups = Database<Id, Id, IntegerComparator, IntegerComparator>;

pub struct Engine {
    env: Env<WithTls>,
    rows: Rows,
    groups: Groups,
}

impl super::Engine for Engine {
    type Worker<'a> = Worker<'a>;

    fn open(dir: &Path, cache_bytes: u64) -> Engine {
        let mut options = EnvOpenOptions::new();
        options
            .map_size((4 * cache_bytes as usize).next_multiple_of(1 << 21))
            .max_dbs(2);
        // SAFETY: the files are this process's own, opened once; that a crash may damage them does
        // not matter here.
        let env = unsafe {
            options.flags(
                EnvFlags::WRITE_MAP
                    | EnvFlags::NO_SYNC
                    | EnvFlags::NO_META_SYNC
                    | EnvFlags::NO_READ_AHEAD
                    | EnvFlags::NO_MEM_INIT,
            );
            options.open(dir).expect("LMDB opens")
        };
        let mut txn = env.write_txn().expect("a transaction");
        let rows = env
            .database_options()
            .types::<Id, Bytes>()
            .key_comparator::<IntegerComparator>()
            .name("rows")
            .create(&mut txn)
            .expect("rows");
        let groups = env
            .database_options()
            .types::<Id, Id>()
            .key_comparator::<IntegerComparator>()
            .dup_sort_comparator::<IntegerComparator>()
            .flags(DatabaseFlags::DUP_SORT | DatabaseFlags::DUP_FIXED)
            .name("groups")
            .create(&mut txn)
            .expect("groups");
        txn.commit().expect("a commit");
        Engine { env, rows, groups }
    }

    fn load(&mut self, data: &Data) {
        let mut txn = self.env.write_txn().expect("a transaction");
        for i in 0..data.rows {
            let row = value(i * GAP, data.group_of(i), 0);
            self.rows
                .put_with_flags(&mut txn, PutFlags::APPEND, &(i * GAP), &row)
                .expect("a row");
        }
        for group in 0..data.groups() {
            for i in data.rows_of(group) {
                self.groups
                    .put_with_flags(&mut txn, PutFlags::APPEND_DUP, &group, &(i * GAP))
                    .expect("a group");
            }
        }
        txn.commit().expect("a commit");
    }

    fn worker(&self, _: u64) -> Worker<'_> {
        Worker(self)
    }

    fn about(&self) -> String {
        format!(
            "LMDB {:?}, {:?} bytes",
            heed::lmdb_version(),
            self.env.real_disk_size()
        )
    }
}

pub struct Worker<'e>(&'e Engine);

impl super::Worker for Worker<'_> {
    fn point(&mut self, key: u64) -> Option<u64> {
        let txn = self.0.env.read_txn().expect("a snapshot");
        self.0.rows.get(&txn, &key).expect("a read").map(digest)
    }

    fn range(&mut self, from: u64, n: usize) -> (u64, u64) {
        let txn = self.0.env.read_txn().expect("a snapshot");
        let rows = self.0.rows.range(&txn, &(from..)).expect("a read");
        rows.take(n).fold((0, 0), |(n, sum), row| {
            (n + 1, sum ^ digest(row.expect("a row").1))
        })
    }

    fn get_many(&mut self, groups: &[u64]) -> (u64, u64) {
        let txn = self.0.env.read_txn().expect("a snapshot");
        let (mut n, mut sum) = (0, 0);
        for group in groups {
            let keys = self.0.groups.get_duplicates(&txn, group).expect("a read");
            for key in keys.into_iter().flatten() {
                let key = key.expect("a key").1;
                if let Some(row) = self.0.rows.get(&txn, &key).expect("a read") {
                    n += 1;
                    sum ^= digest(row);
                }
            }
        }
        (n, sum)
    }

    fn insert(&mut self, key: u64, group: u64, value: &[u8]) {
        let mut txn = self.0.env.write_txn().expect("a transaction");
        self.0.rows.put(&mut txn, &key, value).expect("a row");
        self.0.groups.put(&mut txn, &group, &key).expect("a group");
        txn.commit().expect("a commit");
    }

    fn update(&mut self, key: u64, value: &[u8]) {
        let mut txn = self.0.env.write_txn().expect("a transaction");
        self.0.rows.put(&mut txn, &key, value).expect("a row");
        txn.commit().expect("a commit");
    }
}
