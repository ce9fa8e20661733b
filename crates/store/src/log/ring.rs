//! The log's ring buffer. It holds the log's bytes until the log thread has written them.
//!
//! # Invariants
//! - R1: a thread writes a byte only between the reservation of its range and the mark that
//!   publishes it, and only after the byte that lay there one lap earlier was written to the files.
//! - R2: the log writer reads a byte only below the horizon, so after its writer marked it.

use std::cell::UnsafeCell;

use crate::pool::flat::request_huge_pages;

pub(crate) struct Ring {
    bytes: Box<[UnsafeCell<u8>]>,
}

// SAFETY: the bytes are plain data; R1 and R2 keep accesses from different threads apart.
unsafe impl Sync for Ring {}

impl Ring {
    /// `size` must be a power of two.
    pub(crate) fn new(size: usize, huge_pages: bool) -> Ring {
        assert!(size.is_power_of_two(), "ring sizes are powers of two");
        let bytes: Box<[_]> = (0..size).map(|_| UnsafeCell::new(0)).collect();
        if huge_pages {
            request_huge_pages(&bytes);
        }
        Ring { bytes }
    }

    pub(crate) fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn pieces(&self, at: u64, len: usize) -> (usize, usize) {
        let from = at as usize & (self.bytes.len() - 1);
        assert!(
            len <= self.bytes.len(),
            "R1: a range is no longer than the ring"
        );
        (from, len.min(self.bytes.len() - from))
    }

    /// Copies `data` into the ring at log position `at`.
    ///
    /// # Safety
    /// The caller has reserved `[at, at + data.len())` and has not marked it yet, and `at +
    /// data.len()` is at most the written position plus the ring's size (R1).
    pub(crate) unsafe fn put(&self, at: u64, data: &[u8]) {
        let (from, first) = self.pieces(at, data.len());
        let base = self.bytes.as_ptr().cast::<u8>().cast_mut();
        // SAFETY: both pieces lie inside the ring (`pieces`). By the caller's promise, no other
        // thread accesses them now.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), base.add(from), first);
            std::ptr::copy_nonoverlapping(data.as_ptr().add(first), base, data.len() - first);
        }
    }

    /// Copies the bytes at log position `at` into `out`.
    ///
    /// # Safety
    /// `[at, at + out.len())` lies above the written position and below the horizon, which was
    /// loaded with Acquire (R2).
    pub(crate) unsafe fn get(&self, at: u64, out: &mut [u8]) {
        let (from, first) = self.pieces(at, out.len());
        let base = self.bytes.as_ptr().cast::<u8>();
        // SAFETY: as in `put`. The bytes are not overwritten before the caller moves the written
        // position.
        unsafe {
            std::ptr::copy_nonoverlapping(base.add(from), out.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(base, out.as_mut_ptr().add(first), out.len() - first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_wrap_around() {
        let ring = Ring::new(64, false);
        let data: Vec<u8> = (0..48).collect();
        for at in [0u64, 16, 48, 64 * 7 + 40] {
            let mut out = vec![0; 48];
            // SAFETY: only one thread uses the ring.
            unsafe {
                ring.put(at, &data);
                ring.get(at, &mut out);
            }
            assert_eq!(out, data);
        }
    }
}
