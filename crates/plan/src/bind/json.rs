//! JSON_VALUE and JSON_TABLE.

use std::sync::Arc;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{ColumnDef, ColumnDefault, Visibility};
use nfold_json::{ParseError, Path, Work};
use nfold_sql::ast::{self, BinaryOp, Literal, TypeKind as AstKind, TypeSpec};
use nfold_types::{
    CollationId, ColumnType, ErrorCode, NoCheckpoint, SqlError, TextSize, TypeKind, Value,
};

use super::cast::cast;
use super::column_type::{column_type, named_collation};
use super::{BlockBinder, ScopeColumn};
use crate::logical::clauses::BlockWarning;
use crate::logical::expr::{CmpKind, Coercibility, Expr, ExprKind, ExprType};
use crate::logical::json_table::{
    JsonFallback, JsonRows, JsonTable, JsonTableShape, JsonValueColumn,
};

/// The maximum length of JSON_VALUE without RETURNING, in characters.
const VALUE_CHARS: u64 = 512;

/// The codes of the ON EMPTY and ON ERROR clauses, passed as arguments of JSON_VALUE.
mod clause {
    pub const NULL: i64 = 0;
    pub const ERROR: i64 = 1;
    pub const DEFAULT: i64 = 2;
}

impl BlockBinder<'_> {
    /// Binds JSON_VALUE as a function call with these arguments: the document, the path, and for
    /// each of ON EMPTY and ON ERROR a clause code and a default.
    pub(super) fn json_value(&mut self, call: &ast::JsonValue) -> Result<Expr, SqlError> {
        let document = self.expr(&call.document)?;
        path(&call.path)?;
        let ty = match &call.returning {
            None => text_type(VALUE_CHARS, CollationId::UTF8MB4_0900_BIN),
            Some(spec) => self.returned_type(spec, &document)?,
        };
        let collation = CollationId::UTF8MB4_BIN;
        let path_type = ExprType::string(0, collation, Coercibility::Coercible, false);
        let path = Expr::constant(Value::Bytes(call.path.clone()), path_type);
        let mut args = vec![document, path];
        for fallback in [&call.fallbacks.on_empty, &call.fallbacks.on_error] {
            let (number, default) = match fallback {
                None | Some(ast::JsonFallback::Null) => (clause::NULL, Expr::null()),
                Some(ast::JsonFallback::Error) => (clause::ERROR, Expr::null()),
                Some(ast::JsonFallback::Default(e)) => (clause::DEFAULT, self.expr(e)?),
            };
            args.extend([Expr::int(number), default]);
        }
        let Some((func, _)) = self.cx.funcs.find("json_value") else {
            return Err(SqlError::not_supported("JSON_VALUE"));
        };
        let kind = ExprKind::Call { func, args };
        Ok(Expr { kind, ty })
    }

    /// Binds an expression as a condition. A document is true unless it is the number 0, while as a
    /// function's argument it would be converted to a number.
    pub(super) fn truth(&mut self, e: &ast::Expr) -> Result<Expr, SqlError> {
        let mut e = self.expr(e)?;
        super::compare::converted_once(&mut e);
        match e.ty.col.is_json() {
            true => {
                self.warnings.push(BlockWarning::DocumentAsCondition);
                self.compare(BinaryOp::Ne, e, Expr::int(0))
            }
            false => Ok(e),
        }
    }

    /// Binds the comparison of `CASE a WHEN b` if one side is a document, and the other one a
    /// number: the document is compared as the number that it converts to.
    pub(super) fn case_of_documents(&mut self, a: Expr, b: Expr) -> Result<Expr, SqlError> {
        let ty = ExprType::boolean(a.ty.nullable || b.ty.nullable);
        let kind = ExprKind::In {
            expr: Box::new(a),
            list: vec![(CmpKind::Double, b)],
            negated: false,
        };
        Ok(Expr { kind, ty })
    }

    /// The type of the RETURNING clause.
    fn returned_type(&mut self, spec: &TypeSpec, document: &Expr) -> Result<ExprType, SqlError> {
        let chars = spec.length.unwrap_or(u64::from(u32::MAX));
        let chars = chars.min(u64::from(u32::MAX));
        let collation = match spec.kind {
            AstKind::Char => {
                let named = named_collation(spec.charset.as_deref(), None)?;
                named.unwrap_or(CollationId::UTF8MB4_0900_BIN)
            }
            AstKind::Binary => CollationId::BINARY,
            _ => {
                let mut ty = cast(document.clone(), spec, self.cx.connection)?.ty;
                ty.nullable = true;
                return Ok(ty);
            }
        };
        Ok(text_type(chars, collation))
    }

    /// Binds a JSON_TABLE and adds its row slot.
    ///
    /// # Errors
    /// 1060, 1067, 1210, 1235, 3141, 3143, and the errors of names and types.
    pub(super) fn json_table(&mut self, table: &ast::JsonTable) -> Result<(), SqlError> {
        let clause = std::mem::replace(&mut self.clause, "a table function argument");
        let document = self.expr(&table.document)?;
        self.clause = clause;
        if document.any(&mut |e| matches!(e.kind, ExprKind::Subquery { .. })) {
            let code = ErrorCode::ER_WRONG_ARGUMENTS;
            return Err(SqlError::new(code, &[&"JSON_TABLE"]));
        }
        let mut columns = Vec::new();
        let rows = self.json_rows(&table.rows, &mut columns)?;
        let scope = columns.iter().map(|c: &ColumnDef| ScopeColumn {
            name: c.name.clone(),
            ty: c.ty.clone(),
            nullable: true,
            coercibility: None,
            made: false,
            visible: true,
        });
        let scope = scope.collect();
        let shape = Arc::new(JsonTableShape { columns, rows });
        self.json_slot(&table.alias, scope, JsonTable { document, shape })
    }

    fn json_rows(
        &mut self,
        rows: &ast::JsonRows,
        columns: &mut Vec<ColumnDef>,
    ) -> Result<JsonRows, SqlError> {
        let mut bound = JsonRows {
            path: path(&rows.path)?,
            ordinals: Vec::new(),
            values: Vec::new(),
            nested: Vec::new(),
        };
        for column in &rows.columns {
            let (name, ty) = match column {
                ast::JsonColumn::Nested(nested) => {
                    bound.nested.push(self.json_rows(nested, columns)?);
                    continue;
                }
                ast::JsonColumn::Ordinality(name) => {
                    bound.ordinals.push(columns.len());
                    (name, ordinal_type())
                }
                ast::JsonColumn::Value(value) => {
                    bound.values.push(JsonValueColumn {
                        column: columns.len(),
                        path: path(&value.path)?,
                        exists: value.exists,
                        on_empty: fallback(value.fallbacks.on_empty.as_ref(), &value.name.value)?,
                        on_error: fallback(value.fallbacks.on_error.as_ref(), &value.name.value)?,
                    });
                    let connection = self.cx.connection;
                    let name = &value.name.value;
                    let ty = column_type(name, &value.ty, connection, connection)?;
                    (&value.name, ty)
                }
            };
            if columns.iter().any(|c| eq_name(&c.name, &name.value)) {
                let code = ErrorCode::ER_DUP_FIELDNAME;
                return Err(SqlError::new(code, &[&name.value]));
            }
            columns.push(ColumnDef {
                name: name.value.as_str().into(),
                ty,
                nullable: true,
                default: ColumnDefault::Null,
                on_update_now: None,
                auto_increment: false,
                comment: "".into(),
                own_charset: false,
                generated: None,
                visibility: Visibility::Visible,
                histogram: None,
            });
        }
        Ok(bound)
    }
}

/// Converts a document to its text; other values stay unchanged.
pub(super) fn document_text(e: Expr) -> Expr {
    if !e.ty.col.is_json() {
        return e;
    }
    let mut ty = text_type(u64::from(u32::MAX), CollationId::UTF8MB4_BIN);
    ty.coercibility = Coercibility::Implicit;
    Expr::cast(e, ty)
}

/// The type of a column FOR ORDINALITY.
fn ordinal_type() -> ColumnType {
    let mut ty = ColumnType::bigint();
    ty.width = 10;
    ty
}

/// The type of a string of at most `chars` characters; in the binary collation, of a binary string.
fn text_type(chars: u64, collation: CollationId) -> ExprType {
    let mut ty = ExprType::string(chars, collation, Coercibility::Coercible, true);
    if chars == u64::from(u32::MAX) {
        ty.col.kind = match collation {
            CollationId::BINARY => TypeKind::Blob(TextSize::Long),
            _ => TypeKind::Text(TextSize::Long),
        };
        ty.col.width = u32::MAX;
    }
    ty
}

/// Parses a path. Error 3143 if it is malformed.
fn path(text: &[u8]) -> Result<Path, SqlError> {
    Path::parse(&String::from_utf8_lossy(text)).map_err(|e| {
        let code = ErrorCode::ER_INVALID_JSON_PATH;
        SqlError::new(code, &[&e.position, &""])
    })
}

/// Binds ON EMPTY or ON ERROR of a JSON_TABLE column. Its default is text that is parsed as a
/// document.
fn fallback(clause: Option<&ast::JsonFallback>, column: &str) -> Result<JsonFallback, SqlError> {
    let text = match clause {
        None | Some(ast::JsonFallback::Null) => return Ok(JsonFallback::Null),
        Some(ast::JsonFallback::Error) => return Ok(JsonFallback::Error),
        Some(ast::JsonFallback::Default(ast::Expr::Literal(Literal::String(text)))) => text,
        Some(ast::JsonFallback::Default(_)) => {
            return Err(SqlError::not_supported(
                "non-string DEFAULT value for a column in a JSON_TABLE expression",
            ));
        }
    };
    let work = Work::new(&NoCheckpoint);
    let value = nfold_json::parse(&text.bytes, &work).map_err(|e| match e {
        ParseError::Syntax(message, position) => SqlError::new(
            ErrorCode::ER_INVALID_JSON_TEXT_IN_PARAM,
            &[&1, &"JSON_TABLE", &message, &position, &""],
        ),
        ParseError::Other(e) => e,
    })?;
    if matches!(
        value,
        nfold_json::Json::Array(_) | nfold_json::Json::Object(_)
    ) {
        return Err(SqlError::new(ErrorCode::ER_INVALID_DEFAULT, &[&column]));
    }
    let bytes = nfold_json::binary::encode(&value, &work)?;
    Ok(JsonFallback::Default(bytes.into()))
}
