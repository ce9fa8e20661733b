//! [`Wait`]: the future returned by a call that cannot continue.
//!
//! # Invariants
//! - I1: a source becomes ready before its waiters are woken, and a waiter checks the source again
//!   after it registered. So no wakeup is lost.
//! - I2: dropping a [`Wait`] removes its waker from the source's list.
//! # Not here
//! Waits for row locks. The transaction layer has its own future for them and wraps it with
//! [`Wait::boxed`].

use crate::wait_record::Watched;
use nfold_observe::contention::{Contention, WaitKind};
use nfold_sync::CachePadded;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::task::{Context, Poll, Wake, Waker};

/// A `Future<Output = ()>` that becomes ready when the call that returned it should be repeated.
/// Dropping it cancels the wait.
pub struct Wait(Inner);

enum Inner {
    Ready,
    Boxed(Pin<Box<dyn Future<Output = ()> + Send>>),
    Source {
        source: Arc<dyn Source>,
        arg: u64,
        key: u64,
        watched: Option<Watched>,
    },
    All(Vec<Wait>, Option<Watched>),
}

/// An object that becomes ready: a page load, the durable log position, log space.
pub(crate) trait Source: Send + Sync {
    /// Whether the source is ready for `arg`, whose meaning depends on the source (an LSN, a
    /// count).
    fn ready(&self, arg: u64) -> bool;
    fn wakers(&self) -> &WakeList;
}

/// The waiting wakers of one source.
#[derive(Default)]
pub(crate) struct WakeList {
    next_key: AtomicU64,
    /// The number of entries. It lets `wake` return after a fence and a load if there are no
    /// waiters.
    count: AtomicUsize,
    /// By key: (argument, waker).
    entries: Mutex<FxHashMap<u64, (u64, Waker)>>,
}

impl WakeList {
    fn register(&self, key: &mut u64, arg: u64, waker: &Waker) {
        let mut entries = self.entries.lock();
        if *key == 0 {
            *key = self.next_key.fetch_add(1, Ordering::Relaxed) + 1;
        }
        entries.insert(*key, (arg, waker.clone()));
        self.count.store(entries.len(), Ordering::Relaxed);
        drop(entries);
        // Pairs with the fence in `wake`: either the source sees the entry, or this waiter sees
        // that the source is ready.
        fence(Ordering::SeqCst);
    }

    /// Removes an entry. After a wakeup there is none, and most often this does not even take the
    /// lock.
    fn cancel(&self, key: u64) {
        if self.is_empty() {
            return;
        }
        let mut entries = self.entries.lock();
        entries.remove(&key);
        self.count.store(entries.len(), Ordering::Relaxed);
    }

    /// Whether there are no waiters. A waiter that registers at this moment may be missed; see I1.
    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Wakes the waiters whose argument satisfies `ready`. To be called after the source became
    /// ready (I1).
    pub(crate) fn wake(&self, ready: impl Fn(u64) -> bool) {
        fence(Ordering::SeqCst);
        if self.is_empty() {
            return;
        }
        let mut woken = Vec::new();
        let mut entries = self.entries.lock();
        entries.retain(|_, (arg, waker)| {
            let done = ready(*arg);
            if done {
                woken.push(waker.clone());
            }
            !done
        });
        self.count.store(entries.len(), Ordering::Relaxed);
        drop(entries);
        for w in woken {
            w.wake();
        }
    }
}

/// A number that only grows, as a source: it is ready once it has reached the argument.
#[derive(Default)]
pub(crate) struct Gate {
    value: CachePadded<AtomicU64>,
    wakers: WakeList,
}

impl Gate {
    pub(crate) fn new(value: u64) -> Gate {
        Gate {
            value: CachePadded::new(AtomicU64::new(value)),
            wakers: WakeList::default(),
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.value.load(Ordering::Acquire)
    }

    /// Raises the value to at least `to`, and wakes the waiters that it satisfies.
    pub(crate) fn raise(&self, to: u64) {
        let before = self.value.fetch_max(to, Ordering::AcqRel);
        if before < to {
            self.wakers.wake(|arg| arg <= to);
        }
    }

    /// Increments the value, and wakes the waiters that it satisfies.
    pub(crate) fn bump(&self) {
        let now = self.value.fetch_add(1, Ordering::AcqRel) + 1;
        self.wakers.wake(|arg| arg <= now);
    }
}

impl Source for Gate {
    fn ready(&self, arg: u64) -> bool {
        self.get() >= arg
    }

    fn wakers(&self) -> &WakeList {
        &self.wakers
    }
}

impl Wait {
    /// A wait that is already over: the call can be repeated at once.
    pub fn ready() -> Wait {
        Wait(Inner::Ready)
    }

    /// Wraps a future of a higher crate.
    pub fn boxed(future: impl Future<Output = ()> + Send + 'static) -> Wait {
        Wait(Inner::Boxed(Box::pin(future)))
    }

    /// A wait for all of `waits`.
    pub fn all(waits: Vec<Wait>) -> Wait {
        Wait(Inner::All(waits, None))
    }

    pub(crate) fn on(source: Arc<dyn Source>, arg: u64) -> Wait {
        Wait(Inner::Source {
            source,
            arg,
            key: 0,
            watched: None,
        })
    }

    /// The same wait, recorded as one of `kind` unless it is over at its first poll.
    pub(crate) fn watched(mut self, contention: &Arc<Contention>, kind: WaitKind) -> Wait {
        if let Inner::Source { watched, .. } | Inner::All(_, watched) = &mut self.0 {
            *watched = Some(Watched::new(contention, kind));
        }
        self
    }

    /// Blocks this thread until the wait is over. For tests and background threads; a worker must
    /// not call it.
    pub fn block(self) {
        struct Unpark(std::thread::Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut this = self;
        while Pin::new(&mut this).poll(&mut context).is_pending() {
            std::thread::park();
        }
    }
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Inner::Ready => Poll::Ready(()),
            Inner::Boxed(future) => future.as_mut().poll(context),
            Inner::Source {
                source,
                arg,
                key,
                watched,
            } => {
                if source.ready(*arg) {
                    return Poll::Ready(());
                }
                if let Some(watched) = watched {
                    watched.begin();
                }
                source.wakers().register(key, *arg, context.waker());
                if source.ready(*arg) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            }
            Inner::All(waits, watched) => {
                waits.retain_mut(|w| Pin::new(w).poll(context).is_pending());
                if waits.is_empty() {
                    return Poll::Ready(());
                }
                if let Some(watched) = watched {
                    watched.begin();
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Inner::Source { source, key, .. } = &self.0
            && *key != 0
        {
            source.wakers().cancel(*key);
        }
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.0 {
            Inner::Ready => "ready",
            Inner::Boxed(_) => "boxed",
            Inner::Source { .. } => "source",
            Inner::All(..) => "all",
        };
        write!(f, "Wait({what})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[derive(Default)]
    struct Flag {
        set: AtomicBool,
        wakers: WakeList,
    }

    impl Source for Flag {
        fn ready(&self, _: u64) -> bool {
            self.set.load(Ordering::Acquire)
        }
        fn wakers(&self) -> &WakeList {
            &self.wakers
        }
    }

    #[test]
    fn block_returns_when_the_source_is_ready() {
        let flag = Arc::new(Flag::default());
        let other = flag.clone();
        let t = std::thread::spawn(move || {
            std::thread::yield_now();
            other.set.store(true, Ordering::Release);
            other.wakers.wake(|_| true);
        });
        Wait::all(vec![
            Wait::on(flag.clone(), 1),
            Wait::ready(),
            Wait::boxed(async {}),
            Wait::on(flag.clone(), 2),
        ])
        .block();
        t.join().unwrap();
        assert!(flag.wakers.is_empty(), "I2: no waker remains registered");
    }

    #[test]
    fn drop_removes_the_waker() {
        let flag = Arc::new(Flag::default());
        let mut wait = Wait::on(flag.clone(), 1);
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut wait).poll(&mut context).is_pending());
        assert!(Pin::new(&mut wait).poll(&mut context).is_pending());
        assert!(!flag.wakers.is_empty());
        drop(wait);
        assert!(flag.wakers.is_empty());
    }
}
