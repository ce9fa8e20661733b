//! Transactions, session state, SHOW, maintenance and accounts.

use super::{Expr, Ident, ObjectName, VarScope};

/// `BEGIN`, `START TRANSACTION …`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BeginOptions {
    pub consistent_snapshot: bool,
    /// `READ ONLY` / `READ WRITE`
    pub read_only: Option<bool>,
}

/// `[AND [NO] CHAIN] [[NO] RELEASE]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionOptions {
    pub chain: Option<bool>,
    pub release: Option<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LockTable {
    pub name: ObjectName,
    pub alias: Option<Ident>,
    pub write: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// `[scope] name = value`. `scope` is `None` if none was written, which means the session.
    SysVar {
        scope: Option<VarScope>,
        /// Whether it was written as `@@name`, which makes a difference for the characteristics of
        /// transactions.
        at_signs: bool,
        name: String,
        value: SetValue,
    },
    UserVar {
        name: String,
        value: Expr,
    },
    /// `NAMES charset [COLLATE c]`; charset `None`: DEFAULT.
    Names {
        charset: Option<String>,
        collation: Option<String>,
    },
    /// `CHARACTER SET charset`; `None`: DEFAULT.
    CharacterSet(Option<String>),
    Transaction(SetTransaction),
}

/// The right side of a variable's assignment. As in MySQL, an unquoted word (`SET x = utf8mb4`) is
/// a column reference, even ON, ALL and BINARY.
#[derive(Clone, Debug, PartialEq)]
pub enum SetValue {
    Default,
    Expr(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub enum ComponentStatement {
    /// `INSTALL COMPONENT 'urn' [, …] [SET variable [, …]]`
    Install {
        urns: Vec<String>,
        variables: Vec<ComponentVariable>,
    },
    /// `UNINSTALL COMPONENT 'urn' [, …]`
    Uninstall(Vec<String>),
}

/// `[GLOBAL | PERSIST] name = value` in INSTALL COMPONENT.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentVariable {
    pub persist: bool,
    /// As it was written, with the component's name before a point, or without.
    pub name: String,
    pub value: Expr,
}

/// `SET [GLOBAL|SESSION] TRANSACTION …`; scope `None`: the next transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetTransaction {
    pub scope: Option<VarScope>,
    pub isolation: Option<IsolationLevel>,
    pub read_only: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillTarget {
    Connection,
    Query,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PrepareSource {
    Text(Vec<u8>),
    /// The name of a user variable.
    Variable(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainFormat {
    Traditional,
    Json,
    Tree,
}

impl ExplainFormat {
    /// The name of a format as a statement writes it, in any case.
    pub fn name(self) -> &'static str {
        match self {
            ExplainFormat::Traditional => "TRADITIONAL",
            ExplainFormat::Json => "JSON",
            ExplainFormat::Tree => "TREE",
        }
    }
}

/// The words between EXPLAIN and the statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExplainOptions {
    pub analyze: bool,
    /// `None`: that of `explain_format`.
    pub format: Option<ExplainFormat>,
    /// The user variable that receives the plan.
    pub into: Option<String>,
    /// FOR SCHEMA: the current database of the statement.
    pub schema: Option<Ident>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ShowFilter {
    Like(Vec<u8>),
    Where(Expr),
}

impl Show {
    /// The condition of its WHERE.
    pub fn condition(&self) -> Option<&Expr> {
        let filter = match self {
            Show::Databases { filter }
            | Show::Tables { filter, .. }
            | Show::TableStatus { filter, .. }
            | Show::Columns { filter, .. }
            | Show::Index { filter, .. }
            | Show::Variables { filter, .. }
            | Show::Status { filter, .. }
            | Show::CharacterSet { filter }
            | Show::Collation { filter }
            | Show::OpenTables { filter, .. }
            | Show::Triggers { filter, .. }
            | Show::Events { filter, .. }
            | Show::FunctionStatus { filter }
            | Show::ProcedureStatus { filter } => filter,
            _ => return None,
        };
        match filter {
            Some(ShowFilter::Where(condition)) => Some(condition),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    Databases {
        filter: Option<ShowFilter>,
    },
    Tables {
        full: bool,
        extended: bool,
        schema: Option<Ident>,
        filter: Option<ShowFilter>,
    },
    TableStatus {
        schema: Option<Ident>,
        filter: Option<ShowFilter>,
    },
    Columns {
        full: bool,
        extended: bool,
        table: ObjectName,
        filter: Option<ShowFilter>,
    },
    /// `SHOW INDEX|INDEXES|KEYS`
    Index {
        extended: bool,
        table: ObjectName,
        filter: Option<ShowFilter>,
    },
    CreateTable(ObjectName),
    CreateView(ObjectName),
    CreateDatabase {
        if_not_exists: bool,
        name: Ident,
    },
    /// `None`: the current user.
    CreateUser(Option<AccountName>),
    Variables {
        scope: VarScope,
        filter: Option<ShowFilter>,
    },
    Status {
        scope: VarScope,
        filter: Option<ShowFilter>,
    },
    ProcessList {
        full: bool,
    },
    Warnings(Option<ShowLimit>),
    Errors(Option<ShowLimit>),
    /// `SHOW COUNT(*) WARNINGS`
    WarningCount,
    /// `SHOW COUNT(*) ERRORS`
    ErrorCount,
    Engines,
    /// `SHOW ENGINE name STATUS|MUTEX|LOGS|CONTENTION`
    Engine {
        name: Ident,
        what: EngineInfo,
    },
    /// `None`: the current user.
    /// The account (`None`: the own one), and the roles of USING.
    Grants(Option<AccountName>, Vec<AccountName>),
    Privileges,
    CharacterSet {
        filter: Option<ShowFilter>,
    },
    Collation {
        filter: Option<ShowFilter>,
    },
    Plugins,
    OpenTables {
        schema: Option<Ident>,
        filter: Option<ShowFilter>,
    },
    Triggers {
        schema: Option<Ident>,
        filter: Option<ShowFilter>,
    },
    Events {
        schema: Option<Ident>,
        filter: Option<ShowFilter>,
    },
    FunctionStatus {
        filter: Option<ShowFilter>,
    },
    ProcedureStatus {
        filter: Option<ShowFilter>,
    },
    BinaryLogStatus,
    BinaryLogs,
    /// `SHOW REPLICA STATUS` of a channel; `None`: of all.
    ReplicaStatus(Option<String>),
    /// `SHOW REPLICAS`
    Replicas,
    /// `SHOW BINLOG EVENTS [IN 'file'] [FROM position] [LIMIT ...]`
    BinlogEvents {
        file: Option<String>,
        from: Option<u64>,
        limit: Option<ShowLimit>,
    },
    /// `SHOW RELAYLOG EVENTS`
    RelayLogEvents,
    Profiles,
    /// Another SHOW statement of MySQL: error 1235 with this name.
    Unsupported(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShowLimit {
    pub offset: u64,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineInfo {
    Status,
    Mutex,
    Logs,
    /// `SHOW ENGINE NFOLD CONTENTION`, which no other server has.
    Contention,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableMaintenance {
    pub kind: MaintenanceKind,
    pub no_write_to_binlog: bool,
    pub tables: Vec<ObjectName>,
    /// CHECK's and REPAIR's options in upper case (`QUICK`, `EXTENDED`, `FOR UPGRADE`, …).
    pub options: Vec<String>,
    /// `UPDATE HISTOGRAM` or `DROP HISTOGRAM` of ANALYZE.
    pub histogram: Option<HistogramChange>,
}

/// `UPDATE HISTOGRAM ON …` or `DROP HISTOGRAM ON …`.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramChange {
    pub columns: Vec<Ident>,
    /// `None`: the histograms are dropped.
    pub update: Option<HistogramUpdate>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HistogramUpdate {
    /// `WITH n BUCKETS`
    pub buckets: Option<u64>,
    /// `AUTO UPDATE`
    pub auto_update: bool,
    /// `USING DATA` with a JSON document.
    pub data: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceKind {
    Check,
    Analyze,
    Optimize,
    Repair,
    Checksum,
}

/// Where START REPLICA UNTIL stops.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplicaUntil {
    /// Before the first transaction of the set.
    BeforeGtids(String),
    /// When all transactions of the set are applied.
    AfterGtids(String),
    /// At a position of a file of the source, named by SOURCE_LOG_FILE and SOURCE_LOG_POS. Each may
    /// be missing, which is an error later.
    Position {
        file: Option<String>,
        position: Option<u64>,
    },
}

/// `CHANGE REPLICATION SOURCE TO …`
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeSource {
    pub options: Vec<SourceOption>,
    pub channel: Option<String>,
}

/// `CHANGE REPLICATION FILTER …`
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeFilter {
    pub rules: Vec<FilterRule>,
    pub channel: Option<String>,
}

/// A list of CHANGE REPLICATION FILTER. It takes the place of the former list of its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterRule {
    DoDb(Vec<String>),
    IgnoreDb(Vec<String>),
    /// Pairs of database and table.
    DoTable(Vec<(String, String)>),
    IgnoreTable(Vec<(String, String)>),
    /// Patterns as of LIKE for `database.table`.
    WildDoTable(Vec<String>),
    WildIgnoreTable(Vec<String>),
    /// Pairs of a database of the source and the one here.
    RewriteDb(Vec<(String, String)>),
}

/// An option of CHANGE REPLICATION SOURCE TO, with its name in upper case and SOURCE for MASTER.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceOption {
    pub name: String,
    pub value: SourceValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SourceValue {
    Text(Vec<u8>),
    /// A number as it was written.
    Number(String),
    /// A word without quotes.
    Word(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Flush {
    pub no_write_to_binlog: bool,
    pub what: Vec<FlushItem>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FlushItem {
    /// `TABLES [names] [WITH READ LOCK | FOR EXPORT]`
    Tables {
        names: Vec<ObjectName>,
        read_lock: bool,
        for_export: bool,
    },
    Privileges,
    Status,
    /// LOGS and its kinds, HOSTS, USER_RESOURCES, OPTIMIZER_COSTS: the words in upper case.
    Other(String),
}

/// `'user'@'host'`. The host is `%` if none was written. For `CURRENT_USER`, `current` is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountName {
    pub user: String,
    pub host: String,
    pub current: bool,
}

/// CREATE USER and ALTER USER.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateUser {
    /// CREATE: IF NOT EXISTS; ALTER: IF EXISTS.
    pub if_clause: bool,
    pub users: Vec<UserSpec>,
    pub default_roles: Option<DefaultRoles>,
    /// The options after the accounts (`REQUIRE …`, `WITH …`, `PASSWORD EXPIRE …`, `ACCOUNT LOCK`,
    /// `COMMENT …`).
    pub options: Vec<UserOption>,
    /// Where the text behind the accounts begins.
    pub rest: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct UserSpec {
    pub account: AccountName,
    pub auth: Option<UserAuth>,
    /// `DISCARD OLD PASSWORD`
    pub discard_old: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct UserAuth {
    /// `WITH plugin`, in lower case.
    pub plugin: Option<String>,
    pub secret: AuthSecret,
    /// `REPLACE 'current password'`
    pub replace: Option<Vec<u8>>,
    /// `RETAIN CURRENT PASSWORD`
    pub retain: bool,
}

/// `SET PASSWORD [FOR account] {= 'text' | TO RANDOM} …`. Without an account, the session's own.
#[derive(Clone, Debug, PartialEq)]
pub struct SetPassword {
    pub account: Option<AccountName>,
    pub auth: UserAuth,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthSecret {
    /// Only `WITH plugin`.
    None,
    /// `BY 'text'`
    Password(Vec<u8>),
    /// `BY RANDOM PASSWORD`
    Random,
    /// `AS 'hash'`
    Hash(Vec<u8>),
}

/// An option of CREATE USER and ALTER USER. `None` stands for DEFAULT.
#[derive(Clone, Debug, PartialEq)]
pub enum UserOption {
    AccountLock(bool),
    /// `REQUIRE NONE` (false) and `REQUIRE SSL` (true).
    RequireTls(bool),
    /// `REQUIRE X509`, and SUBJECT, ISSUER and CIPHER.
    RequireCertificate(CertificateParts),
    Limit(ResourceLimit, u64),
    /// `PASSWORD EXPIRE`
    Expire,
    /// `PASSWORD EXPIRE {DEFAULT | NEVER | INTERVAL days DAY}`; NEVER is [`Lifetime::Never`].
    Lifetime(Option<Lifetime>),
    /// `PASSWORD HISTORY`
    History(Option<u64>),
    /// `PASSWORD REUSE INTERVAL`, in days.
    ReuseInterval(Option<u64>),
    /// `PASSWORD REQUIRE CURRENT [DEFAULT | OPTIONAL]`; OPTIONAL is false.
    RequireCurrent(Option<bool>),
    FailedAttempts(u64),
    /// Days; `None`: UNBOUNDED.
    LockTime(Option<u64>),
    Comment(Vec<u8>),
    /// The text of a JSON object.
    Attribute(Vec<u8>),
}

/// The parts of `REQUIRE [SUBJECT 'text'] [ISSUER 'text'] [CIPHER 'text']`; X509 has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CertificateParts {
    pub subject: Option<Vec<u8>>,
    pub issuer: Option<Vec<u8>>,
    pub cipher: Option<Vec<u8>>,
    /// A part that stands twice.
    pub repeated: Option<&'static str>,
}

/// How long a password is valid.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Lifetime {
    Never,
    Days(u64),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ResourceLimit {
    QueriesPerHour,
    UpdatesPerHour,
    ConnectionsPerHour,
    Connections,
}

/// The roles of SET DEFAULT ROLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultRoles {
    None,
    All,
    List(Vec<AccountName>),
}

/// The roles of SET ROLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActiveRoles {
    None,
    Default,
    /// `ALL`, or `ALL EXCEPT` these.
    All(Vec<AccountName>),
    List(Vec<AccountName>),
}

/// Statements about roles, besides GRANT and REVOKE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleStatement {
    Create {
        if_not_exists: bool,
        roles: Vec<AccountName>,
    },
    Drop {
        if_exists: bool,
        roles: Vec<AccountName>,
    },
    /// `SET ROLE …`
    Set(ActiveRoles),
    /// `SET DEFAULT ROLE … TO …`
    SetDefault {
        roles: DefaultRoles,
        to: Vec<AccountName>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    pub privileges: Privileges,
    pub target: GrantTarget,
    pub to: Vec<UserSpec>,
    /// WITH GRANT OPTION; for roles WITH ADMIN OPTION.
    pub grant_option: bool,
    pub as_user: Option<GrantAs>,
}

/// `AS account [WITH ROLE …]`
#[derive(Clone, Debug, PartialEq)]
pub struct GrantAs {
    pub account: AccountName,
    pub roles: ActiveRoles,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Revoke {
    pub if_exists: bool,
    pub privileges: Privileges,
    pub target: GrantTarget,
    pub from: Vec<AccountName>,
    /// IGNORE UNKNOWN USER
    pub ignore_unknown: bool,
    /// GRANT OPTION is among the privileges.
    pub grant_option: bool,
    /// `REVOKE ALL PRIVILEGES, GRANT OPTION FROM …`
    pub everything: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Privileges {
    All,
    /// The names in upper case (`SELECT`, `CREATE TEMPORARY TABLES`), each with its column list,
    /// which is usually empty.
    List(Vec<(String, Vec<Ident>)>),
    /// `GRANT role TO user`
    Roles(Vec<AccountName>),
    /// `PROXY`
    Proxy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutineKind {
    Function,
    Procedure,
}

#[derive(Clone, Debug, PartialEq)]
pub enum GrantTarget {
    /// `*.*`
    Global,
    /// `db.*`, with MySQL's wildcards as written.
    Database(Ident),
    /// `*`: the current database
    CurrentDatabase,
    Table(ObjectName),
    Routine(RoutineKind, ObjectName),
    /// The account of PROXY.
    Account(AccountName),
    /// Roles have no target.
    None,
}
