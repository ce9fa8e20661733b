//! Base64 as MySQL reads and writes it (RFC 4648, section 4).

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use crate::checkpoint::Checkpoint;
use crate::error::SqlError;

/// Bits of the last symbol that belong to no byte are ignored, as in MySQL.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The bytes that become one line of 76 symbols.
pub const LINE_BYTES: usize = 57;
/// The symbols between two checkpoints: whole groups of four.
const PIECE: usize = 64 << 10;

/// Appends the symbols of `bytes` in lines of 76, with `line_break` between them.
pub fn encode_lines(bytes: &[u8], line_break: &[u8], out: &mut Vec<u8>) {
    let lines = bytes.len().div_ceil(LINE_BYTES);
    out.reserve(bytes.len().div_ceil(3) * 4 + lines * line_break.len());
    for (n, line) in bytes.chunks(LINE_BYTES).enumerate() {
        if n > 0 {
            out.extend_from_slice(line_break);
        }
        let from = out.len();
        out.resize(from + line.len().div_ceil(3) * 4, 0);
        let written = ENGINE.encode_slice(line, &mut out[from..]);
        debug_assert!(written.is_ok(), "there is room for the line");
    }
}

/// As MySQL sees white space: the vertical tab is among it.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0B
}

/// The bytes of a text, in which white space may stand anywhere. `None`: it is no base64.
///
/// # Errors
/// That of the checkpoint.
pub fn decode(text: &[u8], checkpoint: &dyn Checkpoint) -> Result<Option<Vec<u8>>, SqlError> {
    let mut symbols = Vec::with_capacity(text.len());
    for piece in text.chunks(PIECE) {
        checkpoint.checkpoint(piece.len() as u64)?;
        symbols.extend(piece.iter().filter(|b| !is_space(**b)));
    }
    let mut bytes = Vec::with_capacity(symbols.len() / 4 * 3);
    let mut rest = &symbols[..];
    while !rest.is_empty() {
        let piece;
        (piece, rest) = rest.split_at(rest.len().min(PIECE));
        checkpoint.checkpoint(piece.len() as u64)?;
        let padded_inside = !rest.is_empty() && piece.ends_with(b"=");
        if padded_inside || ENGINE.decode_vec(piece, &mut bytes).is_err() {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::NoCheckpoint;

    fn decoded(text: &[u8]) -> Option<Vec<u8>> {
        decode(text, &NoCheckpoint).unwrap()
    }

    #[test]
    fn white_space_and_padding_are_read() {
        assert_eq!(
            decoded(b" Zm9v\n\x0BYmFy ").as_deref(),
            Some(&b"foobar"[..])
        );
        assert_eq!(decoded(b"Zm8=").as_deref(), Some(&b"fo"[..]));
        // The last bits of the second symbol count for nothing.
        assert_eq!(decoded(b"Zh==").as_deref(), Some(&b"f"[..]));
        assert_eq!(decoded(b"").as_deref(), Some(&b""[..]));
        for bad in [
            "x", "Zm9", "Zm9!", "=AAA", "Z=9v", "Zm=v", "Zg==Zg==", "====", "Y===", "Y*==",
        ] {
            assert_eq!(decoded(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn long_values_are_read_as_they_were_written() {
        for len in [
            0,
            1,
            56,
            57,
            58,
            114,
            PIECE - 1,
            PIECE,
            PIECE + 1,
            3 * PIECE + 40,
        ] {
            let bytes: Vec<u8> = (0..len).map(|n| (n * 7) as u8).collect();
            let mut text = Vec::new();
            encode_lines(&bytes, b"\n", &mut text);
            assert!(text.split(|b| *b == b'\n').all(|line| line.len() <= 76));
            assert_eq!(decoded(&text), Some(bytes), "{len} bytes");
        }
    }
}
