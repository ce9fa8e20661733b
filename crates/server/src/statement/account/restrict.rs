//! Partial revokes: with `partial_revokes` REVOKE takes a global privilege away on one database,
//! and what an account grants on `*.*` is restricted as its own privileges are.
//!
//! Source: MySQL manual, "Privilege Restriction Using Partial Revokes".

use nfold_catalog::{Account, DatabaseNames, HeldPrivileges, Privileges};
use nfold_sql::ast::GrantAs;
use nfold_types::{ErrorCode, Level, SqlError};

use crate::session::Session;

/// Databases, each with the global privileges that are missing there.
pub(super) type Restrictions = [(Box<str>, Privileges)];

fn missing_on(database: &str, restrictions: &Restrictions) -> Privileges {
    let found = restrictions.iter().find(|(d, _)| **d == *database);
    found.map_or(Privileges::NONE, |(_, p)| *p)
}

impl Session {
    /// The restrictions of the account in `GRANT ... AS account`.
    ///
    /// # Errors
    /// 3836 if the account or one of its roles does not exist, or the session's own privileges of
    /// `granted` are restricted where the account's are not.
    pub(super) fn restrictions_of(
        &mut self,
        other: &GrantAs,
        granted: Privileges,
    ) -> Result<Vec<(Box<str>, Privileges)>, SqlError> {
        let code = ErrorCode::ER_UKNOWN_AUTH_ID_OR_ACCESS_DENIED_FOR_GRANT_AS;
        let invalid = || SqlError::new(code, &[]);
        let id = self.named(&other.account);
        let accounts = self.server.engine.catalog().accounts();
        let Some(account) = accounts.get(&id.0, &id.1) else {
            let unknown = SqlError::new(ErrorCode::ER_NO_SUCH_USER, &[&id.0, &id.1]);
            self.conditions.push_error(Level::Error, &unknown);
            return Err(invalid());
        };
        let roles = self.roles_to_activate(account, &other.roles);
        let roles = roles.map_err(|_| invalid())?;
        let mut all = vec![account.clone()];
        all.extend(accounts.with_granted(&roles));
        let theirs = HeldPrivileges::new(all, accounts.database_names).restrictions();
        let own = self.rights.held().restrictions();
        let covers = |(database, missing): &(Box<str>, Privileges)| {
            missing_on(database, &theirs).contains(missing.common(granted))
        };
        match own.iter().all(covers) {
            true => Ok(theirs),
            false => Err(invalid()),
        }
    }

    /// Error 3879 if the session's account lacks one of these global privileges on a database where
    /// `account` has it.
    pub(super) fn may_revoke_from(
        &self,
        account: &Account,
        revoked: Privileges,
    ) -> Result<(), SqlError> {
        let own = self.rights.held().restrictions();
        let stricter = |(database, missing): &&(Box<str>, Privileges)| {
            !account
                .restricted_on(database)
                .contains(missing.common(revoked))
        };
        let Some((database, _)) = own.iter().find(stricter) else {
            return Ok(());
        };
        let own = self.rights.account();
        let code = ErrorCode::ER_DB_ACCESS_DENIED;
        Err(SqlError::new(code, &[&own.user, &own.host, database]))
    }
}

/// Sets the restrictions of an account that is about to get global privileges. A privilege that it
/// has already stays restricted where the grantor's is, too; a new one is restricted where the
/// grantor's is, but for databases on which it is granted.
pub(super) fn inherit(
    account: &mut Account,
    granted: Privileges,
    grantor: &Restrictions,
    names: DatabaseNames,
) {
    let own = account.restrictions.iter();
    let mut databases: Vec<Box<str>> = grantor.iter().chain(own).map(|(d, _)| d.clone()).collect();
    databases.sort_unstable();
    databases.dedup();
    for database in databases.iter().rev() {
        let before = account.restricted_on(database);
        let theirs = missing_on(database, grantor).common(granted);
        let new = granted
            .without(account.global)
            .without(account.granted_on(database, names));
        let both = theirs.common(before);
        let after = before
            .without(granted)
            .union(both)
            .union(theirs.common(new));
        account.restrict(database, after);
    }
}

/// Lifts restrictions that a grant on a database makes void. Returns the privileges that are left
/// to be granted.
pub(super) fn lift(account: &mut Account, database: &str, granted: Privileges) -> Privileges {
    let restricted = account.restricted_on(database);
    account.restrict(database, restricted.without(granted));
    granted.without(restricted)
}

/// Removes the restrictions of global privileges that an account loses.
pub(super) fn forget(account: &mut Account, revoked: Privileges) {
    for (_, missing) in &mut account.restrictions {
        *missing = missing.without(revoked);
    }
    account.restrictions.retain(|(_, p)| !p.is_empty());
}

/// Revokes privileges on a database: those that were granted there, and of the others the global
/// ones. Returns false if the account has not all of them. `all`: REVOKE ALL, which is content with
/// some if there is a grant on the database.
pub(super) fn revoke(
    account: &mut Account,
    database: &str,
    revoked: Privileges,
    all: bool,
) -> bool {
    let at = account.databases.iter().position(|(d, _)| **d == *database);
    let granted = at.map_or(Privileges::NONE, |at| account.databases[at].1);
    let others = revoked.without(granted);
    let enough = account.global.contains(others) || all && at.is_some();
    if !enough || at.is_none() && others.is_empty() {
        return false;
    }
    if let Some(at) = at {
        account.databases[at].1 = granted.without(revoked);
        account.databases.retain(|(_, held)| !held.is_empty());
    }
    let restricted = others
        .common(account.global)
        .without(Privileges::GRANT_OPTION)
        .union(account.restricted_on(database));
    account.restrict(database, restricted);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(global: Privileges) -> Account {
        let mut account = Account::new(("u".into(), "%".into()), "caching_sha2_password");
        account.global = global;
        account
    }

    #[test]
    fn revoke_takes_granted_privileges_first() {
        let both = Privileges::SELECT.union(Privileges::INSERT);
        let mut a = account(Privileges::SELECT);
        a.databases.push(("d".into(), both));
        assert!(revoke(&mut a, "d", Privileges::SELECT, false));
        assert!(a.restrictions.is_empty());
        assert!(revoke(&mut a, "d", Privileges::SELECT, false));
        assert_eq!(a.restricted_on("d"), Privileges::SELECT);
        assert!(!revoke(&mut a, "d", Privileges::DELETE, false));
        assert_eq!(lift(&mut a, "d", both), Privileges::INSERT);
        assert!(a.restrictions.is_empty());
    }

    #[test]
    fn grants_inherit_restrictions_of_new_privileges() {
        let both = Privileges::SELECT.union(Privileges::INSERT);
        let mut a = account(Privileges::SELECT);
        let grantor = [("d".into(), both)];
        inherit(&mut a, both, &grantor, DatabaseNames::Literal);
        assert_eq!(a.restrictions, [("d".into(), Privileges::INSERT)]);
        a.global = both;
        inherit(&mut a, both, &[], DatabaseNames::Literal);
        assert!(a.restrictions.is_empty());
    }
}
