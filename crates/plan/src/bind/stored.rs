//! Values that are stored by their text. MySQL hands a column the date itself only of another
//! column, a literal, a cast and the functions that make dates; whatever merely passes a value on
//! (IF, COALESCE, CASE, GREATEST, MIN, a subquery, `@a := x`) hands over its text, as
//! `Item::save_in_field_inner` does. So TIME'10:11:12' becomes the number 101112 and `IF(1,
//! TIME'10:11:12', NULL)` the number 10. A member of an ENUM or SET is its number in a column of
//! numbers only where it is a column itself; rows are sorted by the number of a column only, too.

use nfold_catalog::ColumnDef;

use super::BindCx;
use crate::logical::expr::{Class, Coercibility, Expr, ExprKind, ExprType, SubqueryUse};
use crate::logical::query::{Query, QueryBody};

/// Functions that pass on one of their arguments.
const PASSING: [&str; 6] = ["if", "ifnull", "coalesce", "nullif", "greatest", "least"];

/// Whether this hands over its text when it is stored. `implicit`: it stands above a grouping
/// without GROUP BY, whose only row is in no temporary table.
pub(super) fn by_its_text(cx: &BindCx<'_>, e: &Expr, implicit: bool) -> bool {
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

/// Makes it a text where the column would not take the text for the same as the value.
pub(super) fn as_text(e: &mut Expr, column: &ColumnDef) {
    if e.ty.col.is_enum_or_set() {
        if column.ty.is_numeric() {
            members_as_texts(e);
        }
        return;
    }
    let same = Class::of(&column.ty) == e.ty.class();
    if same || column.ty.is_string() {
        return;
    }
    let ty = ExprType::string(
        e.ty.max_length(),
        nfold_types::CollationId::UTF8MB4_GENERAL_CI,
        Coercibility::Numeric,
        e.ty.nullable,
    );
    let value = std::mem::replace(e, Expr::null());
    *e = Expr {
        kind: ExprKind::Cast(Box::new(value)),
        ty,
    };
}

/// Makes a text of a member of an ENUM or SET.
pub(super) fn members_as_texts(e: &mut Expr) {
    if e.ty.col.is_enum_or_set() {
        let ty = e.ty.item();
        let member = std::mem::replace(e, Expr::null());
        *e = Expr {
            kind: ExprKind::Cast(Box::new(member)),
            ty,
        };
    }
}

/// The same for what a query selects into these columns. Rows that DISTINCT or UNION have kept are
/// columns of a temporary table.
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
    let implicit = block.group.as_ref().is_some_and(|g| g.implicit);
    let selected = block.select.iter_mut().zip(&mut query.types);
    for ((e, ty), column) in selected.zip(into) {
        if by_its_text(cx, e, implicit) {
            as_text(e, column);
            *ty = e.ty.clone();
        }
    }
}
