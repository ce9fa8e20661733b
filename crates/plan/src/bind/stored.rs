//! Values that are stored by way of their text.
//!
//! MySQL stores a date, time or ENUM member as such only if it comes from a column, a literal, a
//! cast or a function that makes dates. An expression that passes on one of its operands (IF,
//! COALESCE, CASE, GREATEST, MIN, a subquery, `@a := x`) is stored by way of its text
//! (`Item::save_in_field_inner`). So a numeric column stores TIME'10:11:12' as 101112, but `IF(1,
//! TIME'10:11:12', NULL)` as 10. In the same way only a column of type ENUM or SET is stored in a
//! numeric column, or sorted, by its member number.
//!
//! A string column stores a DECIMAL with the digits of its value. An expression that passes on one
//! of its operands is shown with those of its type, so `COALESCE(1, 2.50)` is shown as 1.00 and
//! stored as 1.

use nfold_catalog::ColumnDef;
use nfold_types::TypeKind;

use super::BindCx;
use crate::logical::expr::{Class, Coercibility, Expr, ExprKind, ExprType, SubqueryUse};
use crate::logical::query::{Query, QueryBody};

/// Functions that return one of their arguments.
const PASSING: [&str; 6] = ["if", "ifnull", "coalesce", "nullif", "greatest", "least"];

/// Whether `e` is stored by way of its text. `implicit`: `e` is over a grouping without GROUP BY,
/// whose only row never is in a temporary table.
pub(super) fn is_stored_as_text(cx: &BindCx<'_>, e: &Expr, implicit: bool) -> bool {
    if !e.ty.class().is_temporal() && !e.ty.col.is_enum_or_set() {
        return false;
    }
    match &e.kind {
        ExprKind::Case { .. } | ExprKind::AssignUserVar(..) => true,
        ExprKind::Subquery { use_as, .. } => *use_as == SubqueryUse::Scalar,
        ExprKind::Call { func, .. } => PASSING.contains(&cx.funcs.get(*func).name),
        ExprKind::Column(_) => implicit,
        _ => false,
    }
}

/// Casts a DECIMAL that passes on one of its operands to the digits of that operand, for a string
/// column. Returns whether it did.
pub(super) fn keep_digits(cx: &BindCx<'_>, e: &mut Expr, column: &ColumnDef) -> bool {
    let length = e.ty.max_length();
    if let ExprKind::Call { func, .. } = &e.kind
        && let TypeKind::Decimal { scale, .. } = &mut e.ty.col.kind
        && column.ty.is_string()
        && !column.ty.is_json()
        && PASSING.contains(&cx.funcs.get(*func).name)
    {
        *scale = 0;
        cast_to_text(e, length);
        return true;
    }
    false
}

/// Casts `e` to a string, unless `column` stores the value and its text alike.
pub(super) fn as_text(e: &mut Expr, column: &ColumnDef) {
    if e.ty.col.is_enum_or_set() {
        if column.ty.is_numeric() {
            members_as_texts(e);
        }
        return;
    }
    let same = Class::of(&column.ty) == e.ty.class();
    if !same && !column.ty.is_string() {
        cast_to_text(e, e.ty.max_length());
    }
}

/// Casts `e` to a string of `length` characters.
fn cast_to_text(e: &mut Expr, length: u64) {
    let ty = ExprType::string(
        length,
        nfold_types::CollationId::UTF8MB4_GENERAL_CI,
        Coercibility::Numeric,
        e.ty.nullable,
    );
    e.cast_to(ty);
}

/// Casts a member of an ENUM or SET to its text.
pub(super) fn members_as_texts(e: &mut Expr) {
    if e.ty.col.is_enum_or_set() {
        e.cast_to(e.ty.item());
    }
}

/// Applies [`as_text`] to the select items of `query` that are inserted into the columns `into`.
/// The rows of DISTINCT and of set operations come from a temporary table and need no change.
pub(super) fn selected<'c>(
    cx: &BindCx<'_>,
    query: &mut Query,
    into: impl Iterator<Item = &'c ColumnDef>,
) {
    let QueryBody::Block(block) = &mut query.body else {
        return;
    };
    if block.distinct {
        return;
    }
    let grouped = block.group.is_some();
    let implicit = block.group.as_ref().is_some_and(|g| g.implicit);
    let selected = block.select.iter_mut().zip(&mut query.types);
    for ((e, ty), column) in selected.zip(into) {
        if is_stored_as_text(cx, e, implicit) {
            as_text(e, column);
            *ty = e.ty.clone();
        } else if !grouped && keep_digits(cx, e, column) {
            *ty = e.ty.clone();
        }
    }
}
