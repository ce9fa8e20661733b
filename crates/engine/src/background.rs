//! The engine's background threads: purge, rollback of transactions that a crash interrupted,
//! statistics, and correction of row-location hints.
//!
//! # Concurrency
//! Purge and rollback use mini-transactions like statements, and take no row locks.
//! The threads sleep when there is nothing to do, and end when the engine shuts down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nfold_store::Stop as StoreStop;
use nfold_txn::TxnError;
use parking_lot::{Condvar, Mutex};

use crate::row_hint::Repairer;
use crate::saved_stats;
use crate::shared::Shared;
use crate::stats::{self, block};
use crate::undo::Applier;

/// Undo records handled between two looks at the stop flag.
const BUDGET: usize = 512;
/// Pause when purge finds nothing.
const PURGE_PAUSE: Duration = Duration::from_millis(50);
/// Pause between two looks for tables with pages to be freed.
const DRAIN_PAUSE: Duration = Duration::from_millis(500);
/// Pause between two looks for tables whose statistics are old.
const STATS_PAUSE: Duration = Duration::from_secs(2);

/// Pause when no reader has noted a wrong hint.
const HINT_PAUSE: Duration = Duration::from_millis(20);

/// The loop of a background thread, which ends when it is stopped.
type Job = fn(&Arc<Shared>, &Stopper);

/// The running threads.
pub(crate) struct Background {
    stop: Arc<Stopper>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Stopper {
    flag: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Stopper {
    fn stopped(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    fn pause(&self, time: Duration) {
        let mut guard = self.lock.lock();
        if !self.stopped() {
            self.wake.wait_for(&mut guard, time);
        }
    }
}

impl Background {
    pub(crate) fn start(shared: &Arc<Shared>) -> std::io::Result<Background> {
        let stop = Arc::new(Stopper::default());
        let mut threads = Vec::new();
        let jobs: [(&str, Job); 4] = [
            ("purge", purge),
            ("rollback", rollback),
            ("stats", refresh_stats),
            ("row_hints", repair_row_hints),
        ];
        for (name, job) in jobs {
            let (shared, stop) = (shared.clone(), stop.clone());
            threads.push(
                std::thread::Builder::new()
                    .name(format!("nfold-{name}"))
                    .spawn(move || job(&shared, &stop))?,
            );
        }
        Ok(Background { stop, threads })
    }

    /// Stops the threads. Their unfinished work continues at the next start.
    pub(crate) fn stop(self) {
        {
            let _guard = self.stop.lock.lock();
            self.stop.flag.store(true, Ordering::Release);
            self.stop.wake.notify_all();
        }
        for thread in self.threads {
            // A thread that panicked has said so already.
            drop(thread.join());
        }
    }
}

/// What one thread has said about errors: each once, as long as it stays the same.
#[derive(Default)]
struct Trouble {
    last: Option<TxnError>,
    /// Failures in a row.
    count: u32,
}

impl Trouble {
    /// Handles a step that stopped: waits for its page or lock, or logs its error. Returns false if
    /// the thread must pause before the next attempt.
    fn wait_out(&mut self, stop: StoreStop<TxnError>, what: &str) -> bool {
        match stop {
            StoreStop::Wait(wait) => {
                wait.block();
                true
            }
            StoreStop::Error(error) => {
                if self.last.as_ref() != Some(&error) {
                    tracing::warn!(%error, "{what} cannot go on with a row; it will be tried again");
                    self.last = Some(error);
                }
                self.count += 1;
                false
            }
        }
    }

    fn is_over(&mut self) {
        *self = Trouble::default();
    }

    /// Longer the longer it lasts: up to 6 seconds.
    fn pause(&self) -> Duration {
        PURGE_PAUSE * (1 << self.count.min(7))
    }
}

fn purge(shared: &Arc<Shared>, stop: &Stopper) {
    let applier = Applier(shared.clone());
    let mut drained = Instant::now();
    let mut trouble = Trouble::default();
    while !stop.stopped() {
        let go_on = match shared.trx.purge_step(&applier, BUDGET) {
            Ok(done) => {
                trouble.is_over();
                done.more
            }
            Err(e) => trouble.wait_out(e, "purge"),
        };
        if drained.elapsed() >= DRAIN_PAUSE {
            drain(shared);
            drained = Instant::now();
        }
        if !go_on {
            stop.pause(trouble.pause());
        }
    }
}

/// Frees the chains of long columns that no row names any more. Returns whether there were any.
pub(crate) fn drain(shared: &Arc<Shared>) -> bool {
    let tables: Vec<_> = shared.tables.read().values().cloned().collect();
    let mut any = false;
    for table in tables {
        match block(|| table.orphaned().drain(&shared.store)) {
            Ok(done) => any |= done,
            Err(error) => {
                tracing::debug!(table = %table.def().name, %error, "long columns are not freed");
            }
        }
    }
    any
}

fn rollback(shared: &Arc<Shared>, stop: &Stopper) {
    let applier = Applier(shared.clone());
    let mut trouble = Trouble::default();
    while !stop.stopped() {
        let go_on = match shared.trx.rollback_step(&applier, BUDGET) {
            Ok(more) => {
                trouble.is_over();
                more
            }
            Err(e) => trouble.wait_out(e, "rollback"),
        };
        if !go_on {
            stop.pause(trouble.pause());
        }
    }
}

/// Puts wrong hints right that readers have noted.
fn repair_row_hints(shared: &Arc<Shared>, stop: &Stopper) {
    let mut repairer = Repairer::default();
    while !stop.stopped() {
        if !repairer.step(shared) {
            stop.pause(HINT_PAUSE);
        }
    }
}

/// Makes statistics anew for tables of which more than a tenth has changed, or whose conditions use
/// a column without a histogram. Plans are made anew if much is different.
fn refresh_stats(shared: &Arc<Shared>, stop: &Stopper) {
    while !stop.stopped() {
        let tables: Vec<_> = shared.tables.read().values().cloned().collect();
        let mut renew = false;
        for table in tables {
            if stop.stopped() {
                return;
            }
            let old = table.stats();
            let changed = table.rows_changed.load(Ordering::Relaxed).unsigned_abs();
            let never = old.analyzed_at == 0;
            let grown = changed > 16 && changed > old.rows / 10;
            let due = never || grown || table.lacks_histogram();
            if due || saved_stats::are_outdated(&shared.store, &table) {
                match stats::make(&shared.store, &table, false) {
                    Ok(new) => {
                        renew |= new.differs_much(&old);
                        table.set_stats(new);
                    }
                    Err(error) => {
                        tracing::debug!(table = %table.def().name, %error, "no statistics")
                    }
                }
            }
            if table.has_unsaved_stats() && !table.is_private() {
                saved_stats::save(shared, table.def().id);
            }
        }
        if renew {
            shared.catalog.renew_plans();
        }
        stop.pause(STATS_PAUSE);
    }
}
