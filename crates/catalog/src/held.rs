//! The privileges of an account together with those of its active roles.

use std::sync::Arc;

use crate::account::{Account, DatabaseNames, TableGrant};
use crate::privileges::Privileges;

/// An account, and the roles whose privileges it has now.
#[derive(Debug, Clone)]
pub struct HeldPrivileges {
    accounts: Vec<Arc<Account>>,
    names: DatabaseNames,
}

impl HeldPrivileges {
    /// The privileges of all of these; the account itself is the first.
    pub fn new(accounts: Vec<Arc<Account>>, names: DatabaseNames) -> HeldPrivileges {
        HeldPrivileges { accounts, names }
    }

    /// The global privileges that are missing on some databases: partial revokes of each account
    /// that no other account makes up for. The latest first.
    pub fn restrictions(&self) -> Vec<(Box<str>, Privileges)> {
        let mut found: Vec<(Box<str>, Privileges)> = Vec::new();
        let (global, all) = (self.global(), self.accounts.iter());
        for (name, _) in all.flat_map(|a| &a.restrictions) {
            let missing = global.without(self.on_database(name));
            if !missing.is_empty() && !found.iter().any(|(known, _)| known == name) {
                found.push((name.clone(), missing));
            }
        }
        found
    }

    fn sum(&self, of: impl Fn(&Account) -> Privileges) -> Privileges {
        let all = self.accounts.iter();
        all.fold(Privileges::NONE, |sum, a| sum.union(of(a)))
    }

    /// The privileges on `*.*`.
    pub fn global(&self) -> Privileges {
        self.sum(|a| a.global)
    }

    /// Whether one of the accounts has a dynamic privilege.
    pub fn has_dynamic(&self, name: &str) -> bool {
        self.accounts
            .iter()
            .any(|a| a.dynamic_grant(name).is_some())
    }

    /// Whether a dynamic privilege may be granted to others.
    pub fn grants_dynamic(&self, name: &str) -> bool {
        let may = |a: &Arc<Account>| a.dynamic_grant(name).is_some_and(|d| d.grant_option);
        self.accounts.iter().any(may)
    }

    /// The privileges on a database, with the global ones.
    pub fn on_database(&self, name: &str) -> Privileges {
        self.sum(|a| a.privileges_on(name, self.names))
    }

    fn table_grants<'a>(
        &'a self,
        database: &'a str,
        table: &'a str,
    ) -> impl Iterator<Item = &'a TableGrant> {
        let accounts = self.accounts.iter();
        accounts.filter_map(move |a| a.table_grant(database, table))
    }

    /// The privileges on a table, with those of the levels above.
    pub fn on_table(&self, database: &str, table: &str) -> Privileges {
        let grants = self.table_grants(database, table);
        grants.fold(self.on_database(database), |sum, g| sum.union(g.privileges))
    }

    /// The privileges that were granted on at least one column of a table.
    pub fn on_any_column(&self, database: &str, table: &str) -> Privileges {
        let grants = self.table_grants(database, table);
        grants.fold(Privileges::NONE, |sum, g| sum.union(g.on_any_column()))
    }

    /// The privileges that were granted on a column, without those of the levels above.
    pub fn on_column(&self, database: &str, table: &str, column: &str) -> Privileges {
        let grants = self.table_grants(database, table);
        grants.fold(Privileges::NONE, |sum, g| sum.union(g.on_column(column)))
    }

    /// Whether anything was granted on a table or on one of its columns.
    pub fn has_table(&self, database: &str, table: &str) -> bool {
        self.table_grants(database, table).next().is_some()
    }

    /// Whether anything was granted on a table of the database.
    pub fn has_tables_of(&self, database: &str) -> bool {
        let mut tables = self.accounts.iter().flat_map(|a| &a.tables);
        tables.any(|t| *t.database == *database)
    }

    /// Whether the account may know that the table exists: it has any privilege on it.
    pub fn sees_table(&self, database: &str, table: &str) -> bool {
        let tables = Privileges::all_table();
        self.on_table(database, table).has_any(tables)
            || !self.on_any_column(database, table).is_empty()
    }

    /// Whether the account may make the database its current one: it has a privilege that applies
    /// to databases.
    pub fn uses_database(&self, name: &str) -> bool {
        let any = Privileges::all_database();
        self.on_database(name).has_any(any) || self.has_tables_of(name)
    }

    /// Whether the account may know that the database exists.
    pub fn sees_database(&self, name: &str) -> bool {
        let grants = self.sum(|a| a.granted_on(name, self.names).without(a.global));
        self.uses_database(name) || grants.contains(Privileges::GRANT_OPTION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_roles_add_up() {
        let mut own = Account::new(("u".into(), "%".into()), "caching_sha2_password");
        own.databases.push(("d".into(), Privileges::INSERT));
        let mut role = Account::new(("r".into(), "%".into()), "caching_sha2_password");
        role.add_all_dynamic(false);
        role.tables.push(TableGrant {
            database: "d".into(),
            table: "t".into(),
            privileges: Privileges::DELETE,
            columns: vec![("a".into(), Privileges::SELECT)],
            grantor: "".into(),
            granted_s: 0,
        });
        let all = vec![Arc::new(own), Arc::new(role)];
        let held = HeldPrivileges::new(all, DatabaseNames::Patterns);
        let both = Privileges::INSERT.union(Privileges::DELETE);
        assert_eq!(held.on_table("d", "t"), both);
        assert_eq!(held.on_table("d", "u"), Privileges::INSERT);
        assert_eq!(held.on_any_column("d", "t"), Privileges::SELECT);
        assert_eq!(held.on_column("d", "t", "A"), Privileges::SELECT);
        assert_eq!(held.on_column("d", "t", "b"), Privileges::NONE);
        assert!(held.has_dynamic("ROLE_ADMIN") && !held.grants_dynamic("ROLE_ADMIN"));
        assert!(held.sees_table("d", "t") && !held.sees_table("e", "t"));
        assert!(held.sees_database("d") && !held.sees_database("e"));
    }

    #[test]
    fn roles_make_up_for_restrictions() {
        let both = Privileges::SELECT.union(Privileges::INSERT);
        let account = |user: &str, global| {
            let mut account = Account::new((user.into(), "%".into()), "caching_sha2_password");
            account.global = global;
            account
        };
        let mut own = account("u", both);
        own.restrict("d", both);
        own.restrict("e", Privileges::SELECT);
        let mut role = account("r", Privileges::SELECT);
        role.restrict("e", Privileges::SELECT);
        let held = HeldPrivileges::new(vec![Arc::new(own), Arc::new(role)], DatabaseNames::Literal);
        assert_eq!(
            held.restrictions(),
            [
                ("e".into(), Privileges::SELECT),
                ("d".into(), Privileges::INSERT)
            ]
        );
    }
}
