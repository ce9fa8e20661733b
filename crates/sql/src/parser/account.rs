//! Accounts and privileges.

use super::{Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `user[@host]`, `CURRENT_USER[()]`
    pub(super) fn account(&mut self) -> Result<AccountName> {
        if self.accept_kw(Kw::CURRENT_USER) {
            if self.accept(TokenKind::LParen) {
                self.expect(TokenKind::RParen)?;
            }
            return Ok(AccountName {
                user: String::new(),
                host: String::new(),
                current: true,
            });
        }
        let user = self.ident_or_text()?;
        let host = if self.is(TokenKind::UserVar) {
            self.user_var()?.to_ascii_lowercase()
        } else {
            "%".to_string()
        };
        Ok(AccountName {
            user,
            host,
            current: false,
        })
    }

    pub(super) fn create_user(&mut self) -> Result<Statement> {
        self.advance();
        let if_clause = self.if_not_exists()?;
        let users = self.comma_list(Self::user_spec)?;
        let mut options = Vec::new();
        let mut default_roles = None;
        if self.accept_kws(&[Kw::DEFAULT, Kw::ROLE])? {
            default_roles = Some(DefaultRoles::List(self.comma_list(Self::account)?));
        }
        self.user_options(&mut options)?;
        Ok(Statement::CreateUser(CreateUser {
            if_clause,
            users,
            default_roles,
            options,
        }))
    }

    pub(super) fn alter_user(&mut self) -> Result<Statement> {
        self.advance();
        let if_clause = self.if_exists()?;
        if self.at(Kw::USER) && self.peek().kind == TokenKind::LParen {
            // `ALTER USER USER() IDENTIFIED BY …`
            self.advance();
            self.advance();
            self.expect(TokenKind::RParen)?;
            let account = AccountName {
                user: String::new(),
                host: String::new(),
                current: true,
            };
            let auth = self.identified()?;
            let users = vec![UserSpec { account, auth }];
            return Ok(Statement::AlterUser(CreateUser {
                if_clause,
                users,
                default_roles: None,
                options: Vec::new(),
            }));
        }
        let users = self.comma_list(Self::user_spec)?;
        let mut default_roles = None;
        if self.accept_kws(&[Kw::DEFAULT, Kw::ROLE])? {
            default_roles = Some(self.default_roles()?);
        }
        let mut options = Vec::new();
        self.user_options(&mut options)?;
        Ok(Statement::AlterUser(CreateUser {
            if_clause,
            users,
            default_roles,
            options,
        }))
    }

    fn user_spec(&mut self) -> Result<UserSpec> {
        let account = self.account()?;
        let auth = self.identified()?;
        Ok(UserSpec { account, auth })
    }

    /// `IDENTIFIED [WITH plugin] [BY 'x' | BY RANDOM PASSWORD | AS 'hash'] [REPLACE 'old'] [RETAIN
    /// CURRENT PASSWORD]`
    fn identified(&mut self) -> Result<Option<UserAuth>> {
        if self.accept_kws(&[Kw::DISCARD, Kw::OLD, Kw::PASSWORD])?
            || !self.accept_kw(Kw::IDENTIFIED)
        {
            return Ok(None);
        }
        let plugin = if self.accept_kw(Kw::WITH) {
            Some(self.ident_or_text()?.to_ascii_lowercase())
        } else {
            None
        };
        let secret = if self.accept_kw(Kw::BY) {
            if self.accept_kw(Kw::RANDOM) {
                self.expect_kw(Kw::PASSWORD)?;
                AuthSecret::Random
            } else {
                AuthSecret::Password(self.string()?)
            }
        } else if plugin.is_some() && self.accept_kw(Kw::AS) {
            AuthSecret::Hash(self.text_or_hex()?)
        } else if plugin.is_some() {
            AuthSecret::None
        } else {
            return self.unexpected();
        };
        if self.accept_kw(Kw::REPLACE) {
            self.string()?;
        }
        self.accept_kws(&[Kw::RETAIN, Kw::CURRENT, Kw::PASSWORD])?;
        Ok(Some(UserAuth { plugin, secret }))
    }

    /// `[REQUIRE …] [WITH limits] [PASSWORD …] [ACCOUNT LOCK|UNLOCK] [COMMENT …]`
    fn user_options(&mut self, options: &mut Vec<UserOption>) -> Result<()> {
        loop {
            let start = self.token.start as usize;
            match self.kw() {
                Kw::ACCOUNT => {
                    self.advance();
                    let lock = self.accept_kw(Kw::LOCK);
                    if !lock {
                        self.expect_kw(Kw::UNLOCK)?;
                    }
                    options.push(UserOption::AccountLock(lock));
                    continue;
                }
                Kw::REQUIRE => self.require()?,
                Kw::WITH => {
                    self.advance();
                    let mut any = false;
                    while self.is_resource_limit() {
                        any = true;
                        self.advance();
                        self.number()?;
                    }
                    if !any {
                        return self.unexpected();
                    }
                }
                Kw::PASSWORD | Kw::FAILED_LOGIN_ATTEMPTS | Kw::PASSWORD_LOCK_TIME => {
                    self.password_option()?
                }
                Kw::COMMENT | Kw::ATTRIBUTE => {
                    self.advance();
                    self.string()?;
                }
                _ => return Ok(()),
            }
            let words =
                String::from_utf8_lossy(&self.text[start..self.end as usize]).to_ascii_uppercase();
            options.push(UserOption::Other(words));
        }
    }

    fn is_resource_limit(&self) -> bool {
        matches!(
            self.kw(),
            Kw::MAX_QUERIES_PER_HOUR
                | Kw::MAX_UPDATES_PER_HOUR
                | Kw::MAX_CONNECTIONS_PER_HOUR
                | Kw::MAX_USER_CONNECTIONS
        )
    }

    fn require(&mut self) -> Result<()> {
        self.advance();
        if matches!(self.kw(), Kw::SSL | Kw::X509 | Kw::NONE) {
            self.advance();
            return Ok(());
        }
        loop {
            if !matches!(self.kw(), Kw::SUBJECT | Kw::ISSUER | Kw::CIPHER) {
                return self.unexpected();
            }
            self.advance();
            self.string()?;
            let and = self.accept_kw(Kw::AND);
            if !and && !matches!(self.kw(), Kw::SUBJECT | Kw::ISSUER | Kw::CIPHER) {
                return Ok(());
            }
        }
    }

    /// `PASSWORD EXPIRE …`, `PASSWORD HISTORY …`, `PASSWORD REUSE INTERVAL …`, `PASSWORD REQUIRE
    /// CURRENT …`
    fn password_option(&mut self) -> Result<()> {
        if self.advance().kw != Kw::PASSWORD {
            if !self.accept_kw(Kw::UNBOUNDED) {
                self.number()?;
            }
            return Ok(());
        }
        match self.kw() {
            Kw::EXPIRE => {
                self.advance();
                if self.accept_kw(Kw::INTERVAL) {
                    self.number()?;
                    self.expect_kw(Kw::DAY)?;
                } else if matches!(self.kw(), Kw::NEVER | Kw::DEFAULT) {
                    self.advance();
                }
            }
            Kw::HISTORY => {
                self.advance();
                if !self.accept_kw(Kw::DEFAULT) {
                    self.number()?;
                }
            }
            Kw::REUSE => {
                self.advance();
                self.expect_kw(Kw::INTERVAL)?;
                if !self.accept_kw(Kw::DEFAULT) {
                    self.number()?;
                    self.expect_kw(Kw::DAY)?;
                }
            }
            Kw::REQUIRE => {
                self.advance();
                self.expect_kw(Kw::CURRENT)?;
                if matches!(self.kw(), Kw::DEFAULT | Kw::OPTIONAL) {
                    self.advance();
                }
            }
            _ => return self.unexpected(),
        }
        Ok(())
    }

    pub(super) fn grant(&mut self) -> Result<Statement> {
        self.advance();
        let start = self.token.start;
        let (mut privileges, grant_option, words) = self.privileges()?;
        let mut target = GrantTarget::None;
        if self.accept_kw(Kw::ON) {
            target = self.grant_target(&mut privileges)?;
        } else if !self.at(Kw::TO) {
            return self.unexpected();
        } else if !privileges_to_roles(&mut privileges, words) {
            return Err(super::syntax_error_at(self.text, start as usize));
        }
        self.expect_kw(Kw::TO)?;
        let to = self.comma_list(|p| {
            Ok(UserSpec {
                account: p.account()?,
                auth: None,
            })
        })?;
        let mut option = grant_option;
        if self.accept_kw(Kw::WITH) {
            if matches!(privileges, Privileges::Roles(_)) {
                self.expect_kw(Kw::ADMIN)?;
                self.expect_kw(Kw::OPTION)?;
                option = true;
            } else {
                self.expect_kw(Kw::GRANT)?;
                self.expect_kw(Kw::OPTION)?;
                option = true;
            }
        }
        if self.at(Kw::AS) {
            return self.unsupported("GRANT … AS");
        }
        Ok(Statement::Grant(Grant {
            privileges,
            target,
            to,
            grant_option: option,
        }))
    }

    pub(super) fn revoke(&mut self) -> Result<Statement> {
        self.advance();
        let if_exists = self.if_exists()?;
        let start = self.token.start;
        let (mut privileges, grant_option, words) = self.privileges()?;
        let mut everything = false;
        let mut target = GrantTarget::None;
        if self.accept_kw(Kw::ON) {
            target = self.grant_target(&mut privileges)?;
        } else if privileges == Privileges::All && self.accept(TokenKind::Comma) {
            self.expect_kw(Kw::GRANT)?;
            self.expect_kw(Kw::OPTION)?;
            everything = true;
        } else if !self.at(Kw::FROM) {
            return self.unexpected();
        } else if !privileges_to_roles(&mut privileges, words) {
            return Err(super::syntax_error_at(self.text, start as usize));
        }
        self.expect_kw(Kw::FROM)?;
        let from = self.comma_list(Self::account)?;
        let ignore_unknown = self.accept_kws(&[Kw::IGNORE, Kw::UNKNOWN, Kw::USER])?;
        Ok(Statement::Revoke(Revoke {
            if_exists,
            privileges,
            target,
            from,
            ignore_unknown,
            everything,
            grant_option,
        }))
    }

    /// The granted privileges, whether GRANT OPTION is among them, and the same words as names of
    /// roles: only ON or TO behind them says which they are.
    fn privileges(&mut self) -> Result<(Privileges, bool, Vec<AccountName>)> {
        if self.accept_kw(Kw::ALL) {
            self.accept_kw(Kw::PRIVILEGES);
            return Ok((Privileges::All, false, Vec::new()));
        }
        if self.accept_kw(Kw::PROXY) {
            return Ok((Privileges::Proxy, false, Vec::new()));
        }
        let (mut grant_option, mut quoted) = (false, false);
        let (mut list, mut words) = (Vec::new(), Vec::new());
        loop {
            if self.accept_kw(Kw::GRANT) {
                self.expect_kw(Kw::OPTION)?;
                grant_option = true;
            } else if matches!(self.kind(), TokenKind::Str | TokenKind::QuotedIdent)
                || self.peek().kind == TokenKind::UserVar
            {
                quoted = true;
                words.push(self.account()?);
            } else {
                let (name, word, columns) = self.privilege()?;
                list.push((name, columns));
                words.push(AccountName {
                    user: word,
                    host: "%".to_string(),
                    current: false,
                });
            }
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        match quoted {
            false => Ok((Privileges::List(list), grant_option, words)),
            true => Ok((Privileges::Roles(words), grant_option, Vec::new())),
        }
    }

    /// One privilege: in upper case, its first word as written, and its columns.
    fn privilege(&mut self) -> Result<(String, String, Vec<Ident>)> {
        let start = self.kw();
        // The keywords that may continue this privilege, and whether one of them must follow.
        let (more, must): (&[&[Kw]], bool) = match start {
            Kw::CREATE => (
                &[
                    &[Kw::TEMPORARY, Kw::TABLES],
                    &[Kw::VIEW],
                    &[Kw::USER],
                    &[Kw::ROUTINE],
                    &[Kw::TABLESPACE],
                    &[Kw::ROLE],
                ],
                false,
            ),
            Kw::ALTER => (&[&[Kw::ROUTINE]], false),
            Kw::DROP => (&[&[Kw::ROLE]], false),
            Kw::SHOW => (&[&[Kw::DATABASES], &[Kw::VIEW]], true),
            Kw::LOCK => (&[&[Kw::TABLES]], true),
            Kw::REPLICATION => (&[&[Kw::SLAVE], &[Kw::CLIENT]], true),
            Kw::SELECT
            | Kw::INSERT
            | Kw::UPDATE
            | Kw::REFERENCES
            | Kw::DELETE
            | Kw::USAGE
            | Kw::INDEX
            | Kw::TRIGGER => (&[], false),
            kw if kw.is_reserved() => return self.unexpected(),
            _ => (&[], false),
        };
        let word = self.any_word()?.value;
        let mut name = word.to_ascii_uppercase();
        let found = more.iter().find(|words| words[0] == self.kw());
        if must && found.is_none() {
            return self.unexpected();
        }
        for word in found.copied().unwrap_or_default() {
            self.expect_kw(*word)?;
            name.push(' ');
            name.push_str(word.name());
        }
        let with_columns = matches!(start, Kw::SELECT | Kw::INSERT | Kw::UPDATE | Kw::REFERENCES);
        let columns = if with_columns && self.is(TokenKind::LParen) {
            self.paren_list(Self::ident)?
        } else {
            Vec::new()
        };
        Ok((name, word, columns))
    }

    pub(super) fn create_role(&mut self) -> Result<Statement> {
        self.advance();
        Ok(Statement::Role(RoleStatement::Create {
            if_not_exists: self.if_not_exists()?,
            roles: self.comma_list(Self::account)?,
        }))
    }

    pub(super) fn drop_role(&mut self) -> Result<Statement> {
        self.advance();
        Ok(Statement::Role(RoleStatement::Drop {
            if_exists: self.if_exists()?,
            roles: self.comma_list(Self::account)?,
        }))
    }

    /// `ROLE {NONE | DEFAULT | ALL [EXCEPT roles] | roles}`
    pub(super) fn set_role(&mut self) -> Result<Statement> {
        self.advance();
        let roles = if self.accept_kw(Kw::NONE) {
            ActiveRoles::None
        } else if self.accept_kw(Kw::DEFAULT) {
            ActiveRoles::Default
        } else if self.accept_kw(Kw::ALL) {
            ActiveRoles::All(match self.accept_kw(Kw::EXCEPT) {
                true => self.comma_list(Self::account)?,
                false => Vec::new(),
            })
        } else {
            ActiveRoles::List(self.comma_list(Self::account)?)
        };
        Ok(Statement::Role(RoleStatement::Set(roles)))
    }

    /// `DEFAULT ROLE {NONE | ALL | roles} TO accounts`
    pub(super) fn set_default_role(&mut self) -> Result<Statement> {
        self.advance();
        self.expect_kw(Kw::ROLE)?;
        let roles = self.default_roles()?;
        self.expect_kw(Kw::TO)?;
        let to = self.comma_list(Self::account)?;
        Ok(Statement::Role(RoleStatement::SetDefault { roles, to }))
    }

    fn default_roles(&mut self) -> Result<DefaultRoles> {
        if self.accept_kw(Kw::NONE) {
            return Ok(DefaultRoles::None);
        }
        if self.accept_kw(Kw::ALL) {
            return Ok(DefaultRoles::All);
        }
        Ok(DefaultRoles::List(self.comma_list(Self::account)?))
    }

    fn grant_target(&mut self, privileges: &mut Privileges) -> Result<GrantTarget> {
        if *privileges == Privileges::Proxy {
            self.account()?;
            return Ok(GrantTarget::None);
        }
        if let Privileges::Roles(roles) = privileges {
            let names = roles
                .iter()
                .map(|r| (r.user.to_ascii_uppercase(), Vec::new()))
                .collect();
            *privileges = Privileges::List(names);
        }
        let routine = matches!(self.kw(), Kw::FUNCTION | Kw::PROCEDURE);
        if routine || (self.at(Kw::TABLE)) {
            self.advance();
        }
        if self.accept(TokenKind::Star) {
            if !self.accept(TokenKind::Dot) {
                return Ok(GrantTarget::CurrentDatabase);
            }
            self.expect(TokenKind::Star)?;
            return Ok(GrantTarget::Global);
        }
        let first = self.ident()?;
        if !self.accept(TokenKind::Dot) {
            let name = ObjectName {
                schema: None,
                name: first,
            };
            return Ok(if routine {
                GrantTarget::Routine(name)
            } else {
                GrantTarget::Table(name)
            });
        }
        if self.accept(TokenKind::Star) {
            return Ok(GrantTarget::Database(first));
        }
        let name = ObjectName {
            schema: Some(first),
            name: self.ident_after_dot()?,
        };
        Ok(if routine {
            GrantTarget::Routine(name)
        } else {
            GrantTarget::Table(name)
        })
    }
}

/// Converts a list without ON to roles. Returns false if that is impossible.
fn privileges_to_roles(privileges: &mut Privileges, words: Vec<AccountName>) -> bool {
    match privileges {
        Privileges::List(list) => {
            // A privilege of several words, or with a reserved word, cannot be a role.
            let reserved = |name: &str| name.contains(' ') || Kw::of(name.as_bytes()).is_reserved();
            if list.iter().any(|(name, _)| reserved(name)) {
                return false;
            }
            *privileges = Privileges::Roles(words);
            true
        }
        Privileges::Roles(_) => true,
        _ => false,
    }
}
