//! Describes row changes for the binary log: the rows of row events, which the session's journal
//! keeps until the commit.
//!
//! # Picture
//! ```text
//! all columns                       NULL bits · values            for each image
//! change_kind::SOME_COLUMNS         bits: columns of the image    for each image
//!                                 · NULL bits · values            for each image, of these columns
//! ```

use nfold_binlog::write::write_value;
use nfold_catalog::{ColumnDefault, IndexKind, TableDef, Visibility};
use nfold_engine::Table;
use nfold_types::row::RowLayout;
use nfold_types::{ErrorCode, SqlError, TypeKind, ValueRef};

use crate::env::RowImages;
use crate::expr::eval::row_error;
use crate::runtime::Runtime;

/// The kinds of changes in a journal.
pub mod change_kind {
    pub const INSERT: u8 = 0;
    pub const UPDATE: u8 = 1;
    pub const DELETE: u8 = 2;
    /// The bits of the kinds above.
    pub const MASK: u8 = 3;
    /// Added if the description begins with the columns of its images.
    pub const SOME_COLUMNS: u8 = 0x20;
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
    /// `None`: images have all columns.
    partial: Option<Box<PartialImages>>,
    /// The description of the change at hand.
    buffer: Vec<u8>,
    /// A row with its long values.
    whole: Vec<u8>,
}

/// Which of [`ChangeLog::columns`] images have.
struct PartialImages {
    /// Those of the image of a row before its change.
    old: Vec<bool>,
    /// Those that every image of a new row has.
    new: Vec<bool>,
    /// Those that the image of an inserted row has besides.
    filled: Vec<bool>,
    /// A row before its change, with its long values.
    whole_old: Vec<u8>,
}

impl PartialImages {
    fn new(def: &TableDef, columns: &[usize], images: RowImages) -> PartialImages {
        let key = finding_key(def);
        let is_blob = |c: usize| {
            let kind = &def.columns[c].ty.kind;
            matches!(kind, TypeKind::Text(_) | TypeKind::Blob(_))
        };
        let is_large_only = images == RowImages::NoBlob;
        let of = |f: &dyn Fn(usize) -> bool| columns.iter().map(|&c| f(c)).collect();
        PartialImages {
            old: of(&|c| match &key {
                Some(key) => key.contains(&c) || is_large_only && !is_blob(c),
                None => true,
            }),
            new: of(&|c| is_large_only && !is_blob(c)),
            filled: of(&|c| {
                let column = &def.columns[c];
                let computed = matches!(
                    column.default,
                    ColumnDefault::CurrentTimestamp(_) | ColumnDefault::Expr(_)
                );
                computed || column.auto_increment || column.generated.is_some()
            }),
            whole_old: Vec::new(),
        }
    }
}

/// The columns of the key by which replicas find rows: the primary key, or a unique key without
/// NULLs.
fn finding_key(def: &TableDef) -> Option<Vec<usize>> {
    let parts = |kind: IndexKind, may_cut: bool| {
        let mut all = def.indexes.iter().filter(move |index| index.kind == kind);
        let index = all.find(|index| {
            index.parts.iter().all(|part| {
                let column = &def.columns[part.column];
                let is_whole = may_cut || part.prefix_len.is_none();
                is_whole && !column.nullable && column.visibility != Visibility::Hidden
            })
        })?;
        Some(index.parts.iter().map(|part| part.column).collect())
    };
    parts(IndexKind::Primary, true).or_else(|| parts(IndexKind::Unique, false))
}

impl ChangeLog {
    /// `None`: the session does not log changes of this table.
    pub fn new(rt: &Runtime<'_>, table: &Table) -> Option<Box<ChangeLog>> {
        let logged = rt.env.logged_changes().filter(|_| !table.is_private())?;
        let columns = logged_columns(table.def());
        let partial = match logged.images {
            RowImages::Full => None,
            images => Some(PartialImages::new(table.def(), &columns, images)),
        };
        Some(Box::new(ChangeLog {
            flags: logged.flags,
            columns,
            partial: partial.map(Box::new),
            buffer: Vec::new(),
            whole: Vec::new(),
        }))
    }

    /// The statement gives columns values. New images have these columns, also where the value is
    /// as before.
    pub fn set_written(&mut self, written: impl IntoIterator<Item = usize>) {
        let Some(partial) = &mut self.partial else {
            return;
        };
        for column in written {
            if let Some(n) = self.columns.iter().position(|&c| c == column) {
                partial.new[n] = true;
            }
        }
    }

    /// The statement meets a row with the same key (REPLACE, ON DUPLICATE KEY UPDATE). As in MySQL,
    /// new images have all columns from here on.
    pub fn set_all_written(&mut self) {
        if let Some(partial) = &mut self.partial {
            partial.new.fill(true);
        }
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
        if let Some(partial) = self.partial.take() {
            let (partial, written) = self.add_partial(rt, table, partial, images);
            self.partial = Some(partial);
            written?;
            let kind = kind | self.flags | change_kind::SOME_COLUMNS;
            rt.record_change(table, kind, &self.buffer);
            return Ok(());
        }
        for image in images.into_iter().flatten() {
            if RowLayout::has_external(image) {
                let mut whole = std::mem::take(&mut self.whole);
                rt.drive(|session| session.whole_row(table, image, &mut whole))?;
                let written = self.image(table, &whole, |_| true);
                self.whole = whole;
                written?;
            } else {
                self.image(table, image, |_| true)?;
            }
        }
        rt.record_change(table, kind | self.flags, &self.buffer);
        Ok(())
    }

    /// Appends images that have some of the columns, behind the bits of these columns.
    fn add_partial(
        &mut self,
        rt: &Runtime<'_>,
        table: &Table,
        mut partial: Box<PartialImages>,
        images: [Option<&[u8]>; 2],
    ) -> (Box<PartialImages>, Result<(), SqlError>) {
        let mut wholes = [
            std::mem::take(&mut partial.whole_old),
            std::mem::take(&mut self.whole),
        ];
        let written = (|| {
            let mut rows: [Option<&[u8]>; 2] = images;
            for ((row, image), whole) in rows.iter_mut().zip(images).zip(&mut wholes) {
                if let Some(image) = image.filter(|image| RowLayout::has_external(image)) {
                    rt.drive(|session| session.whole_row(table, image, whole))?;
                    *row = Some(whole);
                }
            }
            let new = self.columns_of_new(table, &partial, rows)?;
            let [old_row, new_row] = rows;
            let both = [(old_row, &partial.old), (new_row, &new)];
            for (_, columns) in both.iter().filter(|(row, _)| row.is_some()) {
                self.bits(columns);
            }
            for (row, columns) in both {
                if let Some(row) = row {
                    self.image(table, row, |n| columns[n])?;
                }
            }
            Ok(())
        })();
        let [whole_old, whole] = wholes;
        (partial.whole_old, self.whole) = (whole_old, whole);
        (partial, written)
    }

    /// The columns of the image of a new row.
    fn columns_of_new(
        &self,
        table: &Table,
        partial: &PartialImages,
        [old, new]: [Option<&[u8]>; 2],
    ) -> Result<Vec<bool>, SqlError> {
        let mut has = partial.new.clone();
        let Some(new) = new else {
            return Ok(has);
        };
        let get = |row, c| table.layout().get(row, c).map_err(|e| row_error(&e));
        for (n, &c) in self.columns.iter().enumerate() {
            has[n] |= match old {
                None => partial.filled[n],
                Some(old) => {
                    let column = &table.def().columns[c];
                    column.on_update_now.is_some() || get(old, c)? != get(new, c)?
                }
            };
        }
        // An image without columns would have no bytes.
        if !has.contains(&true) {
            has.fill(true);
        }
        Ok(has)
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

    fn bits(&mut self, columns: &[bool]) {
        let at = self.buffer.len();
        self.buffer.resize(at + columns.len().div_ceil(8), 0);
        for (n, _) in columns.iter().enumerate().filter(|(_, has)| **has) {
            self.buffer[at + n / 8] |= 1 << (n % 8);
        }
    }

    /// Appends the NULL bits and the values of a row, for the columns that the image `has`.
    fn image(
        &mut self,
        table: &Table,
        row: &[u8],
        has: impl Fn(usize) -> bool,
    ) -> Result<(), SqlError> {
        let nulls = self.buffer.len();
        let layout = table.layout();
        let count = (0..self.columns.len()).filter(|&n| has(n)).count();
        self.buffer.resize(nulls + count.div_ceil(8), 0);
        let mut at = 0;
        for (n, &column) in self.columns.iter().enumerate() {
            if !has(n) {
                continue;
            }
            let ty = &table.def().columns[column].ty;
            match layout.get(row, column).map_err(|e| row_error(&e))? {
                ValueRef::Null => self.buffer[nulls + at / 8] |= 1 << (at % 8),
                value => write_value(ty, value, &mut self.buffer).map_err(|e| {
                    SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, e.to_string())
                })?,
            }
            at += 1;
        }
        Ok(())
    }
}
