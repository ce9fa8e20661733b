//! Access paths: how the rows of one table are found. A path holds expressions; their values are
//! computed when the plan is bound to parameters.

use std::sync::Arc;

use crate::logical::expr::{ElementTarget, Expr};
use crate::logical::types::CmpKind;

/// An access path to one table.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// The index in `TableDef::indexes`; 0 is the clustered index. Unused for derived tables and
    /// views.
    pub index: usize,
    /// Whether the index has every column that is read.
    pub covering: bool,
    /// Whether the index is read backwards.
    pub reverse: bool,
    pub kind: AccessKind,
    /// Conditions that need not be tested on the rows, because the path implies them. This holds
    /// only if the path's values convert to the columns' types exactly.
    pub implied: Vec<Expr>,
    /// Usable indexes, for EXPLAIN.
    pub possible: Vec<usize>,
}

#[allow(clippy::large_enum_variant)] // one for each table of a plan
#[derive(Debug, Clone, PartialEq)]
pub enum AccessKind {
    /// The whole index.
    Full,
    /// Equality on the first parts of the index. The keys are the Cartesian product of the members
    /// of all parts.
    Points(Vec<PointPart>),
    /// Equality on the first parts, and a range over the next one.
    Range {
        prefix: Vec<PointPart>,
        range: RangePart,
    },
    /// A union of ranges over the first part of the index, in any order.
    Ranges(Vec<RangePart>),
    /// The rows whose primary keys several indexes find. The conditions are tested on the rows.
    Merge(Box<IndexMerge>),
    Skip(Box<SkipScan>),
    /// The rows that a full-text search may find: a call of MATCH ([`crate::fulltext::MatchCall`]).
    Fulltext(Box<Expr>),
    /// Derived tables and views: the rows come from `TableSlot::source`.
    Source,
    /// A hash join: the table is read by `build`, and its rows are looked up in a hash table by
    /// `keys`. Rows that do not pass `filter`, which reads this table only, are not added to it;
    /// `rows` is the estimated number of those that pass, or 0 if it is unknown. If the outer rows
    /// turn out to be far fewer, the executor puts them into the hash table instead.
    Hash {
        build: Box<Access>,
        keys: Vec<HashKey>,
        filter: Vec<Expr>,
        rows: f64,
    },
    /// A condition can never hold: no rows.
    Empty,
}

/// Several indexes that are read for primary keys alone. The rows of the union or intersection of
/// these keys are then looked up in the order of the primary key.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexMerge {
    pub kind: MergeKind,
    pub branches: Vec<MergeBranch>,
    /// The number of keys beyond which a scan of the table costs less.
    pub most: usize,
}

/// How the keys of an index merge are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeKind {
    /// Each branch returns its keys in order.
    Union,
    SortUnion,
    Intersection,
}

/// One index of an index merge.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeBranch {
    pub index: usize,
    /// Equalities or ranges.
    pub kind: AccessKind,
    /// The estimated number of rows.
    pub rows: f64,
}

/// A read of an index whose first parts are not restricted. For each of their distinct values it
/// reads some rows; the conditions are tested on them.
#[derive(Debug, Clone, PartialEq)]
pub struct SkipScan {
    /// The number of first parts.
    pub parts: usize,
    pub rows: SkipRows,
    /// The number of values after which the rest of the index is read.
    pub most: usize,
}

/// The rows that a skip scan reads of each value of the first parts.
#[derive(Debug, Clone, PartialEq)]
pub enum SkipRows {
    /// Those with an equality or a range over the next part alone.
    Values(AccessKind),
    /// One row of `first`, which is a range over the next part, all of its values or none. With
    /// `any` one row of all values as well, with `last` the last one.
    Ends {
        first: AccessKind,
        any: bool,
        last: bool,
    },
}

/// One equality of a hash join.
#[derive(Debug, Clone, PartialEq)]
pub struct HashKey {
    /// Over the slot of the inner table.
    pub inner: Expr,
    /// Over the slots before it.
    pub outer: Expr,
    pub kind: CmpKind,
    /// `<=>`: NULL equals NULL.
    pub null_safe: bool,
}

/// The values of one key part.
#[derive(Debug, Clone, PartialEq)]
pub enum PointPart {
    /// One value. `null_safe`: NULL equals NULL (`<=>`, IS NULL); otherwise NULL matches no row.
    Eq { expr: Expr, null_safe: bool },
    /// Any of these, compared as by IN.
    In(Vec<Expr>),
    /// Any of these, each compared as by `=`. For OR of comparisons with a TIME, because IN
    /// compares strings differently.
    AnyEq(Vec<Expr>),
    /// Column `at` of each row of list parameter `list`, whose rows have `of` columns. The parts of
    /// one list are combined row by row.
    List { list: u32, at: usize, of: usize },
    /// The values of an uncorrelated subquery. If they are more than `most`, a scan that probes the
    /// set of values costs less.
    Subquery {
        index: u16,
        kind: CmpKind,
        most: usize,
    },
    /// The elements of a constant for a multi-valued key part. If they do not convert to its type,
    /// or are more than `most`, all rows are read and tested.
    Elements {
        value: Box<Expr>,
        to: Box<ElementTarget>,
        most: usize,
    },
    /// Column `at` of a list of row constructors. Parts with the same number of rows are combined
    /// row by row.
    Rows {
        rows: Arc<Vec<Vec<Expr>>>,
        at: usize,
    },
}

/// A range over one key part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RangePart {
    /// The bound, and whether it is included.
    pub lo: Option<(Expr, bool)>,
    pub hi: Option<(Expr, bool)>,
    /// Whether both bounds come from one BETWEEN.
    pub between: bool,
    /// `LIKE` with this pattern and escape. The prefix is computed when the path is bound.
    pub like: Option<(Expr, Option<Expr>)>,
    /// `IS NOT NULL`
    pub not_null: bool,
}

impl Access {
    /// The path that reads the table itself: the build side of a hash join, otherwise this path.
    pub fn of_table(&self) -> &Access {
        match &self.kind {
            AccessKind::Hash { build, .. } => build,
            _ => self,
        }
    }
}

impl Access {
    /// Calls `f` with each expression of the path, mutably.
    pub(crate) fn each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.implied.iter_mut().for_each(&mut *f);
        self.kind.each_expr_mut(f);
    }
}

impl AccessKind {
    fn each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            AccessKind::Full | AccessKind::Source | AccessKind::Empty => {}
            AccessKind::Fulltext(search) => f(search),
            AccessKind::Points(parts) => parts.iter_mut().for_each(|p| p.each_expr_mut(f)),
            AccessKind::Range { prefix, range } => {
                prefix.iter_mut().for_each(|p| p.each_expr_mut(f));
                range.each_expr_mut(f);
            }
            AccessKind::Ranges(ranges) => ranges.iter_mut().for_each(|r| r.each_expr_mut(f)),
            AccessKind::Merge(merge) => {
                let branches = merge.branches.iter_mut();
                branches.for_each(|branch| branch.kind.each_expr_mut(f));
            }
            AccessKind::Skip(scan) => scan.rows.kind_mut().each_expr_mut(f),
            AccessKind::Hash {
                build,
                keys,
                filter,
                rows: _,
            } => {
                build.each_expr_mut(f);
                filter.iter_mut().for_each(&mut *f);
                let sides = keys.iter_mut().flat_map(|k| [&mut k.inner, &mut k.outer]);
                sides.for_each(f);
            }
        }
    }

    /// Calls `f` with each expression whose value the path looks up.
    pub fn each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        match self {
            AccessKind::Fulltext(search) => f(search),
            AccessKind::Points(parts) => parts.iter().for_each(|p| p.each_expr(f)),
            AccessKind::Range { prefix, range } => {
                prefix.iter().for_each(|p| p.each_expr(f));
                range.each_expr(f);
            }
            AccessKind::Ranges(list) => list.iter().for_each(|r| r.each_expr(f)),
            AccessKind::Merge(merge) => merge.branches.iter().for_each(|b| b.kind.each_expr(f)),
            AccessKind::Skip(scan) => scan.rows.kind().each_expr(f),
            AccessKind::Hash { build, .. } => build.kind.each_expr(f),
            AccessKind::Full | AccessKind::Source | AccessKind::Empty => {}
        }
    }

    /// The indexes that the path reads; `index` is the one of the access.
    pub(crate) fn indexes(&self, index: usize) -> Vec<usize> {
        match self {
            AccessKind::Merge(merge) => merge.branches.iter().map(|b| b.index).collect(),
            _ => vec![index],
        }
    }

    /// Whether the path looks up the values of a subquery.
    pub fn has_subquery(&self) -> bool {
        let by_subquery = |p: &PointPart| matches!(p, PointPart::Subquery { .. });
        matches!(self, AccessKind::Points(parts) if parts.iter().any(by_subquery))
    }

    /// Whether the executor may scan the table instead, in the order of its primary key, once it
    /// knows the values.
    pub fn may_scan(&self) -> bool {
        matches!(self, AccessKind::Points(parts) if parts.iter().any(PointPart::may_scan))
    }
}

impl SkipRows {
    /// The bounds of the part after the skipped ones.
    pub fn kind(&self) -> &AccessKind {
        let (SkipRows::Values(kind) | SkipRows::Ends { first: kind, .. }) = self;
        kind
    }

    fn kind_mut(&mut self) -> &mut AccessKind {
        let (SkipRows::Values(kind) | SkipRows::Ends { first: kind, .. }) = self;
        kind
    }
}

impl PointPart {
    /// Whether the values that are known at run time may be no keys, or too many.
    pub fn may_scan(&self) -> bool {
        matches!(
            self,
            PointPart::Subquery { .. } | PointPart::Elements { .. }
        )
    }

    fn each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        match self {
            PointPart::Eq { expr, .. } => f(expr),
            PointPart::Elements { value, .. } => f(value),
            PointPart::In(list) | PointPart::AnyEq(list) => list.iter().for_each(f),
            PointPart::List { .. } | PointPart::Subquery { .. } => {}
            PointPart::Rows { rows, .. } => rows.iter().flatten().for_each(f),
        }
    }

    fn each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            PointPart::Eq { expr, .. } => f(expr),
            PointPart::Elements { value, .. } => f(value),
            PointPart::In(list) | PointPart::AnyEq(list) => list.iter_mut().for_each(f),
            PointPart::List { .. } | PointPart::Subquery { .. } => {}
            PointPart::Rows { rows, .. } => {
                Arc::make_mut(rows).iter_mut().flatten().for_each(f);
            }
        }
    }
}

impl RangePart {
    fn each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        let bounds = [&self.lo, &self.hi].into_iter().flatten();
        bounds.for_each(|(e, _)| f(e));
        if let Some((pattern, escape)) = &self.like {
            f(pattern);
            escape.iter().for_each(f);
        }
    }

    fn each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        let bounds = self.lo.iter_mut().chain(&mut self.hi);
        bounds.for_each(|(e, _)| f(e));
        if let Some((pattern, escape)) = &mut self.like {
            f(pattern);
            escape.iter_mut().for_each(f);
        }
    }
}
