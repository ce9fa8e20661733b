//! Equivalence classes of columns, from the equalities of WHERE and of inner joins: `a.x = b.x AND
//! b.x = c.x` makes a class of three members. A table is joined by an equality of its member with
//! any member placed before. A class of two members is a single condition, and stays as written.
//!
//! # Invariants
//! E1. Equality is transitive in a class: all comparisons are of one kind, and all columns of one
//!     class of types (strings: of one collation).

use nfold_sql::ast::BinaryOp;

use crate::logical::expr::{Class, CmpKind, ColumnAt, Expr, ExprKind, ExprType};
use crate::physical::Block;

/// An equivalence class: columns that are equal in each joined row.
#[derive(Debug, Clone)]
struct EqualColumns {
    kind: CmpKind,
    members: Vec<Expr>,
    /// The result type of the comparison.
    ty: ExprType,
}

/// The classes of a block that have at least three members.
#[derive(Debug, Clone, Default)]
pub(super) struct Equalities(Vec<EqualColumns>);

impl Equalities {
    /// Removes the equalities of classes with at least three members from `conditions`.
    pub fn take(block: &Block, conditions: &mut Vec<Expr>) -> Equalities {
        let mut classes: Vec<EqualColumns> = Vec::new();
        for (kind, sides, ty) in conditions.iter().filter_map(|c| sides_of(block, c)) {
            join(&mut classes, kind, sides, ty);
        }
        classes.retain(|class| class.members.len() > 2);
        if classes.is_empty() {
            return Equalities::default();
        }
        let in_class = |e: &Expr| {
            let Some((kind, sides, _)) = sides_of(block, e) else {
                return false;
            };
            let has = |c: &EqualColumns| c.kind == kind && c.members.contains(&sides[0]);
            classes.iter().any(has)
        };
        conditions.retain(|e| !in_class(e));
        Equalities(classes)
    }

    /// The conditions that join slot `t` to the slots in `placed`: for each class an equality with
    /// one other slot, and the equalities between members of slot `t`.
    pub fn conditions(&self, t: usize, placed: u64) -> Vec<Expr> {
        let mut out = Vec::new();
        for class in &self.0 {
            let mut own = class.of_slot(t);
            let Some(first) = own.next() else {
                continue;
            };
            let other = class.members.iter().find(|m| placed >> slot(m) & 1 == 1);
            out.extend(other.map(|other| class.equal(first, other)));
            out.extend(own.map(|more| class.equal(more, first)));
        }
        out
    }

    /// For each class with a member in slot `t`: this member, and the members in other slots.
    pub fn links(&self, t: usize) -> impl Iterator<Item = (ColumnAt, Vec<ColumnAt>)> {
        self.0.iter().filter_map(move |class| {
            let own = class.of_slot(t).next()?.as_column()?;
            let others = class.members.iter().filter_map(Expr::as_column);
            let others = others.filter(|at| usize::from(at.table) != t);
            Some((own, others.collect()))
        })
    }
}

impl EqualColumns {
    fn of_slot(&self, t: usize) -> impl Iterator<Item = &Expr> {
        self.members.iter().filter(move |m| slot(m) == t)
    }

    fn equal(&self, a: &Expr, b: &Expr) -> Expr {
        Expr {
            kind: ExprKind::Compare {
                op: BinaryOp::Eq,
                kind: self.kind,
                sides: Box::new([a.clone(), b.clone()]),
            },
            ty: self.ty.clone(),
        }
    }
}

fn slot(member: &Expr) -> usize {
    member
        .as_column()
        .map_or(usize::MAX, |at| usize::from(at.table))
        .min(63)
}

/// The comparison, the sides and the type of an equality that may belong to a class.
fn sides_of<'e>(block: &Block, e: &'e Expr) -> Option<(CmpKind, &'e [Expr; 2], &'e ExprType)> {
    let ExprKind::Compare {
        op: BinaryOp::Eq,
        kind,
        sides,
    } = &e.kind
    else {
        return None;
    };
    let fits = |side: &Expr| {
        let column = side.as_column().filter(|at| at.table < 63);
        column.is_some_and(|at| !block.tables[usize::from(at.table)].nullable)
            && match kind {
                CmpKind::Int => side.ty.class() == Class::Int,
                CmpKind::Decimal => matches!(side.ty.class(), Class::Int | Class::Decimal),
                CmpKind::String(collation) => {
                    side.ty.class() == Class::String && side.ty.collation() == *collation
                }
                CmpKind::DateTime => side.ty.class() == sides[0].ty.class(),
                CmpKind::Double | CmpKind::Time | CmpKind::Json => false,
            }
    };
    let temporal = |side: &Expr| side.ty.class().is_temporal();
    let alike = *kind != CmpKind::DateTime || sides.iter().all(temporal);
    (alike && sides.iter().all(fits)).then_some((*kind, sides, &e.ty))
}

/// Adds an equality to the classes.
fn join(classes: &mut Vec<EqualColumns>, kind: CmpKind, sides: &[Expr; 2], ty: &ExprType) {
    let place = |side: &Expr| {
        let has = |c: &EqualColumns| c.kind == kind && c.members.contains(side);
        classes.iter().position(has)
    };
    match (place(&sides[0]), place(&sides[1])) {
        (Some(a), Some(b)) if a == b => {}
        (Some(a), Some(b)) => {
            let other = classes.remove(a.max(b));
            classes[a.min(b)].members.extend(other.members);
        }
        (Some(at), None) => classes[at].members.push(sides[1].clone()),
        (None, Some(at)) => classes[at].members.push(sides[0].clone()),
        (None, None) => classes.push(EqualColumns {
            kind,
            members: sides.to_vec(),
            ty: ty.clone(),
        }),
    }
}
