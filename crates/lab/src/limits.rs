//! How many files this process may have open: each connection is one.
#![allow(unsafe_code)]

/// Raises the limit to what the system allows this user; the limit then.
pub fn open_files() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls are given a whole rlimit of our own.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return 0;
        }
        let most = libc::rlimit {
            rlim_cur: limit.rlim_max,
            ..limit
        };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &most) == 0 {
            limit = most;
        }
    }
    limit.rlim_cur
}
