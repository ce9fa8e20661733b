//! Batches socket sends or receives into one system call with io_uring. Each server worker, and
//! each thread of the lab's client, owns one ring.
//!
//! # Picture
//! ```text
//! run ─▶ entries (shared with the kernel) ─ io_uring_enter ─▶ each done at once ─▶ completions (shared) ─▶ results
//! ```
//! Every operation is non-blocking, so none waits inside the kernel. An operation that would block
//! returns -EAGAIN, and epoll reports when it can proceed. So no operation outlives a call of
//! [`Ring::run`].
//!
//! # Invariants
//! - R1: the kernel has finished with every buffer when [`Ring::run`] returns. If that cannot be
//!   guaranteed, the process ends.
//! - R2: at most [`MOST`] operations are in flight, and the rings have room for as many.
//!
//! # Concurrency
//! Only the thread that created a ring uses it. This thread stores the entries' tail (Release) and
//! the kernel loads it. The kernel stores the completions' tail and this thread loads it (Acquire).
//! The consumer's positions go the other way.
//!
//! # Failure
//! On a kernel that has no io_uring, or forbids it, [`Ring::new`] returns `None`, and the caller
//! makes one system call per operation.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// The largest number of operations of one call.
pub const MOST: usize = 64;

/// A socket operation: the descriptor, and the bytes to send or the buffer to fill.
pub enum Op<'a> {
    Send(RawFd, &'a [u8]),
    Receive(RawFd, &'a mut [u8]),
}

/// `struct io_sqring_offsets` and `struct io_cqring_offsets` of linux/io_uring.h: byte offsets from
/// the start of the shared memory.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Offsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    /// Entries: flags. Completions: overflow.
    flags: u32,
    /// Entries: dropped. Completions: cqes.
    dropped_or_cqes: u32,
    /// Entries: array. Completions: flags.
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

/// `struct io_uring_sqe`, with the fields that sends and receives use.
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
/// Both rings share one mapping (Linux 5.4).
const FEATURE_SINGLE_MMAP: u32 = 1;
/// One thread submits, and the kernel does completion work only when that thread enters (Linux
/// 6.1).
const SETUP_OWN_THREAD: u32 = 1 << 12 | 1 << 13;
const OFFSET_ENTRIES: i64 = 0x1000_0000;

/// A mapping shared with the kernel.
struct Shared {
    start: *mut u8,
    length: usize,
}

impl Shared {
    fn map(fd: &OwnedFd, length: usize, offset: i64) -> io::Result<Shared> {
        // SAFETY: a new mapping, with the length and offset that io_uring_setup returned.
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

    /// A pointer to `count` values of `T` at `offset` bytes into the mapping.
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
        // SAFETY: this value owns the mapping. Pointers into it live no longer than the ring that
        // holds both.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

/// An io_uring with room for [`MOST`] operations.
pub struct Ring {
    fd: OwnedFd,
    _rings: Shared,
    _entries: Shared,
    /// The [`Entry`]s, and their number less one (a mask). The same for the completions.
    entries: *mut Entry,
    entries_mask: u32,
    entries_tail: *const AtomicU32,
    completions: *const Completion,
    completions_mask: u32,
    completions_head: *const AtomicU32,
    completions_tail: *const AtomicU32,
}

impl Ring {
    /// `None` if the kernel does not offer io_uring.
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
        // SAFETY: `params` is a live local with the layout that the call fills in.
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
        // SAFETY: the descriptor is new, and nothing else owns it.
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
            // SAFETY: inside the mapping, by `at`. Nothing is submitted yet, so the kernel does not
            // read it.
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

    /// Runs the first [`MOST`] operations of `ops`. Afterwards `results` holds one value for each:
    /// the number of bytes, or the negative errno.
    pub fn run<'a>(&mut self, ops: impl Iterator<Item = Op<'a>>, results: &mut Vec<i32>) {
        results.clear();
        // SAFETY: the pointers lie in mappings that live as long as `self`. The words that the
        // kernel also touches are atomics.
        let tail = unsafe { &*self.entries_tail };
        let first = tail.load(Ordering::Relaxed);
        let mut count = 0;
        for op in ops.take(MOST) {
            let entry = Entry::of(op, u64::from(count));
            let at = (first.wrapping_add(count) & self.entries_mask) as usize;
            // SAFETY: masked, so inside. By R2 the kernel has consumed the previous entry there.
            unsafe { self.entries.add(at).write(entry) };
            results.push(-libc::EAGAIN);
            count += 1;
        }
        tail.store(first.wrapping_add(count), Ordering::Release);
        let (mut submitted, mut done) = (0, 0);
        while done < count {
            // As a rule all operations complete at once. The loop waits for the others.
            let wait = match submitted {
                0 => 0,
                _ => submitted - done,
            };
            submitted += self.enter(count - submitted, wait);
            done += self.take(results);
        }
    }

    /// Submits entries, and returns how many the kernel took.
    fn enter(&self, submit: u32, wait: u32) -> u32 {
        let flags = if wait > 0 { ENTER_GETEVENTS } else { 0 };
        // SAFETY: the memory that the entries point to outlives the call of `run`, by the lifetimes
        // of its operations and R1.
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

    /// Takes the available completions, and returns their number.
    fn take(&mut self, results: &mut [i32]) -> u32 {
        // SAFETY: as in `run`.
        let (head, tail) = unsafe { (&*self.completions_head, &*self.completions_tail) };
        let first = head.load(Ordering::Relaxed);
        let count = tail.load(Ordering::Acquire).wrapping_sub(first);
        for i in 0..count {
            let at = (first.wrapping_add(i) & self.completions_mask) as usize;
            // SAFETY: masked, so inside. It is below the tail, so the kernel has written it and
            // does not reuse it until the head passes it.
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
            // A longer operation transfers only a part, as a short send or receive.
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

    /// Returns `None` on kernels without io_uring and in sandboxes that forbid it: nothing can be
    /// tested there.
    fn ring() -> Option<Ring> {
        let ring = Ring::new();
        if ring.is_none() {
            eprintln!("no io_uring on this machine");
        }
        ring
    }

    fn pair() -> (UnixStream, UnixStream) {
        let (a, b) = UnixStream::pair().expect("a socket pair");
        a.set_nonblocking(true).expect("non-blocking mode");
        (a, b)
    }

    #[test]
    fn one_call_sends_or_receives_many() {
        let Some(mut ring) = ring() else { return };
        let mut results = Vec::new();
        let mut pairs: Vec<_> = (0..MOST).map(|_| pair()).collect();
        // More rounds than the rings have entries, so that they wrap around.
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
                b.read_exact(&mut got).expect("the message was sent");
                assert_eq!(&got, text);
                b.write_all(&got[..1])
                    .expect("the socket accepts an answer");
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
    fn blocked_operations_return_eagain() {
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
        // An empty batch returns no results, and the ring remains usable.
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
