//! The end of a byte vector, held in registers while many short pieces are appended to it. The row
//! encoders write through it.
//!
//! # Picture
//! ```text
//!   |  the vector's bytes  |  written through the tail  |  spare capacity  |
//!   0                      len                          at                 end
//! ```
//! A piece is copied with a fixed size, and the tail then advances by its real length: such a copy
//! needs neither a call nor a loop, and the next piece overwrites the surplus bytes.
//!
//! `Tail<false>` grows the vector when necessary. `Tail<true>` has reserved the room in advance,
//! and checks nothing.
//!
//! # Invariants
//! - T1: `base + vec.len() <= at <= end`, and `end` is the end of the vector's allocation, whose
//!   start is `base`.
//! - T2: all bytes in `base..at` are initialised. The vector's length becomes `at - base` when the
//!   tail is dropped or grows.
//!
//! # Cost
//! One comparison a piece, with a promise none; an allocation only where the vector has to grow.
#![allow(unsafe_code)]

use crate::row::Image;
use crate::wire::{HEADER, LONG};

/// Pieces of at most this many bytes are copied without a call, if this many bytes can be read.
const SHORT: usize = 16;
const QUICK: usize = 64;
/// The longest string whose length-encoded length is one byte.
const LENGTH_BYTE_MAX: usize = 250;
/// Most bytes of a length-encoded length.
const LENGTH_MAX: usize = 9;
/// The longest string that goes out by two copies.
const LONGEST_QUICK: usize = 2 * QUICK;

/// See the module's header.
pub(crate) struct Tail<'v, const PROMISED: bool> {
    vec: &'v mut Vec<u8>,
    at: *mut u8,
    end: *mut u8,
}

/// Where the vector's spare capacity starts and ends.
#[inline(always)]
fn spare(vec: &mut Vec<u8>) -> (*mut u8, *mut u8) {
    let spare = vec.spare_capacity_mut().as_mut_ptr_range();
    (spare.start.cast(), spare.end.cast())
}

#[cold]
#[inline(never)]
fn grow(vec: &mut Vec<u8>, at: *mut u8, room: usize) -> (*mut u8, *mut u8) {
    // SAFETY: T1 (`at` is in the allocation) and T2 (everything before it is initialised).
    unsafe { vec.set_len(at.offset_from_unsigned(vec.as_ptr())) };
    vec.reserve(room);
    spare(vec)
}

impl<'v> Tail<'v, false> {
    /// A tail that appends to `vec`, with room reserved for `room` bytes. More may be appended.
    #[inline(always)]
    pub fn new(vec: &'v mut Vec<u8>, room: usize) -> Self {
        vec.reserve(room);
        let (at, end) = spare(vec);
        Tail { vec, at, end }
    }
}

/// Bytes behind a piece that it may write over, at most.
pub(crate) const OVER: usize = QUICK;

impl<'v, const PROMISED: bool> Tail<'v, PROMISED> {
    /// A tail that appends to `vec`, with room reserved for `room` bytes and [`OVER`] more.
    ///
    /// # Safety
    /// If `PROMISED`, no more than `room` bytes are appended.
    #[inline(always)]
    pub unsafe fn with_room(vec: &'v mut Vec<u8>, room: usize) -> Self {
        vec.reserve(room + OVER);
        let (at, end) = spare(vec);
        Tail { vec, at, end }
    }

    /// The length of the vector with the bytes written through the tail.
    #[inline(always)]
    pub fn len(&self) -> usize {
        (self.at as usize) - (self.vec.as_ptr() as usize)
    }

    /// Reserves `room` bytes for writing, of which all but [`OVER`] are appended.
    #[inline(always)]
    fn make_room(&mut self, room: usize) {
        let left = (self.end as usize) - (self.at as usize);
        if PROMISED {
            // The creator of the tail has promised the room for appended bytes; the `OVER` bytes
            // behind it take the surplus of fixed-size copies.
            return debug_assert!(room <= left, "T1: more than was promised");
        }
        if left < room {
            (self.at, self.end) = grow(self.vec, self.at, room);
        }
    }

    /// Appends the first `keep` of `bytes`, or all if there are fewer.
    #[inline(always)]
    pub fn put<const N: usize>(&mut self, bytes: [u8; N], keep: usize) {
        self.make_room(N);
        // SAFETY: `N` bytes from `at` on are the vector's (T1, `make_room`); the write is
        // unaligned. The bytes that the tail advances over were written (T2).
        unsafe {
            self.at.cast::<[u8; N]>().write(bytes);
            self.at = self.at.add(keep.min(N));
        }
    }

    /// As [`put`](Self::put), and lets `change` write over parts of the bytes where they lie then.
    #[inline(always)]
    pub fn put_with<const N: usize>(
        &mut self,
        bytes: [u8; N],
        keep: usize,
        change: impl FnOnce(&mut [u8; N]),
    ) {
        self.make_room(N);
        // SAFETY: as in `put`; the bytes were written before they are passed on, and are the
        // vector's, which is borrowed mutably.
        unsafe {
            let at = self.at.cast::<[u8; N]>();
            at.write(bytes);
            change(&mut *at);
            self.at = self.at.add(keep.min(N));
        }
    }

    /// Appends a byte, a minus if `negative`, and the first `keep` of the digits, or all if there
    /// are fewer.
    #[inline(always)]
    pub fn headed_number(&mut self, head: u8, negative: bool, digits: [u8; 8], keep: usize) {
        self.make_room(2 + 8);
        let digits_at = 1 + usize::from(negative);
        // SAFETY: as in `put`. The digits go over the minus where there is none.
        unsafe {
            self.at.cast::<[u8; 2]>().write([head, b'-']);
            self.at.add(digits_at).cast::<[u8; 8]>().write(digits);
            self.at = self.at.add(digits_at + keep.min(8));
        }
    }

    /// Appends `bytes`.
    #[inline(always)]
    pub fn slice(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        // SAFETY: the bytes from `at` on are the vector's (T1), which is borrowed mutably, so
        // `bytes` do not overlap them.
        unsafe {
            self.at
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    /// Appends `bytes`, which are few mostly.
    #[inline(always)]
    pub fn short_slice(&mut self, bytes: &[u8]) {
        match bytes.len() <= SHORT {
            true => self.short(bytes),
            false => self.slice(bytes),
        }
    }

    /// Appends `count` zero bytes.
    #[inline(always)]
    pub fn zeros(&mut self, mut count: usize) {
        while count > SHORT {
            self.put([0; SHORT], SHORT);
            count -= SHORT;
        }
        self.put([0; SHORT], count);
    }

    /// Appends the `len` bytes of `from` at `at`, which must all exist, as a length-encoded string.
    #[inline(always)]
    pub fn counted<'i>(&mut self, from: impl Image<'i>, at: usize, len: usize) {
        if len <= SHORT
            && let Some(bytes) = from.at::<SHORT>(at)
        {
            return self.headed(bytes, len);
        }
        if len <= QUICK
            && let Some(bytes) = from.at::<QUICK>(at)
        {
            return self.headed(bytes, len);
        }
        // Those at the end of a slice, where each row is a slice of its own, are worth a way
        // without a call.
        let in_slice = from.slice().is_some();
        let quick = match len {
            QUICK..=LONGEST_QUICK => self.in_halves::<QUICK>(from, at, len),
            4..8 if in_slice => self.in_halves::<4>(from, at, len),
            8..16 if in_slice => self.in_halves::<8>(from, at, len),
            16..32 if in_slice => self.in_halves::<16>(from, at, len),
            32..QUICK if in_slice => self.in_halves::<32>(from, at, len),
            _ => false,
        };
        if !quick {
            self.counted_exactly(from, at, len);
        }
    }

    /// As [`counted`](Self::counted), where no more than those bytes can be read, or they are many.
    #[inline(always)]
    fn counted_exactly<'i>(&mut self, from: impl Image<'i>, at: usize, len: usize) {
        let Some(bytes) = from.part(at..at.saturating_add(len)) else {
            debug_assert!(false, "the caller's duty: at least `n` bytes are there");
            return self.put([0], 1);
        };
        self.make_room(LENGTH_MAX + len);
        // SAFETY: the bytes from `at` on are the vector's (T1, `make_room`), and `write_counted`
        // wrote as many as it returns (T2).
        unsafe { self.at = self.at.add(write_counted(bytes, self.at)) };
    }

    /// As [`counted`](Self::counted), for `N` to `2 * N` bytes: two copies of known size, which
    /// overlap. False: more than those bytes would have to be read, and nothing was done.
    #[inline(always)]
    fn in_halves<'i, const N: usize>(
        &mut self,
        from: impl Image<'i>,
        at: usize,
        len: usize,
    ) -> bool {
        let before = len.saturating_sub(N).min(N);
        // One after the other: both at once would be kept in memory until it is known that both are
        // there.
        let Some(last) = from.at::<N>(at + before) else {
            return false;
        };
        let Some(first) = from.at::<N>(at) else {
            return false;
        };
        debug_assert_eq!(before + N, len, "the halves are all of the bytes");
        self.make_room(1 + before + N);
        // SAFETY: as in `put`: `1 + before + N` bytes from `at` on are the vector's, and as `before
        // <= N`, all of them are written.
        unsafe {
            self.at.write(len as u8);
            let to = self.at.add(1);
            to.cast::<[u8; N]>().write(first);
            to.add(before).cast::<[u8; N]>().write(last);
            self.at = to.add(before + N);
        }
        true
    }

    /// Appends all bytes of an image.
    #[inline(always)]
    pub fn image<'i>(&mut self, bytes: impl Image<'i>) {
        let len = bytes.len();
        self.make_room(len);
        // SAFETY: the bytes from `at` on are the vector's (T1, `make_room`), and the call writes
        // all of them (T2).
        unsafe {
            write_image(bytes, self.at);
            self.at = self.at.add(len);
        }
    }

    /// Appends the byte `keep`, and the first `keep` of `bytes`, or all if there are fewer.
    #[inline(always)]
    fn headed<const N: usize>(&mut self, bytes: [u8; N], keep: usize) {
        self.make_room(1 + N);
        // SAFETY: as in `put`.
        unsafe {
            self.at.write(keep as u8);
            let to = self.at.add(1);
            to.cast::<[u8; N]>().write(bytes);
            self.at = to.add(keep.min(N));
        }
    }

    /// Appends at most [`SHORT`] bytes: two copies of known size, which overlap.
    #[inline(always)]
    fn short(&mut self, bytes: &[u8]) {
        let len = bytes.len();
        if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            self.put(*first, len - 8);
            self.put(*last, 8);
        } else if let (Some(first), Some(last)) =
            (bytes.first_chunk::<4>(), bytes.last_chunk::<4>())
        {
            self.put(*first, len - 4);
            self.put(*last, 4);
        } else {
            let mut all = [0; 4];
            all[..len].copy_from_slice(bytes);
            self.put(all, len);
        }
    }

    /// Sets bits of byte `index` of the vector, if that is written already.
    #[inline(always)]
    pub fn set_bits(&mut self, index: usize, bits: u8) {
        let base = self.vec.as_mut_ptr();
        if index < (self.at as usize) - (base as usize) {
            // SAFETY: the byte is in the allocation and initialised (T1, T2).
            unsafe { *base.add(index) |= bits };
        }
    }
}

/// Writes a length-encoded string and returns the number of bytes written, at most [`LENGTH_MAX`]
/// more than the string has. The function takes no [`Tail`], so that the fields of the caller's
/// tail stay in registers.
///
/// # Safety
/// The caller has exclusive access to as many bytes at `to`.
#[inline(never)]
unsafe fn write_counted<'i>(bytes: impl Image<'i>, to: *mut u8) -> usize {
    let len = bytes.len();
    let [a, b, c, d, rest @ ..] = (len as u64).to_le_bytes();
    // SAFETY: the caller's; each arm writes as many bytes as it gives.
    unsafe {
        let head = if len <= LENGTH_BYTE_MAX {
            to.write(a);
            1
        } else if len <= 0xFFFF {
            to.cast::<[u8; 3]>().write([0xFC, a, b]);
            3
        } else if len <= 0xFF_FFFF {
            to.cast::<[u8; 4]>().write([0xFD, a, b, c]);
            4
        } else {
            to.cast::<[u8; 5]>().write([0xFE, a, b, c, d]);
            to.add(5).cast::<[u8; 4]>().write(rest);
            9
        };
        write_image(bytes, to.add(head));
        head + len
    }
}

/// Writes all bytes of an image.
///
/// # Safety
/// The caller has exclusive access to as many bytes at `to`.
#[inline(never)]
unsafe fn write_image<'i>(bytes: impl Image<'i>, to: *mut u8) {
    let len = bytes.len();
    if let Some(bytes) = bytes.slice() {
        // SAFETY: the caller's; as they are its alone, `bytes`, which has as many, are others.
        return unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), len) };
    }
    let mut at = 0;
    while at < len {
        let mut piece = [0; QUICK];
        let count = (len - at).min(QUICK);
        if let Some(rest) = bytes.part(at..len) {
            rest.copy_to(&mut piece);
        }
        // SAFETY: the caller's, as `at + count <= len`.
        unsafe { to.add(at).copy_from_nonoverlapping(piece.as_ptr(), count) };
        at += count;
    }
}

impl Tail<'_, true> {
    /// Reserves room for `room` bytes, and [`OVER`] more.
    ///
    /// # Safety
    /// The caller appends at most `room` bytes until the next promise. The tail must not be
    /// [passed on](Self::reborrow): if the borrower panicked after the vector has grown, the owner
    /// would still have the old pointers.
    #[inline(always)]
    pub unsafe fn promise(&mut self, room: usize) {
        let left = (self.end as usize) - (self.at as usize);
        if left < room + OVER {
            (self.at, self.end) = grow(self.vec, self.at, room + OVER);
        }
    }

    /// Begins a packet and returns the offset of its header, which counts as promised room.
    #[inline(always)]
    pub fn begin_frame(&mut self) -> usize {
        let start = self.len();
        self.put([0; HEADER], HEADER);
        start
    }

    /// Ends the packet that was begun at `start`, of less than 2^24 - 1 bytes.
    #[inline(always)]
    pub fn end_frame(&mut self, start: usize, sequence: u8) {
        let Some(len) = self.len().checked_sub(start + HEADER) else {
            return debug_assert!(false, "the caller's: a packet has a header");
        };
        debug_assert!(
            len < LONG,
            "the caller's: no longer than what is promised at once"
        );
        let header = len as u32 | u32::from(sequence) << 24;
        // SAFETY: the header's bytes at `start` were written before (T1, T2).
        unsafe {
            let at = self.vec.as_mut_ptr().add(start).cast::<[u8; HEADER]>();
            at.write(header.to_le_bytes());
        }
    }

    /// Truncates the vector, with the bytes written through the tail, to `len` bytes.
    #[inline(always)]
    pub fn back_to(&mut self, len: usize) {
        if len > self.len() {
            return;
        }
        // A cursor that was passed on has left its end in the vector.
        self.vec.truncate(len);
        // SAFETY: T1: the allocation has `len` bytes; T2: they were written.
        self.at = unsafe { self.vec.as_mut_ptr().add(len) };
    }

    /// Lets `write` write through a tail of its own, so that this one's ends need not be in memory.
    #[inline(always)]
    pub fn reborrow<R>(&mut self, write: impl FnOnce(&mut Tail<'_, true>) -> R) -> R {
        let (at, end) = (self.at, self.end);
        let vec = &mut *self.vec;
        let mut other = Tail::<true> { vec, at, end };
        let result = write(&mut other);
        (self.at, self.end) = (other.at, other.end);
        result
    }
}

impl<const PROMISED: bool> Drop for Tail<'_, PROMISED> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: T1 and T2, as in `grow`.
        unsafe {
            self.vec
                .set_len(self.at.offset_from_unsigned(self.vec.as_ptr()))
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::write_bytes;

    #[test]
    fn pieces_come_one_behind_the_other() {
        let mut out = b"before".to_vec();
        out.shrink_to_fit();
        let mut tail = Tail::new(&mut out, 1);
        tail.put(*b"abcdef", 3);
        tail.put(*b"gh", 9);
        tail.slice(b"-slice-");
        tail.zeros(19);
        tail.put_with(*b"abc.", 3, |out| out.copy_from_slice(b"end!"));
        tail.set_bits(6 + 5 + 7, 0x81);
        tail.set_bits(6 + 5 + 7 + 18, 1);
        tail.set_bits(1 << 20, 1);
        drop(tail);
        let mut expected = b"beforeabcgh-slice-\x81".to_vec();
        expected.extend([0; 17]);
        expected.extend(b"\x01end");
        assert_eq!(out, expected);
    }

    #[test]
    fn strings_have_their_length_before_them() {
        let bytes: Vec<u8> = (0..70_000u32).map(|n| (n % 251) as u8).collect();
        let short = 0..300;
        for len in short.chain([0xFFFE, 0xFFFF, 0x1_0000, 70_000]) {
            // With nothing readable behind the string, a little, and much.
            for behind in [0, 1, 15, 63, 64, 300] {
                let Some(from) = bytes.get(..len + behind) else {
                    continue;
                };
                let (mut out, mut expected) = (b"before".to_vec(), b"before".to_vec());
                let mut tail = Tail::new(&mut out, 0);
                tail.counted(from, 0, len);
                tail.put([7], 1);
                drop(tail);
                write_bytes(&from[..len], &mut expected);
                expected.push(7);
                assert_eq!(out, expected, "{len} of {}", from.len());
            }
        }
        let long = vec![7; 0x100_0001];
        let mut out = Vec::new();
        Tail::new(&mut out, 0).counted(&*long, 1, 0x100_0000);
        assert_eq!(out[..9], [0xFE, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert!(out[9..] == long[1..]);
    }
}
