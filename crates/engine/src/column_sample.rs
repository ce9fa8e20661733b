//! Samples of the values in a table's columns, and the histograms that the statistics keep of them.
//!
//! # Cost
//! At most [`ROWS_MAX`] rows and [`VALUES_MAX`] values are held while the statistics are made. A
//! string counts by its first [`STRING_CHARS`] characters.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use nfold_catalog::histogram::{STRING_CHARS, ValueCount, buckets_of, collation_of};
use nfold_catalog::{Histogram, HistogramType};
use nfold_types::collation::CollationId;
use nfold_types::row::{RawField, RowLayout};
use nfold_types::temporal::TimeZone;
use nfold_types::{ColumnType, Value, ValueRef, compare::compare};
use rustc_hash::FxHashMap;

use crate::record::RowHeader;
use crate::stats::now_us;
use crate::table::Table;

/// Buckets of a histogram.
const BUCKETS: usize = 100;
/// Rows of a sample, and values of all columns together.
const ROWS_MAX: u64 = 20_000;
const VALUES_MAX: u64 = 400_000;

/// The sampled values of one column.
struct ColumnSample {
    column: usize,
    kind: HistogramType,
    nulls: u64,
    /// By their stored bytes, so that most rows decode nothing.
    values: FxHashMap<Box<[u8]>, (Value, u64)>,
}

/// The sampled values of some of a table's columns.
pub(crate) struct ColumnSamples<'t> {
    table: &'t Table,
    columns: Vec<ColumnSample>,
    /// The share of rows that is taken, of 2^32.
    taken: u64,
    rows: u64,
}

impl<'t> ColumnSamples<'t> {
    /// A sample of `columns`, from about `rows` rows.
    pub fn new(table: &'t Table, columns: &[usize], rows: u64) -> ColumnSamples<'t> {
        let columns: Vec<ColumnSample> = columns
            .iter()
            .filter_map(|&column| {
                let def = table.def().columns.get(column)?;
                Some(ColumnSample {
                    column,
                    kind: HistogramType::of(&def.ty)?,
                    nulls: 0,
                    values: FxHashMap::default(),
                })
            })
            .collect();
        let most = ROWS_MAX.min(VALUES_MAX / columns.len().max(1) as u64);
        ColumnSamples {
            table,
            columns,
            taken: (most << 32).checked_div(rows).unwrap_or(u64::MAX),
            rows: 0,
        }
    }

    /// The number of rows that it should have.
    pub fn rows_wanted(&self) -> u64 {
        ROWS_MAX.min(VALUES_MAX / self.columns.len().max(1) as u64)
    }

    /// Whether it samples no column.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Adds a clustered entry, unless chance leaves it out. Rows of an older layout do not count.
    pub fn add(&mut self, value: &[u8]) {
        if self.columns.is_empty() {
            return;
        }
        self.rows += 1;
        if chance(self.rows) >= self.taken {
            return;
        }
        let layout = self.table.layout();
        let Some((_, image)) = RowHeader::split(value) else {
            return;
        };
        if RowLayout::version_of(image) != Ok(layout.version()) {
            return;
        }
        for sample in &mut self.columns {
            let ty = &self.table.def().columns[sample.column].ty;
            sample.add(layout, image, ty);
        }
    }

    /// The histograms, in the order of the table's columns. `rows` are in the table, and
    /// `distinct` values in each column, as far as that is known.
    pub fn histograms(self, rows: u64, distinct: &[u64]) -> Vec<Option<Arc<Histogram>>> {
        let mut all = vec![None; self.table.def().columns.len()];
        for sample in self.columns {
            let ty = &self.table.def().columns[sample.column].ty;
            let known = distinct.get(sample.column).copied().unwrap_or(0);
            let column = sample.column;
            let user = self.table.def().columns[column].histogram.as_deref();
            let user = user.filter(|h| h.auto_update);
            all[column] = Some(Arc::new(sample.histogram(ty, rows, known, user)));
        }
        all
    }
}

impl ColumnSample {
    fn add(&mut self, layout: &RowLayout, image: &[u8], ty: &ColumnType) {
        let bytes = match layout.raw(image, self.column) {
            Ok(RawField::Null) => {
                self.nulls += 1;
                return;
            }
            Ok(RawField::Fixed(bytes)) => bytes,
            Ok(RawField::Var(bytes)) if self.kind == HistogramType::String => {
                ty.collation.known().char_prefix(bytes, STRING_CHARS)
            }
            Ok(RawField::Var(bytes)) => bytes,
            // A value on overflow pages is not read.
            _ => return,
        };
        match self.values.entry(bytes.into()) {
            Entry::Occupied(mut known) => known.get_mut().1 += 1,
            Entry::Vacant(place) => {
                let value = match self.kind {
                    HistogramType::String => Value::Bytes(bytes.to_vec()),
                    _ => match layout.get(image, self.column) {
                        Ok(value) => value.to_owned(),
                        Err(_) => return,
                    },
                };
                place.insert((value, 1));
            }
        }
    }

    /// `user`: the histogram of `AUTO UPDATE` that this one replaces.
    fn histogram(
        self,
        ty: &ColumnType,
        rows: u64,
        distinct: u64,
        user: Option<&Histogram>,
    ) -> Histogram {
        let most = user.map_or(BUCKETS, |h| h.buckets_specified as usize);
        let collation = collation_of(self.kind, ty);
        let order = match self.kind {
            HistogramType::String => collation,
            _ => CollationId::BINARY,
        };
        let order = order.known();
        let mut values: Vec<(Value, u64)> = self.values.into_values().collect();
        values.sort_by(|a, b| compare(a.0.as_ref(), b.0.as_ref(), order));
        let mut counts: Vec<ValueCount> = Vec::with_capacity(values.len());
        let mut last: Option<Value> = None;
        for (value, count) in values {
            let equal = |last: &Value| compare(last.as_ref(), value.as_ref(), order).is_eq();
            match counts.last_mut() {
                // Equal by the collation, or by the zeros behind the point.
                Some(known) if last.as_ref().is_some_and(equal) => known.1 += count,
                _ => {
                    counts.push((text_of(value.as_ref()), count));
                    last = Some(value);
                }
            }
        }
        let known: u64 = counts.iter().map(|(_, count)| count).sum();
        let total = known + self.nulls;
        let (mut buckets, singleton) = buckets_of(&counts, total.max(1), most);
        // A sample misses values: those of a bucket with several are as many more as there are in
        // the whole column.
        let found = counts.len() as u64;
        if distinct > found && !singleton {
            let scale = distinct as f64 / found as f64;
            for bucket in buckets.iter_mut().filter(|b| b.distinct > 1) {
                bucket.distinct = (bucket.distinct as f64 * scale) as u64;
            }
        }
        Histogram {
            kind: self.kind,
            singleton,
            buckets,
            null_share: self.nulls as f64 / total.max(1) as f64,
            collation,
            buckets_specified: most as u32,
            auto_update: true,
            sampling_rate: (total as f64 / rows.max(1) as f64).min(1.0),
            updated_us: user.map_or(0, |_| now_us()),
        }
    }
}

/// A value in the text form of a histogram's bound.
fn text_of(value: ValueRef<'_>) -> Box<[u8]> {
    let text = match value {
        ValueRef::Null => String::new(),
        ValueRef::Int(n) => n.to_string(),
        ValueRef::UInt(n) => n.to_string(),
        ValueRef::Float(n) => n.to_string(),
        ValueRef::Double(n) => n.to_string(),
        ValueRef::Decimal(n) => n.to_string(),
        ValueRef::Bytes(bytes) => return bytes.into(),
        ValueRef::Date(at) => at.to_string(),
        ValueRef::DateTime(at) => at.with_fsp(6).to_string(),
        ValueRef::Timestamp(at) => {
            let local = TimeZone::UTC.to_local(at);
            local.map_or_else(String::new, |at| at.with_fsp(6).to_string())
        }
        ValueRef::Time(at) => at.with_fsp(6).to_string(),
    };
    text.into_bytes().into()
}

/// A number below 2^32 for the n-th row. Rows that are taken by it follow no period of the data.
fn chance(n: u64) -> u64 {
    let mut hash = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash >> 32
}
