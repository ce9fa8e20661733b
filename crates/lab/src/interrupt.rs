//! Ctrl-C. The first one sets a flag that every long loop of the lab checks; the second one ends
//! the process.
#![allow(unsafe_code)]

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The exit code of a command that was ended by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    if REQUESTED.swap(true, Ordering::Relaxed) {
        // SAFETY: _exit is async-signal-safe.
        unsafe { libc::_exit(i32::from(INTERRUPTED)) }
    }
}

/// Whether the user wants the command to end. Loops must check it at least a few times per second.
#[inline]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Handles SIGINT and SIGTERM. System calls that wait return EINTR, because the handler is
/// installed without SA_RESTART.
pub fn install() {
    // SAFETY: sigaction is plain data, for which zero is a valid value. The handler only does what
    // is allowed in a signal handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
        libc::sigaction(libc::SIGTERM, &action, std::ptr::null_mut());
    }
}

/// Starts a program in its own process group, so that Ctrl-C at the terminal does not reach it
/// directly. [`wait`] forwards it.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    command.process_group(0).spawn()
}

/// Waits for a program that [`spawn`] started. Ctrl-C ends it early and cleanly. Returns false if
/// it failed.
pub fn wait(child: &mut Child) -> io::Result<bool> {
    let mut told = false;
    let status: ExitStatus = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if requested() && !std::mem::replace(&mut told, true) {
            // SAFETY: kill takes plain numbers. The child has not been waited for, so its process
            // id cannot have been reused.
            unsafe {
                libc::kill(child.id() as libc::pid_t, libc::SIGINT);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    // A program that ended because of Ctrl-C shows that in its status.
    let ended_by = status.signal() == Some(libc::SIGINT) || status.code() == Some(130);
    Ok(status.success() || told && ended_by)
}

/// As [`wait`]. Also returns its standard error, which must be a pipe and short.
pub fn output(mut child: Child) -> io::Result<(bool, String)> {
    let well = wait(&mut child)?;
    let mut said = Vec::new();
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_end(&mut said)?;
    }
    Ok((well, String::from_utf8_lossy(&said).into_owned()))
}
