//! Loads shared page bytes at any alignment by one machine instruction each, where the machine has
//! one.
//!
//! # Concurrency
//! In Rust, a plain load of bytes that another thread stores to is undefined behaviour, and an
//! atomic load must be aligned. Inline assembly is neither: to the compiler it is code that reads
//! memory, ordered with fences like any other. It returns each byte as some writer stored it. This
//! is the same guarantee that several aligned word loads give: the result counts only after the
//! page word was validated.
//!
//! # Invariants
//! - W1: the addresses lie inside a slice of words. The callers check that.

use std::mem::MaybeUninit;

#[cfg(all(target_arch = "x86_64", not(any(loom, shuttle, miri))))]
mod here {
    use std::arch::asm;
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8,
        _mm_storeu_si128,
    };

    pub const IS_HERE: bool = true;

    /// # Safety
    /// The caller guarantees that eight bytes can be read at `from`.
    #[inline(always)]
    pub unsafe fn load_8(from: *const u8) -> u64 {
        let value: u64;
        // SAFETY: the caller's guarantee; the instruction changes no flags and no memory.
        unsafe {
            asm!("mov {value}, qword ptr [{from}]", from = in(reg) from, value = lateout(reg) value,
                options(nostack, preserves_flags, readonly));
        }
        value
    }

    /// # Safety
    /// The caller guarantees that four bytes can be read at `from`.
    #[inline(always)]
    pub unsafe fn load_4(from: *const u8) -> u32 {
        let value: u32;
        // SAFETY: as in `load_8`.
        unsafe {
            asm!("mov {value:e}, dword ptr [{from}]", from = in(reg) from, value = lateout(reg) value,
                options(nostack, preserves_flags, readonly));
        }
        value
    }

    /// # Safety
    /// The caller guarantees that two bytes can be read at `from`.
    #[inline(always)]
    pub unsafe fn load_2(from: *const u8) -> u16 {
        let value: u32;
        // SAFETY: as in `load_8`.
        unsafe {
            asm!("movzx {value:e}, word ptr [{from}]", from = in(reg) from, value = lateout(reg) value,
                options(nostack, preserves_flags, readonly));
        }
        value as u16
    }

    /// # Safety
    /// The caller guarantees that the byte at `from` can be read.
    #[inline(always)]
    pub unsafe fn load_1(from: *const u8) -> u8 {
        let value: u32;
        // SAFETY: as in `load_8`.
        unsafe {
            asm!("movzx {value:e}, byte ptr [{from}]", from = in(reg) from, value = lateout(reg) value,
                options(nostack, preserves_flags, readonly));
        }
        value as u8
    }

    /// Copies 16 bytes.
    ///
    /// # Safety
    /// The caller guarantees that 16 bytes can be read at `from`, and that no other thread uses the
    /// 16 bytes at `to`.
    #[inline(always)]
    pub unsafe fn copy_16(from: *const u8, to: *mut u8) {
        let value: __m128i;
        // SAFETY: as in `load_8`, and the caller's guarantee for `to`.
        unsafe {
            asm!("movdqu {value}, xmmword ptr [{from}]", from = in(reg) from, value = lateout(xmm_reg) value,
                options(nostack, preserves_flags, readonly));
            _mm_storeu_si128(to.cast(), value);
        }
    }

    /// Whether 64 bytes are equal.
    ///
    /// # Safety
    /// The caller guarantees that 64 bytes can be read at `from`.
    #[inline(always)]
    pub unsafe fn equal_64(from: *const u8, other: &[u8; 64]) -> bool {
        let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
        let with: *const __m128i = other.as_ptr().cast();
        // SAFETY: as in `copy_16`; `other` has 64 bytes.
        unsafe {
            asm!(
                "movdqu {a}, xmmword ptr [{from}]",
                "movdqu {b}, xmmword ptr [{from} + 16]",
                "movdqu {c}, xmmword ptr [{from} + 32]",
                "movdqu {d}, xmmword ptr [{from} + 48]",
                from = in(reg) from,
                a = out(xmm_reg) a, b = out(xmm_reg) b, c = out(xmm_reg) c, d = lateout(xmm_reg) d,
                options(nostack, preserves_flags, readonly)
            );
            let a = _mm_cmpeq_epi8(a, _mm_loadu_si128(with));
            let b = _mm_cmpeq_epi8(b, _mm_loadu_si128(with.add(1)));
            let c = _mm_cmpeq_epi8(c, _mm_loadu_si128(with.add(2)));
            let d = _mm_cmpeq_epi8(d, _mm_loadu_si128(with.add(3)));
            let all = _mm_and_si128(_mm_and_si128(a, b), _mm_and_si128(c, d));
            _mm_movemask_epi8(all) == 0xFFFF
        }
    }

    /// Copies 64 bytes.
    ///
    /// # Safety
    /// As for [`copy_16`], for 64 bytes.
    #[inline(always)]
    pub unsafe fn copy_64(from: *const u8, to: *mut u8) {
        let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
        // SAFETY: as in `copy_16`.
        unsafe {
            asm!(
                "movdqu {a}, xmmword ptr [{from}]",
                "movdqu {b}, xmmword ptr [{from} + 16]",
                "movdqu {c}, xmmword ptr [{from} + 32]",
                "movdqu {d}, xmmword ptr [{from} + 48]",
                from = in(reg) from,
                a = out(xmm_reg) a, b = out(xmm_reg) b, c = out(xmm_reg) c, d = lateout(xmm_reg) d,
                options(nostack, preserves_flags, readonly)
            );
            _mm_storeu_si128(to.cast(), a);
            _mm_storeu_si128(to.add(16).cast(), b);
            _mm_storeu_si128(to.add(32).cast(), c);
            _mm_storeu_si128(to.add(48).cast(), d);
        }
    }

    /// Whether [`copy_long`] is fast: the processor copies strings by whole lines.
    #[inline]
    pub fn copies_long_fast() -> bool {
        is_x86_feature_detected!("ermsb")
    }

    /// Copies `len` bytes by one instruction. It takes a while to start, and then reads memory that
    /// no cache holds faster than a loop of loads.
    ///
    /// # Safety
    /// As for [`copy_16`], for `len` bytes.
    #[inline]
    pub unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller's guarantee; the direction flag is clear, as the ABI says.
        unsafe {
            asm!("rep movsb", inout("rsi") from => _, inout("rdi") to => _, inout("rcx") len => _,
                options(nostack, preserves_flags));
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(any(loom, shuttle, miri)))))]
mod here {
    //! Placeholders without wide loads: callers check [`IS_HERE`] first, and use word loads
    //! instead.
    pub const IS_HERE: bool = false;

    pub unsafe fn load_8(_: *const u8) -> u64 {
        unreachable!("this machine has no wide loads")
    }
    pub unsafe fn load_4(_: *const u8) -> u32 {
        unreachable!("this machine has no wide loads")
    }
    pub unsafe fn load_2(_: *const u8) -> u16 {
        unreachable!("this machine has no wide loads")
    }
    pub unsafe fn load_1(_: *const u8) -> u8 {
        unreachable!("this machine has no wide loads")
    }
    pub unsafe fn copy_16(_: *const u8, _: *mut u8) {
        unreachable!("this machine has no wide loads")
    }
    pub unsafe fn copy_64(_: *const u8, _: *mut u8) {
        unreachable!("this machine has no wide loads")
    }
    pub unsafe fn equal_64(_: *const u8, _: &[u8; 64]) -> bool {
        unreachable!("this machine has no wide loads")
    }
    pub fn copies_long_fast() -> bool {
        false
    }
    pub unsafe fn copy_long(_: *const u8, _: *mut u8, _: usize) {
        unreachable!("this machine has no wide loads")
    }
}

pub(super) use here::{IS_HERE, copies_long_fast, copy_long, equal_64, load_2, load_4, load_8};

/// Loads `N` bytes: 1, 2, 4, 8, or a multiple of 16.
///
/// # Safety
/// The caller guarantees that `N` bytes can be read at `from`.
#[inline(always)]
pub(super) unsafe fn load<const N: usize>(from: *const u8) -> [u8; N] {
    let mut out = MaybeUninit::<[u8; N]>::uninit();
    let to = out.as_mut_ptr().cast::<u8>();
    // SAFETY: the caller's guarantee. Each arm reads `N` bytes at `from` and writes `N` bytes, so
    // all of `out` is initialised.
    unsafe {
        match N {
            1 => to.write(here::load_1(from)),
            2 => to.cast::<[u8; 2]>().write(load_2(from).to_ne_bytes()),
            4 => to.cast::<[u8; 4]>().write(load_4(from).to_ne_bytes()),
            8 => to.cast::<[u8; 8]>().write(load_8(from).to_ne_bytes()),
            _ => {
                const { assert!(N < 16 && N.is_power_of_two() || N.is_multiple_of(16)) };
                copy(from, to, N);
            }
        }
        out.assume_init()
    }
}

/// A copy by [`copy`] is rounded up to a multiple of this many bytes, at the source and at the
/// target.
pub(super) const OVER: usize = 16;

/// The number of bytes that [`copy_pieces`] copies per step.
pub(super) const PIECE: usize = 64;

/// Copies `len` bytes, a multiple of [`PIECE`].
///
/// # Safety
/// The caller guarantees that `len` bytes can be read at `from`, and that no other thread uses the
/// `len` bytes at `to`.
#[inline(always)]
pub(super) unsafe fn copy_pieces(from: *const u8, to: *mut u8, len: usize) {
    let mut at = 0;
    while at < len {
        // SAFETY: the caller's guarantee, as `at` and `len` are multiples of `PIECE`.
        unsafe { here::copy_64(from.add(at), to.add(at)) };
        at += PIECE;
    }
}

/// Copies `len` bytes in steps of 16 or 64 bytes. It reads and writes up to `OVER - 1` bytes beyond
/// `len`.
///
/// # Safety
/// The caller guarantees that `len`, rounded up to a multiple of [`OVER`], bytes can be read at
/// `from`, and that no other thread uses as many bytes at `to`.
#[inline(always)]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    let mut at = 0;
    while at + 64 <= len {
        // SAFETY: the caller's guarantee, as `at + 64 <= len`.
        unsafe { here::copy_64(from.add(at), to.add(at)) };
        at += 64;
    }
    while at < len {
        // SAFETY: the caller's guarantee, as `at` is a multiple of `OVER` below `len`.
        unsafe { here::copy_16(from.add(at), to.add(at)) };
        at += OVER;
    }
}
