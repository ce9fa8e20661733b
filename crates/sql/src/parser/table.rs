//! Table references: tables with aliases and index hints, joins, derived tables.

use super::{Parser, Result};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::TokenKind;
use nfold_types::error::{ErrorCode, SqlError};

/// The contents of parentheses in a FROM clause.
enum ParenthesizedFrom {
    Query(Query),
    Tables(TableRef),
}

/// A tree of joins, represented by its leftmost table and the joins on it in order.
struct JoinChain {
    leaf: TableRef,
    steps: Vec<(JoinKind, TableRef, JoinConstraint)>,
}

impl JoinChain {
    fn new(leaf: TableRef) -> JoinChain {
        JoinChain {
            leaf,
            steps: Vec::new(),
        }
    }

    fn tree(self) -> TableRef {
        self.steps
            .into_iter()
            .fold(self.leaf, |left, (kind, right, constraint)| {
                TableRef::Join(Box::new(Join {
                    left,
                    right,
                    kind,
                    constraint,
                }))
            })
    }
}

impl Parser<'_> {
    /// `a, b JOIN c …`
    pub(super) fn table_refs(&mut self) -> Result<Vec<TableRef>> {
        self.comma_list(Self::table_ref)
    }

    /// A member of the comma list: a table and the joins on it.
    pub(super) fn table_ref(&mut self) -> Result<TableRef> {
        self.deeper(1, |p| {
            let factor = p.table_factor()?;
            p.joins(factor)
        })
    }

    /// The joins that follow `factor`. A condition belongs to the nearest join without one (`a LEFT
    /// JOIN b JOIN c ON x ON y`). Inner joins without a condition are left-associative.
    fn joins(&mut self, factor: TableRef) -> Result<TableRef> {
        let mut open: Vec<(JoinChain, JoinKind)> = Vec::new();
        let mut current = JoinChain::new(factor);
        let mut count = 0;
        loop {
            if self.at_join_constraint() {
                let Some((mut left, kind)) = open.pop() else {
                    break;
                };
                let constraint = self.join_constraint()?;
                left.steps.push((kind, current.tree(), constraint));
                current = left;
                continue;
            }
            let Some((kind, natural)) = self.join_words()? else {
                break;
            };
            count += 1;
            self.grow(count)?;
            let right = self.table_factor()?;
            if natural {
                current.steps.push((kind, right, JoinConstraint::Natural));
            } else {
                open.push((current, kind));
                current = JoinChain::new(right);
            }
        }
        while let Some((mut left, kind)) = open.pop() {
            if matches!(kind, JoinKind::Left | JoinKind::Right) {
                return self.unexpected();
            }
            left.steps.push((kind, current.leaf, JoinConstraint::None));
            left.steps.append(&mut current.steps);
            current = left;
        }
        Ok(current.tree())
    }

    fn at_join_constraint(&self) -> bool {
        self.at(Kw::ON) || self.at(Kw::USING)
    }

    /// Accepts `[NATURAL] [INNER|CROSS|LEFT [OUTER]|RIGHT [OUTER]] JOIN` or `STRAIGHT_JOIN`.
    fn join_words(&mut self) -> Result<Option<(JoinKind, bool)>> {
        let natural = self.accept_kw(Kw::NATURAL);
        let kind = match self.kw() {
            Kw::JOIN => JoinKind::Inner,
            Kw::INNER => JoinKind::Inner,
            Kw::CROSS if !natural => JoinKind::Inner,
            Kw::STRAIGHT_JOIN if !natural => JoinKind::Straight,
            Kw::LEFT => JoinKind::Left,
            Kw::RIGHT => JoinKind::Right,
            _ if natural => return self.unexpected(),
            _ => return Ok(None),
        };
        let first = self.advance().kw;
        if matches!(kind, JoinKind::Left | JoinKind::Right) {
            self.accept_kw(Kw::OUTER);
        }
        if first != Kw::JOIN && first != Kw::STRAIGHT_JOIN {
            self.expect_kw(Kw::JOIN)?;
        }
        Ok(Some((kind, natural)))
    }

    /// At ON or USING.
    fn join_constraint(&mut self) -> Result<JoinConstraint> {
        if self.accept_kw(Kw::ON) {
            return Ok(JoinConstraint::On(self.expr()?));
        }
        self.advance();
        Ok(JoinConstraint::Using(self.paren_list(Self::ident)?))
    }

    fn table_factor(&mut self) -> Result<TableRef> {
        if self.accept_kw(Kw::LATERAL) {
            let query = self.subquery()?;
            return self.derived(*query, true);
        }
        if self.is(TokenKind::LParen) {
            return match self.table_parens()? {
                ParenthesizedFrom::Query(query) => self.derived(query, false),
                ParenthesizedFrom::Tables(tables) => Ok(tables),
            };
        }
        if self.at(Kw::JSON_TABLE) {
            return self.json_table();
        }
        if self.is(TokenKind::LBrace) {
            // `{OJ a LEFT JOIN b ON …}`
            self.advance();
            self.expect_kw(Kw::OJ)?;
            let tables = self.table_ref()?;
            self.expect(TokenKind::RBrace)?;
            return Ok(tables);
        }
        let name = self.object_name()?;
        self.grow_by_table(&name)?;
        let partitions = self.partitions()?;
        let alias = self.table_alias()?;
        let hints = self.index_hints()?;
        Ok(TableRef::Table(TableFactor {
            name,
            partitions,
            alias,
            hints,
        }))
    }

    /// `(query)`, or tables in parentheses.
    fn table_parens(&mut self) -> Result<ParenthesizedFrom> {
        self.deeper(1, Self::inside_table_parens)
    }

    fn inside_table_parens(&mut self) -> Result<ParenthesizedFrom> {
        self.expect(TokenKind::LParen)?;
        let inside = if self.is(TokenKind::LParen) {
            match self.table_parens()? {
                ParenthesizedFrom::Query(query)
                    if self.is(TokenKind::RParen) || self.query_goes_on() =>
                {
                    ParenthesizedFrom::Query(self.query_after_paren(query)?)
                }
                ParenthesizedFrom::Query(query) => {
                    ParenthesizedFrom::Tables(self.derived(query, false)?)
                }
                ParenthesizedFrom::Tables(tables) => ParenthesizedFrom::Tables(tables),
            }
        } else if matches!(self.kw(), Kw::SELECT | Kw::WITH | Kw::TABLE | Kw::VALUES) {
            ParenthesizedFrom::Query(self.nested_query(false)?)
        } else {
            ParenthesizedFrom::Tables(self.table_ref()?)
        };
        let inside = match inside {
            ParenthesizedFrom::Tables(first) => {
                ParenthesizedFrom::Tables(self.tables_in_parens(first)?)
            }
            query => query,
        };
        if matches!(inside, ParenthesizedFrom::Tables(TableRef::Derived { .. })) {
            // A derived table alone must not be in parentheses.
            return self.unexpected();
        }
        self.expect(TokenKind::RParen)?;
        Ok(inside)
    }

    /// The rest of `(a JOIN b, c)`, where a comma is an inner join without a condition.
    fn tables_in_parens(&mut self, first: TableRef) -> Result<TableRef> {
        let mut left = self.joins(first)?;
        while self.accept(TokenKind::Comma) {
            let right = self.table_ref()?;
            let join = Join {
                left,
                right,
                kind: JoinKind::Inner,
                constraint: JoinConstraint::None,
            };
            left = TableRef::Join(Box::new(join));
        }
        Ok(left)
    }

    /// The alias, which every derived table must have, and its column names.
    fn derived(&mut self, query: Query, lateral: bool) -> Result<TableRef> {
        let Some(alias) = self.table_alias()? else {
            return Err(SqlError::new(ErrorCode::ER_DERIVED_MUST_HAVE_ALIAS, &[]));
        };
        let columns = if self.is(TokenKind::LParen) {
            self.paren_list(Self::ident)?
        } else {
            Vec::new()
        };
        Ok(TableRef::Derived {
            lateral,
            query: Box::new(query),
            alias,
            columns,
        })
    }

    pub(super) fn partitions(&mut self) -> Result<Vec<Ident>> {
        if self.accept_kw(Kw::PARTITION) {
            self.paren_list(Self::ident)
        } else {
            Ok(Vec::new())
        }
    }

    /// `[AS] name`
    pub(super) fn table_alias(&mut self) -> Result<Option<Ident>> {
        if self.accept_kw(Kw::AS) || self.at_ident() {
            Ok(Some(self.ident()?))
        } else {
            Ok(None)
        }
    }

    /// `USE|IGNORE|FORCE INDEX|KEY [FOR JOIN|ORDER BY|GROUP BY] (names) …`
    fn index_hints(&mut self) -> Result<Vec<IndexHint>> {
        let mut hints = Vec::new();
        loop {
            let kind = match self.kw() {
                Kw::USE => IndexHintKind::Use,
                Kw::IGNORE => IndexHintKind::Ignore,
                Kw::FORCE => IndexHintKind::Force,
                _ => return Ok(hints),
            };
            self.advance();
            if !self.accept_kw(Kw::INDEX) {
                self.expect_kw(Kw::KEY)?;
            }
            let mut scope = IndexHintScope::All;
            if self.accept_kw(Kw::FOR) {
                scope = match self.kw() {
                    Kw::JOIN => IndexHintScope::Join,
                    Kw::ORDER => IndexHintScope::OrderBy,
                    Kw::GROUP => IndexHintScope::GroupBy,
                    _ => return self.unexpected(),
                };
                self.advance();
                if scope != IndexHintScope::Join {
                    self.expect_kw(Kw::BY)?;
                }
            }
            self.expect(TokenKind::LParen)?;
            let mut indexes = Vec::new();
            if !(kind == IndexHintKind::Use && self.is(TokenKind::RParen)) {
                indexes = self.comma_list(Self::index_name)?;
            }
            self.expect(TokenKind::RParen)?;
            hints.push(IndexHint {
                kind,
                scope,
                indexes,
            });
        }
    }

    /// A name, or PRIMARY.
    fn index_name(&mut self) -> Result<Ident> {
        if self.accept_kw(Kw::PRIMARY) {
            Ok(Ident::new("PRIMARY"))
        } else {
            self.ident()
        }
    }
}
