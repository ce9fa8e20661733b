//! Rows that the executor creates: groups, sorted rows, rows of derived tables, spilled rows. They
//! are row images too, so that every operator reads its input in the same way.

use std::borrow::Cow;

use nfold_plan::expr::{Class, CmpKind, Expr, ExprType};
use nfold_types::key::{KeyError, KeyLayout, KeyPart};
use nfold_types::row::{RowColumn, RowLayout};
use nfold_types::{ColumnType, DateTime, Decimal, ErrorCode, SqlError, TypeKind, ValueRef};

use smallvec::SmallVec;

use super::{EvalCx, Val, convert, json};

/// The type in which a created row stores the values of an expression. A TIMESTAMP is stored as
/// DATETIME, and lengths are not limited.
pub(crate) fn stored_type(ty: &ExprType) -> ColumnType {
    let kind = match &ty.col.kind {
        TypeKind::Timestamp(fsp) => TypeKind::DateTime(*fsp),
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int => {
            TypeKind::BigInt
        }
        TypeKind::Year => TypeKind::BigInt,
        TypeKind::Null => TypeKind::VarBinary(0),
        TypeKind::Char(_)
        | TypeKind::Binary(_)
        | TypeKind::VarChar(_)
        | TypeKind::VarBinary(_)
        | TypeKind::Text(_)
        | TypeKind::Blob(_) => {
            if ty.col.collation == nfold_types::CollationId::BINARY {
                TypeKind::Blob(nfold_types::TextSize::Long)
            } else {
                TypeKind::Text(nfold_types::TextSize::Long)
            }
        }
        other => other.clone(),
    };
    let mut col = ty.col.clone();
    col.unsigned |= matches!(ty.col.kind, TypeKind::Year);
    col.kind = kind;
    col.zerofill = false;
    col
}

/// Converts a value to its stored form for `ty`, which comes from [`stored_type`].
pub(crate) fn fit<'v>(v: &'v Val<'_>, ty: &ColumnType) -> Result<Fitted<'v>, SqlError> {
    let class = Class::of(ty);
    Ok(Fitted::Ref(match (v, class) {
        (Val::Null, _) => ValueRef::Null,
        (Val::Int(i), Class::Int) if ty.unsigned => ValueRef::UInt(*i as u64),
        (Val::UInt(u), Class::Int) if !ty.unsigned && !matches!(ty.kind, TypeKind::Bit(_)) => {
            ValueRef::Int(*u as i64)
        }
        (Val::Int(i), Class::Decimal) => ValueRef::Decimal(Decimal::from(*i)),
        (Val::UInt(u), Class::Decimal) => ValueRef::Decimal(Decimal::from(*u)),
        (Val::Decimal(d), Class::Decimal) => {
            let (precision, scale) = match ty.kind {
                TypeKind::Decimal { precision, scale } => (precision, scale),
                _ => (65, 30),
            };
            let fitted = d
                .rescale(scale)
                .filter(|d| d.int_digits() <= u32::from(precision - scale));
            ValueRef::Decimal(
                fitted.unwrap_or_else(|| Decimal::max_of(precision, scale, d.is_negative())),
            )
        }
        (Val::Double(d), Class::Double) if matches!(ty.kind, TypeKind::Float) => {
            ValueRef::Float(*d as f32)
        }
        (Val::Float(f), Class::Double) if matches!(ty.kind, TypeKind::Double) => {
            ValueRef::Double(f64::from(*f))
        }
        (Val::Int(i), Class::Double) => ValueRef::Double(*i as f64),
        (Val::UInt(u), Class::Double) => ValueRef::Double(*u as f64),
        (Val::Decimal(d), Class::Double) => ValueRef::Double(d.to_f64()),
        (Val::Date(d), Class::DateTime) => ValueRef::DateTime(d.at_midnight()),
        (Val::DateTime(d), Class::Date) => ValueRef::Date(d.date()),
        (Val::DateTime(d), Class::DateTime) => {
            ValueRef::DateTime(DateTime::from_packed(d.packed(), ty.fsp()))
        }
        (Val::UInt(_), Class::String) if ty.is_enum_or_set() => v.as_value_ref(),
        (Val::Bytes(_), Class::String) if !ty.is_enum_or_set() => v.as_value_ref(),
        (Val::Bytes(_), Class::Json) => v.as_value_ref(),
        (_, Class::String) => {
            let mut out = Vec::new();
            convert::write_text(v, &ExprType::new(ty.clone(), true), &mut out);
            return Ok(Fitted::Text(out));
        }
        _ => v.as_value_ref(),
    }))
}

/// The result of [`fit`].
pub(crate) enum Fitted<'v> {
    Ref(ValueRef<'v>),
    Text(Vec<u8>),
}

impl Fitted<'_> {
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Fitted::Ref(v) => *v,
            Fitted::Text(t) => ValueRef::Bytes(t),
        }
    }
}

/// The layout of rows with these types. Every column may be NULL.
pub(crate) fn layout_of<'t>(types: impl IntoIterator<Item = &'t ExprType>) -> RowLayout {
    RowLayout::new(
        0,
        types.into_iter().map(|t| RowColumn {
            ty: stored_type(t),
            nullable: true,
        }),
    )
}

/// Whether a temporary table stores a value of type `from` in a column of type `to` as decimal
/// digits: a BIT or a YEAR in a VARCHAR. (In a TEXT or BLOB it is stored as it is shown.)
fn compared_as_digits(from: &ColumnType, to: &ColumnType) -> bool {
    matches!(from.kind, TypeKind::Bit(_) | TypeKind::Year) && to.is_string() && !to.is_blob()
}

/// The value of `e` as a column of type `ty` in a temporary table has it: a FLOAT in a string has
/// as many digits as fit, and a BINARY has its declared length.
pub(crate) fn kept<'a>(cx: &EvalCx<'a>, e: &'a Expr, ty: &ExprType) -> Result<Val<'a>, SqlError> {
    let digits = compared_as_digits(&e.ty.col, &ty.col);
    let float = e.ty.col.kind == TypeKind::Float && ty.col.is_string() && !ty.col.is_blob();
    let mut v = match float.then(|| cx.val(e)).transpose()? {
        Some(Val::Float(v)) => {
            let mut text = Vec::new();
            nfold_types::convert::store::double_text(f64::from(v), &ty.col, &mut text);
            Val::Bytes(text.into())
        }
        Some(v) => v,
        None if digits => cx.digits(e, ty)?,
        None => cx.val_as(e, ty)?,
    };
    if let (TypeKind::Binary(n), Val::Bytes(bytes)) = (&ty.col.kind, &mut v)
        && bytes.len() < *n as usize
    {
        bytes.to_mut().resize(*n as usize, 0);
    }
    Ok(v)
}

/// Appends the row image of evaluated values.
pub(crate) fn encode_row(
    layout: &RowLayout,
    values: &[Val<'_>],
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let mut fitted: SmallVec<[Fitted<'_>; 4]> = SmallVec::new();
    for (v, c) in values.iter().zip(layout.columns()) {
        fitted.push(fit(v, &c.ty)?);
    }
    layout
        .encode(fitted.iter().map(Fitted::as_ref), out)
        .map_err(|e| super::row_error(&e))
}

#[cold]
fn key_error(e: &KeyError) -> SqlError {
    SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, format!("sort key: {e}"))
}

/// Encodes values as key bytes. Keys are equal exactly if the values compare as equal in their
/// types, and keys sort like the values.
pub(crate) struct KeyMaker {
    layout: KeyLayout,
    /// The parts that are JSON documents, whose keys are encoded separately.
    documents: SmallVec<[usize; 2]>,
}

/// The positions of JSON documents.
fn documents_of<'t>(types: impl Iterator<Item = &'t ExprType>) -> SmallVec<[usize; 2]> {
    let places = types.enumerate().filter(|(_, ty)| ty.col.is_json());
    places.map(|(place, _)| place).collect()
}

/// The type in which a value of type `ty` is encoded.
fn key_type(ty: &ExprType) -> ColumnType {
    match ty.col.kind {
        TypeKind::Json => ColumnType::new(TypeKind::Blob(nfold_types::TextSize::Long)),
        _ => stored_type(ty),
    }
}

impl KeyMaker {
    /// The second member of each pair says whether the part is descending.
    pub fn new<'t>(types: impl IntoIterator<Item = (&'t ExprType, bool)>) -> KeyMaker {
        let types: SmallVec<[_; 8]> = types.into_iter().collect();
        KeyMaker {
            documents: documents_of(types.iter().map(|(ty, _)| *ty)),
            layout: KeyLayout::new(types.into_iter().enumerate().map(|(ordinal, (t, desc))| {
                let ty = key_type(t);
                KeyPart {
                    ordinal,
                    ty,
                    nullable: true,
                    desc,
                    prefix_len: 0,
                }
            })),
        }
    }

    /// For ORDER BY: of a string in a PAD SPACE collation only the first `max_sort_length` bytes of
    /// weights count.
    pub fn of_order<'t>(
        types: impl IntoIterator<Item = (&'t ExprType, bool)>,
        max_sort_length: usize,
    ) -> KeyMaker {
        let parts = |(ordinal, (t, desc)): (usize, (&ExprType, bool))| KeyPart {
            ordinal,
            ty: key_type(t),
            nullable: true,
            desc,
            prefix_len: sorted_chars(t, max_sort_length),
        };
        let types: SmallVec<[_; 8]> = types.into_iter().collect();
        KeyMaker {
            documents: documents_of(types.iter().map(|(ty, _)| *ty)),
            layout: KeyLayout::new(types.into_iter().enumerate().map(parts)),
        }
    }

    /// Appends part `n` of the key.
    pub fn push(&self, n: usize, v: &Val<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let fitted = fit(v, &self.layout.parts()[n].ty)?;
        self.push_stored(n, fitted.as_ref(), out)
    }

    /// Encodes part `n`. A document is represented by its key: see [`nfold_json::append_hash_key`].
    #[inline(always)]
    fn encode(
        &self,
        n: usize,
        v: ValueRef<'_>,
        encode: impl FnOnce(ValueRef<'_>) -> Result<(), KeyError>,
    ) -> Result<(), SqlError> {
        let done = match self.documents.is_empty() {
            true => encode(v),
            false => match self.document_key(n, v)? {
                Some(key) => encode(ValueRef::Bytes(&key)),
                None => encode(v),
            },
        };
        done.map_err(|e| key_error(&e))
    }

    #[cold]
    fn document_key(&self, n: usize, v: ValueRef<'_>) -> Result<Option<Vec<u8>>, SqlError> {
        let (true, ValueRef::Bytes(doc)) = (self.documents.contains(&n), v) else {
            return Ok(None);
        };
        let mut key = Vec::new();
        let work = nfold_json::Work::new(&nfold_types::NoCheckpoint);
        nfold_json::append_hash_key(nfold_json::Doc::new(doc)?, &work, &mut key)?;
        Ok(Some(key))
    }

    /// Appends part `n` from a value in its stored form.
    #[inline]
    pub fn push_stored(
        &self,
        n: usize,
        v: ValueRef<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        self.encode(n, v, |v| self.layout.encode_part(n, v, out))
    }

    /// Appends bytes that are equal exactly if the bytes of [`KeyMaker::push_stored`] are, but that
    /// do not sort like the values.
    #[inline]
    pub fn push_identity(
        &self,
        n: usize,
        v: ValueRef<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        self.encode(n, v, |v| self.layout.encode_part_identity(n, v, out))
    }

    /// Appends at least the first `limit` bytes that [`KeyMaker::push_stored`] would append.
    #[inline]
    pub fn push_head(
        &self,
        n: usize,
        v: ValueRef<'_>,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        self.encode(n, v, |v| self.layout.encode_part_head(n, v, limit, out))
    }

    /// Appends all parts of the key.
    pub fn push_all(&self, values: &[Val<'_>], out: &mut Vec<u8>) -> Result<(), SqlError> {
        values
            .iter()
            .enumerate()
            .try_for_each(|(n, v)| self.push(n, v, out))
    }
}

/// The value of `e`, with the text of an ENUM in place of its number, and of a temporal value in an
/// expression of string type. For MIN, MAX and string functions, which use the text.
pub(crate) fn own_text<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<Val<'a>, SqlError> {
    let v = cx.val(e)?;
    if e.ty.class() == Class::String && !matches!(v, Val::Bytes(_) | Val::Null) {
        return Ok(convert::to_bytes(cx, v, &e.ty)
            .map_or(Val::Null, |b| Val::Bytes(Cow::Owned(b.into_owned()))));
    }
    Ok(v)
}

/// The maximum number of characters that ORDER BY compares; 0: all.
fn sorted_chars(ty: &ExprType, max_sort_length: usize) -> u32 {
    if ty.class() != Class::String || ty.col.is_enum_or_set() || !ty.collation().known().pad_space {
        return 0;
    }
    let collation = ty.collation().known();
    let weight_bytes = match (collation.charset.is_utf8(), collation.is_binary()) {
        (false, _) => 1,
        (true, false) => 2,
        (true, true) => 3,
    };
    // A character whose weight is only partly within the limit counts as a whole, except where a
    // weight has three bytes.
    let chars = match weight_bytes {
        3 => max_sort_length / 3,
        n => max_sort_length.div_ceil(n),
    };
    match u32::try_from(chars) {
        Ok(chars) if u64::from(chars) < ty.max_length() => chars,
        _ => 0,
    }
}

/// Appends bytes that are equal exactly if values compare as equal under `kind`. Several such keys
/// can be concatenated: each has a fixed length, or ends with its length. Returns false for NULL.
pub(crate) fn normal_key(
    cx: &EvalCx<'_>,
    (v, ty): (&Val<'_>, &ExprType),
    kind: CmpKind,
    out: &mut Vec<u8>,
) -> bool {
    let done = match kind {
        CmpKind::Int => {
            convert::to_integer(cx, v, ty).map(|i| out.extend_from_slice(&i.to_le_bytes()))
        }
        CmpKind::Decimal => convert::to_decimal(cx, v, ty).map(|d| {
            let (d, start) = (d.without_trailing_zeros(), out.len());
            d.write_to(out);
            out.push((out.len() - start) as u8);
        }),
        CmpKind::Double => convert::to_f64(cx, v, ty)
            .map(|f| out.extend_from_slice(&(f + 0.0).to_bits().to_le_bytes())),
        CmpKind::String(collation) => convert::to_text(cx, v.clone(), ty, collation).map(|t| {
            let start = out.len();
            collation.known().sort_key(&t, out);
            let len = (out.len() - start) as u32;
            out.extend_from_slice(&len.to_le_bytes());
        }),
        CmpKind::DateTime => {
            // A string that is no date becomes the zero date.
            let text = matches!(v, Val::Bytes(_)) || (ty.col.is_enum_or_set() && !v.is_null());
            let text = text.then_some(nfold_types::DateTime::ZERO);
            let year = convert::year_alone(v, ty);
            let found = year.or_else(|| convert::to_datetime(cx, v, ty).or(text));
            found.map(|d| out.extend_from_slice(&d.packed().to_le_bytes()))
        }
        CmpKind::Json if v.is_null() => None,
        CmpKind::Json => {
            let start = out.len();
            if let Err(e) = json::append_key(cx, (v, ty), out) {
                cx.st.warnings.borrow_mut().raise(e);
            }
            let len = (out.len() - start) as u32;
            out.extend_from_slice(&len.to_le_bytes());
            Some(())
        }
        CmpKind::Time => {
            convert::to_time(cx, v, ty).map(|t| out.extend_from_slice(&t.micros().to_le_bytes()))
        }
    };
    done.is_some()
}
