//! The functions over JSON documents. Most of the work is done by `nfold_json`.

mod edit;
mod inspect;
mod make;
mod member;
mod members;
mod schema;
mod value;

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use nfold_json::{Json, Path};
use nfold_plan::expr::{Class, Coercibility, Expr, ExprType, TextOrigin};
use nfold_types::{CollationId, ColumnType, ErrorCode, SqlError, TextSize, TypeKind};

pub(crate) use members::DocumentParts;

use super::builtin::Func;
use crate::expr::eval::{EvalCx, Val, convert, json};

/// All functions of the folder.
pub(super) const FUNCS: [&[Func]; 6] = [
    member::FUNCS,
    value::FUNCS,
    schema::FUNCS,
    inspect::FUNCS,
    edit::FUNCS,
    make::FUNCS,
];

/// The number of parsed paths that a thread caches.
const PATHS_MAX: usize = 64;

/// A parsed path, and the text in its own character set.
struct CachedPath {
    collation: CollationId,
    text: Box<[u8]>,
    path: Rc<Path>,
}

thread_local! {
    /// The cached paths, the most recent last.
    static PATHS: RefCell<Vec<CachedPath>> = const { RefCell::new(Vec::new()) };
}

/// The path in an argument; `None` for NULL. Error 3143.
fn path<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<Rc<Path>>, SqlError> {
    let written = cx.val(e)?;
    let Val::Bytes(raw) = &written else {
        return parsed_path(cx, e, written);
    };
    let collation = e.ty.collation();
    let known = PATHS.with_borrow(|paths| {
        let is_it = |known: &&CachedPath| known.collation == collation && *known.text == **raw;
        let known = paths.iter().rev().find(is_it);
        known.map(|known| known.path.clone())
    });
    if known.is_some() || e.ty.class() != Class::String {
        return known.map_or_else(|| parsed_path(cx, e, written), |path| Ok(Some(path)));
    }
    // The conversion of other texts may cause an error, each time.
    let converts = raw.is_ascii() || e.ty.col.charset().is_utf8();
    let text: Option<Box<[u8]>> = converts.then(|| Box::from(&**raw));
    let path = parsed_path(cx, e, written)?;
    if let (Some(path), Some(text)) = (&path, text) {
        let path = path.clone();
        PATHS.with_borrow_mut(|paths| {
            if paths.len() == PATHS_MAX {
                paths.remove(0);
            }
            paths.push(CachedPath {
                collation,
                text,
                path,
            });
        });
    }
    Ok(path)
}

/// Parses the path in an argument with this value. Error 3143.
#[cold]
fn parsed_path<'a>(
    cx: &EvalCx<'a>,
    e: &'a Expr,
    written: Val<'a>,
) -> Result<Option<Rc<Path>>, SqlError> {
    let Some(text) = convert::to_text(cx, written, &e.ty, CollationId::UTF8MB4_BIN) else {
        return Ok(None);
    };
    let parsed = Path::parse(&String::from_utf8_lossy(&text)).map_err(|e| {
        let code = ErrorCode::ER_INVALID_JSON_PATH;
        SqlError::new(code, &[&e.position, &""])
    })?;
    Ok(Some(Rc::new(parsed)))
}

/// A path without wildcards. Error 3149.
fn single_path<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Option<Rc<Path>>, SqlError> {
    let path = path(cx, e)?;
    if path.as_ref().is_some_and(|p| p.has_wildcard()) {
        let code = ErrorCode::ER_INVALID_JSON_PATH_WILDCARD;
        return Err(SqlError::new(code, &[]));
    }
    Ok(path)
}

/// The document in argument number `place`: its bytes, or its parsed text; `None` for NULL. Errors
/// 3141, 3144, 3146.
pub(crate) fn document<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    place: usize,
    function: &str,
) -> Result<Option<Cow<'a, [u8]>>, SqlError> {
    let e = &args[place];
    let v = cx.val(e)?;
    match v {
        Val::Null => return Ok(None),
        Val::Bytes(doc) if e.ty.col.is_json() => return Ok(Some(doc)),
        _ => {}
    }
    let argument = place + 1;
    if e.ty.class() != Class::String {
        let code = ErrorCode::ER_INVALID_TYPE_FOR_JSON;
        return Err(SqlError::new(code, &[&argument, &function]));
    }
    if e.ty.collation() == CollationId::BINARY {
        let code = ErrorCode::ER_INVALID_JSON_CHARSET;
        return Err(SqlError::new(code, &[&"binary"]));
    }
    let text = json::utf8(cx, &v, &e.ty);
    let parsed = nfold_json::parse(text.as_bytes(), &json::work(cx))
        .map_err(|e| json::syntax_error(e, argument, function))?;
    json::encoded(cx, &parsed).map(|bytes| Some(bytes.into()))
}

/// As [`document`], but returns a tree.
fn tree<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    place: usize,
    function: &str,
) -> Result<Option<Json>, SqlError> {
    let Some(bytes) = document(cx, args, place, function)? else {
        return Ok(None);
    };
    nfold_json::Doc::new(&bytes)?
        .to_json(&json::work(cx))
        .map(Some)
}

/// Converts an SQL value to a JSON value: a string is not parsed, NULL becomes `null`.
fn value<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Json, SqlError> {
    let v = cx.val(e)?;
    json::of_expr(cx, e, &v)
}

/// Encodes a tree as the function's result. Error 3157.
fn result<'a>(cx: &EvalCx<'a>, value: Json) -> Result<Val<'a>, SqlError> {
    Ok(Val::string(json::encoded(cx, &value.check_depth()?)?))
}

/// Parses the argument `one` or `all`. Error 3154.
fn only_one<'a>(cx: &EvalCx<'a>, e: &'a Expr, function: &str) -> Result<Option<bool>, SqlError> {
    let Some(word) = cx.bytes(e)? else {
        return Ok(None);
    };
    match word.to_ascii_lowercase().as_slice() {
        b"one" => Ok(Some(true)),
        b"all" => Ok(Some(false)),
        _ => {
            let code = ErrorCode::ER_JSON_BAD_ONE_OR_ALL_ARG;
            Err(SqlError::new(code, &[&function]))
        }
    }
}

/// The type LONGTEXT in utf8mb4.
fn long_text() -> ExprType {
    let mut col = ColumnType::string(TypeKind::Text(TextSize::Long), CollationId::UTF8MB4_BIN);
    col.width = 0x3FFF_FFFF;
    ExprType {
        col,
        nullable: true,
        coercibility: Coercibility::Implicit,
        origin: TextOrigin::Computed,
        item_name: Default::default(),
    }
}

/// The type of a utf8mb4 string of at most `chars` characters.
fn short_text(chars: u64) -> ExprType {
    let collation = CollationId::UTF8MB4_BIN;
    ExprType::string(chars, collation, Coercibility::Implicit, true)
}
