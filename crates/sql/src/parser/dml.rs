//! INSERT, REPLACE, UPDATE, DELETE.

use super::{Deprecated, Parser, Result};
use crate::ast::*;
use crate::digest::{Digested, KindSet, LiteralRole};
use crate::keywords::Kw;
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn insert(&mut self) -> Result<Statement> {
        self.hint = None;
        let replace = self.advance().kw == Kw::REPLACE;
        self.time_limit_hint();
        if matches!(self.kw(), Kw::LOW_PRIORITY | Kw::DELAYED)
            || (self.at(Kw::HIGH_PRIORITY) && !replace)
        {
            self.advance();
        }
        let ignore = !replace && self.accept_kw(Kw::IGNORE);
        self.accept_kw(Kw::INTO);
        let table = self.object_name()?;
        let partitions = self.partitions()?;
        let mut columns = None;
        let source = if self.accept_kw(Kw::SET) {
            InsertSource::Set(self.assignments()?)
        } else {
            if self.is(TokenKind::LParen) && !self.query_follows_paren() {
                columns = Some(self.column_names()?);
            }
            self.insert_source()?
        };
        let row_alias = if replace {
            None
        } else {
            self.row_alias(&source)?
        };
        let mut on_duplicate = Vec::new();
        if !replace && self.accept_kws(&[Kw::ON, Kw::DUPLICATE, Kw::KEY, Kw::UPDATE])? {
            on_duplicate = self.assignments()?;
        }
        let insert = Insert {
            replace,
            ignore,
            table,
            partitions,
            columns,
            source,
            row_alias,
            on_duplicate,
        };
        Ok(Statement::Insert(Box::new(insert)))
    }

    /// `(a, b, …)`, also `()`
    fn column_names(&mut self) -> Result<Vec<ColumnRef>> {
        self.expect(TokenKind::LParen)?;
        let columns = if self.is(TokenKind::RParen) {
            Vec::new()
        } else {
            self.comma_list(Self::column_ref)?
        };
        self.expect(TokenKind::RParen)?;
        Ok(columns)
    }

    fn insert_source(&mut self) -> Result<InsertSource> {
        let values = self.at(Kw::VALUE) || (self.at(Kw::VALUES) && self.peek().kw != Kw::ROW);
        if !values {
            let query = self.query_statement()?;
            // Only an INSERT may have a row without values, which is one of defaults.
            return Ok(match query.body {
                QueryBody::Values(rows) if rows.iter().all(Vec::is_empty) => {
                    InsertSource::Values(rows)
                }
                _ => InsertSource::Query(Box::new(query)),
            });
        }
        self.advance();
        if self.is(TokenKind::List) {
            let token = self.advance();
            self.count_node()?;
            let Some(n) = self.slot_at(token.start) else {
                return self.unexpected();
            };
            self.roles[n as usize] = LiteralRole::Parameter;
            let national = |d: &Digested| d.slots()[n as usize].kinds.contains(KindSet::NATIONAL);
            if self.digested.is_some_and(national) {
                self.deprecated.push(Deprecated::National);
            }
            return Ok(InsertSource::RowsParam(n));
        }
        Ok(InsertSource::Values(self.comma_list(Self::row_values)?))
    }

    /// `(value, …)`, also `()`
    pub(super) fn row_values(&mut self) -> Result<Vec<Expr>> {
        self.expect(TokenKind::LParen)?;
        let row = if self.is(TokenKind::RParen) {
            Vec::new()
        } else {
            self.comma_list(Self::value)?
        };
        self.expect(TokenKind::RParen)?;
        Ok(row)
    }

    /// `AS name [(columns)]` after VALUES or SET.
    fn row_alias(&mut self, source: &InsertSource) -> Result<Option<RowAlias>> {
        if matches!(source, InsertSource::Query(_)) || !self.accept_kw(Kw::AS) {
            return Ok(None);
        }
        let name = self.ident()?;
        let columns = if self.is(TokenKind::LParen) {
            self.paren_list(Self::ident)?
        } else {
            Vec::new()
        };
        Ok(Some(RowAlias { name, columns }))
    }

    /// An expression or DEFAULT.
    pub(super) fn value(&mut self) -> Result<Expr> {
        if self.at(Kw::DEFAULT) && self.peek().kind != TokenKind::LParen {
            self.advance();
            return Ok(Expr::Default(None));
        }
        self.expr()
    }

    /// `column = value, …`
    pub(super) fn assignments(&mut self) -> Result<Vec<Assignment>> {
        self.comma_list(|p| {
            let column = p.column_ref()?;
            if !p.accept(TokenKind::Assign) {
                p.expect(TokenKind::Eq)?;
            }
            Ok(Assignment {
                column,
                value: p.value()?,
            })
        })
    }

    pub(super) fn update(&mut self, with: Option<With>) -> Result<Statement> {
        self.hint = None;
        self.advance();
        self.time_limit_hint();
        self.accept_kw(Kw::LOW_PRIORITY);
        let ignore = self.accept_kw(Kw::IGNORE);
        let tables = self.table_refs()?;
        self.expect_kw(Kw::SET)?;
        let assignments = self.assignments()?;
        let (selection, order_by, limit) = self.row_choice()?;
        Ok(Statement::Update(Box::new(Update {
            with,
            ignore,
            tables,
            assignments,
            selection,
            order_by,
            limit,
        })))
    }

    /// `[WHERE …] [ORDER BY …] [LIMIT n]`
    fn row_choice(&mut self) -> Result<(Option<Expr>, Vec<OrderItem>, Option<Expr>)> {
        let selection = if self.accept_kw(Kw::WHERE) {
            Some(self.expr()?)
        } else {
            None
        };
        let order_by = self.order_by()?;
        let limit = if self.accept_kw(Kw::LIMIT) {
            Some(self.limit_value()?)
        } else {
            None
        };
        Ok((selection, order_by, limit))
    }

    pub(super) fn delete(&mut self, with: Option<With>) -> Result<Statement> {
        self.hint = None;
        self.advance();
        self.time_limit_hint();
        let (mut quick, mut ignore) = (false, false);
        loop {
            match self.kw() {
                Kw::LOW_PRIORITY => {}
                Kw::QUICK => quick = true,
                Kw::IGNORE => ignore = true,
                _ => break,
            }
            self.advance();
        }
        let mut delete = Delete {
            with,
            ignore,
            quick,
            targets: Vec::new(),
            from: Vec::new(),
            selection: None,
            order_by: Vec::new(),
            limit: None,
        };
        if !self.accept_kw(Kw::FROM) {
            // `DELETE a, b FROM …`
            delete.targets = self.comma_list(Self::delete_target)?;
            self.expect_kw(Kw::FROM)?;
            delete.from = self.table_refs()?;
        } else {
            let start = self.save();
            let first = self.delete_target()?;
            if self.is(TokenKind::Comma) || self.at(Kw::USING) {
                delete.targets.push(first);
                while self.accept(TokenKind::Comma) {
                    delete.targets.push(self.delete_target()?);
                }
                self.expect_kw(Kw::USING)?;
                delete.from = self.table_refs()?;
            } else {
                self.restore(start);
                delete.from.push(self.delete_table()?);
            }
        }
        if delete.targets.is_empty() {
            (delete.selection, delete.order_by, delete.limit) = self.row_choice()?;
        } else if self.accept_kw(Kw::WHERE) {
            delete.selection = Some(self.expr()?);
        }
        Ok(Statement::Delete(Box::new(delete)))
    }

    fn delete_table(&mut self) -> Result<TableRef> {
        let name = self.object_name()?;
        let alias = self.table_alias()?;
        let partitions = self.partitions()?;
        Ok(TableRef::Table(TableFactor {
            name,
            partitions,
            alias,
            hints: Vec::new(),
        }))
    }

    /// `t`, `t.*`, `s.t`, `s.t.*`
    fn delete_target(&mut self) -> Result<ObjectName> {
        let first = self.ident()?;
        if !self.accept(TokenKind::Dot) || self.accept(TokenKind::Star) {
            return Ok(ObjectName {
                schema: None,
                name: first,
            });
        }
        let name = self.ident_after_dot()?;
        if self.accept(TokenKind::Dot) {
            self.expect(TokenKind::Star)?;
        }
        Ok(ObjectName {
            schema: Some(first),
            name,
        })
    }
}
