//! Functions that describe a document: its type, length, depth, text and size.

use std::borrow::Cow;

use nfold_json::{Doc, Scalar};
use nfold_plan::expr::{Class, Expr, ExprType};
use nfold_plan::func::{Infer, any_nullable, infer_int, infer_int_null};
use nfold_types::CollationId;

use super::{document, long_text, path, short_text};
use crate::expr::eval::{EvalCx, Val, json};
use crate::expr::func::builtin::{Evaluated, Func, Inferred, arg, func};

pub(super) const FUNCS: &[Func] = &[
    func("json_length", (1, 2), infer_int_null::<21>, eval_length),
    func("json_depth", (1, 1), infer_int::<21>, eval_depth),
    func("json_type", (1, 1), infer_type, eval_type),
    func("json_valid", (1, 1), infer_valid, eval_valid),
    func("json_unquote", (1, 1), infer_unquote, eval_unquote),
    func("json_quote", (1, 1), infer_quote, eval_quote),
    func("json_pretty", (1, 1), infer_long_text, eval_pretty),
    func(
        "json_storage_size",
        (1, 1),
        infer_int::<21>,
        eval_storage_size,
    ),
    func(
        "json_storage_free",
        (1, 1),
        infer_int::<21>,
        eval_storage_free,
    ),
];

fn infer_type(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(short_text(17))
}

fn infer_valid(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(ExprType::boolean(any_nullable(args)).with_width(21))
}

fn infer_long_text(_: &Infer<'_>, _: &mut [Expr]) -> Inferred {
    Ok(long_text())
}

fn infer_unquote(_: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    Ok(match args[0].ty.class() {
        Class::String => short_text(args[0].ty.char_length()),
        _ => long_text(),
    })
}

fn infer_quote(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    if args[0].ty.class() != Class::String && args[0].ty.class() != Class::Null {
        let code = nfold_types::ErrorCode::ER_WRONG_ARGUMENTS;
        return Err(nfold_types::SqlError::new(code, &[&cx.name]));
    }
    Ok(short_text(args[0].ty.char_length() * 6 + 2))
}

fn eval_length<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(document(cx, args, 0, "json_length"));
    let mut doc = Doc::new(&bytes)?;
    if let Some(e) = args.get(1) {
        let path = arg!(path(cx, e));
        if path.has_wildcard() {
            let mut found = Vec::new();
            nfold_json::seek(doc, &path, &json::work(cx), &mut found)?;
            return Ok(match found.len() {
                0 => Val::Null,
                matches => Val::Int(matches as i64),
            });
        }
        doc = arg!(nfold_json::seek_one(doc, &path.legs));
    }
    Ok(Val::Int(doc.length()? as i64))
}

fn eval_depth<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(document(cx, args, 0, "json_depth"));
    let depth = nfold_json::depth(Doc::new(&bytes)?, &json::work(cx))?;
    Ok(Val::Int(depth as i64))
}

fn eval_type<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(document(cx, args, 0, "json_type"));
    let name = nfold_json::type_name(Doc::new(&bytes)?)?;
    Ok(Val::Bytes(name.as_bytes().into()))
}

fn eval_valid<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let e = &args[0];
    let v = cx.val(e)?;
    if v.is_null() {
        return Ok(Val::Null);
    }
    if e.ty.col.is_json() {
        return Ok(Val::Int(1));
    }
    let is_text = matches!(v, Val::Bytes(_)) && e.ty.collation() != CollationId::BINARY;
    if !is_text {
        return Ok(Val::Int(0));
    }
    let text = json::utf8(cx, &v, &e.ty);
    let valid = nfold_json::is_valid(text.as_bytes(), &json::work(cx))?;
    Ok(Val::Int(i64::from(valid)))
}

fn eval_unquote<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let e = &args[0];
    let v = cx.val(e)?;
    match &v {
        Val::Null => return Ok(Val::Null),
        // A string is its text, which needs no copy.
        Val::Bytes(Cow::Borrowed(doc)) if e.ty.col.is_json() => {
            return match Doc::new(doc)?.scalar()? {
                Some(Scalar::String(text)) => Ok(Val::Bytes(text.as_bytes().into())),
                _ => json::text(cx, doc, true).map(Val::string),
            };
        }
        Val::Bytes(doc) if e.ty.col.is_json() => {
            return json::text(cx, doc, true).map(Val::string);
        }
        _ => {}
    }
    let text = json::utf8(cx, &v, &e.ty);
    let unquoted = nfold_json::unquote(text.as_bytes(), &json::work(cx))
        .map_err(|e| json::syntax_error(e, 1, "json_unquote"))?;
    Ok(Val::string(unquoted.unwrap_or(text).into_bytes()))
}

fn eval_quote<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let text = arg!(cx.text(&args[0], CollationId::UTF8MB4_BIN));
    Ok(Val::string(nfold_json::quote(&String::from_utf8_lossy(
        &text,
    ))))
}

fn eval_pretty<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(document(cx, args, 0, "json_pretty"));
    let mut out = Vec::new();
    nfold_json::print_pretty(Doc::new(&bytes)?, &json::work(cx), &mut out)?;
    Ok(Val::string(out))
}

fn eval_storage_size<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let bytes = arg!(document(cx, args, 0, "json_storage_size"));
    Ok(Val::Int(bytes.len() as i64))
}

/// Documents are never changed in place, so no byte is free.
fn eval_storage_free<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    arg!(document(cx, args, 0, "json_storage_free"));
    Ok(Val::Int(0))
}
