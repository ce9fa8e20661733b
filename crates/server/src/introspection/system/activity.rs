//! Connections, variables and counters.

use nfold_protocol::command::command_name;
use nfold_types::{SqlError, Timestamp, Value};

use nfold_catalog::Privileges;

use super::rows::{Cx, Put};
use crate::config::table::OptionKind;
use crate::config::{SetBy, Source};
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
        if global && def.scope == Scope::Session {
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
    let own = (!global).then(|| cx.env.counters.values());
    let values = cx.server.status_values(own.as_ref());
    values
        .into_iter()
        .try_for_each(|(name, value)| put(vec![name.into(), value.into()]))
}
