//! SHOW GRANTS and SHOW CREATE USER.

use std::cmp::Reverse;
use std::fmt::Write;

use nfold_catalog::{
    Account, AccountId, AccountOptions, HeldPrivileges, LockDays, Privileges, ProxyGrant,
    ResourceLimits, TableGrant,
};
use nfold_sql::ast::AccountName;
use nfold_types::{ErrorCode, SqlError, Value};

use super::roles::not_granted;
use super::{ABSENT, failed, id_of, shown};
use crate::session::Session;
use crate::session::response::{Response, RowSet};

impl Session {
    /// SHOW GRANTS. Without an account it shows the session's own privileges, those of the active
    /// roles included.
    pub(crate) fn show_grants(
        &mut self,
        name: Option<&AccountName>,
        using: &[AccountName],
    ) -> Result<Response, SqlError> {
        let own = self.rights.account().id();
        let id = name.map_or(own, |name| self.named(name));
        if !self.is_own(&id) {
            self.rights
                .need_table(Privileges::SELECT, "mysql", "user")?;
        }
        let accounts = self.server.engine.catalog().accounts();
        let none = || SqlError::new(ErrorCode::ER_NONEXISTING_GRANT, &[&id.0, &id.1]);
        let account = accounts.get(&id.0, &id.1).ok_or_else(none)?;
        let roles: Vec<AccountId> = match name {
            None => self.rights.active_roles().to_vec(),
            Some(_) => using.iter().map(id_of).collect(),
        };
        let granted = self.server.roles_of(account);
        if let Some(role) = roles.iter().find(|role| !granted.contains(role)) {
            return Err(not_granted(role, account));
        }
        let mut merged = Account::clone(account);
        let mut all = vec![account.clone()];
        all.extend(accounts.with_granted(&roles));
        for role in &all[1..] {
            merge(&mut merged, role);
        }
        if !roles.is_empty() {
            merged.restrictions = HeldPrivileges::new(all, accounts.database_names).restrictions();
        }
        let title = format!("Grants for {}@{}", account.user, account.host);
        let mut set = RowSet::of_text(&[(&title, 1024)]);
        for line in grant_lines(&merged) {
            set.push(vec![Value::from(line)]);
        }
        Ok(Response::Rows(set))
    }

    /// SHOW CREATE USER
    pub(crate) fn show_create_user(
        &mut self,
        name: Option<&AccountName>,
    ) -> Result<Response, SqlError> {
        let own = self.rights.account().id();
        let id = name.map_or(own, |name| self.named(name));
        if !self.is_own(&id) {
            self.rights.need_database(Privileges::SELECT, "mysql")?;
        }
        let accounts = self.server.engine.catalog().accounts();
        let absent = || failed("SHOW CREATE USER", &[shown(&id)], ABSENT);
        let account = accounts.get(&id.0, &id.1).ok_or_else(absent)?;
        let title = format!("CREATE USER for {}@{}", account.user, account.host);
        let mut set = RowSet::of_text(&[(&title, 1024)]);
        set.push(vec![Value::from(create_user_text(account))]);
        Ok(Response::Rows(set))
    }
}

fn create_user_text(account: &Account) -> String {
    let mut line = format!(
        "CREATE USER {} IDENTIFIED WITH '{}'",
        quoted(&account.id()),
        account.plugin
    );
    // Writing to a String does not fail.
    if !account.auth_string.is_empty() {
        let text = String::from_utf8_lossy(&account.auth_string)
            .replace('\\', "\\\\")
            .replace('\'', "''");
        let _ = write!(line, " AS '{text}'");
    }
    if !account.default_roles.is_empty() {
        let _ = write!(line, " DEFAULT ROLE {}", list(&account.default_roles));
    }
    line + &options_text(account)
}

/// The text behind REQUIRE. As in MySQL, quotes in it are not escaped.
fn require_text(options: &AccountOptions) -> String {
    let Some(rule) = &options.certificate else {
        return if options.require_tls { "SSL" } else { "NONE" }.into();
    };
    let parts = [
        ("SUBJECT", &rule.subject),
        ("ISSUER", &rule.issuer),
        ("CIPHER", &rule.cipher),
    ];
    let named = parts.iter().filter_map(|(name, part)| {
        let part = part.as_ref()?;
        Some(format!("{name} '{part}'"))
    });
    let named: Vec<String> = named.collect();
    match named.is_empty() {
        true => "X509".into(),
        false => named.join(" "),
    }
}

/// The options of CREATE USER, in MySQL's order.
fn options_text(account: &Account) -> String {
    let options = &account.options;
    let (limits, password) = (&options.limits, &options.password);
    let mut out = format!(" REQUIRE {}", require_text(options));
    // Writing to a String does not fail.
    if *limits != ResourceLimits::default() {
        out.push_str(" WITH");
        for (name, limit) in [
            ("QUERIES_PER_HOUR", limits.queries_per_hour),
            ("UPDATES_PER_HOUR", limits.updates_per_hour),
            ("CONNECTIONS_PER_HOUR", limits.connections_per_hour),
            ("USER_CONNECTIONS", limits.connections),
        ] {
            if limit > 0 {
                let _ = write!(out, " MAX_{name} {limit}");
            }
        }
    }
    let expire = match password.lifetime_days {
        _ if account.expired => String::new(),
        None => " DEFAULT".into(),
        Some(0) => " NEVER".into(),
        Some(days) => format!(" INTERVAL {days} DAY"),
    };
    let lock = if account.locked { "LOCK" } else { "UNLOCK" };
    let number = |n: Option<u32>| n.map_or_else(|| "DEFAULT".to_string(), |n| n.to_string());
    let history = number(password.history);
    let reuse = match password.reuse_days {
        None => "DEFAULT".into(),
        Some(days) => format!("{days} DAY"),
    };
    let current = match password.require_current {
        None => " DEFAULT",
        Some(false) => " OPTIONAL",
        Some(true) => "",
    };
    let _ = write!(
        out,
        " PASSWORD EXPIRE{expire} ACCOUNT {lock} PASSWORD HISTORY {history} \
         PASSWORD REUSE INTERVAL {reuse} PASSWORD REQUIRE CURRENT{current}"
    );
    if password.failed_attempts > 0 {
        let _ = write!(out, " FAILED_LOGIN_ATTEMPTS {}", password.failed_attempts);
    }
    match password.lock_days {
        LockDays::Days(0) => {}
        LockDays::Days(days) => {
            let _ = write!(out, " PASSWORD_LOCK_TIME {days}");
        }
        LockDays::Unbounded => out.push_str(" PASSWORD_LOCK_TIME UNBOUNDED"),
    }
    if let Some(attribute) = &options.attribute {
        let text = attribute.replace('\\', "\\\\").replace('\'', "\\'");
        let _ = write!(out, " ATTRIBUTE '{text}'");
    }
    out
}

/// `` `user`@`host` ``
pub(super) fn quoted((user, host): &AccountId) -> String {
    format!(
        "`{}`@`{}`",
        user.replace('`', "``"),
        host.replace('`', "``")
    )
}

/// Names of roles, separated by commas.
fn list(roles: &[AccountId]) -> String {
    let names: Vec<String> = roles.iter().map(quoted).collect();
    names.join(",")
}

/// Adds the privileges of a role. Its own roles stay where they are.
fn merge(to: &mut Account, role: &Account) {
    to.global = to.global.union(role.global);
    for (name, privileges) in &role.databases {
        match to.databases.iter_mut().find(|(n, _)| n == name) {
            Some((_, held)) => *held = held.union(*privileges),
            None => to.databases.push((name.clone(), *privileges)),
        }
    }
    for grant in &role.tables {
        let same = |t: &&mut TableGrant| t.database == grant.database && t.table == grant.table;
        let Some(held) = to.tables.iter_mut().find(same) else {
            to.tables.push(grant.clone());
            continue;
        };
        held.privileges = held.privileges.union(grant.privileges);
        for (name, privileges) in &grant.columns {
            match held.columns.iter_mut().find(|(c, _)| c == name) {
                Some((_, on_column)) => *on_column = on_column.union(*privileges),
                None => held.columns.push((name.clone(), *privileges)),
            }
        }
        held.columns.sort();
    }
    for grant in &role.dynamic {
        match to.dynamic.iter_mut().find(|d| d.name == grant.name) {
            Some(held) => held.grant_option |= grant.grant_option,
            None => to.dynamic.push(grant.clone()),
        }
    }
    to.dynamic.sort_by(|a, b| a.name.cmp(&b.name));
}

/// The names of privileges on one level, of which `whole` are all.
fn names(held: Privileges, whole: Option<Privileges>) -> String {
    let plain = held.without(Privileges::GRANT_OPTION);
    if plain.is_empty() {
        return "USAGE".into();
    }
    if whole.is_some_and(|w| plain.contains(w)) {
        return "ALL PRIVILEGES".into();
    }
    plain.names().collect::<Vec<_>>().join(", ")
}

/// The privileges on a table, with those on its columns.
fn names_on_table(grant: &TableGrant) -> String {
    let all = grant.privileges.union(grant.on_any_column());
    if grant.columns.is_empty() || all.contains(Privileges::all_table()) {
        return names(all, Some(Privileges::all_table()));
    }
    let of = |name: &'static str| {
        let privilege = Privileges::by_name(name).map_or(Privileges::NONE, |(p, _)| p);
        let columns = grant.columns.iter().filter(|(_, p)| p.contains(privilege));
        let columns: Vec<String> = columns
            .map(|(c, _)| format!("`{}`", c.replace('`', "``")))
            .collect();
        match columns.is_empty() {
            true => name.to_string(),
            false => format!("{name} ({})", columns.join(", ")),
        }
    };
    let plain = all.without(Privileges::GRANT_OPTION);
    plain.names().map(of).collect::<Vec<_>>().join(", ")
}

/// The order of grants of PROXY: the most specific host first, an empty one last, and users before
/// the anonymous one.
fn specificity((user, host): &AccountId) -> impl Ord {
    let first_wildcard = host.find(['%', '_']);
    let fixed = first_wildcard.unwrap_or(usize::MAX);
    (host.is_empty(), Reverse(fixed), user.is_empty())
}

/// The lines of SHOW GRANTS.
fn grant_lines(account: &Account) -> Vec<String> {
    let suffix = |p: Privileges| match p.contains(Privileges::GRANT_OPTION) {
        true => " WITH GRANT OPTION",
        false => "",
    };
    let to = quoted(&account.id());
    let mut lines = vec![format!(
        "GRANT {} ON *.* TO {to}{}",
        names(account.global, None),
        suffix(account.global)
    )];
    for (option, suffix) in [(false, ""), (true, " WITH GRANT OPTION")] {
        let dynamic = account.dynamic.iter().filter(|d| d.grant_option == option);
        let dynamic: Vec<&str> = dynamic.map(|d| &*d.name).collect();
        if !dynamic.is_empty() {
            lines.push(format!(
                "GRANT {} ON *.* TO {to}{suffix}",
                dynamic.join(",")
            ));
        }
    }
    let mut databases = account.databases.clone();
    databases.sort();
    for (name, p) in &databases {
        lines.push(format!(
            "GRANT {} ON `{}`.* TO {to}{}",
            names(*p, Some(Privileges::all_database())),
            name.replace('`', "``"),
            suffix(*p)
        ));
    }
    let mut restrictions: Vec<_> = account.restrictions.iter().collect();
    restrictions.sort();
    for (name, p) in restrictions {
        lines.push(format!(
            "REVOKE {} ON `{}`.* FROM {to}",
            names(*p, None),
            name.replace('`', "``"),
        ));
    }
    let mut tables: Vec<&TableGrant> = account.tables.iter().collect();
    tables.sort_by_key(|t| (&t.database, &t.table));
    for grant in tables {
        lines.push(format!(
            "GRANT {} ON `{}`.`{}` TO {to}{}",
            names_on_table(grant),
            grant.database.replace('`', "``"),
            grant.table.replace('`', "``"),
            suffix(grant.privileges)
        ));
    }
    let mut proxies: Vec<&ProxyGrant> = account.proxies.iter().collect();
    proxies.sort_by_key(|p| specificity(&p.proxied));
    for grant in proxies {
        let option = ["", " WITH GRANT OPTION"][usize::from(grant.grant_option)];
        let proxied = quoted(&grant.proxied);
        lines.push(format!("GRANT PROXY ON {proxied} TO {to}{option}"));
    }
    for (option, suffix) in [(false, ""), (true, " WITH ADMIN OPTION")] {
        let roles = account.roles.iter().filter(|r| r.admin_option == option);
        let roles: Vec<AccountId> = roles.map(|r| r.role.clone()).collect();
        if !roles.is_empty() {
            lines.push(format!("GRANT {} TO {to}{suffix}", list(&roles)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_listed_as_mysql_lists_them() {
        let id = ("root".into(), "localhost".into());
        let mut account = Account::new(id, "caching_sha2_password");
        account.global = Privileges::PROCESS;
        let both = Privileges::INSERT.union(Privileges::SELECT);
        account.databases.push(("sdb".into(), both));
        let all = Privileges::all_database().union(Privileges::GRANT_OPTION);
        account.databases.push(("a`b".into(), all));
        account.tables.push(TableGrant {
            database: "d".into(),
            table: "t".into(),
            privileges: Privileges::UPDATE,
            columns: vec![("a".into(), both), ("b".into(), Privileges::SELECT)],
            grantor: "".into(),
            granted_s: 0,
        });
        assert_eq!(
            grant_lines(&account),
            [
                "GRANT PROCESS ON *.* TO `root`@`localhost`",
                "GRANT ALL PRIVILEGES ON `a``b`.* TO `root`@`localhost` WITH GRANT OPTION",
                "GRANT SELECT, INSERT ON `sdb`.* TO `root`@`localhost`",
                "GRANT SELECT (`a`, `b`), INSERT (`a`), UPDATE ON `d`.`t` TO `root`@`localhost`",
            ]
        );
    }
}
