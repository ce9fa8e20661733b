//! HANDLER: open tables of a session, and their positions. Each READ runs as a query in the order
//! of an index.
//!
//! A position is a pair of conditions: that of the rows behind it, and that of the rows before it.
//!
//! ```text
//!   index (a, b), primary key id; the last row was (3, 'b', 6)
//!   behind:  a >= 3 AND (a > 3 OR a <=> 3 AND b > 'b' OR a <=> 3 AND b <=> 'b' AND id > 6)
//! ```
//! A table without a primary key numbers its rows in that order instead, in each READ.

use std::sync::Arc;

use nfold_catalog::{Privileges, TableDef, Visibility};
use nfold_exec::{ExecCx, RowSink, WireFormat};
use nfold_plan::query::ColumnMeta;
use nfold_protocol::lenenc::Reader;
use nfold_sql::ast::{Handler, HandlerAction, HandlerOp, HandlerRead, HandlerRows, Ident, Span};
use nfold_sql::parser::parse_expression;
use nfold_types::{ErrorCode, SqlError, TypeKind};

use crate::session::Session;
use crate::session::handlers::{OpenHandler, Position};
use crate::session::plans::Work;
use crate::session::response::{Response, WireSink};
use crate::session::system_schemas::is_system_schema;

/// The column that numbers the rows of a table without a primary key.
const ROW_NUMBER: &str = "`row number of handler`";

/// How the value of a key column is written as a literal.
enum LiteralForm {
    Number,
    Double,
    /// As text in quotes: dates and times.
    Quoted,
    /// The hexadecimal digits of a string of this character set.
    Hex(&'static str),
}

/// A column of the order.
struct KeyColumn {
    /// The column as ORDER BY names it.
    name: String,
    /// As conditions compare it, and as the query selects it.
    compared: String,
    selected: String,
    form: LiteralForm,
    desc: bool,
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

impl KeyColumn {
    fn of(def: &TableDef, alias: &str, column: usize, desc: bool) -> Result<KeyColumn, SqlError> {
        let column = &def.columns[column];
        if column.visibility == Visibility::Hidden {
            return Err(SqlError::not_supported("HANDLER with functional key parts"));
        }
        let name = format!("{alias}.{}", quoted(&column.name));
        let (compared, form) = match &column.ty.kind {
            TypeKind::Float | TypeKind::Double => (format!("({name} + 0e0)"), LiteralForm::Double),
            TypeKind::Enum(_) | TypeKind::Set(_) | TypeKind::Bit(_) | TypeKind::Year => {
                (format!("({name} + 0)"), LiteralForm::Number)
            }
            _ if column.ty.is_integer() => (name.clone(), LiteralForm::Number),
            TypeKind::Decimal { .. } => (name.clone(), LiteralForm::Number),
            TypeKind::Date | TypeKind::Time(_) | TypeKind::DateTime(_) | TypeKind::Timestamp(_) => {
                (name.clone(), LiteralForm::Quoted)
            }
            _ => (name.clone(), LiteralForm::Hex(column.ty.charset().name)),
        };
        let selected = match form {
            LiteralForm::Hex(_) => format!("HEX({name})"),
            _ => compared.clone(),
        };
        Ok(KeyColumn {
            name,
            compared,
            selected,
            form,
            desc,
        })
    }

    /// A value of the column, as it was selected.
    fn literal(&self, text: &[u8]) -> String {
        let text = String::from_utf8_lossy(text);
        match self.form {
            LiteralForm::Number => text.into_owned(),
            LiteralForm::Double if text.contains('e') => text.into_owned(),
            LiteralForm::Double => format!("{text}e0"),
            LiteralForm::Quoted => format!("'{text}'"),
            LiteralForm::Hex("binary") => format!("X'{text}'"),
            LiteralForm::Hex(set) => format!("_{set} X'{text}'"),
        }
    }
}

/// A column with a value of it; `None` is NULL.
type KeyValue<'k> = (&'k str, bool, Option<Vec<u8>>);

/// The condition of the rows behind a key in an order, or of those before it.
fn beyond(key: &[KeyValue<'_>], behind: bool) -> Vec<u8> {
    let mut terms: Vec<Vec<u8>> = Vec::new();
    let mut equal: Vec<u8> = Vec::new();
    for (column, desc, value) in key {
        let column = column.as_bytes();
        let larger = behind != *desc;
        let further = match (value, larger) {
            (None, true) => Some([column, b" IS NOT NULL"].concat()),
            (None, false) => None,
            (Some(value), true) => Some([column, b" > ", value].concat()),
            (Some(value), false) => {
                Some([b"(", column, b" < ", value, b" OR ", column, b" IS NULL)"].concat())
            }
        };
        terms.extend(further.map(|further| [&*equal, &*further].concat()));
        let value = value.as_deref().unwrap_or(b"NULL");
        equal.extend([column, b" <=> ", value, b" AND "].concat());
    }
    let any = match terms.is_empty() {
        true => b"FALSE".to_vec(),
        false => terms.join(&b" OR "[..]),
    };
    // The range of the first column lets an index find the rows.
    match key {
        [(column, desc, Some(value)), _, ..] if behind != *desc => {
            [column.as_bytes(), b" >= ", value, b" AND (", &any, b")"].concat()
        }
        [(column, _, Some(value)), _, ..] => {
            let column = column.as_bytes();
            let range: [&[u8]; 6] = [b"(", column, b" <= ", value, b" OR ", column];
            [&range.concat()[..], b" IS NULL) AND (", &any, b")"].concat()
        }
        _ => any,
    }
}

fn equal(key: &[KeyValue<'_>]) -> Vec<u8> {
    let part = |(column, _, value): &KeyValue<'_>| {
        let value = value.as_deref().unwrap_or(b"NULL");
        [column.as_bytes(), b" <=> ", value].concat()
    };
    key.iter().map(part).collect::<Vec<_>>().join(&b" AND "[..])
}

/// The rows of a READ in the order of an index.
struct ReadPlan {
    /// The columns of the order, the last ones unique.
    order: Vec<KeyColumn>,
    from: String,
    /// The columns that the client gets.
    shown: String,
    width: usize,
}

impl ReadPlan {
    /// `index`: `None` is the order of the table.
    fn new(h: &OpenHandler, index: Option<usize>) -> Result<ReadPlan, SqlError> {
        let (def, alias) = (&h.def, quoted(&h.alias));
        let table = format!("{}.{}", quoted(&h.schema), quoted(&h.table));
        let visible = def.columns.iter();
        let visible = visible.filter(|c| c.visibility == Visibility::Visible);
        let shown: Vec<String> = visible
            .map(|c| format!("{alias}.{}", quoted(&c.name)))
            .collect();
        let (mut order, mut placed) = (Vec::new(), Vec::new());
        let clustered = def.has_primary_key().then_some(0);
        let indexes = [index, clustered].into_iter().flatten();
        for part in indexes.flat_map(|n| &def.indexes[n].parts) {
            if !placed.contains(&part.column) {
                placed.push(part.column);
                order.push(KeyColumn::of(def, &alias, part.column, part.desc)?);
            }
        }
        let from = if def.has_primary_key() {
            let index = match index {
                None | Some(0) => "`PRIMARY`".to_owned(),
                Some(n) => quoted(&def.indexes[n].name),
            };
            format!("{table} AS {alias} FORCE INDEX ({index})")
        } else {
            let by = match order.is_empty() {
                true => String::new(),
                false => format!("ORDER BY {}", order_by(&order, false)),
            };
            let number = format!("{alias}.{ROW_NUMBER}");
            order = vec![KeyColumn {
                name: number.clone(),
                compared: number.clone(),
                selected: number,
                form: LiteralForm::Number,
                desc: false,
            }];
            format!(
                "(SELECT *, ROW_NUMBER() OVER ({by}) AS {ROW_NUMBER} FROM {table} AS {alias}) \
                 AS {alias}"
            )
        };
        Ok(ReadPlan {
            order,
            from,
            width: shown.len(),
            shown: shown.join(", "),
        })
    }

    fn text(&self, rows: &[u8], read: &HandlerRead, condition: &[u8], backwards: bool) -> Vec<u8> {
        let keys: Vec<&str> = self.order.iter().map(|k| &*k.selected).collect();
        let (shown, keys, from) = (&self.shown, keys.join(", "), &self.from);
        let order = order_by(&self.order, backwards);
        let start = format!("SELECT {shown}, {keys} FROM {from} WHERE (");
        let end = format!(") ORDER BY {order} LIMIT {}, {}", read.offset, read.count);
        [start.as_bytes(), rows, condition, end.as_bytes()].concat()
    }

    /// The position at the row with these values of the order's columns.
    fn at(&self, values: &[Option<Vec<u8>>], index: Option<usize>) -> Position {
        let key: Vec<KeyValue<'_>> = (self.order.iter().zip(values))
            .map(|(k, v)| {
                let value = v.as_ref().map(|v| k.literal(v).into_bytes());
                (&*k.compared, k.desc, value)
            })
            .collect();
        around(&key, index)
    }
}

/// The position at a key.
fn around(key: &[KeyValue<'_>], index: Option<usize>) -> Position {
    Position {
        index,
        behind: beyond(key, true),
        before: beyond(key, false),
    }
}

fn order_by(columns: &[KeyColumn], backwards: bool) -> String {
    let one = |k: &KeyColumn| match k.desc != backwards {
        true => format!("{} DESC", k.name),
        false => k.name.clone(),
    };
    columns.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Passes rows on without the values of the order's columns, and keeps those of the last row.
struct LastKey<'o, 'a, 'b> {
    out: &'o mut WireSink<'a, 'b>,
    row: Vec<u8>,
    width: usize,
    key: Vec<Option<Vec<u8>>>,
    rows: u64,
}

impl RowSink for LastKey<'_, '_, '_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        self.out.columns(&columns[..self.width])
    }

    fn format(&self) -> WireFormat {
        WireFormat::Text
    }

    fn row_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.row
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        self.rows += 1;
        self.key.clear();
        let (mut rest, mut read) = (&*self.row, 0);
        let mut shown = rest.len();
        while let Some(&first) = rest.first() {
            if read == self.width {
                shown = self.row.len() - rest.len();
            }
            let mut value = None;
            if first == 0xfb {
                rest = &rest[1..];
            } else {
                let mut reader = Reader::new(rest);
                let bytes = reader.lenenc_bytes("value").unwrap_or_default();
                value = Some(bytes.to_vec());
                rest = reader.rest();
            }
            if read >= self.width {
                self.key.push(value);
            }
            read += 1;
        }
        self.out.row_buffer().extend_from_slice(&self.row[..shown]);
        self.row.clear();
        self.out.end_row()
    }
}

impl Session {
    /// HANDLER.
    pub(super) fn handler(
        &mut self,
        cx: &mut dyn ExecCx,
        h: &Handler,
        text: &[u8],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        if !self.table_locks.is_empty() && h.action != HandlerAction::Close {
            return Err(SqlError::new(ErrorCode::ER_LOCK_OR_ACTIVE_TRANSACTION, &[]));
        }
        match &h.action {
            HandlerAction::Open { alias } => self.open_handler(h, alias.as_ref()),
            HandlerAction::Close => {
                self.handlers.find(&h.name.name)?;
                let closed = |open: &OpenHandler| *open.alias == *h.name.name.value;
                self.handlers.list.retain(|open| !closed(open));
                Ok(Response::ok())
            }
            HandlerAction::Read(read) => {
                // Taken out while the query runs.
                let mut handlers = std::mem::take(&mut self.handlers);
                let found = handlers.find(&h.name.name);
                let result = found.and_then(|open| self.read_handler(cx, open, (read, text), sink));
                self.handlers = handlers;
                result
            }
        }
    }

    fn open_handler(&mut self, h: &Handler, alias: Option<&Ident>) -> Result<Response, SqlError> {
        let (schema, table) = (self.schema_of(&h.name)?, h.name.name.as_str());
        let alias = alias.unwrap_or(&h.name.name).as_str();
        if self.handlers.list.iter().any(|open| *open.alias == *alias) {
            return Err(SqlError::new(ErrorCode::ER_NONUNIQ_TABLE, &[&alias]));
        }
        self.refresh_schema();
        let not_base = |name: &str| {
            let code = ErrorCode::ER_WRONG_OBJECT;
            SqlError::new(code, &[&schema, &name, &"BASE TABLE"])
        };
        if is_system_schema(&schema) {
            return Err(not_base(&table.to_uppercase()));
        }
        let def = match self.temporary.find(&schema, table) {
            Some(own) => own.clone(),
            None => {
                self.rights.need_table(Privileges::SELECT, &schema, table)?;
                self.table_def(&schema, table)?
            }
        };
        if def.is_view() {
            return Err(not_base(table));
        }
        self.handlers.list.push(OpenHandler {
            alias: alias.into(),
            schema: schema.clone(),
            table: table.into(),
            def,
            position: None,
        });
        Ok(Response::ok())
    }

    /// The current definition of an open table.
    fn handler_def(&self, open: &OpenHandler) -> Option<Arc<TableDef>> {
        let own = self.temporary.find(&open.schema, &open.table);
        own.or_else(|| self.schema.table(&open.schema, &open.table))
            .cloned()
    }

    /// Called after DDL of the session: closes the tables that it has changed.
    pub(super) fn close_changed_handlers(&mut self) {
        self.refresh_schema();
        let mut handlers = std::mem::take(&mut self.handlers);
        handlers.list.retain(|open| {
            self.handler_def(open)
                .is_some_and(|def| Arc::ptr_eq(&def, &open.def))
        });
        self.handlers = handlers;
    }

    fn read_handler(
        &mut self,
        cx: &mut dyn ExecCx,
        open: &mut OpenHandler,
        (read, text): (&HandlerRead, &[u8]),
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        self.refresh_schema();
        let gone = || SqlError::new(ErrorCode::ER_NO_SUCH_TABLE, &[&open.schema, &open.table]);
        let def = self.handler_def(open).ok_or_else(gone)?;
        if !Arc::ptr_eq(&def, &open.def) {
            // Another session has changed the table.
            (open.def, open.position) = (def, None);
        }
        let index = match &read.index {
            None => None,
            Some(name) if name.is("PRIMARY") && open.def.has_primary_key() => Some(0),
            Some(name) => {
                let code = ErrorCode::ER_KEY_DOES_NOT_EXITS;
                let unknown = || SqlError::new(code, &[&name, &open.alias]);
                Some(open.def.index(name.as_str()).ok_or_else(unknown)?)
            }
        };
        let multi_valued = |n: usize| open.def.array_part(&open.def.indexes[n]).is_some();
        if index.is_some_and(multi_valued) {
            let what = "HANDLER ... READ of a multi-valued or full-text index";
            return Err(SqlError::not_supported(what));
        }
        let plan = ReadPlan::new(open, index)?;
        let position = open.position.as_ref().filter(|p| p.index == index);
        let mut missed = None;
        let (rows, backwards) = match (&read.rows, position) {
            (HandlerRows::Next, Some(position)) => (position.behind.clone(), false),
            (HandlerRows::Prev, Some(position)) => (position.before.clone(), true),
            (HandlerRows::First | HandlerRows::Next, _) => (b"TRUE".to_vec(), false),
            (HandlerRows::Last | HandlerRows::Prev, _) => (b"TRUE".to_vec(), true),
            (HandlerRows::Key { op, values }, _) => {
                let names = self.key_columns(open, index, values.len())?;
                let key = self.key_values(cx, &names, (values, text))?;
                missed = (*op == HandlerOp::Eq).then(|| around(&key, index));
                rows_of_key(*op, &key)
            }
        };
        let condition = read
            .condition
            .map_or_else(Vec::new, |span| [b") AND (", span.of(text)].concat());
        let query = plan.text(&rows, read, &condition, backwards);
        let mut out = LastKey {
            out: sink,
            row: Vec::new(),
            width: plan.width,
            key: Vec::new(),
            rows: 0,
        };
        let result = self.run_handler_query(cx, &query, &mut out);
        let (key, found) = (out.key, out.rows);
        let response = result?;
        let reached_end = found < read.count;
        open.position = match missed {
            Some(position) if found == 0 => Some(position),
            None if reached_end => Some(Position::end(index, backwards)),
            _ if found > 0 => Some(plan.at(&key, index)),
            _ => open.position.take(),
        };
        Ok(response)
    }

    fn run_handler_query(
        &mut self,
        cx: &mut dyn ExecCx,
        text: &[u8],
        out: &mut LastKey<'_, '_, '_>,
    ) -> Result<Response, SqlError> {
        let (digested, parsed) = self.parse_with_digest(cx, text)?;
        let work = Work::parsed(text, &digested, &parsed);
        let result = self.run_once(cx, &work, out);
        let ended = self.end_work(cx, result.as_ref().err());
        let result = result.map_err(|e| SqlError {
            message: e.message.replace("'where clause'", "'field list'").into(),
            ..e
        })?;
        ended?;
        Ok(self.after_rows(result, out.out))
    }

    /// The first `count` columns of an index as conditions name them. Error 1070.
    fn key_columns(
        &self,
        open: &OpenHandler,
        index: Option<usize>,
        count: usize,
    ) -> Result<Vec<(String, bool)>, SqlError> {
        let parts = index.map_or(&[][..], |n| &open.def.indexes[n].parts);
        if count > parts.len() {
            let code = ErrorCode::ER_TOO_MANY_KEY_PARTS;
            return Err(SqlError::new(code, &[&parts.len()]));
        }
        let name = |column: usize| {
            let column = &open.def.columns[column].name;
            format!("{}.{}", quoted(&open.alias), quoted(column))
        };
        let parts = parts[..count].iter();
        Ok(parts.map(|part| (name(part.column), part.desc)).collect())
    }

    /// The values of a key, as texts; they are evaluated to learn which are NULL. Error 1210 if one
    /// names a column.
    fn key_values<'k>(
        &mut self,
        cx: &mut dyn ExecCx,
        columns: &'k [(String, bool)],
        (values, text): (&[Span], &[u8]),
    ) -> Result<Vec<KeyValue<'k>>, SqlError> {
        let mut key = Vec::with_capacity(values.len());
        for ((column, desc), span) in columns.iter().zip(values) {
            let written = span.of(text);
            let e = parse_expression(written, self.env.vars.settings().lexing)?;
            let value = self.evaluate(cx, &e, written).map_err(|e| match e.code {
                ErrorCode::ER_BAD_FIELD_ERROR => {
                    let code = ErrorCode::ER_WRONG_ARGUMENTS;
                    SqlError::new(code, &[&"HANDLER ... READ"])
                }
                _ => e,
            })?;
            let written = [b"(", written, b")"].concat();
            key.push((&**column, *desc, (!value.is_null()).then_some(written)));
        }
        Ok(key)
    }
}

/// The rows that a comparison with a key finds, and whether they are read backwards.
fn rows_of_key(op: HandlerOp, key: &[KeyValue<'_>]) -> (Vec<u8>, bool) {
    let or_equal = |rows: Vec<u8>| [&*equal(key), b" OR ", &*rows].concat();
    match op {
        HandlerOp::Eq => (equal(key), false),
        HandlerOp::Ge => (or_equal(beyond(key, true)), false),
        HandlerOp::Gt => (beyond(key, true), false),
        HandlerOp::Le => (or_equal(beyond(key, false)), true),
        HandlerOp::Lt => (beyond(key, false), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_follow_the_order_of_an_index() {
        let key = [
            ("a", false, Some(b"3".to_vec())),
            ("b", true, None),
            ("id", false, Some(b"6".to_vec())),
        ];
        assert_eq!(
            String::from_utf8_lossy(&beyond(&key, true)),
            "a >= 3 AND (a > 3 OR a <=> 3 AND b <=> NULL AND id > 6)"
        );
        assert_eq!(
            String::from_utf8_lossy(&beyond(&key, false)),
            "(a <= 3 OR a IS NULL) AND ((a < 3 OR a IS NULL) OR a <=> 3 AND b IS NOT NULL \
             OR a <=> 3 AND b <=> NULL AND (id < 6 OR id IS NULL))"
        );
        assert_eq!(beyond(&[("a", false, None)], false), b"FALSE");
    }
}
