//! Conditions of SIGNAL: their own number, SQLSTATE and texts.

/// An item of a condition that holds a text (SQL standard, "condition information item").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum SignalItem {
    ClassOrigin,
    SubclassOrigin,
    ConstraintCatalog,
    ConstraintSchema,
    ConstraintName,
    CatalogName,
    SchemaName,
    TableName,
    ColumnName,
    CursorName,
}

impl SignalItem {
    /// How many items there are.
    pub const COUNT: usize = 10;
}

/// What a SIGNAL says of its condition besides the message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signaled {
    /// MYSQL_ERRNO.
    pub errno: u16,
    /// RETURNED_SQLSTATE, five characters.
    pub sqlstate: Box<str>,
    texts: [Box<str>; SignalItem::COUNT],
}

impl Signaled {
    /// A condition whose texts are empty.
    pub fn new(errno: u16, sqlstate: &str) -> Signaled {
        Signaled {
            errno,
            sqlstate: sqlstate.into(),
            texts: Default::default(),
        }
    }

    /// The text of an item.
    pub fn text(&self, item: SignalItem) -> &str {
        &self.texts[item as usize]
    }

    /// Sets the text of an item.
    pub fn set_text(&mut self, item: SignalItem, text: &str) {
        self.texts[item as usize] = text.into();
    }
}
