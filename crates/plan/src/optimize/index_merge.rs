//! Index merges: the rows of an OR over several indexes, or of equalities over several indexes.
//!
//! ```text
//!   a = 1 OR b = 2      ─▶  keys by index a ∪ keys by index b  ─▶  rows, in primary-key order
//!   a = 1 AND b = 2     ─▶  keys by index a ∩ keys by index b  ─▶  rows
//! ```
//!
//! A branch reads the keys of its index alone, so that each row is looked up once. All conditions
//! are tested on the rows: a branch may find more rows than its condition keeps. A locking read
//! locks the rows that any branch finds.

use nfold_sql::ast::LockStrength;

use super::candidate::{Candidate, Chooser, DESCENT, LOOKUP_ROW, SCAN_ROW, allows, path};
use super::condition::Reader;
use super::joins::{SCAN_ROWS_MIN, slots_of};
use crate::logical::context::PlanCx;
use crate::logical::expr::{Expr, ExprKind, ExprType};
use crate::logical::func::is_volatile;
use crate::logical::mode::Switches;
use crate::logical::query::IndexHints;
use crate::physical::{AccessKind, IndexMerge, MergeBranch, MergeKind, PointPart};

/// An OR with more branches is not read by an index merge.
const BRANCHES_MAX: usize = 32;
/// The cost of reading a primary key from an index and of sorting it, in microseconds.
const KEY: f64 = SCAN_ROW * 0.8 + 0.05;

/// A branch with its estimates.
struct Branch {
    path: MergeBranch,
    cost: f64,
    /// Whether it returns the primary keys in order.
    ordered: bool,
}

fn conjuncts(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::And(list) => list.iter().flat_map(conjuncts).collect(),
        _ => vec![e],
    }
}

/// The members of an OR. Members that restrict the same column are one branch.
fn branches(reader: &Reader<'_>, members: &[Expr]) -> Option<Vec<Expr>> {
    let mut groups: Vec<(Option<usize>, Vec<&Expr>)> = Vec::new();
    for member in members {
        let column = reader.read(member).map(|on| on.column);
        let same = |group: &(Option<usize>, _)| column.is_some() && group.0 == column;
        match groups.iter().position(same) {
            Some(n) => groups[n].1.push(member),
            None if groups.len() == BRANCHES_MAX => return None,
            None => groups.push((column, vec![member])),
        }
    }
    let branch = |(_, group): (_, Vec<&Expr>)| match group.as_slice() {
        [only] => Expr::clone(only),
        several => Expr {
            kind: ExprKind::Or(several.iter().copied().cloned().collect()),
            ty: ExprType::boolean(true),
        },
    };
    (groups.len() > 1).then(|| groups.into_iter().map(branch).collect())
}

impl Chooser<'_> {
    /// The index merges. `single` are the paths by one index.
    pub(super) fn by_merge(
        &self,
        cx: &PlanCx<'_>,
        hints: &IndexHints,
        single: &[Candidate],
    ) -> Vec<Candidate> {
        let is_or = |e: &&Expr| matches!(e.kind, ExprKind::Or(_));
        let forced = hints.index_merge.is_forced();
        let merges = cx.switches.has(Switches::INDEX_MERGE) || forced;
        if !merges || single.len() < 2 && !self.usable.iter().any(is_or) {
            return Vec::new();
        }
        let unions = self.usable.iter().enumerate().filter_map(|(n, e)| {
            let ExprKind::Or(members) = &e.kind else {
                return None;
            };
            self.union(cx, hints, n, members)
        });
        let intersection = self.intersection(cx, hints, single);
        unions.chain(intersection).collect()
    }

    /// The union of the branches of an OR, which is condition `at`.
    fn union(
        &self,
        cx: &PlanCx<'_>,
        hints: &IndexHints,
        at: usize,
        members: &[Expr],
    ) -> Option<Candidate> {
        if is_volatile(cx.funcs, self.usable[at]) {
            return None;
        }
        let reader = Reader {
            block: self.block,
            t: self.slot.into(),
            list_count: &|_| 1,
        };
        let branches = branches(&reader, members)?;
        let others = self.usable.iter().enumerate().filter(|(n, _)| *n != at);
        let others: Vec<&Expr> = others.map(|(_, e)| *e).collect();
        let branch = |e: &Expr| {
            let mut usable = conjuncts(e);
            usable.extend(&others);
            self.branch(cx, hints, &usable)
        };
        let branches: Vec<Branch> = branches.iter().map(branch).collect::<Option<_>>()?;
        let ordered = branches.iter().all(|branch| branch.ordered);
        let on = |switch| cx.switches.has(switch) || hints.index_merge.is_forced();
        let kind = match (
            ordered && on(Switches::INDEX_MERGE_UNION),
            on(Switches::INDEX_MERGE_SORT_UNION),
        ) {
            (true, _) => MergeKind::Union,
            (false, true) => MergeKind::SortUnion,
            (false, false) => return None,
        };
        let rows = branches.iter().map(|branch| branch.path.rows).sum::<f64>();
        let rows = rows.min(self.rows).max(1.0);
        let most = (self.rows.max(SCAN_ROWS_MIN) * SCAN_ROW / LOOKUP_ROW) as usize;
        Some(self.merge(kind, branches, rows, most))
    }

    /// The cheapest way to find the keys of the rows that pass `usable`.
    fn branch(&self, cx: &PlanCx<'_>, hints: &IndexHints, usable: &[&Expr]) -> Option<Branch> {
        let t = usize::from(self.slot);
        let chooser = Chooser::new(cx, self.block, t, self.def, self.histograms, usable);
        let indexes = (0..self.def.indexes.len())
            .filter(|&i| allows(hints, i) && hints.index_merge.allows(i));
        let paths = indexes.filter_map(|i| chooser.by_key_parts(i));
        let branches = paths.filter_map(|found| chooser.key_branch(found));
        branches.min_by(|a, b| a.cost.total_cmp(&b.cost))
    }

    /// A path by one index, if its keys alone are read.
    fn key_branch(&self, found: Candidate) -> Option<Branch> {
        let i = found.access.index;
        let index = &self.def.indexes[i];
        if found.access.kind.may_scan() || self.def.array_part(index).is_some() {
            return None;
        }
        let row = match i == 0 || self.covering(i) {
            true => SCAN_ROW,
            false => LOOKUP_ROW,
        };
        let descents = (found.cost - found.rows * row).max(DESCENT);
        let conditions = found.access.implied.iter();
        let shares = self.histograms.shares(conditions);
        let share: Option<f64> = shares
            .iter()
            .try_fold(1.0, |all, share| Some(all * (*share)?));
        let rows = match share {
            Some(share) if !shares.is_empty() => found.rows.min((self.rows * share).max(1.0)),
            _ => found.rows,
        };
        let equal = |parts: &[PointPart]| {
            let whole = parts.len() == index.parts.len();
            whole && parts.iter().all(|p| matches!(p, PointPart::Eq { .. }))
        };
        let ordered = match &found.access.kind {
            AccessKind::Points(parts) => i == 0 || equal(parts),
            _ => i == 0,
        };
        // A branch that locks rows looks them up.
        let key = KEY + if self.locks() { LOOKUP_ROW } else { 0.0 };
        Some(Branch {
            path: MergeBranch {
                index: i,
                kind: found.access.kind,
                rows,
            },
            cost: descents + rows * key,
            ordered,
        })
    }

    /// Whether the rows are locked.
    fn locks(&self) -> bool {
        let lock = self.block.lock.of_slot(self.slot.into());
        self.locks_rows || lock == Some(LockStrength::Share)
    }

    fn merge(&self, kind: MergeKind, branches: Vec<Branch>, rows: f64, most: usize) -> Candidate {
        let cost = branches.iter().map(|branch| branch.cost).sum::<f64>() + rows * LOOKUP_ROW;
        let branches = branches.into_iter().map(|branch| branch.path).collect();
        let merge = IndexMerge {
            kind,
            branches,
            most,
        };
        Candidate {
            access: path(0, false, AccessKind::Merge(Box::new(merge))),
            rows,
            cost,
        }
    }

    /// The intersection of equalities over different columns, as long as one more index lowers the
    /// cost.
    fn intersection(
        &self,
        cx: &PlanCx<'_>,
        hints: &IndexHints,
        single: &[Candidate],
    ) -> Option<Candidate> {
        let forced = hints.index_merge.is_forced();
        let on = cx.switches.has(Switches::INDEX_MERGE_INTERSECTION) || forced;
        // A locking read would lock, and look up, the rows of all of them.
        if !on || self.stats.is_none() || self.locks() && !forced {
            return None;
        }
        // Lookups that depend on an outer row are made for many of them at once.
        let depends = |kind: &AccessKind| {
            let mut depends = false;
            kind.each_expr(&mut |e| depends |= slots_of(e, self.block) != 0);
            depends
        };
        let equalities = single.iter().filter(|c| {
            let points = matches!(c.access.kind, AccessKind::Points(_));
            points
                && !depends(&c.access.kind)
                && hints.index_merge.allows(c.access.index)
                && c.access.index != 0
                && !c.access.covering
                && c.rows > 1.0
        });
        let mut paths: Vec<&Candidate> = equalities.collect();
        if paths.len() < 2 {
            return None;
        }
        paths.sort_by(|a, b| a.rows.total_cmp(&b.rows));
        let columns = |i: usize, kind: &AccessKind| {
            let used = match kind {
                AccessKind::Points(parts) => parts.len(),
                _ => 0,
            };
            let parts = self.def.indexes[i].parts.iter().take(used);
            parts.map(|p| p.column).collect::<Vec<usize>>()
        };
        let mut taken: Vec<Branch> = Vec::new();
        let (mut restricted, mut rows, mut cost) = (Vec::new(), self.rows, f64::MAX);
        for candidate in paths {
            let own = columns(candidate.access.index, &candidate.access.kind);
            if own.iter().any(|c| restricted.contains(c)) {
                continue;
            }
            let Some(branch) = self.key_branch(candidate.clone()) else {
                continue;
            };
            let fewer = rows * (branch.path.rows / self.rows).min(1.0);
            let keys = taken.iter().map(|b| b.cost).sum::<f64>() + branch.cost;
            let with = keys + fewer.max(1.0) * LOOKUP_ROW;
            if with < cost || forced {
                (rows, cost) = (fewer, with);
                restricted.extend(own);
                taken.push(branch);
            }
        }
        let several = taken.len() > 1;
        several.then(|| self.merge(MergeKind::Intersection, taken, rows.max(1.0), usize::MAX))
    }
}
