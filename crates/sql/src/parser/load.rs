//! LOAD DATA, and the file formats that it shares with SELECT ... INTO OUTFILE.

use super::{Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::{LexMode, TokenKind};
use crate::literal::Lit;

impl Parser<'_> {
    /// `LOAD DATA [LOW_PRIORITY|CONCURRENT] [LOCAL] INFILE 'file' [REPLACE|IGNORE] INTO TABLE t …`
    pub(super) fn load(&mut self) -> Result<Statement> {
        self.advance();
        match self.kw() {
            Kw::XML => return self.unsupported("LOAD XML"),
            Kw::INDEX => return self.unsupported("LOAD INDEX INTO CACHE"),
            _ => self.expect_kw(Kw::DATA)?,
        }
        if matches!(self.kw(), Kw::LOW_PRIORITY | Kw::CONCURRENT) {
            self.advance();
        }
        let local = self.accept_kw(Kw::LOCAL);
        self.accept_kw(Kw::FROM);
        if matches!(self.kw(), Kw::URL | Kw::S3) {
            return self.unsupported("LOAD DATA from a URL");
        }
        self.expect_kw(Kw::INFILE)?;
        let file = self.string()?;
        let replace = self.accept_kw(Kw::REPLACE);
        let ignore = !replace && self.accept_kw(Kw::IGNORE);
        self.expect_kw(Kw::INTO)?;
        self.expect_kw(Kw::TABLE)?;
        let table = self.object_name()?;
        let partitions = self.partitions()?;
        let charset = self.file_charset()?;
        let format = self.file_format()?;
        let skip_lines = self.skip_lines()?;
        let targets = if self.accept(TokenKind::LParen) {
            let none = self.is(TokenKind::RParen);
            let list = match none {
                true => Vec::new(),
                false => self.comma_list(Self::file_target)?,
            };
            self.expect(TokenKind::RParen)?;
            list
        } else {
            Vec::new()
        };
        let set = match self.accept_kw(Kw::SET) {
            true => self.assignments()?,
            false => Vec::new(),
        };
        Ok(Statement::LoadData(Box::new(LoadData {
            local,
            file,
            charset,
            insert: Insert {
                replace,
                // An error cannot stop the client, which sends the whole file.
                ignore: ignore || local && !replace,
                table,
                partitions,
                columns: None,
                source: InsertSource::File {
                    format: Box::new(format),
                    skip_lines,
                    targets,
                    set,
                },
                row_alias: None,
                on_duplicate: Vec::new(),
            },
        })))
    }

    /// `column` or `@variable`
    fn file_target(&mut self) -> Result<FileTarget> {
        match self.is(TokenKind::UserVar) {
            true => Ok(FileTarget::Variable(self.user_var()?)),
            false => Ok(FileTarget::Column(self.column_ref()?)),
        }
    }

    /// `IGNORE n LINES|ROWS`
    fn skip_lines(&mut self) -> Result<u64> {
        if !self.accept_kw(Kw::IGNORE) {
            return Ok(0);
        }
        let lines = self.number()?;
        if !self.accept_kw(Kw::LINES) {
            self.expect_kw(Kw::ROWS)?;
        }
        Ok(lines)
    }

    /// The clauses behind `INTO OUTFILE`.
    pub(super) fn outfile(&mut self) -> Result<OutFile> {
        Ok(OutFile {
            file: self.string()?,
            charset: self.file_charset()?,
            format: self.file_format()?,
        })
    }

    /// `[CHARACTER SET set]`
    fn file_charset(&mut self) -> Result<Option<String>> {
        match self.accept_charset_words()? {
            true => Ok(Some(self.charset_name()?)),
            false => Ok(None),
        }
    }

    /// `[FIELDS …] [LINES …]`
    fn file_format(&mut self) -> Result<FileFormat> {
        let mut format = FileFormat::default();
        if self.mode.has(LexMode::NO_BACKSLASH_ESCAPES) {
            format.escaped.clear();
        }
        if matches!(self.kw(), Kw::FIELDS | Kw::COLUMNS) {
            self.advance();
            self.parts_of_format(&mut format, Self::field_part)?;
        }
        if self.accept_kw(Kw::LINES) {
            self.parts_of_format(&mut format, Self::line_part)?;
        }
        Ok(format)
    }

    /// One or more parts.
    fn parts_of_format(
        &mut self,
        format: &mut FileFormat,
        mut part: impl FnMut(&mut Self, &mut FileFormat) -> Result<bool>,
    ) -> Result<()> {
        if !part(self, format)? {
            return self.unexpected();
        }
        while part(self, format)? {}
        Ok(())
    }

    /// False: no part of FIELDS follows.
    fn field_part(&mut self, format: &mut FileFormat) -> Result<bool> {
        match self.kw() {
            Kw::TERMINATED => format.field_end = self.delimiter()?,
            Kw::ESCAPED => format.escaped = self.delimiter()?,
            Kw::ENCLOSED => format.enclosed = self.delimiter()?,
            Kw::OPTIONALLY => {
                self.advance();
                if !self.at(Kw::ENCLOSED) {
                    return self.unexpected();
                }
                format.enclosed = self.delimiter()?;
                format.optionally = true;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// False: no part of LINES follows.
    fn line_part(&mut self, format: &mut FileFormat) -> Result<bool> {
        match self.kw() {
            Kw::TERMINATED => format.line_end = self.delimiter()?,
            Kw::STARTING => format.line_start = self.delimiter()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The keyword, `BY`, and a string or its digits.
    fn delimiter(&mut self) -> Result<Vec<u8>> {
        self.advance();
        self.expect_kw(Kw::BY)?;
        match Lit::read(self.kind(), self.bytes(), self.mode) {
            Some(Lit::String(text)) if self.is(TokenKind::Str) => {
                let text = text.to_vec();
                self.advance();
                Ok(text)
            }
            Some(Lit::Hex(digits)) => {
                let bytes = crate::literal::hex_bytes(digits);
                self.advance();
                Ok(bytes)
            }
            Some(Lit::Bit(digits)) => {
                let bytes = crate::literal::bit_bytes(digits);
                self.advance();
                Ok(bytes)
            }
            _ => self.unexpected(),
        }
    }
}
