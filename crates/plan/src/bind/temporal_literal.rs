//! `DATE'..'`, `TIME'..'` and `TIMESTAMP'..'`: the text is checked while the statement is bound.

use nfold_sql::ast::{StringLiteral, TemporalKind};
use nfold_types::temporal::{DateFlags, DateTime, Time, parse};
use nfold_types::{ColumnType, ErrorCode, SqlError, TypeKind, Value};

use super::BlockBinder;
use crate::logical::expr::{Coercibility, Expr, ExprType};
use crate::logical::mode::SqlMode;

impl BlockBinder<'_> {
    /// Binds a literal. `odbc`: it was written `{ts '..'}`, which is a string if its text is no
    /// value of the type.
    ///
    /// # Errors
    /// 1525 for a text that is no value of exactly this type.
    pub(super) fn temporal_literal(
        &self,
        kind: TemporalKind,
        text: &[u8],
        odbc: bool,
    ) -> Result<Expr, SqlError> {
        let (target, name) = match kind {
            TemporalKind::Date => (self.is_date(text).then_some(TypeKind::Date), "DATE"),
            TemporalKind::Time => (time_digits(text).map(TypeKind::Time), "TIME"),
            TemporalKind::Timestamp => {
                let digits = self.datetime_digits(text);
                (digits.map(TypeKind::DateTime), "DATETIME")
            }
        };
        let Some(target) = target else {
            if odbc {
                let bytes = text.to_vec();
                return self.string_literal(&StringLiteral {
                    bytes,
                    charset: None,
                });
            }
            let text = String::from_utf8_lossy(text);
            return Err(SqlError::new(ErrorCode::ER_WRONG_VALUE, &[&name, &text]));
        };
        let ty = ExprType::string(
            text.len() as u64,
            self.cx.connection,
            Coercibility::Coercible,
            false,
        );
        let inner = Expr::constant(Value::Bytes(text.to_vec()), ty);
        let ty = ExprType::new(ColumnType::new(target), false);
        Ok(Expr::cast(inner, ty))
    }

    /// The text as a date and time that the SQL mode allows.
    fn datetime(&self, text: &[u8]) -> Option<parse::ParsedDateTime> {
        let flags = DateFlags {
            no_zero_in_date: self.cx.mode.has(SqlMode::NO_ZERO_IN_DATE),
            no_zero_date: self.cx.mode.has(SqlMode::NO_ZERO_DATE),
            allow_invalid: self.cx.mode.has(SqlMode::ALLOW_INVALID_DATES),
        };
        let parsed = parse::parse_datetime(text, flags).ok();
        parsed.filter(|parsed| !parsed.truncated)
    }

    fn is_date(&self, text: &[u8]) -> bool {
        self.datetime(text).is_some_and(|parsed| parsed.date_only)
    }

    /// The fractional digits of a text that is a date with a time.
    fn datetime_digits(&self, text: &[u8]) -> Option<u8> {
        let parsed = self.datetime(text).filter(|parsed| !parsed.date_only)?;
        let cuts = self.cx.mode.has(SqlMode::TIME_TRUNCATE_FRACTIONAL);
        let fits = cuts || DateTime::round(parsed.value, parsed.nanos, 6).is_some();
        fits.then_some(parsed.value.fsp)
    }
}

/// The fractional digits of a text that is a time without a date.
fn time_digits(text: &[u8]) -> Option<u8> {
    let parsed = parse::parse_time(text).ok()?;
    let beyond = parsed.clamped || Time::round(parsed.value, parsed.nanos, 6).1;
    (!parsed.truncated && !beyond && parsed.dated.is_none()).then_some(parsed.value.fsp)
}
