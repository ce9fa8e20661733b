//! JSON_ARRAY and JSON_OBJECT.

use nfold_json::{ArrayBuilder, ObjectBuilder};
use nfold_plan::expr::{Expr, ExprType};
use nfold_plan::func::{ANY_ARGS, Infer};
use nfold_types::{CollationId, ErrorCode, SqlError};

use super::{result, value};
use crate::expr::eval::EvalCx;
use crate::expr::func::builtin::{Evaluated, Func, Inferred, func};

pub(super) const FUNCS: &[Func] = &[
    func("json_array", (0, ANY_ARGS), infer_array, eval_array),
    func("json_object", (0, ANY_ARGS), infer_object, eval_object),
];

fn infer_array(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::json(true))
}

/// The arguments are pairs of a name and a value. Error 1582.
fn infer_object(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    if args.len() % 2 == 1 {
        let code = ErrorCode::ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT;
        return Err(SqlError::new(code, &[&cx.written]));
    }
    Ok(ExprType::json(true))
}

fn eval_array<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let mut array = ArrayBuilder::default();
    for e in args {
        array.push(value(cx, e)?);
    }
    result(cx, array.finish())
}

fn eval_object<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let mut object = ObjectBuilder::default();
    for pair in args.chunks_exact(2) {
        let Some(name) = cx.text(&pair[0], CollationId::UTF8MB4_BIN)? else {
            let code = ErrorCode::ER_JSON_DOCUMENT_NULL_KEY;
            return Err(SqlError::new(code, &[]));
        };
        let name = String::from_utf8_lossy(&name).into_owned();
        object.push(name, value(cx, &pair[1])?);
    }
    result(cx, object.finish())
}
