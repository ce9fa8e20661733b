//! Comparisons: operators, row constructors, BETWEEN, IN, LIKE, and comparisons with subqueries.

use nfold_sql::ast::{self, BinaryOp, InList};
use nfold_types::temporal::{DateFlags, parse};
use nfold_types::{CollationId, ColumnType, ErrorCode, SqlError, TypeKind, Value};

use super::expr::selected;
use super::item_names::name_operand;
use super::nullif::is_time;
use super::types::{and, is_hex, list_kind};
use super::{AGGREGATES, BlockBinder};
use crate::logical::clauses::{BlockWarning, CheckedMembers};
use crate::logical::collate::{self, Operand, listed_number};
use crate::logical::context::ParamType;
use crate::logical::expr::{
    Class, CmpKind, Coercibility, Expr, ExprKind, ExprType, ItemName, SubqueryUse, TextOrigin,
    is_constant, operand,
};
use crate::logical::query::{QueryBody, Source, SubqueryForm};

fn is_row(e: &ast::Expr) -> bool {
    matches!(e, ast::Expr::Row(_))
}

/// A member of a list of rows, which has the same rows inside as `like`, as one flat row.
///
/// # Errors
/// 1241 where it has another shape.
fn flat_row(like: &[ast::Expr], row: &ast::Expr) -> Result<ast::Expr, SqlError> {
    let mut flat = Vec::new();
    match row {
        ast::Expr::Row(members) => flatten(like, members, &mut flat)?,
        _ => return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&like.len()])),
    }
    Ok(ast::Expr::Row(flat))
}

fn flatten(
    like: &[ast::Expr],
    row: &[ast::Expr],
    flat: &mut Vec<ast::Expr>,
) -> Result<(), SqlError> {
    let other = |width: usize| SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&width]);
    if like.len() != row.len() {
        return Err(other(like.len()));
    }
    for (like, e) in like.iter().zip(row) {
        match (like, e) {
            (ast::Expr::Row(like), ast::Expr::Row(row)) => flatten(like, row, flat)?,
            (ast::Expr::Row(like), _) => return Err(other(like.len())),
            (_, ast::Expr::Row(_)) => return Err(other(1)),
            _ => flat.push(e.clone()),
        }
    }
    Ok(())
}

impl BlockBinder<'_> {
    /// Binds `a op b` with the comparison that MySQL would choose.
    pub(crate) fn compare(&mut self, op: BinaryOp, a: Expr, b: Expr) -> Result<Expr, SqlError> {
        self.compare_for(op, a, b, op.symbol())
    }

    /// As [`Self::compare`]. `operation` is the name of the operation in error messages.
    pub(super) fn compare_for(
        &mut self,
        op: BinaryOp,
        a: Expr,
        b: Expr,
        operation: &str,
    ) -> Result<Expr, SqlError> {
        let b = self.as_year(&a, b);
        let a = self.as_year(&b, a);
        self.compare_as_is(op, a, b, operation)
    }

    /// As [`Self::compare`], without the special treatment of YEAR columns.
    pub(super) fn compare_as_is(
        &mut self,
        op: BinaryOp,
        a: Expr,
        b: Expr,
        operation: &str,
    ) -> Result<Expr, SqlError> {
        let kind = self.comparison([&a, &b], operation)?;
        let (mut a, mut b) = (a, b);
        self.check_constant(&mut a, &b, kind);
        self.check_constant(&mut b, &a, kind);
        if let CmpKind::String(collation) = kind {
            [&a, &b]
                .into_iter()
                .for_each(|e| self.check_text(e, collation));
        }
        if matches!(kind, CmpKind::Double | CmpKind::Decimal) {
            [&mut a, &mut b].into_iter().for_each(converted_once);
        }
        Ok(compared(op, kind, a, b))
    }

    /// As [`Self::compare_as_is`], but a constant is converted for each row.
    pub(super) fn compare_each(
        &mut self,
        op: BinaryOp,
        a: Expr,
        b: Expr,
        operation: &str,
    ) -> Result<Expr, SqlError> {
        let kind = self.comparison([&a, &b], operation)?;
        Ok(compared(op, kind, a, b))
    }

    fn comparison(&self, sides: [&Expr; 2], operation: &str) -> Result<CmpKind, SqlError> {
        let [a, b] = sides;
        let operands = sides.map(|e| side(self.merged(e)));
        let kind = collate::comparison(&a.ty, &b.ty, operands, self.cx.connection, operation)?;
        Ok(beside_decimal(kind, sides))
    }

    /// Wraps a constant that is compared with a YEAR column, where 20 means 2020.
    fn as_year(&self, column: &Expr, e: Expr) -> Expr {
        let year = matches!(column.ty.col.kind, TypeKind::Year) && column.ty.col.width == 0;
        let value = e.ty.class() != Class::Null;
        let beside = operand(column) == Operand::Column && self.is_merged_constant(&e);
        match self.cx.funcs.find(crate::logical::func::YEAR_CONSTANT) {
            Some((func, _)) if year && value && beside => {
                let mut e = e;
                self.check_constant(&mut e, column, CmpKind::Double);
                Expr {
                    ty: ExprType::bigint(e.ty.nullable),
                    kind: ExprKind::Call {
                        func,
                        args: vec![e],
                    },
                }
            }
            _ => e,
        }
    }

    /// Whether `e` is constant, or a column of a merged derived table that stands for a constant.
    fn is_merged_constant(&self, e: &Expr) -> bool {
        operand(self.merged(e)) == Operand::Constant
    }

    /// The expression that a column of a merged derived table stands for; any other expression
    /// itself.
    pub(super) fn merged<'e>(&'e self, e: &'e Expr) -> &'e Expr {
        let (mut tables, mut e) = (&self.tables, e);
        while let Some(at) = e.as_column()
            && let Some(table) = tables.get(usize::from(at.table))
            && let Source::Derived(q) = &table.source
            && let (true, QueryBody::Block(inner)) = (q.is_merged(), &q.body)
            && let Some(selected) = inner.select.get(usize::from(at.column))
        {
            (tables, e) = (&inner.tables, selected);
        }
        e
    }

    /// The columns of a row constructor or of a row subquery. Any other expression is a row of one
    /// column.
    pub(super) fn columns(&mut self, e: &ast::Expr) -> Result<Vec<Expr>, SqlError> {
        match e {
            ast::Expr::Row(members) => members.iter().map(|m| self.expr(m)).collect(),
            ast::Expr::Subquery(query) => {
                if let Some(e) = self.selected_constant(query) {
                    return Ok(vec![e]);
                }
                let (index, types) = self.subquery(query, SubqueryForm::Rows)?;
                let single = types.len() == 1;
                let column = |(n, ty): (usize, ExprType)| {
                    let use_as = match single {
                        true => SubqueryUse::Scalar,
                        false => SubqueryUse::Column(n as u16),
                    };
                    selected(index, use_as, ty)
                };
                Ok(types.into_iter().enumerate().map(column).collect())
            }
            single => Ok(vec![self.expr(single)?]),
        }
    }

    /// Compares two row constructors. Members that are row constructors themselves are compared
    /// recursively.
    pub(super) fn compare_nested(
        &mut self,
        op: BinaryOp,
        a: &[ast::Expr],
        b: &[ast::Expr],
    ) -> Result<Expr, SqlError> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.flat_rows(a, b, &mut left, &mut right)?;
        self.compare_rows(op, left, right)
    }

    fn flat_rows(
        &mut self,
        a: &[ast::Expr],
        b: &[ast::Expr],
        left: &mut Vec<Expr>,
        right: &mut Vec<Expr>,
    ) -> Result<(), SqlError> {
        if a.len() != b.len() {
            return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&a.len()]));
        }
        for (a, b) in a.iter().zip(b) {
            match (a, b) {
                (ast::Expr::Row(a), ast::Expr::Row(b)) => self.flat_rows(a, b, left, right)?,
                (ast::Expr::Row(a), _) => {
                    return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&a.len()]));
                }
                _ => {
                    left.push(self.expr(a)?);
                    right.push(self.expr(b)?);
                }
            }
        }
        Ok(())
    }

    /// Compares two rows of equal width.
    pub(super) fn compare_rows(
        &mut self,
        op: BinaryOp,
        left: Vec<Expr>,
        right: Vec<Expr>,
    ) -> Result<Expr, SqlError> {
        let pairs: Vec<(Expr, Expr)> = left.into_iter().zip(right).collect();
        if op == BinaryOp::Eq {
            let list = pairs
                .into_iter()
                .map(|(a, b)| self.compare(op, a, b))
                .collect::<Result<Vec<_>, _>>()?;
            return Ok(and(list));
        }
        let kinds = pairs
            .iter()
            .map(|(a, b)| {
                let sides = [operand(a), operand(b)];
                collate::comparison(&a.ty, &b.ty, sides, self.cx.connection, op.symbol())
            })
            .collect::<Result<_, _>>()?;
        let (left, right) = pairs.into_iter().unzip();
        Ok(Expr {
            kind: ExprKind::CompareRows {
                op,
                kinds,
                left,
                right,
            },
            ty: ExprType::boolean(true),
        })
    }

    pub(super) fn logical(
        &mut self,
        list: &[ast::Expr],
        make: fn(Vec<Expr>) -> ExprKind,
    ) -> Result<Expr, SqlError> {
        let before = self.count_constant_checks();
        let list: Vec<Expr> = list
            .iter()
            .map(|e| self.truth(e))
            .collect::<Result<_, _>>()?;
        let nullable = list.iter().any(|e| e.ty.nullable);
        let kind = make(list);
        self.drop_needless_checks(&kind, before);
        Ok(Expr {
            kind,
            ty: ExprType::boolean(nullable),
        })
    }

    pub(super) fn between(
        &mut self,
        e: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let operand = self.expr(e)?;
        let (low, high) = (self.expr(low)?, self.expr(high)?);
        let (low, high) = (self.as_year(&operand, low), self.as_year(&operand, high));
        if [&operand, &low, &high].iter().any(|p| p.ty.col.is_json()) {
            self.warnings.push(BlockWarning::RangeOfDocuments);
            // MySQL replaces BETWEEN by an equality if the bounds are one constant.
            if !negated && operand.ty.col.is_json() && self.is_one_constant(&low, &high) {
                return self.compare(BinaryOp::Eq, operand, low);
            }
        }
        let mut parts = Box::new([operand, low, high]);
        if parts.iter().any(|p| p.ty.class().is_number()) {
            self.bound_as_column(&mut parts);
        }
        let kinds = between_kinds(&parts, self.cx.connection)?;
        if kinds == [CmpKind::Double; 2] {
            converted_once(&mut parts[0]);
        }
        self.check_bounds(&mut parts, &kinds);
        if !negated && kinds == [CmpKind::DateTime; 2] {
            self.check_equal_bounds(&parts);
        }
        for (bound, kind) in parts[1..].iter().zip(&kinds) {
            if let CmpKind::String(collation) = kind {
                self.check_text(bound, *collation);
            }
        }
        let nullable = parts.iter().any(|p| p.ty.nullable);
        Ok(Expr {
            kind: ExprKind::Between {
                parts,
                kinds,
                negated,
            },
            ty: ExprType::boolean(nullable),
        })
    }

    /// Converts a bound of BETWEEN that is a date or time and no constant to the type of a temporal
    /// column, if the other bound is a constant number that has a value of that type. MySQL
    /// converts the number, and then the other two as well. It compares any other number as one.
    fn bound_as_column(&self, parts: &mut [Expr; 3]) {
        let [column, low, high] = parts;
        let number = |e: &Expr| e.ty.class().is_number() && side(e) == Operand::Constant;
        let (number, bound) = match (number(low), number(high)) {
            (true, false) => (low, high),
            (false, true) => (high, low),
            _ => return,
        };
        let (class, other) = (column.ty.class(), bound.ty.class());
        let is_bound = other.is_temporal() && class != other && side(bound) != Operand::Constant;
        if !is_bound || side(column) != Operand::Column {
            return;
        }
        let (kind, has_value): (_, fn(&Value) -> bool) = match class {
            Class::Time => (TypeKind::Time(6), is_time),
            Class::Date => (TypeKind::Date, is_date),
            Class::DateTime => (TypeKind::DateTime(6), is_date),
            _ => return,
        };
        if self.constant_value(number).as_ref().is_some_and(has_value) {
            bound.cast_to(ExprType::new(ColumnType::new(kind), true));
        }
    }

    /// Whether two literals, or constants of literals, are the same.
    fn is_one_constant(&self, a: &Expr, b: &Expr) -> bool {
        if let (ExprKind::Param(m), ExprKind::Param(n)) = (&a.kind, &b.kind)
            && let Some(literals) = self.cx.literals
        {
            let same = |value| Some(value) == literals.read(*n);
            return a.ty == b.ty && literals.read(*m).is_some_and(same);
        }
        a == b && is_constant(a)
    }

    /// Records constant bounds beside a date or time, and texts beside a BIGINT column. A text
    /// beside a date is refused for `=` and its like only, and none is converted to a TIME that is
    /// compared as a DATETIME because a date is among the three.
    fn check_bounds(&self, parts: &mut [Expr; 3], kinds: &[CmpKind; 2]) {
        let [operand, low, high] = parts;
        let time = operand.ty.class() == Class::Time && self.column_behind(operand).is_some();
        let texts = time || operand.ty.col.kind == TypeKind::BigInt;
        for (bound, kind) in [low, high].into_iter().zip(kinds) {
            let class = bound.ty.class();
            if class.is_number() && operand.ty.class().is_temporal()
                || class == Class::String && texts && !(time && *kind == CmpKind::DateTime)
            {
                self.check_constant(bound, operand, checked_kind(operand, *kind));
            }
        }
    }

    pub(super) fn in_list(
        &mut self,
        e: &ast::Expr,
        list: &InList,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        if let ast::Expr::Row(members) = e
            && members.iter().any(is_row)
            && let InList::Exprs(list) = list
        {
            let rows = list.iter().map(|row| flat_row(members, row));
            let rows = rows.collect::<Result<Vec<_>, _>>()?;
            let mut flat = Vec::new();
            flatten(members, members, &mut flat)?;
            let found = self.in_list(&ast::Expr::Row(flat), &InList::Exprs(rows), negated);
            // As in MySQL, rows in rows cause no warning.
            (self.warnings).pop_if(|last| matches!(last, BlockWarning::ListOfDocuments(_)));
            return found;
        }
        let mut left: Vec<Expr> = self.columns(e)?;
        match list {
            InList::ListParam(n) => {
                let Some(ParamType::List { members, width, .. }) = self.cx.params.get(*n as usize)
                else {
                    return Err(SqlError::not_supported("this list"));
                };
                if *width != left.len() {
                    return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&left.len()]));
                }
                let kinds = left
                    .iter()
                    .map(|l| list_kind(l, members, left.len() > 1, self.cx.connection))
                    .collect::<Result<Vec<_>, _>>()?;
                self.check_list(&left, &kinds, *n);
                if left.len() > 1 && left.iter().any(|l| l.ty.col.is_json()) {
                    (self.warnings).push(BlockWarning::ListOfDocuments(Some(*n)));
                }
                if let [left] = left.as_mut_slice()
                    && left.ty.class().is_temporal()
                    && let Some(column) = self.column_behind(left)
                {
                    left.ty.item_name = ItemName::new(&column.name);
                }
                let nullable = left
                    .iter()
                    .map(|l| &l.ty)
                    .chain(members)
                    .any(|t| t.nullable);
                let mut ty = ExprType::boolean(nullable);
                if let [left] = left.as_slice() {
                    if left.ty.class() == Class::String {
                        self.check_texts(*n, members, left.ty.collation());
                    }
                    ty = self.check_listed(left, members.iter(), CheckedMembers::Param(*n));
                    ty.nullable = true;
                }
                if let ([left], [CmpKind::Double]) = (left.as_mut_slice(), kinds.as_slice()) {
                    as_bytes_beside_bytes(left, members.iter());
                }
                Ok(Expr {
                    kind: ExprKind::InParam {
                        left,
                        kinds,
                        list: *n,
                        negated,
                    },
                    ty,
                })
            }
            InList::Exprs(members) => {
                let kind_of = |b: &mut Self, l: &Expr, m: &Expr| {
                    let sides = [operand(l), operand(m)];
                    listed_comparison(&l.ty, &m.ty, sides, b.cx.connection, "in")
                };
                // IN with one member is a comparison.
                if let ([_], [member]) = (left.as_slice(), members.as_slice())
                    && let Some(left) = left.pop()
                {
                    let member = self.expr(member)?;
                    let equal = self.compare(BinaryOp::Eq, left, member)?;
                    return Ok(negate_if(equal, negated));
                }
                if let [left] = left.as_mut_slice() {
                    let members: Vec<Expr> = members
                        .iter()
                        .map(|m| self.expr(m))
                        .collect::<Result<_, _>>()?;
                    name_operand(left, e, &members);
                    let types = std::iter::once(&left.ty).chain(members.iter().map(|m| &m.ty));
                    let texts = collate::of_texts(types.clone(), self.cx.connection, " IN ")?;
                    let years = is_year_text(left, members.iter().map(|m| &m.ty))
                        && members.iter().all(is_constant);
                    let documents = types.clone().any(|ty| ty.col.is_json());
                    let all = match years {
                        _ if documents => Some(CmpKind::Json),
                        true => Some(CmpKind::String(self.cx.connection)),
                        false => texts.or_else(|| temporal_list_kind(types)),
                    };
                    let all = match is_integer_list(left, members.iter().map(|m| &m.ty))
                        && members.iter().all(is_constant)
                    {
                        true => Some(CmpKind::Int),
                        false => all,
                    };
                    let numbers = members.iter().any(|m| m.ty.class().is_number());
                    let alone = members.iter().all(|m| {
                        let class = m.ty.class();
                        class == Class::Null || class.is_number() && is_constant(m)
                    });
                    let texts = std::iter::once(&left.ty)
                        .chain(members.iter().map(|m| &m.ty))
                        .filter(|t| t.class() == Class::String);
                    let merged = match left.ty.class() {
                        Class::String => collate::merge(texts, self.cx.connection, " IN ")?,
                        _ => collate::as_string(&left.ty, self.cx.connection),
                    };
                    let mut list = Vec::with_capacity(members.len());
                    for m in members {
                        let kind = match (all, left.ty.class(), m.ty.class()) {
                            (Some(kind), ..) => kind,
                            (_, Class::Time, Class::String) => CmpKind::Time,
                            (_, Class::Time, Class::Date | Class::DateTime) if numbers => {
                                CmpKind::Time
                            }
                            (_, l, c) if l.is_temporal() && c.is_number() => {
                                listed_number(l, alone)
                            }
                            _ if is_double(&left.ty, &m.ty, numbers) => CmpKind::Double,
                            // With a number in the list, a string operand is compared with dates
                            // and times as strings.
                            (_, Class::String, c) if c.is_temporal() && numbers => {
                                CmpKind::String(merged.collation)
                            }
                            (_, Class::Int, Class::Date | Class::DateTime) => CmpKind::Double,
                            _ => match kind_of(self, left, &m)? {
                                CmpKind::String(_) => CmpKind::String(merged.collation),
                                kind => kind,
                            },
                        };
                        list.push((kind, m));
                    }
                    for (kind, member) in &list {
                        match kind {
                            CmpKind::String(collation) => self.check_text(member, *collation),
                            // MySQL converts texts to the operand's character set even if it then
                            // compares dates.
                            CmpKind::DateTime | CmpKind::Time
                                if left.ty.class() == Class::String =>
                            {
                                self.check_text(member, merged.collation);
                            }
                            _ => {}
                        }
                    }
                    let ty = self.check_written(left, &list);
                    if list.iter().any(|(kind, _)| *kind == CmpKind::Double) {
                        as_bytes_beside_bytes(left, list.iter().map(|(_, member)| &member.ty));
                    }
                    let kind = ExprKind::In {
                        expr: Box::new(left.clone()),
                        list,
                        negated,
                    };
                    return Ok(Expr { kind, ty });
                }
                // IN with one row is a comparison.
                if let [only] = members.as_slice() {
                    let row = self.columns(only)?;
                    if row.len() != left.len() {
                        return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&left.len()]));
                    }
                    // As in MySQL, 20 is not 2020 beside a YEAR column here.
                    let pairs = left.into_iter().zip(row);
                    let equal = pairs.map(|(a, b)| self.compare_as_is(BinaryOp::Eq, a, b, "="));
                    let equal = and(equal.collect::<Result<_, _>>()?);
                    return Ok(negate_if(equal, negated));
                }
                let mut rows = Vec::with_capacity(members.len());
                for m in members {
                    let row = self.columns(m)?;
                    if row.len() != left.len() {
                        return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&left.len()]));
                    }
                    let mut bound = Vec::with_capacity(row.len());
                    for (l, m) in left.iter().zip(row) {
                        let connection = self.cx.connection;
                        let sides = [operand(l), operand(&m)];
                        let kind = match row_kind(&l.ty, Some(&m.ty), connection)? {
                            Some(kind) => kind,
                            None => listed_comparison(&l.ty, &m.ty, sides, connection, "=")?,
                        };
                        bound.push((kind, m));
                    }
                    rows.push(bound);
                }
                let listed = rows.iter().flatten().map(|(_, member)| member);
                let mut all = left.iter().chain(listed);
                if all.clone().any(|e| e.ty.col.is_json()) {
                    (self.warnings).push(BlockWarning::ListOfDocuments(None));
                }
                let nullable = all.any(|e| e.ty.nullable);
                Ok(Expr {
                    kind: ExprKind::InRows {
                        left,
                        rows,
                        negated,
                    },
                    ty: ExprType::boolean(nullable),
                })
            }
        }
    }

    pub(super) fn in_subquery(
        &mut self,
        e: &ast::Expr,
        query: &ast::Query,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        self.in_rows(e, query, negated, "=")
    }

    /// `operation` is the operator's name in error messages.
    fn in_rows(
        &mut self,
        e: &ast::Expr,
        query: &ast::Query,
        negated: bool,
        operation: &str,
    ) -> Result<Expr, SqlError> {
        let left: Vec<Expr> = self.columns(e)?;
        if query.limit.is_some() {
            return Err(SqlError::not_supported("LIMIT & IN/ALL/ANY/SOME subquery"));
        }
        let (index, types) = self.subquery(query, SubqueryForm::Membership)?;
        if types.len() != left.len() {
            return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&left.len()]));
        }
        let kinds = left
            .iter()
            .zip(&types)
            .map(|(l, t)| {
                collate::comparison(
                    &l.ty,
                    t,
                    [operand(l), Operand::Other],
                    self.cx.connection,
                    operation,
                )
            })
            .collect::<Result<Vec<_>, _>>()?;
        let operands = left.iter().map(|l| l.ty.clone());
        self.subqueries[usize::from(index)].operands =
            operands.zip(kinds.iter().copied()).collect();
        let nullable = left.iter().any(|l| l.ty.nullable) || types.iter().any(|t| t.nullable);
        let use_as = SubqueryUse::In {
            left,
            kinds,
            negated,
        };
        Ok(Expr {
            kind: ExprKind::Subquery { index, use_as },
            ty: ExprType::boolean(nullable),
        })
    }

    pub(super) fn quantified(
        &mut self,
        op: BinaryOp,
        e: &ast::Expr,
        all: bool,
        query: &ast::Query,
    ) -> Result<Expr, SqlError> {
        match (op, all) {
            (BinaryOp::Eq, false) => return self.in_rows(e, query, false, "="),
            (BinaryOp::Ne, true) => return self.in_rows(e, query, true, "<>"),
            _ => {}
        }
        let left = match e {
            ast::Expr::Row(_) => return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&1])),
            e => self.expr(e)?,
        };
        let (index, types) = self.subquery(query, SubqueryForm::Rows)?;
        let [ty] = types.as_slice() else {
            return Err(SqlError::new(ErrorCode::ER_OPERAND_COLUMNS, &[&1]));
        };
        let kind = collate::comparison(
            &left.ty,
            ty,
            [operand(&left), Operand::Other],
            self.cx.connection,
            op.symbol(),
        )?;
        let nullable = left.ty.nullable || ty.nullable;
        // MySQL compares with the extreme value of the subquery, unless it is correlated.
        let subquery = &mut self.subqueries[usize::from(index)];
        let extreme = !subquery.correlated && !matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        if extreme {
            subquery.query.types[0].origin = TextOrigin::Cached;
        }
        let use_as = SubqueryUse::Quantified {
            left: Box::new(left),
            op,
            kind,
            all,
        };
        Ok(Expr {
            kind: ExprKind::Subquery { index, use_as },
            ty: ExprType::boolean(nullable),
        })
    }

    pub(super) fn like(
        &mut self,
        e: &ast::Expr,
        p: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let (expr, pattern) = (self.expr(e)?, self.expr(p)?);
        let escape = escape.map(|e| self.expr(e)).transpose()?.map(Box::new);
        let merged = collate::comparable(
            [&expr.ty, &pattern.ty].into_iter(),
            self.cx.connection,
            "like",
        )?;
        let ty = ExprType::boolean(expr.ty.nullable || pattern.ty.nullable);
        let collation = if merged.coercibility == Coercibility::Ignorable {
            self.cx.connection
        } else {
            merged.collation
        };
        self.check_text(&pattern, collation);
        Ok(Expr {
            kind: ExprKind::Like {
                expr: Box::new(expr),
                pattern: Box::new(pattern),
                escape,
                collation,
                negated,
            },
            ty,
        })
    }
}

/// As [`collate::comparison`], for a member of a list or a bound of BETWEEN, where a YEAR counts as
/// a number even beside a date.
pub(super) fn listed_comparison(
    a: &ExprType,
    b: &ExprType,
    sides: [Operand; 2],
    connection: CollationId,
    operation: &str,
) -> Result<CmpKind, SqlError> {
    let number = ExprType::bigint(true);
    let year = |t: &ExprType| t.col.kind == TypeKind::Year;
    let a = if year(a) { &number } else { a };
    let b = if year(b) { &number } else { b };
    collate::comparison(a, b, sides, connection, operation)
}

/// Classifies one side of a comparison of two expressions. A user variable is no constant here: it
/// is not converted to the type of the column on the other side.
pub(super) fn side(e: &Expr) -> Operand {
    let variable = |e: &Expr| matches!(e.kind, ExprKind::UserVar(_));
    match operand(e) {
        Operand::Constant if e.any(&mut |e| variable(e)) => Operand::Other,
        // An aggregate: no constant is converted to its type.
        Operand::Column if e.as_column().is_some_and(|at| at.table == AGGREGATES) => Operand::Other,
        other => other,
    }
}

/// The kind by which a constant bound of BETWEEN is checked: MySQL converts it to the type of a
/// temporal column, even if it then compares numbers.
fn checked_kind(operand: &Expr, kind: CmpKind) -> CmpKind {
    match operand.ty.class() {
        _ if kind != CmpKind::Double || side(operand) != Operand::Column => kind,
        Class::Time => CmpKind::Time,
        Class::Date | Class::DateTime => CmpKind::DateTime,
        _ => kind,
    }
}

/// The kind of a comparison of two expressions. A constant string beside a DECIMAL that is no
/// constant is compared as a DECIMAL.
fn beside_decimal(kind: CmpKind, [a, b]: [&Expr; 2]) -> CmpKind {
    let text = |e: &Expr| e.ty.class() == Class::String && !is_hex(&e.ty);
    let exact = |number: &Expr, constant: &Expr| {
        number.ty.class() == Class::Decimal
            && side(number) != Operand::Constant
            && text(constant)
            && side(constant) == Operand::Constant
    };
    match kind {
        CmpKind::Double if exact(a, b) || exact(b, a) => CmpKind::Decimal,
        kind => kind,
    }
}

/// Whether a member of a list is a hexadecimal or bit literal that an integer operand is compared
/// with as a double. `numbers`: the list has other members that are numbers.
pub(super) fn is_double(left: &ExprType, member: &ExprType, numbers: bool) -> bool {
    left.class() == Class::Int && is_hex(member) && numbers
}

/// Whether a BIGINT that is no column is compared with all members of a list of two or more
/// constants as a BIGINT: none of them is an integer or a DECIMAL. `types` are their types.
pub(super) fn is_integer_list<'e>(
    left: &Expr,
    mut types: impl Iterator<Item = &'e ExprType>,
) -> bool {
    let inexact = |t: &ExprType| !matches!(t.class(), Class::Int | Class::Decimal | Class::Json);
    left.ty.col.kind == TypeKind::BigInt && side(left) != Operand::Column && types.all(inexact)
}

/// Whether a YEAR column is compared as a string with all members of a list of two or more
/// constants. `types` are their types; none of them may be an integer or a decimal.
pub(super) fn is_year_text<'e>(left: &Expr, mut types: impl Iterator<Item = &'e ExprType>) -> bool {
    let year = left.ty.col.kind == TypeKind::Year && left.ty.col.width == 0;
    let exact = |t: &ExprType| matches!(t.class(), Class::Int | Class::Decimal);
    year && operand(left) == Operand::Column && !types.any(exact)
}

/// As in MySQL, a text literal is a binary string if a member of its list is one: warnings about it
/// show the bytes.
fn as_bytes_beside_bytes<'m>(left: &mut Expr, members: impl IntoIterator<Item = &'m ExprType>) {
    let is_binary =
        |ty: &ExprType| ty.class() == Class::String && ty.collation() == CollationId::BINARY;
    let literal = left.ty.class() == Class::String && left.ty.origin == TextOrigin::Literal;
    if literal && is_constant(left) && members.into_iter().any(is_binary) {
        left.ty.col.collation = CollationId::BINARY;
    }
}

/// How a column of a row constructor is compared in a list of several rows: by the type of its left
/// side, for any types of the members. Returns `None` for TIME and NULL, which are compared as
/// outside of rows.
///
/// # Errors
/// 1267 if both are strings and no collation wins.
pub(super) fn row_kind(
    left: &ExprType,
    member: Option<&ExprType>,
    connection: CollationId,
) -> Result<Option<CmpKind>, SqlError> {
    Ok(match left.class() {
        Class::Int => Some(CmpKind::Int),
        Class::Decimal => Some(CmpKind::Decimal),
        Class::Double => Some(CmpKind::Double),
        Class::Date | Class::DateTime => Some(CmpKind::DateTime),
        Class::String => {
            let text = member.filter(|m| m.class() == Class::String);
            let both = std::iter::once(left).chain(text);
            let merged = collate::comparable(both, connection, "=")?;
            Some(CmpKind::String(merged.collation))
        }
        // As in MySQL, which warns of it, a document is compared as text.
        Class::Json => Some(CmpKind::String(CollationId::UTF8MB4_BIN)),
        Class::Time | Class::Null => None,
    })
}

fn compared(op: BinaryOp, kind: CmpKind, a: Expr, b: Expr) -> Expr {
    let nullable = op != BinaryOp::NullSafeEq && (a.ty.nullable || b.ty.nullable);
    Expr {
        kind: ExprKind::Compare {
            op,
            kind,
            sides: Box::new([a, b]),
        },
        ty: ExprType::boolean(nullable),
    }
}

/// Marks a constant string that is read as a number: MySQL reads it once, not for each row.
pub(super) fn converted_once(e: &mut Expr) {
    if e.ty.class() == Class::String
        && e.ty.origin == TextOrigin::Literal
        && side(e) == Operand::Constant
    {
        e.ty.origin = TextOrigin::Once;
    }
}

/// `NOT e` if `negated`, otherwise `e`.
fn negate_if(e: Expr, negated: bool) -> Expr {
    match negated {
        false => e,
        true => Expr {
            ty: e.ty.clone(),
            kind: ExprKind::Not(Box::new(e)),
        },
    }
}

/// The comparison of a list that has dates or times and no numbers: all its members are compared as
/// DATETIME, or as TIME if there is no date. Returns `None` for any other list.
fn temporal_list_kind<'e>(types: impl Iterator<Item = &'e ExprType> + Clone) -> Option<CmpKind> {
    if types.clone().any(|t| t.class().is_number()) {
        return None;
    }
    let date = |t: &ExprType| matches!(t.class(), Class::Date | Class::DateTime);
    if types.clone().any(date) {
        return Some(CmpKind::DateTime);
    }
    let mut types = types;
    types
        .any(|t| t.class() == Class::Time)
        .then_some(CmpKind::Time)
}

/// Whether a constant number is a date, with or without a time. Its day may be one that the month
/// has not, in every SQL mode.
fn is_date(value: &Value) -> bool {
    let flags = DateFlags {
        no_zero_in_date: true,
        no_zero_date: false,
        allow_invalid: true,
    };
    let number = match value {
        Value::Int(n) => Some(*n),
        Value::UInt(n) => i64::try_from(*n).ok(),
        Value::Decimal(d) => d.truncate(0).to_i64(),
        Value::Double(d) => Some(*d as i64),
        _ => None,
    };
    number.is_some_and(|n| parse::datetime_of_number(n, flags).is_ok())
}

/// How BETWEEN compares its operand with each bound. If a number is among strings, all three are
/// compared as numbers.
fn between_kinds(parts: &[Expr; 3], connection: CollationId) -> Result<[CmpKind; 2], SqlError> {
    let kind = |b: &Expr| {
        let sides = [side(&parts[0]), side(b)];
        listed_comparison(&parts[0].ty, &b.ty, sides, connection, "between")
    };
    let class = |i: usize| parts[i].ty.class();
    let among = |list: &[Class]| (0..3).all(|i| list.contains(&class(i)));
    let column = side(&parts[0]) == Operand::Column;
    let text = [Class::String, Class::Null];
    let dates = [Class::String, Class::Null, Class::Date, Class::DateTime];
    if let Some(kind) = collate::of_texts(parts.iter().map(|p| &p.ty), connection, "between")? {
        return Ok([kind; 2]);
    }
    if let Some(kind @ CmpKind::DateTime) = temporal_list_kind(parts.iter().map(|p| &p.ty)) {
        return Ok([kind; 2]);
    }
    let constant = |i: usize| side(&parts[i]) == Operand::Constant;
    let numbers = (0..3).any(|i| class(i).is_number());
    // Documents are compared as their texts, or as the numbers that they convert to.
    if (0..3).any(|i| class(i) == Class::Json) {
        return Ok([match numbers {
            true => CmpKind::Double,
            false => CmpKind::String(CollationId::UTF8MB4_BIN),
        }; 2]);
    }
    let converted = |i: usize| constant(i) || class(i) == class(0);
    if class(0).is_temporal() && numbers && !(column && converted(1) && converted(2)) {
        return Ok([CmpKind::Double; 2]);
    }
    let temporal = class(1).is_temporal() || class(2).is_temporal();
    if class(0).is_number() && temporal && side(&parts[0]) != Operand::Column {
        return Ok([CmpKind::Double; 2]);
    }
    if class(0).is_temporal() && column || among(&text) {
        return Ok([kind(&parts[1])?, kind(&parts[2])?]);
    }
    if among(&dates) {
        return Ok([CmpKind::DateTime; 2]);
    }
    if text.contains(&class(0)) || class(0).is_temporal() {
        let temporal = [Class::Time, Class::Date, Class::DateTime];
        return Ok(if among(&[Class::Time]) {
            [CmpKind::Time; 2]
        } else if among(&temporal) {
            [CmpKind::DateTime; 2]
        } else if among(&[Class::String, Class::Null, Class::Time]) {
            let merged = collate::merge(parts.iter().map(|p| &p.ty), connection, "between")?;
            [CmpKind::String(merged.collation); 2]
        } else {
            [CmpKind::Double; 2]
        });
    }
    let kinds = [kind(&parts[1])?, kind(&parts[2])?];
    let exact = |n: usize| beside_decimal(kinds[n - 1], [&parts[0], &parts[n]]);
    Ok(match [exact(1), exact(2)] {
        both @ [CmpKind::Decimal, CmpKind::Decimal] if kinds[0] == kinds[1] => both,
        _ => kinds,
    })
}
