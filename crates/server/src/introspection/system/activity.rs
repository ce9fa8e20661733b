//! Connections, variables and counters; what the engine counts, under MySQL's names: INNODB_METRICS
//! and its kin, and the summary of memory in `performance_schema`.

use nfold_protocol::command::command_name;
use nfold_types::{SqlError, Timestamp, Value};
use rustc_hash::FxHashMap;

use nfold_catalog::Privileges;

use super::accounts::need_process;
use super::rows::{Cx, Put};
use super::schema;
use crate::config::table::OptionKind;
use crate::config::{SetBy, Source};
use crate::introspection::table_facts::row_format;
use crate::net::worker::ProcessInfo;
use crate::session::vars::{Scope, VarDef, definitions};

/// The connections that the account may see: its own, or all with PROCESS.
fn processes(cx: &Cx<'_>) -> Vec<(ProcessInfo, &'static str)> {
    let everyone = cx.has_global(Privileges::PROCESS);
    let own = &cx.env.login.user;
    let mut all = cx.server.registry.processes();
    all.retain(|p| everyone || p.identity.user == *own);
    cx.server.with_states(all)
}

/// The running statement.
fn text(p: &ProcessInfo) -> Option<String> {
    let text = p.text.as_ref()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

fn seconds(p: &ProcessInfo) -> Value {
    Value::Int((p.elapsed_us / 1_000_000) as i64)
}

/// One row of either PROCESSLIST.
fn process_row((p, state): &(ProcessInfo, &'static str)) -> Vec<Value> {
    vec![
        Value::UInt(p.id.into()),
        p.identity.user.as_str().into(),
        p.identity.host.as_str().into(),
        p.identity.database.as_deref().into(),
        command_name(p.command).into(),
        seconds(p),
        (*state).into(),
        text(p).into(),
    ]
}

pub(super) fn processlist(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    processes(cx).iter().try_for_each(|p| put(process_row(p)))
}

pub(super) fn performance_processlist(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for p in processes(cx) {
        let mut row = process_row(&p);
        row.push("PRIMARY".into());
        put(row)?;
    }
    Ok(())
}

/// One row for each connection. Sessions have no thread of their own, so the connection id is shown
/// as the thread id.
pub(super) fn threads(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (p, state) in processes(cx) {
        let id = Value::UInt(p.id.into());
        let mut row = vec![
            id.clone(),
            "thread/sql/one_connection".into(),
            "FOREGROUND".into(),
            id,
            p.identity.user.as_str().into(),
            p.identity.host.as_str().into(),
            p.identity.database.as_deref().into(),
            command_name(p.command).into(),
            seconds(&p),
            state.into(),
            text(&p).into(),
            Value::Null,
            Value::Null,
            "NO".into(),
            "NO".into(),
            "TCP/IP".into(),
            Value::Null,
            "USR_default".into(),
            "PRIMARY".into(),
        ];
        row.extend(std::iter::repeat_n(Value::UInt(0), 4));
        row.push("NO".into());
        put(row)?;
    }
    Ok(())
}

/// The maximum length of VARIABLE_VALUE in characters.
const VALUE_CHARS: usize = 1024;

pub(super) fn variables(cx: &Cx<'_>, global: bool, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (at, def) in definitions().iter().enumerate() {
        if global && def.scope == Scope::Session || !cx.env.sees_var(at) {
            continue;
        }
        let mut value = cx.env.read_var(at, global).show();
        if let Some((end, _)) = value.char_indices().nth(VALUE_CHARS) {
            value.truncate(end);
        }
        put(vec![def.name.into(), value.into()])?;
    }
    Ok(())
}

/// VARIABLE_SOURCE, VARIABLE_PATH, and who has set the value.
fn origin(cx: &Cx<'_>, at: usize) -> (&'static str, String, Option<SetBy>) {
    if let Some(by) = cx.server.globals.changed_by(at) {
        return ("DYNAMIC", String::new(), Some(by));
    }
    match &cx.server.sources[at] {
        Source::Compiled => ("COMPILED", String::new(), None),
        Source::CommandLine => ("COMMAND_LINE", String::new(), None),
        Source::File(path) => ("EXPLICIT", path.display().to_string(), None),
        Source::Persisted(by) => {
            let path = cx.server.persisted.path().display().to_string();
            ("PERSISTED", path, Some(by.clone()))
        }
    }
}

/// MIN_VALUE and MAX_VALUE; zeros for variables that are no numbers.
fn range(def: &VarDef) -> (String, String) {
    match def.kind {
        OptionKind::Int { min, max, .. } => (min.to_string(), max.to_string()),
        OptionKind::Signed { min, max, .. } => (min.to_string(), max.to_string()),
        OptionKind::Real { min, max, .. } => (min.to_string(), max.to_string()),
        OptionKind::Bool { .. } | OptionKind::Text { .. } | OptionKind::Choice { .. } => {
            ("0".into(), "0".into())
        }
    }
}

pub(super) fn variables_info(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (at, def) in definitions().iter().enumerate() {
        if !cx.env.sees_var(at) {
            continue;
        }
        let (source, path, by) = origin(cx, at);
        let (min, max) = range(def);
        let time = by.as_ref().map_or(Value::Null, |by| {
            let micros = i64::try_from(by.micros).unwrap_or(i64::MAX);
            Value::Timestamp(Timestamp::from_micros(micros, 6))
        });
        let (user, host) = match &by {
            Some(by) => (by.user.as_str().into(), by.host.as_str().into()),
            None => (Value::Null, Value::Null),
        };
        put(vec![
            def.name.into(),
            source.into(),
            path.into(),
            min.into(),
            max.into(),
            time,
            user,
            host,
        ])?;
    }
    Ok(())
}

pub(super) fn persisted_variables(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for (name, entry) in cx.server.persisted.entries() {
        put(vec![name.into(), entry.value.into()])?;
    }
    Ok(())
}

pub(super) fn status(cx: &Cx<'_>, global: bool, put: &mut Put<'_>) -> Result<(), SqlError> {
    let values = cx.server.status_values((!global).then_some(cx.env));
    // As in MySQL, which has other tables for what statements do.
    let shown = values
        .into_iter()
        .filter(|(name, _)| !name.starts_with("Com_") || *name == "Com_stmt_reprepare");
    shown
        .map(|(name, value)| vec![name.into(), value.into()])
        .try_for_each(put)
}

/// The metrics that MySQL counts by default: name, subsystem, type, the status variable with the
/// value (`-`: always 0), comment.
const METRICS: &str = include_str!("innodb_metrics.txt");

/// The page sizes of compressed tables, which do not exist.
const COMPRESSED_PAGES: [i64; 5] = [1024, 2048, 4096, 8192, 16_384];

const PAGE_BYTES: u64 = 16_384;

pub(super) fn innodb_metrics(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    need_process(cx)?;
    let status: FxHashMap<_, _> = cx.server.status_values(None).into_iter().collect();
    let elapsed = cx.server.started.elapsed().as_secs();
    for line in METRICS.lines() {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        let (name, subsystem, kind, variable, comment) = (next(), next(), next(), next(), next());
        let count = match name {
            "buffer_pool_size" => cx.server.engine.store_status().pool_pages_total * PAGE_BYTES,
            "lock_deadlocks" => cx.server.engine.row_lock_status().deadlocks,
            "buffer_data_reads" => cx.server.engine.store_status().pages_read * PAGE_BYTES,
            "buffer_data_written" => cx.server.engine.store_status().pages_written * PAGE_BYTES,
            _ => status
                .get(variable)
                .and_then(|v| v.parse().ok())
                .unwrap_or(0),
        };
        let is_value = kind == "value";
        let number = |n: u64| Value::Int(n as i64);
        let average = (!is_value).then(|| count as f64 / elapsed.max(1) as f64);
        let average = average.map_or(Value::Null, Value::Double);
        put(vec![
            name.into(),
            subsystem.into(),
            number(count),
            number(count),
            Value::Null,
            average.clone(),
            number(count),
            number(count),
            Value::Null,
            average,
            cx.local(schema::server_start(cx)),
            Value::Null,
            number(elapsed),
            Value::Null,
            "enabled".into(),
            kind.into(),
            comment.into(),
        ])?;
    }
    Ok(())
}

/// INNODB_CMP: there are no compressed pages.
pub(super) fn compression(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    need_process(cx)?;
    COMPRESSED_PAGES.iter().try_for_each(|size| {
        let mut row = vec![Value::Int(*size)];
        row.extend(std::iter::repeat_n(Value::Int(0), 5));
        put(row)
    })
}

/// INNODB_CMPMEM
pub(super) fn compression_memory(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    compression(cx, put)
}

pub(super) fn buffer_pool_stats(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    need_process(cx)?;
    let s = cx.server.engine.store_status();
    let used = s.pool_pages_total.saturating_sub(s.pool_pages_free);
    let zero = || Value::UInt(0);
    let rate = || Value::Float(0.0);
    let mut row: Vec<Value> = [0, s.pool_pages_total, s.pool_pages_free, used, 0]
        .map(Value::UInt)
        .into();
    row.push(Value::UInt(s.pool_pages_dirty));
    row.extend(std::iter::repeat_with(zero).take(6));
    row.extend([rate(), rate()]);
    row.extend([s.pages_read, s.pages_created, s.pages_written].map(Value::UInt));
    row.extend([rate(), rate(), rate()]);
    row.extend(std::iter::repeat_with(zero).take(4));
    row.extend([Value::UInt(s.read_ahead), zero(), rate(), rate()]);
    row.extend(std::iter::repeat_with(zero).take(4));
    put(row)
}

/// Each table has a file of its own.
pub(super) fn tablespaces(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for def in schema::stored(cx)? {
        let bytes = Value::UInt(schema::file_bytes(cx, def));
        put(vec![
            Value::UInt(def.space.into()),
            schema::path(def).into(),
            Value::UInt(16_417),
            row_format(def).into(),
            Value::UInt(PAGE_BYTES),
            Value::UInt(0),
            "Single".into(),
            Value::UInt(4096),
            bytes.clone(),
            bytes,
            Value::UInt(0),
            "8.0.0".into(),
            Value::UInt(1),
            "N".into(),
            "normal".into(),
        ])?;
    }
    Ok(())
}

/// The buffer pool, and what the allocator counts.
pub(super) fn memory(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    let pool = cx.server.engine.store_status().pool_pages_total * PAGE_BYTES;
    let allocated = nfold_memory::allocated_by_all();
    let events = [
        ("memory/innodb/buf_buf_pool", pool),
        ("memory/nfold/allocated", allocated),
    ];
    events.into_iter().try_for_each(|(event, bytes)| {
        let used = Value::Int(bytes as i64);
        let mut row = vec![event.into(), Value::UInt(1), Value::UInt(0)];
        row.extend([Value::UInt(bytes), Value::UInt(0)]);
        row.extend([0, 1, 1, 0].map(Value::Int));
        row.extend([used.clone(), used]);
        put(row)
    })
}

/// The traces that the session remembers.
pub(super) fn optimizer_trace(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    let traces = cx.env.traces.borrow();
    traces.shown(cx.env.trace_limits()).try_for_each(|trace| {
        put(vec![
            trace.query.as_str().into(),
            trace.text.as_str().into(),
            Value::Int(trace.missing as i64),
            Value::Int(trace.insufficient_privileges.into()),
        ])
    })
}
