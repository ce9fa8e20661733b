//! Epoch-based reclamation: frees shared objects once no reader can still reach them. Readers write
//! only to their own slot.
//!
//! # Picture
//! ```text
//! global 7   ── loaded by every pin, advanced by the background thread alone
//! slots      [7] [0] [6] [7]           one padded line per thread or session; 0: not pinned
//! garbage    (5, drop A) (6, drop B)   A is dropped when every pinned slot is above 5
//! ```
//! # Invariants
//! - I1: an object is deferred after it became unreachable, and is tagged with the global epoch of
//!   that moment.
//! - I2: an object is dropped when every pinned slot holds a later epoch. By then every reader that
//!   could have reached it has unpinned.
//! # Concurrency
//! Pin: load global (Relaxed), store the own slot (Relaxed), `fence(SeqCst)`. Collect: advance
//! global, `fence(SeqCst)`, scan the slots.
//!
//! If the scan misses a pin, that reader's fence came later, so the reader already sees the object
//! as unreachable. A stale epoch in a slot only delays the drop. Unpin is a Release store, so
//! everything the reader did happens before the drop.
//! # Cost
//! A pin costs one store to the reader's own line and one fence.

use crate::pad::CachePadded;
use crate::prim::{AtomicU64, Mutex, Ordering, fence};
use std::cell::Cell;
use std::sync::Arc;

type Garbage = Box<dyn FnOnce() + Send>;

/// The slots of all readers and the deferred objects of one kind of shared data.
pub struct Registry {
    global: CachePadded<AtomicU64>,
    slots: Mutex<Vec<Arc<CachePadded<AtomicU64>>>>,
    garbage: Mutex<Vec<(u64, Garbage)>>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

fn locked<T>(m: &Mutex<T>) -> impl std::ops::DerefMut<Target = T> + '_ {
    match m.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

impl Registry {
    pub fn new() -> Self {
        Registry {
            global: CachePadded::new(AtomicU64::new(1)),
            slots: Mutex::new(Vec::new()),
            garbage: Mutex::new(Vec::new()),
        }
    }

    /// Registers a slot for one thread or session. Dropping the slot removes it from the registry.
    pub fn slot(self: &Arc<Self>) -> Slot {
        let cell = Arc::new(CachePadded::new(AtomicU64::new(0)));
        locked(&self.slots).push(cell.clone());
        Slot {
            registry: self.clone(),
            cell,
            depth: Cell::new(0),
        }
    }

    /// Runs `drop` once no reader that is pinned now can still reach the object. The object must be
    /// unreachable already (I1).
    pub fn defer_free(&self, drop: impl FnOnce() + Send + 'static) {
        fence(Ordering::SeqCst);
        let epoch = self.global.load(Ordering::Relaxed);
        locked(&self.garbage).push((epoch, Box::new(drop)));
    }

    /// Advances the epoch, drops every object that no reader can reach, and returns how many were
    /// dropped. Only the background thread calls this.
    pub fn collect(&self) -> usize {
        self.global.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let mut oldest = u64::MAX;
        for slot in locked(&self.slots).iter() {
            let epoch = slot.load(Ordering::Acquire);
            if epoch != 0 {
                oldest = oldest.min(epoch);
            }
        }
        let ready: Vec<Garbage> = {
            let mut garbage = locked(&self.garbage);
            let now = self.global.load(Ordering::Relaxed);
            let mut ready = Vec::new();
            let mut at = 0;
            while at < garbage.len() {
                let epoch = garbage[at].0;
                if epoch < oldest && epoch < now {
                    ready.push(garbage.swap_remove(at).1);
                } else {
                    at += 1;
                }
            }
            ready
        };
        let count = ready.len();
        for f in ready {
            f();
        }
        count
    }

    /// The number of objects that wait to be dropped.
    pub fn pending(&self) -> usize {
        locked(&self.garbage).len()
    }
}

/// The slot of one thread or session in a [`Registry`]. It is not shared between threads. Nested
/// pins are counted in the slot.
pub struct Slot {
    registry: Arc<Registry>,
    cell: Arc<CachePadded<AtomicU64>>,
    depth: Cell<u32>,
}

impl Slot {
    /// Pins the current epoch: while the guard lives, nothing that is reachable now is dropped.
    #[inline]
    pub fn pin(&self) -> Guard<'_> {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        if depth == 0 {
            self.cell.store(
                self.registry.global.load(Ordering::Relaxed),
                Ordering::Relaxed,
            );
            fence(Ordering::SeqCst);
        }
        Guard { slot: self }
    }

    /// Whether a guard of this slot is alive.
    pub fn is_pinned(&self) -> bool {
        self.depth.get() != 0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        locked(&self.registry.slots).retain(|s| !Arc::ptr_eq(s, &self.cell));
    }
}

/// Keeps its slot pinned. See [`Slot::pin`].
pub struct Guard<'a> {
    slot: &'a Slot,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let depth = self.slot.depth.get() - 1;
        self.slot.depth.set(depth);
        if depth == 0 {
            self.slot.cell.store(0, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn pin_delays_drop_of_garbage() {
        let registry = Arc::new(Registry::new());
        let freed = Arc::new(AtomicUsize::new(0));
        let (a, b) = (registry.slot(), registry.slot());
        let outer = a.pin();
        let inner = a.pin();
        let f = freed.clone();
        registry.defer_free(move || {
            f.fetch_add(1, Ordering::Relaxed);
        });
        registry.collect();
        registry.collect();
        drop(inner);
        registry.collect();
        assert_eq!(
            freed.load(Ordering::Relaxed),
            0,
            "the outer guard still pins the slot"
        );
        drop(outer);
        let later = b.pin();
        registry.collect();
        assert_eq!(
            freed.load(Ordering::Relaxed),
            1,
            "a later pin does not delay the drop"
        );
        drop(later);
        assert_eq!(registry.pending(), 0);
    }

    #[test]
    fn dropped_slot_delays_nothing() {
        let registry = Arc::new(Registry::new());
        let slot = registry.slot();
        assert!(!slot.is_pinned());
        drop(slot);
        registry.defer_free(|| {});
        assert_eq!(registry.collect(), 1);
    }
}
