//! TRANSACTION_PAYLOAD: the events of a transaction, compressed.
//!
//! # Picture
//! ```text
//! fields: type · length · value (each a length-encoded integer); type 0 ends them
//!   1 size of the payload │ 2 compression: 0 zstd, 255 none │ 3 size of the events
//! payload: events without checksums
//! ```

use std::io::Read;

use nfold_protocol::Reader;
use ruzstd::decoding::StreamingDecoder;

use crate::event::{Event, Header, read_body};
use crate::{BinlogError, event_name};

/// The events of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadEvent {
    compressed: bool,
    payload: Vec<u8>,
}

/// The size of an event inside a payload that is refused as damage, in bytes. It is the largest
/// `replica_max_allowed_packet`.
const MAX_EVENT: usize = 1 << 30;

impl PayloadEvent {
    pub(crate) fn read(body: &[u8]) -> Result<PayloadEvent, BinlogError> {
        let mut r = Reader::new(body);
        let (mut size, mut compression) = (None, None);
        loop {
            let kind = r.lenenc_int("field of a payload")?;
            if kind == 0 {
                break;
            }
            let mut value = Reader::new(r.lenenc_bytes("value of a payload")?);
            match kind {
                1 => size = Some(value.lenenc_int("size of a payload")?),
                2 => compression = Some(value.lenenc_int("compression")?),
                _ => {}
            }
        }
        let payload = r.rest();
        if size.is_some_and(|size| size != payload.len() as u64) {
            return Err(BinlogError::Malformed("size of a payload"));
        }
        let compressed = match compression {
            Some(0) => true,
            Some(255) => false,
            other => {
                return Err(BinlogError::Unsupported(format!(
                    "compression {} of a payload",
                    other.map_or("without a name".into(), |c| c.to_string())
                )));
            }
        };
        Ok(PayloadEvent {
            compressed,
            payload: payload.to_vec(),
        })
    }

    /// Calls `f` with each event. Only one event at a time is in memory.
    ///
    /// # Errors
    /// Damage, and the errors of `f`.
    pub fn each<E: From<BinlogError>>(
        &self,
        f: &mut dyn FnMut(&Header, Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = &self.payload[..];
        if !self.compressed {
            return events(&mut rest, f);
        }
        // The events may be compressed as several frames, and an event may cross their bounds.
        let mut frames = Frames {
            rest,
            decoder: None,
        };
        events(&mut frames, f)
    }
}

/// The decompressed bytes of several zstd frames.
struct Frames<'a> {
    rest: &'a [u8],
    decoder: Option<StreamingDecoder<&'a [u8], ruzstd::decoding::FrameDecoder>>,
}

impl Read for Frames<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else {
                if self.rest.is_empty() || to.is_empty() {
                    return Ok(0);
                }
                let decoder = StreamingDecoder::new(self.rest);
                self.decoder = Some(decoder.map_err(std::io::Error::other)?);
                continue;
            };
            let n = decoder.read(to)?;
            if n > 0 {
                return Ok(n);
            }
            self.rest = decoder.get_ref();
            self.decoder = None;
        }
    }
}

/// Reads events to the end of `from`.
fn events<E: From<BinlogError>>(
    from: &mut dyn Read,
    f: &mut dyn FnMut(&Header, Event) -> Result<(), E>,
) -> Result<(), E> {
    let damaged = BinlogError::Malformed;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let head = from.take(Header::BYTES as u64).read_to_end(&mut bytes);
        match head.map_err(|_| damaged("compressed payload"))? {
            0 => return Ok(()),
            Header::BYTES => {}
            _ => return Err(damaged("header of an event in a payload").into()),
        }
        let header = Header::read(&bytes)?;
        let size = header.size as usize;
        if !(Header::BYTES..=MAX_EVENT).contains(&size) {
            return Err(damaged("size of an event in a payload").into());
        }
        let left = size - Header::BYTES;
        bytes.clear();
        let body = from.take(left as u64).read_to_end(&mut bytes);
        if body.map_err(|_| damaged("compressed payload"))? != left {
            return Err(damaged("event that a payload does not complete").into());
        }
        match read_body(&header, &bytes)? {
            Event::Payload(_) => {
                let name = event_name(header.code);
                return Err(BinlogError::Unsupported(format!("{name} in a payload")).into());
            }
            event => f(&header, event)?,
        }
    }
}
