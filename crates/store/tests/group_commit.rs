//! Group commit over a device whose syncs end when the test says so.

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

/// A small log makes for short syncs: the simulated disk checks a whole file after each.
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

/// A page of the space, or another change of it: where its mini-transaction ends.
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

/// A commit that comes while a sync is under way waits for the end of that one and for the next, and for nothing else.
#[test]
fn a_commit_waits_for_two_syncs_at_most() {
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
        let wait = store.wait_durable(first).expect("no sync may end");
        disk.wait_until(|s| s.begun > begun);
        let second = change(&store, space, Some(page)).1;
        let next = store.wait_durable(second).expect("no sync may end");
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

/// A commit that is only to be with the operating system (`innodb_flush_log_at_trx_commit=2`) waits for a write and asks for no sync.
#[test]
fn a_written_commit_asks_for_no_sync() {
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
    // The log thread makes one a second.
    let lazy = started.elapsed().as_secs() + 1;
    assert!(disk.syncs.0.lock().unwrap().begun - begun <= lazy);
    store.shutdown().unwrap();
}

/// What was only written is synced after a second, even if another commit asks for a write during each one.
#[test]
fn writes_without_end_are_synced_all_the_same() {
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

/// Whoever needs a durable log asks the log thread, also for a checkpoint: a sync of another thread's own would come between two groups of commits,
/// and they would wait for that thread to get a processor.
#[test]
fn the_log_thread_makes_all_syncs() {
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
    // The log thread has ended: whoever asks now does it.
    store.shutdown().unwrap();
}

/// Notes how many writes there had been when it was woken.
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

/// Where a sync takes much longer than a write, what the next one needs is written before those that waited for the first are woken.
#[test]
fn the_next_group_is_written_before_the_last_one_is_woken() {
    let disk = GateDisk::new("redo.");
    let store = open(&disk);
    let space = store.create_space("t").unwrap();
    let (page, made) = change(&store, space, None);
    while let Some(wait) = store.wait_durable(made) {
        wait.block();
    }
    let mut written_first = 0;
    // A write that lost its processor may have taken as long as a sync: there is another round.
    for _ in 0..50 {
        let mut begun = 0;
        disk.change(|s| {
            begun = s.begun;
            s.allowed = Some(begun);
        });
        let first = change(&store, space, Some(page)).1;
        let mut wait = store.wait_durable(first).expect("no sync may end");
        disk.wait_until(|s| s.begun > begun);
        let woken = Arc::new(WritesWhenWoken {
            disk: disk.clone(),
            noted: Mutex::default(),
        });
        let waker = Waker::from(woken.clone());
        let polled = Pin::new(&mut wait).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        let second = change(&store, space, Some(page)).1;
        let next = store.wait_durable(second).expect("no sync may end");
        let before = disk.syncs.0.lock().unwrap().writes;
        std::thread::sleep(Duration::from_millis(5)); // the sync takes as long
        disk.change(|s| s.allowed = None);
        next.block();
        let noted = woken.noted.lock().unwrap().expect("it was woken");
        written_first += u64::from(noted > before);
        if written_first == 3 {
            return;
        }
    }
    panic!("written first {written_first} times");
}

/// A thread that gathers asks for all of its commits at once, also for those of another that left it to this one.
#[test]
fn gathered_commits_are_asked_for_together() {
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
                    store.settle_syncs(false);
                    assert!(!holds_syncs());
                    Wait::all(waits).block();
                    assert!(store.durable_lsn() >= end);
                });
            }
        });
    }
}

/// A thread that has left its request to another does not depend on when that one hands over: here it never does before the first is answered.
#[test]
fn a_commit_does_not_wait_for_another_threads_turn() {
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
                answered.wait(); // busy with something that does not give way
                store.settle_syncs(false);
                wait.into_iter().for_each(Wait::block);
            });
            scope.spawn(|| {
                gather_syncs();
                held.wait();
                let end = change(&store, space, Some(page)).1;
                let wait = store.wait_durable(end);
                store.settle_syncs(false);
                wait.into_iter().for_each(Wait::block);
                assert!(store.durable_lsn() >= end);
                answered.wait();
            });
        });
    }
    // The log is synced once a second whoever asks: that is what it would take otherwise.
    let otherwise = std::time::Duration::from_secs(1) * ROUNDS / 2;
    assert!(begun.elapsed() < otherwise, "{:?}", begun.elapsed());
}

/// A commit of this thread, for which it may block.
fn lead(store: &Store, space: SpaceId, page: PageId) -> Lsn {
    let end = change(store, space, Some(page)).1;
    let wait = store.wait_durable(end);
    store.settle_syncs(true);
    wait.into_iter().for_each(Wait::block);
    assert!(store.durable_lsn() >= end);
    end
}

/// Commits of this thread until one of their syncs was its own.
fn lead_at_last(disk: &GateDisk, store: &Store, space: SpaceId, page: PageId) {
    let me = std::thread::current().name().unwrap().to_string();
    for _ in 0..100_000 {
        disk.change(|s| s.by.clear());
        lead(store, space, page);
        if disk.syncs.0.lock().unwrap().by.contains(&me) {
            return;
        }
    }
    panic!("it never syncs by itself");
}

/// From now on no sync ends that has not ended yet. Gives how many have begun so far, and forgets who made them.
fn let_none_end(disk: &GateDisk) -> u64 {
    let mut begun = 0;
    disk.change(|s| {
        begun = s.begun;
        s.allowed = Some(begun);
        s.by.clear();
    });
    begun
}

/// A thread with nothing else to do syncs by itself where nobody else commits; the log thread sees to whoever comes meanwhile, so that they wait for two
/// syncs as ever.
#[test]
fn a_commit_beside_a_leader_waits_for_two_syncs_at_most() {
    let disk = GateDisk::new("redo.");
    let store = open_with(&disk, 1 << 20);
    let space = store.create_space("t").unwrap();
    let (page, _) = change(&store, space, None);
    std::thread::scope(|scope| {
        let leader = std::thread::Builder::new().name("leader".into());
        let run = || {
            gather_syncs();
            let mut led = 0;
            for round in 0..20 {
                lead_at_last(&disk, &store, space, page);
                let begun = let_none_end(&disk);
                std::thread::scope(|scope| {
                    let second = scope.spawn(|| {
                        disk.wait_until(|s| s.begun > begun);
                        let led = disk.syncs.0.lock().unwrap().by.contains("leader");
                        let end = change(&store, space, Some(page)).1;
                        let wait = store.wait_durable(end).expect("no sync may end");
                        disk.change(|s| s.allowed = Some(begun + 1));
                        disk.wait_until(|s| s.begun > begun + 1);
                        assert!(store.durable_lsn() < end);
                        disk.change(|s| s.allowed = Some(begun + 2));
                        wait.block();
                        let by = disk.syncs.0.lock().unwrap().by.clone();
                        assert!(by.contains("nfold-log"), "{round}: {by:?}");
                        led
                    });
                    lead(&store, space, page);
                    // Where a sync took long, or for another reason, the log thread was asked: the next round may lead.
                    led += u32::from(second.join().unwrap());
                });
                disk.change(|s| s.allowed = None);
            }
            assert!(led > 0, "nobody ever came beside a leader");
        };
        leader.spawn_scoped(scope, run).unwrap();
    });
}

/// A thread that may block does not, while somebody else's sync is under way or others hold something back.
#[test]
fn nobody_leads_beside_others() {
    let disk = GateDisk::new("redo.");
    let store = open_with(&disk, 1 << 20);
    let space = store.create_space("t").unwrap();
    let (page, _) = change(&store, space, None);
    std::thread::scope(|scope| {
        let leader = std::thread::Builder::new().name("leader".into());
        let run = || {
            gather_syncs();
            lead_at_last(&disk, &store, space, page);
            let begun = let_none_end(&disk);
            // Another thread's, by the log thread.
            let other = scope.spawn(|| {
                let end = change(&store, space, Some(page)).1;
                store.wait_durable(end).into_iter().for_each(Wait::block);
            });
            disk.wait_until(|s| s.begun > begun);
            let end = change(&store, space, Some(page)).1;
            let wait = store.wait_durable(end);
            store.settle_syncs(true); // comes back, though no sync may end
            disk.change(|s| s.allowed = None);
            wait.into_iter().for_each(Wait::block);
            other.join().unwrap();
            let by = std::mem::take(&mut disk.syncs.0.lock().unwrap().by);
            assert_eq!(by.into_iter().collect::<Vec<_>>(), ["nfold-log"]);
            // Others that hold something.
            lead_at_last(&disk, &store, space, page);
            let (held, done) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    gather_syncs();
                    let end = change(&store, space, Some(page)).1;
                    let wait = store.wait_durable(end);
                    held.wait();
                    done.wait();
                    store.settle_syncs(false);
                    wait.into_iter().for_each(Wait::block);
                });
                disk.change(|s| s.by.clear());
                let end = change(&store, space, Some(page)).1;
                let wait = store.wait_durable(end);
                held.wait();
                store.settle_syncs(true); // leaves it to the other one
                done.wait();
                wait.into_iter().for_each(Wait::block);
            });
            let by = disk.syncs.0.lock().unwrap().by.clone();
            assert!(!by.contains("leader"), "{by:?}");
        };
        leader.spawn_scoped(scope, run).unwrap();
    });
}

/// Leaders, gatherers, a checkpoint and a power failure: what was said to be durable is.
#[test]
fn what_leaders_made_durable_outlives_a_crash() {
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
                            store.settle_syncs((round + thread + i) % 3 != 0);
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
