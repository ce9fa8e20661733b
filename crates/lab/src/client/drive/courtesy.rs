//! How the driver's threads share processors with a server on the same machine.
//!
//! A thread that wakes may push aside the one that runs. A client that does so at each answer finds that one answer, stops a server's
//! thread in the middle of its work, and is stopped by the next: both pay for the switches, a server with a thread for each connection most.
//! Under SCHED_BATCH (Linux; it needs no privilege) a thread that wakes waits until the one that runs sleeps or has had its share, and
//! then finds all answers that have come meanwhile. It runs as much as before, and where a processor is free, as early.
#![allow(unsafe_code)]

/// From here on the calling thread pushes nobody aside. Whoever was given another policy than the usual one keeps it.
pub fn give_way() {
    // SAFETY: the calls take plain numbers and a live local; 0 is the calling thread. Where they fail, nothing has changed.
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
    fn the_policy_is_the_threads_own() {
        // SAFETY: plain numbers.
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
