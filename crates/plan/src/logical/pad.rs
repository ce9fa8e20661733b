//! `PAD_CHAR_TO_FULL_LENGTH`: a statement reads CHAR values with their trailing spaces. The column
//! becomes the argument of a function, so that neither a fast path nor an index uses the stored
//! bytes in its place.

use nfold_types::TypeKind;

use super::expr::{Expr, ExprKind};
use super::func::{FuncSet, PADDED};

/// Wraps the CHAR columns in `e`: those of slots for which `stored` returns true, and those of
/// enclosing queries.
pub(crate) fn pad(funcs: &dyn FuncSet, stored: &dyn Fn(usize) -> bool, e: &mut Expr) {
    let own = match e.kind {
        ExprKind::Column(at) => stored(usize::from(at.table)),
        ExprKind::Outer { .. } | ExprKind::Default(_) => true,
        _ => return e.each_child_mut(&mut |child| pad(funcs, stored, child)),
    };
    if let (true, TypeKind::Char(_), Some((func, _))) = (own, &e.ty.col.kind, funcs.find(PADDED)) {
        let column = std::mem::replace(e, Expr::null());
        e.ty = column.ty.clone();
        e.kind = ExprKind::Call {
            func,
            args: vec![column],
        };
    }
}
