//! The share of rows that a condition keeps, by the histogram of its column. The value that the
//! column is compared with must be known while planning: a constant, or a literal of the statement,
//! which the plan then depends on.
//!
//! A histogram that a user made always counts. One that the statistics have sampled counts for
//! constants, and for literals in statements that cost more than a new plan for each of their
//! values.

use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::Arc;

use nfold_catalog::{ColumnDef, Histogram, HistogramBucket, HistogramType, TableDef, TableStats};
use nfold_sql::ast::{BinaryOp, IsTest};
use nfold_types::convert::number::parse_double;
use nfold_types::{TypeKind, Value};

use crate::logical::context::PlanCx;
use crate::logical::expr::{ColumnAt, Expr, ExprKind};
use crate::physical::{Block, TableSource};

/// The smallest share: the table may have changed since the histogram was made.
const SHARE_MIN: f64 = 1e-4;

/// The estimate of a histogram for a condition.
#[derive(Debug, Clone, Copy, PartialEq)]
enum HistogramShare {
    /// The share of the rows.
    Share(f64),
    /// The rows between two shares, in the order of the column.
    Range { from: f64, to: f64 },
}

/// The histogram of a column.
struct ColumnHistogram<'h> {
    at: ColumnAt,
    column: &'h ColumnDef,
    histogram: &'h Histogram,
    sampled: bool,
    /// Whether each value is in one row at most.
    unique: bool,
}

/// The histograms of a block's columns.
pub(super) struct Histograms<'s> {
    pub cx: &'s PlanCx<'s>,
    pub block: &'s Block,
    /// For each slot, the statistics with sampled histograms.
    stats: Vec<Option<Arc<TableStats>>>,
    /// Whether sampled histograms count for literals.
    literals: Cell<bool>,
    /// Whether they would have counted.
    untold: Cell<bool>,
}

impl<'s> Histograms<'s> {
    /// The histograms of a block's tables.
    pub fn new(cx: &'s PlanCx<'s>, block: &'s Block) -> Histograms<'s> {
        let stats = block.tables.iter().map(|slot| match &slot.source {
            TableSource::Table(def) => cx.info.stats(def.id),
            _ => None,
        });
        Histograms {
            cx,
            block,
            stats: stats.collect(),
            literals: Cell::new(false),
            untold: Cell::new(false),
        }
    }

    /// The statistics of slot `t`.
    pub fn stats(&self, t: usize) -> Option<&TableStats> {
        self.stats.get(t)?.as_deref()
    }

    /// From now on sampled histograms count for literals, and the plan serves their values alone.
    pub fn read_literals(&self) {
        self.literals.set(true);
    }

    /// Whether a sampled histogram would tell more about a literal.
    pub fn may_tell_more(&self) -> bool {
        self.untold.get() && !self.literals.get()
    }

    /// For each condition, the share of rows that it keeps, where a histogram tells. Conditions
    /// that bound one column count once, together: with the first of them, and the others keep all
    /// rows.
    pub fn shares<'e>(&self, conditions: impl Iterator<Item = &'e Expr>) -> Vec<Option<f64>> {
        let mut ranges: Vec<(ColumnAt, usize, f64, f64)> = Vec::new();
        let mut shares: Vec<Option<f64>> = Vec::new();
        for (n, e) in conditions.enumerate() {
            shares.push(match self.kept(e) {
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

    /// The share of a column's rows that a condition keeps.
    fn kept(&self, e: &Expr) -> Option<(ColumnAt, HistogramShare)> {
        match &e.kind {
            ExprKind::Compare { op, sides, .. } => {
                let [a, b] = &**sides;
                let (found, op, value) = match (a.as_column(), b.as_column()) {
                    (Some(_), None) => (self.of(a)?, *op, b),
                    (None, Some(_)) => (self.of(b)?, mirrored(*op), a),
                    _ => return None,
                };
                let value = self.value_of(&found, value, is_equality(op))?;
                Some((found.at, compared(found.histogram, op, &value)?))
            }
            ExprKind::Between { parts, negated, .. } => {
                let found = self.of(&parts[0])?;
                let histogram = found.histogram;
                let bound = |e| self.value_of(&found, e, false);
                let from = below(histogram, &bound(&parts[1])?, false)?;
                let to = below(histogram, &bound(&parts[2])?, true)?;
                let outside = 1.0 - histogram.null_share - (to - from).max(0.0);
                let kept = match negated {
                    true => HistogramShare::Share(outside),
                    false => HistogramShare::Range { from, to },
                };
                Some((found.at, kept))
            }
            ExprKind::In {
                expr,
                list,
                negated,
            } => {
                let found = self.of(expr)?;
                let one =
                    |(_, e): &(_, Expr)| equal(found.histogram, &self.value_of(&found, e, true)?);
                let all = list.iter().map(one).sum::<Option<f64>>()?;
                let known = 1.0 - found.histogram.null_share;
                let share = match negated {
                    true => known - all,
                    false => all.min(known),
                };
                Some((found.at, HistogramShare::Share(share)))
            }
            ExprKind::Like {
                expr,
                pattern,
                escape: None,
                negated,
                ..
            } => {
                let found = self.of(expr)?;
                let kind = found.histogram.kind;
                if kind != HistogramType::String || found.histogram.buckets.is_empty() {
                    return None;
                }
                let pattern = self.value_of(&found, pattern, false)?;
                let (from, to) = beginning(found.histogram, &pattern)?;
                let kept = match negated {
                    true => {
                        let known = 1.0 - found.histogram.null_share;
                        HistogramShare::Share(known - (to - from))
                    }
                    false => HistogramShare::Range { from, to },
                };
                Some((found.at, kept))
            }
            ExprKind::Is {
                expr,
                test: IsTest::Null,
                negated,
            } => {
                let found = self.of(expr)?;
                let share = match negated {
                    true => 1.0 - found.histogram.null_share,
                    false => found.histogram.null_share,
                };
                Some((found.at, HistogramShare::Share(share)))
            }
            _ => None,
        }
    }

    /// The histogram of a column, and whether each value is in one row at most.
    pub fn of_column(&self, at: ColumnAt) -> Option<(&Histogram, bool)> {
        self.of_place(at)
            .map(|found| (found.histogram, found.unique))
    }

    /// The histogram of a column. A column without one gets it when statistics are made next.
    fn of(&self, e: &Expr) -> Option<ColumnHistogram<'_>> {
        self.of_place(e.as_column()?)
    }

    fn of_place(&self, at: ColumnAt) -> Option<ColumnHistogram<'_>> {
        let slot = usize::from(at.table);
        let TableSource::Table(def) = &self.block.tables.get(slot)?.source else {
            return None;
        };
        let place = usize::from(at.column);
        let column = def.columns.get(place)?;
        let found = |histogram, sampled| ColumnHistogram {
            at,
            column,
            histogram,
            sampled,
            unique: is_unique(def, place),
        };
        let stats = self.stats.get(slot)?.as_deref();
        if let Some(made) = column.histogram.as_deref() {
            let newest = stats.and_then(|stats| stats.user_histogram(def, place));
            return Some(found(newest.unwrap_or(made), false));
        }
        let stats = stats?;
        match stats.histogram(place) {
            Some(sampled) => (!sampled.buckets.is_empty()).then(|| found(sampled, true)),
            None => {
                self.cx.info.want_histogram(def.id, place);
                None
            }
        }
    }

    /// The value of a constant or of a literal that a column is compared with. `equality`: the
    /// rows with this value are wanted.
    fn value_of(&self, found: &ColumnHistogram<'_>, e: &Expr, equality: bool) -> Option<Value> {
        let value = match &e.kind {
            ExprKind::Const(value) => value.clone(),
            ExprKind::Param(n) => {
                let literals = self.cx.literals?;
                // Statements with a few rows of a key should share a plan.
                if found.sampled && found.unique {
                    return None;
                }
                if found.sampled && !self.literals.get() {
                    self.untold.set(true);
                    return None;
                }
                literals.read(*n)?
            }
            _ => return None,
        };
        match (&found.column.ty.kind, value) {
            (TypeKind::Enum(_), Value::Bytes(name)) if equality => {
                let ty = &found.column.ty;
                let is_name = |n: &u64| {
                    let own = ty.enum_name(*n).unwrap_or("").as_bytes();
                    ty.collation.known().eq(own, &name)
                };
                (1..=u64::from(u16::MAX))
                    .take_while(|n| ty.enum_name(*n).is_some())
                    .find(is_name)
                    .map(Value::UInt)
            }
            // The order of members is not that of their numbers.
            (TypeKind::Enum(_) | TypeKind::Set(_), _) if !equality => None,
            (_, value) => Some(value),
        }
    }
}

fn is_equality(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Eq | BinaryOp::NullSafeEq | BinaryOp::Ne)
}

/// Whether a unique index has this column alone.
fn is_unique(def: &TableDef, column: usize) -> bool {
    let alone = |parts: &[nfold_catalog::IndexPart]| matches!(parts, [part] if part.column == column && part.prefix_len.is_none());
    def.indexes.iter().any(|i| i.is_unique() && alone(&i.parts))
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
    let Some((bucket, before)) = bucket_of(h, &|bound| order(h, bound, value), false)? else {
        return Some(0.0);
    };
    let outside = order(h, &bucket.lower, value)? == Ordering::Greater;
    let share = (bucket.cumulative - before) / bucket.distinct.max(1) as f64;
    Some(if outside { 0.0 } else { share })
}

/// The first bucket that does not lie below a value, and the share of rows before it. `inclusive`:
/// that has larger values. `order` compares a bound with the value; `None`: the types do not fit.
fn bucket_of<'h>(
    h: &'h Histogram,
    order: &dyn Fn(&[u8]) -> Option<Ordering>,
    inclusive: bool,
) -> Option<Option<(&'h HistogramBucket, f64)>> {
    if let Some(first) = h.buckets.first() {
        order(&first.upper)?;
    }
    let at = h
        .buckets
        .partition_point(|bucket| match order(&bucket.upper) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => inclusive,
            _ => false,
        });
    let before = at.checked_sub(1).map_or(0.0, |n| h.buckets[n].cumulative);
    Some(h.buckets.get(at).map(|bucket| (bucket, before)))
}

/// The share of rows with a smaller value, or an equal one if `inclusive`.
fn below(h: &Histogram, value: &Value, inclusive: bool) -> Option<f64> {
    let order = |bound: &[u8]| order(h, bound, value);
    below_by(h, &order, place_of_value(h, value), inclusive)
}

/// The same for any order; `place`: of the value, as a number.
fn below_by(
    h: &Histogram,
    order: &dyn Fn(&[u8]) -> Option<Ordering>,
    place: Option<f64>,
    inclusive: bool,
) -> Option<f64> {
    let Some((bucket, before)) = bucket_of(h, order, inclusive)? else {
        return Some(h.buckets.last().map_or(0.0, |last| last.cumulative));
    };
    let share = bucket.cumulative - before;
    let part = match (order(&bucket.lower)?, inclusive) {
        (Ordering::Greater, _) | (Ordering::Equal, false) => 0.0,
        _ => part_below(h, bucket, place),
    };
    Some(before + share * part)
}

/// The part of a bucket's rows that lies below a value between its bounds.
fn part_below(h: &Histogram, bucket: &HistogramBucket, place: Option<f64>) -> f64 {
    let last = 1.0 - 1.0 / bucket.distinct.max(1) as f64;
    let (lower, upper) = (place_of(h, &bucket.lower), place_of(h, &bucket.upper));
    match (lower, upper, place) {
        (Some(lower), Some(upper), Some(at)) => ((at - lower) / (upper - lower)).clamp(0.0, last),
        _ => 0.5,
    }
}

/// The strings that may match a pattern, between two shares: those that begin as it does.
fn beginning(h: &Histogram, pattern: &Value) -> Option<(f64, f64)> {
    let Value::Bytes(pattern) = pattern else {
        return None;
    };
    let end = pattern
        .iter()
        .position(|b| matches!(b, b'%' | b'_' | b'\\'));
    let start = &pattern[..end.unwrap_or(pattern.len())];
    if start.is_empty() || !start.is_ascii() {
        return None;
    }
    let collation = h.collation.known();
    let order = |bound: &[u8]| {
        let own = collation.char_prefix(bound, start.len());
        Some(collation.compare(own, start))
    };
    let from = below_by(h, &order, None, false)?;
    let to = below_by(h, &order, None, true)?;
    Some((from, to.max(from)))
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
pub(super) fn place_of(h: &Histogram, bound: &[u8]) -> Option<f64> {
    match h.kind {
        HistogramType::String => None,
        HistogramType::Date | HistogramType::Time | HistogramType::DateTime => {
            Some(temporal_place(bound))
        }
        HistogramType::Int | HistogramType::UInt => Some(integer_place(bound)),
        _ => Some(parse_double(bound).value),
    }
}

/// The value of an integer in text form.
fn integer_place(text: &[u8]) -> f64 {
    let integer = std::str::from_utf8(text).ok();
    match integer.and_then(|text| text.parse::<i64>().ok()) {
        Some(n) => n as f64,
        None => parse_double(text).value,
    }
}

/// The same for a value that a column is compared with.
fn place_of_value(h: &Histogram, value: &Value) -> Option<f64> {
    let temporal = matches!(
        h.kind,
        HistogramType::Date | HistogramType::Time | HistogramType::DateTime
    );
    match (h.kind, value) {
        (HistogramType::String, _) => None,
        (HistogramType::Enum | HistogramType::Set, Value::Bytes(_)) => None,
        (_, Value::Bytes(text)) if temporal => Some(temporal_place(text)),
        (_, Value::Date(at)) if temporal => Some(temporal_place(at.to_string().as_bytes())),
        (_, Value::DateTime(at)) if temporal => Some(temporal_place(at.to_string().as_bytes())),
        (_, Value::Time(at)) if temporal => Some(temporal_place(at.to_string().as_bytes())),
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
