//! Table options.

use nfold_types::charset::Charset;
use nfold_types::collation::Collation;
use nfold_types::error::{ErrorCode, SqlError};

use super::{Parser, Result};
use crate::ast::TableOptions;
use crate::keywords::Kw;
use crate::lexer::TokenKind;

const ROW_FORMATS: &[Kw] = &[
    Kw::DEFAULT,
    Kw::FIXED,
    Kw::DYNAMIC,
    Kw::COMPRESSED,
    Kw::REDUNDANT,
    Kw::COMPACT,
];

/// Error 1302 where a clause names another character set than one before it.
pub(super) fn check_charset(
    (charset, collation): (Option<&str>, Option<&str>),
    named: &str,
) -> Result<()> {
    let of_collation = || Collation::by_name(collation?).map(|c| c.charset);
    let before = charset.and_then(Charset::by_name).or_else(of_collation);
    match (before, Charset::by_name(named)) {
        (Some(before), Some(now)) if before != now => Err(SqlError::new(
            ErrorCode::ER_CONFLICTING_DECLARATIONS,
            &[
                &"CHARACTER SET ",
                &before.name,
                &"CHARACTER SET ",
                &now.name,
            ],
        )),
        _ => Ok(()),
    }
}

impl Parser<'_> {
    /// Any number of table options, optionally separated by commas.
    pub(super) fn table_options(&mut self) -> Result<TableOptions> {
        let mut options = TableOptions::default();
        while self.table_option(&mut options)? {
            if self.is(TokenKind::Comma) {
                self.advance();
                if !self.table_option(&mut options)? {
                    return self.unexpected();
                }
                self.accept(TokenKind::Comma);
            }
        }
        Ok(options)
    }

    /// Parses one option. Returns false if there is none.
    pub(super) fn table_option(&mut self, options: &mut TableOptions) -> Result<bool> {
        let default = self.accept_kw(Kw::DEFAULT);
        if self.accept_charset_words()? {
            self.accept(TokenKind::Eq);
            let charset = self.charset_name()?;
            let before = (options.charset.as_deref(), options.collation.as_deref());
            check_charset(before, &charset)?;
            options.charset = Some(charset);
            return Ok(true);
        }
        if self.accept_kw(Kw::COLLATE) {
            self.accept(TokenKind::Eq);
            options.collation = Some(self.collation_name()?);
            return Ok(true);
        }
        if default {
            return self.unexpected();
        }
        let kw = self.kw();
        match kw {
            Kw::ENGINE => {
                self.option_name();
                options.engine = Some(self.ident_or_text()?);
            }
            Kw::AUTO_INCREMENT => {
                self.option_name();
                options.auto_increment = Some(self.number()?);
            }
            Kw::COMMENT => {
                self.option_name();
                options.comment = Some(self.string()?);
            }
            Kw::ROW_FORMAT => {
                self.option_name();
                if !ROW_FORMATS.contains(&self.kw()) {
                    return self.unexpected();
                }
                options.row_format = Some(self.any_word()?.value);
            }
            Kw::AVG_ROW_LENGTH
            | Kw::MIN_ROWS
            | Kw::MAX_ROWS
            | Kw::CHECKSUM
            | Kw::TABLE_CHECKSUM
            | Kw::DELAY_KEY_WRITE
            | Kw::KEY_BLOCK_SIZE
            | Kw::STATS_SAMPLE_PAGES
            | Kw::STATS_AUTO_RECALC
            | Kw::STATS_PERSISTENT
            | Kw::PACK_KEYS
            | Kw::AUTOEXTEND_SIZE => {
                self.option_name();
                let value = if self.accept_kw(Kw::DEFAULT) {
                    "DEFAULT".to_string()
                } else {
                    self.number()?.to_string()
                };
                options.other.push((kw.name().into(), value));
            }
            Kw::INSERT_METHOD | Kw::SECONDARY_ENGINE | Kw::STORAGE | Kw::TABLESPACE => {
                self.option_name();
                let value = if self.is(TokenKind::Str) {
                    self.ident_or_text()?
                } else {
                    self.any_word()?.value
                };
                options.other.push((kw.name().into(), value));
            }
            Kw::PASSWORD | Kw::COMPRESSION | Kw::ENCRYPTION | Kw::CONNECTION => {
                self.option_name();
                let value = String::from_utf8_lossy(&self.string()?).into_owned();
                options.other.push((kw.name().into(), value));
            }
            Kw::ENGINE_ATTRIBUTE | Kw::SECONDARY_ENGINE_ATTRIBUTE => self.engine_attribute()?,
            Kw::DATA | Kw::INDEX => {
                self.advance();
                self.expect_kw(Kw::DIRECTORY)?;
                self.accept(TokenKind::Eq);
                let value = String::from_utf8_lossy(&self.string()?).into_owned();
                options
                    .other
                    .push((format!("{} DIRECTORY", kw.name()), value));
            }
            Kw::START if self.peek().kw == Kw::TRANSACTION => {
                self.advance();
                self.advance();
                options
                    .other
                    .push(("START TRANSACTION".into(), String::new()));
            }
            Kw::UNION => {
                self.option_name();
                let tables = self.paren_list(Self::object_name)?;
                options
                    .other
                    .push(("UNION".into(), tables.len().to_string()));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Accepts the option's word and an equals sign.
    fn option_name(&mut self) {
        self.advance();
        self.accept(TokenKind::Eq);
    }
}
