//! Loads from shared page bytes at any alignment by one instruction each, where the machine has it.
//!
//! # Concurrency
//! A plain load of bytes that somebody stores to is undefined behaviour in Rust, and an atomic one must be aligned. An instruction of the machine is
//! neither: to the compiler it is a piece of code that reads memory, ordered with fences like any other. What it gives is whatever bytes were there, each as some
//! writer stored it. That is as much as several aligned words give, and as little: it counts once the page word was validated.
//!
//! # Invariants
//! - W1: the addresses lie inside a slice of words. The callers check that.

use std::mem::MaybeUninit;

#[cfg(all(target_arch = "x86_64", not(any(loom, shuttle, miri))))]
mod here {
    use std::arch::asm;
    use std::arch::x86_64::{__m128i, _mm_storeu_si128};

    pub const IS_HERE: bool = true;

    /// # Safety
    /// Eight bytes from `from` on can be read.
    #[inline(always)]
    pub unsafe fn load_8(from: *const u8) -> u64 {
        let value: u64;
        // SAFETY: the caller's; the instruction changes no flags and no memory.
        unsafe {
            asm!("mov {value}, qword ptr [{from}]", from = in(reg) from, value = lateout(reg) value,
                options(nostack, preserves_flags, readonly));
        }
        value
    }

    /// # Safety
    /// Four bytes from `from` on can be read.
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
    /// Two bytes from `from` on can be read.
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
    /// The byte at `from` can be read.
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
    /// They can be read from `from` on; from `to` on they are the caller's alone.
    #[inline(always)]
    pub unsafe fn copy_16(from: *const u8, to: *mut u8) {
        let value: __m128i;
        // SAFETY: as in `load_8`, and the caller's.
        unsafe {
            asm!("movdqu {value}, xmmword ptr [{from}]", from = in(reg) from, value = lateout(xmm_reg) value,
                options(nostack, preserves_flags, readonly));
            _mm_storeu_si128(to.cast(), value);
        }
    }

    /// Copies 64 bytes.
    ///
    /// # Safety
    /// As for [`copy_16`].
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
}

#[cfg(not(all(target_arch = "x86_64", not(any(loom, shuttle, miri)))))]
mod here {
    //! Nothing: callers ask [`IS_HERE`] first, and go word by word.
    pub const IS_HERE: bool = false;

    pub unsafe fn load_8(_: *const u8) -> u64 {
        unreachable!("asked for where there are no wide loads")
    }
    pub unsafe fn load_4(_: *const u8) -> u32 {
        unreachable!("asked for where there are no wide loads")
    }
    pub unsafe fn load_2(_: *const u8) -> u16 {
        unreachable!("asked for where there are no wide loads")
    }
    pub unsafe fn load_1(_: *const u8) -> u8 {
        unreachable!("asked for where there are no wide loads")
    }
    pub unsafe fn copy_16(_: *const u8, _: *mut u8) {
        unreachable!("asked for where there are no wide loads")
    }
    pub unsafe fn copy_64(_: *const u8, _: *mut u8) {
        unreachable!("asked for where there are no wide loads")
    }
}

pub(super) use here::{IS_HERE, load_2, load_4, load_8};

/// `N` bytes: 1, 2, 4, 8, or a multiple of 16.
///
/// # Safety
/// They can be read from `from` on.
#[inline(always)]
pub(super) unsafe fn load<const N: usize>(from: *const u8) -> [u8; N] {
    let mut out = MaybeUninit::<[u8; N]>::uninit();
    let to = out.as_mut_ptr().cast::<u8>();
    // SAFETY: the caller's: each arm reads `N` bytes from `from` on and writes as many, so that all are initialised.
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

/// Bytes by which a copy may go on behind what was asked for, on both sides.
pub(super) const OVER: usize = 16;

/// Bytes that [`copy_pieces`] copies at once.
pub(super) const PIECE: usize = 64;

/// Copies `len` bytes, a multiple of [`PIECE`].
///
/// # Safety
/// They can be read from `from` on; from `to` on they are the caller's alone.
#[inline(always)]
pub(super) unsafe fn copy_pieces(from: *const u8, to: *mut u8, len: usize) {
    let mut at = 0;
    while at < len {
        // SAFETY: the caller's, as `at` and `len` are multiples of `PIECE`.
        unsafe { here::copy_64(from.add(at), to.add(at)) };
        at += PIECE;
    }
}

/// Copies `len` bytes, in pieces of 16 and more: up to [`OVER`] bytes less one behind them are read and written as well.
///
/// # Safety
/// `len` rounded up to a multiple of [`OVER`] bytes can be read from `from` on; from `to` on they are the caller's alone.
#[inline(always)]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    let mut at = 0;
    while at + 64 <= len {
        // SAFETY: the caller's, as `at + 64 <= len`.
        unsafe { here::copy_64(from.add(at), to.add(at)) };
        at += 64;
    }
    while at < len {
        // SAFETY: the caller's: `at` is a multiple of `OVER` below `len`.
        unsafe { here::copy_16(from.add(at), to.add(at)) };
        at += OVER;
    }
}
