//! Statistics that the planner reads: immutable, replaced as a whole by ANALYZE TABLE and by a
//! background refresh. Their stored form is [`StoredStats`](crate::codec::StoredStats).

use std::sync::Arc;

use crate::histogram::Histogram;
use crate::schema::TableDef;

/// Any plan serves a smaller table.
const SMALL_ROWS: u64 = 1_000;

/// Statistics of one index.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IndexStats {
    /// `distinct[i]`: estimated number of different values of the first `i + 1` key parts.
    pub distinct: Vec<u64>,
    /// Pages of the tree, inner ones included.
    pub pages: u64,
}

/// Statistics of one table, as of one time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableStats {
    /// Estimated rows when the statistics were made.
    pub rows: u64,
    /// Mean bytes of a stored row.
    pub avg_row_bytes: u32,
    /// In the order of `TableDef::indexes`.
    pub indexes: Vec<IndexStats>,
    /// Estimated number of different values of each column, in the order of `TableDef::columns`; 0
    /// where it is not known.
    pub columns: Vec<u64>,
    /// The distribution of each column's values, in the order of `TableDef::columns`, where it was
    /// sampled; empty if no column's was. Not the histograms that users make: they belong to the
    /// definition. But one of `AUTO UPDATE` that was made anew with the statistics is here.
    pub histograms: Vec<Option<Arc<Histogram>>>,
    /// Seconds since 1970 UTC when they were made.
    pub analyzed_at: u64,
}

impl TableStats {
    /// Whether these newer statistics should lead to other plans than `old`: of a table that is not
    /// small, the rows are many more or many less, or a column has a histogram that had none.
    pub fn differs_much(&self, old: &TableStats) -> bool {
        let (less, more) = (self.rows.min(old.rows), self.rows.max(old.rows));
        let known = |stats: &TableStats| stats.histograms.iter().flatten().count();
        more >= SMALL_ROWS && (less.saturating_mul(4) <= more || known(self) > known(old))
    }

    /// The sampled distribution of a column's values.
    pub fn histogram(&self, column: usize) -> Option<&Histogram> {
        self.histograms.get(column)?.as_deref()
    }

    /// The histogram that a user has made of a column: that of the definition, or a newer one that
    /// `AUTO UPDATE` has made with the statistics.
    pub fn user_histogram<'a>(&'a self, def: &'a TableDef, column: usize) -> Option<&'a Histogram> {
        let made = def.columns.get(column)?.histogram.as_deref()?;
        let newer = |new: &&Histogram| made.auto_update && new.updated_us > made.updated_us;
        Some(self.histogram(column).filter(newer).unwrap_or(made))
    }

    /// Estimated rows that share one value of the first `parts` key parts of index `index`; at
    /// least 1.0.
    pub fn rows_per_key(&self, index: usize, parts: usize) -> f64 {
        let distinct = parts
            .checked_sub(1)
            .and_then(|p| self.indexes.get(index)?.distinct.get(p));
        match distinct {
            Some(&d) if d > 0 => (self.rows as f64 / d as f64).max(1.0),
            _ => (self.rows as f64).max(1.0),
        }
    }
}
