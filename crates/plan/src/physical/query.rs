//! The plan of a query: which rows are read, in which order and by which access paths, and what is
//! computed from them. It holds no engine handle, value or row, so all sessions share it.

use std::sync::Arc;

use nfold_catalog::{ColumnDef, TableDef};
use nfold_sql::ast::{LockStrength, SetOp};
use nfold_types::ColumnType;
use smallvec::SmallVec;

use super::access::{Access, AccessKind, PointPart};
use crate::logical::clauses::{
    AggFunc, Aggregate, BlockWarning, ColumnMeta, ConstantCheck, LimitPlan, OrderKey, ResultOrder,
    RowLocking,
};
use crate::logical::expr::{ColumnAt, Expr, ExprType, is_constant};
use crate::logical::json_table::JsonTable;
pub use crate::logical::query::{DocumentPaths, JoinType};
use crate::logical::query::{Extreme, OuterKey};
use crate::logical::window::WindowPass;

/// A query block, or a set operation over blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryPlan {
    pub body: QueryBody,
    pub columns: Vec<ColumnMeta>,
    /// Types of the result columns.
    pub types: Vec<ExprType>,
    /// Sort keys over the result columns of a set operation. A block has its own.
    pub order: Vec<ResultOrder>,
    pub limit: Option<LimitPlan>,
    /// The columns as MySQL describes them if a constant condition or LIMIT 0 leaves no rows.
    /// `None` if that makes no difference.
    pub empty_columns: Option<Box<[ColumnMeta]>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum QueryBody {
    Block(Box<Block>),
    Set {
        op: SetOp,
        distinct: bool,
        left: Box<QueryPlan>,
        right: Box<QueryPlan>,
        /// Which side is a set operation of the same chain. Its columns then have the types of the
        /// whole chain.
        chained: [bool; 2],
    },
    /// `VALUES ROW(…)`
    Rows(Vec<Vec<Expr>>),
    Recursive(Box<Recursion>),
    /// The rows that are new to the current step of the recursion with this number.
    Working(u32),
}

impl QueryPlan {
    /// The block that is executed first; `None` for a query without one.
    pub(crate) fn first_block(&mut self) -> Option<&mut Block> {
        match &mut self.body {
            QueryBody::Block(block) => Some(block),
            QueryBody::Set { left, .. } => left.first_block(),
            QueryBody::Recursive(recursion) => recursion.seed.first_block(),
            QueryBody::Rows(_) | QueryBody::Working(_) => None,
        }
    }

    /// The operands of a set operation and of the operations chained to it, in order.
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

/// A recursive common table expression: the rows of `seed`, and those that `steps` derive. Each
/// step in turn reads the rows that are new to it, including rows that it added itself. The
/// recursion ends when no step adds a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Recursion {
    /// Identifies the recursion within its statement.
    pub number: u32,
    pub seed: QueryPlan,
    pub steps: Vec<QueryPlan>,
    /// UNION DISTINCT: a row that occurred before is dropped.
    pub distinct: bool,
    /// The columns of the temporary table that holds the rows.
    pub columns: Vec<ColumnDef>,
}

impl Recursion {
    /// The seed, then the recursive steps.
    pub fn queries(&self) -> impl Iterator<Item = &QueryPlan> {
        std::iter::once(&self.seed).chain(&self.steps)
    }
}

/// One SELECT.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The row slots, in the order of the FROM clause.
    pub tables: Vec<TableSlot>,
    /// The joins in the order of execution. Each slot occurs once.
    pub joins: Vec<JoinStep>,
    /// Conditions that read no table. They are tested once, before any row is read.
    pub constant_filter: Vec<Expr>,
    /// Conditions of HAVING that name no group. They are tested once, after `constant_filter`.
    pub constant_having: Vec<Expr>,
    pub group: Option<GroupPlan>,
    /// Over the slot of the grouped row, or over the joined row without grouping.
    pub having: Vec<Expr>,
    /// Window functions over the rows that pass HAVING. Each pass sorts the rows, and adds a row
    /// slot of its results after the others.
    pub windows: Vec<WindowPass>,
    /// The result columns.
    pub select: Vec<Expr>,
    pub distinct: bool,
    /// Over the same row as `select`. Empty without ORDER BY, and if `ordered`.
    pub order: Vec<OrderKey>,
    /// Whether the index of the first table returns rows in the order of ORDER BY.
    pub ordered: bool,
    pub subqueries: Vec<SubqueryPlan>,
    pub lock: RowLocking,
    /// UPDATE and DELETE: the slots whose rows change, as a bit set. 0 in a query.
    pub changed: u64,
    /// Each row of the only table is tested when the one before it has been passed on: because the
    /// conditions read a user variable that the block assigns, or, in UPDATE and DELETE, because
    /// they may warn.
    pub row_by_row: bool,
    /// `SQL_CALC_FOUND_ROWS`
    pub calc_found_rows: bool,
    /// Warnings with each run.
    pub warnings: Vec<BlockWarning>,
    /// Constants to be converted before the first row. Only the block that the statement executes
    /// first has them.
    pub constant_checks: Vec<ConstantCheck>,
    /// The estimated cost of the joined rows, derived tables included, in microseconds.
    pub cost: f64,
    /// The estimated number of joined rows, if statistics were consulted.
    pub rows: Option<f64>,
}

/// A row slot, and the source of its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSlot {
    pub source: TableSource,
    /// The alias if there is one, otherwise the table's name.
    pub alias: Arc<str>,
    /// The columns that the statement reads.
    pub used: Vec<bool>,
    /// The JSON columns of which it needs some members only.
    pub documents: Vec<DocumentPaths>,
    /// Whether the table came from a derived table that was merged into the query.
    pub merged: bool,
    /// Whether the table is on the inner side of an outer join, so that any column may be NULL.
    pub nullable: bool,
    /// The slots that a LATERAL derived table reads, as a bit set. Such a query runs for each row
    /// of these slots, as a subquery of this block; 0: it is any other table.
    pub lateral: u64,
    /// The number of the rows of a derived table that are computed once for the statement: tables
    /// with this number share them.
    pub shared: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TableSource {
    Table(Arc<TableDef>),
    Derived(Box<QueryPlan>),
    /// A system table. The session computes its rows.
    Virtual(Arc<TableDef>),
    Json(Box<JsonTable>),
}

impl TableSource {
    /// The types of the columns, each with whether it may be NULL.
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

/// A step of a join: how the rows of one slot are found and joined to those of the earlier slots.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinStep {
    /// The slot of the table.
    pub table: usize,
    pub access: Access,
    pub kind: JoinType,
    /// The ON conditions of an outer, semi or anti join that can be tested at this step. They
    /// decide whether a row matches.
    pub on: Vec<Expr>,
    /// The step's part in nested outer joins, if it has one.
    pub nested_join: Option<Box<NestedJoinStep>>,
    /// Conditions on the joined row, tested after NULL-extension.
    pub filter: Vec<Expr>,
    /// The other way to find the rows, if there is one.
    pub alternative: Option<Box<Alternative>>,
    /// Whether the hash table is built before the first row of the join is read. If it is empty,
    /// the join has no rows. Of the first step: whether its first rows are read before these hash
    /// tables are built.
    pub builds_early: bool,
    /// The estimated number of rows read per outer row, and the percentage of them that `filter`
    /// keeps.
    pub rows: f64,
    pub filtered: f64,
}

/// The other way to join the table of a step: a hash table if `access` looks up rows for each outer
/// row, and lookups if `access` is a hash join. Both return rows of the same layout.
///
/// A step with an alternative starts with lookups, and builds the hash table once the lookups have
/// cost more than `budget`. So a wrong estimate costs at most a few times as much as the better
/// way.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    pub access: Access,
    /// In the unit of [`LOOKUP_COST`] and [`LOOKUP_ROW_COST`].
    pub budget: f64,
    /// The estimated cost of the lookups for one outer row.
    pub lookup_cost: f64,
}

/// The cost of an index lookup, and of each row that it finds, in microseconds.
pub const LOOKUP_COST: f64 = 0.3;
pub const LOOKUP_ROW_COST: f64 = 0.5;
/// The cost of a row read in order from a leaf, in microseconds.
pub const SCAN_ROW_COST: f64 = 0.1;
/// The costs of adding a row to a hash table, and of probing it with an outer row, in microseconds.
pub const HASH_BUILD_COST: f64 = 0.4;
pub const HASH_PROBE_COST: f64 = 0.2;

/// The cost of sorting `rows` rows, in microseconds.
pub fn sort_cost(rows: f64) -> f64 {
    rows * (rows + 2.0).log2() * 0.02
}

/// The part of a step in nested outer joins. The inner side of a nested outer join has several
/// tables, or is one table inside another nested outer join. Its tables are consecutive steps, each
/// of [`JoinType::Inner`].
///
/// For each outer row, the first step of a nested outer join returns the joined rows, and after
/// them the outer row with NULL in its slot. Later steps pass on such a row with NULL in their
/// slots. The last step drops it if a row between it and the previous NULL-extended row has
/// matched.
#[derive(Debug, Clone, PartialEq)]
pub struct NestedJoinStep {
    /// The first slot of the innermost nested outer join that contains this step and began earlier.
    /// A row in which this slot is NULL is passed on.
    pub within: Option<usize>,
    /// Whether a nested outer join begins at this step.
    pub begins: bool,
    /// The nested outer joins that end at this step, innermost first.
    pub ends: Vec<NestedJoinEnd>,
}

/// The end of a nested outer join.
#[derive(Debug, Clone, PartialEq)]
pub struct NestedJoinEnd {
    /// The first slot of the join that ends.
    pub first: usize,
    /// The first slot of the nested outer join around it.
    pub within: Option<usize>,
    /// ON conditions of the join around it that can be tested only now.
    pub on: Vec<Expr>,
}

/// GROUP BY, or the aggregation of all rows into one. The grouped row is one slot with these
/// columns: the keys, the row's level if `rollup`, and the aggregates.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupPlan {
    pub keys: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
    /// Whether rows with equal keys arrive next to each other.
    pub ordered: bool,
    /// Without GROUP BY: the result is one row, even if there are no input rows.
    pub implicit: bool,
    /// WITH ROLLUP: groups are returned in the order of their keys. The groups that share their
    /// first n keys are followed by a row that summarizes them, in which the other keys are NULL,
    /// for each n down to 0.
    pub rollup: bool,
    /// Whether the first row of the access path gives a lone `MIN(col)` or `MAX(col)`.
    pub first_row_only: bool,
}

impl GroupPlan {
    /// Whether MySQL sorts the rows of the groups, because an aggregate has DISTINCT or is
    /// GROUP_CONCAT.
    pub(crate) fn is_sorted(&self) -> bool {
        let sorts = |a: &Aggregate| a.distinct || a.func == AggFunc::GroupConcat;
        !self.implicit && !self.rollup && self.aggregates.iter().any(sorts)
    }

    /// The position of the first aggregate in the grouped row.
    pub fn first_aggregate(&self) -> usize {
        self.keys.len() + usize::from(self.rollup)
    }

    /// The column with the number of keys that are not summarized in the row, if WITH ROLLUP.
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
    /// Whether the subquery names columns of an enclosing query, and so runs once per row.
    pub correlated: bool,
    /// The columns of the enclosing query that a correlated subquery names, if they alone decide
    /// its rows.
    pub depends_on: Option<Vec<Expr>>,
    /// The decorrelated plan of an EXISTS, IN or aggregate.
    pub decorrelated: Option<Box<DecorrelatedPlan>>,
}

/// The decorrelated plan of a correlated subquery: the equalities with the outer row are taken out
/// of it. The rows of EXISTS and IN become a set that each outer row probes. The rows of an
/// aggregate become groups, of which an outer row finds at most one.
#[derive(Debug, Clone, PartialEq)]
pub struct DecorrelatedPlan {
    /// Selects the inner side of each of `keys`, followed by the columns that IN compares, or by
    /// the value of the group.
    pub plan: Box<QueryPlan>,
    pub keys: Vec<OuterKey>,
    /// Conditions of the subquery that read the outer row only, as seen from the enclosing query.
    pub conditions: Vec<Expr>,
    /// Conditions that read both rows and are no equalities. `plan` selects the values of the inner
    /// row that they read after the others. If there are any, the rows of the set are kept in
    /// groups by their keys, and tested for each outer row.
    pub tests: Vec<Expr>,
    /// The only row of each group that `tests` needs. `None`: all rows.
    pub extreme: Option<Extreme>,
    /// The estimated number of rows that it reads.
    pub rows: f64,
    /// Whether evaluation may convert values, which causes warnings, or errors in strict mode.
    pub converts: bool,
    /// Whether the subquery is an aggregate.
    pub grouped: bool,
}

impl QueryPlan {
    /// The estimated cost of the query, without grouping and sorting, in microseconds.
    pub(crate) fn cost(&self) -> f64 {
        match &self.body {
            QueryBody::Block(b) => b.cost,
            QueryBody::Set { left, right, .. } => left.cost() + right.cost(),
            QueryBody::Recursive(r) => r.queries().map(QueryPlan::cost).sum(),
            QueryBody::Rows(_) | QueryBody::Working(_) => 0.0,
        }
    }

    /// The estimated number of rows that the query returns, without LIMIT.
    pub fn result_rows(&self) -> f64 {
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
            // The number of rounds is unknown: one round is assumed.
            QueryBody::Recursive(r) => r.queries().map(QueryPlan::result_rows).sum(),
            QueryBody::Working(_) => 1.0,
        }
    }
}

/// Estimates: `n` rows form `n` to the power of `GROUPED` groups, and HAVING keeps this share of
/// them.
const GROUPED: f64 = 0.8;
const HAVING: f64 = 0.1;

impl Block {
    /// The estimated number of rows that the block returns, without LIMIT.
    pub fn result_rows(&self) -> f64 {
        if self.group.as_ref().is_some_and(|g| g.implicit) {
            return 1.0;
        }
        let matches = |step: &JoinStep| match step.kind {
            JoinType::Semi | JoinType::Anti => 1.0,
            JoinType::Inner | JoinType::Left => step.rows * step.filtered / 100.0,
        };
        let by_steps = || self.joins.iter().map(matches).product::<f64>();
        let joined = self.rows.unwrap_or_else(by_steps);
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

    /// Whether MySQL stores the grouped rows of a block WITH ROLLUP, or its joined rows, in a
    /// temporary table.
    pub(crate) fn keeps_rows(&self) -> bool {
        self.distinct || !self.order.is_empty() || self.keeps_rolled_up_rows_twice()
    }

    /// Whether MySQL stores the rows of a block WITH ROLLUP in a temporary table in which the
    /// results are computed: for windows, or because it stores the joined rows, too. It always does
    /// so with an outer join.
    pub(crate) fn keeps_rolled_up_rows_twice(&self) -> bool {
        let Some(group) = self.group.as_ref().filter(|group| group.rollup) else {
            return false;
        };
        let outer = |step: &JoinStep| step.kind == JoinType::Left;
        let keys: Vec<&Expr> = group.keys.iter().collect();
        !self.windows.is_empty() || self.joins.iter().any(outer) || self.sorts_joined_rows(&keys)
    }

    /// Whether MySQL reads the table of a step before it plans the query: at most one row has the
    /// constant key.
    pub(crate) fn is_const_table(&self, step: &JoinStep) -> bool {
        let TableSource::Table(def) = &self.tables[step.table].source else {
            return false;
        };
        // A table that depends on no other one is read into a hash table without keys.
        let access = match &step.access.kind {
            AccessKind::Hash { build, keys, .. } if keys.is_empty() => build,
            _ => &step.access,
        };
        let AccessKind::Points(parts) = &access.kind else {
            return false;
        };
        let index = &def.indexes[access.index];
        step.kind == JoinType::Inner
            && index.is_unique()
            && parts.len() == index.parts.len()
            && (parts.iter()).all(|p| matches!(p, PointPart::Eq { expr, .. } if is_constant(expr)))
    }

    /// Whether MySQL stores the joined rows of a block in a temporary table before it sorts them,
    /// for ORDER BY, or for aggregates that need sorted groups: a sort key names a table other than
    /// the first, or a table is joined by hashing.
    pub(crate) fn keeps_sorted_rows(&self) -> bool {
        let keys: Vec<&Expr> = match &self.group {
            Some(group) if group.is_sorted() => group.keys.iter().collect(),
            Some(_) => return false,
            None if self.distinct => return false,
            None => self.order.iter().map(|key| &key.expr).collect(),
        };
        self.sorts_joined_rows(&keys)
    }

    /// Whether MySQL stores the joined rows to sort them by `keys`.
    fn sorts_joined_rows(&self, keys: &[&Expr]) -> bool {
        if keys.is_empty() {
            return false;
        }
        let mut steps = self.joins.iter().filter(|step| !self.is_const_table(step));
        let Some(first) = steps.next() else {
            return false;
        };
        // MySQL looks the rows of most semijoins and antijoins up, where Nfold hashes them.
        let hashed = |step: &JoinStep| {
            let joins = matches!(step.kind, JoinType::Inner | JoinType::Left);
            joins && matches!(step.access.kind, AccessKind::Hash { .. })
        };
        let of_other = |e: &Expr| {
            let at = e.as_column().map(|at| usize::from(at.table));
            at.is_some_and(|table| table != first.table)
        };
        let mut rest = steps.peekable();
        rest.peek().is_some()
            && (rest.any(hashed) || keys.iter().any(|key| key.any(&mut |e| of_other(e))))
    }

    /// Calls `f` with each expression of the join steps and of the constant conditions.
    pub(crate) fn each_step_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        for step in &mut self.joins {
            step.access.each_expr_mut(f);
            if let Some(other) = &mut step.alternative {
                other.access.each_expr_mut(f);
            }
            step.on.iter_mut().chain(&mut step.filter).for_each(&mut *f);
            let ends = step.nested_join.iter_mut().flat_map(|join| &mut join.ends);
            ends.flat_map(|end| &mut end.on).for_each(&mut *f);
        }
        for slot in &mut self.tables {
            if let TableSource::Json(json) = &mut slot.source {
                f(&mut json.document);
            }
        }
        let constant = self.constant_filter.iter_mut();
        constant.chain(&mut self.constant_having).for_each(f);
    }

    /// Whether the rows of a slot are locked exclusively: by FOR UPDATE, or because the statement
    /// changes them.
    pub fn locks_to_change(&self, slot: usize) -> bool {
        self.lock.of_slot(slot) == Some(LockStrength::Update)
            && (self.changed == 0 || self.changes(slot))
    }

    /// The slot of a set that is read after the others.
    pub fn last_read(&self, slots: u64) -> Option<usize> {
        let mut tables = self.joins.iter().rev().map(|step| step.table);
        tables.find(|t| slots >> t & 1 == 1)
    }

    /// The LATERAL derived tables that run anew for each row of a slot.
    pub fn run_by(&self, slot: usize) -> impl Iterator<Item = &TableSlot> {
        let tables = self.tables.iter();
        tables.filter(move |t| t.lateral != 0 && self.last_read(t.lateral) == Some(slot))
    }

    /// Whether the statement changes the rows of a slot.
    pub fn changes(&self, slot: usize) -> bool {
        self.changed >> slot.min(63) & 1 == 1
    }

    /// The type of a column and whether it may be NULL, as the slot's source declares it.
    pub fn column_type(&self, at: ColumnAt) -> (ColumnType, bool) {
        let slot = &self.tables[usize::from(at.table)];
        let (ty, nullable) = slot.source.column_types()[usize::from(at.column)].clone();
        (ty, nullable || slot.nullable)
    }
}
