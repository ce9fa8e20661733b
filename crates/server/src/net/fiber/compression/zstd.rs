//! zstd for the compressed protocol. Each packet is one frame (RFC 8878).

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::malformed;

/// The largest window of a frame. A packet is not larger, so no client needs more.
const LARGEST_WINDOW: u64 = 16 << 20;
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Reads one frame block by block, so that a call takes the time of one block of 128 KiB.
pub(super) struct FrameReader {
    decoder: FrameDecoder,
    begun: bool,
}

impl FrameReader {
    pub fn new() -> Self {
        FrameReader {
            decoder: FrameDecoder::new(),
            begun: false,
        }
    }

    /// Decodes at most one block of `frame`, which must be complete, and moves decoded bytes to
    /// `to`; returns how many bytes were read and written. It hands on bytes that are not in the
    /// frame's window any more, and all others at the end.
    pub fn read(&mut self, frame: &[u8], to: &mut [u8]) -> io::Result<(usize, usize)> {
        let bad = || malformed("the body of a packet is not zstd");
        let mut rest = frame;
        if !self.begun {
            if window(frame).is_none_or(|bytes| bytes > LARGEST_WINDOW) {
                return Err(malformed(
                    "a packet has no zstd frame, or one with a large window",
                ));
            }
            self.decoder.init(&mut rest).map_err(|_| bad())?;
            self.begun = true;
        }
        if self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            // A client must not end the server by a frame that the library panics at.
            let decoded = catch_unwind(AssertUnwindSafe(|| {
                self.decoder.decode_blocks(&mut rest, one)
            }));
            decoded.map_err(|_| bad())?.map_err(|_| bad())?;
        }
        let written = self.decoder.read(to)?;
        Ok((frame.len() - rest.len(), written))
    }
}

/// The window size of a frame in bytes; `None`: it is no frame.
fn window(frame: &[u8]) -> Option<u64> {
    let descriptor = *frame.strip_prefix(&MAGIC)?.first()?;
    let is_single_segment = descriptor & 0x20 != 0;
    let byte = |at: usize| frame.get(at).map(|b| u64::from(*b));
    if !is_single_segment {
        let (exponent, mantissa) = (byte(5)? >> 3, byte(5)? & 7);
        let base = 1u64 << (10 + exponent);
        return Some(base + base / 8 * mantissa);
    }
    // The window is the whole content, whose size follows the dictionary's id.
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let (size, offset) = [(1, 0), (2, 256), (4, 0), (8, 0)][usize::from(descriptor >> 6)];
    let start = 5 + dictionary;
    let size = (start..start + size)
        .rev()
        .try_fold(0, |sum: u64, at| Some(sum << 8 | byte(at)?))?;
    size.checked_add(offset)
}

/// Appends `plain` as one frame to `to`.
pub(super) fn compress(plain: &[u8], to: &mut Vec<u8>) {
    to.append(&mut compress_to_vec(plain, CompressionLevel::Fastest));
}
