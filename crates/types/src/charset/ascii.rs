//! Finding out whether bytes are ASCII.

/// Bytes that the standard library looks at together.
const BLOCK: usize = 64;
const WORD: usize = size_of::<u64>();
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Whether all bytes are below 128.
///
/// `[u8]::is_ascii` takes whole blocks at a time, but looks at the bytes behind the last block one
/// by one: of a text of 117 bytes, 53. This takes them by words; the last word overlaps the one
/// before it.
#[inline]
pub fn is_ascii(bytes: &[u8]) -> bool {
    let (blocks, rest) = bytes.split_at(bytes.len() & !(BLOCK - 1));
    if !blocks.is_ascii() {
        return false;
    }
    let words = rest.as_chunks::<WORD>().0;
    let of_words = words.iter().fold(0, |all, w| all | u64::from_ne_bytes(*w));
    let end = match bytes.last_chunk::<WORD>() {
        Some(last) => u64::from_ne_bytes(*last),
        None => u64::from(bytes.iter().fold(0, |all, b| all | b)),
    };
    (of_words | end) & HIGH_BITS == 0
}

#[cfg(test)]
mod tests {
    use super::is_ascii;

    #[test]
    fn one_high_byte_is_found_anywhere() {
        for len in 0..=200 {
            let mut bytes = vec![0x7F; len];
            assert!(is_ascii(&bytes));
            for at in 0..len {
                bytes[at] = 0x80;
                assert!(!is_ascii(&bytes), "{at} of {len}");
                bytes[at] = 0x7F;
            }
        }
    }
}
