//! ucs2, utf16, utf16le and utf32: Unicode in units of two or four bytes.

/// One of the four encodings.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wide {
    /// Two bytes each, big-endian. Half of a surrogate pair is a character of its own, without a
    /// code point.
    Ucs2,
    Utf16,
    Utf16Le,
    /// Four bytes each, big-endian.
    Utf32,
}

const HIGH_SURROGATES: std::ops::RangeInclusive<u16> = 0xD800..=0xDBFF;
const LOW_SURROGATES: std::ops::RangeInclusive<u16> = 0xDC00..=0xDFFF;

impl Wide {
    /// Bytes of the shortest character.
    pub(crate) const fn unit(self) -> usize {
        match self {
            Wide::Utf32 => 4,
            _ => 2,
        }
    }

    /// The 16-bit unit at the front.
    fn half(self, bytes: &[u8]) -> Option<u16> {
        let two = *bytes.first_chunk()?;
        Some(match self {
            Wide::Utf16Le => u16::from_le_bytes(two),
            _ => u16::from_be_bytes(two),
        })
    }

    /// Length of the well-formed character at the front; `None`: there is none.
    pub(crate) fn len(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Wide::Ucs2 => (bytes.len() >= 2).then_some(2),
            _ => self.decode(bytes).map(|(_, len)| len),
        }
    }

    /// Whether a character may begin at byte `at`.
    pub(crate) fn is_boundary(self, bytes: &[u8], at: usize) -> bool {
        let is_second = || {
            self.half(&bytes[at..])
                .is_some_and(|h| LOW_SURROGATES.contains(&h))
        };
        let paired = matches!(self, Wide::Utf16 | Wide::Utf16Le);
        at.is_multiple_of(self.unit()) && !(paired && is_second())
    }

    /// The character at the front, and its length.
    pub(crate) fn decode(self, bytes: &[u8]) -> Option<(char, usize)> {
        if self == Wide::Utf32 {
            let c = char::from_u32(u32::from_be_bytes(*bytes.first_chunk()?))?;
            return Some((c, 4));
        }
        let first = self.half(bytes)?;
        if let Some(c) = char::from_u32(u32::from(first)) {
            return Some((c, 2));
        }
        if self == Wide::Ucs2 || !HIGH_SURROGATES.contains(&first) {
            return None;
        }
        let second = self.half(&bytes[2..])?;
        if !LOW_SURROGATES.contains(&second) {
            return None;
        }
        let offset = u32::from(first & 0x3FF) << 10 | u32::from(second & 0x3FF);
        char::from_u32(0x1_0000 + offset).map(|c| (c, 4))
    }

    /// Appends a character; false, and nothing appended: the encoding lacks it.
    pub(crate) fn encode(self, c: char, out: &mut Vec<u8>) -> bool {
        if self == Wide::Utf32 {
            out.extend(u32::from(c).to_be_bytes());
            return true;
        }
        if self == Wide::Ucs2 && c > '\u{FFFF}' {
            return false;
        }
        for half in c.encode_utf16(&mut [0; 2]) {
            out.extend(match self {
                Wide::Utf16Le => half.to_le_bytes(),
                _ => half.to_be_bytes(),
            });
        }
        true
    }

    /// Calls `push` with the UTF-8 bytes of each character. Half of a surrogate pair becomes three
    /// bytes as well. Other bytes that are no character become 0xFF, so that different strings stay
    /// different.
    pub(crate) fn to_utf8(self, bytes: &[u8], mut push: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.decode(rest) {
                Some((c, len)) => {
                    push(c.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = &rest[len..];
                }
                None if self == Wide::Ucs2 && rest.len() >= 2 => {
                    let (high, low) = (rest[0], rest[1]);
                    let second = 0x80 | (high & 0x0F) << 2 | low >> 6;
                    push(&[0xE0 | high >> 4, second, 0x80 | low & 0x3F]);
                    rest = &rest[2..];
                }
                None => {
                    push(&[0xFF]);
                    rest = &rest[1..];
                }
            }
        }
    }
}
