//! The data directory: created if necessary, checked, and locked against a second server.
//!
//! # Failure
//! The kernel holds the lock (`flock` on `nfold.lock`), so it ends with the process in any case.
//! The process id in the file is only for the error message.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use pem::{EncodeConfig, LineEnding, Pem};

/// Why a directory cannot be used, as one line for the user.
#[derive(Debug)]
pub struct DataDirError(pub String);

impl std::fmt::Display for DataDirError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DataDirError {}

/// A locked data directory. Dropping it releases the lock.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// Whether it was created, or empty.
    fresh: bool,
    _lock: File,
}

/// Files that identify a data directory of MySQL or MariaDB.
const OTHERS: [&str; 3] = ["ibdata1", "mysql.ibd", "aria_log_control"];
/// The engine's first file. A directory that has it belongs to Nfold, no matter what else it
/// contains.
const OURS: &str = "nfold.control";

/// Its presence says that the tables are an incomplete copy of another server.
const UNFINISHED: &str = "nfold.unfinished-copy";

impl DataDir {
    /// Creates the directory if necessary (mode 0750), and locks it. A directory of another server
    /// is refused before anything is written to it, and so is an unfinished copy.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let dir = DataDir::open_copy(path)?;
        if dir.is_unfinished() {
            return Err(DataDirError(format!(
                "the data directory {} is an unfinished copy of another server, made by `nfold follow`: start that again, or remove \
                 the directory",
                dir.path.display()
            )));
        }
        Ok(dir)
    }

    /// As [`Self::open`], but the directory may be an unfinished copy.
    pub fn open_copy(path: &Path) -> Result<Self, DataDirError> {
        let error = |what: &str, e: &dyn std::fmt::Display| {
            DataDirError(format!(
                "cannot {what} the data directory {}: {e}",
                path.display()
            ))
        };
        if !path.exists() {
            use std::os::unix::fs::DirBuilderExt;
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o750)
                .create(path)
                .map_err(|e| error("create", &e))?;
        }
        let path = path.canonicalize().map_err(|e| error("open", &e))?;
        let others = OTHERS.iter().find(|name| path.join(name).exists());
        if let Some(name) = others
            && !path.join(OURS).exists()
        {
            return Err(DataDirError(format!(
                "the data directory {} is one of MySQL or MariaDB ({name} is there), whose files Nfold cannot read: give it a directory \
                 of its own, and load a dump",
                path.display()
            )));
        }
        let lock_path = path.join("nfold.lock");
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(|e| error("write to", &e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let _ = lock.read_to_string(&mut pid);
                return Err(DataDirError(format!(
                    "the data directory {} is in use by another server (process {})",
                    path.display(),
                    pid.trim()
                )));
            }
            Err(TryLockError::Error(e)) => return Err(error("lock", &e)),
        }
        let fresh = std::fs::read_dir(&path)
            .map_err(|e| error("read", &e))?
            .flatten()
            .all(|e| e.file_name() == "nfold.lock");
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(|e| error("write to", &e))?;
        Ok(DataDir {
            path,
            fresh,
            _lock: lock,
        })
    }

    /// The absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the directory is an unfinished copy of another server.
    pub fn is_unfinished(&self) -> bool {
        self.path.join(UNFINISHED).exists()
    }

    /// Removes all files, and marks the directory durably as an unfinished copy. It must be empty,
    /// or an unfinished copy already.
    ///
    /// # Errors
    /// The directory has other data, or cannot be changed.
    pub fn begin_copy(&self) -> io::Result<()> {
        if !self.fresh && !self.is_unfinished() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        write_private(&self.path.join(UNFINISHED), b"")?;
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            let kept = ["nfold.lock", UNFINISHED].map(std::ffi::OsStr::new);
            if kept.contains(&&*entry.file_name()) {
                continue;
            }
            match entry.file_type()?.is_dir() {
                true => std::fs::remove_dir_all(entry.path())?,
                false => std::fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }

    /// The copy is complete: the directory may be served. All its files must be closed.
    ///
    /// # Errors
    /// The directory cannot be changed.
    pub fn end_copy(&self) -> io::Result<()> {
        std::fs::remove_file(self.path.join(UNFINISHED))?;
        File::open(&self.path)?.sync_all()
    }

    /// Whether the directory was empty before.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }
}

/// Writes a file that only this user may read. It is written under a temporary name, synced and
/// renamed; then its directory is synced, so that a crash leaves the old file or the new one.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let tmp = path.with_extension("tmp");
    let _ = std::fs::remove_file(&tmp);
    let mut f = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&tmp)?;
    f.write_all(bytes)?;
    f.sync_all()?;
    std::fs::rename(&tmp, path)?;
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Encodes DER bytes as PEM text (RFC 7468).
pub fn pem_encode(label: &str, der: &[u8]) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new(label, der), config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let first = DataDir::open(&path).unwrap();
        assert!(first.is_fresh());
        let e = DataDir::open(&path).unwrap_err().to_string();
        assert!(
            e.contains(&format!(
                "in use by another server (process {})",
                std::process::id()
            )),
            "{e}"
        );
        std::fs::write(first.path().join("x"), "x").unwrap();
        drop(first);
        assert!(!DataDir::open(&path).unwrap().is_fresh());
    }

    #[test]
    fn unfinished_copy_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let copy = DataDir::open(dir.path()).unwrap();
        copy.begin_copy().unwrap();
        std::fs::write(copy.path().join("x"), "x").unwrap();
        drop(copy);
        let e = DataDir::open(dir.path()).unwrap_err().to_string();
        assert!(e.contains("unfinished copy"), "{e}");
        let copy = DataDir::open_copy(dir.path()).unwrap();
        copy.begin_copy().unwrap();
        assert!(!copy.path().join("x").exists());
        std::fs::write(copy.path().join("x"), "x").unwrap();
        copy.end_copy().unwrap();
        drop(copy);
        let whole = DataDir::open(dir.path()).unwrap();
        assert!(whole.begin_copy().is_err() && whole.path().join("x").exists());
    }

    #[test]
    fn a_file_in_the_way_is_one_clear_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "").unwrap();
        let e = DataDir::open(&file.join("x")).unwrap_err().to_string();
        assert!(
            e.starts_with("cannot create the data directory") && !e.contains('\n'),
            "{e}"
        );
    }

    #[test]
    fn another_servers_directory_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ibdata1"), "").unwrap();
        let e = DataDir::open(dir.path()).unwrap_err().to_string();
        assert!(e.contains("MySQL or MariaDB (ibdata1 is there)"), "{e}");
        let files = std::fs::read_dir(dir.path()).unwrap();
        assert_eq!(files.count(), 1);
        std::fs::write(dir.path().join(OURS), "").unwrap();
        assert!(!DataDir::open(dir.path()).unwrap().is_fresh());
    }

    #[test]
    fn pem_is_base64_in_lines_of_64() {
        let pem = pem_encode("X", &[0xff; 50]);
        let lines: Vec<_> = pem.lines().collect();
        assert_eq!(lines[0], "-----BEGIN X-----");
        assert_eq!(lines[1], "/".repeat(64));
        assert_eq!(lines[2], "//8=");
        assert_eq!(pem_encode("X", b"M").lines().nth(1), Some("TQ=="));
    }
}
