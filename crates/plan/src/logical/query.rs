//! The logical tree of a query: what it means, without access paths or a join order.
//! [`crate::bind`] builds it, [`crate::rewrite`] changes it, [`crate::optimize`] turns it into a
//! plan.

use std::sync::Arc;

use nfold_catalog::{ColumnDef, TableDef};
use nfold_sql::ast::SetOp;

use super::clauses::{Aggregate, ColumnMeta, LimitPlan, OrderKey, ResultOrder, RowLocking};
use super::describe::Description;
use super::expr::{ColumnAt, Expr};
use super::json_table::JsonTable;
use super::types::{CmpKind, ExprType};
use super::window::WindowPass;

/// Tables that one query block may join, as in MySQL: a set of them is a 64-bit word.
pub(crate) const MAX_TABLES: usize = 61;

/// A query: its rows, their description, and LIMIT.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub body: QueryBody,
    pub columns: Vec<ColumnMeta>,
    /// Types of the result columns.
    pub types: Vec<ExprType>,
    /// Sort keys over the *result* columns (set operations only; a block has its own).
    pub order: Vec<ResultOrder>,
    pub limit: Option<LimitPlan>,
    /// The statement's own query block: its columns are described when its plan is known.
    pub description: Option<Box<Description>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum QueryBody {
    Block(Box<Block>),
    Set {
        op: SetOp,
        distinct: bool,
        left: Box<Query>,
        right: Box<Query>,
        /// Which side is a set operation of the same chain, whose columns have the types of the
        /// whole.
        chained: [bool; 2],
    },
    /// `VALUES ROW(…)`
    Rows(Vec<Vec<Expr>>),
    Recursive(Box<Recursion>),
    /// The rows of the last round of the recursion with this number.
    Working(u32),
}

/// A common table expression that names itself. Each round runs `steps` one after the other over
/// the rows of the round before; the first round reads `seed`. The recursion ends with a round of
/// no rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recursion {
    /// Tells the recursions of one statement apart.
    pub number: u32,
    pub name: Box<str>,
    pub seed: Query,
    pub steps: Vec<Query>,
    /// UNION DISTINCT: each row once.
    pub distinct: bool,
    /// The columns of the temporary table that holds the rows.
    pub columns: Vec<ColumnDef>,
}

impl Recursion {
    /// The seed, then the steps.
    pub fn queries_mut(&mut self) -> impl Iterator<Item = &mut Query> {
        std::iter::once(&mut self.seed).chain(&mut self.steps)
    }
}

/// One SELECT, or the block that finds the rows of an UPDATE or DELETE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Block {
    /// The row slots, in the order of the FROM clause.
    pub tables: Vec<Table>,
    /// The conditions of WHERE and of inner joins; all must hold.
    pub conditions: Vec<Expr>,
    /// Of two outer joins, one's tables are all on the inner side of the other, or none is; the
    /// inner one comes first.
    pub outer_joins: Vec<OuterJoin>,
    /// STRAIGHT_JOIN: tables are read in the order written.
    pub straight: bool,
    pub group: Option<Grouping>,
    /// Over the grouped row (its single slot), or over the joined row.
    pub having: Vec<Expr>,
    /// Window functions over the rows that pass HAVING; the results of each pass are a row slot
    /// behind the others.
    pub windows: Vec<WindowPass>,
    /// The result columns.
    pub select: Vec<Expr>,
    pub distinct: bool,
    /// Over the same rows as `select`.
    pub order: Vec<OrderKey>,
    pub subqueries: Vec<Subquery>,
    pub lock: RowLocking,
    /// UPDATE and DELETE: the slots whose rows are changed, as a bit set. 0: a query.
    pub changed: u64,
    /// `SQL_CALC_FOUND_ROWS`
    pub calc_found_rows: bool,
    /// Deprecated syntax and its replacement: warning 1287 with each run.
    pub deprecated: Vec<(&'static str, &'static str)>,
    /// A derived table, view or common table expression, which may become part of the query that
    /// reads it.
    pub mergeable: bool,
    /// The SQL mode PAD_CHAR_TO_FULL_LENGTH.
    pub pads_char: bool,
}

/// A row slot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub source: Source,
    /// Alias, or name.
    pub alias: Arc<str>,
    /// Columns that the statement reads.
    pub used: Vec<bool>,
    /// A derived table that was merged into the query had this table.
    pub merged: bool,
    /// On the inner side of an outer join: any column may be NULL.
    pub nullable: bool,
    pub hints: IndexHints,
}

/// The rows of a slot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Table(Arc<TableDef>),
    Derived(Box<Query>),
    /// A system table, whose rows the session computes.
    Virtual(Arc<TableDef>),
    Json(Box<JsonTable>),
}

/// Index hints of one slot.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct IndexHints {
    /// USE or FORCE: only these.
    pub only: Option<Vec<usize>>,
    pub ignore: Vec<usize>,
    /// FORCE: a scan of the table is the last resort.
    pub force: bool,
}

/// An outer join.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OuterJoin {
    /// Its conditions, those of inner joins on its inner side included.
    pub on: Vec<Expr>,
    /// The slots of its inner side, as a bit set.
    pub inner: u64,
    /// The slots of its outer side.
    pub outer: u64,
}

/// GROUP BY, or aggregation of all rows into one. Its result is a row slot of the keys, the row's
/// level under ROLLUP, and the aggregates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grouping {
    pub keys: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
    /// No GROUP BY: one row, also of no rows.
    pub implicit: bool,
    /// WITH ROLLUP
    pub rollup: bool,
}

impl Grouping {
    /// The position of the first aggregate in the grouped row.
    pub fn first_aggregate(&self) -> usize {
        self.keys.len() + usize::from(self.rollup)
    }

    /// The column that holds how many keys of the row are those of its group, WITH ROLLUP.
    pub fn level(&self) -> Option<ColumnAt> {
        self.rollup.then_some(ColumnAt {
            table: 0,
            column: self.keys.len() as u16,
        })
    }
}

/// A subquery of a query block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Subquery {
    pub query: Box<Query>,
    /// It names columns of an enclosing query, so it runs once per row.
    pub correlated: bool,
    pub form: SubqueryForm,
    /// Membership: the type of each operand on the left of IN, and how it is compared.
    pub operands: Vec<(ExprType, CmpKind)>,
    /// Another way to compute a correlated EXISTS, IN or aggregate.
    pub decorrelated: Option<Box<Decorrelated>>,
}

/// Which result of a subquery the enclosing query needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubqueryForm {
    /// Its rows, of which it may use one value.
    Rows,
    Existence,
    Membership,
}

impl SubqueryForm {
    /// Whether DISTINCT changes the result. A test for existence or membership needs no distinct
    /// rows, unless LIMIT counts them.
    pub fn needs_distinct(self, limited: bool) -> bool {
        self == SubqueryForm::Rows || limited
    }
}

/// A correlated subquery without its correlation: the equalities with the outer row become keys of
/// a set, which is computed once and probed for each outer row. The block is that of the subquery,
/// with these clauses in place of its own.
///
/// An aggregate becomes groups: its block is grouped by the keys, and each outer row looks up the
/// value of its group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decorrelated {
    /// The inner side of each of `keys`, then the columns that IN compares.
    pub select: Vec<Expr>,
    pub conditions: Vec<Expr>,
    /// Columns that these clauses read, of each slot; `None`: as the block says.
    pub used: Option<Vec<Vec<bool>>>,
    pub keys: Vec<OuterKey>,
    /// Conditions on the outer row alone, as the enclosing query sees them.
    pub outer_conditions: Vec<Expr>,
    /// Evaluation may convert values, with warnings, or errors where changes are strict.
    pub converts: bool,
    /// It is an aggregate.
    pub grouped: bool,
}

/// The outer side of an equality of a [`Decorrelated`] subquery.
#[derive(Debug, Clone, PartialEq)]
pub struct OuterKey {
    /// As the query that the subquery belongs to sees it.
    pub outer: Expr,
    pub kind: CmpKind,
    /// `<=>`: NULL equals NULL.
    pub null_safe: bool,
}

impl Query {
    /// Whether MySQL merges it into a query that reads it as a derived table.
    pub fn is_merged(&self) -> bool {
        let plain = |b: &Block| b.group.is_none() && !b.distinct && !b.tables.is_empty();
        self.limit.is_none() && matches!(&self.body, QueryBody::Block(b) if plain(b))
    }
}

impl Block {
    /// A block that selects nothing of these tables yet.
    pub fn of_tables(tables: Vec<Table>, subqueries: Vec<Subquery>) -> Block {
        Block {
            tables,
            conditions: Vec::new(),
            outer_joins: Vec::new(),
            straight: false,
            group: None,
            having: Vec::new(),
            windows: Vec::new(),
            select: Vec::new(),
            distinct: false,
            order: Vec::new(),
            subqueries,
            lock: RowLocking::NONE,
            changed: 0,
            calc_found_rows: false,
            deprecated: Vec::new(),
            mergeable: false,
            pads_char: false,
        }
    }

    /// How many tables MySQL joins here once it has merged derived tables.
    pub fn merged_table_count(&self) -> usize {
        let count = |table: &Table| match &table.source {
            Source::Derived(q) if q.is_merged() => match &q.body {
                QueryBody::Block(b) => b.merged_table_count(),
                _ => 1,
            },
            _ => 1,
        };
        self.tables.iter().map(count).sum()
    }

    /// Calls `f` with each expression over the joined row, but for those of WHERE and ON. Above a
    /// grouping there are none.
    pub fn each_joined_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match &mut self.group {
            Some(group) => {
                group.keys.iter_mut().for_each(&mut *f);
                for a in &mut group.aggregates {
                    a.args.iter_mut().for_each(&mut *f);
                    a.order.iter_mut().for_each(|k| f(&mut k.expr));
                }
            }
            None => {
                self.having.iter_mut().for_each(&mut *f);
                for pass in &mut self.windows {
                    pass.each_expr_mut(&mut *f);
                }
                self.select.iter_mut().for_each(&mut *f);
                self.order.iter_mut().for_each(|k| f(&mut k.expr));
            }
        }
    }

    /// Calls `f` with each condition of WHERE and ON, and with each document of a JSON_TABLE.
    pub fn each_condition_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        let joined = self.outer_joins.iter_mut().flat_map(|join| &mut join.on);
        self.conditions.iter_mut().chain(joined).for_each(&mut *f);
        for table in &mut self.tables {
            if let Source::Json(json) = &mut table.source {
                f(&mut json.document);
            }
        }
    }
}
