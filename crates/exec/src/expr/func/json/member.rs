//! Functions that search a document: JSON_EXTRACT, JSON_CONTAINS, JSON_SEARCH and similar ones.

use std::borrow::Cow;

use nfold_json::{Doc, Json};
use nfold_plan::expr::{Expr, ExprType};
use nfold_plan::func::{ANY_ARGS, Infer};
use nfold_types::{CollationId, ErrorCode, SqlError};

use super::{document, only_one, path, result, single_path};
use crate::expr::eval::{EvalCx, Val, compare, json};
use crate::expr::func::builtin::{Evaluated, Func, Inferred, arg, func};

pub(super) const FUNCS: &[Func] = &[
    func("json_extract", (2, ANY_ARGS), infer_document, eval_extract),
    func("json_contains", (2, 3), infer_found, eval_contains),
    func(
        "json_contains_path",
        (3, ANY_ARGS),
        infer_found,
        eval_contains_path,
    ),
    func("json_overlaps", (2, 2), infer_truth, eval_overlaps),
    func("member of", (2, 2), infer_truth, eval_member_of),
    func("json_search", (3, ANY_ARGS), infer_document, eval_search),
    func("json_keys", (1, 2), infer_document, eval_keys),
];

pub(super) fn infer_document(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::json(true))
}

/// A truth value, which MySQL describes with the length of a BIGINT.
pub(super) fn infer_found(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::boolean(true).with_width(21))
}

pub(super) fn infer_truth(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(ExprType::boolean(true))
}

fn eval_extract<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(document(cx, args, 0, "json_extract"));
    if let [_, only] = args {
        let path = arg!(path(cx, only));
        if !path.has_wildcard() {
            let found = match bytes {
                Cow::Borrowed(bytes) => nfold_json::seek_bytes(bytes, &path.legs)?,
                Cow::Owned(bytes) => match nfold_json::seek_one(Doc::new(&bytes)?, &path.legs)? {
                    Some(found) => Some(Cow::Owned(found.to_bytes()?)),
                    None => None,
                },
            };
            return Ok(found.map_or(Val::Null, Val::Bytes));
        }
    }
    let doc = Doc::new(&bytes)?;
    let work = json::work(cx);
    let mut found = Vec::new();
    for e in &args[1..] {
        nfold_json::seek(doc, &*arg!(path(cx, e)), &work, &mut found)?;
    }
    if found.is_empty() {
        return Ok(Val::Null);
    }
    let elements = found.iter().map(|value| value.to_json(&work));
    let elements = elements.collect::<Result<_, SqlError>>()?;
    result(cx, Json::Array(elements))
}

fn eval_contains<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(document(cx, args, 0, "json_contains"));
    let candidate = arg!(document(cx, args, 1, "json_contains"));
    let mut doc = Doc::new(&bytes)?;
    if let Some(e) = args.get(2) {
        let path = arg!(single_path(cx, e));
        doc = arg!(nfold_json::seek_one(doc, &path.legs));
    }
    let found = nfold_json::contains(doc, Doc::new(&candidate)?, &json::work(cx))?;
    Ok(Val::Int(i64::from(found)))
}

fn eval_contains_path<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(document(cx, args, 0, "json_contains_path"));
    let one = arg!(only_one(cx, &args[1], "json_contains_path"));
    let doc = Doc::new(&bytes)?;
    for e in &args[2..] {
        let path = arg!(path(cx, e));
        let mut found = Vec::new();
        nfold_json::seek(doc, &path, &json::work(cx), &mut found)?;
        // Paths after the one that decides the result are not evaluated.
        if one != found.is_empty() {
            return Ok(Val::Int(i64::from(one)));
        }
    }
    Ok(Val::Int(i64::from(!one)))
}

fn eval_overlaps<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let a = arg!(document(cx, args, 0, "json_overlaps"));
    let b = arg!(document(cx, args, 1, "json_overlaps"));
    let found = nfold_json::overlaps(Doc::new(&a)?, Doc::new(&b)?, &json::work(cx))?;
    Ok(Val::Int(i64::from(found)))
}

fn eval_member_of<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let v = cx.val(&args[0])?;
    if v.is_null() {
        return Ok(Val::Null);
    }
    let array = arg!(document(cx, args, 1, "member of"));
    let value = json::encoded(cx, &json::of_sql(cx, &v, &args[0].ty)?)?;
    let (array, value, work) = (Doc::new(&array)?, Doc::new(&value)?, json::work(cx));
    if array.kind() != nfold_json::DocKind::Array {
        let order = nfold_json::compare(array, value, &work)?;
        return Ok(Val::Int(i64::from(order.is_eq())));
    }
    let found = nfold_json::has_element(array, value, &work)?;
    Ok(Val::Int(i64::from(found)))
}

fn eval_search<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(document(cx, args, 0, "json_search"));
    let one = arg!(only_one(cx, &args[1], "json_search"));
    let collation = CollationId::UTF8MB4_BIN;
    let pattern = arg!(cx.text(&args[2], collation));
    let escape = match args.get(3) {
        None => Some('\\'),
        Some(e) => {
            let text = cx.text(e, collation)?;
            if text
                .as_ref()
                .is_some_and(|t| collation.known().char_len(t) > 1)
            {
                let code = ErrorCode::ER_WRONG_ARGUMENTS;
                return Err(SqlError::new(code, &[&"ESCAPE"]));
            }
            compare::escape_char(text.as_deref().filter(|t| !t.is_empty()))
        }
    };
    let mut paths = Vec::new();
    for e in args.iter().skip(4) {
        paths.push((*arg!(path(cx, e))).clone());
    }
    let mut matches = |text: &str| {
        let mut goes_on = |work| cx.goes_on(work);
        let known = collation.known();
        let found = known.like_stoppable(text.as_bytes(), &pattern, escape, &mut goes_on);
        cx.checkpoint(0)?;
        Ok(found)
    };
    let work = json::work(cx);
    let found = nfold_json::search(Doc::new(&bytes)?, &paths, one, &mut matches, &work)?;
    let mut found: Vec<Json> = found.into_iter().map(Json::String).collect();
    match found.len() {
        0 => Ok(Val::Null),
        1 => result(cx, found.remove(0)),
        _ => result(cx, Json::Array(found)),
    }
}

fn eval_keys<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(document(cx, args, 0, "json_keys"));
    let mut doc = Doc::new(&bytes)?;
    if let Some(e) = args.get(1) {
        let path = arg!(single_path(cx, e));
        doc = arg!(nfold_json::seek_exactly(doc, &path.legs));
    }
    Ok(nfold_json::keys(doc)?.map_or(Val::Null, Val::string))
}
