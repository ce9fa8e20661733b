//! The syntax tree. It follows MySQL's syntax, owns its data, and contains source spans only where
//! a message or a column name needs them.
//!
//! Keywords with several spellings are unified here (`SCHEMA` is a database, `<>` is `!=`, `NOW()`
//! and `CURRENT_TIMESTAMP` are the function `now`), so the binder handles each meaning only once.

mod admin;
mod changed;
mod ddl;
mod diagnostics;
mod expr;
mod file;
mod handler;
mod json;
mod query;
mod xa;

pub use admin::*;
pub use ddl::*;
pub use diagnostics::*;
pub use expr::*;
pub use file::*;
pub use handler::*;
pub use json::*;
pub use query::*;
pub use xa::*;

/// A half-open range of byte offsets in the statement's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The bytes of this span. Empty if the span does not fit `text`.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start as usize..self.end as usize)
            .unwrap_or(&[])
    }
}

/// A name as written, without its quotes. Equality compares bytes; the binder handles
/// case-insensitive comparison.
#[derive(Clone, Debug)]
pub struct Ident {
    pub value: String,
    /// Whether it was written in backquotes (or in double quotes under ANSI_QUOTES).
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

    /// Whether the name equals `other`, ignoring ASCII case.
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

/// The name of a table: `schema.name` or `name`.
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
    // Queries and row changes
    Query(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    LoadData(Box<LoadData>),
    /// `DO expr, …`
    Do(Vec<Expr>),

    // DDL
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
    Xa(Box<Xa>),
    LockTables(Vec<LockTable>),
    UnlockTables,
    /// `LOCK INSTANCE FOR BACKUP`
    LockInstance,
    /// `UNLOCK INSTANCE`
    UnlockInstance,

    // Session
    /// All assignments of one SET, in order.
    Set(Vec<SetItem>),
    /// `RESET PERSIST [[IF EXISTS] name]`; without a name all variables.
    ResetPersist {
        if_exists: bool,
        name: Option<Ident>,
    },
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
    Signal(Box<Signal>),
    /// RESIGNAL outside of a handler: error 1645.
    Resignal,
    GetDiagnostics(Box<GetDiagnostics>),
    Handler(Box<Handler>),

    // SHOW, DESCRIBE, EXPLAIN
    Show(Show),
    /// `DESCRIBE t [column or pattern]`
    Describe {
        table: ObjectName,
        column: Option<Ident>,
    },
    Explain {
        options: ExplainOptions,
        statement: Box<Statement>,
    },
    /// EXPLAIN FOR CONNECTION, with the connection's number.
    ExplainConnection(ExplainOptions, u64),

    // Maintenance
    TableMaintenance(TableMaintenance),
    Flush(Flush),

    // Replication
    ChangeSource(ChangeSource),
    ChangeFilter(ChangeFilter),
    /// `channel` is `None` for the one without a name, also below.
    StartReplica {
        until: Option<ReplicaUntil>,
        channel: Option<String>,
    },
    StopReplica(Option<String>),
    ResetReplica {
        all: bool,
        channel: Option<String>,
    },

    /// `PURGE BINARY LOGS TO 'file'`
    PurgeTo(String),
    /// `PURGE BINARY LOGS BEFORE time`
    PurgeBefore(Box<Expr>),
    /// `BINLOG 'events in base64'`
    Binlog(Vec<u8>),
    /// `RESET BINARY LOGS AND GTIDS [TO number]`
    ResetBinaryLogs(Option<u64>),

    // Accounts
    CreateUser(CreateUser),
    AlterUser(CreateUser),
    SetPassword(SetPassword),
    DropUser {
        if_exists: bool,
        users: Vec<AccountName>,
    },
    RenameUser(Vec<(AccountName, AccountName)>),
    Grant(Grant),
    Revoke(Revoke),
    /// CREATE ROLE, DROP ROLE, SET ROLE, SET DEFAULT ROLE
    Role(RoleStatement),

    /// INSTALL COMPONENT, UNINSTALL COMPONENT
    Component(ComponentStatement),

    /// Only comments; the server answers with OK.
    Empty,

    /// Valid MySQL syntax that the server does not support: error 1235 with the name `what`.
    Unsupported {
        what: &'static str,
    },
}
