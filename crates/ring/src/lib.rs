//! Many sends, or many receives, by one system call (io_uring). The server's workers and the threads of the lab's client use it, each its own.
//!
//! # Picture
//! ```text
//! run ─▶ entries (shared with the kernel) ─ io_uring_enter ─▶ each done at once ─▶ completions (shared) ─▶ results
//! ```
//! Every operation says that it must not block, so none waits inside the kernel: what cannot be done now has -EAGAIN as its
//! result, and epoll tells when it can. So nothing outlives a call of [`Ring::run`].
//!
//! # Invariants
//! - R1: the kernel has finished with every buffer when [`Ring::run`] returns; where that cannot be made sure, the process ends.
//! - R2: at most [`MOST`] operations are under way, and the rings have that much room.
//!
//! # Concurrency
//! Used by the thread that made it. Tail of the entries: stored here (Release), read by the kernel. Tail of the completions: stored by
//! the kernel, loaded here (Acquire). The heads the other way round.
//!
//! # Failure
//! Kernels without io_uring, or that forbid it: [`Ring::new`] gives none, and the caller makes one system call for each.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Operations of one call.
pub const MOST: usize = 64;

/// What to do with a socket.
pub enum Op<'a> {
    Send(RawFd, &'a [u8]),
    Receive(RawFd, &'a mut [u8]),
}

/// `struct io_sqring_offsets` and `struct io_cqring_offsets` of linux/io_uring.h: bytes from the beginning of the shared memory.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Offsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    /// Entries: flags; completions: overflow.
    flags: u32,
    /// Entries: dropped; completions: cqes.
    dropped_or_cqes: u32,
    /// Entries: array; completions: flags.
    array_or_flags: u32,
    reserved: u32,
    user_addr: u64,
}

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    sq: Offsets,
    cq: Offsets,
}

/// `struct io_uring_sqe`, as far as sends and receives use it.
#[repr(C)]
#[derive(Default)]
struct Entry {
    opcode: u8,
    flags: u8,
    ioprio: u16,
    fd: i32,
    offset: u64,
    address: u64,
    length: u32,
    message_flags: u32,
    user_data: u64,
    rest: [u64; 3],
}

/// `struct io_uring_cqe`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

const OP_SEND: u8 = 26;
const OP_RECEIVE: u8 = 27;
const ENTER_GETEVENTS: u32 = 1;
/// Both rings in one piece of memory (Linux 5.4).
const FEATURE_SINGLE_MMAP: u32 = 1;
/// Only one thread uses it, and work is done when that thread asks (Linux 6.1).
const SETUP_OWN_THREAD: u32 = 1 << 12 | 1 << 13;
const OFFSET_ENTRIES: i64 = 0x1000_0000;

/// Memory shared with the kernel.
struct Shared {
    start: *mut u8,
    length: usize,
}

impl Shared {
    fn map(fd: &OwnedFd, length: usize, offset: i64) -> io::Result<Shared> {
        // SAFETY: a new mapping, of a length and offset that io_uring_setup gave.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                offset,
            )
        };
        match start {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => Ok(Shared {
                start: start.cast(),
                length,
            }),
        }
    }

    /// A pointer `offset` bytes into it, to `count` values of `T`.
    fn at<T>(&self, offset: u32, count: u32) -> io::Result<*mut T> {
        let offset = offset as usize;
        let end = offset + count as usize * size_of::<T>();
        if end > self.length || !offset.is_multiple_of(align_of::<T>()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: inside the mapping, as was just checked.
        Ok(unsafe { self.start.add(offset) }.cast())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own; pointers into it live no longer than the ring that holds both.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

/// An io_uring with room for [`MOST`] operations.
pub struct Ring {
    fd: OwnedFd,
    _rings: Shared,
    _entries: Shared,
    /// [`Entry`]s and their number less one; the same for completions.
    entries: *mut Entry,
    entries_mask: u32,
    entries_tail: *const AtomicU32,
    completions: *const Completion,
    completions_mask: u32,
    completions_head: *const AtomicU32,
    completions_tail: *const AtomicU32,
}

impl Ring {
    /// None: not here.
    pub fn new() -> Option<Ring> {
        [SETUP_OWN_THREAD, 0]
            .into_iter()
            .find_map(|flags| Ring::with(flags).ok())
    }

    fn with(flags: u32) -> io::Result<Ring> {
        let mut params = Params {
            flags,
            ..Params::default()
        };
        // SAFETY: params is a live local of the layout that the call fills in.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_io_uring_setup,
                MOST as libc::c_uint,
                &raw mut params,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        if params.features & FEATURE_SINGLE_MMAP == 0 || (params.sq_entries as usize) < MOST {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (sq, cq) = (params.sq, params.cq);
        let completions_end =
            cq.dropped_or_cqes as usize + params.cq_entries as usize * size_of::<Completion>();
        let array_end = sq.array_or_flags as usize + params.sq_entries as usize * 4;
        let rings = Shared::map(&fd, completions_end.max(array_end), 0)?;
        let entries = Shared::map(
            &fd,
            params.sq_entries as usize * size_of::<Entry>(),
            OFFSET_ENTRIES,
        )?;
        let array: *mut u32 = rings.at(sq.array_or_flags, params.sq_entries)?;
        for i in 0..params.sq_entries {
            // SAFETY: inside the mapping, by `at`; nothing is submitted yet, so the kernel does not look.
            unsafe { array.add(i as usize).write(i) };
        }
        Ok(Ring {
            entries: entries.at(0, params.sq_entries)?,
            entries_mask: params.sq_entries - 1,
            entries_tail: rings.at(sq.tail, 1)?,
            completions: rings.at(cq.dropped_or_cqes, params.cq_entries)?,
            completions_mask: params.cq_entries - 1,
            completions_head: rings.at(cq.head, 1)?,
            completions_tail: rings.at(cq.tail, 1)?,
            fd,
            _rings: rings,
            _entries: entries,
        })
    }

    /// Does the first [`MOST`] of `ops`; afterwards `results` has for each the number of bytes, or less than 0: an error's number.
    pub fn run<'a>(&mut self, ops: impl Iterator<Item = Op<'a>>, results: &mut Vec<i32>) {
        results.clear();
        // SAFETY: the pointers lie in mappings that live as long as self; words that the kernel touches too are atomics.
        let tail = unsafe { &*self.entries_tail };
        let first = tail.load(Ordering::Relaxed);
        let mut count = 0;
        for op in ops.take(MOST) {
            let entry = Entry::of(op, u64::from(count));
            let at = (first.wrapping_add(count) & self.entries_mask) as usize;
            // SAFETY: masked, so inside; R2: the kernel has taken what was there before.
            unsafe { self.entries.add(at).write(entry) };
            results.push(-libc::EAGAIN);
            count += 1;
        }
        tail.store(first.wrapping_add(count), Ordering::Release);
        let (mut submitted, mut done) = (0, 0);
        while done < count {
            // All are done at once as a rule; what is not is waited for.
            let wait = match submitted {
                0 => 0,
                _ => submitted - done,
            };
            submitted += self.enter(count - submitted, wait);
            done += self.take(results);
        }
    }

    /// How many entries the kernel took.
    fn enter(&self, submit: u32, wait: u32) -> u32 {
        let flags = if wait > 0 { ENTER_GETEVENTS } else { 0 };
        // SAFETY: what the entries point to outlives the call of `run`, by the lifetimes of its operations and R1.
        let n = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.fd.as_raw_fd(),
                submit,
                wait,
                flags,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        if n >= 0 {
            return n as u32;
        }
        match io::Error::last_os_error() {
            e if matches!(
                e.raw_os_error(),
                Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
            ) =>
            {
                0
            }
            e => {
                tracing::error!("io_uring_enter failed: {e}");

                std::process::abort()
            }
        }
    }

    /// Takes the completions that are there; how many.
    fn take(&mut self, results: &mut [i32]) -> u32 {
        // SAFETY: as in `run`.
        let (head, tail) = unsafe { (&*self.completions_head, &*self.completions_tail) };
        let first = head.load(Ordering::Relaxed);
        let count = tail.load(Ordering::Acquire).wrapping_sub(first);
        for i in 0..count {
            let at = (first.wrapping_add(i) & self.completions_mask) as usize;
            // SAFETY: masked, so inside; below the tail, so the kernel has written it and leaves it until the head has passed.
            let completion = unsafe { self.completions.add(at).read() };
            if let Some(result) = results.get_mut(completion.user_data as usize) {
                *result = completion.result;
            }
        }
        head.store(first.wrapping_add(count), Ordering::Release);
        count
    }
}

impl Entry {
    fn of(op: Op<'_>, user_data: u64) -> Entry {
        let (opcode, fd, address, length, flags) = match op {
            Op::Send(fd, bytes) => (
                OP_SEND,
                fd,
                bytes.as_ptr() as u64,
                bytes.len(),
                libc::MSG_NOSIGNAL,
            ),
            Op::Receive(fd, bytes) => (OP_RECEIVE, fd, bytes.as_mut_ptr() as u64, bytes.len(), 0),
        };
        Entry {
            opcode,
            fd,
            address,
            // What is longer goes in two.
            length: length.min(1 << 30) as u32,
            message_flags: (flags | libc::MSG_DONTWAIT) as u32,
            user_data,
            ..Entry::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Kernels without io_uring, and sandboxes that forbid it, have nothing to test here.
    fn ring() -> Option<Ring> {
        let ring = Ring::new();
        if ring.is_none() {
            eprintln!("no io_uring here");
        }
        ring
    }

    fn pair() -> (UnixStream, UnixStream) {
        let (a, b) = UnixStream::pair().expect("two sockets");
        a.set_nonblocking(true).expect("no blocking");
        (a, b)
    }

    #[test]
    fn many_are_sent_and_received_by_one_call_each() {
        let Some(mut ring) = ring() else { return };
        let mut results = Vec::new();
        let mut pairs: Vec<_> = (0..MOST).map(|_| pair()).collect();
        // More rounds than the rings have entries.
        for round in 0..5u8 {
            let texts: Vec<Vec<u8>> = (0..MOST).map(|i| vec![round + i as u8; i + 1]).collect();
            let sends = pairs
                .iter()
                .zip(&texts)
                .map(|((a, _), text)| Op::Send(a.as_raw_fd(), text));
            ring.run(sends, &mut results);
            let lengths: Vec<i32> = (1..=MOST as i32).collect();
            assert_eq!(results, lengths);
            for ((_, b), text) in pairs.iter_mut().zip(&texts) {
                let mut got = vec![0; text.len()];
                b.read_exact(&mut got).expect("it was sent");
                assert_eq!(&got, text);
                b.write_all(&got[..1]).expect("it can be answered");
            }
            let mut pieces = vec![0u8; MOST * 8];
            let receives = pairs
                .iter()
                .zip(pieces.chunks_exact_mut(8))
                .map(|((a, _), piece)| Op::Receive(a.as_raw_fd(), piece));
            ring.run(receives, &mut results);
            assert_eq!(results, vec![1; MOST]);
            for (piece, text) in pieces.chunks_exact(8).zip(&texts) {
                assert_eq!(piece[0], text[0]);
            }
        }
    }

    #[test]
    fn what_cannot_be_done_now_says_so() {
        let Some(mut ring) = ring() else { return };
        let mut results = Vec::new();
        let ((empty, _kept), (full, other), (closed, gone)) = (pair(), pair(), pair());
        drop(gone);
        let (mut a, mut b) = ([0; 4], [0; 4]);
        let lot = vec![b'x'; 16 << 20];
        let ops = [
            Op::Receive(empty.as_raw_fd(), &mut a),
            Op::Receive(closed.as_raw_fd(), &mut b),
            Op::Send(closed.as_raw_fd(), b"x"),
            Op::Send(full.as_raw_fd(), &lot),
            Op::Send(full.as_raw_fd(), b"x"),
            Op::Send(-1, b"x"),
        ];
        ring.run(ops.into_iter(), &mut results);
        let sent = results[3];
        assert!(sent > 0 && sent < lot.len() as i32, "{sent}");
        let rest = [&results[..3], &results[4..]].concat();
        let errors = [-libc::EAGAIN, 0, -libc::EPIPE, -libc::EAGAIN, -libc::EBADF];
        assert_eq!(rest, errors);
        // Nothing to do is nothing done, and the ring goes on.
        ring.run(std::iter::empty(), &mut results);
        assert_eq!(results.len(), 0);
        let mut c = [0; 4];
        ring.run(
            [Op::Receive(other.as_raw_fd(), &mut c)].into_iter(),
            &mut results,
        );
        assert_eq!((results[0], c), (4, *b"xxxx"));
    }
}
