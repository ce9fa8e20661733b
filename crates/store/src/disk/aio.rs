//! Many direct writes of one file by one system call: Linux's native asynchronous I/O, aio(7).
//!
//! # Picture
//! ```text
//! writes ─ io_submit ─▶ the disk ─ io_getevents ─▶ results
//! ```
//! # Invariants
//! - A1: the kernel has finished with every buffer when [`ManyWrites::run`] returns. If that cannot
//!   be guaranteed, the process ends.
//! - A2: a process that is killed keeps its lock on the data directory until the disk has finished
//!   with its writes: the kernel waits for them when it takes the memory down (`exit_aio`), which
//!   comes before it closes the files. io_uring would be as fast, but does not wait, so that a late
//!   write could overwrite a page that the next process has recovered.
//!
//! # Failure
//! The number of these contexts on a machine is limited (`fs.aio-max-nr`). Without one
//! [`ManyWrites::new`] returns `None`, and the caller makes a system call for each write.

use std::io;
use std::os::fd::RawFd;

/// The most writes of one call.
pub(super) const MOST: usize = 16;

/// `struct iocb` of linux/aio_abi.h on a little-endian machine.
#[repr(C)]
#[derive(Default)]
struct Request {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    fd: u32,
    address: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    request: u64,
    result: i64,
    second_result: i64,
}

const OP_WRITE: u16 = 1;

/// A context of the kernel with room for [`MOST`] writes.
pub(super) struct ManyWrites {
    context: libc::c_ulong,
}

impl ManyWrites {
    /// `None` if the kernel offers none.
    pub(super) fn new() -> Option<ManyWrites> {
        if cfg!(target_endian = "big") {
            return None;
        }
        let mut context: libc::c_ulong = 0;
        // SAFETY: the call writes the context's number into a live local.
        let rc =
            unsafe { libc::syscall(libc::SYS_io_setup, MOST as libc::c_long, &raw mut context) };
        (rc == 0).then_some(ManyWrites { context })
    }

    /// Writes the first [`MOST`] of `writes`, each an offset and its bytes, and waits for them.
    /// Returns a value for each: the number of bytes written, or the negative errno. -EAGAIN: the
    /// kernel did not take the write.
    pub(super) fn run(&mut self, fd: RawFd, writes: &[(u64, &[u8])]) -> Vec<i64> {
        let requests = writes.iter().take(MOST).zip(0..);
        let requests: Vec<Request> = requests
            .map(|((offset, bytes), data)| Request {
                data,
                opcode: OP_WRITE,
                fd: fd as u32,
                address: bytes.as_ptr() as u64,
                length: bytes.len() as u64,
                offset: *offset as i64,
                ..Request::default()
            })
            .collect();
        let mut results = vec![i64::from(-libc::EAGAIN); requests.len()];
        let mut pending = self.submit(&requests);
        while pending > 0 {
            let mut events = [Event::default(); MOST];
            for event in self.wait(pending, &mut events) {
                results[event.data as usize] = event.result;
                pending -= 1;
            }
        }
        results
    }

    /// Returns how many of the requests, from the first one on, the kernel took.
    fn submit(&mut self, requests: &[Request]) -> usize {
        let pointers: Vec<*const Request> = requests.iter().map(std::ptr::from_ref).collect();
        // SAFETY: the kernel copies the requests during the call. The bytes that they point to are
        // borrowed by `run`, which waits for all that were taken (A1).
        let taken = unsafe {
            libc::syscall(
                libc::SYS_io_submit,
                self.context,
                pointers.len() as libc::c_long,
                pointers.as_ptr(),
            )
        };
        usize::try_from(taken).unwrap_or(0)
    }

    /// Waits for `count` results, or fewer if a signal comes.
    fn wait<'a>(&mut self, count: usize, events: &'a mut [Event; MOST]) -> &'a [Event] {
        // SAFETY: `events` has room for `MOST` results, and no more writes are in progress.
        let n = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                count as libc::c_long,
                MOST as libc::c_long,
                events.as_mut_ptr(),
                std::ptr::null::<libc::timespec>(),
            )
        };
        match usize::try_from(n) {
            Ok(n) => &events[..n],
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => &[],
            Err(_) => {
                tracing::error!("io_getevents failed: {}", io::Error::last_os_error());
                std::process::abort() // A1
            }
        }
    }
}

impl Drop for ManyWrites {
    fn drop(&mut self) {
        // SAFETY: the context is this value's own, and no write is in progress.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsRawFd;

    #[test]
    fn one_call_writes_many_places_of_a_file() {
        let Some(mut many) = ManyWrites::new() else {
            return eprintln!("no asynchronous I/O on this machine");
        };
        let mut file = tempfile::tempfile().expect("a temporary file");
        for round in 0..3u8 {
            let texts: Vec<Vec<u8>> = (0..MOST).map(|i| vec![round + i as u8; 4096]).collect();
            let places = (0..MOST).rev();
            let mut writes: Vec<(u64, &[u8])> =
                places.map(|i| (i as u64 * 4096, &texts[i][..])).collect();
            assert_eq!(many.run(file.as_raw_fd(), &writes), [4096; MOST]);
            writes.push((0, b"not among the first"));
            assert_eq!(many.run(file.as_raw_fd(), &writes), [4096; MOST]);
            let mut all = Vec::new();
            io::Seek::rewind(&mut file).expect("the file can be read from its start");
            file.read_to_end(&mut all).expect("the file can be read");
            assert!(all == texts.concat());
        }
        assert_eq!(many.run(-1, &[(0, b"x")]), [-i64::from(libc::EAGAIN)]);
        assert_eq!(many.run(-1, &[]), []);
    }
}
