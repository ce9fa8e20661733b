//! Zeroed memory for arrays that every read accesses at a random index. It uses 2 MiB pages if
//! possible, so that an access does not cost a page table walk of its own.
//!
//! # Picture
//! ```text
//! Flat     one array                      | entry 0 | entry 1 | ...             the clock marks
//! Arena    many arrays, in blocks         | 512 B | 1 KiB | ... | 512 B | rest |   all page words
//! ```
//! # Invariants
//! - A1: allocated memory keeps its address and has one owner, until the `Flat` or the `Arena` is
//!   dropped or the memory is returned to the `Arena`.
//! - A2: memory returned to an `Arena` is allocated again unchanged, and only for an array of the
//!   same length. So a thread that still reads it sees a valid value.
//! # Cost
//! Untouched memory is only reserved. With huge pages, it is committed 2 MiB at a time.

use parking_lot::Mutex;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::HashMap;
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};

/// The size of a huge page, and of a block of an [`Arena`].
const BLOCK: usize = 2 << 20;

/// A type for which all bits clear is a valid value, and which needs no drop.
pub(crate) trait Zeroable {}
impl Zeroable for nfold_sync::prim::AtomicU64 {}
impl Zeroable for std::sync::atomic::AtomicU8 {}

/// Zeroed memory. It is a separate mapping for huge pages, and otherwise comes from the allocator,
/// where the read-only proof covers it.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    len: usize,
    huge: bool,
}

/// The alignment of memory that is not mapped: a cache line, and its neighbour, which the processor
/// may fetch with it.
const ALIGN: usize = 128;

fn layout(len: usize) -> Layout {
    Layout::from_size_align(len, ALIGN).expect("array sizes are far below isize::MAX")
}

impl Mapping {
    /// At least `len` zero bytes. Returns their start, which is a multiple of [`BLOCK`] with huge
    /// pages, and the object that owns them.
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
        // SAFETY: creates a private anonymous mapping; the result is checked.
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
        // SAFETY: the mapping extends one more block beyond `len`.
        let start = unsafe { base.add(base.align_offset(BLOCK)) };
        // SAFETY: advice about the new mapping; failing is harmless.
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

/// Requests 2 MiB pages for the parts of allocated memory that are as large. Its first use then
/// costs one page fault for 2 MiB, not one for 4 KiB. A refusal is harmless.
pub(crate) fn request_huge_pages<T>(memory: &[T]) {
    let start = memory.as_ptr().addr().next_multiple_of(BLOCK);
    let end = memory.as_ptr_range().end.addr() / BLOCK * BLOCK;
    // Miri does not support madvise.
    if start < end && !cfg!(miri) {
        let at = memory.as_ptr().with_addr(start).cast_mut();
        // SAFETY: the range lies inside `memory`, and the advice leaves its contents as they are.
        unsafe { libc::madvise(at.cast(), end - start, libc::MADV_HUGEPAGE) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `new` with this length and in this way. The owner hands out no reference
        // that outlives it (A1).
        unsafe {
            if self.huge {
                libc::munmap(self.base.as_ptr().cast(), self.len);
            } else {
                dealloc(self.base.as_ptr(), layout(self.len));
            }
        }
    }
}

/// An array in zeroed memory. See the module header.
pub(crate) struct Flat<T> {
    start: NonNull<T>,
    len: usize,
    _mapping: Mapping,
}

// SAFETY: it owns its memory, as a boxed slice does.
unsafe impl<T: Send> Send for Flat<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Flat<T> {}

impl<T: Zeroable> Flat<T> {
    /// An array of `len` entries with all bits clear.
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
        // SAFETY: the mapping has room for `len` entries, is aligned, and is zeroed, which is a
        // valid `T`. It lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

/// An allocator of arrays in zeroed memory. See the module header.
pub(crate) struct Arena {
    huge: bool,
    blocks: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    mappings: Vec<Mapping>,
    /// The unused rest of the newest block, from which small arrays are allocated.
    rest: Option<NonNull<u8>>,
    left: usize,
    /// The returned arrays by length.
    back: HashMap<usize, Vec<NonNull<u8>>>,
}

// SAFETY: the blocks are owned. Their unused rest and the returned arrays are accessed only under
// the mutex.
unsafe impl Send for Blocks {}

impl Arena {
    pub(crate) fn new(huge: bool) -> Arena {
        Arena {
            huge,
            blocks: Mutex::default(),
        }
    }

    /// Allocates `len` bytes, aligned to at least 128. They are zeroed, or as they were when [given
    /// back](Self::give_back). `len` must be a multiple of 128.
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
        // SAFETY: `left` was at least `len`, so this pointer is inside the block or one past its
        // end.
        blocks.rest = Some(unsafe { start.add(len) });
        start
    }

    /// The total size of all blocks in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.lock().mappings.iter().map(|m| m.len).sum()
    }

    /// Returns memory that [`take`](Self::take) allocated with this length. Other threads may
    /// continue to read it as an array of atomics.
    pub(crate) fn give_back(&self, start: NonNull<u8>, len: usize) {
        self.blocks.lock().back.entry(len).or_default().push(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    #[test]
    fn flat_array_starts_zeroed_and_keeps_values() {
        // Miri does not support madvise.
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
    fn arena_arrays_are_zeroed_and_disjoint() {
        let arena = Arena::new(false);
        let mut taken: Vec<(usize, usize)> = Vec::new();
        // Under miri, each byte takes microseconds.
        let (rounds, sizes) = if cfg!(miri) { (7, 3) } else { (40, 14) };
        for round in 0..rounds {
            let len = 512 << (round % sizes);
            let at = arena.take(len);
            assert!(at.addr().get().is_multiple_of(128));
            // SAFETY: these `len` bytes were just allocated and have no other user.
            let bytes = unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), len) };
            assert!(bytes.iter().all(|b| *b == 0), "the bytes are in use");
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
        assert!(
            a != other && a != arena.take(len / 2),
            "memory of another length"
        );
        assert_eq!(arena.take(len), a, "A2: returned memory is allocated again");
        assert_ne!(arena.take(len), b);
    }
}
