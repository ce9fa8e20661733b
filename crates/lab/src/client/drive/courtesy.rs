//! How the driver's threads share processors with a server on the same machine.
//!
//! A thread that wakes up may preempt the running one. If a client did so at each response, it
//! would find only that one response, interrupt a thread of the server, and be interrupted by the
//! next one. Both would pay for the context switches, most of all a server with a thread per
//! connection.
//!
//! Under SCHED_BATCH (Linux; requires no privilege), a thread that wakes up waits until the running
//! one sleeps or has used its time slice. It then finds all responses that have arrived meanwhile.
//! It gets as much processor time as before, and starts as early if a processor is free.
#![allow(unsafe_code)]

/// Sets SCHED_BATCH for the calling thread, so that it preempts no other thread. A thread whose
/// policy is not the default keeps it.
pub fn give_way() {
    // SAFETY: the calls take plain numbers and a pointer to a live local. 0 is the calling thread.
    // If they fail, nothing changes.
    unsafe {
        if libc::sched_getscheduler(0) == libc::SCHED_OTHER {
            let parameters = libc::sched_param { sched_priority: 0 };
            libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn batch_policy_affects_only_the_calling_thread() {
        // SAFETY: the call takes a plain number.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        let during = std::thread::spawn(move || {
            super::give_way();
            policy()
        });
        let during = during.join().expect("it ends");
        match before {
            libc::SCHED_OTHER => assert_eq!(during, libc::SCHED_BATCH),
            other => assert_eq!(during, other),
        }
        assert_eq!(policy(), before);
    }
}
