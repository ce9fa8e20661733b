//! Accounts and roles, and what they may do: privileges on `*.*`, on databases, tables and columns,
//! dynamic privileges, and granted roles. A role is a locked account.
//!
//! Source: MySQL manual, "Access Control, Stage 1 and 2", "Using Roles".

use std::cmp::Reverse;
use std::sync::Arc;

use crate::account_options::AccountOptions;
use crate::privileges::{DYNAMIC, Privileges};
use crate::schema::eq_name;

/// The name of an account: user and host.
pub type AccountId = (Box<str>, Box<str>);

/// The privileges of an account on one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableGrant {
    pub database: Box<str>,
    pub table: Box<str>,
    pub privileges: Privileges,
    /// Column and privileges, in the order of the names.
    pub columns: Vec<(Box<str>, Privileges)>,
    /// `user@host` of the account that granted last.
    pub grantor: Box<str>,
    /// When it was granted last, in seconds since 1970.
    pub granted_s: u64,
}

impl TableGrant {
    /// The privileges that at least one column has.
    pub fn on_any_column(&self) -> Privileges {
        let all = self.columns.iter();
        all.fold(Privileges::NONE, |sum, (_, p)| sum.union(*p))
    }

    /// The privileges granted on a column, without those of the whole table.
    pub fn on_column(&self, name: &str) -> Privileges {
        let found = self.columns.iter().find(|(c, _)| eq_name(c, name));
        found.map_or(Privileges::NONE, |(_, p)| *p)
    }

    /// Whether nothing is left of it.
    pub fn is_empty(&self) -> bool {
        self.privileges.is_empty() && self.columns.is_empty()
    }
}

/// A dynamic privilege of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamicGrant {
    pub name: Box<str>,
    pub grant_option: bool,
}

/// A role that an account has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleGrant {
    pub role: AccountId,
    pub admin_option: bool,
}

/// PROXY: the account may act as another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyGrant {
    /// The account that it may act as; it need not exist.
    pub proxied: AccountId,
    pub grant_option: bool,
    /// `user@host` of the account that granted last.
    pub grantor: Box<str>,
    /// When it was granted last, in seconds since 1970.
    pub granted_s: u64,
}

/// What `%` and `_` mean in the database names of grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DatabaseNames {
    #[default]
    Patterns,
    /// They stand for themselves: `partial_revokes` is ON.
    Literal,
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
    /// Whether the password has expired. A role is made so.
    pub expired: bool,
    pub options: AccountOptions,
    pub global: Privileges,
    /// Partial revokes: databases on which the account lacks some of its global privileges; the
    /// latest first. No list of privileges is empty.
    pub restrictions: Vec<(Box<str>, Privileges)>,
    /// Grants on databases: name pattern (`%`, `_`, `\` as in GRANT) and privileges.
    pub databases: Vec<(Box<str>, Privileges)>,
    /// In the order of database and table.
    pub tables: Vec<TableGrant>,
    /// In the order of the names.
    pub dynamic: Vec<DynamicGrant>,
    /// In the order of the names.
    pub roles: Vec<RoleGrant>,
    /// In the order of the names.
    pub default_roles: Vec<AccountId>,
    /// In the order in which they were granted.
    pub proxies: Vec<ProxyGrant>,
}

impl Account {
    /// An account without privileges.
    pub fn new(id: AccountId, plugin: &str) -> Account {
        Account {
            user: id.0,
            host: id.1,
            plugin: plugin.into(),
            auth_string: Box::default(),
            locked: false,
            expired: false,
            options: AccountOptions::default(),
            global: Privileges::NONE,
            restrictions: Vec::new(),
            databases: Vec::new(),
            tables: Vec::new(),
            dynamic: Vec::new(),
            roles: Vec::new(),
            default_roles: Vec::new(),
            proxies: Vec::new(),
        }
    }

    /// User and host.
    pub fn id(&self) -> AccountId {
        (self.user.clone(), self.host.clone())
    }

    /// Whether this is the account of that name.
    pub fn is(&self, id: &AccountId) -> bool {
        is_same(&id.0, &id.1, &self.user, &self.host)
    }

    /// Grants every dynamic privilege.
    pub fn add_all_dynamic(&mut self, grant_option: bool) {
        let all = DYNAMIC.iter().map(|name| DynamicGrant {
            name: (*name).into(),
            grant_option,
        });
        self.dynamic = all.collect();
    }

    /// The grant of a dynamic privilege, by its name in upper case.
    pub fn dynamic_grant(&self, name: &str) -> Option<&DynamicGrant> {
        self.dynamic.iter().find(|d| *d.name == *name)
    }

    /// The privileges granted on a table, without the levels above.
    pub fn table_grant(&self, database: &str, table: &str) -> Option<&TableGrant> {
        let mut grants = self.tables.iter();
        grants.find(|t| *t.database == *database && *t.table == *table)
    }

    /// The grant of a role.
    pub fn role_grant(&self, role: &AccountId) -> Option<&RoleGrant> {
        let mut grants = self.roles.iter();
        grants.find(|r| is_same(&r.role.0, &r.role.1, &role.0, &role.1))
    }

    /// The privileges granted on database `name`: those of the most specific of the account's
    /// database grants that matches the name.
    pub fn granted_on(&self, name: &str, names: DatabaseNames) -> Privileges {
        let mut grants = self.databases.iter();
        let best = match names {
            DatabaseNames::Literal => grants.find(|(granted, _)| **granted == *name),
            // The most specific pattern decides, as in MySQL: one without wildcards before one
            // with.
            DatabaseNames::Patterns => grants
                .filter(|(pattern, _)| wildcard_match(pattern, name))
                .max_by_key(|(pattern, _)| (!has_wildcard(pattern), pattern.len())),
        };
        best.map_or(Privileges::NONE, |(_, p)| *p)
    }

    /// The account's privileges in database `name`: the global ones but for partial revokes, and
    /// those granted on the database.
    pub fn privileges_on(&self, name: &str, names: DatabaseNames) -> Privileges {
        let global = self.global.without(self.restricted_on(name));
        global.union(self.granted_on(name, names))
    }

    /// The global privileges that the account lacks on database `name`.
    pub fn restricted_on(&self, name: &str) -> Privileges {
        let found = self.restrictions.iter().find(|(d, _)| **d == *name);
        found.map_or(Privileges::NONE, |(_, p)| *p)
    }

    /// Sets the global privileges that the account lacks on database `name`.
    pub fn restrict(&mut self, name: &str, privileges: Privileges) {
        let at = self.restrictions.iter().position(|(d, _)| **d == *name);
        match at {
            Some(at) if privileges.is_empty() => {
                self.restrictions.remove(at);
            }
            Some(at) => self.restrictions[at].1 = privileges,
            None if privileges.is_empty() => {}
            None => self.restrictions.insert(0, (name.into(), privileges)),
        }
    }
}

/// All accounts, at one version; sorted so that the most specific host comes first.
#[derive(Debug, Clone, Default)]
pub struct AccountSnapshot {
    pub version: u64,
    pub database_names: DatabaseNames,
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
            .find(|a| is_same(&a.user, &a.host, user, host))
    }

    /// The accounts that these roles stand for, with those that they were granted in turn; each
    /// once. Roles that do not exist are left out.
    pub fn with_granted(&self, roles: &[AccountId]) -> Vec<Arc<Account>> {
        let mut found: Vec<Arc<Account>> = Vec::new();
        let mut open: Vec<AccountId> = roles.iter().rev().cloned().collect();
        while let Some((user, host)) = open.pop() {
            let Some(role) = self.get(&user, &host) else {
                continue;
            };
            if found.iter().any(|f| Arc::ptr_eq(f, role)) {
                continue;
            }
            open.extend(role.roles.iter().rev().map(|r| r.role.clone()));
            found.push(role.clone());
        }
        found
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

/// Whether two account names are the same. Hosts compare without case.
pub fn is_same(user: &str, host: &str, other_user: &str, other_host: &str) -> bool {
    user == other_user && host.eq_ignore_ascii_case(other_host)
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
        Account::new((user.into(), host.into()), "caching_sha2_password")
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
        let on = |name| a.privileges_on(name, DatabaseNames::Patterns);
        assert_eq!(on("shop1"), Privileges::SELECT);
        assert_eq!(
            on("shop_eu"),
            Privileges::INSERT,
            "no wildcard is more specific than any wildcard"
        );
        assert!(on("other").is_empty());
        let literal = |name| a.privileges_on(name, DatabaseNames::Literal);
        assert_eq!(literal("shop_eu"), Privileges::all_database());
        assert_eq!(literal("shop%"), Privileges::SELECT);
        assert!(literal("shop1").is_empty());
    }

    #[test]
    fn restrictions_limit_global_privileges() {
        let mut a = account("app", "%");
        a.global = Privileges::SELECT.union(Privileges::INSERT);
        a.restrict("d", Privileges::SELECT);
        a.restrict("e", Privileges::INSERT);
        let on = |a: &Account, name| a.privileges_on(name, DatabaseNames::Literal);
        assert_eq!(on(&a, "d"), Privileges::INSERT);
        assert_eq!(on(&a, "e"), Privileges::SELECT);
        assert_eq!(on(&a, "f"), a.global);
        a.databases.push(("d".into(), Privileges::SELECT));
        assert_eq!(on(&a, "d"), a.global, "a grant on the database counts");
        a.restrict("d", Privileges::NONE);
        assert_eq!(a.restrictions, [("e".into(), Privileges::INSERT)]);
    }

    #[test]
    fn granted_roles_are_followed_once() {
        let mut all = AccountSnapshot::default();
        let grants = |to: &str| RoleGrant {
            role: (to.into(), "%".into()),
            admin_option: false,
        };
        for (name, roles) in [
            ("a", vec!["b", "c"]),
            ("b", vec!["c", "gone"]),
            ("c", vec!["a"]),
        ] {
            let mut role = account(name, "%");
            role.roles = roles.into_iter().map(grants).collect();
            all.put(role);
        }
        let names = |roles: &[&str]| {
            let ids: Vec<_> = roles.iter().map(|r| ((*r).into(), "%".into())).collect();
            let found = all.with_granted(&ids);
            found.iter().map(|a| a.user.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(&["a"]), ["a", "b", "c"]);
        assert_eq!(names(&["c", "b"]), ["c", "a", "b"]);
        assert_eq!(names(&["gone"]), Vec::<String>::new());
    }
}
