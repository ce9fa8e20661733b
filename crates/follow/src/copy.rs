//! The steps of a copy, in their order.

use std::time::{Duration, Instant};

use nfold_replica::{ChannelConfig, Client, SourceError};
use nfold_sql::lexer::LexMode;
use nfold_sql::mariadb::{NoNames, translate};

use crate::branches::BranchWait;
use crate::check::{Facts, check, is_mariadb};
use crate::error::{CopyError, Finding};
use crate::literal::{name, quoted};
use crate::schema::{Table, definition, tables, views};
use crate::snapshot::Position;
use crate::unfinished::Unfinished;
use crate::{SourceUrl, rows, snapshot, unfinished};

/// What to copy.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    pub source: SourceUrl,
    /// The databases to copy and to follow; empty: all.
    pub databases: Vec<String>,
    /// The connections that read in parallel.
    pub jobs: usize,
    /// The `server_id` of the copy.
    pub server_id: u32,
    /// The longest time to wait for the end of prepared XA transactions.
    pub xa_wait: Duration,
}

/// What was copied.
#[derive(Debug, Clone)]
pub struct Copied {
    pub tables: usize,
    pub rows: u64,
    pub time: Duration,
    /// How long writes on the source were locked.
    pub locked: Duration,
    /// Where the channel starts.
    pub position: String,
}

/// The server that takes the copy. An error is one line for the user.
pub trait Target {
    /// Whether it has a part of a copy that an earlier start has begun.
    fn is_unfinished(&self) -> bool;

    /// Opens it, with that part or emptied, and returns its address. It may be open already.
    ///
    /// # Errors
    /// It cannot be opened.
    fn open(&mut self, emptied: bool) -> Result<ChannelConfig, String>;

    /// Tells the user how the copy proceeds.
    fn tell(&self, text: &str);

    /// Applies the source's changes from the channel's position on to `end`, by the set of GTIDs
    /// if `gtids`, although they may find other rows or none. Returns when they are applied, or why
    /// they cannot be applied.
    ///
    /// # Errors
    /// The source cannot be reached. A later call goes on.
    fn complete(&mut self, end: &Position, gtids: bool) -> Result<Result<(), String>, String>;
}

/// Copies a source to the server `target`, and configures its channel, but does not start it.
/// Continues a copy that an earlier start has begun, where that is possible. `report` gets what the
/// user should know. `None`: an earlier start has copied all.
///
/// # Errors
/// The source cannot be copied, or a step fails. The target is incomplete then.
pub fn copy(
    options: &CopyOptions,
    target: &mut dyn Target,
    report: &mut dyn FnMut(&Finding),
) -> Result<Option<Copied>, CopyError> {
    let begun = Instant::now();
    let config = &options.source.0;
    let mut source = Client::connect(config).map_err(CopyError::at(&options.source))?;
    source.run(b"SET SESSION wait_timeout = 86400, time_zone = '+00:00'")?;
    // Before MySQL 8.0 there is no such variable.
    let _ = source.run(b"SET SESSION information_schema_stats_expiry = 0");
    let mut facts = check(&mut source, &options.databases)?;
    if facts.server_id == u64::from(options.server_id) {
        facts.findings.push(Finding::error(
            format!("server_id is {} on both sides", options.server_id),
            "choose another one with --set server_id=N",
        ));
    }
    tell(&facts.findings, report)?;
    if facts.is_mariadb {
        source.run(b"SET SESSION sql_mode = ''")?;
    }
    let mut unfinished = None;
    if target.is_unfinished() {
        match find_earlier(options, &facts, &mut source, target)? {
            Earlier::Unfinished(found) => unfinished = Some(found),
            Earlier::Unusable(why) => report(&not_continued(&why)),
            Earlier::Complete => {
                target.tell("the copy is complete");
                return Ok(None);
            }
        }
    }
    let mut branches = BranchWait::new(options.xa_wait, report);
    let snapshot = snapshot::begin(config, &mut source, options.jobs.max(1), &mut branches)?;
    let definitions = unfinished::definitions(&mut source, &facts.databases)?;
    if let Some(found) = &unfinished
        && found.definitions != definitions
    {
        report(&not_continued("the tables of the source have changed"));
        unfinished = None;
    }
    let at = target.open(unfinished.is_none()).map_err(CopyError)?;
    let mut writer = Client::connect(&at).map_err(CopyError::at("connecting to the copy"))?;
    writer.run(rows::WRITER)?;
    if facts.is_mariadb {
        // CHARACTER SET utf8mb4 without a collation.
        writer.run(b"SET SESSION default_collation_for_utf8mb4 = 'utf8mb4_general_ci'")?;
    }
    let continued = unfinished.is_some();
    let (tables, plan) = match unfinished {
        Some(mut plan) => {
            target.tell(&match plan.chunks.len() {
                0 => "continuing the copy: all rows are there".to_owned(),
                n => format!("continuing the copy: {n} parts are left"),
            });
            if !plan.chunks.is_empty() {
                plan.latest = snapshot.position.clone();
                unfinished::continue_at(&mut writer, &plan.latest)?;
            }
            let tables = unfinished::all_tables(&mut source, &facts.databases)?;
            (tables, plan)
        }
        None => {
            let (tables, findings) = define(&mut source, &mut writer, &facts.databases)?;
            tell(&findings, report)?;
            let plan = Unfinished {
                source: unfinished::identity(&mut source, &facts)?,
                databases: options.databases.join(","),
                first: snapshot.position.clone(),
                latest: snapshot.position.clone(),
                definitions,
                chunks: rows::chunks(&mut source, &tables)?,
            };
            unfinished::begin(&mut writer, &plan)?;
            (tables, plan)
        }
    };
    let (mut clients, locked) = (snapshot.clients, snapshot.locked);
    let (first, latest) = (plan.first, plan.latest);
    let rows = rows::Rows {
        target: &at,
        tables: &tables,
        chunks: plan.chunks,
        continued,
    };
    let rows = rows::copy(&mut clients, rows)?;
    drop(clients);
    configure(&mut writer, options, &facts, &first)?;
    if first != latest {
        target.tell("applying what the source has changed since the copy began");
    }
    if first != latest
        && let Err(why) = (target.complete(&latest, facts.gtids)).map_err(CopyError)?
    {
        writer.run(b"RESET REPLICA ALL")?;
        unfinished::forget(&mut writer)?;
        return Err(CopyError(format!(
            "the parts of the copy cannot be joined: {why}; the next start copies all rows again"
        )));
    }
    // Views name accounts.
    copy_accounts(&mut source, &mut writer, report)?;
    define_views(&mut source, &mut writer, &facts.databases, report)?;
    if snapshot.ddl_locked {
        source.run(b"UNLOCK INSTANCE")?;
    }
    persist(&mut writer, options)?;
    unfinished::forget(&mut writer)?;
    Ok(Some(Copied {
        tables: tables.len(),
        rows,
        time: begun.elapsed(),
        locked,
        position: match facts.gtids {
            true => latest.gtids,
            false => format!("{} {}", latest.file, latest.position),
        },
    }))
}

/// What is told when a copy begins anew, although a part of it is there.
fn not_continued(why: &str) -> Finding {
    Finding::warning(
        format!("the unfinished copy is not continued: {why}"),
        "all rows are copied again",
    )
}

/// What an earlier start has left.
enum Earlier {
    Unfinished(Unfinished),
    /// It cannot be continued for a reason.
    Unusable(String),
    /// Only the files were still to be closed.
    Complete,
}

/// Reads what an earlier start has left.
fn find_earlier(
    options: &CopyOptions,
    facts: &Facts,
    source: &mut Client,
    target: &mut dyn Target,
) -> Result<Earlier, CopyError> {
    let unusable = |why: &str| Ok(Earlier::Unusable(why.into()));
    let at = match target.open(false) {
        Ok(at) => at,
        Err(why) => return Ok(Earlier::Unusable(why)),
    };
    let mut reader = Client::connect(&at).map_err(CopyError::at("connecting to the copy"))?;
    let Some(found) = unfinished::read(&mut reader)? else {
        // The channel is configured before the state is removed.
        let channel = reader.query("SHOW REPLICA STATUS")?;
        return match channel.is_empty() {
            true => unusable("it had not begun to copy rows"),
            false => Ok(Earlier::Complete),
        };
    };
    if found.source != unfinished::identity(source, facts)? {
        return unusable("it is of another source");
    }
    if found.databases != options.databases.join(",") {
        return unusable("it is of other databases");
    }
    if !unfinished::has_file(source, &found.first)? {
        let file = &found.first.file;
        return unusable(&format!("the source has no file {file} any more"));
    }
    Ok(match unfinished::obstacle(source, &facts.databases)? {
        Some(why) => Earlier::Unusable(why),
        None => Earlier::Unfinished(found),
    })
}

/// Reports findings. An error among them ends the copy.
fn tell(findings: &[Finding], report: &mut dyn FnMut(&Finding)) -> Result<(), CopyError> {
    for finding in findings {
        report(finding);
    }
    match findings.iter().filter(|f| f.is_error).count() {
        0 => Ok(()),
        1 => Err(CopyError(
            "the source cannot be followed for the reason above".into(),
        )),
        n => Err(CopyError(format!(
            "the source cannot be followed for {n} reasons"
        ))),
    }
}

/// Creates the databases and tables. A table that cannot be created is a finding.
fn define(
    source: &mut Client,
    target: &mut Client,
    databases: &[String],
) -> Result<(Vec<Table>, Vec<Finding>), CopyError> {
    let mut all = Vec::new();
    let mut findings = Vec::new();
    for database in databases {
        let quoted = name(database);
        let sql = definition(source, &format!("DATABASE {quoted}"))?;
        let created = run_all(target, &translated(source, &sql)?);
        created.map_err(CopyError::at(format_args!(
            "creating the database {database}"
        )))?;
        target.run(format!("USE {quoted}").as_bytes())?;
        for table in tables(source, database)? {
            let sql = definition(source, &format!("TABLE {}", table.path()))?;
            let created = match translated(source, &sql) {
                Ok(statements) => run_all(target, &statements),
                Err(CopyError(message)) => Err(SourceError::Server {
                    code: 1235,
                    message,
                }),
            };
            match created {
                Ok(()) => all.push(table),
                Err(SourceError::Server { code, message }) => findings.push(Finding::error(
                    format!(
                        "the table {database}.{} cannot be created: error {code}: {message}",
                        table.name
                    ),
                    "change it, or leave its database out with --databases",
                )),
                Err(e) => return Err(e.into()),
            }
        }
    }
    Ok((all, findings))
}

/// The statements here that do what a statement of the source does.
///
/// # Errors
/// The text of the error 1235 that names a feature of MariaDB.
fn translated(source: &Client, sql: &str) -> Result<Vec<Vec<u8>>, CopyError> {
    match is_mariadb(source) {
        true => translate(sql.as_bytes(), LexMode::default(), &NoNames)
            .map_err(|e| CopyError(e.message.into())),
        false => Ok(vec![sql.into()]),
    }
}

fn run_all(target: &mut Client, statements: &[Vec<u8>]) -> Result<(), SourceError> {
    for sql in statements {
        target.run(sql)?;
    }
    Ok(())
}

/// Creates the views. A view may use others, so they are tried until none can be created.
fn define_views(
    source: &mut Client,
    target: &mut Client,
    databases: &[String],
    report: &mut dyn FnMut(&Finding),
) -> Result<(), CopyError> {
    let mut left = Vec::new();
    for database in databases {
        for view in views(source, database)? {
            left.push((database, view, String::new()));
        }
    }
    loop {
        let before = left.len();
        let mut failed = Vec::new();
        for (database, view, _) in left {
            let path = format!("{}.{}", name(database), name(&view));
            // Names of the current database are shown without it.
            let current = format!("USE {}", name(database));
            source.run(current.as_bytes())?;
            target.run(current.as_bytes())?;
            // An earlier start may have created it.
            target.run(format!("DROP VIEW IF EXISTS {path}").as_bytes())?;
            let sql = definition(source, &format!("VIEW {path}"));
            let created = sql.and_then(|sql| Ok(run_all(target, &translated(source, &sql)?)?));
            if let Err(e) = created {
                failed.push((database, view, e.to_string()));
            }
        }
        left = failed;
        if left.is_empty() || left.len() == before {
            break;
        }
    }
    for (database, view, why) in left {
        report(&Finding::warning(
            format!("the view {database}.{view} is not copied: {why}"),
            "a statement that changes or drops it stops the channel",
        ));
    }
    Ok(())
}

/// Copies accounts and what is granted to them.
fn copy_accounts(
    source: &mut Client,
    target: &mut Client,
    report: &mut dyn FnMut(&Finding),
) -> Result<(), CopyError> {
    let accounts = source.query(match is_mariadb(source) {
        true => {
            "SELECT user, host FROM mysql.user \
             WHERE user NOT LIKE 'mariadb.%' AND user <> '' AND is_role = 'N'"
        }
        false => "SELECT user, host FROM mysql.user WHERE user NOT LIKE 'mysql.%'",
    });
    let accounts = match accounts {
        Ok(accounts) => accounts,
        Err(e) => {
            report(&Finding::warning(
                format!("accounts are not copied: {e}"),
                "GRANT SELECT ON mysql.user TO the account, or create them here",
            ));
            return Ok(());
        }
    };
    // MariaDB has no such variable.
    if let Ok(Some(on)) = source.value("SELECT @@partial_revokes")
        && on == "1"
    {
        target.run(b"SET GLOBAL partial_revokes = ON")?;
    }
    // Hashes may have bytes that no text has.
    let _ = source.run(b"SET SESSION print_identified_with_as_hex = 1");
    for row in accounts {
        let [Some(user), Some(host)] = &row[..] else {
            continue;
        };
        let account = format!("{}@{}", quoted(user), quoted(host));
        if let Err(e) = copy_account(source, target, &account) {
            report(&Finding::warning(
                format!("the account {account} is not copied whole: {e}"),
                "create it here, or change it",
            ));
        }
    }
    Ok(())
}

fn copy_account(source: &mut Client, target: &mut Client, account: &str) -> Result<(), CopyError> {
    let shown = source.value(&format!("SHOW CREATE USER {account}"))?;
    let sql = shown.unwrap_or_default();
    let rest = sql.strip_prefix("CREATE USER ").unwrap_or(&sql);
    target.run(format!("CREATE USER IF NOT EXISTS {account}").as_bytes())?;
    run_all(target, &translated(source, &format!("ALTER USER {rest}"))?)?;
    let grants = source.query(&format!("SHOW GRANTS FOR {account}"))?;
    let mut result = Ok(());
    for grant in grants.into_iter().flatten().flatten() {
        let done = translated(source, &grant)
            .and_then(|statements| run_all(target, &statements).map_err(CopyError::from));
        result = result.and(done.map_err(|e| CopyError(format!("{e} ({grant})"))));
    }
    result
}

/// Configures the channel to begin at a position. Where an earlier start has done so, the position
/// stays, and the account may be another one.
fn configure(
    target: &mut Client,
    options: &CopyOptions,
    facts: &Facts,
    at: &Position,
) -> Result<(), CopyError> {
    let source = &options.source.0;
    let start = match facts.gtids {
        true => "SOURCE_AUTO_POSITION = 1".to_owned(),
        false => format!(
            "SOURCE_LOG_FILE = {}, SOURCE_LOG_POS = {}",
            quoted(&at.file),
            at.position
        ),
    };
    let account = format!(
        "SOURCE_USER = {}, SOURCE_PASSWORD = {}, SOURCE_SSL = {}, SOURCE_SSL_CA = {}, \
         SOURCE_SSL_CERT = {}, SOURCE_SSL_KEY = {}, SOURCE_SSL_VERIFY_SERVER_CERT = {}",
        quoted(&source.user),
        quoted(&source.password),
        u8::from(source.ssl),
        quoted(&source.tls.ca),
        quoted(&source.tls.cert),
        quoted(&source.tls.key),
        u8::from(source.tls.verify_name),
    );
    // The statements have a password, so their errors do not show them.
    let changed = CopyError::at("CHANGE REPLICATION SOURCE TO");
    if !target.query("SHOW REPLICA STATUS")?.is_empty() {
        let change = format!("CHANGE REPLICATION SOURCE TO {account}");
        return target.run(change.as_bytes()).map(drop).map_err(changed);
    }
    if facts.gtids && !at.gtids.is_empty() {
        target.run(format!("SET GLOBAL gtid_purged = {}", quoted(&at.gtids)).as_bytes())?;
    }
    let change = format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = {}, SOURCE_PORT = {}, {account}, \
         GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 5, SOURCE_RETRY_COUNT = 0, NFOLD_DATABASES = {}, {start}",
        quoted(&source.host),
        source.port,
        quoted(&options.databases.join(",")),
    );
    target.run(change.as_bytes()).map(drop).map_err(changed)
}

/// Stores the settings of a replica.
fn persist(target: &mut Client, options: &CopyOptions) -> Result<(), CopyError> {
    let persist = format!(
        "SET PERSIST_ONLY server_id = {}, PERSIST_ONLY super_read_only = ON",
        options.server_id
    );
    target.run(persist.as_bytes())?;
    Ok(())
}
