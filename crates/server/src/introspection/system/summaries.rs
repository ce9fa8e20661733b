//! TRUNCATE of tables of `performance_schema`: their counts begin at zero again.

use nfold_observe::CountRows;

use super::{file_io, table_io};
use crate::session::ServerState;
use crate::session::system_schemas::TruncateRefusal;

pub(super) const FILES: &str = "file_summary_by_instance";
pub(super) const FILES_BY_EVENT: &str = "file_summary_by_event_name";
pub(super) const WAITS: &str = "events_waits_summary_global_by_event_name";

/// The rows of a report, counted from its last reset on.
pub(super) fn since(
    server: &ServerState,
    report: &'static str,
    rows: impl Fn(&ServerState) -> CountRows,
) -> CountRows {
    server.reset_sums.since(report, rows(server))
}

/// Lets the counts in a table begin at zero. The table exists.
pub(super) fn truncate(server: &ServerState, name: &str) -> Result<(), TruncateRefusal> {
    let sums = &server.reset_sums;
    match name {
        "events_statements_summary_by_digest" => server.digests.reset(),
        "table_io_waits_summary_by_table" | "table_io_waits_summary_by_index_usage" => {
            table_io::reset_calls(server);
        }
        "table_lock_waits_summary_by_table" => table_io::reset_locks(server),
        "objects_summary_global_by_type" => {
            table_io::reset_calls(server);
            table_io::reset_locks(server);
        }
        FILES => sums.reset(FILES, file_io::calls_by_file(server)),
        FILES_BY_EVENT => sums.reset(FILES_BY_EVENT, file_io::calls_by_event(server)),
        WAITS => sums.reset(WAITS, file_io::waits_by_event(server)),
        "events_statements_histogram_by_digest"
        | "accounts"
        | "global_status"
        | "hosts"
        | "setup_actors"
        | "setup_objects"
        | "status_by_thread"
        | "users" => return Err(TruncateRefusal::NotSupported),
        // The other ones are empty, or have no sums.
        _ if is_summary(name) => {}
        _ => return Err(TruncateRefusal::NotASummary),
    }
    Ok(())
}

/// Whether the table has measurements that TRUNCATE empties in MySQL.
fn is_summary(name: &str) -> bool {
    name.contains("_summary_")
        || name.starts_with("events_")
        || matches!(name, "host_cache" | "prepared_statements_instances")
}
