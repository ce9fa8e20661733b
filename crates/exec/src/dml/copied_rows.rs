//! Evaluates the stored expressions of rows that ALTER TABLE copies.

use std::cell::RefCell;
use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_plan::table_exprs::TableExprs;
use nfold_types::row::RowLayout;
use nfold_types::{NoCheckpoint, SqlError, Value, Warnings};

use super::row_exprs::CompletedRow;
use crate::env::SessionEnv;
use crate::env::params::Params;
use crate::expr::eval::{ListCache, NoSubqueries, RowCounts, Scope, StmtState};
use crate::operators::column_values::{ColumnValues, placeholder};

/// Completes and checks rows under a new table definition.
pub struct CopiedRows<'e> {
    env: &'e dyn SessionEnv,
    exprs: Arc<TableExprs>,
    values: ColumnValues,
    params: Params,
    lists: ListCache,
    counts: RowCounts,
    scratch: Vec<u8>,
}

impl<'e> CopiedRows<'e> {
    /// For rows of a table with these stored expressions.
    pub fn new(env: &'e dyn SessionEnv, exprs: Arc<TableExprs>) -> CopiedRows<'e> {
        CopiedRows {
            env,
            exprs,
            values: ColumnValues::of_env(env, false, false),
            params: Params::default(),
            lists: ListCache::default(),
            counts: RowCounts::default(),
            scratch: Vec::new(),
        }
    }

    /// A placeholder for a column's value until [`Self::complete`] computes it.
    pub fn placeholder(def: &TableDef, column: usize) -> Value {
        placeholder(&def.columns[column])
    }

    /// Computes those columns of `defaulted` that have a DEFAULT (expression), then the generated
    /// columns, and checks the constraints. `number` is the number of the row, from 1.
    ///
    /// # Errors
    /// 3819 if a constraint is false, and the errors of the expressions.
    pub fn complete(
        &mut self,
        (def, layout): (&TableDef, &RowLayout),
        defaulted: &[usize],
        image: &mut Vec<u8>,
        (number, warnings): (u64, &RefCell<Warnings>),
    ) -> Result<(), SqlError> {
        self.counts.sent.set(number - 1);
        let state = StmtState {
            params: &self.params,
            env: self.env,
            warnings,
            subqueries: &NoSubqueries,
            checkpoint: &NoCheckpoint,
            lists: &self.lists,
            counts: &self.counts,
            strict: self.values.mode.strict,
            scope: Scope::None,
            changes: false,
        };
        let row = CompletedRow {
            def,
            layout,
            values: &self.values,
            state: &state,
            number,
        };
        let defaults = self.exprs.defaults.iter();
        for d in defaults.filter(|d| defaulted.contains(&d.column)) {
            row.generate(std::slice::from_ref(d), image, &mut self.scratch)?;
        }
        row.generate(&self.exprs.generated, image, &mut self.scratch)?;
        row.check(&self.exprs, image)
    }
}
