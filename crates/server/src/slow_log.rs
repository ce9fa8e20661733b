//! The slow query log: statements that took `long_query_time` or longer, as MySQL writes them to
//! `slow_query_log_file`.
//!
//! [`crate::log_file`] writes it.
//!
//! Source: "The Slow Query Log" of MySQL's reference manual.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nfold_sql::keywords::Kw;
use nfold_sql::lexer::{LexMode, Lexer, TokenKind};
use nfold_types::Value;
use nfold_types::temporal::{DateTime, TimeZone, Timestamp};

use crate::log_file::{LogFile, LogName};

/// One slow statement.
pub struct Entry<'a> {
    pub user: &'a str,
    pub account_user: &'a str,
    pub host: &'a str,
    pub connection_id: u32,
    pub database: Option<&'a str>,
    /// Microseconds since 1970.
    pub started_us: u64,
    pub took_us: u64,
    pub rows_sent: u64,
    pub rows_examined: u64,
    pub text: &'a [u8],
}

/// The log of one server; see the module's header.
pub struct SlowLog {
    file: Arc<LogFile>,
    /// `Slow_queries`.
    slow: AtomicU64,
}

impl SlowLog {
    pub fn new(banner: String) -> SlowLog {
        let name = LogName {
            what: "slow query log",
            thread: "slow-log",
        };
        SlowLog {
            file: LogFile::new(name, banner),
            slow: AtomicU64::new(0),
        }
    }

    /// `slow_query_log` and `slow_query_log_file`.
    pub fn configure(&self, on: bool, path: PathBuf) {
        self.file.configure(on, path);
    }

    /// FLUSH SLOW LOGS: reopens the file, after it was renamed.
    pub fn reopen(&self) {
        self.file.reopen();
    }

    /// Called at shutdown: writes the pending entries.
    pub fn close(&self) {
        self.file.close();
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.file.is_on()
    }

    /// Counts a slow statement, whether it is logged or not.
    pub fn count(&self) {
        self.slow.fetch_add(1, Relaxed);
    }

    /// The values of `Slow_queries` and `Nfold_slow_log_lost`.
    pub fn status(&self) -> [(&'static str, String); 2] {
        [
            ("Nfold_slow_log_lost", self.file.lost().to_string()),
            ("Slow_queries", self.slow.load(Relaxed).to_string()),
        ]
    }

    /// The number of slow statements so far.
    pub fn slow_queries(&self) -> u64 {
        self.slow.load(Relaxed)
    }

    /// Passes an entry to the writer thread.
    pub fn write(&self, entry: &Entry<'_>) {
        self.file.write(entry.text.len(), |to| {
            append(entry, &mut to.context, &mut to.bytes);
        });
    }
}

/// Microseconds since 1970 as a date and time in UTC.
pub(crate) fn instant(micros: i64) -> String {
    let local = TimeZone::UTC.to_local(Timestamp::from_micros(micros, 6));
    local.unwrap_or(DateTime::ZERO).to_string()
}

/// Appends an entry in MySQL's format. `database` is the default database of the previous entry.
fn append(entry: &Entry<'_>, database: &mut Option<String>, out: &mut Vec<u8>) {
    let ended = instant((entry.started_us + entry.took_us) as i64);
    let ip = match entry.host {
        "localhost" => "",
        ip => ip,
    };
    let host = if ip.is_empty() { "localhost" } else { "" };
    let head = format!(
        "# Time: {}Z\n# User@Host: {}[{}] @ {host} [{ip}]  Id: {:>5}\n\
         # Query_time: {}.{:06}  Lock_time: 0.000000 Rows_sent: {}  Rows_examined: {}\n",
        ended.replacen(' ', "T", 1),
        entry.account_user,
        entry.user,
        entry.connection_id,
        entry.took_us / 1_000_000,
        entry.took_us % 1_000_000,
        entry.rows_sent,
        entry.rows_examined,
    );
    out.extend_from_slice(head.as_bytes());
    if let Some(now) = entry.database
        && database.as_deref() != Some(now)
    {
        out.extend_from_slice(format!("use {now};\n").as_bytes());
        *database = Some(now.to_string());
    }
    out.extend_from_slice(format!("SET timestamp={};\n", entry.started_us / 1_000_000).as_bytes());
    out.extend_from_slice(entry.text.trim_ascii_end());
    out.extend_from_slice(b";\n");
}

/// The text of a prepared statement with values in place of its `?`.
pub fn with_values(text: &[u8], mode: LexMode, values: &[Value]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16 * values.len());
    let (mut lexer, mut values, mut done) = (Lexer::new(text, mode), values.iter(), 0);
    loop {
        let token = lexer.next_token();
        match token.kind {
            TokenKind::End | TokenKind::Invalid => break,
            TokenKind::Marker => {
                let start = token.start as usize;
                out.extend_from_slice(&text[done..start]);
                literal(values.next().unwrap_or(&Value::Null), mode, &mut out);
                done = start + 1;
            }
            _ => {}
        }
    }
    out.extend_from_slice(&text[done..]);
    out
}

/// The text of a statement about accounts with all strings replaced by `<secret>`, because they may
/// be passwords. `None`: another statement.
pub fn without_secrets(text: &[u8], mode: LexMode) -> Option<Vec<u8>> {
    let mut lexer = Lexer::new(text, mode);
    let about_accounts = matches!(
        lexer.next_token().kw,
        Kw::CREATE | Kw::ALTER | Kw::SET | Kw::GRANT
    );
    if !about_accounts {
        return None;
    }
    let (mut out, mut done, mut secret) = (Vec::new(), 0, false);
    loop {
        let token = lexer.next_token();
        match token.kind {
            TokenKind::End | TokenKind::Invalid => break,
            TokenKind::Word => secret |= matches!(token.kw, Kw::IDENTIFIED | Kw::PASSWORD),
            TokenKind::Str if secret => {
                out.extend_from_slice(&text[done..token.start as usize]);
                out.extend_from_slice(b"<secret>");
                done = token.end as usize;
            }
            _ => {}
        }
    }
    out.extend_from_slice(&text[done..]);
    secret.then_some(out)
}

/// Appends a value as a literal.
fn literal(value: &Value, mode: LexMode, out: &mut Vec<u8>) {
    let bare = match value {
        Value::Null => "NULL".to_string(),
        Value::Int(v) => v.to_string(),
        Value::UInt(v) => v.to_string(),
        Value::Float(v) => format!("{v:e}"),
        Value::Double(v) => format!("{v:e}"),
        Value::Decimal(v) => v.to_string(),
        Value::Date(v) => format!("'{v}'"),
        Value::DateTime(v) => format!("'{v}'"),
        Value::Time(v) => format!("'{v}'"),
        Value::Timestamp(v) => format!("'{}'", instant(v.micros())),
        Value::Bytes(bytes) => return quoted(bytes, mode, out),
    };
    out.extend_from_slice(bare.as_bytes());
}

fn quoted(bytes: &[u8], mode: LexMode, out: &mut Vec<u8>) {
    let escapes = !mode.has(LexMode::NO_BACKSLASH_ESCAPES);
    out.push(b'\'');
    for &b in bytes {
        match b {
            b'\'' => out.extend_from_slice(b"''"),
            b'\\' if escapes => out.extend_from_slice(b"\\\\"),
            0 if escapes => out.extend_from_slice(b"\\0"),
            b'\n' if escapes => out.extend_from_slice(b"\\n"),
            b'\r' if escapes => out.extend_from_slice(b"\\r"),
            b => out.push(b),
        }
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &[u8]) -> Entry<'_> {
        Entry {
            user: "app",
            account_user: "app",
            host: "127.0.0.1",
            connection_id: 8,
            database: Some("shop"),
            started_us: 1_700_000_000_250_000,
            took_us: 1_500_007,
            rows_sent: 3,
            rows_examined: 900,
            text,
        }
    }

    #[test]
    fn entries_are_as_mysql_writes_them() {
        let (mut out, mut database) = (Vec::new(), None);
        append(&entry(b"SELECT 1"), &mut database, &mut out);
        append(&entry(b"SELECT 2 "), &mut database, &mut out);
        let head = "# Time: 2023-11-14T22:13:21.750007Z\n# User@Host: app[app] @  [127.0.0.1]  Id:     8\n\
                    # Query_time: 1.500007  Lock_time: 0.000000 Rows_sent: 3  Rows_examined: 900\n";
        let expected = format!(
            "{head}use shop;\nSET timestamp=1700000000;\nSELECT 1;\n{head}SET timestamp=1700000000;\nSELECT 2;\n"
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn values_stand_where_they_are_meant() {
        let values = [
            Value::Int(-5),
            Value::Bytes(b"it's a \\ and\na ?".to_vec()),
            Value::Null,
        ];
        let text = b"SELECT '?', ? FROM t /* ? */ WHERE a = ? AND `?` <=> ? LIMIT 1";
        let out = with_values(text, LexMode::default(), &values);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "SELECT '?', -5 FROM t /* ? */ WHERE a = 'it''s a \\\\ and\\na ?' AND `?` <=> NULL LIMIT 1"
        );
    }

    #[test]
    fn passwords_are_not_written() {
        let hidden = |text: &str| {
            let out = without_secrets(text.as_bytes(), LexMode::default());
            out.map(|out| String::from_utf8(out).unwrap())
        };
        let text =
            "CREATE USER a@'%' IDENTIFIED WITH caching_sha2_password BY 'x', b IDENTIFIED BY \"y\"";
        let expected = "CREATE USER a@'%' IDENTIFIED WITH caching_sha2_password BY <secret>, b IDENTIFIED BY <secret>";
        assert_eq!(hidden(text).as_deref(), Some(expected));
        assert_eq!(
            hidden("set password = 'x'").as_deref(),
            Some("set password = <secret>")
        );
        assert_eq!(hidden("SET @a = 'x'"), None);
        assert_eq!(hidden("SELECT 'identified by'"), None);
    }
}
