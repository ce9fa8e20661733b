//! The access paths of one table: for each index, the conditions that it can use, and its cost.

use nfold_catalog::{IndexKind, TableDef, TableStats};
use nfold_sql::ast::BinaryOp;
use nfold_types::Value;

use super::condition::{ColumnValues, OnColumn, Reader, merge_range};
use super::histogram::Histograms;
use super::joins::{LIST_ROWS_MAX, SCAN_ROWS_MIN, UNKNOWN_ROWS};
use super::order::{self, WantedOrder};
use super::skip_scan;
use crate::logical::context::{ParamType, PlanCx};
use crate::logical::expr::{Expr, ExprKind};
use crate::logical::fulltext::MatchCall;
use crate::logical::query::IndexHints;
use crate::physical::{
    Access, AccessKind, Block, LOOKUP_COST, LOOKUP_ROW_COST, PointPart, RangePart, SCAN_ROW_COST,
};

/// The costs of a row read in order from a leaf, of a row looked up in the clustered index, and of
/// a descent of the tree, in microseconds.
pub(super) const SCAN_ROW: f64 = SCAN_ROW_COST;
pub(super) const LOOKUP_ROW: f64 = LOOKUP_ROW_COST;
pub(super) const DESCENT: f64 = LOOKUP_COST;

/// An access path by the values of a subquery costs at most this share of a scan: the executor
/// scans if the subquery returns too many values.
const SUBQUERY_LOOKUP_SHARE: f64 = 0.9;

/// The cost of one test of a disjunction, in microseconds, beyond this number of tests.
const TEST: f64 = 0.01;
const SHORT_TESTS: usize = 16;

/// An access path with its estimates.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub access: Access,
    /// The number of rows that it reads.
    pub rows: f64,
    pub cost: f64,
}

/// Whether index `i` has all columns in `used`, so that the clustered index need not be read. False
/// for the clustered index itself.
pub(crate) fn covers(def: &TableDef, i: usize, used: &[bool]) -> bool {
    // A read of a multi-valued index would return a row for each of its elements.
    if def.indexes[i].is_clustered() || def.array_part(&def.indexes[i]).is_some() {
        return false;
    }
    let own = |i: usize, c: usize| {
        def.indexes[i]
            .parts
            .iter()
            .any(|p| p.column == c && p.prefix_len.is_none())
    };
    used.iter()
        .enumerate()
        .all(|(c, &u)| !u || own(i, c) || own(0, c))
}

/// An access path that implies no condition.
pub(super) fn path(index: usize, covering: bool, kind: AccessKind) -> Access {
    Access {
        index,
        covering,
        reverse: false,
        kind,
        implied: Vec::new(),
        possible: Vec::new(),
    }
}

/// A scan of a whole index.
fn full_scan(index: usize, covering: bool) -> Access {
    path(index, covering, AccessKind::Full)
}

/// Finds the access paths of one table.
pub(super) struct Chooser<'c> {
    pub block: &'c Block,
    pub slot: u16,
    pub def: &'c TableDef,
    pub stats: Option<&'c TableStats>,
    pub histograms: &'c Histograms<'c>,
    pub rows: f64,
    pub used: Vec<bool>,
    /// Whether the statement locks rows exclusively, so that each row must be read. A shared lock
    /// of a covering index lies on the index entry alone.
    pub(super) locks_rows: bool,
    /// Usable conditions that restrict one column, each with its position in `usable`.
    pub values: Vec<(usize, OnColumn)>,
    row_values: Vec<RowValues>,
    pub usable: &'c [&'c Expr],
}

/// IN over row constructors: the position of the condition in `usable`, the column and the keys of
/// each member, and the number of rows in the list.
type RowValues = (usize, Vec<(usize, PointPart)>, usize);

/// Chooses the cheapest access path of slot `t`. `usable` are the conditions whose other tables are
/// already placed.
#[allow(clippy::too_many_arguments)]
pub(crate) fn choose(
    cx: &PlanCx<'_>,
    block: &Block,
    t: usize,
    def: &TableDef,
    histograms: &Histograms<'_>,
    usable: &[&Expr],
    hints: &IndexHints,
    wanted: Option<WantedOrder>,
) -> Candidate {
    let chooser = Chooser::new(cx, block, t, def, histograms, usable);
    let mut possible = Vec::new();
    let mut all = Vec::new();
    for i in 0..def.indexes.len() {
        if !allows(hints, i) {
            continue;
        }
        if let Some(c) = chooser.by_search(cx, i).or_else(|| chooser.by_key_parts(i)) {
            possible.push(i);
            all.push(c);
        }
    }
    let wanted_paths = hints.index_merge.is_forced() || hints.skip_scan.is_forced();
    // No other path is cheaper than a lookup of one row.
    let mut forced = false;
    if wanted_paths || !all.iter().any(|c| c.rows <= 1.0) {
        let several = chooser.by_several(cx, hints, &all);
        possible.extend(
            several
                .iter()
                .flat_map(|c| c.access.kind.indexes(c.access.index)),
        );
        possible.sort_unstable();
        possible.dedup();
        forced = wanted_paths && !several.is_empty();
        if forced {
            all.clear();
        }
        all.extend(several);
    }
    let scan = chooser.scans(hints);
    let scanned = scan.iter().map(|c| c.cost).fold(f64::MAX, f64::min);
    // The number of values of a subquery is known only at run time, and a scan is still possible
    // then.
    for c in all.iter_mut().filter(|c| c.access.kind.has_subquery()) {
        c.cost = c.cost.min(scanned * SUBQUERY_LOOKUP_SHARE);
    }
    if !forced && !hints.force || all.is_empty() {
        all.extend(scan);
    }
    for c in &mut all {
        order::add_order_cost(block, t, def, c, wanted, chooser.rows, usable);
        c.access.possible.clone_from(&possible);
    }
    all.into_iter()
        .min_by(|a, b| a.cost.total_cmp(&b.cost))
        .unwrap_or_else(|| Candidate {
            access: full_scan(0, false),
            rows: chooser.rows,
            cost: chooser.rows,
        })
}

/// The search whose rows are the only ones that pass a condition: the condition itself, or one side
/// of a comparison that no rank of 0 passes.
fn matching<'e>(cx: &PlanCx<'_>, e: &'e Expr) -> Option<&'e Expr> {
    let ExprKind::Compare { op, sides, .. } = &e.kind else {
        return Some(e);
    };
    let (search, bound, greater) = match op {
        BinaryOp::Gt => (&sides[0], &sides[1], true),
        BinaryOp::Ge => (&sides[0], &sides[1], false),
        BinaryOp::Lt => (&sides[1], &sides[0], true),
        BinaryOp::Le => (&sides[1], &sides[0], false),
        _ => return None,
    };
    let value = match &bound.kind {
        ExprKind::Const(value) => value.clone(),
        ExprKind::Param(n) => cx.literals?.read(*n)?,
        _ => return None,
    };
    let number = match value {
        Value::Int(n) => n as f64,
        Value::UInt(n) => n as f64,
        Value::Double(n) => n,
        Value::Decimal(n) => n.to_f64(),
        _ => return None,
    };
    (number > 0.0 || greater && number == 0.0).then_some(search)
}

/// Whether index hints allow index `i`.
pub(super) fn allows(hints: &IndexHints, i: usize) -> bool {
    hints.only.as_ref().is_none_or(|only| only.contains(&i)) && !hints.ignore.contains(&i)
}

impl<'c> Chooser<'c> {
    /// A chooser for slot `t`, whose rows pass the conditions `usable`.
    pub(super) fn new(
        cx: &PlanCx<'_>,
        block: &'c Block,
        t: usize,
        def: &'c TableDef,
        histograms: &'c Histograms<'c>,
        usable: &'c [&'c Expr],
    ) -> Chooser<'c> {
        let list_count = |n: u32| match cx.params.get(n as usize) {
            Some(ParamType::List { count, .. }) => (*count).min(LIST_ROWS_MAX),
            _ => 1,
        };
        let reader = Reader {
            block,
            t,
            list_count: &list_count,
        };
        let values = usable
            .iter()
            .enumerate()
            .filter_map(|(n, c)| reader.read(c).map(|s| (n, s)))
            .collect();
        let row_values = usable
            .iter()
            .enumerate()
            .filter_map(|(n, c)| reader.read_rows(c).map(|(parts, count)| (n, parts, count)))
            .collect();
        // Zero rows mean that the table has not been counted, not that it is empty.
        let stats = histograms.stats(t).filter(|s| s.rows > 0);
        Chooser {
            histograms,
            block,
            slot: t as u16,
            def,
            stats,
            rows: stats.map_or(UNKNOWN_ROWS, |s| (s.rows as f64).max(1.0)),
            used: block.tables[t].used.clone(),
            locks_rows: block.locks_to_change(t),
            values,
            row_values,
            usable,
        }
    }
}

impl Chooser<'_> {
    /// Index merges and skip scans. `single` are the other paths by an index. If hints demand a
    /// kind, paths of that kind only.
    fn by_several(
        &self,
        cx: &PlanCx<'_>,
        hints: &IndexHints,
        single: &[Candidate],
    ) -> Vec<Candidate> {
        let merges = self.by_merge(cx, hints, single);
        if hints.index_merge.is_forced() && !merges.is_empty() {
            return merges;
        }
        let distinct = skip_scan::distinct_rows(cx, self.block, self.usable);
        let skips = self.by_skip(cx, hints, distinct.as_ref());
        if hints.skip_scan.is_forced() && !skips.is_empty() {
            return skips;
        }
        match hints.index_merge.is_forced() || hints.skip_scan.is_forced() {
            true => Vec::new(),
            false => merges.into_iter().chain(skips).collect(),
        }
    }

    pub(super) fn covering(&self, i: usize) -> bool {
        !self.locks_rows && covers(self.def, i, &self.used)
    }

    /// Full scans: of the clustered index, and of covering indexes.
    fn scans(&self, hints: &IndexHints) -> Vec<Candidate> {
        let mut out = Vec::new();
        for i in 0..self.def.indexes.len() {
            let covering = i > 0 && self.covering(i);
            let allowed = i == 0 || allows(hints, i);
            if (i == 0 || covering) && allowed {
                let width = if covering { 0.8 } else { 1.0 };
                let row = SCAN_ROW * width + self.long_conditions_cost();
                out.push(Candidate {
                    access: full_scan(i, covering),
                    rows: self.rows,
                    cost: DESCENT + self.rows.max(SCAN_ROWS_MIN) * row,
                });
            } else if allowed && i > 0 && self.locking_free_order(i) {
                out.push(Candidate {
                    access: full_scan(i, false),
                    rows: self.rows,
                    cost: DESCENT + self.rows.max(SCAN_ROWS_MIN) * LOOKUP_ROW,
                });
            }
        }
        out
    }

    /// The cost of testing long disjunctions on one row, in microseconds.
    fn long_conditions_cost(&self) -> f64 {
        fn tests(e: &Expr) -> usize {
            match &e.kind {
                ExprKind::Or(list) | ExprKind::And(list) => list.iter().map(tests).sum(),
                _ => 1,
            }
        }
        let long = self.usable.iter().map(|e| tests(e));
        let more = long.map(|tests| tests.saturating_sub(SHORT_TESTS));
        more.sum::<usize>() as f64 * TEST
    }

    /// Whether a scan of a non-covering secondary index may pay off: it looks up each row, so only
    /// its order is of use.
    fn locking_free_order(&self, i: usize) -> bool {
        let index = &self.def.indexes[i];
        !self.block.order.is_empty()
            && index.kind != IndexKind::HiddenRowId
            && self.def.array_part(index).is_none()
    }

    /// The path by a full-text search in index `i` that is one of the conditions. As in MySQL, it
    /// is expected to find one row.
    fn by_search(&self, cx: &PlanCx<'_>, i: usize) -> Option<Candidate> {
        let index = &self.def.indexes[i];
        index.fulltext()?;
        let is_search = |e: &&Expr| {
            let call = MatchCall::of(cx.funcs, e);
            call.is_some_and(|call| {
                let own = call.words.as_column();
                call.target.index == index.id.0 && own.is_some_and(|at| at.table == self.slot)
            })
        };
        let mut searches = self.usable.iter().filter_map(|e| matching(cx, e));
        let search = searches.find(is_search)?.clone();
        Some(Candidate {
            access: path(i, false, AccessKind::Fulltext(Box::new(search))),
            rows: 1.0,
            cost: DESCENT + LOOKUP_ROW,
        })
    }

    /// The path by the first parts of index `i`, as far as conditions restrict them. The parts of
    /// the primary key follow those of a secondary index.
    pub(super) fn by_key_parts(&self, i: usize) -> Option<Candidate> {
        let index = &self.def.indexes[i];
        let mut points: Vec<PointPart> = Vec::new();
        let mut count = 1f64;
        let mut implied: Vec<usize> = Vec::new();
        let mut range: Option<(RangePart, bool, Vec<usize>)> = None;
        let mut ranges: Option<(Vec<RangePart>, usize, bool)> = None;
        // The condition on the first part, if it alone is restricted to values.
        let mut first = None;
        let mut at = 0;
        while at < index.parts.len() {
            let part = &index.parts[at];
            let prefix = part.prefix_len.is_some();
            if let Some((n, mut say, c, whole)) = self.point_on(part.column, at == 0) {
                first = first.or(Some(n)).filter(|_| at == 0);
                let values = matches!(say, PointPart::Subquery { .. });
                if let PointPart::Subquery { most, .. } | PointPart::Elements { most, .. } =
                    &mut say
                {
                    *most = self.most_values(i);
                }
                points.push(say);
                count *= c as f64;
                if whole && !prefix {
                    implied.push(n);
                }
                at += 1;
                if prefix || values {
                    break;
                }
                continue;
            }
            if let Some((n, parts, c, whole)) = self.rows_on(index, at) {
                at += parts.len();
                points.extend(parts);
                count *= c as f64;
                if whole {
                    implied.push(n);
                }
                continue;
            }
            if self.def.array_part(index).is_some() {
                break;
            }
            range = self.range_on(part.column, prefix);
            if range.is_none() && points.is_empty() {
                ranges = self.ranges_on(part.column, prefix);
            }
            break;
        }
        // An index without an entry for some rows finds only those that have an element.
        let array = self.def.array_part(index);
        if array.is_some_and(|part| points.len() <= part) {
            return None;
        }
        let exact = points.len() == index.parts.len()
            && index.is_unique()
            && index.parts.iter().all(|p| p.prefix_len.is_none());
        let per_key = self.rows_per_key(i, points.len());
        let covering = self.covering(i);
        // Only lookups in the clustered index may cost more than a scan.
        let contested = i != 0 && !covering;
        let (kind, rows, descents) = if let Some((r, whole, ns)) = range {
            if whole {
                implied.extend(ns);
            }
            let both = (r.lo.is_some() && r.hi.is_some()) || r.like.is_some();
            let base = if points.is_empty() {
                self.rows
            } else {
                count * per_key
            };
            let assumed = match both {
                true => 0.05,
                false if r.not_null => 0.9,
                false => 0.3333,
            };
            let known = contested.then(|| self.range_share(index.parts[at].column));
            let known = known.flatten();
            let rows = (base * known.unwrap_or(assumed)).max(1.0);
            (
                AccessKind::Range {
                    prefix: points,
                    range: r,
                },
                rows,
                count,
            )
        } else if !points.is_empty() {
            let known = first.filter(|_| contested && !exact && points.len() == 1);
            let known = known.and_then(|n: usize| self.known_share([self.usable[n]].into_iter()));
            let rows = match known {
                Some(share) => (self.rows * share).max(1.0),
                None if exact => count,
                None => (count * per_key).min(self.rows.max(1.0)),
            };
            (AccessKind::Points(points), rows, count)
        } else if let Some((list, n, whole)) = ranges {
            if whole {
                implied.push(n);
            }
            let rows = (self.rows * 0.05 * list.len() as f64)
                .min(self.rows)
                .max(1.0);
            let descents = list.len() as f64;
            (AccessKind::Ranges(list), rows, descents)
        } else {
            return None;
        };
        let row = if i == 0 || covering {
            SCAN_ROW
        } else {
            LOOKUP_ROW
        };
        implied.sort_unstable();
        implied.dedup();
        let implied = implied
            .into_iter()
            .map(|n| self.usable[n].clone())
            .collect();
        let access = Access {
            index: i,
            covering,
            reverse: false,
            kind,
            implied,
            possible: Vec::new(),
        };
        // A lookup in the clustered index costs a descent, and no less than a row of a scan.
        Some(Candidate {
            access,
            rows,
            cost: descents * DESCENT + rows * row,
        })
    }

    /// The share of rows that pass all of these conditions, if histograms tell about each.
    fn known_share<'e>(&self, conditions: impl Iterator<Item = &'e Expr>) -> Option<f64> {
        let shares = self.histograms.shares(conditions);
        let known: Option<f64> = shares
            .iter()
            .try_fold(1.0, |all, share| Some(all * (*share)?));
        known.filter(|_| !shares.is_empty())
    }

    /// The share of rows in the range of a column.
    fn range_share(&self, column: usize) -> Option<f64> {
        let bounds = self
            .values
            .iter()
            .filter(|(_, on)| on.column == column && matches!(on.values, ColumnValues::Range(_)));
        self.known_share(bounds.map(|(n, _)| self.usable[*n]))
    }

    fn rows_per_key(&self, i: usize, parts: usize) -> f64 {
        if parts == 0 {
            return self.rows;
        }
        let index = &self.def.indexes[i];
        if index.is_unique() && parts == index.parts.len() {
            return 1.0;
        }
        match self.stats {
            Some(s) if s.indexes.get(i).is_some_and(|x| !x.distinct.is_empty()) => {
                s.rows_per_key(i, parts)
            }
            _ => 2.0,
        }
    }

    /// The number of values of a subquery up to which index lookups cost less than a scan.
    fn most_values(&self, index: usize) -> usize {
        let row = match index == 0 || self.covering(index) {
            true => SCAN_ROW,
            false => LOOKUP_ROW,
        };
        (self.rows.max(SCAN_ROWS_MIN) * SCAN_ROW / (DESCENT + row)) as usize
    }

    /// The shortest list of values that a condition allows for a column. Returns the condition's
    /// position, the values, their number, and whether the list implies the whole condition.
    /// `first`: the column is the first one of the index, where the values of a subquery can be
    /// used too.
    pub(super) fn point_on(
        &self,
        column: usize,
        first: bool,
    ) -> Option<(usize, PointPart, usize, bool)> {
        let mut best: Option<(usize, PointPart, usize, bool)> = None;
        for (n, on) in &self.values {
            if on.column != column {
                continue;
            }
            if let ColumnValues::Points { part, count } = &on.values
                && (first || !matches!(part, PointPart::Subquery { .. }))
                && best.as_ref().is_none_or(|(_, _, c, _)| count < c)
            {
                best = Some((*n, part.clone(), *count, on.implied));
            }
        }
        best
    }

    /// A condition with row constructors over the parts of the index from `at` on, in any order: of
    /// several the one that gives the most parts. Returns its position, the parts, the number of
    /// rows, and whether the parts imply the whole condition.
    fn rows_on(
        &self,
        index: &nfold_catalog::IndexDef,
        at: usize,
    ) -> Option<(usize, Vec<PointPart>, usize, bool)> {
        let found = self.row_values.iter().map(|(n, parts, count)| {
            let wanted = index.parts[at..].iter().map_while(|w| {
                let own = |(c, _): &&(usize, PointPart)| *c == w.column && w.prefix_len.is_none();
                parts.iter().find(own).map(|(_, part)| part.clone())
            });
            let found: Vec<PointPart> = wanted.collect();
            let whole = found.len() == parts.len();
            (*n, found, *count, whole)
        });
        let found = found.filter(|(_, found, ..)| !found.is_empty());
        found.reduce(|a, b| if b.1.len() > a.1.len() { b } else { a })
    }

    pub(super) fn range_on(
        &self,
        column: usize,
        prefix: bool,
    ) -> Option<(RangePart, bool, Vec<usize>)> {
        let mut merged: Option<RangePart> = None;
        let mut taken = Vec::new();
        for (n, on) in &self.values {
            let ColumnValues::Range(r) = &on.values else {
                continue;
            };
            if on.column != column {
                continue;
            }
            let whole = match &mut merged {
                None => {
                    merged = Some(r.clone());
                    true
                }
                Some(m) => merge_range(m, r.clone()),
            };
            if whole && on.implied && !prefix {
                taken.push(*n);
            }
        }
        merged.map(|m| (m, true, taken))
    }

    fn ranges_on(&self, column: usize, prefix: bool) -> Option<(Vec<RangePart>, usize, bool)> {
        self.values.iter().find_map(|(n, on)| match &on.values {
            ColumnValues::Ranges(list) if on.column == column => {
                Some((list.clone(), *n, on.implied && !prefix))
            }
            _ => None,
        })
    }
}
