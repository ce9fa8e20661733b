//! The value of a constant while a statement is bound: types depend on it, as the number of
//! fractional digits of `TIME(CONCAT('10:11:12', '.5'))` does.

use std::cell::{Cell, RefCell};

use nfold_engine::Isolation;
use nfold_observe::SessionCounters;
use nfold_plan::expr::{Expr, ExprKind};
use nfold_plan::func::FuncSet;
use nfold_plan::{SqlMode, VarScope};
use nfold_types::temporal::TimeZone;
use nfold_types::{
    Checkpoint, CollationId, ColumnType, ErrorCode, SqlError, Timestamp, Value, Warnings,
};

use super::{Builtins, is_repeatable};
use crate::env::SessionEnv;
use crate::env::params::Params;
use crate::expr::eval::{
    EvalCx, ListCache, NoSubqueries, RowCounts, Scope, StmtState, Val, convert,
};

/// The work that computing a constant may cost, about a millisecond.
const MAX_WORK: u64 = 1 << 20;

/// The longest text of a constant, in bytes.
const MAX_TEXT: usize = 1 << 16;

/// The value of an expression of literals, operators and functions; text is in the character set of
/// the expression's type. `None` for any other expression, for one that depends on the session, and
/// for one that fails or costs much.
pub(crate) fn value_of(e: &Expr) -> Option<Value> {
    if !is_of_literals(e) || !is_repeatable(e) {
        return None;
    }
    let env = NoSession::default();
    let (params, warnings) = (Params::new(), RefCell::new(Warnings::default()));
    let (lists, counts) = (ListCache::default(), RowCounts::default());
    let state = StmtState {
        params: &params,
        env: &env,
        warnings: &warnings,
        subqueries: &NoSubqueries,
        checkpoint: &Budget(Cell::new(MAX_WORK)),
        lists: &lists,
        counts: &counts,
        strict: false,
        scope: Scope::None,
        changes: false,
    };
    let cx = EvalCx {
        rows: &[],
        outer: &[],
        st: &state,
    };
    Some(cx.val(e).ok()?.into_value())
}

/// As [`value_of`], as text; NULL is `Some(None)`.
pub(crate) fn text_of(e: &Expr) -> Option<Option<Vec<u8>>> {
    let value = value_of(e)?;
    let mut text = Vec::new();
    convert::write_text(&Val::from_ref(value.as_ref()), &e.ty, &mut text);
    Some((value != Value::Null).then_some(text))
}

/// Whether an expression consists of literals, and of operators and functions that read nothing of
/// the session.
fn is_of_literals(e: &Expr) -> bool {
    !e.any(&mut |e| match &e.kind {
        ExprKind::Column(_)
        | ExprKind::Outer { .. }
        | ExprKind::Param(_)
        | ExprKind::InParam { .. }
        | ExprKind::Subquery { .. }
        | ExprKind::UserVar(_)
        | ExprKind::VaryingUserVar(_)
        | ExprKind::AssignUserVar(..)
        | ExprKind::SysVar { .. }
        | ExprKind::Default(_) => true,
        ExprKind::Call { func, args } => args.is_empty() && Builtins.get(*func).name != "pi",
        _ => false,
    })
}

/// Fails once the work exceeds a limit.
struct Budget(Cell<u64>);

impl Checkpoint for Budget {
    fn checkpoint(&self, work: u64) -> Result<(), SqlError> {
        let left = self.0.get().checked_sub(work);
        self.0.set(left.unwrap_or(0));
        match left {
            Some(_) => Ok(()),
            None => Err(SqlError::new(ErrorCode::ER_QUERY_INTERRUPTED, &[])),
        }
    }
}

/// Stands for the session, on which a constant does not depend.
#[derive(Default)]
struct NoSession(SessionCounters);

impl SessionEnv for NoSession {
    fn counters(&self) -> &SessionCounters {
        &self.0
    }

    fn sysvar(&self, _: Option<VarScope>, name: &str) -> Result<Value, SqlError> {
        let code = ErrorCode::ER_UNKNOWN_SYSTEM_VARIABLE;
        Err(SqlError::new(code, &[&name]))
    }

    fn user_var(&self, _: &str) -> Value {
        Value::Null
    }

    fn set_user_var(&self, _: &str, _: Value, _: Option<&ColumnType>) -> Result<(), SqlError> {
        Ok(())
    }

    fn sql_mode(&self) -> SqlMode {
        SqlMode::default()
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0, 6)
    }

    fn clock(&self) -> Timestamp {
        self.now()
    }

    fn time_zone(&self) -> &TimeZone {
        &TimeZone::UTC
    }

    fn collation(&self) -> CollationId {
        CollationId::UTF8MB4_0900_AI_CI
    }

    fn last_insert_id(&self) -> u64 {
        0
    }

    fn set_last_insert_id(&self, _: u64) {}

    fn found_rows(&self) -> u64 {
        0
    }

    fn row_count(&self) -> i64 {
        0
    }

    fn connection_id(&self) -> u64 {
        0
    }

    fn user(&self) -> String {
        String::new()
    }

    fn current_user(&self) -> String {
        String::new()
    }

    fn database(&self) -> Option<String> {
        None
    }

    fn version(&self) -> String {
        String::new()
    }

    fn random(&self) -> u64 {
        0
    }

    fn max_allowed_packet(&self) -> usize {
        MAX_TEXT
    }

    fn isolation(&self) -> Isolation {
        Isolation::RepeatableRead
    }
}
