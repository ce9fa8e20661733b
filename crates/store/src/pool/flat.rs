//! Zeroed memory for the arrays that every read looks into at a random place: in 2 MiB pages where the system gives them, so that a look costs
//! no walk through page tables of its own.
//!
//! # Picture
//! ```text
//! Flat     one array                        | entry 0 | entry 1 | ...                    the clock's marks
//! Arena    many arrays, in blocks           | 512 B | 1 KiB | ... | 512 B | left over |  the page words of all spaces
//! ```
//! # Invariants
//! - I1: memory given out stays where it is, and is nobody else's, until the `Flat` or the `Arena` is dropped, or it is given back to the `Arena`.
//! - I2: what was given back to an `Arena` is given out again as it was, for an array of the same length only: whoever still looks at it sees a value.
//! # Cost
//! Memory that nobody has touched is only reserved; with huge pages it comes 2 MiB at a time.

use parking_lot::Mutex;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::HashMap;
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};

/// A huge page, and a block of an [`Arena`].
const BLOCK: usize = 2 << 20;

/// All bits clear is a value of it, and it needs no drop.
pub(crate) trait Zeroable {}
impl Zeroable for nfold_sync::prim::AtomicU64 {}
impl Zeroable for std::sync::atomic::AtomicU8 {}

/// Zeroed memory: a mapping of its own for huge pages, otherwise the allocator's, where the read-only proof finds it.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    len: usize,
    huge: bool,
}

/// Of what is not mapped: a line, and its neighbour that the processor may bring with it.
const ALIGN: usize = 128;

fn layout(len: usize) -> Layout {
    Layout::from_size_align(len, ALIGN).expect("a size that was asked for")
}

impl Mapping {
    /// At least `len` zero bytes: where they begin (with huge pages at a multiple of [`BLOCK`]), and what holds them.
    fn new(len: usize, huge: bool) -> (NonNull<u8>, Mapping) {
        if huge {
            return Mapping::huge(len);
        }
        let len = len.max(1);
        // SAFETY: the size is not zero; the result is checked.
        let base = NonNull::new(unsafe { alloc_zeroed(layout(len)) });
        let base = base.unwrap_or_else(|| handle_alloc_error(layout(len)));
        (base, Mapping { base, len, huge })
    }

    fn huge(len: usize) -> (NonNull<u8>, Mapping) {
        let total = len.max(1).next_multiple_of(BLOCK) + BLOCK;
        // SAFETY: a fresh private anonymous mapping; the result is checked.
        let base = unsafe {
            libc::mmap(
                null_mut(),
                total,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let base = (base != libc::MAP_FAILED).then(|| NonNull::new(base.cast::<u8>()));
        let base = base.flatten();
        let base = base.unwrap_or_else(|| handle_alloc_error(layout(total)));
        // SAFETY: the mapping goes on for another block behind `len`.
        let start = unsafe { base.add(base.align_offset(BLOCK)) };
        // SAFETY: advice about the mapping just made; failing is harmless.
        unsafe {
            libc::madvise(
                start.as_ptr().cast(),
                len.next_multiple_of(BLOCK),
                libc::MADV_HUGEPAGE,
            )
        };
        let (len, huge) = (total, true);
        (start, Mapping { base, len, huge })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made in `new` with this length, in this way; who owns it hands out nothing that outlives it (I1).
        unsafe {
            if self.huge {
                libc::munmap(self.base.as_ptr().cast(), self.len);
            } else {
                dealloc(self.base.as_ptr(), layout(self.len));
            }
        }
    }
}

/// See the module's header.
pub(crate) struct Flat<T> {
    start: NonNull<T>,
    len: usize,
    _mapping: Mapping,
}

// SAFETY: owns its memory, as a boxed slice does.
unsafe impl<T: Send> Send for Flat<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Flat<T> {}

impl<T: Zeroable> Flat<T> {
    /// `len` entries, all bits clear.
    pub(crate) fn new(len: usize, huge: bool) -> Flat<T> {
        let (start, mapping) = Mapping::new(len * size_of::<T>(), huge);
        Flat {
            start: start.cast(),
            len,
            _mapping: mapping,
        }
    }
}

impl<T> Deref for Flat<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping has room for `len` entries, is aligned and zeroed, which is a value of `T`, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

/// See the module's header.
pub(crate) struct Arena {
    huge: bool,
    blocks: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    mappings: Vec<Mapping>,
    /// What is left of the newest block that small arrays come from.
    rest: Option<NonNull<u8>>,
    left: usize,
    /// What was given back, by its length.
    back: HashMap<usize, Vec<NonNull<u8>>>,
}

// SAFETY: the blocks are owned, and what is left of them or was given back is touched under the mutex only.
unsafe impl Send for Blocks {}

impl Arena {
    pub(crate) fn new(huge: bool) -> Arena {
        Arena {
            huge,
            blocks: Mutex::default(),
        }
    }

    /// Memory of `len` bytes, aligned to 128 at least: as it was [given back](Self::give_back), or zeroed. `len` is a multiple of 128.
    pub(crate) fn take(&self, len: usize) -> NonNull<u8> {
        debug_assert!(len.is_multiple_of(128));
        let mut blocks = self.blocks.lock();
        let blocks = &mut *blocks;
        if let Some(start) = blocks.back.get_mut(&len).and_then(Vec::pop) {
            return start;
        }
        if len >= BLOCK {
            let (start, mapping) = Mapping::new(len, self.huge);
            blocks.mappings.push(mapping);
            return start;
        }
        let start = match blocks.rest {
            Some(rest) if blocks.left >= len => rest,
            _ => {
                let (start, mapping) = Mapping::new(BLOCK, self.huge);
                blocks.mappings.push(mapping);
                blocks.left = BLOCK;
                start
            }
        };
        blocks.left -= len;
        // SAFETY: `left` was at least `len`, so this is inside of the block or just behind it.
        blocks.rest = Some(unsafe { start.add(len) });
        start
    }

    /// Bytes of all blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.lock().mappings.iter().map(|m| m.len).sum()
    }

    /// Takes memory back that [`take`](Self::take) gave for this length. Whoever looks at it as an array of atomics may go on.
    pub(crate) fn give_back(&self, start: NonNull<u8>, len: usize) {
        self.blocks.lock().back.entry(len).or_default().push(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    #[test]
    fn arrays_begin_clear_and_keep_what_is_stored() {
        // Miri knows no madvise.
        let len = if cfg!(miri) { 1000 } else { 100_000 };
        for huge in [false, true] {
            if cfg!(miri) && huge {
                continue;
            }
            let marks: Flat<AtomicU8> = Flat::new(len, huge);
            assert_eq!(marks.len(), len);
            assert!(marks.iter().all(|m| m.load(Relaxed) == 0));
            marks[len - 1].store(2, Relaxed);
            assert_eq!(marks[len - 1].load(Relaxed), 2);
            assert!(Flat::<AtomicU8>::new(0, huge).is_empty());
        }
    }

    #[test]
    fn an_arenas_parts_are_zero_and_apart() {
        let arena = Arena::new(false);
        let mut taken: Vec<(usize, usize)> = Vec::new();
        // Miri takes microseconds for a byte.
        let (rounds, sizes) = if cfg!(miri) { (7, 3) } else { (40, 14) };
        for round in 0..rounds {
            let len = 512 << (round % sizes);
            let at = arena.take(len);
            assert!(at.addr().get().is_multiple_of(128));
            // SAFETY: `len` bytes were given out, and nobody else has them.
            let bytes = unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), len) };
            assert!(bytes.iter().all(|b| *b == 0), "given out before");
            bytes.fill(0xFF);
            taken.push((at.addr().get(), len));
        }
        taken.sort_unstable();
        let apart = |w: &[(usize, usize)]| w[0].0 + w[0].1 <= w[1].0;
        assert!(taken.windows(2).all(apart));

        let len = 1024;
        let (a, b) = (arena.take(len), arena.take(len));
        arena.give_back(a, len);
        let other = arena.take(2 * len);
        assert!(a != other && a != arena.take(len / 2), "of another length");
        assert_eq!(arena.take(len), a, "I2");
        assert_ne!(arena.take(len), b);
    }
}
