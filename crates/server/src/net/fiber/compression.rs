//! The compressed protocol: packets of zlib or zstd around the bytes of a connection.
//!
//! A compressed packet has a header of seven bytes: the length of its body (3 bytes), a sequence
//! number, and the length of the body once it is decompressed (3 bytes; 0: the body is not
//! compressed). A client's command begins again with number 0, and the answer goes on behind the
//! command's last packet. The bytes inside are ordinary packets, cut anywhere.
//!
//! Source: page_protocol_basic_compression.

mod zstd;

use std::cell::RefCell;
use std::io::{self, ErrorKind};

use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};
use nfold_protocol::consts::cap;

use zstd::FrameReader;

/// The length of a compressed packet's header.
const HEADER: usize = 7;
/// Shorter bytes are sent as they are, as in MySQL (MIN_COMPRESS_LENGTH).
const MIN_BYTES: usize = 50;
/// The most bytes that go into one packet: about 2 ms of zlib.
pub(crate) const CHUNK: usize = 64 << 10;
/// The most bytes that one call decompresses.
const MOST_AT_ONCE: usize = 256 << 10;
/// The size of a new buffer for compressed bytes that arrive.
const RECEIVE_BYTES: usize = 16 << 10;
/// zlib's default level, which MySQL uses.
pub(crate) const ZLIB_LEVEL: u8 = 6;

/// A way to compress, as in `protocol_compression_algorithms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Zlib,
    Zstd,
}

/// What `protocol_compression_algorithms` allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithms {
    pub zlib: bool,
    pub zstd: bool,
    pub uncompressed: bool,
}

impl Default for Algorithms {
    fn default() -> Self {
        Algorithms {
            zlib: true,
            zstd: true,
            uncompressed: true,
        }
    }
}

impl Algorithms {
    /// Reads a list such as `zlib,zstd,uncompressed`. `None`: it is empty or has another name.
    pub fn parse(list: &str) -> Option<Self> {
        let mut found = Algorithms {
            zlib: false,
            zstd: false,
            uncompressed: false,
        };
        for name in list.split(',') {
            match name.to_ascii_lowercase().as_str() {
                "zlib" => found.zlib = true,
                "zstd" => found.zstd = true,
                "uncompressed" => found.uncompressed = true,
                _ => return None,
            }
        }
        Some(found)
    }

    /// The capabilities that the greeting offers for them.
    pub fn capabilities(self) -> u32 {
        let zlib = if self.zlib { cap::COMPRESS } else { 0 };
        let zstd = if self.zstd {
            cap::ZSTD_COMPRESSION_ALGORITHM
        } else {
            0
        };
        zlib | zstd
    }
}

impl Algorithm {
    /// The algorithm of a connection with these capabilities. A client that has both gets zlib.
    pub fn of(capabilities: u32) -> Option<Self> {
        if capabilities & cap::COMPRESS != 0 {
            Some(Algorithm::Zlib)
        } else if capabilities & cap::ZSTD_COMPRESSION_ALGORITHM != 0 {
            Some(Algorithm::Zstd)
        } else {
            None
        }
    }
}

/// The state of one compressed connection.
pub(crate) struct Compression {
    algorithm: Algorithm,
    /// The number of the next packet that is sent.
    sequence: u8,
    received: Received,
    /// Packets to send. Those bytes before `sent` have been sent.
    packets: Vec<u8>,
    sent: usize,
}

/// Compressed bytes that arrived: `start..end` of an initialised buffer.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    packet: Option<Packet>,
}

/// A received packet that is not read to its end. All its bytes are in the buffer.
struct Packet {
    body: Body,
    /// Bytes of the body that are not decoded yet.
    left: usize,
    /// Bytes of the decompressed body that were not handed on yet.
    plain_left: usize,
}

enum Body {
    Plain,
    Zlib(Box<Decompress>),
    Zstd(Box<FrameReader>),
}

impl Compression {
    /// `early`: compressed bytes that have been received already.
    pub fn new(algorithm: Algorithm, early: &[u8]) -> Self {
        let mut received = Received::default();
        received.space(early.len().max(1))[..early.len()].copy_from_slice(early);
        received.end = early.len();
        Compression {
            algorithm,
            sequence: 0,
            received,
            packets: Vec::new(),
            sent: 0,
        }
    }

    /// Decompresses received bytes into `to`, which must not be empty. `None`: a packet is not
    /// complete. `Some(0)`: there is more, but none of it can be handed on yet.
    ///
    /// # Errors
    /// The client has sent no compressed packet.
    pub fn read(&mut self, to: &mut [u8]) -> io::Result<Option<usize>> {
        let Received {
            bytes,
            start,
            end,
            packet,
        } = &mut self.received;
        if packet.is_none() {
            let Some(header) = bytes.get(*start..*end).and_then(|b| b.first_chunk()) else {
                return Ok(None);
            };
            let (len, sequence, plain) = parse_header(header);
            if *end - *start < HEADER + len {
                return Ok(None);
            }
            *start += HEADER;
            self.sequence = sequence.wrapping_add(1);
            *packet = Some(Packet::new(
                self.algorithm,
                &bytes[*start..*start + len],
                plain,
            )?);
        }
        let Some(open) = packet else {
            return Ok(None);
        };
        let most = to.len().min(open.plain_left).min(MOST_AT_ONCE);
        let body = &bytes[*start..*start + open.left];
        let (read, written) = open.body.read(body, &mut to[..most])?;
        *start += read;
        open.left -= read;
        open.plain_left -= written;
        if open.plain_left == 0 {
            // What is left are checksums, which TCP and TLS have of their own.
            *start += open.left;
            *packet = None;
        } else if (read, written) == (0, 0) {
            return Err(malformed("a packet is shorter than its header says"));
        }
        Ok(Some(written))
    }

    /// Room for compressed bytes that arrive.
    pub fn space(&mut self) -> &mut [u8] {
        let received = &mut self.received;
        let pending = &received.bytes[received.start..received.end];
        let need = match pending.first_chunk() {
            Some(header) if received.packet.is_none() => HEADER + parse_header(header).0,
            _ => 0,
        };
        received.space(need)
    }

    pub fn received(&mut self, n: usize) {
        self.received.end += n;
    }

    /// Frees the buffer if it is empty: an idle connection needs none.
    pub fn release(&mut self) {
        let received = &mut self.received;
        if received.start == received.end && received.packet.is_none() {
            *received = Received::default();
        }
    }

    /// Compresses the first bytes of `plain` into a packet to send; returns how many.
    pub fn write(&mut self, plain: &[u8]) -> usize {
        let plain = &plain[..plain.len().min(CHUNK)];
        let start = self.packets.len();
        self.packets.extend_from_slice(&[0; HEADER]);
        let is_smaller = plain.len() >= MIN_BYTES
            && compress(self.algorithm, plain, &mut self.packets)
            && self.packets.len() - start - HEADER < plain.len();
        if !is_smaller {
            self.packets.truncate(start + HEADER);
            self.packets.extend_from_slice(plain);
        }
        let len = self.packets.len() - start - HEADER;
        let plain_len = if is_smaller { plain.len() } else { 0 };
        let header = &mut self.packets[start..start + HEADER];
        header[..3].copy_from_slice(&(len as u32).to_le_bytes()[..3]);
        header[3] = self.sequence;
        header[4..].copy_from_slice(&(plain_len as u32).to_le_bytes()[..3]);
        self.sequence = self.sequence.wrapping_add(1);
        plain.len()
    }

    /// The packets that are not sent yet.
    pub fn pending(&self) -> &[u8] {
        &self.packets[self.sent..]
    }

    /// Notes that the first `n` bytes of [`Self::pending`] were sent.
    pub fn sent(&mut self, n: usize) {
        self.sent += n;
        if self.sent == self.packets.len() {
            (self.packets, self.sent) = (Vec::new(), 0);
        }
    }
}

impl Received {
    /// Room behind the received bytes, for a packet of `need` bytes. The buffer grows towards it as
    /// bytes arrive, at most doubling.
    fn space(&mut self, need: usize) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            let len = need.min(2 * self.end).max(self.end + RECEIVE_BYTES);
            self.bytes.resize(len, 0);
        }
        &mut self.bytes[self.end..]
    }
}

impl Packet {
    fn new(algorithm: Algorithm, body: &[u8], plain: usize) -> io::Result<Self> {
        if plain == 0 {
            return Ok(Packet {
                body: Body::Plain,
                left: body.len(),
                plain_left: body.len(),
            });
        }
        let kind = match algorithm {
            Algorithm::Zlib => Body::Zlib(Box::new(Decompress::new(true))),
            Algorithm::Zstd => Body::Zstd(Box::new(FrameReader::new())),
        };
        Ok(Packet {
            body: kind,
            left: body.len(),
            plain_left: plain,
        })
    }
}

impl Body {
    /// Decompresses `body` into `to`; returns how many bytes were read and written.
    fn read(&mut self, body: &[u8], to: &mut [u8]) -> io::Result<(usize, usize)> {
        match self {
            Body::Plain => {
                to.copy_from_slice(&body[..to.len()]);
                Ok((to.len(), to.len()))
            }
            Body::Zlib(state) => {
                let (read, written) = (state.total_in(), state.total_out());
                let status = state.decompress(body, to, FlushDecompress::None);
                match status.map_err(|_| malformed("the body of a packet is not zlib"))? {
                    Status::Ok | Status::BufError | Status::StreamEnd => {}
                }
                let (read, written) = (state.total_in() - read, state.total_out() - written);
                Ok((read as usize, written as usize))
            }
            Body::Zstd(frame) => frame.read(body, to),
        }
    }
}

/// The lengths of a packet's body, compressed and not, and its number between them.
fn parse_header(header: &[u8; HEADER]) -> (usize, u8, usize) {
    let [a, b, c, sequence, d, e, f] = *header;
    let len = u32::from_le_bytes([a, b, c, 0]) as usize;
    (len, sequence, u32::from_le_bytes([d, e, f, 0]) as usize)
}

/// Appends `plain`, compressed, to `to`. False: it cannot be compressed.
fn compress(algorithm: Algorithm, plain: &[u8], to: &mut Vec<u8>) -> bool {
    match algorithm {
        Algorithm::Zlib => zlib(plain, to),
        Algorithm::Zstd => {
            zstd::compress(plain, to);
            true
        }
    }
}

thread_local! {
    /// The tables of zlib, some 300 KB. Each packet is a stream of its own, so connections can
    /// share them.
    static ZLIB: RefCell<Compress> =
        RefCell::new(Compress::new(flate2::Compression::new(u32::from(ZLIB_LEVEL)), true));
}

fn zlib(plain: &[u8], to: &mut Vec<u8>) -> bool {
    ZLIB.with_borrow_mut(|state| {
        state.reset();
        to.reserve(plain.len());
        // Where the result is longer than the reserved room, the bytes are sent as they are.
        matches!(
            state.compress_vec(plain, to, FlushCompress::Finish),
            Ok(Status::StreamEnd)
        )
    })
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests;
