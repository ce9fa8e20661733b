//! Requests to the valgrind that runs this process. Without valgrind they do nothing and return 0.
//!
//! Source: `valgrind.h` and `callgrind.h` of Valgrind 3.x ("client requests"), whose macros consist
//! of instructions without an effect on a real processor.
#![allow(unsafe_code)]

/// The prefix "CT" of callgrind's requests.
const CALLGRIND: usize = (b'C' as usize) << 24 | (b'T' as usize) << 16;

/// Whether this process runs under valgrind.
pub fn is_here() -> bool {
    request(0x1001, 0) != 0
}

/// Starts to count instructions.
pub fn start() {
    request(CALLGRIND + 4, 0);
}

/// Resets the counters.
pub fn zero() {
    request(CALLGRIND + 1, 0);
}

/// Writes the counters to a file whose name contains `name`.
pub fn dump(name: &std::ffi::CStr) {
    request(CALLGRIND + 3, name.as_ptr() as usize);
}

#[cfg(target_arch = "x86_64")]
fn request(code: usize, argument: usize) -> usize {
    let arguments = [code, argument, 0, 0, 0, 0];
    let mut result = 0;
    // SAFETY: the rotations add up to 128 bits, so `rdi` stays as it is, and the exchange does
    // nothing; valgrind reads `arguments` and sets `rdx` only.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            inout("rdx") result,
            in("rax") arguments.as_ptr(),
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
fn request(code: usize, argument: usize) -> usize {
    let arguments = [code, argument, 0, 0, 0, 0];
    let mut result = 0;
    // SAFETY: the rotations add up to 128 bits, so `x12` stays as it is, and the last instruction
    // does nothing; valgrind reads `arguments` and sets `x3` only.
    unsafe {
        std::arch::asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            inout("x3") result,
            in("x4") arguments.as_ptr(),
        );
    }
    result
}
