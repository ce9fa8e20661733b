//! GET DIAGNOSTICS and SIGNAL.

use super::Expr;
use nfold_types::error::SignalItem;

/// An item of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionItem {
    Text(SignalItem),
    MessageText,
    MysqlErrno,
    ReturnedSqlstate,
}

impl ConditionItem {
    /// The item as it is written.
    pub fn name(self) -> &'static str {
        match self {
            ConditionItem::Text(SignalItem::ClassOrigin) => "CLASS_ORIGIN",
            ConditionItem::Text(SignalItem::SubclassOrigin) => "SUBCLASS_ORIGIN",
            ConditionItem::Text(SignalItem::ConstraintCatalog) => "CONSTRAINT_CATALOG",
            ConditionItem::Text(SignalItem::ConstraintSchema) => "CONSTRAINT_SCHEMA",
            ConditionItem::Text(SignalItem::ConstraintName) => "CONSTRAINT_NAME",
            ConditionItem::Text(SignalItem::CatalogName) => "CATALOG_NAME",
            ConditionItem::Text(SignalItem::SchemaName) => "SCHEMA_NAME",
            ConditionItem::Text(SignalItem::TableName) => "TABLE_NAME",
            ConditionItem::Text(SignalItem::ColumnName) => "COLUMN_NAME",
            ConditionItem::Text(SignalItem::CursorName) => "CURSOR_NAME",
            ConditionItem::MessageText => "MESSAGE_TEXT",
            ConditionItem::MysqlErrno => "MYSQL_ERRNO",
            ConditionItem::ReturnedSqlstate => "RETURNED_SQLSTATE",
        }
    }
}

/// An item of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementItem {
    Number,
    RowCount,
}

/// `SIGNAL SQLSTATE 'state' [SET item = value, …]`
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// Five digits and upper-case letters, not of the class `00`.
    pub sqlstate: String,
    pub items: Vec<(ConditionItem, Expr)>,
}

/// `GET [CURRENT|STACKED] DIAGNOSTICS`; the texts are names of user variables.
#[derive(Clone, Debug, PartialEq)]
pub enum GetDiagnostics {
    /// `STACKED`, of which only a stored program has one.
    Stacked,
    Statement(Vec<(String, StatementItem)>),
    Condition {
        number: Expr,
        items: Vec<(String, ConditionItem)>,
    },
}
