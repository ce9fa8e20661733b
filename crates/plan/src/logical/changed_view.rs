//! The view through which a statement changes rows.

use std::sync::Arc;

use super::expr::Expr;

/// A view in whose place a statement changes rows of its table.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedView {
    pub schema: Arc<str>,
    pub name: Arc<str>,
    /// WITH CHECK OPTION: a row must satisfy all of these after the change. Over slot 0, the table.
    pub check: Vec<Expr>,
}
