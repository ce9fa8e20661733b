//! MATCH ... AGAINST.

use nfold_plan::expr::{Expr, ExprType};
use nfold_plan::fulltext::{MATCH, MatchCall};
use nfold_plan::func::{ANY_ARGS, Infer};
use nfold_types::{ErrorCode, SqlError};

use super::builtin::{Evaluated, Func, Inferred, func};
use crate::expr::eval::{EvalCx, Val};

pub(super) static FUNCS: &[Func] = &[func(MATCH, (4, ANY_ARGS), infer_match, eval_match)];

fn infer_match(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::double(true))
}

/// The rank of the current row; 0 if it does not match.
fn eval_match<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let call = MatchCall::of_args(args);
    let call = call.ok_or_else(|| SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&"MATCH"]))?;
    let none = Val::Double(0.0);
    let Some(program) = super::search(cx, &call)? else {
        return Ok(none);
    };
    let Some(packed) = cx.bytes(call.words)? else {
        return Ok(none);
    };
    cx.checkpoint(packed.len() as u64)?;
    let mut texts = Vec::new();
    if program.reads_texts() {
        for column in call.columns {
            texts.push(cx.bytes(column)?);
        }
        cx.checkpoint(texts.iter().flatten().map(|t| t.len() as u64 * 10).sum())?;
    }
    let texts: Vec<Option<&[u8]>> = texts.iter().map(|t| t.as_deref()).collect();
    let rank = program.rank(&packed, &texts);
    Ok(rank.map_or(none, |rank| Val::Double(f64::from(rank))))
}
