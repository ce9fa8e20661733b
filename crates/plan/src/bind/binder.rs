//! The state of binding one query block, which all files of this folder share.

use std::sync::Arc;

use nfold_sql::ast::{self, Window};
use nfold_types::{CollationId, ColumnType};

use super::context::BindCx;
use crate::logical::clauses::{Aggregate, BlockWarning};
use crate::logical::column_uses::Object;
use crate::logical::expr::{Coercibility, ColumnAt, Expr, ExprType};
use crate::logical::query::{Subquery, Table};
use crate::logical::window::WindowFunc;

/// Placeholder slot of aggregates, until their positions in the grouped row are known.
pub(crate) const AGGREGATES: u16 = u16::MAX;

/// Placeholder slot of GROUPING calls, until the members of GROUP BY are known.
pub(crate) const GROUPINGS: u16 = u16::MAX - 1;

/// Placeholder slot of window functions, until their passes are known. Table columns have lower
/// slots.
pub(crate) const WINDOWS: u16 = u16::MAX - 2;

/// A functional dependency: the columns `from` determine the columns `to` (ordinals in one slot).
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub from: Vec<u16>,
    pub to: Vec<u16>,
}

/// Which kind of GROUP BY a block has.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Grouped {
    #[default]
    No,
    Plainly,
    RolledUp,
}

/// A window function call whose arguments are bound, but not yet its window.
pub(crate) struct WindowDraft {
    pub(super) func: WindowFunc,
    pub args: Vec<Expr>,
    pub(super) number: Option<Expr>,
    pub(super) over: Window,
    pub(super) ty: ExprType,
}

impl WindowDraft {
    /// Whether `other` calls the same function with the same arguments, over any window.
    pub fn is_like(&self, other: &WindowDraft) -> bool {
        self.func == other.func && self.args == other.args && self.number == other.number
    }
}

/// A column that name resolution can find.
pub(crate) struct ScopeColumn {
    pub name: Arc<str>,
    pub ty: ColumnType,
    pub nullable: bool,
    /// The coercibility of the expression, if the slot is a derived table.
    pub coercibility: Option<Coercibility>,
    /// Whether the column is an expression of a derived table that MySQL merges into the query.
    pub made: bool,
    /// Whether `*` and NATURAL joins include the column.
    pub visible: bool,
}

/// A row slot as name resolution sees it.
pub(crate) struct ScopeSlot {
    /// The database, if the slot is a table.
    pub schema: Option<Arc<str>>,
    /// The table or view whose privileges apply.
    pub object: Option<Object>,
    /// The database of a view, for messages alone.
    pub view_schema: Option<Arc<str>>,
    pub alias: Arc<str>,
    pub columns: Vec<ScopeColumn>,
    /// The functional dependencies between the columns of a derived table.
    pub dependencies: Vec<Dependency>,
}

/// Columns of the query in INSERT ... SELECT that ON DUPLICATE KEY UPDATE names. The query returns
/// them after its own columns.
#[derive(Default)]
pub(crate) struct SourceColumns {
    pub named: Vec<ast::ColumnRef>,
    /// Names without a table that the table has. The query must not have them, too.
    pub shared: Vec<ast::ColumnRef>,
    /// The first of these columns: the slot of the query's row, and the position in it. `None`
    /// while the names are being collected.
    pub place: Option<ColumnAt>,
}

/// A view that a statement changes rows through. Its table is the first slot.
pub(crate) struct ViewTarget {
    pub schema: Arc<str>,
    pub name: Arc<str>,
    /// The view that names the table: its number in the statement's
    /// [`ColumnUses`](crate::logical::column_uses::ColumnUses).
    pub base_scope: Option<usize>,
    /// The columns of the view: the name, and the place in the slot.
    pub columns: Vec<(Arc<str>, usize)>,
    /// How many columns the table has. What the view computes lies behind them in the slot.
    pub width: usize,
    pub computed: Vec<Expr>,
    pub conditions: Vec<Expr>,
    /// WITH CHECK OPTION
    pub check: Vec<Expr>,
}

/// Binds one query block.
pub(crate) struct BlockBinder<'b> {
    pub cx: &'b BindCx<'b>,
    pub outer: Option<&'b BlockBinder<'b>>,
    pub scope: Vec<ScopeSlot>,
    pub tables: Vec<Table>,
    /// Columns that `*` and unqualified names skip, because USING or a NATURAL join has merged
    /// them.
    pub hidden: Vec<(usize, usize)>,
    pub subqueries: Vec<Subquery>,
    /// In a `RefCell`, because a subquery may add aggregates that this block evaluates.
    pub aggregates: std::cell::RefCell<Vec<Aggregate>>,
    /// The arguments of each GROUPING call.
    pub groupings: Vec<Vec<Expr>>,
    /// Which kind of GROUP BY the block has.
    pub grouped: Grouped,
    /// Which columns of each slot are named. In a `RefCell`, because subqueries name them too.
    pub used: std::cell::RefCell<Vec<Vec<bool>>>,
    /// Whether a name was resolved in an enclosing query.
    pub correlated: std::cell::Cell<bool>,
    /// The clause being bound, as error 1054 names it.
    pub clause: &'static str,
    /// The first slot whose columns may be named.
    pub first_visible_slot: usize,
    /// Whether aggregate functions are allowed in the clause being bound.
    pub aggregates_allowed: bool,
    /// Whether the arguments of an aggregate are being bound.
    pub in_aggregate: bool,
    /// The depth of the innermost query that evaluates an aggregate inside the arguments being
    /// bound.
    pub nested_aggregate: std::cell::Cell<Option<usize>>,
    /// Whether the arguments being bound name an alias of the select list.
    pub alias_in_aggregate: bool,
    /// Whether window functions are allowed in the clause being bound.
    pub windows_allowed: bool,
    /// Whether the arguments or the window of a window function are being bound.
    pub in_window: bool,
    /// The name of the window whose PARTITION BY or ORDER BY is being bound.
    pub window_spec: Option<Arc<str>>,
    pub windows: Vec<WindowDraft>,
    /// The select list, for clauses in which a name may be an alias.
    pub aliases: Vec<(Arc<str>, Expr)>,
    /// Aliases of the select items that are not bound yet, the current one included, in reverse
    /// order.
    pub later_aliases: Vec<Arc<str>>,
    /// The same for columns without an alias, which HAVING of a subquery finds by their names.
    pub later_columns: Vec<Arc<str>>,
    /// The expressions of GROUP BY, for HAVING.
    pub keys: Vec<Expr>,
    /// In ON DUPLICATE KEY UPDATE: the slot in which `VALUES(column)` finds its column.
    pub values_slot: Option<u16>,
    /// In ON DUPLICATE KEY UPDATE: the columns that come from the query of INSERT ... SELECT.
    pub source_columns: Option<SourceColumns>,
    /// Warnings with each run.
    pub warnings: Vec<BlockWarning>,
    /// The block is the operand of EXISTS.
    pub is_existence_test: bool,
    /// WITH ROLLUP: for each member of ORDER BY the select item that it names.
    pub order_items: Vec<Option<usize>>,
    /// User variables that expressions bound so far assign to, with the collations of texts.
    pub assigned_vars: Vec<(Arc<str>, Option<CollationId>)>,
    /// The view that the statement changes rows through; its table is the first slot.
    pub view: Option<Box<ViewTarget>>,
    /// Whether the columns that are named now need no privilege.
    pub unchecked: bool,
    /// How many queries this block is nested in; bounds the recursion.
    pub depth: usize,
    /// Only a constant is wanted, so a subquery is refused before it is bound. Without this, the
    /// search for `(SELECT constant)` in nested subqueries binds each level twice, and the time
    /// doubles with each level.
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
            first_visible_slot: 0,
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
            later_columns: Vec::new(),
            keys: Vec::new(),
            values_slot: None,
            source_columns: None,
            warnings: Vec::new(),
            is_existence_test: false,
            order_items: Vec::new(),
            assigned_vars: Vec::new(),
            view: None,
            unchecked: false,
            depth: outer.map_or(0, |o| o.depth + 1),
            constants_only: false,
        }
    }
}
