//! SIGTERM and SIGINT: blocked in every thread and taken by one of their own, so that no code runs
//! in a handler.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

fn both() -> libc::sigset_t {
    // SAFETY: sigset_t is plain bits; sigemptyset and sigaddset write only into it, and cannot fail
    // for these numbers.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        set
    }
}

/// To be called before the first thread is made: they inherit it. A file that may not grow (`ulimit
/// -f`) is an error of the write, not the end of the process.
pub fn block() -> io::Result<()> {
    // SAFETY: no handler is installed; ignoring a signal has no preconditions.
    if unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    let set = both();
    // SAFETY: `set` is initialised and lives through the call; the old mask is not requested.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) } {
        0 => Ok(()),
        e => Err(io::Error::from_raw_os_error(e)),
    }
}

fn wait() -> io::Result<&'static str> {
    let set = both();
    let mut signal = 0;
    // SAFETY: both pointers are to live locals; the signals are blocked, as sigwait wants.
    match unsafe { libc::sigwait(&set, &mut signal) } {
        0 if signal == libc::SIGINT => Ok("SIGINT"),
        0 => Ok("SIGTERM"),
        e => Err(io::Error::from_raw_os_error(e)),
    }
}

/// The thread that takes the signals.
pub struct Signals {
    serving: Arc<AtomicBool>,
    first: mpsc::Receiver<&'static str>,
}

impl Signals {
    /// Until [`Signals::serving`] is called, a signal ends the process at once: nothing is served
    /// yet, and recovery can be interrupted at any point. After it, the first is reported, and the
    /// second ends the process.
    pub fn start() -> io::Result<Self> {
        let serving = Arc::new(AtomicBool::new(false));
        let (send, first) = mpsc::channel();
        let seen = serving.clone();
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                while let Ok(name) = wait() {
                    let reported = seen.load(Ordering::SeqCst) && send.send(name).is_ok();
                    if !reported || !seen.swap(false, Ordering::SeqCst) {
                        tracing::warn!("{name}: ending at once");
                        std::process::exit(1);
                    }
                }
            })?;
        Ok(Signals { serving, first })
    }

    /// From now on there are clients, and an orderly end is worth waiting for.
    pub fn serving(&self) {
        self.serving.store(true, Ordering::SeqCst);
    }

    /// Blocks until a signal; its name.
    pub fn wait_for_one(&self) -> io::Result<&'static str> {
        self.first.recv().map_err(io::Error::other)
    }
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
