//! What a column name means.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_sql::ast::ColumnRef;
use nfold_types::{ErrorCode, SqlError};

use super::aggregate::moved_in;
use super::window::{alias_misplaced, has_window};
use super::{AGGREGATES, BlockBinder};
use crate::logical::expr::{Coercibility, ColumnAt, Expr, ExprKind, ExprType};

/// A name as an error message shows it.
pub(super) fn display(c: &ColumnRef) -> String {
    let mut out = String::new();
    for part in [&c.schema, &c.table].into_iter().flatten() {
        out.push_str(&part.value);
        out.push('.');
    }
    out.push_str(&c.name.value);
    out
}

/// Whether two names of databases mean the same one.
pub(super) fn same_schema(a: &str, b: &str) -> bool {
    a == b || (a == "information_schema" && a.eq_ignore_ascii_case(b))
}

impl BlockBinder<'_> {
    /// The column of this block that `c` names, if any. Error 1052 where there are two.
    pub(super) fn find(&self, c: &ColumnRef) -> Result<Option<ColumnAt>, SqlError> {
        let mut found = None;
        for (t, slot) in self.scope.iter().enumerate().skip(self.in_sight_from) {
            if let Some(table) = &c.table {
                if *slot.alias != *table.value {
                    continue;
                }
                if let (Some(schema), Some(own)) = (&c.schema, &slot.schema)
                    && !same_schema(own, &schema.value)
                {
                    continue;
                }
            }
            for (i, column) in slot.columns.iter().enumerate() {
                let seen = eq_name(&column.name, &c.name.value)
                    && (c.table.is_some() || !self.hidden.contains(&(t, i)));
                if !seen {
                    continue;
                }
                if found.is_some() {
                    return Err(SqlError::new(
                        ErrorCode::ER_NON_UNIQ_ERROR,
                        &[&display(c), &self.clause],
                    ));
                }
                found = Some(ColumnAt {
                    table: t as u16,
                    column: i as u16,
                });
            }
        }
        Ok(found)
    }

    /// A column of this block as an expression; marks it as used.
    /// A column of the query of INSERT ... SELECT, in ON DUPLICATE KEY UPDATE. While these columns
    /// are collected, NULL stands for it.
    fn source_column(&mut self, c: &ColumnRef) -> Option<Expr> {
        let sources = self.source_columns.as_mut()?;
        let found = sources.named.iter().position(|known| known == c);
        match (sources.place, found) {
            (Some(first), Some(n)) => Some(self.column_expr(ColumnAt {
                table: first.table,
                column: first.column + n as u16,
            })),
            (Some(_), None) => None,
            (None, found) => {
                if found.is_none() {
                    sources.named.push(c.clone());
                }
                Some(Expr::null())
            }
        }
    }

    pub(super) fn column_expr(&self, at: ColumnAt) -> Expr {
        Expr {
            kind: ExprKind::Column(at),
            ty: self.column_ty(at),
        }
    }

    /// Notes that the statement needs the value of a column of this block.
    pub(super) fn mark_used(&self, slot: usize, column: usize) {
        let mut used = self.used.borrow_mut();
        if let Some(flag) = used.get_mut(slot).and_then(|u| u.get_mut(column)) {
            *flag = true;
        }
    }

    fn column_ty(&self, at: ColumnAt) -> ExprType {
        let (t, i) = (usize::from(at.table), usize::from(at.column));
        self.mark_used(t, i);
        let column = &self.scope[t].columns[i];
        let nullable = column.nullable || self.tables.get(t).is_some_and(|s| s.nullable);
        let coercibility = match crate::logical::expr::Class::of(&column.ty) {
            crate::logical::expr::Class::String => {
                column.coercibility.unwrap_or(Coercibility::Implicit)
            }
            _ if matches!(column.ty.kind, nfold_types::TypeKind::Bit(_)) => Coercibility::Implicit,
            _ => Coercibility::Numeric,
        };
        ExprType {
            col: column.ty.clone(),
            nullable,
            coercibility,
        }
    }

    /// The column that `c` names, here or in an enclosing query; then the select list's aliases,
    /// where the clause allows them.
    pub(super) fn column(&mut self, c: &ColumnRef) -> Result<Expr, SqlError> {
        let having = self.clause == "having clause" && !self.in_aggregate;
        if having && let Some(e) = self.having_name(c)? {
            return self.passed_alias(c, e);
        }
        if let Some(at) = self.find(c)? {
            // HAVING sees no column of the tables that is neither selected nor grouped by.
            let seen = !having || self.aliases.iter().any(|(_, e)| e.as_column() == Some(at));
            if seen {
                return Ok(self.column_expr(at));
            }
        }
        if let Some(e) = self.source_column(c) {
            return Ok(e);
        }
        let alias_clause = matches!(
            self.clause,
            "order clause" | "group statement" | "having clause"
        );
        if alias_clause
            && c.table.is_none()
            && let Some(e) = self.alias(&c.name.value, self.clause)?
        {
            return self.passed_alias(c, e);
        }
        let mut level = 1;
        let mut outer = self.outer;
        while let Some(block) = outer {
            if let Some(at) = block.find(c)? {
                let mut e = block.column_expr(at);
                e.kind = ExprKind::Outer { level, at };
                self.correlated_up_to(level);
                return Ok(e);
            }
            if c.table.is_none()
                && let Some(mut e) = block.alias(&c.name.value, self.clause)?
            {
                let gathers = |e: &Expr| e.as_column().is_some_and(|at| at.table == AGGREGATES);
                let in_having = [self.clause, block.clause] == ["having clause"; 2];
                if !in_having && e.any(&mut |e| gathers(e)) {
                    return Err(SqlError::new(
                        ErrorCode::ER_ILLEGAL_REFERENCE,
                        &[&c.name.value, &"reference to group function"],
                    ));
                }
                if has_window(&e) {
                    return Err(alias_misplaced(&c.name.value));
                }
                moved_in(&mut e, level)?;
                self.correlated_up_to(level);
                self.alias_in_aggregate |= self.in_aggregate;
                return Ok(e);
            }
            let later = |alias: &Arc<str>| eq_name(alias, &c.name.value);
            if c.table.is_none() && block.later_aliases.iter().any(later) {
                return Err(SqlError::new(
                    ErrorCode::ER_ILLEGAL_REFERENCE,
                    &[&c.name.value, &"forward reference in item list"],
                ));
            }
            level += 1;
            outer = block.outer;
        }
        if let (Some(table), Some(_) | None) = (&c.table, &c.schema)
            && c.table.is_some()
            && !self.scope.iter().any(|s| *s.alias == *table.value)
            && self.clause == "table star"
        {
            return Err(SqlError::new(
                ErrorCode::ER_UNKNOWN_TABLE,
                &[&table.value, &self.clause],
            ));
        }
        Err(SqlError::new(
            ErrorCode::ER_BAD_FIELD_ERROR,
            &[&display(c), &self.clause],
        ))
    }

    /// What an alias stands for; error 3594 where that is a window function and must not be.
    fn passed_alias(&self, c: &ColumnRef, e: Expr) -> Result<Expr, SqlError> {
        let misplaced = self.clause == "having clause" || self.in_window || self.in_aggregate;
        match misplaced && has_window(&e) {
            true => Err(alias_misplaced(&c.name.value)),
            false => Ok(e),
        }
    }

    /// This block and those between it and the one `level` further out are correlated with one
    /// outside of them.
    fn correlated_up_to(&self, level: u16) {
        let mut block = Some(self);
        for _ in 0..level {
            if let Some(b) = block {
                b.correlated.set(true);
                block = b.outer;
            }
        }
    }

    /// The select item called `name`. Of several, one that is no column.
    ///
    /// # Errors
    /// 1052 where there are two columns before, or none that is no column.
    pub(super) fn alias(&self, name: &str, clause: &str) -> Result<Option<Expr>, SqlError> {
        let is_column = |e: &Expr| match &e.kind {
            ExprKind::Column(at) => at.table < super::WINDOWS,
            ExprKind::Outer { .. } => true,
            _ => false,
        };
        let mut found: Option<&Expr> = None;
        let called = self.aliases.iter().filter(|(a, _)| eq_name(a, name));
        for (_, e) in called {
            match found {
                _ if !is_column(e) => return Ok(Some(e.clone())),
                Some(other) if other.kind != e.kind => {
                    let code = ErrorCode::ER_NON_UNIQ_ERROR;
                    return Err(SqlError::new(code, &[&name, &clause]));
                }
                _ => found = Some(e),
            }
        }
        Ok(found.cloned())
    }

    /// HAVING sees the columns of GROUP BY first, then the select list, then the tables.
    fn having_name(&self, c: &ColumnRef) -> Result<Option<Expr>, SqlError> {
        let at = self.find(c).ok().flatten();
        if let Some(at) = at
            && self.keys.iter().any(|k| k.as_column() == Some(at))
        {
            return Ok(Some(self.column_expr(at)));
        }
        if c.table.is_none() {
            return self.alias(&c.name.value, self.clause);
        }
        Ok(None)
    }
}
