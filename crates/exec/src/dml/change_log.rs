//! Describes row changes for the binary log: the rows of row events, which the session's journal
//! keeps until the commit.

use nfold_binlog::write::write_value;
use nfold_catalog::{TableDef, Visibility};
use nfold_engine::Table;
use nfold_types::row::RowLayout;
use nfold_types::{ErrorCode, SqlError, ValueRef};

use crate::expr::eval::row_error;
use crate::runtime::Runtime;

/// The kinds of changes in a journal.
pub mod change_kind {
    pub const INSERT: u8 = 0;
    pub const UPDATE: u8 = 1;
    pub const DELETE: u8 = 2;
    /// The bits of the kinds above.
    pub const MASK: u8 = 3;
    /// Added if a replica is not to check foreign keys: the session did not, or the change was
    /// made by one, and a replica would make it twice.
    pub const NO_FOREIGN_KEYS: u8 = 0x40;
}

/// The columns of a table that are in row events. Hidden columns are not.
pub fn logged_columns(def: &TableDef) -> Vec<usize> {
    let all = def.columns.iter().enumerate();
    let shown = all.filter(|(_, c)| c.visibility != Visibility::Hidden);
    shown.map(|(i, _)| i).collect()
}

/// Records the changes of one statement to one table.
pub(super) struct ChangeLog {
    /// Added to the kinds of changes.
    flags: u8,
    columns: Vec<usize>,
    /// The description of the change at hand.
    buffer: Vec<u8>,
    /// A row with its long values.
    whole: Vec<u8>,
}

impl ChangeLog {
    /// `None`: the session does not log changes of this table.
    pub fn new(rt: &Runtime<'_>, table: &Table) -> Option<Box<ChangeLog>> {
        let flags = rt.env.logged_changes().filter(|_| !table.is_private());
        flags.map(|flags| {
            Box::new(ChangeLog {
                flags,
                columns: logged_columns(table.def()),
                buffer: Vec::new(),
                whole: Vec::new(),
            })
        })
    }

    /// Records a change that has just been made: the images of the row before and after it.
    ///
    /// # Errors
    /// The errors of reading long values.
    pub fn add(
        &mut self,
        rt: &Runtime<'_>,
        table: &Table,
        kind: u8,
        images: [Option<&[u8]>; 2],
    ) -> Result<(), SqlError> {
        self.buffer.clear();
        for image in images.into_iter().flatten() {
            if RowLayout::has_external(image) {
                let mut whole = std::mem::take(&mut self.whole);
                rt.drive(|session| session.whole_row(table, image, &mut whole))?;
                let written = self.image(table, &whole);
                self.whole = whole;
                written?;
            } else {
                self.image(table, image)?;
            }
        }
        rt.record_change(table, kind | self.flags, &self.buffer);
        Ok(())
    }

    /// Records a change that a foreign key has made.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn add_cascaded(
        rt: &Runtime<'_>,
        table: &Table,
        kind: u8,
        images: [Option<&[u8]>; 2],
    ) -> Result<(), SqlError> {
        match ChangeLog::new(rt, table) {
            Some(mut log) => log.add(rt, table, kind | change_kind::NO_FOREIGN_KEYS, images),
            None => Ok(()),
        }
    }

    /// Appends the NULL bits and the values of a row.
    fn image(&mut self, table: &Table, row: &[u8]) -> Result<(), SqlError> {
        let nulls = self.buffer.len();
        let layout = table.layout();
        self.buffer
            .resize(nulls + self.columns.len().div_ceil(8), 0);
        for (n, &column) in self.columns.iter().enumerate() {
            let ty = &table.def().columns[column].ty;
            match layout.get(row, column).map_err(|e| row_error(&e))? {
                ValueRef::Null => self.buffer[nulls + n / 8] |= 1 << (n % 8),
                value => write_value(ty, value, &mut self.buffer).map_err(|e| {
                    SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, e.to_string())
                })?,
            }
        }
        Ok(())
    }
}
