//! REPLACE and ON DUPLICATE KEY UPDATE: handles the existing row that has a key of the new row.

use nfold_engine::ValuesBeside;
use nfold_plan::expr::{Expr, ExprKind};
use nfold_plan::query::{Assignment, InsertPlan};
use nfold_types::{Level, SqlError};

use super::assignment::Assigner;
use super::auto_increment::observe_updated;
use super::duplicate::{duplicate_error, fail_or_warn, index_keys, is_needed, read_locked};
use super::insert::Inserting;
use super::pipeline::RowOutcome;
use crate::expr::eval::RowRef;
use crate::query::subquery::{BlockSubqueries, CachedSubquery};

impl Inserting<'_, '_> {
    /// Handles a duplicate in unique index `index`. `None`: insert the row again; otherwise whether
    /// the row counts as inserted. `made`: the row's automatic value. `beside`: the row's values
    /// beside its image.
    pub(super) fn resolve_conflict(
        &mut self,
        index: usize,
        made: Option<u64>,
        beside: ValuesBeside<'_>,
    ) -> Result<Option<bool>, SqlError> {
        // As in MySQL, an automatic value replaces no row, so the end of its type is an error.
        let replaces = self.plan.replace && !(made.is_some() && self.is_automatic_key(index));
        if replaces {
            if self.find_conflicting(index)? && self.replaces_itself(index, beside)? {
                self.affected += 1;
                return Ok(Some(true));
            }
            self.duplicates += 1;
            self.delete_conflicting()?;
            return Ok(None);
        }
        if !self.plan.on_duplicate.is_empty() {
            if !self.find_conflicting(index)? {
                // The existing row has been deleted meanwhile, so the next attempt can succeed.
                return Ok(None);
            }
            let changed = self.update_conflicting()?;
            // The duplicates in MySQL's text: the rows that were changed. With IGNORE, those that
            // were not.
            self.duplicates += u64::from(changed != self.plan.ignore);
            self.unchanged += u64::from(!changed);
            return Ok(Some(false));
        }
        self.duplicates += 1;
        let table = self.table;
        let error = duplicate_error(self.rt, table, index, self.changes.inserted());
        if !self.plan.ignore || self.plan.replace {
            return Err(error);
        }
        let mut warnings = self.rt.warnings.borrow_mut();
        warnings.push_error(Level::Warning, &error);
        Ok(Some(false))
    }

    /// Whether the index begins with the AUTO_INCREMENT column.
    fn is_automatic_key(&self, index: usize) -> bool {
        let def = self.table.def();
        let first = def.indexes[index].parts.first();
        first.is_some_and(|part| def.auto_increment_column() == Some(part.column))
    }

    /// Locks and reads the existing row with the same key. Returns false if it no longer exists.
    fn find_conflicting(&mut self, index: usize) -> Result<bool, SqlError> {
        let table = self.table;
        let plan = self.plan;
        let used = |column| is_needed(table.def(), column) || reads_column(plan, column);
        for key in index_keys(self.rt, table, index, self.changes.inserted())? {
            let at = (index, &key[..]);
            read_locked(self.rt, table, at, used, &mut self.conflicting)?;
            if !self.conflicting.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// REPLACE: whether the existing row equals the new one. If the duplicate is in the last unique
    /// index, MySQL updates the row in place, and counts it once if nothing changes.
    fn replaces_itself(&self, index: usize, beside: ValuesBeside<'_>) -> Result<bool, SqlError> {
        let later = &self.table.def().indexes[index + 1..];
        if later.iter().any(|i| i.is_unique()) || self.conflicting.len() != 1 {
            return Ok(false);
        }
        let (old, new) = (self.conflicting.row(0), (self.changes.inserted(), beside));
        self.rt
            .drive(|session| session.is_same_row(self.table, old, new))
    }

    /// REPLACE: deletes the existing rows.
    fn delete_conflicting(&mut self) -> Result<(), SqlError> {
        for i in 0..self.conflicting.len() {
            let (image, row_id) = (self.conflicting.row(i), self.conflicting.row_id(i));
            match self.changes.delete_replaced(self.rt, image, row_id)? {
                RowOutcome::Refused(error) => return Err(error),
                RowOutcome::Done => self.affected += 1,
                RowOutcome::Duplicate { .. } | RowOutcome::Gone => {}
            }
        }
        Ok(())
    }

    /// ON DUPLICATE KEY UPDATE: updates the existing row. Returns whether it has changed.
    fn update_conflicting(&mut self) -> Result<bool, SqlError> {
        let (rt, number) = (self.rt, self.number());
        let table = self.table;
        let kept = CachedSubquery::of(&self.plan.subqueries);
        let subqueries = BlockSubqueries::new(rt, &self.plan.subqueries, &kept);
        let state = rt.state(&subqueries);
        let assigner = Assigner::new(table, &self.plan.on_duplicate, self.plan.exprs.as_deref());
        let old = self.conflicting.row(0);
        let row_id = self.conflicting.row_id(0);
        let (proposed, image) = self.changes.begin_update_instead(old, row_id);
        let proposed = RowRef {
            layout: table.layout(),
            image: Some(proposed),
            places: None,
        };
        let mut around = [assigner.slot_of(None), proposed, proposed];
        let mut rows = &mut around[..2];
        if let Some((layout, row)) = &self.source {
            rows = &mut around[..];
            rows[2] = RowRef {
                layout,
                image: Some(row),
                places: None,
            };
        }
        if !assigner.apply(rt, &self.values, &state, old, rows, number, image)? {
            return Ok(false);
        }
        match self.changes.update(rt)? {
            RowOutcome::Done => {
                self.affected += 2;
                let value = observe_updated(rt, table, self.changes.updated())?;
                if let Some(v) = value {
                    self.automatic.observe(rt, v);
                }
                self.automatic.explicit = value.or(self.automatic.explicit);
                return Ok(true);
            }
            RowOutcome::Duplicate { index } => {
                let error = duplicate_error(rt, table, index, self.changes.updated());
                fail_or_warn(rt, self.plan.ignore, error)?;
            }
            RowOutcome::Refused(error) => fail_or_warn(rt, self.plan.ignore, error)?,
            RowOutcome::Gone => {}
        }
        Ok(false)
    }
}

/// Whether the statement reads this column of the existing row. REPLACE compares long values where
/// they are stored, ON DUPLICATE KEY UPDATE reads those that it names, and a subquery may read any.
fn reads_column(plan: &InsertPlan, column: usize) -> bool {
    let is_column = |e: &Expr| match e.kind {
        ExprKind::Column(at) => at.table == 0 && usize::from(at.column) == column,
        _ => false,
    };
    let is_read = |a: &Assignment| {
        let mut value = a.value.iter();
        a.column == column || value.any(|e| e.any(&mut |e| is_column(e)))
    };
    !plan.replace && !plan.subqueries.is_empty() || plan.on_duplicate.iter().any(is_read)
}
