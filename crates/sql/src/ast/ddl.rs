//! Definitions of databases, tables and indexes.

use super::{AccountName, Expr, Ident, ObjectName, Query, Span};

#[derive(Clone, Debug, PartialEq)]
pub struct CreateDatabase {
    pub if_not_exists: bool,
    pub name: Ident,
    pub charset: Option<String>,
    pub collation: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterDatabase {
    /// `None`: the current database.
    pub name: Option<Ident>,
    pub charset: Option<String>,
    pub collation: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub temporary: bool,
    pub if_not_exists: bool,
    pub name: ObjectName,
    /// `LIKE other`. Then all fields below are empty.
    pub like: Option<ObjectName>,
    pub columns: Vec<ColumnDef>,
    /// The table-level keys and those of column attributes (`PRIMARY KEY`, `UNIQUE`), in the order
    /// written.
    pub keys: Vec<KeyDef>,
    pub foreign_keys: Vec<ForeignKey>,
    pub checks: Vec<Check>,
    pub options: TableOptions,
    /// Whether `PARTITION BY …` was written.
    pub partitioned: bool,
    /// `[AS] SELECT …`
    pub query: Option<Box<Query>>,
    pub on_existing: OnExisting,
    /// Those of the table, its columns and its keys.
    pub engine_attributes: Vec<EngineAttribute>,
}

/// `ENGINE_ATTRIBUTE = 'document'` or `SECONDARY_ENGINE_ATTRIBUTE = 'document'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineAttribute {
    pub secondary: bool,
    /// The text as it was written, which need not be a document.
    pub text: Vec<u8>,
}

/// How CREATE TABLE … SELECT treats duplicate keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExisting {
    #[default]
    Error,
    Ignore,
    Replace,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    pub name: Ident,
    pub ty: TypeSpec,
    /// `Some(true)`: NOT NULL; `Some(false)`: NULL; `None`: neither was written.
    pub not_null: Option<bool>,
    pub default: Option<DefaultValue>,
    /// `ON UPDATE CURRENT_TIMESTAMP(n)`: n.
    pub on_update_now: Option<u8>,
    pub auto_increment: bool,
    pub comment: Option<Vec<u8>>,
    pub generated: Option<Generated>,
    pub invisible: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum DefaultValue {
    /// A literal, possibly with a sign.
    Literal(Expr),
    /// `CURRENT_TIMESTAMP(n)` or one of its synonyms: n.
    Now(u8),
    /// `(expr)`
    Expr(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    pub expr: Expr,
    pub stored: bool,
}

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeSpec {
    pub kind: TypeKind,
    /// The first number in parentheses: length, display width, precision, or fraction digits.
    pub length: Option<u64>,
    /// The second number: scale.
    pub decimals: Option<u32>,
    pub unsigned: bool,
    pub zerofill: bool,
    /// In lower case: the name in `CHARACTER SET x`, or that implied by ASCII, UNICODE, BYTE and
    /// NATIONAL.
    pub charset: Option<String>,
    /// In lower case.
    pub collation: Option<String>,
    /// The attribute BINARY: the `_bin` collation of the character set.
    pub binary: bool,
    /// The members of ENUM and SET, in the connection's character set.
    pub members: Vec<Vec<u8>>,
}

impl TypeSpec {
    pub fn new(kind: TypeKind) -> Self {
        TypeSpec {
            kind,
            length: None,
            decimals: None,
            unsigned: false,
            zerofill: false,
            charset: None,
            collation: None,
            binary: false,
            members: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeKind {
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    /// `BOOL`, `BOOLEAN`: TINYINT(1).
    Bool,
    /// `BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE`. The parser sets these attributes.
    Serial,
    Decimal,
    Float,
    Double,
    Bit,
    Char,
    VarChar,
    Binary,
    VarBinary,
    TinyText,
    Text,
    MediumText,
    LongText,
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    Enum,
    Set,
    Date,
    Time,
    DateTime,
    Timestamp,
    Year,
    Json,
    /// GEOMETRY, POINT, …
    Geometry,
    Vector,
    /// Only in CAST: `SIGNED [INTEGER]`.
    Signed,
    /// Only in CAST: `UNSIGNED [INTEGER]`.
    Unsigned,
}

impl TypeKind {
    /// The type's word in a CAST.
    pub(crate) fn cast_name(self) -> &'static str {
        match self {
            TypeKind::Signed => "signed",
            TypeKind::Unsigned => "unsigned",
            TypeKind::Binary => "binary",
            TypeKind::Decimal => "decimal",
            TypeKind::Float => "float",
            TypeKind::Double => "double",
            TypeKind::Date => "date",
            TypeKind::Time => "time",
            TypeKind::DateTime => "datetime",
            TypeKind::Year => "year",
            TypeKind::Json => "json",
            _ => "char",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct KeyDef {
    pub kind: KeyKind,
    /// The name of the index, or otherwise of the constraint.
    pub name: Option<Ident>,
    pub parts: Vec<KeyPart>,
    pub algorithm: Option<IndexAlgorithm>,
    pub comment: Option<Vec<u8>>,
    pub invisible: bool,
    /// `WITH PARSER name`, of a full-text key.
    pub parser: Option<Ident>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    Primary,
    Unique,
    Index,
    Fulltext,
    Spatial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexAlgorithm {
    BTree,
    Hash,
    RTree,
}

#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    pub target: KeyTarget,
    pub descending: bool,
    /// Whether ASC or DESC is written.
    pub ordered: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum KeyTarget {
    /// A column, and the length of its prefix in characters or bytes.
    Column { name: Ident, prefix: Option<u32> },
    /// `(expr)`
    Expr(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKey {
    /// `CONSTRAINT name`
    pub name: Option<Ident>,
    /// The name for the index that it may need.
    pub index: Option<Ident>,
    /// How many keys of CREATE TABLE stand before it.
    pub keys_before: usize,
    pub columns: Vec<Ident>,
    pub table: ObjectName,
    pub referenced: Vec<Ident>,
    pub on_delete: Option<ReferentialAction>,
    pub on_update: Option<ReferentialAction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferentialAction {
    Restrict,
    Cascade,
    SetNull,
    NoAction,
    SetDefault,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub name: Option<Ident>,
    /// The column whose attribute it is.
    pub column: Option<Ident>,
    pub expr: Expr,
    pub enforced: bool,
}

/// Table options. If one was written several times, the last one applies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableOptions {
    /// As written.
    pub engine: Option<String>,
    pub auto_increment: Option<u64>,
    /// In lower case.
    pub charset: Option<String>,
    /// In lower case.
    pub collation: Option<String>,
    pub comment: Option<Vec<u8>>,
    /// As written: `DYNAMIC`, `COMPACT`, …
    pub row_format: Option<String>,
    /// Other options, which are accepted as in MySQL: the name in upper case, and the value's text.
    pub other: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropTable {
    pub temporary: bool,
    pub if_exists: bool,
    pub names: Vec<ObjectName>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    pub key: KeyDef,
    pub table: ObjectName,
    pub algorithm: AlterAlgorithm,
    pub lock: AlterLock,
    pub engine_attributes: Vec<EngineAttribute>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlterAlgorithm {
    #[default]
    Default,
    Instant,
    Inplace,
    Copy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlterLock {
    #[default]
    Default,
    None,
    Shared,
    Exclusive,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    pub name: ObjectName,
    pub actions: Vec<AlterAction>,
    pub algorithm: AlterAlgorithm,
    pub lock: AlterLock,
    /// Those of the table, its columns and its keys.
    pub engine_attributes: Vec<EngineAttribute>,
}

/// The position of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ColumnPlace {
    /// At the end for a new column, and unchanged for a changed one.
    #[default]
    Unspecified,
    First,
    After(Ident),
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    /// Includes the keys that the column's attributes define.
    AddColumn {
        column: ColumnDef,
        keys: Vec<KeyDef>,
        place: ColumnPlace,
    },
    DropColumn(Ident),
    /// MODIFY: `old` is the column's own name. CHANGE: `old` is its previous name.
    ChangeColumn {
        old: Ident,
        column: ColumnDef,
        keys: Vec<KeyDef>,
        place: ColumnPlace,
    },
    RenameColumn {
        old: Ident,
        new: Ident,
    },
    SetDefault {
        column: Ident,
        default: Option<DefaultValue>,
    },
    SetColumnVisible {
        column: Ident,
        visible: bool,
    },
    AddKey(KeyDef),
    DropKey(Ident),
    DropPrimaryKey,
    RenameKey {
        old: Ident,
        new: Ident,
    },
    SetKeyVisible {
        key: Ident,
        visible: bool,
    },
    AddForeignKey(ForeignKey),
    DropForeignKey(Ident),
    AddCheck(Check),
    /// `ALTER CHECK name [NOT] ENFORCED`; `any_constraint`: `ALTER CONSTRAINT` was written.
    EnforceCheck {
        name: Ident,
        enforced: bool,
        any_constraint: bool,
    },
    /// `DROP CONSTRAINT name`
    DropConstraint(Ident),
    /// `DROP CHECK name`
    DropCheck(Ident),
    Rename(ObjectName),
    ConvertTo {
        charset: String,
        collation: Option<String>,
    },
    Options(TableOptions),
    /// `FORCE`
    Force,
    DisableKeys,
    EnableKeys,
    OrderBy(Vec<Ident>),
    /// Partition and tablespace actions: error 1235 with this name.
    Unsupported(&'static str),
}

/// `CREATE [OR REPLACE] VIEW`, `ALTER VIEW`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub or_replace: bool,
    pub if_not_exists: bool,
    /// ALTER: it is there already.
    pub alter: bool,
    pub algorithm: ViewAlgorithm,
    pub definer: Option<AccountName>,
    pub invoker: bool,
    pub name: ObjectName,
    /// The names of its columns, if they were written.
    pub columns: Vec<Ident>,
    pub query: Box<Query>,
    /// The position of the query in the statement's text.
    pub text: Span,
    pub check: ViewCheck,
}

/// `WITH [LOCAL | CASCADED] CHECK OPTION`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewCheck {
    #[default]
    None,
    Local,
    Cascaded,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewAlgorithm {
    #[default]
    Undefined,
    Merge,
    TempTable,
}
