//! The estimates of one table for the join-order search: the rows that pass its own conditions, and
//! the effect of each condition that links it to other tables. They are computed once, so that
//! costing a join reads numbers only and builds no expression.

use std::cell::RefCell;
use std::rc::Rc;

use nfold_catalog::{Histogram, TableDef, TableStats};
use nfold_sql::ast::BinaryOp;
use nfold_types::TypeKind;

use super::candidate::{self, DESCENT, LOOKUP_ROW, SCAN_ROW};
use super::condition::{ColumnValues, Reader};
use super::equalities::Equalities;
use super::histogram::Histograms;
use super::joins::{LIST_ROWS_MAX, UNKNOWN_ROWS, filters_build_side, selectivity};
use super::joint::JointShares;
use crate::logical::context::{ParamType, PlanCx};
use crate::logical::expr::{ColumnAt, Expr, ExprKind};
use crate::physical::{AccessKind, Block, HASH_BUILD_COST, HASH_PROBE_COST, JoinType, TableSource};

/// The share of rows that an equality of two columns keeps without statistics.
const UNKNOWN_EQUALITY: f64 = 0.1;

/// The costs of adding a row to a hash table, of probing it with an outer row, of testing the
/// conditions of a candidate row, and of binding an access path for an outer row. Measured on
/// memory-resident tables, in microseconds as in [`super::candidate`].
const HASH_BUILD: f64 = HASH_BUILD_COST;
const HASH_PROBE: f64 = HASH_PROBE_COST;
/// The same if the keys are integer columns, which need no evaluator.
const INTEGER_BUILD: f64 = 0.3;
const INTEGER_PROBE: f64 = 0.05;
/// The share of its cost alone that the scan of a table has in a join. The cost of the scan
/// includes the passing of its rows to the statement, which most rows of a join do not reach:
/// kernels test the conditions on its pages, and hash joins read the keys there.
const SCAN_SHARE: f64 = 0.5;
const CANDIDATE: f64 = 0.08;
const BIND: f64 = 0.5;
/// The size in bytes beyond which a hash table is written to a file, and each probe reads a block
/// of it.
const HASH_BYTES_MAX: f64 = 16e6;
const SPILLED_BUILD: f64 = 2.5;
const SPILLED_PROBE: f64 = 5.0;
/// The outer rows of a hash join, as a share of the inner ones, up to which the executor puts the
/// outer rows into the hash table.
const SWAPPED_SHARE: f64 = 0.4;
const SWAPPED_BUILD: f64 = 0.6;
const SWAPPED_PROBE: f64 = 0.25;
const SWAPPED_INTEGER_PROBE: f64 = 0.05;
const SWAPPED_ROWS_MIN: f64 = 4096.0;
/// The assumed bytes of an outer row in that hash table.
const SWAPPED_BYTES: f64 = 250.0;
/// The smallest share of rows that equal columns keep: a histogram may miss values.
const JOINT_MIN: f64 = 1e-7;
/// The share of rows that LIKE keeps without a histogram.
const LIKE_SHARE: f64 = 0.1;
/// The share of rows kept by an OR of conditions over several tables. Its implications for each
/// single table are conditions of their own, and tested before.
const MIXED_OR_SHARE: f64 = 0.5;

/// A condition that links a table to other tables.
#[derive(Debug, Clone)]
struct Link {
    /// It can be tested once all slots of `all` and one slot of `any` are placed.
    all: u64,
    any: u64,
    /// The column that it equates (`equality`) or bounds.
    column: Option<usize>,
    equality: bool,
    /// Whether it equates integer columns.
    integers: bool,
    /// The share of rows that it keeps.
    keeps: f64,
    /// Of an equivalence class: its columns with known distinct values, each by its slot. The own
    /// column has all slots.
    columns: Vec<(u64, f64)>,
    /// The columns that it equates, if their histograms tell how often they are equal.
    joint: Option<Joint>,
}

/// A column that is equal to others.
#[derive(Debug, Clone)]
struct Joint {
    shares: Rc<JointShares>,
    /// The number of the own column in the shares.
    own: usize,
    /// The other columns, each by its slot.
    others: Vec<(u64, usize)>,
}

impl Joint {
    /// How column `own` joins `others`, by histograms. Nothing is to be learned about one column
    /// that joins a unique one.
    fn new(cx: &Statistics<'_>, own: ColumnAt, others: &[ColumnAt]) -> Option<Joint> {
        let known = |at: &ColumnAt| Some((*at, cx.histograms.of_column(*at)?));
        let own = known(&own)?;
        let mut columns: Vec<_> = others.iter().filter_map(known).chain([own]).collect();
        let unique = |(_, (_, unique)): &(ColumnAt, (&Histogram, bool))| *unique;
        if columns.len() < 2 || columns.len() == 2 && columns.iter().any(unique) {
            return None;
        }
        columns.sort_by_key(|(at, _)| (at.table, at.column));
        let places: Vec<ColumnAt> = columns.iter().map(|(at, _)| *at).collect();
        let shares = cx.joint_shares(&places, || {
            let histograms: Vec<&Histogram> = columns.iter().map(|(_, known)| known.0).collect();
            JointShares::of(&histograms)
        })?;
        let mut others = Vec::new();
        for (n, at) in places.iter().enumerate().filter(|(_, at)| **at != own.0) {
            others.push((1u64 << at.table.min(63), n));
        }
        Some(Joint {
            shares,
            own: places.iter().position(|at| *at == own.0)?,
            others,
        })
    }

    /// The share of rows that is equal to a row of the placed tables.
    fn keeps(&self, placed: u64) -> Option<f64> {
        let others = self.others.iter().filter(|(slot, _)| slot & placed != 0);
        let set = others.fold(0, |set, (_, n)| set | 1 << n);
        self.shares.keeps(set, self.own).filter(|_| set != 0)
    }
}

/// The column that a condition restricts, and for a list the number of values that it allows.
fn column_values(reader: &Reader<'_>, e: &Expr) -> (Option<usize>, Option<f64>) {
    let says = reader.read(e);
    let column = says.as_ref().map(|s| s.column);
    let values = match says.map(|s| s.values) {
        Some(ColumnValues::Points { count, .. }) => Some(count as f64),
        _ => None,
    };
    (column, values)
}

/// The links of slot `t` that come from equivalence classes.
fn equal_links(cx: &Statistics<'_>, t: usize, equalities: &Equalities) -> Vec<Link> {
    let link = |(own, others): (ColumnAt, Vec<ColumnAt>)| {
        let slot = |at: &ColumnAt| 1u64 << at.table.min(63);
        let columns = others.iter().map(|at| (slot(at), *at));
        let columns = columns.chain([(u64::MAX, own)]);
        let known = |(slot, at)| distinct_values(cx, at).map(|distinct| (slot, distinct));
        let joint = Joint::new(cx, own, &others);
        Link {
            all: 0,
            any: others.iter().fold(0, |set, at| set | slot(at)),
            column: Some(own.column.into()),
            equality: true,
            integers: others.iter().chain([&own]).all(|at| cx.is_integer(*at)),
            keeps: UNKNOWN_EQUALITY,
            columns: columns.filter_map(known).collect(),
            joint,
        }
    };
    equalities.links(t).map(link).collect()
}

impl LocalCondition {
    /// `share`: what a histogram says about the condition.
    fn new(
        cx: &Statistics<'_>,
        reader: &Reader<'_>,
        e: &Expr,
        share: Option<f64>,
    ) -> LocalCondition {
        let (column, values) = column_values(reader, e);
        let column = column.filter(|_| values.is_some());
        let at = column.map(|column| ColumnAt {
            table: reader.t as u16,
            column: column as u16,
        });
        let values = values.unwrap_or(1.0);
        let by_distinct = || match at.and_then(|at| distinct_values(cx, at)) {
            // Some of the subquery's rows have equal values.
            Some(distinct) if matches!(e.kind, ExprKind::Subquery { .. }) => {
                1.0 - (-values / distinct).exp()
            }
            Some(distinct) => (values / distinct).min(1.0),
            None => cx.keeps(e),
        };
        let keeps = share.unwrap_or_else(by_distinct);
        LocalCondition {
            column,
            values,
            keeps,
        }
    }
}

impl Link {
    /// A link of slot `t` with the slots in `others`.
    fn new(cx: &Statistics<'_>, reader: &Reader<'_>, e: &Expr, others: u64) -> Link {
        let (column, values) = column_values(reader, e);
        let equated = e.equated_columns(reader.t);
        Link {
            all: others,
            any: 0,
            column,
            equality: values.is_some(),
            integers: equated.is_some_and(|(a, b)| cx.is_integer(a) && cx.is_integer(b)),
            keeps: cx.keeps(e),
            columns: Vec::new(),
            joint: equated.and_then(|(own, other)| Joint::new(cx, own, &[other])),
        }
    }

    /// The share of rows that it keeps, joined to the placed tables. Columns of the class whose
    /// tables are not placed have no effect yet.
    fn keeps(&self, placed: u64) -> f64 {
        if let Some(share) = self.joint.as_ref().and_then(|joint| joint.keeps(placed)) {
            return share.max(JOINT_MIN);
        }
        let columns = self.columns.iter().filter(|(slot, _)| slot & placed != 0);
        match columns.fold(0.0, |most: f64, (_, distinct)| most.max(*distinct)) {
            most if most > 0.0 => 1.0 / most,
            _ => self.keeps,
        }
    }

    fn is_usable(&self, placed: u64) -> bool {
        self.all & !placed == 0 && (self.any == 0 || self.any & placed != 0)
    }
}

/// A condition on this table alone, against constants.
#[derive(Debug, Clone)]
struct LocalCondition {
    /// The column that it restricts to `values` values.
    column: Option<usize>,
    values: f64,
    keeps: f64,
}

/// An index, as far as the search needs it.
#[derive(Debug, Clone)]
struct IndexShape {
    columns: Vec<usize>,
    unique: bool,
    covering: bool,
    /// Rows per distinct value of the first n + 1 columns.
    rows_per_key: Vec<f64>,
}

/// The estimates of one table.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    /// The number of rows, and the size of a row in bytes.
    rows: f64,
    row_bytes: f64,
    /// With its own conditions alone: the cost of the access path, and the rows that pass.
    pub scan_cost: f64,
    pub passing: f64,
    /// The rows that enter a hash table: conditions with visible effects are tested later.
    hashed: f64,
    links: Vec<Link>,
    locals: Vec<LocalCondition>,
    indexes: Vec<IndexShape>,
    pub kind: JoinType,
    /// Whether a hash join may put the outer rows into the hash table instead.
    swaps: bool,
}

/// The estimated cost of joining a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoinCost {
    /// The cost before the first row, and the total cost.
    pub startup: f64,
    pub total: f64,
    /// Whether it is joined by lookups that depend on the outer row. Otherwise by a hash table.
    pub lookup: bool,
    /// The cost of the lookup for one outer row, if lookups are possible, and the cost of building
    /// the hash table, if it fits into memory.
    pub lookup_cost: Option<f64>,
    pub build_cost: Option<f64>,
}

/// The number of distinct values of a column, if statistics tell.
fn distinct_values(cx: &Statistics<'_>, at: ColumnAt) -> Option<f64> {
    let (def, stats) = cx.table(usize::from(at.table))?;
    let column = usize::from(at.column);
    let by_index = def.indexes.iter().enumerate().map(|(n, index)| {
        let first = index.parts.first();
        if !first.is_some_and(|p| p.column == column && p.prefix_len.is_none()) {
            return 0;
        }
        match index.is_unique() && index.parts.len() == 1 {
            true => stats.rows,
            false => stats
                .indexes
                .get(n)
                .and_then(|i| i.distinct.first().copied())
                .unwrap_or(0),
        }
    });
    let by_index = by_index.max().unwrap_or(0);
    let known = match by_index {
        0 => stats.columns.get(column).copied().unwrap_or(0),
        known => known,
    };
    (known > 0).then_some(known as f64)
}

/// The statistics of a block's tables.
pub(super) struct Statistics<'s> {
    pub cx: &'s PlanCx<'s>,
    pub block: &'s Block,
    pub histograms: &'s Histograms<'s>,
    /// The results of [`Statistics::joint_shares`].
    pub joint: &'s RefCell<Vec<KnownShares>>,
}

/// The joint shares of some columns; `None`: their histograms do not tell.
pub(super) type KnownShares = (Vec<ColumnAt>, Option<Rc<JointShares>>);

impl Statistics<'_> {
    fn table(&self, t: usize) -> Option<(&TableDef, &TableStats)> {
        let TableSource::Table(def) = &self.block.tables.get(t)?.source else {
            return None;
        };
        let stats = self.histograms.stats(t).filter(|s| s.rows > 0)?;
        Some((def, stats))
    }

    /// Whether a column has integers.
    fn is_integer(&self, at: ColumnAt) -> bool {
        use TypeKind::{BigInt, Int, MediumInt, SmallInt, TinyInt};
        let column = usize::from(at.column);
        let slot = self.block.tables.get(usize::from(at.table));
        let kind = match slot.map(|slot| &slot.source) {
            Some(TableSource::Table(def)) => def.columns.get(column).map(|c| &c.ty.kind),
            Some(TableSource::Derived(q)) => q.types.get(column).map(|ty| &ty.col.kind),
            _ => None,
        };
        matches!(kind, Some(TinyInt | SmallInt | MediumInt | Int | BigInt))
    }

    /// How the values of these columns coincide, computed once.
    fn joint_shares(
        &self,
        columns: &[ColumnAt],
        compute: impl FnOnce() -> Option<JointShares>,
    ) -> Option<Rc<JointShares>> {
        let mut known = self.joint.borrow_mut();
        if let Some((_, shares)) = known.iter().find(|(of, _)| of == columns) {
            return shares.clone();
        }
        let shares = compute().map(Rc::new);
        known.push((columns.to_vec(), shares.clone()));
        shares
    }

    /// The share of rows that an equality of these columns keeps.
    fn equality(&self, columns: impl Iterator<Item = ColumnAt>) -> f64 {
        let known = columns.filter_map(|at| distinct_values(self, at));
        match known.fold(0.0, f64::max) {
            most if most > 0.0 => 1.0 / most,
            _ => UNKNOWN_EQUALITY,
        }
    }

    /// The share of rows whose `column` is one of `length` values.
    fn list(&self, column: &Expr, length: usize) -> f64 {
        let one = self.equality(column.as_column().into_iter());
        (one * length as f64).min(0.5)
    }

    /// The assumed length of a list parameter.
    fn length(&self, list: u32) -> usize {
        match self.cx.params.get(list as usize) {
            Some(ParamType::List { count, .. }) => (*count).min(LIST_ROWS_MAX),
            _ => 1,
        }
    }

    /// The share of rows that a condition keeps.
    fn keeps(&self, e: &Expr) -> f64 {
        let known = self.histograms.shares(std::iter::once(e));
        if let Some(share) = known.into_iter().next().flatten() {
            return share;
        }
        match &e.kind {
            ExprKind::Compare {
                op: BinaryOp::Eq | BinaryOp::NullSafeEq,
                sides,
                ..
            } => self.equality(sides.iter().filter_map(Expr::as_column)),
            ExprKind::Compare {
                op: BinaryOp::Ne,
                sides,
                ..
            } => 1.0 - self.equality(sides.iter().filter_map(Expr::as_column)),
            ExprKind::In {
                expr,
                list,
                negated: false,
            } if expr.as_column().is_some() => self.list(expr, list.len()),
            ExprKind::InParam {
                left,
                list,
                negated: false,
                ..
            } => match left.as_slice() {
                [column] if column.as_column().is_some() => self.list(column, self.length(*list)),
                _ => selectivity(e),
            },
            ExprKind::Like { negated, .. } => match negated {
                true => 1.0 - LIKE_SHARE,
                false => LIKE_SHARE,
            },
            ExprKind::And(list) => list.iter().map(|e| self.keeps(e)).product(),
            ExprKind::Or(list) => match one_table(e) {
                true => list.iter().map(|e| self.keeps(e)).sum::<f64>().min(1.0),
                false => MIXED_OR_SHARE,
            },
            _ => selectivity(e),
        }
    }
}

/// Whether an expression reads columns of one table only.
fn one_table(e: &Expr) -> bool {
    let mut table = None;
    !e.any(&mut |e| {
        let at = e.as_column();
        at.is_some_and(|at| *table.get_or_insert(at.table) != at.table)
    })
}

/// The conditions that join a table, each with the slots that it reads.
pub(super) struct TableConditions<'c> {
    pub conditions: Vec<(&'c Expr, u64)>,
    pub list_count: &'c dyn Fn(u32) -> usize,
    pub equalities: &'c Equalities,
    pub kind: JoinType,
}

/// The estimated number of rows of a derived table.
fn source_rows(source: &TableSource) -> f64 {
    match source {
        TableSource::Derived(q) => q.result_rows(),
        _ => UNKNOWN_ROWS / 100.0,
    }
}

/// The rows that an access path finds: by histograms if they tell about each condition that the
/// path implies.
fn found_rows(
    cx: &Statistics<'_>,
    t: usize,
    own: &candidate::Candidate,
    conditions: &[&Expr],
    shares: &[Option<f64>],
) -> f64 {
    let implied = conditions.iter().zip(shares);
    let mut implied = implied.filter(|(e, _)| own.access.implied.contains(e));
    let known = implied.clone().next().is_some();
    // The conditions of an index merge or a skip scan are tested on its rows, and counted there.
    if let (AccessKind::Merge(_) | AccessKind::Skip(_), Some((_, stats))) =
        (&own.access.kind, cx.table(t))
    {
        return stats.rows as f64;
    }
    let share: Option<f64> = implied.try_fold(1.0, |all, (_, share)| Some(all * (*share)?));
    match (cx.table(t), share) {
        (Some((_, stats)), Some(share)) if known => stats.rows as f64 * share,
        _ => own.rows,
    }
}

impl Relation {
    /// The estimates of slot `t`. `own` is the cheapest access path by its own conditions.
    pub fn new(
        cx: &Statistics<'_>,
        t: usize,
        own: &candidate::Candidate,
        from: &TableConditions<'_>,
    ) -> Relation {
        let block = cx.block;
        let reader = Reader {
            block,
            t,
            list_count: from.list_count,
        };
        let (mut links, mut locals) = (equal_links(cx, t, from.equalities), Vec::new());
        let others = |slots: &u64| slots & !(1u64 << t);
        for (e, slots) in from.conditions.iter().filter(|(_, s)| others(s) != 0) {
            links.push(Link::new(cx, &reader, e, others(slots)));
        }
        let alone = from.conditions.iter().filter(|(_, s)| others(s) == 0);
        let alone: Vec<&Expr> = alone.map(|(e, _)| *e).collect();
        let shares = cx.histograms.shares(alone.iter().copied());
        let mut passing = found_rows(cx, t, own, &alone, &shares);
        let mut late = 1.0;
        for (e, share) in alone.into_iter().zip(shares) {
            let local = LocalCondition::new(cx, &reader, e, share);
            if !own.access.implied.contains(e) {
                passing *= local.keeps;
                if !filters_build_side(cx.cx, e) {
                    late *= local.keeps;
                }
            }
            locals.push(local);
        }
        let (rows, row_bytes, indexes) = match cx.table(t) {
            Some((def, stats)) => (
                stats.rows as f64,
                f64::from(stats.avg_row_bytes),
                shapes(block, t, def, Some(stats)),
            ),
            None => match &block.tables[t].source {
                TableSource::Table(def) => (UNKNOWN_ROWS, 100.0, shapes(block, t, def, None)),
                source => (source_rows(source), 100.0, Vec::new()),
            },
        };
        let scan_cost = match &block.tables[t].source {
            TableSource::Table(_) => match own.access.kind {
                AccessKind::Full => own.cost * SCAN_SHARE,
                _ => own.cost,
            },
            _ => rows * SCAN_ROW,
        };
        let passing = match &block.tables[t].source {
            TableSource::Table(_) => passing,
            _ => locals.iter().fold(rows, |rows, local| rows * local.keeps),
        };
        Relation {
            rows: rows.max(1.0),
            row_bytes,
            scan_cost,
            passing: passing.max(1e-3),
            hashed: (passing / late.max(1e-9)).clamp(1e-3, rows.max(1.0)),
            links,
            locals,
            indexes,
            kind: from.kind,
            swaps: cx.table(t).is_some()
                && passing / late.max(1e-9) >= SWAPPED_ROWS_MIN
                && block.changed == 0
                && !block.lock.is_some(),
        }
    }

    /// The rows that enter the hash table, or 0 if the outer rows may not enter one instead.
    pub fn known_hashed(&self) -> f64 {
        match self.swaps {
            true => self.hashed,
            false => 0.0,
        }
    }

    /// The number of rows that join one row of the placed tables, and whether a unique key
    /// guarantees it.
    pub fn matches(&self, placed: u64) -> (f64, bool) {
        let usable = || self.links.iter().filter(|link| link.is_usable(placed));
        let plain = usable().fold(self.passing, |rows, link| rows * link.keeps(placed));
        let mut best = (plain, false);
        for index in &self.indexes {
            let bound = self.bound_parts(index, placed);
            if bound.parts == 0 || !bound.linked || bound.parts == 1 && !index.is_exact(1) {
                continue;
            }
            let columns = &index.columns[..bound.parts];
            let own = |column: Option<usize>| column.is_some_and(|c| columns.contains(&c));
            let mut rows = self.rows_per_key(index, &bound, placed) * bound.values;
            for local in self.locals.iter().filter(|l| !own(l.column)) {
                rows *= local.keeps;
            }
            for link in usable().filter(|link| !(link.equality && own(link.column))) {
                rows *= link.keeps(placed);
            }
            let exact = index.is_exact(bound.parts);
            if exact && !best.1 || exact == best.1 && rows < best.0 {
                best = (rows, exact);
            }
        }
        best
    }

    /// The ways to join the table to `outer` rows of the placed tables. `lookups`: use an access
    /// path that depends on the outer row if there is one.
    pub fn joins(
        &self,
        outer: f64,
        placed: u64,
        lookups: bool,
    ) -> impl Iterator<Item = JoinCost> + use<> {
        let lookup_cost = self.lookup(placed);
        let hash = JoinCost {
            lookup_cost,
            ..self.hash(outer, placed)
        };
        let lookup = lookup_cost.map(|each| JoinCost {
            startup: 0.0,
            total: outer * each,
            lookup: true,
            ..hash
        });
        let hash = (!lookups || lookup.is_none()).then_some(hash);
        lookup.into_iter().chain(hash)
    }

    fn hash(&self, outer: f64, placed: u64) -> JoinCost {
        let usable = self.links.iter().filter(|link| link.is_usable(placed));
        let (mut has_keys, mut integers, mut candidates) = (false, true, self.hashed);
        for link in usable.filter(|link| link.equality) {
            (has_keys, integers) = (true, integers && link.integers);
            candidates *= link.keeps(placed);
        }
        integers &= has_keys;
        let spilled = self.hashed * (self.row_bytes + 64.0) > HASH_BYTES_MAX;
        let (build, probe) = match (spilled, integers) {
            (true, _) => (SPILLED_BUILD, SPILLED_PROBE),
            (false, true) => (INTEGER_BUILD, INTEGER_PROBE),
            (false, false) => (HASH_BUILD, HASH_PROBE),
        };
        let startup = self.scan_cost + self.hashed * build;
        let tested = outer * candidates * CANDIDATE;
        let mut cost = JoinCost {
            startup,
            total: startup + outer * probe + tested,
            lookup: false,
            lookup_cost: None,
            build_cost: (!spilled).then_some(startup),
        };
        let fits = outer <= self.hashed * SWAPPED_SHARE && outer * SWAPPED_BYTES <= HASH_BYTES_MAX;
        if self.swaps && has_keys && fits {
            let probe = match integers {
                true => SWAPPED_INTEGER_PROBE,
                false => SWAPPED_PROBE,
            };
            let swapped = self.scan_cost + outer * SWAPPED_BUILD + self.hashed * probe;
            cost.startup = cost.startup.min(swapped);
            cost.total = cost.total.min(swapped + tested);
        }
        cost
    }

    /// The cost of reading the rows for one outer row by an index. `None` if no index depends on
    /// the outer row.
    fn lookup(&self, placed: u64) -> Option<f64> {
        let cost = |index: &IndexShape| {
            let bound = self.bound_parts(index, placed);
            let row = match index.covering {
                true => SCAN_ROW,
                false => LOOKUP_ROW,
            };
            if bound.linked {
                let rows = self.rows_per_key(index, &bound, placed) * bound.values;
                let single = bound.values == 1.0;
                let bind = if single { 0.0 } else { BIND };
                return Some(bind + bound.values * DESCENT + rows * (row + CANDIDATE));
            }
            let next = *index.columns.get(bound.parts)?;
            let range = |link: &&Link| {
                !link.equality && link.column == Some(next) && link.is_usable(placed)
            };
            let bounds = self.links.iter().filter(range).count();
            if bounds == 0 {
                return None;
            }
            let prefix = match bound.parts {
                0 => self.rows,
                parts => index.rows_per_key[parts - 1] * bound.values,
            };
            let rows = prefix * if bounds > 1 { 0.05 } else { 0.3333 };
            Some(BIND + bound.values * DESCENT + rows * (row + CANDIDATE))
        };
        self.indexes.iter().filter_map(cost).min_by(f64::total_cmp)
    }

    /// The rows that have one value of an index's bound parts. An outer row often has a frequent
    /// value, as far as histograms tell.
    fn rows_per_key(&self, index: &IndexShape, bound: &BoundParts, placed: u64) -> f64 {
        let mean = index.rows_per_key[bound.parts - 1];
        if index.is_exact(bound.parts) {
            return mean;
        }
        let bound_parts = &index.columns[..bound.parts];
        let links = self.links.iter().filter(|link| {
            let own = link
                .column
                .is_some_and(|column| bound_parts.contains(&column));
            link.equality && own && link.is_usable(placed)
        });
        let joint = links.filter_map(|link| link.joint.as_ref()?.keeps(placed));
        match bound.parts {
            1 => joint.fold(mean, |_, share| (self.rows * share).max(JOINT_MIN)),
            _ => mean,
        }
    }

    /// How many of an index's first parts equalities bind.
    fn bound_parts(&self, index: &IndexShape, placed: u64) -> BoundParts {
        let mut bound = BoundParts {
            parts: 0,
            values: 1.0,
            linked: false,
        };
        for column in &index.columns {
            let link = self.links.iter().find(|link| {
                link.equality && link.column == Some(*column) && link.is_usable(placed)
            });
            let local = self.locals.iter().find(|l| l.column == Some(*column));
            match (local, link) {
                (Some(local), _) => bound.values *= local.values,
                (None, Some(_)) => bound.linked = true,
                (None, None) => break,
            }
            bound.parts += 1;
        }
        bound
    }
}

/// The bound first parts of an index.
struct BoundParts {
    parts: usize,
    /// The number of key values for one outer row.
    values: f64,
    /// Whether a value depends on the outer row.
    linked: bool,
}

impl IndexShape {
    /// Whether the first `parts` parts identify one row.
    fn is_exact(&self, parts: usize) -> bool {
        self.unique && parts == self.columns.len()
    }
}

fn shapes(block: &Block, t: usize, def: &TableDef, stats: Option<&TableStats>) -> Vec<IndexShape> {
    let used = &block.tables[t].used;
    let shape = |(n, index): (usize, &nfold_catalog::IndexDef)| {
        // No join looks up rows by a multi-valued index: its elements are constants.
        let joins = def.array_part(index).is_none();
        let whole = index
            .parts
            .iter()
            .take_while(|p| joins && p.prefix_len.is_none());
        let columns: Vec<usize> = whole.map(|p| p.column).collect();
        let unique = index.is_unique() && columns.len() == index.parts.len();
        let rows_per_key = (1..=columns.len()).map(|parts| match stats {
            _ if unique && parts == columns.len() => 1.0,
            Some(s) if s.indexes.get(n).is_some_and(|i| !i.distinct.is_empty()) => {
                s.rows_per_key(n, parts)
            }
            _ => 2.0,
        });
        IndexShape {
            rows_per_key: rows_per_key.collect(),
            covering: n == 0 || candidate::covers(def, n, used) && !block.locks_to_change(t),
            unique,
            columns,
        }
    };
    def.indexes.iter().enumerate().map(shape).collect()
}
