//! Elements of multi-valued key parts: tests whether the hidden column of a row has given ones, and
//! converts the scalars of documents to elements.
//!
//! A statement converts the elements to keys at their first use, and keeps the keys until it ends.

use std::borrow::Cow;

use nfold_json::{Doc, DocKind, Scalar, scalar_value};
use nfold_plan::expr::{ArrayElements, Class, ElementTarget, Expr};
use nfold_types::convert::store::{StoreCx, StoreMode, store_value_in};
use nfold_types::key::{Elements, element_layout};
use nfold_types::{
    CollationId, ColumnType, ErrorCode, Level, SqlError, TypeKind, Value, ValueRef, Warnings,
};

use super::prepared::{ListForm, PreparedList};
use super::{EvalCx, Val, convert, json};
use crate::env::store_mode;

/// The keys of elements.
#[derive(Default)]
struct ElementKeys {
    keys: Vec<Vec<u8>>,
    /// Whether one of the elements is NULL, which no array has.
    has_null: bool,
}

impl ElementKeys {
    fn add(&mut self, ty: &ColumnType, value: ValueRef<'_>) -> Result<(), SqlError> {
        let mut key = Vec::new();
        element_layout(ty)
            .encode_part(0, value, &mut key)
            .map_err(|e| SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, e.to_string()))?;
        self.keys.push(key);
        Ok(())
    }
}

/// Whether the array of a row has any or `all` of some elements; `None` if it is NULL.
pub(super) fn has<'a>(
    cx: &EvalCx<'a>,
    column: &'a Expr,
    elements: &'a ArrayElements,
    all: bool,
) -> Result<Option<bool>, SqlError> {
    let packed = cx.bytes(column)?;
    let tested = |known: &mut PreparedList| {
        let packed = packed.as_ref()?;
        let own = |key: &[u8]| Elements(packed).any(|own| own == key);
        Some(match all {
            true => !known.has_null && known.sorted_keys().all(own),
            false => known.sorted_keys().any(own),
        })
    };
    let id = std::ptr::from_ref(elements) as usize;
    match elements {
        ArrayElements::Known(list) => with_keys(cx, id, || known(cx, list).map(Some), tested),
        ArrayElements::Computed { value, to, call } => {
            let tested = |known: &mut PreparedList| match known.form {
                ListForm::Keys => Some(tested(known)),
                _ => None,
            };
            match with_elements(cx, id, (value, to), tested)? {
                Some(found) => Ok(found),
                None => cx.bool(call),
            }
        }
    }
}

/// Calls `look` with the keys of the elements of `value`, sorted. The form of the list is
/// [`ListForm::Walk`] if they do not convert. `id`: an address that no other list has.
pub(crate) fn with_elements<'a, R>(
    cx: &EvalCx<'a>,
    id: usize,
    (value, to): (&'a Expr, &ElementTarget),
    look: impl FnOnce(&mut PreparedList) -> R,
) -> Result<R, SqlError> {
    with_keys(cx, id, || computed(cx, value, to), look)
}

/// Calls `look` with the keys that `make` returns at the first use.
fn with_keys<R>(
    cx: &EvalCx<'_>,
    id: usize,
    make: impl FnOnce() -> Result<Option<ElementKeys>, SqlError>,
    look: impl FnOnce(&mut PreparedList) -> R,
) -> Result<R, SqlError> {
    // Evaluating an element may use lists itself.
    let made = match cx.st.lists.has(id) {
        true => None,
        false => make()?,
    };
    let prepare = |list: &mut PreparedList| match made {
        Some(made) => list.set_keys(made.keys.iter().map(Vec::as_slice), made.has_null),
        None => list.set_unknown(),
    };
    Ok(cx.st.lists.with(id, prepare, look))
}

/// The keys of constants of the element type.
fn known<'a>(cx: &EvalCx<'a>, list: &'a [Expr]) -> Result<ElementKeys, SqlError> {
    let mut found = ElementKeys::default();
    for e in list {
        found.add(&e.ty.col, cx.val(e)?.as_value_ref())?;
    }
    Ok(found)
}

/// The keys of the elements of a value. `None`: one of them does not convert to the element type.
fn computed<'a>(
    cx: &EvalCx<'a>,
    value: &'a Expr,
    to: &ElementTarget,
) -> Result<Option<ElementKeys>, SqlError> {
    let mut found = ElementKeys::default();
    let v = cx.val(value)?;
    let bytes: Cow<'_, [u8]> = match v {
        // The test is NULL for every row.
        Val::Null => {
            found.has_null = true;
            return Ok(Some(found));
        }
        v if to.member => json::encoded(cx, &json::of_sql(cx, &v, &value.ty)?)?.into(),
        Val::Bytes(doc) if value.ty.col.is_json() => doc,
        v => match parsed(cx, &v, value)? {
            Some(doc) => doc.into(),
            None => return Ok(None),
        },
    };
    let doc = Doc::new(&bytes)?;
    match doc.kind() {
        DocKind::Object => return Ok(None),
        DocKind::Array if to.member => return Ok(None),
        DocKind::Array => {
            for member in doc.elements()? {
                if !add_element(cx, to, member?, &mut found)? {
                    return Ok(None);
                }
            }
        }
        DocKind::Scalar => {
            if !add_element(cx, to, doc, &mut found)? {
                return Ok(None);
            }
        }
    }
    Ok(Some(found))
}

/// The document that a text is. `None`: it is no text, or no document.
fn parsed(cx: &EvalCx<'_>, v: &Val<'_>, e: &Expr) -> Result<Option<Vec<u8>>, SqlError> {
    if e.ty.class() != Class::String || e.ty.collation() == CollationId::BINARY {
        return Ok(None);
    }
    let text = json::utf8(cx, v, &e.ty);
    match nfold_json::parse(text.as_bytes(), &json::work(cx)) {
        Ok(doc) => json::encoded(cx, &doc).map(Some),
        Err(nfold_json::ParseError::Other(e)) => Err(e),
        Err(_) => Ok(None),
    }
}

/// Adds the key of an element. Returns false if it does not convert to the element type.
fn add_element(
    cx: &EvalCx<'_>,
    to: &ElementTarget,
    doc: Doc<'_>,
    found: &mut ElementKeys,
) -> Result<bool, SqlError> {
    if matches!(doc.scalar()?, Some(Scalar::Null)) {
        found.has_null = true;
        return Ok(true);
    }
    let mode = store_mode(cx.env(), true, false);
    let target = Target {
        element: &to.element,
        column: "",
        index: "",
        row: 1,
    };
    // A conversion that loses digits gives a note only where a row is stored.
    match cx.silently(|cx| element(cx, &mode, &target, doc)) {
        Ok(value) => found.add(&to.element, value.as_ref()).map(|()| true),
        Err(e) if ends_statement(&e) => Err(e),
        Err(_) => Ok(false),
    }
}

/// The column that an array is stored in, for messages.
pub(crate) struct Target<'t> {
    pub element: &'t ColumnType,
    /// The name of the column.
    pub column: &'t str,
    /// The name of the index.
    pub index: &'t str,
    /// The number of the row, from 1.
    pub row: u64,
}

impl Target<'_> {
    fn error(&self, code: ErrorCode) -> SqlError {
        SqlError::new(code, &[&self.index, &self.row])
    }
}

/// Converts one element.
///
/// # Errors
/// 3751, 3752, 3903, 3904, 3907 and 3908.
pub(crate) fn element(
    cx: &EvalCx<'_>,
    mode: &StoreMode,
    to: &Target<'_>,
    doc: Doc<'_>,
) -> Result<Value, SqlError> {
    use ErrorCode as C;
    let Some(scalar) = doc.scalar()? else {
        return Err(SqlError::new(C::ER_WRONG_MVI_VALUE, &[&to.index]));
    };
    if matches!(scalar, Scalar::Null) {
        return Err(to.error(C::ER_INVALID_JSON_VALUE_FOR_FUNC_INDEX));
    }
    let ty = to.element;
    let unfit = |unfit| match unfit {
        scalar_value::Unfit::Invalid => to.error(C::ER_INVALID_JSON_VALUE_FOR_FUNC_INDEX),
        scalar_value::Unfit::OutOfRange => to.error(C::ER_JSON_VALUE_OUT_OF_RANGE_FOR_FUNC_INDEX),
    };
    let out_of_range = || to.error(C::ER_WARN_DATA_OUT_OF_RANGE_FUNCTIONAL_INDEX);
    match &ty.kind {
        TypeKind::Decimal { precision, scale } => {
            let value = match scalar_value::decimal(doc)? {
                Err(scalar_value::Unfit::OutOfRange) => return Err(out_of_range()),
                other => other.map_err(unfit)?,
            };
            let rounded = value
                .round(i32::from(*scale))
                .and_then(|d| d.rescale(*scale));
            let fits = |d: &nfold_types::Decimal| d.int_digits() <= u32::from(precision - scale);
            let rounded = rounded.filter(fits).ok_or_else(out_of_range)?;
            if rounded != value {
                let note = to.error(C::ER_WARN_DATA_TRUNCATED_FUNCTIONAL_INDEX);
                cx.st.warnings.borrow_mut().push_error(Level::Note, &note);
            }
            Ok(Value::Decimal(rounded))
        }
        TypeKind::VarChar(n) | TypeKind::VarBinary(n) => {
            let mut text = Vec::new();
            match scalar {
                Scalar::Opaque(_, bytes) => text.extend_from_slice(bytes),
                _ => nfold_json::print_unquoted(doc, &json::work(cx), &mut text)?,
            }
            match ty.collation.known().char_len(&text) > *n as usize {
                true => Err(SqlError::new(
                    C::ER_FUNCTIONAL_INDEX_DATA_IS_TOO_LONG,
                    &[&to.index],
                )),
                false => Ok(Value::Bytes(text)),
            }
        }
        _ if Class::of(ty) == Class::Int => {
            let value = scalar_value::integer(doc)?.map_err(unfit)?;
            let value = match ty.unsigned {
                true => u64::try_from(value).map(Value::UInt),
                false => i64::try_from(value).map(Value::Int),
            };
            value.map_err(|_| out_of_range())
        }
        _ => temporal(cx, mode, to, doc),
    }
}

/// Converts a date or a time as a column does. A boolean is none.
fn temporal(
    cx: &EvalCx<'_>,
    mode: &StoreMode,
    to: &Target<'_>,
    doc: Doc<'_>,
) -> Result<Value, SqlError> {
    let truncated = || to.error(ErrorCode::ER_WARN_DATA_TRUNCATED_FUNCTIONAL_INDEX);
    let out_of_range = || to.error(ErrorCode::ER_WARN_DATA_OUT_OF_RANGE_FUNCTIONAL_INDEX);
    let is_time = matches!(to.element.kind, TypeKind::Time(_));
    match doc.scalar()? {
        Some(Scalar::Bool(_)) => return Err(truncated()),
        Some(Scalar::Date(_)) if is_time => return Err(truncated()),
        Some(Scalar::String("")) if is_time => return Err(out_of_range()),
        _ => {}
    }
    let Some((value, ty)) = json::sql_value(doc)? else {
        return Err(truncated());
    };
    // The warning of a conversion that is not strict is an error here.
    let mut raised = Warnings::default();
    let stored = store_value_in(
        value.as_value_ref(),
        convert::string_collation(cx, &ty),
        to.element,
        &mut StoreCx {
            mode,
            column: to.column,
            row: to.row,
            from: CollationId::UTF8MB4_BIN,
            warnings: &mut raised,
        },
        Vec::new(),
    );
    let warned = raised.list().iter().find(|w| w.level != Level::Note);
    match (stored, warned.map(|w| w.code)) {
        (Ok(value), None) => Ok(value),
        (Err(SqlError { code, .. }), _) | (Ok(_), Some(code)) => Err(match code {
            ErrorCode::ER_WARN_DATA_OUT_OF_RANGE => out_of_range(),
            _ => truncated(),
        }),
    }
}

/// Whether an error ends the statement, and is not caused by the expression: KILL, a time limit, or
/// a damaged row.
pub(crate) fn ends_statement(e: &SqlError) -> bool {
    matches!(
        e.code,
        ErrorCode::ER_QUERY_INTERRUPTED | ErrorCode::ER_QUERY_TIMEOUT | ErrorCode::ER_UNKNOWN_ERROR
    )
}
