//! Query expressions: SELECT, set operations, WITH, and the clauses after them.

use super::expr::Paren;
use super::set_chain::SetChain;
use super::{CteSeen, Deprecated, MAX_SUBQUERIES, Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;
use crate::{plan_hint, time_limit};
use nfold_types::error::{ErrorCode, SqlError};

impl Parser<'_> {
    /// A query that is a statement.
    pub(super) fn query_statement(&mut self) -> Result<Query> {
        if self.is(TokenKind::LParen) {
            return self.query_in_parens();
        }
        self.query()
    }

    /// `(query)` and the clauses that may follow it, but no expression.
    pub(super) fn query_in_parens(&mut self) -> Result<Query> {
        if !self.query_follows_paren() {
            // The error is at the first token that cannot begin a query.
            while self.accept(TokenKind::LParen) {}
            return self.unexpected();
        }
        match self.parenthesised(true)? {
            Paren::Query(query) => self.query_after_paren(*query),
            Paren::Expr(_) => self.unexpected(),
        }
    }

    /// `(query)` as an operand of an expression.
    pub(super) fn subquery(&mut self) -> Result<Box<Query>> {
        if !self.is(TokenKind::LParen) || !self.query_follows_paren() {
            self.expect(TokenKind::LParen)?;
            return self.unexpected();
        }
        match self.parenthesised(false)? {
            Paren::Query(query) => Ok(query),
            Paren::Expr(_) => self.unexpected(),
        }
    }

    /// A query in parentheses. `operand`: it is the statement, or an operand of its set operations,
    /// if the parentheses around it are; its INTO is that of the statement.
    pub(super) fn nested_query(&mut self, operand: bool) -> Result<Query> {
        let outermost = u32::from(operand && self.subqueries == self.outermost_parens);
        self.outermost_parens += outermost;
        self.subqueries += 1;
        if self.subqueries > MAX_SUBQUERIES {
            return Err(SqlError::new(
                ErrorCode::ER_TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT,
                &[],
            ));
        }
        let named = self.named_by_text;
        let query = self.deeper(2, Self::query)?;
        // Only the columns of the outermost query are shown.
        self.named_by_text = named;
        self.subqueries -= 1;
        self.outermost_parens -= outermost;
        Ok(query)
    }

    pub(super) fn query(&mut self) -> Result<Query> {
        let with = self.with()?;
        if self.is(TokenKind::LParen) {
            let mut query = self.query_in_parens()?;
            if with.is_some() {
                query = Query {
                    with,
                    into: query.into.take(),
                    ..Query::of(QueryBody::Paren(Box::new(query)))
                };
            }
            return Ok(query);
        }
        let mut into = None;
        let first = self.query_primary(&mut into)?;
        self.misplaced_into |= into.is_some() && self.at_set_operation();
        let mut query = Query {
            with,
            into,
            ..Query::of(first)
        };
        self.query_rest(&mut query)?;
        Ok(query)
    }

    /// Whether a query in parentheses continues after them.
    pub(super) fn query_goes_on(&self) -> bool {
        matches!(
            self.kw(),
            Kw::UNION
                | Kw::INTERSECT
                | Kw::EXCEPT
                | Kw::ORDER
                | Kw::LIMIT
                | Kw::FOR
                | Kw::LOCK
                | Kw::INTO
        )
    }

    fn at_set_operation(&self) -> bool {
        matches!(self.kw(), Kw::UNION | Kw::INTERSECT | Kw::EXCEPT)
    }

    /// INTO belongs to the outermost query of a query statement.
    fn may_select_into(&self) -> bool {
        self.into_allowed && self.subqueries == self.outermost_parens
    }

    /// The clauses after `(query)`: set operations, ORDER BY, LIMIT.
    pub(super) fn query_after_paren(&mut self, mut inner: Query) -> Result<Query> {
        if !self.query_goes_on() {
            return Ok(inner);
        }
        let into = inner.into.take();
        self.misplaced_into |= into.is_some() && self.at_set_operation();
        let mut query = Query {
            into,
            ..Query::of(QueryBody::Paren(Box::new(inner)))
        };
        self.query_rest(&mut query)?;
        Ok(query)
    }

    /// Set operations after the first operand, then ORDER BY, LIMIT, locking and INTO.
    fn query_rest(&mut self, query: &mut Query) -> Result<()> {
        let body = std::mem::replace(&mut query.body, QueryBody::Values(Vec::new()));
        query.body = self.set_operations(body, 0)?;
        if query.into.is_none() {
            query.into = self.into_of_operand.take();
        }
        query.order_by = self.order_by()?;
        query.limit = self.limit()?;
        if query.into.is_none() && self.at(Kw::INTO) && self.may_select_into() {
            query.into = Some(self.select_into()?);
        }
        query.locking = self.locking()?;
        if query.into.is_none() && self.at(Kw::INTO) && self.may_select_into() {
            query.into = Some(self.select_into()?);
        }
        Ok(())
    }

    /// UNION and EXCEPT are left-associative. INTERSECT (`tight`) binds more tightly.
    fn set_operations(&mut self, left: QueryBody, tight: u8) -> Result<QueryBody> {
        let mut chain = SetChain::of(left);
        loop {
            let op = match self.kw() {
                Kw::UNION if tight == 0 => SetOp::Union,
                Kw::EXCEPT if tight == 0 => SetOp::Except,
                Kw::INTERSECT => SetOp::Intersect,
                _ => return Ok(chain.into_body()),
            };
            self.misplaced_into |= self.into_of_operand.is_some();
            self.advance();
            let distinct = !self.accept_kw(Kw::ALL);
            if distinct && !self.accept_kw(Kw::DISTINCT) {
                self.accept_kw(Kw::DISTINCTROW);
            }
            // The first operand names the columns.
            let named = self.named_by_text;
            let mut right = self.set_operand()?;
            self.named_by_text = named;
            if op != SetOp::Intersect {
                right = self.set_operations(right, 1)?;
            }
            chain.add(op, distinct, right);
            self.grow(chain.height())?;
        }
    }

    fn set_operand(&mut self) -> Result<QueryBody> {
        if !self.is(TokenKind::LParen) {
            let mut into = None;
            let operand = self.query_primary(&mut into)?;
            self.into_of_operand = into.or(self.into_of_operand.take());
            return Ok(operand);
        }
        if !self.query_follows_paren() {
            while self.accept(TokenKind::LParen) {}
            return self.unexpected();
        }
        match self.parenthesised(true)? {
            Paren::Query(mut query) => {
                if let Some(into) = query.into.take() {
                    self.into_of_operand = Some(into);
                    self.deprecated.push(Deprecated::IntoOfOperand);
                }
                Ok(QueryBody::Paren(query))
            }
            Paren::Expr(_) => self.unexpected(),
        }
    }

    /// `SELECT …`, `VALUES ROW(…), …`, `TABLE t`
    fn query_primary(&mut self, into: &mut Option<SelectInto>) -> Result<QueryBody> {
        match self.kw() {
            Kw::SELECT => Ok(QueryBody::Select(Box::new(self.select(into)?))),
            Kw::VALUES => {
                self.advance();
                let rows = self.comma_list(|p| {
                    p.expect_kw(Kw::ROW)?;
                    p.row_values()
                })?;
                Ok(QueryBody::Values(rows))
            }
            Kw::TABLE => {
                self.advance();
                let name = self.object_name()?;
                self.grow_by_table(&name)?;
                Ok(QueryBody::Table(name))
            }
            _ => self.unexpected(),
        }
    }

    pub(super) fn with(&mut self) -> Result<Option<With>> {
        if !self.accept_kw(Kw::WITH) {
            return Ok(None);
        }
        let recursive = self.accept_kw(Kw::RECURSIVE);
        let tables = self.comma_list(|p| {
            let name = p.ident()?;
            let columns = if p.is(TokenKind::LParen) {
                p.paren_list(Self::ident)?
            } else {
                Vec::new()
            };
            p.expect_kw(Kw::AS)?;
            let outer = std::mem::take(&mut p.height);
            let seen = |height| CteSeen {
                name: name.value.clone(),
                height,
                named: false,
            };
            let own = p.ctes.len();
            if recursive {
                p.ctes.push(seen(0));
            }
            let query = p.subquery()?;
            let recursive = p.ctes.get(own).is_some_and(|cte| recursive && cte.named);
            p.ctes.push(seen(p.height));
            p.height = p.height.max(outer);
            Ok(Cte {
                name,
                columns,
                query,
                recursive,
            })
        })?;
        Ok(Some(With { recursive, tables }))
    }

    /// Takes the hint behind the first word of a block, and returns the milliseconds of its
    /// MAX_EXECUTION_TIME; `None` as well for 0, which has no effect.
    pub(super) fn time_limit_hint(&mut self) -> Option<u32> {
        let hint = self.hint.take()?;
        let times = time_limit::of_hint(hint.text(self.text));
        let (&first, others) = times.split_first()?;
        let warnings = others.iter().map(|&ms| Deprecated::SecondTimeLimit(ms));
        self.deprecated.extend(warnings);
        let first = Some(first).filter(|&ms| ms > 0);
        self.time_limits += u32::from(first.is_some());
        first
    }

    fn select(&mut self, into: &mut Option<SelectInto>) -> Result<Select> {
        self.hint = None;
        self.expect_kw(Kw::SELECT)?;
        let hint = self.hint.as_ref().map(|hint| hint.text(self.text));
        let plan_hints = hint.map_or_else(Vec::new, plan_hint::of_hint);
        let time_limit = self.time_limit_hint();
        let (distinct, mut options) = self.select_options()?;
        options.max_execution_ms = time_limit;
        let items = self.keeping_literals(Self::select_items)?;
        if self.at(Kw::INTO) && self.may_select_into() {
            *into = Some(self.select_into()?);
        } else if self.at(Kw::INTO) && self.subqueries > self.outermost_parens {
            self.select_into()?;
            self.misplaced_into = true;
        }
        let mut from = Vec::new();
        if self.accept_kw(Kw::FROM) && !self.accept_kw(Kw::DUAL) {
            from = self.table_refs()?;
        }
        let selection = if self.accept_kw(Kw::WHERE) {
            Some(self.expr()?)
        } else {
            None
        };
        let (mut group_by, mut with_rollup) = (Vec::new(), false);
        if self.accept_kws(&[Kw::GROUP, Kw::BY])? {
            (group_by, with_rollup) = self.keeping_literals(Self::group_list)?;
        }
        let having = if self.accept_kw(Kw::HAVING) {
            Some(self.keeping_literals(Self::expr)?)
        } else {
            None
        };
        let mut windows = Vec::new();
        if self.accept_kw(Kw::WINDOW) {
            windows = self.comma_list(|p| {
                let name = p.ident()?;
                p.expect_kw(Kw::AS)?;
                Ok((name, p.window()?))
            })?;
        }
        Ok(Select {
            distinct,
            options,
            plan_hints,
            items,
            from,
            selection,
            group_by,
            with_rollup,
            having,
            windows,
        })
    }

    /// The list after GROUP BY: `a, b`, `a, b WITH ROLLUP`, `ROLLUP (a, b)`. Also returns whether
    /// there is a ROLLUP.
    fn group_list(&mut self) -> Result<(Vec<Expr>, bool)> {
        if self.at(Kw::ROLLUP) && self.peek().kind == TokenKind::LParen {
            self.advance();
            return Ok((self.paren_list(Self::expr)?, true));
        }
        let cube = self.at(Kw::CUBE) && self.peek().kind == TokenKind::LParen;
        if cube || (self.at(Kw::GROUPING) && self.peek().kw == Kw::SETS) {
            return Err(SqlError::not_supported("CUBE and GROUPING SETS"));
        }
        let list = self.comma_list(Self::expr)?;
        let rolled_up = self.at(Kw::WITH) && self.peek().kw == Kw::ROLLUP;
        if rolled_up {
            self.advance();
            self.advance();
        }
        Ok((list, rolled_up))
    }

    fn select_options(&mut self) -> Result<(bool, SelectOptions)> {
        let (mut distinct, mut all) = (false, false);
        let mut options = SelectOptions::default();
        loop {
            match self.kw() {
                Kw::ALL => all = true,
                Kw::DISTINCT | Kw::DISTINCTROW => distinct = true,
                Kw::STRAIGHT_JOIN => options.straight_join = true,
                Kw::SQL_CALC_FOUND_ROWS => {
                    options.sql_calc_found_rows = true;
                    self.deprecated.push(super::Deprecated::CalcFoundRows);
                }
                Kw::HIGH_PRIORITY => options.high_priority = true,
                Kw::SQL_SMALL_RESULT => options.sql_small_result = true,
                Kw::SQL_BIG_RESULT => options.sql_big_result = true,
                Kw::SQL_BUFFER_RESULT => options.sql_buffer_result = true,
                Kw::SQL_NO_CACHE => self.deprecated.push(super::Deprecated::NoCache),
                _ => break,
            }
            if distinct && all {
                return Err(SqlError::new(
                    ErrorCode::ER_WRONG_USAGE,
                    &[&"ALL", &"DISTINCT"],
                ));
            }
            self.advance();
        }
        Ok((distinct, options))
    }

    fn select_items(&mut self) -> Result<Vec<SelectItem>> {
        let mut items = Vec::new();
        if self.accept(TokenKind::Star) {
            items.push(SelectItem::Star);
        } else {
            items.push(self.select_item()?);
        }
        while self.accept(TokenKind::Comma) {
            items.push(self.select_item()?);
        }
        Ok(items)
    }

    fn select_item(&mut self) -> Result<SelectItem> {
        if let Some(table) = self.table_star()? {
            return Ok(SelectItem::TableStar(table));
        }
        let start = self.token.start;
        let expr = self.expr()?;
        let text = self.span_from(start);
        let alias = self.select_alias()?;
        if alias.is_none() && !matches!(expr, Expr::Column(_)) {
            self.named_by_text = self.named_by_text.max(text.end);
        }
        Ok(SelectItem::Expr { expr, alias, text })
    }

    /// `t.*`, `s.t.*`
    fn table_star(&mut self) -> Result<Option<ObjectName>> {
        if !self.at_ident() || self.peek().kind != TokenKind::Dot {
            return Ok(None);
        }
        let start = self.save();
        let first = self.ident()?;
        self.advance();
        if self.accept(TokenKind::Star) {
            return Ok(Some(ObjectName {
                schema: None,
                name: first,
            }));
        }
        if matches!(self.kind(), TokenKind::Word | TokenKind::QuotedIdent)
            && self.peek().kind == TokenKind::Dot
        {
            let second = self.ident_after_dot()?;
            self.advance();
            if self.accept(TokenKind::Star) {
                return Ok(Some(ObjectName {
                    schema: Some(first),
                    name: second,
                }));
            }
        }
        self.restore(start);
        Ok(None)
    }

    /// `[AS] name`, `[AS] 'text'`
    pub(super) fn select_alias(&mut self) -> Result<Option<Ident>> {
        if !self.accept_kw(Kw::AS) && !self.at_ident() && !self.is(TokenKind::Str) {
            return Ok(None);
        }
        if self.is(TokenKind::Str) {
            return Ok(Some(Ident {
                value: self.ident_or_text()?,
                quoted: true,
            }));
        }
        Ok(Some(self.ident()?))
    }

    pub(super) fn order_by(&mut self) -> Result<Vec<OrderItem>> {
        if !self.accept_kws(&[Kw::ORDER, Kw::BY])? {
            return Ok(Vec::new());
        }
        self.keeping_literals(|p| {
            p.comma_list(|p| {
                let expr = p.expr()?;
                let descending = p.accept_kw(Kw::DESC);
                if !descending {
                    p.accept_kw(Kw::ASC);
                }
                Ok(OrderItem { expr, descending })
            })
        })
    }

    /// `LIMIT count`, `LIMIT offset, count`, `LIMIT count OFFSET offset`
    pub(super) fn limit(&mut self) -> Result<Option<Limit>> {
        if !self.accept_kw(Kw::LIMIT) {
            return Ok(None);
        }
        let first = self.limit_value()?;
        Ok(Some(if self.accept(TokenKind::Comma) {
            Limit {
                offset: Some(first),
                count: self.limit_value()?,
            }
        } else if self.accept_kw(Kw::OFFSET) {
            Limit {
                count: first,
                offset: Some(self.limit_value()?),
            }
        } else {
            Limit {
                offset: None,
                count: first,
            }
        }))
    }

    /// An integer or a marker.
    pub(super) fn limit_value(&mut self) -> Result<Expr> {
        match self.kind() {
            TokenKind::Int => self.simple(),
            TokenKind::Marker => self.marker(),
            _ if self.at_ident() => self.undeclared(),
            _ => self.unexpected(),
        }
    }

    /// `FOR UPDATE|SHARE [OF …] [NOWAIT|SKIP LOCKED] …`, `LOCK IN SHARE MODE`
    fn locking(&mut self) -> Result<Vec<Locking>> {
        let mut list = Vec::new();
        loop {
            if self.accept_kws(&[Kw::LOCK, Kw::IN, Kw::SHARE, Kw::MODE])? {
                list.push(Locking {
                    strength: LockStrength::Share,
                    of: Vec::new(),
                    wait: LockWait::Wait,
                });
                continue;
            }
            if !self.accept_kw(Kw::FOR) {
                return Ok(list);
            }
            let strength = if self.accept_kw(Kw::UPDATE) {
                LockStrength::Update
            } else {
                self.expect_kw(Kw::SHARE)?;
                LockStrength::Share
            };
            let of = if self.accept_kw(Kw::OF) {
                self.comma_list(Self::object_name)?
            } else {
                Vec::new()
            };
            let wait = if self.accept_kw(Kw::NOWAIT) {
                LockWait::NoWait
            } else if self.accept_kws(&[Kw::SKIP, Kw::LOCKED])? {
                LockWait::SkipLocked
            } else {
                LockWait::Wait
            };
            list.push(Locking { strength, of, wait });
        }
    }

    /// An unquoted name where only a stored procedure could have a variable: error 1327.
    fn undeclared<T>(&mut self) -> Result<T> {
        let name = self.ident()?;
        Err(SqlError::new(ErrorCode::ER_SP_UNDECLARED_VAR, &[&name]))
    }

    fn select_into(&mut self) -> Result<SelectInto> {
        self.expect_kw(Kw::INTO)?;
        if self.accept_kw(Kw::DUMPFILE) {
            return Ok(SelectInto::Dumpfile(self.string()?));
        }
        if self.accept_kw(Kw::OUTFILE) {
            return Ok(SelectInto::Outfile(Box::new(self.outfile()?)));
        }
        Ok(SelectInto::Variables(self.comma_list(|p| {
            if p.at_ident() {
                p.undeclared()
            } else {
                p.user_var()
            }
        })?))
    }
}

impl Query {
    /// A query that consists only of its body.
    pub fn of(body: QueryBody) -> Query {
        Query {
            with: None,
            body,
            order_by: Vec::new(),
            limit: None,
            locking: Vec::new(),
            into: None,
        }
    }
}
