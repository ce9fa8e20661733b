//! Group commit on a device whose syncs end only when the test permits it.

#[path = "common/gate.rs"]
mod gate;

use gate::GateDisk;
use nfold_store::*;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

fn open(disk: &GateDisk) -> Arc<Store> {
    open_with(disk, 16 << 20)
}

/// The log is small to keep syncs short, because the simulated disk compares a whole file after
/// each sync.
fn open_with(disk: &GateDisk, log_bytes: u64) -> Arc<Store> {
    let options = StoreOptions {
        pool_bytes: 512 * PAGE_SIZE as u64,
        log_bytes,
        io_threads: 1,
        ..StoreOptions::default()
    };
    let (store, _) =
        Store::open(options, Arc::new(disk.clone()), Arc::new(NoRedo), &|_| {}).unwrap();
    store
}

fn finish<T>(mut call: impl FnMut() -> Result<T, Stop>) -> T {
    loop {
        match call() {
            Ok(value) => return value,
            Err(Stop::Wait(wait)) => wait.block(),
            Err(Stop::Error(e)) => panic!("{e}"),
        }
    }
}

/// Creates or changes a page of the space. Returns its id and the end LSN of the mini-transaction.
fn change(store: &Store, space: SpaceId, page: Option<PageId>) -> (PageId, Lsn) {
    finish(|| {
        let mut mtr = store.mtr();
        mtr.reserve(256, space, usize::from(page.is_none()))?;
        let p = match page {
            Some(page) => mtr.latch(page)?,
            None => mtr.alloc_page(space, PageType::USER, 0, 1),
        };
        mtr.write(p, 64, &[1; 100]);
        Ok((mtr.id(p), mtr.commit().end))
    })
}

/// A commit during a sync waits only for the end of that sync and of the next one.
#[test]
fn commit_waits_for_at_most_two_syncs() {
    let disk = GateDisk::new("redo.");
    let store = open(&disk);
    let space = store.create_space("t").unwrap();
    let (page, made) = change(&store, space, None);
    while let Some(wait) = store.wait_durable(made) {
        wait.block();
    }
    for _ in 0..20 {
        let mut begun = 0;
        disk.change(|s| {
            begun = s.begun;
            s.allowed = Some(begun);
        });
        let first = change(&store, space, Some(page)).1;
        let wait = store.wait_durable(first).expect("the sync has not ended");
        disk.wait_until(|s| s.begun > begun);
        let second = change(&store, space, Some(page)).1;
        let next = store.wait_durable(second).expect("the sync has not ended");
        disk.change(|s| s.allowed = Some(begun + 1));
        wait.block();
        disk.wait_until(|s| s.begun > begun + 1);
        assert!(store.durable_lsn() < second);
        disk.change(|s| s.allowed = Some(begun + 2));
        next.block();
        disk.change(|s| s.allowed = None);
        while let Some(wait) = store.wait_durable(second) {
            wait.block();
        }
    }
}

/// A commit that only needs to reach the operating system (`innodb_flush_log_at_trx_commit=2`)
/// waits for a write and requests no sync.
#[test]
fn cached_commit_requests_no_sync() {
    let disk = GateDisk::new("redo.");
    let store = open(&disk);
    let space = store.create_space("t").unwrap();
    let (page, made) = change(&store, space, None);
    while let Some(wait) = store.wait_durable(made) {
        wait.block();
    }
    let (started, begun) = (
        std::time::Instant::now(),
        disk.syncs.0.lock().unwrap().begun,
    );
    for _ in 0..50 {
        let before = disk.syncs.0.lock().unwrap().writes;
        let end = change(&store, space, Some(page)).1;
        while let Some(wait) = store.wait_filled(end).or_else(|| store.wait_written(end)) {
            wait.block();
        }
        assert!(disk.syncs.0.lock().unwrap().writes > before);
        assert!(store.wait_written(end).is_none());
    }
    // The log thread syncs once a second.
    let lazy = started.elapsed().as_secs() + 1;
    assert!(disk.syncs.0.lock().unwrap().begun - begun <= lazy);
    store.shutdown().unwrap();
}

/// Written log is synced after a second, even if every sync is accompanied by another request for a
/// write.
#[test]
fn endless_writes_do_not_prevent_syncs() {
    let disk = GateDisk::new("redo.");
    let store = open(&disk);
    let space = store.create_space("t").unwrap();
    let (page, made) = change(&store, space, None);
    while let Some(wait) = store.wait_durable(made) {
        wait.block();
    }
    let begun = disk.syncs.0.lock().unwrap().begun;
    let ask = {
        let store = store.clone();
        move || {
            let end = change(&store, space, Some(page)).1;
            assert!(store.wait_filled(end).is_none());
            assert!(store.wait_written(end).is_some());
        }
    };
    disk.change(|s| {
        let ask = ask.clone();
        s.on_write = Some(Arc::new(move || {
            std::thread::sleep(Duration::from_millis(1));
            ask();
        }));
    });
    ask();
    disk.wait_until(|s| s.begun > begun);
    disk.change(|s| s.on_write = None);
    store.shutdown().unwrap();
}

/// The log thread does all syncs, including those for checkpoints. A sync by another thread would
/// come between two groups of commits, and these would wait until that thread is scheduled.
#[test]
fn log_thread_does_all_syncs() {
    let disk = GateDisk::new("redo.");
    let store = open(&disk);
    let space = store.create_space("t").unwrap();
    let (page, _) = change(&store, space, None);
    disk.change(|s| s.by.clear());
    for _ in 0..20 {
        let end = change(&store, space, Some(page)).1;
        store.checkpoint().unwrap();
        assert!(store.durable_lsn() >= end);
    }
    store.shutdown().unwrap();
    let by = std::mem::take(&mut disk.syncs.0.lock().unwrap().by);
    assert_eq!(by.into_iter().collect::<Vec<_>>(), ["nfold-log"]);
    // The log thread has ended, so this thread does the sync itself.
    store.shutdown().unwrap();
}

/// A waker that records the number of writes at the time of its wakeup.
struct WritesWhenWoken {
    disk: GateDisk,
    noted: Mutex<Option<u64>>,
}

impl Wake for WritesWhenWoken {
    fn wake(self: Arc<Self>) {
        let writes = self.disk.syncs.0.lock().unwrap().writes;
        self.noted.lock().unwrap().get_or_insert(writes);
    }
}

/// If a sync takes much longer than a write, the log for the next sync is written before the
/// waiters of the first one are woken.
#[test]
fn next_group_is_written_before_waiters_are_woken() {
    let disk = GateDisk::new("redo.");
    let store = open(&disk);
    let space = store.create_space("t").unwrap();
    let (page, made) = change(&store, space, None);
    while let Some(wait) = store.wait_durable(made) {
        wait.block();
    }
    let mut written_first = 0;
    // A write that was descheduled may have taken as long as a sync. Then another round is needed.
    for _ in 0..50 {
        let mut begun = 0;
        disk.change(|s| {
            begun = s.begun;
            s.allowed = Some(begun);
        });
        let first = change(&store, space, Some(page)).1;
        let mut wait = store.wait_durable(first).expect("the sync has not ended");
        disk.wait_until(|s| s.begun > begun);
        let woken = Arc::new(WritesWhenWoken {
            disk: disk.clone(),
            noted: Mutex::default(),
        });
        let waker = Waker::from(woken.clone());
        let polled = Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        let second = change(&store, space, Some(page)).1;
        let next = store.wait_durable(second).expect("the sync has not ended");
        let before = disk.syncs.0.lock().unwrap().writes;
        std::thread::sleep(Duration::from_millis(5)); // The sync takes at least this long.
        disk.change(|s| s.allowed = None);
        next.block();
        let noted = woken.noted.lock().unwrap().expect("the waiter was woken");
        written_first += u64::from(noted > before);
        if written_first == 3 {
            return;
        }
    }
    panic!("written before waking {written_first} times");
}

/// A thread that defers requests submits all of its commits at once, including those that another
/// thread deferred to it.
#[test]
fn deferred_commits_share_one_request() {
    let disk = GateDisk::new("redo.");
    let store = open(&disk);
    let space = store.create_space("t").unwrap();
    let (page, made) = change(&store, space, None);
    while let Some(wait) = store.wait_durable(made) {
        wait.block();
    }
    for _ in 0..100 {
        let both = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    gather_syncs();
                    let mut waits = Vec::new();
                    let mut end = 0;
                    for _ in 0..3 {
                        end = change(&store, space, Some(page)).1;
                        waits.extend(store.wait_durable(end));
                    }
                    assert_eq!(holds_syncs(), !waits.is_empty());
                    both.wait();
                    store.finish_syncs(false);
                    assert!(!holds_syncs());
                    Wait::all(waits).block();
                    assert!(store.durable_lsn() >= end);
                });
            }
        });
    }
}

/// A thread that deferred its request to another does not depend on when that one submits. In this
/// test, it submits only after the first thread's commit is complete.
#[test]
fn deferred_commit_does_not_wait_for_the_other_thread() {
    const ROUNDS: u32 = 20;
    let disk = GateDisk::new("redo.");
    let store = open(&disk);
    let space = store.create_space("t").unwrap();
    let (page, made) = change(&store, space, None);
    while let Some(wait) = store.wait_durable(made) {
        wait.block();
    }
    let begun = std::time::Instant::now();
    for _ in 0..ROUNDS {
        let (held, answered) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                gather_syncs();
                let end = change(&store, space, Some(page)).1;
                let wait = store.wait_durable(end);
                held.wait();
                answered.wait(); // A task that does not yield.
                store.finish_syncs(false);
                wait.into_iter().for_each(Wait::block);
            });
            scope.spawn(|| {
                gather_syncs();
                held.wait();
                let end = change(&store, space, Some(page)).1;
                let wait = store.wait_durable(end);
                store.finish_syncs(false);
                wait.into_iter().for_each(Wait::block);
                assert!(store.durable_lsn() >= end);
                answered.wait();
            });
        });
    }
    // Without this mechanism, the commit would take up to a second, until the log thread's next
    // sync.
    let otherwise = std::time::Duration::from_secs(1) * ROUNDS / 2;
    assert!(begun.elapsed() < otherwise, "{:?}", begun.elapsed());
}

/// Commits on this thread, which may block for the sync.
fn commit_blocking(store: &Store, space: SpaceId, page: PageId) -> Lsn {
    let end = change(store, space, Some(page)).1;
    let wait = store.wait_durable(end);
    store.finish_syncs(true);
    wait.into_iter().for_each(Wait::block);
    assert!(store.durable_lsn() >= end);
    end
}

/// Commits on this thread until it has done one of the syncs itself.
fn commit_until_own_sync(disk: &GateDisk, store: &Store, space: SpaceId, page: PageId) {
    let me = std::thread::current().name().unwrap().to_string();
    for _ in 0..100_000 {
        disk.change(|s| s.by.clear());
        commit_blocking(store, space, page);
        if disk.syncs.0.lock().unwrap().by.contains(&me) {
            return;
        }
    }
    panic!("the thread never did a sync itself");
}

/// Lets no sync in progress or later sync end. Returns the number of syncs begun so far, and clears
/// the list of threads that began them.
fn block_syncs(disk: &GateDisk) -> u64 {
    let mut begun = 0;
    disk.change(|s| {
        begun = s.begun;
        s.allowed = Some(begun);
        s.by.clear();
    });
    begun
}

/// A thread without other work syncs the log itself if no other thread commits. The log thread
/// handles commits that arrive meanwhile, so these wait for at most two syncs, as usual.
#[test]
fn commit_during_a_worker_sync_waits_for_two_syncs() {
    let disk = GateDisk::new("redo.");
    let store = open_with(&disk, 1 << 20);
    let space = store.create_space("t").unwrap();
    let (page, _) = change(&store, space, None);
    std::thread::scope(|scope| {
        let leader = std::thread::Builder::new().name("leader".into());
        let run = || {
            gather_syncs();
            let mut worker_syncs = 0;
            for round in 0..20 {
                commit_until_own_sync(&disk, &store, space, page);
                let begun = block_syncs(&disk);
                std::thread::scope(|scope| {
                    let second = scope.spawn(|| {
                        disk.wait_until(|s| s.begun > begun);
                        let worker_syncs = disk.syncs.0.lock().unwrap().by.contains("leader");
                        let end = change(&store, space, Some(page)).1;
                        let wait = store.wait_durable(end).expect("the sync has not ended");
                        disk.change(|s| s.allowed = Some(begun + 1));
                        disk.wait_until(|s| s.begun > begun + 1);
                        assert!(store.durable_lsn() < end);
                        disk.change(|s| s.allowed = Some(begun + 2));
                        wait.block();
                        let by = disk.syncs.0.lock().unwrap().by.clone();
                        assert!(by.contains("nfold-log"), "{round}: {by:?}");
                        worker_syncs
                    });
                    commit_blocking(&store, space, page);
                    // A sync took long, or there was another reason to use the log thread. A worker
                    // may sync in the next round.
                    worker_syncs += u32::from(second.join().unwrap());
                });
                disk.change(|s| s.allowed = None);
            }
            assert!(
                worker_syncs > 0,
                "no commit ever arrived during a worker's sync"
            );
        };
        leader.spawn_scoped(scope, run).unwrap();
    });
}

/// A thread that may block does not sync the log itself during another thread's sync, or while
/// other threads have deferred requests.
#[test]
fn worker_does_not_sync_beside_other_commits() {
    let disk = GateDisk::new("redo.");
    let store = open_with(&disk, 1 << 20);
    let space = store.create_space("t").unwrap();
    let (page, _) = change(&store, space, None);
    std::thread::scope(|scope| {
        let leader = std::thread::Builder::new().name("leader".into());
        let run = || {
            gather_syncs();
            commit_until_own_sync(&disk, &store, space, page);
            let begun = block_syncs(&disk);
            // A sync for another thread, by the log thread.
            let other = scope.spawn(|| {
                let end = change(&store, space, Some(page)).1;
                store.wait_durable(end).into_iter().for_each(Wait::block);
            });
            disk.wait_until(|s| s.begun > begun);
            let end = change(&store, space, Some(page)).1;
            let wait = store.wait_durable(end);
            store.finish_syncs(true); // Returns although no sync may end.
            disk.change(|s| s.allowed = None);
            wait.into_iter().for_each(Wait::block);
            other.join().unwrap();
            let by = std::mem::take(&mut disk.syncs.0.lock().unwrap().by);
            assert_eq!(by.into_iter().collect::<Vec<_>>(), ["nfold-log"]);
            // Other threads have deferred requests.
            commit_until_own_sync(&disk, &store, space, page);
            let (held, done) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    gather_syncs();
                    let end = change(&store, space, Some(page)).1;
                    let wait = store.wait_durable(end);
                    held.wait();
                    done.wait();
                    store.finish_syncs(false);
                    wait.into_iter().for_each(Wait::block);
                });
                disk.change(|s| s.by.clear());
                let end = change(&store, space, Some(page)).1;
                let wait = store.wait_durable(end);
                held.wait();
                store.finish_syncs(true); // Defers the request to the other thread.
                done.wait();
                wait.into_iter().for_each(Wait::block);
            });
            let by = disk.syncs.0.lock().unwrap().by.clone();
            assert!(!by.contains("leader"), "{by:?}");
        };
        leader.spawn_scoped(scope, run).unwrap();
    });
}

/// Workers that sync themselves, workers that defer, a checkpoint and a power failure: everything
/// that was reported as durable survives.
#[test]
fn log_synced_by_workers_survives_a_crash() {
    let disk = GateDisk::new("redo.");
    let store = open_with(&disk, 1 << 20);
    let space = store.create_space("t").unwrap();
    let pages: Vec<PageId> = (0..3).map(|_| change(&store, space, None).0).collect();
    for round in 0..30u64 {
        let durable = std::thread::scope(|scope| {
            let threads: Vec<_> = (pages.iter().zip(0u64..))
                .map(|(&page, thread)| {
                    let store = &store;
                    scope.spawn(move || {
                        gather_syncs();
                        let mut end = 0;
                        for i in 0..20 {
                            end = change(store, space, Some(page)).1;
                            let wait = store.wait_durable(end);
                            store.finish_syncs((round + thread + i) % 3 != 0);
                            wait.into_iter().for_each(Wait::block);
                            if (round * 7 + i) % 50 == thread {
                                store.checkpoint().unwrap();
                            }
                        }
                        end
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).max()
        });
        assert!(store.durable_lsn() >= durable.unwrap());
    }
    let end = store.durable_lsn();
    let left = disk.inner.crash_image(7);
    let options = StoreOptions {
        pool_bytes: 512 * PAGE_SIZE as u64,
        log_bytes: 1 << 20,
        io_threads: 0,
        ..StoreOptions::default()
    };
    let (_, report) = Store::open(options, Arc::new(left), Arc::new(NoRedo), &|_| {}).unwrap();
    assert!(report.end_lsn >= end, "{report:?}");
}
