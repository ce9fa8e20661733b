//! Classifies running stacks by phase of work: the frame nearest to the leaf that matches a rule
//! decides.
//!
//! The rules contain names of MySQL, MariaDB and Nfold. A frame without a rule belongs to the
//! nearest caller that has one.

use std::sync::Arc;

/// The phases: name, and the prefixes (`^`) or parts of function names that identify them.
const WORK: &[(&str, &[&str])] = &[
    ("adaptive hash index", &["btr_search_"]),
    (
        "spinning on a latch",
        &[
            "srw_mutex",
            "ssux_lock",
            "srw_lock",
            "ut_delay",
            "rw_lock_",
            "sync_array",
            "^PolicyMutex",
            "^TTASEventMutex",
            "nfold_sync::latch",
            "parking_lot",
        ],
    ),
    (
        "network",
        &[
            "^net_",
            "^my_net_",
            "^vio_",
            "^Protocol",
            "^__send",
            "^send",
            "^recv",
            "^__libc_recv",
            "^__libc_send",
            "epoll_",
            "^poll",
            "^ppoll",
            "nfold_server::net::conn",
            "nfold_server::net::fiber::buffer",
            "nfold_server::net::fiber::transport",
            "nfold_server::net::fiber::writer",
            "nfold_server::net::worker::event_loop",
        ],
    ),
    (
        "result rows",
        &[
            "select_send",
            "Query_result_send",
            "^Item::send",
            "Field_",
            "nfold_exec::operators::output",
            "nfold_exec::operators::raw_rows",
        ],
    ),
    (
        "estimating ranges",
        &["records_in_range", "btr_estimate", "multi_range_read_info"],
    ),
    (
        "optimizer",
        &[
            "test_quick_select",
            "get_mm_tree",
            "SEL_ARG",
            "SEL_TREE",
            "JOIN::optimize",
            "make_join_",
            "best_access_path",
            "get_quick_",
            "QUICK_RANGE",
            "sel_",
            "nfold_plan::",
        ],
    ),
    (
        "clustered rows",
        &[
            "row_sel_get_clust_rec",
            "Row_sel_get_clust_rec",
            "nfold_engine::read",
            "nfold_btree::row_hint",
        ],
    ),
    (
        "copying rows",
        &[
            "row_sel_store",
            "row_sel_field_store",
            "row_sel_enqueue",
            "row_sel_dequeue",
            "nfold_engine::record",
        ],
    ),
    (
        "index search",
        &[
            "btr_cur_",
            "btr_pcur_",
            "page_cur_",
            "buf_page_get",
            "sel_restore_position",
            "nfold_btree::",
        ],
    ),
    ("record offsets", &["rec_get_offsets", "rec_init_offsets"]),
    (
        "transactions and versions",
        &["^trx_", "ReadView", "row_vers", "lock_", "nfold_txn::"],
    ),
    (
        "log and files",
        &[
            "^log_",
            "fil_",
            "os_file",
            "fsync",
            "fdatasync",
            "pwrite",
            "pread",
            "nfold_store::",
        ],
    ),
    (
        "engine, other",
        &[
            "row_search_mvcc",
            "ha_innobase",
            "handler::",
            "row_",
            "mtr_",
            "innobase_",
            "nfold_engine::",
        ],
    ),
    (
        "parser",
        &[
            "MYSQLparse",
            "yylex",
            "Lex_input",
            "lex_",
            "parse_sql",
            "nfold_sql::",
        ],
    ),
    (
        "tables and privileges",
        &[
            "open_table",
            "lock_tables",
            "close_thread_tables",
            "MDL_",
            "check_grant",
            "check_access",
            "nfold_catalog::",
        ],
    ),
    (
        "executor",
        &[
            "JOIN::exec",
            "sub_select",
            "evaluate_join",
            "join_read",
            "Item_func",
            "Item_cond",
            "Iterator",
            "nfold_exec::",
        ],
    ),
    (
        "session",
        &[
            "dispatch_command",
            "do_command",
            "mysql_",
            "Prepared_statement",
            "nfold_server::",
        ],
    ),
    ("client of the profiler", &["nfold_lab::"]),
];

pub(super) fn matches(name: &str, rule: &str) -> bool {
    match rule.strip_prefix('^') {
        Some(start) => name.starts_with(start),
        None => name.contains(rule),
    }
}

/// The phase of a running stack. `frames` go from the thread's start function to the leaf.
pub fn work(frames: &[Arc<str>]) -> &'static str {
    for frame in frames.iter().rev() {
        if let Some((phase, _)) = WORK
            .iter()
            .find(|(_, rules)| rules.iter().any(|r| matches(frame, r)))
        {
            return phase;
        }
    }
    "other"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|n| Arc::from(*n)).collect()
    }

    #[test]
    fn frame_nearest_to_the_leaf_decides() {
        let frames = stack(&[
            "do_command",
            "JOIN::exec",
            "row_search_mvcc",
            "btr_cur_search_to_nth_level",
            "btr_search_guess_on_hash",
            "memcmp",
        ]);
        assert_eq!(work(&frames), "adaptive hash index");
        assert_eq!(
            work(&stack(&["nfold_exec::run", "nfold_btree::tree::get"])),
            "index search"
        );
        assert_eq!(work(&stack(&["main"])), "other");
    }
}
