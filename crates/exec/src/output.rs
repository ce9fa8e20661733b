//! Result rows: from row images and expressions straight into the sink's buffer.

use nfold_plan::expr::{Expr, ExprKind};
use nfold_types::temporal::TimeZone;
use nfold_types::{ColumnType, SqlError, ValueRef, wire};

use crate::env::{RowSink, WireFormat};
use crate::eval::{EvalCx, row_error};

/// Appends one row to the sink's buffer and ends it. Plain columns are encoded from the row image.
pub(crate) fn emit<'a>(
    cx: &EvalCx<'a>,
    select: &'a [Expr],
    sink: &mut dyn RowSink,
) -> Result<(), SqlError> {
    let zone = cx.env().time_zone();
    match sink.format() {
        WireFormat::Text => {
            let out = sink.row_buffer();
            for e in select {
                match e.kind {
                    ExprKind::Column(at) => {
                        let v = cx.rows[usize::from(at.table)]
                            .get(at.column)
                            .map_err(|e| row_error(&e))?;
                        wire::write_text(v, &e.ty.col, zone, out);
                    }
                    _ => wire::write_text(cx.val(e)?.as_value_ref(), &e.ty.col, zone, out),
                }
            }
        }
        WireFormat::Binary => binary(cx, select, zone, sink.row_buffer())?,
    }
    sink.end_row()
}

fn binary<'a>(
    cx: &EvalCx<'a>,
    select: &'a [Expr],
    zone: &TimeZone,
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
                value(v, &e.ty.col, zone, out)
            }
            _ => value(cx.val(e)?.as_value_ref(), &e.ty.col, zone, out),
        };
        if null {
            out[start + 1 + (n + 2) / 8] |= 1 << ((n + 2) % 8);
        }
    }
    Ok(())
}

/// Appends a value; true for NULL, which has no bytes.
fn value(v: ValueRef<'_>, ty: &ColumnType, zone: &TimeZone, out: &mut Vec<u8>) -> bool {
    if !v.is_null() {
        wire::write_binary(v, ty, zone, out);
    }
    v.is_null()
}
