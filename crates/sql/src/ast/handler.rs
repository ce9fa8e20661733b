//! HANDLER: reading a table by its indexes.

use super::{Ident, ObjectName, Span};

/// `HANDLER name OPEN|CLOSE|READ …`
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// The table to open, or the name of an open handler.
    pub name: ObjectName,
    pub action: HandlerAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum HandlerAction {
    Open { alias: Option<Ident> },
    Close,
    Read(HandlerRead),
}

/// `READ [index] … [WHERE condition] [LIMIT …]`. Expressions are kept as their texts.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerRead {
    /// `None`: the rows in the order of the table.
    pub index: Option<Ident>,
    pub rows: HandlerRows,
    pub condition: Option<Span>,
    pub offset: u64,
    pub count: u64,
}

/// Which rows a READ begins with.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerRows {
    First,
    Next,
    Prev,
    Last,
    /// `= (value, …)` and its like.
    Key {
        op: HandlerOp,
        values: Vec<Span>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerOp {
    Eq,
    Le,
    Ge,
    Lt,
    Gt,
}
