//! Files of the server's machine that statements read and write.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nfold_catalog::Privileges;
use nfold_exec::{FileSource, SessionEnv, StatementFiber};
use nfold_types::{CollationId, ErrorCode, SqlError, Value};

use crate::session::Session;
use crate::session::cx::apart;

/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;

impl Session {
    /// The file that a name means.
    ///
    /// # Errors
    /// 1045 without the privilege FILE.
    pub(super) fn server_path(&mut self, name: &[u8]) -> Result<ServerPath, SqlError> {
        self.need_file_privilege()?;
        let allowed = match self.env.sysvar(None, "secure_file_priv")? {
            Value::Bytes(directory) if directory.is_empty() => AllowedFolder::Everywhere,
            Value::Bytes(directory) => AllowedFolder::Under(path_of(&directory)),
            _ => AllowedFolder::Nowhere,
        };
        let path = self.absolute_path(name)?;
        let is_bare = path_of(name).components().count() == 1;
        let database = path
            .parent()
            .filter(|_| is_bare && self.env.database.is_some());
        Ok(ServerPath {
            database: database.map(Path::to_path_buf),
            path,
            allowed,
        })
    }

    /// Error 1045 without the privilege FILE.
    fn need_file_privilege(&mut self) -> Result<(), SqlError> {
        self.refresh_rights();
        if self.rights.has_global(Privileges::FILE) {
            return Ok(());
        }
        let account = self.rights.account();
        Err(SqlError::new(
            ErrorCode::ER_ACCESS_DENIED_ERROR,
            &[&account.user, &account.host, &"YES"],
        ))
    }

    /// A name without a directory is in the current database's.
    fn absolute_path(&self, name: &[u8]) -> Result<PathBuf, SqlError> {
        let name = path_of(name);
        if name.is_absolute() {
            return Ok(name);
        }
        let directory = match self.env.sysvar(None, "datadir")? {
            Value::Bytes(directory) => path_of(&directory),
            _ => PathBuf::new(),
        };
        let is_bare = name.components().count() == 1;
        Ok(match &self.env.database {
            Some(database) if is_bare => directory.join(&**database).join(name),
            _ => directory.join(name),
        })
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Where `secure_file_priv` allows files.
#[derive(Clone)]
enum AllowedFolder {
    Nowhere,
    Everywhere,
    Under(PathBuf),
}

/// A file of a statement that may read and write files.
#[derive(Clone)]
pub(super) struct ServerPath {
    path: PathBuf,
    /// The directory of the current database, if the file is there.
    database: Option<PathBuf>,
    allowed: AllowedFolder,
}

impl ServerPath {
    /// Error 1290 where `secure_file_priv` forbids the file, which need not exist. May block.
    fn check(&self) -> Result<(), SqlError> {
        let real = |path: &Path| {
            path.canonicalize()
                .or_else(|e| match (path.parent(), path.file_name()) {
                    (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
                    _ => Err(e),
                })
        };
        let allowed = match &self.allowed {
            AllowedFolder::Nowhere => false,
            AllowedFolder::Everywhere => true,
            AllowedFolder::Under(directory) => {
                let places = (directory.canonicalize(), real(&self.path));
                matches!(places, (Ok(directory), Ok(path)) if path.starts_with(&directory))
            }
        };
        let code = ErrorCode::ER_OPTION_PREVENTS_STATEMENT;
        match allowed {
            true => Ok(()),
            false => Err(SqlError::new(code, &[&"--secure-file-priv"])),
        }
    }

    /// Opens the file to read. May block.
    ///
    /// # Errors
    /// 1290; 13 and 29 for a file that is missing or may not be read, 1085 for a directory and the
    /// like.
    fn open(&self) -> Result<File, SqlError> {
        use std::os::unix::fs::FileTypeExt;
        self.check()?;
        let found = self.path.metadata();
        let found = found.map_err(|e| self.error(ErrorCode::EE_STAT, &e))?;
        if !found.is_file() && !found.file_type().is_fifo() {
            let code = ErrorCode::ER_TEXTFILE_NOT_READABLE;
            return Err(SqlError::new(code, &[&self.path.display()]));
        }
        File::open(&self.path).map_err(|e| self.error(ErrorCode::EE_FILENOTFOUND, &e))
    }

    /// Makes the file, which must not exist. May block.
    ///
    /// # Errors
    /// 1290; 1086 for a file that exists, 1 for one that cannot be made.
    pub(super) fn create(&self) -> Result<File, SqlError> {
        use std::os::unix::fs::OpenOptionsExt;
        self.check()?;
        if let Some(directory) = &self.database {
            // It exists from the first file on.
            let _ = std::fs::create_dir(directory);
        }
        let mut options = File::options();
        let made = options
            .write(true)
            .create_new(true)
            .mode(0o640)
            .open(&self.path);
        made.map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => {
                let code = ErrorCode::ER_FILE_EXISTS_ERROR;
                SqlError::new(code, &[&self.path.display()])
            }
            _ => self.error(ErrorCode::EE_CANTCREATEFILE, &e),
        })
    }

    /// Removes the file. May block.
    pub(super) fn remove(&self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            let path = self.path.display();
            tracing::warn!(%error, "cannot remove {path}, which a failed statement has written");
        }
    }

    /// An error that names the file and what the operating system says.
    pub(super) fn error(&self, code: ErrorCode, e: &io::Error) -> SqlError {
        let text = e.to_string();
        let reason = text.split(" (os error").next().unwrap_or_default();
        let number = e.raw_os_error().unwrap_or(0);
        SqlError::new(code, &[&self.path.display(), &number, &reason])
    }
}

/// A file that LOAD DATA reads. It is opened when its first bytes are wanted.
pub(super) struct ServerFile {
    path: ServerPath,
    file: Option<Arc<File>>,
    collation: CollationId,
}

impl ServerFile {
    pub fn new(path: ServerPath, collation: CollationId) -> ServerFile {
        ServerFile {
            path,
            file: None,
            collation,
        }
    }
}

impl FileSource for ServerFile {
    fn collation(&self) -> CollationId {
        self.collation
    }

    fn read(&mut self, fiber: &mut dyn StatementFiber, to: &mut Vec<u8>) -> Result<bool, SqlError> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => {
                let path = self.path.clone();
                let file = Arc::new(apart(fiber, move || path.open())??);
                self.file.insert(file).clone()
            }
        };
        let mut buffer = std::mem::take(to);
        let (n, buffer) = apart(fiber, move || {
            let before = buffer.len();
            let read = (&*file).take(READ_BYTES as u64).read_to_end(&mut buffer);
            read.map(|_| (buffer.len() - before, buffer))
        })?
        .map_err(|e| self.path.error(ErrorCode::ER_ERROR_ON_READ, &e))?;
        *to = buffer;
        Ok(n > 0)
    }
}
