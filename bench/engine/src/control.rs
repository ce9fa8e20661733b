//! What the machine itself can do in the same minutes: the bars that figures of a shared machine
//! are read against.

use std::hint::black_box;
use std::time::Instant;

use crate::data::{Rng, VALUE};
use crate::work::{Length, Sample, on_threads};

/// Bytes that each thread chases pointers over: far more than a cache.
const CHASE_BYTES: usize = 128 << 20;
/// How many rows of a gather are prefetched before they are copied.
const AHEAD: usize = 16;
/// Bytes between rows of a gather.
const STRIDE: usize = 128;

/// Memory in 2 MiB pages where the system gives them, as Nfold's pool has it.
struct Huge<T> {
    at: *mut T,
    len: usize,
}

// SAFETY: owns plain memory, as a `Vec` does.
unsafe impl<T: Send> Send for Huge<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Sync> Sync for Huge<T> {}

impl<T: Copy> Huge<T> {
    /// Zeroed; `T` is a plain number.
    fn new(len: usize) -> Huge<T> {
        // SAFETY: a private anonymous mapping, checked below; zeroes are valid numbers.
        let at = unsafe {
            let at = libc::mmap(
                std::ptr::null_mut(),
                len * size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(at, libc::MAP_FAILED, "no memory");
            libc::madvise(at, len * size_of::<T>(), libc::MADV_HUGEPAGE);
            at.cast::<T>()
        };
        Huge { at, len }
    }

    fn slice(&self) -> &[T] {
        // SAFETY: the mapping has `len` elements and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }

    fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `slice`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }
}

impl<T> Drop for Huge<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, unmapped once.
        unsafe { libc::munmap(self.at.cast(), self.len * size_of::<T>()) };
    }
}

/// A private cycle of pointers for each thread: what two threads can do that share nothing.
pub struct Chase(Vec<Huge<u32>>);

impl Chase {
    pub fn new(threads: usize) -> Chase {
        let cycle = |seed| {
            let mut next = Huge::new(CHASE_BYTES / 4);
            let slots: &mut [u32] = next.slice_mut();
            slots
                .iter_mut()
                .enumerate()
                .for_each(|(i, s)| *s = i as u32);
            let mut rng = Rng::new(seed);
            // Sattolo: one cycle over all slots.
            for i in (1..slots.len()).rev() {
                slots.swap(i, rng.below(i as u64) as usize);
            }
            next
        };
        Chase((0..threads as u64).map(cycle).collect())
    }

    /// Hops of all threads together.
    pub fn run(&self, threads: usize, length: Length) -> Sample {
        on_threads(threads, length, |n| {
            let next = self.0[n].slice();
            let mut at = 0;
            move || {
                for _ in 0..64 {
                    at = next[at as usize];
                }
                black_box(at);
                64
            }
        })
    }
}

/// Rows in one flat array, copied out at random with prefetches ahead: no engine can be faster.
pub struct Gather(Huge<u8>);

impl Gather {
    pub fn new(rows: u64) -> Gather {
        let mut all = Huge::new(rows as usize * STRIDE);
        all.slice_mut()
            .chunks_exact_mut(STRIDE)
            .for_each(|row| row[0] = 1);
        Gather(all)
    }

    /// Nanoseconds for each of `batch` random rows.
    pub fn ns_per_row(&self, batch: usize, seconds: f64) -> f64 {
        let (rows, mut rng) = (self.0.len / STRIDE, Rng::new(7));
        let memory = self.0.slice();
        let (mut wanted, mut out) = (vec![0; batch], Vec::with_capacity(batch * VALUE));
        let (mut spent, mut done) = (0.0, 0);
        while spent < seconds {
            wanted.fill_with(|| rng.below(rows as u64) as usize * STRIDE);
            let begun = Instant::now();
            out.clear();
            for i in 0..batch {
                if let Some(&at) = wanted.get(i + AHEAD) {
                    prefetch(&memory[at]);
                    prefetch(&memory[at + STRIDE / 2]);
                }
                out.extend_from_slice(&memory[wanted[i]..wanted[i] + VALUE]);
            }
            black_box(&out);
            spent += begun.elapsed().as_secs_f64();
            done += batch;
        }
        spent * 1e9 / done as f64
    }
}

#[inline(always)]
fn prefetch(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect on memory.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
            std::ptr::from_ref(byte).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}
