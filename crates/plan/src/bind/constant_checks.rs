//! Constants that MySQL converts before the first row, once, where a comparison, a list or a
//! condition names them. Their check warns; then they do not warn for each row.

use nfold_types::{CollationId, SqlError, TypeKind, Value};

use super::BlockBinder;
use super::compare::{is_integer_list, side};
use super::types::is_hex;
use crate::logical::clauses::{CheckedConstant, CheckedMembers, ConstantCheck, ListCheck};
use crate::logical::collate::{self, Operand};
use crate::logical::expr::{
    Class, CmpKind, Coercibility, ColumnAt, Expr, ExprKind, ExprType, ItemName, TextOrigin,
    is_constant,
};
use crate::logical::func::{COMPUTED_ONCE, is_volatile};
use crate::logical::truth::truth;

/// Arguments that MySQL evaluates while it resolves a call, in its order, if they are constants:
/// the digits or the length of the result depend on them.
const RESOLVED: [(&str, &[usize]); 17] = [
    ("time", &[0]),
    ("timestamp", &[1, 0]),
    ("timediff", &[1, 0]),
    ("convert_tz", &[0]),
    ("unix_timestamp", &[0]),
    ("str_to_date", &[1]),
    ("round", &[1]),
    ("truncate", &[1]),
    ("left", &[1]),
    ("right", &[1]),
    ("repeat", &[1]),
    ("space", &[0]),
    ("lpad", &[1]),
    ("rpad", &[1]),
    ("substr", &[1, 2]),
    ("substring", &[1, 2]),
    ("mid", &[1, 2]),
];

/// Of these functions MySQL evaluates an argument only if it is a text.
const OF_TEXTS: [&str; 6] = [
    "time",
    "timestamp",
    "timediff",
    "convert_tz",
    "unix_timestamp",
    "str_to_date",
];

impl BlockBinder<'_> {
    /// Records the constant arguments of a call that MySQL evaluates while it resolves the call,
    /// also if the call is never evaluated. The call warns again when it is evaluated.
    pub(super) fn check_arguments(&self, name: &str, args: &[Expr]) {
        let text = |e: &Expr| e.ty.class() == Class::String;
        if matches!(name, "greatest" | "least") {
            let timed = |e: &Expr| matches!(e.ty.class(), Class::Time | Class::DateTime);
            for e in args.iter().filter(|_| args.iter().any(timed)) {
                if text(e) {
                    self.check_resolved(e);
                }
            }
            return;
        }
        let Some((_, places)) = RESOLVED.iter().find(|(of, _)| *of == name) else {
            return;
        };
        // A literal that warns once in an execution would do so again as a part of the check.
        let warns_once = |e: &Expr| e.any(&mut |e| e.ty.origin == TextOrigin::Once);
        for e in places.iter().filter_map(|at| args.get(*at)) {
            if !warns_once(e) && (text(e) || !OF_TEXTS.contains(&name)) {
                self.check_resolved(e);
            }
        }
    }

    /// Records a constant text that STRCMP compares with a date or time.
    pub(super) fn check_dates(&self, [a, b]: [&mut Expr; 2]) {
        let text = |e: &Expr| e.ty.class() == Class::String;
        match (text(a), text(b)) {
            (true, false) => self.check_constant(a, b, CmpKind::DateTime),
            (false, true) => self.check_constant(b, a, CmpKind::DateTime),
            _ => {}
        }
    }

    /// The operand of IS NULL. MySQL evaluates a constant while it resolves the statement, and not
    /// again: it does not warn later.
    pub(super) fn null_tested(&self, e: Expr) -> Expr {
        let Some((func, _)) = self.cx.funcs.find(COMPUTED_ONCE) else {
            return e;
        };
        if !e.ty.nullable || !self.check_resolved(&e) {
            return e;
        }
        let mut ty = e.ty.clone();
        ty.origin = TextOrigin::Checked;
        let kind = ExprKind::Call {
            func,
            args: vec![e],
        };
        Expr { kind, ty }
    }

    /// Records an operand if it is a constant that may warn. Returns whether it is.
    fn check_resolved(&self, e: &Expr) -> bool {
        let Some(all) = self.cx.constant_checks else {
            return false;
        };
        let literal = matches!(e.kind, ExprKind::Const(_) | ExprKind::Param(_));
        if literal || !is_checked_member(e) || is_volatile(self.cx.funcs, e) {
            return false;
        }
        let check = ConstantCheck {
            constant: CheckedConstant::Resolved(e.clone()),
            beside: e.ty.col.clone(),
            column: None,
            lenient: false,
        };
        let mut all = all.borrow_mut();
        if !all.contains(&check) {
            all.push(check);
        }
        true
    }

    /// Records a constant that is compared with `other` for the check before the first row. The
    /// constant itself causes no more warnings then. A text beside a number is recorded only in a
    /// condition on rows, and beside a YEAR or BIGINT.
    pub(super) fn check_constant(&self, constant: &mut Expr, other: &Expr, kind: CmpKind) {
        let Some(all) = self.cx.constant_checks else {
            return;
        };
        let written = self.merged(constant);
        let class = written.ty.class();
        let text = class == Class::String;
        let column = self.column_behind(other).map(|c| c.name);
        let beside = other.ty.class();
        if side(written) != Operand::Constant || !(text || class.is_number()) {
            return;
        }
        let number = match kind {
            CmpKind::Double => Class::Double,
            _ => Class::Decimal,
        };
        let checked = match kind {
            CmpKind::DateTime | CmpKind::Time
                if beside.is_temporal() && (text || column.is_some()) =>
            {
                CheckedConstant::TimePoint(written.clone())
            }
            CmpKind::Double | CmpKind::Decimal
                if beside.is_number()
                    && text
                    && column.is_some()
                    && (is_year(other) || is_bigint(other) || self.is_in_condition()) =>
            {
                CheckedConstant::Number(written.clone(), number)
            }
            _ => return,
        };
        if column.is_some() {
            constant.ty.origin = TextOrigin::Checked;
        }
        let check = ConstantCheck {
            constant: checked,
            beside: other.ty.col.clone(),
            column,
            lenient: false,
        };
        // An expression of the SELECT list may be bound again for ORDER BY.
        let mut all = all.borrow_mut();
        if !all.contains(&check) {
            all.push(check);
        }
    }

    /// Records constant texts between which a date must be. They are refused as the other side of
    /// `=` is, but only if they are equal.
    pub(super) fn check_equal_bounds(&self, parts: &[Expr; 3]) {
        let [operand, low, high] = parts;
        let Some(all) = self.cx.constant_checks else {
            return;
        };
        let text = |e: &Expr| e.ty.class() == Class::String && side(e) == Operand::Constant;
        let date = matches!(operand.ty.class(), Class::Date | Class::DateTime);
        if !date || !text(low) || !text(high) {
            return;
        }
        let check = ConstantCheck {
            constant: CheckedConstant::Bounds(Box::new([low.clone(), high.clone()])),
            beside: operand.ty.col.clone(),
            column: self.column_behind(operand).map(|c| c.name),
            lenient: false,
        };
        let mut all = all.borrow_mut();
        if !all.contains(&check) {
            all.push(check);
        }
    }

    /// Records a literal that is compared in `collation`, if the character set of that collation
    /// may lack characters of the literal: MySQL converts it before the first row.
    pub(super) fn check_text(&self, e: &Expr, collation: CollationId) {
        if is_loose_text(&e.ty, collation)
            && matches!(e.kind, ExprKind::Const(_) | ExprKind::Param(_))
        {
            self.add_text_check(CheckedConstant::Text(e.clone(), collation), &e.ty);
        }
    }

    /// Checks literals among values that are in the character set of `collation`: MySQL converts
    /// them while it resolves the expression. Literals that are no parameters have been checked.
    ///
    /// # Errors
    /// 3854 for characters that the character set lacks.
    pub(super) fn check_convertible<'e>(
        &self,
        exprs: impl Iterator<Item = &'e Expr>,
        collation: CollationId,
    ) -> Result<(), SqlError> {
        let Some(literals) = self.cx.literals else {
            return Ok(());
        };
        for e in exprs.filter(|e| is_loose_text(&e.ty, collation)) {
            if let ExprKind::Param(n) = e.kind
                && let Some(value) = literals.read(n)
            {
                let literal = Expr {
                    kind: ExprKind::Const(value),
                    ty: e.ty.clone(),
                };
                collate::convertible(std::iter::once(&literal), collation)?;
            }
        }
        Ok(())
    }

    /// As [`Self::check_text`], for the members of a list parameter.
    pub(super) fn check_texts(&self, list: u32, members: &[ExprType], collation: CollationId) {
        if let Some(ty) = members.iter().find(|ty| is_loose_text(ty, collation)) {
            self.add_text_check(CheckedConstant::Texts(list, collation), ty);
        }
    }

    fn add_text_check(&self, constant: CheckedConstant, ty: &ExprType) {
        let Some(all) = self.cx.constant_checks else {
            return;
        };
        let check = ConstantCheck {
            constant,
            beside: ty.col.clone(),
            column: None,
            lenient: false,
        };
        let mut all = all.borrow_mut();
        if !all.contains(&check) {
            all.push(check);
        }
    }

    pub(super) fn count_constant_checks(&self) -> usize {
        self.cx.constant_checks.map_or(0, |all| all.borrow().len())
    }

    /// Drops the texts beside numbers that were recorded for the operands of an AND or OR, those
    /// behind the first `before`, if another constant decides it: `WHERE 1 OR id = 'x'` does not
    /// warn. Dates and the members of lists do.
    pub(super) fn drop_needless_checks(&self, logical: &ExprKind, before: usize) {
        let (list, decisive) = match logical {
            ExprKind::And(list) => (list, Some(false)),
            ExprKind::Or(list) => (list, Some(true)),
            _ => return,
        };
        if self.is_in_condition()
            && self.count_constant_checks() > before
            && list.iter().any(|e| truth(self.cx, e) == decisive)
            && let Some(all) = self.cx.constant_checks
        {
            let mut at = 0;
            all.borrow_mut().retain(|check| {
                at += 1;
                at <= before || !matches!(check.constant, CheckedConstant::Number(..))
            });
        }
    }

    /// Whether a condition on rows is bound. MySQL converts constants elsewhere when it computes
    /// the first row.
    fn is_in_condition(&self) -> bool {
        matches!(self.clause, "where clause" | "on clause")
    }

    /// Lets the constants in a condition of WHERE or ON warn before the first row. MySQL computes
    /// the constant members of AND and OR while it optimizes, in their order and until one decides,
    /// also if no row is read. Later they do not warn again.
    ///
    /// `outer`: the condition is that of an outer join. Then the members of its outermost AND
    /// count, too. Elsewhere they are conditions of their own, which are evaluated before the first
    /// row anyway.
    pub(super) fn check_condition(&self, e: &mut Expr, outer: bool) {
        let Some(all) = self.cx.constant_checks else {
            return;
        };
        if !outer && is_constant(e) {
            return;
        }
        if let (ExprKind::And(list), false) = (&mut e.kind, outer) {
            for member in list {
                if matches!(
                    member.kind,
                    ExprKind::And(_) | ExprKind::Or(_) | ExprKind::Not(_)
                ) {
                    self.check_condition(member, false);
                }
                if is_never(member) {
                    break;
                }
            }
            return;
        }
        let check = skeleton(e);
        if !self.check_members(e) {
            return;
        }
        all.borrow_mut().push(ConstantCheck {
            constant: CheckedConstant::Truth(check),
            beside: e.ty.col.clone(),
            column: None,
            lenient: false,
        });
    }

    /// Marks the constants in a condition that the check before the first row evaluates, so that
    /// they do not warn again. Returns whether there are any.
    fn check_members(&self, e: &mut Expr) -> bool {
        if let ExprKind::And(list) | ExprKind::Or(list) = &mut e.kind {
            let checked = list.iter_mut().map(|member| self.check_members(member));
            return checked.fold(false, |any, checked| any | checked);
        }
        if let ExprKind::Not(inner) = &mut e.kind
            && !is_constant(inner)
        {
            return self.check_members(inner);
        }
        if !is_checked_member(e) || is_volatile(self.cx.funcs, e) {
            return false;
        }
        if e.ty.origin == TextOrigin::Once {
            e.ty.origin = TextOrigin::Checked;
            return true;
        }
        let Some((func, _)) = self.cx.funcs.find(COMPUTED_ONCE) else {
            return false;
        };
        let constant = std::mem::replace(e, Expr::null());
        e.ty = constant.ty.clone();
        e.ty.origin = TextOrigin::Checked;
        e.kind = ExprKind::Call {
            func,
            args: vec![constant],
        };
        true
    }

    /// As [`Self::check_constant`], for a list parameter beside `left`.
    pub(super) fn check_list(&self, left: &[Expr], kinds: &[CmpKind], list: u32) {
        if let (Some(all), [left], [CmpKind::DateTime | CmpKind::Time]) =
            (self.cx.constant_checks, left, kinds)
            && left.ty.class().is_temporal()
        {
            all.borrow_mut().push(ConstantCheck {
                constant: CheckedConstant::List(list),
                beside: left.ty.col.clone(),
                column: self.column_behind(left).map(|c| c.name),
                lenient: false,
            });
        }
    }

    /// Records an IN list of constants for the check before the first row, if MySQL compares all
    /// its members with `left` in one way. Returns the type of the IN expression, which tells that
    /// the members have warned.
    pub(super) fn check_listed<'e>(
        &self,
        left: &Expr,
        types: impl Iterator<Item = &'e ExprType> + Clone,
        members: CheckedMembers,
    ) -> ExprType {
        let nullable = left.ty.nullable || types.clone().any(|t| t.nullable);
        let mut ty = ExprType::boolean(nullable);
        let (Some(all), Some(kind)) = (self.cx.constant_checks, one_way(left, types)) else {
            return ty;
        };
        let mut column = self.column_behind(left).map(|c| c.name);
        let check_is_of_all = !is_year(left);
        let mut left = left.clone();
        if let Some(name) = &column {
            left.ty.item_name = ItemName::new(name);
        }
        if !self.is_in_condition() && !is_year(&left) {
            column = None;
        }
        let check = ConstantCheck {
            beside: left.ty.col.clone(),
            constant: CheckedConstant::Members(Box::new(ListCheck {
                left,
                kind,
                members,
            })),
            column,
            lenient: false,
        };
        let mut all = all.borrow_mut();
        if !all.contains(&check) {
            all.push(check);
        }
        if check_is_of_all {
            ty.origin = TextOrigin::Checked;
        }
        ty
    }

    /// As [`Self::check_listed`], for a written list. Variables are no constants here.
    pub(super) fn check_written(&self, left: &Expr, members: &[(CmpKind, Expr)]) -> ExprType {
        let variable = |e: &Expr| matches!(e.kind, ExprKind::UserVar(_) | ExprKind::SysVar { .. });
        let constant = |e: &Expr| {
            is_constant(e) && !is_volatile(self.cx.funcs, e) && !e.any(&mut |e| variable(e))
        };
        let nullable = left.ty.nullable || members.iter().any(|(_, m)| m.ty.nullable);
        if !members.iter().all(|(_, m)| constant(m)) {
            return ExprType::boolean(nullable);
        }
        let types = members.iter().map(|(_, m)| &m.ty);
        let copies = members.iter().map(|(_, m)| m.clone()).collect();
        self.check_listed(left, types, CheckedMembers::Written(copies))
    }
}

/// A copy of a condition for the check before the first row: its AND, OR and NOT with the constants
/// that may warn. A column, which decides nothing there, stands for each other member.
fn skeleton(e: &Expr) -> Expr {
    let kind = match &e.kind {
        ExprKind::And(list) => ExprKind::And(list.iter().map(skeleton).collect()),
        ExprKind::Or(list) => ExprKind::Or(list.iter().map(skeleton).collect()),
        ExprKind::Not(inner) if !is_constant(inner) => ExprKind::Not(Box::new(skeleton(inner))),
        _ if is_checked_member(e) || matches!(e.kind, ExprKind::Const(_) | ExprKind::Param(_)) => {
            return e.clone();
        }
        _ => ExprKind::Column(ColumnAt {
            table: 0,
            column: 0,
        }),
    };
    Expr {
        kind,
        ty: e.ty.clone(),
    }
}

/// Whether a member of a condition is a constant that may warn: it has a string, or a function.
fn is_checked_member(e: &Expr) -> bool {
    use ExprKind::{Call, Cast, InParam, IntervalArith, SysVar, UserVar};
    let warns = |e: &Expr| {
        e.ty.class() == Class::String
            || matches!(
                e.kind,
                Call { .. } | Cast { .. } | IntervalArith { .. } | InParam { .. }
            )
    };
    is_constant(e)
        && e.any(&mut |e| warns(e))
        && !e.any(&mut |e| matches!(e.kind, UserVar(_) | SysVar { .. }))
}

/// Whether a condition is a literal that is never true.
fn is_never(e: &Expr) -> bool {
    matches!(
        e.kind,
        ExprKind::Const(Value::Null | Value::Int(0) | Value::UInt(0))
    )
}

/// How MySQL converts the members of an IN list of two or more constants of these types, if it
/// compares all of them with `left` in one way, and if converting them may cause warnings.
fn one_way<'e>(left: &Expr, types: impl Iterator<Item = &'e ExprType> + Clone) -> Option<CmpKind> {
    let mut values = types.clone().filter(|t| t.class() != Class::Null);
    let is_text = |t: &ExprType| t.class() == Class::String && !is_hex(t);
    let texts = values.clone().any(is_text);
    let numbers = values.clone().filter(|t| t.class().is_number()).count();
    let hex = values.clone().any(is_hex);
    if values.clone().any(|t| t.col.is_json()) {
        return None;
    }
    let alike = numbers == 0 && (texts || hex) || numbers > 0 && values.clone().count() == numbers;
    match left.ty.class() {
        // Only the member of a list of one is checked beside a YEAR.
        Class::Int if is_year(left) => texts.then_some(CmpKind::Double),
        Class::Int if texts && is_integer_list(left, types) => Some(CmpKind::Int),
        Class::Int | Class::Decimal if texts => {
            let exact = |t: &ExprType| matches!(t.class(), Class::Int | Class::Decimal);
            (!values.any(exact)).then_some(CmpKind::Double)
        }
        Class::Double if texts => Some(CmpKind::Double),
        Class::Date | Class::DateTime if alike => Some(CmpKind::DateTime),
        Class::Time if alike => Some(CmpKind::Time),
        _ => None,
    }
}

/// Whether a text of this type is a literal that the character set of `collation` may lack.
fn is_loose_text(ty: &ExprType, collation: CollationId) -> bool {
    let to = collation.known().charset;
    let lacks = !to.is_unicode() && !to.is_binary() && ty.col.charset() != to;
    lacks
        && ty.class() == Class::String
        && ty.coercibility == Coercibility::Coercible
        && !is_hex(ty)
}

/// Whether a column is a BIGINT, to which MySQL converts a constant beside it while it resolves
/// names, in every clause.
fn is_bigint(e: &Expr) -> bool {
    e.ty.col.kind == TypeKind::BigInt
}

fn is_year(e: &Expr) -> bool {
    e.ty.col.kind == TypeKind::Year
}
