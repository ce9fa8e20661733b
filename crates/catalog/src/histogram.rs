//! Histograms: the distribution of a column's values, made by ANALYZE TABLE ... UPDATE HISTOGRAM.
//! Source: MySQL manual, "Optimizer Statistics" and "The INFORMATION_SCHEMA COLUMN_STATISTICS
//! Table".

use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, TypeKind};

/// The first characters of a string, or bytes of a binary string, that a histogram distinguishes.
pub const STRING_CHARS: usize = 42;

/// How the bounds of the buckets are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistogramType {
    Int,
    UInt,
    Double,
    Decimal,
    /// Bytes of the column's character set.
    String,
    Date,
    Time,
    DateTime,
    /// Numbers of members.
    Enum,
    /// Bit sets of members.
    Set,
}

impl HistogramType {
    pub const ALL: [HistogramType; 10] = [
        HistogramType::Int,
        HistogramType::UInt,
        HistogramType::Double,
        HistogramType::Decimal,
        HistogramType::String,
        HistogramType::Date,
        HistogramType::Time,
        HistogramType::DateTime,
        HistogramType::Enum,
        HistogramType::Set,
    ];

    /// The type of a column's histogram; `None`: it cannot have one.
    pub fn of(ty: &ColumnType) -> Option<HistogramType> {
        Some(match ty.kind {
            TypeKind::Enum(_) => HistogramType::Enum,
            TypeKind::Set(_) => HistogramType::Set,
            TypeKind::Bit(_) | TypeKind::Year => HistogramType::Int,
            TypeKind::Float | TypeKind::Double => HistogramType::Double,
            TypeKind::Decimal { .. } => HistogramType::Decimal,
            TypeKind::Date => HistogramType::Date,
            TypeKind::Time(_) => HistogramType::Time,
            TypeKind::DateTime(_) | TypeKind::Timestamp(_) => HistogramType::DateTime,
            TypeKind::BigInt if ty.unsigned => HistogramType::UInt,
            _ if ty.is_integer() => HistogramType::Int,
            _ if ty.is_string() => HistogramType::String,
            _ => return None,
        })
    }

    /// The name in `information_schema.COLUMN_STATISTICS`.
    pub fn name(self) -> &'static str {
        match self {
            HistogramType::Int => "int",
            HistogramType::UInt => "uint",
            HistogramType::Double => "double",
            HistogramType::Decimal => "decimal",
            HistogramType::String => "string",
            HistogramType::Date => "date",
            HistogramType::Time => "time",
            HistogramType::DateTime => "datetime",
            HistogramType::Enum => "enum",
            HistogramType::Set => "set",
        }
    }
}

/// The values from `lower` to `upper`, both inclusive, in the order of the column's collation.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramBucket {
    /// In the text form of the value.
    pub lower: Box<[u8]>,
    pub upper: Box<[u8]>,
    /// The share of all rows that have a value of this bucket or of an earlier one.
    pub cumulative: f64,
    /// The number of different values.
    pub distinct: u64,
}

/// The distribution of a column's values.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    pub kind: HistogramType,
    /// Whether each bucket is one value; otherwise the buckets have about as many rows each.
    pub singleton: bool,
    /// In ascending order.
    pub buckets: Vec<HistogramBucket>,
    /// The share of rows in which the column is NULL.
    pub null_share: f64,
    pub collation: CollationId,
    /// `WITH n BUCKETS`
    pub buckets_specified: u32,
    /// Whether ANALYZE TABLE and newer statistics make the histogram anew.
    pub auto_update: bool,
    /// The share of rows that were read.
    pub sampling_rate: f64,
    /// Microseconds since 1970 UTC.
    pub updated_us: u64,
}

/// The collation that MySQL gives the histograms of numbers and temporal values.
pub const NUMERIC_COLLATION: CollationId = CollationId(8);

/// The collation of a column's histogram.
pub fn collation_of(kind: HistogramType, ty: &ColumnType) -> CollationId {
    match kind {
        _ if matches!(ty.kind, TypeKind::Bit(_)) => CollationId::BINARY,
        HistogramType::String | HistogramType::Enum | HistogramType::Set => ty.collation,
        _ => NUMERIC_COLLATION,
    }
}

/// A value with the number of rows that have it.
pub type ValueCount = (Box<[u8]>, u64);

/// The buckets of `values`, which are in ascending order, and whether each is a single value.
/// `total`: the number of rows, including those with NULL.
pub fn buckets_of(values: &[ValueCount], total: u64, most: usize) -> (Vec<HistogramBucket>, bool) {
    let singleton = values.len() <= most;
    let rows_max = match singleton {
        true => 0,
        false => bucket_rows(values, most),
    };
    let mut buckets: Vec<HistogramBucket> = Vec::new();
    let (mut before, mut rows) = (0, 0);
    for (value, count) in values {
        before += count;
        let cumulative = before as f64 / total as f64;
        match buckets.last_mut() {
            Some(last) if rows + count <= rows_max => {
                rows += count;
                last.upper = value.clone();
                (last.cumulative, last.distinct) = (cumulative, last.distinct + 1);
            }
            _ => {
                rows = *count;
                buckets.push(HistogramBucket {
                    lower: value.clone(),
                    upper: value.clone(),
                    cumulative,
                    distinct: 1,
                });
            }
        }
    }
    (buckets, singleton)
}

/// The smallest number of rows for a bucket with which all values fit into `most` buckets, as far
/// as MySQL searches for it. A value is never divided among buckets.
fn bucket_rows(values: &[ValueCount], most: usize) -> u64 {
    const STEPS: usize = 10;
    let all: u64 = values.iter().map(|(_, count)| count).sum();
    if most <= 1 {
        return all;
    }
    let (mut too_few, mut enough) = (0, 2 * all / (most as u64 - 1) + 1);
    for _ in 0..STEPS {
        if enough <= too_few + 1 {
            break;
        }
        let middle = (too_few + enough) / 2;
        match fits(values, middle, most) {
            true => enough = middle,
            false => too_few = middle,
        }
    }
    enough
}

/// Whether buckets of at most `rows_max` rows, or of a single value, are no more than `most`.
fn fits(values: &[ValueCount], rows_max: u64, most: usize) -> bool {
    let (mut used, mut rows) = (1, 0);
    for (_, count) in values {
        if rows > 0 && rows + count > rows_max {
            used += 1;
            rows = 0;
        }
        rows += count;
    }
    used <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(list: impl Iterator<Item = (u64, u64)>) -> Vec<ValueCount> {
        list.map(|(value, count)| (value.to_string().into_bytes().into(), count))
            .collect()
    }

    fn shown(buckets: &[HistogramBucket]) -> Vec<(String, String, f64, u64)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let bucket =
            |b: &HistogramBucket| (text(&b.lower), text(&b.upper), b.cumulative, b.distinct);
        buckets.iter().map(bucket).collect()
    }

    #[test]
    fn few_values_have_a_bucket_each() {
        let (buckets, singleton) = buckets_of(&counts([(5, 2), (7, 1)].into_iter()), 4, 2);
        assert!(singleton);
        let one = |v: &str, share| (v.to_string(), v.to_string(), share, 1);
        assert_eq!(shown(&buckets), [one("5", 0.5), one("7", 0.75)]);
    }

    #[test]
    fn frequent_value_has_its_own_bucket() {
        let values = counts([(3, 399)].into_iter().chain((400..=1000).map(|n| (n, 1))));
        let (buckets, singleton) = buckets_of(&values, 1000, 8);
        assert!(!singleton);
        let bucket =
            |lo: &str, hi: &str, share, distinct| (lo.to_string(), hi.to_string(), share, distinct);
        let all = shown(&buckets);
        assert_eq!(all[0], bucket("3", "3", 0.399, 1));
        assert_eq!(all[1], bucket("400", "485", 0.485, 86));
        assert_eq!(all[7], bucket("916", "1000", 1.0, 85));
        assert_eq!(all.len(), 8);
    }

    #[test]
    fn one_bucket_has_all_values() {
        let (buckets, _) = buckets_of(&counts((0..10).map(|n| (n, 2))), 20, 1);
        assert_eq!(shown(&buckets), [("0".into(), "9".into(), 1.0, 10)]);
    }
}
