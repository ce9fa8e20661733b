//! Raises the limit of open files of this process, because each connection is an open file.
#![allow(unsafe_code)]

/// Raises the limit to the maximum for this user, and returns the resulting limit.
pub fn open_files() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls receive a pointer to a live local rlimit.
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
