//! How the values of equal columns coincide, by their histograms. Two columns that reference the
//! same table often have the same frequent values, and then many more rows join than the number of
//! different values lets expect.
//!
//! # Picture
//! ```text
//!   histogram of a     |  1  | 2 ........ 50 | 51 .... 100 |
//!   histogram of b     |  1  | 2 | 3 ... 20 | 21 ..... 100 |
//!   cells              |  1  | 2 | 3 .. 20 | 21 .. 50 | .. |   share of a × share of b ÷ values
//! ```

use nfold_catalog::{Histogram, HistogramType};

use super::histogram::place_of;

/// The maximum number of columns: all their subsets are computed.
const COLUMNS_MAX: usize = 8;

/// For each set of equal columns, the share of the combinations of their tables' rows in which all
/// are equal.
#[derive(Debug)]
pub(super) struct JointShares {
    /// By the set of columns, as bits.
    shares: Vec<f64>,
}

/// One column's share of the rows and number of different values, for each cell.
type Cells = Vec<(f64, f64)>;

/// A bucket: its values from `from` to less than `to`, share of the rows, and different values.
struct Piece {
    from: f64,
    to: f64,
    share: f64,
    distinct: f64,
}

impl JointShares {
    /// The shares of columns with these histograms. `None` if they are not of integers, or if too
    /// many or too few columns.
    pub fn of(histograms: &[&Histogram]) -> Option<JointShares> {
        let count = histograms.len();
        if !(2..=COLUMNS_MAX).contains(&count) {
            return None;
        }
        let pieces: Option<Vec<Vec<Piece>>> = histograms.iter().map(|h| pieces(h)).collect();
        let pieces = pieces?;
        let mut ends: Vec<f64> = pieces
            .iter()
            .flatten()
            .flat_map(|p| [p.from, p.to])
            .collect();
        ends.sort_by(f64::total_cmp);
        ends.dedup();
        let columns: Vec<Cells> = pieces.iter().map(|p| cells(p, &ends)).collect();
        let mut shares = vec![0.0; 1 << count];
        let mut products = vec![0.0; 1 << count];
        for cell in 0..ends.len().saturating_sub(1) {
            let values = columns.iter().map(|c| c[cell].1).fold(1.0, f64::max);
            products[0] = values;
            for set in 1..1usize << count {
                let column = set.trailing_zeros() as usize;
                products[set] = products[set & (set - 1)] * columns[column][cell].0 / values;
                shares[set] += products[set];
            }
        }
        // One column alone: all rows of its table, those with NULL too.
        (0..count).for_each(|column| shares[1 << column] = 1.0);
        Some(JointShares { shares })
    }

    /// The share of a column's rows that are equal to one combination of rows in which the columns
    /// `placed` are equal. `None` if no such rows are known.
    pub fn keeps(&self, placed: usize, own: usize) -> Option<f64> {
        let before = self.shares[placed];
        (before > 0.0).then(|| self.shares[placed | 1 << own] / before)
    }
}

/// The buckets of a histogram of integers.
fn pieces(h: &Histogram) -> Option<Vec<Piece>> {
    if !matches!(h.kind, HistogramType::Int | HistogramType::UInt) || h.buckets.is_empty() {
        return None;
    }
    let mut before = 0.0;
    let piece = |b: &nfold_catalog::HistogramBucket| {
        let share = b.cumulative - before;
        before = b.cumulative;
        Some(Piece {
            from: place_of(h, &b.lower)?,
            to: place_of(h, &b.upper)? + 1.0,
            share,
            distinct: b.distinct as f64,
        })
    };
    h.buckets.iter().map(piece).collect()
}

/// Divides the buckets of one column among the cells between `ends`.
fn cells(pieces: &[Piece], ends: &[f64]) -> Cells {
    let mut cells = vec![(0.0, 0.0); ends.len().saturating_sub(1)];
    for piece in pieces {
        let width = piece.to - piece.from;
        let first = ends.partition_point(|end| *end < piece.from);
        for (cell, pair) in ends.windows(2).enumerate().skip(first) {
            if pair[0] >= piece.to {
                break;
            }
            let part = (pair[1] - pair[0]) / width;
            cells[cell].0 += piece.share * part;
            cells[cell].1 += piece.distinct * part;
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use nfold_catalog::HistogramBucket;
    use nfold_types::CollationId;

    use super::*;

    /// A histogram of buckets `(lower, upper, share, distinct)`.
    fn histogram(list: &[(i64, i64, f64, u64)]) -> Histogram {
        let mut cumulative = 0.0;
        let buckets = list.iter().map(|(lower, upper, share, distinct)| {
            cumulative += share;
            HistogramBucket {
                lower: lower.to_string().into_bytes().into(),
                upper: upper.to_string().into_bytes().into(),
                cumulative,
                distinct: *distinct,
            }
        });
        Histogram {
            kind: HistogramType::Int,
            singleton: false,
            buckets: buckets.collect(),
            null_share: 0.0,
            collation: CollationId::BINARY,
            buckets_specified: 100,
            auto_update: true,
            sampling_rate: 1.0,
            updated_us: 0,
        }
    }

    fn near(found: Option<f64>, wanted: f64) {
        let found = found.expect("a share");
        assert!((found - wanted).abs() < wanted * 1e-6, "{found}, {wanted}");
    }

    #[test]
    fn uniform_columns_join_by_their_values() {
        let key = histogram(&[(1, 500, 0.5, 500), (501, 1000, 0.5, 500)]);
        let other = histogram(&[(1, 1000, 1.0, 1000)]);
        let joint = JointShares::of(&[&key, &other]).expect("shares");
        near(joint.keeps(0b01, 1), 1.0 / 1000.0);
        near(joint.keeps(0b10, 0), 1.0 / 1000.0);
    }

    #[test]
    fn frequent_values_join_often() {
        let a = histogram(&[(1, 1, 0.5, 1), (2, 1000, 0.5, 999)]);
        let b = histogram(&[(1, 1, 0.2, 1), (2, 1000, 0.8, 999)]);
        let joint = JointShares::of(&[&a, &b, &a]).expect("shares");
        let pair = 0.5 * 0.2 + 0.5 * 0.8 / 999.0;
        near(joint.keeps(0b001, 1), pair);
        // The rows that have joined have the frequent value, so the third column joins more often.
        let all = 0.5 * 0.2 * 0.5 + 0.5 * 0.8 * 0.5 / 999.0 / 999.0;
        near(joint.keeps(0b011, 2), all / pair);
        // A unique column keeps its share, after any other joins.
        let key = histogram(&[(1, 1000, 1.0, 1000)]);
        let joint = JointShares::of(&[&a, &b, &key]).expect("shares");
        near(joint.keeps(0b011, 2), 1.0 / 1000.0);
    }

    #[test]
    fn columns_without_common_values_do_not_join() {
        let a = histogram(&[(1, 10, 1.0, 10)]);
        let b = histogram(&[(11, 20, 1.0, 10)]);
        let joint = JointShares::of(&[&a, &b, &a]).expect("shares");
        assert_eq!(joint.keeps(0b01, 1), Some(0.0));
        assert_eq!(joint.keeps(0b11, 2), None);
        assert!(JointShares::of(&[&a]).is_none());
    }
}
