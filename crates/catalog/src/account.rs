//! Accounts and what they may do: global and per-database privileges.
//!
//! Source: MySQL manual, "Access Control, Stage 1 and 2", "Privileges Provided by MySQL".

use std::cmp::Reverse;
use std::sync::Arc;

/// A set of privileges, one bit each, in the order in which SHOW GRANTS lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Privileges(pub u64);

macro_rules! privileges {
    ($($bit:literal $name:ident $text:literal $level:literal;)*) => {
        impl Privileges {
            $(pub const $name: Privileges = Privileges(1 << $bit);)*
            /// Every privilege: bit, SQL name, whether it can be granted on one database.
            pub const LIST: &'static [(Privileges, &'static str, bool)] = &[$((Privileges::$name, $text, $level)),*];
        }
    };
}

privileges! {
    0 SELECT "SELECT" true;
    1 INSERT "INSERT" true;
    2 UPDATE "UPDATE" true;
    3 DELETE "DELETE" true;
    4 CREATE "CREATE" true;
    5 DROP "DROP" true;
    6 RELOAD "RELOAD" false;
    7 SHUTDOWN "SHUTDOWN" false;
    8 PROCESS "PROCESS" false;
    9 FILE "FILE" false;
    10 REFERENCES "REFERENCES" true;
    11 INDEX "INDEX" true;
    12 ALTER "ALTER" true;
    13 SHOW_DATABASES "SHOW DATABASES" false;
    14 SUPER "SUPER" false;
    15 CREATE_TEMPORARY_TABLES "CREATE TEMPORARY TABLES" true;
    16 LOCK_TABLES "LOCK TABLES" true;
    17 EXECUTE "EXECUTE" true;
    18 REPLICATION_SLAVE "REPLICATION SLAVE" false;
    19 REPLICATION_CLIENT "REPLICATION CLIENT" false;
    20 CREATE_VIEW "CREATE VIEW" true;
    21 SHOW_VIEW "SHOW VIEW" true;
    22 CREATE_ROUTINE "CREATE ROUTINE" true;
    23 ALTER_ROUTINE "ALTER ROUTINE" true;
    24 CREATE_USER "CREATE USER" false;
    25 EVENT "EVENT" true;
    26 TRIGGER "TRIGGER" true;
    27 CREATE_TABLESPACE "CREATE TABLESPACE" false;
    28 CREATE_ROLE "CREATE ROLE" false;
    29 DROP_ROLE "DROP ROLE" false;
    30 GRANT_OPTION "GRANT OPTION" true;
}

impl Privileges {
    pub const NONE: Privileges = Privileges(0);

    /// What `ALL PRIVILEGES` means on `*.*` (without GRANT OPTION).
    pub fn all_global() -> Self {
        Self::collect(|_| true)
    }

    /// What `ALL PRIVILEGES` means on one database (without GRANT OPTION).
    pub fn all_database() -> Self {
        Self::collect(|on_database| on_database)
    }

    fn collect(wanted: impl Fn(bool) -> bool) -> Self {
        let all = Self::LIST
            .iter()
            .filter(|(p, _, db)| wanted(*db) && *p != Self::GRANT_OPTION);
        Privileges(all.fold(0, |bits, (p, _, _)| bits | p.0))
    }

    /// The privilege of this SQL name, in any case, and whether it can be granted on one database.
    /// `None` if there is no such privilege.
    pub fn by_name(name: &str) -> Option<(Privileges, bool)> {
        Self::LIST
            .iter()
            .find(|(_, text, _)| text.eq_ignore_ascii_case(name))
            .map(|&(p, _, db)| (p, db))
    }

    /// Whether every privilege of `wanted` is here.
    pub fn contains(self, wanted: Privileges) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// Both sets together.
    pub fn union(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// This set without `other`.
    pub fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Whether an account that has these privileges on a database may know its tables: it has at
    /// least one that applies to tables.
    pub fn tell_of_tables(self) -> bool {
        let on_tables = [
            Self::SELECT,
            Self::INSERT,
            Self::UPDATE,
            Self::DELETE,
            Self::CREATE,
            Self::DROP,
            Self::REFERENCES,
            Self::INDEX,
            Self::ALTER,
            Self::CREATE_VIEW,
            Self::SHOW_VIEW,
            Self::TRIGGER,
        ];
        on_tables.into_iter().any(|p| self.contains(p))
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// One account: `'user'@'host'`.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    pub user: Box<str>,
    /// A host name or address with `%` and `_` wildcards, or `localhost`.
    pub host: Box<str>,
    /// `caching_sha2_password` or `mysql_native_password`.
    pub plugin: Box<str>,
    /// As in `mysql.user.authentication_string`; empty: no password.
    pub auth_string: Box<[u8]>,
    pub locked: bool,
    pub global: Privileges,
    /// Grants on databases: name pattern (`%`, `_`, `\` as in GRANT) and privileges.
    pub databases: Vec<(Box<str>, Privileges)>,
}

impl Account {
    /// What the account may do in database `name`: its global privileges, and those of the most
    /// specific of its database grants that matches the name.
    pub fn privileges_on(&self, name: &str) -> Privileges {
        let matching = self
            .databases
            .iter()
            .filter(|(pattern, _)| wildcard_match(pattern, name));
        // The most specific pattern decides, as in MySQL: one without wildcards before one with.
        let best = matching.max_by_key(|(pattern, _)| (!has_wildcard(pattern), pattern.len()));
        self.global
            .union(best.map_or(Privileges::NONE, |(_, p)| *p))
    }

    /// Whether the account may know that database `name` exists.
    pub fn sees_database(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case("information_schema")
            || !self
                .privileges_on(name)
                .without(Privileges::GRANT_OPTION)
                .is_empty()
    }
}

/// All accounts, at one version; sorted so that the most specific host comes first.
#[derive(Debug, Clone, Default)]
pub struct AccountSnapshot {
    pub version: u64,
    accounts: Vec<Arc<Account>>,
}

impl AccountSnapshot {
    /// All accounts.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.iter()
    }

    /// The account of exactly this name.
    pub fn get(&self, user: &str, host: &str) -> Option<&Arc<Account>> {
        self.accounts
            .iter()
            .find(|a| &*a.user == user && a.host.eq_ignore_ascii_case(host))
    }

    /// The account that a client `user` coming from `peer` logs in as: the first one that matches
    /// both. Does not check the password, and also returns locked accounts. `peer` is an address in
    /// lower case, or `localhost` for a Unix socket; a loopback address also matches accounts of
    /// `localhost`.
    pub fn find(&self, user: &str, peer: &str) -> Option<&Arc<Account>> {
        let loopback = peer == "127.0.0.1" || peer == "::1" || peer == "localhost";
        self.accounts.iter().find(|a| {
            let host_matches = wildcard_match(&a.host.to_ascii_lowercase(), peer)
                || (loopback && a.host.eq_ignore_ascii_case("localhost"));
            host_matches && (a.user.is_empty() || &*a.user == user)
        })
    }

    /// Adds an account, or replaces the one of the same name. Only for a copy that is not yet
    /// published: see [`Catalog::publish_accounts`](crate::Catalog::publish_accounts).
    pub fn put(&mut self, account: Account) {
        self.remove(&account.user, &account.host);
        self.accounts.push(Arc::new(account));
        // Most specific host first, then named users before anonymous ones (manual, "Connection
        // Verification").
        self.accounts.sort_by_key(|a| {
            (
                has_wildcard(&a.host),
                Reverse(a.host.len()),
                a.user.is_empty(),
                a.user.clone(),
            )
        });
    }

    /// Removes an account, and returns whether it existed. For use as [`put`](Self::put).
    pub fn remove(&mut self, user: &str, host: &str) -> bool {
        let before = self.accounts.len();
        self.accounts
            .retain(|a| !(&*a.user == user && a.host.eq_ignore_ascii_case(host)));
        self.accounts.len() < before
    }
}

fn has_wildcard(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|c| {
        let wild = !escaped && (c == '%' || c == '_');
        escaped = !escaped && c == '\\';
        wild
    })
}

/// Whether `text` matches a `LIKE` pattern, character by character, without a collation. A `\`
/// makes the next character of the pattern an ordinary one. Linear space, no recursion.
pub fn wildcard_match(pattern: &str, text: &str) -> bool {
    let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut i, mut j, mut retry) = (0, 0, None);
    while j < t.len() {
        let (literal, width) = match p.get(i) {
            Some('\\') if i + 1 < p.len() => (p.get(i + 1), 2),
            Some('%') => {
                retry = Some((i, j));
                i += 1;
                continue;
            }
            Some('_') => (t.get(j), 1),
            other => (other, 1),
        };
        if literal == t.get(j) {
            i += width;
            j += 1;
        } else if let Some((at, from)) = retry {
            retry = Some((at, from + 1));
            i = at + 1;
            j = from + 1;
        } else {
            return false;
        }
    }
    p[i..].iter().all(|&c| c == '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(user: &str, host: &str) -> Account {
        Account {
            user: user.into(),
            host: host.into(),
            plugin: "caching_sha2_password".into(),
            auth_string: Box::default(),
            locked: false,
            global: Privileges::NONE,
            databases: vec![],
        }
    }

    #[test]
    fn wildcards() {
        for (pattern, text, expected) in [
            ("%", "", true),
            ("a%b%c", "axxbyybc", true),
            ("a%b%c", "axxbyybd", false),
            ("10.0.%", "10.0.3.4", true),
            ("10.0.%", "10.1.3.4", false),
            ("a_c", "abc", true),
            ("a\\_c", "abc", false),
            ("a\\_c", "a_c", true),
            ("", "a", false),
            ("abc", "ab", false),
        ] {
            assert_eq!(
                wildcard_match(pattern, text),
                expected,
                "{pattern} on {text}"
            );
        }
    }

    #[test]
    fn the_most_specific_host_wins() {
        let mut all = AccountSnapshot::default();
        for (user, host) in [
            ("app", "%"),
            ("app", "10.0.%"),
            ("app", "localhost"),
            ("", "%"),
            ("root", "localhost"),
        ] {
            all.put(account(user, host));
        }
        let host = |all: &AccountSnapshot, user: &str, peer: &str| {
            all.find(user, peer)
                .map(|a| format!("{}@{}", a.user, a.host))
        };
        assert_eq!(
            host(&all, "app", "127.0.0.1").as_deref(),
            Some("app@localhost")
        );
        assert_eq!(host(&all, "app", "10.0.0.9").as_deref(), Some("app@10.0.%"));
        assert_eq!(host(&all, "app", "192.0.2.1").as_deref(), Some("app@%"));
        assert_eq!(host(&all, "root", "192.0.2.1").as_deref(), Some("@%"));
        assert_eq!(
            host(&all, "root", "localhost").as_deref(),
            Some("root@localhost")
        );
        assert!(all.remove("", "%") && !all.remove("", "%"));
        assert_eq!(host(&all, "root", "192.0.2.1"), None);
    }

    #[test]
    fn database_grants() {
        let mut a = account("app", "%");
        a.databases.push(("shop%".into(), Privileges::SELECT));
        a.databases
            .push(("shop_eu".into(), Privileges::all_database()));
        a.databases.push(("shop\\_eu".into(), Privileges::INSERT));
        assert!(a.privileges_on("shop1").contains(Privileges::SELECT));
        assert!(
            a.privileges_on("shop_eu").contains(Privileges::INSERT),
            "no wildcard is more specific than any wildcard"
        );
        assert!(!a.privileges_on("shop_eu").contains(Privileges::SELECT));
        assert!(
            a.privileges_on("other").is_empty()
                && !a.sees_database("other")
                && a.sees_database("information_schema")
        );
        assert!(!Privileges::all_database().contains(Privileges::RELOAD));
        assert!(Privileges::all_global().contains(Privileges::RELOAD));
        assert!(!Privileges::all_global().contains(Privileges::GRANT_OPTION));
        assert_eq!(
            Privileges::by_name("show databases"),
            Some((Privileges::SHOW_DATABASES, false))
        );
    }
}
