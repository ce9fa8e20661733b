//! What some sessions must pass before each statement: an expired password, which allows only
//! statements that set a new one, the limits of the account (MAX_QUERIES_PER_HOUR and its kin), the
//! state of a distributed transaction's branch, and a GTID in `gtid_next`.
//!
//! A session of an ordinary account with neither of the last two has no gate.
//!
//! # Concurrency
//! The sessions of one limited account share a mutex. Accounts without limits share nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nfold_binlog::SourceUuid;
use nfold_catalog::{AccountId, ResourceLimits};
use nfold_types::{ErrorCode, SqlError};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::branch::OpenBranch;

const HOUR: Duration = Duration::from_secs(3600);

/// The use that limited accounts make of the server.
#[derive(Default)]
pub(crate) struct AccountUsage {
    accounts: Mutex<FxHashMap<AccountId, Arc<Mutex<Usage>>>>,
}

/// The use of one account.
#[derive(Default)]
struct Usage {
    /// Connections that are open.
    open: u32,
    /// When the current hour began.
    hour: Option<Instant>,
    queries: u32,
    updates: u32,
    connections: u32,
}

impl Usage {
    fn begin_hour(&mut self) {
        let now = Instant::now();
        let over = |since: Instant| now.saturating_duration_since(since) >= HOUR;
        if self.hour.is_none_or(over) {
            (self.queries, self.updates, self.connections) = (0, 0, 0);
            self.hour = Some(now);
        }
    }
}

impl AccountUsage {
    /// Begins a new hour for all accounts (FLUSH USER_RESOURCES, FLUSH PRIVILEGES).
    pub fn begin_hours(&self) {
        for usage in self.accounts.lock().values() {
            usage.lock().hour = None;
        }
    }

    /// Counts a new connection of an account.
    ///
    /// # Errors
    /// 1226 if the account has too many.
    fn connect(&self, id: &AccountId, limits: ResourceLimits) -> Result<OpenUsage, SqlError> {
        let usage = self.accounts.lock().entry(id.clone()).or_default().clone();
        let open = OpenUsage {
            user: id.0.clone(),
            limits,
            usage,
        };
        let mut usage = open.usage.lock();
        usage.begin_hour();
        let limited = |used: u32, limit: u32, what: &str| match limit > 0 && used >= limit {
            true => Err(exceeded(&id.0, what, limit)),
            false => Ok(()),
        };
        // The connection counts as open from here on: dropping `open` takes it back.
        usage.open += 1;
        let checked =
            limited(usage.open - 1, limits.connections, "max_user_connections").and_then(|()| {
                let what = "max_connections_per_hour";
                limited(usage.connections, limits.connections_per_hour, what)
            });
        if checked.is_ok() {
            usage.connections += 1;
        }
        drop(usage);
        checked.map(|()| open)
    }
}

/// Error 1226.
fn exceeded(user: &str, what: &str, limit: u32) -> SqlError {
    SqlError::new(ErrorCode::ER_USER_LIMIT_REACHED, &[&user, &what, &limit])
}

/// One open connection of a limited account.
struct OpenUsage {
    user: Box<str>,
    limits: ResourceLimits,
    usage: Arc<Mutex<Usage>>,
}

impl Drop for OpenUsage {
    fn drop(&mut self) {
        self.usage.lock().open -= 1;
    }
}

/// The state of the GTID in `gtid_next`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextGtidState {
    /// The next transaction gets it.
    Owned,
    /// The server has the transaction. Statements that change something do nothing.
    Executed,
    /// The transaction has ended. The client has to set the variable again.
    Ended,
}

/// The value of `gtid_next` if it is a GTID.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextGtid {
    pub uuid: SourceUuid,
    pub number: u64,
    pub state: NextGtidState,
}

impl NextGtid {
    pub fn text(&self) -> String {
        format!("{}:{}", self.uuid, self.number)
    }
}

/// See the module's header.
pub(crate) struct Gate {
    must_change_password: bool,
    usage: Option<OpenUsage>,
    /// The branch of a distributed transaction that the session works on.
    pub branch: Option<OpenBranch>,
    /// The GTID in `gtid_next`.
    pub next_gtid: Option<NextGtid>,
}

impl Gate {
    /// The gate of a new session whose password has expired or whose account has limits.
    ///
    /// # Errors
    /// 1226 if the account has too many connections.
    pub fn open(
        must_change_password: bool,
        id: &AccountId,
        limits: ResourceLimits,
        usage: &AccountUsage,
    ) -> Result<Box<Gate>, SqlError> {
        let usage = match limits != ResourceLimits::default() {
            true => Some(usage.connect(id, limits)?),
            false => None,
        };
        Ok(Box::new(Gate {
            must_change_password,
            usage,
            branch: None,
            next_gtid: None,
        }))
    }

    /// The gate of a session that needs one for its branch or its GTID alone.
    pub fn of_ordinary_account() -> Box<Gate> {
        Box::new(Gate {
            must_change_password: false,
            usage: None,
            branch: None,
            next_gtid: None,
        })
    }

    /// Whether the session has something to pass.
    pub fn is_needed(&self) -> bool {
        self.must_change_password
            || self.usage.is_some()
            || self.branch.is_some()
            || self.next_gtid.is_some()
    }

    /// Counts a statement. `sets_password`: whether it sets the password of the session's account.
    ///
    /// # Errors
    /// 1820 if the password has expired, 1226 after too many statements in this hour.
    pub fn pass(&mut self, sets_password: impl FnOnce() -> bool) -> Result<(), SqlError> {
        if let Some(OpenUsage {
            user,
            limits,
            usage,
        }) = &self.usage
        {
            let mut usage = usage.lock();
            usage.begin_hour();
            let limit = limits.queries_per_hour;
            if limit > 0 && usage.queries >= limit {
                return Err(exceeded(user, "max_questions", limit));
            }
            usage.queries = usage.queries.saturating_add(1);
        }
        match self.must_change_password && !sets_password() {
            true => Err(SqlError::new(ErrorCode::ER_MUST_CHANGE_PASSWORD, &[])),
            false => Ok(()),
        }
    }

    /// Counts a statement that changes data or definitions.
    ///
    /// # Errors
    /// 1226 after too many in this hour.
    pub fn pass_update(&mut self) -> Result<(), SqlError> {
        let Some(OpenUsage {
            user,
            limits,
            usage,
        }) = &self.usage
        else {
            return Ok(());
        };
        let mut usage = usage.lock();
        usage.begin_hour();
        let limit = limits.updates_per_hour;
        if limit > 0 && usage.updates >= limit {
            return Err(exceeded(user, "max_updates", limit));
        }
        usage.updates = usage.updates.saturating_add(1);
        Ok(())
    }

    /// The account has a new password.
    pub fn password_changed(&mut self) {
        self.must_change_password = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_while_they_are_open() {
        let usage = AccountUsage::default();
        let id: AccountId = ("u".into(), "%".into());
        let limits = ResourceLimits {
            connections: 1,
            queries_per_hour: 2,
            ..ResourceLimits::default()
        };
        let open = || Gate::open(false, &id, limits, &usage);
        let mut first = open().unwrap();
        let refused = open().err().unwrap();
        assert_eq!(refused.errno(), 1226);
        assert!(refused.message.contains("max_user_connections"));
        assert!(first.pass(|| false).is_ok() && first.pass(|| false).is_ok());
        assert!(first.pass(|| false).is_err());
        usage.begin_hours();
        assert!(first.pass(|| false).is_ok() && first.pass_update().is_ok());
        drop(first);
        assert!(open().is_ok());
    }

    #[test]
    fn expired_password_allows_only_its_change() {
        let usage = AccountUsage::default();
        let id: AccountId = ("u".into(), "%".into());
        let none = ResourceLimits::default();
        let mut gate = Gate::open(true, &id, none, &usage).unwrap();
        assert_eq!(gate.pass(|| false).unwrap_err().errno(), 1820);
        assert!(gate.pass(|| true).is_ok());
        gate.password_changed();
        assert!(gate.pass(|| false).is_ok());
    }
}
