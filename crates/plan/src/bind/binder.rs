//! What binding one query block knows so far, as all files of this folder use it.

use std::sync::Arc;

use nfold_sql::ast::{self, Window};
use nfold_types::ColumnType;

use super::context::BindCx;
use crate::logical::clauses::Aggregate;
use crate::logical::expr::{Coercibility, ColumnAt, Expr, ExprType};
use crate::logical::query::{Subquery, Table};
use crate::logical::window::WindowFunc;

/// While binding: the slot of aggregates, before they have their place in the grouped row.
pub(crate) const AGGREGATES: u16 = u16::MAX;

/// While binding: the slot of the calls of GROUPING, before the members of GROUP BY are known.
pub(crate) const GROUPINGS: u16 = u16::MAX - 1;

/// While binding: the slot of window functions, before they have their place in the slots of the
/// passes. Columns of tables are below it.
pub(crate) const WINDOWS: u16 = u16::MAX - 2;

/// Columns that have one value for each combination of values of other columns; by number.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub from: Vec<u16>,
    pub to: Vec<u16>,
}

/// The kind of a block's GROUP BY.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Grouped {
    #[default]
    No,
    Plainly,
    RolledUp,
}

/// A call of a window function, bound but for its window.
pub(crate) struct WindowDraft {
    pub(super) func: WindowFunc,
    pub args: Vec<Expr>,
    pub(super) number: Option<Expr>,
    pub(super) over: Window,
    pub(super) ty: ExprType,
}

impl WindowDraft {
    /// Whether it is the same function of the same arguments, over whatever window.
    pub fn is_like(&self, other: &WindowDraft) -> bool {
        self.func == other.func && self.args == other.args && self.number == other.number
    }
}

/// A name that slots are searched for.
pub(crate) struct ScopeColumn {
    pub name: Arc<str>,
    pub ty: ColumnType,
    pub nullable: bool,
    /// That of the expression, for a derived table that MySQL merges into the query.
    pub coercibility: Option<Coercibility>,
    /// An expression of a derived table that MySQL merges into the query.
    pub made: bool,
    /// `*` and NATURAL joins show it.
    pub visible: bool,
}

/// What names see of a slot.
pub(crate) struct ScopeSlot {
    /// Database, where the slot is a table.
    pub schema: Option<Arc<str>>,
    pub alias: Arc<str>,
    pub columns: Vec<ScopeColumn>,
    /// Of a derived table: which of its columns follow from others.
    pub dependencies: Vec<Dependency>,
}

/// Columns of the query of INSERT ... SELECT that its ON DUPLICATE KEY UPDATE names. The query has
/// them behind its own columns.
#[derive(Default)]
pub(crate) struct SourceColumns {
    pub named: Vec<ast::ColumnRef>,
    /// The slot of the query's row and the place of the first of them there; `None` while they are
    /// collected.
    pub place: Option<ColumnAt>,
}

/// Binds one query block.
pub(crate) struct BlockBinder<'b> {
    pub cx: &'b BindCx<'b>,
    pub outer: Option<&'b BlockBinder<'b>>,
    pub scope: Vec<ScopeSlot>,
    pub tables: Vec<Table>,
    /// Columns of USING and NATURAL joins that an unqualified name (and `*`) does not see.
    pub hidden: Vec<(usize, usize)>,
    pub subqueries: Vec<Subquery>,
    /// Behind a cell because subqueries may have aggregates of this block.
    pub aggregates: std::cell::RefCell<Vec<Aggregate>>,
    /// The arguments of the calls of GROUPING.
    pub groupings: Vec<Vec<Expr>>,
    /// What the block's GROUP BY is.
    pub grouped: Grouped,
    /// Which columns were named, per slot; behind a cell because subqueries name them too.
    pub used: std::cell::RefCell<Vec<Vec<bool>>>,
    /// A name was found in an enclosing query.
    pub correlated: std::cell::Cell<bool>,
    /// For error 1054.
    pub clause: &'static str,
    /// The first slot whose columns may be named.
    pub in_sight_from: usize,
    /// Aggregate functions may stand here.
    pub aggregates_allowed: bool,
    /// Inside an aggregate's arguments.
    pub in_aggregate: bool,
    /// The innermost query that gathers an aggregate inside the arguments at hand: its `depth`.
    pub nested_aggregate: std::cell::Cell<Option<usize>>,
    /// An alias of the select list was named inside the arguments at hand.
    pub alias_in_aggregate: bool,
    /// Window functions may stand here.
    pub windows_allowed: bool,
    /// Inside a window function's arguments or its window.
    pub in_window: bool,
    /// The window whose members are at hand.
    pub window_spec: Option<Arc<str>>,
    pub windows: Vec<WindowDraft>,
    /// Select list, for names that may be aliases.
    pub aliases: Vec<(Arc<str>, Expr)>,
    /// Aliases of the select items that are not bound yet, this one among them; the last is first.
    pub later_aliases: Vec<Arc<str>>,
    /// GROUP BY's expressions, for HAVING.
    pub keys: Vec<Expr>,
    /// ON DUPLICATE KEY UPDATE: `VALUES(column)` is a column of this slot.
    pub values_slot: Option<u16>,
    /// ON DUPLICATE KEY UPDATE: the columns of the tables that the query reads.
    pub source_columns: Option<SourceColumns>,
    /// What is deprecated, and what to write instead: warning 1287.
    pub deprecated: Vec<(&'static str, &'static str)>,
    /// How deep in the statement; bounds recursion.
    pub depth: usize,
    /// Only a constant is wanted: subqueries are refused before they are bound. Otherwise the
    /// search for `(SELECT constant)` in nested subqueries binds each level twice, which doubles
    /// the time with each level.
    pub constants_only: bool,
}

impl<'b> BlockBinder<'b> {
    pub fn new(cx: &'b BindCx<'b>, outer: Option<&'b BlockBinder<'b>>) -> Self {
        BlockBinder {
            cx,
            outer,
            scope: Vec::new(),
            tables: Vec::new(),
            hidden: Vec::new(),
            subqueries: Vec::new(),
            aggregates: std::cell::RefCell::default(),
            groupings: Vec::new(),
            grouped: Grouped::No,
            used: std::cell::RefCell::new(Vec::new()),
            correlated: std::cell::Cell::new(false),
            clause: "field list",
            in_sight_from: 0,
            aggregates_allowed: false,
            in_aggregate: false,
            nested_aggregate: std::cell::Cell::new(None),
            alias_in_aggregate: false,
            windows_allowed: false,
            in_window: false,
            window_spec: None,
            windows: Vec::new(),
            aliases: Vec::new(),
            later_aliases: Vec::new(),
            keys: Vec::new(),
            values_slot: None,
            source_columns: None,
            deprecated: Vec::new(),
            depth: outer.map_or(0, |o| o.depth + 1),
            constants_only: false,
        }
    }
}
