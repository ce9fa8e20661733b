//! Accounts. Version 1 has privileges on `*.*` and on databases. Version 2 is version 1, then a
//! list of sections `u8 kind, bytes`; a reader refuses kinds that it does not know.

use super::{BadObject, Reader, Stored, VERSION, VERSION_SECTIONS, put_bytes, put_list};
use crate::account::{Account, AccountId, DynamicGrant, ProxyGrant, RoleGrant, TableGrant};
use crate::account_options::{
    AccountOptions, CertificateRule, LockDays, PasswordOptions, PastPassword, ResourceLimits,
};
use crate::privileges::Privileges;

/// The section of the privileges on tables and columns.
const SECTION_TABLES: u8 = 1;
/// The section of the dynamic privileges.
const SECTION_DYNAMIC: u8 = 2;
/// The section of the roles that the account has.
const SECTION_ROLES: u8 = 3;
/// The section of the default roles.
const SECTION_DEFAULT_ROLES: u8 = 4;
/// The section of an expired password: one byte.
const SECTION_EXPIRED: u8 = 5;
/// The section of the options.
const SECTION_OPTIONS: u8 = 6;
/// The section of the partial revokes.
const SECTION_RESTRICTIONS: u8 = 7;
/// The section of the accounts that the account may act as.
const SECTION_PROXIES: u8 = 8;
/// The section of the client's certificate, behind that of the options.
const SECTION_CERTIFICATE: u8 = 9;

/// The stored form of [`LockDays::Unbounded`].
const UNBOUNDED: u32 = u32::MAX;

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

fn put_privileges(out: &mut Vec<u8>, (name, privileges): &(Box<str>, Privileges)) {
    put_text(out, name);
    out.extend_from_slice(&privileges.0.to_le_bytes());
}

fn put_id(out: &mut Vec<u8>, (user, host): &AccountId) {
    put_text(out, user);
    put_text(out, host);
}

fn put_table(out: &mut Vec<u8>, t: &TableGrant) {
    put_text(out, &t.database);
    put_text(out, &t.table);
    out.extend_from_slice(&t.privileges.0.to_le_bytes());
    put_list(out, &t.columns, put_privileges);
    put_text(out, &t.grantor);
    out.extend_from_slice(&t.granted_s.to_le_bytes());
}

fn get_privileges(r: &mut Reader<'_>) -> Result<(Box<str>, Privileges), BadObject> {
    Ok((r.text("name")?.into(), Privileges(r.u64("privileges")?)))
}

fn get_id(r: &mut Reader<'_>) -> Result<AccountId, BadObject> {
    Ok((r.text("user")?.into(), r.text("host")?.into()))
}

fn get_table(r: &mut Reader<'_>) -> Result<TableGrant, BadObject> {
    Ok(TableGrant {
        database: r.text("database")?.into(),
        table: r.text("table")?.into(),
        privileges: Privileges(r.u64("privileges")?),
        columns: r.list("columns", get_privileges)?,
        grantor: r.text("grantor")?.into(),
        granted_s: r.u64("granted")?,
    })
}

/// `u8` whether there is a number, and the number.
fn put_number(out: &mut Vec<u8>, number: Option<u32>) {
    out.push(number.is_some().into());
    out.extend_from_slice(&number.unwrap_or(0).to_le_bytes());
}

fn get_number(r: &mut Reader<'_>) -> Result<Option<u32>, BadObject> {
    let there = r.bool("number")?;
    let number = r.u32("number")?;
    Ok(there.then_some(number))
}

fn put_options(out: &mut Vec<u8>, options: &AccountOptions) {
    out.push(options.require_tls.into());
    let limits = &options.limits;
    for limit in [
        limits.queries_per_hour,
        limits.updates_per_hour,
        limits.connections_per_hour,
        limits.connections,
    ] {
        out.extend_from_slice(&limit.to_le_bytes());
    }
    let password = &options.password;
    out.extend_from_slice(&password.changed_s.to_le_bytes());
    put_number(out, password.lifetime_days.map(u32::from));
    put_number(out, password.history);
    put_number(out, password.reuse_days);
    put_number(out, password.require_current.map(u32::from));
    out.extend_from_slice(&u32::from(password.failed_attempts).to_le_bytes());
    let lock_days = match password.lock_days {
        LockDays::Days(days) => days.into(),
        LockDays::Unbounded => UNBOUNDED,
    };
    out.extend_from_slice(&lock_days.to_le_bytes());
    put_bytes(out, &password.second);
    put_list(out, &password.past, |out, past| {
        out.extend_from_slice(&past.set_s.to_le_bytes());
        put_bytes(out, &past.stored);
    });
    out.push(options.attribute.is_some().into());
    put_text(out, options.attribute.as_deref().unwrap_or(""));
}

fn get_options(r: &mut Reader<'_>) -> Result<AccountOptions, BadObject> {
    let short = |number: u32| u16::try_from(number).map_err(|_| BadObject("number"));
    let require_tls = r.bool("require tls")?;
    let limits = ResourceLimits {
        queries_per_hour: r.u32("queries")?,
        updates_per_hour: r.u32("updates")?,
        connections_per_hour: r.u32("connections")?,
        connections: r.u32("connections")?,
    };
    let password = PasswordOptions {
        changed_s: r.u64("changed")?,
        lifetime_days: get_number(r)?.map(short).transpose()?,
        history: get_number(r)?,
        reuse_days: get_number(r)?,
        require_current: get_number(r)?.map(|current| current != 0),
        failed_attempts: short(r.u32("failed attempts")?)?,
        lock_days: match r.u32("lock days")? {
            UNBOUNDED => LockDays::Unbounded,
            days => LockDays::Days(short(days)?),
        },
        second: r.bytes("second password")?.into(),
        past: r.list("past passwords", |r| {
            Ok(PastPassword {
                set_s: r.u64("set")?,
                stored: r.bytes("stored")?.into(),
            })
        })?,
    };
    let noted = r.bool("attribute")?;
    let text = r.text("attribute")?;
    Ok(AccountOptions {
        require_tls,
        certificate: None,
        limits,
        password,
        attribute: noted.then(|| text.into()),
    })
}

fn put_proxy(out: &mut Vec<u8>, p: &ProxyGrant) {
    put_id(out, &p.proxied);
    out.push(p.grant_option.into());
    put_text(out, &p.grantor);
    out.extend_from_slice(&p.granted_s.to_le_bytes());
}

fn get_proxy(r: &mut Reader<'_>) -> Result<ProxyGrant, BadObject> {
    Ok(ProxyGrant {
        proxied: get_id(r)?,
        grant_option: r.bool("grant option")?,
        grantor: r.text("grantor")?.into(),
        granted_s: r.u64("granted")?,
    })
}

fn put_certificate(out: &mut Vec<u8>, rule: &CertificateRule) {
    for part in [&rule.subject, &rule.issuer, &rule.cipher] {
        out.push(part.is_some().into());
        put_text(out, part.as_deref().unwrap_or(""));
    }
}

fn get_certificate(r: &mut Reader<'_>) -> Result<CertificateRule, BadObject> {
    let mut part = || {
        let there = r.bool("part of a certificate")?;
        let text = r.text("part of a certificate")?;
        Ok(there.then(|| text.into()))
    };
    Ok(CertificateRule {
        subject: part()?,
        issuer: part()?,
        cipher: part()?,
    })
}

fn sections_of(account: &Account) -> Vec<(u8, Vec<u8>)> {
    let mut sections = Vec::new();
    let mut add = |kind, empty: bool, put: &dyn Fn(&mut Vec<u8>)| {
        if !empty {
            let mut bytes = Vec::new();
            put(&mut bytes);
            sections.push((kind, bytes));
        }
    };
    add(SECTION_TABLES, account.tables.is_empty(), &|out| {
        put_list(out, &account.tables, put_table);
    });
    add(SECTION_DYNAMIC, account.dynamic.is_empty(), &|out| {
        put_list(out, &account.dynamic, |out, d| {
            put_text(out, &d.name);
            out.push(d.grant_option.into());
        });
    });
    add(SECTION_ROLES, account.roles.is_empty(), &|out| {
        put_list(out, &account.roles, |out, r| {
            put_id(out, &r.role);
            out.push(r.admin_option.into());
        });
    });
    let no_default = account.default_roles.is_empty();
    add(SECTION_DEFAULT_ROLES, no_default, &|out| {
        put_list(out, &account.default_roles, put_id);
    });
    add(SECTION_EXPIRED, !account.expired, &|out| out.push(1));
    let plain = account.options == AccountOptions::default();
    add(SECTION_OPTIONS, plain, &|out| {
        put_options(out, &account.options)
    });
    let unrestricted = account.restrictions.is_empty();
    add(SECTION_RESTRICTIONS, unrestricted, &|out| {
        put_list(out, &account.restrictions, put_privileges);
    });
    add(SECTION_PROXIES, account.proxies.is_empty(), &|out| {
        put_list(out, &account.proxies, put_proxy);
    });
    let certificate = account.options.certificate.as_ref();
    add(SECTION_CERTIFICATE, certificate.is_none(), &|out| {
        certificate
            .into_iter()
            .for_each(|c| put_certificate(out, c));
    });
    sections
}

fn get_section(kind: u8, r: &mut Reader<'_>, account: &mut Account) -> Result<(), BadObject> {
    match kind {
        SECTION_TABLES => account.tables = r.list("tables", get_table)?,
        SECTION_DYNAMIC => {
            account.dynamic = r.list("dynamic privileges", |r| {
                Ok(DynamicGrant {
                    name: r.text("name")?.into(),
                    grant_option: r.bool("grant option")?,
                })
            })?;
        }
        SECTION_ROLES => {
            account.roles = r.list("roles", |r| {
                Ok(RoleGrant {
                    role: get_id(r)?,
                    admin_option: r.bool("admin option")?,
                })
            })?;
        }
        SECTION_DEFAULT_ROLES => account.default_roles = r.list("default roles", get_id)?,
        SECTION_EXPIRED => account.expired = r.bool("expired")?,
        SECTION_OPTIONS => account.options = get_options(r)?,
        SECTION_RESTRICTIONS => account.restrictions = r.list("restrictions", get_privileges)?,
        SECTION_PROXIES => account.proxies = r.list("proxies", get_proxy)?,
        SECTION_CERTIFICATE => account.options.certificate = Some(get_certificate(r)?),
        _ => return Err(BadObject("section of an account")),
    }
    Ok(())
}

impl Stored for Account {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION_SECTIONS);
        for text in [&self.user, &self.host, &self.plugin] {
            put_text(out, text);
        }
        put_bytes(out, &self.auth_string);
        out.push(self.locked.into());
        out.extend_from_slice(&self.global.0.to_le_bytes());
        put_list(out, &self.databases, put_privileges);
        put_list(out, &sections_of(self), |out, (kind, bytes)| {
            out.push(*kind);
            put_bytes(out, bytes);
        });
    }

    fn decode(input: &[u8]) -> Result<Self, BadObject> {
        let mut r = Reader(input);
        let version = r.u8("version")?;
        if !matches!(version, VERSION | VERSION_SECTIONS) {
            return Err(BadObject("version"));
        }
        let id = get_id(&mut r)?;
        let mut account = Account::new(id, r.text("plugin")?);
        account.auth_string = r.bytes("auth_string")?.into();
        account.locked = r.bool("locked")?;
        account.global = Privileges(r.u64("global")?);
        account.databases = r.list("databases", get_privileges)?;
        if version == VERSION {
            // There were no dynamic privileges. SUPER had the rights that they are for, as in
            // MySQL's upgrade from 5.7.
            if account.global.contains(Privileges::SUPER) {
                account.add_all_dynamic(account.global.contains(Privileges::GRANT_OPTION));
            }
            return Ok(account);
        }
        r.list("sections", |r| {
            let kind = r.u8("section")?;
            let mut section = Reader(r.bytes("section")?);
            get_section(kind, &mut section, &mut account)
        })?;
        Ok(account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        let mut account = Account::new(("u".into(), "%".into()), "mysql_native_password");
        account.auth_string = Box::from(*b"*AB");
        account.locked = true;
        account.global = Privileges::SELECT;
        account.databases = vec![("d%".into(), Privileges::all_database())];
        account
    }

    #[test]
    fn accounts_round_trip() {
        let mut full = account();
        full.expired = true;
        full.tables.push(TableGrant {
            database: "d".into(),
            table: "t".into(),
            privileges: Privileges::DELETE,
            columns: vec![("a".into(), Privileges::SELECT.union(Privileges::UPDATE))],
            grantor: "root@localhost".into(),
            granted_s: 1_700_000_000,
        });
        full.add_all_dynamic(true);
        full.roles.push(RoleGrant {
            role: ("r".into(), "%".into()),
            admin_option: true,
        });
        full.default_roles.push(("r".into(), "%".into()));
        full.restrict("d", Privileges::SELECT);
        full.proxies.push(ProxyGrant {
            proxied: ("p".into(), "".into()),
            grant_option: true,
            grantor: "root@localhost".into(),
            granted_s: 1_700_000_000,
        });
        full.options.require_tls = true;
        full.options.certificate = Some(CertificateRule {
            subject: Some("/CN=x".into()),
            issuer: Some("".into()),
            cipher: None,
        });
        full.options.limits.connections = 3;
        full.options.attribute = Some("{}".into());
        full.options.password = PasswordOptions {
            changed_s: 1_700_000_000,
            lifetime_days: Some(0),
            history: Some(u32::MAX),
            reuse_days: None,
            require_current: Some(false),
            failed_attempts: 5,
            lock_days: LockDays::Unbounded,
            second: Box::from(*b"*CD"),
            past: vec![PastPassword {
                set_s: 1,
                stored: Box::from(*b"*EF"),
            }],
        };
        for account in [account(), full] {
            let mut bytes = Vec::new();
            account.encode(&mut bytes);
            assert_eq!(Account::decode(&bytes), Ok(account));
            for cut in 0..bytes.len() {
                assert!(Account::decode(&bytes[..cut]).is_err(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn version_1_is_read() {
        let mut bytes = vec![VERSION];
        for text in ["root", "localhost", "caching_sha2_password", ""] {
            put_text(&mut bytes, text);
        }
        bytes.push(0);
        let rights = Privileges::all_global().union(Privileges::GRANT_OPTION);
        bytes.extend_from_slice(&rights.0.to_le_bytes());
        put_list(
            &mut bytes,
            &[("d".into(), Privileges::INSERT)],
            put_privileges,
        );
        let root = Account::decode(&bytes).unwrap();
        assert_eq!(root.databases, [("d".into(), Privileges::INSERT)]);
        let grant = root.dynamic_grant("SYSTEM_VARIABLES_ADMIN").unwrap();
        assert!(grant.grant_option && !root.expired && root.tables.is_empty());
    }
}
