//! The input of a log: a file or standard input, decompressed according to its first bytes.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use crate::LabError;

/// A readable log.
pub struct Input {
    name: String,
    reader: Box<dyn Read>,
    position: Arc<AtomicU64>,
    len: Option<u64>,
}

/// Counts the bytes read from the file itself.
struct Counting<R> {
    inner: R,
    position: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.position.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl Input {
    /// Opens a file; `-` is standard input.
    pub fn open(path: &Path) -> Result<Input, LabError> {
        if path.as_os_str() == "-" {
            return Input::new("standard input".into(), Box::new(io::stdin()), None);
        }
        let name = path.display().to_string();
        let failed = || LabError::io(format!("cannot read {name}"));
        let file = File::open(path).map_err(failed())?;
        let meta = file.metadata().map_err(failed())?;
        if meta.is_dir() {
            return Err(LabError::Usage(format!("{name} is a directory")));
        }
        Input::new(name, Box::new(file), meta.is_file().then_some(meta.len()))
    }

    /// `len` is the number of bytes that will come, if known.
    pub fn new(name: String, reader: Box<dyn Read>, len: Option<u64>) -> Result<Input, LabError> {
        let position = Arc::new(AtomicU64::new(0));
        let mut raw = Counting {
            inner: reader,
            position: position.clone(),
        };
        let mut magic = Vec::new();
        (&mut raw)
            .take(6)
            .read_to_end(&mut magic)
            .map_err(LabError::io(format!("cannot read {name}")))?;
        let whole = io::Cursor::new(magic.clone()).chain(raw);
        let reader: Box<dyn Read> = match magic.as_slice() {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(BufReader::with_capacity(
                64 << 10,
                whole,
            ))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(Zstd {
                state: ZstdState::Between(Box::new(BufReader::with_capacity(64 << 10, whole))),
            }),
            [0xfd, b'7', b'z', b'X', b'Z', 0] => return Err(unread(&name, "xz", "xz -dc")),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => return Err(unread(&name, "bzip2", "bzip2 -dc")),
            [b'P', b'K', 3, 4, ..] => return Err(unread(&name, "zip", "unzip -p")),
            _ => Box::new(whole),
        };
        Ok(Input {
            name,
            reader,
            position,
            len,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of bytes of the file (compressed) read so far.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    pub fn size(&self) -> Option<u64> {
        self.len
    }
}

fn unread(name: &str, format: &str, command: &str) -> LabError {
    LabError::Usage(format!(
        "{name}: {format} is not read here; {command} {name} | nfold lab digest -"
    ))
}

impl Read for Input {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

type Source = Box<dyn Read>;

enum ZstdState {
    /// At the beginning of a frame, or at the end.
    Between(Box<BufReader<io::Chain<io::Cursor<Vec<u8>>, Counting<Source>>>>),
    Inside(
        Box<
            StreamingDecoder<
                BufReader<io::Chain<io::Cursor<Vec<u8>>, Counting<Source>>>,
                ruzstd::decoding::FrameDecoder,
            >,
        >,
    ),
    Over,
}

/// Simplifies the decoder's error if it only says that the file ended. The decoder passes on only
/// the text of the cause.
fn plain(error: io::Error) -> io::Error {
    match error.to_string().contains("UnexpectedEof") {
        true => io::Error::new(io::ErrorKind::UnexpectedEof, "unexpected end of file"),
        false => error,
    }
}

/// Decodes one frame after the other, as `zstd` does for a file.
struct Zstd {
    state: ZstdState,
}

impl Read for Zstd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, ZstdState::Over) {
                ZstdState::Over => return Ok(0),
                ZstdState::Between(mut rest) => {
                    use std::io::BufRead;
                    if rest.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let decoder = StreamingDecoder::new(*rest)
                        .map_err(io::Error::other)
                        .map_err(plain)?;
                    self.state = ZstdState::Inside(Box::new(decoder));
                }
                ZstdState::Inside(mut decoder) => {
                    let n = decoder.read(buffer).map_err(plain)?;
                    self.state = if n == 0 && !buffer.is_empty() {
                        ZstdState::Between(Box::new(decoder.into_inner()))
                    } else {
                        ZstdState::Inside(decoder)
                    };
                    if n > 0 || buffer.is_empty() {
                        return Ok(n);
                    }
                }
            }
        }
    }
}
