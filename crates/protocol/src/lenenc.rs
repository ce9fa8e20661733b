//! Length-encoded integers and strings, and a bounds-checked reader of one payload.
//!
//! # Picture
//! ```text
//! < 251          one byte
//! < 2^16         fc, 2 bytes        < 2^24   fd, 3 bytes        else   fe, 8 bytes
//! (little-endian)
//! fb             NULL in a text row
//! ff             never a length
//! ```

/// A packet that violates the protocol. It names the field that was missing or invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "malformed packet: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Appends a length-encoded integer.
#[inline]
pub fn put_int(out: &mut Vec<u8>, v: u64) {
    if v < 251 {
        out.push(v as u8);
    } else {
        put_long_int(out, v);
    }
}

fn put_long_int(out: &mut Vec<u8>, v: u64) {
    if v < 1 << 16 {
        out.extend_from_slice(&[0xfc, v as u8, (v >> 8) as u8]);
    } else if v < 1 << 24 {
        out.extend_from_slice(&[0xfd, v as u8, (v >> 8) as u8, (v >> 16) as u8]);
    } else {
        out.push(0xfe);
        out.extend_from_slice(&v.to_le_bytes());
    }
}

/// Appends a length-encoded string.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, s: &[u8]) {
    put_int(out, s.len() as u64);
    out.extend_from_slice(s);
}

/// Reads fields from the front of one payload. Each method takes a name of the field for its error.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// The bytes that have not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads exactly `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(Malformed(what))?;
        self.rest = tail;
        Ok(head)
    }

    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        Ok(self.take(1, what)?[0])
    }

    #[inline]
    pub fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        let b = self.take(2, what)?;
        Ok(u16::from_le_bytes([b[0], b[1]]))
    }

    #[inline]
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        let b = self.take(4, what)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    pub fn u64(&mut self, what: &'static str) -> Result<u64, Malformed> {
        let mut w = [0; 8];
        w.copy_from_slice(self.take(8, what)?);
        Ok(u64::from_le_bytes(w))
    }

    /// Reads a length-encoded integer. The NULL marker (fb) and ff are malformed here.
    pub fn lenenc_int(&mut self, what: &'static str) -> Result<u64, Malformed> {
        Ok(match self.u8(what)? {
            n @ 0..=250 => u64::from(n),
            0xfc => u64::from(self.u16(what)?),
            0xfd => {
                let b = self.take(3, what)?;
                u64::from(u32::from_le_bytes([b[0], b[1], b[2], 0]))
            }
            0xfe => self.u64(what)?,
            _ => return Err(Malformed(what)),
        })
    }

    /// Reads a length-encoded string.
    pub fn lenenc_bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let len = self.lenenc_int(what)?;
        let len = usize::try_from(len).map_err(|_| Malformed(what))?;
        self.take(len, what)
    }

    /// Reads a string that ends with a zero byte, and returns it without that byte.
    pub fn nul_bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let end = self
            .rest
            .iter()
            .position(|&b| b == 0)
            .ok_or(Malformed(what))?;
        let s = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(s)
    }

    /// As [`Self::nul_bytes`], but the string may also end with the payload, because some clients
    /// omit the last zero byte.
    pub fn nul_or_end(&mut self) -> &'a [u8] {
        match self.rest.iter().position(|&b| b == 0) {
            Some(end) => {
                let s = &self.rest[..end];
                self.rest = &self.rest[end + 1..];
                s
            }
            None => std::mem::take(&mut self.rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integer_widths_change_at_protocol_limits() {
        for (v, len) in [
            (0, 1),
            (250, 1),
            (251, 3),
            (65535, 3),
            (65536, 4),
            ((1 << 24) - 1, 4),
            (1 << 24, 9),
            (u64::MAX, 9),
        ] {
            let mut out = vec![];
            put_int(&mut out, v);
            assert_eq!(out.len(), len, "{v}");
            assert_eq!(Reader::new(&out).lenenc_int("v"), Ok(v));
        }
    }

    #[test]
    fn null_and_error_markers_are_not_lengths() {
        assert!(Reader::new(&[0xfb]).lenenc_int("v").is_err());
        assert!(Reader::new(&[0xff, 0, 0]).lenenc_int("v").is_err());
    }

    proptest! {
        #[test]
        fn strings_round_trip_and_truncation_fails(s in proptest::collection::vec(any::<u8>(), 0..700), cut in 1usize..20) {
            let mut out = vec![];
            put_bytes(&mut out, &s);
            prop_assert_eq!(Reader::new(&out).lenenc_bytes("s"), Ok(&s[..]));
            let cut = cut.min(out.len());
            prop_assert!(Reader::new(&out[..out.len() - cut]).lenenc_bytes("s").is_err());
        }
    }
}
