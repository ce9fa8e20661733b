//! A directory of the operating system's file system.
//!
//! With `direct`, the log's files and the doublewrite file are read through the page cache and, if
//! possible, written with direct I/O. A sync then finds nothing in the page cache, which saves a
//! third of its processor time. Reading them with direct I/O would only slow down recovery. Log
//! writes without a later sync go through the page cache. The operating system writes these pages
//! out before a direct write to the same place.
//!
//! Many pages of a `.nfd` file are written by one system call (`aio`): with direct I/O the system
//! calls and the waits for the disk cost most.
//!
//! # Failure
//! Interrupted system calls are repeated, and short writes are continued.

use super::aio::{self, ManyWrites};
use super::{DOUBLEWRITE, Disk, DiskFile, LOG_PREFIX, OpenMode};
use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The alignment of addresses, offsets and lengths that `O_DIRECT` requires; sufficient for all
/// disks.
const DIRECT_ALIGN: usize = 4096;

thread_local! {
    /// The context of a thread that writes many pages; `None` if the kernel has refused it one.
    static MANY_WRITES: RefCell<Option<ManyWrites>> = RefCell::new(ManyWrites::new());
}

/// The files of one directory, accessed with `pread` and `pwrite`.
#[derive(Debug)]
pub struct RealDisk {
    dir: PathBuf,
    direct: bool,
}

impl RealDisk {
    /// `dir` must exist. `direct`: open files whose name ends in `.nfd` with `O_DIRECT`, and write
    /// log files and the doublewrite file with it, if the file system supports that.
    pub fn new(dir: impl AsRef<Path>, direct: bool) -> Self {
        RealDisk {
            dir: dir.as_ref().to_path_buf(),
            direct,
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        if name.is_empty() || name.contains(['/', '\0']) || name == "." || name == ".." {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("bad file name {name:?}"),
            ));
        }
        Ok(self.dir.join(name))
    }
}

impl Disk for RealDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.path(name)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        match mode {
            OpenMode::Existing => {}
            OpenMode::OrCreate => {
                options.create(true);
            }
            OpenMode::CreateNew => {
                options.create_new(true);
            }
        }
        if self.direct && name.ends_with(".nfd") {
            let mut direct = options.clone();
            direct.custom_flags(libc::O_DIRECT);
            match direct.open(&path) {
                Ok(file) => {
                    let file = RealFile {
                        is_direct: true,
                        ..RealFile::new(file)
                    };
                    return Ok(Arc::new(file));
                }
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {}
                Err(e) => return Err(e),
            }
            if mode == OpenMode::CreateNew {
                // The failed attempt may have created the file.
                options.create_new(false).create(true);
            }
        }
        let mut file = RealFile::new(options.open(&path)?);
        if self.direct && (name.starts_with(LOG_PREFIX) || name == DOUBLEWRITE) {
            file.writer = DirectWriter::open(&path);
        }
        Ok(Arc::new(file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from)?, self.path(to)?)
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string()
                && name.starts_with(prefix)
                && entry.file_type()?.is_file()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.path(name)?.try_exists()
    }
}

/// A second descriptor of a file, for direct writes of complete blocks.
struct DirectWriter {
    file: File,
    /// Set when the file system has rejected such a write.
    refused: AtomicBool,
}

impl DirectWriter {
    /// `None` if the file system does not support direct I/O.
    fn open(path: &Path) -> Option<DirectWriter> {
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_DIRECT);
        let file = options.open(path).ok()?;
        let refused = AtomicBool::new(false);
        Some(DirectWriter { file, refused })
    }

    /// Returns whether the bytes were written. If not, they must be written through the page cache.
    fn write_at(&self, off: u64, buf: &[u8]) -> io::Result<bool> {
        let fits = |n: usize| n.is_multiple_of(DIRECT_ALIGN);
        if self.refused.load(Relaxed)
            || !(fits(buf.as_ptr().addr()) && fits(buf.len()) && fits(off as usize))
        {
            return Ok(false);
        }
        match self.file.write_all_at(buf, off) {
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                self.refused.store(true, Relaxed);
                Ok(false)
            }
            other => other.map(|()| true),
        }
    }
}

struct RealFile {
    file: File,
    /// Whether `file` bypasses the page cache.
    is_direct: bool,
    writer: Option<DirectWriter>,
}

impl DiskFile for RealFile {
    fn read_at(&self, off: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buf, off)
    }

    fn write_at(&self, off: u64, buf: &[u8]) -> io::Result<()> {
        if let Some(writer) = &self.writer
            && writer.write_at(off, buf)?
        {
            return Ok(());
        }
        self.file.write_all_at(buf, off)
    }

    fn write_cached_at(&self, off: u64, buf: &[u8]) -> io::Result<()> {
        self.file.write_all_at(buf, off)
    }

    fn write_many(&self, writes: &[(u64, &[u8])]) -> Option<io::Result<()>> {
        if !self.is_direct || writes.len() < 2 {
            return None;
        }
        MANY_WRITES.with_borrow_mut(|many| {
            let many = many.as_mut()?;
            let parts = writes.chunks(aio::MOST).map(|part| {
                let results = many.run(self.file.as_raw_fd(), part);
                let finished = part.iter().zip(results);
                finished
                    .map(|(write, result)| self.finish(write, result))
                    .fold(Ok(()), Result::and)
            });
            Some(parts.fold(Ok(()), Result::and))
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, off: u64, len: u64) -> io::Result<()> {
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let (off, len) = (
            i64::try_from(off).map_err(too_large)?,
            i64::try_from(len).map_err(too_large)?,
        );
        loop {
            // SAFETY: the descriptor is open as long as `self` lives, and the call accesses no
            // memory of this process.
            let rc = unsafe { libc::fallocate(self.file.as_raw_fd(), 0, off, len) };
            if rc == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EOPNOTSUPP | libc::ENOSYS) => {
                    return self.allocate_by_writing(off as u64, len as u64);
                }
                _ => return Err(error),
            }
        }
    }
}

impl RealFile {
    fn new(file: File) -> RealFile {
        RealFile {
            file,
            is_direct: false,
            writer: None,
        }
    }

    /// Finishes a write whose first attempt had this result: the number of bytes, or the negative
    /// errno.
    fn finish(&self, (off, bytes): &(u64, &[u8]), result: i64) -> io::Result<()> {
        let written = match usize::try_from(result) {
            Ok(written) => written.min(bytes.len()),
            Err(_) => match -result as i32 {
                libc::EAGAIN | libc::EINTR => 0,
                errno => return Err(io::Error::from_raw_os_error(errno)),
            },
        };
        match &bytes[written..] {
            [] => Ok(()),
            rest => self.file.write_all_at(rest, off + written as u64),
        }
    }

    /// For file systems without `fallocate`: writes zeros after the current end.
    fn allocate_by_writing(&self, off: u64, len: u64) -> io::Result<()> {
        let (mut at, end) = (self.len()?.max(off), off + len);
        let zeros = vec![0u8; 1 << 16];
        while at < end {
            let n = (end - at).min(zeros.len() as u64) as usize;
            self.file.write_all_at(&zeros[..n], at)?;
            at += n as u64;
        }
        Ok(())
    }
}
