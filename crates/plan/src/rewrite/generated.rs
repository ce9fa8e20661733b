//! Replaces the expression of an indexed generated column by the column, in conditions, GROUP BY
//! and ORDER BY, so that an index over it finds the rows or provides their order. Functional key
//! parts are such columns.
//!
//! The column replaces the expression only if its type can store every value of the expression
//! unchanged.
//!
//! A literal of the statement is a parameter of its plan. If its value decides whether an
//! expression is that of a column, the plan is for this value alone ([`Literals`]).

use nfold_types::TypeKind::{
    self, BigInt, Date, DateTime, Int, MediumInt, SmallInt, Time, TinyInt, VarBinary, VarChar, Year,
};
use nfold_types::{ColumnType, SqlError, Value};

use crate::logical::expr::{ColumnAt, Expr, ExprKind};
use crate::logical::literals::Literals;
use crate::logical::query::{Block, Source};
use crate::logical::table_exprs::BindExprs;

/// Replaces expressions in the clauses of `block`. `exprs` binds the stored expressions of a table.
pub(super) fn use_generated_columns(
    block: &mut Block,
    literals: Option<&Literals<'_>>,
    exprs: &BindExprs<'_>,
) -> Result<(), SqlError> {
    let columns = indexed_columns(block, exprs)?;
    if columns.is_empty() {
        return Ok(());
    }
    let mut rule = Rule {
        columns,
        literals,
        used: Vec::new(),
    };
    block.each_condition_mut(&mut |e| rule.replace_compared(e));
    match &mut block.group {
        Some(group) => group.keys.iter_mut().for_each(|e| rule.replace_ordered(e)),
        None if block.windows.is_empty() && !block.distinct => {
            let keys = block.order.iter_mut();
            keys.for_each(|k| rule.replace_ordered(&mut k.expr));
        }
        None => {}
    }
    for at in &rule.used {
        let flags = &mut block.tables[usize::from(at.table)].used;
        if let Some(flag) = flags.get_mut(usize::from(at.column)) {
            *flag = true;
        }
    }
    if !rule.used.is_empty() {
        forget_unread(block, &rule.columns);
    }
    Ok(())
}

/// The indexed generated columns of the block's tables: the expression, and the column.
fn indexed_columns(block: &Block, exprs: &BindExprs<'_>) -> Result<Vec<(Expr, Expr)>, SqlError> {
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
            if def.array_of(g.column).is_some() {
                continue;
            }
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
    Ok(found)
}

/// Columns that only replaced expressions named are not read any more, so that an index may cover
/// the block.
pub(super) fn forget_unread(block: &mut Block, columns: &[(Expr, Expr)]) {
    if block.changed != 0 || block.subqueries.iter().any(|s| s.correlated) {
        return;
    }
    let mut named: Vec<ColumnAt> = Vec::new();
    for (pattern, _) in columns {
        pattern.any(&mut |e| {
            named.extend(e.as_column());
            false
        });
    }
    let mut read = |e: &mut Expr| {
        e.any(&mut |e| {
            if let Some(at) = e.as_column() {
                named.retain(|n| *n != at);
            }
            false
        });
    };
    block.each_condition_mut(&mut read);
    block.each_joined_expr_mut(&mut read);
    for at in named {
        let flags = &mut block.tables[usize::from(at.table)].used;
        if let Some(flag) = flags.get_mut(usize::from(at.column)) {
            *flag = false;
        }
    }
}

/// Moves the columns of slot 0 to another slot.
pub(super) fn moved(e: &mut Expr, slot: u16) {
    if let ExprKind::Column(at) = &mut e.kind {
        at.table = slot;
    }
    e.each_child_mut(&mut |e| moved(e, slot));
}

/// The rule at work on one block.
struct Rule<'r> {
    /// Expressions, and the columns that hold their values.
    columns: Vec<(Expr, Expr)>,
    literals: Option<&'r Literals<'r>>,
    /// Columns that have replaced an expression.
    used: Vec<ColumnAt>,
}

impl Rule<'_> {
    /// Replaces what is compared in a condition, and in those below it.
    fn replace_compared(&mut self, e: &mut Expr) {
        match &mut e.kind {
            ExprKind::And(list) | ExprKind::Or(list) => {
                list.iter_mut().for_each(|e| self.replace_compared(e));
            }
            ExprKind::Not(e) => self.replace_compared(e),
            ExprKind::Compare { sides, .. } => sides.iter_mut().for_each(|e| self.replace(e)),
            ExprKind::Between { parts, .. } => self.replace(&mut parts[0]),
            ExprKind::In { expr, .. } | ExprKind::Like { expr, .. } => self.replace(expr),
            ExprKind::InParam { left, .. } => left.iter_mut().for_each(|e| self.replace(e)),
            ExprKind::Is { expr, .. } => self.replace(expr),
            _ => {}
        }
    }

    /// Replaces a key of GROUP BY or ORDER BY.
    fn replace_ordered(&mut self, e: &mut Expr) {
        if e.as_column().is_none() {
            self.replace(e);
        }
    }

    fn replace(&mut self, e: &mut Expr) {
        let literals = self.literals;
        let mut columns = self.columns.iter();
        let Some((_, column)) = columns.find(|(pattern, _)| is_same(pattern, e, literals)) else {
            return;
        };
        self.used.extend(column.as_column());
        *e = column.clone();
    }
}

/// Whether `e` has the value of a stored expression for each row. Constants are compared by value:
/// a statement may type them otherwise than a definition does, and so what is computed from them.
pub(super) fn is_same(pattern: &Expr, e: &Expr, literals: Option<&Literals<'_>>) -> bool {
    match (&pattern.kind, &e.kind) {
        (ExprKind::Const(a), ExprKind::Const(b)) => return a == b,
        (ExprKind::Const(a), ExprKind::Param(n)) => {
            let is_text = matches!(a, Value::Bytes(_));
            let fits = !is_text || e.ty.col.charset().is_utf8();
            return fits && literals.is_some_and(|l| l.read(*n).as_ref() == Some(a));
        }
        _ => {}
    }
    let alike = match pattern.ty.col == e.ty.col {
        true => true,
        false if !e.any(&mut |e| matches!(e.kind, ExprKind::Param(_))) => false,
        false => {
            pattern.ty.class() == e.ty.class() && pattern.ty.col.collation == e.ty.col.collation
        }
    };
    let (mut own, mut other) = (Vec::new(), Vec::new());
    pattern.each_child(&mut |e| own.push(e));
    e.each_child(&mut |e| other.push(e));
    alike
        && own.len() == other.len()
        && is_same_node(pattern, e)
        && own.iter().zip(&other).all(|(a, b)| is_same(a, b, literals))
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
        (Cast { .. }, Cast { .. }) => true,
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
