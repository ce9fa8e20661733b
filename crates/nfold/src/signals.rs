//! SIGTERM and SIGINT: blocked in every thread and taken by the main thread, so that no code runs in a handler.

use std::io;

fn both() -> libc::sigset_t {
    // SAFETY: sigset_t is plain bits; sigemptyset and sigaddset write only into it, and cannot fail for these numbers.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        set
    }
}

/// To be called before the first thread is made: they inherit it.
pub fn block() -> io::Result<()> {
    let set = both();
    // SAFETY: `set` is initialised and lives through the call; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) } {
        0 => Ok(()),
        e => Err(io::Error::from_raw_os_error(e)),
    }
}

/// Waits for one of the two; its name.
pub fn wait() -> io::Result<&'static str> {
    let set = both();
    let mut signal = 0;
    // SAFETY: both pointers are to live locals; the signals are blocked, as sigwait wants.
    match unsafe { libc::sigwait(&set, &mut signal) } {
        0 if signal == libc::SIGINT => Ok("SIGINT"),
        0 => Ok("SIGTERM"),
        e => Err(io::Error::from_raw_os_error(e)),
    }
}

/// From now on they end the process at once: for those who do not want to wait for an orderly end.
pub fn unblock() {
    let set = both();
    // SAFETY: as in `block`.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) };
}

/// Raises the limit of open files to what the system allows; the limit in force.
pub fn raise_open_files() -> u64 {
    // SAFETY: rlimit is two numbers; the calls read or write only it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return 0;
        }
        let raised = libc::rlimit {
            rlim_cur: limit.rlim_max,
            ..limit
        };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
            limit = raised;
        }
        limit.rlim_cur
    }
}
