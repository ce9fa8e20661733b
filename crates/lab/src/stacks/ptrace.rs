//! Stops one thread of another process for as long as it takes to copy its registers and the top of
//! its stack.
//!
//! # Picture
//! ```text
//! seize ▶ interrupt ▶ wait for the stop ▶ registers, stack bytes ▶ detach   about 100 µs per
//! thread
//! ```
//!
//! # Failure
//! A thread is traced only within [`sample`]. If the lab dies there, the kernel detaches the
//! thread. A thread that ends meanwhile yields no sample. The kernel restarts an interrupted system
//! call, but `epoll_wait` and `nanosleep` may return EINTR, as after SIGSTOP and SIGCONT.
#![allow(unsafe_code)]

use std::io;
use std::time::{Duration, Instant};

/// The most bytes of a stack that are copied.
const STACK: usize = 64 << 10;
const PAGE: usize = 4 << 10;

/// The copied state of a thread.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
    /// The link register.
    #[cfg(target_arch = "aarch64")]
    pub lr: u64,
    /// The bytes from `sp` on.
    pub stack: Vec<u8>,
    /// How long the thread was stopped.
    pub stopped: Duration,
}

/// Requests real-time scheduling for this thread, so that no traced thread is stopped while this
/// one waits for a processor. Has no effect without root privileges.
pub fn hurry() {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the structure is a live local, and 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &parameters) };
}

/// Stops thread `tid` of process `pid`, copies its state and lets it continue. `None` if it has
/// ended.
pub fn sample(pid: u32, tid: u32) -> io::Result<Option<Snapshot>> {
    let tid = tid as libc::pid_t;
    // SAFETY: PTRACE_SEIZE takes plain numbers, and the thread keeps running.
    if unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0usize, 0usize) } < 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ESRCH) {
            Ok(None)
        } else {
            Err(error)
        };
    }
    // SAFETY: as above. `tid` is traced by this thread from here on.
    unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0usize, 0usize) };
    // A thread without a processor stops when it gets one. It would not have run earlier anyway.
    if !stopped(tid) {
        return Ok(None);
    }
    let begin = Instant::now();
    let snapshot = registers(tid).map(|mut s| {
        s.stack = read(pid, s.sp, STACK);
        s
    });
    // SAFETY: the thread is stopped and traced by this thread. Detaching lets it continue.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, tid, 0usize, 0usize) };
    Ok(snapshot.map(|mut s| {
        s.stopped = begin.elapsed();
        s
    }))
}

/// Waits until the traced thread has stopped, and forwards signals that arrive meanwhile. Returns
/// false if it has ended.
fn stopped(tid: libc::pid_t) -> bool {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a live local.
        if unsafe { libc::waitpid(tid, &mut status, libc::__WALL) } != tid {
            if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return false;
        }
        if !libc::WIFSTOPPED(status) {
            return false;
        }
        if status >> 16 == libc::PTRACE_EVENT_STOP {
            return true;
        }
        let signal = libc::WSTOPSIG(status) as usize;
        // SAFETY: the thread is stopped by a signal, and continues with it.
        unsafe { libc::ptrace(libc::PTRACE_CONT, tid, 0usize, signal) };
    }
}

fn registers(tid: libc::pid_t) -> Option<Snapshot> {
    // SAFETY: user_regs_struct consists of plain numbers, for which zero is a valid value.
    let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let mut io = libc::iovec {
        iov_base: (&raw mut regs).cast(),
        iov_len: size_of_val(&regs),
    };
    // SAFETY: `io` describes `regs`, which outlives the call, and the thread is stopped.
    let done = unsafe {
        libc::ptrace(
            libc::PTRACE_GETREGSET,
            tid,
            libc::NT_PRSTATUS as usize,
            &raw mut io,
        )
    };
    (done >= 0).then(|| snapshot(&regs))
}

#[cfg(target_arch = "x86_64")]
fn snapshot(regs: &libc::user_regs_struct) -> Snapshot {
    Snapshot {
        ip: regs.rip,
        sp: regs.rsp,
        bp: regs.rbp,
        ..Snapshot::default()
    }
}

#[cfg(target_arch = "aarch64")]
fn snapshot(regs: &libc::user_regs_struct) -> Snapshot {
    Snapshot {
        ip: regs.pc,
        sp: regs.sp,
        bp: regs.regs[29],
        lr: regs.regs[30],
        ..Snapshot::default()
    }
}

/// Reads up to `want` bytes at `at`, page by page, because the stack may end anywhere.
fn read(pid: u32, at: u64, want: usize) -> Vec<u8> {
    let mut out = vec![0u8; want];
    let mut pieces = Vec::with_capacity(want / PAGE + 1);
    let (mut from, mut left) = (at as usize, want);
    while left > 0 {
        let n = (PAGE - from % PAGE).min(left);
        pieces.push(libc::iovec {
            iov_base: from as *mut libc::c_void,
            iov_len: n,
        });
        from = from.wrapping_add(n);
        left -= n;
    }
    let local = libc::iovec {
        iov_base: out.as_mut_ptr().cast(),
        iov_len: out.len(),
    };
    // SAFETY: `local` describes `out`. The remote ranges are addresses in the other process, which
    // the kernel checks.
    let n = unsafe {
        libc::process_vm_readv(
            pid as libc::pid_t,
            &local,
            1,
            pieces.as_ptr(),
            pieces.len() as libc::c_ulong,
            0,
        )
    };
    out.truncate(usize::try_from(n).unwrap_or(0));
    out
}
