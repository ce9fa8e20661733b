//! Decorrelation of EXISTS and IN. If an inner row is related to the outer row by equalities only,
//! the subquery runs once without these equalities. Its rows form a set, which is probed with the
//! outer row's side of the equalities.
//!
//! ```text
//! EXISTS (SELECT 1 FROM b WHERE b.i = a.id AND b.d > 5)         {b.i : b.d > 5} has a.id
//! a.x IN (SELECT b.y FROM b WHERE b.i = a.id AND a.k = 3)       a.k = 3 and {(b.i, b.y)} has (a.id, a.x)
//! EXISTS (SELECT 1 FROM b WHERE b.i = a.id AND b.d < a.d)       {b.i -> MIN(b.d)} at a.id < a.d
//! ```
//!
//! Other conditions on both rows are tests: the rows of the set form groups by their keys, and the
//! rows of a group are tested until one passes. Of a single range condition, the group keeps the
//! smallest or greatest value only.

use nfold_sql::ast::BinaryOp;
use nfold_types::TypeKind;

use crate::logical::clauses::LimitPlan;
use crate::logical::context::PlanCx;
use crate::logical::expr::{Class, CmpKind, ColumnAt, Expr, ExprKind, ExprType};
use crate::logical::func::VOLATILE;
use crate::logical::query::{
    Block, Decorrelated, Extreme, OuterKey, QueryBody, Source, Subquery, SubqueryForm,
};
use crate::logical::tame::{converts, is_tame, is_tame_but_for_range};
use crate::logical::walk;

/// The decorrelated form of a correlated subquery that is already rewritten; `None` if it has none.
pub(super) fn decorrelated(cx: &PlanCx<'_>, sub: &mut Subquery) -> Option<Decorrelated> {
    let (form, limit) = (sub.form, sub.query.limit.as_ref());
    let QueryBody::Block(block) = &mut sub.query.body else {
        return None;
    };
    if !is_plain(block) || form == SubqueryForm::Rows {
        return None;
    }
    let mut evaluated = block.conditions.iter().chain(&block.select);
    if !evaluated.all(|e| is_repeatable(cx, e)) {
        return None;
    }
    let mut split = Split::of(&block.conditions)?;
    match (limit, form) {
        (None, _) => {}
        // One row decides EXISTS, except that LIMIT 0 allows none.
        (
            Some(LimitPlan {
                offset: None,
                count,
            }),
            SubqueryForm::Existence,
        ) => split.outer.push(is_positive(count)),
        _ => return None,
    }
    let mut select = split.inner;
    if form == SubqueryForm::Membership {
        if !block.select.iter().all(is_stored_unchanged) {
            return None;
        }
        select.extend_from_slice(&block.select);
    }
    let first_tested = select.len();
    let tests = tests_over_rows(cx, std::mem::take(&mut split.tests), &mut select)?;
    let extreme = match first_tested - split.keys.len() {
        0 | 1 => extreme(&tests),
        _ => None,
    };
    let steady = |e: &Expr| is_tame(cx, e) && !names_outer(e);
    let joined = || block.outer_joins.iter().flat_map(|join| &join.on);
    let tame = select.iter().chain(&split.rest).chain(joined()).all(steady);
    if !tame || select.len() > u64::BITS as usize || !nested_is_repeatable(cx, block) {
        return None;
    }
    let joined = || block.outer_joins.iter().flat_map(|join| &join.on);
    let own = || select.iter().chain(&split.rest).chain(joined());
    let alike = |key: &OuterKey, own: &Expr| key.outer.ty.is_alike(&own.ty);
    let mut keys = split.keys.iter().zip(&select);
    let mut converts = own().any(converts) || keys.any(|(key, own)| !alike(key, own));
    let members = &select[split.keys.len()..first_tested];
    for ((left, kind), member) in sub.operands.iter().zip(members) {
        if !kind.has_key(left, &member.ty) {
            return None;
        }
        converts |= !left.is_alike(&member.ty);
    }
    // Each row of a group is tested, but only those of the same group are converted.
    if converts && !tests.is_empty() {
        return None;
    }
    let used = block.subqueries.is_empty();
    let used = used.then(|| used_columns(block, own()));
    Some(Decorrelated {
        select,
        conditions: split.rest,
        used,
        keys: split.keys,
        outer_conditions: split.outer,
        tests,
        extreme,
        converts,
        grouped: false,
        members: 0,
    })
}

/// Whether the rows of a block are those of its joined tables that pass its conditions.
pub(super) fn is_plain(block: &Block) -> bool {
    block.group.is_none()
        && block.having.is_empty()
        && block.windows.is_empty()
        && !block.lock.is_some()
        && !block.distinct
        && !block.calc_found_rows
        && block.warnings.is_empty()
        && !block.tables.is_empty()
        && !block
            .tables
            .iter()
            .any(|t| matches!(t.source, Source::Json(_)) || t.lateral != 0)
        && !block.pads_char
}

/// The conditions of a correlated subquery, split by the rows that they read.
#[derive(Default)]
pub(super) struct Split {
    /// The inner and the outer sides of the equalities between an inner and an outer row.
    pub inner: Vec<Expr>,
    pub keys: Vec<OuterKey>,
    /// Conditions on the outer row only, as seen from the enclosing query.
    pub outer: Vec<Expr>,
    /// Conditions on the inner row only.
    pub rest: Vec<Expr>,
    /// Other conditions on both rows.
    pub tests: Vec<Expr>,
}

impl Split {
    /// Splits the conditions. `None` if one reads the outer row and has a subquery.
    pub fn of(conditions: &[Expr]) -> Option<Split> {
        let mut split = Split::default();
        for c in conditions {
            if !names_outer(c) {
                split.rest.push(c.clone());
            } else if let Some((own, key)) = equality(c) {
                split.inner.push(own);
                split.keys.push(key);
            } else if !reads_block(c) {
                split.outer.push(seen_from_outside(c));
            } else if !has_subquery(c) {
                split.tests.push(c.clone());
            } else {
                return None;
            }
        }
        Some(split)
    }
}

/// Whether an expression names a column of the next enclosing query.
pub(super) fn names_outer(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e.kind, ExprKind::Outer { level: 1, .. }))
}

/// Whether an expression reads a row of its own block, or has a subquery.
fn reads_block(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e.kind, ExprKind::Column(_) | ExprKind::Subquery { .. }))
}

fn has_subquery(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e.kind, ExprKind::Subquery { .. }))
}

/// Rewrites conditions on both rows over the row that the decorrelated subquery selects, to which
/// it adds the inner values that they read. `None` if one of them may warn, or may fail except by a
/// number that is out of range.
fn tests_over_rows(
    cx: &PlanCx<'_>,
    mut tests: Vec<Expr>,
    select: &mut Vec<Expr>,
) -> Option<Vec<Expr>> {
    for test in &mut tests {
        if !is_tame_but_for_range(cx, test) || converts(test) {
            return None;
        }
        select_operands(test, select);
    }
    Some(tests)
}

/// Replaces the inner operands of a comparison by columns of the selected row: a whole side if it
/// can be stored, otherwise the columns that it reads.
fn select_operands(e: &mut Expr, select: &mut Vec<Expr>) {
    let whole = reads_block(e) && !names_outer(e) && is_stored_unchanged(e);
    let operand = !matches!(e.ty.class(), Class::Json) && !is_condition(e);
    if e.as_column().is_none() && !(whole && operand) {
        return e.each_child_mut(&mut |child| select_operands(child, select));
    }
    let known = select.iter().position(|selected| selected == e);
    let column = known.unwrap_or_else(|| {
        select.push(e.clone());
        select.len() - 1
    });
    e.kind = ExprKind::Column(ColumnAt {
        table: 0,
        column: column as u16,
    });
}

/// Whether an expression is a condition, whose operands are stored in its place.
fn is_condition(e: &Expr) -> bool {
    use ExprKind::{And, Between, Compare, In, Is, Like, Not, Or, Xor};
    matches!(
        e.kind,
        And(_)
            | Or(_)
            | Xor(_)
            | Not(_)
            | Compare { .. }
            | Is { .. }
            | Between { .. }
            | In { .. }
            | Like { .. }
    )
}

/// The row of a group that passes `tests` if any row does: for a single comparison by `<`, `<=`,
/// `>` or `>=` of an inner column with an outer value.
fn extreme(tests: &[Expr]) -> Option<Extreme> {
    let [
        Expr {
            kind: ExprKind::Compare { op, kind, sides },
            ..
        },
    ] = tests
    else {
        return None;
    };
    let greatest = match op {
        BinaryOp::Lt | BinaryOp::Le => false,
        BinaryOp::Gt | BinaryOp::Ge => true,
        _ => return None,
    };
    let (own, other, greatest) = match sides[0].as_column() {
        Some(_) => (&sides[0], &sides[1], greatest),
        None => (&sides[1], &sides[0], !greatest),
    };
    let at = own.as_column()?;
    let ordered = *kind != CmpKind::Json && kind.has_key(&own.ty, &own.ty) && !reads_block(other);
    ordered.then_some(Extreme {
        column: at.column,
        kind: *kind,
        greatest,
    })
}

/// Splits `inner = outer` into its two sides.
fn equality(c: &Expr) -> Option<(Expr, OuterKey)> {
    let ExprKind::Compare {
        op: op @ (BinaryOp::Eq | BinaryOp::NullSafeEq),
        kind,
        sides,
    } = &c.kind
    else {
        return None;
    };
    let [a, b] = &**sides;
    let (own, other) = match (names_outer(a), names_outer(b)) {
        (true, false) => (b, a),
        (false, true) => (a, b),
        _ => return None,
    };
    let fits = reads_block(own)
        && !has_subquery(own)
        && !reads_block(other)
        && is_stored_unchanged(own)
        && kind.has_key(&own.ty, &other.ty);
    fits.then(|| {
        let key = OuterKey {
            outer: seen_from_outside(other),
            kind: *kind,
            null_safe: *op == BinaryOp::NullSafeEq,
        };
        (own.clone(), key)
    })
}

/// Whether a temporary table stores the value unchanged. A computed DECIMAL or FLOAT may have more
/// digits than its type.
pub(super) fn is_stored_unchanged(e: &Expr) -> bool {
    let exact = match e.ty.class() {
        Class::Null => false,
        Class::Decimal => matches!(e.kind, ExprKind::Cast { .. }),
        _ => e.ty.col.kind != TypeKind::Float,
    };
    exact || e.as_column().is_some()
}

/// Rewrites `e`, which reads rows of enclosing queries only, as seen from the next enclosing query.
fn seen_from_outside(e: &Expr) -> Expr {
    fn shift(e: &mut Expr) {
        match &mut e.kind {
            ExprKind::Outer { level: 1, at } => e.kind = ExprKind::Column(*at),
            ExprKind::Outer { level, .. } => *level -= 1,
            _ => e.each_child_mut(&mut shift),
        }
    }
    let mut e = e.clone();
    shift(&mut e);
    e
}

/// `count > 0`.
fn is_positive(count: &Expr) -> Expr {
    Expr {
        kind: ExprKind::Compare {
            op: BinaryOp::Gt,
            kind: CmpKind::Int,
            sides: Box::new([count.clone(), Expr::int(0)]),
        },
        ty: ExprType::boolean(false),
    }
}

/// Whether no subquery or derived table of the block names a column of the next enclosing query,
/// and each of them returns the same rows whenever it runs.
pub(super) fn nested_is_repeatable(cx: &PlanCx<'_>, block: &mut Block) -> bool {
    let mut steady = true;
    walk::each_of_nested(block, 1, &mut |e, level| {
        steady &=
            !varies(cx, e) && !matches!(e.kind, ExprKind::Outer { level: l, .. } if l == level);
    });
    steady
}

/// Whether `e` returns the same value each time it is evaluated over the same rows.
pub(super) fn is_repeatable(cx: &PlanCx<'_>, e: &Expr) -> bool {
    !e.any(&mut |e| varies(cx, e))
}

/// Whether this node may return different values over the same rows.
fn varies(cx: &PlanCx<'_>, e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Call { func, .. } => cx.funcs.get(*func).flags & VOLATILE != 0,
        ExprKind::UserVar(_) | ExprKind::VaryingUserVar(_) | ExprKind::AssignUserVar(..) => true,
        _ => false,
    }
}

/// For each slot, the columns that `exprs` read.
fn used_columns<'e>(block: &Block, exprs: impl Iterator<Item = &'e Expr>) -> Vec<Vec<bool>> {
    let unused = block.tables.iter().map(|t| vec![false; t.used.len()]);
    let mut used: Vec<Vec<bool>> = unused.collect();
    for e in exprs {
        e.any(&mut |e| {
            if let Some(ColumnAt { table, column }) = e.as_column()
                && let Some(slot) = used.get_mut(usize::from(table))
                && let Some(flag) = slot.get_mut(usize::from(column))
            {
                *flag = true;
            }
            false
        });
    }
    used
}
