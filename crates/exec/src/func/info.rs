//! What a session tells about itself: USER(), CONNECTION_ID(), ROW_COUNT() and their like.

use nfold_plan::expr::{Coercibility, Expr, ExprType};
use nfold_plan::func::Infer;
use nfold_types::CollationId;

use super::{Evaluated, Func, Inferred, func};
use crate::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[
    func("version", (0, 0), text, |cx, _, _| {
        string(cx.env().version())
    }),
    func("user", (0, 0), text, |cx, _, _| string(cx.env().user())),
    func("session_user", (0, 0), text, |cx, _, _| {
        string(cx.env().user())
    }),
    func("system_user", (0, 0), text, |cx, _, _| {
        string(cx.env().user())
    }),
    func("current_user", (0, 0), text, |cx, _, _| {
        string(cx.env().current_user())
    }),
    func("connection_id", (0, 0), unsigned, |cx, _, _| {
        Ok(Val::UInt(cx.env().connection_id()))
    }),
    func("found_rows", (0, 0), signed, |cx, _, _| {
        Ok(Val::Int(cx.env().found_rows() as i64))
    }),
    func("row_count", (0, 0), signed, row_count),
];

/// Names and versions: utf8mb3, as all system text.
fn text(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::string(
        288,
        CollationId::UTF8MB3_GENERAL_CI,
        Coercibility::SysConst,
        false,
    ))
}

fn signed(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::bigint(false))
}

fn unsigned(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::ubigint(false))
}

fn string<'a>(s: String) -> Evaluated<'a> {
    Ok(Val::string(s.into_bytes()))
}

fn row_count<'a>(cx: &EvalCx<'a>, _: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    Ok(Val::Int(cx.env().row_count()))
}
