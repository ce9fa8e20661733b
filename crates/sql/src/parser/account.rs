//! Accounts and privileges.

use nfold_types::{ErrorCode, SqlError};

use super::{Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;

const MAX_USER_CHARS: usize = 32;
const MAX_HOST_CHARS: usize = 255;

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
        check_part(&user, "user name", MAX_USER_CHARS)?;
        let host = if self.is(TokenKind::UserVar) {
            self.user_var()?.to_ascii_lowercase()
        } else {
            "%".to_string()
        };
        check_part(&host, "host name", MAX_HOST_CHARS)?;
        Ok(AccountName {
            user,
            host,
            current: false,
        })
    }

    pub(super) fn create_user(&mut self) -> Result<Statement> {
        self.advance();
        let if_clause = self.if_not_exists()?;
        let users = self.comma_list(|p| p.user_spec(false))?;
        let rest = self.token.start;
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
            rest,
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
            let (auth, discard_old) = self.identified(true)?;
            let rest = self.token.start;
            let users = vec![UserSpec {
                account,
                auth,
                discard_old,
            }];
            return Ok(Statement::AlterUser(CreateUser {
                if_clause,
                users,
                default_roles: None,
                options: Vec::new(),
                rest,
            }));
        }
        let users = self.comma_list(|p| p.user_spec(true))?;
        let rest = self.token.start;
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
            rest,
        }))
    }

    /// `alter`: for ALTER USER, which has clauses of its own.
    fn user_spec(&mut self, alter: bool) -> Result<UserSpec> {
        let account = self.account()?;
        let (auth, discard_old) = self.identified(alter)?;
        Ok(UserSpec {
            account,
            auth,
            discard_old,
        })
    }

    /// `IDENTIFIED [WITH plugin] [BY 'x' | BY RANDOM PASSWORD | AS 'hash']`, and for ALTER USER
    /// `[REPLACE 'old'] [RETAIN CURRENT PASSWORD]`; or `DISCARD OLD PASSWORD`, which returns true.
    fn identified(&mut self, alter: bool) -> Result<(Option<UserAuth>, bool)> {
        if alter && self.accept_kws(&[Kw::DISCARD, Kw::OLD, Kw::PASSWORD])? {
            return Ok((None, true));
        }
        if !self.accept_kw(Kw::IDENTIFIED) {
            return Ok((None, false));
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
        let mut auth = UserAuth {
            plugin,
            secret,
            replace: None,
            retain: false,
        };
        if alter && auth.secret != AuthSecret::None {
            let hashed = matches!(auth.secret, AuthSecret::Hash(_));
            self.replace_and_retain(&mut auth, !hashed)?;
        }
        Ok((Some(auth), false))
    }

    /// `[REPLACE 'current password'] [RETAIN CURRENT PASSWORD]`
    fn replace_and_retain(&mut self, auth: &mut UserAuth, may_replace: bool) -> Result<()> {
        if may_replace && self.accept_kw(Kw::REPLACE) {
            auth.replace = Some(self.string()?);
        }
        auth.retain = self.accept_kws(&[Kw::RETAIN, Kw::CURRENT, Kw::PASSWORD])?;
        Ok(())
    }

    /// `PASSWORD [FOR account] {= 'text' | TO RANDOM} [REPLACE 'old'] [RETAIN CURRENT PASSWORD]`
    pub(super) fn set_password(&mut self) -> Result<Statement> {
        self.advance();
        let account = if self.accept_kw(Kw::FOR) {
            Some(self.account()?)
        } else {
            None
        };
        let secret = if self.accept_kw(Kw::TO) {
            self.expect_kw(Kw::RANDOM)?;
            AuthSecret::Random
        } else {
            self.set_operator()?;
            AuthSecret::Password(self.string()?)
        };
        let mut auth = UserAuth {
            plugin: None,
            secret,
            replace: None,
            retain: false,
        };
        self.replace_and_retain(&mut auth, true)?;
        Ok(Statement::SetPassword(SetPassword { account, auth }))
    }

    /// `[REQUIRE …] [WITH limits] [PASSWORD …] [ACCOUNT LOCK|UNLOCK] [COMMENT … | ATTRIBUTE …]`
    fn user_options(&mut self, options: &mut Vec<UserOption>) -> Result<()> {
        loop {
            match self.kw() {
                Kw::ACCOUNT => {
                    self.advance();
                    let lock = self.accept_kw(Kw::LOCK);
                    if !lock {
                        self.expect_kw(Kw::UNLOCK)?;
                    }
                    options.push(UserOption::AccountLock(lock));
                }
                Kw::REQUIRE => options.push(self.require()?),
                Kw::WITH => {
                    self.advance();
                    let before = options.len();
                    while let Some(limit) = self.resource_limit() {
                        self.advance();
                        options.push(UserOption::Limit(limit, self.number()?));
                    }
                    if options.len() == before {
                        return self.unexpected();
                    }
                }
                Kw::PASSWORD => {
                    self.advance();
                    options.push(self.password_option()?);
                }
                Kw::FAILED_LOGIN_ATTEMPTS => {
                    self.advance();
                    options.push(UserOption::FailedAttempts(self.number()?));
                }
                Kw::PASSWORD_LOCK_TIME => {
                    self.advance();
                    let days = match self.accept_kw(Kw::UNBOUNDED) {
                        true => None,
                        false => Some(self.number()?),
                    };
                    options.push(UserOption::LockTime(days));
                }
                Kw::COMMENT => {
                    self.advance();
                    options.push(UserOption::Comment(self.string()?));
                    return Ok(());
                }
                Kw::ATTRIBUTE => {
                    self.advance();
                    options.push(UserOption::Attribute(self.string()?));
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
    }

    fn resource_limit(&self) -> Option<ResourceLimit> {
        Some(match self.kw() {
            Kw::MAX_QUERIES_PER_HOUR => ResourceLimit::QueriesPerHour,
            Kw::MAX_UPDATES_PER_HOUR => ResourceLimit::UpdatesPerHour,
            Kw::MAX_CONNECTIONS_PER_HOUR => ResourceLimit::ConnectionsPerHour,
            Kw::MAX_USER_CONNECTIONS => ResourceLimit::Connections,
            _ => return None,
        })
    }

    fn require(&mut self) -> Result<UserOption> {
        self.advance();
        if self.accept_kw(Kw::NONE) {
            return Ok(UserOption::RequireTls(false));
        }
        if self.accept_kw(Kw::SSL) {
            return Ok(UserOption::RequireTls(true));
        }
        if self.accept_kw(Kw::X509) {
            return Ok(UserOption::RequireCertificate(CertificateParts::default()));
        }
        let mut parts = CertificateParts::default();
        loop {
            let (name, part) = match self.kw() {
                Kw::SUBJECT => ("SUBJECT", &mut parts.subject),
                Kw::ISSUER => ("ISSUER", &mut parts.issuer),
                Kw::CIPHER => ("CIPHER", &mut parts.cipher),
                _ => return self.unexpected(),
            };
            self.advance();
            if part.replace(self.string()?).is_some() {
                parts.repeated = Some(name);
            }
            let more = self.accept_kw(Kw::AND);
            if !more && !matches!(self.kw(), Kw::SUBJECT | Kw::ISSUER | Kw::CIPHER) {
                return Ok(UserOption::RequireCertificate(parts));
            }
        }
    }

    /// `EXPIRE …`, `HISTORY …`, `REUSE INTERVAL …`, `REQUIRE CURRENT …`
    fn password_option(&mut self) -> Result<UserOption> {
        if self.accept_kw(Kw::EXPIRE) {
            return Ok(if self.accept_kw(Kw::INTERVAL) {
                let days = self.number()?;
                self.expect_kw(Kw::DAY)?;
                UserOption::Lifetime(Some(Lifetime::Days(days)))
            } else if self.accept_kw(Kw::NEVER) {
                UserOption::Lifetime(Some(Lifetime::Never))
            } else if self.accept_kw(Kw::DEFAULT) {
                UserOption::Lifetime(None)
            } else {
                UserOption::Expire
            });
        }
        if self.accept_kw(Kw::HISTORY) {
            let number = self.number_or_default()?;
            return Ok(UserOption::History(number));
        }
        if self.accept_kw(Kw::REUSE) {
            self.expect_kw(Kw::INTERVAL)?;
            let days = self.number_or_default()?;
            if days.is_some() {
                self.expect_kw(Kw::DAY)?;
            }
            return Ok(UserOption::ReuseInterval(days));
        }
        self.expect_kw(Kw::REQUIRE)?;
        self.expect_kw(Kw::CURRENT)?;
        Ok(UserOption::RequireCurrent(if self.accept_kw(Kw::DEFAULT) {
            None
        } else {
            Some(!self.accept_kw(Kw::OPTIONAL))
        }))
    }

    /// A number, or `None` for DEFAULT.
    fn number_or_default(&mut self) -> Result<Option<u64>> {
        match self.accept_kw(Kw::DEFAULT) {
            true => Ok(None),
            false => self.number().map(Some),
        }
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
                discard_old: false,
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
        let as_user = match &privileges {
            Privileges::Roles(_) | Privileges::Proxy => None,
            _ => self.grant_as()?,
        };
        Ok(Statement::Grant(Grant {
            privileges,
            target,
            to,
            grant_option: option,
            as_user,
        }))
    }

    /// `[AS account [WITH ROLE …]]`
    fn grant_as(&mut self) -> Result<Option<GrantAs>> {
        if !self.accept_kw(Kw::AS) {
            return Ok(None);
        }
        let account = self.account()?;
        let mut roles = ActiveRoles::None;
        if self.accept_kw(Kw::WITH) {
            self.expect_kw(Kw::ROLE)?;
            roles = self.active_roles()?;
        }
        Ok(Some(GrantAs { account, roles }))
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
            Kw::PROXY => return self.unexpected(),
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
        let roles = self.active_roles()?;
        Ok(Statement::Role(RoleStatement::Set(roles)))
    }

    fn active_roles(&mut self) -> Result<ActiveRoles> {
        Ok(if self.accept_kw(Kw::NONE) {
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
        })
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
            return Ok(GrantTarget::Account(self.account()?));
        }
        if let Privileges::Roles(roles) = privileges {
            let names = roles
                .iter()
                .map(|r| (r.user.to_ascii_uppercase(), Vec::new()))
                .collect();
            *privileges = Privileges::List(names);
        }
        let routine = match self.kw() {
            Kw::FUNCTION => Some(RoutineKind::Function),
            Kw::PROCEDURE => Some(RoutineKind::Procedure),
            _ => None,
        };
        if routine.is_some() || self.at(Kw::TABLE) {
            self.advance();
        }
        let object = |name| match routine {
            Some(kind) => GrantTarget::Routine(kind, name),
            None => GrantTarget::Table(name),
        };
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
            return Ok(object(name));
        }
        if self.accept(TokenKind::Star) {
            return Ok(GrantTarget::Database(first));
        }
        let name = ObjectName {
            schema: Some(first),
            name: self.ident_after_dot()?,
        };
        Ok(object(name))
    }
}

/// Checks the length of one part of an account's name.
///
/// # Errors
/// 1470.
fn check_part(text: &str, part: &str, max_chars: usize) -> Result<()> {
    if text.chars().count() > max_chars {
        let code = ErrorCode::ER_WRONG_STRING_LENGTH;
        return Err(SqlError::new(code, &[&text, &part, &max_chars]));
    }
    Ok(())
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
