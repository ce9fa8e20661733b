//! The share of rows that a condition keeps, by the histogram of its column. The value that the
//! column is compared with must be known while planning: a constant, or a literal of the statement,
//! which the plan then depends on.

use std::cmp::Ordering;

use nfold_catalog::{Histogram, HistogramBucket, HistogramType};
use nfold_sql::ast::{BinaryOp, IsTest};
use nfold_types::Value;
use nfold_types::convert::number::parse_double;

use crate::logical::context::PlanCx;
use crate::logical::expr::{ColumnAt, Expr, ExprKind};
use crate::physical::{Block, TableSource};

/// The smallest share: the table may have changed since the histogram was made.
const SHARE_MIN: f64 = 1e-4;

/// What a histogram says about a condition.
#[derive(Debug, Clone, Copy, PartialEq)]
enum HistogramShare {
    /// The share of the rows.
    Share(f64),
    /// The rows between two shares, in the order of the column.
    Range { from: f64, to: f64 },
}

/// For each condition, the share of rows that it keeps, where a histogram tells. Conditions that
/// bound one column count once, together: with the first of them, and the others keep all rows.
pub(super) fn shares<'e>(
    cx: &PlanCx<'_>,
    block: &Block,
    conditions: impl Iterator<Item = &'e Expr>,
) -> Vec<Option<f64>> {
    let mut ranges: Vec<(ColumnAt, usize, f64, f64)> = Vec::new();
    let mut shares: Vec<Option<f64>> = Vec::new();
    for (n, e) in conditions.enumerate() {
        shares.push(match kept(cx, block, e) {
            None => None,
            Some((_, HistogramShare::Share(share))) => Some(share.max(SHARE_MIN)),
            Some((at, HistogramShare::Range { from, to })) => {
                match ranges.iter_mut().find(|range| range.0 == at) {
                    Some(range) => (range.2, range.3) = (range.2.max(from), range.3.min(to)),
                    None => ranges.push((at, n, from, to)),
                }
                Some(1.0)
            }
        });
    }
    for (_, n, from, to) in ranges {
        shares[n] = Some((to - from).max(SHARE_MIN));
    }
    shares
}

/// What a condition keeps of a column's rows.
fn kept(cx: &PlanCx<'_>, block: &Block, e: &Expr) -> Option<(ColumnAt, HistogramShare)> {
    match &e.kind {
        ExprKind::Compare { op, sides, .. } => {
            let [a, b] = &**sides;
            let (column, op, value) = match (histogram_of(block, a), histogram_of(block, b)) {
                (Some(column), None) => (column, *op, b),
                (None, Some(column)) => (column, mirrored(*op), a),
                _ => return None,
            };
            let (at, histogram) = column;
            Some((at, compared(histogram, op, &value_of(cx, value)?)?))
        }
        ExprKind::Between { parts, negated, .. } => {
            let (at, histogram) = histogram_of(block, &parts[0])?;
            let from = below(histogram, &value_of(cx, &parts[1])?, false)?;
            let to = below(histogram, &value_of(cx, &parts[2])?, true)?;
            let outside = 1.0 - histogram.null_share - (to - from).max(0.0);
            let kept = match negated {
                true => HistogramShare::Share(outside),
                false => HistogramShare::Range { from, to },
            };
            Some((at, kept))
        }
        ExprKind::In {
            expr,
            list,
            negated,
        } => {
            let (at, histogram) = histogram_of(block, expr)?;
            let one = |(_, e): &(_, Expr)| equal(histogram, &value_of(cx, e)?);
            let all = list.iter().map(one).sum::<Option<f64>>()?;
            let known = 1.0 - histogram.null_share;
            let share = match negated {
                true => known - all,
                false => all.min(known),
            };
            Some((at, HistogramShare::Share(share)))
        }
        ExprKind::Is {
            expr,
            test: IsTest::Null,
            negated,
        } => {
            let (at, histogram) = histogram_of(block, expr)?;
            let share = match negated {
                true => 1.0 - histogram.null_share,
                false => histogram.null_share,
            };
            Some((at, HistogramShare::Share(share)))
        }
        _ => None,
    }
}

/// The histogram of a column.
fn histogram_of<'b>(block: &'b Block, e: &Expr) -> Option<(ColumnAt, &'b Histogram)> {
    let at = e.as_column()?;
    let TableSource::Table(def) = &block.tables.get(usize::from(at.table))?.source else {
        return None;
    };
    let column = def.columns.get(usize::from(at.column))?;
    Some((at, column.histogram.as_deref()?))
}

fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        other => other,
    }
}

/// The value of a constant or of a literal.
fn value_of(cx: &PlanCx<'_>, e: &Expr) -> Option<Value> {
    match &e.kind {
        ExprKind::Const(value) => Some(value.clone()),
        ExprKind::Param(n) => cx.literals?.read(*n),
        _ => None,
    }
}

fn compared(h: &Histogram, op: BinaryOp, value: &Value) -> Option<HistogramShare> {
    let known = 1.0 - h.null_share;
    let range = |from, to| Some(HistogramShare::Range { from, to });
    match op {
        BinaryOp::Eq | BinaryOp::NullSafeEq => Some(HistogramShare::Share(equal(h, value)?)),
        BinaryOp::Ne => Some(HistogramShare::Share(known - equal(h, value)?)),
        BinaryOp::Lt => range(0.0, below(h, value, false)?),
        BinaryOp::Le => range(0.0, below(h, value, true)?),
        BinaryOp::Gt => range(below(h, value, true)?, known),
        BinaryOp::Ge => range(below(h, value, false)?, known),
        _ => None,
    }
}

/// The share of rows with this value.
fn equal(h: &Histogram, value: &Value) -> Option<f64> {
    let mut before = 0.0;
    for bucket in &h.buckets {
        if order(h, &bucket.upper, value)? != Ordering::Less {
            let outside = order(h, &bucket.lower, value)? == Ordering::Greater;
            let share = (bucket.cumulative - before) / bucket.distinct.max(1) as f64;
            return Some(if outside { 0.0 } else { share });
        }
        before = bucket.cumulative;
    }
    Some(0.0)
}

/// The share of rows with a smaller value, or an equal one if `inclusive`.
fn below(h: &Histogram, value: &Value, inclusive: bool) -> Option<f64> {
    let mut before = 0.0;
    for bucket in &h.buckets {
        match order(h, &bucket.upper, value)? {
            Ordering::Less => before = bucket.cumulative,
            Ordering::Equal if inclusive => return Some(bucket.cumulative),
            _ => {
                let share = bucket.cumulative - before;
                return Some(before + share * part_below(h, bucket, value)?);
            }
        }
    }
    Some(before)
}

/// The part of a bucket's rows that lies below a value, which is at most its upper bound.
fn part_below(h: &Histogram, bucket: &HistogramBucket, value: &Value) -> Option<f64> {
    if order(h, &bucket.lower, value)? != Ordering::Less {
        return Some(0.0);
    }
    let last = 1.0 - 1.0 / bucket.distinct.max(1) as f64;
    let (lower, upper) = (place_of(h, &bucket.lower), place_of(h, &bucket.upper));
    let (Some(lower), Some(upper), Some(at)) = (lower, upper, place_of_value(h, value)) else {
        return Some(0.5);
    };
    Some(((at - lower) / (upper - lower)).clamp(0.0, last))
}

/// How a bound of a bucket compares with a value. `None`: the types do not fit.
fn order(h: &Histogram, bound: &[u8], value: &Value) -> Option<Ordering> {
    if h.kind == HistogramType::String {
        return match value {
            Value::Bytes(text) if text.is_ascii() => Some(h.collation.known().compare(bound, text)),
            _ => None,
        };
    }
    place_of(h, bound)?.partial_cmp(&place_of_value(h, value)?)
}

/// A bound as a number, in the order of the values; strings have none.
fn place_of(h: &Histogram, bound: &[u8]) -> Option<f64> {
    match h.kind {
        HistogramType::String => None,
        HistogramType::Date | HistogramType::Time | HistogramType::DateTime => {
            Some(temporal_place(bound))
        }
        _ => Some(parse_double(bound).value),
    }
}

/// The same for a value that a column is compared with.
fn place_of_value(h: &Histogram, value: &Value) -> Option<f64> {
    let temporal = matches!(
        h.kind,
        HistogramType::Date | HistogramType::Time | HistogramType::DateTime
    );
    match (h.kind, value) {
        (HistogramType::String | HistogramType::Enum | HistogramType::Set, _) => None,
        (_, Value::Bytes(text)) if temporal => Some(temporal_place(text)),
        _ if temporal => None,
        (_, Value::Int(n)) => Some(*n as f64),
        (_, Value::UInt(n)) => Some(*n as f64),
        (_, Value::Double(n)) => Some(*n),
        (_, Value::Decimal(n)) => Some(n.to_f64()),
        (_, Value::Bytes(text)) => Some(parse_double(text).value),
        _ => None,
    }
}

/// The parts of a date or time and the largest value of each, from years to microseconds. Of a TIME
/// the hours stand in the place of the years.
const PARTS: [f64; 7] = [1.0, 13.0, 32.0, 60.0, 60.0, 60.0, 1e6];

/// The text of a date or time as a number that grows with it.
fn temporal_place(text: &[u8]) -> f64 {
    let mut parts = text.split(|b| !b.is_ascii_digit());
    PARTS.iter().fold(0.0, |place, most| {
        let part = parts
            .next()
            .map_or(0.0, |digits| parse_double(digits).value);
        place * most + part
    })
}

#[cfg(test)]
mod tests {
    use nfold_types::CollationId;

    use super::*;

    fn histogram(
        kind: HistogramType,
        singleton: bool,
        list: &[(&str, &str, f64, u64)],
    ) -> Histogram {
        let bucket =
            |(lower, upper, cumulative, distinct): &(&str, &str, f64, u64)| HistogramBucket {
                lower: lower.as_bytes().into(),
                upper: upper.as_bytes().into(),
                cumulative: *cumulative,
                distinct: *distinct,
            };
        Histogram {
            kind,
            singleton,
            buckets: list.iter().map(bucket).collect(),
            null_share: 0.25,
            collation: CollationId::UTF8MB4_0900_AI_CI,
            buckets_specified: 100,
            auto_update: false,
            sampling_rate: 1.0,
            updated_us: 0,
        }
    }

    fn text(text: &str) -> Value {
        Value::Bytes(text.into())
    }

    #[test]
    fn single_values_have_exact_shares() {
        let list = [("5", "5", 0.5, 1), ("7", "7", 0.75, 1)];
        let h = histogram(HistogramType::Int, true, &list);
        assert_eq!(equal(&h, &Value::Int(5)), Some(0.5));
        assert_eq!(equal(&h, &Value::Int(6)), Some(0.0));
        assert_eq!(equal(&h, &Value::Int(9)), Some(0.0));
        assert_eq!(below(&h, &Value::Int(5), false), Some(0.0));
        assert_eq!(below(&h, &Value::Int(5), true), Some(0.5));
        assert_eq!(below(&h, &Value::Int(7), false), Some(0.5));
        assert_eq!(below(&h, &Value::Int(70), false), Some(0.75));
        let above = compared(&h, BinaryOp::Gt, &Value::Int(5));
        assert_eq!(
            above,
            Some(HistogramShare::Range {
                from: 0.5,
                to: 0.75
            })
        );
        assert_eq!(
            compared(&h, BinaryOp::Ne, &Value::Int(7)),
            Some(HistogramShare::Share(0.5))
        );
    }

    #[test]
    fn bucket_is_divided_by_the_place_of_the_value() {
        let list = [("0", "100", 0.5, 50), ("200", "300", 0.75, 10)];
        let h = histogram(HistogramType::Double, false, &list);
        assert_eq!(below(&h, &Value::Double(25.0), false), Some(0.125));
        assert_eq!(below(&h, &Value::Int(150), true), Some(0.5));
        assert_eq!(equal(&h, &Value::Int(10)), Some(0.01));
        assert_eq!(equal(&h, &Value::Int(150)), Some(0.0));
    }

    #[test]
    fn dates_and_strings_are_ordered_as_in_the_column() {
        let dates = [
            ("2020-01-01", "2020-12-31", 0.5, 300),
            ("2021-01-01", "2021-12-31", 0.75, 300),
        ];
        let h = histogram(HistogramType::Date, false, &dates);
        assert_eq!(below(&h, &text("2021-01-01"), false), Some(0.5));
        let middle = below(&h, &text("2020-07-01 10:00"), false).expect("a share");
        assert!((0.2..0.3).contains(&middle), "{middle}");
        let names = [("abc", "Bcd", 0.5, 9), ("x", "z", 0.75, 5)];
        let h = histogram(HistogramType::String, false, &names);
        assert_eq!(below(&h, &text("C"), false), Some(0.5));
        assert_eq!(equal(&h, &text("Y")), Some(0.05));
        assert_eq!(equal(&h, &Value::Int(1)), None);
    }
}
