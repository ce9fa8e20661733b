//! Data source names: the server's address and the user, as `mysql://user@host:port/db?key=value`
//! or `host=…,port=…,user=…`.
//!
//! A DSN never contains a password, because the process list shows arguments. The password comes
//! from the first of these sources that has one: the terminal (with `prompt=yes`),
//! `NFOLD_LAB_PASSWORD`, `MYSQL_PWD`, an option file (`option_file=FILE`, or `~/.my.cnf`).

use std::fmt;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::tls::{SslMode, Tls};

mod option_file;
mod terminal;

/// A password. It prints as nothing and cannot be compared.
#[derive(Clone, Default)]
pub struct Secret(String);

impl Secret {
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A server, a user and a default database. `Display` shows them as a URL without the password.
#[derive(Clone, Debug)]
pub struct Dsn {
    /// The host name or address. Ignored if there is a socket.
    pub host: String,
    pub port: u16,
    /// The path of a Unix socket.
    pub socket: Option<PathBuf>,
    pub user: String,
    pub db: Option<String>,
    pub password: Secret,
    option_file: Option<PathBuf>,
    prompt: bool,
    ssl_mode: Option<SslMode>,
    ssl_ca: Option<PathBuf>,
    /// The TLS configuration, unless TLS is disabled.
    pub tls: Option<Tls>,
}

/// For `--help`.
pub const EXAMPLES: &str = "Examples:
  nfold lab dsn mysql://app@127.0.0.1:3306/shop
  nfold lab dsn 'mysql://app@db1/shop?option_file=/etc/shop.cnf&ssl-mode=VERIFY_CA&ssl-ca=/etc/ca.pem'
  nfold lab dsn socket=/run/mysqld/mysqld.sock,user=app,db=shop";

const KEYS: &str = "host, port, socket, user, db, option_file, prompt, ssl-mode, ssl-ca";

impl Dsn {
    /// Parses a DSN and finds the password, which may prompt for it at the terminal.
    pub fn open(text: &str) -> Result<Dsn, LabError> {
        let mut dsn = Dsn::parse(text)?;
        let mode = dsn.ssl_mode();
        if dsn.socket.is_some() && mode > SslMode::Preferred {
            return Err(wrong(format!(
                "ssl-mode={mode} is for TCP; a Unix socket cannot be intercepted"
            )));
        }
        if dsn.socket.is_none() && mode != SslMode::Disabled {
            dsn.tls = Some(Tls::new(mode, dsn.ssl_ca.as_deref())?);
        }
        dsn.find_password()?;
        Ok(dsn)
    }

    /// The TLS mode. The default is TLS if the server supports it, but none on this machine, where
    /// TLS would only distort measurements.
    pub fn ssl_mode(&self) -> SslMode {
        let here = self.socket.is_some() || crate::procfs::is_local(&self.host);
        let usual = if here {
            SslMode::Disabled
        } else {
            SslMode::Preferred
        };
        self.ssl_mode.unwrap_or(usual)
    }

    /// Parses a DSN without looking for the password.
    pub fn parse(text: &str) -> Result<Dsn, LabError> {
        let mut dsn = Dsn {
            host: "127.0.0.1".into(),
            port: 3306,
            socket: None,
            user: std::env::var("USER").unwrap_or_else(|_| "root".into()),
            db: None,
            password: Secret::default(),
            option_file: None,
            prompt: false,
            ssl_mode: None,
            ssl_ca: None,
            tls: None,
        };
        let text = text.trim();
        if let Some(rest) = text
            .strip_prefix("mysql://")
            .or_else(|| text.strip_prefix("mariadb://"))
        {
            dsn.url(rest)?;
        } else if text.contains("://") {
            return Err(wrong(
                "it must begin with mysql://, or be key=value,key=value".into(),
            ));
        } else if text.is_empty() {
            return Err(wrong(
                "it is empty; an example: mysql://app@127.0.0.1:3306/shop".into(),
            ));
        } else {
            for pair in text.split([',', ';', ' ']).filter(|pair| !pair.is_empty()) {
                let Some((key, value)) = pair.split_once('=') else {
                    return Err(wrong(format!(
                        "{pair:?} is no key=value, and it does not begin with mysql://"
                    )));
                };
                dsn.set(key.trim(), value.trim())?;
            }
        }
        Ok(dsn)
    }

    /// Parses the part after `mysql://`.
    fn url(&mut self, rest: &str) -> Result<(), LabError> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, db) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        if user.contains(':') {
            return Err(password_inside());
        }
        if !user.is_empty() {
            self.user = decoded(user)?;
        }
        let (host, port) = match address.strip_prefix('[') {
            Some(v6) => {
                let (host, after) = v6
                    .split_once(']')
                    .ok_or_else(|| wrong("an IPv6 address has no closing bracket".into()))?;
                (host, after.strip_prefix(':'))
            }
            None => match address.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (address, None),
            },
        };
        if !host.is_empty() {
            self.set("host", &decoded(host)?)?;
        }
        if let Some(port) = port {
            self.set("port", port)?;
        }
        if !db.is_empty() {
            self.set("db", &decoded(db)?)?;
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            self.set(key, &decoded(value)?)?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), LabError> {
        match key.to_ascii_lowercase().as_str() {
            "host" | "h" => self.host = value.into(),
            "port" => {
                self.port = match value.parse() {
                    Ok(port) if port > 0 => port,
                    _ => {
                        return Err(wrong(format!(
                            "the port must be a number from 1 to 65535, not {value:?}"
                        )));
                    }
                }
            }
            "socket" => self.socket = Some(value.into()),
            "user" | "u" => self.user = value.into(),
            "db" | "database" => self.db = (!value.is_empty()).then(|| value.into()),
            "option_file" | "defaults_file" => self.option_file = Some(value.into()),
            "ssl-mode" | "ssl_mode" | "sslmode" => {
                self.ssl_mode = Some(SslMode::parse(value).map_err(wrong)?);
            }
            "ssl-ca" | "ssl_ca" => self.ssl_ca = Some(value.into()),
            "prompt" => {
                self.prompt = match value {
                    "" | "yes" | "1" | "true" => true,
                    "no" | "0" | "false" => false,
                    _ => return Err(wrong("prompt is yes or no".into())),
                }
            }
            "password" | "pass" | "passwd" | "pwd" | "p" => return Err(password_inside()),
            _ => return Err(wrong(format!("there is no key {key:?}; there are {KEYS}"))),
        }
        Ok(())
    }

    fn find_password(&mut self) -> Result<(), LabError> {
        let set = |name| std::env::var(name).ok();
        self.password = Secret(if self.prompt {
            terminal::ask(&format!("Password of {self}: "))?
        } else if let Some(password) = set("NFOLD_LAB_PASSWORD").or_else(|| set("MYSQL_PWD")) {
            password
        } else if let Some(file) = &self.option_file {
            option_file::password(file)?.ok_or_else(|| {
                wrong(format!(
                    "{} has no password in its [client] group",
                    file.display()
                ))
            })?
        } else {
            let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".my.cnf"));
            match home {
                Some(file) if file.is_file() => option_file::password(&file)?.unwrap_or_default(),
                _ => String::new(),
            }
        });
        Ok(())
    }
}

impl fmt::Display for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mysql://{}@", self.user)?;
        match &self.socket {
            Some(_) => {}
            None if self.host.contains(':') => write!(f, "[{}]:{}", self.host, self.port)?,
            None => write!(f, "{}:{}", self.host, self.port)?,
        }
        if let Some(db) = &self.db {
            write!(f, "/{db}")?;
        }
        let mut mark = '?';
        if let Some(socket) = &self.socket {
            write!(f, "{mark}socket={}", socket.display())?;
            mark = '&';
        }
        if let Some(mode) = self.ssl_mode {
            write!(f, "{mark}ssl-mode={mode}")?;
        }
        Ok(())
    }
}

fn wrong(why: String) -> LabError {
    LabError::Usage(format!("wrong DSN: {why}"))
}

fn password_inside() -> LabError {
    wrong("it holds a password, which the process list would show; put it into NFOLD_LAB_PASSWORD or an option file (option_file=FILE), or say prompt=yes".into())
}

/// Decodes percent-encoding: `%41` is `A`.
fn decoded(text: &str) -> Result<String, LabError> {
    let bad = || wrong(format!("{text:?} has a % without two hexadecimal digits"));
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || {
            bytes
                .next()
                .and_then(|b| (b as char).to_digit(16))
                .ok_or_else(bad)
        };
        out.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(out).map_err(|_| wrong(format!("{text:?} is not UTF-8")))
}

/// The command line of `nfold lab dsn`.
#[derive(clap::Args)]
pub struct Args {
    /// mysql://user@host:port/db?key=value, or key=value,key=value with host, port, socket, user,
    /// db, option_file, prompt, ssl-mode, ssl-ca
    dsn: String,
}

/// Prints the server that a DSN refers to, and where its password was found.
pub fn run(args: &Args) -> Result<(), LabError> {
    let dsn = Dsn::open(&args.dsn)?;
    let found = if dsn.password.is_empty() {
        "no password"
    } else {
        "a password"
    };
    crate::output::say(&format!("{dsn} with {found}\n"))
}

#[cfg(test)]
mod tests;
