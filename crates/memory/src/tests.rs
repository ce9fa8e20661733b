//! The counts follow what the test's threads allocate.

use std::sync::Mutex;

use super::*;

#[global_allocator]
static GLOBAL: CountingAllocator = CountingAllocator;

/// The sum over all threads is compared before and after: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

const BIG: usize = 8 << 20;

#[test]
fn thread_count_follows_its_buffers() {
    let _alone = ALONE.lock();
    let before = allocated_here();
    let mut buffer: Vec<u8> = Vec::with_capacity(1000);
    assert_eq!(allocated_here() - before, 1000);
    buffer.resize(1000, 1);
    buffer.reserve_exact(BIG);
    assert_eq!(allocated_here() - before, (BIG + 1000) as i64);
    let zeroed = vec![0u8; BIG];
    assert_eq!(allocated_here() - before, (2 * BIG + 1000) as i64);
    drop((buffer, zeroed));
    assert_eq!(allocated_here(), before);
}

#[test]
fn sum_includes_other_threads_and_frees_elsewhere() {
    let _alone = ALONE.lock();
    // The harness and the thread itself allocate a little.
    let slack = 16 * STEP_BYTES as u64;
    let before = allocated_by_all();
    let here = allocated_here();
    let buffer = std::thread::spawn(|| vec![1u8; BIG]).join().unwrap();
    assert!(is_counted());
    let with_buffer = allocated_by_all();
    assert!(with_buffer >= before + BIG as u64 - slack);
    assert!(
        allocated_here() - here < BIG as i64 / 2,
        "another thread allocated it"
    );
    drop(buffer);
    assert!(
        allocated_here() - here < -(BIG as i64) / 2,
        "this thread freed it"
    );
    assert!(allocated_by_all() <= before + slack);
}
