//! Moves connections from a busy worker to one with spare time.
//!
//! Workers are pinned to processors, but other processes may use these processors too, above all
//! clients on the same machine. Connections are distributed evenly. So a worker that gets only half
//! of its processor delays as many connections as one with a whole processor, which then sleeps
//! while work is waiting.
//!
//! # Picture
//! ```text
//!   every 100 ms, each worker: (time it ran + time it waited for a processor) / time passed ─▶ its load, for all to see
//!   a busy one, beside one that is clearly less so: half of what would make them even goes over, idle connections of the last 100 ms
//! ```
//!
//! # Invariants
//! - B1: a connection moves between two commands, outside a transaction, and with empty buffers.
//! - B2: it is always in one worker's table or in one inbox, with one slot in the registry. So a
//!   KILL always reaches it.
//! - B3: at a shutdown, all workers stop moving connections before any of them ends. So no
//!   connection moves to a worker that has ended.
//!
//! # Concurrency
//! Each load has its own cache line. Its worker stores it ten times a second, others read it as
//! often. Relaxed, because it is a hint.
//!
//! # Cost
//! Ten small reads of `/proc` per second for each worker that has work; none for a sleeping worker.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The time between two measurements.
pub(super) const WINDOW: Duration = Duration::from_millis(100);
/// A worker with a lower load keeps its connections.
const BUSY: u64 = 700;
/// Loads that differ by less are equal.
const GAP: u64 = 80;
/// A load that was not renewed for this many windows belongs to a sleeping worker.
const STALE_WINDOWS: u64 = 3;
const LOAD_BITS: u32 = 16;
/// Slightly above 1000, because the clocks do not tick together.
const MAX_LOAD: u64 = 1100;

#[derive(Default)]
#[repr(align(128))]
struct Load(AtomicU64);

/// The loads of all workers, in thousandths, each with the time of its measurement.
pub(crate) struct Loads {
    loads: Box<[Load]>,
    start: Instant,
}

impl Loads {
    pub fn new(workers: usize) -> Loads {
        Loads {
            loads: (0..workers).map(|_| Load::default()).collect(),
            start: Instant::now(),
        }
    }

    fn windows(&self, now: Instant) -> u64 {
        let passed = now.saturating_duration_since(self.start).as_millis();
        passed as u64 / WINDOW.as_millis() as u64
    }

    fn set(&self, worker: usize, load: u64, now: Instant) {
        let stamped = self.windows(now) << LOAD_BITS | load;
        self.loads[worker].0.store(stamped, Relaxed);
    }

    fn of(&self, worker: usize, now: Instant) -> u64 {
        let stamped = self.loads[worker].0.load(Relaxed);
        match self.windows(now) > (stamped >> LOAD_BITS) + STALE_WINDOWS {
            true => 0,
            false => stamped & ((1 << LOAD_BITS) - 1),
        }
    }

    /// The worker with the lowest load other than `me`, and its load.
    fn least(&self, me: usize, now: Instant) -> Option<(usize, u64)> {
        let others = (0..self.loads.len()).filter(|&w| w != me);
        others.map(|w| (w, self.of(w, now))).min_by_key(|o| o.1)
    }
}

/// How many of the `active` connections, which cause the load `me`, should move to a worker with
/// load `least`: half of the number that would make the loads equal, so that neither side
/// overshoots. 0 if moving one would be too much.
fn surplus(me: u64, least: u64, active: usize) -> usize {
    if me < BUSY || me < least + GAP {
        return 0;
    }
    let even = active as u64 * (me - least) / (2 * me);
    even.div_ceil(2) as usize
}

/// Measures the load of one worker.
pub(super) struct Meter {
    /// The thread's `schedstat`. `None` if the system has none, or connections do not move.
    file: Option<File>,
    last: (Instant, u64),
}

impl Meter {
    /// For the calling thread. `wanted`: whether to measure at all.
    pub fn new(now: Instant, wanted: bool) -> Meter {
        let file = wanted
            .then(|| File::open("/proc/thread-self/schedstat").ok())
            .flatten();
        Meter {
            last: (now, file.as_ref().and_then(wanted_ns).unwrap_or(0)),
            file,
        }
    }

    /// Whether the next measurement is due.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        now - self.last.0 >= WINDOW && self.file.is_some()
    }

    /// Measures and publishes this worker's load. Returns the worker to relieve it, and how many
    /// connections to move. `active` counts the connections that have run a command since the given
    /// time.
    pub fn look(
        &mut self,
        loads: &Loads,
        me: usize,
        now: Instant,
        active: impl FnOnce(Instant) -> usize,
    ) -> Option<(usize, usize)> {
        let (before, wanted_before) = self.last;
        let wanted = wanted_ns(self.file.as_ref()?)?;
        self.last = (now, wanted);
        let passed = (now - before).as_nanos().max(1) as u64;
        let load = wanted.saturating_sub(wanted_before).saturating_mul(1000) / passed;
        let load = load.min(MAX_LOAD);
        loads.set(me, load, now);
        let (to, least) = loads.least(me, now)?;
        // Counting connections is expensive, so first checks whether any number could lead to a
        // move.
        if surplus(load, least, usize::MAX >> 16) == 0 {
            return None;
        }
        let number = surplus(load, least, active(before));
        (number > 0).then_some((to, number))
    }
}

/// How many nanoseconds a thread has run or waited for a processor: the first two numbers of its
/// `schedstat`.
fn wanted_ns(file: &File) -> Option<u64> {
    let mut text = [0; 64];
    let n = file.read_at(&mut text, 0).ok()?;
    let mut numbers = std::str::from_utf8(&text[..n]).ok()?.split(' ');
    let mut number = || numbers.next()?.parse::<u64>().ok();
    Some(number()? + number()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_over_makes_them_more_even_and_never_more_than_that() {
        assert_eq!(surplus(600, 0, 100), 0, "not busy");
        assert_eq!(surplus(1000, 950, 1000), 0, "even enough");
        assert_eq!(surplus(1000, 600, 512), 51);
        assert_eq!(surplus(1000, 0, 2), 1);
        assert_eq!(surplus(1000, 700, 4), 0, "one is more than the difference");
        assert_eq!(surplus(1000, 0, 1), 0);
        for active in 0..200 {
            for me in (700..=1000).step_by(20) {
                for least in (0..=1000).step_by(20) {
                    let n = surplus(me, least, active) as u64;
                    let each = me / active.max(1) as u64;
                    assert!(n * each <= me.saturating_sub(least) / 2 + 1);
                }
            }
        }
    }

    #[test]
    fn a_worker_that_sleeps_has_no_load() {
        let loads = Loads::new(3);
        let at = |ms| loads.start + Duration::from_millis(ms);
        loads.set(0, 900, at(100));
        loads.set(1, 700, at(100));
        loads.set(2, 800, at(150));
        assert_eq!(loads.least(0, at(200)), Some((1, 700)));
        assert_eq!(loads.least(1, at(200)), Some((2, 800)));
        loads.set(0, 1100, at(600));
        assert_eq!(loads.of(0, at(600)), 1100);
        assert_eq!(loads.least(0, at(600)), Some((1, 0)), "not heard of since");
        assert_eq!(Loads::new(1).least(0, at(0)), None);
    }

    #[test]
    fn time_that_was_run_is_measured() {
        let mut meter = Meter::new(Instant::now(), true);
        let Some(file) = &meter.file else { return };
        let before = wanted_ns(file).unwrap();
        let (loads, mut n) = (Loads::new(1), 0u64);
        while wanted_ns(file).unwrap() < before + 1_000_000 {
            n = std::hint::black_box(n + 1);
        }
        let now = Instant::now();
        assert_eq!(
            meter.look(&loads, 0, now, |_| 0),
            None,
            "there is no other worker"
        );
        assert!(loads.of(0, now) > 0 && !meter.is_due(now));
        assert!(meter.is_due(now + WINDOW));
    }
}
