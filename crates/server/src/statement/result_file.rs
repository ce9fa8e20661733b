//! `SELECT ... INTO OUTFILE` and `INTO DUMPFILE`: rows are read from the wire format into a file.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use nfold_exec::{ExecCx, Executable, RowSink, StatementResult, WireFormat};
use nfold_plan::query::ColumnMeta;
use nfold_protocol::lenenc::Reader;
use nfold_sql::ast::{FileFormat, OutFile};
use nfold_types::{Charset, ColumnType, ErrorCode, Level, SqlError, TypeKind, charset};

use super::server_file::ServerPath;
use crate::net::worker::FiberCx;
use crate::session::Session;
use crate::session::cx::FiberExec;
use crate::session::cx::apart;
use crate::session::plans::{Cached, Work};
use crate::session::response::WireSink;

/// Bytes that are written at a time.
const WRITE_BYTES: usize = 256 << 10;
/// Characters that mean another one after the escape character: `n` means a newline.
const ESCAPED: &[u8] = b"ntrb0ZN";
/// Bytes of numbers.
const NUMERIC: &[u8] = b".0123456789e+-";

impl Session {
    /// Runs a query whose rows go into a text file.
    ///
    /// # Errors
    /// 1045, 1086, 1290, 1 and 1026 of the file, 1115 of its character set.
    #[inline(never)]
    pub(super) fn execute_outfile(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        run: (&Cached, &mut Executable),
        (to, sink): (&OutFile, &mut WireSink<'_, '_>),
    ) -> Result<StatementResult, SqlError> {
        let unknown = |name: &String| SqlError::new(ErrorCode::ER_UNKNOWN_CHARACTER_SET, &[name]);
        let charset = match &to.charset {
            Some(name) => Some(Charset::by_name(name).ok_or_else(|| unknown(name))?),
            None => None,
        };
        let charset = charset.filter(|set| !set.is_binary());
        if !is_ascii(&to.format) {
            let code = ErrorCode::WARN_NON_ASCII_SEPARATOR_NOT_IMPLEMENTED;
            self.conditions.warn(code, &[]);
        }
        let mut writer = TextWriter {
            to: self.new_file(&to.file, sink)?,
            rules: Rules::new(&to.format),
            format: &to.format,
            charset,
            columns: Vec::new(),
            row: Vec::new(),
            rows: 0,
            converted: Vec::new(),
            lossy: Vec::new(),
        };
        let result = self.execute_to_file(cx, work, run, &mut writer);
        let TextWriter {
            to, rules, lossy, ..
        } = writer;
        let result = to.finish(result)?;
        if rules.is_ambiguous {
            let code = ErrorCode::ER_AMBIGUOUS_FIELD_TERM;
            self.conditions.warn(code, &[]);
        }
        for warning in &lossy {
            self.conditions.push_error(Level::Warning, warning);
        }
        Ok(result)
    }

    /// Runs a query whose only row goes into a file, as it is.
    ///
    /// # Errors
    /// Those of [`Self::execute_outfile`], and 1172 for a second row.
    #[inline(never)]
    pub(super) fn execute_dumpfile(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        run: (&Cached, &mut Executable),
        (name, sink): (&[u8], &mut WireSink<'_, '_>),
    ) -> Result<StatementResult, SqlError> {
        let mut writer = RawWriter {
            to: self.new_file(name, sink)?,
            row: Vec::new(),
            rows: 0,
        };
        let result = self.execute_to_file(cx, work, run, &mut writer);
        writer.to.finish(result)
    }

    fn new_file<'f>(
        &mut self,
        name: &[u8],
        sink: &WireSink<'_, 'f>,
    ) -> Result<NewFile<'f>, SqlError> {
        Ok(NewFile {
            fiber: sink.out.fiber(),
            path: self.server_path(name)?,
            file: None,
            bytes: Vec::new(),
        })
    }

    /// Runs the query. Texts stay in the character sets that they have.
    fn execute_to_file(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        run: (&Cached, &mut Executable),
        writer: &mut dyn RowSink,
    ) -> Result<StatementResult, SqlError> {
        self.env.writes_file.set(true);
        let result = self.execute_plan(cx, work, run, writer);
        self.env.writes_file.set(false);
        let result = result?;
        self.env.found_rows.set(result.found_rows);
        Ok(StatementResult {
            is_query: false,
            affected: result.rows,
            ..result
        })
    }
}

/// A file that a statement makes. It is removed if the statement fails.
struct NewFile<'f> {
    fiber: &'f FiberCx<'f>,
    path: ServerPath,
    file: Option<Arc<File>>,
    /// Bytes that are still to be written.
    bytes: Vec<u8>,
}

impl NewFile<'_> {
    fn create(&mut self) -> Result<(), SqlError> {
        let path = self.path.clone();
        let mut fiber = FiberExec { fiber: self.fiber };
        let file = apart(&mut fiber, move || path.create())??;
        self.file = Some(Arc::new(file));
        Ok(())
    }

    fn write_if_much(&mut self) -> Result<(), SqlError> {
        match self.bytes.len() < WRITE_BYTES {
            true => Ok(()),
            false => self.write(),
        }
    }

    fn write(&mut self) -> Result<(), SqlError> {
        let Some(file) = self.file.clone() else {
            return Ok(());
        };
        let bytes = std::mem::take(&mut self.bytes);
        let mut fiber = FiberExec { fiber: self.fiber };
        let written = apart(&mut fiber, move || {
            (&*file).write_all(&bytes).map(|()| bytes)
        })?;
        let failed = |e| self.path.error(ErrorCode::ER_ERROR_ON_WRITE, &e);
        self.bytes = written.map_err(failed)?;
        self.bytes.clear();
        Ok(())
    }

    /// Writes the rest, or removes the file of a statement that failed.
    fn finish(
        mut self,
        result: Result<StatementResult, SqlError>,
    ) -> Result<StatementResult, SqlError> {
        let result = result.and_then(|result| self.write().map(|()| result));
        if result.is_err() && self.file.is_some() {
            let path = self.path.clone();
            let mut fiber = FiberExec { fiber: self.fiber };
            apart(&mut fiber, move || path.remove())?;
        }
        result
    }
}

/// How the values of a column are written.
struct FileColumn {
    name: Arc<str>,
    is_text: bool,
    /// The character set of its values, and the one that they get in the file.
    from: &'static Charset,
    to: &'static Charset,
    /// Bytes, in rows of fixed lengths.
    width: usize,
}

/// Writes rows as LOAD DATA reads them.
struct TextWriter<'f, 'q> {
    to: NewFile<'f>,
    rules: Rules,
    format: &'q FileFormat,
    charset: Option<&'static Charset>,
    columns: Vec<FileColumn>,
    row: Vec<u8>,
    rows: u64,
    /// A value in the file's character set.
    converted: Vec<u8>,
    /// Warnings 1366.
    lossy: Vec<SqlError>,
}

/// How bytes are escaped (`Query_result_export`).
struct Rules {
    escape: Option<u8>,
    enclosed: Option<u8>,
    /// Only texts are enclosed.
    optionally: bool,
    field_end: Option<u8>,
    line_end: Option<u8>,
    /// What ends a line.
    line_end_bytes: Vec<u8>,
    /// Numbers hold the sign that ends or encloses fields.
    escapes_numbers: bool,
    /// The sign that ends or encloses fields means another one when it is escaped: it is doubled.
    doubled: Option<u8>,
    /// Fields may not be told from each other (warning 1475).
    is_ambiguous: bool,
}

impl Rules {
    fn new(format: &FileFormat) -> Rules {
        let first = |bytes: &[u8]| bytes.first().copied();
        let (field_end, enclosed) = (first(&format.field_end), first(&format.enclosed));
        let line_end_bytes = match format.line_end.is_empty() {
            true => format.field_end.clone(),
            false => format.line_end.clone(),
        };
        let separator = enclosed.or(field_end);
        let among = |bytes: &[u8]| separator.filter(|b| bytes.contains(b));
        Rules {
            escape: first(&format.escaped),
            enclosed,
            optionally: enclosed.is_none() || format.optionally && field_end.is_some(),
            field_end,
            line_end: first(&line_end_bytes),
            line_end_bytes,
            escapes_numbers: among(NUMERIC).is_some(),
            doubled: among(ESCAPED),
            is_ambiguous: false,
        }
    }

    /// Whether fields cannot be told from each other.
    fn are_ambiguous(&self, columns: &[FileColumn]) -> bool {
        let texts = columns.iter().any(|c| c.is_text);
        let others = columns.iter().any(|c| !c.is_text);
        let ends_numbers = self.field_end.is_some_and(|b| NUMERIC.contains(&b));
        self.doubled.is_some() && self.enclosed.is_none() && (texts || self.escapes_numbers)
            || self.optionally && others && ends_numbers
    }

    fn needs_escape(&self, byte: u8, enclosed: bool) -> bool {
        let separator = match enclosed {
            true => self.enclosed.or(self.field_end),
            false => self.field_end,
        };
        // Only a sign that encloses fields can be doubled.
        if self.is_ambiguous && !enclosed && self.field_end == Some(byte) {
            return false;
        }
        byte == 0 || [self.escape, separator, self.line_end].contains(&Some(byte))
    }

    /// Appends a value with its escapes.
    fn escape_to(&self, value: &[u8], charset: &Charset, enclosed: bool, out: &mut Vec<u8>) {
        let Some(escape) = self.escape else {
            return out.extend_from_slice(value);
        };
        let mut rest = value;
        while let Some(&byte) = rest.first() {
            let len = match charset.is_multi_byte() && !byte.is_ascii() {
                true => charset.step(rest).max(1),
                false => 1,
            };
            if len == 1 && self.needs_escape(byte, enclosed) {
                let doubles = self.doubled == Some(byte);
                out.push(if doubles { byte } else { escape });
                out.push(if byte == 0 { b'0' } else { byte });
            } else {
                out.extend_from_slice(&rest[..len]);
            }
            rest = &rest[len..];
        }
    }
}

impl TextWriter<'_, '_> {
    /// Appends the fields of a row in the text protocol's format.
    fn write_row(&mut self) {
        let out = &mut self.to.bytes;
        let (rules, format) = (&self.rules, self.format);
        let is_fixed = format.field_end.is_empty() && format.enclosed.is_empty();
        out.extend_from_slice(&format.line_start);
        self.rows += 1;
        let mut reader = Reader::new(&self.row);
        for (n, column) in self.columns.iter().enumerate() {
            if n > 0 {
                out.extend_from_slice(&format.field_end);
            }
            let value = next_value(&mut reader);
            let quote = rules
                .enclosed
                .filter(|_| !rules.optionally || column.is_text);
            let quote = quote.filter(|_| value.is_some());
            out.extend(quote);
            let start = out.len();
            match value {
                None if is_fixed => {}
                None => match rules.escape {
                    Some(escape) => out.extend([escape, b'N']),
                    None => out.extend_from_slice(b"NULL"),
                },
                Some(mut value) => {
                    if column.from != column.to {
                        self.converted.clear();
                        let lost = convert(column, self.rows, value, &mut self.converted);
                        self.lossy.extend(lost);
                        value = &self.converted;
                    }
                    let len = if is_fixed {
                        value.len().min(column.width)
                    } else {
                        value.len()
                    };
                    let value = &value[..len];
                    match column.is_text || rules.escapes_numbers {
                        true => rules.escape_to(value, column.to, quote.is_some(), out),
                        false => out.extend_from_slice(value),
                    }
                }
            }
            if is_fixed {
                let end = start + column.width;
                out.resize(out.len().max(end), b' ');
            }
            out.extend(quote);
        }
        out.extend_from_slice(&rules.line_end_bytes);
    }
}

/// Appends a value in the file's character set. A warning about characters that the set lacks.
fn convert(column: &FileColumn, row: u64, value: &[u8], out: &mut Vec<u8>) -> Option<SqlError> {
    if charset::convert(column.from, column.to, value, out) == 0 {
        return None;
    }
    let mut rest = value;
    let mut scratch = Vec::new();
    while let Some((c, len)) = column.from.decode(rest)
        && column.to.encode(c, &mut scratch)
    {
        rest = &rest[len..];
    }
    let code = ErrorCode::ER_TRUNCATED_WRONG_VALUE_FOR_FIELD;
    let shown = nfold_types::convert::store::printable(rest);
    Some(SqlError::new(
        code,
        &[&"string", &shown, &column.name, &row],
    ))
}

/// The next value of a row in the text protocol's format.
fn next_value<'r>(reader: &mut Reader<'r>) -> Option<&'r [u8]> {
    let rest = reader.rest();
    if rest.first().is_none_or(|b| *b == 0xfb) {
        *reader = Reader::new(rest.get(1..).unwrap_or_default());
        return None;
    }
    Some(reader.lenenc_bytes("value").unwrap_or_default())
}

impl RowSink for TextWriter<'_, '_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        let column = |c: &ColumnMeta| {
            let own = c.ty.charset();
            let charset = match self.charset {
                Some(set) if is_text(&c.ty) && !own.is_binary() => set,
                _ => own,
            };
            FileColumn {
                name: c.name.clone(),
                is_text: is_text(&c.ty),
                from: if c.ty.is_json() {
                    &charset::UTF8MB4
                } else {
                    own
                },
                to: charset,
                width: c.ty.display_length(charset) as usize,
            }
        };
        self.columns = columns.iter().map(column).collect();
        self.rules.is_ambiguous = self.rules.are_ambiguous(&self.columns);
        self.to.create()
    }

    fn format(&self) -> WireFormat {
        WireFormat::Text
    }

    fn row_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.row
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        self.write_row();
        self.row.clear();
        self.to.write_if_much()
    }
}

/// Writes the bytes of one row.
struct RawWriter<'f> {
    to: NewFile<'f>,
    row: Vec<u8>,
    rows: u64,
}

impl RowSink for RawWriter<'_> {
    fn columns(&mut self, _: &[ColumnMeta]) -> Result<(), SqlError> {
        self.to.create()
    }

    fn format(&self) -> WireFormat {
        WireFormat::Text
    }

    fn row_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.row
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        self.rows += 1;
        if self.rows > 1 {
            return Err(SqlError::new(ErrorCode::ER_TOO_MANY_ROWS, &[]));
        }
        let mut reader = Reader::new(&self.row);
        while !reader.rest().is_empty() {
            match next_value(&mut reader) {
                Some(value) => self.to.bytes.extend_from_slice(value),
                None => self.to.bytes.push(0),
            }
        }
        self.row.clear();
        self.to.write_if_much()
    }
}

/// Whether MySQL takes the values for texts (`STRING_RESULT`).
fn is_text(ty: &ColumnType) -> bool {
    !ty.is_numeric() || matches!(ty.kind, TypeKind::Bit(_))
}

fn is_ascii(format: &FileFormat) -> bool {
    let delimiters = [
        &format.field_end,
        &format.enclosed,
        &format.escaped,
        &format.line_start,
        &format.line_end,
    ];
    delimiters.iter().all(|d| d.is_ascii())
}
