//! The context in which a query is bound: the statement's settings, and the query's position in the
//! statement.

use std::cell::{Cell, RefCell};
use std::ops::Deref;

use nfold_sql::ast;
use nfold_types::{ErrorCode, SqlError};

use super::binder::BlockBinder;
use crate::logical::clauses::ConstantCheck;
use crate::logical::context::PlanCx;
use crate::logical::mode::SqlMode;
use crate::logical::query::Query;

/// The maximum nesting depth of query blocks (63 as in MySQL).
pub(crate) const MAX_DEPTH: usize = 63;

/// The context of a query: a [`PlanCx`], to which it dereferences, and the query's position.
#[derive(Clone, Copy)]
pub(crate) struct BindCx<'a> {
    /// The statement's context. In the query of a view, the schema, database, mode and text are the
    /// view's.
    pub plan: PlanCx<'a>,
    /// The view whose query this is: its number in the statement's [`ColumnUses`].
    ///
    /// [`ColumnUses`]: crate::logical::column_uses::ColumnUses
    pub view_scope: Option<usize>,
    /// The query is that of a view that is being created.
    pub creates_view: bool,
    /// Common table expressions that the query may name.
    pub ctes: Option<&'a Ctes<'a>>,
    /// How many queries this one is nested in.
    pub depth: usize,
    /// Whether the query is a derived table, a view or a common table expression.
    pub derived: bool,
    /// Whether an enclosing query needs the functional dependencies between the query's columns.
    pub has_dependencies: bool,
    /// The statement changes rows that its derived tables may read, so these are materialized
    /// first.
    pub keeps_derived: bool,
    /// Collects the constants that are converted before the first row.
    pub constant_checks: Option<&'a RefCell<Vec<ConstantCheck>>>,
}

/// The common table expressions that a query may name: the first ones of a WITH clause, and those
/// of the WITH clauses around it.
#[derive(Clone, Copy)]
pub(crate) struct Ctes<'a> {
    pub(super) tables: &'a [ast::Cte],
    /// How many of `tables`, from the first on, may be named.
    pub(super) count: usize,
    /// Whether `tables[count]`, the one being defined, may be named as well (WITH RECURSIVE).
    pub(super) recursive: bool,
    /// The one being defined, while a recursive query block that may name it is bound.
    pub(super) own: Option<&'a OwnCte>,
    /// Set if the one being defined is named where it may not be.
    pub(super) recursion_named: Option<&'a Cell<bool>>,
    /// How often each of `tables` has been named so far.
    pub(super) named: &'a [Cell<usize>],
    /// How many more references the statement may have.
    pub(super) left: &'a Cell<usize>,
    /// The block around the query that the WITH belongs to.
    pub(super) outer: Option<&'a BlockBinder<'a>>,
    pub(super) around: Option<&'a Ctes<'a>>,
}

/// The rows of a common table expression that is being defined, as its recursive query block sees
/// them.
pub(super) struct OwnCte {
    /// The derived table that the name stands for.
    pub(super) rows: Query,
    /// [`BindCx::depth`] of the recursive query block.
    pub(super) depth: usize,
    pub(super) named: Cell<bool>,
}

impl<'a> Deref for BindCx<'a> {
    type Target = PlanCx<'a>;

    fn deref(&self) -> &PlanCx<'a> {
        &self.plan
    }
}

impl<'a> BindCx<'a> {
    /// The context of a statement that reads.
    pub fn new(plan: &PlanCx<'a>) -> BindCx<'a> {
        BindCx {
            plan: *plan,
            view_scope: None,
            creates_view: false,
            ctes: None,
            depth: 0,
            derived: false,
            has_dependencies: false,
            keeps_derived: false,
            constant_checks: None,
        }
    }

    /// Whether the SQL mode PAD_CHAR_TO_FULL_LENGTH is set.
    pub fn pads_char(&self) -> bool {
        self.mode.has(SqlMode::PAD_CHAR_TO_FULL_LENGTH)
    }

    /// The context of a query nested one level deeper.
    ///
    /// # Errors
    /// 1473. The parser bounds the nesting of queries, but not that of common table expressions.
    pub fn deeper(&self) -> Result<BindCx<'a>, SqlError> {
        match self.depth < MAX_DEPTH {
            true => Ok(BindCx {
                depth: self.depth + 1,
                ..*self
            }),
            false => Err(too_deep()),
        }
    }
}

/// Error 1473.
pub(super) fn too_deep() -> SqlError {
    let code = ErrorCode::ER_TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT;
    SqlError::new(code, &[&MAX_DEPTH])
}
