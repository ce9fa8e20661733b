//! Semi-synchronous commits: after its commit a session waits until replicas have its events.
//!
//! # Picture
//! ```text
//! commit is durable ─▶ file ─▶ dump: event with a request ─▶ replica ─▶ acknowledgement
//!      └ the session waits ─────────────────────────────────────────────▶ returns
//!                        └ timeout: no commit waits until a replica has caught up
//! ```
//! # Invariants
//! - A1: a replica's LSN is that of the last commit whose events it has acknowledged. Acknowledged
//!   events are in the order of the commits, so it has all commits up to this one.
//! # Concurrency
//! One mutex. A commit with `rpl_semi_sync_source_enabled = OFF` reads one flag.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use nfold_engine::Lsn;
use parking_lot::Mutex;

/// The variables `rpl_semi_sync_source_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SemiSyncOptions {
    pub enabled: bool,
    /// `rpl_semi_sync_source_timeout`
    pub timeout: Duration,
    /// `rpl_semi_sync_source_wait_for_replica_count`
    pub replicas: usize,
    /// `rpl_semi_sync_source_wait_no_replica`: commits wait even if fewer replicas are connected.
    pub waits_alone: bool,
}

impl Default for SemiSyncOptions {
    fn default() -> SemiSyncOptions {
        SemiSyncOptions {
            enabled: false,
            timeout: Duration::from_secs(10),
            replicas: 1,
            waits_alone: true,
        }
    }
}

/// The status variables `Rpl_semi_sync_source_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SemiSyncStatus {
    pub clients: u64,
    /// Whether commits wait.
    pub is_on: bool,
    /// Commits that replicas have acknowledged, and those that returned without.
    pub acknowledged: u64,
    pub unacknowledged: u64,
    /// How often commits have stopped to wait.
    pub times_off: u64,
    /// Sessions that wait now.
    pub waiting: u64,
    /// Finished waits, and their time together.
    pub waits: u64,
    pub wait_us: u64,
}

struct State {
    options: SemiSyncOptions,
    status: SemiSyncStatus,
    /// The replicas that acknowledge, by the numbers of their dumps (A1).
    replicas: BTreeMap<u64, Lsn>,
    wakers: Vec<Waker>,
}

/// See the module's header.
pub(crate) struct SemiSync {
    enabled: AtomicBool,
    state: Mutex<State>,
}

impl State {
    /// The last commit that enough replicas have.
    fn confirmed(&self) -> Lsn {
        let mut all: Vec<Lsn> = self.replicas.values().copied().collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.get(self.options.replicas - 1).copied().unwrap_or(0)
    }

    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }

    /// No commit waits until a replica has caught up.
    fn turn_off(&mut self) {
        if std::mem::take(&mut self.status.is_on) {
            self.status.times_off += 1;
            tracing::warn!("commits wait for no semi-synchronous replica until one has caught up");
        }
        self.wake();
    }
}

impl SemiSync {
    pub fn new(options: SemiSyncOptions) -> SemiSync {
        let status = SemiSyncStatus {
            is_on: options.enabled,
            ..SemiSyncStatus::default()
        };
        SemiSync {
            enabled: AtomicBool::new(options.enabled),
            state: Mutex::new(State {
                options,
                status,
                replicas: BTreeMap::new(),
                wakers: Vec::new(),
            }),
        }
    }

    /// Whether commits wait, as far as the options say.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Relaxed)
    }

    pub fn set_options(&self, options: SemiSyncOptions) {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut state.options, options);
        if before.enabled != options.enabled {
            state.status.is_on = options.enabled;
        }
        self.enabled.store(options.enabled, Relaxed);
        state.wake();
    }

    /// A dump to a replica that acknowledges begins.
    pub fn attach(&self, dump: u64) {
        let mut state = self.state.lock();
        state.replicas.insert(dump, 0);
        state.status.clients += 1;
    }

    /// The dump has ended.
    pub fn detach(&self, dump: u64) {
        let mut state = self.state.lock();
        if state.replicas.remove(&dump).is_some() {
            state.status.clients -= 1;
        }
        let missing = state.replicas.len() < state.options.replicas;
        if missing && !state.options.waits_alone {
            state.turn_off();
        }
    }

    /// A replica has acknowledged everything up to the commit `lsn`. `newest`: the newest commit of
    /// all.
    pub fn acknowledged(&self, dump: u64, lsn: Lsn, newest: Lsn) {
        let mut state = self.state.lock();
        if let Some(known) = state.replicas.get_mut(&dump) {
            *known = lsn.max(*known);
        }
        if state.options.enabled && state.confirmed() >= newest {
            state.status.is_on = true;
        }
        state.wake();
    }

    /// The server shuts down.
    pub fn close(&self) {
        self.enabled.store(false, Relaxed);
        let mut state = self.state.lock();
        state.options.enabled = false;
        state.status.is_on = false;
        state.wake();
    }

    /// Begins the wait of a session for the commit `lsn`. `None`: it is not to wait.
    pub fn begin_wait(&self, lsn: Lsn) -> Option<SemiSyncWait<'_>> {
        let mut state = self.state.lock();
        if !state.options.enabled {
            return None;
        }
        let missing = state.replicas.len() < state.options.replicas;
        if missing && !state.options.waits_alone {
            state.turn_off();
        }
        if !state.status.is_on {
            state.status.unacknowledged += 1;
            return None;
        }
        state.status.waiting += 1;
        let begun = Instant::now();
        Some(SemiSyncWait {
            semi_sync: self,
            lsn,
            begun,
            deadline: begun.checked_add(state.options.timeout),
        })
    }

    pub fn status(&self) -> SemiSyncStatus {
        self.state.lock().status
    }
}

/// The wait of one session. It counts when it is dropped.
pub(crate) struct SemiSyncWait<'s> {
    semi_sync: &'s SemiSync,
    lsn: Lsn,
    begun: Instant,
    pub deadline: Option<Instant>,
}

impl SemiSyncWait<'_> {
    /// Enough replicas have not acknowledged in time.
    pub fn timed_out(&self) {
        self.semi_sync.state.lock().turn_off();
    }
}

impl Future for SemiSyncWait<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.semi_sync.state.lock();
        if !state.status.is_on || state.confirmed() >= self.lsn {
            return Poll::Ready(());
        }
        let waker = cx.waker();
        if !state.wakers.iter().any(|w| w.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        Poll::Pending
    }
}

impl Drop for SemiSyncWait<'_> {
    fn drop(&mut self) {
        let mut state = self.semi_sync.state.lock();
        let acknowledged = state.confirmed() >= self.lsn;
        let status = &mut state.status;
        status.waiting -= 1;
        status.waits += 1;
        status.wait_us += self.begun.elapsed().as_micros() as u64;
        match acknowledged {
            true => status.acknowledged += 1,
            false => status.unacknowledged += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(replicas: usize, waits_alone: bool) -> SemiSyncOptions {
        SemiSyncOptions {
            enabled: true,
            timeout: Duration::from_secs(1),
            replicas,
            waits_alone,
        }
    }

    fn is_ready(wait: &mut SemiSyncWait<'_>) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(wait).poll(&mut cx).is_ready()
    }

    #[test]
    fn commit_waits_for_enough_replicas() {
        let semi_sync = SemiSync::new(options(2, true));
        semi_sync.attach(1);
        semi_sync.attach(2);
        let mut wait = semi_sync.begin_wait(100).expect("it waits");
        semi_sync.acknowledged(1, 150, 150);
        assert!(!is_ready(&mut wait));
        semi_sync.acknowledged(2, 99, 150);
        assert!(!is_ready(&mut wait));
        semi_sync.acknowledged(2, 100, 150);
        assert!(is_ready(&mut wait));
        drop(wait);
        let status = semi_sync.status();
        assert_eq!(
            (status.acknowledged, status.unacknowledged, status.waiting),
            (1, 0, 0)
        );
    }

    #[test]
    fn timeout_ends_waits_until_a_replica_has_caught_up() {
        let semi_sync = SemiSync::new(options(1, true));
        semi_sync.attach(1);
        let mut wait = semi_sync.begin_wait(100).expect("it waits");
        let mut other = semi_sync.begin_wait(120).expect("it waits");
        assert!(!is_ready(&mut wait) && !is_ready(&mut other));
        wait.timed_out();
        assert!(is_ready(&mut other));
        drop((wait, other));
        assert!(semi_sync.begin_wait(130).is_none());
        semi_sync.acknowledged(1, 110, 130);
        assert!(semi_sync.begin_wait(140).is_none(), "it is still behind");
        semi_sync.acknowledged(1, 140, 140);
        assert!(semi_sync.begin_wait(150).is_some());
        let status = semi_sync.status();
        assert_eq!((status.times_off, status.unacknowledged), (1, 5));
    }

    #[test]
    fn commit_without_replicas_does_not_wait_if_told_so() {
        let semi_sync = SemiSync::new(options(1, false));
        assert!(semi_sync.begin_wait(1).is_none());
        let semi_sync = SemiSync::new(options(1, false));
        semi_sync.attach(7);
        let mut wait = semi_sync.begin_wait(1).expect("it waits");
        semi_sync.detach(7);
        assert!(is_ready(&mut wait));
    }
}
