//! EXTRACTVALUE and UPDATEXML: the text that an XPath finds in XML, and XML with one node replaced.

mod document;
mod evaluate;
mod path;

use nfold_plan::expr::{Expr, ExprKind, ExprType, long_string_type};
use nfold_plan::func::Infer;
use nfold_types::{ErrorCode, SqlError};

use super::builtin::{Evaluated, Func, Inferred, func};
use crate::expr::eval::{EvalCx, Val};
use document::{Document, NodeKind};
use evaluate::Evaluator;
use path::Term;

pub(super) static FUNCS: &[Func] = &[
    func("extractvalue", (2, 2), infer_xml, eval_extract),
    func("updatexml", (3, 3), infer_xml, eval_update),
];

/// # Errors
/// 1105 if the path is not constant, or the character set is not one of single bytes.
fn infer_xml(cx: &Infer<'_>, args: &mut [Expr]) -> Inferred {
    let of_row = |e: &Expr| matches!(e.kind, ExprKind::Column(_) | ExprKind::Outer { .. });
    let other = |message: String| SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, message);
    let parts: Vec<&Expr> = args.iter().collect();
    let merged = cx.comparable(&parts)?.of_string();
    let set = merged.collation.known().charset;
    if set.is_wide() {
        let message = format!("Character set '{}' is not supported by XPATH", set.name);
        return Err(other(message));
    }
    if cx.is_volatile(&args[1]) || args[1].any(&mut |e| of_row(e)) {
        return Err(other(
            "Only constant XPATH queries are supported".to_owned(),
        ));
    }
    let mut ty = ExprType::string(0, merged.collation, merged.coercibility, true);
    ty.col = long_string_type(u64::MAX, merged.collation);
    Ok(ty)
}

/// The parsed path and the XML text of a call; `None` if one is NULL.
///
/// # Errors
/// 1105 if the path is invalid, even if the text is NULL.
fn parts<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    ty: &'a ExprType,
) -> Result<Option<(Term, std::borrow::Cow<'a, [u8]>)>, SqlError> {
    let Some(path) = cx.text(&args[1], ty.collation())? else {
        return Ok(None);
    };
    cx.checkpoint(20 * path.len() as u64)?;
    let path = path::parse(&path, ty.collation().known().charset)?;
    Ok(cx.text(&args[0], ty.collation())?.map(|text| (path, text)))
}

/// The document of an XML text. `None` with warning 1525 if the text is invalid.
fn document<'t>(cx: &EvalCx<'_>, text: &'t [u8]) -> Result<Option<Document<'t>>, SqlError> {
    Ok(match document::parse(cx, text)? {
        Ok(document) => Some(document),
        Err(fault) => {
            cx.warn(ErrorCode::ER_WRONG_VALUE, &[&"XML", &fault]);
            None
        }
    })
}

fn eval_extract<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let Some((path, text)) = parts(cx, args, ty)? else {
        return Ok(Val::Null);
    };
    let Some(document) = document(cx, &text)? else {
        return Ok(Val::Null);
    };
    let evaluator = Evaluator {
        cx,
        document: &document,
        collation: ty.collation(),
    };
    Ok(evaluator.text(&path, &[])?.map_or(Val::Null, Val::string))
}

fn eval_update<'a>(cx: &EvalCx<'a>, args: &'a [Expr], ty: &'a ExprType) -> Evaluated<'a> {
    let Some((path, text)) = parts(cx, args, ty)? else {
        return Ok(Val::Null);
    };
    let Some(replacement) = cx.text(&args[2], ty.collation())? else {
        return Ok(Val::Null);
    };
    let Term::Nodes(nodes) = path else {
        return Ok(Val::Null);
    };
    let Some(document) = document(cx, &text)? else {
        return Ok(Val::Null);
    };
    let evaluator = Evaluator {
        cx,
        document: &document,
        collation: ty.collation(),
    };
    let (start, end) = match evaluator.nodes(&nodes, &[])?.as_slice() {
        [only] if only.node == 0 => return Ok(Val::Bytes(replacement)),
        [only] => {
            let node = &document.nodes[only.node];
            // An element begins at its `<`, and ends behind its `>`.
            let sign = usize::from(node.kind == NodeKind::Element);
            (node.start - sign, (node.tag_end + sign).min(text.len()))
        }
        // As in MySQL, nothing is replaced where several nodes match.
        _ => return Ok(Val::Bytes(text)),
    };
    let mut out = Vec::with_capacity(text.len() + replacement.len());
    cx.append(&text[..start], &mut out)?;
    cx.append(&replacement, &mut out)?;
    cx.append(&text[end..], &mut out)?;
    cx.checked_string(out, "updatexml")
}
