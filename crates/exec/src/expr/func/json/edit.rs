//! Functions that change a document.

use nfold_json::{Doc, EditMode, Json, Leg, Spliced};
use nfold_plan::expr::{Expr, ExprType};
use nfold_plan::func::{ANY_ARGS, Infer};
use nfold_types::{ErrorCode, SqlError};

use super::member::infer_document;
use super::{document, result, single_path, tree, value};
use crate::expr::eval::{EvalCx, Val, json};
use crate::expr::func::builtin::{Evaluated, Func, Inferred, arg, func};

pub(super) const FUNCS: &[Func] = &[
    func("json_set", (3, ANY_ARGS), infer_pairs, eval_set),
    func("json_insert", (3, ANY_ARGS), infer_pairs, eval_insert),
    func("json_replace", (3, ANY_ARGS), infer_pairs, eval_replace),
    func("json_array_append", (3, ANY_ARGS), infer_pairs, eval_append),
    func(
        "json_array_insert",
        (3, ANY_ARGS),
        infer_pairs,
        eval_array_insert,
    ),
    func("json_remove", (2, ANY_ARGS), infer_document, eval_remove),
    func("json_merge", (2, ANY_ARGS), infer_document, eval_merge),
    func(
        "json_merge_preserve",
        (2, ANY_ARGS),
        infer_document,
        eval_merge_preserve,
    ),
    func(
        "json_merge_patch",
        (2, ANY_ARGS),
        infer_document,
        eval_merge_patch,
    ),
];

/// The arguments are a document, then pairs of a path and a value. Error 1582.
fn infer_pairs(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    if args.len().is_multiple_of(2) {
        let code = ErrorCode::ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT;
        return Err(SqlError::new(code, &[&cx.written]));
    }
    Ok(ExprType::json(true))
}

fn edited<'a>(cx: &EvalCx<'a>, args: &'a [Expr], mode: EditMode, function: &str) -> Evaluated<'a> {
    let mut bytes = arg!(document(cx, args, 0, function));
    // The document as a tree, once a change needs one.
    let mut tree: Option<Json> = None;
    for pair in args[1..].chunks_exact(2) {
        let path = arg!(single_path(cx, &pair[0]));
        let value = value(cx, &pair[1])?;
        if tree.is_none() {
            let (value, work) = (json::encoded(cx, &value)?, json::work(cx));
            match nfold_json::set_value(&bytes, &path.legs, &value, mode, &work)? {
                Spliced::Changed(changed) => {
                    bytes = changed.into();
                    continue;
                }
                Spliced::Unchanged => continue,
                Spliced::NeedsTree => {}
            }
        }
        let doc = match &mut tree {
            Some(doc) => doc,
            None => tree.insert(Doc::new(&bytes)?.to_json(&json::work(cx))?),
        };
        nfold_json::set(doc, &path, value, mode)?;
    }
    match tree {
        Some(doc) => result(cx, doc),
        None => Ok(Val::Bytes(bytes)),
    }
}

fn eval_set<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    edited(cx, args, EditMode::Set, "json_set")
}

fn eval_insert<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    edited(cx, args, EditMode::Insert, "json_insert")
}

fn eval_replace<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    edited(cx, args, EditMode::Replace, "json_replace")
}

fn eval_append<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let mut doc = arg!(tree(cx, args, 0, "json_array_append"));
    for pair in args[1..].chunks_exact(2) {
        let path = arg!(single_path(cx, &pair[0]));
        nfold_json::array_append(&mut doc, &path, value(cx, &pair[1])?);
    }
    result(cx, doc)
}

fn eval_array_insert<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let mut doc = arg!(tree(cx, args, 0, "json_array_insert"));
    for pair in args[1..].chunks_exact(2) {
        let path = arg!(single_path(cx, &pair[0]));
        if !matches!(path.legs.last(), Some(Leg::Cell(_))) {
            let code = ErrorCode::ER_INVALID_JSON_PATH_ARRAY_CELL;
            return Err(SqlError::new(code, &[]));
        }
        nfold_json::array_insert(&mut doc, &path, value(cx, &pair[1])?);
    }
    result(cx, doc)
}

fn eval_remove<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let mut bytes = arg!(document(cx, args, 0, "json_remove"));
    let mut paths = Vec::with_capacity(args.len() - 1);
    for e in &args[1..] {
        paths.push(arg!(single_path(cx, e)));
    }
    if paths.iter().any(|path| path.legs.is_empty()) {
        return Err(SqlError::new(ErrorCode::ER_JSON_VACUOUS_PATH, &[]));
    }
    let mut left = paths.iter();
    for path in left.by_ref() {
        match nfold_json::remove_value(&bytes, &path.legs, &json::work(cx))? {
            Spliced::Changed(changed) => bytes = changed.into(),
            Spliced::Unchanged => {}
            Spliced::NeedsTree => {
                let mut doc = Doc::new(&bytes)?.to_json(&json::work(cx))?;
                std::iter::once(path)
                    .chain(left)
                    .for_each(|path| nfold_json::remove(&mut doc, path));
                return result(cx, doc);
            }
        }
    }
    Ok(Val::Bytes(bytes))
}

fn merged<'a>(cx: &EvalCx<'a>, args: &'a [Expr], function: &str) -> Evaluated<'a> {
    let mut doc = arg!(tree(cx, args, 0, function));
    for place in 1..args.len() {
        let next = arg!(tree(cx, args, place, function));
        doc = nfold_json::merge_preserve(doc, next);
    }
    result(cx, doc)
}

fn eval_merge<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    merged(cx, args, "json_merge")
}

fn eval_merge_preserve<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    merged(cx, args, "json_merge_preserve")
}

fn eval_merge_patch<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    // NULL merged with an object is NULL; any other patch replaces the result so far.
    let mut doc = tree(cx, args, 0, "json_merge_patch")?;
    for place in 1..args.len() {
        doc = match (doc, tree(cx, args, place, "json_merge_patch")?) {
            (Some(target), Some(patch)) => Some(nfold_json::merge_patch(target, patch)),
            (None, Some(patch)) if !matches!(patch, Json::Object(_)) => Some(patch),
            _ => None,
        };
    }
    match doc {
        Some(doc) => result(cx, doc),
        None => Ok(Val::Null),
    }
}
