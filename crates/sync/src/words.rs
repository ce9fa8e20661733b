//! Access to shared page bytes as relaxed, little-endian 64-bit words. All reads and writes of page
//! bytes go through this module.
//!
//! # Picture
//! ```text
//! words   |   word 0      |   word 1      | ...     a page is 2048 of them
//! bytes    0 1 2 3 4 5 6 7 8 9 ...                  byte b is bits 8*(b%8).. of word b/8
//! ```
//! # Invariants
//! - I1: page bytes are written only as whole aligned `AtomicU64`. They are read as such, or by
//!   machine instructions ([`wide`]). So races are defined behaviour: a reader sees each byte as
//!   some writer stored it.
//! - I2: no function panics or reads outside the slice, for any offset or length that the caller
//!   passes. Optimistic readers pass numbers that they have not validated yet. Bytes outside the
//!   slice read as zero.
//! # Concurrency
//! All loads and stores are relaxed. The page word orders them: see [`crate::page_word`]. Only the
//! holder of the exclusive latch may call functions that store.
//! # Cost
//! Only the `append_*` functions can allocate, as they append to the caller's vector.

use crate::prim::{AtomicU64, Ordering::Relaxed, point};
use std::cmp::Ordering;

mod span;
mod wide;

pub use span::Span;

/// A pointer to the `N` bytes at `off`. `None` if they are not all inside the slice, or if this
/// machine has no wide loads.
#[inline(always)]
fn whole<const N: usize>(words: &[AtomicU64], off: usize) -> Option<*const u8> {
    let last = (words.len() * 8).wrapping_sub(N);
    let inside = wide::IS_HERE && off <= last && words.len() * 8 >= N;
    // SAFETY: the offset is inside the slice.
    inside.then(|| unsafe { words.as_ptr().cast::<u8>().add(off) })
}

#[inline(always)]
fn word(words: &[AtomicU64], index: usize) -> u64 {
    match words.get(index) {
        Some(w) => w.load(Relaxed),
        None => 0,
    }
}

/// The 8 bytes at `off`, any alignment; bytes outside are 0.
#[inline(always)]
pub fn load_u64(words: &[AtomicU64], off: usize) -> u64 {
    if let Some(from) = whole::<8>(words, off) {
        // SAFETY: wide::W1.
        return u64::from_le(unsafe { wide::load_8(from) });
    }
    load_across(words, off)
}

/// Returns [`load_u16`] at `low` and [`load_u64`] at `low + ahead - 8`, `low + ahead` and `low +
/// ahead + 8`.
#[inline(always)]
pub fn load_u16_and_3_u64(words: &[AtomicU64], low: u32, ahead: u32) -> (u16, [u64; 3]) {
    let (low, middle) = (low as usize, low as usize + ahead as usize);
    if let Some(from) = whole::<24>(words, middle.wrapping_sub(8)) {
        let low = words.as_ptr().cast::<u8>().wrapping_add(low);
        // SAFETY: wide::W1; all 24 bytes are inside, and so are the two bytes at `low`, because
        // `low` is not behind the second word.
        return unsafe {
            let low = u16::from_le(wide::load_2(low));
            let all = [0, 8, 16].map(|at| u64::from_le(wide::load_8(from.add(at))));
            (low, all)
        };
    }
    let before = match middle.checked_sub(8) {
        Some(before) => load_u64(words, before),
        // Bytes before the page read as zero, too.
        None => load_u64(words, 0).unbounded_shl(8 * (8 - middle as u32)),
    };
    let all = [
        before,
        load_u64(words, middle),
        load_u64(words, middle.saturating_add(8)),
    ];
    (load_u16(words, low), all)
}

/// [`load_u64`] word by word.
#[cfg_attr(all(target_arch = "x86_64", not(any(loom, shuttle, miri))), cold)]
fn load_across(words: &[AtomicU64], off: usize) -> u64 {
    let (index, shift) = (off / 8, (off % 8) * 8);
    let low = word(words, index);
    if shift == 0 {
        return low;
    }
    (low >> shift) | (word(words, index.wrapping_add(1)) << (64 - shift))
}

/// The 4 bytes at `off`, any alignment; bytes outside are 0.
#[inline(always)]
pub fn load_u32(words: &[AtomicU64], off: usize) -> u32 {
    point();
    if let Some(from) = whole::<4>(words, off) {
        // SAFETY: wide::W1.
        return u32::from_le(unsafe { wide::load_4(from) });
    }
    let (index, shift) = (off / 8, (off % 8) * 8);
    let low = word(words, index) >> shift;
    if shift <= 32 {
        return low as u32;
    }
    (low | (word(words, index.wrapping_add(1)) << (64 - shift))) as u32
}

/// The 2 bytes at `off`, any alignment; bytes outside are 0.
#[inline(always)]
pub fn load_u16(words: &[AtomicU64], off: usize) -> u16 {
    point();
    if let Some(from) = whole::<2>(words, off) {
        // SAFETY: wide::W1.
        return u16::from_le(unsafe { wide::load_2(from) });
    }
    let (index, shift) = (off / 8, (off % 8) * 8);
    let low = word(words, index) >> shift;
    if shift <= 48 {
        return low as u16;
    }
    (low | (word(words, index.wrapping_add(1)) << 8)) as u16
}

/// Sixteen little-endian 4-byte integers at `off`, a multiple of 8; bytes outside are 0.
#[inline(always)]
pub fn load_16_u32(words: &[AtomicU64], off: usize) -> [u32; 16] {
    if let Some(from) = whole::<64>(words, off) {
        let mut out = [0; 16];
        // SAFETY: wide::W1; the array has 64 bytes.
        unsafe { wide::copy(from, out.as_mut_ptr().cast(), 64) };
        return out.map(u32::from_le);
    }
    std::array::from_fn(|i| (word(words, off / 8 + i / 2) >> (32 * (i % 2))) as u32)
}

/// The byte at `off`, 0 outside.
#[inline(always)]
pub fn load_u8(words: &[AtomicU64], off: usize) -> u8 {
    (word(words, off / 8) >> ((off % 8) * 8)) as u8
}

/// Copies the bytes at `off` into `out`, and zero-fills the part that lies outside.
#[inline]
pub fn copy_out(words: &[AtomicU64], off: usize, out: &mut [u8]) {
    point();
    if wide::IS_HERE {
        let (chunks, rest) = out.as_chunks_mut::<8>();
        let mut at = off;
        for chunk in chunks {
            *chunk = load_u64(words, at).to_le_bytes();
            at = at.saturating_add(8);
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&load_u64(words, at).to_le_bytes()[..rest.len()]);
        }
        return;
    }
    let (index, shift) = (off / 8, (off % 8) * 8);
    let Some((first, rest)) = words.get(index..).and_then(|w| w.split_first()) else {
        out.fill(0);
        return;
    };
    // Whole output words first: one load each, and no bounds checks, because the iterators end
    // together.
    let mut current = first.load(Relaxed);
    let mut following = rest.iter();
    let mut chunks = out.chunks_exact_mut(8);
    for (chunk, word) in chunks.by_ref().zip(following.by_ref()) {
        let next = word.load(Relaxed);
        let high = if shift == 0 { 0 } else { next << (64 - shift) };
        chunk.copy_from_slice(&((current >> shift) | high).to_le_bytes());
        current = next;
    }
    // The rest: less than a word, or the bytes at the page's end.
    let mut done = out.len() - out.len() % 8;
    done = done.min((words.len() - index - 1) * 8);
    while done < out.len() {
        let n = (out.len() - done).min(8);
        let value = load_u64(words, off + done);
        out[done..done + n].copy_from_slice(&value.to_le_bytes()[..n]);
        done += n;
    }
}

/// Appends `[off, off + len)` to `out`, clamped: bytes outside are not appended.
#[inline]
pub fn append_out(words: &[AtomicU64], off: usize, len: usize, out: &mut Vec<u8>) {
    point();
    let total = words.len() * 8;
    if off >= total {
        return;
    }
    let len = len.min(total - off);
    if append_wide(words, off, len, out) {
        // SAFETY: `len` bytes behind the vector's length were written, within its capacity.
        unsafe { out.set_len(out.len() + len) };
        return;
    }
    let count = len.div_ceil(8);
    // The loop writes whole words; the last one may extend past the end.
    out.reserve(count * 8);
    let to = out.spare_capacity_mut().as_mut_ptr().cast::<u64>();
    let (index, shift) = (off / 8, (off % 8) * 8);
    let mut current = word(words, index);
    for i in 0..count {
        let next = word(words, index + i + 1);
        // The shift is split in two, because a shift by 64 would overflow.
        let value = (current >> shift) | ((next << 1) << (63 - shift));
        // SAFETY: `i < count`, and `count` words of spare capacity were reserved; the write is
        // unaligned.
        unsafe { to.add(i).write_unaligned(value.to_le()) };
        current = next;
    }
    // SAFETY: the loop has written `count * 8 >= len` bytes behind the vector's length, within its
    // capacity.
    unsafe { out.set_len(out.len() + len) };
}

/// Bytes from which on [`append_long`] and [`copy_page`] have a copy of their own.
const LONG: usize = 4096;

/// As [`append_out`], but faster for several KiB.
pub fn append_long(words: &[AtomicU64], off: usize, len: usize, out: &mut Vec<u8>) {
    let total = words.len() * 8;
    let is_inside = off <= total && len <= total - off;
    if !is_inside || len < LONG || !wide::copies_long_fast() {
        return append_out(words, off, len, out);
    }
    point();
    out.reserve(len);
    let to = out.spare_capacity_mut().as_mut_ptr().cast();
    // SAFETY: `[off, off + len)` is inside the slice (wide::W1), and `len` bytes were reserved.
    unsafe {
        wide::copy_long(words.as_ptr().cast::<u8>().add(off), to, len);
        out.set_len(out.len() + len);
    }
}

/// As [`copy_out`] from the start of the page, but faster for several KiB.
pub fn copy_page(words: &[AtomicU64], out: &mut [u8]) {
    if out.len() > words.len() * 8 || out.len() < LONG || !wide::copies_long_fast() {
        return copy_out(words, 0, out);
    }
    point();
    // SAFETY: the bytes are inside the slice (wide::W1), and `out` has as many.
    unsafe { wide::copy_long(words.as_ptr().cast(), out.as_mut_ptr(), out.len()) };
}

/// As [`append_out`], but without a loop if `len` is at most `16 * N`.
#[inline(always)]
pub fn append_short<const N: usize>(
    words: &[AtomicU64],
    off: usize,
    len: usize,
    out: &mut Vec<u8>,
) {
    let room = wide::OVER * N;
    let last = (words.len() * 8).saturating_sub(room);
    if !wide::IS_HERE || len > room || off > last || words.len() * 8 < room {
        return append_out(words, off, len, out);
    }
    out.reserve(room);
    let to = out.spare_capacity_mut().as_mut_ptr().cast();
    // SAFETY: `room` bytes from `off` on are inside the slice (wide::W1), and `room` bytes were
    // reserved. `len <= room` of them are kept.
    unsafe {
        wide::copy(words.as_ptr().cast::<u8>().add(off), to, room);
        out.set_len(out.len() + len);
    }
}

/// Writes `[off, off + len)`, which must be inside the page, into the spare capacity of `out`; the
/// vector's length stays. The copy is rounded up to a multiple of [`wide::OVER`] bytes. False: the
/// machine has no wide loads.
#[inline(always)]
fn append_wide(words: &[AtomicU64], off: usize, len: usize, out: &mut Vec<u8>) -> bool {
    if !wide::IS_HERE {
        return false;
    }
    let rounded = len.next_multiple_of(wide::OVER);
    out.reserve(rounded);
    let to: *mut u8 = out.spare_capacity_mut().as_mut_ptr().cast();
    // SAFETY: `rounded` bytes were reserved. `[off, off + len)` is inside the slice, so `len` bytes
    // can be read there (wide::W1), and `rounded` ones where these are inside as well.
    unsafe {
        match rounded > words.len() * 8 - off {
            true => copy_at_end(words, off, len, to),
            false => wide::copy(words.as_ptr().cast::<u8>().add(off), to, len),
        }
    }
    true
}

/// Copies `[off, off + len)`, which must be inside the page, where the rounded copy would pass the
/// end of the page: the last bytes are loaded word by word.
///
/// # Safety
/// `len`, rounded up to a multiple of [`wide::OVER`], bytes can be written at `to`.
#[cold]
#[inline(never)]
unsafe fn copy_at_end(words: &[AtomicU64], off: usize, len: usize, to: *mut u8) {
    let wide_len = len - len % wide::OVER;
    // SAFETY: `wide_len` is a multiple of `OVER` and at most `len`: that many bytes from `off` on
    // are inside the slice (wide::W1), and the caller lets as many be written.
    unsafe { wide::copy(words.as_ptr().cast::<u8>().add(off), to, wide_len) };
    let mut at = wide_len;
    while at < len {
        let word = load_u64(words, off + at).to_le_bytes();
        // SAFETY: `at` is below `len` and a multiple of 8, so the word ends within the rounded
        // bytes that the caller lets be written; bytes need no alignment.
        unsafe { to.add(at).cast::<[u8; 8]>().write(word) };
        at += 8;
    }
}

/// Appends words that contain `[off, off + len)`, clamped to the page. Returns the offset in `out`
/// of the first byte, and the number of bytes. If the length of `out` was a multiple of 8 before,
/// it is afterwards.
///
/// This is the fastest copy in this module, because it shifts nothing.
#[inline(always)]
pub fn append_words(
    words: &[AtomicU64],
    off: usize,
    len: usize,
    out: &mut Vec<u8>,
) -> (usize, usize) {
    let start = out.len();
    // The copy runs in pieces of 64 bytes. The last piece may extend past the end of the bytes, but
    // not of the page.
    let (room, total) = (rounded_up::<{ wide::PIECE }>(len), words.len() * 8);
    if wide::IS_HERE && len <= LENGTH_MAX && off <= total && room <= total - off {
        out.reserve(room);
        let to = out.spare_capacity_mut().as_mut_ptr().cast();
        // SAFETY: `room` bytes from `off` on are inside the slice (wide::W1), and `room` bytes were
        // reserved. The bytes that are kept, rounded up to whole words, are among them.
        unsafe {
            wide::copy_pieces(words.as_ptr().cast::<u8>().add(off), to, room);
            out.set_len(start + rounded_up::<8>(len));
        }
        return (start, len);
    }
    append_at_end(words, off, len, out)
}

/// The largest length that a value can have. A longer one was read before validation and is
/// garbage.
const LENGTH_MAX: usize = u32::MAX as usize;

/// Rounds `len`, at most [`LENGTH_MAX`], up to a multiple of `N`, a power of two.
#[inline(always)]
fn rounded_up<const N: usize>(len: usize) -> usize {
    len.wrapping_add(N - 1) & !(N - 1)
}

/// [`append_words`] for bytes near the page's end or behind it.
#[cfg_attr(all(target_arch = "x86_64", not(any(loom, shuttle, miri))), cold)]
fn append_at_end(words: &[AtomicU64], off: usize, len: usize, out: &mut Vec<u8>) -> (usize, usize) {
    let total = words.len() * 8;
    let off = off.min(total);
    let len = len.min(total - off);
    let start = out.len();
    if append_wide(words, off, len, out) {
        // SAFETY: `append_wide` wrote that many bytes behind the vector's length, within its
        // capacity.
        unsafe { out.set_len(start + len.next_multiple_of(8)) };
        return (start, len);
    }
    append_whole_words(words, off, len, out)
}

/// [`append_words`] word by word, for bytes that are inside the page.
#[cfg_attr(all(target_arch = "x86_64", not(any(loom, shuttle, miri))), cold)]
fn append_whole_words(
    words: &[AtomicU64],
    off: usize,
    len: usize,
    out: &mut Vec<u8>,
) -> (usize, usize) {
    let start = out.len();
    let source = &words[off / 8..(off + len).div_ceil(8)];
    out.reserve(source.len() * 8);
    let to = out.spare_capacity_mut().as_mut_ptr().cast::<u64>();
    let (chunks, rest) = source.as_chunks::<8>();
    let mut at = 0;
    for chunk in chunks {
        // SAFETY: the chunks are disjoint parts of `source`, whose length was reserved; the writes
        // are unaligned.
        let to = unsafe { to.add(at) };
        for (i, word) in chunk.iter().enumerate() {
            // SAFETY: as above.
            unsafe { to.add(i).write_unaligned(word.load(Relaxed).to_le()) };
        }
        at += 8;
    }
    for word in rest {
        // SAFETY: as above.
        unsafe { to.add(at).write_unaligned(word.load(Relaxed).to_le()) };
        at += 1;
    }
    // SAFETY: `source.len()` words were written behind the vector's length, within its capacity.
    unsafe { out.set_len(start + source.len() * 8) };
    (start + off % 8, len)
}

/// Compares `[off, off + len)` with `other` as `memcmp` does, the shorter first when one is a
/// prefix of the other. Bytes outside count as absent.
#[inline]
pub fn compare(words: &[AtomicU64], off: usize, len: usize, other: &[u8]) -> Ordering {
    point();
    let total = words.len() * 8;
    let len = len.min(total.saturating_sub(off));
    let common = len.min(other.len());
    let mut at = 0;
    while at + 8 <= common {
        let a = load_u64(words, off + at).swap_bytes();
        let mut chunk = [0u8; 8];
        chunk.copy_from_slice(&other[at..at + 8]);
        let b = u64::from_be_bytes(chunk);
        if a != b {
            return a.cmp(&b);
        }
        at += 8;
    }
    if at < common {
        let n = common - at;
        let mut chunk = [0u8; 8];
        chunk[..n].copy_from_slice(&other[at..common]);
        let keep = !0u64 << (64 - 8 * n);
        let a = load_u64(words, off + at).swap_bytes() & keep;
        let b = u64::from_be_bytes(chunk);
        if a != b {
            return a.cmp(&b);
        }
    }
    len.cmp(&other.len())
}

/// Whether the bytes from `off` on are `other`. Bytes outside count as absent.
pub fn equal(words: &[AtomicU64], off: usize, other: &[u8]) -> bool {
    let (pieces, rest) = other.as_chunks::<{ wide::PIECE }>();
    let whole = pieces.len() * wide::PIECE;
    if !wide::IS_HERE || off.saturating_add(whole) > words.len() * 8 {
        return compare(words, off, other.len(), other).is_eq();
    }
    point();
    let from = words.as_ptr().cast::<u8>();
    let is_equal = |(at, piece): (usize, &[u8; wide::PIECE])| {
        // SAFETY: `whole` bytes from `off` on are inside the slice (wide::W1).
        unsafe { wide::equal_64(from.add(off + at * wide::PIECE), piece) }
    };
    let begin_equal = pieces.iter().enumerate().all(is_equal);
    begin_equal && compare(words, off + whole, rest.len(), rest).is_eq()
}

/// Prefetches the cache line that holds byte `off`.
#[inline(always)]
pub fn prefetch(words: &[AtomicU64], off: usize) {
    if let Some(w) = words.get(off / 8) {
        prefetch_line(w);
    }
}

/// Prefetches the cache line where `what` begins.
#[inline(always)]
pub fn prefetch_line<T>(what: &T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: a prefetch has no effect on memory, and a reference leads to mapped memory.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
            std::ptr::from_ref(what).cast(),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = what;
}

/// Prefetches the cache lines of `[off, off + len)` that are inside the page.
#[inline(always)]
pub fn prefetch_range(words: &[AtomicU64], off: usize, len: usize) {
    for at in (off..off + len).step_by(64) {
        prefetch(words, at);
    }
    prefetch(words, (off + len).saturating_sub(1));
}

/// As [`prefetch_line`], but into the second-level cache, for many lines in a row. The first level
/// has few fill buffers, and a prefetch beyond those stalls.
#[inline(always)]
pub fn prefetch_line_outer<T>(what: &T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: a prefetch has no effect on memory, and a reference leads to mapped memory.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(
            std::ptr::from_ref(what).cast(),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = what;
}

/// As [`prefetch_line_outer`], for the line of byte `off`. An offset outside the page is ignored.
#[inline(always)]
pub fn prefetch_outer(words: &[AtomicU64], off: usize) {
    if off < words.len() * 8 {
        // SAFETY: the offset is inside the slice.
        prefetch_line_outer(unsafe { &*words.as_ptr().cast::<u8>().add(off) });
    }
}

/// [`prefetch_line_outer`] for every line of a value.
#[inline(always)]
pub fn prefetch_value<T>(what: &T) {
    let bytes = std::ptr::from_ref(what).cast::<u8>();
    for at in (0..size_of::<T>()).step_by(64) {
        // SAFETY: the offset is inside the value.
        prefetch_line_outer(unsafe { &*bytes.add(at) });
    }
}

/// Stores `bytes` at `off`; bytes outside the page are dropped. The caller holds the exclusive
/// latch.
pub fn store_bytes(words: &[AtomicU64], off: usize, bytes: &[u8]) {
    point();
    let total = words.len() * 8;
    if off >= total {
        return;
    }
    let bytes = &bytes[..bytes.len().min(total - off)];
    let from = off % 8;
    let (head, rest) = bytes.split_at(if from == 0 {
        0
    } else {
        (8 - from).min(bytes.len())
    });
    let mut words = &words[off / 8..];
    if !head.is_empty() {
        merge(&words[0], from, head);
        words = &words[1..];
    }
    let (whole, tail) = rest.as_chunks::<8>();
    for (w, bytes) in words.iter().zip(whole) {
        w.store(u64::from_le_bytes(*bytes), Relaxed);
    }
    if !tail.is_empty() {
        merge(&words[whole.len()], 0, tail);
    }
}

/// Stores bytes into part of one word.
#[inline]
fn merge(word: &AtomicU64, from: usize, bytes: &[u8]) {
    let mut buf = word.load(Relaxed).to_le_bytes();
    buf[from..from + bytes.len()].copy_from_slice(bytes);
    word.store(u64::from_le_bytes(buf), Relaxed);
}

/// Stores a little-endian 8-byte integer at `off`. The caller holds the exclusive latch.
#[inline]
pub fn store_u64(words: &[AtomicU64], off: usize, value: u64) {
    point();
    if off.is_multiple_of(8) {
        if let Some(w) = words.get(off / 8) {
            w.store(value, Relaxed);
        }
        return;
    }
    store_bytes(words, off, &value.to_le_bytes());
}

/// Moves `len` bytes inside the page, clamped on both sides; the ranges may overlap. The caller
/// holds the exclusive latch.
pub fn move_within(words: &[AtomicU64], from: usize, to: usize, len: usize) {
    let total = words.len() * 8;
    let len = len
        .min(total.saturating_sub(from))
        .min(total.saturating_sub(to));
    if len == 0 {
        return;
    }
    if (from | to | len).is_multiple_of(8) {
        return move_words(words, from / 8, to / 8, len / 8);
    }
    let mut buf = [0u8; 256];
    if to < from {
        let mut at = 0;
        while at < len {
            let n = buf.len().min(len - at);
            copy_out(words, from + at, &mut buf[..n]);
            store_bytes(words, to + at, &buf[..n]);
            at += n;
        }
    } else if to > from {
        let mut left = len;
        while left > 0 {
            let n = buf.len().min(left);
            left -= n;
            copy_out(words, from + left, &mut buf[..n]);
            store_bytes(words, to + left, &buf[..n]);
        }
    }
}

/// Moves whole words, all of which must be on the page.
fn move_words(words: &[AtomicU64], from: usize, to: usize, len: usize) {
    point();
    let copy = |(to, from): (&AtomicU64, &AtomicU64)| to.store(from.load(Relaxed), Relaxed);
    let (source, target) = (&words[from..from + len], &words[to..to + len]);
    if to < from {
        target.iter().zip(source).for_each(copy);
    } else {
        target.iter().zip(source).rev().for_each(copy);
    }
}

/// Zeroes `[off, off + len)`, clamped to the page. The caller holds the exclusive latch.
pub fn fill_zero(words: &[AtomicU64], off: usize, len: usize) {
    let total = words.len() * 8;
    if off >= total {
        return;
    }
    let end = off + len.min(total - off);
    let whole = off.div_ceil(8)..end / 8;
    if whole.start > whole.end {
        return store_bytes(words, off, &[0u8; 8][..end - off]);
    }
    store_bytes(words, off, &[0u8; 8][..whole.start * 8 - off]);
    words[whole.clone()]
        .iter()
        .for_each(|w| w.store(0, Relaxed));
    store_bytes(words, whole.end * 8, &[0u8; 8][..end % 8]);
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
