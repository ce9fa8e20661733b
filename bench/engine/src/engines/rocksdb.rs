//! RocksDB through rust-rocksdb, and the system's library: a block cache that holds everything
//! uncompressed, index and filter blocks outside it
//! (always in memory), 10-bit filters, hash index inside data blocks, no compression, large write
//! buffers, log without sync. Rows and secondary
//! keys are column families, loaded as sorted files and compacted into the last level. A point read
//! is one `get_pinned`: it sees one state of the
//! database without an explicit snapshot, which would take the database's mutex. `get_many` reads
//! the keys of each group by one reused iterator,
//! and the rows by one `batched_multi_get` with one explicit snapshot for both.

use std::path::{Path, PathBuf};

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType,
    DataBlockIndexType, IngestExternalFileOptions, Options, ReadOptions, SstFileWriter, WriteBatch,
};

use crate::data::{Data, GAP, digest, value};

/// Rows of a sorted file.
const FILE_ROWS: u64 = 1_000_000;

pub struct Engine {
    db: DB,
    dir: PathBuf,
}

fn table_options(cache: &Cache) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_bloom_filter(10.0, false);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    table.set_data_block_hash_ratio(0.75);
    table.set_cache_index_and_filter_blocks(false);
    table.set_format_version(5);
    let mut options = Options::default();
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(256 << 20);
    options.set_max_write_buffer_number(4);
    options.set_level_compaction_dynamic_level_bytes(true);
    options
}

fn key_of(group: u64, key: u64) -> [u8; 16] {
    let mut out = [0; 16];
    out[..8].copy_from_slice(&group.to_be_bytes());
    out[8..].copy_from_slice(&key.to_be_bytes());
    out
}

impl Engine {
    fn family(&self, name: &str) -> &ColumnFamily {
        self.db.cf_handle(name).expect("a column family")
    }

    /// One sorted file after the other.
    fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        family: &str,
        mut entries: impl Iterator<Item = (K, V)>,
    ) {
        let mut options = Options::default();
        options.set_compression_type(DBCompressionType::None);
        let cache = Cache::new_lru_cache(1 << 20).expect("a cache");
        let like = table_options(&cache);
        for number in 0.. {
            let mut chunk = entries.by_ref().take(FILE_ROWS as usize).peekable();
            if chunk.peek().is_none() {
                break;
            }
            let file = self.dir.join(format!("{family}-{number}.load"));
            let mut writer = SstFileWriter::create(&like);
            writer.open(&file).expect("a file");
            chunk.for_each(|(k, v)| writer.put(k, v).expect("an entry"));
            writer.finish().expect("a file");
            let mut how = IngestExternalFileOptions::default();
            how.set_move_files(true);
            self.db
                .ingest_external_file_cf_opts(self.family(family), &how, vec![file])
                .expect("a file goes in");
        }
    }
}

impl super::Engine for Engine {
    type Worker<'a> = Worker<'a>;

    fn open(dir: &Path, cache_bytes: u64) -> Engine {
        let cache = Cache::new_lru_cache(cache_bytes as usize).expect("a cache");
        let mut options = table_options(&cache);
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_max_background_jobs(4);
        options.set_max_open_files(-1);
        options.set_allow_concurrent_memtable_write(true);
        let families =
            ["rows", "groups"].map(|f| ColumnFamilyDescriptor::new(f, table_options(&cache)));
        let db =
            DB::open_cf_descriptors(&options, dir.join("db"), families).expect("RocksDB opens");
        Engine {
            db,
            dir: dir.into(),
        }
    }

    fn load(&mut self, data: &Data) {
        let row = |i: u64| {
            let value = value(i * GAP, data.group_of(i), 0);
            ((i * GAP).to_be_bytes(), value)
        };
        self.ingest("rows", (0..data.rows).map(row));
        let entries =
            (0..data.groups()).flat_map(|g| data.rows_of(g).map(|i| (key_of(g, i * GAP), [])));
        self.ingest("groups", entries);
        // The cache is filled by one pass over everything.
        for family in ["rows", "groups"] {
            let mut all = self.db.raw_iterator_cf(self.family(family));
            all.seek_to_first();
            while all.valid() {
                all.next();
            }
        }
    }

    fn worker(&self, _: u64) -> Worker<'_> {
        Worker {
            db: &self.db,
            rows: self.family("rows"),
            groups: self.family("groups"),
            keys: Vec::new(),
        }
    }

    fn about(&self) -> String {
        let ask = |name| self.db.property_value_cf(self.family("rows"), name);
        format!("RocksDB, levels {:?}", ask("rocksdb.levelstats"))
    }
}

pub struct Worker<'e> {
    db: &'e DB,
    rows: &'e ColumnFamily,
    groups: &'e ColumnFamily,
    keys: Vec<[u8; 8]>,
}

impl super::Worker for Worker<'_> {
    fn point(&mut self, key: u64) -> Option<u64> {
        let row = self.db.get_pinned_cf(self.rows, key.to_be_bytes());
        row.expect("a read").map(|row| digest(&row))
    }

    fn range(&mut self, from: u64, n: usize) -> (u64, u64) {
        let mut rows = self.db.raw_iterator_cf(self.rows);
        rows.seek(from.to_be_bytes());
        let (mut count, mut sum) = (0, 0);
        while let Some(row) = rows.value().filter(|_| count < n as u64) {
            count += 1;
            sum ^= digest(row);
            rows.next();
        }
        (count, sum)
    }

    fn get_many(&mut self, groups: &[u64]) -> (u64, u64) {
        let snapshot = self.db.snapshot();
        self.keys.clear();
        let mut options = ReadOptions::default();
        options.set_snapshot(&snapshot);
        let mut entries = self.db.raw_iterator_cf_opt(self.groups, options);
        for group in groups {
            let prefix = group.to_be_bytes();
            entries.seek(prefix);
            while let Some(entry) = entries.key().filter(|k| k.starts_with(&prefix)) {
                self.keys.push(entry[8..].try_into().expect("8 bytes"));
                entries.next();
            }
        }
        self.keys.sort_unstable();
        let mut options = ReadOptions::default();
        options.set_snapshot(&snapshot);
        let rows = self
            .db
            .batched_multi_get_cf_opt(self.rows, &self.keys, true, &options);
        rows.into_iter()
            .fold((0, 0), |(n, sum), row| match row.expect("a read") {
                Some(row) => (n + 1, sum ^ digest(&row)),
                None => (n, sum),
            })
    }

    fn insert(&mut self, key: u64, group: u64, value: &[u8]) {
        let mut batch = WriteBatch::default();
        batch.put_cf(self.rows, key.to_be_bytes(), value);
        batch.put_cf(self.groups, key_of(group, key), []);
        self.db.write(batch).expect("a write");
    }

    fn update(&mut self, key: u64, value: &[u8]) {
        self.db
            .put_cf(self.rows, key.to_be_bytes(), value)
            .expect("a write");
    }
}
