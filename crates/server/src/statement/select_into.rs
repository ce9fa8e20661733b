//! `SELECT ... INTO @a, @b`: stores a row in the wire format in user variables.

use nfold_exec::{ExecCx, Executable, RowSink, SessionEnv, StatementResult, WireFormat};
use nfold_plan::query::{ColumnMeta, Plan};
use nfold_types::convert::number::{parse_decimal, parse_double, parse_integer};
use nfold_types::{
    Charset, CollationId, ColumnType, ErrorCode, SqlError, TypeKind, Value, charset,
};

use crate::session::Session;
use crate::session::plans::Cached;
use crate::session::plans::Work;

/// Keeps the first row of a result, as text. A second row is an error if `only` is set.
#[derive(Default)]
pub(crate) struct FirstRow {
    types: Vec<ColumnType>,
    row: Vec<u8>,
    end: usize,
    rows: u64,
    only: bool,
}

impl RowSink for FirstRow {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.types = columns.iter().map(|c| c.ty.clone()).collect();
        Ok(())
    }

    fn format(&self) -> WireFormat {
        WireFormat::Text
    }

    fn row_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.row
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        self.rows += 1;
        match self.rows {
            1 => self.end = self.row.len(),
            _ => self.row.truncate(self.end),
        }
        match self.rows > 1 && self.only {
            true => Err(SqlError::new(ErrorCode::ER_TOO_MANY_ROWS, &[])),
            false => Ok(()),
        }
    }
}

impl FirstRow {
    /// The values as user variables store them, with their types; `None` without a row. `results`
    /// is the collation that strings were converted to, `connection` that of the variables.
    pub(crate) fn values(
        &self,
        results: Option<&'static Charset>,
        connection: CollationId,
    ) -> Vec<(Value, ColumnType)> {
        let to = connection.known().charset;
        let mut rest = &self.row[..self.end];
        let mut value = |ty: &ColumnType| {
            if rest.first().is_none_or(|&b| b == 0xfb) {
                rest = rest.get(1..).unwrap_or_default();
                return Value::Null;
            }
            let mut reader = nfold_protocol::lenenc::Reader::new(rest);
            let text = reader.lenenc_bytes("value").unwrap_or_default();
            rest = reader.rest();
            value_of(text, ty, results, to)
        };
        match self.rows {
            0 => Vec::new(),
            _ => {
                let typed = |ty: &ColumnType| (value(ty), variable_type(ty, connection));
                self.types.iter().map(typed).collect()
            }
        }
    }
}

/// The type of a variable that is set to a column's value. A string has the connection's collation
/// if its character set is converted to the connection's.
fn variable_type(ty: &ColumnType, connection: CollationId) -> ColumnType {
    let (from, to) = (ty.charset(), connection.known().charset);
    let mut ty = ty.clone();
    if !from.is_binary() && from != to {
        ty.collation = connection;
    }
    ty
}

fn value_of(
    text: &[u8],
    ty: &ColumnType,
    results: Option<&'static Charset>,
    to: &'static Charset,
) -> Value {
    match ty.kind {
        TypeKind::Decimal { .. } => Value::Decimal(parse_decimal(text).value),
        TypeKind::Float | TypeKind::Double => Value::Double(parse_double(text).value),
        TypeKind::Bit(_) => Value::Bytes(text.to_vec()),
        _ if ty.is_integer() => {
            let n = parse_integer(text).value;
            i64::try_from(n).map_or(Value::UInt(n as u64), Value::Int)
        }
        _ => {
            let from = match results {
                Some(set) if !ty.charset().is_binary() => set,
                _ => ty.charset(),
            };
            let mut converted = Vec::with_capacity(text.len());
            charset::convert(from, to, text, &mut converted);
            Value::Bytes(converted)
        }
    }
}

impl Session {
    /// Runs a query whose only row is stored in user variables.
    ///
    /// # Errors
    /// 1172 for a second row; the variables then have the values of the first.
    #[inline(never)]
    pub(crate) fn execute_into(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        run: (&Cached, &mut Executable),
        names: &[String],
    ) -> Result<StatementResult, SqlError> {
        let mut row = FirstRow {
            only: true,
            ..FirstRow::default()
        };
        let explains = matches!(&*run.0.shared.plan, Plan::Explain(_));
        let result = self.execute_plan(cx, work, run, &mut row);
        let values = row.values(self.env.result_charset(), self.env.collation());
        let mut assigned = names.iter().zip(values).map(|(name, (value, ty))| {
            let name = name.to_lowercase();
            self.env.set_user_var(&name, value, Some(&ty))
        });
        let assigned = assigned.try_for_each(|one| one);
        let result = result?;
        assigned?;
        if row.rows == 0 {
            self.conditions.warn(ErrorCode::ER_SP_FETCH_NO_DATA, &[]);
        }
        self.env.found_rows.set(result.found_rows);
        Ok(StatementResult {
            is_query: false,
            affected: if explains { 0 } else { result.rows },
            ..result
        })
    }
}
