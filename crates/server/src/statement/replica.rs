//! CHANGE REPLICATION SOURCE TO and FILTER, START REPLICA, STOP REPLICA, RESET REPLICA.

use nfold_binlog::GtidSet;
use nfold_catalog::Privileges;
use nfold_exec::ExecCx;
use nfold_replica::{ChannelConfig, Coordinates, Filters};
use nfold_sql::ast::{
    ChangeFilter, ChangeSource, FilterRule, ReplicaUntil, SourceOption, SourceValue,
};
use nfold_types::{ErrorCode, Level, SqlError};

use crate::session::Session;
use crate::session::replication::{CHANNEL, Until};
use crate::session::response::Response;

/// The longest SOURCE_HEARTBEAT_PERIOD in seconds.
const MAX_HEARTBEAT_S: f64 = 4_294_967.0;
/// The longest SOURCE_DELAY in seconds.
const MAX_DELAY_S: u32 = i32::MAX as u32;

/// The place at which START REPLICA UNTIL stops.
///
/// # Errors
/// 1772 for a malformed set of GTIDs; 1277 for a position without its file, or a file without a
/// position.
fn parsed_until(until: &ReplicaUntil) -> Result<Until, SqlError> {
    let set = |text: &str| {
        let code = ErrorCode::ER_MALFORMED_GTID_SET_SPECIFICATION;
        GtidSet::parse_mysql(text).map_err(|_| SqlError::new(code, &[&text]))
    };
    match until {
        ReplicaUntil::BeforeGtids(text) => Ok(Until::BeforeGtids(set(text)?)),
        ReplicaUntil::AfterGtids(text) => Ok(Until::AfterGtids(set(text)?)),
        ReplicaUntil::Position {
            file: Some(file),
            position: Some(position),
        } => Ok(Until::Position {
            file: file.clone(),
            position: *position,
        }),
        ReplicaUntil::Position { .. } => {
            Err(SqlError::new(ErrorCode::ER_BAD_REPLICA_UNTIL_COND, &[]))
        }
    }
}

impl Session {
    fn need_replication(&self) -> Result<(), SqlError> {
        let names = "SUPER or REPLICATION_SLAVE_ADMIN";
        self.rights.need_global(Privileges::SUPER, names)
    }

    /// Error 1235 for a channel with a name. `exists`: error 3074, because it must exist.
    fn only_channel(channel: Option<&String>, exists: bool) -> Result<(), SqlError> {
        match channel.filter(|name| !name.is_empty()) {
            None => Ok(()),
            Some(name) if exists => {
                let code = ErrorCode::ER_REPLICA_CHANNEL_DOES_NOT_EXIST;
                Err(SqlError::new(code, &[name]))
            }
            Some(_) => Err(SqlError::not_supported("replication channels with a name")),
        }
    }

    /// CHANGE REPLICATION SOURCE TO
    pub(crate) fn change_source(
        &mut self,
        cx: &mut dyn ExecCx,
        change: &ChangeSource,
    ) -> Result<Response, SqlError> {
        self.need_replication()?;
        Session::only_channel(change.channel.as_ref(), false)?;
        let (server, options) = (self.server.clone(), change.options.clone());
        self.blocking_sql(cx, move || {
            let busy = ErrorCode::ER_REPLICA_CHANNEL_IO_THREAD_MUST_STOP;
            server
                .replication
                .configure(&server.engine, busy, |config, at| {
                    let mut new = config.take().unwrap_or_default();
                    apply_options(&options, &mut new, at)?;
                    *config = Some(new);
                    Ok(())
                })
        })?;
        Ok(Response::ok())
    }

    /// CHANGE REPLICATION FILTER. Other than in MySQL the lists are stored, so that a server that
    /// starts again does not apply what was left out before.
    pub(crate) fn change_filter(
        &mut self,
        cx: &mut dyn ExecCx,
        change: &ChangeFilter,
    ) -> Result<Response, SqlError> {
        self.need_replication()?;
        Session::only_channel(change.channel.as_ref(), true)?;
        check_patterns(&change.rules)?;
        let (server, rules) = (self.server.clone(), change.rules.clone());
        self.blocking_sql(cx, move || {
            let busy = ErrorCode::ER_REPLICA_CHANNEL_SQL_THREAD_MUST_STOP;
            let replication = &server.replication;
            replication.configure(&server.engine, busy, |config, _| {
                let config = config.get_or_insert_default();
                for rule in rules {
                    set_rule(rule, &mut config.filters);
                }
                Ok(())
            })
        })?;
        Ok(Response::ok())
    }

    /// START REPLICA
    pub(crate) fn start_replica(
        &mut self,
        cx: &mut dyn ExecCx,
        until: Option<&ReplicaUntil>,
        channel: Option<&String>,
    ) -> Result<Response, SqlError> {
        self.need_replication()?;
        Session::only_channel(channel, true)?;
        let until = until.map(parsed_until).transpose()?;
        let server = self.server.clone();
        let start = move || server.replication.start(&server, until);
        let started = self.blocking_sql(cx, start)?;
        if !started {
            let code = ErrorCode::ER_REPLICA_CHANNEL_WAS_RUNNING;
            self.conditions.push(Level::Note, code, &[&CHANNEL]);
        }
        Ok(Response::ok())
    }

    /// STOP REPLICA
    pub(crate) fn stop_replica(
        &mut self,
        cx: &mut dyn ExecCx,
        channel: Option<&String>,
    ) -> Result<Response, SqlError> {
        self.need_replication()?;
        Session::only_channel(channel, true)?;
        let server = self.server.clone();
        let stopped =
            self.blocking_sql(cx, move || Ok(server.replication.stop(&server.registry)))?;
        if !stopped {
            let code = ErrorCode::ER_REPLICA_CHANNEL_WAS_NOT_RUNNING;
            self.conditions.push(Level::Note, code, &[&CHANNEL]);
        }
        Ok(Response::ok())
    }

    /// RESET REPLICA: forgets the source's file and position. With ALL, the configuration as well.
    /// The applied GTIDs stay, because they tell what the tables contain.
    pub(crate) fn reset_replica(
        &mut self,
        cx: &mut dyn ExecCx,
        all: bool,
        channel: Option<&String>,
    ) -> Result<Response, SqlError> {
        self.need_replication()?;
        Session::only_channel(channel, true)?;
        let server = self.server.clone();
        self.blocking_sql(cx, move || {
            let busy = ErrorCode::ER_REPLICA_CHANNEL_MUST_STOP;
            server
                .replication
                .configure(&server.engine, busy, |config, at| {
                    if all {
                        *config = None;
                    }
                    (at.file, at.position) = (String::new(), 0);
                    Ok(())
                })
        })?;
        Ok(Response::ok())
    }

    /// SET GLOBAL gtid_purged: the tables contain these transactions, which a copy of the source
    /// brought. `+set` adds to those that they contain already.
    ///
    /// # Errors
    /// 1231 for another text, 3546 if the sets overlap or the new one lacks some of the old one.
    pub(super) fn set_gtid_purged(
        &mut self,
        cx: &mut dyn ExecCx,
        value: &str,
    ) -> Result<(), SqlError> {
        let added = value.trim_start().strip_prefix('+');
        let set = GtidSet::parse(added.unwrap_or(value)).map_err(|_| {
            let names: [&dyn std::fmt::Display; 2] = [&"gtid_purged", &value];
            SqlError::new(ErrorCode::ER_WRONG_VALUE_FOR_VAR, &names)
        })?;
        let (server, adds) = (self.server.clone(), added.is_some());
        self.blocking_sql(cx, move || {
            let busy = ErrorCode::ER_REPLICA_CHANNEL_MUST_STOP;
            server.replication.configure(&server.engine, busy, |_, at| {
                let code = ErrorCode::ER_CANT_SET_GTID_PURGED_DUE_SETS_CONSTRAINTS;
                if adds && set.without(&at.gtids) != set {
                    let why = "the added gtid set must not overlap with @@GLOBAL.GTID_EXECUTED";
                    return Err(SqlError::new(code, &[&why]));
                }
                if !adds && !at.gtids.is_subset(&set) {
                    let why = "the new value must be a superset of the old value";
                    return Err(SqlError::new(code, &[&why]));
                }
                at.gtids.add_all(&set);
                Ok(())
            })
        })
    }

    /// Runs `f` on a thread that may block.
    fn blocking_sql<T: Send + 'static>(
        &mut self,
        cx: &mut dyn ExecCx,
        f: impl FnOnce() -> Result<T, SqlError> + Send + 'static,
    ) -> Result<T, SqlError> {
        self.change(cx, move || Ok(f()))?
    }
}

/// Error 3067 for a pattern of tables without a dot.
fn check_patterns(rules: &[FilterRule]) -> Result<(), SqlError> {
    let mut patterns = rules.iter().flat_map(|rule| match rule {
        FilterRule::WildDoTable(list) | FilterRule::WildIgnoreTable(list) => list.as_slice(),
        _ => &[],
    });
    match patterns.all(|pattern| pattern.contains('.')) {
        true => Ok(()),
        false => {
            let code = ErrorCode::ER_INVALID_RPL_WILD_TABLE_FILTER_PATTERN;
            Err(SqlError::new(code, &[]))
        }
    }
}

/// Sets a list. The same table twice is one.
fn set_rule(rule: FilterRule, filters: &mut Filters) {
    let once = |mut list: Vec<(String, String)>| {
        let mut seen = std::collections::HashSet::new();
        list.retain(|pair| seen.insert(pair.clone()));
        list
    };
    match rule {
        FilterRule::DoDb(list) => filters.do_db = list,
        FilterRule::IgnoreDb(list) => filters.ignore_db = list,
        FilterRule::DoTable(list) => filters.do_table = once(list),
        FilterRule::IgnoreTable(list) => filters.ignore_table = once(list),
        FilterRule::WildDoTable(list) => filters.wild_do_table = list,
        FilterRule::WildIgnoreTable(list) => filters.wild_ignore_table = list,
        FilterRule::RewriteDb(list) => filters.rewrite_db = list,
    }
}

/// Changes a configuration and the coordinates by the options of the statement.
fn apply_options(
    options: &[SourceOption],
    config: &mut ChannelConfig,
    at: &mut Coordinates,
) -> Result<(), SqlError> {
    let (host, port) = (config.host.clone(), config.port);
    let mut position = false;
    for option in options {
        let name = option.name.as_str();
        match name {
            "SOURCE_HOST" => config.host = text(option)?,
            "SOURCE_PORT" => config.port = number(option, u16::MAX.into())? as u16,
            "SOURCE_USER" => config.user = text(option)?,
            "SOURCE_PASSWORD" => config.password = text(option)?,
            "SOURCE_AUTO_POSITION" => config.auto_position = number(option, 1)? != 0,
            // MariaDB's name.
            "SOURCE_USE_GTID" => config.auto_position = uses_gtid(option)?,
            "SOURCE_CONNECT_RETRY" => {
                config.connect_retry_s = number(option, u32::MAX.into())? as u32;
            }
            "SOURCE_RETRY_COUNT" => config.retry_count = number(option, u64::MAX)?,
            "SOURCE_HEARTBEAT_PERIOD" => config.heartbeat_ms = heartbeat(option)?,
            "SOURCE_SSL" => config.ssl = number(option, 1)? != 0,
            "SOURCE_SSL_CA" => config.tls.ca = text(option)?,
            "SOURCE_SSL_CERT" => config.tls.cert = text(option)?,
            "SOURCE_SSL_KEY" => config.tls.key = text(option)?,
            "SOURCE_SSL_VERIFY_SERVER_CERT" => config.tls.verify_name = number(option, 1)? != 0,
            "GET_SOURCE_PUBLIC_KEY" => config.get_public_key = number(option, 1)? != 0,
            "SOURCE_DELAY" => config.delay_s = delay(option)?,
            "NFOLD_DATABASES" => {
                let text = text(option)?;
                let names = text
                    .split(',')
                    .map(str::trim)
                    .filter(|name| !name.is_empty());
                config.databases = names.map(str::to_owned).collect();
            }
            "SOURCE_LOG_FILE" => {
                (at.file, position) = (text(option)?, true);
            }
            "SOURCE_LOG_POS" => {
                (at.position, position) = (number(option, u64::MAX)?, true);
            }
            _ => return Err(SqlError::not_supported(format!("the option {name}"))),
        }
    }
    if position && config.auto_position {
        return Err(SqlError::new(ErrorCode::ER_BAD_REPLICA_AUTO_POSITION, &[]));
    }
    // Another source has other files.
    let moved = (&host, port) != (&config.host, config.port) && !host.is_empty();
    if moved && !position {
        (at.file, at.position) = (String::new(), 0);
    }
    Ok(())
}

fn wrong(option: &SourceOption) -> SqlError {
    let text = format!("wrong value of the option {}", option.name);
    SqlError::with_message(ErrorCode::ER_WRONG_ARGUMENTS, text)
}

fn text(option: &SourceOption) -> Result<String, SqlError> {
    match &option.value {
        SourceValue::Text(text) => String::from_utf8(text.clone()).map_err(|_| wrong(option)),
        SourceValue::Number(_) | SourceValue::Word(_) => Err(wrong(option)),
    }
}

fn number(option: &SourceOption, max: u64) -> Result<u64, SqlError> {
    match &option.value {
        SourceValue::Number(text) => {
            let value = text.parse().ok().filter(|n| *n <= max);
            value.ok_or_else(|| wrong(option))
        }
        SourceValue::Text(_) | SourceValue::Word(_) => Err(wrong(option)),
    }
}

/// MASTER_USE_GTID: there is one set of applied transactions, so both positions are the same.
fn uses_gtid(option: &SourceOption) -> Result<bool, SqlError> {
    let SourceValue::Word(word) = &option.value else {
        return Err(wrong(option));
    };
    match word.to_ascii_lowercase().as_str() {
        "slave_pos" | "current_pos" => Ok(true),
        "no" => Ok(false),
        _ => Err(wrong(option)),
    }
}

/// A number of whole seconds.
fn delay(option: &SourceOption) -> Result<u32, SqlError> {
    let seconds = match &option.value {
        SourceValue::Number(text) => text.parse::<f64>().map_err(|_| wrong(option))?,
        SourceValue::Text(_) | SourceValue::Word(_) => return Err(wrong(option)),
    };
    match seconds <= f64::from(MAX_DELAY_S) {
        true => Ok(seconds as u32),
        false => {
            let code = ErrorCode::ER_SOURCE_DELAY_VALUE_OUT_OF_RANGE;
            Err(SqlError::new(code, &[&seconds, &MAX_DELAY_S]))
        }
    }
}

/// A number of seconds with a fraction, in milliseconds.
fn heartbeat(option: &SourceOption) -> Result<u32, SqlError> {
    let SourceValue::Number(text) = &option.value else {
        return Err(wrong(option));
    };
    let seconds: f64 = text.parse().map_err(|_| wrong(option))?;
    if !(0.0..=MAX_HEARTBEAT_S).contains(&seconds) {
        let code = ErrorCode::ER_REPLICA_HEARTBEAT_VALUE_OUT_OF_RANGE;
        return Err(SqlError::new(code, &[&MAX_HEARTBEAT_S]));
    }
    Ok((seconds * 1000.0) as u32)
}
