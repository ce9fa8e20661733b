//! GET_LOCK, RELEASE_LOCK, RELEASE_ALL_LOCKS, IS_FREE_LOCK, IS_USED_LOCK.
//! [`nfold_catalog::user_locks`] implements the locks.

use std::time::{Duration, Instant};

use nfold_catalog::{UserLockOutcome, UserLockSession};
use nfold_plan::expr::{Expr, ExprType};
use nfold_types::{CollationId, ErrorCode, SqlError};

use super::builtin::Evaluated;
use crate::expr::eval::{EvalCx, Val};

/// The maximum length of a name in characters.
const MAX_NAME_CHARS: usize = 64;

fn locks<'a>(cx: &EvalCx<'a>) -> Result<&'a UserLockSession, SqlError> {
    let locks = cx.env().user_locks();
    locks.ok_or_else(|| SqlError::not_supported("user-level locks"))
}

/// The name of a lock, in lower case.
///
/// # Errors
/// 3057 if it is NULL, empty, or not UTF-8 with at most three bytes a character; 4163 if it is too
/// long.
fn lock_name<'a>(cx: &EvalCx<'a>, e: &'a Expr) -> Result<String, SqlError> {
    let wrong = |shown: String| SqlError::new(ErrorCode::ER_USER_LOCK_WRONG_NAME, &[&shown]);
    let Some(bytes) = cx.text(e, CollationId::UTF8MB4_GENERAL_CI)? else {
        return Err(wrong("NULL".into()));
    };
    let Ok(name) = std::str::from_utf8(&bytes) else {
        return Err(wrong(show_bytes(&bytes)));
    };
    let is_wide = |c: char| c.len_utf8() > 3;
    if name.is_empty() || name.contains(is_wide) {
        return Err(wrong(name.replace(is_wide, "?")));
    }
    if name.chars().count() > MAX_NAME_CHARS {
        let code = ErrorCode::ER_USER_LOCK_OVERLONG_NAME;
        return Err(SqlError::new(code, &[&name]));
    }
    let mut lower = Vec::with_capacity(name.len());
    let collation = CollationId::UTF8MB3_GENERAL_CI.known();
    collation.lower(name.as_bytes(), &mut lower);
    String::from_utf8(lower).map_err(|e| wrong(show_bytes(e.as_bytes())))
}

/// Invalid bytes as error messages show them.
fn show_bytes(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut out, b| {
        if b.is_ascii() {
            out.push(char::from(*b));
        } else {
            // Writing to a String does not fail.
            _ = write!(out, "\\x{b:02X}");
        }
        out
    })
}

/// 1: the lock was acquired; 0: the timeout has passed. A negative timeout never passes.
pub(super) fn get_lock<'a>(cx: &EvalCx<'a>, args: &'a [Expr], _: &'a ExprType) -> Evaluated<'a> {
    let timeout = cx.int(&args[1])?.unwrap_or(0);
    let name = lock_name(cx, &args[0])?;
    let locks = locks(cx)?;
    let Some(mut wait) = locks.lock(&name) else {
        return Ok(Val::Int(1));
    };
    if timeout == 0 {
        return Ok(Val::Int(0));
    }
    let limit = u64::try_from(timeout).ok().map(Duration::from_secs);
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let waited = cx.st.subqueries.wait_for_user_lock(&mut wait, deadline);
    match wait.outcome() {
        UserLockOutcome::Granted => {
            wait.adopt(locks);
            waited.map(|()| Val::Int(1))
        }
        UserLockOutcome::Deadlock => Err(SqlError::new(ErrorCode::ER_USER_LOCK_DEADLOCK, &[])),
        UserLockOutcome::Waiting => waited.map(|()| Val::Int(0)),
    }
}

/// 1: the lock was released; 0: another session holds it; NULL: no session holds it.
pub(super) fn release_lock<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    _: &'a ExprType,
) -> Evaluated<'a> {
    let name = lock_name(cx, &args[0])?;
    let locks = locks(cx)?;
    if locks.release(&name).is_some() {
        return Ok(Val::Int(1));
    }
    let owner = locks.registry().owner(&name);
    Ok(owner.map_or(Val::Null, |_| Val::Int(0)))
}

pub(super) fn release_all_locks<'a>(
    cx: &EvalCx<'a>,
    _: &'a [Expr],
    _: &'a ExprType,
) -> Evaluated<'a> {
    Ok(Val::UInt(locks(cx)?.release_all()))
}

pub(super) fn is_free_lock<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    _: &'a ExprType,
) -> Evaluated<'a> {
    let name = lock_name(cx, &args[0])?;
    let owner = locks(cx)?.registry().owner(&name);
    Ok(Val::Int(i64::from(owner.is_none())))
}

/// The id of the connection that holds the lock; NULL if none does.
pub(super) fn is_used_lock<'a>(
    cx: &EvalCx<'a>,
    args: &'a [Expr],
    _: &'a ExprType,
) -> Evaluated<'a> {
    let name = lock_name(cx, &args[0])?;
    let owner = locks(cx)?.registry().owner(&name);
    Ok(owner.map_or(Val::Null, Val::UInt))
}
