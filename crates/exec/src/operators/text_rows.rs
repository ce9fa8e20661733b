//! Rows of texts, of statements whose result no query computes.

use nfold_plan::query::ColumnMeta;
use nfold_types::{SqlError, ValueRef};

use super::output::ResultText;
use crate::env::{RowSink, SessionEnv, WireFormat};

/// Sends a row of texts. Values of numeric columns are parsed from their text. `None` is NULL.
pub fn write_texts(
    row: &[Option<String>],
    columns: &[ColumnMeta],
    env: &dyn SessionEnv,
    sink: &mut dyn RowSink,
) -> Result<(), SqlError> {
    let to = ResultText {
        zone: env.time_zone(),
        charset: env.result_charset(),
    };
    let format = sink.format();
    let out = sink.row_buffer();
    let start = out.len();
    if format == WireFormat::Binary {
        out.push(0);
        out.resize(start + 1 + (columns.len() + 9) / 8, 0);
    }
    for (n, (text, column)) in row.iter().zip(columns).enumerate() {
        let value = match text {
            None => ValueRef::Null,
            Some(t) if column.ty.is_integer() => ValueRef::UInt(t.parse().unwrap_or(0)),
            Some(t) if column.ty.is_numeric() => ValueRef::Double(t.parse().unwrap_or(0.0)),
            Some(t) => ValueRef::Bytes(t.as_bytes()),
        };
        match format {
            WireFormat::Text => to.text(value, &column.ty, out),
            WireFormat::Binary => {
                if to.binary(value, &column.ty, out) {
                    out[start + 1 + (n + 2) / 8] |= 1 << ((n + 2) % 8);
                }
            }
        }
    }
    sink.end_row()
}
