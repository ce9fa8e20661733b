//! The properties of a table that a replica needs before it applies a row event to it.

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_types::SqlError;

use crate::bind::table_exprs::table_exprs;
use crate::logical::context::PlanCx;
use crate::logical::table_exprs::TableExprs;
use crate::physical::foreign::{Changed, ForeignKeys};

/// The kind of changes of a row event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEventKind {
    Insert,
    Update,
    Delete,
}

/// A table with what its changed rows must satisfy.
#[derive(Debug, Clone)]
pub struct RowEventPlan {
    pub table: Arc<TableDef>,
    pub exprs: Option<Arc<TableExprs>>,
    /// `None`: the table has none, or the source did not check them.
    pub foreign: Option<Arc<ForeignKeys>>,
}

/// Plans the changes of a row event. Foreign keys count as [`PlanCx::foreign_key_checks`] says.
///
/// # Errors
/// Those of binding the table's stored expressions.
pub fn plan_row_event(
    cx: &PlanCx<'_>,
    table: &Arc<TableDef>,
    kind: RowEventKind,
) -> Result<RowEventPlan, SqlError> {
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let changed = match kind {
        RowEventKind::Insert => Changed::Inserted,
        RowEventKind::Update => Changed::Updated(&all),
        RowEventKind::Delete => Changed::Deleted,
    };
    Ok(RowEventPlan {
        table: table.clone(),
        exprs: table_exprs(cx, table)?,
        foreign: ForeignKeys::of(cx.foreign(), &[(table, changed)]),
    })
}
