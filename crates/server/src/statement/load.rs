//! LOAD DATA: where the file comes from.

use nfold_exec::{ExecCx, FileSource, Interrupt, RowSink, SessionEnv, StatementFiber, WireFormat};
use nfold_plan::query::ColumnMeta;
use nfold_protocol::consts::cap;
use nfold_sql::ast::{FileTarget, InsertSource, LoadData};
use nfold_types::{
    Charset, Collation, CollationId, ColumnType, ErrorCode, SqlError, TypeKind, Value,
};

use super::server_file::ServerFile;
use crate::net::conn::ResponseWriter;
use crate::session::Session;
use crate::session::plans::Work;
use crate::session::response::{Response, WireSink, interrupt_error};

impl Session {
    /// Runs LOAD DATA.
    pub(crate) fn load_data(
        &mut self,
        cx: &mut dyn ExecCx,
        load: &LoadData,
        text: &[u8],
        sink: &mut WireSink<'_, '_>,
    ) -> Result<Response, SqlError> {
        let collation = self.file_collation(load)?;
        let (digested, parsed) = self.parse_with_digest(cx, text)?;
        let work = Work::parsed(text, &digested, &parsed);
        self.begin_variables(load)?;
        let result = if load.local {
            self.allow_local_files(sink.out.capabilities())?;
            let mut file = ClientFile {
                out: sink.out,
                name: &load.file,
                requested: false,
                collation,
            };
            let result = self.load_from(cx, &work, &mut file);
            if file.requested {
                file.out.skip_file();
            }
            result
        } else {
            let path = self.server_path(&load.file)?;
            let mut file = ServerFile::new(path, collation);
            self.load_from(cx, &work, &mut file)
        };
        Ok(self.after_rows(result?, sink))
    }

    /// Plans the statement and runs it with the file, to the end of its work.
    fn load_from(
        &mut self,
        cx: &mut dyn ExecCx,
        work: &Work<'_>,
        file: &mut dyn FileSource,
    ) -> Result<nfold_exec::StatementResult, SqlError> {
        let mut sink = FileSink {
            file,
            row: Vec::new(),
        };
        let result = self.run_once(cx, work, &mut sink);
        if result.is_ok() {
            self.note_row_query(work.text, work.markers);
        }
        let ended = self.end_work(cx, result.as_ref().err());
        let result = result?;
        ended?;
        Ok(result)
    }

    /// A collation of the file's character set.
    ///
    /// # Errors
    /// 1115 for an unknown set, 1235 for one whose ASCII characters take more than one byte.
    fn file_collation(&self, load: &LoadData) -> Result<CollationId, SqlError> {
        let collation = match &load.charset {
            None => self.database_collation()?,
            Some(name) => {
                let unknown = || SqlError::new(ErrorCode::ER_UNKNOWN_CHARACTER_SET, &[name]);
                Charset::by_name(name)
                    .ok_or_else(unknown)?
                    .default_collation
            }
        };
        let charset = collation.known().charset;
        match charset.is_wide() {
            true => Err(SqlError::not_supported(format!(
                "LOAD DATA of a file in the character set {}",
                charset.name
            ))),
            false => Ok(collation),
        }
    }

    /// `collation_database`
    fn database_collation(&self) -> Result<CollationId, SqlError> {
        let value = self.env.sysvar(None, "collation_database")?;
        let known = match &value {
            Value::Bytes(name) => std::str::from_utf8(name).ok().and_then(Collation::by_name),
            _ => None,
        };
        Ok(known.map_or(CollationId::UTF8MB4_0900_AI_CI, |c| c.id))
    }

    /// Error 3948 unless both sides allow files of the client.
    fn allow_local_files(&self, capabilities: u32) -> Result<(), SqlError> {
        let allowed = self.env.sysvar(None, "local_infile")? == Value::Int(1);
        match allowed && capabilities & cap::LOCAL_FILES != 0 {
            true => Ok(()),
            false => Err(SqlError::new(
                ErrorCode::ER_CLIENT_LOCAL_FILES_DISABLED,
                &[],
            )),
        }
    }

    /// The variables that fields are stored in are texts from now on, so that SET is planned with
    /// their types.
    fn begin_variables(&self, load: &LoadData) -> Result<(), SqlError> {
        let InsertSource::File { targets, .. } = &load.insert.source else {
            return Ok(());
        };
        let ty = ColumnType::string(TypeKind::VarChar(16_383), self.env.collation());
        for target in targets {
            if let FileTarget::Variable(name) = target {
                let name = name.to_lowercase();
                self.env.set_user_var(&name, Value::Null, Some(&ty))?;
            }
        }
        Ok(())
    }
}

/// A sink for a statement that sends no rows and reads a file.
struct FileSink<'f> {
    file: &'f mut dyn FileSource,
    row: Vec<u8>,
}

impl RowSink for FileSink<'_> {
    fn columns(&mut self, _: &[ColumnMeta]) -> Result<(), SqlError> {
        Ok(())
    }

    fn format(&self) -> WireFormat {
        WireFormat::Text
    }

    fn row_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.row
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        Ok(())
    }

    fn file(&mut self) -> Option<&mut dyn FileSource> {
        Some(self.file)
    }
}

/// A file that the client sends.
struct ClientFile<'f, 'w> {
    out: &'f mut ResponseWriter<'w>,
    name: &'f [u8],
    requested: bool,
    collation: CollationId,
}

impl FileSource for ClientFile<'_, '_> {
    fn collation(&self) -> CollationId {
        self.collation
    }

    fn read(&mut self, fiber: &mut dyn StatementFiber, to: &mut Vec<u8>) -> Result<bool, SqlError> {
        fiber.interrupted().map_err(Interrupt::to_sql)?;
        if !self.requested {
            self.requested = true;
            self.out.request_file(self.name).map_err(interrupt_error)?;
        }
        self.out.read_file(to).map_err(interrupt_error)
    }
}
