//! The keyed form of a correlated subquery: where an inner row meets the outer one by equalities alone, the subquery without them is run
//! once, and its rows are a set that is asked by the outer row's side of the equalities.
//!
//! ```text
//! EXISTS (SELECT 1 FROM b WHERE b.i = a.id AND b.d > 5)         {b.i : b.d > 5} has a.id
//! a.x IN (SELECT b.y FROM b WHERE b.i = a.id AND a.k = 3)       a.k = 3 and {(b.i, b.y)} has (a.id, a.x)
//! ```

use nfold_sql::ast::BinaryOp;
use nfold_types::TypeKind;

use super::{BindCx, FromInfo};
use crate::access::each_expr;
use crate::logical::expr::{
    ArithOp, Class, CmpKind, ColumnAt, Expr, ExprKind, ExprType, SubqueryUse, is_constant,
};
use crate::logical::mode::SqlMode;
use crate::query::{Block, LimitPlan, QueryBody, QueryPlan, TableSource};
use crate::query::{KeyedPart, KeyedPlan, SubqueryPlan};
use crate::walk;

/// What a subquery is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Rows,
    Existence,
    Membership,
}

/// Keyed subqueries may be in one another so deep: each is planned twice, so two of its own are planned four times.
const NESTED_MAX: usize = 2;

/// Rows of an index for one outer row, estimated, up to which no set takes their place.
const LOOKED_UP_MAX: f64 = 16.0;

/// Integers of so many digits do not overflow when they are computed with.
const SAFE_DIGITS: u64 = 18;

/// Functions that give no error, whatever their arguments.
const TAME: [&str; 22] = [
    "lower",
    "upper",
    "lcase",
    "ucase",
    "date",
    "year",
    "month",
    "day",
    "dayofmonth",
    "hour",
    "minute",
    "second",
    "left",
    "right",
    "length",
    "char_length",
    "coalesce",
    "ifnull",
    "nullif",
    "if",
    "concat",
    "isnull",
];

/// A block as it is before its access paths are chosen, and what becomes of its conditions.
pub(super) struct Draft {
    block: Block,
    conditions: Vec<Expr>,
    keys: Vec<KeyedPart>,
    outer: Vec<Expr>,
}

impl Draft {
    /// `None` where the block has no keyed form. `conditions`: WHERE's, and those of inner joins.
    pub fn of(
        (cx, asked): (&BindCx<'_>, Asked),
        block: &Block,
        conditions: &[Expr],
        info: &FromInfo,
        limit: Option<&LimitPlan>,
    ) -> Option<Draft> {
        let plain = asked != Asked::Rows
            && block.group.is_none()
            && block.having.is_empty()
            && block.windows.is_empty()
            && block.lock.strength.is_none()
            && !block.distinct
            && !block.calc_found_rows
            && block.deprecated.is_empty()
            && !block.tables.is_empty()
            && !cx.mode.has(SqlMode::PAD_CHAR_TO_FULL_LENGTH);
        if !plain || nested(block) > NESTED_MAX {
            return None;
        }
        let (mut keys, mut inner, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let mut outer = Vec::new();
        let mut evaluated = conditions.iter().chain(&block.select);
        if evaluated.any(|c| c.any(&mut |e| varies(cx, e))) {
            return None;
        }
        for c in conditions {
            if !names_outer(c) {
                rest.push(c.clone());
            } else if let Some((own, part)) = equality(c) {
                inner.push(own);
                keys.push(part);
            } else if !reads_block(c) {
                outer.push(outward(c));
            } else {
                return None;
            }
        }
        match (limit, asked) {
            (None, _) => {}
            // One row is enough, but none is none.
            (
                Some(LimitPlan {
                    offset: None,
                    count,
                }),
                Asked::Existence,
            ) => outer.push(some(count)),
            _ => return None,
        }
        let mut block = block.clone();
        block.order.clear();
        match asked {
            Asked::Membership if !block.select.iter().all(is_kept) => return None,
            Asked::Membership => block.select.splice(0..0, inner).for_each(drop),
            _ => block.select = inner,
        }
        let steady = |e: &Expr| is_tame(cx, e) && !names_outer(e);
        let joined = info.outer_joins.iter().flat_map(|join| &join.on);
        let tame = block.select.iter().chain(&rest).chain(joined).all(steady);
        if !tame || block.select.len() > u64::BITS as usize || !nested_is_steady(cx, &mut block) {
            return None;
        }
        Some(Draft {
            block,
            conditions: rest,
            keys,
            outer,
        })
    }

    /// Plans it; `None` where the `correlated` block looks its rows, few of them, up by an index already.
    pub fn plan(self, cx: &BindCx<'_>, info: &FromInfo, correlated: &Block) -> Option<KeyedPlan> {
        let mut looked_up = false;
        if let Some(first) = correlated.joins.first().filter(|j| j.rows <= LOOKED_UP_MAX) {
            each_expr(&first.access.kind, &mut |e| looked_up |= names_outer(e));
        }
        if looked_up {
            return None;
        }
        let Draft {
            mut block,
            conditions,
            keys,
            outer,
        } = self;
        let joined = info.outer_joins.iter().flat_map(|join| &join.on);
        let own = block.select.iter().chain(&conditions).chain(joined);
        let converts = own.clone().any(converts)
            || keys
                .iter()
                .zip(&block.select)
                .any(|(key, own)| !key.outer.ty.is_alike(&own.ty));
        if block.subqueries.is_empty() {
            let all: Vec<Expr> = own.cloned().collect();
            mark_used(&mut block, &all);
        }
        crate::access::optimize(cx, &mut block, conditions, info, false);
        let rows = block.joins.iter().map(|step| step.rows).sum();
        let types: Vec<ExprType> = block.select.iter().map(|e| e.ty.clone()).collect();
        let plan = Box::new(QueryPlan {
            body: QueryBody::Block(Box::new(block)),
            columns: Vec::new(),
            types,
            order: Vec::new(),
            limit: None,
        });
        Some(KeyedPlan {
            plan,
            keys,
            conditions: outer,
            rows,
            converts,
        })
    }
}

/// How deep keyed subqueries are in one another below this block, in derived tables as well.
fn nested(block: &Block) -> usize {
    fn of(q: &QueryPlan) -> usize {
        match &q.body {
            QueryBody::Block(b) => nested(b),
            QueryBody::Set { left, right, .. } => of(left).max(of(right)),
            QueryBody::Recursive(r) => r.queries().map(of).max().unwrap_or(0),
            QueryBody::Rows(_) | QueryBody::Working(_) => 0,
        }
    }
    let depth = |sub: &SubqueryPlan| of(&sub.plan) + usize::from(sub.keyed.is_some());
    let derived = block.tables.iter().map(|slot| match &slot.source {
        TableSource::Derived(q) => of(q),
        _ => 0,
    });
    let subqueries = block.subqueries.iter().map(depth);
    subqueries.chain(derived).max().unwrap_or(0)
}

/// Whether it names a column of the next query out.
fn names_outer(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e.kind, ExprKind::Outer { level: 1, .. }))
}

/// Whether it looks at rows of its own block, or at a subquery.
fn reads_block(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e.kind, ExprKind::Column(_) | ExprKind::Subquery { .. }))
}

/// `inner = outer`: the inner side, and the other one.
fn equality(c: &Expr) -> Option<(Expr, KeyedPart)> {
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
    let subquery = |e: &Expr| matches!(e.kind, ExprKind::Subquery { .. });
    let fits = reads_block(own)
        && !own.any(&mut |e| subquery(e))
        && !reads_block(other)
        && is_kept(own)
        && kind.has_key(&own.ty, &other.ty);
    fits.then(|| {
        let part = KeyedPart {
            outer: outward(other),
            kind: *kind,
            null_safe: *op == BinaryOp::NullSafeEq,
        };
        (own.clone(), part)
    })
}

/// Whether a row of a temporary table keeps the value as it is: a computed DECIMAL or FLOAT may have more digits than its type.
fn is_kept(e: &Expr) -> bool {
    let exact = match e.ty.class() {
        Class::Null => false,
        Class::Decimal => matches!(e.kind, ExprKind::Cast(_)),
        _ => e.ty.col.kind != TypeKind::Float,
    };
    exact || e.as_column().is_some()
}

/// `e`, which looks at rows of enclosing queries alone, as the next query out sees it.
fn outward(e: &Expr) -> Expr {
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

/// `count > 0`
fn some(count: &Expr) -> Expr {
    Expr {
        kind: ExprKind::Compare {
            op: BinaryOp::Gt,
            kind: CmpKind::Int,
            sides: Box::new([count.clone(), Expr::int(0)]),
        },
        ty: ExprType::boolean(false),
    }
}

/// Whether subqueries and derived tables of the block name no column of the next query out, and give the same whenever they run.
fn nested_is_steady(cx: &BindCx<'_>, block: &mut Block) -> bool {
    let mut steady = true;
    walk::each_expr(block, 1, &mut |e, level| {
        steady &=
            !varies(cx, e) && !matches!(e.kind, ExprKind::Outer { level: l, .. } if l == level);
    });
    steady
}

/// Whether this node may have another value each time.
fn varies(cx: &BindCx<'_>, e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Call { func, .. } => {
            cx.funcs.get(*func).flags & crate::logical::func::VOLATILE != 0
        }
        ExprKind::UserVar(_) | ExprKind::AssignUserVar(..) => true,
        _ => false,
    }
}

/// Whether it may be evaluated for rows that it would not have met: it gives no error, and has no effect.
fn is_tame(cx: &BindCx<'_>, e: &Expr) -> bool {
    use ExprKind::*;
    !e.any(&mut |e| {
        let tame = match &e.kind {
            Const(_)
            | Param(_)
            | Column(_)
            | Outer { .. }
            | Compare { .. }
            | CompareRows { .. }
            | And(_)
            | Or(_)
            | Xor(_)
            | Not(_)
            | Is { .. }
            | Between { .. }
            | In { .. }
            | InRows { .. }
            | InParam { .. }
            | Like { .. }
            | Case { .. }
            | Collate(_) => true,
            Arith(op, _) => *op != ArithOp::IntDiv && is_small(&e.ty),
            Neg(_) => is_small(&e.ty),
            Cast(_) => e.ty.col.kind != TypeKind::Float,
            IntervalArith { .. } | Extract { .. } | TimestampDiff { .. } | Trim { .. } => true,
            Call { func, .. } => TAME.contains(&cx.funcs.get(*func).name),
            Subquery { use_as, .. } => {
                matches!(use_as, SubqueryUse::Exists | SubqueryUse::In { .. })
            }
            _ => false,
        };
        !tame
    })
}

/// Whether arithmetic of this type overflows never.
fn is_small(ty: &ExprType) -> bool {
    match ty.class() {
        Class::Int => !ty.col.unsigned && ty.max_length() <= SAFE_DIGITS,
        Class::Decimal => u64::from(ty.decimal_shape().0) <= SAFE_DIGITS,
        _ => false,
    }
}

/// Whether evaluating it may have to convert a value of a row to another kind, which may be an error where changes are strict.
fn converts(e: &Expr) -> bool {
    use ExprKind::*;
    // A constant becomes what is beside it, but for a number beside a text.
    let yields = |a: &Expr, b: &Expr| is_constant(a) && b.ty.class() != Class::String;
    let alike = |a: &Expr, b: &Expr| yields(a, b) || yields(b, a) || a.ty.is_alike(&b.ty);
    e.any(&mut |e| match &e.kind {
        Const(_)
        | Param(_)
        | Column(_)
        | Outer { .. }
        | And(_)
        | Or(_)
        | Not(_)
        | Is { .. }
        | InParam { .. } => false,
        Compare { sides, .. } => !alike(&sides[0], &sides[1]),
        Between { parts, .. } => !parts.iter().all(|p| alike(&parts[0], p)),
        In { expr, list, .. } => !list.iter().all(|(_, member)| alike(expr, member)),
        Like { expr, pattern, .. } => !alike(expr, pattern) || expr.ty.class() != Class::String,
        _ => true,
    })
}

/// Reads only those columns that these expressions, all there are, look at.
fn mark_used(block: &mut Block, exprs: &[Expr]) {
    block.tables.iter_mut().for_each(|t| t.used.fill(false));
    for e in exprs {
        e.any(&mut |e| {
            if let Some(ColumnAt { table, column }) = e.as_column()
                && let Some(slot) = block.tables.get_mut(usize::from(table))
                && let Some(used) = slot.used.get_mut(usize::from(column))
            {
                *used = true;
            }
            false
        });
    }
}

/// Whether DISTINCT says something; it does not of rows that are only asked for whether they are there.
pub(super) fn tells_apart(asked: Asked, limit: Option<&LimitPlan>) -> bool {
    asked == Asked::Rows || limit.is_some()
}

/// What `left IN` compares the members of `sub` by is known now; a keyed form that cannot do so is forgotten.
pub(super) fn compared(sub: &mut SubqueryPlan, left: &[Expr], kinds: &[CmpKind]) {
    let Some(keyed) = &mut sub.keyed else {
        return;
    };
    let members = &keyed.plan.types[keyed.keys.len()..];
    let mut pairs = left.iter().map(|l| &l.ty).zip(members);
    keyed.converts |= pairs.clone().any(|(l, m)| !l.is_alike(m));
    if !pairs
        .by_ref()
        .zip(kinds)
        .all(|((l, m), kind)| kind.has_key(l, m))
    {
        sub.keyed = None;
    }
}
