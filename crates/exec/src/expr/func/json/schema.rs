//! JSON_SCHEMA_VALID and JSON_SCHEMA_VALIDATION_REPORT.

use nfold_json::{Doc, DocKind, SchemaFailure};
use nfold_plan::expr::{Expr, ExprType};
use nfold_types::{ErrorCode, SqlError};

use super::member::{infer_document, infer_truth};
use super::{document, result};
use crate::expr::eval::{EvalCx, Val, json};
use crate::expr::func::builtin::{Evaluated, Func, arg, func};
use crate::expr::func::regexp::finds;

pub(super) const FUNCS: &[Func] = &[
    func("json_schema_valid", (2, 2), infer_truth, eval_valid),
    func(
        "json_schema_validation_report",
        (2, 2),
        infer_document,
        eval_report,
    ),
];

/// Validates the second argument against the schema in the first one. The outer `None`: an argument
/// is NULL; the inner `None`: the document is valid.
///
/// # Errors
/// 3141, 3146, 3853, and those of `nfold_json::validate_schema`.
fn failure<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    function: &str,
) -> Result<Option<Option<SchemaFailure>>, SqlError> {
    let Some(schema) = document(cx, args, 0, function)? else {
        return Ok(None);
    };
    let schema = Doc::new(&schema)?;
    if schema.kind() != DocKind::Object {
        let code = ErrorCode::ER_INVALID_JSON_TYPE;
        return Err(SqlError::new(code, &[&1, &function, &"object"]));
    }
    let Some(doc) = document(cx, args, 1, function)? else {
        return Ok(None);
    };
    // A pattern that is no regular expression matches everything.
    let mut matches = |pattern: &str, text: &str| Ok(finds(cx, pattern, text)?.unwrap_or(true));
    let work = json::work(cx);
    nfold_json::validate_schema(schema, Doc::new(&doc)?, &mut matches, &work).map(Some)
}

fn eval_valid<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let failure = arg!(failure(cx, args, "json_schema_valid"));
    Ok(Val::Int(i64::from(failure.is_none())))
}

fn eval_report<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let failure = arg!(failure(cx, args, "json_schema_validation_report"));
    result(cx, nfold_json::schema_report(failure.as_ref()))
}
