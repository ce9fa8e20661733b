//! GET DIAGNOSTICS, SIGNAL and RESIGNAL: the session's conditions, read and raised by statements.
//!
//! A condition of SIGNAL has its own number and SQLSTATE. Its error passes through the session as
//! error 1643 or 1644; `Session::signaled` has the rest until the error is recorded and sent.

use nfold_exec::{ExecCx, SessionEnv};
use nfold_plan::SqlMode;
use nfold_sql::ast::{
    ConditionItem, Expr, GetDiagnostics, Signal, StatementItem, TypeKind, TypeSpec,
};
use nfold_types::error::Signaled;
use nfold_types::{CollationId, ColumnType, ErrorCode, Level, SqlError, Value, Warning};

use crate::session::Session;
use crate::session::response::Response;

/// The longest MESSAGE_TEXT, in characters.
const MAX_MESSAGE: usize = 128;
/// The longest name or origin, in characters.
const MAX_NAME: usize = 64;

/// The SQL standard's class of conditions that are defined by it.
const ORIGIN: &str = "ISO 9075";

impl Session {
    /// GET DIAGNOSTICS. An error of it is a condition beside those that it reads, and the statement
    /// succeeds.
    pub(super) fn get_diagnostics(
        &mut self,
        cx: &mut dyn ExecCx,
        get: &GetDiagnostics,
        text: &[u8],
    ) -> Result<Response, SqlError> {
        if *get == GetDiagnostics::Stacked {
            let code = ErrorCode::ER_GET_STACKED_DA_WITHOUT_ACTIVE_HANDLER;
            return Err(SqlError::new(code, &[]));
        }
        self.facts.late = self.conditions.total();
        if let Err(e) = self.read_diagnostics(cx, get, text) {
            self.conditions.push_error(Level::Error, &e);
        }
        Ok(Response::ok())
    }

    fn read_diagnostics(
        &mut self,
        cx: &mut dyn ExecCx,
        get: &GetDiagnostics,
        text: &[u8],
    ) -> Result<(), SqlError> {
        match get {
            GetDiagnostics::Stacked => {}
            GetDiagnostics::Statement(items) => {
                for (variable, item) in items {
                    let value = match item {
                        StatementItem::Number => Value::UInt(self.conditions.list().len() as u64),
                        StatementItem::RowCount => Value::Int(self.env.row_count.get()),
                    };
                    self.assign(variable, value)?;
                }
            }
            GetDiagnostics::Condition { number, items } => {
                let number = self.signed_value(cx, number, text)?;
                let at = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
                let condition = at.and_then(|at| self.conditions.list().get(at)).cloned();
                let Some(condition) = condition else {
                    let code = ErrorCode::ER_DA_INVALID_CONDITION_NUMBER;
                    return Err(SqlError::new(code, &[]));
                };
                for (variable, item) in items {
                    self.assign(variable, item_value(&condition, *item))?;
                }
            }
        }
        Ok(())
    }

    /// Sets a user variable; texts have the character set of names.
    fn assign(&self, variable: &str, value: Value) -> Result<(), SqlError> {
        let text = matches!(value, Value::Bytes(_))
            .then(|| ColumnType::varchar(512, CollationId::UTF8MB3_GENERAL_CI));
        self.env
            .set_user_var(&variable.to_lowercase(), value, text.as_ref())
    }

    /// Evaluates an expression as an integer; NULL is 0.
    fn signed_value(
        &mut self,
        cx: &mut dyn ExecCx,
        e: &Expr,
        text: &[u8],
    ) -> Result<i64, SqlError> {
        let cast = Expr::Cast {
            expr: Box::new(e.clone()),
            ty: Box::new(TypeSpec::new(TypeKind::Signed)),
            array: false,
        };
        Ok(match self.evaluate(cx, &cast, text)? {
            Value::Int(n) => n,
            _ => 0,
        })
    }

    /// SIGNAL.
    pub(super) fn signal(
        &mut self,
        cx: &mut dyn ExecCx,
        signal: &Signal,
        text: &[u8],
    ) -> Result<Response, SqlError> {
        let code = match &signal.sqlstate[..2] {
            "01" => ErrorCode::ER_SIGNAL_WARN,
            "02" => ErrorCode::ER_SIGNAL_NOT_FOUND,
            _ => ErrorCode::ER_SIGNAL_EXCEPTION,
        };
        let mut error = SqlError::new(code, &[]);
        let mut signaled = Signaled::new(code.errno(), &signal.sqlstate);
        for (item, value) in &signal.items {
            let shown = self.signaled_text(cx, *item, value, text)?;
            match item {
                ConditionItem::MysqlErrno => {
                    let number = self.signed_value(cx, value, text)?;
                    signaled.errno = match u16::try_from(number) {
                        Ok(0) | Err(_) => return Err(refused_item(*item, &shown)),
                        Ok(errno) => errno,
                    };
                }
                ConditionItem::MessageText => {
                    error.message = self.fitting(*item, shown, MAX_MESSAGE)?.into();
                }
                ConditionItem::Text(text) => {
                    signaled.set_text(*text, &self.fitting(*item, shown, MAX_NAME)?);
                }
                ConditionItem::ReturnedSqlstate => {}
            }
        }
        let signaled = Box::new(signaled);
        if code == ErrorCode::ER_SIGNAL_WARN {
            self.conditions
                .push_signaled(Level::Warning, &error, signaled);
            return Ok(Response::ok());
        }
        self.signaled = Some(signaled);
        Err(error)
    }

    /// The value of an item as a text; error 1231 for NULL.
    fn signaled_text(
        &mut self,
        cx: &mut dyn ExecCx,
        item: ConditionItem,
        value: &Expr,
        text: &[u8],
    ) -> Result<String, SqlError> {
        let shown = Expr::ConvertUsing {
            expr: Box::new(value.clone()),
            charset: "utf8mb4".into(),
        };
        match self.evaluate(cx, &shown, text)? {
            Value::Bytes(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            _ => Err(refused_item(item, "NULL")),
        }
    }

    /// Cuts a text off after `max` characters, with warning 1647; in strict mode error 1648.
    fn fitting(
        &mut self,
        item: ConditionItem,
        text: String,
        max: usize,
    ) -> Result<String, SqlError> {
        let Some((end, _)) = text.char_indices().nth(max) else {
            return Ok(text);
        };
        if self.env.sql_mode().has(SqlMode::STRICT) {
            let code = ErrorCode::ER_COND_ITEM_TOO_LONG;
            return Err(SqlError::new(code, &[&item.name()]));
        }
        let code = ErrorCode::WARN_COND_ITEM_TRUNCATED;
        self.conditions.warn(code, &[&item.name()]);
        Ok(text[..end].to_owned())
    }
}

/// Error 1231.
fn refused_item(item: ConditionItem, value: &str) -> SqlError {
    SqlError::new(ErrorCode::ER_WRONG_VALUE_FOR_VAR, &[&item.name(), &value])
}

/// The value of a condition's item.
fn item_value(condition: &Warning, item: ConditionItem) -> Value {
    use nfold_types::error::SignalItem::{ClassOrigin, SubclassOrigin};
    match (item, &condition.signaled) {
        (ConditionItem::MysqlErrno, _) => Value::UInt(condition.errno().into()),
        (ConditionItem::MessageText, _) => Value::from(&*condition.message),
        (ConditionItem::ReturnedSqlstate, _) => Value::from(condition.sqlstate()),
        (ConditionItem::Text(item), Some(signaled)) => Value::from(signaled.text(item)),
        (ConditionItem::Text(ClassOrigin | SubclassOrigin), None) => Value::from(ORIGIN),
        (ConditionItem::Text(_), None) => Value::from(""),
    }
}
