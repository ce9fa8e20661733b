//! The syntax tree: MySQL-shaped, owned, with source spans only where a message or a column name needs them.
//!
//! Keywords that have several spellings are folded here (`SCHEMA` is a database, `<>` is `!=`, `NOW()` and
//! `CURRENT_TIMESTAMP` are the function `now`), so that the binder sees each meaning once.

mod admin;
mod ddl;
mod expr;
mod query;

pub use admin::*;
pub use ddl::*;
pub use expr::*;
pub use query::*;

/// A half-open range of byte offsets in the statement's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The bytes this span covers; empty where the span does not fit `text`.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start as usize..self.end as usize)
            .unwrap_or(&[])
    }
}

/// A name as written, without its quotes. Equality is by exact bytes: what is compared without regard to case is
/// the binder's affair.
#[derive(Clone, Debug)]
pub struct Ident {
    pub value: String,
    /// Written in backquotes (or in double quotes under ANSI_QUOTES).
    pub quoted: bool,
}

impl Ident {
    pub fn new(value: impl Into<String>) -> Self {
        Ident {
            value: value.into(),
            quoted: false,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.value
    }

    /// True where the name is `other`, ASCII case aside.
    pub fn is(&self, other: &str) -> bool {
        self.value.eq_ignore_ascii_case(other)
    }
}

impl PartialEq for Ident {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Ident {}

impl std::fmt::Display for Ident {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.value)
    }
}

/// `schema.name` or `name`, of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    pub schema: Option<Ident>,
    pub name: Ident,
}

impl ObjectName {
    pub fn bare(name: impl Into<String>) -> Self {
        ObjectName {
            schema: None,
            name: Ident::new(name),
        }
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    // Data
    Query(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    /// `DO expr, …`
    Do(Vec<Expr>),

    // Definition
    CreateDatabase(CreateDatabase),
    AlterDatabase(AlterDatabase),
    DropDatabase {
        if_exists: bool,
        name: Ident,
    },
    CreateTable(Box<CreateTable>),
    DropTable(DropTable),
    CreateView(Box<CreateView>),
    DropView {
        if_exists: bool,
        names: Vec<ObjectName>,
    },
    /// `TRUNCATE [TABLE] name`
    Truncate(ObjectName),
    /// `RENAME TABLE a TO b, …`
    RenameTable(Vec<(ObjectName, ObjectName)>),
    AlterTable(Box<AlterTable>),
    CreateIndex(Box<CreateIndex>),
    DropIndex {
        name: Ident,
        table: ObjectName,
    },

    // Transactions
    Begin(BeginOptions),
    Commit(CompletionOptions),
    Rollback(CompletionOptions),
    RollbackTo(Ident),
    Savepoint(Ident),
    ReleaseSavepoint(Ident),
    LockTables(Vec<LockTable>),
    UnlockTables,

    // Session
    /// Every assignment of one SET, in order.
    Set(Vec<SetItem>),
    Use(Ident),
    Kill {
        target: KillTarget,
        id: Expr,
    },
    Prepare {
        name: Ident,
        source: PrepareSource,
    },
    Execute {
        name: Ident,
        using: Vec<String>,
    },
    Deallocate(Ident),

    // Looking
    Show(Show),
    /// `DESCRIBE t [column or pattern]`
    Describe {
        table: ObjectName,
        column: Option<Ident>,
    },
    Explain {
        format: ExplainFormat,
        analyze: bool,
        statement: Box<Statement>,
    },
    ExplainConnection(Expr),

    // Maintenance
    TableMaintenance(TableMaintenance),
    Flush(Flush),

    // Accounts
    CreateUser(CreateUser),
    AlterUser(CreateUser),
    DropUser {
        if_exists: bool,
        users: Vec<AccountName>,
    },
    RenameUser(Vec<(AccountName, AccountName)>),
    Grant(Grant),
    Revoke(Revoke),

    /// Nothing but comments: answered with OK.
    Empty,

    /// Grammatical MySQL that the server does not do: error 1235 naming `what`.
    Unsupported {
        what: &'static str,
    },
}
