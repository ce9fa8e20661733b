//! How the process's allocator treats large buffers.

/// Buffers from this size on are given back to the system when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 16 << 20;

/// Free memory at the end of a thread's heap beyond which that is given back.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HEAP_END_BYTES: libc::c_int = 32 << 20;

/// To be called before the first thread is created. By default glibc raises its threshold for large
/// buffers up to 32 MiB when large buffers are freed, so sort buffers and results of many MiB would
/// stay in the heaps of the threads that used them last. With a low threshold, each large value
/// would be read into newly mapped memory, which the system clears page by page; that takes longer
/// than copying the value.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_large_buffers() {
    // SAFETY: mallopt only sets parameters of the allocator, and no other thread exists yet. It
    // cannot fail for these values.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, HEAP_END_BYTES);
    }
}

/// Other allocators do so by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_large_buffers() {}

/// Starts a thread that gives free memory back to the system after statements that took long. The
/// memory that they have freed lies between memory that is in use, so the allocator keeps it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_after_heavy_statements() {
    let trim = || {
        nfold_server::heavy::follow(|| {
            // SAFETY: malloc_trim may be called at any time, from any thread.
            unsafe { libc::malloc_trim(0) };
        })
    };
    let started = std::thread::Builder::new()
        .name("nfold-memory".into())
        .spawn(trim);
    if let Err(e) = started {
        tracing::warn!("no thread gives free memory back: {e}");
    }
}

/// Other allocators do so by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_after_heavy_statements() {}
