//! What a query is bound in: the statement's context, and where in the statement the query stands.

use std::cell::Cell;
use std::ops::Deref;

use nfold_sql::ast;
use nfold_types::{ErrorCode, SqlError};

use super::binder::BlockBinder;
use crate::logical::context::PlanCx;
use crate::logical::mode::SqlMode;
use crate::logical::query::Query;

/// Query blocks may be nested this deep (MySQL: 63).
pub(crate) const MAX_DEPTH: usize = 63;

/// The context of a query: a [`PlanCx`], to which it dereferences, and the query's place.
#[derive(Clone, Copy)]
pub(crate) struct BindCx<'a> {
    /// The statement's; in a view's query, the schema, database, mode and text are the view's.
    pub plan: PlanCx<'a>,
    /// Common table expressions that the query may name.
    pub ctes: Option<&'a Ctes<'a>>,
    /// How many queries this one is nested in.
    pub depth: usize,
    /// The query is a derived table, a view or a common table expression.
    pub derived: bool,
    /// The query is a table of another one, which needs its dependencies.
    pub has_dependencies: bool,
    /// The statement changes rows that its derived tables may read, so they are computed first.
    pub keeps_derived: bool,
}

/// The common table expressions in sight: some of one WITH, and those around it.
#[derive(Clone, Copy)]
pub(crate) struct Ctes<'a> {
    pub(super) tables: &'a [ast::Cte],
    /// The first so many are in sight.
    pub(super) count: usize,
    /// The next one is, too: it is the one that is being defined (RECURSIVE).
    pub(super) recursive: bool,
    /// The one that is being defined, where its rows may be named.
    pub(super) own: Option<&'a OwnCte>,
    /// Told where it is named although it may not be.
    pub(super) recursion_named: Option<&'a Cell<bool>>,
    /// How often each is named so far.
    pub(super) named: &'a [Cell<usize>],
    /// References that are left, of the statement.
    pub(super) left: &'a Cell<usize>,
    /// What is around the query that the WITH belongs to.
    pub(super) outer: Option<&'a BlockBinder<'a>>,
    pub(super) around: Option<&'a Ctes<'a>>,
}

/// A common table expression, as the part of it that names it sees it.
pub(super) struct OwnCte {
    /// Its rows.
    pub(super) rows: Query,
    /// [`BindCx::depth`] of that part.
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
            ctes: None,
            depth: 0,
            derived: false,
            has_dependencies: false,
            keeps_derived: false,
        }
    }

    /// The context of a statement that changes rows.
    pub fn of_changes(plan: &PlanCx<'a>) -> BindCx<'a> {
        BindCx {
            keeps_derived: true,
            ..BindCx::new(plan)
        }
    }

    /// The SQL mode PAD_CHAR_TO_FULL_LENGTH.
    pub fn pads_char(&self) -> bool {
        self.mode.has(SqlMode::PAD_CHAR_TO_FULL_LENGTH)
    }

    /// The context one query deeper.
    ///
    /// # Errors
    /// 1473. The parser counts how deep queries are nested, but not common table expressions.
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
