//! Result rows: from row images and expressions straight into the sink's buffer.

use nfold_plan::expr::{Expr, ExprKind};
use nfold_types::temporal::TimeZone;
use nfold_types::{CollationId, ColumnType, SqlError, ValueRef, charset, wire};

use crate::env::{RowSink, WireFormat};
use crate::eval::{EvalCx, row_error};

/// Appends one row to the sink's buffer and ends it. Plain columns are encoded from the row image.
pub(crate) fn emit<'a>(
    cx: &EvalCx<'a>,
    select: &'a [Expr],
    sink: &mut dyn RowSink,
) -> Result<(), SqlError> {
    let zone = cx.env().time_zone();
    let to = sink.collation();
    match sink.format() {
        WireFormat::Text => {
            let out = sink.row_buffer();
            for e in select {
                match e.kind {
                    ExprKind::Column(at) => {
                        let v = cx.rows[usize::from(at.table)]
                            .get(at.column)
                            .map_err(|e| row_error(&e))?;
                        text(v, &e.ty.col, zone, to, out);
                    }
                    _ => text(cx.val(e)?.as_value_ref(), &e.ty.col, zone, to, out),
                }
            }
        }
        WireFormat::Binary => binary(cx, select, zone, to, sink.row_buffer())?,
    }
    sink.end_row()
}

fn binary<'a>(
    cx: &EvalCx<'a>,
    select: &'a [Expr],
    zone: &TimeZone,
    to: CollationId,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let start = out.len();
    out.push(0);
    out.resize(start + 1 + (select.len() + 9) / 8, 0);
    for (n, e) in select.iter().enumerate() {
        let null = match e.kind {
            ExprKind::Column(at) => {
                let v = cx.rows[usize::from(at.table)]
                    .get(at.column)
                    .map_err(|e| row_error(&e))?;
                value(v, &e.ty.col, zone, to, out)
            }
            _ => value(cx.val(e)?.as_value_ref(), &e.ty.col, zone, to, out),
        };
        if null {
            out[start + 1 + (n + 2) / 8] |= 1 << ((n + 2) % 8);
        }
    }
    Ok(())
}

/// Appends a value in the text protocol's form, in the character set of `to`.
#[inline]
pub(crate) fn text(
    v: ValueRef<'_>,
    ty: &ColumnType,
    zone: &TimeZone,
    to: CollationId,
    out: &mut Vec<u8>,
) {
    match recoded(v, ty, to) {
        Some(bytes) => wire::write_text(ValueRef::Bytes(&bytes), ty, zone, out),
        None => wire::write_text(v, ty, zone, out),
    }
}

/// Appends a value in the binary protocol's form; true for NULL, which has no bytes.
#[inline]
pub(crate) fn value(
    v: ValueRef<'_>,
    ty: &ColumnType,
    zone: &TimeZone,
    to: CollationId,
    out: &mut Vec<u8>,
) -> bool {
    if v.is_null() {
        return true;
    }
    match recoded(v, ty, to) {
        Some(bytes) => wire::write_binary(ValueRef::Bytes(&bytes), ty, zone, out),
        None => wire::write_binary(v, ty, zone, out),
    }
    false
}

/// The text of `v` in the character set of `to`, where that takes other bytes. Nothing is allocated for ASCII.
#[inline]
fn recoded(v: ValueRef<'_>, ty: &ColumnType, to: CollationId) -> Option<Vec<u8>> {
    let ValueRef::Bytes(bytes) = v else {
        return None;
    };
    if ty.collation == to || !ty.is_string() {
        return None;
    }
    let (from, to) = (ty.collation.known().charset, to.known().charset);
    if from == to || from.is_binary() || to.is_binary() || bytes.is_ascii() {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() * 2);
    charset::convert(from, to, bytes, &mut out);
    Some(out)
}
