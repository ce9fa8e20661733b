//! Result rows one behind the other in a send buffer, each as a packet: for loops that write many
//! of them.
//!
//! Source: "MySQL Packets" of MySQL's client/server protocol documentation.

/// Bytes before a packet's payload: its length (3, little-endian), its sequence number.
pub(crate) const HEADER: usize = 4;
/// A payload of at least this many bytes takes several packets.
pub(crate) const LONG: usize = 0xFF_FFFF;

/// The output buffer of rows. Rows are appended to `out`.
pub struct RowFrames<'o> {
    pub out: &'o mut Vec<u8>,
    /// Of the next packet.
    pub sequence: &'o mut u8,
    /// Bytes in `out` from which on it should be sent before more is written.
    pub enough: usize,
    /// Ends the packet that begins at a byte of `out`, however long it is, and counts the sequence
    /// number on.
    pub end: fn(&mut Vec<u8>, usize, &mut u8),
}

impl RowFrames<'_> {
    /// Whether the buffer should be sent before more rows are appended.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.out.len() >= self.enough
    }

    /// Appends a row, whose payload `fill` appends.
    ///
    /// # Errors
    /// Those of `fill`; then nothing is appended.
    #[inline(always)]
    pub fn row<E>(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; HEADER]);
        if let Err(e) = fill(self.out) {
            self.out.truncate(start);
            return Err(e);
        }
        let len = self.out.len() - start - HEADER;
        if len >= LONG {
            (self.end)(self.out, start, self.sequence);
            return Ok(());
        }
        let header = len as u32 | u32::from(*self.sequence) << 24;
        if let Some(place) = self.out[start..].first_chunk_mut() {
            *place = header.to_le_bytes();
        }
        *self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_packets_and_failed_ones_leave_nothing() {
        let (mut out, mut sequence) = (b"before".to_vec(), 254);
        let end = |out: &mut Vec<u8>, start: usize, sequence: &mut u8| {
            out.truncate(start);
            out.extend_from_slice(b"long");
            *sequence = sequence.wrapping_add(2);
        };
        let mut frames = RowFrames {
            out: &mut out,
            sequence: &mut sequence,
            enough: 25,
            end,
        };
        let mut row = |bytes: &[u8], result: Result<(), &'static str>| {
            let done = frames.row(|out| {
                out.extend_from_slice(bytes);
                result
            });
            (done, frames.is_full())
        };
        assert_eq!(row(b"abc", Ok(())), (Ok(()), false));
        assert_eq!(row(b"of no use", Err("no")), (Err("no"), false));
        assert_eq!(row(b"d", Ok(())), (Ok(()), false));
        assert_eq!(row(&[7; LONG], Ok(())), (Ok(()), false));
        assert_eq!(row(b"", Ok(())), (Ok(()), true));
        assert_eq!(out, b"before\x03\0\0\xFEabc\x01\0\0\xFFdlong\0\0\0\x02");
        assert_eq!(sequence, 3);
    }
}
