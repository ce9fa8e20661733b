//! Locks with their holders and waiters.

use nfold_catalog::Privileges;
use nfold_engine::{DataLock, isolation_name};
use nfold_types::{ErrorCode, SqlError, Value};

use super::rows::{Cx, Put};

/// All active transactions with the statements of their connections. Needs PROCESS.
pub(super) fn innodb_trx(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    if !cx.has_global(Privileges::PROCESS) {
        let missing = ErrorCode::ER_SPECIFIC_ACCESS_DENIED_ERROR;
        return Err(SqlError::new(missing, &[&"PROCESS"]));
    }
    let running = cx.server.registry.processes();
    for trx in cx.server.engine.active_transactions() {
        let process = running.iter().find(|p| u64::from(p.id) == trx.session);
        let query = process.and_then(|p| p.text.as_ref());
        let query = query.map(|t| String::from_utf8_lossy(t).into_owned());
        let number = Value::UInt;
        let plain_read = trx.about.single && !trx.locking;
        let objects = trx.sorts + trx.tables_locked;
        let state = match &trx.waiting {
            _ if trx.rolling_back => "ROLLING BACK",
            Some(_) => "LOCK WAIT",
            None => "RUNNING",
        };
        let (since, lock) = trx.waiting.unzip();
        put(vec![
            number(trx.trx),
            text(state),
            cx.local(trx.started_us / 1_000_000),
            lock.flatten().into(),
            since.map_or(Value::Null, |at| cx.local(at / 1_000_000)),
            number(trx.changes + objects),
            number(trx.session),
            query.into(),
            Value::Null,
            number(0),
            number(trx.tables_locked),
            number(objects),
            number(0),
            number(trx.locks),
            number(trx.changes),
            number(0),
            text(isolation_name(trx.about.isolation)),
            Value::Int(1),
            Value::Int(1),
            Value::Null,
            Value::Int(0),
            number(0),
            Value::Int(i64::from(trx.about.read_only || plain_read)),
            Value::Int(i64::from(plain_read)),
            Value::Null,
        ])?;
    }
    Ok(())
}

fn text(value: &str) -> Value {
    value.into()
}

pub(super) fn data_locks(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for lock in cx.server.engine.data_locks() {
        let kind = if lock.index.is_some() {
            "RECORD"
        } else {
            "TABLE"
        };
        let status = if lock.granted { "GRANTED" } else { "WAITING" };
        put(vec![
            text("INNODB"),
            text(&lock.id),
            Value::UInt(lock.trx),
            Value::UInt(lock.session),
            Value::UInt(1),
            text(&lock.schema),
            text(&lock.table),
            Value::Null,
            Value::Null,
            lock.index.as_deref().into(),
            Value::UInt(lock.trx),
            text(kind),
            text(&lock.mode),
            text(status),
            lock.data.into(),
        ])?;
    }
    Ok(())
}

/// User-level locks. The connection id is shown as the thread id, as in `threads`.
pub(super) fn metadata_locks(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    for lock in cx.server.engine.catalog().user_locks().list() {
        put(vec![
            text("USER LEVEL LOCK"),
            Value::Null,
            text(&lock.name),
            Value::Null,
            Value::UInt(0),
            text("EXCLUSIVE"),
            text("EXPLICIT"),
            text(if lock.granted { "GRANTED" } else { "PENDING" }),
            Value::Null,
            Value::UInt(lock.session),
            Value::Null,
        ])?;
    }
    Ok(())
}

pub(super) fn data_lock_waits(cx: &Cx<'_>, put: &mut Put<'_>) -> Result<(), SqlError> {
    let side = |lock: &DataLock| {
        [
            text(&lock.id),
            Value::UInt(lock.trx),
            Value::UInt(lock.session),
            Value::UInt(1),
            Value::UInt(lock.trx),
        ]
    };
    for wait in cx.server.engine.data_lock_waits() {
        let mut row = vec![text("INNODB")];
        row.extend(side(&wait.waiting));
        row.extend(side(&wait.blocking));
        put(row)?;
    }
    Ok(())
}
