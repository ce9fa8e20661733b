//! Definitions of databases, tables, columns and indexes, as the dictionary stores them and every
//! layer above reads them.

use std::sync::Arc;

use nfold_types::collation::CollationId;
use nfold_types::{ColumnType, Value};

use crate::foreign_key::ForeignKeyDef;
use crate::histogram::Histogram;
use crate::stored_expr::{BoundExprs, CheckDef, GeneratedColumn, StoredExpr};

/// Identifies a table. Ids are never reused, and an operation that gives a table a new tablespace
/// (`TRUNCATE`, a copying `ALTER`) gives it a new id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u64);

/// Identifies an index. It is stored in every page of the index's tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexId(pub u64);

/// One database (schema).
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseDef {
    pub name: Arc<str>,
    /// Default collation of its new tables.
    pub collation: CollationId,
}

/// The value of a column that an INSERT does not name.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnDefault {
    /// No DEFAULT clause on a NOT NULL column: error 1364 in strict mode.
    None,
    Null,
    /// Already converted to the column's type.
    Literal(Value),
    /// `CURRENT_TIMESTAMP(fsp)`
    CurrentTimestamp(u8),
    /// `DEFAULT (expression)`, evaluated for each row.
    Expr(Box<StoredExpr>),
}

/// Which statements see a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Visibility {
    #[default]
    Visible,
    /// `INVISIBLE`: only statements that name it.
    Invisible,
    /// The column of a functional key part: no statement can name it.
    Hidden,
}

/// One column. Its ordinal is its place in [`TableDef::columns`].
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDef {
    pub name: Arc<str>,
    pub ty: ColumnType,
    pub nullable: bool,
    pub default: ColumnDefault,
    /// `ON UPDATE CURRENT_TIMESTAMP(fsp)`
    pub on_update_now: Option<u8>,
    pub auto_increment: bool,
    pub comment: Box<str>,
    /// The character set or collation was written, and not left to the table.
    pub own_charset: bool,
    /// `GENERATED ALWAYS AS (expression)`
    pub generated: Option<Box<GeneratedColumn>>,
    pub visibility: Visibility,
    /// Made by ANALYZE TABLE ... UPDATE HISTOGRAM.
    pub histogram: Option<Arc<Histogram>>,
}

/// The kind of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// The clustered index of a table with a primary key.
    Primary,
    /// The clustered index of a table without one: an 8-byte row id that no statement sees. It has
    /// no parts.
    HiddenRowId,
    Unique,
    Secondary,
    /// An inverted index of words. Its first part is a hidden column that holds the words of the
    /// row as the elements of an array; the other parts are the columns of the document.
    Fulltext(FulltextOptions),
}

/// How a full-text index divides documents into words. An index keeps the options that were set
/// when it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FulltextOptions {
    /// `WITH PARSER ngram`: the number of characters of a token. 0: the parser that finds words.
    pub ngram_chars: u8,
    /// Shorter words are not indexed, in characters.
    pub min_chars: u8,
    /// Longer words are not indexed, in characters.
    pub max_chars: u8,
    /// Whether the words of INNODB_FT_DEFAULT_STOPWORD are left out.
    pub stopwords: bool,
}

/// One part of an index key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexPart {
    /// Ordinal in [`TableDef::columns`].
    pub column: usize,
    /// The number of characters (bytes, for binary strings) that are part of the key. An index with
    /// such a part never covers the column.
    pub prefix_len: Option<u16>,
    pub desc: bool,
}

/// One index; `TableDef::indexes[0]` is the clustered one.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexDef {
    pub id: IndexId,
    pub name: Arc<str>,
    pub kind: IndexKind,
    pub parts: Vec<IndexPart>,
    /// Root page in the table's space; never changes while the index lives.
    pub root: u32,
    pub comment: Box<str>,
    /// `USING BTREE` was written.
    pub btree: bool,
    /// Made for a foreign key that had no index: another index that serves takes its place.
    pub generated: bool,
    /// Queries may use it; an invisible one is kept up to date all the same.
    pub visible: bool,
}

impl IndexDef {
    /// Whether two rows may not share a key without NULLs.
    pub fn is_unique(&self) -> bool {
        matches!(self.kind, IndexKind::Primary | IndexKind::Unique)
    }

    /// The options of a full-text index.
    pub fn fulltext(&self) -> Option<FulltextOptions> {
        match self.kind {
            IndexKind::Fulltext(options) => Some(options),
            _ => None,
        }
    }

    /// The parts that statements see: all, but for a full-text index without its hidden column.
    pub fn shown_parts(&self) -> &[IndexPart] {
        match self.kind {
            IndexKind::Fulltext(_) => self.parts.get(1..).unwrap_or_default(),
            _ => &self.parts,
        }
    }

    /// Whether rows themselves live in this index.
    pub fn is_clustered(&self) -> bool {
        matches!(self.kind, IndexKind::Primary | IndexKind::HiddenRowId)
    }
}

/// The table options after the closing parenthesis of CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableOptions {
    pub comment: Box<str>,
    /// As written, for SHOW CREATE TABLE; it changes nothing.
    pub row_format: Option<Box<str>>,
}

/// One table, of one schema version.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDef {
    pub id: TableId,
    pub schema: Arc<str>,
    pub name: Arc<str>,
    pub columns: Vec<ColumnDef>,
    /// `[0]` is the clustered index. A view has none.
    pub indexes: Vec<IndexDef>,
    /// Those of which it is the child.
    pub foreign_keys: Vec<ForeignKeyDef>,
    /// Sorted by name.
    pub checks: Vec<CheckDef>,
    /// The stored expressions, once they are bound.
    pub bound: BoundExprs,
    /// Default collation of new string columns.
    pub collation: CollationId,
    pub options: TableOptions,
    /// The tablespace: one file per table.
    pub space: u32,
    /// Version of the row format of newly written rows (instant ADD COLUMN).
    pub row_version: u16,
    /// Seconds since 1970 UTC.
    pub create_time: u64,
    /// The object of this name.
    pub relation: Relation,
}

/// The object that a name in a database stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    /// A table with rows of its own.
    Table,
    /// A view: it has no rows of its own, no indexes and no space. Its columns are those that it
    /// had when it was made.
    View(Arc<ViewDef>),
}

/// The query of a view, with the context in which it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewDef {
    /// Its query, as it was written.
    pub text: Box<[u8]>,
    /// The database of names without one.
    pub database: Option<Arc<str>>,
    /// The parts of `sql_mode` that affect how the text is parsed and what it means (bits of the
    /// parser and the planner).
    pub lexing: u8,
    pub mode: u32,
    /// `collation_connection`: what literals are in.
    pub collation: CollationId,
    /// The account that made it.
    pub definer: (Box<str>, Box<str>),
    /// SQL SECURITY INVOKER: the view reads with the privileges of the current account; otherwise
    /// with the definer's.
    pub invoker: bool,
    pub algorithm: ViewAlgorithm,
    pub check: ViewCheck,
    /// Whether rows could be changed through it when it was made.
    pub updatable: bool,
}

/// WITH CHECK OPTION of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ViewCheck {
    #[default]
    None,
    Local,
    Cascaded,
}

/// ALGORITHM of a view. It is kept, and changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ViewAlgorithm {
    #[default]
    Undefined,
    Merge,
    TempTable,
}

impl TableDef {
    /// A view called `(id, schema, name)`.
    pub fn of_view(
        (id, schema, name): (TableId, Arc<str>, Arc<str>),
        collation: CollationId,
        create_time: u64,
        columns: Vec<ColumnDef>,
        view: ViewDef,
    ) -> TableDef {
        TableDef {
            id,
            schema,
            name,
            columns,
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            bound: BoundExprs::default(),
            collation,
            options: TableOptions::default(),
            space: 0,
            row_version: 0,
            create_time,
            relation: Relation::View(Arc::new(view)),
        }
    }

    /// The view, if it is one.
    pub fn view(&self) -> Option<&Arc<ViewDef>> {
        match &self.relation {
            Relation::Table => None,
            Relation::View(view) => Some(view),
        }
    }

    /// Whether it is a view.
    pub fn is_view(&self) -> bool {
        matches!(self.relation, Relation::View(_))
    }

    /// Ordinal of the column called `name` (column names compare without case).
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|c| c.visibility != Visibility::Hidden && eq_name(&c.name, name))
    }

    /// Whether an index has a generated column among its parts.
    pub fn indexes_generated(&self) -> bool {
        let mut parts = self.indexes.iter().flat_map(|i| &i.parts);
        parts.any(|p| self.columns[p.column].generated.is_some())
    }

    /// The type of the elements of a column of a multi-valued key part.
    pub fn array_of(&self, column: usize) -> Option<&ColumnType> {
        self.columns[column].generated.as_ref()?.array_of.as_ref()
    }

    /// The multi-valued part of an index. Such an index has an entry for each distinct element of
    /// a row's array, and none for an empty array.
    pub fn array_part(&self, index: &IndexDef) -> Option<usize> {
        let parts = &index.parts;
        parts.iter().position(|p| self.array_of(p.column).is_some())
    }

    /// Whether rows have to be completed or checked by stored expressions: DEFAULT (expression),
    /// generated columns, or CHECK constraints that are enforced.
    pub fn has_stored_exprs(&self) -> bool {
        self.checks.iter().any(|c| c.enforced)
            || self
                .columns
                .iter()
                .any(|c| c.generated.is_some() || matches!(c.default, ColumnDefault::Expr(_)))
    }

    /// Ordinal of the index called `name` (index names compare without case).
    pub fn index(&self, name: &str) -> Option<usize> {
        self.indexes
            .iter()
            .position(|i| i.kind != IndexKind::HiddenRowId && eq_name(&i.name, name))
    }

    /// The clustered index.
    pub fn clustered(&self) -> &IndexDef {
        &self.indexes[0]
    }

    /// Whether the table has a primary key that statements see.
    pub fn has_primary_key(&self) -> bool {
        self.clustered().kind == IndexKind::Primary
    }

    /// The unique key that MySQL shows as the primary key of a table without one: the first over
    /// whole columns that are all NOT NULL.
    pub fn promoted_key(&self) -> Option<usize> {
        let whole = |p: &IndexPart| p.prefix_len.is_none() && !self.columns[p.column].nullable;
        let serves = |i: &IndexDef| i.kind == IndexKind::Unique && i.parts.iter().all(whole);
        match self.indexes.first()?.kind {
            IndexKind::Primary => None,
            _ => self.indexes.iter().position(serves),
        }
    }

    /// Ordinal of the AUTO_INCREMENT column.
    pub fn auto_increment_column(&self) -> Option<usize> {
        self.columns.iter().position(|c| c.auto_increment)
    }
}

/// Equality of column and index names: without case, by Unicode lower case.
pub fn eq_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
        || (!(a.is_ascii() && b.is_ascii())
            && a.chars()
                .flat_map(char::to_lowercase)
                .eq(b.chars().flat_map(char::to_lowercase)))
}
