//! The address of a server: `mysql://USER:PASSWORD@HOST:PORT/`.

use std::fmt;
use std::str::FromStr;

use nfold_replica::{ChannelConfig, TlsFiles};

/// The environment variable with the password of a URL that has none.
const PASSWORD: &str = "MYSQL_PWD";

/// A server and an account on it. `Display` shows them without the password.
#[derive(Debug, Clone)]
pub struct SourceUrl(pub ChannelConfig);

impl FromStr for SourceUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<SourceUrl, String> {
        let rest =
            (text.strip_prefix("mysql://")).ok_or("it must be mysql://USER:PASSWORD@HOST:PORT/")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains('/') {
            return Err("it must not name a database; see --databases".into());
        }
        let (account, address) = (authority.rsplit_once('@'))
            .ok_or("it must name a user: mysql://USER:PASSWORD@HOST/")?;
        let (user, password) = match account.split_once(':') {
            Some((user, password)) => (decoded(user)?, decoded(password)?),
            None => (
                decoded(account)?,
                std::env::var(PASSWORD).unwrap_or_default(),
            ),
        };
        let (host, port) = match address.strip_prefix('[') {
            Some(v6) => {
                let (host, after) = v6.split_once(']').ok_or("a closing bracket is missing")?;
                (host, after.strip_prefix(':'))
            }
            None => match address.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (address, None),
            },
        };
        if host.is_empty() {
            return Err("it must name a host".into());
        }
        let port = port.map_or(Ok(3306), |port| {
            port.parse().map_err(|_| format!("{port:?} is no port"))
        })?;
        let (mut ssl, mut tls) = (false, TlsFiles::default());
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("ssl", "1")) => ssl = true,
                Some(("ssl_ca", file)) => tls.ca = decoded(file)?,
                Some(("ssl_cert", file)) => tls.cert = decoded(file)?,
                Some(("ssl_key", file)) => tls.key = decoded(file)?,
                Some(("ssl_verify", "1")) => tls.verify_name = true,
                _ => {
                    return Err(format!(
                        "{option:?} is unknown; there are ssl=1, ssl_ca, ssl_cert, ssl_key and \
                         ssl_verify=1"
                    ));
                }
            }
        }
        if !ssl && tls != TlsFiles::default() {
            return Err("certificates need ssl=1".into());
        }
        Ok(SourceUrl(ChannelConfig {
            host: decoded(host)?,
            port,
            user,
            password,
            ssl,
            tls,
            get_public_key: true,
            ..ChannelConfig::default()
        }))
    }
}

impl fmt::Display for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.0;
        match c.host.contains(':') {
            true => write!(f, "mysql://{}@[{}]:{}/", c.user, c.host, c.port),
            false => write!(f, "mysql://{}@{}:{}/", c.user, c.host, c.port),
        }
    }
}

/// Decodes percent-encoding: `%41` is `A`.
fn decoded(text: &str) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|b| (b as char).to_digit(16));
        match (digit(), digit()) {
            (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
            _ => return Err("a % has no two hexadecimal digits behind it".into()),
        }
    }
    String::from_utf8(out).map_err(|_| "it is not UTF-8".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_read_and_shown_without_its_password() {
        let url: SourceUrl = "mysql://a%40b:p%3Aw@db1:3307/".parse().expect("a URL");
        let c = &url.0;
        assert_eq!(
            (&*c.user, &*c.password, &*c.host, c.port),
            ("a@b", "p:w", "db1", 3307)
        );
        assert_eq!(url.to_string(), "mysql://a@b@db1:3307/");
        let url: SourceUrl = "mysql://u:@[::1]?ssl=1".parse().expect("a URL");
        assert_eq!((&*url.0.host, url.0.port, url.0.ssl), ("::1", 3306, true));
        let url = "mysql://u:@db1/?ssl=1&ssl_ca=/etc/a%20b.pem&ssl_verify=1";
        let tls = url.parse::<SourceUrl>().expect("a URL").0.tls;
        assert_eq!((&*tls.ca, tls.verify_name), ("/etc/a b.pem", true));
        for wrong in [
            "db1",
            "mysql://h",
            "mysql://u@",
            "mysql://u@h:x",
            "mysql://u@h/db",
            "mysql://u%4@h",
        ] {
            assert!(wrong.parse::<SourceUrl>().is_err(), "{wrong}");
        }
    }
}
