//! The conditions that WHERE is made of, each of which must hold.

use nfold_sql::ast::{BinaryOp, IsTest};
use nfold_types::{Date, DateTime, TypeKind, Value};

use super::BlockBinder;
use crate::logical::expr::{CmpKind, ColumnAt, Expr, ExprKind, ExprType};

impl BlockBinder<'_> {
    /// Takes the condition of a WHERE apart: AND, NOT of OR, and NOT of NOT. One that stands alone
    /// and says that a date which cannot be NULL is NULL finds the zero date (manual, "Comparison
    /// Functions and Operators": IS NULL, for the sake of ODBC).
    pub(super) fn conditions(&self, e: Expr, out: &mut Vec<Expr>) {
        self.part(e, false, out);
    }

    /// The parts of `e`, or of `NOT e`.
    fn part(&self, e: Expr, negated: bool, out: &mut Vec<Expr>) {
        match (e.kind, negated) {
            (ExprKind::And(list), false) | (ExprKind::Or(list), true) => {
                list.into_iter().for_each(|e| self.part(e, negated, out));
            }
            (ExprKind::Not(inner), _) => self.part(*inner, !negated, out),
            (
                ExprKind::Is {
                    expr,
                    test,
                    negated: own,
                },
                _,
            ) => {
                let e = Expr {
                    kind: ExprKind::Is {
                        expr,
                        test,
                        negated: own != negated,
                    },
                    ty: e.ty,
                };
                out.push(self.zero_date(e));
            }
            (kind, false) => out.push(self.zero_date(Expr { kind, ty: e.ty })),
            (kind, true) => {
                let ty = e.ty.clone();
                let inner = Box::new(Expr { kind, ty: e.ty });
                out.push(Expr {
                    kind: ExprKind::Not(inner),
                    ty,
                });
            }
        }
    }

    /// `date IS NULL` as `date = 0` where the column is NOT NULL, and with OR where an outer join
    /// makes it NULL; anything else as it is.
    fn zero_date(&self, e: Expr) -> Expr {
        let Some(tested) = self.null_test(&e) else {
            return e;
        };
        let (zero, nullable) = match &tested.ty.col.kind {
            TypeKind::Date => (Value::Date(Date::ZERO), self.not_null(tested)),
            TypeKind::DateTime(fsp) => {
                let zero = DateTime::ZERO.with_fsp(*fsp);
                (Value::DateTime(zero), self.not_null(tested))
            }
            _ => return e,
        };
        let Some(nullable) = nullable else {
            return e;
        };
        let zero = Expr::constant(zero, ExprType::new(tested.ty.col.clone(), false));
        let found = Expr {
            kind: ExprKind::Compare {
                op: BinaryOp::Eq,
                kind: CmpKind::DateTime,
                sides: Box::new([tested.clone(), zero]),
            },
            ty: ExprType::boolean(nullable),
        };
        match nullable {
            false => found,
            true => Expr {
                kind: ExprKind::Or(vec![found, e]),
                ty: ExprType::boolean(true),
            },
        }
    }

    /// What is tested by `IS NULL` or `ISNULL()`.
    fn null_test<'e>(&self, e: &'e Expr) -> Option<&'e Expr> {
        match &e.kind {
            ExprKind::Is {
                expr,
                test: IsTest::Null | IsTest::Unknown,
                negated: false,
            } => Some(expr),
            ExprKind::Call { func, args } => {
                let (isnull, _) = self.cx.funcs.find("isnull")?;
                args.first().filter(|_| *func == isnull)
            }
            _ => None,
        }
    }

    /// Whether an outer join makes the column NULL that `e` is; `None` where it is none, or may be
    /// NULL by itself. In a derived table that MySQL merges into the query it is no column.
    fn not_null(&self, e: &Expr) -> Option<bool> {
        let (block, at) = match e.kind {
            ExprKind::Column(at) => (self, at),
            ExprKind::Outer { level, at } => {
                let outward = (0..level).try_fold(self, |b, _| b.outer)?;
                (outward, at)
            }
            _ => return None,
        };
        let ColumnAt { table, column } = at;
        let slot = block.scope.get(usize::from(table))?;
        let column = slot.columns.get(usize::from(column))?;
        let own = !column.nullable && column.coercibility.is_none();
        let slot = block.tables.get(usize::from(table))?;
        own.then_some(slot.nullable)
    }
}
