//! A file that the client sends while its command runs (LOAD DATA LOCAL).
//!
//! The client answers the request packet with packets that hold the file's bytes and ends with an
//! empty one. Their payloads are handed on as they arrive, so no packet is ever held whole.

use std::time::Instant;

use nfold_protocol::frame::HEADER;

use super::buffer::Input;
use super::transport::{Received, Transport};
use super::{FiberCx, Interrupt, add as counters_add};

/// Payload bytes of a packet that the next packet continues.
const LONGEST: usize = 0xff_ffff;

/// State of one transfer.
#[derive(Default)]
pub(crate) struct Upload {
    input: Input,
    /// Payload bytes of the current packet that were not handed on yet.
    left: usize,
    /// The last packet was one of the longest: the next one belongs to it, even an empty one.
    continued: bool,
    ended: bool,
}

impl Upload {
    /// Appends the next bytes to `to`; false: the file has ended. `sequence` becomes the number
    /// behind that of the last packet. `stops`: KILL QUERY ends the wait for bytes.
    pub fn read(
        &mut self,
        transport: &mut Transport,
        (cx, stops): (&FiberCx<'_>, bool),
        sequence: &mut u8,
        to: &mut Vec<u8>,
    ) -> Result<bool, Interrupt> {
        loop {
            if self.ended {
                return Ok(false);
            }
            if self.take(sequence, to) {
                return Ok(true);
            }
            if !self.ended {
                self.receive(transport, cx, stops)?;
            }
        }
    }

    /// Hands received payload bytes on; false: there are none.
    fn take(&mut self, sequence: &mut u8, to: &mut Vec<u8>) -> bool {
        let before = to.len();
        loop {
            let data = self.input.data();
            if self.left > 0 && !data.is_empty() {
                let n = self.left.min(data.len());
                to.extend_from_slice(&data[..n]);
                self.left -= n;
                self.input.consume(n);
                continue;
            }
            if self.left > 0 || data.len() < HEADER {
                return to.len() > before;
            }
            let len = usize::from(data[0]) | usize::from(data[1]) << 8 | usize::from(data[2]) << 16;
            *sequence = data[3].wrapping_add(1);
            self.input.consume(HEADER);
            if len == 0 && !self.continued {
                self.ended = true;
                return to.len() > before;
            }
            self.continued = len == LONGEST;
            self.left = len;
        }
    }

    /// Receives once, and suspends while nothing arrives.
    fn receive(
        &mut self,
        transport: &mut Transport,
        cx: &FiberCx<'_>,
        stops: bool,
    ) -> Result<(), Interrupt> {
        let lost = |_| Interrupt::ConnectionLost;
        let mut in_time = true;
        loop {
            let space = self.input.space(cx.local, 0);
            match transport.recv(space).map_err(lost)? {
                Received::Bytes { n, .. } => {
                    self.input.received(n);
                    counters_add(&cx.local.counters.bytes_received, n as u64);
                    return Ok(());
                }
                Received::Closed => return Err(Interrupt::ConnectionLost),
                Received::Nothing if !in_time => return Err(Interrupt::ConnectionLost),
                Received::Nothing => {}
            }
            in_time = cx.wait_readable(Instant::now() + cx.limits().net_read_timeout)?;
            if stops {
                cx.interrupted()?;
            }
        }
    }

    /// Received bytes that do not belong to the file.
    pub fn into_unread(self) -> Input {
        self.input
    }
}
