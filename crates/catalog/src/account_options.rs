//! The options of an account: how a client must connect, how much it may use, how its password
//! ages, and what is noted beside it.
//!
//! Source: MySQL manual, "CREATE USER Statement", "Password Management".

/// The options of one account. The default is what CREATE USER without options makes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountOptions {
    /// REQUIRE SSL: only connections with TLS are accepted.
    pub require_tls: bool,
    /// What a client must present besides; then `require_tls` is true.
    pub certificate: Option<CertificateRule>,
    pub limits: ResourceLimits,
    pub password: PasswordOptions,
    /// ATTRIBUTE and COMMENT: the text of a JSON object.
    pub attribute: Option<Box<str>>,
}

/// REQUIRE X509, SUBJECT, ISSUER and CIPHER: the client has a certificate that the server's
/// authority has signed, and what is named here is as written. X509 names nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateRule {
    /// A name in OpenSSL's one-line form: `/C=SE/CN=client`.
    pub subject: Option<Box<str>>,
    /// As `subject`.
    pub issuer: Option<Box<str>>,
    /// The cipher suite of the connection, by OpenSSL's name.
    pub cipher: Option<Box<str>>,
}

/// The use of the server that an account is limited to. 0: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    pub queries_per_hour: u32,
    pub updates_per_hour: u32,
    pub connections_per_hour: u32,
    /// Connections at one time. 0: what the variable `max_user_connections` says.
    pub connections: u32,
}

/// How the password of an account ages and changes. `None`: what the system variable says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PasswordOptions {
    /// When it was set, in seconds since 1970. 0: not known.
    pub changed_s: u64,
    /// Days until it expires. 0: never.
    pub lifetime_days: Option<u16>,
    /// The number of earlier passwords that must not be used again.
    pub history: Option<u32>,
    /// The number of days for which a password must not be used again.
    pub reuse_days: Option<u32>,
    /// Whether a change of the account's own password must name the current one.
    pub require_current: Option<bool>,
    /// The number of failed logins in a row that blocks the account. 0: none does.
    pub failed_attempts: u16,
    /// Days for which it is blocked. 0: it is never blocked.
    pub lock_days: LockDays,
    /// The password before, in stored form, while it is still valid (RETAIN CURRENT PASSWORD).
    /// Empty: there is none.
    pub second: Box<[u8]>,
    /// Earlier passwords and the current one, if they are remembered; the latest first.
    pub past: Vec<PastPassword>,
}

/// How long failed logins block an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockDays {
    Days(u16),
    /// Until ALTER USER unlocks it.
    Unbounded,
}

impl Default for LockDays {
    fn default() -> Self {
        LockDays::Days(0)
    }
}

/// A password that must not be used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastPassword {
    /// When it was set, in seconds since 1970.
    pub set_s: u64,
    /// As in `mysql.user.authentication_string`.
    pub stored: Box<[u8]>,
}
