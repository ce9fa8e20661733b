//! The tables of `performance_schema` about the use of tables and indexes. Calls are counted, and
//! their times are 0. MySQL lists a table once it has been opened; here every table is listed.

use std::sync::Arc;

use nfold_catalog::{IndexKind, TableDef};
use nfold_observe::{IndexCalls, TableCalls, TableIo};
use nfold_types::{SqlError, Value};

use crate::session::ServerState;
use crate::session::system_schemas::PutRow;

/// The stored tables that an account may see, with their counts.
pub(super) type Counted<'a> = Vec<(&'a TableDef, TableCalls)>;

/// OBJECT_TYPE, OBJECT_SCHEMA and OBJECT_NAME.
fn object(def: &TableDef) -> Vec<Value> {
    let name = |name: &Arc<str>| Value::from(&**name);
    vec!["TABLE".into(), name(&def.schema), name(&def.name)]
}

/// A count with its times: their sum, and the shortest, the average and the longest one.
fn put_count(row: &mut Vec<Value>, count: u64) {
    row.push(Value::UInt(count));
    row.extend(std::iter::repeat_n(Value::UInt(0), 4));
}

/// All calls, reads, writes, and then each kind of call.
fn put_calls(row: &mut Vec<Value>, calls: &IndexCalls) {
    let writes = calls.inserted + calls.updated + calls.deleted;
    let sums = [calls.fetched + writes, calls.fetched, writes];
    let kinds = [calls.fetched, calls.inserted, calls.updated, calls.deleted];
    sums.into_iter()
        .chain(kinds)
        .for_each(|n| put_count(row, n));
}

/// The calls for all indexes, and without one.
fn all_calls(calls: &TableCalls) -> IndexCalls {
    let each = calls.by_index.iter().chain([&calls.without_index]);
    each.fold(IndexCalls::default(), |sum, c| IndexCalls {
        fetched: sum.fetched + c.fetched,
        inserted: sum.inserted + c.inserted,
        updated: sum.updated + c.updated,
        deleted: sum.deleted + c.deleted,
        ever: sum.ever || c.ever,
    })
}

pub(super) fn calls_by_table(counted: Counted<'_>, put: &mut PutRow<'_>) -> Result<(), SqlError> {
    for (def, calls) in counted {
        let mut row = object(def);
        put_calls(&mut row, &all_calls(&calls));
        put(row)?;
    }
    Ok(())
}

/// A row for each index, and one for calls without an index if there were any.
pub(super) fn calls_by_index(counted: Counted<'_>, put: &mut PutRow<'_>) -> Result<(), SqlError> {
    for (def, calls) in counted {
        let indexes = def.indexes.iter().enumerate();
        for (at, index) in indexes.filter(|(_, i)| i.kind != IndexKind::HiddenRowId) {
            let mut row = object(def);
            row.push((&*index.name).into());
            put_calls(&mut row, &calls.by_index[at]);
            put(row)?;
        }
        if calls.without_index.ever {
            let mut row = object(def);
            row.push(Value::Null);
            put_calls(&mut row, &calls.without_index);
            put(row)?;
        }
    }
    Ok(())
}

/// All locks are those that MySQL calls external: InnoDB has no others.
pub(super) fn locks_by_table(counted: Counted<'_>, put: &mut PutRow<'_>) -> Result<(), SqlError> {
    for (def, calls) in counted {
        let (reads, writes) = (calls.read_locks, calls.write_locks);
        let mut row = object(def);
        [reads + writes, reads, writes, 0, 0, 0, 0, reads]
            .into_iter()
            .chain([0, 0, 0, 0, writes])
            .for_each(|n| put_count(&mut row, n));
        put(row)?;
    }
    Ok(())
}

/// The calls and the locks of each table.
pub(super) fn objects(counted: Counted<'_>, put: &mut PutRow<'_>) -> Result<(), SqlError> {
    for (def, calls) in counted {
        let all = all_calls(&calls);
        let events = all.fetched + all.inserted + all.updated + all.deleted;
        let mut row = object(def);
        put_count(&mut row, events + calls.read_locks + calls.write_locks);
        put(row)?;
    }
    Ok(())
}

/// The counters of all stored tables.
fn each_table(server: &ServerState, mut f: impl FnMut(&TableIo)) {
    for def in server.engine.catalog().snapshot().tables() {
        if let Some(table) = server.engine.table(def.id) {
            f(table.io());
        }
    }
}

/// All calls, and all locks.
pub(super) fn sums(server: &ServerState) -> (u64, u64) {
    let (mut sum, mut locks) = (0, 0);
    each_table(server, |io| {
        let calls = io.calls();
        let all = all_calls(&calls);
        sum += all.fetched + all.inserted + all.updated + all.deleted;
        locks += calls.read_locks + calls.write_locks;
    });
    (sum, locks)
}

pub(super) fn reset_calls(server: &ServerState) {
    each_table(server, TableIo::reset_calls);
}

pub(super) fn reset_locks(server: &ServerState) {
    each_table(server, TableIo::reset_locks);
}
