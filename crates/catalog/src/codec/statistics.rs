//! The stored form of a table's statistics. It names indexes by id and columns by name. So after a
//! change of the table, the statistics of its unchanged columns and indexes can still be used.

use std::sync::Arc;

use super::histogram::{get_histogram, put_histogram};
use super::{BadObject, Reader, Stored, VERSION, put_bytes, put_list};
use crate::histogram::{Histogram, HistogramType, collation_of};
use crate::schema::{IndexId, TableDef};
use crate::stats::{IndexStats, TableStats};

/// A condition uses the column.
const WANTED: u8 = 1;
/// The column has a histogram.
const HISTOGRAM: u8 = 2;

/// Statistics of one index as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredIndexStats {
    pub id: IndexId,
    pub stats: IndexStats,
}

/// Statistics of one column as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredColumnStats {
    pub name: Arc<str>,
    /// Estimated number of different values; 0: not known.
    pub distinct: u64,
    /// A condition uses the column, so statistics that are made later sample it.
    pub wanted: bool,
    pub histogram: Option<Arc<Histogram>>,
}

/// Statistics of a table as the dictionary holds them.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredStats {
    pub rows: u64,
    pub avg_row_bytes: u32,
    /// Seconds since 1970 UTC.
    pub analyzed_at: u64,
    /// Rows added less rows removed since the statistics were made.
    pub rows_changed: i64,
    pub indexes: Vec<StoredIndexStats>,
    pub columns: Vec<StoredColumnStats>,
}

impl StoredStats {
    /// The stored form of `stats`. `wanted` says which columns conditions use.
    pub fn new(
        def: &TableDef,
        stats: &TableStats,
        rows_changed: i64,
        wanted: impl Fn(usize) -> bool,
    ) -> StoredStats {
        let indexes = def.indexes.iter().zip(&stats.indexes);
        let column = |(n, column): (usize, &crate::schema::ColumnDef)| StoredColumnStats {
            name: column.name.clone(),
            distinct: stats.columns.get(n).copied().unwrap_or(0),
            wanted: wanted(n),
            histogram: stats.histograms.get(n).cloned().flatten(),
        };
        StoredStats {
            rows: stats.rows,
            avg_row_bytes: stats.avg_row_bytes,
            analyzed_at: stats.analyzed_at,
            rows_changed,
            indexes: indexes
                .map(|(index, stats)| StoredIndexStats {
                    id: index.id,
                    stats: stats.clone(),
                })
                .collect(),
            columns: def.columns.iter().enumerate().map(column).collect(),
        }
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&StoredColumnStats> {
        self.columns.iter().find(|c| *c.name == *name)
    }

    /// The statistics of a table with this definition. Indexes and columns that are not stored, and
    /// columns of another type, have none.
    pub fn stats(&self, def: &TableDef) -> TableStats {
        let index = |id| self.indexes.iter().find(|i| i.id == id);
        let histogram = |column: &crate::schema::ColumnDef| {
            let found = self.column(&column.name)?.histogram.clone()?;
            let kind = HistogramType::of(&column.ty)?;
            let same = kind == found.kind && collation_of(kind, &column.ty) == found.collation;
            same.then_some(found)
        };
        let distinct = def
            .columns
            .iter()
            .map(|c| self.column(&c.name).map_or(0, |known| known.distinct));
        let mut histograms: Vec<_> = def.columns.iter().map(histogram).collect();
        if histograms.iter().all(Option::is_none) {
            histograms.clear();
        }
        TableStats {
            rows: self.rows,
            avg_row_bytes: self.avg_row_bytes,
            indexes: def
                .indexes
                .iter()
                .map(|i| index(i.id).map_or_else(IndexStats::default, |known| known.stats.clone()))
                .collect(),
            columns: distinct.collect(),
            histograms,
            analyzed_at: self.analyzed_at,
        }
    }
}

impl Stored for StoredStats {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.avg_row_bytes.to_le_bytes());
        out.extend_from_slice(&self.analyzed_at.to_le_bytes());
        out.extend_from_slice(&self.rows_changed.to_le_bytes());
        put_list(out, &self.indexes, |out, index| {
            out.extend_from_slice(&index.id.0.to_le_bytes());
            out.extend_from_slice(&index.stats.pages.to_le_bytes());
            put_list(out, &index.stats.distinct, |out, distinct| {
                out.extend_from_slice(&distinct.to_le_bytes());
            });
        });
        put_list(out, &self.columns, |out, column| {
            put_bytes(out, column.name.as_bytes());
            out.extend_from_slice(&column.distinct.to_le_bytes());
            let wanted = if column.wanted { WANTED } else { 0 };
            let histogram = column.histogram.as_ref().map_or(0, |_| HISTOGRAM);
            out.push(wanted | histogram);
            if let Some(histogram) = &column.histogram {
                put_histogram(out, histogram);
            }
        });
    }

    fn decode(input: &[u8]) -> Result<Self, BadObject> {
        let mut r = Reader(input);
        r.version()?;
        Ok(StoredStats {
            rows: r.u64("rows")?,
            avg_row_bytes: r.u32("row bytes")?,
            analyzed_at: r.u64("time of the statistics")?,
            rows_changed: r.u64("changed rows")? as i64,
            indexes: r.list("index statistics", |r| {
                Ok(StoredIndexStats {
                    id: IndexId(r.u64("index id")?),
                    stats: IndexStats {
                        pages: r.u64("pages")?,
                        distinct: r.list("distinct keys", |r| r.u64("distinct keys"))?,
                    },
                })
            })?,
            columns: r.list("column statistics", |r| {
                let name = r.text("column name")?.into();
                let distinct = r.u64("distinct values")?;
                let flags = r.u8("flags of a column's statistics")?;
                Ok(StoredColumnStats {
                    name,
                    distinct,
                    wanted: flags & WANTED != 0,
                    histogram: match flags & HISTOGRAM {
                        0 => None,
                        _ => Some(Arc::new(get_histogram(r)?)),
                    },
                })
            })?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests;
    use super::*;
    use crate::histogram::HistogramBucket;
    use nfold_types::collation::CollationId;

    fn stats() -> TableStats {
        let bucket = HistogramBucket {
            lower: b"a".as_slice().into(),
            upper: b"b".as_slice().into(),
            cumulative: 0.75,
            distinct: 2,
        };
        let histogram = Histogram {
            kind: HistogramType::String,
            singleton: false,
            buckets: vec![bucket],
            null_share: 0.25,
            collation: CollationId(255),
            buckets_specified: 100,
            auto_update: true,
            sampling_rate: 0.5,
            updated_us: 0,
        };
        TableStats {
            rows: 1_000,
            avg_row_bytes: 70,
            indexes: vec![IndexStats {
                distinct: vec![1_000],
                pages: 9,
            }],
            columns: vec![1_000, 2, 0, 30],
            histograms: vec![None, Some(Arc::new(histogram)), None, None],
            analyzed_at: 7,
        }
    }

    #[test]
    fn statistics_round_trip() {
        let (def, stats) = (tests::table(), stats());
        let stored = StoredStats::new(&def, &stats, -3, |column| column == 1);
        let mut bytes = Vec::new();
        stored.encode(&mut bytes);
        let read = StoredStats::decode(&bytes).unwrap();
        assert_eq!(read, stored);
        assert_eq!((read.rows_changed, read.stats(&def)), (-3, stats));
        assert!(read.column("s").unwrap().wanted && !read.column("id").unwrap().wanted);
        for cut in 0..bytes.len() {
            assert!(StoredStats::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn changed_columns_and_indexes_have_no_statistics() {
        let (mut def, stats) = (tests::table(), stats());
        let stored = StoredStats::new(&def, &stats, 0, |_| true);
        def.columns[1].ty = def.columns[0].ty.clone();
        def.columns[3].name = "renamed".into();
        def.indexes[0].id = IndexId(77);
        let now = stored.stats(&def);
        assert_eq!(now.columns, [1_000, 2, 0, 0]);
        assert!(now.histograms.is_empty());
        assert_eq!(now.indexes, [IndexStats::default()]);
        assert_eq!(now.rows, 1_000);
    }
}
