//! The options of CREATE USER and ALTER USER behind the accounts.

use nfold_catalog::{Account, CertificateRule, LockDays};
use nfold_json::binary::encode;
use nfold_json::{Doc, Json, Work, merge_patch, parse, print};
use nfold_sql::ast::{CertificateParts, Lifetime, ResourceLimit, UserOption};
use nfold_types::{ErrorCode, NoCheckpoint, SqlError};

/// The number of an option, which is in `least..=most`. Error 1525.
fn in_range(name: &str, number: u64, least: u64, most: u16) -> Result<u16, SqlError> {
    let fits = u16::try_from(number).ok();
    let wrong = || SqlError::new(ErrorCode::ER_WRONG_VALUE, &[&name, &number]);
    fits.filter(|n| u64::from(*n) >= least && *n <= most)
        .ok_or_else(wrong)
}

/// The rule of REQUIRE. Error 1225 for a part that stands twice.
fn certificate_rule(parts: &CertificateParts) -> Result<CertificateRule, SqlError> {
    if let Some(name) = parts.repeated {
        return Err(SqlError::new(ErrorCode::ER_DUP_ARGUMENT, &[&name]));
    }
    let text = |part: &Option<Vec<u8>>| {
        let part = part.as_ref()?;
        Some(String::from_utf8_lossy(part).into())
    };
    Ok(CertificateRule {
        subject: text(&parts.subject),
        issuer: text(&parts.issuer),
        cipher: text(&parts.cipher),
    })
}

/// Applies options to an account, in their order.
///
/// # Errors
/// 1225 for a part of REQUIRE that stands twice, 1525 for a number out of range, 3016 for an
/// anonymous account whose password is to expire, 3982 for an ATTRIBUTE that is no JSON object.
pub(super) fn apply(account: &mut Account, options: &[UserOption]) -> Result<(), SqlError> {
    let days = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    for option in options {
        let password = &mut account.options.password;
        match option {
            UserOption::AccountLock(locked) => account.locked = *locked,
            UserOption::RequireTls(required) => {
                account.options.require_tls = *required;
                account.options.certificate = None;
            }
            UserOption::RequireCertificate(parts) => {
                account.options.require_tls = true;
                account.options.certificate = Some(certificate_rule(parts)?);
            }
            UserOption::Limit(limit, number) => {
                let limits = &mut account.options.limits;
                let place = match limit {
                    ResourceLimit::QueriesPerHour => &mut limits.queries_per_hour,
                    ResourceLimit::UpdatesPerHour => &mut limits.updates_per_hour,
                    ResourceLimit::ConnectionsPerHour => &mut limits.connections_per_hour,
                    ResourceLimit::Connections => &mut limits.connections,
                };
                // As in MySQL, only 32 bits of the number count.
                *place = *number as u32;
            }
            UserOption::Expire => {
                if account.user.is_empty() {
                    let code = ErrorCode::ER_PASSWORD_EXPIRE_ANONYMOUS_USER;
                    return Err(SqlError::new(code, &[]));
                }
                account.expired = true;
            }
            UserOption::Lifetime(lifetime) => {
                password.lifetime_days = match lifetime {
                    None => None,
                    Some(Lifetime::Never) => Some(0),
                    Some(Lifetime::Days(days)) => Some(in_range("DAY", *days, 1, u16::MAX)?),
                };
            }
            UserOption::History(number) => password.history = number.map(days),
            UserOption::ReuseInterval(number) => password.reuse_days = number.map(days),
            UserOption::RequireCurrent(required) => password.require_current = *required,
            UserOption::FailedAttempts(number) => {
                let most = i16::MAX as u16;
                password.failed_attempts = in_range("FAILED_LOGIN_ATTEMPTS", *number, 0, most)?;
            }
            UserOption::LockTime(days) => {
                let most = i16::MAX as u16;
                password.lock_days = match days {
                    None => LockDays::Unbounded,
                    Some(days) => LockDays::Days(in_range("PASSWORD_LOCK_TIME", *days, 0, most)?),
                };
            }
            UserOption::Comment(text) => {
                let text = String::from_utf8_lossy(text).into_owned();
                let comment = ("comment".to_string(), Json::String(text));
                merge_attribute(account, Json::object(vec![comment]))?;
            }
            UserOption::Attribute(text) => {
                let invalid = || SqlError::new(ErrorCode::ER_INVALID_USER_ATTRIBUTE_JSON, &[]);
                let patch = parse(text, &Work::new(&NoCheckpoint)).map_err(|_| invalid())?;
                if !matches!(patch, Json::Object(_)) {
                    return Err(invalid());
                }
                merge_attribute(account, patch)?;
            }
        }
    }
    Ok(())
}

/// Whether options reset the failed logins of an account.
pub(super) fn forget_failures(options: &[UserOption]) -> bool {
    options.iter().any(|option| {
        matches!(
            option,
            UserOption::AccountLock(false)
                | UserOption::FailedAttempts(_)
                | UserOption::LockTime(_)
        )
    })
}

/// Merges members into the attribute of an account; a member that is `null` goes away.
fn merge_attribute(account: &mut Account, patch: Json) -> Result<(), SqlError> {
    let work = Work::new(&NoCheckpoint);
    let current = account.options.attribute.as_deref().unwrap_or("{}");
    let invalid = || SqlError::new(ErrorCode::ER_INVALID_USER_ATTRIBUTE_JSON, &[]);
    let current = parse(current.as_bytes(), &work).map_err(|_| invalid())?;
    let merged = merge_patch(current, patch).check_depth()?;
    let mut text = Vec::new();
    print(Doc::new(&encode(&merged, &work)?)?, &work, &mut text)?;
    account.options.attribute = Some(String::from_utf8_lossy(&text).into());
    Ok(())
}
