//! Rows of an INSERT that the engine inserts several at a time.
//!
//! # Invariants
//! - The statement has the result of inserts row by row: the first row that fails determines the
//!   error, its warnings and AUTO_INCREMENT counter are those of the rows up to it, and a warning
//!   about a duplicate (IGNORE) comes before the warnings of later rows.
//! - A row is computed before the rows that wait are inserted, so rows wait only if that has no
//!   effect besides warnings: no subquery, no assignment to a variable, no volatile function.

use nfold_plan::expr::Expr;
use nfold_plan::query::{InsertPlan, InsertSource, QueryBody, QueryPlan};
use nfold_types::{ErrorCode, Level, SqlError, WarningsMark};

use super::auto_increment::AutoIncrement;
use super::duplicate::{duplicate_error, fail_or_warn};
use super::insert::Inserting;
use super::pipeline::RowOutcome;
use crate::expr::func::is_repeatable;

/// A row that waits to be inserted.
struct LaterRow {
    /// The number of the row in the statement, from 1.
    number: u64,
    /// The AUTO_INCREMENT value that it has specified.
    given: Option<u64>,
    /// The position behind its warnings.
    warnings: WarningsMark,
}

/// The rows of a statement that wait to be inserted.
#[derive(Default)]
pub(super) struct LaterInserts {
    /// The number of the first row that may wait; 0: none may.
    first: u64,
    rows: Vec<LaterRow>,
}

impl LaterInserts {
    /// `foreign`: a foreign key concerns the rows. `several`: there are more rows than one. If this
    /// is unknown, the first row is inserted at once, because deferring a single row costs more
    /// than it saves.
    pub fn new(plan: &InsertPlan, foreign: bool, several: bool) -> LaterInserts {
        let handles_duplicates = plan.replace || !plan.on_duplicate.is_empty();
        let first = match foreign || handles_duplicates || !may_wait(plan) {
            true => 0,
            false if several => 1,
            false => 2,
        };
        LaterInserts {
            first,
            rows: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Whether rows may be computed before those in front of them are inserted.
fn may_wait(plan: &InsertPlan) -> bool {
    let exprs = plan.exprs.as_deref();
    let defaults = exprs.is_none_or(|e| e.defaults.iter().all(|d| is_repeatable(&d.expr)));
    let source = match &plan.source {
        InsertSource::Param(_) => true,
        InsertSource::Rows(rows) => rows.iter().flatten().flatten().all(is_repeatable),
        InsertSource::File(file) => {
            let mut values = file.set.iter().filter_map(|a| a.value.as_ref());
            values.all(is_repeatable)
        }
        InsertSource::Query(q) => is_repeatable_query(q),
    };
    defaults && source && plan.subqueries.is_empty()
}

fn is_repeatable_query(q: &QueryPlan) -> bool {
    let are_repeatable = |exprs: &[Expr]| exprs.iter().all(is_repeatable);
    match &q.body {
        QueryBody::Block(block) => {
            let conditions = block.joins.iter().all(|join| are_repeatable(&join.filter));
            are_repeatable(&block.select) && conditions && !block.row_by_row
        }
        QueryBody::Set { left, right, .. } => {
            is_repeatable_query(left) && is_repeatable_query(right)
        }
        QueryBody::Rows(rows) => rows.iter().all(|row| are_repeatable(row)),
        QueryBody::Recursive(_) | QueryBody::Working(_) => false,
    }
}

impl Inserting<'_, '_> {
    /// Whether the row at hand may wait. `made`: its automatic value. A later row gets that value
    /// if this one is a duplicate (IGNORE).
    pub(super) fn may_defer(&self, made: Option<u64>) -> bool {
        self.later.first != 0
            && self.rows >= self.later.first
            && !(self.plan.ignore && made.is_some())
    }

    /// Before the row at hand gets its automatic value: inserts the rows that wait, if they may
    /// raise the counter, or if values are to be reserved, which a statement that has failed does
    /// not do.
    pub(super) fn insert_rows_before_value(
        &mut self,
        c: usize,
        zero_generates: bool,
    ) -> Result<(), SqlError> {
        if self.later.is_empty() || !AutoIncrement::generates(&self.row[c], zero_generates) {
            return Ok(());
        }
        let given = self.later.rows.iter().any(|row| row.given.is_some());
        match given || self.automatic.is_used_up() {
            true => self.insert_later_rows(),
            false => Ok(()),
        }
    }

    /// Defers the complete row, whose image is encoded. Returns whether it counts as inserted.
    /// `None`: it must be inserted at once; the rows before it are inserted.
    pub(super) fn insert_later(&mut self) -> Result<Option<bool>, SqlError> {
        let rt = self.rt;
        if let Some(outcome) = self.changes.complete_insert(rt)? {
            if let RowOutcome::Refused(error) = outcome {
                fail_or_warn(rt, self.plan.ignore, error)?;
                self.refused += 1;
            }
            return Ok(Some(false));
        }
        if !self.changes.defer_insert(rt)? {
            self.insert_later_rows()?;
            return Ok(None);
        }
        self.later.rows.push(LaterRow {
            number: self.rows,
            given: self.automatic.given,
            warnings: rt.warnings.borrow().mark(),
        });
        self.affected += 1;
        Ok(Some(true))
    }

    /// Inserts the rows that wait.
    ///
    /// # Errors
    /// Error 1062 for a duplicate, and the errors of the engine. No row waits then.
    pub(super) fn insert_later_rows(&mut self) -> Result<(), SqlError> {
        if self.later.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.later.rows);
        let done = self.insert_rows(&rows);
        self.changes.clear_deferred();
        self.later.rows = rows;
        self.later.rows.clear();
        done
    }

    fn insert_rows(&mut self, rows: &[LaterRow]) -> Result<(), SqlError> {
        let (rt, mut from, mut added) = (self.rt, 0, 0);
        loop {
            let duplicate = self.changes.insert_deferred(rt, from)?;
            let end = duplicate.map_or(rows.len(), |duplicate| duplicate.row);
            let given = rows[from..end].iter().filter_map(|row| row.given).max();
            self.automatic.observe_given(rt, self.table, given)?;
            let Some(duplicate) = duplicate else {
                return Ok(());
            };
            let row = &rows[end];
            let image = self.changes.deferred_image(end);
            let error = duplicate_error(rt, self.table, duplicate.index, image);
            let at = row.warnings.moved_by(added);
            if let (Some(v), InsertSource::Query(_)) = (row.given, &self.plan.source) {
                rt.drive(|_| self.table.auto_increment_observe(v))?;
            }
            if !self.plan.ignore {
                self.automatic.failed_at(row.number);
                rt.counts.sent.set(row.number);
                rt.warnings.borrow_mut().return_to(at);
                return Err(error);
            }
            rt.warnings
                .borrow_mut()
                .insert_error(at, Level::Warning, &error);
            self.affected -= 1;
            self.inserted -= 1;
            self.duplicates += 1;
            (from, added) = (end + 1, added + 1);
        }
    }

    /// After the last row, or an error: inserts the rows that wait. An error of theirs comes first.
    pub(super) fn finish_later_rows(&mut self, done: Result<(), SqlError>) -> Result<(), SqlError> {
        match &done {
            Err(error) if ends_transaction(error) => {
                self.changes.clear_deferred();
                done
            }
            _ => self.insert_later_rows().and(done),
        }
    }
}

/// Whether an error leaves nothing to be done in the transaction.
fn ends_transaction(error: &SqlError) -> bool {
    matches!(
        error.code,
        ErrorCode::ER_LOCK_DEADLOCK
            | ErrorCode::ER_LOCK_WAIT_TIMEOUT
            | ErrorCode::ER_QUERY_INTERRUPTED
    )
}
