//! Queries, and the statements that change rows.

use super::{
    ColumnRef, Expr, FileFormat, FileTarget, Ident, JsonTable, ObjectName, OutFile, Span, Window,
};

/// A query expression with its ORDER BY, LIMIT, locking and INTO.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Option<With>,
    pub body: QueryBody,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    pub locking: Vec<Locking>,
    /// `INTO …`
    pub into: Option<SelectInto>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum QueryBody {
    Select(Box<Select>),
    SetOperation {
        op: SetOp,
        distinct: bool,
        left: Box<QueryBody>,
        right: Box<QueryBody>,
    },
    /// `(query)` as an operand of a set operation, with its own ORDER BY and LIMIT.
    Paren(Box<Query>),
    /// `VALUES ROW(…), …`
    Values(Vec<Vec<Expr>>),
    /// `TABLE name`
    Table(ObjectName),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    Union,
    Intersect,
    Except,
}

#[derive(Clone, Debug, PartialEq)]
pub struct With {
    pub recursive: bool,
    pub tables: Vec<Cte>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    pub name: Ident,
    pub columns: Vec<Ident>,
    pub query: Box<Query>,
    /// Whether it refers to itself (RECURSIVE).
    pub recursive: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub distinct: bool,
    pub options: SelectOptions,
    pub plan_hints: Vec<PlanHint>,
    pub items: Vec<SelectItem>,
    /// The comma list. Empty without FROM, and for FROM DUAL.
    pub from: Vec<TableRef>,
    pub selection: Option<Expr>,
    /// Always ascending: the directions of MySQL 5.7's GROUP BY are rejected.
    pub group_by: Vec<Expr>,
    pub with_rollup: bool,
    pub having: Option<Expr>,
    pub windows: Vec<(Ident, Window)>,
}

/// An optimizer hint about the plan of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanHint {
    pub kind: PlanHintKind,
    /// The words in the parentheses.
    pub names: Vec<String>,
}

/// The kinds of [`PlanHint`]. Those up to [`NoSkipScan`](Self::NoSkipScan) name a table and its
/// indexes, [`Semijoin`](Self::Semijoin) and its opposite name strategies, the others tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanHintKind {
    Index,
    NoIndex,
    IndexMerge,
    NoIndexMerge,
    SkipScan,
    NoSkipScan,
    Merge,
    NoMerge,
    /// DERIVED_CONDITION_PUSHDOWN
    Pushdown,
    NoPushdown,
    Semijoin,
    NoSemijoin,
    JoinFixedOrder,
    JoinOrder,
    JoinPrefix,
    JoinSuffix,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectOptions {
    pub straight_join: bool,
    pub sql_calc_found_rows: bool,
    pub high_priority: bool,
    pub sql_small_result: bool,
    pub sql_big_result: bool,
    pub sql_buffer_result: bool,
    /// Milliseconds, of the hint `MAX_EXECUTION_TIME(…)`; never 0.
    pub max_execution_ms: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`
    Star,
    /// `[schema.]table.*`
    TableStar(ObjectName),
    Expr {
        expr: Expr,
        alias: Option<Ident>,
        /// The expression's text. It is the column's name if there is no alias and the expression
        /// is not a plain column.
        text: Span,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    Table(TableFactor),
    Derived {
        lateral: bool,
        query: Box<Query>,
        alias: Ident,
        columns: Vec<Ident>,
    },
    Join(Box<Join>),
    JsonTable(Box<JsonTable>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableFactor {
    pub name: ObjectName,
    pub partitions: Vec<Ident>,
    pub alias: Option<Ident>,
    pub hints: Vec<IndexHint>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexHint {
    pub kind: IndexHintKind,
    pub scope: IndexHintScope,
    /// The index names. `PRIMARY` is the primary key. Empty only for `USE INDEX ()`.
    pub indexes: Vec<Ident>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexHintKind {
    Use,
    Ignore,
    Force,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexHintScope {
    All,
    Join,
    OrderBy,
    GroupBy,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    pub left: TableRef,
    pub right: TableRef,
    pub kind: JoinKind,
    pub constraint: JoinConstraint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// `[INNER | CROSS] JOIN`
    Inner,
    /// `STRAIGHT_JOIN`: an inner join that reads the left table first.
    Straight,
    Left,
    Right,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JoinConstraint {
    None,
    On(Expr),
    Using(Vec<Ident>),
    Natural,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    pub descending: bool,
}

/// `LIMIT [offset,] count`
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub offset: Option<Expr>,
    pub count: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Locking {
    pub strength: LockStrength,
    /// `OF table, …`; empty: all tables.
    pub of: Vec<ObjectName>,
    pub wait: LockWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockStrength {
    Update,
    /// `FOR SHARE`, `LOCK IN SHARE MODE`
    Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    Wait,
    NoWait,
    SkipLocked,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SelectInto {
    Outfile(Box<OutFile>),
    Dumpfile(Vec<u8>),
    /// The names of user variables.
    Variables(Vec<String>),
}

/// INSERT and REPLACE.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub replace: bool,
    pub ignore: bool,
    pub table: ObjectName,
    pub partitions: Vec<Ident>,
    /// The column list. `None`: no list, so all columns. `Some(vec![])`: `INSERT INTO t () VALUES
    /// ()`.
    pub columns: Option<Vec<ColumnRef>>,
    pub source: InsertSource,
    /// `AS new [(columns)]`
    pub row_alias: Option<RowAlias>,
    pub on_duplicate: Vec<Assignment>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// `VALUES (…), …`; a value may be `Expr::Default(None)`.
    Values(Vec<Vec<Expr>>),
    /// `VALUES` whose rows contain only literals: the values of rows slot `n`, which are read from
    /// the text when the plan is bound. The width is in `digest::Slot`. Rows of different widths
    /// are never folded.
    RowsParam(u32),
    /// `SET column = value, …`
    Set(Vec<Assignment>),
    Query(Box<Query>),
    /// LOAD DATA: the fields of a file go to `targets`; without any, to all columns. `set` is
    /// evaluated for each row afterwards.
    File {
        format: Box<FileFormat>,
        /// `IGNORE n LINES`
        skip_lines: u64,
        targets: Vec<FileTarget>,
        set: Vec<Assignment>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct RowAlias {
    pub name: Ident,
    pub columns: Vec<Ident>,
}

/// `column = value`; the value may be `Expr::Default(None)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub column: ColumnRef,
    pub value: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub with: Option<With>,
    pub ignore: bool,
    /// Several tables or a join make the multi-table form, which has neither ORDER BY nor LIMIT.
    pub tables: Vec<TableRef>,
    pub assignments: Vec<Assignment>,
    pub selection: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub with: Option<With>,
    pub ignore: bool,
    pub quick: bool,
    /// In multi-table forms: the tables from which rows are deleted. Empty in the single-table
    /// form, where `from` is a single table.
    pub targets: Vec<ObjectName>,
    pub from: Vec<TableRef>,
    pub selection: Option<Expr>,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Expr>,
}
