//! A plan: what is read, in which order, and what is made of it. A description without engine handles, values or row data, shared by
//! all sessions; an access path names expressions whose values are looked at when the plan is bound to parameters.

use std::sync::Arc;

use nfold_catalog::{ColumnDef, TableDef};
use nfold_sql::ast::{LockStrength, LockWait, SetOp};
use nfold_types::{ColumnType, Value};

use crate::foreign::ForeignKeys;
use crate::logical::expr::{CmpKind, ColumnAt, Expr, ExprType};

/// A planned statement.
#[allow(clippy::large_enum_variant)] // one for each planned statement
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    Query(QueryPlan),
    Insert(Box<InsertPlan>),
    Update(Box<UpdatePlan>),
    Delete(Box<DeletePlan>),
    UpdateTables(Box<UpdateTablesPlan>),
    DeleteTables(Box<DeleteTablesPlan>),
    Do(Vec<Expr>, Vec<SubqueryPlan>),
    /// `EXPLAIN` of another plan: its rows are made when it is planned.
    Explain(Box<ExplainPlan>),
}

/// A column of a result set, as the protocol describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMeta {
    pub schema: Arc<str>,
    /// Alias of the table, and its name.
    pub table: Arc<str>,
    pub org_table: Arc<str>,
    pub name: Arc<str>,
    pub org_name: Arc<str>,
    pub ty: ColumnType,
    /// `nfold_types::sql_type::ColumnFlags`
    pub flags: u16,
    /// What an expression makes is described in other ways than a column of a table (a temporary one of MySQL's too).
    pub made: bool,
}

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
        /// Which side is a set operation of the same chain, whose columns have the types of the whole.
        chained: [bool; 2],
    },
    /// `VALUES ROW(…)`
    Rows(Vec<Vec<Expr>>),
    Recursive(Box<Recursion>),
    /// The rows that the recursion of this number has given in its last round.
    Working(u32),
}

/// A common table expression that names itself: the rows of `seed`, and those that each of `steps` makes of all rows once, those that it has made itself among
/// them; one step after the other, and over again, until they give none.
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

    /// As [`Recursion::queries`].
    pub fn queries_mut(&mut self) -> impl Iterator<Item = &mut QueryPlan> {
        std::iter::once(&mut self.seed).chain(&mut self.steps)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultOrder {
    pub column: usize,
    pub desc: bool,
}

/// `LIMIT`; both are constants or parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitPlan {
    pub offset: Option<Expr>,
    pub count: Expr,
}

impl LimitPlan {
    /// The first `n` rows.
    pub fn rows(n: u64) -> LimitPlan {
        LimitPlan {
            offset: None,
            count: Expr::constant(Value::UInt(n), ExprType::ubigint(false)),
        }
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
    /// Window functions over the rows that pass HAVING, sort by sort; the results of each are the columns of a row slot behind the others.
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
    /// Of a derived table that may yet become part of the query that reads it: what it was before it was planned.
    pub(crate) unplanned: Option<Box<crate::bind::Unplanned>>,
}

/// An ORDER BY member.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderKey {
    pub expr: Expr,
    pub desc: bool,
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
    /// The ON conditions of a left join, and those of a nest that have all their tables here: they decide whether a row matches.
    pub on: Vec<Expr>,
    /// Where the step is part of a nest.
    pub nest: Option<Box<NestStep>>,
    /// Conditions on the joined row, tested after an outer join's missing row was added.
    pub filter: Vec<Expr>,
    /// Estimated rows read per outer row, and the share of them (0 to 100) that `filter` keeps.
    pub rows: f64,
    pub filtered: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinType {
    Inner,
    Left,
}

/// What a step does for the nests that it is part of. A nest is the inner side of an outer join that is no single table; its tables are
/// steps next to one another, of [`JoinType::Inner`], and so is a single one within another nest.
///
/// Behind the rows that join a row of the outer side, the first step of a nest sends that row with NULL in its place. Later steps let such
/// a row through, with NULL in theirs. The last one drops it where a row before it, since the last of its kind, was a match.
#[derive(Debug, Clone, PartialEq)]
pub struct NestStep {
    /// The first slot of the innermost nest around the step that begins before it: a row in which it is NULL is let through.
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

/// An access path to one table.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// Place in `TableDef::indexes`; 0 is the clustered one. Meaningless for derived tables and views.
    pub index: usize,
    /// The index holds every column that is needed.
    pub covering: bool,
    /// Read from the end.
    pub reverse: bool,
    pub kind: AccessKind,
    /// Conditions that the access path itself fulfils whenever its values convert exactly to the columns' types; they are tested
    /// on the rows otherwise.
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
    /// Derived tables and views: rows come from `TableSlot::source`. With `keys`, a hash table over `(inner column, outer value)`.
    Source,
    /// Rows of the table are put into a hash table by `inner` and looked up by `outer`; the table itself is read by `build`.
    Hash {
        build: Box<Access>,
        keys: Vec<HashKey>,
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
    /// One value. `null_safe`: NULL is a value like others (`<=>`, IS NULL); otherwise NULL matches nothing.
    Eq { expr: Expr, null_safe: bool },
    /// Any of these.
    In(Vec<Expr>),
    /// Any of these, each as by `=`: where OR joins comparisons with a TIME, what a text is to one is not what it is to a list.
    AnyEq(Vec<Expr>),
    /// Member `at` of each row of list slot `list`. Parts of the same list (`of` > 1) go together, row by row.
    List { list: u32, at: usize, of: usize },
    /// The values of a subquery that is not correlated. Where they are more than `most`, a scan that asks the set of them costs less.
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

/// GROUP BY, or aggregation of all rows into one. Its result is a row slot of the keys, the row's level where it is rolled up, and the aggregates.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupPlan {
    pub keys: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
    /// Rows come with equal keys together.
    pub ordered: bool,
    /// No GROUP BY: one row, also of nothing.
    pub implicit: bool,
    /// WITH ROLLUP: groups come in the order of their keys, and behind the groups that share the first n keys a row for all of them, in which the other keys are
    /// NULL; n goes down to 0.
    pub rollup: bool,
    /// `MIN(col)`/`MAX(col)` alone, answered by the first row of the access path.
    pub first_row_only: bool,
    /// `COUNT(*)` alone.
    pub count_only: bool,
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

/// One aggregate function.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub func: AggFunc,
    pub args: Vec<Expr>,
    pub distinct: bool,
    /// GROUP_CONCAT's.
    pub order: Vec<OrderKey>,
    pub separator: Vec<u8>,
    pub ty: ExprType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggFunc {
    CountStar,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    StdPop,
    StdSamp,
    VarPop,
    VarSamp,
    GroupConcat,
    /// A column that the group determines, or ONLY_FULL_GROUP_BY is off.
    Any,
}

/// Window functions that are computed over rows in one order.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowPass {
    pub partition: Vec<Expr>,
    /// Within a partition: the longest order of those that the calls ask for, the beginnings of which are the others.
    pub order: Vec<OrderKey>,
    /// The columns of the pass's row slot.
    pub calls: Vec<WindowCall>,
}

/// A call of a window function.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowCall {
    pub func: WindowFunc,
    /// What is looked at of each row; the second one of LEAD and LAG is what they give beyond the partition.
    pub args: Vec<Expr>,
    /// N of NTILE, LEAD, LAG and NTH_VALUE: a constant, a parameter or a user variable.
    pub number: Option<Expr>,
    /// By how many members of the pass's order rows are peers or not.
    pub order: usize,
    pub frame: WindowFrame,
    pub ty: ExprType,
    /// What its window is called in error messages.
    pub window: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowFunc {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lead,
    Lag,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(AggFunc),
}

impl WindowFunc {
    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            WindowFunc::RowNumber => "row_number",
            WindowFunc::Rank => "rank",
            WindowFunc::DenseRank => "dense_rank",
            WindowFunc::PercentRank => "percent_rank",
            WindowFunc::CumeDist => "cume_dist",
            WindowFunc::Ntile => "ntile",
            WindowFunc::Lead => "lead",
            WindowFunc::Lag => "lag",
            WindowFunc::FirstValue => "first_value",
            WindowFunc::LastValue => "last_value",
            WindowFunc::NthValue => "nth_value",
            WindowFunc::Aggregate(_) => "aggregate",
        }
    }
}

/// The rows of a partition that a function looks at, for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowFrame {
    pub start: FrameBound,
    pub end: FrameBound,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound {
    /// The partition's first or last row.
    Unbounded,
    /// The row itself.
    CurrentRow,
    /// The first or last of the rows that the order does not tell from this one.
    Peers,
    /// So many rows before or behind it; a constant or a parameter.
    Rows { amount: Expr, following: bool },
    /// The first or last row that is not beyond `value`, which differs from the row's own by `amount`, as the pass's first order member compares.
    Value {
        value: Expr,
        amount: Expr,
        kind: CmpKind,
    },
}

impl WindowPass {
    /// Calls `f` on each expression over the rows that come in, and on constants.
    pub fn each_expr<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        self.partition.iter().for_each(&mut *f);
        self.order.iter().for_each(|k| f(&k.expr));
        for call in &self.calls {
            call.args.iter().chain(&call.number).for_each(&mut *f);
            for bound in [&call.frame.start, &call.frame.end] {
                match bound {
                    FrameBound::Rows { amount, .. } => f(amount),
                    FrameBound::Value { value, amount, .. } => {
                        f(value);
                        f(amount);
                    }
                    _ => {}
                }
            }
        }
    }

    /// As [`each_expr`](Self::each_expr), mutably.
    pub fn each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.partition.iter_mut().for_each(&mut *f);
        self.order.iter_mut().for_each(|k| f(&mut k.expr));
        for call in &mut self.calls {
            call.args.iter_mut().for_each(&mut *f);
            call.number.iter_mut().for_each(&mut *f);
            for bound in [&mut call.frame.start, &mut call.frame.end] {
                match bound {
                    FrameBound::Rows { amount, .. } => f(amount),
                    FrameBound::Value { value, amount, .. } => {
                        f(value);
                        f(amount);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// `FOR UPDATE`, `FOR SHARE`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLocking {
    pub strength: Option<LockStrength>,
    pub wait: LockWait,
    /// `OF`: the slots meant, as a bit set. 0: all.
    pub of: u64,
}

impl RowLocking {
    /// A plain read.
    pub const NONE: RowLocking = RowLocking {
        strength: None,
        wait: LockWait::Wait,
        of: 0,
    };

    /// How the rows of a slot are locked.
    pub fn of_slot(&self, slot: usize) -> Option<LockStrength> {
        let meant = self.of == 0 || self.of >> slot.min(63) & 1 == 1;
        self.strength.filter(|_| meant)
    }
}

/// INSERT and REPLACE.
#[derive(Debug, Clone, PartialEq)]
pub struct InsertPlan {
    pub table: Arc<TableDef>,
    /// Ordinals the source gives values for, in its order.
    pub columns: Vec<usize>,
    pub source: InsertSource,
    pub ignore: bool,
    pub replace: bool,
    /// ON DUPLICATE KEY UPDATE: slot 0 is the row that is there, slot 1 the row that was to be inserted.
    pub on_duplicate: Vec<Assignment>,
    pub subqueries: Vec<SubqueryPlan>,
    /// The foreign keys that its changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
}

#[allow(clippy::large_enum_variant)] // one for each planned INSERT
#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// `None` stands for DEFAULT. Slot 0 of the expressions is the row being made (`INSERT INTO t SET a=1, b=a`).
    Rows(Vec<Vec<Option<Expr>>>),
    /// The rows of a folded VALUES.
    Param(u32),
    Query(QueryPlan),
}

/// `column = value`; `None` stands for DEFAULT.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    pub column: usize,
    pub value: Option<Expr>,
}

/// UPDATE of one table (`source.tables[target]`), found by a query block.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdatePlan {
    pub table: Arc<TableDef>,
    /// The slot of the table in `source`.
    pub target: usize,
    pub source: Block,
    pub limit: Option<LimitPlan>,
    pub assignments: Vec<Assignment>,
    pub ignore: bool,
    /// The access path reads an index whose columns change, or the order matters: rows are collected first.
    pub collect: bool,
    /// The foreign keys that its changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
}

/// DELETE of one table.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletePlan {
    pub table: Arc<TableDef>,
    pub target: usize,
    pub source: Block,
    pub limit: Option<LimitPlan>,
    pub ignore: bool,
    pub collect: bool,
    /// The foreign keys that its changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
}

/// UPDATE of several tables, or of those that a join finds.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateTablesPlan {
    /// Its rows are those of the join; of what is changed, whole ones.
    pub source: Block,
    /// In the order of FROM.
    pub targets: Vec<UpdateTarget>,
    /// Place of the target that is read first and changes at once: its assignments, and those of the others, see what is assigned. The others change when
    /// all is read.
    pub at_once: Option<usize>,
    pub ignore: bool,
    /// The foreign keys that its changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
}

/// One table of an UPDATE of several.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateTarget {
    pub table: Arc<TableDef>,
    /// Its slot in `source`.
    pub slot: usize,
    pub assignments: Vec<Assignment>,
}

/// DELETE from several tables, or from those that a join finds.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteTablesPlan {
    pub source: Block,
    /// The tables, and their slots in `source`.
    pub targets: Vec<(Arc<TableDef>, usize)>,
    pub ignore: bool,
    /// The foreign keys that its changes concern.
    pub foreign: Option<Arc<ForeignKeys>>,
}

/// A table of several that a statement changes, found when its names were bound.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedTable {
    pub table: Arc<TableDef>,
    pub alias: Arc<str>,
    /// By DELETE, not UPDATE.
    pub deletes: bool,
}

impl Plan {
    /// The foreign keys that its changes concern.
    pub fn foreign_keys(&self) -> Option<&ForeignKeys> {
        let keys = match self {
            Plan::Insert(p) => &p.foreign,
            Plan::Update(p) => &p.foreign,
            Plan::Delete(p) => &p.foreign,
            Plan::UpdateTables(p) => &p.foreign,
            Plan::DeleteTables(p) => &p.foreign,
            Plan::Query(_) | Plan::Do(..) | Plan::Explain(_) => return None,
        };
        keys.as_deref()
    }

    /// UPDATE and DELETE of several tables: those that are changed.
    pub fn changed_tables(&self) -> Vec<ChangedTable> {
        let of = |b: &Block, table: &Arc<TableDef>, slot: usize, deletes| ChangedTable {
            table: table.clone(),
            alias: b.tables[slot].alias.clone(),
            deletes,
        };
        match self {
            Plan::UpdateTables(p) => {
                let targets = p.targets.iter();
                let targets = targets.map(|t| of(&p.source, &t.table, t.slot, false));
                targets.collect()
            }
            Plan::DeleteTables(p) => {
                let targets = p.targets.iter();
                let targets = targets.map(|(table, slot)| of(&p.source, table, *slot, true));
                targets.collect()
            }
            Plan::Explain(e) => e.changed.clone(),
            _ => Vec::new(),
        }
    }
}

/// EXPLAIN's rows.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainPlan {
    pub columns: Vec<ColumnMeta>,
    /// NULL is `None`.
    pub rows: Vec<Vec<Option<String>>>,
    /// Tried in order before the rows are shown.
    pub probes: Vec<ExplainProbe>,
    /// [`Plan::changed_tables`] of what is explained.
    pub changed: Vec<ChangedTable>,
}

/// A part of a plan that MySQL runs while it makes the plan: what is constant, and the tables of which one row is read. Where it gives
/// no row, there is nothing to plan, and EXPLAIN says `why` instead.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainProbe {
    pub query: QueryPlan,
    pub why: &'static str,
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
        joined.product::<f64>().max(1.0)
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

/// A subquery of a query block.
#[derive(Debug, Clone, PartialEq)]
pub struct SubqueryPlan {
    pub plan: Box<QueryPlan>,
    /// It names columns of an enclosing query, so it runs once per row.
    pub correlated: bool,
    /// Another way to answer EXISTS or IN.
    pub keyed: Option<Box<KeyedPlan>>,
}

/// A correlated subquery of EXISTS or IN without what correlates it, which are equalities: its rows are a set that each outer row asks.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedPlan {
    /// Selects the inner side of each of `keys`, then what IN compares.
    pub plan: Box<QueryPlan>,
    pub keys: Vec<KeyedPart>,
    /// Conditions of the subquery on outer rows alone, as the query that it belongs to sees them.
    pub conditions: Vec<Expr>,
    /// Rows that it reads, estimated.
    pub rows: f64,
    /// Values of one kind become values of another on the way, with warnings or, in changes, errors.
    pub converts: bool,
}

/// An equality of a [`KeyedPlan`].
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedPart {
    /// Its outer side, as the query that the subquery belongs to sees it.
    pub outer: Expr,
    pub kind: CmpKind,
    /// `<=>`: NULL equals NULL.
    pub null_safe: bool,
}
