//! LOAD DATA: rows from the fields of a file.

use nfold_catalog::ColumnDef;
use nfold_plan::file_rows::{FileRows, FileTarget};
use nfold_types::convert::store::{implicit_default, is_stored_unchanged, usual_value};
use nfold_types::row::RowLayout;
use nfold_types::{
    Charset, CollationId, ColumnType, ErrorCode, SqlError, TypeKind, Value, ValueRef, charset,
};

use super::file_reader::FileReader;
use super::insert::{Inserting, lacks_default, row_layout};
use crate::env::FileSource;
use crate::expr::documents;
use crate::expr::eval::StmtState;
use crate::operators::column_values::now_value;
use crate::runtime::Runtime;
use crate::runtime::result::{ChangeSummary, StatementResult};

impl<'i> Inserting<'i, '_> {
    /// Inserts the rows of a file.
    ///
    /// # Errors
    /// Those of the file, of conversions (1261 to 1263 and the like), and of the rows.
    pub(super) fn rows_of_file(
        &mut self,
        file: &'i FileRows,
        source: &mut dyn FileSource,
        state: &StmtState<'_>,
    ) -> Result<(), SqlError> {
        let rt = self.rt;
        if !is_ascii(file) {
            let code = ErrorCode::WARN_NON_ASCII_SEPARATOR_NOT_IMPLEMENTED;
            rt.warnings.borrow_mut().warn(code, &[]);
        }
        let from = source.collation();
        let mut reader = FileReader::new(source, &file.format);
        let mut skipped = 0;
        if !file.format.line_end.is_empty() {
            while skipped < file.skip_lines && reader.next_line(rt)? {
                skipped += 1;
            }
            skipped = file.skip_lines;
        }
        let layout = row_layout(self.table);
        let is_whole = self.is_whole(file);
        let is_like_ascii = from.known().charset.is_ascii_compatible();
        let lengths = self.fixed_lengths(file);
        let unnamed = self.columns_without_value();
        loop {
            if skipped < file.skip_lines {
                skipped += 1;
                skip_row((file, lengths.as_deref()), &mut reader, rt)?;
                continue;
            }
            match is_whole && self.rows > 0 {
                true => self.count_row()?,
                false => self.begin_row()?,
            }
            for c in &unnamed {
                let ty = &self.table.def().columns[*c].ty;
                self.row[*c] = implicit_default(ty);
            }
            if !file.set.is_empty() {
                self.begin_named()?;
            }
            let found = match &lengths {
                Some(lengths) => self.fixed_fields((file, lengths), &mut reader, from)?,
                None => self.fields(file, &mut reader, (from, is_like_ascii))?,
            };
            if !found {
                self.rows -= 1;
                return Ok(());
            }
            self.set_columns(file, state, &layout)?;
            self.stop_if_raised()?;
            self.finish_row(&[])?;
            if !reader.next_line(rt)? {
                return Ok(());
            }
            if reader.was_cut() {
                self.too_many_fields()?;
            }
        }
    }

    /// Whether each row has a new value for every column, so that nothing of the row before it
    /// stays.
    fn is_whole(&self, file: &FileRows) -> bool {
        let columns = &self.table.def().columns;
        let in_file = |c: usize| {
            let mut targets = file.targets.iter();
            targets.any(|t| matches!(t, FileTarget::Column(column) if *column == c))
        };
        let mut all = columns.iter().enumerate();
        file.set.is_empty() && all.all(|(c, column)| column.generated.is_none() && in_file(c))
    }

    /// The statement's result for the client and the session.
    pub(super) fn result_of_load(&self) -> StatementResult {
        StatementResult {
            affected: self.affected,
            matched: self.affected,
            generated_id: self.automatic.generated,
            summary: Some(ChangeSummary::Load {
                records: self.rows - self.refused,
                deleted: self.affected - self.inserted,
                skipped: self.rows - self.refused - self.inserted,
                warnings: self.rt.warnings.borrow().total(),
            }),
            ..StatementResult::default()
        }
    }

    /// The columns that neither the file nor their definition has a value for. As in MySQL, they
    /// get the implicit default of their type without a warning.
    fn columns_without_value(&mut self) -> Vec<usize> {
        let def = self.table.def();
        let columns = def.columns.iter().enumerate();
        let unnamed = columns.filter(|(c, column)| !self.named[*c] && lacks_default(column));
        let unnamed: Vec<usize> = unnamed.map(|(c, _)| c).collect();
        unnamed.iter().for_each(|c| self.named[*c] = true);
        self.unnamed.retain(|c| !self.named[*c]);
        unnamed
    }

    /// The bytes of each field, if fields have fixed lengths.
    fn fixed_lengths(&self, file: &FileRows) -> Option<Vec<usize>> {
        let columns = &self.table.def().columns;
        let length = |t: &FileTarget| match t {
            FileTarget::Column(c) => {
                let ty = &columns[*c].ty;
                ty.display_length(ty.charset()) as usize
            }
            FileTarget::Variable(_) => 0,
        };
        let fixed = file.is_fixed();
        fixed.then(|| file.targets.iter().map(length).collect())
    }

    /// Stores the fields of one line; false: the file has no more.
    fn fields(
        &mut self,
        file: &FileRows,
        reader: &mut FileReader<'_>,
        (from, is_like_ascii): (CollationId, bool),
    ) -> Result<bool, SqlError> {
        for (n, target) in file.targets.iter().enumerate() {
            if !reader.read_field(self.rt)? {
                return match n {
                    0 => Ok(false),
                    _ => self.missing_fields(&file.targets[n..], true).map(|()| true),
                };
            }
            let field = reader.field();
            match target {
                FileTarget::Column(c) if field.is_null => self.null_field(*c)?,
                FileTarget::Column(c)
                    if is_like_ascii && self.store_usual_field(*c, field.bytes) => {}
                FileTarget::Column(c) => self.store_field(*c, field.bytes, from)?,
                FileTarget::Variable(name) => {
                    let bytes = (!field.is_null).then_some(field.bytes);
                    self.set_variable(name, bytes, from)?;
                }
            }
        }
        Ok(true)
    }

    /// As [`Self::fields`], of fields with fixed lengths.
    fn fixed_fields(
        &mut self,
        (file, lengths): (&FileRows, &[usize]),
        reader: &mut FileReader<'_>,
        from: CollationId,
    ) -> Result<bool, SqlError> {
        if !reader.read_fixed(self.rt, lengths.iter().sum())? {
            return Ok(false);
        }
        let mut at = 0;
        for (n, (target, len)) in file.targets.iter().zip(lengths).enumerate() {
            let rest = &reader.field().bytes[at..];
            let (FileTarget::Column(c), false) = (target, rest.is_empty()) else {
                self.missing_fields(&file.targets[n..], false)?;
                break;
            };
            let field = &rest[..rest.len().min(*len)];
            at += field.len();
            self.store_field(*c, field, from)?;
        }
        Ok(true)
    }

    /// Stores a field whose value needs no conversion, or that of a usual text; false: any other
    /// field.
    #[inline]
    fn store_usual_field(&mut self, c: usize, field: &[u8]) -> bool {
        let column = &self.table.def().columns[c];
        if column.generated.is_some() {
            return false;
        }
        if !is_stored_unchanged(field, &column.ty) {
            let value = usual_value(field, &column.ty);
            return value.map(|value| self.row[c] = value).is_some();
        }
        match &mut self.row[c] {
            Value::Bytes(bytes) => {
                bytes.clear();
                bytes.extend_from_slice(field);
            }
            value => *value = Value::Bytes(field.to_vec()),
        }
        true
    }

    fn store_field(&mut self, c: usize, field: &[u8], from: CollationId) -> Result<(), SqlError> {
        let def = self.table.def();
        let column = &def.columns[c];
        if column.generated.is_some() {
            return Ok(());
        }
        let value = ValueRef::Bytes(field);
        let stored = (self.values).store_ref(self.rt, column, value, from, self.rows);
        self.row[c] = stored.map_err(|e| documents::with_table(e, &def.name, &column.name))?;
        Ok(())
    }

    /// Stores the value that NULL in the file gives a column.
    fn null_field(&mut self, c: usize) -> Result<(), SqlError> {
        let def = self.table.def();
        let column = &def.columns[c];
        if column.generated.is_some() {
            return Ok(());
        }
        self.row[c] = if column.nullable || column.auto_increment {
            Value::Null
        } else if let Some(now) = self.timestamp(column) {
            now
        } else {
            self.complain(ErrorCode::ER_WARN_NULL_TO_NOTNULL, Some(column))?;
            empty_value(&column.ty)
        };
        Ok(())
    }

    /// The line has ended before these fields. `nulls`: a column whose default is NULL stays NULL.
    fn missing_fields(&mut self, targets: &[FileTarget], nulls: bool) -> Result<(), SqlError> {
        for target in targets {
            let c = match target {
                FileTarget::Column(c) => *c,
                FileTarget::Variable(name) => {
                    self.set_variable(name, None, CollationId::BINARY)?;
                    continue;
                }
            };
            let def = self.table.def();
            let column = &def.columns[c];
            if column.generated.is_none() {
                self.row[c] = match self.timestamp(column) {
                    Some(now) => now,
                    None if nulls && has_null_default(column) => Value::Null,
                    None => empty_value(&column.ty),
                };
            }
            self.complain(ErrorCode::ER_WARN_TOO_FEW_RECORDS, None)?;
        }
        Ok(())
    }

    fn too_many_fields(&self) -> Result<(), SqlError> {
        self.complain(ErrorCode::ER_WARN_TOO_MANY_RECORDS, None)?;
        self.stop_if_raised()
    }

    /// A TIMESTAMP that may not be NULL gets the current time where it has no value.
    fn timestamp(&self, column: &ColumnDef) -> Option<Value> {
        match column.ty.kind {
            TypeKind::Timestamp(fsp) if !column.nullable => Some(now_value(self.rt, column, fsp)),
            _ => None,
        }
    }

    /// Warns about the current row, or about a column of it. In strict mode it fails.
    fn complain(&self, code: ErrorCode, column: Option<&ColumnDef>) -> Result<(), SqlError> {
        let mut warnings = self.rt.warnings.borrow_mut();
        match column {
            Some(column) => warnings.warn(code, &[&column.name, &self.rows]),
            None => warnings.warn(code, &[&self.rows]),
        }
        drop(warnings);
        self.stop_if_raised()
    }

    /// Fails with the error that strict mode has made of a warning.
    fn stop_if_raised(&self) -> Result<(), SqlError> {
        let raised = self.rt.warnings.borrow_mut().take_raised();
        raised.map_or(Ok(()), Err)
    }

    fn set_variable(
        &self,
        name: &str,
        field: Option<&[u8]>,
        from: CollationId,
    ) -> Result<(), SqlError> {
        let connection = self.rt.env.collation();
        let binary = from.known().charset.is_binary();
        let collation = if binary { from } else { connection };
        let value = field.map_or(Value::Null, |bytes| {
            let (from, to) = (from.known().charset, collation.known().charset);
            Value::Bytes(converted(bytes, from, to))
        });
        let ty = ColumnType::string(TypeKind::VarChar(VARIABLE_CHARS), collation);
        self.rt.env.set_user_var(name, value, Some(&ty))
    }

    /// Evaluates the assignments of SET.
    fn set_columns(
        &mut self,
        file: &'i FileRows,
        state: &StmtState<'_>,
        layout: &RowLayout,
    ) -> Result<(), SqlError> {
        let mut image = Vec::new();
        for a in &file.set {
            let at = (a.column, a.value.as_ref());
            self.assign(at, state, layout, Some(&mut image))?;
        }
        Ok(())
    }
}

/// The length that a text in a variable is described with.
const VARIABLE_CHARS: u32 = 16_383;

fn converted(bytes: &[u8], from: &'static Charset, to: &'static Charset) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    charset::convert(from, to, bytes, &mut out);
    out
}

/// Reads the fields of a row that is not inserted. As in MySQL, the row behind it needs no LINES
/// STARTING BY.
fn skip_row(
    (file, lengths): (&FileRows, Option<&[usize]>),
    reader: &mut FileReader<'_>,
    rt: &Runtime<'_>,
) -> Result<(), SqlError> {
    if let Some(lengths) = lengths {
        return reader.read_fixed(rt, lengths.iter().sum()).map(drop);
    }
    for _ in &file.targets {
        if !reader.read_field(rt)? {
            break;
        }
    }
    Ok(())
}

/// The value that a column has where the file has none: of an ENUM the invalid member 0, of another
/// type its implicit default.
fn empty_value(ty: &ColumnType) -> Value {
    match ty.kind {
        TypeKind::Enum(_) => Value::UInt(0),
        _ => implicit_default(ty),
    }
}

/// Whether all delimiters are ASCII.
fn is_ascii(file: &FileRows) -> bool {
    let format = &file.format;
    let delimiters = [
        &format.field_end[..],
        &format.enclosed,
        &format.escaped,
        &format.line_start,
        &format.line_end,
    ];
    delimiters.iter().all(|d| d.is_ascii())
}

/// Whether a column is NULL in a row that says nothing of it.
fn has_null_default(column: &ColumnDef) -> bool {
    use nfold_catalog::ColumnDefault;
    match &column.default {
        ColumnDefault::Null => true,
        ColumnDefault::None => column.nullable,
        _ => false,
    }
}
