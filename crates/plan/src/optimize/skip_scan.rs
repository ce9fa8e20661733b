//! Skip scans: reads of an index whose first parts no condition restricts, and that have few
//! distinct values. The executor goes from one of these values to the next by a descent of the
//! tree.
//!
//! ```text
//!   index (a, b), b = 5                    ─▶  for each a: the rows with b = 5
//!   index (a, b), SELECT DISTINCT a        ─▶  for each a: one row
//!   index (a, b), MIN(b), MAX(b) by a      ─▶  for each a: its first and its last row
//! ```

use super::candidate::{Candidate, Chooser, DESCENT, LOOKUP_ROW, SCAN_ROW, allows, path};
use super::condition::ColumnValues;
use super::joins::orders_like_key;
use crate::logical::clauses::{AggFunc, Aggregate};
use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind};
use crate::logical::func::is_volatile;
use crate::logical::mode::Switches;
use crate::logical::query::IndexHints;
use crate::physical::{AccessKind, Block, RangePart, SkipRows, SkipScan};

/// The descents for each value: one finds it, one or more read its rows.
const DESCENTS: f64 = 2.0;
/// The number of equal values that one column of unknown distinct values is expected to have.
const UNKNOWN_DISTINCT: f64 = 10.0;

/// The columns that a block needs, if rows with equal values of them make no difference.
pub(super) struct DistinctRows<'b> {
    aggregates: &'b [Aggregate],
    keys: &'b [Expr],
}

/// Whether one row of several equal ones is enough for a block.
pub(super) fn distinct_rows<'b>(
    cx: &PlanCx<'_>,
    block: &'b Block,
    conditions: &[&Expr],
) -> Option<DistinctRows<'b>> {
    if block.tables.len() != 1 || block.group.is_none() && !block.distinct {
        return None;
    }
    if !block.windows.is_empty() || !block.subqueries.is_empty() {
        return None;
    }
    let tame = |e: &Expr| !is_volatile(cx.funcs, e);
    if !conditions.iter().all(|e| tame(e)) {
        return None;
    }
    let Some(group) = &block.group else {
        let distinct = block.distinct && block.select.iter().all(tame);
        return distinct.then_some(DistinctRows {
            aggregates: &[],
            keys: &[],
        });
    };
    let is_insensitive = |a: &Aggregate| {
        let by_func = matches!(
            a.func,
            AggFunc::Min | AggFunc::Max | AggFunc::BitAnd | AggFunc::BitOr | AggFunc::Any
        );
        (by_func || a.distinct) && a.order.is_empty() && a.args.iter().all(tame)
    };
    let insensitive = group.aggregates.iter().all(is_insensitive);
    (insensitive && !group.rollup && group.keys.iter().all(tame)).then_some(DistinctRows {
        aggregates: &group.aggregates,
        keys: &group.keys,
    })
}

impl DistinctRows<'_> {
    /// Whether `column` is read as an argument of MIN or MAX only. Returns which of them.
    fn ends_of(&self, column: usize) -> Option<(bool, bool)> {
        let is_column = |e: &Expr| {
            e.as_column()
                .is_some_and(|at| usize::from(at.column) == column)
        };
        let reads = |e: &Expr| e.any(&mut |e| is_column(e));
        let (mut min, mut max) = (false, false);
        for aggregate in self.aggregates {
            match (aggregate.func, aggregate.args.as_slice()) {
                (AggFunc::Min, [arg]) if is_column(arg) => min = true,
                (AggFunc::Max, [arg]) if is_column(arg) => max = true,
                (_, args) if args.iter().any(reads) => return None,
                _ => {}
            }
        }
        (!self.keys.iter().any(reads)).then_some((min, max))
    }
}

impl Chooser<'_> {
    /// The skip scans. `distinct`: one row of several equal ones is enough.
    pub(super) fn by_skip(
        &self,
        cx: &PlanCx<'_>,
        hints: &IndexHints,
        distinct: Option<&DistinctRows<'_>>,
    ) -> Vec<Candidate> {
        let block = self.block;
        let locks = block.lock.of_slot(self.slot.into()).is_some() || block.changed != 0;
        if locks || self.stats.is_none() {
            return Vec::new();
        }
        let on = cx.switches.has(Switches::SKIP_SCAN) || hints.skip_scan.is_forced();
        let mut found = Vec::new();
        for (i, index) in self.def.indexes.iter().enumerate() {
            let plain = index.fulltext().is_none() && self.def.array_part(index).is_none();
            if !plain || !allows(hints, i) {
                continue;
            }
            if on && hints.skip_scan.allows(i) && index.parts.len() > 1 {
                found.extend(self.skip_to_values(i));
            }
            found.extend(distinct.and_then(|distinct| self.skip_to_ends(i, distinct)));
        }
        found
    }

    /// The estimated number of different values of the first `parts` parts of index `i`, each of
    /// which is a whole column.
    fn distinct_prefixes(&self, i: usize, parts: usize) -> Option<f64> {
        let whole = |p: &nfold_catalog::IndexPart| p.prefix_len.is_none();
        let index = &self.def.indexes[i];
        if !index.parts.iter().take(parts).all(whole) {
            return None;
        }
        let distinct = &self.stats?.indexes.get(i)?.distinct;
        distinct
            .get(parts - 1)
            .copied()
            .filter(|&n| n > 0)
            .map(|n| n as f64)
    }

    /// A skip scan to the values that conditions allow for a part of index `i` after the first.
    fn skip_to_values(&self, i: usize) -> Option<Candidate> {
        let index = &self.def.indexes[i];
        let restricted = |column: usize| self.restricts(column);
        let parts = index.parts.iter().position(|p| restricted(p.column))?;
        if parts == 0 || index.parts[parts].prefix_len.is_some() {
            return None;
        }
        let column = index.parts[parts].column;
        let prefixes = self.distinct_prefixes(i, parts)?;
        let (kind, values, share) = match self.point_on(column, false) {
            Some((_, part, count, _)) => {
                let distinct = self.stats?.columns.get(column).copied().filter(|&n| n > 0);
                let distinct = distinct.map_or(UNKNOWN_DISTINCT, |n| n as f64);
                let share = (count as f64 / distinct).min(1.0);
                (AccessKind::Points(vec![part]), count as f64, share)
            }
            None => {
                let (range, ..) = self.range_on(column, false)?;
                let bounded = range.lo.is_some() && range.hi.is_some() || range.like.is_some();
                let share = match bounded {
                    true => 0.05,
                    false if range.not_null => 0.9,
                    false => 0.3333,
                };
                let prefix = Vec::new();
                (AccessKind::Range { prefix, range }, 1.0, share)
            }
        };
        let own = self.usable.iter().filter(|e| self.is_on(e, column));
        let known = self.histograms.shares(own.copied());
        let known: Option<f64> = known
            .iter()
            .try_fold(1.0, |all, share| Some(all * (*share)?));
        let share = known.map_or(share, |known| known.min(1.0));
        let rows = (self.rows * share).max(1.0);
        let covering = i == 0 || self.covering(i);
        let row = if covering { SCAN_ROW } else { LOOKUP_ROW };
        let scan = SkipScan {
            parts,
            rows: SkipRows::Values(kind),
            most: self.most_prefixes(),
        };
        Some(Candidate {
            access: path(i, i != 0 && covering, AccessKind::Skip(Box::new(scan))),
            rows,
            cost: prefixes * (DESCENTS - 1.0 + values) * DESCENT + rows * row,
        })
    }

    /// A skip scan to the first and last rows of the values of the first parts of index `i`.
    fn skip_to_ends(&self, i: usize, needs: &DistinctRows<'_>) -> Option<Candidate> {
        if i != 0 && !self.covering(i) {
            return None;
        }
        let parts = &self.def.indexes[i].parts;
        let used = || (0..self.used.len()).filter(|&c| self.used[c]);
        let within = |n: usize, column: usize| parts[..n].iter().any(|p| p.column == column);
        let (n, ends) = (1..=parts.len()).find_map(|n| {
            let mut outside = used().filter(|&column| !within(n, column));
            let Some(column) = outside.next() else {
                return Some((n, None));
            };
            let next = parts
                .get(n)
                .filter(|p| p.column == column && p.prefix_len.is_none())?;
            let definition = &self.def.columns[column];
            // NULL comes last in descending order.
            let ordered =
                orders_like_key(&definition.ty.kind) && !(next.desc && definition.nullable);
            let alone = outside.next().is_none() && !self.reads(column);
            let (min, max) = needs.ends_of(column).filter(|_| ordered && alone)?;
            Some((n, Some(if next.desc { (max, min) } else { (min, max) })))
        })?;
        // A row for each key is no better than a scan.
        let prefixes = self.distinct_prefixes(i, n)?;
        let (min, max) = ends.unwrap_or((false, false));
        // NULL comes first in the index, and MIN ignores it. In descending order MIN is last.
        let nullable = min && self.def.columns[parts[n].column].nullable;
        let range = RangePart {
            not_null: true,
            ..RangePart::default()
        };
        let prefix = Vec::new();
        let first = match (min, max) {
            (false, true) => AccessKind::Empty,
            _ if nullable => AccessKind::Range { prefix, range },
            _ => AccessKind::Full,
        };
        let any = nullable && !max;
        let reads = f64::from(u8::from(min || !max) + u8::from(any) + u8::from(max));
        let rows = SkipRows::Ends {
            first,
            any,
            last: max,
        };
        let scan = SkipScan {
            parts: n,
            rows,
            most: self.most_prefixes(),
        };
        Some(Candidate {
            access: path(i, i != 0, AccessKind::Skip(Box::new(scan))),
            rows: prefixes * reads,
            cost: prefixes * (1.0 + reads) * 1.5 * DESCENT,
        })
    }

    /// The number of values beyond which a scan costs less.
    fn most_prefixes(&self) -> usize {
        (self.rows * SCAN_ROW / (DESCENTS * DESCENT)).max(16.0) as usize
    }

    /// Whether a condition restricts `column` to values or a range.
    fn restricts(&self, column: usize) -> bool {
        let usable = |values: &ColumnValues| match values {
            ColumnValues::Points { part, .. } => !part.may_scan(),
            ColumnValues::Range(_) => true,
            ColumnValues::Ranges(_) => false,
        };
        self.values
            .iter()
            .any(|(_, on)| on.column == column && usable(&on.values))
    }

    /// Whether a condition reads `column`.
    fn reads(&self, column: usize) -> bool {
        self.usable.iter().any(|e| self.is_on(e, column))
    }

    fn is_on(&self, e: &Expr, column: usize) -> bool {
        e.any(&mut |e| match &e.kind {
            ExprKind::Column(at) => at.table == self.slot && usize::from(at.column) == column,
            _ => false,
        })
    }
}
