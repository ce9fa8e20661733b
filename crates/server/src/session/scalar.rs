//! The value of an expression with subqueries outside of a query (`SET @x = (SELECT ...)`): it is run as `SELECT expression`.

use nfold_exec::{ExecCx, RowSink, SessionEnv, WireFormat};
use nfold_plan::query::ColumnMeta;
use nfold_sql::ast::{
    Expr, Ident, Query, QueryBody, Select, SelectItem, SelectOptions, Span, Statement,
};
use nfold_sql::digest::Digested;
use nfold_sql::parser::Parsed;
use nfold_types::convert::number::{parse_decimal, parse_double, parse_integer};
use nfold_types::{Charset, ColumnType, SqlError, TypeKind, Value, charset};

use super::Session;
use super::run::Work;

/// Takes one row of one column, as text.
#[derive(Default)]
struct OneValue {
    ty: Option<ColumnType>,
    row: Vec<u8>,
}

impl RowSink for OneValue {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.ty = columns.first().map(|c| c.ty.clone());
        Ok(())
    }

    fn format(&self) -> WireFormat {
        WireFormat::Text
    }

    fn row_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.row
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        Ok(())
    }
}

impl OneValue {
    /// The value, of the kind that a user variable keeps. `results`: what texts were converted to; `to`: what variables hold.
    fn value(self, results: Option<&'static Charset>, to: &'static Charset) -> Value {
        let mut reader = nfold_protocol::lenenc::Reader::new(&self.row);
        let text = match self.row.first() {
            None | Some(0xfb) => return Value::Null,
            Some(_) => reader.lenenc_bytes("value").unwrap_or_default(),
        };
        let Some(ty) = self.ty else {
            return Value::Null;
        };
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
}

impl Session {
    /// See the module's header.
    pub(super) fn select_value(
        &mut self,
        cx: &mut dyn ExecCx,
        e: &Expr,
        text: &[u8],
    ) -> Result<Value, SqlError> {
        if !self.free_types.is_empty() {
            return Err(SqlError::not_supported(
                "parameters in SET beside subqueries",
            ));
        }
        let select = Select {
            distinct: false,
            options: SelectOptions::default(),
            items: vec![SelectItem::Expr {
                expr: e.clone(),
                alias: Some(Ident::new("value")),
                text: Span::default(),
            }],
            from: Vec::new(),
            selection: None,
            group_by: Vec::new(),
            with_rollup: false,
            having: None,
            windows: Vec::new(),
        };
        let query = Query {
            with: None,
            body: QueryBody::Select(Box::new(select)),
            order_by: Vec::new(),
            limit: None,
            locking: Vec::new(),
            into: None,
        };
        let parsed = Parsed {
            statement: Statement::Query(Box::new(query)),
            roles: Vec::new(),
            named_by_text: 0,
            deprecated: Vec::new(),
        };
        let digested = Digested::new();
        let work = Work {
            text,
            digested: &digested,
            markers: &[],
            describe: false,
            parsed: Some(&parsed),
            hint: None,
        };
        let mut sink = OneValue::default();
        let result = self.run_once(cx, &work, &mut sink);
        let ended = self.end_work(cx, result.as_ref().err());
        result?;
        ended?;
        let to = self.env.collation().known().charset;
        Ok(sink.value(self.env.result_charset(), to))
    }
}
