//! Ctrl-C: sets a flag that every long loop of the lab looks at; the second one ends the process.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    if REQUESTED.swap(true, Ordering::Relaxed) {
        // SAFETY: _exit is async-signal-safe.
        unsafe { libc::_exit(i32::from(super::INTERRUPTED)) }
    }
}

/// True once somebody wants the command to end. Loops look at it at least a few times a second.
#[inline]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Takes SIGINT and SIGTERM. Calls that wait return with EINTR, since the handler asks for no restart.
pub fn install() {
    // SAFETY: sigaction is plain data, zero is a valid value of it; the handler does only what is allowed in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
        libc::sigaction(libc::SIGTERM, &action, std::ptr::null_mut());
    }
}
