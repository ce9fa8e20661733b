//! The tables of `performance_schema` about files, and about waits. Calls are counted; the times of
//! files are 0.

use std::collections::BTreeMap;

use nfold_observe::CountRows;
use nfold_observe::contention::KINDS;
use nfold_types::{SqlError, Value};

use super::{summaries, table_io};
use crate::session::ServerState;
use crate::session::system_schemas::PutRow;

const PS_PER_NS: u64 = 1000;

/// MySQL's name for the use of a file of the data directory.
fn event(server: &ServerState, name: &str) -> &'static str {
    let log = server.binlog.as_ref();
    match name {
        _ if log.is_some_and(|log| log.names.number(name).is_some()) => "wait/io/file/sql/binlog",
        "nfold.doublewrite" => "wait/io/file/innodb/innodb_dblwr_file",
        "nfold.control" => "wait/io/file/innodb/innodb_log_file",
        _ if name.starts_with("redo.") => "wait/io/file/innodb/innodb_log_file",
        _ if name.starts_with("binlog") => "wait/io/file/sql/binlog",
        _ if name.ends_with(".nfd") => "wait/io/file/innodb/innodb_data_file",
        _ if name.ends_with(".scratch") || name.ends_with(".tmp") => {
            "wait/io/file/innodb/innodb_temp_file"
        }
        _ => "wait/io/file/sql/misc",
    }
}

/// The calls for each file by its name: reads, bytes read, writes, bytes written, other calls.
pub(super) fn calls_by_file(server: &ServerState) -> CountRows {
    let files = server.files.calls().into_iter();
    let rows = files.map(|(name, c)| {
        let others = c.opens + c.others;
        let counts = [c.reads, c.read_bytes, c.writes, c.written_bytes, others];
        (name, counts.to_vec())
    });
    rows.collect()
}

/// The same for each kind of file.
pub(super) fn calls_by_event(server: &ServerState) -> CountRows {
    let mut rows = CountRows::new();
    for (name, counts) in calls_by_file(server) {
        let sums = rows
            .entry(event(server, &name).into())
            .or_insert_with(|| vec![0; counts.len()]);
        sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
    }
    rows
}

/// All calls, reads with their bytes, writes with theirs, other calls; each count with its times.
fn put_calls(row: &mut Vec<Value>, counts: &[u64]) {
    let times = || std::iter::repeat_n(Value::UInt(0), 4);
    let [reads, read_bytes, writes, written_bytes, others] = *counts else {
        return;
    };
    row.push(Value::UInt(reads + writes + others));
    row.extend(times());
    for (calls, bytes) in [(reads, read_bytes), (writes, written_bytes)] {
        row.push(Value::UInt(calls));
        row.extend(times());
        row.push(Value::Int(bytes as i64));
    }
    row.push(Value::UInt(others));
    row.extend(times());
}

pub(super) fn by_event(server: &ServerState, put: &mut PutRow<'_>) -> Result<(), SqlError> {
    let rows = summaries::since(server, summaries::FILES_BY_EVENT, calls_by_event);
    rows.iter().try_for_each(|(event, counts)| {
        let mut row = vec![event.as_str().into()];
        put_calls(&mut row, counts);
        put(row)
    })
}

/// The path of a file of the data directory.
fn path(server: &ServerState, name: &str) -> Value {
    format!("{}{name}", server.text("datadir")).into()
}

pub(super) fn by_file(server: &ServerState, put: &mut PutRow<'_>) -> Result<(), SqlError> {
    let rows = summaries::since(server, summaries::FILES, calls_by_file);
    for (at, (name, counts)) in (1..).zip(&rows) {
        let mut row = vec![
            path(server, name),
            event(server, name).into(),
            Value::UInt(at),
        ];
        put_calls(&mut row, counts);
        put(row)?;
    }
    Ok(())
}

/// A file that the engine has opened stays open until it is removed.
pub(super) fn instances(server: &ServerState, put: &mut PutRow<'_>) -> Result<(), SqlError> {
    for (name, _) in server.files.calls() {
        put(vec![
            path(server, &name),
            event(server, &name).into(),
            Value::UInt(1),
        ])?;
    }
    Ok(())
}

/// The waits of `SHOW ENGINE NFOLD CONTENTION` by kind, calls to tables, locks of tables, and calls
/// to files: the number and the sum of the times in nanoseconds.
pub(super) fn waits_by_event(server: &ServerState) -> CountRows {
    let mut rows = CountRows::new();
    let mut add = |event: String, waits: u64, ns: u64| rows.insert(event, vec![waits, ns]);
    let report = server.engine.contention().report();
    for kind in KINDS {
        let sites = report.iter().filter(|s| s.site.kind == kind);
        let sums = sites.fold((0, 0), |(waits, ns), s| {
            (waits + s.waits, ns + s.time.as_nanos() as u64)
        });
        let name = kind.name().replace(' ', "_");
        add(format!("wait/nfold/{name}"), sums.0, sums.1);
    }
    let (calls, locks) = table_io::sums(server);
    add("wait/io/table/sql/handler".into(), calls, 0);
    add("wait/lock/table/sql/handler".into(), locks, 0);
    for (event, counts) in calls_by_event(server) {
        let [reads, _, writes, _, others] = counts[..] else {
            continue;
        };
        add(event, reads + writes + others, 0);
    }
    rows
}

/// The shortest wait is not known. The longest is that since the start.
pub(super) fn waits(server: &ServerState, put: &mut PutRow<'_>) -> Result<(), SqlError> {
    let mut longest: BTreeMap<String, u64> = BTreeMap::new();
    for site in server.engine.contention().report() {
        let name = format!("wait/nfold/{}", site.site.kind.name().replace(' ', "_"));
        let most = longest.entry(name).or_default();
        *most = (*most).max(site.longest.as_nanos() as u64);
    }
    let picoseconds = |ns: u64| Value::UInt(ns.saturating_mul(PS_PER_NS));
    let rows = summaries::since(server, summaries::WAITS, waits_by_event);
    rows.iter().try_for_each(|(event, counts)| {
        let (waits, ns) = (counts[0], counts[1]);
        let most = longest.get(event).copied().unwrap_or(0);
        put(vec![
            event.as_str().into(),
            Value::UInt(waits),
            picoseconds(ns),
            Value::UInt(0),
            picoseconds(ns / waits.max(1)),
            picoseconds(if waits > 0 { most } else { 0 }),
        ])
    })
}
