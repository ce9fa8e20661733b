//! What a client sends while its command runs: a file (LOAD DATA LOCAL), or the acknowledgements of
//! a semi-synchronous replica.
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

/// The most bytes of a packet that is read as a whole.
const MOST_IN_PACKET: usize = 4096;

/// The payload bytes of a packet, by its header.
fn payload_length(header: &[u8]) -> usize {
    usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16
}

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
                self.receive(transport, cx, (stops, false))?;
            }
        }
    }

    /// Appends the payload of the next packet to `to`. Waits for it without a limit of time.
    pub fn read_packet(
        &mut self,
        transport: &mut Transport,
        cx: &FiberCx<'_>,
        sequence: &mut u8,
        to: &mut Vec<u8>,
    ) -> Result<(), Interrupt> {
        loop {
            let data = self.input.data();
            if data.len() >= HEADER {
                let len = payload_length(data);
                if len > MOST_IN_PACKET {
                    return Err(Interrupt::ConnectionLost);
                }
                if data.len() >= HEADER + len {
                    to.extend_from_slice(&data[HEADER..HEADER + len]);
                    *sequence = data[3].wrapping_add(1);
                    self.input.consume(HEADER + len);
                    return Ok(());
                }
            }
            self.receive(transport, cx, (true, true))?;
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
            let len = payload_length(data);
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

    /// Receives once, and suspends while nothing arrives. `stops`: KILL QUERY ends the wait.
    /// `is_patient`: no time does.
    fn receive(
        &mut self,
        transport: &mut Transport,
        cx: &FiberCx<'_>,
        (stops, is_patient): (bool, bool),
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
                Received::Nothing if !in_time && !is_patient => {
                    return Err(Interrupt::ConnectionLost);
                }
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
