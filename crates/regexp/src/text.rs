//! Characters of a subject, which is UTF-8.

/// The character at a boundary of UTF-8 text and its length. Not at the end of the text.
#[inline]
pub(crate) fn char_at(text: &[u8], at: usize) -> (char, usize) {
    let first = text[at];
    if first < 0x80 {
        return (char::from(first), 1);
    }
    let low = |n: usize| u32::from(text[at + n] & 0x3f);
    let lead = u32::from(first);
    let (code, len) = match first {
        0xf0.. => ((lead & 7) << 18 | low(1) << 12 | low(2) << 6 | low(3), 4),
        0xe0.. => ((lead & 15) << 12 | low(1) << 6 | low(2), 3),
        _ => ((lead & 31) << 6 | low(1), 2),
    };
    (char::from_u32(code).unwrap_or('\u{fffd}'), len)
}
