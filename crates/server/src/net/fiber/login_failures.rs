//! Failed logins in a row, of the accounts that limit them (FAILED_LOGIN_ATTEMPTS), and how long
//! they block an account.
//!
//! Kept in memory, as in MySQL: a restart forgets them. Source: MySQL manual, "Password
//! Management", section "Failed-Login Tracking and Temporary Account Locking".
//!
//! # Concurrency
//! A mutex, taken at logins to accounts with a limit, and by statements that reset the counts.

use std::time::{Duration, Instant};

use nfold_catalog::LockDays;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What failed logins in a row do to an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailureLimit {
    /// The number of them that blocks it; 0: none does.
    pub attempts: u16,
    /// For how long.
    pub days: LockDays,
}

impl FailureLimit {
    /// Whether failed logins are counted.
    pub fn is_set(&self) -> bool {
        self.attempts > 0 && self.days != LockDays::Days(0)
    }
}

/// The failed logins of all accounts. See the module's header.
#[derive(Default)]
pub struct LoginFailures {
    accounts: Mutex<FxHashMap<(String, String), Failures>>,
}

#[derive(Default)]
struct Failures {
    /// In a row.
    count: u16,
    blocked: Option<Instant>,
}

/// An account that failed logins have blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    pub days: LockDays,
    pub remaining: LockDays,
    pub failures: u16,
}

impl LoginFailures {
    /// Records a login to the account `user`@`host`, and says whether the account is blocked now.
    pub fn note(
        &self,
        (user, host): (&str, &str),
        limit: FailureLimit,
        succeeded: bool,
        now: Instant,
    ) -> Option<Blocked> {
        let mut accounts = self.accounts.lock();
        let key = (user.to_string(), host.to_string());
        let failures = accounts.entry(key.clone()).or_default();
        if let (Some(since), LockDays::Days(days)) = (failures.blocked, limit.days)
            && now.saturating_duration_since(since) >= DAY * days.into()
        {
            *failures = Failures::default();
        }
        if failures.blocked.is_none() {
            if succeeded {
                accounts.remove(&key);
                return None;
            }
            failures.count = failures.count.saturating_add(1);
            if failures.count < limit.attempts {
                return None;
            }
            failures.blocked = Some(now);
        }
        let since = failures.blocked.unwrap_or(now);
        let gone = now.saturating_duration_since(since).as_secs() / DAY.as_secs();
        Some(Blocked {
            days: limit.days,
            remaining: match limit.days {
                LockDays::Days(days) => LockDays::Days(days - (gone as u16).min(days)),
                LockDays::Unbounded => LockDays::Unbounded,
            },
            failures: failures.count,
        })
    }

    /// Forgets the failed logins of an account.
    pub fn forget(&self, user: &str, host: &str) {
        self.accounts.lock().remove(&(user.into(), host.into()));
    }

    /// Forgets the failed logins of all accounts.
    pub fn forget_all(&self) {
        self.accounts.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(
        failures: &LoginFailures,
        days: LockDays,
    ) -> impl Fn(bool, Instant) -> Option<Blocked> {
        let limit = FailureLimit { attempts: 2, days };
        move |succeeded, now| failures.note(("u", "%"), limit, succeeded, now)
    }

    #[test]
    fn failures_in_a_row_block_for_days() {
        let failures = LoginFailures::default();
        let (note, start) = (noted(&failures, LockDays::Days(3)), Instant::now());
        assert_eq!(note(false, start), None);
        assert_eq!(note(true, start), None);
        assert_eq!(note(false, start), None);
        let blocked = |remaining| {
            Some(Blocked {
                days: LockDays::Days(3),
                remaining: LockDays::Days(remaining),
                failures: 2,
            })
        };
        assert_eq!(note(false, start), blocked(3));
        assert_eq!(note(true, start + DAY), blocked(2));
        assert_eq!(note(false, start + DAY * 2), blocked(1));
        assert_eq!(note(false, start + DAY * 3), None);
        assert_eq!(note(true, start + DAY * 3), None);
    }

    #[test]
    fn unbounded_block_ends_when_it_is_forgotten() {
        let failures = LoginFailures::default();
        let (note, start) = (noted(&failures, LockDays::Unbounded), Instant::now());
        assert_eq!(note(false, start), None);
        assert!(note(false, start).is_some());
        assert!(note(true, start + DAY * 1000).is_some());
        failures.forget("u", "%");
        assert_eq!(note(true, start), None);
    }
}
