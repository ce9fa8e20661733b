//! ALTER TABLE: computes the new definition, and the work that is necessary for it.

mod foreign;
mod fulltext;
mod stored;

use nfold_catalog::schema::eq_name;
use nfold_catalog::{ColumnDef, IndexId, IndexKind, TableDef, Visibility};
use nfold_engine::{IndexSpec, TableSpec};
use nfold_sql::ast::{self, AlterAction, AlterTable, ColumnPlace};
use nfold_types::{ColumnType, ErrorCode, Level, SqlError, TypeKind};

use super::fulltext::is_without_document;
use super::{
    Commented, DdlCx, check_column_name, check_table_name, column, comment, error, key,
    named_collation, refuse_engine_attributes, table,
};

/// The kind of change that an ALTER TABLE requires.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Nothing changes.
    Nothing,
    /// Only the definition changes: names, defaults, comments.
    Definition(TableDef),
    /// Secondary indexes are added and dropped; the rows stay.
    Indexes {
        add: Vec<IndexSpec>,
        drop: Vec<IndexId>,
    },
    /// Every row is copied into a new table.
    Copy {
        spec: TableSpec,
        columns: Vec<Source>,
    },
}

/// The source of a column's values in the new table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A column of the old table, by ordinal.
    Old(usize),
    /// The default of the new column.
    Default,
}

/// A bound ALTER TABLE.
#[derive(Debug, Clone, PartialEq)]
pub struct Altered {
    pub change: Change,
    /// `RENAME TO`: the database and the name. It is done last.
    pub rename: Option<(Option<Box<str>>, Box<str>)>,
    /// `AUTO_INCREMENT = n`
    pub auto_increment: Option<u64>,
    /// Whether MySQL would copy the rows, and so counts them in its answer.
    pub counted: bool,
    /// Other tables whose definitions change: children whose referenced column is renamed.
    pub others: Vec<TableDef>,
    /// Whether the copied rows must satisfy the table's foreign keys.
    pub verify: bool,
}

struct Alter<'a> {
    old: &'a TableDef,
    new: TableSpec,
    sources: Vec<Source>,
    explicit_null: Vec<bool>,
    drop: Vec<IndexId>,
    add: Vec<IndexSpec>,
    /// Whether the rows must be copied.
    copy: bool,
    /// As [`Altered::counted`].
    counted: bool,
    definition: bool,
    rename: Option<(Option<Box<str>>, Box<str>)>,
    auto_increment: Option<u64>,
    foreign: foreign::Changes,
    stored: stored::Changes,
}

/// Binds an ALTER TABLE of `old`.
///
/// # Errors
/// 3981, and those of the actions.
pub fn bind(alter: &AlterTable, old: &TableDef, cx: &mut DdlCx<'_>) -> Result<Altered, SqlError> {
    let mut a = Alter {
        old,
        new: table::spec_of(old),
        sources: (0..old.columns.len()).map(Source::Old).collect(),
        explicit_null: vec![false; old.columns.len()],
        drop: Vec::new(),
        add: Vec::new(),
        copy: false,
        counted: alter.algorithm == ast::AlterAlgorithm::Copy,
        definition: false,
        rename: None,
        auto_increment: None,
        foreign: foreign::Changes::of(old),
        stored: stored::Changes::of(old),
    };
    refuse_engine_attributes(&alter.engine_attributes, None)?;
    fulltext::check_added(alter)?;
    for action in &alter.actions {
        a.apply(action, cx)?;
    }
    a.finish(cx)
}

/// Whether MySQL changes a column's type without reading the rows: to a longer VARCHAR with the
/// same size of its length prefix, to an ENUM with more members, or to another collation of the
/// same character set if no index depends on it.
fn changes_definition_only(before: &ColumnType, after: &ColumnType, indexed: bool) -> bool {
    use TypeKind::{Enum, Set, VarBinary, VarChar};
    let alike = ColumnType {
        kind: before.kind.clone(),
        ..after.clone()
    };
    let collation = before.charset() == after.charset() && !indexed;
    if alike != *before && (alike.collation == before.collation || !collation) {
        return false;
    }
    match (&before.kind, &after.kind) {
        (VarChar(n), VarChar(m)) | (VarBinary(n), VarBinary(m)) => {
            n <= m && (before.max_bytes() > 255) == (after.max_bytes() > 255)
        }
        (Enum(old), Enum(new)) => new.starts_with(old) && (old.len() < 256) == (new.len() < 256),
        (Set(old), Set(new)) => {
            new.starts_with(old) && old.len().div_ceil(8) == new.len().div_ceil(8)
        }
        (a, b) => a == b,
    }
}

/// Error 3106 if MODIFY changes the kind of a generated column. A STORED column may become an
/// ordinary one, and vice versa.
fn refuse_other_storage(before: &ColumnDef, after: &ColumnDef) -> Result<(), SqlError> {
    let stored = |c: &ColumnDef| c.generated.as_ref().is_none_or(|g| g.stored);
    if stored(before) == stored(after) {
        return Ok(());
    }
    let what = "Changing the STORED status";
    let code = ErrorCode::ER_UNSUPPORTED_ACTION_ON_GENERATED_COLUMN;
    Err(error(code, &[&what]))
}

impl Alter<'_> {
    fn column(&self, name: &str) -> Option<usize> {
        self.new.columns.iter().position(|c| eq_name(&c.name, name))
    }

    fn existing(&self, name: &str) -> Result<usize, SqlError> {
        self.column(name)
            .ok_or_else(|| error(ErrorCode::ER_BAD_FIELD_ERROR, &[&name, &self.old.name]))
    }

    fn apply(&mut self, action: &AlterAction, cx: &mut DdlCx<'_>) -> Result<(), SqlError> {
        match action {
            AlterAction::AddColumn {
                column: c,
                keys,
                place,
            } => self.add_column(c, keys, place, cx),
            AlterAction::DropColumn(name) => self.drop_column(name.as_str()),
            AlterAction::ChangeColumn {
                old,
                column: c,
                keys,
                place,
            } => self.change_column(old.as_str(), c, keys, place, cx),
            AlterAction::RenameColumn { old, new } => {
                let at = self.existing(old.as_str())?;
                if self.column(new.as_str()).is_some_and(|o| o != at) {
                    return Err(error(ErrorCode::ER_DUP_FIELDNAME, &[&new.as_str()]));
                }
                check_column_name(new.as_str())?;
                self.rename_column(at, new.as_str());
                self.definition = true;
                Ok(())
            }
            AlterAction::SetDefault {
                column: name,
                default,
            } => {
                let at = self.existing(name.as_str())?;
                let c = self.new.columns[at].clone();
                if c.generated.is_some() {
                    return self.alter_generated_default(default.is_some());
                }
                self.new.columns[at].default = match default {
                    None => nfold_catalog::ColumnDefault::None,
                    some => column::bind_default(&c.name, some.as_ref(), &c.ty, c.nullable, cx)?,
                };
                self.definition = true;
                Ok(())
            }
            AlterAction::AddKey(k) => self.add_key(k, cx),
            AlterAction::DropKey(name) => self.drop_key(name.as_str()),
            AlterAction::DropPrimaryKey => self.drop_key("PRIMARY"),
            AlterAction::RenameKey { old, new } => self.rename_key(old.as_str(), new.as_str()),
            AlterAction::Rename(name) => {
                check_table_name(name.name.as_str())?;
                self.rename = Some((
                    name.schema.as_ref().map(|s| s.as_str().into()),
                    name.name.as_str().into(),
                ));
                Ok(())
            }
            AlterAction::ConvertTo { charset, collation } => {
                self.convert_to(charset, collation.as_deref())
            }
            AlterAction::Options(options) => self.options(options, cx),
            AlterAction::Force => {
                self.copy = true;
                Ok(())
            }
            AlterAction::DisableKeys | AlterAction::EnableKeys => {
                let code = ErrorCode::ER_ILLEGAL_HA;
                cx.warnings.push(Level::Note, code, &[&self.old.name]);
                Ok(())
            }
            AlterAction::OrderBy(_) => Ok(()),
            AlterAction::SetColumnVisible { column, visible } => {
                let at = self.existing(column.as_str())?;
                self.new.columns[at].visibility = match visible {
                    true => Visibility::Visible,
                    false => Visibility::Invisible,
                };
                self.definition = true;
                Ok(())
            }
            AlterAction::SetKeyVisible { key, visible } => self.show_key(key.as_str(), *visible),
            AlterAction::AddForeignKey(k) => self.add_foreign_key(k, cx),
            AlterAction::DropForeignKey(name) => self.drop_foreign_key(name.as_str()),
            AlterAction::DropConstraint(name) => self.drop_constraint(name.as_str()),
            AlterAction::AddCheck(c) => self.add_check(c, cx),
            AlterAction::DropCheck(name) => self.drop_check(name.as_str()),
            AlterAction::EnforceCheck {
                name,
                enforced,
                any_constraint,
            } => self.enforce_check(name.as_str(), *enforced, *any_constraint),
            AlterAction::Unsupported(what) => Err(SqlError::not_supported(what)),
        }
    }

    fn place(
        &mut self,
        place: &ColumnPlace,
        c: ColumnDef,
        source: Source,
        null: bool,
        unspecified: usize,
    ) -> Result<(), SqlError> {
        let at = match place {
            ColumnPlace::Unspecified => unspecified,
            ColumnPlace::First => 0,
            ColumnPlace::After(name) => self.existing(name.as_str())? + 1,
        };
        // Key parts name columns by ordinal: those after the new column move up.
        for part in self
            .new
            .indexes
            .iter_mut()
            .chain(&mut self.add)
            .flat_map(|i| &mut i.parts)
        {
            if part.column >= at {
                part.column += 1;
            }
        }
        self.make_room_in_foreign_keys(at);
        self.new.columns.insert(at, c);
        self.sources.insert(at, source);
        self.explicit_null.insert(at, null);
        Ok(())
    }

    fn add_column(
        &mut self,
        c: &ast::ColumnDef,
        keys: &[ast::KeyDef],
        place: &ColumnPlace,
        cx: &mut DdlCx<'_>,
    ) -> Result<(), SqlError> {
        let bound = column::bind(c, self.new.collation, cx)?;
        if self.column(&bound.name).is_some() {
            return Err(error(ErrorCode::ER_DUP_FIELDNAME, &[&bound.name]));
        }
        if let Some(ast::DefaultValue::Expr(e)) = &c.default
            && nfold_sql::stored::is_volatile(e)
        {
            return Err(error(ErrorCode::ER_BINLOG_UNSAFE_SYSTEM_FUNCTION, &[]));
        }
        let hidden = |c: &ColumnDef| c.visibility == Visibility::Hidden;
        let first_hidden = self.new.columns.iter().position(hidden);
        self.counted |= bound.generated.as_ref().is_some_and(|g| g.stored);
        let last = first_hidden.unwrap_or(self.new.columns.len());
        self.place(
            place,
            bound,
            Source::Default,
            c.not_null == Some(false),
            last,
        )?;
        self.copy = true;
        keys.iter().try_for_each(|k| self.add_key(k, cx))
    }

    fn drop_column(&mut self, name: &str) -> Result<(), SqlError> {
        let at = self
            .column(name)
            .ok_or_else(|| error(ErrorCode::ER_CANT_DROP_FIELD_OR_KEY, &[&name]))?;
        self.note_dropped_column(at);
        let name = self.new.columns[at].name.clone();
        self.note_column_dropped(&name);
        self.remove_column(at, true);
        self.copy = true;
        Ok(())
    }

    /// Removes a column. Its key parts are removed as well (`with_keys`), or kept for its return at
    /// another position.
    fn remove_column(&mut self, at: usize, with_keys: bool) {
        self.take_from_foreign_keys(at);
        self.new.columns.remove(at);
        self.sources.remove(at);
        self.explicit_null.remove(at);
        for index in self.new.indexes.iter_mut().chain(&mut self.add) {
            if with_keys {
                index.parts.retain(|p| p.column != at);
            }
            for part in index.parts.iter_mut().filter(|p| p.column > at) {
                part.column -= 1;
            }
        }
        let gone = |i: &IndexSpec| i.parts.is_empty() || is_without_document(i);
        self.new.indexes.retain(|i| !gone(i));
    }

    fn change_column(
        &mut self,
        old: &str,
        c: &ast::ColumnDef,
        keys: &[ast::KeyDef],
        place: &ColumnPlace,
        cx: &mut DdlCx<'_>,
    ) -> Result<(), SqlError> {
        let at = self.existing(old)?;
        let mut bound = column::bind(c, self.new.collation, cx)?;
        if self.column(&bound.name).is_some_and(|o| o != at) {
            return Err(error(ErrorCode::ER_DUP_FIELDNAME, &[&bound.name]));
        }
        let primary = self
            .new
            .indexes
            .iter()
            .find(|i| i.kind == IndexKind::Primary);
        if primary.is_some_and(|i| i.parts.iter().any(|p| p.column == at)) {
            if c.not_null == Some(false) {
                return Err(error(ErrorCode::ER_PRIMARY_CANT_HAVE_NULL, &[]));
            }
            bound.nullable = false;
            if bound.default == nfold_catalog::ColumnDefault::Null {
                bound.default = nfold_catalog::ColumnDefault::None;
            }
        }
        let before = &self.new.columns[at];
        refuse_other_storage(before, &bound)?;
        let same_bytes = before.ty == bound.ty
            && before.nullable == bound.nullable
            && before.generated == bound.generated;
        // The values of the column stay in their order.
        if before.ty == bound.ty && before.name == bound.name {
            bound.histogram = before.histogram.clone();
        }
        let indexed = self
            .new
            .indexes
            .iter()
            .any(|i| i.parts.iter().any(|p| p.column == at));
        self.counted |= !changes_definition_only(&before.ty, &bound.ty, indexed);
        self.counted |= before.generated != bound.generated;
        // Rows without a value get one.
        let begins = bound.auto_increment && !before.auto_increment;
        (self.copy, self.counted) = (self.copy || begins, self.counted || begins);
        // MySQL finds the NULLs in place only where they are an error.
        self.counted |= before.nullable && !bound.nullable && !cx.mode.strict;
        let source = self.sources[at];
        self.rename_column(at, &bound.name.clone());
        if *place == ColumnPlace::Unspecified {
            self.new.columns[at] = bound;
        } else {
            // The key parts keep their column when it moves.
            let held: Vec<(usize, usize)> = parts_of(&self.new.indexes, at);
            let held_keys = self.foreign_columns(at);
            self.remove_column(at, false);
            let last = self.new.columns.len();
            self.place(place, bound, source, false, last)?;
            let now = self.existing(c.name.as_str())?;
            for (i, p) in held {
                self.new.indexes[i].parts[p].column = now;
            }
            for (k, c) in held_keys {
                self.new.foreign_keys[k].columns[c] = now;
            }
            self.copy = true;
        }
        self.copy |= !same_bytes;
        self.definition = true;
        keys.iter().try_for_each(|k| self.add_key(k, cx))
    }

    fn add_key(&mut self, k: &ast::KeyDef, cx: &mut DdlCx<'_>) -> Result<(), SqlError> {
        let taken = self.taken_names(k, cx)?;
        let index = key::bind(k, &mut self.new.columns, &self.explicit_null, &taken, cx)?;
        let columns = self.sources.len();
        if columns < self.new.columns.len() {
            // The columns of functional key parts. MySQL keeps hidden columns in the order of their
            // names, and copies the rows where a new one is not the last.
            let (before, new) = self.new.columns.split_at(columns);
            let hidden = before.iter().filter(|c| c.visibility == Visibility::Hidden);
            let is_last = |c: &ColumnDef| hidden.clone().all(|h| h.name < c.name);
            let fulltext = matches!(index.kind, IndexKind::Fulltext(_));
            self.counted |= !fulltext && !new.iter().all(is_last);
            self.sources.resize(self.new.columns.len(), Source::Default);
            self.explicit_null.resize(self.new.columns.len(), false);
            self.copy = true;
        }
        if index.kind == IndexKind::Primary {
            let mut indexes = self.new.indexes.iter();
            if indexes.any(|i| i.kind == IndexKind::Primary) {
                return Err(error(ErrorCode::ER_MULTIPLE_PRI_KEY, &[]));
            }
        }
        let others = self.new.indexes.iter().chain(&self.add);
        key::warn_of_duplicate(&index, others, (&self.old.schema, &self.old.name), cx);
        self.leave_out_generated(&index);
        if index.kind == IndexKind::Primary {
            self.copy = true;
            self.new.indexes.push(index);
        } else {
            self.add.push(index);
        }
        Ok(())
    }

    fn drop_key(&mut self, name: &str) -> Result<(), SqlError> {
        let found = self.new.indexes.iter().position(|i| eq_name(&i.name, name));
        let at = found.ok_or_else(|| error(ErrorCode::ER_CANT_DROP_FIELD_OR_KEY, &[&name]))?;
        let gone = self.new.indexes.remove(at);
        self.foreign.dropped_indexes.push(gone.name.clone());
        self.note_removed_index(&gone);
        Ok(())
    }

    /// Records that an index is not part of the new table: it is dropped from the old one, unless
    /// the table is copied.
    fn note_removed_index(&mut self, gone: &IndexSpec) {
        match self
            .old
            .indexes
            .iter()
            .find(|i| eq_name(&i.name, &gone.name))
        {
            Some(i) if i.is_clustered() => self.copy = true,
            Some(i) => self.drop.push(i.id),
            None => {}
        }
    }

    fn rename_key(&mut self, old: &str, new: &str) -> Result<(), SqlError> {
        let missing = || error(ErrorCode::ER_KEY_DOES_NOT_EXITS, &[&old, &self.old.name]);
        let at = self
            .new
            .indexes
            .iter()
            .position(|i| eq_name(&i.name, old))
            .ok_or_else(missing)?;
        if self
            .new
            .indexes
            .iter()
            .enumerate()
            .any(|(n, i)| n != at && eq_name(&i.name, new))
        {
            return Err(error(ErrorCode::ER_DUP_KEYNAME, &[&new]));
        }
        self.new.indexes[at].name = new.into();
        self.definition = true;
        Ok(())
    }

    fn convert_to(&mut self, charset: &str, collation: Option<&str>) -> Result<(), SqlError> {
        let Some(collation) = named_collation(Some(charset), collation)? else {
            return Ok(());
        };
        self.new.collation = collation;
        let textual = |c: &&mut ColumnDef| {
            c.ty.collation != nfold_types::CollationId::BINARY
                && (c.ty.is_string() || c.ty.is_enum_or_set())
        };
        let max_len = collation.known().charset.max_len;
        for c in self.new.columns.iter_mut().filter(textual) {
            // As many characters of more bytes each need a larger kind of text.
            if c.ty.charset().max_len < max_len
                && let TypeKind::Text(size) = &mut c.ty.kind
            {
                *size = size.next();
            }
            c.ty.collation = collation;
        }
        (self.copy, self.counted) = (true, true);
        Ok(())
    }

    fn options(&mut self, options: &ast::TableOptions, cx: &mut DdlCx<'_>) -> Result<(), SqlError> {
        table::check_engine(options.engine.as_deref(), cx)?;
        if options.engine.is_some() {
            self.copy = true; // MySQL's way to rebuild a table
        }
        if let Some(collation) =
            named_collation(options.charset.as_deref(), options.collation.as_deref())?
        {
            self.new.collation = collation;
        }
        if options.comment.is_some() {
            let table = (Commented::Table, &*self.old.name);
            self.new.options.comment = comment(options.comment.as_ref(), table, cx)?;
        }
        if let Some(format) = &options.row_format {
            self.new.options.row_format = Some(format.as_str().into());
        }
        self.auto_increment = options.auto_increment.or(self.auto_increment);
        self.definition = true;
        Ok(())
    }

    fn show_key(&mut self, name: &str, visible: bool) -> Result<(), SqlError> {
        let mut indexes = self.new.indexes.iter().chain(&self.add);
        let unknown = || error(ErrorCode::ER_KEY_DOES_NOT_EXITS, &[&name, &self.old.name]);
        let found = indexes
            .find(|i| eq_name(&i.name, name))
            .ok_or_else(unknown)?;
        if !visible && found.kind == IndexKind::Primary {
            return Err(error(ErrorCode::ER_PK_INDEX_CANT_BE_INVISIBLE, &[]));
        }
        let indexes = self.new.indexes.iter_mut().chain(&mut self.add);
        for index in indexes.filter(|i| eq_name(&i.name, name)) {
            index.visible = visible;
        }
        self.definition = true;
        Ok(())
    }

    /// SET DEFAULT of a generated column is error 1221; DROP DEFAULT does nothing.
    fn alter_generated_default(&mut self, set: bool) -> Result<(), SqlError> {
        self.definition = true;
        match set {
            true => Err(error(
                ErrorCode::ER_WRONG_USAGE,
                &[&"DEFAULT", &"generated column"],
            )),
            false => Ok(()),
        }
    }

    fn finish(mut self, cx: &mut DdlCx<'_>) -> Result<Altered, SqlError> {
        self.drop_unused_hidden_columns();
        if self.new.columns.is_empty() {
            return Err(error(ErrorCode::ER_CANT_REMOVE_ALL_FIELDS, &[]));
        }
        self.finish_stored(cx)?;
        let all: Vec<IndexSpec> = self.new.indexes.iter().chain(&self.add).cloned().collect();
        table::check_columns(&self.new.columns, &all)?;
        let others = self.finish_foreign_keys(&all, cx)?;
        let verify = self.foreign.added && cx.foreign_key_checks;
        self.copy |= verify;
        self.counted |= verify;
        self.counted |= fulltext::is_copied_by_mysql(self.old, &self.new.columns, &self.sources);
        let indexes_change = !self.add.is_empty() || !self.drop.is_empty();
        let had = self
            .old
            .indexes
            .iter()
            .any(|i| i.kind == IndexKind::Primary);
        let has = all.iter().any(|i| i.kind == IndexKind::Primary);
        let change = if self.copy || (indexes_change && self.definition) {
            self.new.indexes = all;
            self.new.auto_increment = self.auto_increment.unwrap_or(0);
            Change::Copy {
                spec: self.new,
                columns: self.sources,
            }
        } else if indexes_change {
            Change::Indexes {
                add: self.add,
                drop: self.drop,
            }
        } else if self.definition {
            let mut def = self.old.clone();
            def.columns = self.new.columns;
            def.foreign_keys = self.new.foreign_keys;
            def.checks = self.new.checks;
            def.collation = self.new.collation;
            def.options = self.new.options;
            for (index, spec) in def
                .indexes
                .iter_mut()
                .filter(|i| i.kind != IndexKind::HiddenRowId)
                .zip(&self.new.indexes)
            {
                index.name = spec.name.clone();
                index.visible = spec.visible;
            }
            Change::Definition(def)
        } else {
            Change::Nothing
        };
        Ok(Altered {
            counted: self.counted || (had && !has),
            change,
            rename: self.rename,
            auto_increment: self.auto_increment,
            others,
            verify,
        })
    }
}

/// The positions (index, part) of a column in key parts.
fn parts_of(indexes: &[IndexSpec], column: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (i, index) in indexes.iter().enumerate() {
        found.extend(
            index
                .parts
                .iter()
                .enumerate()
                .filter(|(_, p)| p.column == column)
                .map(|(p, _)| (i, p)),
        );
    }
    found
}
