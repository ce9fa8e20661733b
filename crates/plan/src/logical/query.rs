//! The logical tree of a query, which has neither access paths nor a join order. [`crate::bind`]
//! builds it, [`crate::rewrite`] transforms it, and [`crate::optimize`] turns it into a plan.

use std::sync::Arc;

use nfold_catalog::{ColumnDef, TableDef};
use nfold_json::{Path, ValueNeed};
use nfold_sql::ast::SetOp;

use super::clauses::{
    AggFunc, Aggregate, BlockWarning, ColumnMeta, LimitPlan, OrderKey, ResultOrder, RowLocking,
};
use super::describe::Description;
use super::expr::{ColumnAt, Expr, ExprKind};
use super::json_table::JsonTable;
use super::types::{CmpKind, ExprType};
use super::window::WindowPass;

/// The maximum number of tables in one join, as in MySQL. A set of tables is a bit set of 64 bits.
pub(crate) const MAX_TABLES: usize = 61;

/// A query: its rows, their description, and LIMIT.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub body: QueryBody,
    pub columns: Vec<ColumnMeta>,
    /// Types of the result columns.
    pub types: Vec<ExprType>,
    /// Sort keys over the result columns of a set operation. A block has its own.
    pub order: Vec<ResultOrder>,
    pub limit: Option<LimitPlan>,
    /// How the columns of a statement's outermost block are described, once its plan is known.
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

/// A recursive common table expression: the rows of `seed`, and those that `steps` derive. Each
/// step in turn reads the rows that are new to it, including rows that it added itself. The
/// recursion ends when no step adds a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recursion {
    /// Identifies the recursion within its statement.
    pub number: u32,
    pub name: Box<str>,
    pub seed: Query,
    pub steps: Vec<Query>,
    /// UNION DISTINCT: a row that occurred before is dropped.
    pub distinct: bool,
    /// The columns of the temporary table that holds the rows.
    pub columns: Vec<ColumnDef>,
}

impl Recursion {
    /// The seed, then the recursive steps.
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
    /// An inner join comes before the outer joins that contain it: of two outer joins, the tables
    /// of one are all on the inner side of the other, or none of them is.
    pub outer_joins: Vec<OuterJoin>,
    /// SELECT STRAIGHT_JOIN: tables are read in the order written.
    pub straight: bool,
    /// The operator STRAIGHT_JOIN: the slots of its left side, which are read before those of its
    /// right side, as bit sets.
    pub straight_joins: Vec<(u64, u64)>,
    /// The hint SEMIJOIN or NO_SEMIJOIN, for the block as a subquery.
    pub semijoin: Option<bool>,
    pub group: Option<Grouping>,
    /// Over the slot of the grouped row, or over the joined row without grouping.
    pub having: Vec<Expr>,
    /// Window functions, over the rows that pass HAVING. Each pass adds a row slot of its results
    /// after the others.
    pub windows: Vec<WindowPass>,
    /// The result columns.
    pub select: Vec<Expr>,
    pub distinct: bool,
    /// Over the same row as `select`.
    pub order: Vec<OrderKey>,
    pub subqueries: Vec<Subquery>,
    pub lock: RowLocking,
    /// UPDATE and DELETE: the slots whose rows change, as a bit set. 0 in a query.
    pub changed: u64,
    /// `SQL_CALC_FOUND_ROWS`
    pub calc_found_rows: bool,
    /// Warnings with each run.
    pub warnings: Vec<BlockWarning>,
    /// Whether the block is a derived table, view or common table expression that may be merged
    /// into the query that reads it.
    pub mergeable: bool,
    /// Whether the SQL mode PAD_CHAR_TO_FULL_LENGTH is set.
    pub pads_char: bool,
}

/// A row slot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub source: Source,
    /// The alias if there is one, otherwise the table's name.
    pub alias: Arc<str>,
    /// The columns that the statement reads.
    pub used: Vec<bool>,
    /// The JSON columns of which it needs some members only.
    pub documents: Vec<DocumentPaths>,
    /// Whether the table came from a derived table that was merged into the query.
    pub merged: bool,
    /// Whether the table stands in FROM as a derived table or common table expression, or came from
    /// one that was merged. FOR UPDATE and FOR SHARE of the enclosing query do not lock its rows.
    pub in_subquery: bool,
    /// Whether the table is on the inner side of an outer join, so that any column may be NULL.
    pub nullable: bool,
    pub hints: IndexHints,
    /// The slots that a LATERAL derived table reads, as a bit set. Such a query lies one level
    /// deeper than this block; 0: it is any other table.
    pub lateral: u64,
    /// The number of the rows of a derived table that are computed once for the statement: tables
    /// with this number share them.
    pub shared: Option<u32>,
    /// Identifies the definition of a common table expression within its statement.
    pub common: Option<usize>,
    /// The reference as it was before conditions were moved into it, if it names a common table
    /// expression.
    pub unpushed: Option<Box<Unpushed>>,
}

/// A reference to a common table expression before conditions were moved into it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unpushed {
    pub query: Query,
    /// The moved conditions, over the columns of slot 0.
    pub conditions: Vec<Expr>,
}

/// A JSON column of which a statement needs only the values that some paths lead to.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentPaths {
    /// Its number in the table.
    pub column: usize,
    /// Constants and parameters, each with the part of its values that is needed.
    pub paths: Vec<(Expr, ValueNeed)>,
    /// The paths of JSON_TABLEs.
    pub row_paths: Vec<Path>,
    /// The part of the document itself that is needed; `None`: whether it is NULL.
    pub own: Option<ValueNeed>,
}

/// The origin of a slot's rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Table(Arc<TableDef>),
    Derived(Box<Query>),
    /// A system table. The session computes its rows.
    Virtual(Arc<TableDef>),
    Json(Box<JsonTable>),
}

/// Hints about one slot.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct IndexHints {
    /// USE INDEX or FORCE INDEX: the only indexes allowed.
    pub only: Option<Vec<usize>>,
    pub ignore: Vec<usize>,
    /// FORCE INDEX: scan the table only if no index can be used.
    pub force: bool,
    pub index_merge: PathChoice,
    pub skip_scan: PathChoice,
    /// MERGE or NO_MERGE, for a derived table.
    pub merge: Option<bool>,
    /// DERIVED_CONDITION_PUSHDOWN or its opposite, for a derived table.
    pub pushdown: Option<bool>,
}

/// The effect of optimizer hints on a kind of access path.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum PathChoice {
    #[default]
    ByCost,
    /// It is preferred, by these indexes. No index means all of them.
    Forced(Vec<usize>),
    /// It is not used, by these indexes. No index means all of them.
    Forbidden(Vec<usize>),
}

impl PathChoice {
    /// Whether the path may use `index`.
    pub fn allows(&self, index: usize) -> bool {
        match self {
            PathChoice::ByCost => true,
            PathChoice::Forced(list) => list.is_empty() || list.contains(&index),
            PathChoice::Forbidden(list) => !list.is_empty() && !list.contains(&index),
        }
    }

    pub fn is_forced(&self) -> bool {
        matches!(self, PathChoice::Forced(_))
    }
}

/// How the rows of a table are joined to an outer row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinType {
    Inner,
    /// An outer row without a match is joined to NULLs.
    Left,
    /// An outer row is returned once if a row matches.
    Semi,
    /// An outer row is returned if no row matches.
    Anti,
}

/// An outer join, or a semi or anti join, whose inner side is one table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OuterJoin {
    /// Not [`JoinType::Inner`].
    pub kind: JoinType,
    /// The conditions of ON, and those of inner joins on its inner side.
    pub on: Vec<Expr>,
    /// The slots of the inner side, as a bit set.
    pub inner: u64,
    /// The slots of the outer side, as a bit set.
    pub outer: u64,
}

/// GROUP BY, or the aggregation of all rows into one. The grouped row is one slot with these
/// columns: the keys, the row's level if `rollup`, and the aggregates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grouping {
    pub keys: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
    /// Without GROUP BY: the result is one row, even if there are no input rows.
    pub implicit: bool,
    /// WITH ROLLUP
    pub rollup: bool,
}

impl Grouping {
    /// Whether there are aggregates besides ANY_VALUE.
    pub fn has_aggregates(&self) -> bool {
        self.aggregates.iter().any(|a| a.func != AggFunc::Any)
    }

    /// The position of the first aggregate in the grouped row.
    pub fn first_aggregate(&self) -> usize {
        self.keys.len() + usize::from(self.rollup)
    }

    /// Whether an expression over the grouped row is a member of GROUP BY.
    pub fn is_key(&self, e: &Expr) -> bool {
        e.as_column()
            .is_some_and(|at| at.table == 0 && usize::from(at.column) < self.keys.len())
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
pub(crate) struct Subquery {
    pub query: Box<Query>,
    /// Whether the subquery names columns of an enclosing query, and so runs once per row.
    pub correlated: bool,
    pub form: SubqueryForm,
    /// For IN: the type of each operand on the left, and how it is compared.
    pub operands: Vec<(ExprType, CmpKind)>,
    /// The decorrelated form of a correlated EXISTS, IN or aggregate.
    pub decorrelated: Option<Box<Decorrelated>>,
}

/// Which result of a subquery the enclosing query needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubqueryForm {
    /// All rows, of which the enclosing query may use one value.
    Rows,
    Existence,
    Membership,
}

impl SubqueryForm {
    /// Whether DISTINCT has an effect on the result. EXISTS and IN need no distinct rows, unless
    /// LIMIT counts them (`limited`).
    pub fn needs_distinct(self, limited: bool) -> bool {
        self == SubqueryForm::Rows || limited
    }
}

/// A decorrelated subquery. The equalities with the outer row become the keys of a set that is
/// computed once and probed for each outer row. The block is the subquery's block with these
/// clauses instead of its own.
///
/// An aggregate subquery becomes groups: its block is grouped by the keys, and each outer row looks
/// up the value of its group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decorrelated {
    /// The inner side of each of `keys`, then the columns that IN compares.
    pub select: Vec<Expr>,
    pub conditions: Vec<Expr>,
    /// For each slot, the columns that these clauses read. `None`: the same columns as in the
    /// block.
    pub used: Option<Vec<Vec<bool>>>,
    pub keys: Vec<OuterKey>,
    /// Conditions that read the outer row only, as seen from the enclosing query.
    pub outer_conditions: Vec<Expr>,
    /// Conditions that read both rows and are no equalities, over the row of `select`.
    pub tests: Vec<Expr>,
    /// The rows of a group that decide `tests`. `None`: all of them.
    pub extreme: Option<Extreme>,
    /// Whether evaluation may convert values, which causes warnings, or errors in strict mode.
    pub converts: bool,
    /// Whether the subquery is an aggregate.
    pub grouped: bool,
    /// If the block is grouped: the number of its select items that follow the keys.
    pub members: usize,
}

/// The smallest or greatest value of a group, which passes a comparison if any value does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extreme {
    /// The position of the compared value in the selected row.
    pub column: u16,
    pub kind: CmpKind,
    pub greatest: bool,
}

/// The outer side of an equality of a decorrelated subquery.
#[derive(Debug, Clone, PartialEq)]
pub struct OuterKey {
    /// As seen from the query that the subquery belongs to.
    pub outer: Expr,
    pub kind: CmpKind,
    /// `<=>`: NULL equals NULL.
    pub null_safe: bool,
}

impl Query {
    /// Whether MySQL merges the block into the query that reads it as a derived table. It does not
    /// if a select item has a subquery that depends on the row, or sets a user variable.
    pub fn is_merged(&self) -> bool {
        let plain = |b: &Block| b.group.is_none() && !b.distinct && !b.tables.is_empty();
        let merged = |b: &Block| plain(b) && !b.select.iter().any(|e| b.is_stored(e));
        self.limit.is_none() && matches!(&self.body, QueryBody::Block(b) if merged(b))
    }

    /// Whether the query always has exactly one row: it reads no table and drops no row.
    pub fn has_one_row(&self) -> bool {
        let one = |b: &Block| {
            let conditions = [&b.conditions, &b.having];
            b.tables.is_empty() && b.group.is_none() && conditions.iter().all(|c| c.is_empty())
        };
        self.limit.is_none() && matches!(&self.body, QueryBody::Block(b) if one(b))
    }
}

impl Block {
    /// Whether a select item makes MySQL store the rows of a derived table.
    fn is_stored(&self, item: &Expr) -> bool {
        // A subquery without tables is replaced by its select item.
        let subquery = |e: &Expr| match e.kind {
            ExprKind::Subquery { index, .. } => {
                let subquery = self.subqueries.get(usize::from(index));
                subquery.filter(|subquery| !subquery.query.has_one_row())
            }
            _ => None,
        };
        let varies = |e: &Expr| {
            e.as_column().is_some() || subquery(e).is_some_and(|subquery| subquery.correlated)
        };
        item.any(&mut |e| matches!(e.kind, ExprKind::AssignUserVar(..)))
            || item.any(&mut |e| subquery(e).is_some()) && item.any(&mut |e| varies(e))
    }

    /// A block over these tables that selects nothing yet.
    pub fn of_tables(tables: Vec<Table>, subqueries: Vec<Subquery>) -> Block {
        Block {
            tables,
            conditions: Vec::new(),
            outer_joins: Vec::new(),
            straight: false,
            straight_joins: Vec::new(),
            semijoin: None,
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
            warnings: Vec::new(),
            mergeable: false,
            pads_char: false,
        }
    }

    /// The number of joined tables after MySQL has merged derived tables.
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

    /// Calls `f` with each expression over the joined row outside WHERE and ON. Clauses after a
    /// grouping are not over the joined row.
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

    /// Calls `f` with each condition of WHERE and ON, and with the document of each JSON_TABLE.
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
