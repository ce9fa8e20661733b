//! Splits WHERE into conditions that must all hold.

use nfold_sql::ast::{BinaryOp, IsTest};
use nfold_types::{Date, DateTime, TypeKind, Value};

use super::BlockBinder;
use crate::logical::expr::{CmpKind, ColumnAt, Expr, ExprKind, ExprType};
use crate::logical::query::Source;

impl BlockBinder<'_> {
    /// Marks the reads of user variables that the block assigns: such a variable is no constant.
    pub(super) fn mark_assigned_vars<'e>(&self, exprs: impl Iterator<Item = &'e mut Expr>) {
        if !self.assigned_vars.is_empty() {
            exprs.for_each(|e| self.mark_assigned_var(e));
        }
    }

    fn mark_assigned_var(&self, e: &mut Expr) {
        if let ExprKind::UserVar(name) = &mut e.kind
            && self.assigned_vars.iter().any(|(v, _)| **v == **name)
        {
            e.kind = ExprKind::VaryingUserVar(std::mem::take(name));
        }
        e.each_child_mut(&mut |e| self.mark_assigned_var(e));
    }

    /// Splits the condition of a WHERE at AND, NOT of OR, and NOT of NOT. A condition `date IS
    /// NULL` on a NOT NULL column then finds the zero date, as MySQL does for ODBC (manual,
    /// "Comparison Functions and Operators": IS NULL).
    pub(super) fn conditions(&self, e: Expr, out: &mut Vec<Expr>) {
        self.part(e, false, out);
    }

    /// Adds the conjuncts of `e`, or of `NOT e` if `negated`.
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

    /// Rewrites `date IS NULL` on a NOT NULL column as `date = 0`. If an outer join may make the
    /// column NULL, the result is `date = 0 OR date IS NULL`. Other conditions are returned
    /// unchanged.
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

    /// The operand of `IS NULL` or `ISNULL()`.
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

    /// If `e` is a NOT NULL column: whether an outer join may make it NULL. `None` for other
    /// expressions, which include columns of a derived table that MySQL merges into the query.
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
        let slot = block.tables.get(usize::from(table))?;
        let merged = matches!(&slot.source, Source::Derived(q) if q.is_merged());
        let own = !column.nullable && !merged;
        own.then_some(slot.nullable)
    }
}
