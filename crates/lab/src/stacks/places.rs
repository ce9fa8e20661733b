//! Classifies waiting stacks by what they wait for, and whether they are idle, by names of MySQL,
//! MariaDB and Nfold.

use std::sync::Arc;

use super::phases::matches;

/// Frames of waiting in general. The place of a wait is in the frames above them.
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

/// Waits with a name: frames anywhere in a waiting stack, and what they wait for.
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
    (&["^lock_wait", "lock_rec_"], "a row lock"),
    (
        &["rw_pr_wrlock", "rw_pr_rdlock"],
        "latch of the metadata locks",
    ),
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
    (&["nfold_sync::page_word"], "latch of a page"),
    (
        &["nfold_store::wait::"],
        "a page being read, or the log becoming durable",
    ),
];

/// Locks between threads of a Rust program. A thread in one of these waits for another thread, and
/// not for work.
const LOCKED: &[&str] = &[
    "raw_mutex",
    "raw_rwlock",
    "lock_contended",
    "_slow",
    "std::sync::once",
];

/// Names that occur only in Rust programs. Because of inlining, their background threads may park
/// without a frame of their own.
const RUST: &[&str] = &["nfold_", "nfold::", "std::rt::", "std::sys::"];

/// A thread with one of these frames executes a statement.
const STATEMENT: &[&str] = &[
    "dispatch_command",
    "mysql_parse",
    "mysql_execute_command",
    "handler::",
    "Prepared_statement",
    "nfold_server::session",
    "nfold_server::ddl",
    "nfold_server::introspection",
    "nfold_server::statement",
];

/// A thread with one of these frames, and without a statement, waits for a client.
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

/// The same in a Rust server, whose threads serve many clients.
const LOOP: &[&str] = &["nfold_server::net::worker", "nfold_server::net::listen"];

/// Loops that take work from other threads, whose names look like a statement's. The thread is idle
/// if there is no frame between them and the wait.
const NEXT: &[&str] = &["session::cx::Offload::work"];

/// Calls in which background threads wait for their next work.
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

/// Strips a C library function's name of its decorations.
fn plain(name: &str) -> &str {
    name.strip_prefix("__GI_")
        .unwrap_or(name)
        .trim_start_matches('_')
}

/// Whether the thread has just returned from a call that only waits.
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
        "sigwait",
        "sigtimedwait",
        "accept4",
    ];
    frames.last().is_some_and(|f| {
        CALLS.contains(&plain(f))
            || plain(f).starts_with("futex")
            || plain(f).starts_with("lll_lock_wait")
    })
}

/// The place at which a waiting stack waits, and whether it is idle. The answer is a known place,
/// or the first named function above the wait.
pub fn wait(frames: &[Arc<str>]) -> (String, bool) {
    let any = |rules: &[&str]| frames.iter().any(|f| rules.iter().any(|r| matches(f, r)));
    let busy = any(STATEMENT);
    if let Some((_, name)) = PLACES.iter().find(|(rules, _)| any(rules)) {
        return ((*name).to_owned(), false);
    }
    let named =
        |f: &&Arc<str>| !f.starts_with('[') && !WAITING.iter().any(|w| matches(plain(f), w));
    let place = frames.iter().rev().find(named);
    let next = place.is_some_and(|f| NEXT.iter().any(|r| matches(f, r)));
    let busy = busy && !next;
    let client = ("idle: a client's next command".to_owned(), true);
    let background = ("idle: a background thread's next work".to_owned(), true);
    if any(RUST) {
        if !busy && !any(LOCKED) && just_waited(frames) {
            return if any(LOOP) { client } else { background };
        }
    } else if !busy && any(CLIENT) {
        return client;
    } else if !busy
        && frames
            .iter()
            .rev()
            .take(3)
            .any(|f| REST.iter().any(|r| plain(f).contains(r)))
    {
        return background;
    }
    match place {
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
    fn waits_are_classified_by_place() {
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
        for (names, place) in [
            (
                &[
                    "do_command",
                    "MDL_context::acquire_lock",
                    "rw_pr_wrlock",
                    "__GI___lll_lock_wait",
                ],
                "latch of the metadata locks",
            ),
            (
                &[
                    "do_command",
                    "MDL_context::acquire_lock",
                    "MDL_wait::timed_wait",
                    "syscall",
                ],
                "a metadata lock",
            ),
            (
                &["do_command", "row_search_mvcc", "lock_wait", "syscall"],
                "a row lock",
            ),
        ] {
            assert_eq!(wait(&stack(names)), (place.to_owned(), false));
        }
        // A stripped server: latches have no names, but the statement's functions do.
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

    #[test]
    fn idle_threads_of_nfold_are_recognized() {
        let client = "idle: a client's next command";
        let background = "idle: a background thread's next work";
        for (names, name, idle) in [
            (
                &[
                    "std::sys::thread::start",
                    "nfold_server::net::worker::event_loop::run",
                    "mio::poll::Poll::poll",
                    "epoll_wait",
                ][..],
                client,
                true,
            ),
            (
                &[
                    "nfold_engine::background::run",
                    "parking_lot::condvar::Condvar::wait_until_internal",
                    "syscall",
                ],
                background,
                true,
            ),
            (
                &[
                    "nfold_store::log::writer",
                    "std::thread::park_timeout",
                    "syscall",
                ],
                background,
                true,
            ),
            (
                &[
                    "nfold_server::session::cx::Offload::work",
                    "parking_lot::condvar::Condvar::wait_until_internal",
                    "syscall",
                ],
                background,
                true,
            ),
            // `park` is inlined.
            (&["nfold_store::cleaner::run", "syscall"], background, true),
            (&["nfold::main", "__GI___sigtimedwait"], background, true),
            (
                &[
                    "nfold_engine::background::run",
                    "parking_lot::raw_mutex::RawMutex::lock_slow",
                    "syscall",
                ],
                "in nfold_engine::background::run",
                false,
            ),
            (
                &[
                    "nfold_engine::background::run",
                    "nfold_sync::page_word::PageWord::exclusive_slow",
                    "syscall",
                ],
                "latch of a page",
                false,
            ),
            (
                &[
                    "nfold_store::cleaner::run",
                    "nfold_store::wait::Wait::block",
                    "std::thread::park",
                    "syscall",
                ],
                "a page being read, or the log becoming durable",
                false,
            ),
            // Within a statement, no wait is idle.
            (
                &[
                    "nfold_server::statement::run",
                    "nfold_exec::sort::wait",
                    "syscall",
                ],
                "in nfold_exec::sort::wait",
                false,
            ),
            // Waiting for a disk is not idle.
            (
                &["nfold_store::cleaner::run", "fdatasync"],
                "in nfold_store::cleaner::run",
                false,
            ),
        ] {
            assert_eq!(wait(&stack(names)), (name.to_owned(), idle), "{names:?}");
        }
    }
}
