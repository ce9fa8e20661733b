//! Loom models of the types that threads share: every interleaving under loom's memory model.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p nfold-sync --release --test loom`
//!
//! With a bound on preemptions, loom explores little of what the main thread does after a `spawn`.
//! So every step that matters runs in a spawned thread. Each model names the weakenings that it
//! detects ("Finds"); each of them was planted once and made the model fail.
#![cfg(loom)]
#![allow(unsafe_code)]

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread;
use nfold_sync::page_word::{PageWord, frame_of, is_exclusive};
use nfold_sync::prefix::{FilledPrefix, UNIT};
use nfold_sync::{
    DeferredTarget, RequestCoalescer, Submission, TargetRequests, Tenancy, epoch::Registry, words,
};
use std::sync::Arc;

fn page(n: usize) -> Vec<AtomicU64> {
    (0..n).map(|_| AtomicU64::new(0)).collect()
}

/// Reads two words optimistically, and returns them if the read validates.
fn read(word: &PageWord, bytes: &[AtomicU64]) -> Option<(u64, u64)> {
    let seen = word.load();
    if is_exclusive(seen) || frame_of(seen).is_none() {
        return None;
    }
    let pair = (words::load_u64(bytes, 0), words::load_u64(bytes, 8));
    word.validate(seen).then_some(pair)
}

/// Finds: no fence in `validate` or in the latch; a relaxed load or release; a version that does
/// not grow.
#[test]
fn validated_read_is_one_page_state() {
    loom::model(|| {
        let shared = Arc::new((PageWord::new(), page(2)));
        assert!(shared.0.install(0, 0));
        let writer = shared.clone();
        let t = thread::spawn(move || {
            let (word, bytes) = &*writer;
            for value in 1..=2 {
                let before = word.latch_resident().unwrap();
                words::store_u64(bytes, 0, value);
                words::store_u64(bytes, 8, value);
                word.release_changed(before);
            }
        });
        let reader = thread::spawn(move || {
            if let Some((a, b)) = read(&shared.0, &shared.1) {
                assert_eq!(a, b);
            }
        });
        t.join().unwrap();
        reader.join().unwrap();
    });
}

/// Finds: a relaxed release.
#[test]
fn latches_exclude_each_other() {
    loom::model(|| {
        let shared = Arc::new((PageWord::new(), page(1)));
        assert!(shared.0.install(0, 0));
        let add = |shared: &(PageWord, Vec<AtomicU64>)| {
            let before = shared.0.latch_resident().unwrap();
            let value = words::load_u64(&shared.1, 0);
            words::store_u64(&shared.1, 0, value + 1);
            shared.0.release_changed(before);
        };
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || add(&shared))
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        assert_eq!(words::load_u64(&shared.1, 0), 2);
    });
}

/// A latch also protects state beside the page, such as its dirty flag. A holder may change only
/// that, and then leaves the word as it was. Finds: a relaxed compare-and-swap in the latch, or a
/// relaxed release.
#[test]
fn next_latch_sees_state_beside_the_page() {
    loom::model(|| {
        let shared = Arc::new((PageWord::new(), AtomicU64::new(0)));
        assert!(shared.0.install(0, 0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (word, beside) = &*shared;
                    let before = word.latch_resident().unwrap();
                    let value = beside.load(Ordering::Relaxed);
                    beside.store(value + 1, Ordering::Relaxed);
                    word.release_unchanged(before);
                })
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        assert_eq!(shared.1.load(Ordering::Relaxed), 2);
    });
}

/// Finds: no fence in `validate` or in the thread that fills the frame; a relaxed load or
/// `install`.
#[test]
fn reader_notices_frame_reuse() {
    loom::model(|| {
        // (page A, page B, the frame that they use in turn, the free list)
        let shared = Arc::new((
            PageWord::new(),
            PageWord::new(),
            page(2),
            loom::sync::Mutex::new(false),
        ));
        assert!(shared.0.install(0, 0));
        words::store_u64(&shared.2, 0, 1);
        words::store_u64(&shared.2, 8, 1);
        let (evictor, loader) = (shared.clone(), shared.clone());
        let t1 = thread::spawn(move || {
            let before = evictor.0.latch_resident().unwrap();
            evictor.0.release_evicted(before);
            *evictor.3.lock().unwrap() = true;
        });
        let t2 = thread::spawn(move || {
            if std::mem::take(&mut *loader.3.lock().unwrap()) {
                nfold_sync::prim::fence(Ordering::Release);
                words::store_u64(&loader.2, 0, 2);
                words::store_u64(&loader.2, 8, 2);
                assert!(loader.1.install(0, 0));
            }
        });
        let reader = thread::spawn(move || {
            if let Some(pair) = read(&shared.0, &shared.2) {
                assert_eq!(pair, (1, 1), "page A's bytes");
            }
            if let Some(pair) = read(&shared.1, &shared.2) {
                assert_eq!(pair, (2, 2), "page B's bytes");
            }
        });
        t1.join().unwrap();
        t2.join().unwrap();
        reader.join().unwrap();
    });
}

/// Finds: no fence in `validate`; a relaxed load or release. The fence before the memory returns to
/// the system is needed only for the system's stores: the latch's fence orders these.
#[test]
fn reader_notices_move_to_another_frame() {
    loom::model(|| {
        // (the page's word, its old frame, its new frame)
        let shared = Arc::new((PageWord::new(), page(2), page(2)));
        assert!(shared.0.install(0, 0));
        words::store_u64(&shared.1, 0, 1);
        words::store_u64(&shared.1, 8, 1);
        let mover = shared.clone();
        let t = thread::spawn(move || {
            let (word, from, to) = &*mover;
            let before = word.latch_resident().unwrap();
            for at in [0, 8] {
                words::store_u64(to, at, words::load_u64(from, at));
            }
            word.release_moved(before, 1);
            // The memory returns to the system, and reads as zeros.
            nfold_sync::prim::fence(Ordering::SeqCst);
            words::store_u64(from, 0, 0);
            words::store_u64(from, 8, 0);
        });
        let reader = thread::spawn(move || {
            let seen = shared.0.load();
            if !is_exclusive(seen) {
                let frame = if frame_of(seen) == Some(0) {
                    &shared.1
                } else {
                    &shared.2
                };
                let pair = (words::load_u64(frame, 0), words::load_u64(frame, 8));
                if shared.0.validate(seen) {
                    assert_eq!(pair, (1, 1), "the page's bytes, from either frame");
                }
            }
        });
        t.join().unwrap();
        reader.join().unwrap();
    });
}

/// Finds: no fence in `validate`; a relaxed load or `install`; a version that does not grow.
#[test]
fn reader_notices_eviction_and_reload() {
    loom::model(|| {
        let shared = Arc::new((PageWord::new(), page(2)));
        assert!(shared.0.install(0, 0));
        let other = shared.clone();
        let t = thread::spawn(move || {
            let (a, bytes) = &*other;
            let before = a.latch_resident().unwrap();
            a.release_evicted(before);
            for value in [2, 0] {
                // The frame serves another page, and then page A again, with its old bytes.
                nfold_sync::prim::fence(Ordering::Release);
                words::store_u64(bytes, 0, value);
                words::store_u64(bytes, 8, value);
            }
            assert!(a.install(a.load(), 0));
        });
        let reader = thread::spawn(move || {
            if let Some(pair) = read(&shared.0, &shared.1) {
                assert_eq!(pair, (0, 0), "page A's bytes, before or after");
            }
        });
        t.join().unwrap();
        reader.join().unwrap();
    });
}

/// Finds: either fence or the second check left out; relaxed orderings of the flag.
#[test]
fn filled_prefix_reaches_the_end() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let shared = Arc::new((FilledPrefix::new(0, 4 * UNIT), AtomicU64::new(0)));
        let write = |shared: &(FilledPrefix, AtomicU64)| {
            let start = shared.1.fetch_add(UNIT, Ordering::Relaxed);
            shared.0.mark(start, start + UNIT);
        };
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || write(&shared))
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        assert_eq!(
            shared.0.horizon(),
            3 * UNIT,
            "prefix::I3: the last marker moves the prefix to the end"
        );
    });
}

#[test]
fn horizon_publishes_earlier_stores() {
    loom::model(|| {
        let shared = Arc::new((
            FilledPrefix::new(0, 4 * UNIT),
            AtomicU64::new(0),
            AtomicU64::new(0),
        ));
        let first = shared.clone();
        let t = thread::spawn(move || {
            first.1.store(1, Ordering::Relaxed);
            first.0.mark(0, UNIT);
        });
        let second = shared.clone();
        let u = thread::spawn(move || {
            second.2.store(1, Ordering::Relaxed);
            second.0.mark(UNIT, 2 * UNIT);
        });
        let reader = thread::spawn(move || {
            let horizon = shared.0.horizon();
            if horizon >= UNIT {
                assert_eq!(
                    shared.1.load(Ordering::Relaxed),
                    1,
                    "the status of the first commit"
                );
            }
            if horizon >= 2 * UNIT {
                assert_eq!(
                    shared.2.load(Ordering::Relaxed),
                    1,
                    "the status of the second"
                );
            }
        });
        t.join().unwrap();
        u.join().unwrap();
        reader.join().unwrap();
    });
}

/// An object whose reads and whose drop loom requires to be ordered.
struct Object(loom::cell::UnsafeCell<u32>);

// SAFETY: loom checks each access, and fails the model if two are not ordered.
unsafe impl Sync for Object {}

/// One thread makes an object unreachable and defers it, another collects it, and a third may read
/// it meanwhile. Finds: no fence in `pin`, `defer_free` or `collect`; a relaxed unpin or a relaxed
/// scan of the slots; a collection that ignores pins.
#[test]
fn pinned_reader_never_sees_freed_objects() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        // (whether the object is reachable, the object, whether it was freed)
        let shared = Arc::new((
            AtomicBool::new(true),
            Object(loom::cell::UnsafeCell::new(0)),
            AtomicBool::new(false),
        ));
        let registry = std::sync::Arc::new(Registry::new());
        let slot = registry.slot();
        let (other, own) = (shared.clone(), registry.clone());
        let owner = thread::spawn(move || {
            other.0.store(false, Ordering::Relaxed);
            let gone = other.clone();
            own.defer_free(move || {
                gone.1.0.with_mut(|_| ());
                gone.2.store(true, Ordering::Relaxed);
            });
        });
        let own = registry.clone();
        let collector = thread::spawn(move || {
            own.collect();
            own.collect();
        });
        let seen = shared.clone();
        let reader = thread::spawn(move || {
            let guard = slot.pin();
            if seen.0.load(Ordering::Relaxed) {
                assert!(
                    !seen.2.load(Ordering::Relaxed),
                    "reachable, so not freed while pinned"
                );
                seen.1.0.with(|_| ());
            }
            drop(guard);
            slot
        });
        owner.join().unwrap();
        collector.join().unwrap();
        drop(reader.join().unwrap());
        registry.collect();
        registry.collect();
        assert!(shared.2.load(Ordering::Relaxed), "freed in the end");
    });
}

/// wakeup::W1 and wakeup::W2: a receiver that goes to sleep has no message, or a sender rings it;
/// two senders ring at most once per sleep. Finds: either fence left out; a flag that is loaded but
/// not swapped.
#[test]
fn sleeping_receiver_misses_no_message() {
    use loom::sync::Mutex;
    use nfold_sync::Wakeup;

    loom::model(|| {
        let shared = Arc::new((Wakeup::default(), Mutex::new(0u32), Mutex::new(0u32)));
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (wakeup, queue, rings) = &*shared;
                    *queue.lock().unwrap() += 1;
                    if wakeup.announce() {
                        *rings.lock().unwrap() += 1;
                    }
                })
            })
            .collect();
        let own = shared.clone();
        let receiver = thread::spawn(move || {
            let (wakeup, queue, _) = &*own;
            let mut received = 0;
            if wakeup.take() {
                received += std::mem::take(&mut *queue.lock().unwrap());
            }
            (received, wakeup.may_sleep())
        });
        for s in senders {
            s.join().unwrap();
        }
        let (received, sleeps) = receiver.join().unwrap();
        let (_, queue, rings) = &*shared;
        let rung = *rings.lock().unwrap();
        assert!(rung <= 1, "W2");
        if sleeps && rung == 0 {
            // The queue must be empty here: the sleeping receiver would never look again.
            assert_eq!((received, *queue.lock().unwrap()), (2, 0), "W1");
        }
    });
}

/// When no participant is left, every submitted position has been requested. Finds: the second swap
/// left out. It cannot show that the orderings must not be relaxed, because loom executes
/// read-modify-writes of several atomics in one total order.
#[test]
fn coalescer_loses_no_request() {
    loom::model(|| {
        let shared = Arc::new((RequestCoalescer::default(), AtomicU64::new(0)));
        let turn = |shared: &(RequestCoalescer, AtomicU64), to: u64| {
            shared.0.enter();
            let to = match shared.0.submit(to) {
                Submission::Deferred => return,
                Submission::Sole => to,
                Submission::Request(to) => to,
            };
            shared.1.fetch_max(to, Ordering::AcqRel);
        };
        let threads: Vec<_> = [[1, 4], [3, 2]]
            .into_iter()
            .map(|turns| {
                let shared = shared.clone();
                thread::spawn(move || turns.into_iter().for_each(|to| turn(&shared, to)))
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        assert_eq!(shared.1.load(Ordering::Acquire), 4);
    });
}

/// A target that is set while the receiver falls asleep is seen by the receiver, or one of the
/// senders wakes it. Finds: either fence left out; a flag that is loaded but not swapped.
#[test]
fn sleeping_receiver_misses_no_target() {
    loom::model(|| {
        let target = Arc::new(DeferredTarget::default());
        let threads: Vec<_> = [3, 5]
            .into_iter()
            .map(|number| {
                let target = target.clone();
                thread::spawn(move || target.raise(number))
            })
            .collect();
        let own = target.clone();
        let receiver = thread::spawn(move || {
            let done = own.highest();
            let sleeps = own.may_sleep(done);
            if !sleeps {
                own.awake();
                assert!(own.highest() > done);
            }
            (done, sleeps)
        });
        let (done, sleeps) = receiver.join().unwrap();
        let woken = threads.into_iter().map(|t| t.join().unwrap());
        let woken = woken.filter(|&w| w).count();
        assert!(woken <= 1);
        if sleeps && target.highest() > done {
            assert_eq!(woken, 1);
        }
    });
}

/// A request that arrives while the server ends is either served, or its sender learns that it has
/// to act itself. Finds: either fence left out.
#[test]
fn request_to_an_ended_server_is_noticed() {
    loom::model(|| {
        let shared = Arc::new((TargetRequests::new(0), AtomicU64::new(0)));
        let threads: Vec<_> = [1, 2]
            .into_iter()
            .map(|number| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (requests, done) = &*shared;
                    requests.request(number);
                    if !requests.is_served() {
                        done.fetch_max(number, Ordering::AcqRel);
                    }
                })
            })
            .collect();
        let own = shared.clone();
        let server = thread::spawn(move || {
            let (requests, done) = &*own;
            done.fetch_max(requests.highest(), Ordering::AcqRel);
            done.fetch_max(requests.close(), Ordering::AcqRel);
        });
        for t in threads {
            t.join().unwrap();
        }
        server.join().unwrap();
        assert_eq!(shared.1.load(Ordering::Acquire), 2);
    });
}

/// A commit that syncs itself, because no other commit waits and the mutex is free, loses no
/// request of others, and no two threads sync at once. Finds: a leader without the mutex. The
/// leader's check for waiting commits serves these commits' latency, not durability, so the model
/// cannot find its absence.
#[test]
fn leading_commit_loses_no_request() {
    use loom::sync::Mutex;

    #[derive(Default)]
    struct Log {
        requests: TargetRequests,
        coalescer: RequestCoalescer,
        deferred: DeferredTarget,
        writer: Mutex<()>,
        filled: AtomicU64,
        durable: AtomicU64,
    }

    impl Log {
        /// Only the holder of the mutex calls this.
        fn sync(&self) {
            let to = self.filled.load(Ordering::Acquire);
            assert!(self.durable.fetch_max(to, Ordering::AcqRel) <= to);
        }

        fn done(&self) -> u64 {
            self.durable.load(Ordering::Acquire)
        }

        fn lead(&self, to: u64) -> bool {
            let Ok(_writer) = self.writer.try_lock() else {
                return false;
            };
            let done = self.done();
            if done >= to {
                return true;
            }
            if self.requests.highest() > done || self.deferred.highest() > done {
                return false;
            }
            self.sync();
            true
        }

        fn commit(&self, may_block: bool) {
            self.coalescer.enter();
            let to = self.filled.fetch_add(1, Ordering::AcqRel) + 1;
            match self.coalescer.submit(to) {
                Submission::Deferred => drop(self.deferred.raise(to)),
                Submission::Sole if may_block && self.lead(to) => assert!(self.done() >= to),
                Submission::Sole => drop(self.requests.request(to)),
                Submission::Request(to) => drop(self.requests.request(to)),
            }
        }

        /// One round of the log thread while it is awake.
        fn turn(&self) {
            let wanted = self.requests.highest();
            if wanted > self.done() {
                let _writer = self.writer.lock().unwrap();
                if wanted > self.done() {
                    self.sync();
                }
            }
        }
    }

    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let log = Arc::new(Log::default());
        let threads: Vec<_> = [true, false]
            .into_iter()
            .map(|may_block| {
                let log = log.clone();
                thread::spawn(move || log.commit(may_block))
            })
            .collect();
        let own = log.clone();
        let thread = thread::spawn(move || own.turn());
        for t in threads {
            t.join().unwrap();
        }
        thread.join().unwrap();
        log.turn();
        assert!(log.done() >= 2);
    });
}

/// A model of a space's slot: a page word that serves one tenant after another, and the frame of
/// its pages.
struct SpaceSlot {
    tenancy: Tenancy<PageWord>,
    frame: Vec<AtomicU64>,
    /// Whether the tenant was dropped. The store uses sequentially consistent accesses here. Loom
    /// supports that ordering only for fences.
    gone: AtomicBool,
    /// State that a user may access only while it keeps the tenant in its slot.
    used: loom::cell::UnsafeCell<u32>,
}

// SAFETY: loom checks each access to `used`, and fails the model if two are not ordered.
unsafe impl Sync for SpaceSlot {}

impl SpaceSlot {
    /// A slot with tenant 1, whose page is resident and contains the number 1.
    fn new() -> Arc<SpaceSlot> {
        let tenancy = Tenancy::new(PageWord::new());
        tenancy.occupy(1);
        assert!(tenancy.value().install(0, 0));
        let frame = page(2);
        words::store_u64(&frame, 0, 1);
        words::store_u64(&frame, 8, 1);
        Arc::new(SpaceSlot {
            tenancy,
            frame,
            gone: AtomicBool::new(false),
            used: loom::cell::UnsafeCell::new(0),
        })
    }

    fn use_it(&self) {
        self.used.with_mut(|_| ());
    }

    fn drop_tenant(&self) {
        self.gone.store(true, Ordering::Relaxed);
        nfold_sync::prim::fence(Ordering::SeqCst);
    }

    fn is_gone(&self) -> bool {
        nfold_sync::prim::fence(Ordering::SeqCst);
        self.gone.load(Ordering::Relaxed)
    }

    fn forget_page(&self) {
        let word = self.tenancy.value();
        if let Some(before) = word.latch_resident() {
            word.release_evicted(before);
        }
    }

    /// Replaces tenant 1, whose page was evicted, by tenant 2. False: tenant 1 is in use.
    fn pass_on(&self) -> bool {
        if !self.tenancy.vacate(1) {
            return false;
        }
        self.use_it();
        self.gone.store(false, Ordering::Relaxed);
        self.tenancy.occupy(2);
        true
    }

    /// Loads a page of `id` into the frame.
    fn load_page(&self, id: u64) {
        let word = self.tenancy.value();
        let seen = word.load();
        nfold_sync::prim::fence(Ordering::Release);
        words::store_u64(&self.frame, 0, id);
        words::store_u64(&self.frame, 8, id);
        assert!(word.install(seen, 0));
    }

    /// Reads the page of tenant `id`, which may live here no more. If the read validates, it must
    /// have found that tenant's page.
    fn look_for(&self, id: u32) {
        let word = self.tenancy.value();
        let seen = word.load();
        if is_exclusive(seen) || frame_of(seen).is_none() || !self.tenancy.is(id) {
            return;
        }
        let pair = (
            words::load_u64(&self.frame, 0),
            words::load_u64(&self.frame, 8),
        );
        if word.validate(seen) {
            assert_eq!(pair, (id.into(), id.into()), "tenant {id}'s page");
        }
    }
}

/// Finds: the id compared before the word is loaded, or not at all; an id that is not cleared; a
/// relaxed load of the word; a relaxed `install`; no fence in `validate`. The model also looks for
/// tenant 2 before it moves in, which the store never does.
#[test]
fn reader_tells_tenants_apart() {
    for id in [1, 2] {
        loom::model(move || {
            let shared = SpaceSlot::new();
            let (other, reader) = (shared.clone(), shared.clone());
            let t = thread::spawn(move || {
                other.forget_page();
                assert!(other.pass_on());
                other.load_page(2);
            });
            let reader = thread::spawn(move || reader.look_for(id));
            t.join().unwrap();
            reader.join().unwrap();
        });
    }
}

/// Finds: the id compared before the word is loaded, or not at all; a relaxed release of the word.
/// The id may also be compared between the load and the latch.
#[test]
fn latched_page_keeps_its_tenant() {
    loom::model(|| {
        let shared = SpaceSlot::new();
        let other = shared.clone();
        let t = thread::spawn(move || {
            other.forget_page();
            assert!(other.pass_on());
            other.load_page(2);
        });
        let writer = thread::spawn(move || {
            let word = shared.tenancy.value();
            let seen = word.load();
            if !is_exclusive(seen) && frame_of(seen).is_some() && word.try_latch(seen) {
                if shared.tenancy.is(1) {
                    assert_eq!(words::load_u64(&shared.frame, 0), 1);
                    shared.use_it();
                    assert!(shared.tenancy.is(1));
                } else {
                    assert!(
                        shared.tenancy.is(2),
                        "its page is resident only while it is here"
                    );
                }
                word.release_unchanged(seen);
            }
        });
        t.join().unwrap();
        writer.join().unwrap();
    });
}

/// Finds: either fence or the second check of the users left out; a relaxed check or `release`; an
/// id that is not cleared, or not restored.
#[test]
fn hold_keeps_the_tenant() {
    loom::model(|| {
        let shared = SpaceSlot::new();
        let (other, holder) = (shared.clone(), shared.clone());
        let t = thread::spawn(move || {
            other.forget_page();
            other.pass_on()
        });
        let holder = thread::spawn(move || {
            let there = holder.tenancy.hold(1);
            if there {
                holder.use_it();
                holder.tenancy.release();
            }
            there
        });
        let (next, held) = (t.join().unwrap(), holder.join().unwrap());
        assert!(shared.tenancy.is(if next { 2 } else { 1 }), "I3");
        assert!(next || held || !shared.tenancy.hold(3));
    });
}

/// Finds: the first check of the users left out; a hold that `hold_again` does not count.
#[test]
fn long_standing_hold_never_misses_the_id() {
    loom::model(|| {
        let shared = SpaceSlot::new();
        assert!(shared.tenancy.hold(1));
        let (other, holder) = (shared.clone(), shared.clone());
        let t = thread::spawn(move || {
            other.forget_page();
            other.pass_on();
        });
        let holder = thread::spawn(move || {
            holder.tenancy.hold_again();
            holder.tenancy.release();
            assert!(holder.tenancy.is(1));
            holder.use_it();
            holder.tenancy.release();
        });
        t.join().unwrap();
        holder.join().unwrap();
    });
}

/// Finds: either fence or the second check of the users left out; a relaxed check or `unpin`.
#[test]
fn pin_keeps_the_tenant() {
    loom::model(|| {
        let shared = SpaceSlot::new();
        let (other, pinner) = (shared.clone(), shared.clone());
        let t = thread::spawn(move || {
            other.forget_page();
            other.pass_on()
        });
        let pinner = thread::spawn(move || {
            pinner.tenancy.pin();
            if pinner.tenancy.is(1) {
                pinner.use_it();
            }
            assert!(pinner.tenancy.unpin(), "it is the only one");
        });
        let next = t.join().unwrap();
        pinner.join().unwrap();
        assert!(shared.tenancy.is(if next { 2 } else { 1 }), "I3");
    });
}

/// I6 of the store's spaces: dropping a tenant evicts its pages unless it is pinned; then the last
/// unpin evicts them. A pin that finds the tenant dropped loads no page. Finds: either fence beside
/// the drop mark left out; pins checked before the mark is set; an unpin that does not check the
/// mark.
#[test]
fn drop_against_pin_leaves_no_page() {
    loom::model(|| {
        let shared = SpaceSlot::new();
        shared.forget_page();
        let forget = |place: &SpaceSlot| {
            if place.tenancy.pins() == 0 {
                place.forget_page();
            }
        };
        let (other, pinner) = (shared.clone(), shared.clone());
        let t = thread::spawn(move || {
            other.drop_tenant();
            forget(&other);
        });
        let pinner = thread::spawn(move || {
            pinner.tenancy.pin();
            if !pinner.is_gone() {
                pinner.load_page(1);
            }
            if pinner.tenancy.unpin() && pinner.is_gone() {
                forget(&pinner);
            }
        });
        t.join().unwrap();
        pinner.join().unwrap();
        assert_eq!(frame_of(shared.tenancy.value().load()), None);
    });
}

/// The same for a load, which holds the tenant: it checks after the load whether the tenant was
/// dropped. Finds: either fence or that check left out.
#[test]
fn drop_against_load_leaves_no_page() {
    loom::model(|| {
        let shared = SpaceSlot::new();
        shared.forget_page();
        let (other, loader) = (shared.clone(), shared.clone());
        let t = thread::spawn(move || {
            other.drop_tenant();
            other.forget_page();
            if other.pass_on() {
                assert_eq!(frame_of(other.tenancy.value().load()), None);
            }
        });
        let loader = thread::spawn(move || {
            if loader.tenancy.hold(1) {
                loader.load_page(1);
                if loader.is_gone() {
                    loader.forget_page();
                }
                loader.tenancy.release();
            }
        });
        t.join().unwrap();
        loader.join().unwrap();
        assert_eq!(frame_of(shared.tenancy.value().load()), None);
    });
}

/// A pin meant for tenant 1 may come too late, and then keep tenant 2's page from being evicted.
/// Its unpin must evict that page. Finds: the id checked before the pin ends.
#[test]
fn late_pin_leaves_no_page() {
    loom::model(|| {
        let shared = SpaceSlot::new();
        let forget = |place: &SpaceSlot| {
            if place.tenancy.pins() == 0 {
                place.forget_page();
            }
        };
        let (other, pinner) = (shared.clone(), shared.clone());
        let t = thread::spawn(move || {
            other.forget_page();
            if other.pass_on() {
                other.load_page(2);
                other.drop_tenant();
                forget(&other);
            }
        });
        let pinner = thread::spawn(move || {
            pinner.tenancy.pin();
            let _ = pinner.tenancy.is(1) && !pinner.is_gone();
            if pinner.tenancy.unpin() && pinner.is_gone() && pinner.tenancy.is(2) {
                forget(&pinner);
            }
        });
        t.join().unwrap();
        pinner.join().unwrap();
        assert_eq!(frame_of(shared.tenancy.value().load()), None);
    });
}

/// The protocol of `nfold_txn::locks::run`, rebuilt here because its mutexes are not loom's: one
/// owner adds a key to its run, another one requests the same key at the queue.
struct RunAndQueue {
    /// The run has the key, behind the owner's mutex.
    in_run: loom::sync::Mutex<bool>,
    /// The shard's mutex: false is free.
    latch: AtomicBool,
    has_queues: AtomicBool,
    /// The other owner has an entry in the queue of the key. Used under the latch.
    entry: AtomicBool,
}

impl RunAndQueue {
    fn latch(&self) {
        let free = || {
            let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            self.latch.compare_exchange(false, true, acquire, relaxed)
        };
        while free().is_err() {
            thread::yield_now();
        }
    }

    fn release(&self) {
        let has_queues = self.entry.load(Ordering::Relaxed);
        self.has_queues.store(has_queues, Ordering::Relaxed);
        self.latch.store(false, Ordering::Release);
    }

    /// Whether the owner of the run gets the lock.
    fn lock_in_run(&self) -> bool {
        *self.in_run.lock().unwrap() = true;
        loom::sync::atomic::fence(Ordering::SeqCst);
        let mut may_have_queues = self.latch.load(Ordering::Relaxed);
        if !may_have_queues {
            loom::sync::atomic::fence(Ordering::Acquire);
            may_have_queues = self.has_queues.load(Ordering::Relaxed);
        }
        if !may_have_queues {
            return true;
        }
        self.latch();
        let granted = !self.entry.load(Ordering::Relaxed);
        self.release();
        if !granted {
            *self.in_run.lock().unwrap() = false;
        }
        granted
    }

    /// Whether the other owner gets it.
    fn lock_at_queue(&self) -> bool {
        self.latch();
        loom::sync::atomic::fence(Ordering::SeqCst);
        let granted = !*self.in_run.lock().unwrap();
        self.entry.store(granted, Ordering::Relaxed);
        self.release();
        granted
    }
}

/// Finds: no look at the latch, or none at `has_queues`; `has_queues` set behind the release; a key
/// that is added after the look.
#[test]
fn run_and_queue_see_each_other() {
    loom::model(|| {
        let shared = Arc::new(RunAndQueue {
            in_run: loom::sync::Mutex::new(false),
            latch: AtomicBool::new(false),
            has_queues: AtomicBool::new(false),
            entry: AtomicBool::new(false),
        });
        let other = shared.clone();
        let at_queue = thread::spawn(move || other.lock_at_queue());
        let in_run = thread::spawn(move || shared.lock_in_run());
        let (at_queue, in_run) = (at_queue.join().unwrap(), in_run.join().unwrap());
        assert!(!(at_queue && in_run), "both have the lock");
    });
}
