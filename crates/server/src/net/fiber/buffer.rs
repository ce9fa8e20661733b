//! The two buffers of a connection. They come from the worker's pool and return to it when empty,
//! so an idle connection has none.

use std::io;
use std::time::Instant;

use super::transport::Transport;
use super::{FiberCx, Interrupt, Local, Suspend, add as counters_add};

/// The size of a new receive buffer in bytes.
const RECEIVE_BYTES: usize = 16 << 10;

/// The received bytes that are not consumed yet: `start..end` of an initialised buffer.
#[derive(Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    pub fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub fn data_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub fn consume(&mut self, n: usize) {
        self.start += n;
        debug_assert!(self.start <= self.end);
    }

    /// Returns room for received bytes. `need` is the total size of the pending packet. The buffer
    /// grows towards it as bytes arrive, at most doubling, so that an announced length alone takes
    /// no memory.
    pub fn space(&mut self, local: &Local, need: usize) -> &mut [u8] {
        if self.bytes.is_empty() {
            let mut bytes = local.take_input();
            if bytes.len() < RECEIVE_BYTES {
                bytes.resize(RECEIVE_BYTES, 0);
            }
            (self.bytes, self.start, self.end) = (bytes, 0, 0);
        }
        if self.start > 0 && (self.end == self.bytes.len() || self.start + need > self.bytes.len())
        {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.bytes.len() {
            let len = need.min(2 * self.end).max(self.end + RECEIVE_BYTES);
            self.bytes.resize(len, 0);
        }
        &mut self.bytes[self.end..]
    }

    pub fn received(&mut self, n: usize) {
        self.end += n;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// Appends what `other` holds, and gives its buffer back.
    pub fn append(&mut self, local: &Local, mut other: Input) {
        let data = other.data();
        if !data.is_empty() {
            self.space(local, self.data().len() + data.len());
            let end = self.end + data.len();
            if end > self.bytes.len() {
                self.bytes.resize(end, 0);
            }
            self.bytes[self.end..end].copy_from_slice(data);
            self.received(data.len());
        }
        other.clear();
        other.release(local);
    }

    /// Returns an empty buffer to the pool.
    pub fn release(&mut self, local: &Local) {
        if self.is_empty() && !self.bytes.is_empty() {
            local.give_input(std::mem::take(&mut self.bytes));
            (self.start, self.end) = (0, 0);
        }
    }

    /// Discards the received bytes.
    pub fn clear(&mut self) {
        self.start = self.end;
    }
}

/// The bytes to send. Those before `sent` have been sent.
#[derive(Default)]
pub(crate) struct Output {
    pub bytes: Vec<u8>,
    pub sent: usize,
    /// Set after a failed send: nothing is sent any more.
    pub lost: Option<Interrupt>,
}

impl Output {
    /// Ensures that there is a buffer.
    pub fn borrow(&mut self, local: &Local) {
        if self.bytes.capacity() == 0 {
            self.bytes = local.take_output();
        }
    }

    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    pub fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// Clears the buffer after everything was sent.
    pub fn reset(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }

    pub fn release(&mut self, local: &Local) {
        if self.is_empty() {
            self.reset();
            local.give_output(std::mem::take(&mut self.bytes));
        }
    }

    /// Sends everything, and suspends the fiber while the socket is full.
    ///
    /// # Errors
    /// The client is gone or too slow, or the statement was killed. A failure is final, because
    /// part of a packet may have been sent.
    pub fn send(&mut self, transport: &mut Transport, cx: &FiberCx<'_>) -> Result<(), Interrupt> {
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        if self.is_empty() {
            return Ok(());
        }
        let result = self.send_all(transport, cx);
        self.lost = result.err();
        result
    }

    #[inline]
    fn send_all(&mut self, transport: &mut Transport, cx: &FiberCx<'_>) -> Result<(), Interrupt> {
        let lost = |_| Interrupt::ConnectionLost;
        let mut in_time = true;
        loop {
            let before = self.sent;
            // To encrypt or compress a long answer takes long, so other sessions have their turns.
            while transport.is_encoded() && self.send_once(transport, cx.local).map_err(lost)? {
                if cx.slice_over() {
                    cx.suspend(Suspend::Yield);
                }
            }
            if self.send_some(transport, cx.local).map_err(lost)? {
                return Ok(());
            }
            in_time = wait_writable(in_time, self.sent > before, transport, cx)?;
        }
    }

    /// As [`Self::send`], with `value` behind the buffer.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_with(
        &mut self,
        value: &[u8],
        transport: &mut Transport,
        cx: &FiberCx<'_>,
    ) -> Result<(), Interrupt> {
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        // `send_all` sends what TLS and compression hold, and cancels the writable edge.
        let result = self
            .send_value(value, transport, cx)
            .and_then(|()| self.send_all(transport, cx));
        self.lost = result.err();
        result
    }

    /// Sends the buffer and `value`. TLS and compression may still hold some of the bytes.
    fn send_value(
        &mut self,
        mut value: &[u8],
        transport: &mut Transport,
        cx: &FiberCx<'_>,
    ) -> Result<(), Interrupt> {
        let mut in_time = true;
        let mut advanced = false;
        while !value.is_empty() {
            cx.local.just_ended.set(None);
            match transport.send_two(self.pending(), value) {
                Ok(n) => {
                    let of_buffer = n.min(self.pending().len());
                    self.sent += of_buffer;
                    value = &value[n - of_buffer..];
                    counters_add(&cx.local.counters.bytes_sent, n as u64);
                    advanced = true;
                    if transport.is_encoded() && cx.slice_over() {
                        cx.suspend(Suspend::Yield);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    in_time = wait_writable(in_time, advanced, transport, cx)?;
                    advanced = false;
                }
                Err(_) => return Err(Interrupt::ConnectionLost),
            }
        }
        Ok(())
    }

    /// Sends as much as the socket accepts. True: everything is sent, and the writable edge is not
    /// requested any more.
    pub fn send_some(&mut self, transport: &mut Transport, local: &Local) -> io::Result<bool> {
        while self.send_once(transport, local)? {}
        if !self.is_empty() || !transport.flush_layers()? {
            return Ok(false);
        }
        self.reset();
        transport.want_writable(&local.poll, false)?;
        Ok(true)
    }

    /// Sends once. False: nothing is left to send, or the socket accepts nothing.
    #[inline]
    fn send_once(&mut self, transport: &mut Transport, local: &Local) -> io::Result<bool> {
        if self.is_empty() {
            return Ok(false);
        }
        local.just_ended.set(None);
        match transport.send(self.pending()) {
            Ok(n) => {
                self.sent += n;
                counters_add(&local.counters.bytes_sent, n as u64);
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(e) => Err(e),
        }
    }
}

/// Suspends the fiber until the socket accepts bytes, at most for the client's time to read.
/// `in_time` is the answer of the call before, `advanced` whether a byte was sent since. Returns
/// false if the time is over.
///
/// # Errors
/// The client has read nothing in its time, or the statement was killed.
fn wait_writable(
    in_time: bool,
    advanced: bool,
    transport: &mut Transport,
    cx: &FiberCx<'_>,
) -> Result<bool, Interrupt> {
    // A timeout without an edge may still have made room for some bytes. The client is too slow
    // only if no byte was accepted.
    if !in_time && !advanced {
        return Err(Interrupt::ConnectionLost);
    }
    transport
        .want_writable(&cx.local.poll, true)
        .map_err(|_| Interrupt::ConnectionLost)?;
    cx.wait_writable(Instant::now() + cx.limits().net_write_timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoSessions;

    impl crate::net::fiber::handler::SessionFactory for NoSessions {
        fn connect(
            &self,
            _: &crate::net::worker::FiberCx<'_>,
            _: crate::net::fiber::handler::LoginInfo,
        ) -> Result<
            Box<dyn crate::net::fiber::handler::SessionHandler>,
            crate::net::fiber::handler::ClientError,
        > {
            Err(crate::net::conn::too_many_connections())
        }

        fn survives_panic(&self) -> bool {
            true
        }
    }

    fn local() -> Local {
        let poll = mio::Poll::new().unwrap();
        let registry = poll.registry().try_clone().unwrap();
        Local::new(
            0,
            Default::default(),
            registry,
            std::sync::Arc::new(NoSessions),
            Default::default(),
        )
    }

    #[test]
    fn input_compacts_grows_with_arrival_and_goes_back() {
        let local = local();
        let mut input = Input::default();
        let n = input.space(&local, 4).len();
        assert_eq!(n, RECEIVE_BYTES);
        // A packet of 1 GiB is announced: the buffer doubles only when it is full.
        input.received(n);
        assert_eq!(input.space(&local, 1 << 30).len(), RECEIVE_BYTES);
        input.received(100);
        input.consume(n);
        assert_eq!(input.data().len(), 100);
        // The next packet does not fit after the consumed bytes, so the rest moves to the front.
        assert_eq!(
            input.space(&local, 2 * RECEIVE_BYTES).len(),
            2 * RECEIVE_BYTES - 100
        );
        input.release(&local);
        assert_eq!(input.data().len(), 100, "not empty, not given back");
        input.consume(100);
        input.release(&local);
        assert_eq!(input.bytes.capacity(), 0);
        assert!(local.take_input().len() >= RECEIVE_BYTES);
    }
}
