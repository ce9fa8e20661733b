//! Aggregate functions, and the query block that evaluates each of them.
//!
//! An aggregate in a subquery whose arguments name only columns of enclosing queries belongs to the
//! innermost of these queries, if aggregates are allowed at that place: `HAVING EXISTS (SELECT 1
//! FROM u WHERE u.x = SUM(t.v))`. The rule is MySQL's `Item_sum::check_sum_func`.

use std::convert::Infallible;

use nfold_sql::ast;
use nfold_types::{CollationId, ErrorCode, SqlError, charset};

use super::types::{aggregate_type, is_hex};
use super::{AGGREGATES, BlockBinder};
use crate::logical::clauses::{AggFunc, Aggregate, OrderKey};
use crate::logical::expr::{Class, ColumnAt, Expr, ExprKind, ExprType, TextOrigin};
use crate::logical::mode::SqlMode;
use crate::logical::query::Subquery;
use crate::logical::walk::{each_expr, outer_columns};

/// The bound arguments of an aggregate.
struct Arguments {
    args: Vec<Expr>,
    order: Vec<OrderKey>,
    /// The depth of the innermost query that evaluates an aggregate nested in these arguments.
    nested: Option<usize>,
    /// Whether the arguments name a select alias of an enclosing query.
    alias: bool,
}

impl BlockBinder<'_> {
    pub(super) fn aggregate(
        &mut self,
        func: AggFunc,
        call: &ast::FunctionCall,
    ) -> Result<Expr, SqlError> {
        // Where no aggregate can be evaluated, ANY_VALUE(x) is x.
        let plain = self.in_aggregate || !self.aggregates_allowed;
        if let (AggFunc::Any, [arg], true) = (func, call.args.as_slice(), plain) {
            return Ok(unchecked(self.expr(arg)?));
        }
        let misplaced = || SqlError::new(ErrorCode::ER_INVALID_GROUP_FUNC_USE, &[]);
        if !self.aggregates_allowed && self.outer.is_none() {
            return Err(misplaced());
        }
        let wanted = matches!(
            func,
            AggFunc::CountStar | AggFunc::GroupConcat | AggFunc::Count | AggFunc::JsonObject
        );
        if call.args.len() != 1 && !wanted || (func == AggFunc::Count && call.args.is_empty()) {
            return Err(SqlError::new(
                ErrorCode::ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT,
                &[&call.name],
            ));
        }
        let Arguments {
            mut args,
            mut order,
            nested,
            alias,
        } = self.aggregate_args(call)?;
        // SUM and AVG of DISTINCT strings compare the strings as numbers.
        if let (AggFunc::Sum | AggFunc::Avg, true, [text]) = (func, call.distinct, &mut args[..])
            && text.ty.class() == Class::String
            && !is_hex(&text.ty)
        {
            text.ty.origin = TextOrigin::Stored;
            text.cast_to(ExprType::double(text.ty.nullable));
        }
        let level = self
            .aggregation_level(&args, &order, alias)
            .ok_or_else(misplaced)?;
        self.record_aggregate(self.depth - usize::from(level), nested)
            .map_err(|()| misplaced())?;
        let own = || args.iter().chain(order.iter().map(|o| &o.expr));
        if level > 0 && own().any(has_subquery) {
            return Err(SqlError::not_supported(
                "a subquery in an aggregate of an enclosing query",
            ));
        }
        args.iter_mut()
            .chain(order.iter_mut().map(|o| &mut o.expr))
            .for_each(|e| shift_outwards(e, level));
        let ty = aggregate_type(func, &args, self.cx, &call.name)?;
        let separator = call.separator.as_deref().unwrap_or(b",");
        let separator = to_charset_of(&ty, separator, self.cx.connection);
        let agg = Aggregate {
            func,
            args,
            distinct: call.distinct,
            order,
            separator,
            ty: ty.clone(),
        };
        let mut block: &BlockBinder<'_> = self;
        for _ in 0..level {
            block.correlated.set(true);
            block = block.outer.ok_or_else(misplaced)?;
        }
        let mut list = block.aggregates.borrow_mut();
        let place = list.iter().position(|a| *a == agg).unwrap_or_else(|| {
            list.push(agg);
            list.len() - 1
        });
        let at = ColumnAt {
            table: AGGREGATES,
            column: place as u16,
        };
        let kind = match level {
            0 => ExprKind::Column(at),
            level => ExprKind::Outer { level, at },
        };
        Ok(Expr { kind, ty })
    }

    fn aggregate_args(&mut self, call: &ast::FunctionCall) -> Result<Arguments, SqlError> {
        let around = (
            std::mem::replace(&mut self.in_aggregate, true),
            std::mem::take(&mut self.alias_in_aggregate),
            self.nested_aggregate.take(),
        );
        let args = call
            .args
            .iter()
            .map(|a| self.expr(a))
            .collect::<Result<Vec<_>, _>>();
        let order = call
            .order_by
            .iter()
            .map(|o| {
                Ok(OrderKey {
                    expr: self.expr(&o.expr)?,
                    desc: o.descending,
                })
            })
            .collect::<Result<Vec<_>, SqlError>>();
        self.in_aggregate = around.0;
        Ok(Arguments {
            alias: std::mem::replace(&mut self.alias_in_aggregate, around.1),
            nested: self.nested_aggregate.replace(around.2),
            args: args?,
            order: order?,
        })
    }

    /// Records an aggregate that the query at depth `home` evaluates. `nested` is the depth of the
    /// innermost query that evaluates an aggregate inside its arguments. That query must enclose
    /// `home`: its rows have to be grouped before the rows of `home` are read. `Err` if it does
    /// not.
    fn record_aggregate(&self, home: usize, nested: Option<usize>) -> Result<(), ()> {
        if nested.is_some_and(|nested| home <= nested) {
            return Err(());
        }
        let mut block = Some(self);
        while let Some(b) = block {
            if b.in_aggregate {
                // The enclosing aggregate is evaluated in the same query, or further out.
                if b.depth == home {
                    return Err(());
                }
                let own = Some(home).filter(|home| *home <= b.depth);
                let innermost = b.nested_aggregate.get().max(own).max(nested);
                b.nested_aggregate.set(innermost);
                break;
            }
            block = b.outer;
        }
        Ok(())
    }

    /// Finds the block that evaluates an aggregate with these arguments, as the number of levels
    /// outwards (0: this block). Returns `None` if no block may. `alias`: the arguments name a
    /// select alias of an enclosing query, which has one value per current row of that query.
    fn aggregation_level(&mut self, args: &[Expr], order: &[OrderKey], alias: bool) -> Option<u16> {
        let mut outwards = Vec::new();
        let mut block = self.outer;
        while let Some(b) = block {
            outwards.push(b.aggregates_allowed);
            block = b.outer;
        }
        let mut own = alias;
        let mut nearest: Option<u16> = None;
        let mut subqueries = Vec::new();
        let mut name = |level: u16, at: ColumnAt| match level {
            // An aggregate of an enclosing query is constant in this block.
            _ if at.table == AGGREGATES => {}
            0 => own = true,
            _ => nearest = Some(nearest.map_or(level, |n| n.min(level))),
        };
        for e in args.iter().chain(order.iter().map(|o| &o.expr)) {
            e.any(&mut |e| {
                match e.kind {
                    ExprKind::Column(at) => name(0, at),
                    ExprKind::Outer { level, at } => name(level, at),
                    ExprKind::Subquery { index, .. } => subqueries.push(usize::from(index)),
                    _ => {}
                }
                false
            });
        }
        for index in subqueries {
            for level in 0..=outwards.len() as u16 {
                let query = &mut self.subqueries[index].query;
                let Ok(()) = outer_columns::<Infallible>(query, level + 1, &mut |at, _| {
                    name(level, *at);
                    Ok(())
                });
            }
        }
        let allows = |level: u16| outwards.get(usize::from(level) - 1) == Some(&true);
        if !own && nearest.is_some_and(allows) {
            return nearest;
        }
        if !own && nearest.is_some() && self.cx.mode.has(SqlMode::ANSI) {
            return None;
        }
        if self.aggregates_allowed {
            return Some(0);
        }
        let first = (1..=outwards.len() as u16).find(|l| allows(*l));
        first.filter(|_| !own && nearest.is_none())
    }
}

fn has_subquery(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e.kind, ExprKind::Subquery { .. }))
}

/// Rewrites `e` of this block into the same expression seen from the query `by` levels further out.
fn shift_outwards(e: &mut Expr, by: u16) {
    if let ExprKind::Outer { level, at } = e.kind
        && by > 0
    {
        e.kind = match level - by {
            0 => ExprKind::Column(at),
            level => ExprKind::Outer { level, at },
        };
    }
    e.each_child_mut(&mut |child| shift_outwards(child, by));
}

/// Rewrites `e` of this block into the same expression seen from a subquery `by` levels further in.
/// The block's subqueries in it are copied from `from`, that block, to `to`, the other one.
pub(super) fn shift_inwards(e: &mut Expr, by: u16, from: &[Subquery], to: &mut Vec<Subquery>) {
    match &mut e.kind {
        ExprKind::Column(at) => e.kind = ExprKind::Outer { level: by, at: *at },
        ExprKind::Outer { level, .. } => *level += by,
        ExprKind::Subquery { index, .. } => {
            let mut copy = from[usize::from(*index)].clone();
            each_expr(&mut copy.query, 1, &mut |e, block| {
                if let ExprKind::Outer { level, .. } = &mut e.kind
                    && *level >= block
                {
                    *level += by;
                }
            });
            *index = to.len() as u16;
            to.push(copy);
        }
        _ => {}
    }
    e.each_child_mut(&mut |child| shift_inwards(child, by, from, to));
}

/// Converts text of the connection to the character set of the result type; to binary for a type
/// that is no string.
fn to_charset_of(ty: &ExprType, text: &[u8], connection: CollationId) -> Vec<u8> {
    let mut out = Vec::new();
    let to = match ty.class() {
        Class::String => ty.col.charset(),
        _ => &charset::BINARY,
    };
    charset::convert(connection.known().charset, to, text, &mut out);
    out
}

/// The argument of ANY_VALUE in the place of the call: MySQL reads numbers from its text without
/// warning 1292.
pub(super) fn unchecked(mut argument: Expr) -> Expr {
    argument.ty.origin = TextOrigin::Cached;
    argument
}
