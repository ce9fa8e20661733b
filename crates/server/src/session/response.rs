//! The response to a statement, and how it is sent: rows in memory, rows that the executor streams,
//! or OK.

use nfold_exec::{EncodedColumns, ResultText, RowSink, WireFormat};
use nfold_plan::query::ColumnMeta;
use nfold_protocol::response::{Column, Ok as OkPacket};
use nfold_types::collation::CollationId;
use nfold_types::sql_type::ColumnFlags;
use nfold_types::temporal::TimeZone;
use nfold_types::wire::RowFrames;
use nfold_types::{Charset, ColumnType, SqlError, TypeKind, Value};

use crate::net::conn::ResponseWriter;
use crate::net::fiber::handler::ClientError;
use crate::net::worker::Interrupt;

/// The response to a statement.
#[derive(Debug)]
pub enum Response {
    /// OK, without rows.
    Done(Done),
    /// A small result that the session has built (SHOW).
    Rows(RowSet),
    /// The executor has sent columns and rows; the end of the rows is still to be sent.
    Streamed,
}

/// The numbers of an OK packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    pub affected_rows: u64,
    /// The client's `mysql_insert_id()`.
    pub insert_id: u64,
    pub info: String,
}

impl Response {
    /// OK without changes.
    pub fn ok() -> Response {
        Response::Done(Done::default())
    }

    /// OK with a number of changed rows.
    pub fn affected(rows: u64) -> Response {
        Response::Done(Done {
            affected_rows: rows,
            ..Done::default()
        })
    }
}

/// A result in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct RowSet {
    pub columns: Vec<ColumnMeta>,
    pub rows: Vec<Vec<Value>>,
    /// Whether FOUND_ROWS() returns the number of its rows afterwards.
    pub counted: bool,
    /// Whether it shows the conditions of the previous statement, and leaves them unchanged.
    pub of_conditions: bool,
}

impl RowSet {
    /// A result with these columns, each with its name, type and nullability.
    pub fn new(columns: &[(&str, ColumnType)]) -> RowSet {
        RowSet {
            columns: columns
                .iter()
                .map(|(name, ty)| ColumnMeta::without_table(name, ty.clone()))
                .collect(),
            rows: Vec::new(),
            counted: true,
            of_conditions: false,
        }
    }

    /// A result of character columns with these lengths in characters.
    pub fn of_text(columns: &[(&str, u32)]) -> RowSet {
        let columns: Vec<_> = columns
            .iter()
            .map(|&(name, chars)| (name, text_type(chars)))
            .collect();
        RowSet::new(&columns)
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Value>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a value for each column");
        self.rows.push(row);
    }
}

/// `VARCHAR(chars)` as in system tables.
pub fn text_type(chars: u32) -> ColumnType {
    ColumnType::string(TypeKind::VarChar(chars), CollationId::UTF8MB4_0900_AI_CI)
}

/// A column in the protocol, for a client that receives results in the character set of
/// `collation`; `None`: in the column's own.
pub fn wire_column(c: &ColumnMeta, collation: Option<CollationId>) -> Column<'_> {
    let own = c.ty.collation;
    let collation = collation.unwrap_or(own);
    let (type_code, flags, decimals) = if c.made {
        let not_null = c.flags & ColumnFlags::NOT_NULL;
        let flags = not_null | c.ty.computed_wire_flags();
        (
            c.ty.computed_wire_type(),
            flags,
            c.ty.computed_wire_decimals(),
        )
    } else {
        (
            c.ty.wire_type(),
            c.flags | c.ty.wire_flags(),
            c.ty.wire_decimals(),
        )
    };
    Column {
        schema: c.schema.as_bytes(),
        table: c.table.as_bytes(),
        org_table: c.org_table.as_bytes(),
        name: c.name.as_bytes(),
        org_name: c.org_name.as_bytes(),
        collation: c.ty.wire_charset(collation.0),
        length: c.ty.display_length(collation.known().charset),
        type_code: type_code as u8,
        flags,
        decimals,
    }
}

/// Sends the executor's rows to the connection.
pub struct WireSink<'a, 'w> {
    pub out: &'a mut ResponseWriter<'w>,
    pub format: WireFormat,
    /// A collation of the results' character set; `None`: results are not converted.
    pub collation: Option<CollationId>,
    /// Whether the columns were sent, so that an error can only end the result.
    pub begun: bool,
    /// The number of rows sent.
    pub rows: u64,
}

/// The error of an interrupt during sending.
pub fn interrupt_error(why: Interrupt) -> SqlError {
    let ClientError { code, message, .. } = why.to_client_error();
    let code = nfold_types::ErrorCode::from_errno(code)
        .unwrap_or(nfold_types::ErrorCode::ER_QUERY_INTERRUPTED);
    SqlError::with_message(code, message)
}

impl RowSink for WireSink<'_, '_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        let collation = self.collation;
        self.out
            .columns(columns.iter().map(|c| wire_column(c, collation)));
        self.begun = true;
        Ok(())
    }

    fn columns_again(
        &mut self,
        columns: &[ColumnMeta],
        encoded: &mut EncodedColumns,
    ) -> Result<(), SqlError> {
        let key = self.collation.map_or(1, |c| 2 + u32::from(c.0));
        if encoded.key == key && self.out.sends_names_unchanged() {
            self.out.columns_of_packets(columns.len(), &encoded.bytes);
            self.begun = true;
            return Ok(());
        }
        if !self.out.sends_names_unchanged() {
            return self.columns(columns);
        }
        let wire = columns.iter().map(|c| wire_column(c, self.collation));
        self.out.columns_copied(wire, &mut encoded.bytes);
        encoded.key = match encoded.bytes.is_empty() {
            true => 0,
            false => key,
        };
        self.begun = true;
        Ok(())
    }

    fn format(&self) -> WireFormat {
        self.format
    }

    #[inline]
    fn row_buffer(&mut self) -> &mut Vec<u8> {
        self.out.row_buffer()
    }

    #[inline]
    fn end_row(&mut self) -> Result<(), SqlError> {
        self.rows += 1;
        self.out.end_row().map_err(interrupt_error)
    }

    fn end_row_with(&mut self, at: usize, value: &[u8]) -> Result<(), SqlError> {
        self.rows += 1;
        self.out.end_row_with(at, value).map_err(interrupt_error)
    }

    #[inline]
    fn frames(&mut self) -> Option<RowFrames<'_>> {
        Some(self.out.frames())
    }

    #[inline]
    fn framed(&mut self, rows: u64) -> Result<(), SqlError> {
        self.rows += rows;
        self.out.flush_if_much().map_err(interrupt_error)
    }
}

/// Appends one row.
pub fn encode_row(
    row: &[Value],
    columns: &[ColumnMeta],
    format: WireFormat,
    zone: &TimeZone,
    to: Option<&'static Charset>,
    out: &mut Vec<u8>,
) {
    let target = ResultText { zone, charset: to };
    match format {
        WireFormat::Text => {
            for (value, column) in row.iter().zip(columns) {
                target.text(value.as_ref(), &column.ty, out);
            }
        }
        WireFormat::Binary => {
            out.push(0);
            let nulls = out.len();
            out.resize(nulls + (row.len() + 9) / 8, 0);
            for (i, (value, column)) in row.iter().zip(columns).enumerate() {
                if target.binary(value.as_ref(), &column.ty, out) {
                    out[nulls + (i + 2) / 8] |= 1 << ((i + 2) % 8);
                }
            }
        }
    }
}

/// Sends a result in memory, without its end.
pub fn send_rows(
    set: &RowSet,
    sink: &mut WireSink<'_, '_>,
    zone: &TimeZone,
    to: Option<&'static Charset>,
) -> Result<(), SqlError> {
    sink.columns(&set.columns)?;
    for row in &set.rows {
        let format = sink.format;
        encode_row(row, &set.columns, format, zone, to, sink.row_buffer());
        sink.end_row()?;
    }
    Ok(())
}

/// Sends OK.
pub fn send_ok(done: &Done, warnings: u16, out: &mut ResponseWriter<'_>) {
    out.ok(&OkPacket {
        affected_rows: done.affected_rows,
        last_insert_id: done.insert_id,
        status: 0,
        warnings,
        info: &done.info,
    });
}
