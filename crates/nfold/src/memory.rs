//! How the process's allocator treats large buffers.

/// Buffers from this size on are given back to the system when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 1 << 20;

/// To be called before the first thread is made. glibc moves its bound for large buffers up to 32 MiB by what is freed: sort buffers,
/// statements and results of a few MiB would then stay in the heaps of the threads that used them last.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_large_buffers() {
    // SAFETY: mallopt only sets parameters of the allocator, and no other thread exists yet. It cannot fail for these values.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 * LARGE_BYTES);
    }
}

/// Other allocators do so by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_large_buffers() {}
