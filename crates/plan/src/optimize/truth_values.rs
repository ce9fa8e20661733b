//! Constant truth values in conditions on documents are the integers 1 and 0: `j = (1 = 1)` finds
//! the document `1`, while `j = TRUE` finds `true`, and so does `j = (n = 1)`.
//!
//! MySQL caches a constant of a condition before it reads rows, and the cache does not know that an
//! integer was a truth value. It does not cache literals, EXISTS, and `IS NOT NULL` of an operand
//! that is never NULL. UPDATE and DELETE of one table, and blocks whose tables have one row each,
//! cache nothing.

use nfold_sql::ast::IsTest;

use crate::logical::context::PlanCx;
use crate::logical::expr::{Class, Expr, ExprKind, ExprType, SubqueryUse};
use crate::logical::func::is_volatile;
use crate::physical::query::{Block, QueryBody, SubqueryPlan, TableSource};

/// Makes integers of the constant truth values beside documents, in the conditions of a block whose
/// tables are joined.
pub(super) fn use_integers(cx: &PlanCx<'_>, block: &mut Block) {
    let changes_one = block.changed != 0 && block.tables.len() == 1;
    if changes_one
        || block
            .joins
            .iter()
            .all(|step| has_one_row(block, step.table))
    {
        return;
    }
    let constants = Constants {
        cx,
        subqueries: &block.subqueries,
    };
    for step in &mut block.joins {
        let conditions = step.on.iter_mut().chain(&mut step.filter);
        conditions.for_each(|e| constants.visit(e));
    }
    block.having.iter_mut().for_each(|e| constants.visit(e));
}

/// Whether MySQL reads the table of a slot before it plans the query.
fn has_one_row(block: &Block, slot: usize) -> bool {
    match &block.tables[slot].source {
        TableSource::Table(_) => {
            let mut steps = block.joins.iter().filter(|step| step.table == slot);
            steps.any(|step| block.is_const_table(step))
        }
        TableSource::Derived(q) => match &q.body {
            QueryBody::Block(b) => b.joins.is_empty() && b.group.is_none() && b.having.is_empty(),
            _ => false,
        },
        TableSource::Virtual(_) | TableSource::Json(_) => false,
    }
}

struct Constants<'c> {
    cx: &'c PlanCx<'c>,
    subqueries: &'c [SubqueryPlan],
}

impl Constants<'_> {
    /// Visits an expression that is no constant itself.
    fn visit(&self, e: &mut Expr) {
        if self.is_constant(e) {
            return;
        }
        let mut documents = is_document(e);
        e.each_child(&mut |child| documents |= is_document(child));
        e.each_child_mut(&mut |child| match documents && self.is_cached(child) {
            true => {
                let nullable = child.ty.nullable;
                child.ty = ExprType::bigint(nullable);
            }
            false => self.visit(child),
        });
    }

    /// Whether MySQL caches the truth value.
    fn is_cached(&self, e: &Expr) -> bool {
        if !e.ty.is_boolean() {
            return false;
        }
        match &e.kind {
            ExprKind::Const(_) | ExprKind::Default(_) => false,
            ExprKind::Not(inner) if is_exists(inner) => false,
            _ if is_exists(e) => false,
            _ => match null_test(e) {
                Some(is_null) => is_null,
                None => self.is_constant(e),
            },
        }
    }

    fn is_constant(&self, e: &Expr) -> bool {
        !self.varies(e) && !is_volatile(self.cx.funcs, e)
    }

    fn varies(&self, e: &Expr) -> bool {
        if null_test(e).is_some() {
            return false;
        }
        let mut varies = match &e.kind {
            ExprKind::Column(_) | ExprKind::Outer { .. } => true,
            ExprKind::Subquery { index, .. } => {
                let subquery = self.subqueries.get(usize::from(*index));
                subquery.is_none_or(|s| s.correlated)
            }
            _ => false,
        };
        e.each_child(&mut |child| varies = varies || self.varies(child));
        varies
    }
}

fn is_exists(e: &Expr) -> bool {
    let exists = SubqueryUse::Exists;
    matches!(&e.kind, ExprKind::Subquery { use_as, .. } if *use_as == exists)
}

/// Whether an expression is IS NULL (true) or IS NOT NULL (false) of an operand that is never NULL;
/// NOT makes the one of the other.
fn null_test(e: &Expr) -> Option<bool> {
    match &e.kind {
        ExprKind::Is {
            expr,
            test: IsTest::Null,
            negated,
        } if !expr.ty.nullable => Some(!negated),
        ExprKind::Not(inner) => null_test(inner).map(|is_null| !is_null),
        _ => None,
    }
}

fn is_document(e: &Expr) -> bool {
    e.ty.class() == Class::Json
}
