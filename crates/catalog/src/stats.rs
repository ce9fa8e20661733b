//! Statistics that the planner reads: immutable, replaced as a whole by ANALYZE TABLE and by a
//! background refresh.

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
    /// Seconds since 1970 UTC when they were made.
    pub analyzed_at: u64,
}

impl TableStats {
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
