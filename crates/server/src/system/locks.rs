//! Who holds which lock, and who waits for it.

use nfold_engine::DataLock;
use nfold_types::{SqlError, Value};

use super::rows::{Cx, Put};

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
