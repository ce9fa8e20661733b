//! The bound stored expressions of a table.

use std::sync::Arc;

use nfold_catalog::{ColumnDef, TableDef};
use nfold_types::SqlError;

use super::expr::Expr;

/// A function that binds the stored expressions of a table; it returns `None` if the table has
/// none.
pub(crate) type BindExprs<'b> =
    dyn Fn(&Arc<TableDef>) -> Result<Option<Arc<TableExprs>>, SqlError> + 'b;

/// Stored expressions over one row of their table, which is row slot 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableExprs {
    /// The enforced CHECK constraints: name and condition. A row violates a constraint whose
    /// condition is false.
    pub checks: Vec<(Arc<str>, Expr)>,
    /// DEFAULT (expression), in the order of the columns.
    pub defaults: Vec<ColumnExpr>,
    /// Generated columns, in the order of the columns: each may read the generated columns before
    /// it.
    pub generated: Vec<ColumnExpr>,
}

/// The value of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnExpr {
    /// Ordinal.
    pub column: usize,
    pub expr: Expr,
    /// For the hidden column of a multi-valued key part: the same column with the type of one
    /// element.
    pub element: Option<Box<ColumnDef>>,
}

impl TableExprs {
    /// The DEFAULT (expression) of a column.
    pub fn default_of(&self, column: usize) -> Option<&Expr> {
        let found = self.defaults.iter().find(|d| d.column == column);
        found.map(|d| &d.expr)
    }

    /// Whether a column is generated.
    pub fn is_generated(&self, column: usize) -> bool {
        self.generated.iter().any(|g| g.column == column)
    }
}
