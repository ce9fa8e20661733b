//! Packet framing: finds complete payloads in received bytes, and writes packets directly into a
//! send buffer.
//!
//! # Picture
//! ```text
//! [ length: 3 bytes little-endian | sequence: 1 byte | payload ]
//! ```
//! A length of 2^24-1 means that another packet continues the payload. So a payload of 16 MiB - 1
//! or more takes several packets. If its last packet has exactly that length, an empty packet
//! follows.
//!
//! # Invariants
//! - I1: after `end_packet`, the buffer contains only complete packets, and the bytes before
//!   `start` are unchanged.
//! - I2: the sequence numbers of a command and its response count up from the client's 0, modulo
//!   256.
//!
//! # Cost
//! A payload of one packet is a slice of the receive buffer. Bytes are copied only to join or split
//! payloads beyond 16 MiB.

/// The largest payload of one packet in bytes.
pub const MAX_CHUNK: usize = 0xff_ffff;
/// The size of a packet header in bytes.
pub const HEADER: usize = 4;

/// The state of the payload at the front of the receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// The payload is incomplete. The caller should try again once at least `need` bytes are
    /// buffered.
    Partial { need: usize },
    /// A payload in a single packet. It is `HEADER..HEADER + len` of the buffer, and the packet
    /// takes `HEADER + len` bytes.
    Whole { len: usize, sequence: u8 },
    /// A payload spread over several packets, which take `total` bytes. [`join`] makes it
    /// contiguous.
    Split {
        len: usize,
        total: usize,
        last_sequence: u8,
    },
}

/// Why the bytes at the front of the receive buffer are rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The payload is, or will be, larger than `max_allowed_packet`: error 1153. `sequence` is the
    /// number of the packet to which the error responds.
    TooLarge { sequence: u8 },
    /// The sequence numbers do not count up from the expected one: error 1156.
    OutOfOrder,
}

fn header(buf: &[u8]) -> Option<(usize, u8)> {
    let h = buf.get(..HEADER)?;
    Some((u32::from_le_bytes([h[0], h[1], h[2], 0]) as usize, h[3]))
}

/// Looks for a payload at the front of `buf`. `sequence` is the expected number of the first
/// packet. `max` limits the payload in bytes (`max_allowed_packet`). A payload that is too large is
/// rejected as soon as a header announces it.
pub fn next_frame(buf: &[u8], sequence: u8, max: usize) -> Result<Frame, FrameError> {
    let Some((len, seq)) = header(buf) else {
        return Ok(Frame::Partial { need: HEADER });
    };
    if seq != sequence {
        return Err(FrameError::OutOfOrder);
    }
    if len > max {
        return Err(FrameError::TooLarge { sequence: seq });
    }
    if len < MAX_CHUNK {
        return Ok(if buf.len() < HEADER + len {
            Frame::Partial { need: HEADER + len }
        } else {
            Frame::Whole { len, sequence: seq }
        });
    }
    let (mut at, mut total_len, mut seq) = (0, 0, seq);
    loop {
        let Some((len, s)) = header(&buf[at..]) else {
            return Ok(Frame::Partial { need: at + HEADER });
        };
        if s != seq {
            return Err(FrameError::OutOfOrder);
        }
        total_len += len;
        if total_len > max {
            return Err(FrameError::TooLarge { sequence: s });
        }
        at += HEADER + len;
        if buf.len() < at {
            return Ok(Frame::Partial { need: at });
        }
        if len < MAX_CHUNK {
            return Ok(Frame::Split {
                len: total_len,
                total: at,
                last_sequence: seq,
            });
        }
        seq = seq.wrapping_add(1);
    }
}

/// Joins the packets of a [`Frame::Split`] at the front of `buf`. Afterwards, the payload is
/// `HEADER..HEADER + len`. Returns `len`.
pub fn join(buf: &mut [u8], total: usize) -> usize {
    let mut to = HEADER;
    let mut from = 0;
    while from + HEADER <= total {
        let Some((len, _)) = header(&buf[from..total]) else {
            break;
        };
        from += HEADER;
        let end = (from + len).min(total);
        buf.copy_within(from..end, to);
        to += end - from;
        from = end;
    }
    to - HEADER
}

/// Starts a packet at the end of `out`. The caller then appends the payload and calls
/// [`end_packet`] with the returned position.
#[inline]
pub fn begin_packet(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    start
}

/// Ends the packet that begins at `start`: fills in its header, splits the packet if it is too
/// long, and advances `sequence`.
#[inline]
pub fn end_packet(out: &mut Vec<u8>, start: usize, sequence: &mut u8) {
    debug_assert!(
        out.len() >= start + HEADER,
        "I1: the header was reserved by begin_packet"
    );
    let len = out.len() - start - HEADER;
    if len >= MAX_CHUNK {
        return split_packet(out, start, sequence);
    }
    put_header(out, start, len, sequence);
}

#[inline]
fn put_header(out: &mut [u8], at: usize, len: usize, sequence: &mut u8) {
    out[at..at + HEADER].copy_from_slice(&[
        len as u8,
        (len >> 8) as u8,
        (len >> 16) as u8,
        *sequence,
    ]);
    *sequence = sequence.wrapping_add(1);
}

/// Numbers packets from `sequence` on.
pub fn renumber(packets: &mut [u8], sequence: &mut u8) {
    let mut at = 0;
    while let Some(&mut [a, b, c, ref mut number]) = packets
        .get_mut(at..)
        .and_then(<[u8]>::first_chunk_mut::<HEADER>)
    {
        *number = *sequence;
        *sequence = sequence.wrapping_add(1);
        at += HEADER + usize::from(a) + (usize::from(b) << 8) + (usize::from(c) << 16);
    }
}

#[cold]
fn split_packet(out: &mut Vec<u8>, start: usize, sequence: &mut u8) {
    let len = out.len() - start - HEADER;
    let extra = len / MAX_CHUNK;
    let old_end = out.len();
    out.resize(old_end + extra * HEADER, 0);
    // Backwards, because a later chunk moves farther: so no chunk is overwritten before it is
    // moved.
    for i in (1..=extra).rev() {
        let from = start + HEADER + i * MAX_CHUNK;
        let end = (from + MAX_CHUNK).min(old_end);
        out.copy_within(from..end, from + i * HEADER);
    }
    for i in 0..=extra {
        let chunk = MAX_CHUNK.min(len - i * MAX_CHUNK);
        put_header(out, start + i * (MAX_CHUNK + HEADER), chunk, sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(payload: &[u8], seq: u8) -> Vec<u8> {
        let mut out = vec![];
        let mut seq = seq;
        let at = begin_packet(&mut out);
        out.extend_from_slice(payload);
        end_packet(&mut out, at, &mut seq);
        out
    }

    #[test]
    fn renumbered_packets_follow_the_sequence() {
        let mut packets = [packet(b"abc", 3), packet(b"", 9), packet(&[7; 300], 1)].concat();
        let mut sequence = 254;
        renumber(&mut packets, &mut sequence);
        let expected = [packet(b"abc", 254), packet(b"", 255), packet(&[7; 300], 0)].concat();
        assert_eq!((packets, sequence), (expected, 1));
    }

    #[test]
    fn long_payloads_split_and_rejoin() {
        for len in [
            MAX_CHUNK - 1,
            MAX_CHUNK,
            MAX_CHUNK + 1,
            2 * MAX_CHUNK,
            2 * MAX_CHUNK + 77,
        ] {
            let payload: Vec<u8> = (0..len).map(|i| ((i * 31) >> 3) as u8).collect();
            let mut seq = 254;
            let mut out = b"before".to_vec();
            let at = begin_packet(&mut out);
            out.extend_from_slice(&payload);
            end_packet(&mut out, at, &mut seq);
            assert_eq!(&out[..6], b"before");
            let mut bytes = out.split_off(6);
            assert_eq!(seq, 254u8.wrapping_add((len / MAX_CHUNK) as u8 + 1));
            match next_frame(&bytes, 254, usize::MAX).unwrap() {
                Frame::Whole { len: l, .. } => {
                    assert_eq!((l, &bytes[HEADER..]), (len, &payload[..]))
                }
                Frame::Split {
                    len: l,
                    total,
                    last_sequence,
                } => {
                    assert_eq!((l, total), (len, bytes.len()));
                    assert_eq!(last_sequence, seq.wrapping_sub(1));
                    assert_eq!(join(&mut bytes, total), len);
                    assert!(bytes[HEADER..HEADER + len] == payload[..]);
                }
                f => panic!("{f:?}"),
            }
            let refused = ((len - 1) / MAX_CHUNK) as u8;
            assert_eq!(
                next_frame(&packet(&payload, 0), 0, len - 1),
                Err(FrameError::TooLarge { sequence: refused })
            );
        }
    }

    #[test]
    fn sequence_is_checked() {
        assert_eq!(
            next_frame(&packet(b"x", 3), 0, 100),
            Err(FrameError::OutOfOrder)
        );
        assert_eq!(
            next_frame(&packet(b"x", 3), 3, 100),
            Ok(Frame::Whole {
                len: 1,
                sequence: 3
            })
        );
    }

    proptest! {
        #[test]
        fn frames_lie_inside_the_buffer(bytes in proptest::collection::vec(any::<u8>(), 0..200), seq in 0u8..3, max in 0usize..300) {
            match next_frame(&bytes, seq, max) {
                Ok(Frame::Whole { len, .. }) => prop_assert!(HEADER + len <= bytes.len() && len <= max),
                Ok(Frame::Split { .. }) => prop_assert!(false, "the payload is too short to be split"),
                Ok(Frame::Partial { need }) => prop_assert!(need > bytes.len()),
                Err(_) => {}
            }
        }

        #[test]
        fn pipelined_packets_are_separated(payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 1..8)) {
            let all: Vec<u8> = payloads.iter().flat_map(|p| packet(p, 0)).collect();
            let mut at = 0;
            for p in &payloads {
                let Ok(Frame::Whole { len, .. }) = next_frame(&all[at..], 0, 1000) else { panic!("whole") };
                prop_assert_eq!(&all[at + HEADER..at + HEADER + len], &p[..]);
                at += HEADER + len;
            }
            prop_assert_eq!(at, all.len());
        }
    }
}
