//! The effects of ALTER TABLE on stored expressions: CHECK constraints, and columns that
//! expressions name.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{CheckDef, ColumnDef, ColumnDefault, TableDef, Visibility};
use nfold_sql::ast;
use nfold_types::{ErrorCode, SqlError};

use super::Alter;
use crate::ddl::bind::{DdlCx, check, error, stored};

/// The effects of one ALTER TABLE on stored expressions.
#[derive(Default)]
pub(super) struct Changes {
    /// The number of the last generated name of a CHECK constraint.
    pub number: u32,
    /// Columns that were dropped or renamed.
    gone: Vec<(Arc<str>, ColumnLoss)>,
    /// Constraints that the statement adds.
    added: Vec<Arc<str>>,
}

impl Changes {
    pub fn of(old: &TableDef) -> Changes {
        Changes {
            number: check::last_number(old),
            ..Changes::default()
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnLoss {
    Dropped,
    Renamed,
}

impl Alter<'_> {
    pub(super) fn add_check(&mut self, c: &ast::Check, cx: &DdlCx<'_>) -> Result<(), SqlError> {
        let bound = check::bind(c, &self.new, &mut self.stored.number, cx)?;
        self.stored.added.push(bound.name.clone());
        self.must_hold(bound.enforced);
        self.new.checks.push(bound);
        Ok(())
    }

    /// Records an added or changed constraint. `enforced`: the rows must satisfy it.
    fn must_hold(&mut self, enforced: bool) {
        self.definition = true;
        self.copy |= enforced;
        self.counted |= enforced;
    }

    fn check_called(&self, name: &str) -> Option<usize> {
        self.new.checks.iter().position(|c| eq_name(&c.name, name))
    }

    pub(super) fn drop_check(&mut self, name: &str) -> Result<(), SqlError> {
        let found = self.check_called(name);
        let at = found.ok_or_else(|| error(ErrorCode::ER_CHECK_CONSTRAINT_NOT_FOUND, &[&name]))?;
        self.new.checks.remove(at);
        self.definition = true;
        Ok(())
    }

    pub(super) fn enforce_check(
        &mut self,
        name: &str,
        enforced: bool,
        any_constraint: bool,
    ) -> Result<(), SqlError> {
        let code = match any_constraint {
            true => ErrorCode::ER_CONSTRAINT_NOT_FOUND,
            false => ErrorCode::ER_CHECK_CONSTRAINT_NOT_FOUND,
        };
        let found = self.check_called(name);
        let at = found.ok_or_else(|| error(code, &[&name]))?;
        let changes = self.new.checks[at].enforced != enforced;
        self.new.checks[at].enforced = enforced;
        self.must_hold(enforced && changes);
        Ok(())
    }

    pub(super) fn note_column_dropped(&mut self, name: &Arc<str>) {
        self.stored.gone.push((name.clone(), ColumnLoss::Dropped));
    }

    pub(super) fn note_column_renamed(&mut self, name: &Arc<str>) {
        self.stored.gone.push((name.clone(), ColumnLoss::Renamed));
    }

    /// Drops the hidden columns of functional key parts whose index was dropped.
    pub(super) fn drop_unused_hidden_columns(&mut self) {
        let unused = |a: &Self| {
            a.new.columns.iter().enumerate().position(|(n, c)| {
                let all = a.new.indexes.iter().chain(&a.add);
                let mut parts = all.flat_map(|i| &i.parts);
                c.visibility == Visibility::Hidden && parts.all(|p| p.column != n)
            })
        };
        while let Some(at) = unused(self) {
            self.remove_column(at, true);
            self.copy = true;
        }
    }

    /// Checks the stored expressions after all actions. A constraint is dropped together with the
    /// only column that it names.
    ///
    /// # Errors
    /// 3108, 3766, 3837 and 3959 for columns that expressions name, 3822 and 3823 for constraints,
    /// 4028 if no column is visible, and those of [`stored::check`].
    pub(super) fn finish_stored(&mut self, cx: &DdlCx<'_>) -> Result<(), SqlError> {
        let gone = std::mem::take(&mut self.stored.gone);
        for (name, how) in &gone {
            let added = &self.stored.added;
            if *how == ColumnLoss::Dropped {
                let alone = |c: &CheckDef| c.expr.names(name) && c.expr.columns.len() == 1;
                self.new
                    .checks
                    .retain(|c| !alone(c) || added.contains(&c.name));
            }
            let mut checks = self.new.checks.iter().filter(|c| !added.contains(&c.name));
            if let Some(c) = checks.find(|c| c.expr.names(name)) {
                let code = ErrorCode::ER_DEPENDENT_BY_CHECK_CONSTRAINT;
                return Err(error(code, &[&c.name, name]));
            }
            for c in &self.new.columns {
                self.refuse_dependent(c, name)?;
            }
        }
        if !gone.is_empty() || !self.stored.added.is_empty() || !self.new.checks.is_empty() {
            check::sort(&mut self.new.checks);
            check::check_foreign_keys(&self.new)?;
        }
        let mut columns = self.new.columns.iter();
        if columns.all(|c| c.visibility != Visibility::Visible) {
            return Err(error(ErrorCode::ER_TABLE_MUST_HAVE_A_VISIBLE_COLUMN, &[]));
        }
        stored::check(&self.new, cx)
    }

    /// The error if the expression of another column names the column.
    fn refuse_dependent(&self, c: &ColumnDef, name: &Arc<str>) -> Result<(), SqlError> {
        // A column that the statement adds or changes is checked as a new one.
        if let ColumnDefault::Expr(e) = &c.default
            && e.names(name)
        {
            let code = ErrorCode::ER_DEPENDENT_BY_DEFAULT_GENERATED_VALUE;
            return Err(error(code, &[name, &self.old.name]));
        }
        if let Some(g) = &c.generated
            && g.expr.names(name)
        {
            let code = match c.visibility {
                Visibility::Hidden => ErrorCode::ER_DEPENDENT_BY_FUNCTIONAL_INDEX,
                _ => ErrorCode::ER_DEPENDENT_BY_GENERATED_COLUMN,
            };
            return Err(error(code, &[name]));
        }
        Ok(())
    }
}
