//! Every interleaving of the types that threads share, under loom's memory model.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p nfold-sync --release --test loom`
//!
//! With a bound on preemptions loom explores little of what the main thread does behind a `spawn`, so everything that matters is in spawned threads. Each
//! model says which weakenings it finds; each of those was planted and made it fail.
#![cfg(loom)]

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread;
use nfold_sync::page_word::{PageWord, frame_of, is_exclusive};
use nfold_sync::prefix::{FilledPrefix, UNIT};
use nfold_sync::{Gathering, HandOver, Left, Requests, Tenancy, epoch::Registry, words};
use std::sync::Arc;

fn page(n: usize) -> Vec<AtomicU64> {
    (0..n).map(|_| AtomicU64::new(0)).collect()
}

/// An optimistic read of two words: their values if it validated.
fn read(word: &PageWord, bytes: &[AtomicU64]) -> Option<(u64, u64)> {
    let seen = word.load();
    if is_exclusive(seen) || frame_of(seen).is_none() {
        return None;
    }
    let pair = (words::load_u64(bytes, 0), words::load_u64(bytes, 8));
    word.validate(seen).then_some(pair)
}

/// Finds: the fence of `validate` or of the latch left out, the load or the release relaxed, a version that does not grow.
#[test]
fn a_validated_read_is_one_state() {
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

/// Finds: the release relaxed.
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

/// A holder that changes nothing of the page (its word is the same as before) may change what else the latch protects: whether the page is dirty.
/// Finds: the latch's compare-and-swap or the release relaxed.
#[test]
fn what_was_done_beside_the_page_is_seen_under_the_next_latch() {
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

/// Finds: the fence of `validate` or of whoever fills the frame left out, the load or `install` relaxed.
#[test]
fn a_frame_given_to_another_page_is_noticed() {
    loom::model(|| {
        // (page A, page B, the frame they take turns in, the free list)
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

/// Finds: the fence of `validate` left out, the load or the release relaxed. The fence before the memory goes back is for the system's stores: for those of a
/// thread the latch's is enough.
#[test]
fn a_page_that_moves_to_another_frame_is_noticed() {
    loom::model(|| {
        // The page's word, the frame it leaves, the frame it moves to.
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
            // The memory goes back to the system, and reads as zeros.
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
                    assert_eq!(pair, (1, 1), "the page's bytes, in either frame");
                }
            }
        });
        t.join().unwrap();
        reader.join().unwrap();
    });
}

/// Finds: the fence of `validate` left out, the load or `install` relaxed, a version that does not grow.
#[test]
fn a_page_that_left_and_came_back_is_noticed() {
    loom::model(|| {
        let shared = Arc::new((PageWord::new(), page(2)));
        assert!(shared.0.install(0, 0));
        let other = shared.clone();
        let t = thread::spawn(move || {
            let (a, bytes) = &*other;
            let before = a.latch_resident().unwrap();
            a.release_evicted(before);
            for value in [2, 0] {
                // The frame serves another page, then page A again, with its old bytes.
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

/// Finds: either fence, or the second look, left out; the flag's orderings relaxed.
#[test]
fn the_filled_prefix_leaves_nobody_behind() {
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
            "I3: the last one to leave has moved the prefix to the end"
        );
    });
}

#[test]
fn the_horizon_publishes_what_was_done_before() {
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

/// An object whose reads and whose end loom wants ordered.
struct Object(loom::cell::UnsafeCell<u32>);

// SAFETY: loom checks each access, and fails the model where two are not ordered.
unsafe impl Sync for Object {}

/// One thread makes an object unreachable and hands it over, another frees it, while a third may look at it. Finds: a fence of `pin`, `defer_free` or
/// `collect` left out, the end of a pin or the look at the slots relaxed, objects freed whatever is pinned.
#[test]
fn a_pinned_reader_never_sees_freed_objects() {
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

/// W1 and W2: a receiver that goes to sleep has no message, or is rung; and two senders ring once a sleep at most. Finds: either fence left out, a flag that
/// is loaded and not swapped.
#[test]
fn no_message_is_slept_over() {
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
            // Nothing may be left in the queue: the receiver would never look.
            assert_eq!((received, *queue.lock().unwrap()), (2, 0), "W1");
        }
    });
}

/// What was handed over has been asked for when nobody holds anything any more. Finds: the second look left out. That these orderings may not be relaxed it
/// does not show: loom makes read-modify-writes of several cells in one order.
#[test]
fn no_request_is_left_to_nobody() {
    loom::model(|| {
        let shared = Arc::new((Gathering::default(), AtomicU64::new(0)));
        let turn = |shared: &(Gathering, AtomicU64), to: u64| {
            shared.0.hold();
            let to = match shared.0.hand_over(to) {
                HandOver::Left => return,
                HandOver::Alone => to,
                HandOver::Ask(to) => to,
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

/// What is left to a thread that is about to doze is seen by it, or it is woken, by one of those who leave something. Finds: either fence left out, a flag
/// that is loaded and not swapped.
#[test]
fn nothing_is_left_to_one_that_dozes_on() {
    loom::model(|| {
        let left = Arc::new(Left::default());
        let threads: Vec<_> = [3, 5]
            .into_iter()
            .map(|number| {
                let left = left.clone();
                thread::spawn(move || left.leave(number))
            })
            .collect();
        let own = left.clone();
        let dozer = thread::spawn(move || {
            let done = own.highest();
            let dozes = own.may_doze(done);
            if !dozes {
                own.awake();
                assert!(own.highest() > done);
            }
            (done, dozes)
        });
        let (done, dozes) = dozer.join().unwrap();
        let woken = threads.into_iter().map(|t| t.join().unwrap());
        let woken = woken.filter(|&w| w).count();
        assert!(woken <= 1);
        if dozes && left.highest() > done {
            assert_eq!(woken, 1);
        }
    });
}

/// Of requests that are made while their taker ends, each is answered by it, or whoever made it knows that it has to do it. Finds: either fence left out.
#[test]
fn no_request_is_made_to_one_that_has_ended() {
    loom::model(|| {
        let shared = Arc::new((Requests::new(0), AtomicU64::new(0)));
        let threads: Vec<_> = [1, 2]
            .into_iter()
            .map(|number| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (requests, done) = &*shared;
                    requests.ask(number);
                    if !requests.is_taken() {
                        done.fetch_max(number, Ordering::AcqRel);
                    }
                })
            })
            .collect();
        let own = shared.clone();
        let taker = thread::spawn(move || {
            let (requests, done) = &*own;
            done.fetch_max(requests.highest(), Ordering::AcqRel);
            done.fetch_max(requests.end(), Ordering::AcqRel);
        });
        for t in threads {
            t.join().unwrap();
        }
        taker.join().unwrap();
        assert_eq!(shared.1.load(Ordering::Acquire), 2);
    });
}

/// Whoever syncs by itself, where nobody else waits or holds anything and the mutex is free, leaves no request to nobody, and nobody syncs beside it.
/// Finds: a leader without the mutex. That it looks whether others wait is for their sake, not for durability.
#[test]
fn no_request_is_left_beside_a_leader() {
    use loom::sync::Mutex;

    #[derive(Default)]
    struct Log {
        requests: Requests,
        gathering: Gathering,
        left: Left,
        writer: Mutex<()>,
        filled: AtomicU64,
        durable: AtomicU64,
    }

    impl Log {
        /// By the holder of the mutex.
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
            if self.requests.highest() > done || self.left.highest() > done {
                return false;
            }
            self.sync();
            true
        }

        fn commit(&self, may_block: bool) {
            self.gathering.hold();
            let to = self.filled.fetch_add(1, Ordering::AcqRel) + 1;
            match self.gathering.hand_over(to) {
                HandOver::Left => drop(self.left.leave(to)),
                HandOver::Alone if may_block && self.lead(to) => assert!(self.done() >= to),
                HandOver::Alone => drop(self.requests.ask(to)),
                HandOver::Ask(to) => drop(self.requests.ask(to)),
            }
        }

        /// The log thread, when it is awake.
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

/// A space's object: a page word that serves one tenant after the other, and the frame that its pages lie in.
struct Place {
    tenancy: Tenancy<PageWord>,
    frame: Vec<AtomicU64>,
    /// Whether the tenant was dropped. The store's accesses to it are sequentially consistent, which loom knows of fences only.
    gone: AtomicBool,
    /// What who holds a tenant uses in a way that the next one may not be there for.
    used: loom::cell::UnsafeCell<u32>,
}

// SAFETY: loom checks each access to `used`, and fails the model where two are not ordered.
unsafe impl Sync for Place {}

impl Place {
    /// One whose tenant 1 has a page with the number 1.
    fn new() -> Arc<Place> {
        let tenancy = Tenancy::new(PageWord::new());
        tenancy.occupy(1);
        assert!(tenancy.place().install(0, 0));
        let frame = page(2);
        words::store_u64(&frame, 0, 1);
        words::store_u64(&frame, 8, 1);
        Arc::new(Place {
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
        let word = self.tenancy.place();
        if let Some(before) = word.latch_resident() {
            word.release_evicted(before);
        }
    }

    /// Tenant 1, whose page was forgotten, goes, and 2 comes. False: somebody uses tenant 1.
    fn pass_on(&self) -> bool {
        if !self.tenancy.vacate(1) {
            return false;
        }
        self.use_it();
        self.gone.store(false, Ordering::Relaxed);
        self.tenancy.occupy(2);
        true
    }

    /// Brings a page of `id` into the frame.
    fn load_page(&self, id: u64) {
        let word = self.tenancy.place();
        let seen = word.load();
        nfold_sync::prim::fence(Ordering::Release);
        words::store_u64(&self.frame, 0, id);
        words::store_u64(&self.frame, 8, id);
        assert!(word.install(seen, 0));
    }

    /// Looks for tenant `id` where it lives or lived; a look that counts found its page.
    fn look_for(&self, id: u32) {
        let word = self.tenancy.place();
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

/// Finds: the id compared before the word is loaded, or not at all, an id that is not taken away, the word's load or `install` relaxed, the fence of `validate` left
/// out. Tenant 2 is looked for before it is there, which nobody does in the store.
#[test]
fn a_tenant_is_not_taken_for_another() {
    for id in [1, 2] {
        loom::model(move || {
            let shared = Place::new();
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

/// Finds: the id compared before the word is loaded, or not at all, the word's release relaxed. Between the load and the latch it may be compared as well.
#[test]
fn a_latched_page_stays_its_tenants() {
    loom::model(|| {
        let shared = Place::new();
        let other = shared.clone();
        let t = thread::spawn(move || {
            other.forget_page();
            assert!(other.pass_on());
            other.load_page(2);
        });
        let writer = thread::spawn(move || {
            let word = shared.tenancy.place();
            let seen = word.load();
            if !is_exclusive(seen) && frame_of(seen).is_some() && word.try_latch(seen) {
                if shared.tenancy.is(1) {
                    assert_eq!(words::load_u64(&shared.frame, 0), 1);
                    shared.use_it();
                    assert!(shared.tenancy.is(1));
                } else {
                    assert!(shared.tenancy.is(2), "its page is there only while it is");
                }
                word.release_unchanged(seen);
            }
        });
        t.join().unwrap();
        writer.join().unwrap();
    });
}

/// Finds: either fence, or the second look at the users, left out, that look or `release` relaxed, an id that is not taken away or not given back.
#[test]
fn who_holds_a_tenant_keeps_it() {
    loom::model(|| {
        let shared = Place::new();
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

/// Finds: the first look at the users left out; a hold that is not counted by `hold_again`.
#[test]
fn who_has_held_a_tenant_sees_it_all_the_time() {
    loom::model(|| {
        let shared = Place::new();
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

/// Finds: either fence, or the second look at the users, left out, that look or `unpin` relaxed.
#[test]
fn who_pins_a_tenant_keeps_it() {
    loom::model(|| {
        let shared = Place::new();
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

/// I6 of the store's spaces: whoever drops a tenant forgets its pages unless it is pinned; then the last pin does. A pin that finds it dropped brings no page.
/// Finds: either fence beside the mark left out; pins looked at before it is made, an end of a pin that does not look for it.
#[test]
fn no_page_of_a_dropped_tenant_is_left() {
    loom::model(|| {
        let shared = Place::new();
        shared.forget_page();
        let forget = |place: &Place| {
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
        assert_eq!(frame_of(shared.tenancy.place().load()), None);
    });
}

/// The same of a load, which holds the tenant: it looks whether that was dropped after its page is there. Finds: either fence, or that look, left out.
#[test]
fn no_load_leaves_a_page_of_a_dropped_tenant() {
    loom::model(|| {
        let shared = Place::new();
        shared.forget_page();
        let (other, loader) = (shared.clone(), shared.clone());
        let t = thread::spawn(move || {
            other.drop_tenant();
            other.forget_page();
            if other.pass_on() {
                assert_eq!(frame_of(other.tenancy.place().load()), None);
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
        assert_eq!(frame_of(shared.tenancy.place().load()), None);
    });
}

/// A pin for tenant 1 that comes too late keeps 2's page from being forgotten; then its end has to see to that. Finds: the id that is looked at before the pin
/// ends.
#[test]
fn a_pin_that_comes_too_late_leaves_no_page() {
    loom::model(|| {
        let shared = Place::new();
        let forget = |place: &Place| {
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
        assert_eq!(frame_of(shared.tenancy.place().load()), None);
    });
}
