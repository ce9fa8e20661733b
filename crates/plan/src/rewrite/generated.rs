//! Replaces the expression of an indexed generated column by the column, in conditions, so that an
//! index over it finds the rows. Functional key parts are such columns.
//!
//! The column replaces the expression only if its type can store every value of the expression
//! unchanged.

use nfold_types::TypeKind::{
    self, BigInt, Date, DateTime, Int, MediumInt, SmallInt, Time, TinyInt, VarBinary, VarChar, Year,
};
use nfold_types::{ColumnType, SqlError};

use crate::logical::expr::{ColumnAt, Expr, ExprKind};
use crate::logical::query::{Block, Source};
use crate::logical::table_exprs::BindExprs;

/// Replaces expressions in the conditions of `block`. `exprs` binds the stored expressions of a
/// table.
pub(super) fn use_generated_columns(
    block: &mut Block,
    exprs: &BindExprs<'_>,
) -> Result<(), SqlError> {
    let mut found: Vec<(Expr, Expr)> = Vec::new();
    for (t, table) in block.tables.iter().enumerate() {
        let Source::Table(def) = &table.source else {
            continue;
        };
        if !def.indexes_generated() {
            continue;
        }
        let Some(exprs) = exprs(def)? else { continue };
        let indexed = |column: usize| {
            let mut indexes = def.indexes.iter().enumerate();
            indexes.any(|(n, i)| {
                !table.hints.ignore.contains(&n) && i.parts.iter().any(|p| p.column == column)
            })
        };
        for g in exprs.generated.iter().filter(|g| indexed(g.column)) {
            let column = &def.columns[g.column];
            if g.expr.as_column().is_some() || !holds(&column.ty, &g.expr) {
                continue;
            }
            let mut pattern = g.expr.clone();
            moved(&mut pattern, t as u16);
            let mut ty = g.expr.ty.clone();
            ty.col = column.ty.clone();
            ty.nullable = column.nullable || table.nullable;
            let at = ColumnAt {
                table: t as u16,
                column: g.column as u16,
            };
            let kind = ExprKind::Column(at);
            found.push((pattern, Expr { kind, ty }));
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let mut used: Vec<ColumnAt> = Vec::new();
    block.each_condition_mut(&mut |e| replace_compared(e, &found, &mut used));
    for at in used {
        let flags = &mut block.tables[usize::from(at.table)].used;
        if let Some(flag) = flags.get_mut(usize::from(at.column)) {
            *flag = true;
        }
    }
    Ok(())
}

/// Moves the columns of slot 0 to another slot.
fn moved(e: &mut Expr, slot: u16) {
    if let ExprKind::Column(at) = &mut e.kind {
        at.table = slot;
    }
    e.each_child_mut(&mut |e| moved(e, slot));
}

/// Replaces the operands of comparisons in a condition, and in the conditions below it.
fn replace_compared(e: &mut Expr, found: &[(Expr, Expr)], used: &mut Vec<ColumnAt>) {
    match &mut e.kind {
        ExprKind::And(list) | ExprKind::Or(list) => {
            list.iter_mut()
                .for_each(|e| replace_compared(e, found, used));
        }
        ExprKind::Not(e) => replace_compared(e, found, used),
        ExprKind::Compare { sides, .. } => sides.iter_mut().for_each(|e| replace(e, found, used)),
        ExprKind::Between { parts, .. } => replace(&mut parts[0], found, used),
        ExprKind::In { expr, .. } | ExprKind::Like { expr, .. } => replace(expr, found, used),
        ExprKind::InParam { left, .. } => left.iter_mut().for_each(|e| replace(e, found, used)),
        ExprKind::Is { expr, .. } => replace(expr, found, used),
        _ => {}
    }
}

fn replace(e: &mut Expr, found: &[(Expr, Expr)], used: &mut Vec<ColumnAt>) {
    let Some((_, column)) = found.iter().find(|(pattern, _)| is_same(pattern, e)) else {
        return;
    };
    used.extend(column.as_column());
    *e = column.clone();
}

/// Whether two expressions have the same value for each row. Constants are compared by value,
/// because a statement and a definition may give them different types.
fn is_same(a: &Expr, b: &Expr) -> bool {
    if let (ExprKind::Const(a), ExprKind::Const(b)) = (&a.kind, &b.kind) {
        return a == b;
    }
    if a.ty.col != b.ty.col {
        return false;
    }
    let (mut own, mut other) = (Vec::new(), Vec::new());
    a.each_child(&mut |e| own.push(e));
    b.each_child(&mut |e| other.push(e));
    own.len() == other.len()
        && is_same_node(a, b)
        && own.iter().zip(&other).all(|(a, b)| is_same(a, b))
}

/// Whether two nodes apply the same operation to their operands.
fn is_same_node(a: &Expr, b: &Expr) -> bool {
    use ExprKind::{
        Arith, Bit, BitNot, Call, Case, Cast, Collate, Column, Extract, IntervalArith, Neg,
        TimestampDiff, Trim,
    };
    match (&a.kind, &b.kind) {
        (Column(a), Column(b)) => a == b,
        (Call { func: a, .. }, Call { func: b, .. }) => a == b,
        (Arith(a, _), Arith(b, _)) => a == b,
        (Bit(a, _), Bit(b, _)) => a == b,
        (Neg(_), Neg(_)) | (BitNot(_), BitNot(_)) | (Collate(_), Collate(_)) => true,
        (Cast(_), Cast(_)) => true,
        (Extract { unit: a, .. }, Extract { unit: b, .. }) => a == b,
        (TimestampDiff { unit: a, .. }, TimestampDiff { unit: b, .. }) => a == b,
        (
            IntervalArith {
                unit: a,
                subtract: c,
                ..
            },
            IntervalArith {
                unit: b,
                subtract: d,
                ..
            },
        ) => a == b && c == d,
        (
            Trim {
                side: a, what: c, ..
            },
            Trim {
                side: b, what: d, ..
            },
        ) => a == b && c.is_some() == d.is_some(),
        (
            Case {
                whens: a,
                otherwise: c,
            },
            Case {
                whens: b,
                otherwise: d,
            },
        ) => a.len() == b.len() && c.is_some() == d.is_some(),
        _ => false,
    }
}

/// Whether a column of this type stores every value of an expression unchanged.
fn holds(column: &ColumnType, e: &Expr) -> bool {
    let ty = &e.ty.col;
    let rank = |kind: &TypeKind| match kind {
        TinyInt => Some(1),
        SmallInt | Year => Some(2),
        MediumInt => Some(3),
        Int => Some(4),
        BigInt => Some(8),
        _ => None,
    };
    if let (Some(own), Some(of)) = (rank(&column.kind), rank(&ty.kind)) {
        let unsigned = |ty: &ColumnType| ty.unsigned || ty.kind == Year;
        return match (unsigned(column), unsigned(ty)) {
            (false, true) => own > of,
            (true, false) => false,
            _ => own >= of,
        };
    }
    match (&column.kind, &ty.kind) {
        (VarChar(n), VarChar(m) | TypeKind::Char(m)) => n >= m && column.collation == ty.collation,
        (VarBinary(n), VarBinary(m)) => n >= m,
        (Date, Date) => true,
        (DateTime(n), DateTime(m)) | (Time(n), Time(m)) => n >= m,
        (
            TypeKind::Decimal {
                precision: p,
                scale: s,
            },
            TypeKind::Decimal {
                precision: q,
                scale: r,
            },
        ) => s == r && p >= q && column.unsigned == ty.unsigned,
        (TypeKind::Double, TypeKind::Double) => true,
        _ => false,
    }
}
