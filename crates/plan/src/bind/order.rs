//! GROUP BY and ORDER BY, whose members may name select items.

use std::convert::Infallible;
use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_sql::ast::{self, Literal, OrderItem};
use nfold_types::{ErrorCode, SqlError};

use super::items::Item;
use super::rollup;
use super::window;
use super::{AGGREGATES, BlockBinder, GROUPINGS, Grouped, WINDOWS, WindowDraft};
use crate::logical::clauses::{BlockWarning, OrderKey};
use crate::logical::expr::{ColumnAt, Expr, ExprKind, is_constant};
use crate::logical::func::is_volatile;
use crate::logical::walk::outer_columns;

/// A column in `e` that is not selected. A window function counts as selected if the same function
/// with the same arguments is; otherwise the columns in its arguments count.
fn unselected(e: &Expr, select: &[Expr], drafts: &[WindowDraft]) -> Option<ColumnAt> {
    let mut missing = None;
    e.any(&mut |e| {
        let Some(at) = e.as_column() else {
            return false;
        };
        if at.table == WINDOWS {
            let draft = &drafts[usize::from(at.column)];
            let selected = select.iter().filter(|s| window::is_window(s)).any(|s| {
                let of = s.as_column().map(|at| &drafts[usize::from(at.column)]);
                of.is_some_and(|of| of.is_like(draft))
            });
            if !selected {
                let args = draft.args.iter();
                missing = args.filter_map(|a| unselected(a, select, drafts)).next();
            }
        } else if !select.iter().any(|s| s.kind == e.kind) {
            missing = Some(at);
        }
        missing.is_some()
    });
    missing
}

/// Error 3065 if a DISTINCT query is sorted by an expression that is not selected.
pub(super) fn check_distinct_order(
    order: &[OrderKey],
    select: &[Expr],
    drafts: &[WindowDraft],
    b: &BlockBinder<'_>,
) -> Result<(), SqlError> {
    for (n, key) in order.iter().enumerate() {
        if select.iter().any(|s| s.kind == key.expr.kind) {
            continue;
        }
        let missing = unselected(&key.expr, select, drafts);
        if let Some(at) = missing {
            let slot = &b.scope[usize::from(at.table)];
            let column = &slot.columns[usize::from(at.column)].name;
            let name = match &slot.schema {
                Some(s) => format!("{s}.{}.{column}", slot.alias),
                None => format!("{}.{column}", slot.alias),
            };
            return Err(SqlError::new(
                ErrorCode::ER_FIELD_IN_ORDER_NOT_SELECT,
                &[&(n + 1), &name, &"DISTINCT"],
            ));
        }
    }
    Ok(())
}

impl BlockBinder<'_> {
    fn position(&self, e: &ast::Expr, items: &[Item]) -> Result<Option<Expr>, SqlError> {
        let ast::Expr::Literal(Literal::Int(n)) = e else {
            return Ok(None);
        };
        match usize::try_from(*n)
            .ok()
            .and_then(|n| items.get(n.checked_sub(1)?))
        {
            Some(item) => Ok(Some(item.expr.clone())),
            None => Err(SqlError::new(
                ErrorCode::ER_BAD_FIELD_ERROR,
                &[n, &self.clause],
            )),
        }
    }

    /// Binds the members of GROUP BY.
    pub(super) fn group_keys(
        &mut self,
        list: &[ast::Expr],
        items: &[Item],
    ) -> Result<Vec<Expr>, SqlError> {
        let mut keys: Vec<Expr> = Vec::new();
        for e in list {
            let mut selected = None;
            if let ast::Expr::Column(c) = e
                && c.table.is_none()
            {
                // A column name prefers the tables; a name that is ambiguous or unknown there means
                // the select item. `alias` runs first because its own ambiguity is an error in any
                // case.
                selected = self.alias(&c.name.value, self.clause)?;
                if let Ok(column) = self.find(c) {
                    let other = |e: &Expr| column.is_some() && e.as_column() != column;
                    if selected.as_ref().is_some_and(other) {
                        let name = c.name.value.as_str().into();
                        self.warnings.push(BlockWarning::Ambiguous(name));
                    }
                    selected = None;
                }
            }
            let key = match selected.map_or_else(|| self.position(e, items), |e| Ok(Some(e)))? {
                Some(e) => e,
                None => match self.expr(e) {
                    Err(error) => return Err(self.selected_aggregate(e, items).unwrap_or(error)),
                    key => key?,
                },
            };
            if window::has_window(&key) {
                let item = items.iter().find(|i| i.expr.kind == key.kind);
                let name = item.map_or("window", |i| &*i.meta.name);
                return Err(SqlError::new(ErrorCode::ER_WRONG_GROUP_FIELD, &[&name]));
            }
            if self.reads_an_aggregate(&key) {
                let item = items.iter().find(|i| i.expr.kind == key.kind);
                let name = item.map_or("aggregate", |i| &*i.meta.name);
                return Err(SqlError::new(ErrorCode::ER_WRONG_GROUP_FIELD, &[&name]));
            }
            if key.any(&mut |e| matches!(e.kind, ExprKind::Column(at) if at.table == GROUPINGS)) {
                return Err(rollup::not_grouped_by());
            }
            // A constant stays a key: it makes one group of all rows, but no group of no rows. A
            // repeated key matters only with ROLLUP, where each member adds a row.
            let again = keys.iter().any(|k| k.kind == key.kind);
            if !again || self.grouped == Grouped::RolledUp {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// For each select item the member of GROUP BY ... WITH ROLLUP that names it, by its alias or
    /// its number; empty without ROLLUP.
    pub(super) fn item_keys(&self, list: &[ast::Expr]) -> Vec<Option<usize>> {
        if self.grouped != Grouped::RolledUp {
            return Vec::new();
        }
        let mut keys = vec![None; self.aliases.len()];
        for (key, e) in list.iter().enumerate() {
            let item = self.item_named(e);
            if let Some(known) = item.and_then(|n| keys.get_mut(n)) {
                known.get_or_insert(key);
            }
        }
        keys
    }

    /// The select item that a member of GROUP BY or ORDER BY names by its alias or its number.
    fn item_named(&self, e: &ast::Expr) -> Option<usize> {
        match e {
            ast::Expr::Literal(Literal::Int(n)) => usize::try_from(*n).ok()?.checked_sub(1),
            ast::Expr::Column(c) if c.table.is_none() && !matches!(self.find(c), Ok(Some(_))) => {
                let is_called = |(name, _): &(Arc<str>, Expr)| eq_name(name, &c.name.value);
                self.aliases.iter().position(is_called)
            }
            _ => None,
        }
    }

    /// Whether the value of `key` depends on an aggregate: of this block (directly or in a
    /// subquery) or of an enclosing one. Such a key is invalid, because aggregates are computed
    /// after the rows are grouped.
    pub(super) fn reads_an_aggregate(&mut self, key: &Expr) -> bool {
        let mut found = false;
        let mut subqueries = Vec::new();
        key.any(&mut |e| {
            match &e.kind {
                ExprKind::Column(at) | ExprKind::Outer { at, .. } => {
                    found |= at.table == AGGREGATES;
                }
                ExprKind::Subquery { index, .. } => subqueries.push(usize::from(*index)),
                _ => {}
            }
            false
        });
        for index in subqueries {
            let Ok(()) =
                outer_columns::<Infallible>(&mut self.subqueries[index].query, 1, &mut |at, _| {
                    found |= at.table == AGGREGATES;
                    Ok(())
                });
        }
        found
    }

    /// Error 1056 if a GROUP BY member that failed to bind is an aggregate of the select list.
    fn selected_aggregate(&mut self, e: &ast::Expr, items: &[Item]) -> Option<SqlError> {
        self.aggregates_allowed = true;
        let bound = self.expr(e);
        self.aggregates_allowed = false;
        let kind = bound.ok()?.kind;
        let item = items.iter().find(|i| i.expr.kind == kind)?;
        let name = &item.meta.name;
        Some(SqlError::new(ErrorCode::ER_WRONG_GROUP_FIELD, &[&name]))
    }

    /// Whether an expression has one value for all rows, and no effect.
    fn is_unordered(&self, e: &Expr) -> bool {
        let variable = |e: &Expr| matches!(e.kind, ExprKind::UserVar(_) | ExprKind::SysVar { .. });
        is_constant(e) && !is_volatile(self.cx.funcs, e) && !e.any(&mut |e| variable(e))
    }

    /// Binds the members of ORDER BY.
    pub(super) fn order_keys(
        &mut self,
        list: &[OrderItem],
        items: &[Item],
    ) -> Result<Vec<OrderKey>, SqlError> {
        let mut keys: Vec<OrderKey> = Vec::new();
        for o in list {
            let item = self.item_named(&o.expr);
            let expr = match self.position(&o.expr, items)? {
                Some(e) => e,
                None => match &o.expr {
                    // An unqualified name is looked up in the select list first.
                    ast::Expr::Column(c) if c.table.is_none() => {
                        match self.alias(&c.name.value, self.clause)? {
                            Some(e) => e,
                            None => self.expr(&o.expr)?,
                        }
                    }
                    e => self.expr(e)?,
                },
            };
            // What is rolled up under one name may not be under another.
            let own = item.filter(|_| self.grouped == Grouped::RolledUp);
            // Sorting by a constant has no effect, and the constant is not evaluated.
            let constant = own.is_none() && self.is_unordered(&expr);
            let again = own.is_none() && keys.iter().any(|k| k.expr.kind == expr.kind);
            if !constant && !again {
                self.order_items.push(own);
                keys.push(OrderKey {
                    expr,
                    desc: o.descending,
                });
            }
        }
        Ok(keys)
    }
}
