//! An allocator that puts the allocations of marked threads into one mapping (the zone). The
//! mapping can then be made read-only, and each store to it is reported with its stack.
//!
//! # Picture
//! ```text
//! zone  | allocations one after the other ... | page: one allocation that wants lines of its own | ...
//! ```
//! Freed memory of the zone is never used again. An allocation with an alignment of 64 bytes or
//! more, by which the program gets cache lines of its own (slots, counters), has pages of its own.
//! While the zone is protected, a store to such an allocation is allowed and counted if a name in
//! the allocation's stack is on the list of allowed ones. A store anywhere else in the zone, in the
//! page frames or in the program's statics is a failure, and is printed with its stack.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};

const ZONE: usize = 6 << 30;
const PAGE: usize = 4096;
/// Alignment from which an allocation counts as one that wants lines of its own.
const OWN_LINES: usize = 64;

thread_local! {
    static IN_ZONE: Cell<bool> = const { Cell::new(false) };
}

static BASE: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
static FULL: AtomicBool = AtomicBool::new(false);
/// Names in the stacks of allocations that may be stored to.
static ALLOWED: OnceLock<&'static [&'static str]> = OnceLock::new();
/// The results. They lie outside the zone and the statics, so that they can be written.
static LEDGER: AtomicPtr<Ledger> = AtomicPtr::new(null_mut());

struct Ledger {
    /// Per page of the zone: whether it belongs to an allocation that may be stored to.
    own: [AtomicBool; ZONE / PAGE],
    failures: AtomicUsize,
    quiet: AtomicBool,
    noted: AtomicUsize,
    /// The protected statics: address and length.
    statics: [(AtomicUsize, AtomicUsize); 8],
}

pub struct Zoned;

// SAFETY: the zone hands out disjoint pieces of a mapping that is never unmapped, aligned as asked;
// everything else is `System`'s.
unsafe impl GlobalAlloc for Zoned {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IN_ZONE.try_with(Cell::get).unwrap_or(false) {
            return allocate(layout);
        }
        // SAFETY: the caller's layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if IN_ZONE.try_with(Cell::get).unwrap_or(false) {
            return allocate(layout); // never used before, so zero
        }
        // SAFETY: the caller's layout is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        let base = BASE.load(Relaxed);
        if !(base..base + ZONE).contains(&p.addr()) {
            // SAFETY: not from the zone, so from `System`, with the same layout.
            unsafe { System.dealloc(p, layout) }
        }
    }
}

fn allocate(layout: Layout) -> *mut u8 {
    let own = layout.align() >= OWN_LINES;
    let align = layout.align().max(if own { PAGE } else { 16 });
    let size = layout.size().next_multiple_of(if own { PAGE } else { 16 });
    let taken = USED.fetch_update(Relaxed, Relaxed, |used| {
        let end = used.next_multiple_of(align) + size;
        (end <= ZONE).then_some(end)
    });
    let Ok(before) = taken else {
        FULL.store(true, Relaxed);
        return null_mut();
    };
    let at = before.next_multiple_of(align);
    let address = BASE.load(Relaxed) + at;
    if own {
        IN_ZONE.set(false);
        let stack = Backtrace::force_capture().to_string();
        let names = ALLOWED.get().expect("`prepare` came first");
        let allowed = names.iter().any(|name| stack.contains(name));
        let pages = &ledger().own[at / PAGE..(at + size) / PAGE];
        pages.iter().for_each(|own| own.store(allowed, Relaxed));
        IN_ZONE.set(true);
    }
    with_exposed_provenance_mut(address)
}

fn ledger() -> &'static Ledger {
    // SAFETY: made by `prepare` before anything is allocated in the zone, and never unmapped; zeros
    // are a `Ledger`.
    unsafe { &*LEDGER.load(Acquire) }
}

fn map(len: usize) -> usize {
    // SAFETY: a fresh anonymous mapping.
    let base = unsafe {
        libc::mmap(
            null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    assert_ne!(base, libc::MAP_FAILED);
    base.expose_provenance()
}

/// Makes the zone. Once, before [`inside`]. `allowed`: names in the stacks of allocations that may
/// be stored to.
pub fn prepare(allowed: &'static [&'static str]) {
    ALLOWED.set(allowed).expect("once");
    LEDGER.store(
        with_exposed_provenance_mut(map(size_of::<Ledger>())),
        Release,
    );
    BASE.store(map(ZONE), Relaxed);
    // SAFETY: all zeros is a `sigaction`; `on_fault` has the signature that SA_SIGINFO needs.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction =
            on_fault as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, null_mut()), 0);
    }
}

/// Calls `f`, whose allocations on this thread go to the zone.
pub fn inside<T>(f: impl FnOnce() -> T) -> T {
    IN_ZONE.set(true);
    let result = f();
    IN_ZONE.set(false);
    assert!(!FULL.load(Relaxed), "the zone is too small");
    result
}

/// Bytes of the zone that are in use.
pub fn used() -> usize {
    USED.load(Relaxed)
}

/// Address and length of the zone, for [`protect`].
pub fn zone() -> (usize, usize) {
    (BASE.load(Relaxed), ZONE)
}

/// Makes memory read-only, or writable again.
pub fn protect((address, len): (usize, usize), read_only: bool) {
    let how = if read_only {
        libc::PROT_READ
    } else {
        libc::PROT_READ | libc::PROT_WRITE
    };
    // SAFETY: memory of this process. This test looks for stores to it while it is protected, and
    // `on_fault` handles them.
    let rc = unsafe { libc::mprotect(with_exposed_provenance_mut(address), len, how) };
    assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
}

/// The writable statics of this program (not those of the C library).
pub fn statics() -> Vec<(usize, usize)> {
    let exe = std::env::current_exe().unwrap();
    let exe = exe.to_string_lossy();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut found: Vec<(usize, usize)> = Vec::new();
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (from, to) = fields[0].split_once('-').unwrap();
        let [from, to] = [from, to].map(|hex| usize::from_str_radix(hex, 16).unwrap());
        // Zeroed statics are an anonymous mapping behind the file's.
        let behind = fields.len() == 5 && found.last().is_some_and(|(at, len)| at + len == from);
        if fields[1] == "rw-p" && (fields.get(5) == Some(&&*exe) || behind) {
            found.push((from, to - from));
        }
    }
    for ((from, len), known) in found.iter().zip(&ledger().statics) {
        known.0.store(*from, Relaxed);
        known.1.store(*len, Relaxed);
    }
    found
}

/// Handles a store to protected memory. Makes its page writable, so that the test continues and
/// finds others.
extern "C" fn on_fault(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid `siginfo_t` of a fault.
    let address = unsafe { (*info).si_addr() }.addr();
    let page = address.wrapping_sub(BASE.load(Relaxed)) / PAGE;
    let ledger = ledger();
    let own = ledger.own.get(page).is_some_and(|own| own.load(Relaxed));
    ledger.noted.fetch_add(usize::from(own), Relaxed);
    // SAFETY: a page that is mapped, if the fault is one that this test causes; otherwise the call
    // fails.
    let rc = unsafe {
        let page = with_exposed_provenance_mut(address & !(PAGE - 1));
        libc::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE)
    };
    if !own || rc != 0 {
        tell(address, rc == 0);
    }
}

/// Prints the stack of a store. A signal handler must not do this, but the test has failed anyway;
/// if it hangs here, the alarm ends it.
fn tell(address: usize, go_on: bool) {
    let ledger = ledger();
    let told = ledger.failures.fetch_add(1, Relaxed);
    if ledger.quiet.load(Relaxed) && go_on {
        return;
    }
    // SAFETY: a plain system call.
    unsafe { libc::alarm(60) };
    for (from, len) in &ledger.statics {
        let (from, len) = (from.load(Relaxed), len.load(Relaxed));
        if len > 0 {
            protect((from, len), false);
        }
    }
    let frames = format!("{:?}", Backtrace::force_capture());
    let own = frames
        .split("{ fn: ")
        .filter(|frame| frame.contains("nfold_") || frame.contains("/src/"))
        .take(12);
    let own: Vec<&str> = own.collect();
    eprintln!(
        "a store to read-only memory at {address:#x} by\n{}",
        own.join("\n")
    );
    if told > 30 || !go_on {
        // SAFETY: as above.
        unsafe { libc::_exit(101) };
    }
}

/// Counts from now on and says nothing.
pub fn be_quiet() {
    ledger().quiet.store(true, Relaxed);
}

/// How many stores there were that are not allowed.
pub fn failures() -> usize {
    ledger().failures.load(Relaxed)
}

/// The number of pages with allowed stores.
pub fn noted() -> usize {
    ledger().noted.load(Relaxed)
}
