//! The plan of a query: which rows are read, in which order and by which access paths, and what is
//! computed from them. It holds no engine handle, no value and no row, so all sessions share it.

use std::sync::Arc;

use nfold_catalog::{ColumnDef, TableDef};
use nfold_sql::ast::{LockStrength, SetOp};
use nfold_types::ColumnType;
use smallvec::SmallVec;

use super::access::Access;
use crate::logical::clauses::{
    Aggregate, ColumnMeta, LimitPlan, OrderKey, ResultOrder, RowLocking,
};
use crate::logical::expr::{ColumnAt, Expr, ExprType};
use crate::logical::json_table::JsonTable;
use crate::logical::query::OuterKey;
use crate::logical::window::WindowPass;

/// A query block, or a set operation over blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryPlan {
    pub body: QueryBody,
    pub columns: Vec<ColumnMeta>,
    /// Types of the result columns.
    pub types: Vec<ExprType>,
    /// Sort keys over the *result* columns (set operations only; a block has its own).
    pub order: Vec<ResultOrder>,
    pub limit: Option<LimitPlan>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum QueryBody {
    Block(Box<Block>),
    Set {
        op: SetOp,
        distinct: bool,
        left: Box<QueryPlan>,
        right: Box<QueryPlan>,
        /// Which side is a set operation of the same chain, whose columns have the types of the
        /// whole.
        chained: [bool; 2],
    },
    /// `VALUES ROW(…)`
    Rows(Vec<Vec<Expr>>),
    Recursive(Box<Recursion>),
    /// The rows that the recursion of this number has given in its last round.
    Working(u32),
}

impl QueryPlan {
    /// The operands of a set operation and of the operations that are chained to it, in order.
    pub fn chain(&self) -> impl Iterator<Item = &QueryPlan> {
        let mut stack: SmallVec<[(&QueryPlan, bool); 4]> = SmallVec::from_iter([(self, true)]);
        std::iter::from_fn(move || {
            loop {
                match stack.pop()? {
                    (q, true) => match &q.body {
                        QueryBody::Set {
                            left,
                            right,
                            chained,
                            ..
                        } => stack.extend([(&**right, chained[1]), (&**left, chained[0])]),
                        _ => return Some(q),
                    },
                    (q, false) => return Some(q),
                }
            }
        })
    }
}

/// A common table expression that names itself: the rows of `seed`, and those that each of `steps`
/// makes of all rows once, those that it has made itself among them; one step after the other, and
/// over again, until they give none.
#[derive(Debug, Clone, PartialEq)]
pub struct Recursion {
    /// Which one of the statement.
    pub number: u32,
    pub seed: QueryPlan,
    pub steps: Vec<QueryPlan>,
    /// Each row once.
    pub distinct: bool,
    /// The columns, as which values are kept.
    pub columns: Vec<ColumnDef>,
}

impl Recursion {
    /// The seed, then the steps.
    pub fn queries(&self) -> impl Iterator<Item = &QueryPlan> {
        std::iter::once(&self.seed).chain(&self.steps)
    }
}

/// One SELECT.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The row slots, in the order of the FROM clause.
    pub tables: Vec<TableSlot>,
    /// How they are joined, in the order of execution; each slot once.
    pub joins: Vec<JoinStep>,
    /// Conditions on no table at all, tested once before anything is read.
    pub constant_filter: Vec<Expr>,
    pub group: Option<GroupPlan>,
    /// Over the rows that grouping gives (its single slot), or over the joined ones.
    pub having: Vec<Expr>,
    /// Window functions over the rows that pass HAVING, sort by sort; the results of each are the
    /// columns of a row slot behind the others.
    pub windows: Vec<WindowPass>,
    /// The result columns.
    pub select: Vec<Expr>,
    pub distinct: bool,
    /// Over the same rows as `select`. Empty when `ordered` or not asked for.
    pub order: Vec<OrderKey>,
    /// The first table's index gives the order that ORDER BY asks for.
    pub ordered: bool,
    pub subqueries: Vec<SubqueryPlan>,
    pub lock: RowLocking,
    /// UPDATE and DELETE: the slots whose rows are changed, as a bit set. 0: a query.
    pub changed: u64,
    /// `SQL_CALC_FOUND_ROWS`
    pub calc_found_rows: bool,
    /// What is deprecated, and what to write instead: warning 1287 with each run.
    pub deprecated: Vec<(&'static str, &'static str)>,
}

/// What a row slot is filled from.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSlot {
    pub source: TableSource,
    /// Alias, or name.
    pub alias: Arc<str>,
    /// Columns that the statement looks at.
    pub used: Vec<bool>,
    /// It was a derived table's before that became part of the query.
    pub merged: bool,
    /// On the right of a LEFT JOIN: any column may be NULL.
    pub nullable: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TableSource {
    Table(Arc<TableDef>),
    Derived(Box<QueryPlan>),
    /// A system view: rows are made by the server.
    /// A system table, whose rows the session makes.
    Virtual(Arc<TableDef>),
    Json(Box<JsonTable>),
}

impl TableSource {
    /// Types of its columns, with whether they may be NULL.
    pub fn column_types(&self) -> Vec<(ColumnType, bool)> {
        match self {
            TableSource::Table(t) | TableSource::Virtual(t) => t
                .columns
                .iter()
                .map(|c| (c.ty.clone(), c.nullable))
                .collect(),
            TableSource::Derived(q) => q.types.iter().map(|t| (t.col.clone(), true)).collect(),
            TableSource::Json(t) => {
                let columns = t.shape.columns.iter();
                columns.map(|c| (c.ty.clone(), true)).collect()
            }
        }
    }
}

/// How the rows of one slot are found and joined to those before it.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinStep {
    /// The slot.
    pub table: usize,
    pub access: Access,
    pub kind: JoinType,
    /// The ON conditions of a left join, and those of a nest that have all their tables here: they
    /// decide whether a row matches.
    pub on: Vec<Expr>,
    /// Where the step is part of a nest.
    pub nest: Option<Box<NestStep>>,
    /// Conditions on the joined row, tested after an outer join's missing row was added.
    pub filter: Vec<Expr>,
    /// Another way to find the rows.
    pub alternative: Option<Box<Alternative>>,
    /// Estimated rows read per outer row, and the share of them (0 to 100) that `filter` keeps.
    pub rows: f64,
    pub filtered: f64,
}

/// The other way to join the table of a step: by a hash table where `access` looks its rows up for
/// each outer row, and by lookups where `access` is a hash table. Its rows have the layout of those
/// of `access`.
///
/// A step that has one begins with lookups, and builds the hash table when they have cost more than
/// `budget`. So an estimate that is wrong costs no more than a few times what the better way does.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    pub access: Access,
    /// In the unit of [`LOOKUP_COST`] and [`LOOKUP_ROW_COST`].
    pub budget: f64,
    /// The estimated cost of looking up the rows of one outer row.
    pub lookup_cost: f64,
}

/// The cost of a lookup in an index, and of a row that it finds, in microseconds about.
pub const LOOKUP_COST: f64 = 0.3;
pub const LOOKUP_ROW_COST: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinType {
    Inner,
    Left,
}

/// What a step does for the nests that it is part of. A nest is the inner side of an outer join
/// that is no single table; its tables are steps next to one another, of [`JoinType::Inner`], and
/// so is a single one within another nest.
///
/// Behind the rows that join a row of the outer side, the first step of a nest sends that row with
/// NULL in its place. Later steps let such a row through, with NULL in theirs. The last one drops
/// it where a row before it, since the last of its kind, was a match.
#[derive(Debug, Clone, PartialEq)]
pub struct NestStep {
    /// The first slot of the innermost nest around the step that begins before it: a row in which
    /// it is NULL is let through.
    pub within: Option<usize>,
    /// A nest begins here.
    pub begins: bool,
    /// The nests that end here, the innermost first.
    pub ends: Vec<NestEnd>,
}

/// The end of a nest.
#[derive(Debug, Clone, PartialEq)]
pub struct NestEnd {
    /// The nest's first slot.
    pub first: usize,
    /// The first slot of the nest around it.
    pub within: Option<usize>,
    /// Conditions of the nest around it that wait for this one.
    pub on: Vec<Expr>,
}

/// GROUP BY, or aggregation of all rows into one. Its result is a row slot of the keys, the row's
/// level where it is rolled up, and the aggregates.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupPlan {
    pub keys: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
    /// Rows come with equal keys together.
    pub ordered: bool,
    /// No GROUP BY: one row, also of nothing.
    pub implicit: bool,
    /// WITH ROLLUP: groups come in the order of their keys, and behind the groups that share the
    /// first n keys a row for all of them, in which the other keys are NULL; n goes down to 0.
    pub rollup: bool,
    /// `MIN(col)`/`MAX(col)` alone, answered by the first row of the access path.
    pub first_row_only: bool,
}

impl GroupPlan {
    /// Where the first aggregate is in the result.
    pub fn first_aggregate(&self) -> usize {
        self.keys.len() + usize::from(self.rollup)
    }

    /// Where the result says how many keys of the row are those of its groups, WITH ROLLUP.
    pub fn level(&self) -> Option<ColumnAt> {
        self.rollup.then_some(ColumnAt {
            table: 0,
            column: self.keys.len() as u16,
        })
    }
}

/// A subquery of a query block.
#[derive(Debug, Clone, PartialEq)]
pub struct SubqueryPlan {
    pub plan: Box<QueryPlan>,
    /// It names columns of an enclosing query, so it runs once per row.
    pub correlated: bool,
    /// Another way to answer EXISTS, IN or an aggregate.
    pub decorrelated: Option<Box<DecorrelatedPlan>>,
}

/// A correlated subquery without what correlates it, which are equalities. Of EXISTS and IN: its
/// rows are a set that each outer row asks. Of an aggregate: its rows are groups, of which an outer
/// row has one or none.
#[derive(Debug, Clone, PartialEq)]
pub struct DecorrelatedPlan {
    /// Selects the inner side of each of `keys`, then what IN compares, or the value of the group.
    pub plan: Box<QueryPlan>,
    pub keys: Vec<OuterKey>,
    /// Conditions of the subquery on outer rows alone, as the query that it belongs to sees them.
    pub conditions: Vec<Expr>,
    /// Rows that it reads, estimated.
    pub rows: f64,
    /// Values of one kind become values of another on the way, with warnings or, in changes,
    /// errors.
    pub converts: bool,
    /// It is an aggregate.
    pub grouped: bool,
}

impl QueryPlan {
    /// Rows that it gives, estimated.
    pub(crate) fn result_rows(&self) -> f64 {
        match &self.body {
            QueryBody::Block(b) => b.result_rows(),
            QueryBody::Set {
                op: SetOp::Union,
                left,
                right,
                ..
            } => left.result_rows() + right.result_rows(),
            QueryBody::Set { left, .. } => left.result_rows(),
            QueryBody::Rows(rows) => rows.len() as f64,
            // How many rounds there are, nobody knows.
            QueryBody::Recursive(r) => r.queries().map(QueryPlan::result_rows).sum(),
            QueryBody::Working(_) => 1.0,
        }
    }
}

/// Of `n` rows come `n` to this power groups, about, and HAVING keeps this share of them.
const GROUPED: f64 = 0.8;
const HAVING: f64 = 0.1;

impl Block {
    /// Rows that it gives, estimated.
    pub(crate) fn result_rows(&self) -> f64 {
        if self.group.as_ref().is_some_and(|g| g.implicit) {
            return 1.0;
        }
        let joined = self
            .joins
            .iter()
            .map(|step| step.rows * step.filtered / 100.0);
        let joined = joined.product::<f64>();
        let groups = match &self.group {
            Some(_) => joined.powf(GROUPED),
            None => joined,
        };
        let passing = match self.group.is_some() && !self.having.is_empty() {
            true => groups * HAVING,
            false => groups,
        };
        passing.max(1.0)
    }

    /// Whether MySQL puts the rows of a block WITH ROLLUP, or its joined rows, into a temporary
    /// table.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.distinct || !self.order.is_empty() || !self.windows.is_empty() || self.joins.len() > 1
    }

    /// Calls `f` with each expression of the join steps, and with the constant conditions.
    pub(crate) fn each_step_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        for step in &mut self.joins {
            step.access.each_expr_mut(f);
            if let Some(other) = &mut step.alternative {
                other.access.each_expr_mut(f);
            }
            step.on.iter_mut().chain(&mut step.filter).for_each(&mut *f);
            let ends = step.nest.iter_mut().flat_map(|nest| &mut nest.ends);
            ends.flat_map(|end| &mut end.on).for_each(&mut *f);
        }
        for slot in &mut self.tables {
            if let TableSource::Json(json) = &mut slot.source {
                f(&mut json.document);
            }
        }
        self.constant_filter.iter_mut().for_each(f);
    }

    /// Whether the rows of a slot are locked as those that are going to be changed.
    pub fn locks_to_change(&self, slot: usize) -> bool {
        self.lock.of_slot(slot) == Some(LockStrength::Update)
            && (self.changed == 0 || self.changes(slot))
    }

    /// Whether the statement changes the rows of a slot.
    pub fn changes(&self, slot: usize) -> bool {
        self.changed >> slot.min(63) & 1 == 1
    }

    /// Where a column is, with the type the slot's source gives it.
    pub fn column_type(&self, at: ColumnAt) -> (ColumnType, bool) {
        let slot = &self.tables[usize::from(at.table)];
        let (ty, nullable) = slot.source.column_types()[usize::from(at.column)].clone();
        (ty, nullable || slot.nullable)
    }
}
