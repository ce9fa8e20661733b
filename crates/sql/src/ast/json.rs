//! JSON_VALUE and JSON_TABLE, whose clauses no other function has.

use super::{Expr, Ident, TypeSpec};

/// `JSON_VALUE(document, path [RETURNING type] [… ON EMPTY] [… ON ERROR])`
#[derive(Clone, Debug, PartialEq)]
pub struct JsonValue {
    pub document: Expr,
    pub path: Vec<u8>,
    pub returning: Option<TypeSpec>,
    pub fallbacks: JsonFallbacks,
}

/// The clauses ON EMPTY and ON ERROR; `None`: the clause is not written, which means NULL.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonFallbacks {
    pub on_empty: Option<JsonFallback>,
    pub on_error: Option<JsonFallback>,
}

/// The result where a path finds no value, or one that does not convert.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonFallback {
    Null,
    Error,
    /// A literal, possibly with a sign.
    Default(Expr),
}

/// `JSON_TABLE(document, path COLUMNS (…)) alias`
#[derive(Clone, Debug, PartialEq)]
pub struct JsonTable {
    pub document: Expr,
    pub rows: JsonRows,
    pub alias: Ident,
}

/// A path whose values are rows, and the columns of each row.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonRows {
    pub path: Vec<u8>,
    pub columns: Vec<JsonColumn>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JsonColumn {
    /// `name FOR ORDINALITY`
    Ordinality(Ident),
    Value(Box<JsonValueColumn>),
    /// `NESTED PATH path COLUMNS (…)`
    Nested(JsonRows),
}

/// `name type [EXISTS] PATH path [… ON EMPTY] [… ON ERROR]`
#[derive(Clone, Debug, PartialEq)]
pub struct JsonValueColumn {
    pub name: Ident,
    pub ty: TypeSpec,
    pub exists: bool,
    pub path: Vec<u8>,
    pub fallbacks: JsonFallbacks,
}
