//! What a stack is busy with, or waits for, in words: by the first frame from the leaf up that a rule knows.
//!
//! The rules hold names of MySQL, MariaDB and Nfold. A frame that no rule knows belongs to the next one that one does.

use std::sync::Arc;

/// Phases of work: name, and the beginnings (`^`) or parts of function names that tell.
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
            "nfold_server::conn",
            "nfold_server::worker::event_loop",
        ],
    ),
    (
        "result rows",
        &[
            "select_send",
            "Query_result_send",
            "^Item::send",
            "Field_",
            "nfold_exec::encode",
            "nfold_exec::plain",
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
            "nfold_btree::guess",
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

/// Frames that wait, whatever for: a wait's own place is above them.
const WAITING: &[&str] = &[
    "futex",
    "pthread_cond",
    "pthread_mutex",
    "pthread_rwlock",
    "lll_lock",
    "^syscall",
    "^poll",
    "^ppoll",
    "epoll_wait",
    "epoll_pwait",
    "^nanosleep",
    "^recv",
    "^read",
    "io_getevents",
    "io_uring",
    "^sem_",
    "sigwait",
    "sigtimedwait",
    "^accept",
    "^select",
    "parking_lot",
    "std::sys",
    "std::thread",
    "core::",
    "std::sync",
    "psi_",
    "my_cond",
    "inline_mysql_cond",
    "safe_cond",
    "my_hrtime",
    "srw_mutex",
    "ssux_lock",
    "srw_lock",
    "sux_lock",
    "rw_lock_",
    "sync_array",
    "os_event",
    "ut_delay",
    "^std::",
    "mio::",
    "clock_nanosleep",
    "[libc",
    "[unknown]",
    "[vdso]",
    "^internal",
    "start_thread",
    "wait4",
    "^clone",
    "^pread",
    "^fsync",
    "^fdatasync",
    "tpool::",
    "mutex",
    "^new_sem",
];

/// Waits that have a name: frames anywhere in a waiting stack, and what they wait for.
const PLACES: &[(&[&str], &str)] = &[
    (&["btr_search_"], "latch of the adaptive hash index"),
    (
        &[
            "btr_cur_search_to_nth_level",
            "btr_cur_t::search",
            "btr_cur_t::pessimistic",
            "btr_cur_t::open",
        ],
        "latch of an index or a page in a tree's descent",
    ),
    (
        &["buf_page_get", "buf_page_optimistic", "buf_pool_t"],
        "latch of a page or of the buffer pool",
    ),
    (&["lock_wait", "lock_rec_"], "a row lock"),
    (&["MDL_"], "a metadata lock"),
    (
        &[
            "log_write_up_to",
            "trx_flush_log",
            "log_flush",
            "group_commit",
        ],
        "the log becoming durable",
    ),
    (&["trx_sys", "ReadView"], "the list of transactions"),
    (
        &["nfold_sync::latch", "nfold_store::latch"],
        "latch of a page",
    ),
];

/// A thread with one of these has a statement under way.
const STATEMENT: &[&str] = &[
    "dispatch_command",
    "mysql_parse",
    "mysql_execute_command",
    "handler::",
    "Prepared_statement",
    "nfold_server::session",
];

/// A thread with one of these, and no statement, waits for a client.
const CLIENT: &[&str] = &[
    "do_command",
    "my_net_read",
    "vio_read",
    "get_command",
    "cache_thread",
    "threadpool",
    "handle_connections_sockets",
    "poll_get",
    "do_handle_one_connection",
];

/// Calls in which threads of the background wait for their next work.
const REST: &[&str] = &[
    "cond_wait",
    "cond_timedwait",
    "nanosleep",
    "epoll_wait",
    "epoll_pwait",
    "poll",
    "sigwait",
    "sigtimedwait",
    "io_getevents",
    "uring",
    "accept",
    "select",
    "sleep",
    "park",
    "recv",
];

fn matches(name: &str, rule: &str) -> bool {
    match rule.strip_prefix('^') {
        Some(start) => name.starts_with(start),
        None => name.contains(rule),
    }
}

/// What a stack that runs is busy with; frames from the thread's beginning to the leaf.
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

/// A function of the C library by its plain name.
fn plain(name: &str) -> &str {
    name.strip_prefix("__GI_")
        .unwrap_or(name)
        .trim_start_matches('_')
}

/// Does the thread come out of a call that only waits?
pub fn just_waited(frames: &[Arc<str>]) -> bool {
    const CALLS: &[&str] = &[
        "syscall",
        "epoll_wait",
        "epoll_pwait",
        "poll",
        "ppoll",
        "clock_nanosleep",
        "nanosleep",
        "pthread_cond_wait",
        "pthread_cond_timedwait",
    ];
    frames.last().is_some_and(|f| {
        CALLS.contains(&plain(f))
            || plain(f).starts_with("futex")
            || plain(f).starts_with("lll_lock_wait")
    })
}

/// What a stack that waits is waiting for, and whether that is idleness: a known place, or the first function with a name above the wait.
pub fn wait(frames: &[Arc<str>]) -> (String, bool) {
    let any = |rules: &[&str]| frames.iter().any(|f| rules.iter().any(|r| matches(f, r)));
    let busy = any(STATEMENT);
    if let Some((_, name)) = PLACES.iter().find(|(rules, _)| any(rules)) {
        return ((*name).to_owned(), false);
    }
    if !busy && any(CLIENT) {
        return ("idle: a client's next command".to_owned(), true);
    }
    if !busy
        && frames
            .iter()
            .rev()
            .take(3)
            .any(|f| REST.iter().any(|r| plain(f).contains(r)))
    {
        return ("idle: a background thread's next work".to_owned(), true);
    }
    let named =
        |f: &&Arc<str>| !f.starts_with('[') && !WAITING.iter().any(|w| matches(plain(f), w));
    match frames.iter().rev().find(named) {
        Some(frame) => {
            let unnamed = frames
                .iter()
                .rev()
                .take_while(|f| !Arc::ptr_eq(f, frame))
                .any(|f| f.starts_with('['));
            (
                format!(
                    "{} {frame}",
                    if unnamed {
                        "in code without names, under"
                    } else {
                        "in"
                    }
                ),
                false,
            )
        }
        None => ("idle: nothing above the wait".to_owned(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|n| Arc::from(*n)).collect()
    }

    #[test]
    fn the_leaf_decides_first() {
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

    #[test]
    fn waits_are_named() {
        let frames = stack(&[
            "do_command",
            "btr_search_guess_on_hash",
            "srw_lock_impl<false>::rd_wait",
            "syscall",
        ]);
        assert_eq!(
            wait(&frames),
            ("latch of the adaptive hash index".into(), false)
        );
        assert!(wait(&stack(&["do_command", "my_net_read", "__poll"])).1);
        assert_eq!(
            wait(&stack(&[
                "main",
                "dispatch_command",
                "wait_for_it",
                "pthread_cond_wait"
            ])),
            ("in wait_for_it".into(), false)
        );
        // A stripped server: latches have no names, the statement's functions do.
        let stripped = stack(&[
            "do_command",
            "dispatch_command",
            "handler::ha_index_read_map",
            "[mariadbd]",
            "[mariadbd]",
            "syscall",
        ]);
        assert_eq!(
            wait(&stripped),
            (
                "in code without names, under handler::ha_index_read_map".into(),
                false
            )
        );
        assert!(
            wait(&stack(&[
                "start_thread",
                "[mariadbd]",
                "psi_cond_wait",
                "__GI___pthread_cond_wait",
                "__futex_abstimed_wait_common"
            ]))
            .1
        );
        assert!(
            just_waited(&stack(&["main", "__GI___poll"]))
                && !just_waited(&stack(&["main", "__GI___send"]))
        );
    }
}
