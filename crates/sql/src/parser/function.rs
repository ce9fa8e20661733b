//! Function calls: those with their own grammar, aggregates, window functions, and ordinary ones.

use super::expr::level;
use super::{Parser, Result};
use crate::ast::{Expr, Ident, IntervalUnit, Literal, MatchMode, TrimSide, TypeKind, TypeSpec};
use crate::keywords::Kw;
use crate::lexer::TokenKind;
use nfold_types::error::{ErrorCode, SqlError};

/// Functions whose literal arguments determine the type of the result, or are needed at compile
/// time.
const SHAPED_BY_LITERALS: &[&str] = &[
    "round",
    "ceil",
    "ceiling",
    "floor",
    "truncate",
    "format",
    "str_to_date",
    "date_format",
    "time_format",
    "get_format",
    "rand",
    "maketime",
    "addtime",
    "subtime",
    "cast",
    "convert_tz",
    "unix_timestamp",
    "sec_to_time",
    "time",
    "timestamp",
    "timediff",
    "from_unixtime",
    "substring_index",
    "json_extract",
    "json_value",
    "json_unquote",
    "json_set",
    "json_insert",
    "json_replace",
    "json_remove",
    "json_contains",
    "json_contains_path",
    "json_search",
    "json_table",
    "regexp_like",
    "regexp_replace",
    "regexp_instr",
    "regexp_substr",
    "weight_string",
    "char",
    "conv",
    "lpad",
    "rpad",
    "repeat",
    "space",
];

impl Parser<'_> {
    /// Parses a call that starts with keyword `kw`. `next` is the kind of the token after it.
    /// `None` if it is not such a call.
    #[inline(never)]
    pub(super) fn keyword_function(&mut self, kw: Kw, next: TokenKind) -> Result<Option<Expr>> {
        let start = self.token.start;
        let paren = next == TokenKind::LParen;
        let call = match kw {
            Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP => self.now("now")?,
            Kw::UTC_TIMESTAMP => self.now("utc_timestamp")?,
            Kw::CURRENT_TIME => self.now("curtime")?,
            Kw::UTC_TIME => self.now("utc_time")?,
            Kw::CURRENT_DATE => self.empty_call("curdate")?,
            Kw::UTC_DATE => self.empty_call("utc_date")?,
            Kw::CURRENT_USER => self.empty_call("current_user")?,
            Kw::MATCH => self.match_against()?,
            _ if !paren && needs_parenthesis(kw) => {
                self.advance();
                return self.unexpected();
            }
            _ if !paren => return Ok(None),
            Kw::NOW => self.now("now")?,
            Kw::SYSDATE => self.now("sysdate")?,
            Kw::CURTIME => self.now("curtime")?,
            Kw::CURDATE => self.empty_call("curdate")?,
            Kw::CAST => self.cast()?,
            Kw::CONVERT => self.convert()?,
            Kw::CHAR | Kw::CHARACTER => self.char_function()?,
            Kw::EXTRACT => {
                self.open()?;
                let unit = self.interval_unit()?;
                self.expect_kw(Kw::FROM)?;
                let expr = self.boxed()?;
                self.expect(TokenKind::RParen)?;
                Expr::Extract { unit, expr }
            }
            Kw::TRIM => self.trim()?,
            Kw::SUBSTRING | Kw::SUBSTR | Kw::MID => self.substring()?,
            Kw::POSITION => {
                self.open()?;
                let needle = self.expr_at(level::BIT_OR)?;
                self.expect_kw(Kw::IN)?;
                let hay = self.expr()?;
                self.expect(TokenKind::RParen)?;
                self.builtin("locate", start, vec![needle, hay])
            }
            Kw::DATE_ADD => self.date_arith(false, false)?,
            Kw::DATE_SUB => self.date_arith(true, false)?,
            Kw::ADDDATE => self.date_arith(false, true)?,
            Kw::SUBDATE => self.date_arith(true, true)?,
            Kw::TIMESTAMPADD => {
                self.open()?;
                let unit = self.interval_unit()?;
                self.expect(TokenKind::Comma)?;
                let amount = self.boxed()?;
                self.expect(TokenKind::Comma)?;
                let expr = self.boxed()?;
                self.expect(TokenKind::RParen)?;
                Expr::IntervalArith {
                    expr,
                    amount,
                    unit,
                    subtract: false,
                }
            }
            Kw::TIMESTAMPDIFF => {
                self.open()?;
                let unit = self.interval_unit()?;
                self.expect(TokenKind::Comma)?;
                let from = self.boxed()?;
                self.expect(TokenKind::Comma)?;
                let to = self.boxed()?;
                self.expect(TokenKind::RParen)?;
                Expr::TimestampDiff { unit, from, to }
            }
            Kw::GET_FORMAT => self.get_format()?,
            Kw::WEIGHT_STRING => self.weight_string()?,
            Kw::JSON_VALUE => self.json_value()?,
            Kw::JSON_TABLE => return Err(SqlError::not_supported(kw.name())),
            Kw::COUNT
            | Kw::SUM
            | Kw::AVG
            | Kw::MIN
            | Kw::MAX
            | Kw::BIT_AND
            | Kw::BIT_OR
            | Kw::BIT_XOR
            | Kw::STD
            | Kw::STDDEV
            | Kw::STDDEV_POP
            | Kw::STDDEV_SAMP
            | Kw::VAR_POP
            | Kw::VAR_SAMP
            | Kw::VARIANCE
            | Kw::JSON_ARRAYAGG
            | Kw::JSON_OBJECTAGG
            | Kw::GROUP_CONCAT => self.aggregate(kw)?,
            Kw::ROW_NUMBER
            | Kw::RANK
            | Kw::DENSE_RANK
            | Kw::PERCENT_RANK
            | Kw::CUME_DIST
            | Kw::NTILE
            | Kw::LEAD
            | Kw::LAG
            | Kw::FIRST_VALUE
            | Kw::LAST_VALUE
            | Kw::NTH_VALUE => self.window_function(kw)?,
            _ => match plain_name(kw) {
                Some((name, least, most)) => self.plain_keyword_call(name, least, most)?,
                None => return Ok(None),
            },
        };
        Ok(Some(call))
    }

    /// Takes the word and its opening parenthesis.
    pub(super) fn open(&mut self) -> Result<()> {
        self.advance();
        self.expect(TokenKind::LParen)?;
        Ok(())
    }

    /// `NAME[([fraction digits])]`
    #[inline(never)]
    fn now(&mut self, name: &str) -> Result<Expr> {
        let start = self.advance().start;
        let mut args = Vec::new();
        if self.accept(TokenKind::LParen) {
            if self.is(TokenKind::Int) {
                args.push(self.keeping_literals(Self::simple)?);
            }
            self.expect(TokenKind::RParen)?;
        }
        Ok(self.builtin(name, start, args))
    }

    /// `NAME[()]`
    #[inline(never)]
    fn empty_call(&mut self, name: &str) -> Result<Expr> {
        let start = self.advance().start;
        if self.accept(TokenKind::LParen) {
            self.expect(TokenKind::RParen)?;
        }
        Ok(self.builtin(name, start, Vec::new()))
    }

    /// `name(expr, …)` with `least` to `most` arguments.
    #[inline(never)]
    fn plain_keyword_call(&mut self, name: &str, least: usize, most: usize) -> Result<Expr> {
        let start = self.token.start;
        self.open()?;
        let mut args = Vec::new();
        let shaped = SHAPED_BY_LITERALS.contains(&name);
        self.structural += u32::from(shaped);
        if most > 0 && (!self.is(TokenKind::RParen) || least > 0) {
            args.push(self.expr()?);
            while args.len() < most && (args.len() < least || self.is(TokenKind::Comma)) {
                self.expect(TokenKind::Comma)?;
                args.push(self.expr()?);
            }
        }
        self.structural -= u32::from(shaped);
        self.expect(TokenKind::RParen)?;
        Ok(self.builtin(name, start, args))
    }

    /// `[schema.]name([expr [AS alias], …])`, after the name.
    #[inline(never)]
    pub(super) fn call(&mut self, schema: Option<Ident>, name: Ident, start: u32) -> Result<Expr> {
        self.expect(TokenKind::LParen)?;
        let keyword = Kw::of_identifier(name.value.as_bytes());
        let stored = schema.is_some() || keyword.is_function();
        let name = match stored {
            false => name.value.to_ascii_lowercase(),
            true => name.value,
        };
        let shaped = SHAPED_BY_LITERALS.contains(&name.as_str());
        self.structural += u32::from(shaped);
        let (mut args, mut arg_spans, mut aliased) = (Vec::new(), Vec::new(), false);
        while args.is_empty() && !self.is(TokenKind::RParen) || self.accept(TokenKind::Comma) {
            let first = self.token.start;
            args.push(self.expr()?);
            arg_spans.push(self.span_from(first));
            aliased |= schema.is_none() && self.select_alias()?.is_some();
        }
        self.structural -= u32::from(shaped);
        self.expect(TokenKind::RParen)?;
        if aliased {
            // Only loadable functions may have aliases for their arguments.
            return Err(match stored {
                true => {
                    let code = ErrorCode::ER_WRONG_PARAMETERS_TO_STORED_FCT;
                    SqlError::new(code, &[&format_args!("`{name}`")])
                }
                false => SqlError::new(ErrorCode::ER_WRONG_PARAMETERS_TO_NATIVE_FCT, &[&name]),
            });
        }
        match name.as_str() {
            "found_rows" if !stored => {
                self.deprecated.push(super::Deprecated::FoundRows);
            }
            "json_merge" if !stored => {
                self.deprecated.push(super::Deprecated::JsonMerge);
            }
            _ => {}
        }
        let mut call = self.builtin(&name, start, args);
        if let Expr::Function(call) = &mut call {
            call.schema = schema;
            call.stored = stored;
            call.arg_spans = arg_spans;
        }
        Ok(call)
    }

    // Functions with their own grammar

    #[inline(never)]
    fn cast(&mut self) -> Result<Expr> {
        self.open()?;
        let expr = self.boxed()?;
        if self.accept_kws(&[Kw::AT])? {
            return Err(SqlError::not_supported("CAST AT TIME ZONE"));
        }
        self.expect_kw(Kw::AS)?;
        let ty = Box::new(self.cast_type()?);
        let array = self.accept_kw(Kw::ARRAY);
        self.expect(TokenKind::RParen)?;
        Ok(Expr::Cast { expr, ty, array })
    }

    #[inline(never)]
    fn convert(&mut self) -> Result<Expr> {
        self.open()?;
        let expr = self.boxed()?;
        let converted = if self.accept_kw(Kw::USING) {
            Expr::ConvertUsing {
                expr,
                charset: self.charset_name()?,
            }
        } else {
            self.expect(TokenKind::Comma)?;
            Expr::Cast {
                expr,
                ty: Box::new(self.cast_type()?),
                array: false,
            }
        };
        self.expect(TokenKind::RParen)?;
        Ok(converted)
    }

    #[inline(never)]
    fn char_function(&mut self) -> Result<Expr> {
        self.open()?;
        let args = self.comma_list(Self::expr)?;
        let charset = if self.accept_kw(Kw::USING) {
            Some(self.charset_name()?)
        } else {
            None
        };
        self.expect(TokenKind::RParen)?;
        Ok(Expr::Char { args, charset })
    }

    /// `TRIM([BOTH|LEADING|TRAILING] [what] [FROM] expr)`
    #[inline(never)]
    fn trim(&mut self) -> Result<Expr> {
        self.open()?;
        let side = match self.kw() {
            Kw::BOTH => Some(TrimSide::Both),
            Kw::LEADING => Some(TrimSide::Leading),
            Kw::TRAILING => Some(TrimSide::Trailing),
            _ => None,
        };
        if side.is_some() {
            self.advance();
        }
        let trimmed = if side.is_some() && self.accept_kw(Kw::FROM) {
            (None, self.boxed()?)
        } else {
            let first = self.boxed()?;
            if self.accept_kw(Kw::FROM) {
                (Some(first), self.boxed()?)
            } else if side.is_none() {
                (None, first)
            } else {
                return self.unexpected();
            }
        };
        self.expect(TokenKind::RParen)?;
        Ok(Expr::Trim {
            side: side.unwrap_or(TrimSide::Both),
            what: trimmed.0,
            expr: trimmed.1,
        })
    }

    /// `SUBSTRING(a, b[, c])`, `SUBSTRING(a FROM b [FOR c])`
    #[inline(never)]
    fn substring(&mut self) -> Result<Expr> {
        let start = self.token.start;
        self.open()?;
        let mut args = vec![self.expr()?];
        let separator = if self.accept_kw(Kw::FROM) {
            None
        } else {
            self.expect(TokenKind::Comma)?;
            Some(TokenKind::Comma)
        };
        args.push(self.expr()?);
        let third = match separator {
            Some(kind) => self.accept(kind),
            None => self.accept_kw(Kw::FOR),
        };
        if third {
            args.push(self.expr()?);
        }
        self.expect(TokenKind::RParen)?;
        Ok(self.builtin("substring", start, args))
    }

    /// DATE_ADD and similar functions. ADDDATE and SUBDATE also accept a number of days.
    #[inline(never)]
    fn date_arith(&mut self, subtract: bool, days: bool) -> Result<Expr> {
        self.open()?;
        let expr = self.boxed()?;
        self.expect(TokenKind::Comma)?;
        let (amount, unit) = if self.at(Kw::INTERVAL) && !(days && self.interval_is_function()?) {
            self.advance();
            let amount = self.boxed()?;
            (amount, self.interval_unit()?)
        } else if days {
            (self.boxed()?, IntervalUnit::Day)
        } else {
            return self.unexpected();
        };
        self.expect(TokenKind::RParen)?;
        Ok(Expr::IntervalArith {
            expr,
            amount,
            unit,
            subtract,
        })
    }

    /// At INTERVAL: whether it is the function `INTERVAL(a, b)`.
    fn interval_is_function(&mut self) -> Result<bool> {
        let start = self.save();
        self.advance();
        let found = self.is(TokenKind::LParen) && {
            let amount = self.expr()?;
            matches!(amount, Expr::Row(_)) || self.interval_unit_at_hand().is_none()
        };
        self.restore(start);
        Ok(found)
    }

    /// `GET_FORMAT(DATE|TIME|DATETIME|TIMESTAMP, expr)`. The type becomes the first argument, as a
    /// string.
    #[inline(never)]
    fn get_format(&mut self) -> Result<Expr> {
        let start = self.token.start;
        self.open()?;
        let kind = match self.kw() {
            Kw::DATE => "date",
            Kw::TIME => "time",
            Kw::DATETIME | Kw::TIMESTAMP => "datetime",
            _ => return self.unexpected(),
        };
        self.advance();
        self.expect(TokenKind::Comma)?;
        let which = self.keeping_literals(Self::expr)?;
        self.expect(TokenKind::RParen)?;
        let kind = crate::ast::StringLiteral {
            bytes: kind.into(),
            charset: None,
        };
        let kind = Expr::Literal(crate::ast::Literal::String(kind));
        Ok(self.builtin("get_format", start, vec![kind, which]))
    }

    #[inline(never)]
    fn match_against(&mut self) -> Result<Expr> {
        self.advance();
        let paren = self.accept(TokenKind::LParen);
        let columns = self.comma_list(Self::column_ref)?;
        if paren {
            self.expect(TokenKind::RParen)?;
        }
        self.expect_kw(Kw::AGAINST)?;
        self.expect(TokenKind::LParen)?;
        let against = Box::new(self.expr_at(level::BIT_OR)?);
        let mut mode = MatchMode::NaturalLanguage;
        if self.accept_kw(Kw::IN) {
            if self.accept_kw(Kw::NATURAL) {
                self.expect_kw(Kw::LANGUAGE)?;
            } else {
                mode = MatchMode::Boolean;
                self.expect_kw(Kw::BOOLEAN)?;
            }
            self.expect_kw(Kw::MODE)?;
        }
        if mode != MatchMode::Boolean && self.accept_kw(Kw::WITH) {
            self.expect_kw(Kw::QUERY)?;
            self.expect_kw(Kw::EXPANSION)?;
            mode = MatchMode::QueryExpansion;
        }
        self.expect(TokenKind::RParen)?;
        Ok(Expr::Match {
            columns,
            against,
            mode,
        })
    }

    /// `WEIGHT_STRING(expr)`, `WEIGHT_STRING(expr AS CHAR(n))`, `WEIGHT_STRING(expr AS BINARY(n))`,
    /// and the undocumented `WEIGHT_STRING(expr, bytes, characters, flags)`. The call has one or
    /// four arguments; `AS BINARY(n)` is the function over the cast.
    #[inline(never)]
    fn weight_string(&mut self) -> Result<Expr> {
        let start = self.token.start;
        self.open()?;
        let mut args = vec![self.keeping_literals(Self::expr)?];
        if self.accept_kw(Kw::AS) {
            let binary = self.accept_kw(Kw::BINARY);
            if !binary && !self.accept_kw(Kw::CHAR) {
                self.expect_kw(Kw::CHARACTER)?;
            }
            self.expect(TokenKind::LParen)?;
            let at = self.token.start as usize;
            let chars = match self.number()? {
                0 => return Err(super::syntax_error_at(self.text, at)),
                chars => chars,
            };
            self.expect(TokenKind::RParen)?;
            if binary {
                let mut ty = Box::new(TypeSpec::new(TypeKind::Binary));
                ty.length = Some(chars);
                args = args.into_iter().map(|e| cast(e, ty.clone())).collect();
            } else {
                args.extend([0, chars, 0].map(|n| Expr::Literal(Literal::Int(n))));
            }
        } else if self.is(TokenKind::Comma) {
            for _ in 0..3 {
                self.expect(TokenKind::Comma)?;
                let n = self.number_or_hex()?;
                args.push(Expr::Literal(Literal::Int(n)));
            }
        }
        self.expect(TokenKind::RParen)?;
        Ok(self.builtin("weight_string", start, args))
    }

    /// An unsigned integer in decimal or hexadecimal digits.
    fn number_or_hex(&mut self) -> Result<u64> {
        if !self.is(TokenKind::HexNumber) {
            return self.number();
        }
        let digits = std::str::from_utf8(&self.bytes()[2..]).unwrap_or_default();
        match u64::from_str_radix(digits, 16) {
            Ok(n) => {
                self.advance();
                Ok(n)
            }
            Err(_) => self.unexpected(),
        }
    }

    // Units

    pub(super) fn interval_unit_at_hand(&self) -> Option<IntervalUnit> {
        use IntervalUnit::*;
        Some(match self.kw() {
            Kw::MICROSECOND => Microsecond,
            Kw::SECOND | Kw::SQL_TSI_SECOND => Second,
            Kw::MINUTE | Kw::SQL_TSI_MINUTE => Minute,
            Kw::HOUR | Kw::SQL_TSI_HOUR => Hour,
            Kw::DAY | Kw::SQL_TSI_DAY => Day,
            Kw::WEEK | Kw::SQL_TSI_WEEK => Week,
            Kw::MONTH | Kw::SQL_TSI_MONTH => Month,
            Kw::QUARTER | Kw::SQL_TSI_QUARTER => Quarter,
            Kw::YEAR | Kw::SQL_TSI_YEAR => Year,
            Kw::SECOND_MICROSECOND => SecondMicrosecond,
            Kw::MINUTE_MICROSECOND => MinuteMicrosecond,
            Kw::MINUTE_SECOND => MinuteSecond,
            Kw::HOUR_MICROSECOND => HourMicrosecond,
            Kw::HOUR_SECOND => HourSecond,
            Kw::HOUR_MINUTE => HourMinute,
            Kw::DAY_MICROSECOND => DayMicrosecond,
            Kw::DAY_SECOND => DaySecond,
            Kw::DAY_MINUTE => DayMinute,
            Kw::DAY_HOUR => DayHour,
            Kw::YEAR_MONTH => YearMonth,
            _ => return None,
        })
    }

    pub(super) fn interval_unit(&mut self) -> Result<IntervalUnit> {
        match self.interval_unit_at_hand() {
            Some(unit) => {
                self.advance();
                Ok(unit)
            }
            None => self.unexpected(),
        }
    }
}

fn cast(expr: Expr, ty: Box<TypeSpec>) -> Expr {
    Expr::Cast {
        expr: Box::new(expr),
        ty,
        array: false,
    }
}

/// Reserved words that are functions and nothing else in an expression.
fn needs_parenthesis(kw: Kw) -> bool {
    matches!(
        kw,
        Kw::CHAR
            | Kw::CHARACTER
            | Kw::CONVERT
            | Kw::DATABASE
            | Kw::SCHEMA
            | Kw::IF
            | Kw::INSERT
            | Kw::LEFT
            | Kw::RIGHT
            | Kw::REPEAT
            | Kw::REPLACE
            | Kw::MOD
            | Kw::GROUPING
            | Kw::ROW_NUMBER
            | Kw::RANK
            | Kw::DENSE_RANK
            | Kw::PERCENT_RANK
            | Kw::CUME_DIST
            | Kw::NTILE
            | Kw::LEAD
            | Kw::LAG
            | Kw::FIRST_VALUE
            | Kw::LAST_VALUE
            | Kw::NTH_VALUE
    )
}

/// Keywords that are the names of ordinary functions: the name, and the least and most arguments of
/// the grammar.
fn plain_name(kw: Kw) -> Option<(&'static str, usize, usize)> {
    const ANY: usize = usize::MAX;
    Some(match kw {
        Kw::IF => ("if", 3, 3),
        Kw::LEFT => ("left", 2, 2),
        Kw::RIGHT => ("right", 2, 2),
        Kw::REPEAT => ("repeat", 2, 2),
        Kw::REPLACE => ("replace", 3, 3),
        Kw::INSERT => ("insert", 4, 4),
        Kw::MOD => ("mod", 2, 2),
        Kw::TRUNCATE => ("truncate", 2, 2),
        Kw::DATABASE | Kw::SCHEMA => ("database", 0, 0),
        Kw::USER | Kw::SESSION_USER | Kw::SYSTEM_USER => ("user", 0, 0),
        Kw::ROW_COUNT => ("row_count", 0, 0),
        Kw::YEAR => ("year", 1, 1),
        Kw::MONTH => ("month", 1, 1),
        Kw::DAY => ("day", 1, 1),
        Kw::HOUR => ("hour", 1, 1),
        Kw::MINUTE => ("minute", 1, 1),
        Kw::SECOND => ("second", 1, 1),
        Kw::MICROSECOND => ("microsecond", 1, 1),
        Kw::QUARTER => ("quarter", 1, 1),
        Kw::WEEK => ("week", 1, 2),
        Kw::DATE => ("date", 1, 1),
        Kw::TIME => ("time", 1, 1),
        Kw::TIMESTAMP => ("timestamp", 1, 2),
        Kw::ASCII => ("ascii", 1, 1),
        Kw::CHARSET => ("charset", 1, 1),
        Kw::COLLATION => ("collation", 1, 1),
        Kw::COALESCE => ("coalesce", 1, ANY),
        Kw::GROUPING => ("grouping", 1, ANY),
        Kw::FORMAT => ("format", 2, 3),
        Kw::LOG => ("log", 1, 2),
        Kw::REVERSE => ("reverse", 1, 1),
        Kw::PASSWORD => ("password", 1, 1),
        Kw::POINT => ("point", 2, 2),
        Kw::LINESTRING => ("linestring", 1, ANY),
        Kw::POLYGON => ("polygon", 1, ANY),
        Kw::MULTIPOINT => ("multipoint", 1, ANY),
        Kw::MULTILINESTRING => ("multilinestring", 1, ANY),
        Kw::MULTIPOLYGON => ("multipolygon", 1, ANY),
        Kw::GEOMETRYCOLLECTION | Kw::GEOMCOLLECTION => ("geometrycollection", 0, ANY),
        Kw::ST_COLLECT => ("st_collect", 1, 1),
        _ => return None,
    })
}
