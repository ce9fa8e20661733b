//! The tables that HANDLER has opened in a session. `statement` reads them.

use std::sync::Arc;

use nfold_catalog::TableDef;
use nfold_sql::ast::Ident;
use nfold_types::{ErrorCode, SqlError};

/// The tables that the session has opened.
#[derive(Default)]
pub(crate) struct OpenHandlers {
    pub list: Vec<OpenHandler>,
}

pub(crate) struct OpenHandler {
    pub alias: Box<str>,
    pub schema: Arc<str>,
    pub table: Arc<str>,
    /// The definition as of the last statement that used it.
    pub def: Arc<TableDef>,
    pub position: Option<Position>,
}

/// A place between rows, or at one.
pub(crate) struct Position {
    /// The index whose order it belongs to; `None`: the order of the table.
    pub index: Option<usize>,
    /// The conditions of the rows behind the place, and of those before it, as SQL text.
    pub behind: Vec<u8>,
    pub before: Vec<u8>,
}

impl OpenHandlers {
    /// Forgets all positions (FLUSH TABLES).
    pub fn rewind(&mut self) {
        self.list.iter_mut().for_each(|h| h.position = None);
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The open table of this name. Error 1109.
    pub fn find(&mut self, alias: &Ident) -> Result<&mut OpenHandler, SqlError> {
        let unknown = || SqlError::new(ErrorCode::ER_UNKNOWN_TABLE, &[&alias, &"HANDLER"]);
        let mut open = self.list.iter_mut();
        open.find(|h| *h.alias == *alias.value).ok_or_else(unknown)
    }
}

impl Position {
    /// The position behind the last row, or before the first one.
    pub fn end(index: Option<usize>, backwards: bool) -> Position {
        let (all, none) = (b"TRUE".to_vec(), b"FALSE".to_vec());
        let (behind, before) = match backwards {
            true => (all, none),
            false => (none, all),
        };
        Position {
            index,
            behind,
            before,
        }
    }
}
