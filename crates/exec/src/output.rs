//! Result rows: from row images and expressions straight into the sink's buffer, in the client's character set.

use nfold_plan::expr::{Expr, ExprKind};
use nfold_types::temporal::TimeZone;
use nfold_types::{Charset, CollationId, ColumnType, SqlError, ValueRef, charset, wire};

use crate::env::{RowSink, WireFormat};
use crate::eval::{EvalCx, row_error};

/// Appends one row to the sink's buffer and ends it. Plain columns are encoded from the row image.
pub(crate) fn emit<'a>(
    cx: &EvalCx<'a>,
    select: &'a [Expr],
    sink: &mut dyn RowSink,
) -> Result<(), SqlError> {
    let to = Target {
        zone: cx.env().time_zone(),
        charset: cx.env().result_charset(),
    };
    match sink.format() {
        WireFormat::Text => {
            let out = sink.row_buffer();
            for e in select {
                match e.kind {
                    ExprKind::Column(at) => {
                        let v = cx.rows[usize::from(at.table)]
                            .get(at.column)
                            .map_err(|e| row_error(&e))?;
                        to.text(v, &e.ty.col, out);
                    }
                    _ => to.text(cx.val(e)?.as_value_ref(), &e.ty.col, out),
                }
            }
        }
        WireFormat::Binary => binary(cx, select, &to, sink.row_buffer())?,
    }
    sink.end_row()
}

fn binary<'a>(
    cx: &EvalCx<'a>,
    select: &'a [Expr],
    to: &Target<'_>,
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
                to.binary(v, &e.ty.col, out)
            }
            _ => to.binary(cx.val(e)?.as_value_ref(), &e.ty.col, out),
        };
        if null {
            out[start + 1 + (n + 2) / 8] |= 1 << ((n + 2) % 8);
        }
    }
    Ok(())
}

/// What the client gets values in.
struct Target<'a> {
    zone: &'a TimeZone,
    charset: Option<&'static Charset>,
}

impl Target<'_> {
    /// The string in the client's character set, if it is to be converted.
    #[inline]
    fn converted(&self, v: ValueRef<'_>, ty: &ColumnType) -> Option<Vec<u8>> {
        let (ValueRef::Bytes(text), Some(to)) = (v, self.charset) else {
            return None;
        };
        if ty.collation == CollationId::BINARY || text.is_ascii() {
            return None;
        }
        let from = ty.charset();
        if from == to || to.is_binary() {
            return None;
        }
        let mut out = Vec::with_capacity(text.len() * 2);
        charset::convert(from, to, text, &mut out);
        Some(out)
    }

    #[inline]
    fn text(&self, v: ValueRef<'_>, ty: &ColumnType, out: &mut Vec<u8>) {
        match self.converted(v, ty) {
            Some(text) => wire::write_text(ValueRef::Bytes(&text), ty, self.zone, out),
            None => wire::write_text(v, ty, self.zone, out),
        }
    }

    /// Appends a value; true for NULL, which has no bytes.
    #[inline]
    fn binary(&self, v: ValueRef<'_>, ty: &ColumnType, out: &mut Vec<u8>) -> bool {
        match self.converted(v, ty) {
            _ if v.is_null() => {}
            Some(text) => wire::write_binary(ValueRef::Bytes(&text), ty, self.zone, out),
            None => wire::write_binary(v, ty, self.zone, out),
        }
        v.is_null()
    }
}
