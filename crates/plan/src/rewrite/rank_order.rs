//! A query that a full-text search restricts, and that has no order of its own, returns its rows in
//! descending order of their ranks.
//!
//! Source: MySQL manual, "Natural Language Full-Text Searches".

use nfold_catalog::IndexKind;

use crate::logical::clauses::OrderKey;
use crate::logical::context::PlanCx;
use crate::logical::expr::{ColumnAt, Expr, ExprKind, ExprType};
use crate::logical::fulltext::MatchCall;
use crate::logical::query::{Block, Source};

/// Adds the order, if the block has no other one. Rows with equal ranks come in the order of the
/// primary key, in which MySQL has numbered the documents as a rule.
pub(super) fn order_by_rank(cx: &PlanCx<'_>, block: &mut Block) {
    let plain = block.group.is_none() && block.windows.is_empty() && !block.distinct;
    if !plain || block.changed != 0 || block.order.len() > 1 {
        return;
    }
    let is_search = |e: &&Expr| MatchCall::of(cx.funcs, e).is_some();
    let search = match block.order.first() {
        None => block.conditions.iter().find(is_search),
        Some(key) if key.desc && block.conditions.contains(&key.expr) => {
            Some(&key.expr).filter(is_search)
        }
        Some(_) => None,
    };
    let Some(search) = search.cloned() else {
        return;
    };
    let place = MatchCall::of(cx.funcs, &search).and_then(|call| call.words.as_column());
    let Some(ColumnAt { table: slot, .. }) = place else {
        return;
    };
    let table = &mut block.tables[usize::from(slot)];
    let Source::Table(def) = &table.source else {
        return;
    };
    if block.order.is_empty() {
        block.order.push(OrderKey {
            expr: search,
            desc: true,
        });
    }
    let key = def.indexes.first();
    let key = key.filter(|i| i.kind == IndexKind::Primary);
    for part in key.map_or(&[][..], |i| &i.parts) {
        let column = &def.columns[part.column];
        if let Some(used) = table.used.get_mut(part.column) {
            *used = true;
        }
        let at = ColumnAt {
            table: slot,
            column: part.column as u16,
        };
        block.order.push(OrderKey {
            expr: Expr {
                kind: ExprKind::Column(at),
                ty: ExprType::new(column.ty.clone(), false),
            },
            desc: false,
        });
    }
}
