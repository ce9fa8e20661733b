//! Access paths: how the rows of one table are found. A path names expressions; their values are
//! read when the plan is bound to parameters.

use std::sync::Arc;

use crate::logical::expr::Expr;
use crate::logical::types::CmpKind;

/// An access path to one table.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// Place in `TableDef::indexes`; 0 is the clustered one. Meaningless for derived tables and
    /// views.
    pub index: usize,
    /// The index holds every column that is needed.
    pub covering: bool,
    /// Read from the end.
    pub reverse: bool,
    pub kind: AccessKind,
    /// Conditions that the access path itself fulfils whenever its values convert exactly to the
    /// columns' types; they are tested on the rows otherwise.
    pub implied: Vec<Expr>,
    /// Indexes that could have been used (for EXPLAIN).
    pub possible: Vec<usize>,
}

#[allow(clippy::large_enum_variant)] // one for each table of a plan
#[derive(Debug, Clone, PartialEq)]
pub enum AccessKind {
    /// The whole index.
    Full,
    /// Equality on the first parts of the index: the points are the product of all parts' members.
    Points(Vec<PointPart>),
    /// Equality on the first parts, then a range over the next one.
    Range {
        prefix: Vec<PointPart>,
        range: RangePart,
    },
    /// OR of ranges over the first part of the index, in any order.
    Ranges(Vec<RangePart>),
    /// Derived tables and views: rows come from `TableSlot::source`. With `keys`, a hash table over
    /// `(inner column, outer value)`.
    Source,
    /// Rows of the table are put into a hash table by `inner` and looked up by `outer`; the table
    /// itself is read by `build`. Rows that do not pass `filter`, over the table's slot alone, join
    /// no row and are left out.
    Hash {
        build: Box<Access>,
        keys: Vec<HashKey>,
        filter: Vec<Expr>,
    },
    /// A condition can never hold.
    Empty,
}

/// One equality of a hash join.
#[derive(Debug, Clone, PartialEq)]
pub struct HashKey {
    /// Over the inner table's slot.
    pub inner: Expr,
    /// Over the slots before.
    pub outer: Expr,
    pub kind: CmpKind,
}

/// The members of one key part.
#[derive(Debug, Clone, PartialEq)]
pub enum PointPart {
    /// One value. `null_safe`: NULL is a value like others (`<=>`, IS NULL); otherwise NULL matches
    /// nothing.
    Eq { expr: Expr, null_safe: bool },
    /// Any of these.
    In(Vec<Expr>),
    /// Any of these, each as by `=`: where OR joins comparisons with a TIME, what a text is to one
    /// is not what it is to a list.
    AnyEq(Vec<Expr>),
    /// Member `at` of each row of list slot `list`. Parts of the same list (`of` > 1) go together,
    /// row by row.
    List { list: u32, at: usize, of: usize },
    /// The values of a subquery that is not correlated. Where they are more than `most`, a scan
    /// that asks the set of them costs less.
    Subquery {
        index: u16,
        kind: CmpKind,
        most: usize,
    },
    /// Column `at` of written-out row constructors; parts with the same number of rows go together.
    Rows {
        rows: Arc<Vec<Vec<Expr>>>,
        at: usize,
    },
}

/// A range over one key part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RangePart {
    /// Value, and whether it is inside.
    pub lo: Option<(Expr, bool)>,
    pub hi: Option<(Expr, bool)>,
    /// Both bounds are those of one BETWEEN.
    pub between: bool,
    /// `LIKE` with this pattern (and escape): the prefix is cut out of its value when it is bound.
    pub like: Option<(Expr, Option<Expr>)>,
    /// `IS NOT NULL`
    pub not_null: bool,
}

impl Access {
    /// The path by which the table itself is read: that of the build side of a hash join.
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
        match &mut self.kind {
            AccessKind::Full | AccessKind::Source | AccessKind::Empty => {}
            AccessKind::Points(parts) => parts.iter_mut().for_each(|p| p.each_expr_mut(f)),
            AccessKind::Range { prefix, range } => {
                prefix.iter_mut().for_each(|p| p.each_expr_mut(f));
                range.each_expr_mut(f);
            }
            AccessKind::Ranges(ranges) => ranges.iter_mut().for_each(|r| r.each_expr_mut(f)),
            AccessKind::Hash {
                build,
                keys,
                filter,
            } => {
                build.each_expr_mut(f);
                filter.iter_mut().for_each(&mut *f);
                let sides = keys.iter_mut().flat_map(|k| [&mut k.inner, &mut k.outer]);
                sides.for_each(f);
            }
        }
    }
}

impl AccessKind {
    /// Calls `f` with each expression whose value the path looks up.
    pub fn each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        match self {
            AccessKind::Points(parts) => parts.iter().for_each(|p| p.each_expr(f)),
            AccessKind::Range { prefix, range } => {
                prefix.iter().for_each(|p| p.each_expr(f));
                range.each_expr(f);
            }
            AccessKind::Ranges(list) => list.iter().for_each(|r| r.each_expr(f)),
            AccessKind::Hash { build, .. } => build.kind.each_expr(f),
            AccessKind::Full | AccessKind::Source | AccessKind::Empty => {}
        }
    }

    /// Whether the path looks up the values of a subquery.
    pub fn has_subquery(&self) -> bool {
        let by_subquery = |p: &PointPart| matches!(p, PointPart::Subquery { .. });
        matches!(self, AccessKind::Points(parts) if parts.iter().any(by_subquery))
    }
}

impl PointPart {
    fn each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        match self {
            PointPart::Eq { expr, .. } => f(expr),
            PointPart::In(list) | PointPart::AnyEq(list) => list.iter().for_each(f),
            PointPart::List { .. } | PointPart::Subquery { .. } => {}
            PointPart::Rows { rows, .. } => rows.iter().flatten().for_each(f),
        }
    }

    fn each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            PointPart::Eq { expr, .. } => f(expr),
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
