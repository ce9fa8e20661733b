//! Connections, variables and counters.

use nfold_protocol::command::command_name;
use nfold_types::{SqlError, Value};

use nfold_catalog::Privileges;

use super::rows::{Cx, Put};
use crate::net::worker::ProcessInfo;


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

pub(super) fn status(cx: &Cx<'_>, global: bool, put: &mut Put<'_>) -> Result<(), SqlError> {
    let own = (!global).then(|| cx.env.counters.values());
    let values = cx.server.status_values(own.as_ref());
    values
        .into_iter()
        .try_for_each(|(name, value)| put(vec![name.into(), value.into()]))
}
