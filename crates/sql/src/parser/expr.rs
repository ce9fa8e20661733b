//! Operators: a single loop over binding levels. For each operator, it checks which operands
//! MySQL's grammar permits on the left.
//!
//! # Levels, from loosest to tightest (nonterminals of sql_yacc.yy in parentheses)
//! OR, XOR, AND, NOT, IS TRUE (`expr`) · comparisons, IS NULL (`bool_pri`) · IN, BETWEEN, LIKE,
//! REGEXP (`predicate`) · `|`, `&`, shifts, `+ -`, `* / % DIV MOD`, `^` (`bit_expr`) · `||` as
//! concatenation, unary operators, COLLATE (`simple_expr`).

use super::{Deprecated, Parser, Result};
use crate::ast::{BinaryOp, Expr, InList, IsTest, Literal, Query, StringLiteral, UnaryOp};
use crate::digest::{KindSet, LiteralRole};
use crate::keywords::Kw;
use crate::lexer::{LexMode, TokenKind};
use crate::list::ListIter;
use crate::literal::Lit;
use nfold_types::error::{ErrorCode, SqlError};

/// Binding levels.
pub(super) mod level {
    pub const OR: u8 = 1;
    pub const XOR: u8 = 2;
    pub const AND: u8 = 3;
    pub const NOT: u8 = 4;
    pub const IS: u8 = 5;
    pub const COMPARISON: u8 = 6;
    pub const PREDICATE: u8 = 7;
    pub const BIT_OR: u8 = 8;
    pub const BIT_AND: u8 = 9;
    pub const SHIFT: u8 = 10;
    pub const ADD: u8 = 11;
    pub const MUL: u8 = 12;
    pub const BIT_XOR: u8 = 13;
    /// `||` as concatenation: the loosest `simple_expr`.
    pub const SIMPLE: u8 = 14;
    pub const UNARY: u8 = 15;
    pub const COLLATE: u8 = 16;
}

/// The contents of parentheses.
pub(super) enum Paren {
    Expr(Expr),
    Query(Box<Query>),
}

impl Parser<'_> {
    /// A complete expression.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.expr_at(level::OR)
    }

    pub(super) fn boxed(&mut self) -> Result<Box<Expr>> {
        Ok(Box::new(self.expr()?))
    }

    /// An expression whose operators all bind at `min` or tighter.
    pub(super) fn expr_at(&mut self, min: u8) -> Result<Expr> {
        let outer = std::mem::take(&mut self.height);
        let depth = self.depth + 1;
        self.depth = depth;
        self.check_depth()?;
        let expr = self.expr_inner(min)?;
        self.depth = depth - 1;
        self.height = self.height.max(outer);
        Ok(expr)
    }

    #[inline(never)]
    fn expr_inner(&mut self, min: u8) -> Result<Expr> {
        if self.at(Kw::NOT) && !self.mode.has(LexMode::HIGH_NOT_PRECEDENCE) {
            if min > level::NOT {
                return self.unexpected();
            }
            let mut nots = 0;
            while self.accept_kw(Kw::NOT) {
                nots += 1;
            }
            let mut expr = self.expr_at(level::NOT + 1)?;
            for _ in 0..nots {
                self.grow(self.height + 1)?;
                expr = Expr::Not(Box::new(expr));
            }
            return self.infix(expr, level::NOT, min);
        }
        let expr = self.simple()?;
        self.grow(self.height + 1)?;
        self.infix(expr, level::SIMPLE, min)
    }

    /// Continues after `left`, whose loosest operator has level `bound`, as long as operators of
    /// level `min` or tighter follow.
    #[inline(never)]
    pub(super) fn infix(&mut self, mut left: Expr, mut bound: u8, min: u8) -> Result<Expr> {
        let mut height = self.height;
        loop {
            self.height = 0;
            let (next, level) = match self.kind() {
                TokenKind::Word => self.infix_word(left, bound, min)?,
                _ => self.infix_symbol(left, bound, min)?,
            };
            left = next;
            let Some(level) = level else {
                self.height = height;
                return Ok(left);
            };
            self.count_node()?;
            bound = level;
            let flat = matches!(level, level::AND | level::OR);
            height = self.grow(if flat {
                height.max(self.height + 1)
            } else {
                height.max(self.height) + 1
            })?;
        }
    }

    /// Handles an operator that is a word. `None` if no operator is permitted here.
    #[inline(never)]
    fn infix_word(&mut self, left: Expr, bound: u8, min: u8) -> Result<(Expr, Option<u8>)> {
        let may = |level: u8, left_at_least: u8| level >= min && bound >= left_at_least;
        let (expr, level) = match self.kw() {
            Kw::OR if may(level::OR, 0) => (self.or(left)?, level::OR),
            Kw::XOR if may(level::XOR, level::XOR) => {
                self.advance();
                (
                    Expr::Xor(Box::new(left), Box::new(self.expr_at(level::XOR + 1)?)),
                    level::XOR,
                )
            }
            Kw::AND if may(level::AND, level::AND) => (self.and(left)?, level::AND),
            Kw::IS if may(level::IS, level::COMPARISON) => return self.is_test(left),
            Kw::NOT | Kw::IN | Kw::BETWEEN | Kw::LIKE | Kw::REGEXP | Kw::RLIKE
                if may(level::PREDICATE, level::BIT_OR) =>
            {
                (self.predicate(left)?, level::PREDICATE)
            }
            Kw::SOUNDS if may(level::PREDICATE, level::BIT_OR) => {
                self.advance();
                self.expect_kw(Kw::LIKE)?;
                (
                    Expr::SoundsLike(Box::new(left), Box::new(self.expr_at(level::BIT_OR)?)),
                    level::PREDICATE,
                )
            }
            Kw::MEMBER if may(level::PREDICATE, level::BIT_OR) => {
                (self.member_of(left)?, level::PREDICATE)
            }
            Kw::DIV if may(level::MUL, level::MUL) => {
                (self.binary(left, BinaryOp::IntDiv, level::MUL)?, level::MUL)
            }
            Kw::MOD if may(level::MUL, level::MUL) => {
                (self.binary(left, BinaryOp::Mod, level::MUL)?, level::MUL)
            }
            Kw::COLLATE if may(level::COLLATE, level::SIMPLE) => {
                self.advance();
                let collation = self.collation_operand()?;
                (
                    Expr::Collate {
                        expr: Box::new(left),
                        collation,
                    },
                    bound,
                )
            }
            _ => return Ok((left, None)),
        };
        Ok((expr, Some(level)))
    }

    #[inline(never)]
    fn infix_symbol(&mut self, left: Expr, bound: u8, min: u8) -> Result<(Expr, Option<u8>)> {
        use TokenKind as T;
        let (op, level) = match self.kind() {
            T::Eq => (BinaryOp::Eq, level::COMPARISON),
            T::NullSafeEq => (BinaryOp::NullSafeEq, level::COMPARISON),
            T::Ne => (BinaryOp::Ne, level::COMPARISON),
            T::Lt => (BinaryOp::Lt, level::COMPARISON),
            T::Le => (BinaryOp::Le, level::COMPARISON),
            T::Gt => (BinaryOp::Gt, level::COMPARISON),
            T::Ge => (BinaryOp::Ge, level::COMPARISON),
            T::Pipe => (BinaryOp::BitOr, level::BIT_OR),
            T::Amp => (BinaryOp::BitAnd, level::BIT_AND),
            T::ShiftLeft => (BinaryOp::ShiftLeft, level::SHIFT),
            T::ShiftRight => (BinaryOp::ShiftRight, level::SHIFT),
            T::Plus => (BinaryOp::Add, level::ADD),
            T::Minus => (BinaryOp::Sub, level::ADD),
            T::Star => (BinaryOp::Mul, level::MUL),
            T::Slash => (BinaryOp::Div, level::MUL),
            T::Percent => (BinaryOp::Mod, level::MUL),
            T::Caret => (BinaryOp::BitXor, level::BIT_XOR),
            T::PipePipe if self.mode.has(LexMode::PIPES_AS_CONCAT) => {
                (BinaryOp::Concat, level::SIMPLE)
            }
            T::PipePipe if min <= level::OR => {
                self.deprecated.push(Deprecated::Bars);
                return Ok((self.or(left)?, Some(level::OR)));
            }
            T::AmpAmp if min <= level::AND && bound >= level::AND => {
                self.deprecated.push(Deprecated::Ampersands);
                return Ok((self.and(left)?, Some(level::AND)));
            }
            _ => return Ok((left, None)),
        };
        if level < min || bound < level {
            return Ok((left, None));
        }
        let expr = match level {
            level::COMPARISON => self.comparison(left, op)?,
            level::ADD => return self.additive(left, op),
            _ => self.binary(left, op, level)?,
        };
        Ok((expr, Some(level)))
    }

    #[inline(never)]
    fn binary(&mut self, left: Expr, op: BinaryOp, level: u8) -> Result<Expr> {
        self.advance();
        let right = self.expr_at(level + 1)?;
        Ok(Expr::Binary {
            op,
            left: Box::new(left),
            right: Box::new(right),
        })
    }

    #[inline(never)]
    fn or(&mut self, left: Expr) -> Result<Expr> {
        self.advance();
        let right = self.expr_at(level::OR + 1)?;
        Ok(match left {
            Expr::Or(mut members) => {
                members.push(right);
                Expr::Or(members)
            }
            left => Expr::Or(vec![left, right]),
        })
    }

    #[inline(never)]
    fn and(&mut self, left: Expr) -> Result<Expr> {
        self.advance();
        let right = self.expr_at(level::AND + 1)?;
        Ok(match left {
            Expr::And(mut members) => {
                members.push(right);
                Expr::And(members)
            }
            left => Expr::And(vec![left, right]),
        })
    }

    /// `IS [NOT] NULL` is a `bool_pri`, so more operators may follow. `IS [NOT] TRUE` is not.
    #[inline(never)]
    fn is_test(&mut self, left: Expr) -> Result<(Expr, Option<u8>)> {
        self.advance();
        let negated = self.accept_kw(Kw::NOT);
        let test = match self.kw() {
            Kw::NULL => IsTest::Null,
            Kw::TRUE => IsTest::True,
            Kw::FALSE => IsTest::False,
            Kw::UNKNOWN => IsTest::Unknown,
            _ => return self.unexpected(),
        };
        let level = if test == IsTest::Null {
            level::COMPARISON
        } else {
            level::IS
        };
        self.advance();
        Ok((
            Expr::Is {
                expr: Box::new(left),
                test,
                negated,
            },
            Some(level),
        ))
    }

    /// `= expr`, `= ALL (query)`
    #[inline(never)]
    fn comparison(&mut self, left: Expr, op: BinaryOp) -> Result<Expr> {
        if op == BinaryOp::NullSafeEq && self.peek().kw == Kw::ALL {
            return self.unexpected();
        }
        self.advance();
        let all = match self.kw() {
            Kw::ALL => true,
            Kw::ANY | Kw::SOME if self.peek().kind == TokenKind::LParen => false,
            _ => {
                let right = self.expr_at(level::PREDICATE)?;
                return Ok(Expr::Binary {
                    op,
                    left: Box::new(left),
                    right: Box::new(right),
                });
            }
        };
        if op == BinaryOp::NullSafeEq {
            return self.unexpected();
        }
        self.advance();
        let query = self.subquery()?;
        Ok(Expr::Quantified {
            op,
            expr: Box::new(left),
            all,
            query,
        })
    }

    /// `+ expr`, `+ INTERVAL amount unit`. The latter ends with the unit, so any operator on bits
    /// or numbers may follow.
    #[inline(never)]
    fn additive(&mut self, left: Expr, op: BinaryOp) -> Result<(Expr, Option<u8>)> {
        self.advance();
        if self.at(Kw::INTERVAL) {
            let start = self.save();
            self.advance();
            // `INTERVAL (1) DAY`, or the function `INTERVAL(1, 2)`.
            let amount = self.expr()?;
            let function =
                matches!(&amount, Expr::Row(_)) || self.interval_unit_at_hand().is_none();
            if !function {
                let unit = self.interval_unit()?;
                let subtract = op == BinaryOp::Sub;
                let sum = Expr::IntervalArith {
                    expr: Box::new(left),
                    amount: Box::new(amount),
                    unit,
                    subtract,
                };
                return Ok((sum, Some(level::BIT_XOR)));
            }
            let found = self.save();
            self.restore(start);
            if self.peek().kind != TokenKind::LParen {
                self.restore(found);
                return self.unexpected();
            }
        }
        let right = self.expr_at(level::ADD + 1)?;
        let sum = Expr::Binary {
            op,
            left: Box::new(left),
            right: Box::new(right),
        };
        Ok((sum, Some(level::ADD)))
    }

    /// `MEMBER OF (array)`
    #[inline(never)]
    fn member_of(&mut self, left: Expr) -> Result<Expr> {
        self.advance();
        self.accept_kw(Kw::OF);
        self.expect(TokenKind::LParen)?;
        let array = self.expr_at(level::SIMPLE)?;
        self.expect(TokenKind::RParen)?;
        Ok(Expr::MemberOf(Box::new(left), Box::new(array)))
    }

    /// `[NOT] IN …`, `[NOT] BETWEEN …`, `[NOT] LIKE …`, `[NOT] REGEXP …`
    #[inline(never)]
    fn predicate(&mut self, left: Expr) -> Result<Expr> {
        let left = Box::new(left);
        let negated = if self.at(Kw::NOT) {
            let follows = self.peek().kw;
            if !matches!(
                follows,
                Kw::IN | Kw::BETWEEN | Kw::LIKE | Kw::REGEXP | Kw::RLIKE
            ) {
                // `a NOT NULL`: NOT is accepted, so the error is at the token after it.
                self.advance();
                return self.unexpected();
            }
            self.advance();
            true
        } else {
            false
        };
        let expr = match self.kw() {
            Kw::IN => self.in_list(left, negated)?,
            Kw::BETWEEN => {
                self.advance();
                let low = Box::new(self.expr_at(level::BIT_OR)?);
                self.expect_kw(Kw::AND)?;
                let high = Box::new(self.expr_at(level::PREDICATE)?);
                Expr::Between {
                    expr: left,
                    low,
                    high,
                    negated,
                }
            }
            Kw::LIKE => {
                self.advance();
                let pattern = Box::new(self.keeping_literals(|p| p.expr_at(level::SIMPLE))?);
                let escape = if self.accept_kw(Kw::ESCAPE) {
                    Some(Box::new(
                        self.keeping_literals(|p| p.expr_at(level::SIMPLE))?,
                    ))
                } else {
                    None
                };
                let escape = self.like_escape(escape)?;
                Expr::Like {
                    expr: left,
                    pattern,
                    escape,
                    negated,
                }
            }
            _ => {
                self.advance();
                Expr::Regexp {
                    expr: left,
                    pattern: Box::new(self.expr_at(level::BIT_OR)?),
                    negated,
                }
            }
        };
        Ok(expr)
    }

    #[inline(never)]
    fn in_list(&mut self, expr: Box<Expr>, negated: bool) -> Result<Expr> {
        self.advance();
        if self.is(TokenKind::List) {
            let list = self.folded_list()?;
            return Ok(Expr::InList {
                expr,
                list,
                negated,
            });
        }
        if !self.is(TokenKind::LParen) {
            return self.unexpected();
        }
        if self.query_follows_paren() {
            return Ok(match self.parenthesised(false)? {
                Paren::Query(query) => Expr::InSubquery {
                    expr,
                    query,
                    negated,
                },
                Paren::Expr(Expr::Row(members)) => Expr::InList {
                    expr,
                    list: InList::Exprs(members),
                    negated,
                },
                Paren::Expr(one) => Expr::InList {
                    expr,
                    list: InList::Exprs(vec![one]),
                    negated,
                },
            });
        }
        let members = self.paren_list(Self::expr)?;
        Ok(Expr::InList {
            expr,
            list: InList::Exprs(members),
            negated,
        })
    }

    /// A folded list: as one slot, or as expressions where literals must stay in the tree.
    #[inline(never)]
    fn folded_list(&mut self) -> Result<InList> {
        let token = self.advance();
        self.count_node()?;
        let (Some(n), Some(digested)) = (self.slot_at(token.start), self.digested) else {
            return self.unexpected();
        };
        let slot = digested.slots()[n as usize];
        if slot.kinds.contains(KindSet::NATIONAL) {
            self.deprecated.push(Deprecated::National);
        }
        if self.structural == 0 {
            self.roles[n as usize] = LiteralRole::Parameter;
            return Ok(InList::ListParam(n));
        }
        let mut literals = digested.list(n, self.text);
        let mut members = Vec::with_capacity(slot.count as usize);
        for _ in 0..slot.count {
            self.count_node()?;
            members.push(if slot.rows {
                Expr::Row(take_members(&mut literals, slot.width))
            } else {
                take_members(&mut literals, 1)
                    .pop()
                    .unwrap_or(Expr::Default(None))
            });
        }
        Ok(InList::Exprs(members))
    }

    /// Whether a query begins after one or more opening parentheses.
    pub(super) fn query_follows_paren(&self) -> bool {
        let mut lexer = self.lexer.clone();
        let mut token = self.token;
        while token.kind == TokenKind::LParen {
            token = lexer.next_token();
        }
        match token.kw {
            Kw::SELECT | Kw::WITH | Kw::TABLE => true,
            Kw::VALUES => lexer.next_token().kw == Kw::ROW,
            _ => false,
        }
    }

    /// `( … )`: an expression, a row, or a query. Nested parentheses cause no recursion.
    #[inline(never)]
    pub(super) fn parenthesised(&mut self, operand: bool) -> Result<Paren> {
        let query_inside = self.query_follows_paren();
        let mut open = 0;
        while self.accept(TokenKind::LParen) {
            open += 1;
        }
        let mut inner = if query_inside {
            Paren::Query(Box::new(self.nested_query(operand)?))
        } else {
            Paren::Expr(self.expr()?)
        };
        loop {
            if let Paren::Expr(first) = inner {
                inner = Paren::Expr(if self.is(TokenKind::Comma) {
                    self.row_rest(first)?
                } else {
                    first
                });
            }
            self.expect(TokenKind::RParen)?;
            open -= 1;
            if open == 0 {
                return Ok(inner);
            }
            inner = match inner {
                Paren::Query(query) if self.query_goes_on() || self.is(TokenKind::RParen) => {
                    Paren::Query(Box::new(self.query_after_paren(*query)?))
                }
                Paren::Query(query) => self.go_on(Expr::Subquery(query))?,
                Paren::Expr(expr) => self.go_on(expr)?,
            };
        }
    }

    /// Continues after an operand in parentheses.
    #[inline(never)]
    fn go_on(&mut self, expr: Expr) -> Result<Paren> {
        self.height = self.height.max(1);
        Ok(Paren::Expr(self.infix(expr, level::SIMPLE, level::OR)?))
    }

    #[inline(never)]
    fn row_rest(&mut self, first: Expr) -> Result<Expr> {
        let mut members = vec![first];
        while self.accept(TokenKind::Comma) {
            members.push(self.expr()?);
        }
        Ok(Expr::Row(members))
    }

    /// The escape character of LIKE. With NO_BACKSLASH_ESCAPES there is none unless one is written,
    /// and an empty one is an error.
    fn like_escape(&self, written: Option<Box<Expr>>) -> Result<Option<Box<Expr>>> {
        if !self.mode.has(LexMode::NO_BACKSLASH_ESCAPES) {
            return Ok(written);
        }
        let none = StringLiteral {
            bytes: Vec::new(),
            charset: None,
        };
        match written.as_deref() {
            None => Ok(Some(Box::new(Expr::Literal(Literal::String(none))))),
            Some(Expr::Literal(Literal::String(s))) if s.bytes.is_empty() => {
                Err(SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&"ESCAPE"]))
            }
            Some(_) => Ok(written),
        }
    }

    /// The operand of a unary operator.
    #[inline(never)]
    pub(super) fn unary(&mut self, op: UnaryOp) -> Result<Expr> {
        self.advance();
        let expr = Box::new(self.expr_at(level::UNARY)?);
        Ok(Expr::Unary { op, expr })
    }
}

/// The next `n` literals as expressions.
fn take_members(literals: &mut ListIter<'_>, n: u32) -> Vec<Expr> {
    literals.take(n as usize).map(|lit| expr_of(&lit)).collect()
}

/// Converts a literal of a list to an expression. Its sign becomes an operator again.
pub(super) fn expr_of(lit: &Lit<'_>) -> Expr {
    let negative = matches!(
        lit,
        Lit::Int { negative: true, .. }
            | Lit::Decimal { negative: true, .. }
            | Lit::Float { negative: true, .. }
    );
    let expr = Expr::Literal(lit.to_literal());
    if negative {
        Expr::Unary {
            op: UnaryOp::Minus,
            expr: Box::new(expr),
        }
    } else {
        expr
    }
}
